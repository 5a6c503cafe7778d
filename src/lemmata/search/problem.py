"""Makes points of a search space, says whether they meet the theorem's conditions, and measures claims there.

A point is a small sweep of the figure: its template with some fields changed, and on every axis the fewest labels that give
the claims a number. All points of a batch are run together. Records are stored by content, so that nothing is trained twice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, log
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from lemmata.errors import BadInput, require
from lemmata.figure import Claim, Figure, Made
from lemmata.lab.pool import Pool
from lemmata.lab.run import carry_out
from lemmata.lab.spool import Spool
from lemmata.lab.store import Store
from lemmata.measure.compare import Condition
from lemmata.measure.margin import margin, unlogged
from lemmata.progress import silence
from lemmata.results import assemble
from lemmata.rows import Rows
from lemmata.search.price import Price
from lemmata.search.space import Field, changed, declared, looked_at, moved_by, of_axis, options_of
from lemmata.study import Study
from lemmata.sweep import Axis, Sweep
from lemmata.trial import Trial, describe, fields

Values = Mapping[str, Any]
OUTSIDE = -700.0
"""The room of a point that is no trial, or where a condition is missed by more than any number says."""


@dataclass(frozen=True)
class Room:
    """How far inside the conditions a point lies: the logarithm of the smallest margin, below 0 outside.

    `of`: the same for every condition.
    """

    least: float
    of: Mapping[str, float]


class Problem:
    """What a search varies and measures: claims of one figure that have the same conditions, cells and axes.

    `constant`: what the hidden constant of an order-wise condition is taken as.
    `dropped`: names of conditions that do not bind, because no cell of the figure itself meets them.
    `reading`: fields that the figure's first reading sets.
    """

    def __init__(
        self,
        study: Study,
        claims: Sequence[Claim],
        price: Price,
        folder: Path,
        pool: Pool | Spool,
        constant: float = 1.0,
        dropped: frozenset[str] = frozenset(),
    ):
        self.study, self.claims, self.price = study, tuple(claims), price
        self.figure: Figure = study.figure(claims[0].figure)
        self.conditions = claims[0].conditions
        self.constant, self.dropped = constant, dropped
        self._folder, self._pool = folder, pool
        self.trainings = 0

    # Points -------------------------------------------------------------------------------------------------------------

    @cached_property
    def _sweep(self) -> Sweep:
        """The figure's own sweep under its first reading, with the labels that a point has."""
        reading = next(iter(self.figure.readings.values()), {})
        whole = self.figure.sweep("quick").with_fields(dict(reading))
        axes = tuple(replace(a, values=self.price.labels[a.name]) for a in whole.axes)
        return replace(whole, axes=axes)

    @cached_property
    def _pinned(self) -> dict[str, Axis]:
        """The axes with one label, by what a search calls them: the field that they set, or their own name."""
        pinned = [a for a in self._sweep.axes if len(a.values) == 1]
        return {a.place if isinstance(a.place, str) else a.name: a for a in pinned}

    @cached_property
    def base(self) -> Trial:
        """The trial of the first cell of the point that changes nothing."""
        return next(iter(self._sweep.cells.trials))

    @cached_property
    def space(self) -> list[Field]:
        """What is varied: what the figure declares, or the fields that move a condition; and the axes that no claim needs."""
        whole = self.figure.sweep("quick")
        moved = set().union(*(a.moved(whole.template) for a in whole.axes if self._taken(a)))
        if self.figure.space:
            found = declared(self.figure.space, self.base)
        else:
            asked = None if self.conditions is None or not self.looked(self.base) else self.conditions
            found = moved_by(self.base, asked, moved) or moved_by(self.base, None, moved)
        by_name = {a.name: a for a in whole.axes}
        axes = [of_axis(by_name[name], self.base) for name, a in self._pinned.items() if callable(a.place)]
        return [one for one in found if one.name.partition("[")[0] not in moved] + [a for a in axes if a]

    def _taken(self, a: Axis) -> bool:
        """Whether the fields of an axis cannot be varied: it is needed, or it sets several at once."""
        return callable(a.place) or a.name in self.price.kept

    @cached_property
    def start(self) -> dict[str, Any]:
        """The values of the point that changes nothing."""
        known = fields(self.base)
        found = {}
        for one in self.space:
            path, bracket, place = one.name.partition("[")
            if one.name in self._pinned and one.name not in known:
                found[one.name] = self._pinned[one.name].values[0]
            else:
                found[one.name] = known[path][int(place[:-1])] if bracket else known[path]
        return found

    def sweep(self, values: Values, seeds: Sequence[int]) -> Sweep | None:
        """The sweep of a point; None if a trial of it cannot be."""
        labels = {name: values[name] for name in self._pinned if name in values}
        plain = {name: value for name, value in values.items() if name not in labels}
        template = changed(self._sweep.template, plain)
        if template is None:
            return None
        axes = []
        for a in self._sweep.axes:
            name = a.place if isinstance(a.place, str) else a.name
            axes.append(replace(a, values=(labels[name],)) if name in labels else a)
        try:
            found = replace(self._sweep, template=template, axes=tuple(axes), seeds=tuple(seeds))
            return found if len(found.cells) else None
        except (BadInput, ArithmeticError, ValueError, LookupError, TypeError):
            return None

    def at(self, units: np.ndarray) -> dict[str, Any]:
        """The values at numbers between 0 and 1."""
        return {one.name: one.value(unit) for one, unit in zip(self.space, units, strict=True)}

    def units(self, values: Values) -> np.ndarray:
        """The numbers between 0 and 1 at values."""
        return np.array([one.unit(values[one.name]) for one in self.space])

    def other_numerics(self, values: Values) -> dict[str, Any]:
        """Fields to set for the same point in double precision and by another simulator, as far as the trial has them."""
        known, found = fields(self.base), {}
        if (
            known.get("precision") == "float32"
            and self.sweep({**values, "precision": "float64"}, (0,)) is not None
        ):
            found["precision"] = "float64"
        for other in options_of(self.base, "simulator") if "simulator" in known else ():
            able = self.sweep({**values, **found, "simulator": other}, (0,)) is not None
            if other != known["simulator"] and able:
                return {**found, "simulator": other}
        return found

    # Conditions ---------------------------------------------------------------------------------------------------------

    def looked(self, trial: Any) -> list[Condition]:
        return looked_at(self.conditions, trial) or []

    def trials(self, values: Values) -> list[Trial]:
        """The trials of a point that the claims speak of."""
        sweep = self.sweep(values, (0,))
        return self.spoken(sweep) if sweep is not None else []

    def spoken(self, sweep: Sweep) -> list[Trial]:
        """The trials of a point that the claims speak of."""
        cells = self.claims[0].cells
        held = [point.trial for point in sweep.cells.points]
        made = self.claims[0].upheld_by
        if cells is None or made is None:
            return held
        try:
            results = replace(made, seeds=None).results(self.figure, "quick", sweep.with_seeds([0]))
            ran = results["status"].notnull() & cells(results)
            marks = ran.any("seed").transpose(*[d for d in ran.dims if d != "seed"])
            places = [point.place for point in sweep.cells.points]
            marked = [bool(marks.sel(dict(place)).any()) for place in places]
            return [trial for trial, one in zip(held, marked, strict=True) if one]
        except Exception:  # a mask of records that only a training makes: it is applied after the training
            return held

    def room(self, values: Values) -> Room:
        """How far inside the conditions a point lies. Of its trials only those count that the claims speak of."""
        with unlogged():
            sweep = self.sweep(values, (0,))
            if sweep is None:
                return Room(OUTSIDE, {})
            every = {id(point.trial): self._rooms_of(point.trial) for point in sweep.cells.points}
            best = max(every.values(), key=lambda room: room.least)
            if best.least < 0:  # whichever trials are meant, the point is outside: they need not be found
                return best
            rooms = [every[id(trial)] for trial in self.spoken(sweep)]
        found: dict[str, float] = {}
        for one in rooms:
            for name, far in one.of.items():
                found[name] = min(found.get(name, inf), far)
        return Room(min((room.least for room in rooms), default=OUTSIDE), found)

    def _rooms_of(self, trial: Any) -> Room:
        """How far inside the conditions a trial lies."""
        looked = looked_at(self.conditions, trial)
        if looked is None:
            return Room(OUTSIDE, {"the formulas are defined": OUTSIDE})
        found: dict[str, float] = {}
        for one in looked:
            found[one.name] = min(found.get(one.name, inf), self._far(one))
        return Room(min((far for name, far in found.items() if name not in self.dropped), default=inf), found)

    def _far(self, condition: Condition) -> float:
        """The logarithm of a condition's margin; its sign agrees with whether it is met."""
        margin = float(condition.margin)
        far = log(margin) if 0 < margin < inf else inf if margin > 0 else OUTSIDE
        if condition.holds is None:
            return far - log(self.constant)
        if condition.holds:
            return max(far, 0.0) if margin != 1 else inf  # a margin of 1 says yes, and not that it is near
        return min(far, -1e-9)

    # Numbers ------------------------------------------------------------------------------------------------------------

    def forecast(self, made: Made, values: Values) -> np.ndarray:
        """The margins of the claims as the theory foretells the results, without a training."""
        sweep = self.sweep(values, (0,))
        if sweep is None:
            return np.full(len(self.claims), np.nan)
        try:
            results = replace(made, noise=0.0, seeds=None).results(self.figure, "quick", sweep)
        except Exception:
            return np.full(len(self.claims), np.nan)
        return np.array([_least(margin(claim, results)) for claim in self.claims])

    def results(self, points: Sequence[Values], seeds: Sequence[int]) -> list[xr.Dataset | None]:
        """Run what is missing of some points, all together, and return the results of each."""
        sweeps = [self.sweep(values, seeds) for values in points]
        held = [[point.trial for point in one.cells.points] if one is not None else [] for one in sweeps]
        every = [trial for trials in held for trial in trials]
        require(bool(every), "none of these points is a trial.")
        union = Sweep(
            every[0], (Axis("cell", tuple(range(len(every))), lambda _, i: every[i]),), tuple(seeds)
        )
        store = Store(self._folder / "cells")
        manifest = {"study": self.study.id, "figure": self.figure.id, "search": self.claims[0].id,
                    "trial": describe(self.base)}  # fmt: skip
        with silence() as told:
            rows = carry_out(union, store, manifest, self._pool, told)
        self.trainings += len(every) * len(seeds)
        attrs = {"study": self.study.id, "figure": self.figure.id, "scale": "quick",
                 "reading": next(iter(self.figure.readings), "")}  # fmt: skip
        several = len({jax.tree.structure(trial) for trial in every}) > 1
        found, first = [], 0
        for sweep, trials in zip(sweeps, held, strict=True):
            count = len(trials) * len(seeds)
            if sweep is None:
                found.append(None)
                continue
            own = store.read(sweep.cells.ids) if several else _rows_between(rows, first, first + count)
            found.append(self._completed(sweep, own, attrs))
            first += count
        return found

    def _completed(self, sweep: Sweep, rows: Rows, attrs: Mapping[str, Any]) -> xr.Dataset | None:
        try:
            return self.figure.complete(assemble(sweep, rows, attrs))
        except (BadInput, ArithmeticError, ValueError, LookupError, TypeError, AttributeError):
            return None

    def measure(self, points: Sequence[Values], seeds: Sequence[int]) -> np.ndarray:
        """The margin of every claim at every point, the worst of all seeds and cells; NaN where it is silent."""
        found = np.full((len(points), len(self.claims)), np.nan)
        for row, results in enumerate(self.results(points, seeds)):
            for column, claim in enumerate(self.claims if results is not None else ()):
                found[row, column] = _least(margin(claim, results))  # pyright: ignore[reportArgumentType]
        return found

    # In words -----------------------------------------------------------------------------------------------------------

    def changes(self, values: Values) -> dict[str, Any]:
        """What `--set` takes to repeat a point: every value that differs from the figure's own, whole tuples, pinned axes."""
        plain: dict[str, Any] = {}
        for name, value in values.items():
            path, bracket, _ = name.partition("[")
            if bracket and value != self.start[name]:
                whole = changed(
                    self._sweep.template, {n: v for n, v in values.items() if n.startswith(path + "[")}
                )
                plain[path] = list(fields(whole)[path])
            elif not bracket and (value != self.start[name] or name in self._pinned):
                plain[name] = value
        for name, axis in self._pinned.items():
            plain.setdefault(name, axis.values[0])
        own = {a.name: a for a in self.figure.sweep("quick").axes}
        kept = {a.name: list(a.values) for a in self._sweep.axes
                if len(a.values) > 1 and len(a.values) < len(own[a.name].values)}  # fmt: skip
        single = {name for name, a in self._pinned.items() if len(own[a.name].values) == 1}
        return {
            name: v
            for name, v in {**plain, **kept}.items()
            if name not in single or v != self._pinned[name].values[0]
        }


def _least(margins: xr.DataArray) -> float:
    """The smallest margin of all runs; NaN if none gives a number."""
    values = margins.values.ravel()
    known = values[~np.isnan(values)]
    return float(known.min()) if known.size else float("nan")


def _rows_between(rows: Rows, first: int, last: int) -> Rows:
    """The records of some of the cells."""
    mine = (rows.found >= first) & (rows.found < last)
    return Rows(rows.found[mine] - first, {name: values[mine] for name, values in rows.values.items()})
