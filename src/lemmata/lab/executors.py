"""Where a sweep is carried out: on this machine, on a Dask cluster, or by jobs of a batch system through files."""

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

from lemmata.ending import last_act
from lemmata.errors import BadInput, note, require, require_memory, unknown
from lemmata.lab.pool import WORKER_BYTES, Pool, require_workers
from lemmata.lab.spool import Folder, Spool

PLACES = ("local", "dask", "dask://HOST:PORT", "slurm", "spool")

LARGEST_ARRAY = 1000
"""Tasks of one job array; batch systems allow 1001 unless told otherwise."""


@contextlib.contextmanager
def hands(on: str = "local", workers: int = 0, limit: float | None = None) -> Iterator[Pool | Spool]:
    """Whoever does the work of a command, as something with `workers` and `run`.

    `local`: worker processes here (none: this process). `dask`: a Dask cluster, started here, or one that is running.
    `slurm`: jobs of a batch system. `spool`: whoever runs `lemmata work` on the folder of the results.
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
    farewell = last_act(pool.close) if isinstance(pool, Spool) else contextlib.nullcontext()
    with pool, farewell:
        try:
            yield pool
        finally:
            if isinstance(pool, Pool) and isinstance(pool.executor, Dask):
                pool.executor.shutdown()


# Dask ------------------------------------------------------------------------------------------------------------------


class Dask(Executor):
    """A Dask cluster as an executor that finds its scheduler again when that was restarted."""

    def __init__(self, connect: Callable[[], Any]):
        self._connect = connect
        self._client: Any = None
        self._deserted = False

    @staticmethod
    def at(address: str, workers: int) -> "Dask":
        """The cluster at HOST:PORT; one of so many processes on this machine where no address is given."""
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
            client.wait_for_workers(workers)  # their number decides how wide chunks are
            return client

        return Dask(connect)

    @property
    def _max_workers(self) -> int:
        """How many tasks run at the same time, by the name that executors have for it."""
        self.look()
        return max(1, sum(self.client.nthreads().values()))

    def look(self) -> None:
        """Say so, once, if nobody is there to work: a cluster may get workers later, and loses them with its scheduler."""
        deserted = not self.client.nthreads()
        if deserted and not self._deserted:
            note("the Dask cluster has no workers; waiting for some.")
        self._deserted = deserted

    @property
    def client(self) -> Any:
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
    """The command of a worker."""
    return [sys.executable, "-m", "lemmata", "work", str(store.resolve())]


@dataclass
class Slurm:
    """Job arrays of workers. What they do is seen in the spool; the batch system is asked only whether any of them is left.
    Partition, account and time are set by SBATCH_PARTITION and the like."""

    workers: int
    command: Callable[[Path], list[str]] = work_on
    pause: float = 30.0
    _jobs: dict[Path, list[str]] = field(default_factory=dict)
    _asked: float = 0.0

    def hire(self, store: Path) -> None:
        """Submit jobs for a store if none is queued or running; refuses where they end without having done anything."""
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
        """The number of a new job array."""
        options = ("--parsable", "--job-name=lemmata", "--cpus-per-task=1", f"--array=0-{size - 1}")
        script = f"--wrap=exec {shlex.join(self.command(store))}"
        return _say("sbatch", *options, f"--output={logs}/%A_%a.log", script).strip().split(";")[0]


def _arrays(workers: int) -> list[int]:
    """Sizes of the arrays for so many workers.

    >>> _arrays(2500)
    [1000, 1000, 500]
    """
    return [min(LARGEST_ARRAY, workers - begin) for begin in range(0, workers, LARGEST_ARRAY)]


def _say(*command: str, strict: bool = True) -> str:
    """What a command of the batch system answers; unless strict it may fail (as when it has forgotten a job)."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except FileNotFoundError:
        raise BadInput(
            f"'{command[0]}' is not on this machine; run where Slurm is, or with --on spool and `lemmata work` by hand."
        ) from None
    except subprocess.TimeoutExpired:
        raise BadInput(f"'{command[0]}' does not answer.") from None
    require(done.returncode == 0 or not strict, f"'{command[0]}' refused: {done.stderr.strip()}")
    return done.stdout
