"""The contestants of a workload, made from its plain step: PyTorch eager, `torch.func`, `torch.compile`, JAX by hand, the lab.

Each does a number of steps from the same start and gives back the weights it comes to, one row a run, so that all can be held
against each other before they are timed.
"""

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.timing import Contestant, torch_on
from benchmarks.workload import Arrays, Plain, Simulator, Sizes, Step, plainly, workload
from lemmata.errors import note
from lemmata.lab.plan import lane_width, state_bytes
from lemmata.loop import Lanes, begin, run_block, stack_runs
from lemmata.status import RUNNING
from lemmata.trial import Descending, put, random_key, with_precision

LONG = 1_000_000
"""Steps of a training that is timed: it never ends."""
BATCHES = 4
EAGER = "PyTorch eager, one thread"
EAGER_TWO = "PyTorch eager, two threads"
FUNC = "PyTorch `torch.func`, runs in `vmap`"
COMPILED = "PyTorch `torch.compile`"
JAX_RUN = "JAX by hand, a run"
JAX_RUNS = "JAX by hand, runs in `vmap`"
LAB = "lab"
BARE = "lab's step in a bare loop"
LAB_TWO = "lab, two processes"


def built(step: Simulator, sizes: Sizes, precision: str | None = None, steps: int = LONG) -> Descending:
    """The lab's trial of these sizes."""
    trial = step.trial(steps, **{**step.sizes, **sizes})
    return trial if precision is None else put(trial, "precision", precision)


def width(trial: Descending) -> int:
    """How many runs the lab advances together where there are enough of them."""
    return lane_width(state_bytes(trial)[0], 64) if trial.lockstep else 1


# The lab ---------------------------------------------------------------------------------------------------------------


def started(trial: Descending, seeds: int) -> Lanes:
    """Runs before their first step."""
    one = with_precision(trial)
    runs = [begin(one, random_key(trial, seed)) for seed in range(seeds)]
    return jax.tree.map(jnp.asarray, stack_runs(runs))


def advanced(lanes: Lanes, count: int) -> Lanes:
    return jax.block_until_ready(run_block(lanes, jnp.asarray(count, jnp.int32), jnp.asarray(0, jnp.int32)))


def lab(trial: Descending) -> Contestant:
    """The compiled loop, past the steps at which a run is looked at."""
    runs = width(trial)
    begun = advanced(started(trial, runs), 2)

    def work(count: int) -> None:
        ended = advanced(begun, count)
        assert bool(jnp.all(ended.status == RUNNING)), (
            "a run has stopped: what was timed is not so many steps"
        )

    return Contestant(work, runs)


def lab_alone(name: str, sizes: Sizes) -> Callable[[int], object]:
    """For a process of its own."""
    step = workload(name).step
    assert step is not None
    return lab(built(step, sizes)).work


def bare(trial: Descending, runs: int) -> Contestant:
    """The trial's step in a loop and nothing around it: no stop rule, no tracks, no looks; runs are copies of one."""
    one = with_precision(trial)
    state = jax.jit(lambda t, k: t.start(k))(one, random_key(trial, 0))
    trials, states = (
        jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (runs, *jnp.shape(leaf))), tree)
        for tree in (one, state)
    )

    @jax.jit
    def loop(trials: Any, states: Any, count: Any) -> Any:
        return jax.lax.fori_loop(
            0, count, lambda _, now: jax.vmap(lambda t, s: t.step(s))(trials, now), states
        )

    return Contestant(lambda count: jax.block_until_ready(loop(trials, states, count)), runs)


# Plain programs --------------------------------------------------------------------------------------------------------


def plain_runs(step: Step, trial: Descending, lanes: Lanes, batches: int = BATCHES) -> list[Plain]:
    """The runs in these lanes, not yet advanced, as plain programs have them."""
    one, found = with_precision(trial), []
    for seed in range(len(lanes.step)):
        state = jax.tree.map(lambda leaf, seed=seed: leaf[seed], lanes.state)
        run = step.plain(one, random_key(trial, seed), state, batches)
        found.append(Plain(plainly(run.weights), plainly(run.batches), run.rates))
    return found


def stacked(runs: list[Plain]) -> tuple[Arrays, Arrays, Arrays]:
    """Weights, batches (run, step, ...) and rates of several runs."""
    weights = {name: np.stack([run.weights[name] for run in runs]) for name in runs[0].weights}
    held, flat = len(runs[0].batches), [batch for run in runs for batch in run.batches]
    batches = {
        name: (whole := filled([batch[name] for batch in flat])).reshape(len(runs), held, *whole.shape[1:])
        for name in flat[0]
    }
    rates = {
        name: np.asarray([run.rates[name] for run in runs], weights[name].dtype) for name in runs[0].rates
    }
    return weights, batches, rates


def filled(parts: list[np.ndarray]) -> np.ndarray:
    """All in one array; those that are smaller are filled up with zeros, which must mean nothing there."""
    shape = np.max([part.shape for part in parts], axis=0).astype(int) if parts[0].ndim else ()
    whole = np.zeros((len(parts), *shape), parts[0].dtype)
    for n, part in enumerate(parts):
        whole[(n, *map(slice, part.shape))] = part
    return whole


def jax_peers(step: Step, runs: list[Plain]) -> Iterator[tuple[str, Contestant]]:
    def descend(weights: Arrays, batches: Arrays, rates: Arrays, count: Any) -> Arrays:
        held = len(next(iter(batches.values())))
        only = {name: part.reshape(part.shape[1:]) for name, part in batches.items()} if held == 1 else {}

        def once(n: Any, now: Arrays) -> Arrays:
            batch = only or {name: part[n % held] for name, part in batches.items()}
            slopes = jax.grad(step.jax_loss)(now, batch)
            return {name: now[name] - rates[name] * slopes[name] for name in now}

        return jax.lax.fori_loop(0, count, once, weights)

    all_runs = jax.jit(jax.vmap(descend, in_axes=(0, 0, 0, None)))
    given = [{name: jnp.asarray(part) for name, part in tree.items()} for tree in stacked(runs)]
    alone = jax.jit(lambda weights, batches, rates, count: descend(weights, batches, rates, count))
    first = [{name: part[0] for name, part in tree.items()} for tree in given]

    def one(count: int) -> Arrays:
        ended = jax.block_until_ready(alone(*first, count))
        return {name: part[None] for name, part in ended.items()}

    yield JAX_RUN, Contestant(one)
    yield JAX_RUNS, Contestant(lambda count: jax.block_until_ready(all_runs(*given, count)), len(runs))


def torch_eager(step: Step, run: Plain, compiled: bool = False) -> Callable[[int], Arrays]:
    """One run with automatic differentiation, as a script does it."""
    import torch

    loss = torch.compile(step.torch_loss, dynamic=False) if compiled else step.torch_loss
    start, *batches = (
        {name: torch.from_numpy(np.array(part)) for name, part in tree.items()}
        for tree in (run.weights, *run.batches)
    )

    def work(count: int) -> Arrays:
        weights = {name: part.clone().requires_grad_() for name, part in start.items()}
        for n in range(count):
            slopes = torch.autograd.grad(loss(weights, batches[n % len(batches)]), list(weights.values()))
            with torch.no_grad():
                for (name, part), slope in zip(weights.items(), slopes, strict=True):
                    part.sub_(slope, alpha=run.rates[name])
        return {name: part.detach().numpy()[None] for name, part in weights.items()}

    return work


def torch_func(step: Step, runs: list[Plain]) -> Callable[[int], Arrays]:
    """All runs together."""
    import torch

    weights, batches, rates = (
        {name: torch.from_numpy(part) for name, part in tree.items()} for tree in stacked(runs)
    )
    shaped = {name: rate.view(-1, *[1] * (weights[name].ndim - 1)) for name, rate in rates.items()}
    slope = torch.func.vmap(torch.func.grad(step.torch_loss))
    held = len(runs[0].batches)
    each = [{name: part[:, n].contiguous() for name, part in batches.items()} for n in range(held)]

    def work(count: int) -> Arrays:
        now = weights
        for n in range(count):
            slopes = slope(now, each[n % held])
            now = {name: part - shaped[name] * slopes[name] for name, part in now.items()}
        return {name: part.numpy() for name, part in now.items()}

    return work


def torch_peers(step: Step, runs: list[Plain], compiled: bool = True) -> Iterator[tuple[str, Contestant]]:
    yield EAGER, Contestant(torch_on(1, torch_eager(step, runs[0])))
    yield EAGER_TWO, Contestant(torch_on(2, torch_eager(step, runs[0])))
    yield FUNC, Contestant(torch_on(1, torch_func(step, runs)), len(runs))
    if compiled and any(map(shutil.which, ("c++", "g++", "clang++"))):
        work = torch_on(1, torch_eager(step, runs[0], compiled=True))
        try:
            work(1)
        except Exception as error:  # whatever goes wrong in a foreign compiler
            note(f"`torch.compile` fails here and is left out: {str(error).splitlines()[0]}")
        else:
            yield COMPILED, Contestant(work)


# Agreement -------------------------------------------------------------------------------------------------------------

APART = 1e-9
"""How far, of a loss, contestants may come apart in double precision after some steps; of what the loss has moved, a
thousand times as far."""


def agreement(
    step: Step, sizes: Sizes, steps: int = 3, runs: int = 2, compiled: bool = True
) -> dict[str, float]:
    """How far each contestant is from the lab after some steps in double precision: the loss, as a share of it."""
    trial = built(step, sizes, "float64")
    begun = started(trial, runs)
    read = jax.jit(jax.vmap(step.loss))
    theirs = [np.asarray(read(lanes.trial, lanes.state)) for lanes in (begun, advanced(begun, steps))]
    given = plain_runs(step, trial, begun, steps + 1)
    last = {name: filled([run.batches[-1][name] for run in given]) for name in given[0].batches[-1]}
    losses = jax.jit(jax.vmap(step.jax_loss))
    moved = np.abs(theirs[1] - theirs[0]).min()
    found = {}
    for name, contestant in (*jax_peers(step, given), *torch_peers(step, given, compiled)):
        ended = contestant.work(steps)
        ours = np.asarray(losses(ended, {part: last[part][: contestant.runs] for part in last}))
        off = np.abs(ours - theirs[1][: contestant.runs])
        found[name] = float(np.max(off / np.abs(theirs[1][: contestant.runs])))
        said = (
            f"{name} does not compute what the lab does: off by {off.max():.2g}, having moved by {moved:.2g}"
        )
        assert found[name] < APART, said
        assert off.max() < 1000 * APART * moved, said
    return found
