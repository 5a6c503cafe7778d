"""From an estimate and a tolerance to a verdict, alone and among the other claims of a study.

Light: listing the studies imports this module, so nothing heavy is imported at its top.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from math import ceil, inf, isclose, isfinite
from typing import Literal, NamedTuple

from lemmata.measure.estimate import Estimate
from lemmata.notebook import Sheet, Shown

ROUNDING = 1e-12
DRIFTING = 0.05  # the p-value from which a law is said to drift along its grid
DOUBTED = 0.1  # the p-value from which a drift out of the tolerance is doubt enough to withhold `holds`
MOST_SEEDS = 1000  # what an estimate of missing seeds may ask for
VACUOUS = 100.0  # the factor from which a bound says nothing about what was measured
CONSTANTS = (0.1, 1.0, 10.0)
"""Values of the constants that order-wise conditions hide. A condition is met where its margin is at least this."""
Decision = Literal["holds", "fails", "inconclusive"]
Scope = Literal["inside", "partly", "outside", "unchecked"]
"""`unchecked`: the claim names no conditions."""


class Part(NamedTuple):
    """One part of a claim with several."""

    name: str
    measured: Estimate
    verdict: Decision


@dataclass(frozen=True)
class Condition:
    """One condition of a theorem at the settings of a run.

    `margin` is how far it is met (above 1) or missed (below 1), as the ratio of the two sides with hidden constants
    set to 1. `holds` is None where the statement is order-wise and leaves its constant open.
    """

    name: str
    holds: bool | None
    margin: float

    @staticmethod
    def theta(name: str, value: float, low: float = 0.1, high: float = 10.0) -> "Condition":
        """Make the condition `value = Theta(1)`, with two sides. Its name says the constants.

        >>> Condition.theta("tau = Theta(1)", 0.05).name
        'tau = Theta(1), from 0.1 to 10'
        >>> [Condition.theta("tau = Theta(1)", tau).met for tau in (0.05, 0.5, 5, 50)]
        [False, True, True, False]
        """
        margin = min(value / low, high / value) if value > 0 else 0.0
        return Condition(f"{name}, from {low:g} to {high:g}", None, margin)

    @property
    def met(self) -> bool:
        """Whether it holds, a hidden constant set to 1."""
        return self.met_with(1.0)

    def met_with(self, constant: float) -> bool:
        """Return whether it holds, with this hidden constant where it has one."""
        return bool(self.margin >= constant) if self.holds is None else self.holds


@dataclass(frozen=True)
class ConditionCount:
    """One condition of a theorem over the cells that a claim's number comes from: in how many it is met, and the worst
    margin. `holds` is None where the statement leaves its constant open and no cell refutes it outright."""

    name: str
    met: int
    cells: int
    worst_margin: float
    holds: bool | None

    @property
    def margin(self) -> float:
        return self.worst_margin

    @staticmethod
    def of(cells: Iterable[Iterable[Condition]]) -> "tuple[ConditionCount, ...]":
        """Return the conditions of many cells, counted by name in the order of their first appearance."""
        named: dict[str, list[Condition]] = {}
        for conditions in cells:
            for condition in conditions:
                named.setdefault(condition.name, []).append(condition)
        return tuple(ConditionCount._counted(name, found) for name, found in named.items())

    @staticmethod
    def _counted(name: str, found: Sequence[Condition]) -> "ConditionCount":
        said = [c.holds for c in found]
        holds = False if False in said else None if None in said else True
        return ConditionCount(
            name, sum(c.met for c in found), len(found), min(float(c.margin) for c in found), holds
        )


@dataclass(frozen=True, repr=False)
class Verdict:
    """What the lab has to say about one claim, and whether the theorem's own conditions were met.

    `value` is the predicted number where there is one, `rivals` what others predict. `conditions` are counted over the
    `cells` (grid points) that the number comes from; `inside` says that only cells that meet them all were judged.
    `left_out` counts runs by status that do not count for the claim. `violations` is the share of runs that break a for-all
    claim, `looseness` how far a bound lies from what was measured, `seen` the range of the measurement, both in words.
    `source`, `where`, `proxy`, `headline`: where the claim comes from, and whether it is one of the study's main results.
    `inside_cells`: how many of the cells meet all conditions, with each of the hidden `CONSTANTS`; None without conditions.
    `parts`: the estimates of a claim with several parts, each with its own decision.
    `inner`: the verdict in the cells inside alone, where only some are.
    `scale`: that of the results; `smoke` gives no verdicts.
    `of_family`: how many claims of its family were judged together, and how many there are.
    `not_computable`: why no finite run can decide the claim.
    `seeds` is how many seeds the results hold; `more_seeds` estimates how many more would decide an inconclusive verdict;
    None where seeds would not, or where this cannot be estimated. `reading`, `draw` and `looks`: under which reading of the
    paper, on which draw of the judging seeds, after how many looks at them.
    """

    id: str
    statement: str
    verdict: Decision
    predicted: str
    measured: Estimate
    tolerance: tuple[float, float]
    conditions: tuple[ConditionCount, ...] = ()
    note: str = ""
    seeds: int = 0
    more_seeds: int | None = None
    kind: str = "law"
    value: float | None = None
    rivals: Mapping[str, float] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    violations: Estimate | None = None
    looseness: str = ""
    seen: str = ""
    cells: int = 0
    inside: bool = False
    reading: str = ""
    draw: int = 0
    looks: int = 1
    source: str = "ours"
    where: str = ""
    proxy: str = ""
    headline: bool = False
    inside_cells: tuple[int, ...] | None = None
    parts: tuple[Part, ...] = ()
    inner: "Verdict | None" = None
    of_family: tuple[int, int] = (0, 0)
    not_computable: str = ""
    scale: str = ""

    @property
    def scope(self) -> Scope:
        """Where the claim was judged: how many of its cells meet the theorem's conditions, hidden constants set to 1."""
        if self.inside_cells is None:
            return "unchecked"
        inside = self.inside_cells[CONSTANTS.index(1.0)]
        return "inside" if inside == self.cells > 0 else "partly" if inside else "outside"

    @property
    def word(self) -> str:
        """What the verdict means, by the claim's source and scope: see `docs/verdicts.md`."""
        if self.scale == "smoke":
            return "no verdict (smoke)"
        if self.not_computable:
            return "not computable here"
        if self.source == "ours":
            return {"holds": "holds", "fails": "fails"}.get(self.verdict, "open")
        if self.source == "experiment":
            if self.proxy:
                return {"holds": "seen in changed settings", "fails": "not seen in changed settings"}.get(
                    self.verdict, "open"
                )
            return {"holds": "reproduced", "fails": "not reproduced"}.get(self.verdict, "open")
        judged = {"holds": "confirmed", "fails": "refuted"}
        if self.scope == "inside":
            return judged.get(self.verdict, "open")
        if self.inner is not None and self.inner.verdict != "inconclusive":
            return judged[self.inner.verdict]
        return {"holds": "extends", "fails": "does not extend"}.get(self.verdict, "open")

    @property
    def on_constants(self) -> str:
        """Whether the scope depends on the hidden constants of the conditions, in words; empty where it does not."""
        counts = self.inside_cells or ()
        if len(set(counts)) <= 1:
            return ""
        said = ", ".join(f"{n} with {c:g}" for n, c in zip(counts, CONSTANTS, strict=True))
        return f"How many of {self.cells} cells are inside depends on the hidden constants: {said}."

    @property
    def excluded(self) -> tuple[str, ...]:
        """The predicted numbers, the paper's own and its rivals', that the interval does not hold."""
        numbers = {} if self.value is None else {f"{self.value:g}": self.value}
        numbers |= {f"{number:g} ({who})": number for who, number in self.rivals.items()}
        return tuple(said for said, number in numbers.items() if excludes(self.measured, number))

    @property
    def clear_of(self) -> tuple[float, float]:
        """The range that the interval must lie in for `holds`: the tolerance, ending at the nearest rivals' numbers."""
        return between(self.measured, self.tolerance, self.rivals.values())

    @property
    def counts(self) -> bool:
        """Whether it is a discovery when decided. Identities and numbers that no draw of seeds would change are not, nor
        claims that no finite run can decide."""
        return self.kind != "identity" and not self.measured.exact and not self.not_computable

    @property
    def sentence(self) -> str:
        """The verdict with what is excluded and the conditions that were not met: 'holds, -1/2 excluded, although ...'."""
        said = ", ".join((self.verdict, *(f"{number} excluded" for number in self.excluded)))
        missed = [c for c in self.conditions if not c.holds and c.margin < 1]
        if not missed:
            return said
        link = "although" if self.verdict == "holds" else "but"
        return f"{said}, {link} {' and '.join(_violation(c) for c in missed)}"

    def __repr__(self) -> str:
        """Return one line: `boundary-exponent holds: -0.435 [-0.484, -0.393] within [-0.62, -0.38]`."""
        return f"{self.id} {self.verdict}: {self.measured} within {self.within}"

    @property
    def within(self) -> str:
        """The tolerance in words: what the whole interval must lie in."""
        low, high = self.tolerance
        if low == -inf:
            return f"at most {high:.3g}"
        return f"at least {low:.3g}" if high == inf else f"[{low:.3g}, {high:.3g}]"

    def _repr_html_(self) -> str:
        colour = {"holds": "#00694e", "fails": "#b34400", "inconclusive": "#777777"}[self.verdict]
        rows = {
            "says": self.statement,
            "predicted": f"{self.predicted} (holds within {self.within})",
            "measured": f"{replace(self.measured, note='')!r}"
            + (f", {self.looseness}" if self.looseness else ""),
            "seen": self.seen,
            "violations": "" if self.violations is None else f"{self.violations!r} of the runs",
            "left out": ", ".join(f"{many} {status}" for status, many in self.left_out.items()),
            "conditions": "; ".join(f"{c.name}: {c.met} of {c.cells} cells" for c in self.conditions),
            "reading": self.reading,
            "note": self.note,
        }
        body = "".join(
            f"<tr><td style='color: #666'>{name}</td><td style='text-align: left'>{escape(text)}</td></tr>"
            for name, text in rows.items()
            if text
        )
        head = f"<b>{escape(self.id)}</b> <b style='color: {colour}'>{escape(self.sentence)}</b>"
        return f"<div>{head}<table>{body}</table></div>"


class Verdicts(list[Verdict], Shown):
    """Verdicts of claims that were judged together: a list that shows itself as a table."""

    def __repr__(self) -> str:
        lines = [f"  {v.id}: {v.word}, {v.measured} within {v.within}" for v in self]
        return "\n".join((f"{len(self)} verdicts", *lines))

    def _sheet(self) -> Sheet:
        first = sorted(self, key=lambda v: not v.headline)
        rows = [
            (
                f"{v.id}, {v.reading}" if v.reading else v.id,
                v.word,
                str(replace(v.measured, note="")),
                v.within,
                f"{v.inside_cells[1]} of {v.cells}" if v.inside_cells else "",
                v.statement,
            )
            for v in first
        ]
        head = ("claim", "verdict", "measured", "holds within", "cells inside", "what it says")
        counts = Counter(v.word for v in self).most_common()
        return Sheet(", ".join(f"{count} {word}" for word, count in counts) or "no verdicts", head, rows)


def decide(estimate: Estimate, tolerance: tuple[float, float]) -> Decision:
    """Return `holds` for an interval inside the tolerance, `fails` for one outside, else `inconclusive`."""
    low, high = tolerance
    if not estimate.exists:
        return "inconclusive"
    if estimate.high < low or estimate.low > high:
        return "fails"
    return "holds" if low <= estimate.low and estimate.high <= high else "inconclusive"


def at_level(estimate: Estimate, level: float) -> Estimate:
    """Return the same estimate with an interval of another confidence level."""
    from scipy.special import stdtrit

    if not estimate.exists or estimate.exact:
        return estimate
    now, then = (float(stdtrit(estimate.freedom, (1 + p) / 2)) for p in (level, estimate.level))
    low, high = estimate.value - estimate.low, estimate.high - estimate.value
    return replace(
        estimate,
        low=estimate.value - low * now / then,
        high=estimate.value + high * now / then,
        level=level,
    )


def of_parts(parts: Mapping[str, Estimate], tolerance: tuple[float, float]) -> tuple[Part, ...]:
    """Return the parts of a claim, each with its decision.

    The claim holds if all parts hold, which needs no correction. It fails if one part fails, which many parts make likelier by
    chance: a part fails only if its interval at the level `1 - 0.05 / parts` does.
    """
    strict = 1 - 0.05 / max(len(parts), 1)
    found = []
    for name, estimate in parts.items():
        alone = decide(estimate, tolerance)
        if alone == "fails" and decide(at_level(estimate, strict), tolerance) != "fails":
            alone = "inconclusive"
        found.append(Part(name, estimate, alone))
    return tuple(found)


def between(
    estimate: Estimate, tolerance: tuple[float, float], rivals: Iterable[float]
) -> tuple[float, float]:
    """Return the tolerance as far as the rivals' numbers on either side of an estimate that lies in it."""
    low, high = tolerance
    if not low <= estimate.value <= high:
        return tolerance
    for rival in rivals:
        low, high = (max(low, rival), high) if rival <= estimate.value else (low, min(high, rival))
    return low, high


def excludes(estimate: Estimate, number: float) -> bool:
    """Return whether a number lies outside the interval, by more than rounding."""
    near = any(isclose(number, end, rel_tol=1e-9, abs_tol=ROUNDING) for end in (estimate.low, estimate.high))
    return estimate.exists and not near and not estimate.low <= number <= estimate.high


def drifts(estimate: Estimate, below: float = DRIFTING) -> bool:
    """Return whether the law is another in the upper part of its grid than in the lower (p-value `below` this)."""
    drift = estimate.drift
    if drift is None or not drift.exists or abs(drift.value) < ROUNDING**0.5:
        return False
    return chance(drift, (0.0, 0.0)) < below


def leaves(estimate: Estimate, tolerance: tuple[float, float]) -> bool:
    """Return whether a law drifts out of the tolerance in a part of its grid, so that it may be a crossover.

    A law called one that is none is worse than one left open: less evidence is asked for than to affirm a drift.
    """
    low, high = tolerance
    return drifts(estimate, DOUBTED) and any(not low <= part.value <= high for part in estimate.parts)


def more_seeds(estimate: Estimate, tolerance: tuple[float, float], seeds: int) -> int | None:
    """Return how many seeds on top of `seeds` would bring the interval clear of the tolerance's ends; None if no number up to
    `MOST_SEEDS` would.

    The half-width of an interval goes with one over the root of the number of seeds; the value is taken as it stands.

    >>> more_seeds(Estimate(0.6, 0.4, 0.8), (0.5, 1.0), seeds=4)
    12
    """
    if decide(estimate, tolerance) != "inconclusive":
        return 0
    if not estimate.exists or not (isfinite(estimate.low) and isfinite(estimate.high)):
        return None
    clearance = _clearance(estimate, tolerance)
    more = max(ceil(seeds * (clearance**-2 - 1) - 1e-9), 1) if clearance > 0 else None
    return more if more is not None and more <= MOST_SEEDS else None


def together(
    verdicts: Sequence[Verdict], rate: float | None = None, sizes: Mapping[str, int] | None = None
) -> Verdicts:
    """Return the verdicts of claims that are judged together, with the false discovery rate of each family kept at `rate`.

    There are two families (`family_of`): what the paper claims, and what the lab adds. `sizes` says how many claims each has as
    they are registered; by default as many as are given. Claims that are not given count as undecided.

    Without a rate it is 5 %, and results that were looked at several times pay for their looks: at the n-th a p-value counts
    2^n times, as if the error had been halved from look to look (`lab.looks`).

    A decided verdict is a discovery. Each has a p-value: the confidence at which its interval would just touch the end
    of the tolerance that it must stay clear of. Benjamini and Hochberg's rule says how many of the smallest p-values
    may stand; the others become inconclusive, and their note says that they were decided only when taken alone.
    One claim alone, or all claims decided, changes nothing. Identities and numbers without an interval are no discoveries:
    their verdicts are kept, and they are not counted.
    """
    families: dict[str, list[Verdict]] = {}
    for v in verdicts:
        families.setdefault(family_of(v.source), []).append(v)
    found = {
        id(old): new
        for name, family in families.items()
        for old, new in zip(family, _family(family, rate, (sizes or {}).get(name, 0)), strict=True)
    }
    return Verdicts(found[id(v)] for v in verdicts)


def family_of(source: str) -> str:
    """Return the family that a claim of this source is judged in."""
    return "ours" if source == "ours" else "paper"


def _family(verdicts: Sequence[Verdict], rate: float | None, size: int) -> list[Verdict]:
    family = [v for v in verdicts if v.counts]
    price, rate = (1, rate) if rate is not None else (2, 0.05)

    def paid(v: Verdict) -> float:
        sides = 0.5 if v.kind == "equivalence" else 1.0  # two one-sided tests
        return sides * chance(v.measured, v.clear_of) * (price**v.looks if v.looks > 1 else 1)

    chances = [paid(v) if v.verdict != "inconclusive" else 1.0 for v in family]
    exact = len(verdicts) - len(family)
    count, ordered = max(len(family), size - exact), sorted(chances)
    standing = max(
        (k for k in range(1, len(family) + 1) if ordered[k - 1] <= rate * k / count + ROUNDING), default=0
    )
    bar = ordered[standing - 1] if standing else -1.0
    needed = rate * (standing + 1) / max(count, 1)  # what one more discovery would have to reach

    def stands(v: Verdict) -> bool:
        return not v.counts or v.verdict == "inconclusive" or paid(v) <= bar

    counted = (len(verdicts), max(size, len(verdicts)))
    return [replace(v if stands(v) else _withdrawn(v, count, needed), of_family=counted) for v in verdicts]


def chance(estimate: Estimate, tolerance: tuple[float, float]) -> float:
    """Return the p-value of a verdict: how often an interval would clear the tolerance's end by this much if truth lay on it.

    Two-sided, so that an interval at 95 % that just touches the end has 0.05. On each side of the value the error is
    taken as a t (or normal) distribution that has the end of the interval where it is.
    """
    from scipy.special import stdtr, stdtrit  # not at the top: listing the studies imports this module

    unit = float(stdtrit(estimate.freedom, (1 + estimate.level) / 2))
    return float(2 * stdtr(estimate.freedom, -unit * _clearance(estimate, tolerance)))


def _clearance(estimate: Estimate, tolerance: tuple[float, float]) -> float:
    """Return the room up to the ends of the tolerance that matter, in half-widths of the interval: above 1, it is decided."""
    return min((room / half if half > 0 else inf for half, room in _sides(estimate, tolerance)), default=inf)


def _withdrawn(verdict: Verdict, count: int, needed: float) -> Verdict:
    from scipy.special import stdtrit

    estimate = verdict.measured
    ask, have = (-float(stdtrit(estimate.freedom, p / 2)) for p in (needed, 1 - estimate.level))
    more = (ask / have / _clearance(estimate, verdict.clear_of)) ** 2 - 1
    said = f"It {verdict.verdict} when taken alone, but not clearly enough among the {count} claims of its family."
    seeds = max(ceil(verdict.seeds * more), 1)
    return replace(
        verdict, verdict="inconclusive", more_seeds=seeds, note=" ".join(filter(None, (verdict.note, said)))
    )


def _sides(estimate: Estimate, tolerance: tuple[float, float]) -> list[tuple[float, float]]:
    """Return, for each end of the interval that matters, its distance from the value and the room that it has."""
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


def _violation(condition: ConditionCount) -> str:
    factor = f"by a factor {1 / condition.margin:.3g}" if condition.margin > 0 else "entirely"
    name = condition.name if condition.name.startswith("condition") else f"condition {condition.name}"
    hidden = " (its hidden constant set to 1)" if condition.holds is None else ""
    missed = condition.cells - condition.met
    where = "" if missed == condition.cells else f" in {missed} of {condition.cells} cells"
    return f"{name}{hidden} is violated {factor}{where}"
