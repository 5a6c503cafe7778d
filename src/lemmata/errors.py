"""Errors for users, each one sentence, and helpers that shorten the values in them."""

import difflib
import errno
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

LARGEST_TEXT = 10_000_000
"""The largest sweep file, or file with a value, in bytes."""

LONGEST_MESSAGE = 560
"""The largest number of characters in a message. The middle of a longer one is left out."""

LONGEST_WORD = 240
"""The largest number of characters in a word of a message, such as a path."""

MOST_REASONS = 5
"""The largest number of reasons of failed cells that are printed."""

LONGEST_LIST = 300
"""The largest number of characters in a list of names in a message."""


class BadInput(ValueError):
    """Raised for invalid input of a user. The message is one sentence, ready to be printed.

    >>> from lemmata import study
    >>> try:
    ...     study("multihaed")
    ... except BadInput as error:
    ...     print(str(error).partition("?")[0])
    unknown study 'multihaed'; did you mean 'multihead'
    """


def unknown(kind: str, given: str, allowed: Iterable[str]) -> BadInput:
    """Return the error for an unknown name, with the closest known one.

    >>> print(unknown("figure", "fg1", ["fig1", "fig3"]))
    unknown figure 'fg1'; did you mean 'fig1'? Known: fig1, fig3.
    """
    names = list(allowed)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.4)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    shown = names
    while len(", ".join(shown)) > LONGEST_LIST and len(shown) > 1:
        shown = shown[: -(-len(shown) // 2)]
    more = f" and {len(names) - len(shown)} more" if len(shown) < len(names) else ""
    return BadInput(f"unknown {kind} '{clipped(given, 60)}'{hint} Known: {', '.join(shown)}{more}.")


def shortened(value: object) -> str:
    """Return a value as text for a message, at most 60 characters in one line.

    >>> shortened(2.5), shortened(10**300)
    ('2.5', '10000000000000000000000000000000000000000000000000000000...')
    """
    try:
        text = " ".join(repr(value).splitlines())
    except ValueError:  # a whole number of thousands of digits
        return "that many digits"
    return text if len(text) <= 60 else f"{text[:56]}..."


def printable(text: str) -> str:
    """Return text in one line, without control characters, for terminals.

    >>> printable("one\\ntwo\\x1b[2J")
    'one two [2J'
    """
    return "".join(character if character.isprintable() else " " for character in text)


def clipped(text: str, length: int) -> str:
    """Cut the middle out of a text that is longer than `length`.

    >>> clipped("0123456789abcdef", 12)
    '0123 ... ef'
    """
    if len(text) <= length:
        return text
    tail = (length - 5) // 3
    return f"{text[: length - 5 - tail - 1]} ... {text[len(text) - tail :]}"


def message(text: object) -> str:
    """Return one printable line of bounded length."""
    words = (clipped(word, LONGEST_WORD) for word in printable(str(text)).split(" "))
    return clipped(" ".join(words), LONGEST_MESSAGE)


def few(reasons: Sequence[str]) -> list[str]:
    """Return the first reasons, and the number of the others."""
    more = [f"and {len(reasons) - MOST_REASONS} other reasons"] if len(reasons) > MOST_REASONS else []
    return [*reasons[:MOST_REASONS], *more]


def require(condition: bool, sentence: str) -> None:
    """Raise `BadInput(sentence)` unless the condition is true."""
    if not condition:
        raise BadInput(sentence)


def require_memory(needed: float, what: str) -> None:
    """Raise `BadInput` if the needed bytes exceed the memory of this machine."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    require(
        needed <= there,
        f"{what} would take about {needed / 2**30:.3g} GiB of memory, and this machine has {there / 2**30:.3g}.",
    )


def text_of(path: Path) -> str:
    """Read a text file of the user. Raises `OSError` if it is not a file, or too large."""
    size = path.stat().st_size
    if not path.is_file() or size > LARGEST_TEXT:
        reason = (
            "it is not a file" if not path.is_file() else f"it has {size} bytes, more than {LARGEST_TEXT}"
        )
        raise OSError(errno.EINVAL, reason)
    return path.read_text(encoding="utf-8")


def place_of(error: BaseException, folder: Path) -> str:
    """Return the last line of a folder's own files that an error passed, as ` (figures/steps.py, line 3)`, or nothing."""
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(folder):
            found = f" ({path.relative_to(folder.parent)}, line {line})"
    return found


def note(sentence: str) -> None:
    """Print a message that is not an error to standard error."""
    print(f"lemmata: {message(sentence)}", file=sys.stderr)
