"""What is measured of the results for the claims: numbers with intervals, or one number a run where every run counts."""

from types import SimpleNamespace

import numpy as np
import xarray as xr
from scipy.special import softmax

from lemmata.measure.columns import flagged
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.times import settling_time
from lemmata.measure.trend import arms, difference, ordering, smallest
from lemmata.results import over_cells, trial_at
from lemmata.studies.spatial_structure import theory

# What was run ----------------------------------------------------------------------------------------------------------


def facts(results: xr.Dataset) -> tuple[int, int, float]:
    """`D, C, q` of results in which they do not vary."""
    return trial_at(results).data.facts  # pyright: ignore[reportAttributeAccessIssue]


def glm_error(results: xr.Dataset) -> xr.DataArray:
    """The error of linear models at every grid point."""
    return over_cells(results, lambda trial: theory.glm_error(*trial.data.facts))


def _numbers(results: xr.Dataset) -> SimpleNamespace:
    """`D`, `C`, `d`, `q`, `p`, `lambda0` (the largest `D (C-1) Gamma` of a run) and the scores along the trajectory."""
    of = SimpleNamespace(
        D=over_cells(results, lambda t: t.data.patches),
        C=over_cells(results, lambda t: t.data.group_size),
        d=over_cells(results, lambda t: t.data.dimension),
        q=over_cells(results, lambda t: t.data.spurious_rate),
        p=trial_at(results).network.degree,  # pyright: ignore[reportAttributeAccessIssue]
        scores=SimpleNamespace(
            same=results.same_score_curve, cross=results.cross_score_curve, gain=results.gain_curve
        ),
    )
    of.mass = of.D * (of.C - 1) * results.same_score_curve
    of.lambda0 = of.mass.max("step")
    return of


# Regions: which cells a number comes from --------------------------------------------------------------------------------


def spurious_dominate(r: xr.Dataset) -> xr.DataArray:
    return r.dominance >= 1


def strongly_shifted(r: xr.Dataset) -> xr.DataArray:
    return (r.solution == "shifted") & (r.strength >= 4)


def wide_learner(r: xr.Dataset) -> xr.DataArray:
    return r.learner == "wide"


def network_t(r: xr.Dataset) -> xr.DataArray:
    return r.learner == "analysed"


def encodings(r: xr.Dataset) -> xr.DataArray:
    return r.attention == "encodings"


def frozen(r: xr.Dataset) -> xr.DataArray:
    return r.attention == "frozen"


def diagonal_dominates(r: xr.Dataset) -> xr.DataArray:
    """Cells that meet the condition of Lemma G.3, under which Lemma D.11 is stated."""

    def margin(trial) -> float:
        D, _, q = trial.data.facts
        return theory.diagonal_margin(D, trial.data.dimension, q, float(trial.network.diagonal))

    return over_cells(r, margin) >= 1


def beyond_diagonal(r: xr.Dataset) -> xr.DataArray:
    """Cells with `D >= e^beta`: the denominator of the softmax is of order D (Induction Hypothesis B.1)."""
    return over_cells(r, lambda t: t.data.patches / np.exp(t.network.diagonal)) >= 1


def reference_diagonal(r: xr.Dataset) -> xr.DataArray:
    return r.diagonal == 3


def one_step(r: xr.Dataset) -> xr.DataArray:
    return r.learner == "one-step"


def label_counting(r: xr.Dataset) -> xr.DataArray:
    return r.learner == "label-counting"


def learned_descent(r: xr.Dataset) -> xr.DataArray:
    return r.learner == "descent, learned"


def counting_among_many(r: xr.Dataset) -> xr.DataArray:
    """Learners that count pairs, where a pair that agrees twice by chance is rarer than a group: `D >= 784`."""
    return r.learner.isin(["pair-counting", "label-counting"]) & (r.patches >= 784)


# Plain numbers ---------------------------------------------------------------------------------------------------------


def average(r: xr.Dataset, of: str) -> Estimate:
    return mean(r[of])


def every(r: xr.Dataset, of: str) -> xr.DataArray:
    return r[of]


def over_glm(r: xr.Dataset) -> Estimate:
    """Test error over that of linear models."""
    return mean(r.test_error / glm_error(r))


def falls(r: xr.Dataset, of: str, over: str = "samples") -> Estimate:
    return exponent(r[of], over, paired=True)


# Linear models, hand-built attention, Gaussian patches -------------------------------------------------------------------


def linear_law(r: xr.Dataset) -> Estimate:
    """Error of the regression on coefficients over the vote's law."""
    one = r.sel(inputs="coefficients")
    return mean(one.test_error / one.predicted_error)


def shifted_excess(r: xr.Dataset) -> Estimate:
    return mean(r.test_error - over_cells(r, lambda t: theory.label_noise(*t.data.facts)))


def overlap_above_chance(r: xr.Dataset) -> Estimate:
    """Share of the top `C` inside the group, above what logits without any order would give."""
    chance = over_cells(r, lambda t: theory.chance_overlap(t.data.patches, t.data.group_size))
    return mean(r.overlap - chance)


def beats_vote(r: xr.Dataset) -> Estimate:
    """The error less the vote's, for the learner that comes out best."""
    return smallest(arms(r.test_error - r.vote_error, "learner"))


# Descent on a sample ---------------------------------------------------------------------------------------------------


def all_rows(r: xr.Dataset) -> xr.DataArray:
    """Whether every row's top C is its group."""
    return flagged(r.exact >= 1, r)


def association_first(r: xr.Dataset) -> Estimate:
    associated = settling_time(r.auc_curve, 0.95, "above")
    general = settling_time(r.test_error_curve / glm_error(r), 0.5, "below")
    return ordering([associated, general])


def partition(r: xr.Dataset) -> Estimate:
    return difference(r.test_error.sel(partition="random"), r.test_error.sel(partition="contiguous"))


def column_sums(r: xr.Dataset) -> xr.DataArray:
    """The largest distance from 1 of the weight that all rows together give a patch."""
    tau = over_cells(r, lambda t: t.network.temperature(t.data.dimension))
    scaled = r.logits / tau
    scores = scaled.copy(data=softmax(scaled.values, axis=scaled.get_axis_num("column")))
    return abs(scores.sum("row", skipna=False) - 1).max("column", skipna=False)


# Population descent ----------------------------------------------------------------------------------------------------


def second_event(r: xr.Dataset) -> xr.DataArray:
    """T1: the first logged step from which gamma stays above the largest |rho| of the whole run (Section 4.1)."""
    return settling_time(r.same_curve / r.largest_cross, 1.0, "above")


def _reached(r: xr.Dataset, event: str) -> xr.DataArray:
    return r[event].where(r[event] >= 0)


def events(r: xr.Dataset) -> xr.DataArray:
    """The smaller gap between consecutive events of each run, in logarithms of steps; a run in which gamma never passes rho has
    no order, and one whose loss stays above 0.05 is taken to get there at its last step."""
    first, second = _reached(r, "event1"), second_event(r)
    last = _reached(r, "event3")
    needs(bool(last.notnull().any()), "no run brought its loss below 0.05: the third event did not end.")
    times = [xr.ufuncs.log(t) for t in (first, second, last.fillna(r.steps))]
    gap = xr.ufuncs.minimum(times[1] - times[0], times[2] - times[1])
    return xr.where(second.isnull() & r.steps.notnull(), -np.inf, gap)


def rho_over_gamma(r: xr.Dataset) -> Estimate:
    return mean(r.largest_cross / r.same_curve.max("step"))


def plateau(r: xr.Dataset) -> Estimate:
    """Error over the linear models' between the first two events."""
    between = (r.step > 1.5 * _reached(r, "event1")) & (r.step < second_event(r))
    return mean(r.test_error_curve.where(between).mean("step") / glm_error(r))


def noise_share(r: xr.Dataset) -> Estimate:
    start = r.isel(step=0)
    return mean(start.noise_drive_curve / start.signal_drive_curve)


def _first(curve: xr.DataArray) -> xr.DataArray:
    """The first value that a curve has."""
    return curve.isel(step=curve.notnull().argmax("step"))


def alignment_stays(r: xr.Dataset) -> xr.DataArray:
    late = r.alignment_curve.where(r.step >= _reached(r, "event1"))
    return late.min("step") / _first(late)


def acceleration(r: xr.Dataset) -> Estimate:
    """How much more log Gamma rises in the second half of the time from T0 until gamma is 1 than in the first half, over the
    whole rise."""
    first, second = _reached(r, "event1"), _reached(r, "same_unit")
    rises = []
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        between = (r.step >= first + low * (second - first)) & (r.step <= first + high * (second - first))
        part = xr.ufuncs.log(r.same_score_curve).where(between)
        rises.append(part.max("step") - part.min("step"))
    return mean((rises[1] - rises[0]) / (rises[1] + rises[0]))


def signal_dominates(r: xr.Dataset) -> xr.DataArray:
    at_end = _first(r.signal_drive_curve.where(r.step >= second_event(r)))
    return at_end / abs(r.noise_drive_curve).max("step")


def worst_fall(r: xr.Dataset, margin: bool) -> xr.DataArray:
    """The worst fall of alpha (or of alpha G) below its highest value so far, as a share of that value, from the second event
    until the loss is 0.01."""
    curve = r.alignment_curve * r.gain_curve if margin else r.alignment_curve
    end = settling_time(r.loss_curve, 0.01, "below").fillna(np.inf)
    late = curve.where((r.step >= second_event(r)) & (r.step <= end))
    highest = np.fmax.accumulate(late.values, axis=late.get_axis_num("step"))
    return (late / highest - 1).min("step")


def _furthest(ratio: xr.DataArray) -> xr.DataArray:
    """The value of a positive curve that is furthest from 1, by its logarithm."""
    low, high = ratio.min("step"), ratio.max("step")
    return xr.where(high * low > 1, high, low)


def _not_yet(r: xr.Dataset) -> xr.DataArray:
    """Steps at which the population risk is not o(1), read as a loss of at least 0.05."""
    return r.loss_curve >= 0.05


def signal_drive(r: xr.Dataset) -> xr.DataArray:
    """The signal part of the pull on alpha over `p C G^p alpha^(p-1) E sg`, where it is furthest from 1."""
    of = _numbers(r)
    law = theory.signal_drive(of.C, of.p, r.gain_curve, r.alignment_curve, r.slack_curve)
    return _furthest((r.signal_drive_curve / law).where(_not_yet(r)))


def output_over_bound(r: xr.Dataset) -> xr.DataArray:
    """The largest output over the bound of Lemma D.3, `lambda0` being the largest `D (C-1) Gamma` of the run."""
    of = _numbers(r)
    bound = theory.output_bound(of.C, of.p, r.alignment_curve, of.lambda0)
    return (r.largest_output_curve / bound).max("step")


def same_growth(r: xr.Dataset) -> xr.DataArray:
    """The pull on a same-group logit over `C alpha^p Gamma G^(p-1) E sg` after the first event, where furthest from 1."""
    of = _numbers(r)
    law = theory.same_growth_printed(of.C, of.p, r.alignment_curve, of.scores, r.slack_curve)
    return _furthest((r.same_pull_curve / law).where(_not_yet(r) & (r.step >= _reached(r, "event1"))))


def cross_growth(r: xr.Dataset, version: str) -> xr.DataArray:
    """The largest pull on a cross-group logit over one of the paper's three bounds."""
    of = _numbers(r)
    bound = theory.CROSS_GROWTH[version](
        of.D, of.C, of.d, of.q, of.p, r.alignment_curve, of.scores, of.lambda0
    )
    return (abs(r.cross_pull_curve) / bound).where(_not_yet(r)).max("step")


def cross_growth_exponent(r: xr.Dataset, version: str) -> Estimate:
    return exponent(cross_growth(r, version), "patches")


# Events against their laws -----------------------------------------------------------------------------------------------


def _event1_over_predicted(r: xr.Dataset) -> xr.DataArray:
    def predicted(trial) -> float:
        network, descent = trial.network, trial.descent
        beta, rate = float(network.diagonal), float(descent.learning_rate)
        return theory.event1_time(*trial.data.facts, network.degree, beta, rate, float(trial.alignment))  # pyright: ignore[reportCallIssue]  (facts are three)

    return _reached(r, "event1") / over_cells(r, predicted)


def event1_constant(r: xr.Dataset) -> Estimate:
    return mean(_event1_over_predicted(r))


def event1_exponent(r: xr.Dataset) -> Estimate:
    """Exponent of `eta T0` in the starting alpha, p = 3."""
    times = _reached(r, "event1") * over_cells(r, lambda t: t.descent.learning_rate)
    return exponent(times.sel(degree=3), "start", paired=True)


def _logit_rate(trial) -> float:
    return float(trial.descent.learning_rate * trial.descent.attention_rate)


def second_duration(r: xr.Dataset) -> xr.DataArray:
    """Steps from T0 until gamma is 1, times the step size of the logits."""
    return (_reached(r, "same_unit") - _reached(r, "event1")) * over_cells(r, _logit_rate)


def event2_exponent(r: xr.Dataset) -> Estimate:
    return exponent(second_duration(r), "patches")


def event2_over_predicted(r: xr.Dataset) -> Estimate:
    def predicted(trial) -> float:
        return theory.event2_duration(
            *trial.data.facts,
            trial.network.degree,  # pyright: ignore[reportCallIssue]  (facts are three)
            float(trial.network.diagonal),  # pyright: ignore[reportCallIssue]  (facts are three)
            1.0,  # pyright: ignore[reportCallIssue]  (facts are three)
        )

    return mean(second_duration(r) / over_cells(r, predicted))


def alignment_sum(r: xr.Dataset) -> Estimate:
    """Exponent in D of the sum of alpha^p until the loss is 0.05, over the printed form."""

    def printed(trial) -> float:
        network, rate = trial.network, float(trial.descent.learning_rate)
        D, C, _ = trial.data.facts
        start, beta = float(network.threshold), float(network.diagonal)
        return theory.alignment_power_sum(D, C, network.degree, rate, _logit_rate(trial), start, beta)

    return exponent((r.alignment_power / over_cells(r, printed)).where(r.event3 >= 0), "patches")


def same_mass(r: xr.Dataset) -> Estimate:
    """Exponent in D of `D (C-1) Gamma` at the time when the loss is 0.05."""
    mass = _numbers(r).mass
    return exponent(_first(mass.where(r.step >= _reached(r, "event3"))), "patches")


def loss_slope(r: xr.Dataset) -> Estimate:
    """Slope of log loss against log time since the loss was 0.1, while it falls from 1e-2 to 1e-3.

    A sample with an image that its attention cannot get right has a floor and no rate: where the loss ends above 1e-4,
    the seed is left out.
    """
    slopes, floors = [], 0
    for seed in r.seed.values:
        curve = r.loss_curve.sel(seed=seed).dropna("step")
        if not curve.size or curve.values[-1] > 1e-4:
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


def loss_over_margin(r: xr.Dataset) -> xr.DataArray:
    """The largest ratio of the loss to `log(1 + exp(-(alpha G)^p))` while the loss falls from 0.1 to 1e-3."""
    p = trial_at(r).network.degree  # pyright: ignore[reportAttributeAccessIssue]
    bound = theory.loss_from_margin(r.alignment_curve, r.gain_curve, p)
    window = (r.loss_curve <= 0.1) & (r.loss_curve >= 1e-3)
    return (r.loss_curve / bound).where(window).max("step")


# The linear phase and the coupling -------------------------------------------------------------------------------------


def _early_rise(r: xr.Dataset) -> xr.DataArray:
    """Growth of alpha a step where every |z| is far below the end of the linear range (at least one logged interval)."""

    def limit(trial) -> float:
        D, C, _ = trial.data.facts
        gain = theory.tied_scores(D, C, float(trial.network.diagonal)).gain
        return 0.05 * theory.linear_part_negligible_from(float(trial.network.linear), 3) / gain

    curve = r.alignment_curve
    early = (curve.mean("seed") <= over_cells(r, limit)) | (r.step <= r.step[1])
    seen = curve.where(early)
    last = r.step.where(seen.notnull()).max("step")
    return (seen.where(r.step == last).max("step") - curve.isel(step=0)) / last


def _exact_drift(trial) -> float:
    D, C, _ = trial.data.facts
    return theory.linear_drift(D, C, float(trial.network.linear), float(trial.descent.learning_rate))


def drift(r: xr.Dataset) -> Estimate:
    """Measured growth of alpha a step in the linear phase over `eta nu D C / 2`, at the largest sample."""
    return mean((_early_rise(r) / over_cells(r, _exact_drift)).isel(samples=-1))


def drift_by_diagonal(r: xr.Dataset) -> Estimate:
    """Exponent of that growth in `e^beta`, at the largest sample and the middle nu."""
    one = _early_rise(r).isel(samples=-1, linear=r.sizes["linear"] // 2)
    weights = one.assign_coords(weight=("diagonal", np.exp(one.diagonal.values))).swap_dims(diagonal="weight")
    return exponent(weights.drop_vars("diagonal"), "weight", paired=True)


def phase_end(r: xr.Dataset) -> xr.DataArray:
    """The step at which alpha reaches `nu^(1/(p-1))`."""
    return _reached(r, "linear_phase_end")


def phase_exponent(r: xr.Dataset) -> Estimate:
    return exponent(phase_end(r).isel(samples=-1).mean("diagonal"), "linear")


def phase_gain(r: xr.Dataset) -> xr.DataArray:
    """What the value vector gains off the feature until the end of the linear phase, at the smallest nu."""
    gained = (r.phase_orthogonal - r.orthogonal_curve.isel(step=0)).isel(linear=0, drop=True)
    return gained.mean("diagonal")


def phase_noise(r: xr.Dataset) -> Estimate:
    return exponent(phase_gain(r), "samples", paired=True)


def phase_logits(r: xr.Dataset) -> xr.DataArray:
    """The largest logit off the diagonal during the linear phase over the bound of Lemma E.4."""

    def bound(trial) -> float:
        network, data = trial.network, trial.data
        omega, nu, beta = float(network.init), float(network.linear), float(network.diagonal)
        return theory.logit_bound(omega, data.dimension, nu, network.degree, data.patches, beta)

    return r.phase_logit / over_cells(r, bound)


def follows(r: xr.Dataset) -> Estimate:
    """Root mean square of the relative distance of alpha G from the three numbers', at the largest sample."""
    one = r.isel(samples=-1)
    after = one.step > one.linear_phase_end + 50
    ours, theirs = one.alignment_curve * one.gain_curve, one.ideal_alignment_curve * one.ideal_gain_curve
    return mean((((ours / theirs - 1) ** 2).where(after).mean("step")) ** 0.5)


# Transfer --------------------------------------------------------------------------------------------------------------


def _with_samples(r: xr.Dataset, samples: int) -> xr.DataArray:
    """Error with this many downstream samples."""
    return r.error.where(r["size"] == samples).max("downstream")


def transfer_gap(r: xr.Dataset) -> Estimate:
    """What association gains with 16 samples over untrained attention, in units of the linear models' error."""
    error = _with_samples(r, 16) / glm_error(r)
    return difference(error.sel(learner="initial"), error.sel(learner="one-step"))


def needed(r: xr.Dataset) -> Estimate:
    """Exponent in D of the samples needed; where no size was enough, or the smallest already was, that size is a bound."""
    ends = xr.where(r.needed > 0, r.largest, r["size"].min("downstream"))
    beyond = xr.where(np.isinf(r.needed), np.sign(r.needed), 0).where(r.needed.notnull())
    values, marks = (x.max("learner") for x in (xr.where(beyond == 0, r.needed, ends), beyond))
    values, marks = (x.where(values.notnull()).dropna("patches", how="all") for x in (values, marks))
    return exponent(values, "patches", censored=marks.fillna(0) if bool((marks != 0).any()) else None)


def needed_learned(r: xr.Dataset) -> Estimate:
    """Samples needed with learned attention over those with the population's, one step on the value vector."""
    ratio = r.needed.sel(learner="one-step, learned") / r.needed.sel(learner="one-step")
    return mean(ratio)


def cosine(r: xr.Dataset) -> Estimate:
    predicted = theory.one_step_cosine(r.patches, 4, r["size"])
    return mean((r.cosine / predicted).where(r["size"] >= 8))


def sign_law(r: xr.Dataset) -> Estimate:
    """Error with association over what the sign of one scalar predicts, up to 4 samples; the error that is left at the largest
    sample, where the sign is right, counts on top."""
    error, size, largest = (r[name].max("learner") for name in ("error", "size", "largest"))
    left = error.where(size == largest).max("downstream")
    total = 0.0
    for samples in (1, 2, 3, 4):
        wrong = over_cells(
            r.isel(learner=0, drop=True),
            lambda t, n=samples: theory.sign_error(*t.data.facts, n),  # pyright: ignore[reportCallIssue]  (facts are three)
        )
        predicted = wrong * (1 - 2 * left) + left
        total = total + error.where(size == samples).max("downstream") / predicted
    return mean(total / 4)


def coupon_law(r: xr.Dataset) -> Estimate:
    """Samples needed over what coupon collecting predicts."""
    predicted = over_cells(r, lambda t: theory.coupon_samples(*t.data.facts, float(t.target_error)))  # pyright: ignore[reportCallIssue]  (facts are three)
    return mean(r.needed / predicted)


WITH = ("one-step", "one-step, learned", "descent, learned")


def _without(r: xr.Dataset) -> list[str]:
    return [name for name in r.learner.values if name not in WITH]


def learners_order(r: xr.Dataset) -> xr.DataArray:
    """Best error without association less the worst with it, 16 samples, over the linear models' error."""
    error = _with_samples(r, 16)
    worst, best = error.sel(learner=list(WITH)).max("learner"), error.sel(learner=_without(r)).min("learner")
    return (best - worst) / glm_error(r).isel(learner=0)


def as_one_step(r: xr.Dataset, learner: str) -> Estimate:
    error = _with_samples(r, 64)
    return difference(error.sel(learner=learner), error.sel(learner="one-step"))


def unseen_groups(r: xr.Dataset) -> Estimate:
    """The error over the floor, for the learner without association and the size (4 or 16) where it is smallest."""
    one = r.sel(learner=_without(r))
    ratio = one.error / theory.unassociated_error_floor(*facts(r), one["size"])
    few = [arms(ratio.where(one["size"] == size).max("downstream"), "learner") for size in (4, 16)]
    return smallest([*few[0], *few[1]])


# Sizes -----------------------------------------------------------------------------------------------------------------


def degree_helps(r: xr.Dataset) -> Estimate:
    return difference(r.test_error.sel(variation="base"), r.test_error.sel(variation="p=5"))


def error_floor(r: xr.Dataset) -> Estimate:
    noise = over_cells(r, lambda t: theory.label_noise(*t.data.facts))
    return mean((r.test_error / noise).sel(variation="p=7"))
