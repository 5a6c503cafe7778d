"""Where outcomes are kept: segments of rows that are written once, a ledger that says which there should be, a manifest.

The segments are the truth. Each is written under a temporary name, flushed and renamed, so that it is there whole or not at
all; its name holds a checksum of its bytes, and every row one of its own. The ledger is written after the rows and is never
believed over them: it only tells what was lost. Small segments are merged into larger ones as they come, so that a store of
a million cells is still a few files. Only the driver writes, under a lock that dies with its process.
"""

import contextlib
import errno
import fcntl
import os
import re
import socket
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lemmata.errors import BadInput
from lemmata.lab import segment as seg
from lemmata.lab.disk import Damaged, replace_file, sealed_page, unsealed_page
from lemmata.lab.ledger import Ledger
from lemmata.lab.outcome import Outcome, nothing
from lemmata.lab.segment import Segment
from lemmata.status import FAILED, STATUS

FAN = 16
SIZES = (1 << 16, 1 << 20, 1 << 22)
"""When there are `FAN` segments below one of these sizes in bytes (and not below the one before), they are merged. So a row
is written a few times at most, and files stay few."""

LEDGER_LINES = 100
"""The ledger is shortened when a run starts and it has so many lines more than it needs."""

PATIENCE = 20
"""How often a reader looks again when segments are merged under its eyes."""

LONGEST_PATH = 1000
"""Characters of a path; systems allow a few thousand."""

NAME = re.compile(r"(\d{9,})-[0-9a-f]{8}" + re.escape(seg.SUFFIX))
T = TypeVar("T")


class Entry(NamedTuple):
    """What is known of a stored cell. `source` is the digest of the trial's code, `versions` what it ran with."""

    status: str
    reason: str
    traceback: str
    seconds: float
    width: int
    finished: float
    source: str
    versions: Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """Records by variable: `values[name][k]` belongs to the cell `ids[found[k]]` that was asked for.

    Where records differ in size, or lack a variable, the rest is NaN.
    """

    found: np.ndarray
    values: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class _Looked:
    """A segment as it was found: its whole rows, whether something is wrong with it, and the cells that this harms."""

    segment: Segment
    damaged: bool = False
    harmed: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Known:
    """What is remembered of a segment that was looked at."""

    stamp: tuple[int, int]
    index: np.ndarray
    origins: Mapping[int, Mapping[str, Any]]
    ranks: Mapping[str, int]
    damaged: bool
    harmed: tuple[int, ...]


class _Changed(Exception):
    """A segment is not any more what it was."""


class Store:
    """The results of a sweep on disk. Opening one for reading never creates anything."""

    def __init__(self, path: Path | str):
        words = str(path)
        if "\0" in words or len(words) > LONGEST_PATH:
            raise BadInput(f"{words[:40]!r} cannot be the name of a folder.")
        self.path = Path(path)
        self._segments = self.path / "segments"
        self._ledger = Ledger(self.path / "ledger.txt")
        self._known: dict[str, _Known] = {}
        self._lock: int | None = None
        self._held = 0
        self._origin: dict[str, Any] = {}
        self._started = False

    # Reading ---------------------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        return os.path.isdir(self._segments)  # unlike Path.is_dir, never raises

    @property
    def manifest(self) -> dict[str, Any]:
        """What was run here and how to run it again."""
        path = self.path / "manifest.json"
        way_out = f"; mend it with: lemmata repair {self.path}" if self.exists else "."
        try:
            return unsealed_page(path.read_bytes())
        except FileNotFoundError:
            if self.exists:
                raise BadInput(f"'{path}' is gone{way_out}") from None
            raise BadInput(f"'{self.path}' is not a store of results: it has no manifest.json.") from None
        except OSError as error:
            raise BadInput(f"cannot read '{path}': {error.strerror}.") from None
        except Damaged as damage:
            raise BadInput(f"'{path}' is {damage}{way_out}") from None

    def entries(self, sources: Collection[str] | None = None) -> dict[str, Entry]:
        """Every stored cell by its identity; with `sources`, only what was made by code of these digests."""
        return self._steadily(lambda: self._entries(sources))

    def done(self, sources: Collection[str] | None = None) -> set[str]:
        """The cells that need not be run again: all whose rows are whole and give a record, diverged or not.

        With `sources`, only rows that were made by code of one of these digests count.
        """
        return {f"{id:016x}" for id in self.finished(sources).tolist()}

    def finished(self, sources: Collection[str] | None = None) -> np.ndarray:
        """The same, as numbers: for many cells."""
        rows, _ = self._steadily(lambda: self._latest(sources))
        return rows["id"][rows["status"] != FAILED]

    def counts(
        self, sources: Collection[str] | None = None, ids: Collection[str] | np.ndarray | None = None
    ) -> dict[str, int]:
        """How many cells (of these, if some are given) there are of each status, at once."""
        rows, _ = self._steadily(lambda: self._latest(sources))
        statuses = rows["status"] if ids is None else rows["status"][seg.among(rows["id"], seg.numbers(ids))]
        numbers = np.bincount(statuses, minlength=len(STATUS)).tolist()
        return {word: number for word, number in zip(STATUS, numbers, strict=True) if number}

    def reasons(self) -> set[str]:
        """Why cells failed."""
        return self._steadily(self._reasons)

    def read(self, ids: Sequence[str] | np.ndarray, sources: Collection[str] | None = None) -> Rows:
        """The records of cells, as far as they are there (and were made by code of these digests)."""
        return self._steadily(lambda: self._rows(seg.numbers(ids), sources))

    def problems(self) -> list[str]:
        """What is wrong with the store, one sentence each, damaged cells by name. Reads every byte."""
        found = []
        try:
            _ = self.manifest
        except BadInput as error:
            found.append(str(error))
        told = self._reading(self._ledger.read)
        found += [f"line {number} of the ledger is damaged." for number in told.damaged]
        self._known.clear()
        names = self._steadily(self._look)
        held = {id for known in self._known.values() for id in known.index["id"].tolist()}
        for name in names:
            known = self._known[name]
            if known.damaged:
                cells = told.segments.get(name, known.harmed)
                found.append(_lost(f"segment {name} is damaged", cells, held))
            if name not in told.segments:
                found.append(f"segment {name} is not in the ledger.")
        for name, cells in told.segments.items():
            if name not in names:
                found.append(_lost(f"segment {name} is gone", cells, held))
        return found

    def _reasons(self) -> set[str]:
        rows, names = self._latest(None)
        found: set[str] = set()
        for name, places, _ in _by_segment(rows, names):
            failed = places[self._known[name].index["reason"][places] > 0]
            whole = self._load(name) if len(failed) else None
            found |= {whole.text(place)[0] for place in failed.tolist()} if whole is not None else set()
        return found

    def _entries(self, sources: Collection[str] | None) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        rows, names = self._latest(sources)
        for name, places, _ in _by_segment(rows, names):
            known = self._known[name]
            index = known.index[places]
            whole = self._load(name) if np.any(index["reason"]) else None
            for place, told in zip(places.tolist(), index.tolist(), strict=True):
                entry = dict(zip(seg.INDEX.names or (), told, strict=True))
                origin = known.origins[entry["origin"]]
                reason, traceback = whole.text(place) if whole is not None else ("", "")
                found[f"{entry['id']:016x}"] = Entry(
                    status=STATUS[entry["status"]],
                    reason=reason,
                    traceback=traceback,
                    seconds=entry["seconds"],
                    width=entry["width"],
                    finished=entry["finished"],
                    source=origin.get("source", ""),
                    versions=origin.get("versions", {}),
                )
        return found

    def _rows(self, wanted: np.ndarray, sources: Collection[str] | None) -> Rows:
        rows, names = self._latest(sources)
        rows = rows[np.argsort(rows["id"])]
        at = np.searchsorted(rows["id"], wanted)
        at[at == len(rows)] = 0
        found = np.flatnonzero(rows["id"][at] == wanted) if len(rows) else np.zeros(0, int)
        pieces: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for name, places, which in _by_segment(rows[at[found]], names):
            for variable, piece in _pieces(self._load(name), places, which):
                pieces.setdefault(variable, []).append(piece)
        return Rows(found, {name: _padded(len(found), pieces[name]) for name in sorted(pieces)})

    def _latest(self, sources: Collection[str] | None) -> tuple[np.ndarray, list[str]]:
        """The latest row of every cell (id, status, segment, place in it), and the names of the segments."""
        kind = [("id", "u8"), ("status", "i4"), ("write", "i8"), ("segment", "i4"), ("place", "i8")]
        parts = [np.zeros(0, kind)]
        names = self._look()
        for number, name in enumerate(names):
            index, origins = self._known[name].index, self._known[name].origins
            right = [key for key, o in origins.items() if sources is None or o.get("source") in sources]
            places = np.flatnonzero(np.isin(index["origin"], right))
            part = np.zeros(len(places), kind)
            for field in ("id", "status", "write"):
                part[field] = index[field][places]
            part["segment"], part["place"] = number, places
            parts.append(part)
        every = np.concatenate(parts)
        return every[seg.latest(every)], names

    def _look(self) -> list[str]:
        """The names of all segments, each looked at once as long as it does not change."""
        names = self._names()
        self._known = {name: self._know(name) for name in names}
        return names

    def _names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._segments) if NAME.fullmatch(name))
        except FileNotFoundError:
            return []

    def _know(self, name: str) -> _Known:
        stat = (self._segments / name).stat()
        stamp = (stat.st_size, stat.st_mtime_ns)
        known = self._known.get(name)
        if known is not None and known.stamp == stamp:
            return known
        found = self._examine(name)
        whole = found.segment
        ranks = {name: len(shape) for block in whole.blocks for name, _, shape in block.signature}
        return _Known(stamp, whole.index, whole.origins, ranks, found.damaged, found.harmed)

    def _load(self, name: str) -> Segment:
        """The whole rows of a segment that is known."""
        found = self._examine(name)
        if (found.damaged, found.harmed) != (self._known[name].damaged, self._known[name].harmed):
            del self._known[name]  # damaged without a trace in its date
            raise _Changed
        return found.segment

    def _examine(self, name: str) -> _Looked:
        data = (self._segments / name).read_bytes()
        right = name.endswith(f"-{zlib.crc32(data):08x}{seg.SUFFIX}")
        try:
            whole = seg.decode(data)
        except Damaged as damage:
            if right:
                sentence = f"'{self.path}' was written by another version of the lab ({damage})."
                raise BadInput(sentence) from None
            return _Looked(seg.gather(()), damaged=True)
        if right:
            return _Looked(whole)
        intact = whole.intact()
        harmed = tuple(whole.index["id"][~intact].tolist())
        return _Looked(seg.select(whole, np.flatnonzero(intact)), True, harmed)

    def _steadily(self, read: Callable[[], T]) -> T:
        """Read; again from the beginning where segments were merged in the meantime, by a driver at work."""
        for _ in range(PATIENCE):
            with contextlib.suppress(FileNotFoundError, _Changed):
                return self._reading(read)
        raise BadInput(f"'{self.path}' changes faster than it can be read.")

    def _reading(self, read: Callable[[], T]) -> T:
        """What the disk refuses, as one sentence."""
        try:
            return read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise BadInput(f"cannot read '{self.path}': {error.strerror or error}.") from None

    # Writing ---------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: a second driver is refused. The lock is the operating system's and ends with the process."""
        if self._held == 0:
            with self._writing():
                self._old_manifest()  # nothing is written into somebody else's folder, not even a lock
                self.path.mkdir(parents=True, exist_ok=True)
                self._lock = _lock(self.path)
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if self._held == 0 and self._lock is not None:
                os.ftruncate(self._lock, 0)
                os.close(self._lock)
                self._lock = None

    def create(self, manifest: Mapping[str, Any], cells: np.ndarray | None = None) -> None:
        """Make the folder ready and note what is about to be run.

        The time of the first start is kept, and every start is added to a history with its versions. What is damaged is
        mended first: rows that are whole are kept, others will be missing. What workers left in the spool is taken in.
        If no other rows are here than those of these `cells`, the manifest says that they are `alone`.
        """
        with self.locked(), self._writing():
            old = self._old_manifest()
            self._segments.mkdir(exist_ok=True)
            self._mend()
            start = {key: manifest[key] for key in ("command", "versions", "platform") if key in manifest}
            start["at"] = manifest.get("started", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
            before = _starts(old)
            starts = before if before and self._started else [*before, start]
            self._origin = {key: manifest[key] for key in ("versions", "platform") if key in manifest}
            for path in sorted((self.path / "spool" / "done").glob(f"*{seg.SUFFIX}")):
                for width, outcomes in seg.left_in(path).items():
                    self.write(outcomes, width)
                path.unlink(missing_ok=True)
            new = {**manifest, "started": starts[0]["at"], "starts": starts}
            if cells is not None:
                new["alone"] = bool(np.all(seg.among(self._latest(None)[0]["id"], cells)))
            if new != old:
                replace_file(self.path / "manifest.json", sealed_page(new))
                self._ledger.add_manifest(new)
            self._started = True

    def write(self, outcomes: Iterable[Outcome], width: int) -> None:
        """Keep outcomes: when this returns, they are on the disk."""
        with self.locked(), self._writing():
            number = 1 + max(map(_number, self._look()), default=0)
            ranks = {name: rank for known in self._known.values() for name, rank in known.ranks.items()}
            kept = [_of_one_rank(outcome, ranks) for outcome in outcomes]
            if kept:
                origins = {source: {**self._origin, "source": source} for source in {o.source for o in kept}}
                rows = (seg.row(outcome, number, width, origins[outcome.source]) for outcome in kept)
                self._keep(seg.gather(rows), number)
                self._merge()

    def repair(self) -> list[str]:
        """Rebuild what is damaged from what is whole; returns what was done, one sentence each."""
        if not self.exists:
            raise BadInput(f"'{self.path}' is not a store of results.")
        with self.locked(), self._writing():
            done = self._mend()
            try:
                _ = self.manifest
            except BadInput:
                copy = self._ledger.read().manifest
                if not copy:
                    raise BadInput(
                        f"the manifest of '{self.path}' is lost, and the ledger has no copy of it; "
                        f"run the same figure with --out {self.path} again: its rows will be found."
                    ) from None
                replace_file(self.path / "manifest.json", sealed_page(copy))
                done.append("the manifest was written again from the ledger.")
            return done

    def _keep(self, segment: Segment, number: int, replaces: Sequence[str] = ()) -> None:
        data = seg.encode(segment)
        name = f"{number:09d}-{zlib.crc32(data):08x}{seg.SUFFIX}"
        replace_file(self._segments / name, data)
        self._ledger.add_segment(name, segment.index["id"], replaces)
        for old in set(replaces) - {name}:
            (self._segments / old).unlink(missing_ok=True)

    def _merge(self) -> None:
        classes: dict[int, list[str]] = {}
        for name in self._look():
            size = self._known[name].stamp[0]
            classes.setdefault(sum(size >= bound for bound in SIZES), []).append(name)
        for level in range(len(SIZES)):
            names = classes.get(level, [])
            if len(names) >= FAN:
                found = [self._examine(name) for name in names]
                if not any(one.damaged for one in found):  # else they are left to be mended
                    merged = seg.merge([one.segment for one in found])
                    self._keep(merged, max(map(_number, names)), names)

    def _mend(self) -> list[str]:
        """Save what is whole in damaged segments, take in segments that the ledger does not know, forget lost ones."""
        done = []
        for left in (*self.path.glob("*.tmp"), *self._segments.glob("*.tmp")):
            left.unlink(missing_ok=True)
        for name in [name for name in self._look() if self._known[name].damaged]:
            whole = self._examine(name).segment
            if len(whole.index):
                self._keep(whole, _number(name), [name])
            else:
                (self._segments / name).unlink(missing_ok=True)
            done.append(f"segment {name} was damaged; its {len(whole.index)} whole rows are kept.")
        told, names = self._ledger.read(), self._look()
        wrong = bool(told.damaged) or set(told.segments) != set(names)
        if wrong or told.lines > len(names) + LEDGER_LINES:
            segments = ((name, self._known[name].index["id"]) for name in names)
            self._ledger.write_again(self._old_manifest(), segments)
        return [*done, "the ledger was written again from the rows."] if wrong else done

    def _old_manifest(self) -> Mapping[str, Any]:
        """The manifest that is there, empty for a new folder; refuses a folder that is somebody else's."""
        path = self.path / "manifest.json"
        if os.path.exists(self.path / "ledger.sqlite"):
            raise BadInput(
                f"'{self.path}' holds results of an earlier version of the lab; choose another folder."
            )
        try:
            return unsealed_page(path.read_bytes())
        except FileNotFoundError:
            return self._ledger.read().manifest
        except Damaged as damage:
            if self.exists:
                return self._ledger.read().manifest
            raise BadInput(f"'{path}' is {damage}; choose another folder for the results.") from None

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """What the disk refuses, as one sentence."""
        try:
            yield
        except OSError as error:
            said = f"cannot write results to '{self.path}': {error.strerror or error}"
            hints = {errno.ENOSPC: "free some space and run again", errno.ENOENT: "run again when it is back"}
            hint = f": {hints[error.errno]}" if error.errno in hints else ""
            raise BadInput(f"{said}; what was finished is kept{hint}.") from None


def _lock(path: Path) -> int:
    lock = os.open(path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        return lock
    except BlockingIOError:
        holder = os.pread(lock, 200, 0).decode(errors="replace").strip() or "another process"
        os.close(lock)
        sentence = f"'{path}' is being written to by {holder}; wait for it, or choose another folder."
        raise BadInput(sentence) from None
    except OSError:
        os.close(lock)
        raise


def _starts(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The history of a manifest; what is no start of a run is dropped, for anybody could have written it."""
    told = manifest.get("starts")
    return [one for one in told if isinstance(one, dict) and "at" in one] if isinstance(told, list) else []


def _number(name: str) -> int:
    return int(name.partition("-")[0])


def _lost(what: str, cells: Iterable[int], held: set[int]) -> str:
    """A sentence about the cells of a segment that is not there or not right."""
    lost = [f"{id:016x}" for id in cells if id not in held]
    return f"{what}; lost cells: {', '.join(lost)}." if lost else f"{what}; no cell is lost."


def _of_one_rank(outcome: Outcome, ranks: dict[str, int]) -> Outcome:
    """The outcome, or a failure where a variable has another number of dimensions than in the cells before."""
    for name, value in outcome.record.items():
        if ranks.setdefault(name, value.ndim) != value.ndim:
            reason = f"variable '{name}' has {value.ndim} dimensions here and {ranks[name]} in other cells."
            return replace(outcome, record=nothing(), reason=reason)
    return outcome


def _by_segment(rows: np.ndarray, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Segment by segment: its name, places in it, and which of the rows these are."""
    order = np.argsort(rows["segment"], kind="stable")
    ends = np.searchsorted(rows["segment"][order], np.arange(len(names) + 1))
    for number in np.flatnonzero(np.diff(ends)).tolist():
        mine = order[ends[number] : ends[number + 1]]
        yield names[number], rows["place"][mine], mine


def _pieces(
    whole: Segment, places: np.ndarray, which: np.ndarray
) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """For every variable of the chosen cells: the rows of the result that they go to, and their values."""
    for block, start in zip(whole.blocks, whole.starts, strict=True):
        inside = np.flatnonzero((places >= start) & (places < start + block.rows))
        if len(inside):
            for name, array in block.arrays.items():
                yield name, (which[inside], array[places[inside] - start])


def _padded(count: int, pieces: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Pieces put together; as they came where all are of one size and none is missing, else with NaN in the gaps."""
    shape = tuple(np.max([values.shape[1:] for _, values in pieces], axis=0).astype(int))
    dtype = np.result_type(*(values.dtype for _, values in pieces))
    gaps = sum(len(which) for which, _ in pieces) < count
    if (gaps or any(values.shape[1:] != shape for _, values in pieces)) and dtype.kind not in "fc":
        dtype = np.dtype(np.float64)
    out = np.full((count, *shape), np.nan if dtype.kind in "fc" else 0, dtype)
    for which, values in pieces:
        out[(which, *(slice(n) for n in values.shape[1:]))] = values
    return out
