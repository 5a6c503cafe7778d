"""Converts the structure of a pytree to JSON and back, without executing anything."""

import dataclasses
import sys
from typing import Any

import equinox as eqx


class Unwritable(Exception):
    """Raised for a structure that JSON cannot hold, and for one with a class that is not loaded."""


def write_structure(tree: Any) -> Any:
    """Return a pytree whose leaves are booleans, numbers or strings as data for JSON, with the names of its classes.

    Raises `Unwritable` for other leaves."""
    if tree is None or isinstance(tree, bool | int | float | str):
        return tree
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return {"named tuple": _name(type(tree)), "items": [write_structure(item) for item in tree]}
    if isinstance(tree, tuple | list):
        return {type(tree).__name__: [write_structure(item) for item in tree]}
    if type(tree) is dict:
        return {"dict": [[write_structure(key), write_structure(item)] for key, item in tree.items()]}
    if isinstance(tree, eqx.Module):
        held = {f.name: vars(tree)[f.name] for f in dataclasses.fields(tree) if f.name in vars(tree)}
        return {"module": _name(type(tree)), "fields": {n: write_structure(item) for n, item in held.items()}}
    raise Unwritable


def read_structure(data: Any) -> Any:
    """Return the pytree that `write_structure` wrote. Classes are looked up among the loaded ones, and are not called.

    Raises `Unwritable` for a class that is not loaded."""
    if not isinstance(data, dict):
        return data
    match data:
        case {"tuple": items}:
            return tuple(map(read_structure, items))
        case {"list": items}:
            return list(map(read_structure, items))
        case {"dict": items}:
            return {read_structure(key): read_structure(item) for key, item in items}
        case {"named tuple": name, "items": items}:
            return tuple.__new__(_loaded(name, tuple), map(read_structure, items))
        case {"module": name, "fields": fields}:
            made = object.__new__(_loaded(name, eqx.Module))
            for field, item in fields.items():
                object.__setattr__(made, field, read_structure(item))
            return made
    raise Unwritable


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _loaded(name: str, base: type) -> Any:
    """Return a loaded class by its name. It must be a subclass of `base`."""
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for word in path.split("."):
        found = vars(found).get(word) if hasattr(found, "__dict__") else None
    if not isinstance(found, type) or not issubclass(found, base):
        raise Unwritable
    return found
