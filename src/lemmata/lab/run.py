"""Runs a sweep: finds the missing cells, plans chunks, runs them on a pool, and writes the records to a store."""

import contextlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from lemmata.arguments import checks_arguments
from lemmata.cache import require_private_cache
from lemmata.errors import BadInput, few, note, require
from lemmata.lab.outcome import Outcome
from lemmata.lab.plan import Plan, plan
from lemmata.lab.pool import Pool
from lemmata.lab.segment import among
from lemmata.lab.spool import Spool
from lemmata.lab.store import Store
from lemmata.lab.work import Chunk, run_chunk
from lemmata.progress import Progress, bar, silence, wanted
from lemmata.results import assemble
from lemmata.rows import Rows
from lemmata.source import sources as sources_of
from lemmata.status import FAILED
from lemmata.sweep import Sweep
from lemmata.trial import describe


@checks_arguments
def run(
    sweep: Sweep,
    out: Path | str | None = None,
    workers: int = 0,
    progress: bool | None = None,
    executor: Executor | None = None,
    limit: float | None = None,
    fail_fast: bool = False,
) -> xr.Dataset:
    """Run the missing cells of a sweep and return its results.

    `sweep`: a sweep of your own.
    `out`: the folder that keeps the results, where the same call finds them again. Without it they are only returned.
    `workers`: the number of worker processes; 0 runs everything in this process.
    `progress`: whether a progress bar is shown; by default in a terminal and in a notebook.
    `executor`: any `concurrent.futures.Executor`, in place of `workers`.
    `limit`: how many seconds a cell may take.
    `fail_fast`: whether the first failed cell ends the run.

    >>> from lemmata import Sweep, axis
    >>> from lemmata.trial import Computed
    >>> class Square(Computed):
    ...     value: float = 0.0
    ...
    ...     def compute(self, key):
    ...         return {"square": self.value**2}
    >>> results = run(Sweep(Square(), (axis("value", (2, 3)),), seeds=(0,)))
    >>> results.square.sel(seed=0).values.tolist()
    [4.0, 9.0]
    """
    with tempfile.TemporaryDirectory() as nowhere, Pool(workers, executor, limit) as pool:
        with bar("sweep") if wanted(progress) else silence() as progress_bar:
            store = Store(out or nowhere)
            rows = carry_out(sweep, store, {"trial": describe(sweep.template)}, pool, progress_bar, fail_fast)
        return assemble(sweep, rows)


@dataclass(frozen=True)
class Job:
    """A sweep to run.

    `store`: where its records are kept.
    `manifest`: what the manifest of the store says.
    `progress`: called with the numbers of finished cells and of all cells.
    `siblings`: returns the folders of other stores. Finished rows of missing cells are copied from there, not computed again.
    """

    sweep: Sweep
    store: Store
    manifest: Mapping[str, Any]
    progress: Progress
    siblings: Callable[[], Iterable[Path]] = tuple


def carry_out(
    sweep: Sweep,
    store: Store,
    manifest: Mapping[str, Any],
    pool: Pool | Spool,
    progress: Progress,
    fail_fast: bool = False,
    siblings: Callable[[], Iterable[Path]] = tuple,
) -> Rows:
    """Run the missing cells of a sweep and return the records of all its cells."""
    ((_, rows),) = carry_out_all([Job(sweep, store, manifest, progress, siblings)], pool, fail_fast)
    return rows


def carry_out_all(
    jobs: Sequence[Job], pool: Pool | Spool, fail_fast: bool = False
) -> Iterator[tuple[int, Rows]]:
    """Run the missing cells of several sweeps, in order. Yields the number and the records of each when it is complete.

    A sweep begins when a worker is free, before the last cells of the sweep before it are finished. Through files, where work
    lies beside its own store, sweeps run one after another.
    """
    groups = (
        [range(len(jobs))] if jobs and isinstance(pool, Pool) else [[number] for number in range(len(jobs))]
    )
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
    """A job that has begun.

    `number`: its index among all jobs.
    `job`: the job.
    `plan`: gives its chunks.
    `total`: the number of its cells.
    `missing`: how many of them have no outcome yet.
    `sources`: the digests of the code of its trials.
    `lock`: holds the lock of its store.
    """

    number: int
    job: Job
    plan: Plan
    total: int
    missing: int
    sources: set[str]
    lock: contextlib.ExitStack

    def keep(self, chunk: Chunk, result: list[Outcome] | Exception) -> list[Outcome]:
        """Write the outcomes of a chunk and report the progress."""
        outcomes = self.plan.record_result(chunk, result)
        self.job.store.write(outcomes, chunk.width)
        self.missing -= len(outcomes)
        self.job.progress(self.total - self.missing, self.total)
        return outcomes


def _chunks(
    jobs: Mapping[int, Job], workers: int, begun: list[_UnderWay], held: contextlib.ExitStack
) -> Iterator[Chunk]:
    """Yield the chunks of all jobs. A job begins when its first chunk is requested."""
    first = 0
    for number, job in jobs.items():
        one = _begin(number, job, workers, first, held.enter_context(contextlib.ExitStack()))
        begun.append(one)
        first += len(one.plan.buckets)
        yield from one.plan


def _begin(number: int, job: Job, workers: int, first: int, lock: contextlib.ExitStack) -> _UnderWay:
    """Find the missing cells of a job. If there are any, lock the store, write the manifest, and plan the chunks."""
    store, ids = job.store, job.sweep.cells.ids
    by_module = sources_of(job.sweep.cells.trials)
    sources = set(by_module.values())
    done = store.finished(sources)
    missing, total = np.unique(ids[~among(ids, done)]), len(np.unique(ids))
    planned = Plan([], workers, first)
    known = _same_order(store, job.manifest)
    if known and not len(missing) and not store.sound:
        _mend(store)
    elif len(missing) or not known:
        require_private_cache()
        manifest = {"cells": total, **job.manifest, "sources": by_module}
        lock.enter_context(store.locked())
        store.create(manifest, ids if manifest["cells"] == total else None)
        _copy_from_siblings(job, missing, sources)
        done = store.finished(sources)
        missing = missing[~among(missing, done)]
        outdated = int(among(missing, store.finished()).sum())
        if outdated:
            note(f"{outdated} cells in '{store.path}' were made by other code and are computed again.")
        planned = plan(job.sweep.cells, workers, done, first)
        job.progress(total - len(planned), total)
    return _UnderWay(number, job, planned, total, len(planned), sources, lock)


def _copy_from_siblings(job: Job, missing: np.ndarray, sources: set[str]) -> None:
    """Copy the finished rows of missing cells from other stores, and tell the user where they come from."""
    for path in job.siblings():
        if len(missing):
            count = job.store.copy_from(Store(path), missing, sources)
            if count:
                note(f"{count} cells of '{job.store.path}' are copied from '{path}', where they were run.")
                missing = missing[~among(missing, job.store.finished(sources))]


def _mend(store: Store) -> None:
    """Repair a store whose rows are complete. If it cannot be written to, its rows are read nevertheless."""
    try:
        done = store.repair()
    except BadInput as error:
        done = [str(error)]
    for sentence in done:
        note(f"'{store.path}': {sentence}")


def _completed(begun: list[_UnderWay]) -> Iterator[tuple[int, Rows]]:
    """Yield the records of the jobs that are complete, and release their stores."""
    for one in [one for one in begun if not one.missing]:
        begun.remove(one)
        one.lock.close()
        rows = one.job.store.read(one.job.sweep.cells.ids, one.sources)
        require_some(rows, one.job.store)
        yield one.number, rows


def require_some(rows: Rows, store: Store) -> None:
    """Raise `BadInput` if every record is a failure."""
    if np.all(rows.values["status"] == FAILED):
        raise BadInput(f"every cell failed: {'; '.join(few(reasons(store)))}")


def reasons(store: Store) -> list[str]:
    """Return the reasons of failed cells, each once."""
    return sorted(store.reasons())


def _same_order(store: Store, manifest: Mapping[str, Any]) -> bool:
    """Whether the store was last used for the same order. If so, a finished store is not written to, and may be read-only."""
    if not store.exists:
        return False
    passing = ("versions", "platform", "started", "cells", "command")
    known = store.recovered_manifest
    return all(known.get(word) == value for word, value in manifest.items() if word not in passing)
