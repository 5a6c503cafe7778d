"""What is measured of a workload, part by part: its steps, a chunk of cells, its whole command, how steps grow, and what it has
of its own."""

import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import ENVIRONMENT, peers
from benchmarks.shares import shares
from benchmarks.timing import (
    CORES,
    MADE,
    Contestant,
    SideBySide,
    Times,
    bytes_a_second,
    drawing,
    exponentials,
    exponentials_of_torch,
    fastest,
    in_turns,
    on_cores,
    operations_a_second,
    product,
    reading,
    torch_on,
)
from benchmarks.workload import Command, Measure, Simulator, Step, Work, Workload
from lemmata.desk import stored_order
from lemmata.lab.work import Chunk, run_chunk
from lemmata.sweep import Sweep
from lemmata.trial import Tracks, random_key, with_precision

Found = dict[str, Any]
CHUNK = 1.5
"""Seconds that a chunk of cells takes, about."""


def machine() -> Found:
    """What the numbers depend on."""
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in told.splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": len(CORES),
        "processor": models[0] if models else "not known",
        "cache": largest_cache(),
        "memory": memory,
        "python": sys.version.split()[0],
        **{name: version(name) for name in ("jax", "jaxlib", "numpy", "torch")},
    }


def register_bits() -> int:
    """Of the processor's widest registers: kernels are compiled for them."""
    told = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    return 512 if " avx512f" in told else 256 if " avx2" in told else 128


def largest_cache() -> int:
    """Bytes of the largest cache that a core sees; a step whose numbers fit is not bound by memory."""
    units = {"K": 1 << 10, "M": 1 << 20}
    found = [
        int(text[:-1]) * units[text[-1]]
        for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")
        if (text := path.read_text().strip())[-1] in units
    ]
    return max(found, default=32 << 20)


def parts(name: str, load: Workload, paper: bool, rounds: int) -> dict[str, Callable[[], Found]]:
    """The parts that a workload has."""
    found: dict[str, Callable[[], Found]] = {}
    command = load.paper if paper else load.short
    if load.step is not None:
        found["steps"], found["chunk"] = (
            partial(steps, name, load.step, rounds),
            partial(chunk, load.step, rounds),
        )
    if command is not None:
        found["figure"] = partial(figure, load, command, rounds)
    if load.step is not None:
        found["growth"] = partial(growth, load.step, rounds)
    if load.extra is not None:
        found["extra"] = partial(extra, load.extra, paper)
    return found


def dated(measured: Callable[[], Found]) -> Found:
    """What a part found, with the day, the processor's registers, and how busy the machine was (other programs included)."""
    before = os.getloadavg()[0]
    return {
        **measured(),
        "day": date.today().isoformat(),
        "registers": register_bits(),
        "load": [before, os.getloadavg()[0]],
    }


def extra(measured: Callable[[bool], dict[str, Measure]], paper: bool) -> Found:
    return {"measures": {what: one._asdict() for what, one in measured(paper).items()}}


# Steps -----------------------------------------------------------------------------------------------------------------


def machine_peaks(precision: str) -> dict[str, Contestant]:
    """What shows the limits of the machine."""
    return {
        "product": Contestant(product(precision)),
        "reading": Contestant(reading(precision)),
        "drawing": Contestant(drawing()),
        "exponentials": Contestant(exponentials(precision)),
        "exponentials of PyTorch": Contestant(exponentials_of_torch(precision)),
    }


def limits(times: dict[str, Times], precision: str) -> Found:
    """What the machine can do: one core, and how many times that two processes do."""
    found = {
        "operations": operations_a_second(times["product"].best),
        "bytes": bytes_a_second(times["reading"].best, precision),
        "words": MADE / times["drawing"].best,
        "exponentials": MADE / min(times[f"exponentials{of}"].best for of in ("", " of PyTorch")),
    }
    for name in ("product", "reading", peers.LAB):
        two = f"{name}, two processes"
        if two in times:
            found[f"two processes, {name}"] = times[name].best / times[two].best
    return found


def least(work: Work, runs: int, limit: Found) -> tuple[float, str]:
    """Seconds that a step takes at least, and what binds it: numbers that stay in a cache cost nothing here."""
    arithmetic = sum(getattr(work, of) / limit[of] for of in ("operations", "words", "exponentials"))
    memory = work.bytes / limit["bytes"] if work.bytes * runs > largest_cache() else 0.0
    return max(arithmetic, memory), "memory" if memory > arithmetic else "arithmetic"


def steps(name: str, step: Step, rounds: int) -> Found:
    """All contestants in turns, after they were found to compute the same."""
    apart = peers.agreement(step, {})
    trial = peers.built(step, {})
    runs = peers.plain_runs(step, trial, peers.started(trial, step.runs))
    precision, lanes = trial.precision, peers.width(trial)
    peaks = machine_peaks(precision)
    contestants = {
        **peaks,
        peers.LAB: peers.lab(trial),
        peers.BARE: peers.bare(trial, lanes),
        **dict(peers.jax_peers(step, runs)),
        **dict(peers.torch_peers(step, runs)),
    }
    beside = []
    if len(CORES) > 1:
        for what, prepare, given, own in (
            ("product", product, (precision,), 1),
            ("reading", reading, (precision,), 1),
            (peers.LAB, peers.lab_alone, (name, {}), lanes),
        ):
            beside.append(SideBySide(prepare, given, CORES[:2], own))
            contestants[f"{what}, two processes"] = beside[-1].contestant
    times = in_turns(contestants, rounds)
    for one in beside:
        one.close()
    limit = limits(times, precision)
    work = step.work(**step.sizes)
    bound, by = least(work, lanes, limit)
    return {
        "sizes": dict(step.sizes),
        "precision": precision,
        "lanes": lanes,
        "runs": step.runs,
        "apart": apart,
        "limits": limit,
        "work": work._asdict(),
        "bound": {
            "seconds": bound,
            "by": by,
            "share": bound / times[peers.LAB].best,
            "products": work.operations / limit["operations"] / times[peers.LAB].best,
        },
        "times": {n: t._asdict() for n, t in times.items() if not n.startswith(tuple(peaks))},
    }


def chunk(step: Step, rounds: int) -> Found:
    """Cells through the lab's worker, starts, tracks, looks and records included, against the same mathematics by hand; both
    compiled."""
    long = peers.built(step, {})
    once = in_turns({"lab": peers.lab(long)}, 3)["lab"].best
    lanes = peers.width(long)
    count = max(3, math.ceil(CHUNK / once / lanes))
    trial = peers.built(step, {}, steps=count)
    cells = tuple(Sweep(trial, (), tuple(range(lanes))).cells)
    one = with_precision(trial)
    keys = jnp.stack([random_key(trial, seed) for seed in range(lanes)])

    @jax.jit
    def by_hand(trial: Any, keys: Any) -> Any:
        def on(_: Any, now: tuple[Any, Any]) -> tuple[Any, Any]:
            state, was = jax.vmap(trial.step)(now[0]), now[1]
            new = jax.vmap(trial.track)(state)
            largest = {name: jnp.maximum(value, new.largest[name]) for name, value in was.largest.items()}
            total = {name: value + new.total[name] for name, value in was.total.items()}
            first = {name: value | new.first[name] for name, value in was.first.items()}
            return state, Tracks(first, largest, total)

        def to_the_next_look(now: tuple[Any, Any], steps: Any) -> tuple[tuple[Any, Any], Any]:
            then = jax.lax.fori_loop(0, steps, on, now)
            return then, jax.vmap(trial.watch)(then[0])

        begun = jax.lax.map(trial.start, keys)
        between = jnp.diff(jnp.asarray(trial.log_steps), prepend=0)
        last, looks = jax.lax.scan(to_the_next_look, (begun, jax.vmap(trial.track)(begun)), between)
        state, tracks = jax.lax.fori_loop(trial.log_steps[-1], count, on, last)  # some look at the start only
        return jax.lax.map(trial.record, state), tracks, looks

    def through_the_lab() -> None:
        outcomes = [outcome for some in run_chunk(Chunk(cells, lanes)) for outcome in some]
        assert not any(outcome.reason for outcome in outcomes), outcomes[0].reason

    took = fastest(
        {"lab": through_the_lab, "hand": lambda: jax.block_until_ready(by_hand(one, keys))}, rounds
    )
    return {"steps": count, "cells": lanes, **took, "overhead": took["lab"] / took["hand"] - 1}


# The whole command -----------------------------------------------------------------------------------------------------


def figure(load: Workload, command: Command, rounds: int) -> Found:
    """The command as a user gives it, with an empty and with a warm cache, eager PyTorch's steps timed in between; then the
    parts of it in one process."""
    assert load.step is not None
    where, values = command.along or ("", (0,))
    eager = {}
    for value in values if command.charged else ():
        sizes = {**command.sizes, **({where: value} if where else {})}
        trial = peers.built(load.step, sizes)
        [run] = peers.plain_runs(load.step, trial, peers.started(trial, 1))
        own = peers.torch_eager(load.step, run)
        for threads in (1, 2):
            eager[f"{value} {threads}"] = Contestant(torch_on(threads, own))
    found: Found = {"command": " ".join(("lemmata", "run", load.figure, *command.flags))}
    step_times: list[dict[str, Times]] = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        for turn in ("cold", "warm"):
            step_times.append(in_turns(eager, rounds))
            out = Path(folder) / turn
            found[turn] = _seconds_of(load.figure, command, out, Path(folder) / "cache")
        order = stored_order(str(out))
        found["trainings"], taken = len(order.sweep.cells), order.results().steps.load()
    if command.charged:
        best = [min(t[f"{v} {n}"].best for t in step_times for n in (1, 2)) for v in values]
        taken = taken.sum([dim for dim in taken.dims if dim != where])
        each = np.interp(taken[where], values, best) if where else best[0]
        peer = np.asarray(each * taken.values)
        found |= {
            "steps": int(taken.sum()),
            "peer": float(peer.sum()),
            "eager": dict(zip(values, best, strict=True)),
        }
        found |= {f"{turn} ratio": found["peer"] / found[turn] for turn in ("cold", "warm")}
    with on_cores(CORES):
        found["shares"] = shares(load.figure, command.flags)
    return found


def _seconds_of(figure: str, command: Command, out: Path, cache: Path) -> float:
    given = [sys.executable, "-m", "lemmata", "run", figure, *command.flags, "--out", str(out)]
    where = {**ENVIRONMENT, "LEMMATA_CACHE": str(cache)}
    with on_cores(CORES):
        began = time.perf_counter()
        subprocess.run(given, check=True, env=where, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began


# Growth ----------------------------------------------------------------------------------------------------------------


def growth(step: Step, rounds: int) -> Found:
    """By the simulator of the figure, and by each of the others."""
    others = {name: grown(one, rounds) for name, one in step.others.items()}
    return {**grown(step, rounds), **({"simulator": step.simulator, "others": others} if others else {})}


def grown(step: Simulator, rounds: int) -> Found:
    """Seconds of a step against each size, the others as they are, with the exponent that is measured and the one that the
    formulas have over the same sizes."""
    trial = peers.built(step, {})
    precision, lanes = trial.precision, peers.width(trial)
    limit = limits(in_turns(machine_peaks(precision), rounds), precision)
    found = {}
    widths = tuple(dict.fromkeys((max(1, lanes // 4), max(2, lanes), 4 * max(1, lanes))))
    cells = {str(n): peers.bare(trial, n)._replace(runs=1) for n in widths}
    found["cells"] = _grown(
        widths, in_turns(cells, rounds), lambda n: n * least(step.work(**step.sizes), n, limit)[0]
    )
    for name, values in step.growth.items():
        contestants = {str(v): peers.bare(peers.built(step, {name: v}), 1) for v in values}

        def expected(value: int, name: str = name) -> float:
            return least(step.work(**{**step.sizes, name: value}), 1, limit)[0]

        found[name] = _grown(values, in_turns(contestants, rounds), expected)
    return {"sizes": dict(step.sizes), "growth": found}


def _grown(values: tuple[int, ...], times: dict[str, Times], expected: Callable[[int], float]) -> Found:
    seconds, predicted = [times[str(v)].best for v in values], [expected(v) for v in values]
    return {
        "values": list(values),
        "seconds": seconds,
        "least": predicted,
        "exponent": _slope(values, seconds),
        "expected": _slope(values, predicted),
    }


def _slope(values: tuple[int, ...], seconds: list[float]) -> float:
    return round(float(np.polyfit(np.log(values), np.log(seconds), 1)[0]), 9) + 0.0  # no negative zero
