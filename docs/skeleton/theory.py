"""Theorem 1 and its condition."""

from math import log

from lemmata.measure.compare import Condition
from lemmata.study import Prediction

from .trials import Descending


def steps_needed(rate: float, curvature: float, shrink: float) -> float:
    """Theorem 1: `T = log(1/shrink) / (-2 log(1 - eta h))` steps multiply the loss by `shrink`."""
    return log(1 / shrink) / (-2 * log(1 - rate * curvature))


def stable(trial: Descending) -> list[Condition]:
    """The step size must stay below 1/h."""
    product = trial.descent.learning_rate * trial.data.curvature
    return [Condition("eta h < 1", product < 1, 1 / product)]


def predict(trial: Descending) -> tuple[list[Condition], list[Prediction]]:
    needed = steps_needed(trial.descent.learning_rate, trial.data.curvature, trial.descent.target_loss)
    return stable(trial), [Prediction("steps to shrink the loss to the target times its start", needed)]
