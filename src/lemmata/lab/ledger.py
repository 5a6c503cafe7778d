"""Reads and writes the ledger of a store: the segments that should exist, their cells, and a copy of the manifest.

The rows are authoritative. The ledger serves to report which cells were lost with a segment. Every write appends one line
with a checksum and flushes it. This only needs appends that last, which network disks provide too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lemmata.lab.disk import (
    Damaged,
    append_to_file,
    read_at_most,
    replace_file,
    sealed_line,
    unsealed_line,
)

MAX_LEDGER_BYTES = 1 << 30
"""The largest size of a ledger, enough for ten million cells. A larger file counts as one damaged line."""


@dataclass(frozen=True)
class LedgerContent:
    """The content of a ledger.

    `segments`: the cells of every segment.
    `manifest`: the last copy of the manifest.
    `damaged`: the numbers of damaged lines.
    `lines`: the number of lines.
    """

    segments: Mapping[str, tuple[int, ...]]
    manifest: Mapping[str, Any]
    damaged: tuple[int, ...]
    lines: int


@dataclass(frozen=True)
class Ledger:
    path: Path

    def read(self) -> LedgerContent:
        segments: dict[str, tuple[int, ...]] = {}
        manifest: Mapping[str, Any] = {}
        damaged = []
        lines = self._lines()
        for number, line in enumerate(lines, 1):
            try:
                content = unsealed_line(line)
                if "manifest" in content:
                    manifest = dict(content["manifest"])
                    continue
                cells = np.frombuffer(bytes.fromhex(content["cells"]), ">u8")
                for gone in content["replaces"]:
                    segments.pop(gone, None)
                segments[str(content["segment"])] = tuple(cells.tolist())
            except (Damaged, ValueError, TypeError, KeyError, RecursionError):
                damaged.append(number)
        return LedgerContent(segments, manifest, tuple(damaged), len(lines))

    def add_manifest(self, manifest: Mapping[str, Any]) -> None:
        append_to_file(self.path, sealed_line({"manifest": manifest}))

    def add_segment(self, name: str, cells: np.ndarray, replaces: Sequence[str] = ()) -> None:
        append_to_file(self.path, sealed_line(_segment(name, cells, replaces)))

    def write_again(self, manifest: Mapping[str, Any], segments: Iterable[tuple[str, np.ndarray]]) -> None:
        lines = [{"manifest": manifest}, *(_segment(name, cells) for name, cells in segments)]
        replace_file(self.path, b"".join(map(sealed_line, lines)))

    def _lines(self) -> list[bytes]:
        try:
            lines = read_at_most(self.path, MAX_LEDGER_BYTES).split(b"\n")
        except FileNotFoundError:
            return []
        except Damaged:
            return [b""]
        return lines if lines[-1] else lines[:-1]


def _segment(name: str, cells: np.ndarray, replaces: Sequence[str] = ()) -> dict[str, Any]:
    return {"segment": name, "cells": cells.astype(">u8").tobytes().hex(), "replaces": list(replaces)}
