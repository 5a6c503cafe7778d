"""The rival's training: a two-layer convolutional network with ReLU^q filters on the same data (Cao et al. 2022)."""

from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import Descent, Draw, Learner, Learning, logistic_loss
from lemmata.own import require_signs
from lemmata.studies.benign_overfitting.data import Data, draw, gather
from lemmata.studies.benign_overfitting.network import Filters
from lemmata.trial import Key, Precision, fixed

Samples = tuple[Array, Array]
"""Tokens (samples, tokens, dim) and labels."""


class Convolution(Learner):
    """Filters trained by gradient descent on the logistic loss; the test set is the world that training does not see."""

    name: ClassVar = "benign-overfitting/convolution"
    paired: ClassVar = ("descent",)

    data: Data = Data()
    network: Filters = Filters()
    descent: Descent = Descent()
    test_points: int = fixed(default=100)
    precision: Precision = fixed(default="float32")

    @property
    def samples(self) -> int:
        return self.data.samples

    def draw(self, key: Key) -> Draw:
        train, test, weights = jax.random.split(key, 3)
        return Draw(
            self.network.draw(weights, self.data.dim, self.precision),
            self._sampled(train, self.data.samples),
            self._sampled(test, self.test_points),
        )

    def check_own(self, data: Samples | None, weights: Array | None) -> None:
        if data is not None:
            require_signs("data[1] (labels)", data[1])

    def _sampled(self, key: Key, count: int) -> Samples:
        rows, labels = draw(self.data, key, count, self.precision)
        return gather(rows, labels), labels

    def margins(self, params: Array, samples: Samples) -> Float[Array, " samples"]:
        tokens, labels = samples
        return labels * self.network.output(params, tokens)

    def objective(self, params: Array, batch: Samples, world: Samples, key: Key) -> Float[Array, ""]:
        return jnp.mean(logistic_loss(self.margins(params, batch)))

    def watch(self, state: Learning) -> dict[str, Array]:
        return {"train_loss": self.loss(state)}

    def record(self, state: Learning) -> dict[str, Array]:
        """The test loss; `signal_wins`: in how many samples a filter of the right class sees more of the signal than any
        sees of the noise."""
        fresh = self.margins(state.params, state.world)
        tokens, labels = state.data
        own = state.params[jnp.where(labels > 0, 0, 1)]
        seen = jnp.max(jnp.einsum("nrd,nid->nri", own, tokens), axis=1)
        return {
            "test_loss": jnp.mean(logistic_loss(fresh)),
            "test_error": jnp.mean(fresh <= 0, dtype=fresh.dtype),
            "signal_wins": jnp.mean(seen[:, 0] > jnp.max(seen[:, 1:], axis=1), dtype=seen.dtype),
        }
