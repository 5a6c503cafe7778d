"""What the distributions themselves say: label noise, linear models, how well planted groups hide.

`D` patches in groups of `C` (so `L = D / C` groups), spurious rate `q`.
"""

import math

import numpy as np
import scipy


def law_of_sum(terms: int, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities of the sum of `terms` independent spurious coefficients."""
    law, base, left = np.ones(1), np.array([q / 2, 1 - q, q / 2]), terms
    while left:
        if left & 1:
            law = scipy.signal.fftconvolve(law, base) if terms > 2000 else np.convolve(law, base)
        left >>= 1
        if left:
            base = scipy.signal.fftconvolve(base, base) if terms > 2000 else np.convolve(base, base)
    return np.arange(-terms, terms + 1), np.maximum(law, 0)


def label_noise(D: int, C: int, q: float, threshold: float = 0.9) -> float:
    """`P[y f*(X) <= 0]`: how often the labelling function itself is wrong.

    Exact law of the thresholded group sums; about `(L - 1) P[sum of C < -0.9 C]` when small.
    """
    values, law = law_of_sum(C, q)
    kept = np.where(np.abs(values) > threshold * C, law, 0)
    kept[C] += 1 - kept.sum()
    total = np.ones(1)
    for _ in range(D // C - 1):
        total = np.convolve(total, kept)
    reach = C * (D // C - 1)
    return float(total[np.arange(-reach, reach + 1) + C <= 0].sum())


def label_noise_bound(D: int, C: int, q: float, threshold: float = 0.9) -> float:
    """The union bound on `label_noise`: `(L - 1) P[sum of C coefficients < -0.9 C]`."""
    values, law = law_of_sum(C, q)
    return float((D // C - 1) * law[values < -threshold * C].sum())


def bayes_error(D: int, C: int, q: float) -> float:
    """Error of the best predictor that knows the partition.

    With `a` groups all +1 and `b` all -1 the odds of the label are `a : b`; the smaller one is lost.
    """
    others, full = D // C - 1, (q / 2) ** C
    plus = np.arange(others + 1)[:, None]
    minus = np.arange(others + 1)[None, :]
    rest = 1 - np.minimum(plus / np.maximum(others, 1), 1)
    law = scipy.stats.binom.pmf(plus, others, full) * scipy.stats.binom.pmf(
        minus, np.maximum(others - plus, 0), full / (1 - full)
    )
    wrong = np.where(plus + 1 < minus, 1.0, np.where(plus + 1 == minus, 0.5, 0.0))
    return float(np.sum(np.where(rest >= 0, law * wrong, 0)))


def glm_error(D: int, C: int, q: float) -> float:
    """Error of `sign(sum_j <w*, X_j>)`: `P[C + T < 0] + P[C + T = 0] / 2` with `T` the sum of D - C coefficients."""
    below, upto = plateau(D, C, q)
    return (below + upto) / 2


def plateau(D: int, C: int, q: float) -> tuple[float, float]:
    """`(P[total < 0], P[total <= 0])`: between the first two events the error stays in this range."""
    values, law = law_of_sum(D - C, q)
    return float(law[values + C < 0].sum()), float(law[values + C <= 0].sum())


def glm_error_normal(D: int, C: int, q: float) -> float:
    """The same by the normal law: `Phi(-C / sqrt(q (D - C)))`."""
    return float(scipy.special.ndtr(-C / math.sqrt(q * (D - C)))) if q > 0 else 0.0


def glm_best_error(D: int, C: int, q: float) -> float:
    """Least error over all links of equal-weight linear models: `(1 - TV(law(C + T), law(-C + T))) / 2`."""
    _, law = law_of_sum(D - C, q)
    up, down = np.concatenate([np.zeros(2 * C), law]), np.concatenate([law, np.zeros(2 * C)])
    return float(0.5 * (1 - 0.5 * np.abs(up - down).sum()))


GLM_FLOOR = 1 / 8
"""Theorem 3.1: no generalised linear model has smaller error."""


def spurious_margin(D: int, C: int, q: float) -> float:
    """`q (D - C) / (0.756 C^2)`; at 1 and above linear models err at least 1/8 (the implementable Assumption 2).

    `C / sqrt(q (D - C)) <= Phi^{-1}(7/8) = 1.150`, and `1.150^{-2} = 0.756`.
    """
    return q * (D - C) / (0.756 * C**2)


def spurious_rate_for(ratio: float, D: int, C: int) -> float:
    """The rate at which `q (D - C) / C^2` has this value."""
    return ratio * C**2 / (D - C)


def planted_distance(m: int, C: int, q: float) -> float:
    """Exact total variation between D1 and D2 on {-1, 0, 1}^m (proof of Theorem 5.2).

    The likelihood ratio is `binom(n, C) / binom(m, C) (2/q)^C` where `n ~ Binomial(m, q/2)` counts the +1's.
    """
    n = np.arange(m + 1)
    ratio = _planted_ratio(n, m, C, q)
    return float(0.5 * np.sum(scipy.stats.binom.pmf(n, m, q / 2) * np.abs(ratio - 1)))


def planted_signs_distance(m: int, C: int, q: float) -> float:
    """Exact total variation between planting +1's and planting -1's: at most twice `planted_distance`."""
    plus, minus = np.meshgrid(np.arange(m + 1), np.arange(m + 1), indexing="ij")
    law = (
        scipy.stats.binom.pmf(plus, m, q / 2)
        * scipy.stats.binom.pmf(minus, np.maximum(m - plus, 0), q / (2 - q))
        * (plus + minus <= m)
    )
    gap = np.abs(_planted_ratio(plus, m, C, q) - _planted_ratio(minus, m, C, q))
    return float(0.5 * np.sum(law * gap))


def _planted_ratio(n: np.ndarray, m: int, C: int, q: float) -> np.ndarray:
    steps = np.arange(C)
    return np.prod(np.maximum(n[..., None] - steps, 0) / (m - steps), axis=-1) * (2 / q) ** C


def planted_distance_bound(m: int, C: int, q: float) -> float:
    """Chi-square bound on it: `sqrt(E[(2/q)^H] - 1) / 2` with `H` hypergeometric (m, C marked, C drawn)."""
    h = np.arange(C + 1)
    return float(0.5 * math.sqrt(np.sum(scipy.stats.hypergeom.pmf(h, m, C, C) * (2 / q) ** h) - 1))


def chance_overlap(D: int, C: int) -> float:
    """Mean share of the top `C` inside the group for logits without any order but the diagonal on top:
    `(1 + (C-1)^2 / (D-1)) / C`."""
    return (1 + (C - 1) ** 2 / (D - 1)) / C


def slot_group_auc(D: int, C: int) -> float:
    """The AUC of the groups for logits that order pairs by slot alone: `(1 - (L-1) / (D-C)) / 2`.

    Pairs of one group never share a slot; of the `D - C` positions outside a group `L - 1` share a given slot and come out
    on top, the others are ties (Figure 2: below 1/2 without any knowledge of the groups, and for nothing but the slots).
    """
    return 0.5 * (1 - (D // C - 1) / (D - C))
