"""The second event against the number of patches: how long it lasts, and what it takes (Lemmas D.8, D.16, 4.3)."""

from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import DOTS, law, line, slope
from lemmata.draw.palette import BLUE, GREEN
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Made, about, at_most, made, ours, proof, theorem
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.times import first_value
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.figures.common import (
    EVENTS,
    FAST,
    always,
    changed,
    cross_growth,
    idealised,
    labels,
    logit_rate,
    reached,
    same_mass,
    seeds,
    suiting,
)
from lemmata.studies.spatial_structure.theory import population
from lemmata.studies.spatial_structure.trials import IdealisedDescent
from lemmata.sweep import Axis, Sweep

# What is run -----------------------------------------------------------------------------------------------------------


def sweep(scale: Scale) -> Sweep:
    """D grows with q D, C and beta fixed: the scaling of Assumption 2."""
    steps, growth = by_scale(scale, (6000, 1e-3), (10_000, 1e-4), (30_000, 3e-5))

    def at_patches(trial: IdealisedDescent, patches: int) -> IdealisedDescent:
        return suiting(changed(trial, data__patches=patches, data__spurious_rate=16 / patches), growth)

    base = idealised(Structured(patches=64), 5.0, growth, steps=steps, logs=301)
    base = changed(base, test_draws=100, draws=by_scale(scale, 200, 500, 1000))
    sizes = by_scale(
        scale, (64, 256), (64, 128, 256, 512, 1024, 2048), (64, 128, 256, 512, 1024, 2048, 4096, 8192)
    )
    return Sweep(base, (Axis("patches", sizes, at_patches),), seeds(scale, 2, 6, 10))


# What is measured ------------------------------------------------------------------------------------------------------


def beyond_diagonal(r):
    """Cells with `D >= e^beta`: the denominator of the softmax is of order D (Induction Hypothesis B.1)."""
    return over_cells(r, lambda t: t.data.patches / np.exp(t.network.diagonal)) >= 1


def duration(r):
    """Steps from T0 until gamma is 1, times the step size of the logits."""
    return (reached(r, "same_unit") - reached(r, "event1")) * over_cells(r, logit_rate)


def derived_duration(trial: Any) -> float:
    """The time that the second event takes with alpha at its optimum and a step size of 1."""
    D, C, q = trial.data.facts
    return theory.event2_duration(D, C, q, trial.network.degree, float(trial.network.diagonal), 1.0)


def alignment_sum(r):
    """The exponent in D of the sum of alpha^p until the loss is 0.05, over the printed form."""

    def printed(trial) -> float:
        network, rate = trial.network, float(trial.descent.learning_rate)
        D, C, _ = trial.data.facts
        start, beta = float(network.threshold), float(network.diagonal)
        return theory.alignment_power_sum(D, C, network.degree, rate, logit_rate(trial), start, beta)

    return exponent((r.alignment_power / over_cells(r, printed)).where(r.event3 >= 0), "patches")


def mass_at_the_end(r):
    """The exponent in D of `D (C-1) Gamma` at the time when the loss is 0.05."""
    return exponent(first_value(same_mass(r).where(r.step >= reached(r, "event3"))), "patches")


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The second event against the number of patches: how long it lasts, and what it takes."""
    figure, panels = canvas(3, width=4.2)
    places = results.patches
    found = line(panels[0], duration(results), "patches", BLUE, "measured", "o")
    derived = over_cells(results, derived_duration)
    law(panels[0], places, derived, r"$\alpha$ at its optimum (derived)", GREEN, "-")
    law(panels[0], places, np.ones(len(places)), "printed: no D", through=found.middle, at=0)
    power = results.alignment_power * over_cells(results, logit_rate)
    found = line(panels[1], power, "patches", BLUE, "measured", "o")
    slope(panels[1], found, 1, "printed: slope 1", at=-1)
    mass = same_mass(results).where(results.loss_curve >= 0.05).max("step")
    line(panels[2], mass, "patches", BLUE, "measured", "o")
    names = (
        r"$\eta_A (t_{\gamma = 1} - T_0)$",
        r"$\eta_A \sum \alpha^p$ until the loss is 0.05",
        r"largest $D (C-1) \Gamma$ until then",
    )
    for axes, name in zip(panels, names, strict=True):
        panel(axes, "patches D", name, log="xy", ticks=places)
    return figure, f"Population descent, q = 16/D, C = 4. {DOTS}"


# What it can refute ----------------------------------------------------------------------------------------------------


def lasts(time) -> Made:
    """A second event of this length, times the step size of the logits."""
    return made(event1=always(100), same_unit=lambda t: 100 + time(t.data.patches) / logit_rate(t))


def pulled(power: float) -> Made:
    """Cross-group pulls that go as a power of D, with scores so small that both bounds are alpha^p / D."""
    return made(
        cross_pull_curve=lambda t: 1e-6 * t.data.patches**power, alignment_curve=always(0.01), gain_curve=always(1),
        same_score_curve=lambda t: 0.5 / t.data.patches, cross_score_curve=lambda t: 0.5 / t.data.patches,
        loss_curve=always(0.3),
    )  # fmt: skip


def summed(power: float) -> Made:
    """The first term of Lemma D.16, by far the larger one here (alpha0^2 = nu), times a power of D."""

    def total(t) -> float:
        D, rate = t.data.patches, t.descent.learning_rate
        return D**power / (rate * 4 * t.network.linear * D**0.03 * np.exp(t.network.diagonal))

    return made(alignment_power=total, event3=always(5000))


def massed(power: float) -> Made:
    """D (C-1) Gamma as a power of D."""
    return made(same_score_curve=lambda t: t.data.patches ** (power - 1), event3=always(5000))


POLYLOG = "the polylogarithm hides powers of q D, which the grid keeps fixed; a tenth for the grid"

patches = Figure(
    "patches", "The second event and what it takes, against the number of patches",
    "q = 16 / D, C = 4, p = 3, nu = 1e-8, beta = 5. The second event is timed until gamma is 1. " + EVENTS + FAST,
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "event2-printed", "The second event lasts lambda0^p / (eta e^beta) steps, which does not grow with D",
            proof("Lemma D.8"),
            number=lambda r: exponent(duration(r), "patches"),
            holds=about(0.0, -0.1, 0.1, because="lambda0 = D^0.01 would add 0.03 at p = 3"), conditions=population,
            refuted_by=lasts(lambda D: 1e4 * D**0.3), upheld_by=lasts(lambda D: 1e4 * D**0.05),
        ),
        Claim(
            "event2-derived", "The second event lasts as long as gamma takes to reach 1 with alpha at its optimum",
            ours("Lemma D.8, mended"),
            number=lambda r: mean(duration(r) / over_cells(r, derived_duration)),
            holds=about(1.0, 0.85, 1.15, because="exact while logits are slow beside the value vector; draws leave a few per "
                                                 "cent"),
            conditions=population,
            refuted_by=lasts(lambda D: 10_000 * (D / 64) ** 0.93), upheld_by=lasts(lambda D: 7600 * (D / 64) ** 0.93),
        ),
        Claim(
            "rho-growth-main", "rho moves by at most polylog(d) alpha^p (1 + Gamma G^(p-1)) / D a step", theorem("Lemma 4.3"),
            number=lambda r: exponent(cross_growth(r, theory.cross_growth_lemma43), "patches"),
            holds=at_most(0.1, because=POLYLOG), cells=beyond_diagonal, conditions=population,
            refuted_by=pulled(-0.7), upheld_by=pulled(-0.95),
        ),
        Claim(
            "rho-growth-corollary", "rho moves by at most polylog(d) alpha^p (1 + lambda0 Xi G^(p-1)) / D a step",
            proof("Corollary G.2"),
            number=lambda r: exponent(cross_growth(r, theory.cross_growth_corollary), "patches"),
            holds=at_most(0.1, because=POLYLOG), cells=beyond_diagonal, conditions=population,
            refuted_by=pulled(-0.7), upheld_by=pulled(-0.95),
        ),
        Claim(
            "alignment-sum", "The sum of alpha^p over a run is of the order of its two printed terms, of which the second "
            "grows as D",
            proof("Lemma D.16"),
            number=alignment_sum,
            holds=about(0.0, -0.2, 0.2, because="a fifth of a power of D over the grid; where e^beta <= D, as the proof has "
                                                "it"),
            cells=beyond_diagonal, conditions=population,
            refuted_by=summed(0.5), upheld_by=summed(0.1),
        ),
        Claim(
            "same-score-cap", "D (C-1) Gamma stays below a constant times lambda0 = D^0.01 until the loss vanishes",
            proof("Appendix B, Induction hypothesis B.1"),
            number=mass_at_the_end,
            holds=at_most(0.1, because="a tenth of a power of D is far above 0.01"), cells=beyond_diagonal,
            conditions=population,
            refuted_by=massed(0.3), upheld_by=massed(0.05),
        ),
    ],
)  # fmt: skip
