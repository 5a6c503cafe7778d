"""Computes a digest of the code and files that the numbers of a trial depend on. Rows of another digest are refused.

The digest covers the modules that a trial imports, directly or through others, and the modules that run every trial (`ROOTS`).
It leaves out the bookkeeping of the lab, and the modules of a study on which no record depends. It also covers the kernels and
data files that these modules name, the files that fields of the trial name, the data sets that the trial reads, and the
releases of installed packages that a plug-in imports. Imports are read from the source code, and nothing is imported. Imports
by a computed name are not found.
"""

import ast
import hashlib
import inspect
import os
import re
import sys
import textwrap
import types
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata.data.sources import sha256_of
from lemmata.data.store import data_file

if TYPE_CHECKING:
    from lemmata.trial import Trial

HOME = Path(__file__).parent

ROOTS = ("lemmata.lab.work", "lemmata.descent")
"""Modules that every trial uses, or may use through `lemmata.Descent` without an import that names them."""

BOOKKEEPING = tuple(
    f"lemmata.{name}"
    for name in (
        *(
            "cache",
            "cli",
            "commands",
            "data",
            "desk",
            "draw",
            "ending",
            "errors",
            "figure",
            "lab",
            "meaning",
            "measure",
            "notebook",
            "order",
        ),
        *(
            "progress",
            "registration",
            "report",
            "results",
            "rows",
            "scale",
            "source",
            "store_commands",
            "study",
            "sweep",
            "terminal",
        ),
        "testing",
    )
)
"""Modules that store, judge and show records, with all modules below them. They do not count, except the `ROOTS` among them.
Every other module of the package counts wherever it is imported."""

INCLUDED = re.compile(r'^#include "([^"]+)"', re.MULTILINE)

EXCLUDED_MODULES = ("figures", "ledger")
"""Modules of a study on which no record depends."""

BASE_PACKAGES = (
    *("PIL", "beartype", "equinox", "jax", "jaxlib", "jaxtyping", "matplotlib", "numpy", "optax", "pandas"),
    "scipy",
    *("sklearn", "statsmodels", "xarray"),
)
"""Packages that the lab depends on. Their releases do not count, as another release only rounds differently. The origin of a
row names them."""


def trial_digest(trial: "Trial") -> str:
    """Return 16 hexadecimal digits that change with all that the numbers of a trial depend on.

    Comments, docstrings and layout of Python code do not count."""
    return _digest_of(_made_of(trial))


def digests(trials: "Iterable[Trial]") -> set[str]:
    """Return the digests of all kinds of trials among these."""
    return set(sources(trials).values())


def sources(trials: "Iterable[Trial]") -> dict[str, str]:
    """Return the digests by the names of what they cover, one name a line.

    These are the module of a trial (or a class of the script itself), then the modules of its parts, then the files that its
    fields name."""
    found = dict.fromkeys(map(_made_of, trials))
    return {"\n".join([*_names(kinds), *files]): _digest_of((kinds, files)) for kinds, files in found}


def current_digests(stored: Mapping[str, str]) -> set[str]:
    """Return the present digests of what the keys of `stored`, a result of `sources`, name. Nothing is imported.

    If something is not found, such as a script or a file with a relative path, its stored digest is returned."""
    return {_present(named.split("\n")) or digest for named, digest in stored.items()}


def data_files(trial: "Trial") -> dict[str, str]:
    """Return the files of the real data sets that a trial reads and that are here, by name, with their sha256."""
    paths = [data_file(name) for name in trial.data_sets]
    return {path.name: _sha256(str(path), _stamp(str(path))) for path in paths if path.is_file()}


@lru_cache
def _sha256(file: str, stamp: tuple[int, int, int]) -> str:
    """Return the sha256 of a file, computed again only when its stamp changes."""
    return sha256_of(Path(file))


def from_script(trial: "Trial") -> bool:
    """Whether a trial or a part of it is defined in the script itself, whose source other processes do not have."""
    kinds, _ = _made_of(trial)
    return any(kind.__module__ == "__main__" for kind in kinds)


@cache
def module_digest(*modules: str) -> str:
    """Return the digest of modules, all that they import, and the `ROOTS`."""
    return _hash(_parts(modules))


Made = tuple[tuple[type, ...], tuple[str, ...]]
"""The classes of a trial and its parts, each once, and the files that its fields name."""


def _made_of(trial: "Trial") -> Made:
    kinds: dict[type, None] = {}
    files: dict[str, None] = {}
    _collect(trial, kinds, files)
    sets = [str(path) for name in trial.data_sets if (path := data_file(name)).is_file()]
    return tuple(kinds), (*files, *sets)


def _collect(value: Any, kinds: dict[type, None], files: dict[str, None]) -> None:
    """Collect the classes of a trial and its parts, and the strings among their fields that are paths of files."""
    if isinstance(value, str):
        if ("." in value or os.sep in value) and os.path.isfile(value):
            files[value] = None
    elif isinstance(value, tuple):
        for item in value:
            _collect(item, kinds, files)
    elif names := getattr(type(value), "__dataclass_fields__", None):
        kinds[type(value)] = None
        held = vars(value)  # attribute access of an equinox module takes ten times as long
        for name in names:
            item = held[name] if name in held else getattr(value, name, None)
            if type(item) not in (float, int, bool):
                _collect(item, kinds, files)


def _digest_of(made: Made) -> str:
    kinds, files = made
    return _digest(kinds, tuple((name, _stamp(name)) for name in files))


@cache
def _digest(kinds: tuple[type, ...], files: tuple[tuple[str, Any], ...]) -> str:
    """Return the digest of classes and files. The stamps of the files are part of the key of the cache."""
    modules = [name for name in _names(kinds) if not name.startswith("__main__.")]
    script, used = _script([kind for kind in kinds if kind.__module__ == "__main__"])
    return _hash_of(modules, [name for name, _ in files], script, used)


def _present(named: list[str]) -> str | None:
    """Return the present digest of modules and files, or None if one of them is not found."""
    modules = [name for name in named if _module_path(name)]
    files = [name for name in named if name not in modules]
    return _hash_of(modules, files) if named[0] in modules and all(map(os.path.isfile, files)) else None


def _hash_of(
    modules: Sequence[str], files: Sequence[str], script: Sequence[str] = (), used: Collection[str] = ()
) -> str:
    if not files and not script:
        return module_digest(*modules)
    return _hash([*_parts(modules, used), *script, *map(_content, files)])


@cache
def _names(kinds: tuple[type, ...]) -> list[str]:
    """Return the modules that define a trial and its parts: first that of the trial, then those that it does not import."""
    first, *others = (k.__module__ if k.__module__ != "__main__" else f"__main__.{k.__name__}" for k in kinds)
    known, _ = _closure([first])
    return [first, *sorted({*others} - {first} - known)]


def _content(file: str) -> bytes:
    return hashlib.sha256(Path(file).read_bytes()).digest()


def _stamp(file: str) -> tuple[int, int, int]:
    found = os.stat(file)
    return found.st_mtime_ns, found.st_size, found.st_ino


def _hash(parts: Iterable[str | bytes]) -> str:
    texts = (part.encode() if isinstance(part, str) else part for part in parts)
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


# Modules ---------------------------------------------------------------------------------------------------------------


def _parts(modules: Collection[str], used: Collection[str] = ()) -> Iterator[str | bytes]:
    """Yield all that the digest of modules covers: normalised code, files that it names, releases of imported packages."""
    names, releases = _closure(modules, used)
    for name in sorted(names):
        yield f"{name}\n{_code(_module_source(name))}"
        for file in _files(name):
            yield f"{name}\n{file.name}"
            yield file.read_bytes()
    yield from sorted(releases)


def _closure(modules: Collection[str], used: Collection[str] = ()) -> tuple[set[str], set[str]]:
    """Return all modules that count for these and for those that a script uses, and the releases of installed packages."""
    homes = {_home(module) for module in modules}
    found: set[str] = set()
    releases: set[str] = set()
    waiting = [*modules, *used, *ROOTS]
    while waiting:
        name = waiting.pop()
        first = name.partition(".")[0]
        if name in found or first in sys.stdlib_module_names or first in BASE_PACKAGES:
            continue
        if first != "lemmata" and first not in homes and (release := _release(first)):
            releases.add(release)
        elif _module_source(name) and (name in modules or _counts(name, homes)):
            found.add(name)
            waiting += [one for other in _imports(name) for one in (*_packages(other, homes), other)]
    return found, releases


def _counts(name: str, homes: Collection[str]) -> bool:
    """Whether numbers can depend on an imported module."""
    if name in ROOTS:
        return True
    if name == "lemmata" or any(name == one or name.startswith(f"{one}.") for one in BOOKKEEPING):
        return False
    home = _home(name)
    return not _is_study(home, homes) or not {*name[len(home) :].split(".")} & {*EXCLUDED_MODULES}


def _is_study(home: str, homes: Collection[str]) -> bool:
    return home in homes or home.startswith("lemmata.studies.")


def _home(module: str) -> str:
    """Return the package of the study that a module belongs to."""
    words = module.split(".")
    return ".".join(words[:3] if words[:2] == ["lemmata", "studies"] else words[:1])


@cache
def _release(package: str) -> str:
    """Return the name and version of an installed package. Empty for one that is used from its source, or not found."""
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return ""
    places = [] if spec is None else [spec.origin or "", *(spec.submodule_search_locations or ())]
    if not any({"site-packages", "dist-packages"} & {*Path(place).parts} for place in places):
        return ""
    try:
        return " ".join(
            f"{name} {version(name)}" for name in sorted(packages_distributions().get(package, ()))
        )
    except PackageNotFoundError:
        return ""


@cache
def _imports(module: str) -> list[str]:
    """Return the modules that a module imports by name, anywhere in the file.

    A package is among them if something that is not a module is imported from it."""
    path = _module_path(module)
    package = module if path and path.name == "__init__.py" else module.rpartition(".")[0]
    named: list[str] = []
    for node in ast.walk(_parsed(_module_source(module))):
        if isinstance(node, ast.Import):
            named += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            inner = [f"{base}.{alias.name}" for alias in node.names]
            named += inner
            if not all(map(_module_path, inner)):
                named.append(base)
    return named


def _packages(name: str, homes: Collection[str]) -> list[str]:
    """Return the packages that Python imports before a module, except that of a study, which imports claims and figures."""
    words, home = name.split("."), _home(name)
    first = len(home.split(".")) + 1 if _is_study(home, homes) else 1
    return [".".join(words[:length]) for length in range(first, len(words))]


@cache
def _module_path(name: str) -> Path | None:
    """Return the file of a module, without importing anything, or None for a name that is no module of Python code."""
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
        for place in (folder / word / "__init__.py", folder / f"{word}.py")
    ]
    return next((place for place in places if place.is_file()), None)


def _folders(package: str) -> list[Path]:
    """Return the folders of the modules of a package."""
    loaded = sys.modules.get(package)
    if loaded is not None:
        return [Path(folder) for folder in getattr(loaded, "__path__", ())]
    if not package:
        return [Path(folder) for folder in sys.path]
    path = _module_path(package)
    if path is not None:
        return [path.parent] if path.name == "__init__.py" else []
    folders = [folder / package.rpartition(".")[2] for folder in _folders(package.rpartition(".")[0])]
    return [folder for folder in folders if folder.is_dir()]  # a namespace package


@cache
def _files(name: str) -> list[Path]:
    """Return the data files and kernels that string constants of a module name.

    These are files beside it, files in folders beside it, and kernels of the lab with the headers that they include.
    """
    path = _module_path(name)
    if path is None:
        return []
    words = sorted(_texts(_parsed(_module_source(name))))
    folders = [path.parent, *(folder for word in words if (folder := path.parent / word).is_dir())]
    named = {file for folder in folders for word in words if (file := folder / word).is_file()}
    named |= {file for file in (HOME / "kernels").glob("*.cc") if file.name in words}
    named |= {header for file in named if file.suffix == ".cc" for header in headers(file)}
    return sorted(file for file in named if file.suffix != ".py")


def _texts(tree: ast.AST) -> set[str]:
    """Return the string constants of a module that could be relative paths."""
    texts = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {
        text
        for text in texts
        if 0 < len(text) < 100 and text.isprintable() and text.strip("./") and text[0] != "/"
    }


def headers(kernel: Path) -> list[Path]:
    """Return the headers that a file of C++ includes, directly or through others: the lab's, and those that lie beside it."""
    found: set[Path] = set()
    waiting = [kernel]
    while waiting:
        file = waiting.pop()
        for name in INCLUDED.findall(file.read_text(encoding="utf-8")):
            places = (folder / name for folder in (file.parent, HOME / "kernels"))
            header = next((place for place in places if place.is_file()), None)
            if header is not None and header not in found:
                found.add(header)
                waiting.append(header)
    return sorted(found)


@cache
def _module_source(name: str) -> str:
    path = _module_path(name)
    try:
        return path.read_text(encoding="utf-8") if path is not None else ""
    except OSError:
        return ""


# Scripts and notebooks -------------------------------------------------------------------------------------------------


def _script(kinds: list[type]) -> tuple[list[str], set[str]]:
    """Return the code of classes of a script or notebook with all that they use there, and the modules that this code uses."""
    main = vars(sys.modules["__main__"])
    own = {base.__name__: base for kind in kinds for base in kind.__mro__ if base.__module__ == "__main__"}
    found: dict[str, str] = {}
    modules: set[str] = set()
    waiting = list(own)
    while waiting:
        name = waiting.pop()
        thing = own.get(name, main.get(name))
        home = getattr(thing, "__name__" if isinstance(thing, types.ModuleType) else "__module__", None)
        if name in found or thing is None:
            continue
        if home == "__main__" and callable(thing):
            source = _source_of(thing)
            waiting += [node.id for node in ast.walk(_parsed(source)) if isinstance(node, ast.Name)]
            found[name] = _code(source)
        elif isinstance(thing, int | float | complex | str | tuple):
            found[name] = repr(thing)
        elif isinstance(home, str):
            modules.add(home)
    return [f"{name}\n{found[name]}" for name in sorted(found)], modules


def _source_of(thing: Any) -> str:
    """Return the source of a function or class, or its compiled code if there is no source."""
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
    """Return code in a normal form without comments, docstrings and layout. It does not depend on the version of Python."""
    return plain(_parsed(source))


@lru_cache(maxsize=1)  # the same module is parsed several times in a row
def _parsed(source: str) -> ast.AST:
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.Constant(source)


def plain(node: Any) -> str:
    """Return a syntax tree as text without comments, docstrings and layout, the same for every Python that can read it."""
    if isinstance(node, ast.AST):
        shown = [f"{name}={plain(value)}" for name, value in ast.iter_fields(node) if value not in (None, [])]
        return f"{type(node).__name__}({','.join(shown)})"
    if isinstance(node, list):
        return f"[{','.join([plain(item) for item in node if not _is_docstring(item)])}]"
    return repr(node)


def _is_docstring(node: Any) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
