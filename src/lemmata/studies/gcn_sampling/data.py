"""Graphs with degree groups, features of their nodes, and labels that depend on neighbours through a column-scaled adjacency.

Everything has the same shape for every draw: stubs are paired, and what is no edge (a loop, a second copy) is sorted to the
end. Nodes are numbered group by group.
"""

from functools import cached_property
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse
from jaxtyping import Array, Float, Int

from lemmata.bench.graphs import adjacency
from lemmata.errors import require
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


class DegreeGroups(eqx.Module):
    """A random graph with `sizes[l]` nodes of degree about `degrees[l]`, normal features, and labels (5.20) or (5.12).

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

    @cached_property
    def edges(self) -> int:
        """Pairs of stubs; an odd one stays alone."""
        return sum(d * n for d, n in zip(self.degrees, self.sizes, strict=True)) // 2

    @property
    def slots(self) -> int:
        return 2 * self.edges + self.nodes

    def draw(self, key: Key, dtype: jnp.dtype) -> World:
        of_graph, of_features, of_target, of_order = jax.random.split(key, 4)
        graph = normalised_rows(self.draw_pairs(of_graph), self.nodes, dtype)
        features = jax.random.normal(of_features, (self.nodes, self.features), dtype)
        if self.unit_features:
            features = features / jnp.linalg.norm(features, axis=1, keepdims=True)
        labels = self.labels_of(of_target, graph, features)
        return World(graph, features, labels, jax.random.permutation(of_order, self.nodes))

    def draw_pairs(self, key: Key) -> Int[Array, "edge 2"]:
        """Stub matching: every node as often as its degree says, shuffled, and taken two by two."""
        stubs = np.repeat(np.arange(self.nodes), np.repeat(self.degrees, self.sizes))
        return jax.random.permutation(key, jnp.asarray(stubs))[: 2 * self.edges].reshape(-1, 2)

    def labels_of(
        self, key: Key, graph: Graph, features: Float[Array, "node feature"]
    ) -> Float[Array, "node output"]:
        scale = jnp.asarray(self.target_scaling, features.dtype)[self.group_of]
        make = product_labels if self.target == "product" else concept_labels
        labels = make(key, graph, features, scale, self.target_width, self.outputs)
        return jnp.where(self.unit_labels, labels / jnp.sqrt(jnp.mean(labels**2)), labels)


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
    """The normalised adjacency of pairs that may be loops or come twice; as `bench.graphs.normalised`, in fixed shapes."""
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
    """The graph of drawn pairs as the bench has it: 0-1, without loops."""
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
