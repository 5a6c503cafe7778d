"""Imports follow the way from study to report, never against it."""

import ast
from functools import cache
from pathlib import Path

import pytest

import lemmata

SOURCE = Path(lemmata.__file__).parent
MODULES = sorted(path.relative_to(SOURCE).with_suffix("") for path in SOURCE.rglob("*.py"))

ABOVE = ("studies", "order", "desk", "report", "registration", "testing", "commands", "cli")
FORBIDDEN = {
    "trial": ("descent", "loop", "sweep", "results", "figure", "study", "lab", *ABOVE),
    "sweep": ("descent", "loop", "results", "figure", "study", "lab", *ABOVE),
    "results": ("data", "measure", "draw", "figure", "study", "lab", *ABOVE),
    "measure": ("data", "draw", "study", "lab", *ABOVE),
    "draw": ("data", "figure", "study", "lab", *ABOVE),
    "parts": ("figure", "study", "measure", "draw", "lab", *ABOVE),
    "reduce": ("figure", "study", "measure", "draw", "lab", *ABOVE),
    "data": (
        *(
            "trial",
            "descent",
            "loop",
            "sweep",
            "results",
            "measure",
            "draw",
            "figure",
            "study",
            "lab",
            "parts",
        ),
        *("reduce", "rows", *ABOVE),
    ),
    "lab": ("data", "figure", "study", "measure.judge", "draw", "search", *ABOVE),
    "figure": (
        "measure.judge",
        "draw",
        "study",
        "lab",
        "studies",
        "desk",
        "report",
        "registration",
        "commands",
        "cli",
    ),
    "study": ("draw", "lab", "order", "desk", "report", "testing", "commands", "cli"),
    "studies": ("lab", "order", "desk", "report", "registration", "testing", "commands", "cli"),
    "registration": ("draw", "lab", "order", "desk", "report", "commands", "cli"),
    "testing": ("draw", "lab", "desk", "report", "commands", "cli"),
    "search": ("studies", "order", "desk", "report", "registration", "testing", "commands", "cli"),
    "order": ("studies", "desk", "report", "commands", "cli"),
    "report": ("lab", "order", "desk", "commands", "cli"),
}
"""What a room may not import. `Figure.order` and `Figure.run` are the one step up: they hand a figure to `lemmata.order`."""


@cache
def imports(path: Path) -> set[str]:
    """What a module imports, when it is loaded or called or to name types."""
    tree = ast.parse((SOURCE / path).with_suffix(".py").read_text())
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("lemmata."):
            base = f"{node.module}.".removeprefix("lemmata.")
            found |= {base.rstrip(".")} - {""} | {base + name.name for name in node.names}
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
