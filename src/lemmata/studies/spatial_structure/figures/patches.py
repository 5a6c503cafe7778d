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
from lemmata.studies.spatial_structure.figures.common import (
    EVENTS,
    ONE_RATE,
    always,
    at_patches,
    at_risk,
    cross_growth,
    degree,
    labels,
    population_flow,
    reached,
    same_mass,
    seeds,
)
from lemmata.studies.spatial_structure.theory import population
from lemmata.sweep import Axis, Sweep

# What is run -----------------------------------------------------------------------------------------------------------


def sweep(scale: Scale) -> Sweep:
    """D grows with q D, C and beta fixed: the scaling of Assumption 2. At beta = 5.75 the conditions hold for 314 <= D <=
    18,000. Below 2048, polylogarithms and e^beta = 314 still bend the powers of D."""
    draws, logs = by_scale(scale, (200, 121), (500, 601), (1000, 601))
    base = population_flow(512, 5.75, draws=draws, logs=logs, test_draws=100)
    sizes = (2048, 4096, 8192, 16_384)
    sizes = by_scale(scale, (512, 1024), sizes, (512, 1024, *sizes))
    return Sweep(base, (Axis("patches", sizes, at_patches),), seeds(scale, 2, 4, 10))


# What is measured ------------------------------------------------------------------------------------------------------


def duration(r):
    """The time from T0 until gamma is 1."""
    return reached(r, "same_unit") - reached(r, "event1")


def derived_duration(trial: Any) -> float:
    """The time that the second event takes with alpha at its optimum."""
    D, C, q = trial.data.facts
    return theory.event2_duration(D, C, q, trial.network.degree, float(trial.network.diagonal), 1.0)


def alignment_sum(r):
    """The exponent in D of the integral of alpha^p until the loss is 0.05."""
    return exponent(r.alignment_power.where(r.event3 >= 0), "patches")


def mass_at_the_end(r):
    """The exponent in D of `D (C-1) Gamma` at the time when the loss is 0.05."""
    return exponent(first_value(same_mass(r).where(r.step >= reached(r, "event3"))), "patches")


def largest_output(r):
    """The exponent in D of the largest output over `(C^(1+1/p) alpha)^p` while the risk is not o(1)."""
    size = over_cells(r, lambda t: t.data.group_size)
    bound = theory.output_bound(size, degree(r), r.alignment_curve, 1.0)
    return exponent((r.largest_output_curve / bound).where(at_risk(r)).max("step"), "patches")


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
    found = line(panels[1], results.alignment_power, "patches", BLUE, "measured", "o")
    slope(panels[1], found, 1, "printed: slope 1", at=-1)
    mass = same_mass(results).where(results.loss_curve >= 0.05).max("step")
    line(panels[2], mass, "patches", BLUE, "measured", "o")
    names = (
        r"$t_{\gamma = 1} - T_0$",
        r"$\int \alpha^p$ until the loss is 0.05",
        r"largest $D (C-1) \Gamma$ until then",
    )
    for axes, name in zip(panels, names, strict=True):
        panel(axes, "patches D", name, log="xy", ticks=places)
    return figure, f"Population descent, q = 16/D, C = 4. {DOTS}"


# What it can refute ----------------------------------------------------------------------------------------------------


def lasts(time) -> Made:
    """A second event of this length."""
    return made(event1=always(100), same_unit=lambda t: 100 + time(t.data.patches))


def pulled(power: float) -> Made:
    """Cross-group pulls that go as a power of D, with scores so small that both bounds are alpha^p / D."""
    return made(
        cross_pull_curve=lambda t: 1e-6 * t.data.patches**power, alignment_curve=always(0.01), gain_curve=always(1),
        same_score_curve=lambda t: 0.5 / t.data.patches, cross_score_curve=lambda t: 0.5 / t.data.patches,
        loss_curve=always(0.3),
    )  # fmt: skip


def summed(power: float) -> Made:
    """A sum of alpha^p that goes as a power of D."""
    return made(alignment_power=lambda t: 1e-5 * t.data.patches**power, event3=always(5000))


def output(power: float) -> Made:
    """Outputs that go as a power of D, at a fixed alpha."""
    return made(
        largest_output_curve=lambda t: 0.1 * t.data.patches**power,
        alignment_curve=always(0.01),
        loss_curve=always(0.3),
    )


def massed(power: float) -> Made:
    """D (C-1) Gamma as a power of D."""
    return made(same_score_curve=lambda t: t.data.patches ** (power - 1), event3=always(5000))


POLYLOG = "the polylogarithm hides powers of q D, which the grid keeps fixed; a tenth for the grid"

patches = Figure(
    "patches", "The second event and what it takes, against the number of patches",
    "q = 16 / D, d = D, C = 4, p = 3, nu = 1e-8, beta = 5.75: inside Theorem 4.1. The second event is timed until gamma is 1. "
    + EVENTS + ONE_RATE,
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "event2-printed", "The second event lasts a time of order lambda0^p / e^beta, which does not grow with D",
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
            refuted_by=lasts(lambda D: 230 * D), upheld_by=lasts(lambda D: 178 * D),
        ),
        Claim(
            "rho-growth-main", "rho moves by at most polylog(d) alpha^p (1 + Gamma G^(p-1)) / D a step", theorem("Lemma 4.3"),
            number=lambda r: exponent(cross_growth(r, theory.cross_growth_lemma43), "patches"),
            holds=at_most(0.1, because=POLYLOG), conditions=population,
            refuted_by=pulled(-0.7), upheld_by=pulled(-0.95),
        ),
        Claim(
            "rho-growth-corollary", "rho moves by at most polylog(d) alpha^p (1 + lambda0 Xi G^(p-1)) / D a step",
            proof("Corollary G.2"),
            number=lambda r: exponent(cross_growth(r, theory.cross_growth_corollary), "patches"),
            holds=at_most(0.1, because=POLYLOG), conditions=population,
            refuted_by=pulled(-0.7), upheld_by=pulled(-0.95),
        ),
        Claim(
            "alignment-sum", "From the second event on the sum of alpha^p grows as D, as the second printed term does",
            proof("Lemma D.16"),
            number=alignment_sum,
            holds=about(1.0, 0.8, 1.2, because="a fifth of a power of D over the grid"), conditions=population,
            refuted_by=summed(0.6), upheld_by=summed(0.9),
        ),
        Claim(
            "output-bound", "The outputs are at most a constant times (C^(1+1/p) alpha lambda0)^p, lambda0 = D^0.01, until the "
            "risk is o(1)", proof("Lemma D.3"),
            number=largest_output,
            holds=at_most(0.2, because="D^0.03 at p = 3, and less than a fifth of a power of D on top"), conditions=population,
            refuted_by=output(0.5), upheld_by=output(0.1),
        ),
        Claim(
            "same-score-cap", "D (C-1) Gamma stays below a constant times lambda0 = D^0.01 until the loss vanishes",
            proof("Appendix B, Induction hypothesis B.1"),
            number=mass_at_the_end,
            holds=at_most(0.1, because="a tenth of a power of D is far above 0.01"), conditions=population,
            refuted_by=massed(0.3), upheld_by=massed(0.05),
        ),
    ],
)  # fmt: skip
