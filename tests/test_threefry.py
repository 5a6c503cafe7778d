"""The keys of the lab: the numbers of `jax.random`, to the bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.guard import double
from lemmata.threefry import key_of, new_key, plain_key
from tests.kernels import needs_compiler, without_kernels

DRAWS = {
    "bits": lambda key: [jax.random.bits(key, (5, 7), f"uint{n}") for n in (8, 16, 32, 64)],
    "uniform": lambda key: [jax.random.uniform(key, (1000,), dtype) for dtype in ("float32", "float64")],
    "normal": lambda key: jax.random.normal(key, (3, 4), "float32"),
    "randint": lambda key: jax.random.randint(key, (100,), -3, 1000),
    "permutation": lambda key: jax.random.permutation(key, 3000),
    "scalar": lambda key: jax.random.uniform(key),
    "nothing": lambda key: jax.random.bits(key, (0,)),
    "split": lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
    "fold_in": lambda key: jax.random.key_data(jax.random.fold_in(jax.random.fold_in(key, 2**31), 5)),
    "own keys": lambda key: jax.vmap(
        lambda n: jax.random.permutation(jax.random.fold_in(key, n), 20)
    )(jnp.arange(6)),
}  # fmt: skip
BY_JAX = {
    name: jax.jit(lambda data, draw=draw: draw(jax.random.wrap_key_data(data)))
    for name, draw in DRAWS.items()
}


@needs_compiler
def test_the_kernel_is_used_where_there_is_one():
    assert jax.random.key_impl(new_key(0)) != jax.random.key_impl(jax.random.key(0))


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("lanes", [(), (3,), (2, 2)])
def test_draws_from_keys_of_the_lab_are_those_of_jax(name, lanes):
    with double():
        data = np.asarray(jax.random.key_data(jax.random.split(jax.random.key(11), lanes))).reshape(-1, 2)
        wanted = [BY_JAX[name](one) for one in data]
        drawn = lambda one: DRAWS[name](key_of(one))  # noqa: E731
        for _ in lanes:
            drawn = jax.vmap(drawn)
        found = jax.jit(drawn)(data.reshape(*lanes, 2))
        for one, other in zip(jax.tree.leaves(_stacked(wanted)), jax.tree.leaves(found), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other.reshape(one.shape))


def _stacked(trees):
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)


def test_a_plain_key_is_one_of_jax():
    drawn = jax.random.poisson(plain_key(new_key(3)), 5.0, (100,))
    np.testing.assert_array_equal(drawn, jax.random.poisson(jax.random.key(3), 5.0, (100,)))


def test_keys_of_numbers_are_those_of_jax():
    with double():
        for number in (0, 1, 2**31, 2**63 - 1):
            assert (jax.random.key_data(new_key(number)) == jax.random.key_data(jax.random.key(number))).all()


def test_without_a_kernel_the_keys_are_those_of_jax():
    with without_kernels():
        assert jax.random.key_impl(new_key(0)) == jax.random.key_impl(jax.random.key(0))


def test_keys_that_were_made_with_kernels_draw_the_same_without():
    key = new_key(5)
    drawn = jax.random.normal(key, (7,))
    with without_kernels():
        assert jax.random.normal(jax.random.fold_in(key, 1), (3,)).shape == (3,)
        np.testing.assert_array_equal(jax.random.normal(key, (7,)), drawn)
