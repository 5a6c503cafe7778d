"""Carry a sweep out: see what is missing, plan it in chunks, run them on a pool, keep the records in a store."""

import tempfile
from collections.abc import Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from lemmata.errors import note, require
from lemmata.lab.plan import plan
from lemmata.lab.pool import Pool
from lemmata.lab.segment import among
from lemmata.lab.spool import Spool
from lemmata.lab.store import Rows, Store
from lemmata.lab.work import run_chunk
from lemmata.progress import Progress, bar, silence
from lemmata.results import assemble
from lemmata.source import sources as sources_of
from lemmata.status import FAILED
from lemmata.sweep import Sweep
from lemmata.trial import describe


def run(
    sweep: Sweep,
    out: Path | str | None = None,
    workers: int = 0,
    progress: bool = False,
    executor: Executor | None = None,
    limit: float | None = None,
    fail_fast: bool = False,
) -> xr.Dataset:
    """Run what is missing of a sweep of one's own and return its results.

    They are kept in the folder `out`, where the same call finds them again; without one they are only returned. The work is
    done by worker processes (none: by this one), or by any `concurrent.futures.Executor`. `limit` is how many seconds a cell
    may take; with `fail_fast` the first failed cell ends the run.
    """
    with tempfile.TemporaryDirectory() as nowhere, Pool(workers, executor, limit) as pool:
        with bar("sweep") if progress else silence() as told:
            store = Store(out or nowhere)
            rows = carry_out(sweep, store, {"trial": describe(sweep.template)}, pool, told, fail_fast)
        return assemble(sweep, rows)


def carry_out(
    sweep: Sweep,
    store: Store,
    manifest: Mapping[str, Any],
    pool: Pool | Spool,
    told: Progress,
    fail_fast: bool = False,
) -> Rows:
    """Run what is missing of a sweep and return the records of all its cells."""
    ids, told_sources = sweep.cells.ids, sources_of(sweep.cells.trials)
    sources = set(told_sources.values())
    done = store.finished(sources)
    missing, total = np.unique(ids[~among(ids, done)]), len(np.unique(ids))
    if len(missing) or not _told_before(store, manifest):
        manifest = {"cells": total, **manifest, "sources": told_sources}
        with store.locked():
            outdated = int(among(missing, store.finished()).sum())
            if outdated:
                note(f"{outdated} cells in '{store.path}' were made by other code and are computed again.")
            store.create(manifest, ids if manifest["cells"] == total else None)
            planned = plan(sweep.cells, pool.workers, done)
            finished = total - len(planned)
            told(finished, total)
            for chunk, outcomes in pool.run(run_chunk, planned, store.path):
                settled = planned.settle(chunk, outcomes)
                store.write(settled, chunk.width)
                finished += len(settled)
                told(finished, total)
                failed = [outcome.reason for outcome in settled if outcome.reason]
                require(
                    not (fail_fast and failed),
                    f"stopped at the first failed cell: {' '.join(''.join(failed[:1]).split())}; what was finished is kept.",
                )
    rows = store.read(ids, sources)
    require_some(rows, store)
    return rows


def require_some(rows: Rows, store: Store) -> None:
    """Refuse records of which none is more than a failure."""
    require(bool(np.any(rows.values["status"] != FAILED)), f"every cell failed: {'; '.join(reasons(store))}")


def reasons(store: Store) -> list[str]:
    """Why cells failed, each reason once."""
    return sorted(store.reasons())


def _told_before(store: Store, manifest: Mapping[str, Any]) -> bool:
    """Whether the store was last used for the same order; a finished one on a read-only disk can then still be read."""
    if not store.exists:
        return False
    passing = ("versions", "platform", "started", "cells", "command")
    known = store.manifest
    return all(known.get(word) == value for word, value in manifest.items() if word not in passing)
