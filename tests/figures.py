"""A study of a toy, for tests of what the lab does with figures and claims."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

from lemmata.figure import Claim, Figure, Question, at_most, made, theorem
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.study import Study
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


RATES = Figure(
    "rates", "Steps", "As it stands.", rates, picture, readings={"near": {}, "far": {"target": 0.01}}
)
MOVED = Figure("moved", "Steps", "As it stands.", moved, picture)
EDGE = Figure("edge", "In time", "As it stands.", edge, picture, question=Question(in_time, "rate", "target"))


def steps(results) -> Estimate:
    return mean(results.steps)


def misspelt(results) -> Estimate:
    return mean(results.stepz)


FEW = made(steps=lambda t: 40)
MANY = made(steps=lambda t: 200)
FEWER_THAN_100 = at_most(100.0, because="A toy.", value=38.0)


def claim(id="steps", **changes) -> Claim:
    given: dict = {"number": steps, "holds": FEWER_THAN_100, "refuted_by": MANY, "upheld_by": FEW}
    source = changes.pop("source", theorem("Theorem 0"))
    return Claim(id, "It takes 38 steps on average", source, **given | changes)


def study_of(*figures: Figure, id: str = "toy", **words) -> Study:
    """A study whose figures are given, and that is not registered."""
    given = {
        "title": "A toy",
        "summary": "Decay.",
        "citation": "@misc{toy}",
        "package": "tests",
        "version": "Toys 1",
    }
    own = Study(id, **given | words)
    own.__dict__.update(_figures={one.id: one for one in figures}, lock={}, publication={})
    return own


def registered(monkeypatch, *claims: Claim, on: str = "rates") -> Study:
    """The toy as a study that the registry knows: with these claims on one of its figures, its other modules in memory."""
    own = study_of(
        *(replace(one, claims=(claims or (claim(),)) if one.id == on else ()) for one in (RATES, MOVED, EDGE))
    )
    here = SimpleNamespace(template=Decay, LEDGER=())
    monkeypatch.setattr(Study, "module", lambda self, name: here)
    monkeypatch.setattr(sys.modules["lemmata.study"], "studies", lambda: {own.id: own})
    return own
