"""Says what a search varies: fields of a trial, each with a range or a choice, as numbers between 0 and 1."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, isclose, log
from typing import Any, Literal, get_args, get_origin, get_type_hints

import jax

from lemmata.errors import BadInput, require
from lemmata.measure.compare import Condition
from lemmata.sweep import Axis
from lemmata.trial import Descending, Trial, changed_trial, fields, get

Kind = Literal["log", "linear", "int", "choice"]
Value = Any
DIGITS = 4
"""Digits of a number in a proposal, so that a command can repeat it."""

REACH = 10.0
"""How far a range reaches from the template's value, as a factor, where a figure declares none."""

NOT_SEARCHED = (
    *("prompts", "logs", "precision", "simulator", "engine", "watched", "timed", "shown", "draws", "points", "directions"),
    *("curves", "probes", "queries", "lengths", "starts", "check_every", "test_samples", "test_points", "chunk", "mode"),
)  # fmt: skip
"""Last words of fields of measurement and numerics. They never change what a theorem speaks of."""


@dataclass(frozen=True)
class Field:
    """One coordinate of a search.

    `name`: a field by dotted path, an entry of a tuple (`mean[0]`), or an axis of the figure.
    `low`, `high`: the ends of its range; `options`: its values, for a choice.
    `structural`: whether another value takes another compiled program. Such integers are chosen from a 1-2-5 ladder.
    """

    name: str
    kind: Kind
    low: float = 0.0
    high: float = 0.0
    options: tuple[Value, ...] = ()
    structural: bool = False

    def value(self, unit: float) -> Value:
        """The value at a number between 0 and 1."""
        unit = min(max(float(unit), 0.0), 1.0)
        if self.options:
            return self.options[min(int(unit * len(self.options)), len(self.options) - 1)]
        if self.kind == "linear":
            return float(f"{self.low + unit * (self.high - self.low):.{DIGITS}g}")
        between = exp(log(self.low) + unit * (log(self.high) - log(self.low)))
        number = min(max(between, self.low), self.high)
        return round(number) if self.kind == "int" else float(f"{number:.{DIGITS}g}")

    def unit(self, value: Value) -> float:
        """The number between 0 and 1 that gives a value, or the nearest one."""
        if self.options:
            near = value if value in self.options else min(self.options, key=lambda one: _far(one, value))
            return (self.options.index(near) + 0.5) / len(self.options)
        if self.kind == "linear":
            return (value - self.low) / (self.high - self.low)
        return (log(max(value, self.low)) - log(self.low)) / (log(self.high) - log(self.low))


def _far(one: Value, value: Value) -> float:
    numbers = isinstance(one, int | float) and isinstance(value, int | float)
    return abs(one - value) if numbers else float(one != value)


def declared(space: Mapping[str, Any], base: Trial) -> list[Field]:
    """The fields that a figure declares: two numbers are a range, words or more numbers a choice."""
    known, found = fields(base), []
    for name, given in space.items():
        here = known.get(name.partition("[")[0])
        if len(given) == 2 and all(isinstance(one, int | float) for one in given):
            low, high = given
            kind = "int" if isinstance(here, int) else "log" if low > 0 else "linear"
            found.append(_with_ladder(Field(name, kind, low, high), base))
        else:
            found.append(
                Field(name, "choice", options=tuple(given), structural=_structural(base, name, given))
            )
    return found


def moved_by(base: Trial, conditions: Callable[[Any], Any] | None, taken: set[str]) -> list[Field]:
    """The fields that move a condition, each with a factor `REACH` both ways as far as the trial allows it.

    Without conditions every number and choice of the trial is taken. `taken` are fields that axes of the figure set.
    """
    before = _looked(conditions, base)
    found = []
    for name in fields(base):
        if name in taken or name.rpartition(".")[2] in NOT_SEARCHED:
            continue
        for one in _around(base, name):
            if before is None or _moves(base, one, conditions, before):
                found.append(one)
    return found


def of_axis(axis: Axis, base: Trial) -> Field | None:
    """The coordinate for an axis of the figure that sets several fields at once: between its smallest and largest label."""
    labels = axis.values
    if len(labels) < 2:
        return None
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in labels)
    whole = numbers and all(isinstance(one, int) for one in labels)
    if not numbers or whole:
        kinds = {jax.tree.structure(axis.apply(base, one)) for one in labels if isinstance(base, Descending)}
        options = tuple(sorted(labels)) if whole else labels
        return Field(axis.name, "choice", options=options, structural=len(kinds) > 1)
    low, high = min(labels), max(labels)
    return Field(axis.name, "log" if low > 0 and high / low > 3 else "linear", low, high)


def _looked(conditions: Callable[[Any], Any] | None, trial: Any) -> dict[str, Condition] | None:
    found = looked_at(conditions, trial)
    return {one.name: one for one in found} if found else None


def looked_at(conditions: Callable[[Any], Any] | None, trial: Any) -> list[Condition] | None:
    """The conditions at a trial; none if a formula of theirs is not defined there."""
    if conditions is None:
        return []
    try:
        return list(conditions(trial))
    except (BadInput, ArithmeticError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _moves(
    base: Trial, field: Field, conditions: Callable[[Any], Any] | None, before: Mapping[str, Condition]
) -> bool:
    for unit in (0.2, 0.5, 0.8):
        trial = changed(base, {field.name: field.value(unit)})
        after = _looked(conditions, trial) if trial is not None else None
        for name, one in (after or {}).items():
            old = before.get(name)
            if old is None or one.holds != old.holds or not isclose(one.margin, old.margin, rel_tol=1e-9):
                return True
    return False


def _around(base: Trial, name: str) -> list[Field]:
    """The coordinates of one field: itself, or each entry of a tuple of numbers."""
    value, options = get(base, name), options_of(base, name)
    if options:
        allowed = tuple(one for one in options if changed(base, {name: one}) is not None)
        field = Field(name, "choice", options=allowed, structural=_structural(base, name, allowed))
        return [field] if len(allowed) > 1 else []
    if isinstance(value, tuple):
        numbers = value and all(isinstance(one, float) for one in value) and len(value) <= 12
        return (
            [one for i in range(len(value)) for one in _around_number(base, f"{name}[{i}]", value[i])]
            if numbers
            else []
        )
    return _around_number(base, name, value)  # fmt: skip


def _around_number(base: Trial, name: str, value: Value) -> list[Field]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return []
    if isinstance(value, int):
        if value < 1:
            return []
        low, high = _reach(base, name, value, 1 / REACH), _reach(base, name, value, REACH)
        return [_with_ladder(Field(name, "int", low, high), base)] if low < high else []
    if value == 0:
        signed = changed(base, {name: -1.0}) is not None
        return (
            [Field(name, "linear", -1.0 if signed else 0.0, 1.0)]
            if changed(base, {name: 1.0}) is not None
            else []
        )
    low, high = sorted((_reach(base, name, value, 1 / REACH), _reach(base, name, value, REACH)))
    if low == high:
        return []
    return [Field(name, "log" if low > 0 else "linear", low, high)]


def _reach(base: Trial, name: str, value: Value, factor: float) -> Value:
    """The farthest value up to a factor that the trial allows, by bisection."""
    whole = isinstance(value, int)

    def at(share: float) -> Value:
        number = value * factor**share
        return max(round(number), 1) if whole else float(f"{number:.{DIGITS}g}")

    if changed(base, {name: at(1.0)}) is not None:
        return at(1.0)
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if changed(base, {name: at(middle)}) is not None else (low, middle)
    return at(low)


def _with_ladder(field: Field, base: Trial) -> Field:
    """The field, with a 1-2-5 ladder for an integer whose every value takes a program of its own."""
    ends = (round(field.low), round(field.high))
    if field.kind != "int" or not _structural(base, field.name, ends):
        return field
    here = get(base, field.name)
    steps = {int(digit * 10**power) for power in range(13) for digit in (1, 2, 5)} | {here}
    inside = tuple(sorted(one for one in steps if field.low <= one <= field.high))
    require(bool(inside), f"no value of '{field.name}' lies between {field.low} and {field.high}.")
    return Field(field.name, "choice", options=inside, structural=True)


def _structural(base: Trial, name: str, values: Any) -> bool:
    """Whether values of a field give trials of different structures, each with a program of its own."""
    if not isinstance(base, Descending):
        return False
    made = [one for one in (changed(base, {name: value}) for value in values) if one is not None]
    return any(jax.tree.structure(one) != jax.tree.structure(base) for one in made)


def options_of(base: Trial, name: str) -> tuple[Any, ...]:
    """What a field that makes a choice can be."""
    owner, _, last = name.rpartition(".")
    part: Any = base
    for word in filter(None, owner.split(".")):
        part = getattr(part, word)
    try:
        hint = get_type_hints(type(part)).get(last)
    except NameError:
        return ()
    if hint is bool:
        return (False, True)
    return get_args(hint) if get_origin(hint) is Literal else ()


def changed(trial: Trial, changes: Mapping[str, Value]) -> Any:
    """The trial with these fields, entries of tuples included (`mean[0]`); None if it refuses them."""
    whole: dict[str, Value] = {}
    for name, value in changes.items():
        path, bracket, place = name.partition("[")
        if bracket:
            entries = list(whole.get(path, get(trial, path)))
            entries[int(place[:-1])] = value
            whole[path] = tuple(entries)
        else:
            whole[path] = value
    try:
        return changed_trial(trial, whole)
    except (BadInput, ArithmeticError, ValueError, TypeError):
        return None
