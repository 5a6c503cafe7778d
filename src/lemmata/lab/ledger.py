"""The ledger of a store: which segments there should be and which cells are in each, and a copy of the manifest.

It is never believed over the rows; it tells what was lost with a segment that is gone. One line for every write, each with a
checksum, flushed to the disk: all it needs is that appended bytes stay, which holds on network disks too.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lemmata.lab.disk import append_to_file, replace_file, sealed_line, unsealed_line


@dataclass(frozen=True)
class Told:
    """What a ledger says: the cells of every segment, the last manifest, and which of its own lines are damaged."""

    segments: Mapping[str, tuple[int, ...]]
    manifest: Mapping[str, Any]
    damaged: tuple[int, ...]
    lines: int


@dataclass(frozen=True)
class Ledger:
    path: Path

    def read(self) -> Told:
        segments: dict[str, tuple[int, ...]] = {}
        manifest: Mapping[str, Any] = {}
        damaged = []
        lines = self._lines()
        for number, line in enumerate(lines, 1):
            said = unsealed_line(line)
            if said is None:
                damaged.append(number)
            elif "manifest" in said:
                manifest = said["manifest"]
            else:
                for gone in said["replaces"]:
                    segments.pop(gone, None)
                cells = np.frombuffer(bytes.fromhex(said["cells"]), ">u8")
                segments[said["segment"]] = tuple(cells.tolist())
        return Told(segments, manifest, tuple(damaged), len(lines))

    def add_manifest(self, manifest: Mapping[str, Any]) -> None:
        append_to_file(self.path, sealed_line({"manifest": manifest}))

    def add_segment(self, name: str, cells: np.ndarray, replaces: Sequence[str] = ()) -> None:
        append_to_file(self.path, sealed_line(_segment(name, cells, replaces)))

    def write_again(self, manifest: Mapping[str, Any], segments: Iterable[tuple[str, np.ndarray]]) -> None:
        lines = [{"manifest": manifest}, *(_segment(name, cells) for name, cells in segments)]
        replace_file(self.path, b"".join(map(sealed_line, lines)))

    def _lines(self) -> list[bytes]:
        try:
            lines = self.path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return []
        return lines if lines[-1] else lines[:-1]


def _segment(name: str, cells: np.ndarray, replaces: Sequence[str] = ()) -> dict[str, Any]:
    return {"segment": name, "cells": cells.astype(">u8").tobytes().hex(), "replaces": list(replaces)}
