"""The program of a worker process. It takes tasks from its driver one by one, and ends when the driver ends.

It is a new program, not a fork of the driver, so that the script of the user is not run again.
"""

import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from multiprocessing.connection import Connection

from lemmata import device, guard
from lemmata.errors import BadInput

STDERR_KEPT = 1 << 20
"""When standard error has more bytes than this between two tasks, it is truncated."""


def main(tasks: int, lifeline: int, core: int, module: str) -> None:
    """Serve the driver until it ends.

    `tasks`: the file descriptor of the pipe for tasks and results.
    `lifeline`: the file descriptor of a pipe that closes when the driver ends, for whatever reason.
    `core`: the core to run on; -1 leaves the choice to the system.
    `module`: the module of the work, which is imported first. What a script of the user defines comes with each task.
    """
    for number in (signal.SIGINT, signal.SIGHUP):  # the driver receives them too, and decides what to do
        signal.signal(number, signal.SIG_IGN)
    threading.Thread(target=_die_with_the_driver, args=(lifeline,), daemon=True).start()
    available = os.sched_getaffinity(0) if core >= 0 else set()
    if available:
        os.sched_setaffinity(0, {core})
    guard.apply()
    connection = Connection(tasks)
    try:
        if module != "__main__":
            import_module(module)
        _start_jax(available)
        _keep_programs()
        connection.send_bytes(pickle.dumps(("ready", None)))
        while True:
            for answer in _answers(connection.recv_bytes()):
                connection.send_bytes(answer)
            _forget_stderr()
    except (EOFError, BrokenPipeError, ConnectionError):
        return


def _start_jax(cores: set[int]) -> None:
    """Start JAX, then allow all cores again.

    JAX starts as many threads as it sees cores, so one here. After that the system may move the threads to any core:
    otherwise two commands could share one core while another is idle."""
    if "jax" not in sys.modules:
        return
    try:
        device.check()
    except BadInput as error:
        sys.exit(str(error))  # the driver reports what the worker wrote last
    if cores:
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), cores)


def _keep_programs() -> None:
    """Cache traced programs, if the module of the work has loaded `lemmata.programs`."""
    if "lemmata.programs" in sys.modules:
        sys.modules["lemmata.programs"].enable_cache()


def _answers(message: bytes) -> Iterator[bytes]:
    """Yield the messages to send back: the result, or its parts and then an end."""
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
        yield _pickled(error)


def _pickled(error: Exception) -> bytes:
    """Return an exception as a message. One that cannot be pickled is sent as text."""
    try:
        message = pickle.dumps(("result", error))
        pickle.loads(message)
        return message
    except Exception:
        return pickle.dumps(("result", RuntimeError(f"{type(error).__name__}: {error}")))


def _die_with_the_driver(lifeline: int) -> None:
    """Exit when the driver ends. Results could not be stored any more."""
    os.read(lifeline, 1)
    os._exit(1)


def _forget_stderr() -> None:
    sys.stderr.flush()
    if os.fstat(2).st_size > STDERR_KEPT:
        os.ftruncate(2, 0)
