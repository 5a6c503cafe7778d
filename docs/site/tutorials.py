"""Runs percent scripts and writes each as a page with its output, and as a notebook.

A cell begins with `# %%`; one that begins with `# %% [markdown]` is text. The value of the last expression of a cell is shown,
and every open figure of matplotlib.
"""

import ast
import contextlib
import io
import json
import os
import re
import tempfile
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROOM = Path(__file__).parents[1] / "tutorials"


class Cell(NamedTuple):
    """One cell of a script: text, or code."""

    text: bool
    body: str


def scripts() -> list[Path]:
    """Return the tutorials in their order."""
    return sorted(ROOM.glob("*.py"))


def cells(script: Path) -> list[Cell]:
    """Return the cells of a percent script."""
    found = []
    for part in re.split(r"^# %%", script.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            lines = (line.removeprefix("#").removeprefix(" ") for line in body.strip().splitlines())
            found.append(Cell(True, "\n".join(lines)))
        elif body.strip():
            found.append(Cell(False, body.strip()))
    return found


def write_page(script: Path, folder: Path, run: bool = True) -> Path:
    """Write a tutorial as a page and as a notebook into a folder, and return the page. With `run`, its cells are executed."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{script.stem}-*.png"):
        old.unlink()
    found = cells(script)
    head, *rest = found
    notebook = folder / f"{script.stem}.ipynb"
    notebook.write_text(json.dumps(_notebook(found), indent=1) + "\n", encoding="utf-8")
    parts = [head.body, f"[Download this page as a notebook]({notebook.name})"]
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as place, _inside(Path(place)) if run else contextlib.nullcontext():
        for cell in rest:
            parts.append(cell.body if cell.text else f"```python\n{cell.body}\n```")
            if run and not cell.text:
                parts += _output(cell.body, script, names, folder)
    page = folder / f"{script.stem}.md"
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


@contextlib.contextmanager
def _inside(place: Path):
    """Work in a folder of its own, and draw without a screen."""
    import matplotlib

    before, backend = Path.cwd(), matplotlib.get_backend()
    matplotlib.use("agg")
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)
        matplotlib.use(backend)


def _output(body: str, script: Path, names: dict[str, Any], folder: Path) -> list[str]:
    """Execute a cell and return what it prints and shows, as Markdown."""
    import matplotlib.figure
    from matplotlib import pyplot

    tree = ast.parse(body)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(tree, str(script), "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), str(script), "eval"), names)
    parts = [_block(said.getvalue())] if said.getvalue() else []
    drawn = [value] if isinstance(value, matplotlib.figure.Figure) else []
    others = [pyplot.figure(number) for number in pyplot.get_fignums()]
    for figure in [*drawn, *(one for one in others if one is not value)]:
        number = len(list(folder.glob(f"{script.stem}-*.png"))) + 1
        name = f"{script.stem}-{number}.png"
        figure.savefig(folder / name, dpi=110, bbox_inches="tight")
        parts.append(f'<img alt="the output of the cell above" src="{name}">')
    pyplot.close("all")
    if value is None or drawn:
        return parts
    shown = getattr(value, "_repr_html_", None)
    return [*parts, f'<div class="output">{shown()}</div>' if shown else _block(repr(value))]


def _block(text: str) -> str:
    return f'<pre class="output">{escape(text.rstrip())}</pre>'


def _notebook(found: list[Cell]) -> dict[str, Any]:
    """Return the cells as a notebook without output (nbformat 4.5)."""
    written = []
    for number, cell in enumerate(found):
        kind: dict[str, Any] = {
            "cell_type": "markdown" if cell.text else "code",
            "id": f"cell-{number}",
            "metadata": {},
        }
        kind |= {} if cell.text else {"execution_count": None, "outputs": []}
        written.append(kind | {"source": cell.body.splitlines(keepends=True)})
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    return {"cells": written, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
