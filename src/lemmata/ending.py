"""How a command ends when it is told to (Ctrl-C, SIGTERM): at once, wherever it is, with one sentence and its own exit code.

Nothing is unwound. An exception raised by a signal would fall into imports, compilations and callbacks that do not survive
it, or wait for a compilation to end; everything that is written is whole at every moment anyway, and workers end with their
driver. What is worth doing first (`last_act`) is done by the thread that hears the signal.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}

GRACE = 3.0
"""Seconds that the last acts may take together."""

SENTENCE = "lemmata: {}; what was finished is kept. Run the same command again to do the rest."

_acts: list[Callable[[], object]] = []
_armed = False


def arm() -> None:
    """From now on this process ends at once when it is told to; for programs, not for libraries."""
    global _armed
    if _armed:
        return
    _armed = True
    heard, told = os.pipe()
    os.set_blocking(told, False)
    threading.Thread(target=_listen, args=(heard,), daemon=True).start()
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    for number in CODES:
        signal.signal(number, lambda *_: None)  # the number is written to the pipe before Python looks at it


@contextlib.contextmanager
def last_act(act: Callable[[], object]) -> Iterator[None]:
    """Inside, `act` is what this process does before it ends: something short that may happen at any moment."""
    _acts.append(act)
    try:
        yield
    finally:
        _acts.remove(act)


def _listen(heard: int) -> None:
    number = 0
    while number not in CODES:  # other signals may have handlers of their own
        number = os.read(heard, 1)[0]
    acting = threading.Thread(target=_act, daemon=True)
    acting.start()
    acting.join(GRACE)
    said = "interrupted" if number == signal.SIGINT else "told to end"
    with contextlib.suppress(OSError):
        os.write(2, f"\n{SENTENCE.format(said)}\n".encode())
    os._exit(CODES[signal.Signals(number)])


def _act() -> None:
    for act in reversed(_acts):
        with contextlib.suppress(Exception):
            act()
