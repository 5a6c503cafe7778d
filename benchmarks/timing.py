"""How the contestants of a benchmark are timed: in turns, each for about as long as the others, pinned to cores; and what the
machine can do at most."""

import contextlib
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.synchronize import Barrier
from typing import NamedTuple

import numpy as np

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
TURN = 0.2
"""Seconds that a turn of a contestant takes, about."""
MOST = 100_000
PATIENCE = 600.0
"""Seconds that another process may take, compilation included, before it counts as dead."""
PRODUCT, READ, MADE = 1500, 1 << 25, 1 << 16
"""Rows of the matrices whose product is the peak; numbers of the two vectors whose inner product is the bandwidth; random words
and exponentials that are made in one go, few enough for a cache."""


class Contestant(NamedTuple):
    """Does so many steps, of `runs` runs together."""

    work: Callable[[int], object]
    runs: int = 1


class Times(NamedTuple):
    """Seconds of a step of one run: the fastest turn, and the median one."""

    best: float
    median: float


def pin(count: int) -> None:
    """Keep this thread, and those that it starts, on the first cores; call it before JAX starts its own."""
    if CORES:
        os.sched_setaffinity(0, CORES[:count])


@contextlib.contextmanager
def on_cores(cores: Sequence[int]) -> Iterator[None]:
    """These cores for a while: for this thread, and for programs that it starts."""
    if not cores:
        yield
        return
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


def in_turns(contestants: Mapping[str, Contestant], rounds: int) -> dict[str, Times]:
    """Rounds in which the contestants take turns; before that each compiles, and finds how many steps fill a turn.

    What a call costs that does one step only (weights and data handed in and out, the lab's look at its runs) is timed in every
    turn and taken off: trainings do thousands of steps in a call.
    """
    counts = {}
    for name, (work, _) in contestants.items():
        work(1)
        once, count = _seconds(work, 1), 1
        while (took := _seconds(work, 1 + count) - once) < TURN / 4 and count < MOST:
            count = min(4 * count, MOST)
        counts[name] = max(1, min(round(count * TURN / max(took, 1e-9)), MOST))
    short, long = ({name: list[float]() for name in contestants} for _ in range(2))
    for _ in range(rounds):
        for name, (work, _) in contestants.items():
            short[name].append(_seconds(work, 1))
            long[name].append(_seconds(work, 1 + counts[name]))
    return {
        name: Times(
            *(float(pick(long[name]) - pick(short[name])) / counts[name] / runs for pick in (min, np.median))
        )
        for name, (_, runs) in contestants.items()
    }


def fastest(contestants: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest time of each over rounds in which they take turns; the first, untimed turn compiles."""
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(rounds + 1):
        for name, work in contestants.items():
            took = _seconds(lambda _, work=work: work(), 1)
            if turn:
                best[name] = min(best[name], took)
    return best


def _seconds(work: Callable[[int], object], count: int) -> float:
    began = time.perf_counter()
    work(count)
    return time.perf_counter() - began


# On several cores ------------------------------------------------------------------------------------------------------


def torch_on(threads: int, work: Callable[[int], object]) -> Callable[[int], object]:
    """Work of PyTorch's on so many cores, with as many threads."""
    import torch

    def timed(count: int) -> object:
        torch.set_num_threads(threads)
        with on_cores(CORES[:threads]):
            return work(count)

    return timed


class SideBySide:
    """One process a core, all of which do `prepare(*given)(count)` at the same time, each of them with some runs."""

    def __init__(
        self, prepare: Callable[..., Callable[[int], object]], given: tuple, cores: list[int], runs: int = 1
    ):
        spawn = multiprocessing.get_context("spawn")
        self.barrier = spawn.Barrier(len(cores) + 1)
        self.count = spawn.Value("q", 0)
        self.processes = []
        for core in cores:
            arguments = (prepare, given, self.barrier, self.count)
            self.processes.append(spawn.Process(target=_serve, args=arguments, daemon=True))
            with on_cores([core]):  # inherited: a library may start its threads when it is imported
                self.processes[-1].start()
        self.contestant = Contestant(self._together, runs * len(cores))

    def _together(self, count: int) -> None:
        self.count.value = count
        self.barrier.wait(PATIENCE)
        self.barrier.wait(PATIENCE)

    def close(self) -> None:
        for process in self.processes:
            process.terminate()
            process.join()


def _serve(prepare: Callable[..., Callable[[int], object]], given: tuple, barrier: Barrier, count) -> None:
    from lemmata.guard import double

    with double():
        work = prepare(*given)
        while True:
            barrier.wait()
            work(count.value)
            barrier.wait()


# What the machine can do -----------------------------------------------------------------------------------------------


def product(precision: str) -> Callable[[int], object]:
    """NumPy's product on one thread: the larger of what the usual libraries reach here."""
    square = np.random.default_rng(0).normal(size=(PRODUCT, PRODUCT)).astype(precision)
    return lambda count: [square @ square for _ in range(count)]


def reading(precision: str) -> Callable[[int], object]:
    """Two vectors that no cache holds, read once."""
    one, other = (np.ones(READ, precision) for _ in range(2))
    return lambda count: [one @ other for _ in range(count)]


def drawing() -> Callable[[int], object]:
    """Random words as the lab draws them, each time under a key from those before."""
    import jax

    from lemmata.threefry import key_of

    @jax.jit
    def drawn(count: int, data: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(
            0, count, lambda _, d: jax.random.bits(key_of(d), (MADE,), "uint32")[:2], data
        )

    begun = np.zeros(2, np.uint32)
    return lambda count: drawn(count, begun).block_until_ready()


def exponentials(precision: str) -> Callable[[int], object]:
    """NumPy's exponential."""
    given = np.random.default_rng(0).normal(size=MADE).astype(precision)
    found = np.empty_like(given)
    return lambda count: [np.exp(given, out=found) for _ in range(count)]


def exponentials_of_torch(precision: str) -> Callable[[int], object]:
    """PyTorch's, which is the faster one where NumPy has no vectors for a precision (double, without AVX-512)."""
    import torch

    given = torch.from_numpy(np.random.default_rng(0).normal(size=MADE).astype(precision))
    found = torch.empty_like(given)
    return torch_on(1, lambda count: [torch.exp(given, out=found) for _ in range(count)])


def operations_a_second(seconds: float) -> float:
    return 2 * PRODUCT**3 / seconds


def bytes_a_second(seconds: float, precision: str) -> float:
    return 2 * READ * np.dtype(precision).itemsize / seconds
