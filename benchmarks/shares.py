"""Where the time of a figure goes: imports, tracing, compiling, starts, steps, records, the plan (cells, what is missing of
them, sizes of states, chunks), the store (rows written and read, results made of them), the rest of the lab, judging, drawing.

`python -m benchmarks.shares STUDY/FIGURE [--scale S] [--seeds N] [--set PATH=VALUE]` runs the figure in one process (so that
every second is seen) twice: with an empty compilation cache, and with what the first run left in it.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import ENVIRONMENT
from lemmata.lab.process import large_pages

PARTS = (
    *("import", "trace", "compile", "start", "step", "record"),
    *("plan", "store", "lab", "judge", "draw"),
)


def shares(figure: str, flags: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """Seconds of each part, cold and warm."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for turn in ("cold", "warm"):
            out = Path(folder) / turn
            command = [sys.executable, "-m", "benchmarks.shares", figure, *flags, "--inside", str(out)]
            where = {**ENVIRONMENT, "LEMMATA_CACHE": str(Path(folder) / "cache")}
            large_pages(where)  # as workers do
            root = Path(__file__).parent.parent
            done = subprocess.run(command, check=True, env=where, cwd=root, stdout=subprocess.PIPE, text=True)
            found[turn] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure")
    parser.add_argument("--scale", default="quick")
    parser.add_argument("--seeds", type=int)
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(_run(options)))
        return
    for turn, spent in shares(options.figure, tuple(sys.argv[2:])).items():
        whole = sum(spent.values())
        parts = ", ".join(f"{name} {spent[name]:.2f} s ({spent[name] / whole:.0%})" for name in PARTS)
        print(f"{turn}: {parts}; whole {whole:.1f} s")


class Clock:
    """Seconds by part. A part that goes on inside another is taken off that one, so that all parts add up to the outermost."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = defaultdict(float)
        self._inside = [0.0]

    def add(self, part: str, seconds: float) -> None:
        """What has just gone on inside."""
        self.spent[part] += seconds
        self._inside[-1] += seconds

    @contextlib.contextmanager
    def on(self, part: str) -> Iterator[None]:
        began = time.perf_counter()
        self._inside.append(0.0)
        try:
            yield
        finally:
            took = time.perf_counter() - began
            self.spent[part] += took - self._inside.pop()
            self._inside[-1] += took

    def put_on(
        self, owner: Any, part: str, *names: str, done: Callable[[Any], Any] = lambda found: found
    ) -> None:
        """On every call of these functions of a module or class, until what it gives is `done`."""
        for name in names:
            setattr(owner, name, self._clocked(part, getattr(owner, name), done))

    def _clocked(
        self, part: str, function: Callable[..., Any], done: Callable[[Any], Any]
    ) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            with self.on(part):
                return done(function(*given, **named))

        return timed


def _run(options: argparse.Namespace) -> dict[str, float]:
    """The figure, with a clock on every part; JAX says of tracing and compiling how long it took."""
    clock = Clock()
    with clock.on("lab"):
        _run_parts(options, clock)
    return {name: clock.spent[name] for name in PARTS}


def _run_parts(options: argparse.Namespace, clock: Clock) -> None:
    with clock.on("import"):
        import jax

        from lemmata import order as orders
        from lemmata import programs
        from lemmata.desk import place_order
        from lemmata.lab import run, work
        from lemmata.lab.plan import Plan
        from lemmata.lab.pool import Pool
        from lemmata.lab.store import Store
        from lemmata.study import study

        changes = dict(one.split("=", 1) for one in options.set)
        order = place_order(
            options.figure, options.scale, changes=changes, seeds=options.seeds, out=options.inside
        )
    programs.enable_cache()  # as workers do

    def heard(event: str, seconds: float, **_: Any) -> None:
        part = {"trace": "trace", "jaxpr_to_mlir": "trace", "backend_compile": "compile"}
        for word, name in part.items():
            if event.startswith("/jax/core/compile/") and word in event:
                clock.add(name, seconds)

    jax.monitoring.register_event_duration_secs_listener(heard)  # pyright: ignore[reportArgumentType]
    for part, name in (("start", "begin"), ("step", "run_block"), ("record", "lane_record")):
        clock.put_on(work, part, name, done=jax.block_until_ready)
    clock.put_on(run, "plan", "_begin")
    clock.put_on(Plan, "plan", "__next__", "record_result")
    clock.put_on(Store, "store", "create", "finished", "read", "write")
    clock.put_on(orders, "store", "assemble")
    with clock.on("plan"):
        _ = order.sweep.cells.ids
    with Pool(0) as pool:
        results = order.run(pool, lambda *_: None)
    with clock.on("judge"):
        verdicts = study(order.figure.study).check(results)
    with clock.on("draw"):
        order.draw(results, verdicts)


if __name__ == "__main__":
    main()
