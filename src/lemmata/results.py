"""Results: a Dataset that knows its trials.

The dimensions are the axes of a sweep, `seed`, and `step` for curves. The coordinate `trial` holds the trial of every grid
point; it follows the Dataset through selections and masks, so that whoever measures or draws can ask what was run at any place.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from lemmata.errors import BadInput, require
from lemmata.lab.store import Rows
from lemmata.status import CONVERGED
from lemmata.sweep import Sweep
from lemmata.trial import Descending, Trial, fields

if TYPE_CHECKING:
    from lemmata.study import Figure, Scale


@dataclass(frozen=True, eq=False)
class Ran:
    """Holds the trial of a grid point inside an array; two are equal only if they are the same."""

    trial: Trial

    def __repr__(self) -> str:
        return f"<{type(self.trial).__name__}>"

    def __deepcopy__(self, _: Any) -> "Ran":
        """Itself: xarray copies coordinates wherever it aligns something, and a trial never changes."""
        return self


# What was run ----------------------------------------------------------------------------------------------------------


def trials(results: xr.Dataset | xr.DataArray) -> list[Trial]:
    """The trials of all grid points, in order; each once."""
    require(
        "trial" in results.coords, "these results do not know their trials; take them as `run` gives them."
    )
    held = np.atleast_1d(results.coords["trial"].values).ravel()
    return [one.trial for one in dict.fromkeys(held) if one is not None]


def trial_at(results: xr.Dataset | xr.DataArray, **place: Any) -> Any:
    """The trial at a place, of whatever kind it is; the first one where the place leaves several."""
    return trials(results.sel(place) if place else results)[0]


def over_cells(results: xr.Dataset | xr.DataArray, function: Callable[[Any], float]) -> xr.DataArray:
    """`function(trial)` at every grid point; NaN where nothing was to be run."""
    require(
        "trial" in results.coords, "these results do not know their trials; take them as `run` gives them."
    )
    known: dict[Any, float] = {}

    def value(held: Ran | None) -> float:
        if held is None:
            return np.nan
        if held not in known:
            known[held] = float(function(held.trial))
        return known[held]

    held = results.coords["trial"]
    numbers = np.asarray([value(one) for one in np.atleast_1d(held.values).ravel()]).reshape(held.shape)
    return xr.DataArray(numbers, {name: held.coords[name] for name in held.coords}, held.dims)


def settings(results: xr.Dataset | xr.DataArray) -> dict[str, Any]:
    """The fields, by dotted path, that are the same in all trials of these results."""
    first, *others = (fields(trial) for trial in trials(results))
    return {path: value for path, value in first.items() if all(o.get(path) == value for o in others)}


# How they are made -----------------------------------------------------------------------------------------------------


def assemble(sweep: Sweep, rows: Rows, attrs: Mapping[str, Any] | None = None) -> xr.Dataset:
    """The results of a sweep from the records of its cells: NaN where there are none."""
    dims, cells = sweep.dims, sweep.cells
    positions = {name: {label: i for i, label in enumerate(labels)} for name, labels in dims.items()}
    shape = tuple(len(labels) for labels in dims.values())
    axes = [name for name in dims if name != "seed"]
    held = np.full(tuple(len(dims[name]) for name in axes), None, object)
    points = [tuple(positions[name][point.place[name]] for name in axes) for point in cells.points]
    for at, point in zip(points, cells.points, strict=True):
        held[at] = Ran(point.trial)
    seeds = np.array([positions["seed"][seed] for point in cells.points for seed in point.seeds], int)
    grid = np.array(points, int).reshape(len(points), len(axes))
    where = (*grid[cells.which(rows.found)].T, seeds[rows.found])

    logged = {at: _log_steps(one.trial) for at, one in np.ndenumerate(held) if one is not None}
    same = len(set(logged.values())) <= 1
    longest = max(map(len, logged.values()), default=0)
    names: dict[str, tuple[str, ...]] = {}
    for kind in {type(one.trial): one.trial for one in held.ravel() if one is not None}.values():
        names |= kind.dims
    variables: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    curves = False
    for name, values in rows.values.items():
        if name == "logged":  # the trials know it
            continue
        curve = name.endswith("_curve") and longest > 0 and values.ndim > 1
        if curve:
            curves = True
            values = _as_long(values[:, :longest], longest)
        extra = ("step" if same else "log",) if curve else ()
        extra += names.get(name.removesuffix("_curve") if curve else name, ())
        extra += tuple(f"{name}_{i}" for i in range(len(extra), values.ndim - 1))
        full = np.full(shape + values.shape[1:], np.nan, np.result_type(values.dtype, np.float32))
        full[where] = values
        variables[name] = ((*dims, *extra), full)
    coords: dict[str, Any] = {name: list(labels) for name, labels in dims.items()} | {"trial": (axes, held)}
    if curves:
        if same:
            coords["step"] = list(next(iter(logged.values()), ()))
        else:
            steps = np.full((*held.shape, longest), np.nan)
            for at, own in logged.items():
                steps[at][: len(own)] = own
            coords["step"] = ((*axes, "log"), steps)
    try:
        return xr.Dataset(variables, coords, attrs=dict(attrs or {}))
    except ValueError as error:  # a record that is called like an axis, a dimension of two lengths
        raise BadInput(f"the records do not fit into one table: {' '.join(str(error).split())}.") from None


def made(
    source: "Sweep | Figure",
    variables: Mapping[str, Callable[[Any, np.random.Generator], Any]],
    scale: "Scale" = "quick",
    seeds: int | None = None,
) -> xr.Dataset:
    """Results without training: `variables[name](trial, rng)` is the record of a run. For planted cases and tests.

    A run is `converged` after as many steps as its trial allows, unless `variables` says otherwise. Made from a figure, the
    results are completed as stored ones are.
    """
    figure = None if isinstance(source, Sweep) else source
    sweep = source if isinstance(source, Sweep) else source.sweep(scale)
    sweep = sweep if seeds is None else sweep.with_seeds(range(seeds))
    caps = {id(trial): getattr(trial, "steps", 0) for trial in sweep.cells.trials}
    given = {
        "status": lambda trial, rng: CONVERGED,
        "steps": lambda trial, rng: caps[id(trial)],
        **variables,
    }
    rng = np.random.default_rng(0)
    records = [{name: np.asarray(make(c.trial, rng)) for name, make in given.items()} for c in sweep.cells]
    rows = Rows(np.arange(len(records)), {name: _stacked([r[name] for r in records]) for name in given})
    attrs = {"study": figure.study, "figure": figure.id, "scale": scale} if figure else {}
    results = assemble(sweep, rows, attrs)
    return figure.complete(results) if figure else results


def _stacked(values: Sequence[np.ndarray]) -> np.ndarray:
    """Arrays of one rank as one, shorter ones filled up with NaN."""
    shape = np.max([value.shape for value in values], axis=0).astype(int)
    if all(value.shape == tuple(shape) for value in values):
        return np.stack(values)
    block = np.full((len(values), *shape), np.nan)
    for i, value in enumerate(values):
        block[(i, *(slice(n) for n in value.shape))] = value
    return block


def _as_long(curves: np.ndarray, longest: int) -> np.ndarray:
    """Curves filled up with NaN to the number of logged steps, where only cells that log fewer have been stored."""
    lack = longest - curves.shape[1]
    if lack <= 0:
        return curves
    return np.concatenate([curves, np.full((len(curves), lack, *curves.shape[2:]), np.nan)], axis=1)


def _log_steps(trial: Trial) -> tuple[int, ...]:
    return trial.log_steps if isinstance(trial, Descending) else ()
