"""What the lab says when it is asked for something it cannot do: one sentence, with the closest match."""

import difflib
import os
import sys
from collections.abc import Iterable


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


def note(sentence: str) -> None:
    """Tell the user something that is not an error, beside the output."""
    print(f"lemmata: {sentence}", file=sys.stderr)
