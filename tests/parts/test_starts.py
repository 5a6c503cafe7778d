"""Initial models have the error they are given."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.parts.patterns import orthonormal
from lemmata.parts.starts import carrier, initial_errors, push, signs, turned, unit_spectral
from lemmata.parts.votes import Weights
from lemmata.threefry import new_key

BASE = np.asarray(orthonormal(new_key(0), 4, 8, jnp.float32)).astype(float)

errors_of = jax.jit(initial_errors)


def normal(seed, *shape):
    return jax.random.normal(new_key(seed), shape, jnp.float64)


@partial(jax.jit, static_argnums=0)
def model(initial, error):
    """Keys and queries at the error, in the frame of the tokens; values at half of it in a random frame."""
    eye = jnp.eye(8)
    query, key, value = (
        carrier(initial, frame, size, jnp.asarray(BASE), normal(seed, 4, 8), 0.05)
        for seed, frame, size in (
            (1, eye, error),
            (2, eye, error),
            (3, turned(normal(4, 8, 8), 8), error / 2),
        )
    )
    return Weights(query[None], key[None], value[None], jnp.ones((8, 2)))


@pytest.mark.parametrize("initial", ["perturbed", "shrink"])
@pytest.mark.parametrize("error", [0.0, 0.1, 0.3])
def test_patterns_are_carried_with_the_error_asked_for(initial, error):
    weights = model(initial, error)
    found = errors_of(weights, jnp.asarray(BASE))
    assert float(found.key_query) <= error + 1e-6
    assert float(found.value) <= error / 2 + 1e-6
    if initial == "shrink":
        assert float(found.key_query) == pytest.approx(error, abs=1e-6)
        assert float(found.spectral) == pytest.approx(1 - error / 2)
    off = np.linalg.norm(weights.query[0] @ BASE.T - BASE.T, axis=0)
    np.testing.assert_allclose(off, error, atol=1e-6)


def test_errors_of_the_check_are_certificates_for_shared_features():
    """Keys that point elsewhere than queries on a discriminative pattern cannot have a small error."""
    weights = model("shrink", 0.0)
    swapped = jnp.asarray(BASE)[jnp.asarray([1, 0, 2, 3])]
    turned_keys = weights._replace(key=(swapped.T @ jnp.asarray(BASE))[None])
    assert float(errors_of(turned_keys, jnp.asarray(BASE)).key_query) > 0.5


def test_amplified_complement_carries_patterns_exactly_and_blows_up_noise():
    matrix = carrier("amplified_complement", jnp.eye(8), 0.2, jnp.asarray(BASE), normal(1, 4, 8), 0.05)
    np.testing.assert_allclose(matrix @ BASE.T, BASE.T, atol=1e-6)
    noise = 0.05 * np.random.default_rng(0).normal(size=(4000, 8))
    outside = noise - noise @ BASE.T @ BASE
    length = np.sqrt(((outside @ np.asarray(matrix).T) ** 2).sum(1).mean())
    assert length == pytest.approx(0.2, rel=0.05)


@pytest.mark.parametrize(("initial", "size"), [("literal", 16.0), ("literal_sqrt", 4.0)])
def test_printed_scalings_are_far_from_the_assumption(initial, size):
    weights = model(initial, 0.2)
    assert np.linalg.norm(weights.key[0], 2) == pytest.approx(size)
    assert float(errors_of(weights, jnp.asarray(BASE)).key_query) > 0.5


def test_spectral_norm_is_brought_down_but_never_up():
    large, small = 3 * jnp.eye(4), 0.5 * jnp.eye(4)
    np.testing.assert_allclose(unit_spectral(large), jnp.eye(4))
    np.testing.assert_allclose(unit_spectral(small), small)


def test_push_sends_patterns_to_unit_vectors_and_the_rest_to_zero():
    matrix = np.asarray(push(normal(1, 4, 6), jnp.asarray(BASE)))
    np.testing.assert_allclose(np.linalg.norm(matrix @ BASE.T, axis=0), 1, atol=1e-6)
    rest = np.linalg.svd(BASE)[2][4:]
    np.testing.assert_allclose(matrix @ rest.T, 0, atol=1e-6)


def test_votes_are_fair_signs_of_the_given_size():
    votes = np.asarray(signs(new_key(0), (40, 100), 0.1, jnp.float64))
    np.testing.assert_allclose(np.abs(votes), 0.1)
    assert abs((votes > 0).mean() - 0.5) < 0.04  # five standard errors
