"""Benchmarks are run by hand, so that nothing but this notices when the house moves under them."""

import sys
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

from benchmarks import peers, picture, readme, shares, timing
from benchmarks.timing import Contestant, in_turns
from benchmarks.workload import names, workload
from lemmata.cli import main
from lemmata.study import studies

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*torch:DeprecationWarning"
)  # of PyTorch's parts by each other
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
SHORT = ("group-imbalance", "multihead")
"""Studies whose programs take no more than two or three seconds to compile when they are small."""


@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_every_benchmark_finds_what_it_imports(path):
    import_module(f"benchmarks.{path.stem}")


def test_every_study_is_a_workload_with_a_figure_of_its_own():
    for id in studies():
        load = workload(id)
        assert load.figure.split("/")[0] == id
        assert load.figure.split("/")[1] in studies()[id].figures


@pytest.mark.skipif(
    find_spec("torch") is None, reason="PyTorch is not installed (pip install 'lemmata[bench]')"
)
@pytest.mark.parametrize(
    "name", [pytest.param(id, marks=[pytest.mark.slow] * (id not in SHORT)) for id in studies()]
)
def test_all_contestants_compute_what_the_lab_does(name):
    step = workload(name).step
    assert step is not None
    found = peers.agreement(step, step.tiny, compiled=False)
    assert set(found) == {peers.EAGER, peers.EAGER_TWO, peers.FUNC, peers.JAX_RUN, peers.JAX_RUNS}


@pytest.mark.skipif(
    find_spec("torch") is None, reason="PyTorch is not installed (pip install 'lemmata[bench]')"
)
def test_a_contestant_that_computes_something_else_is_found_out():
    from dataclasses import replace

    step = workload("multihead").step
    assert step is not None
    wrong = replace(step, torch_loss=lambda weights, batch: 1.0001 * step.torch_loss(weights, batch))
    with pytest.raises(AssertionError, match="PyTorch eager, one thread does not compute what the lab does"):
        peers.agreement(wrong, step.tiny, compiled=False)


SIMULATORS = [
    pytest.param(id, name, id=f"{id}-{name}" if name else id)
    for id in studies()
    if (step := workload(id).step) is not None
    for name in step.simulators
]


@pytest.mark.parametrize(("id", "name"), SIMULATORS)
def test_sizes_that_grow_are_those_that_formulas_and_trials_know(id, name):
    step = workload(id).step
    assert step is not None
    one = step.simulators[name]
    assert set(one.growth) <= set(one.sizes)
    assert set(step.tiny) <= set(step.sizes)
    for size, values in one.growth.items():
        assert len(set(values)) > 1
        assert all(min(one.work(**{**one.sizes, size: value})) >= 0 for value in values)
        assert all(peers.built(one, {size: value}) for value in values)


@pytest.mark.parametrize("id", studies())
def test_every_simulator_of_a_trial_is_measured(id):
    step = workload(id).step
    assert step is not None
    kind = type(peers.built(step, {}))
    known = get_args(get_type_hints(kind).get("simulator"))
    measured = {name: peers.built(one, {}) for name, one in step.simulators.items()}
    assert set(known) <= set(measured)
    for name in known:
        assert measured[name].simulator == name  # pyright: ignore[reportAttributeAccessIssue]  (it has the field)


def test_a_step_costs_what_steps_add_to_a_call(monkeypatch):
    """A call costs 50 ms, and a step of all four runs 0.1 ms: a turn of 0.2 s holds 2000 of them."""
    done = []

    def seconds(work, count):
        work(count)
        return 0.05 + 1e-4 * count

    monkeypatch.setattr(timing, "_seconds", seconds)
    times = in_turns({"quick": Contestant(done.append, runs=4)}, rounds=2)
    assert done[-1] == 2001
    np.testing.assert_allclose(times["quick"], 1e-4 / 4)


def growth(size, **more):
    one = {"values": [1, 2], "seconds": [1e-3, 2e-3], "least": [1e-4, 2e-4], "exponent": 1.0, "expected": 1.0}
    return {"sizes": {size: 1}, "growth": {"cells": one, size: one}, **more}


def test_growth_is_told_and_drawn_for_every_simulator(tmp_path):
    found = growth("rows", simulator="row", others={"gram": growth("rows"), "direct": growth("pages")})
    said = readme._growth("any", found)
    assert "Growth of a step by `row` ([picture](results/any.png)):" in said
    assert "By `gram`:" in said
    assert "By `direct` (pages 1):" in said
    assert [said.count(f"| {size} |") for size in ("cells", "rows", "pages")] == [3, 2, 1]
    picture.draw("any", found, tmp_path / "some.png")


def test_growth_that_was_kept_without_other_simulators_is_told_and_drawn(tmp_path):
    assert readme._growth("any", growth("rows")).startswith("Growth of a step ([picture](results/any.png)):")
    picture.draw("any", growth("rows"), tmp_path / "one.png")


def test_parts_of_a_figure_add_up_to_the_whole(monkeypatch):
    now = iter((0.0, 1.0, 3.0, 7.0, 15.0, 31.0))
    monkeypatch.setattr(shares.time, "perf_counter", lambda: next(now))
    clock = shares.Clock()
    with clock.on("lab"), clock.on("plan"):  # at 0 and 1
        with clock.on("store"):  # from 3 to 7
            clock.add("compile", 0.5)
        clock.add("trace", 2.0)
    assert clock.spent == {"lab": 17.0, "plan": 8.0, "store": 3.5, "compile": 0.5, "trace": 2.0}


@pytest.mark.parametrize("gone", [(), ("plan", "store")], ids=["all", "those-of-before"])
def test_parts_of_a_figure_are_told_as_far_as_they_were_kept(gone):
    parts = [part for part in shares.PARTS if part not in gone]
    spent = dict.fromkeys(parts, 1.0)
    found = {
        "command": "any",
        "trainings": 1,
        "cold": 1.0,
        "warm": 1.0,
        "shares": {"cold": spent, "warm": spent},
    }
    said = readme._figure("any", found).splitlines()
    assert said[-4] == f"|  | {' | '.join(parts)} | whole |"
    assert said[-1].endswith(f"| {len(parts):.1f} s |")


def test_an_unknown_workload_is_one_sentence(capsys):
    assert main(["bench", "multihaed"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("lemmata: unknown workload 'multihaed'; did you mean 'multihead'?")
    assert said.count("\n") == 1


def test_without_the_project_beside_it_the_package_says_where_benchmarks_are(capsys, monkeypatch, tmp_path):
    import lemmata.commands

    monkeypatch.setattr(lemmata.commands, "__file__", str(tmp_path / "lib" / "lemmata" / "commands.py"))
    assert main(["bench", "multihead"]) == 2
    assert "clone the project" in capsys.readouterr().err


def test_without_pytorch_it_says_how_to_install_it(capsys, monkeypatch):
    import benchmarks.run

    monkeypatch.setattr(benchmarks.run, "find_spec", lambda name: None)
    assert main(["bench", "multihead"]) == 2
    assert "pip install 'lemmata[bench]'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["multihead", None], ids=["one", "all"])
def test_what_is_measured_begins_without_the_cache_of_the_bench(monkeypatch, name):
    import benchmarks.run

    begun = []
    monkeypatch.setattr(benchmarks.run, "find_spec", lambda name: True)
    monkeypatch.setattr(benchmarks.run, "ENVIRONMENT", {"HOME": "here"})
    monkeypatch.setattr(benchmarks.run.os, "execve", lambda *given: begun.append(given[-1]) or sys.exit())
    monkeypatch.setattr(benchmarks.run.subprocess, "run", lambda *_, env, **__: begun.append(env))
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "of the bench")
    with pytest.raises(SystemExit) if name else nullcontext():
        benchmarks.run.bench(name, None, False, 1)
    assert len(begun) == (1 if name else len(names()))
    assert all(set(told) <= {"HOME", "GLIBC_TUNABLES"} for told in begun)


def test_the_readme_is_what_the_kept_results_say():
    assert (BENCHMARKS / "README.md").read_text() == readme.text()
    assert all(f"## {name}\n" in readme.text() for name in names())
