"""What one training is: an immutable description that knows how to start, step, stop and be looked at.

A trial is a pytree. Its *leaves* are the numbers that may vary inside one compiled program (a signal norm, a step
size); its *structure*, the fields made with `fixed()`, is everything that fixes shapes or choices (samples, dimensions,
the simulator). The lab groups trials by structure, so that each structure is compiled once.
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

from lemmata.errors import BadInput, shortened, unknown
from lemmata.guard import double
from lemmata.threefry import new_key

Key = Array
State = PyTree
Record = Mapping[str, Array]
Precision = Literal["float32", "float64"]

fixed = functools.partial(eqx.field, static=True)
"""A field that is part of the structure of a trial: it fixes shapes or makes a choice."""


SIZES = (
    *("batch", "channels", "dim", "dimension", "draws", "heads", "logs", "neurons", "patches", "patterns"),
    *("points", "prompts", "samples", "starts", "steps", "tokens", "width"),
)
"""Last words of the names of whole numbers of which there must be at least one."""

LARGEST = 10**36
"""No whole number of a trial is larger. Theorems may need many: d = 1e32 costs benign overfitting nothing."""

EXTREMES = (1e-36, 1e36)
"""Other numbers are 0 or lie between these, whatever their sign: single precision holds them all."""


class Trial(eqx.Module):
    """One cell's worth of work. Concrete kinds: `Descending` (stepped by the lab) and `Computed` (a plain function)."""

    name: ClassVar[str] = ""
    """`study-id/word`: what the trial is called in identities, so that moving its code never changes its draws."""

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Names of the dimensions of every recorded array that is not a scalar (without `step`, which the lab adds)."""

    paired: ClassVar[tuple[str, ...]] = ()
    """Fields (dotted paths, or the name of a part) that leave the random key alone: cells that differ only there see
    the same data and the same initial weights, so that arms can be compared in pairs."""

    lockstep: ClassVar[bool] = True
    """Whether runs gain from advancing in lockstep; not those whose own arrays fill the cache of a core."""

    revision: ClassVar[int] = 1
    """Raised when the meaning of the trial changes, so that old records are not taken for new ones."""

    def __check_init__(self):
        require_ranges(self)


class Tracks(NamedTuple):
    """What is followed at every step, by name, and kept as one number (or array) a run.

    `first`: the step at which a flag was first true (-1: never). `largest`: the largest value. `total`: the sum over steps.
    """

    first: Mapping[str, Array] = {}
    largest: Mapping[str, Array] = {}
    total: Mapping[str, Array] = {}


class Descending(Trial):
    """A training that goes step by step. Four pure functions and a look at it on the way.

    `precision` is the floating type of the leaves; `steps` caps the number of steps; `watch` is recorded at
    `log_steps` (a strictly increasing tuple starting at 0).
    """

    precision: eqx.AbstractVar[Precision]

    @property
    @abstractmethod
    def steps(self) -> int:
        """The step cap: a run that has not finished by then is recorded as capped."""

    @property
    @abstractmethod
    def log_steps(self) -> tuple[int, ...]:
        """The steps at which `watch` is recorded."""

    @property
    def steps_by_kernel(self) -> bool:
        """Whether a kernel takes the steps: what is left of them is then compiled briefly."""
        return False

    @abstractmethod
    def start(self, key: Key) -> State:
        """The state before the first step; all randomness comes from `key`."""

    @abstractmethod
    def step(self, state: State) -> State:
        """One step of the descent."""

    @abstractmethod
    def loss(self, state: State) -> Float[Array, ""]:
        """The number that must stay finite; where it does not, the run has diverged."""

    @abstractmethod
    def finished(self, state: State) -> Bool[Array, ""]:
        """The stop rule."""

    @abstractmethod
    def watch(self, state: State) -> Record:
        """What one wants to see at the logged steps: curves."""

    @abstractmethod
    def record(self, state: State) -> Record:
        """What one wants to keep of the last state: scalars and maps."""

    def track(self, state: State) -> Tracks:
        """What to follow at every step; recorded under the same names."""
        return Tracks()

    def start_from(self, key: Key, data: PyTree = None, weights: PyTree = None) -> State:
        """As `start`, with one's own data or initial weights in place of the drawn ones: the door for other people's."""
        raise BadInput(f"{type(self).__name__} takes no data or weights of one's own.")


Kind = TypeVar("Kind", bound=Descending)


class Computed(Trial):
    """Work that is not a compiled training: a convex solver, a training in phases, an eigenvalue routine."""

    @abstractmethod
    def compute(self, key: Key) -> Mapping[str, Any]:
        """Everything in one go; returns named scalars and arrays."""


def with_precision(trial: Kind) -> Kind:
    """The trial with its leaves as arrays of its own floating type."""
    dtype = jnp.dtype(trial.precision)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype if isinstance(leaf, float) else None), trial)


# Fields by dotted path -------------------------------------------------------------------------------------------------


def fields(trial: Any, prefix: str = "") -> dict[str, Any]:
    """Every settable field of a trial by its dotted path, in order.

    Parts (fields that are themselves modules) are walked into.
    """
    found: dict[str, Any] = {}
    for name, value, _ in _held(trial):
        if dataclasses.is_dataclass(value):
            found |= fields(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def _held(owner: Any) -> list[tuple[str, Any, Any]]:
    """The name, the value and the default of every field of a trial or a part. Asked for one by one, values take most of the
    time that it takes to build a sweep: modules look at everything they give out."""
    values = getattr(owner, "__dict__", {})
    return [
        (name, values[name] if name in values else getattr(owner, name), usual)
        for name, usual in _usual(type(owner))
    ]


@functools.cache
def _usual(kind: type) -> tuple[tuple[str, Any], ...]:
    """The names and defaults of the fields of a class."""
    return tuple((field.name, field.default) for field in dataclasses.fields(kind))


def require_ranges(owner: Any) -> None:
    """Every number has a range, whatever else its study asks of it. Whole numbers are counts up to `LARGEST`, not negative, and
    at least 1 where their name is one of `SIZES`. Other numbers lie within the `EXTREMES`; they are not negative where their
    name is a size or their default is positive (rates, scales, fractions), and may have either sign elsewhere."""
    for path, value, usual in _numbers(owner):
        sized = path.rpartition(".")[2].rpartition("_")[2] in SIZES
        if isinstance(value, int):
            least = min(usual, int(sized)) if isinstance(usual, int) else int(sized)
            if not least <= value <= LARGEST:
                raise BadInput(
                    f"'{path}' must lie between {least} and {LARGEST:.0e}, not {shortened(value)}."
                )
        else:
            if not _moderate(value):
                raise BadInput(f"'{path}' must be {KINDS[float]}, not {value}.")
            signed = not sized and (not isinstance(usual, int | float) or usual <= 0)
            if not signed and not value >= 0:
                raise BadInput(f"'{path}' must not be negative, not {value}.")


def _moderate(value: float) -> bool:
    return value == 0 or EXTREMES[0] <= abs(value) <= EXTREMES[1]


def _numbers(owner: Any, prefix: str = "") -> Iterator[tuple[str, int | float, Any]]:
    """Every plain number among the fields, with its path and the default of its field."""
    for name, value, usual in _held(owner):
        if dataclasses.is_dataclass(value):
            yield from _numbers(value, f"{prefix}{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield prefix + name, value, usual


def get(trial: Any, path: str) -> Any:
    """The value of a field by dotted path."""
    value = trial
    for word in path.split("."):
        below = {name: one for name, one, _ in _held(value)} if dataclasses.is_dataclass(value) else {}
        if word not in below:
            raise unknown("field", path, fields(trial))
        value = below[word]
    if dataclasses.is_dataclass(value):
        raise unknown("field", path, fields(trial))
    return value


def put(trial: Any, path: str, value: Any) -> Any:
    """The trial with one field replaced, checked again as if it had been built that way."""
    return put_all(trial, {path: value})


def put_all(trial: Any, changes: Mapping[str, Any]) -> Any:
    """The trial with several fields replaced at once: only the whole has to make sense, not each change alone."""
    for path in changes:
        get(trial, path)
    parts: dict[str, dict[str, Any]] = {}
    for path, value in changes.items():
        head, _, rest = path.partition(".")
        parts.setdefault(head, {})[rest] = value
    new = {
        head: fitted(below[""], trial, head) if "" in below else put_all(getattr(trial, head), below)
        for head, below in parts.items()
    }
    try:
        made = dataclasses.replace(trial, **new)
    except OverflowError as error:
        raise BadInput(f"a number is larger than '{type(trial).__name__}' can count: {error}.") from None
    if not isinstance(made, Trial):  # a trial has looked at itself
        require_ranges(made)
    return made


def fitted(value: Any, owner: Any, name: str) -> Any:
    """A value brought to the declared type of a field: text is parsed, 20 becomes 20.0 where a float is meant."""
    hint = _hints(type(owner))[name]
    try:
        return _fit(value, hint)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        options = typing.get_args(hint) if typing.get_origin(hint) is Literal else ()
        listed = "a list such as [1, 2]" if typing.get_origin(hint) is tuple else None
        said = " or ".join(map(str, options)) or KINDS.get(hint) or listed or str(hint).replace("typing.", "")
        raise BadInput(f"field '{name}' takes {said}, not {shortened(value)}.") from None


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
    """A trial as plain data, ready for JSON: its name and revision, what its parts are, every field by path."""
    plain = {path: _plain(value) for path, value in fields(trial).items()}
    return {"kind": kind(trial), "revision": trial.revision, "parts": _parts(trial), "fields": plain}


def kind(trial: Any) -> str:
    """What a trial is called: its declared name."""
    return trial.name or type(trial).__qualname__


def _parts(owner: Any, prefix: str = "") -> dict[str, str]:
    """The class of every part by its path: two data models with equal fields are not the same."""
    found: dict[str, str] = {}
    for name, value, _ in _held(owner):
        if dataclasses.is_dataclass(value):
            path = prefix + name
            found |= {path: type(value).__name__, **_parts(value, f"{path}.")}
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.item() if hasattr(value, "item") else value


def identity(trial: Trial, seed: int) -> str:
    """The content hash of a trial with a seed: 16 hexadecimal digits."""
    return _digest(_content(trial), seed)


def identities(trial: Trial, seeds: tuple[int, ...]) -> bytes:
    """The identities of a trial with several seeds, eight bytes each."""
    begun, found = _content(trial), []
    for end in _ends(seeds):
        whole = begun.copy()
        whole.update(end)
        found.append(whole.digest()[:8])
    return b"".join(found)


def random_key(trial: Trial, seed: int) -> Key:
    """The random key of a cell."""
    with double():
        return new_key(key_number(trial, seed))


def key_number(trial: Trial, seed: int) -> int:
    """The number that a cell's random key is made from: what the cell is, less the fields that the trial declares as
    paired."""
    return int(_digest(_drawn(trial), seed), 16) >> 1


_written = json.JSONEncoder(sort_keys=True).encode


def _of_the_last(function: Callable[[Trial], Any]) -> Callable[[Trial], Any]:
    """The digest of what the function says; remembered for the last trial, as seeds of one grid point share theirs."""
    last: tuple[Any, Any] = (None, None)

    def begun(trial: Trial) -> Any:
        nonlocal last
        known = last
        if known[0] is not trial:
            last = known = (trial, hashlib.sha256(_written(function(trial))[:-1].encode()))
        return known[1]

    return begun


@_of_the_last
def _content(trial: Trial) -> dict[str, Any]:
    return describe(trial)


@_of_the_last
def _drawn(trial: Trial) -> dict[str, Any]:
    content = describe(trial)
    content["fields"] = {
        path: value
        for path, value in content["fields"].items()
        if not any(path == name or path.startswith(name + ".") for name in trial.paired)
    }
    content["parts"] = {path: kind for path, kind in content["parts"].items() if path not in trial.paired}
    return content


def _digest(begun: Any, seed: int) -> str:
    """Of a content with the seed as its last entry."""
    whole = begun.copy()
    whole.update(_ends((seed,))[0])
    return whole.hexdigest()[:16]


@functools.lru_cache(maxsize=16)
def _ends(seeds: tuple[int, ...]) -> list[bytes]:
    """How the contents of cells with these seeds end."""
    return [b', "seed": %d}' % seed for seed in seeds]
