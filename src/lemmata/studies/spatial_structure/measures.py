"""What is measured of the results for the claims: numbers with intervals, or the reason why there is none."""

import itertools
from collections.abc import Callable, Sequence
from math import inf

import numpy as np
import xarray as xr
from scipy.special import softmax

from lemmata.draw.style import settings
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.times import settling_time
from lemmata.measure.trend import difference, ordering
from lemmata.studies.spatial_structure import theory


def facts(results: xr.Dataset) -> tuple[int, int, float]:
    """`D, C, q` of the template."""
    fields = settings(results)
    return fields["data.patches"], fields["data.group_size"], fields["data.spurious_rate"]


# Linear models and hand-built attention --------------------------------------------------------------------------------


@answering(Estimate.absent)
def linear_floor(r: xr.Dataset) -> Estimate:
    """The lowest error of any linear model well inside the theorem's regime."""
    inside = r.test_error.where(r.dominance >= 1, drop=True)
    needs(inside.size, "no setting of the sweep lies inside the regime of Theorem 3.1.")
    flat = inside.stack(cell=("dominance", "inputs"))
    return mean(flat.isel(cell=int(flat.mean("seed").argmin("cell"))))


def linear_law(r: xr.Dataset) -> Estimate:
    """Share of the variation of the error over settings that the vote's law explains, seed by seed."""
    one = r.sel(inputs="coefficients")
    left = ((one.test_error - one.predicted_error) ** 2).sum("dominance")
    spread = ((one.test_error - one.test_error.mean("dominance")) ** 2).sum("dominance")
    return mean(1 - left / spread)


def _shifted(r: xr.Dataset) -> xr.Dataset:
    strong = r.sel(solution="shifted")
    return strong.where(strong.strength >= 4, drop=True)


def shifted_excess(r: xr.Dataset) -> Estimate:
    strong = _shifted(r)
    return mean(strong.test_error - strong.label_noise)


def shifted_overlap(r: xr.Dataset) -> Estimate:
    return mean(r.overlap.sel(solution="shifted"))


# Gaussian patches ------------------------------------------------------------------------------------------------------


def gaussian(name: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda r: mean(r[name].sel(learner="wide"))


def gaussian_overlap(r: xr.Dataset) -> Estimate:
    """Share of the top `C` inside the group, above what logits without any order would give."""
    fields = settings(r)
    D, C = fields["data.patches"], fields["data.group_size"]
    return mean(r.overlap.sel(learner="wide") - theory.chance_overlap(D, C))


# Descent on a sample ---------------------------------------------------------------------------------------------------


def over_glm(r: xr.Dataset) -> Estimate:
    return mean(r.test_error / r.attrs["glm_error"])


def association_first(r: xr.Dataset) -> Estimate:
    associated = settling_time(r.auc_curve, 0.95, "above")
    general = settling_time(r.test_error_curve, 0.5 * r.attrs["glm_error"], "below")
    return ordering([associated, general])


def partition(r: xr.Dataset) -> Estimate:
    return difference(r.test_error.sel(partition="random"), r.test_error.sel(partition="contiguous"))


def column_sums(r: xr.Dataset) -> Estimate:
    """Mean distance from 1 of the weight that all rows together give a patch."""
    scores = softmax(r.logits.values, axis=r.logits.get_axis_num("column"))
    sums = r.logits.copy(data=scores).sum("row")
    return mean(abs(sums - 1))


def encoded(name: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda r: mean(r[name].sel(attention="encodings"))


def encoded_over_glm(r: xr.Dataset) -> Estimate:
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
def events(r: xr.Dataset) -> Estimate:
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


def alignment_stays(r: xr.Dataset) -> Estimate:
    late = r.alignment_curve.where(r.step >= r.event1.where(r.event1 > 0))
    return mean(late.min("step") / _first(late))


def acceleration(r: xr.Dataset) -> Estimate:
    """How much more log Gamma rises in the second half of the time between the first two events than in the first half,
    over the whole rise."""
    first, second = r.event1.where(r.event1 > 0), second_event(r)
    rises = []
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        between = (r.step >= first + low * (second - first)) & (r.step <= first + high * (second - first))
        part = xr.ufuncs.log(same_mass(r)).where(between)
        rises.append(part.max("step") - part.min("step"))
    return mean((rises[1] - rises[0]) / (rises[1] + rises[0]))


def signal_dominates(r: xr.Dataset) -> Estimate:
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


def alignment_grows(r: xr.Dataset) -> Estimate:
    """At the largest diagonal, which is nearest to the lemma's condition `e^beta >= q D log d`."""
    return _worst_fall(r.isel(diagonal=[-1]), r.alignment_curve.isel(diagonal=[-1]))


def margin_grows(r: xr.Dataset) -> Estimate:
    return _worst_fall(r, r.alignment_curve * r.gain_curve)


def gamma_above(r: xr.Dataset) -> Estimate:
    return mean((r.same_curve - r.cross_curve).isel(step=slice(1, None)).min("step"))


def rho(r: xr.Dataset) -> Estimate:
    return mean(abs(r.cross_curve).max("step") / r.same_curve.max("step"))


def plateau(r: xr.Dataset) -> Estimate:
    """Error over the linear models' between the end of the first event and a quarter of the second."""
    step = r.step
    between = (step > 1.5 * r.event1) & (step < 0.25 * second_event(r))
    return mean(r.test_error_curve.where(between).mean("step") / r.attrs["glm_error"])


def noise_share(r: xr.Dataset) -> Estimate:
    start = r.isel(step=0)
    return mean(start.noise_drive_curve / start.signal_drive_curve)


def _event1_over_predicted(r: xr.Dataset) -> xr.DataArray:
    """The sweep sets the step size so that the corrected time is 3000 steps."""
    return (r.event1 / 3000).where(r.event1 > 0)


def event1_exponent(r: xr.Dataset) -> Estimate:
    """Exponent of `eta T0` in the starting alpha, p = 3."""
    D, C, q = facts(r)
    beta = settings(r)["network.diagonal"]
    unit = [theory.event1_time(D, C, q, 3, beta, 1.0, a) for a in r.start.values]
    times = _event1_over_predicted(r).sel(degree=3) * xr.DataArray(unit, dims="start")
    return exponent(times, "start", paired=True)


def event1_constant(r: xr.Dataset) -> Estimate:
    return mean(_event1_over_predicted(r))


@answering(Estimate.absent)
def loss_slope(r: xr.Dataset) -> Estimate:
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


def loss_over_margin(r: xr.Dataset) -> Estimate:
    """The largest ratio of the loss to `log(1 + exp(-(alpha G)^p))` while the loss falls from 0.1 to 1e-3."""
    bound = theory.loss_from_margin(r.alignment_curve, r.gain_curve, settings(r)["network.degree"])
    window = (r.loss_curve <= 0.1) & (r.loss_curve >= 1e-3)
    return mean((r.loss_curve / bound).where(window).max("step"))


def frozen(r: xr.Dataset) -> Estimate:
    return mean(r.test_error.sel(attention="frozen") / r.attrs["glm_error"])


# The linear phase and the coupling -------------------------------------------------------------------------------------


def drift(r: xr.Dataset) -> Estimate:
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


def phase_exponent(r: xr.Dataset) -> Estimate:
    return exponent(phase_end(r).isel(samples=-1), "linear")


def phase_gain(r: xr.Dataset) -> xr.DataArray:
    """What the value vector gains off the feature until the end of the linear phase, at the smallest nu."""
    gained = r.orthogonal_curve.where(r.step <= phase_end(r)).max("step") - r.orthogonal_curve.isel(step=0)
    return gained.isel(linear=0, drop=True)


def phase_noise(r: xr.Dataset) -> Estimate:
    return exponent(phase_gain(r), "samples", paired=True)


def phase_logits(r: xr.Dataset) -> Estimate:
    """The largest logit off the diagonal during the linear phase."""
    names = ("same_min", "same_max", "cross_min", "cross_max")
    largest = xr.concat([abs(r[f"{name}_curve"]) for name in names], "extreme").max("extreme")
    return mean(largest.where(r.step <= phase_end(r)).max("step"))


def falls(name: str) -> Callable[[xr.Dataset], Estimate]:
    return lambda r: exponent(r[name], "samples", paired=True)


def follows(r: xr.Dataset) -> Estimate:
    """Root mean square of the relative distance of alpha G from the three numbers', at the largest sample."""
    one = r.isel(samples=-1)
    after = one.step > one.linear_phase_end + 50
    ours, theirs = one.alignment_curve * one.gain_curve, one.ideal_alignment_curve * one.ideal_gain_curve
    return mean((((ours / theirs - 1) ** 2).where(after).mean("step")) ** 0.5)


# Transfer --------------------------------------------------------------------------------------------------------------


@answering(Estimate.absent)
def transfer_order(r: xr.Dataset) -> Estimate:
    sixteen = r.where(r["size"] == 16)
    error = sixteen.error.max("downstream")
    gap = (error.sel(learner="initial") - error.sel(learner="one-step")) / r.glm_error.sel(learner="initial")
    return mean(gap)


def needed(learner: str) -> Callable[[xr.Dataset], Estimate]:
    def measure(r: xr.Dataset) -> Estimate:
        needed, largest = (r[name].sel(learner=learner) for name in ("needed", "largest"))
        beyond = xr.where(np.isfinite(needed), 0, 1)
        return exponent(
            xr.where(beyond, largest, needed),
            "patches",
            censored=beyond if beyond.any() else None,
        )

    return measure


def cosine(r: xr.Dataset) -> Estimate:
    one = r.sel(learner="one-step")
    return mean((one.cosine / one.predicted_cosine).where(one["size"] >= 8))


def _at_samples(r: xr.Dataset, samples: int, learners: Sequence[str]) -> xr.DataArray:
    """Error of these learners with this many downstream samples."""
    return r.error.where(r["size"] == samples).max("downstream").sel(learner=list(learners))


WITH = ("one-step", "one-step, realistic", "descent")


def _without(r: xr.Dataset) -> list[str]:
    return [name for name in r.learner.values if name not in WITH]


def learners_order(r: xr.Dataset) -> Estimate:
    """Best error without association less the worst with it, 16 samples, over the linear models' error."""
    worst = _at_samples(r, 16, WITH).max("learner")
    best = _at_samples(r, 16, _without(r)).min("learner")
    return mean((best - worst) / r.glm_error.isel(learner=0))


def as_one_step(learner: str) -> Callable[[xr.Dataset], Estimate]:
    def measure(r: xr.Dataset) -> Estimate:
        ours, theirs = (_at_samples(r, 64, [name]).max("learner") for name in (learner, "one-step"))
        return difference(ours, theirs)

    return measure


def unseen_groups(r: xr.Dataset) -> Estimate:
    """The error over the floor, for the learner without association and the size (4 or 16) where it is smallest."""
    one = r.sel(learner=_without(r))
    ratio = (one.error / one.floor).where((one["size"] == 4) | (one["size"] == 16))
    flat = ratio.stack(cell=("learner", "downstream"))
    return mean(flat.isel(cell=int(flat.mean("seed").argmin("cell"))))


# Sizes -----------------------------------------------------------------------------------------------------------------


@answering(Estimate.absent)
def event2_growth(r: xr.Dataset) -> Estimate:
    many = _by_patches(r)
    return exponent(second_event(many), "patches")


@answering(Estimate.absent)
def degree(r: xr.Dataset) -> Estimate:
    needs("p=5" in r.variation.values, "the sweep does not vary the degree.")
    return difference(r.test_error.sel(variation="base"), r.test_error.sel(variation="p=5"))


PATCHES = {"D=36": 36, "base": 64, "D=100": 100, "D=144": 144}


@answering(Estimate.absent)
def error_floor(r: xr.Dataset) -> Estimate:
    needs("p=7" in r.variation.values, "the sweep does not vary the degree.")
    return mean(r.test_error.sel(variation="p=7") / r.attrs["label_noise"])


@answering(Estimate.absent)
def alignment_sum(r: xr.Dataset) -> Estimate:
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
