"""Checks the data and weights that a user passes to a training against the form of those that it would draw."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from lemmata.errors import BadInput, require, shortened

LONGEST = 250
"""The largest number of characters of a form in a message."""


class Taken(NamedTuple):
    """The form of the data and weights that a training accepts.

    `data`: arrays, or their shapes, of the accepted form; or the message that refuses all data.
    `weights`: likewise for initial weights.
    `any_number`: whether the number of samples may differ from that of the form. It is the first dimension of every array of
        the data, and must be the same in all of them. A tree of booleans if it holds for some parts of the data only.
    """

    data: PyTree
    weights: PyTree
    any_number: PyTree[bool] = False


def accepted(taken: Taken, data: PyTree, weights: PyTree) -> tuple[PyTree, PyTree]:
    """Return the data and weights of the user (None: not given) as arrays of the types of the training.

    Raises `BadInput` if the structure, a shape or a type does not fit, or if a number is not finite.
    """
    found = (_checked("data", data, taken.data), _checked("weights", weights, taken.weights))
    if data is not None:
        _require_shapes("data", found[0], taken.data, taken.any_number)
    if weights is not None:
        _require_shapes("weights", found[1], taken.weights, False)
    return found


def require_signs(name: str, values: Any) -> None:
    """Raise `BadInput` for labels other than +1 and -1."""
    _require_all(name, np.isin(values, (-1, 1)), values, "+1 or -1")


def require_between(name: str, values: Any, low: float, high: float) -> None:
    """Raise `BadInput` for numbers outside of [low, high]."""
    values = np.asarray(values)
    _require_all(name, (values >= low) & (values <= high), values, f"numbers from {low:g} to {high:g}")


def _require_all(name: str, good: Any, values: Any, allowed: str) -> None:
    if not np.all(good):
        bad = np.asarray(values)[~np.asarray(good)].flat[0]
        raise BadInput(f"{name} takes {allowed}, not {bad:g}.")


def _checked(what: str, given: PyTree, form: PyTree) -> PyTree:
    """Return the given arrays with the types of the form."""
    if given is None:
        return None
    if isinstance(form, str):
        raise BadInput(form)
    if jax.tree.structure(given) != jax.tree.structure(form):
        where, given, form = _differing(what, given, form)
        raise BadInput(f"{where} takes {_shown(form)}, not {_shown(given)}.")
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf, like: _as_typed(what + jax.tree_util.keystr(path), leaf, like.dtype), given, form
    )


def _differing(name: str, given: PyTree, form: PyTree) -> tuple[str, PyTree, PyTree]:
    """Return the smallest part of nested named tuples that contains all differences in structure: name, given part, form."""
    if type(given) is type(form) and hasattr(form, "_fields"):
        parts = list(zip(type(form)._fields, given, form, strict=True))
        other = [part for part in parts if jax.tree.structure(part[1]) != jax.tree.structure(part[2])]
        if len(other) == 1:
            return _differing(f"{name}.{other[0][0]}", *other[0][1:])
    return name, given, form


def _as_typed(name: str, leaf: Any, dtype: Any) -> Any:
    """Convert an array to another type of the same kind, and require finite numbers."""
    if jnp.issubdtype(dtype, jax.dtypes.prng_key):
        require(getattr(leaf, "dtype", None) == dtype, f"{name} takes random keys, not {shortened(leaf)}.")
        return leaf
    try:
        array = np.asarray(leaf)
    except (TypeError, ValueError):
        array = np.asarray(None)
    wanted = _kinds(dtype)
    if not any(jnp.issubdtype(array.dtype, kind) for kind in wanted):
        raise BadInput(f"{name} takes numbers of the type {dtype}, not {array.dtype}.")
    with np.errstate(over="ignore", invalid="ignore"):
        typed = array.astype(dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        require(bool(np.all(np.isfinite(array))), f"{name} takes finite numbers, and holds NaN or infinity.")
        require(bool(np.all(np.isfinite(typed))), f"{name} holds a number that is too large for {dtype}.")
    else:
        require(bool(np.all(typed == array)), f"{name} holds a number that {dtype} does not have.")
    return jnp.asarray(typed)


def _kinds(dtype: Any) -> tuple[Any, ...]:
    """Return the kinds of numbers that can be converted to a type without loss of meaning."""
    if jnp.issubdtype(dtype, jnp.floating):
        return jnp.floating, jnp.integer
    return (jnp.integer,) if jnp.issubdtype(dtype, jnp.integer) else (jnp.bool_,)


def _require_shapes(what: str, given: PyTree, form: PyTree, any_number: PyTree[bool]) -> None:
    counts, leaves = {}, jax.tree_util.tree_leaves_with_path(given)
    answers = jax.tree.leaves(
        jax.tree.map(lambda one, part: jax.tree.map(lambda _: one, part), any_number, form)
    )
    for (path, leaf), like, answer in zip(leaves, jax.tree.leaves(form), answers, strict=True):
        name = what + jax.tree_util.keystr(path)
        free = answer and len(like.shape) > 0
        fits = len(leaf.shape) == len(like.shape) and leaf.shape[free:] == like.shape[free:]
        size = f"(any number, {', '.join(map(str, like.shape[1:]))})" if free else like.shape
        if not fits:
            raise BadInput(
                f"{name} takes an array of shape {size}, not {leaf.shape}; the fields of the trial set the shapes."
            )
        if free:
            counts[name] = leaf.shape[0]
    if len(set(counts.values())) > 1 or 0 in counts.values():
        listed = ", ".join(f"{count} in {name}" for name, count in counts.items())
        raise BadInput(f"the arrays of {what} take one number of samples, at least 1, not {listed}.")


def _shown(form: PyTree) -> str:
    """Return the form of a tree of arrays as text for a message.

    >>> _shown({"w": np.zeros((2, 3)), "b": (np.zeros(()), None)})
    '{b: (float64 (), None), w: float64 (2, 3)}'
    """
    text = _named(form)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def _named(form: PyTree) -> str:
    if hasattr(form, "shape") and hasattr(form, "dtype"):
        return f"{form.dtype} {tuple(form.shape)}"
    names = getattr(form, "_fields", None)
    if isinstance(form, tuple) and names:
        parts = (f"{name}: {_named(part)}" for name, part in zip(names, form, strict=True))
        return f"{type(form).__name__}({', '.join(parts)})"
    if isinstance(form, dict):
        return f"{{{', '.join(f'{name}: {_named(form[name])}' for name in sorted(form, key=str))}}}"
    if isinstance(form, tuple | list):
        inner = ", ".join(_named(part) for part in form)
        return f"[{inner}]" if isinstance(form, list) else f"({inner})"
    return shortened(form)
