"""Normal regression with censored values: maximum likelihood, and intervals by profile likelihood.

A run that hit the step cap says only that its time lies beyond the cap. It enters the likelihood by the probability of
that, never as a value. The spread of the errors may change along the grid: its logarithm is a second linear model.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, stdtrit

from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.profile import profile_interval


@dataclass(frozen=True)
class Censored:
    """Values with a mean `offset + design @ beta` and log-spread `spread @ gamma`.

    `side` is 0 for a value that was seen, 1 where it is only a lower bound, -1 where it is only an upper bound.
    """

    values: np.ndarray
    side: np.ndarray
    design: np.ndarray
    spread: np.ndarray
    offset: np.ndarray | float = 0.0

    def loss(self, parameters: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Return minus the log-likelihood, with its gradient and second derivatives."""
        wide = self.design.shape[1]
        scale = np.clip(self.spread @ parameters[wide:], -25, 25)
        shrink = np.exp(-scale)
        z = np.clip((self.values - self.offset - self.design @ parameters[:wide]) * shrink, -1e6, 1e6)
        seen = self.side == 0
        u = self.side * z
        beyond = log_ndtr(-u)
        mills = np.exp(-0.5 * u**2 - beyond) / np.sqrt(2 * np.pi)
        value = np.sum(np.where(seen, 0.5 * z**2 + scale, -beyond))
        first = np.where(seen, z, self.side * mills)  # derivatives by z
        second = np.where(seen, 1.0, mills * (mills - u))
        by_mean, by_scale = -first * shrink, seen - first * z
        gradient = np.concatenate([self.design.T @ by_mean, self.spread.T @ by_scale])
        cross = (self.design.T * ((second * z + first) * shrink)) @ self.spread
        corner = (self.spread.T * (second * z**2 + first * z)) @ self.spread
        curve = np.block([[(self.design.T * (second * shrink**2)) @ self.design, cross], [cross.T, corner]])
        return float(value), gradient, curve


def most_likely(model: Censored, start: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the parameters of greatest likelihood from a starting point, and minus their log-likelihood (damped Newton)."""
    where, damping = start, 1e-4
    value, gradient, curve = model.loss(where)
    for _ in range(200):
        size = np.maximum(np.abs(np.diag(curve)), 1e-8)
        step = np.linalg.lstsq(curve + damping * np.diag(size), gradient, rcond=None)[0]
        new = model.loss(where - step)
        if not new[0] <= value:
            damping = max(damping, 1e-3) * 4
            if damping > 1e12:
                break
            continue
        gained, where, damping = value - new[0], where - step, damping / 10
        value, gradient, curve = new
        if gained < 1e-8:
            break
    return where, value


def censored_fit(
    design: np.ndarray, values: np.ndarray, side: np.ndarray, weights: np.ndarray, level: float
) -> Estimate:
    """Return the combination `weights @ beta` of the coefficients, with a profile-likelihood interval.

    The drop of the likelihood that marks the ends is the one that makes the interval exact (a t interval) for
    uncensored normal errors of equal spread, counted on the runs that were seen.
    """
    model, best, bottom = _fitted(design, values, side)
    seen, wide = int((side == 0).sum()), design.shape[1]
    freedom = float(seen - len(best) + 1)
    value = float(weights @ best[:wide])
    others = np.linalg.svd(weights[None])[2][1:].T  # directions that leave the combination alone
    along = weights / (weights @ weights)
    start = np.concatenate([others.T @ best[:wide], best[wide:]])

    def drop(wanted: float) -> float:
        held = Censored(values, side, design @ others, model.spread, design @ along * wanted)
        return most_likely(held, start)[1] - bottom

    error = np.exp(model.spread @ best[wide:]) * (weights @ np.linalg.pinv(design))
    unit = max(float(np.linalg.norm(error)), 1e-9)
    mark = seen / 2 * np.log1p(stdtrit(freedom, (1 + level) / 2) ** 2 / freedom)
    low, high = profile_interval(drop, value, 2 * unit, float(mark), 1e4 * unit)
    return Estimate(value, low, high, len(values), level, "", freedom)


def censored_value(design: np.ndarray, values: np.ndarray, side: np.ndarray, weights: np.ndarray) -> float:
    """Return the combination `weights @ beta` of the coefficients, without an interval."""
    return float(weights @ _fitted(design, values, side)[1][: design.shape[1]])


def _fitted(design: np.ndarray, values: np.ndarray, side: np.ndarray) -> tuple[Censored, np.ndarray, float]:
    """Return the model, its parameters and minus its log-likelihood.

    The first two columns of the design (1 and the place) also carry the log-spread where there are runs enough to tell.
    """
    seen = int((side == 0).sum())
    spread = design[:, : 2 if seen >= 8 else 1]
    needs(seen > design.shape[1] + spread.shape[1] - 1, "too few runs are not censored for an interval.")
    rough = np.linalg.lstsq(design, values, rcond=None)[0]
    scale = np.zeros(spread.shape[1])
    scale[0] = np.log(max(float(np.std(values - design @ rough)), 1e-6))
    model = Censored(values, side, design, spread)
    return model, *most_likely(model, np.concatenate([rough, scale]))
