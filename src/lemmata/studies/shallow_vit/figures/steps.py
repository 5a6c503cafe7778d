"""Figure 2: the steps to zero training loss over the relevant fraction, the step size, and the errors of initial model and
tokens."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import DOTS, law, line, slope
from lemmata.draw.palette import BLUE, GREEN, GREY, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Holds, about, experiment, flat, made, ours, theorem
from lemmata.measure.columns import capped, chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.line import straight_line
from lemmata.measure.trend import trend
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.shallow_vit.figures.common import (
    OPEN,
    STEPS,
    alpha,
    background_fixed,
    base,
    derived,
    few,
    labels,
    moving,
    ratio_fixed,
    seeds,
)
from lemmata.studies.shallow_vit.theory import conditions
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.sweep import Axis, Sweep, axis

# What is run -----------------------------------------------------------------------------------------------------------


def design(trial: ViTTraining, kind: str) -> Mapping[str, Any]:
    """The fractions that move with alpha_*: alpha_#, alpha_nd, or both. Applied after the axis of alpha_*."""
    relevant = trial.data.relevant_fraction
    if kind == "ratio fixed":
        return ratio_fixed(trial, relevant)
    held = {"confusion fixed": 0.06, "confusion 0.02": 0.02}
    return {"data.confusion_fraction": held[kind]} if kind in held else background_fixed(trial, relevant)


def _fractions(relevant: tuple[float, ...], kinds: tuple[str, ...]) -> tuple[Axis, Axis]:
    """alpha_* under several designs. The first axis only labels: the design sets both fractions at once."""
    return (
        Axis("relevant_fraction", relevant, moving(ratio_fixed)),
        Axis("design", kinds, moving(design)),
    )


def narrow(scale: Scale) -> Sweep:
    relevant = by_scale(
        scale,
        (0.45, 0.35),
        (0.48, 0.45, 0.42, 0.38, 0.35, 0.32),
        (0.48, 0.45, 0.42, 0.40, 0.38, 0.36, 0.34, 0.32),
    )
    trial = base(scale, (0.4, 0.1), (8, 100, 200), 1500, 100, network__key_query_error=0.4)
    return Sweep(trial, _fractions(relevant, ("background fixed", "confusion fixed")), seeds(scale, 16))


def wide(scale: Scale) -> Sweep:
    grid = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 0.8)
    trial = base(scale, (0.4, 0.1), (8, 256, 256), 3000, network__key_query_error=0.4, data__tokens=50)
    return Sweep(
        trial,
        _fractions(by_scale(scale, (0.4, 0.2), grid, grid), ("confusion 0.02", "ratio fixed")),
        seeds(scale, 8),
    )


def over_rate(scale: Scale) -> Sweep:
    rates = by_scale(scale, (0.5, 1.0), (0.1, 0.2, 0.5, 1.0, 2.0), (0.05, 0.1, 0.2, 0.5, 1.0, 2.0))
    trial = base(scale, (0.5, few(scale, 0.06)), (8, 100, 200), 4000, 100)
    return Sweep(trial, (axis("descent.learning_rate", rates),), seeds(scale, 6))


ERRORS: Mapping[str, Mapping[str, Any]] = {
    **{f"delta = {size:g}": {"network.key_query_error": size} for size in (0.05, 0.2, 0.35, 0.45)},
    **{f"sigma = {size:g}": {"network.value_error": size} for size in (0.05, 0.1, 0.18, 0.26)},
    **{f"tau = {size:g}": {"data.noise_std": size / 10**0.5} for size in (0.02, 0.04, 0.07, 0.1)},
}
"""One error of the initial model, or the token noise, at a time."""


def over_errors(scale: Scale) -> Sweep:
    trial = base(scale, (0.4, 0.1), (8, 16, 16))
    kinds = Axis("error", tuple(ERRORS), moving(lambda trial, kind: ERRORS[kind]))
    return Sweep(trial, (kinds,), seeds(scale, 16))


# What is measured ------------------------------------------------------------------------------------------------------


def steps_exponent(r: xr.Dataset, over: str, paired: bool = False) -> Estimate:
    """The exponent of the steps to zero training loss along an axis. Runs that hit the cap count as bounds."""
    return exponent(r.steps.astype(float), over, capped(r), paired=paired)


def steps_curvature(r: xr.Dataset, design: str) -> Estimate:
    """How much the slope of the steps against 1/alpha_* changes over the grid. Runs that hit the cap are left out."""
    steps = chosen(r, design=design).steps.astype(float)
    return straight_line(steps.assign_coords(inverse=1 / steps.relevant_fraction), "inverse").curvature


def steps_trend(r: xr.Dataset, error: str) -> Estimate:
    """How steadily the steps rise with one of the errors."""
    return trend(along(r.steps.astype(float), error), "size")


def along(values: xr.DataArray, error: str) -> xr.DataArray:
    """The runs of one kind of error, with its sizes."""
    kinds = [str(kind) for kind in values.error.values if str(kind).startswith(error)]
    sizes = [float(kind.partition("= ")[2]) for kind in kinds]
    return chosen(values, error=kinds).assign_coords(size=("error", sizes))


def with_majority(r: xr.Dataset) -> xr.Dataset:
    """The results with the majority of the vote, alpha_* - alpha_#."""
    return r.assign_coords(majority=over_cells(r, majority))


def majority(trial: ViTTraining) -> float:
    return trial.data.relevant_fraction - trial.data.confusion_fraction


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw_fraction(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    steps = results["steps"].assign_coords(x=1 / results["relevant_fraction"])
    for one, kind in zip(axes, results["design"].values, strict=True):
        found = line(one, steps.sel(design=kind), "x", BLUE, style="o", centre="mean")
        known = np.isfinite(found.middle)
        if known.sum() > 1:
            rise, cut = np.polyfit(found.x[known], found.middle[known], 1)
            law(one, found.x, rise * found.x + cut, f"line: {rise:.0f}$/\\alpha_*$ {cut:+.0f}", GREY)
        slope(one, found, 1, "proportional to $1/\\alpha_*$", at=None, colour=RED, style=":")
        panel(one, "$1/\\alpha_*$", STEPS, str(kind), ylim=(0, None))
    return figure, "Steps until every training sample has hinge loss zero; mean over seeds, dots: seeds."


@picture
def draw_rate(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    found = line(axes, results["steps"], "learning_rate", BLUE, "measured", "o-", "geometric")
    middle = len(found.x) // 2
    slope(axes, found, -1, "paper: $\\eta^{-1}$", at=middle, colour=GREEN)
    slope(axes, found, -0.6, "thesis: $\\eta^{-3/5}$", at=middle, colour=RED)
    panel(axes, "step size $\\eta$", STEPS, log="xy", ticks=found.x)
    return figure, "Rival exponents through the middle point. Line: geometric mean over seeds, dots: seeds."


@picture
def draw_errors(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, sharey=True)
    for one, error, label in zip(
        axes, ("delta", "sigma", "tau"), ("\\delta", "\\sigma", "\\tau"), strict=True
    ):
        line(one, along(results["steps"], error), "size", BLUE, style="o-", centre="mean")
        panel(
            one,
            f"${label}$",
            STEPS if error == "delta" else "",
            {"tau": "token noise"}.get(error, "initial error"),
        )
    return figure, f"One error at a time. {DOTS}"


# What it can refute ----------------------------------------------------------------------------------------------------


def inverse(because: str):
    """-1, within a quarter."""
    return about(-1.0, -1.25, -0.75, because=because)


def straight(
    id: str, statement: str, source, design: str, most: float, because: str, headline: bool = False
) -> Claim:
    """The steps are a straight line in 1/alpha_*: its slope changes by at most `most` from end to end."""
    return Claim(
        id, statement, source, number=lambda r: steps_curvature(r, design), holds=flat(-most, most, because=because),
        conditions=conditions,
        refuted_by=made(noise=0.05, steps=lambda t: 60 * alpha(t) ** -3.5),
        upheld_by=made(noise=0.02, steps=lambda t: 24 + 30 / alpha(t) + 0.1 * alpha(t) ** -2), headline=headline,
    )  # fmt: skip


BENT = (
    "the slope changes by less than half of its mean; on this grid a square changes it by 1.6, a root by -1"
)

fraction = Figure(
    "fig2", "Steps to zero training loss against the relevant fraction",
    "delta = 0.4. N, |S| and alpha_nd are not given: 100 tokens (quick 50), N = 200 (quick 100). Two designs: alpha_nd = "
    f"1/2 fixed as in Figure 1, and alpha_# = 0.06 fixed, where only the relevant fraction moves. {OPEN}",
    narrow, draw_fraction, labels=labels, derived=derived,
    claims=[
        straight(
            "steps-line", "With alpha_nd = 1/2 fixed, the number of steps is a straight line in 1/alpha_*",
            experiment("Figure 2", "alpha_nd, |S| and N are not given; quick scale: 50 tokens and 300 neurons"),
            "background fixed", 0.3, "on this narrow grid a square changes the slope by 0.4 of its mean", headline=True,
        ),
        Claim(
            "steps-margin", "With alpha_nd = 1/2 fixed, the number of steps is proportional to one over the majority of the "
                            "vote, "
            "alpha_* - alpha_#", ours("Figure 2, in other words"),
            number=lambda r: steps_exponent(with_majority(chosen(r, design="background fixed")), "majority"),
            holds=inverse("a quarter either way; alpha_nd is held fixed as in Figure 1"), uses=("capped",),
            refuted_by=made(noise=0.1, steps=lambda t: 40 / majority(t) ** 0.5),
            upheld_by=made(noise=0.1, steps=lambda t: 40 / majority(t)),
        ),
    ],
)  # fmt: skip

fraction_wide = Figure(
    "steps", "Steps to zero training loss over the whole range of the relevant fraction",
    "Figure 2 over the whole range of alpha_*: with alpha_# = 0.02 fixed, and with alpha_#/alpha_* = 1/5 fixed. In both the "
    "majority of the vote moves with alpha_*. With N = 256 all conditions of Theorem 1 are met from alpha_* = 0.2 up. "
    f"{OPEN}",
    wide, draw_fraction, labels=labels, derived=derived,
    claims=[
        straight("steps-fraction", "With alpha_# = 0.02 fixed, the number of steps is a straight line in 1/alpha_*",
                 theorem("Theorem 1, (11), as Figure 2 shows it"), "confusion 0.02", 0.5, BENT, headline=True),
        straight("steps-ratio", "With alpha_#/alpha_* = 1/5 fixed, the number of steps is a straight line in 1/alpha_*",
                 theorem("Theorem 1, (11), as Figure 2 shows it"), "ratio fixed", 0.5, BENT),
        Claim(
            "steps-power", "With alpha_#/alpha_* = 1/5 fixed, the number of steps is proportional to 1/alpha_*, without an offset",
            ours("Theorem 1, (11), as a law on this grid"),
            number=lambda r: steps_exponent(chosen(r, design="ratio fixed"), "relevant_fraction"),
            holds=inverse("a quarter either way; (11) holds up to constants, so that an offset does not refute it"),
            conditions=conditions, uses=("capped",),
            refuted_by=made(noise=0.1, steps=lambda t: 10 / alpha(t) ** 2),
            upheld_by=made(noise=0.1, steps=lambda t: 40 / alpha(t)),
        ),
    ],
)  # fmt: skip

rate = Figure(
    "fig2-rate", "Steps to zero training loss against the step size",
    "Not a figure of the paper: it decides between its T ~ 1/eta and the thesis's T ~ eta^-0.6. Runs of a seed share data "
    f"and initial weights over all step sizes. {OPEN}",
    over_rate, draw_rate, labels=labels, derived=derived,
    claims=[
        Claim(
            "steps-rate", "The number of steps is proportional to 1/eta, and not to the thesis's eta^(-3/5)",
            theorem("Theorem 1, (11)"), headline=True,
            number=lambda r: steps_exponent(r, "learning_rate", paired=True),
            holds=about(-1.0, -1.1, -0.9, rivals={"thesis": -0.6}, because="a tenth either way keeps the rivals apart. With "
                "eta^(-3/5) the time eta T would go to 0, where gradient flow has not moved"),
            conditions=conditions, uses=("capped",),
            refuted_by=made(noise=0.1, steps=lambda t: 80 * t.descent.learning_rate**-0.6),
            upheld_by=made(steps=lambda t: 80 / t.descent.learning_rate),
        ),
    ],
)  # fmt: skip


def rising(id: str, statement: str, where: str, error: str, size) -> Claim:
    """More of an error needs more steps. `size(trial)`: the error."""
    return Claim(
        id, statement, theorem(where), number=lambda r: steps_trend(r, error),
        holds=Holds("order", 0.2, inf, "Kendall's tau over the grid; below 0.2 there is no trend to speak of"),
        conditions=conditions, uses=("capped",),
        refuted_by=made(noise=0.2, steps=lambda t: 200 - 15 * size(t)),
        upheld_by=made(noise=0.05, steps=lambda t: 100 * np.exp(1.5 * size(t))),
    )  # fmt: skip


initial_attention = Figure(
    "initial-attention", "The errors of the initial model, and the token noise",
    f"delta, sigma and tau swept one at a time at alpha_* = 0.4, alpha_# = 0.1. {OPEN}",
    over_errors, draw_errors, labels=labels, derived=derived,
    claims=[
        rising("initial-attention-steps", "A larger initial error delta of keys and queries needs more steps", "Remark 3",
               "delta", lambda t: 4 * t.network.key_query_error),
        rising("initial-value-steps", "A larger initial error sigma of the values needs more steps", "Remark 3, (11)", "sigma",
               lambda t: t.network.value_error),
        rising("noise-steps", "More token noise tau needs more steps", "Remark 2, (11)", "tau",
               lambda t: 10**0.5 * t.data.noise_std * 3),
    ],
)  # fmt: skip
