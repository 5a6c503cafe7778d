"""Carry a sweep out: see what is missing, plan it in chunks, run them on a pool, keep the records in a store."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from lemmata.errors import require
from lemmata.lab.plan import plan
from lemmata.lab.pool import Pool
from lemmata.lab.source import digests
from lemmata.lab.spool import Spool
from lemmata.lab.store import Rows, Store
from lemmata.lab.work import run_chunk
from lemmata.progress import Progress, bar, silence
from lemmata.results import assemble
from lemmata.status import FAILED
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


def carry_out(
    sweep: Sweep, store: Store, manifest: Mapping[str, Any], pool: Pool | Spool, told: Progress
) -> Rows:
    """Run what is missing of a sweep and return the records of all its cells."""
    sources = digests(cell.trial for cell in sweep.cells)
    ids = [cell.id for cell in sweep.cells]
    missing = set(ids) - store.done(sources)
    if missing or not _told_before(store, manifest):
        with store.locked():
            store.create(manifest)
            planned = plan(sweep.cells, pool.workers, set(ids) - missing)
            finished, total = len(set(ids)) - len(planned), len(set(ids))
            told(finished, total)
            for chunk, outcomes in pool.run(run_chunk, planned, store.path):
                settled = planned.settle(chunk, outcomes)
                store.write(settled, chunk.width)
                finished += len(settled)
                told(finished, total)
    rows = store.read(ids, sources)
    require(bool(np.any(rows.values["status"] != FAILED)), f"every cell failed: {'; '.join(reasons(store))}")
    return rows


def reasons(store: Store) -> list[str]:
    """Why cells failed, each reason once."""
    return sorted({entry.reason for entry in store.entries().values() if entry.reason})


def _told_before(store: Store, manifest: Mapping[str, Any]) -> bool:
    """Whether the store was last used for the same order; a finished one on a read-only disk can then still be read."""
    if not store.exists:
        return False
    passing = ("versions", "platform", "started")
    known = store.manifest
    return all(known.get(word) == value for word, value in manifest.items() if word not in passing)
