"""Training after the randomised first step on the token mixture, inside the conditions of Theorems 1 and 2.

The first step leaves two groups of equal heads (steps of either sign), so any number of heads costs two.
"""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.descent import Descent, Draw, Learning, logistic_loss
from lemmata.errors import require
from lemmata.reduce import heads as grouped
from lemmata.reduce.heads import Members
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.data import Samples, Teacher, TokenMixture
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.network.derivatives import (
    extreme_eigenvalues,
    kernel_features,
    loss_curvature,
)
from lemmata.studies.multihead.theory import bounds as general
from lemmata.studies.multihead.theory import mixture as mixed
from lemmata.studies.multihead.trials.guaranteed import Allowed
from lemmata.studies.multihead.trials.training import attention_movement
from lemmata.trial import Key, Record, Tracks, fixed


class Phase(NamedTuple):
    """What the second phase does not change; `residual` is what the first phase added to its mean row."""

    members: Members
    begun: Heads
    residual: Float[Array, ""]
    test: Samples


class SecondPhase(Allowed):
    """Gradient descent on fresh samples from the end of the first phase, with the heads and the step that Theorems 1
    and 2 ask for.

    The target moves every decoder by `Delta / sqrt(H)` along the unit-norm `U* = 1_T (mu_+ - mu_-)^T`: the shortest way
    to a margin, and the larger part of the paper's NTK direction. A run ends at the longest horizon that the loss of its
    own target allows, at most at that of a target with margin `Delta gamma_lin` (signs that balance).
    """

    name: ClassVar[str] = "multihead/second-phase"
    may_be_missing: ClassVar[tuple[str, ...]] = ("worst_descent",)  # ended at its start
    lockstep: ClassVar[bool] = False  # measured: five runs in lockstep take twice as long as one by one

    data: TokenMixture = fixed(
        default=TokenMixture(
            signal=1.0, relevant_fraction=0.75, noise=0.01, tokens=4, dim=3, patterns=1, noise_law="cube",
            samples=10, test_samples=300,
        )
    )  # fmt: skip
    distance: float = fixed(default=0.3)
    first_samples: int = fixed(default=10_000)
    precision: Literal["float32", "float64"] = fixed(default="float64")

    def __check_init__(self):
        require(
            self.first_samples >= 1, f"the first phase needs at least one sample, not {self.first_samples}."
        )
        require(
            self.distance >= 0.02,
            f"nearer than 0.02 there are no eight steps to take, as at {self.distance}.",
        )
        require(
            self.data.noise_law != "gaussian",
            "the theorems ask for bounded tokens: choose a bounded noise law.",
        )

    @property
    def mixture(self) -> mixed.MixtureBounds:
        return mixed.forecast_bounds(self.data, self.data.samples, 0.05)

    @property
    def bounds(self) -> general.DataBounds:
        return self.mixture.data

    @property
    def start_norm(self) -> float:
        return mixed.sure_start_norm(self.mixture)

    @property
    def margin(self) -> float:
        """Where the signs balance."""
        return mixed.linear_margin(self.mixture)

    @property
    def oracle(self) -> Teacher:
        return self.data.oracle()

    @property
    def network(self) -> Network:  # pyright: ignore[reportIncompatibleVariableOverride]
        return Network(heads=self.heads, start="signs", simulated=2)

    @property
    def descent(self) -> Descent:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Logged at eighths of the longest horizon, so that runs of every distance have as many."""
        return Descent(learning_rate=self.step_size, stop="cap", steps=self.horizon, logs=9, spacing="even")

    def draw(self, key: Key) -> Draw:
        first_key, train_key, test_key, sign_key = jax.random.split(key, 4)
        data = self.data
        first = data.sample(first_key, None, self.first_samples)
        train, test = (
            data.sample(k, None, count)._replace(noise=None)
            for k, count in ((train_key, data.samples), (test_key, data.test_samples))
        )
        params, members = nets.start_heads(self.network, sign_key, first)
        mean = mixed.row_coefficient(data.relevant_fraction) * (data.frame[0] - data.frame[1])
        residual = jnp.linalg.norm(nets.first_phase_row(first) - mean)
        return Draw(params, train, Phase(members, params, residual, test))

    def finished(self, state: Learning) -> Bool[Array, ""]:
        """One more step would break `eta <= Delta^2 / (K L(theta))`."""
        spent = (state.step + 1) * self.step_size * self._loss(self._goal(state), state) > self.distance**2
        return spent | (state.step >= self.steps)

    def track(self, state: Learning) -> Tracks:
        """Sums and largest values over the steps. `roughest`: `eta beta_2` (Lemma 7 asks for at most 1);
        `longest_segment`: `2 beta_3 ||theta - theta_k||^2 / sqrt(H)` (Lemma 9 asks for at most 1); `wander`: the sum of
        Lemma 8 without its half."""
        eta, params, goal = self.step_size, state.params, self._goal(state)
        members, last, here = state.world.members, self.finished(state), state.fit.loss
        away, apart = (self._apart(params, other, members) for other in (state.world.begun, goal))
        bend = general.negative_curvature_bound(self.bounds, self._norm(state), self.heads)
        decoder = grouped.largest_head_norm(params.decoder, members)
        middle = jax.tree.map(lambda p, g: (p + g) / 2, params, goal)
        between = jnp.maximum(here, jnp.maximum(self._loss(goal, state), self._loss(middle, state)))
        ahead = jax.tree.map(lambda p, g: p - eta * g, params, state.fit.grads)
        drop = here - eta / 2 * grouped.norm(state.fit.grads, members) ** 2
        return Tracks(
            largest={
                "farthest": away,
                "farthest_from_target": apart,
                "roughest": eta * general.smoothness_bound(self.bounds, decoder, self.heads),
                "longest_segment": 2 * bend * apart**2,
                "worst_descent": jnp.where(last, -jnp.inf, self._loss(ahead, state) - drop),
            },
            total={
                "loss_sum": jnp.where(state.step > 0, here, 0),
                "wander": jnp.where(last, 0, bend * between * apart**2),
            },
        )

    def watch(self, state: Learning) -> Record:
        members, goal = state.world.members, self._goal(state)
        test = nets.margins(self.network, state.params, members, state.world.test)

        def at(place: Array) -> tuple[Array, Array]:
            here = jax.tree.map(lambda p, g: (1 - place) * p + place * g, state.params, goal)
            found = loss_curvature(self.network, here, members, state.data)
            return self._loss(here, state), extreme_eigenvalues(found, members)[0]

        losses, smallest = jax.lax.map(at, jnp.linspace(0, 1, 5))
        allowed = general.segment_curvature_bound(self.bounds, self._norm(state), losses.max(), self.heads)
        ends = jnp.maximum(losses[0], losses[-1])
        return {
            "train_loss": state.fit.loss,
            "test_loss": jnp.mean(logistic_loss(test)),
            "test_error": jnp.mean(test <= 0, dtype=test.dtype),
            "ntk_margin": self._ntk_margin(state),
            "segment_curvature": jnp.maximum(-smallest.min(), 0) / allowed,
            "segment_loss": losses.max() / (general.QUASI_CONVEXITY * ends),
            **attention_movement(state.params, state.world.begun, state.data),
        }

    def record(self, state: Learning) -> Record:
        begun, members = state.world.begun, state.world.members
        return {
            **self.watch(state),
            "horizon": state.step,
            "last_loss": state.fit.loss,
            "target_loss": self._loss(self._goal(state), state),
            "start_loss": self._loss(begun, state),
            "start_head": grouped.largest_head_norm(begun, members),
            "residual": state.world.residual,
        }

    def _loss(self, params: Heads, state: Learning) -> Float[Array, ""]:
        return nets.mean_loss(self.network, params, state.world.members, state.data)

    def _goal(self, state: Learning) -> Heads:
        begun, way = state.world.begun, self.distance / self.heads**0.5
        return Heads(begun.decoder + way * self.oracle.decoder, begun.attention)

    def _ntk_margin(self, state: Learning) -> Float[Array, ""]:
        """`min_i y_i <grad Phi~(X_i), theta~*>` with the paper's `theta~*`: `(U*, +-W*)/sqrt(H)` a head."""
        members, (attention, decoder) = state.world.members, self.oracle
        signs = jnp.array([1.0, -1.0])[:, None]
        flat = jnp.concatenate([jnp.tile(decoder.ravel(), (2, 1)), signs * attention.ravel()], axis=1)
        flat = flat * jnp.sqrt(members / self.heads)[:, None]
        features = kernel_features(self.network, state.params, members, state.data)
        return jnp.min(state.data.labels * (features @ flat.ravel()))

    def _norm(self, state: Learning) -> Float[Array, ""]:
        """The larger decoder norm of iterate and target: what `beta_3` of their segment depends on."""
        here, there = (
            grouped.largest_head_norm(p.decoder, state.world.members)
            for p in (state.params, self._goal(state))
        )
        return jnp.maximum(here, there)

    def _apart(self, first: Heads, second: Heads, members: Members) -> Float[Array, ""]:
        return grouped.norm(jax.tree.map(lambda a, b: a - b, first, second), members)
