"""Files that survive a crash whole, and text that knows its own checksum."""

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


class Damaged(Exception):
    """Bytes are not what was written; says what is wrong with them."""


@contextlib.contextmanager
def taking_its_place(path: Path) -> Iterator[Path]:
    """A temporary name beside a file, which takes its place at the end: at no moment there is half a file."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that after any crash it is the old one or the new one, whole, and lasts when this returns."""
    with taking_its_place(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    flush_folder(path.parent)


def append_to_file(path: Path, data: bytes) -> None:
    """Add to the end of a file; what could not be added in full is taken away again, as it would spoil what follows."""
    before = path.stat().st_size if path.exists() else 0
    try:
        with path.open("ab") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            os.truncate(path, before)
        raise


def flush_folder(path: Path) -> None:
    """Make renamed files last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sealed_line(said: Mapping[str, Any]) -> bytes:
    """A line that begins with its checksum."""
    text = json.dumps(said, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def unsealed_line(line: bytes) -> dict[str, Any] | None:
    """What a line says; nothing if it is not as it was written."""
    told, _, text = line.partition(b" ")
    return json.loads(text) if told == b"%08x" % zlib.crc32(text) else None


def sealed_page(said: Mapping[str, Any]) -> bytes:
    """A JSON file for people to read, with a checksum over the rest."""
    checksum = f"{zlib.crc32(json.dumps(said).encode()):08x}"
    return (json.dumps({**said, "checksum": checksum}, indent=2) + "\n").encode()


def unsealed_page(data: bytes) -> dict[str, Any]:
    """What a page says; `Damaged` unless every byte is as it was written."""
    try:
        said = json.loads(data)
        said.pop("checksum")
        right = data == sealed_page(said)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise Damaged("damaged, or not of this lab") from None
    if not right:
        raise Damaged("damaged, or was changed by hand")
    return said
