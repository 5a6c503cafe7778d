"""How arguments are checked under test: shapes by jaxtyping, types by beartype; a number of NumPy's is a number.

Names of dimensions hold from one argument to the next and to what is returned, inside one call. Checks are written when a
function is first called: to write them takes far longer than to import what they check, and no process calls everything.
"""

import dataclasses
import inspect
import threading
from collections.abc import Callable
from functools import wraps
from types import CodeType, SimpleNamespace
from typing import Any, Literal, get_args, get_origin, get_type_hints

import jaxtyping
import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

NUMBERS = FrozenDict(
    {int: int | np.integer, float: float | int | np.floating | np.integer, bool: bool | np.bool_}
)
checked = beartype(conf=BeartypeConf(hint_overrides=NUMBERS))
jaxtyped = jaxtyping.jaxtyped


def check_calls(package: str) -> None:
    """Check every call of a package that has not been imported yet."""
    jaxtyping.install_import_hook(package, "tests.checked.checked")
    jaxtyping.jaxtyped = lambda typechecker: _checks  # what the hook writes above every function and class


def _checks(thing: Any) -> Any:
    if not inspect.isclass(thing):
        return _checked_later(thing)
    own = vars(thing).get("__init__")
    checks_itself = hasattr(own, "__wrapped__")  # by `checks_arguments`, whose refusals are tested
    if dataclasses.is_dataclass(thing) and own is not None and not checks_itself:
        thing.__init__ = _checked_later(thing.__init__)
    return thing


def _checked_later(function: Callable[..., Any]) -> Callable[..., Any]:
    hints = inspect.get_annotations(function)
    if not hints:
        return function
    if "<locals>" in function.__qualname__ and all(map(_plain, hints.values())):
        return _checked_as_before(function, hints)
    check: Any = None

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        nonlocal check
        if check is None:
            check = _written(function)
        return check(*given, **named)

    return call


def _checked_as_before(function: Callable[..., Any], hints: dict[str, Any]) -> Callable[..., Any]:
    """A function inside another is a new one in every call of that, with the same checks: they are written once, for one that
    stands in for all of its kind. (Hints that speak of shapes are new ones, too.)"""

    @wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        known = _inner.get(function.__code__)
        if known is None or known.hints != hints:
            known = _inner[function.__code__] = _StandIn(function, hints)
        known.meant.function = function
        return known.check(*given, **named)

    return call


class _StandIn:
    """The checks of all inner functions of one code with the same hints, and the one that is meant in a call."""

    def __init__(self, function: Callable[..., Any], hints: dict[str, Any]):
        self.hints, self.meant = hints, threading.local()

        @wraps(function)
        def stand_in(*given: Any, **named: Any) -> Any:
            return self.meant.function(*given, **named)

        self.check = checked(stand_in)
        del stand_in.__wrapped__  # the first of its kind need not live for ever


_inner: dict[CodeType, _StandIn] = {}


def _written(function: Any) -> Callable[..., Any]:
    """The function with its checks; what jaxtyping needs to know around a call, only where a hint speaks of a shape."""
    hints = inspect.get_annotations(function)
    if all(map(_plain, hints.values())):
        return checked(function)
    function.__annotations__ = {name: _known(hint, function.__globals__) for name, hint in hints.items()}
    check, one_call = checked(function), jaxtyped("context")

    def call(*given: Any, **named: Any) -> Any:
        with one_call:
            return check(*given, **named)

    return call


def _known(hint: Any, names: dict[str, Any]) -> Any:
    """A hint with the classes that it calls by name; anything goes where a name is only known to those who read the code."""
    try:
        return get_type_hints(SimpleNamespace(__annotations__={"": hint}), names, include_extras=True)[""]
    except Exception:
        return Any


def _plain(hint: Any) -> bool:
    """Whether a hint speaks of no shape, and of no class that is known by name only."""
    parts = () if get_origin(hint) is Literal else hint if isinstance(hint, list) else get_args(hint)
    known = not isinstance(hint, str) and "ForwardRef" not in repr(type(hint))
    return known and getattr(hint, "__module__", "") != "jaxtyping" and all(map(_plain, parts))
