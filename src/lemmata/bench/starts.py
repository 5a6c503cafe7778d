"""Initial models of a given error: matrices that carry patterns nearly to orthonormal images, frozen votes, and a
check of how large the error of given weights is."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.bench.patterns import flat
from lemmata.bench.votes import Weights
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
    """A matrix close to `frame` (orthonormal columns) that carries the orthonormal patterns `base` to their images up
    to `error`.

    "perturbed" moves the image of pattern j by a vector of length `error` along `aim[j]`; "shrink" scales by one
    minus the error; "amplified_complement" carries patterns exactly and blows up Gaussian token noise of scale
    `noise_std` outside their span to that length; "literal" and "literal_sqrt" are scalings by (error/noise_std)^2
    and error/noise_std, which the papers print and which break their own assumption."""
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
    """A matrix that sends pattern j to the unit vector along `aim[j]`, and what is orthogonal to all patterns to zero."""
    return (aim / jnp.linalg.norm(aim, axis=-1, keepdims=True)).T @ base


def turned(normal: Float[Array, "out out"], dim: int) -> Float[Array, "out dim"]:
    """A random frame: orthonormal columns from a square of normal numbers."""
    return jnp.linalg.qr(normal)[0][:, :dim]


def unit_spectral(matrix: Float[Array, "out dim"]) -> Float[Array, "out dim"]:
    """The matrix scaled down to spectral norm one if it is larger."""
    return matrix / jnp.maximum(1, jnp.linalg.norm(matrix, 2))


def signs(key: Key, shape: tuple[int, ...], size: float | Array, dtype: Any) -> Array:
    """Frozen output weights: ± `size`, each sign with probability one half."""
    return flat(jax.random.rademacher, key, shape, dtype) * size


class InitialErrors(NamedTuple):
    """The smallest errors found with which the weights satisfy the assumption on the initial model, and the largest spectral
    norm."""

    value: Float[Array, ""]
    key_query: Float[Array, ""]
    spectral: Float[Array, ""]


def initial_errors(
    weights: Weights, base: Float[Array, "pattern dim"], discriminative: int = 2, skip: bool = False
) -> InitialErrors:
    """sigma and delta for which there are orthonormal p_j, q_j, r_j within sigma of W_V mu_j and delta of W_K mu_j
    and W_Q mu_j, as the worst over patterns and heads.

    The orthonormal systems are polar factors (the closest orthonormal systems in the Frobenius norm); the key and
    query systems share their discriminative vectors (q_1 = r_1, q_2 = r_2) exactly, so the errors are certificates:
    with these systems the assumption holds at the reported size."""

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
    """The closest orthonormal system. A sum: `left @ right` of 20 by 15 on one thread takes LLVM 20 GB to compile."""
    left, _, right = jnp.linalg.svd(columns, full_matrices=False)
    return (left[:, :, None] * right).sum(1)


def _complete(shared: Array, columns: Array) -> Array:
    """The shared orthonormal columns, then the orthonormal columns closest to the rest in their complement."""
    rest = columns[:, shared.shape[1] :]
    return jnp.concatenate([shared, polar(rest - shared @ (shared.T @ rest))], axis=1)


def _off(columns: Array, target: Array) -> Array:
    return jnp.linalg.norm(columns - target, axis=0).max()
