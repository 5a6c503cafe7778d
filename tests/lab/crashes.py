"""A program for tests of the store, which kills itself at its n-th write, flush, rename or removal."""

import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np

from lemmata.lab import store as store_module
from lemmata.lab.outcome import Outcome
from lemmata.lab.store import Store
from lemmata.status import CONVERGED

WRITES = 4


def outcome(number):
    record = {
        "status": np.int32(CONVERGED),
        "steps": np.int32(1),
        "x": np.float64(number) / 3,
    }
    return Outcome(f"{number:016x}", record, 0.1)


def work(path, told=-1):
    """Resume a run with two cells a write and frequent merges. Print the number of acknowledged writes."""
    store_module.MERGE_COUNT = 2
    store = Store(path)
    store.create({"command": "lemmata run x"})
    missing = [n for n in range(2 * WRITES) if f"{n:016x}" not in store.done()]
    for begin in range(0, len(missing), 2):
        store.write([outcome(n) for n in missing[begin : begin + 2]], 2)
        if told >= 0:
            os.write(told, b".")


def deadly(at):
    """Kill this process at the n-th write, flush, rename or removal: before it, and halfway through what is written."""
    count = 0

    def tick():
        nonlocal count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(function):
        def wrapped(*arguments, **options):
            tick()
            return function(*arguments, **options)

        return wrapped

    class Halving:
        def __init__(self, file):
            self.file = file

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            self.file.write(data[: len(data) // 2])
            self.file.flush()
            tick()
            self.file.write(data[len(data) // 2 :])

    opened = Path.open
    Path.open = lambda *arguments, **options: Halving(opened(*arguments, **options))
    os.fsync, os.replace, Path.unlink = map(before, (os.fsync, os.replace, Path.unlink))


def main(folder):
    whole = [float(n) / 3 for n in range(2 * WRITES)]
    ids = [f"{n:016x}" for n in range(2 * WRITES)]
    for at in range(1, 10_000):
        path = Path(folder) / "store"
        shutil.rmtree(path, ignore_errors=True)
        heard, told = os.pipe()
        child = os.fork()
        if child == 0:
            deadly(at)
            work(path, told)
            os._exit(0)
        os.close(told)
        _, status = os.waitpid(child, 0)
        finished = len(os.read(heard, 1000))
        os.close(heard)
        store = Store(path)
        rows = store.read(ids)
        assert [whole[k] for k in rows.found] == rows.values.get("x", np.zeros(0)).tolist(), at
        assert set(ids[: 2 * finished]) <= store.done(), (at, finished, store.problems())
        work(path)
        assert Store(path).problems() == [], (at, Store(path).problems())
        assert Store(path).read(ids).values["x"].tolist() == whole, at
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            return at
    raise AssertionError("it never ended")


if __name__ == "__main__":
    print(main(sys.argv[1]))
