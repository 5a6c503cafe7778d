"""Nodes drawn by distance, and the networks on a graph."""

import jax
import jax.numpy as jnp
import numpy as np

from lemmata.parts.graph_networks import convolution, drawn_between, edges_of, node_transformer, rings
from lemmata.parts.graphs import adjacency, distances, normalised

PATH = adjacency(np.array([[0, 1], [1, 2], [2, 3], [4, 5]]), 6)


def drawn(first, last, nodes=(0, 2, 4)):
    chance = jnp.linspace(0, 0.999, 40).reshape(1, -1).repeat(len(nodes), 0)
    found = drawn_between(rings(PATH, 4), jnp.array(nodes), jnp.asarray(first), jnp.asarray(last), chance)
    return [np.asarray(part) for part in found]


def test_drawn_nodes_have_the_distance_that_is_said():
    others, away = drawn(0, 4)
    np.testing.assert_array_equal(away, distances(PATH, 4)[np.array([0, 2, 4])[:, None], others])
    assert all(set(row) == set(range(6)) for row in others)


def test_nodes_of_one_distance_are_drawn_evenly_and_a_lonely_node_gets_itself():
    others, away = drawn(1, 1)
    assert [sorted(set(row)) for row in others] == [[1], [1, 3], [5]]
    assert abs((others[1] == 1).mean() - 0.5) < 0.1
    others, away = drawn(2, 2)
    assert set(others[2]) == {4}
    assert set(away[2]) == {0}


def test_every_distance_has_draws_of_its_own():
    near = jnp.arange(8) % 4
    chance = jnp.full((1, 8), 0.5)
    _, away = drawn_between(rings(PATH, 4), jnp.array([0]), near, near, chance)
    assert np.asarray(away)[0].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]


def test_a_convolution_multiplies_by_the_normalised_adjacency():
    net = convolution(jax.random.key(0), 3, 4, 2, 2)
    x = np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    a = normalised(PATH).toarray()
    first = np.maximum(a @ x @ net.layers[0].weight + net.layers[0].bias, 0)
    np.testing.assert_allclose(
        net(jnp.asarray(x), edges_of(PATH)), a @ first @ net.layers[1].weight + net.layers[1].bias, atol=1e-5
    )


def test_a_large_position_leaves_only_nodes_of_its_distance():
    import equinox as eqx

    net = node_transformer(jax.random.key(0), 3, 4, 2, 1, 5, 2)
    net = eqx.tree_at(lambda t: t.blocks[0].bias, net, jnp.array([0.0, 50.0, 0.0, 0.0, 0.0]))
    x = jax.random.normal(jax.random.key(1), (6, 3))
    nodes, others = jnp.array([0]), jnp.array([[1, 2, 3, 5]])
    away = jnp.array([[1, 2, 3, 4]])
    alone = net(x, nodes, [(others[:, :1], away[:, :1])])
    np.testing.assert_allclose(net(x, nodes, [(others, away)]), alone, atol=1e-5)
