"""What the commands print: verdicts, tables and JSON. In a terminal they fit its width; in a pipe tabs separate columns."""

import csv
import json
import math
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lemmata.measure.compare import ConditionCount, Verdict

NARROWEST = 60
NARROWEST_TITLE = 20
GLYPHS = {"holds": "✓", "fails": "✗", "inconclusive": "?"}
COLOURS = {"holds": "green", "fails": "red", "inconclusive": "yellow", "met": "green", "violated": "red"}
SMOKE = "The scale 'smoke' is for tests: nothing here is a verdict."
MEANINGS = {
    "confirmed": "They confirm it, where the theorem's own conditions hold",
    "refuted": "They refute it, where the theorem's own conditions hold",
    "extends": "It holds here, outside the theorem's conditions",
    "does not extend": "It fails here, outside the theorem's conditions",
    "reproduced": "They reproduce it",
    "not reproduced": "They do not reproduce it",
    "seen in changed settings": "It holds here, in settings other than the paper's",
    "not seen in changed settings": "It fails here, in settings other than the paper's",
    "holds": "It holds",
    "fails": "It fails",
    "open": "They do not decide",
    "not computable here": "No finite run can decide it",
    "no verdict (smoke)": "No verdict: the scale 'smoke' is for tests",
}
"""The word of a verdict as a sentence about the trainings of a run."""

WORDS = """confirmed, refuted: a statement of the paper, where the theorem's own conditions hold
extends, does not extend: the same, in cells that miss a condition
reproduced, not reproduced: what the paper's figure shows, with its own settings
seen, not seen in changed settings: the same with other sizes, data or networks
holds, fails: a check or a conjecture of the lab; open: these runs do not decide
not computable here: a statement about a limit, which no finite run decides
in brackets after a number: its interval; in parentheses: what the claim asks for
draw: how often the seeds of a figure were drawn, once for each time that one of its claims was changed
inside: grid points that meet all conditions of a theorem, of all that the claim is about"""


def width() -> int:
    """The width of the terminal; not less than `NARROWEST`."""
    return max(shutil.get_terminal_size((100, 24)).columns, NARROWEST)


def print_verdicts(verdicts: "Sequence[Verdict]", everything: bool = False, verbose: bool = False) -> None:
    """Print a line a claim, the main results first, with reasons for those that do not hold, and the counts last.

    `everything`: whether claims that are no headlines are listed, too.
    `verbose`: whether every claim is followed by its statement and its conditions.
    In a pipe all claims are printed, a line each, separated by tabs.
    """
    if not sys.stdout.isatty() and not verbose:
        print_rows(*verdict_rows(verdicts))
        return
    headlines = [v for v in verdicts if v.headline]
    others = [v for v in verdicts if not v.headline]
    shared = shared_conditions(verdicts) if verbose else []
    if shared:
        print("\nConditions of all claims")
        for text in shared:
            _print_wrapped(text, "  ")
    _print_group("Main results", headlines, verbose, shared)
    if everything or verbose or not headlines:
        _print_group("Other claims", others, verbose, shared)
    elif others:
        said = (
            f"{_counted(others)} among {len(others)} other claim{'s' * (len(others) > 1)} (--all lists them)."
        )
        print_prose(f"\n{said}")
    _print_end(verdicts, verbose)


def print_outcome(verdicts: "Sequence[Verdict]") -> None:
    """Print in plain English what the paper says and what these trainings show. In a pipe, as `print_verdicts`."""
    headlines = [v for v in verdicts if v.headline]
    if not sys.stdout.isatty() or not headlines:
        return print_verdicts(verdicts)
    print("\nThe paper says, and these trainings show")
    for v in headlines:
        said = f"{MEANINGS[v.word]}: {measured(v)}; the claim asks for {v.within}."
        print_prose(f"{v.statement.rstrip('.')}.", "  ")
        glyph = _painted(f"  {GLYPHS[v.verdict]} ", v.verdict)
        print(glyph + textwrap.fill(said, width() - 4, subsequent_indent="    "))
    others = [v for v in verdicts if not v.headline]
    if others:
        print_prose(f"\nOther claims: {_counted(others)} (--all lists them).")
    _print_caution(verdicts)


def print_prose(text: str, indent: str = "") -> None:
    """Print text with its line breaks, wrapped at the width of the terminal; in a pipe as it is."""
    for line in text.split("\n"):
        print(_wrapped(line, indent) if sys.stdout.isatty() else indent + line)


def print_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a line a row; in a terminal the last column is cut at its width. In a pipe tabs separate columns."""
    if not sys.stdout.isatty():
        return print_rows(head, rows)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    room = max(width() - sum(widths[:-1]) - 2 * (len(widths) - 1), NARROWEST_TITLE)
    for row in (head, *rows):
        cells = [f"{text:<{size}}" for text, size in zip(row[:-1], widths[:-1], strict=True)]
        last = row[-1] if len(row[-1]) <= room else f"{row[-1][: room - 1]}…"
        print("  ".join((*cells, last)))


def print_page(markdown: str) -> None:
    """Print a page in Markdown, set for the terminal; in a pipe as it is."""
    if not sys.stdout.isatty():
        return print(markdown)
    from rich.markdown import Markdown

    _terminal().print(Markdown(markdown))


def verdict_rows(verdicts: "Sequence[Verdict]") -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of a table of verdicts, a row a claim."""
    head = [
        "claim",
        "reading",
        "verdict",
        "word",
        "measured",
        "low",
        "high",
        "holds",
        "inside",
        "cells",
        "draw",
        "statement",
    ]
    rows = []
    for v in verdicts:
        numbers = [f"{number:.6g}" for number in (v.measured.value, v.measured.low, v.measured.high)]
        inside = str(v.inside_cells[1]) if v.inside_cells else ""
        counts = [v.within, inside, str(v.cells), str(v.draw)]
        rows.append([v.id, v.reading, v.verdict, v.word, *numbers, *counts, v.statement])
    return head, rows


def shared_conditions(verdicts: "Sequence[Verdict]") -> list[str]:
    """The conditions that all claims with conditions have in common, as text; none where only one claim has any."""
    listed = [[condition_text(c) for c in v.conditions] for v in verdicts if v.conditions]
    return [text for text in listed[0] if all(text in own for own in listed)] if len(listed) > 1 else []


def _print_group(title: str, verdicts: "Sequence[Verdict]", verbose: bool, shared: Sequence[str]) -> None:
    if not verdicts:
        return
    print(f"\n{title}")
    worst_first = {"fails": 0, "inconclusive": 1, "holds": 2}
    names = [f"{v.id} [{v.reading}]" if v.reading else v.id for v in verdicts]
    columns = max(map(len, names)), max(len(v.word) for v in verdicts)
    for name, v in sorted(zip(names, verdicts, strict=True), key=lambda pair: worst_first[pair[1].verdict]):
        _print_claim(name, v, columns, verbose, shared)


def _print_claim(
    name: str, v: "Verdict", columns: tuple[int, int], verbose: bool, shared: Sequence[str]
) -> None:
    room = width()
    glyph = f"{GLYPHS[v.verdict]} "
    line = f"{name:<{columns[0]}}  {v.word:<{columns[1]}}  {measured(v)}"
    whole = f"{line}  ({v.within})"
    shown = whole if len(whole) + 2 <= room else line
    if len(shown) + 2 > room:
        shown = f"{name}  {v.word}  {measured(v)}"
    if len(shown) + 2 > room:
        shown = f"{name}\n    {v.word}  {measured(v)}"
    print(_painted(glyph, v.verdict) + shown)
    if verbose or v.verdict != "holds":
        _print_wrapped(" ".join(filter(None, (f"{v.statement.rstrip('.')}.", *_beside(v)))))
    if verbose:
        for text in map(condition_text, v.conditions):
            if text not in shared:
                _print_wrapped(f"- {text}")


def _beside(v: "Verdict") -> list[str]:
    """What a reader must know beside the number."""
    said = [f"({v.source}: {v.where})" if v.where else f"({v.source})"]
    said += [f"Differs from the paper: {v.proxy}." if v.proxy else ""]
    said += [f"{number} is excluded." for number in v.excluded]
    said += [f"Seen over {v.seen}."] if v.seen else []
    said += [f"The measurement lies {v.looseness}."] if v.looseness else []
    said += [v.note, v.on_constants]
    if v.inner is not None and v.inside_cells:
        said.append(
            f"In the {v.inside_cells[1]} of {v.cells} cells inside the conditions: {measured(v.inner)}."
        )
    said += [f"About {v.more_seeds} more seeds would decide."] if v.more_seeds else []
    return said


def _print_end(verdicts: "Sequence[Verdict]", verbose: bool) -> None:
    print_prose(f"\n{_counted(verdicts)} ({len(verdicts)} verdicts).")
    _print_caution(verdicts)
    if verbose:
        print("\nWords")
        for line in WORDS.splitlines():
            _print_wrapped(line, "  ")


def _print_caution(verdicts: "Sequence[Verdict]") -> None:
    """Say where the verdicts of a run reach less far than they look."""
    if any(v.scale == "smoke" for v in verdicts):
        return print(SMOKE)
    outside = [v for v in verdicts if v.source in ("theorem", "proof") and v.scope == "outside"]
    if outside and not any(v.scope in ("inside", "partly") for v in verdicts):
        missed = sorted({c.name for v in outside for c in v.conditions if not c.met})
        never = (
            f" Never met: {', '.join(missed[:3])}{', and others' if len(missed) > 3 else ''}."
            if missed
            else ""
        )
        _print_wrapped(f"Nothing here lies inside a theorem's conditions.{never}", "")
    judged, registered = max((v.of_family for v in verdicts), default=(0, 0))
    if judged < registered:
        _print_wrapped(
            f"This family of claims is not complete: {judged} of its {registered} registered verdicts are here. "
            "`lemmata check STUDY` judges all together.",
            "",
        )


def _counted(verdicts: "Sequence[Verdict]") -> str:
    counts = Counter(v.word for v in verdicts)
    return ", ".join(f"{count} {word}" for word, count in counts.most_common())


def _print_wrapped(text: str, indent: str = "    ") -> None:
    print(_wrapped(text, indent))


def _wrapped(text: str, indent: str) -> str:
    return textwrap.fill(text, width(), initial_indent=indent, subsequent_indent=indent)


def _painted(text: str, verdict: str) -> str:
    codes = {"green": 32, "red": 31, "yellow": 33}
    return f"\033[{codes[COLOURS[verdict]]}m{text}\033[0m" if sys.stdout.isatty() else text


def measured(v: "Verdict") -> str:
    """The number with its interval, in three digits."""
    m = v.measured
    if not m.exists:
        return "no number"
    return f"{m.value:.3g}" if m.exact else f"{m.value:.3g} {m.interval}"


def condition_text(c: "ConditionCount") -> str:
    """A condition, in how many cells it is met, and the worst margin."""
    missed = f", missed by a factor {1 / c.margin:.3g} at worst" if 0 < c.margin < 1 else ""
    hidden = ", hidden constant 1" if c.holds is None else ""
    return f"{c.name}: met in {c.met} of {c.cells} cells{missed}{hidden}"


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table at the width of the terminal; in a pipe, rows separated by tabs."""
    if not sys.stdout.isatty():
        return print_rows(head, rows)
    from rich.markup import escape
    from rich.table import Table

    if title:
        print(title)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
    for name in head:
        table.add_column(name)
    for row in rows:
        table.add_row(*(f"[{COLOURS[text]}]{text}[/]" if text in COLOURS else escape(text) for text in row))
    _terminal().print(table)


def _terminal() -> Any:
    """A console of rich at the width of the terminal."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:  # rich would end the process, with exit code 1
            raise BrokenPipeError

    return Terminal(width=width())


def plain_verdict(v: "Verdict") -> dict[str, Any]:
    """A verdict as plain data for JSON."""
    return {
        "id": v.id,
        "statement": v.statement,
        "kind": v.kind,
        "reading": v.reading,
        "verdict": v.verdict,
        "word": v.word,
        "source": v.source,
        "where": v.where,
        "proxy": v.proxy,
        "scope": v.scope,
        "headline": v.headline,
        "family": {"judged": v.of_family[0], "registered": v.of_family[1]},
        "parts": [{"name": p.name, "verdict": p.verdict, "measured": p.measured.value} for p in v.parts],
        "predicted": v.predicted,
        "measured": v.measured.value,
        "interval": [v.measured.low, v.measured.high],
        "seeds": v.seeds,
        "tolerance": list(v.tolerance),
        "conditions": [
            {"name": c.name, "holds": c.holds, "margin": c.margin, "met": c.met, "cells": c.cells}
            for c in v.conditions
        ],
        "sentence": v.sentence,
        "excluded": list(v.excluded),
        "left_out": dict(v.left_out),
        "violations": v.violations.value if v.violations else None,
        "looseness": v.looseness,
        "seen": v.seen,
        "more_seeds": v.more_seeds,
        "draw": v.draw,
        "looks": v.looks,
        "note": v.note,
    }


def print_as(
    format: str | None, head: Sequence[str], rows: Sequence[Sequence[str]], content: dict[str, Any]
) -> bool:
    """Print JSON, CSV or Markdown where a command was asked for it, and tab-separated rows in a pipe.

    Return whether anything was printed; if not, the command prints what suits a terminal.
    """
    if format is None and sys.stdout.isatty():
        return False
    if format == "json":
        print_json(content)
    elif format == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows((head, *rows))
    elif format == "md":
        print(markdown_table(head, rows))
    else:
        print_rows(head, rows)
    return True


def print_rows(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table as a pipe gets it: a line a row, tabs between columns, nothing cut."""
    for row in (head, *rows):
        print("\t".join(_one_line(cell) for cell in row))


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown.

    >>> print(markdown_table(("a", "b"), [("1|2", "x")]))
    | a | b |
    | --- | --- |
    | 1\\|2 | x |
    """
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(_one_line(cell).replace('|', chr(92) + '|') for cell in row)} |" for row in lines
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def print_json(content: dict[str, Any]) -> None:
    """Print one object as JSON."""
    print(json_text(content))


def json_text(content: dict[str, Any]) -> str:
    """Return one object as JSON; numbers that JSON does not know become null."""

    def finite(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: finite(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [finite(item) for item in value]
        return None if isinstance(value, float) and not math.isfinite(value) else value

    return json.dumps(finite(content), indent=2)
