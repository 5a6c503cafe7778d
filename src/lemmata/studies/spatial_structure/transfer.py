"""Transfer: the same groups, another feature, few samples (Section 5). The paper proves this and never plots it.

Learners *with* association keep pre-trained attention and only refit the value vector; learners *without* it do not
know the groups. The latter are told the new feature, so that what they lack is the partition and nothing else.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from lemmata.descent import Descent, Fit, advance, begin, logistic_loss, train
from lemmata.errors import require
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.baselines import logistic_regression
from lemmata.studies.spatial_structure.data import Structured, World, turned
from lemmata.studies.spatial_structure.network import Shape, Weights, output_of_projections, tied_logits
from lemmata.studies.spatial_structure.trials import (
    IdealisedDescent,
    PositionalNetwork,
    RealisticDescent,
    SlowAttention,
    draw_unseen,
    projections,
)
from lemmata.trial import Computed, Descending, Key, Precision, Record, fixed

Learner = Literal["one-step", "descent", "initial", "linear", "pair-counting", "scratch", "mlp"]
WITH_ASSOCIATION = ("one-step", "descent")


class Transfer(Computed):
    """Test error of one learner over downstream sample sizes, averaged over repeats.

    With association: `one-step` (one normalised gradient step from 0) and `descent` (gradient descent) on the value
    vector, attention frozen as pre-trained. Without: `initial` (one step with untrained attention), `linear` (logistic
    regression), `pair-counting` (groups guessed from how often pairs of patches agree), `scratch` (network (T)
    trained from the start), `mlp` (a small ReLU network); all but `initial` are told the new feature.

    `pretraining` is `population` (the idealised descent at this size, run until its slack is `target_slack`) or
    `realistic` (descent on `source_samples` images). `angle` turns the new feature from the old one.
    """

    dims = {"error": ("downstream",), "cosine": ("downstream",), "floor": ("downstream",)}
    paired = ("learner", "pretraining")

    data: Structured = Structured()
    network: PositionalNetwork = PositionalNetwork()
    angle: float = np.pi / 2
    target_slack: float = 0.03
    learner: Learner = fixed(default="one-step")
    pretraining: Literal["population", "realistic"] = fixed(default="population")
    sizes: tuple[int, ...] = fixed(default=(1, 2, 4, 8, 16, 32, 64))
    source_samples: int = fixed(default=2000)
    repeats: int = fixed(default=40)
    test_samples: int = fixed(default=2000)

    def __check_init__(self):
        require(len(self.sizes) > 0 and min(self.sizes) > 0, "downstream sample sizes must be positive.")
        require(self.repeats > 0, f"an average needs at least one repeat, not {self.repeats}.")

    @property
    def shape(self) -> Shape:
        return self.network.shape(self.data.dimension)

    def compute(self, key: Key) -> dict[str, object]:
        data = self.data
        logits, world = self._attention(key)
        new = World(world.group_of, turned(world.feature, self.angle, jax.random.fold_in(key, 2)))
        found = [self._mean_error(logits, new, size, jax.random.fold_in(key, 3)) for size in self.sizes]
        facts = (data.patches, data.group_size, float(data.spurious_rate))
        return {
            "error": np.array([error for error, _ in found]),
            "cosine": np.array([cosine for _, cosine in found]),
            "floor": theory.unassociated_error_floor(*facts, np.array(self.sizes)),
            "glm_error": theory.glm_error(*facts),
        }

    def _attention(self, key: Key) -> tuple[Array, World]:
        data, network = self.data, self.network
        world = data.world(jax.random.fold_in(key, 0))
        if self.learner not in WITH_ASSOCIATION:
            return tied_logits(world.group_of, network.diagonal, 0.0, 0.0), world
        if self.pretraining == "population":
            trained = train(pretraining(data, network, self.target_slack), key=jax.random.fold_in(key, 1))
            return tied_logits(world.group_of, network.diagonal, trained["same"], trained["cross"]), world
        source = RealisticDescent(data, network, SlowAttention(2e-4, 1e4, steps=2500, logs=3), self.source_samples, 100)
        source_key = jax.random.fold_in(key, 1)
        trained = train(source, key=source_key)
        feature = source.data.world(jax.random.fold_in(source_key, 0), jnp.dtype(source.precision)).feature
        return jnp.asarray(trained["logits"], float), World(jnp.asarray(trained["group_of"]), feature.astype(float))

    def _mean_error(self, logits: Array, world: World, size: int, key: Key) -> tuple[float, float]:
        once = {
            "one-step": one_step_error,
            "initial": one_step_error,
            "descent": value_descent_error,
            "linear": linear_error,
            "pair-counting": pair_counting_error,
            "scratch": scratch_error,
            "mlp": mlp_error,
        }[self.learner]
        keys = [jax.random.fold_in(jax.random.fold_in(key, size), r) for r in range(self.repeats)]
        runs = np.array([once(self, logits, world, size, k) for k in keys])
        return float(np.mean(runs[:, 0])), float(np.mean(runs[:, 1]))


def pretraining(data: Structured, network: PositionalNetwork, target_slack: float) -> IdealisedDescent:
    """Population descent at this size; the logits move fast because D is what makes them slow."""
    rate = 1e-4 * (64 / data.patches) ** 2
    descent = SlowAttention(rate, 3e4 * (data.patches / 64) ** 2, steps=60_000, logs=3)
    return IdealisedDescent(
        data, network, descent, alignment=0.02, target_slack=target_slack, draws=500, test_draws=10
    )


# Learners with association ---------------------------------------------------------------------------------------------


def one_step_error(trial: Transfer, logits: Array, world: World, size: int, key: Key) -> tuple[float, float]:
    """One normalised gradient step from `v = 0`, then prediction with the given attention.

    At 0 the gradient is along `sum_i y_i sum_j X_j`: images enter through sums of coefficients and of orthogonal
    Gaussians, so no `d`-dimensional patch is ever drawn and `d` may be as large as the theorem wants.
    """
    return _one_step(trial.data, trial.shape, trial.test_samples, logits, world.group_of, size, key)


@eqx.filter_jit
def _one_step(data: Structured, shape: Shape, tests: int, logits: Array, group_of: Array, size: int, key: Key):
    part = [jax.random.fold_in(key, i) for i in range(4)]
    labels, coefficients = data.draw_coefficients(part[0], group_of, size, jnp.float64)
    along = jnp.mean(labels * jnp.sum(coefficients, axis=1))
    spread = data.noise * jnp.sqrt(data.patches / size)
    across = spread * jnp.sqrt(2 * jax.random.gamma(part[1], (data.dimension - 1) / 2) / data.dimension)
    cosine = along / jnp.hypot(along, across)
    labels, coefficients = data.draw_coefficients(part[2], group_of, tests, jnp.float64)
    noise = jax.random.normal(part[3], coefficients.shape) * data.noise / jnp.sqrt(data.dimension)
    margin = labels * output_of_projections(
        cosine * coefficients + jnp.sqrt(1 - cosine**2) * noise, logits, shape
    )
    return jnp.mean(margin <= 0), cosine


class Refit(Descending):
    """Gradient descent on the value vector with frozen attention (the risk of Section 5)."""

    network: PositionalNetwork
    data: Structured
    logits: Float[Array, "patches patches"]
    world: World
    learning_rate: float = 1e-4
    samples: int = fixed(default=16)
    steps: int = fixed(default=1500)
    precision: Precision = fixed(default="float64")

    @property
    def log_steps(self) -> tuple[int, ...]:
        return (0, self.steps)

    def start(self, key: Key):
        images = self.data.draw(jax.random.fold_in(key, 0), self.world, self.samples)
        value = self.network.init * jax.random.normal(jax.random.fold_in(key, 1), self.world.feature.shape)
        return value, images.patches, images.labels

    def _risk(self, value: Array, patches: Array, labels: Array) -> Array:
        shape = self.network.shape(self.data.dimension)
        return jnp.mean(logistic_loss(labels * output_of_projections(patches @ value, self.logits, shape)))

    def step(self, state):
        value, patches, labels = state
        return value - self.learning_rate * jax.grad(self._risk)(value, patches, labels), patches, labels

    def loss(self, state) -> Array:
        return self._risk(*state)

    def finished(self, state) -> Array:
        return self._risk(*state) <= 0.01

    def watch(self, state) -> Record:
        return {"loss": self._risk(*state)}

    def record(self, state) -> Record:
        return {"value": state[0]}


def value_descent_error(trial: Transfer, logits: Array, world: World, size: int, key: Key) -> tuple[float, float]:
    """Gradient descent on the value vector from a Gaussian start, on real patches."""
    refit = Refit(trial.network, trial.data, logits, world, samples=size)
    value = jnp.asarray(train(refit, key=jax.random.fold_in(key, 0))["value"])
    unseen = draw_unseen(trial.data, jax.random.fold_in(key, 1), world, trial.test_samples)
    out = output_of_projections(projections(trial.data, value, world, unseen), logits, trial.shape)
    cosine = value @ world.feature / jnp.linalg.norm(value)
    return float(jnp.mean(unseen.labels * out <= 0)), float(cosine)


# Learners without ------------------------------------------------------------------------------------------------------


def _told(trial: Transfer, world: World, size: int, key: Key) -> tuple[np.ndarray, ...]:
    """Labels and coefficients along the (told) new feature, for training and for testing."""
    found = []
    for i, count in enumerate((size, trial.test_samples)):
        labels, coefficients = trial.data.draw_coefficients(jax.random.fold_in(key, i), world.group_of, count)
        found += [np.asarray(labels), np.asarray(coefficients)]
    return tuple(found)


def linear_error(trial: Transfer, logits: Array, world: World, size: int, key: Key) -> tuple[float, float]:
    """Logistic regression on the coefficients."""
    labels, inputs, test_labels, test_inputs = _told(trial, world, size, key)
    weights = logistic_regression(inputs, labels, ridge=1e-2)
    return float(np.mean(test_labels * (test_inputs @ weights[:-1] + weights[-1]) <= 0)), 1.0


def pair_counting_error(trial: Transfer, logits: Array, world: World, size: int, key: Key) -> tuple[float, float]:
    """Groups guessed from agreement: each patch is joined with the `C - 1` patches whose product of coefficients has
    the largest mean; the prediction is that of network (T) with all attention on the guessed partners.

    It is the cheapest way to the groups known here: two patches of a group agree once in `L` images.
    """
    labels, inputs, test_labels, test_inputs = _told(trial, world, size, key)
    agreement = inputs.T @ inputs / size
    np.fill_diagonal(agreement, np.inf)
    partners = np.argsort(agreement, axis=1)[:, -trial.data.group_size :]
    pooled = test_inputs[:, partners].mean(axis=2)
    return float(np.mean(test_labels * np.sum(pooled**trial.network.degree, axis=1) <= 0)), 1.0


class Scratch(Descending):
    """Network (T) trained on coefficients: the value vector is one number, the feature being told."""

    network: PositionalNetwork
    descent: SlowAttention
    coefficients: Float[Array, "samples patches"]
    labels: Float[Array, " samples"]
    precision: Precision = fixed(default="float64")

    @property
    def steps(self) -> int:
        return self.descent.steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return (0, self.descent.steps)

    def start(self, key: Key):
        patches = self.coefficients.shape[1]
        logits = self.network.init * jax.random.normal(key, (patches, patches))
        diagonal = jnp.eye(patches, dtype=bool)
        return Weights(jnp.where(diagonal, self.network.diagonal, logits), jnp.asarray(0.02))

    def _risk(self, weights: Weights) -> Array:
        out = output_of_projections(weights.value * self.coefficients, weights.logits, self.network.shape(1))
        return jnp.mean(logistic_loss(self.labels * out))

    def step(self, state: Weights) -> Weights:
        gradient = jax.grad(self._risk)(state)
        rate, off = self.descent.learning_rate, 1 - jnp.eye(len(state.logits))
        return Weights(
            state.logits - rate * self.descent.attention_rate * off * gradient.logits,
            state.value - rate * gradient.value,
        )

    def loss(self, state: Weights) -> Array:
        return state.value

    def finished(self, state: Weights) -> Array:
        return jnp.asarray(False)

    def watch(self, state: Weights) -> Record:
        return {"loss": self._risk(state)}

    def record(self, state: Weights) -> Record:
        return {"logits": state.logits, "value": state.value}


def scratch_error(trial: Transfer, logits: Array, world: World, size: int, key: Key) -> tuple[float, float]:
    """Attention and value vector trained together on the downstream sample alone."""
    labels, inputs, test_labels, test_inputs = _told(trial, world, size, key)
    shrink = (64 / trial.data.patches) ** 2
    descent = SlowAttention(1e-4 * shrink, 3e4 / shrink, steps=2500, logs=3)
    fitted = train(Scratch(trial.network, descent, jnp.asarray(inputs), jnp.asarray(labels)), key=key)
    out = output_of_projections(fitted["value"] * jnp.asarray(test_inputs), jnp.asarray(fitted["logits"]), trial.shape)
    return float(np.mean(test_labels * np.asarray(out) <= 0)), 1.0


class Perceptron(Descending):
    """A ReLU network of width 128 on the coefficients, Adam on the whole sample."""

    coefficients: Float[Array, "samples patches"]
    labels: Float[Array, " samples"]
    descent: Descent = Descent(learning_rate=3e-3, target_loss=0.02, method="adam", steps=400)
    precision: Precision = fixed(default="float64")

    @property
    def steps(self) -> int:
        return self.descent.steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return (0, self.descent.steps)

    def start(self, key: Key) -> Fit:
        inner, outer = jax.random.split(key)
        patches = self.coefficients.shape[1]
        params = (
            jax.random.normal(inner, (patches, 128)) * (2 / patches) ** 0.5,
            jnp.zeros(128),
            jax.random.normal(outer, (128,)) * 128**-0.5,
        )
        return begin(self.descent, self._risk, params)

    def _risk(self, params) -> Array:
        return jnp.mean(logistic_loss(self.labels * _perceptron(params, self.coefficients)))

    def step(self, state: Fit) -> Fit:
        return advance(self.descent, self._risk, state)

    def loss(self, state: Fit) -> Array:
        return state.loss

    def finished(self, state: Fit) -> Array:
        return state.loss <= self.descent.target_loss

    def watch(self, state: Fit) -> Record:
        return {"loss": state.loss}

    def record(self, state: Fit) -> Record:
        return dict(zip(("inner", "bias", "outer"), state.params, strict=True))


def _perceptron(params, inputs: Array) -> Array:
    inner, bias, outer = params
    return jax.nn.relu(inputs @ inner + bias) @ outer


def mlp_error(trial: Transfer, logits: Array, world: World, size: int, key: Key) -> tuple[float, float]:
    """A small ReLU network on the coefficients."""
    labels, inputs, test_labels, test_inputs = _told(trial, world, size, key)
    fitted = train(Perceptron(jnp.asarray(inputs), jnp.asarray(labels)), key=key)
    out = _perceptron([jnp.asarray(fitted[name]) for name in ("inner", "bias", "outer")], jnp.asarray(test_inputs))
    return float(np.mean(test_labels * np.asarray(out) <= 0)), 1.0
