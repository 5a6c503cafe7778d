"""Benchmarks are run by hand, so that nothing but this notices when the house moves under them."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from benchmarks import peers, readme, timing
from benchmarks.timing import Contestant, in_turns
from benchmarks.workload import Work, names, workload
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


@pytest.mark.parametrize("name", studies())
def test_sizes_that_grow_are_those_that_formulas_and_trials_know(name):
    step = workload(name).step
    assert step is not None
    assert set(step.growth) | set(step.tiny) <= set(step.sizes)
    for size, values in step.growth.items():
        assert all(isinstance(step.work(**{**step.sizes, size: value}), Work) for value in values)
        peers.built(step, {size: values[0]})


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


def test_an_unknown_workload_is_one_sentence(capsys):
    assert main(["bench", "multihaed"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("lemmata: unknown workload 'multihaed'; did you mean 'multihead'?")
    assert said.count("\n") == 1


def test_without_the_project_beside_it_the_package_says_where_benchmarks_are(capsys, monkeypatch, tmp_path):
    import lemmata.cli

    monkeypatch.setattr(lemmata.cli, "__file__", str(tmp_path / "lib" / "lemmata" / "cli.py"))
    assert main(["bench", "multihead"]) == 2
    assert "clone the project" in capsys.readouterr().err


def test_without_pytorch_it_says_how_to_install_it(capsys, monkeypatch):
    import benchmarks.run

    monkeypatch.setattr(benchmarks.run, "find_spec", lambda name: None)
    assert main(["bench", "multihead"]) == 2
    assert "pip install 'lemmata[bench]'" in capsys.readouterr().err


def test_the_readme_is_what_the_kept_results_say():
    assert (BENCHMARKS / "README.md").read_text() == readme.text()
    assert all(f"## {name}\n" in readme.text() for name in names())
