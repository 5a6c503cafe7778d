"""What the lab promises about carrying out a sweep."""

import math
from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from lemmata.errors import BadInput
from lemmata.lab.outcome import Outcome
from lemmata.lab.pool import Pool
from lemmata.lab.run import Job, carry_out, carry_out_all
from lemmata.lab.store import Store
from lemmata.lab.work import Chunk, run_chunk
from lemmata.loop import train
from lemmata.results import assemble
from lemmata.source import digests
from lemmata.status import CAPPED, CONVERGED, DIVERGED, FAILED
from lemmata.sweep import Sweep, axis
from tests.toys import Decay, Square

RATES = (0.9, 0.5, 0.1, 0.01, 2.5)


def sweep(seeds=(0, 1), rates=RATES):
    return Sweep(Decay(), (axis("rate", rates),), seeds)


def ran(sweep, store, workers=0, told=lambda done, total: None):
    with Pool(workers) as pool:
        return assemble(sweep, carry_out(sweep, store, {}, pool, told))


def test_runs_stop_when_they_should_and_say_how(tmp_path):
    results = ran(sweep(), Store(tmp_path))
    expected = [math.ceil(math.log(1e-3) / math.log(1 - rate)) for rate in RATES[:3]]
    assert results.steps.sel(seed=0).values[:3].tolist() == expected
    assert results.status.sel(seed=0).values.tolist() == [CONVERGED] * 3 + [CAPPED, DIVERGED]
    assert results.steps.sel(rate=0.01, seed=0) == 100


def test_curves_hold_the_logged_steps_and_nothing_after_the_end(tmp_path):
    curve = ran(sweep(), Store(tmp_path)).x_curve.sel(rate=0.5, seed=0)
    assert curve.step.values.tolist() == [0, 1, 2, 5, 10, 50, 100]
    np.testing.assert_allclose(curve.values[:5], [1, 0.5, 0.25, 2.0**-5, 2.0**-10])
    assert np.isnan(curve.values[5:]).all()


@pytest.mark.parametrize("width", [1, 2, 3, 8])
def test_records_do_not_depend_on_the_width_of_the_chunk(width):
    cells = sweep().cells
    wide = {o.id: o.record for part in run_chunk(Chunk(tuple(cells), width)) for o in part}
    for cell in cells:
        alone = train(cell.trial, cell.seed)
        for name, value in alone.items():
            np.testing.assert_allclose(wide[cell.id][name], value, rtol=1e-12)


def test_a_second_run_does_only_what_is_missing(tmp_path):
    store, told = Store(tmp_path), []
    ran(sweep(seeds=(0,)), store)
    before = store.entries()
    ran(sweep(seeds=(0,)), store, told=lambda done, total: told.append(done))
    assert told == []
    ran(sweep(seeds=(0, 1)), store, told=lambda done, total: told.append((done, total)))
    assert told[0] == (5, 10)
    after = store.entries()
    assert {id: after[id] for id in before} == before


def test_an_interrupted_sweep_keeps_its_finished_chunks_and_resumes(tmp_path):
    store, big = Store(tmp_path), sweep(seeds=tuple(range(120)))

    def stop(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ran(big, store, told=stop)
    kept = store.entries()
    assert 0 < len(kept) < len(big.cells)
    whole = ran(big, store)
    assert whole.status.notnull().all()
    assert {id: store.entries()[id] for id in kept} == kept
    assert store.problems() == []


def counted(store):
    """Return a list that receives the progress of a run in this store, and the function that runs it."""
    told = []
    return told, lambda sweep, *siblings: carry_out(
        sweep, store, {}, Pool(), lambda *said: told.append(said), siblings=lambda: siblings
    )


def test_cells_that_another_store_holds_are_copied_with_their_origin_and_not_run_again(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    ran(sweep(rates=(0.9, 0.5)), first)
    told, run = counted(second)
    shared = sweep(rates=(0.9, 0.1))
    rows = run(shared, first.path, tmp_path / "none")
    assert told[0] == (2, 4)
    known, copies = first.entries(), second.entries()
    both = known.keys() & copies.keys()
    assert len(both) == 2
    assert all(known[id] == copies[id] for id in both)
    assert second.problems() == []
    alone = ran(shared, Store(tmp_path / "alone"))
    xr.testing.assert_equal(assemble(shared, rows).drop_vars("trial"), alone.drop_vars("trial"))


def test_failed_rows_and_rows_of_other_code_are_not_copied(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    squares = Sweep(Square(), (axis("value", (-1.0, 2.0, 3.0)),), (0,))
    ran(squares, first)
    [other] = next(run_chunk(Chunk(tuple(squares.cells)[1:2], 1)))
    first.write([replace(other, source="of other code")], 1)
    told, run = counted(second)
    run(squares, first.path)
    assert told[0] == (2, 3), "the two rows that succeeded; that of other code counts no more than before"
    fresh = Store(tmp_path / "fresh")
    fresh.create({})
    assert fresh.copy_from(first, squares.cells.ids, digests(squares.cells.trials)) == 2
    older = Store(tmp_path / "older")
    with older.locked():
        older.create({})
        older.write([replace(other, source="of other code")], 1)
    assert Store(tmp_path / "c").copy_from(older, squares.cells.ids, {other.source}) == 0


@pytest.mark.parametrize("harm", ["segment", "ledger", "manifest"])
def test_nothing_is_copied_from_a_damaged_store(tmp_path, harm):
    first = Store(tmp_path / "a")
    ran(sweep(), first)
    [segment, *_] = (first.path / "segments").iterdir()
    path = {
        "segment": segment,
        "ledger": first.path / "ledger.txt",
        "manifest": first.path / "manifest.json",
    }[harm]
    path.write_bytes(path.read_bytes()[:-40] + b"x" * 40)
    told, run = counted(Store(tmp_path / "b"))
    run(sweep(), first.path)
    assert told[0] == (0, 10)
    assert told[-1] == (10, 10)


def test_a_row_whose_variable_has_another_rank_here_is_not_copied(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    for store, shape in ((first, ()), (second, (2,))):
        with store.locked():
            store.create({})
            cell = next(iter(sweep(seeds=(len(shape),)).cells))
            record = {"status": np.int32(CONVERGED), "x": np.ones(shape)}
            store.write([Outcome(cell.id, record, 0.0, source="a")], 1)
    assert second.copy_from(Store(tmp_path / "a"), sweep().cells.ids, {"a"}) == 0
    assert len(second.entries()) == 1


def test_a_failed_cell_is_a_result_with_a_reason_and_takes_no_other_with_it(tmp_path):
    store = Store(tmp_path)
    results = ran(Sweep(Square(), (axis("value", (-1.0, 2.0, 3.0)),), (0,)), store)
    assert results.status.values.ravel().tolist() == [FAILED, CONVERGED, CONVERGED]
    assert results.square.values.ravel()[1:].tolist() == [4.0, 9.0]
    [failed] = [e for e in store.entries().values() if e.status == "failed"]
    assert failed.reason == "ValueError: negative"
    assert "in compute" in failed.traceback


def test_worker_processes_give_what_this_process_gives(tmp_path):
    here = ran(sweep(), Store(tmp_path / "here"))
    there = ran(sweep(), Store(tmp_path / "there"), workers=2)
    np.testing.assert_allclose(there.draw.values, here.draw.values)
    np.testing.assert_allclose(there.x_curve.values, here.x_curve.values)


class Eager(Pool):
    """A pool that takes all tasks before it runs the first, and runs the last one first."""

    def run(self, work, tasks, home=None):
        yield from super().run(work, reversed(list(tasks)), home)


def test_a_sweep_begins_before_another_is_complete_and_each_keeps_its_own(tmp_path):
    sweeps = [sweep(rates=(0.9, 0.5)), sweep(rates=(0.9,)), sweep(rates=(0.1, 0.01))]
    ran(sweeps[1], Store(tmp_path / "1"))
    told = []
    jobs = [
        Job(one, Store(tmp_path / str(i)), {}, lambda *said, i=i: told.append((i, *said)))
        for i, one in enumerate(sweeps)
    ]
    order, rows = zip(*carry_out_all(jobs, Eager()), strict=True)
    assert sorted(order) == [0, 1, 2]
    assert told[:2] == [(0, 0, 4), (2, 0, 4)]
    assert told[-1] == (0, 4, 4)
    for i, found in zip(order, rows, strict=True):
        alone = ran(sweeps[i], Store(tmp_path / f"alone-{i}"))
        xr.testing.assert_equal(assemble(sweeps[i], found).drop_vars("trial"), alone.drop_vars("trial"))
        assert Store(tmp_path / str(i)).counts().get("missing", 0) == 0
        with Store(tmp_path / str(i)).locked():
            pass


def test_a_sweep_whose_every_cell_fails_is_told_though_others_are_well(tmp_path):
    bad = Sweep(Square(), (axis("value", (-1.0, -2.0)),), (0,))
    jobs = [Job(one, Store(tmp_path / str(i)), {}, lambda *_: None) for i, one in enumerate([sweep(), bad])]
    with pytest.raises(BadInput, match="every cell failed"):
        list(carry_out_all(jobs, Pool()))
    assert ran(sweep(), Store(tmp_path / "0")).sizes["rate"] == len(RATES)
