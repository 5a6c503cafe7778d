"""Equal heads simulated once and weighted.

A model that sums its heads gives equal heads equal gradients, so heads that start equal stay equal under gradient
descent, momentum and Adam. A model whose `H` heads fall into `C` groups of equal ones therefore costs `C` heads, for
any `H`: one representative a group, and how many heads it stands for (`members`, kept as floats so that 1e12 fits and
so that the number of heads can vary inside one compiled program).

Every array of the parameters carries the group as its first dimension.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

Members = Float[Array, " group"]


def total(outputs: Float[Array, "group ..."], members: Members) -> Float[Array, "..."]:
    """The sum over all heads of their outputs, `sum_c n_c out_c`.

    Its *derivative* with respect to a representative is that of one member, not of the whole group: this is the
    gradient that each of the equal heads sees, so any optimiser steps the representative as it would step a head.
    """
    others = (members - 1).reshape(-1, *(1,) * (outputs.ndim - 1))
    return jnp.sum(outputs + jax.lax.stop_gradient(others * outputs), axis=0)


def inner(a: PyTree, b: PyTree, members: Members) -> Float[Array, ""]:
    """The inner product of two models over all heads, `sum_c n_c <a_c, b_c>`."""
    products = jax.tree.map(lambda x, y: jnp.sum((x * y).reshape(len(members), -1), axis=1), a, b)
    return jnp.sum(jnp.stack([members @ product for product in jax.tree.leaves(products)]))


def norm(params: PyTree, members: Members) -> Float[Array, ""]:
    """The Euclidean norm over all heads."""
    return jnp.sqrt(inner(params, params, members))


def head_norms(params: PyTree) -> Float[Array, " group"]:
    """The Euclidean norm of one head of every group."""
    squares = [jnp.sum(leaf.reshape(len(leaf), -1) ** 2, axis=1) for leaf in jax.tree.leaves(params)]
    return jnp.sqrt(sum(squares))


def largest_head_norm(params: PyTree, members: Members) -> Float[Array, ""]:
    """`max_h ||theta_h||` over the groups that have members."""
    return jnp.max(jnp.where(members > 0, head_norms(params), 0.0))


def group(params: PyTree) -> tuple[PyTree, np.ndarray]:
    """Explicit heads to representatives and members; heads count as equal when all their numbers are."""
    leaves, structure = jax.tree.flatten(jax.tree.map(np.asarray, params))
    flat = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
    _, first, counts = np.unique(flat, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    kept = [leaf[first[order]] for leaf in leaves]
    return jax.tree.unflatten(structure, kept), counts[order].astype(float)


def expand(params: PyTree, members: Members) -> PyTree:
    """Every head written out: the inverse of `group` up to order. Needs memory for all heads."""
    counts = np.asarray(members).astype(int)
    return jax.tree.map(lambda leaf: jnp.repeat(jnp.asarray(leaf), counts, axis=0), params)
