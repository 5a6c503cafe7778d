"""What the commands do that work on stored results: draw, inspect, mend and export them, and compute cells of others."""

import argparse
import os
import shlex
from pathlib import Path

from lemmata import device
from lemmata.errors import few, message, printable
from lemmata.study import study
from lemmata.terminal import print_as


def figure(options: argparse.Namespace) -> None:
    from lemmata.desk import stored_order

    order = stored_order(options.name, options.scale, options.out)
    results = order.results()
    folder, verdicts = Path(options.to) if options.to else None, study(order.figure.study).check(results)
    if not options.venue:
        return print(order.draw(results, verdicts, options.format or "png", folder))
    from lemmata.session import save_picture

    name = f"{order.figure.id}-{options.venue}.{options.format or 'pdf'}"
    path = save_picture(order.picture(results, verdicts), (folder or order.store.path) / name, options.venue)
    print(path)
    print(path.with_suffix(".csv"))


def status(options: argparse.Namespace) -> None:
    from lemmata.lab.store import Store
    from lemmata.lab.store_status import store_folder, store_status

    store = Store(store_folder(options.dir) or options.dir)
    counts = store_status(store) if store.exists else None
    if counts is None:
        from lemmata.desk import stored_order

        order = stored_order(options.dir)
        store, counts = order.store, order.counts()
    manifest = store.manifest
    content = {"store": options.dir, **counts, "origins": store.origins(), "manifest": manifest}
    if options.format:
        print_as(options.format, list(counts), [list(map(str, counts.values()))], content)
        return
    said = {word: manifest.get(word, "") for word in ("study", "figure", "scale", "reading", "draw")}
    reading = f", {said['reading']}" if said["reading"] else ""
    name = f"{said['study']}/{said['figure']} ({said['scale']}{reading}), draw {said['draw']}"
    name = name if said["figure"] else "a sweep of its own"
    print(printable(f"{name}, started {manifest.get('started', 'some day')}"))
    print(", ".join(f"{name}: {count}" for name, count in counts.items()))
    for origin, rows in sorted(store.origins().items()):
        print(printable(f"{rows} rows made by {origin}"))
    for reason in few(sorted(store.reasons())) if counts["failed"] else ():
        print(f"  failed because: {message(reason)}")
    command = _own_command(manifest.get("command"))
    if command:
        print(f"to repeat or resume: {command}")


def verify(options: argparse.Namespace) -> int:
    from lemmata.desk import stored_folder
    from lemmata.lab.store import Store

    store = Store(stored_folder(options.dir))
    store.manifest  # noqa: B018  (says what is wrong where there is no store)
    problems = store.problems()
    for problem in problems:
        print(problem)
    print("whole" if not problems else f"{len(problems)} problems")
    return int(bool(problems))


def repair(options: argparse.Namespace) -> None:
    from lemmata.desk import stored_folder
    from lemmata.lab.store import Store

    for sentence in Store(stored_folder(options.dir)).repair() or ["nothing to mend"]:
        print(sentence)


def work(options: argparse.Namespace) -> None:
    from lemmata.desk import stored_order
    from lemmata.lab.pool import cache_compilations, one_thread
    from lemmata.lab.spool import serve
    from lemmata.lab.store import Store
    from lemmata.lab.work import run_chunk
    from lemmata.programs import enable_cache

    Store(options.dir).manifest  # noqa: B018  (says what is wrong where there is no store)
    device.select(os.environ)
    device.check()
    one_thread()
    cache_compilations()
    enable_cache()
    done = serve(Path(options.dir), lambda: stored_order(options.dir).sweep.cells, run_chunk)
    print(f"{done} cells done")


def export(options: argparse.Namespace) -> None:
    from lemmata.desk import stored_order
    from lemmata.session import export as write

    print(write(stored_order(options.dir).results(), Path(options.to)))


def _own_command(told: object) -> str:
    """A command of the lab that a manifest tells of, fit to be copied into a shell; nothing if it is none."""
    try:
        words = shlex.split(told) if isinstance(told, str) else []
    except ValueError:
        return ""
    return printable(shlex.join(words)) if words[:2] == ["lemmata", "run"] else ""
