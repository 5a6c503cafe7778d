"""How long a training needs to associate patches, in plain English."""

from math import inf, isfinite
from typing import Any

from lemmata.answer import Answer, needed, number_text
from lemmata.studies.spatial_structure.theory import conditions as own


def _times(trial: Any) -> tuple[float, float, float]:
    """Steps of the linear phase, of the first and of the second event."""
    data, network, descent = trial.data, trial.network, trial.descent
    (D, C, q), d, p = data.facts, data.dimension, network.degree
    nu, beta = float(network.linear), float(network.diagonal) / network.temperature(d)
    eta, logit_eta = float(descent.learning_rate), float(descent.learning_rate * descent.attention_rate)
    linear = own.linear_phase_end_full(D, C, q, nu, p, beta, eta)
    first = own.event1_time(D, C, q, p, beta, eta, float(network.threshold))
    second = own.event2_duration(D, C, q, p, beta, logit_eta) if logit_eta > 0 else inf
    return linear, first, second


def success(trial: Any) -> bool:
    """Whether spurious patches dominate, and the steps are enough for both events."""
    return own.dominated(trial)[0].holds is True and sum(_times(trial)) <= trial.descent.steps


def sentence(trial: Any) -> str:
    times = _times(trial)
    if not isfinite(sum(times)):
        return "The groups are never associated here: one of the events does not end."
    linear = own.glm_error(*trial.data.facts)
    parts = "{} for the linear phase, {} and {} for the two events".format(
        *(number_text(t, True) for t in times)
    )
    enough = "enough" if sum(times) <= trial.descent.steps else "too few"
    return (
        f"You need {needed(sum(times), 'steps')} until the groups are associated ({parts}); "
        f"{trial.descent.steps} are planned, which is {enough}. Linear models err on {linear:.1%} of the images."
    )


ANSWER = Answer(
    sentence,
    success,
    goal="associates the groups",
    inputs=(
        *("data.patches", "data.group_size", "data.dimension", "data.spurious_rate", "network.degree"),
        *("network.linear", "network.diagonal", "descent.learning_rate", "descent.steps"),
    ),
    main=(
        "error of linear models",
        *("end of the linear phase (steps)", "first event from there", "second event until gamma = 1, alpha")),
    counts=("end of the linear phase", "first event", "second event", "samples for"),
    claims=("event2-derived", "first-event-constant"),
)  # fmt: skip
