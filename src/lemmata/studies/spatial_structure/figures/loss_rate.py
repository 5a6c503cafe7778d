"""The loss at the end of population descent: a 1/t rate, and the margin that it follows (Lemmas D.13 and D.14)."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import line, slope
from lemmata.draw.palette import BLUE
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_most, every_run, made, proof
from lemmata.measure.estimate import needs
from lemmata.measure.simple import mean
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.figures.common import always, degree, labels, seeds, to_the_end
from lemmata.studies.spatial_structure.network import PositionalNetwork
from lemmata.studies.spatial_structure.theory import population
from lemmata.studies.spatial_structure.trials import IdealisedDescent
from lemmata.sweep import Sweep


def sweep(scale: Scale) -> Sweep:
    trial = IdealisedDescent(
        data=Structured(patches=128, group_size=8, spurious_rate=0.3),
        network=PositionalNetwork(linear=1e-6, diagonal=2.0),
        descent=to_the_end(2e-6, 1.0, by_scale(scale, 8000, 30_000, 30_000), 120, spacing="log"),
        alignment=0.003,
        same=4.0,
        draws=by_scale(scale, 300, 3000, 3000),
        test_draws=500,
    )
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
    """The largest ratio of the loss to `log(1 + exp(-(alpha G)^p))` while the loss falls from 0.1 to 1e-3."""
    bound = theory.loss_from_margin(r.alignment_curve, r.gain_curve, degree(r))
    window = (r.loss_curve <= 0.1) & (r.loss_curve >= 1e-3)
    return (r.loss_curve / bound).where(window).max("step")


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    found = line(axes, results.loss_curve, "step", BLUE, "population loss", spread="runs")
    window = np.flatnonzero((found.middle <= 1e-2) & (found.middle >= 1e-3) & (found.x > 0))
    if len(window):
        slope(axes, found, -1, "1/t", at=int(window[0] - (found.x <= 0).sum()), style=":")
    panel(axes, "step", "population loss", log="xy", ylim=(1e-6, 1))
    return figure, "Population descent from learned attention; thin lines: seeds."


def as_power(power: float):
    """A loss of 0.1 that falls as a power of the steps from the first one on."""
    return made(loss_curve=lambda t, step: 0.1 * np.maximum(step, 1.0) ** power)


def at_margin(loss: float):
    """A loss at (alpha G)^3 = 4, where the bound is log(1 + e^-4) = 0.0181."""
    return made(
        noise=0.001,
        loss_curve=always(loss),
        alignment_curve=always(0.1),
        gain_curve=always(10 * 4 ** (1 / 3)),
    )


loss_rate = Figure(
    "loss-rate", "The loss at the end of population descent", "D = 128, C = 8, q = 0.3 (label noise 1e-6), from gamma = 4.",
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "loss-rate", "In the end the loss is at most of order 1/t (the lemma calls it linear convergence)",
            proof("Lemma D.13"),
            number=loss_slope,
            holds=at_most(-0.85, because="the margin's slow growth bends the log-log curve a little"), conditions=population,
            refuted_by=as_power(-0.75), upheld_by=as_power(-1),
        ),
        Claim(
            "loss-follows-margin", "In the end the loss is at most a constant times log(1 + exp(-(alpha G)^p))",
            proof("Lemma D.14"),
            number=loss_over_margin,
            holds=every_run(at_most(3.0, because="orders only: the largest ratio while the loss falls from 0.1 to 1e-3")),
            conditions=population,
            refuted_by=at_margin(0.09), upheld_by=at_margin(0.045),
        ),
    ],
)  # fmt: skip
