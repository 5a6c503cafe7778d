"""Curves show the middle and the spread of the seeds, laws go where the theory and the measured values put them."""

import numpy as np
import pytest
import xarray as xr

from lemmata.draw.curves import law, line, lines, one_run, rows, series, slope
from lemmata.draw.style import canvas
from lemmata.status import CONVERGED, DIVERGED, FAILED

NAN = np.nan


def over_n(rows_, n=(1, 2, 4)):
    return xr.DataArray(rows_, {"n": list(n)}, ("seed", "n"))


@pytest.fixture
def axes():
    return canvas()[1]


def drawn(axes, place=-1):
    return axes.lines[place].get_xydata().tolist()


def test_the_middle_is_taken_over_all_other_dimensions_and_missing_runs_are_left_out():
    values = over_n([[1.0, 2, NAN], [3, np.inf, NAN], [8, 4, NAN]])
    found = series(values, "n")
    assert found.middle[:2].tolist() == [3, 3]
    assert np.isnan(found.middle[2])
    assert series(values, "n", "mean").middle[0] == 4
    assert series(values, "n", "geometric").middle[0] == pytest.approx(24 ** (1 / 3))
    assert found.quartiles()[:, 0].tolist() == [2, 5.5]


def test_an_axis_is_drawn_in_its_order_whatever_the_order_of_the_grid():
    assert series(over_n([[4.0, 2, 1]], n=(4, 2, 1)), "n").x.tolist() == [1, 2, 4]


def test_along_training_a_stopped_run_keeps_its_last_value_until_the_last_one_stops():
    curve = xr.DataArray([[3.0, 2, NAN, NAN], [4, 3, 1, NAN]], {"step": [0, 1, 10, 100]}, ("seed", "step"))
    found = series(curve, "step", "mean")
    assert found.x.tolist() == [0, 1, 10]
    assert found.middle.tolist() == [3.5, 2.5, 1.5]


def test_steps_may_differ_from_arm_to_arm(axes):
    steps = np.array([[0, 5, 10], [0, 50, NAN]])
    values = xr.DataArray(
        [[[1.0, 2, 3]], [[4, 5, NAN]]],
        {"heads": [1, 16], "step": (("heads", "log"), steps)},
        ("heads", "seed", "log"),
    )
    first, second = lines(axes, values, "step", "heads", "H = {:g}")
    assert first.x.tolist() == [0, 5, 10]
    assert second.x.tolist() == [0, 50]
    assert [one.get_label() for one in axes.lines] == ["H = 1", "H = 16"]


def test_arms_without_any_value_are_not_drawn_but_returned(axes):
    values = xr.DataArray([[[1.0, 2]], [[NAN, NAN]]], {"arm": ["a", "b"], "n": [1, 2]}, ("arm", "seed", "n"))
    found = lines(axes, values, "n", "arm", style="o-")
    assert len(found) == 2
    assert [one.get_label() for one in axes.lines] == ["a"]


def test_braces_of_a_formula_are_no_place_for_a_label(axes):
    values = over_n([[1.0, 2, 4]]).expand_dims(arm=[3.0])
    lines(axes, values, "n", "arm", r"$\mathrm{SNR}$ = {:g}")
    assert axes.lines[0].get_label() == r"$\mathrm{SNR}$ = 3"


def test_markers_show_runs_as_dots_and_curves_their_quartiles(axes):
    values = over_n([[1.0, 2, 4], [2, 4, 8]])
    line(axes, values, "n", style="o-")
    assert len(axes.lines) == 3
    line(axes, values, "n", style="-")
    assert len(axes.collections) == 1
    line(axes, values, "n", spread="none")
    assert len(axes.collections) == 1
    assert len(axes.lines) == 5


def test_a_law_without_a_constant_goes_through_the_measured_values(axes):
    x = np.array([1.0, 2.0, 4.0])
    law(axes, x, x**2, through=[3.0, 12.0, 48.0])
    np.testing.assert_allclose(drawn(axes), np.stack([x, 3 * x**2], 1))
    law(axes, x, x**2, through=[3.0, NAN, 12.0])
    np.testing.assert_allclose(drawn(axes)[0][1], np.sqrt(3 * 12 / 16))
    law(axes, x, x**2, through=[3.0, 1.0, 1.0], at=0)
    np.testing.assert_allclose(drawn(axes)[0][1], 3)


def test_a_law_through_nothing_is_not_drawn(axes):
    law(axes, [1.0, 2.0], [1.0, 2.0], through=[NAN, NAN])
    law(axes, [1.0, 2.0], [1.0, 2.0], through=[NAN, 5.0], at=0)
    assert len(axes.lines) == 0


def test_a_slope_is_named_as_a_fraction_and_starts_at_the_first_point(axes):
    slope(axes, (np.array([0.0, 1.0, 4.0]), np.array([9.0, 2.0, 7.0])), -0.5)
    assert drawn(axes) == [[1, 2], [4, 1]]
    assert axes.lines[0].get_label() == "slope −1/2"


def test_rows_stand_from_the_top_with_their_names(axes):
    rows(axes, xr.DataArray([[1.0, 2], [3, NAN]], {"kind": ["a", "b"]}, ("kind", "seed")), "kind")
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    low, high = axes.get_ylim()
    assert low > high


def test_the_run_shown_alone_has_a_record():
    results = xr.Dataset({"status": ("seed", [NAN, FAILED, DIVERGED, CONVERGED])}, {"seed": [7, 8, 9, 10]})
    assert int(one_run(results).seed) == 9
    assert int(one_run(results.isel(seed=[0, 1])).seed) == 7
