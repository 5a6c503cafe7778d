"""Training after the randomised first step on the token mixture, inside the conditions of Theorems 1 and 2.

The first step leaves two groups of equal heads (steps of either sign), so any number of heads costs two.
"""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import logistic_loss
from lemmata.errors import require
from lemmata.reduce import heads as grouped
from lemmata.reduce.heads import Members
from lemmata.studies.multihead import mixture_theory, theory
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.curvature import extreme_eigenvalues, kernel_features, loss_curvature
from lemmata.studies.multihead.data import Samples, TokenMixture
from lemmata.studies.multihead.network import Heads, Network
from lemmata.trial import Descending, Key, Record, fixed


class Pursuit(NamedTuple):
    """A descent with its start, its target and what was seen on the way (sums and largest values over the steps)."""

    params: Heads
    loss: Float[Array, ""]
    grads: Heads
    members: Members
    begun: Heads
    goal: Heads
    goal_loss: Float[Array, ""]
    start_loss: Float[Array, ""]
    residual: Float[Array, ""]
    train: Samples
    test: Samples
    loss_sum: Float[Array, ""]
    wander: Float[Array, ""]
    farthest: Float[Array, ""]
    farthest_from_target: Float[Array, ""]
    worst_descent: Float[Array, ""]
    roughest: Float[Array, ""]
    longest_segment: Float[Array, ""]
    step: Int[Array, ""]


class SecondPhase(Descending):
    """Gradient descent on fresh samples from the end of the first phase, with the heads and the step that Theorems 1
    and 2 ask for.

    The target moves every decoder by `Delta / sqrt(H)` along the unit-norm `U* = 1_T (mu_+ - mu_-)^T`: the shortest way
    to a margin, and the larger part of the paper's NTK direction. A run ends at the longest horizon that the loss of its
    own target allows, at most at that of a target with margin `Delta gamma_lin` (signs that balance).
    """

    together: ClassVar[bool] = False  # measured: five runs in lockstep take twice as long as one by one

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
    def mixture(self) -> mixture_theory.MixtureBounds:
        data, noise = self.data, self.data.noise_bounds()
        assert noise is not None
        return mixture_theory.MixtureBounds(
            data.dim, data.tokens, data.patterns, data.signal, data.relevant_fraction, noise
        )

    @property
    def heads(self) -> float:
        """The smallest number of heads that both theorems allow."""
        return theory.equal_heads_required(
            self.mixture.data,
            self.distance,
            theory.GENERALISATION_HEADS,
            mixture_theory.sure_start_norm(self.mixture),
        )

    @property
    def target(self) -> theory.Target:
        """The target where the signs balance; `loss` is what it then is at most."""
        margin = self.distance * mixture_theory.linear_margin(self.mixture)
        norm = mixture_theory.sure_start_norm(self.mixture) + self.distance / self.heads**0.5
        return theory.Target(self.distance, norm, theory.logistic(margin))

    @property
    def step_size(self) -> float:
        return theory.longest_horizon(self.mixture.data, self.target, self.heads)[0]

    @property
    def steps(self) -> int:
        return theory.longest_horizon(self.mixture.data, self.target, self.heads)[1]

    @property
    def log_steps(self) -> tuple[int, ...]:
        """Eighths of the longest horizon, so that runs of every distance have as many."""
        return tuple(round(share * self.steps / 8) for share in range(9))

    def start(self, key: Key) -> Pursuit:
        first_key, train_key, test_key, sign_key = jax.random.split(key, 4)
        data = self.data
        first = data.sample(first_key, None, self.first_samples)
        train = data.sample(train_key, None, data.samples)._replace(noise=None)
        test = data.sample(test_key, None, data.test_samples)._replace(noise=None)
        params, members = nets.start_heads(self._network, sign_key, first)
        params = jax.lax.optimization_barrier(params)
        goal = self._goal(params)
        loss, grads = jax.value_and_grad(self._loss)(params, members, train)
        row = nets.first_phase_row(first)
        mean = mixture_theory.row_coefficient(data.relevant_fraction) * (data.frame[0] - data.frame[1])
        zero = jnp.zeros_like(loss)
        state = Pursuit(
            params, loss, grads, members, params, goal, self._loss(goal, members, train), loss,
            jnp.linalg.norm(row - mean), train, test, zero, zero, zero, zero, zero - jnp.inf, zero, zero,
            jnp.zeros((), jnp.int32),
        )  # fmt: skip
        return self._look(state)

    def step(self, state: Pursuit) -> Pursuit:
        eta, members = self.step_size, state.members
        params = jax.tree.map(lambda p, g: p - eta * g, state.params, state.grads)
        loss, grads = jax.value_and_grad(self._loss)(params, members, state.train)
        curvature = theory.negative_curvature_bound(self.mixture.data, self._norm(state), self.heads)  # pyright: ignore[reportArgumentType]
        middle = jax.tree.map(lambda p, g: (p + g) / 2, state.params, state.goal)
        between = jnp.maximum(state.loss, state.goal_loss)
        between = jnp.maximum(between, self._loss(middle, members, state.train))
        drop = state.loss - eta / 2 * grouped.norm(state.grads, members) ** 2
        ahead = state._replace(
            params=params,
            loss=loss,
            grads=grads,
            loss_sum=state.loss_sum + loss,
            wander=state.wander + curvature * between * self._apart(state.params, state.goal, members) ** 2,
            worst_descent=jnp.maximum(state.worst_descent, loss - drop),
            step=state.step + 1,
        )
        return self._look(ahead)

    def loss(self, state: Pursuit) -> Float[Array, ""]:
        return state.loss

    def finished(self, state: Pursuit) -> Bool[Array, ""]:
        """One more step would break `eta <= Delta^2 / (K L(theta))`."""
        return (state.step + 1) * self.step_size * state.goal_loss > self.distance**2

    def watch(self, state: Pursuit) -> Record:
        members = state.members
        test = nets.margins(self._network, state.params, members, state.test)
        places = jnp.linspace(0, 1, 5)

        def at(place: Array) -> tuple[Array, Array]:
            here = jax.tree.map(lambda p, g: (1 - place) * p + place * g, state.params, state.goal)
            found = loss_curvature(self._network, here, members, state.train)
            return self._loss(here, members, state.train), extreme_eigenvalues(found, members)[0]

        losses, smallest = jax.lax.map(at, places)
        norm = self._norm(state)
        allowed = theory.segment_curvature_bound(self.mixture.data, norm, losses.max(), self.heads)  # pyright: ignore[reportArgumentType]
        ends = jnp.maximum(losses[0], losses[-1])
        return {
            "train_loss": state.loss,
            "test_loss": jnp.mean(logistic_loss(test)),
            "test_error": jnp.mean(test <= 0),
            "ntk_margin": self._ntk_margin(state),
            "segment_curvature": jnp.maximum(-smallest.min(), 0) / allowed,
            "segment_loss": losses.max() / (theory.QUASI_CONVEXITY * ends),
        }

    def record(self, state: Pursuit) -> Record:
        outputs = nets.outputs(self._network, state.begun, state.members, state.train.tokens)
        return {
            **self.watch(state),
            "horizon": state.step,
            "last_loss": state.loss,
            "mean_loss": state.loss_sum / jnp.maximum(state.step, 1),
            "target_loss": state.goal_loss,
            "start_loss": state.start_loss,
            "start_head": grouped.largest_head_norm(state.begun, state.members),
            "start_output": jnp.abs(outputs).max(),
            "residual": state.residual,
            "wander": state.wander,
            "farthest": state.farthest,
            "farthest_from_target": state.farthest_from_target,
            "worst_descent": state.worst_descent,
            "roughest": state.roughest,
            "longest_segment": state.longest_segment,
        }

    @property
    def _network(self) -> Network:
        return Network(heads=float(self.heads), start="signs", simulated=2)

    def _loss(self, params: Heads, members: Members, samples: Samples) -> Float[Array, ""]:
        return jnp.mean(logistic_loss(nets.margins(self._network, params, members, samples)))

    def _goal(self, params: Heads) -> Heads:
        return Heads(params.decoder + self.distance / self.heads**0.5 * self._oracle[0], params.attention)

    @property
    def _oracle(self) -> tuple[Float[Array, "token dim"], Float[Array, "dim dim"]]:
        """The unit-norm `U*` and `W*` (eqs 104, 105)."""
        frame = self.data.frame
        decoder = jnp.broadcast_to(frame[0] - frame[1], (self.data.tokens, self.data.dim))
        both = frame[0] + frame[1]
        attention = jnp.outer(frame[0], frame[0]) + jnp.outer(frame[1], frame[1])
        attention = attention + jnp.outer(frame[2:].sum(axis=0), both)
        return decoder / jnp.linalg.norm(decoder), attention / jnp.linalg.norm(attention)

    def _ntk_margin(self, state: Pursuit) -> Float[Array, ""]:
        """`min_i y_i <grad Phi~(X_i), theta~*>` with the paper's `theta~*`: `(U*, +-W*)/sqrt(H)` a head."""
        decoder, attention = self._oracle
        signs = jnp.array([1.0, -1.0])[:, None]
        flat = jnp.concatenate(
            [jnp.tile(decoder.ravel(), (2, 1)), signs * attention.ravel()], axis=1
        ) * jnp.sqrt(state.members / self.heads)[:, None]  # fmt: skip
        features = kernel_features(self._network, state.params, state.members, state.train)
        return jnp.min(state.train.labels * (features @ flat.ravel()))

    def _norm(self, state: Pursuit) -> Float[Array, ""]:
        """The larger decoder norm of iterate and target: what `beta_3` of their segment depends on."""
        here, there = (
            grouped.largest_head_norm(p.decoder, state.members) for p in (state.params, state.goal)
        )
        return jnp.maximum(here, there)

    def _apart(self, first: Heads, second: Heads, members: Members) -> Float[Array, ""]:
        return grouped.norm(jax.tree.map(lambda a, b: a - b, first, second), members)

    def _look(self, state: Pursuit) -> Pursuit:
        """Keep the largest values so far: distances, `eta beta_2` (Lemma 7 asks for at most 1), and
        `2 beta_3 ||theta - theta_k||^2 / sqrt(H)` (Lemma 9 asks for at most 1)."""
        members, bounds = state.members, self.mixture.data
        away, apart = (self._apart(state.params, other, members) for other in (state.begun, state.goal))
        here = grouped.largest_head_norm(state.params.decoder, members)
        rough = self.step_size * theory.smoothness_bound(bounds, here, self.heads)  # pyright: ignore[reportArgumentType]
        bend = theory.negative_curvature_bound(bounds, self._norm(state), self.heads)  # pyright: ignore[reportArgumentType]
        return state._replace(
            farthest=jnp.maximum(state.farthest, away),
            farthest_from_target=jnp.maximum(state.farthest_from_target, apart),
            roughest=jnp.maximum(state.roughest, rough),
            longest_segment=jnp.maximum(state.longest_segment, 2 * bend * apart**2),
        )
