"""What the paper claims, how each claim is measured, and what would refute it."""

from collections.abc import Callable
from math import inf

import numpy as np
import xarray as xr

from lemmata.draw.style import settings
from lemmata.measure.compare import Condition
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.trend import ordering
from lemmata.studies.multihead import forecast, mixture_theory, theory
from lemmata.studies.multihead.data import TokenMixture
from lemmata.studies.multihead.probes import INEQUALITIES
from lemmata.studies.multihead.summaries import (
    arms,
    at_step,
    attention_limit,
    good_start_ratios,
    guaranteed,
    late_slopes,
    median_estimate,
    median_ordering,
    path_ratios,
    second_phases,
    smallest_difference,
    start_margin_bound,
    worst,
)
from lemmata.studies.multihead.trials import guaranteed_conditions
from lemmata.study import Claim
from lemmata.trial import put

predict = forecast.predict

ABOVE_ZERO = (0.0, inf)
AT_MOST_ONE = (-inf, 1 + 1e-9)
BY_PROOF = "A proved bound: one run above it refutes it; the slack is for rounding."
BY_SIGN = "The claim is about a direction, so any positive difference counts, provided that its interval excludes 0."


# The number of heads on the mixture ------------------------------------------------------------------------------------


def slower_at_fixed_step(results: xr.Dataset) -> Estimate:
    """The smallest rise of the log loss from one number of heads to the next, at 600 steps."""
    return ordering(arms(at_step(results, "log_train_loss", 600), "heads"))


def margin_falls(results: xr.Dataset, step: int = 600) -> Estimate:
    """The smallest fall of the normalised margin from one number of heads to the next."""
    return ordering(arms(-at_step(results, "margin", step), "heads"))


def one_head_margin(results: xr.Dataset) -> Estimate:
    found = mean(results.margin.sel(heads=1.0) / attention_limit(results))
    return found.noted("The margin creeps up with the logarithm of the loss and is still rising at the end.")


def slope_in_steps(results: xr.Dataset) -> Estimate:
    """The flattest of the numbers of heads."""
    slopes = late_slopes(results)
    found = [mean(one) for one in arms(slopes, "heads")]
    flattest = max(found, key=lambda one: one.value)
    said = ", ".join(
        f"{one.value:.2f} (H = {h:g})" for one, h in zip(found, slopes.heads.values, strict=True)
    )
    return flattest.noted(f"Slopes over the last half-decade: {said}.")


def faster_than_one_head(results: xr.Dataset, method: str, step: int) -> Estimate:
    """The smallest lead in log loss over a single head."""
    losses = arms(at_step(results, "log_train_loss", step).sel(optimiser=method), "heads")
    return smallest_difference(losses[0], losses[1:])


def adam_faster(results: xr.Dataset) -> Estimate:
    return ordering(arms(-at_step(results, "log_train_loss", 30).sel(optimiser="adam"), "heads"))


def adam_margin(results: xr.Dataset) -> Estimate:
    found = arms(at_step(results, "margin", 30).sel(optimiser="adam"), "heads")
    return smallest_difference(found[0], found[1:])


def two_step_sizes(results: xr.Dataset) -> Estimate:
    """The largest difference of the log loss between the two arms, at any step."""
    many, one = arms(results["log_train_loss_curve"], "arm")
    return worst(abs(many - one))


# Planted attention -----------------------------------------------------------------------------------------------------


def planted_faster(results: xr.Dataset, step: int) -> Estimate:
    """The smallest median lead in log loss of one number of heads over the one before."""
    found = median_ordering(arms(-at_step(results, "log_train_loss", step), "heads"))
    counts = (at_step(results, "train_loss", step) > 0.3).sum("seed")
    said = ", ".join(f"{int(counts.sel(heads=h))} (H = {h:g})" for h in results.heads.values)
    return found.noted(f"Runs stuck above a loss of 0.3 at that step: {said}.")


def planted_alignment(results: xr.Dataset) -> Estimate:
    """The smallest median alignment over heads and over the two weights."""
    found = [
        median_estimate(np.asarray(results[name].sel(heads=h).values, float))
        for name in ("attention_alignment", "decoder_alignment")
        for h in results.heads.values
    ]
    lowest = min(found, key=lambda one: one.value)
    return Estimate(lowest.value, min(one.low for one in found), lowest.high, lowest.count, note=lowest.note)


# Curvature -------------------------------------------------------------------------------------------------------------


def curvature_exponent(results: xr.Dataset) -> Estimate:
    found = exponent(results.negative_curvature, "heads", paired=True)
    loose = float((results.bound / results.negative_curvature).median())
    return found.noted(f"The bound is {loose:.0f} times what is measured (median).")


def path_weak_convexity(results: xr.Dataset) -> Estimate:
    ratio = path_ratios(results)["weak convexity"]
    return worst(ratio, f"Largest over all checkpoints; the median is {float(ratio.median()):.1e}.")


def path_norms(results: xr.Dataset) -> Estimate:
    ratios = path_ratios(results)
    said = {name: float(ratios[name].max()) for name in ("self-bounded gradient", "smoothness")}
    note = ", ".join(f"{name} {value:.2g}" for name, value in said.items())
    return worst(xr.DataArray(list(said.values()), dims="bound"), f"Largest ratios: {note}.")


def inequalities(results: xr.Dataset) -> Estimate:
    largest = results.ratio.max([d for d in results.ratio.dims if d != "inequality"]).values
    note = ", ".join(f"{name} {value:.2g}" for name, value in zip(INEQUALITIES, largest, strict=True))
    return worst(results.ratio, f"Largest measured/bound: {note}.")


# Inside the conditions -------------------------------------------------------------------------------------------------


def _by_distance(results: xr.Dataset, bound: Callable[..., float]) -> xr.DataArray:
    return xr.DataArray([bound(t) for t in guaranteed(results)], {"distance": results.distance}, "distance")


def training_ratio(results: xr.Dataset) -> Estimate:
    bound = _by_distance(results, lambda t: theory.training_bound(t.target, t.step_size, t.steps))
    ratio = np.maximum(results.mean_loss, results.last_loss) / bound
    said = ", ".join(f"{float(b):.3g}" for b in bound)
    return worst(ratio, f"Bounds {said} (a start at log 2 = 0.69 makes those above it empty).")


def ball_ratio(results: xr.Dataset) -> Estimate:
    return worst(results.farthest / (4 * results.distance))


def descent_ratio(results: xr.Dataset) -> Estimate:
    """The larger of: distance to the target over 3 Delta; 1 plus the worst violation of the descent inequality."""
    nearness = results.farthest_from_target / (3 * results.distance)
    return worst(np.maximum(nearness, 1 + results.worst_descent.where(results.worst_descent > 0, -1)))


def stability_ratio(results: xr.Dataset) -> Estimate:
    def bound(t) -> float:
        return theory.stability_bound(t.bounds, t.target, t.step_size, t.steps, t.data.samples)

    mean_ratio = results.stability / _by_distance(results, bound)
    note = (
        f"One-step recursion uses at most {float(results.worst_recursion.max()):.2g} of its allowance, the sum of eq. 92 "
        f"{float(results.worst_accumulation.max()):.2g}, the mean of Lemma 11 {float(mean_ratio.max()):.2g}."
    )
    return worst(
        np.maximum(np.maximum(mean_ratio, results.worst_recursion), results.worst_accumulation), note
    )


def gap_ratio(results: xr.Dataset) -> Estimate:
    """The mean gap over training sets, as a fraction of its bound, at the distance where it is largest."""
    bound = _by_distance(results, lambda t: theory.gap_bound(t.target, t.step_size, t.steps, t.data.samples))
    found = [mean(one) for one in arms(results.gap / bound, "distance")]
    left_out = float(results.left_out_gap.mean("seed").max())
    said = ", ".join(f"{float(b):.3g}" for b in bound)
    note = f"Bounds {said}; the largest leave-one-out estimate of the gap is {left_out:.2g}."
    return max(found, key=lambda one: one.high).noted(note)


def stability_gap_ratio(results: xr.Dataset) -> Estimate:
    """The mean gap over `2 G` times the mean leave-one-out distance; `G` is the slope `beta_1` that no iterate exceeds."""

    def slope(t) -> float:
        return theory.gradient_self_bound(t.bounds, 3 * t.distance + t.target.head_norm)

    stability = results.stability.mean("seed")
    bound = theory.gap_from_stability(_by_distance(results, slope), stability)  # pyright: ignore[reportArgumentType]
    found = [mean(one) for one in arms(results.gap / bound, "distance")]
    said = ", ".join(f"{one.value:.2g}" for one in found)
    note = f"Mean gap over bound at each distance: {said}."
    return max(found, key=lambda one: one.high).noted(note)


def inside(results: xr.Dataset) -> list[Condition]:
    """The tightest margin of every condition over the distances, and that the target is as good as assumed."""
    trials = guaranteed(results)
    tightest: dict[str, float] = {}
    for trial in trials:
        for name, margin in guaranteed_conditions(trial).items():
            tightest[name] = min(margin, tightest.get(name, inf))
    assumed = _by_distance(results, lambda t: t.target.loss)
    tightest["target's loss as assumed"] = float((assumed / results.target_loss).min())
    return [Condition(name, margin >= 1, margin) for name, margin in tightest.items()]


def theorem_heads(results: xr.Dataset) -> list[Condition]:
    """How far the figure is from the number of heads that Theorem 1 would ask for at a target one away."""
    fields = settings(results)
    mixture = TokenMixture()
    for path, value in fields.items():
        if path.startswith("data."):
            mixture = put(mixture, path.removeprefix("data."), value)
    bounds = forecast.forecast_bounds(mixture, mixture.samples, 0.05)
    need = theory.equal_heads_required(bounds.data, 1.0)
    most = float(np.max(results.heads.values))
    return [Condition("Theorem 1: heads for a target at distance 1", most >= need, (most / need) ** 0.5)]


# After the first step --------------------------------------------------------------------------------------------------


def slope_after_first_step(results: xr.Dataset) -> Estimate:
    return slope_in_steps(results.sel(start="first step"))


def error_after_first_step(results: xr.Dataset) -> Estimate:
    """The mean test error at the end, for the number of heads where it is largest."""
    found = [mean(one) for one in arms(results.test_error.sel(start="first step"), "heads")]
    return max(found, key=lambda one: one.high)


def first_step_helps(results: xr.Dataset) -> Estimate:
    """The lead in log loss at the end over the start from zero, with the most heads."""
    losses = results.log_train_loss.isel(heads=-1)
    return ordering([losses.sel(start="first step"), losses.sel(start="zero")])


def good_start_ratio(results: xr.Dataset, *names: str) -> Estimate:
    ratios = good_start_ratios(results)
    largest = xr.concat([ratios[name] for name in names], "bound")
    said = ", ".join(f"{name} {float(ratios[name].max()):.2g}" for name in names)
    return worst(largest, f"Largest measured/bound: {said}.")


def good_start_theorem(results: xr.Dataset) -> Estimate:
    """The larger of the ratios of Theorem 1 and Lemma 10; 2 where a step did not descend enough (Lemma 7)."""
    found = good_start_ratio(
        results, "training loss (Theorem 1)", "from the start (Theorem 1)", "from the target (Lemma 10)"
    )
    descends = float(results.worst_descent.max()) <= 0
    ratio = good_start_ratios(results)["training loss (Theorem 1)"]
    bound = np.maximum(results.mean_loss, results.last_loss) / ratio
    said = ", ".join(f"{float(b):.3g}" for b in bound.mean("seed"))
    largest = found.value if descends else 2.0
    note = f"{found.note} Mean bounds on the loss {said}, starts at {float(results.start_loss.mean()):.2g} on average."
    return Estimate(largest, largest, largest, found.count, note=note)


def start_margin_ratio(results: xr.Dataset) -> Estimate:
    bound, measured = start_margin_bound(results), results.ntk_margin_curve.isel(step=0)
    note = f"Measured {float(measured.mean()):.3g}, bound {float(bound.mean()):.3g} on average."
    return worst(bound / measured, note)


def inside_good_start(results: xr.Dataset) -> list[Condition]:
    """The tightest margin of every condition over the runs, their own targets and horizons counted."""
    tightest: dict[str, float] = {}
    for trial, distance in zip(second_phases(results), results.distance.values, strict=True):
        here = results.sel(distance=distance)
        bounds, target = trial.mixture.data, trial.target
        need = theory.required_root_heads(
            bounds, target.distance, target.head_norm, theory.GENERALISATION_HEADS
        )
        rho = theory.smoothness_ceiling(bounds, target.distance, target.head_norm, trial.heads)
        horizon = distance**2 / (here.horizon * here.target_loss)
        margins = {
            "heads (Theorem 2)": trial.heads**0.5 / need,
            "step size below 1/rho": 1 / rho / trial.step_size,
            "step size below Delta^2/(K L(theta))": float(horizon.min()) / trial.step_size,
            "step size below Delta^2/L(theta_0)": float(distance**2 / here.start_loss.max())
            / trial.step_size,
            "heads at the start within their norm": (target.head_norm - distance / trial.heads**0.5)
            / float(here.start_head.max()),
            "Lemma 7: eta beta_2 at most 1": 1 / float(here.roughest.max()),
            "Lemma 9: heads on every segment": 1 / float(here.longest_segment.max()),
        }
        tightest = {name: min(margin, tightest.get(name, inf)) for name, margin in margins.items()}
    return [Condition(name, bool(margin >= 1 - 1e-9), float(margin)) for name, margin in tightest.items()]


def start_bounds_ratio(results: xr.Dataset) -> Estimate:
    norm, output = results.largest_head / results.norm_bound, results.largest_output / results.output_bound
    note = f"Largest measured/bound: head norm {float(norm.max()):.2g}, output {float(output.max()):.2g}."
    return worst(np.maximum(norm, output), note)


def realized_heads(results: xr.Dataset) -> Estimate:
    """Heads needed over heads asked for; more than 1 also where the margin at the heads asked for is too small."""
    ratio = results.needed_heads / results.asked_heads
    short = results.margin < -np.log(results.loss)
    loose = results.asked_heads / results.needed_heads
    note = f"Asked for {float(loose.min()):.2g} to {float(loose.max()):.2g} times what is needed."
    return worst(ratio.where(~short, 2.0), note)


# The first phase and margins -------------------------------------------------------------------------------------------


def first_phase_exponent(results: xr.Dataset, name: str) -> Estimate:
    return exponent(results[name], "first_samples")


def margin_positive(results: xr.Dataset) -> Estimate:
    smallest = float(results.margin.min())
    last = results.isel(first_samples=-1)
    note = (
        f"With the most samples: measured {float(last.margin.mean()):.3g}, best direction "
        f"{float(last.best_margin.mean()):.3g}; bound with the true mean {float(last.corrected_bound.mean()):.3g}, as "
        f"printed {float(last.printed_bound.mean()):.3g} (negative: says nothing at this noise)."
    )
    return Estimate(smallest, smallest, smallest, results.sizes["seed"], note=note)


def corrected_margin_ratio(results: xr.Dataset) -> Estimate:
    """Bound over measured with an endless first phase (residual 0), where the bound is positive."""
    bound = results.linear_bound + results.mean_attention_bound
    measured = results.decoder_part + results.mean_attention_part
    ratio = (bound / measured).where(bound > 0)
    usable = int((ratio.notnull().any("seed")).sum())
    with_residual = int((results.corrected_bound > results.linear_bound).any("seed").sum())
    total = ratio.isel(seed=0).size
    printed = float(((results.printed_bound / measured).where(results.printed_bound > 0)).max())
    note = (
        f"Positive at {usable} of {total} grid points; with the residual of this first phase it beats the linear bound "
        f"at {with_residual}; largest ratio with the printed constants and residual {printed:.2g}."
    )
    return worst(ratio, note)


def margin_order(results: xr.Dataset, everywhere: bool) -> Estimate:
    """The smallest relative step of the order linear, NTK, saturated attention over the grid."""
    steps = xr.concat(
        [
            (results.margin - results.decoder_part) / results.attention_margin,
            (results.saturated_margin - results.margin) / results.attention_margin,
        ],
        "pair",
    )
    if not everywhere:
        steps = steps.where(xr.DataArray(results.signal <= _order_limit(results)))
    flat = steps.stack(place=("pair", "relevant_fraction", "signal")).transpose("place", "seed")
    found = [mean(one) for one in flat if bool(one.notnull().any())]
    lowest = min(found, key=lambda one: one.value)
    return Estimate(lowest.value, min(one.low for one in found), lowest.high, lowest.count)


def _order_limit(results: xr.Dataset) -> xr.DataArray:
    fields = settings(results)
    shape = (fields["data.dim"], fields["data.tokens"], fields["data.patterns"])
    limits = [
        mixture_theory.ordering_limit(mixture_theory.MixtureBounds(*shape, 1.0, float(zeta), _NO_NOISE))
        for zeta in results.relevant_fraction.values
    ]
    return xr.DataArray(limits, {"relevant_fraction": results.relevant_fraction}, "relevant_fraction")


_NO_NOISE = mixture_theory.NoiseBounds(0.0, 0.0, 0.0)


def order_conditions(results: xr.Dataset) -> list[Condition]:
    margin = float((_order_limit(results) / results.signal).min())
    return [Condition("signal below the limit of the order, at every grid point", margin >= 1, margin)]


def saturation_ratio(results: xr.Dataset) -> Estimate:
    leaked, short = results.leaked / results.leak, results.bound / results.margin
    note = f"Leak over allowance at most {float(leaked.max()):.2g}; margin bound over margin {float(short.max()):.4g}."
    return worst(np.maximum(leaked, short), note)


def gap_exponent(results: xr.Dataset) -> Estimate:
    gaps = (results.test_loss - results.train_loss).where(results.stuck == 0)
    return exponent(gaps, "samples", paired=True).noted(
        f"{int(results.stuck.sum())} runs stuck and left out."
    )


CLAIMS = {
    claim.id: claim
    for claim in (
        Claim(
            "curvature-falls", "curvature", "Cor. 1 (3)", "exponent -1/2", (-0.65, -0.35),
            "The law is an upper bound; random heads are independent, so its power should show up to a small-H bend.",
            curvature_exponent,
        ),
        Claim(
            "weak-convexity", "hessian-path", "Cor. 1 (3)", "measured/bound at most 1", AT_MOST_ONE, BY_PROOF,
            path_weak_convexity,
        ),
        Claim(
            "path-bounds", "hessian-path", "Cor. 1 (1), (2)", "measured/bound at most 1", AT_MOST_ONE, BY_PROOF,
            path_norms,
        ),
        Claim(
            "inequalities", "looseness", "Prop. 1/5, 4/6, Lemmas 5, 7, 8, 9, Cor. 1, eqs 15, 19",
            "measured/bound at most 1",
            AT_MOST_ONE, BY_PROOF, inequalities,
        ),
        Claim(
            "fixed-step-slower", "fig2", "Fig. 2", "log loss rises with H at 600 steps", ABOVE_ZERO, BY_SIGN,
            slower_at_fixed_step, theorem_heads,
        ),
        Claim(
            "fixed-step-margin", "fig2", "Fig. 2", "margin falls with H at 600 steps", ABOVE_ZERO, BY_SIGN, margin_falls,
            theorem_heads,
        ),
        Claim(
            "one-head-margin", "fig2", "Fig. 2, Prop. 3", "margin / (S sqrt(T/2)) near 1", (0.85, 1.15),
            "The margin nears its limit with the logarithm of time; 0.85 was set for 3000 steps before running.",
            one_head_margin,
        ),
        Claim(
            "rate-in-steps", "fig2", "Cor. 2/5", "slope of log loss at most -1", (-inf, -0.9),
            "An upper bound with logarithms: steeper than -1 is allowed, flatter than -0.9 is not.",
            slope_in_steps, theorem_heads,
        ),
        Claim(
            "sqrt-step-faster", "fig3", "Fig. 3 left", "lower log loss than one head at 600 steps", ABOVE_ZERO, BY_SIGN,
            lambda results: faster_than_one_head(results, "gd", 600),
        ),
        Claim(
            "sqrt-step-margin", "fig3", "Fig. 3 left", "margin falls with H at 600 steps", ABOVE_ZERO, BY_SIGN,
            lambda results: margin_falls(results.sel(optimiser="gd")),
        ),
        Claim(
            "adam-faster", "fig3", "Fig. 3 right", "log loss falls with H at 30 steps", ABOVE_ZERO, BY_SIGN, adam_faster,
        ),
        Claim(
            "adam-margin", "fig3", "Fig. 3 right", "margin below that of one head at 30 steps", ABOVE_ZERO, BY_SIGN,
            adam_margin,
        ),
        Claim(
            "two-step-sizes", "two-step-sizes", "explains Figs 2, 3", "no difference", (-inf, 1e-10),
            "An identity: only rounding may tell the two apart over 50 steps.", two_step_sizes,
        ),
        Claim(
            "planted-faster", "fig4", "Fig. 4", "median log loss falls with H at 400 steps", ABOVE_ZERO, BY_SIGN,
            lambda results: planted_faster(results, 400),
        ),
        Claim(
            "planted-alignment", "fig4", "Fig. 4", "median cosine above 0.95", (0.95, 1.0),
            "The planted direction is found; 0.95 leaves room for the finite sample.", planted_alignment,
        ),
        Claim(
            "planted-momentum-faster", "fig5", "Fig. 5 left", "median log loss falls with H at 150 steps", ABOVE_ZERO,
            BY_SIGN, lambda results: planted_faster(results.sel(optimiser="momentum"), 150),
        ),
        Claim(
            "planted-adam-faster", "fig5", "Fig. 5 right", "median log loss falls with H at 300 steps", ABOVE_ZERO,
            BY_SIGN, lambda results: planted_faster(results.sel(optimiser="adam"), 300),
        ),
        Claim(
            "training-theorem", "inside-conditions", "Thm 1/3", "loss/bound at most 1", AT_MOST_ONE, BY_PROOF,
            training_ratio, inside,
        ),
        Claim(
            "ball-radius", "inside-conditions", "Thm 1/3", "distance/(4 Delta) at most 1", AT_MOST_ONE, BY_PROOF,
            ball_ratio, inside,
        ),
        Claim(
            "descent", "inside-conditions", "Lemmas 7, 10", "at most 1", AT_MOST_ONE, BY_PROOF, descent_ratio, inside,
        ),
        Claim(
            "stability", "inside-conditions", "Lemma 11, eqs 22, 92", "measured/bound at most 1", AT_MOST_ONE, BY_PROOF,
            stability_ratio, inside,
        ),
        Claim(
            "gap-theorem", "inside-conditions", "Thm 2/4", "mean gap/bound at most 1", AT_MOST_ONE,
            "A bound on an expectation: the interval of the mean over training sets must stay below it.",
            gap_ratio, inside,
        ),
        Claim(
            "gap-from-stability", "inside-conditions", "Lemma 3", "mean gap/bound at most 1", AT_MOST_ONE,
            "A bound on an expectation: the interval of the mean over training sets must stay below it.",
            stability_gap_ratio, inside,
        ),
        Claim(
            "first-phase-printed", "first-phase", "Lemma 2", "exponent -1/2", (-0.6, -0.4),
            "A mean of independent terms; 0.1 covers the spread of 20 seeds.",
            lambda results: first_phase_exponent(results, "printed_residual"),
        ),
        Claim(
            "first-phase-corrected", "first-phase", "Lemma 2, corrected", "exponent -1/2", (-0.6, -0.4),
            "A mean of independent terms; 0.1 covers the spread of 20 seeds.",
            lambda results: first_phase_exponent(results, "residual"),
        ),
        Claim(
            "ntk-margin-positive", "first-phase", "Prop. 2 (P3)", "smallest margin above 0", ABOVE_ZERO,
            "One sample with a margin below 0 refutes separability.", margin_positive,
        ),
        Claim(
            "good-start-bounds", "first-phase", "Prop. 2 (P1, P2)", "measured/bound at most 1", AT_MOST_ONE,
            "P1 is proved; P2 may fail in one draw of the signs out of 20, but its constant leaves much room.",
            start_bounds_ratio,
        ),
        Claim(
            "second-phase-rate", "second-phase", "Cor. 2/5", "slope of log loss at most -1", (-inf, -0.9),
            "As for the start from zero: steeper than -1 is allowed, flatter than -0.9 is not.",
            slope_after_first_step, theorem_heads,
        ),
        Claim(
            "second-phase-error", "second-phase", "Cor. 2/5", "no test error", (-inf, 0.01),
            "Three of 300 test samples: a loss of order 1/(gamma^2 n) leaves room for a stray one.",
            error_after_first_step, theorem_heads,
        ),
        Claim(
            "first-step-helps", "second-phase", "Prop. 2, gamma* > gamma_lin", "lower log loss than from zero", ABOVE_ZERO,
            BY_SIGN, first_step_helps, theorem_heads,
        ),
        Claim(
            "good-start-theorem", "good-start", "Thm 1/3, Lemmas 7, 10", "measured/bound at most 1", AT_MOST_ONE, BY_PROOF,
            good_start_theorem, inside_good_start,
        ),
        Claim(
            "regret", "good-start", "Lemma 8", "mean loss/bound at most 1", AT_MOST_ONE, BY_PROOF,
            lambda results: good_start_ratio(results, "mean loss (Lemma 8)"), inside_good_start,
        ),
        Claim(
            "mean-loss", "good-start", "Lemma 9", "mean loss/bound at most 1", AT_MOST_ONE, BY_PROOF,
            lambda results: good_start_ratio(results, "mean loss (Lemma 9)"), inside_good_start,
        ),
        Claim(
            "segments", "good-start", "eq. 15, Prop. 4/6", "measured/bound at most 1", AT_MOST_ONE, BY_PROOF,
            lambda results: good_start_ratio(results, "curvature (eq. 15)", "segment loss (Prop. 4)"), inside_good_start,
        ),
        Claim(
            "good-start-margin", "good-start", "Lemma 13, corrected", "bound/measured at most 1", AT_MOST_ONE, BY_PROOF,
            start_margin_ratio, inside_good_start,
        ),
        Claim(
            "realizability", "realizability", "Prop. 7, with its missing root", "needed/asked at most 1", AT_MOST_ONE,
            BY_PROOF, realized_heads,
        ),
        Claim(
            "ntk-margin-corrected", "margins", "Lemma 13, corrected", "bound/measured at most 1", AT_MOST_ONE, BY_PROOF,
            corrected_margin_ratio,
        ),
        Claim(
            "margin-order", "margins", "Sec. 5.3, with its condition", "steps of the order above 0", ABOVE_ZERO,
            "Judged where S^3 <= 4 sqrt(M+1)/(zeta^2 sqrt(T)), which is when the formulas are in that order.",
            lambda results: margin_order(results, everywhere=False),
        ),
        Claim(
            "margin-order-everywhere", "margins", "Sec. 5.3", "steps of the order above 0", ABOVE_ZERO,
            "Stated without a condition on the signal.", lambda results: margin_order(results, everywhere=True),
            order_conditions,
        ),
        Claim(
            "saturation", "saturation", "Prop. 3", "leak and margin within their bounds", AT_MOST_ONE, BY_PROOF,
            saturation_ratio,
        ),
        Claim(
            "rate-in-samples", "gap", "Thm 2, Cor. 2", "exponent at most -1", (-inf, -0.7),
            "An upper bound on an expectation; 0.3 covers the spread over a handful of teachers.", gap_exponent,
        ),
    )
}  # fmt: skip
