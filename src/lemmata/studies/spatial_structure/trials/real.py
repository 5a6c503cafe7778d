"""Networks on real pictures whose grids are permuted, with learned positions or with attention from positions alone."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int

from lemmata.descent import Descent, Draw, Learner, Learning
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.parts.convolutions import Stages, convolutional
from lemmata.parts.pictures import (
    Labelled,
    Pictures,
    Split,
    in_parts,
    made_pictures,
    read_pictures,
    sets_of,
    unit,
)
from lemmata.parts.transformers import VisionTransformer, vision_transformer
from lemmata.trial import Key, Precision, Supply, fixed

SHAPES = {"cifar10": (32, 3), "mnist": (28, 1), "fashion-mnist": (28, 1), "made": (32, 3)}
"""Side and channels of the pictures."""

WIDTHS = (16, 32, 64)
"""Channels of the stages of the convolutional network."""

AT_ONCE = 250
"""The largest number of test pictures that are classified together."""

Kind = Literal["transformer", "positional", "convolution"]
"""A vision transformer, one whose attention comes from positions alone, or a convolutional network."""


class Sight(eqx.Module):
    """The network: for the transformers patch, width, heads, depth and the width of perceptrons."""

    kind: Kind = fixed(default="transformer")
    patch: int = fixed(default=4)
    width: int = fixed(default=96)
    heads: int = fixed(default=4)
    depth: int = fixed(default=4)
    mlp: int = fixed(default=192)


class RealGrids(Learner):
    """Classifies pictures that are cut into grids of `grid` pixels, which one fixed permutation moves (0: as they are).

    `samples_used`, `tests`: numbers of training and test pictures. `epochs`: how often training goes through them.
    `decay`: the squared norm of all weights is added to the loss, times half of this.
    """

    name: ClassVar[str] = "spatial-structure/real-grids"
    paired: ClassVar[tuple[str, ...]] = ("grid", "network", "descent")
    lockstep: ClassVar[bool] = False
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "similarity": ("token", "other"),
        "start": ("token", "other"),
        "placed": ("token",),
        "example": ("row", "column", "colour"),
    }

    pictures: Pictures = fixed(default="cifar10")
    grid: int = fixed(default=0)
    samples_used: int = fixed(default=5000)
    tests: int = fixed(default=2000)
    epochs: int = fixed(default=10)
    decay: float = 5e-5
    network: Sight = Sight()
    descent: Descent = Descent(
        learning_rate=1e-3, method="adam", loss="cross-entropy", batches="epochs", batch=128, stop="cap", logs=20,
        spacing="even",
    )  # fmt: skip
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.precision == "float32", "real data are trained in single precision (precision=float32).")
        side, _ = SHAPES[self.pictures]
        require(
            side % self.network.patch == 0, f"patches of {self.network.patch} pixels do not fit into {side}."
        )
        require(
            not self.grid or side % self.grid == 0, f"grids of {self.grid} pixels do not fit into {side}."
        )

    @property
    def data_sets(self) -> tuple[str, ...]:
        return sets_of(self.pictures)

    @property
    def samples(self) -> int:
        return self.samples_used

    @property
    def steps(self) -> int:
        return self.epochs * (self.samples // self.batch_size)

    def supplied(self, key: Key) -> Supply:
        if self.pictures == "made":
            return Supply()
        return Supply(read_pictures(self.pictures, key, self.samples_used, self.tests))

    def takes(self, key: Key) -> Taken:
        return Taken("the pictures come from a data set (pictures).", jax.eval_shape(self._weights, key))

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def draw_with(self, key: Key, data: Split | None, weights: VisionTransformer | Stages | None) -> Draw:
        """Permute the grids of all pictures alike."""
        start, made, moved = jax.random.split(key, 3)
        side, channels = SHAPES[self.pictures]
        split = made_pictures(made, self.samples_used, self.tests, side, channels) if data is None else data
        train, test = (
            Labelled(permuted(jnp.asarray(part.images), self.grid, moved), jnp.asarray(part.labels))
            for part in split
        )
        params = self._weights(start) if weights is None else weights
        return Draw(params, train, (test, moved_tokens(self.grid, side, self.network.patch, moved), params))

    def _weights(self, key: Key) -> VisionTransformer | Stages:
        side, channels = SHAPES[self.pictures]
        net = self.network
        if net.kind == "convolution":
            return convolutional(key, side, channels, WIDTHS, 10)
        return vision_transformer(
            key,
            side=side,
            channels=channels,
            patch=net.patch,
            width=net.width,
            heads=net.heads,
            depth=net.depth,
            mlp=net.mlp,
            hidden=0,
            classes=10,
            order="pre",
            positional=net.kind == "positional",
        )

    def objective(
        self, params: VisionTransformer | Stages, batch: Labelled, world: tuple, key: Key
    ) -> Float[Array, ""]:
        losses = optax.softmax_cross_entropy_with_integer_labels(params(unit(batch.images)), batch.labels)
        return jnp.mean(losses) + 0.5 * self.decay * optax.tree.norm(params, squared=True)

    def watch(self, state: Learning) -> dict[str, Array]:
        return {"train_loss": self.loss(state)}

    def record(self, state: Learning) -> dict[str, Array]:
        test, placed, start = state.world
        size = in_parts(self.tests, AT_ONCE)
        parts = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), test)
        right = jax.lax.map(
            lambda part: jnp.mean(jnp.argmax(state.params(unit(part.images)), axis=-1) == part.labels), parts
        )
        return {
            "accuracy": jnp.mean(right),
            "similarity": similarity(state.params),
            "start": similarity(start),
            "placed": placed,
            "example": test.images[0],
        }


def similarity(params: VisionTransformer | Stages) -> Float[Array, "token other"]:
    """Return the products p_i . p_j of learned positions; one zero for a network without positions."""
    if isinstance(params, Stages):
        return jnp.zeros((1, 1))
    return params.positions @ params.positions.T


def permuted(images: Array, grid: int, key: Key) -> Array:
    """Move the grids of all pictures by one permutation. A grid of 0 or of the whole side moves nothing."""
    n, side, _, channels = images.shape
    if grid in (0, side):
        return images
    many = side // grid
    cut = images.reshape(n, many, grid, many, grid, channels).transpose(0, 1, 3, 2, 4, 5)
    mixed = cut.reshape(n, many**2, grid, grid, channels)[:, jax.random.permutation(key, many**2)]
    back = mixed.reshape(n, many, many, grid, grid, channels).transpose(0, 1, 3, 2, 4, 5)
    return back.reshape(images.shape)


def moved_tokens(grid: int, side: int, patch: int, key: Key) -> Int[Array, " token"]:
    """Return the place in the original picture of every patch of a permuted one, as long as patches fit into grids."""
    tokens = jnp.arange((side // patch) ** 2)
    if grid % patch or grid in (0, side):
        return tokens
    many = side // patch
    return permuted(tokens.reshape(1, many, many, 1), grid // patch, key).ravel()
