"""Checks that every study must pass. One line in a test file gives a plug-in the same tests as the studies of the lab:

    test_study = study_tests("my-study")

Each check is a function of the study that returns problems, a sentence each. `BEFORE_TRAINING` are those of `lemmata lock
--check`. Of all `CHECKS` only `smoke` trains.

A claim is judged on made results: some on which it must fail, and others on which it must hold. A claim whose number is wrong
may still fail where it must. So four mutants of every number are judged too (`MUTANTS`): times ten, plus one, with the other
sign, divided by seven. One of the two made cases has to notice each. A mutant that no result could tell from the number is
equivalent: the sign of a rise does not change when the rise is multiplied.
"""

import logging
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import inf
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np
import xarray as xr

from lemmata import registration
from lemmata.errors import BadInput, place_of, unknown
from lemmata.figure import Claim, Made, Number, nothing_asked
from lemmata.guard import double
from lemmata.measure.compare import Condition, Verdict
from lemmata.measure.estimate import Estimate, Unmeasurable
from lemmata.measure.judge import LOG, judge
from lemmata.order import run_here
from lemmata.own import accepted
from lemmata.scale import SCALES, Scale
from lemmata.study import Study, study
from lemmata.trial import Descending, random_key, with_precision

MUTANTS: dict[str, Callable[[Any], Any]] = {
    "times 10": lambda value: value * 10,
    "plus 1": lambda value: value + 1,
    "minus": lambda value: -value,
    "divided by 7": lambda value: value / 7,
}
NUMBERED = re.compile(
    r"\b(?:Theorem|Lemma|Proposition|Corollary|Condition|Assumption|Definition|Property|Remark|Section|Appendix|Figure|Table)"
    r"(?:s|es|ies)?\s(?:[A-Z]\b|[A-Z]?\.?\d)"
    r"|\((?:[A-Z]\.?)?\d+(?:\.\d+)*[a-z]?\)"
)
"""A place in a paper: the number of a statement, section, figure or table, or of an equation in parentheses."""

Case = Literal["refuted_by", "upheld_by"]
CASES: dict[Case, str] = {"refuted_by": "fails", "upheld_by": "holds"}


@dataclass(frozen=True)
class MadeCases:
    """The made results of a study's claims; those that several claims share are made once."""

    study: Study

    def verdict(self, claim: Claim, case: Case, scale: Scale = "quick") -> Verdict:
        """Judge a claim on one of its made cases."""
        return judge(replace(claim, not_computable=""), self.results(claim, case, scale))

    def results(self, claim: Claim, case: Case, scale: Scale = "quick") -> xr.Dataset:
        made = getattr(claim, case)
        if not isinstance(made, Made):
            raise Unmeasurable(f"'{claim.id}' has no made results on which it holds.")
        return _results(self.study, claim.figure, made, scale)

    def problems(self, claim: Claim, scales: Sequence[Scale] = SCALES) -> list[str]:
        """Return what is wrong with a claim's made cases, and at which of the `scales` it cannot be judged."""
        found = []
        for case, wanted in CASES.items():
            try:
                with _raised() as errors:
                    verdict = self.verdict(claim, case)
            except Unmeasurable as reason:
                found.append(str(reason))
                continue
            if errors:
                found.append(f"'{claim.id}' on `{case}`: {_told(errors[0], self.study)}")
            elif verdict.verdict != wanted:
                found.append(
                    f"'{claim.id}' comes out '{verdict.verdict}' on `{case}`: {verdict.measured} ({verdict.note})"
                    f"{_line_of(self.study, claim.id)}"
                )
        for scale in () if found else scales:
            with _raised() as errors:
                self.verdict(claim, "refuted_by", scale)
            found += [
                f"'{claim.id}' at the scale '{scale}': {_told(error, self.study)}" for error in errors[:1]
            ]
        return found

    def unnoticed(self, claim: Claim) -> list[str]:
        """The mutants of a claim's number that neither made case notices, but for those that are equivalent."""
        plain = replace(claim, conditions=None, not_computable="")  # neither bears on the number
        numbers = {case: _kept(claim.number, claim) for case in CASES}
        return [
            name
            for name, change in MUTANTS.items()
            if name not in equivalent(claim)
            and all(
                judge(
                    replace(plain, number=_changed(numbers[case], change)), self.results(claim, case)
                ).verdict
                == wanted
                for case, wanted in CASES.items()
            )
        ]

    def left_out(self, claim: Claim) -> Iterator[tuple[str, Verdict]]:
        """Judge a claim with each value of each axis left out: every verdict, with what was left out."""
        results = self.results(claim, "refuted_by")
        for dim in self.study.figure(claim.figure).sweep("quick").dims:
            if dim == "seed" or results.sizes[dim] == 1:
                continue
            for place, label in enumerate(results[dim].values):
                others = [i for i in range(results.sizes[dim]) if i != place]
                yield f"{dim} = {label}", judge(claim, results.isel({dim: others}))


def equivalent(claim: Claim) -> set[str]:
    """Mutants that no results can tell from a claim's number.

    A sign is the same at any positive scale. A number that may be as far above zero as below may have either sign.
    """
    low, high = claim.holds.tolerance
    found = {"times 10", "divided by 7"} if {low, high} <= {0.0, inf, -inf} else set()
    return found | {"minus"} if low == -high else found


def _kept(number: Number, claim: Claim) -> Number:
    """The number, computed once for the mutants of one made case."""
    known: list[Any] = []

    def once(results: xr.Dataset) -> Any:
        if not known:
            known.append(number(results))
        return known[0]

    return once


def _changed(number: Number, change: Callable[[Any], Any]) -> Number:
    def mutant(results: xr.Dataset) -> Any:
        value = number(results)
        return value.map(change) if isinstance(value, Estimate) else change(value)

    return mutant


@contextmanager
def _raised() -> Iterator[list[BaseException]]:
    """Collect what the functions of claims raise while they are judged, in place of tracebacks in the log."""
    found: list[BaseException] = []

    def keep(record: logging.LogRecord) -> bool:
        if record.exc_info and record.exc_info[1]:
            found.append(record.exc_info[1])
        return False

    LOG.addFilter(keep)
    try:
        yield found
    finally:
        LOG.removeFilter(keep)


def _told(error: BaseException, study: Study) -> str:
    why = " ".join(str(error).split()).removesuffix(".")
    return f"{'' if isinstance(error, BadInput) else type(error).__name__ + ': '}{why}{place_of(error, study.folder)}"


def _line_of(study: Study, id: str) -> str:
    """The file and the line where a claim or a figure of a study stands, as ` (figures/steps.py, line 3)`, or nothing."""
    for path in sorted(study.folder.rglob("figures*/*.py")) + sorted(study.folder.glob("figures*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if f'"{id}"' in line or f"'{id}'" in line:
                return f" ({path.relative_to(study.folder.parent)}, line {number})"
    return ""


@lru_cache(maxsize=64)
def _results(study: Study, figure: str, made: Made, scale: Scale) -> xr.Dataset:
    return made.results(study.figure(figure), scale)


# Checks of a whole study -------------------------------------------------------------------------------------------------

ROOMS = ("data", "network", "trials", "theory", "figures", "ledger")


def rooms(study: Study) -> list[str]:
    """Every room of a study exists, and says what it is for."""
    found = []
    for room in ROOMS:
        if not study.module(room).__doc__:
            found.append(f"the module '{room}' has no docstring.")
    if not (study.folder / "README.md").exists():
        found.append("the study has no README.md.")
    return found


def names(study: Study) -> list[str]:
    """No id is taken twice."""
    ids = [figure.id for figure in study.module("figures").FIGURES]
    found = [f"the figure id '{id}' is taken twice{_line_of(study, id)}." for id in _twice(ids)]
    ids = [claim.id for claim in study.claims]
    return found + [f"the claim id '{id}' is taken twice{_line_of(study, id)}." for id in _twice(ids)]


def _twice(ids: list[str]) -> list[str]:
    return [id for id, many in Counter(ids).items() if many > 1]


def places(study: Study) -> list[str]:
    """The study names the version of its paper, and every claim of the paper its place in it."""
    found = []
    if not study.version:
        found.append("the study does not say which version of the paper it follows (`version` of its Study).")
    nowhere = [c for c in study.claims if c.source.kind != "ours" and not NUMBERED.search(c.source.where)]
    return found + [
        f"'{c.id}' does not say where in the paper it stands{_line_of(study, c.id)}: '{c.source.where}' has no number of a "
        "theorem, section or figure, nor of an equation in parentheses."
        for c in nowhere
    ]


def ledger(study: Study) -> list[str]:
    """The ledger names functions and claims that exist."""
    known, found = {claim.id for claim in study.claims}, []
    for line in study.ledger:
        for name in filter(None, line.function.split(", ")):
            room, _, function = name.partition(".")
            if not hasattr(study.module(room), function):
                found.append(f"ledger, {line.number}: there is no '{name}'.")
        words = [w.removeprefix("claim ") for w in line.held_against.split(", ") if w.startswith("claim ")]
        found += [f"ledger, {line.number}: {unknown('claim', w, known)}" for w in words if w not in known]
    return found or ([] if study.ledger else ["the ledger is empty."])


def predictions(study: Study) -> list[str]:
    """`lemmata predict` gives conditions and predictions for the template."""
    try:
        conditions, predicted = study.predict(study.template())
    except Exception as error:
        return [f"predict: {_told(error, study)}."]
    wrong = [one for one in conditions if not isinstance(one, Condition)]
    found = [f"predict gives {type(one).__name__} in place of a Condition." for one in wrong]
    return found + ([] if predicted else ["predict gives no prediction."])


def scales(study: Study) -> list[str]:
    """Every figure can be ordered at every scale and under every reading, with trials that carry the study's name."""
    found = []
    for figure in map(study.figure, study.figures):
        for scale in SCALES:
            try:
                trials = figure.sweep(scale).cells.trials
                for reading in figure.readings:
                    figure.order(scale, reading=reading)
            except Exception as error:
                place = "" if place_of(error, study.folder) else _line_of(study, figure.id)
                found.append(f"'{figure.id}' at the scale '{scale}': {_told(error, study)}{place}.")
                break
            other = {trial.name for trial in trials if not trial.name.startswith(f"{study.id}/")}
            found += [
                f"a trial of '{figure.id}' is named '{name}'; its name must begin with '{study.id}/'."
                for name in other
            ]
    return found


def conditions(study: Study) -> list[str]:
    """The conditions of every claim are functions of a trial that give conditions."""
    found = []
    for claim in study.claims:
        if claim.conditions is None:
            continue
        try:
            given = claim.conditions(study.figure(claim.figure).sweep("smoke").cells[0].trial)
        except Exception as error:
            found.append(f"the conditions of '{claim.id}': {_told(error, study)}.")
            continue
        if not given and claim.conditions is not nothing_asked:
            found.append(f"'{claim.id}' has conditions, but none of them{_line_of(study, claim.id)}.")
        found += [
            f"a condition of '{claim.id}' is a {type(one).__name__}, not a Condition{_line_of(study, claim.id)}."
            for one in given
            if not isinstance(one, Condition)
        ]
    return found


def made_cases(
    study: Study, figures: Collection[str] | None = None, scales: Sequence[Scale] = SCALES
) -> list[str]:
    """Every claim fails and holds on its made results, and can be judged at the `scales`.

    `figures`: the figures whose claims are checked; `None` takes all.
    """
    cases = MadeCases(study)
    return [problem for claim in _claims(study, figures) for problem in cases.problems(claim, scales)]


def made_records(study: Study, figures: Collection[str] | None = None) -> list[str]:
    """Made results have only records that the trials make."""
    records = cache(lambda figure: _records(study, figure))
    return [
        problem
        for claim in _claims(study, figures)
        for problem in _unknown_records(study, claim, records(claim.figure))
    ]


def mutants(study: Study, figures: Collection[str] | None = None) -> list[str]:
    """Every number that is wrong is noticed by a made case, but for mutants that the claim names."""
    cases, found = MadeCases(study), []
    for claim in _claims(study, figures):
        with _raised():
            missed = set(cases.unnoticed(claim))
        line = _line_of(study, claim.id)
        found += [
            f"no made case of '{claim.id}' notices {one}{line}" for one in sorted(missed - {*claim.unnoticed})
        ]
        found += [
            f"'{claim.id}' names '{one}', which is noticed{line}" for one in {*claim.unnoticed} - missed
        ]
    return found


def left_out(study: Study, figures: Collection[str] | None = None) -> list[str]:
    """A missing value of an axis leaves a claim open and raises no error."""
    cases, found = MadeCases(study), []
    for claim in _claims(study, figures):
        with _raised() as errors:
            for what, _ in cases.left_out(claim):
                found += [f"'{claim.id}' without {what}: {_told(error, study)}." for error in errors]
                errors.clear()
    return found


def registered(study: Study) -> list[str]:
    """The claims are what was registered, if anything was."""
    return registration.disagreements(study) if study.lock else []


def smoke(study: Study) -> list[str]:
    """Every figure runs, is judged and is drawn at the scale `smoke`."""
    found = []
    for figure in map(study.figure, study.figures):
        with tempfile.TemporaryDirectory() as folder, _raised() as errors:
            order = figure.order("smoke", out=folder)
            results = run_here(order, 0, False, None)
            verdicts = study.check(results)
            picture = Path(order.draw(results, verdicts))
            if picture.stat().st_size < 10_000:
                found.append(f"the picture of '{figure.id}' is empty.")
            counts = order.counts()
        found += [f"a claim of '{figure.id}' on results: {_told(error, study)}." for error in errors]
        if counts["done"] < counts["cells"] or counts["failed"]:
            found.append(f"'{figure.id}': {counts['failed']} of {counts['cells']} cells failed.")
    return found


def own(study: Study) -> list[str]:
    """Data and weights of the user that a trial takes change what is seen of the start."""
    found = []
    for figure in map(study.figure, study.figures):
        kinds = {type(trial): trial for trial in figure.sweep("smoke").cells.trials}
        for trial in (one for one in kinds.values() if isinstance(one, Descending)):
            found += [
                f"'{trial.name}' takes {what}, and its start does not depend on them{_line_of(study, figure.id)}."
                for what in _unused(trial)
            ]
    return list(dict.fromkeys(found))


def _unused(trial: Descending) -> list[str]:
    """Which of `data` and `weights` a trial takes without using them. What it refuses counts as used."""
    with double():
        one, key, found = with_precision(trial), random_key(trial, 0), []

        def seen(state: Any) -> list[np.ndarray]:
            shown = {**one.watch(state), **one.record(state), "": one.loss(state)}
            return [np.asarray(value) for value in shown.values()]

        for what, form in one.takes(key)._asdict().items():
            if what == "any_number" or isinstance(form, str):
                continue
            numbers = all(np.issubdtype(leaf.dtype, np.number) for leaf in jax.tree.leaves(form))
            if not numbers:
                continue
            given = jax.tree.map(lambda leaf: np.full(leaf.shape, 0.5).astype(leaf.dtype), form)
            try:
                data, weights = accepted(one.takes(key), **{"data": None, "weights": None, what: given})
                one.check_own(data, weights)
                changed = seen(one.start_from(key, data, weights))
            except BadInput:
                continue
            same = zip(seen(one.start(key)), changed, strict=True)
            if all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in same):
                found.append(what)
        return found


def never_met(study: Study) -> list[str]:
    """Say which conditions no trial of a figure meets, at any scale: its claims are judged outside of them alone."""
    outside: dict[str, list[str]] = {}
    for claim in study.claims:
        if claim.conditions is None:
            continue
        sweeps = [study.figure(claim.figure).sweep(scale) for scale in SCALES]
        met: dict[str, bool] = {}
        for one in (c for sweep in sweeps for p in sweep.cells.points for c in claim.conditions(p.trial)):
            met[one.name] = met.get(one.name, False) or one.holds is not False
        for name in (name for name in met if not met[name]):
            outside.setdefault(name, []).append(claim.id)
    return [
        f"no trial meets '{name}', a condition of {f'{len(ids)} claims, the first' if len(ids) > 1 else 'claim'} "
        f"'{ids[0]}'{_line_of(study, ids[0])}."
        for name, ids in outside.items()
    ]


def _claims(study: Study, figures: Collection[str] | None) -> list[Claim]:
    return [claim for claim in study.claims if figures is None or claim.figure in figures]


def _unknown_records(study: Study, claim: Claim, known: set[str] | None) -> list[str]:
    """Say which records made results have that no trial of the figure makes: after a training they would be missing."""
    if known is None:
        return []
    given = {
        name for case in CASES if isinstance(getattr(claim, case), Made) for name in getattr(claim, case).laws
    }
    line = _line_of(study, claim.id)
    return [f"'{claim.id}'{line}: {unknown('record', name, sorted(known))}" for name in sorted(given - known)]


def _records(study: Study, figure: str) -> set[str] | None:
    """The records that the trials of a figure make; None where only a run can say."""
    found = {"steps", "status"}
    kinds = {type(trial): trial for trial in study.figure(figure).sweep("smoke").cells.trials}
    for trial in kinds.values():
        if not isinstance(trial, Descending):
            return None
        found |= _records_of(trial)
    return found


def _records_of(trial: Descending) -> set[str]:
    """The records that a trial makes, found without a training."""

    def look(key: Any) -> dict[str, Any]:
        one = with_precision(trial)
        state = one.start(key)
        tracked = {name: value for kind in one.track(state) for name, value in kind.items()}
        curves = {f"{name}_curve": value for name, value in one.watch(state).items()}
        return {**one.record(state), **tracked, **curves}

    with double():
        return set(jax.eval_shape(look, random_key(trial, 0)))


Check = Callable[[Study], list[str]]
BEFORE_TRAINING: tuple[Check, ...] = (
    rooms,
    names,
    places,
    scales,
    ledger,
    predictions,
    conditions,
    made_cases,
    made_records,
    mutants,
    registered,
)
CHECKS: tuple[Check, ...] = (*BEFORE_TRAINING, left_out, own, smoke)


def problems(check: Check, study: Study) -> list[str]:
    """Return the problems that a check finds. An error of the check itself is returned as a sentence."""
    try:
        return check(study)
    except Exception as error:
        return [f"{check.__name__}: {_told(error, study)}."]


def study_tests(id: str) -> Callable[..., None]:
    """Return a test function for pytest that holds a study against all `CHECKS`, a test for each."""
    import pytest

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_study(check: Check) -> None:
        found = problems(check, study(id))
        if found:
            pytest.fail("\n".join(found), pytrace=False)

    return test_study
