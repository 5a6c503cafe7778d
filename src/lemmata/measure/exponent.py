"""Exponents: the slope of a power law in log-log, with an honest interval, censored runs, and a test for a bend."""

from dataclasses import dataclass
from math import exp

import numpy as np
import xarray as xr
from scipy.optimize import minimize
from scipy.special import log_ndtr
from scipy.stats import t

from lemmata.measure.columns import columns, logarithm
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.profile import profile_interval


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
    """The exponent of `values` as a power of the axis `over`; a bend of the log-log curve is said in the note.

    See `power_law` for the arguments.
    """
    law = power_law(values, over, censored, paired, level)
    bend = law.bend
    if bend.exists and (bend.low > 0 or bend.high < 0):
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
    """Exponent, constant and bend of a power law, from runs at several grid values and seeds.

    `censored` marks runs whose value is only a lower bound (True or 1: they hit the step cap) or an upper bound (-1);
    they enter by the probability of lying beyond it, never as values. `paired` says that runs of the same
    seed share their data across the grid: then each seed gives one slope and the seeds are compared; otherwise the
    runs of a grid value are compared with each other, so that the noise may differ from one grid value to the next.
    """
    runs = columns(values, over)
    x, y = logarithm(runs.by[over], over), logarithm(runs.values, "the measured quantity")
    side = np.zeros(len(y), int)
    if censored is not None:
        marks = censored.broadcast_like(values).transpose(*values.dims)
        side = (
            np.asarray(marks.values)
            .astype(int)
            .ravel()[np.isfinite(np.asarray(values.values, float)).ravel()]
        )
    hidden = side != 0
    needs(len(np.unique(x)) > 1, f"an exponent needs at least two values of '{over}', and there is one.")
    needs(len(np.unique(x[~hidden])) > 1, "fewer than two grid values have runs that are not censored.")
    needs(len(np.unique(x)) > 2 or len(x) > len(np.unique(x)), "two runs give a slope but no interval.")
    seed = columns(values, "seed").by["seed"] if paired else None

    mid = x.mean()
    line = np.stack([np.ones_like(x), x - mid], 1)

    def coefficient(design: np.ndarray, weights: np.ndarray) -> Estimate:
        if hidden.any():
            return _tobit(design, y, side, weights, level)
        return _least_squares(design, x, y, seed, weights, level)

    slope = coefficient(line, np.array([0.0, 1.0]))
    constant = coefficient(line, np.array([1.0, -mid])).map(lambda v: exp(min(v, 700.0)))
    if hidden.any():
        note = f"{int(hidden.sum())} of {len(y)} runs are censored and count as bounds, not as values."
        slope, constant = slope.noted(note), constant.noted(note)
    if len(np.unique(x[~hidden])) < 3 or len(x) < 5:
        return PowerLaw(
            slope, constant, Estimate.absent("a bend needs at least three grid values and five runs.")
        )
    span = float(np.ptp(x))
    curved = np.concatenate([line, ((x - mid) ** 2 / (2 * span))[:, None]], 1)
    return PowerLaw(slope, constant, coefficient(curved, np.array([0.0, 0.0, 1.0])))


def _least_squares(
    design: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    seed: np.ndarray | None,
    weights: np.ndarray,
    level: float,
) -> Estimate:
    """A combination of the coefficients of a least-squares fit, with a Welch-Satterthwaite t interval.

    The error comes from the spread of runs at the same grid value (no assumption on how it changes along the grid);
    with one run a value, from the residuals; with paired seeds, from the spread of the seeds' own fits.
    """
    pull = weights @ np.linalg.pinv(design)  # the estimate is pull @ y
    value = float(pull @ y)
    if seed is not None:
        own = _seed_fits(design, y, seed, weights)
        needs(len(own) > 1, "paired runs need at least two seeds with a whole curve.")
        spread, freedom = float(own.var(ddof=1) / len(own)), len(own) - 1.0
        value = float(own.mean())
    else:
        spread, freedom = _spread(design, x, y, pull)
    half = float(t.ppf((1 + level) / 2, freedom) * np.sqrt(spread))
    return Estimate(value, value - half, value + half, len(y), level, "", freedom)


def _spread(design: np.ndarray, x: np.ndarray, y: np.ndarray, pull: np.ndarray) -> tuple[float, float]:
    """The variance of `pull @ y` and its degrees of freedom."""
    _, group = np.unique(x, return_inverse=True)
    size = np.bincount(group).astype(float)
    if (size < 2).all():
        left = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        freedom = len(y) - design.shape[1]
        needs(freedom > 0, "too few runs for an interval.")
        return float(left @ left / freedom * (pull @ pull)), float(freedom)
    inner = np.bincount(group, (y - (np.bincount(group, y) / size)[group]) ** 2)
    free = size - 1
    pooled = inner.sum() / free.sum()
    variance = np.where(free > 0, inner / np.maximum(free, 1), pooled)
    part = np.bincount(group, pull**2) * variance
    if not part.any():
        return 0.0, float(free.sum())
    return float(part.sum()), float(part.sum() ** 2 / np.sum(part**2 / np.maximum(free, 1)))


def _seed_fits(design: np.ndarray, y: np.ndarray, seed: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The combination of coefficients as each seed alone would have it; seeds with missing runs are left out."""
    _, which, sizes = np.unique(seed, return_inverse=True, return_counts=True)
    whole = [s for s in range(len(sizes)) if sizes[s] == sizes.max()]
    return np.array([weights @ np.linalg.pinv(design[which == s]) @ y[which == s] for s in whole])


def _tobit(
    design: np.ndarray, y: np.ndarray, side: np.ndarray, weights: np.ndarray, level: float
) -> Estimate:
    """A combination of the coefficients by censored normal likelihood, with a profile-likelihood interval.

    The likelihood mark is the one that makes the
    interval exact for uncensored normal errors (the t interval), counted on the uncensored runs.
    """
    seen = int((side == 0).sum())
    freedom = seen - design.shape[1]
    needs(freedom > 0, "too few runs are not censored for an interval.")
    turn = np.linalg.qr(np.concatenate([weights[:, None], np.eye(len(weights))], 1))[0]
    along, rest = weights / (weights @ weights), turn[:, 1:]

    def fitted(offset: np.ndarray, columns: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, float]:
        def loss(p: np.ndarray) -> tuple[float, np.ndarray]:
            return _censored_loss(y - offset, columns, side, p)

        found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-7})
        return found.x, float(found.fun)

    rough = np.linalg.lstsq(design, y, rcond=None)[0]
    scale = np.log(max(float(np.std(y - design @ rough)), 1e-6))
    best, bottom = fitted(np.zeros_like(y), design, np.append(rough, scale))
    value = float(weights @ best[:-1])
    mark = seen / 2 * np.log1p(t.ppf((1 + level) / 2, freedom) ** 2 / freedom)
    start = np.append(rest.T @ best[:-1], best[-1])

    def drop(wanted: float) -> float:
        return fitted(design @ along * wanted, design @ rest, start)[1] - bottom

    unit = float(np.exp(best[-1]) * np.linalg.norm(weights @ np.linalg.pinv(design)))
    low, high = profile_interval(drop, value, 2 * unit, mark, 1e4 * unit)
    return Estimate(value, low, high, len(y), level, "", freedom)


def _censored_loss(
    y: np.ndarray, design: np.ndarray, side: np.ndarray, parameters: np.ndarray
) -> tuple[float, np.ndarray]:
    """Minus the log-likelihood of a normal regression with censored values, and its gradient."""
    beta, scale = parameters[:-1], np.exp(np.clip(parameters[-1], -25, 25))
    z = (y - design @ beta) / scale
    hidden = side != 0
    bound = side[hidden]
    beyond = log_ndtr(-bound * z[hidden])
    seen = z[~hidden]
    value = 0.5 * seen @ seen + len(seen) * np.log(scale) - beyond.sum()
    pull = z.copy()  # derivative of the loss by z
    pull[hidden] = bound * np.exp(-0.5 * z[hidden] ** 2 - beyond) / np.sqrt(2 * np.pi)
    return float(value), np.append(-(design.T @ pull) / scale, len(seen) - pull @ z)
