"""Draws initial models with a given error, and measures the error of given weights.

The matrices map patterns nearly to orthonormal images. The votes are frozen.
"""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.parts.patterns import flat
from lemmata.parts.votes import Weights
from lemmata.trial import Key

Initial = Literal["perturbed", "shrink", "amplified_complement", "literal", "literal_sqrt"]


def carrier(
    initial: Initial,
    frame: Float[Array, "out dim"],
    error: float | Array,
    base: Float[Array, "pattern dim"],
    aim: Float[Array, "pattern out"],
    noise_std: float | Array,
) -> Float[Array, "out dim"]:
    """Return a matrix near `frame` (orthonormal columns) that maps the orthonormal patterns `base` with a given error.

    "perturbed": the image of pattern j is moved by a vector of length `error` along `aim[j]`.
    "shrink": the frame is scaled by one minus the error.
    "amplified_complement": patterns are mapped exactly, and Gaussian token noise of standard deviation `noise_std` outside
        their span is amplified to that length.
    "literal", "literal_sqrt": the frame is scaled by (error/noise_std)^2 or error/noise_std. The papers print these, but they
        break their own assumption."""
    if initial == "perturbed":
        return frame + error * push(aim, base)
    if initial == "shrink":
        return (1 - error) * frame
    if initial == "amplified_complement":
        inside, whole = base.T @ base, jnp.eye(base.shape[1], dtype=base.dtype)
        length = noise_std * jnp.sqrt(jnp.asarray(base.shape[1] - base.shape[0], base.dtype))
        return frame @ (inside + error / length * (whole - inside))
    return (error / noise_std) ** (2 if initial == "literal" else 1) * frame


def push(aim: Float[Array, "pattern out"], base: Float[Array, "pattern dim"]) -> Float[Array, "out dim"]:
    """Return the matrix that maps pattern j to the unit vector along `aim[j]`, and the complement of all patterns to zero."""
    return (aim / jnp.linalg.norm(aim, axis=-1, keepdims=True)).T @ base


def turned(normal: Float[Array, "out out"], dim: int) -> Float[Array, "out dim"]:
    """Return a random frame: orthonormal columns from a square matrix of normal numbers."""
    return jnp.linalg.qr(normal)[0][:, :dim]


def unit_spectral(matrix: Float[Array, "out dim"]) -> Float[Array, "out dim"]:
    """Scale the matrix to spectral norm one if its norm is larger."""
    return matrix / jnp.maximum(1, jnp.linalg.norm(matrix, 2))


def signs(key: Key, shape: tuple[int, ...], size: float | Array, dtype: Any) -> Array:
    """Draw frozen output weights: ± `size`, each sign with probability one half."""
    return flat(jax.random.rademacher, key, shape, dtype) * size


class InitialErrors(NamedTuple):
    """The errors with which weights satisfy the assumption on the initial model.

    `value`: sigma, the error of the values.
    `key_query`: delta, the error of keys and queries.
    `spectral`: the largest spectral norm of a matrix.
    """

    value: Float[Array, ""]
    key_query: Float[Array, ""]
    spectral: Float[Array, ""]


def initial_errors(
    weights: Weights, base: Float[Array, "pattern dim"], discriminative: int = 2, skip: bool = False
) -> InitialErrors:
    """Return sigma and delta with which the assumption on the initial model holds, as the worst over patterns and heads.

    There are orthonormal p_j, q_j, r_j within sigma of W_V mu_j and delta of W_K mu_j and W_Q mu_j. The orthonormal systems are
    polar factors, the closest ones in the Frobenius norm. The key and query systems share their discriminative vectors
    (q_1 = r_1, q_2 = r_2) exactly. So the errors are certificates: with these systems the assumption holds."""

    def head(query: Array, key: Array, value: Array) -> tuple[Array, Array, Array]:
        carried = value + jnp.eye(*value.shape, dtype=value.dtype) if skip else value
        sigma = _off(carried @ base.T, polar(carried @ base.T))
        keys, queries = key @ base.T, query @ base.T
        shared = polar((keys[:, :discriminative] + queries[:, :discriminative]) / 2)
        delta = jnp.maximum(_off(keys, _complete(shared, keys)), _off(queries, _complete(shared, queries)))
        return sigma, delta, jnp.stack([jnp.linalg.norm(w, 2) for w in (query, key, value)]).max()

    sigma, delta, spectral = jax.vmap(head)(weights.query, weights.key, weights.value)
    return InitialErrors(sigma.max(), delta.max(), spectral.max())


def polar(columns: Array) -> Array:
    """Return the closest orthonormal system.

    It is a sum, because LLVM takes 20 GB to compile the product `left @ right` of 20 by 15 on one thread."""
    left, _, right = jnp.linalg.svd(columns, full_matrices=False)
    return (left[:, :, None] * right).sum(1)


def _complete(shared: Array, columns: Array) -> Array:
    """Return the shared orthonormal columns, then the closest orthonormal columns to the rest in their complement."""
    rest = columns[:, shared.shape[1] :]
    return jnp.concatenate([shared, polar(rest - shared @ (shared.T @ rest))], axis=1)


def _off(columns: Array, target: Array) -> Array:
    return jnp.linalg.norm(columns - target, axis=0).max()
