"""Connects to workers: on this machine, on a Dask cluster, or jobs of a batch system that work through files."""

import contextlib
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lemmata.ending import on_exit
from lemmata.errors import BadInput, note, require, require_memory, unknown
from lemmata.lab.pool import WORKER_BYTES, Pool, require_workers
from lemmata.lab.spool import Folder, Spool

PLACES = ("local", "dask", "dask://HOST:PORT", "slurm", "spool")

LARGEST_ARRAY = 1000
"""The largest number of tasks in one job array. Slurm allows 1001 by default."""


@contextlib.contextmanager
def connect_workers(
    on: str = "local", workers: int = 0, limit: float | None = None
) -> Iterator[Pool | Spool]:
    """Return a pool of workers, which has `workers` and `run`.

    `on`: where the workers are.
        `local`: worker processes on this machine; with 0 workers, this process.
        `dask`: a new Dask cluster on this machine; `dask://HOST:PORT`: one that is running.
        `slurm`: jobs of a batch system.
        `spool`: processes of `lemmata work` on the folder of the results, started by the user.
    `workers`: their number.
    `limit`: how many seconds a cell may take; local workers only.
    """
    require_workers(workers)
    require(on == "local" or limit is None, "a time limit for cells needs local workers.")
    if on == "local":
        pool = Pool(workers, limit=limit)
    elif on == "dask" or on.startswith("dask://"):
        right = on == "dask" or re.fullmatch(r"dask://[^/\s]+:\d+", on) is not None
        require(right, f"'{on}' is not dask://HOST:PORT.")
        pool = Pool(executor=Dask.at(on[len("dask://") :], workers or os.cpu_count() or 1))
    elif on in ("slurm", "spool"):
        count = workers or os.cpu_count() or 1
        pool = Spool(count, Slurm(count).hire) if on == "slurm" else Spool(count)
    else:
        raise unknown("place to run", on, PLACES)
    close_on_exit = on_exit(pool.close) if isinstance(pool, Spool) else contextlib.nullcontext()
    with pool, close_on_exit:
        try:
            yield pool
        finally:
            if isinstance(pool, Pool) and isinstance(pool.executor, Dask):
                pool.executor.shutdown()


# Dask ------------------------------------------------------------------------------------------------------------------


class Dask(Executor):
    """An executor for a Dask cluster. It connects again when the scheduler was restarted."""

    def __init__(self, connect: Callable[[], Any]):
        self._connect = connect
        self._client: Any = None
        self._deserted = False

    @staticmethod
    def at(address: str, workers: int) -> "Dask":
        """Connect to the cluster at HOST:PORT. Without an address, start one with `workers` processes on this machine."""
        try:
            from dask.distributed import Client, LocalCluster  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise BadInput("Dask is not installed; get it with: pip install 'lemmata[dask]'") from None
        if address:
            return Dask(lambda: Client(f"tcp://{address}", timeout=10, set_as_default=False))
        require_memory(workers * WORKER_BYTES, f"{workers} worker processes")
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)  # pyright: ignore[reportArgumentType]

        def connect() -> Client:
            client = Client(cluster, set_as_default=False)
            client.wait_for_workers(workers)  # their number decides the size of chunks
            return client

        return Dask(connect)

    @property
    def _max_workers(self) -> int:
        """The number of tasks that run at the same time. Executors of the standard library use this name."""
        self.check_workers()
        return max(1, sum(self.client.nthreads().values()))

    def check_workers(self) -> None:
        """Tell the user, once, if the cluster has no workers. It may get some later, and loses them with its scheduler."""
        deserted = not self.client.nthreads()
        if deserted and not self._deserted:
            note("the Dask cluster has no workers; waiting for some.")
        self._deserted = deserted

    @property
    def client(self) -> Any:
        """The connection to the scheduler, made again if it was lost."""
        if self._client is None or self._client.status != "running":
            try:
                self._client = self._connect()
            except OSError as error:
                raise BadInput(f"there is no Dask scheduler: {error}; run again when it is back.") from None
        return self._client

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        return self.client.get_executor(pure=False, retries=0).submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if self._client is not None:
            cluster = self._client.cluster
            self._client.close()
            if cluster is not None:
                cluster.close()


# Slurm -----------------------------------------------------------------------------------------------------------------


def work_on(store: Path) -> list[str]:
    """Return the command that starts a worker."""
    return [sys.executable, "-m", "lemmata", "work", str(store.resolve())]


@dataclass
class Slurm:
    """Job arrays of workers. The batch system is asked only whether any job is left; the spool shows what they do.

    Users set partition, account and time by environment variables such as SBATCH_PARTITION.

    `workers`: the number of workers.
    `command`: returns the command of a worker for the folder of a store.
    `pause`: the seconds between two questions to the batch system.
    """

    workers: int
    command: Callable[[Path], list[str]] = work_on
    pause: float = 30.0
    _jobs: dict[Path, list[str]] = field(default_factory=dict)
    _asked: float = 0.0

    def hire(self, store: Path) -> None:
        """Submit jobs for a store if none is queued or running. Raises `BadInput` if the last jobs ended without any result."""
        jobs, now = self._jobs.get(store), time.monotonic()
        if jobs and now - self._asked < self.pause:
            return
        self._asked = now
        if jobs and _say("squeue", "--noheader", "--jobs", ",".join(jobs), strict=False).strip():
            return
        folder = Folder.of(store)
        logs = folder.path / "logs"
        if jobs:
            require(
                folder.worked.exists(), f"the jobs of '{store}' ended without doing anything; see '{logs}'."
            )
        logs.mkdir(parents=True, exist_ok=True)
        folder.worked.unlink(missing_ok=True)
        self._jobs[store] = [self._submit(store, logs.resolve(), size) for size in _arrays(self.workers)]

    def _submit(self, store: Path, logs: Path, size: int) -> str:
        """Submit a job array and return its number."""
        options = ("--parsable", "--job-name=lemmata", "--cpus-per-task=1", f"--array=0-{size - 1}")
        script = f"--wrap=exec {shlex.join(self.command(store))}"
        return _say("sbatch", *options, f"--output={logs}/%A_%a.log", script).strip().split(";")[0]


def _arrays(workers: int) -> list[int]:
    """Return the sizes of the arrays for some workers.

    >>> _arrays(2500)
    [1000, 1000, 500]
    """
    return [min(LARGEST_ARRAY, workers - begin) for begin in range(0, workers, LARGEST_ARRAY)]


def _say(*command: str, strict: bool = True) -> str:
    """Return the output of a command of the batch system. Unless `strict`, it may fail, as for a job that is forgotten."""
    try:
        done = subprocess.run(
            command, capture_output=True, encoding="utf-8", errors="replace", check=False, timeout=60
        )
    except FileNotFoundError:
        raise BadInput(
            f"'{command[0]}' is not on this machine; run where Slurm is, or with --on spool and `lemmata work` by hand."
        ) from None
    except subprocess.TimeoutExpired:
        raise BadInput(f"'{command[0]}' does not answer.") from None
    require(done.returncode == 0 or not strict, f"'{command[0]}' refused: {done.stderr.strip()}")
    return done.stdout
