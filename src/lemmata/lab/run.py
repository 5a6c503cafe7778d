"""Carry a sweep out: see what is missing, plan it in chunks, run them on a pool, keep the records in a store."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from lemmata.lab.plan import plan
from lemmata.lab.pool import Pool
from lemmata.lab.store import Store
from lemmata.lab.work import Chunk, failure, run_chunk
from lemmata.progress import Progress, bar, silence
from lemmata.results import Rows, assemble
from lemmata.sweep import Sweep
from lemmata.trial import describe


def run(sweep: Sweep, out: Path | str | None = None, workers: int = 0, progress: bool = False) -> xr.Dataset:
    """Run what is missing of a sweep of one's own and return its results.

    They are kept in the folder `out`, where the same call finds them again; without one they are only returned.
    """
    with tempfile.TemporaryDirectory() as nowhere, Pool(workers) as pool:
        with bar("sweep") if progress else silence() as told:
            store = Store(out or nowhere)
            rows = carry_out(sweep, store, {"trial": describe(sweep.template)}, pool, told)
        return assemble(sweep, rows)


def carry_out(sweep: Sweep, store: Store, manifest: Mapping[str, Any], pool: Pool, told: Progress) -> Rows:
    """Run what is missing of a sweep and return the records of all its cells."""
    done = store.done()
    todo = list({cell.id: cell for cell in sweep.cells if cell.id not in done}.values())
    store.create(manifest)
    finished, total = (
        len({cell.id for cell in sweep.cells}) - len(todo),
        len({cell.id for cell in sweep.cells}),
    )
    told(finished, total)
    for chunk, outcomes in pool.run(run_chunk, plan(todo, pool.workers) if todo else []):
        if isinstance(outcomes, Exception):
            outcomes = [failure(cell, outcomes) for cell in chunk.cells]
        store.write(outcomes, chunk.width)
        finished += len(outcomes)
        told(finished, total)
    return store.read([cell.id for cell in sweep.cells])


__all__ = ["Chunk", "carry_out", "run"]
