"""Lemma 1, Theorem 1 and their condition."""

from math import log

from lemmata.measure.compare import Condition
from lemmata.study import Prediction

from .trials import BowlDescent


def factor(rate: float, curvature: float) -> float:
    """Lemma 1: each step multiplies the loss by `(1 - eta h)^2`."""
    return (1 - rate * curvature) ** 2


def steps_needed(rate: float, curvature: float, shrink: float) -> float:
    """Theorem 1: `T = log(1/shrink) / (-log((1 - eta h)^2))` steps multiply the loss by `shrink`."""
    return log(1 / shrink) / -log(factor(rate, curvature))


def stable(trial: BowlDescent) -> list[Condition]:
    """The step size must stay below 1/h."""
    product = trial.descent.learning_rate * trial.data.curvature
    return [Condition("eta h < 1", product < 1, 1 / product)]


def predict(trial: BowlDescent) -> tuple[list[Condition], list[Prediction]]:
    rate, curvature = trial.descent.learning_rate, trial.data.curvature
    return stable(trial), [
        Prediction("factor of the loss in a step", factor(rate, curvature)),
        Prediction("steps to a thousandth of the first loss", steps_needed(rate, curvature, 1e-3)),
    ]
