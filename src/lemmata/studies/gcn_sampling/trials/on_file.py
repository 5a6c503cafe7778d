"""A training on a graph from a file, beside what it says of classes."""

from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.descent import Descent
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.studies.gcn_sampling import network
from lemmata.studies.gcn_sampling.data import FileGroups, OwnGraph, World
from lemmata.studies.gcn_sampling.network import Weights
from lemmata.studies.gcn_sampling.trials.training import State, Training
from lemmata.trial import Descending, Key, Precision, Record, fixed


class OnFile(Descending):
    """`training` on the nodes of a file; a node is taken for the class with the largest output. Not from the document, whose
    graphs are all drawn."""

    name: ClassVar[str] = "gcn-sampling/on-file"
    paired: ClassVar[tuple[str, ...]] = tuple(f"training.{field}" for field in Training.paired)
    lockstep: ClassVar[bool] = False

    training: Training = Training(
        graph=FileGroups(), width=100, labels=60, budget=3000, parametrisation="conventional",
        descent=Descent(
            loss="cross-entropy", learning_rate=0.05, batches="with-replacement", batch=20, stop="cap", steps=3000, logs=4,
            spacing="even",
        ),
    )  # fmt: skip
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(
            self.precision == self.training.precision,
            f"the precision is that of the training, {self.training.precision}, not {self.precision}.",
        )
        require(
            isinstance(self.training.graph, FileGroups),
            "this trial reads its graph from a file; others are drawn by gcn-sampling/training.",
        )

    @property
    def steps(self) -> int:
        return self.training.steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return self.training.log_steps

    def start(self, key: Key) -> State:
        return self.start_from(key)

    def takes(self, key: Key) -> Taken:
        """Another graph on as many nodes as the file has, and weights."""
        return self.training.takes(key)

    def check_own(self, data: OwnGraph | None, weights: Weights | None) -> None:
        self.training.check_own(data, weights)

    def start_from(self, key: Key, data: OwnGraph | None = None, weights: Weights | None = None) -> State:
        return self.training.start_from(key, data, weights)

    def step(self, state: State) -> State:
        return self.training.step(state)

    def loss(self, state: State) -> Float[Array, ""]:
        return self.training.loss(state)

    def finished(self, state: State) -> Bool[Array, ""]:
        return self.training.finished(state)

    def watch(self, state: State) -> Record:
        return self.training.watch(state)

    def record(self, state: State) -> Record:
        """What the training records, and the share of nodes without label whose class is found: with the sampler's own matrix,
        with A* and with A."""
        training, world = self.training, state.world
        weights = training.output(state)
        star = jnp.asarray(training.scaling, training.dtype)[training.graph.group_of]
        own = training.predict(weights, world)
        starred = network.outputs(weights, world.graph, world.features, star)
        whole = network.outputs(weights, world.graph, world.features)
        return {
            **training.record(state),
            "accuracy": self.accuracy(own, world),
            "star_accuracy": self.accuracy(starred, world),
            "whole_accuracy": self.accuracy(whole, world),
        }

    def accuracy(self, found: Float[Array, "node output"], world: World) -> Float[Array, ""]:
        right = (jnp.argmax(found, axis=1) == jnp.argmax(world.labels, axis=1))[world.order]
        known = jnp.arange(len(right)) < self.training.labels
        return jnp.mean(right, where=~known)
