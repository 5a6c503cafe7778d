"""What is measured of the results for the claims: numbers with intervals, one number a run, or the reason why there is none.

    python -m benchmarks.shallow_vit_constants FOLDER

prints the laws that `lemmata predict shallow-vit` uses, fitted to the stored runs of the figure `settings`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.columns import capped
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import bootstrap, fraction, mean
from lemmata.measure.threshold import critical_size, critical_sizes
from lemmata.measure.times import grows, largest_fall, last_value, time_exponent
from lemmata.measure.trend import arms, difference, largest, ratio, smallest, trend
from lemmata.results import over_cells, trial_at
from lemmata.studies.shallow_vit.theory import lemmas, predictions, theorem
from lemmata.studies.shallow_vit.theory.theorem import setting
from lemmata.studies.shallow_vit.trials import BOUNDS

# Regions ---------------------------------------------------------------------------------------------------------------


def ample(results: xr.Dataset) -> xr.DataArray:
    """Trained attention with at least four times the samples of (10)."""
    enough = over_cells(results, lambda t: t.data.samples >= 4 * theorem.samples_needed(setting(t)))
    return (enough > 0) & (results["kind"] == "trained")


def on_hinge(results: xr.Dataset) -> xr.DataArray:
    """The runs on the hinge loss."""
    return results["loss"] == "hinge"


def on_linear(results: xr.Dataset) -> xr.DataArray:
    """The runs on the linear loss, which the proofs differentiate."""
    return results["loss"] == "linear"


def one_vector(results: xr.Dataset) -> xr.DataArray:
    """One output vector for all tokens, as the proofs have it."""
    return results["output_weights"] == "shared"


def vector_per_token(results: xr.Dataset) -> xr.DataArray:
    """An output vector for every token, as equation (1) has it."""
    return results["output_weights"] == "per_token"


def most_samples(results: xr.Dataset) -> xr.DataArray:
    """The largest training sets."""
    return results["samples"] == results["samples"].max()


def half_relevant(results: xr.Dataset) -> xr.DataArray:
    """alpha_* = 1/2, as in Figure 4."""
    return results["relevant_fraction"] == 0.5


# Samples ---------------------------------------------------------------------------------------------------------------


def runs(results: xr.Dataset, of: str) -> xr.DataArray:
    """What happened in every run (1, 0)."""
    return results[of]


def sample_exponent(results: xr.Dataset, kind: str = "", of: str = "success") -> Estimate:
    """The exponent in alpha_* of the samples with which half of the runs succeed."""
    success = results[of].sel(kind=kind) if kind else results[of]
    law = boundary(success, "samples", "relevant_fraction")
    bend = law.bend
    if law.exponent.exists and bend.exists and (bend.low > 0 or bend.high < 0):
        said = f"Not a plain power law: the local exponent changes by {bend.value:.2g} over the grid."
        return law.exponent.noted(said)
    return law.exponent


def exponent_gain(results: xr.Dataset) -> Estimate:
    """The trained exponent minus the frozen one."""
    return sample_exponent(results, "trained").minus(sample_exponent(results, "frozen"))


@answering(Estimate.absent)
def frozen_ratio(results: xr.Dataset) -> Estimate:
    """The smallest ratio of N_50 (frozen over trained) over the grid; its interval counts that it was picked."""
    needs("kind" in results.dims, "there are no two kinds of attention to compare.")
    fractions = results["relevant_fraction"].values
    sure = 1 - 0.05 / len(fractions)

    def ratios(level: float) -> list[Estimate]:
        frozen, trained = (
            [critical_size(one, "samples", level=level) for one in arms(results["success"].sel(kind=k), AXIS)]
            for k in ("frozen", "trained")
        )
        return [a.over(b) for a, b in zip(frozen, trained, strict=True) if a.exists and b.exists]

    own, wide = ratios(0.95), ratios(sure)
    needs(own, "no relevant fraction has a measured N_50 for both kinds of attention.")
    least = min(own, key=lambda e: e.value)
    low, high = min(e.low for e in own), min(e.high for e in wide)
    listed = ", ".join(f"{e.value:.2g}" for e in own)
    return Estimate(least.value, low, high, results.sizes["seed"], note=f"Ratios along the grid: {listed}.")


AXIS = "relevant_fraction"


def sample_linear(results: xr.Dataset) -> Estimate:
    """The coefficient of determination of N_50 as a straight line in alpha_*^-2; negative where it falls along it."""

    def determination(success: xr.DataArray) -> float:
        x, y = _crossings(success, AXIS)
        if len(x) < 4:
            return np.nan
        r = float(np.corrcoef(x**-2, y)[0, 1])
        return r * abs(r)

    return bootstrap(determination, results["success"])


def root_slope(results: xr.Dataset, over: str) -> Estimate:
    """The slope of 1/sqrt(N_50) along sigma or tau, relative to its value at the low end: -1 means that a unit would
    take it to zero. Where half of the runs never succeed the fall is understated."""
    scale = math.sqrt(trial_at(results).data.dim) if over == "noise_std" else 1.0

    def slope(success: xr.DataArray) -> float:
        x, y = _crossings(success, over, bounds=True)
        if len(x) < 3:
            return np.nan
        fit = np.polyfit(x * scale, y**-0.5, 1)
        return float(fit[0] / np.polyval(fit, x.min() * scale))

    return bootstrap(slope, results["success"])


def _crossings(success: xr.DataArray, over: str, bounds: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """N_50 along an axis, where the success rate crosses one half inside the grid, interpolated in log N; with `bounds` also
    where it stays below one half, as the upper end of the grid, which N_50 is at least."""
    size = np.log(np.asarray(success["samples"].values, float))
    rates = np.maximum.accumulate(success.mean("seed").transpose(over, "samples").values, axis=1)
    taken = (rates[:, 0] < 0.5) & (bounds | (rates[:, -1] >= 0.5))
    found = [np.exp(np.interp(0.5, row + 1e-9 * np.arange(len(row)), size)) for row in rates[taken]]
    return np.asarray(success[over].values, float)[taken], np.array(found)


def success_gap(results: xr.Dataset, over: str, more: str, less: str, samples: int) -> Estimate:
    """The share of successful runs of one kind minus that of another, at a number of samples, on the same draws."""
    rows = results["success"].sel(samples=samples)
    return difference(rows.sel({over: more}), rows.sel({over: less}))


@answering(Estimate.absent)
def confusion_edge(results: xr.Dataset) -> Estimate:
    """The confusion fraction at which half of the runs fail, as a share of what condition (8) allows with slack 1."""
    s = setting(trial_at(results))
    allowed = s.relevant_fraction * s.room / s.confusion_slack
    return critical_size(1 - results["success"], "confusion_fraction").map(lambda v: v / allowed)


# Steps -----------------------------------------------------------------------------------------------------------------


def steps_exponent(results: xr.Dataset, over: str, design: str = "", paired: bool = False) -> Estimate:
    """The exponent of the steps to zero training loss along an axis; `majority` is alpha_* - alpha_#. Runs that hit
    the cap count as bounds."""
    one = results.sel(design=design) if design else results
    if over == "majority":
        majority = over_cells(one, lambda t: t.data.relevant_fraction - t.data.confusion_fraction)
        one = one.assign_coords(majority=majority)
    return exponent(one["steps"].astype(float), over, capped(one), paired=paired)


def steps_trend(results: xr.Dataset, over: str) -> Estimate:
    """How steadily the steps rise along an axis."""
    return trend(results["steps"].astype(float), over)


def steps_ratio(results: xr.Dataset, arm: str) -> Estimate:
    """Steps with the most tokens removed of a kind, over those with as many removed at random."""
    steps = results["steps"].astype(float).isel(removed=-1)
    return ratio(steps.sel(removal=arm), steps.sel(removal="random"))


@answering(Estimate.absent)
def heads_spread(results: xr.Dataset) -> Estimate:
    """The standard deviation of log steps with four heads over that with one."""
    logs = np.log(results["steps"].astype(float))
    needs(float(logs.sel(variant="one head").std()) > 0, "all runs with one head took the same steps.")  # pyright: ignore[reportAttributeAccessIssue]  (NumPy's function of a DataArray gives one)

    def spread(values: xr.DataArray) -> float:
        return float(values.sel(variant="four heads").std() / values.sel(variant="one head").std())

    return bootstrap(spread, logs)  # pyright: ignore[reportArgumentType]  (NumPy's function of a DataArray gives one)


# Attention -------------------------------------------------------------------------------------------------------------


def rise(results: xr.Dataset, variant: str = "") -> Estimate:
    """Final minus initial attention on the relevant tokens."""
    one = results.sel(variant=variant) if variant else results
    return mean(last_value(one["attention_curve"]) - one["attention_curve"].isel(step=0))


def rise_patterns(results: xr.Dataset) -> Estimate:
    """The smallest rise over the numbers of patterns."""
    curves = results["attention_curve"]
    return smallest(arms(last_value(curves) - curves.isel(step=0), "patterns"))


def falls(results: xr.Dataset) -> xr.DataArray:
    """The largest fall of the attention on the way, run by run."""
    return largest_fall(results["attention_curve"])


def final_attention(results: xr.Dataset) -> Estimate:
    return mean(results["attention"])


def every_role(results: xr.Dataset) -> xr.DataArray:
    """The final attention on relevant tokens by the role of who pays it, the smallest of each run."""
    return results["attention_by_role"].min("role")


@answering(Estimate.absent)
def attention_rate(results: xr.Dataset) -> Estimate:
    """The exponent in time of what the attention lacks to one, from a ninth of the time of its peak to the peak, on
    the linear loss; its two halves (a factor 3 each) are the local exponents."""
    curve = results["attention_curve"].sel(loss="linear")
    peak = curve["step"].where((curve == curve.max("step")) & curve.notnull()).max("step")
    late = (curve["step"] >= peak / 9) & (curve["step"] <= peak)
    return time_exponent(1 - curve, late)


def above_floor(results: xr.Dataset, bound: str) -> xr.DataArray:
    """How far the attention of relevant tokens on each other lies inside a bound, at every logged step: above the
    `rigorous` or the `printed` lower bound, below the printed `ceiling`. ||q_1||^2 is the smaller (for the ceiling
    the larger) logit."""
    s = setting(trial_at(results))
    logits = results["pattern_logit_curve"].isel(pattern=slice(0, 2))
    logit = logits.max("pattern") if bound == "ceiling" else logits.min("pattern")
    law: Callable[..., Any] = {
        "rigorous": lemmas.relevant_attention_bound,
        "printed": lemmas.relevant_attention_printed,
        "ceiling": lemmas.relevant_attention_ceiling,
    }[bound]
    q2 = logit.where(logit > 0)
    seen = results["attention_by_role_curve"].isel(role=0)
    apart = seen - law(q2, s.spread, s.relevant_fraction * s.tokens, s.tokens)
    return -apart if bound == "ceiling" else apart


def logit_growth(results: xr.Dataset) -> Estimate:
    """Growth of the discriminative logits beyond the largest change of any other pattern's."""
    change = last_value(results["pattern_logit_curve"]) - results["pattern_logit_curve"].isel(step=0)
    return difference(
        change.isel(pattern=slice(0, 2)).min("pattern"),
        abs(change.isel(pattern=slice(2, None))).max("pattern"),
    )


def logit_logarithmic(results: xr.Dataset) -> Estimate:
    """The share of runs in which the logit of pattern 1 grows clearly as a logarithm, from a ninth of the run on."""
    curve = results["pattern_logit_curve"].sel(loss="linear").isel(pattern=0, drop=True)
    last = curve["step"].where(curve.notnull()).max("step")
    return grows(curve, "logarithmic", last / 9, last)


# Removal of tokens -----------------------------------------------------------------------------------------------------


@answering(Estimate.absent)
def random_change(results: xr.Dataset) -> Estimate:
    """Change of the test loss by the largest random removal, relative to the mean loss without removal."""
    loss = results["test_loss"].sel(removal="random")
    start = float(loss.isel(removed=0).mean())
    needs(start > 0, "the loss without removal is zero.")
    return difference(loss.isel(removed=-1), loss.isel(removed=0)).map(lambda v: v / start)


@answering(Estimate.absent)
def relative_loss(results: xr.Dataset, arm: str) -> Estimate:
    """Mean test loss of an arm over that of random removal, at the largest removal."""
    loss = results["test_loss"].isel(removed=-1)
    needs(float(loss.sel(removal="random").mean()) > 0, "random removal has zero test loss.")

    def over_random(values: xr.DataArray) -> float:
        return float(values.sel(removal=arm).mean() / max(float(values.sel(removal="random").mean()), 1e-12))

    return bootstrap(over_random, loss)


def relative_loss_patterns(results: xr.Dataset) -> Estimate:
    """The largest ratio over numbers of patterns and both arms."""

    def loss_ratio(arm: xr.DataArray, level: float = 0.95) -> Estimate:
        return bootstrap(
            lambda v: float(v.isel(of=0).mean() / max(float(v.isel(of=1).mean()), 1e-12)), arm, level
        )

    loss = results["test_loss"].isel(removed=-1)
    pairs = [
        xr.concat([one.sel(removal=arm, drop=True), one.sel(removal="random", drop=True)], "of")
        for one in arms(loss, "patterns")
        for arm in ("irrelevant", "noisy")
    ]
    return largest(pairs, loss_ratio)


def background(results: xr.Dataset) -> Estimate:
    """Fall of the test error when the whole background is removed."""
    return difference(results["test_error"].isel(removed=0), results["test_error"].isel(removed=-1))


def pruned(results: xr.Dataset, what: str) -> Estimate:
    """Of the tokens that receive most attention: the share that is relevant (`precision`), or how much the test error
    rises when only they are kept (`error`)."""
    one = results.sel(relevant_fraction=0.5, method="nearest")
    if what == "precision":
        return mean(one["test_pruned_precision"])
    return difference(one["test_pruned_error"], one["test_error"])


# Neurons, keys and values ----------------------------------------------------------------------------------------------


def _arm(results: xr.Dataset, name: str) -> xr.DataArray:
    """The curves of the one kind of output weights that the region has left."""
    curve = results[f"{name}_curve"]
    used = curve.notnull().any([d for d in curve.dims if d != "output_weights"])
    needs(int(used.sum()) == 1, "a claim about neurons looks at one kind of output weights.")
    return curve.isel(output_weights=int(used.argmax("output_weights")))


def _ends(results: xr.Dataset, name: str) -> tuple[xr.DataArray, xr.DataArray]:
    """The first and the last value of each curve."""
    curve = _arm(results, name)
    return curve.isel(step=0, drop=True), last_value(curve)


def bound_ratio(results: xr.Dataset, statement: str) -> xr.DataArray:
    """Left over right side of a numbered bound on neurons, the worst neuron at every logged step."""
    return _arm(results, "neuron_bound").isel(statement=BOUNDS.index(statement))


def kept(results: xr.Dataset, name: str, signed: bool) -> xr.DataArray:
    """The share of lucky neurons (or gates) that are still lucky (open) at the end: of all as printed, or of those
    with an output weight of the right sign."""
    return last_value(_arm(results, name)).isel(sign=int(signed))


def lucky_growth(results: xr.Dataset) -> Estimate:
    """Mean w_i . p_1 of the lucky neurons at the end over the start."""
    start, end = (one.isel(group=0, pattern=0) for one in _ends(results, "projection"))
    return ratio(end, start)


def lucky_exponent(results: xr.Dataset) -> Estimate:
    """The exponent in time of what the lucky neurons have gained along p_1, until the mean margin reaches one half."""
    along = _arm(results, "projection").isel(group=0, pattern=0, drop=True)
    gained = along - along.isel(step=0, drop=True)
    return time_exponent(gained.where(gained > 0), _arm(results, "margin") < 0.5)


def lucky_elsewhere(results: xr.Dataset) -> Estimate:
    """The largest |w_i . p_j|, j >= 3, of the lucky group over its w_i . p_1 at the end."""
    end = _ends(results, "projection")[1].isel(group=0)
    return mean(abs(end.isel(pattern=slice(2, None))).max("pattern") / end.isel(pattern=0))


def lucky_pull(results: xr.Dataset) -> xr.DataArray:
    """-V_i of the lucky neurons with the right sign (mean of a group, the smaller of two) over the bound (A.16), at
    every step."""
    trial = trial_at(results.sel(output_weights="shared"))
    s = setting(trial)
    logit = _arm(results, "pattern_logit").isel(pattern=slice(0, 2)).min("pattern")
    attention = lemmas.relevant_attention_printed(logit.where(logit > 0), s.spread, s.relevant_fraction, 1.0)
    bound = lemmas.value_coefficient(s.relevant_fraction, attention, s.neurons)
    return _arm(results, "value_pull").min("lucky") / bound


def unlucky_by_lucky(results: xr.Dataset) -> Estimate:
    """The largest mean w_i . p_j over patterns of the neurons with the wrong sign, over 1/sqrt(B) of the smaller of
    the lucky groups, at the end: at most 1 by (A.27)."""
    end = _ends(results, "projection")[1]
    lucky = xr.concat([end.isel(group=k, pattern=k) for k in (0, 1)], "of").min("of")
    batch = trial_at(results).batch_size
    return mean(end.isel(group=2).max("pattern") / lucky * math.sqrt(batch))


def key_cosine(results: xr.Dataset) -> Estimate:
    """cos(W_K mu_j(t), W_K mu_j(0)) at the end, the smaller of the two discriminative patterns."""
    return mean(_ends(results, "key_cosine")[1].isel(pattern=slice(0, 2)).min("pattern"))


def keys_over_queries(results: xr.Dataset) -> Estimate:
    """The logarithm of the growth of discriminative keys over that of queries, beyond 1 - lambda (168)."""
    keys, queries = (
        np.log(end / start).isel(pattern=slice(0, 2)).mean("pattern")  # pyright: ignore[reportAttributeAccessIssue]  (NumPy's function of a DataArray gives one)
        for start, end in (_ends(results, name) for name in ("key_norm", "query_norm"))
    )
    noise = setting(trial_at(results)).token_noise
    return mean(keys / queries - (1 - (2 * noise + noise**2)))


def query_leak(results: xr.Dataset) -> Estimate:
    """What the query of pattern 1 gains along the key of another pattern, over what it gains along its own, as a share of
    |S_j|/(|S| - |S_1|), the largest over patterns: at most 1 by (147, 148)."""
    gained = abs(_ends(results, "query_gain")[1].isel(asking=0))
    data = trial_at(results).data
    rest = [data.rest / (data.patterns - 2)] * (data.patterns - 2)
    share = xr.DataArray([data.confusion_fraction, *rest], dims="pattern") / (1 - data.relevant_fraction)
    return mean((gained.isel(pattern=slice(1, None)) / gained.isel(pattern=0) / share).max("pattern"))


def queries_turn(results: xr.Dataset) -> Estimate:
    """What queries of the other patterns gain along the keys of the discriminative ones, the smallest (164)."""
    gained = _ends(results, "query_gain")[1].isel(asking=slice(2, None), pattern=slice(0, 2))
    return mean(gained.min(["asking", "pattern"]))


def change_elsewhere(results: xr.Dataset, name: str) -> Estimate:
    """The largest relative change of a norm over the patterns that do not discriminate."""
    start, end = (one.isel(pattern=slice(2, None)) for one in _ends(results, name))
    return mean(abs(end / start - 1).max("pattern"))


def value_cosine(results: xr.Dataset) -> Estimate:
    """The cosine between the growth of a discriminative value and the sum of its lucky neurons, the smaller of two."""
    return mean(_ends(results, "value_growth_cosine")[1].min("lucky"))


def value_growth(results: xr.Dataset) -> Estimate:
    """Growth of the shorter discriminative value beyond that of the longest other one."""
    start, end = _ends(results, "value_norm")
    grown = end / start
    return difference(
        grown.isel(pattern=slice(0, 2)).min("pattern"), grown.isel(pattern=slice(2, None)).max("pattern")
    )


def output_exponent(results: xr.Dataset) -> Estimate:
    """The exponent in time of the mean margin where it lies between 0.02 and 0.5."""
    margin = _arm(results, "margin")
    return time_exponent(margin.where(margin > 0), (margin > 0.02) & (margin < 0.5))


def least_success(results: xr.Dataset) -> Estimate:
    """The smallest share of successful runs over all variants."""
    return smallest(arms(results["success"], "variant"), fraction)


def final_error(results: xr.Dataset) -> Estimate:
    """Test error after one pass over the largest training set."""
    return mean(results["test_error"].isel(samples=-1))


# The laws that `predict` uses ------------------------------------------------------------------------------------------


def constants(results: xr.Dataset) -> dict[str, Any]:
    """Laws for samples and steps, log-linear in `theory.predictions.features`, from runs of the figure `settings`.

    Every fourth setting is held out; `error` is the typical factor (root mean square of the logarithm) by which the
    law misses there: the mean steps of a setting, and the samples with which half of its runs succeed where the grid
    shows that."""
    of = {int(i): trial_at(results, variant=i) for i in results["variant"].values}
    rows = {i: predictions.features(setting(t), t.network.output_weights == "shared") for i, t in of.items()}
    names = list(next(iter(rows.values())))
    kept = [i for i in of if i % 4 != 3]
    held_out = [i for i in of if i % 4 == 3]

    def design(i: int) -> np.ndarray:
        return np.array([1.0, *rows[i].values()])

    time = np.log(results["steps"].where(results["status"] == 1) * _rates(results))
    time = time.mean([d for d in time.dims if d != "variant"])  # pyright: ignore[reportAttributeAccessIssue]  (NumPy's function of a DataArray gives one)
    timed = [i for i in kept if np.isfinite(time.sel(variant=i))]
    fit = np.linalg.lstsq(np.stack([design(i) for i in timed]), [float(time.sel(variant=i)) for i in timed])[
        0
    ]
    sizes = np.log(np.asarray(results["samples"].values, float))
    flags = [
        (np.array([*design(i), size]), float(v))
        for i in kept
        for size, row in zip(
            sizes, results["success"].sel(variant=i).transpose("samples", ...).values, strict=True
        )
        for v in row[np.isfinite(row)]
    ]
    regressors, success = np.stack([x for x, _ in flags]), np.array([v for _, v in flags])
    import statsmodels.api as sm  # not at the top: it takes as long to import as all else together

    model = sm.GLM(success, regressors, family=sm.families.Binomial()).fit_regularized(alpha=1e-3, L1_wt=0.0)
    need = -model.params[:-1] / model.params[-1]
    sizes_seen = critical_sizes(results["success"].sel(variant=held_out), "samples", "variant")
    seen = {
        "steps": {i: float(time.sel(variant=i)) for i in held_out},
        "samples": {
            i: math.log(float(sizes_seen["value"].sel(variant=i)))
            for i in held_out
            if bool(sizes_seen["inside"].sel(variant=i))
        },
    }
    span = {n: [min(r[n] for r in rows.values()), max(r[n] for r in rows.values())] for n in names}
    laws = {}
    for what, beta in (("steps", fit), ("samples", need)):
        missed = [design(i) @ beta - v for i, v in seen[what].items() if np.isfinite(v)]
        laws[what] = {
            "intercept": round(float(beta[0]), 4),
            "slope": {n: round(float(b), 4) for n, b in zip(names, beta[1:], strict=True)},
            "range": {n: [round(low, 4), round(high, 4)] for n, (low, high) in span.items()},
            "error": round(float(np.exp(np.sqrt(np.mean(np.square(missed))))), 3) if missed else None,
            "held_out": len(missed),
        }
    source = f"figure settings, {results.attrs.get('scale', '')} scale, {results.sizes['seed']} seeds, {len(of)} settings"
    return {"source": source, **laws}


def _rates(results: xr.Dataset) -> xr.DataArray:
    return over_cells(results, lambda t: t.descent.learning_rate)
