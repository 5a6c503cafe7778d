"""How descent goes, in formulas: scores of tied logits, the linear phase, the three events (Appendices D, E and G).

`nu` linear coefficient, `p` degree, `beta` frozen diagonal, `eta` step size, `alpha`, `gamma`, `rho` the three numbers.
Statements that hide constants are given with every hidden constant (and polylogarithm) set to 1 and say so; where the printed
form does not follow from its own proof, the printed and the corrected form stand side by side.
"""

import math
from dataclasses import dataclass

import numpy as np
import scipy

from lemmata.studies.spatial_structure.theory.images import law_of_sum

# Scores of tied logits -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TiedScores:
    """`Lambda`, `Gamma`, `Xi` of logits with the symmetry of Lemma 4.1, and `G = D (Lambda + (C-1) Gamma)`."""

    self_score: float
    same: float
    cross: float
    gain: float


def tied_scores(
    D: int, C: int, beta: float, gamma: float = 0.0, rho: float = 0.0, tau: float = 1.0
) -> TiedScores:
    """Row-softmax scores: `e^beta, e^gamma, e^rho` over `e^beta + (C-1) e^gamma + (D-C) e^rho` (logits over tau)."""
    own, same, cross = (math.exp(logit / tau) for logit in (beta, gamma, rho))
    whole = own + (C - 1) * same + (D - C) * cross
    own, same, cross = own / whole, same / whole, cross / whole
    return TiedScores(own, same, cross, D * (own + (C - 1) * same))


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


def bulk_ratio(D: int, C: int, q: float, p: int, scores: TiedScores) -> float:
    """`C G^p / sum_{i not in the signal set} E (D m_i)^p`: what Lemma D.5 needs to be large.

    The lemma as printed bounds a sum of D terms by `o(lambda0)^p`, which would take `lambda0 >= D^(1/p)`.
    """
    return C * scores.gain**p / drive_moments(D, C, q, p, scores)[1]


def signal_drive(C, p: int, gain, alpha, slack):
    """Lemma D.4, leading form of the signal part of the pull on alpha: `p C G^p alpha^(p-1) E sg(-yF)`."""
    return p * C * gain**p * alpha ** (p - 1) * slack


def output_bound(C, p: int, alpha, lambda0):
    """Lemma D.3, constant 1: `y F <= (C^(1+1/p) alpha lambda0)^p`."""
    return (C ** (1 + 1 / p) * alpha * lambda0) ** p


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


def event1_alignment_scale(C: int, p: int, gain: float) -> float:
    """The alpha at which the sigmoid starts to move (Lemma D.1), by its explicit leading scale `C (alpha G)^p = 1`."""
    return C ** (-1 / p) / gain


def linear_part_negligible_from(nu: float, p: int) -> float:
    """Lemmas D.7 and E.8, explicit: from `|z| = (2 nu / p)^(1/(p-1))` on, `act'(z)` is within [1, 1.5] of `p z^(p-1)`."""
    return (2 * nu / p) ** (1 / (p - 1))


# Second event: attention grows -----------------------------------------------------------------------------------------


def same_growth(D, C, p: int, alpha, scores, slack, tau: float = 1.0):
    """Lemma G.1 with its leading event's constant: `p C alpha^p Gamma G^(p-1) (D-C) Xi E sg / tau`, per step size.

    `scores` has `same`, `cross` and `gain`.
    """
    return p * C * alpha**p * scores.same * scores.gain ** (p - 1) * (D - C) * scores.cross * slack / tau


def same_growth_printed(C, p: int, alpha, scores, slack):
    """Lemma G.1 as its proof ends (display 178), constant 1: `C alpha^p Gamma G^(p-1) E sg` per step size.

    The lemma, Corollary G.1 and Lemma 4.3 drop `E sg` too, which is of order 1 while the risk is.
    """
    return C * alpha**p * scores.same * scores.gain ** (p - 1) * slack


def cross_growth_bound(D, C, d, q, p: int, alpha, scores, lambda0):
    """Lemma G.2, constants 1: `C^2 alpha (alpha G)^(p-1) Xi lambda0 / D + alpha (alpha D k Xi)^(p-1) Xi k`, `k = q D log d`."""
    budget = q * D * np.log(d)
    first = C**2 * alpha * (alpha * scores.gain) ** (p - 1) * scores.cross * lambda0 / D
    return first + alpha * (alpha * D * budget * scores.cross) ** (p - 1) * scores.cross * budget


def cross_growth_lemma43(D, C, d, q, p: int, alpha, scores, lambda0):
    """Lemma 4.3, constant 1: `|rho|` grows by at most `alpha^p (1/D + Gamma G^(p-1) / D)` per step size."""
    return alpha**p * (1 + scores.same * scores.gain ** (p - 1)) / D


def cross_growth_corollary(D, C, d, q, p: int, alpha, scores, lambda0):
    """Corollary G.2, constant 1: `alpha^p (1/D + lambda0 Xi G^(p-1) / D)`. Its proof uses `q D <= 1`, against
    Assumption 2."""
    return alpha**p * (1 + lambda0 * scores.cross * scores.gain ** (p - 1)) / D


def event2_duration_printed(p: int, eta: float, beta: float, lambda0: float) -> float:
    """T1 - T0 as Lemma D.8 states it, constants 1: `lambda0^p / (eta e^beta)`. It does not know D."""
    return lambda0**p / (eta * math.exp(beta))


def event2_duration_leading(D: int, C: int, p: int, beta: float, eta: float, slack: float = 0.2) -> float:
    """The time in which gamma grows to 1 at the first rate of Lemma G.1, with `C (alpha G)^p = 1` and this slack.

    With all factors kept it is proportional to `(e^beta + D) (1 - 1/e)`: constant in D below `e^beta`, linear above, never the
    printed constant nor the `D G` of display (22) with Gamma ~ 1/D put back. `eta` is the step size of the logits.
    """
    scores = tied_scores(D, C, beta)
    alpha = event1_alignment_scale(C, p, scores.gain)
    return (1 - math.exp(-1)) / (eta * same_growth(D, C, p, alpha, scores, slack))


def event2_duration(D: int, C: int, q: float, p: int, beta: float, eta: float, level: float = 1.0) -> float:
    """The time in which gamma grows from 0 to `level` when alpha is always at its optimum for the present gamma, which it is
    while logits move slowly beside the value vector: `int_0^level d gamma / (eta P(gamma))`.

    `P` is the exact pull on a same-group logit (rho = 0, no linear part), averaged over fixed draws of the coefficients; where
    no image is outvoted alpha has no optimum, and the time is infinite.
    """
    spin = np.random.default_rng(0).random((max(400, 400_000 // D), D // C, C))
    f = np.where(spin < q / 2, 1.0, np.where(spin < q, -1.0, 0.0))
    f[:, 0] = 1.0
    near = f.sum(axis=2, keepdims=True) - f
    far = f.sum(axis=(1, 2))[:, None, None] - near - f

    def pull(gamma: float) -> float:
        scores = tied_scores(D, C, beta, gamma)
        pooled = scores.self_score * f + scores.same * near + scores.cross * far
        powers = (D * pooled) ** (p - 1)
        output = np.sum(powers * D * pooled, axis=(1, 2))
        spread = np.sum(powers * (near - (C - 1) * pooled), axis=(1, 2))
        if np.all(output > 0):
            return 0.0
        unit = 1 / np.max(np.abs(output))
        power = scipy.optimize.brentq(
            lambda x: np.mean(output * scipy.special.expit(-math.exp(x) * unit * output)), -10, 20
        )
        # alpha^p at which the risk is least
        strength = math.exp(power) * unit  # pyright: ignore[reportArgumentType]  (the root alone)
        slack = scipy.special.expit(-strength * output)
        return float(p * strength * scores.same / (C - 1) * np.mean(slack * spread))

    points, weights = np.polynomial.legendre.leggauss(8)
    pulls = np.array([pull(level * (1 + x) / 2) for x in points])
    return float(np.sum(weights * level / 2 / (eta * pulls))) if np.all(pulls > 0) else math.inf


# Third event: the margin grows and the loss vanishes -------------------------------------------------------------------


def loss_from_margin(alpha, gain, p: int):
    """Lemma D.14, constant 1: the loss is at most `log(1 + exp(-(alpha G)^p))`."""
    return np.logaddexp(0, -((alpha * gain) ** p))


def error_from_loss(loss):
    """Lemma D.15 with the factor it drops: the 0-1 error is at most the logistic loss over log 2."""
    return loss / math.log(2)


def alignment_power_sum(
    D: int, C: int, p: int, eta: float, logit_eta: float, alpha0: float, beta: float
) -> float:
    """Lemma D.16, constants 1 and `lambda0 = D^0.01`: the sum of alpha^p over a run,
    `1 / (eta C alpha0^(p-1) lambda0^p e^beta) + D / (C eta e^beta)`, the second `eta` being that of the logits."""
    first = 1 / (eta * C * alpha0 ** (p - 1) * D ** (0.01 * p) * math.exp(beta))
    return first + D / (C * logit_eta * math.exp(beta))


# The linear phase of the realistic run ---------------------------------------------------------------------------------


def linear_drift(D: int, C: int, nu: float, eta: float) -> float:
    """Growth of alpha a step in the linear phase, exactly: `eta nu D C / 2`, for every doubly stochastic attention.

    Lemma E.1 prints `eta nu e^beta`: it counts only the signal rows.
    """
    return eta * nu * D * C / 2


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
    turn, k = (D * C / (2 * c)) ** (1 / (p - 1)), p - 1

    def part(integrand, low: float, high: float) -> float:
        return scipy.integrate.quad(integrand, low, high, epsabs=0, epsrel=1e-12)[0]

    # In x = turn y, and beyond y = 1 in 1/y: the integrand falls within a part of [0, 1] that may be tiny.
    time = part(lambda y: 1 / (1 + y**k), 0, min(1, 1 / turn))
    time += part(lambda u: u ** (k - 2) / (1 + u**k), turn, 1) if turn < 1 else 0.0
    time *= turn / (D * C / 2)
    return time / (eta * nu ** ((p - 2) / (p - 1)))


def linear_phase_sum(steps: float, alpha0: float, D: int, C: int, nu: float, eta: float) -> float:
    """Lemma E.7 with the exact drift: the sum of alpha over the first steps, `t alpha0 + drift t^2 / 2`."""
    return steps * alpha0 + linear_drift(D, C, nu, eta) * steps**2 / 2


def logit_bound(omega: float, d: int, nu: float, p: int, D: int, beta: float) -> float:
    """Lemma E.4, constant 1: logits stay below `omega sqrt(d log d) + nu^(2/(p-1)) / (D e^beta)` in this phase."""
    return omega * math.sqrt(d * math.log(d)) + nu ** (2 / (p - 1)) / (D * math.exp(beta))
