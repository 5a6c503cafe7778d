"""What comes in from outside: other people's studies, sizes beyond all memory, changed code, engines that are brought."""

import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from importlib.metadata import EntryPoint
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

import lemmata as lm
from lemmata.cli import main
from lemmata.errors import BadInput
from lemmata.lab.outcome import Outcome, failed_record
from lemmata.lab.plan import plan
from lemmata.lab.pool import Pool
from lemmata.lab.run import carry_out
from lemmata.lab.store import Store
from lemmata.progress import silence
from lemmata.source import trial_digest
from lemmata.status import CONVERGED
from lemmata.study import studies, study
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import fields, fixed, put
from tests.toys import Decay, Square

# Other people's studies ------------------------------------------------------------------------------------------------

PLUG_IN = """
from lemmata.study import Study, study
own = Study("own", "Own", "", "", "plugged.rooms")
unregistered = Study("broken", "Broken", "", "", "plugged.broken")
double = Study("benign-overfitting", "Another", "", "", "plugged")
no_study = 5
"""


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    """A package that announces studies, good and bad."""
    for room in ("rooms", "broken"):
        (tmp_path / "plugged" / room).mkdir(parents=True)
        (tmp_path / "plugged" / room / "__init__.py").write_text("")
    (tmp_path / "plugged" / "__init__.py").write_text(PLUG_IN)
    for room in ("rooms", "broken"):
        (tmp_path / "plugged" / room / "figures.py").write_text("raise ArithmeticError('no\\nfigures')")
    (tmp_path / "plugged" / "rooms" / "lock.json").write_text('{"figures": {"fig1": "First"}, "claims": {}}')
    (tmp_path / "plugged" / "raising.py").write_text("raise ArithmeticError('never\\nloads')")
    (tmp_path / "plugged" / "leaving.py").write_text("import sys; sys.exit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    values = (
        "plugged.raising:STUDY",
        "plugged.leaving:STUDY",
        "plugged:double",
        "plugged:no_study",
        "plugged:own",
        "plugged:unregistered",
    )
    points = [EntryPoint(value.split(":")[-1].lower(), value, "lemmata.studies") for value in values]
    monkeypatch.setattr(sys.modules["lemmata.study"], "entry_points", lambda group: points)
    studies.cache_clear()
    yield
    studies.cache_clear()
    for name in [name for name in sys.modules if name.split(".")[0] == "plugged"]:
        del sys.modules[name]


def test_a_broken_plug_in_is_named_and_left_out_and_takes_nothing_along(plugged, capsys):
    assert main(["list"]) == 0
    said = capsys.readouterr()
    assert "own\t1\t0\tOwn\n" in said.out
    assert "\tBenign overfitting of a transformer\n" in said.out
    lines = said.err.strip().splitlines()
    assert len(lines) == 5
    assert "(plugged.raising:STUDY) is left out: ArithmeticError: never loads" in lines[0]
    assert "(plugged.leaving:STUDY) is left out: SystemExit: 3" in lines[1]
    assert "the id 'benign-overfitting' is taken already" in lines[2]
    assert "it is a int, not a Study" in lines[3]
    assert (
        "the module 'figures' of the study 'broken' cannot be loaded: ArithmeticError: no figures" in lines[4]
    )


def test_a_module_that_cannot_be_loaded_is_one_sentence(plugged, capsys):
    assert main(["run", "own/fig1"]) == 2
    assert "the module 'figures' of the study 'own' cannot be loaded: ArithmeticError: no figures" in (
        capsys.readouterr().err
    )


# Sizes and ranges ------------------------------------------------------------------------------------------------------


class Huge(Decay):
    """A training whose state no machine holds."""

    name: ClassVar = "toys/huge"
    size: int = fixed(default=1 << 50)

    def start(self, key):
        return jnp.ones((self.size,)), jnp.zeros(())


def test_a_training_that_does_not_fit_into_memory_is_refused_with_the_estimate():
    with pytest.raises(BadInput, match=r"'toys/huge' would take about 1\.68e\+07 GiB of memory"):
        plan(Sweep(Huge(), (), (0,)).cells, 1)


def test_a_sweep_that_does_not_fit_into_memory_is_refused_before_a_cell_is_built():
    many = tuple(map(float, range(1, 10_001)))
    sweep = Sweep(Square(), tuple(Axis(name, many, "value") for name in "abc"), (0,))
    with pytest.raises(BadInput, match="a sweep of 1000000000000 cells would take about"):
        _ = sweep.cells


@pytest.mark.parametrize("id", sorted(studies()))
def test_no_field_of_a_study_takes_what_is_no_number(id):
    template = study(id).template()
    for path, value in fields(template).items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            for nonsense in (
                "nan",
                "inf",
                "-inf",
                "1e400",
                "x",
                "",
                "-3" if isinstance(value, int) else "1e",
            ):
                with pytest.raises(BadInput):
                    put(template, path, nonsense)


@pytest.mark.parametrize(
    "error", [OverflowError("too large"), MemoryError("too much"), np.linalg.LinAlgError("no")]
)
def test_formulas_that_leave_the_numbers_of_a_computer_are_one_sentence(capsys, monkeypatch, error):
    def predict(trial):
        raise error

    monkeypatch.setattr(study("benign-overfitting").module("theory"), "predict", predict)
    assert main(["predict", "benign-overfitting"]) == 2
    assert (
        "the formulas of 'benign-overfitting' leave the numbers of a computer here" in capsys.readouterr().err
    )


def test_what_the_theorems_are_not_about_is_refused_by_predict(capsys):
    assert main(["predict", "benign-overfitting", "--set", "descent.target_loss=0"]) == 2
    assert "the theorems are about a target loss eps > 0" in capsys.readouterr().err


def test_a_graph_whose_distances_do_not_fit_into_memory_is_refused_by_predict(capsys):
    assert main(["predict", "graph-transformer", "--set", "data.nodes=1e9"]) == 2
    assert "the distances of 1000000000 nodes would take about" in capsys.readouterr().err


def test_one_axis_under_two_names_is_refused():
    sweep = Sweep(Decay(), (axis("rate", (0.1, 0.2), name="speed"),), (0,))
    with pytest.raises(BadInput, match="the axis 'speed' is given twice"):
        sweep.with_fields({"speed": "0.1", "rate": "0.2"})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "samples=2", "--set", "samples=3"], "'samples' is set twice"),
        (["--budget", "-5"], "add --adaptive"),
        (["--adaptive", "--budget", "-5"], "a number of trainings, not -5"),
        (["--adaptive", "--width", "inf"], "positive and finite, not inf"),
        (["--limit", "nan"], "some seconds, not nan"),
        (["--workers", "-1"], "between 0 and 100000, not -1"),
        (["--workers", "9" * 400], "between 0 and 100000, not 999"),
        (["--workers", "90000"], "90000 worker processes would take about"),
        (["--on", "spool", "--workers", "1000000000000"], "between 0 and 100000"),
        (["--limit", "3", "--workers", "0"], "needs worker processes"),
        (["--limit", "3", "--on", "spool"], "needs local workers"),
    ],
)
def test_what_would_be_ignored_or_never_end_is_refused(words, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "benign-overfitting/fig1", "--scale", "smoke", "--workers", "1", *words]) == 2
    assert says in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# Engines and failures --------------------------------------------------------------------------------------------------


def test_an_executor_of_ones_own_does_the_work():
    sweep = Sweep(Square(), (axis("value", (1.0, 2.0, 3.0)),), (0, 1))
    with ThreadPoolExecutor(2) as threads:
        results = lm.run(sweep, executor=threads)
    np.testing.assert_array_equal(results["square"].sel(seed=0), [1.0, 4.0, 9.0])


def test_the_first_failure_stops_a_run_that_was_told_to_fail_fast(tmp_path):
    sweep = Sweep(Square(), (axis("value", (2.0, -1.0, 3.0)),), (0,))
    with pytest.raises(BadInput, match="stopped at the first failed cell: ValueError: negative"):
        lm.run(sweep, tmp_path, fail_fast=True)
    assert Store(tmp_path).problems() == []
    assert float(lm.run(sweep, tmp_path)["square"].sel(value=3.0, seed=0)) == 9.0


def test_cells_of_other_code_are_said_and_computed_again(tmp_path, capsys):
    sweep = Sweep(Square(), (axis("value", (2.0, 3.0)),), (0,))
    record = {"status": np.int32(CONVERGED), "steps": np.int32(0), "square": np.float64(-7.0)}
    store = Store(tmp_path)
    with store.locked():
        store.create({})
        store.write([Outcome(cell.id, record, 0.1, source="other") for cell in sweep.cells], 1)
    np.testing.assert_array_equal(lm.run(sweep, tmp_path)["square"].sel(seed=0), [4.0, 9.0])
    assert "2 cells in " in (said := capsys.readouterr().err)
    assert "were made by other code and are computed again" in said


def test_a_picture_of_cells_of_other_code_is_refused_with_the_way_out(tmp_path):
    order = replace(study("benign-overfitting").figure("fig1").order("smoke"), out=tmp_path / "o")
    record = {"status": np.int32(CONVERGED), "steps": np.int32(0)}
    with order.store.locked():
        order.store.create(order.manifest())
        order.store.write([Outcome(cell.id, record, 0.1, source="other") for cell in order.sweep.cells], 1)
    with pytest.raises(BadInput, match="were made by other code and are not used; run again: lemmata run"):
        order.results()


def test_a_picture_of_nothing_but_failures_is_refused_with_the_reason(tmp_path):
    order = replace(study("benign-overfitting").figure("fig1").order("smoke"), out=tmp_path / "o")
    trial = order.sweep.template
    with order.store.locked():
        order.store.create(order.manifest())
        outcomes = [
            Outcome(c.id, failed_record(), 0.1, "no luck", "", trial_digest(trial)) for c in order.sweep.cells
        ]
        order.store.write(outcomes, 1)
    with pytest.raises(BadInput, match="every cell failed: no luck"):
        order.results()


def test_a_picture_that_cannot_be_written_is_one_sentence(tmp_path, monkeypatch):
    import matplotlib.figure

    figure = replace(
        study("benign-overfitting").figure("fig1"),
        picture=lambda results, verdicts: matplotlib.figure.Figure(),
    )
    order = replace(figure.order("smoke"), out=tmp_path / "o")
    results = xr.Dataset(attrs={"study": "benign-overfitting", "figure": "fig1"})
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot write the picture"):
        order.draw(results, [], folder=tmp_path / "file")
    assert order.draw(results, [], folder=tmp_path).exists()
    assert {path.name for path in tmp_path.iterdir()} == {"file", "fig1.png"}


def test_what_a_start_makes_on_the_way_must_fit_into_memory_too():
    class Fleeting(Decay):
        def start(self, key):
            return jnp.ones(()), jax.jit(lambda: jnp.sum(jnp.ones((10**7, 10**8))))()

    with pytest.raises(BadInput, match=r"one training of 'toys/decay' would take about 7\.45e"):
        plan(Sweep(Fleeting(), (), (0,)).cells, 1)


FILE = 'study = "benign-overfitting"\nfigure = "fig1"\nscale = "smoke"\n'


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (f"{FILE}[axes]\nsamples = [2]\ndata.samples = [3]\n", "the axis 'data.samples' is given twice"),
        (f"{FILE}[set]\ndata.samples = 2\n[axes]\nsamples = [3]\n", "set and made an axis"),
        (f"{FILE}seeds = {'9' * 5000}\n", "not a valid TOML file"),
        (f"{FILE}seeds = {'[' * 20_000}\n", "not a valid TOML file"),
        (f"{FILE}[set]\ndata.samples = {10**301}\n", "not 1000000000"),
    ],
)
def test_a_sweep_file_that_cannot_be_meant_is_one_short_sentence(
    tmp_path, monkeypatch, capsys, content, sentence
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sweep.toml").write_text(content)
    assert main(["run", "sweep.toml"]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said) < 300


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["run", "benign-overfitting/fig1", "--set", "data.samples=@/dev/zero"], "it is not a file"),
        (["run", "benign-overfitting/fig1", "--set", "data.samples=@huge"], "more than 10000000"),
        (["run", "benign-overfitting/fig1", "--set", "data.samples=@binary"], "it is not text"),
        (["run", "benign-overfitting/fig1", "--set", f"descent.log_at={'[' * 100_000}"], "takes "),
        (["run", "zero.toml"], "it is not a file"),
        (["run", "benign-overfitting/fig1", "--on", "dask://"], "'dask://' is not dask://HOST:PORT"),
        (["run", "benign-overfitting/fig1", "--on", "dask://host"], "'dask://host' is not dask://HOST:PORT"),
        (["run", "folder"], "'folder' is not a store of results"),
        (["figure", "folder"], "'folder' is not a store of results"),
        (["run", "benign-overfitting/fig1", "--scale", "smoke", "--out", "foreign"], "choose another folder"),
    ],
)
def test_a_hostile_word_is_one_sentence(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(10**10)
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "manifest.json").write_text('{"name": "of somebody else"}')
    assert main(words) == 2
    [said] = [line for line in capsys.readouterr().err.splitlines() if line.startswith("lemmata: ")]
    assert sentence in said


def test_a_finished_store_that_was_moved_is_read_without_a_write(tmp_path, monkeypatch):
    sweep = Sweep(Square(), (axis("value", (2.0, 3.0)),), (0,))
    order = {"trial": "square", "command": "lemmata run x --out here"}
    with silence() as told:
        carry_out(sweep, Store(tmp_path), order, Pool(), told)
        monkeypatch.setattr(Store, "create", lambda *_: pytest.fail("written"))
        rows = carry_out(
            sweep, Store(tmp_path), {**order, "command": "lemmata run x --out there"}, Pool(), told
        )
    assert rows.values["square"].tolist() == [4.0, 9.0]


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("lemmata run a/b; rm -rf /", "to repeat or resume: lemmata run 'a/b;' rm -rf /"),
        ("rm -rf /", None),
        ("lemmata run '", None),
        (["lemmata", "run"], None),
    ],
)
def test_what_a_manifest_says_does_nothing_in_a_terminal_or_a_shell(tmp_path, capsys, command, shown):
    store = Store(tmp_path)
    with store.locked():
        store.create(
            {"cells": 1, "sources": {}, "alone": True, "command": command, "started": "\x1b[2Jnow\nand then"}
        )
    assert main(["status", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "a sweep of its own, started  [2Jnow and then"
    assert lines[2:] == ([shown] if shown else [])
    assert main(["run", "\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err
