"""`lemmata refute`: looks for a training that meets a theorem's conditions and violates what it says.

Forecasts first where the study has them, then trainings; a violation is made simple and then tried on fresh seeds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from lemmata.figure import Claim
from lemmata.lab.pool import Pool
from lemmata.lab.spool import Spool
from lemmata.measure.estimate import Estimate
from lemmata.measure.margin import estimate_of, margin
from lemmata.search import decide
from lemmata.search.decide import Confirmation
from lemmata.search.engine import Budget, Trace, climb, search
from lemmata.search.price import Price, price
from lemmata.search.problem import OUTSIDE, Problem
from lemmata.search.shrink import resolver, shrunk
from lemmata.study import Study

FORECASTS = 160
"""Points that are looked at by the forecast before the first training."""

CANDIDATES = len(decide.SHARES)
CONFIRMING = 10
"""Fresh seeds of a candidate."""

LARGEST_CONSTANT = 10.0
"""The largest constant that an order-wise condition may hide before a refutation of it touches the theorem."""

PROBES = 300
"""Random points that are looked at to learn how much of the box is inside."""


@dataclass(frozen=True)
class Example:
    """A counter-example: its values, what `--set` takes to repeat it, conditions, and what fresh seeds said."""

    values: dict[str, Any]
    changes: dict[str, Any]
    conditions: dict[str, float]
    confirmation: Confirmation
    second: Confirmation | None = None


@dataclass(frozen=True)
class Outcome:
    """What a search says of one claim.

    `word`: `refuted`, `not refuted`, `nothing inside`, `not searchable`.
    `outside`: conditions that do not bind, because neither the figure nor any point of the box meets them.
    `share`: the part of the box that is inside the conditions; `bound`: at most this part of the inside violates (95 %).
    `smallest`, `where`: the smallest margin that was seen, and its point.
    """

    claim: str
    word: str
    points: int = 0
    trainings: int = 0
    share: float = 0.0
    smallest: float = float("nan")
    where: dict[str, Any] = field(default_factory=dict)
    silent: int = 0
    bound: float = 1.0
    price: Price | None = None
    constant: float = 1.0
    outside: tuple[str, ...] = ()
    example: Example | None = None
    tried: tuple[Confirmation, ...] = ()
    meaning: str = ""
    problem: Problem | None = None
    trace: Trace | None = None


class Land:
    """A problem as a search sees it. Seeds are the same at every point."""

    def __init__(self, problem: Problem):
        self.problem = problem
        self.size = len(problem.space)
        self.structural = tuple(i for i, one in enumerate(problem.space) if one.structural)
        self._rooms: dict[bytes, float] = {}
        self.seeds = tuple(range(decide.SEARCH_SEEDS, decide.SEARCH_SEEDS + problem.price.seeds))

    def snap(self, units: np.ndarray) -> np.ndarray:
        return self.problem.units(self.problem.at(units))

    def room(self, units: np.ndarray) -> float:
        key = units.tobytes()
        if key not in self._rooms:
            self._rooms[key] = self.problem.room(self.problem.at(units)).least
        return self._rooms[key]

    def measure(self, units: np.ndarray) -> np.ndarray:
        return self.problem.measure([self.problem.at(one) for one in units], self.seeds)


class Foretold(Land):
    """The same, measured by the forecast of the figure: no training."""

    def measure(self, units: np.ndarray) -> np.ndarray:
        made = self.problem.figure.forecast
        assert made is not None
        return np.array([self.problem.forecast(made, self.problem.at(one)) for one in units])


def groups(study: Study, claims: Sequence[Claim]) -> list[tuple[Price | None, list[Claim]]]:
    """Claims that one search serves: of one figure, with the same conditions, cells and axes."""
    priced = [(price(study, claim), claim) for claim in claims]

    def key(one: tuple[Price | None, Claim]) -> tuple[Any, ...]:
        cost, claim = one
        return (claim.figure, id(claim.conditions), id(claim.cells), repr(cost))

    found = []
    for _, own in groupby(sorted(priced, key=key), key):
        members = list(own)
        found.append((members[0][0], [claim for _, claim in members]))
    return sorted(found, key=lambda one: one[0].trainings if one[0] else 10**9)


def refute(
    study: Study,
    claims: Sequence[Claim],
    pool: Pool | Spool,
    budget: Budget,
    out: Path | None = None,
    constant: float = 1.0,
    seed: int = 0,
    shown: Callable[[str, int], None] = lambda name, points: None,
) -> list[Outcome]:
    """Search for counter-examples to some claims of a study. The claims share the budget of points or seconds."""
    parts = groups(study, claims)
    able = sum(one is not None for one, _ in parts)
    alarm = decide.ALARM / max(len(claims), 1)
    found = []
    for cost, own in parts:
        if cost is None:
            found += [Outcome(claim.id, "not searchable") for claim in own]
            continue
        name = own[0].id if len(own) == 1 else f"{own[0].figure}-{own[0].id}"
        folder = (out or Path("runs") / study.id / "refute") / name
        problem = Problem(study, own, cost, folder, pool, constant)
        mine = Budget(budget.points, budget.seconds / max(able, 1))
        found += _searched(problem, mine, alarm, seed, lambda points, name=name: shown(name, points))
    found = [_with_large_constants(study, one, pool, budget, out, seed) for one in found]
    order = {claim.id: place for place, claim in enumerate(claims)}
    return sorted(found, key=lambda one: order[one.claim])


def _with_large_constants(
    study: Study, outcome: Outcome, pool: Pool | Spool, budget: Budget, out: Path | None, seed: int
) -> Outcome:
    """Search again with hidden constants of 10 where a refutation may be due to the constant 1."""
    problem, example = outcome.problem, outcome.example
    if (
        problem is None
        or example is None
        or not outcome.meaning.startswith("With hidden")
        or outcome.constant != 1.0
    ):
        return outcome
    claim = study.claim(outcome.claim)
    again = Budget(min(budget.points, outcome.points), budget.seconds)
    (other,) = refute(study, [claim], pool, again, out, LARGEST_CONSTANT, seed)
    word = {
        "refuted": "With them another point refutes the claim all the same, so that no constant of that size mends it.",
        "not refuted": f"With them {other.points} points do not refute it: this refutes the lab's constant, not the theorem.",
    }.get(
        other.word,
        "With them no point of the box is inside: this refutes the lab's constant, not the theorem.",
    )
    return replace(outcome, meaning=f"{outcome.meaning} {word}")


def _searched(
    problem: Problem, budget: Budget, alarm: float, seed: int, shown: Callable[[int], None]
) -> list[Outcome]:
    """Search one problem for all of its claims."""
    land = Land(problem)
    rng = np.random.default_rng([seed, 2])
    share, dropped = _inside(problem, land, rng)
    if dropped is None:
        said = f"No point of the box meets all conditions: {_forbidding(problem, land, rng)}."
        return [Outcome(claim.id, "nothing inside", price=problem.price, constant=problem.constant, meaning=said,
                        problem=problem) for claim in problem.claims]  # fmt: skip
    if dropped:
        problem.dropped = dropped
        land = Land(problem)
        share = _share(land, np.random.default_rng([seed, 2]))
    given = _start(problem, land)
    if problem.figure.forecast is not None:
        given += _foretold(problem, seed)
    trace = search(land, len(problem.claims), budget, seed, given, shown)
    return [_outcome(problem, land, trace, number, share, alarm) for number in range(len(problem.claims))]


def _start(problem: Problem, land: Land) -> list[np.ndarray]:
    """The figure's own point, where it is inside."""
    units = problem.units(problem.start)
    return [units] if land.room(units) >= 0 else []


def _share(land: Land, rng: np.random.Generator) -> float:
    """The part of the box that is inside the conditions."""
    return float(np.mean([land.room(land.snap(rng.random(land.size))) >= 0 for _ in range(PROBES)]))


def _inside(problem: Problem, land: Land, rng: np.random.Generator) -> tuple[float, frozenset[str] | None]:
    """The part of the box that is inside; and which conditions must be dropped so that there is any.

    A condition is dropped if neither the figure's own point nor any random point meets it: the figure publishes its verdict
    outside of it. None if dropping them does not help.
    """
    share = _share(land, rng)
    if share > 0 or climb(land, rng) is not None:
        return share, frozenset()
    rooms = [problem.room(problem.at(rng.random(land.size))) for _ in range(100)] + [
        problem.room(problem.start)
    ]
    ever: dict[str, float] = {}
    for room in rooms:
        for name, far in room.of.items():
            ever[name] = max(ever.get(name, OUTSIDE), far)
    at_start = problem.room(problem.start).of
    dropped = frozenset(name for name in ever if at_start.get(name, OUTSIDE) < 0)
    problem.dropped = dropped
    without = Land(problem)
    possible = bool(dropped) and (_share(without, rng) > 0 or climb(without, rng) is not None)
    problem.dropped = frozenset()
    return 0.0, dropped if possible else None


def _forbidding(problem: Problem, land: Land, rng: np.random.Generator) -> str:
    """Which conditions forbid it: those that the point nearest to the inside misses."""
    best = max(
        (problem.room(problem.at(rng.random(land.size))) for _ in range(300)), key=lambda room: room.least
    )
    missed = [name for name, far in best.of.items() if far < 0]
    return "together, " + " and ".join(missed) if missed else "the claim speaks of no cell there"


def _foretold(problem: Problem, seed: int) -> list[np.ndarray]:
    """The points that the forecast calls worst, some for every claim, far from each other."""
    trace = search(Foretold(problem), len(problem.claims), Budget(FORECASTS, 30.0), seed)
    chosen: list[np.ndarray] = []
    for claim in range(len(problem.claims)):
        for at in trace.worst(claim)[:40]:
            units = trace.units[at]
            if all(np.abs(units - one).max() > 0.05 for one in chosen) and len(chosen) < 6 * (claim + 1):
                chosen.append(units)
    return chosen


def _outcome(problem: Problem, land: Land, trace: Trace, number: int, share: float, alarm: float) -> Outcome:
    """What the points say of one claim: shrink and confirm the worst ones where they violate it."""
    claim, own = problem.claims[number], trace.margins[:, number] if len(trace.units) else np.empty(0)
    order = trace.worst(number)
    smallest = float(own[order[0]]) if len(order) else float("nan")
    random = [at for at, origin in enumerate(trace.origins) if origin == "random" and not np.isnan(own[at])]
    clean = not any(own[at] < 0 for at in random)
    outcome = Outcome(
        claim.id, "not refuted", len(trace.units), problem.trainings, share, smallest,
        problem.at(trace.units[order[0]]) if len(order) else {}, int(np.isnan(own).sum()),
        decide.at_most(len(random)) if clean and trace.uniform else 1.0,
        problem.price, problem.constant, tuple(sorted(problem.dropped)), problem=problem, trace=trace,
    )  # fmt: skip
    tried: list[Confirmation] = []
    for place, at in enumerate(candidates(trace, number)):
        values = _shrunk(problem, problem.at(trace.units[at]), number)
        level = alarm * decide.SHARES[place]
        confirmation = confirm(problem, values, number, level, place)
        tried.append(confirmation)
        if confirmation.refuted:
            second = _by_second_simulator(problem, values, number, level, place)
            if second is None or second.refuted:
                example = Example(
                    values, problem.changes(values), dict(problem.room(values).of), confirmation, second
                )
                said = _meaning(problem, values)
                return replace(outcome, word="refuted", example=example, tried=tuple(tried), meaning=said,
                               trainings=problem.trainings)  # fmt: skip
    return replace(outcome, tried=tuple(tried), trainings=problem.trainings)


def candidates(trace: Trace, claim: int) -> list[int]:
    """The places of the worst violating points, far from each other."""
    found: list[int] = []
    for at in trace.worst(claim):
        if trace.margins[at, claim] >= 0 or len(found) == CANDIDATES:
            break
        if all(np.abs(trace.units[at] - trace.units[other]).max() > 0.05 for other in found):
            found.append(int(at))
    return found


def _shrunk(problem: Problem, values: dict[str, Any], number: int) -> dict[str, Any]:
    seeds = tuple(range(decide.SHRINK_SEEDS, decide.SHRINK_SEEDS + max(3, problem.price.seeds)))

    made = problem.figure.forecast

    def inside(new: Any) -> bool:
        return problem.room(new).least >= 0

    def violated(new: Any) -> bool:
        if made is not None and problem.forecast(made, new)[number] > 0:
            return False  # a training would most likely say the same
        results = problem.results([new], seeds)[0]
        singles = margins_of_seeds(problem.claims[number], results) if results is not None else np.empty(0)
        known = singles[~np.isnan(singles)]
        return bool(len(known) and (known < 0).all())

    return shrunk(values, problem.start, inside, violated, resolver(problem.space, inside))


def confirm(problem: Problem, values: dict[str, Any], number: int, level: float, place: int) -> Confirmation:
    """Try a candidate on a block of fresh seeds of its own."""
    claim = problem.claims[number]
    first = decide.CONFIRM_SEEDS + place * decide.BLOCK
    results = problem.results([values], range(first, first + CONFIRMING))[0]
    if results is None:
        return Confirmation(False, 0, 0, CONFIRMING, 1.0, float("nan"))
    singles, estimate = margins_of_seeds(claim, results), estimate_of(claim, results)
    if estimate is None:
        delta = 1 - claim.holds.low if claim.holds.kind == "probability" else decide.DELTA
        return decide.of_shares(singles, level, delta)
    value, half = _distance(claim, estimate)
    return decide.of_estimate(value, half, estimate.freedom, singles, level)


def margins_of_seeds(claim: Claim, results: Any) -> np.ndarray:
    """The margin of every single seed; NaN where it is silent. Where one seed gives no estimate, groups of two or three do."""
    whole = margin(claim, results)
    if "seed" in whole.dims:
        values = whole.transpose("seed", ...).values.reshape(whole.sizes["seed"], -1)
        known = np.where(np.isnan(values), np.inf, values).min(1)
        return np.where(np.isnan(values).all(1), np.nan, known)
    count = results.sizes.get("seed", 1)
    for size in (1, 2, 3):
        parts = [results.isel(seed=slice(i, i + size)) for i in range(0, count - size + 1, size)]
        found = np.array([float(margin(claim, part)) for part in parts])
        if not np.isnan(found).all():
            return found
    return np.full(count, np.nan)


def _distance(claim: Claim, estimate: Estimate) -> tuple[float, float]:
    """How far an estimate lies inside its tolerance, and the half-width of its interval on the side of that end."""
    low, high = claim.holds.tolerance
    below, above = estimate.value - low, high - estimate.value
    if below <= above:
        return below, estimate.high - estimate.value
    return above, estimate.value - estimate.low


def _by_second_simulator(
    problem: Problem, values: dict[str, Any], number: int, level: float, place: int
) -> Confirmation | None:
    """The same candidate in float64 and by another simulator of the study; None where the study has neither."""
    other = problem.other_numerics(values)
    return confirm(problem, {**values, **other}, number, level, place) if other else None


def _meaning(problem: Problem, values: dict[str, Any]) -> str:
    """What a refutation refutes: the theorem, or the constant that the lab put where the theorem hides one."""
    if problem.dropped:
        return (
            "The point misses conditions that the figure misses too, so that it does not touch the theorem."
        )
    looked = [
        (one.name, one.margin)
        for trial in problem.trials(values)
        for one in problem.looked(trial)
        if one.holds is None
    ]
    if not looked:
        return "No condition hides a constant."
    tight = dict.fromkeys(f"{name} (margin {far:.3g})" for name, far in looked if far < LARGEST_CONSTANT)
    if tight:
        return f"With hidden constants of {LARGEST_CONSTANT:g} the point is outside: {', '.join(tight)}."
    return f"The point is inside with hidden constants of {LARGEST_CONSTANT:g}, too."
