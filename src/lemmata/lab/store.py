"""Stores outcomes on disk: segments of rows that are written once, a ledger that lists the segments, and a manifest.

The segments are authoritative. Each is written under a temporary name, flushed and renamed, so that it is never partial.
Its name holds a checksum of its bytes, and every row has its own checksum. The ledger is written after the rows and only
serves to report what was lost. Copies of the manifest are in the ledger and in every segment, so that a store can be rebuilt
from its segments alone. Small segments are merged into larger ones, so that a store of a million cells has few files. Only
the driver writes. It holds a lock that the system releases when its process ends.
"""

import contextlib
import errno
import os
import re
import time
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from lemmata.errors import BadInput
from lemmata.lab import segment as seg
from lemmata.lab.disk import (
    LARGEST_PAGE,
    Damaged,
    lock_folder,
    read_at_most,
    replace_file,
    sealed_page,
    unsealed_page,
)
from lemmata.lab.ledger import Ledger
from lemmata.lab.manifest import copied, same, starts_in
from lemmata.lab.outcome import Outcome, of_one_rank, origin_in
from lemmata.lab.padding import padded
from lemmata.lab.segment import Segment
from lemmata.rows import Rows
from lemmata.status import FAILED, STATUS

MERGE_COUNT = 16
"""Segments of one size class are merged when there are so many of them."""

MERGE_SIZES = (1 << 16, 1 << 20, 1 << 22)
"""The upper bounds of the size classes, in bytes. A row is rewritten at most once a class."""

LEDGER_LINES = 100
"""The ledger is rewritten at the start of a run if it has this many lines more than it needs."""

MAX_READS = 20
"""A reader tries this often while a driver merges the segments that it reads."""

MAX_PATH_LENGTH = 1000
"""The largest number of characters in a path; systems allow a few thousand."""

SEGMENT_NAME = re.compile(r"(\d{9,})-[0-9a-f]{8}" + re.escape(seg.SUFFIX))
T = TypeVar("T")


class Entry(NamedTuple):
    """What the index of a store says about a cell.

    `status`: the name of its status.
    `reason`: why it failed, or empty.
    `traceback`: the traceback of the failure, or empty.
    `seconds`: the time that it took.
    `width`: the number of lanes of its chunk.
    `finished`: the time of writing, in seconds since 1970.
    `source`: the digest of the code of the trial.
    `versions`: the versions of the packages that it ran with.
    """

    status: str
    reason: str
    traceback: str
    seconds: float
    width: int
    finished: float
    source: str
    versions: Mapping[str, Any]


@dataclass(frozen=True)
class _Examined:
    """The result of reading a segment: its intact rows, whether it is damaged, and the cells that it lost."""

    segment: Segment
    damaged: bool = False
    harmed: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Known:
    """What is cached of a segment that was read."""

    stamp: tuple[int, int]
    index: np.ndarray
    origins: Mapping[int, Mapping[str, Any]]
    ranks: Mapping[str, int]
    damaged: bool
    harmed: tuple[int, ...]


class _Changed(Exception):
    """A segment has changed since it was read."""


class Store:
    """The results of a sweep on disk. Reading never creates files."""

    def __init__(self, path: Path | str):
        words = str(path)
        if "\0" in words or len(words) > MAX_PATH_LENGTH:
            raise BadInput(f"{words[:40]!r} cannot be the name of a folder.")
        self.path = Path(path)
        self._segments = self.path / "segments"
        self._ledger = Ledger(self.path / "ledger.txt")
        self._known: dict[str, _Known] = {}
        self._lock: int | None = None
        self._held = 0
        self._origin: dict[str, Any] = {}
        self._started = False
        self._copy: str | None = None

    # Reading ---------------------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        """Whether there is a store in the folder."""
        return os.path.isdir(self._segments)  # unlike Path.is_dir, never raises

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest: what was run here and how to run it again."""
        path = self.path / "manifest.json"
        hint = f"; mend it with: lemmata repair {self.path}" if self.exists else "."
        try:
            return unsealed_page(read_at_most(path, LARGEST_PAGE))
        except FileNotFoundError:
            if self.exists:
                raise BadInput(f"'{path}' is gone{hint}") from None
            raise BadInput(f"'{self.path}' is not a store of results: it has no manifest.json.") from None
        except OSError as error:
            raise BadInput(f"cannot read '{path}': {error.strerror}.") from None
        except Damaged as damage:
            raise BadInput(f"'{path}' is {damage}{hint}") from None

    @property
    def recovered_manifest(self) -> Mapping[str, Any]:
        """The manifest, or a copy of it from the ledger or the rows if the file is lost; empty if there is no copy."""
        return self._read_or_refuse(self._old_manifest)

    @property
    def sound(self) -> bool:
        """Whether manifest, ledger and segments agree and none of them is damaged."""
        ledger, names = self._read_or_refuse(self._ledger.read), self._read_consistently(self._scan)
        right = not ledger.damaged and set(ledger.segments) == set(names)
        whole = not any(known.damaged for known in self._known.values())
        return right and whole and same(self._written_manifest(), ledger.manifest)

    def entries(self, sources: Collection[str] | None = None) -> dict[str, Entry]:
        """Return every stored cell by its identity. With `sources`, only rows that code of these digests made count."""
        return self._read_consistently(lambda: self._entries(sources))

    def done(self, sources: Collection[str] | None = None) -> set[str]:
        """Return the cells that need not be run again: those with an intact row that is not a failure.

        With `sources`, only rows that code of these digests made count.
        """
        return {f"{id:016x}" for id in self.finished(sources).tolist()}

    def finished(self, sources: Collection[str] | None = None) -> np.ndarray:
        """As `done`, as an array of numbers, which is faster for many cells."""
        rows, _ = self._read_consistently(lambda: self._latest(sources))
        return rows["id"][rows["status"] != FAILED]

    def counts(
        self, sources: Collection[str] | None = None, ids: Collection[str] | np.ndarray | None = None
    ) -> dict[str, int]:
        """Return the number of cells of each status; with `ids`, only these cells count."""
        rows, _ = self._read_consistently(lambda: self._latest(sources))
        statuses = rows["status"] if ids is None else rows["status"][seg.among(rows["id"], seg.numbers(ids))]
        numbers = np.bincount(statuses, minlength=len(STATUS)).tolist()
        return {word: number for word, number in zip(STATUS, numbers, strict=True) if number}

    def reasons(self) -> set[str]:
        """Return the reasons of failed cells."""
        return self._read_consistently(self._reasons)

    def origins(self) -> dict[str, int]:
        """Return the number of rows that each origin made."""
        return self._read_consistently(self._origins)

    def read(self, ids: Sequence[str] | np.ndarray, sources: Collection[str] | None = None) -> Rows:
        """Return the stored records of these cells. With `sources`, only rows that code of these digests made count."""
        return self._read_consistently(lambda: self._rows(seg.numbers(ids), sources))

    def segment_of(self, ids: np.ndarray, sources: Collection[str]) -> Segment:
        """Return the rows of these cells that are not failures and that code of these digests made, as one segment."""
        return self._read_consistently(lambda: self._segment_of(ids, sources))

    def problems(self) -> list[str]:
        """Return what is wrong with the store, a sentence each, with the names of damaged cells. Reads every byte."""
        found = []
        ledger = self._read_or_refuse(self._ledger.read)
        try:
            if not same(ledger.manifest, self.manifest):
                found.append("the ledger has no copy of the manifest as it is now.")
        except BadInput as error:
            found.append(str(error))
        found += [f"line {number} of the ledger is damaged." for number in ledger.damaged]
        self._known.clear()
        names = self._read_consistently(self._scan)
        held = {id for known in self._known.values() for id in known.index["id"].tolist()}
        for name in names:
            known = self._known[name]
            if known.damaged:
                cells = ledger.segments.get(name, known.harmed)
                found.append(_lost(f"segment {name} is damaged", cells, held))
            if name not in ledger.segments:
                found.append(f"segment {name} is not in the ledger.")
        for name, cells in ledger.segments.items():
            if name not in names:
                found.append(_lost(f"segment {name} is gone", cells, held))
        return found

    def _reasons(self) -> set[str]:
        rows, names = self._latest(None)
        found: set[str] = set()
        for name, places, _ in seg.by_segment(rows, names):
            failed = places[self._known[name].index["reason"][places] > 0]
            whole = self._load(name) if len(failed) else None
            found |= {whole.text(place)[0] for place in failed.tolist()} if whole is not None else set()
        return found

    def _origins(self) -> dict[str, int]:
        found: dict[str, int] = {}
        rows, names = self._latest(None)
        for name, places, _ in seg.by_segment(rows, names):
            keys, counts = np.unique(self._known[name].index["origin"][places], return_counts=True)
            for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
                origin = origin_in(self._known[name].origins[key])
                if origin is not None:
                    found[str(origin)] = found.get(str(origin), 0) + count
        return found

    def _entries(self, sources: Collection[str] | None) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        rows, names = self._latest(sources)
        for name, places, _ in seg.by_segment(rows, names):
            known = self._known[name]
            index = known.index[places]
            whole = self._load(name) if np.any(index["reason"]) else None
            for place, values in zip(places.tolist(), index.tolist(), strict=True):
                entry = dict(zip(seg.INDEX.names or (), values, strict=True))
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
        for name, places, which in seg.by_segment(rows[at[found]], names):
            for variable, piece in seg.pieces(self._load(name), places, which):
                pieces.setdefault(variable, []).append(piece)
        return Rows(found, {name: padded(name, len(found), pieces[name]) for name in sorted(pieces)})

    def _segment_of(self, ids: np.ndarray, sources: Collection[str]) -> Segment:
        rows, names = self._latest(sources)
        rows = rows[(rows["status"] != FAILED) & seg.among(rows["id"], ids)]
        return seg.merge(
            [seg.select(self._load(name), np.sort(places)) for name, places, _ in seg.by_segment(rows, names)]
        )

    def _latest(self, sources: Collection[str] | None) -> tuple[np.ndarray, list[str]]:
        """Return the latest row of every cell (id, status, segment, place in it) and the names of the segments."""
        kind = [("id", "u8"), ("status", "i4"), ("write", "i8"), ("segment", "i4"), ("place", "i8")]
        parts = [np.zeros(0, kind)]
        names = self._scan()
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

    def _scan(self) -> list[str]:
        """Return the names of all segments. New and changed ones are read."""
        names = self._names()
        self._known = {name: self._know(name) for name in names}
        return names

    def _names(self) -> list[str]:
        try:
            return sorted(name for name in os.listdir(self._segments) if SEGMENT_NAME.fullmatch(name))
        except FileNotFoundError:
            return []

    def _know(self, name: str) -> _Known:
        path = self._segments / name
        stat = path.lstat() if path.is_symlink() and not path.exists() else path.stat()
        stamp = (stat.st_size, stat.st_mtime_ns)
        known = self._known.get(name)
        if known is not None and known.stamp == stamp:
            return known
        found = self._examine(name)
        whole = found.segment
        ranks = {name: len(shape) for block in whole.blocks for name, _, shape in block.signature}
        return _Known(stamp, whole.index, whole.origins, ranks, found.damaged, found.harmed)

    def _load(self, name: str) -> Segment:
        """Return the intact rows of a segment that was read before."""
        found = self._examine(name)
        if (found.damaged, found.harmed) != (self._known[name].damaged, self._known[name].harmed):
            del self._known[name]  # damaged without a change of its date
            raise _Changed
        return found.segment

    def _examine(self, name: str) -> _Examined:
        try:
            data = seg.read_file(self._segments / name)
        except Damaged:
            return _Examined(seg.gather(()), damaged=True)
        right = name.endswith(f"-{zlib.crc32(data):08x}{seg.SUFFIX}")
        try:
            whole = seg.decode(data)
        except Damaged as damage:
            if right:
                sentence = f"'{self.path}' was written by another version of the lab ({damage})."
                raise BadInput(sentence) from None
            return _Examined(seg.gather(()), damaged=True)
        if right:
            return _Examined(whole)
        intact = whole.intact()
        harmed = tuple(whole.index["id"][~intact].tolist())
        return _Examined(seg.select(whole, np.flatnonzero(intact)), True, harmed)

    def _read_consistently(self, read: Callable[[], T]) -> T:
        """Read, and start again if a running driver has merged segments in the meantime."""
        for _ in range(MAX_READS):
            with contextlib.suppress(FileNotFoundError, _Changed):
                return self._read_or_refuse(read)
        raise BadInput(f"'{self.path}' changes faster than it can be read.")

    def _read_or_refuse(self, read: Callable[[], T]) -> T:
        """Read. Errors of the disk become `BadInput`."""
        try:
            return read()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise BadInput(f"cannot read '{self.path}': {error.strerror or error}.") from None
        except MemoryError:
            raise BadInput(f"'{self.path}' does not fit into the memory of this machine.") from None

    # Writing ---------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder, so that a second driver is refused. The system releases the lock when the process ends."""
        if self._held == 0:
            with self._write_or_refuse():
                self._old_manifest()  # refuses the folder of another program before the lock is written
                self.path.mkdir(parents=True, exist_ok=True)
                self._lock = lock_folder(self.path)
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
        """Prepare the folder and write the manifest of a run that is about to start.

        The time of the first start is kept, and every start is added to a history with its versions. Damage is repaired first:
        intact rows are kept. Outcomes that workers left in the spool are stored. The manifest says `alone` if the store has
        no rows of cells other than `cells`.
        """
        with self.locked(), self._write_or_refuse():
            written = self._written_manifest()
            old = self._old_manifest()
            self._segments.mkdir(exist_ok=True)
            self._mend()
            start = {key: manifest[key] for key in ("command", "versions", "platform") if key in manifest}
            start["at"] = manifest.get("started", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
            before = starts_in(old)
            starts = before if before and self._started else [*before, start]
            self._origin = {key: manifest[key] for key in ("versions", "platform") if key in manifest}
            new = {**manifest, "started": starts[0]["at"], "starts": starts}
            self._copy = copied(new)
            for path in sorted((self.path / "spool" / "done").glob(f"*{seg.SUFFIX}")):
                for width, outcomes in seg.left_in(path).items():
                    self.write(outcomes, width)
                path.unlink(missing_ok=True)
            if cells is not None:
                new["alone"] = bool(np.all(seg.among(self._latest(None)[0]["id"], cells)))
            if new != written:
                page = sealed_page(new)
                if len(page) > LARGEST_PAGE:
                    raise BadInput(
                        f"the manifest of '{self.path}' would take {len(page)} bytes, more than {LARGEST_PAGE}; "
                        "choose shorter axes or values."
                    )
                replace_file(self.path / "manifest.json", page)
                self._ledger.add_manifest(new)
            self._copy = copied(new)
            self._started = True

    def write(self, outcomes: Iterable[Outcome], width: int) -> None:
        """Write outcomes. They are on the disk when this returns."""
        with self.locked(), self._write_or_refuse():
            number = 1 + max(map(_number, self._scan()), default=0)
            ranks = self._ranks()
            kept = [of_one_rank(outcome, ranks) for outcome in outcomes]
            if kept:
                origins = {(o.source, o.origin): {**self._origin, **o.made_by} for o in kept}
                rows = (seg.row(o, number, width, origins[o.source, o.origin]) for o in kept)
                self._keep(seg.gather(rows), number)
                self._merge()

    def copy_from(self, other: "Store", ids: np.ndarray, sources: Collection[str]) -> int:
        """Copy the finished rows of these cells from another store, with their origins; returns how many there were.

        Only rows that were made by code of one of these digests are copied. Nothing is copied from a store that is damaged.
        """
        try:
            found = other.segment_of(ids, sources) if other.exists and other.sound else seg.gather(())
        except BadInput:
            return 0
        with self.locked(), self._write_or_refuse():
            number = 1 + max(map(_number, self._scan()), default=0)
            found = seg.renumbered(seg.select(found, self._fitting(found)), number)
            if len(found.index):
                self._keep(found, number)
                self._merge()
        return len(found.index)

    def repair(self) -> list[str]:
        """Repair what is damaged from the intact parts, and return what was done, a sentence each."""
        if not self.exists:
            raise BadInput(f"'{self.path}' is not a store of results.")
        with self.locked(), self._write_or_refuse():
            place = "ledger" if self._ledger.read().manifest else "rows"
            manifest = self._old_manifest()
            done = self._mend()
            if self._written_manifest() is None:
                if not manifest:
                    raise self.lost_manifest()
                replace_file(self.path / "manifest.json", sealed_page(manifest))
                done.append(f"the manifest was written again from the {place}.")
            return done

    def lost_manifest(self) -> BadInput:
        """Return the error for a store without any copy of its manifest."""
        return BadInput(
            f"the manifest of '{self.path}' is lost, and neither ledger nor rows have a copy of it; "
            f"run the same figure again with --out {self.path}: its rows will be found."
        )

    def _fitting(self, segment: Segment) -> np.ndarray:
        """The places of the rows whose variables have as many dimensions as in the rows of this store."""
        ranks = self._ranks()
        fits = [
            all(ranks.get(name, len(shape)) == len(shape) for name, _, shape in block.signature)
            for block in segment.blocks
        ]
        return np.flatnonzero(np.repeat(fits, [block.rows for block in segment.blocks]))

    def _ranks(self) -> dict[str, int]:
        """The number of dimensions of every variable, without that of the cells."""
        return {name: rank for known in self._known.values() for name, rank in known.ranks.items()}

    def _keep(self, segment: Segment, number: int, replaces: Sequence[str] = ()) -> None:
        if self._copy is None:
            self._copy = copied(self._old_manifest())
        data = seg.encode(replace(segment, manifest=self._copy))
        name = f"{number:09d}-{zlib.crc32(data):08x}{seg.SUFFIX}"
        replace_file(self._segments / name, data)
        self._ledger.add_segment(name, segment.index["id"], replaces)
        for old in set(replaces) - {name}:
            (self._segments / old).unlink(missing_ok=True)

    def _merge(self) -> None:
        classes: dict[int, list[str]] = {}
        for name in self._scan():
            size = self._known[name].stamp[0]
            classes.setdefault(sum(size >= bound for bound in MERGE_SIZES), []).append(name)
        for level in range(len(MERGE_SIZES)):
            names = classes.get(level, [])
            if len(names) >= MERGE_COUNT:
                found = [self._examine(name) for name in names]
                if not any(one.damaged for one in found):  # damaged ones are left for a repair
                    merged = seg.merge([one.segment for one in found])
                    self._keep(merged, max(map(_number, names)), names)

    def _mend(self) -> list[str]:
        """Save the intact rows of damaged segments, and rewrite the ledger if it does not list the segments that exist."""
        done = []
        for left in (*self.path.glob("*.tmp"), *self._segments.glob("*.tmp")):
            left.unlink(missing_ok=True)
        for name in [name for name in self._scan() if self._known[name].damaged]:
            whole = self._examine(name).segment
            if len(whole.index):
                self._keep(whole, _number(name), [name])
            else:
                (self._segments / name).unlink(missing_ok=True)
            done.append(f"segment {name} was damaged; its {len(whole.index)} whole rows are kept.")
        ledger, names = self._ledger.read(), self._scan()
        manifest = self._old_manifest()
        wrong = (
            bool(ledger.damaged) or set(ledger.segments) != set(names) or not same(ledger.manifest, manifest)
        )
        if wrong or ledger.lines > len(names) + LEDGER_LINES:
            segments = ((name, self._known[name].index["id"]) for name in names)
            self._ledger.write_again(manifest, segments)
        return [*done, "the ledger was written again from the rows."] if wrong else done

    def _old_manifest(self) -> Mapping[str, Any]:
        """Return the manifest or a copy of it, empty for a new folder. Raises `BadInput` for the folder of another program."""
        path = self.path / "manifest.json"
        if os.path.exists(self.path / "ledger.sqlite"):
            raise BadInput(
                f"'{self.path}' holds results of an earlier version of the lab; choose another folder."
            )
        try:
            return unsealed_page(read_at_most(path, LARGEST_PAGE))
        except FileNotFoundError:
            return self._copied_manifest()
        except Damaged as damage:
            if self.exists:
                return self._copied_manifest()
            raise BadInput(f"'{path}' is {damage}; choose another folder for the results.") from None

    def _written_manifest(self) -> Mapping[str, Any] | None:
        try:
            return unsealed_page(read_at_most(self.path / "manifest.json", LARGEST_PAGE))
        except (OSError, Damaged):
            return None

    def _copied_manifest(self) -> Mapping[str, Any]:
        """Return the copy in the ledger, or else the one in the latest segment, which has no history of starts."""
        return self._ledger.read().manifest or self._read_consistently(self._manifest_in_rows)

    def _manifest_in_rows(self) -> Mapping[str, Any]:
        for name in reversed(self._names()):
            with contextlib.suppress(Damaged):
                return unsealed_page(self._examine(name).segment.manifest.encode())
        return {}

    @contextlib.contextmanager
    def _write_or_refuse(self) -> Iterator[None]:
        """Write inside. Errors of the disk become `BadInput`."""
        try:
            yield
        except OSError as error:
            sentence = f"cannot write results to '{self.path}': {error.strerror or error}"
            hints = {errno.ENOSPC: "free some space and run again", errno.ENOENT: "run again when it is back"}
            hint = f": {hints[error.errno]}" if error.errno in hints else ""
            raise BadInput(f"{sentence}; what was finished is kept{hint}.") from None
        except MemoryError:
            raise BadInput(
                f"not enough memory to write results to '{self.path}'; what was finished is kept."
            ) from None


def _number(name: str) -> int:
    return int(name.partition("-")[0])


def _lost(what: str, cells: Iterable[int], held: set[int]) -> str:
    """Return a sentence with the lost cells of a segment that is missing or damaged."""
    lost = [f"{id:016x}" for id in cells if id not in held]
    return f"{what}; lost cells: {', '.join(lost)}." if lost else f"{what}; no cell is lost."
