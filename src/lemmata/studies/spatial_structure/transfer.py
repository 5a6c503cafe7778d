"""Transfer: the same groups, another feature, few samples (Section 5). The paper proves this and never plots it.

Learners *with* association keep pre-trained attention and only refit the value vector; learners *without* it do not
know the groups. The latter are told the new feature, so that what they lack is the partition and nothing else.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import softmax

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
    `realistic` (descent on `source_samples` images). `angle` turns the new feature from the old one. `needed` is the
    size at which the error falls to `target_error`, infinite where it does not.
    """

    dims = dict.fromkeys(("size", "error", "cosine", "predicted_cosine", "floor"), ("downstream",))
    paired = ("learner", "pretraining")

    data: Structured = Structured()
    network: PositionalNetwork = PositionalNetwork()
    angle: float = np.pi / 2
    target_slack: float = 0.03
    target_error: float = 0.05
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
        task = Task(self, np.asarray(logits), new)
        learner = {
            "one-step": one_step,
            "initial": one_step,
            "descent": value_descent,
            "linear": linear,
            "pair-counting": pair_counting,
            "scratch": scratch,
            "mlp": perceptron,
        }[self.learner]
        found = [
            learner(task, jax.random.fold_in(jax.random.fold_in(key, 3), r)) for r in range(self.repeats)
        ]
        facts = (data.patches, data.group_size, float(data.spurious_rate))
        error = np.mean([[error for error, _ in run] for run in found], axis=0)
        return {
            "size": np.array(self.sizes),
            "error": error,
            "needed": samples_needed(np.array(self.sizes), error, self.target_error),
            "largest": max(self.sizes),
            "predicted_cosine": theory.one_step_cosine(*facts[:2], np.array(self.sizes), float(data.noise)),
            "cosine": np.mean([[cosine for _, cosine in run] for run in found], axis=0),
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
            return tied_logits(
                world.group_of, network.diagonal, float(trained["same"]), float(trained["cross"])
            ), world
        source = RealisticDescent(
            data=data,
            network=network,
            descent=SlowAttention(2e-4, 1e4, steps=2500, logs=3),
            samples=self.source_samples,
            test_samples=100,
        )
        source_key = jax.random.fold_in(key, 1)
        trained = train(source, key=source_key)
        feature = source.data.world(jax.random.fold_in(source_key, 0), jnp.dtype(source.precision)).feature
        return jnp.asarray(trained["logits"], float), World(
            jnp.asarray(trained["group_of"]), feature.astype(float)
        )


def samples_needed(sizes: np.ndarray, error: np.ndarray, target: float) -> float:
    """The size from which on the error stays at or below the target, between sizes by the logarithm of both.

    >>> round(samples_needed(np.array([1, 4, 16]), np.array([0.2, 0.05, 0.01]), 0.1), 6)
    2.0
    """
    above = np.flatnonzero(error > target)
    if len(above) == 0:
        return float(sizes[0])
    last = above[-1]
    if last == len(sizes) - 1:
        return float("inf")
    x, y = np.log(sizes[last : last + 2]), np.log(np.maximum(error[last : last + 2], 1e-6))
    return float(np.exp(x[0] + (x[1] - x[0]) * (y[0] - np.log(target)) / (y[0] - y[1])))


class Task(NamedTuple):
    """A downstream task: the trial, the attention to predict with, and the groups with the new feature."""

    trial: Transfer
    logits: np.ndarray
    world: World

    def images(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels and coefficients along the new feature."""
        data, group_of = self.trial.data, np.asarray(self.world.group_of)
        labels = rng.choice([-1.0, 1.0], count)
        signal = rng.integers(data.group_count, size=count)
        spin = rng.random((count, data.patches))
        spurious = np.where(
            spin < data.spurious_rate / 2, 1.0, np.where(spin < data.spurious_rate, -1.0, 0.0)
        )
        return labels, np.where(group_of == signal[:, None], labels[:, None], spurious)

    def error(self, labels: np.ndarray, pooled: np.ndarray) -> float:
        """Error of network (T) from its pooled projections `sum_j S_ij u_j`."""
        network = self.trial.network
        z = pooled * pooled.shape[1]
        # a power of the square: NumPy is slow at odd powers
        slope = (z * z) ** ((network.degree - 1) // 2) + network.linear
        return float(np.mean(labels * np.sum(z * slope, axis=1) <= 0))


Run = list[tuple[float, float]]
"""Error and cosine of the value vector at every downstream size."""


def numbers(key: Key) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint32).tolist())


def pretraining(data: Structured, network: PositionalNetwork, target_slack: float) -> IdealisedDescent:
    """Population descent at this size; the logits move fast because D is what makes them slow."""
    rate = 1e-4 * (64 / data.patches) ** 2
    descent = SlowAttention(rate, 3e4 * (data.patches / 64) ** 2, steps=60_000, logs=3)
    return IdealisedDescent(
        data=data,
        network=network,
        descent=descent,
        alignment=0.02,
        target_slack=target_slack,
        draws=500,
        test_draws=10,
    )


# Learners with association ---------------------------------------------------------------------------------------------


def one_step(task: Task, key: Key) -> Run:
    """One normalised gradient step from `v = 0`, then prediction with the given attention.

    At 0 the gradient is along `sum_i y_i sum_j X_j`: images enter through sums of coefficients and of orthogonal
    Gaussians, so no `d`-dimensional patch is ever drawn and `d` may be as large as the theorem wants.
    """
    trial, rng = task.trial, numbers(key)
    data = trial.data
    labels, coefficients = task.images(rng, max(trial.sizes))
    along = np.cumsum(labels * coefficients.sum(axis=1)) / np.arange(1, max(trial.sizes) + 1)
    test_labels, test = task.images(rng, trial.test_samples)
    scores = softmax(task.logits / trial.shape.temperature, axis=1).T
    signal = test @ scores
    noise = rng.normal(size=test.shape) @ scores * data.noise / np.sqrt(data.dimension)
    run = []
    for size in trial.sizes:
        spread = rng.chisquare(data.dimension - 1) / data.dimension * data.noise**2 * data.patches / size
        cosine = along[size - 1] / np.hypot(along[size - 1], np.sqrt(spread))
        pooled = cosine * signal + np.sqrt(1 - cosine**2) * noise
        run.append((task.error(test_labels, pooled), float(cosine)))
    return run


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


def value_descent(task: Task, key: Key) -> Run:
    """Gradient descent on the value vector from a Gaussian start, on real patches."""
    trial, world, logits = task.trial, task.world, jnp.asarray(task.logits)
    unseen = draw_unseen(trial.data, jax.random.fold_in(key, 1), world, trial.test_samples)
    run = []
    for size in trial.sizes:
        refit = Refit(network=trial.network, data=trial.data, logits=logits, world=world, samples=size)
        value = jnp.asarray(train(refit, key=jax.random.fold_in(key, 0))["value"])
        out = output_of_projections(projections(trial.data, value, world, unseen), logits, trial.shape)
        cosine = value @ world.feature / jnp.linalg.norm(value)
        run.append((float(jnp.mean(unseen.labels * out <= 0)), float(cosine)))
    return run


# Learners without (all told the feature: they see coefficients) ---------------------------------------------------------


def _told(task: Task, key: Key) -> tuple[np.ndarray, ...]:
    rng = numbers(key)
    return *task.images(rng, max(task.trial.sizes)), *task.images(rng, task.trial.test_samples)


def linear(task: Task, key: Key) -> Run:
    """Logistic regression on the coefficients."""
    labels, inputs, test_labels, test = _told(task, key)
    run = []
    for size in task.trial.sizes:
        weights = logistic_regression(inputs[:size], labels[:size], ridge=1e-2)
        run.append((float(np.mean(test_labels * (test @ weights[:-1] + weights[-1]) <= 0)), 1.0))
    return run


def pair_counting(task: Task, key: Key) -> Run:
    """Groups guessed from agreement: each patch is joined with the `C - 1` patches whose product of coefficients has
    the largest mean; the prediction is that of network (T) with all attention on the guessed partners.

    It is the cheapest way to the groups known here: two patches of a group agree once in `L` images.
    """
    _, inputs, test_labels, test = _told(task, key)
    run = []
    for size in task.trial.sizes:
        agreement = inputs[:size].T @ inputs[:size]
        np.fill_diagonal(agreement, np.inf)
        chosen = np.argsort(agreement, axis=1)[:, -task.trial.data.group_size :]
        partners = np.zeros_like(agreement)
        np.put_along_axis(partners, chosen, 1.0 / task.trial.data.group_size, axis=1)
        run.append((task.error(test_labels, test @ partners.T), 1.0))
    return run


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


def scratch(task: Task, key: Key) -> Run:
    """Attention and value vector trained together on the downstream sample alone."""
    trial = task.trial
    labels, inputs, test_labels, test = _told(task, key)
    shrink = (64 / trial.data.patches) ** 2
    descent = SlowAttention(1e-4 * shrink, 3e4 / shrink, steps=2500, logs=3)
    run = []
    for size in trial.sizes:
        start = Scratch(
            network=trial.network,
            descent=descent,
            coefficients=jnp.asarray(inputs[:size]),
            labels=jnp.asarray(labels[:size]),
        )
        fitted = train(start, key=key)
        scores = softmax(fitted["logits"] / trial.shape.temperature, axis=1)
        run.append((task.error(test_labels, fitted["value"] * test @ scores.T), 1.0))
    return run


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


def perceptron(task: Task, key: Key) -> Run:
    """A small ReLU network on the coefficients."""
    labels, inputs, test_labels, test = _told(task, key)
    run = []
    for size in task.trial.sizes:
        fitted = train(
            Perceptron(coefficients=jnp.asarray(inputs[:size]), labels=jnp.asarray(labels[:size])), key=key
        )
        out = _perceptron([fitted[name] for name in ("inner", "bias", "outer")], jnp.asarray(test))
        run.append((float(np.mean(test_labels * np.asarray(out) <= 0)), 1.0))
    return run
