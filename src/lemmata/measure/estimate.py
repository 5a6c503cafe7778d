"""The one thing that every measure returns: a number with its interval, or the reason why there is none."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from math import inf, nan
from typing import Any, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Estimate:
    """A measured number with a confidence interval.

    `value`, `low`, `high`: the estimate and its interval at confidence `level` (ends may be infinite: a bound).
    `count`: how many independent units (seeds, runs, cells) stand behind it.
    `note`: what a reader must know about it, in one sentence ("interval bounded by the grid").
    `freedom`: the degrees of freedom behind the interval, where a t distribution made it.
    An estimate that could not be made has `value = nan` and says why in `note`.
    """

    value: float
    low: float
    high: float
    count: int = 0
    level: float = 0.95
    note: str = ""
    freedom: float = inf

    @property
    def exists(self) -> bool:
        return self.value == self.value

    def map(self, function: Callable[[float], float]) -> "Estimate":
        """The same estimate on another scale; the function must be monotone (`math.exp`, `lambda x: 1 - x`)."""
        if not self.exists:
            return self
        ends = sorted((function(self.low), function(self.high)))
        return replace(self, value=function(self.value), low=ends[0], high=ends[1])

    def noted(self, *sentences: str) -> "Estimate":
        """The same estimate with more to know about it."""
        return replace(self, note=" ".join(s for s in (self.note, *sentences) if s))

    @staticmethod
    def absent(reason: str, count: int = 0) -> "Estimate":
        """No number could be had, for this reason."""
        return Estimate(nan, nan, nan, count, note=reason)


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
