"""Carry a sweep out: see what is missing, plan it in chunks, run them on a pool, keep the records in a store."""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from lemmata.errors import note, require
from lemmata.lab.outcome import Outcome
from lemmata.lab.plan import Plan, plan
from lemmata.lab.pool import Pool
from lemmata.lab.segment import among
from lemmata.lab.spool import Spool
from lemmata.lab.store import Rows, Store
from lemmata.lab.work import Chunk, run_chunk
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


@dataclass(frozen=True)
class Job:
    """A sweep to be carried out, the store of its records, what the manifest says, and who is told how far it has come."""

    sweep: Sweep
    store: Store
    manifest: Mapping[str, Any]
    told: Progress


def carry_out(
    sweep: Sweep,
    store: Store,
    manifest: Mapping[str, Any],
    pool: Pool | Spool,
    told: Progress,
    fail_fast: bool = False,
) -> Rows:
    """Run what is missing of a sweep and return the records of all its cells."""
    ((_, rows),) = carry_out_all([Job(sweep, store, manifest, told)], pool, fail_fast)
    return rows


def carry_out_all(
    jobs: Sequence[Job], pool: Pool | Spool, fail_fast: bool = False
) -> Iterator[tuple[int, Rows]]:
    """Run what is missing of several sweeps, in order; gives the number and the records of each when it is complete.

    A sweep begins when there is somebody free for it: nobody waits for the last cells of the one before. (Not so through
    files, where work lies beside its own store.)
    """
    groups = [range(len(jobs))] if isinstance(pool, Pool) else [[number] for number in range(len(jobs))]
    for group in groups:
        begun: list[_UnderWay] = []
        with contextlib.ExitStack() as held:
            chunks = _chunks({number: jobs[number] for number in group}, pool.workers, begun, held)
            for chunk, outcomes in pool.run(run_chunk, chunks, jobs[group[0]].store.path):
                one = next(one for one in reversed(begun) if one.plan.first <= chunk.bucket)
                failed = [outcome.reason for outcome in one.keep(chunk, outcomes) if outcome.reason]
                require(
                    not (fail_fast and failed),
                    f"stopped at the first failed cell: {' '.join(''.join(failed[:1]).split())}; what was finished is kept.",
                )
                yield from _completed(begun)
            yield from _completed(begun)


@dataclass
class _UnderWay:
    """A job whose chunks are given out, and what is left to do of it."""

    number: int
    job: Job
    plan: Plan
    total: int
    missing: int
    sources: set[str]
    lock: contextlib.ExitStack

    def keep(self, chunk: Chunk, outcomes: list[Outcome] | Exception) -> list[Outcome]:
        settled = self.plan.settle(chunk, outcomes)
        self.job.store.write(settled, chunk.width)
        self.missing -= len(settled)
        self.job.told(self.total - self.missing, self.total)
        return settled


def _chunks(
    jobs: Mapping[int, Job], workers: int, begun: list[_UnderWay], held: contextlib.ExitStack
) -> Iterator[Chunk]:
    """The chunks of all jobs, which begin as they are asked for."""
    first = 0
    for number, job in jobs.items():
        one = _begin(number, job, workers, first, held.enter_context(contextlib.ExitStack()))
        begun.append(one)
        first += len(one.plan.buckets)
        yield from one.plan


def _begin(number: int, job: Job, workers: int, first: int, lock: contextlib.ExitStack) -> _UnderWay:
    """See what is missing; hold the store and note in it what is about to be run, unless nothing is."""
    store, ids = job.store, job.sweep.cells.ids
    told_sources = sources_of(job.sweep.cells.trials)
    sources = set(told_sources.values())
    done = store.finished(sources)
    missing, total = np.unique(ids[~among(ids, done)]), len(np.unique(ids))
    planned = Plan([], workers, first)
    if len(missing) or not _told_before(store, job.manifest):
        manifest = {"cells": total, **job.manifest, "sources": told_sources}
        lock.enter_context(store.locked())
        outdated = int(among(missing, store.finished()).sum())
        if outdated:
            note(f"{outdated} cells in '{store.path}' were made by other code and are computed again.")
        store.create(manifest, ids if manifest["cells"] == total else None)
        planned = plan(job.sweep.cells, workers, done, first)
        job.told(total - len(planned), total)
    return _UnderWay(number, job, planned, total, len(planned), sources, lock)


def _completed(begun: list[_UnderWay]) -> Iterator[tuple[int, Rows]]:
    """The records of jobs of which nothing is missing any more; each is left alone after that."""
    for one in [one for one in begun if not one.missing]:
        begun.remove(one)
        one.lock.close()
        rows = one.job.store.read(one.job.sweep.cells.ids, one.sources)
        require_some(rows, one.job.store)
        yield one.number, rows


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
