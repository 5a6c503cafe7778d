"""Finds a boundary with fewer trainings: starts on a coarse part of the grid, then trains where it is most informative.

The grid of a sweep contains the settings that may be run. After every round the law of the boundary is fitted to all runs so
far. The next runs are those that narrow its interval most by this fit: near the boundary, spread over the grid. The fit is the
same maximum likelihood as for a full grid. It does not depend on why cells were chosen, so that choosing them does not bias
it. An interrupted run finds its rounds in the store, by the identities of the cells.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr

from lemmata.errors import require
from lemmata.measure.binomial import Counts
from lemmata.measure.boundary import boundary
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import PowerLaw
from lemmata.results import Question
from lemmata.sweep import Sweep

COARSE = 4
"""The number of values of each axis in the first round."""

CLOSE = 1.5
"""The law is fitted in full once the width that the plan estimates is within this factor of the requested one."""

STEEPEST = 4.0
"""The steepest transition that a plan assumes, in logits a grid step. Data cannot distinguish sharper ones."""


@dataclass(frozen=True)
class Refined:
    """The result of an adaptive run.

    `sweep`: the cells that it chose.
    `results`: their results.
    `boundary`: the fitted law.
    """

    sweep: Sweep
    results: xr.Dataset
    boundary: PowerLaw

    @property
    def trainings(self) -> int:
        return len(self.sweep.cells)


def refine(
    sweep: Sweep,
    question: Question,
    run: Callable[[Sweep], xr.Dataset],
    width: float,
    budget: int,
    batch: int = 8,
) -> Refined:
    """Train near the boundary until the interval of its exponent is at most `width` wide.

    `sweep`: the grid of settings.
    `question`: the boundary.
    `run`: returns the results of a sweep, and runs only its missing cells.
    `width`: the width of the interval.
    `budget`: the largest number of trainings.
    `batch`: the number of trainings that a round adds.
    """
    require(0 < width < np.inf, f"the width of the interval must be positive and finite, not {width:g}.")
    names = [a.name for a in sweep.axes]

    def observe(counts: np.ndarray) -> xr.DataArray:
        return question.success(run(subset(sweep, counts))).transpose(*names, "seed")

    shape = tuple(len(a.values) for a in sweep.axes)
    counts, law = search(shape, observe, question, width, budget, batch)
    chosen = subset(sweep, counts)
    return Refined(chosen, run(chosen), law)


def search(
    shape: tuple[int, ...],
    observe: Callable[[np.ndarray], xr.DataArray],
    question: Question,
    width: float,
    budget: int,
    batch: int = 8,
) -> tuple[np.ndarray, PowerLaw]:
    """Return the number of seeds to run at each grid point, found round by round, and the law of the boundary.

    `shape`: the shape of the grid.
    `observe`: returns the success of the first `counts[point]` seeds at each grid point; its last dimension is `seed`.
    The other arguments are those of `refine`.
    """
    counts = coarse(shape)
    while True:
        success = observe(counts)
        plan = Plan.of(success, question)
        left = budget - int(counts.sum())
        if left <= 0 or plan.width <= CLOSE * width:
            law = boundary(success, question.threshold, question.over)
            law = replace(law, exponent=_widened(law.exponent, plan.doubt))
            if left <= 0 or law.exponent.high - law.exponent.low <= width:
                return counts, law
        counts = counts + plan.propose(min(batch, left))


def subset(sweep: Sweep, counts: np.ndarray) -> Sweep:
    """Return the sweep with the first `counts[point]` seeds at each grid point."""
    index = [{value: i for i, value in enumerate(a.values)} for a in sweep.axes]
    names = [a.name for a in sweep.axes]
    first = sweep.seeds[0]

    def keep(place: Mapping[str, Any]) -> bool:
        at = tuple(where[place[name]] for name, where in zip(names, index, strict=True))
        kept = sweep.keep is None or sweep.keep(place)
        return kept and bool(place["seed"] - first < counts[at])

    return replace(sweep, seeds=tuple(range(first, first + int(counts.max()))), keep=keep)


def coarse(shape: tuple[int, ...]) -> np.ndarray:
    """Return counts of one seed on an even part of the grid, including its corners."""
    counts = np.zeros(shape, int)
    parts = [np.unique(np.round(np.linspace(0, n - 1, min(n, COARSE))).astype(int)) for n in shape]
    counts[np.ix_(*parts)] = 1
    return counts


@dataclass(frozen=True)
class Plan:
    """The estimate of the boundary after some runs, on axes scaled to the range from -1/2 to 1/2.

    `shape`: the shape of the grid.
    `places`: the grid points, as rows (threshold, over, 1).
    `beta`: the coefficients of the logistic fit of success on them.
    `information`: the information matrix of the fit.
    `tilt`: the factor that converts a slope on these axes to an exponent.
    """

    shape: tuple[int, ...]
    places: np.ndarray
    beta: np.ndarray
    information: np.ndarray
    tilt: float

    @staticmethod
    def of(success: xr.DataArray, question: Question) -> "Plan":
        grid = success.isel(seed=0, drop=True)
        y, x = (_logs(grid, name) for name in (question.threshold, question.over))
        runs = np.asarray(success.values, float).reshape(grid.size, -1)
        counts = Counts(np.nansum(runs, 1), np.isfinite(runs).sum(1).astype(float))
        places = np.stack([_scaled(y), _scaled(x), np.ones_like(x)], 1)
        beta, information = _fit_with_prior(counts, places, STEEPEST * max(len(np.unique(y)) - 1, 1))
        return Plan(grid.shape, places, beta, information, float(np.ptp(y) / (np.ptp(x) or 1.0)))

    @property
    def width(self) -> float:
        """The approximate width of the interval of the exponent."""
        towards = self._targets[0]
        return float(2 * 1.96 * np.sqrt(towards @ np.linalg.solve(self.information, towards)) * self.tilt)

    @property
    def doubt(self) -> float:
        """The factor by which the interval would widen if the transition were flatter by its own standard error.

        Choosing runs by earlier results makes the transition appear steeper than it is. So does stopping at the first narrow
        interval. The interval is widened by this factor to correct for both.
        """
        towards = self._targets[2]
        return float(np.exp(np.sqrt(towards @ np.linalg.solve(self.information, towards))))

    def propose(self, batch: int) -> np.ndarray:
        """Return how many more seeds to run at each grid point.

        The choice is greedy: each run goes where, by the present fit, it reduces the sum of the relative variances of exponent,
        location and steepness most. Without the steepness, the search would stop too early.
        """
        chance = 1 / (1 + np.exp(-self.places @ self.beta))
        weight = chance * (1 - chance)
        spread = np.linalg.inv(self.information)
        added = np.zeros(len(self.places), int)
        for _ in range(batch):
            reach = self.places @ spread
            now = np.einsum("ti,ij,tj->t", self._targets, spread, self._targets)
            size = 1 + weight * np.einsum("ni,ni->n", reach, self.places)
            best = int(np.argmax((reach @ self._targets.T) ** 2 @ (1 / now) * weight / size))
            added[best] += 1
            spread = spread - np.outer(reach[best], reach[best]) * weight[best] / size[best]
        return added.reshape(self.shape)

    @property
    def _targets(self) -> np.ndarray:
        """Gradients of exponent, location and log-steepness by `beta`."""
        steep, tilt, base = self.beta
        return np.array([[tilt / steep, -1.0, 0.0], [base / steep, 0.0, -1.0], [1.0, 0.0, 0.0]]) / steep


def _widened(estimate: Estimate, factor: float) -> Estimate:
    low, high = (estimate.value + factor * (end - estimate.value) for end in (estimate.low, estimate.high))
    return replace(estimate, low=low, high=high)


def _logs(grid: xr.DataArray, name: str) -> np.ndarray:
    return np.log(
        np.asarray(grid.coords[name].broadcast_like(grid).transpose(*grid.dims).values, float).ravel()
    )


def _scaled(values: np.ndarray) -> np.ndarray:
    """Scale to the range from -1/2 to 1/2."""
    span = np.ptp(values)
    return (values - values.min()) / (span or 1.0) - 0.5


def _fit_with_prior(counts: Counts, place: np.ndarray, steepest: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a logistic fit that is finite on separated runs, and its information matrix.

    The coefficients have a normal prior as wide as the steepest transition of the grid.
    """
    beta = np.array([1.0, 0.0, 0.0])
    prior = np.eye(3) / steepest**2
    for _ in range(50):
        p = 1 / (1 + np.exp(-np.clip(place @ beta, -30, 30)))
        information = (place.T * (counts.trials * p * (1 - p))) @ place + prior
        step = np.linalg.solve(information, place.T @ (counts.successes - counts.trials * p) - prior @ beta)
        beta = beta + step / max(1.0, float(np.abs(step).max()) / 2)
        if np.abs(step).max() < 1e-6:
            break
    return beta, information
