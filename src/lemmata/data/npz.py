"""Reads and writes `.npz` files without pickles. Headers and sizes are checked before anything is read."""

import hashlib
import io
import json
import math
import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lemmata.data.sources import BROKEN
from lemmata.ending import on_exit
from lemmata.errors import BadInput, require

if TYPE_CHECKING:
    import numpy as np

STAMP = (1980, 1, 1, 0, 0, 0)
"""The date of all members: equal data give equal files."""

ABOUT = "about.json"
"""The member with the provenance."""

LARGEST_ABOUT = 1 << 20
LONGEST_HEADER = 10_000


def write_npz(path: Path, arrays: Mapping[str, "np.ndarray"], about: Mapping[str, Any]) -> None:
    """Write arrays and their provenance. The file is written under a private temporary name, then renamed."""
    import numpy as np

    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with on_exit(lambda: os.unlink(name)), os.fdopen(handle, "wb") as file:
            with zipfile.ZipFile(file, "w") as archive:
                archive.writestr(_member(ABOUT), json.dumps(about, indent=1))
                for key in sorted(arrays):
                    with archive.open(_member(f"{key}.npy"), "w", force_zip64=True) as member:
                        np.lib.format.write_array(
                            member, np.ascontiguousarray(arrays[key]), allow_pickle=False
                        )
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_npz(path: Path, limit: int) -> tuple[dict[str, "np.ndarray"], dict[str, Any]]:
    """Read the arrays and the provenance of a file. The provenance is empty for a file from elsewhere.

    Raises `BadInput` if the file is damaged, would take more than `limit` bytes, or holds Python objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            total = sum(member.file_size for member in members)
            require(
                total <= limit, f"'{path}' would take {total} bytes, more than the {limit} that are possible."
            )
            about = json.loads(archive.read(ABOUT)) if ABOUT in archive.namelist() else {}
            require(isinstance(about, dict), f"the provenance in '{path}' is damaged.")
            arrays = {
                member.filename.removesuffix(".npy"): _array(archive, member)
                for member in members
                if member.filename != ABOUT
            }
    except FileNotFoundError:
        raise BadInput(f"there is no file '{path}'.") from None
    except BadInput:
        raise
    except (*BROKEN, SyntaxError, NotImplementedError, RecursionError) as error:
        raise BadInput(f"'{path}' is damaged or no file of arrays: {error}.") from None
    return arrays, about


def content_sha256(arrays: Mapping[str, "np.ndarray"]) -> str:
    """Return the sha256 of the names, dtypes, shapes and values of arrays. It does not depend on the compression."""
    import numpy as np

    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.reshape(-1).view(np.uint8).data if array.size else b"")
    return digest.hexdigest()


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, STAMP)
    member.compress_type = zipfile.ZIP_DEFLATED
    member.external_attr = 0o644 << 16
    return member


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> "np.ndarray":
    """Read one array whose header agrees with the size of the member."""
    import numpy as np

    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read:
            raise ValueError(f"'{member.filename}' has an unknown version")
        shape, fortran, dtype = read[version](file, max_header_size=LONGEST_HEADER)
        if dtype.hasobject:
            raise ValueError(f"'{member.filename}' holds Python objects")
        if math.prod(shape) * dtype.itemsize != member.file_size - file.tell():
            raise ValueError(f"'{member.filename}' has a header that does not agree with its size")
        data = file.read()
    return np.frombuffer(io.BytesIO(data).getbuffer(), dtype).reshape(shape, order="F" if fortran else "C")
