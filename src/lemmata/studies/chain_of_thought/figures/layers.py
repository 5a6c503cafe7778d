"""Figures 7.7 and F.1: three residual layers on the same prompts, with step encodings or sinusoidal positions."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_most, every_run, experiment, made, positive
from lemmata.measure.simple import mean
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought.figures.common import four, labels, seeds
from lemmata.studies.chain_of_thought.trials import Deep
from lemmata.sweep import Sweep
from lemmata.trial import put_all

DEEP = "Residual layers, all weights trained by Adam; the document says no more than the number of layers and heads."


def layers(positions: str, heads: int, reasoning_steps: int, rounds: int):
    def sweep(scale: Scale) -> Sweep:
        trial = put_all(
            Deep(),
            {
                "positions": positions, "heads": heads, "data.steps": reasoning_steps,
                "descent.batch": 20 * reasoning_steps, "descent.steps": by_scale(scale, 40, rounds, 4 * rounds),
            },
        )  # fmt: skip
        if scale == "smoke":
            trial = put_all(
                trial,
                {"data.patterns": 8, "data.dim": 12, "descent.batch": 16, "watched": 16, "descent.logs": 6},
            )
        return Sweep(trial, (), seeds(scale, 3, 10))

    return sweep


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The four masses along training, in the head of every layer that matches most at the end."""
    masses = results["masses_curve"]
    figure, panels = canvas(len(results["layer"]), sharey=True)
    for axes, layer in zip(np.atleast_1d(panels), results["layer"].values, strict=True):
        part = masses.sel(layer=layer)
        ends = part.isel(step=-1, mass=0).mean([dim for dim in ("seed",) if dim in part.dims]).fillna(0)
        head = int(results["head"].values[int(ends.argmax("head"))])
        four(axes, part.sel(head=head))
        panel(
            axes, "step", "attention of the query" if layer == 1 else "", f"layer {layer}, head {head}", "x"
        )
    return figure, f"Of each layer the head that pays most attention to matching columns at the end. {BAND}"


def lead(r: xr.Dataset) -> xr.DataArray:
    """By how much attention on matching columns leads the largest other kind: the best head of the worst layer."""
    masses = r.masses_curve.isel(step=-1)
    return (masses.isel(mass=0) - masses.isel(mass=slice(1, None)).max("mass")).max("head").min("layer")


def masses(first: tuple[float, ...], others: tuple[float, ...] = (0.97, 0.01, 0.01, 0.01)):
    """The four masses in the first layer, and in the others."""
    return made(masses_curve=lambda t, step, layer, head, mass: np.where(layer == 1, first, others))


CONCENTRATED, ASTRAY = masses((0.9, 0.05, 0.03, 0.02), (0.9, 0.05, 0.03, 0.02)), masses((0.3, 0.5, 0.1, 0.1))

steps = Figure(
    "fig7-7", "The same in three layers with two heads", DEEP, layers("steps", 2, 2, 1000), draw,
    labels=labels, upheld_by=CONCENTRATED,
    claims=[
        Claim(
            "layers-concentrate", "In a network of three layers and two heads, every layer has a head that pays most attention to "
            "columns of the same pattern and step", experiment("Figure 7.7"),
            number=lead, holds=every_run(positive(because="the order itself")), refuted_by=ASTRAY,
        ),
    ],
)  # fmt: skip

sinusoids = Figure(
    "figF-1", "The same in three layers with one head and sinusoidal positions", DEEP, layers("sinusoids", 1, 3, 2000), draw,
    labels=labels, upheld_by=CONCENTRATED,
    claims=[
        Claim(
            "sinusoids-concentrate", "With sinusoidal positions, three layers and one head, every layer pays most attention to "
            "columns of the same pattern and step", experiment("Figure F.1"),
            number=lead, holds=every_run(positive(because="the order itself")), refuted_by=ASTRAY,
        ),
        Claim(
            "sinusoids-lower", "With sinusoidal positions that attention is lower than the almost 1 of Figure 7.6",
            experiment("Section F.1.3"),
            number=lambda r: mean(r.masses_curve.isel(step=-1, mass=0).max(("layer", "head"))),
            holds=at_most(0.95, because="one layer reaches 0.96 on training prompts"), refuted_by=ASTRAY,
        ),
    ],
)  # fmt: skip
