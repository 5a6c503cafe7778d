"""A quantity over an axis or over training, arm by arm, with its spread over seeds; and what is predicted drawn over it."""

import re
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal, NamedTuple

import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.axes import Axes

from lemmata.draw.palette import BLACK, BLUE, GREY, colours
from lemmata.status import FAILED

Centre = Literal["median", "mean", "geometric"]
BAND = "Lines: median over seeds, bands: quartiles."
DOTS = "Lines: median over seeds, dots: seeds."
BARS = "Bars: median over seeds, dots: seeds."
MEAN = "Lines: mean over seeds, dots: seeds."
TRAINING = ("step", "log")  # dimensions along which a run that has stopped keeps its last value


class Series(NamedTuple):
    """A quantity along an axis: its places, the middle over seeds, and every run as a row."""

    x: np.ndarray
    middle: np.ndarray
    runs: np.ndarray

    def quartiles(self) -> np.ndarray:
        return _known(lambda rows: np.nanquantile(rows, [0.25, 0.75], axis=0), self.runs)


def series(values: xr.DataArray, over: str, centre: Centre = "median") -> Series:
    """The values along an axis, in its order, all other dimensions taken as runs.

    `over` is a dimension or a coordinate along one (an SNR, the logged steps of a cell). Along training a run that has
    stopped keeps its last value, up to where the last one stops; what is not finite is left out.
    """
    (along,) = values[over].dims
    x = np.asarray(values[over].values, float)
    rows = np.asarray(values.transpose(..., along).values, float).reshape(-1, len(x))
    rows = np.where(np.isfinite(rows), rows, np.nan)
    kept = np.isfinite(x)
    if along in TRAINING:
        known = np.flatnonzero(np.isfinite(rows).any(axis=0))
        kept &= np.arange(len(x)) <= (known[-1] if len(known) else -1)
        rows = held(rows)
    x, rows = x[kept], rows[:, kept]
    order = np.argsort(x, kind="stable")
    x, rows = x[order], rows[:, order]
    return Series(x, _known(MIDDLES[centre], rows), rows)


def held(rows: np.ndarray) -> np.ndarray:
    """Rows in which a missing value takes the last one known before it.

    >>> held(np.array([[np.nan, 1.0, np.nan, 2.0, np.nan]])).tolist()
    [[nan, 1.0, 1.0, 2.0, 2.0]]
    """
    last = np.maximum.accumulate(np.where(np.isfinite(rows), np.arange(rows.shape[-1]), 0), axis=-1)
    return np.take_along_axis(rows, last, axis=-1)


def one_run(results: xr.Dataset) -> xr.Dataset:
    """The first seed whose run has a record, to be shown alone; the first of all if none has."""
    known = results["status"].notnull() & (results["status"] != FAILED)
    return results.isel(seed=int(known.values.argmax()))


def line(
    axes: Axes,
    values: xr.DataArray,
    over: str,
    colour: Any = BLUE,
    label: str | None = None,
    style: str = "-",
    centre: Centre = "median",
    spread: Literal["quartiles", "runs", "none", "auto"] = "auto",
    **look: Any,
) -> Series:
    """One arm: its middle over seeds and how the seeds spread.

    Quartiles are a band around a curve and whiskers on markers; runs are thin curves, or dots. If not said, curves get bands
    and markers (a style with "o", "s", ...) dots. Returns what was drawn, for laws to be held against it.
    """
    found = series(values, over, centre)
    marked = any(mark in style for mark in "os^vx")
    shown = ("runs" if marked else "quartiles") if spread == "auto" else spread
    if shown == "quartiles" and len(found.x):
        low, high = found.quartiles()
        if marked:
            axes.vlines(found.x, low, high, color=colour, linewidth=1)
        else:
            axes.fill_between(found.x, low, high, color=colour, alpha=0.2, linewidth=0)
    elif shown == "runs" and len(found.runs) > 1:
        thin: dict[str, Any] = {"linewidth": 0.6}
        dots: dict[str, Any] = {"marker": ".", "linestyle": "", "markersize": 3}
        axes.plot(found.x, found.runs.T, color=colour, alpha=0.35, **(dots if marked else thin))
    axes.plot(found.x, found.middle, style, color=colour, label=label, **look)
    return found


def lines(
    axes: Axes,
    values: xr.DataArray,
    over: str,
    by: str,
    label: str | Callable[[Any], str] = "{}",
    shades: Sequence[Any] | None = None,
    **options: Any,
) -> list[Series]:
    """One arm for every label along `by`; `label` is a pattern ("N = {:g}") or a function; options are those of `line`.

    `over` may differ from arm to arm (the logged steps of a cell). Arms that have no value at all are not drawn. Returns
    what there is of every arm.
    """
    drawn = []
    names = values[by].values.tolist()
    for name, colour in zip(names, colours(names) if shades is None else shades, strict=False):
        one = values.sel({by: name})
        if bool(np.isfinite(one.astype(float)).any()):
            said = label(name) if callable(label) else _filled(label, name)
            drawn.append(line(axes, one, over, colour, said, **options))
        else:
            drawn.append(series(one, over))
    return drawn


def _filled(pattern: str, name: Any) -> str:
    """A pattern with a label in place of its braces; braces of a formula stay.

    >>> _filled("$C_{p}$ = {:g}", 2.0)
    '$C_{p}$ = 2'
    """
    return re.sub(r"\{(:[^{}]*)?\}", lambda found: format(name, (found[1] or ":")[1:]), pattern)


# What is predicted -----------------------------------------------------------------------------------------------------


def law(
    axes: Axes,
    x: Any,
    y: Any,
    label: str | None = None,
    colour: Any = BLACK,
    style: str = "--",
    through: Any = None,
    at: int | None = None,
    band: tuple[Any, Any] | None = None,
    on_map: bool = False,
    **look: Any,
) -> None:
    """A predicted law over what was measured.

    A law that leaves its constant open is drawn `through` the measured values at the same places: with the mean ratio in the
    logarithm, or exactly through the one `at` an index. `band` are the ends of its interval; `on_map` gives it a rim, so
    that it is seen on any colour.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if through is not None:
        ratio = _known(lambda r: np.log(np.where(r > 0, r, np.nan)), np.asarray(through, float) / y)
        ratio = ratio if at is None else ratio[[at]]
        if not np.isfinite(ratio).any():
            return
        y = y * np.exp(ratio[np.isfinite(ratio)].mean())
    rim = [patheffects.withStroke(linewidth=3.2, foreground="white")] if on_map else None
    if band is not None:
        axes.fill_between(x, *band, color=colour, alpha=0.3, linewidth=0)
    look.setdefault("linewidth", 1.3)
    axes.plot(x, y, style, color=colour, label=label, path_effects=rim, **look)


def slope(
    axes: Axes,
    found: Series | tuple[Any, Any],
    power: float,
    label: str | None = None,
    at: int | None = 0,
    **look: Any,
) -> None:
    """A guide of a given slope on logarithmic axes, through the first measured point (or another, or all if None)."""
    x, middle = np.asarray(found[0], float), np.asarray(found[1], float)
    positive = x > 0
    said = label or f"slope {Fraction(power).limit_denominator(12)}".replace("-", "−")
    law(axes, x[positive], x[positive] ** power, said, through=middle[positive], at=at, **look)


def reference(
    axes: Axes,
    x: float | None = None,
    y: float | None = None,
    label: str | None = None,
    colour: Any = GREY,
    style: str = ":",
) -> None:
    """A vertical line at x or a horizontal one at y, named in the key."""
    if x is not None:
        axes.axvline(x, color=colour, linestyle=style, linewidth=1.1, label=label)
    if y is not None:
        axes.axhline(y, color=colour, linestyle=style, linewidth=1.1, label=None if x is not None else label)


def rows(
    axes: Axes,
    values: xr.DataArray,
    by: str,
    colour: Any = BLUE,
    label: str | None = None,
    shift: float = 0.0,
    bar: Callable[[np.ndarray], float] = np.median,
) -> None:
    """One row for every label along `by`, from the top: runs as dots, the median (or another number) as a bar. For labels
    that are words; `shift` moves an arm away from the others in its row."""
    names = values[by].values.tolist()
    for place, name in enumerate(names):
        found = np.asarray(values.sel({by: name}).values, float).ravel()
        found = found[np.isfinite(found)]
        axes.plot(found, np.full(len(found), place + shift), ".", color=colour, alpha=0.35, markersize=4)
        if len(found):
            axes.plot(bar(found), place + shift, "|", color=colour, markersize=11, markeredgewidth=2)
    if label:
        axes.plot([], [], "o", color=colour, label=label)
    axes.set_yticks(range(len(names)), [str(name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(axis="y", color="#eeeeee")


MIDDLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "median": lambda rows: np.nanmedian(rows, axis=0),
    "mean": lambda rows: np.nanmean(rows, axis=0),
    "geometric": lambda rows: np.exp(np.nanmean(np.log(np.where(rows > 0, rows, np.nan)), axis=0)),
}


def _known(statistic: Callable[[np.ndarray], np.ndarray], rows: np.ndarray) -> np.ndarray:
    """A statistic of what is known; NaN, without complaint, where nothing is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return statistic(rows)
