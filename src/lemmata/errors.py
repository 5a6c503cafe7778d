"""What the lab says when it is asked for something it cannot do: one sentence, with the closest match."""

import difflib
import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

LARGEST_TEXT = 10_000_000
"""Bytes of a sweep file or a value that is read from a file."""


class BadInput(ValueError):
    """The user asked for something that cannot be; the message is one sentence fit to be printed as it is."""


def unknown(kind: str, given: str, allowed: Iterable[str]) -> BadInput:
    """The sentence for a name that does not exist, with the closest one that does.

    >>> print(unknown("figure", "fg1", ["fig1", "fig3"]))
    unknown figure 'fg1'; did you mean 'fig1'? Known: fig1, fig3.
    """
    names = list(allowed)
    close = difflib.get_close_matches(given, names, n=1, cutoff=0.4)
    hint = f"; did you mean '{close[0]}'?" if close else "."
    return BadInput(f"unknown {kind} '{given}'{hint} Known: {', '.join(names)}.")


def shortened(value: object) -> str:
    """A value as it stands in a sentence.

    >>> shortened(2.5), shortened(10**300)
    ('2.5', '10000000000000000000000000000000000000000000000000000000...')
    """
    try:
        said = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "that many digits"
    return said if len(said) <= 60 else f"{said[:56]}..."


def printable(text: str) -> str:
    """Text of others on one line, with nothing that a terminal would obey.

    >>> printable("one\\ntwo\\x1b[2J")
    'one two [2J'
    """
    return "".join(character if character.isprintable() else " " for character in text)


def require(condition: bool, sentence: str) -> None:
    """Raise ``BadInput(sentence)`` unless the condition is met."""
    if not condition:
        raise BadInput(sentence)


def require_memory(needed: float, what: str) -> None:
    """Refuse what would not fit into the memory of this machine, with the estimate."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    require(
        needed <= there,
        f"{what} would take about {needed / 2**30:.3g} GiB of memory, and this machine has {there / 2**30:.3g}.",
    )


def text_of(path: Path) -> str:
    """What a file of the user's holds; an `OSError` where it is none, or larger than anything that was written by hand."""
    size = path.stat().st_size
    if not path.is_file() or size > LARGEST_TEXT:
        said = "it is not a file" if not path.is_file() else f"it has {size} bytes, more than {LARGEST_TEXT}"
        raise OSError(errno.EINVAL, said)
    return path.read_text(encoding="utf-8")


def note(sentence: str) -> None:
    """Tell the user something that is not an error, beside the output."""
    print(f"lemmata: {printable(sentence)}", file=sys.stderr)
