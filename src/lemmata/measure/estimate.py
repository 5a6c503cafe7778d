"""The one thing that every measure returns: a number with its interval, or the reason why there is none."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from html import escape
from math import exp, hypot, inf, isfinite, log, nan
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


@dataclass(frozen=True, repr=False)
class Estimate:
    """A measured number with a confidence interval.

    `value`, `low`, `high`: the estimate and its interval at confidence `level` (ends may be infinite: a bound).
    `count`: how many independent units (seeds, runs, cells) stand behind it.
    `note`: what a reader must know about it, in one sentence ("interval bounded by the grid").
    `freedom`: the degrees of freedom behind the interval, where a t distribution made it.
    `seen`: the range in which it was seen, in words ("samples 64 to 400").
    `parts`: a law measured locally, in the lower and the upper part of that range, and `drift`: upper minus lower.
    An estimate that could not be made has `value = nan` and says why in `note`.
    """

    value: float
    low: float
    high: float
    count: int = 0
    level: float = 0.95
    note: str = ""
    freedom: float = inf
    seen: str = ""
    parts: "tuple[Estimate, ...]" = ()
    drift: "Estimate | None" = None

    @property
    def exists(self) -> bool:
        return self.value == self.value

    @property
    def exact(self) -> bool:
        """There is no interval around it: a number that no draw of seeds would change."""
        return self.exists and self.low == self.high

    def map(self, function: Callable[[float], float]) -> "Estimate":
        """Return the same estimate on another scale; the function must be monotone (`math.exp`, `lambda x: 1 - x`)."""
        if not self.exists:
            return self
        ends = sorted((function(self.low), function(self.high)))
        parts = tuple(part.map(function) for part in self.parts)
        drift = self.drift
        if drift is not None and drift.exists and drift.value:
            scale = (parts[1].value - parts[0].value) / drift.value
            drift = drift.map(lambda change: change * scale)
        return replace(self, value=function(self.value), low=ends[0], high=ends[1], parts=parts, drift=drift)

    def noted(self, *sentences: str) -> "Estimate":
        """Return the same estimate with more to know about it."""
        return replace(self, note=" ".join(s for s in (self.note, *sentences) if s))

    def minus(self, other: "Estimate") -> "Estimate":
        """Return the difference of two independent estimates; each end takes the errors that lead there, in quadrature.

        >>> Estimate(3.0, 0.0, 5.0).minus(Estimate(1.0, -3.0, 2.0))
        2 [-1.16, 6.47]
        """
        if not (self.exists and other.exists):
            return Estimate.absent(self.note if not self.exists else other.note)
        value = self.value - other.value
        low = value - hypot(self.value - self.low, other.high - other.value)
        high = value + hypot(self.high - self.value, other.value - other.low)
        count, freedom = self.count + other.count, min(self.freedom, other.freedom)
        return Estimate(value, low, high, count, self.level, "", freedom, self.seen)

    def over(self, other: "Estimate") -> "Estimate":
        """Return the ratio of two independent positive estimates: the difference of their logarithms, taken back.

        >>> Estimate(8.0, 4.0, 16.0).over(Estimate(2.0, 2.0, 2.0))
        4 [2, 8]
        """
        if not all(0 < one.value < inf for one in (self, other) if one.exists):
            return Estimate.absent("a ratio is taken of positive numbers only.")
        return self.map(_log).minus(other.map(_log)).map(_exp)

    @staticmethod
    def certain(value: float, count: int = 0, note: str = "") -> "Estimate":
        """Return a number without an interval: the worst of all runs, a deterministic computation."""
        return Estimate(value, value, value, count, note=note)

    @staticmethod
    def absent(reason: str, count: int = 0) -> "Estimate":
        """Make an estimate without a number, for this reason."""
        return Estimate(nan, nan, nan, count, note=reason)

    def __repr__(self) -> str:
        """Return the number and its interval in four digits: `-0.435 [-0.484, -0.393]`."""
        if not self.exists:
            return f"none ({self.note})" if self.note else "none"
        where = f" over {self.seen}" if self.seen else ""
        return f"{self.value:.3g}{where}" if self.exact else f"{self.value:.3g} {self.interval}{where}"

    @property
    def interval(self) -> str:
        return f"[{self.low:.3g}, {self.high:.3g}]"

    def _repr_html_(self) -> str:
        small = f"<div style='color: #666; font-size: 0.85em'>{escape(self.note)}</div>" if self.note else ""
        return f"<span>{escape(repr(replace(self, note='')))}</span>{small}"


class Unmeasurable(ValueError):
    """The results do not hold what a measure needs; the message is one sentence fit to stand beside a verdict."""


def needs(condition: Any, sentence: str) -> None:
    """Give up on a measure, with this sentence, unless the condition is met."""
    if not condition:
        raise Unmeasurable(sentence)


def answering(
    absent: Callable[[str], Answer],
) -> Callable[[Callable[Arguments, Answer]], Callable[Arguments, Answer]]:
    """Decorates a measure: where it gives up, it answers `absent(reason)` instead of raising."""

    def decorate(measure: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
        @wraps(measure)
        def measured(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
            try:
                return measure(*args, **kwargs)
            except Unmeasurable as reason:
                return absent(str(reason))

        return measured

    return decorate


def _log(value: float) -> float:
    return log(value) if value > 0 and isfinite(value) else inf if value > 0 else -inf


def _exp(value: float) -> float:
    return 0.0 if value == -inf else inf if value > 700 else exp(value)
