"""Results to estimates, and the regions of cells that claims speak of."""

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.columns import below
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import bootstrap, mean
from lemmata.measure.threshold import critical_size
from lemmata.measure.trend import lead, ratio, trend
from lemmata.results import over_cells

SUCCESS = 1e-3
"""An experiment is successful if the spread V_W of its limits is at most this (Section 4.5.1)."""

BUDGET = 100
"""The steps of the fixed-budget risk."""

# Sample complexity -------------------------------------------------------------------------------------------------------


def success(results: xr.Dataset) -> xr.DataArray:
    """Which experiments succeeded: V_W <= 1e-3 (1, 0, NaN where not run)."""
    return below(results.init_spread, SUCCESS)


def critical_exponent(results: xr.Dataset, over: str) -> Estimate:
    """The exponent of the critical number of samples as a power of an axis."""
    return boundary(success(results), "samples", over).exponent


def critical_ratio(results: xr.Dataset, over: str, top: int, bottom: int | str) -> Estimate:
    """The critical number of samples at one place of an axis over that at another (`middle`: the middle of the grid)."""
    (dim,) = results[over].dims
    at = results.sizes[dim] // 2 if bottom == "middle" else int(bottom)
    one, other = (critical_size(success(results).isel({dim: i}), "samples") for i in (top, at))
    for found in (one, other):
        needs(found.exists, found.note)
    return one.over(other)


# Speed -------------------------------------------------------------------------------------------------------------------


def with_critical_point(results: xr.Dataset) -> xr.DataArray:
    """Runs whose samples have a critical point near W*; with too few the risk falls for ever in some direction."""
    return results.critical_found > 0


def arrived(results: xr.Dataset) -> xr.DataArray:
    """Of those, the runs that came within 1e-8 of it."""
    return with_critical_point(results) & (results.distance <= 1e-8)


def settled(results: xr.Dataset) -> xr.DataArray:
    """Of those, the runs long enough for the slowest direction to be alone: the next slowest has lost a factor 100 against it,
    by the spectrum of the Hessian at W_n."""
    apart = results.step_size * (results.curvature_next - results.curvature_low)
    return arrived(results) & (results.steps * apart >= np.log(100))


def near(results: xr.Dataset) -> xr.DataArray:
    """Of those with a critical point, the runs that came within 1e-6 of it: their last three decades lie below 1e-3."""
    return with_critical_point(results) & (results.distance <= 1e-6)


def straightness(results: xr.Dataset) -> xr.DataArray:
    """R^2 of a straight line through log|W_t - W_n| over the last three decades of each run."""

    def one(curve: np.ndarray, step: np.ndarray) -> float:
        known = np.isfinite(curve) & (curve > 0)
        late = known & (curve <= 1e3 * curve[known][-1]) if known.any() else known
        return float(np.corrcoef(step[late], np.log(curve[late]))[0, 1] ** 2) if late.sum() > 3 else np.nan

    curves = results.distance_curve
    dim = "step" if "step" in curves.dims else "log"
    return xr.apply_ufunc(one, curves, results.step, input_core_dims=[[dim], [dim]], vectorize=True)


def rate(results: xr.Dataset) -> xr.DataArray:
    """1 - v of every run, at its end."""
    return 1 - results.contraction


def contraction_ratio(results: xr.Dataset) -> xr.DataArray:
    """(1 - v) over eta0 lambda_min of the Hessian at W_n, of every run."""
    return rate(results) / (1 - results.contraction_exact)


def rate_ratio(results: xr.Dataset) -> Estimate:
    """1 - v over lambda_min / lambda_max of the Fisher information at W*, typical of a run."""
    return ratio(rate(results), results.rate_sharp)


def rate_exponent(results: xr.Dataset, over: str) -> Estimate:
    """The exponent of 1 - v as a power of an axis."""
    return exponent(rate(results), over)


def rate_trend(results: xr.Dataset, over: str) -> Estimate:
    """How steadily 1 - v rises along an axis."""
    return trend(rate(results), over)


def rate_peak(results: xr.Dataset, over: str) -> Estimate:
    """How far log(1 - v) is above both ends of the grid at its highest inside."""
    return _dip(-_log(rate(results)), over)


def rate_lead(results: xr.Dataset, over: str, at: float) -> Estimate:
    """By how much log(1 - v) at one value of an axis exceeds all others."""
    values = _log(rate(results))
    others = [values.sel({over: v}) for v in values[over].values if v != at]
    return lead(values.sel({over: at}), others)


def _log(values: xr.DataArray) -> xr.DataArray:
    return xr.ufuncs.log(values.where(values > 0))


def _dip(values: xr.DataArray, over: str) -> Estimate:
    """The lower end of the grid less the lowest inside, of the means over seeds; above 0 the curve falls and then rises."""
    (dim,) = values[over].dims
    needs(values.sizes[dim] > 2, f"a dip needs a value of '{over}' between two others.")
    values = values.dropna("seed")  # the same seeds all along

    def depth(some: xr.DataArray) -> float:
        along = np.asarray(some.mean([d for d in some.dims if d != dim]).values, float)
        return float(min(along[0], along[-1]) - along[1:-1].min())

    return bootstrap(depth, values)


# Errors and noise --------------------------------------------------------------------------------------------------------


def many_samples(results: xr.Dataset) -> xr.DataArray:
    """The upper half of the grid of samples, where there is a critical point."""
    return with_critical_point(results) & (results.samples > float(np.median(results.samples)))


def error_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of |W_n - W* P|_F in the number of samples."""
    return exponent(results.error, "samples", paired=True)


def error_ratio(results: xr.Dataset) -> Estimate:
    """n |W_n - W* P|_F^2 over tr I^-1: the mean over runs."""
    return mean((results.error / results.error_sharp) ** 2)


def risk_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of the average excess risk in the number of samples."""
    return exponent(risk(results, "excess", "average"), "samples", paired=True)


def floor(results: xr.Dataset) -> xr.DataArray:
    """The root mean square distance to W_n over the second half of every run."""
    half = over_cells(results, lambda trial: trial.steps - trial.steps // 2)
    return (results.late_square / half) ** 0.5


def floor_exponent(results: xr.Dataset, over: str) -> Estimate:
    """The exponent of the floor as a power of an axis."""
    return exponent(floor(results), over, paired=True)


def floor_ratio(results: xr.Dataset) -> Estimate:
    """The floor over the exact one, typical of a run."""
    return ratio(floor(results), results.floor_exact)


def floor_over_bound(results: xr.Dataset) -> xr.DataArray:
    """The floor over the bound of (4.8), of every run."""
    return floor(results) / results.floor_bound


# Risks -------------------------------------------------------------------------------------------------------------------


def fractions(results: xr.Dataset) -> xr.DataArray:
    """lambda of every group at every grid point."""
    groups = results.sizes["group"]
    each = [
        over_cells(results, lambda trial, g=g: trial.population.fractions[g]) for g in range(groups)
    ]  # one array a group
    return xr.concat([one.drop_vars("trial", errors="ignore") for one in each], "group")


def risk(results: xr.Dataset, kind: str, whose: str) -> xr.DataArray:
    """A risk of every run. `kind`: raw (cross-entropy at W_n), excess (over W*), budget (excess after 100 steps). `whose`:
    average (groups in their proportions), even (in equal ones), group (the second group's), majority (the first's)."""
    if kind == "budget":
        each = results.group_excess_curve.sel(step=BUDGET)
    else:
        each = results.group_excess + (results.group_entropy if kind == "raw" else 0)
    if whose in ("group", "majority"):
        return each.isel(group=1 if whose == "group" else 0)
    return (
        (each * fractions(results)).sum("group", skipna=False) if whose == "average" else each.mean("group")
    )


def risk_trend(results: xr.Dataset, risk: str, whose: str, over: str, side: int = 0) -> Estimate:
    """How steadily a risk rises along an axis; with a side (1, -1), from 0 outward on that side."""
    values = _risk(results, risk, whose)
    if side:
        values = values.assign_coords({over: side * values[over]})
        values = values.sel({over: values[over] >= 0})
    return trend(values, over)


def risk_dip(results: xr.Dataset, risk: str, whose: str, over: str) -> Estimate:
    """How far the logarithm of a risk is below both ends of the grid at its lowest inside."""
    return _dip(_log(_risk(results, risk, whose)), over)


_risk = risk


def excess_ratio(results: xr.Dataset, whose: str) -> Estimate:
    """Measured over predicted excess risk, the mean over all runs: dK/(2n) for the average, tr(I_2 I^-1)/(2n) for the group."""
    if whose == "group":
        return mean((results.group_excess / results.group_sharp).isel(group=1))
    return mean(risk(results, "excess", "average") / _average_sharp(results))


def _average_sharp(results: xr.Dataset) -> xr.DataArray:
    """dK / (2n) at every grid point."""
    return over_cells(
        results,
        lambda trial: trial.population.dim * trial.population.neurons / (2 * trial.population.samples),
    )


# Table 4.1 ---------------------------------------------------------------------------------------------------------------


def along(results: xr.Dataset, quantity: str, column: str) -> xr.DataArray:
    """A quantity along one column of Table 4.1, its axis `parameter`: the value that is varied there."""
    chosen = results[quantity].sel(column=column)
    return chosen.assign_coords(parameter=("place", results.parameter.sel(column=column).values))


def closed_exponent(results: xr.Dataset, row: str, column: str) -> Estimate:
    """The exponent of a closed form in the parameter of a column."""
    return exponent(along(results, f"closed_{row}", column), "parameter", paired=True)


def closed_trend(results: xr.Dataset, row: str, column: str) -> Estimate:
    """How steadily a closed form rises along a column."""
    return trend(along(results, f"closed_{row}", column), "parameter")


def sharp_trend(results: xr.Dataset, row: str, column: str) -> Estimate:
    """How steadily the quantity itself, by the Fisher information, rises along a column."""
    return trend(along(results, f"sharp_{row}", column), "parameter")


# Lemmas and starts -------------------------------------------------------------------------------------------------------


def lemma_ratio(results: xr.Dataset) -> xr.DataArray:
    """The smallest eigenvalue of Lemma C.4.1 over rho."""
    return results.lemma_ratio


def population_ratio(results: xr.Dataset) -> xr.DataArray:
    """lambda_min of the population Hessian over 4 G / K^2."""
    return results.least_over_bound


def mended_ratio(results: xr.Dataset) -> xr.DataArray:
    """The same with rho_exact."""
    return results.least_over_mended


def upper_ratio(results: xr.Dataset) -> xr.DataArray:
    """M_2 / (4K) over lambda_max."""
    return results.bound_over_largest


def in_ball(results: xr.Dataset, side: str) -> xr.DataArray:
    """The extreme eigenvalues of the empirical Hessian in the ball over the `low` or the `high` side of Lemma C.3.1."""
    return results[f"ball_{side}"]


def hessian_change(results: xr.Dataset, whose: str) -> xr.DataArray:
    """How fast a Hessian changes, over the bound: of single samples (`sample`, `sample_mended`), of the `population`."""
    return results["sample_change_mended" if whose == "sample_mended" else f"{whose}_change"]


def deviation_exponent(results: xr.Dataset, what: str) -> Estimate:
    """The exponent in n of the distance between a moment or derivative of samples and the population's."""
    return exponent(results[f"{what}_off"], "samples")


def last_distance(results: xr.Dataset, begin: str) -> xr.DataArray:
    """The distance to W_n at the end, from one kind of start."""
    return results.distance.sel(begin=begin)


def left_behind(results: xr.Dataset, begin: str) -> xr.DataArray:
    """By how much the final risk from one kind of start exceeds that from near W*, in units of dK / (2n)."""
    apart = results.final_loss.sel(begin=begin) - results.final_loss.sel(begin="local", drop=True)
    return apart / _average_sharp(results).sel(begin=begin)


def start_rate_ratio(results: xr.Dataset) -> Estimate:
    """1 - v from the tensor initialisation over that from near W*."""
    return ratio(rate(results).sel(begin="tensor"), rate(results).sel(begin="local"))


def start_error(results: xr.Dataset) -> Estimate:
    """|W_0 - W* P|_F / |W*|_F of the tensor initialisation."""
    return mean(results.relative_error.sel(begin="tensor"))
