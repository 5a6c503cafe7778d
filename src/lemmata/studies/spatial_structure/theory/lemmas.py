"""The technical lemmas: inequalities and event probabilities that the proofs stand on, each as a pair of sides."""

import math
from collections.abc import Callable

import numpy as np
import scipy

Numbers = float | np.ndarray

# Which events move the logits (proofs of Lemmas G.1 and G.2) -----------------------------------------------------------


def same_pair_events(D: int, C: int, q: float) -> dict[str, float]:
    """Probabilities of what can happen to a pair `i, j` of one group.

    `a`: it is the signal group; `b`: not, and all coefficients of the group are 0; `c1..`: not, `delta_i = 0`, `k`
    others not; `d`: not, and all are nonzero. The proof leaves out `rest`: `delta_i != 0` but not all of them.
    """
    other = 1 - C / D
    found = {"a": C / D, "b": other * (1 - q) ** C}
    for k in range(1, C):
        found[f"c{k}"] = other * math.comb(C - 1, k) * q**k * (1 - q) ** (C - k)
    return found | {"d": other * q**C, "rest": other * q * (1 - q ** (C - 1))}


def cross_pair_events(D: int, C: int, q: float) -> dict[str, float]:
    """Probabilities of what can happen to a pair `i, j` of two groups.

    `a`, `b`: the group of `i` is signal and `delta_j` is 0, or not. `c`, `d`: the group of `j` is signal and the
    group of `i` is all 0, or has `k >= 1` nonzeros. Neither is signal: `e`, `f` with `delta_j = 0`, `g`, `h` with
    `delta_j != 0`, and the group of `i` all 0 or with `k >= 1` nonzeros (the printed `h` starts at 0, which would
    count `g` twice).
    """
    signal, neither = C / D, 1 - 2 * C / D
    none, some = (1 - q) ** C, [math.comb(C, k) * q**k * (1 - q) ** (C - k) for k in range(1, C + 1)]
    found = {"a": signal * (1 - q), "b": signal * q, "c": signal * none}
    found |= {f"d{k}": signal * x for k, x in enumerate(some, 1)}
    found["e"] = neither * (1 - q) * none
    found |= {f"f{k}": neither * (1 - q) * x for k, x in enumerate(some, 1)}
    found["g"] = neither * q * none
    return found | {f"h{k}": neither * q * x for k, x in enumerate(some, 1)}


def same_pair_orders(D, C, p, alpha, scores, budget) -> dict[str, float]:
    """Orders of `|dL/dA_ij|` in each same-pair event over the common factor `D alpha sg Gamma` (constants 1).

    `budget` is kappa. Only `a` pushes the logit up.
    """
    pooled = (alpha * scores.gain) ** (p - 1)
    far = scores.cross * budget
    return {
        "a": pooled * (D - C) * scores.cross,
        "b": (D * alpha * far) ** (p - 1) * far,
        "c": (D * alpha * ((C - 1) * scores.same + far)) ** (p - 1),
        "d": pooled * (scores.self_score + (C - 1) * scores.same + far + 1),
    }


def cross_pair_orders(D, C, p, alpha, scores, budget) -> dict[str, float]:
    """Orders of `|dL/dA_ij|` in each cross-pair event over the common factor `D alpha sg Xi` (constants 1)."""
    pooled, own = (alpha * scores.gain) ** (p - 1), scores.self_score + (C - 1) * scores.same
    far = scores.cross * budget
    weak = (D * alpha * far) ** (p - 1)
    return {
        "a": pooled * own,
        "b": pooled,
        "c": weak * (far + 1),
        "d": pooled,
        "e": weak * far,
        "f": pooled * own,
        "g": weak * (far + 1),
        "h": pooled,
    }


def pull_by_event(
    labels: np.ndarray,
    coefficients: np.ndarray,
    signal_group: np.ndarray,
    alpha: float,
    scores,
    p: int,
    nu: float = 0.0,
) -> tuple[dict[str, float], dict[str, float]]:
    """What each event adds to the pull on a same-group and on a cross-group logit (temperature 1), by Monte Carlo.

    Images have their positions ordered by group; the pairs are (first, second position) and (first position, first of the
    second group). The parts sum to the pulls on gamma and rho (`recursion.pulled`).
    """
    n, D = coefficients.shape
    C = D // (int(signal_group.max()) + 1)
    group = coefficients.reshape(n, -1, C).sum(axis=2).repeat(C, axis=1)
    total = coefficients.sum(axis=1, keepdims=True)
    pooled = (
        scores.self_score * coefficients
        + scores.same * (group - coefficients)
        + scores.cross * (total - group)
    )
    z = D * alpha * pooled
    slack = labels * scipy.special.expit(-labels * np.sum(z**p + nu * z, axis=1))
    pull = slack * D * (p * z[:, 0] ** (p - 1) + nu) * alpha
    own = np.sum(coefficients[:, :C] != 0, axis=1)
    first, second = coefficients[:, 0] != 0, coefficients[:, C] != 0

    same = pull * scores.same * (coefficients[:, 1] - pooled[:, 0])
    signal = signal_group == 0
    which = np.where(own == 0, "b", np.where(own == C, "d", np.where(first, "rest", "c")))
    cross = pull * scores.cross * (coefficients[:, C] - pooled[:, 0])
    far = np.where(own == 0, "c", "d")
    neither = np.where(second, np.where(own == 0, "g", "h"), np.where(own == 0, "e", "f"))
    other = np.where(signal, np.where(second, "b", "a"), np.where(signal_group == 1, far, neither))
    return _summed(np.where(signal, "a", which), same), _summed(other, cross)


def _summed(events: np.ndarray, values: np.ndarray) -> dict[str, float]:
    return {str(event): float(values[events == event].sum() / len(values)) for event in np.unique(events)}


# Appendix K ------------------------------------------------------------------------------------------------------------


def tensor_power_bound(z0: float, goal: float, low: float, high: float, k: int) -> float:
    """Lemma K.1: `z + low z^k <= z' <= z + high z^k` from `z0` reaches `goal` within
    `3 / (low z0^(k-1)) + (2^(k+1) high / low) ceil(log2(goal / z0))` steps."""
    return 3 / (low * z0 ** (k - 1)) + 2 ** (k + 1) * high / low * math.ceil(math.log2(goal / z0))


def tensor_power_product_printed(
    z0: float, goal: float, low: float, high: float, k: int, extra: int, A: float
) -> float:
    """Lemma K.2 as printed: `prod (1 + A z^(k-1+extra))` until `goal` is at most `(1 + goal^(k-1))^e` with
    `e = 2^(extra+1) high A goal^extra log(goal/z0) / low`.

    The proof drops a term of order `A / low` (display 237), the larger one when `low = high` is small: it is false then."""
    power = 2 ** (extra + 1) * high * A * goal**extra * math.log(goal / z0) / low
    return (1 + goal ** (k - 1)) ** power


def tensor_power_product_bound(goal: float, low: float, high: float, k: int, extra: int, A: float) -> float:
    """Lemma K.2 mended: `exp(A (goal + high goal^k)^extra / (extra low))`.

    Each `z^k` is at most `(z' - z) / low`, so the sum of `A z^(k-1+extra)` is at most `A / low` times the integral of
    `x^(extra-1)` up to the last iterate.
    """
    return math.exp(A * (goal + high * goal**k) ** extra / (extra * low))


def spurious_count_tail(terms: int, q: float, eps: float) -> float:
    """Lemma K.3 (Chernoff): `P[nonzero coefficients >= (1 + eps) q terms] <= exp(-q terms eps^2 / 3)`, eps <= 1."""
    return math.exp(-q * terms * eps**2 / 3)


def group_count_tail(C: int, q: float, k: int) -> float:
    """Lemma K.4: `P[at least k of C coefficients are nonzero] <= 2^C q^k`."""
    return 2**C * q**k


def sigmoid_power_sides(a: Numbers, p: int) -> tuple[Numbers, Numbers, Numbers]:
    """Lemma K.5 with `C- = C+ = a`: lower side, middle, upper side. True only for `a^p` in `SIGMOID_POWER_RANGE`."""
    loss = np.logaddexp(0, -(a**p))
    return 0.1 / a * loss, a ** (p - 1) * scipy.special.expit(-(a**p)), 10 / a * loss


SIGMOID_POWER_RANGE = (0.135, 10.0)
"""Where Lemma K.5 is true, in `a^p`; the paper states no range."""


def sigmoid_over_loss(x: Numbers) -> Numbers:
    """Lemma K.6: `sg(-x) / log(1 + e^-x)` for x > 0; the paper has [0.1, 10], the truth is [0.7213, 1]."""
    return scipy.special.expit(-x) / np.logaddexp(0, -x)


SIGMOID_OVER_LOSS = (0.5 / math.log(2), 1.0)


def log_product_sides(x: Numbers, y: Numbers) -> tuple[Numbers, Numbers]:
    """Lemma K.7: `log(1 + x y) <= (1 + y) log(1 + x)` for positive x, y."""
    return np.log1p(x * y), (1 + y) * np.log1p(x)


# Smoothness (Appendix E) -----------------------------------------------------------------------------------------------


def sigmoid_lipschitz_sides(x: np.ndarray, y: np.ndarray, p: int) -> tuple[float, float]:
    """Lemma E.12: `|psi(x) - psi(y)| <= p |x - y|_1` for `psi(x) = sg(-sum x_m^p)` where every `x_m^p >= -1/D`."""
    psi: Callable[[np.ndarray], float] = lambda v: float(scipy.special.expit(-np.sum(v**p)))  # noqa: E731
    return abs(psi(x) - psi(y)), float(p * np.abs(x - y).sum())


def pooled_lipschitz_sides(x: np.ndarray, y: np.ndarray, c: np.ndarray, p: int) -> tuple[float, float]:
    """Lemma E.16: `|psi(x) - psi(y)| <= psi(x) (e^(2 (p-1) max|x-y|) - 1)` for `psi(x) = (D sum softmax(x)_m c_m)^(p-1)`.

    Needs all `c_m` of one sign, which the paper does not say.
    """
    left, right = ((len(c) * scipy.special.softmax(v) @ c) ** (p - 1) for v in (x, y))
    return abs(left - right), float(left * math.expm1(2 * (p - 1) * np.abs(x - y).max()))


def softmax_lipschitz_sides(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lemma E.17: `|softmax(a) - softmax(b)| <= (e^(2 max|a-b|) - 1) softmax(a)`, entry by entry."""
    one, other = scipy.special.softmax(a), scipy.special.softmax(b)
    return np.abs(one - other), math.expm1(2 * np.abs(a - b).max()) * one
