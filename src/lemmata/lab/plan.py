"""Divides cells into chunks: decides how many runs advance together, and how many cells make one unit of work.

The time of a cell is not known in advance. So a chunk is made when a worker is free, and its size follows from the measured
times: a fair share of the remaining cells, but at most some seconds, so that all workers finish at about the same time.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr

from lemmata.errors import require_memory
from lemmata.guard import double
from lemmata.lab.outcome import Outcome
from lemmata.lab.segment import among, numbers
from lemmata.lab.work import MIN_LANES, Chunk, failure
from lemmata.programs import cached
from lemmata.source import trial_digest
from lemmata.sweep import Cell, Cells
from lemmata.threefry import new_key
from lemmata.trial import Descending, Trial, kind, with_precision

LANE_BUDGET = 1 << 20
"""Bytes of state that runs in lockstep may hold together: about the cache of one core."""

MAX_LANES = 64
"""The largest number of runs in lockstep."""

MIN_BATCHES = 4
"""A sweep is divided into at least this many batches of lanes, so that a few workers can share it."""

MAX_CHUNK_SECONDS = 10.0
"""The target for the longest chunk. It is exceeded only where the lanes would be filled fewer than `MIN_BATCHES` times."""

MIN_CHUNK_SECONDS = 0.5
"""Chunks are not made shorter than this at the end of a sweep, because every chunk also costs the driver time."""

CHUNK_SECONDS_PER_WORKER = 0.05
"""With many workers, the longest chunk takes this many seconds times their number, so that the driver keeps up."""

MAX_CHUNK_CELLS = 4096
"""The largest number of cells in a chunk."""

STATE_COPIES = 2
"""A training holds at least this many copies of its state: before a step and after it."""

SMOOTHING = 0.25
"""The weight of earlier measurements is multiplied by this at each new one, because the first ones include compilation."""


@dataclass
class Bucket:
    """The cells of one structure.

    `cells`: all cells of the sweep.
    `waiting`: indices into `cells` of those that have not been given to a worker.
    `width`: how many runs advance in lockstep.
    `weight`: the size of the state of one run, in bytes.
    `in_flight`: how many cells workers have now.
    `finished`: the weighted number of measured cells; recent ones weigh most.
    `seconds`: the weighted time that these took.
    """

    cells: Cells
    waiting: np.ndarray
    width: int
    weight: float
    in_flight: int = 0
    finished: float = 0.0
    seconds: float = 0.0

    @property
    def cost(self) -> float | None:
        """Seconds per cell, or None before the first measurement."""
        return max(self.seconds / self.finished, 1e-6) if self.finished else None

    def take(self, count: int) -> tuple[Cell, ...]:
        """Remove and return the next cells, which count as in flight."""
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        self.in_flight += count
        return tuple(self.cells.at(taken))


@dataclass
class Plan:
    """Yields chunks while there are cells. Call `record_result` with the result of each.

    `buckets`: the cells, by structure.
    `workers`: the number of workers.
    `first`: the number of the first bucket, which tells apart the buckets of several sweeps.

    >>> for chunk, result in pool.run(run_chunk, planned):  # doctest: +SKIP
    ...     store.write(planned.record_result(chunk, result), chunk.width)
    """

    buckets: list[Bucket]
    workers: int
    first: int = 0

    def __len__(self) -> int:
        """The number of cells that have not been given to a worker."""
        return sum(len(bucket.waiting) for bucket in self.buckets)

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        """Return the next chunk.

        Buckets without cells in flight come first, measured ones before others, so that few programs are compiled. Among
        equals, the bucket with the most remaining work comes first."""
        waiting = [(i, bucket) for i, bucket in enumerate(self.buckets) if len(bucket.waiting)]
        if not waiting:
            raise StopIteration
        known = [bucket.cost for bucket in self.buckets if bucket.cost is not None]
        mean = sum(known) / len(known) if known else 1.0
        rest = {i: (bucket.cost or mean) * len(bucket.waiting) for i, bucket in waiting}
        number, bucket = min(
            waiting, key=lambda pair: (pair[1].in_flight > 0, pair[1].cost is None, -rest[pair[0]])
        )
        size = min(self._size(bucket, sum(rest.values())), MAX_CHUNK_CELLS, len(bucket.waiting))
        cells = bucket.take(size)
        return Chunk(cells, bucket.width, trial_digest(cells[0].trial), self.first + number)

    def _size(self, bucket: Bucket, rest: float) -> int:
        """Return the number of cells in the next chunk.

        Before the first measurement it is one batch of lanes, then a fair share of the remaining seconds, within the limits."""
        if bucket.cost is None:
            return bucket.width
        fair = max(rest / (2 * max(self.workers, 1)), MIN_CHUNK_SECONDS)
        long = max(
            MAX_CHUNK_SECONDS,
            CHUNK_SECONDS_PER_WORKER * self.workers,
            MIN_BATCHES * bucket.width * bucket.cost,
        )
        return max(int(min(fair, long) / bucket.cost), bucket.width)

    def record_result(self, chunk: Chunk, result: list[Outcome] | Exception) -> list[Outcome]:
        """Record the time of a chunk or a part of it, and return its outcomes: failures if the result is an exception."""
        bucket = self.buckets[chunk.bucket - self.first]
        if isinstance(result, Exception):
            result = [failure(cell, result, chunk.source) for cell in chunk.cells]
        else:
            bucket.finished = SMOOTHING * bucket.finished + len(result)
            bucket.seconds = SMOOTHING * bucket.seconds + sum(outcome.seconds for outcome in result)
        bucket.in_flight -= len(result)
        return result


def plan(
    cells: Sequence[Cell], workers: int, done: Collection[str] | np.ndarray = (), first: int = 0
) -> Plan:
    """Return a plan for the cells that are not done. A cell that occurs twice is run once.

    `cells`: all cells of the sweep. The number of lanes depends on all of them, not on the missing ones nor on the number of
    workers, so that an interrupted run gives the same numbers.
    `workers`: the number of workers.
    `done`: the identities of the cells that are done.
    `first`: the number of the first bucket.
    """
    cells = Cells.of(cells)
    own = np.sort(np.unique(cells.ids, return_index=True)[1])
    if not len(own):
        return Plan([], workers, first)
    trials, kinds = cells.structures
    group = kinds[cells.which(own)]
    sizes = np.bincount(group, minlength=len(trials)).tolist()
    weights = []
    for trial in trials:
        state, largest = state_bytes(trial)
        weights.append(state)
        if isinstance(trial, Descending):
            require_memory(max(STATE_COPIES * state, largest), f"one training of '{kind(trial)}'")
    widths = [
        lane_width(weight, size) if trial.lockstep else 1
        for weight, size, trial in zip(weights, sizes, trials, strict=True)
    ]
    while max(widths) > MIN_LANES and sum(map(_batches, sizes, widths)) < MIN_BATCHES:
        widths = [width if width < max(widths) else width // 2 for width in widths]
    missing = ~among(cells.ids[own], numbers(done))
    found = []
    for number, (width, weight) in enumerate(zip(widths, weights, strict=True)):
        waiting = own[missing & (group == number)]
        if len(waiting):
            found.append(Bucket(cells, waiting, width, weight))
    return Plan(sorted(found, key=lambda bucket: -bucket.weight), workers, first)


def _batches(cells: int, width: int) -> int:
    return math.ceil(cells / width)


def lane_width(state: int, cells: int) -> int:
    """Return how many runs advance together: as many as fit into the cache, rounded down to a power of two.

    The result is at least 2, except for large states. A batch of one compiles to a program that rounds differently, and adding
    seeds later must not change earlier results.

    >>> lane_width(state=4_000_000, cells=300), lane_width(state=20_000, cells=300), lane_width(state=20_000, cells=1)
    (1, 32, 2)
    """
    fit = max(1, min(LANE_BUDGET // max(state, 1), MAX_LANES, max(cells, MIN_LANES)))
    return 1 << (fit.bit_length() - 1)


def state_bytes(trial: Trial) -> tuple[int, int]:
    """Return the size of the state of one run and of the largest array that `start` makes, in bytes, without running it.

    If `start` raises, return the lane budget; the error is reported when the cell runs."""
    if not isinstance(trial, Descending):
        return MAX_LANES * LANE_BUDGET, 0
    try:
        with double():
            state, largest = cached(
                trial, ("sizes", str(jax.tree.structure(trial))), lambda: _start_sizes(trial)
            )
            return state, largest
    except Exception:
        return LANE_BUDGET, 0


def _start_sizes(trial: Descending) -> tuple[int, int]:
    program = jax.make_jaxpr(with_precision(trial).start)(new_key(0))
    return sum(map(_bytes, program.out_avals)), max(_made(program.jaxpr), default=0)


def _made(program: Jaxpr) -> Iterator[int]:
    """Yield the sizes of all arrays that a program makes, including those of its inner programs."""
    for equation in program.eqns:
        yield from (_bytes(made.aval) for made in equation.outvars)
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _made(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner)


def _is_program(thing: Any) -> bool:
    return isinstance(thing, Jaxpr | ClosedJaxpr)


def _bytes(array: Any) -> int:
    return math.prod(array.shape) * array.dtype.itemsize
