"""A small graph keeps its shape: joined nodes near, the same places every time, edges as thick as their weights."""

import numpy as np
import pytest
import scipy.sparse as sparse

from lemmata.draw.graphs import graph, layout
from lemmata.draw.style import canvas


def two_rings(size=8):
    """Two rings that nothing joins."""
    ring = np.roll(np.eye(size), 1, 1)
    return np.kron(np.eye(2), ring + ring.T)


def test_joined_nodes_stand_nearer_than_others():
    adjacency = two_rings()
    at = layout(adjacency)
    assert at.shape == (16, 2)
    assert (at >= -1e-9).all()
    assert (at <= 1 + 1e-9).all()
    distance = np.linalg.norm(at[:, None] - at[None], axis=-1)
    apart = ~np.eye(16, dtype=bool)
    assert distance[adjacency > 0].mean() < 0.5 * distance[(adjacency == 0) & apart].mean()
    assert distance[apart].min() > 0.01


@pytest.mark.parametrize("size", [1, 2, 3])
def test_tiny_graphs_have_places(size):
    assert np.isfinite(layout(np.ones((size, size)) - np.eye(size))).all()


def test_the_same_graph_looks_the_same_dense_or_sparse():
    np.testing.assert_array_equal(layout(two_rings()), layout(sparse.csr_array(two_rings())))


def test_edges_are_drawn_once_as_thick_as_their_larger_weight():
    weights = np.zeros((3, 3))
    weights[0, 1], weights[1, 0], weights[1, 2] = 0.5, 0.25, 1.0
    figure, axes = canvas()
    at = graph(axes, weights, [0, 1, 1], ["first", "second"], ["a", "b", "c"], outlined=[1])
    edges, nodes = axes.collections
    assert edges.get_linewidths() == pytest.approx([2.0, 4.0])
    colours = nodes.get_facecolors()
    assert (colours[1] == colours[2]).all()
    assert (colours[0] != colours[1]).any()
    assert nodes.get_linewidths()[1] > nodes.get_linewidths()[0]
    again = graph(canvas()[1], weights, [0, 1, 1], places=at)
    np.testing.assert_array_equal(again, at)
    figure.draw_without_rendering()
