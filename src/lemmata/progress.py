"""How far a run has come, shown as a bar on standard error (or in a notebook)."""

import contextlib
from collections.abc import Callable, Iterator

from lemmata.ending import last_act

Progress = Callable[[int, int], None]
"""`told(done, total)`: cells finished so far, and all there are."""


@contextlib.contextmanager
def bar(name: str) -> Iterator[Progress]:
    """A progress bar with time left."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Bar(*columns, console=console) as shown, last_act(lambda: console.show_cursor(True)):
        task = shown.add_task(name, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


@contextlib.contextmanager
def silence() -> Iterator[Progress]:
    """Nothing is shown."""
    yield lambda done, total: None
