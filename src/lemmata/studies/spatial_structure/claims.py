"""What the paper says, as statements that results can contradict."""

import itertools
from collections.abc import Callable, Sequence
from math import inf

import numpy as np
import xarray as xr
from scipy.special import softmax

from lemmata.draw.style import settings
from lemmata.measure.compare import Condition
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.times import settling_time
from lemmata.measure.trend import difference, ordering
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.pictures import facts
from lemmata.study import Claim, Prediction

# Linear models and hand-built attention --------------------------------------------------------------------------------


@answering(Estimate.absent)
def _linear_floor(r: xr.Dataset) -> Estimate:
    """The lowest error of any linear model well inside the theorem's regime."""
    inside = r.test_error.where(r.dominance >= 1, drop=True)
    needs(inside.size, "no setting of the sweep lies inside the regime of Theorem 3.1.")
    flat = inside.stack(cell=("dominance", "inputs"))
    return mean(flat.isel(cell=int(flat.mean("seed").argmin("cell"))))


def _linear_law(r: xr.Dataset) -> Estimate:
    """Share of the variation of the error over settings that the vote's law explains, seed by seed."""
    one = r.sel(inputs="coefficients")
    left = ((one.test_error - one.predicted_error) ** 2).sum("dominance")
    spread = ((one.test_error - one.test_error.mean("dominance")) ** 2).sum("dominance")
    return mean(1 - left / spread)


def _shifted(r: xr.Dataset) -> xr.Dataset:
    strong = r.sel(solution="shifted")
    return strong.where(strong.strength >= 4, drop=True)


def _shifted_excess(r: xr.Dataset) -> Estimate:
    strong = _shifted(r)
    return mean(strong.test_error - strong.label_noise)


def _shifted_overlap(r: xr.Dataset) -> Estimate:
    return mean(r.overlap.sel(solution="shifted"))


# Gaussian patches ------------------------------------------------------------------------------------------------------


def _gaussian(name: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda r: mean(r[name].sel(learner="wide"))


def _gaussian_overlap(r: xr.Dataset) -> Estimate:
    """Share of the top `C` inside the group, above what logits without any order would give."""
    fields = settings(r)
    D, C = fields["data.patches"], fields["data.group_size"]
    return mean(r.overlap.sel(learner="wide") - theory.chance_overlap(D, C))


# Descent on a sample ---------------------------------------------------------------------------------------------------


def _over_glm(r: xr.Dataset) -> Estimate:
    return mean(r.test_error / r.attrs["glm_error"])


def _association_first(r: xr.Dataset) -> Estimate:
    associated = settling_time(r.auc_curve, 0.95, "above")
    general = settling_time(r.test_error_curve, 0.5 * r.attrs["glm_error"], "below")
    return ordering([associated, general])


def _partition(r: xr.Dataset) -> Estimate:
    return difference(r.test_error.sel(partition="random"), r.test_error.sel(partition="contiguous"))


def _column_sums(r: xr.Dataset) -> Estimate:
    """Mean distance from 1 of the weight that all rows together give a patch."""
    scores = softmax(r.logits.values, axis=r.logits.get_axis_num("column"))
    sums = r.logits.copy(data=scores).sum("row")
    return mean(abs(sums - 1))


def _encoded(name: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda r: mean(r[name].sel(attention="encodings"))


def _encoded_over_glm(r: xr.Dataset) -> Estimate:
    return mean(r.test_error.sel(attention="encodings") / r.attrs["glm_error"])


# Population descent ----------------------------------------------------------------------------------------------------


def same_mass(r: xr.Dataset) -> xr.DataArray:
    """`D (C-1) Gamma` over training, up to a constant factor: the same-group score."""
    return r.same_score_curve


def second_event(r: xr.Dataset) -> xr.DataArray:
    """T1: the first logged step from which the same-group score stays above half its final value."""
    final = same_mass(r).isel(step=-1, drop=True)
    return settling_time(same_mass(r) / final, 0.5, "above")


@answering(Estimate.absent)
def _events(r: xr.Dataset) -> Estimate:
    """The smallest gap between consecutive events of each seed, over all settings, in logarithms of steps."""
    first = r.event1.where(r.event1 > 0)
    last = settling_time(r.loss_curve, 0.05, "below")
    needs(bool(last.notnull().any()), "no run brought its loss below 0.05: the third event did not end.")
    times = [xr.ufuncs.log(t) for t in (first, second_event(r), last)]
    gaps = [after - before for before, after in itertools.pairwise(times)]
    smallest = xr.ufuncs.minimum(*gaps)
    return mean(smallest.min([d for d in smallest.dims if d != "seed"], skipna=False))


def _first(curve: xr.DataArray) -> xr.DataArray:
    """The first value that a curve has."""
    return curve.isel(step=curve.notnull().argmax("step"))


def _alignment_stays(r: xr.Dataset) -> Estimate:
    late = r.alignment_curve.where(r.step >= r.event1.where(r.event1 > 0))
    return mean(late.min("step") / _first(late))


def _acceleration(r: xr.Dataset) -> Estimate:
    """How much more log Gamma rises in the second half of the time between the first two events than in the first half,
    over the whole rise."""
    first, second = r.event1.where(r.event1 > 0), second_event(r)
    rises = []
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        between = (r.step >= first + low * (second - first)) & (r.step <= first + high * (second - first))
        part = xr.ufuncs.log(same_mass(r)).where(between)
        rises.append(part.max("step") - part.min("step"))
    return mean((rises[1] - rises[0]) / (rises[1] + rises[0]))


def _signal_dominates(r: xr.Dataset) -> Estimate:
    at_end = _first(r.signal_drive_curve.where(r.step >= second_event(r)))
    return mean(at_end / abs(r.noise_drive_curve).max("step"))


def _worst_fall(r: xr.Dataset, curve: xr.DataArray) -> Estimate:
    """The worst fall of a curve below its highest value so far, as a share of that value, from the second event until
    the loss is 0.01."""
    window = (r.step >= second_event(r)) & (r.step <= settling_time(r.loss_curve, 0.01, "below").fillna(inf))
    late = curve.where(window)
    highest = np.fmax.accumulate(late.values, axis=curve.get_axis_num("step"))
    worst = (late / highest - 1).min("step")
    return mean(worst.min([d for d in worst.dims if d != "seed"]))


def _alignment_grows(r: xr.Dataset) -> Estimate:
    """At the largest diagonal, which is nearest to the lemma's condition `e^beta >= q D log d`."""
    return _worst_fall(r.isel(diagonal=[-1]), r.alignment_curve.isel(diagonal=[-1]))


def _margin_grows(r: xr.Dataset) -> Estimate:
    return _worst_fall(r, r.alignment_curve * r.gain_curve)


def _gamma_above(r: xr.Dataset) -> Estimate:
    return mean((r.same_curve - r.cross_curve).isel(step=slice(1, None)).min("step"))


def _rho(r: xr.Dataset) -> Estimate:
    return mean(abs(r.cross_curve).max("step") / r.same_curve.max("step"))


def _plateau(r: xr.Dataset) -> Estimate:
    """Error over the linear models' between the end of the first event and a quarter of the second."""
    step = r.step
    between = (step > 1.5 * r.event1) & (step < 0.25 * second_event(r))
    return mean(r.test_error_curve.where(between).mean("step") / r.attrs["glm_error"])


def _noise_share(r: xr.Dataset) -> Estimate:
    start = r.isel(step=0)
    return mean(start.noise_drive_curve / start.signal_drive_curve)


def _event1_over_predicted(r: xr.Dataset) -> xr.DataArray:
    """The sweep sets the step size so that the corrected time is 3000 steps."""
    return (r.event1 / 3000).where(r.event1 > 0)


def _event1_exponent(r: xr.Dataset) -> Estimate:
    """Exponent of `eta T0` in the starting alpha, p = 3."""
    D, C, q = facts(r)
    beta = settings(r)["network.diagonal"]
    unit = [theory.event1_time(D, C, q, 3, beta, 1.0, a) for a in r.start.values]
    times = _event1_over_predicted(r).sel(degree=3) * xr.DataArray(unit, dims="start")
    return exponent(times, "start", paired=True)


def _event1_constant(r: xr.Dataset) -> Estimate:
    return mean(_event1_over_predicted(r))


@answering(Estimate.absent)
def _loss_slope(r: xr.Dataset) -> Estimate:
    """Slope of log loss against log time since the loss was 0.1, while it falls from 1e-2 to 1e-3.

    A sample with an image that its attention cannot get right has a floor and no rate: where the loss ends above 1e-4,
    the seed is left out.
    """
    slopes, floors = [], 0
    for seed in r.seed.values:
        curve = r.loss_curve.sel(seed=seed).dropna("step")
        if curve.values[-1] > 1e-4:
            floors += 1
            continue
        since = curve.step.values[np.argmax(curve.values <= 0.1)]
        window = (curve.values <= 1e-2) & (curve.values >= 1e-3) & (curve.step.values > since)
        needs(window.sum() > 2, "too few steps were logged while the loss fell from 1e-2 to 1e-3.")
        slopes.append(
            np.polyfit(np.log(curve.step.values[window] - since), np.log(curve.values[window]), 1)[0]
        )
    needs(len(slopes) > 1, "fewer than two samples are free of images that keep the loss above 1e-4.")
    return mean(np.array(slopes)).noted(f"{floors} of {r.sizes['seed']} samples have a floor.")


def _loss_over_margin(r: xr.Dataset) -> Estimate:
    """The largest ratio of the loss to `log(1 + exp(-(alpha G)^p))` while the loss falls from 0.1 to 1e-3."""
    bound = theory.loss_from_margin(r.alignment_curve, r.gain_curve, settings(r)["network.degree"])
    window = (r.loss_curve <= 0.1) & (r.loss_curve >= 1e-3)
    return mean((r.loss_curve / bound).where(window).max("step"))


def _frozen(r: xr.Dataset) -> Estimate:
    return mean(r.test_error.sel(attention="frozen") / r.attrs["glm_error"])


# The linear phase and the coupling -------------------------------------------------------------------------------------


def _drift(r: xr.Dataset) -> Estimate:
    """Measured growth of alpha a step over `eta nu D C / 2`, where every |z| is far below the linear range's end."""
    fields = settings(r)
    D, C, _ = facts(r)
    one = r.isel(samples=-1)
    ratios = []
    for nu in one.linear.values:
        curve = one.alignment_curve.sel(linear=nu)
        gain = theory.tied_scores(D, C, fields["network.diagonal"]).gain
        limit = 0.05 * theory.linear_part_negligible_from(nu, 3) / gain
        early = curve.where((curve.mean("seed") <= limit) | (curve.step <= curve.step[1]), drop=True)
        rise = (early.isel(step=-1) - early.isel(step=0)) / float(early.step[-1] - early.step[0])
        ratios.append(rise / theory.linear_drift(D, C, nu, fields["descent.learning_rate"]))
    joined: xr.DataArray = xr.concat(ratios, "linear")  # pyright: ignore[reportAssignmentType]
    return mean(joined)


def phase_end(r: xr.Dataset) -> xr.DataArray:
    """The step at which alpha reaches `nu^(1/(p-1))`."""
    return settling_time(r.alignment_curve / r.linear**0.5, 1.0, "above")


def _phase_exponent(r: xr.Dataset) -> Estimate:
    return exponent(phase_end(r).isel(samples=-1), "linear")


def phase_gain(r: xr.Dataset) -> xr.DataArray:
    """What the value vector gains off the feature until the end of the linear phase, at the smallest nu."""
    gained = r.orthogonal_curve.where(r.step <= phase_end(r)).max("step") - r.orthogonal_curve.isel(step=0)
    return gained.isel(linear=0, drop=True)


def _phase_noise(r: xr.Dataset) -> Estimate:
    return exponent(phase_gain(r), "samples", paired=True)


def _phase_logits(r: xr.Dataset) -> Estimate:
    """The largest logit off the diagonal during the linear phase."""
    names = ("same_min", "same_max", "cross_min", "cross_max")
    largest = xr.concat([abs(r[f"{name}_curve"]) for name in names], "extreme").max("extreme")
    return mean(largest.where(r.step <= phase_end(r)).max("step"))


def _falls(name: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda r: exponent(r[name], "samples", paired=True)


def _follows(r: xr.Dataset) -> Estimate:
    """Root mean square of the relative distance of alpha G from the three numbers', at the largest sample."""
    one = r.isel(samples=-1)
    after = one.step > one.linear_phase_end + 50
    ours, theirs = one.alignment_curve * one.gain_curve, one.ideal_alignment_curve * one.ideal_gain_curve
    return mean((((ours / theirs - 1) ** 2).where(after).mean("step")) ** 0.5)


# Transfer --------------------------------------------------------------------------------------------------------------


@answering(Estimate.absent)
def _transfer_order(r: xr.Dataset) -> Estimate:
    sixteen = r.where(r["size"] == 16)
    error = sixteen.error.max("downstream")
    gap = (error.sel(learner="initial") - error.sel(learner="one-step")) / r.glm_error.sel(learner="initial")
    return mean(gap)


def _needed(learner: str) -> Callable[[xr.Dataset], Estimate]:
    def measure(r: xr.Dataset) -> Estimate:
        needed, largest = (r[name].sel(learner=learner) for name in ("needed", "largest"))
        beyond = xr.where(np.isfinite(needed), 0, 1)
        return exponent(
            xr.where(beyond, largest, needed),
            "patches",
            censored=beyond if beyond.any() else None,
        )

    return measure


def _cosine(r: xr.Dataset) -> Estimate:
    one = r.sel(learner="one-step")
    return mean((one.cosine / one.predicted_cosine).where(one["size"] >= 8))


def _at_samples(r: xr.Dataset, samples: int, learners: Sequence[str]) -> xr.DataArray:
    """Error of these learners with this many downstream samples."""
    return r.error.where(r["size"] == samples).max("downstream").sel(learner=list(learners))


WITH = ("one-step", "one-step, realistic", "descent")


def _without(r: xr.Dataset) -> list[str]:
    return [name for name in r.learner.values if name not in WITH]


def _learners_order(r: xr.Dataset) -> Estimate:
    """Best error without association less the worst with it, 16 samples, over the linear models' error."""
    worst = _at_samples(r, 16, WITH).max("learner")
    best = _at_samples(r, 16, _without(r)).min("learner")
    return mean((best - worst) / r.glm_error.isel(learner=0))


def _as_one_step(learner: str) -> Callable[[xr.Dataset], Estimate]:
    def measure(r: xr.Dataset) -> Estimate:
        ours, theirs = (_at_samples(r, 64, [name]).max("learner") for name in (learner, "one-step"))
        return difference(ours, theirs)

    return measure


def _unseen_groups(r: xr.Dataset) -> Estimate:
    """The error over the floor, for the learner without association and the size (4 or 16) where it is smallest."""
    one = r.sel(learner=_without(r))
    ratio = (one.error / one.floor).where((one["size"] == 4) | (one["size"] == 16))
    flat = ratio.stack(cell=("learner", "downstream"))
    return mean(flat.isel(cell=int(flat.mean("seed").argmin("cell"))))


# Sizes -----------------------------------------------------------------------------------------------------------------


@answering(Estimate.absent)
def _event2_growth(r: xr.Dataset) -> Estimate:
    many = _by_patches(r)
    return exponent(second_event(many), "patches")


@answering(Estimate.absent)
def _degree(r: xr.Dataset) -> Estimate:
    needs("p=5" in r.variation.values, "the sweep does not vary the degree.")
    return difference(r.test_error.sel(variation="base"), r.test_error.sel(variation="p=5"))


PATCHES = {"D=36": 36, "base": 64, "D=100": 100, "D=144": 144}


@answering(Estimate.absent)
def _error_floor(r: xr.Dataset) -> Estimate:
    needs("p=7" in r.variation.values, "the sweep does not vary the degree.")
    return mean(r.test_error.sel(variation="p=7") / r.attrs["label_noise"])


@answering(Estimate.absent)
def _alignment_sum(r: xr.Dataset) -> Estimate:
    """By which factor `eta C sum_t alpha^p / D`, summed until the end of the second event, changes when D doubles."""
    many = _by_patches(r)
    p = settings(r)["network.degree"]
    until = many.alignment_curve.where(many.step <= second_event(many))
    total = (until**p).fillna(0).integrate("step") / many.patches
    return exponent(total, "patches").map(lambda slope: 2**slope)


def _by_patches(r: xr.Dataset) -> xr.Dataset:
    """The variations of the number of patches, with that number as the axis."""
    known = [name for name in PATCHES if name in r.variation.values]
    needs(len(known) > 1, "the sweep does not vary the number of patches.")
    some = r.sel(variation=known).assign_coords(patches=("variation", [PATCHES[n] for n in known]))
    return some.swap_dims(variation="patches").drop_vars("variation")


# Conditions ------------------------------------------------------------------------------------------------------------


def _conditions(r: xr.Dataset) -> list[Condition]:
    return conditions(settings(r))


def conditions(fields: dict) -> list[Condition]:
    """The theorems' conditions at the settings of a trial, as far as they can be checked."""
    D, C, q = (fields[f"data.{name}"] for name in ("patches", "group_size", "spurious_rate"))
    found = [_condition("spurious patches dominate: q(D-C) >= 0.756 C^2", theory.spurious_margin(D, C, q))]
    if "network.diagonal" in fields:
        margin = theory.diagonal_margin(D, fields["data.dimension"], q, fields["network.diagonal"])
        found.append(_condition("the diagonal dominates: e^beta >= 2 q D log d", margin))
    if "descent.attention_rate" in fields:
        rate = fields["descent.attention_rate"]
        found.append(
            Condition("one step size for value and attention", rate == 1, min(rate, 1 / max(rate, 1)))
        )
    return found


def _condition(name: str, margin: float) -> Condition:
    return Condition(name, bool(margin >= 1 - 1e-9), float(margin))


def _dominated(r: xr.Dataset) -> list[Condition]:
    return [_condition("spurious patches dominate: q(D-C) >= 0.756 C^2", float(r.dominance.max()) / 0.756)]


# The claims ------------------------------------------------------------------------------------------------------------

HALF = (-0.75, -0.3)
HALF_REASON = (
    "the gap is Monte Carlo noise of the sample, amplified by training; a few sizes and seeds leave a quarter"
)
UP = (0.0, inf)

CLAIMS: dict[str, Claim] = {
    c.id: c
    for c in (
        Claim(
            "linear-models-fail", "glm-floor", "Theorem 3.1", "at least 1/8", (0.125, inf),
            "the bound itself, at the worst setting with q(D-C) >= C^2", _linear_floor, _dominated,
        ),
        Claim(
            "linear-error-law", "glm-floor", "Theorem 3.1 (derived)", "R^2 = 1", (0.98, inf),
            "logistic regression on thousands of samples is near its optimum", _linear_law, _dominated,
        ),
        Claim(
            "generalises-without", "without-association", "Theorem 3.2", "excess 0", (-inf, 0.003),
            "the labelling function errs that often itself; 0.003 for ties at finite strength", _shifted_excess,
        ),
        Claim(
            "avoids-every-group", "without-association", "Theorem 3.2", "overlap 0", (0.0, 0.0),
            "an exact statement", _shifted_overlap,
        ),
        Claim(
            "gaussian-low-error", "fig2", "Section 2, Fig. 2", "small", (-inf, 0.1),
            "a vote of the filters, which needs no groups, errs 0.095",
            _gaussian("test_error"),
        ),
        Claim(
            "gaussian-no-association", "fig2", "Section 2, Fig. 2", "AUC near 1/2", (0.35, 0.65),
            "48 same-group pairs among 240 have a standard error of 0.05: three of them off chance", _gaussian("auc"),
        ),
        Claim(
            "gaussian-overlap", "fig2", "Section 2, Fig. 2", "overlap not above chance (difference 0)", (-inf, 0.15),
            "half a slot of the four that a row's group has", _gaussian_overlap,
        ),
        Claim(
            "association", "fig4", "Theorem 4.2", "every row", (0.99, inf),
            "with high probability over samples; one row in a hundred may be unlucky", lambda r: mean(r.exact), _conditions,
        ),
        Claim(
            "generalises", "fig4", "Theorem 4.2", "error o(1)", (-inf, 0.25),
            "a quarter of the linear models' error cannot be had without the groups", _over_glm, _conditions,
        ),
        Claim(
            "points-at-feature", "fig4", "Fig. 4", "cosine near 1", (0.9, inf),
            "a finite sample leaves a part off the feature of order sqrt(d / N)", lambda r: mean(r.cosine), _conditions,
        ),
        Claim(
            "association-first", "fig4", "Section 4", "AUC 0.95 before half the linear error (steps)", (1.0, inf),
            "at least a step earlier in the mean, the interval included", _association_first, _conditions,
        ),
        Claim(
            "partition-is-irrelevant", "fig4", "Definition 2.1", "error difference 0", (-0.01, 0.01),
            "three standard errors of a test set of 3000 at an error of 0.02 are 0.008", _partition, _conditions,
        ),
        Claim(
            "column-sums", "fig4", "Appendix F, (155)", "mean distance from 1 is 0", (-inf, 0.1),
            "one over a polynomial of d in the paper; a tenth would still leave the step's direction alone",
            _column_sums, _conditions,
        ),
        Claim(
            "encodings-associate", "encodings", "Definition 2.2", "every row", (0.95, inf),
            "the share of rows at which Theorem 4.2 counts as refuted", _encoded("exact"), _conditions,
        ),
        Claim(
            "encodings-generalise", "encodings", "Theorem 4.2 for encodings", "error o(1)", (-inf, 0.5),
            "half the linear error cannot be had without the groups", _encoded_over_glm, _conditions,
        ),
        Claim(
            "events-in-order", "three-events", "Section 4.1", "log T0 < log T1 < log T2", UP,
            "the smallest gap between consecutive events of each seed, in logarithms of steps", _events, _conditions,
        ),
        Claim(
            "gamma-above-rho", "three-events", "Theorem 4.1", "gamma - rho > 0 at every step", UP,
            "an exact statement under the population risk", _gamma_above, _conditions,
        ),
        Claim(
            "rho-barely-moves", "three-events", "Lemma 4.3", "|rho| << gamma", (-inf, 0.1),
            "orders only: a tenth is what 64 patches leave of 1/D times constants", _rho, _conditions,
        ),
        Claim(
            "plateau", "three-events", "Section 4.1", "error of a linear model (ratio 1)", (0.75, 1.25),
            "ties of the vote may be broken either way, which is 0.80 to 1.20 here", _plateau, _conditions,
        ),
        Claim(
            "noise-cancels", "three-events", "Lemma D.6 (printed)", "noise drive / signal drive = 0", (-0.1, 0.1),
            "a tenth of the signal's pull would still be negligible", _noise_share, _conditions,
        ),
        Claim(
            "alignment-stays", "three-events", "Lemma D.9", "alpha / alpha(T0) of order 1", (0.3, inf),
            "orders only: a third of the value at the end of the first event", _alignment_stays, _conditions,
        ),
        Claim(
            "same-score-accelerates", "three-events", "Lemma D.8", "log Gamma is convex", UP,
            "the rise of the second half exceeds that of the first, in the mean over runs", _acceleration, _conditions,
        ),
        Claim(
            "signal-dominates", "three-events", "Lemma D.8 (printed)", "S(T1) / max N above 1", (1.0, inf),
            "the statement itself", _signal_dominates, _conditions,
        ),
        Claim(
            "alignment-grows", "three-events", "Lemma D.11 (printed)", "alpha never falls", (-0.01, inf),
            "a hundredth for the last digits of the draws; at the largest diagonal, until the loss is 0.01",
            _alignment_grows, _conditions,
        ),
        Claim(
            "margin-grows", "three-events", "Lemma D.11 (corrected)", "alpha G never falls", (-0.01, inf),
            "a hundredth for the last digits of the draws; the worst of all settings, until the loss is 0.01",
            _margin_grows, _conditions,
        ),
        Claim(
            "population-generalises", "three-events", "Theorem 4.1", "error below half the linear models'", (-inf, 0.5),
            "half the linear error cannot be had without the groups", _over_glm, _conditions,
        ),
        Claim(
            "first-event-printed", "first-event", "Lemma D.2 (printed)", "exponent -2 at p = 3", (-2.05, -1.95),
            "a noiseless recursion over more than a decade", _event1_exponent,
        ),
        Claim(
            "first-event-corrected", "first-event", "Lemma D.2 (corrected)", "exponent -1 at p = 3", (-1.05, -0.95),
            "a noiseless recursion over more than a decade", _event1_exponent,
        ),
        Claim(
            "first-event-constant", "first-event", "Lemma D.2 (corrected)", "measured / predicted = 1", (0.9, 1.1),
            "the time to leave a power-law start is insensitive to its end; draws leave a few per cent", _event1_constant,
        ),
        Claim(
            "loss-rate", "loss-rate", "Lemma D.13", "exponent -1", (-1.4, -0.85),
            "the margin's slow growth bends the log-log curve a little", _loss_slope, _conditions,
        ),
        Claim(
            "loss-follows-margin", "loss-rate", "Lemma D.14", "ratio of order 1", (-inf, 3.0),
            "orders only: the largest ratio while the loss falls from 0.1 to 1e-3", _loss_over_margin, _conditions,
        ),
        Claim(
            "events-in-order-one-rate", "common-rate", "Section 4.1", "log T0 < log T1 < log T2", UP,
            "the smallest gap between consecutive events of each seed, in logarithms of steps", _events, _conditions,
        ),
        Claim(
            "one-step-size", "common-rate", "Theorem 4.1", "error below half the linear models'", (-inf, 0.5),
            "half the linear error cannot be had without the groups", _over_glm, _conditions,
        ),
        Claim(
            "frozen-is-linear", "frozen-attention", "Section 4.1", "error of a linear model (ratio 1)", (0.7, 1.4),
            "ties of the vote may go either way, and the value vector is fitted on a finite sample", _frozen, _conditions,
        ),
        Claim(
            "linear-drift", "linear-phase", "Lemma E.1 (corrected)", "measured / predicted = 1", (0.9, 1.1),
            "a sample of 2000 leaves 2 %; the cubic part adds a few per cent early on", _drift,
        ),
        Claim(
            "linear-phase-time", "linear-phase", "Lemma E.1", "exponent -1/2 at p = 3", (-0.6, -0.4),
            "exact in the scaling limit", _phase_exponent,
        ),
        Claim(
            "linear-phase-noise", "linear-phase", "Lemma E.3", "exponent -1/2", (-0.65, -0.35),
            "a mean of independent noise, three sizes and few seeds", _phase_noise,
        ),
        Claim(
            "linear-phase-logits", "linear-phase", "Lemma E.4", "largest logit 0", (-inf, 1e-2),
            "a hundredth moves no score by more than a per cent", _phase_logits,
        ),
        Claim("coupling-value", "coupling", "Lemma E.9", "exponent -1/2", HALF, HALF_REASON, _falls("worst_orthogonal")),
        Claim("coupling-logits", "coupling", "Lemma E.13", "exponent -1/2", HALF, HALF_REASON, _falls("worst_logit_gap")),
        Claim(
            "coupling-gradient", "coupling", "Lemma E.19", "exponent -1/2", HALF, HALF_REASON, _falls("worst_gradient_gap"),
        ),
        Claim("coupling-output", "coupling", "Lemma E.26", "exponent -1/2", HALF, HALF_REASON, _falls("output_gap")),
        Claim(
            "follows-population", "coupling", "Lemmas E.20-E.23", "relative distance 0", (-inf, 0.15),
            "what a sample of about 10^4 leaves", _follows,
        ),
        Claim(
            "transfer-order", "transfer", "Theorems 5.1, 5.2", "gap of about the linear error (ratio 1)", (0.5, inf),
            "association must win at least half of what linear models lose", _transfer_order,
        ),
        Claim(
            "transfer-with", "transfer", "Theorem 5.1", "polylogarithmic: exponent about 0", (-inf, 0.2),
            "over this range of D a logarithm has exponent 0.2 or less", _needed("one-step"),
        ),
        Claim(
            "transfer-without", "transfer", "Theorem 5.2", "a power of D: exponent above 0", (0.5, inf),
            "the square root of D is the least power that the pair counts ask for; for the best of the learners tried",
            _needed("pair-counting"),
        ),
        Claim(
            "one-step-cosine", "transfer", "Appendix F (derived)", "measured / predicted = 1", (0.9, 1.05),
            "the law replaces a random sum by its mean", _cosine,
        ),
        Claim(
            "learners-order", "transfer-learners", "Theorems 5.1, 5.2", "gap of about the linear error (ratio 1)", UP,
            "the best of those without must not reach the worst of those with", _learners_order,
        ),
        Claim(
            "descent-transfers", "transfer-learners", "Theorem 5.1", "error difference 0 at 64 samples", (-0.02, 0.02),
            "a fifth of the linear models' error", _as_one_step("descent"),
        ),
        Claim(
            "sample-transfers", "transfer-learners", "Theorem 5.1", "error difference 0 at 64 samples", (-0.02, 0.02),
            "a fifth of the linear models' error", _as_one_step("one-step, realistic"),
        ),
        Claim(
            "unseen-groups", "transfer-learners", "Theorem 5.2 (heuristic)", "error / floor at least 1", (0.9, inf),
            "the floor is exact for learners that know nothing of unseen groups; a tenth for the test sets", _unseen_groups,
        ),
        Claim(
            "event2-grows", "sizes", "Lemma D.8 (corrected)", "exponent above 0", UP,
            "the corrected form has D in front; the printed one does not know D", _event2_growth,
        ),
        Claim(
            "degree-helps", "sizes", "Theorem 4.1 (orders)", "error falls from p = 3 to p = 5", UP,
            "a higher power favours full groups over scattered patches", _degree,
        ),
        Claim(
            "error-floor", "sizes", "Theorem 4.1 (limit)", "error / label noise = 1/2 at p = 7", (0.25, 1.0),
            "a factor 2: ten errors a test set", _error_floor,
        ),
        Claim(
            "alignment-sum", "sizes", "Lemma D.16", "factor 1 when D doubles", (0.1, 10.0),
            "orders only: a decade a doubling, up to the end of the second event", _alignment_sum,
        ),
    )
}  # fmt: skip


def predict(trial) -> tuple[list[Condition], list[Prediction]]:
    """What the theory says about a trial, without training it."""
    from lemmata.trial import fields as fields_of

    fields = fields_of(trial)
    D, C, q = (fields[f"data.{name}"] for name in ("patches", "group_size", "spurious_rate"))
    d, p = fields["data.dimension"], fields["network.degree"]
    nu, beta = fields["network.linear"], fields["network.diagonal"]
    eta, rate = fields["descent.learning_rate"], fields["descent.attention_rate"]
    scores = theory.tied_scores(D, C, beta)
    start = nu ** (1 / (p - 1))
    alpha = theory.event1_alignment_scale(C, p, scores.gain)
    signal, rest = theory.drive_moments(D, C, q, p, scores)
    second = theory.event2_duration(D, C, p, eta * rate, alpha, scores.gain)
    cosine = float(theory.one_step_cosine(D, C, 16))
    snr = theory.transfer_snr(D, C, d, cosine, theory.tied_scores(D, C, beta, 3.5))
    predictions = [
        Prediction("error of linear models", theory.glm_error(D, C, q)),
        Prediction("label noise, P(y f* <= 0)", theory.label_noise(D, C, q)),
        Prediction("Bayes error with the partition known", theory.bayes_error(D, C, q)),
        Prediction("signal gain G at the start", scores.gain),
        Prediction("bulk ratio at the start (Lemma D.5 needs it large)", theory.bulk_ratio(D, C, q, p, scores)),
        Prediction("noise over signal part of the first pull (Lemma D.6 prints 0)", rest / signal),
        Prediction("drift of alpha a step in the linear phase", theory.linear_drift(D, C, nu, eta)),
        Prediction("end of the linear phase (steps)", theory.linear_phase_end_full(D, C, q, nu, p, beta, eta)),
        Prediction("end of the linear phase, linear part only (steps)", theory.linear_phase_end(D, C, nu, p, eta)),
        Prediction("alpha where the sigmoid moves, leading scale", alpha),
        Prediction("first event from there, corrected (steps)", theory.event1_time(D, C, q, p, beta, eta, start)),
        Prediction("first event, as printed, constant 1 (steps)", theory.event1_time_printed(C, p, eta, start)),
        Prediction("second event, corrected, constant 1 (steps)", second),
        Prediction("cosine of one transfer step with 16 samples", cosine),
        Prediction("transfer signal-to-noise there, gamma = 3.5", float(snr)),
        Prediction("chance overlap of the top C", theory.chance_overlap(D, C)),
    ]  # fmt: skip
    return conditions(fields), predictions
