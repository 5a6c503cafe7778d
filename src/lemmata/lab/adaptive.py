"""Find a boundary with fewer trainings: start on a coarse part of the grid, then train only where it tells most.

The grid of a sweep says which settings may be run, not which are. After every round the law of the boundary is fitted to
all runs so far, and the next runs go where, by that fit, they narrow its interval most: on the line, spread over the
grid. The fit itself is the same maximum likelihood as for a full grid; where the runs lie does not enter it, so that
choosing them does not bias it. Cells have an identity, so that a run that was interrupted finds its rounds in the store.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from lemmata.errors import require
from lemmata.measure.binomial import Counts
from lemmata.measure.boundary import boundary
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import PowerLaw
from lemmata.sweep import Sweep

if TYPE_CHECKING:
    from lemmata.study import Question

COARSE = 4
"""How many values of each axis the first round runs."""

CLOSE = 1.5
"""The law is fitted in full once the plan's own guess of the width is within this factor of what was asked."""

STEEPEST = 4.0
"""The steepest transition that a plan believes in, in logits a grid step: sharper ones cannot be told apart."""


@dataclass(frozen=True)
class Refined:
    """What an adaptive run found: the `sweep` of the cells that it chose, their `results`, the fitted law."""

    sweep: Sweep
    results: xr.Dataset
    boundary: PowerLaw

    @property
    def trainings(self) -> int:
        return len(self.sweep.cells)


def refine(
    sweep: Sweep,
    question: "Question",
    run: Callable[[Sweep], xr.Dataset],
    width: float,
    budget: int,
    batch: int = 8,
) -> Refined:
    """Spend trainings near the boundary until the interval of its exponent is at most `width` wide.

    `run(sweep)` gives the results of a sweep, running only what is missing. `budget` is the most trainings to spend;
    `batch` how many a round adds.
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
    question: "Question",
    width: float,
    budget: int,
    batch: int = 8,
) -> tuple[np.ndarray, PowerLaw]:
    """The number of seeds to run at each grid point, found round by round, and the law of the boundary.

    `observe(counts)` gives the success of the first `counts[point]` seeds at each point of the grid (dimensions: the
    grid, then `seed`).
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
    """The sweep with the first `counts[point]` seeds at each grid point, and nothing at points without."""
    index = [{value: i for i, value in enumerate(a.values)} for a in sweep.axes]
    names = [a.name for a in sweep.axes]
    first = sweep.seeds[0]

    def keep(place: Mapping[str, Any]) -> bool:
        at = tuple(where[place[name]] for name, where in zip(names, index, strict=True))
        kept = sweep.keep is None or sweep.keep(place)
        return kept and bool(place["seed"] - first < counts[at])

    return replace(sweep, seeds=tuple(range(first, first + int(counts.max()))), keep=keep)


def coarse(shape: tuple[int, ...]) -> np.ndarray:
    """One seed on an even part of the grid, its corners included."""
    counts = np.zeros(shape, int)
    parts = [np.unique(np.round(np.linspace(0, n - 1, min(n, COARSE))).astype(int)) for n in shape]
    counts[np.ix_(*parts)] = 1
    return counts


@dataclass(frozen=True)
class Plan:
    """What is believed of the boundary after some runs, on axes brought to the range from -1/2 to 1/2.

    `places` are the grid points (threshold, over, 1), `beta` the logistic fit of success on them, `information` its
    information matrix, `tilt` what turns a slope on these axes into an exponent.
    """

    shape: tuple[int, ...]
    places: np.ndarray
    beta: np.ndarray
    information: np.ndarray
    tilt: float

    @staticmethod
    def of(success: xr.DataArray, question: "Question") -> "Plan":
        grid = success.isel(seed=0, drop=True)
        y, x = (_logs(grid, name) for name in (question.threshold, question.over))
        runs = np.asarray(success.values, float).reshape(grid.size, -1)
        counts = Counts(np.nansum(runs, 1), np.isfinite(runs).sum(1).astype(float))
        places = np.stack([_scaled(y), _scaled(x), np.ones_like(x)], 1)
        beta, information = _believed(counts, places, STEEPEST * max(len(np.unique(y)) - 1, 1))
        return Plan(grid.shape, places, beta, information, float(np.ptp(y) / (np.ptp(x) or 1.0)))

    @property
    def width(self) -> float:
        """About how wide the interval of the exponent is."""
        towards = self._targets[0]
        return float(2 * 1.96 * np.sqrt(towards @ np.linalg.solve(self.information, towards)) * self.tilt)

    @property
    def doubt(self) -> float:
        """How much wider the interval would be if the transition were flatter by its own standard error.

        Runs that were chosen by looking make the transition look steeper than it is, and stopping at the first narrow
        interval picks the moments when it looks steepest; the interval is widened by this much to make up for both.
        """
        towards = self._targets[2]
        return float(np.exp(np.sqrt(towards @ np.linalg.solve(self.information, towards))))

    def propose(self, batch: int) -> np.ndarray:
        """How many more seeds to run at each grid point.

        Greedy: each run goes where, by the fit so far, it lowers most the sum of the relative variances of exponent,
        location and steepness. The steepness is no aim in itself; without it the interval would be trusted too early.
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
    """Brought to the range from -1/2 to 1/2."""
    span = np.ptp(values)
    return (values - values.min()) / (span or 1.0) - 0.5


def _believed(counts: Counts, place: np.ndarray, steepest: float) -> tuple[np.ndarray, np.ndarray]:
    """A fit that stays finite on separated runs, and its information matrix.

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
