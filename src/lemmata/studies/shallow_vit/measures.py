"""What is measured of the results for the claims: numbers with intervals, or the reason why there is none."""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.style import settings
from lemmata.measure.boundary import boundary
from lemmata.measure.columns import capped
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import fraction, mean
from lemmata.measure.threshold import critical_size
from lemmata.measure.trend import difference, ratio, trend
from lemmata.studies.shallow_vit import theory
from lemmata.studies.shallow_vit.lemmas import relevant_attention_bound


def setting(fields: dict[str, Any]) -> theory.Setting:
    """The quantities of Theorem 1 from the fields of a trial; tau is typical for Gaussian noise, else the
    radius."""
    dim, std = fields["data.dim"], fields["data.noise_std"]
    gaussian = fields["data.noise"] in ("gaussian", "truncated_gaussian")
    return theory.Setting(
        relevant_fraction=fields["data.relevant_fraction"],
        confusion_fraction=fields["data.confusion_fraction"],
        token_noise=theory.typical_noise(std, dim) if gaussian else fields["data.noise_radius"],
        value_error=fields["network.value_error"],
        key_query_error=fields["network.key_query_error"],
        patterns=fields["data.patterns"],
        neurons=fields["network.neurons"],
        value_dim=fields["network.value_dim"] or dim,
        key_dim=fields["network.key_dim"] or dim,
        samples=fields["data.samples"],
        batch=fields["descent.batch"],
        tokens=fields["data.tokens"],
        learning_rate=fields["descent.learning_rate"],
        hidden_std=fields["network.hidden_std"],
        spectral_norm=1.0
        if fields["network.unit_spectral"] or fields["network.initial"] == "shrink"
        else 1 + fields["network.key_query_error"],
    )


# Samples ----------------------------------------------------------------------------------------------------


def zero_loss(results: xr.Dataset) -> Estimate:
    """Success with at least 24 samples at the two largest relevant fractions."""
    rows = results["success"].sortby("relevant_fraction").isel(relevant_fraction=slice(-2, None))
    return fraction(rows.where(rows["samples"] >= 24, drop=True))


def sample_exponent(results: xr.Dataset) -> Estimate:
    return _noted(boundary(results["success"], "samples", "relevant_fraction"))


def frozen_exponent(results: xr.Dataset) -> Estimate:
    return _noted(boundary(results["success"].sel(kind="frozen"), "samples", "relevant_fraction"))


def _noted(law: Any) -> Estimate:
    bend = law.bend
    if law.exponent.exists and bend.exists and (bend.low > 0 or bend.high < 0):
        return law.exponent.noted(
            f"Not a plain power law: the local exponent changes by {bend.value:.2g} over the grid."
        )
    return law.exponent


def exponent_gain(results: xr.Dataset) -> Estimate:
    """The trained exponent minus the frozen one; the intervals of the two fits are added in quadrature."""
    laws = [
        boundary(results["success"].sel(kind=kind), "samples", "relevant_fraction").exponent
        for kind in ("trained", "frozen")
    ]
    if not all(law.exists for law in laws):
        return Estimate.absent("; ".join(law.note for law in laws if not law.exists))
    value = laws[0].value - laws[1].value
    half = [max(law.high - law.value, law.value - law.low) for law in laws]
    reach = float(np.hypot(half[0], half[1]))
    return Estimate(value, value - reach, value + reach, laws[0].count + laws[1].count)


def frozen_ratio(results: xr.Dataset) -> Estimate:
    """The smallest ratio of N_50 (frozen over trained) over the grid, by the lower and upper ends of both."""
    found = []
    for value in results["relevant_fraction"].values:
        sizes = [
            critical_size(results["success"].sel(kind=kind, relevant_fraction=value), "samples")
            for kind in ("trained", "frozen")
        ]
        if all(s.exists for s in sizes):
            found.append(
                [
                    sizes[1].value / sizes[0].value,
                    sizes[1].low / sizes[0].high,
                    sizes[1].high / max(sizes[0].low, 1e-9),
                ]
            )
    if not found:
        return Estimate.absent("no relevant fraction has a measured N_50 for both kinds of attention.")
    rows = np.array(found)
    worst = rows[np.argmin(rows[:, 0])]
    note = (
        "Ratios along the grid (most to least relevant): " + ", ".join(f"{r:.2g}" for r in rows[:, 0]) + "."
    )
    return Estimate(worst[0], worst[1], worst[2], results.sizes["seed"], note=note)


def sample_linear(results: xr.Dataset) -> Estimate:
    """The coefficient of determination of N_50 as a straight line in alpha_*^-2."""

    def determination(success: xr.DataArray) -> float:
        x, y = _crossings(success, "relevant_fraction")
        if len(x) < 4:
            return np.nan
        return float(np.corrcoef(x**-2, y)[0, 1] ** 2 * np.sign(np.corrcoef(x**-2, y)[0, 1]))

    return _resampled(results["success"], determination)


def root_slope(results: xr.Dataset, name: str, scale: float = 1.0) -> Estimate:
    """The slope of 1/sqrt(N_50) along an axis, relative to its value at the low end: -1 means that a unit of
    the axis would take it to zero."""

    def slope(success: xr.DataArray) -> float:
        x, y = _crossings(success, name)
        if len(x) < 3:
            return np.nan
        fit = np.polyfit(x * scale, y**-0.5, 1)
        return float(fit[0] / np.polyval(fit, x.min() * scale))

    return _resampled(results["success"], slope)


def _crossings(success: xr.DataArray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """N_50 along an axis, where the success rate crosses one half inside the grid, interpolated in log N."""
    size = np.log(np.asarray(success["samples"].values, float))
    rates = np.maximum.accumulate(success.mean("seed").transpose(name, "samples").values, axis=1)
    inside = (rates[:, 0] < 0.5) & (rates[:, -1] >= 0.5)
    found = [np.exp(np.interp(0.5, row + 1e-9 * np.arange(len(row)), size)) for row in rates[inside]]
    return np.asarray(success[name].values, float)[inside], np.array(found)


def _resampled(success: xr.DataArray, statistic: Callable[[xr.DataArray], float]) -> Estimate:
    """A statistic of all runs, its interval from 400 resamples of the seeds."""
    value = statistic(success)
    if not np.isfinite(value):
        return Estimate.absent(
            "too few grid values have a success rate that crosses one half inside the grid."
        )
    draw = np.random.default_rng(0)
    count = success.sizes["seed"]
    again = [statistic(success.isel(seed=draw.integers(0, count, count))) for _ in range(400)]
    low, high = np.nanquantile(again, [0.025, 0.975])
    return Estimate(value, float(low), float(high), count, note="Interval by resampling seeds.")


# Steps ------------------------------------------------------------------------------------------------------


def steps_fraction(results: xr.Dataset) -> Estimate:
    one = results.sel(design="confusion fixed")
    return exponent(one["steps"].astype(float), "relevant_fraction", capped(one))


def steps_margin(results: xr.Dataset) -> Estimate:
    one = results.sel(design="background fixed")
    majority = 2 * one["relevant_fraction"] - 0.5
    one = one.assign_coords(majority=majority)
    return exponent(one["steps"].astype(float), "majority", capped(one))


def steps_rate(results: xr.Dataset) -> Estimate:
    return exponent(results["steps"].astype(float), "learning_rate", capped(results), paired=True)


# Attention --------------------------------------------------------------------------------------------------


def rise(results: xr.Dataset) -> Estimate:
    one = results.sel(loss="hinge") if "loss" in results.dims else results
    return difference(one["attention"], one["attention_curve"].isel(step=0))


def largest_drop(results: xr.Dataset) -> Estimate:
    curve = results["attention_curve"].sel(loss="hinge")
    top = np.maximum.accumulate(np.nan_to_num(curve.transpose("seed", "step").values, nan=-inf), axis=1)
    drop = np.nanmax(top - curve.transpose("seed", "step").values, axis=1)
    return mean(np.asarray(drop))


def end(results: xr.Dataset) -> Estimate:
    return mean(results["attention"].sel(loss="hinge"))


def attention_rate(results: xr.Dataset) -> Estimate:
    """The steepest stretch: the slope of log(1 - attention) against log t over a factor 3 of steps, linear
    loss."""
    curves = 1 - results["attention_curve"].sel(loss="linear")
    time = np.asarray(curves["step"].values, float)
    steepest = []
    for row in curves.transpose("seed", "step").values:
        lowest = int(np.nanargmin(row))
        known = np.isfinite(row[: lowest + 1]) & (time[: lowest + 1] > 0)
        t, y = np.log(time[: lowest + 1][known]), np.log(row[: lowest + 1][known])
        late = t >= t[-1] - np.log(3)
        if late.sum() >= 3:
            steepest.append(np.polyfit(t[late], y[late], 1)[0])
    if len(steepest) < 2:
        return Estimate.absent("fewer than two runs have three logged steps before the attention peaks.")
    return mean(np.array(steepest))


def above_bound(results: xr.Dataset) -> Estimate:
    """The smallest distance, over time, of the measured attention of relevant tokens above the rigorous
    bound."""
    fields = settings(results)
    s = setting(fields)
    one = results.sel(loss="hinge")
    many = s.relevant_fraction * s.tokens
    logit = (
        one["pattern_logit_curve"].isel(pattern=slice(0, 2)).min("pattern").transpose("seed", "step").values
    )
    seen = one["attention_by_role_curve"].isel(role=0).transpose("seed", "step").values
    spread = s.key_query_error + s.token_noise
    known = logit > 0  # looked at; logits of a stopped run are not numbers
    bound = np.full_like(logit, np.nan)
    bound[known] = [relevant_attention_bound(q, spread, many, s.tokens) for q in logit[known]]
    return mean(np.nanmin(seen - bound, axis=1))


def logit_growth(results: xr.Dataset) -> Estimate:
    """Growth of the discriminative logits beyond the largest change of any other pattern's, hinge loss."""
    curve = results["pattern_logit_held"].sel(loss="hinge")
    change = curve.isel(step=-1) - curve.isel(step=0)
    return difference(
        change.isel(pattern=slice(0, 2)).min("pattern"),
        abs(change.isel(pattern=slice(2, None))).max("pattern"),
    )


# Removal of tokens ------------------------------------------------------------------------------------------


def random_change(results: xr.Dataset) -> Estimate:
    """Change of the test loss by the largest random removal, relative to the mean loss without removal."""
    loss = results["test_loss"].sel(removal="random")
    start = float(loss.isel(removed=0).mean())
    change = difference(loss.isel(removed=-1), loss.isel(removed=0))
    return (
        change.map(lambda v: v / start) if start > 0 else Estimate.absent("the loss without removal is zero.")
    )


def relative_loss(results: xr.Dataset, arm: str) -> Estimate:
    """Mean test loss of an arm over that of random removal, at the largest removal; interval by resampling
    seeds."""
    loss = results["test_loss"].isel(removed=-1)
    one, other = (
        loss.sel(removal=kind).transpose("seed", ...).values.reshape(loss.sizes["seed"], -1).mean(1)
        for kind in (arm, "random")
    )
    if not other.mean() > 0:
        return Estimate.absent("random removal has zero test loss: nothing to compare with.")
    draw = np.random.default_rng(0).integers(0, len(one), (2000, len(one)))
    again = one[draw].mean(1) / np.maximum(other[draw].mean(1), 1e-12)
    low, high = np.quantile(again, [0.025, 0.975])
    return Estimate(
        float(one.mean() / other.mean()),
        float(low),
        float(high),
        len(one),
        note="Interval by resampling seeds.",
    )


def relative_loss_patterns(results: xr.Dataset) -> Estimate:
    """The worst ratio over numbers of patterns and both arms."""
    found = [
        relative_loss(results.sel(patterns=count), arm)
        for count in results["patterns"].values
        for arm in ("irrelevant", "noisy")
    ]
    found = [e for e in found if e.exists]
    return max(found, key=lambda e: e.value) if found else Estimate.absent("no arm can be compared.")


def rise_patterns(results: xr.Dataset) -> Estimate:
    found = [rise(results.sel(patterns=count)) for count in results["patterns"].values]
    return min(found, key=lambda e: e.low)


# Mechanism and added experiments ----------------------------------------------------------------------------


def lucky_growth(results: xr.Dataset) -> Estimate:
    """Mean w_i . p_1 of the lucky neurons at the end over the start, per-token weights."""
    one = results["projection_held"].sel(output_weights="per_token").isel(group=0, pattern=0)
    return ratio(one.isel(step=-1), one.isel(step=0))


def lucky_elsewhere(results: xr.Dataset) -> Estimate:
    """The largest |w_i . p_j|, j >= 3, of the lucky group over its w_i . p_1 at the end."""
    one = results["projection_held"].sel(output_weights="per_token").isel(group=0).isel(step=-1)
    return mean(abs(one.isel(pattern=slice(2, None))).max("pattern") / one.isel(pattern=0))


def gates(results: xr.Dataset) -> Estimate:
    """The share of open gates of both lucky groups at the end, relative to the start: neurons are chosen by
    pattern, and a few of their gates are closed from the start on tokens that attend to other patterns too."""
    one = results["gate_persistence_held"].sel(output_weights="per_token").isel(group=slice(0, 2))
    return mean((one.isel(step=-1) / one.isel(step=0)).min("group"))


def unlucky_projection(results: xr.Dataset) -> xr.DataArray:
    """|mean w_i . p_1| at the end of the neurons that were active on pattern 1 with the wrong sign."""
    return abs(results["projection_held"].sel(output_weights="per_token").isel(group=2, pattern=0, step=-1))


def unlucky_by_spread(results: xr.Dataset) -> Estimate:
    """... in units of the initial spread xi."""
    return mean(unlucky_projection(results) / settings(results)["network.hidden_std"])


def unlucky_by_lucky(results: xr.Dataset) -> Estimate:
    """... as a multiple of the lucky neurons' projection over sqrt(B)."""
    lucky = results["projection_held"].sel(output_weights="per_token").isel(group=0, pattern=0, step=-1)
    return mean(unlucky_projection(results) / lucky * np.sqrt(settings(results)["descent.batch"]))


def key_cosine(results: xr.Dataset) -> Estimate:
    """cos(W_K mu_j(t), W_K mu_j(0)) at the end, the smaller of the two discriminative patterns."""
    one = results["key_cosine_held"].sel(output_weights="per_token").isel(step=-1)
    return mean(one.isel(pattern=slice(0, 2)).min("pattern"))


def change_elsewhere(results: xr.Dataset, name: str) -> Estimate:
    """The largest relative change of a norm over the patterns that do not discriminate."""
    one = results[f"{name}_held"].sel(output_weights="per_token").isel(pattern=slice(2, None))
    return mean(abs(one.isel(step=-1) / one.isel(step=0) - 1).max("pattern"))


def value_cosine(results: xr.Dataset) -> Estimate:
    """The cosine between the growth of a discriminative value and the sum of its lucky neurons, the smaller of
    two."""
    one = results["value_growth_cosine_held"].sel(output_weights="per_token").isel(step=-1)
    return mean(one.min("lucky"))


def output_growth(results: xr.Dataset) -> Estimate:
    """The slope of log(mean margin) against log t where the margin lies between 0.02 and 0.5."""
    curves = results["margin_curve"].sel(output_weights="per_token")
    time = np.asarray(curves["step"].values, float)
    slopes = []
    for row in curves.transpose("seed", "step").values:
        early = (time > 0) & (row > 0.02) & (row < 0.5)
        if early.sum() >= 3:
            slopes.append(np.polyfit(np.log(time[early]), np.log(row[early]), 1)[0])
    if len(slopes) < 2:
        return Estimate.absent(
            "fewer than two runs were looked at three times while their margin grew to one half."
        )
    return mean(np.array(slopes))


def value_growth(results: xr.Dataset) -> Estimate:
    """Growth of the shorter discriminative value beyond 1.2 times that of the longest other one."""
    one = results["value_norm_held"].sel(output_weights="per_token")
    grown = one.isel(step=-1) / one.isel(step=0)
    return difference(
        grown.isel(pattern=slice(0, 2)).min("pattern"), grown.isel(pattern=slice(2, None)).max("pattern")
    )


def background(results: xr.Dataset) -> Estimate:
    return difference(results["test_error"].isel(removed=0), results["test_error"].isel(removed=-1))


def precision(results: xr.Dataset) -> Estimate:
    return mean(results["test_pruned_precision"].sel(relevant_fraction=0.5, method="nearest"))


def pruned_error(results: xr.Dataset) -> Estimate:
    near = results.sel(relevant_fraction=0.5, method="nearest")
    return difference(near["test_pruned_error"], near["test_error"])


def confusion_edge(results: xr.Dataset) -> Estimate:
    """The confusion fraction at which half of the runs fail, as a share of alpha_* times the factor of
    condition (8) with slack 1."""
    fields = settings(results)
    factor = fields["data.relevant_fraction"] * np.exp(
        -(setting(fields).key_query_error + setting(fields).token_noise)
    )
    factor *= 1 - setting(fields).disorder
    return critical_size(1 - results["success"], "confusion_fraction").map(lambda v: float(v / factor))


def heads(results: xr.Dataset) -> Estimate:
    """The standard deviation of log steps with four heads over that with one; interval by resampling
    seeds."""
    steps = results["steps"].astype(float)
    one, four = (np.log(steps.sel(variant=kind).values) for kind in ("one head", "four heads"))
    if one.std() == 0:
        return Estimate.absent("all runs with one head took the same number of steps.")
    draw = np.random.default_rng(0).integers(0, len(one), (2000, len(one)))
    again = four[draw].std(1) / np.maximum(one[draw].std(1), 1e-9)
    low, high = np.quantile(again, [0.025, 0.975])
    return Estimate(
        float(four.std() / one.std()), float(low), float(high), len(one), note="Interval by resampling seeds."
    )


def success_gap(results: xr.Dataset, name: str, more: str, less: str, samples: int) -> Estimate:
    """The share of successful runs of one kind minus that of another, at a number of samples, on the same draws."""
    rows = results["success"].sel(samples=samples)
    return difference(rows.sel({name: more}), rows.sel({name: less}))


def extensions(results: xr.Dataset) -> Estimate:
    """The smallest share of successful runs over all extensions."""
    shares = [fraction(results["success"].sel(variant=kind)) for kind in results["variant"].values]
    return min(shares, key=lambda e: (e.value, e.low))


def set_attention(results: xr.Dataset) -> Estimate:
    """Rise of the attention on relevant tokens with set-valued patterns."""
    return rise(results.sel(variant="sets"))


def single_pass(results: xr.Dataset) -> Estimate:
    return mean(results["test_error"].isel(samples=-1))


def delta_steps(results: xr.Dataset) -> Estimate:
    return trend(results["steps"].astype(float), "key_query_error")
