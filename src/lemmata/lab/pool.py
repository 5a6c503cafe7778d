"""Where chunks run: in this process, or in local worker processes, each pinned to one core with one compute thread."""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Pool:
    """Where chunks run, for as long as a command lasts."""

    def __init__(self, workers: int = 0):
        self.workers = workers

    def __enter__(self) -> "Pool":
        cache_compilations()
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def run(
        self, work: Callable[[Task], Result], tasks: Sequence[Task]
    ) -> Iterator[tuple[Task, Result | Exception]]:
        return run_local(work, tasks, self.workers) if self.workers else run_here(work, tasks)


def run_here(
    work: Callable[[Task], Result], tasks: Sequence[Task]
) -> Iterator[tuple[Task, Result | Exception]]:
    """One task after another in this process."""
    for task in tasks:
        yield task, work(task)
        _raise_if_interrupted()


def run_local(
    work: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[tuple[Task, Result | Exception]]:
    """Tasks spread over worker processes, results as they come. A worker that dies takes only its own tasks along:
    they are tried once more, one at a time, and given back as the exception if that fails too."""
    lost: list[Task] = []
    for task, result in _spread(work, tasks, workers):
        if isinstance(result, BrokenProcessPool):
            lost.append(task)
        else:
            yield task, result
    for task in lost:
        yield from _spread(work, [task], 1)


def _spread(
    work: Callable[[Task], Result], tasks: Sequence[Task], workers: int
) -> Iterator[tuple[Task, Result | Exception]]:
    spawn = multiprocessing.get_context("spawn")
    cores = spawn.SimpleQueue()
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    for i in range(workers):
        cores.put(available[i % len(available)] if available else -1)
    executor = ProcessPoolExecutor(workers, mp_context=spawn, initializer=_settle, initargs=(cores,))
    try:
        pending: dict[Future[Result], Task] = {executor.submit(work, task): task for task in tasks}
        while pending:
            done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
            _raise_if_interrupted()
            for future in done:
                task = pending.pop(future)
                error = future.exception()
                if error is not None and not isinstance(error, Exception):
                    raise error
                yield task, error if error is not None else future.result()
    finally:
        processes = list((executor._processes or {}).values())
        executor.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.terminate()


_interrupted = threading.Event()


@contextlib.contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Ctrl-C raises where it falls, and is remembered until the pool looks: one that falls into a callback of the
    garbage collector would be swallowed there."""

    def remember(*_: object) -> None:
        _interrupted.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        _interrupted.clear()
        signal.signal(signal.SIGINT, before)


def _raise_if_interrupted() -> None:
    if _interrupted.is_set():
        raise KeyboardInterrupt


def _settle(cores: "multiprocessing.SimpleQueue[int]") -> None:
    """Prepare a worker before it imports JAX: its own core, one thread, and deaf to Ctrl-C (the driver decides)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_the_driver, daemon=True).start()
    core = cores.get()
    if core >= 0:
        os.sched_setaffinity(0, {core})
    one_thread()
    cache_compilations()


def _die_with_the_driver() -> None:
    """A driver that was killed can write nothing; its workers would compute for nobody."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        multiprocessing.connection.wait([driver.sentinel])
        os._exit(1)


def one_thread() -> None:
    """Let XLA and BLAS use one thread; has an effect only before they are loaded."""
    flags = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def cache_compilations() -> None:
    """Keep compiled programs on disk, so that the next run of the same figure starts at once."""
    folder = Path(os.environ.get("LEMMATA_CACHE", Path.home() / ".cache" / "lemmata")) / "xla"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
