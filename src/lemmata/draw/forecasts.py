"""Draws what a study predicts over one field or two."""

import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from lemmata.draw.palette import BLUE, GREEN, GREY
from lemmata.draw.phase import edges
from lemmata.draw.style import canvas, lab_style, panel


def _wide(values: Sequence[float] | np.ndarray) -> bool:
    """Whether an axis over these values is logarithmic."""
    found = np.asarray(values, float)
    return bool((found > 0).all() and found.max() >= 5 * found.min() and len(found) > 1)


def forecast_curves(
    field: str, values: Sequence[float], curves: Mapping[str, Sequence[float]], success: np.ndarray, goal: str
) -> Figure:
    """Draw predictions over a field, a panel each; values at which the study predicts success have a green dot."""
    with lab_style():
        figure, grid = canvas(max(len(curves), 1))
        order = np.argsort(values)
        x = np.asarray(values, float)[order]
        for axes, (name, found) in zip(np.atleast_1d(grid), curves.items(), strict=False):
            y = np.asarray(found, float)[order]
            axes.plot(x, y, "-", color=BLUE)
            good = success[order] == 1
            axes.plot(x[good], y[good], "o", color=GREEN, label=f"predicted: {goal}")
            axes.plot(x[~good], y[~good], "o", color=GREY, label="not")
            panel(
                axes,
                field,
                "",
                "\n".join(textwrap.wrap(name, 44)),
                "x" * _wide(values) + "y" * _wide(y[np.isfinite(y)]),
            )
        return figure


def forecast_map(
    across: str, xs: Sequence[float], up: str, ys: Sequence[float], success: np.ndarray, goal: str
) -> Figure:
    """Draw where a study predicts success over two fields. `success` has a row for every value across."""
    with lab_style():
        figure, axes = canvas()
        x_order, y_order = np.argsort(xs), np.argsort(ys)
        x, y = np.asarray(xs, float)[x_order], np.asarray(ys, float)[y_order]
        colours = ListedColormap(["#dddddd", GREEN])
        shown = success[np.ix_(x_order, y_order)].T
        axes.pcolormesh(edges(x, _wide(xs)), edges(y, _wide(ys)), shown, cmap=colours, vmin=0, vmax=1)
        axes.plot([], [], "s", color=GREEN, label=f"predicted: {goal}")
        axes.plot([], [], "s", color="#dddddd", label="not")
        panel(axes, across, up, "", "x" * _wide(xs) + "y" * _wide(ys))
        return figure
