"""The counter-example: labels that know the groups, patches that do not, and what attention learns from them (Fig. 2)."""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import Descent, Draw, Learner, Learning, logistic_loss
from lemmata.errors import require
from lemmata.own import require_signs
from lemmata.studies.spatial_structure.data import Gaussian, World
from lemmata.studies.spatial_structure.network import (
    Constants,
    Logits,
    Patches,
    PositionalNetwork,
    Weights,
    association,
    output,
)
from lemmata.studies.spatial_structure.network.variants import Wide, start_wide, wide_output
from lemmata.studies.spatial_structure.trials.images import gaussian_weights
from lemmata.trial import Key, Precision, Record, fixed


class Tested(NamedTuple):
    """Images that training does not see, their labels, and what the vote of the filters says of them."""

    patches: Patches
    labels: Float[Array, " tests"]
    votes: Float[Array, " tests"]


class GaussianDescent(Learner):
    """A transformer trained on Gaussian patches with convolutional labels.

    `wide` is a one-layer transformer with trainable positional encodings, a value matrix and a ReLU layer; `analysed` is
    network (T), whose logits move `descent.attention_rate` times as fast as its value vector.
    """

    name: ClassVar[str] = "spatial-structure/gaussian"
    dims: ClassVar = {"logits": ("row", "column"), "group_of": ("patch",)}
    paired: ClassVar = ("learner", "descent", "network.diagonal", "channels", "width")

    data: Gaussian = Gaussian()
    network: PositionalNetwork = PositionalNetwork(linear=1e-3, diagonal=2.0)
    descent: Descent = Descent(
        learning_rate=2e-3, method="adam", batches="with-replacement", batch=128, stop="cap", steps=6000
    )
    learner: Literal["wide", "analysed"] = fixed(default="wide")
    channels: int = fixed(default=32)
    width: int = fixed(default=64)
    samples: int = fixed(default=20_000)
    test_samples: int = fixed(default=5000)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.samples > 0, f"a training needs at least one sample, not {self.samples}.")
        batch = self.descent.batch
        require(batch <= self.samples, f"a batch of {batch} is larger than the sample of {self.samples}.")

    @property
    def constants(self) -> Constants:
        return self.network.constants(self.data.dimension)

    def draw(self, key: Key) -> Draw:
        dtype = jnp.dtype(self.precision)
        part = [jax.random.fold_in(key, i) for i in range(4)]
        filters = self.data.world(part[0], dtype)
        seen = self.data.draw(part[1], filters, self.samples)[:2]
        return Draw(
            self._start(part[3], dtype), seen, Tested(*self.data.draw(part[2], filters, self.test_samples))
        )

    def check_own(self, data: tuple[Array, Array] | None, weights: Wide | Weights | None) -> None:
        if data is not None:
            require_signs("data[1] (labels)", data[1])

    def _start(self, key: Key, dtype) -> Wide | Weights:
        data = self.data
        if self.learner == "wide":
            return start_wide(key, data.patches, data.dimension, self.channels, self.width, dtype)
        nobody = World(jnp.asarray(data.group_of), jnp.zeros(data.dimension, dtype))
        return gaussian_weights(self.network, key, nobody)

    def rates(self, params: Wide | Weights) -> Weights | float:
        return Weights(self.descent.attention_rate, 1.0) if isinstance(params, Weights) else 1.0  # pyright: ignore

    def logits(self, params: Wide | Weights) -> Logits:
        if isinstance(params, Wide):
            return params.positions.T @ params.positions
        frozen = jnp.eye(self.data.patches, dtype=bool)
        return jnp.where(frozen, jax.lax.stop_gradient(params.logits), params.logits)

    def output(self, params: Wide | Weights, patches: Patches) -> Float[Array, " samples"]:
        if isinstance(params, Wide):
            return wide_output(params, patches)
        return output(Weights(self.logits(params), params.value), patches, self.constants)

    def objective(
        self, params: Wide | Weights, batch: tuple[Array, Array], world: Tested, key: Key
    ) -> Float[Array, ""]:
        patches, labels = batch
        return jnp.mean(logistic_loss(labels * self.output(params, patches)))

    def watch(self, state: Learning) -> Record:
        """Beside error and association, `slot_auc`: do logits order pairs by whether they share a slot (a filter)?"""
        data, tested = self.data, state.world
        logits = self.logits(state.params)
        margin = tested.labels * self.output(state.params, tested.patches)
        slots = association(logits, jnp.asarray(data.slot_of), data.group_size)
        return {
            "loss": state.fit.loss,
            "test_error": jnp.mean(margin <= 0, dtype=margin.dtype),
            "slot_auc": slots["auc"],
            **association(logits, jnp.asarray(data.group_of), data.patches // data.group_size),
        }

    def record(self, state: Learning) -> Record:
        return {
            **self.watch(state),
            "vote_error": jnp.mean(state.world.votes != state.world.labels, dtype=self.precision),
            "logits": self.logits(state.params),
            "group_of": jnp.asarray(self.data.group_of),
        }
