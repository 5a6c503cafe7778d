"""Runs one chunk of cells and returns its outcomes. This is the function that a worker executes; it writes nothing."""

import re
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lemmata import guard, kernels
from lemmata.lab.outcome import Origin, Outcome, failed_record
from lemmata.lab.segment import STORABLE
from lemmata.loop import (
    Lanes,
    begin_supplied,
    complete,
    lane_record,
    recorded,
    replace_runs,
    run_block,
    run_in_lane,
    select_lanes,
    stack_runs,
)
from lemmata.source import data_files, from_script, trial_digest
from lemmata.status import CAPPED, CONVERGED, DIVERGED, RUNNING
from lemmata.sweep import Cell
from lemmata.threefry import new_key
from lemmata.trial import Computed, Descending, Key, Trial, key_number, with_precision


@dataclass(frozen=True)
class Chunk:
    """Cells of one bucket that are given to a worker together.

    `cells`: the cells, in order.
    `width`: how many of them run at a time.
    `source`: the digest of their code in the driver; a worker with other code refuses the chunk.
    `bucket`: the number of the bucket.
    """

    cells: tuple[Cell, ...]
    width: int
    source: str = ""
    bucket: int = 0

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def at_once(self) -> int:
        """The number of cells that run at the same time."""
        return min(self.width, len(self.cells))

    def split(self) -> list["Chunk"]:
        """Split the chunk to find the cell that fails. The first parts are small, as it is likely to be among the first cells.

        Parts have as few lanes as they need, in case memory is short, but at least `MIN_LANES`.
        """
        size, begin, parts = self.at_once if self.width < len(self) else max(1, len(self) // 2), 0, []
        while begin < len(self):
            cells = self.cells[begin : begin + size]
            parts.append(replace(self, cells=cells, width=min(self.width, _lanes_for(len(cells)))))
            begin, size = begin + size, 2 * size if begin else size
        return parts

    @property
    def batch_key(self) -> tuple[int, int, str]:
        """Outcomes of chunks with the same key can be written to the store together."""
        return self.bucket, self.width, self.source

    def joined(self, others: Iterable["Chunk"]) -> "Chunk":
        """Join this chunk with others that have the same `batch_key`."""
        return replace(self, cells=tuple(cell for chunk in (self, *others) for cell in chunk.cells))

    def without(self, finished: Iterable[Outcome]) -> "Chunk":
        """Return the chunk without the finished cells."""
        gone = {outcome.id for outcome in finished}
        return replace(self, cells=tuple(cell for cell in self.cells if cell.id not in gone))


FIRST_BLOCK, MAX_BLOCK = 512, 2**20
"""Steps in a block before the driver loop checks which runs have stopped: in the first block, and at most."""

GROW_BLOCK_BELOW = 0.25
"""After a block that takes fewer seconds the number of steps is doubled, as every call of a program takes a millisecond."""

FLUSH_SECONDS = 2.0
"""Outcomes of a running chunk are sent to the driver after this many seconds, so that it can store them."""

COMPILE_SECONDS = 2.0
"""Narrow the lanes only after running as long as a compilation takes, and at least this many seconds.

The time of the first block of steps, which includes a compilation, is the estimate."""

MIN_LANES = 2
"""The smallest number of lanes. A program for one lane rounds differently; all wider ones give the same bits."""

KEYS_AT_ONCE = 64
"""The number of random keys that are made by one call."""

VARIABLE_NAME = re.compile(r"(?!\.|__|zarr\.json)[^/]+")
"""The names that a variable may have on disk."""

RESERVED_NAMES = ("status", "logged")
"""Names that a record must not use because the lab sets them. So is `steps` for trials that the lab steps."""


def run_chunk(chunk: Chunk) -> Iterator[list[Outcome]]:
    """Run a chunk and yield its outcomes every few seconds.

    A cell that fails gives an outcome with the reason. It does not affect other cells."""
    guard.check()
    trial = chunk.cells[0].trial
    source = chunk.source or trial_digest(trial)
    if not from_script(trial) and trial_digest(trial) != source:
        error = RuntimeError("the code of this trial was changed while the sweep was running; run it again.")
        yield [failure(cell, error, source) for cell in chunk.cells]
        return
    parts = _by_time(_run_or_split(replace(chunk, source=source)))
    while True:
        with guard.double():  # left between two parts, so that the caller keeps its own settings
            part = next(parts, None)
        if part is None:
            return
        yield part


def _by_time(outcomes: Iterator[Outcome]) -> Iterator[list[Outcome]]:
    """Yield outcomes in lists, one about every `FLUSH_SECONDS`."""
    part: list[Outcome] = []
    began = time.perf_counter()
    for outcome in outcomes:
        part.append(outcome)
        if time.perf_counter() - began > FLUSH_SECONDS:
            yield part
            part, began = [], time.perf_counter()
    if part:
        yield part


def origin(trial: Trial) -> Origin:
    """Return the origin of the records of a trial that this process makes."""
    data = ", ".join(f"{name} {sha256}" for name, sha256 in data_files(trial).items())
    return Origin(jax.__version__, jax.default_backend(), kernels.state(), data)


def failure(cell: Cell, error: BaseException, source: str, seconds: float = 0.0) -> Outcome:
    """Return the outcome of a cell that failed."""
    trace = "".join(traceback.format_exception(error)) if error.__traceback__ else ""
    return Outcome(cell.id, failed_record(), seconds, f"{type(error).__name__}: {error}", trace, source)


def _run_or_split(chunk: Chunk) -> Iterator[Outcome]:
    """Run a chunk. If it fails, split it to find the cells that cause the failure."""
    began = time.perf_counter()
    finished: list[Outcome] = []
    try:
        for outcome in _run(chunk):
            finished.append(outcome)
            yield outcome
    except Exception as error:
        rest = chunk.without(finished)
        if len(rest) == 1:
            yield failure(rest.cells[0], error, chunk.source, time.perf_counter() - began)
        else:
            for part in rest.split():
                yield from _run_or_split(part)


def _run(chunk: Chunk) -> Iterator[Outcome]:
    kind = chunk.cells[0].trial
    if isinstance(kind, Computed):
        return _compute_all(chunk)
    if isinstance(kind, Descending):
        return _run_lanes(chunk)
    raise TypeError(f"{type(kind).__name__} is neither Descending nor Computed.")


def _compute_all(chunk: Chunk) -> Iterator[Outcome]:
    for first in range(0, len(chunk), KEYS_AT_ONCE):
        cells = chunk.cells[first : first + KEYS_AT_ONCE]
        for cell, key in zip(cells, jnp.unstack(_keys(cells, KEYS_AT_ONCE)), strict=False):
            yield _compute(cell, key, chunk.source)


def _compute(cell: Cell, key: Key, source: str) -> Outcome:
    trial = cell.trial
    assert isinstance(trial, Computed)
    began = time.perf_counter()
    try:
        found = trial.compute(key)
        _require_storable(found, RESERVED_NAMES)
        record = {"steps": np.asarray(0, np.int32)} | {
            name: np.asarray(value) for name, value in found.items()
        }
    except Exception as error:
        return failure(cell, error, source, time.perf_counter() - began)
    record["status"] = np.asarray(CONVERGED if complete(trial, record.items()) else DIVERGED, np.int32)
    return Outcome(cell.id, record, time.perf_counter() - began, source=source, origin=origin(trial))


def _require_storable(record: Any, own: Sequence[str]) -> None:
    """Raise an error for a record that cannot be stored as named arrays of numbers."""
    if not isinstance(record, Mapping):
        raise TypeError(f"a record must be a mapping of names to arrays, not {type(record).__name__}.")
    for name, value in record.items():
        if not isinstance(name, str) or not VARIABLE_NAME.fullmatch(name) or not name.isprintable():
            raise ValueError(f"{name!r} cannot be the name of a variable.")
        if name in own:
            raise ValueError(f"the name '{name}' in a record is the lab's own.")
        try:
            kind = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
        except ValueError as error:
            raise ValueError(f"variable '{name}' is not an array: {error}") from None
        if np.dtype(kind) not in STORABLE:
            raise TypeError(f"variable '{name}' has type {kind}, which is not stored; give numbers.")


def _run_lanes(chunk: Chunk) -> Iterator[Outcome]:
    """Run `Descending` cells in lanes. A lane whose run has stopped is refilled; when no cell waits, idle lanes are dropped."""
    waiting = deque(chunk.cells)
    occupants: list[Cell | None] = [None] * chunk.width
    lanes: Lanes | None = None
    logged = np.asarray(_descending(chunk.cells[0]).log_steps, np.int64)
    last_harvest = last_compiled = time.perf_counter()
    compiling: float | None = None
    block = FIRST_BLOCK
    while waiting or any(occupants):
        if lanes is None or (waiting and not all(occupants)):
            checked = lanes is not None
            lanes, occupants = _refill(lanes, occupants, waiting)
            if not checked:
                _require_lanes_storable(lanes)
        most, spare = (jnp.asarray(n, jnp.int32) for n in (block, len(occupants) // 2 if waiting else 0))
        began = time.perf_counter()
        ran: Lanes = run_block(lanes, most, spare)
        status = np.asarray(ran.status)
        now = time.perf_counter()
        compiling = compiling or max(now - began, COMPILE_SECONDS)
        block = min(2 * block, MAX_BLOCK) if now - began < GROW_BLOCK_BELOW else block
        stopped = [i for i, cell in enumerate(occupants) if cell is not None and status[i] != RUNNING]
        if stopped:
            share = (now - last_harvest) / len(stopped)
            for i in stopped:
                cell, occupants[i] = occupants[i], None
                assert cell is not None
                record = lane_record(ran, i) | {"logged": logged}
                yield Outcome(cell.id, record, share, source=chunk.source, origin=origin(cell.trial))
            last_harvest = now
        lanes = ran
        busy = sum(cell is not None for cell in occupants)
        narrower = _lanes_for(busy)
        if not waiting and busy and narrower <= len(occupants) // 2 and now - last_compiled > compiling:
            lanes, occupants = _drop_idle(ran, occupants, narrower)
            last_compiled = now


def _require_lanes_storable(lanes: Lanes) -> None:
    run = run_in_lane(lanes, 0)
    tracked = {name: value for kind in run.tracks for name, value in kind.items()}
    _require_storable({**recorded.shapes(run.trial, run.state), **tracked}, (*RESERVED_NAMES, "steps"))


def _refill(
    lanes: Lanes | None, occupants: list[Cell | None], waiting: deque[Cell]
) -> tuple[Lanes, list[Cell | None]]:
    """Start waiting cells in the empty lanes. Lanes that stay empty hold a copy of another run and are marked as stopped."""
    width = len(occupants)
    empty = [i for i, cell in enumerate(occupants) if cell is None][: len(waiting)]
    cells = [waiting.popleft() for _ in empty]
    keys = jnp.unstack(_keys(cells, width))
    runs = {
        i: begin_supplied(with_precision(_descending(cell)), key)
        for i, cell, key in zip(empty, cells, keys, strict=False)
    }
    if lanes is None:
        started = stack_runs([runs.get(i, runs[empty[0]]) for i in range(width)])
    else:
        started = replace_runs(lanes, runs)
    now = dict(zip(empty, cells, strict=True))
    occupants = [now.get(i, cell) for i, cell in enumerate(occupants)]
    vacant = np.asarray([cell is None for cell in occupants])
    started = started._replace(status=np.where(vacant, np.int32(CAPPED), started.status))
    return jax.device_put(started), occupants  # once, here; otherwise every block of steps would do it


def _keys(cells: Sequence[Cell], count: int) -> Key:
    """Make the random keys of the cells in one call, padded to `count` keys."""
    numbers = np.zeros(count, np.uint64)
    numbers[: len(cells)] = [key_number(cell.trial, cell.seed) for cell in cells]
    return _make_keys(numbers)


_make_keys = jax.jit(jax.vmap(new_key))


def _drop_idle(lanes: Lanes, occupants: list[Cell | None], width: int) -> tuple[Lanes, list[Cell | None]]:
    """Keep `width` lanes, including all that still run."""
    busy = [i for i, cell in enumerate(occupants) if cell is not None]
    idle = [i for i, cell in enumerate(occupants) if cell is None]
    kept = (busy + idle)[:width]
    return select_lanes(lanes, kept), [occupants[i] for i in kept]


def _lanes_for(cells: int) -> int:
    """Return the smallest number of lanes for some cells: a power of two, so that few widths are compiled, and at least 2."""
    return max(MIN_LANES, 1 << max(cells - 1, 0).bit_length())


def _descending(cell: Cell) -> Descending:
    assert isinstance(cell.trial, Descending)
    return cell.trial
