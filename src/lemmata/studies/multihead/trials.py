"""The trainings of this study: a plain one, one that watches the Hessian, one inside the theorems' conditions."""

from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import Descent, Fit, Trained, advance, begin, log_spaced, logistic_loss
from lemmata.errors import require
from lemmata.reduce import heads as grouped
from lemmata.reduce.heads import Members
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead import theory
from lemmata.studies.multihead.curvature import extreme_eigenvalues, loss_curvature
from lemmata.studies.multihead.data import (
    BoundedTokens,
    DataModel,
    Samples,
    Teacher,
    TokenMixture,
)
from lemmata.studies.multihead.network import Heads, Network
from lemmata.trial import Descending, Key, Record, fixed

STUCK = 0.3
"""A run on DM2 whose training loss ends above this sits on a plateau; runs that learn end below 0.07."""


# A plain training ------------------------------------------------------------------------------------------------------


class Learning(NamedTuple):
    """The descent, how many heads each group stands for, and the data; test samples are drawn when they are needed,
    from a key, so that runs in lockstep stay small."""

    fit: Fit
    members: Members
    train: Samples
    teacher: Teacher | None
    test_key: Array


class Training(Trained):
    """Multi-head attention trained on any of the data models.

    The step size is `descent.learning_rate * heads ** growth`; `attention_rate` multiplies the gradient of the
    attention weights alone (a second step size, for GD and momentum). Arms that differ in the network, the descent or
    the number of training samples see the same teacher and begin with the same samples.
    """

    paired: ClassVar[tuple[str, ...]] = (
        "network", "descent", "growth", "attention_rate", "first_samples", "precision", "data.samples",
    )  # fmt: skip

    data: DataModel = TokenMixture()
    network: Network = Network()
    descent: Descent = Descent(learning_rate=1.0, target_loss=0.0, steps=1000)
    growth: float = 0.0
    attention_rate: float = 1.0
    first_samples: int = fixed(default=100)
    precision: Literal["float32", "float64"] = fixed(default="float64")

    def __check_init__(self):
        require(
            self.first_samples >= 1, f"the first phase needs at least one sample, not {self.first_samples}."
        )
        require(
            self.attention_rate > 0, f"the attention's own step must be positive, not {self.attention_rate}."
        )
        require(
            self.descent.batch is None,
            "the theorems are about full-batch descent: leave descent.batch at none.",
        )

    def start(self, key: Key) -> Learning:
        teacher_key, train_key, test_key, first_key, weight_key = jax.random.split(key, 5)
        data, dtype = self.data, jnp.dtype(self.precision)
        teacher = data.teacher(teacher_key)
        train = data.sample(train_key, teacher, data.samples)._replace(noise=None)  # pyright: ignore[reportArgumentType]
        first = train
        if self.network.start in ("signs", "interval"):
            first = data.sample(first_key, teacher, self.first_samples)  # pyright: ignore[reportArgumentType]
        params, members = nets.start_heads(self.network, weight_key, first)
        params, members, train, teacher = _cast((params, members, train, teacher), dtype)
        params = jax.lax.optimization_barrier(params)  # XLA on CPU makes wrong gradients of constant zeros
        fit = begin(self._scaled_descent(), self._objective, params, members, train)
        return Learning(fit, members, train, teacher, jax.random.key_data(test_key))

    def step(self, state: Learning) -> Learning:
        fit = advance(self._scaled_descent(), self._objective, state.fit, state.members, state.train)
        return state._replace(fit=fit)

    def loss(self, state: Learning) -> Float[Array, ""]:
        return state.fit.loss

    def finished(self, state: Learning) -> Bool[Array, ""]:
        return state.fit.loss < self.descent.target_loss

    def watch(self, state: Learning) -> Record:
        params, members = state.fit.params, state.members
        train = nets.margins(self.network, params, members, state.train)
        test_key = jax.random.wrap_key_data(state.test_key)
        fresh = self.data.sample(test_key, state.teacher, self.data.test_samples)  # pyright: ignore[reportArgumentType]
        test = nets.margins(self.network, params, members, _cast(fresh, train.dtype))
        decoder_norm = grouped.norm(params.decoder, members)
        seen = {
            "train_loss": state.fit.loss,
            "log_train_loss": nets.log_mean_loss(train),
            "test_loss": jnp.mean(logistic_loss(test)),
            "test_error": jnp.mean(test <= 0),
            "margin": jnp.min(train) / jnp.where(decoder_norm > 0, decoder_norm, 1),
            "mean_attention_norm": _mean_head_norm(params.attention, members),
            "mean_decoder_norm": _mean_head_norm(params.decoder, members),
        }
        if isinstance(self.data, TokenMixture):
            seen["relevant_attention"] = relevant_attention(params, members, state.train)
        if state.teacher is not None:
            seen["attention_alignment"] = _alignment(params.attention, members, state.teacher.attention)
            seen["decoder_alignment"] = _alignment(params.decoder, members, state.teacher.decoder)
        return seen

    def record(self, state: Learning) -> Record:
        return {**self.watch(state), "stuck": state.fit.loss > STUCK}

    def _objective(self, params: Heads, members: Members, train: Samples) -> Float[Array, ""]:
        attention, rate = params.attention, self.attention_rate
        slowed = rate * attention + jax.lax.stop_gradient(
            (1 - rate) * attention
        )  # same value, gradient times rate
        params = Heads(params.decoder, slowed)
        return jnp.mean(logistic_loss(nets.margins(self.network, params, members, train)))

    def _scaled_descent(self) -> Descent:
        rate = self.descent.learning_rate * jnp.asarray(self.network.heads) ** self.growth
        return eqx.tree_at(lambda descent: descent.learning_rate, self.descent, rate)


def relevant_attention(params: Heads, members: Members, samples: Samples) -> Float[Array, ""]:
    """The mean over heads, samples and queries of the attention that goes to relevant tokens."""

    def one(attention: Array) -> Array:
        maps = nets.attention_map(attention, samples.tokens)
        return jnp.mean(jnp.sum(maps * samples.relevant[:, None, :], axis=-1))

    return members @ jax.vmap(one)(params.attention) / members.sum()


def _mean_head_norm(weights: Array, members: Members) -> Float[Array, ""]:
    return members @ grouped.head_norms(weights) / members.sum()


def _alignment(weights: Array, members: Members, planted: Array) -> Float[Array, ""]:
    """The cosine between all heads and the planted weights repeated for every head."""
    repeated = jnp.broadcast_to(planted, weights.shape)
    norms = grouped.norm(weights, members) * grouped.norm(repeated, members)
    return grouped.inner(weights, repeated, members) / jnp.where(norms > 0, norms, 1)


def _cast(tree: Any, dtype: Any) -> Any:
    return jax.tree.map(lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


# A training that watches its Hessian -----------------------------------------------------------------------------------


class CurvaturePath(Descending):
    """A training whose loss, gradient and Hessian spectrum over all heads are recorded along the way, together with
    what the bounds on them need: the largest token, decoder and head norms."""

    paired: ClassVar[tuple[str, ...]] = (
        "training.network",
        "training.descent",
        "training.growth",
        "checkpoints",
    )

    training: Training = Training()
    checkpoints: int = fixed(default=100)

    @property
    def precision(self) -> Literal["float32", "float64"]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.training.precision

    @property
    def steps(self) -> int:
        return self.training.steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return log_spaced(self.steps, self.checkpoints)

    def start(self, key: Key) -> Learning:
        return self.training.start(key)

    def step(self, state: Learning) -> Learning:
        return self.training.step(state)

    def loss(self, state: Learning) -> Float[Array, ""]:
        return self.training.loss(state)

    def finished(self, state: Learning) -> Bool[Array, ""]:
        return self.training.finished(state)

    def watch(self, state: Learning) -> Record:
        params, members = state.fit.params, state.members
        found = loss_curvature(self.training.network, params, members, state.train)
        smallest, largest = extreme_eigenvalues(found, members)
        return {
            "train_loss": state.fit.loss,
            "gradient_norm": grouped.norm(state.fit.grads, members),
            "smallest_eigenvalue": smallest,
            "largest_eigenvalue": largest,
            "decoder_norm": grouped.largest_head_norm(params.decoder, members),
            "head_norm": grouped.largest_head_norm(params, members),
        }

    def record(self, state: Learning) -> Record:
        norms = jnp.linalg.norm(state.train.tokens, axis=-1)
        return {"train_loss": state.fit.loss, "token_norm": jnp.max(norms)}


# A training inside the conditions of Theorems 1 and 2 ------------------------------------------------------------------


class Twins(NamedTuple):
    """A run and its leave-one-out twins (first row: the run on all samples), and what was seen along the way."""

    params: Heads
    losses: Float[Array, "model sample"]
    grads: Heads
    train: Samples
    test: Samples
    loss_sum: Float[Array, ""]
    left_out_sum: Float[Array, " sample"]
    farthest: Float[Array, ""]
    farthest_from_target: Float[Array, ""]
    worst_descent: Float[Array, ""]
    worst_recursion: Float[Array, ""]
    step: Int[Array, ""]


class Guaranteed(Descending):
    """Gradient descent with the number of heads, the step size and the horizon that Theorems 1 and 2 ask for.

    From zero, towards the target whose heads are all `Delta / sqrt(H T) 1_T v^T` with no attention weights. All heads
    are equal, so any number of them costs one. Beside the run go its leave-one-out twins, on the same loss divided by
    the same number of samples but without one of them. `cap` shortens the horizon (any shorter one is allowed too).
    """

    data: BoundedTokens = BoundedTokens()
    distance: float = fixed(default=0.3)
    cap: int = fixed(default=1_000_000)
    precision: Literal["float32", "float64"] = fixed(default="float64")

    def __check_init__(self):
        require(
            self.distance > 0, f"the target must be away from the start, not at distance {self.distance}."
        )
        require(self.cap >= 1, f"a training needs at least one step, not {self.cap}.")
        require(
            self.data.labels == "aligned",
            "the explicit target needs labels that the tokens are aligned with.",
        )

    @property
    def bounds(self) -> theory.DataBounds:
        return theory.DataBounds(self.data.dim, self.data.tokens, self.data.radius)

    @property
    def heads(self) -> float:
        """The smallest number of heads that both theorems allow."""
        return theory.equal_heads_required(self.bounds, self.distance, theory.GENERALISATION_HEADS)

    @property
    def target(self) -> theory.Target:
        """The target with its largest possible loss, so that the conditions hold for every training set."""
        data = self.data
        margin = self.distance * data.tokens**0.5 * data.radius * (1 - data.spread**2) ** 0.5
        return theory.Target(self.distance, self.distance / self.heads**0.5, theory.logistic(margin))

    @property
    def step_size(self) -> float:
        return theory.longest_horizon(self.bounds, self.target, self.heads)[0]

    @property
    def steps(self) -> int:
        return min(self.cap, theory.longest_horizon(self.bounds, self.target, self.heads)[1])

    @property
    def log_steps(self) -> tuple[int, ...]:
        return (0, self.steps)

    def start(self, key: Key) -> Twins:
        train_key, test_key = jax.random.split(key)
        data = self.data
        train = data.sample(train_key, None, data.samples)
        test = data.sample(test_key, None, data.test_samples)
        train, test = _cast((train, test), jnp.dtype(self.precision))
        shape = (data.samples + 1, 1)
        dtype = train.tokens.dtype
        params = Heads(
            jnp.zeros((*shape, data.tokens, data.dim), dtype), jnp.zeros((*shape, data.dim, data.dim), dtype)
        )
        params = jax.lax.optimization_barrier(params)
        losses, grads = self._losses(params, train)
        zero = jnp.zeros((), dtype)
        return Twins(
            params, losses, grads, train, test, zero, jnp.zeros(data.samples, dtype), zero,
            jnp.asarray(self.distance, dtype), -jnp.inf * jnp.ones((), dtype), -jnp.inf * jnp.ones((), dtype),
            jnp.zeros((), jnp.int32),
        )  # fmt: skip

    def step(self, state: Twins) -> Twins:
        eta, count = self.step_size, self.data.samples
        params = jax.tree.map(lambda p, g: p - eta * g, state.params, state.grads)
        losses, grads = self._losses(params, state.train)
        before, after = jnp.mean(state.losses[0]), jnp.mean(losses[0])
        steepness = self._norms(jax.tree.map(lambda g: g[:1], state.grads))[0]
        away, away_before = self._twin_distances(params), self._twin_distances(state.params)
        others = jnp.sum(state.losses[0]) - state.losses[0], jnp.sum(state.losses[1:] * self._kept, axis=1)
        both = (others[0] + others[1]) / count
        growth = theory.stability_growth(self.bounds, self.target, self.heads, eta, both)  # pyright: ignore[reportArgumentType]
        push = theory.stability_push(self.bounds, self.target, eta, count, state.losses[0])  # pyright: ignore[reportArgumentType]
        pushed = away - growth * away_before
        full = jax.tree.map(lambda p: p[:1], params)
        return Twins(
            params, losses, grads, state.train, state.test,
            state.loss_sum + after,
            state.left_out_sum + state.losses[0],
            jnp.maximum(state.farthest, self._norms(full)[0]),
            jnp.maximum(state.farthest_from_target, self._norms(self._from_target(full))[0]),
            jnp.maximum(state.worst_descent, after - before + eta / 2 * steepness**2),
            jnp.maximum(state.worst_recursion, jnp.max(pushed / push)),
            state.step + 1,
        )  # fmt: skip

    def loss(self, state: Twins) -> Float[Array, ""]:
        return jnp.mean(state.losses[0])

    def finished(self, state: Twins) -> Bool[Array, ""]:
        return jnp.asarray(False)

    def watch(self, state: Twins) -> Record:
        return {"train_loss": jnp.mean(state.losses[0])}

    def record(self, state: Twins) -> Record:
        away = self._twin_distances(state.params)
        reach = 3 * self.distance + self.target.head_norm
        pushed = theory.gradient_self_bound(self.bounds, reach) * self.step_size / self.data.samples
        target = self._from_target(jax.tree.map(lambda p: jnp.zeros_like(p[:1]), state.params))
        goal = jax.tree.map(lambda p: -p, target)
        test = self._losses(jax.tree.map(lambda p: p[:1], state.params), state.test)[0]
        return {
            "last_loss": jnp.mean(state.losses[0]),
            "mean_loss": state.loss_sum / jnp.maximum(state.step, 1),
            "target_loss": jnp.mean(self._losses(goal, state.train)[0]),
            "farthest": state.farthest,
            "farthest_from_target": state.farthest_from_target,
            "worst_descent": state.worst_descent,
            "worst_recursion": state.worst_recursion,
            "stability": jnp.mean(away),
            "worst_accumulation": jnp.max(away / (2 * pushed * state.left_out_sum)),
            "gap": jnp.mean(test) - jnp.mean(state.losses[0]),
            "left_out_gap": jnp.mean(jnp.diagonal(state.losses[1:])) - jnp.mean(state.losses[0]),
        }

    def _losses(self, params: Heads, samples: Samples) -> tuple[Float[Array, "model sample"], Heads]:
        """The loss of every model on every sample, and the gradient that each of its heads sees; the first model is
        trained on all samples, model `i` on all but the `i`-th."""
        network = Network(heads=float(self.heads))
        members = jnp.asarray([float(self.heads)], samples.tokens.dtype)
        count = len(params.decoder)
        weights = jnp.concatenate([jnp.ones((1, len(samples.labels))), 1 - jnp.eye(len(samples.labels))])[
            :count
        ]
        weights = (weights / len(samples.labels)).astype(samples.tokens.dtype)

        def total(params: Heads) -> tuple[Array, Array]:
            losses = jax.vmap(lambda one: logistic_loss(nets.margins(network, one, members, samples)))(params)
            return jnp.sum(weights * losses), losses

        grads, losses = jax.grad(total, has_aux=True)(params)
        return losses, grads

    @property
    def _kept(self) -> Float[Array, "sample sample"]:
        return 1 - jnp.eye(self.data.samples, dtype=self.precision)

    def _norms(self, params: Heads) -> Float[Array, " model"]:
        """Norms over all heads of every model (one group of equal heads each)."""
        return grouped.head_norms(params) * float(self.heads) ** 0.5

    def _twin_distances(self, params: Heads) -> Float[Array, " sample"]:
        return self._norms(jax.tree.map(lambda p: p[1:] - p[:1], params))

    def _from_target(self, params: Heads) -> Heads:
        size = self.distance / (self.heads * self.data.tokens) ** 0.5
        return Heads(params.decoder - size * jnp.eye(self.data.dim)[0], params.attention)


def guaranteed_conditions(trial: Guaranteed) -> dict[str, float]:
    """Each condition of Theorems 1 and 2 at the trial, as the ratio of what it has to what it needs."""
    bounds, target, heads = trial.bounds, trial.target, trial.heads
    need = theory.required_root_heads(bounds, target.distance, target.head_norm, theory.GENERALISATION_HEADS)
    limits = theory.step_limits(bounds, target, heads, trial.steps)
    return {"heads": heads**0.5 / need} | {
        f"step size below {name}": limit / trial.step_size for name, limit in limits.items()
    }
