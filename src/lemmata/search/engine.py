"""Proposes points of a box where a claim may break: at random, at the edge of the conditions, and near the worst points so far.

Proposals are a function of what was measured before and of a seed. A search that is repeated proposes the same points, so that
one that was killed goes on where its stored measurements end.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

BATCH = 20
"""Points that are measured together."""

TRIES = 1500
"""Random points that are looked at before inside points are sought by a walk."""

STEPS = 12
"""Halvings of a bisection to the edge of the conditions."""

Origin = str
"""`random`, `edge`, `guided` or `given`."""


@runtime_checkable
class Landscape(Protocol):
    """What a search needs to know: a box of `size` numbers between 0 and 1, with conditions that cost no training.

    `structural`: coordinates that share a value within a batch, because another value takes another program.
    """

    size: int
    structural: tuple[int, ...]

    def snap(self, units: np.ndarray) -> np.ndarray: ...
    def room(self, units: np.ndarray) -> float: ...
    def measure(self, units: np.ndarray) -> np.ndarray: ...


@dataclass
class Trace:
    """What a search has measured: points, the margin of each claim at each (NaN: silent), where each point came from.

    `inside`: the share of random points that met the conditions; None before any was drawn.
    `uniform`: whether the random points are independent draws from the inside, not steps of a walk.
    """

    units: np.ndarray
    margins: np.ndarray
    origins: list[Origin] = field(default_factory=list)
    drawn: int = 0
    met: int = 0
    uniform: bool = True

    @property
    def inside(self) -> float | None:
        return self.met / self.drawn if self.drawn else None

    def worst(self, claim: int) -> np.ndarray:
        """The places of all points with a number, the smallest margin first."""
        known = np.flatnonzero(~np.isnan(self.margins[:, claim]))
        return known[np.argsort(self.margins[known, claim], kind="stable")]


@dataclass(frozen=True)
class Budget:
    """When a search ends: after so many points, or seconds, whichever comes first."""

    points: float = float("inf")
    seconds: float = float("inf")


def search(
    land: Landscape,
    claims: int,
    budget: Budget,
    seed: int = 0,
    given: Sequence[np.ndarray] = (),
    shown: Callable[[int], None] = lambda points: None,
    batch: int = BATCH,
) -> Trace:
    """Measure points until the budget is spent.

    `given`: points that are measured first.
    `shown`: called with the number of measured points.
    """
    begun = time.monotonic()
    trace = Trace(np.empty((0, land.size)), np.empty((0, claims)))
    known: set[bytes] = set()
    guides = [_Guide(land, claim, np.random.default_rng([seed, 1, claim])) for claim in range(claims)]
    number = 0
    first = list(given)
    while True:
        left = int(min(batch, budget.points - len(trace.units)))
        if left <= 0 or time.monotonic() - begun > budget.seconds:
            return trace
        rng = np.random.default_rng([seed, 0, number])
        guide = guides[number % claims]
        if first:
            proposed = [(land.snap(units), "given") for units in first[:left]]
            first = first[left:]
        elif not land.size:
            return trace  # there is nothing to vary
        else:
            proposed = _proposals(land, trace, guide, rng, left, number)
        number += 1
        fresh = []
        for units, origin in proposed:
            if units.tobytes() not in known:
                known.add(units.tobytes())
                fresh.append((units, origin))
        if not fresh:
            if number > 200 or (number > 3 and trace.drawn and not trace.met):
                return trace
            continue
        units = np.array([one for one, _ in fresh])
        margins = land.measure(units)
        trace.units = np.concatenate([trace.units, units])
        trace.margins = np.concatenate([trace.margins, margins])
        trace.origins += [origin for _, origin in fresh]
        for other in guides:
            other.hear(trace)
        shown(len(trace.units))


def _proposals(
    land: Landscape, trace: Trace, guide: "_Guide", rng: np.random.Generator, count: int, number: int
) -> list[tuple[np.ndarray, Origin]]:
    """Half random, half guided. Of the random ones every other is pushed to the edge of the conditions.

    Where values take programs of their own, whole batches alternate, so that each batch needs one program.
    """
    alone = bool(land.structural)
    guided: list[tuple[np.ndarray, Origin]] = []
    if number and (number % 2 or not alone):
        guided = [(units, "guided") for units in guide.ask(count if alone else count // 2, trace)]
    if guided and alone:
        return guided
    found: list[tuple[np.ndarray, Origin]] = []
    like: np.ndarray | None = None
    while len(found) < count - len(guided):
        units = _inside(land, trace, rng, like)
        if units is None:
            break
        if alone and like is None:
            like = units
        edge = len(found) % 2 == 1
        found.append((land.snap(_pushed(land, units, rng)), "edge") if edge else (units, "random"))
    return guided + found


def _inside(
    land: Landscape, trace: Trace, rng: np.random.Generator, like: np.ndarray | None
) -> np.ndarray | None:
    """A point that meets the conditions: the first of some random ones, or a step of a walk from a known one."""
    for _ in range(TRIES if trace.met or not trace.drawn else TRIES // 10):
        units = rng.random(land.size)
        if like is not None:
            units[list(land.structural)] = like[list(land.structural)]
        units = land.snap(units)
        met = land.room(units) >= 0
        if like is None:
            trace.drawn += 1
            trace.met += met
        if met:
            return units
    starts = [one for one in trace.units if land.room(one) >= 0]
    if like is not None:
        starts = [
            one for one in starts if np.array_equal(one[list(land.structural)], like[list(land.structural)])
        ] or [like]
    if not starts:
        climbed = climb(land, rng)
        if climbed is None:
            return None
        starts = [climbed]
    trace.uniform = False
    return _walked(land, starts[rng.integers(len(starts))], rng)  # fmt: skip


def _walked(land: Landscape, start: np.ndarray, rng: np.random.Generator, steps: int = 4) -> np.ndarray:
    """Some steps of hit-and-run: a random direction, both ends of the inside along it, a point between them."""
    units = start
    for _ in range(steps):
        way = _direction(land, rng)
        ahead, back = _farthest(land, units, way), _farthest(land, units, -way)
        there = land.snap(np.clip(units + rng.uniform(-back, ahead) * way, 0, 1))
        units = there if land.room(there) >= 0 else units
    return units


def climb(land: Landscape, rng: np.random.Generator, tries: int = 600) -> np.ndarray | None:
    """A point that meets the conditions, by climbing the smallest margin from the best of some random points."""
    points = [land.snap(rng.random(land.size)) for _ in range(tries // 4)]
    rooms = [land.room(one) for one in points]
    best, room = points[int(np.argmax(rooms))], max(rooms)
    step = 0.3
    for _ in range(tries):
        if room >= 0:
            return best
        moved = rng.random(land.size) < max(0.3, 1 / land.size)
        there = land.snap(np.clip(best + np.where(moved, rng.normal(0, step, land.size), 0), 0, 1))
        new = land.room(there)
        step = min(step * 1.5, 0.5) if new > room else max(step * 0.97, 0.01)
        if new > room:
            best, room = there, new
    return None


def _pushed(land: Landscape, units: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The last point inside the conditions along a random direction. Costs no training."""
    way = _direction(land, rng)
    return np.clip(units + _farthest(land, units, way) * way, 0, 1)


def _direction(land: Landscape, rng: np.random.Generator) -> np.ndarray:
    way = rng.normal(size=land.size)
    way[list(land.structural)] = 0.0
    return way / max(float(np.abs(way).max()), 1e-12)


def _farthest(land: Landscape, units: np.ndarray, way: np.ndarray) -> float:
    """How far the conditions hold along a direction, at most 1, by bisection."""

    def holds(share: float) -> bool:
        return land.room(land.snap(np.clip(units + share * way, 0, 1))) >= 0

    low, high = 0.0, 1.0
    if holds(high):
        return high
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


class _Guide:
    """Follows the margin of one claim downhill: CMA-ES with restarts, or no proposals where `cma` is not installed.

    Points outside the conditions are told to it with a penalty and cost no training.
    """

    def __init__(self, land: Landscape, claim: int, rng: np.random.Generator):
        self._land, self._claim, self._rng = land, claim, rng
        self._strategy: Any = None
        self._asked: list[np.ndarray] = []
        self._own: list[np.ndarray] = []
        self._outside: list[tuple[np.ndarray, float]] = []
        self._begun: list[np.ndarray] = []
        self._like = np.zeros(land.size)
        self._best = np.inf
        self._idle = 0

    @property
    def _free(self) -> list[int]:
        return [i for i in range(self._land.size) if i not in self._land.structural]

    def ask(self, count: int, trace: Trace) -> list[np.ndarray]:
        """Points inside the conditions to measure next."""
        if self._strategy is None or self._strategy.stop() or self._idle >= 4:
            self._begin(trace, count)
        if self._strategy is None:
            return []
        self._asked, self._own, self._outside = [], [], []
        for _ in range(6):
            for own in self._strategy.ask(count):
                units = self._whole(own)
                room = self._land.room(units)
                if room >= 0 and len(self._own) < count:
                    self._own.append(own)
                    self._asked.append(units)
                elif room < 0 and len(self._outside) < count:
                    self._outside.append((own, room))
            if len(self._own) >= count:
                break
        return list(self._asked)

    def hear(self, trace: Trace) -> None:
        """Learn what came out at the points that were asked for."""
        if self._strategy is None or not self._own:
            return
        found = {
            units.tobytes(): row[self._claim] for units, row in zip(trace.units, trace.margins, strict=True)
        }
        values = [float(found.get(units.tobytes(), np.nan)) for units in self._asked]
        finite = [value for value in values if np.isfinite(value)]
        top = max(finite, default=0.0)
        told = [
            value if np.isfinite(value) else (-1e6 if value == -np.inf else top + 1e-3) for value in values
        ]
        penalty = [(own, top + 1.0 - room) for own, room in self._outside[: max(len(told), 2)]]
        solutions = self._own + [own for own, _ in penalty]
        if 2 * len(solutions) >= self._strategy.popsize:  # CMA-ES ranks at least half a generation
            self._strategy.tell(solutions, told + [value for _, value in penalty])
        best = min(finite, default=np.inf)
        scale = np.nanstd([value for value in trace.margins[:, self._claim] if np.isfinite(value)] or [0.0])
        self._idle = 0 if best < self._best - 1e-2 * scale else self._idle + 1
        self._best = min(best, self._best)
        self._own = []  # fmt: skip

    def _begin(self, trace: Trace, count: int) -> None:
        """Start from the worst point that lies far from all earlier starts."""
        try:
            import cma
        except ImportError:
            return
        self._strategy = None
        free = self._free
        order = trace.worst(self._claim)
        far = [at for at in order if all(np.abs(trace.units[at] - one).max() > 0.25 for one in self._begun)]
        if not len(order) or not free:
            return
        start = trace.units[(far or list(order))[0]]
        self._begun.append(start)
        self._like, self._best, self._idle = start.copy(), np.inf, 0
        rng, one = self._rng, len(free) == 1
        own = np.append(start[free], 0.5) if one else start[free]  # CMA-ES takes two numbers or more
        options = {"bounds": [0, 1], "popsize": max(count, 4), "verbose": -9, "seed": np.nan,
                   "randn": lambda *shape: rng.standard_normal(shape)}  # fmt: skip
        self._strategy = cma.CMAEvolutionStrategy(np.clip(own, 0.01, 0.99), 0.2, options)

    def _whole(self, own: np.ndarray) -> np.ndarray:
        units = self._like.copy()
        units[self._free] = np.clip(own, 0, 1)[: len(self._free)]
        return self._land.snap(units)
