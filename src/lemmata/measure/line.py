"""Straight lines: a quantity that is linear in x, judged against x itself, with its curvature tested.

A paper that plots a line claims more than an exponent: `a + b x` and `x^0.9` look alike in log-log. `straight_line` fits the
line and measures how far from straight the results are.
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import xarray as xr

from lemmata.measure.columns import columns
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.exponent import sides, spanned
from lemmata.measure.profile import root
from lemmata.measure.regression import Runs, coefficient
from lemmata.measure.simple import bootstrap

STEEPEST = 1e6
"""A curvature beyond this is infinite: the line has no slope to compare it with."""


@dataclass(frozen=True)
class Line:
    """The line `value = intercept + slope * over`.

    `curvature`: the change of the local slope from the lowest to the highest place, as a share of the mean slope. 0 is a
        straight line; 1 is a slope that triples from 1/2 to 3/2 of its mean. A claim that `values` are linear holds it
        `flat(-0.5, 0.5, because=...)`.
    `explained`: R^2 of the line through the means of the grid values, as papers print it. With few grid values it is near 1
        for almost any rising curve: judge by `curvature`.
    """

    slope: Estimate
    intercept: Estimate
    curvature: Estimate
    explained: Estimate

    @staticmethod
    def absent(reason: str) -> "Line":
        return Line(*[Estimate.absent(reason)] * 4)


@answering(Line.absent)
def straight_line(
    values: xr.DataArray,
    over: str,
    censored: xr.DataArray | None = None,
    paired: bool = False,
    level: float = 0.95,
) -> Line:
    """Fit a line to `values` against the coordinate `over`, from runs at three grid values or more.

    `censored`: marks runs whose value is only a lower bound (1) or an upper bound (-1), as in `power_law`.
    `paired`: whether runs of the same seed share their data across the grid.
    """
    runs = columns(values, over)
    x, y = runs.by[over], runs.values
    side = sides(values, censored)
    needs(len(np.unique(x[side == 0])) > 2, f"to tell a line from a curve takes three values of '{over}'.")
    data = Runs(x, y, side, columns(values, "seed").by["seed"] if paired else None)
    middle, span = (x.min() + x.max()) / 2, float(np.ptp(x))
    line = np.stack([np.ones_like(x), (x - middle) / span], 1)
    slope = coefficient(data, line, np.array([0.0, 1 / span]), level)
    intercept = coefficient(data, line, np.array([1.0, -middle / span]), level)
    curved = np.concatenate(
        [line, line[:, 1:] ** 2], 1
    )  # its local slope is b + 2 c u, at u from -1/2 to 1/2
    bend = _share_of_slope(data, curved, level)
    seen = spanned(over, x)
    found = replace(slope, seen=seen), intercept, replace(bend, seen=seen)
    return Line(
        *found, _explained(values, over) if not side.any() else Estimate.absent("some runs are bounds.")
    )


def _share_of_slope(runs: Runs, curved: np.ndarray, level: float) -> Estimate:
    """Return the change of the slope over its mean, `2 c / b`: all ratios r for which `2 c - r b` may be zero (Fieller)."""

    def apart(ratio: float) -> Estimate:
        return coefficient(runs, curved, np.array([0.0, -ratio, 2.0]), level)

    slope = coefficient(runs, curved, np.array([0.0, 1.0, 0.0]), level)
    change = apart(0.0)
    needs(slope.value != 0, "the line is flat, so that its curvature has no slope to be compared with.")
    value = change.value / slope.value
    if slope.low <= 0 <= slope.high:
        said = "The line may be flat, so that its curvature has no bound."
        return replace(change, value=value, low=-inf, high=inf).noted(said)
    sign = 1 if slope.value > 0 else -1

    def end(direction: int) -> float:
        """Return where the interval of `apart` leaves zero, beyond the value in this direction."""

        def beyond(ratio: float) -> float:
            found = apart(ratio)
            return found.high if sign * direction > 0 else -found.low

        reach = 1.0
        while beyond(value + direction * reach) > 0:
            reach *= 2
            if reach > STEEPEST:
                return direction * inf
        low, high = sorted((value, value + direction * reach))
        return root(beyond, low, high, 1e-4 * max(1.0, abs(value))) if beyond(value) > 0 else value

    return replace(change, value=value, low=end(-1), high=end(1))


def _explained(values: xr.DataArray, over: str) -> Estimate:
    """Return R^2 of a line through the means over seeds, with seeds drawn again; it never exceeds 1."""
    (dim,) = values[over].dims
    rows = values.mean([d for d in values.dims if d not in ("seed", dim)])
    place = np.asarray(values[over].values, float)

    def share(drawn: xr.DataArray) -> float:
        means = np.asarray(drawn.mean("seed").values, float)
        known = np.isfinite(means)
        return float(np.corrcoef(place[known], means[known])[0, 1] ** 2)

    found = bootstrap(share, rows)
    return replace(found, high=min(found.high, 1.0)) if found.exists else found
