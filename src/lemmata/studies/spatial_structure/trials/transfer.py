"""Transfer: the same groups, another feature, few samples (Section 5). The paper proves this and never plots it.

Learners *with* association keep pre-trained attention and learn the value vector; they are not told the new feature. Learners
*without* it do not know the groups: most are told the feature instead, so that the groups are all that they lack; `untold` is
told neither. Positions are in the order of their groups, which no learner makes use of.
"""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy
from jaxtyping import Array, Float

from lemmata.descent import Descent, Draw, Learner, Learning, logistic_loss
from lemmata.errors import require
from lemmata.loop import train
from lemmata.own import require_signs
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import PositionalNetwork, Weights, tied_logits
from lemmata.studies.spatial_structure.trials.baselines import logistic_regression
from lemmata.studies.spatial_structure.trials.images import ImageDescent
from lemmata.studies.spatial_structure.trials.recursion import IdealisedDescent
from lemmata.trial import Computed, Key, Precision, Record, fixed, put_all

Name = Literal[
    "one-step", "descent", "initial", "linear", "pair-counting", "label-counting", "scratch", "untold", "mlp"
]
ASSOCIATED = ("one-step", "descent")


class Transfer(Computed):
    """Test error of one learner over downstream sample sizes, averaged over repeats.

    With association: `one-step` (one normalised gradient step from 0) and `descent` (gradient descent) on the value
    vector, attention frozen as pre-trained. Without: `initial` (one step with untrained attention), `linear` (logistic
    regression), `pair-counting` (groups guessed from how often pairs of patches agree), `label-counting` (the same among
    patches that agree with the label), `scratch` (network (T) trained from the start), `mlp` (a small ReLU network), all but
    the first told the feature; `untold` is network (T) from scratch on the patches themselves.

    `pretraining` is `population` (the idealised descent at this size, until its loss is `target_loss`) or `realistic`
    (descent on `source_samples` images). `needed` is the size at which the error falls to `target_error` (see
    `samples_needed`).
    """

    name: ClassVar[str] = "spatial-structure/transfer"
    may_be_missing: ClassVar[tuple[str, ...]] = ("needed",)  # infinite outside the sizes
    dims: ClassVar = dict.fromkeys(("size", "error", "cosine"), ("downstream",))
    paired: ClassVar = ("learner", "pretraining")

    data: Structured = Structured()
    network: PositionalNetwork = PositionalNetwork()
    target_loss: float = 0.05
    target_error: float = 0.05
    learner: Name = fixed(default="one-step")
    pretraining: Literal["population", "realistic"] = fixed(default="population")
    sizes: tuple[int, ...] = fixed(default=(1, 2, 4, 8, 16, 32, 64))
    source_samples: int = fixed(default=2000)
    repeats: int = fixed(default=40)
    test_samples: int = fixed(default=2000)

    def __check_init__(self):
        require(len(self.sizes) > 0 and min(self.sizes) > 0, "downstream sample sizes must be positive.")
        require(self.repeats > 0, f"an average needs at least one repeat, not {self.repeats}.")

    def compute(self, key: Key) -> dict[str, object]:
        task = Task(self, self.attention(jax.random.fold_in(key, 0)))
        learner = {
            "one-step": one_step,
            "initial": one_step,
            "descent": value_descent,
            "linear": linear,
            "pair-counting": counting,
            "label-counting": counting,
            "scratch": scratch,
            "untold": scratch,
            "mlp": perceptron,
        }[self.learner]
        runs = [learner(task, jax.random.fold_in(jax.random.fold_in(key, 1), r)) for r in range(self.repeats)]
        error, cosine = np.mean(runs, axis=0).T
        sizes = np.array(self.sizes)
        return {
            "size": sizes,
            "error": error,
            "cosine": cosine,
            "needed": samples_needed(sizes, error, float(self.target_error)),
            "largest": max(self.sizes),
        }

    def attention(self, key: Key) -> np.ndarray:
        """The logits that the downstream learner is given."""
        data, network = self.data, self.network
        groups = jnp.arange(data.patches) // data.group_size
        if self.learner not in ASSOCIATED:
            return np.asarray(tied_logits(groups, network.diagonal, 0.0, 0.0))
        if self.pretraining == "population":
            descent = suited(
                data, network, 1e-3, stop="target", target_loss=float(self.target_loss), steps=60_000
            )
            start = 0.1 * float(descent.learning_rate) ** 0.5  # well below where the sigmoid moves
            source = IdealisedDescent(data, network, descent, alignment=start, draws=500, test_draws=10)  # pyright: ignore[reportArgumentType]  (precision is abstract above, not the first field)
            run = train(source, key=key)
            return np.asarray(tied_logits(groups, network.diagonal, float(run["same"]), float(run["cross"])))
        descent = suited(data, network, 1.3e-4, steps=3000)
        run = train(
            ImageDescent(data, network, descent, samples=self.source_samples, test_samples=1),  # pyright: ignore[reportArgumentType]  (precision is abstract above, not the first field)
            key=key,
        )
        order = np.argsort(run["group_of"], kind="stable")
        return np.asarray(run["logits"], float)[np.ix_(order, order)]


def suited(data: Structured, network: PositionalNetwork, growth: float, **options) -> Descent:
    """Step sizes that suit a setting: the value vector's as large as is stable (0.1 / G^2), the logits' such that gamma grows
    by `growth` a step at first."""
    (D, C, _), p = data.facts, network.degree
    scores = theory.tied_scores(D, C, network.diagonal, tau=network.temperature(data.dimension))
    alpha = theory.event1_alignment_scale(C, p, scores.gain)
    logits = growth / theory.same_growth(D, C, p, alpha, scores, slack=0.1)
    rate = 0.1 / scores.gain**2
    return Descent(
        **{"learning_rate": rate, "attention_rate": logits / rate, "stop": "cap", "logs": 2} | options
    )


def samples_needed(sizes: np.ndarray, error: np.ndarray, target: float) -> float:
    """The size from which on the error stays at or below the target, between sizes by the logarithm of both; infinite where
    no size is enough, and minus infinity where the smallest already is.

    >>> round(samples_needed(np.array([1, 4, 16]), np.array([0.2, 0.05, 0.01]), 0.1), 6)
    2.0
    """
    above = np.flatnonzero(error > target)
    if len(above) == 0:
        return float("-inf")
    last = above[-1]
    if last == len(sizes) - 1:
        return float("inf")
    x, y = np.log(sizes[last : last + 2]), np.log(np.maximum(error[last : last + 2], 1e-6))
    return float(np.exp(x[0] + (x[1] - x[0]) * (y[0] - np.log(target)) / (y[0] - y[1])))


class Task(NamedTuple):
    """A downstream task: the trial, and the attention to predict with."""

    trial: Transfer
    logits: np.ndarray

    def images(self, rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Labels and coefficients along the new feature."""
        data = self.trial.data
        labels = rng.choice([-1.0, 1.0], count)
        signal = rng.integers(data.group_count, size=count)
        spin = rng.random((count, data.patches))
        q = data.spurious_rate
        spurious = np.where(spin < q / 2, 1.0, np.where(spin < q, -1.0, 0.0))
        groups = np.arange(data.patches) // data.group_size
        return labels, np.where(groups == signal[:, None], labels[:, None], spurious)

    def error(self, labels: np.ndarray, pooled: np.ndarray) -> float:
        """Error of network (T) from its pooled projections `sum_j S_ij u_j`."""
        network = self.trial.network
        z = pooled * pooled.shape[1]
        # a power of the square: NumPy is slow at odd powers
        slope = (z * z) ** ((network.degree - 1) // 2) + network.linear
        return float(np.mean(labels * np.sum(z * slope, axis=1) <= 0))


Run = list[tuple[float, float]]
"""Error and cosine of the value vector (1 where the feature is told) at every downstream size."""


def numbers(key: Key) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint32).tolist())


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
    scores = scipy.special.softmax(task.logits / trial.network.temperature(data.dimension), axis=1).T
    signal = test @ scores
    noise = rng.normal(size=test.shape) @ scores * data.noise / np.sqrt(data.dimension)
    run = []
    for size in trial.sizes:
        spread = rng.chisquare(data.dimension - 1) / data.dimension * data.noise**2 * data.patches / size
        cosine = along[size - 1] / np.hypot(along[size - 1], np.sqrt(spread))
        pooled = cosine * signal + np.sqrt(1 - cosine**2) * noise
        run.append((task.error(test_labels, pooled), float(cosine)))
    return run


def value_descent(task: Task, key: Key) -> Run:
    """Gradient descent on the value vector from a Gaussian start, attention frozen, on real patches of a new feature."""
    trial, network = task.trial, task.trial.network
    groups = np.arange(trial.data.patches) // trial.data.group_size
    data = put_all(trial.data, {"partition": "given", "groups": tuple(groups.tolist())})
    scores = scipy.special.softmax(task.logits / network.temperature(data.dimension), axis=1)
    gain = data.patches * np.mean(np.sum(scores * (groups == groups[:, None]), axis=1))
    descent = Descent(
        learning_rate=float(0.1 / gain**2), attention_rate=0.0, target_loss=0.01, steps=3000, logs=2
    )
    value = network.init * jax.random.normal(jax.random.fold_in(key, 0), (data.dimension,), jnp.float32)
    weights = Weights(jnp.asarray(task.logits, jnp.float32), value)
    run = []
    for size in trial.sizes:
        refit = ImageDescent(data, network, descent, samples=size, test_samples=trial.test_samples)  # pyright: ignore[reportArgumentType]  (precision is abstract above, not the first field)
        found = train(refit, key=jax.random.fold_in(key, 1), weights=weights)
        run.append((float(found["test_error"]), float(found["cosine"])))
    return run


# Learners without ------------------------------------------------------------------------------------------------------


def _told(task: Task, key: Key) -> tuple[np.ndarray, ...]:
    """Training and test labels and coefficients, for learners that are told the feature."""
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


def counting(task: Task, key: Key) -> Run:
    """Groups guessed from agreement: each patch is joined with the `C - 1` patches that agree with it most often (ties by
    lot); the prediction is that of network (T) with all attention on the guessed partners.

    Two patches of a group agree once in `L` images. Pairs are counted by the product of their coefficients, or, where
    labels are used, by how often both are equal to the label.
    """
    trial, rng = task.trial, numbers(jax.random.fold_in(key, 1))
    labels, inputs, test_labels, test = _told(task, key)
    if trial.learner == "label-counting":
        inputs = (inputs * labels[:, None] > 0).astype(float)
    (D, C, _), run = trial.data.facts, []
    for size in trial.sizes:
        agreement = inputs[:size].T @ inputs[:size] + 0.5 * rng.random((D, D))
        np.fill_diagonal(agreement, np.inf)
        chosen = np.argpartition(agreement, -C, axis=1)[:, -C:]
        partners = scipy.sparse.csr_array(
            (np.full(D * C, 1 / C), chosen.ravel(), np.arange(0, D * C + 1, C)), (D, D)
        )
        run.append((task.error(test_labels, (partners @ test.T).T), 1.0))
    return run


def scratch(task: Task, key: Key) -> Run:
    """Network (T) trained on the downstream sample alone: on patches without noise, which tells it the feature, or
    (`untold`) on the patches as they are."""
    trial = task.trial
    told = {"noise": 0.0, "dimension": 2} if trial.learner == "scratch" else {}
    data = put_all(trial.data, {"partition": "random", **told})
    descent = suited(data, trial.network, 1.3e-4, steps=3000)
    run = []
    for size in trial.sizes:
        found = train(
            ImageDescent(data, trial.network, descent, samples=size, test_samples=trial.test_samples),  # pyright: ignore[reportArgumentType]  (precision is abstract above, not the first field)
            key=key,
        )
        run.append((float(found["test_error"]), float(found["cosine"])))
    return run


class Perceptron(Learner):
    """A ReLU network of width 128 on the coefficients, Adam on the whole sample."""

    name: ClassVar[str] = "spatial-structure/perceptron"

    data: Structured = Structured()
    descent: Descent = Descent(learning_rate=3e-3, target_loss=0.02, method="adam", steps=400, logs=2)
    samples: int = fixed(default=1000)
    test_samples: int = fixed(default=1000)
    precision: Precision = fixed(default="float64")

    def draw(self, key: Key) -> Draw:
        dtype, patches = jnp.dtype(self.precision), self.data.patches
        part = [jax.random.fold_in(key, i) for i in range(5)]
        group_of = self.data.group_of(part[0])
        seen, unseen = (
            self.data.draw_coefficients(k, group_of, count, dtype)
            for k, count in ((part[1], self.samples), (part[2], self.test_samples))
        )
        inner = jax.random.normal(part[3], (patches, 128), dtype) * (2 / patches) ** 0.5
        outer = jax.random.normal(part[4], (128,), dtype) * 128**-0.5
        return Draw((inner, jnp.zeros(128, dtype), outer), seen, unseen)

    def check_own(self, data: tuple[Array, Array] | None, weights: tuple[Array, ...] | None) -> None:
        if data is not None:
            require_signs("data[0] (labels)", data[0])

    def _margin(self, params: tuple[Array, ...], batch: tuple[Array, Array]) -> Float[Array, " samples"]:
        labels, coefficients = batch
        inner, bias, outer = params
        return labels * (jax.nn.relu(coefficients @ inner + bias) @ outer)

    def objective(self, params, batch, world, key: Key) -> Float[Array, ""]:
        return jnp.mean(logistic_loss(self._margin(params, batch)))

    def watch(self, state: Learning) -> Record:
        return {"loss": state.fit.loss}

    def record(self, state: Learning) -> Record:
        margin = self._margin(state.params, state.world)
        return {"test_error": jnp.mean(margin <= 0, dtype=margin.dtype)}


def perceptron(task: Task, key: Key) -> Run:
    """A small ReLU network on the coefficients."""
    trial, run = task.trial, []
    for size in trial.sizes:
        net = Perceptron(trial.data, samples=size, test_samples=trial.test_samples)  # pyright: ignore[reportArgumentType]  (precision is abstract above, not the first field)
        run.append((float(train(net, key=key)["test_error"]), 1.0))
    return run
