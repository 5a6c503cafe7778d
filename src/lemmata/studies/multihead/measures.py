"""What is measured of the results: numbers with intervals, or one number a run where a claim speaks of every run."""

from collections.abc import Iterable
from math import log, sqrt
from typing import Any

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.columns import above, flagged
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import bootstrap, fraction, mean, median
from lemmata.measure.times import at_step, first_value, time_exponent
from lemmata.measure.trend import arms, difference, largest, lead, ordering, smallest
from lemmata.results import over_cells, trial_at
from lemmata.studies.multihead.theory import bounds as general
from lemmata.studies.multihead.theory import mixture as mixed
from lemmata.studies.multihead.trials.inequalities import INEQUALITIES, POINTWISE
from lemmata.studies.multihead.trials.training import STUCK

CENTRES = {"mean": mean, "median": median}
ROUNDING = 1e-14


# The number of heads ---------------------------------------------------------------------------------------------------


def heads_order(
    results: xr.Dataset, curve: str, step: int, rises: bool, optimiser: str = "", centre: str = "mean"
) -> Estimate:
    """The smallest change of a curve at a step from one number of heads to the next, in the claimed direction."""
    values = at_step(_chosen(results, optimiser)[f"{curve}_curve"], step)
    return ordering(arms(values if rises else -values, "heads"), CENTRES[centre])


def one_head_leads(results: xr.Dataset, curve: str, step: int, optimiser: str = "") -> Estimate:
    """By how much a curve of a single head exceeds that of the nearest other number of heads, at a step."""
    one, *others = arms(at_step(_chosen(results, optimiser)[f"{curve}_curve"], step), "heads")
    return lead(one, others)


def one_head_margin(results: xr.Dataset) -> Estimate:
    """The margin of a single head at the end over that of saturated attention."""
    limit = over_cells(results, lambda t: t.data.signal * sqrt(t.data.tokens / 2))
    return mean((results.margin / limit).isel(heads=0))


def steps_exponent(results: xr.Dataset, **place: Any) -> Estimate:
    """The exponent of the training loss in time over the last half-decade of steps, for the arm where it is flattest."""
    curves = results["train_loss_curve"].sel(place)
    over = [d for d in curves.dims if d not in ("seed", "step")]
    places = curves.stack(place=over).transpose("place", ...)
    return largest([places.isel(place=i) for i in range(places.sizes["place"])], _late_exponent)


def _late_exponent(curve: xr.DataArray, level: float) -> Estimate:
    return time_exponent(curve, curve.step >= float(curve.step.max()) / sqrt(10), level=level)


def same_curves(results: xr.Dataset) -> xr.DataArray:
    """The difference of the log loss between the two arms, at every step."""
    many, one = (results["log_train_loss_curve"].isel(arm=i, drop=True) for i in (0, 1))
    return abs(many - one)


def same_as_linear(results: xr.Dataset) -> xr.DataArray:
    """The difference of the log loss, at the end, between training from zero with the most heads and its linear control."""
    losses = results.log_train_loss.isel(heads=[-1])
    return abs(losses.sel(start="zero", drop=True) - losses.sel(start="linear", drop=True))


def stuck_share(results: xr.Dataset, optimiser: str = "", step: int | None = None) -> Estimate:
    """By how much the share of runs on a plateau is larger with the most heads than with one."""
    here = _chosen(results, optimiser)
    losses = here.train_loss if step is None else at_step(here.train_loss_curve, step)
    stuck = above(losses, STUCK)
    shares = ", ".join(
        f"{float(share):.2g} (H = {h:g})"
        for h, share in zip(stuck.heads.values, stuck.mean("seed").values, strict=True)
    )
    return difference(stuck.isel(heads=-1), stuck.isel(heads=0)).noted(f"Stuck: {shares}.")


def alignment(results: xr.Dataset) -> Estimate:
    """The smallest median alignment over heads and over the two weights."""
    both = ("attention_alignment", "decoder_alignment")
    return smallest([arm for name in both for arm in arms(results[name], "heads")], median)


def _together(parts: Iterable[xr.DataArray]) -> xr.DataArray:
    """Several numbers of every run side by side: the judge takes the worst."""
    return xr.concat(list(parts), "part", coords="minimal", compat="override", join="override")


def _chosen(results: xr.Dataset, optimiser: str) -> xr.Dataset:
    return results.sel(optimiser=optimiser) if optimiser else results


# Curvature and inequalities --------------------------------------------------------------------------------------------


def curvature_exponent(results: xr.Dataset) -> Estimate:
    found = exponent(results.negative_curvature, "heads", paired=True)
    loose = float((results.bound / results.negative_curvature).median())
    return found.noted(f"The bound is {loose:.0f} times what is measured (median).")


def path_curvature_exponent(results: xr.Dataset) -> Estimate:
    """The exponent in the number of heads of the negative curvature per unit of loss, averaged over a training."""
    curvature = -results.smallest_eigenvalue_curve / results.train_loss_curve
    return exponent(np.exp(np.log(curvature.where(curvature > 0)).mean("step")), "heads", paired=True)


def path_ratio(results: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    ratios = path_ratios(results)
    return _together(ratios[name] for name in names)


def path_ratios(results: xr.Dataset) -> dict[str, xr.DataArray]:
    """Measured over bound of Corollary 1 at every checkpoint of every run, with the sharper decoder norm and the longest
    token that was drawn."""
    trial: Any = trial_at(results)
    longest = float(results.token_norm.max())
    needs(np.isfinite(longest), "no run has recorded its longest token.")
    data = general.DataBounds(trial.data.dim, trial.data.tokens, max(1.0, longest))
    norm, loss, heads = results.decoder_norm_curve, results.train_loss_curve, results.heads
    lowest, highest = results.smallest_eigenvalue_curve, results.largest_eigenvalue_curve
    allowed = general.negative_curvature_bound(data, norm, heads) * loss
    return {
        "weak convexity": xr.ufuncs.maximum(-lowest, 0) / allowed,
        "self-bounded gradient": results.gradient_norm_curve
        / (general.gradient_self_bound(data, norm) * loss),
        "smoothness": xr.ufuncs.maximum(highest, -lowest) / general.smoothness_bound(data, norm, heads),
    }


def inequalities(results: xr.Dataset) -> xr.DataArray:
    return results.ratio


def decoder_inequalities(results: xr.Dataset, mended: bool = False) -> xr.DataArray:
    """The pointwise inequalities; `mended` with the factor that a decoder of one vector needs."""
    ratio = results.ratio.isel(inequality=slice(len(POINTWISE)))
    if not mended:
        return ratio
    plain, squared = (
        over_cells(results, lambda t, s=s: general.decoder_factor(t.decoder, t.data.tokens, s))
        for s in (False, True)
    )
    smooth = xr.DataArray(
        [name == "smoothness" for name in INEQUALITIES[: len(POINTWISE)]], dims="inequality"
    )
    return ratio / xr.where(smooth, squared, plain)


# Inside the conditions, from zero --------------------------------------------------------------------------------------


def training_ratio(results: xr.Dataset) -> xr.DataArray:
    """The larger of mean and last loss over the bound of Theorem 1."""
    bound = over_cells(results, lambda t: general.training_bound(t.target, t.step_size, t.steps))
    return xr.ufuncs.maximum(results.mean_loss, results.last_loss) / bound


def ball_ratio(results: xr.Dataset) -> xr.DataArray:
    return results.farthest / over_cells(results, lambda t: general.ball_radius(t.target))


def descent_ratio(results: xr.Dataset) -> xr.DataArray:
    """Distance to the target over 3 Delta; 2 where a step did not descend enough."""
    descends = xr.where(results.worst_descent > ROUNDING, 2.0, 0.0).where(results.worst_descent.notnull())
    return _together([results.farthest_from_target / (3 * results.distance), descends])


def stability_ratio(results: xr.Dataset) -> xr.DataArray:
    """The mean distance of the twins over Lemma 11's bound, the worst one-step recursion (eq. 22), the worst sum (eq. 92)."""

    def bound(t: Any) -> float:
        return general.stability_bound(t.bounds, t.target, t.step_size, t.steps, t.data.samples)

    push = over_cells(
        results, lambda t: general.stability_push(t.bounds, t.target, t.step_size, t.data.samples, 1.0)
    )
    summed = (results.away / (2 * push * results.left_out_sum)).max("sample")
    return _together([results.stability / over_cells(results, bound), results.worst_recursion, summed])


def gap_ratio(results: xr.Dataset) -> Estimate:
    """The mean gap over training sets, as a fraction of its bound, at the distance where it is largest."""

    def bound(t: Any) -> float:
        return general.gap_bound(t.target, t.step_size, t.steps, t.data.samples)

    found = largest(arms(results.gap / over_cells(results, bound), "distance"))
    left_out = float(results.left_out_gap.mean("seed").max())
    return found.noted(f"The largest leave-one-out estimate of the gap is {left_out:.2g}.")


def stability_gap_ratio(results: xr.Dataset) -> Estimate:
    """The mean gap over `2 G` times the mean leave-one-out distance; `G` is the slope `beta_1` that no iterate exceeds."""

    def slope(t: Any) -> float:
        return general.gradient_self_bound(t.bounds, 3 * t.distance + t.target.head_norm)

    bound = general.gap_from_stability(over_cells(results, slope), results.stability.mean("seed"))
    return largest(arms(results.gap / bound, "distance"))


def linear_difference(results: xr.Dataset) -> xr.DataArray:
    """The difference of the log mean loss between training and its control, whose attention stays at zero."""
    trained, control = (np.log(results.mean_loss.isel(arm=i, drop=True)) for i in (0, 1))
    return abs(trained - control)


# The frontier ----------------------------------------------------------------------------------------------------------


def kept_bound(results: xr.Dataset) -> xr.DataArray:
    """Whether the mean loss of a run stayed below the best bound of Theorem 1 over its targets."""
    return flagged(results.loss_sum / results.steps <= results.theorem_bound, results)


def frontier_exponent(results: xr.Dataset) -> Estimate:
    """The step size at which Theorem 1's bound breaks, as a power of the number of heads."""
    kept = kept_bound(results)
    telling = (kept == 1) & (results.theorem_bound < log(2)) & (results.attention_change > 0.5)
    note = (
        f"In {int(telling.sum())} of {int(kept.notnull().sum())} runs attention moved by more than 0.5, and the "
        "bound says something (below log 2) and holds."
    )
    return boundary(kept, "learning_rate", "heads", paired=True).exponent.noted(note)


# The first phase and margins -------------------------------------------------------------------------------------------


def residual_exponent(results: xr.Dataset, variable: str, over: str) -> Estimate:
    """The exponent of the first phase's residual along an axis, the other axes averaged in the logarithm."""
    others = [d for d in results[variable].dims if d not in ("seed", over)]
    return exponent(
        xr.ufuncs.exp(xr.ufuncs.log(results[variable]).mean(others)), over, paired=over == "first_samples"
    )


def residual_within(results: xr.Dataset) -> xr.DataArray:
    """Whether the residual stayed within eq. 6 with its universal constant at 1."""
    return flagged(results.residual <= results.residual_scale, results)


def outputs_within(results: xr.Dataset) -> xr.DataArray:
    """Whether all outputs after the first step stayed within B_Phi, its residual from eq. 6."""
    return flagged(results.largest_output <= results.output_bound, results)


def margin(results: xr.Dataset) -> xr.DataArray:
    return results.margin


def margin_ratio(results: xr.Dataset) -> xr.DataArray:
    """Bound over measured with an endless first phase (residual 0)."""
    measured = results.decoder_part + results.mean_attention_part
    return (results.linear_bound + results.mean_attention_bound) / measured


def positive_bound(results: xr.Dataset) -> xr.DataArray:
    """Where the bound on the NTK margin says something."""
    return results.linear_bound + results.mean_attention_bound > 0


def margin_steps(results: xr.Dataset) -> xr.DataArray:
    """The two steps of the order linear, NTK, saturated attention, over the last."""
    low, middle, high = results.decoder_part, results.margin, results.saturated_margin
    return _together([middle - low, high - middle]) / results.attention_margin


def weak_signal(results: xr.Dataset) -> xr.DataArray:
    """Where the signal is below the limit up to which the margins' formulas are in order."""

    def share(t: Any) -> float:
        bounds = mixed.forecast_bounds(t.data, t.data.samples, 0.05)
        return mixed.ordering_limit(bounds) / bounds.signal

    return over_cells(results, share) >= 1


def margin_gap_order(results: xr.Dataset) -> Estimate:
    """The smallest rise of saturated over NTK margin from one relevant fraction to the next smaller one."""
    gaps = (results.saturated_margin - results.margin) / results.attention_margin
    return ordering(arms(gaps.sortby("relevant_fraction", ascending=False), "relevant_fraction"))


def realized_heads(results: xr.Dataset) -> xr.DataArray:
    """Heads needed over heads asked for; 2 also where the margin at the heads asked for is too small."""
    short = results.margin < -np.log(results.loss)
    return (results.needed_heads / results.asked_heads).where(~short, 2.0).where(results.margin.notnull())


def saturation_ratio(results: xr.Dataset) -> xr.DataArray:
    """Leak over allowance, and margin promised over margin."""
    return _together([results.leaked / results.leak, results.bound / results.margin])


# After the first step --------------------------------------------------------------------------------------------------


def after_first_step(results: xr.Dataset) -> xr.DataArray:
    return over_cells(results, lambda t: t.network.start == "signs") == 1


def million_heads(results: xr.Dataset) -> xr.DataArray:
    return over_cells(results, lambda t: t.network.heads) >= 1e6


def samples_times_loss(results: xr.Dataset) -> Estimate:
    """The number of samples times the test loss at the end, for the number of heads where it is largest."""
    product = results.test_loss * over_cells(results, lambda t: t.data.samples)
    return largest(arms(product.sel(start="first step"), "heads"))


def first_step_helps(results: xr.Dataset) -> Estimate:
    """The lead in log loss at the end over the start from zero, with the most heads."""
    losses = results.log_train_loss.isel(heads=-1)
    return difference(losses.sel(start="zero"), losses.sel(start="first step"))


def good_start_ratio(results: xr.Dataset, names: tuple[str, ...]) -> xr.DataArray:
    ratios = good_start_ratios(results)
    return _together(ratios[name] for name in names)


def good_start_ratios(results: xr.Dataset) -> dict[str, xr.DataArray]:
    """Measured over bound of Theorem 1 and Lemmas 7 to 10 for every run after the first step, each with the loss of its
    own target and its own horizon; for Lemma 7 the number is 2 where a step did not descend enough."""
    step = over_cells(results, lambda t: t.step_size)
    target = general.Target(results.distance, 0.0, results.target_loss, results.start_loss)
    given = (target, step, results.horizon)
    larger = xr.ufuncs.maximum(results.mean_loss, results.last_loss)
    curves = {
        name: xr.ufuncs.fmax(results[f"{name}_curve"].max(_clock(results)), results[name])
        for name in ("segment_curvature", "segment_loss")
    }
    return {
        "training loss (Theorem 1)": larger / general.training_bound(*given),
        "mean loss (Lemma 8)": results.mean_loss / general.regret_bound(*given, results.wander),
        "mean loss (Lemma 9)": results.mean_loss / general.mean_loss_bound(*given),
        "from the start (Theorem 1)": results.farthest / general.ball_radius(target),
        "from the target (Lemma 10)": results.farthest_from_target / (3 * results.distance),
        "descent (Lemma 7)": xr.where(results.worst_descent > ROUNDING, 2.0, 0.0).where(
            results.worst_descent.notnull()
        ),
        "smoothness times step (Lemma 7)": results.roughest,
        "segments (Lemma 9)": results.longest_segment,
        "curvature (eq. 15)": curves["segment_curvature"],
        "segment loss (Prop. 4)": curves["segment_loss"],
    }


def start_margin_ratio(results: xr.Dataset) -> xr.DataArray:
    return start_margin_bound(results) / first_value(results.ntk_margin_curve)


def start_margin_bound(results: xr.Dataset) -> xr.DataArray:
    """The corrected bound on the NTK margin at the start of the second phase, with the residual of the run; the bound falls
    linearly with the residual."""
    free, one = (over_cells(results, lambda t, p=p: mixed.ntk_margin(t.mixture, p)) for p in (0.0, 1.0))
    return free + (one - free) * results.residual


def _clock(results: xr.Dataset) -> str:
    """The dimension that curves run along."""
    return "log" if "log" in results.dims else "step"


# Generalisation --------------------------------------------------------------------------------------------------------


def gap_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of the expected gap in the number of samples: of the mean over all runs, stuck ones included."""
    gaps = results.test_loss - results.train_loss
    place = np.log(np.asarray(gaps.samples, float))
    needs(len(place) > 1, "an exponent needs at least two numbers of samples.")

    def slope(values: xr.DataArray) -> float:
        means = np.asarray(values.mean("seed"))
        return float(np.polyfit(place, np.log(means), 1)[0]) if (means > 0).all() else np.nan

    stuck = ", ".join(f"{int(n)}" for n in results.stuck.sum("seed"))
    return bootstrap(slope, gaps).noted(f"Stuck at each number of samples: {stuck}.")


def gap_stuck(results: xr.Dataset) -> Estimate:
    """The share of stuck runs at the number of samples where it is largest."""
    return largest(arms(above(results.train_loss, STUCK), "samples"), fraction)
