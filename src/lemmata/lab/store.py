"""Where outcomes are kept: segments of rows that are written once, a ledger that says which there should be, a manifest.

The segments are the truth. Each is written under a temporary name, flushed and renamed, so that it is there whole or not at
all; its name holds a checksum of its bytes, and every row one of its own. The ledger is written after the rows and is never
believed over them: it only tells what was lost. Small segments are merged into larger ones as they come, so that a store of
a million cells is still a few files. Only the driver writes, under a lock that dies with its process.
"""

import contextlib
import errno
import fcntl
import json
import os
import re
import socket
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lemmata.errors import BadInput
from lemmata.lab import segment as seg
from lemmata.lab.segment import Damaged, Row, Segment
from lemmata.lab.work import Outcome, nothing
from lemmata.status import FAILED, STATUS

SMALL = 1 << 16
FAN = 16
LARGE = 1 << 24
"""Segments of about one size are merged when there are `FAN` of them: below `SMALL` bytes, below `FAN` times that, up to
`LARGE`. So a row is written a few times at most, and files stay few."""

NAME = re.compile(r"(\d{9,})-([0-9a-f]{8})" + re.escape(seg.SUFFIX))


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
class _Known:
    """What is kept in memory of a segment that was read and found right."""

    stamp: tuple[int, int]
    index: np.ndarray
    origins: Mapping[int, Mapping[str, Any]]
    ranks: Mapping[str, int]


class Store:
    """The results of a sweep on disk. Opening one for reading never creates anything."""

    def __init__(self, path: Path | str):
        self.path = Path(path)
        self._known: dict[str, _Known] = {}
        self._bad: dict[str, tuple[tuple[int, int], list[str]]] = {}
        self._held: int | None = None
        self._depth = 0
        self._origin: dict[str, Any] = {}
        self._started = False

    # Reading ---------------------------------------------------------------------------------------------------------

    @property
    def exists(self) -> bool:
        return (self.path / "segments").is_dir()

    @property
    def manifest(self) -> dict[str, Any]:
        """What was run here and how to run it again."""
        path = self.path / "manifest.json"
        try:
            return _opened(path.read_bytes())
        except FileNotFoundError:
            if self.exists:
                raise BadInput(f"'{path}' is gone; mend it with: lemmata repair {self.path}") from None
            raise BadInput(f"'{self.path}' is not a store of results: it has no manifest.json.") from None
        except OSError as error:
            raise BadInput(f"cannot read '{path}': {error.strerror}.") from None
        except Damaged as damage:
            raise BadInput(f"'{path}' is {damage}; mend it with: lemmata repair {self.path}") from None

    def entries(self, sources: Collection[str] | None = None) -> dict[str, Entry]:
        """Every stored cell by its identity; with `sources`, only what was made by code of these digests."""
        found: dict[str, Entry] = {}
        chosen, names = self._latest(sources)
        for number, name in enumerate(names):
            mine = chosen[chosen["segment"] == number]
            if not len(mine):
                continue
            whole = self._read(name) if np.any(mine["status"] == FAILED) else None
            origins = self._known[name].origins
            index = self._known[name].index
            for place in mine["place"].tolist():
                entry, origin = index[place], origins[int(index["origin"][place])]
                reason, traceback = whole.text(place) if whole is not None else ("", "")
                found[f"{entry['id']:016x}"] = Entry(
                    STATUS[entry["status"]],
                    reason,
                    traceback,
                    entry["seconds"].item(),
                    entry["width"].item(),
                    entry["finished"].item(),
                    origin.get("source", ""),
                    origin.get("versions", {}),
                )
        return found

    def done(self, sources: Collection[str] | None = None) -> set[str]:
        """The cells that need not be run again: all whose rows are whole and give a record, diverged or not.

        With `sources`, only rows that were made by code of one of these digests count.
        """
        chosen, _ = self._latest(sources)
        return {f"{id:016x}" for id in chosen["id"][chosen["status"] != FAILED].tolist()}

    def read(self, ids: Sequence[str], sources: Collection[str] | None = None) -> Rows:
        """The records of cells, as far as they are there (and were made by code of these digests)."""
        chosen, names = self._latest(sources)
        wanted = np.array([int(id, 16) for id in ids], np.uint64)
        order = np.argsort(chosen["id"], kind="stable")
        at = np.searchsorted(chosen["id"][order], wanted)
        at = np.minimum(at, max(len(order) - 1, 0))
        hit = chosen["id"][order][at] == wanted if len(order) else np.zeros(len(wanted), bool)
        found = np.flatnonzero(hit)
        rows = chosen[order[at[found]]] if len(order) else chosen[:0]
        values: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
        for number, name in enumerate(names):
            mine = np.flatnonzero(rows["segment"] == number)
            if len(mine):
                for variable, piece in _pieces(self._read(name), rows["place"][mine], mine):
                    values.setdefault(variable, []).append(piece)
        return Rows(found, {name: _padded(len(found), values[name]) for name in sorted(values)})

    def problems(self) -> list[str]:
        """What is wrong with the store, one sentence each. Reads every byte."""
        self._known.clear()
        self._bad.clear()
        found = []
        try:
            _ = self.manifest
        except BadInput as error:
            found.append(str(error))
        listed, complaints = self._ledger()
        found += complaints
        names = self._names()
        for name in names:
            self._know(name)
        held = {id for known in self._known.values() for id in known.index["id"].tolist()}
        for name, (_, sentences) in self._bad.items():
            found += sentences
            found += _lost(name, "is damaged", listed.get(name), held)
        for name in listed.keys() - set(names):
            found += _lost(name, "is gone", listed[name], held)
        found += [f"segment {name} is not in the ledger." for name in names if name not in listed and listed]
        return found

    def _names(self) -> list[str]:
        try:
            return sorted(entry for entry in os.listdir(self.path / "segments") if NAME.fullmatch(entry))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise BadInput(f"cannot read '{self.path}': {error.strerror}.") from None

    def _latest(self, sources: Collection[str] | None) -> tuple[np.ndarray, list[str]]:
        """The latest row of every cell (id, status, segment, place in it), and the names of the segments."""
        kind = [("id", "u8"), ("status", "i4"), ("write", "i8"), ("segment", "i4"), ("place", "i8")]
        parts = [np.zeros(0, kind)]
        names = [name for name in self._names() if self._know(name)]
        for number, name in enumerate(names):
            known = self._known[name]
            accepted = np.ones(len(known.index), bool)
            if sources is not None:
                right = [key for key, origin in known.origins.items() if origin.get("source") in sources]
                accepted = np.isin(known.index["origin"], right)
            places = np.flatnonzero(accepted)
            part = np.zeros(len(places), kind)
            for field in ("id", "status", "write"):
                part[field] = known.index[field][places]
            part["segment"], part["place"] = number, places
            parts.append(part)
        every = np.concatenate(parts)
        return every[seg.latest(every)], names

    def _know(self, name: str) -> bool:
        """Whether a segment is right, looked at once as long as it does not change."""
        path = self.path / "segments" / name
        try:
            stat = path.stat()
        except OSError:
            return False
        stamp = (stat.st_size, stat.st_mtime_ns)
        if name in self._known and self._known[name].stamp == stamp:
            return True
        if name in self._bad and self._bad[name][0] == stamp:
            return False
        try:
            whole = self._read(name)
        except Damaged as damage:
            self._known.pop(name, None)
            self._bad[name] = (stamp, [f"segment {name} is damaged ({damage})."])
            return False
        ranks = {name: len(shape) for block in whole.blocks for name, _, shape in block.signature}
        self._known[name] = _Known(stamp, whole.index, whole.origins, ranks)
        return True

    def _read(self, name: str) -> Segment:
        try:
            data = (self.path / "segments" / name).read_bytes()
        except OSError as error:
            raise Damaged(error.strerror or str(error)) from None
        match = NAME.fullmatch(name)
        if match is None or f"{zlib.crc32(data):08x}" != match[2]:
            raise Damaged("its bytes are not those that were written")
        return seg.decode(data)

    def _ledger(self) -> tuple[dict[str, list[str]], list[str]]:
        """The segments that there should be with the cells in each, and what is wrong with the ledger."""
        listed: dict[str, list[str]] = {}
        complaints = []
        try:
            lines = (self.path / "ledger.txt").read_bytes().split(b"\n")
        except FileNotFoundError:
            return {}, ["the ledger is gone."] if self._names() else []
        except OSError as error:
            return {}, [f"the ledger cannot be read: {error.strerror}."]
        for number, line in enumerate(lines, 1):
            if line == b"" and number == len(lines):
                break
            try:
                said = json.loads(_unsealed(line))
            except (Damaged, ValueError):
                complaints.append(f"line {number} of the ledger is damaged.")
                continue
            if "segment" in said:
                for gone in said.get("replaces", ()):
                    listed.pop(gone, None)
                listed[said["segment"]] = said["cells"]
        return listed, complaints

    # Writing ---------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder: a second driver is refused. The lock is the operating system's and ends with the process."""
        if self._depth == 0:
            with self._telling():
                self.path.mkdir(parents=True, exist_ok=True)
                self._held = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.pread(self._held, 200, 0).decode(errors="replace").strip() or "another process"
                os.close(self._held)
                raise BadInput(
                    f"'{self.path}' is being written to by {holder}; wait for it, or choose another folder."
                ) from None
            os.ftruncate(self._held, 0)
            os.pwrite(self._held, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0 and self._held is not None:
                os.close(self._held)
                self._held = None

    def create(self, manifest: Mapping[str, Any]) -> None:
        """Make the folder ready and note what is about to be run.

        The time of the first start is kept, and every start is added to a history with its versions.
        """
        with self.locked(), self._telling():
            old = self._own_manifest()
            (self.path / "segments").mkdir(exist_ok=True)
            self._mend()
            start = {key: manifest[key] for key in ("command", "versions", "platform") if key in manifest}
            start["at"] = manifest.get("started", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
            starts = [*old.get("starts", ())]
            if not self._started:
                starts.append(start)
            self._started = True
            self._origin = {key: manifest[key] for key in ("versions", "platform") if key in manifest}
            new = {**manifest, "started": starts[0]["at"], "starts": starts}
            if new != old:
                self._replace(self.path / "manifest.json", _closed(new))
                self._append({"manifest": new})

    def write(self, outcomes: Iterable[Outcome], width: int) -> None:
        """Keep the outcomes of a chunk: when this returns, they are on the disk."""
        with self.locked(), self._telling():
            names = self._names()
            for name in names:
                self._know(name)
            number = 1 + max((int(name.split("-")[0]) for name in names), default=0)
            ranks = {name: rank for known in self._known.values() for name, rank in known.ranks.items()}
            kept = [_of_one_rank(outcome, ranks) for outcome in outcomes]
            if kept:
                origins = {source: {**self._origin, "source": source} for source in {o.source for o in kept}}
                now = time.time()
                self._keep(seg.gather(_row(o, number, now, width, origins[o.source]) for o in kept), number)
                self._merge_small()

    def repair(self) -> list[str]:
        """Rebuild what is damaged from what is whole; returns what was done, one sentence each."""
        if not self.exists:
            raise BadInput(f"'{self.path}' is not a store of results.")
        with self.locked(), self._telling():
            done = self._mend()
            try:
                _ = self.manifest
            except BadInput:
                told = self._manifest_of_ledger()
                if told is None:
                    raise BadInput(
                        f"the manifest of '{self.path}' is damaged, and the ledger has no copy of it; "
                        f"run its study and figure again with --out {self.path}: its rows will be found."
                    ) from None
                self._replace(self.path / "manifest.json", _closed(told))
                done.append("the manifest was written again from the ledger.")
            return done

    def _keep(self, segment: Segment, number: int, replaces: Sequence[str] = ()) -> None:
        data = seg.encode(segment)
        name = f"{number:09d}-{zlib.crc32(data):08x}{seg.SUFFIX}"
        self._replace(self.path / "segments" / name, data)
        cells = [f"{id:016x}" for id in segment.index["id"].tolist()]
        self._append({"segment": name, "cells": cells, **({"replaces": replaces} if replaces else {})})
        for old in replaces:
            if old != name:
                (self.path / "segments" / old).unlink(missing_ok=True)

    def _merge_small(self) -> None:
        sizes: dict[int, list[str]] = {}
        for name in self._names():
            if self._know(name):
                size = self._known[name].stamp[0]
                if size < LARGE:
                    level = 0 if size < SMALL else 1 if size < SMALL * FAN else 2
                    sizes.setdefault(level, []).append(name)
        for names in sizes.values():
            if len(names) >= FAN:
                merged = seg.merge([self._read(name) for name in names])
                self._keep(merged, max(int(name.split("-")[0]) for name in names), names)

    def _mend(self) -> list[str]:
        """Take in whole segments that the ledger does not know, save what is whole in damaged ones, forget lost ones."""
        done = []
        for left in (self.path / "segments").glob("*.tmp"):
            left.unlink(missing_ok=True)
        listed, complaints = self._ledger()
        for name in self._names():
            if not self._know(name):
                kept = self._salvage(name)
                done.append(f"segment {name} was damaged; {kept} of its cells were whole and are kept.")
        names = self._names()
        if complaints or set(listed) != set(names):
            self._rewrite_ledger()
            done.append("the ledger was written again from the rows.")
        return done

    def _salvage(self, name: str) -> int:
        path = self.path / "segments" / name
        kept = 0
        try:
            whole = seg.decode(path.read_bytes())
            places = np.flatnonzero(whole.intact())
        except (Damaged, OSError):
            places = np.zeros(0, int)
        else:
            if len(places):
                self._keep(seg.select(whole, places), int(whole.index["write"][places].max()))
                kept = len(places)
        path.unlink(missing_ok=True)
        return kept

    def _rewrite_ledger(self) -> None:
        try:
            manifest = self.manifest
        except BadInput:
            manifest = self._manifest_of_ledger()
        lines = [_sealed({"manifest": manifest})] if manifest else []
        for name in self._names():
            if self._know(name):
                cells = [f"{id:016x}" for id in self._known[name].index["id"].tolist()]
                lines.append(_sealed({"segment": name, "cells": cells}))
        self._replace(self.path / "ledger.txt", b"".join(lines))

    def _manifest_of_ledger(self) -> dict[str, Any] | None:
        found = None
        with contextlib.suppress(OSError):
            for line in (self.path / "ledger.txt").read_bytes().split(b"\n"):
                with contextlib.suppress(Damaged, ValueError):
                    found = json.loads(_unsealed(line)).get("manifest", found)
        return found

    def _own_manifest(self) -> dict[str, Any]:
        """The manifest that is there, empty for a new folder; refuses a folder that is somebody else's."""
        path = self.path / "manifest.json"
        if not path.exists():
            return self._manifest_of_ledger() or {}
        try:
            return _opened(path.read_bytes())
        except Damaged as damage:
            if self.exists:
                return self._manifest_of_ledger() or {}
            raise BadInput(
                f"'{path}' is {damage}; results are not written beside it: choose another folder."
            ) from None

    def _replace(self, path: Path, data: bytes) -> None:
        """Write a file so that after any crash it is the old one or the new one, whole."""
        temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _flush_folder(path.parent)

    def _append(self, said: Mapping[str, Any]) -> None:
        with (self.path / "ledger.txt").open("ab") as file:
            file.write(_sealed(said))
            file.flush()
            os.fsync(file.fileno())

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """What the disk refuses, as one sentence."""
        try:
            yield
        except OSError as error:
            hint = "free some space and run again" if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
            hint = hint or "run again when it is back" if error.errno == errno.ENOENT else hint
            said = f"cannot write results to '{self.path}': {error.strerror or error}"
            raise BadInput(f"{said}; what was finished is kept{f': {hint}' if hint else ''}.") from None


def _of_one_rank(outcome: Outcome, ranks: dict[str, int]) -> Outcome:
    """The outcome, or a failure where a variable has another number of dimensions than in the cells before."""
    for name, value in outcome.record.items():
        if ranks.setdefault(name, value.ndim) != value.ndim:
            reason = f"variable '{name}' has {value.ndim} dimensions here and {ranks[name]} in other cells."
            return replace(outcome, record=nothing(), reason=reason)
    return outcome


def _row(outcome: Outcome, number: int, now: float, width: int, origin: Mapping[str, Any]) -> Row:
    status = int(outcome.record["status"])
    times = (status, number, now, outcome.seconds, width)
    return Row(int(outcome.id, 16), outcome.record, *times, outcome.reason, outcome.traceback, origin)


def _pieces(
    whole: Segment, places: np.ndarray, rows: np.ndarray
) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """For every variable of the chosen cells: the rows of the result that they go to, and their values."""
    for block, start in zip(whole.blocks, whole.starts, strict=True):
        inside = np.flatnonzero((places >= start) & (places < start + block.rows))
        if len(inside):
            for name, array in block.arrays.items():
                yield name, (rows[inside], array[places[inside] - start])


def _padded(count: int, pieces: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Pieces put together; as they came where all are of one size and none is missing, else with NaN in the gaps."""
    rank = max(values.ndim for _, values in pieces)
    pieces = [(rows, values) for rows, values in pieces if values.ndim == rank]
    shape = tuple(np.max([values.shape[1:] for _, values in pieces], axis=0).astype(int))
    dtype = np.result_type(*(values.dtype for _, values in pieces))
    whole = all(values.shape[1:] == shape for _, values in pieces)
    if not (whole and sum(len(rows) for rows, _ in pieces) == count):
        dtype = dtype if dtype.kind in "fc" else np.dtype(np.float64)
    out = np.full((count, *shape), np.nan if dtype.kind in "fc" else 0, dtype)
    for rows, values in pieces:
        out[(rows, *(slice(n) for n in values.shape[1:]))] = values
    return out


def _lost(name: str, what: str, cells: Sequence[str] | None, held: set[int]) -> list[str]:
    """Sentences about the cells of a segment that is not there or not right."""
    lost = [id for id in cells or () if int(id, 16) not in held]
    return [f"cell {id}: its segment {name} {what}; it will be run again." for id in lost]


def _flush_folder(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Sealed text: a line, or a file, that knows its own checksum ------------------------------------------------------------


def _sealed(said: Mapping[str, Any]) -> bytes:
    text = json.dumps(said, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _unsealed(line: bytes) -> bytes:
    told, _, text = line.partition(b" ")
    if told != b"%08x" % zlib.crc32(text):
        raise Damaged("damaged")
    return text


def _closed(manifest: Mapping[str, Any]) -> bytes:
    """The file of a manifest: readable, with a checksum over the rest."""
    plain = {key: value for key, value in manifest.items() if key != "checksum"}
    sum = f"{zlib.crc32(json.dumps(plain).encode()):08x}"
    return (json.dumps({**plain, "checksum": sum}, indent=2) + "\n").encode()


def _opened(data: bytes) -> dict[str, Any]:
    try:
        said = json.loads(data)
        given = said.pop("checksum")
        right = data == _closed(said) and given == json.loads(data)["checksum"]
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise Damaged("not a manifest of this lab") from None
    if not right:
        raise Damaged("damaged, or was changed by hand")
    return said
