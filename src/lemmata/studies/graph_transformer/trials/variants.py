"""Trainings of appendix B.5: absolute positions beside the features (B.5.2), labels of whole graphs (B.5.4), and four classes
with two networks (B.5.5). The single attention layer at distance 1 (B.5.3) is a sampler of `GraphTraining`."""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lemmata.descent import Descent, Draw, Learner, Learning
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.studies.graph_transformer.data.own import (
    OwnClasses,
    OwnClusters,
    OwnGraphs,
    check_graph,
)
from lemmata.studies.graph_transformer.data.sampling import subset
from lemmata.studies.graph_transformer.data.variants import ClusterGraph, FourClassGraph, GraphSet
from lemmata.studies.graph_transformer.network import (
    Network,
    Parameters,
    Seen,
    Sets,
    attention,
    graph_output,
    hinge,
    outputs,
    pair_hinge,
    slope_of_sets,
    vote,
)
from lemmata.trial import Key, Precision, Record, fixed, put, put_all

VARIANT = Descent(
    learning_rate=0.1,
    loss="hinge",
    batches="epochs",
    batch=32,
    stop="cap",
    steps=800,
    logs=41,
    spacing="even",
)


def others(key: Key, asking: Int[Array, " batch"], nodes: int, size: int) -> Int[Array, "batch slot"]:
    """Sets from the whole graph: each node itself, and `size` others without replacement."""
    place = subset(key, jnp.full(asking.shape, nodes - 1), size).T
    return jnp.concatenate([asking[:, None], place + (place >= asking[:, None])], axis=1)


def everyone(features: Float[Array, "node dim"], distance: Int[Array, "some node"]) -> Seen:
    """Sets that hold every node of the graph."""
    tokens = jnp.broadcast_to(features, (*distance.shape, features.shape[1]))
    return Seen(tokens, distance, jnp.ones(distance.shape, features.dtype))


# Absolute positions (B.5.2) --------------------------------------------------------------------------------------------


class Placed(NamedTuple):
    """A graph whose features carry positions, and the frozen vote."""

    features: Float[Array, "node dim"]
    cluster: Int[Array, " node"]
    label: Int[Array, " node"]
    tests: Int[Array, " test"]
    signs: Float[Array, " neuron"]


class ClusterTraining(Learner):
    """Attention without a bias for distances, on sets from the whole graph, where labels are votes of clusters: all it knows of
    the graph are the positions beside the features."""

    name: ClassVar[str] = "graph-transformer/clusters"
    paired: ClassVar[tuple[str, ...]] = ("descent", "data.position", "sampled")

    data: ClusterGraph = ClusterGraph()
    network: Network = Network(kind="no-position", neurons=200)
    descent: Descent = VARIANT
    sampled: int = fixed(default=60)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        wide = self.data.dim + self.data.columns
        require(
            self.network.width >= wide,
            f"features and positions of {wide} dimensions need keys and values of at least that width, not "
            f"{self.network.width}.",
        )
        require(
            2 <= self.sampled < self.data.nodes,
            f"a set holds 2 to {self.data.nodes - 1} other nodes, not {self.sampled}.",
        )

    @property
    def samples(self) -> int:
        return self.data.labelled

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def takes(self, key: Key) -> Taken:
        """A graph of as many nodes as are drawn, its positions beside the features; weights of the drawn shapes."""
        graph = jax.eval_shape(lambda: self.data.draw(key, jnp.dtype(self.precision)))
        return Taken(OwnClusters(**graph), jax.eval_shape(lambda: self.draw(key)).params)

    def check_own(self, data: OwnClusters | None, weights: Parameters | None) -> None:
        self.network.check_own(weights)
        if data is not None:
            check_graph(data, 1)

    def draw_with(self, key: Key, data: OwnClusters | None, weights: Parameters | None) -> Draw:
        data_key, network_key = jax.random.split(key)
        own = OwnClusters(**self.data.draw(data_key, jnp.dtype(self.precision))) if data is None else data
        drawn, signs = self.network.draw(network_key, own.patterns, 1, self.data.feature_noise)
        known, tests = jnp.split(own.order, [self.data.labelled])
        world = Placed(own.features, own.cluster, own.label, tests, signs)
        return Draw(drawn if weights is None else weights, known, world)

    def sets(self, batch: Int[Array, " batch"], world: Placed, key: Key) -> Sets:
        members = others(key, batch, self.data.nodes, self.sampled)
        return Sets(world.features, members, jnp.zeros_like(members), jnp.ones(members.shape, bool))

    def objective(self, params: Parameters, batch: Array, world: Placed, key: Key) -> Float[Array, ""]:
        output = outputs(params, world.signs, world.features[batch], self.sets(batch, world, key).seen)
        return jnp.mean(hinge(output, world.label[batch]))

    def slope(self, params: Parameters, batch: Array, world: Placed, key: Key) -> tuple[Array, Parameters]:
        sets = self.sets(batch, world, key)
        loss, gradient = slope_of_sets(params, world.signs, batch, sets, world.label)
        return loss, self.network.trained(gradient)

    def watch(self, state: Learning) -> Record:
        """Loss and error of the nodes that are not labelled, each looking at all, and their attention on their own cluster."""
        world, tests = state.world, state.world.tests
        seen = everyone(world.features, jnp.zeros((tests.shape[0], self.data.nodes), jnp.int32))
        alpha = attention(state.params, world.features[tests], seen)
        signed = vote(state.params, world.signs, alpha @ world.features) * world.label[tests]
        own = world.cluster[tests][:, None] == world.cluster[None, :]
        return {**_judged(signed), "inside": jnp.mean(jnp.sum(alpha * own, axis=1))}

    def record(self, state: Learning) -> Record:
        return self.watch(state)


# Labels of whole graphs (B.5.4) ----------------------------------------------------------------------------------------


class Graphs(NamedTuple):
    """Graphs with a label each."""

    features: Float[Array, "graph node dim"]
    distance: Int[Array, "graph node node"]
    label: Int[Array, " graph"]


class GraphSetTraining(Learner):
    """The sum or mean over the nodes of a graph of F(x_n), each looking at all of them, is to tell its label (B.224)."""

    name: ClassVar[str] = "graph-transformer/graph-set"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"bias": ("bucket",)}
    paired: ClassVar[tuple[str, ...]] = ("descent", "network.kind")

    data: GraphSet = GraphSet()
    network: Network = Network(neurons=200, width=8)
    descent: Descent = put_all(VARIANT, {"learning_rate": 0.05, "batch": 16, "steps": 2000})
    read: Literal["sum", "mean"] = fixed(default="sum")
    precision: Precision = fixed(default="float32")

    @property
    def samples(self) -> int:
        return self.data.labelled

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def takes(self, key: Key) -> Taken:
        """As many graphs of as many nodes as are drawn; weights of the drawn shapes."""
        graphs = jax.eval_shape(lambda: self.data.draw(key, jnp.dtype(self.precision)))
        return Taken(OwnGraphs(**graphs), jax.eval_shape(lambda: self.draw(key)).params)

    def check_own(self, data: OwnGraphs | None, weights: Parameters | None) -> None:
        self.network.check_own(weights)
        if data is not None:
            check_graph(data, self.data.buckets)

    def draw_with(self, key: Key, data: OwnGraphs | None, weights: Parameters | None) -> Draw:
        data_key, network_key = jax.random.split(key)
        own = OwnGraphs(**self.data.draw(data_key, jnp.dtype(self.precision))) if data is None else data
        drawn, signs = self.network.draw(
            network_key, own.patterns, self.data.buckets, self.data.feature_noise
        )
        graphs, many = Graphs(own.features, own.distance, own.label), self.data.labelled
        known, tests = (
            jax.tree.map(lambda part, at=at: part[at], graphs) for at in (slice(many), slice(many, None))
        )
        return Draw(drawn if weights is None else weights, known, (tests, signs))

    def told(
        self, params: Parameters, graphs: Graphs, signs: Float[Array, " neuron"]
    ) -> Float[Array, " graph"]:
        return jax.vmap(lambda x, z: graph_output(params, signs, x, z, self.read))(
            graphs.features, graphs.distance
        )

    def objective(self, params: Parameters, batch: Graphs, world: tuple, key: Key) -> Float[Array, ""]:
        return jnp.mean(hinge(self.told(params, batch, world[1]), batch.label))

    def slope(self, params: Parameters, batch: Graphs, world: tuple, key: Key) -> tuple[Array, Parameters]:
        loss, gradient = jax.value_and_grad(self.objective)(params, batch, world, key)
        return loss, self.network.trained(gradient)

    def watch(self, state: Learning) -> Record:
        tests, signs = state.world
        return {**_judged(self.told(state.params, tests, signs) * tests.label), "bias": state.params.bias}

    def record(self, state: Learning) -> Record:
        return self.watch(state)


# Four classes (B.5.5) --------------------------------------------------------------------------------------------------


class Paired(NamedTuple):
    """Nodes of four classes, and the frozen votes of both networks."""

    features: Float[Array, "node dim"]
    distance: Int[Array, "node node"]
    label: Int[Array, "node 2"]
    tests: Int[Array, " test"]
    margin: Float[Array, "2 bucket"]
    signs: Float[Array, "2 neuron"]


class FourClassTraining(Learner):
    """Two networks of their own, one for each sign of a label, trained together on max(1 - y . F, 0) (B.225 to B.232)."""

    name: ClassVar[str] = "graph-transformer/four-classes"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "bias": ("output", "bucket"),
        "margin": ("output", "bucket"),
    }

    data: FourClassGraph = FourClassGraph()
    network: Network = Network(neurons=200)
    descent: Descent = put(VARIANT, "steps", 1000)
    sampled: int = fixed(default=60)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(
            2 <= self.sampled < self.data.nodes,
            f"a set holds 2 to {self.data.nodes - 1} other nodes, not {self.sampled}.",
        )

    @property
    def samples(self) -> int:
        return self.data.labelled

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def takes(self, key: Key) -> Taken:
        """As many nodes as are drawn; weights of the drawn shapes, those of both networks stacked."""
        nodes = jax.eval_shape(lambda: self.data.draw(key, jnp.dtype(self.precision)))
        nodes.pop("margin")
        own = OwnClasses(**nodes, pattern=nodes["order"])
        return Taken(own, jax.eval_shape(lambda: self.draw(key)).params)

    def check_own(self, data: OwnClasses | None, weights: Parameters | None) -> None:
        self.network.check_own(weights)
        if data is not None:
            check_graph(data, self.data.buckets)

    def draw_with(self, key: Key, data: OwnClasses | None, weights: Parameters | None) -> Draw:
        data_key, *network_keys = jax.random.split(key, 3)
        dtype = jnp.dtype(self.precision)
        if data is None:
            found = self.data.draw(data_key, dtype)
        else:
            found = data._asdict() | {"margin": self.data.margin_of(data_key, data, dtype)}
        both = [
            self.network.draw(one, found["patterns"], self.data.buckets, self.data.feature_noise)
            for one in network_keys
        ]
        drawn, signs = jax.tree.map(lambda *parts: jnp.stack(parts), *both)
        known, tests = jnp.split(found["order"], [self.data.labelled])
        world = Paired(found["features"], found["distance"], found["label"], tests, found["margin"], signs)
        return Draw(drawn if weights is None else weights, known, world)

    def told(
        self, params: Parameters, world: Paired, asking: Int[Array, " batch"], seen: Seen
    ) -> Float[Array, "batch 2"]:
        """F_1 and F_2."""
        features = world.features[asking]
        return jax.vmap(lambda one, signs: outputs(one, signs, features, seen))(params, world.signs).T

    def objective(self, params: Parameters, batch: Array, world: Paired, key: Key) -> Float[Array, ""]:
        members = others(key, batch, self.data.nodes, self.sampled)
        many = jnp.ones(members.shape, world.features.dtype)
        seen = Seen(world.features[members], world.distance[batch[:, None], members], many)
        return jnp.mean(
            pair_hinge(self.told(params, world, batch, seen), world.label[batch].astype(many.dtype))
        )

    def watch(self, state: Learning) -> Record:
        """The loss, the share of nodes with a wrong sign in either output, and both biases."""
        world = state.world
        output = self.told(
            state.params, world, world.tests, everyone(world.features, world.distance[world.tests])
        )
        label = world.label[world.tests].astype(output.dtype)
        wrong = jnp.any(output * label <= 0, axis=1)
        return {
            "test_hinge": jnp.mean(pair_hinge(output, label)),
            "test_error": jnp.mean(wrong.astype(output.dtype)),
            "bias": state.params.bias,
        }

    def record(self, state: Learning) -> Record:
        return {**self.watch(state), "margin": state.world.margin}


def _judged(signed: Float[Array, " some"]) -> dict[str, Array]:
    return {
        "test_hinge": jnp.mean(jax.nn.relu(1 - signed)),
        "test_error": jnp.mean((signed <= 0).astype(signed.dtype)),
    }
