"""How the contestants of a benchmark are timed: in turns, and the lab on all cores as its pool would be."""

import multiprocessing
import os
import time
from collections.abc import Callable
from multiprocessing.synchronize import Barrier

import numpy as np

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def pin(count: int) -> None:
    """Keep this thread, and those that it starts, on the first cores; call it before JAX starts its own."""
    if CORES:
        os.sched_setaffinity(0, CORES[:count])


def torch_on(threads: int, work: Callable[[], object]) -> Callable[[], object]:
    """Work of PyTorch's on so many cores, with as many threads."""
    import torch

    def timed() -> None:
        pin(threads)
        torch.set_num_threads(threads)
        work()
        pin(1)

    return timed


def fastest(contestants: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The shortest time of each over rounds in which they take turns; the first, untimed turn compiles."""
    best = dict.fromkeys(contestants, float("inf"))
    for turn in range(rounds + 1):
        for name, work in contestants.items():
            began = time.perf_counter()
            work()
            if turn:
                best[name] = min(best[name], time.perf_counter() - began)
    return best


def side_by_side(
    prepare: Callable[..., Callable[[], object]], *given, cores: list[int]
) -> Callable[[], object]:
    """A function that has one process per core do `prepare(*given)()` at the same time, and waits for all.

    The processes are started and `prepare` is called here; the first call of what is returned compiles.
    """
    spawn = multiprocessing.get_context("spawn")
    barrier = spawn.Barrier(len(cores) + 1)
    own = os.sched_getaffinity(0)
    for core in cores:
        os.sched_setaffinity(0, {core})  # inherited: a library may start its threads when it is imported
        spawn.Process(target=_work, args=(prepare, given, barrier), daemon=True).start()
    os.sched_setaffinity(0, own)

    def together() -> None:
        barrier.wait()  # start
        barrier.wait()  # all are done

    return together


def _work(prepare: Callable[..., Callable[[], object]], given: tuple, barrier: Barrier) -> None:
    work = prepare(*given)
    while True:
        barrier.wait()
        work()
        barrier.wait()


def matrix_peak() -> Callable[[], object]:
    """NumPy's product on one thread: the larger of what the usual libraries reach here."""
    square = np.random.default_rng(0).normal(size=(1500, 1500)).astype(np.float32)
    return lambda: square @ square
