"""Intervals by profile likelihood: walk away from the best value until the likelihood has dropped too far."""

from collections.abc import Callable
from math import inf
from typing import Any, cast

from scipy.optimize import brentq
from scipy.special import stdtrit

FEWEST = 12.0


def profile_interval(
    drop: Callable[[float], float], start: float, scale: float, mark: float, reach: float
) -> tuple[float, float]:
    """Return the values around `start` at which the profile log-likelihood has dropped by no more than `mark`.

    `drop(value)` is how far it lies below its top. The search goes outward in growing steps of `scale`; an end
    farther than `reach` is infinite.
    """

    def end(direction: int) -> float:
        inner, step = 0.0, scale
        while drop(start + direction * step) < mark:
            inner, step = step, 2 * step
            if step > reach:
                return direction * inf
        return root(
            lambda v: drop(v) - mark, start + direction * inner, start + direction * step, 1e-4 * scale
        )

    return end(-1), end(1)


def drop_at(level: float, informative: float) -> float:
    """Return the drop of the log-likelihood that marks the ends of an interval at this confidence.

    With many informative runs it is half the quantile of chi-square; with few, the square of Student's t takes its
    place, with a degree of freedom for each (but at least twelve: there it covers what it says, by simulation).
    """
    return float(stdtrit(max(informative, FEWEST), (1 + level) / 2)) ** 2 / 2


def root(function: Callable[[float], float], low: float, high: float, precision: float) -> float:
    """Return where a function changes its sign between two values."""
    return float(cast(Any, brentq(function, low, high, xtol=precision)))
