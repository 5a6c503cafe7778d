"""Straight lines are told from curves, and the place of a largest value is known to the grid at best."""

from math import inf

import numpy as np
import pytest
import xarray as xr

from lemmata.figure import flat
from lemmata.measure.compare import Condition, decide
from lemmata.measure.levelset import peak
from lemmata.measure.line import straight_line

X = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 10.0])
STRAIGHT = flat(-0.5, 0.5, because="the slope changes by less than half of its mean").tolerance


def runs(law, noise=0.0, seeds=3, rng=None) -> xr.DataArray:
    rng = rng or np.random.default_rng(1)
    values = law(X)[:, None] + noise * rng.standard_normal((len(X), seeds))
    return xr.DataArray(values, {"x": X, "seed": range(seeds)}, ("x", "seed"))


@pytest.mark.parametrize("slope", [2.0, -2.0])
def test_a_line_is_straight_and_a_square_is_not(slope):
    """From 1 to 10 the slope of a square changes by 2 (10 - 1) / (1 + 10) of its mean."""
    line = straight_line(runs(lambda x: 3 + slope * x, 0.2), "x")
    assert line.slope.low < slope < line.slope.high
    assert line.intercept.low < 3 < line.intercept.high
    assert decide(line.curvature, STRAIGHT) == "holds"
    assert line.explained.value > 0.99
    square = straight_line(runs(lambda x: slope * x**2, 0.2), "x")
    assert square.curvature.low < 18 / 11 < square.curvature.high
    assert decide(square.curvature, STRAIGHT) == "fails"
    assert square.explained.value > 0.9  # R^2 alone does not see the curve


def test_the_interval_of_a_curvature_holds_the_truth():
    rng = np.random.default_rng(2)
    found = [straight_line(runs(lambda x: x + x**2 / 20, 0.3, 4, rng), "x").curvature for _ in range(20)]
    truth = (2 * 9 / 20) / (1 + 11 / 20)
    assert sum(one.low <= truth <= one.high for one in found) >= 17


def test_a_curvature_without_a_slope_has_no_bound():
    curvature = straight_line(runs(lambda x: 0 * x, 1.0), "x").curvature
    assert (curvature.low, curvature.high) == (-inf, inf)
    assert "may be flat" in curvature.note


def test_two_places_tell_no_line_from_a_curve():
    assert "takes three values of 'x'" in straight_line(runs(lambda x: x).isel(x=[0, 1]), "x").curvature.note


def test_a_peak_on_which_all_seeds_agree_is_known_to_its_neighbours():
    found = peak(runs(lambda x: -((x - 4) ** 2)), "x")
    assert (found.value, found.low, found.high) == (4.0, 2.0, 6.0)
    apart = peak(runs(lambda x: -((x - 5) ** 2), 2.0, 20), "x")
    assert apart.low <= 4
    assert apart.high >= 6


def test_a_peak_on_the_end_of_the_grid_may_lie_beyond():
    found = peak(runs(lambda x: x), "x")
    assert (found.value, found.low, found.high) == (10.0, 8.0, inf)


def test_theta_has_two_sides():
    met = [Condition.theta("tau = Theta(1)", tau, 0.5, 2.0).met for tau in (0.4, 0.6, 1.9, 2.1)]
    assert met == [False, True, True, False]
    assert Condition.theta("tau = Theta(1)", 0.06, 0.5, 2.0).met_with(0.1)
