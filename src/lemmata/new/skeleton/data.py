"""The data: where the bowl is entered."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.trial import Key, fixed


class Bowl(eqx.Module):
    """A starting point drawn from a normal law; curvature `h`."""

    curvature: float = 1.0
    dim: int = fixed(default=3)

    def __check_init__(self):
        require(self.curvature > 0, f"a bowl has positive curvature, not {self.curvature}.")
        require(self.dim >= 1, f"a bowl has at least one dimension, not {self.dim}.")

    def draw(self, key: Key) -> Float[Array, " dim"]:
        return jax.random.normal(key, (self.dim,))
