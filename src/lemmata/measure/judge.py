"""The judge: from a claim and the results of its figure to a verdict.

The runs that the claim speaks of are chosen first (its region, the statuses it has a use for, with `inside` the theorem's
conditions) and everything else is masked; then the claim's measure is taken; then each kind of claim is decided as its words
demand. Only `Unmeasurable` becomes `inconclusive`: anything else that goes wrong is a bug and shows.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import inf, isinf
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from lemmata.errors import require
from lemmata.measure.compare import (
    Condition,
    ConditionCount,
    Decision,
    Verdict,
    between,
    decide,
    drifts,
    excludes,
    leaves,
    more_seeds,
)
from lemmata.measure.compare import together as together  # what is judged alone is then judged together
from lemmata.measure.estimate import Estimate, Unmeasurable, needs
from lemmata.measure.simple import fraction
from lemmata.measure.worst import Worst, worst
from lemmata.status import DIVERGED, RUNNING, STATUS
from lemmata.study import Claim

Measure = Callable[..., Any]
Region = Callable[[xr.Dataset], xr.DataArray]
Conditions = Callable[[Any], Sequence[Condition]]

EVERY_RUN = ("for-all", "identity")  # one run refutes these
EVERYWHERE = (-inf, inf)


def judge(
    claim: Claim,
    results: xr.Dataset,
    measure: Measure,
    region: Region | None = None,
    conditions: Conditions | None = None,
    inside: bool = False,
) -> Verdict:
    """The verdict on a claim by the results of its figure.

    `measure(results, **claim.options)` gives an estimate, or one number a run where every run (`for-all`, `identity`) or a
    share of them (`probability`) is spoken of. `region(results)` marks the cells that the number comes from,
    `conditions(trial)` gives the theorem's own conditions at a trial. With `inside` only cells that meet them all count.
    """
    runs = _chosen(claim, results, region, conditions, inside)
    found = _measured(claim, results, runs, measure)
    estimate, seeds = found.estimate, int(results.sizes.get("seed", 1))
    decision, said, within = _decided(claim, found)
    left_out = {
        word: many for word, many in runs.left_out.items() if not (found.violations and word == "diverged")
    }
    return Verdict(
        id=claim.id,
        statement=claim.statement,
        verdict=decision,
        predicted=claim.predicted,
        measured=estimate,
        tolerance=claim.tolerance,
        conditions=runs.conditions,
        note=" ".join(filter(None, (estimate.note, said, _beside(left_out)))),
        seeds=seeds,
        more_seeds=more_seeds(estimate, within, seeds) or (None if decision == "inconclusive" else 0),
        kind=claim.kind,
        value=claim.value,
        rivals=dict(claim.rivals),
        left_out=left_out,
        violations=found.violations,
        looseness=_looseness(estimate, claim.tolerance) if claim.kind in ("bound", "for-all") else "",
        seen=_seen(estimate),
        cells=int(_points(runs.used | runs.lost).sum()),
        inside=inside,
        reading=str(results.attrs.get("reading", "")),
        draw=int(results.attrs.get("draw", 0)),
        looks=int(results.attrs.get("looks", 1)),
    )


# Which runs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Runs:
    """The runs that a claim is judged by: those `used` are measured, those `lost` diverged and refute what is said of
    every run. `nothing` says why there are none, where there are none."""

    used: xr.DataArray
    lost: xr.DataArray
    left_out: Mapping[str, int]
    conditions: tuple[ConditionCount, ...]
    nothing: str


def _chosen(
    claim: Claim, results: xr.Dataset, region: Region | None, conditions: Conditions | None, inside: bool
) -> _Runs:
    labelled = results["status"]
    status = labelled.variable  # masks have its labels: they need not be compared for every claim
    ran = status.notnull() & (status != RUNNING)
    spoken = ran if region is None else ran & _like(region(results), status)
    counts, meets = _conditions(results, spoken, conditions)
    asked = spoken & meets if inside else spoken
    words = ("converged", *claim.uses)
    used = asked & np.isin(status.values, [STATUS.index(word) for word in words])
    refutes = claim.kind in EVERY_RUN and "diverged" not in words
    lost = asked & (status == DIVERGED) & refutes
    counted = {word: int((asked & (status == i)).sum()) for i, word in enumerate(STATUS) if word not in words}
    reasons = (
        (ran, "nothing of this figure has been run."),
        (spoken, "no cell of these results lies in the region that the claim speaks of."),
        (asked, _nowhere(counts, int(_points(spoken).sum()))),
        (used | lost, "no run is left to measure."),
    )
    nothing = next((reason for some, reason in reasons if not bool(some.any())), "")
    left_out = {word: many for word, many in counted.items() if many}
    taken, gone = (labelled.copy(deep=False, data=some.values) for some in (used, lost))
    return _Runs(taken, gone, left_out, counts, nothing)


def _conditions(
    results: xr.Dataset, spoken: xr.Variable, conditions: Conditions | None
) -> tuple[tuple[ConditionCount, ...], xr.Variable]:
    """The conditions counted over the grid points that have runs spoken of, and the points that meet them all."""
    points = _points(spoken)
    if conditions is None:
        return (), xr.ones_like(points)
    require(
        "trial" in results.coords, "these results do not know their trials; take them as `run` gives them."
    )
    held: Any = results.coords["trial"].variable.set_dims(points.sizes).transpose(*points.dims).values
    once = cache(conditions)  # equal trials are looked at once
    looked = {at: tuple(once(held[at].trial)) for at, some in np.ndenumerate(points.values) if some}
    meets = np.zeros(points.shape, bool)
    for at, found in looked.items():
        meets[at] = all(condition.met for condition in found)
    return ConditionCount.of(looked.values()), points.copy(data=meets)


Runs = TypeVar("Runs", xr.DataArray, xr.Variable)


def _points(runs: Runs) -> Runs:
    """The grid points that have such a run."""
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


def _masked(results: xr.Dataset, used: xr.DataArray) -> xr.Dataset:
    """The results with NaN wherever a run is not used; what belongs to grid points goes where no seed of them is used."""

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


@dataclass(frozen=True)
class _Found:
    """What the measure gave: an estimate, and the share of violations where every run was spoken of."""

    estimate: Estimate
    violations: Estimate | None = None


def _measured(claim: Claim, results: xr.Dataset, runs: _Runs, measure: Measure) -> _Found:
    try:
        needs(not runs.nothing, runs.nothing)
        found = measure(_masked(results, runs.used), **claim.options)
        if isinstance(found, Estimate):
            require(
                claim.kind != "for-all",
                f"claim '{claim.id}' is for all runs: its measure gives a number for each.",
            )
            return _Found(found)
        require(
            isinstance(found, xr.DataArray) and claim.kind in (*EVERY_RUN, "probability"),
            f"the measure of claim '{claim.id}' gives {type(found).__name__}, not an estimate.",
        )
        used = _at(runs.used, found)
        if claim.kind == "probability":
            return _Found(fraction(found.where(used)))
        lost = _at(runs.lost, found)
        inner = [str(d) for d in found.dims if d not in used.dims]
        every: Worst = worst(found.where(~lost), claim.tolerance, used | lost, inner)
        return _Found(every.measured, every.violations)
    except Unmeasurable as reason:
        return _Found(Estimate.absent(str(reason)))


def _at(runs: xr.DataArray, found: xr.DataArray) -> xr.DataArray:
    """Which runs stand behind the numbers of a measure: matched by label; any of them, where it has lost an axis."""
    known = [d for d in runs.dims if d in found.coords]
    gone = [d for d in runs.dims if d not in found.coords and d not in found.dims]
    placed = runs.any(gone).sel({d: found.coords[d].variable for d in known})
    return placed.drop_vars(list(placed.coords))


# What they decide ------------------------------------------------------------------------------------------------------


def _decided(claim: Claim, found: _Found) -> tuple[Decision, str, tuple[float, float]]:
    """The decision, what is to be said about it, and the range that the interval had to lie in."""
    estimate, tolerance, broken = found.estimate, claim.tolerance, found.violations
    if broken is not None:
        return "fails" if broken.value > 0 else "holds", _violated(broken), tolerance
    decision, within = decide(estimate, tolerance), between(estimate, tolerance, claim.rivals.values())
    said = [_against(claim, estimate)] if claim.kind == "rival" and estimate.exists else []
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
    own = {claim.reference: claim.value} if claim.value is not None else {}
    said = [
        f"{number:g} ({who}) {'excluded' if excludes(estimate, number) else 'inside'}"
        for who, number in {**own, **claim.rivals}.items()
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
    """How far a bound lies from what was measured: a factor where both are positive, else a distance."""
    low, high = tolerance
    if not estimate.exists or isinf(low) == isinf(high) or not low <= estimate.value <= high:
        return ""
    bound, side = (high, "below") if isinf(low) else (low, "above")
    if min(bound, estimate.value) > 0:
        far = max(bound / estimate.value, estimate.value / bound)
        return f"a factor {far:.3g} {side} the bound"
    return f"{abs(bound - estimate.value):.3g} {side} the bound"


def _seen(estimate: Estimate) -> str:
    """The range of the measurement, and which way a law drifts along it."""
    if not estimate.seen or not drifts(estimate):
        return estimate.seen
    lower, upper = (part.value for part in estimate.parts)
    return f"{estimate.seen}, {'rising' if upper > lower else 'falling'}: {lower:.2g} to {upper:.2g}"
