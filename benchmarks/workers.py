"""The lab's pool runs one process per core; a comparison with a peer that may use all cores lets it do so."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.synchronize import Barrier


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
