"""The conditions of the theorems at a trial, with margins, and what the theory predicts for it."""

import math
from typing import Any

from lemmata.measure.compare import Condition
from lemmata.studies.spatial_structure.theory.events import (
    bulk_ratio,
    diagonal_margin,
    drive_moments,
    event1_alignment_scale,
    event1_time,
    event1_time_printed,
    event2_duration,
    event2_duration_leading,
    event2_duration_printed,
    linear_drift,
    linear_phase_end,
    linear_phase_end_full,
    tied_scores,
)
from lemmata.studies.spatial_structure.theory.images import (
    bayes_error,
    chance_overlap,
    glm_error,
    label_noise,
    planted_distance,
    spurious_margin,
)
from lemmata.studies.spatial_structure.theory.transfer import (
    coupon_samples,
    one_step_cosine,
    sign_samples,
    transfer_snr,
)
from lemmata.study import Prediction

# Conditions of a trial -------------------------------------------------------------------------------------------------


def dominated(trial: Any) -> list[Condition]:
    """Theorem 3.1: the implementable meaning of Assumption 2."""
    margin = spurious_margin(*trial.data.facts)
    return [_condition("spurious patches dominate: q(D-C) >= 0.756 C^2", margin)]


def outnumbered(trial: Any) -> list[Condition]:
    """Theorem 3.1: Assumption 2, by which spurious patches outnumber the signal, `q D = poly(C)` with `q (D - C) >= C^2`."""
    D, C, q = trial.data.facts
    return [_condition("spurious patches outnumber the signal: q(D-C) >= C^2", q * (D - C) / C**2)]


def population(trial: Any) -> list[Condition]:
    """Theorem 4.1 and the lemmas of Appendices D and G: Assumption 2 and Parametrization 3.1 as far as they can be checked."""
    data, network, rate = trial.data, trial.network, _logit_rate(trial)
    (D, C, q), d, p = data.facts, data.dimension, network.degree
    tau = network.temperature(d)
    beta = float(network.diagonal) / tau
    gain = tied_scores(D, C, beta).gain
    start = getattr(trial, "alignment", 0.0) or float(network.threshold)
    return [
        *dominated(trial),
        _condition("the diagonal dominates: e^beta >= 2 q D log d", diagonal_margin(D, d, q, beta)),
        _condition("the denominator is of order D: e^beta <= D", D / math.exp(beta)),
        _condition("alpha starts where the sigmoid rests", event1_alignment_scale(C, p, gain) / start),
        Condition("one step size for value and attention", rate == 1, min(rate, 1 / max(rate, 1))),
        _condition("labels are clean: P(y f* <= 0) <= 1/d", 1 / d / max(label_noise(D, C, q), 1e-300)),
    ]


def realistic(trial: Any) -> list[Condition]:
    """Theorem 4.2 and the lemmas of Appendix E: those of the population, and a sample of polynomial size."""
    run, d, D = getattr(trial, "realistic", trial), trial.data.dimension, trial.data.patches
    return [
        *population(trial),
        Condition("N = poly(d), read as N >= max(d, D)^2", None, run.samples / max(d, D) ** 2),
        _tiny_start(trial),
    ]


def _logit_rate(trial: Any) -> float:
    """Return the step size of the logits over that of the value vector; flows have one rate."""
    return float(trial.descent.attention_rate) if hasattr(trial, "descent") else 1.0


def _tiny_start(trial: Any) -> Condition:
    network, d = trial.network, trial.data.dimension
    start = float(network.init) * math.sqrt(d * math.log(d))
    margin = float(network.threshold) / start if start > 0 else math.inf
    return _condition("a tiny start: omega sqrt(d log d) <= nu^(1/(p-1))", margin)


def transfers(trial: Any) -> list[Condition]:
    """Theorem 5.1: spurious patches as in the source task, and d = poly(D)."""
    return [
        *dominated(trial),
        Condition("d = poly(D), read as d >= D", None, trial.data.dimension / trial.data.patches),
    ]


def hidden(trial: Any) -> list[Condition]:
    """Theorem 5.2: planted groups are hidden among the spurious patches, TV(D1, D2) = o(1)."""
    D, C, q = trial.data.facts
    return [
        *dominated(trial),
        Condition("groups are hidden, read as TV(D1, D2) <= 1/2", None, 0.5 / planted_distance(D, C, q)),
    ]


def _condition(name: str, margin: float) -> Condition:
    return Condition(name, bool(margin >= 1 - 1e-9), float(margin))


# Predictions for a trial -----------------------------------------------------------------------------------------------


def predict(trial: Any) -> tuple[list[Condition], list[Prediction]]:
    """What the theory says about a trial, without training it."""
    data, network, descent = trial.data, trial.network, trial.descent
    (D, C, q), d, p = data.facts, data.dimension, network.degree
    nu, beta = float(network.linear), float(network.diagonal) / network.temperature(d)
    eta, logit_eta = float(descent.learning_rate), float(descent.learning_rate * descent.attention_rate)
    scores = tied_scores(D, C, beta)
    start, alpha = float(network.threshold), event1_alignment_scale(C, p, scores.gain)
    signal, rest = drive_moments(D, C, q, p, scores)
    frozen = "never: the attention is frozen"
    cosine = float(one_step_cosine(D, C, 16))
    found = {
        "error of linear models": glm_error(D, C, q),
        "label noise, P(y f* <= 0)": label_noise(D, C, q),
        "Bayes error with the partition known": bayes_error(D, C, q),
        "chance overlap of the top C": chance_overlap(D, C),
        "signal gain G at the start": scores.gain,
        "bulk ratio at the start (Lemma D.5 needs it large)": bulk_ratio(D, C, q, p, scores),
        "noise over signal part of the first pull (Lemma D.6 prints 0)": rest / signal,
        "drift of alpha a step in the linear phase": linear_drift(D, C, nu, eta),
        "end of the linear phase (steps)": linear_phase_end_full(D, C, q, nu, p, beta, eta),
        "end of the linear phase, linear part only (steps)": linear_phase_end(D, C, nu, p, eta),
        "alpha where the sigmoid moves, leading scale": alpha,
        "first event from there, corrected (steps)": event1_time(D, C, q, p, beta, eta, start),
        "first event, as printed, constant 1 (steps)": event1_time_printed(C, p, eta, start),
        "second event until gamma = 1, alpha at its optimum (steps)": frozen,
        "second event until gamma = 1, leading order (steps)": frozen,
        "second event, as printed, constant 1, lambda0 = D^0.01 (steps)": frozen,
        "cosine of one transfer step with 16 samples": cosine,
        "transfer signal-to-noise there, gamma = 3.5": transfer_snr(D, C, d, cosine, tied_scores(D, C, beta, 3.5)),
        "samples for a transfer error of 0.05, groups known": sign_samples(C, q * (D - C), 0.05),
        "samples for it, told the feature but not the groups, large D": coupon_samples(D, C, q, 0.05),
    }  # fmt: skip
    if logit_eta > 0:
        times = (
            event2_duration(D, C, q, p, beta, logit_eta),
            event2_duration_leading(D, C, p, beta, logit_eta),
            event2_duration_printed(p, logit_eta, beta, D**0.01),
        )
        told = [t if math.isfinite(t) else "never ends: no image is outvoted" for t in times]
        found |= dict(zip([name for name in found if name.startswith("second event")], told, strict=True))
    return realistic(trial), [Prediction(name, value) for name, value in found.items()]
