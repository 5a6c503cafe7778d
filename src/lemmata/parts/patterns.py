"""Draws the parts of token data: patterns, noise and roles.

Functions take random numbers as arrays or keys, so that a study decides which quantities share them. Every sample has its own
key (`each`), so that drawing more samples does not change the first ones.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt32

from lemmata.trial import Key

Noise = Literal["gaussian", "truncated_gaussian", "uniform_ball", "sphere"]
Rounding = Literal["alternate", "floor", "ceil"]


def flat(draw: Callable[..., Array], key: Key, shape: tuple[int, ...], dtype: Any) -> Array:
    """Draw random numbers in one row, then reshape. XLA takes ten times longer to compile a draw of the final shape."""
    return draw(key, (math.prod(shape),), dtype).reshape(shape)


def each(sample: Callable[[Key, Array], Any], key: Key, count: int) -> Any:
    """Return `count` stacked samples `sample(key, index)`, each with its own key."""
    return jax.vmap(lambda index: sample(jax.random.fold_in(key, index), index))(jnp.arange(count))


# Patterns --------------------------------------------------------------------------------------------------------------


def orthonormal(key: Key, count: int, dim: int, dtype: Any) -> Float[Array, "count dim"]:
    """Draw orthonormal rows in random directions."""
    return jnp.linalg.qr(flat(jax.random.normal, key, (dim, dim), dtype))[0].T[:count]


def pattern_sets(
    key: Key, count: int, dim: int, dtype: Any, members: int = 1, spread: float | Array = 0.5
) -> Float[Array, "count members dim"]:
    """Draw sets of unit patterns.

    The members of a set lie on an arc whose ends are `spread` apart, in a plane that is orthogonal to all other sets. Sets of
    one member are orthonormal patterns."""
    frame = orthonormal(key, count if members == 1 else 2 * count, dim, dtype)
    centre = frame[:count, None]
    if members == 1:
        return centre
    half = jnp.arcsin(jnp.asarray(spread, dtype) / 2)
    angle = jnp.linspace(-half, half, members).astype(dtype)[None, :, None]
    return jnp.cos(angle) * centre + jnp.sin(angle) * frame[count:, None]


def outside(vectors: Float[Array, "*n dim"], basis: Float[Array, "count dim"]) -> Float[Array, "*n dim"]:
    """Return the component of vectors orthogonal to some orthonormal rows: noise without any pattern."""
    return vectors - (vectors @ basis.T) @ basis


# Noise -----------------------------------------------------------------------------------------------------------------


def noise(
    law: Noise, normal: Float[Array, "*n dim"], std: float | Array, radius: float | Array
) -> Float[Array, "*n dim"]:
    """Transform standard normal vectors to a noise law.

    The laws: Gaussian with standard deviation `std` per coordinate; the same, truncated to norm at most `radius`; uniform in
    the ball, or on the sphere, of that radius."""
    along = normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)
    if law == "gaussian":
        return std * normal
    if law == "truncated_gaussian":
        # Each coordinate is cut where the corner of the cube touches the ball.
        return std * _truncated(normal, radius / math.sqrt(normal.shape[-1]) / std)
    return radius * along * (_ball_radius(normal) if law == "uniform_ball" else 1)


def _truncated(normal: Array, edge: Array | float) -> Array:
    """Transform a standard normal number monotonically to one that is truncated at ± edge."""
    inside = jnp.abs(jax.scipy.special.ndtr(normal) - 0.5) * 2 * (jax.scipy.special.ndtr(edge) - 0.5)
    return jnp.sign(normal) * jnp.minimum(jax.scipy.special.ndtri(0.5 + inside), edge)


def _ball_radius(normal: Array) -> Array:
    """Return the radius of a uniform point in the unit ball, from the length of a normal vector: P(r <= R) = R^dim."""
    dim = normal.shape[-1]
    return jax.scipy.special.gammainc(dim / 2, jnp.sum(normal**2, axis=-1, keepdims=True) / 2) ** (1 / dim)


# Roles -----------------------------------------------------------------------------------------------------------------


def share_count(
    mean: float | Array, turn: Array | np.ndarray | int, rounding: Rounding
) -> Int[Array | np.ndarray, "*turns"] | int:
    """Return how many tokens of a role the sample number `turn` has, if the role has `mean` tokens on average.

    "alternate" distributes the remainder over the samples, so that the average is exactly `mean` (2.5 tokens: 3, 2, 3, 2, ...).
    An offset of half a token protects integers from rounding errors. NumPy arrays of `turn` give NumPy arrays.
    """
    slack, xp = 1e-4, np if isinstance(turn, np.ndarray) else jnp
    if rounding == "floor":
        return xp.floor(mean + slack).astype(int)
    if rounding == "ceil":
        return xp.ceil(mean - slack).astype(int)
    cycle = turn % 1000  # keeps the products small enough for single precision
    return (xp.floor((cycle + 1) * mean + 0.5) - xp.floor(cycle * mean + 0.5)).astype(int)


def chance_counts(
    chance: Float[Array, " tokens"], fractions: Sequence[float | Array]
) -> tuple[Int[Array, ""], ...]:
    """Return the number of tokens of each role when every token chooses independently, with the given probabilities."""
    below, counts = jnp.zeros((), int), []
    edge: float | Array = 0.0
    for fraction in fractions:
        edge = edge + fraction
        upto = jnp.sum(chance < edge)
        counts.append(upto - below)
        below = upto
    return tuple(counts)


def blocks(counts: Sequence[int | Array | np.ndarray], tokens: int) -> Int[Array, " tokens"]:
    """Return roles in blocks: the first `counts[0]` tokens have role 0, the next role 1; the rest has role `len(counts)`."""
    place = jnp.arange(tokens)
    ends = jnp.cumsum(jnp.stack([jnp.asarray(count) for count in counts]))
    return jnp.sum(place[:, None] >= ends[None, :], axis=1)


def ranks(values: Float[Array, " n"] | UInt32[Array, " n"]) -> Int[Array, " n"]:
    """Return the rank of every value in increasing order; ties are ordered by index.

    The ranks of uniform numbers are a random order, and `ranks(chance) < count` is a random subset."""
    place = jnp.arange(values.shape[0], dtype=jnp.int32)
    earlier = place[:, None] < place
    before = (values[:, None] < values) | ((values[:, None] == values) & earlier)
    # sums over the first axis, as XLA would sum rows one by one
    return jnp.sum(before, axis=0, dtype=jnp.int32).astype(int)


# Diagnostics -----------------------------------------------------------------------------------------------------------


class Separation(NamedTuple):
    """The largest inner product of tokens of different patterns (lambda), and the smallest of tokens of equal patterns."""

    cross_inner_max: Array
    same_inner_min: Array


def separation(
    tokens: Float[Array, "*n tokens dim"], pattern: Int[Array, "*n tokens"], real: Bool[Array, "*n tokens"]
) -> Separation:
    """Return how well tokens of different patterns are separated. `real` marks the tokens that have a pattern."""
    rows, kind = tokens.reshape(-1, tokens.shape[-1]), pattern.reshape(-1)
    inner = rows @ rows.T
    same = kind[:, None] == kind[None, :]
    both = real.reshape(-1)[:, None] & real.reshape(-1)[None, :]
    return Separation(
        jnp.max(jnp.where(both & ~same, inner, -jnp.inf)), jnp.min(jnp.where(both & same, inner, jnp.inf))
    )
