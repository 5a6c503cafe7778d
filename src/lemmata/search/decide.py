"""Decides on fresh seeds whether a candidate refutes a claim, with a known chance of a false alarm.

A search looks at many points, so that its own seeds prove nothing. At most four candidates are tried on seeds that no search
and no verdict uses. They share the chance of a false alarm: a half, a quarter and two eighths of it.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.special import bdtrc, stdtrit

SHARES = (0.5, 0.25, 0.125, 0.125)
"""What each candidate may spend of the chance of a false alarm."""

ALARM = 0.01
"""The chance that a true claim is called refuted, of one command."""

DELTA = 0.1
"""The share of runs that a theorem with high probability may lose, where it states none."""

SEARCH_SEEDS, SHRINK_SEEDS, CONFIRM_SEEDS = 10**12, 2 * 10**12, 3 * 10**12
"""Where the seeds of a search, of shrinking and of confirming begin. No verdict uses seeds as large."""

ROUNDING = 1e-9
"""A margin counts as violated from here on, so that an equality is not refuted by rounding."""

BLOCK = 1000
"""Seeds between one candidate's block and the next."""


@dataclass(frozen=True)
class Confirmation:
    """What fresh seeds say of a candidate.

    `refuted`: whether they refute the claim. `violating` of `seeds` violated it, `silent` gave no number.
    `chance`: how often a true claim on the edge of its tolerance would be violated as clearly.
    `margin`: the median distance over the seeds.
    """

    refuted: bool
    violating: int
    seeds: int
    silent: int
    chance: float
    margin: float


def of_shares(margins: np.ndarray, level: float, delta: float = DELTA) -> Confirmation:
    """Decide for a claim about every run: more seeds violate than a share `delta` of violating runs would explain."""
    known = margins[~np.isnan(margins)]
    violating, many = int((known < -ROUNDING).sum()), len(known)
    chance = float(bdtrc(violating - 1, many, delta)) if violating else 1.0
    enough = many > 0 and chance <= level
    return Confirmation(enough, violating, many, len(margins) - many, chance, _median(known))


def of_estimate(value: float, half: float, freedom: float, singles: np.ndarray, level: float) -> Confirmation:
    """Decide for an estimate: its two-sided interval at this level lies outside, and most single seeds violate the claim.

    `value`: the distance of the estimate from the tolerance's end; below zero it is outside.
    `half`: the half-width of its 95 % interval on that side, in the same unit.
    An interval alone is too sure where the runs are skewed.
    """
    known = singles[~np.isnan(singles)]
    violating = int((known < -ROUNDING).sum())
    unit = half / float(stdtrit(freedom if freedom < inf else 1e9, 0.975))
    reach = unit * float(stdtrit(freedom if freedom < inf else 1e9, 1 - level / 2))
    outside = bool(value + reach < 0)
    return Confirmation(
        outside and len(known) > 0 and violating > 0.5 * len(known),
        violating,
        len(known),
        len(singles) - len(known),
        level if outside else 1.0,
        value,
    )


def _median(known: np.ndarray) -> float:
    return float(np.median(known)) if len(known) else float("nan")


def at_most(points: int) -> float:
    """The largest share of the inside that violates, at 95 %, if none of so many independent random points did."""
    return float(1 - 0.05 ** (1 / points)) if points else 1.0
