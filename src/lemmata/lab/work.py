"""One chunk of cells to its outcomes: pure, what a worker executes."""

import time
import traceback
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from lemmata import guard
from lemmata.lab.segment import STORABLE
from lemmata.lab.source import trial_digest
from lemmata.loop import Lanes, fill, lane_records, read, run_block
from lemmata.status import CAPPED, CONVERGED, FAILED, RUNNING
from lemmata.sweep import Cell
from lemmata.trial import Computed, Descending, random_key, with_precision


@dataclass(frozen=True)
class Chunk:
    """Cells of one bucket that run together, `width` of them at a time. `source` is the digest of their code as the driver
    knows it; a worker that finds other code refuses."""

    cells: tuple[Cell, ...]
    width: int
    source: str = ""

    def __len__(self) -> int:
        return len(self.cells)

    def split(self) -> list["Chunk"]:
        """Two halves of the same width, so that numbers do not depend on how often a chunk was lost."""
        middle = len(self.cells) // 2
        halves = (self.cells[:middle], self.cells[middle:])
        return [replace(self, cells=half) for half in halves if half]


@dataclass(frozen=True)
class Outcome:
    """What became of one cell: its record, or the reason why there is none. `source` is the digest of the code that ran."""

    id: str
    record: Mapping[str, np.ndarray]
    seconds: float
    reason: str = ""
    traceback: str = ""
    source: str = ""


BLOCK = 512
"""Steps between two looks at which runs have stopped, when none has to be replaced before."""

COMPILE_SECONDS = 2.0
"""Fewer lanes need another compilation, which takes about this long: it is earned by having run for as long."""

OWN = ("status", "logged")
"""Names in a record that are the lab's; `steps` too where the lab counts them."""


def run_chunk(chunk: Chunk) -> list[Outcome]:
    """Carry out a chunk. A cell that cannot be carried out is an outcome too; it never takes others with it."""
    guard.check()
    trial = chunk.cells[0].trial
    source = chunk.source or trial_digest(trial)
    if type(trial).__module__ != "__main__" and trial_digest(trial) != source:
        error = RuntimeError("the code of this trial was changed while the sweep was running; run it again.")
        return [failure(cell, error, source) for cell in chunk.cells]
    with guard.double():
        return _run_or_halve(replace(chunk, source=source))


def failure(cell: Cell, error: BaseException, source: str, seconds: float = 0.0) -> Outcome:
    """The outcome of a cell that could not be carried out."""
    told = "".join(traceback.format_exception(error)) if error.__traceback__ else ""
    return Outcome(cell.id, nothing(), seconds, f"{type(error).__name__}: {error}", told, source)


def nothing() -> dict[str, np.ndarray]:
    """The record of a cell that failed."""
    return {"status": np.asarray(FAILED, np.int32), "steps": np.asarray(0, np.int32)}


def _run_or_halve(chunk: Chunk) -> list[Outcome]:
    """Where a chunk fails, find out which cells are at fault."""
    began = time.perf_counter()
    try:
        return _run(chunk)
    except Exception as error:
        if len(chunk.cells) == 1:
            return [failure(chunk.cells[0], error, chunk.source, time.perf_counter() - began)]
        return [outcome for half in chunk.split() for outcome in _run_or_halve(half)]


def _run(chunk: Chunk) -> list[Outcome]:
    kind = chunk.cells[0].trial
    if isinstance(kind, Computed):
        return [_compute(cell, chunk.source) for cell in chunk.cells]
    if isinstance(kind, Descending):
        return _run_lanes(chunk)
    raise TypeError(f"{type(kind).__name__} is neither Descending nor Computed.")


def _compute(cell: Cell, source: str) -> Outcome:
    trial = cell.trial
    assert isinstance(trial, Computed)
    began = time.perf_counter()
    try:
        found = trial.compute(random_key(trial, cell.seed))
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
        if not isinstance(name, str) or not name or "/" in name or name.startswith("."):
            raise ValueError(f"{name!r} cannot be the name of a variable.")
        if name in own:
            raise ValueError(f"the name '{name}' in a record is the lab's own.")
        try:
            kind = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
        except ValueError as error:
            raise ValueError(f"variable '{name}' is not an array: {error}") from None
        if np.dtype(kind) not in STORABLE:
            raise TypeError(f"variable '{name}' has type {kind}, which is not stored; give numbers.")


def _run_lanes(chunk: Chunk) -> list[Outcome]:
    """Run Descending cells in lanes: a lane whose run has stopped is refilled; towards the end idle lanes are dropped."""
    waiting = deque(chunk.cells)
    occupants: list[Cell | None] = [None] * chunk.width
    lanes: Lanes | None = None
    outcomes: list[Outcome] = []
    logged = np.asarray(_descending(chunk.cells[0]).log_steps, np.int64)
    last_harvest = last_compiled = time.perf_counter()
    while waiting or any(occupants):
        if lanes is None or (waiting and not all(occupants)):
            lanes, occupants = _refill(lanes, occupants, waiting)
            if not outcomes:
                kept = jax.eval_shape(read, lanes, jnp.ones(chunk.width, bool))
                _require_storable(
                    {**kept, **{n: v for kind in lanes.tracks for n, v in kind.items()}}, (*OWN, "steps")
                )
        most, spare = (jnp.asarray(n, jnp.int32) for n in (BLOCK, len(occupants) // 2 if waiting else 0))
        ran: Lanes = run_block(lanes, most, spare)
        status = np.asarray(ran.status)
        stopped = [i for i, cell in enumerate(occupants) if cell is not None and status[i] != RUNNING]
        now = time.perf_counter()
        if stopped:
            records = lane_records(ran, jnp.asarray([i in stopped for i in range(len(occupants))]))
            share = (now - last_harvest) / len(stopped)
            for i in stopped:
                cell, occupants[i] = occupants[i], None
                assert cell is not None
                record = {name: np.asarray(value[i]) for name, value in records.items()} | {"logged": logged}
                outcomes.append(Outcome(cell.id, record, share, source=chunk.source))
            last_harvest = now
        busy = sum(cell is not None for cell in occupants)
        lanes = ran
        if not waiting and 0 < busy <= len(occupants) // 2 and now - last_compiled > COMPILE_SECONDS:
            lanes, occupants = _drop_idle(ran, occupants)
            last_compiled = now
    return outcomes


def _refill(
    lanes: Lanes | None, occupants: list[Cell | None], waiting: deque[Cell]
) -> tuple[Lanes, list[Cell | None]]:
    """Start waiting cells in the empty lanes; lanes that stay empty are marked as stopped."""
    empty = [i for i, cell in enumerate(occupants) if cell is None][: len(waiting)]
    occupants = [waiting.popleft() if i in empty else cell for i, cell in enumerate(occupants)]
    fresh = [i in empty for i in range(len(occupants))]
    some = next(cell for cell in occupants if cell is not None)
    cells = [cell or some for cell in occupants]
    trials = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(with_precision(_descending(c)) for c in cells))
    keys = jnp.stack([random_key(c.trial, c.seed) for c in cells])
    started: Lanes = fill(trials, keys, lanes, jnp.asarray(fresh))
    vacant = jnp.asarray([cell is None for cell in occupants])
    return started._replace(status=jnp.where(vacant, CAPPED, started.status)), occupants


def _drop_idle(lanes: Lanes, occupants: list[Cell | None]) -> tuple[Lanes, list[Cell | None]]:
    """Keep only the lanes that still run, rounded up to a power of two so that few widths are ever compiled."""
    busy = [i for i, cell in enumerate(occupants) if cell is not None]
    idle = [i for i, cell in enumerate(occupants) if cell is None]
    width = 1 << (len(busy) - 1).bit_length()
    kept = (busy + idle)[:width]
    return jax.tree.map(lambda leaf: leaf[jnp.asarray(kept)], lanes), [occupants[i] for i in kept]


def _descending(cell: Cell) -> Descending:
    assert isinstance(cell.trial, Descending)
    return cell.trial
