"""Describes one training: an immutable object with functions that start, step, stop and record it.

A trial is a pytree. Its *leaves* are numbers that may vary inside one compiled program, such as a signal norm or a step size.
Its *structure* consists of the fields made with `fixed()`. They fix shapes or make choices: samples, dimensions, simulator.
The lab groups trials by structure, so that each structure is compiled once.
"""

import dataclasses
import functools
import hashlib
import json
import types
import typing
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from lemmata.arguments import checks_arguments, require_kind
from lemmata.errors import BadInput, require, shortened, unknown
from lemmata.guard import double
from lemmata.own import Taken
from lemmata.threefry import new_key

Key = Array
State = PyTree
Record = Mapping[str, Array]
Precision = Literal["float32", "float64"]

fixed = functools.partial(eqx.field, static=True)
"""Declares a field that is part of the structure of a trial: it fixes shapes or makes a choice."""


SIZES = (
    *("batch", "channels", "dim", "dimension", "draws", "heads", "logs", "neurons", "patches", "patterns"),
    *("points", "prompts", "samples", "starts", "steps", "tokens", "width"),
)
"""Integer fields whose name ends in one of these words must be at least 1."""

MAX_INTEGER = 10**36
"""The largest integer that a field may hold. Reduced simulators accept very large sizes, such as a dimension of 1e32."""

MAX_SEED = 2**63 - 1

EXTREMES = (1e-36, 1e36)
"""The range of floats, in absolute value. A float is 0 or lies in this range, which single precision can represent."""


class Trial(eqx.Module):
    """The work of one cell. The two concrete kinds are `Descending` (stepped by the lab) and `Computed` (a plain function)."""

    name: ClassVar[str] = ""
    """The name of the trial in identities: `study-id/word`. It is declared, so that moving the code changes no random draw."""

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """The names of the dimensions of each recorded array that is not a scalar. The lab adds `step` to curves."""

    paired: ClassVar[tuple[str, ...]] = ()
    """Fields that do not change the random key, as dotted paths or names of parts.

    Cells that differ only in these fields have the same data and initial weights, so that they can be compared in pairs."""

    may_be_missing: ClassVar[tuple[str, ...]] = ()
    """Recorded arrays, watched ones included, that may hold NaN or infinities. A run with such a number in any other array
    is recorded as diverged."""

    lockstep: ClassVar[bool] = True
    """Whether several runs advance together. Set it to False if the arrays of one run fill the cache of a core."""

    revision: ClassVar[int] = 1
    """Increase this number when the meaning of the trial changes. Records of an older revision are not reused."""

    def __check_init__(self):
        require_ranges(self)

    @property
    def data_sets(self) -> tuple[str, ...]:
        """The names of the real data sets that the trial reads (see `lemmata data`). Its records depend on their files."""
        return ()


class Supply(NamedTuple):
    """What a training reads from files, in place of what it would draw. None: it is drawn."""

    data: PyTree = None
    weights: PyTree = None


class Tracks(NamedTuple):
    """Quantities that are followed at every step, by name. Each gives one number or array a run.

    `first`: flags; the step at which each was first true is recorded (-1: never).
    `largest`: values; the maximum over the steps is recorded.
    `total`: values; the sum over the steps is recorded.
    """

    first: Mapping[str, Array] = {}
    largest: Mapping[str, Array] = {}
    total: Mapping[str, Array] = {}


class Descending(Trial):
    """A training that goes step by step, given by pure functions of its state.

    `precision`: the floating type of the leaves.
    `steps`: the largest number of steps.
    `log_steps`: the steps at which `watch` is recorded, strictly increasing from 0.
    """

    precision: eqx.AbstractVar[Precision]

    @property
    @abstractmethod
    def steps(self) -> int:
        """The largest number of steps. A run that has not finished by then has the status `capped`."""

    @property
    @abstractmethod
    def log_steps(self) -> tuple[int, ...]:
        """The steps at which `watch` is recorded."""

    @property
    def steps_by_kernel(self) -> bool:
        """Whether a C++ kernel computes the steps. The rest of the program is then compiled with less optimisation."""
        return False

    @abstractmethod
    def start(self, key: Key) -> State:
        """Return the state before the first step. All random numbers come from `key`."""

    @abstractmethod
    def step(self, state: State) -> State:
        """Return the state after one more step."""

    @abstractmethod
    def loss(self, state: State) -> Float[Array, ""]:
        """Return the loss. The run has diverged when it is not finite."""

    @abstractmethod
    def finished(self, state: State) -> Bool[Array, ""]:
        """Whether the run stops here."""

    @abstractmethod
    def watch(self, state: State) -> Record:
        """Return what is recorded at the logged steps, as curves."""

    @abstractmethod
    def record(self, state: State) -> Record:
        """Return what is recorded of the last state: scalars and arrays."""

    def track(self, state: State) -> Tracks:
        """Return what is followed at every step. It is recorded under the same names."""
        return Tracks()

    def supplied(self, key: Key) -> Supply:
        """Return the data and weights that the training reads from files. It is called outside of compiled programs."""
        return Supply()

    def takes(self, key: Key) -> Taken:
        """Return the form of the data and weights that a user may pass to `lm.train`, which checks them before `start_from`."""
        refusal = f"{kind(self)} takes no data or weights of one's own."
        return Taken(refusal, refusal)

    def check_own(self, data: PyTree, weights: PyTree) -> None:
        """Raise `BadInput` for values that the training cannot use. Shapes and types have been checked; None was not given."""

    def start_from(self, key: Key, data: PyTree = None, weights: PyTree = None) -> State:
        """As `start`, with the user's data or initial weights in place of the drawn ones. `takes` gives their form."""
        raise NotImplementedError(f"{type(self).__name__} takes no data or weights.")


Kind = TypeVar("Kind", bound=Descending)


class Computed(Trial):
    """Work that is not one compiled training: a convex solver, a training in phases, an eigenvalue routine."""

    @abstractmethod
    def compute(self, key: Key) -> Mapping[str, Any]:
        """Do all the work and return named scalars and arrays."""


def with_precision(trial: Kind) -> Kind:
    """Return the trial with its leaves converted to arrays of its precision."""
    dtype = jnp.dtype(trial.precision)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype if isinstance(leaf, float) else None), trial)


# Fields by dotted path -------------------------------------------------------------------------------------------------


@checks_arguments
def fields(trial: eqx.Module) -> dict[str, Any]:
    """Return every settable field of a trial by its dotted path, in order, including the fields of its parts."""
    return _fields(trial)


def _fields(trial: Any, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value, _ in _field_values(trial):
        if dataclasses.is_dataclass(value):
            found |= _fields(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _field_values(owner: Any) -> list[tuple[str, Any, Any]]:
    """Return the name, value and default of every field of a trial or a part.

    Values are read from `__dict__`: attribute access of an equinox module takes most of the time of building a sweep."""
    values = getattr(owner, "__dict__", {})
    return [
        (name, values[name] if name in values else getattr(owner, name), default)
        for name, default in _field_defaults(type(owner))
    ]


@functools.cache
def _field_defaults(kind: type) -> tuple[tuple[str, Any], ...]:
    """Return the names and defaults of the fields of a class."""
    return tuple((field.name, field.default) for field in dataclasses.fields(kind))


def require_ranges(owner: Any) -> None:
    """Raise `BadInput` for a number outside the range that holds in every study.

    Integers lie between 0 and `MAX_INTEGER`, and are at least 1 if the last word of their name is one of `SIZES`.
    Floats lie within the `EXTREMES`. They must not be negative if their name is a size or their default is positive."""
    for path, value, default in _numbers(owner):
        sized = path.rpartition(".")[2].rpartition("_")[2] in SIZES
        if isinstance(value, int):
            least = min(default, int(sized)) if isinstance(default, int) else int(sized)
            if not least <= value <= MAX_INTEGER:
                raise BadInput(
                    f"'{path}' must lie between {least} and {MAX_INTEGER:.0e}, not {shortened(value)}."
                )
        else:
            if not _moderate(value):
                raise BadInput(f"'{path}' must be {KINDS[float]}, not {value}.")
            signed = not sized and (not isinstance(default, int | float) or default <= 0)
            if not signed and not value >= 0:
                raise BadInput(f"'{path}' must not be negative, not {value}.")


def require_fields(trial: Trial) -> None:
    """Raise `BadInput` if a field of a trial or of its parts has a value that its annotation does not allow."""
    _require_fields(trial, kind(trial), "")


def _require_fields(part: Any, owner: str, prefix: str) -> None:
    try:
        hints = _hints(type(part))
    except NameError:  # a class inside a function may use names that exist only there
        hints = {}
    for name, value, _ in _field_values(part):
        require_kind(value, hints.get(name, Any), prefix + name, owner)
        if dataclasses.is_dataclass(value):
            _require_fields(value, owner, f"{prefix}{name}.")


def require_seeds(*seeds: int) -> None:
    """Raise `BadInput` for a seed that does not fit into 64 bits, as results have the seeds as a coordinate."""
    for seed in seeds:
        require(abs(seed) <= MAX_SEED, f"a seed lies within 64 bits, unlike {shortened(seed)}.")


def _moderate(value: float) -> bool:
    return value == 0 or EXTREMES[0] <= abs(value) <= EXTREMES[1]


def _numbers(owner: Any, prefix: str = "") -> Iterator[tuple[str, int | float, Any]]:
    """Yield the path, value and default of every field that holds a plain number."""
    for name, value, default in _field_values(owner):
        if dataclasses.is_dataclass(value):
            yield from _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + name, value, default


@checks_arguments
def get(trial: eqx.Module, path: str) -> Any:
    """Return the value of a field by dotted path."""
    return _get(trial, path)


def _get(trial: Any, path: str) -> Any:
    value = trial
    for word in path.split("."):
        below = (
            {name: one for name, one, _ in _field_values(value)} if dataclasses.is_dataclass(value) else {}
        )
        if word not in below:
            raise unknown("field", path, _fields(trial))
        value = below[word]
    if dataclasses.is_dataclass(value):
        raise unknown("field", path, _fields(trial))
    return value


@checks_arguments
def put(trial: eqx.Module, path: str, value: Any) -> Any:
    """Return the trial with one field replaced. The new trial is checked like any other."""
    return changed_trial(trial, {path: value})


@checks_arguments
def put_all(trial: eqx.Module, changes: Mapping[str, Any]) -> Any:
    """Return the trial with several fields replaced at once. Only the result is checked, not each change alone."""
    return changed_trial(trial, changes)


def changed_trial(trial: Any, changes: Mapping[str, Any]) -> Any:
    """As `put_all`, without checks of the arguments, because it is called for every grid point of a sweep."""
    for path in changes:
        _get(trial, path)
    parts: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        head, _, rest = path.partition(".")
        parts.setdefault(head, {})[rest] = value
    new = {
        head: fitted(below[""], trial, head) if "" in below else changed_trial(getattr(trial, head), below)
        for head, below in parts.items()
    }
    try:
        made = dataclasses.replace(trial, **new)
    except OverflowError as error:
        raise BadInput(f"a number is larger than '{type(trial).__name__}' can count: {error}.") from None
    if not isinstance(made, Trial):  # a trial checks itself
        require_ranges(made)
    return made


def fitted(value: Any, owner: Any, name: str) -> Any:
    """Convert a value to the declared type of a field: text is parsed, and 20 becomes 20.0 for a float."""
    hint = _hints(type(owner))[name]
    try:
        return _fit(value, hint)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        options = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
        listed = "a list such as [1, 2]" if typing.get_origin(hint) is tuple else None
        expected = (
            " or ".join(map(str, options)) or KINDS.get(hint) or listed or str(hint).replace("typing.", "")
        )
        raise BadInput(f"field '{name}' takes {expected}, not {shortened(value)}.") from None


KINDS = {
    int: "a whole number",
    float: "a finite number (0, or {:g} to {:g} in size)".format(*EXTREMES),
    bool: "true or false",
    str: "text",
}

_hints = functools.cache(typing.get_type_hints)


def _fit(value: Any, hint: Any) -> Any:
    origin = typing.get_origin(hint)
    if origin is Literal:
        allowed = typing.get_args(hint)
        for option in allowed:
            if value == option or str(value) == str(option):
                return option
        raise BadInput(f"{value!r} is not one of {', '.join(map(str, allowed))}.")
    if origin in (typing.Union, types.UnionType):
        options = typing.get_args(hint)
        if type(None) in options and value in (None, "none", "None"):
            return None
        for option in options:
            if option is not type(None):
                try:
                    return _fit(value, option)
                except (ValueError, TypeError):
                    continue
        raise ValueError
    if hint is bool:
        if isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        if isinstance(value, bool):
            return value
        raise ValueError
    if hint is int:
        number = float(value)
        if isinstance(value, bool) or number != int(number):
            raise ValueError
        return int(value) if isinstance(value, int) else int(number)
    if hint is float:
        if isinstance(value, bool) or not _moderate(float(value)):
            raise ValueError
        return float(value)
    if origin is tuple:
        items = json.loads(value) if isinstance(value, str) else value
        if isinstance(items, str | Mapping):
            raise ValueError
        inner = typing.get_args(hint)[0]
        return tuple(_fit(item, inner) for item in items)
    if hint is str:
        return str(value)
    raise TypeError


# Identity --------------------------------------------------------------------------------------------------------------


def describe(trial: Any) -> dict[str, Any]:
    """Return a trial as plain data for JSON: its name and revision, the classes of its parts, every field by path."""
    plain = {path: _plain(value) for path, value in _fields(trial).items()}
    return {"kind": kind(trial), "revision": trial.revision, "parts": _parts(trial), "fields": plain}


def kind(trial: Any) -> str:
    """Return the declared name of a trial, or the name of its class."""
    return trial.name or type(trial).__qualname__


def _parts(owner: Any, prefix: str = "") -> dict[str, str]:
    """Return the class of every part by its path, which tells apart two data models with equal fields."""
    found: dict[str, str] = {}
    for name, value, _ in _field_values(owner):
        if dataclasses.is_dataclass(value):
            path = prefix + name
            found |= {path: type(value).__name__, **_parts(value, f"{path}.")}
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def identity(trial: Trial, seed: int) -> str:
    """Return the content hash of a trial with a seed: 16 hexadecimal digits."""
    return _digest(_content(trial), seed)


def identities(trial: Trial, seeds: tuple[int, ...]) -> bytes:
    """Return the identities of a trial with several seeds, eight bytes each."""
    hashed, found = _content(trial), []
    for end in _ends(seeds):
        whole = hashed.copy()
        whole.update(end)
        found.append(whole.digest()[:8])
    return b"".join(found)


def random_key(trial: Trial, seed: int) -> Key:
    """Return the random key of a cell."""
    with double():
        return new_key(key_number(trial, seed))


def key_number(trial: Trial, seed: int) -> int:
    """Return the number from which the random key of a cell is made: a hash of the cell without its paired fields."""
    return int(_digest(_drawn(trial), seed), 16) >> 1


_written = json.JSONEncoder(sort_keys=True).encode


def _cached_for_last_trial(function: Callable[[Trial], Any]) -> Callable[[Trial], Any]:
    """Hash what the function returns. The hash is cached for the last trial, as all seeds of a grid point share it."""
    last: tuple[Any, Any] = (None, None)

    def hashed(trial: Trial) -> Any:
        nonlocal last
        known = last
        if known[0] is not trial:
            last = known = (trial, hashlib.sha256(_written(function(trial))[:-1].encode()))
        return known[1]

    return hashed


@_cached_for_last_trial
def _content(trial: Trial) -> dict[str, Any]:
    return describe(trial)


@_cached_for_last_trial
def _drawn(trial: Trial) -> dict[str, Any]:
    content = describe(trial)
    content["fields"] = {
        path: value
        for path, value in content["fields"].items()
        if not any(path == name or path.startswith(name + ".") for name in trial.paired)
    }
    content["parts"] = {path: kind for path, kind in content["parts"].items() if path not in trial.paired}
    return content


def _digest(hashed: Any, seed: int) -> str:
    """Finish a hash with the seed as the last entry of the content."""
    whole = hashed.copy()
    whole.update(_ends((seed,))[0])
    return whole.hexdigest()[:16]


@functools.lru_cache(maxsize=16)
def _ends(seeds: tuple[int, ...]) -> list[bytes]:
    """Return the end of the content of the cells with these seeds."""
    return [b', "seed": %d}' % seed for seed in seeds]
