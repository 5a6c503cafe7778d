"""Times: what a curve was when, when it crosses a level and stays, how it grows over a stage.

Curves run along the dimension `step`, or, where cells logged different steps, along `log` with `step` as a coordinate
of every cell. They end where their run stopped (NaN after that).
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from scipy.optimize import minimize_scalar

from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.simple import fraction, mean

Growth = Literal["linear", "logarithmic", "exponential"]
GROWTHS: tuple[Growth, ...] = get_args(Growth)
CLEAR = 6.0  # difference of the information criterion from which one growth is preferred to another


def at_step(curves: xr.DataArray, step: float) -> xr.DataArray:
    """Return the curves at the logged step nearest to `step`, one value a run."""
    dim, steps = _clock(curves)
    nearest = abs(steps - step).fillna(np.inf).argmin(dim)
    return curves.isel({dim: nearest}).drop_vars("step")


def first_value(curves: xr.DataArray) -> xr.DataArray:
    """Return the first value that each curve has (after a `where`, the first of the chosen stretch)."""
    dim, _ = _clock(curves)
    return curves.isel({dim: curves.notnull().argmax(dim)}).drop_vars("step")


def last_value(curves: xr.DataArray) -> xr.DataArray:
    """Return the last value that each curve has: the one at which its run stopped."""
    dim, _ = _clock(curves)
    return curves.isel({dim: curves.notnull().cumsum(dim).argmax(dim)}).drop_vars("step")


def settling_time(
    curves: xr.DataArray, level: float | xr.DataArray, side: Literal["above", "below"] = "above"
) -> xr.DataArray:
    """Return the first logged step from which each curve stays above (or below) the level to its end; NaN where it never does.

    A run without any value is NaN too.
    """
    dim, steps = _clock(curves)
    gone = curves.isnull()
    beyond = ((curves >= level) if side == "above" else (curves <= level)) | gone
    beyond = beyond.transpose(..., dim)
    stays = np.flip(np.logical_and.accumulate(np.flip(beyond.values, -1), -1), -1)
    settled = beyond.copy(data=stays) & ~gone
    first = steps.where(settled).min(dim).transpose(*(d for d in curves.dims if d != dim))
    return first.rename(None).assign_attrs(seen=_range(steps.where(~gone)))


def largest_fall(curves: xr.DataArray, relative: bool = False) -> xr.DataArray:
    """Return the largest fall of each curve below its highest value so far, as a share of that value if `relative`; 0 where it
    never falls."""
    dim, _ = _clock(curves)
    rows = curves.transpose(..., dim)
    highest = rows.copy(data=np.fmax.accumulate(rows.values, axis=-1))
    return ((highest - rows) / (highest if relative else 1.0)).max(dim)


def run_slopes(
    curves: xr.DataArray,
    where: xr.DataArray | None = None,
    since: float | xr.DataArray = 0.0,
    fewest: int = 3,
) -> xr.DataArray:
    """Return the slope of each curve against the logarithm of the steps (counted from `since`), over the stretch `where`.

    Of the logarithm of a positive curve it is the exponent in time. NaN where fewer than `fewest` logged steps remain.
    """
    dim, steps = _clock(curves)
    elapsed = (steps - since).where(steps > since)
    used = curves.where(elapsed.notnull() & curves.notnull() & (True if where is None else where))
    x = xr.ufuncs.log(elapsed).where(used.notnull())
    x = x - x.mean(dim)
    many = used.notnull().sum(dim)
    slope = (x * used).sum(dim) / (x**2).sum(dim).where(many >= fewest)
    return slope.assign_attrs(seen=_range(steps.where(used.notnull())))


@answering(Estimate.absent)
def time_exponent(
    curves: xr.DataArray,
    where: xr.DataArray | None = None,
    since: float | xr.DataArray = 0.0,
    fewest: int = 3,
    level: float = 0.95,
) -> Estimate:
    """Return the exponent of positive curves in time over a stretch of each run, averaged over the seeds.

    The stretch is also cut in two in the logarithm of time: the exponents of both halves are the estimate's `parts`,
    and what they differ by within a run its `drift`.
    """
    dim, steps = _clock(curves)
    needs(bool(((curves > 0) | curves.isnull()).all()), "some values of the curves are not positive.")
    chosen = curves if where is None else curves.where(where)
    logs = xr.ufuncs.log(chosen.where(steps > since))
    slopes = run_slopes(logs, None, since, fewest)
    whole = mean(slopes, level)
    needs(whole.exists, f"fewer than two seeds have {fewest} logged steps in the stretch of the law.")
    elapsed = (steps - since).where(logs.notnull())
    middle = (elapsed.min(dim) * elapsed.max(dim)) ** 0.5
    lower, upper = (
        run_slopes(logs.where(half), None, since, 2) for half in (elapsed <= middle, elapsed >= middle)
    )
    parts, drift = (mean(lower, level), mean(upper, level)), mean(upper - lower, level)
    return replace(whole, parts=parts, drift=drift) if drift.exists else whole


@dataclass(frozen=True)
class Compared:
    """How one curve grows: `best`, the growth with the lowest information criterion (None when it is not clearly ahead of
    the next), and by how much the others are `behind`."""

    best: Growth | None
    behind: dict[Growth, float]


def growth(times: np.ndarray, values: np.ndarray) -> Compared:
    """Compare linear (`a + b t`), logarithmic (`a + b log t`) and exponential (`a + b exp(c t)`) growth of one curve.

    All are least-squares fits of the values themselves, compared by the Bayesian information criterion. Residuals of
    a training curve follow each other, so the number of points is first brought down to the number of independent
    ones that the correlation of the best fit's residuals leaves.
    """
    known = np.isfinite(values) & (times > 0)
    time, value = np.asarray(times, float)[known], np.asarray(values, float)[known]
    needs(
        len(time) >= 6,
        f"growth is compared on at least six logged steps of the stage, and there are {len(time)}.",
    )
    needs(np.ptp(value) > 0, "the curve does not change over the stage.")
    left: dict[Growth, np.ndarray] = {
        "linear": _residual(time, value),
        "logarithmic": _residual(np.log(time), value),
        "exponential": _exponential_residual(time, value),
    }
    floor = (1e-9 * np.ptp(value)) ** 2  # rounding, not fit
    errors = {name: float(r @ r) / len(r) + floor for name, r in left.items()}
    points = _independent(left[min(left, key=lambda name: errors[name])])
    price = {name: (3 if name == "exponential" else 2) * np.log(points) for name in GROWTHS}
    score = {name: points * np.log(errors[name]) + price[name] for name in GROWTHS}
    order: list[Growth] = sorted(GROWTHS, key=lambda name: score[name])
    behind: dict[Growth, float] = {name: float(score[name] - score[order[0]]) for name in GROWTHS}
    return Compared(order[0] if behind[order[1]] > CLEAR else None, behind)


@answering(Estimate.absent)
def grows(
    curves: xr.DataArray,
    how: Growth,
    start: float | xr.DataArray = 0.0,
    stop: float | xr.DataArray = np.inf,
) -> Estimate:
    """Return the fraction of runs whose curve over the stage `start..stop` clearly grows this way rather than another.

    The stage may begin and end at another step in each run.
    """
    dim, steps = _clock(curves)
    staged = curves.where((steps >= start) & (steps <= stop))
    rows, times = (
        np.asarray(a.transpose(..., dim).values, float).reshape(-1, staged.sizes[dim])
        for a in xr.broadcast(staged, steps)
    )
    known = np.isfinite(rows).any(-1)
    needs(known.any(), "no run has a value to measure (all records are missing or not finite).")
    named = [growth(t, row).best == how for t, row in zip(times[known], rows[known], strict=True)]
    return replace(fraction(np.array(named, float)), seen=_range(steps.where(staged.notnull())))


def _clock(curves: xr.DataArray) -> tuple[str, xr.DataArray]:
    """Return the dimension that curves run along, and the steps along it (of each cell, where they differ)."""
    needs("step" in curves.coords, "the results have no axis 'step'.")
    dim = "step" if "step" in curves.dims else "log"
    return dim, curves["step"].astype(float)


def _range(steps: xr.DataArray) -> str:
    """Return the steps in words."""
    low, high = float(steps.min()), float(steps.max())
    return f"steps {low:g} to {high:g}" if low < high else ""


def _residual(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    design = np.stack([np.ones_like(x), x], 1)
    return y - design @ np.linalg.lstsq(design, y, rcond=None)[0]


def _exponential_residual(time: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Return the best fit of `a + b exp(c t)`, the rate found by a search over its logarithm.

    The rate is at least one over the length of the stage: with less, an exponential is a straight line.
    """
    span = np.ptp(time)

    def curve(log_rate: float) -> np.ndarray:
        return np.exp(np.exp(log_rate) * (time - time[-1]) / span)

    def loss(log_rate: float) -> float:
        left = _residual(curve(log_rate), value)
        return float(left @ left)

    rates = np.linspace(0.0, np.log(300.0), 25)
    start = rates[int(np.argmin([loss(r) for r in rates]))]
    found: Any = minimize_scalar(loss, bounds=(max(start - 0.3, 0.0), start + 0.3), method="bounded")
    return _residual(curve(float(found.x)), value)


def _independent(left: np.ndarray) -> float:
    """Return how many independent points a series of residuals is worth, from its lag-one correlation."""
    spread = float(left @ left)
    correlation = float(left[1:] @ left[:-1]) / spread if spread else 0.0
    correlation = min(max(correlation, 0.0), 0.95)
    return max(len(left) * (1 - correlation) / (1 + correlation), 4.0)
