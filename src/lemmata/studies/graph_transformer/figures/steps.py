"""Figures 3.7 and B.6 and formulas (3.8) and (3.12): how many steps are needed, against gamma_d, eta, delta, sigma and xi."""

from collections.abc import Callable, Sequence
from typing import Any

import xarray as xr

from lemmata.draw.curves import DOTS, law, line, slope
from lemmata.draw.palette import BLUE, GREEN, GREY, RED, colours
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Conditions, Figure, Holds, Made, Source, about, proof, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.scale import Scale, by_scale
from lemmata.studies.graph_transformer.figures.common import (
    ANY_RATIO,
    CORE,
    EVEN,
    LEARNERS,
    SHARE,
    STEPS,
    TO_SMALL,
    kinds,
    labels,
    steps_exponent,
    steps_needed,
    steps_ratio,
    swept,
    taking,
)
from lemmata.studies.graph_transformer.theory import convolution_conditions, transformer_conditions
from lemmata.studies.graph_transformer.trials import GraphTraining
from lemmata.sweep import Axis, Sweep, axis

# What is run -----------------------------------------------------------------------------------------------------------

TIMED = {"data.labelled": 800, "descent.steps": 600, "descent.logs": 121}
PRINTED = {
    "transformer": {**LEARNERS["transformer"], "data.confusion": 0.05},
    "convolution, core": {**LEARNERS["convolution, core"], "data.confusion": 0.2},
    "transformer, core": {**LEARNERS["transformer, core"], "data.confusion": 0.2},
}


def shares(scale: Scale) -> Axis:
    values = by_scale(scale, (0.3, 0.6), (0.25, 0.3, 0.4, 0.5, 0.6), (0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7))
    return axis("data.discriminative", values)


def along(path: str, *values: Sequence[float], **changes: Any) -> Callable[[Scale], Sweep]:
    """Runs over one axis, with its values at the three scales."""
    fields = {f"descent.{name}": value for name, value in changes.items()}
    smoke, quick, paper = (tuple(one) for one in values)
    return swept(
        {**TIMED, "data.labelled": 400, **fields}, lambda s: (axis(path, by_scale(s, smoke, quick, paper)),)
    )


# What is measured ------------------------------------------------------------------------------------------------------


def of_learner(r: xr.Dataset, learner: str) -> Estimate:
    """The exponent of a learner's steps in gamma_d."""
    return steps_exponent(chosen(r, learner=learner), "discriminative")


def steps_apart(r: xr.Dataset) -> Estimate:
    """How much steeper the convolution's steps are than the transformer's on the same sets."""
    return of_learner(r, "convolution, core").minus(of_learner(r, "transformer, core"))


def in_sharpness(r: xr.Dataset) -> Estimate:
    """The exponent of the steps in 1 - delta."""
    return steps_exponent(r.assign_coords(sharpness=1 - r.query_key_error), "sharpness")


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def over_share(results: xr.Dataset) -> Drawn:
    """Figures 3.7 and B.6, in log-log."""
    figure, axes = canvas()
    found, names = steps_needed(results), results.learner.values.tolist()
    for learner, colour in zip(names, colours(names), strict=True):
        seen = line(axes, found.sel(learner=learner), "discriminative", colour, learner, "o-", "geometric")
        if learner == "convolution, core":
            middle = len(seen.x) // 2
            slope(axes, seen, -2, "(3.12): $\\gamma_d^{-2}$", at=middle, colour=RED, style="--")
            slope(axes, seen, -1, "mended: $\\gamma_d^{-1}$", at=middle, colour=GREY, style=":")
    panel(axes, SHARE, STEPS, "", "xy", ticks=results.discriminative)
    caption = "By (3.8) the transformer's steps do not depend on $\\gamma_d$. Geometric mean, dots: seeds."
    return figure, caption


@picture
def over_rate(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    found = line(axes, steps_needed(results), "learning_rate", BLUE, "measured", "o-", "geometric")
    middle = len(found.x) // 2
    slope(axes, found, -0.5, "(3.8): $\\eta^{-1/2}$", at=middle, colour=RED)
    slope(axes, found, -1, "mended: $\\eta^{-1}$", at=middle, colour=GREEN)
    panel(axes, "step size $\\eta$", STEPS, "", "xy", ticks=found.x)
    return figure, "Rival exponents through the middle. Geometric mean, dots: seeds."


def over_start(over: str, name: str, log: str = "") -> Callable[..., Any]:
    """Steps over one of the errors of the start; over delta with what (3.8) says."""

    @picture
    def draw(results: xr.Dataset) -> Drawn:
        figure, axes = canvas()
        found = line(axes, steps_needed(results), over, BLUE, "measured", "o-")
        if over == "query_key_error":
            expected = (1 - found.x) ** -0.5
            law(axes, found.x, expected, "(3.8): $(1-\\delta)^{-1/2}$, fitted", GREEN, through=found.middle)
        panel(axes, name, STEPS, "", log)
        return figure, DOTS

    return draw


# What it can refute ----------------------------------------------------------------------------------------------------


def as_power(power: float, convolution: float | None = None, middle: float = 120) -> Made:
    """Steps that go as a power of gamma_d, with a power of its own for the convolution; `middle`: steps at gamma_d = 0.4."""

    def steps(t: GraphTraining) -> float:
        own = power if convolution is None or t.network.kind != "gcn" else convolution
        return middle * (t.data.discriminative / 0.4) ** own

    return taking(steps)


def goes(
    id: str,
    statement: str,
    source: Source,
    learner: str,
    holds: Holds,
    conditions: Conditions,
    refuted: float,
    upheld: float,
    headline: bool = False,
) -> Claim:
    """A learner's steps go as a power of gamma_d. `refuted`, `upheld`: powers that refute and uphold it."""
    return Claim(
        id, statement, source, headline=headline, number=lambda r: of_learner(r, learner), holds=holds, conditions=conditions,
        refuted_by=as_power(refuted), upheld_by=as_power(upheld),
    )  # fmt: skip


FLAT = about(0.0, -0.3, 0.3, because="keeps 0 apart from -1", rivals={"attention going as gamma_d": -1.0})
SQUARE = about(-2.0, -2.5, -1.5, because="keeps -2 apart from -1", rivals={"(B.59) and (B.69)": -1.0})

shared = Figure(
    "figB-6", "Figures 3.7 and B.6: steps needed over the share of discriminative nodes", TO_SMALL,
    swept(TIMED, lambda s: (kinds("learner", PRINTED), shares(s))), over_share, labels=labels,
    claims=[
        goes(
            "transformer-steps", "The number of steps that the transformer needs does not depend on gamma_d",
            theorem("Theorem 3.4.4, (3.8), Figure B.6 (a)"), "transformer", FLAT, transformer_conditions, -0.6, -0.2, True,
        ),
        goes(
            "convolution-steps", "The number of steps that a convolution needs goes as gamma_d^-2",
            theorem("Theorem 3.4.6, (3.12), Figures 3.7 and B.6 (b)"), "convolution, core", SQUARE, convolution_conditions,
            -1.0, -2.0, True,
        ),
        Claim(
            "steps-apart", "On the same sets a convolution needs gamma_d^-2 times more steps than the transformer",
            theorem("Theorem 3.4.6"), headline=True,
            number=steps_apart, holds=about(-2.0, -2.5, -1.5, because="half a power keeps it apart from 0"),
            conditions=convolution_conditions,
            refuted_by=as_power(0.0, convolution=-1.0), upheld_by=as_power(0.0, convolution=-2.0),
        ),
    ],
)  # fmt: skip

EVENLY = "where discriminative nodes are spread evenly over the graph"

even = Figure(
    "steps-even", "The same on block graphs, both learners on the same sets", "Block graph of degree 120, eps = 0.2.",
    swept({**TIMED, **EVEN, "descent.steps": 1200, "descent.logs": 241}, lambda s: (kinds("learner", CORE), shares(s))),
    over_share, labels=labels,
    claims=[
        goes(
            "even-transformer-steps", f"The number of steps that the transformer needs does not depend on gamma_d, {EVENLY}",
            theorem("Theorem 3.4.8, (3.8)"), "transformer, core", FLAT, transformer_conditions, -0.6, -0.2,
        ),
        goes(
            "even-convolution-steps", f"The number of steps that a convolution needs goes as gamma_d^-2, {EVENLY}",
            theorem("Theorem 3.4.6, (3.12)"), "convolution, core", SQUARE, convolution_conditions, -1.0, -2.0,
        ),
        goes(
            "even-convolution-mended", f"The number of steps that a convolution needs goes as gamma_d^-1, {EVENLY}",
            proof("(B.59) and (B.69)"), "convolution, core",
            about(-1.0, -1.4, -0.6, because="keeps -1 apart from -2 and 0", rivals={"(3.12)": -2.0, "(3.8)": 0.0}),
            convolution_conditions, -2.0, -1.0,
        ),
        Claim(
            "even-slower", f"On the same sets a convolution needs more steps than the transformer, {EVENLY}",
            theorem("Theorem 3.4.6"), headline=True,
            number=lambda r: steps_ratio(r, "learner", "convolution, core", "transformer, core"),
            holds=Holds("order", 1.0, float("inf"), because=ANY_RATIO), conditions=convolution_conditions,
            refuted_by=taking(lambda t: 50 if t.network.kind == "gcn" else 100),
            upheld_by=taking(lambda t: 200 if t.network.kind == "gcn" else 100),
        ),
    ],
)  # fmt: skip

size = Figure(
    "step-size", "Steps needed over the step size", TO_SMALL,
    along("descent.learning_rate", (0.05, 0.1), (0.05, 0.1, 0.2, 0.4), (0.02, 0.05, 0.1, 0.2, 0.4), steps=1000, logs=201),
    over_rate, labels=labels,
    claims=[
        Claim(
            "step-size", "The number of steps needed goes as eta^-1/2", theorem("Theorem 3.4.4, (3.8)"),
            number=lambda r: steps_exponent(r, "learning_rate"),
            holds=about(-0.5, -0.65, -0.35, because="keeps -1/2 apart from -1", rivals={"eta T of order one": -1.0}),
            conditions=transformer_conditions,
            refuted_by=taking(lambda t: 20 / t.descent.learning_rate),
            upheld_by=taking(lambda t: 60 * t.descent.learning_rate**-0.5),
        ),
        Claim(
            "step-size-mended", "The number of steps needed goes as eta^-1, as that of gradient descent with small steps does",
            proof("(B.91), eta T of order one"),
            number=lambda r: steps_exponent(r, "learning_rate"),
            holds=about(-1.0, -1.15, -0.85, because="keeps -1 apart from -1/2", rivals={"(3.8)": -0.5}),
            conditions=transformer_conditions,
            refuted_by=taking(lambda t: 60 * t.descent.learning_rate**-0.5),
            upheld_by=taking(lambda t: 20 / t.descent.learning_rate),
        ),
    ],
)  # fmt: skip

delta = Figure(
    "start-delta", "Steps needed over the initial error of keys and queries", TO_SMALL,
    along("network.query_key_error", (0.0, 0.4), (0.0, 0.2, 0.4), (0.0, 0.1, 0.2, 0.3, 0.4, 0.49)),
    over_start("query_key_error", "initial error of keys and queries $\\delta$"), labels=labels,
    claims=[
        Claim(
            "start-delta", "The number of steps needed goes as (1 - delta)^-1/2", theorem("Theorem 3.4.4, (3.8)"),
            number=in_sharpness,
            holds=about(-0.5, -0.8, -0.2, because="three tenths either way, on 1 - delta from 0.6 to 1"),
            conditions=transformer_conditions,
            refuted_by=taking(lambda t: 150 * (1 - t.network.query_key_error) ** -1.5),
            upheld_by=taking(lambda t: 150 * (1 - t.network.query_key_error) ** -0.5),
        ),
    ],
)  # fmt: skip
sigma = Figure(
    "start-sigma", "Steps needed over the initial error of values", TO_SMALL,
    along("network.value_error", (0.0, 0.4), (0.0, 0.1, 0.2, 0.4), (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)),
    over_start("value_error", "initial error of values $\\sigma$"), labels=labels,
)  # fmt: skip
xi = Figure(
    "start-xi", "Steps needed over the initial spread of the neurons", TO_SMALL,
    along("network.hidden_std", (0.01, 0.04), (0.0025, 0.01, 0.04), (0.0025, 0.005, 0.01, 0.02, 0.04)),
    over_start("hidden_std", "initial spread of neurons $\\xi$", "x"), labels=labels,
)  # fmt: skip
