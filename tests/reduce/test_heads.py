"""Grouped heads are the explicit heads, to rounding, for less work."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemmata.descent import Descent, advance, begin, logistic_loss
from lemmata.reduce import heads as grouped
from lemmata.threefry import new_key


def toy_loss(params, members, inputs, labels):
    """A small model that sums bent heads, scaled by the square root of their number."""
    outputs = jax.vmap(lambda w, u: jnp.tanh(inputs @ w) * u)(params["w"], params["u"])
    return jnp.mean(logistic_loss(labels * grouped.total(outputs, members) / jnp.sqrt(members.sum())))


@partial(jax.jit, static_argnums=1)
def toy(seed, groups):
    keys = jax.random.split(new_key(seed), 4)
    params = {"w": jax.random.normal(keys[0], (groups, 3)), "u": jax.random.normal(keys[1], (groups,))}
    return params, jax.random.normal(keys[2], (7, 3)), jax.random.rademacher(keys[3], (7,), dtype=float)


def descend(method, params, members, inputs, labels, steps=40):
    descent = Descent(learning_rate=0.3, method=method)

    slope = jax.value_and_grad(lambda p: toy_loss(p, members, inputs, labels))

    @jax.jit
    def run(params):
        fit = begin(descent, slope, params)
        return jax.lax.fori_loop(0, steps, lambda _, now: advance(descent, slope, now), fit)

    return run(params)


@pytest.mark.parametrize("method", ["gd", "momentum", "adam"])
def test_grouped_heads_follow_explicit_heads_under_every_optimiser(method):
    params, inputs, labels = toy(0, 3)
    members = jnp.array([1.0, 4.0, 2.0])
    explicit = grouped.expand(params, members)
    small = descend(method, params, members, inputs, labels)
    large = descend(method, explicit, jnp.ones(7), inputs, labels)
    np.testing.assert_allclose(small.loss, large.loss, rtol=1e-12)
    for a, b in zip(
        jax.tree.leaves(grouped.expand(small.params, members)), jax.tree.leaves(large.params), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@settings(max_examples=20, deadline=None)
@given(counts=st.lists(st.integers(1, 5), min_size=3, max_size=3), seed=st.integers(0, 1000))
def test_norms_and_inner_products_count_every_member(counts, seed):
    params, *_ = toy(seed, 3)
    other, *_ = toy(seed + 1, 3)
    members = jnp.array(counts, float)
    rows, other_rows = (
        np.repeat(np.concatenate([p["w"], p["u"][:, None]], axis=1), counts, axis=0) for p in (params, other)
    )
    np.testing.assert_allclose(grouped.norm(params, members), np.linalg.norm(rows), rtol=1e-12)
    np.testing.assert_allclose(grouped.inner(params, other, members), np.sum(rows * other_rows), atol=1e-10)
    np.testing.assert_allclose(grouped.largest_head_norm(params, members), np.linalg.norm(rows, axis=1).max())


def test_grouping_undoes_expanding():
    params, *_ = toy(2, 3)
    members = np.array([2.0, 1.0, 3.0])
    found, counts = grouped.group(grouped.expand(params, jnp.asarray(members)))
    np.testing.assert_array_equal(counts, members)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_group_without_members_counts_for_nothing():
    params, *_ = toy(3, 2)
    members = jnp.array([2.0, 0.0])
    outputs = jnp.array([[1.0], [5.0]])
    assert grouped.total(outputs, members) == 2.0
    assert grouped.largest_head_norm(params, members) == grouped.head_norms(params)[0]


def test_a_trillion_heads_are_logistic_regression_on_their_first_features():
    """With H/2 heads in each of two groups, `u' = sqrt(H) u / 2` learns with half the step and `w` with a step of order
    1/H: at 1e12 heads nothing but `u'` moves."""
    params, inputs, labels = toy(4, 2)
    heads, steps, rate = 1e12, 40, 0.3
    small = {"w": params["w"], "u": params["u"] * 2 / heads**0.5}
    found = descend("gd", small, jnp.full(2, heads / 2), inputs, labels, steps)
    features = np.tanh(np.asarray(inputs) @ np.asarray(params["w"]).T)
    weights, signs = np.array(params["u"]), np.asarray(labels)
    for _ in range(steps):
        slopes = -signs / (1 + np.exp(signs * (features @ weights)))
        weights = weights - rate / 2 * features.T @ slopes / len(signs)
    np.testing.assert_allclose(np.asarray(found.params["u"]) * heads**0.5 / 2, weights, rtol=1e-9)
    np.testing.assert_allclose(found.params["w"], params["w"], atol=1e-9)
    assert float(found.loss) < float(descend("gd", small, jnp.full(2, heads / 2), inputs, labels, 0).loss)
