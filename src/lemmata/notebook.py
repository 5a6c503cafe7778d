"""Shows trials, sweeps, figures and verdicts as tables in a notebook.

What is shown derives from `Shown` and says what its table holds. Everything is escaped.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

MOST_ROWS = 200
"""The largest number of rows of a table; the number of the others stands below it."""

MOST_LABELS = 12
"""The largest number of labels of an axis that are named."""


class Sheet(NamedTuple):
    """What a table holds: a title, the names of its columns, its rows, and text that is folded below it."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    folded: str = ""


class Shown:
    """Gives an object a table in notebooks."""

    __slots__ = ()

    def _sheet(self) -> Sheet:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return html(self._sheet())


def html(sheet: Sheet) -> str:
    """Return a table as HTML, all text escaped.

    >>> html(Sheet("Two", ("name", "value"), [("a<b", "1")]))
    '<div><b>Two</b><table><tr><th>name</th><th>value</th></tr><tr><td>a&lt;b</td><td>1</td></tr></table></div>'
    """
    more = len(sheet.rows) - MOST_ROWS
    below = f"<p>and {more} more</p>" if more > 0 else ""
    if sheet.folded:
        below += f"<details><summary>more</summary><pre>{escape(sheet.folded)}</pre></details>"
    rows = "".join(_row("td", row) for row in sheet.rows[:MOST_ROWS])
    return f"<div><b>{escape(sheet.title)}</b><table>{_row('th', sheet.head)}{rows}</table>{below}</div>"


def _row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def labels_text(labels: Sequence[object]) -> str:
    """Return the labels of an axis as text, the middle of a long axis left out.

    >>> labels_text(range(100))
    '0, 1, 2, 3, 4, 5, ..., 94, 95, 96, 97, 98, 99'
    """
    words = [str(label) for label in labels]
    if len(words) > MOST_LABELS:
        half = MOST_LABELS // 2
        words = [*words[:half], "...", *words[-half:]]
    return ", ".join(words)
