"""The layer of attention and votes: its output by hand, its one-pass derivatives against automatic ones."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.parts.votes import Weights, attended, attention, batch_slope, features, fold, perceptron
from lemmata.threefry import new_key

DIM, NEURONS, ROWS, TOKENS = 5, 11, 3, 4


@partial(jax.jit, static_argnums=(0, 1, 2), static_argnames="dtype")
def made(heads=1, value=5, dtype=jnp.float64):
    keys = iter(jax.random.split(new_key(0), 9))

    def normal(*shape):
        return jax.random.normal(next(keys), shape, dtype)

    weights = Weights(
        normal(heads, 6, DIM),
        normal(heads, 6, DIM),
        normal(heads, value, DIM),
        normal(heads * value, NEURONS),
    )
    return weights, normal(ROWS, DIM), normal(TOKENS, DIM), normal(ROWS, NEURONS), normal(heads, ROWS, TOKENS)


def by_hand(weights, askers, tokens, vote, bias, skip=False):
    """The vote of every row, from W_Q, W_K, W_V, W_O one by one."""
    bias = jnp.broadcast_to(bias, (weights.query.shape[0], ROWS, TOKENS))
    mixed = []
    for query, key, value, own in zip(weights.query, weights.key, weights.value, bias, strict=True):
        share = jax.nn.softmax((askers @ query.T) @ (tokens @ key.T).T + own, axis=-1)
        mixed.append(share @ tokens @ value.T)
    seen = jnp.concatenate(mixed, axis=-1) + (askers if skip else 0)
    return jnp.sum(vote * jax.nn.relu(seen @ weights.hidden), axis=-1)


def voted(weights, askers, tokens, vote, bias, skip=False):
    folded = fold(weights, skip)
    return perceptron(features(folded, askers, tokens, bias, skip), folded.hidden, vote)


CASES = [(1, False), (3, False), (1, True)]


@pytest.mark.parametrize(("heads", "skip"), CASES)
@pytest.mark.parametrize("shape", ["number", "row", "map", "heads"])
def test_votes_are_those_of_the_separate_weights_with_every_bias(heads, skip, shape):
    weights, askers, tokens, vote, bias = made(heads)
    bias = {"number": 0.0, "row": bias[0, 0], "map": bias[0], "heads": bias}[shape]
    got, want = jax.jit(lambda w: [f(w, askers, tokens, vote, bias, skip) for f in (voted, by_hand)])(weights)
    np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize(("heads", "skip"), CASES)
def test_one_pass_derivatives_are_the_automatic_ones(heads, skip):
    weights, askers, tokens, vote, bias = made(heads)

    def slope(output):
        def whole(weights, bias, askers, tokens):
            return jnp.sum(jnp.sin(output(weights, askers, tokens, vote, bias, skip)))

        return jax.jit(jax.grad(whole, (0, 1, 2, 3)))(weights, bias, askers, tokens)

    got, want = slope(voted), slope(by_hand)
    assert len(jax.tree.leaves(got)) == 7
    for one, other in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


def test_a_common_bias_changes_nothing_and_its_slope_sums_to_zero():
    weights, askers, tokens, vote, bias = made()
    run = jax.jit(lambda b: voted(weights, askers, tokens, vote, b))
    one, other = run(bias), run(bias + 2.5)
    np.testing.assert_allclose(one, other, rtol=1e-10)
    slope = np.asarray(jax.jit(jax.grad(lambda b: jnp.sum(run(b))))(bias))
    np.testing.assert_allclose(slope.sum(-1), 0, atol=1e-12)
    assert np.abs(slope).max() > 1e-3


def test_tokens_with_minus_infinite_bias_are_left_out():
    weights, askers, tokens, vote, _ = made()
    gone = jnp.asarray([0.0, -np.inf, 0.0, 0.0])
    left = np.asarray(tokens)[[0, 2, 3]]
    seen = jax.jit(lambda *given: features(fold(weights), askers, *given))
    np.testing.assert_allclose(seen(tokens, gone), seen(left), rtol=1e-12)
    slope = jax.jit(jax.grad(lambda w: jnp.sum(voted(w, askers, tokens, vote, gone))))(weights)
    assert all(np.isfinite(part).all() for part in slope)
    paid = jax.jit(lambda w: attention(fold(w), askers, tokens, gone))(weights)
    np.testing.assert_allclose(np.sum(paid, axis=-1), 1)


def test_wide_features_give_the_same_vote_as_narrow_ones():
    """The written-out sum and the product are two ways to the same number (the switch is at 16 features)."""
    for width in (16, 17):
        rng = np.random.default_rng(0)
        parts = [rng.normal(size=shape) for shape in ((6, width), (width, 9), (6, 9))]
        want = np.sum(parts[2] * np.maximum(parts[0] @ parts[1], 0), -1)
        np.testing.assert_allclose(jax.jit(perceptron)(*parts), want, rtol=1e-10)


def test_single_precision_stays_single():
    weights, askers, tokens, vote, _ = made(dtype=jnp.float32)
    assert jax.jit(lambda w: voted(w, askers, tokens, vote, 0.0))(weights).dtype == jnp.float32
    assert jax.jit(attended)(np.zeros((2, 4), np.float32), tokens).dtype == jnp.float32


def test_slope_of_a_batch_is_the_mean_of_the_slopes():
    weights, _, tokens, vote, _ = made()
    batch = {"asker": jax.random.normal(new_key(5), (7, ROWS, DIM)), "sign": jnp.arange(7.0) - 3}

    def loss(folded, sample):
        seen = features(folded, sample["asker"], tokens)
        return jax.nn.relu(1 - sample["sign"] * jnp.mean(perceptron(seen, folded.hidden, vote)))

    def whole(weights):
        def one(asker, sign):
            return jax.nn.relu(1 - sign * jnp.mean(by_hand(weights, asker, tokens, vote, 0.0)))

        return jnp.mean(jax.vmap(one)(batch["asker"], batch["sign"]))

    value, slope = jax.jit(lambda w: batch_slope(fold, loss, w, batch))(weights)
    want, right = jax.jit(jax.value_and_grad(whole))(weights)
    np.testing.assert_allclose(value, want, rtol=1e-10)
    for one, other in zip(slope, right, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
