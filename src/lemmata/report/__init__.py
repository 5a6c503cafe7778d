"""One self-contained HTML page from stored results: what came out first, then every figure with the data behind it."""

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from lemmata.draw.style import statuses
from lemmata.measure.compare import Verdict
from lemmata.report.claims import Claims, anchor, decision, outcome, tally
from lemmata.report.code import sources_of
from lemmata.report.explore import as_script, explorable
from lemmata.report.maths import with_maths
from lemmata.study import Study

if TYPE_CHECKING:
    import xarray as xr

    from lemmata.figure import Figure

ROOM = Path(__file__).parent
CELL = Path("runs") / "cell"
"""Where the command of a single cell puts its results."""

IMAGES = {".png": "image/png", ".svg": "image/svg+xml"}


@runtime_checkable
class Ordered(Protocol):
    """What the report must know of an order."""

    @property
    def command(self) -> str: ...

    @property
    def axes(self) -> Mapping[str, Any]: ...

    @property
    def out(self) -> Path | str | None: ...


@dataclass(frozen=True)
class Chapter:
    """A figure under one reading, as the report shows it: its picture, how it was read, how to make it again, what it decides.

    `version` names the reading of the paper where there are several; `runs` says how many seeds at which scale there are, and
    how the runs ended. `data` is what a reader explores. `own` is the folder of a run with settings of one's own, whose
    verdicts do not count among the study's. `made` says with which versions the results were made, and when.
    """

    id: str
    title: str
    setup: str
    command: str
    picture: Path | None
    verdicts: Sequence[Verdict]
    version: str = ""
    runs: str = ""
    data: Mapping[str, Any] | None = None
    own: str = ""
    made: Mapping[str, str] = field(default_factory=dict)


Shown = tuple["Figure", Ordered, "xr.Dataset", Sequence[Verdict], Path | None, Mapping[str, Any]]


def chapters(study: Study, shown: "Iterable[Shown]", own: bool = False) -> list[Chapter]:
    """Return the chapters of a study.

    `shown`: for every figure (and reading) the figure, its order, its results, their verdicts, the picture, and the manifest
        of its store.
    `own`: whether these are runs with settings of one's own.
    """
    return [
        Chapter(
            figure.id,
            study.figures[figure.id],
            figure.setup,
            order.command,
            picture,
            verdicts,
            results.attrs.get("reading", ""),
            _runs(results),
            explorable(results, _command_of_a_cell(order), not order.axes),
            str(order.out) if own else "",
            _made(manifest),
        )
        for figure, order, results, verdicts, picture, manifest in shown
    ]


def own_chapter(results: "xr.Dataset", picture: Path | None) -> Chapter:
    """Return the chapter of results that no command made."""
    title = f"A sweep over {', '.join(str(dim) for dim in results['status'].dims if dim != 'seed')}"
    data = explorable(results)
    return Chapter("sweep", title, "", "", picture, (), runs=_runs(results), data=data, own="Python")


def _command_of_a_cell(order: Ordered) -> str:
    """Return the command to which a cell adds its place: it runs in a folder of its own, so that no results are replaced."""
    return order.command if order.axes else replace(order, out=CELL).command  # pyright: ignore[reportArgumentType]


def page(studies: Sequence[tuple[Study, Sequence[Chapter]]]) -> str:
    """Return the whole page; nothing is loaded from anywhere else."""
    body = "".join(_study(study, parts) for study, parts in studies)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Lemmata report</title>'
        '<link rel="icon" href="data:,">'
        f"<style>{katex_style()}{_asset('style.css')}</style></head><body><div class='page'>"
        f"{_contents(studies)}<main>{_title(studies)}{body}</main></div>"
        f"<script>{_asset('katex/katex.min.js')}</script><script>{_asset('report.js')}</script></body></html>\n"
    )


def katex_style() -> str:
    """Return the style of formulas with its fonts inside."""

    def inside(found: re.Match[str]) -> str:
        font = base64.b64encode((ROOM / "katex" / found[1]).read_bytes()).decode()
        return f"url(data:font/woff2;base64,{font})"

    return re.sub(r"url\((fonts/[\w-]+\.woff2)\)", inside, _asset("katex/katex.min.css"))


def _asset(name: str) -> str:
    return (ROOM / name).read_text(encoding="utf-8")


def _runs(results: "xr.Dataset") -> str:
    seeds, attrs = results.sizes.get("seed", 1), results.attrs
    said = [f"{seeds} seed{'' if seeds == 1 else 's'}", f"{attrs.get('scale', 'own')} scale"]
    said.append(f"draw {attrs.get('draw', 0)}")
    if attrs.get("looks", 1) > 1:
        said.append(f"{attrs['looks']} looks")
    ended = ", ".join(f"{count} {name}" for name, count in statuses(results).items())
    return ", ".join(said) + (f"; runs: {ended}" if ended else "") + "."


def _made(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return with what results were made: versions of packages, the platform, and when the run began."""
    versions = manifest.get("versions")
    found = {str(k): str(v) for k, v in versions.items()} if isinstance(versions, Mapping) else {}
    for word in ("platform", "started"):
        if isinstance(manifest.get(word), str):
            found[word] = manifest[word]
    return found


# Title page and contents -----------------------------------------------------------------------------------------------


def _title(studies: Sequence[tuple[Study, Sequence[Chapter]]]) -> str:
    everything = [verdict for _, parts in studies for verdict in _verdicts(parts)]
    rows = "".join(
        f'<tr><th scope="row"><a href="#{anchor(study.id)}">{escape(study.title)}</a></th>'
        f"<td>{_headlines(study, parts)}</td></tr>"
        for study, parts in studies
    )
    search = everything and (
        '<div class="tools" role="search"><label>Find a claim <input id="search" type="search"></label>'
        '<label>that <select id="outcome"><option value="">has any verdict</option><option>holds</option>'
        "<option>fails</option><option value='inconclusive'>is open</option></select></label>"
        '<span id="count" role="status"></span></div>'
    )
    return (
        "<h1>What the theorems say, and what the trainings did</h1>"
        f"<p>Claims of {len(studies)} stud{'y' if len(studies) == 1 else 'ies'}: {tally(everything)}.</p>"
        f'<table class="headlines">{rows}</table>{search or ""}'
    )


def _headlines(study: Study, parts: Sequence[Chapter]) -> str:
    main = [v for v in _verdicts(parts) if v.headline]
    if not main:
        return tally(_verdicts(parts))
    return ", ".join(
        f'<a href="#{anchor(study.id, "claim", v.id)}">{outcome(decision(v), f"{v.id}: {v.word}")}</a>'
        for v in main
    )


def _contents(studies: Sequence[tuple[Study, Sequence[Chapter]]]) -> str:
    rows = "".join(
        f'<li><a href="#{anchor(s.id)}">{escape(s.title)}</a><ul>{_figures(s, parts)}</ul></li>'
        for s, parts in studies
    )
    inside = f"<details open><summary>Contents</summary><ul>{rows}</ul></details>"
    inside = f"<details open><summary>Contents</summary><ul>{rows}</ul></details>"
    return f'<nav class="contents" aria-label="Contents">{inside}</nav>'


def _figures(study: Study, parts: Sequence[Chapter]) -> str:
    ids = dict.fromkeys((chapter.id, chapter.own) for chapter in parts)
    return "".join(
        f'<li><a href="#{anchor(study.id, id, *filter(None, [own]))}">{escape(own or id)}</a></li>'
        for id, own in ids
    )


# A study ---------------------------------------------------------------------------------------------------------------


def _study(study: Study, parts: Sequence[Chapter]) -> str:
    verdicts = _verdicts(parts)
    judged = [v for v in verdicts if v.kind != "identity"]
    identities = [v for v in verdicts if v.kind == "identity"]
    sources = sources_of(study.folder, {v.id for v in verdicts}) if study.lock else {}
    claims = Claims(study, sources)
    figures = "".join(
        _figure(study, list(versions))
        for _, versions in groupby(parts, lambda chapter: (chapter.id, chapter.own))
    )
    table = f"<h3>Claims</h3><p>{tally(verdicts)}.</p>{claims.table(judged)}" if verdicts else ""
    apart = (
        "<h3>Identities</h3><p class='note'>Equalities that hold to rounding or not at all; they do not count among the "
        f"claims that are judged together.</p>{claims.table(identities)}"
        if identities
        else ""
    )
    version = (
        f"<p class='note'>Numbers of theorems, equations and figures are those of: {escape(study.version)}.</p>"
        if study.version
        else ""
    )
    return (
        f'<section><h2 id="{anchor(study.id)}">{escape(study.title)}</h2><p>{with_maths(study.summary)}</p>{version}'
        f"{table}{apart}{figures}{_code(study, sources)}{_provenance(parts)}"
        f"<details><summary>Citation</summary><pre>{escape(study.citation.strip())}</pre></details></section>"
    )


def _verdicts(parts: Sequence[Chapter]) -> list[Verdict]:
    return [verdict for chapter in parts if not chapter.own for verdict in chapter.verdicts]


def _code(study: Study, sources: Mapping[str, tuple[str, str]]) -> str:
    shown = "".join(
        f'<details class="code" id="{anchor(study.id, "code", id)}"><summary>{escape(id)} ({escape(where)})</summary>'
        f"<pre>{escape(text)}</pre></details>"
        for id, (where, text) in sources.items()
    )
    return f'<details class="code"><summary>Code of the claims</summary>{shown}</details>' if shown else ""


def _provenance(parts: Sequence[Chapter]) -> str:
    """Return with which versions the results were made, and the command of every figure."""
    commands = "".join(f"<li><code>{escape(one.command)}</code></li>" for one in parts if one.command)
    made = dict.fromkeys(
        ", ".join(f"{name} {value}" for name, value in chapter.made.items() if name != "started")
        for chapter in parts
        if chapter.made
    )
    starts = sorted(chapter.made["started"] for chapter in parts if "started" in chapter.made)
    dates = f"<p>Runs began from {escape(starts[0])} to {escape(starts[-1])}.</p>" if starts else ""
    versions = "".join(f"<p>{escape(said)}</p>" for said in made)
    return f"<details><summary>How these results were made</summary>{dates}{versions}<ul>{commands}</ul></details>"


def _figure(study: Study, versions: Sequence[Chapter]) -> str:
    first = versions[0]
    decided = ", ".join(
        outcome(decision(v), v.id)
        if first.own
        else f'<a href="#{anchor(study.id, "claim", v.id)}">{outcome(decision(v), v.id)}</a>'
        for chapter in versions
        for v in chapter.verdicts
    )
    shown = "".join(_version(one, len(versions) > 1) for one in versions)
    name = f"{first.id}, settings of your own in {first.own}" if first.own else first.id
    said = f'<p class="note">{with_maths(first.setup)}</p>'
    setup = f'<details class="figure-text" open><summary>How it was read</summary>{said}</details>'
    places = [study.id, first.id, *filter(None, [first.own])]
    word = "These settings give" if first.own else "Decides"
    return (
        f'<article><h3 id="{anchor(*places)}">{escape(name)}: {with_maths(first.title)}</h3>{shown}'
        + (setup if first.setup else "")
        + (f'<p class="note">{word}: {decided}.</p>' if decided else "")
        + "</article>"
    )


def _version(chapter: Chapter, several: bool) -> str:
    picture = ""
    if chapter.picture is not None:
        kind, content = (
            IMAGES[chapter.picture.suffix],
            base64.b64encode(chapter.picture.read_bytes()).decode(),
        )
        picture = f'<img alt="{escape(chapter.title)}" src="data:{kind};base64,{content}">'
    name = f"Reading: {chapter.version}. " if several and chapter.version else ""
    data = (
        "<details open><summary>The data behind it, cell by cell</summary>"
        f'<div class="explore">{as_script(chapter.data)}</div></details>'
        if chapter.data
        else ""
    )
    return (
        f"<figure>{picture}"
        f"<figcaption>{escape(name + chapter.runs)} <code>{escape(chapter.command)}</code></figcaption></figure>{data}"
    )
