"""Carry a sweep out: plan it in chunks, run them on a pool, keep the records in a store."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import xarray as xr

from lemmata.lab.plan import plan
from lemmata.lab.pool import run_here, run_local
from lemmata.lab.store import Store
from lemmata.lab.work import Chunk, Outcome, failure, run_chunk
from lemmata.sweep import Cell, Sweep

Progress = Callable[[int], None]


def missing(sweep: Sweep, store: Store) -> list[Cell]:
    """The cells of a sweep that the store does not have yet; a cell that stands twice in the sweep counts once."""
    done = store.done()
    return list({cell.id: cell for cell in sweep.cells if cell.id not in done}.values())


def carry_out(
    sweep: Sweep,
    store: Store,
    manifest: Mapping[str, Any],
    workers: int = 0,
    progress: Progress = lambda cells: None,
) -> xr.Dataset:
    """Run what is missing of a sweep and return all its results.

    `workers` local processes, or this process when 0. `progress` is told the number of cells of every finished chunk.
    """
    cells = missing(sweep, store)
    store.create(manifest)
    for chunk, outcomes in _finished(plan(cells, workers), workers):
        store.write(outcomes, chunk.width)
        progress(len(outcomes))
    return store.load(sweep)


def _finished(chunks: Sequence[Chunk], workers: int) -> Iterator[tuple[Chunk, list[Outcome]]]:
    results = run_local(run_chunk, chunks, workers) if workers else run_here(run_chunk, chunks)
    for chunk, outcomes in results:
        if isinstance(outcomes, Exception):
            outcomes = [failure(cell, outcomes) for cell in chunk.cells]
        yield chunk, outcomes
