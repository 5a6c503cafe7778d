"""The plainest measures: a fraction of runs, a mean or median over seeds, any number with its interval by resampling."""

from collections.abc import Callable
from math import inf, sqrt
from typing import TypeVar

import numpy as np
import xarray as xr
from scipy.special import bdtr, betaincinv, ndtri, stdtrit

from lemmata.measure.estimate import Estimate, answering, needs

Seeded = TypeVar("Seeded", xr.DataArray, xr.Dataset)
DRAWS = 999  # of seeds, in a bootstrap
SPOILT = 0.05  # the share of draws that may give no number


@answering(Estimate.absent)
def fraction(successes: xr.DataArray | np.ndarray, level: float = 0.95) -> Estimate:
    """Return the fraction of runs in which something happened (1; 0 where not, NaN where not run).

    Clopper-Pearson: never more often wrong than it says, also for a handful of seeds.

    >>> fraction(np.array([1.0, 1, 1, 1, 1])).low
    0.4781...
    """
    known = _known(successes)
    runs, hits = len(known), int(known.sum())
    miss = (1 - level) / 2
    low = float(betaincinv(hits, runs - hits + 1, miss)) if hits else 0.0
    high = float(betaincinv(hits + 1, runs - hits, 1 - miss)) if hits < runs else 1.0
    return Estimate(hits / runs, low, high, runs, level, seen=_seen(successes))


@answering(Estimate.absent)
def mean(values: xr.DataArray | np.ndarray, level: float = 0.95) -> Estimate:
    """Return the mean over seeds, with a t interval. Dimensions other than `seed` are averaged within each seed first.

    >>> round(mean(np.array([1.0, 2.0, 3.0])).high, 3)
    4.484
    """
    known = _known(over_seeds(values))
    runs = len(known)
    needs(runs > 1, "one seed gives no interval; a mean needs at least two.")
    half = float(stdtrit(runs - 1, (1 + level) / 2) * known.std(ddof=1) / sqrt(runs))
    note = "" if half else "All seeds gave the same value."
    value = float(known.mean())
    return Estimate(value, value - half, value + half, runs, level, note, float(runs - 1), _seen(values))


@answering(Estimate.absent)
def median(values: xr.DataArray | np.ndarray, level: float = 0.95) -> Estimate:
    """Return the median over seeds, with the interval that the ranks give: no assumption, so runs on a plateau do no harm.

    The interval runs from the k-th smallest to the k-th largest, k the largest rank for which fewer than k of the seeds
    lie below their median with a chance of at most half of `1 - level`. Below six seeds no rank does that at 95 %, and the
    ends are infinite. Dimensions other than `seed` are brought to their median within each seed first. Where some runs are
    stuck a median hides it: give their share too (`fraction`).

    >>> median(np.arange(6.0))
    2.5 [0, 5]
    """
    known = np.sort(_known(over_seeds(values, "median")))
    count = len(known)
    rank = int(np.sum(bdtr(np.arange(count), count, 0.5) < (1 - level) / 2))
    if rank < 1:
        said = f"{count} seeds have no ranks for an interval of their median; it takes six at 95 %."
        return Estimate(float(np.median(known)), -inf, inf, count, level, said, seen=_seen(values))
    ends = float(known[rank - 1]), float(known[count - rank])
    return Estimate(float(np.median(known)), *ends, count, level, seen=_seen(values))


@answering(Estimate.absent)
def bootstrap(statistic: Callable[[Seeded], float], values: Seeded, level: float = 0.95) -> Estimate:
    """Estimate any number that a function gives of all runs. Its interval comes from drawing the seeds again.

    A bootstrap of a few seeds is too sure: its percentiles are stretched as far as Student's t reaches beyond the normal
    distribution, and for the spread of n seeds being too small by (n - 1)/n. `values` may be a Dataset.
    """
    needs("seed" in values.dims, "the results have no seeds to draw again.")
    values = values.dropna("seed", how="all")
    count = values.sizes["seed"]
    needs(count > 2, f"{count} seeds are too few to draw again from; it takes three.")
    value = float(statistic(values))
    needs(np.isfinite(value), "these runs do not give the number that was asked for.")
    drawn = np.sort(np.random.default_rng(0).integers(0, count, (DRAWS, count)), axis=1)
    pick, which = np.unique(drawn, axis=0, return_inverse=True)  # of five seeds there are 126 different draws
    with np.errstate(all="ignore"):  # a draw of one seed three times may have no spread to divide by
        again = np.array([float(statistic(values.isel(seed=seeds))) for seeds in pick])[which.ravel()]
    again = again[np.isfinite(again)]
    spoilt = 1 - len(again) / DRAWS
    needs(
        spoilt <= SPOILT, f"{spoilt:.0%} of the draws of the seeds do not give the number that was asked for."
    )
    low, high = np.quantile(again, [(1 - level) / 2, (1 + level) / 2])
    stretch = float(stdtrit(count - 1, (1 + level) / 2) / ndtri((1 + level) / 2)) * sqrt(count / (count - 1))
    ends = value - stretch * (value - min(low, value)), value + stretch * (max(high, value) - value)
    return Estimate(value, float(ends[0]), float(ends[1]), count, level, "", float(count - 1))


def jackknife(measure: Callable[[np.ndarray], float], seed: np.ndarray, level: float = 0.95) -> Estimate:
    """Return a measure of all runs, its error by leaving out one seed at a time, with a t interval.

    `measure(kept)` is the measure on the runs where `kept` is true. For runs of one seed that share their data, so that
    only the seeds are independent.
    """
    seeds = np.unique(seed)
    count = len(seeds)
    needs(count > 1, "runs that share their data within a seed need at least two seeds.")
    without = np.array([measure(seed != one) for one in seeds])
    value = measure(np.ones(len(seed), bool))
    error = sqrt((count - 1) / count * float(np.sum((without - without.mean()) ** 2)))
    half = float(stdtrit(count - 1, (1 + level) / 2)) * error
    return Estimate(value, value - half, value + half, len(seed), level, "", float(count - 1))


def over_seeds(values: xr.DataArray | np.ndarray, within: str = "mean") -> np.ndarray:
    """Return one number a seed: the mean (or median) over all other dimensions, without missing runs."""
    if not isinstance(values, xr.DataArray):
        return np.asarray(values, float).ravel()
    others = [d for d in values.dims if d != "seed" and "seed" in values.dims]
    return np.asarray(getattr(values, within)(others).values, float).ravel() if others else _flat(values)


def _known(values: xr.DataArray | np.ndarray) -> np.ndarray:
    flat = _flat(values)
    known = flat[np.isfinite(flat)]
    needs(len(known), "no run has a value to measure (all records are missing or not finite).")
    return known


def _flat(values: xr.DataArray | np.ndarray) -> np.ndarray:
    return np.asarray(values, float).ravel()


def _seen(values: xr.DataArray | np.ndarray) -> str:
    """Return the range of steps that numbers of curves were read off, if it was noted (`times`)."""
    return str(values.attrs.get("seen", "")) if isinstance(values, xr.DataArray) else ""
