"""What a paper is to the lab: a study with its figures and claims, and the registry of studies.

Everything here is light: importing it, and listing all studies, touches neither JAX nor the results. What is heavy
(sweeps, drawings, measures) lives in the study's `figures.py` and `claims.py` and is loaded when it is asked for.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Literal, get_args

from lemmata.errors import BadInput, unknown
from lemmata.measure.compare import Condition, Verdict, decide, more_seeds, together
from lemmata.measure.estimate import Estimate

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray as xr

    from lemmata.sweep import Sweep

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)


@dataclass(frozen=True)
class Prediction:
    """A number that the theory gives without any training."""

    name: str
    value: float | str


@dataclass(frozen=True)
class Question:
    """What an adaptive run of a figure refines: the critical value of one axis (`threshold`) as a power of another
    (`over`).

    `success(results)` says which runs succeeded (1, 0, NaN where not run). Both names are axes of the sweep or
    coordinates that the results derive from them.
    """

    success: "Callable[[xr.Dataset], xr.DataArray]"
    threshold: str
    over: str


@dataclass(frozen=True)
class Figure:
    """A sweep, a drawing of its results, and how the paper was read.

    `sweep(scale)` is what to run. `draw(results, verdicts)` returns a matplotlib figure. `complete(results)` adds
    derived coordinates and variables (the SNR of a signal norm) to the stored ones before anybody looks at them.
    `question` is the boundary that `run --adaptive` refines, where the figure shows one.
    """

    id: str
    sweep: "Callable[[Scale], Sweep]"
    draw: "Callable[[xr.Dataset, list[Verdict]], matplotlib.figure.Figure]"
    reading: str
    complete: "Callable[[xr.Dataset], xr.Dataset]" = lambda results: results
    question: Question | None = None
    study: str = ""

    def run(self, scale: str = "quick", workers: int = 0, **options: Any) -> "xr.Dataset":
        """Run what is missing of the figure and return its results.

        Options are those of `lemmata run`: `changes` (a mapping of dotted paths to values), `seeds`, `out`.
        """
        from lemmata.lab.order import place_order

        return place_order(f"{self.study}/{self.id}", scale, **options).run(workers)


@dataclass(frozen=True)
class Claim:
    """One statement of a paper that a result can contradict. It says beforehand what would refute it.

    `measure(results)` gives a number with an interval from the results of `figure`; the claim holds when the interval
    lies inside `tolerance`, and `reason` says why the tolerance is what it is. `conditions(results)` are the theorem's
    own, at the settings of the results.
    """

    id: str
    figure: str
    reference: str
    predicted: str
    tolerance: tuple[float, float]
    reason: str
    measure: "Callable[[xr.Dataset], Estimate]"
    conditions: "Callable[[xr.Dataset], list[Condition]]" = lambda results: []

    def judge(self, statement: str, results: "xr.Dataset") -> Verdict:
        """The verdict on these results. What they lack makes it inconclusive, in one sentence, never an error."""
        try:
            estimate, conditions = self.measure(results), tuple(self.conditions(results))
        except (LookupError, ValueError, AttributeError, ArithmeticError) as lack:
            said = str(lack.args[0] if lack.args else type(lack).__name__).partition("\n")[0]
            estimate, conditions = (
                Estimate.absent(f"these results do not hold what the claim needs: {said}"),
                (),
            )
        seeds = results.sizes.get("seed", 1)
        return Verdict(
            id=self.id,
            statement=statement,
            verdict=decide(estimate, self.tolerance),
            predicted=self.predicted,
            measured=estimate,
            tolerance=self.tolerance,
            conditions=conditions,
            note=estimate.note,
            seeds=seeds,
            more_seeds=more_seeds(estimate, self.tolerance, seeds),
        )


@dataclass(frozen=True)
class Study:
    """The title page of a paper: what it is about, its figures and claims by name, and where the rest is found.

    `figures` maps a figure's id to its title and `claims` a claim's id to its statement. `package.figures` holds
    `FIGURES` and `template()`; `package.claims` holds `CLAIMS` and `predict(trial)`.
    """

    id: str
    title: str
    summary: str
    citation: str
    figures: Mapping[str, str]
    claims: Mapping[str, str]
    package: str

    def figure(self, id: str) -> Figure:
        if id not in self.figures:
            raise unknown(f"figure of {self.id}", id, self.figures)
        return replace(_room(self, "figures").FIGURES[id], study=self.id)

    def claim(self, id: str) -> Claim:
        if id not in self.claims:
            raise unknown(f"claim of {self.id}", id, self.claims)
        return _room(self, "claims").CLAIMS[id]

    def template(self) -> Any:
        """The trial that `predict` starts from."""
        return _room(self, "figures").template()

    def predict(self, trial: Any) -> tuple[list[Condition], list[Prediction]]:
        """The conditions of the theorems at a trial, with margins, and what they predict for it."""
        return _room(self, "claims").predict(trial)

    def check(self, *results: "xr.Dataset", only: str | None = None, rate: float = 0.05) -> list[Verdict]:
        """A verdict for every claim that bears on these results (of one figure or several), judged together: the
        false discovery rate of all is kept at `rate`."""
        figures = {one.attrs.get("figure"): one for one in results}
        claims = [self.claim(id) for id in self.claims if only in (None, id)]
        judged = [c.judge(self.claims[c.id], figures[c.figure]) for c in claims if c.figure in figures]
        return together(judged, rate)


@cache
def studies() -> dict[str, Study]:
    """Every study by its id: the lab's own, then those that other packages announce (`lemmata.studies`)."""
    import lemmata.studies as own

    found = [
        importlib.import_module(f"{own.__name__}.{m.name}").STUDY for m in pkgutil.iter_modules(own.__path__)
    ]
    found += [point.load() for point in entry_points(group="lemmata.studies")]
    return {study.id: study for study in found}


def study(id: str) -> Study:
    """The study with this id."""
    if id not in studies():
        raise unknown("study", id, studies())
    return studies()[id]


def scale(name: str) -> Scale:
    """The scale of this name."""
    for known in SCALES:
        if known == name:
            return known
    raise unknown("scale", name, SCALES)


def _room(study: Study, name: str) -> Any:
    try:
        return importlib.import_module(f"{study.package}.{name}")
    except ModuleNotFoundError as missing:
        raise BadInput(f"study '{study.id}' has no {name} yet ({missing}).") from missing
