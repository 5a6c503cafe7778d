"""Descent on images: all logits and the whole value vector, on a fixed sample (E) or on fresh images at every step (P)."""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import Descent, Draw, Learner, Learning, logistic_loss
from lemmata.errors import require
from lemmata.own import Taken, require_signs
from lemmata.studies.spatial_structure.data import Structured, World
from lemmata.studies.spatial_structure.network import (
    Constants,
    PositionalNetwork,
    Weights,
    association,
    class_summary,
    in_blocks,
    output,
    output_of_projections,
    risk_gradient,
    tied_logits,
)
from lemmata.studies.spatial_structure.network.variants import Encoded, encoded_output, self_attention_output
from lemmata.trial import Key, Precision, Record, Tracks, fixed

BLOCK = 16
"""Samples that are read, projected and pulled back together; with the next block, 16 images of 64 patches by 32 stay in a
core's cache."""


class Unseen(NamedTuple):
    """Test images as coefficients and the noise along one direction.

    The noise is Gaussian and independent of the weights, so `<v, X_j> = <v, w*> f_j + sigma |v_perp| g_j` in law.
    """

    labels: Float[Array, " samples"]
    coefficients: Float[Array, "samples patches"]
    noise: Float[Array, "samples patches"]


class Whole(NamedTuple):
    """Test images as they are: for attention that looks at patches."""

    labels: Float[Array, " samples"]
    patches: Float[Array, "samples patches dimension"]


class Scene(NamedTuple):
    """Groups and feature, and the images that training does not see."""

    world: World
    unseen: Unseen | Whole


class ImageDescent(Learner):
    """Full-batch descent on a sample from a Gaussian start (E), the logits moving with `descent.attention_rate` times the
    step size of the value vector.

    The paper has one step size: at small sizes the logits are then a thousand times slower than the value vector, so
    figures use a larger one and say so; 0 freezes the attention. With `descent.batches=fresh` every step sees new images,
    which is descent on the population risk (P) up to the noise of its draws; `begin` chooses the start of
    Parametrization 3.1: `gaussian` for (E), `idealised` (`v = nu^(1/(p-1)) w*`, logits 0) for (P).

    `attention`: `logits` is network (T), the diagonal frozen; `encodings` is `A = P^T P` with `P` trained and nothing
    frozen; `self` has scores from `X + P`. Encodings start as `N(0, beta / k)` in `k = width` dimensions (that of the
    patches for `self`), so that `A` starts with a diagonal near `beta` and `beta / sqrt(k)` off it.
    """

    name: ClassVar[str] = "spatial-structure/images"
    dims: ClassVar = {"logits": ("row", "column"), "group_of": ("patch",), "value": ("dimension",)}
    paired: ClassVar = (
        "data.partition",
        "data.groups",
        "descent",
        "attention",
        "width",
        "keep_logits",
        "samples",
    )

    data: Structured = Structured()
    network: PositionalNetwork = PositionalNetwork()
    descent: Descent = Descent(
        learning_rate=1e-4, attention_rate=3e4, stop="cap", steps=4000, logs=40, spacing="even"
    )
    attention: Literal["logits", "encodings", "self"] = fixed(default="logits")
    begin: Literal["gaussian", "idealised"] = fixed(default="gaussian")
    width: int = fixed(default=256)
    samples: int = fixed(default=8000)
    test_samples: int = fixed(default=4000)
    keep_logits: bool = fixed(default=False)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.samples > 0, f"a training needs at least one sample, not {self.samples}.")
        require(self.test_samples > 0, f"a test set needs at least one sample, not {self.test_samples}.")
        require(self.width > 0, f"positional encodings need at least one dimension, not {self.width}.")
        whole = self.descent.batches in ("full", "fresh")
        require(whole, f"images are seen all at once or fresh at every step, not as {self.descent.batches}.")

    @property
    def constants(self) -> Constants:
        return self.network.constants(self.data.dimension)

    def takes(self, key: Key) -> Taken:
        """Any number of images with their labels, and weights. Groups, feature and test images stay those of the trial."""
        drawn = Learner.takes(self, key)
        if isinstance(drawn.data, str):
            return drawn
        images = (self.samples, self.data.patches, self.data.dimension), (self.samples,)
        form = tuple(jax.ShapeDtypeStruct(shape, jnp.dtype(self.precision)) for shape in images)
        return drawn._replace(data=form, any_number=True)

    def check_own(self, data: tuple[Array, Array] | None, weights: Weights | Encoded | None) -> None:
        if data is not None:
            require_signs("data[1] (labels)", data[1])

    def draw_with(
        self, key: Key, data: tuple[Array, Array] | None, weights: Weights | Encoded | None
    ) -> Draw:
        if data is not None and self.attention == "logits":
            data = in_blocks(*data, BLOCK)
        return Learner.draw_with(self, key, data, weights)

    def draw(self, key: Key) -> Draw:
        part = [jax.random.fold_in(key, i) for i in range(4)]
        world = self.data.world(part[0], jnp.dtype(self.precision))
        if self.attention == "self":
            images = self.data.draw(part[2], world, self.test_samples)
            unseen = Whole(images.labels, images.patches)
        else:
            unseen = draw_unseen(self.data, part[2], world, self.test_samples)
        scene = Scene(world, unseen)
        fresh = self.descent.batches == "fresh"
        return Draw(
            self._start(part[3], world), None if fresh else self.fresh(part[1], scene, self.samples), scene
        )

    def fresh(self, key: Key, world: Scene, count: int) -> tuple[Array, Array]:
        images = self.data.draw(key, world.world, count)
        if self.attention == "logits":
            return in_blocks(images.patches, images.labels, BLOCK)
        return images.patches, images.labels

    def _start(self, key: Key, world: World) -> Weights | Encoded:
        if self.begin == "idealised":
            dtype, zero = world.feature.dtype, jnp.zeros((), world.feature.dtype)
            logits = tied_logits(world.group_of, jnp.asarray(self.network.diagonal, dtype), zero, zero)
            return Weights(logits, jnp.asarray(self.network.threshold, dtype) * world.feature)
        plain = gaussian_weights(self.network, key, world)
        if self.attention == "logits":
            return plain
        width = self.width if self.attention == "encodings" else self.data.dimension
        scale = jnp.sqrt(jnp.asarray(self.network.diagonal, plain.value.dtype) / width)
        raw = jax.random.normal(jax.random.fold_in(key, 2), (width, self.data.patches), plain.value.dtype)
        return Encoded(scale * raw, plain.value)

    def rates(self, params: Weights | Encoded) -> Weights | Encoded:
        return type(params)(self.descent.attention_rate, 1.0)  # pyright: ignore[reportArgumentType]

    def output(self, params: Weights | Encoded, patches: Array) -> Float[Array, " samples"]:
        if isinstance(params, Weights):
            return output(params, patches, self.constants)
        kind = self_attention_output if self.attention == "self" else encoded_output
        return kind(params, patches, self.constants)

    def objective(
        self, params: Weights | Encoded, batch: tuple[Array, Array], world: Scene, key: Key
    ) -> Float[Array, ""]:
        patches, labels = as_images(*batch)
        losses = jnp.abs(labels) * logistic_loss(labels * self.output(params, patches))
        return jnp.sum(losses) / jnp.sum(jnp.abs(labels))

    def slope(
        self, params: Weights | Encoded, batch: tuple[Array, Array], world: Scene, key: Key
    ) -> tuple[Float[Array, ""], Weights | Encoded]:
        if isinstance(params, Weights):
            return risk_gradient(params, *batch, self.constants)
        return jax.value_and_grad(self.objective)(params, batch, world, key)

    def track(self, state: Learning) -> Tracks:
        """The linear phase: its end, and the largest logit and part of the value vector off the feature before it."""
        alignment, orthogonal = split_value(state.params.value, state.world.world)
        over = alignment >= jnp.asarray(self.network.threshold, alignment.dtype)
        off = ~jnp.eye(self.data.patches, dtype=bool)
        logit = jnp.max(jnp.abs(jnp.where(off, state.params.logits, 0)))
        before = {"phase_logit": logit, "phase_orthogonal": orthogonal}
        return Tracks(
            first={"linear_phase_end": over},
            largest={name: jnp.where(over, 0, value) for name, value in before.items()},
        )

    def watch(self, state: Learning) -> Record:
        params, world = state.params, state.world.world
        logits, groups = params.logits, self.data.group_count
        seen = {
            "loss": state.fit.loss,
            **self.tested(params, state.world),
            **association(logits, world.group_of, groups),
            **class_summary(logits, world.group_of, groups),
        }
        return seen | ({"logits": logits} if self.keep_logits else {})

    def tested(self, params: Weights | Encoded, scene: Scene) -> dict[str, Array]:
        """Error (`F = 0` counts as wrong) and loss on unseen images, and how well the value vector points."""
        if isinstance(scene.unseen, Whole):
            margin = scene.unseen.labels * self.output(params, scene.unseen.patches)
        else:
            u = projections(self.data, params.value, scene.world, scene.unseen)
            margin = scene.unseen.labels * output_of_projections(u, params.logits, self.constants)
        alignment, orthogonal = split_value(params.value, scene.world)
        return {
            "test_error": jnp.mean(margin <= 0, dtype=margin.dtype),
            "test_loss": jnp.mean(logistic_loss(margin)),
            "alignment": alignment,
            "orthogonal": orthogonal,
            "cosine": alignment / jnp.linalg.norm(params.value),
        }

    def record(self, state: Learning) -> Record:
        last = {name: value for name, value in self.watch(state).items() if name != "logits"}
        if state.data is not None:
            patches, labels = as_images(*state.data)
            wrong = (labels * self.output(state.params, patches) <= 0) & (labels != 0)
            last["train_error"] = jnp.sum(wrong).astype(labels.dtype) / jnp.sum(jnp.abs(labels))
        return last | {
            "logits": state.params.logits,
            "value": state.params.value,
            "group_of": state.world.world.group_of,
        }


def as_images(patches: Array, labels: Array) -> tuple[Array, Array]:
    """Samples out of their blocks (padding, of label 0, stays)."""
    if labels.ndim == 1:
        return patches, labels
    images = jnp.moveaxis(patches, 1, -1)
    return images.reshape(-1, *images.shape[2:]), labels.reshape(-1)


def gaussian_weights(network: PositionalNetwork, key: Key, world: World) -> Weights:
    """Logits N(0, omega^2) off the frozen diagonal, value vector N(0, omega^2 I) (Parametrization 3.1)."""
    dtype, patches = world.feature.dtype, len(world.group_of)
    init = jnp.asarray(network.init, dtype)
    logits = init * jax.random.normal(jax.random.fold_in(key, 0), (patches, patches), dtype)
    value = init * jax.random.normal(jax.random.fold_in(key, 1), world.feature.shape, dtype)
    diagonal = jnp.asarray(network.diagonal, dtype)
    return Weights(jnp.where(jnp.eye(patches, dtype=bool), diagonal, logits), value)


def draw_unseen(data: Structured, key: Key, world: World, count: int) -> Unseen:
    dtype = world.feature.dtype
    labels, coefficients = data.draw_coefficients(jax.random.fold_in(key, 0), world.group_of, count, dtype)
    noise = jax.random.normal(jax.random.fold_in(key, 1), coefficients.shape, dtype)
    return Unseen(labels, coefficients, noise)


def projections(
    data: Structured, value: Float[Array, " dimension"], world: World, unseen: Unseen
) -> Float[Array, "samples patches"]:
    """`<v, X_j>` on unseen images."""
    alignment, orthogonal = split_value(value, world)
    sigma = jnp.asarray(data.noise, value.dtype) / data.dimension**0.5
    return alignment * unseen.coefficients + sigma * orthogonal * unseen.noise


def split_value(value: Float[Array, " dimension"], world: World) -> tuple[Array, Array]:
    """`<v, w*>` and the length of the rest of `v`."""
    alignment = value @ world.feature
    return alignment, jnp.linalg.norm(value - alignment * world.feature)
