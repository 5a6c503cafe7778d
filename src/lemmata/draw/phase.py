"""Phase diagrams: a quantity over two axes, with predicted and measured boundaries on top."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, Normalize


@dataclass(frozen=True)
class Line:
    """A boundary x(y) to draw over a phase diagram; `low` and `high` bound its interval."""

    label: str
    curve: Callable[[np.ndarray], np.ndarray]
    colour: str
    style: str = "-"
    low: Callable[[np.ndarray], np.ndarray] | None = None
    high: Callable[[np.ndarray], np.ndarray] | None = None


def edges(centres: np.ndarray, log: bool) -> np.ndarray:
    """Cell borders halfway between centres (in the logarithm when `log`)."""
    c = np.log(centres) if log else np.asarray(centres, float)
    if len(c) == 1:
        half = np.array([0.5])
        border = np.concatenate([c - half, c + half])
    else:
        middle = (c[1:] + c[:-1]) / 2
        border = np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
    return np.exp(border) if log else border


def phase_diagram(
    axes: Axes,
    values: xr.DataArray,
    x: str,
    y: str,
    lines: Sequence[Line] = (),
    log_x: bool = False,
    log_y: bool = False,
    norm: Normalize | BoundaryNorm | None = None,
    cmap: str = "viridis",
    diverged: xr.DataArray | None = None,
):
    """Draw `values` over coordinates x and y. Cells with no value are hatched; diverged cells are marked by a cross."""
    values = values.transpose(y, x)
    xs, ys = np.asarray(values[x], float), np.asarray(values[y], float)
    x_edges, y_edges = edges(xs, log_x), edges(ys, log_y)
    axes.set_facecolor("#dddddd")
    mesh = axes.pcolormesh(
        x_edges, y_edges, np.ma.masked_invalid(values.values), cmap=cmap, norm=norm, rasterized=True
    )
    if diverged is not None:
        rows, columns = np.nonzero(diverged.transpose(y, x).values > 0)
        axes.plot(
            xs[columns], ys[rows], "x", color="#D55E00", markersize=6, label="diverged" if len(rows) else None
        )
    fine = (
        np.geomspace(y_edges[0], y_edges[-1], 200)
        if log_y
        else np.linspace(max(y_edges[0], 1e-9), y_edges[-1], 200)
    )
    for line in lines:
        axes.plot(line.curve(fine), fine, line.style, color=line.colour, label=line.label, linewidth=1.8)
        if line.low is not None and line.high is not None:
            axes.fill_betweenx(
                fine, line.low(fine), line.high(fine), color=line.colour, alpha=0.35, linewidth=0
            )
    axes.set_xlim(x_edges[0], x_edges[-1])
    axes.set_ylim(y_edges[0], y_edges[-1])
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    return mesh
