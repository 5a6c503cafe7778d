"""Planted cases: results made by a wrong law, on which each claim must come out `fails`."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.figures import FIGURES

Value = float | Callable[[Any], Any]


def case(figure: str, **variables: Value) -> Callable[[], xr.Dataset]:
    """Results of a figure in which every record is the given number, or function of the trial, up to a hundredth (sample sizes
    exactly)."""

    def record(name: str, trial: Any, rng: np.random.Generator) -> Any:
        value = variables[name]
        spread = 0.0 if name in ("size", "largest") else 0.01
        return (value(trial) if callable(value) else np.asarray(value)) * np.exp(spread * rng.normal())

    return lambda: made(FIGURES[figure], {name: partial(record, name) for name in variables})


def along(curve: Callable[[np.ndarray], np.ndarray]) -> Callable[[Any], np.ndarray]:
    """A curve over the logged steps."""
    return lambda trial: curve(np.asarray(trial.log_steps, float)) * np.ones(len(trial.log_steps))


def flat(value: float) -> Callable[[Any], np.ndarray]:
    return along(lambda step: np.full(len(step), value))


def falling(step: np.ndarray) -> np.ndarray:
    """From 1 down to 1/10 at step 1000."""
    return np.where(step > 1000, 0.1, 1.0)


# A run of three numbers that does everything as it should, but for what is planted in it ---------------------------------

RUN = {
    "event1": 100.0,
    "event3": 5000.0,
    "same_unit": 3000.0,
    "largest_cross": 0.1,
    "same_curve": along(lambda step: step / 3000),
    "same_score_curve": flat(0.004),
    "cross_score_curve": flat(0.002),
    "gain_curve": flat(50.0),
    "alignment_curve": flat(0.01),
    "slack_curve": flat(0.2),
    "loss_curve": flat(0.3),
    "signal_drive_curve": flat(1.0),
    "noise_drive_curve": flat(0.1),
}
events = partial(case, "three-events", **RUN)
sizes = partial(case, "patches", **RUN)


def _column(trial: Any) -> np.ndarray:
    """Logits that give all weight to one patch."""
    logits = np.zeros((trial.data.patches, trial.data.patches))
    logits[:, 0] = 5.0
    return logits


def _logit_rate(trial: Any) -> float:
    return trial.descent.learning_rate * trial.descent.attention_rate


def _slow_loss(step: np.ndarray) -> np.ndarray:
    """Falls as t^-0.6 through the window, and drops at the very end."""
    return np.where(step < step[-1], np.minimum(0.1 * np.maximum(step, 1) ** -0.6, 0.1), 1e-5)


def _early(trial: Any) -> np.ndarray:
    """Three times the drift of the linear phase."""
    D, C, _ = trial.data.facts
    drift = theory.linear_drift(D, C, trial.network.linear, trial.descent.learning_rate)
    return 3 * drift * np.asarray(trial.log_steps, float)


def _transfer(**variables: Value) -> Callable[[], xr.Dataset]:
    return case("transfer", **{"size": _downstream, "largest": lambda t: max(t.sizes)} | variables)


def _downstream(trial: Any) -> np.ndarray:
    return np.asarray(trial.sizes, float)


def _learners(**variables: Value) -> Callable[[], xr.Dataset]:
    return case("transfer-learners", **variables)


def _errors(associated: float, learned: float, blind: float) -> Callable[[Any], np.ndarray]:
    """Errors at every downstream size: with the population's attention, with learned attention, without association."""

    def errors(trial: Any) -> np.ndarray:
        known = associated if trial.pretraining == "population" else learned
        return np.full(len(trial.sizes), known if trial.learner in ("one-step", "descent") else blind)

    return errors


PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "linear-models-fail": case("glm-floor", test_error=0.1),
    "linear-error-law": case("glm-floor", test_error=0.2, predicted_error=0.1),
    "generalises-without": case("without-association", test_error=0.1),
    "gaussian-low-error": case("fig2", test_error=0.3),
    "gaussian-beats-vote": case("fig2", test_error=0.12, vote_error=0.09),
    "gaussian-no-association": case("fig2", auc=0.9),
    "gaussian-network": case("fig2", auc=0.9),
    "gaussian-overlap": case("fig2", overlap=0.9),
    "gaussian-looks-random": case("fig2", slot_auc=0.95),
    "gaussian-slots": case("fig2", auc=0.5),
    "association": case("fig4", exact=0.9),
    "generalises": case("fig4", test_error=0.15),
    "points-at-feature": case("fig4", cosine=0.5),
    "association-first": case(
        "fig4",
        auc_curve=along(lambda step: np.where(step > 3000, 1.2, 0.5)),
        test_error_curve=along(lambda step: np.where(step > 1000, 0.01, 0.15)),
    ),
    "partition-is-irrelevant": case(
        "fig4", test_error=lambda t: 0.08 if t.data.partition == "random" else 0.02
    ),
    "column-sums": case("fig4", logits=_column),
    "encodings-associate": case("encodings", exact=0.5),
    "encodings-generalise": case("encodings", test_error=0.1),
    "events-in-order": events(event1=1000.0),
    "gamma-above-rho": events(cross_lead=0.1),
    "rho-barely-moves": events(largest_cross=1.0, same_curve=flat(2.0)),
    "plateau": events(event1=10.0, test_error_curve=flat(0.01)),
    "noise-cancels": events(noise_drive_curve=flat(2.0)),
    "signal-drive": events(signal_drive_curve=flat(1e4)),
    "output-bound": events(largest_output_curve=flat(1e6)),
    "gamma-growth": events(same_pull_curve=flat(1.0)),
    "rho-growth": events(cross_pull_curve=flat(1.0)),
    "alignment-stays": events(alignment_curve=along(falling)),
    "same-score-accelerates": events(same_score_curve=along(lambda step: np.exp((step / 1e5) ** 0.2))),
    "signal-dominates": events(signal_drive_curve=flat(0.5), noise_drive_curve=flat(1.0)),
    "alignment-grows": events(alignment_curve=along(falling)),
    "margin-grows": events(alignment_curve=along(falling)),
    "population-generalises": case("three-events", test_error=0.15),
    "first-event-exponent": case("first-event", event1=3000.0),
    "first-event-corrected": case("first-event", event1=lambda t: 3000 * (1e-3 / t.alignment)),
    "first-event-constant": case("first-event", event1=1500.0),
    "loss-rate": case("loss-rate", loss_curve=along(_slow_loss)),
    "loss-follows-margin": case(
        "loss-rate", loss_curve=flat(0.05), alignment_curve=flat(0.1), gain_curve=flat(30.0)
    ),
    "events-in-order-one-rate": case("common-rate", **RUN | {"event1": 1000.0}),
    "one-step-size": case("common-rate", test_error=0.15),
    "frozen-is-linear": case("frozen-attention", test_error=0.02),
    "event2-printed": sizes(same_unit=lambda t: 100 + t.data.patches / _logit_rate(t)),
    "event2-derived": sizes(same_unit=lambda t: 100 + 100 / _logit_rate(t)),
    "rho-growth-main": sizes(cross_pull_curve=lambda t: flat(t.data.patches)(t)),
    "rho-growth-corollary": sizes(cross_pull_curve=lambda t: flat(t.data.patches)(t)),
    "alignment-sum": sizes(alignment_power=lambda t: t.data.patches**3 / _logit_rate(t)),
    "same-score-cap": sizes(same_score_curve=flat(0.1)),
    "linear-drift": case("linear-phase", alignment_curve=_early),
    "linear-drift-diagonal": case("linear-phase", alignment_curve=_early),
    "linear-phase-time": case("linear-phase", linear_phase_end=lambda t: 0.1 / t.network.linear),
    "linear-phase-noise": case("linear-phase", phase_orthogonal=1e-4, orthogonal_curve=flat(1e-6)),
    "linear-phase-logits": case("linear-phase", phase_logit=1.0),
    "coupling-value": case("coupling", worst_orthogonal=0.01),
    "coupling-logits": case("coupling", worst_logit_gap=0.1),
    "coupling-gradient": case("coupling", worst_gradient_gap=0.1),
    "coupling-output": case("coupling", output_gap=0.1),
    "follows-population": case(
        "coupling",
        linear_phase_end=100.0,
        alignment_curve=flat(0.02),
        gain_curve=flat(30.0),
        ideal_alignment_curve=flat(0.04),
        ideal_gain_curve=flat(30.0),
    ),
    "transfer-order": _transfer(error=_errors(0.14, 0.14, 0.15)),
    "transfer-with": _transfer(needed=lambda t: t.data.patches**0.5),
    "transfer-sign": _transfer(error=_errors(0.02, 0.02, 0.15)),
    "transfer-learned": _transfer(needed=lambda t: t.data.patches**0.5),
    "transfer-as-population": _transfer(needed=lambda t: 3.0 if t.pretraining == "population" else 10.0),
    "transfer-without": _transfer(needed=100.0),
    "transfer-coupons": _transfer(needed=lambda t: 3.0 * t.data.patches),
    "one-step-cosine": _transfer(cosine=lambda t: np.full(len(t.sizes), 0.3)),
    "learners-order": _learners(size=_downstream, error=_errors(0.2, 0.2, 0.05)),
    "descent-transfers": _learners(size=_downstream, error=_errors(0.02, 0.1, 0.15)),
    "sample-transfers": _learners(size=_downstream, error=_errors(0.02, 0.1, 0.15)),
    "unseen-groups": _learners(size=_downstream, error=_errors(0.01, 0.01, 0.01)),
    "degree-helps": case("sizes", test_error=lambda t: 0.01 * t.network.degree),
    "error-floor": case("sizes", test_error=0.05),
}
