"""The layer in the basis of patterns is the layer itself; its gradient by hand is that of automatic differentiation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.bench.patterns import orthonormal
from lemmata.studies.chain_of_thought import network
from lemmata.studies.chain_of_thought.data import Chains

DATA = Chains(dim=12, patterns=6, steps=3, examples=7)


def drawn(key=0):
    frame = orthonormal(jax.random.key(key), 9, 12, jnp.float64)
    w = 0.3 * jax.random.normal(jax.random.key(key + 1), (24, 24))
    return frame[:6], frame[6:], w, DATA.draw(jax.random.key(key + 2), 5)


def test_the_table_gives_the_loss_of_the_weights():
    patterns, encodings, w, prompts = drawn()
    direct = jax.vmap(lambda p: network.direct_loss(w, p, patterns, encodings))(prompts)
    table = network.in_basis(w, patterns, encodings)
    np.testing.assert_allclose(jax.vmap(lambda p: network.loss(table, p))(prompts), direct, rtol=1e-13)


def test_the_gradient_by_hand_is_that_of_automatic_differentiation():
    patterns, encodings, w, prompts = drawn()
    table = network.in_basis(w, patterns, encodings)
    for n in range(5):
        prompt = jax.tree.map(lambda part, n=n: part[n], prompts)
        loss, by_hand = network.slope(table, prompt)
        np.testing.assert_allclose(loss, network.loss(table, prompt), rtol=1e-13)
        np.testing.assert_allclose(by_hand, jax.grad(network.loss)(table, prompt), atol=1e-14)
        direct = jax.grad(network.direct_loss)(w, prompt, patterns, encodings)
        np.testing.assert_allclose(by_hand, network.in_basis(direct, patterns, encodings), atol=1e-14)


def test_the_sums_over_patterns_and_steps_are_conserved():
    """11.2: sum_j (mu_j; 0)^T W, sum_j (0; mu_j)^T W and sum_k c_k^T W do not move."""
    patterns, encodings, w, prompts = drawn()
    table = network.in_basis(w, patterns, encodings)
    moved = jax.vmap(lambda p: network.slope(table, p)[1])(prompts).sum(0)
    for rows in (slice(0, 6), slice(6, 12), slice(12, 15)):
        np.testing.assert_allclose(moved[rows].sum(0), 0, atol=1e-14)


@pytest.mark.parametrize("generator", ["shift", "random"])
def test_steps_of_a_task_are_injective_and_shifts_have_no_fixed_point(generator):
    maps = np.asarray(Chains(generator=generator).maps(jax.random.key(0)))
    assert all(sorted(one) == list(range(20)) for one in maps)
    if generator == "shift":
        assert (maps != np.arange(20)).all()
        assert len({tuple(one) for one in maps}) == 3


def test_a_prompt_shows_the_matching_share_and_hides_what_comes_later():
    prompts = DATA.draw(jax.random.key(3), 18)
    first = prompts.top[:, : 7 * 3 : 3]
    start = np.asarray([np.arange(18)[n] // 3 % 6 for n in range(18)])
    assert ((np.asarray(first) == start[:, None]).sum(1) == round(0.4 * 7)).all()
    assert (np.asarray(prompts.shown[:, 21:].sum(1)) == np.arange(18) % 3).all()
    assert sorted(zip(start.tolist(), np.asarray(prompts.query_step).tolist(), strict=True)) == [
        (i, k) for i in range(6) for k in range(3)
    ]
