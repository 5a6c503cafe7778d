"""Makes the results of a sweep: a Dataset that knows its trials.

The dimensions are the axes of a sweep, `seed`, and `step` for curves. The coordinate `trial` holds the trial of every grid
point. It is kept by selections and masks, so that measures and pictures can ask what was run at any place.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import xarray as xr

from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, require, require_memory, shortened
from lemmata.rows import Rows
from lemmata.scale import Scale
from lemmata.status import CONVERGED
from lemmata.sweep import Sweep
from lemmata.trial import Descending, Trial, fields


@dataclass(frozen=True, eq=False)
class TrialRef:
    """Holds the trial of a grid point inside an array. Two references are equal only if they are the same object."""

    trial: Trial

    def __repr__(self) -> str:
        return f"<{type(self.trial).__name__}>"

    def __deepcopy__(self, _: Any) -> "TrialRef":
        """Return itself. xarray copies coordinates when it aligns arrays, but trials are immutable."""
        return self


class Results(xr.Dataset):
    """A Dataset whose files and tables leave out the coordinate `trial`, as no file can hold its objects."""

    __slots__ = ()

    def plain(self) -> xr.Dataset:
        """Return a Dataset of numbers and words alone."""
        kept = self.drop_vars("trial", errors="ignore")
        return xr.Dataset(kept.data_vars, kept.coords, kept.attrs)

    def where(self, *arguments: Any, **options: Any) -> "Results":  # xarray itself returns a plain Dataset
        found = super().where(*arguments, **options)
        return Results(found.data_vars, found.coords, found.attrs)

    def to_netcdf(self, *arguments: Any, **options: Any) -> Any:
        return self.plain().to_netcdf(*arguments, **options)

    def to_zarr(self, *arguments: Any, **options: Any) -> Any:
        return self.plain().to_zarr(*arguments, **options)

    def to_dataframe(self, *arguments: Any, **options: Any) -> Any:
        return self.plain().to_dataframe(*arguments, **options)


@dataclass(frozen=True)
class Question:
    """What an adaptive run of a figure refines: the critical value of one axis (`threshold`) as a power of another (`over`).

    `success(results)` marks the runs that succeeded (1, 0, NaN where not run). Both names are axes of the sweep or coordinates
    that the results derive from them.
    """

    success: Callable[[xr.Dataset], xr.DataArray]
    threshold: str
    over: str


# What was run ----------------------------------------------------------------------------------------------------------


@checks_arguments
def trials(results: xr.Dataset | xr.DataArray) -> list[Trial]:
    """Return the trials of all grid points, in order, each once."""
    require(
        "trial" in results.coords, "these results do not know their trials; take them as `run` gives them."
    )
    held = np.atleast_1d(results.coords["trial"].values).ravel()
    return [one.trial for one in dict.fromkeys(held) if one is not None]


@checks_arguments
def trial_at(results: xr.Dataset | xr.DataArray, **place: Any) -> Any:
    """Return the trial at a place, given by labels of dimensions. If several trials match, return the first."""
    try:
        return trials(results.sel(place) if place else results)[0]
    except (LookupError, ValueError, TypeError) as error:
        why = " ".join(str(error).split())
        raise BadInput(
            f"{shortened(place)} is no place in these results, which have {dict(results.sizes)}: {why}."
        ) from error


@checks_arguments
def over_cells(results: xr.Dataset | xr.DataArray, function: Callable[[Any], float]) -> xr.DataArray:
    """Return `function(trial)` at every grid point, and NaN where the sweep has no cell."""
    require(
        "trial" in results.coords, "these results do not know their trials; take them as `run` gives them."
    )
    known: dict[Any, float] = {}

    def value(held: TrialRef | None) -> float:
        if held is None:
            return np.nan
        if held not in known:
            found = function(held.trial)
            try:
                known[held] = float(found)
            except (TypeError, ValueError):
                raise BadInput(
                    f"the function of over_cells must return a number, not {shortened(found)}."
                ) from None
        return known[held]

    held = results.coords["trial"]
    numbers = np.asarray([value(one) for one in np.atleast_1d(held.values).ravel()]).reshape(held.shape)
    return xr.DataArray(numbers, {name: held.coords[name] for name in held.coords}, held.dims)


@checks_arguments
def settings(results: xr.Dataset | xr.DataArray) -> dict[str, Any]:
    """Return the fields, by dotted path, that are the same in all trials of these results."""
    first, *others = (fields(trial) for trial in trials(results))
    return {path: value for path, value in first.items() if all(o.get(path) == value for o in others)}


@checks_arguments
def require_results_of(results: xr.Dataset, study: str, figures: Collection[str]) -> None:
    """Refuse results that are not of one of these figures."""
    require(
        results.attrs.get("study") == study and results.attrs.get("figure") in figures,
        f"these results do not say that they belong to {study}/{', '.join(figures)}; take them as `run` gives them.",
    )


# How they are made -----------------------------------------------------------------------------------------------------


def assemble(sweep: Sweep, rows: Rows, attrs: Mapping[str, Any] | None = None) -> Results:
    """Make the results of a sweep from the records of its cells. Cells without a record are NaN."""
    dims, cells = sweep.dims, sweep.cells
    positions = {name: {label: i for i, label in enumerate(labels)} for name, labels in dims.items()}
    shape = tuple(len(labels) for labels in dims.values())
    axes = [name for name in dims if name != "seed"]
    held = np.full(tuple(len(dims[name]) for name in axes), None, object)
    points = [tuple(positions[name][point.place[name]] for name in axes) for point in cells.points]
    for at, point in zip(points, cells.points, strict=True):
        held[at] = TrialRef(point.trial)
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
        if name == "logged":  # known from the trials
            continue
        curve = name.endswith("_curve") and longest > 0 and values.ndim > 1
        if curve:
            curves = True
            values = _as_long(values[:, :longest], longest)
        extra = ("step" if same else "log",) if curve else ()
        extra += names.get(name.removesuffix("_curve") if curve else name, ())
        extra += tuple(f"{name}_{i}" for i in range(len(extra), values.ndim - 1))
        sizes, kind = shape + values.shape[1:], np.result_type(values.dtype, np.float32)
        require_memory(math.prod(sizes) * kind.itemsize, f"variable '{name}' over the whole grid")
        full = np.full(sizes, np.nan, kind)
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
        return Results(variables, coords, attrs=dict(attrs or {}))
    except ValueError as error:  # a record with the name of an axis, or a dimension of two lengths
        raise BadInput(f"the records do not fit into one table: {' '.join(str(error).split())}.") from None


def place_paths(sweep: Sweep) -> dict[str, str]:
    """Return the dotted path of the field that each axis sets, for axes that set one field."""
    return {one.name: one.place for one in sweep.axes if isinstance(one.place, str)}


@runtime_checkable
class Experiment(Protocol):
    """What made results must know of a figure."""

    @property
    def id(self) -> str: ...
    @property
    def study(self) -> str: ...
    @property
    def sweep(self) -> Callable[[Scale], Sweep]: ...
    def complete(self, results: xr.Dataset) -> xr.Dataset: ...


@checks_arguments
def made(
    source: Sweep | Experiment,
    variables: Mapping[str, Callable[[Any, np.random.Generator], Any]],
    scale: Scale = "quick",
    seeds: int | None = None,
) -> xr.Dataset:
    """Make results without training, for made cases of claims and for tests.

    `source`: a sweep or a figure. The results of a figure are completed as stored ones are.
    `variables`: functions of a trial and a random number generator, each of which returns the record of that name. By
        default a run has converged after the largest number of steps of its trial.
    `scale`: the scale of the figure.
    `seeds`: the number of seeds; `None` takes those of the sweep.
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
    """Stack arrays of one rank. Smaller ones are padded with NaN."""
    shape = np.max([value.shape for value in values], axis=0).astype(int)
    if all(value.shape == tuple(shape) for value in values):
        return np.stack(values)
    block = np.full((len(values), *shape), np.nan)
    for i, value in enumerate(values):
        block[(i, *(slice(n) for n in value.shape))] = value
    return block


def _as_long(curves: np.ndarray, longest: int) -> np.ndarray:
    """Pad curves with NaN to the number of logged steps, as the stored cells may all log fewer."""
    lack = longest - curves.shape[1]
    if lack <= 0:
        return curves
    return np.concatenate([curves, np.full((len(curves), lack, *curves.shape[2:]), np.nan)], axis=1)


def _log_steps(trial: Trial) -> tuple[int, ...]:
    return trial.log_steps if isinstance(trial, Descending) else ()
