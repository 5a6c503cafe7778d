"""The judge: from a claim and the results of its figure to a verdict.

The runs that the claim speaks of are chosen first: its cells, the statuses that it uses, with `inside` the theorem's
conditions. Everything else is masked. Then the claim's number is taken. Then each kind of claim is decided as its words demand.

A number that cannot be taken leaves the claim `inconclusive`: `Unmeasurable` with its own sentence, any other error of the
claim's functions with its traceback in the log.
"""

import logging
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import inf, isinf
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from lemmata.errors import require, shortened
from lemmata.figure import Claim
from lemmata.measure.compare import (
    CONSTANTS,
    VACUOUS,
    ConditionCount,
    Decision,
    Part,
    Verdict,
    at_level,
    between,
    decide,
    drifts,
    excludes,
    leaves,
    more_seeds,
    of_parts,
)
from lemmata.measure.compare import together as together  # what is judged alone is then judged together
from lemmata.measure.estimate import Estimate, Unmeasurable, needs
from lemmata.measure.simple import fraction
from lemmata.measure.worst import Worst, worst
from lemmata.status import DIVERGED, RUNNING, STATUS

LOG = logging.getLogger(__name__)
Answer = TypeVar("Answer")
EVERY_RUN = ("for-all", "identity")  # one run refutes these
EVERYWHERE = (-inf, inf)


def judge(claim: Claim, results: xr.Dataset, inside: bool = False) -> Verdict:
    """Judge a claim by the results of its figure.

    `inside`: whether only cells that meet the theorem's conditions count.
    """
    try:
        runs = runs_of(claim, results, inside)
    except Unmeasurable as reason:
        runs = _none(results, str(reason))
    found = _measured(claim, results, runs)
    estimate, seeds = found.estimate, int(results.sizes.get("seed", 1))
    decision, said, within = _decided(claim, found)
    more = more_seeds(estimate, within, seeds)
    hopeless = decision == "inconclusive" and estimate.exists and more is None
    said = [
        said,
        "Seeds will not decide this: the number lies at the end of its tolerance." if hopeless else "",
    ]
    left_out = {
        word: many for word, many in runs.left_out.items() if not (found.violations and word == "diverged")
    }
    return Verdict(
        id=claim.id,
        statement=claim.statement,
        verdict=decision,
        predicted=claim.holds.predicted,
        measured=estimate,
        tolerance=claim.holds.tolerance,
        conditions=runs.conditions,
        note=" ".join(filter(None, (estimate.note, *said, _beside(left_out)))),
        seeds=seeds,
        more_seeds=more or (None if decision == "inconclusive" else 0),
        kind=claim.holds.kind,
        value=claim.holds.value,
        rivals=dict(claim.holds.rivals),
        left_out=left_out,
        violations=found.violations,
        looseness=_looseness(estimate, claim.holds.tolerance)
        if claim.holds.kind in ("bound", "for-all")
        else "",
        seen=_seen(estimate),
        cells=int(_points(runs.used | runs.lost).sum()),
        inside=inside,
        reading=str(results.attrs.get("reading", "")),
        draw=int(results.attrs.get("draw", 0)),
        looks=int(results.attrs.get("looks", 1)),
        source=claim.source.kind,
        where=claim.source.where,
        proxy=claim.source.proxy or str(results.attrs.get("changed", "")),
        headline=claim.headline,
        inside_cells=runs.inside,
        parts=found.parts,
        not_computable=claim.not_computable,
        scale=str(results.attrs.get("scale", "")),
    )


def with_inner(verdict: Verdict, claim: Claim, results: xr.Dataset) -> Verdict:
    """Judge a statement of the paper in the cells inside its conditions alone, too, where only some of its cells are."""
    if verdict.source in ("theorem", "proof") and verdict.scope == "partly":
        return replace(verdict, inner=judge(claim, results, inside=True))
    return verdict


def _asked(claim: Claim, function: Callable[..., Answer], *given: Any) -> Answer:
    """Call one of a claim's functions. If it raises, the claim stays open; the other claims and the picture go on."""
    try:
        return function(*given)
    except Unmeasurable:
        raise
    except Exception as error:
        LOG.error("claim '%s' cannot be measured", claim.id, exc_info=error)
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise Unmeasurable(f"its functions raise {shortened(why)}; the traceback is in the log.") from error


# Which runs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Runs:
    """The runs that a claim is judged by: those `used` are measured, those `lost` diverged and refute what is said of
    every run. `nothing` says why there are none, where there are none."""

    used: xr.DataArray
    lost: xr.DataArray
    left_out: Mapping[str, int]
    conditions: tuple[ConditionCount, ...]
    inside: tuple[int, ...] | None
    nothing: str


def _none(results: xr.Dataset, reason: str) -> _Runs:
    """Choose no run at all, for this reason."""
    nowhere = xr.zeros_like(results["status"], dtype=bool)
    return _Runs(nowhere, nowhere, {}, (), None, reason)


def runs_of(claim: Claim, results: xr.Dataset, inside: bool) -> _Runs:
    absent = results.attrs.get("absent", "")
    needs(not absent, absent)
    labelled = results["status"]
    status = labelled.variable  # masks have its labels: they need not be compared for every claim
    ran = status.notnull() & (status != RUNNING)
    spoken = ran if claim.cells is None else ran & _like(_asked(claim, claim.cells, results), status)
    counts, meets, within = _conditions(claim, results, spoken)
    asked = spoken & meets if inside else spoken
    words = ("converged", *claim.uses)
    used = asked & np.isin(status.values, [STATUS.index(word) for word in words])
    refutes = claim.holds.kind in EVERY_RUN and "diverged" not in words
    lost = asked & (status == DIVERGED) & refutes
    counted = {word: int((asked & (status == i)).sum()) for i, word in enumerate(STATUS) if word not in words}
    reasons = (
        (ran, "nothing of this figure has been run."),
        (spoken, "no cell of these results is one that the claim speaks of."),
        (asked, _nowhere(counts, int(_points(spoken).sum()))),
        (used | lost, "no run is left to measure."),
    )
    nothing = next((reason for some, reason in reasons if not bool(some.any())), "")
    left_out = {word: many for word, many in counted.items() if many}
    taken, gone = (labelled.copy(deep=False, data=some.values) for some in (used, lost))
    return _Runs(taken, gone, left_out, counts, within, nothing)


def _conditions(
    claim: Claim, results: xr.Dataset, spoken: xr.Variable
) -> tuple[tuple[ConditionCount, ...], xr.Variable, tuple[int, ...] | None]:
    """Count the conditions over the grid points that have runs spoken of.

    Returns the counts, the points that meet all conditions, and how many do with each of the hidden constants.
    """
    points = _points(spoken)
    conditions = claim.conditions
    if conditions is None:
        return (), xr.ones_like(points), None
    require(
        "trial" in results.coords, "these results do not know their trials; take them as `run` gives them."
    )
    held: Any = results.coords["trial"].variable.set_dims(points.sizes).transpose(*points.dims).values
    once = cache(conditions)  # equal trials are looked at once
    looked = {
        at: tuple(_asked(claim, once, held[at].trial)) for at, some in np.ndenumerate(points.values) if some
    }
    meets = np.zeros(points.shape, bool)
    for at, found in looked.items():
        meets[at] = all(condition.met for condition in found)
    inside = tuple(sum(all(one.met_with(c) for one in found) for found in looked.values()) for c in CONSTANTS)
    return ConditionCount.of(looked.values()), points.copy(data=meets), inside


Runs = TypeVar("Runs", xr.DataArray, xr.Variable)


def _points(runs: Runs) -> Runs:
    """Return the grid points that have such a run."""
    return runs.any("seed") if "seed" in runs.dims else runs


def _like(mask: xr.DataArray, status: xr.Variable) -> xr.Variable:
    beyond = sorted(str(d) for d in set(mask.dims) - set(status.dims))
    require(not beyond, f"a region marks cells and runs; this one also has {', '.join(beyond)}.")
    require(
        all(mask.sizes[d] == status.sizes[d] for d in mask.dims),
        "a region marks every cell, also those that it leaves out.",
    )
    return mask.variable.astype(bool).set_dims(status.sizes).transpose(*status.dims)


def _nowhere(counts: tuple[ConditionCount, ...], cells: int) -> str:
    never = [c for c in counts if c.met == 0]
    which = "; never met: " + ", ".join(c.name for c in never) if never else ""
    return f"none of the {cells} cells satisfies the theorem's conditions{which}."


def used_alone(results: xr.Dataset, used: xr.DataArray) -> xr.Dataset:
    """Return the results with NaN wherever a run is not used.

    Values that belong to grid points are NaN where no seed of the point is used.
    """

    @cache
    def used_along(dims: tuple[Hashable, ...]) -> xr.Variable:
        return used.variable.any([d for d in used.dims if d not in dims])

    def masked(variable: xr.Variable) -> xr.Variable:
        if not set(variable.dims) & set(used.dims):
            return variable
        # there is no NaN among truths; without their labels, which are the same, variables need not be aligned
        number = variable.astype(float) if variable.dtype == bool else variable
        return number.where(used_along(variable.dims))

    return results.assign({name: masked(given.variable) for name, given in results.data_vars.items()})


# What they measure -----------------------------------------------------------------------------------------------------


def measured_number(claim: Claim, results: xr.Dataset) -> Any:
    """Return what a claim's number gives. Anything that it raises becomes `Unmeasurable`."""
    return _asked(claim, claim.number, results)


@dataclass(frozen=True)
class _Found:
    """The number: an estimate; the share of violations where every run was spoken of; its parts where it has several."""

    estimate: Estimate
    violations: Estimate | None = None
    parts: tuple[Part, ...] = ()


def _measured(claim: Claim, results: xr.Dataset, runs: _Runs) -> _Found:
    kind = claim.holds.kind
    try:
        needs(not runs.nothing, runs.nothing)
        found = measured_number(claim, used_alone(results, runs.used))
        if isinstance(found, Mapping):
            return _found_parts(found, claim.holds.tolerance)
        if isinstance(found, Estimate):
            found = at_level(found, 0.9) if kind == "equivalence" else found
            require(
                kind != "for-all",
                f"claim '{claim.id}' is for all runs: its number is one for each.",
            )
            return _Found(found)
        require(
            isinstance(found, xr.DataArray) and kind in (*EVERY_RUN, "probability"),
            f"the number of claim '{claim.id}' is a {type(found).__name__}, not an estimate.",
        )
        used = runs_behind(runs.used, found)
        if kind == "probability":
            return _Found(fraction(found.where(used)))
        lost = runs_behind(runs.lost, found)
        inner = [str(d) for d in found.dims if d not in used.dims]
        every: Worst = worst(found.where(~lost), claim.holds.tolerance, used | lost, inner)
        return _Found(every.measured, every.violations)
    except Unmeasurable as reason:
        return _Found(Estimate.absent(str(reason)))


def _found_parts(estimates: Mapping[str, Estimate], tolerance: tuple[float, float]) -> _Found:
    """Judge several estimates. The one nearest to the end of the tolerance, or farthest beyond it, is shown."""
    parts = of_parts(estimates, tolerance)
    rank = {"fails": 0, "inconclusive": 1, "holds": 2}
    worst_part = min(parts, key=lambda part: (rank[part.verdict], _room(part.measured, tolerance)))
    holding = sum(part.verdict == "holds" for part in parts)
    return _Found(
        worst_part.measured.noted(f"{holding} of {len(parts)} parts hold; this is '{worst_part.name}'."),
        None,
        parts,
    )


def _room(estimate: Estimate, tolerance: tuple[float, float]) -> float:
    """Return how far inside the tolerance an estimate lies."""
    return min(estimate.value - tolerance[0], tolerance[1] - estimate.value) if estimate.exists else -inf


def runs_behind(runs: xr.DataArray, found: xr.DataArray) -> xr.DataArray:
    """Return which runs stand behind the numbers of a measure: matched by label; any of them, where it has lost an axis."""
    known = [d for d in runs.dims if d in found.coords]
    gone = [d for d in runs.dims if d not in found.coords and d not in found.dims]
    placed = runs.any(gone).sel({d: found.coords[d].variable for d in known})
    return placed.drop_vars(list(placed.coords))


# What they decide ------------------------------------------------------------------------------------------------------


def _decided(claim: Claim, found: _Found) -> tuple[Decision, str, tuple[float, float]]:
    """Return the decision, what is to be said about it, and the range that the interval had to lie in."""
    holds = claim.holds
    estimate, tolerance, broken = found.estimate, holds.tolerance, found.violations
    if claim.not_computable:
        return "inconclusive", f"No finite run can decide this: {claim.not_computable}", EVERYWHERE
    if broken is not None:
        return "fails" if broken.value > 0 else "holds", _violated(broken), tolerance
    if found.parts:
        decisions = {part.verdict for part in found.parts}
        word = "fails" if "fails" in decisions else "inconclusive" if "inconclusive" in decisions else "holds"
        return word, "", tolerance
    decision, within = decide(estimate, tolerance), between(estimate, tolerance, holds.rivals.values())
    said = [_against(claim, estimate)] if holds.kind == "rival" and estimate.exists else []
    if decision == "holds" and leaves(estimate, tolerance):
        said.append(f"Not one law over this range: {_parts(estimate)}.")
        return "inconclusive", " ".join(said), EVERYWHERE  # no number of seeds would decide
    if decision == "holds" and any(decide(part, tolerance) != "holds" for part in estimate.parts):
        said.append(f"Its parts alone leave it open: {_parts(estimate)}.")
    return decide(estimate, within) if decision == "holds" else decision, " ".join(said), within


def _parts(estimate: Estimate) -> str:
    lower, upper = estimate.parts
    return f"{lower!r} in the lower part, {upper!r} in the upper"


def _against(claim: Claim, estimate: Estimate) -> str:
    holds = claim.holds
    own = {claim.source.where: holds.value} if holds.value is not None else {}
    said = [
        f"{number:g} ({who}) {'excluded' if excludes(estimate, number) else 'inside'}"
        for who, number in {**own, **holds.rivals}.items()
    ]
    return "Of the numbers on trial: " + ", ".join(said) + "."


def _violated(share: Estimate) -> str:
    many = round(share.value * share.count)
    if many:
        return f"{many} of {share.count} runs violate it ({share.low:.0%} to {share.high:.0%} of runs do)."
    return f"None of {share.count} runs violates it (at most {share.high:.0%} of runs do)."


def _beside(left_out: Mapping[str, int]) -> str:
    said = ", ".join(f"{many} {word}" for word, many in left_out.items())
    return f"Runs left out: {said}." if said else ""


def _looseness(estimate: Estimate, tolerance: tuple[float, float]) -> str:
    """Return how far a bound lies from what was measured: a factor where both are positive, else a distance."""
    low, high = tolerance
    if not estimate.exists or isinf(low) == isinf(high) or not low <= estimate.value <= high:
        return ""
    bound, side = (high, "below") if isinf(low) else (low, "above")
    if min(bound, estimate.value) > 0:
        far = max(bound / estimate.value, estimate.value / bound)
        return f"a factor {far:.3g} {side} the bound" + (", which is vacuous here" if far > VACUOUS else "")
    return f"{abs(bound - estimate.value):.3g} {side} the bound"


def _seen(estimate: Estimate) -> str:
    """Return the range of the measurement, and which way a law drifts along it."""
    if not estimate.seen or not drifts(estimate):
        return estimate.seen
    lower, upper = (part.value for part in estimate.parts)
    return f"{estimate.seen}, {'rising' if upper > lower else 'falling'}: {lower:.2g} to {upper:.2g}"
