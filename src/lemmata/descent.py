"""Describes gradient descents: loss, batches, step sizes, stop rule.

A study defines a `Learner` with three things: what is drawn, what is minimised, and what is recorded. The `Descent` says the
rest.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from lemmata.arguments import checks_arguments
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.threefry import key_of
from lemmata.trial import Descending, Key, fixed, kind

Loss = Literal["logistic", "hinge", "squared", "cross-entropy", "linear"]


MOST_STEPS = 2**31 - 1
"""Steps are counted in 32 bits."""

MOST_LOGS = 100_000
"""The largest number of logged steps, as each is a number in every curve of every run."""


@checks_arguments
class Descent(eqx.Module):
    """The settings of a gradient descent.

    `learning_rate`: the step size.
    `target_loss`: the loss of the stop rule `target`.
    `momentum`: the momentum of the method `momentum`.
    `attention_rate`: multiplies the step size of the parameters that a study calls its attention.
    `method`: plain gradient descent, with momentum, or Adam.
    `loss`: the loss of a sample.
    `batches`: `full`; `epochs`: each goes once through a new random order; `single-pass`: every sample once, then the end;
        `with-replacement`; `fresh`: new samples at every step.
    `batch`: the number of samples in a batch.
    `stop`: `target`: the loss is at most `target_loss` (with batches, the loss of the next batch); `epoch`: at the end of an
        epoch, the mean loss of its batches is at most `target_loss`; `fitted`: every training sample has loss 0; `cap`: after
        `steps` steps, which then count as converged.
    `steps`: the largest number of steps.
    `logs`: the number of logged steps.
    `spacing`: whether logged steps are spaced evenly or in the logarithm.
    `log_at`: the logged steps, in place of `logs` and `spacing`.

    >>> Descent(learning_rate=0.5, steps=100, logs=5, spacing="even").log_steps
    (0, 25, 50, 75, 100)
    >>> Descent(momentum=1.0)
    Traceback (most recent call last):
    lemmata.errors.BadInput: the momentum must lie in [0, 1), not 1.0.
    """

    learning_rate: float = 0.1
    target_loss: float = 0.01
    momentum: float = 0.9
    attention_rate: float = 1.0
    method: Literal["gd", "momentum", "adam"] = fixed(default="gd")
    loss: Loss = fixed(default="logistic")
    batches: Literal["full", "epochs", "single-pass", "with-replacement", "fresh"] = fixed(default="full")
    batch: int = fixed(default=1)
    stop: Literal["target", "epoch", "fitted", "cap"] = fixed(default="target")
    steps: int = fixed(default=20_000)
    logs: int = fixed(default=40)
    spacing: Literal["log", "even"] = fixed(default="log")
    log_at: tuple[int, ...] = fixed(default=())

    def __check_init__(self):
        require(self.learning_rate > 0, f"the learning rate must be positive, not {self.learning_rate}.")
        require(
            self.attention_rate >= 0, f"the attention rate must not be negative, not {self.attention_rate}."
        )
        require(self.target_loss >= 0, f"the target loss must not be negative, not {self.target_loss}.")
        require(0 <= self.momentum < 1, f"the momentum must lie in [0, 1), not {self.momentum}.")
        require(0 < self.steps <= MOST_STEPS, f"a training takes 1 to {MOST_STEPS} steps, not {self.steps}.")
        require(self.batch > 0, f"a batch must hold at least one sample, not {self.batch}.")
        require(1 < self.logs <= MOST_LOGS, f"2 to {MOST_LOGS} steps are logged, not {self.logs}.")
        ordered = all(a < b for a, b in zip(self.log_at, self.log_at[1:], strict=False))
        inside = not self.log_at or (self.log_at[0] >= 0 and self.log_at[-1] <= self.steps)
        require(
            ordered and inside, f"log_at takes increasing steps from 0 to {self.steps}, not {self.log_at}."
        )

    @property
    def log_steps(self) -> tuple[int, ...]:
        """The logged steps of a training that takes all its steps."""
        return self.log_steps_to(self.steps)

    @checks_arguments
    def log_steps_to(self, last: int) -> tuple[int, ...]:
        """Return the logged steps of a training that ends at the step `last`."""
        require(last > 0, f"a training ends after at least one step, not {last}.")
        if self.log_at:
            return tuple(sorted({0, *self.log_at}))
        return log_spaced(last, self.logs) if self.spacing == "log" else evenly_spaced(last, self.logs)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        """The method as an optimiser of optax."""
        if self.method == "adam":
            return optax.adam(self.learning_rate)
        return optax.sgd(self.learning_rate, momentum=self.momentum if self.method == "momentum" else None)


class Trained(Descending):
    """A trial whose largest number of steps and logged steps are those of its `descent`."""

    descent: eqx.AbstractVar[Descent]

    @property
    def steps(self) -> int:
        return self.descent.steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return self.descent.log_steps_to(self.steps)


@cache  # called several times for every cell of a sweep
def log_spaced(last: int, count: int) -> tuple[int, ...]:
    """Return about `count` integers from 0 to `last`, evenly spaced in the logarithm.

    >>> log_spaced(1000, 6)
    (0, 1, 6, 32, 178, 1000)
    """
    grid = np.unique(np.round(np.geomspace(1, last, max(count - 1, 2))).astype(int))
    return (0, *map(int, grid))


def evenly_spaced(last: int, count: int) -> tuple[int, ...]:
    """Return about `count` integers from 0 to `last`, evenly spaced.

    >>> evenly_spaced(100, 5)
    (0, 25, 50, 75, 100)
    """
    return tuple(sorted({round(k * last / (count - 1)) for k in range(count)}))


# Losses ----------------------------------------------------------------------------------------------------------------


def logistic_loss(margin: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `log(1 + exp(-z))` of the margin `z = y f(x)`."""
    return jax.nn.softplus(-margin)


def hinge_loss(margin: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return `max(0, 1 - z)` of the margin `z = y f(x)`."""
    return jax.nn.relu(1 - margin)


def loss_of(loss: Loss, output: Float[Array, "*batch"], target: Array) -> Float[Array, "*batch"]:
    """Return the loss of a prediction.

    `target` is the label (+1 or -1) for logistic, hinge and linear, and the value for squared. For cross-entropy it is the
    index of the class, and the last dimension of the output is the class."""
    if loss == "squared":
        return 0.5 * (output - target) ** 2
    if loss == "cross-entropy":
        return optax.softmax_cross_entropy_with_integer_labels(output, target)
    margin = output * target
    return {"logistic": logistic_loss, "hinge": hinge_loss, "linear": lambda z: -z}[loss](margin)


# Gradient steps --------------------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """The state of a gradient descent.

    `params`: the parameters.
    `memory`: the state of the optimiser.
    `loss`: the loss at `params`, so that a stop rule uses the iterate at which it stops.
    `grads`: the gradient at `params`.
    `step`: the number of steps taken.
    """

    params: PyTree
    memory: PyTree
    loss: Float[Array, ""]
    grads: PyTree
    step: Int[Array, ""]


Slope = Callable[..., tuple[Float[Array, ""], PyTree]]
"""A function `slope(params, *batch)` that returns loss and gradient."""


def begin(descent: Descent, slope: Slope, params: PyTree, *batch: PyTree) -> Fit:
    """Return the state before the first step."""
    loss, grads = slope(params, *batch)
    return Fit(params, descent.optimiser.init(params), loss, grads, jnp.zeros((), jnp.int32))


def advance(descent: Descent, slope: Slope, fit: Fit, *batch: PyTree, rates: PyTree = 1.0) -> Fit:
    """Take one optimiser step, then compute loss and gradient at the new parameters on the given batch.

    `rates`, a tree prefix of the parameters, multiplies the step size of groups of parameters.
    """
    updates, memory = descent.optimiser.update(fit.grads, fit.memory, fit.params)
    updates = jax.tree.map(lambda rate, part: jax.tree.map(lambda u: rate * u, part), rates, updates)
    params = jax.tree.map(lambda p, u: (p + u).astype(p.dtype), fit.params, updates)
    loss, grads = slope(params, *batch)
    return Fit(params, memory, loss, grads, fit.step + 1)


def batch_at(
    descent: Descent, key: Key, step: Int[Array, ""], samples: int, size: int
) -> Int[Array, " size"]:
    """Return the indices of the samples in the mini-batch of a step.

    In epochs and single passes, each epoch goes through a new random order. Samples that do not fill a last batch are left out
    of that epoch.
    """
    if descent.batches == "with-replacement":
        return jax.random.randint(jax.random.fold_in(key, step), (size,), 0, samples)
    per_epoch = samples // size
    order = jax.random.permutation(jax.random.fold_in(key, step // per_epoch), samples)
    return jax.lax.dynamic_slice(order, ((step % per_epoch) * size,), (size,))


def cycled(samples: PyTree, step: Int[Array, ""], size: int) -> PyTree:
    """Return the batch of a step from samples that are used in order, repeatedly.

    It serves trainings on fresh samples when the user gives a fixed set of samples.
    """
    count = jax.tree.leaves(samples)[0].shape[0]
    chosen = (jnp.asarray(step, int) * size + jnp.arange(size)) % count
    return jax.tree.map(lambda part: part[chosen], samples)


def first_violation(
    satisfied: Callable[[Array], Array], samples: int, suspect: Int[Array, ""]
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """Return the first sample that is not satisfied, and whether all are satisfied.

    The search starts at `suspect`. Checking first the sample that failed last time makes this cheap during a training.
    """

    def going(at: tuple[Array, Array]) -> Array:
        return (at[1] < samples) & satisfied(at[0])

    def on(at: tuple[Array, Array]) -> tuple[Array, Array]:
        return (at[0] + 1) % samples, at[1] + 1

    found, seen = jax.lax.while_loop(going, on, (suspect, jnp.zeros_like(suspect)))
    return found, seen == samples


# Learners --------------------------------------------------------------------------------------------------------------


class Draw(NamedTuple):
    """What a learner starts with.

    `params`: the initial parameters.
    `data`: the training samples, with the sample as first dimension; None if every step draws fresh ones.
    `world`: what the samples come from and training does not change, such as patterns, a teacher or a graph.
    """

    params: PyTree
    data: PyTree
    world: PyTree = None


class Learning(NamedTuple):
    """The state of a learner.

    `fit`: parameters, loss and gradient.
    `data`: the training samples.
    `world`: what they come from.
    `key`: the random key of batches and of random choices during the training.
    `suspect`: the sample that the stop rule `fitted` checks first.
    `done`: whether all samples are fitted.
    `epochs`: with the stop rule `epoch`, the sum of the losses in this epoch and the mean loss of the last one.
    """

    fit: Fit
    data: PyTree
    world: PyTree
    key: Array
    suspect: Int[Array, ""]
    done: Bool[Array, ""]
    epochs: tuple[Float[Array, ""], Float[Array, ""]] | None = None

    @property
    def params(self) -> PyTree:
        return self.fit.params

    @property
    def step(self) -> Int[Array, ""]:
        return self.fit.step


class Learner(Trained):
    """A trial that trains parameters by gradient steps on a loss.

    A study defines `draw`, `objective`, `watch` and `record`. The `descent` defines batches, steps and the stop rule. The study
    also defines `fresh` for fresh batches, `sample_loss` for the stop rule `fitted`, `slope` if it computes derivatives in one
    pass, and `rates` if groups of parameters have different step sizes.
    """

    @abstractmethod
    def draw(self, key: Key) -> Draw:
        """Return initial parameters, training samples and their world."""

    @abstractmethod
    def objective(self, params: PyTree, batch: PyTree, world: PyTree, key: Key) -> Float[Array, ""]:
        """Return the mean loss of a batch. `key` belongs to this step, for random choices such as dropout or sampled nodes."""

    def slope(
        self, params: PyTree, batch: PyTree, world: PyTree, key: Key
    ) -> tuple[Float[Array, ""], PyTree]:
        """Return loss and gradient, by automatic differentiation unless a study overrides this."""
        return jax.value_and_grad(self.objective)(params, batch, world, key)

    def fresh(self, key: Key, world: PyTree, count: int) -> PyTree:
        """Return new samples, for batches `fresh`."""
        raise NotImplementedError(f"{type(self).__name__} draws no fresh samples.")

    def sample_loss(self, params: PyTree, sample: PyTree, world: PyTree) -> Float[Array, ""]:
        """Return the loss of one training sample, for the stop rule `fitted`."""
        raise NotImplementedError(f"{type(self).__name__} does not look at single samples.")

    def rates(self, params: PyTree) -> PyTree:
        """Return factors of the step sizes of groups of parameters, as a tree prefix."""
        return 1.0

    @property
    def samples(self) -> int:
        """The number of training samples. Needed for batches other than `full` and `fresh`, and for the stop rule `fitted`."""
        raise NotImplementedError(f"{type(self).__name__} does not say how many training samples it has.")

    @property
    def batch_size(self) -> int:
        """The number of samples in a batch, at most all of them."""
        fresh = self.descent.batches == "fresh"
        return self.descent.batch if fresh else min(self.descent.batch, self.samples)

    @property
    def steps(self) -> int:
        if self.descent.batches == "single-pass":
            return max(1, self.samples // self.batch_size)
        return self.descent.steps

    def start(self, key: Key) -> Learning:
        return self.start_from(key)

    def takes(self, key: Key) -> Taken:
        """Accept data and weights of the form that `draw` returns, with as many samples, unless a study allows any number."""
        drawn = jax.eval_shape(lambda: self.draw(key))
        refusal = f"{kind(self)} draws fresh samples at every step and takes no data; set descent.batches to another kind."
        return Taken(refusal if drawn.data is None else drawn.data, drawn.params)

    def start_from(self, key: Key, data: PyTree = None, weights: PyTree = None) -> Learning:
        drawn_key, path_key = jax.random.split(key)
        params, samples, world = self.draw_with(drawn_key, data, weights)
        zero = jnp.zeros((), jnp.int32)
        batch = self.batch(path_key, zero, samples, world)
        fit = begin(self.descent, self.slope, params, batch, world, _step_key(path_key, zero))
        epochs = (
            (jnp.zeros_like(fit.loss), jnp.full_like(fit.loss, jnp.inf))
            if self.descent.stop == "epoch"
            else None
        )
        begun = Learning(fit, samples, world, jax.random.key_data(path_key), zero, jnp.asarray(False), epochs)
        return self._checked(begun)

    def draw_with(self, key: Key, data: PyTree, weights: PyTree) -> Draw:
        """Return the draw with data or weights of the user in place (None: not given).

        A study whose world is computed from samples or weights overrides this, to compute it from those that are used."""
        drawn = self.draw(key)
        return Draw(
            drawn.params if weights is None else weights, drawn.data if data is None else data, drawn.world
        )

    def step(self, state: Learning) -> Learning:
        path_key, world = key_of(state.key), state.world
        upcoming = state.step + 1
        batch = self.batch(path_key, upcoming, state.data, world)
        rates = self.rates(state.params)
        fit = advance(
            self.descent, self.slope, state.fit, batch, world, _step_key(path_key, upcoming), rates=rates
        )
        return self._checked(state._replace(fit=fit, epochs=self._summed(state)))

    def _summed(self, state: Learning) -> tuple[Float[Array, ""], Float[Array, ""]] | None:
        """Return the losses of the epochs after one more batch, that of the loss before the step."""
        if state.epochs is None:
            return None
        per_epoch = self.samples // self.batch_size
        total, last = state.epochs[0] + state.fit.loss, state.epochs[1]
        over = (state.step + 1) % per_epoch == 0
        return jnp.where(over, 0.0, total), jnp.where(over, total / per_epoch, last)

    def batch(self, path_key: Key, step: Int[Array, ""], data: PyTree, world: PyTree) -> PyTree:
        """Return the samples of a step."""
        descent = self.descent
        if descent.batches == "full":
            return data
        if descent.batches == "fresh":
            return self.fresh(jax.random.fold_in(path_key, step), world, self.batch_size)
        chosen = batch_at(descent, path_key, step, self.samples, self.batch_size)
        return jax.tree.map(lambda part: part[chosen], data)

    def loss(self, state: Learning) -> Float[Array, ""]:
        return state.fit.loss

    def finished(self, state: Learning) -> Bool[Array, ""]:
        if self.descent.stop == "target":
            return state.fit.loss <= self.descent.target_loss
        if self.descent.stop == "epoch":
            assert state.epochs is not None
            return state.epochs[1] <= self.descent.target_loss
        if self.descent.stop == "cap":
            return state.step >= self.steps
        return state.done

    def _checked(self, state: Learning) -> Learning:
        if self.descent.stop != "fitted":
            return state

        def satisfied(index: Array) -> Array:
            sample = jax.tree.map(lambda part: part[index], state.data)
            return self.sample_loss(state.params, sample, state.world) <= 0

        suspect, done = first_violation(satisfied, self.samples, state.suspect)
        return state._replace(suspect=suspect, done=done)


def _step_key(path_key: Key, step: Int[Array, ""]) -> Key:
    """Return the key of the random choices in a step, which differs from the key of its batch."""
    return jax.random.fold_in(jax.random.fold_in(path_key, step), 1)
