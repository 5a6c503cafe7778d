"""Imports follow the way from study to report, never against it."""

import ast
from functools import cache
from pathlib import Path

import pytest

import lemmata

SOURCE = Path(lemmata.__file__).parent
MODULES = sorted(path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py"))

FORBIDDEN = {
    "measure": ("draw", "report", "studies", "lab", "desk", "cli"),
    "draw": ("studies", "lab", "desk", "cli", "report"),
    "lab": ("study", "studies", "measure.judge", "draw", "report", "desk", "cli"),
    "results": ("study", "studies", "measure", "draw", "desk", "cli"),
    "bench": ("study", "studies", "measure", "draw", "lab", "desk", "cli"),
    "reduce": ("study", "studies", "measure", "draw", "lab", "desk", "cli"),
    "study": ("results", "trial", "sweep", "draw", "report", "desk", "cli"),
    "trial": ("descent", "loop", "sweep", "study", "lab"),
    "sweep": ("descent", "loop", "study", "lab"),
    "studies": ("lab", "desk", "cli", "report"),
    "report": ("lab", "desk", "cli"),
}


@cache
def imports(path: Path) -> set[str]:
    """What a module imports when it is loaded or called; not what only names types."""
    tree = ast.parse((SOURCE / path).with_suffix(".py").read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lemmata."):
            found |= {(node.module or "").removeprefix("lemmata.")}
            found |= {f"{(node.module or '').removeprefix('lemmata.')}.{name.name}" for name in node.names}
        if isinstance(node, ast.Import):
            found |= {
                name.name.removeprefix("lemmata.") for name in node.names if name.name.startswith("lemmata.")
            }
    return found


@pytest.mark.parametrize("path", MODULES, ids=str)
def test_no_import_goes_against_the_direction_of_the_way(path):
    room = path.parts[0]
    for name in imports(path):
        for other in FORBIDDEN.get(room, ()):
            assert not (name + ".").startswith(other.rstrip(".") + "."), f"{path} imports {name}"


def test_a_study_does_not_import_another():
    for path in MODULES:
        if path.parts[0] == "studies" and len(path.parts) > 2:
            others = [
                n for n in imports(path) if n.startswith("studies.") and n.split(".")[1] != path.parts[1]
            ]
            assert others == []


def test_pictures_are_imported_by_figures_only():
    for path in MODULES:
        if any(name.split(".")[-1] == "pictures" for name in imports(path)):
            assert path.stem == "figures" or "pictures" in path.parts or "figures" in path.parts, str(path)
