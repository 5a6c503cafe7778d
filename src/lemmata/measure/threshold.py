"""Critical size: where success passes 50 % (or any target) along one axis, from success counts."""

from math import exp, inf, log

import numpy as np
import xarray as xr

from lemmata.measure.binomial import Counts, Link, counted, informative, likelihood, profile, quantile
from lemmata.measure.columns import columns, logarithm
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.profile import drop_at, profile_interval

REACH = 20.0  # how far beyond the grid, in widths of the grid, an end of an interval is still looked for


@answering(Estimate.absent)
def critical_size(
    success: xr.DataArray,
    size: str,
    target: float = 0.5,
    link: Link = "logit",
    lapse: float | None = 0.0,
    level: float = 0.95,
) -> Estimate:
    """Return the size at which success passes `target`: a binomial GLM in the logarithm of the size.

    `success` holds 1, 0 and NaN (not run; see `below` and `above`), `size` names its size axis. `lapse` is the share
    of runs that fail at any size (None: fitted); the target is a share of the others. The interval is by profile
    likelihood. Where the runs leave no slope to fit, the interval is bounded by grid values and the note says so.
    """
    runs = columns(success, size)
    counts, (place,) = counted(runs.values, logarithm(runs.by[size], size))
    needs(len(place) > 1, f"a critical size needs at least two values of '{size}', and there is one.")
    if not counts.mixed:
        return _outside(counts, place, size, target, level)

    (slope, base), top = likelihood(counts, np.stack([place, np.ones_like(place)], 1), 0.0, link, lapse)
    mark = drop_at(level, informative(counts, slope * place + base, link))
    held = profile(counts, lambda c: (place - c)[:, None], quantile(link, target), link, lapse)
    width = place[-1] - place[0]
    last_failure, first_success = _gap(counts, place, np.sign(slope))
    separated = last_failure < first_success
    if separated:
        centre = (last_failure + first_success) / 2
    else:
        centre = (quantile(link, target) - base) / slope if slope else inf
    needs(
        abs(centre - place.mean()) < REACH * width,
        f"success does not change with '{size}', so nothing is critical.",
    )
    low, high = profile_interval(lambda c: top - held(c), centre, width / len(place) / 4, mark, REACH * width)
    note = (
        f"Every run beyond {size} = {exp(first_success):.4g} differs from every run up to {exp(last_failure):.4g}: "
        "the interval is bounded by the grid."
        if separated
        else ""
    )
    return Estimate(exp(centre), _exp(low), _exp(high), int(counts.trials.sum()), level, note)


def critical_sizes(
    success: xr.DataArray, size: str, over: str, target: float = 0.5, level: float = 0.95
) -> xr.Dataset:
    """Return the critical size at every value of the axis `over`: `value`, `low` and `high`, NaN where there is none to be had,
    and `inside`, whether the interval is bounded on both sides."""
    (dim,) = success[over].dims
    found = [
        critical_size(success.isel({dim: i}), size, target, level=level) for i in range(success.sizes[dim])
    ]
    numbers = {name: (dim, [getattr(one, name) for one in found]) for name in ("value", "low", "high")}
    inside = [one.exists and one.low > 0 and one.high < inf for one in found]
    return xr.Dataset({**numbers, "inside": (dim, inside)}, {over: success[over]})


def _gap(counts: Counts, place: np.ndarray, direction: float) -> tuple[float, float]:
    """Return the last place with a run of the low kind and the first with one of the high kind; apart when separated."""
    share = counts.successes / counts.trials
    low, high = (share < 1, share > 0) if direction >= 0 else (share > 0, share < 1)
    return float(place[low].max()), float(place[high].min())


def _outside(counts: Counts, place: np.ndarray, size: str, target: float, level: float) -> Estimate:
    """Return all runs succeeded, or all failed: a bound by the grid, free of any assumption but that success is monotone.

    If success were still below the target at a grid value, all runs up to there would have succeeded with probability
    at most `target ** runs`; the bound is the first value where that is below half of `1 - level`.
    """
    succeeded = bool(counts.successes.all())
    order = slice(None) if succeeded else slice(None, None, -1)
    chance = np.cumsum(counts.trials[order]) * log(target if succeeded else 1 - target)
    beyond = np.flatnonzero(chance <= log((1 - level) / 2))
    runs = int(counts.trials.sum())
    needs(
        len(beyond),
        f"all {runs} runs {'succeeded' if succeeded else 'failed'}, too few to bound a critical size.",
    )
    value, bound = exp(place[order][0]), exp(place[order][beyond[0]])
    if succeeded:
        said = f"Every run succeeded: the critical {size} lies below the grid or at its lower end."
        return Estimate(value, 0.0, bound, runs, level, said)
    said = f"Every run failed: the critical {size} lies above the grid or at its upper end."
    return Estimate(value, bound, inf, runs, level, said)


def _exp(value: float) -> float:
    return 0.0 if value == -inf else inf if value == inf else exp(value)
