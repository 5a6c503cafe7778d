"""Measures an attention layer with votes: attention by role, growth along patterns, lucky neurons, open gates, pruning.

Each function takes one sample or one set of weights. A study sums over them.
"""

import math
from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

# Attention -------------------------------------------------------------------------------------------------------------


def paid_by_role(
    attention: Float[Array, "head rows tokens"],
    target: Bool[Array, " tokens"],
    roles: Float[Array, "role rows"],
) -> tuple[Float[Array, " role"], Float[Array, " role"]]:
    """Return the attention on the target tokens, summed over the rows of each role, and the number of these rows.

    The attention is the mean over heads. `roles` says how often a row counts in each role. The ratio of the two sums over
    samples is a mean over rows."""
    paid = jnp.mean(attention @ target.astype(attention.dtype), axis=0)
    return roles @ paid, jnp.sum(roles, axis=1)


def most_attended(
    attention: Float[Array, "head rows tokens"], kept: Float[Array, " tokens"], budget: Int[Array, ""] | int
) -> Bool[Array, " tokens"]:
    """Return the `budget` kept tokens that receive most attention, summed over rows and heads, for pruning of tokens."""
    received = jnp.where(kept > 0, jnp.sum(attention, axis=(0, 1)), -jnp.inf)
    return (jnp.argsort(jnp.argsort(-received)) < budget) & (kept > 0)


# Patterns --------------------------------------------------------------------------------------------------------------


def lengths(matrix: Float[Array, "out dim"], base: Float[Array, "pattern dim"]) -> Float[Array, " pattern"]:
    """Return ||W mu_j|| for every pattern."""
    return jnp.linalg.norm(matrix @ base.T, axis=0)


def cosines(a: Float[Array, "out n"], b: Float[Array, "out n"]) -> Float[Array, " n"]:
    """Return the cosine between corresponding columns, and zero if one of them vanishes."""
    size = jnp.linalg.norm(a, axis=0) * jnp.linalg.norm(b, axis=0)
    return jnp.sum(a * b, axis=0) / jnp.maximum(size, 1e-12)


def directions(columns: Float[Array, "out n"]) -> Float[Array, "out n"]:
    """Scale the columns to unit length."""
    return columns / jnp.linalg.norm(columns, axis=0)


# Neurons ---------------------------------------------------------------------------------------------------------------

Lucky = Literal["angle", "nearest", "nearest_margin", "active"]


def lucky(
    hidden: Float[Array, "out neuron"],
    features: Float[Array, "out pattern"],
    definition: Lucky,
    which: int = 0,
    disorder: float | Array = 0.0,
) -> Bool[Array, " neuron"]:
    """Return which neurons (columns of `hidden`) are lucky for one of the value features (orthonormal columns).

    "angle": the neuron is within the angle `disorder` of the feature.
    "nearest": its inner product with the feature is the largest of all features.
    "nearest_margin": the same, after this product is multiplied by 1 - disorder and the others by 1 + disorder.
    "active": its inner product with the feature is positive.
    """
    along = hidden.T @ features
    own = along[:, which]
    if definition == "active":
        return own > 0
    if definition == "angle":
        return own >= jnp.cos(disorder) * jnp.linalg.norm(hidden, axis=0)
    others = jnp.max(jnp.delete(along, which, axis=1, assume_unique_indices=True), axis=1)
    ratio = (1 - disorder) / (1 + disorder) if definition == "nearest_margin" else 1.0
    return own * ratio > others


def open_gates(
    features: Float[Array, "rows features"],
    hidden: Float[Array, "features neuron"],
    rows: Bool[Array, "group rows"],
    neurons: Bool[Array, "group neuron"],
) -> tuple[Float[Array, " group"], Float[Array, " group"]]:
    """Return how many (row, neuron) gates of each group are open, and how many there are."""
    gate = (features @ hidden > 0).astype(features.dtype)
    rows_in, neurons_in = rows.astype(features.dtype), neurons.astype(features.dtype)
    share = jnp.einsum("gl,lm,gm->g", rows_in, gate, neurons_in)
    return share, jnp.sum(rows_in, axis=1) * jnp.sum(neurons_in, axis=1)


def neuron_sizes(hidden: Float[Array, "features neuron"]) -> Float[Array, " neuron"]:
    """Return the size of every neuron: the norm of its row of W_O, or of W_O W_V if `hidden` is folded."""
    return jnp.linalg.norm(hidden, axis=0)


def smallest(sizes: Float[Array, " neuron"], share: float | Array) -> Bool[Array, " neuron"]:
    """Return the given share of smallest neurons, which pruning by magnitude removes by setting their votes to zero."""
    return jnp.argsort(jnp.argsort(sizes)) < jnp.round(share * sizes.shape[0])


def cap_share(dim: int, angle: float) -> float:
    """Return the share of random directions within `angle` (at most pi/2) of one: 1/2 I_{sin^2 angle}((dim-1)/2, 1/2).

    >>> cap_share(10, math.pi / 2)
    0.5
    """
    from scipy import special

    return 0.5 * float(special.betainc((dim - 1) / 2, 0.5, math.sin(angle) ** 2))
