"""Functions of graphs: adjacency from an edge list, degrees, distances, normalised adjacency, random block graphs, graph files.

Graphs are undirected and without loops. Their adjacency is a sparse array of SciPy, on the host.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sparse
from jaxtyping import Bool, Float, Int, UInt8
from numpy import ndarray

from lemmata.data import load
from lemmata.errors import BadInput, require

SOURCES_AT_ONCE = 1024
"""The number of sources whose distances are computed together, which bounds the memory."""


class GraphFile(NamedTuple):
    """A graph from a file.

    `adjacency`: the symmetric adjacency.
    `features`: one row a node.
    `labels`: classes counted from 0; -1 if unknown.
    """

    adjacency: sparse.csr_array
    features: sparse.csr_array
    labels: Int[ndarray, " node"]


def adjacency(edges: ndarray, nodes: int) -> sparse.csr_array:
    """Return the symmetric 0-1 adjacency of an edge list.

    Each edge counts once, even if it is given repeatedly or in both directions. Loops are ignored.

    >>> adjacency(np.array([[0, 1], [1, 0], [2, 2]]), 3).toarray().tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    """
    edges = np.asarray(edges)
    require(
        edges.ndim == 2 and edges.shape[1] == 2,
        f"an edge list has two columns, not the shape {edges.shape}.",
    )
    require(
        edges.size == 0 or np.issubdtype(edges.dtype, np.integer),
        f"an edge list holds whole numbers, not {edges.dtype}.",
    )
    low, high = (int(edges.min()), int(edges.max())) if edges.size else (0, 0)
    require(
        low >= 0 and high < max(nodes, 1),
        f"the edge list names node {low if low < 0 else high}, but the nodes are 0 to {nodes - 1}.",
    )
    kept = edges[edges[:, 0] != edges[:, 1]].astype(np.int64)
    both = np.concatenate([kept, kept[:, ::-1]])
    ones = np.ones(len(both), np.int8)
    found = sparse.csr_array((ones, (both[:, 0], both[:, 1])), shape=(nodes, nodes))
    found.sum_duplicates()
    found.data[:] = 1
    return found


def degrees(graph: sparse.csr_array) -> Int[ndarray, " node"]:
    """Return the number of neighbours of every node."""
    return np.diff(graph.indptr)


def require_neighbours(graph: sparse.csr_array, which: Bool[ndarray, " node"], what: str) -> None:
    """Raise `BadInput` if one of the marked nodes has no neighbour."""
    alone = np.flatnonzero((degrees(graph) == 0) & which)
    require(
        len(alone) == 0,
        f"{len(alone)} {what} have no neighbour (the first is node {alone[0] if len(alone) else ''}); leave them out.",
    )


def distances(
    graph: sparse.csr_array, cap: int, sources: ndarray | None = None
) -> UInt8[ndarray, "source node"]:
    """Return shortest-path distances from the sources (all nodes, if None), as small integers.

    `cap` stands for all distances of `cap` and more, and for nodes that cannot be reached. The search is breadth first from
    many sources at once, with one bit a source and node. It is ten to fifty times faster than the search of SciPy.

    >>> distances(adjacency(np.array([[0, 1], [1, 2]]), 4), 2).tolist()
    [[0, 1, 2, 2], [1, 0, 1, 2], [2, 1, 0, 2], [2, 2, 2, 0]]
    """
    require(1 <= cap <= 255, f"distances are capped at 1 to 255, not {cap}.")
    which = np.arange(_nodes(graph)) if sources is None else np.asarray(sources)
    parts = [
        _distances(graph, cap, which[at : at + SOURCES_AT_ONCE])
        for at in range(0, len(which), SOURCES_AT_ONCE)
    ]
    return np.concatenate(parts) if parts else np.zeros((0, _nodes(graph)), np.uint8)


def _distances(graph: sparse.csr_array, cap: int, sources: ndarray) -> ndarray:
    """Compute the distances from some sources. Each word holds the bits of 64 sources, and each row holds one word a node."""
    nodes, count = _nodes(graph), len(sources)
    reached = np.zeros((nodes, count + -count % 64), bool)
    reached[sources, np.arange(count)] = True
    found = np.where(reached[:, :count], 0, cap).astype(np.uint8)
    joined = np.flatnonzero(degrees(graph))
    bits = np.ascontiguousarray(np.packbits(reached, axis=1).view(np.uint64).T)
    for step in range(1, cap):
        wider = bits.copy()
        wider[:, joined] |= np.bitwise_or.reduceat(
            bits.take(graph.indices, axis=1), graph.indptr[joined], axis=1
        )
        more = np.ascontiguousarray((wider & ~bits).T).view(np.uint8)
        if not more.any():
            break
        np.copyto(found, step, where=np.unpackbits(more, axis=1, count=count).astype(bool))
        bits = wider
    return found.T


def _nodes(graph: sparse.csr_array) -> int:
    return len(graph.indptr) - 1


def normalised(graph: sparse.csr_array) -> sparse.csr_array:
    """Return `D^-1/2 (A + I) D^-1/2`, D the degrees of A + I: the adjacency of a graph convolution.

    >>> normalised(adjacency(np.array([[0, 1]]), 2)).toarray().tolist()
    [[0.5, 0.5], [0.5, 0.5]]
    """
    scale = sparse.diags_array(1 / np.sqrt(degrees(graph) + 1.0))
    return sparse.csr_array(scale @ (graph.astype(float) + sparse.eye_array(_nodes(graph))) @ scale)


def block_graph(
    rng: np.random.Generator, group: Int[ndarray, " node"], chance: Float[ndarray, "group group"]
) -> sparse.csr_array:
    """Draw a stochastic block graph. Nodes of groups g and h are joined with probability `chance[g, h]`, independently."""
    chance = np.asarray(chance, float)
    require(
        bool(np.all((chance >= 0) & (chance <= 1)) and np.array_equal(chance, chance.T)),
        "the probabilities of a block graph form a symmetric table of numbers from 0 to 1.",
    )
    members = [np.flatnonzero(group == g) for g in range(len(chance))]
    found = [np.zeros((0, 2), np.int64)]
    for g in range(len(chance)):
        for h in range(g, len(chance)):
            rows, columns = np.nonzero(rng.random((len(members[g]), len(members[h]))) < chance[g, h])
            kept = rows < columns if g == h else np.ones(len(rows), bool)
            found.append(np.stack([members[g][rows[kept]], members[h][columns[kept]]], 1))
    return adjacency(np.concatenate(found), len(group))


def read_graph(path: str | Path) -> GraphFile:
    """Read a graph file: `.npz` with `edges`, `labels` and features.

    `edges` has two columns and each edge once. `labels` is -1 for unknown classes. Features are `features` (a row a node) or
    the sparse parts `features_data`, `features_indices`, `features_indptr` and `features_shape`."""
    try:
        with np.load(path, allow_pickle=False) as held:
            parts = {name: held[name] for name in held.files}
    except (OSError, ValueError):
        raise BadInput(f"'{path}' is not a graph file: it cannot be read as .npz.") from None
    return graph_of(parts, f"the graph file '{path}'")


def real_graph(name: str) -> GraphFile:
    """Return a graph among the real data sets. Raises `BadInput` if it is absent (see `lemmata data`)."""
    return graph_of(load(name), f"the data set '{name}'")


def graph_of(parts: Mapping[str, ndarray], what: str) -> GraphFile:
    """Return the graph that named arrays hold. `what` names their origin in messages."""
    stored = ("features_data", "features_indices", "features_indptr", "features_shape")
    sparsely = all(name in parts for name in stored)
    missing = [name for name in ("edges", "labels") if name not in parts]
    missing += [] if sparsely or "features" in parts else ["features"]
    require(not missing, f"{what} lacks {', '.join(missing)}.")
    if sparsely:
        data, indices, indptr, shape = (parts[name] for name in stored)
        nodes, features = (
            int(shape[0]),
            sparse.csr_array((data, indices, indptr), shape=(int(shape[0]), int(shape[1]))),
        )
    else:
        require(parts["features"].ndim == 2, f"the features in {what} are not a table.")
        nodes, features = len(parts["features"]), sparse.csr_array(parts["features"])
    labels = np.asarray(parts["labels"])
    require(
        labels.shape == (nodes,),
        f"{what} has {nodes} rows of features but {labels.size} labels.",
    )
    require(bool(np.isfinite(features.data).all()), f"{what} holds features that are not finite.")
    return GraphFile(adjacency(parts["edges"], nodes), features, labels.astype(int))
