"""Writes verdicts as a table for LaTeX (booktabs)."""

from collections.abc import Sequence

from lemmata.measure.compare import Verdict

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
} | {mark: f"\\{mark}" for mark in "&%$#_{}"}


def latex_table(verdicts: Sequence[Verdict]) -> str:
    r"""Return a table of verdicts: claim, source, what was measured, what was asked for, the word.

    >>> escaped("100 % of x_1^2")
    '100 \\% of x\\_1\\textasciicircum{}2'
    """
    rows = []
    for v in verdicts:
        name = f"{v.id} ({v.reading})" if v.reading else v.id
        measured = f"{v.measured.value:.3g} {'' if v.measured.exact else v.measured.interval}".strip()
        cells = (name, v.where or v.source, measured if v.measured.exists else "none", v.within, v.word)
        rows.append(" & ".join(map(escaped, cells)) + r" \\")
    head = r"claim & source & measured & asked for & verdict \\"
    lines = (
        r"\begin{tabular}{lllll}",
        r"\toprule",
        head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
    )
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    """Return text with the characters that LaTeX reads as commands escaped."""
    return "".join(SPECIAL.get(mark, mark) for mark in text)
