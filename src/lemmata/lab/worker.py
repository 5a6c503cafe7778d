"""A worker process of the pool: takes tasks from its driver one by one, and ends when the driver does.

It is started as a program of its own, not as a copy of the driver, so that a user's script is never run a second time.
"""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from multiprocessing.connection import Connection

from lemmata import guard

STDERR_KEPT = 1 << 20
"""Bytes of standard error that a worker may leave behind before they are thrown away between tasks."""


def main(tasks: int, lifeline: int, core: int, module: str) -> None:
    """Serve the driver at the other end of the pipe `tasks`; `lifeline` closes when the driver ends, however it ends.

    The module is that of the work to be prepared for (what a user's script defines comes with each task).
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver decides what Ctrl-C means
    threading.Thread(target=_die_with_the_driver, args=(lifeline,), daemon=True).start()
    available = os.sched_getaffinity(0) if core >= 0 else set()
    if available:
        os.sched_setaffinity(0, {core})
    guard.apply()
    connection = Connection(tasks)
    try:
        if module != "__main__":
            import_module(module)
        _free(available)
        _keep_programs()
        connection.send_bytes(pickle.dumps(("ready", None)))
        while True:
            for answer in _answers(connection.recv_bytes()):
                connection.send_bytes(answer)
            _forget_stderr()
    except (EOFError, BrokenPipeError, ConnectionError):
        return


def _free(cores: set[int]) -> None:
    """JAX makes as many threads as it sees cores when it starts, one here; after that the system may put them on any: two
    commands side by side must not share one core while another is idle."""
    if cores and "jax" in sys.modules:
        sys.modules["jax"].devices()
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), cores)


def _keep_programs() -> None:
    """Where the work trains something."""
    if "lemmata.programs" in sys.modules:
        sys.modules["lemmata.programs"].keep()


def _answers(message: bytes) -> Iterator[bytes]:
    """Messages back: parts of a result where the work gives them, then the end."""
    try:
        work, task = pickle.loads(message)
        result = work(task)
        if isinstance(result, Iterator):
            for part in result:
                yield pickle.dumps(("part", part), pickle.HIGHEST_PROTOCOL)
            yield pickle.dumps(("end", None))
        else:
            yield pickle.dumps(("result", result), pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        yield _told(error)


def _told(error: Exception) -> bytes:
    """An exception as a message; as text where it cannot be sent itself."""
    try:
        message = pickle.dumps(("result", error))
        pickle.loads(message)
        return message
    except Exception:
        return pickle.dumps(("result", RuntimeError(f"{type(error).__name__}: {error}")))


def _die_with_the_driver(lifeline: int) -> None:
    """A driver that was killed can write nothing; its workers would compute for nobody."""
    os.read(lifeline, 1)
    os._exit(1)


def _forget_stderr() -> None:
    sys.stderr.flush()
    if os.fstat(2).st_size > STDERR_KEPT:
        os.ftruncate(2, 0)
