"""The margin of a claim: a signed distance from the end of its tolerance, below zero where it is violated."""

from math import inf
from typing import ClassVar

import numpy as np
import pytest
import xarray as xr

from lemmata.figure import (
    Claim,
    about,
    at_least,
    at_most,
    every_run,
    identity,
    made,
    most_runs,
    positive,
    theorem,
)
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.results import made as made_results
from lemmata.status import CONVERGED, DIVERGED
from lemmata.sweep import Sweep, axis
from lemmata.trial import Computed


class Point(Computed):
    """A place on the grid; results are made by hand."""

    size: float = 1.0
    dims: ClassVar = {"curve": ("moment",)}

    def compute(self, key):
        raise AssertionError("results are made by hand")


def results(sizes=(1.0, 2.0), seeds=3, **variables) -> xr.Dataset:
    return made_results(Sweep(Point(), (axis("size", sizes),), tuple(range(seeds))), variables)


def claim(number, holds, **more) -> Claim:
    return Claim(
        "c", "A statement.", theorem("Theorem 1"), number=number, holds=holds, refuted_by=made(), **more
    )


def of_size(trial, rng):
    return trial.size


def test_every_grid_point_and_seed_has_a_distance_in_units_of_the_end():
    found = claim(lambda r: r.value, every_run(at_most(1.5, because="x"))).margin(results(value=of_size))
    assert found.dims == ("size", "seed")
    assert found.sel(size=1.0).values.tolist() == pytest.approx([1 / 3] * 3)
    assert found.sel(size=2.0).values.tolist() == pytest.approx([-1 / 3] * 3)


def test_the_worst_step_counts():
    found = claim(lambda r: r.curve, every_run(at_most(1.0, because="x"))).margin(
        results(curve=lambda trial, rng: np.array([0.1, trial.size, 0.2]))
    )
    assert found.values[:, 0].tolist() == [0.0, -1.0]


def test_a_bound_of_zero_or_below_is_no_ratio():
    """A ratio of two negative numbers is large where the claim holds and where it fails; a difference is not."""
    below = claim(lambda r: r.value, every_run(at_most(-2.0, because="x")))
    found = below.margin(results(value=lambda trial, rng: -4.0 if trial.size == 1 else -1.0)).values[:, 0]
    assert found.tolist() == [1.0, -0.5]
    at_zero = claim(lambda r: r.value, every_run(at_least(0.0, because="x")))
    assert at_zero.margin(results(value=lambda trial, rng: trial.size - 1.5)).values[:, 0].tolist() == [
        -0.5,
        0.5,
    ]


def test_a_run_without_a_number_is_silent_and_one_in_which_it_never_happened_violates():
    holds = every_run(at_most(10.0, because="x"))
    unknown = {"value": lambda trial, rng: np.nan if trial.size == 1 else 5.0}
    silent = claim(lambda r: r.value, holds).margin(results(**unknown)).values[:, 0]
    assert np.isnan(silent[0])
    assert silent[1] == 0.5
    followed = {"event": lambda trial, rng: -1.0 if trial.size == 1 else 5.0}
    never = claim(lambda r: r.event.where(r.event >= 0), holds).margin(results(**followed)).values[:, 0]
    assert never.tolist() == [-inf, 0.5]


def test_a_diverged_run_violates_what_is_said_of_every_run():
    status = {"status": lambda trial, rng: DIVERGED if trial.size == 1 else CONVERGED, "value": of_size}
    found = (
        claim(lambda r: r.value, every_run(at_most(4.0, because="x"))).margin(results(**status)).values[:, 0]
    )
    assert found.tolist() == [-inf, 0.5]


def test_an_estimate_gives_one_distance_and_of_several_parts_the_worst():
    law = claim(lambda r: mean(r.value), about(1.0, 0.5, 2.0, because="x"))
    assert float(law.margin(results(value=of_size))) == pytest.approx(0.25)  # 1.5 below 2, in units of 2
    parts = claim(
        lambda r: {"a": Estimate(1.0, 0.9, 1.1), "b": Estimate(-3.0, -4.0, -2.0)}, positive(because="x")
    )
    assert float(parts.margin(results(value=of_size))) == -3.0


def test_a_rivals_number_ends_the_tolerance():
    rival = claim(lambda r: mean(r.value), about(1.0, 0.0, 4.0, because="x", rivals={"others": 2.0}))
    assert float(rival.margin(results(value=of_size))) == pytest.approx(0.25)


def test_a_share_counts_run_by_run_and_rounding_is_the_unit_of_an_identity():
    share = claim(lambda r: (r.value < 1.5).astype(float), most_runs(0.8, because="x"))
    assert share.margin(results(value=of_size)).values[:, 0].tolist() == pytest.approx([0.25, -1.0])
    same = claim(lambda r: r.value * 0, identity(1e-12, because="x"))
    assert same.margin(results(value=of_size)).values[:, 0].tolist() == [1.0, 1.0]


def test_a_number_that_raises_is_silent_and_leaves_no_traceback(caplog):
    found = claim(lambda r: r.nothing, every_run(at_most(1.0, because="x"))).margin(results(value=of_size))
    assert np.isnan(found.values).all()
    assert not caplog.records
