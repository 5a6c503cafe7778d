"""One chunk of cells to its outcomes: pure, what a worker executes."""

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

from lemmata import guard
from lemmata.lab.outcome import Outcome, nothing
from lemmata.lab.segment import STORABLE
from lemmata.loop import Lanes, begin, lane_record, only, recorded, replaced, run_block, run_in, side_by_side
from lemmata.source import trial_digest
from lemmata.status import CAPPED, CONVERGED, RUNNING
from lemmata.sweep import Cell
from lemmata.threefry import new_key
from lemmata.trial import Computed, Descending, Key, key_number, with_precision


@dataclass(frozen=True)
class Chunk:
    """Cells of one bucket that run together, `width` of them at a time. `source` is the digest of their code as the driver
    knows it; a worker that finds other code refuses."""

    cells: tuple[Cell, ...]
    width: int
    source: str = ""
    bucket: int = 0

    def __len__(self) -> int:
        return len(self.cells)

    @property
    def at_once(self) -> int:
        """How many cells run at the same time."""
        return min(self.width, len(self.cells))

    def split(self) -> list["Chunk"]:
        """Parts to find a guilty cell in, small ones first: cells run in order, so that it is likely to be among the first.

        They are no wider than they need be, as it may be memory that is short, but lanes never narrow to one (`NARROWEST`).
        """
        size, begin, parts = self.at_once if self.width < len(self) else max(1, len(self) // 2), 0, []
        while begin < len(self):
            cells = self.cells[begin : begin + size]
            parts.append(replace(self, cells=cells, width=min(self.width, _lanes_for(len(cells)))))
            begin, size = begin + size, 2 * size if begin else size
        return parts

    @property
    def kin(self) -> tuple[int, int, str]:
        """Chunks of one kin can be kept in one go."""
        return self.bucket, self.width, self.source

    def joined(self, others: Iterable["Chunk"]) -> "Chunk":
        """This chunk and others of its kin."""
        return replace(self, cells=tuple(cell for chunk in (self, *others) for cell in chunk.cells))

    def without(self, finished: Iterable[Outcome]) -> "Chunk":
        """What is left of the chunk."""
        gone = {outcome.id for outcome in finished}
        return replace(self, cells=tuple(cell for cell in self.cells if cell.id not in gone))


BLOCK, MOST = 512, 2**20
"""Steps between two looks at which runs have stopped, when none has to be replaced before: the first, and the most."""

BRIEFLY = 0.25
"""Blocks that take fewer seconds are followed by twice as many steps: to call a program takes a millisecond."""

EVERY = 2.0
"""Seconds between two parts of the outcomes of a chunk: what is given back can be kept."""

COMPILE_SECONDS = 2.0
"""Fewer lanes need another compilation: it is earned by having run for as long as the first block of steps took, which
contains one, and for this long at least."""

NARROWEST = 2
"""Lanes are not dropped below this: programs for one run alone round differently, all wider ones give the same bits."""

KEYS = 64
"""Random keys that are made at once."""

NAME = re.compile(r"(?!\.|__|zarr\.json)[^/]+")
"""What a variable may be called on disk."""

OWN = ("status", "logged")
"""Names in a record that are the lab's; `steps` too where the lab counts them."""


def run_chunk(chunk: Chunk) -> Iterator[list[Outcome]]:
    """Carry out a chunk; gives its outcomes every few seconds, as far as they have come. A cell that cannot be carried out
    is an outcome too; it never takes others with it."""
    guard.check()
    trial = chunk.cells[0].trial
    source = chunk.source or trial_digest(trial)
    if type(trial).__module__ != "__main__" and trial_digest(trial) != source:
        error = RuntimeError("the code of this trial was changed while the sweep was running; run it again.")
        yield [failure(cell, error, source) for cell in chunk.cells]
        return
    parts = _by_time(_run_or_split(replace(chunk, source=source)))
    while True:
        with guard.double():  # left between two parts: what the caller does in the meantime is none of ours
            part = next(parts, None)
        if part is None:
            return
        yield part


def _by_time(outcomes: Iterator[Outcome]) -> Iterator[list[Outcome]]:
    """Outcomes in parts that took about as long as is worth a message; the last part may be empty-handed and is left out."""
    part: list[Outcome] = []
    began = time.perf_counter()
    for outcome in outcomes:
        part.append(outcome)
        if time.perf_counter() - began > EVERY:
            yield part
            part, began = [], time.perf_counter()
    if part:
        yield part


def failure(cell: Cell, error: BaseException, source: str, seconds: float = 0.0) -> Outcome:
    """The outcome of a cell that could not be carried out."""
    told = "".join(traceback.format_exception(error)) if error.__traceback__ else ""
    return Outcome(cell.id, nothing(), seconds, f"{type(error).__name__}: {error}", told, source)


def _run_or_split(chunk: Chunk) -> Iterator[Outcome]:
    """Where a chunk fails, find out which cells are at fault."""
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
    for first in range(0, len(chunk), KEYS):
        cells = chunk.cells[first : first + KEYS]
        for cell, key in zip(cells, jnp.unstack(_keys(cells, KEYS)), strict=False):
            yield _compute(cell, key, chunk.source)


def _compute(cell: Cell, key: Key, source: str) -> Outcome:
    trial = cell.trial
    assert isinstance(trial, Computed)
    began = time.perf_counter()
    try:
        found = trial.compute(key)
        _require_storable(found, OWN)
        record = {"steps": np.asarray(0, np.int32)} | {
            name: np.asarray(value) for name, value in found.items()
        }
    except Exception as error:
        return failure(cell, error, source, time.perf_counter() - began)
    record["status"] = np.asarray(CONVERGED, np.int32)
    return Outcome(cell.id, record, time.perf_counter() - began, source=source)


def _require_storable(record: Any, own: Sequence[str]) -> None:
    """Refuse what cannot be kept as named arrays of numbers, with a reason."""
    if not isinstance(record, Mapping):
        raise TypeError(f"a record must be a mapping of names to arrays, not {type(record).__name__}.")
    for name, value in record.items():
        if not isinstance(name, str) or not NAME.fullmatch(name) or not name.isprintable():
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
    """Run Descending cells in lanes: a lane whose run has stopped is refilled; towards the end idle lanes are dropped."""
    waiting = deque(chunk.cells)
    occupants: list[Cell | None] = [None] * chunk.width
    lanes: Lanes | None = None
    logged = np.asarray(_descending(chunk.cells[0]).log_steps, np.int64)
    last_harvest = last_compiled = time.perf_counter()
    compiling: float | None = None
    block = BLOCK
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
        block = min(2 * block, MOST) if now - began < BRIEFLY else block
        stopped = [i for i, cell in enumerate(occupants) if cell is not None and status[i] != RUNNING]
        if stopped:
            share = (now - last_harvest) / len(stopped)
            for i in stopped:
                cell, occupants[i] = occupants[i], None
                assert cell is not None
                record = lane_record(ran, i) | {"logged": logged}
                yield Outcome(cell.id, record, share, source=chunk.source)
            last_harvest = now
        lanes = ran
        busy = sum(cell is not None for cell in occupants)
        narrower = _lanes_for(busy)
        if not waiting and busy and narrower <= len(occupants) // 2 and now - last_compiled > compiling:
            lanes, occupants = _drop_idle(ran, occupants, narrower)
            last_compiled = now


def _require_lanes_storable(lanes: Lanes) -> None:
    run = run_in(lanes, 0)
    tracked = {name: value for kind in run.tracks for name, value in kind.items()}
    _require_storable({**recorded.shapes(run.trial, run.state), **tracked}, (*OWN, "steps"))


def _refill(
    lanes: Lanes | None, occupants: list[Cell | None], waiting: deque[Cell]
) -> tuple[Lanes, list[Cell | None]]:
    """Start waiting cells in the empty lanes; lanes that stay empty hold any run and are marked as stopped."""
    width = len(occupants)
    empty = [i for i, cell in enumerate(occupants) if cell is None][: len(waiting)]
    cells = [waiting.popleft() for _ in empty]
    keys = jnp.unstack(_keys(cells, width))
    runs = {
        i: begin(with_precision(_descending(cell)), key)
        for i, cell, key in zip(empty, cells, keys, strict=False)
    }
    if lanes is None:
        started = side_by_side([runs.get(i, runs[empty[0]]) for i in range(width)])
    else:
        started = replaced(lanes, runs)
    now = dict(zip(empty, cells, strict=True))
    occupants = [now.get(i, cell) for i, cell in enumerate(occupants)]
    vacant = np.asarray([cell is None for cell in occupants])
    started = started._replace(status=np.where(vacant, np.int32(CAPPED), started.status))
    return jax.device_put(started), occupants  # once: every block of steps would do it again


def _keys(cells: Sequence[Cell], count: int) -> Key:
    """The random keys of the cells, made all at once, with something behind them to fill up to `count`."""
    numbers = np.zeros(count, np.uint64)
    numbers[: len(cells)] = [key_number(cell.trial, cell.seed) for cell in cells]
    return _make_keys(numbers)


_make_keys = jax.jit(jax.vmap(new_key))


def _drop_idle(lanes: Lanes, occupants: list[Cell | None], width: int) -> tuple[Lanes, list[Cell | None]]:
    """Keep only `width` lanes, those that still run among them."""
    busy = [i for i, cell in enumerate(occupants) if cell is not None]
    idle = [i for i, cell in enumerate(occupants) if cell is None]
    kept = (busy + idle)[:width]
    return only(lanes, kept), [occupants[i] for i in kept]


def _lanes_for(cells: int) -> int:
    """The least number of lanes for so many cells: a power of two, so that few widths are ever compiled, and not one."""
    return max(NARROWEST, 1 << max(cells - 1, 0).bit_length())


def _descending(cell: Cell) -> Descending:
    assert isinstance(cell.trial, Descending)
    return cell.trial
