"""The data of appendix B.5: labels that are votes of clusters, with absolute positions beside the features (B.5.2), graphs with
one label each (B.5.4), and nodes of four classes with a core distance for either sign of their label (B.5.5)."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse
from jaxtyping import Array, Bool, Float, Int, Integer
from numpy import ndarray

from lemmata.errors import require
from lemmata.parts.graphs import adjacency, block_graph, degrees, distances, normalised
from lemmata.studies.graph_transformer.data.own import OwnClasses
from lemmata.studies.graph_transformer.data.votes import Votes
from lemmata.trial import Key, fixed

Position = Literal["laplacian", "degree", "random-walk", "centroid"]

CLASSES = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
"""The four classes as pairs of signs (B.228 to B.231); pattern k belongs to class k."""


# Absolute positions and clusters (B.5.2) -------------------------------------------------------------------------------


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


class ClusterGraph(eqx.Module):
    """A block graph of clusters, half of them of each label. A share `discriminative` of a cluster's nodes has a discriminative
    pattern, a share `confusion` of those the other label's; every node's label is the vote of its cluster. `position` stands in
    `columns` columns beside the features, so that (W, W')(x; b') adds a trainable position to W x."""

    discriminative: float = 0.4
    confusion: float = 0.2
    feature_noise: float = 0.01
    inside: float = 0.3
    outside: float = 0.02
    labelled: int = fixed(default=100)
    nodes: int = fixed(default=200)
    clusters: int = fixed(default=4)
    patterns: int = fixed(default=8)
    dim: int = fixed(default=12)
    columns: int = fixed(default=3)
    position: Literal["none", "laplacian", "degree", "random-walk", "centroid"] = fixed(default="laplacian")

    def __check_init__(self):
        require(
            0 < self.labelled < self.nodes,
            f"of {self.nodes} nodes some must be left to be tested; {self.labelled} are labelled.",
        )
        require(self.clusters % 2 == 0, f"half of the clusters have each label; {self.clusters} is odd.")
        require(
            0 <= self.confusion < 0.5,
            f"the vote of a cluster needs confusion below 1/2, not {self.confusion}.",
        )

    def draw(self, key: Key, dtype: np.dtype) -> dict[str, Array]:
        """The graph as arrays; the same key gives the same graph whatever `position` is."""
        nodes = self.nodes
        shapes = {
            "patterns": (self.patterns, self.dim + self.columns), "features": (nodes, self.dim + self.columns),
            "cluster": (nodes,), "label": (nodes,), "order": (nodes,),
        }  # fmt: skip
        leaves = {
            name: getattr(self, name)
            for name in ("discriminative", "confusion", "feature_noise", "inside", "outside")
        }
        return on_host(self._made, shapes, key, leaves, dtype)

    def _made(
        self,
        rng: np.random.Generator,
        discriminative: float,
        confusion: float,
        feature_noise: float,
        inside: float,
        outside: float,
    ) -> dict[str, ndarray]:
        cluster = np.arange(self.nodes) % self.clusters
        label = np.where(cluster % 2 == 0, 1, -1)
        pattern = np.zeros(self.nodes, int)
        for one in range(self.clusters):
            members = rng.permutation(np.flatnonzero(cluster == one))
            own, many = one % 2, round(discriminative * len(members))
            wrong = round(many * confusion)
            others = 2 + np.arange(len(members) - many) % (self.patterns - 2)
            pattern[members] = np.concatenate([np.full(wrong, 1 - own), np.full(many - wrong, own), others])
        chance = np.full((self.clusters, self.clusters), outside) + (inside - outside) * np.eye(self.clusters)
        graph = block_graph(rng, cluster, chance)
        base = np.linalg.qr(rng.normal(size=(self.dim, self.dim)))[0][: self.patterns]
        features = base[pattern] + feature_noise * rng.normal(size=(self.nodes, self.dim))
        place = np.zeros((self.nodes, self.columns))
        if self.position != "none":
            found = positions(graph, self.position, self.columns)[:, : self.columns]
            place[:, : found.shape[1]] = found
        return {
            "patterns": np.concatenate([base, np.zeros((self.patterns, self.columns))], 1),
            "features": np.concatenate([features, place], 1), "cluster": cluster, "label": label,
            "order": rng.permutation(self.nodes),
        }  # fmt: skip


# Labels of whole graphs (B.5.4) ----------------------------------------------------------------------------------------


def graph_label(graph: Votes, special: Int[ndarray, " some"], core: int) -> int:
    """The label of a graph: which discriminative pattern has more nodes in the union of the core neighbourhoods of some special
    nodes (+1 for the first)."""
    union: Bool[ndarray, " node"] = (graph.distance[special] == core).any(0)
    return 1 if np.sum(union & (graph.pattern == 0)) > np.sum(union & (graph.pattern == 1)) else -1


class GraphSet(eqx.Module):
    """Small graphs with a label each. A special node (of a pattern of its own) is joined to `near` nodes, these to
    `right + wrong` voters, these to as many others: the voters, at distance 2 of the special node, vote for the label, and the
    others against it, so that every graph holds as many nodes of mu_1 as of mu_2."""

    feature_noise: float = 0.01
    labelled: int = fixed(default=200)
    tested: int = fixed(default=200)
    near: int = fixed(default=2)
    right: int = fixed(default=8)
    wrong: int = fixed(default=1)
    patterns: int = fixed(default=6)
    dim: int = fixed(default=8)
    buckets: int = fixed(default=5)

    def __check_init__(self):
        require(self.right > self.wrong >= 0, f"{self.right} votes for a label do not outvote {self.wrong}.")

    @property
    def nodes(self) -> int:
        return 1 + self.near + 2 * (self.right + self.wrong)

    def draw(self, key: Key, dtype: np.dtype) -> dict[str, Array]:
        """The graphs as arrays, those that are trained on first."""
        count, nodes = self.labelled + self.tested, self.nodes
        shapes = {
            "patterns": (self.patterns, self.dim), "features": (count, nodes, self.dim), "distance": (count, nodes, nodes),
            "label": (count,),
        }  # fmt: skip
        return on_host(self._made, shapes, key, {"feature_noise": self.feature_noise}, dtype)

    def _made(self, rng: np.random.Generator, feature_noise: float) -> dict[str, ndarray]:
        base = np.linalg.qr(rng.normal(size=(self.dim, self.dim)))[0][: self.patterns]
        graphs = [self.one(rng) for _ in range(self.labelled + self.tested)]
        pattern = np.stack([graph.pattern for graph in graphs])
        features = base[pattern] + feature_noise * rng.normal(size=(*pattern.shape, self.dim))
        label = np.array([graph_label(graph, np.array([0]), 2) for graph in graphs])
        distance = np.stack([graph.distance for graph in graphs])
        return {"patterns": base, "features": features, "distance": distance, "label": label}

    def one(self, rng: np.random.Generator) -> Votes:
        """One graph: the special node 0, those near it, the voters, the others."""
        voters, own = self.right + self.wrong, int(rng.integers(2))
        vote = rng.permutation(np.concatenate([np.full(self.right, own), np.full(self.wrong, 1 - own)]))
        pattern = np.concatenate([[2], 3 + rng.integers(self.patterns - 3, size=self.near), vote, 1 - vote])
        first, second = 1 + self.near, 1 + self.near + voters
        edges = [(0, node) for node in range(1, first)]
        edges += [(int(rng.integers(1, first)), node) for node in range(first, second)]
        edges += [(node - voters, node) for node in range(second, second + voters)]
        away = distances(adjacency(np.array(edges), self.nodes), self.buckets - 1)
        return Votes(away, pattern, np.ones(self.nodes, int))


# Four classes (B.5.5) --------------------------------------------------------------------------------------------------


class FourClassGraph(eqx.Module):
    """Distances between nodes of four classes, pairs of signs, without a graph. Of the discriminative nodes (patterns 0 to 3,
    one a class) at distance `first` of a node a share 1 - `confusion` agrees with the first sign of its label, at `second` with
    the second; at those distances the other sign is even, and what is missing there is spread over the other distances."""

    discriminative: float = 0.4
    confusion: float = 0.1
    feature_noise: float = 0.01
    labelled: int = fixed(default=200)
    nodes: int = fixed(default=300)
    patterns: int = fixed(default=8)
    dim: int = fixed(default=12)
    buckets: int = fixed(default=5)
    first: int = fixed(default=1)
    second: int = fixed(default=3)

    def __check_init__(self):
        require(
            0 < self.labelled < self.nodes,
            f"of {self.nodes} nodes some must be left to be tested; {self.labelled} are labelled.",
        )
        require(
            min(self.first, self.second) >= 1 and max(self.first, self.second) <= self.buckets - 2,
            f"the core distances {self.first} and {self.second} must lie between 1 and {self.buckets - 2}.",
        )
        require(self.first != self.second, "the two signs of a label have core distances of their own.")

    def draw(self, key: Key, dtype: np.dtype) -> dict[str, Array]:
        nodes = self.nodes
        shapes = {
            "patterns": (self.patterns, self.dim), "features": (nodes, self.dim), "distance": (nodes, nodes),
            "label": (nodes, 2), "order": (nodes,), "margin": (2, self.buckets),
        }  # fmt: skip
        leaves = {name: getattr(self, name) for name in ("discriminative", "confusion", "feature_noise")}
        return on_host(self._made, shapes, key, leaves, dtype)

    def _made(
        self, rng: np.random.Generator, discriminative: float, confusion: float, feature_noise: float
    ) -> dict[str, ndarray]:
        group = round(discriminative * self.nodes / 4)
        others = 4 + np.arange(self.nodes - 4 * group) % (self.patterns - 4)
        pattern = np.concatenate([np.repeat(np.arange(4), group), others])
        label = CLASSES[np.where(pattern < 4, pattern, rng.integers(4, size=self.nodes))]
        distance = self._table(rng, pattern, label, group, confusion)
        base = np.linalg.qr(rng.normal(size=(self.dim, self.dim)))[0][: self.patterns]
        return {
            "patterns": base, "features": base[pattern] + feature_noise * rng.normal(size=(self.nodes, self.dim)),
            "distance": distance, "label": label, "order": rng.permutation(self.nodes),
            "margin": pair_margins(distance, pattern, label, self.buckets),
        }  # fmt: skip

    def margin_of(self, key: Key, own: OwnClasses, dtype: np.dtype) -> Float[Array, "2 bucket"]:
        """The margins of nodes that a user hands in."""

        def made(
            rng: np.random.Generator, distance: ndarray, pattern: ndarray, label: ndarray
        ) -> dict[str, ndarray]:
            return {"margin": pair_margins(distance, pattern, label, self.buckets)}

        given = {name: getattr(own, name) for name in ("distance", "pattern", "label")}
        return on_host(made, {"margin": (2, self.buckets)}, key, given, dtype)["margin"]

    def _table(
        self, rng: np.random.Generator, pattern: ndarray, label: ndarray, group: int, confusion: float
    ) -> Integer[ndarray, "node node"]:
        last = self.buckets - 1
        cores = (self.first, self.second)
        away = np.setdiff1d(np.arange(1, last + 1), cores)
        table = np.zeros((self.nodes, self.nodes), np.uint8)
        for node in range(self.nodes):
            order = rng.permutation(np.delete(np.arange(self.nodes), node))
            row = 1 + np.arange(self.nodes - 1) % last
            for kind in range(4):
                members = np.flatnonzero(pattern[order] == kind)
                agrees = CLASSES[kind] == label[node]
                near = [round(2 * group / last * (1 - confusion if yes else confusion)) for yes in agrees]
                row[members] = away[np.arange(len(members)) % len(away)]
                row[members[: near[0]]] = cores[0]
                row[members[near[0] : sum(near)]] = cores[1]
            table[node, order] = row
        return table


def pair_margins(
    distance: Integer[ndarray, "node node"],
    pattern: Int[ndarray, " node"],
    label: Int[ndarray, "node 2"],
    buckets: int,
) -> Float[ndarray, "2 bucket"]:
    """Dbar(z) of either sign: the mean over nodes of how many discriminative nodes at distance z agree with that sign of the
    label less how many do not."""
    votes = np.where(pattern[:, None] < 4, CLASSES[np.minimum(pattern, 3)], 0)
    there = np.stack([distance == z for z in range(buckets)]).astype(float)
    return np.einsum("zns,sk,nk->kz", there, votes, label) / len(pattern)


# Drawing on the host ---------------------------------------------------------------------------------------------------


def on_host(
    made: Callable[..., dict[str, ndarray]],
    shapes: Mapping[str, tuple[int, ...]],
    key: Key,
    leaves: Mapping[str, Any],
    dtype: np.dtype,
) -> dict[str, Array]:
    """What `made(rng, **leaves)` draws with NumPy, as arrays of a compiled program: classes, distances and orders as integers,
    everything else in the precision asked for."""
    whole = {"cluster", "label", "order", "distance"}
    described = {
        name: jax.ShapeDtypeStruct(shape, np.dtype("int32" if name in whole else "float32"))
        for name, shape in shapes.items()
    }

    def called(bits: Array, told: dict[str, Array]) -> dict[str, ndarray]:
        rng = np.random.default_rng(np.asarray(bits))
        plain = {name: np.asarray(value) for name, value in told.items()}
        found = made(rng, **{name: value if value.ndim else value.item() for name, value in plain.items()})
        return {name: np.asarray(found[name], one.dtype) for name, one in described.items()}

    found = jax.pure_callback(
        called,
        described,
        jax.random.key_data(key),
        jax.tree.map(jnp.asarray, dict(leaves)),
        vmap_method="sequential",
    )
    # A callback answers in single precision, whatever the trial's own is.
    return {name: one if name in whole else one.astype(dtype) for name, one in found.items()}
