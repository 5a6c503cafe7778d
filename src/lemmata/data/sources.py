"""Reads files of a folder, a tar or a zip archive by name, and never unpacks anything onto the disk.

Every read has a limit in bytes, which is checked before the data are read. Members with absolute names or `..` are refused.
"""

import gzip
import hashlib
import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from lemmata.errors import BadInput, clipped, require

MOST_ENTRIES = 1_000_000
"""The largest number of files in a folder or archive."""

LARGEST_ARCHIVE = 8 << 30
"""The largest number of bytes that a tar archive may unpack to: looking for its members unpacks it."""

BROKEN = (
    OSError,
    EOFError,
    ValueError,
    KeyError,
    RuntimeError,
    zlib.error,
    tarfile.TarError,
    zipfile.BadZipFile,
)
"""What the standard library raises for a damaged archive."""


class Source:
    """A folder or an archive that the user gives, as files with names.

    `where`: its path, for messages.
    `used`: the sha256 of each file that was read, by name. For an archive it is the checksum of the archive.
    """

    def __init__(
        self, where: Path, openers: Mapping[str, tuple[int, Callable[[], Any]]], used: dict[str, str]
    ):
        self.where, self.used = where, used
        self._openers = openers
        self._whole = bool(used)
        self._by_end: dict[str, list[str]] = {}
        for name in openers:
            self._by_end.setdefault(PurePosixPath(name).name, []).append(name)

    def find(self, *names: str) -> str | None:
        """Return the full name of the first file that is there, plain or with `.gz`. The least nested one wins."""
        for name in names:
            for end in (name, f"{name}.gz"):
                found = self._by_end.get(PurePosixPath(end).name, [])
                found = [one for one in found if f"/{one}".endswith(f"/{end}")]
                if found:
                    return min(found, key=lambda one: (one.count("/"), one))
        return None

    def read(self, limit: int, *names: str) -> bytes:
        """Read the first of these files that is there, and decompress it if its name ends with `.gz`.

        Raises `BadInput` if none is there, if it is damaged, or if it has more than `limit` bytes.
        """
        found = self.find(*names)
        require(found is not None, f"'{self.where}' holds no file '{names[0]}'.")
        assert found is not None
        size, opener = self._openers[found]
        too_large = f"'{found}' in '{self.where}' has more than the {limit} bytes that it may have."
        require(size <= limit, too_large)
        try:
            with opener() as file:
                data = file.read(limit + 1)
            if not self._whole:
                self.used[PurePosixPath(found).name] = hashlib.sha256(data).hexdigest()
            if found.endswith(".gz"):
                with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
                    data = file.read(limit + 1)
        except BROKEN as error:
            raise BadInput(f"'{found}' in '{self.where}' is damaged: {error}.") from None
        require(len(data) <= limit, too_large)
        return data


def open_source(path: Path) -> Source:
    """Open a folder, a tar archive or a zip archive. Raises `BadInput` if it is none of these."""
    if path.is_dir():
        return _folder(path)
    require(path.is_file(), f"there is no file or folder '{path}'.")
    try:
        if zipfile.is_zipfile(path):
            return _zip(path)
        if tarfile.is_tarfile(path):
            return _tar(path)
    except BROKEN as error:
        raise BadInput(f"the archive '{path}' is damaged: {error}.") from None
    raise BadInput(
        f"'{path}' is no folder and no tar or zip archive; for single files give the folder that holds them."
    )


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _folder(path: Path) -> Source:
    openers: dict[str, tuple[int, Callable[[], Any]]] = {}
    for folder, _, files in os.walk(path):
        for name in files:
            file = Path(folder) / name
            if file.is_file():  # no broken links, pipes and devices
                _require_few(len(openers), path)
                openers[file.relative_to(path).as_posix()] = (file.stat().st_size, _opener(file))
    return Source(path, openers, {})


def _opener(file: Path) -> Callable[[], Any]:
    return lambda: file.open("rb")


def _zip(path: Path) -> Source:
    archive = zipfile.ZipFile(path)
    openers: dict[str, tuple[int, Callable[[], Any]]] = {}
    for member in archive.infolist():
        _require_inside(member.filename, path)
        _require_few(len(openers), path)
        if not member.is_dir():
            openers[member.filename] = (member.file_size, lambda member=member: archive.open(member))
    return Source(path, openers, {path.name: sha256_of(path)})


def _tar(path: Path) -> Source:
    archive = tarfile.open(path)  # noqa: SIM115  (closed with the process: readers come back to it)
    openers: dict[str, tuple[int, Callable[[], Any]]] = {}
    total = 0
    for member in archive:
        total += member.size
        require(
            total <= LARGEST_ARCHIVE, f"the archive '{path}' unpacks to more than {LARGEST_ARCHIVE} bytes."
        )
        _require_inside(member.name, path)
        _require_few(len(openers), path)
        if member.isreg():  # links are never followed
            openers[member.name] = (member.size, lambda member=member: _member(archive, member))
    return Source(path, openers, {path.name: sha256_of(path)})


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Any:
    file = archive.extractfile(member)
    if file is None:
        raise KeyError(member.name)
    return file


def _require_inside(name: str, path: Path) -> None:
    parts = PurePosixPath(name.replace("\\", "/"))
    outside = parts.is_absolute() or ".." in parts.parts
    require(not outside, f"the archive '{path}' has a member outside of itself: '{clipped(name, 80)}'.")


def _require_few(count: int, path: Path) -> None:
    require(count < MOST_ENTRIES, f"'{path}' holds more than {MOST_ENTRIES} files.")
