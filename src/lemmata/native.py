"""Kernels: C++ that lies beside a module, compiled once for a machine and called from inside compiled programs.

A kernel is an addition. Its module has the same in JAX, which says what it computes, which it is tested against, and which runs
where there is no compiler.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.metadata import version
from pathlib import Path

from lemmata.guard import cache_folder

OPTIONS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-w")


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
    return True


def _compiled(source: Path) -> Path:
    """The library of a C++ file, made where it is not in the cache. Its name tells the code, the compiler and the instructions
    of this processor apart, for caches may be shared by machines."""
    import jax.ffi

    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        raise OSError("there is no C++ compiler.")
    # What the compiler defines by itself: its version, and the instructions that it may use.
    told = _said(compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull)
    code = "\0".join((source.read_text(), told, *OPTIONS, version("jaxlib")))
    name = f"{source.stem}-{hashlib.sha256(code.encode()).hexdigest()[:16]}.so"
    library = cache_folder() / "kernels" / name
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as folder:
            made = Path(folder) / name
            _said(compiler, *OPTIONS, f"-I{jax.ffi.include_dir()}", str(source), "-o", str(made))
            made.replace(library)  # at once: another process may be looking for it
    return library


def _said(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
