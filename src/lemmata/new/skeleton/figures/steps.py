"""Steps to a small loss against the step size: Lemma 1 and Theorem 1."""

from math import log

import numpy as np

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, Made, about, made, theorem
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep, axis

from ..theory import factor, stable
from ..trials import BowlDescent


def template() -> BowlDescent:
    """The trial that `lemmata predict` starts from."""
    return BowlDescent()


def sweep(scale: Scale) -> Sweep:
    rates = by_scale(scale, (0.01, 0.02, 0.04), (0.01, 0.02, 0.04, 0.08), (0.005, 0.01, 0.02, 0.04, 0.08))
    return Sweep(template(), (axis("descent.learning_rate", rates),), tuple(range(by_scale(scale, 3, 5, 20))))


def own_factor(trial: BowlDescent) -> float:
    return factor(trial.descent.learning_rate, trial.data.curvature)


def relative_pace(results):
    """The logarithm of the loss that a step takes off, in units of Lemma 1."""
    return mean(np.log(results.shrink) / (results.steps * over_cells(results, lambda t: log(own_factor(t)))))


def power(exponent: float) -> Made:
    """Steps that go as a power of the step size."""
    return made(steps=lambda t: 3 * t.descent.learning_rate**exponent)


def pace(times: float) -> Made:
    """A loss that falls some times as fast as in Lemma 1."""
    return made(
        steps=lambda t: 3 / t.descent.learning_rate,
        shrink=lambda t: own_factor(t) ** (times * 3 / t.descent.learning_rate),
    )


steps = Figure(
    "steps",
    "Steps to a small loss against the step size",
    setup="Curvature 1. The paper does not say how many dimensions the bowl has.",
    sweep=sweep,
    picture=panels(
        Panel(lambda r: r.steps, "learning_rate", "step size", "steps to the target loss", log="xy"),
        caption="Gradient descent on a bowl.",
    ),
    readings={"three dimensions": {"data.dim": 3}, "thirty dimensions": {"data.dim": 30}},
    claims=[
        Claim(
            "steps-rate",
            "The number of steps to a given loss goes as the step size to the power -1",
            theorem("Theorem 1"),
            headline=True,
            number=lambda r: exponent(r.steps, "learning_rate", paired=True),
            holds=about(-1.0, -1.1, -0.9, because="a tenth keeps -1 apart from -1/2 and -2"),
            conditions=stable,
            refuted_by=power(-0.5),
            upheld_by=power(-1.0),
        ),
        Claim(
            "factor-of-a-step",
            "Each step multiplies the loss by (1 - eta h)^2",
            theorem("Lemma 1"),
            headline=True,
            number=relative_pace,
            holds=about(
                1.0, 0.98, 1.02, because="the lemma is exact; a plain factor 1 - eta h would give 1/2"
            ),
            conditions=stable,
            refuted_by=pace(0.95),
            upheld_by=pace(1.0),
        ),
    ],
)
