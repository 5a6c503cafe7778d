"""Programs that are traced once: what JAX made of a function is kept on disk, and the next process reads it.

To trace a training and to lower it takes longer than to load what the compiler made of it (which JAX keeps itself), and every
worker of every command would do it again. A program is kept by all that it depends on: the code of the lab and of the trial
(or of the module, for what a computed trial calls), the structure and shapes of its arguments, JAX and what it was told. Only
code of the lab's own studies is kept, and no trial that reads a graph or a table from a file: on which files those of others
depend is not known.
"""

import contextlib
import dataclasses
import hashlib
import os
import pickle
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import export
from jax.core import Tracer

from lemmata import guard, native, threefry
from lemmata.source import module_digest, trial_digest
from lemmata.trial import Trial, fields

Made = TypeVar("Made")

FILES = ("file", "path")
"""Names of fields that name a file."""

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy")

TOLD = (
    *("enable_x64", "default_matmul_precision", "numpy_dtype_promotion", "numpy_rank_promotion"),
    *("default_prng_impl", "threefry_partitionable", "random_seed_offset", "softmax_custom_jvp"),
)
"""What JAX may be told that changes a trace."""


_keeping = False


def keep() -> None:
    """From now on programs are kept in this process: for workers, which are started again and again. Elsewhere writing them
    down would only cost."""
    global _keeping
    _keeping = True


class Program:
    """A function of pytrees of arrays, compiled as by `jax.jit`, whose trace is kept. `trial_of` finds the trial whose code it
    runs among its arguments; where there is none, the code is that of its own module. Inside another program it is a part of
    that one."""

    def __init__(
        self,
        function: Callable[..., Any],
        trial_of: Callable[..., Trial] | None,
        options: dict[str, int | bool] | None = None,
    ):
        self._function = function
        self._trial_of = trial_of
        self._jit = lambda function: jax.jit(function, compiler_options=options)
        self._plain = self._jit(function)
        self._ready: dict[Any, _Ready | None] = {}

    def __call__(self, *given: Any) -> Any:
        leaves, ready = self._found(given)
        return self._plain(*given) if ready is None else ready(leaves)

    def shapes(self, *given: Any) -> Any:
        """What a call would give, as shapes and types."""
        _, ready = self._found(given)
        return jax.eval_shape(self._plain, *given) if ready is None else ready.shapes

    def _found(self, given: tuple[Any, ...]) -> "tuple[list[Any], _Ready | None]":
        """The arguments as a list, and the program for such a list; nothing where a program cannot be kept."""
        if not _keeping:
            return [], None
        numbers, structure = jax.tree.flatten(given)
        if any(isinstance(leaf, Tracer) for leaf in numbers):
            return [], None
        leaves = [leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf) for leaf in numbers]
        place = structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), _told()
        if place not in self._ready:
            self._ready[place] = self._made(given, structure, leaves)
        return leaves, self._ready[place]

    def _made(self, given: tuple[Any, ...], structure: Any, leaves: list[Any]) -> "_Ready | None":
        trial = self._trial_of(*given) if self._trial_of else None
        code = _code_of(trial) if trial is not None else _code_in(self._function.__module__)
        if code is None:
            return None
        form = tuple((leaf.shape, str(leaf.dtype)) for leaf in leaves)
        what = self._function.__qualname__, str(structure), form
        made = _kept(code, what, lambda: self._traced(structure, leaves))
        keyed = [place for place, leaf in enumerate(leaves) if _is_key(leaf)]
        return _Ready(made, trial, self._jit, keyed) if made and native.have(made.kernels) else None

    def _traced(self, structure: Any, leaves: list[Any]) -> "_Written | None":
        """The program as it is written down; nothing for a program that calls back into Python. (An error of the function
        itself comes up again when it is called.)"""
        back: Any = None
        kinds = [jax.random.key_impl(leaf) if _is_key(leaf) else None for leaf in leaves]

        def flat(*plain: Any) -> list[Any]:
            nonlocal back
            keyed = [
                leaf if kind is None else jax.random.wrap_key_data(leaf, impl=kind)
                for leaf, kind in zip(plain, kinds, strict=True)
            ]
            given = self._function(*jax.tree.unflatten(structure, keyed))
            back = jax.tree.map(_is_trial, given, is_leaf=_is_trial)
            return jax.tree.leaves(given)

        program, plain = self._jit(flat), [_plain(leaf) for leaf in leaves]
        try:
            program.trace(*plain)  # finds the kernels that it calls
            allowed = [export.DisabledSafetyCheck.custom_call(name) for name in native.names()]
            made = export.export(program, disabled_checks=allowed)(*plain)
            return _Written(made.serialize(), back, native.called_by(made.mlir_module()))
        except (NotImplementedError, ValueError):
            return None


class _Written(NamedTuple):
    """A program as a function of a list of arrays (keys as their data), something of the structure that it gives, with a yes in
    the place of a trial (structures and trials do not survive being written down), and the kernels that it calls."""

    program: bytearray
    back: Any
    kernels: set[tuple[str, ...]]


class _Ready:
    """A program as it was written down. It is compiled once, whichever arrays it is first called with: `jax.jit` would compile
    it again for those that another program has left on the device."""

    def __init__(self, written: _Written, trial: Trial | None, jit: Callable[..., Any], keyed: list[int]):
        self._keyed = keyed
        self._exported = export.deserialize(written.program)
        self._structure = jax.tree.structure(jax.tree.map(lambda leaf: trial if leaf else 0, written.back))
        self._jit = jit
        self._compiled: Any = None

    def __call__(self, leaves: list[Any]) -> Any:
        for place in self._keyed:
            leaves[place] = jax.random.key_data(leaves[place])
        if self._compiled is None:
            self._compiled = self._jit(self._exported.call).lower(*leaves).compile()
        return jax.tree.unflatten(self._structure, self._compiled(*leaves))

    @property
    def shapes(self) -> Any:
        found = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in self._exported.out_avals]
        return jax.tree.unflatten(self._structure, found)


def traced_once(
    trial_of: Callable[..., Trial] | None = None, options: dict[str, int | bool] | None = None
) -> Callable[[Callable[..., Any]], Program]:
    """The decorator of such programs."""
    return lambda function: Program(function, trial_of, options)


def kept(trial: Trial, what: Any, make: Callable[[], Made]) -> Made:
    """What `make` gives for the code of a trial, read from disk where it was made before; `what` says all else that it depends
    on."""
    code = _code_of(trial)
    return make() if code is None else _kept(code, what, make)


def _kept(code: tuple[Any, ...], what: Any, make: Callable[[], Made]) -> Made:
    words = repr((what, *code, _lab(), _told(), jax.default_backend(), threefry.by_kernel()))
    path = guard.cache_folder() / "programs" / hashlib.sha256(words.encode()).hexdigest()[:32]
    with contextlib.suppress(OSError):
        seal, _, found = path.read_bytes().partition(b"\n")
        if seal == _seal(found):
            return pickle.loads(found)
    made = make()
    written = pickle.dumps(made)
    if jax.tree.structure(pickle.loads(written)) != jax.tree.structure(made):
        return made  # modules with a field that was never set do not survive being written down
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        temporary.write_bytes(_seal(written) + b"\n" + written)
        os.replace(temporary, path)
    return made


def _seal(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def _is_trial(node: Any) -> bool:
    return isinstance(node, Trial)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _code_of(trial: Trial) -> tuple[list[str], str] | None:
    """The classes of a trial and the digest of their code; nothing unless all that a program of the trial depends on is known:
    its code is the lab's, and it reads no file."""
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in _kinds(trial)]
    reads = any(name.rpartition(".")[2] in FILES and value for name, value in fields(trial).items())
    return None if reads or not all(map(_ours, kinds)) else (kinds, trial_digest(trial))


def _code_in(module: str) -> tuple[str, str] | None:
    return (module, module_digest(module)) if _ours(module) else None


def _ours(name: str) -> bool:
    return name.startswith("lemmata.")


def _kinds(owner: Any) -> Iterator[type]:
    """The classes of a trial and of its parts."""
    yield type(owner)
    for field in dataclasses.fields(owner):
        value = getattr(owner, field.name)
        if dataclasses.is_dataclass(value):
            yield from _kinds(value)


@cache
def _lab() -> tuple[str, ...]:
    """The code that the programs of all trials go through, and the releases that it builds on."""
    home = Path(__file__).parent
    own = [path for path in sorted(home.rglob("*")) if path.suffix in (".py", ".cc", ".h")]
    files = [path for path in own if "studies" not in path.relative_to(home).parts]
    code = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    return code, *map(version, PACKAGES)


def _told() -> tuple[Any, ...]:
    return tuple(getattr(jax.config, f"jax_{name}", None) for name in TOLD)
