"""What the paper predicts, as functions of its own numbers. Technical lemmas are in `lemmas.py`.

`D` patches in groups of `C` (so `L = D / C` groups), dimension `d`, spurious rate `q`, degree `p`, linear coefficient
`nu`, frozen diagonal `beta`, step size `eta`. Statements that hide constants are given with every hidden constant (and
polylogarithm) set to 1 and say so; where the printed form does not follow from its own proof, the printed and the
corrected form stand side by side.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad
from scipy.stats import binom, hypergeom, norm

# The data --------------------------------------------------------------------------------------------------------------


def law_of_sum(terms: int, q: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities of the sum of `terms` independent spurious coefficients."""
    law, base, left = np.ones(1), np.array([q / 2, 1 - q, q / 2]), terms
    while left:
        if left & 1:
            law = np.convolve(law, base)
        base, left = np.convolve(base, base), left >> 1
    return np.arange(-terms, terms + 1), law


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
    law = binom.pmf(plus, others, full) * binom.pmf(minus, np.maximum(others - plus, 0), full / (1 - full))
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
    return float(norm.cdf(-C / math.sqrt(q * (D - C)))) if q > 0 else 0.0


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


def spurious_budget(coefficients: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """`kappa(X) = C + sum of |delta_j|` outside the signal set (Appendix C, as its bounds use it)."""
    return signal.sum(axis=1) + np.abs(coefficients * ~signal).sum(axis=1)


def planted_distance(m: int, C: int, q: float) -> float:
    """Exact total variation between D1 and D2 on {-1, 0, 1}^m (proof of Theorem 5.2).

    The likelihood ratio is `binom(n, C) / binom(m, C) (2/q)^C` where `n ~ Binomial(m, q/2)` counts the +1's.
    """
    n = np.arange(m + 1)
    ratio = _planted_ratio(n, m, C, q)
    return float(0.5 * np.sum(binom.pmf(n, m, q / 2) * np.abs(ratio - 1)))


def planted_signs_distance(m: int, C: int, q: float) -> float:
    """Exact total variation between planting +1's and planting -1's: at most twice `planted_distance`."""
    plus, minus = np.meshgrid(np.arange(m + 1), np.arange(m + 1), indexing="ij")
    law = (
        binom.pmf(plus, m, q / 2)
        * binom.pmf(minus, np.maximum(m - plus, 0), q / (2 - q))
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
    return float(0.5 * math.sqrt(np.sum(hypergeom.pmf(h, m, C, C) * (2 / q) ** h) - 1))


def chance_overlap(D: int, C: int) -> float:
    """Mean share of the top `C` inside the group for logits without any order but the diagonal on top:
    `(1 + (C-1)^2 / (D-1)) / C`."""
    return (1 + (C - 1) ** 2 / (D - 1)) / C


# Scores of tied logits -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TiedScores:
    """`Lambda`, `Gamma`, `Xi` of logits with the symmetry of Lemma 4.1, the denominator, and `G`."""

    self_score: float
    same: float
    cross: float
    denominator: float
    gain: float


def tied_scores(
    D: int, C: int, beta: float, gamma: float = 0.0, rho: float = 0.0, tau: float = 1.0
) -> TiedScores:
    """Row-softmax scores: `e^beta, e^gamma, e^rho` over `e^beta + (C-1) e^gamma + (D-C) e^rho` (logits over tau)."""
    parts = np.exp(np.array([beta, gamma, rho]) / tau)
    total = parts[0] + (C - 1) * parts[1] + (D - C) * parts[2]
    own, same, cross = parts / total
    return TiedScores(float(own), float(same), float(cross), float(total), float(D * (own + (C - 1) * same)))


def induction_invariants(D: int, C: int, scores: TiedScores) -> dict[str, float]:
    """Induction Hypothesis B.1 as order-one numbers: the denominator over D (the paper prints the normalised sum,
    which is 1), `D Xi`, `D Lambda` and `D (C-1) Gamma`, whose largest value over a run is `lambda0`."""
    return {
        "denominator over D": scores.denominator / D,
        "D Xi": D * scores.cross,
        "D Lambda": D * scores.self_score,
        "D (C-1) Gamma": D * (C - 1) * scores.same,
    }


def diagonal_margin(D: int, d: int, q: float, beta: float) -> float:
    """`e^beta / (2 q D log d)`: at 1 and above the own patch outweighs the spurious ones (auxiliary Lemma G.3)."""
    spurious = 2 * q * D * math.log(d)
    return math.exp(beta) / spurious if spurious > 0 else math.inf


# First event: the value vector grows -----------------------------------------------------------------------------------


def drive_moments(D: int, C: int, q: float, p: int, scores: TiedScores) -> tuple[float, float]:
    """`E sum (y D m_i)^p` over the signal set and over the rest, exactly.

    Lemma D.6 prints the second as 0. Outside the signal set `y m_i` is symmetric noise plus `Xi C`, so every odd
    power of the shift adds a positive term: it is positive, and helps.
    """
    values, law = law_of_sum(D - C, q)
    signal = C * np.sum(law * (D * (scores.self_score + (C - 1) * scores.same + scores.cross * values)) ** p)
    own, own_law = law_of_sum(1, q)
    group, group_law = law_of_sum(C - 1, q)
    far, far_law = law_of_sum(D - 2 * C, q)
    pooled = (
        scores.self_score * own[:, None, None]
        + scores.same * group[None, :, None]
        + scores.cross * (C + far[None, None, :])
    )
    weight = own_law[:, None, None] * group_law[None, :, None] * far_law[None, None, :]
    return float(signal), float((D - C) * np.sum(weight * (D * pooled) ** p))


def signal_drive(C: int, p: int, gain: float, alpha: float, slack: float = 0.5) -> float:
    """Lemma D.4, leading form of the signal part of the pull on alpha: `p C G^p alpha^(p-1) E sg(-yF)`."""
    return p * C * gain**p * alpha ** (p - 1) * slack


def event1_constant(D: int, C: int, q: float, p: int, beta: float, tau: float = 1.0) -> float:
    """`c = (p/2) E[y sum_i (D m_i)^p]` at gamma = rho = 0, so that alpha grows by `eta c alpha^(p-1)` a step."""
    return p / 2 * sum(drive_moments(D, C, q, p, tied_scores(D, C, beta, tau=tau)))


def event1_time(
    D: int, C: int, q: float, p: int, beta: float, eta: float, alpha0: float, tau: float = 1.0
) -> float:
    """T0, corrected: `1 / ((p-2) c eta alpha0^(p-2))` (Lemma K.1 with k = p - 1)."""
    return 1 / ((p - 2) * event1_constant(D, C, q, p, beta, tau) * eta * alpha0 ** (p - 2))


def event1_time_printed(C: int, p: int, eta: float, alpha0: float) -> float:
    """T0 as Lemma D.2 prints it, constants 1: `1 / (eta C alpha0^(p-1))`. Its exponent is one too high."""
    return 1 / (eta * C * alpha0 ** (p - 1))


def event1_time_display(C: int, p: int, eta: float, alpha0: float, beta: float, lambda0: float) -> float:
    """T0 as display (9) prints it, constants 1, `e^beta` for the paper's `e^polyloglog(d)`."""
    tail = lambda0**p * math.exp(-beta) * max(math.ceil(-math.log(C**2 * lambda0 * alpha0)), 0)
    return 1 / (eta * C * alpha0 ** (p - 1) * math.exp(beta)) + tail


def event1_alignment_printed(C: int, lambda0: float) -> float:
    """Lemmas D.1, D.2, D.9, constants 1: alpha where the sigmoid starts to move, `1 / (C^2 lambda0)`."""
    return 1 / (C**2 * lambda0)


def event1_alignment_scale(C: int, p: int, gain: float) -> float:
    """The explicit leading scale of that alpha: `C (alpha G)^p = 1`."""
    return C ** (-1 / p) / gain


def output_bound(C: int, p: int, alpha: float, lambda0: float) -> float:
    """Lemma D.3, constant 1: `y F <= (C^(1+1/p) alpha lambda0)^p`."""
    return (C ** (1 + 1 / p) * alpha * lambda0) ** p


def bulk_ratio(D: int, C: int, q: float, p: int, scores: TiedScores) -> float:
    """`C G^p / sum_{i not in the signal set} E (D m_i)^p`: what Lemma D.5 needs to be large.

    The lemma as printed bounds a sum of D terms by `o(lambda0)^p`, which would take `lambda0 >= D^(1/p)`.
    """
    return C * scores.gain**p / drive_moments(D, C, q, p, scores)[1]


def linear_part_negligible_from(nu: float, p: int) -> float:
    """Lemma D.7, explicit: from `|z| = (2 nu / p)^(1/(p-1))` on, `act'(z)` is within [1, 1.5] of `p z^(p-1)`."""
    return (2 * nu / p) ** (1 / (p - 1))


# Second event: attention grows -----------------------------------------------------------------------------------------


def same_growth(
    D: int, C: int, p: int, alpha: float, scores: TiedScores, slack: float, tau: float = 1.0
) -> float:
    """Lemma G.1 with its leading event's constant: `p C alpha^p Gamma G^(p-1) (D-C) Xi E sg / tau`, per step size."""
    return p * C * alpha**p * scores.same * scores.gain ** (p - 1) * (D - C) * scores.cross * slack / tau


def same_growth_printed(C: int, p: int, alpha: float, scores: TiedScores) -> float:
    """Corollary G.1, constant 1: `C alpha^p Gamma G^(p-1)` per step size (Lemma 4.3 has a polylogarithm for C)."""
    return C * alpha**p * scores.same * scores.gain ** (p - 1)


def cross_growth_lemma43(D: int, p: int, alpha: float, scores: TiedScores) -> float:
    """Lemma 4.3, constant 1: `|rho|` grows by at most `alpha^p (1/D + Gamma G^(p-1) / D)` per step size."""
    return alpha**p * (1 + scores.same * scores.gain ** (p - 1)) / D


def cross_growth_bound(
    D: int, C: int, d: int, q: float, p: int, alpha: float, scores: TiedScores, lambda0: float
) -> float:
    """Lemma G.2, constants 1, the version used here:

    `C^2 alpha (alpha G)^(p-1) Xi lambda0 / D + alpha (alpha D k Xi)^(p-1) Xi k` with `k = q D log d`.
    """
    budget = q * D * math.log(d)
    first = C**2 * alpha * (alpha * scores.gain) ** (p - 1) * scores.cross * lambda0 / D
    return first + alpha * (alpha * D * budget * scores.cross) ** (p - 1) * scores.cross * budget


def cross_growth_corollary(D: int, p: int, alpha: float, scores: TiedScores, lambda0: float) -> float:
    """Corollary G.2, constant 1: `alpha^p (1/D + lambda0 Xi G^(p-1) / D)`. Its proof uses `q D <= 1`, against
    Assumption 2."""
    return alpha**p * (1 + lambda0 * scores.cross * scores.gain ** (p - 1)) / D


def event2_duration_printed(p: int, eta: float, beta: float, lambda0: float) -> float:
    """T1 - T0 as Lemma D.8 states it, constants 1: `lambda0^p / (eta e^beta)`."""
    return lambda0**p / (eta * math.exp(beta))


def event2_duration_display(C: int, p: int, eta: float, beta: float, lambda0: float) -> float:
    """T1 - T0 by display (26), which keeps C: `C^(2p) lambda0^p log(lambda0 / C^2) / (eta e^beta)`."""
    return C ** (2 * p) * lambda0**p * max(math.log(lambda0 / C**2), 0) / (eta * math.exp(beta))


def event2_duration(D: int, C: int, p: int, eta: float, alpha: float, gain: float) -> float:
    """T1 - T0 with `Gamma ~ 1/D` kept (display (22) drops it): `D / (eta C alpha(T0)^p G^(p-1))`, constant 1.

    `eta` is the step size of the logits; frozen logits (0) never get there.
    """
    return D / (eta * C * alpha**p * gain ** (p - 1)) if eta > 0 else math.inf


# Third event: the margin grows and the loss vanishes -------------------------------------------------------------------


def alignment_growth(C: int, p: int, gain: float, alpha: float, slack: float) -> float:
    """Lemmas D.2 and D.11, constant 1: alpha grows by `C G^p alpha^(p-1) E sg` per step size."""
    return C * gain**p * alpha ** (p - 1) * slack


def loss_bound(eta: float, p: int, lambda0: float, steps_after_event2: float) -> float:
    """Lemma D.13, constants 1: `1 / (eta lambda0^(2p) (t - T1 + 1))`. The paper calls this 1/t rate linear."""
    return 1 / (eta * lambda0 ** (2 * p) * (steps_after_event2 + 1))


LOSS_RATE = -1.0
"""The exponent of the loss in time that Lemma D.13 gives."""


def loss_from_margin(alpha: np.ndarray, gain: np.ndarray, p: int) -> np.ndarray:
    """Lemma D.14, constant 1: the loss is at most `log(1 + exp(-(alpha G)^p))`."""
    return np.logaddexp(0, -((alpha * gain) ** p))


def error_from_loss(loss: np.ndarray | float) -> np.ndarray | float:
    """Lemma D.15 with the factor it drops: the 0-1 error is at most the logistic loss over log 2."""
    return loss / math.log(2)


def alignment_power_sum(
    D: int, C: int, p: int, eta: float, alpha0: float, beta: float, lambda0: float
) -> float:
    """Lemma D.16, constants 1: the sum of alpha^p over a run,
    `1 / (eta C alpha0^(p-1) lambda0^p e^beta) + D / (C eta e^beta)`."""
    first = 1 / (eta * C * alpha0 ** (p - 1) * lambda0**p * math.exp(beta))
    return first + D / (C * eta * math.exp(beta))


# The linear phase of the realistic run ---------------------------------------------------------------------------------


def linear_drift(D: int, C: int, nu: float, eta: float) -> float:
    """Growth of alpha a step in the linear phase, exactly: `eta nu D C / 2`, for every doubly stochastic attention."""
    return eta * nu * D * C / 2


def linear_drift_printed(nu: float, eta: float, beta: float) -> float:
    """The same as Lemma E.1 prints it, constant 1: `eta nu e^beta`. It counts only the signal rows."""
    return eta * nu * math.exp(beta)


def linear_phase_end(D: int, C: int, nu: float, p: int, eta: float, alpha0: float = 0.0) -> float:
    """The end of the linear phase: `(nu^(1/(p-1)) - alpha0) 2 / (eta nu D C)`."""
    return (nu ** (1 / (p - 1)) - alpha0) / linear_drift(D, C, nu, eta)


def linear_phase_end_full(D: int, C: int, q: float, nu: float, p: int, beta: float, eta: float) -> float:
    """The same with the power part of the activation kept, from alpha = 0 and for frozen attention.

    `alpha = nu^(1/(p-1)) x` turns the growth into `dx / d(eta t) = nu^((p-2)/(p-1)) (D C / 2 + c x^(p-1))`; the power
    part wins from `x = (D C / 2c)^(1/(p-1))` on, far below 1, so the phase is much shorter than its linear reading but
    keeps its exponent in nu.
    """
    c = event1_constant(D, C, q, p, beta)
    time = quad(lambda x: 1 / (D * C / 2 + c * x ** (p - 1)), 0, 1)[0]
    return time / (eta * nu ** ((p - 2) / (p - 1)))


def linear_phase_end_printed(nu: float, p: int, eta: float, beta: float) -> float:
    """The same as Lemma E.1 prints it, constant 1: `1 / (eta nu^((p-2)/(p-1)) e^beta)`."""
    return 1 / (eta * nu ** ((p - 2) / (p - 1)) * math.exp(beta))


def linear_phase_sum(steps: float, alpha0: float, D: int, C: int, nu: float, eta: float) -> float:
    """Lemma E.7 with the exact drift: the sum of alpha over the first steps, `t alpha0 + drift t^2 / 2`."""
    return steps * alpha0 + linear_drift(D, C, nu, eta) * steps**2 / 2


def orthogonal_bound(omega: float, d: int, nu: float, p: int, D: int, N: int) -> float:
    """Lemma E.3, constants and polynomials of D set to 1: `omega sqrt(d log d) + nu^(1/(p-1)) / sqrt(N)`.

    Measured: what is gained over the phase falls like `N^(-1/2)`.
    """
    return omega * math.sqrt(d * math.log(d)) + nu ** (1 / (p - 1)) / math.sqrt(N)


def logit_bound(omega: float, d: int, nu: float, p: int, D: int, beta: float) -> float:
    """Lemma E.4, constant 1: logits stay below `omega sqrt(d log d) + nu^(2/(p-1)) / (D e^beta)` in this phase."""
    return omega * math.sqrt(d * math.log(d)) + nu ** (2 / (p - 1)) / (D * math.exp(beta))


def orthogonal_step(eps: float, alpha: float, eta: float, p: int, d: int, zeta: float) -> float:
    """Lemma E.10 with polynomials of D set to 1: `(1 + eta alpha^(p-1) / sqrt(d)) eps + eta zeta` (E.2 has nu for
    alpha^(p-1)); `zeta ~ N^(-1/2)`."""
    return (1 + eta * alpha ** (p - 1) / math.sqrt(d)) * eps + eta * zeta


def coupling_step(gap: float, eps: float, rate: float, eta: float, sigma: float, zeta: float) -> float:
    """Lemma E.14 with polynomials of D set to 1: `(1 + eta R) gap + eta sigma eps + eta zeta`, where `R` is
    `coupling_rate`."""
    return (1 + eta * rate) * gap + eta * sigma * eps + eta * zeta


def coupling_rate(C: int, p: int, alpha: float, scores: TiedScores) -> float:
    """`R = C G^(p-1) Gamma alpha^p` of Lemma E.14, constant 1: the growth rate of gamma itself."""
    return same_growth_printed(C, p, alpha, scores)


COUPLING_RATE = -0.5
"""The exponent of every coupling gap in the sample size (Lemmas E.9, E.13, E.19, E.26)."""


def realistic_event_times_printed(C: int, p: int, eta: float, alpha: float, beta: float, lambda0: float):
    """Lemmas E.20 to E.23, constants 1: the ends of the three events after the linear phase, as printed."""
    first = 1 / (eta * C * alpha ** (p - 1))
    second = first + event2_duration_printed(p, eta, beta, lambda0)
    return first, second, second + lambda0 ** (p - 2) / eta


def realistic_event1_time(D: int, C: int, q: float, p: int, beta: float, eta: float, alpha: float) -> float:
    """The first of them with the exponent p - 2 that its proof gives (Lemma E.20 corrected)."""
    return event1_time(D, C, q, p, beta, eta, alpha)


# Transfer --------------------------------------------------------------------------------------------------------------


def gradient_scale(D: int, C: int, nu: float) -> float:
    """`c0 = nu D C / 2`: the mean gradient at v = 0 is `c0 w~*` (Appendix F has roughly alpha D C)."""
    return nu * D * C / 2


def one_step_cosine(D: int, C: int, samples: float | np.ndarray, noise: float = 1.0) -> float | np.ndarray:
    """Alignment of one normalised gradient step with the new feature: `C / sqrt(C^2 + D noise^2 / N~)`.

    The direction does not depend on the attention; `noise` is `sigma sqrt(d)`.
    """
    return C / np.sqrt(C**2 + D * noise**2 / samples)


def transfer_snr(
    D: int, C: int, d: int, cosine: float | np.ndarray, scores: TiedScores
) -> float | np.ndarray:
    """`c1 G sqrt(d) / (D sqrt(sum_j S_ij^2))`: signal over patch noise at a signal row; about 3 is needed."""
    spread = math.sqrt(scores.self_score**2 + (C - 1) * scores.same**2 + (D - C) * scores.cross**2)
    return cosine * scores.gain * math.sqrt(d) / (D * spread)


def feature_noise_bound(D: int, d: int, nu: float, C: int, q: float, samples: float) -> float:
    """Appendix F: spurious coefficients add at most `c0 q D log d / sqrt(N~)` along the feature."""
    return gradient_scale(D, C, nu) * q * D * math.log(d) / math.sqrt(samples)


def patch_noise_bound(D: int, C: int, nu: float, samples: float, noise: float = 1.0) -> float:
    """Appendix F: patch noise adds a vector of length at most `c0 sigma sqrt(d) sqrt(D) / sqrt(N~)`."""
    return gradient_scale(D, C, nu) * noise * math.sqrt(D) / math.sqrt(samples)


def new_patch_noise(d: int, cosine: float, noise: float = 1.0) -> float:
    """Standard deviation of `<xi, v~>` at a new patch: `noise sqrt((1 - c1^2) / d)`."""
    return noise * math.sqrt((1 - cosine**2) / d)


def unseen_groups(D: int, C: int, samples: float | np.ndarray) -> float | np.ndarray:
    """Expected share of groups that were never the signal group: `(1 - 1/L)^N~`."""
    return (1 - C / D) ** np.asarray(samples, float)


def unassociated_error_floor(D: int, C: int, q: float, samples: float | np.ndarray) -> float | np.ndarray:
    """A heuristic reading of Theorem 5.2: on unseen groups a learner without the partition errs at least
    `(1 - TV) / 2`, with `TV` between planting +1's and -1's."""
    return unseen_groups(D, C, samples) * 0.5 * max(1 - planted_signs_distance(D, C, q), 0.0)
