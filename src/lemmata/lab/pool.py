"""Where chunks run: in this process, in local worker processes (each on one core with one compute thread), or through any
`concurrent.futures.Executor`. One pool serves a whole command."""

import contextlib
import itertools
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from typing import Any, Generic, TypeVar

from lemmata import guard
from lemmata.errors import BadInput

Task = TypeVar("Task")
Result = TypeVar("Result")

TRIES = 3
"""A cell that takes its worker down this often, alone, has failed."""

FALSE_STARTS = 5
"""When so many workers in a row (and one more for each) die before they are ready, none ever will be."""


SLACK = 2.0
"""Seconds between two parts of a result that are nobody's fault."""


class Lost(Exception):
    """A task took its worker down with it, every time."""


class TimeLimit(Exception):
    """A task took longer than a cell may."""


class Terminated(BaseException):
    """The process was told to end (SIGTERM)."""


@dataclass
class _Attempt(Generic[Task]):
    """A task, or what is left of it after the `parts` of its result that have come in, and how often it was lost alone."""

    task: Task
    losses: int = 0

    def heard(self, part: Any) -> None:
        if hasattr(self.task, "without"):
            self.task = self.task.without(part)  # pyright: ignore[reportAttributeAccessIssue]

    def again(self, once: bool = False) -> "list[_Attempt[Task]]":
        """What to try after a loss: the parts of the task, or itself once more; nothing when that was done often enough."""
        if hasattr(self.task, "split"):
            parts = self.task.split()  # pyright: ignore[reportAttributeAccessIssue]
            if len(parts) != 1:
                return [_Attempt(part) for part in parts]
        return [_Attempt(self.task, self.losses + 1)] if self.losses + 1 < TRIES and not once else []

    @property
    def over(self) -> bool:
        """Whether nothing is left to do of a task that can be counted."""
        return hasattr(self.task, "without") and len(self.task) == 0  # pyright: ignore[reportArgumentType]


class Pool:
    """A context manager whose `run` spreads tasks and gives back results as they come.

    `workers` local processes, none meaning this process; or an executor. `limit` is how many seconds a cell may take.

    Work may return an iterator: each part of its result is given back as it comes, and after a loss only the rest is done
    again (for tasks that know what is left `without` a part, how to `split`, and how many cells run `at_once`).
    """

    def __init__(self, workers: int = 0, executor: Executor | None = None, limit: float | None = None):
        self.workers = workers if executor is None else _size_of(executor)
        self._executor = executor
        self._limit = limit
        self._alive: list[_Worker] = []
        self._false_starts = 0

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all workers. An executor is its owner's to end."""
        for worker in self._alive:
            worker.kill()
        self._alive.clear()

    def run(
        self, work: Callable[[Task], Result | Iterator[Result]], tasks: Iterable[Task]
    ) -> Iterator[tuple[Task, Result | Exception]]:
        """Results as they come, each with its task (or a part of it, where it had to be split); an exception for a task
        that raised it or was lost. Tasks are taken one by one, when somebody is free to work on them."""
        if self._executor is not None:
            return self._through(self._executor, work, iter(tasks))
        return self._spread(work, iter(tasks)) if self.workers else _here(work, tasks)

    def _spread(
        self, work: Callable[[Task], Any], tasks: Iterator[Task]
    ) -> Iterator[tuple[Task, Result | Exception]]:
        queue: deque[_Attempt[Task]] = deque()
        busy: dict[_Worker, _Attempt[Task]] = {}
        try:
            while True:
                free = self.workers - len(busy) - len(queue)
                queue.extend(_Attempt(task) for task in itertools.islice(tasks, max(free, 0)))
                if not queue and not busy:
                    return
                self._replace_dead(len(queue) + len(busy))
                for worker in [w for w in self._alive if w.ready and w not in busy][: len(queue)]:
                    attempt = queue.popleft()
                    try:
                        worker.begin(work, attempt.task, self._limit)
                    except OSError:  # it has just died: others will do this
                        queue.append(attempt)
                    except Exception as error:
                        yield attempt.task, error
                    else:
                        busy[worker] = attempt
                for worker in self._heard():
                    kind, answer = worker.answer()
                    if kind == "ready":
                        worker.ready, self._false_starts = True, 0
                    elif kind == "part":
                        whole = busy[worker].task
                        busy[worker].heard(answer)
                        yield whole, answer
                    elif kind == "result":
                        yield busy.pop(worker).task, answer
                    elif kind == "end":
                        del busy[worker]
                    else:
                        self._alive.remove(worker)
                        yield from self._lost(worker, answer, busy.pop(worker, None), queue)
        finally:
            for worker in busy:
                worker.kill()
                self._alive = [other for other in self._alive if other is not worker]

    def _lost(
        self,
        worker: "_Worker",
        late: Exception | None,
        attempt: _Attempt[Task] | None,
        queue: deque[_Attempt[Task]],
    ) -> Iterator[tuple[Task, Exception]]:
        """What to do about a dead worker: its task is queued again; given back with the reason when that is of no use."""
        reason = worker.last_words()
        if attempt is None:
            self._false_starts += not worker.ready
            if self._false_starts >= FALSE_STARTS + self.workers:
                raise BadInput(f"worker processes cannot be started: {reason}")
        elif not attempt.over:
            parts = attempt.again(once=late is not None)
            queue.extend(parts)
            if not parts:
                yield attempt.task, late or Lost(reason)

    def _replace_dead(self, wanted: int) -> None:
        for slot in range(self.workers):
            if len(self._alive) < min(self.workers, wanted) and all(w.slot != slot for w in self._alive):
                self._alive.append(_Worker.start(slot))

    def _heard(self) -> "list[_Worker]":
        """Workers that have said something, have died, or have taken too long."""
        now = time.monotonic()
        for worker in self._alive:
            if now > worker.deadline:
                worker.overdue = True
                worker.process.kill()
        ready = wait_for([worker.connection for worker in self._alive], timeout=0.2)
        _raise_if_interrupted()
        return [worker for worker in self._alive if worker.connection in ready]

    def _through(
        self, executor: Executor, work: Callable[[Task], Any], tasks: Iterator[Task]
    ) -> Iterator[tuple[Task, Result | Exception]]:
        again: deque[_Attempt[Task]] = deque()
        pending: dict[Future[list[Any]], _Attempt[Task]] = {}
        try:
            while True:
                while len(pending) < 2 * self.workers:
                    attempt = again.popleft() if again else next((_Attempt(task) for task in tasks), None)
                    if attempt is None:
                        break
                    try:
                        pending[executor.submit(_in_full, work, attempt.task)] = attempt
                    except (BrokenExecutor, RuntimeError) as error:
                        raise BadInput(f"the executor takes no more work: {error}") from None
                if not pending:
                    return
                done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                _raise_if_interrupted()
                for future in done:
                    attempt = pending.pop(future)
                    error = CancelledError() if future.cancelled() else future.exception()
                    if error is None:
                        yield from ((attempt.task, result) for result in future.result())
                    elif isinstance(error, BrokenExecutor | CancelledError) or _names_a_loss(error):
                        parts = attempt.again()
                        again.extend(parts)
                        if not parts:
                            yield attempt.task, Lost(f"{type(error).__name__}: {error}")
                    elif isinstance(error, Exception):
                        yield attempt.task, error
                    else:
                        raise error
        finally:
            for future in pending:
                future.cancel()


def _here(work: Callable[[Task], Any], tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
    """One task after another in this process."""
    for task in tasks:
        attempt = _Attempt(task)
        try:
            result = work(task)
            for part in result if isinstance(result, Iterator) else [result]:
                yield attempt.task, part
                attempt.heard(part)
                _raise_if_interrupted()
        except Exception as error:
            yield attempt.task, error


def _in_full(work: Callable[[Task], Any], task: Task) -> list[Any]:
    """All parts of a result, for engines that give it back at the end."""
    result = work(task)
    return list(result) if isinstance(result, Iterator) else [result]


def _size_of(executor: Executor) -> int:
    return getattr(executor, "_max_workers", None) or os.cpu_count() or 1


def _names_a_loss(error: BaseException) -> bool:
    """Whether an engine says that the worker died (Dask: KilledWorker), without importing it."""
    return type(error).__name__ in ("KilledWorker", "WorkerLost", "ManagerLost")


# Worker processes -------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Worker:
    """A worker process as its driver sees it."""

    slot: int
    process: subprocess.Popen[bytes]
    connection: Connection
    lifeline: int
    stderr: Any
    ready: bool = False
    deadline: float = field(default=float("inf"))
    allowed: float = 0.0
    overdue: bool = False

    @staticmethod
    def start(slot: int) -> "_Worker":
        mine, theirs = _socket_pair()
        lifeline_end, lifeline = os.pipe()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by kill
        core = _core(slot)
        code = (
            "import json, sys; sys.path[:] = json.loads(sys.argv[4]); "
            "from lemmata.lab.worker import main; main(*map(int, sys.argv[1:4]))"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(theirs), str(lifeline_end), str(core), json.dumps(sys.path)],
            pass_fds=(theirs, lifeline_end),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stderr=stderr,
        )
        os.close(theirs)
        os.close(lifeline_end)
        return _Worker(slot, process, Connection(mine), lifeline, stderr)

    def begin(self, work: Callable[[Any], Any], task: Any, limit: float | None) -> None:
        self.connection.send_bytes(_packed((work, task)))
        if limit is not None:
            self.allowed = SLACK + limit * getattr(task, "at_once", 1)
            self.deadline = time.monotonic() + self.allowed

    def answer(self) -> tuple[str, Any]:
        """A word and what belongs to it: ready, part, result, end; or dead, with a reason where it took too long."""
        try:
            word, said = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            late = TimeLimit(f"it took longer than {self.allowed - SLACK:g} s.")
            return "dead", late if self.overdue else None
        self.deadline = time.monotonic() + self.allowed if word == "part" and self.allowed else float("inf")
        return word, said

    def last_words(self) -> str:
        """How the process ended and what it left on standard error; nothing is left of it afterwards."""
        code = self.process.wait()
        self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, self.stderr.tell() - 2000))
        words = self.stderr.read().decode(errors="replace").strip()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self.kill()
        return f"its worker was {how}{f': {words}' if words else '.'}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()
        with contextlib.suppress(OSError):
            os.close(self.lifeline)
        self.stderr.close()


def _socket_pair() -> tuple[int, int]:
    one, other = socket.socketpair()
    return one.detach(), other.detach()


def _packed(message: Any) -> bytes:
    """A message for a worker, which does not know the user's script: what is defined there goes along."""
    packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    if b"__main__" not in packed:
        return packed
    try:
        import cloudpickle
    except ImportError:
        raise BadInput(
            "a trial defined in the script itself cannot be sent to workers: put it into a module of its own, "
            "or install cloudpickle."
        ) from None
    return cloudpickle.dumps(message)


def _core(slot: int) -> int:
    available = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return available[slot % len(available)] if available else -1


def _environment() -> dict[str, str]:
    """What a worker finds before it loads anything: one thread, the cache of compiled programs."""
    before = dict(os.environ)
    try:
        one_thread()
        cache_compilations()
        return dict(os.environ)
    finally:
        os.environ.clear()
        os.environ.update(before)


def one_thread() -> None:
    """Let XLA and BLAS use one thread; has an effect only before they are loaded."""
    flags = os.environ.get("XLA_FLAGS", "")
    if "--xla_cpu_multi_thread_eigen=false" not in flags.split():
        os.environ["XLA_FLAGS"] = f"{flags} --xla_cpu_multi_thread_eigen=false".strip()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


def cache_compilations() -> None:
    """Keep compiled programs on disk, so that the next run of the same figure starts at once."""
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(guard.cache_folder() / "xla"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")


# Interrupts -------------------------------------------------------------------------------------------------------------


_interrupted = threading.Event()
_terminated = threading.Event()


@contextlib.contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt and SIGTERM `Terminated`, where they fall, and are remembered until the pool looks:
    one that falls into a callback of the garbage collector would be swallowed there."""

    def interrupt(*_: object) -> None:
        _interrupted.set()
        raise KeyboardInterrupt

    def terminate(*_: object) -> None:
        _terminated.set()
        raise Terminated

    before = signal.signal(signal.SIGINT, interrupt), signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        _interrupted.clear()
        _terminated.clear()
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def _raise_if_interrupted() -> None:
    if _interrupted.is_set():
        raise KeyboardInterrupt
    if _terminated.is_set():
        raise Terminated
