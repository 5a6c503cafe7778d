"""Kernels: C++ that lies beside a module, compiled once for a machine and called from inside compiled programs.

A kernel is an addition. The same exists in JAX, which says what it computes, which it is tested against, and which runs where
there is no compiler. What kernels share is in `vectors.h`.
"""

import contextlib
import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from lemmata.guard import cache_folder
from lemmata.source import headers

OPTIONS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-w")
CLANG = ("-fmax-type-align=4",)
"""Clang forgets in templates that the vectors of `vectors.h` may lie anywhere, and would read them as if they did not."""
HOME = Path(__file__).parent

_kernels: dict[str, tuple[str, ...]] = {}
"""For every handler that can be called its file, seen from here, and all handlers of that file."""


def names() -> list[str]:
    """The handlers that can be called."""
    return list(_kernels)


def called_by(program: str) -> set[tuple[str, ...]]:
    """The kernels that a program calls."""
    return {kernel for name, kernel in _kernels.items() if f"@{name}(" in program}


def have(kernels: Iterable[tuple[str, ...]]) -> bool:
    """Whether all of them can be called, in another process than the one that found them."""
    return all(loaded(HOME / file, *handlers) for file, *handlers in kernels)


@cache
def loaded(source: Path, *handlers: str) -> bool:
    """Whether the handlers that a C++ file defines (`XLA_FFI_DEFINE_HANDLER_SYMBOL`) can be called by their names with
    `jax.ffi.ffi_call`: on processors, and where a compiler makes a library of the file or has made one before."""
    import jax.ffi

    try:
        library = ctypes.CDLL(str(_compiled(source)))
    except (OSError, subprocess.SubprocessError):
        return False
    for name in handlers:
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")
        _kernels[name] = os.path.relpath(source, HOME), *handlers
    return True


def prepare(folder: Path) -> None:
    """Make the libraries of the kernels below a folder and of the lab's own, for processes that will ask for them. JAX is not
    imported, which takes as long as some of them."""
    for source in (*sorted(HOME.glob("*.cc")), *sorted(folder.rglob("*.cc"))):
        with contextlib.suppress(OSError, subprocess.SubprocessError):  # whoever asks for it is told so
            _compiled(source)


def _compiled(source: Path) -> Path:
    """The library of a C++ file, made where it is not in the cache. Its name tells the code, the compiler and the instructions
    of this processor apart, for caches may be shared by machines."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        raise OSError("there is no C++ compiler.")
    told = _defined(compiler)
    included = [header.read_text() for header in headers(source)]
    options = OPTIONS + CLANG if "__clang__" in told else OPTIONS
    code = "\0".join((source.read_text(), *included, told, *options, version("jaxlib")))
    name = f"{source.stem}-{hashlib.sha256(code.encode()).hexdigest()[:16]}.so"
    library = cache_folder() / "kernels" / name
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with _alone(library.with_suffix(".lock")), tempfile.TemporaryDirectory(dir=library.parent) as folder:
            if library.exists():
                return library
            made = Path(folder) / name
            found = (f"-I{HOME}", f"-I{xla_headers()}")
            _said(compiler, *options, *found, str(source), "-o", str(made))
            made.replace(library)  # at once: another process may be looking for it
    return library


def xla_headers() -> Path:
    """What `jax.ffi.include_dir` says."""
    found = find_spec("jaxlib")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "include"


@cache
def _defined(compiler: str) -> str:
    """What a compiler defines by itself: its version, and the instructions that it may use."""
    return _said(compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time where the system knows such locks: workers that start together compile a kernel once."""
    with path.open("w") as file:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
