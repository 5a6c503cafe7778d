"""The one compiled training loop, and the parts of a training that studies share: losses, optimisers, batches.

The loop advances many runs of one structure together, in *lanes*, by blocks of steps; runs that have stopped give their
lane to a waiting run between blocks, so that they do not keep costing. Studies never write a training loop.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, PyTree

from lemmata.errors import require
from lemmata.trial import Descending, Key, Record, State, fixed, random_key, with_precision

RUNNING, CONVERGED, CAPPED, DIVERGED, FAILED = range(5)
STATUS = ("running", "converged", "capped", "diverged", "failed")


class Descent(eqx.Module):
    """How a training goes: method, step size, batch, stop rule, and what is looked at on the way.

    Full batch when `batch` is None. The run stops at the first step with training loss at most `target_loss`.
    """

    learning_rate: float = 0.1
    target_loss: float = 0.01
    momentum: float = 0.9
    method: Literal["gd", "momentum", "adam"] = fixed(default="gd")
    batch: int | None = fixed(default=None)
    steps: int = fixed(default=20_000)
    logs: int = fixed(default=40)

    def __check_init__(self):
        require(self.learning_rate > 0, f"the learning rate must be positive, not {self.learning_rate}.")
        require(self.steps > 0, f"a training needs at least one step, not {self.steps}.")
        require(
            self.batch is None or self.batch > 0,
            f"the batch must hold at least one sample, not {self.batch}.",
        )

    @property
    def log_steps(self) -> tuple[int, ...]:
        return log_spaced(self.steps, self.logs)

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
        return self.descent.log_steps


def log_spaced(last: int, count: int) -> tuple[int, ...]:
    """Whole numbers from 0 to `last`, about `count` of them, evenly spaced in the logarithm.

    >>> log_spaced(1000, 6)
    (0, 1, 6, 32, 178, 1000)
    """
    grid = np.unique(np.round(np.geomspace(1, last, max(count - 1, 2))).astype(int))
    return (0, *map(int, grid))


# Gradient descent on parameters ----------------------------------------------------------------------------------------


class Fit(NamedTuple):
    """The state of a gradient descent. Loss and gradient belong to `params`, so that a stop rule sees the iterate
    that it stops at."""

    params: PyTree
    memory: PyTree
    loss: Float[Array, ""]
    grads: PyTree
    step: Int[Array, ""]


def begin(descent: Descent, objective: Callable[..., Array], params: PyTree, *batch: PyTree) -> Fit:
    """The state before the first step; `objective(params, *batch)` is the training loss."""
    loss, grads = jax.value_and_grad(objective)(params, *batch)
    return Fit(params, descent.optimiser.init(params), loss, grads, jnp.zeros((), jnp.int32))


def advance(descent: Descent, objective: Callable[..., Array], fit: Fit, *batch: PyTree) -> Fit:
    """One optimiser step, then loss and gradient (on the given batch) at the new parameters."""
    updates, memory = descent.optimiser.update(fit.grads, fit.memory, fit.params)
    params = optax.apply_updates(fit.params, updates)
    loss, grads = jax.value_and_grad(objective)(params, *batch)
    return Fit(params, memory, loss, grads, fit.step + 1)


def batch_at(key: Key, step: Int[Array, ""], samples: int, size: int) -> Int[Array, " size"]:
    """The samples of the mini-batch at a step: each epoch walks once through a fresh random order.

    Samples that do not fill a last batch wait for another epoch.
    """
    per_epoch = samples // size
    order = jax.random.permutation(jax.random.fold_in(key, step // per_epoch), samples)
    return jax.lax.dynamic_slice(order, ((step % per_epoch) * size,), (size,))


def logistic_loss(margin: Float[Array, "..."]) -> Float[Array, "..."]:
    """`log(1 + exp(-z))` of the margin `z = y f(x)`."""
    return jax.nn.softplus(-margin)


def hinge_loss(margin: Float[Array, "..."]) -> Float[Array, "..."]:
    """`max(0, 1 - z)` of the margin `z = y f(x)`."""
    return jax.nn.relu(1 - margin)


# The loop --------------------------------------------------------------------------------------------------------------


class Lanes(NamedTuple):
    """Runs that advance together; every array has the lane as its first dimension.

    `curves[name][lane, log]` is filled as the run passes its logged steps and is NaN after it has stopped.
    """

    trial: Descending
    state: State
    step: Int[Array, " lane"]
    status: Int[Array, " lane"]
    curves: dict[str, Array]


@jax.jit
def fill(trial: Descending, key: Key, lanes: Lanes | None, where: Bool[Array, " lane"]) -> Lanes:
    """Start fresh runs in the marked lanes, one after another. All arguments carry the lane as first dimension."""

    def fresh(one: Descending, one_key: Key) -> Lanes:
        state = one.start(one_key)
        seen = one.watch(state)
        logs = len(one.log_steps)
        curves = {
            name: jnp.full((logs, *v.shape), jnp.nan, _inexact(v)).at[0].set(v) for name, v in seen.items()
        }
        return Lanes(
            one, state, jnp.zeros((), jnp.int32), _status(one, state, jnp.zeros((), jnp.int32)), curves
        )

    if lanes is None:
        return jax.lax.map(lambda lane: fresh(*lane), (trial, key))
    return jax.lax.map(
        lambda lane: jax.lax.cond(lane[3], fresh, lambda *_: lane[2], *lane[:2]), (trial, key, lanes, where)
    )


@jax.jit
def run_block(lanes: Lanes, most: Int[Array, ""], spare: Int[Array, ""]) -> Lanes:
    """Advance all running lanes by up to `most` steps, until no more than `spare` of them are still running."""
    example = jax.tree.map(lambda leaf: leaf[0], lanes.trial)
    log_steps = jnp.asarray(example.log_steps)
    width = lanes.step.shape[0]

    def going(carry: tuple[Array, Lanes]) -> Array:
        count, now = carry
        return (count < most) & (jnp.sum(now.status == RUNNING) > spare)

    def body(carry: tuple[Array, Lanes]) -> tuple[Array, Lanes]:
        count, now = carry
        running = now.status == RUNNING
        state = jax.vmap(lambda one, s: one.step(s))(now.trial, now.state)
        if width > 1:
            state = _select(running, state, now.state)
        step = now.step + running.astype(now.step.dtype)
        status = jnp.where(running, jax.vmap(_status)(now.trial, state, step), now.status)
        log = jnp.searchsorted(log_steps, step)
        due = running & (log_steps[jnp.minimum(log, len(log_steps) - 1)] == step)
        curves = jax.lax.cond(
            jnp.any(due), lambda: _write(now.trial, state, now.curves, log, due), lambda: now.curves
        )
        return count + 1, Lanes(now.trial, state, step, status, curves)

    return jax.lax.while_loop(going, body, (jnp.zeros_like(most), lanes))[1]


@jax.jit
def read(lanes: Lanes, where: Bool[Array, " lane"]) -> Record:
    """The records of the marked lanes as they stand; zeros for the others."""

    def kept(lane: tuple[Descending, State, Array]) -> Record:
        trial, state, wanted = lane
        shapes = jax.eval_shape(lambda: trial.record(state))
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return jax.lax.cond(wanted, lambda: trial.record(state), lambda: nothing)

    return jax.lax.map(kept, (lanes.trial, lanes.state, where))


def train(trial: Descending, seed: int = 0, key: Key | None = None) -> dict[str, np.ndarray]:
    """Run one trial to its end, here and now, and return its record: for trying things, and for training in phases.

    Without a key the run is the cell `(trial, seed)` and gives what a sweep would store for it.
    """
    one = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], with_precision(trial))
    keys = (random_key(trial, seed) if key is None else key)[None]
    lanes = fill(one, keys, None, jnp.ones(1, bool))
    lanes = run_block(lanes, jnp.asarray(trial.steps, jnp.int32), jnp.asarray(0, jnp.int32))
    return {name: values[0] for name, values in lane_records(lanes, jnp.ones(1, bool)).items()}


def lane_records(lanes: Lanes, where: Bool[Array, " lane"]) -> dict[str, np.ndarray]:
    """Everything the lab stores of the marked lanes: the trial's own record, its curves (`loss` watched becomes
    `loss_curve`), how (`status`) and when (`steps`) it stopped."""
    curves = {f"{name}_curve": value for name, value in lanes.curves.items()}
    kept = {**read(lanes, where), **curves, "steps": lanes.step, "status": lanes.status}
    return {name: np.asarray(value) for name, value in kept.items()}


def _status(trial: Descending, state: State, step: Array) -> Array:
    stopped = jnp.where(trial.finished(state), CONVERGED, jnp.where(step >= trial.steps, CAPPED, RUNNING))
    return jnp.where(jnp.isfinite(trial.loss(state)), stopped, DIVERGED).astype(jnp.int32)


def _write(
    trial: Descending, state: State, curves: dict[str, Array], log: Array, due: Array
) -> dict[str, Array]:
    seen = jax.vmap(lambda one, s: one.watch(s))(trial, state)

    def put(curve: Array, value: Array) -> Array:
        lane = jnp.arange(due.shape[0])
        index = jnp.where(due, log, curve.shape[1])  # out of range: dropped
        return curve.at[lane, index].set(value.astype(curve.dtype), mode="drop")

    return {name: put(curves[name], value) for name, value in seen.items()}


def _select(where: Bool[Array, " lane"], new: PyTree, old: PyTree) -> PyTree:
    def choose(a: Array, b: Array) -> Array:
        return jnp.where(where.reshape(where.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(choose, new, old)


def _inexact(value: Array) -> jnp.dtype:
    return value.dtype if jnp.issubdtype(value.dtype, jnp.inexact) else jnp.dtype(jnp.float32)
