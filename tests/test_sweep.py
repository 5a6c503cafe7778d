"""Sweeps: what a change of a field does to axes and template."""

import pytest

from lemmata.errors import BadInput
from lemmata.sweep import Axis, Sweep, axis
from tests.figures import both
from tests.toys import Decay


def test_a_field_that_a_function_moves_is_refused_rather_than_ignored():
    sweep = Sweep(Decay(), (Axis("strength", (0.5, 0.1), both),), (0,))
    with pytest.raises(BadInput, match="moved by the axis 'strength'"):
        sweep.with_fields({"target": 0.5})
    assert sweep.with_fields({"cap": "70"}).cells[0].trial.cap == 70
    assert sweep.with_fields({"strength": "0.2"}).cells[0].trial.target == pytest.approx(0.002)


def test_keep_leaves_places_out():
    sweep = Sweep(
        Decay(), (axis("rate", (0.5, 0.1)),), (0, 1), keep=lambda p: p["seed"] == 0 or p["rate"] < 0.3
    )
    assert [(c.place["rate"], c.seed) for c in sweep.cells] == [(0.5, 0), (0.1, 0), (0.1, 1)]


def test_steps_themselves_can_be_swept():
    import lemmata as lm

    results = lm.run(Sweep(Decay(rate=0.001), (axis("cap", (3, 9)),), (0,)))
    assert results.steps.values.ravel().tolist() == [3, 9]
