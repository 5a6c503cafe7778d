"""Finds the source of claims, so that a page shows it beside what came out."""

import ast
from collections.abc import Collection
from pathlib import Path

from lemmata.errors import text_of


def sources_of(folder: Path, claims: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return, by id of a claim, where its source stands and the source: the call that makes it, or the function around.

    `folder`: the folder of the study. Its module `figures` is read, which may be a package.
    """
    found: dict[str, tuple[str, str]] = {}
    for path in sorted([*folder.glob("figures.py"), *folder.glob("figures/*.py")]):
        text = text_of(path)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Claim"):
                given = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "id")]
                id = given[0].value if given and isinstance(given[0], ast.Constant) else None
                if id in claims:
                    where = f"{path.relative_to(folder.parent)}, line {node.lineno}"
                    found[str(id)] = (where, _lines(text, node))
    return found


def _lines(text: str, node: ast.expr) -> str:
    lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return "\n".join(line[indent:] if line[:indent].isspace() else line for line in lines)
