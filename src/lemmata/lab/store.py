"""Where records are kept: a Zarr group with one row a cell, an sqlite ledger that says which rows count, a manifest.

Only the driver writes. The ledger is written after the rows, so a row without an entry is a row that never was.
"""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from lemmata.errors import BadInput
from lemmata.lab.work import Outcome
from lemmata.results import Rows
from lemmata.status import STATUS

ROWS = 256
LEDGER = """
create table if not exists cells (
    id text primary key, row integer not null, status text not null, reason text not null,
    seconds real not null, width integer not null, finished real not null)
"""


class Store:
    """The results of a figure on disk. Opening one for reading never creates anything."""

    def __init__(self, path: Path | str):
        self.path = Path(path)

    # Reading ---------------------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        return (self.path / "ledger.sqlite").exists()

    @property
    def manifest(self) -> dict[str, Any]:
        """What was run here and how to run it again."""
        try:
            return json.loads((self.path / "manifest.json").read_text())
        except FileNotFoundError:
            raise BadInput(f"'{self.path}' is not a store of results: it has no manifest.json.") from None

    def entries(self) -> dict[str, dict[str, Any]]:
        """The ledger: every finished cell by its identity."""
        if not self.exists:
            return {}
        with self._ledger() as ledger:
            rows = ledger.execute(
                "select id, row, status, reason, seconds, width, finished from cells"
            ).fetchall()
        names = ("row", "status", "reason", "seconds", "width", "finished")
        return {id: dict(zip(names, rest, strict=True)) for id, *rest in rows}

    def done(self) -> set[str]:
        """The cells that need not be run again: all that gave a record, diverged or not."""
        return {id for id, entry in self.entries().items() if entry["status"] != "failed"}

    def reasons(self) -> list[str]:
        """Why cells failed, each reason once."""
        return sorted({entry["reason"] for entry in self.entries().values() if entry["reason"]})

    def problems(self) -> list[str]:
        """What is wrong with the store, one sentence each: rows that the ledger names and the records lack."""
        entries = self.entries()
        rows = [entry["row"] for entry in entries.values() if entry["status"] != "failed"]
        found = [] if len(set(rows)) == len(rows) else ["two cells of the ledger share a row of the records."]
        last = max(rows, default=-1)
        for name, array in self._arrays():
            if array.shape[0] <= last and name in ("status", "steps"):
                found.append(
                    f"records of '{name}' end at row {array.shape[0] - 1}, but the ledger names row {last}."
                )
        statuses = dict(self._arrays()).get("status")
        if rows and statuses is None:
            return [*found, "the ledger names cells, but there are no records."]
        if statuses is not None:
            kept = np.nan_to_num(np.asarray(statuses[:]), nan=0).astype(int)
            for id, entry in entries.items():
                if entry["row"] < len(kept) and STATUS[kept[entry["row"]]] != entry["status"]:
                    found.append(f"cell {id} is '{entry['status']}' in the ledger, but not in its record.")
        return found

    def read(self, ids: Sequence[str]) -> Rows:
        """The records of these cells, as far as they are there."""
        entries = self.entries()
        found = [i for i, id in enumerate(ids) if id in entries and entries[id]["status"] != "failed"]
        rows = np.asarray([entries[ids[i]]["row"] for i in found], int)
        values = {name: np.asarray(array[:])[rows] for name, array in self._arrays()} if found else {}
        return Rows(np.asarray(found, int), values)

    # Writing ---------------------------------------------------------------------------------------------------------

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Make the folder ready and note what is about to be run."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            writable = os.access(self.path, os.W_OK)
        except OSError as error:
            raise BadInput(f"cannot write results to '{self.path}': {error.strerror}.") from None
        if not writable:
            raise BadInput(f"cannot write results to '{self.path}': the folder is not writable.")
        (self.path / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
        with self._ledger() as ledger:
            ledger.execute(LEDGER)

    def write(self, outcomes: Iterable[Outcome], width: int) -> None:
        """Append the records of a chunk, then enter them in the ledger."""
        outcomes = list(outcomes)
        with self._ledger() as ledger:
            (first,) = ledger.execute("select coalesce(max(row), -1) + 1 from cells").fetchone()
            group = zarr.open_group(self.path / "records.zarr", mode="a")
            for name in sorted({name for outcome in outcomes for name in outcome.record}):
                _append(group, name, first, [outcome.record.get(name) for outcome in outcomes])
            now = time.time()
            ledger.executemany(
                "insert or replace into cells values (?, ?, ?, ?, ?, ?, ?)",
                [
                    (o.id, first + i, STATUS[int(o.record["status"])], o.reason, o.seconds, width, now)
                    for i, o in enumerate(outcomes)
                ],
            )

    @contextlib.contextmanager
    def _ledger(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path / "ledger.sqlite")
        try:
            with connection:
                yield connection
        finally:
            connection.close()

    def _arrays(self) -> list[tuple[str, zarr.Array]]:
        if not (self.path / "records.zarr").exists():
            return []
        group = zarr.open_group(self.path / "records.zarr", mode="r")
        return sorted(group.arrays())  # pyright: ignore[reportReturnType]


def _append(group: zarr.Group, name: str, first: int, values: list[np.ndarray | None]) -> None:
    """Put values into the rows from `first` on; arrays grow where a record is larger than those before it."""
    some = next(value for value in values if value is not None)
    dtype = some.dtype if some.dtype in (np.float32, np.float64) else np.dtype(np.float64)
    shape = np.max([value.shape for value in values if value is not None], axis=0).astype(int)
    if name not in group:
        chunks = (max(1, ROWS // max(1, int(np.prod(shape)) // 256)), *(max(int(n), 1) for n in shape))
        group.create_array(name, shape=(0, *shape), chunks=chunks, dtype=dtype, fill_value=np.nan)
    array = group[name]
    assert isinstance(array, zarr.Array)
    grown = np.maximum(array.shape[1:], shape).astype(int)
    array.resize((first + len(values), *map(int, grown)))
    block = np.full((len(values), *grown), np.nan, array.dtype)
    for i, value in enumerate(values):
        if value is not None:
            block[(i, *(slice(n) for n in value.shape))] = value
    array[first:] = block
