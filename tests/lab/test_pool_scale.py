"""Many simulated workers, which sleep instead of training. The driver plans, collects and stores as always."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lemmata.lab.outcome import Outcome
from lemmata.lab.plan import plan
from lemmata.lab.pool import Pool
from lemmata.lab.store import Store
from lemmata.status import CONVERGED
from lemmata.sweep import Sweep, axis
from tests.toys import Square

RECORD = {"status": np.int32(CONVERGED), "steps": np.int32(0), "square": np.float64(1.0)}


def sleepily(seconds):
    def work(chunk):
        time.sleep(seconds * len(chunk))
        return [Outcome(cell.id, RECORD, seconds) for cell in chunk.cells]

    return work


def pretended(path, workers, cells, seconds):
    """Return the wall time and processor time of a driver for these numbers of cells and sleeping workers."""
    values = np.linspace(1, 2, cells // 20).tolist()
    every = Sweep(Square(), (axis("value", values),), tuple(range(20))).cells
    for cell in every:
        _ = cell.id
    store = Store(path)
    with ThreadPoolExecutor(workers) as threads, store.locked():
        store.create({})
        planned, began, busy = plan(every, workers), time.time(), time.process_time()
        writes = 0
        for chunk, outcomes in Pool(executor=threads).run(sleepily(seconds), planned):
            store.write(planned.record_result(chunk, outcomes), chunk.width)
            writes += 1
    assert len(store.done()) == len(every)
    return time.time() - began, time.process_time() - busy, writes


def test_a_driver_of_many_workers_keeps_once_what_came_at_once(tmp_path):
    *_, writes = pretended(tmp_path, workers=64, cells=640, seconds=0.05)
    assert writes < 320


@pytest.mark.slow
def test_a_thousand_workers_are_kept_busy(tmp_path):
    """300 000 cells of 0.4 s are 120 s for a thousand workers; the driver may add a third."""
    wall, busy, writes = pretended(tmp_path, workers=1000, cells=300_000, seconds=0.4)
    print(f"{wall:.0f} s instead of 120, {busy:.0f} s of them busy, {writes} writes")
    assert wall < 160
