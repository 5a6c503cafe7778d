"""How a training goes: one description of a descent (loss, batches, step sizes, stop rule), and the kind of trial in which a
study only says what is drawn, what is minimised and what to look at.
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

from lemmata.errors import require
from lemmata.threefry import key_of
from lemmata.trial import Descending, Key, fixed

Loss = Literal["logistic", "hinge", "squared", "cross-entropy", "linear"]


MOST_STEPS = 2**31 - 1
"""Steps are counted in 32 bits."""

MOST_LOGS = 100_000
"""Every logged step is a number in every curve of every run."""


class Descent(eqx.Module):
    """How a training goes: loss, method, step size, batches, stop rule, and what is looked at on the way.

    Batches: `full`; `epochs` (each walks once through a fresh random order); `single-pass` (every sample once, then the end);
    `with-replacement`; `fresh` (new samples at every step). `attention_rate` multiplies the step size of the group of
    parameters that a study calls its attention. Stop rules: `target` (the loss at the iterate is at most `target_loss`; with
    batches it is the loss of the next batch), `fitted` (every training sample has loss 0: hinge), `cap` (the last of `steps` is
    the end, not a failure to stop).
    Logged: `logs` steps, evenly spaced or in the logarithm, or exactly those named by `log_at`.
    """

    learning_rate: float = 0.1
    target_loss: float = 0.01
    momentum: float = 0.9
    attention_rate: float = 1.0
    method: Literal["gd", "momentum", "adam"] = fixed(default="gd")
    loss: Loss = fixed(default="logistic")
    batches: Literal["full", "epochs", "single-pass", "with-replacement", "fresh"] = fixed(default="full")
    batch: int = fixed(default=1)
    stop: Literal["target", "fitted", "cap"] = fixed(default="target")
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
        return self.log_steps_to(self.steps)

    def log_steps_to(self, last: int) -> tuple[int, ...]:
        """The logged steps of a training that ends at `last`."""
        if self.log_at:
            return tuple(sorted({0, *self.log_at}))
        return log_spaced(last, self.logs) if self.spacing == "log" else evenly_spaced(last, self.logs)

    @property
    def optimiser(self) -> optax.GradientTransformation:
        if self.method == "adam":
            return optax.adam(self.learning_rate)
        return optax.sgd(self.learning_rate, momentum=self.momentum if self.method == "momentum" else None)


class Trained(Descending):
    """A trial whose step cap and logged steps are those of its `descent`."""

    descent: eqx.AbstractVar[Descent]

    @property
    def steps(self) -> int:
        return self.descent.steps

    @property
    def log_steps(self) -> tuple[int, ...]:
        return self.descent.log_steps_to(self.steps)


@cache  # every cell of a sweep asks, again and again
def log_spaced(last: int, count: int) -> tuple[int, ...]:
    """Whole numbers from 0 to `last`, about `count` of them, evenly spaced in the logarithm.

    >>> log_spaced(1000, 6)
    (0, 1, 6, 32, 178, 1000)
    """
    grid = np.unique(np.round(np.geomspace(1, last, max(count - 1, 2))).astype(int))
    return (0, *map(int, grid))


def evenly_spaced(last: int, count: int) -> tuple[int, ...]:
    """Whole numbers from 0 to `last`, about `count` of them, evenly spaced.

    >>> evenly_spaced(100, 5)
    (0, 25, 50, 75, 100)
    """
    return tuple(sorted({round(k * last / (count - 1)) for k in range(count)}))


# Losses ----------------------------------------------------------------------------------------------------------------


def logistic_loss(margin: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log(1 + exp(-z))` of the margin `z = y f(x)`."""
    return jax.nn.softplus(-margin)


def hinge_loss(margin: Float[Array, "..."]) -> Float[Array, "..."]:
    """`max(0, 1 - z)` of the margin `z = y f(x)`."""
    return jax.nn.relu(1 - margin)


def loss_of(loss: Loss, output: Float[Array, "*batch"], target: Array) -> Float[Array, "*batch"]:
    """The loss of a prediction: `target` is the label (+1, -1) for logistic, hinge and linear, the value for squared, and for
    cross-entropy the index of the class, the outputs then having the classes as last dimension."""
    if loss == "squared":
        return 0.5 * (output - target) ** 2
    if loss == "cross-entropy":
        return optax.softmax_cross_entropy_with_integer_labels(output, target)
    margin = output * target
    return {"logistic": logistic_loss, "hinge": hinge_loss, "linear": lambda z: -z}[loss](margin)


# Gradient steps --------------------------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """The state of a gradient descent. Loss and gradient belong to `params`, so that a stop rule sees the iterate
    that it stops at."""

    params: PyTree
    memory: PyTree
    loss: Float[Array, ""]
    grads: PyTree
    step: Int[Array, ""]


Slope = Callable[..., tuple[Float[Array, ""], PyTree]]
"""`slope(params, *batch)`: loss and gradient."""


def begin(descent: Descent, slope: Slope, params: PyTree, *batch: PyTree) -> Fit:
    """The state before the first step."""
    loss, grads = slope(params, *batch)
    return Fit(params, descent.optimiser.init(params), loss, grads, jnp.zeros((), jnp.int32))


def advance(descent: Descent, slope: Slope, fit: Fit, *batch: PyTree, rates: PyTree = 1.0) -> Fit:
    """One optimiser step, then loss and gradient (on the given batch) at the new parameters.

    `rates` (a tree prefix of the parameters) multiplies the step size of groups of them.
    """
    updates, memory = descent.optimiser.update(fit.grads, fit.memory, fit.params)
    updates = jax.tree.map(lambda rate, part: jax.tree.map(lambda u: rate * u, part), rates, updates)
    params = jax.tree.map(lambda p, u: (p + u).astype(p.dtype), fit.params, updates)
    loss, grads = slope(params, *batch)
    return Fit(params, memory, loss, grads, fit.step + 1)


def batch_at(
    descent: Descent, key: Key, step: Int[Array, ""], samples: int, size: int
) -> Int[Array, " size"]:
    """The samples of the mini-batch at a step.

    In epochs and single passes each epoch walks once through a fresh random order; samples that do not fill a last batch wait
    for another epoch.
    """
    if descent.batches == "with-replacement":
        return jax.random.randint(jax.random.fold_in(key, step), (size,), 0, samples)
    per_epoch = samples // size
    order = jax.random.permutation(jax.random.fold_in(key, step // per_epoch), samples)
    return jax.lax.dynamic_slice(order, ((step % per_epoch) * size,), (size,))


def first_violation(
    satisfied: Callable[[Array], Array], samples: int, suspect: Int[Array, ""]
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """The next sample that is not satisfied, and whether there is none.

    Looking first at the sample that was last found guilty makes this cheap while the training is under way.
    """

    def going(at: tuple[Array, Array]) -> Array:
        return (at[1] < samples) & satisfied(at[0])

    def on(at: tuple[Array, Array]) -> tuple[Array, Array]:
        return (at[0] + 1) % samples, at[1] + 1

    found, seen = jax.lax.while_loop(going, on, (suspect, jnp.zeros_like(suspect)))
    return found, seen == samples


# Learners --------------------------------------------------------------------------------------------------------------


class Draw(NamedTuple):
    """What a learner starts with: initial parameters, training samples (leading dimension: the sample; None where every step
    draws fresh ones), and the world they come from (patterns, a teacher, a graph), which training does not change."""

    params: PyTree
    data: PyTree
    world: PyTree = None


class Learning(NamedTuple):
    """The state of a learner. `fit` holds parameters, loss and gradient; `key` makes batches and every random choice on the
    way; `suspect` is the sample to look at first for the stop rule `fitted`, `done` whether all samples are."""

    fit: Fit
    data: PyTree
    world: PyTree
    key: Array
    suspect: Int[Array, ""]
    done: Bool[Array, ""]

    @property
    def params(self) -> PyTree:
        return self.fit.params

    @property
    def step(self) -> Int[Array, ""]:
        return self.fit.step


class Learner(Trained):
    """Parameters trained by gradient steps on a loss. A study gives the draw, the objective, and what to watch and record;
    how batches are made, steps taken and ends found is the descent's.

    With batches `fresh` the study also gives `fresh`; with the stop rule `fitted`, `sample_loss`; `slope` where it has the
    derivatives in one pass; `rates` where groups of parameters have step sizes of their own.
    """

    @abstractmethod
    def draw(self, key: Key) -> Draw:
        """Initial parameters, training samples and their world."""

    @abstractmethod
    def objective(self, params: PyTree, batch: PyTree, world: PyTree, key: Key) -> Float[Array, ""]:
        """The mean loss over a batch; `key` is this step's own, for what is random in it (dropout, sampled nodes)."""

    def slope(
        self, params: PyTree, batch: PyTree, world: PyTree, key: Key
    ) -> tuple[Float[Array, ""], PyTree]:
        """Loss and gradient; by automatic differentiation unless a study has them in one pass."""
        return jax.value_and_grad(self.objective)(params, batch, world, key)

    def fresh(self, key: Key, world: PyTree, count: int) -> PyTree:
        """New samples (batches `fresh`)."""
        raise NotImplementedError(f"{type(self).__name__} draws no fresh samples.")

    def sample_loss(self, params: PyTree, sample: PyTree, world: PyTree) -> Float[Array, ""]:
        """The loss of one training sample (stop rule `fitted`)."""
        raise NotImplementedError(f"{type(self).__name__} does not look at single samples.")

    def rates(self, params: PyTree) -> PyTree:
        """What multiplies the step size of each group of parameters (a tree prefix)."""
        return 1.0

    @property
    def samples(self) -> int:
        """The number of training samples; needed with batches other than `full` and `fresh`, and with the stop `fitted`."""
        raise NotImplementedError(f"{type(self).__name__} does not say how many training samples it has.")

    @property
    def batch_size(self) -> int:
        fresh = self.descent.batches == "fresh"
        return self.descent.batch if fresh else min(self.descent.batch, self.samples)

    @property
    def steps(self) -> int:
        if self.descent.batches == "single-pass":
            return max(1, self.samples // self.batch_size)
        return self.descent.steps

    def start(self, key: Key) -> Learning:
        return self.start_from(key)

    def start_from(self, key: Key, data: PyTree = None, weights: PyTree = None) -> Learning:
        drawn_key, way = jax.random.split(key)
        drawn = self.draw(drawn_key)
        params = drawn.params if weights is None else weights
        samples = drawn.data if data is None else data
        zero = jnp.zeros((), jnp.int32)
        batch = self.batch(way, zero, samples, drawn.world)
        fit = begin(self.descent, self.slope, params, batch, drawn.world, _step_key(way, zero))
        begun = Learning(fit, samples, drawn.world, jax.random.key_data(way), zero, jnp.asarray(False))
        return self._looked(begun)

    def step(self, state: Learning) -> Learning:
        way, world = key_of(state.key), state.world
        coming = state.step + 1
        batch = self.batch(way, coming, state.data, world)
        rates = self.rates(state.params)
        fit = advance(self.descent, self.slope, state.fit, batch, world, _step_key(way, coming), rates=rates)
        return self._looked(state._replace(fit=fit))

    def batch(self, way: Key, step: Int[Array, ""], data: PyTree, world: PyTree) -> PyTree:
        """The samples that a step sees."""
        descent = self.descent
        if descent.batches == "full":
            return data
        if descent.batches == "fresh":
            return self.fresh(jax.random.fold_in(way, step), world, self.batch_size)
        chosen = batch_at(descent, way, step, self.samples, self.batch_size)
        return jax.tree.map(lambda part: part[chosen], data)

    def loss(self, state: Learning) -> Float[Array, ""]:
        return state.fit.loss

    def finished(self, state: Learning) -> Bool[Array, ""]:
        if self.descent.stop == "target":
            return state.fit.loss <= self.descent.target_loss
        if self.descent.stop == "cap":
            return state.step >= self.steps
        return state.done

    def _looked(self, state: Learning) -> Learning:
        if self.descent.stop != "fitted":
            return state

        def satisfied(index: Array) -> Array:
            sample = jax.tree.map(lambda part: part[index], state.data)
            return self.sample_loss(state.params, sample, state.world) <= 0

        suspect, done = first_violation(satisfied, self.samples, state.suspect)
        return state._replace(suspect=suspect, done=done)


def _step_key(way: Key, step: Int[Array, ""]) -> Key:
    """The key of a step's own random choices, apart from the one that makes its batch."""
    return jax.random.fold_in(jax.random.fold_in(way, step), 1)
