"""Checks the arguments of public functions against their annotations, and refuses a wrong one with one sentence."""

import ast
import inspect
import numbers
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from typing import Any, Literal, NamedTuple, TypeVar

from lemmata.errors import BadInput, shortened, unknown

T = TypeVar("T")


class Kind(NamedTuple):
    """The values that an annotation allows.

    `one`: one such value, in words.
    `many`: several such values, in words.
    `fits`: whether a value is allowed.
    """

    one: str
    many: str
    fits: Callable[[Any], bool]


ANYTHING = Kind("anything", "values", lambda value: True)


def checks_arguments(thing: T) -> T:
    """Decorate a public function or a dataclass: raise `BadInput` for an argument that its annotation does not allow.

    Missing, unknown and surplus arguments are refused, too. Annotations of arrays, type variables and `Any` allow
    everything. Annotations that are text may use names that the module imports for type checkers only.

    >>> @checks_arguments
    ... def repeat(word: str, times: int = 2) -> str:
    ...     return word * times
    >>> repeat("ab")
    'abab'
    >>> repeat("ab", "3")
    Traceback (most recent call last):
    lemmata.errors.BadInput: 'times' of repeat takes a whole number, not '3'.
    >>> repeat("ab", tmies=3)
    Traceback (most recent call last):
    lemmata.errors.BadInput: unknown argument of repeat 'tmies'; did you mean 'times'? Known: word, times.
    """
    if inspect.isclass(thing):
        thing.__init__ = _checked(thing.__init__, thing.__name__)
        return thing
    return _checked(thing, thing.__qualname__)  # pyright: ignore[reportArgumentType, reportAttributeAccessIssue, reportReturnType]


def require_kind(value: object, hint: Any, name: str, owner: str) -> None:
    """Raise `BadInput` unless the annotation `hint` allows the value that `owner` is given as `name`."""
    kind = kind_of(hint)
    if not kind.fits(value):
        raise BadInput(f"'{name}' of {owner} takes {kind.one}, not {_words(value)}.")


def _checked(function: Callable[..., Any], owner: str) -> Callable[..., Any]:
    parameters = inspect.signature(function).parameters
    positional = [
        p.name for p in parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    rest = next((p.name for p in parameters.values() if p.kind is p.VAR_POSITIONAL), "")
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = [p.name for p in parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    required = [name for name in known if parameters[name].default is inspect.Parameter.empty]
    shown = [name for name in known if name != "self"]
    hints: dict[str, Any] = {}

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if not hints:
            hints.update({name: _resolved(parameters[name].annotation, function) for name in parameters})
        if len(given) > len(positional) and not rest:
            raise BadInput(f"{owner} takes {', '.join(shown) or 'no arguments'}, not {len(given)} values.")
        placed = dict(zip(positional, given, strict=False))
        for name, value in named.items():
            if name not in known and not open_ended:
                raise unknown(f"argument of {owner}", name, shown)
            if name in placed:
                raise BadInput(f"'{name}' of {owner} is given twice.")
            placed[name] = value
        for name in required:
            if name not in placed:
                raise BadInput(f"{owner} needs '{name}': {kind_of(hints[name]).one}.")
        for name, value in placed.items():
            require_kind(value, hints.get(name, Any), name, owner)
        for value in given[len(positional) :]:
            require_kind(value, hints[rest], rest, owner)
        return function(*given, **named)

    return call


# Annotations -----------------------------------------------------------------------------------------------------------


def _resolved(hint: Any, function: Callable[..., Any]) -> Any:
    """Return an annotation. One that is text is evaluated."""
    if not isinstance(hint, str):
        return hint
    module = sys.modules[function.__module__]
    try:
        return eval(hint, vars(module))
    except NameError:
        return eval(hint, vars(module) | _names_for_type_checkers(module))


@cache
def _names_for_type_checkers(module: types.ModuleType) -> dict[str, Any]:
    """Execute the imports of a module under `if TYPE_CHECKING`, and return the names that they define."""
    names: dict[str, Any] = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), str(module.__file__), "exec"), names)
    return names


def kind_of(hint: Any) -> Kind:
    """Return what an annotation allows. An annotation that cannot be checked allows everything.

    >>> kind_of(tuple[int, ...]).one
    'a tuple of whole numbers'
    >>> kind_of(float | None).fits(True)
    False
    """
    try:
        return _kind_of(hint)
    except TypeError:  # not hashable
        return ANYTHING


@cache
def _kind_of(hint: Any) -> Kind:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if origin is Literal:
        words = " or ".join(map(repr, parts))
        return Kind(
            words, words, lambda value: any(type(value) is type(part) and value == part for part in parts)
        )
    if origin in (typing.Union, types.UnionType):
        kinds = [kind_of(part) for part in parts]
        one, many = (" or ".join(words) for words in zip(*(kind[:2] for kind in kinds), strict=True))
        return Kind(one, many, lambda value: any(kind.fits(value) for kind in kinds))
    if origin is tuple:
        return _tuple_of(parts)
    if origin in (list, Sequence, Iterable):
        return _several(origin, kind_of(parts[0]))
    if origin in (dict, Mapping):
        key, item = map(kind_of, parts)

        def fits(value: Any) -> bool:
            return isinstance(value, Mapping) and all(key.fits(k) and item.fits(v) for k, v in value.items())

        words = "" if key is ANYTHING else f" from {key.many} to {item.many}"
        return Kind(f"a mapping{words}", f"mappings{words}", fits)
    if origin is Callable or hint is Callable:
        return Kind("a function", "functions", callable)
    return _instance_of(hint)


def _instance_of(hint: Any) -> Kind:
    if not inspect.isclass(hint) or hint.__module__.partition(".")[0] == "jaxtyping":
        return ANYTHING
    try:
        isinstance(None, hint)
    except TypeError:  # such as a protocol
        return ANYTHING
    return Kind(
        _with_article(hint.__name__), f"{hint.__name__} objects", lambda value: isinstance(value, hint)
    )


def _tuple_of(parts: tuple[Any, ...]) -> Kind:
    if len(parts) == 2 and parts[1] is ...:
        return _several(tuple, kind_of(parts[0]))
    kinds = [kind_of(part) for part in parts]
    words = f"({', '.join(kind.one for kind in kinds)})"

    def fits(value: Any) -> bool:
        whole = isinstance(value, tuple) and len(value) == len(kinds)
        return whole and all(kind.fits(item) for kind, item in zip(kinds, value, strict=True))

    return Kind(f"a tuple {words}", f"tuples {words}", fits)


def _several(kind: Any, item: Kind) -> Kind:
    """Return the kind of several values. Text and mappings do not fit. Items are checked in lists and tuples only."""
    word = "tuple" if kind is tuple else "list"

    def fits(value: Any) -> bool:
        if not isinstance(value, kind) or isinstance(value, str | bytes | Mapping):
            return False
        return not isinstance(value, list | tuple) or all(map(item.fits, value))

    return Kind(f"a {word} of {item.many}", f"{word}s of {item.many}", fits)


def _is_number(value: Any, kind: type, letters: str) -> bool:
    """Whether a value is a number of Python or NumPy, or an array without dimensions."""
    if isinstance(value, kind):
        return not isinstance(value, bool)
    return (
        getattr(value, "shape", None) == () and getattr(getattr(value, "dtype", None), "kind", "?") in letters
    )


_PLAIN: dict[Any, Kind] = {
    Any: ANYTHING,
    inspect.Parameter.empty: ANYTHING,
    None: Kind("None", "None", lambda value: value is None),
    types.NoneType: Kind("None", "None", lambda value: value is None),
    bool: Kind("True or False", "True or False", lambda value: isinstance(value, bool)),
    int: Kind("a whole number", "whole numbers", lambda value: _is_number(value, numbers.Integral, "iu")),
    float: Kind("a number", "numbers", lambda value: _is_number(value, numbers.Real, "iuf")),
    str: Kind("text", "text", lambda value: isinstance(value, str)),
    tuple: Kind("a tuple", "tuples", lambda value: isinstance(value, tuple)),
}


def _with_article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


def _words(value: object) -> str:
    """Return a refused value as text: plain values as they are, others by the name of their class."""
    if value is None or isinstance(value, bool | int | float | str):
        return shortened(value)
    if inspect.isclass(value):
        return f"the class {value.__name__}"
    if isinstance(value, list | tuple | Mapping) and len(value) < 10:
        inside = list(dict.fromkeys(type(item).__name__ for item in value))
        name = type(value).__name__
        return f"{_with_article(name)} of {', '.join(inside)}" if inside else f"an empty {name}"
    return _with_article(type(value).__name__)
