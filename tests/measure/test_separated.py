"""A boundary that parts all successes from all failures at an exponent that is given."""

import numpy as np
import pytest
import xarray as xr

from lemmata.measure.boundary import boundary


def test_a_sharp_boundary_at_a_given_exponent_has_an_interval_around_the_gap():
    control = np.array([37.5, 75, 112.5, 135, 165, 195, 300, 600])
    wins = np.broadcast_to((control > 180)[None, :, None], (3, 8, 4)).astype(float)
    coords = {"samples": [6, 10, 16], "control": control, "seed": range(4)}
    at = boundary(
        xr.DataArray(wins, coords, ("samples", "control", "seed")), "control", "samples", exponent=0.0
    ).constant
    assert at.low == pytest.approx(165, rel=1e-3)
    assert at.high == pytest.approx(195, rel=1e-3)
    assert at.low < at.value < at.high
