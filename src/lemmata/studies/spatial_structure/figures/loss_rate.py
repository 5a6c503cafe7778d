"""The loss at the end of population descent: a 1/t rate, and the margin that it follows (Lemmas D.13 and D.14)."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import line, slope
from lemmata.draw.palette import BLUE
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_most, every_run, made, proof
from lemmata.measure.estimate import needs
from lemmata.measure.simple import mean
from lemmata.measure.times import first_value
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.figures.common import (
    ONE_RATE,
    always,
    degree,
    labels,
    population_flow,
    seeds,
)
from lemmata.studies.spatial_structure.theory import population
from lemmata.sweep import Sweep


def sweep(scale: Scale) -> Sweep:
    """Logged most densely where the loss vanishes."""
    draws, logs = by_scale(scale, (300, 201), (3000, 1201), (3000, 1201))
    trial = population_flow(512, 5.8, first=1e3, last=1e7, draws=draws, logs=logs, test_draws=500)
    return Sweep(trial, (), seeds(scale, 2, 6, 10))


def loss_slope(r):
    """The slope of log loss against log time since the loss was 0.1, while it falls from 1e-2 to 1e-3.

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


def loss_over_margin(r):
    """The largest ratio of the loss to `log(1 + exp(-(alpha G)^p))` while the loss falls from 0.1 to 1e-3, over the first."""
    bound = theory.loss_from_margin(r.alignment_curve, r.gain_curve, degree(r))
    ratio = (r.loss_curve / bound).where((r.loss_curve <= 0.1) & (r.loss_curve >= 1e-3))
    return ratio.max("step") / first_value(ratio)


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    found = line(axes, results.loss_curve, "step", BLUE, "population loss", spread="runs")
    window = np.flatnonzero((found.middle <= 1e-2) & (found.middle >= 1e-3) & (found.x > 0))
    if len(window):
        slope(axes, found, -1, "1/t", at=int(window[0] - (found.x <= 0).sum()), style=":")
    panel(axes, "time", "population loss", log="xy", ylim=(1e-6, 1))
    return figure, "Population descent; thin lines: seeds."


def as_power(power: float):
    """A loss of 0.1 that falls as a power of the time from 1e3 on."""
    return made(loss_curve=lambda t, step: 0.1 * np.maximum(step / 1e3, 1.0) ** power)


def at_margin(fall: float):
    """A loss of 0.05 while the bound falls by a factor: (alpha G)^3 is 4 at first, where the bound is 0.0181."""
    late = -np.log(np.expm1(np.log1p(np.exp(-4)) / fall))
    return made(
        noise=0.001,
        loss_curve=always(0.05),
        alignment_curve=always(0.1),
        gain_curve=lambda t, step: 10 * np.where(step > 1e5, late, 4) ** (1 / 3),
    )


loss_rate = Figure(
    "loss-rate", "The loss at the end of population descent",
    "D = d = 512, C = 4, q = 1/32 (label noise 8e-6), beta = 5.8: inside Theorem 4.1. " + ONE_RATE,
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "loss-rate", "In the end the loss is at most of order 1/t (the lemma calls it linear convergence)",
            proof("Lemma D.13"),
            number=loss_slope,
            holds=at_most(-0.85, because="the margin's slow growth bends the log-log curve a little"), conditions=population,
            refuted_by=as_power(-0.8), upheld_by=as_power(-1),
        ),
        Claim(
            "loss-follows-margin", "In the end the loss is at most a constant times log(1 + exp(-(alpha G)^p))",
            proof("Lemma D.14"),
            number=loss_over_margin,
            holds=every_run(at_most(3.0, because="the hidden constant may rise by a factor 3 while the loss falls from "
                                                   "0.1 to 1e-3")),
            conditions=population,
            refuted_by=at_margin(4), upheld_by=at_margin(2),
        ),
    ],
)  # fmt: skip
