"""What a trial computes, as a digest of its source: records of another digest were made by another trial."""

import ast
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from lemmata.trial import Trial

SHARED = ("lemmata.bench", "lemmata.reduce")
"""Rooms of the lab that studies build on: what is imported from them counts as the trial's own."""

APART = ("claims", "figures", "pictures", "planted")
"""Rooms of a study that no record depends on."""


def trial_digest(trial: Trial) -> str:
    """16 hexadecimal digits that change with the code of a trial: its class, the bases inside its package, and every module
    of that package (and of the shared rooms) that they import. Comments, docstrings and layout do not count."""
    return _digest(type(trial))  # pyright: ignore[reportArgumentType]


def digests(trials: Iterable[Trial]) -> set[str]:
    """The digests of all kinds of trials among these."""
    return {trial_digest(trial) for trial in {type(trial): trial for trial in trials}.values()}


@cache
def _digest(kind: type) -> str:
    roots = (kind.__module__.rpartition(".")[0] or kind.__module__, *SHARED)
    parts = [_without_words(_class_source(base)) for base in kind.__mro__ if _inside(base.__module__, roots)]
    if kind.__module__ != "__main__":
        for name in sorted(_imported(kind.__module__, roots)):
            parts.append(f"{name}\n{_without_words(_module_source(name))}")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def _inside(module: str, roots: tuple[str, ...]) -> bool:
    return any(module == root or module.startswith(f"{root}.") for root in roots)


def _imported(module: str, roots: tuple[str, ...]) -> set[str]:
    """The module and all modules inside the roots that it imports, directly or through others, wherever in the file."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        known = name in found or not _inside(name, roots) or name.rpartition(".")[2] in APART
        if known or not _module_source(name):
            continue
        found.add(name)
        waiting += _imports(name)
    return found


def _imports(module: str) -> list[str]:
    """The names of modules that a module may import."""
    path = _module_path(module)
    package = module if path and path.name == "__init__.py" else module.rpartition(".")[0]
    named: list[str] = []
    for node in ast.walk(ast.parse(_module_source(module))):
        if isinstance(node, ast.Import):
            named += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            named += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return named


@cache
def _module_path(name: str) -> Path | None:
    loaded = sys.modules.get(name)
    try:
        spec = loaded.__spec__ if loaded is not None else importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin and spec.origin.endswith(".py") else None


@cache
def _module_source(name: str) -> str:
    path = _module_path(name)
    return path.read_text() if path is not None and path.exists() else ""


def _class_source(kind: type) -> str:
    try:
        return inspect.cleandoc("\n" + inspect.getsource(kind))
    except (OSError, TypeError):
        return kind.__qualname__


def _without_words(source: str) -> str:
    """Code as a tree without comments, docstrings and layout, the same for every Python that can read it."""
    try:
        return _plain(ast.parse(source))
    except SyntaxError:
        return source


def _plain(node: Any) -> str:
    if isinstance(node, ast.AST):
        shown = (
            f"{name}={_plain(value)}" for name, value in ast.iter_fields(node) if value not in (None, [])
        )
        return f"{type(node).__name__}({','.join(shown)})"
    if isinstance(node, list):
        words = (ast.Expr, ast.Constant)
        code = [n for n in node if not (isinstance(n, words[0]) and _is_text(n.value))]
        return f"[{','.join(map(_plain, code))}]"
    return repr(node)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
