"""What the document says of a trained chain of thought, and what follows from it: conditions, times, gradients, the law of
the vote."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import inf, log
from typing import NamedTuple

import jax
import numpy as np
import scipy
from numpy.polynomial import Polynomial
from scipy.integrate import solve_ivp
from scipy.special import gammaln, xlogy

from lemmata.guard import double
from lemmata.measure.compare import Condition
from lemmata.studies.chain_of_thought.data import Quality, quality
from lemmata.studies.chain_of_thought.trials import Reasoning, Testing
from lemmata.study import Prediction
from lemmata.threefry import new_key

# Training: Theorem 3 and the lemmas behind it -------------------------------------------------------------------------


class Setting(NamedTuple):
    """alpha, K, M, eta, examples l_tr, batch B and the loss eps asked for."""

    match_fraction: float
    steps: int
    patterns: int
    learning_rate: float
    examples: int
    batch: int
    loss: float


def stage1_time(s: Setting) -> float:
    """`T_1 = eta^-1 alpha^-2 K^3 log(K/eps)` (F.11): after it other steps have lost all but eps of the attention; an upper
    bound."""
    return s.steps**3 * log(s.steps / s.loss) / (s.learning_rate * s.match_fraction**2)


def stage2_time(s: Setting) -> float:
    """`T_2 = eta^-1 K M / alpha`: until the attention on matching columns is of order one."""
    return s.steps * s.patterns / (s.learning_rate * s.match_fraction)


def tail_time(s: Setting) -> float:
    """`T_3 = eta^-1 K M / eps`: until the loss is eps; an upper bound (see `tail_loss`)."""
    return s.steps * s.patterns / (s.learning_rate * s.loss)


def iterations(s: Setting) -> float:
    """Theorem 3: `T = T_1 + T_2 + T_3` up to a constant."""
    return stage1_time(s) + stage2_time(s) + tail_time(s)


def tail_gap(t: np.ndarray | float, s: Setting) -> np.ndarray | float:
    """`(1 - p)^2 = M / (2 eta t)` late in stage 2, p the attention on matching columns: the mended tail, without the K of
    (F.26)."""
    return np.sqrt(s.patterns / (2 * s.learning_rate * np.asarray(t, float)))


def tail_gap_printed(t: np.ndarray | float, s: Setting) -> np.ndarray | float:
    """`(1 - p)^2 = K M / (6 eta t)`: (F.26) with the explicit coefficients of Lemma F.3.7, the printed 2 read as K."""
    return np.sqrt(s.steps * s.patterns / (6 * s.learning_rate * np.asarray(t, float)))


def loss_time(s: Setting, others: float) -> float:
    """Steps to a loss eps late in training by the mended tail: `M (1 + 1/n) / (4 eta eps)`, since the loss is
    `(1 - p)^2 (1 + 1/n) / 2` when the rest of the attention is spread over n outputs."""
    return s.patterns * (1 + 1 / others) / (4 * s.learning_rate * s.loss)


def match_share(gap: np.ndarray | float, match_fraction: float) -> np.ndarray | float:
    """`p = e^u / (e^u + (1 - alpha)/alpha)` (F.24): attention on matching columns of a step with logit gap u."""
    return 1 / (1 + (1 - match_fraction) / match_fraction * np.exp(-np.asarray(gap, float)))


def stage2_curve(s: Setting, start: float, begin: float = 0.0) -> Callable[[np.ndarray], np.ndarray]:
    """The attention p(t) on matching columns from a value `start` at step `begin` on: `du/dt = (eta/M) p (1 - p)^2` (mended
    Lemma F.3.7; the printed rate is `C eta / (K M)` with C = 3)."""
    odds = (1 - s.match_fraction) / s.match_fraction
    first = log(max(start, 1e-12) / (1 - start) * odds)

    def speed(_: float, u: np.ndarray) -> np.ndarray:
        p = match_share(u, s.match_fraction)
        return s.learning_rate / s.patterns * p * (1 - p) ** 2  # pyright: ignore[reportReturnType]  (of an array, an array)

    def curve(t: np.ndarray) -> np.ndarray:
        since = np.maximum(np.asarray(t, float) - begin, 0)
        found = solve_ivp(
            speed, (0, float(since.max()) + 1e-9), [first], dense_output=True, rtol=1e-9, atol=1e-12
        )
        return np.asarray(match_share(found.sol(since)[0], s.match_fraction))

    return curve


class Bounds(NamedTuple):
    """Bounds on `p'^T G p`, positive where the logit falls, as polynomials in the attention p on matching columns."""

    low: Polynomial
    high: Polynomial


def gradient_bounds(s: Setting) -> dict[str, Bounds]:
    """Lemma F.3.5, (F.7) to (F.10): the gradient between two columns of same or other pattern and same or other step in the
    first stage, in the order of the four masses; without the step size."""
    k, m, a = s.steps, s.patterns, (s.match_fraction / s.steps) ** 2
    p, none = Polynomial([0.0, 1.0]), Polynomial([-inf])
    q = (1 - p) ** 2
    same = q / (k * m) * (-4 * p * (1 + a) + a * (1 + 2 * (k - 1) / k)) - a / k * q
    shift = (-4 - (3 * k - 2) * (1 - p) * (1 + a)) * p * (1 - p) / (k * m)
    top = q / (k * m) * (-a + (k - 1 + (2 * k - 1) * a) * p) - q * a / k
    return {
        "same pattern, same step": Bounds(none, same),
        "other pattern, same step": Bounds(top + q / k * (-p + (1 - p) * a), top),
        "same pattern, other step": Bounds(shift + a / k * q, shift + p * q * (1 + a) / k),
        "other pattern, other step": Bounds(
            p * q / (k * m) * (1 + (2 - k) * a) + q * a / k,
            p * q / (k * m) * (2 - k + (2 - k) * a) + q * p * (1 + a) / k,
        ),
    }


def first_gradient(s: Setting) -> dict[str, float]:
    """At the start, to leading order: `-alpha (K - 1)/K^3` on the same step, `+alpha/K^3` on others (ours)."""
    a, k = s.match_fraction, s.steps
    return {"same step": -a * (k - 1) / k**3, "other step": a / k**3}


def span_logit(diagonal: float, patterns: int, coefficient_sum: float) -> float:
    """The logit of a test pattern in the span on itself: `diag (M - S^2)/(M - 1)` with S the sum of its coefficients
    (mended F.47;
    the print has diag). It vanishes for the mean of all patterns, S^2 = M."""
    return diagonal * (patterns - coefficient_sum**2) / (patterns - 1)


# Inference: Theorems 4 and 5, and the exact law of the vote ------------------------------------------------------------


def cot_examples(match_fraction: float, trajectory: float, primacy: float, patterns: int) -> float:
    """Theorem 4: `l >= (alpha' tau rho)^-2 log M` examples suffice, up to a constant."""
    return log(patterns) / (match_fraction * trajectory * primacy) ** 2


def icl_examples(match_fraction: float, label: float, label_primacy: float, patterns: int) -> float:
    """Theorem 5: `l >= (alpha' tau_o rho_o)^-2 log M` where Condition 7.3.2 holds, up to a constant."""
    return log(patterns) / (match_fraction * label * label_primacy) ** 2 if label_primacy > 0 else inf


def plurality(count: int, chances: np.ndarray) -> float:
    """The probability that the first of several outcomes is the most frequent of `count` draws, ties split evenly (exact)."""
    return float(pluralities(count, chances)[count])


def pluralities(most: int, chances: np.ndarray) -> np.ndarray:
    """That probability for every number of draws from 0 to `most`."""
    return winning_counts(most, chances).sum(1)


def winning_counts(most: int, chances: np.ndarray) -> np.ndarray:
    """The probability that the first of several outcomes wins with c of n draws, for every n and c from 0 to `most`.

    Counts of a multinomial are Poisson counts given their sum. For each count c of the first outcome, the others' laws are cut
    off at c, reaching c marked by y; a tie with t others is shared as 1/(t + 1), the integral of y^t from 0 to 1, which
    Gauss-Legendre takes exactly. All terms are positive, so that nothing is lost by rounding.
    """
    first, *others = np.round(np.asarray(chances, float), 14)
    return _winning_counts(int(most), (first, *sorted(others)))  # the order of the others does not matter


@cache
def _winning_counts(most: int, chances: tuple[float, ...]) -> np.ndarray:
    wins = np.zeros((most + 1, most + 1))
    wins[0, 0] = 1 / len(chances)
    if most == 0:
        return wins
    nodes, shares = np.polynomial.legendre.leggauss(len(chances) // 2 + 1)
    reached, drawn = np.arange(1, most + 1)[:, None, None], np.arange(most + 1)
    means, copies = np.unique(most * np.asarray(chances[1:], float), return_counts=True)
    series = np.zeros((most, len(nodes), most + 1))
    series[..., 0] = 1.0
    for mean, times in zip(means, copies, strict=True):
        tied = np.where(drawn == reached, (nodes[:, None] + 1) / 2, 1.0)
        power = np.where(drawn <= reached, tied * _poisson(drawn, mean), 0.0)
        while times:  # the factor to the power of its copies, by squaring
            series = _product(series, power) if times % 2 else series
            times //= 2
            power = _product(power, power) if times else power
    first = _poisson(drawn, most * chances[0])[1:]
    others = np.einsum("n,cnj->cj", shares / 2, series)
    for count in range(1, most + 1):
        below = np.arange(count)
        wins[count, 1 : count + 1] = first[below] * others[below, count - 1 - below]
    wins[1:] /= _poisson(drawn, float(most))[1:, None]
    return wins


def _poisson(count: np.ndarray, mean: float) -> np.ndarray:
    return np.exp(xlogy(count, mean) - mean - gammaln(count + 1))


def _product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Power series along the last dimension, multiplied and cut off."""
    found, size = np.zeros_like(a), a.shape[-1]
    for shift in range(size):
        found[..., shift:] += a[..., : size - shift] * b[..., shift : shift + 1]
    return found


def icl_error(own: int, rows: np.ndarray, labels: np.ndarray) -> float:
    """The error of a vote over final labels (exact): `own` examples begin with the query's pattern i, their final labels
    follow row
    `B(i, .)`; the mean over queries i of the probability that label `labels[i]` does not win."""
    return float(
        np.mean([1 - plurality(own, _first(row, right)) for row, right in zip(rows, labels, strict=True)])
    )


def icl_limit(rows: np.ndarray, labels: np.ndarray) -> float:
    """The error with endlessly many examples (Theorem 5): the share of rows whose most likely final label is wrong."""
    return float(np.mean(rows.argmax(1) != labels))


def cot_errors(
    own: int, others: int, transitions: np.ndarray, maps: np.ndarray, spread: bool = True
) -> np.ndarray:
    """The probability that the vote of step k is not the right state, k = 1..K, averaged over queries.

    At step k the examples that stand at the right state vote: those that won the vote before, and those that come there from
    elsewhere. The `own` examples begin with the query's pattern, the `others` spread over the rest or with one of them. The law
    of the number of voters goes along, given that all was right so far; a chain that went wrong stays wrong. Exact for K = 1,
    and beyond up to this: where the examples stand that do not vote is taken on average.
    """
    steps, n = maps.shape
    errors = np.zeros(steps)
    for query in range(n):
        errors += _errors_from(query, own, others, transitions, maps, spread) / n
    return errors


def _errors_from(
    query: int, own: int, others: int, transitions: np.ndarray, maps: np.ndarray, spread: bool = True
) -> np.ndarray:
    n, total = maps.shape[1], own + others
    elsewhere = (1 - np.eye(n)[query]) / (n - 1) if spread else np.eye(n)[(query + n // 2) % n]
    voters, state, errors = np.eye(total + 1)[own], query, []
    for matrix, one in zip(transitions, maps, strict=True):
        target = one[state]
        wins = winning_counts(total, _first(matrix[state], target))
        onward = elsewhere @ matrix
        following, losers = np.zeros(total + 1), 0.0
        for count in np.flatnonzero(voters > 1e-15):
            joint = voters[count] * wins[count, : count + 1]
            following += np.convolve(joint, _binomial(total - count, onward[target]))  # pyright: ignore[reportArgumentType]  (an integer of NumPy)
            losers += joint @ (count - np.arange(count + 1))
        errors.append(1 - following.sum())
        lost = matrix[state] * (np.arange(n) != target)
        stayed = (total * following.sum() - following @ np.arange(total + 1) - losers) * onward
        left = losers * lost / max(lost.sum(), 1e-300) + stayed * (np.arange(n) != target) / max(
            1 - onward[target], 1e-300
        )
        voters, elsewhere, state = following, left / max(left.sum(), 1e-300), target
    return np.asarray(errors)


def _binomial(count: int, chance: float) -> np.ndarray:
    return scipy.stats.binom.pmf(np.arange(count + 1), count, min(max(float(chance), 0.0), 1.0))


def _first(row: np.ndarray, right: int) -> np.ndarray:
    """The row with its right entry in front."""
    return np.concatenate([[row[right]], np.delete(row, right)])


def wrong_count_bound(examples: int, match_fraction: float, trajectory: float, primacy: float) -> float:
    """The proof's tail: fully correct trajectories number at most `(1 - rho/2) alpha' tau l` with probability at most
    `exp(-l rho^2 alpha' tau / 8)` (Chernoff)."""
    return float(np.exp(-examples * primacy**2 * match_fraction * trajectory / 8))


def chernoff_exact(examples: int, match_fraction: float, trajectory: float, primacy: float) -> float:
    """The probability that `wrong_count_bound` bounds, exactly (a binomial tail)."""
    level = (1 - primacy / 2) * match_fraction * trajectory * examples
    return float(scipy.stats.binom.cdf(np.floor(level), examples, match_fraction * trajectory))


# At a trial ------------------------------------------------------------------------------------------------------------


def setting(trial: Reasoning, loss: float = 1e-3) -> Setting:
    """The numbers of a trial that the statements on training need."""
    d, descent = trial.data, trial.descent
    return Setting(
        d.match_fraction,
        d.steps,
        d.patterns,
        descent.learning_rate,
        d.examples,
        descent.batch,
        loss,
    )


def training_conditions(trial: Reasoning) -> list[Condition]:
    """Theorem 3: (i) l_tr >= 1/alpha, (ii) T, (iii) B >= max(eps^-2, M) log M and eta < 1; M >= K^4/alpha (F.140)."""
    s = setting(trial)
    asked = iterations(s)
    batch = max(s.loss**-2, s.patterns) * log(s.patterns)
    return [
        Condition("(i) examples l_tr >= 1/alpha", None, s.examples * s.match_fraction),
        Condition("(ii) iterations T", None, trial.steps / asked),
        Condition("(iii) batch B >= max(eps^-2, M) log M", None, s.batch / batch),
        Condition("(iii) step size eta < 1", s.learning_rate < 1, 1 / s.learning_rate),
        Condition("(F.140) patterns M >= K^4/alpha", None, s.patterns * s.match_fraction / s.steps**4),
    ]


_task = jax.jit(Testing.task, static_argnames="steps")


def example_task(trial: Reasoning) -> tuple[np.ndarray, np.ndarray]:
    """Maps and transition matrices of one task of the test; the law of the vote does not depend on which."""
    with double():
        maps, transitions = _task(trial.test, new_key(0), trial.data.steps)
        return np.asarray(maps), np.asarray(transitions, float)


def test_quality(trial: Reasoning) -> Quality:
    maps, transitions = example_task(trial)
    return quality(transitions, maps)


def cot_conditions(trial: Reasoning) -> list[Condition]:
    """Theorem 4: those of Theorem 3, test patterns in the span, l >= (alpha' tau rho)^-2 log M at the longest prompt."""
    q = test_quality(trial)
    asked = cot_examples(trial.test.match_fraction, q.trajectory, max(q.primacy, 1e-9), trial.data.patterns)
    inside = trial.test.kind != "outside"
    return [
        *training_conditions(trial),
        Condition("(7.19) test patterns in the span", inside, 1.0 if inside else 0.0),
        Condition("(7.20) examples l_ts", None, max(trial.test.lengths) / asked),
    ]


def cot_conditions_by_batch(trial: Reasoning) -> list[Condition]:
    """Theorem 4 with the smallest loss eps that the batch allows, B = eps^-2 log M. Then (iii) asks for B >= M log M alone."""
    s = setting(trial, (log(trial.data.patterns) / trial.descent.batch) ** 0.5)
    own = {
        "(ii) iterations T": trial.steps / iterations(s),
        "(iii) batch B >= max(eps^-2, M) log M": s.batch / (s.patterns * log(s.patterns)),
    }
    return [replace(one, margin=own.get(one.name, one.margin)) for one in cot_conditions(trial)]


def icl_conditions(trial: Reasoning) -> list[Condition]:
    """Theorem 5: those of Theorem 3, Condition 7.3.2, l >= (alpha' tau_o rho_o)^-2 log M at the longest prompt."""
    q = test_quality(trial)
    asked = icl_examples(trial.test.match_fraction, q.label, q.label_primacy, trial.data.patterns)
    return [
        *training_conditions(trial),
        Condition("Condition 7.3.2: the likeliest label is right", q.right_rows == 1, q.right_rows),
        Condition("(7.22) examples l_ts", None, max(trial.test.lengths) / asked),
    ]


@cache
def _errors_at(test: Testing, steps: int, length: int) -> dict[str, float]:
    with double():
        maps, transitions = (np.asarray(part) for part in _task(test, new_key(0), steps))
    own = round(float(test.match_fraction) * length)
    # In shift tasks every query has the same law; in the construction in pairs there are two kinds.
    chosen = {"even": range(1), "single": range(1), "given": range(maps.shape[1])}.get(test.errors, range(2))
    whole = np.linalg.multi_dot([np.eye(maps.shape[1]), *transitions])
    labels = np.arange(maps.shape[1])
    for one in maps:
        labels = one[labels]
    rows = list(chosen)
    spread = test.others == "spread"
    cot = np.mean(
        [_errors_from(query, own, length - own, transitions, maps, spread) for query in rows], axis=0
    )
    return {
        "cot_error": float(cot.mean()),
        "last_step_error": float(cot[-1]),
        "icl_error": icl_error(own, whole[rows], labels[rows]),
    }


def predicted_errors(trial: Reasoning, length: int) -> dict[str, float]:
    """The law of the vote for prompts with `length` examples: chain of thought (mean over steps, last step) and in-context
    learning."""
    return _errors_at(trial.test, trial.data.steps, length)


def predict(trial: Reasoning) -> tuple[list[Condition], list[Prediction]]:
    """Will a chain of thought succeed, will in-context learning, and from how many examples."""
    q, s = test_quality(trial), setting(trial)
    lengths = (1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128)
    errors = {n: predicted_errors(trial, n) for n in lengths}

    def from_(name: str) -> float | str:
        enough = [n for n in lengths if max(errors[m][name] for m in lengths if m >= n) < 0.05]
        last = errors[lengths[-1]][name]
        return float(enough[0]) if enough else f"more than {lengths[-1]} (the error there: {last:.2g})"

    def verdict(name: str) -> str:
        return "yes" if errors[lengths[-1]][name] < errors[1][name] / 2 else "not within 128 examples"

    in_context = (
        "yes"
        if q.right_rows == 1
        else f"no: the likeliest label is wrong for {1 - q.right_rows:.0%} of the inputs"
    )
    step_by_step = verdict("cot_error")
    conditions = [*cot_conditions(trial), *icl_conditions(trial)[-2:]]
    return conditions, [
        Prediction("will a chain of thought succeed", step_by_step),
        Prediction("will in-context learning succeed (Condition 7.3.2)", in_context),
        Prediction("tau: probability of the right trajectory", q.trajectory),
        Prediction("rho: primacy of the steps", q.primacy),
        Prediction("tau_o: probability of the likeliest label", q.label),
        Prediction("rho_o: primacy of the label", q.label_primacy),
        Prediction("share of inputs whose likeliest label is right (Condition 7.3.2: all)", q.right_rows),
        Prediction("examples for a chain-of-thought error below 5 % (law of the vote)", from_("cot_error")),
        Prediction("examples for an in-context error below 5 % (law of the vote)", from_("icl_error")),
        Prediction("in-context error with endlessly many examples", 1 - q.right_rows),
        Prediction(
            "examples, Theorem 4 (constant 1)",
            cot_examples(trial.test.match_fraction, q.trajectory, q.primacy, s.patterns),
        ),
        Prediction(
            "examples, Theorem 5 (constant 1)",
            icl_examples(trial.test.match_fraction, q.label, q.label_primacy, s.patterns),
        ),
        Prediction("iterations, Theorem 3 (constant 1)", iterations(s)),
        Prediction(f"iterations to a loss of {s.loss:g} (mended tail)", loss_time(s, s.patterns - 1)),
        Prediction(
            "attention off the matching columns at the end (mended tail)", float(tail_gap(trial.steps, s))
        ),
    ]
