"""What the paper claims, what would refute it, and what it predicts for a given setting."""

from collections.abc import Callable
from math import inf
from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.style import settings
from lemmata.measure.boundary import boundary
from lemmata.measure.columns import capped
from lemmata.measure.compare import Condition
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import fraction, mean
from lemmata.measure.threshold import critical_size
from lemmata.measure.trend import difference, ratio, trend
from lemmata.studies.shallow_vit import theory
from lemmata.studies.shallow_vit.lemmas import relevant_attention_bound
from lemmata.studies.shallow_vit.measured import MEASURED
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.study import Claim, Prediction

# Conditions and predictions ---------------------------------------------------------------------------------


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
        spectral_norm=1.0 if fields["network.unit_spectral"] or fields["network.initial"] == "shrink" else
        1 + fields["network.key_query_error"],
    )  # fmt: skip


def conditions(results: xr.Dataset) -> list[Condition]:
    return theory.conditions(setting(settings(results)))


def predict(trial: ViTTraining) -> tuple[list[Condition], list[Prediction]]:
    """How many samples and steps a setting needs, and what removing tokens saves.

    The theorem leaves its constants open; the numbers use those measured by the lab (see `measured.py` for
    the commands). Savings are ratios, in which the constants cancel.
    """
    from lemmata.trial import fields

    s = setting(fields(trial))
    m = MEASURED
    kept = dict(constant=m.samples_constant, c_noise=m.c_noise)
    found = [
        Prediction("samples needed, trained attention (theorem's form, measured constants)",
                   theory.samples_needed(s, **kept)),
        Prediction("samples needed, trained attention (measured power law)",
                   m.samples_at_040 * (s.relevant_fraction / 0.4) ** m.samples_exponent),
        Prediction("samples needed, frozen attention (measured power law)",
                   m.frozen_samples_at_040 * (s.relevant_fraction / 0.4) ** m.frozen_exponent),
        Prediction("steps needed (paper's form, measured constant)",
                   m.steps_constant / (s.learning_rate * s.relevant_fraction)),
        Prediction("steps needed (measured law in the majority of the vote)",
                   m.steps_margin_constant / (s.learning_rate * (s.relevant_fraction - s.confusion_fraction))),
        Prediction("steps needed (thesis: eta^-3/5; constant 1, does not match)", theory.steps_needed_thesis(s)),
    ]  # fmt: skip
    for share in (0.25, 0.5, 1.0):
        saving = theory.remove_irrelevant(s, share, c_noise=m.c_noise)
        name = f"removing {share:.0%} of the irrelevant tokens"
        found += [
            Prediction(f"{name}: relevant fraction becomes", saving.relevant_fraction),
            Prediction(f"{name}: samples times", saving.samples_ratio),
            Prediction(f"{name}: steps times", saving.steps_ratio),
        ]
    halved = theory.remove_noisy(s, s.token_noise / 2, c_noise=m.c_noise)
    found += [
        Prediction("halving the token noise: samples times", halved.samples_ratio),
        Prediction("halving the token noise: steps times", halved.steps_ratio),
        Prediction("removing tokens at random: samples times", theory.remove_random(s, 0.5).samples_ratio),
        Prediction(
            "smallest relevant fraction by condition (8), slack 1/2", theory.relevant_fraction_needed(s)
        ),
        Prediction("where the constants come from", m.source),
    ]
    return theory.conditions(s), found


# Samples ----------------------------------------------------------------------------------------------------


def _zero_loss(results: xr.Dataset) -> Estimate:
    """Success with at least 48 samples at the two largest relevant fractions."""
    rows = results["success"].sortby("relevant_fraction").isel(relevant_fraction=slice(-2, None))
    return fraction(rows.where(rows["samples"] >= 48, drop=True))


def _sample_exponent(results: xr.Dataset) -> Estimate:
    return _noted(boundary(results["success"], "samples", "relevant_fraction"))


def _frozen_exponent(results: xr.Dataset) -> Estimate:
    return _noted(boundary(results["success"].sel(attention="frozen"), "samples", "relevant_fraction"))


def _noted(law: Any) -> Estimate:
    bend = law.bend
    if law.exponent.exists and bend.exists and (bend.low > 0 or bend.high < 0):
        return law.exponent.noted(
            f"Not a plain power law: the local exponent changes by {bend.value:.2g} over the grid."
        )
    return law.exponent


def _exponent_gain(results: xr.Dataset) -> Estimate:
    """The trained exponent minus the frozen one; the intervals of the two fits are added in quadrature."""
    laws = [
        boundary(results["success"].sel(attention=kind), "samples", "relevant_fraction").exponent
        for kind in ("trained", "frozen")
    ]
    if not all(law.exists for law in laws):
        return Estimate.absent("; ".join(law.note for law in laws if not law.exists))
    value = laws[0].value - laws[1].value
    half = [max(law.high - law.value, law.value - law.low) for law in laws]
    reach = float(np.hypot(*half))
    return Estimate(value, value - reach, value + reach, laws[0].count + laws[1].count)


def _frozen_ratio(results: xr.Dataset) -> Estimate:
    """The smallest ratio of N_50 (frozen over trained) over the grid, by the lower and upper ends of both."""
    found = []
    for value in results["relevant_fraction"].values:
        sizes = [
            critical_size(results["success"].sel(attention=kind, relevant_fraction=value), "samples")
            for kind in ("trained", "frozen")
        ]
        if all(s.exists for s in sizes):
            found.append(
                [sizes[1].value / sizes[0].value, sizes[1].low / sizes[0].high, sizes[1].high / sizes[0].low]
            )
    if not found:
        return Estimate.absent("no relevant fraction has a measured N_50 for both kinds of attention.")
    rows = np.array(found)
    worst = rows[np.argmin(rows[:, 0])]
    note = (
        "Ratios along the grid (most to least relevant): " + ", ".join(f"{r:.2g}" for r in rows[:, 0]) + "."
    )
    return Estimate(worst[0], worst[1], worst[2], results.sizes["seed"], note=note)


def _sample_linear(results: xr.Dataset) -> Estimate:
    """The coefficient of determination of N_50 as a straight line in alpha_*^-2."""

    def determination(success: xr.DataArray) -> float:
        x, y = _crossings(success, "relevant_fraction")
        if len(x) < 4:
            return np.nan
        return float(np.corrcoef(x**-2, y)[0, 1] ** 2 * np.sign(np.corrcoef(x**-2, y)[0, 1]))

    return _resampled(results["success"], determination)


def _root_slope(results: xr.Dataset, name: str, scale: float = 1.0) -> Estimate:
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


def _steps_fraction(results: xr.Dataset) -> Estimate:
    one = results.sel(design="confusion fixed")
    return exponent(one["steps"].astype(float), "relevant_fraction", capped(one))


def _steps_margin(results: xr.Dataset) -> Estimate:
    one = results.sel(design="background fixed")
    majority = 2 * one["relevant_fraction"] - 0.5
    one = one.assign_coords(majority=majority)
    return exponent(one["steps"].astype(float), "majority", capped(one))


def _steps_rate(results: xr.Dataset) -> Estimate:
    return exponent(results["steps"].astype(float), "learning_rate", capped(results), paired=True)


# Attention --------------------------------------------------------------------------------------------------


def _rise(results: xr.Dataset) -> Estimate:
    one = results.sel(loss="hinge") if "loss" in results.dims else results
    return difference(one["attention"], one["attention_curve"].isel(step=0))


def _largest_drop(results: xr.Dataset) -> Estimate:
    curve = results["attention_curve"].sel(loss="hinge")
    top = np.maximum.accumulate(np.nan_to_num(curve.transpose("seed", "step").values, nan=-inf), axis=1)
    drop = np.nanmax(top - curve.transpose("seed", "step").values, axis=1)
    return mean(np.asarray(drop))


def _end(results: xr.Dataset) -> Estimate:
    return mean(results["attention"].sel(loss="hinge"))


def _attention_rate(results: xr.Dataset) -> Estimate:
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


def _above_bound(results: xr.Dataset) -> Estimate:
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
    bound = np.vectorize(lambda q: relevant_attention_bound(q, spread, many, s.tokens) if q > 0 else np.nan)(
        logit
    )
    return mean(np.nanmin(seen - bound, axis=1))


def _logit_growth(results: xr.Dataset) -> Estimate:
    """Growth of the discriminative logits beyond the largest change of any other pattern's, hinge loss."""
    curve = results["pattern_logit_held"].sel(loss="hinge")
    change = curve.isel(step=-1) - curve.isel(step=0)
    return difference(
        change.isel(pattern=slice(0, 2)).min("pattern"),
        abs(change.isel(pattern=slice(2, None))).max("pattern"),
    )


# Removal of tokens ------------------------------------------------------------------------------------------


def _random_change(results: xr.Dataset) -> Estimate:
    """Change of the test loss by the largest random removal, relative to the mean loss without removal."""
    loss = results["test_loss"].sel(removal="random")
    start = float(loss.isel(removed=0).mean())
    change = difference(loss.isel(removed=-1), loss.isel(removed=0))
    return (
        change.map(lambda v: v / start) if start > 0 else Estimate.absent("the loss without removal is zero.")
    )


def _relative_loss(results: xr.Dataset, arm: str) -> Estimate:
    """Mean test loss of an arm over that of random removal, at the largest removal; interval by resampling
    seeds."""
    loss = results["test_loss"].isel(removed=-1)
    one, other = (loss.sel(removal=kind).transpose("seed", ...).values.reshape(loss.sizes["seed"], -1).mean(1)
                  for kind in (arm, "random"))  # fmt: skip
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


def _relative_loss_patterns(results: xr.Dataset) -> Estimate:
    """The worst ratio over numbers of patterns and both arms."""
    found = [
        _relative_loss(results.sel(patterns=count), arm)
        for count in results["patterns"].values
        for arm in ("irrelevant", "noisy")
    ]
    found = [e for e in found if e.exists]
    return max(found, key=lambda e: e.value) if found else Estimate.absent("no arm can be compared.")


def _rise_patterns(results: xr.Dataset) -> Estimate:
    found = [_rise(results.sel(patterns=count)) for count in results["patterns"].values]
    return min(found, key=lambda e: e.low)


# Mechanism and added experiments ----------------------------------------------------------------------------


def _lucky_growth(results: xr.Dataset) -> Estimate:
    """Mean w_i . p_1 of the lucky neurons at the end over the start, per-token weights."""
    one = results["projection_held"].sel(output_weights="per_token").isel(group=0, pattern=0)
    return ratio(one.isel(step=-1), one.isel(step=0))


def _lucky_elsewhere(results: xr.Dataset) -> Estimate:
    """The largest |w_i . p_j|, j >= 3, of the lucky group over its w_i . p_1 at the end."""
    one = results["projection_held"].sel(output_weights="per_token").isel(group=0).isel(step=-1)
    return mean(abs(one.isel(pattern=slice(2, None))).max("pattern") / one.isel(pattern=0))


def _gates(results: xr.Dataset) -> Estimate:
    """The smallest share of open gates of both lucky groups after the start."""
    one = results["gate_persistence_curve"].sel(output_weights="per_token").isel(group=slice(0, 2))
    return mean(one.min(["group", "step"]))


def _value_growth(results: xr.Dataset) -> Estimate:
    """Growth of the shorter discriminative value beyond 1.2 times that of the longest other one."""
    one = results["value_norm_held"].sel(output_weights="per_token")
    grown = one.isel(step=-1) / one.isel(step=0)
    return difference(
        grown.isel(pattern=slice(0, 2)).min("pattern"), grown.isel(pattern=slice(2, None)).max("pattern")
    )


def _background(results: xr.Dataset) -> Estimate:
    return difference(results["test_error"].isel(removed=0), results["test_error"].isel(removed=-1))


def _precision(results: xr.Dataset) -> Estimate:
    return mean(results["test_pruned_precision"].sel(relevant_fraction=0.5, method="nearest"))


def _pruned_error(results: xr.Dataset) -> Estimate:
    near = results.sel(relevant_fraction=0.5, method="nearest")
    return difference(near["test_pruned_error"], near["test_error"])


def _confusion_edge(results: xr.Dataset) -> Estimate:
    """The confusion fraction at which half of the runs fail, as a share of alpha_* times the factor of
    condition (8) with slack 1."""
    fields = settings(results)
    factor = fields["data.relevant_fraction"] * np.exp(
        -(setting(fields).key_query_error + setting(fields).token_noise)
    )
    factor *= 1 - setting(fields).disorder
    return critical_size(1 - results["success"], "confusion_fraction").map(lambda v: float(v / factor))


def _heads(results: xr.Dataset) -> Estimate:
    """The standard deviation of log steps with four heads over that with one; interval by resampling
    seeds."""
    rows = np.log(results["steps"].astype(float))
    one, four = (rows.sel(variant=kind).values for kind in ("one head", "four heads"))
    if one.std() == 0:
        return Estimate.absent("all runs with one head took the same number of steps.")
    draw = np.random.default_rng(0).integers(0, len(one), (2000, len(one)))
    again = four[draw].std(1) / np.maximum(one[draw].std(1), 1e-9)
    low, high = np.quantile(again, [0.025, 0.975])
    return Estimate(
        float(four.std() / one.std()), float(low), float(high), len(one), note="Interval by resampling seeds."
    )


def _single_pass(results: xr.Dataset) -> Estimate:
    return mean(results["test_error"].isel(samples=-1))


def _delta_steps(results: xr.Dataset) -> Estimate:
    return trend(results["steps"].astype(float), "key_query_error")


# The claims -------------------------------------------------------------------------------------------------

CLAIMS: dict[str, Claim] = {
    claim.id: claim
    for claim in (
        Claim("zero-loss", "fig1a", "Theorem 1, (12)", "at least 0.99", (0.9, 1.0),
              "The theorem says 0.99; the interval of a few dozen runs that all succeed reaches down to 0.9.",
              _zero_loss, conditions),
        Claim("sample-exponent", "fig1a", "Theorem 1, (10); Figure 1(a)", "-2", (-2.5, -1.5),
              "A half either way keeps -2 apart from -1 and from -3.", _sample_exponent, conditions),
        Claim("sample-linear", "fig1a", "Figure 1(a)", "close to 1", (0.8, 1.0),
              "The figure is described as almost linear; below 0.8 nobody would.", _sample_linear, conditions),
        Claim("frozen-exponent", "fig3", "Proposition 1; Figure 3", "-4", (-4.75, -3.25),
              "Three quarters either way keeps -4 apart from -3 and -5.", _frozen_exponent, conditions),
        Claim("attention-exponent-gain", "fig3", "Remark 1", "2", (1.0, 3.0),
              "Half of the predicted gain either way.", _exponent_gain, conditions),
        Claim("attention-saves-samples", "fig3", "Remark 1", "above 1 at every relevant fraction", (1.0, inf),
              "Fewer samples with frozen attention anywhere would refute it.", _frozen_ratio, conditions),
        Claim("initial-error-samples", "fig1b", "(10); Figure 1(b)", "negative", (-inf, -0.1),
              "A slope above -0.1 (10 % per unit of sigma) could not be seen in a picture.",
              lambda r: _root_slope(r, "value_error"), conditions),
        Claim("noise-samples", "fig1b-noise", "(10)", "negative", (-inf, -0.1),
              "The same as for sigma, per unit of tau.",
              lambda r: _root_slope(r, "noise_std", float(np.sqrt(settings(r)["data.dim"]))), conditions),
        Claim("steps-fraction", "fig2", "(11); Figure 2", "-1", (-1.25, -0.75),
              "A quarter either way; alpha_# is held fixed, so only alpha_* moves.", _steps_fraction, conditions),
        Claim("steps-margin", "fig2", "not in the paper", "-1", (-1.25, -0.75),
              "A quarter either way; alpha_nd is held fixed as in Figure 1.", _steps_margin, conditions),
        Claim("steps-rate-paper", "fig2-rate", "(11)", "-1", (-1.1, -0.9),
              "A tenth either way keeps the rival exponents apart.", _steps_rate, conditions),
        Claim("steps-rate-thesis", "fig2-rate", "thesis, Theorem 2.3.1", "-0.6", (-0.7, -0.5),
              "A tenth either way keeps the rival exponents apart.", _steps_rate, conditions),
        Claim("attention-rises", "fig4", "Proposition 2; Figure 4", "above 0.15", (0.15, 1.0),
              "A rise below 0.15 at alpha_* = 0.5 would not be called concentration.", _rise, conditions),
        Claim("attention-steady", "fig4", "Proposition 2", "0", (0.0, 0.01),
              "Drops up to 0.01 are noise of mini-batches.", _largest_drop, conditions),
        Claim("attention-near-one", "fig4", "Proposition 2; Figure 4", "close to 1", (0.9, 1.0),
              "The figure is described as close to one; below 0.9 a reader would not say so.", _end, conditions),
        Claim("attention-rate", "fig4", "Proposition 2", "at most -1", (-inf, -0.8),
              "The slope of log(1 - attention) late in the training on the linear loss; 0.2 for its "
              "curvature.",
              _attention_rate, conditions),
        Claim("attention-bound", "fig4", "Definition 1, corrected", "never below the bound", (0.0, inf),
              "It is a theorem: any negative distance is an error of ours.", _above_bound, conditions),
        Claim("logits-grow", "fig4", "Lemma 2, Claim 2", "positive", (0.0, inf),
              "The discriminative logits must outgrow any change of the others.", _logit_growth, conditions),
        Claim("random-removal", "fig5", "Figure 5", "0", (-0.5, inf),
              "A fall of the loss by more than half would be called help.", _random_change, conditions),
        Claim("irrelevant-removal", "fig5", "Remark 2; Figure 5", "below 1", (0.0, 0.7),
              "Losses as a ratio to random removal; 0.7 is a difference that a picture shows.",
              lambda r: _relative_loss(r, "irrelevant"), conditions),
        Claim("noisy-removal", "fig5", "Remark 2; Figure 5", "below 1", (0.0, 0.7),
              "The same as for irrelevant tokens.", lambda r: _relative_loss(r, "noisy"), conditions),
        Claim("attention-many-patterns", "fig7", "Figure 7", "above 0.1", (0.1, 1.0),
              "The smallest rise over the numbers of patterns.", _rise_patterns, conditions),
        Claim("removal-many-patterns", "fig8", "Figure 8", "below 1", (0.0, 0.7),
              "The worst of all arms and numbers of patterns.", _relative_loss_patterns, conditions),
        Claim("initial-attention-steps", "initial-attention", "Remark 3", "1 (rises)", (0.2, 1.0),
              "Kendall's tau over the grid; below 0.2 there is no trend to speak of.", _delta_steps, conditions),
        Claim("single-pass-learns", "single-pass", "Algorithm 1", "0", (0.0, 0.01),
              "Test error after one pass over the largest training set.", _single_pass, conditions),
        Claim("lucky-grow", "neurons", "Lemma 2, Claim 1", "at least 5 times", (5.0, inf),
              "Growth by less could be drift.", _lucky_growth, conditions),
        Claim("lucky-only", "neurons", "Lemma 2, Claim 1", "small", (0.0, 0.2),
              "A fifth of the growth along the own pattern.", _lucky_elsewhere, conditions),
        Claim("lucky-gates", "neurons", "Lemma 4; thesis Lemma A.5.2", "1", (0.99, 1.0),
              "One gate in a hundred may close by mini-batch noise.", _gates, conditions),
        Claim("values-grow", "neurons", "Lemma 2, Claim 3", "positive", (0.2, inf),
              "The discriminative values must outgrow the others by a fifth.", _value_growth, conditions),
        Claim("background-removal", "spurious", "section 3 (P3)", "positive", (0.01, 1.0),
              "A fall of the test error by less than one in a hundred is not seen.", _background, conditions),
        Claim("pruning-precision", "pruning", "Proposition 2", "close to 1", (0.9, 1.0),
              "Nine of ten kept tokens relevant.", _precision, conditions),
        Claim("pruning-error", "pruning", "Proposition 2", "0", (-1.0, 0.01),
              "One more error in a hundred.", _pruned_error, conditions),
        Claim("confusion-paper", "confusion", "(8)", "0.5", (0.35, 0.65),
              "The edge relative to the factor with slack 1; halfway to the rival.", _confusion_edge, conditions),
        Claim("confusion-thesis", "confusion", "thesis, (8)", "1", (0.85, 1.15),
              "The same, around the rival value.", _confusion_edge, conditions),
        Claim("heads-steady", "variants", "section G.3", "at most 1", (0.0, 1.2),
              "The spread of the logarithm of steps; 1.2 allows for its own uncertainty.", _heads, conditions),
    )
}  # fmt: skip
