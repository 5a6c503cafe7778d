"""From a labelled array to the columns that a fit wants: one entry a run, missing runs left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isclose
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from lemmata.measure.estimate import needs
from lemmata.status import CAPPED, CONVERGED, DIVERGED


@dataclass(frozen=True)
class Columns:
    """The runs of a labelled array, one after another: the `values` and, by name, the coordinates of each."""

    values: np.ndarray
    by: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.values)


def columns(values: xr.DataArray, *names: str) -> Columns:
    """Return the runs of an array that have a value, with the coordinates that a measure asks for.

    A coordinate may be a dimension or derived from several (an SNR along norm and dimension). Dimensions that are
    not asked for count as repetitions.
    """
    for name in names:
        needs(name in values.coords, f"the results have no axis '{name}'.")
    spread = xr.broadcast(values, *(values.coords[name] for name in names))
    flat = np.asarray(spread[0].values, float).ravel()
    known = np.isfinite(flat)
    needs(known.any(), "no run has a value to measure (all records are missing or not finite).")
    by = {}
    for name, coordinate in zip(names, spread[1:], strict=True):
        column = np.asarray(coordinate.transpose(*spread[0].dims).values).ravel()[known]
        by[name] = column.astype(float) if np.issubdtype(column.dtype, np.number) else column
    return Columns(flat[known], by)


Labelled = TypeVar("Labelled", xr.Dataset, xr.DataArray)


def chosen(results: Labelled, **labels: Any) -> Labelled:
    """Select grid points by their labels, and give up on the measure, in one sentence, where one of them was not run.

    A list or tuple of labels keeps its dimension. Numbers may differ by rounding.
    """
    for name, wanted in labels.items():
        needs(name in results.coords, f"the results have no axis '{name}'.")
        known = results.coords[name].values.tolist()
        several = isinstance(wanted, list | tuple)
        places = [_place(known, one) for one in (wanted if several else [wanted])]
        missing = [
            one for one, place in zip(wanted if several else [wanted], places, strict=True) if place is None
        ]
        needs(not missing, f"asks for {name} = {', '.join(map(str, missing))}, which was not run.")
        results = results.isel({name: places if several else places[0]})
    return results


def _place(known: Sequence[Any], wanted: Any) -> int | None:
    """Return where a label stands among the labels of an axis."""
    for place, one in enumerate(known):
        numbers = isinstance(one, int | float) and isinstance(wanted, int | float)
        if one == wanted or (numbers and isclose(one, wanted, rel_tol=1e-9)):
            return place
    return None


def logarithm(column: np.ndarray, name: str) -> np.ndarray:
    """Return the natural logarithm of a column that has one."""
    bad = int(np.sum(~(column > 0)))
    needs(
        not bad,
        f"{bad} of {len(column)} values of {name} are not positive, and this law is read off logarithms.",
    )
    return np.log(column)


def below(values: xr.DataArray, level: float) -> xr.DataArray:
    """Return 1 where a value is below the level, 0 where it is not, NaN where there is none.

    A plain `values < level` would count missing runs as failures.
    """
    return (values < level).where(values.notnull()).astype(float)


def above(values: xr.DataArray, level: float) -> xr.DataArray:
    """Return 1 where a value is above the level, 0 where it is not, NaN where there is none."""
    return (values > level).where(values.notnull()).astype(float)


def flagged(flags: xr.DataArray, results: xr.Dataset) -> xr.DataArray:
    """Return what did or did not happen as 1 and 0, and NaN where nothing was run (or the judge has left the run out)."""
    return flags.astype(float).where(results["status"].notnull())


def capped(results: xr.Dataset) -> xr.DataArray:
    """Return which runs of the results stopped at the step cap, so that their times are only lower bounds."""
    return results["status"] == CAPPED


def converged(results: xr.Dataset) -> xr.DataArray:
    """Return which runs met their stop rule."""
    return results["status"] == CONVERGED


def diverged(results: xr.Dataset) -> xr.DataArray:
    """Return which runs lost their numbers to infinity."""
    return results["status"] == DIVERGED
