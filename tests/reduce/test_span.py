"""Training in the span of the tokens is the same training."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from lemmata.reduce.span import into_span, out_of_span, span_basis
from lemmata.threefry import new_key


def network(weights, tokens):
    """Any network whose first weights act linearly on the tokens: here attention, a ReLU and a mean."""
    query, key, first = weights
    attention = jax.nn.softmax((tokens @ query) @ jnp.swapaxes(tokens @ key, 1, 2), axis=-1)
    return jnp.mean(jax.nn.relu(attention @ tokens @ first), axis=(1, 2))


def descend(weights, tokens, labels, optimiser, steps=100):
    def loss(w):
        return jnp.mean(jax.nn.softplus(-labels * (network(w, tokens) - 0.1)))

    def step(_, state):
        weights, memory = state
        updates, memory = optimiser.update(jax.grad(loss)(weights), memory)
        return optax.apply_updates(weights, updates), memory

    return jax.jit(lambda w: jax.lax.fori_loop(0, steps, step, (w, optimiser.init(w))))(weights)[0]


@jax.jit
def instance():
    keys = jax.random.split(new_key(0), 4)
    tokens = jax.random.normal(keys[0], (4, 3, 40), jnp.float64)
    weights = tuple(jax.random.normal(k, (40, 5), jnp.float64) * 0.3 for k in keys[1:])
    return weights, tokens, jnp.asarray([1.0, -1, 1, -1])


@pytest.mark.parametrize(
    "optimiser", [pytest.param(optax.sgd(0.3), marks=pytest.mark.slow), optax.sgd(0.1, momentum=0.9)]
)
def test_descent_in_the_span_follows_descent_in_full(optimiser):
    weights, tokens, labels = instance()
    basis = span_basis(tokens.reshape(-1, 40))
    assert basis.shape == (40, 12)
    full = descend(weights, tokens, labels, optimiser)
    small = descend(tuple(into_span(basis, w) for w in weights), tokens @ basis, labels, optimiser)
    for start, there, here in zip(weights, full, small, strict=True):
        np.testing.assert_allclose(out_of_span(basis, start, here), there, rtol=1e-9, atol=1e-12)


def test_adam_leaves_the_span():
    weights, tokens, labels = instance()
    basis = span_basis(tokens.reshape(-1, 40))
    full = descend(weights, tokens, labels, optax.adam(0.05), steps=20)
    small = descend(
        tuple(into_span(basis, w) for w in weights), tokens @ basis, labels, optax.adam(0.05), steps=20
    )
    gap = max(
        float(jnp.abs(out_of_span(basis, s, h) - t).max())
        for s, t, h in zip(weights, full, small, strict=True)
    )
    assert gap > 1e-3
