"""Linear attention: `yhat = sum_i v_i beta^T U_i x_q` (merged), or with `U_i = sum_r k_ir q_ir^T` (separate, of rank R).

Either is `beta^T A x_q` with `A = sum_i v_i U_i`, so the loss is a quadratic form in A: `L(A) = E y_q^2 - 2 <A, E y_q z> + <A, E[z z^T] A>`.
"""  # noqa: E501

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from .data import Moments


class Merged(NamedTuple):
    """Heads with keys and queries in one matrix (6)."""

    value: Float[Array, " heads"]
    matrix: Float[Array, "heads dim dim"]

    @property
    def matrices(self) -> Float[Array, "heads dim dim"]:
        return self.matrix

    def flow(self, g: Float[Array, "dim dim"]) -> "Merged":
        """(8): `tau v_i' = <U_i, G>`, `tau U_i' = v_i G`."""
        return Merged(jnp.sum(self.matrix * g, axis=(1, 2)), self.value[:, None, None] * g)

    @property
    def balance(self) -> Float[Array, "heads kinds"]:
        """What gradient flow conserves: `v_i^2 - |U_i|^2`."""
        return (self.value**2 - jnp.sum(self.matrix**2, axis=(1, 2)))[:, None]


class Separate(NamedTuple):
    """Heads of rank R with keys and queries apart."""

    value: Float[Array, " heads"]
    key: Float[Array, "heads rank dim"]
    query: Float[Array, "heads rank dim"]

    @property
    def matrices(self) -> Float[Array, "heads dim dim"]:
        return jnp.sum(self.key[..., :, None] * self.query[..., None, :], axis=1)

    def flow(self, g: Float[Array, "dim dim"]) -> "Separate":
        """(14): `tau v_i' = sum_r k_ir.G q_ir`, `tau k_ir' = v_i G q_ir`, `tau q_ir' = v_i G^T k_ir`."""
        value = self.value[:, None, None]
        pulled = jnp.sum(g * self.query[..., None, :], axis=3)
        pushed = jnp.sum(g * self.key[..., :, None], axis=2)
        return Separate(jnp.sum(self.key * pulled, axis=(1, 2)), value * pulled, value * pushed)

    @property
    def balance(self) -> Float[Array, "heads kinds"]:
        """What gradient flow conserves: `v_i^2 - sum_r |k_ir|^2`, and `|k_ir|^2 - |q_ir|^2` for each r."""
        keys, queries = jnp.sum(self.key**2, axis=2), jnp.sum(self.query**2, axis=2)
        return jnp.concatenate([(self.value**2 - jnp.sum(keys, axis=1))[:, None], keys - queries], axis=1)


Weights = Merged | Separate


def learned_map(weights: Weights) -> Float[Array, "dim dim"]:
    return jnp.sum(weights.value[:, None, None] * weights.matrices, axis=0)


def loss(weights: Weights, moments: Moments) -> Float[Array, ""]:
    """The mean square error over the prompts that have these moments."""
    a = learned_map(weights)
    return moments.target - 2 * jnp.sum(a * moments.cross) + a.ravel() @ moments.square @ a.ravel()


def flow(weights: Weights, moments: Moments) -> Weights:
    """Gradient flow (5), `tau W' = -(1/2) dL/dW`, with `G = E y_q z - E[z z^T] A`."""
    a = learned_map(weights)
    return weights.flow(moments.cross - (moments.square @ a.ravel()).reshape(a.shape))


def answer(weights: Weights, tokens: Float[Array, "tokens width"]) -> Float[Array, ""]:
    """The answer of the attention layer itself to one prompt: rows (x_n, y_n), the last one (x_q, 0)."""
    inputs, answers = tokens[:, :-1], tokens[:, -1]
    scores = jnp.einsum("na,iab,b->in", inputs, weights.matrices, inputs[-1])
    return weights.value @ scores @ answers / (len(tokens) - 1)
