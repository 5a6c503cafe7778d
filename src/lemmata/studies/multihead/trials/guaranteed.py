"""Training inside the conditions of Theorems 1 and 2; from zero, beside its leave-one-out twins."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from lemmata.descent import Descent, Draw, Learning, logistic_loss
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.reduce import heads as grouped
from lemmata.reduce.heads import Members
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.data import BoundedTokens, Samples, Teacher
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.theory import bounds as general
from lemmata.studies.multihead.trials.training import HeadLearner, attention_movement, cast
from lemmata.trial import Key, Record, Tracks, fixed, kind

ROUNDING = 1e-5
"""By what share tokens of single precision may miss a bound that they were drawn to meet."""


class Allowed(HeadLearner):
    """Descent with the heads, the step size and the horizon that Theorems 1 and 2 ask for at a target `distance` away.

    `start_norm` bounds the heads at the start, `margin` (per unit of distance) the samples' at the target from below, almost
    surely, so that the conditions hold for every training set.
    """

    distance: eqx.AbstractVar[float]

    @property
    @abstractmethod
    def bounds(self) -> general.DataBounds: ...

    @property
    @abstractmethod
    def start_norm(self) -> float: ...

    @property
    @abstractmethod
    def margin(self) -> float: ...

    @property
    def heads(self) -> float:
        """The smallest number of heads that both theorems allow."""
        most = general.GENERALISATION_HEADS
        return float(general.equal_heads_required(self.bounds, self.distance, most, self.start_norm))

    def takes(self, key: Key) -> Taken:
        """As many samples as are drawn. The start is the theorems' own."""
        refusal = f"{kind(self)} begins where its theorems do and takes no weights of one's own; multihead/training takes them."
        return HeadLearner.takes(self, key)._replace(weights=refusal)

    def check_own(self, data: Samples | None, weights: Heads | None) -> None:
        """Refuse samples for which heads, step size and horizon promise nothing: tokens longer than the bound, or a target
        that leaves a smaller margin."""
        HeadLearner.check_own(self, data, weights)
        if data is None:
            return
        tokens, labels = np.asarray(data.tokens, float), np.asarray(data.labels, float)
        longest = np.linalg.norm(tokens, axis=-1).max()
        rows = np.asarray(self.oracle.decoder, float).sum(
            axis=0
        )  # without attention every query sees the mean token
        least = np.min(labels * (tokens.mean(axis=1) @ rows))
        require(
            longest <= self.bounds.radius * (1 + ROUNDING),
            f"data.tokens takes tokens of norm at most {self.bounds.radius:.6g}, for which the step size is chosen, not "
            f"{longest:.6g}.",
        )
        require(
            least >= self.margin - ROUNDING * self.bounds.radius,
            f"data takes samples to which the target gives a margin of at least {self.margin:.6g} per unit of distance, not "
            f"{least:.6g}.",
        )

    @property
    @abstractmethod
    def oracle(self) -> Teacher:
        """The unit-norm weights of one head along which the target lies."""

    @property
    def target(self) -> general.Target:
        norm = self.start_norm + self.distance / self.heads**0.5
        return general.Target(self.distance, norm, general.logistic(self.distance * self.margin))

    @property
    def step_size(self) -> float:
        return general.longest_horizon(self.bounds, self.target, self.heads)[0]

    @property
    def horizon(self) -> int:
        return general.longest_horizon(self.bounds, self.target, self.heads)[1]


class Twins(NamedTuple):
    """What training does not change."""

    members: Members
    begun: Heads
    test: Samples


class Guaranteed(Allowed):
    """Gradient descent with the number of heads, the step size and the horizon that Theorems 1 and 2 ask for.

    From zero, towards the target whose heads are all `Delta / sqrt(H)` times the oracle of the data, with no attention
    weights. All heads are equal, so any number of them costs one. Beside the run (model 0) go its leave-one-out twins
    (model `i`), on the same loss divided by the same number of samples but without the `i`-th. `frozen` is the control:
    attention stays at zero, which makes it logistic regression on the mean token. `cap` shortens the horizon (any shorter
    one is allowed too).
    """

    name: ClassVar[str] = "multihead/guaranteed"
    paired: ClassVar[tuple[str, ...]] = ("frozen", "cap")
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"away": ("sample",), "left_out_sum": ("sample",)}

    data: BoundedTokens = BoundedTokens()
    distance: float = fixed(default=0.3)
    frozen: bool = fixed(default=False)
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
    def bounds(self) -> general.DataBounds:
        return general.DataBounds(self.data.dim, self.data.tokens, self.data.radius)

    @property
    def start_norm(self) -> float:
        return 0.0

    @property
    def margin(self) -> float:
        data = self.data
        return data.tokens**0.5 * data.radius * (1 - data.spread**2) ** 0.5

    @property
    def oracle(self) -> Teacher:
        return self.data.oracle()

    @property
    def network(self) -> Network:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Network(heads=self.heads)

    @property
    def descent(self) -> Descent:  # pyright: ignore[reportIncompatibleVariableOverride]
        steps, rate = min(self.cap, self.horizon), 0.0 if self.frozen else 1.0
        return Descent(
            learning_rate=self.step_size, attention_rate=rate, stop="cap", steps=steps, log_at=(0, steps)
        )

    def draw(self, key: Key) -> Draw:
        train_key, test_key = jax.random.split(key)
        train, test = (
            self.data.sample(k, None, count)
            for k, count in ((train_key, self.data.samples), (test_key, self.data.test_samples))
        )
        zero = nets.zero_heads(self.network, self.data.tokens, self.data.dim)
        models = jax.tree.map(lambda part: jnp.stack([part] * (self.data.samples + 1)), zero)
        models, members, train, test = cast((models, jnp.array([self.heads]), train, test), self.precision)
        return Draw(models, train, Twins(members, models, test))

    def slope(
        self, params: PyTree, batch: PyTree, world: PyTree, key: Key
    ) -> tuple[Float[Array, ""], PyTree]:
        """The loss of the run itself, and of every model the gradient that each of its heads sees."""
        count = len(batch.labels)
        kept = jnp.concatenate([jnp.ones((1, count)), 1 - jnp.eye(count)]).astype(batch.tokens.dtype)

        def total(models: Heads) -> tuple[Array, Array]:
            losses = self._losses(models, batch, world)
            return jnp.sum(kept * losses) / count, losses

        grads, losses = jax.grad(total, has_aux=True)(params)
        return jnp.mean(losses[0]), grads

    def track(self, state: Learning) -> Tracks:
        """Descent (Lemma 7) and the recursion of the twins (eq. 22) look one step ahead, but not beyond the last."""
        eta, count, last = self.step_size, self.data.samples, state.step >= self.steps
        rates = self.rates(state.params)
        ahead = Heads(
            *(p - eta * r * g for p, r, g in zip(state.params, rates, state.fit.grads, strict=True))
        )
        losses = self._losses(state.params, state.data, state.world)
        after = jnp.mean(self._losses(_first(ahead), state.data, state.world))
        steepness = self._norms(_first(Heads(*(r * g for r, g in zip(rates, state.fit.grads, strict=True)))))[
            0
        ]
        others = jnp.sum(losses[0]) - losses[0] + jnp.sum(losses[1:] * (1 - jnp.eye(count)), axis=1)
        growth = general.stability_growth(self.bounds, self.target, self.heads, eta, others / count)
        push = general.stability_push(self.bounds, self.target, eta, count, losses[0])
        pushed = (self._twin_distances(ahead) - growth * self._twin_distances(state.params)) / push
        own = _first(state.params)
        return Tracks(
            largest={
                "farthest": self._norms(own)[0],
                "farthest_from_target": self._norms(self._from_target(own))[0],
                "worst_descent": jnp.where(last, -jnp.inf, after - state.fit.loss + eta / 2 * steepness**2),
                "worst_recursion": jnp.where(last, -jnp.inf, pushed.max()),
            },
            total={
                "loss_sum": jnp.where(state.step > 0, state.fit.loss, 0),
                "left_out_sum": jnp.where(last, 0, losses[0]),
            },
        )

    def watch(self, state: Learning) -> Record:
        return {"train_loss": state.fit.loss}

    def record(self, state: Learning) -> Record:
        own, begun = _first(state.params), _first(state.world.begun)
        nothing = jax.tree.map(jnp.zeros_like, own)
        goal = jax.tree.map(lambda p: -p, self._from_target(nothing))
        away, losses = self._twin_distances(state.params), self._losses(state.params, state.data, state.world)
        test = self._losses(own, state.world.test, state.world)
        here, there = (Heads(*(part[0] for part in heads)) for heads in (own, begun))
        return {
            "last_loss": state.fit.loss,
            "target_loss": jnp.mean(self._losses(goal, state.data, state.world)),
            "away": away,
            "stability": jnp.mean(away),
            "gap": jnp.mean(test) - state.fit.loss,
            "left_out_gap": jnp.mean(jnp.diagonal(losses[1:])) - state.fit.loss,
            **attention_movement(here, there, state.data),
        }

    def _losses(self, models: Heads, samples: Samples, world: Twins) -> Float[Array, "model sample"]:
        return jax.vmap(lambda one: logistic_loss(nets.margins(self.network, one, world.members, samples)))(
            models
        )

    def _norms(self, models: Heads) -> Float[Array, " model"]:
        """Norms over all heads of every model (one group of equal heads each)."""
        return grouped.head_norms(models) * self.heads**0.5

    def _twin_distances(self, models: Heads) -> Float[Array, " sample"]:
        return self._norms(jax.tree.map(lambda p: p[1:] - p[:1], models))

    def _from_target(self, models: Heads) -> Heads:
        return Heads(models.decoder - self.distance / self.heads**0.5 * self.oracle.decoder, models.attention)


def _first(models: Heads) -> Heads:
    return jax.tree.map(lambda part: part[:1], models)
