"""Starts and stops worker processes, from the side of the driver.

A worker is a new program, so that the script of the user is not run again. It has one core and one compute thread.
"""

import contextlib
import json
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from lemmata import device
from lemmata.cache import private_folder
from lemmata.errors import BadInput

CHUNK_GRACE_SECONDS = 2.0
"""A chunk may exceed its time limit by this many seconds, as parts of its result are sent only every few seconds."""

ONE_THREAD = (
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_backend_extra_options=xla_llvm_ir_gemm_tile_size=8:8:1*vectwidth",
)
"""Flags for one compute thread. XLA then writes small matrix products as loops over tiles.

The tile size is set because XLA's default (11 by 9) makes LLVM allocate more than 20 GB at some sizes that the tiles do not
fill, such as 20 by 15 times 15 by 15, or 21 by 14 times 14 by 13."""

LARGE_PAGES = "glibc.malloc.hugetlb=1"
"""Uses pages of 2 MB for large allocations. A start that draws 65 MB of samples then takes half the time."""

MAX_STDERR_SHOWN = 4000
"""Characters of the standard error of a dead worker that are shown."""

MAX_PRESTARTED = 4
"""The largest number of workers that are started before it is known how much work there is."""

DRIVER_FILES, FILES_PER_WORKER = 64, 4
"""Open files that a driver needs for itself and for each worker."""


class TimeLimit(Exception):
    """A cell took longer than the time limit."""


@dataclass(eq=False)
class Worker:
    """A worker process.

    `slot`: its number, which chooses its core.
    `process`: the operating system process.
    `connection`: the pipe for tasks and results.
    `lifeline`: a pipe that closes when the driver ends.
    `stderr`: the file of its standard error.
    `ready`: whether it has loaded the module of its work.
    `deadline`: when the next message must have arrived, on the monotonic clock.
    `allowed`: the seconds allowed between two messages; 0 without a time limit.
    `overdue`: whether it was killed because of the deadline.
    """

    slot: int
    process: subprocess.Popen[bytes]
    connection: Connection
    lifeline: int
    stderr: Any
    ready: bool = False
    deadline: float = float("inf")
    allowed: float = 0.0
    overdue: bool = False

    @staticmethod
    def start(slot: int, module: str) -> "Worker":
        """Start a process that loads the module of its work and then reports that it is ready."""
        mine, theirs = (end.detach() for end in socket.socketpair())
        lifeline_end, lifeline = os.pipe()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115  # `kill` closes it
        core = _core(slot)
        code = (
            "import json, sys; sys.path[:] = json.loads(sys.argv[4]); "
            "from lemmata.lab.worker import main; main(*map(int, sys.argv[1:4]), sys.argv[5])"
        )
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                code,
                *map(str, (theirs, lifeline_end, core)),
                json.dumps(sys.path),
                module,
            ],
            pass_fds=(theirs, lifeline_end),
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
        )
        os.close(theirs)
        os.close(lifeline_end)
        return Worker(slot, process, Connection(mine), lifeline, stderr)

    @staticmethod
    def for_slot(slot: int, module: str) -> "Worker":
        """Return the worker that was started in advance for this slot, or a new one."""
        started = [worker for worker in _prestarted if worker.slot == slot]
        if not started:
            return Worker.start(slot, module)
        _prestarted.remove(started[0])
        return started[0]

    def send(self, work: Callable[[Any], Any], task: Any, limit: float | None) -> None:
        """Send a task. `limit` is how many seconds a cell may take."""
        self.connection.send_bytes(_packed((work, task)))
        if limit is not None:
            self.allowed = CHUNK_GRACE_SECONDS + limit * getattr(task, "at_once", 1)
            self.deadline = time.monotonic() + self.allowed

    def receive(self) -> tuple[str, Any]:
        """Return the kind of the next message (ready, part, result, end or dead) and its content."""
        try:
            kind, content = pickle.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            late = TimeLimit(f"it took longer than {self.allowed - CHUNK_GRACE_SECONDS:g} s.")
            return "dead", late if self.overdue else None
        self.deadline = time.monotonic() + self.allowed if kind == "part" and self.allowed else float("inf")
        return kind, content

    def exit_message(self, lines: int | None = None) -> str:
        """Return how the process ended, with the last `lines` of its standard error (all, if None)."""
        code = self.process.wait()
        self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, self.stderr.tell() - MAX_STDERR_SHOWN))
        words = self.stderr.read().decode(errors="replace").strip().splitlines()
        last = "\n".join(words if lines is None else words[-lines:])
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"its worker {how}{f': {last}' if last else '.'}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()
        with contextlib.suppress(OSError):
            os.close(self.lifeline)
        self.stderr.close()


def require_files(workers: int) -> None:
    """Raise the limit of open files of this process to what the workers need. Raises `BadInput` if that is not allowed."""
    needed = DRIVER_FILES + FILES_PER_WORKER * workers
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard) or hard >= needed:
        if soft != resource.RLIM_INFINITY and soft < needed:
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
        return
    raise BadInput(
        f"this process may open {hard} files at a time and needs {needed} with {workers} workers; "
        f"use fewer workers, or raise the limit: ulimit -n {needed}"
    )


_prestarted: list[Worker] = []


@contextlib.contextmanager
def prestart_workers(count: int, module: str) -> Iterator[None]:
    """Start workers in advance, so that they load their modules while the driver loads its own. Unused workers are stopped."""
    for slot in range(min(count, MAX_PRESTARTED)):
        with contextlib.suppress(OSError):  # the pool will try again and report the error
            _prestarted.append(Worker.start(slot, module))
    try:
        yield
    finally:
        while _prestarted:
            _prestarted.pop().kill()


def _packed(message: Any) -> bytes:
    """Pickle a message for a worker. The worker cannot import the script of the user, so its definitions are included."""
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
    """Return the environment of a worker: device, one thread, large pages, cache of compiled programs."""
    environment = dict(os.environ)
    device.select(environment)
    one_thread(environment)
    large_pages(environment)
    cache_compilations(environment)
    return environment


def one_thread(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let XLA and BLAS use one thread. This has an effect only before they are loaded."""
    for flag in ONE_THREAD:
        flags = environment.get("XLA_FLAGS", "")
        if flag.partition("=")[0] not in flags:
            environment["XLA_FLAGS"] = f"{flags} {flag}".strip()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"


def large_pages(environment: MutableMapping[str, str]) -> None:
    """Let programs with this environment use large pages, which needs Linux with glibc 2.35 or later."""
    found = environment.get("GLIBC_TUNABLES", "")
    if LARGE_PAGES.partition("=")[0] not in found:
        environment["GLIBC_TUNABLES"] = f"{found}:{LARGE_PAGES}".strip(":")


def cache_compilations(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let JAX cache compiled programs on disk, so that the next run of the same figure starts at once."""
    if "JAX_COMPILATION_CACHE_DIR" not in environment:
        with contextlib.suppress(OSError):  # without a folder nothing is cached
            environment["JAX_COMPILATION_CACHE_DIR"] = str(private_folder("xla"))
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
