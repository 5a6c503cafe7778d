"""Statements about every run: the worst one decides, and the share of runs that violate stands beside it."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import xarray as xr

from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.simple import fraction


@dataclass(frozen=True)
class Worst:
    """The number of the worst run (without an interval), and the share of runs that violate.

    `measured` does not exist where the worst run has no number at all; it is a violation all the same.
    """

    measured: Estimate
    violations: Estimate

    @property
    def holds(self) -> bool:
        return self.violations.value == 0


def worst(
    values: xr.DataArray,
    tolerance: tuple[float, float],
    ran: xr.DataArray | None = None,
    inside: Collection[str] = ("step", "log"),
) -> Worst:
    """Return the worst of all runs, and how many of them lie outside the tolerance.

    A run may hold many numbers (steps, tokens: the dimensions `inside`); its worst one
    counts, and numbers that it lacks (after its last step) do not. A run that took place (`ran`; all, if None) and has no
    number at all violates: a diverged run refutes a statement about every run, and so does one in which what is said to
    happen never did. Runs that never took place count neither way.
    """
    beyond = _beyond(values.astype(float), tolerance)
    if ran is not None:
        beyond = beyond.where(ran)
    farthest = beyond.max([d for d in inside if d in values.dims])
    took = np.ones(farthest.shape, bool) if ran is None else _like(ran, farthest)
    known = farthest.values[took]
    needs(known.size, "no run has a value to measure (none took place).")
    lost = np.isnan(known)
    share = fraction(((known > 0) | lost).astype(float))
    note = (
        f"{lost.sum()} of {lost.size} runs have no number (diverged, or it never happened)."
        if lost.any()
        else ""
    )
    if lost.all():
        return Worst(Estimate.absent(note, known.size), share)
    number = values.values.ravel()[int(np.nanargmax(beyond.transpose(*values.dims).values.ravel()))]
    return Worst(Estimate.certain(float(number), known.size, note), share)


def _beyond(values: xr.DataArray, tolerance: tuple[float, float]) -> xr.DataArray:
    """Return how far each number lies outside the tolerance (above 0), or how near to its end inside (below 0)."""
    low, high = tolerance
    under = low - values if np.isfinite(low) else xr.full_like(values, -np.inf).where(values.notnull())
    above = values - high if np.isfinite(high) else xr.full_like(values, -np.inf).where(values.notnull())
    return xr.ufuncs.maximum(under, above)


def _like(flags: xr.DataArray, values: xr.DataArray) -> np.ndarray:
    return np.asarray(flags.broadcast_like(values).transpose(*values.dims).values, bool)
