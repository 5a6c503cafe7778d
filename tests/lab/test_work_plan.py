"""A plan gives every missing cell once, compiles each program once, and lets workers finish together."""

import heapq
from dataclasses import replace

import numpy as np

from lemmata.lab import plan as plan_module
from lemmata.lab.outcome import Outcome, failed_record
from lemmata.lab.plan import plan
from lemmata.sweep import Sweep, axis
from tests.toys import Broken, Decay, Square

CAPS = (100, 200, 300, 400)


def sweep(seeds=50, caps=CAPS):
    return Sweep(Decay(), (axis("cap", caps), axis("rate", (0.5, 0.9))), tuple(range(seeds)))


def simulated(planned, workers, seconds, compile_seconds=0.0):
    """Chunks carried out by pretended workers: what each did, when each was ready, and the longest time between two news.

    A worker pays for every structure that it sees for the first time.
    """
    ready = [(0.0, number) for number in range(workers)]
    did = [[] for _ in range(workers)]
    compiled = [set() for _ in range(workers)]
    going = []
    while True:
        while ready:
            now, number = heapq.heappop(ready)
            chunk = next(planned, None)
            if chunk is None:
                heapq.heappush(ready, (now, number))
                break
            cost = sum(map(seconds, chunk.cells))
            if chunk.bucket not in compiled[number]:
                compiled[number].add(chunk.bucket)
                cost += compile_seconds
            did[number].append((chunk, cost))
            heapq.heappush(going, (now + cost, number))
        if not going:
            return did, [now for now, _ in sorted(ready)], compiled
        now, number = heapq.heappop(going)
        chunk, cost = did[number][-1]
        share = cost / len(chunk)
        planned.record_result(chunk, [Outcome(cell.id, failed_record(), share) for cell in chunk.cells])
        heapq.heappush(ready, (now, number))


def chunks(did):
    return [chunk for mine in did for chunk, _ in mine]


def test_every_missing_cell_is_in_one_chunk_and_a_chunk_has_one_structure():
    cells = sweep().cells
    done = {cell.id for cell in cells[::3]}
    did, _, _ = simulated(plan([*cells, *cells[:5]], 2, done), 2, lambda cell: 0.1)
    given = [cell.id for chunk in chunks(did) for cell in chunk.cells]
    assert sorted(given) == sorted({cell.id for cell in cells} - done)
    assert all(len({cell.trial.cap for cell in chunk.cells}) == 1 for chunk in chunks(did))


def test_nothing_to_do_is_no_chunk():
    cells = sweep(1).cells
    assert list(plan(cells, 2, {cell.id for cell in cells})) == []
    assert list(plan([], 2)) == []


def test_workers_finish_together_and_none_is_left_with_all_the_rest():
    """More than a thousand cells of about a second; some structures take a hundred times longer than others."""
    for cost in (lambda cell: 1.0, lambda cell: 5.0 if cell.trial.cap == 400 else 0.05):
        _, ready, _ = simulated(plan(sweep(130).cells, 4), 4, cost)
        assert ready[-1] - ready[0] < 0.1 * ready[-1]


def test_long_cells_come_in_chunks_of_seconds_once_they_are_measured():
    did, _, _ = simulated(plan(sweep(400).cells, 2), 2, lambda cell: 0.5)
    lasting = [
        cost for mine in did for chunk, cost in mine[2:] if len(chunk) > plan_module.MIN_BATCHES * chunk.width
    ]
    assert all(cost <= plan_module.MAX_CHUNK_SECONDS for cost in lasting)


def test_a_structure_is_compiled_by_one_worker_as_long_as_there_are_others():
    """Each of two workers compiles two of four structures. They share only the last one at the end."""
    _, _, compiled = simulated(plan(sweep(200).cells, 2), 2, lambda cell: 0.2, compile_seconds=4.0)
    assert sum(map(len, compiled)) <= len(CAPS) + 1


def test_a_small_structure_stays_in_one_chunk():
    did, _, _ = simulated(plan(sweep(2, tuple(range(100, 140))).cells, 2), 2, lambda cell: 0.2)
    assert len(chunks(did)) == 40


def test_many_workers_get_longer_chunks_so_that_the_driver_keeps_up():
    did, ready, _ = simulated(plan(sweep(600).cells, 100), 100, lambda cell: 1.0)
    assert len(chunks(did)) / ready[-1] < 1 / plan_module.CHUNK_SECONDS_PER_WORKER


def test_the_width_depends_on_the_sweep_and_not_on_what_is_missing_or_on_workers():
    cells = sweep().cells
    widths = {chunk.width for chunk in plan(cells, 1)}
    assert widths == {chunk.width for chunk in plan(cells, 8, {cell.id for cell in cells[7:]})}
    assert len(widths) == 1
    assert min(widths) > 1


def test_a_small_sweep_is_cut_so_that_workers_can_share_it():
    [chunk, *_] = plan(sweep(8, (100,)).cells, 2)
    assert chunk.width == 4


def test_seeds_added_to_one_run_are_advanced_like_all_others():
    for seeds in (1, 2, 3):
        [chunk, *_] = plan(Sweep(Decay(), (), tuple(range(seeds))).cells, 1)
        assert chunk.width == 2


def test_trials_that_gain_nothing_from_lockstep_run_one_by_one(monkeypatch):
    monkeypatch.setattr(Decay, "lockstep", False)
    assert {chunk.width for chunk in plan(sweep().cells, 2)} == {1}
    assert {chunk.width for chunk in plan(Sweep(Square(), (), (0, 1)).cells, 2)} == {1}


def test_a_trial_whose_start_fails_is_planned_like_others():
    [chunk, *_] = plan(Sweep(Broken(), (), (0,)).cells, 1)
    assert len(chunk) == 1


def test_a_chunk_that_could_not_be_run_becomes_failures_of_its_cells():
    planned = plan(sweep().cells, 2)
    chunk = next(planned)
    outcomes = planned.record_result(replace(chunk, cells=chunk.cells[:3]), MemoryError("no room"))
    assert [outcome.id for outcome in outcomes] == [cell.id for cell in chunk.cells[:3]]
    assert {outcome.reason for outcome in outcomes} == {"MemoryError: no room"}


def test_a_plan_of_many_cells_takes_microseconds_a_cell():
    """The time of planning grows at most in proportion to the sweep, as there are few chunks."""
    many = Sweep(Square(), (axis("value", np.linspace(1, 2, 100).tolist()),), tuple(range(60)))
    did, _, _ = simulated(plan(many.cells, 2), 2, lambda cell: 1e-4)
    assert len(chunks(did)) < 40
