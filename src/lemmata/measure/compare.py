"""From an estimate and a tolerance to a verdict, alone and among the other claims of a study."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite
from typing import Literal

from lemmata.measure.estimate import Estimate

ROUNDING = 1e-12
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

    `seeds` is how many seeds the results hold; `more_seeds` estimates how many more would decide an inconclusive
    verdict; None where seeds would not, or nobody can tell.
    """

    id: str
    statement: str
    verdict: Outcome
    predicted: str
    measured: Estimate
    tolerance: tuple[float, float]
    conditions: tuple[Condition, ...] = ()
    note: str = ""
    seeds: int = 0
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
    """How many seeds on top of `seeds` would bring the interval clear of the tolerance's ends; None if nobody can tell.

    The half-width of an interval goes with one over the root of the number of seeds; the value is taken as it stands.

    >>> more_seeds(Estimate(0.6, 0.4, 0.8), (0.5, 1.0), seeds=4)
    12
    """
    if decide(estimate, tolerance) != "inconclusive":
        return 0
    if not estimate.exists or not (isfinite(estimate.low) and isfinite(estimate.high)):
        return None
    clearance = _clearance(estimate, tolerance)
    return max(ceil(seeds * (clearance**-2 - 1) - 1e-9), 1) if clearance > 0 else None


def together(verdicts: Sequence[Verdict], rate: float = 0.05) -> list[Verdict]:
    """The verdicts of claims that are judged together, with the false discovery rate kept at `rate`.

    A decided verdict is a discovery. Each has a p-value: the confidence at which its interval would just touch the end
    of the tolerance that it must stay clear of. Benjamini and Hochberg's rule says how many of the smallest p-values
    may stand; the others become inconclusive, and their note says that they were decided only when taken alone.
    One claim alone, or all claims decided, changes nothing.
    """
    chances = [chance(v.measured, v.tolerance) if v.verdict != "inconclusive" else 1.0 for v in verdicts]
    count, ordered = len(verdicts), sorted(chances)
    standing = max(
        (k for k in range(1, count + 1) if ordered[k - 1] <= rate * k / count + ROUNDING), default=0
    )
    bar = ordered[standing - 1] if standing else -1.0
    pairs = zip(verdicts, chances, strict=True)
    needed = rate * (standing + 1) / max(count, 1)  # what one more discovery would have to reach
    return [v if p <= bar or v.verdict == "inconclusive" else _withdrawn(v, count, needed) for v, p in pairs]


def chance(estimate: Estimate, tolerance: tuple[float, float]) -> float:
    """The p-value of a verdict: how often an interval would clear the tolerance's end by this much if truth lay on it.

    Two-sided, so that an interval at 95 % that just touches the end has 0.05. On each side of the value the error is
    taken as a t (or normal) distribution that has the end of the interval where it is.
    """
    from scipy.special import stdtr, stdtrit  # not at the top: listing the studies imports this module

    unit = float(stdtrit(estimate.freedom, (1 + estimate.level) / 2))
    return float(2 * stdtr(estimate.freedom, -unit * _clearance(estimate, tolerance)))


def _clearance(estimate: Estimate, tolerance: tuple[float, float]) -> float:
    """The room up to the ends of the tolerance that matter, in half-widths of the interval: above 1, it is decided."""
    return min((room / half if half > 0 else inf for half, room in _sides(estimate, tolerance)), default=inf)


def _withdrawn(verdict: Verdict, count: int, needed: float) -> Verdict:
    from scipy.special import stdtrit

    estimate = verdict.measured
    ask, have = (-float(stdtrit(estimate.freedom, p / 2)) for p in (needed, 1 - estimate.level))
    more = (ask / have / _clearance(estimate, verdict.tolerance)) ** 2 - 1
    said = f"It {verdict.verdict} when taken alone, but not clearly enough among the {count} claims judged together."
    seeds = max(ceil(verdict.seeds * more), 1)
    return replace(
        verdict, verdict="inconclusive", more_seeds=seeds, note=" ".join(filter(None, (verdict.note, said)))
    )


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
