"""Figures 1b and 3: groups of patches on a grid, and an image whose spurious patches outvote its signal."""

import numpy as np
import xarray as xr
from matplotlib.patches import Rectangle

from lemmata.draw import attention
from lemmata.draw.curves import one_run
from lemmata.draw.palette import RED
from lemmata.draw.style import Drawn, canvas, picture
from lemmata.figure import Figure
from lemmata.scale import Scale
from lemmata.studies.spatial_structure.data import Structured, grid_of
from lemmata.studies.spatial_structure.figures.common import groups_of, labels
from lemmata.studies.spatial_structure.trials import Illustration
from lemmata.sweep import Sweep, axis


def two_partitions(scale: Scale) -> Sweep:
    return Sweep(Illustration(), (axis("data.partition", ("contiguous", "random")),), (0,))


def one_image(scale: Scale) -> Sweep:
    data = Structured(patches=64, spurious_rate=0.25, dimension=2, partition="contiguous")
    return Sweep(Illustration(data, misleading=True), (), (0,))


@picture
def draw_partitions(results: xr.Dataset) -> Drawn:
    names = results.partition.values.tolist()
    figure, panels = canvas(len(names), width=2.6, height=2.6)
    for axes, name in zip(np.atleast_1d(panels), names, strict=True):
        group_of = groups_of(one_run(results.sel(partition=name)))
        attention.partition(axes, group_of, grid_of(len(group_of)))
        axes.set_title(f"{name} groups")
    return figure, "Sixteen positions in four groups; the learner is shown neither."


@picture
def draw_misleading(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(width=4.2, height=4.2)
    one = one_run(results)
    coefficients, group_of = np.nan_to_num(one.coefficients.values), groups_of(one)
    height, width = grid_of(len(group_of))
    text = [f"{value:+d}" if value else "0" for value in coefficients.astype(int)]
    attention.partition(axes, group_of, (height, width), text)
    for position in range(len(group_of)):
        row, column = divmod(position, width)
        if group_of[position] == float(one.signal_group):
            place = (column - 0.5, row - 0.5)
            axes.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=RED, linewidth=2.5))
    axes.set(xticks=[], yticks=[], title=f"label +1, coefficients sum to {float(one.total):+g}")
    return figure, r"Coefficients $\langle w^*, X_j \rangle$; the signal group is outlined."


partitions = Figure(
    "fig1b", "Contiguous and scattered groups of patches on a grid", "A 4 by 4 grid in groups of four.",
    two_partitions, draw_partitions, labels=labels,
)  # fmt: skip

misleading = Figure(
    "fig3", "An image whose spurious patches outvote its signal",
    "The first image with label +1 whose coefficients sum below 0. Colours are groups, as in the paper.",
    one_image, draw_misleading, labels=labels,
)  # fmt: skip
