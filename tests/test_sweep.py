"""Sweeps: what a change of a field does to axes and template."""

import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.sweep import Axis, Cells, Sweep, axis
from lemmata.trial import put
from tests.figures import both
from tests.toys import Decay


def test_a_field_that_a_function_moves_is_refused_rather_than_ignored():
    sweep = Sweep(Decay(), (Axis("strength", (0.5, 0.1), both),), (0,))
    with pytest.raises(BadInput, match="moved by the axis 'strength'"):
        sweep.with_fields({"target": 0.5})
    assert sweep.with_fields({"cap": "70"}).cells[0].trial.cap == 70
    assert sweep.with_fields({"strength": "0.2"}).cells[0].trial.target == pytest.approx(0.002)


@pytest.mark.parametrize("value", [3, -9])
def test_a_value_that_a_function_has_no_use_for_is_bad_input(value):
    rates = (0.5, 0.1)
    chosen = Axis("which", (0, 1), lambda trial, n: put(trial, "rate", rates[n]))
    sweep = Sweep(Decay(), (chosen,), (0,))
    assert [c.trial.rate for c in sweep.cells] == [0.5, 0.1]
    with pytest.raises(BadInput, match=f"axis 'which' cannot be {value}.*IndexError"):
        len(sweep.with_fields({"which": value}).cells)


def test_keep_leaves_places_out():
    sweep = Sweep(
        Decay(), (axis("rate", (0.5, 0.1)),), (0, 1), keep=lambda p: p["seed"] == 0 or p["rate"] < 0.3
    )
    assert [(c.place["rate"], c.seed) for c in sweep.cells] == [(0.5, 0), (0.1, 0), (0.1, 1)]


def test_steps_themselves_can_be_swept():
    import lemmata as lm

    results = lm.run(Sweep(Decay(rate=0.001), (axis("cap", (3, 9)),), (0,)))
    assert results.steps.values.ravel().tolist() == [3, 9]


def test_cells_are_the_same_however_they_are_asked_for():
    rates = (0.5, 0.1, 0.3)
    sweep = Sweep(
        Decay(),
        (axis("rate", rates), Axis("strength", (0.5, 0.1), both), axis("cap", (7, 9))),
        (3, 4, 5),
        keep=lambda place: place["seed"] < 5 or place["cap"] == 7,
    )
    every = list(sweep.cells)
    ids = sweep.cells.ids
    assert [c.id for c in sweep.cells.named(ids[[4, 0, 4]])] == [every[at].id for at in (4, 0, 4)]
    assert sweep.cells.named(np.append(ids[:2], ids.max() + np.uint64(1))) is None
    assert Cells([]).named(ids[:1]) is None
    assert len(sweep.cells) == len(every) == 30
    assert [cell.place for cell in every] == [
        {"rate": r, "strength": s, "cap": c, "seed": seed}
        for r in rates for s in (0.5, 0.1) for c in (7, 9) for seed in (3, 4, 5)[: 3 if c == 7 else 2]
    ]  # fmt: skip
    for at, cell in enumerate(every):
        trial = sweep.template
        for one in sweep.axes:
            trial = one.apply(trial, cell.point[one.name])
        assert (sweep.cells[at].id, sweep.cells[at].place) == (cell.id, cell.place)
        assert cell.trial == trial
        assert sweep.cells.ids[at] == int(cell.id, 16)
    assert [cell.id for cell in sweep.cells[4::-3]] == [cell.id for cell in every[4::-3]]
    assert sweep.cells[-1].id == every[-1].id
    with pytest.raises(IndexError):
        _ = sweep.cells[30]
    np.testing.assert_array_equal(Cells.of(every).ids, sweep.cells.ids)
    assert len(Cells.of([])) == len(Cells.of([]).ids) == 0
