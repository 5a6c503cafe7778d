"""Kinds of claims on trial: equivalences, claims with many parts, one-sided bounds, and the word that a scope gives.

`benchmarks.judge` writes these numbers into its table. Every number is a mean of five seeds with noise 0.1. On the edge means
that the truth lies on the end of the tolerance, where a wrong verdict is most likely.
"""

from collections.abc import Mapping

import numpy as np
import xarray as xr

from lemmata.figure import Claim, Holds, at_most, flat, made, positive, theorem
from lemmata.measure.compare import Condition, Verdict, together
from lemmata.measure.estimate import Estimate
from lemmata.measure.judge import judge
from lemmata.measure.simple import mean
from lemmata.results import TrialRef
from lemmata.status import CONVERGED
from lemmata.trial import Computed

NOISE, SEEDS, PARTS, FAMILY = 0.1, 5, 20, 40


class Nothing(Computed):
    """A cell in which nothing is computed."""

    def compute(self, key):
        raise AssertionError("results are made by hand")


def results(seeds: int = SEEDS) -> xr.Dataset:
    held = np.empty((), object)
    held[()] = TrialRef(Nothing())
    status = xr.DataArray(np.full(seeds, CONVERGED), {"seed": range(seeds), "trial": ((), held)}, ("seed",))
    return xr.Dataset({"status": status})


def measured(rng: np.random.Generator, truth: float) -> Estimate:
    return mean(truth + NOISE * rng.standard_normal(SEEDS))


def judged(found: Estimate | Mapping[str, Estimate], holds: Holds, met: bool = True) -> Verdict:
    """The verdict on a theorem whose number is this, in one cell that meets its condition or not."""
    conditions = lambda trial: [Condition("n > d", met, 2.0 if met else 0.5)]  # noqa: E731
    claim = Claim(
        "c",
        "So.",
        theorem("1"),
        number=lambda r: found,
        holds=holds,
        refuted_by=made(),
        conditions=conditions,
    )
    return judge(claim, results())


def equivalence(rng: np.random.Generator, truth: float) -> str:
    return judged(measured(rng, truth), flat(-0.2, 0.2, because="a trial")).verdict


def parts(rng: np.random.Generator, truths: list[float]) -> str:
    estimates = {str(i): measured(rng, truth) for i, truth in enumerate(truths)}
    return judged(estimates, positive(because="a trial")).verdict


def bound(rng: np.random.Generator, truth: float) -> str:
    return judged(measured(rng, truth), at_most(1.0, because="a trial")).verdict


def family(rng: np.random.Generator) -> str:
    """A wrong claim near the edge, judged among claims of which the command judges one in four: is it called `holds`?"""
    bar = at_most(1.0, because="a trial")
    verdicts = [judged(measured(rng, 1.001 if i == 0 else 0.9), bar) for i in range(FAMILY // 4)]
    return together(verdicts, None, {"paper": FAMILY})[0].verdict


def share(repetitions: int, word: str, draw, *given) -> float:
    """How often a world gets a word."""
    rng = np.random.default_rng(7)
    return sum(draw(rng, *given) == word for _ in range(repetitions)) / repetitions


def refuted_outside(repetitions: int) -> float:
    """How often a false statement is called refuted where its conditions are not met."""
    rng = np.random.default_rng(7)
    bar = at_most(1.0, because="a trial")
    return (
        sum(judged(measured(rng, 2.0), bar, met=False).word == "refuted" for _ in range(repetitions))
        / repetitions
    )


def table(repetitions: int) -> list[str]:
    edge, wrong = [0.0] + [1.0] * (PARTS - 1), [-0.5] + [1.0] * (PARTS - 1)
    rows = {
        "equivalence, no change: left open": share(repetitions, "inconclusive", equivalence, 0.0),
        "equivalence, change on the edge: called `holds`": share(repetitions, "holds", equivalence, 0.2),
        "equivalence, change of twice the tolerance: called `holds`": share(
            repetitions, "holds", equivalence, 0.4
        ),
        "equivalence, no change: called `fails`": share(repetitions, "fails", equivalence, 0.0),
        f"{PARTS} parts, all true and all on the edge: called `fails`": share(
            repetitions, "fails", parts, [0.0] * PARTS
        ),
        f"{PARTS} parts, one on the edge: called `fails`": share(repetitions, "fails", parts, edge),
        f"{PARTS} parts, one wrong: called `holds`": share(repetitions, "holds", parts, wrong),
        "bound, truth on it: called `fails`": share(repetitions, "fails", bound, 1.0),
        "bound, beaten tenfold: called `fails`": share(repetitions, "fails", bound, 0.1),
        f"wrong claim near the edge, {FAMILY // 4} of its family of {FAMILY} judged: called `holds`": share(
            repetitions, "holds", family
        ),
        "false statement outside its conditions: called refuted": refuted_outside(repetitions),
    }
    lines = ["", "| kinds, families and scope | wrong, or open |", "|---|---|"]
    return lines + [f"| {name} | {100 * value:.1f} % |" for name, value in rows.items()]
