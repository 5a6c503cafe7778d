"""Verdicts as a record that a study publishes (`verdicts.json`), and as a table in Markdown for its README."""

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any

from lemmata.errors import printable
from lemmata.measure.compare import Verdict
from lemmata.study import Study


def record(study: Study, verdicts: Sequence[Verdict], scale: str, minutes: float | None = None) -> str:
    """Return what a study publishes: every verdict with its number, interval, seeds and draw number, as JSON, a line a verdict.

    `minutes`: the time of one core that all trainings took; by default that of the last publication.

    What it has published of other claims stays, as long as their draw is the registered one.
    """
    now = {(v.id, v.reading): _plain(v) for v in verdicts}
    known = study.entries
    kept = {
        (old["id"], old["reading"]): old
        for old in study.published
        if old["id"] in known and old["draw"] == study.draw_number(known[old["id"]].figure)
    }
    both = kept | now
    order = sorted(both, key=lambda which: list(known).index(which[0]))
    lines = [f"  {json.dumps(both[which])}" for which in order]
    minutes = study.publication.get("minutes") if minutes is None else round(minutes, 1)
    return (
        f'{{"scale": {json.dumps(scale)}, "minutes": {json.dumps(minutes)}, "verdicts": [\n'
        + ",\n".join(lines)
        + "\n]}\n"
    )


def _plain(v: Verdict) -> dict[str, Any]:
    m = v.measured
    numbers = {name: float(f"{getattr(m, name):.4g}") for name in ("value", "low", "high")}
    return {
        "id": v.id,
        "reading": v.reading,
        "verdict": v.verdict,
        "word": v.word,
        "source": v.source,
        "scope": v.scope,
        "inside": list(v.inside_cells) if v.inside_cells else None,
        "cells": v.cells,
        **{name: number if isfinite(number) else None for name, number in numbers.items()},
        "looseness": v.looseness,
        "seeds": v.seeds,
        "draw": v.draw,
    }


def markdown(study: Study, verdicts: Sequence[Verdict]) -> str:
    """Return a table for every figure, its claims in rows and the readings of the paper side by side."""
    parts = []
    for id, title in study.figures.items():
        claims = {claim.id for claim in study.bearing_on(id)}
        own = [v for v in verdicts if v.id in claims]
        if own:
            parts.append(f"**{code(id)}**: {text(title)}\n\n{_table(own)}\n")
    return "\n".join(parts)


def _table(verdicts: Sequence[Verdict]) -> str:
    readings = list(dict.fromkeys(v.reading for v in verdicts))
    head = [
        "claim",
        *(text(reading) or "measured" for reading in readings),
        "holds within",
        "cells inside",
        "draw",
    ]
    rows: dict[str, list[Verdict]] = {}
    for v in verdicts:
        rows.setdefault(v.id, []).append(v)
    lines = [head, ["---"] * len(head)]
    for id, own in rows.items():
        said: Mapping[str, str] = {v.reading: _said(v) for v in own}
        first = own[0]
        lines.append(
            [
                code(id),
                *(said.get(r, "") for r in readings),
                text(first.within),
                _inside(first),
                str(first.draw),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _said(v: Verdict) -> str:
    m = v.measured
    number = "none" if not m.exists else f"{m.value:.3g}" if m.exact else f"{m.value:.3g} {m.interval}"
    outcome = f"**{v.verdict}**" if v.verdict == "fails" else text(v.verdict)
    return f"{outcome} {number}"


def text(words: str) -> str:
    """Escape what Markdown or HTML would obey; studies and readings may be other people's."""
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", escape(printable(words), quote=False))


def code(name: str) -> str:
    """Return a name in a code span, where only its own end and the end of a table cell have a meaning."""
    return f"`{printable(name).replace('`', chr(39)).replace('|', chr(92) + '|')}`"


def _inside(v: Verdict) -> str:
    """Return in how many of the cells every condition is met, taking each by itself: the fewest."""
    return min((f"{c.met} of {c.cells}" for c in v.conditions), key=lambda s: int(s.split()[0]), default="")
