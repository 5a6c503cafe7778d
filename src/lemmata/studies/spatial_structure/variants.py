"""Network (T) beside its two relatives: trainable positional encodings, and self-attention that also sees the patches.

The paper trains the logits `A` themselves; what it has in mind are positional encodings `p_j` with `A_ij = <p_i, p_j>`
(Definition 2.2), and what it leaves for later is attention in which patches and positions mix (Definition 3.1).
"""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import Trained, logistic_loss
from lemmata.errors import require
from lemmata.studies.spatial_structure.data import Structured, World
from lemmata.studies.spatial_structure.network import (
    Encoded,
    Shape,
    Weights,
    association,
    class_summary,
    encoded_output,
    output,
    self_attention_output,
)
from lemmata.studies.spatial_structure.trials import PositionalNetwork, SlowAttention, gaussian_weights
from lemmata.trial import Key, Precision, Record, fixed

Attention = Literal["logits", "encodings", "self"]


class Variant(NamedTuple):
    """State: the trained weights with the risk and its gradient, the world, and the images seen and unseen."""

    weights: Weights | Encoded
    loss: Float[Array, ""]
    gradient: Weights | Encoded
    world: World
    patches: Float[Array, "samples patches dimension"]
    labels: Float[Array, " samples"]
    test_patches: Float[Array, "tests patches dimension"]
    test_labels: Float[Array, " tests"]


class VariantDescent(Trained):
    """Full-batch descent on a fixed sample with one of three kinds of attention.

    `logits`: network (T), its logits trained and their diagonal frozen. `encodings`: `A = P^T P`, `P` trained, nothing
    frozen. `self`: scores from `X + P`, `P` trained. Encodings start as `N(0, beta / k)` in `k = width` dimensions
    (that of the patches for `self`), so that `A` starts with a diagonal near `beta` and `beta / sqrt(k)` off it. They
    move with `descent.attention_rate` times the step size of the value vector, as logits do.
    """

    dims: ClassVar = {"logits": ("row", "column"), "group_of": ("patch",)}
    paired = ("attention", "descent", "width")

    data: Structured = Structured(patches=36, spurious_rate=0.3, dimension=16)
    network: PositionalNetwork = PositionalNetwork()
    descent: SlowAttention = SlowAttention(learning_rate=2e-4, attention_rate=1e4, steps=2500)
    attention: Attention = fixed(default="encodings")
    width: int = fixed(default=256)
    samples: int = fixed(default=2000)
    test_samples: int = fixed(default=2000)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.samples > 0, f"a training needs at least one sample, not {self.samples}.")
        require(self.test_samples > 0, f"a test set needs at least one sample, not {self.test_samples}.")
        require(self.width > 0, f"positional encodings need at least one dimension, not {self.width}.")

    @property
    def shape(self) -> Shape:
        return self.network.shape(self.data.dimension)

    def start(self, key: Key) -> Variant:
        dtype = jnp.dtype(self.precision)
        part = [jax.random.fold_in(key, i) for i in range(4)]
        world = self.data.world(part[0], dtype)
        seen, unseen = (
            self.data.draw(k, world, n) for k, n in ((part[1], self.samples), (part[2], self.test_samples))
        )
        weights = self._weights(part[3], world)
        loss, gradient = jax.value_and_grad(self.risk)(weights, seen.patches, seen.labels)
        return Variant(
            weights, loss, gradient, world, seen.patches, seen.labels, unseen.patches, unseen.labels
        )

    def _weights(self, key: Key, world: World) -> Weights | Encoded:
        plain = gaussian_weights(self.network, key, world)
        if self.attention == "logits":
            return plain
        width = self.width if self.attention == "encodings" else self.data.dimension
        scale = jnp.sqrt(jnp.asarray(self.network.diagonal, plain.value.dtype) / width)
        raw = jax.random.normal(
            jax.random.fold_in(key, 2), (width, self.data.patches), dtype=plain.value.dtype
        )
        return Encoded(scale * raw, plain.value)

    def output(self, weights: Weights | Encoded, patches: Array) -> Float[Array, " samples"]:
        if isinstance(weights, Weights):
            return output(weights, patches, self.shape)
        kind = self_attention_output if self.attention == "self" else encoded_output
        return kind(weights, patches, self.shape)

    def risk(self, weights: Weights | Encoded, patches: Array, labels: Array) -> Float[Array, ""]:
        return jnp.mean(logistic_loss(labels * self.output(weights, patches)))

    def step(self, state: Variant) -> Variant:
        rate = self.descent.learning_rate
        attention, value = state.gradient
        if self.attention == "logits":
            attention = jnp.where(jnp.eye(self.data.patches, dtype=bool), 0, attention)
        weights = type(state.weights)(
            state.weights[0] - rate * self.descent.attention_rate * attention,
            state.weights[1] - rate * value,
        )
        loss, gradient = jax.value_and_grad(self.risk)(weights, state.patches, state.labels)
        return state._replace(weights=weights, loss=loss, gradient=gradient)

    def loss(self, state: Variant) -> Array:
        return state.loss

    def finished(self, state: Variant) -> Array:
        return state.loss <= self.descent.target_loss

    def watch(self, state: Variant) -> Record:
        logits, groups = state.weights.logits, self.data.group_count
        margin = state.test_labels * self.output(state.weights, state.test_patches)
        return {
            "loss": state.loss,
            "test_error": jnp.mean(margin <= 0, dtype=margin.dtype),
            "cosine": state.weights.value @ state.world.feature / jnp.linalg.norm(state.weights.value),
            **association(logits, state.world.group_of, groups),
            **class_summary(logits, state.world.group_of, groups),
        }

    def record(self, state: Variant) -> Record:
        return {
            **self.watch(state),
            "logits": state.weights.logits,
            "group_of": state.world.group_of,
        }
