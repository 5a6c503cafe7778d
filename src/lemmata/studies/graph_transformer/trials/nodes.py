"""One training of the graph transformer by mini-batch stochastic gradient descent on the hinge loss, on node sets that every
step draws anew."""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from lemmata.descent import Descent, Draw, Learner, Learning
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.parts.graphs import read_graph
from lemmata.parts.probes import cosines, directions, lengths
from lemmata.studies.graph_transformer.data import surveys
from lemmata.studies.graph_transformer.data.model import Nodes, VoteGraph
from lemmata.studies.graph_transformer.data.own import OwnGraph, check_graph
from lemmata.studies.graph_transformer.data.sampling import (
    WITHOUT_ITSELF,
    Sampler,
    parts,
    places_of_batch,
    sampled_with_distances,
)
from lemmata.studies.graph_transformer.data.votes import DISCRIMINATIVE
from lemmata.studies.graph_transformer.network import (
    Network,
    Parameters,
    Seen,
    Sets,
    attention,
    hinge,
    outputs,
    slope,
    slope_of_sets,
    vote,
)
from lemmata.trial import Computed, Key, Precision, Record, fixed

SGD = Descent(
    learning_rate=0.1,
    loss="hinge",
    batches="epochs",
    batch=64,
    stop="cap",
    steps=800,
    logs=40,
    spacing="even",
)
"""Ten times the document's step size and a tenth of the steps: what counts is their product (claim step-size)."""

AT_ONCE = 50
"""Nodes whose whole neighbourhoods are looked at together."""

GROUPS = ("discriminative", "other")


class World(NamedTuple):
    """What training does not change: the graph, the frozen vote, the initial weights, and the lucky neurons."""

    nodes: Nodes
    signs: Float[Array, " neuron"]
    initial: Parameters
    lucky: Bool[Array, "sign neuron"]


class GraphTraining(Learner):
    """Graph, network and descent.

    `sampler`, `sampled` (nodes drawn for a set) and `at` (the distance of the sampler "distance") say what a node looks at in a
    step; in tests it looks at all nodes that its sampler could draw without an oracle. `hinge_margin` is the margin of the
    training loss; tests take 1. `simulator` "patterns" lets sets stand for counts of patterns at distances, which is the same
    training when features carry no noise. `probes`: "neurons" adds what
    the lemmas say of neurons, keys, queries and values, "drawing" the graph and one node's attention.
    """

    name: ClassVar[str] = "graph-transformer/training"
    may_be_missing: ClassVar[tuple[str, ...]] = ("neuron_size",)  # every neuron may be lucky
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "bias": ("bucket",),
        "margin": ("bucket",),
        "largest": ("bucket",),
        "share": ("bucket",),
        "attention": ("group",),
        "confused": ("group",),
        "key_norm": ("pattern",),
        "query_norm": ("pattern",),
        "logit": ("pattern",),
        "along": ("sign", "pattern"),
        "gates": ("sign",),
        "lucky_share": ("sign",),
        "value_cosine": ("sign",),
        "value_shift": ("pattern",),
        "neuron_size": ("lucky",),
        "distance": ("node", "other"),
        "pattern": ("node",),
        "label": ("node",),
        "weights": ("when", "node"),
    }
    lockstep: ClassVar[bool] = False  # a graph of distances fills the cache
    paired: ClassVar[tuple[str, ...]] = (
        "descent", "hinge_margin", "simulator", "probes", "sampler", "at", "sampled", "tested",
        "network.kind", "network.train_self_bias", "network.queries", "precision",
    )  # fmt: skip

    data: VoteGraph = VoteGraph()
    network: Network = Network()
    descent: Descent = SGD
    hinge_margin: float = 1.0
    at: int = 1
    sampler: Sampler = fixed(default="near")
    sampled: int = fixed(default=60)
    tested: int = fixed(default=200)
    precision: Precision = fixed(default="float32")
    simulator: Literal["nodes", "patterns"] = fixed(default="nodes")
    probes: Literal["none", "neurons", "drawing"] = fixed(default="none")

    def __check_init__(self):
        require(
            self.network.width >= self.data.dim,
            f"features of {self.data.dim} dimensions need keys and values of at least that width, not {self.network.width}.",
        )
        require(self.sampled >= 2, f"a set holds at least two sampled nodes, not {self.sampled}.")
        require(
            1 <= self.at < self.data.buckets,
            f"distances run from 1 to {self.data.buckets - 1}; the sampler cannot draw from distance {self.at}.",
        )
        require(
            self.simulator == "nodes" or self.data.feature_noise == 0,
            "the simulator 'patterns' is exact only without feature noise; use data.feature_noise=0.",
        )
        require(
            self.network.start != "printed" or self.data.feature_noise > 0,
            "the printed start divides by the feature noise, which is 0.",
        )
        require(self.hinge_margin > 0, f"the margin of the hinge must be positive, not {self.hinge_margin}.")
        require(
            self.descent.loss == "hinge" and self.descent.stop == "cap",
            "the document trains on the hinge loss for a given number of steps; use descent.loss=hinge, descent.stop=cap.",
        )
        require(
            self.descent.batches in ("epochs", "single-pass", "with-replacement"),
            f"batches of labelled nodes come in epochs, in a single pass or with replacement, not '{self.descent.batches}'.",
        )
        require(
            self.tested <= self.data.nodes - self.data.labelled,
            f"{self.tested} nodes are to be tested, and {self.data.nodes - self.data.labelled} are not labelled.",
        )

    @property
    def samples(self) -> int:
        return self.data.labelled

    @property
    def steps(self) -> int | Array:
        """A single pass ends when every label was used."""
        once = self.descent.batches == "single-pass"
        return self.data.labelled // self.descent.batch if once else self.descent.steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return self.descent.log_steps

    def batch(
        self, way: Key, step: Int[Array, ""], data: Int[Array, " node"], world: PyTree
    ) -> Int[Array, " batch"]:
        """The labelled nodes of a step: the first of the drawn order. Their number is not part of the structure, so that one
        program serves all; a batch that is larger than it holds nodes several times, each with a set of its own."""
        size, labelled = self.descent.batch, self.data.labelled
        place = jnp.arange(size)
        if self.descent.batches == "single-pass":
            return data[(step * size + place) % labelled]
        if self.descent.batches == "with-replacement":
            return data[jax.random.randint(jax.random.fold_in(way, step), (size,), 0, labelled)]
        epochs = jnp.maximum(labelled // size, 1)
        key, begin = jax.random.fold_in(way, step // epochs), (step % epochs) * size
        return data[places_of_batch(jax.random.key_data(key), labelled, begin, data.shape[0], size)]

    @property
    def itself(self) -> bool:
        return self.sampler not in WITHOUT_ITSELF

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def takes(self, key: Key) -> Taken:
        """A graph of as many nodes as are drawn; weights of the drawn shapes."""
        drawn = jax.eval_shape(lambda: self.draw(key))
        if self.simulator == "patterns":
            refusal = (
                "the simulator 'patterns' counts drawn patterns and takes no graph; use simulator=nodes."
            )
            return Taken(refusal, drawn.params)
        nodes = drawn.world.nodes
        shapes: dict = {name: getattr(nodes, name) for name in OwnGraph._fields}
        shapes["sets"] = jax.ShapeDtypeStruct((parts(self.sampler), *nodes.distance.shape), bool)
        own = OwnGraph(**shapes)
        return Taken(own, drawn.params)

    def check_own(self, data: OwnGraph | None, weights: Parameters | None) -> None:
        self.network.check_own(weights)
        if data is None:
            return
        check_graph(data, self.data.buckets)
        least = min(np.bincount(data.pattern, minlength=DISCRIMINATIVE)[:DISCRIMINATIVE])
        require(
            self.probes != "neurons" or least >= _group(self),
            f"the neuron probes look at {_group(self)} nodes of either discriminative pattern, and a pattern has {least}; "
            "use probes=none.",
        )

    def draw_with(self, key: Key, data: OwnGraph | None, weights: Parameters | None) -> Draw:
        data_key, network_key = jax.random.split(key)
        dtype = jnp.dtype(self.precision)
        if data is None:
            nodes = self.data.draw(data_key, self.sampler, self.at, self.sampled, dtype)
        else:
            nodes = self.data.taken(data_key, data, self.sampler, self.sampled, dtype)
        drawn, signs = self.network.draw(
            network_key, nodes.patterns, self.data.buckets, self.data.feature_noise
        )
        used = drawn if weights is None else weights
        world = World(nodes, signs, used, jnp.zeros((2, self.network.neurons), bool))
        if self.probes == "neurons":
            world = world._replace(lucky=lucky_neurons(self, world))
        return Draw(used, nodes.order, world)

    def sets(self, batch: Int[Array, " batch"], world: World, key: Key) -> Sets:
        """The sets that a step draws for its nodes."""
        nodes = world.nodes
        return Sets(
            nodes.features,
            *sampled_with_distances(
                jax.random.key_data(key), nodes.lists, nodes.distance, batch, self.sampled, self.itself
            ),
        )

    def seen(self, batch: Int[Array, " batch"], world: World, key: Key) -> Seen:
        """What is in them."""
        sets, nodes = self.sets(batch, world, key), world.nodes
        if self.simulator == "nodes":
            return sets.seen
        many = sets.filled.astype(nodes.features.dtype)
        return _collapsed(self, nodes, nodes.pattern[sets.members], sets.distance, many)

    def objective(self, params: Parameters, batch: Array, world: World, key: Key) -> Float[Array, ""]:
        nodes = world.nodes
        output = outputs(params, world.signs, nodes.features[batch], self.seen(batch, world, key))
        return jnp.mean(hinge(output, nodes.label[batch], self.hinge_margin))

    def slope(self, params: Parameters, batch: Array, world: World, key: Key) -> tuple[Array, Parameters]:
        nodes, told = world.nodes, (params, world.signs)
        if self.simulator == "nodes":
            sets = self.sets(batch, world, key)
            loss, gradient = slope_of_sets(*told, batch, sets, nodes.label, self.hinge_margin)
        else:
            asking, seen = nodes.features[batch], self.seen(batch, world, key)
            loss, gradient = slope(*told, asking, seen, nodes.label[batch], self.hinge_margin)
        return loss, self.network.trained(gradient)

    def watch(self, state: Learning) -> Record:
        world = state.world
        tests = self.tests(world)
        mixed, attended, confused = looked(self, state.params, world, tests)
        found = {**_judged(state.params, world, tests, mixed), "bias": state.params.bias}
        found |= by_group(world.nodes.pattern[tests], {"attention": attended, "confused": confused})
        return found | (neurons(self, state) if self.probes == "neurons" else {})

    def record(self, state: Learning) -> Record:
        world = state.world
        nodes, tests, trained = world.nodes, self.tests(world), state.data[: self.tested]
        count = tests.shape[0]
        mixed, attended, confused = looked(self, state.params, world, jnp.concatenate([tests, trained]))
        known = jnp.arange(count) < self.data.labelled
        train = jnp.where(
            known, hinge(vote(state.params, world.signs, mixed[count:]), nodes.label[trained]), 0
        )
        return {
            **_judged(state.params, world, tests, mixed[:count]),
            **by_group(nodes.pattern[tests], {"attention": attended[:count], "confused": confused[:count]}),
            "train_hinge": jnp.sum(train) / jnp.sum(known),
            "test_flipped": jnp.mean((nodes.label != nodes.given)[tests].astype(train.dtype)),
            "bias": state.params.bias,
            "bias_drift": jnp.abs(jnp.sum(state.params.bias) - jnp.sum(world.initial.bias)),
            "margin": nodes.margin,
            "largest": nodes.largest,
            "share": nodes.share,
            "core": nodes.core,
            "sampled_confusion": nodes.sampled_confusion,
        } | (drawn(self, state) if self.probes == "drawing" else {})

    def tests(self, world: World) -> Int[Array, " test"]:
        """The nodes that are tested: the first that are not labelled, in the order drawn."""
        return jax.lax.dynamic_slice(world.nodes.order, (self.data.labelled,), (self.tested,))


def _collapsed(trial: GraphTraining, nodes: Nodes, pattern: Array, distance: Array, many: Array) -> Seen:
    """Sets as counts of patterns at distances."""
    kinds, buckets = trial.data.patterns, trial.data.buckets
    cell = distance * kinds + pattern
    count = jnp.sum(many[:, :, None] * (cell[:, :, None] == jnp.arange(buckets * kinds)), axis=1)
    tokens = jnp.tile(nodes.patterns, (buckets, 1))
    at = jnp.repeat(jnp.arange(buckets), kinds)
    shape = (pattern.shape[0], buckets * kinds)
    return Seen(jnp.broadcast_to(tokens, (*shape, tokens.shape[1])), jnp.broadcast_to(at, shape), count)


# What a node sees when nothing is sampled ------------------------------------------------------------------------------


def looked(
    trial: GraphTraining, weights: Parameters, world: World, which: Int[Array, " some"]
) -> tuple[Float[Array, "some dim"], Float[Array, " some"], Float[Array, " some"]]:
    """Attended tokens of nodes that look at everything they may, and their attention on class-relevant and on confusion
    nodes."""
    nodes = world.nodes
    everyone = jnp.arange(trial.data.nodes)

    def one(node: Array) -> tuple[Array, Array, Array]:
        distance = nodes.distance[node].astype(jnp.int32)
        many = allowed(trial, nodes, node, distance, everyone).astype(nodes.features.dtype)
        if trial.simulator == "patterns":
            seen = _collapsed(trial, nodes, nodes.pattern[None], distance[None], many[None])
            kind = jnp.tile(jnp.arange(trial.data.patterns), trial.data.buckets)
        else:
            seen = Seen(nodes.features[None], distance[None], many[None])
            kind = nodes.pattern
        alpha = attention(weights, nodes.features[node][None], seen)[0]
        own = jnp.where(nodes.label[node] > 0, 0, 1)
        return alpha @ seen.tokens[0], alpha @ (kind == own), alpha @ (kind == 1 - own)

    return jax.lax.map(one, which, batch_size=AT_ONCE)


def allowed(trial: GraphTraining, nodes: Nodes, node: Array, distance: Array, everyone: Array) -> Array:
    """T^n: all that the sampler could draw, or the user's sets hold; an oracle is not asked in tests."""
    if nodes.sets is not None:
        there = nodes.sets[node]
        alone = trial.itself | ~jnp.any(there)
        return there | (alone & (everyone == node))
    if trial.sampler == "graph":
        return jnp.ones_like(everyone, bool)
    if trial.sampler in WITHOUT_ITSELF:
        at = nodes.core if trial.sampler == "core" else trial.at
        there = distance == at
        return there | (~jnp.any(there) & (everyone == node))
    return (distance <= 2) & ((distance > 0) | (everyone == node))


def _judged(weights: Parameters, world: World, tests: Array, mixed: Array) -> dict[str, Array]:
    signed = vote(weights, world.signs, mixed) * world.nodes.label[tests]
    return {
        "test_hinge": jnp.mean(jax.nn.relu(1 - signed)),
        "test_error": jnp.mean((signed <= 0).astype(signed.dtype)),
    }


def by_group(pattern: Int[Array, " some"], values: Mapping[str, Array]) -> dict[str, Array]:
    """Means over discriminative nodes and over the others."""
    groups = jnp.stack([pattern < DISCRIMINATIVE, pattern >= DISCRIMINATIVE])
    return {
        name: (groups.astype(one.dtype) @ one) / jnp.maximum(jnp.sum(groups, axis=1), 1)
        for name, one in values.items()
    }


def drawn(trial: GraphTraining, state: Learning) -> dict[str, Array]:
    """The graph, and what one tested node without a pattern of its own attends to, before and after training."""
    nodes, tests = state.world.nodes, trial.tests(state.world)
    node = tests[jnp.argmax(nodes.pattern[tests] >= DISCRIMINATIVE)]
    distance = nodes.distance[node].astype(jnp.int32)
    many = allowed(trial, nodes, node, distance, jnp.arange(trial.data.nodes)).astype(nodes.features.dtype)
    seen = Seen(nodes.features[None], distance[None], many[None])
    weights = [
        attention(one, nodes.features[node][None], seen)[0] for one in (state.world.initial, state.params)
    ]
    found = {"node": node, "distance": nodes.distance, "pattern": nodes.pattern, "label": nodes.label}
    return {**found, "weights": jnp.stack(weights)}


# What the lemmas look at -----------------------------------------------------------------------------------------------


def lucky_neurons(trial: GraphTraining, world: World) -> Bool[Array, "2 neuron"]:
    """W(0) and U(0): neurons of the right sign that are active on the attended tokens of every node of mu_1 (of mu_2)
    (Definition B.2.2, mended)."""
    active = jnp.stack([_gates(trial, world.initial, world, k).all(axis=0) for k in (0, 1)])
    return active & jnp.stack([world.signs > 0, world.signs < 0])


def _gates(trial: GraphTraining, weights: Parameters, world: World, kind: int) -> Bool[Array, "some neuron"]:
    """Which neurons are active on the labelled and other nodes of a discriminative pattern, the first `tested` of them."""
    which = jnp.argsort(world.nodes.pattern != kind, stable=True)[: _group(trial)]
    return looked(trial, weights, world, which)[0] @ weights.value.T @ weights.hidden > 0


def _group(trial: GraphTraining) -> int:
    """So many nodes of a discriminative pattern are looked at: fixed for all shares down to a tenth."""
    return max(2, trial.data.nodes // 20)


def neurons(trial: GraphTraining, state: Learning) -> dict[str, Array]:
    """What Lemmas B.3.1, B.3.2, B.3.4 and B.3.6 speak of."""
    world, now, then = state.world, state.params, state.world.initial
    base = world.nodes.patterns
    value = directions(then.value @ base.T)
    weight = world.lucky.astype(now.hidden.dtype)
    each = jnp.maximum(jnp.sum(weight, axis=1, keepdims=True), 1)
    rest = 1 - jnp.max(weight, axis=0)
    inside = jnp.sum((now.hidden.T @ value) ** 2, axis=1)
    shift = (now.value - then.value) @ base.T
    gates = [jnp.mean(_gates(trial, now, world, k), axis=0, dtype=weight.dtype) for k in (0, 1)]
    return {
        "along": weight @ (now.hidden.T @ value) / each,
        "neuron_size": jnp.stack(
            [jnp.max(weight, axis=0) @ inside / jnp.sum(each), rest @ inside / jnp.sum(rest)]
        ),
        "gates": jnp.stack([weight[k] @ gates[k] / each[k, 0] for k in (0, 1)]),
        "lucky_share": jnp.mean(weight, axis=1),
        "key_norm": lengths(now.key, base),
        "query_norm": lengths(now.query, base),
        "logit": jnp.sum((now.key @ base.T) * (now.query @ base.T), axis=0),
        "value_cosine": cosines(shift[:, :2], now.hidden @ weight.T),
        "value_shift": jnp.linalg.norm(shift, axis=0),
    }


# Real graphs -----------------------------------------------------------------------------------------------------------


class Surveying(Computed):
    """The assumption checks of B.1.1 on a graph file; without one, on a made graph of three classes."""

    name: ClassVar[str] = "graph-transformer/survey"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "shares": ("class",),
        "margin": ("distance",),
        "normalised": ("distance",),
        "spectrum_of": ("class", "rank"),
    }

    path: str = fixed(default="")
    spectrum: surveys.Spectrum = fixed(default="moment")
    itself: bool = fixed(default=False)
    last: int = fixed(default=12)

    def __check_init__(self):
        require(1 <= self.last <= 250, f"distances are surveyed from 1 to at most 250, not to {self.last}.")

    def compute(self, key: Key) -> dict[str, np.ndarray]:
        graph = read_graph(self.path) if self.path else surveys.made(np.random.default_rng(0))
        found = surveys.surveyed(graph, self.last, self.spectrum, self.itself)
        kept = {name: np.asarray(value, float) for name, value in found._asdict().items()}
        return {**kept, "spectrum_of": surveys.spectra(graph, self.spectrum), "steps": np.asarray(0)}
