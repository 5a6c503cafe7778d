"""A swarm of trials that do next to nothing: what the lab itself costs, from plan to store, through two workers.

What its loop and its worker cost beside steps that take longer stands with each study (the bare step, and the chunk by hand).
"""

import resource
import tempfile
import time
from typing import ClassVar

from benchmarks.timing import CORES, on_cores
from benchmarks.workload import Measure, Workload
from lemmata import Sweep, axis, run
from lemmata.trial import Computed, Key


class Nothing(Computed):
    """One number, doubled."""

    name: ClassVar[str] = "benchmarks/nothing"
    number: float = 0.0

    def compute(self, key: Key) -> dict[str, float]:
        return {"twice": 2 * self.number}


def extra(paper: bool) -> dict[str, Measure]:
    """A hundred thousand cells, or a million; a tenth of them first, so that memory can be seen to grow or not."""
    cells = 1_000_000 if paper else 100_000
    few, _, _ = _swarm(cells // 10)
    memory, took, opened = _swarm(cells)
    return {
        f"{cells} cells through plan, pool and store": Measure(cells / took, "cells a second", "5000"),
        "the store opened again, and nothing found missing": Measure(opened, "s", "5 for a million"),
        "largest memory of the driver": Measure(memory, "GB"),
        "the same with a tenth of the cells": Measure(few, "GB"),
    }


def _swarm(cells: int) -> tuple[float, float, float]:
    """Memory (GB), seconds of a run, seconds to open it again."""
    values = tuple(float(n) for n in range(cells // 10))
    sweep = Sweep(Nothing(), (axis("number", values),), tuple(range(10)))
    with on_cores(CORES), tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        run(sweep, out=folder, workers=2)
        took = time.perf_counter() - began
        again = Sweep(sweep.template, sweep.axes, sweep.seeds)
        began = time.perf_counter()
        run(again, out=folder)
        opened = time.perf_counter() - began
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, took, opened


WORKLOAD = Workload(about=__doc__ or "", extra=extra)
