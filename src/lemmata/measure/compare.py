"""From an estimate and a tolerance to a verdict, alone and among the other claims of a study."""

from dataclasses import dataclass
from math import ceil, inf, isfinite
from typing import Literal

from lemmata.measure.estimate import Estimate

Outcome = Literal["holds", "fails", "inconclusive"]


@dataclass(frozen=True)
class Condition:
    """One condition of a theorem at the settings of a run.

    `margin` is how far it is met (above 1) or missed (below 1), as the ratio of the two sides with hidden constants
    set to 1. `holds` is None where the statement is order-wise and leaves its constant open.
    """

    name: str
    holds: bool | None
    margin: float


@dataclass(frozen=True)
class Verdict:
    """What the lab has to say about one claim, and whether the theorem's own conditions were met.

    `more_seeds` estimates how many more seeds would decide an inconclusive verdict; None where seeds would not, or
    nobody can tell.
    """

    id: str
    statement: str
    verdict: Outcome
    predicted: str
    measured: Estimate
    tolerance: tuple[float, float]
    conditions: tuple[Condition, ...] = ()
    note: str = ""
    more_seeds: int | None = None

    @property
    def sentence(self) -> str:
        """The verdict with the conditions that were not met: 'holds, although condition (2) is violated by ...'."""
        missed = [c for c in self.conditions if c.margin < 1 and c.holds is not True]
        if not missed:
            return self.verdict
        link = "although" if self.verdict == "holds" else "but"
        return f"{self.verdict}, {link} {' and '.join(_violation(c) for c in missed)}"


def decide(estimate: Estimate, tolerance: tuple[float, float]) -> Outcome:
    """`holds` when the interval lies inside the tolerance, `fails` when it lies outside, else `inconclusive`."""
    low, high = tolerance
    if not estimate.exists:
        return "inconclusive"
    if estimate.high < low or estimate.low > high:
        return "fails"
    return "holds" if low <= estimate.low and estimate.high <= high else "inconclusive"


def more_seeds(estimate: Estimate, tolerance: tuple[float, float], seeds: int) -> int | None:
    """How many seeds on top of `seeds` would bring the interval to one side of the tolerance's nearest end.

    The half-width of an interval goes with one over the root of the number of seeds; the value is taken as it stands.

    >>> more_seeds(Estimate(0.6, 0.4, 0.8), (0.5, 1.0), seeds=4)
    12
    """
    if decide(estimate, tolerance) != "inconclusive":
        return 0
    if not estimate.exists or not (isfinite(estimate.low) and isfinite(estimate.high)):
        return None
    needed = max((half / room) ** 2 if room > 0 else inf for half, room in _sides(estimate, tolerance))
    return max(ceil(seeds * needed * (1 - 1e-12)) - seeds, 1) if isfinite(needed) else None


def _sides(estimate: Estimate, tolerance: tuple[float, float]) -> list[tuple[float, float]]:
    """For each end of the interval that matters: its distance from the value, and the distance it has room for."""
    low, high = tolerance
    down, up = estimate.value - estimate.low, estimate.high - estimate.value
    if estimate.value < low:
        return [(up, low - estimate.value)]
    if estimate.value > high:
        return [(down, estimate.value - high)]
    return [
        (half, room)
        for half, room in ((down, estimate.value - low), (up, high - estimate.value))
        if room < inf
    ]


def _violation(condition: Condition) -> str:
    factor = f"by a factor {1 / condition.margin:.3g}" if condition.margin > 0 else "entirely"
    name = condition.name if condition.name.startswith("condition") else f"condition {condition.name}"
    hidden = " (its hidden constant set to 1)" if condition.holds is None else ""
    return f"{name}{hidden} is violated {factor}"
