"""The training of Figure 2: a vision transformer on MNIST digits with noise in the ring around them."""

from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, UInt8
from numpy import ndarray

from lemmata.descent import Descent, Draw, Learner, Learning
from lemmata.errors import require
from lemmata.own import Taken
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
from lemmata.parts.transformers import Order, VisionTransformer, vision_transformer
from lemmata.trial import Key, Precision, Supply, fixed

SIDE, RING = 28, 4
"""Pixels of a side of a digit, and the width of the ring."""

AT_ONCE = 500
"""The largest number of test pictures that are classified together."""


class Ringed(eqx.Module):
    """Digits times `a = gain snr / (1 + snr)` and ring noise times `b = gain / (1 + snr)`.

    `gain` multiplies both. At gain 1 this is the paper's a + b = 1.
    `samples`, `tests`: numbers of training and test pictures.
    """

    snr: float = 1.0
    gain: float = 1.0
    samples: int = fixed(default=3000)
    tests: int = fixed(default=10_000)
    pictures: Pictures = fixed(default="mnist")

    def __check_init__(self):
        require(
            self.pictures in ("mnist", "fashion-mnist", "made"),
            "the ring is that of pictures of 28 x 28 pixels.",
        )

    def noisy(
        self, images: UInt8[Array | ndarray, "n row column 1"], key: Key
    ) -> Float[Array, "n row column 1"]:
        """Return pictures with the noise in their ring, standard normal before the factor b."""
        inner = jnp.zeros((SIDE, SIDE, 1)).at[RING:-RING, RING:-RING].set(1.0)
        noise = (1 - inner) * jax.random.normal(key, images.shape, jnp.float32)
        return ((self.gain / (1 + self.snr)) * (self.snr * unit(images) + noise)).astype(jnp.float32)


class Viewer(eqx.Module):
    """The shape of the vision transformer: two layers of four heads, then a layer with ReLU."""

    patch: int = fixed(default=7)
    width: int = fixed(default=64)
    heads: int = fixed(default=4)
    depth: int = fixed(default=2)
    hidden: int = fixed(default=128)
    order: Order = fixed(default="plain")

    def draw(self, key: Key) -> VisionTransformer:
        """Draw initial weights."""
        return vision_transformer(
            key,
            side=SIDE,
            channels=1,
            patch=self.patch,
            width=self.width,
            heads=self.heads,
            depth=self.depth,
            mlp=0,
            hidden=self.hidden,
            classes=10,
            order=self.order,
        )


class Test(NamedTuple):
    """Test pictures as they are in the data set, and the key of their noise."""

    pictures: Labelled
    key: Array


class RealDigits(Learner):
    """Trains until the mean loss of an epoch is at most `descent.target_loss`, for at most `epochs` epochs."""

    name: ClassVar[str] = "benign-overfitting/real-digits"
    paired: ClassVar[tuple[str, ...]] = ("data", "network", "descent", "epochs")
    lockstep: ClassVar[bool] = False
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"example": ("row", "column")}

    data: Ringed = Ringed()
    network: Viewer = Viewer()
    descent: Descent = Descent(
        learning_rate=1e-3, target_loss=0.01, method="adam", loss="cross-entropy", batches="epochs", batch=100,
        stop="epoch", logs=30, spacing="even",
    )  # fmt: skip
    epochs: int = fixed(default=150)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.precision == "float32", "real data are trained in single precision (precision=float32).")

    @property
    def data_sets(self) -> tuple[str, ...]:
        return sets_of(self.data.pictures)

    @property
    def samples(self) -> int:
        return self.data.samples

    @property
    def steps(self) -> int:
        return self.epochs * (self.samples // self.batch_size)

    def supplied(self, key: Key) -> Supply:
        if self.data.pictures == "made":
            return Supply()
        return Supply(read_pictures(self.data.pictures, key, self.data.samples, self.data.tests))

    def takes(self, key: Key) -> Taken:
        return Taken(
            "the pictures come from a data set (data.pictures).", jax.eval_shape(self.network.draw, key)
        )

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def draw_with(self, key: Key, data: Split | None, weights: VisionTransformer | None) -> Draw:
        """Put fresh noise into the ring of every picture."""
        start, made, train, test = jax.random.split(key, 4)
        split = made_pictures(made, self.data.samples, self.data.tests) if data is None else data
        shown = self.data.noisy(split.train.images, train), split.train.labels
        world = Test(split.test, jax.random.key_data(test))
        return Draw(self.network.draw(start) if weights is None else weights, shown, world)

    def objective(
        self, params: VisionTransformer, batch: tuple[Array, Array], world: Test, key: Key
    ) -> Float[Array, ""]:
        images, labels = batch
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(params(images), labels))

    def watch(self, state: Learning) -> dict[str, Array]:
        return {"train_loss": self.loss(state)}

    def record(self, state: Learning) -> dict[str, Array]:
        assert state.epochs is not None
        loss, accuracy = self._tested(state)
        return {
            "train_loss": jnp.where(jnp.isfinite(state.epochs[1]), state.epochs[1], state.fit.loss),
            "test_loss": loss,
            "accuracy": accuracy,
            "example": state.data[0][0, :, :, 0],
        }

    def _tested(self, state: Learning) -> tuple[Array, Array]:
        """Return the mean loss and the accuracy on the test pictures."""
        pictures, key = state.world
        images = self.data.noisy(pictures.images, jax.random.wrap_key_data(key))
        size = in_parts(self.data.tests, AT_ONCE)

        def part(given: tuple[Array, Array]) -> tuple[Array, Array]:
            shown, labels = given
            logits = state.params(shown)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return jnp.mean(losses), jnp.mean(jnp.argmax(logits, axis=-1) == labels)

        parts = (images.reshape(-1, size, *images.shape[1:]), pictures.labels.reshape(-1, size))
        losses, right = jax.lax.map(part, parts)
        return jnp.mean(losses), jnp.mean(right)
