"""Caches traced programs on disk, so that the next process does not trace the same function again.

Tracing and lowering a training takes longer than loading the compiled program, which JAX caches itself, and every worker of
every command would repeat it. The key of a program contains all that it depends on: the digest of the trial (or of the module,
for functions of a computed trial), the structure and shapes of its arguments, JAX and its settings. Only programs of the
studies in this package are cached, because other code may depend on more than its digest covers.

A file holds one line of JSON, then the program as `jax.export` writes it. Reading it executes nothing: the classes that the
JSON names are looked up among the loaded ones, and their instances are filled without calling them.
"""

import contextlib
import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import export
from jax.core import Tracer

from lemmata import kernels
from lemmata.cache import load, private_folder, save
from lemmata.guard import SETTINGS
from lemmata.source import module_digest, trial_digest
from lemmata.structure import Unwritable, read_structure, write_structure
from lemmata.trial import Trial

Made = TypeVar("Made")

PACKAGES = ("jax", "jaxlib", "equinox", "optax", "numpy", "scipy")

TRACE_SETTINGS = ("jax_enable_x64", "jax_use_direct_linearize", *SETTINGS)
"""Settings of JAX that change a trace."""

_cache_enabled = False


def enable_cache() -> None:
    """Switch the cache on in this process. Workers do so, as they are started often; elsewhere writing would not pay."""
    global _cache_enabled
    _cache_enabled = True


class Program:
    """A function of pytrees of arrays, compiled as by `jax.jit`, whose trace is cached.

    `function`: the function.
    `trial_of`: returns the trial whose code runs, given the arguments. Without it, that is the module of the function.
    `options`: options of the compiler.

    Called inside another program, it becomes a part of that one."""

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
        """Return the shapes and types that a call would return."""
        _, ready = self._found(given)
        return jax.eval_shape(self._plain, *given) if ready is None else ready.shapes

    def _found(self, given: tuple[Any, ...]) -> "tuple[list[Any], _Ready | None]":
        """Return the arguments as a list, and the program for such a list, or None if it cannot be cached."""
        if not _cache_enabled:
            return [], None
        numbers, structure = jax.tree.flatten(given)
        if any(isinstance(leaf, Tracer) for leaf in numbers):
            return [], None
        leaves = [leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf) for leaf in numbers]
        place = structure, tuple((leaf.shape, leaf.dtype) for leaf in leaves), _trace_settings()
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
        made = _cached(code, what, lambda: self._traced(structure, leaves), _encode, _decode)
        keyed = [place for place, leaf in enumerate(leaves) if _is_key(leaf)]
        return _Ready(made, trial, self._jit, keyed) if made and kernels.have(made.kernels) else None

    def _traced(self, structure: Any, leaves: list[Any]) -> "_Written | None":
        """Trace and export the program. Returns None for a program that calls back into Python, or whose function raises.

        Errors of the function are raised again when it is called without the cache."""
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
            program.trace(*plain)  # registers the kernels that it calls
            allowed = [export.DisabledSafetyCheck.custom_call(name) for name in kernels.targets()]
            made = export.export(program, disabled_checks=allowed)(*plain)
            return _Written(bytes(made.serialize()), back, kernels.called_by(made.mlir_module()))
        except (NotImplementedError, ValueError):
            return None


class _Written(NamedTuple):
    """A program as it is stored.

    `program`: the exported function of a list of arrays, in which keys are given as their data.
    `back`: a pytree of the structure of the result, with True in place of a trial, which is inserted from the arguments.
    `kernels`: the kernels that it calls.
    """

    program: bytes
    back: Any
    kernels: set[str]


def _encode(written: _Written | None) -> bytes:
    """Return the bytes of the file of a program."""
    if written is None:
        return b"null\n"
    back = write_structure(written.back)
    if jax.tree.structure(read_structure(back)) != jax.tree.structure(written.back):
        raise Unwritable
    head = {"back": back, "kernels": sorted(written.kernels)}
    return json.dumps(head).encode() + b"\n" + written.program


def _decode(data: bytes) -> _Written | None:
    """Parse the bytes that `_encode` wrote."""
    line, _, program = data.partition(b"\n")
    head = json.loads(line)
    if head is None:
        return None
    return _Written(program, read_structure(head["back"]), {*head["kernels"]})


class _Ready:
    """A stored program, ready to be called. It is compiled once, for arrays from anywhere.

    `jax.jit` would compile it again for arrays that another program has left on the device."""

    def __init__(self, written: _Written, trial: Trial | None, jit: Callable[..., Any], keyed: list[int]):
        self._keyed = keyed
        self._exported = export.deserialize(bytearray(written.program))
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
    """Return a decorator that makes a `Program` of a function."""
    return lambda function: Program(function, trial_of, options)


def cached(trial: Trial, what: Any, make: Callable[[], Made]) -> Made:
    """Return the result of `make`, from the cache if it was made before for the same code.

    `trial`: the trial whose code `make` depends on.
    `what`: everything else that the result depends on.
    `make`: returns plain data for JSON.
    """
    code = _code_of(trial)
    if code is None:
        return make()
    return _cached(code, what, make, lambda made: json.dumps(made).encode(), json.loads)


def _cached(
    code: tuple[Any, ...],
    what: Any,
    make: Callable[[], Made],
    encode: Callable[[Made], bytes],
    decode: Callable[[bytes], Made],
) -> Made:
    words = repr(
        (what, *code, *map(version, PACKAGES), _trace_settings(), jax.default_backend(), kernels.state())
    )
    path = None
    with contextlib.suppress(OSError):
        path = private_folder("programs") / hashlib.sha256(words.encode()).hexdigest()[:32]
    if path is not None and (found := load(path)) is not None:
        with contextlib.suppress(Unwritable):
            return decode(found)
    made = make()
    if path is not None:
        with contextlib.suppress(OSError, Unwritable):
            save(path, encode(made))
    return made


def _is_trial(node: Any) -> bool:
    return isinstance(node, Trial)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> Any:
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _code_of(trial: Trial) -> tuple[list[str], str] | None:
    """Return the classes of a trial and its digest, or None unless all classes are in this package."""
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in _kinds(trial)]
    return (kinds, trial_digest(trial)) if all(map(_ours, kinds)) else None


def _code_in(module: str) -> tuple[str, str] | None:
    return (module, module_digest(module)) if _ours(module) else None


def _ours(name: str) -> bool:
    return name.startswith("lemmata.")


def _kinds(owner: Any) -> Iterator[type]:
    """Yield the classes of a trial and of its parts."""
    yield type(owner)
    for field in dataclasses.fields(owner):
        value = getattr(owner, field.name)
        if dataclasses.is_dataclass(value):
            yield from _kinds(value)


def _trace_settings() -> tuple[Any, ...]:
    return kernels.switch(), *(getattr(jax.config, name, None) for name in TRACE_SETTINGS)
