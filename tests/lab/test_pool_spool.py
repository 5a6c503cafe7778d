"""The spool: claims, heartbeats, drivers and workers that die."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from lemmata import ending
from lemmata.errors import BadInput
from lemmata.lab import spool as spool_module
from lemmata.lab.disk import sealed_page
from lemmata.lab.outcome import Outcome, failed_record
from lemmata.lab.plan import plan
from lemmata.lab.spool import Folder, Spool, serve
from lemmata.lab.store import Store
from lemmata.lab.work import Chunk, run_chunk
from lemmata.sweep import Sweep, axis
from tests.toys import Square, drive

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(spool_module, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(spool_module, "HEARTBEAT_SECONDS", 0.05)


def sweep(seeds=6):
    return Sweep(Square(), (axis("value", (-1.0, 2.0, 3.0)),), tuple(range(seeds)))


def cells(of=None):
    return (of or sweep()).cells


def helped(store, count=1, find=cells, work=run_chunk, patience=0.3):
    """Start workers in threads, which end when there are no more chunks."""
    done = []
    threads = [
        threading.Thread(target=lambda: done.append(serve(store.path, find, work, patience)))
        for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    return threads, done


def lightly(chunk):
    """Return failures without any work."""
    yield [Outcome(cell.id, failed_record(), 0.0, "nothing was done") for cell in chunk.cells]


def offered(store, *chunks):
    """Make a spool with chunks, as a driver that has ended leaves it."""
    driver = Spool(1)
    driver._begin(Folder.of(store.path))
    for chunk in chunks:
        Folder.of(store.path).put(chunk)


def test_a_sweep_is_done_by_two_workers_through_files(tmp_path):
    store = Store(tmp_path)
    threads, done = helped(store, 2, patience=20)
    with Spool(2) as spool:
        assert sum(drive(sweep(), store, spool)) == 18
    for thread in threads:
        thread.join()
    assert sum(done) == 18
    assert len(store.done()) == 12
    assert {entry.reason for entry in store.entries().values()} == {"", "ValueError: negative"}
    assert store.problems() == []
    assert [list(folder.iterdir()) for folder in (tmp_path / "spool").iterdir() if folder.is_dir()] == [
        []
    ] * 3


def test_a_chunk_is_claimed_by_one_worker_only(tmp_path):
    store = Store(tmp_path)
    store.create({})
    every = list(plan(sweep(30).cells, 4))
    offered(store, *every)
    threads, done = helped(store, 4, lambda: cells(sweep(30)), lightly)
    for thread in threads:
        thread.join()
    assert sum(done) == 90
    store.create({})
    assert len(store.entries()) == 90


def test_workers_go_on_without_a_driver_and_the_next_one_collects_what_they_left(tmp_path):
    store = Store(tmp_path)
    store.create({})
    offered(store, Chunk(tuple(sweep().cells[:12]), 1))
    threads, done = helped(store)
    threads[0].join()
    assert done == [12]
    assert store.done() == set()
    threads, done = helped(store, patience=20)
    with Spool(1) as spool:
        assert sum(drive(sweep(), store, spool)) == 6 + 6  # the rest, and the failed ones once more
    threads[0].join()
    assert len(store.done()) == 12


def test_what_a_worker_of_an_earlier_driver_is_still_at_is_not_given_to_another(tmp_path):
    store = Store(tmp_path)
    store.create({})
    offered(store, Chunk(tuple(sweep().cells[6:12]), 1))
    release, ran = threading.Event(), []

    def slowly(chunk):
        ran.extend(cell.id for cell in chunk.cells)
        assert release.wait(30)
        yield from run_chunk(chunk)

    threads, _ = helped(store, 1, work=slowly)
    wait_until(lambda: ran)
    more, _ = helped(store, 1, work=slowly, patience=20)
    threading.Timer(0.3, release.set).start()
    with Spool(1) as spool:
        assert sum(drive(sweep(), store, spool)) == 18
    for thread in (*threads, *more):
        thread.join()
    assert len(ran) == len(set(ran)) == 18


def test_a_worker_that_a_signal_ends_offers_the_rest_of_its_chunk_at_once(tmp_path):
    store, folder = Store(tmp_path), Folder.of(tmp_path)
    store.create({})
    chosen = sweep().cells[6:12]
    offered(store, Chunk(tuple(chosen), 1))
    seen = []

    def stopped_after_two(chunk):
        if seen:
            yield from lightly(chunk)
            return
        done = Chunk(tuple(chosen[:2]), 1)
        yield [outcome for part in run_chunk(done) for outcome in part]
        ending._act()  # what a signal starts, before the process ends
        seen.append((list(folder.taken.iterdir()), [spool_module._content(p) for p in folder.todo.iterdir()]))

    threads, _ = helped(store, 1, work=stopped_after_two)
    threads[0].join()
    [(taken, [rest])] = seen
    assert taken == []
    assert rest["cells"] == [cell.id for cell in chosen[2:]]
    assert rest["losses"] == 0


def test_a_claim_whose_worker_fell_silent_is_put_back_and_given_up_after_three(tmp_path, monkeypatch):
    store = Store(tmp_path)
    deadly = sweep().cells[7].id

    def dying(chunk):
        """Work that leaves its claim behind at the cell that kills the worker."""
        if deadly in {cell.id for cell in chunk.cells}:
            raise Gone
        yield from run_chunk(chunk)

    class Gone(BaseException):
        pass

    def immortal():
        while not Folder.of(store.path).closed.exists():
            with contextlib.suppress(Gone):
                serve(store.path, cells, dying, 20)

    monkeypatch.setattr(Folder, "put", keeping_only_offers(Folder.put))
    monkeypatch.setattr(Path, "unlink", not_by(Gone, Path.unlink))
    thread = threading.Thread(target=immortal)
    thread.start()
    with Spool(1, silence=0.3) as spool:
        assert sum(drive(sweep(), store, spool)) == 18
    thread.join()
    assert (
        store.entries()[deadly].reason == "Lost: 3 times, with no other cell at work, its worker fell silent."
    )
    assert len(store.done()) == 11


def keeping_only_offers(put):
    def wrapped(self, chunk, losses=0):
        if sys.exc_info()[0] is None or sys.exc_info()[0].__name__ != "Gone":
            put(self, chunk, losses)

    return wrapped


def not_by(kind, unlink):
    def wrapped(self, missing_ok=False):
        if sys.exc_info()[0] is not kind:
            unlink(self, missing_ok)

    return wrapped


def test_outcomes_that_were_damaged_on_the_way_are_computed_again(tmp_path, monkeypatch):
    store = Store(tmp_path)
    monkeypatch.setattr(spool_module, "POLLS_PER_CENSUS", 5)
    hurt = []
    write = spool_module.replace_file

    def damaging(path, data):
        if path.parent.name == "done" and not hurt:
            hurt.append(path)
            data = data[:200] + bytes([data[200] ^ 1]) + data[201:]
        write(path, data)

    monkeypatch.setattr(spool_module, "replace_file", damaging)
    threads, _ = helped(store, patience=20)
    with Spool(1) as spool:
        assert sum(drive(sweep(), store, spool)) == 18
    threads[0].join()
    assert hurt
    assert len(store.done()) == 12


def test_a_chunk_of_another_sweep_is_left_to_others(tmp_path):
    store = Store(tmp_path)
    store.create({})
    offered(store, Chunk(tuple(sweep(7).cells), 1))
    threads, done = helped(store)
    threads[0].join()
    assert done == [0]
    assert len(list(Folder.of(tmp_path).todo.iterdir())) == 1


def test_files_that_are_no_chunks_are_left_alone(tmp_path):
    store = Store(tmp_path)
    store.create({})
    offered(store, Chunk(tuple(sweep(2).cells), 1))
    todo = Folder.of(tmp_path).todo
    right = {"cells": [sweep().cells[0].id], "width": 1, "source": "", "losses": 0}
    wrong = (
        {"cells": 5},
        {"cells": ["x"]},
        {"cells": [5]},
        {"width": 0},
        {"width": True},
        {"source": 3},
        {"losses": "a"},
    )
    for number, one in enumerate(wrong):
        (todo / f"{number}.json").write_bytes(sealed_page({**right, **one}))
    (todo / "folder.json").mkdir()
    threads, done = helped(store)
    threads[0].join()
    assert done == [6]
    assert len(list(todo.iterdir())) == len(wrong) + 1


def test_a_worker_whose_spool_cannot_be_used_says_so_in_one_sentence(tmp_path, monkeypatch):
    store = Store(tmp_path)
    store.create({})
    offered(store, Chunk(tuple(sweep(2).cells), 1))

    def full(path, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(spool_module, "replace_file", full)
    with pytest.raises(BadInput, match=r"cannot use the spool .*: No space left on device"):
        serve(tmp_path, cells, lightly)


def test_a_worker_asks_again_for_cells_that_it_does_not_know(tmp_path):
    store = Store(tmp_path)
    store.create({})
    offered(store, Chunk(tuple(sweep(2).cells), 1))
    Folder.of(store.path).put(Chunk(tuple(sweep(4).cells), 1))
    seeds = iter((2, 4))
    threads, done = helped(store, 1, lambda: cells(sweep(next(seeds))))
    threads[0].join()
    assert done == [18]


def test_workers_are_hired_and_sent_home(tmp_path):
    asked = []

    def hire(store):
        if not asked:
            asked.extend(helped(Store(store), 2, patience=20)[0])

    with Spool(2, hire) as spool:
        list(drive(sweep(), Store(tmp_path), spool))
    for thread in asked:
        thread.join(5)
        assert not thread.is_alive()


def test_a_spool_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "spool").write_text("a file")
    with pytest.raises(BadInput, match="cannot use the spool"):
        list(drive(sweep(), Store(tmp_path), Spool(1)))


WORKER = """
import sys
from pathlib import Path
from lemmata.lab import spool
from lemmata import ending
from tests.lab.test_pool_spool import cells, sweep
spool.HEARTBEAT_SECONDS = spool.POLL_SECONDS = 0.1
def slowly(chunk):
    from lemmata.lab.work import run_chunk
    import time
    for cell in chunk.cells:
        time.sleep(0.05)
        yield from run_chunk(type(chunk)((cell,), 1, chunk.source))
ending.install_signal_handlers()
spool.serve(Path(sys.argv[1]), lambda: cells(sweep(20)), slowly, 60)
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_worker_processes_that_are_killed_in_the_middle_lose_nothing(tmp_path, sent):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}

    def worker():
        return subprocess.Popen(
            [sys.executable, "-c", WORKER, str(tmp_path)], env=env, stderr=subprocess.DEVNULL
        )

    workers = [worker(), worker()]
    finished = 0
    with Spool(2, silence=2.0) as spool:
        for count in drive(sweep(20), Store(tmp_path), spool):
            finished += count
            if finished > 10 and len(workers) == 2:
                workers[0].send_signal(sent)
                workers.append(worker())
    assert finished == 60
    assert len(Store(tmp_path).done()) == 40
    for process in workers:
        process.wait(30)


def wait_until(met, seconds=60):
    deadline = time.time() + seconds
    while not met():
        assert time.time() < deadline
        time.sleep(0.01)
