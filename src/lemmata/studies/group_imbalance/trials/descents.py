"""Algorithm 1: gradient descent with a constant step on the empirical risk, looked at from the critical point it
goes to."""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.descent import Descent, Draw, Learner, Learning
from lemmata.errors import require
from lemmata.own import Taken, require_between
from lemmata.studies.group_imbalance.data import Population, World, fresh_inputs
from lemmata.studies.group_imbalance.network import (
    STEEPEST,
    Kind,
    Newton,
    aligned,
    critical_point,
    curvature,
    entropy_of,
    excess_of,
    loss_of,
    newton_step,
    predict_proba,
    value_and_gradient,
)
from lemmata.trial import Key, Precision, Tracks, fixed


class Sight(NamedTuple):
    """What a descent is looked at from: the world, the critical point W_n near W* (Newton) and whether there is one (where
    the samples are too few, the risk may fall for ever in some direction), the spectrum of the Hessian
    there and of the Fisher information at W* (on the same inputs), the step size, noise drawn once, and fresh inputs of
    every group."""

    world: World
    critical: Float[Array, "dim neurons"]
    found: Bool[Array, ""]
    spectrum: Float[Array, " size"]
    fisher: Float[Array, " size"]
    step: Float[Array, ""]
    shift: Float[Array, "dim neurons"]
    fresh: Float[Array, "groups points dim"]


class Descents(Learner):
    """Gradient descent W <- W - eta0 (grad f_n(W) + mean of the nu_i), full batch, noise nu_i uniform on +-`noise`.

    `step_rule`: `curvature` is 1 / lambda_max of the Hessian at the start; `explicit` 4K / lambda_max of the inputs'
    second moments (of a sigmoid); `theory` 1 / M_2; each times `descent.learning_rate`. `start`: `local` is W* + E with |E|_F =
    `radius` (on the sphere), `far` has entries N(0, `far_std`^2). The run ends when it is within `arrive` of W_n, or
    at the last step.

    With data or weights of one's own W_n, the curvatures and the step are those of the samples and the start that are used; W*
    and the fresh inputs are the population's."""

    name: ClassVar = "group-imbalance/descent"
    may_be_missing: ClassVar = ("contraction", "floor_exact")  # arrived to the bit; W_n is flat somewhere
    lockstep: ClassVar = False
    paired: ClassVar = (
        "population.fractions",
        "population.shifts",
        "population.spreads",
        "population.samples",
        "descent",
        "noise",
        "noisy",
        "start_at",
        "step_rule",
        "arrive",
    )
    dims: ClassVar = {
        "group_excess": ("group",),
        "group_entropy": ("group",),
        "last_group_excess": ("group",),
        "group_sharp": ("group",),
    }

    population: Population = Population()
    descent: Descent = Descent(
        learning_rate=1.0, loss="cross-entropy", stop="cap", steps=20_000, logs=60, spacing="even"
    )
    radius: float = 0.1
    far_std: float = 5.0
    noise: float = 0.0
    arrive: float = 1e-9
    noisy: Literal["none", "per-step", "fixed"] = fixed(default="none")
    start_at: Literal["local", "far"] = fixed(default="local")
    step_rule: Literal["curvature", "explicit", "theory"] = fixed(default="curvature")
    test_points: int = fixed(default=1000)
    precision: Precision = fixed(default="float64")

    def __check_init__(self):
        require(self.radius > 0, f"the start needs a positive radius, not {self.radius}.")
        require(self.noise >= 0, f"the noise level must not be negative, not {self.noise}.")
        require(self.noise == 0 or self.noisy != "none", "noise > 0 needs noisy=per-step or noisy=fixed.")
        require(self.test_points > 0, f"the test set needs at least one point, not {self.test_points}.")
        require(
            self.descent.batches == "full" and self.descent.method == "gd",
            "this study is about full-batch gradient descent: descent.batches=full, descent.method=gd.",
        )

    def world(self, key: Key) -> World:
        """Mixture and teacher of the run with this key."""
        return self.population.world(jax.random.split(jax.random.split(key)[0], 5)[0])

    def takes(self, key: Key) -> Taken:
        """Inputs and labels of any number of samples; labels may be soft."""
        return Learner.takes(self, key)._replace(any_number=True)

    def check_own(self, data: tuple[Array, Array] | None, weights: Array | None) -> None:
        if data is not None:
            require_between("data[1] (labels)", data[1], 0, 1)

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def draw_with(self, key: Key, data: tuple[Array, Array] | None, weights: Array | None) -> Draw:
        world_key, data_key, start_key, noise_key, test_key = jax.random.split(key, 5)
        world = self.population.world(world_key)
        inputs, labels = self.population.draw(data_key, world)[:2] if data is None else data
        near = world.teacher + around(start_key, world.teacher.shape, self.radius)
        far = self.far_std * jax.random.normal(start_key, world.teacher.shape)
        drawn = near if self.start_at == "local" else far
        start = drawn if weights is None else weights
        found = self._critical(near, inputs, labels)
        spectrum = jnp.linalg.eigvalsh(found.here.hessian[0])
        flat = jnp.linalg.norm(found.here.gradient[0]) <= 1e-9
        sight = Sight(
            world,
            found.weights[0],
            flat & (spectrum[0] > 1e-8 * spectrum[-1]),
            spectrum,
            jnp.linalg.eigvalsh(fisher(world.teacher, inputs, self.population.activation)),
            self._step(start, inputs, labels, world),
            self._noise(noise_key, len(labels)),
            fresh_inputs(test_key, world, self.test_points),
        )
        return Draw(start, (inputs, labels), sight)

    def objective(self, params: Array, batch: tuple[Array, Array], world: Sight, key: Key) -> Array:
        return jnp.mean(loss_of(params, *batch, self.population.activation))

    def slope(self, params: Array, batch: tuple[Array, Array], world: Sight, key: Key) -> tuple[Array, Array]:
        """The risk, and its gradient in units of the step size."""
        loss, gradient = value_and_gradient(params, *batch, self.population.activation)
        if self.noisy == "per-step":
            gradient = gradient + self._noise(key, len(batch[1]))
        elif self.noisy == "fixed":
            gradient = gradient + world.shift
        return loss, world.step * gradient

    def finished(self, state: Learning) -> Bool[Array, ""]:
        return (self._distance(state) <= self.arrive) | Learner.finished(self, state)

    def watch(self, state: Learning) -> dict[str, Array]:
        sight = state.world
        excess = self._excess(state.params, sight)
        return {"distance": self._distance(state), "loss": state.fit.loss, "group_excess": excess}

    def track(self, state: Learning) -> Tracks:
        late = state.step > self.steps // 2
        return Tracks(total={"late_square": jnp.where(late, self._distance(state) ** 2, 0.0)})

    def record(self, state: Learning) -> dict[str, Array]:
        sight, teacher = state.world, state.world.world.teacher
        kind = self.population.activation
        _, scaled = value_and_gradient(state.params, *state.data, kind=kind)
        samples, rate = len(state.data[1]), sight.step * self.descent.learning_rate
        size, decay = sight.spectrum.shape[0], 1 - rate * sight.spectrum
        away = state.params - sight.critical  # exact: both are near, and only then is the step taken off
        ahead = jnp.linalg.norm(away - rate * scaled)
        limit = aligned(sight.critical[None], teacher)[0]
        last = aligned(state.params[None], teacher)[0]

        return {
            "distance": self._distance(state),
            "critical_found": sight.found,
            "final_loss": state.fit.loss,
            "critical_loss": jnp.mean(loss_of(sight.critical, *state.data, kind=kind)),
            "contraction": ahead / self._distance(state),
            "contraction_exact": 1 - rate * sight.spectrum[0],
            "curvature_low": sight.spectrum[0],
            "curvature_next": sight.spectrum[min(1, size - 1)],
            "curvature_high": sight.spectrum[-1],
            "step_size": rate,
            "rate_sharp": sight.fisher[0] / sight.fisher[-1],
            "error_sharp": jnp.sqrt(jnp.sum(1 / sight.fisher) / samples),
            "group_sharp": self._group_sharp(sight) / samples,
            "floor_exact": rate * self.noise / jnp.sqrt(3 * samples) * jnp.sqrt(jnp.sum(1 / (1 - decay**2))),
            "floor_bound": self.noise / sight.spectrum[0] * jnp.sqrt(size * jnp.log(samples) / samples),
            "error": jnp.linalg.norm(limit - teacher),
            "last_error": jnp.linalg.norm(last - teacher),
            "teacher_norm": jnp.linalg.norm(teacher),
            "group_excess": self._excess(sight.critical, sight),
            "last_group_excess": self._excess(state.params, sight),
            "group_entropy": jnp.mean(jax.vmap(lambda x: entropy_of(teacher, x, kind))(sight.fresh), -1),
        }

    def _critical(self, start: Array, inputs: Array, labels: Array) -> Newton:
        """W_n of these samples as exactly as the gradient can be computed: from a gradient of 1e-12 two more steps reach its
        rounding."""
        kind = self.population.activation
        found = critical_point(start[None], inputs, labels, 1e-12, kind)
        for _ in range(2):
            found = newton_step(found, inputs, labels, 0.0, kind)
        return found

    def _excess(self, weights: Array, sight: Sight) -> Float[Array, " groups"]:
        """The excess risk of every group at W."""
        teacher, kind = sight.world.teacher, self.population.activation
        return jnp.mean(jax.vmap(lambda x: excess_of(weights, teacher, x, kind))(sight.fresh), -1)

    def _group_sharp(self, sight: Sight) -> Float[Array, " groups"]:
        """tr(I_l I^-1) / 2 of every group, both from the fresh inputs."""
        each = jax.lax.map(lambda x: fisher(sight.world.teacher, x, self.population.activation), sight.fresh)
        inverse = jnp.linalg.inv(jnp.tensordot(sight.world.mixture.weights, each, 1))
        return jnp.sum(each * inverse, (1, 2)) / 2

    def _distance(self, state: Learning) -> Float[Array, ""]:
        return jnp.linalg.norm(state.params - state.world.critical)

    def _noise(self, key: Key, samples: int) -> Float[Array, "dim neurons"]:
        """The mean of the n noises nu_i, each entry uniform on +-xi."""
        shape = (self.population.dim, self.population.neurons)
        if self.noisy == "none":
            return jnp.zeros(shape)
        drawn = jax.random.uniform(key, (samples, *shape), minval=-1.0)
        return self.noise * jnp.mean(drawn, 0)

    def _step(self, start: Array, inputs: Array, labels: Array, world: World) -> Float[Array, ""]:
        if self.step_rule == "curvature":
            here = curvature(start[None], inputs, labels, self.population.activation)
            return 1 / jnp.linalg.eigvalsh(here.hessian[0])[-1]
        if self.step_rule == "explicit":
            moments = inputs.T @ inputs / inputs.shape[0]
            most = STEEPEST[self.population.activation] / self.population.neurons
            return 1 / (most * jnp.linalg.eigvalsh(moments)[-1])
        size = jnp.linalg.norm(world.mixture.means, axis=1)
        spread = jnp.sqrt(jnp.linalg.eigvalsh(world.mixture.covariances)[:, -1])
        return 1 / (world.mixture.weights @ (size + spread) ** 2)


def fisher(teacher: Array, inputs: Array, kind: Kind = "sigmoid") -> Float[Array, "size size"]:
    """The Fisher information at W* over given inputs: the Hessian for soft labels."""
    return curvature(teacher[None], inputs, predict_proba(teacher, inputs, kind), kind).hessian[0]


def around(key: Key, shape: tuple[int, ...], radius: float | Array) -> Array:
    """A random matrix of Frobenius norm `radius`, its direction uniform."""
    drawn = jax.random.normal(key, shape)
    return radius * drawn / jnp.linalg.norm(drawn)
