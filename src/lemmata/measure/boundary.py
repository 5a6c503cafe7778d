"""Boundary: the critical line of a two-axis sweep and its law, by one binomial model over all cells."""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, inf, isfinite

import numpy as np
import xarray as xr

from lemmata.measure.binomial import Counts, Link, counted, informative, likelihood, profile
from lemmata.measure.columns import columns, logarithm
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.profile import drop_at, profile_interval, root

REACH = 64.0  # exponents and log-constants farther than this from the fit count as infinite
SEPARATED = 1e-3  # a log-likelihood above minus this says that a line parts all successes from all failures
PARTED = "One line parts all successes from all failures: the interval is bounded by the grid."


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

    def located(
        start: float, peak: float, scale: float, design: Callable[[float], list[np.ndarray]]
    ) -> Estimate:
        """A parameter of the law: where the likelihood peaks, and how far it stays near the peak."""
        held = profile(counts, lambda v: np.stack(design(v), 1), link=link)
        low, high = profile_interval(lambda v: peak - held(v), start, scale, mark, REACH)
        parted = peak > -SEPARATED
        value = _middle(held, start, low, high) if parted else start
        return Estimate(float(value), low, high, runs, level, PARTED if parted else "")

    step_y, step_e = float(np.ptp(y)) / 16, float(np.ptp(y) / np.ptp(x)) / 16
    law = located(-tilt / slope, top, step_e, lambda e: [y - e * mid, one])
    if exponent is None:
        constant = located((tilt * centre - base) / slope, top, step_y, lambda c: [y - c, x])
    else:
        (steep, shift), peak = best(y - exponent * x, one)
        constant = located(-shift / steep, peak, step_y, lambda c: [y - exponent * x - c])
        constant = constant.noted(f"Fitted at the exponent {exponent:g}.")
    if len(np.unique(x)) < 3:
        return Boundary(
            law, constant.map(_exp), Estimate.absent("a bend needs at least three grid values.", runs)
        )
    square = mid**2 / (2 * np.ptp(x))  # its coefficient is the change of the exponent over the grid
    (steep, _, curve, _), peak = best(y, mid, square, one)
    if abs(curve) > REACH * abs(steep):
        return Boundary(
            law, constant.map(_exp), Estimate.absent("the runs do not tell how the boundary bends.", runs)
        )
    bend = located(-curve / steep, peak, step_e, lambda b: [y - b * square, mid, one])
    return Boundary(law, constant.map(_exp), bend)


def _middle(held: Callable[[float], float], start: float, low: float, high: float) -> float:
    """The middle of the values that explain separated data perfectly."""

    def short(value: float) -> float:
        return -held(value) - 0.05

    if short(start) > 0 or not (isfinite(low) and isfinite(high)) or min(short(low), short(high)) <= 0:
        return start
    return (root(short, low, start, 1e-6) + root(short, start, high, 1e-6)) / 2


def _exp(value: float) -> float:
    return 0.0 if value == -inf else inf if value > 700 else exp(value)
