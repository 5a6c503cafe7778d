"""Keys for steps: the numbers of `jax.random`, to the bit."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.guard import double
from lemmata.threefry import fast_key

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


@pytest.mark.parametrize("name", DRAWS)
def test_draws_from_fast_keys_are_those_of_jax(name):
    with double():
        key = jax.random.key(11)
        wanted, found = (
            DRAWS[name](key),
            jax.jit(lambda data: DRAWS[name](fast_key(data)))(jax.random.key_data(key)),
        )
        for one, other in zip(jax.tree.leaves(wanted), jax.tree.leaves(found), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(one, other)
