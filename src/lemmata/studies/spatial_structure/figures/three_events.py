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
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.times import first_value, settling_time
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.figures.common import (
    EVENTS,
    HALF_LINEAR,
    ONE_RATE,
    always,
    at_risk,
    cross_growth,
    degree,
    glm_error,
    labels,
    linear_error,
    over_glm,
    population_flow,
    reached,
    scores,
    second_event,
    seeds,
    with_second_event,
)
from lemmata.studies.spatial_structure.figures.events import (
    CROSS,
    IN_ORDER,
    SAME,
    SIGNAL,
    draw,
    events_apart,
    falling,
    run,
    score_of,
)
from lemmata.studies.spatial_structure.theory import population
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    """At 512 patches the conditions leave 5.3 <= beta <= 6.2."""
    base = population_flow(512, 5.8, draws=3000)
    if scale == "smoke":
        base = population_flow(256, 5.4, logs=121, draws=200, test_draws=500)
    betas = by_scale(scale, (5.4,), (5.4, 5.8, 6.2), (5.4, 5.6, 5.8, 6.0, 6.2))
    return Sweep(base, (axis("network.diagonal", betas),), seeds(scale, 2, 8, 10))


def plateau(r):
    """Error over the linear models' between the first two events."""
    between = (r.step > 1.5 * reached(r, "event1")) & (r.step < second_event(r))
    return mean(r.test_error_curve.where(between).mean("step") / glm_error(r))


def by_weight(values: xr.DataArray) -> xr.DataArray:
    """The values against `e^beta` instead of beta."""
    weights = values.assign_coords(weight=("diagonal", np.exp(values.diagonal.values)))
    return weights.swap_dims(diagonal="weight").drop_vars("diagonal")


def noise_share(r):
    """The exponent in `e^beta` of the pull of the rest of the image over that of the signal group, at the start."""
    start = r.isel(step=0, drop=True)
    return exponent(by_weight(start.noise_drive_curve / start.signal_drive_curve), "weight", paired=True)


def event2_by_diagonal(r):
    """The exponent in `e^beta` of the time from T0 until gamma is 1."""
    return exponent(by_weight(reached(r, "same_unit") - reached(r, "event1")), "weight", paired=True)


def alignment_scale(trial) -> float:
    """The alpha of Lemma D.1 at the start, by its leading scale `C (alpha G)^p = 1`."""
    (D, C, _), beta = trial.data.facts, float(trial.network.diagonal)
    return theory.event1_alignment_scale(C, trial.network.degree, theory.tied_scores(D, C, beta).gain)


def alignment_stays(r):
    """The lowest alpha after the first event, over the scale at which the sigmoid starts to move."""
    late = r.alignment_curve.where(r.step >= reached(r, "event1"))
    return late.min("step") / over_cells(r, alignment_scale)


def cross_scores(r):
    """`D Xi` where it is furthest from 1, while the risk is not o(1)."""
    patches = over_cells(r, lambda t: t.data.patches)
    return furthest((patches * r.cross_score_curve).where(at_risk(r)))


def denominators(r):
    """The denominator of the scores over D, `e^rho / (D Xi)`, where it is furthest from 1, while the risk is not o(1)."""
    patches = over_cells(r, lambda t: t.data.patches)
    whole = xr.ufuncs.exp(r.cross_curve) / (patches * r.cross_score_curve)
    return furthest(whole.where(at_risk(r)))


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


def same_growth(r):
    """How far the pull on a same-group logit over `C alpha^p Gamma G^(p-1) E sg` varies along a run after the first event."""
    law = theory.same_growth_printed(group_size(r), degree(r), r.alignment_curve, scores(r), r.slack_curve)
    ratio = (r.same_pull_curve / law).where(at_risk(r) & (r.step >= reached(r, "event1")))
    return ratio.max("step") / ratio.min("step")


LATE = 500


def noisy(power: float):
    """A pull of the rest of the image at the start that is a power of e^beta, and the signal's 3.5 SIGNAL."""
    return lambda t, step: np.where(step > 1e-3, 1.5, np.exp(power * (t.network.diagonal - 5.8))) * SIGNAL


def scaled(share: float):
    """An alignment that is a multiple of the scale of Lemma D.1."""
    return lambda t, step: share * alignment_scale(t) * np.ones_like(step)


THETA = "Theta hides a constant: a factor 4 either way along the whole trajectory"
FACTOR = "a constant is hidden: a factor 4"

three_events = Figure(
    "three-events", "Population descent as three numbers: value, attention, margin",
    "D = d = 512, C = 4, q = 1/32, p = 3, nu = 1e-8, beta 5.4 to 6.2: inside Theorem 4.1. " + EVENTS + ONE_RATE,
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
            "noise-vanishes", "In the first event the pull of the rest of the image on alpha vanishes beside the signal's as the "
            "diagonal grows: it falls as a power of e^beta",
            proof("Lemma D.6, which prints zero"),
            number=noise_share,
            holds=at_most(-0.5, because="its leading term falls as e^-beta; D is finite, so that half of the power is asked "
                                        "for"),
            conditions=population,
            refuted_by=run(noise_drive_curve=noisy(-0.3)), upheld_by=run(noise_drive_curve=noisy(-0.7)),
        ),
        Claim(
            "signal-drive", "The signal part of the pull on alpha is of order C G^p alpha^(p-1) until the risk is o(1)",
            proof("Lemma D.4"),
            number=signal_drive, holds=every_run(between(0.25, 4.0, because=THETA)), conditions=population,
            refuted_by=run(signal_drive_curve=always(8 * SIGNAL)),
        ),
        Claim(
            "gamma-growth", "gamma grows as alpha^p Gamma G^(p-1) along the run, with one constant until the risk is o(1)",
            proof("Lemma G.1, Corollary G.1"),
            number=same_growth,
            holds=every_run(at_most(2.0, because="the constant of Theta may vary by a factor 2 along a run, from the first event "
                                                 "on; with the factor E sg of display (178)")),
            conditions=population,
            refuted_by=run(same_pull_curve=lambda t, step: SAME * score_of(step) * np.where(step > LATE, 3.0, 1.0)),
            upheld_by=run(same_pull_curve=lambda t, step: SAME * score_of(step) * np.where(step > LATE, 1.6, 1.0)),
        ),
        Claim(
            "rho-growth", "rho moves by at most C^2 alpha (alpha G)^(p-1) Xi lambda0 / D + alpha (alpha D k Xi)^(p-1) Xi k a "
            "step, k = q D log d", proof("Lemma G.2"),
            number=lambda r: cross_growth(r, theory.cross_growth_bound),
            holds=every_run(at_most(4.0, because=FACTOR)), conditions=population,
            refuted_by=run(cross_pull_curve=always(8 * CROSS)),
        ),
        Claim(
            "cross-score", "Xi = Theta(1/D) until the risk is o(1)", proof("Appendix B, Induction hypothesis B.1"),
            number=cross_scores, holds=every_run(between(0.25, 4.0, because=THETA)), conditions=population,
            refuted_by=run(cross_score_curve=lambda t, step: 8 / t.data.patches),
            upheld_by=run(cross_score_curve=lambda t, step: 3.5 / t.data.patches),
        ),
        Claim(
            "denominator", "e^beta + (C-1) e^gamma + (D-C) e^rho = Theta(D) until the risk is o(1)",
            proof("Appendix B, Induction hypothesis B.1, with the denominator in place of the sum of scores, which is 1"),
            number=denominators, holds=every_run(between(0.25, 4.0, because=THETA)), conditions=population,
            refuted_by=run(cross_score_curve=lambda t, step: 0.125 / t.data.patches),
            upheld_by=run(cross_score_curve=lambda t, step: 0.28 / t.data.patches),
        ),
        Claim(
            "event2-diagonal", "The second event lasts a time of order e^-beta", proof("Lemma D.8"),
            number=event2_by_diagonal,
            holds=about(-1.0, -1.2, -0.8, because="a fifth for the grid of three diagonals"), conditions=population,
            refuted_by=run(same_unit=lambda t: 100 + 1e6 * np.exp(-0.6 * t.network.diagonal)),
            upheld_by=run(same_unit=lambda t: 100 + 1e6 * np.exp(-t.network.diagonal)),
        ),
        Claim(
            "alignment-stays", "After the first event alpha never falls below a constant times the scale at which the sigmoid "
            "starts to move",
            proof("Lemma D.9, with the scale of Lemma D.1"),
            number=alignment_stays,
            holds=every_run(at_least(0.25, because="orders only: a quarter of C^(-1/p) / G at the start")),
            conditions=population,
            refuted_by=run(alignment_curve=scaled(0.2)), upheld_by=run(alignment_curve=scaled(0.4)),
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
            "alignment-grows", "After the second event alpha does not fall until the risk is o(1)",
            proof("Lemma D.11"),
            number=lambda r: worst_fall(r, r.alignment_curve),
            holds=every_run(at_least(-0.01, because="a hundredth for 3000 draws in place of the expectation; until the loss is "
                                                    "0.01")),
            conditions=population,
            refuted_by=run(alignment_curve=falling(0.025)),
        ),
        Claim(
            "margin-grows", "After the second event alpha G does not fall until the risk is o(1), whatever the diagonal",
            proof("Lemma D.13, proof"),
            number=lambda r: worst_fall(r, r.alignment_curve * r.gain_curve),
            holds=every_run(at_least(-0.01, because="a hundredth for 3000 draws in place of the expectation; until the loss is "
                                                    "0.01")),
            conditions=population,
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
