"""How arguments are checked under test: shapes by jaxtyping, types by beartype; a number of NumPy's is a number.

What jaxtyping adds to a call (names of dimensions that hold from one argument to the next) costs many times the check itself,
and most functions speak of no shape: those are left to beartype alone.
"""

import dataclasses
import inspect
from typing import Any, Literal, get_args, get_origin

import jaxtyping
import numpy as np
from beartype import BeartypeConf, FrozenDict, beartype

NUMBERS = FrozenDict(
    {int: int | np.integer, float: float | int | np.floating | np.integer, bool: bool | np.bool_}
)
checked = beartype(conf=BeartypeConf(hint_overrides=NUMBERS))
with_shapes = jaxtyping.jaxtyped


def check_calls(package: str) -> None:
    """Check every call of a package that has not been imported yet."""
    jaxtyping.install_import_hook(package, "tests.checked.checked")
    jaxtyping.jaxtyped = lambda typechecker: _checks  # what the hook writes above every function and class


def _checks(thing: Any) -> Any:
    function = vars(thing).get("__init__") if dataclasses.is_dataclass(thing) else thing
    if not inspect.isfunction(function) or not all(map(_plain, inspect.get_annotations(function).values())):
        return with_shapes(thing, typechecker=checked)
    if inspect.isclass(thing):
        thing.__init__ = checked(function)
        return thing
    return checked(thing)


def _plain(hint: Any) -> bool:
    """Whether a hint speaks of no shape, and of no class that is known by name only."""
    parts = () if get_origin(hint) is Literal else hint if isinstance(hint, list) else get_args(hint)
    known = not isinstance(hint, str) and "ForwardRef" not in repr(type(hint))
    return known and getattr(hint, "__module__", "") != "jaxtyping" and all(map(_plain, parts))
