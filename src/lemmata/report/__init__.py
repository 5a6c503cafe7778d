"""One self-contained HTML page from stored results: verdicts first, then every figure with how the paper was read."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from lemmata.measure.compare import Verdict
from lemmata.study import Study

STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
h1, h2, h3 { font-weight: normal; line-height: 1.2; }
h2 { border-top: 1px solid #ccc; padding-top: 1.5rem; margin-top: 3rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; } td, th { text-align: left; vertical-align: top;
padding: 0.35rem 0.7rem 0.35rem 0; border-bottom: 1px solid #eee; } th { font-weight: normal; color: #666; }
img { max-width: 100%; } .holds { color: #00694e; } .fails { color: #b34400; font-weight: bold; }
.inconclusive { color: #777; } .note { color: #666; font-size: 0.85rem; }
code { font-size: 0.85em; } nav a { margin-right: 1rem; }
details { color: #555; font-size: 0.85rem; }
"""


@dataclass(frozen=True)
class Chapter:
    """A figure as the report shows it: its picture, how it was read, how to make it again, and what it decides."""

    id: str
    title: str
    reading: str
    command: str
    picture: Path
    verdicts: Sequence[Verdict]


def page(studies: Sequence[tuple[Study, Sequence[Chapter]]]) -> str:
    """The whole page; nothing is loaded from anywhere else."""
    menu = "".join(f'<a href="#{s.id}">{escape(s.title)}</a>' for s, _ in studies)
    body = "".join(_study(study, chapters) for study, chapters in studies)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Lemmata report</title><style>{STYLE}</style>'
        f"<h1>What the theorems say, and what the trainings did</h1><nav>{menu}</nav>{body}</html>\n"
    )


def _study(study: Study, chapters: Sequence[Chapter]) -> str:
    verdicts = [v for chapter in chapters for v in chapter.verdicts]
    counts = {o: sum(v.verdict == o for v in verdicts) for o in ("holds", "fails", "inconclusive")}
    summary = ", ".join(f'<span class="{o}">{n} {o}</span>' for o, n in counts.items())
    return (
        f'<h2 id="{study.id}">{escape(study.title)}</h2><p>{escape(study.summary)}</p>'
        f"<p>{len(verdicts)} claims judged: {summary}.</p>{_table(verdicts)}"
        + "".join(_chapter(chapter) for chapter in chapters)
        + f"<details><summary>Citation</summary><pre>{escape(study.citation.strip())}</pre></details>"
    )


def _table(verdicts: Sequence[Verdict]) -> str:
    head = "<tr><th>claim</th><th>verdict</th><th>predicted</th><th>measured</th></tr>"
    return f"<table>{head}{''.join(_row(v) for v in verdicts)}</table>"


def _row(v: Verdict) -> str:
    m = v.measured
    measured = f"{m.value:.3g} [{m.low:.3g}, {m.high:.3g}]" if m.exists else "none"
    note = f'<div class="note">{escape(v.note)}</div>' if v.note else ""
    missed = [c for c in v.conditions if c.holds is False]
    items = "".join(
        f"<li>{escape(c.name)}: by a factor {1 / c.margin:.3g}</li>" for c in missed if c.margin > 0
    )
    conditions = (
        f"<details><summary>{len(missed)} conditions violated</summary><ul>{items}</ul></details>"
        if missed
        else ""
    )
    return (
        f"<tr><td>{escape(v.statement)}{note}{conditions}</td><td class='{v.verdict}'>{v.verdict}</td>"
        f"<td>{escape(v.predicted)}</td><td>{measured}</td></tr>"
    )


def _chapter(chapter: Chapter) -> str:
    picture = base64.b64encode(chapter.picture.read_bytes()).decode()
    return (
        f"<h3>{escape(chapter.id)}: {escape(chapter.title)}</h3>"
        f'<img alt="{escape(chapter.title)}" src="data:image/png;base64,{picture}">'
        f'<p class="note">{escape(chapter.reading)} <code>{escape(chapter.command)}</code></p>'
    )
