"""The theorems as functions: conditions with margins, sample complexity, steps, and what removing tokens
saves.

[P] is the conference paper, [T] the thesis. "Order-wise" statements hide constants; where a function needs
one it is an argument and defaults to 1. The lemmas on the way (attention, neurons, keys and values) are in
`lemmas.py`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from lemmata.measure.compare import Condition


@dataclass(frozen=True)
class Setting:
    """The quantities of Theorem 1.

    alpha_*, alpha_#: `relevant_fraction`, `confusion_fraction`; tau, kappa: `token_noise`, `pattern_gap`;
    sigma, delta: `value_error`, `key_query_error`; M, m, m_a, m_b: `patterns`, `neurons`, `value_dim`,
    `key_dim`; N, B, |S|, eta, xi: `samples`, `batch`, `tokens`, `learning_rate`, `hidden_std`; epsilon,
    epsilon_S: `width_slack`, `confusion_slack`. `spectral_norm` is the largest one of W_V, W_K, W_Q.
    """

    relevant_fraction: float
    confusion_fraction: float
    token_noise: float = 0.0
    value_error: float = 0.1
    key_query_error: float = 0.2
    patterns: int = 5
    neurons: int = 1000
    value_dim: int = 10
    key_dim: int = 10
    samples: int = 200
    batch: int = 10
    tokens: int = 50
    learning_rate: float = 1.0
    hidden_std: float = 0.01
    pattern_gap: float = math.sqrt(2)
    spectral_norm: float = 1.0
    confusion_slack: float = 0.5
    width_slack: float | None = None

    @property
    def disorder(self) -> float:
        """sigma + tau: what initial model and token noise take from the signal."""
        return self.value_error + self.token_noise

    @property
    def slack(self) -> float:
        """epsilon: as given, or the smallest that the width allows."""
        return smallest_width_slack(self) if self.width_slack is None else self.width_slack


# Theorem 1 --------------------------------------------------------------------------------------------------


def conditions(s: Setting) -> list[Condition]:
    """Every condition of Theorem 1, with its margin (above 1: met). `holds` is None where only an order is
    stated."""
    assumption = max(s.spectral_norm, 1e-12)
    initial = s.key_query_error < 0.5 and s.spectral_norm <= 1 + 1e-9
    return [
        Condition(
            "C1 initial model: spectral norms <= 1, delta < 1/2 (Assumption 1)",
            initial,
            min(1 / assumption, _ratio(0.5, s.key_query_error)),
        ),
        Condition(
            "C1 sigma + tau <= pi/M ([P] 216)",
            s.disorder <= math.pi / s.patterns,
            _ratio(math.pi / s.patterns, s.disorder),
        ),
        Condition(
            "C1 2 < M < min(m_a, m_b)",
            2 < s.patterns < min(s.value_dim, s.key_dim),
            min(s.value_dim, s.key_dim) / s.patterns,
        ),
        _at_least("C2 min(sigma, delta) >= tau", min(s.value_error, s.key_query_error), s.token_noise),
        _at_least("C2 kappa/4 > tau", s.pattern_gap / 4, s.token_noise),
        Condition("C3 m >= epsilon^-2 M^2 log N ([P] 7)", None, _ratio(s.neurons, width_needed(s))),
        _at_least("C4 alpha_* against alpha_# ([P] 8)", s.relevant_fraction, relevant_fraction_needed(s)),
        _at_least(
            "C4 alpha_* against alpha_# ([T], epsilon_S = 1)",
            s.relevant_fraction,
            relevant_fraction_needed(replace(s, confusion_slack=1.0)),
        ),
        Condition(
            "C5 batch ([P] 223): B >= ((1+sigma+tau)/(1-sigma-tau))^2",
            None,
            _ratio(s.batch, batch_for_luck(s)),
        ),
        _at_least("C5 batch ([T] A.137)", *thesis_batch_sides(s)),
        Condition(
            "C6 N >= 1/(alpha_* - c''(sigma+tau))^2 ([P] 10)", None, _ratio(s.samples, samples_needed(s))
        ),
        _at_least(
            "C7 1 > epsilon + (sigma+tau) M/pi (T > 0)", 1.0, s.slack + s.disorder * s.patterns / math.pi
        ),
    ]


def width_needed(s: Setting) -> float:
    """m >= epsilon^-2 M^2 log N ([P] 7); without a slack [T]: M^2 log N."""
    slack = 1.0 if s.width_slack is None else s.width_slack
    return slack**-2 * s.patterns**2 * math.log(max(s.samples, 2))


def smallest_width_slack(s: Setting) -> float:
    """The smallest epsilon that the width allows: M sqrt(log N / m) (from [P] 7 with constant 1)."""
    return s.patterns * math.sqrt(math.log(max(s.samples, 2)) / s.neurons)


def relevant_fraction_needed(s: Setting) -> float:
    """alpha_# / (epsilon_S exp(-(delta+tau)) (1 - (sigma+tau))) ([P] 8); [T] has no epsilon_S, that is 1."""
    room = s.confusion_slack * math.exp(-(s.key_query_error + s.token_noise)) * (1 - s.disorder)
    return _ratio(s.confusion_fraction, room)


def relevant_fraction_boundary(nondiscriminative: float, s: Setting) -> float:
    """The smallest alpha_* allowed by C4 when alpha_nd is held fixed: (1 - alpha_nd) / (1 + room), with room
    = epsilon_S exp(-(delta+tau)) (1 - (sigma+tau))."""
    room = s.confusion_slack * math.exp(-(s.key_query_error + s.token_noise)) * (1 - s.disorder)
    return (1 - nondiscriminative) / (1 + room)


def batch_for_luck(s: Setting) -> float:
    """B >= ((1+sigma+tau)/(1-sigma-tau))^2 ([P] 223): lucky neurons stay lucky."""
    return ((1 + s.disorder) / (1 - s.disorder)) ** 2 if s.disorder < 1 else math.inf


def batch_for_gates(s: Setting, attention: float, cross_inner: float) -> float:
    """B >= (lambda xi sqrt(M) / (epsilon alpha_* p^2))^2 ([P] 134): lucky gates stay open."""
    return (
        cross_inner * s.hidden_std * math.sqrt(s.patterns) / (s.slack * s.relevant_fraction * attention**2)
    ) ** 2


def thesis_batch_sides(s: Setting) -> tuple[float, float]:
    """Both sides of exp(-(delta+tau))(1-sigma-tau)(alpha_* - r - sigma - tau) >= r + alpha_#, r = sqrt(log
    B/B) ([T] A.137)."""
    spread = math.sqrt(math.log(s.batch) / s.batch)
    gain = math.exp(-(s.key_query_error + s.token_noise)) * (1 - s.disorder)
    return gain * (s.relevant_fraction - spread - s.disorder), spread + s.confusion_fraction


def samples_needed(
    s: Setting,
    constant: float = 1.0,
    c_noise: float = 1.0,
    c_attention: float = 1.0,
    attention_floor: float = 1.0,
) -> float:
    """N >= constant / (alpha_* - c'(1-zeta) - c''(sigma+tau))^2 ([P] 10), zeta >= 1 - eta^10; infinite where
    the bracket is not positive."""
    signal = s.relevant_fraction - c_attention * (1 - attention_floor) - c_noise * s.disorder
    return constant / signal**2 if signal > 0 else math.inf


def samples_needed_frozen(s: Setting, constant: float = 1.0, c_noise: float = 1.0) -> float:
    """N >= constant / (alpha_*(alpha_* - sigma - tau))^2 (Proposition 1: W_K and W_Q are not trained)."""
    signal = s.relevant_fraction * (s.relevant_fraction - c_noise * s.disorder)
    return constant / signal**2 if signal > 0 else math.inf


def steps_needed(s: Setting, constant: float = 1.0) -> float:
    """T = constant / ((1 - epsilon - (sigma+tau) M/pi) eta alpha_*) ([P] 11); infinite outside C7."""
    factor = 1 - s.slack - s.disorder * s.patterns / math.pi
    return constant / (factor * s.learning_rate * s.relevant_fraction) if factor > 0 else math.inf


def steps_needed_thesis(s: Setting, constant: float = 1.0) -> float:
    """T = constant eta^(-3/5) / alpha_* ([T]). One eta is lost between A.83 and A.87; restored, it is
    1/eta."""
    return constant * s.learning_rate ** (-3 / 5) / s.relevant_fraction


def steps_from_growth(s: Setting, attention: float) -> float:
    """The root of a_1 (eta T)^2 = 1, with a_1 the coefficient of the output's growth ([P] 63).

    [P] 67 takes T = 1/(eta a_1) and then drops one alpha_*; the root itself scales as 1/(eta alpha_*)
    directly.
    """
    growth = output_growth(s, attention)
    return 1 / (s.learning_rate * math.sqrt(growth)) if growth > 0 else math.inf


def output_growth(s: Setting, attention: float) -> float:
    """a_1 = alpha_*(alpha_* p - (sigma+tau)) p (1 - epsilon - (sigma+tau)M/pi)/M ([P] 63)."""
    factor = 1 - s.slack - s.disorder * s.patterns / math.pi
    signal = s.relevant_fraction * attention - s.disorder
    return max(s.relevant_fraction * signal * attention * factor / s.patterns, 0.0)


def concentration_error(samples: int) -> float:
    """sqrt(log N / N): how far the mean relevant fraction of N samples is from alpha_* ([P] 66)."""
    return math.sqrt(math.log(samples) / samples)


def parameters_saved_by_freezing(dim: int, value_dim: int, key_dim: int, neurons: int) -> float:
    """The share of trainable weights that are W_K and W_Q. 1.94 % at d = m_a = m_b = 10, m = 1000; the paper
    says 1 %.

    >>> round(parameters_saved_by_freezing(10, 10, 10, 1000), 4)
    0.0194
    """
    attention = 2 * key_dim * dim
    return attention / (attention + value_dim * dim + neurons * value_dim)


# Remarks ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Saving:
    """What removing tokens does: the new fraction and noise, and how samples and steps change (ratio new to
    old)."""

    relevant_fraction: float
    token_noise: float
    samples_ratio: float
    steps_ratio: float


def remove_irrelevant(s: Setting, removed: float, c_noise: float = 1.0) -> Saving:
    """Remove the share `removed` of the label-irrelevant tokens: alpha_*' = alpha_* / (alpha_* +
    (1-alpha_*)(1-rho)).

    Remark 2: N goes as the bound of Theorem 1 (as alpha_*^-2 without disorder), T as 1/alpha_*.
    """
    kept = s.relevant_fraction + (1 - s.relevant_fraction) * (1 - removed)
    after = replace(s, relevant_fraction=s.relevant_fraction / kept)
    return _saving(s, after, c_noise)


def remove_noisy(s: Setting, noise_after: float, c_noise: float = 1.0) -> Saving:
    """Remove noisy tokens so that tau falls to `noise_after`; the fractions stay."""
    return _saving(s, replace(s, token_noise=noise_after), c_noise)


def remove_random(s: Setting, removed: float) -> Saving:
    """Remove tokens at random: neither alpha_* nor tau changes, so nothing is gained."""
    return Saving(s.relevant_fraction, s.token_noise, 1.0, 1.0)


def _saving(before: Setting, after: Setting, c_noise: float) -> Saving:
    samples = _ratio(samples_needed(after, c_noise=c_noise), samples_needed(before, c_noise=c_noise))
    factor = [1 - s.slack - s.disorder * s.patterns / math.pi for s in (before, after)]
    noise = factor[0] / factor[1] if min(factor) > 0 else math.nan
    steps = before.relevant_fraction / after.relevant_fraction * noise
    return Saving(after.relevant_fraction, after.token_noise, samples, steps)


def attention_advantage(relevant_fraction: float) -> float:
    """Remark 1: the frozen network needs alpha_*^-2 times as many samples as the trained one."""
    return relevant_fraction**-2


def _ratio(a: float, b: float) -> float:
    if math.isinf(a) and math.isinf(b):
        return math.nan
    return a / b if b else math.inf


def _at_least(name: str, left: float, right: float) -> Condition:
    """A left side that is not even positive misses by a factor of a thousand million: margins are positive."""
    return Condition(name, bool(left >= right), _ratio(max(left, 1e-9), right) if right > 0 else math.inf)


def typical_noise(noise_std: float, dim: int) -> float:
    """c_0 sqrt(d): the typical length of Gaussian token noise, the tau of the experiments."""
    return noise_std * float(np.sqrt(dim))
