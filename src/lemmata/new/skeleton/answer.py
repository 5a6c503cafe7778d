"""How many steps a training needs, in plain English."""

from lemmata.answer import Answer, needed

from .theory import steps_needed
from .trials import BowlDescent

SHRINK = 1e-3
"""The ratio of the last loss to the first one that counts as success."""


def _steps(trial: BowlDescent) -> float:
    return steps_needed(trial.descent.learning_rate, trial.data.curvature, SHRINK)


def success(trial: BowlDescent) -> bool:
    """Whether the steps are enough to bring the loss to a thousandth."""
    return trial.descent.learning_rate * trial.data.curvature < 1 and _steps(trial) <= trial.descent.steps


def sentence(trial: BowlDescent) -> str:
    return f"You need {needed(_steps(trial), 'steps')} to bring the loss to {SHRINK:g} of the first one."


ANSWER = Answer(
    sentence,
    success,
    goal="the loss falls to a thousandth",
    inputs=("descent.learning_rate", "data.curvature", "descent.steps"),
    main=("factor of the loss", "steps to a thousandth"),
    counts=("steps",),
)
