"""The lemmas of the proof on curvature: Lemmas C.4.1 and C.4.4, C.3.1 in its own ball, C.4.2 and C.4.3 around W*."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import line, reference
from lemmata.draw.palette import BLUE, CYCLE, GREEN, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import (
    Claim,
    Conditions,
    Figure,
    Holds,
    Source,
    at_least,
    between,
    every_run,
    made,
    nothing_asked,
    ours,
    proof,
)
from lemmata.scale import Scale, by_scale
from lemmata.studies.group_imbalance.data import Population
from lemmata.studies.group_imbalance.figures.common import both, labels, opposite, seeds
from lemmata.studies.group_imbalance.theory import convexity, fixed_mixture
from lemmata.studies.group_imbalance.trials import Ball, Exact, Lemma
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put

# What is run -----------------------------------------------------------------------------------------------------------


def of_pattern(trial: Lemma, pattern: str) -> Lemma:
    return put(trial, "mean", (1.0, 1.0) if pattern == "two coordinates" else (1.0, 0.0))


def of_size(trial: Lemma, size: float) -> Lemma:
    return put(trial, "mean", tuple(size * m for m in trial.mean))


def two_neurons(scale: Scale) -> Sweep:
    sizes = by_scale(scale, (1.0, 2.0), (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0), tuple(np.linspace(0, 5, 21)))
    stds = by_scale(scale, (1.0,), (0.5, 1.0, 2.0), (0.25, 0.5, 1.0, 1.5, 2.0, 4.0))
    axes = (
        Axis("pattern", ("one coordinate", "two coordinates"), of_pattern),
        Axis("size", tuple(map(float, sizes)), of_size),
        axis("std", stds),
    )
    return Sweep(Lemma(), axes, (0,))


def one_neuron(scale: Scale) -> Sweep:
    """One neuron in two dimensions, where as many samples as Lemma C.3.1 asks can be had: W* = e_1, groups N(0, sigma^2 I)."""
    population = Population(
        shifts=(0.0, 0.0), dim=2, neurons=1, teacher_columns=((1.0, 0.0),),
        samples=by_scale(scale, 20_000, 1_600_000, 1_600_000),
    )  # fmt: skip
    spreads = by_scale(scale, (1.0, 1.5), (1.2, 1.5, 1.8), (1.2, 1.4, 1.6, 1.8))
    return Sweep(Ball(population=population), (Axis("spread", spreads, both),), seeds(scale, 2, 6, 20))


def shifted(scale: Scale) -> Sweep:
    """Figure 4.4(a)'s mixture, but for its covariances, which are I."""
    trial = Exact(population=Population(shifts=(1.0, -1.0)), what="projected")
    shifts = by_scale(scale, (1.0, 2.0), (0.3, 0.6, 1.0, 1.5), (0.3, 0.6, 1.0, 1.5, 2.0, 3.0))
    return Sweep(trial, (Axis("shift", shifts, opposite),), seeds(scale, 2, 12, 40))


def around_teacher(scale: Scale) -> Sweep:
    trial = Ball(population=Population(shifts=(1.0, -1.0), samples=by_scale(scale, 2000, 10_000, 50_000)))
    spreads = by_scale(scale, (0.03, 1.0), (0.03, 0.1, 0.3, 1.0, 3.0), (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0))
    axes = (Axis("shift", (0.0, 1.0), opposite), Axis("spread", spreads, both))
    return Sweep(trial, axes, seeds(scale, 2, 8, 20))


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw_lemmas(results: xr.Dataset) -> Drawn:
    """Both sides of Lemmas C.4.1 and C.4.4: below 1 the lemma is violated."""
    figure, panels = canvas(3, width=3.9)
    shown = {
        "lemma_ratio": "Lemma C.4.1: smallest eigenvalue / rho",
        "least_over_bound": r"Lemma C.4.4: $\lambda_{min}$ / bound",
        "least_over_mended": r"Lemma C.4.4 with rho_exact",
    }
    for axes, (name, title) in zip(panels, shown.items(), strict=True):
        for style, pattern in zip(("o--", "s-"), results.pattern.values.tolist(), strict=True):
            for colour, std in zip((BLUE, RED, GREEN, ORANGE, *CYCLE), results["std"].values, strict=False):
                values = results[name].sel(pattern=pattern, std=std)
                line(axes, values, "size", colour, rf"{pattern}, $\sigma$ = {std:g}", style, spread="none")
        reference(axes, y=1.0)
        panel(axes, "mean, each coordinate", title=title, log="y", keyed=False)
    shared_key(figure, panels)
    return figure, "A ratio below 1 is a counter-example."


@picture
def draw_ball(results: xr.Dataset) -> Drawn:
    """Lemma C.3.1: the spectrum of the empirical Hessian in the ball over both of its sides."""
    figure, (left, right) = canvas(2)
    line(left, results.ball_low, "spread", BLUE, "on the sphere of radius r", "o-", spread="runs")
    line(left, results.far_low, "spread", GREEN, "at distance 0.1", "s-", spread="runs")
    reference(left, y=1.0, label="Lemma C.3.1")
    panel(left, r"$\sigma$", r"$\lambda_{min}$ / lower side", log="y", ticks=results.spread.values)
    line(right, results.ball_high, "spread", BLUE, "on the sphere of radius r", "o-", spread="runs")
    reference(right, y=1.0, label="Lemma C.3.1")
    panel(right, r"$\sigma$", r"$\lambda_{max}$ / upper side", log="y", ticks=results.spread.values)
    return figure, "Curvature around W* over the two sides of Lemma C.3.1, one neuron."


@picture
def draw_lipschitz(results: xr.Dataset) -> Drawn:
    """Lemmas C.4.2 and C.4.3: how fast Hessians change, over their bounds; above 1 the lemma is violated."""
    figure, panels = canvas(3, width=3.9)
    shown = {
        "sample_change": "Lemma C.4.2 as printed",
        "sample_change_mended": r"Lemma C.4.2 with $\|\Sigma^{1/2}\|$",
        "population_change": "Lemma C.4.3",
    }
    for axes, (name, title) in zip(panels, shown.items(), strict=True):
        for colour, shift in zip((BLUE, RED), results["shift"].values, strict=False):
            label = f"|mean| {shift:g} in each coordinate"
            line(axes, results[name].sel(shift=shift), "spread", colour, label, "o-")
        reference(axes, y=1.0)
        ylabel = "measured / bound" if axes is panels[0] else ""
        panel(axes, r"$\sigma$", ylabel, title, "xy", results.spread.values)
    return figure, "How fast Hessians change around W*, over the bounds; above 1 is a counter-example."


@picture
def draw_projection(results: xr.Dataset) -> Drawn:
    """Property 1: the rate with projected means over that with the means as they are."""
    figure, axes = canvas(1, width=5.5, height=4.0)
    line(axes, results.projected_over_rate, "shift", BLUE, "each teacher", "o", spread="runs")
    reference(axes, y=1.0, label="Property 1")
    panel(
        axes,
        "mean, each coordinate",
        r"$\lambda_{min}/\lambda_{max}$, projected / not",
        "",
        "y",
        results["shift"].values,
    )
    return figure, "What projecting the means onto the span of W* does to the rate of descent."


# What it can refute ----------------------------------------------------------------------------------------------------


def bounded(
    id: str, statement: str, source: Source, record: str, holds: Holds, conditions: Conditions = nothing_asked
) -> Claim:
    """A ratio that lies on one side of 1 in every run."""
    up, down = made({record: lambda t: 2.0}), made({record: lambda t: 0.5})
    above = holds.low > 0
    return Claim(
        id, statement, source, number=lambda r: r[record], holds=every_run(holds), conditions=conditions,
        refuted_by=down if above else up, upheld_by=up if above else down,
    )  # fmt: skip


PROOF = "C_12 = 8 sqrt 3, from the steps of its proof"

lemmas = Figure(
    "lemmas", "Both sides of Lemmas C.4.1 and C.4.4", "Two neurons, W* = sigma I, one group N(mu, I).", two_neurons,
    draw_lemmas,
    claims=[
        bounded("lemma-c41", "E[(sum_i r_i . x phi'(sigma x_i))^2] >= rho(mu, sigma) |R|_F^2 for every mu and sigma",
                proof("Lemma C.4.1"), "lemma_ratio",
                at_least(1.0 - 1e-9, because="smallest eigenvalue over rho, both by quadrature to 1e-12")),
        bounded("lemma-c44", "lambda_min of the population Hessian at W* is at least 4 G / K^2, for W* = sigma I and one group",
                proof("Lemma C.4.4, (C.178)"), "least_over_bound", at_least(1.0 - 1e-6, because="quadrature to 1e-6")),
        bounded("lemma-c44-mended", "With rho_exact in place of rho, lambda_min of the population Hessian at W* is at least "
                "4 G / K^2",
                ours("Lemma C.4.4, mended"), "least_over_mended", at_least(1.0 - 1e-6, because="quadrature to 1e-6")),
    ],
)  # fmt: skip

ball = Figure(
    "ball", "Curvature inside the ball of Lemma C.3.1", "One neuron, d = 2, W* = e_1, both groups N(0, sigma^2 I), "
    "eps_0 = 0.24: the samples of (C.82) can be had.",
    one_neuron, draw_ball, labels=labels,
    claims=[
        bounded("ball-low", "In the ball of radius r (C.81) the empirical Hessian is at least (1 - 2 eps_0) G / K^2 (constant "
                "1)",
                proof("Lemma C.3.1, (C.83)"), "ball_low",
                at_least(1.0, because="the smallest eigenvalue at random places of its sphere over the bound"), convexity),
        bounded("ball-high", "In the ball of radius r (C.81) the empirical Hessian is at most M_2 (constant 1)",
                proof("Lemma C.3.1, (C.83)"), "ball_high",
                between(0.0, 1.0, because="the largest eigenvalue at random places of its sphere over the bound"), convexity),
    ],
)  # fmt: skip

projection = Figure(
    "projection", "Means projected onto the span of W*", "d = 5, K = 3, W* Gaussian, means C and -C times the ones, covariances I; "
    "Fisher information by quadrature.",
    shifted, draw_projection, labels=labels,
    claims=[
        Claim(
            "property-1", "Projecting every mean onto the span of W* leaves the problem as it is: lambda_min / lambda_max of the "
            "Fisher information stays within 1 %", proof("Property 1"),
            number=lambda r: r.projected_over_rate,
            holds=every_run(between(0.99, 1.01, because="an equivalence has ratio 1; quadrature to 1e-6")),
            conditions=nothing_asked,
            refuted_by=made(noise=0.0, projected_over_rate=lambda t: 1.1),
            upheld_by=made(noise=0.0, projected_over_rate=lambda t: 1.0),
        ),
    ],
)  # fmt: skip

lipschitz = Figure(
    "lipschitz", "How fast Hessians change around W*", "At W*, for the radius (C.81) is below 1e-3; the population's Hessian "
    "by soft labels, between W* and the sphere of radius 0.1.",
    around_teacher, draw_lipschitz, labels=labels,
    claims=[
        bounded("lipschitz-sample", "E sup |Hessian of one sample at W - at W'| / |W - W'|_F <= C_12 d^3/2 K^5/2 "
                "sqrt(A_2 A_4), with A_p = sum_l lambda_l (|mu_l|_inf + |Sigma_l|)^p",
                proof("Lemma C.4.2"), "sample_change", between(0.0, 1.0, because=PROOF), fixed_mixture),
        bounded("lipschitz-sample-mended", "The bound of Lemma C.4.2 holds with |Sigma_l^1/2| in place of |Sigma_l|",
                ours("Lemma C.4.2, mended"), "sample_change_mended", between(0.0, 1.0, because=PROOF), fixed_mixture),
        bounded("lipschitz-population", "|Hessian of f at W - at W*| <= K^3/2 (M_4 M_8)^1/4 |W - W*|_F (constant 1)",
                proof("Lemma C.4.3"), "population_change",
                between(0.0, 1.0, because="the largest over random places at distance 0.1"), fixed_mixture),
    ],
)  # fmt: skip
