"""The status of a store is found without building cells, and equals the count over all cells."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import lemmata as lm
from lemmata.cli import main
from lemmata.lab.disk import replace_file, sealed_page
from lemmata.lab.outcome import Outcome, failed_record
from lemmata.lab.pool import Pool
from lemmata.lab.run import carry_out
from lemmata.lab.spool import Spool
from lemmata.lab.store import Store
from lemmata.lab.store_status import store_status
from lemmata.progress import silence
from lemmata.source import trial_digest
from lemmata.study import study
from lemmata.sweep import Axis, Sweep, axis
from tests.toys import Decay, Square


def sweep(values=(1.0, 2.0, -1.0), seeds=2):
    return Sweep(Square(), (axis("value", values),), tuple(range(seeds)))


class Imagined(Spool):
    """Return an outcome for every cell without running it."""

    def run(self, work, tasks, home):
        for chunk in tasks:
            yield (
                chunk,
                [
                    Outcome(cell.id, failed_record(), 0.1, "imagined", "", chunk.source)
                    for cell in chunk.cells
                ],
            )


def test_a_sweep_is_counted_without_its_cells(tmp_path):
    lm.run(sweep(), tmp_path)
    assert store_status(Store(tmp_path)) == {"cells": 6, "done": 4, "failed": 2, "diverged": 0, "capped": 0}


def test_two_places_of_a_grid_with_the_same_trial_are_one_cell(tmp_path):
    """Otherwise a figure whose designs share a point would never be complete, and no report would show it."""
    twice = Sweep(
        Square(), (Axis("design", ("one", "other"), lambda trial, _: replace(trial, value=2.0)),), (0, 1)
    )
    found = lm.run(twice, tmp_path)
    assert store_status(Store(tmp_path)) == {"cells": 2, "done": 2, "failed": 0, "diverged": 0, "capped": 0}
    assert found["square"].notnull().all()


def test_a_store_with_cells_of_another_order_does_not_pretend_to_know(tmp_path):
    lm.run(sweep(seeds=3), tmp_path)
    lm.run(sweep(), tmp_path)
    assert store_status(Store(tmp_path)) is None
    lm.run(sweep(seeds=3), tmp_path)
    assert store_status(Store(tmp_path))["cells"] == 9


def test_a_part_of_an_order_does_not_pass_for_the_whole(tmp_path):
    manifest = {"cells": 6}
    with silence() as told:
        carry_out(sweep((1.0,)), Store(tmp_path), manifest, Pool(), told)
    assert store_status(Store(tmp_path)) is None


def test_cells_of_other_code_are_not_counted(tmp_path):
    lm.run(sweep(), tmp_path)
    store = Store(tmp_path)
    lm.run(Sweep(Decay(), (), (0,)), tmp_path / "other")
    assert store.manifest["sources"] == {"tests.toys": trial_digest(Square())}
    manifest = {**store.manifest, "sources": {"tests.figures": "0" * 16}}
    replace_file(tmp_path / "manifest.json", sealed_page(manifest))
    assert store_status(store)["done"] == 0


def test_a_manifest_names_no_file_outside_the_code_and_nothing_that_is_no_text(tmp_path):
    lm.run(sweep(), tmp_path)
    (tmp_path / "outside.py").write_text("raise SystemExit")
    old = Store(tmp_path).manifest
    for sources in ({f"lemmata.{tmp_path}/outside": "0"}, {"": ""}, {"..": "1"}, {"lemmata": "\0"}):
        replace_file(tmp_path / "manifest.json", sealed_page({**old, "sources": sources}))
        assert store_status(Store(tmp_path))["done"] == 0
    for sources in ([], {"a": 1}, "text", None):
        replace_file(tmp_path / "manifest.json", sealed_page({**old, "sources": sources}))
        assert store_status(Store(tmp_path)) is None


def test_status_says_what_the_order_says_and_loads_no_jax(tmp_path, capsys):
    order = replace(study("benign-overfitting").figure("fig1").order("smoke"), out=tmp_path / "o")
    store, told = order.store, lambda done, all: None
    with pytest.raises(lm.BadInput, match="every cell failed: imagined"):
        carry_out(order.sweep, store, order.manifest(), Imagined(1), told)
    assert store_status(store) == order.counts()
    assert main(["status", str(tmp_path / "o")]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"benign-overfitting/fig1 (smoke), draw {order.figure.draw_number}, started ")
    assert f"cells: {len(order.sweep.cells)}, done: 0, failed: {len(order.sweep.cells)}," in said
    assert "failed because: imagined" in said
    code = "import sys; from lemmata.cli import main; main(sys.argv[1:]); print('jax' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code, "status", str(tmp_path / "o")],
        env={"PYTHONPATH": str(Path(lm.__file__).parents[1])}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert found.stdout == f"{said}False\n"
