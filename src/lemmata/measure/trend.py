"""Comparisons within seeds: differences and ratios of arms, gaps between curves, trends, orderings, extreme arms."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from math import exp

import numpy as np
import xarray as xr
from scipy.special import betaincinv

from lemmata.measure.columns import logarithm
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.simple import mean

Measure = Callable[..., Estimate]
"""`measure(arm, level=...)`: `mean`, `median`, `fraction`."""


@answering(Estimate.absent)
def difference(first: xr.DataArray, second: xr.DataArray, level: float = 0.95) -> Estimate:
    """Return the mean of `first - second`, seed by seed: a paired t interval, the seeds being the independent units."""
    return mean(_aligned(first, second, lambda a, b: a - b), level)


@answering(Estimate.absent)
def ratio(first: xr.DataArray, second: xr.DataArray, level: float = 0.95) -> Estimate:
    """Return the typical ratio `first / second`, seed by seed: geometric mean, paired t interval of the logarithms."""

    def log_ratio(a: xr.DataArray, b: xr.DataArray) -> xr.DataArray:
        both = a.notnull() & b.notnull()
        logarithm(np.concatenate([a.values[both.values], b.values[both.values]]), "the compared quantities")
        return xr.ufuncs.log(a / b)

    return mean(_aligned(first, second, log_ratio), level).map(exp)


@answering(Estimate.absent)
def gap(first: xr.DataArray, second: xr.DataArray, over: str, level: float = 0.95) -> Estimate:
    """Return the largest distance between two curves of the same seed, averaged over the seeds: 0 where curves are equal.

    `over` names the dimension that the curves run along. To claim equality, give the largest gap that still counts as
    equal as the upper end of the tolerance.
    """
    needs(over in first.dims and over in second.dims, f"the results have no axis '{over}'.")
    apart = _aligned(first, second, lambda a, b: abs(a - b))
    found = mean(apart.max(over), level)
    return replace(found, low=max(found.low, 0.0))


@answering(Estimate.absent)
def trend(values: xr.DataArray, over: str, level: float = 0.95) -> Estimate:
    """Return how steadily a quantity rises along an axis: Kendall's tau of each seed (1: always rises, -1: always falls),
    averaged over the seeds.

    Where all seeds agree entirely their spread says nothing; the interval then comes from the number of separate pairs
    of grid values that were seen to agree (Clopper-Pearson).
    """
    needs(over in values.coords, f"the results have no axis '{over}'.")
    (dim,) = values[over].dims
    place = np.asarray(values[over].values, float)
    needs(len(place) > 1, f"a trend needs at least two values of '{over}', and there is one.")
    rows = values if "seed" in values.dims else values.expand_dims("seed")
    rows = rows.mean([d for d in rows.dims if d not in ("seed", dim)]).transpose("seed", dim)
    taus = np.array([_kendall(place, row) for row in np.asarray(rows.values, float)])
    taus = taus[np.isfinite(taus)]
    needs(len(taus), "no seed has two values to compare.")
    if len(taus) > 1 and np.ptp(taus) > 0:
        found = mean(taus, level)
        return replace(found, low=max(found.low, -1.0), high=min(found.high, 1.0))
    pairs = len(taus) * (len(place) // 2)
    agree = (1 + taus[0]) / 2 * pairs
    miss = (1 - level) / 2
    low = 2 * betaincinv(agree, pairs - agree + 1, miss) - 1 if agree > 0 else -1.0
    high = 2 * betaincinv(agree + 1, pairs - agree, 1 - miss) - 1 if agree < pairs else 1.0
    note = f"All {len(taus)} seeds agree; the interval counts {pairs} separate pairs of grid values."
    return Estimate(float(taus[0]), float(low), float(high), len(taus), level, note)


def arms(values: xr.DataArray, over: str) -> list[xr.DataArray]:
    """Return the arms of an array along an axis, in order."""
    (dim,) = values[over].dims
    return [values.isel({dim: i}) for i in range(values.sizes[dim])]


@answering(Estimate.absent)
def ordering(arms: Sequence[xr.DataArray], measure: Measure = mean, level: float = 0.95) -> Estimate:
    """Return the smallest step from one arm to the next in the claimed order (each above the one before), seed by seed.

    Above 0: all arms are in order.
    """
    needs(len(arms) > 1, "an ordering needs at least two arms.")
    found = smallest([_steps(after, before) for before, after in pairwise(arms)], measure, level)
    needs(found.exists, "an ordering needs at least two seeds that ran every arm.")
    return replace(found, note="")


@answering(Estimate.absent)
def lead(
    one: xr.DataArray, others: Sequence[xr.DataArray], measure: Measure = mean, level: float = 0.95
) -> Estimate:
    """Return by how much `one` exceeds the nearest of the others, seed by seed; above 0 when it exceeds them all."""
    needs(len(others), "there is nothing to lead.")
    return smallest([_steps(one, other) for other in others], measure, level)


@answering(Estimate.absent)
def smallest(arms: Sequence[xr.DataArray], measure: Measure = mean, level: float = 0.95) -> Estimate:
    """Return the smallest of the arms' numbers. The arm was picked by looking, and the interval counts that.

    The lower end is the lowest of the arms' own lower ends, which needs no correction for their number; the upper end is
    the lowest of their upper ends, each corrected (Bonferroni).
    """
    own, wider = _measured(arms, measure, level)
    lowest = min(own, key=lambda one: one.value)
    low, high = min(one.low for one in own), min(one.high for one in wider)
    return replace(lowest, low=low, high=high, note=_list(own))


@answering(Estimate.absent)
def largest(arms: Sequence[xr.DataArray], measure: Measure = mean, level: float = 0.95) -> Estimate:
    """Return the largest of the arms' numbers. See `smallest`."""
    own, wider = _measured(arms, measure, level)
    highest = max(own, key=lambda one: one.value)
    low, high = max(one.low for one in wider), max(one.high for one in own)
    return replace(highest, low=low, high=high, note=_list(own))


def _measured(
    arms: Sequence[xr.DataArray], measure: Measure, level: float
) -> tuple[list[Estimate], list[Estimate]]:
    """Measure every arm, with its own interval and with one that holds for all arms together."""
    needs(len(arms), "there is no arm to measure.")
    own = [measure(arm, level=level) for arm in arms]
    for one in own:
        needs(one.exists, one.note)
    return own, [measure(arm, level=1 - (1 - level) / len(arms)) for arm in arms]


def _list(found: Sequence[Estimate]) -> str:
    return f"Over the arms: {', '.join(f'{one.value:.3g}' for one in found)}."


def _steps(above: xr.DataArray, under: xr.DataArray) -> xr.DataArray:
    return _aligned(above, under, lambda a, b: a - b)


def _aligned(first: xr.DataArray, second: xr.DataArray, combine) -> xr.DataArray:
    """Combine two arms where both have a value. Labels that differ between the arms are dropped."""
    a, b = (arm.drop_vars([n for n, c in arm.coords.items() if not c.dims]) for arm in (first, second))
    a, b = xr.align(a, b, join="inner")
    needs(
        a.size and bool((a.notnull() & b.notnull()).any()), "the two arms have no run in common to compare."
    )
    return combine(a, b)


def _kendall(place: np.ndarray, row: np.ndarray) -> float:
    known = np.isfinite(row)
    x, y = place[known], row[known]
    i, j = np.triu_indices(len(x), 1)
    return float(np.mean(np.sign(x[j] - x[i]) * np.sign(y[j] - y[i]))) if len(i) else np.nan


def rises(values: xr.DataArray, along: str) -> Estimate:
    """Return the smallest step from one value of an axis to the next: above 0, the quantity rises all along it."""
    return ordering(arms(values.sortby(along), along))


def falls(values: xr.DataArray, along: str) -> Estimate:
    """Return the smallest step down from one value of an axis to the next: above 0, the quantity falls all along it."""
    return ordering(arms(values.sortby(along, ascending=False), along))
