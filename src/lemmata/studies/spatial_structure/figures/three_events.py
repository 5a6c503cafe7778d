"""Population descent as three numbers: what the lemmas of Appendices D and G say along its three events."""

import numpy as np
import xarray as xr

from lemmata.figure import (
    Claim,
    Figure,
    about,
    at_least,
    at_most,
    between,
    every_run,
    ours,
    positive,
    proof,
    theorem,
)
from lemmata.measure.simple import mean
from lemmata.measure.times import first_value, settling_time
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.figures.common import (
    EVENTS,
    FAST,
    HALF_LINEAR,
    always,
    at_risk,
    changed,
    cross_growth,
    degree,
    glm_error,
    idealised,
    labels,
    linear_error,
    over_glm,
    reached,
    same_mass,
    scores,
    second_event,
    seeds,
    suiting,
    with_second_event,
)
from lemmata.studies.spatial_structure.figures.events import (
    CROSS,
    IN_ORDER,
    OUTPUT,
    SAME,
    SIGNAL,
    draw,
    events_apart,
    falling,
    run,
    score_of,
)
from lemmata.studies.spatial_structure.theory import population
from lemmata.studies.spatial_structure.trials import IdealisedDescent
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put


def sweep(scale: Scale) -> Sweep:
    data = Structured(patches=256, spurious_rate=16 / 256)
    steps, growth = by_scale(scale, (20_000, 3e-4), (60_000, 1e-5), (60_000, 1e-5))
    base = idealised(data, 6.0, growth, steps=steps, logs=601)
    if scale == "smoke":
        base = changed(base, descent__logs=121, draws=200, test_draws=500)

    def at_diagonal(trial: IdealisedDescent, beta: float) -> IdealisedDescent:
        return suiting(put(trial, "network.diagonal", beta), growth)

    betas = by_scale(scale, (6.0,), (5.0, 6.0, 7.0), (3.0, 4.0, 5.0, 6.0, 7.0))
    return Sweep(base, (Axis("diagonal", betas, at_diagonal),), seeds(scale, 2, 8, 10))


def diagonal_dominates(r):
    """Cells that meet the condition of Lemma G.3, under which Lemma D.11 is stated."""

    def margin(trial) -> float:
        D, _, q = trial.data.facts
        return theory.diagonal_margin(D, trial.data.dimension, q, float(trial.network.diagonal))

    return over_cells(r, margin) >= 1


def plateau(r):
    """Error over the linear models' between the first two events."""
    between = (r.step > 1.5 * reached(r, "event1")) & (r.step < second_event(r))
    return mean(r.test_error_curve.where(between).mean("step") / glm_error(r))


def noise_share(r):
    """The pull of the rest of the image over that of the signal group, at the start."""
    start = r.isel(step=0)
    return mean(start.noise_drive_curve / start.signal_drive_curve)


def alignment_stays(r):
    """The lowest alpha after the first event, over alpha at its end."""
    late = r.alignment_curve.where(r.step >= reached(r, "event1"))
    return late.min("step") / first_value(late)


def acceleration(r):
    """How much more log Gamma rises in the second half of the time from T0 until gamma is 1 than in the first half, over the
    whole rise."""
    first, second = reached(r, "event1"), reached(r, "same_unit")
    rises = []
    for low, high in ((0.0, 0.5), (0.5, 1.0)):
        inside = (r.step >= first + low * (second - first)) & (r.step <= first + high * (second - first))
        part = xr.ufuncs.log(r.same_score_curve).where(inside)
        rises.append(part.max("step") - part.min("step"))
    return mean((rises[1] - rises[0]) / (rises[1] + rises[0]))


def signal_over_noise(r):
    """The signal's pull on alpha at T1 over the largest that the rest ever has."""
    at_end = first_value(r.signal_drive_curve.where(r.step >= second_event(r)))
    return at_end / abs(r.noise_drive_curve).max("step")


def worst_fall(r, curve: xr.DataArray):
    """The worst fall of a curve below its highest value so far, as a share of that value, from the second event until the loss
    is 0.01."""
    end = settling_time(r.loss_curve, 0.01, "below").fillna(np.inf)
    late = curve.where((r.step >= second_event(r)) & (r.step <= end))
    highest = np.fmax.accumulate(late.values, axis=late.get_axis_num("step"))
    return (late / highest - 1).min("step")


def furthest(ratio: xr.DataArray):
    """The value of a positive curve that is furthest from 1, by its logarithm."""
    low, high = ratio.min("step"), ratio.max("step")
    return xr.where(high * low > 1, high, low)


def group_size(r):
    return over_cells(r, lambda t: t.data.group_size)


def signal_drive(r):
    """The signal part of the pull on alpha over `p C G^p alpha^(p-1) E sg`, where it is furthest from 1."""
    law = theory.signal_drive(group_size(r), degree(r), r.gain_curve, r.alignment_curve, r.slack_curve)
    return furthest((r.signal_drive_curve / law).where(at_risk(r)))


def output_over_bound(r):
    """The largest output over the bound of Lemma D.3, `lambda0` being the largest `D (C-1) Gamma` of the run."""
    bound = theory.output_bound(group_size(r), degree(r), r.alignment_curve, same_mass(r).max("step"))
    return (r.largest_output_curve / bound).max("step")


def same_growth(r):
    """The pull on a same-group logit over `C alpha^p Gamma G^(p-1) E sg` after the first event, where furthest from 1."""
    law = theory.same_growth_printed(group_size(r), degree(r), r.alignment_curve, scores(r), r.slack_curve)
    return furthest((r.same_pull_curve / law).where(at_risk(r) & (r.step >= reached(r, "event1"))))


THETA = "Theta hides a constant: a factor 4 either way along the whole trajectory"
FACTOR = "a constant is hidden: a factor 4"
DRAWS = "a hundredth for the last digits of the draws"

three_events = Figure(
    "three-events", "Population descent as three numbers: value, attention, margin",
    "D = 256, C = 4, q = 1/16, p = 3, nu = 1e-8, beta 5 to 7, where the diagonal dominates. " + EVENTS + FAST,
    sweep, draw, labels=labels, derived=with_second_event, upheld_by=run(),
    claims=[
        Claim(
            "events-in-order", "The three events come in order in every run: T0 < T1 < T2, T1 being when gamma exceeds every "
            "|rho|",
            proof("Section 4.1"), headline=True,
            number=events_apart, holds=IN_ORDER, conditions=population,
            refuted_by=run(event1=always(500)),
        ),
        Claim(
            "gamma-above-rho", "Same-group logits exceed cross-group ones at every step, so that the groups are associated "
            "throughout",
            theorem("Theorem 4.1 (1), Lemma 4.3"), headline=True,
            number=lambda r: r.cross_lead,
            holds=every_run(at_most(0.0, because="an exact statement under the population risk")), conditions=population,
            refuted_by=run(cross_lead=always(0.1)),
        ),
        Claim(
            "rho-barely-moves", "Cross-group logits move much less than same-group ones: |rho| is below a tenth of gamma",
            theorem("Lemma 4.3"),
            number=lambda r: mean(r.largest_cross / r.same_curve.max("step")),
            holds=at_most(0.1, because="orders only: a tenth is far above 1/D times constants"), conditions=population,
            refuted_by=run(largest_cross=always(0.5)),
        ),
        Claim(
            "plateau", "Between the first two events the model is a generalised linear one: its error is that of linear models",
            proof("Section 4.1, Event I"),
            number=plateau,
            holds=about(1.0, 0.75, 1.25, because="ties of the vote may be broken either way, which is 0.80 to 1.20 here"),
            conditions=population,
            refuted_by=run(test_error_curve=lambda t: 0.5 * linear_error(t)),
        ),
        Claim(
            "noise-cancels", "In the first event the rest of the image does not move the value vector: its pull is zero",
            proof("Lemma D.6"),
            number=noise_share,
            holds=about(0.0, -0.1, 0.1, because="a tenth of the signal's pull would still be negligible"),
            conditions=population,
            refuted_by=run(noise_drive_curve=always(0.9 * SIGNAL)),
        ),
        Claim(
            "signal-drive", "The signal part of the pull on alpha is of order C G^p alpha^(p-1) until the risk is o(1)",
            proof("Lemma D.4"),
            number=signal_drive, holds=every_run(between(0.25, 4.0, because=THETA)), conditions=population,
            refuted_by=run(signal_drive_curve=always(8 * SIGNAL)),
        ),
        Claim(
            "output-bound", "No output exceeds (C^(1+1/p) alpha lambda0)^p by more than a constant", proof("Lemma D.3"),
            number=output_over_bound,
            holds=every_run(at_most(4.0, because="a constant is hidden; lambda0 is the largest D (C-1) Gamma of the run, not "
                                                 "the paper's D^0.01")),
            conditions=population,
            refuted_by=run(largest_output_curve=always(8 * OUTPUT)),
        ),
        Claim(
            "gamma-growth", "gamma grows by Theta(C) alpha^p Gamma G^(p-1) a step until the risk is o(1)",
            proof("Lemma G.1, Corollary G.1"),
            number=same_growth,
            holds=every_run(between(0.25, 4.0, because=THETA + " from the first event on; with the factor E sg of display "
                                                               "(178)")),
            conditions=population,
            refuted_by=run(same_pull_curve=lambda t, step: 8 * SAME * score_of(step)),
        ),
        Claim(
            "rho-growth", "rho moves by at most C^2 alpha (alpha G)^(p-1) Xi lambda0 / D + alpha (alpha D k Xi)^(p-1) Xi k a "
            "step, k = q D log d", proof("Lemma G.2"),
            number=lambda r: cross_growth(r, theory.cross_growth_bound),
            holds=every_run(at_most(4.0, because=FACTOR)), conditions=population,
            refuted_by=run(cross_pull_curve=always(8 * CROSS)),
        ),
        Claim(
            "alignment-stays", "After the first event alpha never falls below a constant times its value there",
            proof("Lemma D.9"),
            number=alignment_stays,
            holds=every_run(at_least(0.3, because="orders only: a third of the value at the end of the first event")),
            conditions=population,
            refuted_by=run(alignment_curve=falling(0.85)),
        ),
        Claim(
            "same-score-accelerates", "Between the first two events log Gamma curves upwards: it rises more in the second "
            "half of the time", ours("proof of Lemma D.8"),
            number=acceleration,
            holds=positive(because="the rise of the second half exceeds that of the first, from T0 until gamma is 1"),
            conditions=population,
            refuted_by=run(same_score_curve=lambda t, step: np.exp((step / 1e5) ** 0.2)),
        ),
        Claim(
            "signal-dominates", "From the second event on the signal's pull on alpha is at least the largest that the rest of "
            "the image ever has", proof("Lemma D.8"),
            number=signal_over_noise,
            holds=every_run(at_least(1.0, because="the statement itself, at T1, where the slack that both share is largest")),
            conditions=population,
            refuted_by=run(noise_drive_curve=always(7 * SIGNAL)),
        ),
        Claim(
            "alignment-grows", "After the second event alpha does not fall until the risk is o(1), where the diagonal "
            "dominates",
            proof("Lemma D.11"),
            number=lambda r: worst_fall(r, r.alignment_curve),
            holds=every_run(at_least(-0.01, because=DRAWS + "; where the diagonal dominates, until the loss is 0.01")),
            cells=diagonal_dominates, conditions=population,
            refuted_by=run(alignment_curve=falling(0.025)),
        ),
        Claim(
            "margin-grows", "After the second event alpha G does not fall until the risk is o(1), whatever the diagonal",
            proof("Lemma D.13, proof"),
            number=lambda r: worst_fall(r, r.alignment_curve * r.gain_curve),
            holds=every_run(at_least(-0.01, because=DRAWS + "; until the loss is 0.01")), conditions=population,
            refuted_by=run(alignment_curve=falling(0.025)),
        ),
        Claim(
            "population-generalises", "Population descent ends with an error of o(1), read as at most half of the linear "
            "models'",
            theorem("Theorem 4.1 (2)"), headline=True,
            number=over_glm, holds=at_most(0.5, because=HALF_LINEAR), conditions=population,
            refuted_by=run(test_error=linear_error),
        ),
    ],
)  # fmt: skip
