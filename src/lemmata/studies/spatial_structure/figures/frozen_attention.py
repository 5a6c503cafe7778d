"""Descent with attention frozen at its start: a linear model (Section 4.1)."""

import xarray as xr

from lemmata.draw.curves import BAND, lines
from lemmata.draw.palette import BLUE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, made, proof
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure.figures.common import (
    FAST,
    SMALL,
    changed,
    labels,
    linear_models,
    over_glm,
    over_linear,
    seeds,
    template,
    tiny,
    to_the_end,
)
from lemmata.studies.spatial_structure.theory.two_rates import realistic
from lemmata.studies.spatial_structure.trials import ImageDescent
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put


def sweep(scale: Scale) -> Sweep:
    trial = by_scale(
        scale,
        tiny(400, 5, samples=600),
        ImageDescent(data=SMALL, descent=to_the_end(2e-4, 1e4, 2000, 21), samples=2000),
        changed(template(), descent__steps=3500, descent__logs=31),
    )

    def arm(trial: ImageDescent, attention: str) -> ImageDescent:
        return trial if attention == "trained" else put(trial, "descent.attention_rate", 0.0)

    return Sweep(trial, (Axis("attention", ("frozen", "trained"), arm),), seeds(scale, 2, 4, 10))


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    lines(axes, results.test_error_curve, "step", "attention", "attention {}", shades=(RED, BLUE))
    linear_models(axes, results)
    panel(axes, "step", "test error", ylim=(0, 0.3))
    return figure, f"The same data and start in both arms. {BAND}"


frozen_attention = Figure(
    "frozen-attention", "Descent with attention frozen at its start", "D = 36, C = 4, q = 0.4, d = 16. " + FAST,
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "frozen-is-linear", "With attention frozen at its start the model errs at least as often as a linear one",
            proof("Section 4.1, Event II"),
            number=over_glm,
            holds=at_least(0.8, because="ties of the vote may all be broken towards the signal, which is 0.80 here"),
            cells=lambda r: r.attention == "frozen", conditions=realistic,
            refuted_by=made(test_error=over_linear(0.5)), upheld_by=made(test_error=over_linear(1.0)),
        ),
    ],
)  # fmt: skip
