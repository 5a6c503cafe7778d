"""Pages that are made from the code: the studies with their ledgers, and the list of public names."""

from collections.abc import Iterator
from functools import cache
from html import unescape

import lemmata
from docs.site.gallery import own_studies
from lemmata.report.maths import with_maths
from lemmata.report.readme import BEGIN, END, project_table
from lemmata.report.record import code, text
from lemmata.study import Study

ROOMS = {
    "Figures and claims": (
        "lemmata.figure",
        *("Figure", "Claim", "Holds", "Made", "Source", "made", "theorem", "proof", "experiment", "ours"),
        *(
            "about",
            "at_least",
            "at_most",
            "between",
            "every_run",
            "flat",
            "identity",
            "most_runs",
            "positive",
        ),
    ),
    "Studies": ("lemmata.study", "Study", "Statement"),
    "Verdicts": ("lemmata.measure.compare", "Condition", "ConditionCount", "Verdict", "Verdicts"),
    "Trials": ("lemmata.trial", "Trial", "Descending", "Computed", "put", "fields"),
    "Tests for a study": ("lemmata.testing", "study_tests"),
}
"""The public names outside of `lemmata` itself, by room."""


@cache
def study_page() -> tuple[tuple[Study, str], ...]:
    """Return every study of the lab with its page: its README, with formulas in claims, and its ledger."""
    return tuple((study, "".join(_study(study))) for study in own_studies())


def _study(study: Study) -> Iterator[str]:
    readme = (study.folder / "README.md").read_text(encoding="utf-8")
    head, begin, rest = readme.partition(BEGIN)
    table, end, tail = rest.partition(END)
    yield f"{head}{begin}{_rendered(table)}{end}{tail.rstrip()}\n\n"
    yield f"## Every figure\n\nPictures are in the [gallery](../gallery.md#{_slug(study.title)}).\n\n"
    yield "| figure | what it shows |\n| --- | --- |\n"
    for id, title in study.figures.items():
        yield f"| {code(f'lemmata run {study.id}/{id}')} | {_cell(title)} |\n"
    yield "\n## Every numbered statement\n\n`lemmata ledger " + study.id + "` prints this table.\n\n"
    yield "| number | as printed | as mended | held against | finding |\n| --- | --- | --- | --- | --- |\n"
    for line in study.ledger:
        finding = study.finding(line)
        cells = (line.number, line.says, line.mended, line.held_against, finding)
        yield f"| {' | '.join(_cell(one) for one in cells)} |\n"


def studies_page() -> str:
    """Return the table of studies, each with a link to its page."""
    table = project_table()
    for study in own_studies():
        table = table.replace(
            f"(src/lemmata/studies/{study.id.replace('-', '_')}/README.md)", f"({study.id}.md)"
        )
    says = "The words of the verdicts are explained in [verdicts](../verdicts.md)."
    return f"# Studies\n\nEvery paper is a study. {says}\n\n{table}\n"


def api_page() -> str:
    """Return the list of public names, for mkdocstrings."""
    parts = [
        "# API",
        "",
        "What is documented here is public; everything else may change in any release.",
        "",
        "## lemmata",
        "",
    ]
    for name in lemmata.__all__:
        value = getattr(lemmata, name)
        parts += _entry(f"{value.__module__}.{name}")
    for title, (room, *names) in ROOMS.items():
        parts += [f"## {title}", ""]
        for name in names:
            parts += _entry(f"{room}.{name}")
    return "\n".join(parts) + "\n"


def _entry(path: str) -> list[str]:
    return [f"::: {path}", "    options:", "      heading_level: 3", ""]


def _rendered(table: str) -> str:
    """Return a table of claims whose second column has formulas."""
    lines = []
    for line in table.splitlines():
        cells = line.split(" | ")
        if line.startswith("| `") and len(cells) == 6:
            cells[1] = escaped(with_maths(_plain(cells[1])))
        lines.append(" | ".join(cells))
    return "\n".join(lines) + "\n"


def _plain(cell: str) -> str:
    """Return what a cell says without the escapes of Markdown."""
    for mark in "\\`*_[]|~":
        cell = cell.replace(f"\\{mark}", mark)
    return unescape(cell)


def _cell(words: str) -> str:
    """Return text for a cell of a table, with formulas."""
    found = with_maths(words)
    if found == text(words) or "<span" not in found:
        return text(words)
    return escaped(found)


def escaped(found: str) -> str:
    """Return HTML whose marks mean nothing to Markdown."""
    for mark in "|*_`[]\\":
        found = found.replace(mark, f"&#{ord(mark)};")
    return found


def _slug(title: str) -> str:
    """Return the anchor of a heading, as the site makes it."""
    kept = "".join(mark for mark in title.lower() if mark.isalnum() or mark in " -")
    return "-".join(kept.split())
