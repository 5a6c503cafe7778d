"""Downloads official files: a checksum each, a private temporary file, three tries, then the next mirror."""

import hashlib
import http.client
import os
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from lemmata.data.catalogue import Official
from lemmata.errors import BadInput, printable

TRIES = 3
PAUSE = 1.0
"""Seconds before the second try; twice as many before the third."""

TIMEOUT = 30.0
BLOCK = 1 << 16

Told = Callable[[int, int | None], None]
"""A function that is called with the number of bytes that have come, and the number of all bytes if it is known."""


class _Unusable(Exception):
    """Raised if another try at the same address would not help."""


def download(file: Official, folder: Path) -> Path:
    """Download an official file into a folder, from the first address that gives it, and return its path.

    A connection that breaks is tried three times. A file that is not there, is too large or has the wrong checksum leads to
    the next address at once. Raises `BadInput` with every address and its reason if none is left.
    """
    reasons = []
    for address in file.addresses:
        for attempt in range(TRIES):
            try:
                return _fetch(file, address, folder)
            except _Unusable as error:
                reason = str(error)
                break
            except (OSError, http.client.HTTPException) as error:
                reason = str(getattr(error, "reason", error)) or type(error).__name__
                if attempt < TRIES - 1:
                    time.sleep(PAUSE * 2**attempt)
        reasons.append(f"{address} ({printable(reason)})")
    raise BadInput(f"cannot download '{file.name}' from {', nor from '.join(reasons)}")


def _fetch(file: Official, address: str, folder: Path) -> Path:
    """Download a file from one address. The file has its name only after all checks."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=folder)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as out:
            sha256 = _receive(file, address, out.write)
        if file.sha256 is not None and sha256 != file.sha256:
            raise _Unusable(f"the sha256 is {sha256}, not {file.sha256}")
        path = folder / file.name
        os.replace(temporary, path)
        return path
    finally:
        temporary.unlink(missing_ok=True)


def _receive(file: Official, address: str, write: Callable[[bytes], object]) -> str:
    """Receive the bytes of a file, at most `limit` of them, and return their sha256."""
    request = urllib.request.Request(address, headers={"User-Agent": "lemmata"})
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code >= 500:
            raise
        raise _Unusable(f"HTTP {error.code} {error.reason}") from None
    with answer:
        if address.startswith("https:") and not answer.geturl().startswith("https:"):
            raise _Unusable("it leads to an address without encryption")
        length = answer.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        digest, received, told = hashlib.sha256(), 0, _progress(file.name)
        while block := answer.read(BLOCK):
            received += len(block)
            if max(received, total or 0) > file.limit:
                raise _Unusable(f"it has more than {file.limit} bytes")
            digest.update(block)
            write(block)
            told(received, total)
    if total is not None and received < total:
        raise ConnectionError(f"cut off after {received} of {total} bytes")
    told(received, received)
    return digest.hexdigest()


def _progress(name: str) -> Told:
    """Show the progress on standard error: a line that changes in a terminal, one line at the end elsewhere."""
    terminal = sys.stderr.isatty()
    shown = [0.0]

    def told(received: int, total: int | None) -> None:
        done = received == total
        if not done and (not terminal or time.monotonic() - shown[0] < 0.2):
            return
        if done and shown[0] < 0:
            return
        shown[0] = -1.0 if done else time.monotonic()
        share = f" of {total / 1e6:.1f}" if total else ""
        line = f"lemmata: {name}: {received / 1e6:.1f}{share} MB"
        print(
            f"\r{line}" if terminal else line,
            end="\n" if done or not terminal else "",
            file=sys.stderr,
            flush=True,
        )

    return told
