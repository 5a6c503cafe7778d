"""Exponents: the slope of a power law in log-log, with an honest interval, censored runs, and a test for a bend.

A law that is fitted over a range can be a crossover: the exponent is also measured locally, in the lower and the upper
part of the grid, and the judge looks at both.
"""

from dataclasses import dataclass, replace
from math import exp

import numpy as np
import xarray as xr

from lemmata.measure.columns import columns, logarithm
from lemmata.measure.compare import chance
from lemmata.measure.estimate import Estimate, Unmeasurable, answering, needs
from lemmata.measure.regression import Runs, coefficient

CLEARLY = 0.01  # the p-value from which a bend is worth a note


@dataclass(frozen=True)
class PowerLaw:
    """The law `value = constant * over ** exponent`.

    `bend` is the change of the local exponent from the lowest to the highest value of `over`: an interval without 0
    says that it is not a power law, and how far from one.
    """

    exponent: Estimate
    constant: Estimate
    bend: Estimate

    @staticmethod
    def absent(reason: str) -> "PowerLaw":
        nothing = Estimate.absent(reason)
        return PowerLaw(nothing, nothing, nothing)


def exponent(
    values: xr.DataArray,
    over: str,
    censored: xr.DataArray | None = None,
    paired: bool = False,
    level: float = 0.95,
) -> Estimate:
    """Return the exponent of `values` as a power of the axis `over`; a bend of the log-log curve is said in the note.

    See `power_law` for the arguments.
    """
    law = power_law(values, over, censored, paired, level)
    bend = law.bend
    if bend.exists and chance(bend, (0.0, 0.0)) < CLEARLY:
        said = f"Not a plain power law: the local exponent changes by {bend.value:.2g} over the grid"
        return law.exponent.noted(f"{said} ({bend.low:.2g} to {bend.high:.2g}).")
    return law.exponent


@answering(PowerLaw.absent)
def power_law(
    values: xr.DataArray,
    over: str,
    censored: xr.DataArray | None = None,
    paired: bool = False,
    level: float = 0.95,
) -> PowerLaw:
    """Fit exponent, constant and bend of a power law to runs at several grid values and seeds.

    `censored` marks runs whose value is only a lower bound (True or 1: they hit the step cap) or an upper bound (-1);
    they enter by the probability of lying beyond it, never as values. `paired` says that runs of the same
    seed share their data across the grid: then each seed gives one slope and the seeds are compared; otherwise the
    runs of a grid value are compared with each other, so that the noise may differ from one grid value to the next.
    """
    runs = columns(values, over)
    x, y = logarithm(runs.by[over], over), logarithm(runs.values, "the measured quantity")
    side = sides(values, censored)
    hidden = side != 0
    needs(len(np.unique(x)) > 1, f"an exponent needs at least two values of '{over}', and there is one.")
    needs(len(np.unique(x[~hidden])) > 1, "fewer than two grid values have runs that are not censored.")
    needs(len(np.unique(x)) > 2 or len(x) > len(np.unique(x)), "two runs give a slope but no interval.")
    mid = x.mean()
    line = np.stack([np.ones_like(x), x - mid], 1)

    data = Runs(x, y, side, columns(values, "seed").by["seed"] if paired else None)
    slope = coefficient(data, line, np.array([0.0, 1.0]), level)
    constant = coefficient(data, line, np.array([1.0, -mid]), level).map(lambda v: exp(min(v, 700.0)))
    if hidden.any():
        note = f"{int(hidden.sum())} of {len(y)} runs are censored and count as bounds, not as values."
        slope, constant = slope.noted(note), constant.noted(note)
    slope = replace(_localised(slope, data, level), seen=spanned(over, runs.by[over]))
    if len(np.unique(x[~hidden])) < 3 or len(x) < 5:
        return PowerLaw(
            slope, constant, Estimate.absent("a bend needs at least three grid values and five runs.")
        )
    span = float(np.ptp(x))
    curved = np.concatenate([line, ((x - mid) ** 2 / (2 * span))[:, None]], 1)
    return PowerLaw(slope, constant, coefficient(data, curved, np.array([0.0, 0.0, 1.0]), level))


def sides(values: xr.DataArray, censored: xr.DataArray | None) -> np.ndarray:
    """Return for every run that has a value: 0 where it was seen, 1 where it is only a lower bound, -1 an upper one."""
    known = np.isfinite(np.asarray(values.values, float)).ravel()
    if censored is None:
        return np.zeros(int(known.sum()), int)
    marks = censored.broadcast_like(values).transpose(*values.dims)
    return np.asarray(marks.values).astype(int).ravel()[known]


def _localised(slope: Estimate, runs: Runs, level: float) -> Estimate:
    """Return the exponent with its local ones: of a line that breaks in the middle of the grid, below and above the break."""
    try:
        middle = middle_of(runs.place)
        below, above = np.minimum(runs.place - middle, 0.0), np.maximum(runs.place - middle, 0.0)
        broken = np.stack([np.ones_like(below), below, above], 1)
        lower, upper, drift = (
            coefficient(runs, broken, np.array([0.0, *weights]), level)
            for weights in ((1, 0), (0, 1), (-1, 1))
        )
    except Unmeasurable:  # too few grid values or runs to tell the parts apart
        return slope
    return replace(slope, parts=(lower, upper), drift=drift)


def middle_of(place: np.ndarray) -> float:
    """Return the middle of a grid: its middle value, or halfway between its two middle ones."""
    grid = np.unique(place)
    needs(len(grid) > 2, "a law is measured locally on at least three grid values.")
    return float(grid[(len(grid) - 1) // 2] + grid[len(grid) // 2]) / 2


def spanned(over: str, values: np.ndarray) -> str:
    """Return the range of an axis in words."""
    return f"{over} {values.min():.4g} to {values.max():.4g}"
