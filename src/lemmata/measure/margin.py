"""Measures how far a claim is from being refuted: a signed distance, below zero where the claim is violated.

The distance is a plain difference from the end of the tolerance, divided by the size of that end (by 1 where it is zero). A
logarithm would turn a number of the wrong sign into a far violation, or hide one.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf, isfinite

import numpy as np
import xarray as xr

from lemmata.errors import require
from lemmata.figure import Claim
from lemmata.measure.compare import between
from lemmata.measure.estimate import Estimate, Unmeasurable
from lemmata.measure.judge import EVERY_RUN, LOG, measured_number, runs_behind, runs_of, used_alone

NEVER = -1
"""A followed step that was never reached (`Tracks.first`)."""


def margin(claim: Claim, results: xr.Dataset, inside: bool = False) -> xr.DataArray:
    """Return how far inside its tolerance a claim lies, below 0 where it is violated.

    A number of every run gives a distance for every grid point and seed: that of its worst step and token. An estimate gives
    one distance for all runs; of several parts the worst counts.

    NaN is silence: the run gave no number, which neither upholds nor violates. Minus infinity is a violation without a number:
    what is said to happen in every run never did, or the run diverged.

    `inside`: whether only cells that meet the theorem's conditions count.
    """
    with unlogged():
        return _margin(claim, results, inside)


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep the tracebacks of claims' functions out of the log: a search asks where many claims have no number."""

    def nothing(record: logging.LogRecord) -> bool:
        return False

    LOG.addFilter(nothing)
    try:
        yield
    finally:
        LOG.removeFilter(nothing)


def _margin(claim: Claim, results: xr.Dataset, inside: bool) -> xr.DataArray:
    try:
        runs = runs_of(claim, results, inside)
        if runs.nothing:
            return xr.DataArray(np.nan)
        found = measured_number(claim, used_alone(results, runs.used))
    except Unmeasurable:
        return xr.DataArray(np.nan)
    if isinstance(found, Mapping):
        return xr.DataArray(min((_of_estimate(claim, one) for one in found.values()), default=np.nan))
    if isinstance(found, Estimate):
        return xr.DataArray(_of_estimate(claim, found))
    require(isinstance(found, xr.DataArray), f"the number of '{claim.id}' is a {type(found).__name__}.")
    used, lost = runs_behind(runs.used, found), runs_behind(runs.lost, found)
    inner = [d for d in found.dims if d not in used.dims]
    distance = _worst(claim, found, inner)
    if claim.holds.kind in EVERY_RUN:
        never = distance.isnull() & used & _never_happened(claim, results, runs.used, found, inner)
        distance = distance.where(~(never | lost), -inf)
    return distance.where(used | lost).drop_vars("trial", errors="ignore")


def estimate_of(claim: Claim, results: xr.Dataset) -> Estimate | None:
    """Return the estimate that decides a claim, of several parts the nearest to its end; None where every run has a number."""
    with unlogged():
        try:
            runs = runs_of(claim, results, False)
            found = measured_number(claim, used_alone(results, runs.used)) if not runs.nothing else None
        except Unmeasurable as reason:
            return Estimate.absent(str(reason))
    parts = list(found.values()) if isinstance(found, Mapping) else [found]
    known = [one for one in parts if isinstance(one, Estimate)]
    return min(known, key=lambda one: np.nan_to_num(_of_estimate(claim, one), nan=inf)) if known else None


def _of_estimate(claim: Claim, estimate: Estimate) -> float:
    """The distance of an estimated value from the nearest end of the tolerance, or from a rival's number."""
    if not estimate.exists:
        return float("nan")
    low, high = between(estimate, claim.holds.tolerance, claim.holds.rivals.values())
    return min(_room(estimate.value, low), -_room(estimate.value, high))


def _room(value: float, end: float) -> float:
    """The distance of a value above an end, in sizes of that end."""
    return (value - end) / (abs(end) or 1.0) if isfinite(end) else -inf if end > 0 else inf


def _worst(claim: Claim, found: xr.DataArray, inner: list) -> xr.DataArray:
    """The distance of every run: that of its worst step, token or place."""
    low, high = claim.holds.tolerance
    values = found.astype(float)
    sides = [
        sign * (values - end) / (abs(end) or 1.0) for sign, end in ((1, low), (-1, high)) if isfinite(end)
    ]
    nearest = sides[0] if len(sides) == 1 else xr.ufuncs.minimum(sides[0], sides[1])
    return nearest.min(inner)


def _never_happened(
    claim: Claim, results: xr.Dataset, used: xr.DataArray, found: xr.DataArray, inner: list
) -> xr.DataArray:
    """Mark the runs that lack a number because a followed step was never reached.

    The number is taken again as if every such step had been the last one. A run that has a number then lacked it for this.
    """
    nothing = xr.zeros_like(found.isnull().all(inner))
    if "steps" not in results or not bool(found.isnull().all(inner).any()):
        return nothing
    missing = {
        name: own.where(own != NEVER, results["steps"])
        for name, own in results.data_vars.items()
        if name not in ("status", "steps")
        and own.dims == results["steps"].dims
        and bool((own == NEVER).any())
    }
    if not missing:
        return nothing
    try:
        again = measured_number(claim, used_alone(results.assign(missing), used))
    except Unmeasurable:
        return nothing
    return again.notnull().any(inner)
