"""Buckets to chunks: how many runs advance together, and how many make one unit of work."""

import math
from collections.abc import Sequence

import jax

from lemmata.guard import double
from lemmata.lab.work import Chunk
from lemmata.sweep import Cell, buckets
from lemmata.trial import Descending, with_precision

LANE_BUDGET = 1 << 20
"""Bytes of state that runs in lockstep may hold together: about what stays in the cache of one core."""

WIDEST = 64
LARGEST = 256
CHUNKS_PER_WORKER = 4


def plan(cells: Sequence[Cell], workers: int) -> list[Chunk]:
    """Chunks that cover the cells, the heaviest first so that the workers finish together.

    A small bucket stays in one chunk: splitting it would have two workers compile the same program.
    """
    most = min(LARGEST, max(1, math.ceil(len(cells) / (CHUNKS_PER_WORKER * max(workers, 1)))))
    weighed = []
    for bucket in buckets(cells):
        weight = state_bytes(bucket[0])
        width = lane_width(weight, len(bucket)) if bucket[0].trial.lockstep else 1
        size = max(width, most)
        for begin in range(0, len(bucket), size):
            part = tuple(bucket[begin : begin + size])
            weighed.append((weight * len(part), Chunk(part, min(width, len(part)))))
    return [chunk for _, chunk in sorted(weighed, key=lambda pair: -pair[0])]


def lane_width(state: int, cells: int) -> int:
    """How many runs to advance together: as many as share the cache, a power of two; 1 for large states.

    >>> lane_width(state=4_000_000, cells=300), lane_width(state=20_000, cells=300), lane_width(state=20_000, cells=5)
    (1, 32, 4)
    """
    fit = max(1, min(LANE_BUDGET // max(state, 1), WIDEST, cells))
    return 1 << (fit.bit_length() - 1)


def state_bytes(cell: Cell) -> int:
    """The size of the state of one run, found without running it."""
    trial = cell.trial
    if not isinstance(trial, Descending):
        return WIDEST * LANE_BUDGET
    with double():
        state = jax.eval_shape(with_precision(trial).start, jax.random.key(0))
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
