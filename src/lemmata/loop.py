"""The compiled training loop. It advances many runs of one structure together, in *lanes*, by blocks of steps.

Between blocks, the lane of a run that has stopped is given to a waiting run. Studies never write a training loop.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from lemmata import device
from lemmata.arguments import checks_arguments
from lemmata.errors import BadInput, require
from lemmata.guard import brief, check, double
from lemmata.own import accepted
from lemmata.programs import traced_once
from lemmata.status import CAPPED, CONVERGED, DIVERGED, RUNNING
from lemmata.trial import (
    Descending,
    Key,
    Record,
    State,
    Tracks,
    Trial,
    kind,
    random_key,
    require_fields,
    require_seeds,
    with_precision,
)


class Lanes(NamedTuple):
    """Runs that advance together. The first dimension of every array is the lane.

    `trial`: the trials of the runs.
    `state`: their states.
    `step`: the number of steps taken.
    `status`: one of the numbers in `lemmata.status`.
    `logs`: the number of logged steps so far.
    `curves`: values at the logged steps, `curves[name][lane, log]`; NaN after the run has stopped.
    `tracks`: what the trial follows at every step.
    """

    trial: Descending
    state: State
    step: Int[Array, " lane"]
    status: Int[Array, " lane"]
    logs: Int[Array, " lane"]
    curves: dict[str, Array]
    tracks: Tracks


def _own(trial: Descending, *_: Any) -> Descending:
    return trial


def _of_lanes(lanes: Lanes, *_: Any) -> Descending:
    return lanes.trial


BRIEF = brief()
"""Compiler options for programs that a run executes once. They compile in half the time and run a tenth slower."""


@traced_once(_own, BRIEF)
def begin(trial: Descending, key: Key) -> Lanes:
    """Start one run. The result has no dimension of lanes, so that one program serves any number of lanes."""
    untouched = _copy(trial)
    return _begun(trial, trial.start(key))._replace(trial=untouched)


def begin_supplied(trial: Descending, key: Key) -> Lanes:
    """Start one run with the data and weights that it reads from files, if any."""
    supply = trial.supplied(key)
    if supply.data is None and supply.weights is None:
        return begin(trial, key)
    return _given(trial, key, *supply)


@traced_once(_own, BRIEF)
def _given(trial: Descending, key: Key, data: PyTree, weights: PyTree) -> Lanes:
    """Start a run with data or weights that the user gave."""
    untouched = _copy(trial)
    return _begun(trial, trial.start_from(key, data, weights))._replace(trial=untouched)


def stack_runs(runs: Sequence[Lanes]) -> Lanes:
    """Put runs into lanes."""
    return _by_leaf(lambda one, *others: np.stack([one, *others]) if others else one[None], *runs)


def replace_runs(lanes: Lanes, runs: Mapping[int, Lanes]) -> Lanes:
    """Put other runs into some of the lanes."""

    def put(leaf: np.ndarray, *others: np.ndarray) -> np.ndarray:
        changed = leaf.copy()
        for lane, other in zip(runs, others, strict=True):
            changed[lane] = other
        return changed

    return _by_leaf(put, lanes, *runs.values())


def run_in_lane(lanes: Lanes, lane: int) -> Lanes:
    """Return the run in a lane."""
    return _by_leaf(lambda leaf: leaf[lane], lanes)


def select_lanes(lanes: Lanes, kept: Sequence[int]) -> Lanes:
    """Return some of the lanes."""
    return _by_leaf(lambda leaf: leaf[list(kept)], lanes)


def _by_leaf(change: Callable[..., np.ndarray], *trees: PyTree) -> PyTree:
    """Apply a NumPy function to every leaf. For small arrays NumPy is faster than the dispatch of JAX."""

    def changed(*leaves: Any) -> Any:
        if not jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
            return change(*map(np.asarray, leaves))
        data = change(*(np.asarray(jax.random.key_data(leaf)) for leaf in leaves))
        return jax.random.wrap_key_data(jnp.asarray(data), impl=jax.random.key_impl(leaves[0]))

    return jax.tree.map(changed, *trees)


def run_block(lanes: Lanes, most: Int[Array, ""], spare: Int[Array, ""]) -> Lanes:
    """Advance all running lanes by up to `most` steps, or until at most `spare` of them are still running."""
    run = _run_briefly_compiled if lanes.trial.steps_by_kernel else _run
    return eqx.combine(run(lanes, most, spare), lanes)


def _block(lanes: Lanes, most: Int[Array, ""], spare: Int[Array, ""]) -> Lanes:
    """Return the parts of the lanes that change, and None for the others, as returning samples would copy them.

    The inner loop ends when a lane reaches a logged step, so that the code of `watch` occurs once, outside the steps. It also
    ends when a run stops: its state is saved, and its lane keeps stepping with the others. Selecting between old and new
    weights in every step instead would make short steps 5 % slower.
    """
    example = jax.tree.map(lambda leaf: leaf[0], lanes.trial)
    log_steps = jnp.asarray(example.log_steps)
    changing = _changing(lanes)

    def due(now: Lanes) -> Bool[Array, " lane"]:
        return (now.logs < len(log_steps)) & (
            log_steps[jnp.minimum(now.logs, len(log_steps) - 1)] == now.step
        )

    def going(count: Array, now: Lanes) -> Array:
        return (count < most) & (jnp.sum(now.status == RUNNING) > spare)

    def advance(carry: tuple[Array, Lanes]) -> tuple[Array, Lanes]:
        count, now = carry
        running = now.status == RUNNING
        state = _stepped(now.trial, now.state)
        step = now.step + running.astype(now.step.dtype)
        status = jnp.where(running, jax.vmap(_status)(now.trial, state, step), now.status)
        tracks = jax.vmap(_follow)(now.trial, state, step, running, now.tracks)
        return count + 1, now._replace(state=state, step=step, status=status, tracks=tracks)

    def stretch(carry: tuple[Array, Lanes, State]) -> tuple[Array, Lanes, State]:
        """Record the lanes at a logged step, then advance to the next logged step or the next end of a run.

        `cond` skips the recording in most blocks, as it can cost as much as a hundred steps."""
        count, now, ended = carry
        seen, was = due(now), now.status
        curves = jax.lax.cond(jnp.any(seen), lambda: _write(now, seen), lambda: now.curves)
        now = now._replace(curves=curves, logs=now.logs + seen)
        count, now = jax.lax.while_loop(
            lambda c: going(*c) & jnp.all(c[1].status == was) & ~jnp.any(due(c[1])), advance, (count, now)
        )
        return count, now, _select(now.status != was, eqx.filter(now.state, changing), ended)

    _, now, ended = jax.lax.while_loop(
        lambda c: going(c[0], c[1]) | jnp.any(due(c[1])),
        stretch,
        (jnp.zeros_like(most), lanes, eqx.filter(lanes.state, changing)),
    )
    last = _select(now.status == RUNNING, eqx.filter(now.state, changing), ended)
    return now._replace(trial=None, state=last)


def _stepped(trials: Descending, states: State) -> State:
    return jax.vmap(lambda trial, state: trial.step(state))(trials, states)


def _changing(lanes: Lanes) -> PyTree[bool]:
    """Return which parts of a state a step changes. Samples and their world, often the largest parts, do not change."""
    leaves, structure = jax.tree.flatten(lanes.state)
    step = jax.make_jaxpr(
        lambda given: jax.tree.leaves(_stepped(lanes.trial, jax.tree.unflatten(structure, given)))
    )(leaves)
    variables = zip(step.jaxpr.outvars, step.jaxpr.invars, strict=True)
    return jax.tree.unflatten(structure, [new is not old for new, old in variables])


_run, _run_briefly_compiled = traced_once(_of_lanes)(_block), traced_once(_of_lanes, BRIEF)(_block)


@traced_once(_own, BRIEF)
def recorded(trial: Descending, state: State) -> Record:
    """Return the record of one run in its present state."""
    return trial.record(state)


@checks_arguments
def train(
    trial: Trial, seed: int = 0, key: Key | None = None, data: PyTree = None, weights: PyTree = None
) -> dict[str, np.ndarray]:
    """Run one trial to its end in this process and return its record.

    Use it to try things, and to train in phases.

    `trial`: the training.
    `seed`: the seed of the cell. The result is what a sweep stores for the cell `(trial, seed)`.
    `key`: a random key, in place of that of the cell.
    `data`: samples in place of the drawn ones, of the form that `trial.takes` returns.
    `weights`: initial weights in place of the drawn ones, likewise.

    >>> from lemmata.trial import Descending, Precision, fixed
    >>> class Halving(Descending):
    ...     first: float = 1.0
    ...     precision: Precision = fixed(default="float64")
    ...     steps, log_steps = 20, (0, 20)
    ...
    ...     def start(self, key):
    ...         return self.first
    ...     def step(self, state):
    ...         return state / 2
    ...     def loss(self, state):
    ...         return state
    ...     def finished(self, state):
    ...         return state < 0.01
    ...     def watch(self, state):
    ...         return {}
    ...     def record(self, state):
    ...         return {"last": state}
    >>> record = train(Halving(8.0))
    >>> int(record["steps"]), float(record["last"])
    (10, 0.0078125)
    """
    if not isinstance(trial, Descending):
        raise BadInput(
            f"{kind(trial)} is computed at once, not trained step by step, and takes no data or weights; run it with lm.run."
        )
    require_fields(trial)
    require_seeds(seed)
    require(
        key is None or _is_key(key), "'key' of train takes one random key, as jax.random.key(0) makes it."
    )
    device.check()
    check()
    with double():
        one = with_precision(trial)
        used = random_key(trial, seed) if key is None else key
        if data is None and weights is None:
            run = begin_supplied(one, used)
        else:
            data, weights = accepted(_copy(one).takes(used), data, weights)
            _copy(one).check_own(data, weights)
            supply = one.supplied(used)
            data, weights = (
                (supply.data if data is None else data),
                (supply.weights if weights is None else weights),
            )
            run = _given(one, used, data, weights)
        steps, spare = (jnp.asarray(n, jnp.int32) for n in (trial.steps, 0))
        return lane_record(run_block(stack_runs([run]), steps, spare), 0)


def _is_key(key: Array) -> bool:
    """Whether an array is one random key, as a key array of JAX or as two words of 32 bits."""
    if jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        return key.shape == ()
    return key.shape == (2,) and key.dtype == jnp.uint32


def lane_record(lanes: Lanes, lane: int) -> dict[str, np.ndarray]:
    """Return all that the lab stores of a run.

    That is the record of the trial, its tracks, its curves (the watched `loss` becomes `loss_curve`), `status` and `steps`. A
    run that is not `complete` has diverged, however it stopped.
    """
    run = run_in_lane(lanes, lane)
    tracked = {name: value for kind in run.tracks for name, value in kind.items()}
    last = {name: np.asarray(value) for name, value in {**recorded(run.trial, run.state), **tracked}.items()}
    curves = {name: np.asarray(value) for name, value in run.curves.items()}
    numbers = [*last.items(), *((name, curve[: int(run.logs)]) for name, curve in curves.items())]
    status = np.asarray(run.status) if complete(run.trial, numbers) else np.asarray(DIVERGED, np.int32)
    named = {f"{name}_curve": curve for name, curve in curves.items()}
    return {**last, **named, "steps": np.asarray(run.step), "status": status}


def complete(trial: Trial, numbers: Iterable[tuple[str, np.ndarray]]) -> bool:
    """Whether all named arrays are finite, apart from those that the trial declares as `may_be_missing`."""
    return all(
        name in trial.may_be_missing or value.dtype.kind not in "fc" or bool(np.isfinite(value).all())
        for name, value in numbers
    )


def _copy(trial: Descending) -> Descending:
    """Copy a trial before it is used, because its cached properties would become part of its structure in JAX."""
    return jax.tree.map(lambda leaf: leaf, trial)


def _begun(trial: Descending, state: State) -> Lanes:
    """Return a run before its first step: tracks are started, and nothing is logged."""
    zero = jnp.zeros((), jnp.int32)
    seen, logs = jax.eval_shape(trial.watch, state), len(trial.log_steps)
    curves = {name: jnp.full((logs, *v.shape), jnp.nan, _inexact(v)) for name, v in seen.items()}
    now = trial.track(state)
    tracks = Tracks(
        {name: jnp.where(flag, zero, -1) for name, flag in now.first.items()},
        dict(now.largest),
        dict(now.total),
    )
    return Lanes(trial, state, zero, _status(trial, state, zero), zero, curves, tracks)


def _follow(trial: Descending, state: State, step: Array, running: Array, was: Tracks) -> Tracks:
    now = trial.track(state)

    def kept(new: Array, old: Array) -> Array:
        return jnp.where(running, new, old)

    return Tracks(
        {n: kept(jnp.where((old < 0) & now.first[n], step, old), old) for n, old in was.first.items()},
        {n: kept(jnp.maximum(old, now.largest[n]), old) for n, old in was.largest.items()},
        {n: kept(old + now.total[n], old) for n, old in was.total.items()},
    )


def _status(trial: Descending, state: State, step: Array) -> Array:
    stopped = jnp.where(trial.finished(state), CONVERGED, jnp.where(step >= trial.steps, CAPPED, RUNNING))
    return jnp.where(jnp.isfinite(trial.loss(state)), stopped, DIVERGED).astype(jnp.int32)


def _write(lanes: Lanes, due: Bool[Array, " lane"]) -> dict[str, Array]:
    """Return the curves with the present values in the lanes that have reached a logged step."""
    seen = jax.vmap(lambda one, s: one.watch(s))(lanes.trial, lanes.state)

    def put(curve: Array, value: Array) -> Array:
        lane = jnp.arange(due.shape[0])
        index = jnp.where(due, lanes.logs, curve.shape[1])  # out of range: dropped
        return curve.at[lane, index].set(value.astype(curve.dtype), mode="drop")

    return {name: put(lanes.curves[name], value) for name, value in seen.items()}


def _select(where: Bool[Array, " lane"], new: PyTree, old: PyTree) -> PyTree:
    def choose(a: Array, b: Array) -> Array:
        return jnp.where(where.reshape(where.shape + (1,) * (a.ndim - 1)), a, b)

    return jax.tree.map(choose, new, old)


def _inexact(value: jax.ShapeDtypeStruct) -> jnp.dtype:
    return value.dtype if jnp.issubdtype(value.dtype, jnp.inexact) else jnp.dtype(jnp.float32)
