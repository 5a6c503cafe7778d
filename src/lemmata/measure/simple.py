"""The two plainest measures: a fraction of runs, and a mean over runs."""

from collections.abc import Callable
from math import sqrt

import numpy as np
import xarray as xr
from scipy.stats import beta, t

from lemmata.measure.estimate import Estimate, answering, needs


@answering(Estimate.absent)
def fraction(successes: xr.DataArray | np.ndarray, level: float = 0.95) -> Estimate:
    """The fraction of runs in which something happened (1; 0 where not, NaN where not run).

    Clopper-Pearson: never more often wrong than it says, also for a handful of seeds.

    >>> fraction(np.array([1.0, 1, 1, 1, 1])).low
    0.4781...
    """
    known = _known(successes)
    runs, hits = len(known), int(known.sum())
    miss = (1 - level) / 2
    low = float(beta.ppf(miss, hits, runs - hits + 1)) if hits else 0.0
    high = float(beta.ppf(1 - miss, hits + 1, runs - hits)) if hits < runs else 1.0
    return Estimate(hits / runs, low, high, runs, level)


@answering(Estimate.absent)
def mean(values: xr.DataArray | np.ndarray, level: float = 0.95) -> Estimate:
    """The mean over seeds, with a t interval. Dimensions other than `seed` are averaged within each seed first.

    >>> round(mean(np.array([1.0, 2.0, 3.0])).high, 3)
    4.484
    """
    known = _known(over_seeds(values))
    runs = len(known)
    needs(runs > 1, "one seed gives no interval; a mean needs at least two.")
    half = float(t.ppf((1 + level) / 2, runs - 1) * known.std(ddof=1) / sqrt(runs))
    note = "" if half else "All seeds gave the same value."
    value = float(known.mean())
    return Estimate(value, value - half, value + half, runs, level, note, runs - 1)


def jackknife(measure: Callable[[np.ndarray], float], seed: np.ndarray, level: float = 0.95) -> Estimate:
    """A measure of all runs, its error by leaving out one seed at a time, with a t interval.

    `measure(kept)` is the measure on the runs where `kept` is true. For runs of one seed that share their data, so that
    only the seeds are independent.
    """
    seeds = np.unique(seed)
    count = len(seeds)
    needs(count > 1, "runs that share their data within a seed need at least two seeds.")
    without = np.array([measure(seed != one) for one in seeds])
    value = measure(np.ones(len(seed), bool))
    error = sqrt((count - 1) / count * float(np.sum((without - without.mean()) ** 2)))
    half = float(t.ppf((1 + level) / 2, count - 1)) * error
    return Estimate(value, value - half, value + half, len(seed), level, "", count - 1)


def over_seeds(values: xr.DataArray | np.ndarray) -> np.ndarray:
    """One number a seed: the mean over everything else. A seed with a missing run counts with the others it has."""
    if not isinstance(values, xr.DataArray):
        return np.asarray(values, float).ravel()
    others = [d for d in values.dims if d != "seed" and "seed" in values.dims]
    return np.asarray(values.mean(others).values, float).ravel()


def _known(values: xr.DataArray | np.ndarray) -> np.ndarray:
    flat = np.asarray(values, float).ravel()
    known = flat[np.isfinite(flat)]
    needs(len(known), "no run has a value to measure (all records are missing or not finite).")
    return known
