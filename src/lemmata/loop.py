"""The one compiled training loop: it advances many runs of one structure together, in *lanes*, by blocks of steps.

Runs that have stopped give their lane to a waiting run between blocks, so that they do not keep costing. Studies never write
a training loop.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from lemmata.guard import brief, check, double
from lemmata.programs import traced_once
from lemmata.status import CAPPED, CONVERGED, DIVERGED, RUNNING
from lemmata.trial import Descending, Key, Record, State, Tracks, random_key, with_precision


class Lanes(NamedTuple):
    """Runs that advance together; every array has the lane as its first dimension.

    `curves[name][lane, log]` is filled as the run passes its logged steps (`logs` of them so far) and is NaN after it has
    stopped; `tracks` follows what the trial tracks at every step.
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
"""For what a run does once, at its start or at its end: compiled in half the time, for a tenth more of its own."""


@traced_once(_own, BRIEF)
def begin(trial: Descending, key: Key) -> Lanes:
    """One run before its first step, without the dimension of lanes: one program serves lanes of any number."""
    untouched = _copy(trial)
    return _begun(trial, trial.start(key))._replace(trial=untouched)


@traced_once(_own, BRIEF)
def _given(trial: Descending, key: Key, data: PyTree, weights: PyTree) -> Lanes:
    """A run that begins with the data or the weights of its user."""
    untouched = _copy(trial)
    return _begun(trial, trial.start_from(key, data, weights))._replace(trial=untouched)


def side_by_side(runs: Sequence[Lanes]) -> Lanes:
    """Runs in lanes."""
    return _by_leaf(lambda one, *others: np.stack([one, *others]) if others else one[None], *runs)


def replaced(lanes: Lanes, runs: Mapping[int, Lanes]) -> Lanes:
    """Lanes with other runs in some of them."""

    def put(leaf: np.ndarray, *others: np.ndarray) -> np.ndarray:
        changed = leaf.copy()
        for lane, other in zip(runs, others, strict=True):
            changed[lane] = other
        return changed

    return _by_leaf(put, lanes, *runs.values())


def run_in(lanes: Lanes, lane: int) -> Lanes:
    """The run in a lane."""
    return _by_leaf(lambda leaf: leaf[lane], lanes)


def only(lanes: Lanes, kept: Sequence[int]) -> Lanes:
    """Some of the lanes."""
    return _by_leaf(lambda leaf: leaf[list(kept)], lanes)


def _by_leaf(change: Callable[..., np.ndarray], *trees: PyTree) -> PyTree:
    """A change of every leaf, made by NumPy: to put small arrays together takes it less time than JAX takes to be asked."""

    def changed(*leaves: Any) -> Any:
        if not jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
            return change(*map(np.asarray, leaves))
        data = change(*(np.asarray(jax.random.key_data(leaf)) for leaf in leaves))
        return jax.random.wrap_key_data(jnp.asarray(data), impl=jax.random.key_impl(leaves[0]))

    return jax.tree.map(changed, *trees)


def run_block(lanes: Lanes, most: Int[Array, ""], spare: Int[Array, ""]) -> Lanes:
    """Advance all running lanes by up to `most` steps, until no more than `spare` of them are still running."""
    run = _run_briefly_compiled if lanes.trial.steps_by_kernel else _run
    return eqx.combine(run(lanes, most, spare), lanes)


def _block(lanes: Lanes, most: Int[Array, ""], spare: Int[Array, ""]) -> Lanes:
    """What became of the parts of the lanes that change; nothing (None) of the others: to give back samples is to copy them.

    Steps go in a loop of their own that ends where a lane has come to a logged step, so that looking stands in the program
    once, apart from the steps. It ends where a run has stopped, too: its state is put aside, and its lane goes on with the
    others, since to choose between old and new weights in every step costs short steps a twentieth of their time.
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
        """Look at what is due, then advance to the next look or the next end. Most blocks begin between two looks, and one can
        cost as much as a hundred steps."""
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
    """Which parts of a state a step changes: samples and their world, mostly the larger ones, stay what they were."""
    leaves, structure = jax.tree.flatten(lanes.state)
    step = jax.make_jaxpr(
        lambda given: jax.tree.leaves(_stepped(lanes.trial, jax.tree.unflatten(structure, given)))
    )(leaves)
    variables = zip(step.jaxpr.outvars, step.jaxpr.invars, strict=True)
    return jax.tree.unflatten(structure, [new is not old for new, old in variables])


_run, _run_briefly_compiled = traced_once(_of_lanes)(_block), traced_once(_of_lanes, BRIEF)(_block)


@traced_once(_own, BRIEF)
def recorded(trial: Descending, state: State) -> Record:
    """The record of one run as it stands."""
    return trial.record(state)


def train(
    trial: Descending, seed: int = 0, key: Key | None = None, data: PyTree = None, weights: PyTree = None
) -> dict[str, np.ndarray]:
    """Run one trial to its end, here and now, and return its record: for trying things, and for training in phases.

    Without a key the run is the cell `(trial, seed)` and gives what a sweep would store for it. `data` and `weights` take the
    place of the drawn ones (see `Descending.start_from`).
    """
    check()
    with double():
        one = with_precision(trial)
        used = random_key(trial, seed) if key is None else key
        drawn = data is None and weights is None
        run = begin(one, used) if drawn else _given(one, used, data, weights)
        steps, spare = (jnp.asarray(n, jnp.int32) for n in (trial.steps, 0))
        return lane_record(run_block(side_by_side([run]), steps, spare), 0)


def lane_record(lanes: Lanes, lane: int) -> dict[str, np.ndarray]:
    """Everything the lab stores of a run: the trial's own record, its curves (`loss` watched becomes `loss_curve`), how
    (`status`) and when (`steps`) it stopped."""
    run = run_in(lanes, lane)
    curves = {f"{name}_curve": value for name, value in run.curves.items()}
    tracked = {name: value for kind in run.tracks for name, value in kind.items()}
    kept = {**recorded(run.trial, run.state), **tracked, **curves, "steps": run.step, "status": run.status}
    return {name: np.asarray(value) for name, value in kept.items()}


def _copy(trial: Descending) -> Descending:
    """To be made before use: cached properties become part of what JAX takes for the structure of a trial."""
    return jax.tree.map(lambda leaf: leaf, trial)


def _begun(trial: Descending, state: State) -> Lanes:
    """One run before its first step, its tracks begun, nothing logged."""
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
    """The curves, with what is seen now in the lanes where a look is due."""
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
