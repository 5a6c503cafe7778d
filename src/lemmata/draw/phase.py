"""Phase diagrams and success maps: a quantity over two axes, with predicted and measured boundaries on top."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize

from lemmata.draw.curves import law
from lemmata.draw.palette import NOTHING, ORANGE, RED
from lemmata.draw.style import logarithmic, plain_log_ticks, ticks_at
from lemmata.measure.threshold import critical_size

Curve = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Line:
    """A boundary x(y) to draw over a phase diagram; `low` and `high` bound its interval."""

    label: str
    curve: Curve
    colour: str
    style: str = "-"
    low: Curve | None = None
    high: Curve | None = None


def phase_diagram(
    axes: Axes,
    values: xr.DataArray,
    x: str,
    y: str,
    lines: Sequence[Line] = (),
    log_x: bool = False,
    log_y: bool = False,
    norm: Normalize | None = None,
    cmap: str = "viridis",
    diverged: xr.DataArray | None = None,
) -> QuadMesh:
    """Draw `values` over the coordinates x and y. Cells with no value are grey, cells with diverged runs have a cross.

    Whatever is drawn on top afterwards leaves the frame as it is.
    """
    values = values.sortby([x, y])
    (along_x,), (along_y,) = values[x].dims, values[y].dims
    xs, ys = np.asarray(values[x], float), np.asarray(values[y], float)
    x_edges, y_edges = edges(xs, log_x), edges(ys, log_y)
    axes.set_facecolor(NOTHING)
    shown = np.ma.masked_invalid(values.transpose(along_y, along_x).values)
    mesh = axes.pcolormesh(x_edges, y_edges, shown, cmap=cmap, norm=norm, rasterized=True)
    for name in "x" * log_x + "y" * log_y:
        logarithmic(axes, name)
    axes.set(xlim=x_edges[[0, -1]], ylim=y_edges[[0, -1]])
    axes.autoscale(False)
    plain_log_ticks(*([axes.xaxis] if log_x else []), *([axes.yaxis] if log_y else []))
    if diverged is not None:
        crossed = diverged.sortby([x, y]).transpose(along_y, along_x).values > 0
        at_y, at_x = np.nonzero(crossed)
        said = "diverged" if len(at_x) else None
        axes.plot(xs[at_x], ys[at_y], "x", color=RED, markersize=6, label=said)
    fine = (np.geomspace if log_y else np.linspace)(y_edges[0], y_edges[-1], 200)
    for one in lines:
        _draw(axes, one, fine[fine > 0])
    return mesh


def edges(centres: np.ndarray, log: bool) -> np.ndarray:
    """Cell borders halfway between centres (in the logarithm when `log`).

    >>> edges(np.array([1.0, 2.0, 4.0]), log=False).tolist()
    [0.5, 1.5, 3.0, 5.0]
    """
    c = np.log(centres) if log else np.asarray(centres, float)
    if len(c) == 1:
        border = np.array([c[0] - 0.5, c[0] + 0.5])
    else:
        middle = (c[1:] + c[:-1]) / 2
        border = np.concatenate([[2 * c[0] - middle[0]], middle, [2 * c[-1] - middle[-1]]])
        if (
            not log and c[0] >= 0
        ):  # a quantity that is never negative gets no cell that is, nor one that has no logarithm
            border[0] = max(border[0], c[0] / 2)
    return np.exp(border) if log else border


def measured_line(
    values: xr.DataArray,
    fit: Callable[[xr.DataArray, str, str], Any],
    threshold: str,
    over: str,
    name: str,
    colour: str = ORANGE,
) -> list[Line]:
    """The measured law of a boundary with its interval: `fit(values, threshold, over)` gives exponent and constant.

    It is read off at the centre of the grid, where the two hardly depend on each other. No line where there is no law, or
    one without an interval.
    """
    centre = float(np.exp(np.log(values[over].astype(float)).mean()))
    finite = values.where(np.isfinite(values))
    found = fit(finite.assign_coords(centred=values[over] / centre), threshold, "centred")
    tilt, place = found.exponent, found.constant
    ends = (tilt.low, tilt.high, place.low, place.high)
    if not (tilt.exists and place.exists and np.isfinite(ends).all()):
        return []

    def curve(at: np.ndarray) -> np.ndarray:
        return place.value * (at / centre) ** tilt.value

    def bound(sign: int) -> Curve:
        shift = np.log((place.high if sign > 0 else place.low) / place.value)
        turn = (tilt.high - tilt.low) / 2
        return lambda at: curve(at) * np.exp(sign * np.hypot(shift, turn * np.log(at / centre)))

    label = f"measured: {name}$^{{{tilt.value:.2f}}}$ [{tilt.low:.2f}, {tilt.high:.2f}]"
    return [Line(label, curve, colour, "-", bound(-1), bound(1))]


def _draw(axes: Axes, one: Line, at: np.ndarray) -> None:
    if one.low is not None and one.high is not None:
        axes.fill_betweenx(at, one.low(at), one.high(at), color=one.colour, alpha=0.35, linewidth=0)
    law(axes, one.curve(at), at, one.label, one.colour, one.style, on_map=True, linewidth=1.6)


# Success maps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Critical:
    """The size at which half of the runs succeed, with its interval, along another axis.

    `open` marks places where the grid only bounds it: the value is then the largest size at which runs still fail.
    """

    x: np.ndarray
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    open: np.ndarray

    @property
    def known(self) -> np.ndarray:
        return np.where(self.open, np.nan, self.value)


def critical(success: xr.DataArray, over: str, size: str = "samples") -> Critical:
    """The critical size in every column of a success map."""
    (along,) = success[over].dims
    found = [critical_size(success.isel({along: i}), size) for i in range(success.sizes[along])]
    value, low, high = (np.array([getattr(e, end) for e in found], float) for end in ("value", "low", "high"))
    bounded = np.isfinite(value) & ~np.isfinite(high)
    return Critical(np.asarray(success[over], float), value, np.maximum(low, 1.0), high, bounded)


def critical_points(
    axes: Axes,
    found: Critical,
    colour: Any,
    label: str,
    scale: Callable[[np.ndarray], np.ndarray] = lambda size: size,
) -> None:
    """Critical sizes with their intervals; hollow triangles point to where they must lie when the grid only bounds them."""
    seen = np.isfinite(found.known)
    ends = np.sort([scale(found.low[seen]), scale(found.value[seen]), scale(found.high[seen])], axis=0)
    if seen.any():
        errors = [ends[1] - ends[0], ends[2] - ends[1]]
        axes.errorbar(found.x[seen], ends[1], yerr=errors, fmt="o", color=colour, label=label)
    falls = scale(np.array([2.0]))[0] < scale(np.array([1.0]))[0]
    if found.open.any():
        said = None if seen.any() else f"{label} (bound)"
        away = {"color": colour, "fillstyle": "none", "markersize": 6, "label": said}
        axes.plot(found.x[found.open], scale(found.value[found.open]), "v" if falls else "^", **away)


def success_map(
    axes: Axes, success: xr.DataArray, over: str, size: str = "samples", predicted: Any = None, name: str = ""
) -> tuple[QuadMesh, Critical]:
    """The share of runs that succeed over an axis and a size, the critical size with its interval, and a law for it whose
    constant is fitted; `predicted` has a value for each place along the axis, `name` names it in the key. An axis over more
    than two decades is logarithmic."""
    rate = success.mean([d for d in success.dims if d not in (*success[over].dims, size)])
    places = np.asarray(rate[over], float)
    wide = bool(0 < 100 * places.min() < places.max())
    mesh = phase_diagram(axes, rate, over, size, (), wide, True, Normalize(0, 1), "cividis")
    found = critical(success, over, size)
    critical_points(axes, found, RED, "half of the runs succeed")
    if predicted is not None:
        law(axes, found.x, predicted, name, through=found.known, on_map=True)
    ticks_at(axes.yaxis, success[size].values)
    return mesh, found
