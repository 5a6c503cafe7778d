"""Theorems 6.3.3, 6.3.4 and 6.3.7 with their propositions and lemmas, as printed and as mended; the exact law of the vote.

Order-wise statements have their hidden constants set to 1.
"""

from math import ceil, exp, inf, log, pi, sqrt
from typing import NamedTuple

import numpy as np
import scipy

from lemmata.errors import require
from lemmata.measure.compare import Condition
from lemmata.parts.probes import cap_share
from lemmata.studies.in_context_learning.data import coverage
from lemmata.studies.in_context_learning.trials import Classic, Layer, Stack
from lemmata.study import Prediction

# Tasks: Condition 6.3.2, Lemma E.4.11 -----------------------------------------------------------------------------------


def covers(tasks: np.ndarray, patterns: int) -> bool:
    """Condition 6.3.2: every pattern is mapped to either label by exactly |T_tr|/M_1 >= 1 tasks."""
    counts = coverage(tasks, patterns)
    return bool(np.all(counts == len(tasks) / patterns)) and len(tasks) >= patterns


def least_tasks(patterns: int) -> int:
    """Lemma E.4.11: |T_tr| >= M_1, attained by the cyclic set."""
    return patterns


def task_share(patterns: int) -> float:
    """M_1 of M_1 (M_1 - 1) tasks are a share of `1/(M_1 - 1)`."""
    return 1 / (patterns - 1)


def task_share_printed(patterns: int) -> float:
    """As printed: `(M_1 - 1)^(-1/2)`."""
    return (patterns - 1) ** -0.5


# Sizes: Theorem 6.3.3 ---------------------------------------------------------------------------------------------------


def neurons_needed(patterns: int) -> float:
    """(i): `m >= M_1^2 log M_1`."""
    return patterns**2 * log(patterns)


def batch_needed(patterns: int, loss: float) -> float:
    """(ii): `B > max(eps^-2, M_1) log M_1`."""
    return max(loss**-2, patterns) * log(patterns)


def train_length(patterns: int, fraction: float, norm: float) -> float:
    """(6.9): `l_tr >= max(log M_1 / alpha, 1/(beta^2 alpha))`."""
    return max(log(patterns), norm**-2) / fraction


def test_length_printed(fraction: float) -> float:
    """(6.9): `l_ts >= 1/alpha'`."""
    return 1 / fraction


def test_length(fraction: float) -> float:
    """One context of the query's own pattern is certain from `l_ts = 2/alpha'` on: its share is alpha'/2 (mended)."""
    return 2 / fraction


def iterations(rate: float, patterns: int, fraction: float, norm: float) -> float:
    """(6.10): `T = eta^-1 M_1 alpha^(-2/3) beta^(-2/3) sqrt(log M_1)`."""
    return patterns * (fraction * norm) ** (-2 / 3) * sqrt(log(patterns)) / rate


def iterations_proof(rate: float, patterns: int, fraction: float, norm: float, diagonal: float) -> float:
    """(E.62), which keeps delta: (6.10) times `delta^(-2/3)`."""
    return iterations(rate, patterns, fraction, norm) * diagonal ** (-2 / 3)


def iterations_any_width(
    rate: float, patterns: int, fraction: float, norm: float, diagonal: float, vote: float
) -> float:
    """The step at which the cubic term of (E.61) is 1, for any |a_i| = `vote` (ours): `(eta T)^3 = a^2 / (delta^2 (beta^2 + 1)
    alpha^2 M_1)` with a = 1/|a_i|; (6.10) is what it becomes with a = m of the order of M_1^2."""
    cube = vote**-2 / (diagonal**2 * (norm**2 + 1) * fraction**2 * patterns)
    return cube ** (1 / 3) / rate


# Chances: Lemmas E.4.1, E.4.3, (E.42) -----------------------------------------------------------------------------------


def chernoff_above(count: int, mean: float, excess: float) -> float:
    """(E.3): `Pr(p_hat >= (1 + g) p) <= exp(-m p g^2 / 3)`."""
    return exp(-count * mean * excess**2 / 3)


def chernoff_below(count: int, mean: float, lack: float) -> float:
    """(E.4): `Pr(p_hat <= (1 - g) p) <= exp(-m p g^2 / 2)`."""
    return exp(-count * mean * lack**2 / 2)


def few_matches_printed(length: int, fraction: float, lack: float) -> float:
    """(E.42): contexts of one decisive pattern are at most (1 - c) alpha/2 of all with probability `exp(-l c^2 alpha/2)`; (E.4)
    gives half that exponent (`chernoff_below(l, alpha/2, c)`)."""
    return exp(-length * lack**2 * fraction / 2)


def few_matches(length: int, fraction: float, lack: float) -> float:
    """The probability that (E.42) bounds, exactly."""
    return float(
        scipy.stats.binom.cdf(np.floor((1 - lack) * fraction / 2 * length + 1e-9), length, fraction / 2)
    )


# Attention: Proposition 6.4.1, Corollary 6.4.3 --------------------------------------------------------------------------


def first_mass(fraction: float, diagonal: float, norm: float) -> float:
    """Attention on contexts of the query's pattern before training: `(alpha/2) E / (1 + (alpha/2)(E - 1))` with
    E = exp(delta^2 beta^2) (ours; long prompts, no noise)."""
    own = fraction / 2
    return own / (own + (1 - own) * exp(-((diagonal * norm) ** 2)))


def trained_mass(fraction: float, patterns: int) -> float:
    """(E.55), (E.71): at least `1 - (2 - alpha)/(alpha M_1)`; Corollary 6.4.3 says 1 - M_1^-C for any C."""
    return 1 - (2 - fraction) / (fraction * patterns)


def main_projection(patterns: int) -> float:
    """(6.17): a pattern's own component grows to at least `sqrt(log M_1)`."""
    return sqrt(log(patterns))


def other_share(patterns: int) -> float:
    """(E.81), (E.88): components along other relevant patterns are at most `1/M_1` of that."""
    return 1 / patterns


def irrelevant_share(irrelevant: int) -> float:
    """(E.82), (E.89): components along irrelevant patterns are at most `1/M_2` of that."""
    return 1 / irrelevant


def partner_share(patterns: int, shifts: int = 1) -> float:
    """The share of the main component that the conserved sum `W_K sum_j mu_j` leaves to each of the min(2 U, M_1 - 1) partners,
    with nothing elsewhere: `-1/(number of partners)` of what training added (mended; ours)."""
    return -1 / min(2 * shifts, patterns - 1)


def mixed_logit(own: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """Logits between mixtures of patterns: `k^T B k'` with B the block of W_Q^T W_K between patterns (rows: query);
    (E.69) has only its diagonal, which is the same whatever is mixed."""
    return coefficients @ own @ coefficients.T


# The output: (E.50) to (E.61) -------------------------------------------------------------------------------------------


def growth(steps: np.ndarray, s: "Setting") -> np.ndarray:
    """(E.52): `delta^2 (beta^2 + 1) (alpha eta T/(2a) + alpha^2 (eta T)^3 M_1/a^2)`."""
    t = s.rate * np.asarray(steps, float)
    linear = s.fraction * t * s.vote / 2
    return s.diagonal**2 * (s.norm**2 + 1) * (linear + s.fraction**2 * t**3 * s.patterns * s.vote**2)


def attention_recursion(s: "Setting", steps: int, printed: bool = True) -> np.ndarray:
    """gamma_t of (E.55): `gamma_T = min(1 - alpha/2, (2 - alpha)/alpha exp(-(eta sum_b gamma_b Delta_T)^2))` with Delta_T =
    beta^2 (delta^2 alpha eta T/(2a) + delta^2 (beta^2 + 1) alpha^2 (eta T)^3 M_1/a^2); the print drops a 1/M_1 and a delta of
    (E.6), which `printed=False` keeps."""
    lost = 1.0 if printed else s.diagonal / s.patterns
    total, found = 0.0, []
    for t in range(steps):
        time = s.rate * t
        cubic = (s.norm**2 + 1) * s.fraction**2 * time**3 * s.patterns * s.vote**2
        delta = lost * s.norm**2 * s.diagonal**2 * (s.fraction * time * s.vote / 2 + cubic)
        power = min((s.rate * total * delta) ** 2, 700.0)
        gamma = min(1 - s.fraction / 2, (2 - s.fraction) / s.fraction * exp(-power))
        found.append(gamma)
        total += gamma
    return np.asarray(found)


def update_growth(s: "Setting") -> float:
    """(E.6), (E.10): W_Q and W_K have moved along a pattern by at least `eta delta beta^4/M_1` times sum_b zeta_b gamma_b."""
    return s.rate * s.diagonal * s.norm**4 / s.patterns


def batch_noise(batch: int) -> float:
    """(E.17), (E.20): coefficients from prompts that a neuron is not lucky for are at most `sqrt(log B/B)`, times 1/a."""
    return sqrt(log(batch) / batch)


def neuron_growth(s: "Setting") -> float:
    """(E.24), (E.26): a lucky row of W_O gains at least `delta (beta^2 + 1) alpha eta/(2a)` a step along (mu_a; +-q)."""
    return s.diagonal * (s.norm**2 + 1) * s.fraction * s.rate * s.vote / 2


def neuron_norm(s: "Setting") -> float:
    """(E.27): its length is at least `sqrt(M_1) delta (beta^2 + 1)^(1/2) alpha eta/(2a)` times the steps."""
    return sqrt(s.patterns) * neuron_growth(s) / sqrt(s.norm**2 + 1)


class FirstStep(NamedTuple):
    """What the first step adds to a lucky neuron's row of W_O, times 2a/eta, along (mu_a; q), (mu_a; -q), (mu_b; q) and
    (mu_b; -q), for queries of pattern a and label +1, b being the other decisive pattern."""

    same_right: float
    same_wrong: float
    other_right: float
    other_wrong: float


def first_step_printed(fraction: float, diagonal: float, norm: float) -> FirstStep:
    """(E.192) to (E.196): `alpha delta (beta^2 + 1)`, and at most (beta^2 - 1)/(beta^2 + 1), 1/(beta^2 + 1) and
    -1/(beta^2 + 1) of it."""
    first = fraction * diagonal
    return FirstStep(first * (norm**2 + 1), first * (norm**2 - 1), first, -first)


def first_step(fraction: float, diagonal: float, norm: float) -> FirstStep:
    """With contexts of the other label counted too (mended): s_a = (alpha/2) E/Z, s_b = (alpha/2)/Z and Z = 1 +
    (alpha/2)(E - 1) give `2 delta (s_a beta^2 +- (s_a - s_b))` along pattern a and `2 delta (s_b beta^2 +- (s_a - s_b))`
    along pattern b."""
    own = first_mass(fraction, diagonal, norm)
    opposite = own * exp(-((diagonal * norm) ** 2))
    d, gap, square = 2 * diagonal, own - opposite, norm**2
    return FirstStep(
        d * (own * square + gap),
        d * (own * square - gap),
        d * (opposite * square + gap),
        d * (opposite * square - gap),
    )


# Neurons: Lemmas E.4.9, E.4.10, Proposition 6.4.5 -----------------------------------------------------------------------


def lucky_share() -> float:
    """Three independent fair signs: a neuron is lucky for a prompt with probability 1/8 (Lemma E.4.9 says a constant; ours)."""
    return 1 / 8


def lucky_cap(inputs: int, patterns: int) -> float:
    """(E.215): `1/2 I_{sin^2 phi}((d_X - 1)/2, 1/2)`, phi = pi/2 - 1/M_1: the share of rows within phi of a direction."""
    return cap_share(inputs, pi / 2 - 1 / patterns)


def feature_alignment(irrelevant: int) -> float:
    """(6.21): the cosine of a large neuron's feature part with the mean pattern is at least `1 - 1/M_2`."""
    return 1 - 1 / irrelevant


def label_alignment(patterns: int) -> float:
    """(6.22): that of its label part with q or -q is at least `1 - 1/M_1`."""
    return 1 - 1 / patterns


# Out of domain: Theorem 6.3.4 -------------------------------------------------------------------------------------------


class Answers(NamedTuple):
    """What the neurons with one sign of a_i answer: `share` of all m, `feature` u at S = 1, `label` c along their own label."""

    share: float
    feature: float
    label: float


def answers(
    sign: np.ndarray, feature: np.ndarray, label: np.ndarray, large: np.ndarray
) -> tuple[Answers, Answers]:
    """The two groups of large neurons, a_i > 0 first."""

    def group(s: int) -> Answers:
        chosen = large & (sign == s)
        count = max(int(chosen.sum()), 1)
        return Answers(chosen.mean(), feature[chosen].sum() / count, s * label[chosen].sum() / count)

    return group(1), group(-1)


def effective_output(groups: tuple[Answers, Answers], coefficient_sum: np.ndarray, label: int) -> np.ndarray:
    """F on a token (mu'; y q) when all large neurons of a sign answer alike (ours): `p+ ReLU(u+ S + y c+) - p- ReLU(u- S -
    y c-)`. The constants of the two signs differ."""
    s = np.asarray(coefficient_sum, float)
    plus, minus = groups
    up = plus.share * np.maximum(plus.feature * s + label * plus.label, 0)
    return up - minus.share * np.maximum(minus.feature * s - label * minus.label, 0)


def critical_sum(groups: tuple[Answers, Answers]) -> float:
    """The smallest S at which the hinge loss of a clean token vanishes for both labels, in the linear regime: `(1/p - c)/u`."""
    return max((1 / one.share - one.label) / one.feature if one.share else inf for one in groups)


# Pruning: Theorem 6.3.7 -------------------------------------------------------------------------------------------------


def small_size(irrelevant: int) -> float:
    """(6.14): neurons outside L have rows of W_O W_V of length at most `1/sqrt(M_2)`."""
    return irrelevant**-0.5


def large_size(norm: float) -> float:
    """The proof's lower end for neurons in L: `1/beta`."""
    return 1 / norm


def pruned_small(patterns: int, fraction: float, test_fraction: float, loss: float = 0.0) -> float:
    """(E.107): the loss without the small neurons is at most `1 - (1 - 2/(alpha' M_1)) (1 - eps)/(1 - 2/(alpha M_1)) (1 -
    M_1^(-1/2))`."""
    ratio = (1 - 2 / (test_fraction * patterns)) / (1 - 2 / (fraction * patterns))
    return 1 - ratio * (1 - loss) * (1 - patterns**-0.5)


def pruned_large(
    rate: float, patterns: int, fraction: float, test_fraction: float, loss: float = 0.0
) -> float:
    """(E.109): without a share R of all neurons, large ones, it is at least `1 - (1 - 2/(alpha' M_1)) (1 + eps)(1 - R)/(1 -
    2/(alpha M_1))`. With 2/(alpha M_1) not small only its slope in R means anything."""
    ratio = (1 - 2 / (test_fraction * patterns)) / (1 - 2 / (fraction * patterns))
    return 1 - ratio * (1 + loss) * (1 - rate)


def largest_gap(sizes: np.ndarray) -> int:
    """How many of the sorted sizes lie below their largest relative gap: the small neurons."""
    sizes = np.sort(np.asarray(sizes, float))
    return int(np.argmax(sizes[1:] / np.maximum(sizes[:-1], 1e-12))) + 1


# The vote ---------------------------------------------------------------------------------------------------------------


def oracle_error(fraction: float, length: int) -> float:
    """The error of a vote among contexts of the query's pattern that guesses where there is none: `(1/2)(1 - alpha'/2)^l`
    (ours)."""
    return 0.5 * (1 - fraction / 2) ** length


def vote_error(fraction: float, length: int) -> float:
    """The error of sharp attention (ours): with no context of the query's pattern it votes over all, and each context has the
    wrong label with probability 1/(2 - alpha'): `(1 - alpha'/2)^l Pr(Bin(l, 1/(2 - alpha')) wins, ties 1/2)`."""
    wrong = 1 / (2 - fraction)
    half = length / 2
    wins = float(scipy.stats.binom.sf(np.floor(half), length, wrong))
    tie = float(scipy.stats.binom.pmf(half, length, wrong)) if length % 2 == 0 else 0.0
    return (1 - fraction / 2) ** length * (wins + tie / 2)


def vote_length(fraction: float, error: float = 0.05) -> int:
    """The shortest prompt for which the vote errs at most as often as asked."""
    length = 1
    while vote_error(fraction, length) > error:
        length += 1
    return length


# At a trial -------------------------------------------------------------------------------------------------------------


class Setting(NamedTuple):
    """The numbers that the statements are about."""

    patterns: int
    irrelevant: int
    fraction: float
    norm: float
    rate: float
    diagonal: float
    vote: float
    neurons: int
    batch: int
    length: int
    steps: int


def setting(trial: Layer) -> Setting:
    d, descent = trial.data, trial.descent
    vote = 1 / trial.neurons if trial.output_scale == "1/m" else trial.neurons**-0.5
    return Setting(
        d.relevant, d.irrelevant, d.relevant_fraction, d.pattern_norm, descent.learning_rate, trial.diagonal, vote,
        trial.neurons, descent.batch, d.examples, descent.steps,
    )  # fmt: skip


def _covered(trial: Layer | Stack | Classic) -> Condition:
    d = trial.data
    count = d.task_count or len(d.trained)
    whole = count == len(d.trained) and (bool(d.given) or covers(d.trained, d.relevant) or d.per_class > 1)
    return Condition("Condition 6.3.2: tasks cover every pattern and label", whole, count / d.relevant)


TARGET = 0.1  # eps of condition (ii): what the tests can tell from zero


def in_domain(trial: Layer | Stack | Classic) -> list[Condition]:
    """Theorem 6.3.3: Condition 6.3.2 and (i) to (iv)."""
    d, t = trial.data, trial.test
    m1 = d.relevant
    found = [
        _covered(trial),
        Condition("(iii) l_tr", None, d.examples / train_length(m1, d.relevant_fraction, d.pattern_norm)),
        Condition("(iii) l_ts >= 1/alpha'", *_met(max(t.lengths) / test_length_printed(min(t.fractions)))),
    ]
    if not isinstance(trial, Layer):
        return found
    s = setting(trial)
    return [
        *found,
        Condition("(i) neurons m >= M_1^2 log M_1", None, s.neurons / neurons_needed(m1)),
        Condition("(ii) batch B", None, s.batch / batch_needed(m1, TARGET)),
        Condition("(iv) iterations T", None, s.steps / iterations(s.rate, m1, s.fraction, s.norm)),
        Condition("step size eta <= 1", *_met(1 / s.rate)),
        Condition("initial diagonal delta <= 0.2", *_met(0.2 / s.diagonal)),
    ]


def out_of_domain(trial: Layer | Stack | Classic) -> list[Condition]:
    """Theorem 6.3.4: those of 6.3.3, and S_j >= 1 for every out-of-domain pattern."""
    t = trial.test
    sums = [np.asarray(t.rows(kind, trial.data.relevant, t.coefficient_sum)).sum(1).min() for kind in t.kinds]
    return [
        *in_domain(trial),
        Condition("(6.12) every S_j >= 1", *_met(float(min(sums, default=1.0)) + 1e-6)),
    ]


def _met(margin: float) -> tuple[bool, float]:
    return margin >= 1, margin


def predict(trial: Layer) -> tuple[list[Condition], list[Prediction]]:
    """Tasks, prompt length and steps needed for given numbers of patterns and fractions."""
    s, test = setting(trial), trial.test
    require(bool(test.fractions), "test.fractions is empty; name a fraction alpha' to predict for.")
    fraction = test.fractions[0]
    return out_of_domain(trial), [
        Prediction("training tasks needed (Lemma E.4.11)", float(least_tasks(s.patterns))),
        Prediction("their share of all tasks", task_share(s.patterns)),
        Prediction(
            "training prompt length, (6.9) with constant 1", train_length(s.patterns, s.fraction, s.norm)
        ),
        Prediction("test prompt length that makes one match certain", float(ceil(test_length(fraction)))),
        Prediction("test prompt length for an error of 5 % (law of the vote)", float(vote_length(fraction))),
        Prediction(
            f"error at {max(test.lengths)} contexts (law of the vote)",
            vote_error(fraction, max(test.lengths)),
        ),
        Prediction("iterations, (6.10) with constant 1", iterations(s.rate, s.patterns, s.fraction, s.norm)),
        Prediction(
            "iterations, (E.62), delta kept",
            iterations_proof(s.rate, s.patterns, s.fraction, s.norm, s.diagonal),
        ),
        Prediction(
            "iterations at this number of neurons, (E.61)",
            iterations_any_width(s.rate, s.patterns, s.fraction, s.norm, s.diagonal, s.vote),
        ),
        Prediction("neurons, (i) with constant 1", neurons_needed(s.patterns)),
        Prediction("attention on matching contexts at the start", first_mass(fraction, s.diagonal, s.norm)),
        Prediction("and after training, at least (E.71)", trained_mass(fraction, s.patterns)),
    ]
