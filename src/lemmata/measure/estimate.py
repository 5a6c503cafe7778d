"""The one thing that every measure returns: a number with its interval, or the reason why there is none."""

from dataclasses import dataclass
from math import nan


@dataclass(frozen=True)
class Estimate:
    """A measured number with a confidence interval.

    `value`, `low`, `high`: the estimate and its interval at confidence `level` (ends may be infinite: a bound).
    `count`: how many independent units (seeds, runs, cells) stand behind it.
    `note`: what a reader must know about it, in one sentence ("interval bounded by the grid").
    An estimate that could not be made has `value = nan` and says why in `note`.
    """

    value: float
    low: float
    high: float
    count: int = 0
    level: float = 0.95
    note: str = ""

    @property
    def exists(self) -> bool:
        return self.value == self.value

    @staticmethod
    def absent(reason: str, count: int = 0) -> "Estimate":
        """No number could be had, for this reason."""
        return Estimate(nan, nan, nan, count, note=reason)
