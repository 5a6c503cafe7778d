"""A chunk gives an outcome for every cell, which depends neither on its division nor on other cells."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.guard import double
from lemmata.lab import pool as pool_module
from lemmata.lab import work
from lemmata.lab.pool import Pool
from lemmata.lab.store import Store
from lemmata.lab.work import Chunk, run_chunk
from lemmata.loop import train
from lemmata.source import trial_digest
from lemmata.status import CAPPED, CONVERGED, DIVERGED, FAILED
from lemmata.sweep import Sweep, axis
from lemmata.trial import random_key
from tests.toys import Broken, Decay, Odd, Square, drive

ROOT = Path(__file__).parents[2]
RATES = (0.9, 0.5, 0.1, 0.01, 2.5)


def sweep(seeds=(0, 1), rates=RATES, trial=None):
    return Sweep(trial or Decay(), (axis("rate", rates),), seeds)


def outcomes(cells, width=1, **more):
    return {o.id: o for part in run_chunk(Chunk(tuple(cells), width, **more)) for o in part}


def same(one, other) -> bool:
    return all(
        one[id].record.keys() == other[id].record.keys()
        and all(np.array_equal(v, other[id].record[n], equal_nan=True) for n, v in one[id].record.items())
        for id in one
    )


def test_every_cell_has_an_outcome_that_says_how_and_when_it_stopped():
    found = outcomes(sweep((0,)).cells, 4)
    status = [int(found[cell.id].record["status"]) for cell in sweep((0,)).cells]
    assert status == [CONVERGED] * 3 + [CAPPED, DIVERGED]
    assert [int(found[cell.id].record["steps"]) for cell in sweep((0,)).cells[:4]] == [3, 10, 66, 100]


def test_a_record_is_what_training_alone_gives_and_says_which_steps_it_logged():
    cells = sweep().cells
    found = outcomes(cells, 4)
    for cell in cells:
        record = found[cell.id].record
        for name, value in train(cell.trial, cell.seed).items():
            np.testing.assert_allclose(record[name], value, rtol=1e-12)
        assert record["logged"].tolist() == list(cell.trial.log_steps)
        assert record["x_curve"].shape == record["logged"].shape


def test_numbers_do_not_depend_on_the_width_the_order_or_how_often_a_chunk_was_lost():
    cells = sweep().cells
    wide = outcomes(cells, 8)
    assert same(wide, outcomes(cells, 2))
    assert same(wide, outcomes(cells[::-1], 4))
    parts = [
        found for part in Chunk(tuple(cells), 8).split() for found in outcomes(part.cells, part.width).items()
    ]
    assert same(wide, dict(parts))


def test_lanes_that_are_dropped_change_no_number(monkeypatch):
    cells = sweep().cells
    whole = outcomes(cells, 8)
    monkeypatch.setattr(work, "COMPILE_SECONDS", 0.0)
    monkeypatch.setattr(work, "FIRST_BLOCK", 4)
    assert same(whole, outcomes(cells, 8))


def test_keys_made_in_bulk_are_the_keys_of_the_cells():
    cells = sweep().cells
    with double():
        bulk = work._keys(cells, len(cells) + 3)[: len(cells)]
        alone = jnp.stack([random_key(cell.trial, cell.seed) for cell in cells])
        assert (jax.random.key_data(bulk) == jax.random.key_data(alone)).all()


def test_a_split_chunk_has_all_its_cells_and_the_first_ones_apart():
    chunk = Chunk(tuple(sweep(tuple(range(20))).cells), 4)
    parts = chunk.split()
    assert [cell for part in parts for cell in part.cells] == list(chunk.cells)
    assert [len(part) for part in parts] == [4, 4, 8, 16, 32, 36]
    assert [len(part) for part in parts[0].split()] == [2, 2]
    assert [len(part) for part in Chunk(chunk.cells[:2], 1).split()] == [1, 1]


def test_outcomes_come_in_parts(monkeypatch):
    cells = tuple(Sweep(Square(), (axis("value", (1.0, 2.0, 3.0)),), (0,)).cells)
    monkeypatch.setattr(work, "FLUSH_SECONDS", 60.0)
    assert [len(part) for part in run_chunk(Chunk(cells, 1))] == [3]
    monkeypatch.setattr(work, "FLUSH_SECONDS", 0.0)
    assert [len(part) for part in run_chunk(Chunk(cells, 1))] == [1, 1, 1]


def test_double_precision_is_not_left_switched_on_between_parts(monkeypatch):
    monkeypatch.setattr(work, "FLUSH_SECONDS", 0.0)
    before = jax.config.jax_enable_x64
    parts = run_chunk(Chunk(tuple(sweep().cells), 2))
    next(parts)
    assert jax.config.jax_enable_x64 == before
    parts.close()
    assert jax.config.jax_enable_x64 == before


# Failures ----------------------------------------------------------------------------------------------------------------


def test_a_cell_that_fails_takes_no_other_with_it_and_keeps_its_traceback():
    cells = Sweep(Square(), (axis("value", (-1.0, 2.0, 3.0)),), (0,)).cells
    found = outcomes(cells)
    assert [int(found[cell.id].record["status"]) for cell in cells] == [FAILED, CONVERGED, CONVERGED]
    bad = found[cells[0].id]
    assert bad.reason == "ValueError: negative"
    assert "in compute" in bad.traceback
    assert bad.seconds > 0


@pytest.mark.parametrize("function", ["start", "step", "record"])
def test_a_training_that_fails_is_recorded_with_its_traceback(function):
    found = outcomes(sweep((0,), (0.5, 0.9), Broken(function=function)).cells, 2)
    assert len(found) == 2
    for one in found.values():
        assert int(one.record["status"]) == FAILED
        assert one.reason == f"ArithmeticError: no {function}"
        assert "toys.py" in one.traceback


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("text", "TypeError: variable 'x' has type <U3"),
        ("object", "ValueError: variable 'x' is not an array"),
        ("none", "TypeError: variable 'x' has type object"),
        ("slash", "ValueError: 'a/b' cannot be the name of a variable"),
        ("dots", "ValueError: '..' cannot be the name"),
        ("surrogate", "ValueError: '\\ud800' cannot be the name"),
        ("number as name", "ValueError: 1 cannot be the name"),
        ("status", "ValueError: the name 'status' in a record is the lab's own"),
        ("not a mapping", "TypeError: a record must be a mapping"),
        ("bfloat16", "TypeError: variable 'x' has type bfloat16"),
    ],
)
def test_a_record_that_cannot_be_stored_is_a_failed_cell_with_a_reason(tmp_path, kind, reason):
    store = Store(tmp_path)
    assert sum(drive(Sweep(Odd(), (axis("kind", (kind, "fine")),), (0,)), store)) == 2
    [why] = [entry.reason for entry in store.entries().values() if entry.status == "failed"]
    assert why.startswith(reason)
    assert len(store.done()) == 1


def test_complex_numbers_are_kept_whole(tmp_path):
    one = Sweep(Odd(kind="complex"), (), (0,))
    list(drive(one, Store(tmp_path)))
    assert Store(tmp_path).read([one.cells[0].id]).values["z"].tolist() == [1 + 2j]


def test_own_names_in_the_record_of_a_training_are_refused(monkeypatch):
    monkeypatch.setattr(Decay, "record", lambda self, state: {"steps": state[0]})
    cells = sweep((0,), (0.5,), Decay(cap=7)).cells
    [one] = outcomes(cells, 2).values()
    assert one.reason == "ValueError: the name 'steps' in a record is the lab's own."


def test_code_that_changed_while_the_driver_ran_is_refused():
    cells = sweep((0,)).cells
    found = outcomes(cells, 2, source="another")
    assert all("was changed while the sweep was running" in one.reason for one in found.values())
    assert {one.source for one in outcomes(cells, 2).values()} == {trial_digest(Decay())}


# Through pool and store --------------------------------------------------------------------------------------------------


def test_a_failed_cell_is_run_again_by_the_next_run_and_its_old_row_is_not_used(tmp_path, monkeypatch):
    cells = Sweep(Square(), (axis("value", (-1.0, 2.0)),), (0,))
    store = Store(tmp_path)
    assert sum(drive(cells, store)) == 2
    assert sum(drive(cells, store)) == 1
    monkeypatch.setattr(Square, "compute", lambda self, key: {"square": 7.0})
    assert sum(drive(cells, store)) == 1
    assert sum(drive(cells, store)) == 0
    rows = store.read([cell.id for cell in cells.cells])
    assert rows.values["square"].tolist() == [7.0, 4.0]
    assert rows.values["status"].tolist() == [CONVERGED] * 2


def test_an_interrupted_sweep_keeps_what_was_finished_and_the_rest_gives_the_same_numbers(tmp_path):
    big = sweep(tuple(range(8)))
    ids = [cell.id for cell in big.cells]
    list(drive(big, Store(tmp_path / "whole")))
    going = drive(big, Store(tmp_path / "cut"))
    first = next(going)
    going.close()
    kept = Store(tmp_path / "cut").done()
    assert len(kept) == first < len(ids)
    assert sum(drive(big, Store(tmp_path / "cut"))) == len(ids) - first
    whole, cut = (Store(tmp_path / name).read(ids) for name in ("whole", "cut"))
    assert whole.values.keys() == cut.values.keys()
    for name, values in whole.values.items():
        np.testing.assert_array_equal(values, cut.values[name])


def test_worker_processes_give_the_bits_of_this_process_and_a_deadly_cell_is_one_failure(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(pool_module, "MAX_LOSSES", 1)  # three are tested with the pool
    cells = sweep()
    ids = [cell.id for cell in cells.cells]
    list(drive(cells, Store(tmp_path / "here")))
    with Pool(2) as pool:
        list(drive(cells, Store(tmp_path / "there"), pool))
        deadly = Sweep(Square(), (axis("deadly", (True, False)), axis("value", (1.0, 2.0))), (0,))
        deadly = replace(deadly, keep=lambda place: not place["deadly"] or place["value"] == 1.0)
        list(drive(deadly, Store(tmp_path / "deadly"), pool))
    here, there = (Store(tmp_path / name).read(ids).values for name in ("here", "there"))
    assert all(np.array_equal(here[name], there[name], equal_nan=True) for name in here)
    entries = Store(tmp_path / "deadly").entries()
    assert len(entries) == 3
    [reason] = [entry.reason for entry in entries.values() if entry.status == "failed"]
    assert reason == "Lost: its worker ended with exit code 1."


SCRIPT = """
from typing import ClassVar
from lemmata.lab.pool import Pool
from lemmata.lab.store import Store
from lemmata.sweep import Sweep, axis
from lemmata.trial import Computed
from tests.toys import Square, drive

class Cube(Computed):
    name: ClassVar = "script/cube"
    value: float = 2.0

    def compute(self, key):
        return {"cube": self.value ** 3}

print("begins")
for trial in (Square(), Cube()):
    store, sweep = Store(f"out-{trial.name.replace('/', '-')}"), Sweep(trial, (axis("value", (2.0, 3.0)),), (0,))
    print(sum(drive(sweep, store, Pool(2))), sum(drive(sweep, store, Pool(2))))
    print(store.read([cell.id for cell in sweep.cells]).values[trial.name.split("/")[1]])
"""


@pytest.mark.slow
def test_a_script_without_a_main_guard_runs_once_with_workers_also_with_a_trial_of_its_own(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])}
    said = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, env=env, text=True, capture_output=True, check=False
    )
    assert said.stderr == ""
    assert said.stdout.splitlines() == ["begins", "2 0", "[4. 9.]", "2 0", "[ 8. 27.]"]
