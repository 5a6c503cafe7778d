"""A study of a toy, for tests of what the lab does with figures and claims."""

import sys
from dataclasses import replace
from math import inf
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.study import Claim, Figure, Question, Study
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all
from tests.toys import Decay


def both(trial, value):
    """An axis that moves two fields at once."""
    return put_all(trial, {"rate": value, "target": value / 100})


def picture(results, verdicts):
    figure, axes = plt.subplots()
    axes.plot(np.asarray(results.steps.mean("seed")).ravel())
    return figure


def rates(scale):
    return Sweep(Decay(), (axis("rate", (0.5, 0.1)),), (0, 1))


def moved(scale):
    return Sweep(Decay(), (Axis("strength", (0.5, 0.1), both),), (0, 1))


def edge(scale):
    return Sweep(
        Decay(), (axis("rate", (0.05, 0.1, 0.2, 0.4)), axis("target", (1e-4, 1e-3, 1e-2, 1e-1))), (0,)
    )


def in_time(results):
    return (results["steps"] <= 20).where(results["steps"].notnull())


FIGURES = {
    "rates": Figure("rates", rates, picture, "As it stands.", readings={"near": {}, "far": {"target": 0.01}}),
    "moved": Figure("moved", moved, picture, "As it stands."),
    "edge": Figure("edge", edge, picture, "As it stands.", question=Question(in_time, "rate", "target")),
}


def steps(results) -> Estimate:
    return mean(results.steps)


def each(results):
    return results.steps


def misspelt(results) -> Estimate:
    return mean(results.stepz)


def claim(id="steps", **changes):
    given = {
        "statement": "It takes 38 steps on average",
        "figure": "rates",
        "reference": "Theorem 0",
        "kind": "bound",
        "predicted": "38",
        "tolerance": (-inf, 100.0),
        "reason": "A toy.",
        "measure": "steps",
    }
    return Claim(id, **given | changes)


STUDY = Study(
    "toy",
    "A toy",
    "Decay.",
    "@misc{toy}",
    {"rates": "Steps", "moved": "Steps", "edge": "In time"},
    (claim(),),
    __name__,
)


def registered(monkeypatch, *claims):
    """The toy as a study that the registry knows, its rooms in this module, its lock in memory."""
    own = replace(STUDY, claims=claims or STUDY.claims)
    here = SimpleNamespace(**globals())
    monkeypatch.setattr(Study, "room", lambda self, name: here)
    monkeypatch.setattr(sys.modules["lemmata.study"], "studies", lambda: {"toy": own})
    return own
