"""Ends a command on Ctrl-C, SIGTERM or SIGHUP: at once, with one sentence and an exit code for each signal.

The signal raises no exception. An exception could hit imports, compilations and callbacks that do not survive it, or would
have to wait for a compilation. Nothing is lost by ending at once, as files are written atomically and workers end with their
driver. A thread receives the signal, runs the actions that were registered with `on_exit`, and ends the process.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

CODES = {signal.SIGHUP: 129, signal.SIGINT: 130, signal.SIGTERM: 143}

GRACE = 3.0
"""Seconds that all actions of `on_exit` together may take."""

SENTENCE = "lemmata: {}; what was finished is kept. Run the same command again to do the rest."

_exit_actions: list[Callable[[], object]] = []
_installed = False


def install_signal_handlers() -> None:
    """Let this process end at once on a signal. For programs, not for libraries."""
    global _installed
    if _installed:
        return
    _installed = True
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    threading.Thread(target=_listen, args=(read_end,), daemon=True).start()
    signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    for number in CODES:
        if number == signal.SIGHUP and signal.getsignal(number) == signal.SIG_IGN:
            continue  # started by nohup, so it shall outlive its terminal
        signal.signal(number, lambda *_: None)  # Python writes the number to the pipe


@contextlib.contextmanager
def on_exit(act: Callable[[], object]) -> Iterator[None]:
    """Call `act` if a signal ends the process inside this context. It must be short, and safe at any moment."""
    _exit_actions.append(act)
    try:
        yield
    finally:
        _exit_actions.remove(act)


def _listen(read_end: int) -> None:
    number = 0
    while number not in CODES:  # other signals may have handlers of their own
        number = os.read(read_end, 1)[0]
    acting = threading.Thread(target=_act, daemon=True)
    acting.start()
    acting.join(GRACE)
    reason = {int(signal.SIGHUP): "its terminal was closed", int(signal.SIGINT): "interrupted"}.get(number)
    with contextlib.suppress(OSError):
        os.write(2, f"\n{SENTENCE.format(reason or 'told to end')}\n".encode())
    os._exit(CODES[signal.Signals(number)])


def _act() -> None:
    for act in reversed(_exit_actions):
        with contextlib.suppress(Exception):
            act()
