"""Cells to chunks, one after another: how many runs advance together, and how many make one unit of work.

How long a cell takes is not known beforehand, so that chunks are made when a worker is free for one, sized by what was
measured: a fair share of the rest, and no more than some seconds, so that the workers finish together.
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
from lemmata.lab.work import NARROWEST, Chunk, failure
from lemmata.programs import kept
from lemmata.source import trial_digest
from lemmata.sweep import Cell, Cells
from lemmata.threefry import new_key
from lemmata.trial import Descending, Trial, kind, with_precision

LANE_BUDGET = 1 << 20
"""Bytes of state that runs in lockstep may hold together: about what stays in the cache of one core."""

WIDEST = 64
FILLS = 4
"""A sweep is cut into at least so many pieces that run together, so that a few workers can share it."""

SECONDS = 10.0
"""A chunk that takes longer than this is cut, as long as its lanes are filled several times over."""

SHORTEST = 0.5
"""A chunk is not made shorter than this to share out the rest: taking it in has a cost too."""

PER_WORKER = 0.05
"""Seconds of a chunk for each worker: with very many of them chunks take longer, so that the driver keeps up."""

LARGEST = 4096

STATES = 2
"""Copies of its state that a training holds at least: before a step and after."""

FADING = 0.25
"""What is left of the weight of a measurement at the next one: the first ones contain the compilation."""


@dataclass
class Bucket:
    """The cells of one structure that wait (their places among all `cells`), how many run in lockstep, how many are out with
    workers, and what was measured: `seconds` for `finished` cells, the last ones counting most."""

    cells: Cells
    waiting: np.ndarray
    width: int
    weight: float
    out: int = 0
    finished: float = 0.0
    seconds: float = 0.0

    @property
    def cost(self) -> float | None:
        """Seconds a cell, as far as they are known."""
        return max(self.seconds / self.finished, 1e-6) if self.finished else None

    def take(self, count: int) -> tuple[Cell, ...]:
        """The next cells, which are out from now on."""
        taken, self.waiting = self.waiting[:count], self.waiting[count:]
        self.out += count
        return tuple(self.cells.at(taken))


@dataclass
class Plan:
    """Gives out chunks as long as there are cells; `settle` tells it what became of them. `first` is the number of the first
    bucket: where several sweeps are under way, a number says whose bucket it is.

    >>> for chunk, result in pool.run(run_chunk, planned):  # doctest: +SKIP
    ...     store.write(planned.settle(chunk, result), chunk.width)
    """

    buckets: list[Bucket]
    workers: int
    first: int = 0

    def __len__(self) -> int:
        """How many cells have not been given out yet."""
        return sum(len(bucket.waiting) for bucket in self.buckets)

    def __iter__(self) -> Iterator[Chunk]:
        return self

    def __next__(self) -> Chunk:
        """The next chunk. A worker goes on with the bucket that it has just left, then begins one that nobody works on, so
        that programs are compiled once, and helps others only when there is none; the longest first."""
        waiting = [(i, bucket) for i, bucket in enumerate(self.buckets) if len(bucket.waiting)]
        if not waiting:
            raise StopIteration
        known = [bucket.cost for bucket in self.buckets if bucket.cost is not None]
        usual = sum(known) / len(known) if known else 1.0
        rest = {i: (bucket.cost or usual) * len(bucket.waiting) for i, bucket in waiting}
        number, bucket = min(
            waiting, key=lambda pair: (pair[1].out > 0, pair[1].cost is None, -rest[pair[0]])
        )
        size = min(self._size(bucket, sum(rest.values())), LARGEST, len(bucket.waiting))
        cells = bucket.take(size)
        return Chunk(cells, bucket.width, trial_digest(cells[0].trial), self.first + number)

    def _size(self, bucket: Bucket, rest: float) -> int:
        """Cells of the next chunk: as many as run together where nothing is known yet; else a fair share of the `rest` in
        seconds, cut where it gets long."""
        if bucket.cost is None:
            return bucket.width
        fair = max(rest / (2 * max(self.workers, 1)), SHORTEST)
        long = max(SECONDS, PER_WORKER * self.workers, FILLS * bucket.width * bucket.cost)
        return max(int(min(fair, long) / bucket.cost), bucket.width)

    def settle(self, chunk: Chunk, result: list[Outcome] | Exception) -> list[Outcome]:
        """The outcomes of a chunk or of a part of it, failures where it could not be run; their time is noted."""
        bucket = self.buckets[chunk.bucket - self.first]
        if isinstance(result, Exception):
            result = [failure(cell, result, chunk.source) for cell in chunk.cells]
        else:
            bucket.finished = FADING * bucket.finished + len(result)
            bucket.seconds = FADING * bucket.seconds + sum(outcome.seconds for outcome in result)
        bucket.out -= len(result)
        return result


def plan(
    cells: Sequence[Cell], workers: int, done: Collection[str] | np.ndarray = (), first: int = 0
) -> Plan:
    """Chunks that cover the cells that are not done; a cell that stands twice counts once.

    `cells` are all cells of the sweep: how many run in lockstep depends on the whole, not on what is missing nor on the
    number of workers, so that an interrupted run gives the same numbers.
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
            require_memory(max(STATES * state, largest), f"one training of '{kind(trial)}'")
    widths = [
        lane_width(weight, size) if trial.lockstep else 1
        for weight, size, trial in zip(weights, sizes, trials, strict=True)
    ]
    while max(widths) > NARROWEST and sum(map(_fills, sizes, widths)) < FILLS:
        widths = [width if width < max(widths) else width // 2 for width in widths]
    missing = ~among(cells.ids[own], numbers(done))
    found = []
    for number, (width, weight) in enumerate(zip(widths, weights, strict=True)):
        waiting = own[missing & (group == number)]
        if len(waiting):
            found.append(Bucket(cells, waiting, width, weight))
    return Plan(sorted(found, key=lambda bucket: -bucket.weight), workers, first)


def _fills(cells: int, width: int) -> int:
    return math.ceil(cells / width)


def lane_width(state: int, cells: int) -> int:
    """How many runs to advance together: as many as share the cache, a power of two; 1 for large states only, as programs
    for one run alone round differently: seeds that are added to a single one give the bits of a sweep that has them all.

    >>> lane_width(state=4_000_000, cells=300), lane_width(state=20_000, cells=300), lane_width(state=20_000, cells=1)
    (1, 32, 2)
    """
    fit = max(1, min(LANE_BUDGET // max(state, 1), WIDEST, max(cells, NARROWEST)))
    return 1 << (fit.bit_length() - 1)


def state_bytes(trial: Trial) -> tuple[int, int]:
    """The size of the state of one run, and of the largest array that its start makes on the way, found without running it;
    what is usual for one whose start fails: its turn will tell."""
    if not isinstance(trial, Descending):
        return WIDEST * LANE_BUDGET, 0
    try:
        with double():
            return kept(trial, ("sizes", str(jax.tree.structure(trial))), lambda: _start_sizes(trial))
    except Exception:
        return LANE_BUDGET, 0


def _start_sizes(trial: Descending) -> tuple[int, int]:
    program = jax.make_jaxpr(with_precision(trial).start)(new_key(0))
    return sum(map(_bytes, program.out_avals)), max(_made(program.jaxpr), default=0)


def _made(program: Jaxpr) -> Iterator[int]:
    """The sizes of all arrays that a program makes, those of its inner programs included."""
    for equation in program.eqns:
        yield from (_bytes(made.aval) for made in equation.outvars)
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=_is_program):
            if _is_program(inner):
                yield from _made(inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner)


def _is_program(thing: Any) -> bool:
    return isinstance(thing, Jaxpr | ClosedJaxpr)


def _bytes(array: Any) -> int:
    return math.prod(array.shape) * array.dtype.itemsize
