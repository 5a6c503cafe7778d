"""A worker process as its driver sees it: started as a program of its own, so that a user's script is never run again, on
one core with one compute thread."""

import contextlib
import json
import os
import pickle
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

from lemmata import guard
from lemmata.errors import BadInput

SLACK = 2.0
"""Seconds between two parts of a result that are nobody's fault."""

ONE_THREAD = (
    "--xla_cpu_multi_thread_eigen=false",
    "--xla_backend_extra_options=xla_llvm_ir_gemm_tile_size=8:8:1*vectwidth",
)
"""One compute thread; small products are then written out as loops, in tiles. The compiler's own tiles (11 by 9) make LLVM ask
for more than 20 GB at some sizes that do not fill them (20 by 15 times 15 by 15, 21 by 14 times 14 by 13, ...)."""

LARGE_PAGES = "glibc.malloc.hugetlb=1"
"""Memory in pages of 2 MB where it is taken in large pieces: a start that draws 65 MB of samples takes half the time."""

WORDS_KEPT = 4000
"""How much of what a worker left on standard error is told when it dies."""


EARLY = 4
"""Workers that are started before it is known whether there is work for so many."""


class TimeLimit(Exception):
    """A task took longer than a cell may."""


@dataclass(eq=False)
class Worker:
    """A worker process as its driver sees it."""

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
        """A new process, which loads the module of its work and then says that it is ready."""
        mine, theirs = (end.detach() for end in socket.socketpair())
        lifeline_end, lifeline = os.pipe()
        stderr = tempfile.TemporaryFile()  # noqa: SIM115  # closed by kill
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
    def at(slot: int, module: str) -> "Worker":
        """The worker that was called early for this slot, or a new one."""
        called = [worker for worker in _early if worker.slot == slot]
        if not called:
            return Worker.start(slot, module)
        _early.remove(called[0])
        return called[0]

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

    def last_words(self, lines: int | None = None) -> str:
        """How the process ended and what it left on standard error (its last lines)."""
        code = self.process.wait()
        self.stderr.seek(0, os.SEEK_END)
        self.stderr.seek(max(0, self.stderr.tell() - WORDS_KEPT))
        words = self.stderr.read().decode(errors="replace").strip().splitlines()
        said = "\n".join(words if lines is None else words[-lines:])
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return f"its worker {how}{f': {said}' if said else '.'}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()
        with contextlib.suppress(OSError):
            os.close(self.lifeline)
        self.stderr.close()


_early: list[Worker] = []


@contextlib.contextmanager
def early(count: int, module: str) -> Iterator[None]:
    """Workers that load what they need while their driver does, too; those that nobody has come to need are ended."""
    for slot in range(min(count, EARLY)):
        with contextlib.suppress(OSError):  # the pool will try, and say why not
            _early.append(Worker.start(slot, module))
    try:
        yield
    finally:
        while _early:
            _early.pop().kill()


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
    """What a worker finds before it loads anything: one thread, large pages, the cache of compiled programs."""
    environment = dict(os.environ)
    one_thread(environment)
    large_pages(environment)
    cache_compilations(environment)
    return environment


def one_thread(environment: MutableMapping[str, str] = os.environ) -> None:
    """Let XLA and BLAS use one thread; has an effect only before they are loaded."""
    for flag in ONE_THREAD:
        flags = environment.get("XLA_FLAGS", "")
        if flag.partition("=")[0] not in flags:
            environment["XLA_FLAGS"] = f"{flags} {flag}".strip()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[name] = "1"


def large_pages(environment: MutableMapping[str, str]) -> None:
    """Let a program that finds this take memory in large pages, where it runs on glibc 2.35 or later on Linux."""
    told = environment.get("GLIBC_TUNABLES", "")
    if LARGE_PAGES.partition("=")[0] not in told:
        environment["GLIBC_TUNABLES"] = f"{told}:{LARGE_PAGES}".strip(":")


def cache_compilations(environment: MutableMapping[str, str] = os.environ) -> None:
    """Keep compiled programs on disk, so that the next run of the same figure starts at once."""
    environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(guard.cache_folder() / "xla"))
    environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
