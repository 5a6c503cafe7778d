"""Which conditions does a theorem need? Leaves one condition at a time, as far as the others allow, and measures the claims.

Along the field that takes a condition farthest without the others, points lie at equal ratios of the condition's margin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, inf
from typing import Any

import numpy as np

from lemmata.search.decide import SEARCH_SEEDS
from lemmata.search.problem import Problem, Room

SEEDS = 3
POINTS = 6
LOOKED = 40
"""Values of a field that are looked at, without a training."""


@dataclass(frozen=True)
class Need:
    """Whether a claim needs a condition.

    `word`: `needed`, `not needed`, `silent`, `not left` (no field leaves it alone).
    `factor`: the claim broke when the condition was missed by this factor; or held as far as this one.
    `along`: the field that was changed. `margins`: pairs of the condition's margin and the claim's.
    """

    claim: str
    condition: str
    word: str
    factor: float = 1.0
    along: str = ""
    margins: tuple[tuple[float, float], ...] = ()


def frontier(problem: Problem, start: Mapping[str, Any]) -> list[Need]:
    """Leave each condition of a point that is inside, one at a time."""
    found = []
    for name in [name for name in problem.room(start).of if name not in problem.dropped]:
        path = _path(problem, start, name)
        if path is None:
            found += [Need(claim.id, name, "not left") for claim in problem.claims]
            continue
        along, points = path
        seeds = range(SEARCH_SEEDS, SEARCH_SEEDS + max(SEEDS, problem.price.seeds))
        margins = problem.measure([values for values, _ in points], seeds)
        for column, claim in enumerate(problem.claims):
            pairs = [(far, float(row[column])) for (_, far), row in zip(points, margins, strict=True)]
            found.append(need(claim.id, name, along, pairs))
    return found


def need(claim: str, condition: str, along: str, pairs: Sequence[tuple[float, float]]) -> Need:
    """Read off pairs of margins whether the claim needs the condition. Pairs inside the condition show that it holds there."""
    rows = tuple(sorted(pairs, reverse=True))
    outside = [(far, own) for far, own in rows if far < 1 and not np.isnan(own)]
    if not outside:
        return Need(claim, condition, "silent", along=along, margins=rows)
    broken = next((far for far, own in outside if own < 0), None)
    if broken is not None:
        return Need(claim, condition, "needed", 1 / max(broken, 1e-300), along, rows)
    return Need(claim, condition, "not needed", 1 / max(outside[-1][0], 1e-300), along, rows)


def _path(
    problem: Problem, start: Mapping[str, Any], name: str
) -> tuple[str, list[tuple[dict[str, Any], float]]] | None:
    """The field that leaves a condition farthest while the others hold, and points along it with the condition's margin."""
    best: tuple[float, str, list[tuple[dict[str, Any], float]]] | None = None
    for one in problem.space:
        known: dict[Any, tuple[dict[str, Any], float]] = {}
        for unit in np.linspace(0, 1, LOOKED):
            values = {**start, one.name: one.value(unit)}
            room = problem.room(values)
            if name in room.of and room.of[name] < 0 and _others(problem, room, name) >= 0:
                known[values[one.name]] = (values, room.of[name])
        if known:
            rows = sorted(known.values(), key=lambda row: row[1], reverse=True)
            if best is None or rows[-1][1] < best[0]:
                best = (rows[-1][1], one.name, rows)
    if best is None:
        return None
    rows = best[2]
    wanted = np.linspace(rows[0][1], rows[-1][1], POINTS)
    chosen = sorted({int(np.argmin([abs(far - want) for _, far in rows])) for want in wanted})
    inside = [(dict(start), exp(min(problem.room(start).of[name], 700.0)))]
    return best[1], inside + [(rows[at][0], exp(max(rows[at][1], -700.0))) for at in chosen]


def _others(problem: Problem, room: Room, name: str) -> float:
    binding = [far for other, far in room.of.items() if other != name and other not in problem.dropped]
    return min(binding, default=inf)
