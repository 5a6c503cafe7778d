"""Graphs with degree groups, features of their nodes, and labels that depend on neighbours through a column-scaled adjacency;
or all of these from a file.

Everything has the same shape for every draw: pairs are drawn, and what is no edge (a loop, a second copy) is sorted to the
end. Nodes are numbered group by group.
"""

from abc import abstractmethod
from functools import cache, cached_property
from math import ceil, sqrt
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse
from jaxtyping import Array, Float, Int
from scipy.sparse.linalg import svds

from lemmata.errors import require
from lemmata.own import require_between
from lemmata.parts import graphs
from lemmata.parts.graphs import GraphFile, adjacency, read_graph
from lemmata.threefry import plain_key
from lemmata.trial import Key, fixed


class Graph(NamedTuple):
    """`A = D^-1/2 (adjacency + I) D^-1/2` by rows, one after another: `column[start[n] : start[n] + count[n]]` are node n
    and its neighbours. Slots past the last row have the row N and the weight 0."""

    start: Int[Array, " node"]
    count: Int[Array, " node"]
    row: Int[Array, " slot"]
    column: Int[Array, " slot"]
    weight: Float[Array, " slot"]


class World(NamedTuple):
    """A graph, the features of its nodes, their labels, and the labelled nodes (Omega) in front of a random order of all."""

    graph: Graph
    features: Float[Array, "node feature"]
    labels: Float[Array, "node output"]
    order: Int[Array, " node"]


class OwnGraph(NamedTuple):
    """A graph of one's own, as a user hands it to a training: `pairs` of nodes that are joined (loops and second copies do not
    count), features and labels of all nodes, and an `order` of all nodes in which the labelled ones come first.

    Nodes are numbered group by group, with the group sizes of the trial's graph.
    """

    pairs: Int[Array, "edge 2"]
    features: Float[Array, "node feature"]
    labels: Float[Array, "node output"]
    order: Int[Array, " node"]

    @property
    def world(self) -> World:
        graph = normalised_rows(self.pairs, len(self.order), self.features.dtype)
        return World(graph, self.features, self.labels, self.order)


def check_own_graph(own: OwnGraph, widest: int) -> None:
    """Refuse a graph with nodes that do not exist or with too many neighbours of one node, and an order that is none."""
    nodes, pairs = len(own.order), np.asarray(own.pairs)
    require_between("data.pairs", pairs, 0, nodes - 1)
    require(
        bool(np.array_equal(np.sort(own.order), np.arange(nodes))),
        f"data.order takes every node from 0 to {nodes - 1} once, the labelled ones first.",
    )
    most = int(graphs.degrees(simple_graph(pairs, nodes)).max())
    require(
        most < widest,
        f"data.pairs takes at most {widest - 1} neighbours a node, and one node has {most}; raise graph.degrees.",
    )


class RandomGroups(eqx.Module):
    """A random graph with `sizes[l]` nodes of degree about `degrees[l]`, normal features, and labels (5.20) or (5.12). How
    edges are drawn is left open: `DegreeGroups`, `ChungLu`.

    `target_scaling` is p-hat: labels are made with `A diag(p-hat)`. `target`: `product` is (5.20), `concept` the class
    (5.12) with phi(z) = z + z^2/2 and Phi(z) = 1 + z/2. `unit_labels` divides all labels by the root of their second
    moment.
    """

    target_scaling: tuple[float, ...] = (0.7, 0.3)
    unit_labels: bool = False
    degrees: tuple[int, ...] = fixed(default=(10, 1))
    sizes: tuple[int, ...] = fixed(default=(100, 1900))
    features: int = fixed(default=10)
    target_width: int = fixed(default=10)
    outputs: int = fixed(default=2)
    target: Literal["product", "concept"] = fixed(default="product")
    unit_features: bool = fixed(default=False)

    def __check_init__(self):
        require(
            len(self.degrees) == len(self.sizes) == len(self.target_scaling) > 0,
            f"degrees, sizes and target_scaling name the same groups; there are {len(self.degrees)}, {len(self.sizes)} and "
            f"{len(self.target_scaling)}.",
        )
        require(min(self.sizes) >= 1, f"every group has at least one node, not {min(self.sizes)}.")
        require(
            min(self.degrees) >= 1,
            f"every node has a neighbour; a degree of {min(self.degrees)} does not do.",
        )
        violated = no_such_graph(self.degrees, self.sizes)
        require(not violated, violated)
        require(
            min(self.features, self.target_width, self.outputs) >= 1,
            "features, target_width and outputs are at least 1.",
        )

    @property
    def nodes(self) -> int:
        return sum(self.sizes)

    @property
    def group_of(self) -> Int[np.ndarray, " node"]:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    @abstractmethod
    def widest(self) -> int:
        """The most entries that a row of A can have."""

    @abstractmethod
    def draw_pairs(self, key: Key) -> Int[Array, "edge 2"]:
        """Pairs of nodes, of which those that are no loop and come first are the edges."""

    def draw(self, key: Key, dtype: jnp.dtype) -> World:
        of_graph, of_features, of_target, of_order = jax.random.split(key, 4)
        graph = normalised_rows(self.draw_pairs(of_graph), self.nodes, dtype)
        features = jax.random.normal(of_features, (self.nodes, self.features), dtype)
        if self.unit_features:
            features = features / jnp.linalg.norm(features, axis=1, keepdims=True)
        labels = self.labels_of(of_target, graph, features)
        return World(graph, features, labels, jax.random.permutation(of_order, self.nodes))

    def labels_of(
        self, key: Key, graph: Graph, features: Float[Array, "node feature"]
    ) -> Float[Array, "node output"]:
        scale = jnp.asarray(self.target_scaling, features.dtype)[self.group_of]
        make = product_labels if self.target == "product" else concept_labels
        labels = make(key, graph, features, scale, self.target_width, self.outputs)
        return jnp.where(self.unit_labels, labels / jnp.sqrt(jnp.mean(labels**2)), labels)


class DegreeGroups(RandomGroups):
    """Stub matching: every node as often as its degree says, shuffled, and taken two by two; an odd one stays alone."""

    @cached_property
    def edges(self) -> int:
        return sum(d * n for d, n in zip(self.degrees, self.sizes, strict=True)) // 2

    @property
    def widest(self) -> int:
        return max(self.degrees) + 1

    def draw_pairs(self, key: Key) -> Int[Array, "edge 2"]:
        stubs = np.repeat(np.arange(self.nodes), np.repeat(self.degrees, self.sizes))
        return jax.random.permutation(key, jnp.asarray(stubs))[: 2 * self.edges].reshape(-1, 2)


class ChungLu(RandomGroups):
    """Degrees as expectations: nodes i and j are joined with the chance `1 - exp(-d_i d_j / sum of d)`, every pair by itself.
    Chung and Lu have `d_i d_j / sum of d`, which is the same to the first order; this form is that of Norros and Reittu.

    A Poisson number of pairs is drawn, with mean `sum d / 2`, both ends in proportion to d; loops and second copies are no
    edges. Room is kept for 8 deviations and 10 more than the mean, of pairs and of neighbours: the chance that one of a
    million nodes had more is below 1e-7.
    """

    @property
    def widest(self) -> int:
        return min(_room(max(self.degrees)) + 1, self.nodes)

    def draw_pairs(self, key: Key) -> Int[Array, "edge 2"]:
        of_count, of_ends = jax.random.split(key)
        degrees, sizes = np.asarray(self.degrees), np.asarray(self.sizes)
        total = int(degrees @ sizes)
        room = _room(total / 2)
        stub = jax.random.randint(of_ends, (room, 2), 0, total)
        first, begin = np.cumsum(degrees * sizes) - degrees * sizes, np.cumsum(sizes) - sizes
        group = jnp.sum(stub[..., None] >= jnp.asarray(first[1:]), axis=-1)
        ends = jnp.asarray(begin)[group] + (stub - jnp.asarray(first)[group]) // jnp.asarray(degrees)[group]
        drawn = jnp.arange(room)[:, None] < jax.random.poisson(plain_key(of_count), total / 2)
        return jnp.where(drawn, ends, 0)


def _room(mean: float) -> int:
    return ceil(mean + 8 * sqrt(mean)) + 10


def no_such_graph(degrees: tuple[int, ...], sizes: tuple[int, ...]) -> str:
    """Why no simple graph has these degrees (Erdos and Gallai), or nothing. An odd sum of degrees is let pass: one stub is
    left.

    It is enough to look after the last node of each degree.

    >>> no_such_graph((3,), (3,))
    'no graph has 3 nodes of degree 3: a node joins at most 2 others.'
    """
    total = sum(sizes)
    for degree, size in zip(degrees, sizes, strict=True):
        if degree >= total:
            return f"no graph has {size} nodes of degree {degree}: a node joins at most {total - 1} others."
    order = sorted(zip(degrees, sizes, strict=True), reverse=True)
    seen = wanted = 0
    for place, (degree, size) in enumerate(order):
        seen, wanted = seen + size, wanted + degree * size
        others = sum(min(d, seen) * n for d, n in order[place + 1 :])
        if wanted > seen * (seen - 1) + others + 1:
            return (
                f"no graph has these degrees: the {seen} nodes of degree {degree} and more want {wanted} ends, and only "
                f"{seen * (seen - 1) + others} are to be had."
            )
    return ""


def normalised_rows(pairs: Int[Array, "edge 2"], nodes: int, dtype: jnp.dtype) -> Graph:
    """The normalised adjacency of pairs that may be loops or come twice; as `parts.graphs.normalised`, in fixed shapes."""
    ends = pairs.astype(jnp.int64)
    code = jnp.sort(jnp.min(ends, axis=1) * nodes + jnp.max(ends, axis=1))
    low, high = code // nodes, code % nodes
    again = jnp.concatenate([jnp.zeros(1, bool), code[1:] == code[:-1]])
    gone = again | (low == high)
    loops = jnp.arange(nodes, dtype=jnp.int64)
    row = jnp.concatenate([jnp.where(gone, nodes, low), jnp.where(gone, nodes, high), loops])
    code = jnp.sort(row * nodes + jnp.concatenate([high, low, loops]))
    row, column = (code // nodes).astype(jnp.int32), (code % nodes).astype(jnp.int32)
    count = jnp.zeros(nodes + 1, jnp.int32).at[row].add(1)[:nodes]
    start = jnp.cumsum(count) - count
    scale = jnp.concatenate([1 / jnp.sqrt(count.astype(dtype)), jnp.zeros(1, dtype)])
    return Graph(start.astype(jnp.int32), count, row, column, scale[row] * scale[column])


def aggregate(
    graph: Graph,
    values: Float[Array, "node feature"],
    column: Float[Array, " node"] | Float[Array, ""] | float = 1.0,
    row: Float[Array, " node"] | Float[Array, ""] | float = 1.0,
) -> Float[Array, "node feature"]:
    """`diag(row) A diag(column) values`."""
    nodes = values.shape[0]
    given = jnp.reshape(jnp.asarray(column, values.dtype), (-1, 1)) * values
    gathered = graph.weight[:, None] * given[graph.column]
    summed = jax.ops.segment_sum(gathered, graph.row, nodes + 1, indices_are_sorted=True)[:nodes]
    return jnp.reshape(jnp.asarray(row, values.dtype), (-1, 1)) * summed


def as_sparse(graph: Graph) -> sparse.csr_array:
    """A of a drawn graph as a SciPy matrix."""
    start, count = np.asarray(graph.start), np.asarray(graph.count)
    last = int(start[-1] + count[-1])
    ends = np.concatenate([start, [last]])
    parts = (np.asarray(graph.weight, float)[:last], np.asarray(graph.column)[:last], ends)
    return sparse.csr_array(parts, shape=(len(start), len(start)))


def simple_graph(pairs: np.ndarray, nodes: int) -> sparse.csr_array:
    """The graph of drawn pairs as `lemmata.parts.graphs` has it: 0-1, without loops."""
    return adjacency(np.asarray(pairs), nodes)


# Labels ----------------------------------------------------------------------------------------------------------------


def product_labels(
    key: Key,
    graph: Graph,
    features: Float[Array, "node feature"],
    scale: Float[Array, " node"],
    width: int,
    outputs: int,
) -> Float[Array, "node output"]:
    """(5.20): `Y = (sin(U) * tanh(U)) C*`, `U = A P-hat X W*`, all entries of W* and C* standard normal."""
    of_weights, of_readout = jax.random.split(key)
    weights = jax.random.normal(of_weights, (features.shape[1], width), features.dtype)
    readout = jax.random.normal(of_readout, (width, outputs), features.dtype)
    inner = aggregate(graph, features @ weights, scale)
    return (jnp.sin(inner) * jnp.tanh(inner)) @ readout


def concept_labels(
    key: Key,
    graph: Graph,
    features: Float[Array, "node feature"],
    scale: Float[Array, " node"],
    width: int,
    outputs: int,
) -> Float[Array, "node output"]:
    """(5.12): `A*(Phi(r_1) * r_2) C*`, `r_k = A* phi(A* X W_k) V_k`, columns of W_k and V_k of norm 1, |C*| at most 1."""

    def columns(own: Key, rows: int) -> Float[Array, "row column"]:
        drawn = jax.random.normal(own, (rows, width), features.dtype)
        return drawn / jnp.linalg.norm(drawn, axis=0)

    keys = jax.random.split(key, 5)
    hidden = [aggregate(graph, features @ columns(one, features.shape[1]), scale) for one in keys[:2]]
    r1, r2 = (
        aggregate(graph, (z + z**2 / 2) @ columns(one, width), scale)
        for z, one in zip(hidden, keys[2:4], strict=True)
    )
    readout = jax.random.uniform(keys[4], (width, outputs), features.dtype, -1, 1)
    return aggregate(graph, ((1 + r1 / 2) * r2) @ readout, scale)


# Files -----------------------------------------------------------------------------------------------------------------


class Held(NamedTuple):
    """A graph from a file as a training sees it: edges, features and classes of the nodes in their new order, and the group
    sizes and largest degrees."""

    pairs: Int[np.ndarray, "edge 2"]
    features: Float[np.ndarray, "node feature"]
    classes: Int[np.ndarray, " node"]
    sizes: tuple[int, ...]
    degrees: tuple[int, ...]


class FileGroups(eqx.Module):
    """A graph, features and classes from a file (`parts.graphs.read_graph`; without a path a small made one). Nodes are
    sorted by their degrees, the highest first, and cut into `groups` parts of equal size. Labels are a 1 for the class of a
    node and 0 for the others.

    Features are the coordinates along the `components` leading right singular vectors of the file's table, rows scaled to
    length 1. Only the labelled nodes are random.
    """

    path: str = fixed(default="")
    groups: int = fixed(default=2)
    components: int = fixed(default=32)

    def __check_init__(self):
        require(
            self.groups >= 1 and self.components >= 1,
            "a graph file takes at least one group and one component.",
        )
        require(
            self.groups <= self.nodes,
            f"{self.nodes} nodes cannot be cut into {self.groups} groups; take fewer.",
        )

    @property
    def held(self) -> Held:
        return _held(self.path, self.groups, self.components)

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.held.sizes

    @property
    def degrees(self) -> tuple[int, ...]:
        return self.held.degrees

    @property
    def nodes(self) -> int:
        return len(self.held.classes)

    @property
    def group_of(self) -> Int[np.ndarray, " node"]:
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def features(self) -> int:
        return self.held.features.shape[1]

    @property
    def outputs(self) -> int:
        return int(self.held.classes.max()) + 1

    @property
    def widest(self) -> int:
        return max(self.degrees) + 1

    def draw(self, key: Key, dtype: jnp.dtype) -> World:
        graph = normalised_rows(jnp.asarray(self.held.pairs), self.nodes, dtype)
        labels = jnp.asarray(np.eye(self.outputs)[self.held.classes], dtype)
        order = jax.random.permutation(key, self.nodes)
        return World(graph, jnp.asarray(self.held.features, dtype), labels, order)


@cache
def _held(path: str, groups: int, components: int) -> Held:
    file = read_graph(path) if path else _made()
    unknown = int(np.sum(file.labels < 0))
    require(
        not unknown,
        f"{unknown} nodes of '{path}' have no class; a training on a file needs one for every node.",
    )
    degrees = graphs.degrees(file.adjacency)
    order = np.argsort(-degrees, kind="stable")
    graph = file.adjacency[order][:, order].tocoo()
    upper = graph.row < graph.col
    parts = np.array_split(degrees[order], groups)
    return Held(
        np.stack([graph.row[upper], graph.col[upper]], axis=1).astype(np.int32),
        _leading(file.features, components)[order],
        file.labels[order],
        tuple(len(part) for part in parts),
        tuple(int(part.max(initial=0)) for part in parts),
    )


def _leading(table: sparse.csr_array, components: int) -> Float[np.ndarray, "node feature"]:
    rows, columns = table.shape  # pyright: ignore[reportGeneralTypeIssues]
    if components < min(rows, columns):
        begun = np.ones(min(rows, columns))
        found = np.asarray(table @ svds(table.astype(float), components, v0=begun)[2].T)  # pyright: ignore[reportOptionalMemberAccess]
    else:
        found = table.toarray().astype(float)
    return found / np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)


def _made() -> GraphFile:
    """Three classes of 40 nodes, joined more often within than between, with noisy features of their class."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(3), 40)
    graph = graphs.block_graph(rng, classes, np.full((3, 3), 0.01) + 0.1 * np.eye(3))
    features = np.eye(3)[classes] @ rng.normal(size=(3, 12)) + rng.normal(size=(120, 12))
    return GraphFile(graph, sparse.csr_array(features), classes)
