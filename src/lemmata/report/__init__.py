"""One self-contained HTML page from stored results: verdicts first, then every figure with how the paper was read."""

import base64
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lemmata.draw.style import statuses
from lemmata.measure.compare import ConditionCount, Verdict
from lemmata.study import Study

if TYPE_CHECKING:
    import xarray as xr

    from lemmata.figure import Figure

STYLE = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
OUTCOMES = {"holds": "✓", "fails": "✗", "inconclusive": "?"}
IMAGES = {".png": "image/png", ".svg": "image/svg+xml"}


class Ordered(Protocol):
    """What the report must know of an order."""

    @property
    def command(self) -> str: ...


@dataclass(frozen=True)
class Chapter:
    """A figure under one reading, as the report shows it: its picture, how it was read, how to make it again, what it decides.

    `version` names the reading of the paper where there are several; `runs` says how many seeds at which scale there are, and
    how the runs ended.
    """

    id: str
    title: str
    setup: str
    command: str
    picture: Path
    verdicts: Sequence[Verdict]
    version: str = ""
    runs: str = ""


def chapters(
    study: Study, shown: "Iterable[tuple[Figure, Ordered, xr.Dataset, Sequence[Verdict], Path]]"
) -> list[Chapter]:
    """Return the chapters of a study.

    `shown`: for every figure (and reading) the figure, its order, its results, their verdicts, and the picture.
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
        )
        for figure, order, results, verdicts, picture in shown
    ]


def page(studies: Sequence[tuple[Study, Sequence[Chapter]]]) -> str:
    """Return the whole page; nothing is loaded from anywhere else."""
    body = "".join(_study(study, parts) for study, parts in studies)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Lemmata report</title>'
        f"<style>{STYLE}</style></head><body>"
        f"<h1>What the theorems say, and what the trainings did</h1>{_contents(studies)}{body}</body></html>\n"
    )


def _runs(results: "xr.Dataset") -> str:
    seeds, attrs = results.sizes.get("seed", 1), results.attrs
    said = [f"{seeds} seed{'' if seeds == 1 else 's'}", f"{attrs.get('scale', 'own')} scale"]
    said.append(f"draw {attrs.get('draw', 0)}")
    if attrs.get("looks", 1) > 1:
        said.append(f"{attrs['looks']} looks")
    ended = ", ".join(f"{count} {name}" for name, count in statuses(results).items())
    return ", ".join(said) + (f"; runs: {ended}" if ended else "") + "."


# Contents --------------------------------------------------------------------------------------------------------------


def _contents(studies: Sequence[tuple[Study, Sequence[Chapter]]]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{_anchor(s.id)}">{escape(s.title)}</a></td>'
        f"<td>{_tally(_verdicts(parts))}</td>"
        f"<td>{_figures(s, parts)}</td></tr>"
        for s, parts in studies
    )
    head = "<tr><th>study</th><th>claims</th><th>figures</th></tr>"
    return f'<nav><h2>Contents</h2><table class="contents">{head}{rows}</table></nav>'


def _figures(study: Study, parts: Sequence[Chapter]) -> str:
    ids = dict.fromkeys(chapter.id for chapter in parts)
    return ", ".join(f'<a href="#{_anchor(study.id, id)}">{escape(id)}</a>' for id in ids)


def _tally(verdicts: Sequence[Verdict]) -> str:
    judged = [v for v in verdicts if v.kind != "identity"]
    counts = Counter(
        (v.verdict, v.word) for v in sorted(judged, key=lambda v: list(OUTCOMES).index(v.verdict))
    )
    said = [_outcome(verdict, f"{many} {word}") for (verdict, word), many in counts.items()]
    exact = len(verdicts) - len(judged)
    said += [f"{exact} identit{'y' if exact == 1 else 'ies'}"] if exact else []
    return ", ".join(said) or "none"


def _outcome(outcome: str, text: str) -> str:
    return f'<span class="{outcome}">{OUTCOMES[outcome]}&nbsp;{escape(text)}</span>'


# A study ---------------------------------------------------------------------------------------------------------------


def _study(study: Study, parts: Sequence[Chapter]) -> str:
    verdicts = _verdicts(parts)
    judged = [v for v in verdicts if v.kind != "identity"]
    identities = [v for v in verdicts if v.kind == "identity"]
    figures = "".join(_figure(study, list(versions)) for _, versions in groupby(parts, lambda c: c.id))
    apart = (
        "<h3>Identities</h3><p class='note'>Equalities that hold to rounding or not at all; they do not count among the "
        f"claims that are judged together.</p>{_table(study, identities)}"
        if identities
        else ""
    )
    version = (
        f"<p class='note'>Numbers of theorems, equations and figures are those of: {escape(study.version)}.</p>"
        if study.version
        else ""
    )
    return (
        f'<section><h2 id="{_anchor(study.id)}">{escape(study.title)}</h2><p>{escape(study.summary)}</p>{version}'
        f"<h3>Claims</h3><p>{_tally(verdicts)}.</p>{_table(study, judged)}{apart}{figures}"
        f"<details><summary>Citation</summary><pre>{escape(study.citation.strip())}</pre></details></section>"
    )


def _verdicts(parts: Sequence[Chapter]) -> list[Verdict]:
    return [verdict for chapter in parts for verdict in chapter.verdicts]


def _figure(study: Study, versions: Sequence[Chapter]) -> str:
    first = versions[0]
    decided = ", ".join(_outcome(v.verdict, v.id) for v in _verdicts(versions))
    shown = "".join(_version(one, len(versions) > 1) for one in versions)
    return (
        f'<article><h3 id="{_anchor(study.id, first.id)}">{escape(first.id)}: {escape(first.title)}</h3>{shown}'
        f'<p class="note">{escape(first.setup)}</p>'
        + (f'<p class="note">Decides: {decided}.</p>' if decided else "")
        + "</article>"
    )


def _version(chapter: Chapter, several: bool) -> str:
    kind = IMAGES[chapter.picture.suffix]
    picture = base64.b64encode(chapter.picture.read_bytes()).decode()
    name = f"Reading: {chapter.version}. " if several and chapter.version else ""
    return (
        f'<figure><img alt="{escape(chapter.title)}" src="data:{kind};base64,{picture}">'
        f"<figcaption>{escape(name + chapter.runs)} <code>{escape(chapter.command)}</code></figcaption></figure>"
    )


# Verdicts --------------------------------------------------------------------------------------------------------------


def _table(study: Study, verdicts: Sequence[Verdict]) -> str:
    if not verdicts:
        return ""
    head = "".join(f"<th>{word}</th>" for word in ("claim", "verdict", "predicted", "measured", "holds if"))
    claims: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        claims.setdefault(verdict.id, []).append(verdict)
    body = "".join(_claim(study, readings) for readings in claims.values())
    return f'<table class="verdicts"><thead><tr>{head}</tr></thead>{body}</table>'


def _claim(study: Study, readings: Sequence[Verdict]) -> str:
    """Return a claim as one block of the table: a row for each reading, side by side."""
    first = readings[0]
    known = {claim.id: claim for claim in study.claims}.get(first.id)
    source = f"{escape(known.source.where)}, " if known else ""
    figure = f', <a href="#{_anchor(study.id, known.figure)}">{escape(known.figure)}</a>' if known else ""
    why = f"<details><summary>why</summary>{escape(known.holds.because)}</details>" if known else ""
    cells = [
        f'<td rowspan="{len(readings)}">{escape(first.statement)}'
        f'<div class="note"><b>{escape(first.id)}</b>, {source}{escape(first.kind)}{figure}</div></td>'
    ]
    rows = []
    for place, verdict in enumerate(readings):
        own = [_judged(verdict), f"<td>{escape(verdict.predicted)}</td>", _measured(verdict)]
        own.append(f"<td>{escape(verdict.within)}{why if place == 0 else ''}</td>")
        rows.append(f"<tr>{''.join(cells if place == 0 else [])}{''.join(own)}</tr>")
    return f"<tbody>{''.join(rows)}</tbody>"


def _judged(v: Verdict) -> str:
    """Return the word of the verdict, under which reading, on which draw, and what more seeds could do."""
    said = [f"reading: {v.reading}"] if v.reading else []
    said += [f"{number} excluded" for number in v.excluded]
    said.append(f"draw {v.draw}, {v.seeds} seed{'' if v.seeds == 1 else 's'}")
    said += [f"{v.looks} looks"] if v.looks > 1 else []
    said += [f"about {v.more_seeds} more seeds would decide"] if v.more_seeds else []
    return f"<td>{_outcome(v.verdict, v.word)}{_notes(said)}</td>"


def _measured(v: Verdict) -> str:
    """Return the number with its interval and range, what was left out, and the conditions over the cells it comes from."""
    m = v.measured
    value = "none" if not m.exists else f"{m.value:.3g}" if m.exact else f"{m.value:.3g} {m.interval}"
    seen = v.seen or m.seen
    said = [f"over {seen}"] if seen else []
    if len(m.parts) == 2:
        lower, upper = m.parts
        said.append(
            f"lower part {lower.value:.3g} {lower.interval}, upper {upper.value:.3g} {upper.interval}"
        )
    if v.violations is not None and v.violations.exists and "violate" not in v.note:
        said.append(f"share of runs that violate it {v.violations.value:.3g} {v.violations.interval}")
    said += [v.looseness] if v.looseness else []
    lost = ", ".join(f"{count} {status}" for status, count in v.left_out.items() if count)
    said += [f"runs left out: {lost}"] if lost else []
    said += [v.note] if v.note else []
    said += ["only cells that meet all conditions"] if v.inside else []
    return f"<td>{value}{_notes(said)}{_conditions(v.conditions)}</td>"


def _conditions(conditions: Sequence[ConditionCount]) -> str:
    """Return how many conditions are met in every cell, and the worst of the others.

    All others, with the number of cells and the worst margin, are folded.
    """
    if not conditions:
        return ""
    missed = [c for c in conditions if c.met < c.cells]
    items = "".join(
        f"<li>{escape(c.name)}: in {c.met} of {c.cells} cell{'' if c.cells == 1 else 's'}, {_margin(c)}</li>"
        for c in missed
    )
    said = f"{len(conditions) - len(missed)} of {len(conditions)} conditions met in all cells"
    if not missed:
        return f'<div class="note">{said}</div>'
    worst = min(missed, key=lambda c: c.worst_margin)
    summary = escape(f"{said}; worst: {worst.name}, {_margin(worst)}")
    return f"<details><summary>{summary}</summary><ul>{items}</ul></details>"


def _margin(c: ConditionCount) -> str:
    by = f"missed by a factor {1 / c.worst_margin:.3g}" if 0 < c.worst_margin < 1 else ""
    by = by or f"worst margin {c.worst_margin:.3g}"
    return by + (" (its constant set to 1)" if c.holds is None else "")


def _notes(said: Iterable[str]) -> str:
    return "".join(f'<div class="note">{escape(one)}</div>' for one in said)


def _anchor(*names: str) -> str:
    return escape("/".join(names))
