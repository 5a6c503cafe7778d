"""Measures find what is there, say what they cannot find, and agree with independent implementations."""

import time

import numpy as np
import pytest
import statsmodels.api as sm
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from statsmodels.stats.proportion import proportion_confint

from lemmata.measure.binomial import Counts, likelihood
from lemmata.measure.boundary import boundary
from lemmata.measure.columns import above, below, capped, converged, diverged, flagged
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent, power_law
from lemmata.measure.levelset import crossings, level_set
from lemmata.measure.line import curvature
from lemmata.measure.orderwise import fit_then_test
from lemmata.measure.simple import bootstrap, fraction, jackknife, mean, median
from lemmata.measure.threshold import critical_size, critical_sizes
from lemmata.measure.times import (
    at_step,
    first_value,
    grows,
    growth,
    largest_fall,
    last_value,
    run_slopes,
    settling_time,
    time_exponent,
)
from lemmata.measure.trend import arms, difference, gap, largest, lead, ordering, ratio, smallest, trend
from lemmata.measure.worst import worst
from lemmata.status import CAPPED, CONVERGED, DIVERGED

SIZES = np.geomspace(10, 1000, 10)
SIGNALS = np.geomspace(0.02, 1, 10)
STEPS = np.unique(np.round(np.geomspace(1, 1000, 30)))


def along(values, over=SIZES) -> xr.DataArray:
    values = np.asarray(values, float)
    return xr.DataArray(values, {"size": over, "seed": range(values.shape[1])}, ("size", "seed"))


def diagram(steep: float, seeds: int, seed: int = 1, bend: float = 0.0) -> xr.DataArray:
    """Success with the boundary signal = 1.6 size^-1/2, whose exponent changes by `bend` over the grid."""
    x = np.log(SIZES)[:, None]
    line = -0.5 * x + np.log(1.6) + bend * (x - x.mean()) ** 2 / (2 * np.ptp(x))
    chance = 1 / (1 + np.exp(np.clip(-steep * (np.log(SIGNALS)[None] - line), -50, 50)))
    drawn = np.random.default_rng(seed).random((10, 10, seeds)) < chance[..., None]
    return xr.DataArray(drawn.astype(float), {"size": SIZES, "signal": SIGNALS}, ("size", "signal", "seed"))


def holds(estimate: Estimate, truth: float) -> bool:
    return estimate.low <= truth <= estimate.high


# Fractions and means ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "runs"), [(0, 5), (3, 7), (5, 5)])
def test_fraction_is_clopper_pearson(hits, runs):
    found = fraction(np.array([1.0] * hits + [0.0] * (runs - hits) + [np.nan]))
    assert (found.low, found.high) == pytest.approx(
        proportion_confint(hits, runs, method="beta"), nan_ok=True
    )
    assert found.count == runs


def test_mean_takes_the_seed_as_the_unit():
    values = xr.DataArray([[1.0, 3.0], [2.0, 4.0], [3.0, 5.0]], dims=("seed", "size"))
    assert mean(values) == mean(np.array([2.0, 3.0, 4.0]))
    assert not mean(np.array([1.0])).exists


def test_jackknife_of_a_mean_is_the_t_interval():
    values = np.array([1.0, 2.0, 4.0, 7.0])
    found, plain = jackknife(lambda kept: float(values[kept].mean()), np.arange(4)), mean(values)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


@pytest.mark.parametrize("count", [6, 9, 10, 15, 16, 17, 25, 40])
def test_the_interval_of_a_median_takes_the_ranks_that_keep_its_word(count):
    """By counting: the truth lies below the k-th smallest with the chance of fewer than k heads in `count` throws."""
    found = median(np.random.default_rng(0).permutation(np.arange(1.0, count + 1)))
    rank = int(found.low)
    below_it = binom.cdf(rank - 1, count, 0.5)
    assert found.high == count + 1 - rank
    assert below_it <= 0.025 < binom.cdf(rank, count, 0.5)  # and one rank further in would break it


def test_a_median_covers_as_often_as_it_says():
    """95 % and more by the ranks; 400 draws fall below 91 % once in a thousand."""
    rng = np.random.default_rng(0)
    drawn = [median(rng.exponential(size=15)) for _ in range(400)]
    assert np.mean([holds(one, np.log(2)) for one in drawn]) > 0.91


def test_a_median_of_few_seeds_has_no_ends_and_says_so():
    found = median(np.arange(5.0))
    assert (found.value, found.low, found.high) == (2.0, -np.inf, np.inf)
    assert "it takes six" in found.note
    by_seed = median(xr.DataArray(np.arange(12.0).reshape(6, 2), dims=("seed", "size")))
    assert (by_seed.value, by_seed.count) == (5.5, 6)


def test_a_bootstrap_of_a_mean_is_about_the_t_interval_and_knows_its_seeds():
    values = xr.DataArray(np.random.default_rng(0).standard_normal((8, 5)), dims=("seed", "size"))
    found, plain = bootstrap(lambda v: float(v.mean()), values), mean(values)
    assert found.count == 8
    assert found.value == pytest.approx(plain.value)
    assert found.high - found.low == pytest.approx(plain.high - plain.low, rel=0.15)
    both = bootstrap(lambda d: float(d.a.mean() / d.b.mean()), xr.Dataset({"a": values + 9, "b": values + 9}))
    assert (both.low, both.high) == (1.0, 1.0)
    assert "too few" in bootstrap(lambda v: 1.0, values[:2]).note
    assert "of the draws" in bootstrap(lambda v: 1.0 if len(np.unique(v)) == 40 else np.nan, values).note


def test_a_bootstrap_counts_a_draw_that_comes_again_but_computes_it_once():
    """Of three seeds there are 10 different draws; their chances are those of 999 draws in any order."""
    values, seen = xr.DataArray([0.0, 1.0, 5.0], dims="seed"), []
    found = bootstrap(lambda v: seen.append(sorted(v.values.tolist())) or float(v.mean()), values)
    assert len(seen) == 1 + 10
    picks = np.random.default_rng(0).integers(0, 3, (999, 3))
    low, high = np.quantile(values.values[picks].mean(1), [0.025, 0.975])
    assert (2 - found.low) / (found.high - 2) == pytest.approx((2 - low) / (high - 2))


def test_independent_estimates_are_subtracted_and_divided():
    one, two = Estimate(3.0, 2.0, 5.0, 4, freedom=3.0), Estimate(1.0, 0.0, 1.5, 5)
    apart = one.minus(two)
    assert (apart.value, apart.low, apart.high) == pytest.approx(
        (2.0, 2 - np.hypot(1, 0.5), 2 + np.hypot(2, 1))
    )
    assert (apart.count, apart.freedom) == (9, 3.0)
    times = one.over(one)
    assert (times.value, times.low) == pytest.approx((1.0, np.exp(-np.hypot(np.log(1.5), np.log(5 / 3)))))
    assert one.over(two).high == np.inf  # the divisor may be 0
    assert one.minus(Estimate.absent("no runs.")).note == "no runs."
    assert "positive" in one.over(Estimate(-1.0, -2.0, 0.0)).note


def test_another_scale_takes_the_parts_of_a_law_along():
    found = exponent(times(5, 0.1, bend=0.8), "size")
    turned = found.map(lambda v: 2 - 3 * v)
    assert turned.parts[1].value == pytest.approx(2 - 3 * found.parts[1].value)
    assert found.drift is not None
    assert turned.drift is not None
    assert (turned.drift.low, turned.drift.high) == pytest.approx(
        (-3 * found.drift.high, -3 * found.drift.low)
    )
    assert turned.seen == found.seen == "size 10 to 1000"


def test_the_worst_run_decides_and_missing_numbers_of_a_run_that_took_place_violate():
    ratios = xr.DataArray([0.2, 0.9, 1.3, np.nan], dims="seed")
    upper, lower = worst(ratios[:3], (-np.inf, 1.0)), worst(ratios[:3], (0.3, np.inf))
    assert (upper.measured.value, upper.violations.value, upper.holds) == (1.3, 1 / 3, False)
    assert (lower.measured.value, lower.violations.value) == (0.2, 1 / 3)
    assert worst(ratios[:2], (-np.inf, 1.0)).holds
    lost = worst(ratios[[0, 3]], (-np.inf, 1.0))
    assert (lost.holds, lost.measured.value) == (False, 0.2)
    assert "1 of 2 runs have no number" in lost.measured.note
    assert worst(ratios[[0, 3]], (-np.inf, 1.0), ran=ratios[[0, 3]].notnull()).holds
    assert not worst(ratios[3:], (-np.inf, 1.0)).measured.exists
    assert worst(xr.DataArray([np.inf], dims="seed"), (-np.inf, 1.0)).violations.value == 1


# Critical sizes --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_binomial_likelihood_agrees_with_statsmodels(link):
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, 9)
    successes = rng.binomial(7, 1 / (1 + np.exp(-1.5 * x))).astype(float)
    design = np.stack([x, np.ones_like(x)], 1)
    links = {
        "logit": sm.families.links.Logit,
        "probit": sm.families.links.Probit,
        "cloglog": sm.families.links.CLogLog,
    }
    pairs = np.stack([successes, 7 - successes], 1)
    peer = sm.GLM(pairs, design, family=sm.families.Binomial(links[link]())).fit()
    beta, _ = likelihood(Counts(successes, np.full(9, 7.0)), design, link=link)
    assert beta == pytest.approx(peer.params, abs=2e-3)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_critical_size_is_found_whichever_way_success_goes(link):
    rng = np.random.default_rng(1)
    success = (rng.random((10, 20)) < 1 / (1 + np.exp(-4 * np.log(SIZES / 90)))[:, None]).astype(float)
    rising, falling = (
        critical_size(along(success), "size", link=link),
        critical_size(along(1 - success), "size"),
    )
    assert holds(rising, 90)
    assert holds(falling, 90)
    assert rising.high / rising.low < 1.5
    assert critical_size(along(success), "size", 0.9, link).value > rising.value


def test_a_lapse_rate_keeps_failures_at_large_sizes_from_moving_the_threshold():
    rng = np.random.default_rng(2)
    chance = 0.9 / (1 + np.exp(-8 * np.log(SIZES / 60)))
    success = along((rng.random((10, 30)) < chance[:, None]).astype(float))
    assert holds(critical_size(success, "size", lapse=None), 60)
    assert not holds(
        critical_size(success, "size", 0.9), 60 * 9 ** (1 / 8)
    )  # without it, 90 % is not even reached


def test_all_success_all_failure_and_one_jump_are_bounded_by_the_grid_and_said_so():
    everywhere, nowhere = (
        critical_size(along(np.ones((10, 3))), "size"),
        critical_size(along(np.zeros((10, 3))), "size"),
    )
    assert everywhere.low == 0
    assert everywhere.high == pytest.approx(SIZES[1])  # 0.5^3 at the first value alone could be luck
    assert everywhere.note.startswith("Every run succeeded")
    assert nowhere.low == pytest.approx(SIZES[8])
    assert nowhere.high == np.inf
    jump = critical_size(along((SIZES > 100)[:, None] * np.ones((1, 5))), "size")
    assert SIZES[3] < jump.low < SIZES[4] < jump.value < SIZES[5] < jump.high < SIZES[6]
    assert "bounded by the grid" in jump.note


def test_critical_sizes_along_an_axis():
    rng = np.random.default_rng(4)
    success = np.stack(
        [rng.random((10, 20)) < (1 / (1 + np.exp(-5 * np.log(SIZES / c))))[:, None] for c in (30, 200)]
    )
    both = xr.DataArray(
        np.concatenate([success, np.ones((1, 10, 20))]).astype(float),
        {"noise": [1.0, 2.0, 3.0], "size": SIZES},
        ("noise", "size", "seed"),
    )
    found = critical_sizes(both, "size", "noise")
    np.testing.assert_array_equal(found.inside, [True, True, False])
    for i, truth in enumerate((30, 200)):
        assert found.low[i] < truth < found.high[i]
        assert float(found.value[i]) == critical_size(both[i], "size").value
    assert found.low[2] == 0


@given(st.floats(0.01, 100.0))
@settings(max_examples=10, deadline=None)
def test_critical_size_follows_the_unit_of_size(unit):
    rng = np.random.default_rng(3)
    success = (rng.random((10, 6)) < 1 / (1 + np.exp(-3 * np.log(SIZES / 90)))[:, None]).astype(float)
    one, other = critical_size(along(success), "size"), critical_size(along(success, SIZES * unit), "size")
    assert np.array([other.value, other.low, other.high]) / unit == pytest.approx(
        [one.value, one.low, one.high], rel=1e-3
    )


# Boundaries ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steep", [3.0, 12.0, 500.0])
def test_boundary_law_is_found_for_flat_steep_and_separating_transitions(steep):
    """At 99.9 %, so that a draw that misses is a defect and not bad luck (six intervals are looked at)."""
    law = boundary(diagram(steep, 5), "signal", "size", level=0.999)
    at_theory = boundary(diagram(steep, 5), "signal", "size", exponent=-0.5, level=0.999).constant
    assert holds(law.exponent, -0.5)
    assert holds(at_theory, 1.6)
    assert holds(law.bend, 0.0)
    assert law.exponent.high - law.exponent.low < 0.3
    assert at_theory.high / at_theory.low < law.constant.high / law.constant.low
    assert ("bounded by the grid" in law.exponent.note) == (steep == 500)


def test_a_bent_boundary_is_not_called_a_power_law():
    bend = boundary(diagram(8.0, 5, bend=1.0), "signal", "size").bend
    assert bend.low > 0
    assert holds(bend, 1.0)


def test_boundary_reads_a_derived_coordinate_and_leaves_missing_cells_out():
    success = diagram(6.0, 5).assign_coords(snr=("signal", SIGNALS**2))
    holes = success.where(
        xr.DataArray(np.random.default_rng(0).random(success.shape) < 0.7, dims=success.dims)
    )
    assert holds(boundary(holes, "snr", "size").exponent, -1.0)


def test_a_boundary_whose_seeds_share_their_data_is_as_wide_as_the_seeds_ask_for():
    rng = np.random.default_rng(5)
    own = np.log(1.6) + 0.5 * rng.standard_normal(6)
    tilt = -0.5 + 0.2 * rng.standard_normal(6)
    away = (
        np.log(SIGNALS)[None, :, None] - tilt * np.log(SIZES / 100)[:, None, None] + 0.5 * np.log(100) - own
    )
    coords = {"size": SIZES, "signal": SIGNALS, "seed": range(6)}
    success = xr.DataArray((away > 0).astype(float), coords, ("size", "signal", "seed"))
    apart, paired = (boundary(success, "signal", "size", paired=p).exponent for p in (False, True))
    assert paired.value == apart.value
    assert paired.high - paired.low > 1.5 * (apart.high - apart.low)
    assert paired.freedom == 5


def test_analysis_of_a_hundred_thousand_cells_takes_seconds():
    x, y = np.geomspace(10, 1000, 100), np.geomspace(0.02, 1, 100)
    chance = 1 / (1 + np.exp(-6 * (np.log(y)[None] + 0.5 * np.log(x)[:, None] - 0.5)))
    rng = np.random.default_rng(0)
    success = xr.DataArray(
        rng.random((100, 100, 10)) < chance[..., None], {"x": x, "y": y}, ("x", "y", "seed")
    )
    began = time.process_time()
    assert holds(boundary(success.astype(float), "y", "x").exponent, -0.5)
    assert holds(level_set(xr.DataArray(chance, {"x": x, "y": y}, ("x", "y")), 0.5, "y", "x").exponent, -0.5)
    assert holds(exponent(success.x**0.5 * np.exp(success - success.mean("seed")), "x"), 0.5)
    assert time.process_time() - began < 10


# Exponents -------------------------------------------------------------------------------------------------------------


def times(seeds: int, spread: float, power: float = 0.5, bend: float = 0.0, seed: int = 1) -> xr.DataArray:
    x = np.log(SIZES)
    noise = spread * np.random.default_rng(seed).standard_normal((10, seeds))
    return np.exp(along(power * x[:, None] + bend * ((x - x.mean()) ** 2)[:, None] / (2 * np.ptp(x)) + noise))


def test_exponent_and_constant_of_a_clean_law_are_exact():
    law = power_law(3 * times(4, 0.0), "size")
    assert (law.exponent.value, law.constant.value) == pytest.approx((0.5, 3.0))
    assert law.bend.value == pytest.approx(0.0, abs=1e-9)


def test_capped_runs_count_as_bounds_and_not_as_values():
    full = times(5, 0.3)
    cap = float(SIZES[5] ** 0.5)
    seen, censored = full.clip(max=cap), full >= cap
    assert not holds(exponent(seen, "size"), 0.5)  # taken as values they flatten the law
    found = exponent(seen, "size", censored)
    assert holds(found, 0.5)
    assert "censored" in found.note
    assert found.high - found.low > exponent(full, "size").high - exponent(full, "size").low


def test_a_curve_that_bends_is_said_not_to_be_a_power_law():
    found = exponent(times(5, 0.1, bend=0.8), "size")
    assert "Not a plain power law" in found.note
    assert holds(power_law(times(5, 0.1, bend=0.8), "size").bend, 0.8)
    assert exponent(times(5, 0.1), "size").note == ""


def test_paired_seeds_take_out_what_runs_of_a_seed_share():
    shared = times(5, 0.05) * xr.DataArray(np.exp([-1.0, -0.5, 0.0, 0.5, 1.0]), dims="seed")
    paired, apart = exponent(shared, "size", paired=True), exponent(shared, "size")
    assert holds(paired, 0.5)
    assert paired.high - paired.low < 0.3 * (apart.high - apart.low)
    capped = exponent(shared.clip(max=20), "size", shared >= 20, paired=True)
    assert holds(capped, 0.5)


@given(st.floats(1e-3, 1e3), st.floats(-2, 2))
@settings(max_examples=15, deadline=None)
def test_exponents_ignore_units_and_add_up(unit, power):
    values = times(4, 0.2)
    one, moved = exponent(values, "size"), exponent(unit * values * values["size"] ** power, "size")
    assert (moved.value, moved.low, moved.high) == pytest.approx(
        (one.value + power, one.low + power, one.high + power)
    )


# Level sets, times, trends ---------------------------------------------------------------------------------------------


def test_level_set_is_found_where_rows_leave_the_grid():
    away = 3 * (np.log(SIGNALS)[None] + 0.5 * np.log(SIZES)[:, None] - np.log(1.6))
    noise = np.exp(0.1 * np.random.default_rng(0).standard_normal((10, 10, 4)))
    loss = xr.DataArray(
        0.4 / (1 + np.exp(away))[..., None] * noise,
        {"size": SIZES, "signal": SIGNALS},
        ("size", "signal", "seed"),
    )
    assert holds(level_set(loss, 0.2, "signal", "size").exponent, -0.5)
    short = loss.isel(signal=slice(0, 7))  # the line leaves this grid at small sizes
    found = level_set(short, 0.2, "signal", "size").exponent
    assert holds(found, -0.5)
    assert "censored" in found.note
    assert set(np.unique(crossings(short, 0.2, "signal")[1])) == {0, 1}


def test_a_crossing_outside_the_grid_is_a_bound_on_the_side_where_it_lies():
    place = np.array([1.0, 2.0, 4.0])
    rows = xr.DataArray([[3.0, 4, 5], [0, 1, 2], [0, 1.5, 4]], {"signal": place}, ("row", "signal"))
    where, side = crossings(rows, 2.5, "signal")
    np.testing.assert_array_equal(side, [-1, 1, 0])
    np.testing.assert_allclose(where, [1.0, 4.0, 2 * 2**0.4])
    falling, side = crossings(-rows, -2.5, "signal")
    np.testing.assert_array_equal(side, [-1, 1, 0])
    np.testing.assert_allclose(falling, where)


def test_settling_time_is_when_a_curve_crosses_for_good():
    curve = [[0, 2, 0, 2, 2], [0, 0, 0, 0, 0], [2, 2, np.nan, np.nan, np.nan], [np.nan] * 5]
    curves = xr.DataArray(np.array(curve, float), {"step": [0, 1, 2, 5, 9]}, ("seed", "step"))
    np.testing.assert_array_equal(settling_time(curves, 1.0), [5, np.nan, 0, np.nan])
    np.testing.assert_array_equal(settling_time(-curves, -1.0, "below"), [5, np.nan, 0, np.nan])


def logged(curves, steps=(0, 1, 10, 100)) -> xr.DataArray:
    return xr.DataArray(np.array(curves, float), {"step": list(steps)}, ("seed", "step"))


def test_a_curve_has_a_first_a_last_and_a_nearest_value():
    curves = logged([[np.nan, 2, 3, 4], [5, 6, 7, np.nan]])
    np.testing.assert_array_equal(first_value(curves), [2, 5])
    np.testing.assert_array_equal(last_value(curves), [4, 7])
    np.testing.assert_array_equal(at_step(curves, 8), [3, 7])


def test_a_fall_is_counted_from_the_highest_value_so_far():
    curves = logged([[1, 4, 3, np.nan], [np.nan, 8, 2, 9], [1, 2, 3, 4]])
    np.testing.assert_array_equal(largest_fall(curves), [1, 6, 0])
    np.testing.assert_array_equal(largest_fall(curves, relative=True), [0.25, 0.75, 0])


def test_curves_of_cells_that_log_other_steps_are_read_by_their_own():
    steps = xr.DataArray([[0.0, 5, 50], [0.0, 10, 100]], dims=("size", "log"))
    curves = xr.DataArray([[[1.0, 2, 3]], [[1.0, 2, np.nan]]], dims=("size", "seed", "log"))
    curves = curves.assign_coords(step=steps)
    np.testing.assert_array_equal(settling_time(curves, 2.0), [[5], [10]])
    np.testing.assert_array_equal(at_step(curves, 9), [[2], [2]])
    np.testing.assert_array_equal(last_value(curves), [[3], [2]])
    assert settling_time(curves, 2.0).attrs["seen"] == "steps 0 to 50"


def test_exponents_in_time_are_found_in_every_run_with_their_range():
    steps = np.unique(np.round(np.geomspace(1, 1000, 25)))
    powers = np.array([-1.0, -1.1, -0.9])
    clean = logged(7 * (steps[None] + 20) ** powers[:, None], steps)
    np.testing.assert_allclose(run_slopes(np.log(clean), since=-20.0), powers)
    late = run_slopes(np.log(clean), clean.step >= 300)
    assert late.attrs["seen"] == "steps 316 to 1000"
    assert np.isnan(run_slopes(np.log(clean), clean.step >= 700)).all()  # two logged steps are too few
    assert run_slopes(np.log(clean), clean.step >= 700, fewest=2).notnull().all()
    found = time_exponent(clean, clean.step >= 300)
    assert found.value == pytest.approx(float(late.mean()))
    assert found.seen == "steps 316 to 1000"
    assert found.drift is not None
    assert found.parts[1].value - found.parts[0].value == pytest.approx(found.drift.value)
    assert found.drift.value < 0  # it steepens while the 20 wears off
    assert "fewer than two seeds" in time_exponent(clean, clean.step >= 999).note
    assert "not positive" in time_exponent(-clean).note


@pytest.mark.parametrize(
    ("shape", "curve"),
    [("linear", 2 * STEPS + 1), ("logarithmic", 3 * np.log(STEPS) - 1), ("exponential", np.exp(STEPS / 200))],
)
def test_growth_is_named(shape, curve):
    noise = 0.02 * np.ptp(curve) * np.random.default_rng(0).standard_normal((5, len(STEPS)))
    assert growth(STEPS, curve).best == shape
    assert grows(xr.DataArray(curve + noise, {"step": STEPS}, ("seed", "step")), shape).value == 1
    assert growth(STEPS, 50 * noise[0] + curve).best is None  # drowned in noise, nothing is named


def test_comparisons_are_made_within_seeds():
    rng = np.random.default_rng(0)
    shared = 10 * rng.standard_normal(5)
    arms = [xr.DataArray(shared + k + 0.1 * rng.standard_normal(5), dims="seed") for k in range(3)]
    assert holds(difference(arms[1], arms[0]), 1.0)
    assert difference(arms[1], arms[0]).high < 1.5
    assert ordering(arms).low > 0
    assert ordering(arms[::-1]).high < 0
    assert ratio(np.exp(arms[1]), np.exp(arms[0])).value == pytest.approx(
        np.exp(difference(arms[1], arms[0]).value)
    )


def test_the_extreme_of_several_arms_counts_that_it_was_picked():
    rng = np.random.default_rng(1)
    rows = xr.DataArray(rng.standard_normal((4, 8)), {"heads": [1, 2, 4, 8]}, ("heads", "seed"))
    found = [mean(one) for one in arms(rows, "heads")]
    low, high = smallest(arms(rows, "heads")), largest(arms(rows, "heads"))
    assert (low.value, high.value) == (min(e.value for e in found), max(e.value for e in found))
    assert low.low == min(e.low for e in found)
    assert low.high > min(e.high for e in found)  # corrected for the number of arms
    assert high.low < max(e.low for e in found)
    assert high.high == max(e.high for e in found)
    assert smallest(arms(rows, "heads"), median).value == min(float(np.median(one)) for one in rows.values)
    first = rows[0] + 10
    assert lead(first, arms(rows, "heads")[1:]).value == pytest.approx(
        min(float((first - one).mean()) for one in arms(rows, "heads")[1:])
    )
    assert not smallest([rows[0], rows[0] * np.nan]).exists


def test_gap_is_the_largest_distance_of_two_curves():
    curve = times(4, 0.1)
    bump = xr.DataArray(np.where(np.arange(10) == 3, 0.2, 0.0), dims="size")
    assert gap(curve, curve, "size").high == 0
    assert gap(curve, curve + bump, "size").value == pytest.approx(0.2)


def test_trend_of_rising_falling_and_noisy_curves():
    rising = trend(times(3, 0.01), "size")
    assert (rising.value, rising.high) == (1, 1)
    assert 0.5 < rising.low < 1  # three seeds that agree do not make certainty
    assert trend(1 / times(3, 0.01), "size").value == -1
    assert holds(trend(times(6, 1.0, power=0.0), "size"), 0.0)


def test_order_wise_law_is_fitted_below_and_tested_above():
    right = fit_then_test(7 * times(4, 0.1), np.sqrt, "size")
    wrong = fit_then_test(7 * times(4, 0.1), lambda size: size, "size")
    assert holds(right, 1.0)
    assert wrong.high < 0.5
    assert "fitted on size up to" in right.note


# Bad input -------------------------------------------------------------------------------------------------------------

EMPTY = along(np.full((10, 3), np.nan))
ONE = along(np.ones((1, 3)), SIZES[:1])
FLAT = diagram(0.0, 5)


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (critical_size(EMPTY, "size"), "no run has a value"),
        (critical_size(ONE, "size"), "at least two values of 'size'"),
        (critical_size(EMPTY, "samples"), "no axis 'samples'"),
        (critical_size(along(np.ones((2, 1)), SIZES[:2]), "size"), "too few"),
        (boundary(diagram(3, 2) * np.nan, "signal", "size").exponent, "no run has a value"),
        (boundary(diagram(3, 2), "snr", "size").exponent, "no axis 'snr'"),
        (boundary(diagram(3, 2) * 0, "signal", "size").exponent, "does not reach the boundary"),
        (boundary(diagram(3, 2)[:1], "signal", "size").exponent, "at least two values of 'size'"),
        (exponent(EMPTY, "size"), "no run has a value"),
        (exponent(ONE, "size"), "at least two values"),
        (exponent(times(3, 0.1) - 4, "size"), "not positive"),
        (exponent(times(1, 0.1)[:2], "size"), "no interval"),
        (exponent(times(3, 0.1), "size", times(3, 0.1) > 0), "not censored"),
        (exponent(times(3, 0.1), "samples"), "no axis 'samples'"),
        (level_set(diagram(3, 2) * np.nan, 0.5, "signal", "size").exponent, "no run has a value"),
        (level_set(diagram(3, 2), 0.5, "snr", "size").exponent, "no axis 'snr'"),
        (mean(np.full(3, np.nan)), "no run has a value"),
        (fraction(np.array([])), "no run has a value"),
        (difference(EMPTY, EMPTY), "no run in common"),
        (trend(EMPTY, "size"), "no seed"),
        (trend(EMPTY, "samples"), "no axis 'samples'"),
        (gap(EMPTY, EMPTY, "samples"), "no axis 'samples'"),
        (ordering([times(1, 0.1)[0], times(1, 0.2)[0]]), "at least two seeds"),
        (grows(EMPTY, "linear"), "no axis 'step'"),
        (grows(xr.DataArray([[1.0, 2.0]], {"step": [1, 2]}, ("seed", "step")), "linear"), "at least six"),
        (fit_then_test(ONE, np.sqrt, "size"), "at least two values"),
    ],
)
def test_what_cannot_be_measured_is_said_in_one_sentence(found, reason):
    assert not found.exists
    assert reason in found.note
    assert found.note.count(".") == 1


def test_flat_success_gives_no_narrow_boundary():
    law = boundary(FLAT, "signal", "size").exponent
    assert not law.exists or law.high - law.low > 1


def test_missing_runs_are_neither_successes_nor_failures():
    values = xr.DataArray([0.1, np.nan, 0.3], dims="seed")
    np.testing.assert_array_equal(below(values, 0.2), [1, np.nan, 0])
    np.testing.assert_array_equal(above(values, 0.2), [0, np.nan, 1])


def test_how_runs_ended_is_asked_by_name():
    status = xr.DataArray([CONVERGED, CAPPED, DIVERGED, np.nan], dims="seed")
    results = xr.Dataset({"status": status})
    for ended, place in ((converged, 0), (capped, 1), (diverged, 2)):
        np.testing.assert_array_equal(ended(results), np.arange(4) == place)
    np.testing.assert_array_equal(flagged(status < 2, results), [1, 0, 0, np.nan])


# Laws in parts ---------------------------------------------------------------------------------------------------------


def test_a_straight_law_has_the_same_exponent_in_both_parts():
    found = exponent(times(6, 0.2), "size", level=0.999)
    assert found.drift is not None
    assert holds(found.drift, 0.0)
    assert all(holds(part, 0.5) for part in found.parts)
    paired, cut = (
        exponent(times(6, 0.2), "size", paired=True),
        exponent(times(6, 0.2), "size", times(6, 0.2) > 25),
    )
    assert len(paired.parts) == len(cut.parts) == 2


def test_the_parts_of_a_broken_law_are_its_two_exponents():
    """The middle value of an odd grid belongs to both parts; of an even one the break lies between the middle two."""
    for grid in (np.geomspace(10, 1000, 9), np.geomspace(10, 1000, 8)):
        law = np.where(grid < 100, grid**0.2, 100**-0.6 * grid**0.8)
        found = exponent(along(law[:, None] * np.ones((1, 3)), grid), "size")
        assert [part.value for part in found.parts] == pytest.approx([0.2, 0.8], abs=1e-6)


def test_two_grid_values_and_too_few_runs_have_no_parts():
    assert exponent(times(3, 0.1)[:2], "size").parts == ()
    assert exponent(times(1, 0.1)[:3], "size").parts == ()


def test_the_slope_of_a_line_does_not_change_and_that_of_a_square_does():
    """Of x^2 from 1 to 8 the slope goes from 2 to 16, mean 9. Grid values without runs do not count."""
    grid = np.arange(1.0, 9.0)
    spread = 1e-6 * np.random.default_rng(0).normal(size=(8, 5))
    line, square = (along(law[:, None] + spread, grid) for law in (3 + 2 * grid, grid**2))
    assert curvature(line, "size").value == pytest.approx(0, abs=1e-5)
    assert curvature(square, "size").value == pytest.approx(14 / 9, abs=1e-5)
    shorter = square.where(square["size"] < 7)
    assert curvature(shorter, "size").value == pytest.approx(10 / 7, abs=1e-5)
    assert not curvature(square[:3], "size").exists
