"""Training on the nodes of a real graph: graph transformers with and without positions, and a graph convolution."""

from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int

from lemmata.descent import Descent, Draw, Learner, Learning
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.parts.graph_networks import (
    Convolution,
    Edges,
    NodeTransformer,
    Rings,
    convolution,
    drawn_between,
    edges_of,
    node_transformer,
    rings,
)
from lemmata.studies.graph_transformer.trials.real import CLASSES, Graph, graph_named, sets_of
from lemmata.trial import Key, Precision, Supply, fixed

BUCKETS = 20
"""Z: distances 0 to 19, the last one for all beyond and for nodes out of reach."""

SIZES = {
    "cora": (2708, 1433, 13264),
    "citeseer": (3327, 3703, 12431),
    "actor": (7600, 932, 60918),
    "made": (180, 8, 0),
}
"""Nodes, features, and entries of the normalised adjacency."""

BALL = 3
"""The largest distance of the reading `ball`."""

AT_ONCE = 250
"""The number of test nodes that are classified together."""

Sampling = Literal["uniform", "ball", "stratified", "distance"]
"""Where sampled nodes come from: the whole graph, distances 1 to 3, every distance alike, or one distance."""

Kind = Literal["transformer", "no-position", "convolution"]


class Around(NamedTuple):
    """A graph as training sees it."""

    features: Array | np.ndarray
    labels: Array | np.ndarray
    near: Rings
    edges: Edges


class World(NamedTuple):
    """The graph, and the nodes of the test."""

    around: Around
    tested: Array


class Nodes(eqx.Module):
    """The network: `width`, `heads` and `depth` of the transformer, `depth` of the convolution, too."""

    kind: Kind = fixed(default="transformer")
    width: int = fixed(default=64)
    heads: int = fixed(default=4)
    depth: int = fixed(default=4)


class RealNodes(Learner):
    """Classifies nodes of a real graph.

    `labelled`, `tests`: numbers of labelled nodes and of nodes in the test, drawn at random.
    `sampling`, `distance`: where sampled nodes come from; `distance` is that of the sampling `distance`.
    `sampled`, `averaged`, `draws`: nodes sampled in training; in the test; the number of samples that the test averages over.
    `decay`: the squared norm of all weights is added to the loss, times half of this.
    """

    name: ClassVar[str] = "graph-transformer/real-nodes"
    paired: ClassVar[tuple[str, ...]] = ("network", "descent", "sampling", "distance", "labelled")
    lockstep: ClassVar[bool] = False
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"bias": ("bucket",)}

    graph: Graph = fixed(default="cora")
    labelled: int = fixed(default=140)
    tests: int = fixed(default=1000)
    sampling: Sampling = fixed(default="uniform")
    distance: int = 0
    sampled: int = fixed(default=20)
    averaged: int = fixed(default=200)
    draws: int = fixed(default=5)
    decay: float = 5e-4
    network: Nodes = Nodes()
    descent: Descent = Descent(
        learning_rate=3e-3, method="adam", loss="cross-entropy", batches="epochs", batch=256, stop="cap", steps=400,
        logs=20, spacing="even",
    )  # fmt: skip
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.precision == "float32", "real data are trained in single precision (precision=float32).")
        nodes = SIZES[self.graph][0]
        require(
            self.labelled + self.tests <= nodes,
            f"{self.graph} has {nodes} nodes, fewer than {self.labelled} labelled and {self.tests} of the test.",
        )

    @property
    def data_sets(self) -> tuple[str, ...]:
        return sets_of(self.graph)

    @property
    def samples(self) -> int:
        return self.labelled

    @property
    def batch_size(self) -> int:
        """A convolution sees all labelled nodes in every step."""
        return self.samples if self.network.kind == "convolution" else min(self.descent.batch, self.samples)

    def supplied(self, key: Key) -> Supply:
        return Supply() if self.graph == "made" else Supply(_around(self.graph))

    def takes(self, key: Key) -> Taken:
        return Taken("the graph comes from a data set (graph).", jax.eval_shape(self._weights, key))

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def draw_with(self, key: Key, data: Around | None, weights: NodeTransformer | Convolution | None) -> Draw:
        """Draw which nodes are labelled and which are tested."""
        start, split = jax.random.split(key)
        around = self._formed() if data is None else data
        mixed = jax.random.permutation(split, SIZES[self.graph][0])
        labelled = mixed[self.tests :][: self.labelled]
        samples = labelled, jnp.asarray(around.labels)[labelled]
        params = self._weights(start) if weights is None else weights
        return Draw(params, samples, World(around, mixed[: self.tests]))

    def _formed(self) -> Around:
        """Return the made graph, or zeros in the shapes of a real one, which is read from its file."""
        if self.graph == "made":
            return jax.tree.map(jnp.asarray, _around("made"))
        nodes, features, entries = SIZES[self.graph]
        near = Rings(jnp.zeros((nodes, nodes), jnp.uint16), jnp.zeros((nodes, BUCKETS + 1), jnp.int32))
        index = jnp.zeros(entries, jnp.int32)
        edges = Edges(index, index, jnp.zeros(entries, jnp.float32))
        return Around(jnp.zeros((nodes, features), jnp.float32), jnp.zeros(nodes, jnp.int32), near, edges)

    def _weights(self, key: Key) -> NodeTransformer | Convolution:
        net, features, classes = self.network, SIZES[self.graph][1], CLASSES[self.graph]
        if net.kind == "convolution":
            return convolution(key, features, net.width, net.depth, classes)
        return node_transformer(key, features, net.width, net.heads, net.depth, BUCKETS, classes)

    def objective(
        self, params: NodeTransformer | Convolution, batch: tuple[Array, Array], world: World, key: Key
    ) -> Float[Array, ""]:
        nodes, labels = batch
        logits = self._logits(params, nodes, world.around, key, self.sampled)
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
        return jnp.mean(losses) + 0.5 * self.decay * optax.tree.norm(params, squared=True)

    def rates(self, params: NodeTransformer | Convolution) -> NodeTransformer | Convolution | float:
        """Positions do not move in the network without positions."""
        if self.network.kind != "no-position":
            return 1.0
        still = jax.tree.map(lambda _: 1.0, params)
        return eqx.tree_at(lambda t: [one.bias for one in t.blocks], still, [0.0] * self.network.depth)

    def _logits(
        self,
        params: NodeTransformer | Convolution,
        nodes: Int[Array, " n"],
        around: Around,
        key: Key,
        count: int,
    ) -> Float[Array, "n label"]:
        if isinstance(params, Convolution):
            return params(jnp.asarray(around.features), around.edges)[nodes]
        drawn = [
            self._drawn(nodes, around.near, one, count) for one in jax.random.split(key, self.network.depth)
        ]
        return params(jnp.asarray(around.features), nodes, drawn)

    def _drawn(
        self, nodes: Int[Array, " n"], near: Rings, key: Key, count: int
    ) -> tuple[Int[Array, "n draw"], Int[Array, "n draw"]]:
        """Draw nodes to attend to, with their distances."""
        chance = jax.random.uniform(key, (nodes.shape[0], count), jnp.float32)
        first, last = {
            "uniform": (jnp.asarray(0), jnp.asarray(BUCKETS - 1)),
            "ball": (jnp.asarray(1), jnp.asarray(BALL)),
            "stratified": (jnp.arange(count) % BUCKETS,) * 2,
            "distance": (jnp.asarray(self.distance),) * 2,
        }[self.sampling]
        return drawn_between(near, nodes, first, last, chance)

    def watch(self, state: Learning) -> dict[str, Array]:
        return {"train_loss": self.loss(state)}

    def record(self, state: Learning) -> dict[str, Array]:
        around, tested = state.world
        trained, labels = state.data
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), self.steps + 1)
        bias = jnp.zeros(BUCKETS) if isinstance(state.params, Convolution) else state.params.blocks[-1].bias
        right = jnp.asarray(around.labels)[tested]
        return {
            "accuracy": jnp.mean(self._predicted(state.params, tested, around, key) == right),
            "train_accuracy": jnp.mean(self._predicted(state.params, trained, around, key) == labels),
            "bias": bias,
            "weights": jnp.asarray(sum(part.size for part in jax.tree.leaves(state.params)), jnp.float32),
        }

    def _predicted(
        self, params: NodeTransformer | Convolution, nodes: Int[Array, " n"], around: Around, key: Key
    ) -> Int[Array, " n"]:
        """Return the classes with the largest probability, averaged over several samples."""
        if isinstance(params, Convolution):
            return jnp.argmax(self._logits(params, nodes, around, key, 0), axis=-1)
        short = -len(nodes) % AT_ONCE if len(nodes) > AT_ONCE else 0
        parts = jnp.pad(nodes, (0, short)).reshape(-1, min(AT_ONCE, len(nodes)))

        def likely(part: Int[Array, " n"]) -> Float[Array, "n label"]:
            def once(one: Array) -> Float[Array, "n label"]:
                return jax.nn.softmax(self._logits(params, part, around, one, self.averaged))

            return jnp.mean(jax.lax.map(once, jax.random.split(key, self.draws)), axis=0)

        found = jax.lax.map(likely, parts)
        return jnp.argmax(found.reshape(-1, found.shape[-1])[: len(nodes)], axis=-1)


@lru_cache(maxsize=1)
def _around(name: Graph) -> Around:
    """Return a graph with its nodes by distance."""
    graph = graph_named(name)
    features = np.asarray(graph.features.todense(), np.float32)
    labels = graph.labels.astype(np.int32)
    return Around(features, labels, rings(graph.adjacency, BUCKETS - 1), edges_of(graph.adjacency))
