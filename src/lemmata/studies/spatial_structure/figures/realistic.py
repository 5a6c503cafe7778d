"""Figure 4: descent on a sample, with two step sizes. Theorem 4.2 itself is judged in `sample_flow`."""

import numpy as np
import xarray as xr

from lemmata.draw import attention
from lemmata.draw.curves import BAND, lines, one_run
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import (
    Claim,
    Figure,
    at_least,
    experiment,
    made,
)
from lemmata.measure.simple import mean
from lemmata.results import settings
from lemmata.scale import Scale
from lemmata.studies.spatial_structure.data import grid_of
from lemmata.studies.spatial_structure.figures.common import (
    FAST,
    always,
    changed,
    groups_of,
    heat,
    labels,
    linear_models,
    seeds,
    settings_line,
    template,
    tiny,
)
from lemmata.studies.spatial_structure.theory.two_rates import realistic
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    trial = changed(template(), keep_logits=True, descent__logs=25, descent__steps=3500)
    if scale == "smoke":
        trial = tiny(600, 9, keep_logits=True)
    elif scale == "quick":
        trial = changed(trial, samples=5000, test_samples=3000)
    return Sweep(trial, (axis("data.partition", ("random", "contiguous")),), seeds(scale, 2, 8, 12))


def logged(maps: xr.DataArray) -> xr.DataArray:
    """Maps along training, as far as the run came."""
    known = maps.notnull().any(maps.dims[1:])
    return maps.isel({maps.dims[0]: slice(max(int(known.sum()), 1))})


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Figure 4, the mosaic over the grid, and the logits growing over training."""
    figure, panels = canvas(5, 2, width=2.9, height=3.2)
    first, last = results.partition.values[0], results.partition.values[-1]
    one = one_run(results.sel(partition=first))
    group_of = groups_of(one)
    logits = logged(one.logits_curve)
    attention.true_mask(panels[0, 0], group_of)
    panels[0, 0].set_title("pairs in a common group")
    heat(figure, panels[0, 1], logits.values[-1], group_of, "learned logits A, set order")
    tiles = logged(one_run(results.sel(partition=last)).logits_curve).values[-1]
    attention.mosaic(panels[0, 2], tiles, grid_of(len(tiles)))
    panels[0, 2].set_title(f"{last} sets: mosaic of A")
    lines(panels[0, 3], results.test_error_curve, "step", "partition", "{} sets")
    linear_models(panels[0, 3], results)
    lines(panels[0, 4], results.cosine_curve, "step", "partition", "cosine, {}")
    lines(panels[0, 4], results.exact_curve, "step", "partition", "association, {}", style="--")
    panel(panels[0, 3], "step", "test error", "test error", ylim=(0, None))
    panel(panels[0, 4], "step", "cosine, share of rows", "cosine(v, w*) and association", ylim=(0, None))
    shown = np.unique(np.linspace(0, len(logits) - 1, 5).round().astype(int))
    maps = [logits.values[i] for i in shown]
    titles = [f"A at step {int(logits.step[i])}" for i in shown]
    attention.small_multiples(panels[1, : len(maps)], maps, titles, group_of)
    for axes in panels[1, len(maps) :]:
        axes.axis("off")
    rate = settings(results)["descent.attention_rate"]
    moves = f"logits move {rate:g} times as fast as v"
    return figure, f"{settings_line(results)}; {moves}; maps of one seed. {BAND}"


descent_on_a_sample = Figure(
    "fig4", "Descent on a sample: the learned attention, error and alignment over training",
    "The paper prints no settings. D = 64, C = 4, q = 0.25, p = 3, d = 32, beta = 4, nu = 1e-4, omega = 5e-4, "
    "step 1e-4; 8000 images (5000 at quick scale). The proofs have temperature 1, which every "
    "formula of the paper uses (the first reading); its definition of the network prints sqrt(d). " + FAST,
    sweep, draw, labels=labels,
    readings={"temperature 1, as in the proofs": {}, "temperature sqrt(d)": {"network.scaling": "sqrt_d"}},
    claims=[
        Claim(
            "points-at-feature", "Descent on a sample ends with a value vector along the feature: a cosine of at least 0.9",
            experiment("Figure 4 (right)", proxy="the paper prints no sizes, rates or final values"),
            number=lambda r: mean(r.cosine),
            holds=at_least(0.9, because="a finite sample leaves a part off the feature of order sqrt(d / N)"),
            conditions=realistic,
            refuted_by=made(cosine=always(0.5)), upheld_by=made(cosine=always(0.95)),
        ),
    ],
)  # fmt: skip
