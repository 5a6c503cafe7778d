"""Linear regression on runs at grid values: one combination of coefficients, with an interval that fits the data.

One place decides where the error comes from: the spread of the seeds at each grid value, the residuals where there is
one run a value, the seeds' own fits where seeds share their data, the likelihood where runs are censored.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from lemmata.measure.censored import censored_fit, censored_value
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.simple import jackknife, mean

DRAWS = 999  # of the bootstrap


@dataclass(frozen=True)
class Runs:
    """What a regression sees: the place and value of each run, whether it is only a bound (`side`), and its seed where
    runs of one seed share their data."""

    place: np.ndarray
    value: np.ndarray
    side: np.ndarray
    seed: np.ndarray | None = None


def coefficient(runs: Runs, design: np.ndarray, weights: np.ndarray, level: float) -> Estimate:
    """Return the combination `weights @ beta` of the coefficients of `value = design @ beta`."""
    if runs.side.any() and runs.seed is None:
        return censored_fit(design, runs.value, runs.side, weights, level)
    if runs.side.any():
        return _censored_seeds(runs, design, weights, level)
    return _least_squares(design, runs.place, runs.value, runs.seed, weights, level)


def _censored_seeds(runs: Runs, design: np.ndarray, weights: np.ndarray, level: float) -> Estimate:
    """Fit censored runs that share their data within a seed. The error comes from leaving out one seed at a time."""

    def fitted(kept: np.ndarray) -> float:
        return censored_value(design[kept], runs.value[kept], runs.side[kept], weights)

    assert runs.seed is not None
    return jackknife(fitted, runs.seed, level)


def _least_squares(
    design: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    seed: np.ndarray | None,
    weights: np.ndarray,
    level: float,
) -> Estimate:
    """Return a combination of the coefficients of a least-squares fit.

    The error comes from the spread of runs at the same grid value, with no assumption on how it changes along the grid;
    with one run a value, from the residuals; with paired seeds, from the spread of the seeds' own fits.
    """
    if seed is not None:
        own = _seed_fits(design, y, seed, weights)
        needs(len(own) > 1, "paired runs need at least two seeds with a whole curve.")
        return replace(mean(own, level), count=len(y), note="")
    pull = weights @ np.linalg.pinv(design)  # the estimate is pull @ y
    value = float(pull @ y)
    groups = Groups.of(x)
    if groups.sizes.max() < 2:
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        freedom = float(len(y) - design.shape[1])
        needs(freedom > 0, "too few runs for an interval.")
        half = float(stdtrit(freedom, (1 + level) / 2) * np.sqrt(left @ left / freedom * (pull @ pull)))
    else:
        error, freedom = groups.error(y, pull)
        half = float(groups.quantile(y, pull, freedom, level) * error)
    return Estimate(value, value - half, value + half, len(y), level, "", freedom)


@dataclass(frozen=True)
class Groups:
    """Runs in groups of equal grid value: `order` sorts them, `starts` and `sizes` cut them."""

    order: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray

    @staticmethod
    def of(x: np.ndarray) -> "Groups":
        _, starts, sizes = np.unique(np.sort(x), return_index=True, return_counts=True)
        return Groups(np.argsort(x, kind="stable"), starts, sizes)

    def error(self, y: np.ndarray, pull: np.ndarray) -> tuple[float, float]:
        """Return the standard error of `pull @ y` and its degrees of freedom (Welch and Satterthwaite)."""
        parts = self._parts(y[self.order], pull[self.order])
        total = parts.sum()
        free = np.maximum(self.sizes - 1, 1)
        return float(np.sqrt(total)), float(total**2 / np.sum(parts**2 / free)) if total else float(
            free.sum()
        )

    def quantile(self, y: np.ndarray, pull: np.ndarray, freedom: float, level: float) -> float:
        """Return how many standard errors the interval reaches: the studentised bootstrap over seeds.

        Runs are drawn again within each grid value, and the error is computed again for each draw; without that a
        bootstrap of three to five seeds is far too sure. With two seeds there is nothing to draw from, and with many
        the bootstrap says what the t distribution says; both take the t.
        """
        plain = float(stdtrit(freedom, (1 + level) / 2))
        if self.sizes.min() < 3 or len(y) > 2000:
            return plain
        y, pull = y[self.order], pull[self.order]
        pick = np.random.default_rng(0).random((DRAWS, len(y)))
        first, size = (np.repeat(a, self.sizes) for a in (self.starts, self.sizes))
        drawn = y[first + (pick * size).astype(int)]
        error = np.sqrt(self._parts(drawn, pull).sum(-1))
        kept = error > 0
        return (
            float(np.quantile(np.abs(drawn @ pull - pull @ y)[kept] / error[kept], level))
            if kept.any()
            else plain
        )

    def _parts(self, y: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """Return what each group adds to the variance of `pull @ y`; a group of one run gets the spread of the others."""
        total = np.add.reduceat(y, self.starts, axis=-1)
        centred = y - np.repeat(total / self.sizes, self.sizes, axis=-1)
        inner = np.add.reduceat(centred**2, self.starts, axis=-1)
        pooled = inner.sum(-1, keepdims=True) / max(int((self.sizes - 1).sum()), 1)
        variance = np.where(self.sizes > 1, inner / np.maximum(self.sizes - 1, 1), pooled)
        return variance * np.add.reduceat(pull**2, self.starts)


def _seed_fits(design: np.ndarray, y: np.ndarray, seed: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the combination of coefficients as each seed alone would have it; seeds with missing runs are left out."""
    _, which, sizes = np.unique(seed, return_inverse=True, return_counts=True)
    whole = [s for s in range(len(sizes)) if sizes[s] == sizes.max()]
    return np.array([weights @ np.linalg.pinv(design[which == s]) @ y[which == s] for s in whole])
