"""Other places to run: a Dask cluster whose workers and scheduler die, a batch system whose jobs are cancelled."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.lab import executors, spool
from lemmata.lab.executors import Slurm, connect_workers
from lemmata.lab.pool import Pool
from lemmata.lab.spool import Folder, Spool
from lemmata.lab.store import Store
from lemmata.sweep import Sweep, axis
from lemmata.trial import Computed
from tests.lab.slurm import slurm
from tests.toys import drive

ROOT = Path(__file__).parents[2]


class Slow(Computed):
    """Return a square after a fifth of a second."""

    name: ClassVar = "toys/slow"
    value: float = 1.0

    def compute(self, key):
        time.sleep(0.2)
        return {"square": self.value**2}


def sweep(cells=40):
    return Sweep(Slow(), (axis("value", tuple(map(float, range(cells)))),), (0,))


def environment():
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}


def test_a_place_that_does_not_exist_is_refused_with_the_closest_one():
    with pytest.raises(BadInput, match="did you mean 'slurm'"), connect_workers("slrum"):
        pass


def test_here_is_a_pool_and_files_are_a_spool():
    with connect_workers("local", 3) as pool:
        assert isinstance(pool, Pool)
        assert pool.workers == 3
    with connect_workers("spool", 3) as pool:
        assert isinstance(pool, Spool)
        assert pool.workers == 3
    with pytest.raises(BadInput, match="time limit"), connect_workers("spool", 3, limit=1.0):
        pass


@pytest.mark.skipif(importlib.util.find_spec("distributed") is not None, reason="Dask is installed")
def test_a_missing_extra_says_how_to_get_it():
    with pytest.raises(BadInput, match=r"pip install 'lemmata\[dask\]'"), connect_workers("dask"):
        pass


def test_a_missing_batch_system_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BadInput, match="'sbatch' is not on this machine"):
        Slurm(2).hire(tmp_path)


def test_jobs_are_submitted_once_again_when_they_are_gone_and_never_for_nothing(tmp_path, monkeypatch):
    said, queued = [], ["running"]

    def say(*command, strict=True):
        said.append(command)
        return f"{len(said)}\n" if command[0] == "sbatch" else "\n".join(queued)

    monkeypatch.setattr(executors, "_say", say)
    jobs = Slurm(2500, pause=0.0)
    jobs.hire(tmp_path)
    assert [next(w for w in command if "array" in w) for command in said] == [
        "--array=0-999",
        "--array=0-999",
        "--array=0-499",
    ]
    assert said[0][-1].endswith(f"-m lemmata work {tmp_path}")
    jobs.hire(tmp_path)
    assert said[-1] == ("squeue", "--noheader", "--jobs", "1,2,3")
    queued.clear()
    Folder.of(tmp_path).worked.touch()
    jobs.hire(tmp_path)
    assert said[-1][0] == "sbatch"
    with pytest.raises(BadInput, match="ended without doing anything; see"):
        jobs.hire(tmp_path)


# Dask ------------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_dask_worker_killed_in_the_middle_and_a_scheduler_restarted_lose_nothing(tmp_path):
    pytest.importorskip("distributed", reason="Dask is an extra: pip install 'lemmata[dask]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    processes = []

    def start(what, *words):
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", *words, "--no-dashboard"]
        processes.append(subprocess.Popen(command, env=environment(), stderr=subprocess.DEVNULL))
        return processes[-1]

    def scheduler():
        return start("scheduler", "--port", str(port))

    def worker():
        return start("worker", f"127.0.0.1:{port}", "--nthreads", "1", "--no-nanny")

    try:
        first, one, _ = scheduler(), worker(), worker()
        began = time.monotonic()
        deeds = iter(("worker", "scheduler"))
        finished, store = 0, Store(tmp_path)
        with connect_workers(f"dask://127.0.0.1:{port}") as pool:
            for count in drive(sweep(), store, pool):
                finished += count
                assert time.monotonic() - began < 120
                if finished > 8 and one.poll() is None:
                    assert next(deeds) == "worker"
                    one.kill()
                    one.wait()
                    worker()
                elif finished > 20 and first.poll() is None:
                    assert next(deeds) == "scheduler"
                    first.kill()
                    first.wait()
                    scheduler()
                    worker()  # workers of the old scheduler may end with it
        assert finished == len(store.done()) == 40
        assert next(deeds, None) is None
        assert store.problems() == []
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.mark.slow
def test_dask_starts_a_cluster_on_this_machine(tmp_path):
    pytest.importorskip("distributed", reason="Dask is an extra: pip install 'lemmata[dask]'")
    with connect_workers("dask", 3) as pool:  # by default Dask would start one for each core
        assert pool.workers == 3
        assert sum(drive(sweep(10), Store(tmp_path), pool)) == 10


# Slurm -----------------------------------------------------------------------------------------------------------------


WORKER = """
import sys
from pathlib import Path
from lemmata import ending
from lemmata.lab.spool import serve
from lemmata.lab.work import run_chunk
from tests.lab.test_pool_executors import sweep
ending.install_signal_handlers()
serve(Path(sys.argv[1]), lambda: sweep(80).cells, run_chunk, 60)
"""


@pytest.mark.slow
def test_jobs_of_a_real_slurm_do_a_sweep_though_they_are_cancelled(tmp_path, monkeypatch):
    """First one job is cancelled in the middle, later all of them: the rest goes on, and new ones are submitted."""
    monkeypatch.setattr(spool, "POLLS_PER_CENSUS", 4)
    command = [sys.executable, "-c", WORKER]
    paths = environment()["PYTHONPATH"]
    with slurm(tmp_path / "slurm", monkeypatch):
        monkeypatch.setenv("PYTHONPATH", paths)
        jobs = Slurm(2, lambda store: [*command, str(store)], pause=2.0)
        finished, cancelled = 0, []
        with Spool(2, jobs.hire, silence=20.0) as pool:
            for count in drive(sweep(80), Store(tmp_path / "store"), pool):
                finished += count
                [*_, last] = jobs._jobs[tmp_path / "store"]
                which = f"{last}_0" if finished > 10 and not cancelled else last if finished > 30 else None
                if which and len(cancelled) < 2 and which not in cancelled:
                    subprocess.run(["scancel", which], check=True)
                    cancelled.append(which)
        assert finished == 80
        assert len(cancelled) == 2
    logs = Folder.of(tmp_path / "store").path / "logs"
    assert len({log.name.split("_")[0] for log in logs.iterdir()}) > 1
    assert len(Store(tmp_path / "store").done()) == 80
    assert Store(tmp_path / "store").problems() == []


@pytest.mark.slow
def test_the_command_line_runs_a_figure_on_a_real_slurm_to_the_same_bits_as_here(tmp_path, monkeypatch):
    order = ["run", "benign-overfitting/fig1", "--scale", "smoke", "--set", "samples=2"]

    def lemmata(*words):
        done = subprocess.run(
            [sys.executable, "-m", "lemmata", *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    paths = environment()["PYTHONPATH"]
    with slurm(tmp_path / "slurm", monkeypatch):
        monkeypatch.setenv("PYTHONPATH", paths)
        lemmata(*order, "--on", "slurm", "--workers", "2", "--out", str(tmp_path / "far"))
    lemmata(*order, "--workers", "1", "--out", str(tmp_path / "here"))
    far, here = Store(tmp_path / "far"), Store(tmp_path / "here")
    ids = sorted(here.done())
    assert far.done() == here.done()
    assert far.problems() == []
    for name, values in here.read(ids).values.items():
        np.testing.assert_array_equal(values, far.read(ids).values[name])
    assert "done: 6, failed: 0" in lemmata("status", str(tmp_path / "far"))
    assert not [*Folder.of(far.path).todo.iterdir(), *Folder.of(far.path).taken.iterdir()]
