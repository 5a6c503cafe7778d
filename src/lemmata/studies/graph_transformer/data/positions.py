"""Absolute positions of nodes (B.5.2): columns that stand beside the features, so that (W, W')(x; b') adds a trainable position
to W x; and the labels of whole graphs (B.5.4)."""

from typing import Literal

import numpy as np
import scipy.sparse as sparse
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from lemmata.bench.graphs import degrees, distances, normalised
from lemmata.studies.graph_transformer.data.votes import Votes

Position = Literal["laplacian", "degree", "random-walk", "centroid"]


def positions(graph: sparse.csr_array, kind: Position, columns: int = 4) -> Float[ndarray, "node column"]:
    """Unit rows: the smoothest eigenvectors of the normalised Laplacian (signs fixed by their largest entry), the degree, the
    chances that a walk is back after 2, 3, ... steps, or the distance to the node nearest to all others."""
    if kind == "laplacian":
        vectors = np.linalg.eigh(normalised(graph).toarray())[1][:, ::-1][:, 1 : columns + 1]
        found = vectors * np.sign(vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])])
    elif kind == "degree":
        found = np.stack([degrees(graph), np.full(graph.indptr.size - 1, max(degrees(graph).max(), 1))], 1)
    elif kind == "random-walk":
        walk = graph.toarray() / np.maximum(degrees(graph), 1)[:, None]
        power, back = walk, []
        for _ in range(columns):
            power = power @ walk
            back.append(power.diagonal())
        found = np.stack(back, 1)
    else:
        away = distances(graph, 255)
        found = np.stack([away[away.sum(1).argmin()], np.full(len(away), away.max())], 1)
    size = np.linalg.norm(found, axis=1, keepdims=True)
    return np.divide(found, size, out=np.zeros(found.shape), where=size > 0)


def graph_label(graph: Votes, special: Int[ndarray, " some"], core: int) -> int:
    """The label of a graph: which discriminative pattern has more nodes in the union of the core neighbourhoods of some special
    nodes (+1 for the first)."""
    union: Bool[ndarray, " node"] = (graph.distance[special] == core).any(0)
    return 1 if np.sum(union & (graph.pattern == 0)) > np.sum(union & (graph.pattern == 1)) else -1
