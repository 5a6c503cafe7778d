"""One training: gradient flow on the loss over all prompts, or over a sample of them."""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array

from lemmata.descent import Descent, Draw, Learner
from lemmata.own import Taken
from lemmata.trial import Key, Precision, Record, Tracks, fixed

from .data import Moments, Regression
from .network import Merged, Separate, Weights, flow, learned_map, loss


class World(NamedTuple):
    """The moments of the prompts, and what the flow conserves at the start."""

    moments: Moments
    balance: Array


class Training(Learner):
    """`tau dW/dt = -(1/2) dL/dW` (5), by Runge-Kutta steps of fourth order. A step takes the time `learning_rate`, in units of tau.

    `init`: the standard deviation of every weight at the start.
    `layer`: keys and queries apart, or merged in one matrix.
    `heads`, `rank`: the number of heads, and of keys of a head (separate only).
    `prompts`: the number of prompts in the loss; 0 is the loss over all prompts, by its moments.
    """  # noqa: E501

    name: ClassVar[str] = "linear-attention/training"
    paired: ClassVar[tuple[str, ...]] = ("descent", "init", "data.power", "prompts")
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "learned": ("eigenvector",),
        "time": ("eigenvector",),
        "matrix": ("row", "column"),
        "size": ("head",),
        "alignment": ("head", "eigenvector"),
    }

    data: Regression = Regression()
    init: float = 0.01
    layer: Literal["separate", "merged"] = fixed(default="separate")
    heads: int = fixed(default=5)
    rank: int = fixed(default=1)
    prompts: int = fixed(default=0)
    descent: Descent = Descent(learning_rate=1.0, stop="cap", steps=80_000, logs=600, spacing="log")
    precision: Precision = fixed(default="float64")

    def draw(self, key: Key) -> Draw:
        values, keys, queries, prompts = jax.random.split(key, 4)
        dim = self.data.dim

        def part(key: Key, *shape: int) -> Array:
            return self.init * jax.random.normal(key, (self.heads, *shape))

        weights: Weights = Merged(part(values), part(keys, dim, dim))
        if self.layer == "separate":
            weights = Separate(part(values), part(keys, self.rank, dim), part(queries, self.rank, dim))
        moments = self.data.draw(prompts, self.prompts).moments if self.prompts else self.data.moments
        return Draw(weights, None, World(moments, weights.balance))

    def takes(self, key: Key) -> Taken:
        """Accept weights, and prompts if the loss is that of prompts."""
        prompts = f"{self.name} takes no prompts, as its loss is that over all prompts; set prompts."
        if self.prompts:
            prompts = jax.eval_shape(lambda: self.data.draw(key, self.prompts))
        return Taken(prompts, super().takes(key).weights)

    def draw_with(self, key: Key, data, weights) -> Draw:
        drawn = self.draw(key)
        weights = drawn.params if weights is None else weights
        moments = drawn.world.moments if data is None else data.moments
        return Draw(weights, None, World(moments, weights.balance))

    def objective(self, params, batch, world, key):
        return loss(params, world.moments) / 2

    def slope(self, params, batch, world, key):
        """The loss, and the mean slope over a Runge-Kutta step from here."""
        step, moments = self.descent.learning_rate, world.moments

        def after(share: float, passed: Weights) -> Weights:
            return flow(jax.tree.map(lambda w, f: w + share * step * f, params, passed), moments)

        first = flow(params, moments)
        second = after(0.5, first)
        third = after(0.5, second)
        fourth = after(1.0, third)
        mean = jax.tree.map(lambda a, b, c, d: -(a + 2 * b + 2 * c + d) / 6, first, second, third, fourth)
        return self.objective(params, batch, world, key), mean

    def watch(self, state) -> Record:
        """The error, the part of the best map learned along each eigenvector, |v| of each head, and |cos| of its keys with each
        eigenvector."""
        matrices = state.params.matrices
        along = jnp.linalg.norm(matrices, axis=2)
        return {
            "error": 2 * state.fit.loss,
            "learned": self._learned(state.params),
            "size": jnp.abs(state.params.value),
            "alignment": along / jnp.maximum(jnp.linalg.norm(along, axis=1, keepdims=True), 1e-300),
        }

    def record(self, state) -> Record:
        """As `watch`, at the end; the learned map A; the largest change of what the flow conserves."""
        drift = jnp.max(jnp.abs(state.params.balance - state.world.balance))
        return {**self.watch(state), "matrix": learned_map(state.params), "drift": drift}

    def track(self, state) -> Tracks:
        """The first step at which half of each eigenvector is learned, and half of all on average."""
        learned = self._learned(state.params)
        return Tracks(first={"time": learned >= 0.5, "half": jnp.mean(learned) >= 0.5})

    def _learned(self, weights: Weights):
        own = self.data.eigenvalues
        best = 1 / (own * (1 + (1 + jnp.sum(own) / own) / self.data.context))
        return jnp.diagonal(learned_map(weights)) / best
