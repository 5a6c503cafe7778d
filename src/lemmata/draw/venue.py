"""Fits a picture to the width of a venue's page, and reads the numbers that it shows."""

from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.text import Text

from lemmata.draw.style import key, lab_style, shared_key
from lemmata.errors import unknown

WIDTHS = {"neurips": (5.5, 5.5), "icml": (3.25, 6.75), "iclr": (5.5, 5.5)}
"""The width of a column and of the text in inches, by venue. One panel takes a column, several take the text."""

LARGEST_FONT = 7.5
"""Points; pictures in papers have smaller text than their captions."""

LOWEST = 1.9
"""Inches; panels that get narrow keep room for their labels."""


def fit_to_venue(figure: Figure, venue: str) -> Figure:
    """Resize a figure to a venue's width, without its caption, as the paper has its own. Return the figure."""
    if venue not in WIDTHS:
        raise unknown("venue", venue, WIDTHS)
    panels = [axes for axes in figure.axes if axes.get_subplotspec() is not None]
    grid = {axes.get_subplotspec().get_gridspec().ncols for axes in panels}  # pyright: ignore[reportOptionalMemberAccess]
    width = WIDTHS[venue][max(grid, default=1) > 1]
    before, height = figure.get_size_inches()
    figure.supxlabel("")
    figure.set_size_inches(width, max(height * width / before, min(LOWEST, height)))
    with lab_style():
        for shared in [*figure.legends]:  # laid out again, as fewer columns fit
            shared.remove()
            shared_key(figure, panels)
        for axes in panels:
            own = axes.get_legend()
            if own is not None:
                key(axes, own.get_title().get_text())
    for text in figure.findobj(Text):
        text.set_fontsize(min(text.get_fontsize(), LARGEST_FONT))  # pyright: ignore[reportAttributeAccessIssue]
    return figure


def numbers_of(figure: Figure) -> Iterator[tuple[str, str, float, float, float | str]]:
    """Yield the numbers that a figure shows: panel, series, x, y, and for the cells of a map their value."""
    for number, axes in enumerate(figure.axes):
        if not hasattr(axes, "_colorbar"):
            name = axes.get_title(loc="left") or axes.get_ylabel() or f"panel {number + 1}"
            yield from _numbers_in(axes, name)


def _numbers_in(axes: Axes, panel: str) -> Iterator[tuple[str, str, float, float, float | str]]:
    for count, line in enumerate(axes.get_lines()):
        label = str(line.get_label())
        series = f"line {count + 1}" if label.startswith("_") else label
        for x, y in np.asarray(line.get_xydata(), float):
            yield panel, series, float(x), float(y), ""
    for mesh in (one for one in axes.collections if isinstance(one, QuadMesh)):
        corners = np.asarray(mesh.get_coordinates(), float)
        centres = (corners[1:, 1:] + corners[:-1, :-1]) / 2
        values = np.ma.filled(np.ma.asarray(mesh.get_array(), float), np.nan).reshape(centres.shape[:2])
        for (x, y), value in zip(centres.reshape(-1, 2), values.ravel(), strict=True):
            yield panel, "cells", float(x), float(y), float(value)
