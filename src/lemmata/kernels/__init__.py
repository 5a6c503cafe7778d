"""Kernels: C++ that computes what a function in JAX computes, faster.

    @kernel("graph_slope.cc", plain=slope_of_gathered)
    def slope_of_sets(weights, sets): return slope_of_sets.call("graph_slope", *weights, *sets)

`slope_of_sets(...)` runs the C++ where it can, and the JAX form `plain` elsewhere: on another device, without a compiler, with
kernels off (`LEMMATA_KERNELS=off`, `lemmata.kernels_on(False)`), or for arguments that the C++ does not take. The JAX form says
what is computed, and tests hold the kernel against it. `choices` tells what was chosen last, and why.

A `.cc` file in this folder declares what each of its functions takes and gives:

    KERNEL(name, "query T[width dim], count i4[] -> loss T[] where width > 1", function)

`T` is float32 or float64 and the same everywhere. Dimensions of one name must have one size, and every argument must have as
many dimensions as are named, so that nothing that the C++ reads is left unchecked. `where` adds conditions; one that begins
with an unknown name and `==` gives that name its size. No dimension is empty, unless a condition says that it may be
(`free >= 0`).
"""

import contextlib
import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from lemmata.arguments import checks_arguments
from lemmata.cache import load, private_folder, save
from lemmata.errors import BadInput, note
from lemmata.source import headers

Given = ParamSpec("Given")
Found = TypeVar("Found")

HOME = Path(__file__).parent
SWITCH = "LEMMATA_KERNELS"
"""Environment variable: `off`, or file names of kernels that stay unused, separated by commas."""

OPTIONS = ("-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-w")
CLANG = ("-fmax-type-align=4",)
"""Clang forgets in templates that the vectors of `vectors.h` may lie anywhere, and would read them as if they did not."""

FLOATS = ("float32", "float64")
KINDS = {
    "T": "", "f4": "float32", "f8": "float64", "bool": "bool",
    "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32", "u8": "uint64",
}  # fmt: skip
CONVERTED = ("int32", "int64")
"""Arguments of these types may be given with any type of integer."""


class Refused(ValueError):
    """Says why a kernel does not take what it was given."""


# What a function takes and gives -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """An argument or a result: its name, its type (empty for `T`), and the names or sizes of its dimensions."""

    name: str
    kind: str
    dims: tuple[str, ...]


@dataclass(frozen=True)
class Signature:
    """What a function of a `.cc` file takes and gives. A function of floats has a handler for each precision."""

    name: str
    by_precision: bool
    takes: tuple[Part, ...]
    gives: tuple[Part, ...]
    conditions: tuple[str, ...]

    @property
    def handlers(self) -> tuple[str, ...]:
        return tuple(f"{self.name}_{kind}" for kind in FLOATS) if self.by_precision else (self.name,)

    def precision_of(self, given: Sequence[Any]) -> str:
        """Return the type that stands for `T`: that of all arrays declared so. Single numbers are converted to it."""
        parts = zip(self.takes, given, strict=True)
        kinds = {part.name: str(one.dtype) for part, one in parts if not part.kind and part.dims}
        found = {*kinds.values()}
        if len(found) > 1:
            told = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
            raise Refused(f"{self.name} takes arrays of one type, not {told}")
        if not found <= {*FLOATS}:
            raise Refused(f"{self.name} takes float32 or float64, not {found.pop()}")
        return found.pop() if found else ""

    def sizes_of(self, shapes: Sequence[Sequence[int]], numbers: Mapping[str, int]) -> dict[str, int]:
        """Return the size of every dimension that is named; refuse shapes that do not fit each other."""
        if len(shapes) != len(self.takes):
            raise Refused(f"{self.name} takes {len(self.takes)} arguments, not {len(shapes)}")
        sizes: dict[str, int] = {}
        first: dict[str, str] = {}
        for part, shape in zip(self.takes, shapes, strict=True):
            if len(shape) != len(part.dims):
                raise Refused(f"{self.name}: {part.name} has {len(part.dims)} dimensions, not {len(shape)}")
            for dim, size in zip(part.dims, shape, strict=True):
                owner = first.setdefault(dim, part.name)
                wanted = int(dim) if dim.isdecimal() else sizes.setdefault(dim, size)
                if size != wanted:
                    where = "" if dim.isdecimal() or owner == part.name else f" in {owner}"
                    raise Refused(f"{self.name}: {dim} is {wanted}{where} and {size} in {part.name}")
        known = {**sizes, **numbers}
        for condition in self.conditions:
            name, equal, rest = condition.partition(" == ")
            if equal and name.isidentifier() and name not in known:
                known[name] = eval(rest, {"__builtins__": {}}, known)
            elif not eval(condition, {"__builtins__": {}}, known):
                raise Refused(f"{self.name} needs {condition}, and has {_listed(condition, known)}")
        for dim, size in sizes.items():
            if size < 1 and f"{dim} >= 0" not in self.conditions:
                raise Refused(f"{self.name}: {dim} is {size}")
        return known


def _listed(condition: str, known: Mapping[str, int]) -> str:
    return ", ".join(
        f"{name} = {size}" for name, size in known.items() if re.search(rf"\b{name}\b", condition)
    )


BETWEEN = re.compile(r", (?![^(]*\))")
"""What separates conditions: a comma outside brackets."""
DECLARED = re.compile(r'^(KERNEL|HANDLER)\((\w+),\s*((?:"[^"]*"\s*)+),', re.MULTILINE)


@cache
def signatures(source: Path) -> dict[str, Signature]:
    """Return what the functions of a `.cc` file take and give, by name."""
    found = DECLARED.findall(source.read_text(encoding="utf-8"))
    return {name: _signature(name, macro == "KERNEL", "".join(re.findall(r'"([^"]*)"', text)))
            for macro, name, text in found}  # fmt: skip


def _signature(name: str, by_precision: bool, text: str) -> Signature:
    shapes, _, conditions = text.partition(" where ")
    takes, _, gives = shapes.partition(" -> ")
    return Signature(
        name, by_precision, _parts(takes), _parts(gives), tuple(filter(None, BETWEEN.split(conditions)))
    )


def _parts(text: str) -> tuple[Part, ...]:
    found = re.findall(r"(\w+) (\w+)\[([^\]]*)\]", text)
    return tuple(Part(name, KINDS[kind], tuple(dims.split())) for name, kind, dims in found)


# Kernels -------------------------------------------------------------------------------------------------------------------


class Kernel(Generic[Given, Found]):
    """A function with two forms: `native` calls a C++ function of the file `source`, `plain` is the same in JAX."""

    def __init__(self, source: str | Path, native: Callable[Given, Found], plain: Callable[Given, Found]):
        self.source = HOME / source
        self.native = native
        self.plain = plain
        self.name = f"{self.source.stem}.{native.__name__}"
        self.__doc__ = native.__doc__

    def __call__(self, *given: Given.args, **settings: Given.kwargs) -> Found:
        try:
            found = self.native(*given, **settings)
        except Refused as reason:
            choices[self.name] = f"JAX: {reason}"
            return self.plain(*given, **settings)
        choices[self.name] = "C++"
        return found

    def call(
        self,
        name: str,
        *given: Any,
        lanes: str | None = "broadcast_all",
        in_place: Mapping[int, int] | None = None,
        shape: tuple[int, ...] = (),
        **numbers: int | bool,
    ) -> Any:
        """Call a function of the file; return its results, as a tuple where there are several.

        `lanes`: how `jax.vmap` runs it (`vmap_method` of `jax.ffi.ffi_call`).
        `in_place`: arguments, by number, whose memory takes the result of that number.
        `shape`: that of a result declared as `[...]`.
        `numbers`: integers that the function reads, and sizes of results that no argument has.
        Raises `Refused` where it cannot be called, or not with these.
        """
        return call(self.source, name, *given, lanes=lanes, in_place=in_place, shape=shape, **numbers)

    @property
    def available(self) -> bool:
        """Whether the C++ form can be called in this process."""
        return not why_not(self.source)


choices: dict[str, str] = {}
"""What every kernel (file and function: `graph_slope.slope_of_sets`) ran as when it was traced last: `C++`, or `JAX: ` and
why."""


def kernel(
    source: str | Path, plain: Callable[Given, Found]
) -> Callable[[Callable[Given, Found]], Kernel[Given, Found]]:
    """Make a function that calls C++ a `Kernel` whose JAX form is `plain`. A file outside the lab is given by its path."""
    return lambda native: Kernel(source, native, plain)


def refuse_unless(condition: Any, reason: str) -> None:
    """Let the JAX form run unless a condition on settings is met."""
    if not condition:
        raise Refused(reason)


def call(
    source: Path,
    name: str,
    *given: Any,
    lanes: str | None = "broadcast_all",
    in_place: Mapping[int, int] | None = None,
    shape: tuple[int, ...] = (),
    **numbers: int | bool,
) -> Any:
    """See `Kernel.call`."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    function = signatures(source)[name]
    arrays = [one if hasattr(one, "dtype") else jnp.asarray(one) for one in given]
    whole = {key: int(number) for key, number in numbers.items()}
    sizes = function.sizes_of([one.shape for one in arrays], whole)
    precision = function.precision_of(arrays)
    for place, (part, one) in enumerate(zip(function.takes, arrays, strict=True)):
        kind, own = part.kind or precision, str(one.dtype)
        integer = kind in CONVERTED and jnp.issubdtype(one.dtype, jnp.integer)
        if own != kind and not (integer or (not part.kind and not part.dims)):
            raise Refused(f"{name} takes {part.name} as {kind}, not {own}")
        if kind != str(jax.dtypes.canonicalize_dtype(kind)):
            raise Refused(f"{name} takes {part.name} as {kind}, and JAX has no numbers of 64 bits here")
        arrays[place] = jnp.asarray(one, kind)
    if reason := why_not(source):
        raise Refused(reason)

    def of(part: Part) -> Any:
        own = (
            shape
            if part.dims == ("...",)
            else tuple(int(d) if d.isdecimal() else sizes[d] for d in part.dims)
        )
        return jax.ShapeDtypeStruct(own, part.kind or precision)

    results = [of(part) for part in function.gives]
    target = f"{name}_{precision}" if function.by_precision else name
    bound = jax.ffi.ffi_call(
        target,
        results if len(results) > 1 else results[0],
        vmap_method=lanes,
        input_output_aliases=dict(in_place or {}),
    )
    found = bound(*arrays, **{key: np.int64(number) for key, number in whole.items()})
    return tuple(found) if len(results) > 1 else found


# The switch, and what there is ---------------------------------------------------------------------------------------------


@checks_arguments
def kernels_on(on: bool = True) -> None:
    """Switch kernels on or off, for this process and the workers that it starts from now on. JAX forgets compiled programs.

    >>> kernels_on(False)
    >>> switch()
    'off'
    >>> kernels_on()
    """
    os.environ[SWITCH] = "on" if on else "off"
    import jax

    jax.clear_caches()


def switch() -> str:
    """Return how the switch is set: `on`, `off`, or the kernels that stay unused."""
    return os.environ.get(SWITCH, "").strip() or "on"


def why_not(source: Path) -> str:
    """Return why the functions of a file cannot be called in this process; nothing where they can."""
    import jax

    if switch() == "off" or source.name in switch().split(","):
        return f"kernels are off ({SWITCH})"
    if jax.default_backend() != "cpu":
        return f"kernels run on the CPU, not on {jax.default_backend()}"
    return _loaded(source)


def state() -> str:
    """Return what makes numbers in this process, as rows name it: kernels `on`, `off`, or `on` but for some."""
    if why_not(HOME / "threefry.cc"):
        return "off"
    left = sorted({*(source.name for source in _failed), *switch().split(",")} - {"on"})
    return f"on but for {', '.join(left)}" if left else "on"


_targets: dict[str, str] = {}
"""For every handler that can be called, the file that defines it, seen from here."""

_failed: dict[Path, str] = {}
"""Files that make no library here, and why."""


def targets() -> list[str]:
    """Return the handlers that can be called."""
    return list(_targets)


def called_by(program: str) -> set[str]:
    """Return the files whose functions a program calls."""
    return {source for name, source in _targets.items() if f"@{name}(" in program}


def have(sources: Iterable[str]) -> bool:
    """Return whether all of these files can be called, in another process than the one that found them."""
    return not any(why_not(HOME / source) for source in sources)


@cache
def _loaded(source: Path) -> str:
    """Register the handlers of a file with JAX; return why that is not possible."""
    import jax.ffi

    try:
        library = ctypes.CDLL(str(compiled(source)))
    except (OSError, subprocess.SubprocessError) as error:
        return _failing(source, error)
    for signature in signatures(source).values():
        for name in signature.handlers:
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")
            _targets[name] = os.path.relpath(source, HOME)
    return ""


def _failing(source: Path, error: Exception) -> str:
    """Tell the user once why kernels are not used: there is no compiler, or what it says about one that does not compile."""
    if not compiler():
        why, about = "there is no C++ compiler", "there is no C++ compiler: steps run in JAX alone, slower."
    else:
        lines = str(getattr(error, "stderr", None) or error).strip().splitlines() or [type(error).__name__]
        why = next((line for line in reversed(lines) if "error:" in line), lines[-1])
        about = f"the kernel {source.name} does not compile, and JAX runs in its place: {why}"
    if why not in _failed.values():
        note(about)
    _failed[source] = why
    return why


def prepare(folder: Path) -> None:
    """Compile the kernels that the modules below a folder name, and those of every training, for other processes.

    JAX is not imported, as that takes as long as some of them. The first process that loads a library refuses a cache that is
    not private; here that is no error."""
    if switch() == "off":
        return
    named = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py")) + '"threefry.cc"'
    for source in sorted(HOME.glob("*.cc")):
        if f'"{source.name}"' in named and source.name not in switch().split(","):
            try:
                compiled(source)
            except BadInput:
                return
            except (OSError, subprocess.SubprocessError) as error:
                _failing(source, error)


def report() -> dict[str, str]:
    """Compile and load every kernel of the lab; return for each `works`, or why it does not."""
    return {source.name: why_not(source) or "works" for source in sorted(HOME.glob("*.cc"))}


# Compiling -----------------------------------------------------------------------------------------------------------------


def compiler() -> str | None:
    """Return the C++ compiler of this machine."""
    return next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)


def compiler_version() -> str:
    """Return the path and the version of the compiler; `none` where there is none."""
    found = compiler()
    return f"{found} ({_output(found, '--version').splitlines()[0]})" if found else "none"


def compiled(source: Path) -> Path:
    """Return the library of a C++ file, made where it is not in the cache. Its name tells the code, the compiler and the
    instructions of this processor apart, for caches may be shared by machines."""
    found = compiler()
    if found is None:
        raise OSError("there is no C++ compiler")
    told = _defined(found)
    included = [header.read_text(encoding="utf-8") for header in headers(source)]
    options = OPTIONS + CLANG if "__clang__" in told else OPTIONS
    code = "\0".join((source.read_text(encoding="utf-8"), *included, told, *options, version("jaxlib")))
    name = f"{source.stem}-{hashlib.sha256(code.encode()).hexdigest()[:16]}.so"
    library = private_folder("kernels") / name
    if load(library) is None:
        with _alone(library.with_suffix(".lock")), tempfile.TemporaryDirectory(dir=library.parent) as folder:
            if load(library) is not None:  # another process made it while this one waited
                return library
            made = Path(folder) / name
            _output(found, *options, f"-I{HOME}", f"-I{xla_headers()}", str(source), "-o", str(made))
            save(library, made.read_bytes())
    return library


def xla_headers() -> Path:
    """Return what `jax.ffi.include_dir` returns."""
    found = find_spec("jaxlib")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "include"


@cache
def _defined(compiler: str) -> str:
    """What a compiler defines by itself: its version, and the instructions that it may use."""
    return _output(compiler, "-march=native", "-dM", "-E", "-x", "c++", os.devnull)


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time where the system knows such locks: workers that start together compile a kernel once."""
    with path.open("wb") as file:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, encoding="utf-8", errors="replace").stdout
