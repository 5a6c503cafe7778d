"""What `lemmata bench` does: measures workloads, prints what was found, and keeps it."""

import json
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

from benchmarks.timing import pin
from benchmarks.workload import names, workload
from lemmata.errors import BadInput, unknown
from lemmata.guard import double

PARTS = ("steps", "chunk", "figure", "growth", "extra")


def bench(name: str | None, only: str | None, paper: bool, rounds: int) -> None:
    """One workload, or all of them one after another, each in a process of its own."""
    if name is not None and name not in names():
        raise unknown("workload", name, names())
    if only is not None and only not in PARTS:
        raise unknown("part of a benchmark", only, PARTS)
    if rounds < 1:
        raise BadInput(f"--rounds takes a number of turns, at least 1, not {rounds}.")
    if find_spec("torch") is None:
        raise BadInput("the benchmarks are held against PyTorch: pip install 'lemmata[bench]'.")
    if name is None:
        for one in names():
            given = [sys.executable, "-m", "lemmata", "bench", one, "--rounds", str(rounds)]
            given += (["--only", only] if only else []) + (["--paper"] if paper else [])
            subprocess.run(given, check=True)
        return
    pin(1)
    load = workload(name)
    from benchmarks import measure, readme

    path = readme.kept(name)
    path.parent.mkdir(exist_ok=True)
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    result["machine"] = measure.machine()
    step, command = load.step, load.paper if paper else load.short
    with double():
        measures = {
            "steps": step and (lambda: measure.steps(name, step, rounds)),
            "chunk": step and (lambda: measure.chunk(step, rounds)),
            "figure": command and (lambda: measure.figure(load, command, rounds)),
            "growth": step and (lambda: measure.growth(step, rounds)),
            "extra": load.extra and (lambda: measure.extra(load.extra, paper)),
        }
        for part, measured in measures.items():
            if measured and only in (None, part):
                print(f"{name}: {part}", file=sys.stderr, flush=True)
                result["paper" if paper and part == "figure" else part] = measure.part(measured)
                path.write_text(json.dumps(result, indent=1) + "\n")
    if "growth" in result:
        from benchmarks.picture import draw

        draw(name, result["growth"]["growth"], path.with_suffix(".png"))
    print(readme.section(name, result))
