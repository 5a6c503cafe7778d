"""`lemmata plan`: how much of something it takes until a quantity is small (or large) enough.

What the theory says comes first. Then a few trainings around its number, with more seeds until each value is decided, give an
interval; or the answer lies beyond the grid.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite
from pathlib import Path
from typing import Any

import xarray as xr

from lemmata.errors import BadInput, require, unknown
from lemmata.figure import Figure
from lemmata.lab.pool import Pool
from lemmata.lab.run import carry_out
from lemmata.lab.spool import Spool
from lemmata.lab.store import Store
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.progress import silence
from lemmata.results import assemble
from lemmata.study import Study
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import describe, fields

AROUND = (0.5, 0.65, 0.8, 1.0, 1.25, 1.6)
"""Values that are trained, as factors of the theory's number."""

SEEDS, MOST_SEEDS = 5, 20
FIRST_SEED = 4 * 10**12
"""Where the seeds of plans begin: no verdict and no search uses them."""

VACUOUS = 100.0
"""A theory's number that is this factor above what was measured says nothing here."""


@dataclass(frozen=True)
class Want:
    """What is asked for: a record, a side and a value, such as `cot_error<0.05`."""

    quantity: str
    below: bool
    value: float

    @staticmethod
    def of(said: str) -> "Want":
        """Read it as a user writes it.

        >>> Want.of("cot_error<0.05")
        Want(quantity='cot_error', below=True, value=0.05)
        """
        found = re.fullmatch(r"\s*(\w+)\s*([<>])\s*([-+.\deE]+)\s*", said)
        try:
            return Want(found[1], found[2] == "<", float(found[3]))  # pyright: ignore[reportOptionalSubscript]
        except (TypeError, ValueError):
            raise BadInput(
                f"--want takes a record, < or >, and a number, such as 'cot_error<0.05', not '{said}'."
            ) from None

    def decided(self, estimate: Estimate) -> bool | None:
        """Whether an estimate meets it; None while its interval holds the value."""
        if not estimate.exists or estimate.low <= self.value <= estimate.high:
            return None
        return (estimate.value < self.value) == self.below


@dataclass(frozen=True)
class Number:
    """What one rule of the theory says: its sentence, its number, and how far that was off (above 1: too large)."""

    says: str
    number: float
    off: float | None = None

    @property
    def vacuous(self) -> bool:
        return self.off is not None and self.off >= VACUOUS


@dataclass(frozen=True)
class Answer:
    """What a plan found.

    `low`, `high`: the quantity does not meet the wish at `low`, and does at `high`; None beyond the grid.
    `rows`: the values that were trained, each with its estimate.
    """

    want: Want
    vary: str
    numbers: tuple[Number, ...]
    low: float | None
    high: float | None
    rows: tuple[tuple[Any, Estimate], ...]
    trainings: int
    figure: str

    @property
    def sentence(self) -> str:
        sign = "<" if self.want.below else ">"
        asked = f"{self.want.quantity} {sign} {self.want.value:g}"
        if self.low is not None and self.high is not None:
            return f"{asked} from between {self.low:g} and {self.high:g} of {self.vary}"
        if self.high is not None:
            return f"{asked} at every value that was trained, from {self.high:g} of {self.vary} on"
        if self.low is not None:
            return f"{asked} is beyond the grid: not yet at {self.low:g} of {self.vary}"
        return f"{asked}: these trainings do not decide it"


def plan(
    study: Study,
    figure: Figure,
    want: Want,
    vary: str,
    pool: Pool | Spool,
    out: Path | None = None,
    changes: Mapping[str, Any] | None = None,
    budget: float = inf,
    told: Callable[[str], None] = lambda sentence: None,
) -> Answer:
    """Answer how much of `vary` it takes. `told` hears the theory's sentences before the first training."""
    template = _pinned(figure, vary, changes or {})
    rules = [one for one in figure.rules if (one.quantity, one.vary) == (want.quantity, vary)]
    trial = next(iter(template.cells.trials))
    numbers = [Number(one.says, float(one.number(trial, want.value))) for one in rules]
    for one in numbers:
        told(f"{one.says}: {one.number:.4g}")
    field = rules[0].field if rules else ""
    values = _values(figure, template, vary, field, numbers)
    told(
        f"training {len(values)} values of {vary}, {SEEDS} to {MOST_SEEDS} seeds each: {', '.join(map(str, values))}"
    )
    store = Store((out or Path("runs") / study.id / "plan") / figure.id)
    count, spent = SEEDS, 0
    while True:
        sweep = _sweep(template, vary, field, values, count)
        spent = len(sweep.cells)
        results = _run(figure, sweep, store, study, pool)
        require(want.quantity in results, str(unknown("record", want.quantity, map(str, results.data_vars))))
        found = [_along(results[want.quantity], vary, value) for value in values]
        open_ = [one for one in found if want.decided(one) is None]
        if not open_ or count >= MOST_SEEDS or 2 * spent > budget:
            break
        count = min(2 * count, MOST_SEEDS)
    rows = tuple(zip(values, found, strict=True))
    low, high = _crossing(rows, want)
    off = tuple(replace(one, off=_off(one.number, low, high)) for one in numbers)
    return Answer(want, vary, off, low, high, rows, spent, figure.id)


def figure_for(study: Study, want: Want, vary: str) -> Figure:
    """The first figure with a rule for the question; else the first with such an axis."""
    every = [study.figure(id) for id in study.figures]
    ruled = [f for f in every if any((r.quantity, r.vary) == (want.quantity, vary) for r in f.rules)]
    swept = [f for f in every if any(vary in (a.name, a.place) for a in f.sweep("quick").axes)]
    if not ruled and not swept:
        axes = {a.name for f in every for a in f.sweep("quick").axes} | {
            r.vary for f in every for r in f.rules
        }
        raise unknown(f"axis of {study.id}", vary, sorted(axes))
    return (ruled or swept)[0]


def _pinned(figure: Figure, vary: str, changes: Mapping[str, Any]) -> Sweep:
    """The figure's sweep with one label on every other axis, the middle one, as far as `changes` does not say which."""
    sweep = figure.sweep("quick").with_fields(dict(changes))
    axes = [
        a if vary in (a.name, a.place) else replace(a, values=(a.values[len(a.values) // 2],))
        for a in sweep.axes
    ]
    own = [replace(a, values=a.values[:1]) for a in axes]
    return replace(sweep, axes=tuple(own), seeds=(0,))


def _values(figure: Figure, template: Sweep, vary: str, field: str, numbers: Sequence[Number]) -> list[Any]:
    """About six values around what the theory says last, the sharpest rule; else those of the figure."""
    swept = next((a.values[0] for a in template.axes if vary in (a.name, a.place)), 1)
    fractional = isinstance(fields(template.template).get(field, swept), float)
    for one in reversed(numbers):
        if isfinite(one.number) and one.number > 0:
            around = [one.number * factor for factor in AROUND]
            return sorted({float(f"{v:.3g}") if fractional else max(1, ceil(v)) for v in around})
    for a in figure.sweep("quick").axes:
        if vary in (a.name, a.place):
            return list(a.values)
    raise BadInput(f"the theory gives no number for '{vary}' here, and '{figure.id}' has no such axis.")


def _sweep(template: Sweep, vary: str, field: str, values: Sequence[Any], seeds: int) -> Sweep:
    """The sweep over the values: as a list in one field of every trial, or as an axis."""
    with_seeds = template.with_seeds(range(FIRST_SEED, FIRST_SEED + seeds))
    if field and isinstance(fields(template.template)[field], tuple):
        return with_seeds.with_fields({field: list(values)})
    known = next((a for a in template.axes if vary in (a.name, a.place)), None)
    own: Axis = (
        replace(known, values=tuple(values)) if known is not None else axis(field or vary, values, vary)
    )
    others = tuple(a for a in template.axes if a is not known)
    return replace(with_seeds, axes=(*others, own))


def _run(figure: Figure, sweep: Sweep, store: Store, study: Study, pool: Pool | Spool) -> xr.Dataset:
    manifest = {"study": study.id, "figure": figure.id, "plan": True, "trial": describe(sweep.template)}
    with silence() as progress:
        rows = carry_out(sweep, store, manifest, pool, progress)
    attrs = {"study": study.id, "figure": figure.id, "scale": "quick"}
    return figure.complete(assemble(sweep, rows, attrs))


def _along(values: xr.DataArray, vary: str, value: Any) -> Estimate:
    """The mean over seeds at one value of what is varied."""
    dim = vary if vary in values.dims else vary.rpartition(".")[2]
    require(
        dim in values.dims,
        f"the record has no values along '{vary}', only along {', '.join(map(str, values.dims))}.",
    )
    return mean(values.sel({dim: value}))


def _crossing(rows: Sequence[tuple[Any, Estimate]], want: Want) -> tuple[float | None, float | None]:
    """The largest value that surely does not meet the wish, and the smallest from which on all surely do."""
    missed = [float(value) for value, one in rows if want.decided(one) is False]
    low = max(missed, default=None)
    after = [(float(value), one) for value, one in rows if low is None or value > low]
    met = [value for value, one in after if want.decided(one)]
    return low, min(met, default=None)


def _off(number: float, low: float | None, high: float | None) -> float | None:
    """How far a theory's number lies from what was measured, as a factor; 1 inside the interval."""
    if low is None or high is None or not isfinite(number) or number <= 0:
        return None
    return number / high if number > high else number / low if number < low else 1.0
