"""Writes files atomically, and reads and writes JSON with a checksum."""

import contextlib
import errno
import fcntl
import json
import os
import socket
import stat
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lemmata.errors import BadInput

LARGEST_PAGE = 1 << 26
"""The largest JSON file, in bytes. Parsed, it takes about twenty times as much memory."""


class Damaged(Exception):
    """Raised for bytes that are not what was written. The message says what is wrong with them."""


def file_size(path: Path) -> int:
    """Return the size of a file. Raises `Damaged` for a broken link, a device or a pipe."""
    try:
        found = path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise Damaged("a link to a file that does not exist") from None
        raise
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(found.st_mode):
        raise Damaged("not a regular file")
    return found.st_size


def read_at_most(path: Path, limit: int) -> bytes:
    """Read a file. Raises `Damaged`, without reading, if it has more than `limit` bytes."""
    size = file_size(path)
    if size > limit:
        raise Damaged(f"of {size} bytes, more than the {limit} that are possible")
    with path.open("rb") as file:
        return file.read(size)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside a file, which replaces the file at the end. The file is never partial."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def replace_file(path: Path, data: bytes) -> None:
    """Write a file atomically. After a crash it is the old or the new one; when this returns, the new one is on the disk."""
    with replacing(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    flush_folder(path.parent)


def append_to_file(path: Path, data: bytes) -> None:
    """Append to a file. A partial append is removed again, because it would corrupt the next line."""
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
    """Flush the entries of a folder to the disk, so that renamed files last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def lock_folder(path: Path) -> int:
    """Lock a folder by the file `lock` in it, and return its handle. Raises `BadInput` if another process holds the lock."""
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


def sealed_line(content: Mapping[str, Any]) -> bytes:
    """Return content as a line of JSON that begins with its checksum."""
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def unsealed_line(line: bytes) -> dict[str, Any]:
    """Return the content of a line. Raises `Damaged` if its checksum is wrong."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        raise Damaged("damaged")
    content = json.loads(text)
    if not isinstance(content, dict):
        raise Damaged("not of this lab")
    return content


def sealed_page(content: Mapping[str, Any]) -> bytes:
    """Return content as indented JSON with a checksum as its last entry."""
    checksum = f"{zlib.crc32(json.dumps(content).encode()):08x}"
    return (json.dumps({**content, "checksum": checksum}, indent=2) + "\n").encode()


def unsealed_page(data: bytes) -> dict[str, Any]:
    """Return the content of a page. Raises `Damaged` unless every byte is as it was written."""
    try:
        content = json.loads(data)
        content.pop("checksum")
        right = data == sealed_page(content)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError):
        raise Damaged("damaged, or not of this lab") from None
    if not right:
        raise Damaged("damaged, or was changed by hand")
    return content
