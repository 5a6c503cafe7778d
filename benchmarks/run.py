"""What `lemmata bench` does: measures workloads, prints what was found, and keeps it."""

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from typing import Any

from benchmarks import ENVIRONMENT
from benchmarks.timing import pin
from benchmarks.workload import names, workload
from lemmata.errors import BadInput, unknown
from lemmata.guard import double
from lemmata.lab.process import large_pages, one_thread

PARTS = ("steps", "chunk", "figure", "growth", "extra")


def bench(name: str | None, only: str | None, paper: bool, rounds: int) -> None:
    """One workload, or all of them one after another, each in a process of its own. That begins with what a user's would: with
    the cache of this process, commands with an empty one would find what was compiled before."""
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
            subprocess.run(given, check=True, env=ENVIRONMENT)
        return
    as_workers = dict(ENVIRONMENT)
    large_pages(as_workers)
    if as_workers != ENVIRONMENT:  # read when a process starts: it has to start again
        os.execve(sys.executable, [sys.executable, "-m", "lemmata", *sys.argv[1:]], as_workers)
    pin(1)
    one_thread()
    load = workload(name)
    from benchmarks import measure, readme

    path = readme.kept(name)
    path.parent.mkdir(exist_ok=True)
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    result["machine"] = measure.machine()
    with double(), tempfile.TemporaryDirectory() as folder:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = (
            folder  # what an interrupted compilation left elsewhere does no harm
        )
        for part, measured in measure.parts(name, load, paper, rounds).items():
            if only in (None, part):
                print(f"{name}: {part}", file=sys.stderr, flush=True)
                result["paper" if paper and part == "figure" else part] = measure.dated(measured)
                path.write_text(json.dumps(result, indent=1) + "\n")
    if "growth" in result:
        from benchmarks.picture import draw

        draw(name, result["growth"], path.with_suffix(".png"))
    print(readme.section(name, result))
