"""In-context linear regression: `x ~ N(0, Lambda)`, `w ~ N(0, I)`, `y_n = w.x_n`; only the moments are needed here."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.trial import fixed


class Regression(eqx.Module):
    """The law of the prompts: `Lambda = diag(D, D - 1, ..., 1)^power / trace`, and `context` samples before the query.

    Start and loss do not change under rotations, so a diagonal covariance stands for all. `power = 0` is white data.
    """

    context: int = 31
    power: float = 1.0
    dim: int = fixed(default=4)

    def __check_init__(self):
        require(self.dim >= 1, f"a token has at least one dimension, not {self.dim}.")
        require(self.context >= 1, f"a prompt has at least one sample, not {self.context}.")

    @property
    def eigenvalues(self) -> Float[Array, " dim"]:
        """The eigenvalues of Lambda, the largest first."""
        powers = jnp.arange(self.dim, 0, -1) ** jnp.asarray(self.power)
        return powers / jnp.sum(powers)
