"""Probes measure what their names say, on weights where the answer is known."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.parts.probes import (
    cap_share,
    cosines,
    directions,
    lengths,
    lucky,
    most_attended,
    neuron_sizes,
    open_gates,
    paid_by_role,
    smallest,
)
from lemmata.threefry import new_key

MAPS = jnp.asarray([[[0.5, 0.2, 0.3], [0.1, 0.1, 0.8]], [[0.7, 0.2, 0.1], [0.3, 0.1, 0.6]]])


def test_attention_is_counted_by_the_role_of_who_pays():
    roles = jnp.asarray([[1.0, 1.0], [1.0, 0.0], [0.0, 2.0]])
    paid, count = paid_by_role(MAPS, jnp.asarray([True, True, False]), roles)
    np.testing.assert_allclose(paid, [0.8 + 0.3, 0.8, 0.6])
    np.testing.assert_allclose(count, [2, 1, 2])


def test_most_attended_tokens_are_chosen_among_the_kept_ones():
    everything = jnp.ones(3)
    np.testing.assert_array_equal(most_attended(MAPS, everything, 1), [False, False, True])
    np.testing.assert_array_equal(most_attended(MAPS, everything, 2), [True, False, True])
    np.testing.assert_array_equal(most_attended(MAPS, jnp.asarray([1.0, 1.0, 0.0]), 1), [True, False, False])
    np.testing.assert_array_equal(most_attended(MAPS, jnp.asarray([1.0, 0.0, 0.0]), 2), [True, False, False])


def test_lengths_cosines_and_directions():
    matrix = jnp.asarray([[3.0, 0.0], [4.0, 2.0]])
    np.testing.assert_allclose(lengths(matrix, jnp.eye(2)), [5, 2])
    np.testing.assert_allclose(cosines(matrix, jnp.eye(2)), [0.6, 1.0])
    np.testing.assert_allclose(jnp.linalg.norm(directions(matrix), axis=0), 1)
    np.testing.assert_allclose(cosines(0 * matrix, matrix), 0)


def test_lucky_neurons_by_every_definition():
    features = jnp.eye(3)[:, :2]
    hidden = jnp.asarray([[1.0, 0.05, 0.0], [0.6, 0.5, 0.0], [0.5, 0.6, 0.1], [-1.0, -2.0, 0.0]]).T
    found = {kind: lucky(hidden, features, kind, 0, 0.2).tolist() for kind in ("active", "nearest", "angle")}
    assert found == {
        "active": [True, True, True, False],
        "nearest": [True, True, False, True],
        "angle": [True, False, False, False],
    }
    assert lucky(hidden, features, "nearest_margin", 0, 0.2).tolist() == [True, False, False, True]
    assert lucky(hidden, features, "nearest", 1).tolist() == [False, False, True, False]


def test_shares_of_lucky_neurons_are_those_of_random_directions():
    hidden = jax.random.normal(new_key(1), (10, 100_000))
    for kind, size, share in (
        ("nearest", 0.0, 0.2),
        ("active", 0.0, 0.5),
        ("angle", 1.0, cap_share(10, 1.0)),
    ):
        seen = float(lucky(hidden, jnp.eye(10)[:, :5], kind, 2, size).mean())
        assert seen == pytest.approx(share, abs=4 * math.sqrt(share / 100_000))
    assert cap_share(2, 0.3) == pytest.approx(0.3 / math.pi)  # in two dimensions angles are uniform


def test_gates_are_counted_in_their_group():
    seen, hidden = jnp.asarray([[1.0], [-1.0]]), jnp.asarray([[1.0, -1.0, 2.0]])
    rows = jnp.asarray([[True, False], [True, True]])
    neurons = jnp.asarray([[True, True, True], [True, False, True]])
    share, count = open_gates(seen, hidden, rows, neurons)
    np.testing.assert_allclose(share, [2, 2])
    np.testing.assert_allclose(count, [3, 4])


def test_pruning_takes_the_smallest_neurons():
    sizes = neuron_sizes(jnp.asarray([[3.0, 0.0, 1.0, 0.1], [4.0, 2.0, 0.0, 0.0]]))
    np.testing.assert_allclose(sizes, [5, 2, 1, 0.1])
    np.testing.assert_array_equal(smallest(sizes, 0.5), [False, False, True, True])
    assert not smallest(sizes, 0.0).any()
