"""Simulates equal heads once, with a weight.

A model that sums its heads gives equal heads equal gradients, so heads that start equal stay equal under gradient
descent, momentum and Adam. A model of `H` heads in `C` groups of equal heads therefore costs `C` heads, for any `H`. It is
stored as one head a group, and the number of heads in each group, `members`. These are floats, so that 1e12 fits and the
number of heads can vary inside one compiled program.

The first dimension of every parameter array is the group.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

Members = Float[Array, " group"]


def total(outputs: Float[Array, "group ..."], members: Members) -> Float[Array, "..."]:
    """Return the sum of the outputs of all heads, `sum_c n_c out_c`.

    Its *derivative* with respect to the head of a group is that of one member, not of the whole group. This is the gradient of
    each of the equal heads, so that any optimiser moves the stored head as it would move each of them.
    """
    others = (members - 1).reshape(-1, *(1,) * (outputs.ndim - 1))
    return jnp.sum(outputs + jax.lax.stop_gradient(others * outputs), axis=0)


def inner(a: PyTree, b: PyTree, members: Members) -> Float[Array, ""]:
    """Return the inner product of two models over all heads, `sum_c n_c <a_c, b_c>`."""
    products = jax.tree.map(lambda x, y: jnp.sum((x * y).reshape(len(members), -1), axis=1), a, b)
    return jnp.sum(jnp.stack([members @ product for product in jax.tree.leaves(products)]))


def norm(params: PyTree, members: Members) -> Float[Array, ""]:
    """Return the Euclidean norm over all heads."""
    return jnp.sqrt(inner(params, params, members))


def head_norms(params: PyTree) -> Float[Array, " group"]:
    """Return the Euclidean norm of one head of every group."""
    squares = [jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1) for leaf in jax.tree.leaves(params)]
    return jnp.sqrt(sum(squares))


def largest_head_norm(params: PyTree, members: Members) -> Float[Array, ""]:
    """Return `max_h ||theta_h||` over the groups that have members."""
    return jnp.max(jnp.where(members > 0, head_norms(params), 0.0))


def group(params: PyTree) -> tuple[PyTree, np.ndarray]:
    """Group equal heads. Returns one head of each group and the sizes. Heads are equal when all their numbers are."""
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, params))
    flat = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
    _, first, counts = np.unique(flat, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    kept = [leaf[first[order]] for leaf in leaves]
    return jax.tree.unflatten(structure, kept), counts[order].astype(float)


def expand(params: PyTree, members: Members) -> PyTree:
    """Return every head: the inverse of `group` up to order. Needs memory for all heads."""
    counts = np.asarray(members).astype(int)
    return jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf), counts, axis=0), params)
