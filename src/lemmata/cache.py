"""Caches files that can be made again: compiled kernels, traced programs, and the result of the compiler check.

The lab executes some of these files. So the folders are private (mode 0700), and files and folders of other users are refused.
Every file has a checksum beside it. A damaged file counts as missing and is made again.
"""

import contextlib
import hashlib
import os
import stat
import tempfile
from pathlib import Path

from lemmata.errors import BadInput
from lemmata.lab.disk import flush_folder, replacing


def cache_folder() -> Path:
    """Return the cache folder: `LEMMATA_CACHE`, or `~/.cache/lemmata`, or a temporary folder for a user without a home."""
    named = os.environ.get("LEMMATA_CACHE")
    if named:
        return Path(named)
    try:
        home = Path.home()
    except RuntimeError:  # no HOME and no entry for the user, as in many containers
        home = None
    if home is None or not os.access(home, os.W_OK):
        return Path(tempfile.gettempdir()) / f"lemmata-{os.getuid()}"
    return home / ".cache" / "lemmata"


def private_folder(name: str) -> Path:
    """Return a folder of the cache, which is created if necessary.

    Raises `BadInput` if another user owns it or may write to it, and `OSError` if it cannot be created."""
    folder = cache_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    require_private(folder, folder.stat())
    folder = folder / name
    folder.mkdir(mode=0o700, exist_ok=True)
    require_private(folder, folder.stat())
    return folder


def require_private_cache() -> None:
    """Raise `BadInput` if another user owns a folder of the cache or a file that `save` wrote, or may write to it.

    A run checks this before it starts, as otherwise every cell would fail with the same sentence."""
    top = cache_folder()
    folders = [top / name for name in ("checked", "kernels", "programs")]
    for path in (top, *folders, *(file for folder in folders for file in folder.glob("*"))):
        with contextlib.suppress(OSError):
            require_private(path, path.stat())


def load(path: Path) -> bytes | None:
    """Read a file that `save` wrote. Returns None if it is missing or differs from its checksum.

    Raises `BadInput` if another user owns it or may write to it."""
    try:
        with path.open("rb") as file:
            require_private(path, os.fstat(file.fileno()))
            data = file.read()
        expected = _checksum_file(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return data if expected == _checksum_line(path, data) else None


def save(path: Path, data: bytes) -> None:
    """Write a file and its checksum, each under a temporary name, flushed to disk, then renamed."""
    _write(_checksum_file(path), _checksum_line(path, data).encode())
    _write(path, data)


def require_private(path: Path, found: os.stat_result) -> None:
    """Raise `BadInput` for a file or folder that another user owns or may write to."""
    if found.st_uid != os.getuid():
        raise BadInput(
            f"'{path}' belongs to another user, and the lab runs what it finds there; "
            "set LEMMATA_CACHE to a folder of your own."
        )
    if stat.S_IMODE(found.st_mode) & (stat.S_IWGRP | stat.S_IWOTH):
        raise BadInput(
            f"other users may write to '{path}', and the lab runs what it finds there; "
            f"remove it, or set LEMMATA_CACHE to a folder that only you can write to."
        )


def _write(path: Path, data: bytes) -> None:
    with replacing(path) as temporary:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    flush_folder(path.parent)


def _checksum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _checksum_line(path: Path, data: bytes) -> str:
    """Return the line that `sha256sum` prints for the file."""
    return f"{hashlib.sha256(data).hexdigest()}  {path.name}\n"
