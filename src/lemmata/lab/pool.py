"""Where chunks run: in this process, in local worker processes (each on one core with one compute thread), or through any
`concurrent.futures.Executor`. One pool serves a whole command."""

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, Generic, TypeVar

from lemmata.errors import BadInput, require, require_memory, shortened
from lemmata.lab.process import TimeLimit, Worker, cache_compilations, one_thread

__all__ = [
    "Lost",
    "Pool",
    "TimeLimit",
    "cache_compilations",
    "one_thread",
]

Task = TypeVar("Task")

TRIES = 3
"""A cell that takes its worker down this often, alone, has failed."""

FALSE_STARTS = 3
"""When so many workers in a row end by themselves before they are ready, none ever will be."""

KILLED_AT_START = 30
"""The same for workers that something kills before they are ready."""


MOST_WORKERS = 100_000

WORKER_BYTES = 200 << 20
"""What a worker process takes with JAX loaded and nothing to do, about."""

QUIET = 30.0
"""When nothing was heard from an executor for so many seconds, it is asked to look after its workers, if it can."""


class Lost(Exception):
    """A task took its worker down with it, every time."""


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
        require_workers(workers)
        require_memory(workers * WORKER_BYTES, f"{workers} worker processes")
        require(limit is None or workers > 0, "a time limit needs worker processes (--workers 1 or more).")
        require(limit is None or 0 < limit < float("inf"), f"a cell may take some seconds, not {limit}.")
        self.workers = workers if executor is None else _size_of(executor)
        self.executor = executor
        self._limit = limit
        self._alive: list[Worker] = []
        self._false_starts = self._killed = 0

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
        self, work: Callable[[Task], Any], tasks: Iterable[Task], home: Path | None = None
    ) -> Iterator[tuple[Task, Any]]:
        """Results as they come, each with its task (or a part of it, where it had to be split); an exception for a task
        that raised it or was lost. Tasks are taken one by one, when somebody is free to work on them. (`home`, the
        folder of the store, is for pools that work through files: see `spool`.)"""
        if self.executor is not None:
            return self._through(self.executor, work, iter(tasks))
        return self._spread(work, iter(tasks)) if self.workers else _here(work, tasks)

    def _spread(self, work: Callable[[Task], Any], tasks: Iterator[Task]) -> Iterator[tuple[Task, Any]]:
        queue: deque[_Attempt[Task]] = deque()
        busy: dict[Worker, _Attempt[Task]] = {}
        try:
            while True:
                free = self.workers - len(busy) - len(queue)
                queue.extend(_Attempt(task) for task in itertools.islice(tasks, max(free, 0)))
                if not queue and not busy:
                    return
                self._replace_dead(work, len(queue) + len(busy))
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
                        worker.ready, self._false_starts, self._killed = True, 0, 0
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
        worker: Worker,
        late: Exception | None,
        attempt: _Attempt[Task] | None,
        queue: deque[_Attempt[Task]],
    ) -> Iterator[tuple[Task, Exception]]:
        """What to do about a dead worker: its task is queued again; given back with the reason when that is of no use."""
        try:
            if attempt is None:
                self._note_false_start(worker)
            elif not attempt.over:
                parts = attempt.again(once=late is not None)
                queue.extend(parts)
                if not parts:
                    yield attempt.task, late or Lost(worker.last_words())
        finally:
            worker.kill()

    def _note_false_start(self, worker: Worker) -> None:
        code = worker.process.wait()
        self._false_starts += not worker.ready and code >= 0
        self._killed += not worker.ready and code < 0
        if self._false_starts >= FALSE_STARTS or self._killed >= KILLED_AT_START:
            raise BadInput(f"worker processes cannot be started: {worker.last_words(lines=1)}")

    def _replace_dead(self, work: Callable[[Any], Any], wanted: int) -> None:
        for slot in range(self.workers):
            if len(self._alive) < min(self.workers, wanted) and all(w.slot != slot for w in self._alive):
                try:
                    self._alive.append(Worker.at(slot, work.__module__))
                except OSError as error:
                    if not self._alive:
                        raise BadInput(f"cannot start a worker process: {error.strerror}.") from None

    def _heard(self) -> list[Worker]:
        """Workers that have said something, have died, or have taken too long."""
        now = time.monotonic()
        for worker in self._alive:
            if now > worker.deadline:
                worker.overdue = True
                worker.process.kill()
        ready = wait_for([worker.connection for worker in self._alive], timeout=0.2)
        return [worker for worker in self._alive if worker.connection in ready]

    def _through(
        self, executor: Executor, work: Callable[[Task], Any], tasks: Iterator[Task]
    ) -> Iterator[tuple[Task, Any]]:
        again: deque[_Attempt[Task]] = deque()
        pending: dict[Future[list[Any]], _Attempt[Task]] = {}
        heard = time.monotonic()
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
                if done or time.monotonic() - heard > QUIET:
                    heard = time.monotonic()
                    if not done and hasattr(executor, "look"):
                        executor.look()  # pyright: ignore[reportAttributeAccessIssue]
                results: list[tuple[Task, Any]] = []
                for future in done:
                    attempt = pending.pop(future)
                    error = CancelledError() if future.cancelled() else future.exception()
                    if error is None:
                        results += [(attempt.task, result) for result in future.result()]
                    elif isinstance(error, BrokenExecutor | CancelledError) or _names_a_loss(error):
                        parts = attempt.again()
                        again.extend(parts)
                        if not parts:
                            yield attempt.task, Lost(f"{type(error).__name__}: {error}")
                    elif isinstance(error, Exception):
                        yield attempt.task, error
                    else:
                        raise error
                yield from in_one_go(results)
        finally:
            for future in pending:
                future.cancel()


def require_workers(workers: int) -> None:
    """Refuse numbers of workers that nobody has."""
    require(
        0 <= workers <= MOST_WORKERS,
        f"the number of workers (--workers) lies between 0 and {MOST_WORKERS}, not {shortened(workers)}.",
    )


def _here(work: Callable[[Task], Any], tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
    """One task after another in this process."""
    for task in tasks:
        attempt = _Attempt(task)
        try:
            result = work(task)
            for part in result if isinstance(result, Iterator) else [result]:
                yield attempt.task, part
                attempt.heard(part)
        except Exception as error:
            yield attempt.task, error


def _in_full(work: Callable[[Task], Any], task: Task) -> list[Any]:
    """All parts of a result, for engines that give it back at the end."""
    result = work(task)
    return list(result) if isinstance(result, Iterator) else [result]


def in_one_go(results: Iterable[tuple[Task, Any]]) -> Iterator[tuple[Task, Any]]:
    """Results that came together, put together as far as their tasks are of one `kin`: whoever keeps them does it once."""
    families: dict[Any, list[tuple[Any, Any]]] = {}
    for task, result in results:
        families.setdefault(getattr(task, "kin", id(result)), []).append((task, result))
    for (task, result), *others in families.values():
        if others:
            task = task.joined(other for other, _ in others)
            result = [part for parts in (result, *(more for _, more in others)) for part in parts]
        yield task, result


def _size_of(executor: Executor) -> int:
    return getattr(executor, "_max_workers", None) or os.cpu_count() or 1


def _names_a_loss(error: BaseException) -> bool:
    """Whether an engine says that the worker died (Dask: KilledWorker), without importing it."""
    return type(error).__name__ in ("KilledWorker", "WorkerLost", "ManagerLost")
