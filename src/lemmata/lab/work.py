"""One chunk of cells to its records: pure, what a worker executes."""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from lemmata.guard import check, double
from lemmata.loop import Lanes, fill, lane_records, run_block
from lemmata.status import CAPPED, CONVERGED, FAILED, RUNNING
from lemmata.sweep import Cell
from lemmata.trial import Computed, Descending, Trial, random_key, with_precision


@dataclass(frozen=True)
class Chunk:
    """Cells of one bucket that run together, `width` of them at a time."""

    cells: tuple[Cell, ...]
    width: int


@dataclass(frozen=True)
class Outcome:
    """What became of one cell: its record, or the reason why there is none."""

    id: str
    record: Mapping[str, np.ndarray]
    seconds: float
    reason: str = ""


BLOCK = 512
"""Steps between two looks at which runs have stopped, when none has to be replaced before."""

COMPILE_SECONDS = 2.0
"""Fewer lanes need another compilation, which takes about this long: it is earned by having run for as long."""


def run_chunk(chunk: Chunk) -> list[Outcome]:
    """Carry out a chunk. A cell that cannot be carried out is an outcome too; it never takes others with it."""
    check()
    try:
        with double():
            return _run(chunk.cells, chunk.width)
    except Exception as error:
        if len(chunk.cells) == 1:
            return [failure(cell, error) for cell in chunk.cells]
        # Find out which cells are at fault.
        return [outcome for cell in chunk.cells for outcome in run_chunk(Chunk((cell,), 1))]


def failure(cell: Cell, error: Exception) -> Outcome:
    """The outcome of a cell that could not be carried out."""
    record = {"status": np.asarray(FAILED), "steps": np.asarray(0)}
    return Outcome(cell.id, record, 0.0, f"{type(error).__name__}: {error}")


def _run(cells: Sequence[Cell], width: int) -> list[Outcome]:
    kind = cells[0].trial
    if isinstance(kind, Computed):
        return [_compute(cell, cell.trial) for cell in cells]
    assert isinstance(kind, Descending)
    return _run_lanes(cells, width)


def _compute(cell: Cell, trial: Trial) -> Outcome:
    assert isinstance(trial, Computed)
    began = time.perf_counter()
    record = {name: np.asarray(value) for name, value in trial.compute(random_key(trial, cell.seed)).items()}
    record = {"status": np.asarray(CONVERGED), "steps": np.asarray(0)} | record
    return Outcome(cell.id, record, time.perf_counter() - began)


def _run_lanes(cells: Sequence[Cell], width: int) -> list[Outcome]:
    """Run Descending cells in lanes: a lane whose run has stopped is refilled; towards the end idle lanes are dropped."""
    waiting = deque(cells)
    occupants: list[Cell | None] = [None] * width
    lanes: Lanes | None = None
    outcomes: list[Outcome] = []
    last_harvest = last_compiled = time.perf_counter()
    while waiting or any(occupants):
        if lanes is None or (waiting and not all(occupants)):
            lanes, occupants = _refill(lanes, occupants, waiting)
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
                outcomes.append(Outcome(cell.id, {name: value[i] for name, value in records.items()}, share))
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
