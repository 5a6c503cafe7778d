"""What a paper is to the lab: a study with its figures and claims, and the registry of studies.

Everything here is light: importing it, and listing all studies, touches neither JAX nor results. What is heavy lives in the
study's other rooms (`figures`, `measures`, `theory`, `pictures`, `planted`) and is loaded when it is asked for.
"""

import importlib
import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import entry_points
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from lemmata.errors import BadInput, note, require, unknown

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import matplotlib.figure
    import xarray as xr

    from lemmata.lab.order import Order
    from lemmata.measure.compare import Condition, Verdict
    from lemmata.sweep import Sweep

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)
Kind = Literal["law", "bound", "for-all", "probability", "order", "rival", "identity"]
Value = TypeVar("Value")


@dataclass(frozen=True)
class Claim:
    """One statement of a paper that a result can contradict, as light data. It says beforehand what would refute it.

    `statement` is what the paper says (sign, quantifier and set included), `reference` where. `kind` says how the judge reads
    it: a `law` (an exponent, a constant), a `bound` (one side), `for-all` (every run), a `probability`, an `order` (rises,
    first this then that), a `rival` (the paper's number against others'), an `identity` (to rounding).

    `measure` names a function of the study's `measures`, called with the results of `figure` and `options`. It gives an
    estimate; for a `for-all` claim a number for every run. The claim holds when the interval lies inside `tolerance`
    (for-all: when every
    run does); `reason` says why the tolerance is what it is. `predicted` is the prediction in words, `value` the number itself.

    `region` names a function of `measures` that marks the cells which the number comes from (all, if empty). `conditions` names
    a function of `theory` that gives the theorem's own conditions at a trial: they are looked at in every cell of the region.
    Runs that diverged, failed or were capped count only if `uses` names their status.
    """

    id: str
    statement: str
    figure: str
    reference: str
    kind: Kind
    predicted: str
    tolerance: tuple[float, float]
    reason: str
    measure: str
    options: Mapping[str, Any] = field(default_factory=dict)
    value: float | None = None
    rivals: Mapping[str, float] = field(default_factory=dict)
    region: str = ""
    conditions: str = ""
    uses: tuple[str, ...] = ()

    def __post_init__(self):
        low, high = self.tolerance
        if self.kind not in get_args(Kind):
            raise unknown(f"kind of claim '{self.id}'", self.kind, get_args(Kind))
        require(low < high, f"the tolerance of claim '{self.id}' is empty: {low:g} to {high:g}.")
        one_sided = isinf(low) != isinf(high)
        require(
            self.kind != "bound" or one_sided,
            f"claim '{self.id}' is a bound: one end of its tolerance is infinite.",
        )
        require(self.kind != "rival" or bool(self.rivals), f"claim '{self.id}' names no rival.")


@dataclass(frozen=True)
class Statement:
    """A line of a study's ledger: a numbered statement of the paper, as printed and as mended.

    `function` is the formula in the study (`theory.critical_control`), `held_against` the claim, figure or test that holds it
    against runs; `finding` what came out where no claim says so (`holds`, `fails`, how loose).
    """

    number: str
    says: str
    mended: str = ""
    function: str = ""
    held_against: str = ""
    finding: str = ""


@dataclass(frozen=True)
class Prediction:
    """What the theory says without any training: a number, or a sentence."""

    name: str
    value: float | str


@dataclass(frozen=True)
class Question:
    """What an adaptive run of a figure refines: the critical value of one axis (`threshold`) as a power of another (`over`).

    `success(results)` says which runs succeeded (1, 0, NaN where not run). Both names are axes of the sweep or coordinates that
    the results derive from them.
    """

    success: "Callable[[xr.Dataset], xr.DataArray]"
    threshold: str
    over: str


@dataclass(frozen=True)
class Figure:
    """A sweep, a picture of its results, and how the paper was read.

    `sweep(scale)` is what to run. `picture(results, verdicts)` returns a matplotlib figure. `complete(results)` adds derived
    coordinates and variables (the SNR of a signal norm) to the stored ones before anybody looks at them. `question` is the
    boundary that an adaptive run refines. `readings` are the ways in which the paper can be read, by name: fields to set; the
    first is the one nearest to the text. `draw_number` chooses the seeds (see `registration`).
    """

    id: str
    sweep: "Callable[[Scale], Sweep]"
    picture: "Callable[[xr.Dataset, list[Verdict]], matplotlib.figure.Figure]"
    reading: str
    complete: "Callable[[xr.Dataset], xr.Dataset]" = lambda results: results
    question: Question | None = None
    readings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    study: str = ""
    draw_number: int = 0

    def order(self, scale: str = "quick", **options: Any) -> "Order":
        """An order for this figure. Options: `changes` (dotted paths to values), `axes`, `seeds`, `out`, `reading`."""
        from lemmata.lab.order import Order

        return Order(self, scale_named(scale), **options)

    def run(
        self,
        scale: str = "quick",
        workers: int = 0,
        progress: bool = False,
        executor: "Executor | None" = None,
        **options: Any,
    ) -> "xr.Dataset":
        """Run what is missing of the figure and return its results: here, by worker processes, or by any
        `concurrent.futures.Executor`. Options are those of `order`."""
        from lemmata.lab.pool import Pool
        from lemmata.progress import bar, silence

        order = self.order(scale, **options)
        with Pool(workers, executor) as pool, bar(order.name) if progress else silence() as told:
            return order.run(pool, told)

    def draw(
        self, results: "xr.Dataset", verdicts: "list[Verdict] | None" = None
    ) -> "matplotlib.figure.Figure":
        """The picture of some results of this figure."""
        return self.picture(results, verdicts or [])


@dataclass(frozen=True)
class Study:
    """The title page of a paper: what it is about, its figures and claims, and where the rest is found.

    `figures` maps a figure's id to its title. `package` holds the rooms: `figures` (`FIGURES`, `template()`), `measures`,
    `theory` (conditions; `predict(trial)`), `planted` (`PLANTED`), and the lock of the claims.
    """

    id: str
    title: str
    summary: str
    citation: str
    figures: Mapping[str, str]
    claims: "tuple[Claim, ...]"
    package: str
    ledger: tuple[Statement, ...] = ()

    def figure(self, id: str) -> Figure:
        if id not in self.figures:
            raise unknown(f"figure of {self.id}", id, self.figures)
        found = self.room("figures").FIGURES[id]
        return replace(found, study=self.id, draw_number=self.draw_number(id))

    def claim(self, id: str) -> Claim:
        known = {claim.id: claim for claim in self.claims}
        if id not in known:
            raise unknown(f"claim of {self.id}", id, known)
        return known[id]

    def bearing_on(self, figure: str) -> list[Claim]:
        """The claims that the results of a figure can contradict."""
        return [claim for claim in self.claims if claim.figure == figure]

    def template(self) -> Any:
        """The trial that `predict` starts from."""
        return self.room("figures").template()

    def predict(self, trial: Any) -> "tuple[list[Condition], list[Prediction]]":
        """The conditions of the theorems at a trial, with margins, and what they predict for it."""
        theory = self.room("theory")
        from jax.errors import JaxRuntimeError
        from numpy.linalg import LinAlgError

        try:
            return theory.predict(trial)
        except (ArithmeticError, MemoryError, LinAlgError, JaxRuntimeError) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(
                f"the formulas of '{self.id}' leave the numbers of a computer here: {why}"
            ) from error

    def check(
        self, *results: "xr.Dataset", only: str | None = None, rate: float | None = None, inside: bool = False
    ) -> "list[Verdict]":
        """A verdict for every claim that bears on these results (of one figure or several, under one reading or several),
        judged together: the false discovery rate of all is kept at `rate` (5 %, looks paid for). With `inside` only cells
        that satisfy a claim's conditions count."""
        from lemmata.measure.judge import judge, together

        if only is not None:
            self.claim(only)
        for one in results:
            require(
                one.attrs.get("study") == self.id and one.attrs.get("figure") in self.figures,
                f"these results do not say that they belong to a figure of {self.id}; take them as `run` gives them.",
            )
        judged = [
            judge(claim, one, *self.parts(claim), inside=inside)
            for claim in self.claims
            for one in results
            if claim.figure == one.attrs["figure"] and only in (None, claim.id)
        ]
        return together(judged, rate)

    def parts(
        self, claim: Claim
    ) -> "tuple[Callable[..., Any], Callable[..., Any] | None, Callable[..., Any] | None]":
        """The functions that a claim names: its measure, its region, its conditions."""
        measures = self.room("measures")
        region = getattr(measures, claim.region) if claim.region else None
        conditions = getattr(self.room("theory"), claim.conditions) if claim.conditions else None
        return getattr(measures, claim.measure), region, conditions

    def room(self, name: str) -> Any:
        """A room of the study, loaded."""
        try:
            return importlib.import_module(f"{self.package}.{name}")
        except (Exception, SystemExit) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(f"the room '{name}' of the study '{self.id}' cannot be loaded: {why}") from error

    @property
    def folder(self) -> Path:
        return Path(importlib.import_module(self.package).__file__ or "").parent

    @cached_property
    def lock(self) -> dict[str, dict[str, Any]]:
        """What was registered of each claim: `digest` and `draw` (see `registration`)."""
        path = self.folder / "lock.json"
        return json.loads(path.read_text()) if path.exists() else {}

    @cached_property
    def published(self) -> tuple[dict[str, Any], ...]:
        """The verdicts that the study publishes (`verdicts.json`, made by `lemmata report STUDY --to FILE.json`)."""
        path = self.folder / "verdicts.json"
        return tuple(json.loads(path.read_text())["verdicts"]) if path.exists() else ()

    def finding(self, line: Statement) -> str:
        """What came out for a statement of the ledger: the published verdicts of its claims, and what else is known."""
        said = [line.finding] if line.finding else []
        words = line.held_against.split(", ")
        for id in [word.removeprefix("claim ") for word in words if word.startswith("claim ")]:
            own = [v for v in self.published if v["id"] == id]
            outcome = " / ".join(dict.fromkeys(v["verdict"] for v in own)) or "not judged yet"
            stale = any(v["draw"] != self.draw_number(self.claim(id).figure) for v in own)
            loose = next((f" ({v['looseness']})" for v in own if v["looseness"]), "")
            said.append(f"{id}: {outcome}{loose}{', before it was changed' if stale else ''}")
        return "; ".join(said)

    def draw_number(self, figure: str) -> int:
        """The number of times that the seeds of a figure have been drawn anew; 0 before anything was registered."""
        return max(
            (self.lock.get(claim.id, {}).get("draw", 0) for claim in self.bearing_on(figure)), default=0
        )

    def __repr__(self) -> str:
        return f"Study('{self.id}': {len(self.figures)} figures, {len(self.claims)} claims)"

    def _repr_html_(self) -> str:
        from html import escape

        figures = "".join(
            f"<li><code>{id}</code>: {escape(title)}</li>" for id, title in self.figures.items()
        )
        return f"<b>{escape(self.title)}</b><p>{escape(self.summary)}</p><ul>{figures}</ul>{len(self.claims)} claims"


@cache
def studies() -> dict[str, Study]:
    """Every study by its id: the lab's own, then those that other packages announce (`lemmata.studies`)."""
    import lemmata.studies as own

    found = [
        importlib.import_module(f"{own.__name__}.{m.name}").STUDY for m in pkgutil.iter_modules(own.__path__)
    ]
    known = {study.id: study for study in found}
    for point in entry_points(group="lemmata.studies"):
        try:
            announced = point.load()
            require(isinstance(announced, Study), f"it is a {type(announced).__name__}, not a Study")
            require(announced.id not in known, f"the id '{announced.id}' is taken already")
            known[announced.id] = announced
        except (Exception, SystemExit) as error:  # a broken plug-in must not take the others along
            why = " ".join(f"{type(error).__name__}: {error}".split()).removeprefix("BadInput: ")
            note(f"the study '{point.name}' of another package ({point.value}) is left out: {why}.")
    return known


def study(id: str) -> Study:
    """The study with this id."""
    if id not in studies():
        raise unknown("study", id, studies())
    return studies()[id]


def scale_named(name: str) -> Scale:
    """The scale of this name."""
    for known in SCALES:
        if known == name:
            return known
    raise unknown("scale", name, SCALES)


def by_scale(scale: Scale, smoke: Value, quick: Value, paper: Value) -> Value:
    """The one of three that belongs to a scale."""
    return {"smoke": smoke, "quick": quick, "paper": paper}[scale]
