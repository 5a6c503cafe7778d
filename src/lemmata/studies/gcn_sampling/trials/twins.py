"""Two trainings from one start on the same batches: one with a sampled graph, one with A*. The most direct test of the claim
that sampling amounts to training with A*."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.errors import require
from lemmata.own import Taken
from lemmata.studies.gcn_sampling.data import OwnGraph
from lemmata.studies.gcn_sampling.network import Weights
from lemmata.studies.gcn_sampling.trials.training import State, Training
from lemmata.trial import Descending, Key, Precision, Record, fixed


class Pair(NamedTuple):
    sampled: State
    effective: State


class Twins(Descending):
    """`training` and its twin with A*: same graph, labels, start, batches and dropout."""

    name: ClassVar[str] = "gcn-sampling/twins"
    paired: ClassVar[tuple[str, ...]] = tuple(f"training.{field}" for field in Training.paired)
    lockstep: ClassVar[bool] = False

    training: Training = Training()
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(
            self.precision == self.training.precision,
            f"twins have the precision of their training, {self.training.precision}, not {self.precision}.",
        )

    @property
    def steps(self) -> int:
        return self.training.steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return self.training.log_steps

    @property
    def twin(self) -> Training:
        """The same sampler at the rate 1, which is A*."""
        every = tuple(jnp.ones_like(rate) for rate in self.training.rates)
        return eqx.tree_at(lambda trial: trial.rates, self.training, every)

    def start(self, key: Key) -> Pair:
        return self.start_from(key)

    def takes(self, key: Key) -> Taken:
        """What the training takes; both twins get it."""
        return self.training.takes(key)

    def check_own(self, data: OwnGraph | None, weights: Weights | None) -> None:
        self.training.check_own(data, weights)

    def start_from(self, key: Key, data: OwnGraph | None = None, weights: Weights | None = None) -> Pair:
        return Pair(self.training.start_from(key, data, weights), self.twin.start_from(key, data, weights))

    def step(self, state: Pair) -> Pair:
        return Pair(self.training.step(state.sampled), self.twin.step(state.effective))

    def loss(self, state: Pair) -> Float[Array, ""]:
        return state.sampled.loss + state.effective.loss

    def finished(self, state: Pair) -> Bool[Array, ""]:
        return self.training.finished(state.sampled)

    def watch(self, state: Pair) -> Record:
        return self.gaps(state)

    def record(self, state: Pair) -> Record:
        sampled, effective = self.training.record(state.sampled), self.twin.record(state.effective)
        return {
            **self.gaps(state),
            "error": sampled["normalised_error"],
            "twin_error": effective["normalised_error"],
            "norm": sampled["norm"],
        }

    def gaps(self, state: Pair) -> Record:
        """How far apart the twins are: V over the way that V has gone, the largest drift of a column of W and of V (Lemma
        D.2.14), and outputs over the labels (root mean squares)."""
        one, other = state.sampled.weights, state.effective.weights
        gone = jnp.linalg.norm(other.w2 - state.effective.begun.w2)
        world = state.effective.world
        apart = self.twin.predict(one, world) - self.twin.predict(other, world)
        return {
            "weight_gap": jnp.linalg.norm(one.w2 - other.w2) / jnp.maximum(gone, 1e-30),
            "drift_w": jnp.max(jnp.linalg.norm(one.w1 - other.w1, axis=0)),
            "drift_v": jnp.max(jnp.linalg.norm(one.w2 - other.w2, axis=0)),
            "output_gap": jnp.sqrt(jnp.mean(apart**2) / jnp.mean(world.labels**2)),
        }
