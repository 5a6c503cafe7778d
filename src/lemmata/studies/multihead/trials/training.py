"""Multi-head attention trained by full-batch descent, on any of the data models."""

from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from lemmata.descent import Descent, Draw, Learner, Learning, logistic_loss
from lemmata.errors import require
from lemmata.own import Taken, require_signs
from lemmata.reduce import heads as grouped
from lemmata.reduce.heads import Members
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.data import DataModel, Samples, Teacher, TokenMixture
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.network.derivatives import extreme_eigenvalues, loss_curvature
from lemmata.studies.multihead.network.slope import training_slope
from lemmata.threefry import key_of
from lemmata.trial import Key, Record, Tracks, fixed

STUCK = 0.3
"""A run on DM2 whose training loss ends above this sits on a plateau; runs that learn end below 0.07."""

TARGET_SIZES, TARGET_FOCUSES = np.geomspace(0.5, 200, 14), (0.0, 1.0, 3.0, 10.0, 30.0)
"""Norms of decoder and attention over which a target of Theorem 1 is looked for."""


class HeadLearner(Learner):
    """Full-batch descent on the logistic loss of grouped heads. Its world says how many heads each group stands for (`members`)
    and where the weights began (`begun`), so that every run can say how far its attention has moved."""

    network: eqx.AbstractVar[Network]

    def objective(self, params: PyTree, batch: PyTree, world: PyTree, key: Key) -> Float[Array, ""]:
        return nets.training_loss(self.network, params, world.members, batch)

    def slope(
        self, params: PyTree, batch: PyTree, world: PyTree, key: Key
    ) -> tuple[Float[Array, ""], PyTree]:
        return training_slope(self.network, params, world.members, batch)

    def rates(self, params: PyTree) -> Heads:
        return Heads(1.0, self.descent.attention_rate)  # pyright: ignore[reportArgumentType]

    def check_own(self, data: Samples | None, weights: Heads | None) -> None:
        if data is not None:
            require_signs("data.labels", data.labels)

    def draw_with(self, key: Key, data: Samples | None, weights: Heads | None) -> Draw:
        drawn = Learner.draw_with(self, key, data, weights)
        return drawn._replace(world=drawn.world._replace(begun=drawn.params))


def attention_movement(params: Heads, begun: Heads, samples: Samples) -> dict[str, Array]:
    """How far attention has moved since the start: the largest change of a head's weights, and of the share of its
    attention that any query of any sample gives to any token."""

    def changed(here: Array, before: Array) -> Array:
        maps = (nets.attention_map(weights, samples.tokens) for weights in (here, before))
        return jnp.abs(next(maps) - next(maps)).max()

    return {
        "attention_moved": grouped.head_norms(params.attention - begun.attention).max(),
        "attention_change": jax.vmap(changed)(params.attention, begun.attention).max(),
    }


class World(NamedTuple):
    """What training does not change; test samples are drawn when they are needed, from a key, so that runs in lockstep stay
    small."""

    members: Members
    begun: Heads
    teacher: Teacher | None
    test_key: Array


class Training(HeadLearner):
    """Multi-head attention trained on any of the data models.

    The step size is `descent.learning_rate * heads ** growth`; with `descent.attention_rate = 0` attention stays where it
    starts: from zero this is logistic regression on the mean token, the control for everything that is said of attention.
    Arms that differ in the network, the descent or the number of training samples see the same teacher and begin with the
    same samples. `probe`: also watch the spectrum of the Hessian over all heads; or also record the best bound of Theorem
    1 over `targets`.
    """

    name: ClassVar[str] = "multihead/training"
    paired: ClassVar[tuple[str, ...]] = (
        "network", "descent", "growth", "first_samples", "precision", "data.samples", "probe",
    )  # fmt: skip

    data: DataModel = TokenMixture()
    network: Network = Network()
    descent: Descent = Descent(learning_rate=1.0, stop="cap", steps=1000)
    growth: float = 0.0
    first_samples: int = fixed(default=100)
    probe: Literal["plain", "spectrum", "targets"] = fixed(default="plain")
    precision: Literal["float32", "float64"] = fixed(default="float64")

    def __check_init__(self):
        require(
            self.first_samples >= 1, f"the first phase needs at least one sample, not {self.first_samples}."
        )
        require(
            self.descent.batches == "full" and self.descent.loss == "logistic",
            "the theorems are about full-batch descent on the logistic loss: leave descent.batches and descent.loss.",
        )
        require(
            self.probe != "targets" or self.network.decoder == "full",
            "targets are full decoders: leave network.decoder at full.",
        )

    @property
    def step_size(self) -> Any:
        return self.descent.learning_rate * self.network.heads**self.growth

    def rates(self, params: PyTree) -> Heads:
        growth = self.network.heads**self.growth
        return Heads(growth, growth * self.descent.attention_rate)  # pyright: ignore[reportArgumentType]

    def takes(self, key: Key) -> Taken:
        """`Samples` of any number, without their noise, and `Heads` of which each group stands for as many as it does at the
        drawn start."""
        return Learner.takes(self, key)._replace(any_number=True)

    def draw(self, key: Key) -> Draw:
        teacher_key, train_key, test_key, first_key, weight_key = jax.random.split(key, 5)
        data: Any = self.data
        teacher = data.teacher(teacher_key)
        train = data.sample(train_key, teacher, data.samples)._replace(noise=None)
        first = train
        if self.network.start in ("signs", "interval"):
            first = data.sample(first_key, teacher, self.first_samples)
        params, members = nets.start_heads(self.network, weight_key, first)
        params, members, train, teacher = cast((params, members, train, teacher), self.precision)
        return Draw(params, train, World(members, params, teacher, jax.random.key_data(test_key)))

    def track(self, state: Learning) -> Tracks:
        """The loss summed over the steps (the start left out), and how far from the start the weights went."""
        away = jax.tree.map(lambda p, b: p - b, state.params, state.world.begun)
        return Tracks(
            largest={"farthest": grouped.norm(away, state.world.members)},
            total={"loss_sum": jnp.where(state.step > 0, state.fit.loss, 0)},
        )

    def watch(self, state: Learning) -> Record:
        params, members, teacher = state.params, state.world.members, state.world.teacher
        train = nets.margins(self.network, params, members, state.data)
        test = nets.margins(self.network, params, members, self._test(state))
        decoder_norm = grouped.norm(params.decoder, members)
        seen = {
            "train_loss": state.fit.loss,
            "log_train_loss": nets.log_mean_loss(train),
            "test_loss": jnp.mean(logistic_loss(test)),
            "test_error": jnp.mean(test <= 0, dtype=test.dtype),
            "margin": jnp.min(train) / jnp.where(decoder_norm > 0, decoder_norm, 1),
            "mean_attention_norm": _mean_head_norm(params.attention, members),
            "mean_decoder_norm": _mean_head_norm(params.decoder, members),
            **attention_movement(params, state.world.begun, state.data),
        }
        if isinstance(self.data, TokenMixture):
            seen["relevant_attention"] = relevant_attention(params, members, state.data)
        if teacher is not None:
            seen["attention_alignment"] = _alignment(params.attention, members, teacher.attention)
            decoder = teacher.decoder if self.network.decoder == "full" else teacher.decoder.sum(axis=0)
            seen["decoder_alignment"] = _alignment(params.decoder, members, decoder)
        return seen | (self._spectrum(state) if self.probe == "spectrum" else {})

    def record(self, state: Learning) -> Record:
        longest = jnp.linalg.norm(state.data.tokens, axis=-1).max()
        kept = {**self.watch(state), "stuck": state.fit.loss > STUCK, "token_norm": longest}
        return kept | (self._targets(state) if self.probe == "targets" else {})

    def _test(self, state: Learning) -> Samples:
        data: Any = self.data
        key = key_of(state.world.test_key)
        return cast(data.sample(key, state.world.teacher, data.test_samples), self.precision)

    def _spectrum(self, state: Learning) -> dict[str, Array]:
        params, members = state.params, state.world.members
        curvature = loss_curvature(self.network, params, members, state.data)
        smallest, largest = extreme_eigenvalues(curvature, members)
        return {
            "gradient_norm": grouped.norm(state.fit.grads, members),
            "smallest_eigenvalue": smallest,
            "largest_eigenvalue": largest,
            "decoder_norm": grouped.largest_head_norm(params.decoder, members),
            "head_norm": grouped.largest_head_norm(params, members),
        }

    def _targets(self, state: Learning) -> dict[str, Array]:
        """The least of `2 L(theta) + 5 Delta^2 / (4 eta K)` (Thm 1) over targets whose heads are all alike and lie along
        the data model's oracle, and the distance of the best one."""
        data: Any = self.data
        oracle = cast(data.oracle(state.world.teacher), self.precision)
        members, begun = state.world.members, state.world.begun
        heads = jnp.asarray(self.network.heads)

        def bound(place: Array) -> tuple[Array, Array]:
            size, focus = place
            goal = Heads(size / jnp.sqrt(heads) * oracle.decoder[None], focus * oracle.attention[None])
            goal = jax.tree.map(lambda g, b: jnp.broadcast_to(g, b.shape), goal, begun)
            distance = grouped.norm(jax.tree.map(lambda g, b: g - b, goal, begun), members)
            loss = nets.mean_loss(self.network, goal, members, state.data)
            return 2 * loss + 5 * distance**2 / (4 * self.step_size * self.steps), distance

        grid = [(size, focus) for size in TARGET_SIZES for focus in TARGET_FOCUSES]
        bounds, distances = jax.lax.map(bound, jnp.asarray(grid, state.fit.loss.dtype))
        best = jnp.argmin(bounds)
        return {"theorem_bound": bounds[best], "theorem_distance": distances[best]}


def relevant_attention(params: Heads, members: Members, samples: Samples) -> Float[Array, ""]:
    """The mean over heads, samples and queries of the attention that goes to relevant tokens."""

    def one(attention: Array) -> Array:
        maps = nets.attention_map(attention, samples.tokens)
        return jnp.mean(jnp.sum(maps * samples.relevant[:, None, :], axis=-1))

    return members @ jax.vmap(one)(params.attention) / members.sum()


def cast(tree: Any, precision: str) -> Any:
    """All floating numbers of a tree in the precision of a trial."""
    dtype = jnp.dtype(precision)
    return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


def _mean_head_norm(weights: Array, members: Members) -> Float[Array, ""]:
    return members @ grouped.head_norms(weights) / members.sum()


def _alignment(weights: Array, members: Members, planted: Array) -> Float[Array, ""]:
    """The cosine between all heads and the planted weights repeated for every head."""
    repeated = jnp.broadcast_to(planted, weights.shape)
    norms = grouped.norm(weights, members) * grouped.norm(repeated, members)
    return grouped.inner(weights, repeated, members) / jnp.where(norms > 0, norms, 1)
