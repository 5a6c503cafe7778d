"""Tables of published verdicts for READMEs: `python -m lemmata.report.readme` writes them between their marks.

The README of a study has the marks `BEGIN` and `END`: main results first, all other claims folded, figure by figure. The
README of the project has a row for every study. Numbers come from `verdicts.json`, statements from `lock.json`. A test holds
the pages to them.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lemmata.errors import require, text_of
from lemmata.report.record import code, text
from lemmata.study import Study, studies

BEGIN, END = "<!-- verdicts: begin -->", "<!-- verdicts: end -->"
HEAD = ("claim", "what it says", "verdict", "measured", "cells inside", "draw")
SEARCH_HEAD = ("claim", "answer", "points", "smallest margin", "box inside", "violating part (95 %)")
NEED_HEAD = ("claim", "condition", "answer", "along")
NOT_JUDGED = "not judged yet"
ORDER = (
    *("confirmed", "refuted", "extends", "does not extend", "reproduced", "not reproduced"),
    *(
        "seen in changed settings",
        "not seen in changed settings",
        "holds",
        "fails",
        "not computable here",
        "open",
        NOT_JUDGED,
    ),
)
"""The words in the order in which they are counted."""

HOLDING = ("confirmed", "extends", "reproduced", "seen in changed settings", "holds")
"""The words of claims that hold, wherever they were judged."""

MAIN_RESULTS = {
    "benign-overfitting": ("boundary-exponent", "N·SNR² alone decides whether overfitting is harmless."),
    "shallow-vit": ("theorem-sample-exponent", "The samples needed grow as (relevant tokens)⁻²."),
    "multihead": ("training-theorem", "Many heads train to within an explicit bound."),
    "spatial-structure": ("association", "Descent finds which patches belong together."),
    "group-imbalance": ("linear-convergence", "Descent converges linearly on Gaussian mixtures."),
    "in-context-learning": ("in-domain", "Training on few tasks solves unseen ones."),
    "chain-of-thought": ("cot-where-icl-fails", "Chain of thought succeeds where one answer fails."),
    "graph-transformer": ("steps-apart", "Convolution takes γ⁻² times the steps of attention."),
    "gcn-sampling": ("twin-error", "Sampling trains with an effective adjacency matrix."),
}
"""For every study the claim that stands for the paper's main result, and that result in a sentence."""

LEGEND = (
    "*measured*: the number with its interval. *cells inside*: grid points that meet all conditions of the theorem, of all "
    "that the claim is about. *draw*: how often the seeds of the figure were drawn, once for each time that one of its claims "
    "changed."
)

REASONS = {
    "confirmed": "as the theorem's conditions hold in the cells that decide",
    "refuted": "as the theorem's conditions hold in the cells that decide",
    "extends": "as cells miss a condition of the theorem, or the claim names none",
    "does not extend": "as cells miss a condition of the theorem, or the claim names none",
    "reproduced": "as the paper's figure was repeated with its own settings",
    "not reproduced": "as the paper's figure was repeated with its own settings",
    "seen in changed settings": "as settings differ from those of the paper",
    "not seen in changed settings": "as settings differ from those of the paper",
    "not computable here": "as no finite run decides a statement about a limit",
    "open": "which says that these runs do not decide",
}
"""Why a verdict has its word, and not the bare decision of the judge."""

SENTENCES = {
    "confirmed": "It holds under the paper's conditions",
    "refuted": "It fails under the paper's conditions",
    "extends": "It holds outside the paper's conditions",
    "does not extend": "It fails outside the paper's conditions",
    "reproduced": "The paper's figure comes out again",
    "not reproduced": "The paper's figure does not come out",
    "seen in changed settings": "It holds in changed settings",
    "not seen in changed settings": "It fails in changed settings",
    "holds": "It holds",
    "fails": "It fails",
    "not computable here": "No finite run can decide it",
    "open": "These runs do not decide it",
    NOT_JUDGED: "It was not judged yet",
}
"""What a verdict's word means, as a sentence."""


def study_tables(study: Study) -> str:
    """Return the verdicts of a study: how many of which word, the main results, and all other claims folded."""
    rows = {figure: _rows(study, figure, headlines=False) for figure in study.figures}
    main = [row for figure in study.figures for row in _rows(study, figure, headlines=True)]
    others = "\n\n".join(
        f"**{code(figure)}**: {text(study.figures[figure])}\n\n{_table(own)}"
        for figure, own in rows.items()
        if own
    )
    return (
        f"{counted(words(study))}.\n\nNumbers of theorems, equations and figures are those of: {text(study.version)}.\n\n"
        f"**Main results**\n\n{_table(main)}\n\n{LEGEND}\n\n"
        f"<details><summary>All other claims, figure by figure</summary>\n\n{others}\n\n</details>"
        f"{searched(study)}\n\n{_renamed(study)}"
    )


def _renamed(study: Study) -> str:
    """Return the claims whose word is no longer the bare decision of the judge, with the reason, as a folded list."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in study.entries.values():
        for verdict in _published(study, entry.id)[:1]:
            if verdict["word"] in REASONS:
                found.setdefault((verdict["verdict"], verdict["word"]), []).append(entry.id)
    lines = [
        f"- `{old}` is now **{word}** ({len(ids)}), {REASONS[word]}: {', '.join(map(code, ids))}."
        for (old, word), ids in sorted(found.items(), key=lambda one: ORDER.index(one[0][1]))
    ]
    said = (
        "Earlier tables had three words. The word now follows the source of a claim and where it was judged."
    )
    return f"<details><summary>Words that changed, and why</summary>\n\n{said}\n\n{chr(10).join(lines)}\n\n</details>"


def searched(study: Study) -> str:
    """Return the searches for counter-examples of a study: an answer a claim, and which conditions its claims need."""
    answers, needs = study.searches["searches"], study.searches["frontiers"]
    if not answers:
        return ""
    found = [
        "",
        "**Searches for counter-examples** (`lemmata refute`)",
        "",
        *_lines(SEARCH_HEAD, map(_searched, answers)),
    ]
    commands = [one["counter_example"]["command"] for one in answers if one["counter_example"]]
    if commands:
        found += ["", "Counter-examples:", "", "```bash", *commands, "```"]
    if needs:
        rows = [(code(one["claim"]), text(one["condition"]), _needed(one), code(one["along"]) if one["along"] else "")
                for one in needs]  # fmt: skip
        found += ["", "**Which conditions are needed** (one left at a time)", "", *_lines(NEED_HEAD, rows)]
    return "\n" + "\n".join(found)


def _searched(one: Mapping[str, Any]) -> Sequence[str]:
    bound = f"at most {one['bound']:.1%}" if one["bound"] is not None and one["bound"] < 1 else ""
    smallest = "" if one["smallest_margin"] is None else f"{one['smallest_margin']:.3g}"
    outside = f", outside of {text(', '.join(one['outside']))}" if one["outside"] else ""
    share = "" if one["word"] in ("nothing inside", "not searchable") else f"{one['share_inside']:.1%}"
    return code(one["id"]), one["word"] + outside, str(one["points"]), smallest, share, bound


def _needed(one: Mapping[str, Any]) -> str:
    factor = "any factor" if one["factor"] is None else f"a factor {one['factor']:.3g}"
    return {
        "needed": f"needed: broken when missed by {factor}",
        "not needed": f"not needed up to {factor}",
        "silent": "silent",
        "not left": "no field leaves it alone",
    }[one["word"]]


def _lines(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def project_table() -> str:
    """Return a row for every study: the paper's main result, its verdict, the main claims by word, and the trainings."""
    lines = ["|study|the paper's main result|verdict|main claims|trainings|", "|---|---|---|---|---|"]
    for id, (claim, says) in MAIN_RESULTS.items():
        own = studies()[id]
        page = f"[{id}](src/lemmata/studies/{id.replace('-', '_')}/README.md)"
        verdict = f"{SENTENCES[_word(own, claim)]} ({code(claim)})."
        lines.append(f"|{page}|{says}|{verdict}|{_unbroken(words(own, headlines=True))}|{trainings(own)}|")
    return "\n".join(lines)


def _unbroken(counts: Mapping[str, int]) -> str:
    """Counts by word for a narrow column: a line never breaks between a number and its word."""
    short = counted(counts).replace(" in changed settings", "")
    return ", ".join(one.replace(" ", "&nbsp;") for one in short.split(", "))


def trainings(study: Study) -> str:
    """Return how many trainings `lemmata check` takes at the scale `quick`, and the minutes of one core, if measured."""
    figures = [study.figure(id) for id in study.figures if study.bearing_on(id)]
    orders = [
        figure.order("quick", reading=reading) for figure in figures for reading in figure.readings or [""]
    ]
    cells = {cell.id for order in orders for cell in order.sweep.cells}
    minutes = study.publication.get("minutes")
    return f"{len(cells)}" + (f" ({minutes:.0f} min)" if minutes else "")


def words(study: Study, headlines: bool = False) -> Counter[str]:
    """Return how many claims of a study have which word, under the first reading of their figure."""
    found: Counter[str] = Counter()
    for entry in study.entries.values():
        if entry.headline or not headlines:
            found[_word(study, entry.id)] += 1
    return found


def _word(study: Study, id: str) -> str:
    """Return the word of a claim under the first reading of its figure."""
    own = _published(study, id)
    return own[0]["word"] if own else NOT_JUDGED


def counted(counts: Mapping[str, int]) -> str:
    """Counts by word, in the order of `ORDER`."""
    return ", ".join(f"{counts[word]} {word}" for word in ORDER if counts.get(word))


def written(page: str, table: str, marks: tuple[str, str] = (BEGIN, END)) -> str:
    """Return a page with a table between its marks."""
    head, begin, rest = page.partition(marks[0])
    _, end, tail = rest.partition(marks[1])
    require(bool(begin and end), f"the page has no marks {marks[0]} and {marks[1]}.")
    return f"{head}{begin}\n\n{table}\n\n{end}{tail}"


def _rows(study: Study, figure: str, headlines: bool) -> list[Sequence[str]]:
    found = []
    for entry in study.bearing_on(figure):
        if entry.headline == headlines:
            where = f" ({entry.source}{f': {entry.where}' if entry.where else ''})"
            for verdict in _published(study, entry.id) or [{}]:
                found.append(_row(entry.id, entry.statement + where, verdict))
    return found


def _row(id: str, statement: str, v: Mapping[str, Any]) -> Sequence[str]:
    if not v:
        return code(id), text(statement), "not judged yet", "", "", ""
    name = code(id) + (f", {text(v['reading'])}" if v["reading"] else "")
    return name, text(statement), v["word"], number(v), _inside(v), str(v["draw"])


def _inside(v: Mapping[str, Any]) -> str:
    """Return how many cells are inside the conditions; and with other hidden constants, where these make a difference."""
    if not v["inside"]:
        return ""
    small, one, large = v["inside"]
    other = f"; {small} at 0.1, {large} at 10" if {small, large} != {one} else ""
    return f"{one} of {v['cells']}{other}"


def number(v: Mapping[str, Any]) -> str:
    """Return a published number with its interval, in three digits."""
    if v["value"] is None:
        return "none"
    if v["low"] == v["high"]:
        return f"{v['value']:.3g}"
    ends = ["∞" if end is None else f"{end:.3g}" for end in (v["low"], v["high"])]
    return f"{v['value']:.3g} [{ends[0]}, {ends[1]}]"


def _table(rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(_lines(HEAD, rows))


def _published(study: Study, id: str) -> list[Mapping[str, Any]]:
    return [verdict for verdict in study.published if verdict["id"] == id]


def main(root: Path) -> None:
    """Write the tables into all READMEs of a clone."""
    pages = {study.folder / "README.md": study_tables(study) for study in studies().values()}
    for path, table in {**pages, root / "README.md": project_table()}.items():
        path.write_text(written(text_of(path), table), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
