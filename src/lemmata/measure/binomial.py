"""Binomial regression: maximum likelihood for success counts, and intervals by profile likelihood.

The success probability at linear predictor `eta = offset + X beta` is `(1 - lapse) F(eta)`, where `F` is the inverse
of the link and `lapse` the share of runs that fail whatever the setting. Perfectly separated data need no special
care: the likelihood then has a supremum instead of a maximum, reached as the slope goes to infinity, and profiles of a
location are finite all the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import erf, expit, ndtri

Link = Literal["logit", "probit", "cloglog"]

FAR = 30.0  # a linear predictor beyond this is success or failure for certain
LAPSES = np.array([0.0, 0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2])  # the lapse rates that a fit tries


@dataclass(frozen=True)
class Counts:
    """Success counts at grid points: `successes[i]` out of `trials[i]` runs."""

    successes: np.ndarray
    trials: np.ndarray

    @property
    def mixed(self) -> bool:
        """Some runs succeeded and some did not."""
        return bool(0 < self.successes.sum() < self.trials.sum())


def counted(success: np.ndarray, *places: np.ndarray) -> tuple[Counts, list[np.ndarray]]:
    """Count runs (0 or 1 each) at their distinct places."""
    distinct, which = np.unique(np.stack(places, 1), axis=0, return_inverse=True)
    which = which.ravel()
    trials = np.bincount(which, minlength=len(distinct)).astype(float)
    successes = np.bincount(which, weights=success, minlength=len(distinct))
    return Counts(successes, trials), list(distinct.T)


def likelihood(
    counts: Counts,
    design: np.ndarray,
    offset: float = 0.0,
    link: Link = "logit",
    lapse: float | None = 0.0,
    start: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Return the coefficients of greatest likelihood and their log-likelihood. A lapse rate of None is fitted too."""
    if lapse is None:
        fits = [likelihood(counts, design, offset, link, rate, start) for rate in LAPSES]
        return max(fits, key=lambda fit: fit[1])
    beta = np.zeros(design.shape[1]) if start is None else start
    eta = design @ beta + offset
    if np.abs(eta).max() > FAR / 2:  # too sure to be moved
        beta, eta = np.zeros_like(beta), np.zeros_like(eta) + offset
    value, score, information = _derivatives(counts, design, eta, link, lapse)
    unit = np.eye(len(beta))
    for _ in range(60):
        ridge = 1e-9 * max(float(information.trace()), 1e-12)  # keeps separated data solvable
        step = np.linalg.solve(information + ridge * unit, score)
        for _ in range(20):
            new = _derivatives(counts, design, design @ (beta + step) + offset, link, lapse)
            if new[0] >= value:
                break
            step = step / 2
        else:
            break
        gained, beta = new[0] - value, beta + step
        value, score, information = new
        if gained < 1e-6:
            break
    return beta, value


def profile(
    counts: Counts,
    design: Callable[[float], np.ndarray],
    offset: float = 0.0,
    link: Link = "logit",
    lapse: float | None = 0.0,
) -> Callable[[float], float]:
    """Return the greatest log-likelihood as a function of a parameter of the design; each fit starts where the last ended."""
    last: np.ndarray | None = None

    def best(parameter: float) -> float:
        nonlocal last
        last, value = likelihood(counts, design(parameter), offset, link, lapse, last)
        return value

    return best


def informative(counts: Counts, eta: np.ndarray, link: Link = "logit") -> float:
    """Return how many runs tell something about the transition: each counts with `4 p (1 - p)`, 1 where success is even."""
    p, _ = _mean(_within(eta, -FAR, FAR), link)
    return float(counts.trials @ (4 * p * (1 - p)))


def quantile(link: Link, probability: float) -> float:
    """Return the linear predictor at which success has this probability."""
    if link == "logit":
        return float(np.log(probability / (1 - probability)))
    return float(ndtri(probability)) if link == "probit" else float(np.log(-np.log1p(-probability)))


def _mean(eta: np.ndarray, link: Link) -> tuple[np.ndarray, np.ndarray]:
    """Return the inverse link and its derivative."""
    if link == "logit":
        p = expit(eta)
        return p, p * (1 - p)
    if link == "probit":
        return 0.5 * (1 + erf(eta / np.sqrt(2))), np.exp(-(eta**2) / 2) / np.sqrt(2 * np.pi)
    rate = np.exp(np.minimum(eta, 5.0))
    return -np.expm1(-rate), rate * np.exp(-rate)


def _derivatives(
    counts: Counts, design: np.ndarray, eta: np.ndarray, link: Link, lapse: float
) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the log-likelihood at a linear predictor, its gradient and the expected information."""
    p, slope = _mean(_within(eta, -FAR, FAR), link)
    p, slope = _within((1 - lapse) * p, 1e-13, 1 - 1e-13), (1 - lapse) * slope
    value = counts.successes @ np.log(p) + (counts.trials - counts.successes) @ np.log1p(-p)
    pull = slope / (p * (1 - p))
    score = design.T @ ((counts.successes - counts.trials * p) * pull)
    return float(value), score, (design.T * (counts.trials * slope * pull)) @ design


def _within(values: np.ndarray, low: float, high: float) -> np.ndarray:
    """Clip values. On a few numbers `np.clip` takes longer than the work itself."""
    return np.minimum(np.maximum(values, low), high)
