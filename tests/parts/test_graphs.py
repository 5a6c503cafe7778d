"""Graphs are symmetric, distances are those of a breadth-first search, and bad files are refused in a sentence."""

import numpy as np
import pytest
import scipy.sparse as sparse
from scipy.sparse.csgraph import dijkstra

from lemmata.errors import BadInput
from lemmata.parts.graphs import (
    adjacency,
    block_graph,
    degrees,
    distances,
    normalised,
    read_graph,
    require_neighbours,
)

RNG = np.random.default_rng(0)
GRAPH = block_graph(RNG, np.repeat([0, 1], [30, 50]), np.array([[0.1, 0.02], [0.02, 0.05]]))


def test_an_edge_counts_once_in_whichever_direction_it_is_given():
    graph = adjacency(np.array([[0, 1], [1, 0], [0, 1], [1, 2], [3, 3]]), 4)
    assert graph.toarray().tolist() == [[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]
    assert degrees(graph).tolist() == [1, 2, 1, 0]


def test_distances_are_those_of_a_search_by_heap():
    found = distances(GRAPH, 4)
    expected = np.minimum(dijkstra(GRAPH, unweighted=True), 4)
    np.testing.assert_array_equal(found, expected)
    assert (expected == 4).any()
    np.testing.assert_array_equal(distances(GRAPH, 4, np.array([5, 60])), found[[5, 60]])


def test_the_normalised_adjacency_has_largest_eigenvalue_one():
    found = normalised(GRAPH).toarray()
    np.testing.assert_allclose(found, found.T)
    values = np.linalg.eigvalsh(found)
    assert values[-1] == pytest.approx(1.0)
    assert values[0] > -1
    root = np.sqrt(degrees(GRAPH) + 1.0)
    np.testing.assert_allclose(found @ root, root)


def test_block_graphs_have_the_densities_asked_for():
    group = np.repeat([0, 1], [300, 500])
    graph = block_graph(np.random.default_rng(1), group, np.array([[0.2, 0.05], [0.05, 0.1]])).toarray()
    assert np.array_equal(graph, graph.T)
    assert not graph.diagonal().any()
    for g, h, chance, pairs in ((0, 0, 0.2, 300 * 299), (0, 1, 0.05, 150_000), (1, 1, 0.1, 500 * 499)):
        seen = graph[np.ix_(group == g, group == h)].sum() / pairs
        assert abs(seen - chance) < 5 * np.sqrt(2 * chance * (1 - chance) / pairs)


@pytest.mark.parametrize(
    ("edges", "sentence"),
    [
        (np.array([[0, 5]]), "names node 5, but the nodes are 0 to 3"),
        (np.array([[-1, 2]]), "names node -1"),
        (np.array([[0.0, 1.0]]), "whole numbers"),
        (np.array([0, 1]), "two columns"),
    ],
)
def test_edge_lists_out_of_range_are_refused(edges, sentence):
    with pytest.raises(BadInput, match=sentence):
        adjacency(edges, 4)


def test_marked_nodes_without_neighbours_are_refused():
    graph = adjacency(np.array([[0, 1]]), 3)
    require_neighbours(graph, np.array([True, True, False]), "labelled nodes")
    with pytest.raises(BadInput, match="1 labelled nodes have no neighbour"):
        require_neighbours(graph, np.array([True, False, True]), "labelled nodes")


def test_graph_files_with_dense_and_sparse_features_say_the_same(tmp_path):
    features = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    edges, labels = np.array([[0, 1], [1, 2]]), np.array([0, 1, -1])
    dense, thin = tmp_path / "dense.npz", tmp_path / "thin.npz"
    np.savez(dense, edges=edges, features=features, labels=labels)
    s = sparse.csr_array(features)
    parts = {f"features_{name}": getattr(s, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(thin, edges=edges, labels=labels, **parts)
    for path in (dense, thin):
        found = read_graph(path)
        np.testing.assert_array_equal(found.features.toarray(), features)
        assert found.labels.tolist() == [0, 1, -1]
        assert degrees(found.adjacency).tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"labels": np.array([0, 1])}, "3 rows of features but 2 labels"),
        ({"features": np.full((3, 2), np.nan)}, "features that are not finite"),
        ({"edges": np.array([[0, 9]])}, "names node 9"),
        ({"features": None}, "lacks features"),
    ],
)
def test_bad_graph_files_are_refused_in_one_sentence(tmp_path, change, sentence):
    parts = {"edges": np.array([[0, 1]]), "features": np.ones((3, 2)), "labels": np.zeros(3, int)} | change
    np.savez(tmp_path / "bad.npz", **{name: value for name, value in parts.items() if value is not None})
    with pytest.raises(BadInput, match=sentence):
        read_graph(tmp_path / "bad.npz")
    with pytest.raises(BadInput, match="cannot be read as"):
        read_graph(tmp_path / "absent.npz")
