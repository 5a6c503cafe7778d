"""What was measured, in words: a section for each workload, and `benchmarks/README.md` from all results that are kept."""

import json
from pathlib import Path
from typing import Any

from benchmarks import kernels, peers
from benchmarks.shares import PARTS
from benchmarks.workload import names, workload

HERE = Path(__file__).parent
RESULTS = HERE / "results"
HEAD = """# Benchmarks

Speed is measured here, never asserted by a timed test. `lemmata bench [WORKLOAD]` (needs `pip install 'lemmata[bench]'` and a
clone of the project) measures a workload and keeps what it found in `results/WORKLOAD.json`; `lemmata bench --readme` writes
this page from there. All contestants are held against each other first (the loss after three steps in double precision), and
then take turns in one process tree, pinned to cores; a time is that of the fastest turn. Machines are noisy, ratios less so.

- **PyTorch eager**: automatic differentiation, run after run. **`torch.func`**: all runs in `vmap`. **`torch.compile`**: the
  loss compiled. **JAX by hand**: the same loss, its gradient and the update in one compiled loop, a run alone and runs in
  `vmap`. None of them draws its batches: they are given. **Lab**: the study's own step in the lab's compiled loop, with its
  draws, stop rule and tracks; **the bare step**: the same without the loop's own work.
- **Limit**: what a step must do, counted from the formulas: the operations of its products at the speed of a large product on
  one core, its random words and exponentials at the speed at which many of them are made; or, where the numbers that it must
  touch do not fit into the largest cache, these at the speed at which memory is read. The larger time binds. Sums, comparisons
  and gathers are not counted, so that workloads made of them stay far from it. How far products alone would be is said, too.
- **Whole command**: `lemmata run` in a process of its own, with an empty compilation cache and with the one it left; the peer
  is charged the steps that the cells took, at its time of a step. Where the time goes is seen in one process with a clock on
  every part: the plan is cells, what is missing of them, sizes of states and chunks; the store is rows written and read, and
  results made of them; the lab is what is left.
- **Growth**: a bare step by each simulator that the lab has for the training, against the number of runs together (cells) and
  against each size, the others as they are; with the power that fits what was measured, and that of the limit.

"""


def written() -> Path:
    """The README, from the results that are there."""
    path = HERE / "README.md"
    path.write_text(text())
    return path


def text() -> str:
    found = {name: json.loads(path.read_text()) for name in names() if (path := kept(name)).exists()}
    machines = {told(result["machine"]) for result in found.values()}
    where = "Measured on " + "; and on ".join(sorted(machines)) + ".\n\n" if machines else ""
    return (
        HEAD
        + where
        + "\n".join(section(name, found.get(name, {})) for name in names())
        + KERNELS
        + kernels.section()
        + OTHERS
    )


KERNELS = """
## Kernels

`python -m benchmarks.kernels` measures every kernel against its own JAX form, with all other kernels on. Ratios are processor
seconds of the JAX form over those of the kernel: of the first steps of the figure's template (four runs together, or one where
runs go one by one; of the test for `chain_outcomes.cc`), and of the whole figure with empty caches (cold, the C++ compiler
included) and with the caches that this run left (warm). A kernel stays if it is 1.5 times as fast in steps or in the cold
figure. `threefry.cc` is below that in both; it makes the draws of all studies. An empty cell was not measured. `python -m
benchmarks.kernels --steps FILE` measures steps alone. Other programs were running (load 3 to 6 on two cores).

"""


OTHERS = """
## Not workloads

`python -m benchmarks.shares STUDY/FIGURE` says where the time of any figure goes, `python -m benchmarks.many_cells DIR` what a
million cells cost the driver, `python -m benchmarks.judge` puts the judge on trial, `python -m benchmarks.adaptive` counts the
trainings that adaptive runs save.
"""


def kept(name: str) -> Path:
    return RESULTS / f"{name}.json"


def told(machine: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {machine[name]}" for name in ("jax", "torch", "numpy"))
    return (
        f"{machine['cores']} cores of {machine['processor']}, {machine['memory'] / 2**30:.0f} GiB, "
        f"largest cache {machine['cache'] / 2**20:.0f} MiB; Python {machine['python']}, {versions}"
    )


def section(name: str, result: dict[str, Any]) -> str:
    """One workload."""
    parts = [f"## {name}\n\n{workload(name).about.strip()}\n"]
    tellers = {
        "steps": _steps,
        "chunk": _chunk,
        "figure": _figure,
        "paper": _figure,
        "growth": _growth,
        "extra": _extra,
    }
    if not result:
        parts.append(f"Not measured yet: `lemmata bench {name}`.\n")
    parts += [
        teller(name, result[part]) + _when(result[part]) for part, teller in tellers.items() if part in result
    ]
    return "\n".join(parts)


def _when(found: dict[str, Any]) -> str:
    before, after = found["load"]
    registers = f"; registers of {found['registers']} bits" if "registers" in found else ""
    return (
        f"\n\n({found['day']}{registers}; load of the machine {before:.1f} before and {after:.1f} after.)\n"
    )


def _steps(name: str, found: dict[str, Any]) -> str:
    times = {who: t["best"] for who, t in found["times"].items()}
    own, bound, limit, work = times[peers.LAB], found["bound"], found["limits"], found["work"]
    eager = min(times[who] for who in (peers.EAGER, peers.EAGER_TWO))
    machine = (
        f"; on both cores {eager / times[peers.LAB_TWO]:.1f} times its best" if peers.LAB_TWO in times else ""
    )
    lanes = f"{found['lanes']} lanes in the lab, {found['runs']} runs in `vmap`"
    lines = [
        f"One step of one run ({_sizes(found['sizes'])}; {found['precision']}; {lanes}):\n",
        _table(
            ("", "a step", "over the lab"), [(who, _time(t), f"{t / own:.2f}") for who, t in times.items()]
        ),
        f"\nOn one core the lab is {times[peers.EAGER] / own:.1f} times as fast as eager PyTorch on one thread{machine}. "
        f"The loop costs {100 * (own / times[peers.BARE] - 1):+.0f} % over the bare step. All agree: losses are at most "
        f"{max(found['apart'].values()):.0e} apart.",
        f"A step has {_many(work['operations'])} operations{_drawn(work)} and touches {_many(work['bytes'])} bytes; "
        f"the machine does {limit['operations'] / 1e9:.0f} GFLOP/s{_made(limit)} and reads {limit['bytes'] / 1e9:.1f} GB/s "
        f"on one core{_second(limit)}. {bound['by'].capitalize()} binds: {_time(bound['seconds'])}, "
        f"{100 * bound['share']:.0f} % of the lab's step{_alone(bound)}.",
    ]
    if peers.COMPILED not in times:
        lines.append("Without `torch.compile`: there is no C++ compiler here that it works with.")
    return "\n".join(lines)


def _drawn(work: dict[str, Any]) -> str:
    """What a step has beside its products."""
    parts = {"random words": work.get("words"), "exponentials": work.get("exponentials")}
    return "".join(f", {_many(count)} {name}" for name, count in parts.items() if count)


def _made(limit: dict[str, Any]) -> str:
    if "words" not in limit:
        return ""
    return f", {limit['words'] / 1e9:.1f} billion words, {limit['exponentials'] / 1e9:.1f} billion exponentials a second,"


def _alone(bound: dict[str, Any]) -> str:
    return f" (products alone: {100 * bound['products']:.0f} %)" if "products" in bound else ""


def _second(limit: dict[str, float]) -> str:
    words = {"product": "products", "reading": "reading", peers.LAB: "the lab"}
    gains = [
        f"{limit[f'two processes, {what}']:.2f} for {word}"
        for what, word in words.items()
        if f"two processes, {what}" in limit
    ]
    return f" (two processes: {', '.join(gains)} times one)" if gains else ""


def _chunk(name: str, found: dict[str, Any]) -> str:
    return (
        f"A chunk of {found['cells']} cells, {found['steps']} steps each, starts, tracks, looks and records included: the lab "
        f"{found['lab']:.2f} s, the same mathematics by hand in JAX {found['hand']:.2f} s; overhead "
        f"{100 * found['overhead']:+.1f} % (aim: at most 5 %)."
    )


def _figure(name: str, found: dict[str, Any]) -> str:
    lines = [f"The whole command, `{found['command']}`: {found['trainings']} trainings"]
    if "peer" in found:
        lines[0] += (
            f", {found['steps']} steps, for which eager PyTorch takes {found['peer']:.0f} s. Cold {found['cold']:.1f} s "
            f"({found['cold ratio']:.1f} times less), warm {found['warm']:.1f} s ({found['warm ratio']:.1f} times less)."
        )
    else:
        lines[0] += f". Cold {found['cold']:.1f} s, warm {found['warm']:.1f} s."
    rows = []
    parts = [part for part in PARTS if part in found["shares"]["cold"]]  # some were one part once
    for turn, spent in found["shares"].items():
        whole = sum(spent.values())
        rows.append((turn, *(f"{spent[p]:.2f} s, {spent[p] / whole:.0%}" for p in parts), f"{whole:.1f} s"))
    lines += ["\nIn one process its time goes into:\n", _table(("", *parts, "whole"), rows)]
    return "\n".join(lines)


def _growth(name: str, found: dict[str, Any]) -> str:
    by = f" by `{found['simulator']}`" if found.get("simulator") else ""
    lines = [f"Growth of a step{by} ([picture](results/{name}.png)):\n", _grown(found)]
    for simulator, one in found.get("others", {}).items():
        own = "" if one["sizes"] == found["sizes"] else f" ({_sizes(one['sizes'])})"
        lines += [f"\nBy `{simulator}`{own}:\n", _grown(one)]
    return "\n".join(lines)


def _grown(found: dict[str, Any]) -> str:
    rows = [
        (
            size,
            ", ".join(map(str, one["values"])),
            ", ".join(map(_time, one["seconds"])),
            f"{one['exponent']:.2f}",
            f"{one['expected']:.2f}",
        )
        for size, one in found["growth"].items()
    ]
    head = ("size", "values", "a step", "exponent", "by the formulas")
    return _table(head, rows)


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{size} {value}" for size, value in sizes.items())


def _extra(name: str, found: dict[str, Any]) -> str:
    rows = [
        (what, f"{one['value']:.4g} {one['unit']}", one["aim"]) for what, one in found["measures"].items()
    ]
    return _table(("measure", "found", "aim"), rows)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _many(count: float) -> str:
    return f"{count:.2g}" if count < 1e3 else f"{count:.2e}".replace("e+0", "e").replace("e+", "e")
