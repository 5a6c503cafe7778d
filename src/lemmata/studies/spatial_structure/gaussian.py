"""The counter-example: labels that know the groups, patches that do not, and what attention learns from them (Fig. 2)."""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import Descent, Fit, Trained, advance, begin, logistic_loss
from lemmata.errors import require
from lemmata.studies.spatial_structure.data import Gaussian
from lemmata.studies.spatial_structure.network import (
    Shape,
    Weights,
    Wide,
    association,
    output,
    start_wide,
    wide_output,
)
from lemmata.trial import Key, Precision, Record, fixed

Learner = Literal["wide", "analysed"]


class GaussianFit(NamedTuple):
    """The descent, the training images and labels, the test images and labels, and the key of the batches."""

    fit: Fit
    patches: Float[Array, "samples patches dimension"]
    labels: Float[Array, " samples"]
    test_patches: Float[Array, "tests patches dimension"]
    test_labels: Float[Array, " tests"]
    key: Key


class GaussianDescent(Trained):
    """A transformer trained on Gaussian patches with convolutional labels.

    Batches are drawn from the sample with replacement. `wide` is a one-layer transformer with trainable positional
    encodings, a value matrix and a ReLU layer; `analysed`
    is network (T), whose logits move `attention_rate` times as fast as its value vector.
    """

    dims: ClassVar = {"logits": ("row", "column"), "group_of": ("patch",)}
    paired = ("learner", "descent", "diagonal", "attention_rate", "channels", "width")

    data: Gaussian = Gaussian()
    descent: Descent = Descent(learning_rate=1e-3, target_loss=0.0, method="adam", batch=128, steps=6000)
    diagonal: float = 2.0
    linear: float = 1e-3
    init: float = 1e-3
    attention_rate: float = 300.0
    learner: Learner = fixed(default="wide")
    channels: int = fixed(default=32)
    width: int = fixed(default=64)
    samples: int = fixed(default=20_000)
    test_samples: int = fixed(default=5000)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.samples > 0, f"a training needs at least one sample, not {self.samples}.")
        batch = self.descent.batch or 1
        require(batch <= self.samples, f"a batch of {batch} is larger than the sample of {self.samples}.")

    def start(self, key: Key) -> GaussianFit:
        dtype = jnp.dtype(self.precision)
        part = [jax.random.fold_in(key, i) for i in range(5)]
        filters = self.data.world(part[0], dtype)
        patches, labels = self.data.draw(part[1], filters, self.samples)
        test_patches, test_labels = self.data.draw(part[2], filters, self.test_samples)
        params = self._weights(part[3], dtype)
        fit = begin(
            self.descent, self._risk, params, *self._batch(part[4], jnp.zeros((), jnp.int32), patches, labels)
        )
        return GaussianFit(fit, patches, labels, test_patches, test_labels, part[4])

    def _weights(self, key: Key, dtype) -> Wide | Weights:
        data = self.data
        if self.learner == "wide":
            return start_wide(key, data.patches, data.dimension, self.channels, self.width, dtype)
        init = jnp.asarray(self.init, dtype)
        logits = init * jax.random.normal(jax.random.fold_in(key, 0), (data.patches, data.patches), dtype)
        value = init * jax.random.normal(jax.random.fold_in(key, 1), (data.dimension,), dtype)
        return Weights(logits / self._speed(dtype), value)

    def _speed(self, dtype) -> Array:
        """Descent on `A / sqrt(rate)` moves `A` at `rate` times the common step size."""
        return jnp.sqrt(jnp.asarray(self.attention_rate, dtype))

    def logits(self, params: Wide | Weights) -> Float[Array, "patches patches"]:
        if isinstance(params, Wide):
            return params.positions.T @ params.positions
        scaled = params.logits * self._speed(params.logits.dtype)
        diagonal = jnp.asarray(self.diagonal, scaled.dtype)
        return jnp.where(jnp.eye(len(scaled), dtype=bool), diagonal, scaled)

    def _output(self, params: Wide | Weights, patches: Array) -> Array:
        if isinstance(params, Wide):
            return wide_output(params, patches)
        return output(Weights(self.logits(params), params.value), patches, Shape(3, self.linear, 1.0))

    def _risk(self, params: Wide | Weights, patches: Array, labels: Array) -> Array:
        return jnp.mean(logistic_loss(labels * self._output(params, patches)))

    def _batch(self, key: Key, step: Array, patches: Array, labels: Array) -> tuple[Array, Array]:
        if self.descent.batch is None:
            return patches, labels
        chosen = jax.random.randint(jax.random.fold_in(key, step), (self.descent.batch,), 0, self.samples)
        return patches[chosen], labels[chosen]

    def step(self, state: GaussianFit) -> GaussianFit:
        batch = self._batch(state.key, state.fit.step + 1, state.patches, state.labels)
        return state._replace(fit=advance(self.descent, self._risk, state.fit, *batch))

    def loss(self, state: GaussianFit) -> Array:
        return state.fit.loss

    def finished(self, state: GaussianFit) -> Array:
        return state.fit.loss <= self.descent.target_loss

    def watch(self, state: GaussianFit) -> Record:
        params = state.fit.params
        margin = state.test_labels * self._output(params, state.test_patches)
        measured = association(
            self.logits(params), jnp.asarray(self.data.group_of), self.data.patches // self.data.group_size
        )
        return {"loss": state.fit.loss, "test_error": jnp.mean(margin <= 0, dtype=margin.dtype), **measured}

    def record(self, state: GaussianFit) -> Record:
        return {
            **self.watch(state),
            "logits": self.logits(state.fit.params),
            "group_of": jnp.asarray(self.data.group_of),
        }
