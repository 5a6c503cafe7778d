"""What a trial computes, as a digest of its source: records of another digest were made by another trial."""

import ast
import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lemmata.trial import Trial

SHARED = ("lemmata.bench", "lemmata.reduce")
"""Rooms of the lab that studies build on: what is imported from them counts as the trial's own."""

APART = ("claims", "figures", "pictures", "planted")
"""Rooms of a study that no record depends on."""


def trial_digest(trial: "Trial") -> str:
    """16 hexadecimal digits that change with the code of a trial: the module of its class, and every module of the same
    study (and of the shared rooms) that it imports, with the kernels that lie beside them. Comments, docstrings and layout do
    not count, but for those of kernels."""
    return _digest(type(trial))  # pyright: ignore[reportArgumentType]


def digests(trials: "Iterable[Trial]") -> set[str]:
    """The digests of all kinds of trials among these."""
    return set(sources(trials).values())


def sources(trials: "Iterable[Trial]") -> dict[str, str]:
    """The digests by where the code is: a module, or a class of the script itself."""
    kinds: list[Any] = list({type(trial): None for trial in trials})
    return {
        k.__module__ if k.__module__ != "__main__" else f"__main__.{k.__name__}": _digest(k) for k in kinds
    }


def as_it_is(told: Mapping[str, str]) -> set[str]:
    """The digests that the code has now which a store tells of. Nothing is imported; code that is not to be found (such as a
    script) is taken to be what it was."""
    return {module_digest(name) if _module_path(name) else digest for name, digest in told.items()}


@cache
def _digest(kind: type) -> str:
    return _hash(_main_sources(kind)) if kind.__module__ == "__main__" else module_digest(kind.__module__)


@cache
def module_digest(module: str) -> str:
    """The digest of a module with all that it imports of its study and of the shared rooms."""
    names = sorted(_imported(module))
    modules = [f"{name}\n{_code(_module_source(name))}" for name in names]
    return _hash(modules + [file.read_text() for name in names for file in _kernels(name)])


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


# Modules ---------------------------------------------------------------------------------------------------------------


def _imported(module: str) -> set[str]:
    """A module and all modules of its study and of the shared rooms that it imports, directly or through others."""
    home = _home(module)
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        ours = any(name == root or name.startswith(f"{root}.") for root in (home, *SHARED))
        title_page = name == home != module
        if (
            name in found
            or not ours
            or title_page
            or name.split(".")[-1] in APART
            or not _module_source(name)
        ):
            continue
        found.add(name)
        waiting += _imports(name)
    return found


def _home(module: str) -> str:
    """The package of the study that a module belongs to."""
    words = module.split(".")
    return ".".join(words[:3] if words[:2] == ["lemmata", "studies"] else words[:1])


@cache
def _imports(module: str) -> list[str]:
    """What a module may import, wherever in the file: modules, and names that may be modules or something in them."""
    path = _module_path(module)
    package = module if path and path.name == "__init__.py" else module.rpartition(".")[0]
    named: list[str] = []
    for node in ast.walk(_parsed(_module_source(module))):
        if isinstance(node, ast.Import):
            named += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            named += [base, *(f"{base}.{alias.name}" for alias in node.names)]
    return named


@cache
def _module_path(name: str) -> Path | None:
    """The file of a module, found without importing anything: none for what is no module, or not written in Python."""
    if not all(word.isidentifier() for word in name.split(".")):
        return None
    loaded = sys.modules.get(name)
    if loaded is not None:
        file = getattr(loaded, "__file__", None)
        return Path(file) if file and file.endswith(".py") else None
    package, _, word = name.rpartition(".")
    places = [
        place
        for folder in _folders(package)
        for place in (folder / f"{word}.py", folder / word / "__init__.py")
    ]
    return next((place for place in places if place.is_file()), None)


def _folders(package: str) -> list[Path]:
    """Where the modules of a package are."""
    loaded = sys.modules.get(package)
    if loaded is not None:
        return [Path(folder) for folder in getattr(loaded, "__path__", ())]
    if not package:
        return [Path(folder) for folder in sys.path]
    path = _module_path(package)
    return [path.parent] if path is not None and path.name == "__init__.py" else []


def _kernels(name: str) -> list[Path]:
    """The files of C++ beside a module that it names, with the headers that such files share."""
    path = _module_path(name)
    beside = sorted(path.parent.glob("*.cc")) if path is not None else []
    named = [file for file in beside if file.name in _module_source(name)]
    return [part for file in named for part in (file, *headers(file))]


def headers(kernel: Path) -> list[Path]:
    """The headers that a file of C++ may include: the lab's, and those that lie beside it."""
    return sorted({*Path(__file__).parent.glob("*.h"), *kernel.parent.glob("*.h")})


@cache
def _module_source(name: str) -> str:
    path = _module_path(name)
    try:
        return path.read_text() if path is not None else ""
    except OSError:
        return ""


# Scripts and notebooks -------------------------------------------------------------------------------------------------


def _main_sources(kind: type) -> list[str]:
    """The code of a class that was written in the script or notebook itself, and of what it names there."""
    main = vars(sys.modules["__main__"])
    found: dict[str, str] = {}
    waiting = [kind.__name__, *(base.__name__ for base in kind.__mro__ if base.__module__ == "__main__")]
    while waiting:
        name = waiting.pop()
        thing = kind if name == kind.__name__ else main.get(name)
        if name in found or thing is None or isinstance(thing, types.ModuleType):
            continue
        if getattr(thing, "__module__", None) == "__main__" and callable(thing):
            source = _source_of(thing)
            waiting += [node.id for node in ast.walk(_parsed(source)) if isinstance(node, ast.Name)]
            found[name] = _code(source)
        elif isinstance(thing, int | float | complex | str | tuple):
            found[name] = repr(thing)
    return [f"{name}\n{found[name]}" for name in sorted(found)]


def _source_of(thing: Any) -> str:
    """The source of a function or class; what its functions were compiled to where there is none to be had."""
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        if isinstance(thing, type):
            own = (getattr(thing, name) for name in sorted(vars(thing)))
            return "\n".join(_source_of(one) for one in own if isinstance(one, types.FunctionType))
        return _compiled(thing.__code__) if hasattr(thing, "__code__") else repr(type(thing))


def _compiled(code: types.CodeType) -> str:
    inner = [
        _compiled(const) if isinstance(const, types.CodeType) else repr(const) for const in code.co_consts
    ]
    return repr((code.co_code, code.co_names, inner))


# Code without words ----------------------------------------------------------------------------------------------------


@cache
def _code(source: str) -> str:
    """Code as a tree without comments, docstrings and layout, the same for every Python that can read it."""
    return _plain(_parsed(source))


def _parsed(source: str) -> ast.AST:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Constant(source)


def _plain(node: Any) -> str:
    if isinstance(node, ast.AST):
        shown = [
            f"{name}={_plain(value)}" for name, value in ast.iter_fields(node) if value not in (None, [])
        ]
        return f"{type(node).__name__}({','.join(shown)})"
    if isinstance(node, list):
        return f"[{','.join([_plain(item) for item in node if not _is_docstring(item)])}]"
    return repr(node)


def _is_docstring(node: Any) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
