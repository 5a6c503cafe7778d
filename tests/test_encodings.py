"""Text is read and written as UTF-8, whatever the locale: digests, locks and results are the same everywhere."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import lemmata

SOURCE = Path(lemmata.__file__).parent
TEXT = ("read_text", "write_text")


def without_encoding(path: Path) -> list[str]:
    """The calls in a module that open a file, or read from a process, as text and name no encoding."""
    calls = [
        node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
    ]
    return [
        f"{path.relative_to(SOURCE)}:{call.lineno}"
        for call in calls
        if _opens_text(call) and not any(keyword.arg == "encoding" for keyword in call.keywords)
    ]


def _opens_text(call: ast.Call) -> bool:
    if any(keyword.arg in ("text", "universal_newlines") for keyword in call.keywords):
        return True
    if isinstance(call.func, ast.Attribute) and call.func.attr in TEXT:
        return True
    builtin = isinstance(call.func, ast.Name) and call.func.id == "open"
    method = (
        isinstance(call.func, ast.Attribute) and call.func.attr == "open" and not _is_module(call.func.value)
    )
    if not builtin and not method:
        return False
    place = call.args[int(builtin) :]
    named = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    mode = next(iter([*place, *named]), ast.Constant("r"))
    return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))


def _is_module(node: ast.expr) -> bool:
    """Whether an `open` is that of a module or archive that gives bytes."""
    return isinstance(node, ast.Name) and node.id in ("os", "webbrowser", "Image", "archive", "tarfile")


def test_every_text_file_is_opened_with_an_encoding():
    assert [place for path in sorted(SOURCE.rglob("*.py")) for place in without_encoding(path)] == []


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_digests_do_not_depend_on_the_locale(locale):
    code = (
        "from lemmata.source import module_digest; print(module_digest('lemmata.studies.shallow_vit.trials'))"
    )
    env = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    from lemmata.source import module_digest

    assert found.stdout.strip() == module_digest("lemmata.studies.shallow_vit.trials"), found.stderr
