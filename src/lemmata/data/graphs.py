"""Reads the official files of graphs: the planetoid pickles, the tables of Geom-GCN, and the `.npz` of heterophilous-graphs.

A graph is: `edges` (undirected, each once, sorted, without loops), the sparse matrix of features as `features_data`,
`features_indices`, `features_indptr` and `features_shape` (nodes, features), and `labels` (-1 where unknown).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from lemmata.data.sources import Source
from lemmata.data.unpickle import Matrix, array_of, unpickle
from lemmata.errors import BadInput, require

if TYPE_CHECKING:
    import numpy as np

LARGEST = 200 << 20
MOST_NODES = 1_000_000


def read_planetoid(source: Source, name: str) -> dict[str, "np.ndarray"]:
    """Read the eight files `ind.NAME.*` of a planetoid graph.

    Nodes are those of `allx`, then the test nodes, which `test.index` puts into order. A node that no file describes has no
    features and the label -1.
    """
    import numpy as np
    from scipy.sparse import csr_matrix, vstack

    parts = {
        part: unpickle(source.read(LARGEST, f"ind.{name}.{part}"), f"ind.{name}.{part}")
        for part in ("x", "tx", "allx", "y", "ty", "ally", "graph")
    }
    x, tx, allx = (_sparse(parts[part], f"ind.{name}.{part}") for part in ("x", "tx", "allx"))
    y, ty, ally = (_classes(parts[part], f"ind.{name}.{part}") for part in ("y", "ty", "ally"))
    index = _numbers(source.read(LARGEST, f"ind.{name}.test.index"), f"ind.{name}.test.index")
    known = allx.shape[0]
    agree = len(index) == tx.shape[0] == len(ty) and known == len(ally) and x.shape[0] == len(y) <= known
    require(
        agree and x.shape[1] == tx.shape[1] == allx.shape[1], f"the files of '{name}' do not fit together."
    )
    require(len(set(index.tolist())) == len(index), f"'ind.{name}.test.index' names a node twice.")
    require(
        len(index) > 0 and known <= index.min() and index.max() < MOST_NODES,
        f"'ind.{name}.test.index' names wrong nodes.",
    )
    nodes = int(index.max()) + 1
    order = np.argsort(index)
    place = csr_matrix(
        (np.ones(len(index)), (index[order] - known, order)), shape=(nodes - known, len(index))
    )
    features = vstack([allx, place @ tx], format="csr")
    labels = np.full(nodes, -1, np.int16)
    labels[:known], labels[index] = ally, ty
    return _graph(_pairs(parts["graph"], name), features, labels, nodes)


def read_actor(source: Source) -> dict[str, "np.ndarray"]:
    """Read the two tables of Geom-GCN's `film`."""
    import numpy as np
    from scipy.sparse import csr_matrix

    described = "out1_node_feature_label.txt"
    rows = [
        row.split("\t") for row in _text(source.read(LARGEST, described), described).splitlines()[1:] if row
    ]
    try:
        ids = [int(row[0]) for row in rows]
        labels = np.array([int(row[2]) for row in rows], np.int16)
        found = [sorted({int(word) for word in row[1].split(",") if word}) for row in rows]
        edges = [
            tuple(map(int, row.split("\t")))
            for row in _text(
                source.read(LARGEST, "out1_graph_edges.txt"), "out1_graph_edges.txt"
            ).splitlines()[1:]
            if row
        ]
    except (ValueError, IndexError, OverflowError):
        raise BadInput(f"'{source.where}' does not hold the tables of Geom-GCN.") from None
    nodes = len(rows)
    require(sorted(ids) == list(range(nodes)), f"'{described}' must describe the nodes from 0 on, each once.")
    order = np.argsort(ids)
    counts = np.array([len(found[i]) for i in order])
    indices = np.array([word for i in order for word in found[i]], np.int32)
    require(len(indices) > 0 and indices.min() >= 0, f"'{described}' names no features.")
    indptr = np.concatenate([[0], np.cumsum(counts)])
    features = csr_matrix(
        (np.ones(len(indices), np.float32), indices, indptr), shape=(nodes, int(indices.max()) + 1)
    )
    require(all(len(edge) == 2 for edge in edges), "'out1_graph_edges.txt' must hold two nodes a line.")
    return _graph(np.array(edges, np.int64).reshape(-1, 2), features, labels[order], nodes)


def from_heterophilous(arrays: dict[str, "np.ndarray"]) -> dict[str, "np.ndarray"]:
    """Return the graph of an `.npz` of heterophilous-graphs, with its ten splits as packed bits."""
    import numpy as np
    from scipy.sparse import csr_matrix

    features, labels, edges = (arrays[name] for name in ("node_features", "node_labels", "edges"))
    fits = (
        features.ndim == 2 and labels.shape == features.shape[:1] and edges.ndim == 2 and edges.shape[1] == 2
    )
    require(fits and edges.dtype.kind in "iu", "the arrays of the graph do not fit together.")
    graph = _graph(edges.astype(np.int64), csr_matrix(features), labels.astype(np.int16), len(labels))
    for split in ("train", "val", "test"):
        mask = arrays.get(f"{split}_masks")
        if mask is not None:
            graph[f"{split}_masks"] = np.packbits(mask.astype(bool), axis=-1)
    return graph


def require_sound(arrays: dict[str, "np.ndarray"]) -> dict[str, "np.ndarray"]:
    """Return a graph from elsewhere with the shape of its features as (nodes, features), in whichever order it was written.

    Raises `BadInput` if an edge or a feature is out of range.
    """
    import numpy as np

    names = ("edges", "features_indices", "features_indptr", "features_shape")
    edges, indices, starts, shape = (arrays[name] for name in names)
    nodes = len(starts) - 1
    sizes = sorted(shape.tolist(), key=lambda n: n != nodes)
    good = (
        sizes[0] == nodes
        and starts[0] == 0
        and starts[-1] == len(indices)
        and bool((np.diff(starts) >= 0).all())
    )
    good &= int(indices.min()) >= 0 and int(indices.max()) < sizes[1]
    require(
        good and edges.min() >= 0 and edges.max() < nodes,
        "an edge or a feature of the graph is out of range.",
    )
    return arrays | {"features_shape": np.array(sizes, np.int64)}


def _graph(edges: "np.ndarray", features: Any, labels: "np.ndarray", nodes: int) -> dict[str, "np.ndarray"]:
    """Return the arrays of a graph."""
    import numpy as np

    require(
        len(edges) > 0 and edges.min() >= 0 and edges.max() < nodes,
        "an edge leads to a node that is not there.",
    )
    edges = np.sort(edges, axis=1)
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0)
    features.eliminate_zeros()
    features.sort_indices()
    return {
        "edges": edges.astype(np.int32),
        "features_data": features.data.astype(np.float32),
        "features_indices": features.indices.astype(np.int32),
        "features_indptr": features.indptr.astype(np.int64),
        "features_shape": np.array(features.shape, np.int64),
        "labels": labels.astype(np.int16),
    }


def _sparse(value: Any, name: str) -> Any:
    """Return a sparse matrix that a pickle held, after a check of all its indices."""
    from scipy.sparse import csr_matrix

    require(isinstance(value, Matrix), f"'{name}' holds no sparse matrix.")
    try:
        data, indices, indptr = (array_of(value.part(part), name) for part in ("data", "indices", "indptr"))
        rows, columns = value.part("_shape", "shape")
        require(type(rows) is type(columns) is int and rows < MOST_NODES, f"'{name}' has a wrong shape.")
        matrix = csr_matrix((data, indices, indptr), shape=(rows, columns))
        matrix.check_format(full_check=True)
        matrix.sum_duplicates()
        return matrix
    except BadInput:
        raise
    except (ValueError, TypeError) as error:
        raise BadInput(f"the matrix in '{name}' is damaged: {error}.") from None


def _classes(value: Any, name: str) -> "np.ndarray":
    """Return the class of each row of a one-hot matrix, -1 for a row of zeros."""
    import numpy as np

    matrix = array_of(value, name)
    require(matrix.ndim == 2, f"'{name}' must hold a row for each node.")
    return np.where(matrix.any(axis=1), matrix.argmax(axis=1), -1).astype(np.int16)


def _pairs(graph: Any, name: str) -> "np.ndarray":
    """Return the edges of a graph that lists the neighbours of each node."""
    import numpy as np

    def whole(nodes: Iterable[Any]) -> bool:
        return all(type(node) is int and 0 <= node < MOST_NODES for node in nodes)

    good = (
        isinstance(graph, dict)
        and whole(graph)
        and all(isinstance(n, list) and whole(n) for n in graph.values())
    )
    require(good, f"'ind.{name}.graph' must list the neighbours of each node.")
    return np.array([(node, other) for node, others in graph.items() for other in others], np.int64).reshape(
        -1, 2
    )


def _numbers(data: bytes, name: str) -> "np.ndarray":
    import numpy as np

    try:
        return np.array([int(word) for word in _text(data, name).split()], np.int64)
    except (ValueError, OverflowError):
        raise BadInput(f"'{name}' must hold a number a line.") from None


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise BadInput(f"'{name}' is not text.") from None
