"""Figure X3: training on sampled prompts comes closer to the loss over all prompts as their number grows."""

import numpy as np
import xarray as xr

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, Made, about, at_most, every_run, made, ours
from lemmata.measure.columns import chosen
from lemmata.measure.exponent import exponent
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep, axis

from ..trials import Training
from .common import descent, labels, map_gap, minimum, times


def sweep(scale: Scale) -> Sweep:
    numbers = by_scale(scale, (0, 100, 400), (0, 500, 1500, 5000), (0, 1250, 5000, 20_000, 80_000))
    template = Training(init=0.05, descent=descent(scale, 40_000, 40_000))
    return Sweep(template, (axis("prompts", numbers),), tuple(range(by_scale(scale, 2, 5, 10))))


def distance(results: xr.Dataset) -> xr.DataArray:
    """How far the learned map of sampled prompts lies from A*, for each number of prompts."""
    return map_gap(results.where(results.prompts > 0, drop=True), minimum)


def delay(results: xr.Dataset) -> xr.DataArray:
    """The relative difference of the time of the first drop on the most prompts from that over all prompts."""
    first = times(results).min("eigenvector")
    return abs(chosen(first, prompts=int(results.prompts.max())) / chosen(first, prompts=0) - 1)


def apart(exponent: float) -> Made:
    """Maps whose distance from A* is a power of the number of prompts."""

    def matrix(trial: Training, row: np.ndarray, column: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        off = max(trial.prompts, 1) ** exponent * np.exp(0.05 * rng.normal())
        return minimum(trial)[row, column] * (1 + off)

    return made(matrix=matrix, noise=0.0)


def delayed(by: float) -> Made:
    """Drops that come later on prompts, by a share."""
    return made(time=lambda t, eigenvector: 500 * (1 + by * (t.prompts > 0)) * (1 + eigenvector), noise=1e-3)


sampled = Figure(
    "sampled",
    "Training on sampled prompts against the loss over all prompts",
    setup="As Figure 3, from a start of 0.05. 0 prompts stand for the loss over all prompts. The weights start alike.",
    sweep=sweep,
    labels=labels,
    picture=panels(
        Panel(
            lambda r: r.error_curve.isel(seed=[0]),
            "step",
            "step",
            "loss",
            arms="prompts",
            names="P = {}",
            style="-",
        ),
        Panel(distance, "prompts", "prompts", r"distance of the learned map from $A^*$", log="xy"),
        caption="Left: the loss of one run on sampled prompts; P = 0 is the loss over all prompts. Right: the learned map.",
    ),
    claims=[
        Claim(
            "sampled-rate",
            "The distance of the map that is learned from P prompts from A* goes as P^(-1/2)",
            ours("(5)"),
            number=lambda r: exponent(distance(r), "prompts"),
            holds=about(-0.5, -0.65, -0.35, because="it keeps -1/2 apart from -1/4 and -1"),
            refuted_by=apart(-0.3),
            upheld_by=apart(-0.5),
        ),
        Claim(
            "sampled-time",
            "With the most prompts, the first drop comes within 5 % of the time that the loss over all prompts needs",
            ours("(5)"),
            number=delay,
            holds=every_run(at_most(0.05, because="the next eigenvector is learned at least a tenth later")),
            refuted_by=delayed(0.08),
            upheld_by=delayed(0.02),
        ),
    ],
)
