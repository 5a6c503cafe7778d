"""What the lab promises about carrying out a sweep."""

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from lemmata.descent import CAPPED, CONVERGED, DIVERGED, FAILED, train
from lemmata.lab.pool import run_local
from lemmata.lab.run import carry_out, missing
from lemmata.lab.store import Store
from lemmata.lab.work import Chunk, run_chunk
from lemmata.sweep import Sweep, axis
from tests.toys import Decay, Square

RATES = (0.9, 0.5, 0.1, 0.01, 2.5)


def sweep(seeds=(0, 1), rates=RATES):
    return Sweep(Decay(), (axis("rate", rates),), seeds)


def test_runs_stop_when_they_should_and_say_how(tmp_path):
    results = carry_out(sweep(), Store(tmp_path), {})
    expected = [math.ceil(math.log(1e-3) / math.log(1 - rate)) for rate in RATES[:3]]
    assert results.steps.sel(seed=0).values[:3].tolist() == expected
    assert results.status.sel(seed=0).values.tolist() == [CONVERGED] * 3 + [CAPPED, DIVERGED]
    assert results.steps.sel(rate=0.01, seed=0) == 100


def test_curves_hold_the_logged_steps_and_nothing_after_the_end(tmp_path):
    curve = carry_out(sweep(), Store(tmp_path), {}).x_curve.sel(rate=0.5, seed=0)
    assert curve.step.values.tolist() == [0, 1, 2, 5, 10, 50, 100]
    np.testing.assert_allclose(curve.values[:5], [1, 0.5, 0.25, 2.0**-5, 2.0**-10])
    assert np.isnan(curve.values[5:]).all()


@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_records_do_not_depend_on_the_width_of_the_chunk(width):
    cells = sweep().cells
    wide = {o.id: o.record for o in run_chunk(Chunk(tuple(cells), width))}
    for cell in cells:
        alone = train(cell.trial, cell.seed)
        for name, value in alone.items():
            np.testing.assert_allclose(wide[cell.id][name], value, rtol=1e-12)


def test_a_second_run_does_only_what_is_missing(tmp_path):
    store = Store(tmp_path)
    carry_out(sweep(seeds=(0,)), store, {})
    assert missing(sweep(seeds=(0,)), store) == []
    assert {cell.seed for cell in missing(sweep(seeds=(0, 1)), store)} == {1}
    before = store.entries()
    carry_out(sweep(seeds=(0, 1)), store, {})
    after = store.entries()
    assert {id: after[id] for id in before} == before


def test_an_interrupted_sweep_keeps_its_finished_chunks_and_resumes(tmp_path):
    store = Store(tmp_path)
    big = sweep(seeds=tuple(range(120)))

    def stop(cells):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry_out(big, store, {}, progress=stop)
    kept = set(store.done())
    assert 0 < len(kept) < len(big.cells)
    carry_out(big, store, {})
    entries = store.entries()
    assert len(entries) == len(big.cells)
    assert len({entry["row"] for entry in entries.values()}) == len(big.cells)
    assert store.problems() == []


def test_a_failed_cell_is_a_result_with_a_reason_and_takes_no_other_with_it(tmp_path):
    store = Store(tmp_path)
    results = carry_out(Sweep(Square(), (axis("value", (-1.0, 2.0, 3.0)),), (0,)), store, {})
    assert results.status.values.ravel().tolist() == [FAILED, CONVERGED, CONVERGED]
    assert results.square.values.ravel()[1:].tolist() == [4.0, 9.0]
    assert [e["reason"] for e in store.entries().values() if e["status"] == "failed"] == [
        "ValueError: negative"
    ]


def test_worker_processes_give_what_this_process_gives(tmp_path):
    here = carry_out(sweep(), Store(tmp_path / "here"), {})
    there = carry_out(sweep(), Store(tmp_path / "there"), {}, workers=2)
    np.testing.assert_allclose(there.draw.values, here.draw.values)
    np.testing.assert_allclose(there.x_curve.values, here.x_curve.values)


def test_a_worker_that_dies_loses_only_its_own_cell(tmp_path):
    cells = Sweep(Square(), (axis("deadly", (True, False)), axis("value", (1.0, 2.0))), (0,)).cells
    chunks = [Chunk((cell,), 1) for cell in cells]
    results = list(run_local(run_chunk, chunks, 1))
    assert len(results) == len(chunks)
    died = {chunk.cells[0].place["deadly"] for chunk, outcome in results if isinstance(outcome, Exception)}
    assert died == {True}


def test_workers_do_not_outlive_a_driver_that_was_killed(tmp_path):
    code = (
        "from pathlib import Path; from lemmata.lab.pool import run_local; from tests.toys import sleep_and_tell\n"
        "if __name__ == '__main__': list(run_local(sleep_and_tell, [Path('pid')], 1))"
    )
    (tmp_path / "driver.py").write_text(code)
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    with subprocess.Popen([sys.executable, "driver.py"], cwd=tmp_path, env=env) as driver:
        told = tmp_path / "pid"
        wait_for(lambda: told.exists() and told.read_text())
        driver.kill()
    wait_for(lambda: not Path(f"/proc/{told.read_text()}").exists())


def wait_for(met, seconds=60):
    deadline = time.time() + seconds
    while not met():
        assert time.time() < deadline
        time.sleep(0.1)


def test_larger_records_that_come_later_are_fitted_in(tmp_path):
    store = Store(tmp_path)
    store.create({})
    cells = sweep(seeds=(0, 1, 2)).cells[:3]
    for cell, size in zip(cells, (2, 3, 1), strict=True):
        [outcome] = run_chunk(Chunk((cell,), 1))
        record = {**outcome.record, "map": np.full((size, 2), float(size))}
        store.write([type(outcome)(outcome.id, record, 0.0)], 1)
    loaded = store.load(Sweep(Decay(), (axis("rate", (0.9,)),), (0, 1, 2)))["map"]
    assert loaded.shape == (1, 3, 3, 2)
    assert np.isnan(loaded.values[0, 0, 2]).all()
    assert (loaded.values[0, 1] == 3).all()


def test_verify_sees_records_that_are_gone(tmp_path):
    store = Store(tmp_path)
    carry_out(sweep(), store, {})
    import zarr

    zarr.open_group(tmp_path / "records.zarr")["status"].resize((3,))
    assert store.problems()


def test_the_manifest_is_kept(tmp_path):
    carry_out(sweep(), Store(tmp_path), {"command": "lemmata run x"})
    assert json.loads((tmp_path / "manifest.json").read_text())["command"] == "lemmata run x"
