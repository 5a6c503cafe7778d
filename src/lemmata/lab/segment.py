"""Reads and writes segments. A segment holds rows of cells in one file, a Zarr v3 group that is never changed.

A segment has an index and blocks. The index has one entry a cell: identity, status, time, origin, and a checksum over all
that is stored of the cell. A block holds the records of all cells whose arrays have the same names, types and shapes, as one
dense array a variable. Only numbers are stored, uncompressed: reading never executes anything, and a damaged byte harms one
cell. Any Zarr reader opens the file. This module has its own reader and writer, which take 0.1 ms an array instead of 2.
"""

import io
import json
import time
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lemmata.errors import require_memory
from lemmata.lab.disk import LARGEST_PAGE, Damaged, file_size
from lemmata.lab.outcome import Outcome, Value, origin_in

FORMAT = 1
SUFFIX = ".zarr.zip"
STORABLE = {
    np.dtype(name)
    for name in (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "complex64", "complex128"),
    )
}

INDEX = np.dtype(
    [
        ("id", "<u8"),
        ("write", "<i8"),
        ("finished", "<f8"),
        ("seconds", "<f8"),
        ("width", "<i4"),
        ("status", "<i4"),
        ("reason", "<i4"),
        ("traceback", "<i4"),
        ("origin", "<u4"),
        ("checksum", "<u4"),
    ]
)
"""An entry of the index. `write` is the number of the write; of two rows of a cell the one with the larger number counts.
`reason` and `traceback` are lengths of texts. `origin` is the checksum of the origin of the row (source, versions)."""

END_OF_ZIP, FARTHEST_END = b"PK\5\6", 22 + 65535
"""The first bytes of the last record of a zip file, and the largest distance of that record from the end of the file."""

COPIES = 2
"""Reading a segment takes this many times its size in memory."""

CHECKED = [name for name in INDEX.names or () if name != "checksum"]

Signature = tuple[tuple[str, str, tuple[int, ...]], ...]
"""Name, type and shape of every array of a record, sorted by name."""


@dataclass(frozen=True)
class Row:
    """All that is stored of one cell. `origin` is plain data: the digest of the code and the versions of packages."""

    id: int
    record: Mapping[str, Value]
    status: int
    write: int
    finished: float
    seconds: float
    width: int
    reason: str
    traceback: str
    origin: Mapping[str, Any]


@dataclass(frozen=True)
class Block:
    """Records of one signature: one array a variable, with one row a cell."""

    signature: Signature
    arrays: Mapping[str, np.ndarray]
    rows: int


@dataclass(frozen=True)
class Segment:
    """Rows of cells, in the order of their blocks. Cell `i` is row `i - start` of its block.

    `index`: the entries of the cells.
    `texts`: reasons and tracebacks, one after another.
    `blocks`: the records.
    `origins`: the origins of the rows, by checksum.
    `manifest`: a copy of the manifest of the store with a checksum, used when every other copy is lost.
    """

    index: np.ndarray
    texts: bytes
    blocks: Sequence[Block]
    origins: Mapping[int, Mapping[str, Any]]
    manifest: str = ""

    @cached_property
    def starts(self) -> np.ndarray:
        """The first cell of each block."""
        return np.cumsum([0, *(block.rows for block in self.blocks)])[:-1]

    @cached_property
    def text_ends(self) -> np.ndarray:
        """The end of the texts of each cell."""
        return np.cumsum(self.index["reason"].astype(np.int64) + self.index["traceback"])

    def text(self, cell: int) -> tuple[str, str]:
        """Return reason and traceback of a cell."""
        middle, end = int(self.index["reason"][cell]), int(self.text_ends[cell])
        whole = self.texts[end - middle - int(self.index["traceback"][cell]) : end]
        return whole[:middle].decode(errors="replace"), whole[middle:].decode(errors="replace")

    def intact(self) -> np.ndarray:
        """Return which cells match their checksums."""
        known = np.isin(self.index["origin"], list(self.origins))
        return known & (self.index["checksum"] == _checksums(self.index, self.texts, self.blocks))


def numbers(ids: Collection[str] | np.ndarray) -> np.ndarray:
    """Convert identities to the numbers of an index."""
    return (
        ids
        if isinstance(ids, np.ndarray)
        else np.frombuffer(bytes.fromhex("".join(ids)), ">u8").astype(np.uint64)
    )


def among(ids: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return which identities are in `known`, as `np.isin`, but several times faster for a million of them."""
    if not len(known):
        return np.zeros(len(ids), bool)
    order, known = np.argsort(ids), np.sort(known)
    ordered = ids[order]
    at = np.minimum(np.searchsorted(known, ordered), len(known) - 1)
    found = np.empty(len(ids), bool)
    found[order] = known[at] == ordered
    return found


def row(outcome: Outcome, write: int, width: int, origin: Mapping[str, Any]) -> Row:
    """Make the row of an outcome, with the present time."""
    times = (int(outcome.record["status"]), write, time.time(), outcome.seconds, width)
    return Row(int(outcome.id, 16), outcome.record, *times, outcome.reason, outcome.traceback, origin)


def outcomes(segment: Segment) -> list[Outcome]:
    """Return the outcomes in a segment."""
    found = []
    for block, start in zip(segment.blocks, segment.starts.tolist(), strict=True):
        for at in range(block.rows):
            entry = segment.index[start + at]
            record = {name: array[at] for name, array in block.arrays.items()}
            kept = segment.origins[int(entry["origin"])]
            made_by = kept.get("source", ""), origin_in(kept)
            words = segment.text(start + at)
            found.append(Outcome(f"{entry['id']:016x}", record, float(entry["seconds"]), *words, *made_by))
    return found


def gather(rows: Iterable[Row]) -> Segment:
    """Make a segment from rows."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        kind = tuple((name, value.dtype, value.shape) for name, value in sorted(row.record.items()))
        groups.setdefault(kind, []).append(row)
    blocks, texts, index, origins, keys = [], [], [], {}, {}
    for kind, group in groups.items():
        signed: Signature = tuple((name, dtype.name, shape) for name, dtype, shape in kind)
        arrays = {
            name: np.array([row.record[name] for row in group], dtype).reshape(len(group), *shape)
            for name, dtype, shape in kind
        }
        blocks.append(Block(signed, arrays, len(group)))
        for row in group:
            reason, traceback = (text.encode(errors="replace") for text in (row.reason, row.traceback))
            if (origin := keys.get(id(row.origin))) is None:
                origin = keys[id(row.origin)] = _origin_key(row.origin)
                origins[origin] = row.origin
            texts += [reason, traceback]
            index.append(
                (
                    *(row.id, row.write, row.finished, row.seconds, row.width, row.status),
                    *(len(reason), len(traceback), origin, 0),
                )
            )
    table, text = np.array(index, INDEX), b"".join(texts)
    table["checksum"] = _checksums(table, text, blocks)
    return Segment(table, text, blocks, origins)


def merge(segments: Sequence[Segment]) -> Segment:
    """Join segments. Of the rows of a cell, only the latest is kept."""
    whole = _joined(segments)
    return select(whole, latest(whole.index))


def renumbered(segment: Segment, write: int) -> Segment:
    """Return the segment with another number of its write."""
    index = segment.index.copy()
    index["write"] = write
    index["checksum"] = _checksums(index, segment.texts, segment.blocks)
    return replace(segment, index=index, manifest="")


def latest(index: np.ndarray) -> np.ndarray:
    """Return the places of the latest row of every cell, in increasing order."""
    order = np.lexsort((index["write"], index["id"]))
    last = np.flatnonzero(np.append(np.diff(index["id"][order]) != 0, True)) if len(order) else order
    return np.sort(order[last])


def select(segment: Segment, cells: np.ndarray) -> Segment:
    """Return a segment with some of the cells, given by places in increasing order."""
    blocks, chosen = [], []
    for block, start in zip(segment.blocks, segment.starts, strict=True):
        mine = cells[(cells >= start) & (cells < start + block.rows)]
        if len(mine):
            arrays = {name: array[mine - start] for name, array in block.arrays.items()}
            blocks.append(Block(block.signature, arrays, len(mine)))
            chosen.append(mine)
    kept = np.concatenate(chosen) if chosen else np.zeros(0, int)
    sizes = segment.index["reason"].astype(np.int64) + segment.index["traceback"]
    with_text = kept[sizes[kept] > 0]
    ends = segment.text_ends
    texts = b"".join(segment.texts[ends[i] - sizes[i] : ends[i]] for i in with_text)
    index = segment.index[kept]
    used = set(index["origin"].tolist())
    origins = {key: origin for key, origin in segment.origins.items() if key in used}
    return Segment(index, texts, blocks, origins, segment.manifest)


def _joined(segments: Sequence[Segment]) -> Segment:
    """Join all rows of several segments. Blocks of the same signature become one."""
    parts: dict[Signature, list[tuple[Segment, Block, int]]] = {}
    for segment in segments:
        for block, start in zip(segment.blocks, segment.starts, strict=True):
            parts.setdefault(block.signature, []).append((segment, block, int(start)))
    blocks, index, texts = [], [np.zeros(0, INDEX)], []
    for signed, pieces in parts.items():
        arrays = {
            name: np.concatenate([block.arrays[name] for _, block, _ in pieces]) for name, _, _ in signed
        }
        blocks.append(Block(signed, arrays, sum(block.rows for _, block, _ in pieces)))
        for segment, block, start in pieces:
            mine = segment.index[start : start + block.rows]
            index.append(mine)
            end = int(segment.text_ends[start + block.rows - 1]) if block.rows else 0
            size = int(mine["reason"].sum(dtype=np.int64) + mine["traceback"].sum(dtype=np.int64))
            texts.append(segment.texts[end - size : end])
    origins = {key: origin for segment in segments for key, origin in segment.origins.items()}
    return Segment(np.concatenate(index), b"".join(texts), blocks, origins)


def by_segment(rows: np.ndarray, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Yield for every segment its name, places in it, and the indices of the rows that these are."""
    order = np.argsort(rows["segment"], kind="stable")
    ends = np.searchsorted(rows["segment"][order], np.arange(len(names) + 1))
    for number in np.flatnonzero(np.diff(ends)).tolist():
        mine = order[ends[number] : ends[number + 1]]
        yield names[number], rows["place"][mine], mine


def pieces(
    whole: Segment, places: np.ndarray, which: np.ndarray
) -> Iterator[tuple[str, tuple[np.ndarray, np.ndarray]]]:
    """Yield for every variable of the chosen cells the rows of the result that they go to, and their values."""
    for block, start in zip(whole.blocks, whole.starts, strict=True):
        inside = np.flatnonzero((places >= start) & (places < start + block.rows))
        if len(inside):
            for name, array in block.arrays.items():
                yield name, (which[inside], array[places[inside] - start])


# To bytes and back -----------------------------------------------------------------------------------------------------


def encode(segment: Segment) -> bytes:
    """Return the bytes of the file of a segment. The same rows give the same bytes."""
    head = {
        "format": FORMAT,
        "cells": len(segment.index),
        "blocks": [{"rows": block.rows, "arrays": block.signature} for block in segment.blocks],
        "origins": {f"{key:08x}": origin for key, origin in segment.origins.items()},
    }
    arrays = {f"cells/{name}": segment.index[name] for name in INDEX.names or ()}
    arrays["cells/texts"] = np.frombuffer(segment.texts, np.uint8)
    for i, block in enumerate(segment.blocks):
        arrays |= {f"{i}/{name}": array for name, array in block.arrays.items()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        groups = ["cells", *map(str, range(len(segment.blocks)))]
        attributes = {"lemmata": head, **({"manifest": segment.manifest} if segment.manifest else {})}
        _put(file, "zarr.json", _group(attributes))
        for group in groups:
            _put(file, f"{group}/zarr.json", _group({}))
        for name, array in arrays.items():
            _put(file, f"{name}/zarr.json", _description(array))
            if array.size:
                little = array.astype(array.dtype.newbyteorder("<"), copy=False)
                _put(file, f"{name}/{_chunk(array.ndim)}", np.ascontiguousarray(little).tobytes())
    return buffer.getvalue()


def read_file(path: Path) -> bytes:
    """Read the file of a segment.

    Raises `Damaged` if the file has no end of a zip file, before the rest is read, and `BadInput` if memory is too small."""
    size = file_size(path)
    with path.open("rb") as file:
        file.seek(max(0, size - FARTHEST_END))
        if END_OF_ZIP not in file.read(FARTHEST_END):
            raise Damaged("the end of the file is missing.")
        require_memory(COPIES * size, f"reading '{path}'")
        file.seek(0)
        return file.read(size)


def left_in(path: Path) -> dict[int, list[Outcome]]:
    """Return the outcomes in a file whose name ends with its checksum, by width. The result is empty for a damaged file."""
    try:
        data = read_file(path)
        if not path.name.endswith(f"-{zlib.crc32(data):08x}{SUFFIX}"):
            return {}
        segment = decode(data)
    except Damaged:
        return {}
    found: dict[int, list[Outcome]] = {}
    for width, outcome in zip(segment.index["width"].tolist(), outcomes(segment), strict=True):
        found.setdefault(width, []).append(outcome)
    return found


def decode(data: bytes) -> Segment:
    """Parse the bytes of a file. Raises `Damaged` unless they have the form that `encode` writes."""
    try:
        return _decode(data)
    except MemoryError:  # not the fault of the bytes
        raise
    except Exception as error:  # zip, JSON and NumPy raise many kinds for foreign bytes
        raise Damaged(f"{type(error).__name__}: {error}") from None


def _decode(data: bytes) -> Segment:
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        places = {info.filename: info for info in file.infolist()}
        description = bytes(_bytes(data, places["zarr.json"]))
    if len(description) > LARGEST_PAGE:
        raise Damaged(f"its description has {len(description)} bytes.")
    attributes = json.loads(description)["attributes"]
    head, manifest = attributes["lemmata"], str(attributes.get("manifest", ""))
    if head["format"] != FORMAT:
        raise Damaged(f"the format is {head['format']!r}.")

    def array(name: str, dtype: str | np.dtype, shape: Sequence[int]) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind not in STORABLE:
            raise Damaged(f"'{name}' is not numeric.")
        if 0 in shape:
            return np.zeros(tuple(shape), kind)
        raw = _bytes(data, places[f"{name}/{_chunk(len(shape))}"])
        return np.frombuffer(raw, kind.newbyteorder("<")).astype(kind, copy=False).reshape(tuple(shape))

    cells = int(head["cells"])
    if cells * INDEX.itemsize > len(data):
        raise Damaged("the file is too short for its cells.")
    index = np.zeros(cells, INDEX)
    for name in INDEX.names or ():
        index[name] = array(f"cells/{name}", INDEX[name].newbyteorder("="), (cells,))
    size = int(index["reason"].sum(dtype=np.int64) + index["traceback"].sum(dtype=np.int64))
    texts = array("cells/texts", "uint8", (size,)).tobytes()
    blocks = []
    for i, block in enumerate(head["blocks"]):
        signed: Signature = tuple((name, kind, tuple(shape)) for name, kind, shape in block["arrays"])
        rows = int(block["rows"])
        arrays = {name: array(f"{i}/{name}", kind, (rows, *shape)) for name, kind, shape in signed}
        blocks.append(Block(signed, arrays, rows))
    if sum(block.rows for block in blocks) != cells:
        raise Damaged("index and blocks differ in length.")
    origins = {int(key, 16): origin for key, origin in head["origins"].items()}
    if any(_origin_key(origin) != key for key, origin in origins.items()):
        origins = {key: origin for key, origin in origins.items() if _origin_key(origin) == key}
    return Segment(index, texts, blocks, origins, manifest)


def _bytes(data: bytes, place: zipfile.ZipInfo) -> memoryview:
    begin = place.header_offset + 30
    begin += int.from_bytes(data[begin - 4 : begin - 2], "little") + int.from_bytes(
        data[begin - 2 : begin], "little"
    )
    found = memoryview(data)[begin : begin + place.file_size]
    if len(found) != place.file_size:
        raise Damaged("the file ends too early.")
    return found


def _put(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    file.writestr(zipfile.ZipInfo(name), content)  # without a date: the same content gives the same file


def _chunk(dimensions: int) -> str:
    return "/".join(["c", *["0"] * dimensions])


def _group(attributes: Mapping[str, Any]) -> bytes:
    content = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    return json.dumps(content).encode()


def _description(array: np.ndarray) -> bytes:
    """Return `zarr.json` of an array that is one chunk of little-endian numbers."""
    size = array.dtype.itemsize > 1
    nothing: Any = [0.0, 0.0] if array.dtype.kind == "c" else False if array.dtype.kind == "b" else 0
    content = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": array.shape,
        "data_type": array.dtype.name,
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [max(n, 1) for n in array.shape]},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": nothing,
        "codecs": [{"name": "bytes", **({"configuration": {"endian": "little"}} if size else {})}],
        "attributes": {},
    }
    return json.dumps(content).encode()


def _origin_key(origin: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(origin, sort_keys=True).encode())


def _checksums(index: np.ndarray, texts: bytes, blocks: Sequence[Block]) -> np.ndarray:
    """Return a checksum for each cell over its entry, its texts, and the names, types, shapes and values of its record."""
    plain = np.zeros(len(index), [(name, INDEX[name]) for name in CHECKED])
    for name in CHECKED:
        plain[name] = index[name]
    entries = plain.view(np.uint8).reshape(len(index), plain.dtype.itemsize)
    ends = np.cumsum(index["reason"].astype(np.int64) + index["traceback"])
    sums = np.zeros(len(index), np.uint32)
    at = 0
    for block in blocks:
        begin = zlib.crc32(json.dumps(block.signature).encode())
        parts = [
            np.ascontiguousarray(block.arrays[name]).reshape(block.rows, -1).view(np.uint8)
            for name, _, shape in block.signature
            if 0 not in shape and block.rows
        ]
        rows = np.concatenate([entries[at : at + block.rows], *parts], axis=1)
        for i in range(block.rows):
            sums[at + i] = zlib.crc32(rows[i], begin)
        at += block.rows
    for i in np.flatnonzero(index["reason"].astype(np.int64) + index["traceback"]):
        size = int(index["reason"][i]) + int(index["traceback"][i])
        sums[i] = zlib.crc32(texts[ends[i] - size : ends[i]], int(sums[i]))
    return sums
