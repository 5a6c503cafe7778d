"""Theorem 5.3.1 with its conditions, the parameters of Algorithm 2, and the lemmas on signs, coupling and concentration
behind it.

Polynomials whose degree the document leaves open are taken as their argument; constants as 1. Numbers are astronomical at
any size that can be trained, so that margins and ratios tell more than values.
"""

import json
from collections.abc import Sequence
from functools import cache
from math import atan, log, sqrt
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from lemmata.measure.compare import Condition
from lemmata.studies.gcn_sampling.theory import sampling
from lemmata.studies.gcn_sampling.theory.complexity import (
    SIN,
    Smooth,
    model_complexity,
    power_series,
    sample_complexity_norm,
)
from lemmata.studies.gcn_sampling.theory.features import feature_moment
from lemmata.studies.gcn_sampling.trials.draws import drawn
from lemmata.studies.gcn_sampling.trials.training import Training
from lemmata.studies.gcn_sampling.trials.twins import Twins
from lemmata.study import Prediction

Number = float | xr.DataArray
"""A number, or one for every run."""


class Sizes(NamedTuple):
    """What the bounds depend on: |A*|_inf, K, p_1, p_2, delta, N, m, eps_0."""

    norm: float
    outputs: int
    outer: int
    inner: int
    degree: float
    nodes: int
    width: int
    accuracy: float


def label_complexity(
    s: Sizes, outer: Smooth = SIN, inner: Smooth = SIN, accuracy: float | None = None
) -> float:
    """(5.18), constant 1: `eps_0^-2 |A*|^8 K^6 (1 + p_1^4 p_2^5 C_eps(Phi, sqrt(p_2) C_eps(phi, 1)) C_eps(phi, 1) (|A*| + 1)^4)
    (1 + delta)^4 log N log m`. `accuracy` is eps, by default the largest that the theorem allows (`accuracy_needed`). Infinite
    where float64 ends."""
    accuracy = accuracy_needed(s, outer, inner) if accuracy is None else accuracy
    own = model_complexity(inner, 1.0, accuracy)
    whole = model_complexity(outer, sqrt(s.inner) * own, accuracy)
    middle = 1 + float(s.outer) ** 4 * float(s.inner) ** 5 * whole * own * (s.norm + 1) ** 4
    return (
        s.accuracy**-2 * s.norm**8 * s.outputs**6 * middle * (1 + s.degree) ** 4 * log(s.nodes) * log(s.width)
    )


def norm_degree(norm: float) -> tuple[float, float]:
    """The local degree of (5.18) in the norm of A*, between 8 and `8 + 4 x/(1 + x)`: all other sizes and eps kept."""
    return 8.0, 8 + 4 * norm / (1 + norm)


def accuracy_needed(s: Sizes, outer: Smooth = SIN, inner: Smooth = SIN) -> float:
    """`eps < eps_0 / (K p_1 p_2^2 C_s(Phi, p_2 C_s(phi, 1)) C_s(phi, 1) |A*|^2)`, and not above eps_0."""
    own = sample_complexity_norm(inner, 1.0)
    whole = sample_complexity_norm(outer, s.inner * own)
    return s.accuracy / max(s.outputs * s.outer * s.inner**2 * whole * own * s.norm**2, 1.0)


def vanishing_share(degree: float, nodes: int) -> float:
    """`(1 + delta)^4 log N / N`: where it is small, a small share of the labels is enough (remark under the theorem)."""
    return (1 + degree) ** 4 * log(nodes) / nodes


def deviation_of_loss(s: Sizes, labels: int, size: float = 1.0) -> float:
    """`k = |A*|^4 (1 + C_0)^2 K sqrt((1 + delta)^4 log N / |Omega|)` (D.134 to D.138)."""
    return s.norm**4 * (1 + size) ** 2 * s.outputs * sqrt((1 + s.degree) ** 4 * log(s.nodes) / labels)


class Parameters(NamedTuple):
    """Table 5.1 and D.2 (lambda_w with the exponent that follows from tau'_w)."""

    reg_v: float
    reg_w: float
    noise_v: float
    noise_w: float
    end_v: float
    end_w: float
    reach_v: float
    reach_w: float


def parameters(first: int, second: int, accuracy: float, size: float) -> Parameters:
    """lambda_v, lambda_w, sigma_v, sigma_w, tau'_v, tau'_w, tau_v, tau_w for widths m_1 and m_2, eps_0 and C_0."""
    end_v = first ** (0.5 - 0.005) / (sqrt(accuracy) * sqrt(second))
    end_w = size / (accuracy**0.25 * first ** (0.75 - 0.005))
    return Parameters(
        2 / end_v**2, 2 / end_w**4, second**-0.51, first**-0.99, end_v, end_w,
        first ** (0.5 - 0.001) / sqrt(second), first ** -(0.75 - 0.01),
    )  # fmt: skip


def reach_margin(first: int, second: int, accuracy: float) -> float:
    """`tau_v / tau'_v = sqrt(eps_0) m_1^0.004`: the table wants it large, which takes m_1 above `eps_0^-125`."""
    found = parameters(first, second, accuracy, 1.0)
    return found.reach_v / found.end_v


# Signs and coupling ------------------------------------------------------------------------------------------------------


def overtaken_chance(noise: float, width: int) -> float:
    """`P(|a w_0| <= |a w_rho|) = (2/pi) arctan(sigma_w sqrt(m_1))` (D.79), exactly."""
    return 2 / np.pi * atan(noise * sqrt(width))


def flip_chance(noise: float, width: int) -> float:
    """The chance that smoothing turns the sign of a neuron without bias: half of `overtaken_chance`, since the noise must
    also point the other way."""
    return overtaken_chance(noise, width) / 2


def flip_bounds(norm: float, first: int, second: int, p: Parameters) -> tuple[float, float, float]:
    """Lemma D.2.10: signs turned at a node at most, first layer by weights `tau_w^4/5 m_1^6/5`, first layer by noise
    `sigma_w m_1^3/2`, second layer (with the proof's |A|^2), logarithms left out."""
    tw, tv = p.reach_w, p.reach_v
    spread = norm * tv + norm * tw * first**0.25 * (1 + tv)
    deep = second**1.5 * p.noise_v * norm**2 * (1 + tw * first**0.25) + second * norm ** (2 / 3) * spread ** (
        2 / 3
    )
    return tw**0.8 * first**1.2, p.noise_w * first**1.5, deep


def coupling_bound(norm: float, first: int, second: int, tau_w: float, tau_v: float) -> float:
    """Lemma D.2.9: `(tau_v sqrt(m_2/m_1) + m_1^9/5 tau_w^16/5 sqrt(m_2) + tau_w^8/5 m_1^9/10) |A|^3`, logarithms left out."""
    rest = tau_v * sqrt(second / first) + first**1.8 * tau_w**3.2 * sqrt(second) + tau_w**1.6 * first**0.9
    return rest * norm**3


def cross_bound(norm: Number, tau_v: Number) -> Number:
    """Lemma D.2.10 (2): cross terms of random signs are at most `eta |q^T A|_1 |A|^2 tau_v`; eta = 1."""
    return norm**3 * tau_v


def smoothing_bound(
    norm: Number,
    first: Number,
    second: Number,
    noise_w: Number,
    noise_v: Number,
    largest_w: Number,
    largest_v: Number,
) -> Number:
    """Lemma D.2.11: after smoothing frozen signs cost at most eta^2 times
    `|q^T A|_1 |A|^4 (tau_w^2 m_1 / sigma_w + (tau_w^2 + tau_v^2 / m_1) m_2 / sigma_v)`, tau the largest columns of the move."""
    own = largest_w**2 * first / noise_w
    return norm**5 * (own + (largest_w**2 + largest_v**2 / first) * second / noise_v)


def gaussian_bound(first: int, inner: int = 1) -> float:
    """Lemma D.2.6: `sqrt(m_2) r_{n,i}` lies within `p_2^2/3 m_1^-1/6` of a Gaussian (W_2), logarithms left out."""
    return inner ** (2 / 3) * first ** (-1 / 6)


def spread_bound(norm: Number) -> Number:
    """Lemma D.2.6: the part of it that is no feature has at most the size `|A| (1 + |A|)`."""
    return norm * (1 + norm)


def pseudo_width(outer: Smooth, inner: Smooth, norm: float, many: int, accuracy: float, degree: int) -> float:
    """Neurons of the second layer at which the mean over random features in (D.58) has the standard error eps:
    `E h^2 / eps^2` for the function Phi(C' z), `C' = 10 sqrt(p_2) C_eps(phi, |A|) sqrt(|A|^2 + 1)` (D.41), on points of
    length |A| (1 + |A|)."""
    own = 10 * sqrt(many) * model_complexity(inner, norm, accuracy) * sqrt(norm**2 + 1)
    stretched = power_series(*(outer.coefficients(i) * own**i for i in range(degree + 1)))
    return feature_moment(stretched, float(spread_bound(norm)), degree) / accuracy**2


def decay_end(norm: Number, accuracy: float = 0.01, gamma: float = 0.25) -> Number:
    """`|q^T A*|_1 |A*|^4 eps_0 / gamma`, constant 1, OPT = 0: Lemma D.2.13 and (D.117) speak of L' above it."""
    return norm**5 * accuracy / gamma


def curvature_bound(first: int, second: int) -> float:
    """`-(m_1 m_2)^-8`: after each round the Hessian of L' has no eigenvalue below (D.116)."""
    return -((first * second) ** -8.0)


def end_bounds(width: int, accuracy: float, size: float) -> tuple[float, float]:
    """What is learnt has at the end at most the norms `|W_T|_{2,4} <= eps_0^1/4 tau'_w` and `|V_T|_F <= eps_0^1/2 tau'_v`
    (D.126, D.127)."""
    p = parameters(width, width, accuracy, size)
    return accuracy**0.25 * p.end_w, accuracy**0.5 * p.end_v


def output_bound(norm: Number, size: Number) -> Number:
    """Outputs are at most `|A*|^2 (eps_c + C_0)` (D.132), logarithms left out, eps_c = 1."""
    return norm**2 * (1 + size)


def column_norm(matrix: np.ndarray, power: float) -> float:
    """`|W|_{2,p}` over columns (5.1)."""
    return float(np.sum(np.sum(np.asarray(matrix) ** 2, axis=0) ** (power / 2)) ** (1 / power))


# At a trial ------------------------------------------------------------------------------------------------------------


def sizes_of(trial: Training, accuracy: float = 0.01) -> Sizes:
    g = trial.graph
    norm = sampling.row_sum(g.degrees, g.sizes, trial.scaling)
    return Sizes(
        norm,
        g.outputs,
        g.target_width,  # pyright: ignore[reportAttributeAccessIssue]
        g.target_width,  # pyright: ignore[reportAttributeAccessIssue]
        max(g.degrees),
        g.nodes,
        trial.width,
        accuracy,
    )


def largest_row(trial: Training, seed: int = 0) -> float:
    """|A*|_inf of one graph, drawn by NumPy."""
    g = trial.graph
    matrix = drawn(g, np.random.default_rng(seed))  # pyright: ignore[reportArgumentType]
    return sampling.max_row_sum(sampling.effective(matrix, g.group_of, trial.scaling))


def sampling_conditions(trial: Training | Twins) -> list[Condition]:
    """(5.8) and (5.10) with c_1 = 1 and c_1 poly(eps) = 0.01."""
    trial = trial.training if isinstance(trial, Twins) else trial
    g = trial.graph
    rates = sampling.rates_of(sampling.sample_sizes(g.sizes, trial.rates).tolist(), g.sizes)
    scale = sampling.implied_scale_constant(g.degrees, g.sizes, trial.scaling)
    rate = sampling.implied_rate_constant(g.degrees, g.sizes, trial.scaling, rates)
    return [
        Condition("(5.8) p*_l <= c_1/(L psi_l), c_1 = 1", None, 1 / max(scale, 1e-12)),
        Condition("(5.10) S_l/N_l, c_1 poly(eps) = 0.01", None, 0.01 / max(rate, 1e-12)),
    ]


def width_needed(s: Sizes, outer: Smooth = SIN, inner: Smooth = SIN) -> float:
    """(5.17) with poly the product: `C_eps(Phi, C_eps(phi, 1)) p_2 |A*| / eps`, eps as in `label_complexity`."""
    accuracy = accuracy_needed(s, outer, inner)
    if accuracy == 0:
        return np.inf
    own = model_complexity(inner, 1.0, accuracy)
    return model_complexity(outer, own, accuracy) * s.inner * s.norm / accuracy


def theorem_conditions(trial: Training) -> list[Condition]:
    """Theorem 5.3.1 at eps_0 = 0.01 for sine activations, with the target's p_1 and p_2: (5.8), (5.10), (5.17), (5.18), tau_v
    >> tau'_v."""
    s = sizes_of(trial)
    return [
        *sampling_conditions(trial),
        Condition("(5.17) width m", None, trial.width / width_needed(s)),
        Condition("(5.18) labelled nodes", None, trial.labels / label_complexity(s)),
        Condition("Table D.2: tau_v >> tau'_v", None, reach_margin(trial.width, trial.width, s.accuracy)),
    ]


@cache
def measured() -> dict[str, float]:
    """The law of labels as measured on `fig5-1` at the scale quick, and with which error it predicts settings that it was not
    fitted on: `constants.json`, made by `python -m benchmarks.gcn_sampling_constants`."""
    return json.loads(Path(__file__).with_name("constants.json").read_text(encoding="utf-8"))


def labels_needed(norm: float) -> float:
    """Labelled nodes for the normalised error of the measured law, `constant * norm^power`."""
    return measured()["constant"] * norm ** measured()["power"]


def predict(trial: Training) -> tuple[list[Condition], list[Prediction]]:
    """For a degree profile and sampling rates: the norm of A*, admissible p* and rates, labels by the measured law."""
    g, s = trial.graph, sizes_of(trial)
    samples = sampling.sample_sizes(g.sizes, trial.rates)
    rates = sampling.rates_of(samples.tolist(), g.sizes)

    def said(numbers: Sequence[float] | np.ndarray) -> str:
        return ", ".join(f"{x:.4g}" for x in np.asarray(numbers).tolist())

    return theorem_conditions(trial), [
        Prediction("norm of A*, the largest row of a graph drawn", largest_row(trial)),
        Prediction("norm of A*, a typical row of highest degree", s.norm),
        Prediction("norm of A* as printed, without self-loops", sampling.row_sum_printed(g.degrees, g.sizes, trial.scaling)),
        Prediction("dominance psi of the groups", said(sampling.dominance(g.degrees, g.sizes))),
        Prediction("largest admissible p* (c_1 = 1)", said(sampling.max_scaling(g.degrees, g.sizes))),
        Prediction("c_1 that p* takes", sampling.implied_scale_constant(g.degrees, g.sizes, trial.scaling)),
        Prediction("sampled nodes of each group", said(samples)),
        Prediction(
            "c_1 poly(eps) that the rates take", sampling.implied_rate_constant(g.degrees, g.sizes, trial.scaling, rates)
        ),
        Prediction(
            "rates to keep at the same c_1 poly(eps)",
            said(
                sampling.min_rate(
                    g.degrees, g.sizes, trial.scaling,
                    sampling.implied_rate_constant(g.degrees, g.sizes, trial.scaling, rates),
                )
            ),
        ),
        Prediction("mean deviation of a row of A^s, at most, in parts of its sum", 2 * float(np.max(1 - rates))),
        Prediction(
            f"labelled nodes for a normalised error of {measured()['error']:g} (measured at 100 neurons)",
            labels_needed(s.norm),
        ),
        Prediction("the factor by which that missed degree profiles that were left out", measured()["held_out_factor"]),
        Prediction("labelled nodes, (5.18) with constant 1", label_complexity(s)),
    ]  # fmt: skip
