"""Measures every kernel against its own JAX form: in steps, and in a whole figure, cold and warm.

`python -m benchmarks.kernels [FILE ...] [--repeat N]` stores what it measures in `results/kernels.json`, which
`benchmarks/README.md` shows. Times are processor seconds of all processes, the C++ compiler included, as machines are shared.
The forms take turns, and the fastest turn of each counts. A kernel stays if it is 1.5 times as fast in steps or in the cold
figure.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import ENVIRONMENT

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "kernels.json"
ENOUGH = 1.5

FIGURES = {
    "chain_fresh.cc": ("chain-of-thought/fig7-3a", "--seeds", "1"),
    "chain_outcomes.cc": ("chain-of-thought/fig7-3a", "--seeds", "1"),
    "gcn_step.cc": ("gcn-sampling/fig5-1", "--seeds", "1"),
    "graph_sampling.cc": ("graph-transformer/fig3-3a", "--seeds", "2"),
    "graph_slope.cc": ("graph-transformer/fig3-3a", "--seeds", "2"),
    "heads_slope.cc": ("multihead/fig2", "--seeds", "1"),
    "imbalance_gradients.cc": ("group-imbalance/fig4-4b", "--seeds", "1"),
    "in_context_fresh.cc": ("in-context-learning/figE-2", "--seeds", "1"),
    "row_form.cc": ("benign-overfitting/fig1", "--seeds", "1"),
    "spatial_pulled.cc": ("spatial-structure/frozen-attention", "--seeds", "1"),
    "threefry.cc": ("chain-of-thought/fig7-3a", "--seeds", "1"),
    "vit_slope.cc": ("shallow-vit/fig1a", "--seeds", "1"),
}
"""For each kernel a figure that it is used in, with fewer seeds. The ratio is that of the whole figure."""

FIRST_STEPS = 20

TESTS = ("chain_outcomes.cc",)
"""Kernels that test a trained network, and are called in no step."""


def seconds(command: list[str], **environment: str) -> tuple[float, str]:
    """Return the processor seconds of a command and all that it starts, and its output."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", *command],
        check=True,
        cwd=HERE.parent,
        env=ENVIRONMENT | environment,
        stdout=subprocess.PIPE,
        text=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def measured(source: str, repeat: int) -> dict[str, Any]:
    """Return seconds of a kernel's figure, cold and warm, and microseconds of its steps, each with the kernel and without."""
    from lemmata.lab.process import large_pages

    figure, *flags = FIGURES[source]
    found: dict[str, dict[str, list[float]]] = {}
    for _ in range(repeat):
        for form, switch in (("kernel", "on"), ("jax", source)):
            with tempfile.TemporaryDirectory() as folder:
                where = {"LEMMATA_KERNELS": switch, "LEMMATA_CACHE": f"{folder}/cache"}
                large_pages(where)
                for turn in ("cold", "warm"):
                    command = ["benchmarks.shares", figure, *flags, "--inside", f"{folder}/{turn}"]
                    took, _ = seconds(command, **where)
                    found.setdefault(turn, {}).setdefault(form, []).append(took)
    _, printed = seconds(["benchmarks.kernels", "--steps", source])
    best = {turn: {form: min(times) for form, times in both.items()} for turn, both in found.items()}
    return {"figure": " ".join([figure, *flags]), "steps": json.loads(printed.splitlines()[-1]), **best}


def steps(source: str) -> dict[str, float] | None:
    """Return processor microseconds of a step with the kernel and without, as the runs of a small chunk take it.

    Every measurement takes the first `FIRST_STEPS` steps. Later ones can be those of runs that have stopped, which cost more or
    less. For the kernels of `TESTS` a step is the record of a run, and the result is None for a figure without steps."""
    import time

    import jax

    from lemmata.desk import place_order
    from lemmata.guard import double
    from lemmata.threefry import new_key
    from lemmata.trial import Descending, with_precision

    figure, *_ = FIGURES[source]
    with tempfile.TemporaryDirectory() as folder, double():
        template = place_order(figure, "quick", out=folder).sweep.template
        if not isinstance(template, Descending):
            return None
        trial, keys = with_precision(template), jax.random.split(new_key(0), 4 if template.lockstep else 1)
        loops, states = {}, {}
        for form, switch in (("kernel", "on"), ("jax", source)):
            os.environ["LEMMATA_KERNELS"] = switch
            jax.clear_caches()

            def begin(key: Any) -> Any:
                return trial.start(key)

            def first_steps(state: Any) -> Any:
                return jax.lax.fori_loop(0, FIRST_STEPS, lambda _, now: jax.vmap(trial.step)(now), state)

            work = jax.vmap(trial.record) if source in TESTS else first_steps
            states[form] = jax.block_until_ready(jax.jit(jax.vmap(begin))(keys))
            loops[form] = jax.jit(work).lower(states[form]).compile()
        found: dict[str, list[float]] = {form: [] for form in loops}
        for _ in range(7):
            for form, run in loops.items():
                calls, began = 0, time.process_time()
                while (
                    time.process_time() - began < 0.2
                ):  # so many calls that the resolution of the clock does not matter
                    jax.block_until_ready(run(states[form]))
                    calls += 1
                found[form].append((time.process_time() - began) / calls / len(keys) * 1e6)
        each = 1 if source in TESTS else FIRST_STEPS
        return {form: min(times) / each for form, times in found.items()}


def ratio(both: dict[str, float] | None) -> float | None:
    return None if both is None else both["jax"] / both["kernel"]


def earns(result: dict[str, Any]) -> bool:
    """Whether a kernel pays for its lines."""
    return max(ratio(result[what]) or 0 for what in ("steps", "cold")) >= ENOUGH


def section() -> str:
    """What is kept, as a section of the README."""
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    rows = [
        "| kernel | lines | step, µs | step | cold figure | warm figure | of |",
        "|---|---|---|---|---|---|---|",
    ]
    for source, result in sorted(results.items()):
        path = HERE.parent / "src" / "lemmata" / "kernels" / source
        if not path.exists():
            continue
        step = result.get("steps")
        micro = f"{step['kernel']:.1f} for {step['jax']:.1f}" if step else ""
        shown = (ratio(result.get(what)) for what in ("steps", "cold", "warm"))
        ratios = ["" if r is None else f"{r:.2f}" for r in shown]
        lines = str(len(path.read_text().splitlines()))
        rows.append("| " + " | ".join([source, lines, micro, *ratios, f"`{result['figure']}`"]) + " |")
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="*", metavar="FILE")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--steps", metavar="FILE", help="only print the times of a step")
    options = parser.parse_args()
    if options.steps:
        print(json.dumps(steps(options.steps)))
        return
    for source in options.sources or FIGURES:
        results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        results[source] = found = measured(source, options.repeat)
        RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
        ratios = (f"{what} {ratio(found[what]) or float('nan'):.2f}" for what in ("steps", "cold", "warm"))
        print(f"{source}: {', '.join(ratios)}; {'stays' if earns(found) else 'goes'}", flush=True)


if __name__ == "__main__":
    main()
