"""Theorems 3.1 and 3.2: linear models fail, and attention that avoids every group generalises."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import DOTS, law, lines, reference
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import Claim, Figure, about, at_least, at_most, every_run, made, ours, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.simple import mean
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.figures.common import (
    LABEL_NOISE,
    always,
    changed,
    facts,
    labels,
    seeds,
)
from lemmata.studies.spatial_structure.theory import dominated, outnumbered
from lemmata.studies.spatial_structure.trials import HandBuilt, LinearModel
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put


def at_dominance(trial: LinearModel, ratio: float) -> LinearModel:
    data = trial.data
    return put(trial, "data.spurious_rate", theory.spurious_rate_for(ratio, data.patches, data.group_size))


def over_dominance(scale: Scale) -> Sweep:
    trial = LinearModel(Structured(patches=144, dimension=4), samples=6000, test_samples=10_000)
    trial = by_scale(
        scale,
        LinearModel(Structured(patches=64, dimension=2), samples=1500, test_samples=2000),
        trial,
        changed(trial, samples=40_000, test_samples=40_000),
    )
    ratios = by_scale(
        scale, (0.756, 2.0), (0.3, 0.756, 1.5, 3.0, 6.0), (0.3, 0.5, 0.756, 1.0, 1.5, 2.2, 3.0, 4.5, 6.0)
    )
    models = axis("inputs", ("patches", "coefficients", "total"))
    return Sweep(trial, (Axis("dominance", ratios, at_dominance), models), seeds(scale, 2, 4, 10))


def over_strength(scale: Scale) -> Sweep:
    strengths = by_scale(scale, (2.0, 8.0), (1.0, 2.0, 4.0, 8.0, 12.0), tuple(np.linspace(1, 12, 12)))
    axes = (
        axis("solution", ("shifted", "associating", "uniform")),
        axis("strength", strengths),
        axis("degree", by_scale(scale, (3,), (3, 5, 7), (3, 5, 7))),
    )
    return Sweep(HandBuilt(test_samples=by_scale(scale, 4000, 20_000, 20_000)), axes, seeds(scale, 2, 4, 10))


def over_vote(r):
    """The error of the regression on coefficients over that of the equal-weight vote."""
    one = chosen(r, inputs="coefficients")
    return mean(one.test_error / one.predicted_error)


@picture
def draw_linear(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    lines(axes, results.test_error, "dominance", "inputs", "fit on {}", style="o", spread="quartiles")
    predicted = results.predicted_error.median(("seed", "inputs"))
    law(axes, results.dominance, predicted, "equal-weight vote", style="-")
    reference(axes, y=theory.GLM_FLOOR, label="1/8")
    reference(axes, x=0.756, label="edge of the regime", style="-")
    xlabel = "dominance of spurious patches $q(D - C)/C^2$"
    panel(axes, xlabel, "test error", log="x", ticks=results.dominance, ylim=(0, 0.45))
    return figure, "Linear models; points: median over seeds, bars: quartiles."


@picture
def draw_hand_built(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(2)
    for style, degree in zip(("o-", "s--", "^:"), results.degree.values, strict=False):
        for axes, values in zip(panels, (results.test_error, results.overlap), strict=True):
            lines(axes, values.sel(degree=degree), "strength", "solution", f"{{}}, p = {degree}", style=style)
    reference(panels[0], y=theory.label_noise(*facts(results)), label="label noise")
    xlabel, overlap = "strength of the logits", "share of the top C inside the group"
    panel(panels[0], xlabel, "test error", log="y", keyed=False)
    panel(panels[1], xlabel, overlap, keyed=False, ylim=(-0.05, 1.05))
    shared_key(figure, panels)
    return figure, f"Hand-built attention with v = w*. {DOTS}"


glm_floor = Figure(
    "glm-floor", "Error of linear models against the dominance of spurious patches",
    "Logistic regression with a ridge of 1e-3, D = 144, C = 4.", over_dominance, draw_linear, labels=labels,
    upheld_by=made(test_error=always(0.2), predicted_error=always(0.2)),
    claims=[
        Claim(
            "linear-models-fail", "Where spurious patches dominate, every generalised linear model errs at least 1/8",
            theorem("Theorem 3.1"), headline=True,
            number=lambda r: r.test_error,
            holds=every_run(at_least(0.125, because="the bound itself, where q(D-C) >= C^2; test sets of 10 000 leave 0.004")),
            cells=lambda r: r.dominance >= 1, conditions=outnumbered,
            refuted_by=made(test_error=always(0.1)),
        ),
        Claim(
            "linear-error-law", "The error of linear models is that of the equal-weight vote, Phi(-C / sqrt(q (D - C)))",
            ours("Theorem 3.1, README"),
            number=over_vote,
            holds=about(1.0, 0.9, 1.1, because="logistic regression on thousands of samples errs a few per cent more than the "
                                               "vote"),
            conditions=dominated,
            refuted_by=made(test_error=always(0.13), predicted_error=always(0.1)),
        ),
    ],
)  # fmt: skip

without_association = Figure(
    "without-association", "Attention built to avoid the groups generalises", "D = 64, C = 4, q = 0.25, v = w*.",
    over_strength, draw_hand_built, labels=labels,
    claims=[
        Claim(
            "generalises-without", "There is attention whose C largest logits avoid the group of every row, and which errs no "
            "more than f* itself", theorem("Theorem 3.2"), headline=True,
            number=lambda r: mean(r.test_error - over_cells(r, lambda t: theory.label_noise(*t.data.facts))),
            holds=at_most(0.003, because="the labelling function errs that often itself; 0.003 for ties at finite strength"),
            cells=lambda r: (r.solution == "shifted") & (r.strength >= 4), conditions=dominated,
            refuted_by=made(test_error=always(LABEL_NOISE + 0.006)),
            upheld_by=made(test_error=always(LABEL_NOISE + 0.002)),
        ),
    ],
)  # fmt: skip
