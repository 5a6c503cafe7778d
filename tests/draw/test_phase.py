"""Phase diagrams and success maps: cells, boundaries, and what is missing."""

import numpy as np
import pytest
import xarray as xr

from lemmata.draw.phase import Line, critical, edges, measured_line, phase_diagram, success_map
from lemmata.draw.style import canvas
from lemmata.measure.levelset import level_set


@pytest.fixture
def axes():
    return canvas()[1]


def field(values, x=(1.0, 10.0), y=(2, 4, 8)):
    return xr.DataArray(values, {"x": list(x), "y": list(y)}, ("x", "y"))


def test_borders_lie_halfway_and_not_where_the_quantity_never_is():
    assert edges(np.array([1.0, 10.0, 100.0]), True) == pytest.approx(10 ** np.array([-0.5, 0.5, 1.5, 2.5]))
    assert edges(np.array([1.0, 5.0]), False).tolist() == [0.5, 3, 7]
    assert edges(np.array([0.0, 4.0]), False).tolist() == [0, 2, 6]
    assert edges(np.array([-1.0, 5.0]), False)[0] == -4


def test_cells_without_a_value_are_blank_and_diverged_ones_crossed(axes):
    values = field([[1.0, np.nan, 3], [4, 5, 6]])
    diverged = field([[0, 0, 0], [0, 1, 0]])
    mesh = phase_diagram(axes, values, "x", "y", diverged=diverged)
    shown = mesh.get_array()
    assert shown.shape == (3, 2)
    assert shown.mask.sum() == 1
    assert bool(shown.mask[1, 0])
    assert axes.lines[0].get_xydata().tolist() == [[10, 4]]


def test_the_order_of_the_grid_does_not_matter(axes):
    values = field([[1.0, 2, 3], [4, 5, 6]])
    there = phase_diagram(axes, values, "x", "y").get_array()
    back = phase_diagram(canvas()[1], values.isel(x=[1, 0], y=[2, 0, 1]), "x", "y").get_array()
    assert (there == back).all()


def test_a_boundary_does_not_move_the_frame(axes):
    far = Line("far", lambda y: 1e6 * y, "red", low=lambda y: 0 * y, high=lambda y: 1e9 * y)
    phase_diagram(axes, field(np.ones((2, 3))), "x", "y", [far], log_x=True, log_y=True)
    low, high = axes.get_xlim()
    assert 0.1 < low < 1
    assert 10 < high < 100


def successes(seeds=40):
    """Half of the runs succeed at 4 x samples."""
    rng = np.random.default_rng(0)
    x, size = np.array([1.0, 2.0, 4.0]), np.array([2, 4, 8, 16, 32])
    chance = 1 / (1 + (4 * x[:, None] / size) ** 4)
    runs = (rng.random((3, 5, seeds)) < chance[..., None]).astype(float)
    return xr.DataArray(runs, {"x": x, "samples": size, "seed": range(seeds)}, ("x", "samples", "seed"))


def test_a_success_map_shows_critical_sizes_and_the_law_fitted_to_them(axes):
    success = successes()
    mesh, found = success_map(axes, success, "x", predicted=success.x, name="proportional")
    assert mesh.get_array().shape == (5, 3)
    np.testing.assert_allclose(found.value, [4, 8, 16], rtol=0.25)
    assert ((found.low < found.value) & (found.value < found.high)).all()
    named = {one.get_label(): one for one in axes.lines}
    np.testing.assert_allclose(named["proportional"].get_ydata(), [4, 8, 16], rtol=0.25)


def test_a_critical_size_beyond_the_grid_is_a_bound(axes):
    success = successes()
    success[2] = 0.0
    found = critical(success, "x")
    assert found.open.tolist() == [False, False, True]
    assert np.isnan(found.known[2])
    success_map(axes, success, "x")
    assert any(one.get_marker() == "^" for one in axes.lines)


def test_a_map_of_nothing_is_blank(axes):
    mesh, found = success_map(axes, successes() * np.nan, "x", predicted=[1.0, 2.0, 4.0])
    assert mesh.get_array().mask.all()
    assert not np.isfinite(found.value).any()


def test_a_measured_line_follows_the_level_with_its_interval():
    rng = np.random.default_rng(1)
    x, n = np.geomspace(1, 100, 12), np.array([4, 8, 16, 32])
    control = np.log(x[:, None] ** 2 * n / 400)[..., None] + 0.1 * rng.standard_normal((12, 4, 6))
    values = xr.DataArray(1 / (1 + np.exp(control)), {"x": x, "n": n}, ("x", "n", "seed"))

    def fit(v, a, b):
        return level_set(v, 0.5, a, b)

    [found] = measured_line(values, fit, "x", "n", "x ∝ n")
    expected = 20 / np.sqrt(n)
    np.testing.assert_allclose(found.curve(n), expected, rtol=0.1)
    assert (found.low(n) < expected).all()
    assert (found.high(n) > expected).all()
    assert measured_line(values * np.nan, fit, "x", "n", "x") == []
