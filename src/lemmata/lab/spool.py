"""Work through files, for batch systems and machines that share nothing but a disk: no port, no accounting, nobody in charge.

Beside a store lies its spool. The driver puts chunks there (`todo`, lists of cell identities); whoever runs `lemmata work` on
the folder claims one by renaming it (`taken`), touches it while at work, and leaves outcomes as segments (`done`). Only the
driver takes them in. Workers go on when the driver dies, and the next driver finds what they left; a claim that is not
touched any more is put back. A chunk names cells and no code: a worker finds them in the sweep that the manifest describes.
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

from lemmata.ending import last_act
from lemmata.errors import BadInput
from lemmata.lab import segment as seg
from lemmata.lab.disk import Damaged, replace_file, sealed_page, unsealed_page
from lemmata.lab.outcome import Outcome
from lemmata.lab.pool import TRIES, Lost, in_one_go
from lemmata.lab.work import Chunk
from lemmata.sweep import Cells

BEAT = 5.0
"""Seconds between two signs of life of a worker."""

SILENCE = 120.0
"""A claim whose worker gave no sign for so many seconds is put back."""

AHEAD = 4
"""Chunks in the spool for each worker: most of a sweep goes on without its driver."""

LOOK = 0.5
"""Seconds between two looks into the spool."""

AT_ONCE = 256
"""Files that are taken in before they are kept."""

ID = re.compile("[0-9a-f]{16}")
"""How a cell is named."""

CENSUS = 20
"""After so many looks it is made sure that every cell is somewhere, and that there are workers."""


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
        """A file that is there when the driver has no more to do."""
        return self.path / "closed"

    @property
    def worked(self) -> Path:
        """A file that is there once a worker has done something."""
        return self.path / "worked"

    def put(self, chunk: Chunk, losses: int = 0) -> None:
        """Offer a chunk."""
        said = {
            "cells": [cell.id for cell in chunk.cells],
            "width": chunk.width,
            "source": chunk.source,
            "losses": losses,
        }
        replace_file(self.todo / f"{time.time_ns():020d}-{uuid.uuid4().hex[:8]}.json", sealed_page(said))

    def said(self, place: Path) -> Iterator[Mapping[str, Any]]:
        """What the chunks in `todo` or `taken` say."""
        for path in place.iterdir():
            yield _content(path)


# The driver ------------------------------------------------------------------------------------------------------------


@dataclass
class Spool:
    """Takes the place of a pool: its `run` offers chunks and gives back what workers leave, as it comes.

    `hire(store)` is asked now and then to see to it that there are workers; it does nothing where they are started by hand.
    Inside, `_open` are the cells that were planned and have no outcome, each with its chunk; `_at_work` those that workers of
    an earlier driver had claimed, and `_early` their outcomes that came before the plan asked for them.
    """

    workers: int
    hire: Callable[[Path], None] = lambda store: None
    silence: float = SILENCE
    _open: dict[str, Chunk] = field(default_factory=dict)
    _beats: dict[str, tuple[int, float]] = field(default_factory=dict)
    _used: set[Path] = field(default_factory=set)
    _at_work: set[str] = field(default_factory=set)
    _early: dict[str, Outcome] = field(default_factory=dict)

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Tell workers that nothing more will come; they end when they have done what is there."""
        for path in self._used:
            with contextlib.suppress(OSError):
                Folder(path).closed.touch()

    def run(
        self, work: Callable[[Chunk], Any], tasks: Iterator[Chunk], home: Path
    ) -> Iterator[tuple[Chunk, list[Outcome] | Exception]]:
        """Outcomes of chunks as they come in. `home` is the folder of the store; `work` is what workers do anyway."""
        folder = Folder.of(home)
        try:
            self._begin(folder)
            for look in itertools.count():
                self._fill(folder, tasks)
                if not self._open:
                    return
                if look % CENSUS == 0:
                    self.hire(home)
                placed = self._placed(folder) if look % CENSUS == CENSUS - 1 else None
                yield from self._take_in(folder)
                yield from self._put_back(folder)
                if placed is not None:
                    self._offer(folder, [id for id in self._open if id not in placed])
                time.sleep(max(LOOK, self.workers * LOOK / 100))
        except OSError as error:
            raise BadInput(f"cannot use the spool '{folder.path}': {error.strerror or error}.") from None

    def _begin(self, folder: Folder) -> None:
        for place in (folder.todo, folder.taken, folder.done):
            place.mkdir(parents=True, exist_ok=True)
        folder.closed.unlink(missing_ok=True)
        for left in folder.todo.iterdir():  # planned by another driver, and not begun: this one plans anew
            left.unlink(missing_ok=True)
        self._open.clear()
        self._beats.clear()
        self._early.clear()
        self._at_work = {id for said in folder.said(folder.taken) for id in said.get("cells", ())}
        self._used.add(folder.path)

    def _fill(self, folder: Folder, tasks: Iterator[Chunk]) -> None:
        """Offer chunks, less what a worker that an earlier driver had is still at."""
        offered = len(os.listdir(folder.todo))
        while offered < AHEAD * self.workers and (chunk := next(tasks, None)) is not None:
            self._open |= {cell.id: chunk for cell in chunk.cells}
            fresh = tuple(cell for cell in chunk.cells if cell.id not in self._at_work)
            if fresh:
                folder.put(replace(chunk, cells=fresh))
                offered += 1

    def _take_in(self, folder: Folder) -> Iterator[tuple[Chunk, list[Outcome]]]:
        """The outcomes that workers left, as they can be kept; those that nobody will ever wait for are left out."""
        paths = sorted(folder.done.glob(f"*{seg.SUFFIX}"))[:AT_ONCE]
        for path in paths:
            self._early |= {o.id: o for outcomes in seg.left_in(path).values() for o in outcomes}
        by_chunk: dict[int, tuple[Chunk, list[Outcome]]] = {}
        for cell in [cell for cell in self._early if cell in self._open]:
            chunk = self._open.pop(cell)
            by_chunk.setdefault(id(chunk), (chunk, []))[1].append(self._early.pop(cell))
        yield from in_one_go(by_chunk.values())
        self._early = {cell: outcome for cell, outcome in self._early.items() if cell in self._at_work}
        for path in paths:
            path.unlink(missing_ok=True)  # only now: they have been kept

    def _put_back(self, folder: Folder) -> Iterator[tuple[Chunk, Exception]]:
        """Claims whose workers are not heard of any more are offered again, in parts; given up after three losses alone."""
        now = time.monotonic()
        beats = {}
        for path in folder.taken.iterdir():
            with contextlib.suppress(FileNotFoundError):
                beat = path.stat().st_mtime_ns
                last, since = self._beats.get(path.name, (beat, now))
                beats[path.name] = beat, since if beat == last else now
                if now - beats[path.name][1] > self.silence:
                    said = _content(path)
                    path.unlink()
                    cells = [id for id in said.get("cells", ()) if id in self._open]
                    losses = said.get("losses", 0) + 1 if len(cells) == 1 else 0
                    if losses < TRIES:
                        self._offer(folder, cells, losses)
                    else:
                        chunk = self._open.pop(cells[0])
                        alone = tuple(cell for cell in chunk.cells if cell.id == cells[0])
                        yield replace(chunk, cells=alone), Lost(f"its worker fell silent {TRIES} times.")
        self._beats = beats

    def _placed(self, folder: Folder) -> set[str]:
        """The cells that are offered or at work."""
        places = (folder.todo, folder.taken)
        return {id for place in places for said in folder.said(place) for id in said.get("cells", ())}

    def _offer(self, folder: Folder, cells: list[str], losses: int = 0) -> None:
        """Offer cells again, in parts."""
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
    """Work on what lies in the spool of a store until nothing has come for `patience` seconds or its driver has closed it;
    returns how many cells were done.

    `cells()` gives the cells of the sweep; it is asked again when a chunk names others.
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
            time.sleep(LOOK)
            continue
        said = _content(claim)
        wanted = seg.numbers(said.get("cells", ()))
        found = known.named(wanted)
        if found is None:
            known = cells()
            found = known.named(wanted)
        if found:
            chunk = Chunk(tuple(found), said["width"], said["source"])
            finished += _carry_out(folder, claim, chunk, said["losses"], work)
            idle_since = time.monotonic()
        else:  # damaged, or of a sweep that is not known here
            foreign.add(claim.name.partition("@")[0])
            with contextlib.suppress(FileNotFoundError):
                os.rename(claim, folder.todo / claim.name.partition("@")[0])


def _claim(folder: Folder, me: str, foreign: set[str]) -> Path | None:
    """Take the oldest chunk that is offered: the one who can rename it has it."""
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
    """Leave the outcomes of a chunk, part by part; one that is told to end offers the rest to others."""
    rest, name = chunk, claim.name.partition("@")[0]

    def give_back() -> None:
        if len(rest):
            folder.put(rest, losses)
        claim.unlink(missing_ok=True)

    try:
        with _beating(claim), last_act(give_back):
            for number, part in enumerate(work(chunk)):
                rows = (seg.row(outcome, 0, chunk.width, {"source": outcome.source}) for outcome in part)
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
    """Signs of life while a chunk is under way."""
    stop = threading.Event()

    def beat() -> None:
        while True:
            with contextlib.suppress(OSError):
                os.utime(claim)
            if stop.wait(BEAT):
                return

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _content(path: Path) -> Mapping[str, Any]:
    """What a chunk file says; nothing if it is gone, damaged, or not one of the lab."""
    try:
        said = unsealed_page(path.read_bytes())
    except (OSError, Damaged):
        return {}
    cells, width, losses = (said.get(word) for word in ("cells", "width", "losses"))
    ours = isinstance(cells, list) and all(isinstance(cell, str) and ID.fullmatch(cell) for cell in cells)
    counted = all(type(count) is int and count >= 0 for count in (width, losses))
    return said if ours and counted and width and isinstance(said.get("source"), str) else {}
