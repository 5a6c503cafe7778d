"""Boundary: the critical line of a two-axis sweep and its law, by one binomial model over all cells."""

from dataclasses import dataclass
from math import exp, inf, isfinite

import numpy as np
import xarray as xr

from lemmata.measure.binomial import Counts, Link, counted, informative, likelihood
from lemmata.measure.columns import columns, logarithm
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.profile import drop_at, profile_interval, root

REACH = 64.0  # exponents and log-constants farther than this from the fit count as infinite
SEPARATED = 1e-3  # a log-likelihood above minus this says that a line parts all successes from all failures


@dataclass(frozen=True)
class Boundary:
    """The law `threshold = constant * over ** exponent` of a critical line.

    `constant` is the threshold at `over = 1` (see `boundary` for other references). `bend` is the change of the local
    exponent from the lowest to the highest value of `over`: an interval without 0 says that it is not a power law.
    """

    exponent: Estimate
    constant: Estimate
    bend: Estimate

    @staticmethod
    def absent(reason: str) -> "Boundary":
        nothing = Estimate.absent(reason)
        return Boundary(nothing, nothing, nothing)


@answering(Boundary.absent)
def boundary(
    success: xr.DataArray,
    threshold: str,
    over: str,
    exponent: float | None = None,
    at: float = 1.0,
    link: Link = "logit",
    level: float = 0.95,
) -> Boundary:
    """The critical value of the axis `threshold` as a function of the axis `over`, with its law.

    Success of every cell follows `link(p) = s * (log threshold - exponent * log over - log constant)`: one model for
    all cells, so that rows without a transition still say where it is not. Intervals are by profile likelihood. With an
    `exponent` given (the theory's), the constant is fitted at that exponent. `at` is the value of `over` at which the
    constant is read off; far from the grid, a free exponent makes it vague.
    """
    runs = columns(success, threshold, over)
    counts, (y, x) = counted(
        runs.values, logarithm(runs.by[threshold], threshold), logarithm(runs.by[over], over) - np.log(at)
    )
    return _law(counts, x, y, threshold, over, exponent, link, level)


def _law(
    counts: Counts,
    x: np.ndarray,
    y: np.ndarray,
    threshold: str,
    over: str,
    exponent: float | None,
    link: Link,
    level: float,
) -> Boundary:
    for name, column in ((threshold, y), (over, x)):
        needs(np.ptp(column) > 0, f"a boundary needs at least two values of '{name}', and there is one.")
    runs = int(counts.trials.sum())
    same = "succeeded" if counts.successes.any() else "failed"
    needs(counts.mixed, f"all {runs} runs {same}: the grid does not reach the boundary.")
    one, centre = np.ones_like(x), x.mean()
    mid = x - centre

    def best(*design: np.ndarray) -> tuple[np.ndarray, float]:
        return likelihood(counts, np.stack(design, 1), link=link)

    (slope, tilt, base), top = best(y, mid, one)
    needs(
        abs(slope) * np.ptp(y) > 1e-3 and abs(base / slope) < REACH and abs(tilt / slope) < REACH,
        f"success does not change with '{threshold}', so there is no boundary in it.",
    )
    mark = drop_at(level, informative(counts, slope * y + tilt * mid + base, link))
    parted = top > -SEPARATED
    note = (
        "One line parts all successes from all failures: intervals are bounded by the grid." if parted else ""
    )
    span_x, span_y = float(np.ptp(x)), float(np.ptp(y))

    def estimate(loss, start: float, peak: float, scale: float, change=lambda v: v) -> Estimate:
        low, high = profile_interval(lambda v: loss(v) + peak, start, scale, mark, REACH)
        value = _middle(loss, start, low, high) if parted else start
        return Estimate(value, low, high, runs, level, note).map(change)

    step = span_y / span_x / 16
    law = estimate(lambda e: -best(y - e * mid, one)[1], -tilt / slope, top, step)
    if exponent is None:
        start = -(base - tilt * centre) / slope
        constant = estimate(lambda c: -best(y - c, x)[1], start, top, span_y / 16, _exp)
    else:
        (s, b), peak = best(y - exponent * x, one)
        constant = estimate(lambda c: -best(y - exponent * x - c)[1], -b / s, peak, span_y / 16, _exp)
        constant = constant.noted(f"Fitted at the exponent {exponent:g}.")
    return Boundary(law, constant, _bend(counts, mid, y, mark, link, level))


def _bend(counts: Counts, x: np.ndarray, y: np.ndarray, mark: float, link: Link, level: float) -> Estimate:
    """How much the local exponent changes over the grid, by a quadratic term in the model of all cells."""
    runs = int(counts.trials.sum())
    if len(np.unique(x)) < 3:
        return Estimate.absent("a bend needs at least three grid values.", runs)
    one, span = np.ones_like(x), float(np.ptp(x))
    square = x**2 / (2 * span)  # its coefficient is the change of slope over the grid

    def loss(change: float) -> float:
        return -likelihood(counts, np.stack([y - change * square, x, one], 1), link=link)[1]

    (slope, _, curve, _), peak = likelihood(counts, np.stack([y, x, square, one], 1), link=link)
    start = -curve / slope if slope else 0.0
    if not isfinite(start) or abs(start) > REACH:
        return Estimate.absent("the runs do not tell a bend of the boundary.", runs)
    scale = float(np.ptp(y)) / span / 16
    low, high = profile_interval(lambda v: loss(v) + peak, start, scale, mark, REACH)
    value = _middle(loss, start, low, high) if peak > -SEPARATED else start
    return Estimate(value, low, high, runs, level)


def _middle(loss, start: float, low: float, high: float) -> float:
    """The middle of the values that explain separated data perfectly."""

    def over(value: float) -> float:
        return loss(value) - 0.05

    if over(start) > 0 or not (isfinite(low) and isfinite(high)):
        return start
    return (root(over, low, start, 1e-6) + root(over, start, high, 1e-6)) / 2


def _exp(value: float) -> float:
    return 0.0 if value == -inf else inf if value > 700 else exp(value)
