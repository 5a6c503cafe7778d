"""The theory of the paper as functions: conditions with margins, boundaries, times, bounds and sign patterns.

Numbers in docstrings are the paper's. LOG = log(6 N^2 M^2 / delta) throughout. Functions that carry an unspecified
constant of the paper take it as 1 and say "order". All in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil, exp, floor, inf, isfinite, log, log10, sqrt
from typing import Any

import numpy as np
from scipy.integrate import odeint
from scipy.special import wrightomega

from lemmata.errors import require
from lemmata.measure.compare import Condition
from lemmata.study import Prediction


@dataclass(frozen=True)
class Setting:
    """The numbers that the theorems speak of."""

    samples: int
    tokens: int
    dim: int
    key_dim: int
    signal_norm: float
    weak_noise: float
    noise_ratio: float
    learning_rate: float
    readout_norm: float
    std_qk: float
    std_value: float
    target_loss: float = 0.01
    failure_prob: float = 0.01

    @property
    def noise_power(self) -> float:
        """sigma_p^2 d: the expected squared norm of a weak noise token."""
        return self.weak_noise**2 * self.dim

    @property
    def strong_power(self) -> float:
        """C_p^2 sigma_p^2 d: the expected squared norm of the strong noise token."""
        return self.noise_ratio**2 * self.noise_power

    @property
    def snr(self) -> float:
        """SNR = |mu| / (sigma_p sqrt(d)); note that it uses the weak noise."""
        return self.signal_norm / sqrt(self.noise_power)

    @property
    def control(self) -> float:
        """N SNR^2, the number that decides."""
        return self.samples * self.snr**2

    @property
    def log_union(self) -> float:
        """LOG = log(6 N^2 M^2 / delta)."""
        return log(6 * self.samples**2 * self.tokens**2 / self.failure_prob)

    @property
    def feedback(self) -> float:
        """H = sigma_h^2 d_h C_p^2 sigma_p^2 d / |w_O|^2: how fast attention answers to the values (the squared norm of a
        strong-noise query or key at the start, over that of the read-out)."""
        return self.std_qk**2 * self.key_dim * self.strong_power / self.readout_norm**2


def setting(trial: Any) -> Setting:
    """The theory's setting of a trial.

    With the PyTorch start, standard deviations and the read-out norm are those of its uniform laws.
    """
    data, network = trial.data, trial.network
    torch = network.init == "torch"
    std = data.dim**-0.5 / network.init_divisor / sqrt(3)
    return Setting(
        samples=data.samples,
        tokens=data.tokens,
        dim=data.dim,
        key_dim=network.key_dim,
        signal_norm=data.signal_norm,
        weak_noise=data.weak_noise,
        noise_ratio=data.noise_ratio,
        learning_rate=trial.descent.learning_rate,
        readout_norm=1 / sqrt(3) / network.readout_divisor if torch else network.readout_norm,
        std_qk=std if torch else network.std_qk,
        std_value=std if torch else network.std_value,
        target_loss=trial.descent.target_loss,
    )


def clock(trial: Any) -> np.ndarray:
    """The step sizes added up before each step, from 0 to the cap: the time of gradient flow."""
    step = np.arange(trial.descent.steps, dtype=float)
    left = np.clip(1 - step / trial.ramp_steps, 0, 1) if trial.ramp_steps > 0 else 0 * step
    return np.concatenate([[0.0], np.cumsum(trial.descent.learning_rate * trial.ramp_start**left)])


# Conditions ------------------------------------------------------------------------------------------------------------


def conditions(trial: Any) -> list[Condition]:
    """Condition 4.1, item by item. The margin is the ratio of the two sides, hidden constants 1: above 1 is met.

    Order-wise items (Omega, O) hold or not only with a constant; they are reported as met when the ratio is above 1.
    Item (6) is about constant steps, and none that satisfies it comes to an end (sqrt(d_h)/eps steps). Steps that ramp up
    are held to another rule in its place: each at most a hundredth of the time gone by. Then descent follows gradient flow,
    as it does under (6), and halving the steps changes nothing (claim `step-schedule`).
    """
    s = setting(trial)
    least = min(s.signal_norm**-2, 1 / s.noise_power)
    low, high = init_window(s)
    return [
        _at_least("(1) key dimension d_h >= max(SNR^4, SNR^-4) N^2 / eps^2", s.key_dim, key_dim_needed(s)),
        _at_least(
            "(2) input dimension d >= N^2 d_h / eps^2", s.dim, s.samples**2 * s.key_dim / s.target_loss**2
        ),
        _at_least("(3) samples N >= polylog(d)", s.samples, log(s.dim)),
        Condition("(4) tokens M = Theta(1)", None, 1.0),
        Condition("(5) read-out norm |w_O| = Theta(1)", None, min(s.readout_norm, 1 / s.readout_norm)),
        _step_size(trial, least / sqrt(s.key_dim)),
        _at_least(
            "(7) value init sigma_V <= min(|mu|^-1, ...) / (|w_O| d_h^(1/4))",
            value_std_allowed(s),
            s.std_value,
        ),
        _at_least("(8a) query/key init at least m LOG^-2 / sqrt(d_h)", s.std_qk**2, low),
        _at_least("(8b) query/key init at most m LOG^-3/2 / sqrt(d_h)", high, s.std_qk**2),
        _at_least("(9) target loss eps <= 1/polylog(d)", 1 / log(s.dim), s.target_loss),
        _equal("(10) noise ratio C_p = 5 sqrt(M)", s.noise_ratio, 5 * sqrt(s.tokens)),
    ]


def init_window(s: Setting) -> tuple[float, float]:
    """Condition (8): sigma_h^2 from `m d_h^-1/2 LOG^-2` to `m d_h^-1/2 LOG^-3/2`, m = min(|mu|^-2, 1/(sigma_p^2 d))."""
    middle = min(s.signal_norm**-2, 1 / s.noise_power) / sqrt(s.key_dim)
    return middle * s.log_union**-2, middle * s.log_union**-1.5


def benign_conditions(trial: Any) -> list[Condition]:
    """Theorem 4.1: Condition 4.1, N SNR^2 = Omega(1), and what its proof asks literally: N SNR^2 > 60 M^2 C_p^2."""
    s = setting(trial)
    return [
        *conditions(trial),
        _at_least("Theorem 4.1: N SNR^2 >= 1", s.control, 1),
        _at_least("proof of Theorem 4.1: N SNR^2 > 60 M^2 C_p^2", s.control, literal_control(s)),
    ]


def literal_control(s: Setting) -> float:
    """60 M^2 C_p^2: the N SNR^2 above which the proof of Theorem 4.1 holds with its constants as printed (Lemma D.5)."""
    return 60 * s.tokens**2 * s.noise_ratio**2


def harmful_conditions(trial: Any) -> list[Condition]:
    """Theorem 4.2: Condition 4.1, and 1/(N SNR^2) = Omega(1) with the constants of its proof (144): N SNR^2 <= 4 and
    C_p^2 > 24 M."""
    s = setting(trial)
    return [
        *conditions(trial),
        _at_least("proof of Theorem 4.2: N SNR^2 <= 4", 4, s.control),
        _at_least("proof of Theorem 4.2: C_p^2 > 24 M", s.noise_ratio**2, 24 * s.tokens),
    ]


def _step_size(trial: Any, allowed: float) -> Condition:
    if trial.ramp_steps > 0:
        name = (
            "(6) step size at most a hundredth of the time gone by (a schedule, in place of a constant step)"
        )
        return _at_least(name, 0.01, log(1 / trial.ramp_start) / trial.ramp_steps)
    name = "(6) step size eta <= min(|mu|^-2, 1/(sigma_p^2 d)) / sqrt(d_h)"
    return _at_least(name, allowed, trial.descent.learning_rate)


def key_dim_needed(s: Setting) -> float:
    """Condition (1), order: d_h >= max(SNR^4, SNR^-4) N^2 / eps^2."""
    return max(s.snr**4, s.snr**-4) * s.samples**2 / s.target_loss**2


def value_std_allowed(s: Setting) -> float:
    """Condition (7), order: sigma_V <= min(|mu|^-1, (sigma_p^2 d)^-1/2) / (|w_O| d_h^1/4)."""
    return min(1 / s.signal_norm, s.noise_power**-0.5) / (s.readout_norm * s.key_dim**0.25)


def _at_least(name: str, have: float, need: float) -> Condition:
    """To rounding: a setting may sit on the edge of a condition."""
    return Condition(name, bool(have >= (1 - 1e-9) * need), have / need)


def _equal(name: str, have: float, need: float) -> Condition:
    return Condition(name, bool(abs(have / need - 1) < 0.05), min(have / need, need / have))


# The phase boundary ----------------------------------------------------------------------------------------------------


def drive_ratio(s: Setting) -> float:
    """R0 = |S_y| |mu|^2 / |xi_2|^2 ~ N SNR^2 / (2 C_p^2): the speed of the signal's value over that of the strong noise
    while attention is uniform and the loss derivative is 1/2. Benign when above 1 (mean field; not in the paper)."""
    return s.control / (2 * s.noise_ratio**2)


def critical_control(noise_ratio: float) -> float:
    """The critical N SNR^2 = 2 C_p^2 of the mean field."""
    return 2 * noise_ratio**2


def boundary(control: float) -> Callable[[np.ndarray], np.ndarray]:
    """SNR as a function of N along `N SNR^2 = control`.

    >>> boundary(critical_control(20.0))(np.array([2.0, 8.0]))
    array([20., 10.])
    """
    return lambda samples: np.sqrt(control / np.asarray(samples, float))


def _race(ratio: float, samples: int, tokens: int, noise_ratio: float, feedback: float) -> float:
    """The lead of the signal's value over the strong noise's at the end of the mean field with attention.

    With features orthogonal and norms as at the start, and time in units of `eta C_p^2 sigma_p^2 d |w_O|^2 / (2NM)`, each
    kind of token a (signal, strong, weak) has a value V_a and each pair a logit C_ab:

        dV_a  = 2g r_a sum_l phi_la,                    r = (R0, 1, C_p^-2)
        dC_ab = 2g H v_ab phi_ab (V_b - sum_c phi_ac V_c),   v_ab = 2 p_a p_b, but N p_a^2 for signal and signal,

    with p = (2 R0/N, 1, C_p^-2) the squared norms over that of the strong noise: a signal row is moved by half of all
    samples, a noise row by its own alone. Time is scaled by sqrt(H) below, so that only g = sigmoid(-f) still knows H.
    """
    kinds = range(3 if tokens > 2 else 2)
    many = (1.0, 1.0, tokens - 2.0)
    drive = (ratio, 1.0, noise_ratio**-2)
    power = (2 * ratio / samples, 1.0, noise_ratio**-2)
    speed = [[2 * power[a] * power[b] for b in kinds] for a in kinds]
    speed[0][0] = samples * power[0] ** 2

    def flow(_: float, state: np.ndarray) -> list[float]:
        """In plain numbers: arrays of three would take ten times as long."""
        values, *logits = (state[i : i + len(kinds)].tolist() for i in range(0, len(state), len(kinds)))
        voted, moved, output = [0.0] * len(kinds), [], 0.0
        for a in kinds:
            top = max(logits[a])
            weights = [exp(logit - top) for logit in logits[a]]
            whole = sum(many[b] * weights[b] for b in kinds)
            weights = [weight / whole for weight in weights]
            mean = sum(many[b] * weights[b] * values[b] for b in kinds)
            output += many[a] * mean
            for b in kinds:
                voted[b] += many[a] * weights[b]
                moved.append(speed[a][b] * weights[b] * (values[b] - mean))
        slope = 2 / (1 + exp(min(output / tokens / sqrt(feedback), 700.0)))
        return [slope * drive[a] * voted[a] for a in kinds] + [slope * one for one in moved]

    start = np.zeros(len(kinds) + len(kinds) ** 2)
    end = odeint(flow, start, (0, 200), tfirst=True, rtol=1e-6, atol=1e-8, mxstep=10_000)[-1]
    return float(end[0] - end[1])


@cache
def critical_ratio(samples: int, tokens: int, noise_ratio: float, feedback: float = inf) -> float:
    """c*(N, M): the drive ratio R0 above which the signal wins when attention answers to the values (not in the paper).

    The boundary lies at N SNR^2 = 2 C_p^2 c*. Without feedback (H -> 0: small queries and keys) c* = 1. With it, a noise
    query moves N/2 times faster towards its own noise than towards the signal, and c* rises with N and M; with two tokens
    signal and noise are each other's mirror image at R0 = 1, and c* = 1 whatever the feedback.

    >>> round(critical_ratio(10, 3, 75**0.5), 2), round(critical_ratio(10, 3, 75**0.5, 1e-3), 2)
    (1.22, 1.0)
    """
    low, high = 0.9, 1.1
    given = (samples, tokens, noise_ratio, min(feedback, 1e12))
    while _race(high, *given) < 0:
        low, high = high, 1.5 * high
    while high / low > 1.001:
        middle = sqrt(low * high)
        low, high = (low, middle) if _race(middle, *given) > 0 else (middle, high)
    return sqrt(low * high)


def critical_ratio_of(s: Setting) -> float:
    """c* of a setting, interpolated in log H between quarters of a decade; below 1e-4 and above 1e4 it no longer changes."""
    place = 4 * log10(min(max(s.feedback, 1e-4), 1e4))
    low, high = (
        critical_ratio(s.samples, s.tokens, s.noise_ratio, 10 ** (end(place) / 4)) for end in (floor, ceil)
    )
    return low + (high - low) * (place - floor(place))


PAPER_CONTROL = 1000.0
"""The red curve of Figure 1: N SNR^2 = 1000, fitted by the authors."""


# Times -----------------------------------------------------------------------------------------------------------------


def benign_rate(s: Setting) -> float:
    """The speed of V_+ with attention saturated on the signal: dV/dt = rate sigmoid(-V), rate = eta |mu|^2 |w_O|^2 / 2
    (half of the samples have each label)."""
    return s.learning_rate * s.signal_norm**2 * s.readout_norm**2 / 2


def harmful_rate(s: Setting) -> float:
    """The speed of y_n V_n,2 with attention saturated on the strong noise: rate = eta C_p^2 sigma_p^2 d |w_O|^2 / N."""
    return s.learning_rate * s.strong_power * s.readout_norm**2 / s.samples


def value_growth(rate: float, start: float = 0.0) -> Callable[[np.ndarray | float], np.ndarray]:
    """V(t) that solves `V + e^V = V(0) + e^V(0) + rate t`: linear first, logarithmic later.

    >>> v = value_growth(rate=1.0)
    >>> bool(abs(v(0.0)) < 1e-12), bool(abs(v(1e6) - np.log(1e6)) < 1e-4)
    (True, True)
    """

    def value(t: np.ndarray | float) -> np.ndarray:
        return np.asarray(np.log(wrightomega(start + exp(start) + rate * np.asarray(t, float))))

    return value


def convergence_time(rate: float, target_loss: float) -> float:
    """Steps from V = 0 until log(1 + e^-V) = eps: `V + e^V = 1 + rate t` at V = -log(e^eps - 1); about 1/(rate eps).

    With the rates above: T ~ 2/(eta eps |mu|^2 |w_O|^2) (Theorem 4.1) and T ~ N/(eta eps C_p^2 sigma_p^2 d |w_O|^2)
    (Theorem 4.2), constants by mean field.
    """
    margin = -log(np.expm1(target_loss))
    return (margin + exp(margin) - 1) / rate


def benign_stage1_end(s: Setting) -> float:
    """T1 of Lemma D.5 (5.2), explicit: `10 M (3M+1) N / (eta d_h^1/4 (N |mu|^2 - 60 M^2 C_p^2 sigma_p^2 d) |w_O|^2)`.

    Infinite where the bracket is not positive: the lemma does not apply.
    """
    bracket = s.samples * s.signal_norm**2 - 60 * s.tokens**2 * s.strong_power
    if bracket <= 0:
        return inf
    above = 10 * s.tokens * (3 * s.tokens + 1) * s.samples
    return above / (s.learning_rate * s.key_dim**0.25 * bracket * s.readout_norm**2)


def harmful_stage1_end(s: Setting) -> float:
    """T1 of Lemma E.3, explicit: `4 M (3M+1) N / (eta d_h^1/4 (C_p^2 - 24 M) sigma_p^2 d |w_O|^2)`; infinite where
    C_p^2 <= 24 M."""
    if s.noise_ratio**2 <= 24 * s.tokens:
        return inf
    above = 4 * s.tokens * (3 * s.tokens + 1) * s.samples
    below = s.learning_rate * s.key_dim**0.25 * (s.noise_ratio**2 - 24 * s.tokens) * s.noise_power
    return above / (below * s.readout_norm**2)


def benign_stage2_end(s: Setting) -> float:
    """T2, order: 1 / (eta |mu|^2 |w_O|^2 LOG)."""
    return 1 / (s.learning_rate * s.signal_norm**2 * s.readout_norm**2 * s.log_union)


def harmful_stage2_end(s: Setting) -> float:
    """T2, order: N / (eta sigma_p^2 d |w_O|^2 LOG)."""
    return s.samples / (s.learning_rate * s.noise_power * s.readout_norm**2 * s.log_union)


def benign_stage3_end(s: Setting) -> float:
    """T3 (Lemma D.7, Theorem 4.1), order: 1 / (eta eps |mu|^2 |w_O|^2)."""
    return 1 / (s.learning_rate * s.target_loss * s.signal_norm**2 * s.readout_norm**2)


def harmful_stage3_end(s: Setting) -> float:
    """T3 (Lemma E.5, Theorem 4.2), order: N / (eta eps sigma_p^2 d |w_O|^2)."""
    return s.samples / (s.learning_rate * s.target_loss * s.noise_power * s.readout_norm**2)


# Data and initialisation -----------------------------------------------------------------------------------------------


def label_counts_hold(labels: np.ndarray, failure_prob: float) -> bool | None:
    """Lemma C.1: if N > 8 log(4/delta) then each label has N/4 to 3N/4 of the samples; None where it does not apply."""
    n = len(labels)
    if n <= 8 * log(4 / failure_prob):
        return None
    positive = int(np.sum(labels > 0))
    return n / 4 <= positive <= 3 * n / 4


def noise_norm_range(power: float) -> tuple[float, float]:
    """Lemma C.4: |xi|^2 lies in [1/2, 3/2] times its expectation."""
    return power / 2, 3 * power / 2


def noise_product_bound(s: Setting) -> float:
    """Lemma C.4: |<xi, xi'>| <= 2 C_p^2 sigma_p^2 sqrt(d log(4 N^2 M^2 / delta)) for different noise tokens."""
    strong = s.noise_ratio**2 * s.weak_noise**2
    return 2 * strong * sqrt(s.dim * log(4 * s.samples**2 * s.tokens**2 / s.failure_prob))


def dimension_for_small_cross_terms(s: Setting) -> float:
    """(17): d >= 16 N^2 log(4 N^2 M^2 / delta), so that products between different tokens are negligible."""
    return 16 * s.samples**2 * log(4 * s.samples**2 * s.tokens**2 / s.failure_prob)


def initial_value_bound(s: Setting, row_norm: float, signal: bool) -> float:
    """Lemma C.2 before Condition (7) is used: |x^T W_V w_O| <= c sigma_V |w_O| |x| sqrt(log(2NM/delta)), c = 1 for signals
    and 2 for noise; then d_h^-1/4. (A normal tail of probability delta/NM asks for c = sqrt(2).)"""
    factor = 1 if signal else 2
    union = log(2 * s.samples * s.tokens / s.failure_prob)
    return factor * s.std_value * s.readout_norm * row_norm * sqrt(union)


def row_norm_range(s: Setting, power: float) -> tuple[float, float]:
    """Lemma C.3: |q|^2 and |k|^2 of a feature with squared norm `power` lie in [1/2, 3/2] power sigma_h^2 d_h."""
    middle = power * s.std_qk**2 * s.key_dim
    return middle / 2, 3 * middle / 2


def row_product_bound(s: Setting, norm_a: float, norm_b: float) -> float:
    """Lemma C.3: every product between different rows is at most 2 |a| |b| sigma_h^2 sqrt(d_h LOG)."""
    return 2 * norm_a * norm_b * s.std_qk**2 * sqrt(s.key_dim * s.log_union)


# Bounds that hold step by step -----------------------------------------------------------------------------------------


def slope_range(largest_value: float) -> tuple[float, float]:
    """Lemma D.1, exact: 1/(1+e^m) <= g_n <= 1/(1+e^-m) with m = max |V|, because |f_n| <= m always."""
    return 1 / (1 + exp(largest_value)), 1 / (1 + exp(-largest_value))


def attention_range(largest_logit: float, tokens: int) -> tuple[float, float]:
    """Lemma D.2, exact: every weight is in [1/(1+(M-1)e^2l), 1/(1+(M-1)e^-2l)] when all logits are at most l in size."""
    return 1 / (1 + (tokens - 1) * exp(2 * largest_logit)), 1 / (1 + (tokens - 1) * exp(-2 * largest_logit))


def signal_value_step_bound(s: Setting) -> float:
    """Lemma D.3: |change of gamma_V| <= 3 eta |mu|^2 / 4, at all times (value change: times |w_O|^2)."""
    return 0.75 * s.learning_rate * s.signal_norm**2


def noise_value_step_bound(s: Setting) -> float:
    """Lemma D.3: |change of rho_V| <= 2 eta C_p^2 sigma_p^2 d / N, at all times (value change: times |w_O|^2)."""
    return 2 * s.learning_rate * s.strong_power / s.samples


def early_signal_value_step(s: Setting) -> float:
    """Proof of Lemma D.5: gamma_V grows by at least eta |mu|^2 / (10 M) a step in stage I."""
    return s.learning_rate * s.signal_norm**2 / (10 * s.tokens)


def early_strong_value_step(s: Setting) -> float:
    """Proof of Lemma E.3: y_n rho_V,n,2 grows by at least eta C_p^2 sigma_p^2 d / (4NM) a step in stage I."""
    return s.learning_rate * s.strong_power / (4 * s.samples * s.tokens)


def benign_values_at_stage1_end(s: Setting) -> tuple[float, float]:
    """Proof of Lemma D.5: V_+ at T1 is at least the first number, every |V_n,i| at most the second."""
    root, bracket = s.key_dim**-0.25, s.samples * s.signal_norm**2 - 60 * s.tokens**2 * s.strong_power
    signal = -root + root * (3 * s.tokens + 1) * s.samples * s.signal_norm**2 / bracket
    noise = root + root * 20 * s.tokens * s.strong_power * (3 * s.tokens + 1) / bracket
    return signal, noise


def harmful_values_at_stage1_end(s: Setting) -> tuple[float, float]:
    """Proof of Lemma E.3: y_n V_n,2 at T1 is at least the first number, every other |V| at most the second."""
    root, excess = s.key_dim**-0.25, s.noise_ratio**2 - 24 * s.tokens
    strong = -root + root * s.noise_ratio**2 * (3 * s.tokens + 1) / excess
    return strong, root + root * 8 * (3 * s.tokens + 1) / excess


@dataclass(frozen=True)
class CoefficientBounds:
    """Section F.4 for one sample with label +1 whose signal value leads 3M times; attention `phi[query, key]`.

    Lower bounds on what grows and upper bounds on what falls; `noise_*` rows need d large, and the two `beta` ones
    hold with 1/6 in the worst case where the paper prints 1/5.
    """

    alpha_signal: float
    alpha_signal_to_noise: np.ndarray
    beta_noise_to_signal: np.ndarray
    noise_alpha_signal: np.ndarray
    noise_beta_signal: np.ndarray
    noise_alpha_noise: np.ndarray
    noise_beta_noise: np.ndarray


def coefficient_bounds(s: Setting, phi: np.ndarray, slope: float, signal_value: float) -> CoefficientBounds:
    """The explicit bounds of Section F.4. `alpha_signal` is this sample's share of the sum over samples."""
    front = s.learning_rate * slope * signal_value / (s.samples * s.tokens)
    signal, noise = front * s.signal_norm**2, front * s.noise_power
    own, others = phi[0, 0], phi[1:, 0]
    return CoefficientBounds(
        alpha_signal=signal / 2 * own * (1 - own),
        alpha_signal_to_noise=-signal / 4 * own * phi[0, 1:],
        beta_noise_to_signal=signal / 2 * others * (1 - others),
        noise_alpha_signal=noise / 5 * others * (1 - others),
        noise_beta_signal=-noise / 6 * own * phi[0, 1:],
        noise_alpha_noise=-noise / 9 * others[:, None] * phi[1:, 1:],
        noise_beta_noise=-noise / 6 * others[:, None] * phi[1:, 1:],
    )


def signs_as_predicted(alpha: np.ndarray, beta: np.ndarray, index: np.ndarray, winner: int) -> float:
    """Section F.4: the fraction of in-sample coefficients with the sign that they have from T1 on.

    Towards the winner's key (alpha) and from it (beta) they are positive, all others negative; the winner is token 0 in the
    benign regime and, by the same symmetry, token 1 in the harmful one. `index[n, i]` is the row of token i of sample n.
    """
    right: list[np.ndarray] = []
    for rows in index:
        a, b = alpha[np.ix_(rows, rows)], beta[np.ix_(rows, rows)]
        others = np.arange(len(rows)) != winner
        right += [a[:, winner] >= 0, (a[:, others] <= 0).ravel(), b[winner] >= 0, (b[others] <= 0).ravel()]
    return float(np.mean(np.concatenate(right)))


# Growth over the stages ------------------------------------------------------------------------------------------------


def linear_value_bounds(s: Setting) -> tuple[float, float]:
    """B(t): from T1 on V_+ grows by between 1/(10M) and 3/4 times eta |mu|^2 |w_O|^2 a step while the slope is 1/2."""
    front = s.learning_rate * s.signal_norm**2 * s.readout_norm**2
    return front / (10 * s.tokens), 0.75 * front


def benign_gap_bound(
    s: Setting, gap_at_start: float, signal_query: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """Lemma 5.3, order: `Lambda(t) >= log(e^Lambda(T1) + c (t - T1)(t - T1 - 1))`, logarithmic in t^2.

    c = eta^2 |mu|^2 x |w_O|^2 d_h^1/2 / (N LOG^2), with x = |mu|^2 for signal queries and sigma_p^2 d for noise queries.
    """
    x = s.signal_norm**2 if signal_query else s.noise_power
    front = (s.learning_rate * s.signal_norm * s.readout_norm) ** 2 * x * sqrt(s.key_dim)
    return _log_square(gap_at_start, front / (s.samples * s.log_union**2))


def harmful_gap_bound(
    s: Setting, gap_at_start: float, signal_query: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """L(t), order: the same for Psi with c = eta^2 sigma_p^2 d x |w_O|^2 d_h^1/2 / (N^2 LOG^2)."""
    x = s.signal_norm**2 if signal_query else s.noise_power
    front = (s.learning_rate * s.readout_norm) ** 2 * s.noise_power * x * sqrt(s.key_dim)
    return _log_square(gap_at_start, front / (s.samples**2 * s.log_union**2))


def _log_square(start: float, constant: float) -> Callable[[np.ndarray], np.ndarray]:
    """Of the steps t since T1; the first one is not promised anything: (t - T1)(t - T1 - 1)."""
    return lambda t: np.log(exp(start) + constant * np.asarray(t, float) * (np.asarray(t, float) - 1))


def stage2_logit_bound(s: Setting) -> float:
    """E(t): in-sample logits stay below log(d_h^1/2) in stage II. M(t), of the harmful regime, prints twice that for
    logits, and this for their gaps Psi."""
    return log(sqrt(s.key_dim))


def stage3_logit_bound(s: Setting) -> float:
    """I(t): in-sample logits stay below log(d_h^1/2 / eps) in stage III. Q(t), of the harmful regime, prints twice that
    for logits, and this for their gaps Psi."""
    return log(sqrt(s.key_dim) / s.target_loss)


def stage3_value_upper(s: Setting, value_at_start: float) -> Callable[[np.ndarray], np.ndarray]:
    """(82)-(85): e^(V_+/2) <= e^(V_+(T2)/2) + 3/8 eta |mu|^2 |w_O|^2 (t - T2), with C_18 = 1."""
    front = 0.375 * s.learning_rate * s.signal_norm**2 * s.readout_norm**2
    return lambda t: 2 * np.log(exp(value_at_start / 2) + front * np.asarray(t, float))


def stage3_slope_range(signal_value: float) -> tuple[float, float]:
    """Proof of Lemma 5.4: e^-V/2 <= g_n <= e^(-V/2), because V/2 <= f_n <= V (and 1/(1+e^V) >= e^-V/2 for V >= 0)."""
    return exp(-signal_value) / 2, exp(-signal_value / 2)


def benign_leak(s: Setting) -> tuple[float, float]:
    """(64), (65), order: attention left on noise keys at the end: N LOG^3/d_h^1/2 from the signal query and
    N SNR^2 LOG^3/d_h^1/2 from noise queries."""
    unit = s.log_union**3 / sqrt(s.key_dim)
    return s.samples * unit, s.control * unit


def harmful_leak(s: Setting) -> tuple[float, float]:
    """(165)-(170), order: attention left off the strong noise key: SNR^-2 LOG^3/d_h^1/2 from the signal query and
    LOG^3/d_h^1/2 from noise queries, over |w_O|^2."""
    unit = s.log_union**3 / (s.readout_norm**2 * sqrt(s.key_dim))
    return unit / s.snr**2, unit


# Generalisation --------------------------------------------------------------------------------------------------------


def least_signal_attention(tokens: int) -> float:
    """Lemma D.8: on fresh data the signal query keeps at least 1/(2M) of its attention on the signal."""
    return 1 / (2 * tokens)


FRESH_NOISE_VALUE = 1.0
"""Lemma D.9: the value of fresh noise stays at most 1."""


def benign_margin(s: Setting) -> float:
    """Lemma 5.5 with its constants at 1: y f >= log(1/eps)/(2 M^2) - 1 on fresh data."""
    return log(1 / s.target_loss) / (2 * s.tokens**2) - 1


def benign_test_loss_bound(s: Setting) -> float:
    """Lemma D.10: L_D <= 3 eps^(1/(2 M^2)) + delta^1/2 / N, constants 1; says nothing (above log 2) unless eps is tiny."""
    return 3 * s.target_loss ** (1 / (2 * s.tokens**2)) + sqrt(s.failure_prob) / s.samples


def fresh_loss_exponent(tokens: int) -> float:
    """The test loss goes as eps to this power, (2M - 1)/M^2 (mean field; not in the paper, which has 1/(2 M^2)).

    On fresh data the signal query attends to the signal and noise queries to all tokens alike, so the margin is
    (1 + (M - 1)/M)/M of the signal's value, and that is log(1/eps).
    """
    return (2 * tokens - 1) / tokens**2


HARMFUL_LOSS_FLOOR = 0.1
"""Theorem 4.2: the test loss stays at least 0.1."""

HARMFUL_LOSS_FLOOR_PROOF = 0.5 * log(1 + exp(-0.5))
"""Lemma E.6: y f <= 1/2 with probability at least 1/2, hence L_D >= log(1 + e^-1/2)/2 = 0.237."""


def weight_movement(s: Setting) -> tuple[float, float, float]:
    """(119), (125), (129), order: |W_K| moves by at most these in stages I, II, III (Frobenius norm)."""
    inverse = 1 / s.snr
    first = s.samples * s.std_qk
    second = sqrt(s.samples) * (1 + inverse) * s.std_qk * s.key_dim**0.25 * s.log_union
    most = max(s.signal_norm**2, s.noise_power) / (s.signal_norm * sqrt(s.noise_power))
    third = most * s.samples * s.log_union**3 * log(1 / s.target_loss) * s.std_qk / s.target_loss
    return first, second, third


def value_movement(s: Setting, benign: bool) -> float:
    """(134) and (176), order: |W_V w_O| moves by max(|mu|, sigma_p sqrt(d))/(eps |mu|^2), in the harmful regime by
    N/(eps sigma_p sqrt(d))."""
    if benign:
        return max(s.signal_norm, sqrt(s.noise_power)) / (s.target_loss * s.signal_norm**2)
    return s.samples / (s.target_loss * sqrt(s.noise_power))


# Why small things are small, and what follows for practice -----------------------------------------------------------


def lower_order_ratios(gram: np.ndarray, key_gram: np.ndarray) -> tuple[float, float]:
    """Section F.12: the largest off-diagonal over the smallest diagonal entry, of G (small for large d) and of K K^T
    (small for large d_h)."""

    def ratio(matrix: np.ndarray) -> float:
        off = matrix - np.diag(np.diag(matrix))
        return float(np.max(np.abs(off)) / np.min(np.diag(matrix)))

    return ratio(gram), ratio(key_gram)


def control_after_augmentation(s: Setting, copies: float, noise_inflation: float) -> float:
    """Appendix G: noise augmentation makes `copies` times the samples at `noise_inflation` times the noise;
    N SNR^2 becomes copies / noise_inflation^2 times what it was."""
    return s.control * copies / noise_inflation**2


def samples_needed(s: Setting) -> float:
    """How many samples put this signal and noise on the benign side of the mean-field boundary: 2 C_p^2 / SNR^2."""
    return critical_control(s.noise_ratio) / s.snr**2


# Predictions for a trial -----------------------------------------------------------------------------------------------


def predict(trial: Any) -> tuple[list[Condition], list[Prediction]]:
    """What the theory says about a trial, without training it."""
    s = setting(trial)
    require(s.target_loss > 0, "the theorems are about a target loss eps > 0; set descent.target_loss.")
    constant = critical_ratio_of(s)
    benign = drive_ratio(s) > constant
    rate, stage1, stage2, stage3, leak = (
        (benign_rate, benign_stage1_end, benign_stage2_end, benign_stage3_end, benign_leak)
        if benign
        else (harmful_rate, harmful_stage1_end, harmful_stage2_end, harmful_stage3_end, harmful_leak)
    )
    explicit = stage1(s)
    off_signal, off_noise = leak(s)
    predictions = [
        Prediction("N SNR^2", s.control),
        Prediction("SNR", s.snr),
        Prediction("critical N SNR^2 (mean field, 2 C_p^2)", critical_control(s.noise_ratio)),
        Prediction("drive ratio R0 = N SNR^2 / (2 C_p^2)", drive_ratio(s)),
        Prediction("critical drive ratio with attention feedback", constant),
        Prediction("regime", "benign" if benign else "harmful"),
        Prediction("samples needed to generalise (mean field)", samples_needed(s)),
        Prediction("steps to the target loss (mean field)", convergence_time(rate(s), s.target_loss)),
        Prediction(
            "end of stage I, explicit bound (steps)",
            explicit if isfinite(explicit) else "the lemma does not apply",
        ),
        Prediction("end of stage II, order (steps)", stage2(s)),
        Prediction("end of stage III, order (steps)", stage3(s)),
        Prediction("attention leak of the signal query, order", off_signal),
        Prediction("attention leak of noise queries, order", off_noise),
        Prediction("test loss bound", benign_test_loss_bound(s) if benign else HARMFUL_LOSS_FLOOR_PROOF),
    ]
    return benign_conditions(trial) if benign else harmful_conditions(trial), predictions
