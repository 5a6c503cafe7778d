"""Structures of pytrees are written down as data, and read without executing anything."""

import json
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest

from lemmata.structure import Unwritable, read_structure, write_structure


class Pair(NamedTuple):
    first: Any
    second: Any


class Part(eqx.Module):
    value: Any
    size: int = eqx.field(static=True)

    def __post_init__(self):
        pytest.fail("a class was called")


def part(value: Any, size: int = 3) -> Part:
    made = object.__new__(Part)
    object.__setattr__(made, "value", value)
    object.__setattr__(made, "size", size)
    return made


@pytest.mark.parametrize(
    "tree",
    [
        *(True, None, [], (), {}, [True, (False,)], {"b": True, "a": {"c": None}}),
        *(Pair(True, [False]), part(Pair(True, None)), (part({"x": True}), part(True, size=4))),
    ],
)
def test_what_was_written_is_read(tree):
    read = read_structure(json.loads(json.dumps(write_structure(tree))))
    assert jax.tree.structure(read) == jax.tree.structure(tree)
    assert jax.tree.leaves(read) == jax.tree.leaves(tree)


def test_static_fields_are_part_of_a_structure():
    read = read_structure(write_structure(part(True, size=4)))
    assert jax.tree.structure(read) != jax.tree.structure(part(True, size=3))


@pytest.mark.parametrize("tree", [np.ones(3), {1, 2}, part(len), [object()]])
def test_what_json_cannot_hold_is_not_written(tree):
    with pytest.raises(Unwritable):
        write_structure(tree)


@pytest.mark.parametrize(
    "name", ["os:system", "subprocess:Popen", "antigravity:x", "builtins:dict", "a.b", "os:", ":"]
)
def test_only_loaded_classes_of_structures_are_looked_up(name):
    for data in ({"named tuple": name, "items": []}, {"module": name, "fields": {}}):
        with pytest.raises(Unwritable):
            read_structure(data)
