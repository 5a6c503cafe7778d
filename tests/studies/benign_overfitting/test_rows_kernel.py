"""A step of the row form from the kernel is the step in JAX, whatever its sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.studies.benign_overfitting.trials import simulators
from lemmata.studies.benign_overfitting.trials.instances import Fresh, Instance
from lemmata.studies.benign_overfitting.trials.simulators import Rows, View
from tests.kernels import needs_compiler

EPSILON = {"float32": 2e-6, "float64": 1e-14}

# samples, tokens, basis: what a vector holds is divided, not divided, not filled; several vectors of tokens; one sample
SIZES = [(3, 16, 32), (4, 5, 21), (2, 3, 5), (5, 2, 1), (3, 19, 40), (1, 4, 8)]


def some_rows(samples, tokens, basis, dtype, seed=0, size=0.3):
    draw = np.random.default_rng(seed)
    features = 2 + samples * (tokens - 1)

    def normal(*shape):
        return jnp.asarray(size * draw.normal(size=shape), dtype)

    labels = jnp.asarray(np.where(draw.random(samples) < 0.5, 1, -1), dtype)
    start = Instance(
        labels=labels,
        gram=normal(features, features),
        query=normal(features, basis),
        key=normal(features, basis),
        value=normal(features),
        readout_square=jnp.asarray(0.8, dtype),
        fresh=Fresh(*[jnp.zeros(0, dtype)] * 6),
    )
    moved = [normal(*like.shape) for like in jax.eval_shape(Rows.begin, start)[1:]]
    return Rows(start, *moved)


def in_jax(rows: Rows) -> tuple[Rows, View]:
    after = simulators.moved_in_jax(rows, rows.view(), jnp.asarray(0.1, rows.query.dtype), 0.7, 1.3)
    return after, after.view()


def by_kernel(rows: Rows) -> tuple[Rows, View]:
    seen, rate = simulators.seen.native(rows), jnp.asarray(0.1, rows.query.dtype)
    after = simulators.moved.native(rows, seen, rate, 0.7, 1.3)
    return after, simulators.seen.native(after)


def assert_same(found, right, epsilon):
    for (path, one), two in zip(
        jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(right), strict=True
    ):
        near = epsilon * max(1.0, np.abs(np.asarray(two)).max(initial=0))
        np.testing.assert_allclose(one, two, rtol=0, atol=near, err_msg=jax.tree_util.keystr(path))


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("samples", "tokens", "basis"), SIZES)
def test_the_kernel_takes_the_step_of_jax(samples, tokens, basis, dtype):
    rows = some_rows(samples, tokens, basis, dtype)
    assert_same(jax.jit(by_kernel)(rows), jax.jit(in_jax)(rows), 20 * EPSILON[dtype])


@needs_compiler
def test_runs_in_lanes_are_the_runs_alone_to_the_bit():
    runs = [some_rows(4, 5, 21, "float32", seed) for seed in range(3)]
    together = jax.jit(jax.vmap(by_kernel))(jax.tree.map(lambda *leaves: jnp.stack(leaves), *runs))
    for number, run in enumerate(runs):
        assert_same(jax.tree.map(lambda leaf, n=number: leaf[n], together), jax.jit(by_kernel)(run), 0)


@needs_compiler
def test_rows_that_were_given_stay_as_they_are():
    """The kernel moves them where they lie: JAX must have made a copy of what is used again."""
    rows = some_rows(4, 5, 21, "float64")
    before = jax.tree.map(np.array, rows)
    after, _ = jax.jit(by_kernel)(rows)
    assert_same(rows, before, 0)
    assert not np.array_equal(after.query, before.query)


@needs_compiler
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attention_on_one_token_alone_is_exact_and_what_is_not_a_number_stays_none(dtype):
    rows = some_rows(3, 5, 21, dtype, size=30.0)  # logits of some thousands
    seen = jax.jit(simulators.seen.native)(rows)
    assert_same(seen, jax.jit(Rows.view)(rows), 20 * EPSILON[dtype])
    wrong = rows._replace(query=rows.query.at[2].set(jnp.nan))  # noise of the first sample
    outputs = np.asarray(jax.jit(simulators.seen.native)(wrong).outputs)
    assert np.isnan(outputs).tolist() == [True, False, False]
