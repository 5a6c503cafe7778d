"""Results know what was run at every place."""

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import lemmata as lm
from lemmata.errors import BadInput
from lemmata.lab.export import export
from lemmata.lab.store import Store
from lemmata.results import assemble, made, over_cells, settings, trial_at, trials
from lemmata.rows import Rows
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import fixed
from tests.figures import RATES, both
from tests.toys import Decay, Square

SWEEP = Sweep(Decay(), (axis("rate", (0.5, 0.1)), axis("cap", (50, 100))), (0, 1))


def test_the_trial_at_any_place_is_the_one_that_was_run():
    results = lm.run(SWEEP)
    assert trial_at(results, rate=0.1, cap=50) == Decay(rate=0.1, cap=50)
    assert trial_at(results.where(results.steps > 0).sel(rate=0.5).isel(cap=1)) == Decay(rate=0.5, cap=100)
    assert len(trials(results)) == 4


def test_a_function_over_cells_sees_fields_that_axes_move():
    results = made(Sweep(Decay(), (Axis("strength", (0.5, 0.1), both),), (0,)), {})
    np.testing.assert_allclose(over_cells(results, lambda t: t.target * 1000).values, [5.0, 1.0])


def test_settings_are_the_fields_that_do_not_vary():
    known = settings(made(SWEEP, {}))
    assert "rate" not in known
    assert known["target"] == 1e-3


def test_places_that_were_not_to_be_run_have_no_trial_and_no_number():
    part = Sweep(SWEEP.template, SWEEP.axes, (0,), keep=lambda place: place["rate"] > 0.2)
    results = lm.run(part)
    assert np.isnan(over_cells(results, lambda t: t.rate).sel(rate=0.1)).all()
    assert results.status.sel(rate=0.1).isnull().all()


def test_curves_of_cells_that_log_other_steps_are_labelled_cell_by_cell():
    class Own(Decay):
        @property
        def log_steps(self):
            return (0, self.cap // 10, self.cap)

    results = lm.run(Sweep(Own(rate=0.01), (axis("cap", (50, 100)),), (0,)))
    assert results.step.dims == ("cap", "log")
    assert results.step.values.tolist() == [[0, 5, 50], [0, 10, 100]]
    np.testing.assert_allclose(results.x_curve.isel(seed=0), 0.99**results.step)


def test_results_of_which_only_the_shorter_curves_are_stored_can_be_looked_at():
    class Own(Decay):
        @property
        def log_steps(self):
            return tuple(range(0, self.cap + 1, 25))

    sweep = Sweep(Own(rate=0.01), (axis("cap", (50, 100)),), (0,))
    results = assemble(sweep, Rows(np.array([0]), {"x_curve": np.ones((1, 3))}))
    assert results.x_curve.sel(cap=50).notnull().sum() == 3
    assert results.x_curve.sel(cap=100).isnull().all()


def test_results_made_by_hand_look_like_stored_ones():
    figure = RATES
    results = made(
        figure, {"steps": lambda trial, rng: 7 / trial.rate, "x_curve": lambda trial, rng: np.ones(7)}
    )
    assert results.steps.sel(rate=0.1).values.tolist() == [70.0, 70.0]
    assert results.x_curve.dims == ("rate", "seed", "step")
    assert results.attrs["figure"] == "rates"


def test_results_without_trials_are_refused_in_one_sentence():
    with pytest.raises(BadInput, match="do not know their trials"):
        settings(made(SWEEP, {}).drop_vars("trial"))


class Named(Square):
    """Records that are called as they like."""

    name: ClassVar = "toys/named"
    dims: ClassVar = {"a": ("shared",), "b": ("shared",)}
    called: str = fixed(default="value")

    def compute(self, key):
        sizes = {"ab": {"a": np.ones(2), "b": np.ones(3)}, "rank": {"a": 1.0}}
        return sizes.get(self.called, {self.called: self.value})


@pytest.mark.parametrize("called", ["value", "seed", "trial", "ab", "rank"])
def test_records_that_do_not_fit_into_one_table_are_one_sentence_and_are_kept(tmp_path, called):
    sweep = Sweep(Named(called=called), (axis("value", (1.0, 2.0)),), (0,))
    with pytest.raises(BadInput, match="the records do not fit into one table") as error:
        lm.run(sweep, tmp_path)
    assert "\n" not in str(error.value)
    assert len(Store(tmp_path).done()) == 2


def test_a_number_may_be_called_a_curve():
    results = lm.run(Sweep(Named(called="loss_curve"), (axis("value", (1.0, 2.0)),), (0,)))
    assert results.loss_curve.values.ravel().tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["results.nc", "results.parquet"])
def test_complex_numbers_are_exported_as_two_variables(tmp_path, name):
    results = made(SWEEP, {"z": lambda trial, rng: trial.rate + 2j, "x": lambda trial, rng: 1.0})
    path = export(results, tmp_path / name)
    held = xr.load_dataset(path) if name.endswith(".nc") else pd.read_parquet(path)
    assert {"z_real", "z_imag", "x"} <= set(held)
    assert "z" not in held
    assert np.asarray(held["z_imag"]).ravel().tolist() == [2.0] * 8


def test_what_a_format_cannot_hold_is_one_sentence(tmp_path):
    results = made(SWEEP, {"n" * 300: lambda trial, rng: 1.0})
    with pytest.raises(BadInput, match="cannot write"):
        export(results, tmp_path / "results.nc")
    assert list(tmp_path.iterdir()) == []
