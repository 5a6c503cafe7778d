"""Theorem 1, Propositions 1 and 2, and the Remarks: conditions with margins, samples, steps, what removing tokens saves."""

import math
from dataclasses import dataclass, replace
from typing import Any

import scipy

from lemmata.measure.compare import Condition
from lemmata.studies.shallow_vit.theory.lemmas import relevant_attention_printed


@dataclass(frozen=True)
class Setting:
    """The quantities of Theorem 1.

    alpha_*, alpha_#: `relevant_fraction`, `confusion_fraction`; tau, kappa: `token_noise`, `pattern_gap`; sigma,
    delta: `value_error`, `key_query_error`; M, m, m_a, m_b: `patterns`, `neurons`, `value_dim`, `key_dim`; N, B, |S|,
    eta, xi: `samples`, `batch`, `tokens`, `learning_rate`, `hidden_std`; epsilon, epsilon_S: `width_slack`,
    `confusion_slack`. `spectral_norm` is the largest one of W_V, W_K, W_Q. `imbalance` is | |D_+| - |D_-| |."""

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
    imbalance: float = 0.0
    confusion_slack: float = 0.5
    width_slack: float | None = None

    @property
    def disorder(self) -> float:
        """sigma + tau: what initial model and token noise take from the signal."""
        return self.value_error + self.token_noise

    @property
    def spread(self) -> float:
        """delta + tau: the same for keys and queries."""
        return self.key_query_error + self.token_noise

    @property
    def slack(self) -> float:
        """epsilon: as given, or the smallest that the width allows."""
        return smallest_width_slack(self) if self.width_slack is None else self.width_slack

    @property
    def luck(self) -> float:
        """1 - epsilon - (sigma+tau) M/pi: the factor of (11), and M times the share of lucky neurons by (208)."""
        return 1 - self.slack - self.disorder * self.patterns / math.pi

    @property
    def room(self) -> float:
        """The largest alpha_#/alpha_* that condition (8) allows: epsilon_S exp(-(delta+tau)) (1 - (sigma+tau))."""
        return self.confusion_slack * math.exp(-self.spread) * (1 - self.disorder)


def setting(trial: Any) -> Setting:
    """Return the quantities of Theorem 1 of a trial.

    The errors are the nominal ones. Scaling weights to spectral norm one, or leaving them above it, is counted. The token noise
    is that of the noisiest kind of token that is kept."""
    data, network, descent = trial.data, trial.network, trial.descent
    sigma, delta = float(network.value_error), float(network.key_query_error)
    spectral = _spectral_norm(network, data)
    if (
        network.unit_spectral and network.initial == "perturbed"
    ):  # (mu + delta e)/(1 + delta) is off by at most this
        sigma, delta, spectral = 2 * sigma / (1 + sigma), 2 * delta / (1 + delta), 1.0
    return Setting(
        relevant_fraction=float(data.relevant_fraction),
        confusion_fraction=float(data.confusion_fraction),
        token_noise=_token_noise(data),
        value_error=sigma,
        key_query_error=delta,
        patterns=data.patterns,
        neurons=network.neurons,
        value_dim=network.value_dim or data.dim,
        key_dim=network.key_dim or data.dim,
        samples=data.samples,
        batch=trial.batch_size,
        tokens=data.tokens,
        learning_rate=float(descent.learning_rate),
        hidden_std=float(network.hidden_std),
        spectral_norm=spectral,
        imbalance=float(data.samples % 2) if data.balance == "exact" else math.sqrt(data.samples),
    )


def _spectral_norm(network: Any, data: Any) -> float:
    """Return the largest spectral norm that the initial model allows for W_V, W_K, W_Q."""
    error, std = max(float(network.value_error), float(network.key_query_error)), float(data.noise_std)
    if network.initial == "shrink":
        return 1.0
    if network.initial == "perturbed":
        return 1 + error
    if network.initial == "amplified_complement":
        return max(1.0, error / (std * math.sqrt(data.dim - data.patterns)))
    return (error / std) ** (2 if network.initial == "literal" else 1)


def _token_noise(data: Any) -> float:
    """Return tau: the length of the noise of the quiet tokens, or of the noisy ones unless all of them are removed."""
    quiet = float(data.noise_level)
    noisy, removed = (round(f * data.tokens) for f in (data.noisy_fraction, data.removed_fraction))
    if noisy == 0 or (data.removal == "noisy" and removed >= noisy):
        return quiet
    return max(quiet, float(data.noisy_std) * math.sqrt(data.dim))


# Conditions ------------------------------------------------------------------------------------------------------------


def conditions(trial: Any) -> list[Condition]:
    """Every condition of Theorem 1 [P] at a trial, with its margin (above 1: met). `holds` is None where only an order is
    stated."""
    s = setting(trial)
    return [
        *_shared(s),
        Condition("(7) m >= epsilon^-2 M^2 log N", None, _ratio(s.neurons, width_needed(s))),
        _at_least(
            "(8) alpha_* against alpha_#, epsilon_S = 1/2", s.relevant_fraction, relevant_fraction_needed(s)
        ),
        Condition("(223) B >= ((1+sigma+tau)/(1-sigma-tau))^2", None, _ratio(s.batch, batch_for_luck(s))),
        Condition("(134) B keeps lucky gates open", None, _ratio(s.batch, batch_for_gates(s))),
        Condition("(10) N >= 1/(alpha_* - c''(sigma+tau))^2", None, _ratio(s.samples, samples_needed(s))),
        _at_least("(11) 1 > epsilon + (sigma+tau) M/pi", 1.0, 1 - s.luck),
    ]


def thesis_conditions(trial: Any) -> list[Condition]:
    """The same of [T]: no epsilon in the width, no epsilon_S, a batch that averages the fractions."""
    s = replace(setting(trial), width_slack=1.0, confusion_slack=1.0)
    return [
        *_shared(s),
        Condition("[T] m >= M^2 log N", None, _ratio(s.neurons, width_needed(s))),
        _at_least("[T] (2.8) alpha_* against alpha_#", s.relevant_fraction, relevant_fraction_needed(s)),
        _at_least("[T] (A.137) batch", *thesis_batch_sides(s)),
        Condition("[T] N >= 1/(alpha_* - c''(sigma+tau))^2", None, _ratio(s.samples, samples_needed(s))),
    ]


def _shared(s: Setting) -> list[Condition]:
    """Assumption 1, the size of the noise, and the number of patterns."""
    initial = s.key_query_error < 0.5 and s.spectral_norm <= 1 + 1e-9
    most = math.pi / s.patterns
    dims = min(s.value_dim, s.key_dim)
    return [
        Condition(
            "Assumption 1: spectral norms <= 1, delta < 1/2",
            initial,
            min(1 / s.spectral_norm, _ratio(0.5, s.key_query_error)),
        ),
        _at_least("(216) sigma + tau <= pi/M", most, s.disorder),
        Condition("2 < M < min(m_a, m_b)", 2 < s.patterns < dims, dims / s.patterns),
        _at_least("tau <= min(sigma, delta)", min(s.value_error, s.key_query_error), s.token_noise),
        _at_least("tau < kappa/4", s.pattern_gap / 4, s.token_noise),
        _at_least("| |D_+| - |D_-| | <= sqrt(N)", math.sqrt(s.samples), s.imbalance),
    ]


def width_needed(s: Setting) -> float:
    """m >= epsilon^-2 M^2 log N ([P] 7), epsilon = 1 unless given; [T]: M^2 log N."""
    return (s.width_slack or 1.0) ** -2 * s.patterns**2 * math.log(max(s.samples, 2))


def smallest_width_slack(s: Setting) -> float:
    """The smallest epsilon that the width allows: M sqrt(log N / m) (from [P] 7 with constant 1)."""
    return s.patterns * math.sqrt(math.log(max(s.samples, 2)) / s.neurons)


def relevant_fraction_needed(s: Setting) -> float:
    """alpha_# / (epsilon_S exp(-(delta+tau)) (1 - (sigma+tau))) ([P] 8); [T] has no epsilon_S, that is 1. Infinite where
    sigma + tau is not below one."""
    return s.confusion_fraction / s.room if s.room > 0 else math.inf


def relevant_fraction_boundary(nondiscriminative: float, s: Setting) -> float:
    """The smallest alpha_* allowed by (8) when alpha_nd is held fixed: (1 - alpha_nd) / (1 + room) ([P] 68)."""
    return (1 - nondiscriminative) / (1 + s.room)


def batch_for_luck(s: Setting) -> float:
    """B >= ((1+sigma+tau)/(1-sigma-tau))^2 ([P] 223): lucky neurons stay lucky."""
    return ((1 + s.disorder) / (1 - s.disorder)) ** 2 if s.disorder < 1 else math.inf


def batch_for_gates(s: Setting) -> float:
    """B >= (lambda xi sqrt(M) / (epsilon alpha_* p^2))^2 ([P] 134), at p_n(0), where it asks most. Tokens of
    orthonormal patterns have inner products of at most lambda = 2 tau + tau^2."""
    cross = 2 * s.token_noise + s.token_noise**2
    attention = relevant_attention_printed(1.0, s.spread, s.relevant_fraction, 1.0)
    return (
        cross * s.hidden_std * math.sqrt(s.patterns) / (s.slack * s.relevant_fraction * attention**2)
    ) ** 2


def thesis_batch_sides(s: Setting) -> tuple[float, float]:
    """Both sides of exp(-(delta+tau))(1-sigma-tau)(alpha_* - r - sigma - tau) >= r + alpha_#, r = sqrt(log B/B) ([T]
    A.137)."""
    average = math.sqrt(math.log(s.batch) / s.batch)
    gain = math.exp(-s.spread) * (1 - s.disorder)
    return gain * (s.relevant_fraction - average - s.disorder), average + s.confusion_fraction


# Samples and steps -----------------------------------------------------------------------------------------------------


def samples_needed(s: Setting, constant: float = 1.0, c_noise: float = 1.0) -> float:
    """N >= constant / (alpha_* - c''(sigma+tau))^2 ([P] 10, with zeta = 1); infinite where the bracket is not positive."""
    signal = s.relevant_fraction - c_noise * s.disorder
    return constant / signal**2 if signal > 0 else math.inf


def samples_needed_frozen(s: Setting, constant: float = 1.0, c_noise: float = 1.0) -> float:
    """N >= constant / (alpha_*(alpha_* - sigma - tau))^2 ([P] 13: W_K and W_Q are not trained)."""
    signal = s.relevant_fraction * (s.relevant_fraction - c_noise * s.disorder)
    return constant / signal**2 if signal > 0 else math.inf


def steps_needed(s: Setting, constant: float = 1.0) -> float:
    """T = constant / ((1 - epsilon - (sigma+tau) M/pi) eta alpha_*) ([P] 11); infinite where the factor is not positive."""
    return constant / (s.luck * s.learning_rate * s.relevant_fraction) if s.luck > 0 else math.inf


def steps_needed_thesis(s: Setting, constant: float = 1.0) -> float:
    """T = constant eta^(-3/5) / alpha_* ([T]). One eta is lost between (A.83) and (A.87); restored, it is 1/eta. It
    could not be otherwise: with eta^(-3/5) the product eta T goes to 0 with eta, and after so short a time gradient
    flow has not moved."""
    return constant * s.learning_rate ** (-3 / 5) / s.relevant_fraction


def output_growth(s: Setting, attention: float) -> tuple[float, float]:
    """a_1 and a_0 of F >= a_0 (eta T)^5 + a_1 (eta T)^2 ([P] 63, with a = sqrt(m)):

    a_1 = (sqrt(m)/M) luck alpha_* (alpha_* p - (sigma+tau)) p, a_0 = (m/M^2) luck^2 alpha_*^4 p^4.

    (67) goes on with an a_1 that has lost sqrt(m)/M.
    """
    width, alpha, luck = math.sqrt(s.neurons) / s.patterns, s.relevant_fraction, max(s.luck, 0.0)
    first = width * luck * alpha * max(alpha * attention - s.disorder, 0.0) * attention
    return first, (width * luck) ** 2 * (alpha * attention) ** 4


def steps_from_growth(s: Setting, attention: float) -> float:
    """The T at which the bound (63) on the output reaches one; infinite where it never grows.

    (67) solves a_1 (eta T)^2 = 1 as T = 1/(eta a_1) and then drops one alpha_*. The root itself is 1/(eta sqrt(a_1)), which
    scales as 1/(eta alpha_*), where the second power leads: without disorder a_0 = a_1^2, so for a_1 above one (wide
    networks); below, the fifth power leads, and T scales as alpha_*^(-4/5).
    """
    second, fifth = output_growth(s, attention)
    if second + fifth <= 0:
        return math.inf
    top = 2 * max(1.0, second**-0.5 if second else 0.0, fifth**-0.2 if fifth else 0.0)  # clear of the root
    time = scipy.optimize.brentq(lambda x: fifth * x**5 + second * x**2 - 1, 0.0, top)
    return float(time) / s.learning_rate  # pyright: ignore[reportArgumentType]  (the root alone)


def concentration_error(samples: int) -> float:
    """sqrt(log N / N): how far the mean relevant fraction of N samples is from alpha_* ([P] 66)."""
    return math.sqrt(math.log(samples) / samples)


def parameters_saved_by_freezing(dim: int, value_dim: int, key_dim: int, neurons: int) -> float:
    """The share of trainable weights that are W_K and W_Q. 1.94 % at d = m_a = m_b = 10, m = 1000; the paper says 1 %.

    >>> round(parameters_saved_by_freezing(10, 10, 10, 1000), 4)
    0.0194
    """
    attention = 2 * key_dim * dim
    return attention / (attention + value_dim * dim + neurons * value_dim)


# Remarks ---------------------------------------------------------------------------------------------------------------


def remove_irrelevant(s: Setting, removed: float) -> Setting:
    """After the share `removed` of the label-irrelevant tokens is gone (Remark 2): alpha_*' = alpha_*/(alpha_* +
    (1-alpha_*)(1-rho)), and alpha_# falls by the same factor as all that is irrelevant."""
    kept = s.relevant_fraction + (1 - s.relevant_fraction) * (1 - removed)
    few = s.confusion_fraction * (1 - removed) / kept
    return replace(s, relevant_fraction=s.relevant_fraction / kept, confusion_fraction=few)


def samples_ratio(before: Setting, after: Setting) -> float:
    """How the samples needed change ([P] 10), constants cancelling; not a number where the bound is infinite before."""
    return _ratio(samples_needed(after), samples_needed(before))


def steps_ratio(before: Setting, after: Setting) -> float:
    """How the steps needed change ([P] 11); not a number where the bound is infinite before."""
    return _ratio(steps_needed(after), steps_needed(before))


def attention_advantage(relevant_fraction: float) -> float:
    """Remark 1: the frozen network needs alpha_*^-2 times as many samples as the trained one."""
    return relevant_fraction**-2


def _ratio(a: float, b: float) -> float:
    if math.isinf(b):
        return math.nan if math.isinf(a) else 0.0
    return a / b if b else math.inf


def _at_least(name: str, left: float, right: float) -> Condition:
    """A left side that is not even positive misses by a factor of a thousand million: margins are positive."""
    return Condition(name, bool(left >= right), _ratio(max(left, 1e-9), right) if right > 0 else math.inf)
