"""From an estimate and a tolerance to a verdict."""

from dataclasses import dataclass
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
    """What the lab has to say about one claim, and whether the theorem's own conditions were met."""

    id: str
    statement: str
    verdict: Outcome
    predicted: str
    measured: Estimate
    tolerance: tuple[float, float]
    conditions: tuple[Condition, ...] = ()
    note: str = ""


def decide(estimate: Estimate, tolerance: tuple[float, float]) -> Outcome:
    """`holds` when the interval lies inside the tolerance, `fails` when it lies outside, else `inconclusive`."""
    low, high = tolerance
    if not estimate.exists:
        return "inconclusive"
    if estimate.high < low or estimate.low > high:
        return "fails"
    return "holds" if low <= estimate.low and estimate.high <= high else "inconclusive"
