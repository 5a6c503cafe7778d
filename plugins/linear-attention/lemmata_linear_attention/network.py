"""`yhat = sum_i v_i (beta.k_i) (q_i.x_q)`, a function of the prompt through `A = sum_i v_i k_i q_i^T` alone.

`L(A) = tr Lambda - 2 tr(A Lambda^2) + tr(A^T E[Lhat^2] A Lambda)`, with
`E[Lhat^2] = Lambda^2 + (Lambda + tr(Lambda) I) Lambda / N` (15).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float


class Heads(NamedTuple):
    """Heads of rank one: values, keys and queries."""

    value: Float[Array, " heads"]
    key: Float[Array, "heads dim"]
    query: Float[Array, "heads dim"]


def matrix(heads: Heads) -> Float[Array, "dim dim"]:
    return jnp.einsum("i,ia,ib->ab", heads.value, heads.key, heads.query)


def loss(heads: Heads, eigenvalues: Float[Array, " dim"], context: float | Array) -> Float[Array, ""]:
    """The mean square error over prompts, for a diagonal Lambda."""
    a, trace = matrix(heads), jnp.sum(eigenvalues)
    moment = eigenvalues**2 + (eigenvalues + trace) * eigenvalues / context
    quadratic = jnp.sum(a**2 * moment[:, None] * eigenvalues[None, :])
    return trace - 2 * jnp.sum(jnp.diagonal(a) * eigenvalues**2) + quadratic
