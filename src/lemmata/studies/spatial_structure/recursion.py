"""Population descent as three numbers: the idealised process in the variables of Lemmas 4.1 and 4.2.

Under the population risk the logits keep one value within groups (`gamma`) and one across (`rho`), the diagonal stays
at `beta`, and the value vector stays `alpha w*`. With `f_i = <w*, X_i>` (label +1, signal group first), group sums
`B_i` and total `t`, position `i` pools

    m_i = Lambda f_i + Gamma (B_i - f_i) + Xi (t - B_i),    z_i = D alpha m_i.

Since `sum_i z_i^p` is a polynomial in (Lambda, Gamma, Xi) whose coefficients are sums over positions of powers of
`(f_i, B_i - f_i, t - B_i)`, each draw is kept as these *moments*; a step is two thin matrix-vector products,
there and back.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import brentq

from lemmata.descent import logistic_loss
from lemmata.studies.spatial_structure.data import Structured, three_valued
from lemmata.studies.spatial_structure.network import Shape
from lemmata.trial import Key

Scalar = Float[Array, ""]


class Tied(NamedTuple):
    """The whole state of population descent: `alpha`, `gamma`, `rho`."""

    alignment: Scalar
    same: Scalar
    cross: Scalar


class Scores(NamedTuple):
    """Attention scores of tied logits: `Lambda` on the diagonal, `Gamma` within groups, `Xi` across."""

    self_score: Scalar
    same: Scalar
    cross: Scalar


class Moments(NamedTuple):
    """Draws of the spurious coefficients, as the polynomial coefficients of `sum_i z_i^p` and, below them, of
    `sum_i z_i`: one column a draw, one row a monomial (`monomials`). `signal` sums over the signal group, `other` over
    the rest."""

    signal: Float[Array, "monomials draws"]
    other: Float[Array, "monomials draws"]

    @property
    def whole(self) -> Float[Array, "monomials draws"]:
        return self.signal + self.other


def exponents(degree: int) -> np.ndarray:
    """All `(a, b, c)` with `a + b + c = degree`."""
    return np.array([(a, b, degree - a - b) for a in range(degree + 1) for b in range(degree + 1 - a)])


def monomials(degree: int) -> np.ndarray:
    """The rows of the moments: powers of `(Lambda, Gamma, Xi)` of the given degree, then of degree 1."""
    return np.concatenate([exponents(degree), np.eye(3, dtype=int)])


def tied_scores(
    same: Array,
    cross: Array,
    diagonal: Array | float,
    patches: int,
    size: int,
    temperature: Array | float = 1.0,
) -> Scores:
    """`Lambda, Gamma, Xi`: row-softmax of tied logits."""
    top = jnp.maximum(jnp.maximum(same, cross), diagonal) / temperature
    parts = [jnp.exp(x / temperature - top) for x in (diagonal, same, cross)]
    total = parts[0] + (size - 1) * parts[1] + (patches - size) * parts[2]
    return Scores(*(part / total for part in parts))


def signal_gain(scores: Scores, patches: int, size: int) -> Array:
    """`G = D (Lambda + (C - 1) Gamma)`."""
    return patches * (scores.self_score + (size - 1) * scores.same)


def draw_moments(data: Structured, degree: int, key: Key, count: int, dtype=jnp.float64) -> Moments:
    """Fresh draws, label +1 and the first group signal (no loss of generality: signs and groups are exchangeable)."""
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(count))
    spin = jax.vmap(lambda k: jax.random.uniform(k, (data.group_count, data.group_size), dtype))(keys)
    spurious = three_valued(spin, jnp.asarray(data.spurious_rate, dtype))
    return moments_of(spurious.at[:, 0].set(1.0), degree)


def moments_of(coefficients: Float[Array, "draws groups size"], degree: int) -> Moments:
    """The moments of given coefficients, ordered by group, the signal group first and equal to +1."""
    group_sum = jnp.sum(coefficients, axis=2, keepdims=True)
    total = jnp.sum(group_sum, axis=1, keepdims=True)
    parts = (coefficients, group_sum - coefficients, jnp.broadcast_to(total - group_sum, coefficients.shape))
    signal, other = [], []
    for powers in monomials(degree).tolist():
        ways = math.factorial(sum(powers)) // math.prod(math.factorial(k) for k in powers)
        by_group = ways * jnp.sum(math.prod(x**k for x, k in zip(parts, powers, strict=True)), axis=2)
        signal.append(by_group[:, 0])
        other.append(jnp.sum(by_group[:, 1:], axis=1))
    return Moments(jnp.stack(signal), jnp.stack(other))


def tied_output(tied: Tied, scores: Scores, moments: Array, patches: int, shape: Shape) -> Array:
    """`F` (times the label) on every draw, from the moments."""
    return (tied.alignment * _weights(tied, scores, patches, shape)) @ moments


def _weights(tied: Tied, scores: Scores, patches: int, shape: Shape) -> Array:
    """What multiplies each moment in `F / alpha`: `alpha^(p-1)` or `nu`, times the monomial in `D` times the scores."""
    rows = monomials(shape.degree)
    values = jnp.prod((patches * jnp.stack(scores)) ** rows, axis=1)
    return values * jnp.where(rows.sum(axis=1) > 1, tied.alignment ** (shape.degree - 1), shape.linear)


class Pull(NamedTuple):
    """What moves the three numbers: minus the gradient of the population risk with respect to `alpha`, to one
    same-group entry, and to one cross-group entry."""

    alignment: Scalar
    same: Scalar
    cross: Scalar


class Look(NamedTuple):
    """A step's view of the draws: mean `sg(-yF)` and what moves the numbers."""

    slack: Scalar
    pull: Pull


def look(tied: Tied, moments: Array, diagonal: Array | float, patches: int, size: int, shape: Shape) -> Look:
    """Minus the gradient in the three numbers (Section 4.2 of the derivation: one entry, not the sum of tied ones).

    alpha: E[sum_i w_i m_i],   gamma: alpha Gamma / (tau D (C-1)) E[sum_i w_i ((B_i - f_i) - (C-1) m_i)],
    rho:   alpha Xi / (tau D (D-C)) E[sum_i w_i ((t - B_i) - (D-C) m_i)],   w_i = sg(-F) D act'(z_i)
    """
    scores = tied_scores(tied.same, tied.cross, diagonal, patches, size, shape.temperature)
    slack = jax.nn.sigmoid(-tied_output(tied, scores, moments, patches, shape))
    pull = pull_of(tied, scores, moments @ slack / len(slack), patches, size, shape)
    return Look(jnp.mean(slack), pull)


def pull_of(tied: Tied, scores: Scores, moments: Array, patches: int, size: int, shape: Shape) -> Pull:
    """`Pull` from moments already averaged with the weights `sg(-F)`."""
    rows = monomials(shape.degree)
    counts = np.stack([rows.sum(axis=1), rows[:, 1], rows[:, 2]]).astype(moments.dtype)
    on_alignment, on_same, on_cross = counts @ (moments * _weights(tied, scores, patches, shape))
    step = tied.alignment / shape.temperature / patches
    return Pull(
        alignment=on_alignment,
        same=step * (on_same / (size - 1) - scores.same * on_alignment),
        cross=step * (on_cross / (patches - size) - scores.cross * on_alignment),
    )


def advance_tied(tied: Tied, pull: Pull, rate: Array | float, attention_rate: Array | float) -> Tied:
    """One step: `alpha` with step size `rate`, the logits with `rate * attention_rate`."""
    logit_rate = rate * attention_rate
    return Tied(
        tied.alignment + rate * pull.alignment,
        tied.same + logit_rate * pull.same,
        tied.cross + logit_rate * pull.cross,
    )


def _split(
    tied: Tied, moments: Moments, diagonal: Array | float, patches: int, size: int, shape: Shape
) -> tuple[Pull, Pull]:
    """The pull in two parts: what the signal set gives, and what the rest of the image gives."""
    scores = tied_scores(tied.same, tied.cross, diagonal, patches, size, shape.temperature)
    slack = jax.nn.sigmoid(-tied_output(tied, scores, moments.whole, patches, shape))
    signal, other = (
        pull_of(tied, scores, part @ slack / len(slack), patches, size, shape) for part in moments
    )
    return signal, other


def drives(tied: Tied, moments: Moments, diagonal: Array | float, patches: int, size: int, shape: Shape):
    """The two parts of the pull on `alpha` (GD-alpha): over the signal set (S) and over the rest (N)."""
    signal, other = _split(tied, moments, diagonal, patches, size, shape)
    return signal.alignment, other.alignment


def signal_share(
    tied: Tied, moments: Moments, diagonal: Array | float, patches: int, size: int, shape: Shape
):
    """Which share of the pull on a same-group logit comes from images in which that group is the signal group.

    This is the key approximation of Lemma G.1: only that event (a) matters.
    """
    signal, other = _split(tied, moments, diagonal, patches, size, shape)
    return signal.same / (signal.same + other.same)


def sigmoid_threshold(
    moments: Moments, diagonal: float, patches: int, size: int, shape: Shape, slack: float = 0.4
) -> float:
    """Lemma D.1 by bisection: the alpha at which the mean `sg(-yF)` has fallen to `slack`, at gamma = rho = 0."""

    def distance(log_alpha: float) -> float:
        tied = Tied(jnp.exp(jnp.asarray(log_alpha)), jnp.zeros(()), jnp.zeros(()))
        return float(look(tied, moments.whole, diagonal, patches, size, shape).slack) - slack

    crossing = brentq(distance, -12.0, 2.0, xtol=1e-4)
    return math.exp(crossing)  # pyright: ignore[reportArgumentType]


def tied_risk(margin: Float[Array, " draws"]) -> dict[str, Array]:
    """Loss, error (`F <= 0` counts as wrong) and ties of margins on draws."""
    tie = jnp.abs(margin) <= 1e-9 * jnp.max(jnp.abs(margin))
    return {
        "loss": jnp.mean(logistic_loss(margin)),
        "error": jnp.mean((margin <= 0) | tie, dtype=margin.dtype),
        "ties": jnp.mean(tie, dtype=margin.dtype),
    }
