"""A driver is killed repeatedly. The same command finishes the sweep with the same bits."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lemmata.lab.store import Store
from lemmata.sweep import Sweep, axis
from tests.toys import Decay, drive

ROOT = Path(__file__).parents[2]

DRIVER = """
import sys
from lemmata.lab import store, work
from lemmata.lab.pool import Pool
from lemmata.lab.store import Store
from tests.lab.test_work_kills import sweep
from tests.toys import drive
work.FLUSH_SECONDS, store.MERGE_COUNT = 0.0, 4
for cells in drive(sweep(int(sys.argv[3])), Store(sys.argv[1]), Pool(int(sys.argv[2]))):
    print(cells, flush=True)
"""


def sweep(seeds):
    """Many cells of very different lengths."""
    rates = np.geomspace(1e-3, 0.9, 20).tolist()
    return Sweep(Decay(cap=5000), (axis("rate", rates),), tuple(range(seeds)))


def driver(folder, workers, seeds):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(folder), str(workers), str(seeds)],
        env=env,
        text=True,
        stdout=subprocess.PIPE,
    )


@pytest.mark.parametrize(
    ("workers", "kills"),
    [(0, 1), pytest.param(2, 25, marks=pytest.mark.slow), pytest.param(0, 25, marks=pytest.mark.slow)],
)
def test_a_killed_driver_is_continued_and_gives_every_bit_of_an_undisturbed_run(tmp_path, workers, kills):
    """Kills fall at random while cells are written; nothing that was acknowledged is computed again."""
    seeds = 6 * kills
    ids = [cell.id for cell in sweep(seeds).cells]
    list(drive(sweep(seeds), Store(tmp_path / "whole")))
    rng, acknowledged = random.Random(workers), 0
    for _ in range(kills):
        before = len(Store(tmp_path / "cut").done())
        assert acknowledged <= before < len(ids)
        with driver(tmp_path / "cut", workers, seeds) as process:
            wanted, now = rng.randrange(1, 20), 0
            while now < wanted and (line := process.stdout.readline()):
                now += int(line)
            time.sleep(rng.random() / 50)
            process.send_signal(signal.SIGKILL)
            acknowledged = before + now
    before = len(Store(tmp_path / "cut").done())
    with driver(tmp_path / "cut", workers, seeds) as process:
        rest = sum(map(int, process.stdout.read().split()))
    assert rest == len(ids) - before
    assert Store(tmp_path / "cut").problems() == []
    whole, cut = (Store(tmp_path / name).read(ids).values for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    for name, values in whole.items():
        np.testing.assert_array_equal(values, cut[name])
