"""Where the time of a figure goes: tracing, compiling, starts, steps, records, the rest of the lab, judging and drawing.

`python -m benchmarks.shares STUDY/FIGURE [--scale S] [--seeds N] [--set PATH=VALUE]` runs the figure in one process (so that
every second is seen) twice: with an empty compilation cache, and with what the first run left in it.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks import ENVIRONMENT
from lemmata.lab.process import large_pages

PARTS = ("import", "trace", "compile", "start", "step", "record", "lab", "judge", "draw")


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


def _run(options: argparse.Namespace) -> dict[str, float]:
    """The figure, with a clock on every part: what JAX says of tracing and compiling is taken off the part it happened in."""
    began = time.perf_counter()
    import jax

    from lemmata import programs
    from lemmata.desk import place_order
    from lemmata.lab import work
    from lemmata.lab.pool import Pool
    from lemmata.study import study

    programs.keep()  # as workers do
    spent: dict[str, float] = defaultdict(float)
    spent["import"] = time.perf_counter() - began
    inner = {"now": 0.0}

    def heard(event: str, seconds: float, **_: Any) -> None:
        part = {"trace": "trace", "jaxpr_to_mlir": "trace", "backend_compile": "compile"}
        for word, name in part.items():
            if event.startswith("/jax/core/compile/") and word in event:
                spent[name] += seconds
                inner["now"] += seconds

    jax.monitoring.register_event_duration_secs_listener(heard)  # pyright: ignore[reportArgumentType]

    def clocked(name: str, function: Any) -> Any:
        def timed(*given: Any) -> Any:
            inner["now"], start = 0.0, time.perf_counter()
            found = jax.block_until_ready(function(*given))
            spent[name] += time.perf_counter() - start - inner["now"]
            return found

        return timed

    work.begin, work.run_block = clocked("start", work.begin), clocked("step", work.run_block)
    work.lane_record = clocked("record", work.lane_record)
    changes = dict(one.split("=", 1) for one in options.set)
    order = place_order(
        options.figure, options.scale, changes=changes, seeds=options.seeds, out=options.inside
    )
    ran = time.perf_counter()
    with Pool(0) as pool:
        results = order.run(pool, lambda *_: None)
    known = sum(spent[name] for name in PARTS[1:6])
    spent["lab"] = time.perf_counter() - ran - known
    judged = time.perf_counter()
    verdicts = study(order.figure.study).check(results)
    spent["judge"] = time.perf_counter() - judged
    drawn = time.perf_counter()
    order.draw(results, verdicts)
    spent["draw"] = time.perf_counter() - drawn
    return {name: spent[name] for name in PARTS}


if __name__ == "__main__":
    main()
