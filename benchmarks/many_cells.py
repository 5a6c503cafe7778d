"""What a million tiny cells cost the driver: opening, resuming, looking, reading. Nothing is run; rows are written as they are.

python -m benchmarks.many_cells DIR [--cells 1000000] [--seeds 20]     (a second time: the store in DIR is opened again)
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from lemmata.lab.outcome import Outcome
from lemmata.lab.plan import plan
from lemmata.lab.segment import among
from lemmata.lab.store import Store
from lemmata.lab.store_status import store_status
from lemmata.results import assemble
from lemmata.source import sources
from lemmata.status import CONVERGED
from lemmata.sweep import Sweep, axis
from lemmata.trial import Computed

T = TypeVar("T")

RECORD = {"status": np.int32(CONVERGED), "steps": np.int32(0), "square": np.float64(1.0)}
LEFT = 1000
"""Cells that are not done when a run is resumed."""


class Tiny(Computed):
    name: ClassVar = "benchmarks/tiny"
    value: float = 1.0

    def compute(self, key: Any) -> dict[str, Any]:
        return {"square": self.value**2}


def timed(what: str, do: Callable[[], T]) -> T:
    began = time.process_time()
    result = do()
    print(f"{what:32} {time.process_time() - began:6.2f} s   {_memory():5d} MB", flush=True)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=20)
    told = parser.parse_args()
    values = np.linspace(1, 2, told.cells // told.seeds).tolist()
    sweep = Sweep(Tiny(), (axis("value", values),), tuple(range(told.seeds)))
    print(f"{'':32} processor   memory")
    cells = timed("building cells", lambda: sweep.cells)
    ids = timed("their identities", lambda: cells.ids)
    code = sources(cells.trials)
    [digest] = code.values()
    store = Store(told.folder)
    manifest = {"cells": len(ids), "sources": code}

    def create() -> None:
        with store.locked():
            store.create(manifest, ids)

    def fill() -> None:
        with store.locked():
            create()
            for part in np.array_split(ids[:-LEFT], max(1, len(ids) // 4096)):
                store.write([Outcome(f"{id:016x}", RECORD, 0.1, source=digest) for id in part.tolist()], 64)

    if not store.exists:
        timed("writing all rows", fill)
        store = Store(told.folder)
    done = timed("what is done", lambda: store.finished({digest}))
    missing = timed("what is missing", lambda: ids[~among(ids, done)])
    timed("starting on it", create)
    planned = timed("the plan", lambda: plan(cells, 2, done))
    assert len(planned) == len(missing)
    print(timed("status", lambda: store_status(Store(told.folder))))
    rows = timed("reading all records", lambda: store.read(ids))
    timed("making the Dataset", lambda: assemble(sweep, rows))


def _memory() -> int:
    """Megabytes that this process holds."""
    return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * 4096 // 10**6


if __name__ == "__main__":
    main()
