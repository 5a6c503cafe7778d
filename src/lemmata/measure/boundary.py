"""Boundary: the critical line of a two-axis sweep and its law, by one binomial model over all cells."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, inf, isfinite

import numpy as np
import xarray as xr

from lemmata.measure.binomial import Counts, Link, counted, informative, likelihood, profile
from lemmata.measure.columns import columns, logarithm
from lemmata.measure.estimate import Estimate, Unmeasurable, answering, needs
from lemmata.measure.exponent import PowerLaw, middle_of, spanned
from lemmata.measure.profile import drop_at, profile_interval, root
from lemmata.measure.simple import jackknife

REACH = 64.0  # exponents and log-constants farther than this from the fit count as infinite
SEPARATED = 1e-3  # a log-likelihood above minus this says that a line parts all successes from all failures
NO_BEND = "the runs do not tell how the boundary bends."
PARTED = "One line parts all successes from all failures: the interval is bounded by the grid."


@answering(PowerLaw.absent)
def boundary(
    success: xr.DataArray,
    threshold: str,
    over: str,
    exponent: float | None = None,
    at: float = 1.0,
    link: Link = "logit",
    paired: bool = False,
    level: float = 0.95,
) -> PowerLaw:
    """Return the critical value of the axis `threshold` as a function of the axis `over`, with its law.

    Success of every cell follows `link(p) = s * (log threshold - exponent * log over - log constant)`: one model for
    all cells, so that rows without a transition still say where it is not. Intervals are by profile likelihood. With an
    `exponent` given (the theory's), the constant is fitted at that exponent. `at` is the value of `over` at which the
    constant is read off; far from the grid, a free exponent makes it vague. `paired` says that cells of the same seed share
    their data: then an interval also reaches as far as leaving out one seed at a time tells it to. The exponent is
    measured locally too, by a line that breaks in the middle of the grid.
    """
    runs = columns(success, threshold, over)
    x, y = logarithm(runs.by[over], over) - np.log(at), logarithm(runs.by[threshold], threshold)
    for name, column in ((threshold, y), (over, x)):
        needs(np.ptp(column) > 0, f"a boundary needs at least two values of '{name}', and there is one.")
    model = _Model(
        _Runs(runs.values, x, y), columns(success, "seed").by["seed"] if paired else None, link, level
    )
    count, same = len(x), "succeeded" if runs.values.any() else "failed"
    needs(model.counts.mixed, f"all {count} runs {same}: the grid does not reach the boundary.")

    mid, wide, grade = x.mean(), float(np.ptp(x)), float(np.ptp(y) / np.ptp(x)) / 16
    flat = f"success does not change with '{threshold}', so there is no boundary in it."
    law = model.located(_Quantity(lambda x: x - mid, (_one,)), grade, flat)
    if exponent is None:
        constant = model.located(_Quantity(_one, (_same,)), grade * wide, flat)
    else:
        constant = model.located(_Quantity(_one, (), exponent), grade * wide, flat)
        constant = constant.noted(f"Fitted at the exponent {exponent:g}.")
    try:
        bend = model.located(_Quantity(lambda x: (x - mid) ** 2 / (2 * wide), (_same, _one)), grade, NO_BEND)
    except Unmeasurable as reason:
        bend = Estimate.absent(str(reason), count)
    law = replace(_localised(law, model, grade), seen=spanned(over, runs.by[over]))
    return PowerLaw(law, constant.map(_exp), bend)


def _localised(law: Estimate, model: "_Model", grade: float) -> Estimate:
    """Return the exponent with its local ones, below and above the middle of the grid."""
    try:
        middle = middle_of(model.runs.x)
        below, above = (lambda x: np.minimum(x - middle, 0.0)), (lambda x: np.maximum(x - middle, 0.0))
        lower = model.located(_Quantity(below, (above, _one)), grade, NO_BEND)
        upper = model.located(_Quantity(above, (below, _one)), grade, NO_BEND)
        drift = model.located(_Quantity(above, (_same, _one)), grade, NO_BEND)
    except Unmeasurable:
        return law
    return replace(law, parts=(lower, upper), drift=drift)


Column = Callable[[np.ndarray], np.ndarray]


def _one(x: np.ndarray) -> np.ndarray:
    return np.ones_like(x)


def _same(x: np.ndarray) -> np.ndarray:
    return x


@dataclass(frozen=True)
class _Quantity:
    """A number `v` of the boundary `y - exponent x = v along(x) + rest(x) @ nuisance`."""

    along: Column
    rest: tuple[Column, ...]
    exponent: float = 0.0

    def design(self, x: np.ndarray, y: np.ndarray, value: float | None = None) -> np.ndarray:
        """Return the regressors of success, with the number free or held at a value."""
        y, along, rest = y - self.exponent * x, self.along(x), [column(x) for column in self.rest]
        return np.stack([y, along, *rest] if value is None else [y - value * along, *rest], 1)


@dataclass(frozen=True)
class _Runs:
    """Success of runs, one entry each, at their places in log-log."""

    success: np.ndarray
    x: np.ndarray
    y: np.ndarray

    def counted(self, kept: np.ndarray | slice = slice(None)) -> tuple[Counts, np.ndarray, np.ndarray]:
        counts, (y, x) = counted(self.success[kept], self.y[kept], self.x[kept])
        return counts, x, y


@dataclass(frozen=True)
class _Model:
    """The binomial model of all runs; `seed` where runs of one seed share their data."""

    runs: _Runs
    seed: np.ndarray | None
    link: Link
    level: float

    @cached_property
    def counts(self) -> Counts:
        return self._places[0]

    @cached_property
    def _places(self) -> tuple[Counts, np.ndarray, np.ndarray]:
        return self.runs.counted()

    @cached_property
    def mark(self) -> float:
        """The drop of the log-likelihood at the ends of an interval."""
        counts, x, y = self._places
        design = np.stack([y, x - x.mean(), np.ones_like(x)], 1)
        eta = design @ likelihood(counts, design, link=self.link)[0]
        return drop_at(self.level, informative(counts, eta, self.link))

    def located(self, quantity: _Quantity, scale: float, otherwise: str) -> Estimate:
        """Return where the likelihood peaks in a quantity, and how far it stays near the peak."""
        counts, x, y = self._places
        design = quantity.design(x, y)
        needs(np.linalg.matrix_rank(design) == design.shape[1], otherwise)
        beta, peak = likelihood(counts, design, link=self.link)
        needs(abs(beta[0]) * np.ptp(y) > 1e-3 and abs(beta[1] / beta[0]) < REACH, otherwise)
        start = -beta[1] / beta[0]
        held = profile(counts, lambda v: quantity.design(x, y, v), link=self.link)
        low, high = profile_interval(lambda v: peak - held(v), start, scale, self.mark, REACH)
        parted = peak > -SEPARATED
        value = float(_middle(held, start, low, high) if parted else start)
        found = Estimate(value, low, high, len(self.runs.x), self.level, PARTED if parted else "")
        return found if self.seed is None else self._over_seeds(found, quantity)

    def _over_seeds(self, found: Estimate, quantity: _Quantity) -> Estimate:
        """Return the interval as wide as the seeds ask for, where that is wider."""
        again = jackknife(lambda kept: self._refitted(quantity, kept), np.asarray(self.seed), self.level)
        half = again.high - again.value if again.exists and isfinite(again.high) else inf
        return replace(
            found,
            low=min(found.low, found.value - half),
            high=max(found.high, found.value + half),
            freedom=again.freedom,
        )

    def _refitted(self, quantity: _Quantity, kept: np.ndarray) -> float:
        counts, x, y = self.runs.counted(kept)
        beta, _ = likelihood(counts, quantity.design(x, y), link=self.link)
        return float(-beta[1] / beta[0]) if beta[0] else inf


def _middle(held: Callable[[float], float], start: float, low: float, high: float) -> float:
    """Return the middle of the values that explain separated data perfectly."""

    def short(value: float) -> float:
        return -held(value) - 0.05

    if short(start) > 0 or not (isfinite(low) and isfinite(high)) or min(short(low), short(high)) <= 0:
        return start
    return (root(short, low, start, 1e-6) + root(short, start, high, 1e-6)) / 2


def _exp(value: float) -> float:
    return 0.0 if value == -inf else inf if value > 700 else exp(value)
