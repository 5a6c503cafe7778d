"""How far a run has come, shown as a bar on standard error (or in a notebook)."""

import contextlib
from collections.abc import Callable, Iterator

from lemmata.ending import last_act

Progress = Callable[[int, int], None]
"""`told(done, total)`: cells finished so far, and all there are."""


Shown = Callable[[str], Progress]
"""`shown(name)`: who is told how far the run of that name has come."""


@contextlib.contextmanager
def bars() -> Iterator[Shown]:
    """Progress bars with time left, one for each run, from the first word on it until it is complete; then a line."""
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

        def begin(name: str) -> Progress:
            task = shown.add_task(name, start=False, total=None, visible=False)

            def told(done: int, total: int) -> None:
                shown.start_task(task)
                shown.update(task, completed=done, total=total, visible=True)
                if done == total:  # a line that stays, above those that move
                    console.print(shown.make_tasks_table([one for one in shown.tasks if one.id == task]))
                    shown.update(task, visible=False)

            return told

        yield begin


@contextlib.contextmanager
def bar(name: str) -> Iterator[Progress]:
    """A progress bar with time left."""
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
