"""What several figures measure, and made results that follow the theory."""

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.figure import Made, made
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale

from ..theory import best, eigenvalues, plateaus
from ..trials import Training


def template() -> Training:
    """The trial that `lemmata predict` starts from: that of Figure 3."""
    return Training()


def descent(scale: Scale, time: float, steps: int, logs: int = 300) -> Descent:
    """Runge-Kutta steps over a time in units of tau. A run ends after its steps; at the scale `smoke` after a tenth of them."""
    taken = by_scale(scale, steps // 10, steps, steps)
    return Descent(learning_rate=time / steps, stop="cap", steps=taken, logs=logs)


def labels(trial: Training) -> dict[str, range]:
    dim = range(trial.data.dim)
    return {"eigenvector": dim, "row": dim, "column": dim, "head": range(trial.heads)}


def height(trial: Training, m: int) -> float:
    """The loss on plateau m (19)."""
    return float(plateaus(eigenvalues(trial), trial.data.context)[m])


def rate(trial: Training) -> float:
    return float(trial.descent.learning_rate)


def times(results: xr.Dataset, name: str = "time") -> xr.DataArray:
    """The times t/tau at which the eigenvectors are half learned; NaN where one never is."""
    return results[name].where(results[name] > 0) * over_cells(results, rate)


def early(results: xr.Dataset) -> xr.DataArray:
    """Whether an eigenvector is learned before one of a larger eigenvalue: 1, or 0."""
    ends = times(results).fillna(np.inf)
    later = ends.shift(eigenvector=-1).isel(eigenvector=slice(0, -1))
    return (later < ends.isel(eigenvector=slice(0, -1))).any("eigenvector").where(results.error.notnull())


def stops(curve: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The places where the logarithm of a curve falls slowest between two drops, over the logarithm of the step."""
    speed = -np.diff(np.log(curve)) / np.diff(np.log(step + 1.0))
    return np.flatnonzero((speed[1:-1] < speed[:-2]) & (speed[1:-1] <= speed[2:])) + 1


def of_runs(number: Callable[..., float], *values: xr.DataArray, core: list[list[str]]) -> xr.DataArray:
    """A number of every run, from arrays that have these dimensions in each; NaN where a run has none."""

    def of_run(*arrays: np.ndarray) -> float:
        return np.nan if any(np.isnan(one).all() for one in arrays) else float(number(*arrays))

    return xr.apply_ufunc(of_run, *values, input_core_dims=core, vectorize=True)


def gap_of_stops(results: xr.Dataset) -> xr.DataArray:
    """The largest distance of a height of (19), but for the first and the last, from the errors at which a run stops.

    In units of the trace. And of those errors from the heights, whichever is larger.
    """
    step, dim = results.step.values, trial_at(results).data.dim
    each = [over_cells(results, partial(height, m=m)) for m in range(dim + 1)]
    known = xr.concat(each, "plateau", coords="minimal", compat="override")

    def gap(curve: np.ndarray, heights: np.ndarray) -> float:
        found = curve[stops(curve, step)]
        if not len(found):
            return 1.0
        apart = abs(found[:, None] - heights)
        return max(apart.min(axis=1).max(), apart.min(axis=0)[1:-1].max(initial=0))

    return of_runs(gap, results.error_curve, known, core=[["step"], ["plateau"]])


def map_gap(results: xr.Dataset, target: Callable[[Training], np.ndarray]) -> xr.DataArray:
    """The largest difference of an entry of the learned map from `target(trial)`, over the largest entry."""
    parts = [
        abs(results.matrix.isel(row=i, column=j) / over_cells(results, lambda t: target(t).max())
            - over_cells(results, lambda t, i=i, j=j: target(t)[i, j] / target(t).max()))
        for i in range(results.sizes["row"]) for j in range(results.sizes["column"])
    ]  # fmt: skip
    return xr.concat(parts, "entry").max("entry", skipna=False)


def minimum(trial: Training) -> np.ndarray:
    """The global minimum A* of (11)."""
    return np.diag(best(eigenvalues(trial), trial.data.context))


def made_map(factor: Callable[[Training], float], target: Callable[[Training], np.ndarray] = minimum) -> Made:
    """A learned map that is a multiple of a target."""
    return made(matrix=lambda t, row, column: factor(t) * target(t)[row, column], noise=0.0)


def constant(value: float) -> Callable[[Training], float]:
    return lambda trial: value


def run(results: xr.Dataset, name: str, number: int = 0) -> xr.DataArray:
    """A curve of one run, with its time in place of the step."""
    one = results[name].isel(seed=[number])
    return one.assign_coords(step=one.step * rate(trial_at(results)))
