"""The trainings: realistic, idealised, full population, and realistic beside semi-idealised.

All of them describe data, network and descent with the same three parts, so that a figure can move one number and
compare processes at the same settings.
"""

from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lemmata.descent import Trained, log_spaced, logistic_loss
from lemmata.errors import require
from lemmata.studies.spatial_structure.data import Structured, World
from lemmata.studies.spatial_structure.network import (
    Gradient,
    Shape,
    Weights,
    association,
    block_projections,
    class_summary,
    in_blocks,
    output_of_projections,
    risk_gradient,
    tied_logits,
)
from lemmata.studies.spatial_structure.recursion import (
    Look,
    Moments,
    Pull,
    Tied,
    advance_tied,
    draw_moments,
    drives,
    look,
    signal_gain,
    tied_output,
    tied_risk,
    tied_scores,
)
from lemmata.trial import Key, Precision, Record, fixed


class PositionalNetwork(eqx.Module):
    """Network (T) before training. `linear` is nu, `diagonal` the frozen logit beta, `init` the Gaussian scale omega.

    The proofs use temperature 1, the definition sqrt(d); `scaling` chooses.
    """

    linear: float = 1e-3
    diagonal: float = 4.0
    init: float = 1e-3
    degree: int = fixed(default=3)
    scaling: Literal["one", "sqrt_d"] = fixed(default="one")

    def __check_init__(self):
        odd = self.degree >= 3 and self.degree % 2 == 1
        require(odd, f"the degree p of the activation must be odd and at least 3, not {self.degree}.")
        require(self.linear > 0, f"the linear coefficient nu must be positive, not {self.linear}.")
        require(self.init >= 0, f"the initial scale must not be negative, not {self.init}.")

    def shape(self, dimension: int) -> Shape:
        return Shape(self.degree, self.linear, 1.0 if self.scaling == "one" else dimension**0.5)

    @property
    def threshold(self) -> float | Array:
        """`nu^(1/(p-1))`: where the linear phase ends and where idealised descent starts."""
        return self.linear ** (1 / (self.degree - 1))


class SlowAttention(eqx.Module):
    """Plain gradient descent; the logits move with `attention_rate` times the step size of the value vector.

    The paper has one step size (`attention_rate` 1): at small sizes the logits are then a thousand times slower than
    the value vector, so figures use a larger one and say so. 0 freezes the attention.
    """

    learning_rate: float = 1e-4
    attention_rate: float = 3e4
    target_loss: float = 0.0
    steps: int = fixed(default=4000)
    logs: int = fixed(default=40)
    even_logs: bool = fixed(default=True)

    def __check_init__(self):
        require(self.learning_rate > 0, f"the learning rate must be positive, not {self.learning_rate}.")
        require(
            self.attention_rate >= 0, f"the attention rate must not be negative, not {self.attention_rate}."
        )
        require(self.steps > 0, f"a training needs at least one step, not {self.steps}.")
        require(self.logs > 2, f"at least three steps must be logged, not {self.logs}.")

    @property
    def log_steps(self) -> tuple[int, ...]:
        if self.even_logs:
            return tuple(sorted({round(k * self.steps / (self.logs - 1)) for k in range(self.logs)}))
        return log_spaced(self.steps, self.logs)


# Realistic -------------------------------------------------------------------------------------------------------------


class Unseen(NamedTuple):
    """Test images as coefficients and the noise along one direction.

    The noise is Gaussian and independent of the weights, so `<v, X_j> = <v, w*> f_j + sigma |v_perp| g_j` in law.
    """

    labels: Float[Array, " samples"]
    coefficients: Float[Array, "samples patches"]
    noise: Float[Array, "samples patches"]


class Realistic(NamedTuple):
    """State of empirical descent; risk and gradient belong to `weights`."""

    weights: Weights
    gradient: Gradient
    world: World
    patches: Float[Array, "blocks dimension block patches"]
    labels: Float[Array, "blocks block"]
    unseen: Unseen


BLOCK = 64
"""Samples that are read, projected and pulled back together; 64 images of 64 patches by 32 stay in the cache."""


class RealisticDescent(Trained):
    """Full-batch descent on a fixed sample from a Gaussian start (E)."""

    dims: ClassVar = {"logits": ("row", "column"), "group_of": ("patch",)}
    paired = ("data.partition", "data.groups", "descent", "keep_logits", "samples")

    data: Structured = Structured()
    network: PositionalNetwork = PositionalNetwork()
    descent: SlowAttention = SlowAttention()
    samples: int = fixed(default=8000)
    test_samples: int = fixed(default=4000)
    keep_logits: bool = fixed(default=False)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.samples > 0, f"a training needs at least one sample, not {self.samples}.")
        require(self.test_samples > 0, f"a test set needs at least one sample, not {self.test_samples}.")

    @property
    def shape(self) -> Shape:
        return self.network.shape(self.data.dimension)

    def start(self, key: Key) -> Realistic:
        dtype = jnp.dtype(self.precision)
        part = [jax.random.fold_in(key, i) for i in range(5)]
        world = self.data.world(part[0], dtype)
        images = self.data.draw(part[1], world, self.samples)
        patches, labels = in_blocks(images.patches, images.labels, BLOCK)
        unseen = draw_unseen(self.data, part[2], world, self.test_samples)
        weights = gaussian_weights(self.network, part[3], world)
        return Realistic(
            weights, risk_gradient(weights, patches, labels, self.shape), world, patches, labels, unseen
        )

    def step(self, state: Realistic) -> Realistic:
        rate = self.descent.learning_rate
        weights = Weights(
            state.weights.logits - rate * self.descent.attention_rate * state.gradient.logits,
            state.weights.value - rate * state.gradient.value,
        )
        gradient = risk_gradient(weights, state.patches, state.labels, self.shape)
        return state._replace(weights=weights, gradient=gradient)

    def loss(self, state: Realistic) -> Array:
        return state.gradient.loss

    def finished(self, state: Realistic) -> Array:
        return state.gradient.loss <= self.descent.target_loss

    def watch(self, state: Realistic) -> Record:
        logits, group_of = state.weights.logits, state.world.group_of
        measured = association(logits, group_of, self.data.group_count)
        tested = evaluate(self.data, state.weights, state.world, state.unseen, self.shape)
        seen = {
            "loss": state.gradient.loss,
            **tested,
            **measured,
            **class_summary(logits, group_of, self.data.group_count),
        }
        return seen | ({"logits": logits} if self.keep_logits else {})

    def record(self, state: Realistic) -> Record:
        last = {name: value for name, value in self.watch(state).items() if name != "logits"}
        weights, shape = state.weights, self.shape
        train = jax.lax.map(
            lambda b: output_of_projections(block_projections(weights.value, b), weights.logits, shape),
            state.patches,
        )
        wrong = jnp.sum((state.labels * train <= 0) & (state.labels != 0)) / jnp.sum(jnp.abs(state.labels))
        return last | {
            "train_error": wrong.astype(train.dtype),
            "logits": state.weights.logits,
            "group_of": state.world.group_of,
        }


def gaussian_weights(network: PositionalNetwork, key: Key, world: World) -> Weights:
    """Logits N(0, omega^2) off the frozen diagonal, value vector N(0, omega^2 I) (Parametrization 3.1)."""
    dtype, patches = world.feature.dtype, len(world.group_of)
    init = jnp.asarray(network.init, dtype)
    logits = init * jax.random.normal(jax.random.fold_in(key, 0), (patches, patches), dtype)
    value = init * jax.random.normal(jax.random.fold_in(key, 1), world.feature.shape, dtype)
    diagonal = jnp.asarray(network.diagonal, dtype)
    return Weights(jnp.where(jnp.eye(patches, dtype=bool), diagonal, logits), value)


def draw_unseen(data: Structured, key: Key, world: World, count: int) -> Unseen:
    dtype = world.feature.dtype
    labels, coefficients = data.draw_coefficients(jax.random.fold_in(key, 0), world.group_of, count, dtype)
    noise = jax.random.normal(jax.random.fold_in(key, 1), coefficients.shape, dtype)
    return Unseen(labels, coefficients, noise)


def projections(
    data: Structured, value: Array, world: World, unseen: Unseen
) -> Float[Array, "samples patches"]:
    """`<v, X_j>` on unseen images."""
    alignment, orthogonal = split_value(value, world)
    sigma = jnp.asarray(data.noise, value.dtype) / data.dimension**0.5
    return alignment * unseen.coefficients + sigma * orthogonal * unseen.noise


def split_value(value: Array, world: World) -> tuple[Array, Array]:
    """`<v, w*>` and the length of the rest of `v`."""
    alignment = value @ world.feature
    return alignment, jnp.linalg.norm(value - alignment * world.feature)


def evaluate(
    data: Structured, weights: Weights, world: World, unseen: Unseen, shape: Shape
) -> dict[str, Array]:
    """Error (`F = 0` counts as wrong) and loss on unseen images, and how well the value vector points."""
    alignment, orthogonal = split_value(weights.value, world)
    out = output_of_projections(projections(data, weights.value, world, unseen), weights.logits, shape)
    margin = unseen.labels * out
    return {
        "test_error": jnp.mean(margin <= 0, dtype=margin.dtype),
        "test_loss": jnp.mean(logistic_loss(margin)),
        "alignment": alignment,
        "orthogonal": orthogonal,
        "cosine": alignment / jnp.linalg.norm(weights.value),
    }


# Idealised -------------------------------------------------------------------------------------------------------------


class Idealised(NamedTuple):
    """State of the three-number recursion; `slack` (mean `sg(-yF)`) and `pull` belong to `tied`.

    `event1` is the first step at which the slack has left 1/2 by 0.1, or -1.
    """

    tied: Tied
    moments: Moments
    whole: Float[Array, "monomials draws"]
    unseen: Float[Array, "monomials tests"]
    slack: Float[Array, ""]
    pull: Pull
    step: Int[Array, ""]
    event1: Int[Array, ""]


class IdealisedDescent(Trained):
    """Descent on the population risk (P), as three numbers. The expectation is over a fixed set of `draws`.

    `alignment` is the starting value of alpha; 0 stands for the paper's `nu^(1/(p-1))`. `same` is where gamma starts.
    The run stops once the mean slack `E sg(-yF)` is at most `target_slack`.
    """

    paired = ("descent", "network.diagonal", "alignment", "same", "target_slack")
    revision = 2  # measures of the three events were changed after looking at draws of the first

    data: Structured = Structured()
    network: PositionalNetwork = PositionalNetwork(linear=1e-4, diagonal=2.0)
    descent: SlowAttention = SlowAttention(learning_rate=3e-4, attention_rate=1e3, steps=20_000)
    alignment: float = 0.0
    same: float = 0.0
    target_slack: float = 0.0
    draws: int = fixed(default=500)
    test_draws: int = fixed(default=20_000)
    precision: Precision = fixed(default="float64")

    def __check_init__(self):
        require(self.draws > 0, f"the expectation needs at least one draw, not {self.draws}.")
        require(
            self.alignment >= 0, f"the value vector must not start against the feature, not {self.alignment}."
        )

    @property
    def shape(self) -> Shape:
        return self.network.shape(self.data.dimension)

    def start(self, key: Key) -> Idealised:
        dtype = jnp.dtype(self.precision)
        moments, unseen = (
            draw_moments(self.data, self.network.degree, jax.random.fold_in(key, i), count, dtype)
            for i, count in enumerate((self.draws, self.test_draws))
        )
        threshold = jnp.asarray(self.network.threshold, dtype)
        alignment = jnp.where(self.alignment > 0, self.alignment, threshold).astype(dtype)
        tied = Tied(alignment, jnp.asarray(self.same, dtype), jnp.zeros((), dtype))
        seen = self.look(tied, moments.whole)
        never = jnp.asarray(-1, jnp.int32)
        return Idealised(tied, moments, moments.whole, unseen.whole, *seen, jnp.zeros_like(never), never)

    def look(self, tied: Tied, moments: Array) -> Look:
        data = self.data
        return look(tied, moments, self.network.diagonal, data.patches, data.group_size, self.shape)

    def step(self, state: Idealised) -> Idealised:
        tied = advance_tied(state.tied, state.pull, self.descent.learning_rate, self.descent.attention_rate)
        slack, pull = self.look(tied, state.whole)
        step = state.step + 1
        reached = (state.event1 < 0) & (jnp.abs(slack - 0.5) >= 0.1)
        event1 = jnp.where(reached, step, state.event1)
        return state._replace(tied=tied, slack=slack, pull=pull, step=step, event1=event1)

    def loss(self, state: Idealised) -> Array:
        return state.tied.alignment

    def finished(self, state: Idealised) -> Array:
        return state.slack <= self.target_slack

    def watch(self, state: Idealised) -> Record:
        data, diagonal = self.data, self.network.diagonal
        tied = state.tied
        scores = tied_scores(
            tied.same, tied.cross, diagonal, data.patches, data.group_size, self.shape.temperature
        )
        signal, other = drives(tied, state.moments, diagonal, data.patches, data.group_size, self.shape)
        train, test = (
            tied_risk(tied_output(tied, scores, moments, data.patches, self.shape))
            for moments in (state.whole, state.unseen)
        )
        return {
            "alignment": tied.alignment,
            "same": tied.same,
            "cross": tied.cross,
            "self_score": scores.self_score,
            "same_score": scores.same,
            "cross_score": scores.cross,
            "gain": signal_gain(scores, data.patches, data.group_size),
            "slack": state.slack,
            "signal_drive": signal,
            "noise_drive": other,
            "loss": train["loss"],
            "test_error": test["error"],
            "test_loss": test["loss"],
            "ties": test["ties"],
        }

    def record(self, state: Idealised) -> Record:
        return {**self.watch(state), "event1": state.event1}


# Full population descent -----------------------------------------------------------------------------------------------


class Population(NamedTuple):
    """State of population descent on all logits and the whole value vector, with fresh images at every step."""

    weights: Weights
    world: World
    loss: Float[Array, ""]
    key: Key
    step: Int[Array, ""]


class PopulationDescent(Trained):
    """Descent on the population risk without using its symmetry: every step sees `draws` fresh images.

    What Lemmas 4.1 and 4.2 say it does, it does up to Monte-Carlo noise of order `draws^(-1/2)`.
    """

    data: Structured = Structured(patches=36, spurious_rate=0.3, dimension=16)
    network: PositionalNetwork = PositionalNetwork()
    descent: SlowAttention = SlowAttention(learning_rate=2e-4, attention_rate=1e4, steps=300)
    draws: int = fixed(default=1000)
    precision: Precision = fixed(default="float64")

    @property
    def shape(self) -> Shape:
        return self.network.shape(self.data.dimension)

    def start(self, key: Key) -> Population:
        dtype = jnp.dtype(self.precision)
        world = self.data.world(jax.random.fold_in(key, 0), dtype)
        zero = jnp.zeros((), dtype)
        logits = tied_logits(world.group_of, jnp.asarray(self.network.diagonal, dtype), zero, zero)
        weights = Weights(logits, jnp.asarray(self.network.threshold, dtype) * world.feature)
        return Population(
            weights, world, jnp.log(2.0 + zero), jax.random.fold_in(key, 1), jnp.zeros((), jnp.int32)
        )

    def step(self, state: Population) -> Population:
        images = self.data.draw(jax.random.fold_in(state.key, state.step), state.world, self.draws)
        patches, labels = in_blocks(images.patches, images.labels, BLOCK)
        gradient = risk_gradient(state.weights, patches, labels, self.shape)
        rate = self.descent.learning_rate
        weights = Weights(
            state.weights.logits - rate * self.descent.attention_rate * gradient.logits,
            state.weights.value - rate * gradient.value,
        )
        return state._replace(weights=weights, loss=gradient.loss, step=state.step + 1)

    def loss(self, state: Population) -> Array:
        return state.loss

    def finished(self, state: Population) -> Array:
        return state.loss <= self.descent.target_loss

    def watch(self, state: Population) -> Record:
        alignment, orthogonal = split_value(state.weights.value, state.world)
        summary = class_summary(state.weights.logits, state.world.group_of, self.data.group_count)
        return {"loss": state.loss, "alignment": alignment, "orthogonal": orthogonal, **summary}

    def record(self, state: Population) -> Record:
        return self.watch(state)
