"""One training: gradient flow on the loss over all prompts, in small steps."""

from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp

from lemmata.descent import Descent, Draw, Learner
from lemmata.trial import Key, Precision, Record, Tracks, fixed

from .data import Regression
from .network import Heads, loss, matrix


class Population(Learner):
    """`tau dW/dt = -(1/2) dL/dW` (5) by Euler steps of length `learning_rate`, in units of tau.

    `init`: the standard deviation of every weight at the start.
    """

    name: ClassVar[str] = "linear-attention/population"
    paired: ClassVar[tuple[str, ...]] = ("descent",)
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"learned": ("eigenvector",), "sizes": ("head",)}

    data: Regression = Regression()
    init: float = 0.02
    heads: int = fixed(default=5)
    descent: Descent = Descent(learning_rate=0.5, stop="cap", steps=80_000, logs=400, spacing="log")
    precision: Precision = fixed(default="float64")

    def draw(self, key: Key) -> Draw:
        shapes = ((self.heads,), (self.heads, self.data.dim), (self.heads, self.data.dim))
        keys = jax.random.split(key, 3)
        weights = [self.init * jax.random.normal(one, shape) for one, shape in zip(keys, shapes, strict=True)]
        return Draw(Heads(*weights), None)

    def objective(self, params, batch, world, key):
        return loss(params, self.data.eigenvalues, self.data.context) / 2

    def watch(self, state) -> Record:
        return {"error": 2 * state.fit.loss}

    def record(self, state) -> Record:
        """The error at the end, the part of the best linear map learned along each eigenvector, and |v| of each head.

        Heads are sorted by size, the largest first.
        """
        sizes = -jnp.sort(-jnp.abs(state.params.value))
        return {"error": 2 * state.fit.loss, "learned": self._learned(state.params), "sizes": sizes}

    def track(self, state) -> Tracks:
        """The steps at which half of each eigenvector is learned first."""
        half = self._learned(state.params) >= 0.5
        return Tracks(first={f"time_{d + 1}": half[d] for d in range(self.data.dim)})

    def _learned(self, params: Heads):
        own = self.data.eigenvalues
        best = 1 / (own * (1 + (1 + jnp.sum(own) / own) / self.data.context))
        return jnp.diagonal(matrix(params)) / best
