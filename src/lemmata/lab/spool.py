"""Distributes work through files, for batch systems and machines that share only a disk. It needs no network port.

The spool is a folder inside a store. The driver writes chunks to `todo`, as lists of cell identities. A worker (a process of
`lemmata work`) claims a chunk by renaming it into `taken`, touches the file while it works, and writes outcomes as segments
to `done`. Only the driver moves them into the store. Workers continue when the driver dies, and the next driver finds their
outcomes. A claim that is not touched any more is offered again. A chunk names cells and contains no code: a worker finds the
cells in the sweep that the manifest describes.
"""

import contextlib
import itertools
import os
import re
import socket
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lemmata.ending import on_exit
from lemmata.errors import BadInput
from lemmata.lab import segment as seg
from lemmata.lab.disk import LARGEST_PAGE, Damaged, read_at_most, replace_file, sealed_page, unsealed_page
from lemmata.lab.outcome import Outcome
from lemmata.lab.pool import MAX_LOSSES, Lost, merge_results
from lemmata.lab.work import Chunk
from lemmata.sweep import Cells

HEARTBEAT_SECONDS = 5.0
"""A worker touches its claim after every so many seconds."""

CLAIM_TIMEOUT_SECONDS = 120.0
"""A claim that was not touched for this many seconds is offered again."""

CHUNKS_PER_WORKER = 4
"""Chunks that the driver keeps in the spool for each worker, so that most of a sweep continues without the driver."""

POLL_SECONDS = 0.5
"""Seconds between two reads of the spool."""

MAX_FILES_AT_ONCE = 256
"""The largest number of files of outcomes that are read before they are stored."""

ID = re.compile("[0-9a-f]{16}")
"""The form of the identity of a cell."""

POLLS_PER_CENSUS = 20
"""After this many polls the driver checks that every open cell is offered or claimed, and that there are workers."""


@dataclass(frozen=True)
class Folder:
    """The spool of a store."""

    path: Path

    @staticmethod
    def of(store: Path) -> "Folder":
        return Folder(store / "spool")

    @property
    def todo(self) -> Path:
        return self.path / "todo"

    @property
    def taken(self) -> Path:
        return self.path / "taken"

    @property
    def done(self) -> Path:
        return self.path / "done"

    @property
    def closed(self) -> Path:
        """A file that exists when the driver has no more work."""
        return self.path / "closed"

    @property
    def worked(self) -> Path:
        """A file that exists once a worker has finished something."""
        return self.path / "worked"

    def put(self, chunk: Chunk, losses: int = 0) -> None:
        """Offer a chunk."""
        content = {
            "cells": [cell.id for cell in chunk.cells],
            "width": chunk.width,
            "source": chunk.source,
            "losses": losses,
        }
        replace_file(self.todo / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.json", sealed_page(content))

    def contents(self, place: Path) -> Iterator[Mapping[str, Any]]:
        """Yield the contents of the chunks in `todo` or `taken`."""
        for path in place.iterdir():
            yield _content(path)


# The driver ------------------------------------------------------------------------------------------------------------


@dataclass
class Spool:
    """A pool that works through files. Its `run` offers chunks and yields the outcomes of workers as they arrive.

    `workers`: the number of workers.
    `hire`: called with the folder of the store now and then, to start workers; does nothing if users start them.
    `silence`: the seconds after which an untouched claim is offered again.
    `_open`: the cells that were planned and have no outcome, each with its chunk.
    `_beats`: for each claim its last change, and when this driver saw it.
    `_used`: the spools that were used.
    `_at_work`: the cells that workers of an earlier driver had claimed.
    `_early`: outcomes of such cells that arrived before the plan asked for them.
    `_suspects`: the cells whose worker stopped responding, with the number of times that counted.
    `_isolated`: the suspect that is offered alone, when no other cell is open; only then a silence counts.
    """

    workers: int
    hire: Callable[[Path], None] = lambda store: None
    silence: float = CLAIM_TIMEOUT_SECONDS
    _open: dict[str, Chunk] = field(default_factory=dict)
    _beats: dict[str, tuple[int, float]] = field(default_factory=dict)
    _used: set[Path] = field(default_factory=set)
    _at_work: set[str] = field(default_factory=set)
    _early: dict[str, Outcome] = field(default_factory=dict)
    _suspects: dict[str, int] = field(default_factory=dict)
    _isolated: str = ""

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Tell workers that there will be no more chunks. They end when the present ones are finished."""
        for path in self._used:
            with contextlib.suppress(OSError):
                Folder(path).closed.touch()

    def run(
        self, work: Callable[[Chunk], Any], tasks: Iterator[Chunk], home: Path
    ) -> Iterator[tuple[Chunk, list[Outcome] | Exception]]:
        """Yield the outcomes of chunks as they arrive. `home` is the folder of the store; `work` is not used."""
        folder = Folder.of(home)
        try:
            self._begin(folder)
            for poll in itertools.count():
                self._fill(folder, tasks)
                if not self._open:
                    return
                if poll % POLLS_PER_CENSUS == 0:
                    self.hire(home)
                placed = self._placed(folder) if poll % POLLS_PER_CENSUS == POLLS_PER_CENSUS - 1 else None
                yield from self._take_in(folder)
                yield from self._put_back(folder)
                if placed is not None:
                    known = placed | self._suspects.keys()
                    self._offer(folder, [id for id in self._open if id not in known])
                self._isolate(folder)
                time.sleep(max(POLL_SECONDS, self.workers * POLL_SECONDS / 100))
        except OSError as error:
            raise BadInput(f"cannot use the spool '{folder.path}': {error.strerror or error}.") from None

    def _begin(self, folder: Folder) -> None:
        for place in (folder.todo, folder.taken, folder.done):
            place.mkdir(parents=True, exist_ok=True)
        folder.closed.unlink(missing_ok=True)
        for left in (
            folder.todo.iterdir()
        ):  # offered by another driver and not claimed: this driver plans these cells itself
            left.unlink(missing_ok=True)
        self._open.clear()
        self._beats.clear()
        self._early.clear()
        self._suspects.clear()
        self._isolated = ""
        self._at_work = {id for content in folder.contents(folder.taken) for id in content.get("cells", ())}
        self._used.add(folder.path)

    def _fill(self, folder: Folder, tasks: Iterator[Chunk]) -> None:
        """Offer chunks without the cells on which workers of an earlier driver still work."""
        offered = len(os.listdir(folder.todo))
        while offered < CHUNKS_PER_WORKER * self.workers and (chunk := next(tasks, None)) is not None:
            self._open |= {cell.id: chunk for cell in chunk.cells}
            fresh = tuple(cell for cell in chunk.cells if cell.id not in self._at_work)
            if fresh:
                folder.put(replace(chunk, cells=fresh))
                offered += 1

    def _take_in(self, folder: Folder) -> Iterator[tuple[Chunk, list[Outcome]]]:
        """Yield the outcomes that workers wrote, joined for the store. Outcomes of cells that are not open are dropped."""
        paths = sorted(folder.done.glob(f"*{seg.SUFFIX}"))[:MAX_FILES_AT_ONCE]
        for path in paths:
            self._early |= {o.id: o for outcomes in seg.left_in(path).values() for o in outcomes}
        by_chunk: dict[int, tuple[Chunk, list[Outcome]]] = {}
        for cell in [cell for cell in self._early if cell in self._open]:
            chunk = self._open.pop(cell)
            by_chunk.setdefault(id(chunk), (chunk, []))[1].append(self._early.pop(cell))
        yield from merge_results(by_chunk.values())
        self._early = {cell: outcome for cell, outcome in self._early.items() if cell in self._at_work}
        for path in paths:
            path.unlink(missing_ok=True)  # only now, after they were stored

    def _put_back(self, folder: Folder) -> Iterator[tuple[Chunk, Exception]]:
        """Offer silent claims again, in parts. A single cell is set aside.

        It is lost when its worker stopped responding three times while no other cell was open."""
        now = time.monotonic()
        beats = {}
        for path in folder.taken.iterdir():
            with contextlib.suppress(FileNotFoundError):
                beat = path.stat().st_mtime_ns
                last, since = self._beats.get(path.name, (beat, now))
                beats[path.name] = beat, since if beat == last else now
                if now - beats[path.name][1] > self.silence:
                    content = _content(path)
                    path.unlink()
                    cells = [id for id in content.get("cells", ()) if id in self._open]
                    if len(cells) != 1:
                        self._offer(folder, cells)
                        continue
                    losses = content.get("losses", 0) + (cells[0] == self._isolated)
                    if losses < MAX_LOSSES:
                        self._suspects[cells[0]] = losses
                    else:
                        chunk = self._open.pop(cells[0])
                        alone = tuple(cell for cell in chunk.cells if cell.id == cells[0])
                        reason = f"{MAX_LOSSES} times, with no other cell at work, its worker fell silent."
                        yield replace(chunk, cells=alone), Lost(reason)
                    if cells[0] == self._isolated:
                        self._isolated = ""
        self._beats = beats

    def _isolate(self, folder: Folder) -> None:
        """Offer a cell that was set aside, if no other cell is open."""
        self._suspects = {cell: losses for cell, losses in self._suspects.items() if cell in self._open}
        if self._isolated not in self._open:
            self._isolated = ""
        if self._suspects and self._open.keys() == self._suspects.keys():
            self._isolated, losses = self._suspects.popitem()
            self._offer(folder, [self._isolated], losses)

    def _placed(self, folder: Folder) -> set[str]:
        """Return the cells that are offered or claimed."""
        places = (folder.todo, folder.taken)
        return {
            id for place in places for content in folder.contents(place) for id in content.get("cells", ())
        }

    def _offer(self, folder: Folder, cells: list[str], losses: int = 0) -> None:
        """Offer cells again, in parts of their chunks."""
        wanted = set(cells)
        for chunk in {id(chunk): chunk for chunk in map(self._open.__getitem__, cells)}.values():
            rest = replace(chunk, cells=tuple(cell for cell in chunk.cells if cell.id in wanted))
            for part in rest.split() if len(rest) > 1 else [rest]:
                folder.put(part, losses)


# Workers ---------------------------------------------------------------------------------------------------------------


def serve(
    store: Path,
    cells: Callable[[], Cells],
    work: Callable[[Chunk], Iterator[list[Outcome]]],
    patience: float = 60.0,
) -> int:
    """Work on the chunks in the spool of a store. Returns the number of finished cells.

    It ends when the driver has closed the spool, or after some time without a chunk.

    `store`: the folder of the store.
    `cells`: returns the cells of the sweep; called again when a chunk names other cells.
    `work`: the function that runs a chunk.
    `patience`: the seconds without a chunk after which it ends.
    """
    folder = Folder.of(store)
    try:
        return _serve(folder, cells, work, patience)
    except OSError as error:
        raise BadInput(f"cannot use the spool '{folder.path}': {error.strerror or error}.") from None


def _serve(
    folder: Folder,
    cells: Callable[[], Cells],
    work: Callable[[Chunk], Iterator[list[Outcome]]],
    patience: float,
) -> int:
    me = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
    known = Cells([])
    foreign: set[str] = set()
    finished, idle_since = 0, time.monotonic()
    while True:
        claim = _claim(folder, me, foreign)
        if claim is None:
            if folder.closed.exists() or time.monotonic() - idle_since > patience:
                return finished
            time.sleep(POLL_SECONDS)
            continue
        content = _content(claim)
        wanted = seg.numbers(content.get("cells", ()))
        found = known.named(wanted)
        if found is None:
            known = cells()
            found = known.named(wanted)
        if found:
            chunk = Chunk(tuple(found), content["width"], content["source"])
            finished += _carry_out(folder, claim, chunk, content["losses"], work)
            idle_since = time.monotonic()
        else:  # damaged, or of a sweep that this worker does not know
            foreign.add(claim.name.partition("@")[0])
            with contextlib.suppress(FileNotFoundError):
                os.rename(claim, folder.todo / claim.name.partition("@")[0])


def _claim(folder: Folder, me: str, foreign: set[str]) -> Path | None:
    """Claim the oldest offered chunk by renaming its file, or return None."""
    try:
        names = sorted(os.listdir(folder.todo))
    except FileNotFoundError:
        return None
    for name in names:
        if name.endswith(".json") and name not in foreign:
            mine = folder.taken / f"{name}@{me}"
            with contextlib.suppress(FileNotFoundError):
                os.rename(folder.todo / name, mine)
                return mine
    return None


def _carry_out(
    folder: Folder,
    claim: Path,
    chunk: Chunk,
    losses: int,
    work: Callable[[Chunk], Iterator[list[Outcome]]],
) -> int:
    """Write the outcomes of a chunk, part by part. If this process is asked to stop, it offers the rest to other workers."""
    rest, name = chunk, claim.name.partition("@")[0]

    def give_back() -> None:
        if len(rest):
            folder.put(rest, losses)
        claim.unlink(missing_ok=True)

    try:
        with _beating(claim), on_exit(give_back):
            for number, part in enumerate(work(chunk)):
                rows = (seg.row(outcome, 0, chunk.width, outcome.made_by) for outcome in part)
                data = seg.encode(seg.gather(rows))
                replace_file(folder.done / f"{name}.{number:06d}-{zlib.crc32(data):08x}{seg.SUFFIX}", data)
                folder.worked.touch()
                rest = rest.without(part)
    except BaseException:
        give_back()
        raise
    claim.unlink(missing_ok=True)
    return len(chunk) - len(rest)


@contextlib.contextmanager
def _beating(claim: Path) -> Iterator[None]:
    """Touch the claim regularly while a chunk runs."""
    stop = threading.Event()

    def beat() -> None:
        while True:
            with contextlib.suppress(OSError):
                os.utime(claim)
            if stop.wait(HEARTBEAT_SECONDS):
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _content(path: Path) -> Mapping[str, Any]:
    """Return the content of a chunk file. The result is empty if the file is missing, damaged, or not of the lab."""
    try:
        content = unsealed_page(read_at_most(path, LARGEST_PAGE))
    except (OSError, Damaged):
        return {}
    cells, width, losses = (content.get(word) for word in ("cells", "width", "losses"))
    ours = isinstance(cells, list) and all(isinstance(cell, str) and ID.fullmatch(cell) for cell in cells)
    counted = all(type(count) is int and count >= 0 for count in (width, losses))
    return content if ours and counted and width and isinstance(content.get("source"), str) else {}
