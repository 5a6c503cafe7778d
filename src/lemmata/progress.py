"""Shows the progress of runs as bars on standard error, or in a notebook."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from lemmata.ending import on_exit

Progress = Callable[[int, int], None]
"""A function that is called with the number of finished cells and the number of all cells."""

Shown = Callable[[str], Progress]
"""A function that returns the `Progress` of a run, given its name."""


WIDE = 80
"""From this width of the terminal on there is room for a bar and the time that a run has taken so far."""


def wanted(progress: bool | None) -> bool:
    """Return whether progress is shown: as asked, or by default in a terminal and in a notebook."""
    return progress if progress is not None else sys.stderr.isatty() or "ipykernel" in sys.modules


@contextlib.contextmanager
def bars() -> Iterator[Shown]:
    """Show a progress bar for each run while it is under way, with the time left. A complete run leaves a line."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        *([BarColumn(), TimeElapsedColumn()] if console.width >= WIDE else []),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Bar(*columns, console=console) as shown, on_exit(lambda: console.show_cursor(True)):

        def begin(name: str) -> Progress:
            task = shown.add_task(name, start=False, total=None, visible=False)

            def update(done: int, total: int) -> None:
                shown.start_task(task)
                shown.update(task, completed=done, total=total, visible=True)
                if done == total:  # prints a line that stays above the bars
                    console.print(shown.make_tasks_table([one for one in shown.tasks if one.id == task]))
                    shown.update(task, visible=False)

            return update

        yield begin


@contextlib.contextmanager
def bar(name: str) -> Iterator[Progress]:
    """Show one progress bar with the time left."""
    with bars() as begin:
        yield begin(name)


@contextlib.contextmanager
def no_bars() -> Iterator[Shown]:
    """Nothing is shown."""
    yield lambda name: lambda done, total: None


@contextlib.contextmanager
def silence() -> Iterator[Progress]:
    """Nothing is shown."""
    yield lambda done, total: None
