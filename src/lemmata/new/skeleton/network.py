"""The function that is descended: `L(x) = h/2 |x|^2`."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def height(curvature: float | Array, x: Float[Array, " dim"]) -> Float[Array, ""]:
    return 0.5 * curvature * jnp.sum(x**2)
