"""Defines a study, which is one paper in the lab, and the registry of studies.

Everything here is light. Listing all studies reads the registration of each (`lock.json`) and imports neither JAX nor results.
The modules of a study (`figures`, `theory`, `ledger`) are loaded when they are asked for.
"""

import importlib
import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, note, place_of, require, unknown

if TYPE_CHECKING:
    import xarray as xr

    from lemmata.answer import Answer
    from lemmata.figure import Claim, Figure
    from lemmata.measure.compare import Condition, Verdicts


@dataclass(frozen=True)
class Statement:
    """A line of a study's ledger: a numbered statement of the paper, as printed and as mended.

    `function` is the formula in the study (`theory.critical_control`), `held_against` the claim, figure or test that holds it
    against runs; `finding` what came out where no claim says so (`holds`, `fails`, how loose).
    """

    number: str
    says: str
    mended: str = ""
    function: str = ""
    held_against: str = ""
    finding: str = ""


@dataclass(frozen=True)
class Prediction:
    """A prediction of the theory without training: a number, or a sentence."""

    name: str
    value: float | str


@dataclass(frozen=True)
class Entry:
    """What is registered of a claim, in `lock.json`.

    `kind`, `holds`: how its number is judged, and what it must be, in words.
    `source`, `where`: who says it, and the number in the paper.
    `digest`: 16 hexadecimal digits that change with what the claim measures; `draw`: which draw of the seeds judges it.
    """

    id: str
    figure: str
    statement: str
    source: str
    where: str
    kind: str
    holds: str
    headline: bool
    digest: str
    draw: int


@dataclass(frozen=True)
class Study:
    """The title page of a paper.

    `id`, `title`, `summary`, `citation`: its name, what it is about, and its BibTeX entry.
    `version`: the version of the paper that all its numbers of theorems, equations and figures refer to.
    `package`: the package with its modules: `figures` (`FIGURES`, `template()`), `theory` (`predict(trial)`), `ledger`
        (`LEDGER`), and its registration, `lock.json`.
    """

    id: str
    title: str
    summary: str
    citation: str
    package: str
    version: str = ""

    # Light: what is registered ------------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        return Path(importlib.import_module(self.package).__file__ or "").parent

    @cached_property
    def lock(self) -> dict[str, Any]:
        """The registration: `figures` (titles by id), `claims`, `history`; empty before the first `lemmata lock`."""
        path = self.folder / "lock.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    @property
    def figures(self) -> Mapping[str, str]:
        """The titles of its figures by id."""
        return self.lock.get("figures") or {one.id: one.title for one in self.all_figures}

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """What is registered of its claims, by id. Claims that are not registered yet are described from their figures."""
        if self.lock:
            return {id: Entry(id=id, **entry) for id, entry in self.lock["claims"].items()}
        from lemmata.registration import described

        return {claim.id: described(claim, "", 0) for claim in self.claims}

    @checks_arguments
    def draw_number(self, figure: str) -> int:
        """The number of times that the seeds of a figure have been drawn anew; 0 before anything was registered."""
        return max((one.draw for one in self.bearing_on(figure)), default=0)

    @checks_arguments
    def bearing_on(self, figure: str) -> list[Entry]:
        """What is registered of the claims that the results of a figure can refute."""
        return [one for one in self.entries.values() if one.figure == figure]

    @cached_property
    def publication(self) -> dict[str, Any]:
        """What the study publishes (`verdicts.json`, made by `lemmata report STUDY --to FILE.json`): `scale`, `verdicts`, and
        the `minutes` of one core that the trainings took."""
        path = self.folder / "verdicts.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    @cached_property
    def published(self) -> tuple[dict[str, Any], ...]:
        """The verdicts that the study publishes."""
        return tuple(self.publication.get("verdicts", ()))

    @cached_property
    def searches(self) -> Mapping[str, tuple[dict[str, Any], ...]]:
        """The searches for counter-examples that the study publishes (`searches.json`, made by `lemmata refute --to`).

        `searches`: an answer a claim. `frontiers`: which conditions the claims need. Answers about changed claims are left out.
        """
        path = self.folder / "searches.json"
        if not path.exists():
            return {"searches": (), "frontiers": ()}
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {one["id"]: one for one in content["searches"]
                 if one["id"] in self.entries and self.entries[one["id"]].digest == one["digest"]}  # fmt: skip
        return {
            "searches": tuple(known.values()),
            "frontiers": tuple(one for one in content["frontiers"] if one["claim"] in known),
        }

    # Loaded when asked for ----------------------------------------------------------------------------------------------

    @checks_arguments
    def module(self, name: str) -> Any:
        """One of the study's modules, loaded."""
        try:
            return importlib.import_module(f"{self.package}.{name}")
        except (Exception, SystemExit) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            where = place_of(error, self.folder)
            raise BadInput(
                f"the module '{name}' of the study '{self.id}' cannot be loaded: {why}{where}"
            ) from error

    @cached_property
    def _figures(self) -> "dict[str, Figure]":
        from lemmata.meaning import unresolved

        found = {figure.id: figure for figure in self.module("figures").FIGURES}
        claims = [claim for figure in found.values() for claim in figure.claims]
        names = ", ".join(unresolved([(claim.number, claim.cells, claim.conditions) for claim in claims]))
        require(not names, f"the claims of '{self.id}' use what does not exist: {names}.")
        return found

    @property
    def all_figures(self) -> "tuple[Figure, ...]":
        """Its figures, as they stand in the source."""
        return tuple(self._figures.values())

    @checks_arguments
    def figure(self, id: str) -> "Figure":
        if id not in self._figures and id not in self.figures:
            raise unknown(f"figure of {self.id}", id, self.figures)
        if id not in self._figures:
            raise BadInput(
                f"the figure '{id}' of '{self.id}' is registered, but gone; run: lemmata lock {self.id}"
            )
        return replace(self._figures[id], study=self.id, draw_number=self.draw_number(id) if self.lock else 0)

    @cached_property
    def claims(self) -> "tuple[Claim, ...]":
        """The claims of all its figures. Each knows its figure, and made results on which it holds."""
        return tuple(
            replace(claim, figure=figure.id, upheld_by=claim.upheld_by or figure.upheld_by)
            for figure in self.all_figures
            for claim in figure.claims
        )

    @checks_arguments
    def claim(self, id: str) -> "Claim":
        known = {claim.id: claim for claim in self.claims}
        if id not in known:
            raise unknown(f"claim of {self.id}", id, known)
        return known[id]

    @property
    def ledger(self) -> tuple[Statement, ...]:
        """The numbered statements of the paper, and what each is held against."""
        return self.module("ledger").LEDGER

    def template(self) -> Any:
        """The trial that `predict` starts from."""
        return self.module("figures").template()

    @checks_arguments
    def predict(self, trial: Any) -> "tuple[list[Condition], list[Prediction]]":
        """The conditions of the theorems at a trial, with margins, and what they predict for it."""
        theory, own = self.module("theory"), type(self.template())
        require(
            isinstance(trial, own),
            f"the formulas of '{self.id}' take a {own.__name__} (change the one that `template()` gives), "
            f"not a {type(trial).__name__}.",
        )
        return self.computed(lambda: theory.predict(trial))

    @cached_property
    def answer(self) -> "Answer | None":
        """How it answers what a training needs: `ANSWER` of its module `answer`, or None without such a module."""
        return self.module("answer").ANSWER if (self.folder / "answer.py").exists() else None

    @checks_arguments
    def computed(self, formula: Callable[[], Any]) -> Any:
        """Return what a formula of the study gives; raise `BadInput` where it leaves the numbers of a computer."""
        from jax.errors import JaxRuntimeError
        from numpy.linalg import LinAlgError

        try:
            return formula()
        except (ArithmeticError, MemoryError, LinAlgError, JaxRuntimeError) as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise BadInput(
                f"the formulas of '{self.id}' leave the numbers of a computer here: {why}"
            ) from error

    @checks_arguments
    def check(
        self, *results: "xr.Dataset", only: str | None = None, rate: float | None = None, inside: bool = False
    ) -> "Verdicts":
        """Judge every claim that bears on these results, together.

        `results`: of one figure or several, under one reading or several.
        `only`: the id of the one claim to judge.
        `rate`: the false discovery rate of all that are judged; by default 5 %, less for repeated looks.
        `inside`: whether only cells that meet a claim's conditions count.
        """
        from lemmata.measure.compare import Verdicts
        from lemmata.measure.judge import judge, together, with_inner
        from lemmata.results import require_results_of

        if only is not None:
            self.claim(only)
        require(
            rate is None or 0 < rate < 1,
            f"the rate of false discoveries lies between 0 and 1, unlike {rate}.",
        )
        for one in results:
            require_results_of(one, self.id, self.figures)
        pairs = [
            (claim, one)
            for claim in self.claims
            for one in results
            if claim.figure == one.attrs["figure"] and only in (None, claim.id)
        ]
        judged = together([judge(claim, one, inside) for claim, one in pairs], rate, self.family_sizes)
        return Verdicts(
            v if inside else with_inner(v, claim, one) for v, (claim, one) in zip(judged, pairs, strict=True)
        )

    @property
    def family_sizes(self) -> Mapping[str, int]:
        """How many verdicts each family of claims has, as registered: one for every claim and reading."""
        from lemmata.measure.compare import family_of

        sizes: dict[str, int] = {}
        for one in self.entries.values():
            readings = len(self.figure(one.figure).readings) or 1
            name = family_of(one.source)
            sizes[name] = sizes.get(name, 0) + readings
        return sizes

    @checks_arguments
    def finding(self, line: Statement) -> str:
        """What came out for a statement of the ledger: the published verdicts of its claims, and what else is known."""
        words = [line.finding] if line.finding else []
        for id in [w.removeprefix("claim ") for w in line.held_against.split(", ") if w.startswith("claim ")]:
            own = [v for v in self.published if v["id"] == id]
            outcome = " / ".join(dict.fromkeys(v["verdict"] for v in own)) or "not judged yet"
            stale = any(v["draw"] != self.draw_number(self.entries[id].figure) for v in own)
            loose = next((f" ({v['looseness']})" for v in own if v["looseness"]), "")
            words.append(f"{id}: {outcome}{loose}{', before it was changed' if stale else ''}")
        return "; ".join(words)

    def __repr__(self) -> str:
        return f"Study('{self.id}': {len(self.figures)} figures, {len(self.entries)} claims)"

    def _repr_html_(self) -> str:
        from html import escape

        figures = "".join(
            f"<li><code>{id}</code>: {escape(title)}</li>" for id, title in self.figures.items()
        )
        return f"<b>{escape(self.title)}</b><p>{escape(self.summary)}</p><ul>{figures}</ul>{len(self.entries)} claims"


FEWEST_LETTERS = 4
"""The number of letters that identify a study, if only one id begins with them."""


@cache
def studies() -> dict[str, Study]:
    """Return every study by its id: the lab's own, then those that other packages announce (`lemmata.studies`).

    >>> "multihead" in studies()
    True
    """
    own = importlib.import_module("lemmata.studies")  # `lemmata.studies` is this function
    found = [
        importlib.import_module(f"{own.__name__}.{m.name}").STUDY for m in pkgutil.iter_modules(own.__path__)
    ]
    known = {study.id: study for study in found}
    for point in entry_points(group="lemmata.studies"):
        try:
            announced = point.load()
            require(isinstance(announced, Study), f"it is a {type(announced).__name__}, not a Study")
            require(announced.id not in known, f"the id '{announced.id}' is taken already")
            announced.entries  # noqa: B018  (one that is not registered loads its figures here)
            known[announced.id] = announced
        except (Exception, SystemExit) as error:  # a broken plug-in must not take the others along
            why = " ".join(f"{type(error).__name__}: {error}".split()).removeprefix("BadInput: ")
            note(f"the study '{point.name}' of another package ({point.value}) is left out: {why}.")
    return known


@checks_arguments
def study(id: str) -> Study:
    """Return the study with this id. Case, underscores and a missing end do not matter where only one study fits.

    >>> study("multihead")
    Study('multihead': ... figures, ... claims)
    >>> study("Benign_Overfitting").id, study("chain").id
    ('benign-overfitting', 'chain-of-thought')
    """
    known, plain = studies(), id.lower().replace("_", "-")
    fitting = [name for name in known if name.startswith(plain)] if len(plain) >= FEWEST_LETTERS else []
    if plain in known or len(fitting) == 1:
        return known[plain if plain in known else fitting[0]]
    raise unknown("study", id, known)


@checks_arguments
def study_or_package(name: str) -> Study:
    """Return the study with this id, or the one in the package of this name, whether or not it is announced.

    >>> study_or_package("lemmata.studies.multihead").id
    'multihead'
    """
    if name in studies() or not all(word.isidentifier() for word in name.split(".")):
        return study(name)
    try:
        found = importlib.import_module(name).STUDY
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith(name.partition(".")[0]):
            return study(name)  # there is no such package either
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise BadInput(f"the package '{name}' has no study that can be loaded: {why}.") from error
    require(isinstance(found, Study), f"STUDY of the package '{name}' is no Study.")
    return found
