"""Times: when a curve crosses a level and stays, and how it grows over a stage."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import xarray as xr
from scipy.optimize import minimize_scalar

from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.simple import fraction

Shape = Literal["linear", "logarithmic", "exponential"]
SHAPES: tuple[Shape, ...] = get_args(Shape)
CLEAR = 6.0  # difference of the information criterion from which one shape is preferred to another


def settling_time(
    curves: xr.DataArray, level: float, side: Literal["above", "below"] = "above", step: str = "step"
) -> xr.DataArray:
    """The first logged step from which each curve stays above (or below) the level to its end; NaN where it never does.

    A curve ends where its run stopped (NaN after that). A run without any value is NaN too.
    """
    beyond = (curves >= level) if side == "above" else (curves <= level)
    gone = curves.isnull()
    beyond = np.asarray((beyond | gone).transpose(..., step).values)
    stays = np.flip(np.logical_and.accumulate(np.flip(beyond, -1), -1), -1)
    seen = ~np.asarray(gone.transpose(..., step).values)
    settled = stays & seen
    times = np.asarray(curves[step].values, float)
    first = np.where(settled.any(-1), times[settled.argmax(-1)], np.nan)
    template = curves.transpose(..., step).isel({step: 0}, drop=True)
    return template.copy(data=first)


@dataclass(frozen=True)
class Growth:
    """How one curve grows: the shape with the lowest information criterion, and by how much the others are worse.

    `shape` is None when no shape is clearly ahead of the next.
    """

    shape: Shape | None
    behind: dict[Shape, float]


def growth(times: np.ndarray, values: np.ndarray) -> Growth:
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
    left: dict[Shape, np.ndarray] = {
        "linear": _residual(time, value),
        "logarithmic": _residual(np.log(time), value),
        "exponential": _exponential_residual(time, value),
    }
    floor = (1e-9 * np.ptp(value)) ** 2  # rounding, not fit
    errors = {shape: float(r @ r) / len(r) + floor for shape, r in left.items()}
    best = min(left, key=lambda shape: errors[shape])
    points = _independent(left[best])
    score = {
        s: points * np.log(errors[s]) + (3 if s == "exponential" else 2) * np.log(points) for s in SHAPES
    }
    order: list[Shape] = sorted(SHAPES, key=lambda shape: score[shape])
    behind: dict[Shape, float] = {shape: float(score[shape] - score[order[0]]) for shape in SHAPES}
    return Growth(order[0] if behind[order[1]] > CLEAR else None, behind)


@answering(Estimate.absent)
def grows(
    curves: xr.DataArray, shape: Shape, start: float = 0.0, stop: float = np.inf, step: str = "step"
) -> Estimate:
    """The fraction of runs whose curve over the stage `start..stop` is clearly of this shape rather than another."""
    needs(step in curves.coords, f"the results have no axis '{step}'.")
    times = np.asarray(curves[step].values, float)
    stage = (times >= start) & (times <= stop)
    rows = np.asarray(curves.transpose(..., step).values, float)[..., stage].reshape(-1, int(stage.sum()))
    rows = rows[np.isfinite(rows).any(-1)]
    needs(len(rows), "no run has a value to measure (all records are missing or not finite).")
    return fraction(np.array([growth(times[stage], row).shape == shape for row in rows], float))


def _residual(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    design = np.stack([np.ones_like(x), x], 1)
    return y - design @ np.linalg.lstsq(design, y, rcond=None)[0]


def _exponential_residual(time: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The best fit of `a + b exp(c t)`, the rate found by a search over its logarithm.

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
    """How many independent points a series of residuals is worth, from its lag-one correlation."""
    spread = float(left @ left)
    correlation = float(left[1:] @ left[:-1]) / spread if spread else 0.0
    correlation = min(max(correlation, 0.0), 0.95)
    return max(len(left) * (1 - correlation) / (1 + correlation), 4.0)
