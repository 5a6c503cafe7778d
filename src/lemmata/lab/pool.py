"""Runs chunks: in this process, in local worker processes, or through any `concurrent.futures.Executor`.

A worker process has one core and one compute thread. One pool serves a whole command.
"""

import itertools
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, Generic, TypeVar

from lemmata import device
from lemmata.errors import BadInput, require, require_memory, shortened
from lemmata.lab.process import TimeLimit, Worker, cache_compilations, one_thread, require_files

__all__ = [
    "Lost",
    "Pool",
    "TimeLimit",
    "cache_compilations",
    "one_thread",
]

Task = TypeVar("Task")

MAX_LOSSES = 3
"""A cell has failed when its worker ended this often while running it, not counting ends that may have another cause."""

RETRY_PAUSE_SECONDS = 1.0
"""A cell whose worker was killed by a signal runs alone after a pause of this many seconds."""

MAX_KILLED_TOGETHER = 30
"""Give up when this often a cell that ran alone and an idle worker were killed together: something kills all workers."""

MAX_FALSE_STARTS = 3
"""Give up when this many workers in a row exit before they are ready."""

MAX_KILLED_AT_START = 30
"""Give up when this many workers in a row are killed by a signal before they are ready."""

MAX_WORKERS = 100_000

WORKER_BYTES = 200 << 20
"""About how much memory an idle worker process takes with JAX loaded."""

EXECUTOR_CHECK_SECONDS = 30.0
"""If an executor returns nothing for this many seconds, its `check_workers` is called, if it has one."""


class Lost(Exception):
    """Every worker that ran the task ended while doing so."""


@dataclass
class _Attempt(Generic[Task]):
    """A task without the parts whose results have arrived.

    `losses`: how often its worker ended, as far as that counts.
    `alone`: whether it runs, or last ran, while no other task does.
    `lost_at`: when its worker was killed.
    `words`: what that worker wrote to standard error.
    """

    task: Task
    losses: int = 0
    alone: bool = False
    lost_at: float = 0.0
    words: str = ""

    def drop_finished(self, part: Any) -> None:
        if hasattr(self.task, "without"):
            self.task = self.task.without(part)  # pyright: ignore[reportAttributeAccessIssue]

    def parts(self) -> "list[_Attempt[Task]]":
        """Split the task to find the cell that ends its worker. The list is empty for a single cell."""
        parts = self.task.split() if hasattr(self.task, "split") else []  # pyright: ignore[reportAttributeAccessIssue]
        return [_Attempt(part) for part in parts] if len(parts) > 1 else []

    @property
    def over(self) -> bool:
        """Whether all parts of the result have arrived, for tasks that have a length."""
        return hasattr(self.task, "without") and len(self.task) == 0  # pyright: ignore[reportArgumentType]


class Pool:
    """A context manager whose `run` distributes tasks and yields their results as they arrive.

    `workers`: the number of local processes; 0 runs everything in this process.
    `executor`: any `concurrent.futures.Executor`, in place of `workers`. It is not shut down.
    `limit`: how many seconds a cell may take.

    The work may return an iterator. Its parts are yielded as they arrive, and after the loss of a worker only the rest is
    repeated. This needs tasks with the methods `without` (a part) and `split`, and `at_once`, the number of cells at a time.

    A signal that kills a worker may come from another program, or from the system when others use much memory. A single cell
    whose worker was killed is therefore set aside until no other task is left. It then runs alone, each time after a pause,
    and fails after three kills. A kill that also hits an idle worker does not count.
    """

    def __init__(self, workers: int = 0, executor: Executor | None = None, limit: float | None = None):
        require_capacity(workers)
        if executor is None:
            device.require_one_worker(workers)
            if workers == 0:
                device.check()
        require(limit is None or workers > 0, "a time limit needs worker processes (--workers 1 or more).")
        require(limit is None or 0 < limit < float("inf"), f"a cell may take some seconds, not {limit}.")
        self.workers = workers if executor is None else _size_of(executor)
        self.executor = executor
        self._limit = limit
        self._alive: list[Worker] = []
        self._false_starts = self._killed = self._killed_together = 0
        self._idle_killed_at = float("-inf")

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop all workers. An executor passed in is not shut down."""
        for worker in self._alive:
            worker.kill()
        self._alive.clear()

    def run(
        self, work: Callable[[Task], Any], tasks: Iterable[Task], home: Path | None = None
    ) -> Iterator[tuple[Task, Any]]:
        """Yield results as they arrive, each with its task, or with a part of it if the task was split.

        For a task that raised an exception or was lost, the result is that exception.

        `work`: the function that is applied to each task.
        `tasks`: an iterable; the next task is requested when a worker is free.
        `home`: the folder of the store, used only by pools that work through files (see `spool`)."""
        if self.executor is not None:
            return self._run_on_executor(self.executor, work, iter(tasks))
        return self._run_on_workers(work, iter(tasks)) if self.workers else _run_here(work, tasks)

    def _run_on_workers(
        self, work: Callable[[Task], Any], tasks: Iterator[Task]
    ) -> Iterator[tuple[Task, Any]]:
        queue: deque[_Attempt[Task]] = deque()
        suspects: deque[_Attempt[Task]] = deque()
        busy: dict[Worker, _Attempt[Task]] = {}
        try:
            while True:
                free = self.workers - len(busy) - len(queue)
                queue.extend(_Attempt(task) for task in itertools.islice(tasks, max(free, 0)))
                if not queue and not busy:
                    if not suspects:
                        return
                    yield from self._isolate(suspects.popleft(), queue)
                    continue
                alone = any(attempt.alone for attempt in (*queue, *busy.values()))
                self._replace_dead(work, 2 if alone else len(queue) + len(busy))
                for worker in [w for w in self._alive if w.ready and w not in busy][: len(queue)]:
                    attempt = queue.popleft()
                    try:
                        worker.send(work, attempt.task, self._limit)
                    except OSError:  # the worker has just died: another one gets the task
                        queue.append(attempt)
                    except Exception as error:
                        yield attempt.task, error
                    else:
                        busy[worker] = attempt
                for worker in self._ready_workers():
                    kind, answer = worker.receive()
                    if kind == "ready":
                        worker.ready, self._false_starts, self._killed = True, 0, 0
                    elif kind == "part":
                        whole = busy[worker].task
                        busy[worker].drop_finished(answer)
                        yield whole, answer
                    elif kind == "result":
                        yield busy.pop(worker).task, answer
                    elif kind == "end":
                        del busy[worker]
                    else:
                        self._alive.remove(worker)
                        yield from self._lost(worker, answer, busy.pop(worker, None), queue, suspects)
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
        suspects: deque[_Attempt[Task]],
    ) -> Iterator[tuple[Task, Exception]]:
        """Handle a dead worker. Its task is queued again in parts.

        A single cell is set aside if a signal killed the worker, else tried again; it fails after `MAX_LOSSES`."""
        try:
            killed = worker.process.wait() < 0
            if attempt is None:
                self._note_false_start(worker)
                if killed:
                    self._idle_killed_at = time.monotonic()
            elif attempt.over:
                return
            elif parts := attempt.parts():
                queue.extend(parts)
            elif late is not None:
                yield attempt.task, late
            elif killed:
                attempt.lost_at, attempt.words = time.monotonic(), worker.exit_message()
                suspects.append(attempt)
            elif attempt.losses + 1 < MAX_LOSSES:
                queue.append(replace(attempt, losses=attempt.losses + 1))
            else:
                yield attempt.task, Lost(worker.exit_message())
        finally:
            worker.kill()

    def _isolate(
        self, suspect: _Attempt[Task], queue: deque[_Attempt[Task]]
    ) -> Iterator[tuple[Task, Exception]]:
        """Queue a cell whose worker was killed, to run alone after a pause. After too many tries it is yielded as lost."""
        time.sleep(max(0.0, suspect.lost_at + RETRY_PAUSE_SECONDS - time.monotonic()))
        if suspect.alone and self._idle_was_killed(since=suspect.lost_at - RETRY_PAUSE_SECONDS):
            self._killed_together += 1
            if self._killed_together >= MAX_KILLED_TOGETHER:
                raise BadInput(
                    f"something kills all worker processes again and again: {shortened(suspect.words)}"
                )
        elif suspect.alone:
            suspect.losses += 1
        if suspect.losses < MAX_LOSSES:
            queue.append(replace(suspect, alone=True))
        else:
            yield suspect.task, Lost(f"{MAX_LOSSES} times, with no other cell at work, {suspect.words}")

    def _idle_was_killed(self, since: float) -> bool:
        """Whether a signal has killed an idle worker since then."""
        codes = [worker.process.poll() for worker in self._alive]
        return self._idle_killed_at >= since or any(code is not None and code < 0 for code in codes)

    def _note_false_start(self, worker: Worker) -> None:
        code = worker.process.wait()
        self._false_starts += not worker.ready and code >= 0
        self._killed += not worker.ready and code < 0
        if self._false_starts >= MAX_FALSE_STARTS or self._killed >= MAX_KILLED_AT_START:
            raise BadInput(f"worker processes cannot be started: {worker.exit_message(lines=1)}")

    def _replace_dead(self, work: Callable[[Any], Any], wanted: int) -> None:
        for slot in range(self.workers):
            if len(self._alive) < min(self.workers, wanted) and all(w.slot != slot for w in self._alive):
                try:
                    self._alive.append(Worker.for_slot(slot, work.__module__))
                except OSError as error:
                    if not self._alive:
                        raise BadInput(f"cannot start a worker process: {error.strerror}.") from None

    def _ready_workers(self) -> list[Worker]:
        """Return the workers that have sent a message or have died, after killing those that exceed the time limit."""
        now = time.monotonic()
        for worker in self._alive:
            if now > worker.deadline:
                worker.overdue = True
                worker.process.kill()
        ready = wait_for([worker.connection for worker in self._alive], timeout=0.2)
        return [worker for worker in self._alive if worker.connection in ready]

    def _run_on_executor(
        self, executor: Executor, work: Callable[[Task], Any], tasks: Iterator[Task]
    ) -> Iterator[tuple[Task, Any]]:
        again: deque[_Attempt[Task]] = deque()
        suspects: deque[_Attempt[Task]] = deque()
        pending: dict[Future[list[Any]], _Attempt[Task]] = {}
        last_result = time.monotonic()
        try:
            while True:
                while len(pending) < 2 * self.workers:
                    attempt = again.popleft() if again else next((_Attempt(task) for task in tasks), None)
                    if attempt is None:
                        break
                    try:
                        pending[executor.submit(_all_parts, work, attempt.task)] = attempt
                    except (BrokenExecutor, RuntimeError) as error:
                        raise BadInput(f"the executor takes no more work: {error}") from None
                if not pending:
                    if not suspects:
                        return
                    yield from self._isolate(suspects.popleft(), again)
                    continue
                done, _ = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
                if done or time.monotonic() - last_result > EXECUTOR_CHECK_SECONDS:
                    last_result = time.monotonic()
                    if not done and hasattr(executor, "check_workers"):
                        executor.check_workers()  # pyright: ignore[reportAttributeAccessIssue]
                results: list[tuple[Task, Any]] = []
                for future in done:
                    attempt = pending.pop(future)
                    error = CancelledError() if future.cancelled() else future.exception()
                    if error is None:
                        results += [(attempt.task, result) for result in future.result()]
                    elif isinstance(error, BrokenExecutor | CancelledError) or _names_a_loss(error):
                        parts = attempt.parts()
                        again.extend(parts)
                        if not parts:
                            attempt.lost_at, attempt.words = (
                                time.monotonic(),
                                f"{type(error).__name__}: {error}",
                            )
                            suspects.append(attempt)
                    elif isinstance(error, Exception):
                        yield attempt.task, error
                    else:
                        raise error
                yield from merge_results(results)
        finally:
            for future in pending:
                future.cancel()


def require_workers(workers: int) -> None:
    """Raise `BadInput` for an impossible number of workers."""
    require(
        0 <= workers <= MAX_WORKERS,
        f"the number of workers (--workers) lies between 0 and {MAX_WORKERS}, not {shortened(workers)}.",
    )


def require_capacity(workers: int) -> None:
    """Raise `BadInput` for more local workers than the memory or the limit of open files allows."""
    require_workers(workers)
    require_memory(workers * WORKER_BYTES, f"{workers} worker processes")
    require_files(workers)


def _run_here(work: Callable[[Task], Any], tasks: Iterable[Task]) -> Iterator[tuple[Task, Any]]:
    """Run one task after another in this process."""
    for task in tasks:
        attempt = _Attempt(task)
        try:
            result = work(task)
            for part in result if isinstance(result, Iterator) else [result]:
                yield attempt.task, part
                attempt.drop_finished(part)
        except Exception as error:
            yield attempt.task, error


def _all_parts(work: Callable[[Task], Any], task: Task) -> list[Any]:
    """Return all parts of a result in a list, for executors that return results only at the end."""
    result = work(task)
    return list(result) if isinstance(result, Iterator) else [result]


def merge_results(results: Iterable[tuple[Task, Any]]) -> Iterator[tuple[Task, Any]]:
    """Join results whose tasks have the same `batch_key`, so that they are written to the store together."""
    groups: dict[Any, list[tuple[Any, Any]]] = {}
    for task, result in results:
        groups.setdefault(getattr(task, "batch_key", id(result)), []).append((task, result))
    for (task, result), *others in groups.values():
        if others:
            task = task.joined(other for other, _ in others)
            result = [part for parts in (result, *(more for _, more in others)) for part in parts]
        yield task, result


def _size_of(executor: Executor) -> int:
    return getattr(executor, "_max_workers", None) or os.cpu_count() or 1


def _names_a_loss(error: BaseException) -> bool:
    """Whether the exception of an executor means that a worker died. The classes are recognised by name, without imports."""
    return type(error).__name__ in ("KilledWorker", "WorkerLost", "ManagerLost")
