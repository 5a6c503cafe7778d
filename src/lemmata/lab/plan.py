"""Cells to chunks, one after another: how many runs advance together, and how many make one unit of work.

A chunk should take a few seconds, so that what is finished is kept and progress moves; how long a cell takes is not known
beforehand, so the first chunk of a bucket is small and the later ones are sized by what was measured.
"""

import math
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax

from lemmata.guard import double
from lemmata.lab.source import trial_digest
from lemmata.lab.work import Chunk, Outcome, failure
from lemmata.sweep import Cell, buckets
from lemmata.trial import Descending, with_precision

LANE_BUDGET = 1 << 20
"""Bytes of state that runs in lockstep may hold together: about what stays in the cache of one core."""

WIDEST = 64
SECONDS = 4.0
"""About how long a chunk should take."""

PER_WORKER = 0.02
"""Seconds that the driver needs to take in a chunk: with very many workers chunks take longer, so that it keeps up."""

LARGEST = 4096


@dataclass
class Bucket:
    """The cells of one structure that wait, how many run in lockstep, and how long one took so far (0: not known)."""

    cells: deque[Cell]
    width: int
    weight: float
    finished: int = 0
    seconds: float = 0.0


@dataclass
class Plan:
    """Gives out chunks, heaviest bucket first, as long as there are cells; `settle` tells it what became of each.

    >>> for chunk, outcomes in pool.run(run_chunk, planned):  # doctest: +SKIP
    ...     outcomes = planned.settle(chunk, outcomes)
    ...     store.write(outcomes, chunk.width)
    """

    buckets: list[Bucket]
    workers: int
    cells: int
    _of: dict[str, Bucket] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        waiting = [bucket for bucket in self.buckets if bucket.cells]
        if not waiting:
            raise StopIteration
        bucket = waiting[0]
        size = min(self._size(bucket), len(bucket.cells))
        cells = tuple(bucket.cells.popleft() for _ in range(size))
        self._of[cells[0].id] = bucket
        return Chunk(cells, bucket.width, trial_digest(cells[0].trial))

    def settle(self, chunk: Chunk, result: list[Outcome] | Exception) -> list[Outcome]:
        """The outcomes of a chunk, failures where it could not be run; its time is taken into account."""
        if isinstance(result, Exception):
            return [failure(cell, result, chunk.source) for cell in chunk.cells]
        bucket = self._of.pop(chunk.cells[0].id, None)
        if bucket is not None:
            bucket.finished += len(result)
            bucket.seconds += sum(outcome.seconds for outcome in result)
        return result

    def _size(self, bucket: Bucket) -> int:
        """As many cells as take a few seconds, and no more than a fair share of the bucket's rest."""
        if not bucket.finished:
            return bucket.width
        target = max(SECONDS, PER_WORKER * self.workers)
        cost = max(bucket.seconds / bucket.finished, 1e-6)
        share = math.ceil(len(bucket.cells) / (2 * max(self.workers, 1)))
        return max(bucket.width, min(int(target / cost), share, LARGEST))


def plan(cells: Sequence[Cell], workers: int, done: Collection[str] = ()) -> Plan:
    """Chunks that cover the cells that are not done; a cell that stands twice counts once.

    `cells` are all cells of the sweep: how many run in lockstep depends on the whole, not on what is missing, so that an
    interrupted run gives the same numbers.
    """
    found = []
    for every in buckets({cell.id: cell for cell in cells}.values()):
        missing = deque(cell for cell in every if cell.id not in done)
        if missing:
            weight = state_bytes(every[0])
            width = lane_width(weight, len(every)) if every[0].trial.lockstep else 1
            found.append(Bucket(missing, width, weight))
    found.sort(key=lambda bucket: -bucket.weight)
    return Plan(found, workers, sum(len(bucket.cells) for bucket in found))


def lane_width(state: int, cells: int) -> int:
    """How many runs to advance together: as many as share the cache, a power of two; 1 for large states.

    >>> lane_width(state=4_000_000, cells=300), lane_width(state=20_000, cells=300), lane_width(state=20_000, cells=5)
    (1, 32, 4)
    """
    fit = max(1, min(LANE_BUDGET // max(state, 1), WIDEST, cells))
    return 1 << (fit.bit_length() - 1)


def state_bytes(cell: Cell) -> int:
    """The size of the state of one run, found without running it; nothing for one whose start fails: its turn will tell."""
    trial = cell.trial
    if not isinstance(trial, Descending):
        return WIDEST * LANE_BUDGET
    try:
        with double():
            state: Any = jax.eval_shape(with_precision(trial).start, jax.random.key(0))
    except Exception:
        return LANE_BUDGET
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
