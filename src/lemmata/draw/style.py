"""What every picture shares: colours that everybody can tell apart, sizes, axes, ticks, keys and captions.

A picture is drawn in the lab's style whatever the session's is, and leaves the session's as it was.
"""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from io import BytesIO
from math import log10
from typing import TYPE_CHECKING, Any

import matplotlib
import matplotlib.style
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from lemmata.draw.palette import (  # noqa: F401  (the colours are part of the style)
    BLACK,
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    NOTHING,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    YELLOW,
    colours,
)
from lemmata.measure.estimate import Unmeasurable
from lemmata.status import CONVERGED, STATUS

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axis import Axis
    from matplotlib.legend import Legend

    from lemmata.measure.compare import Verdict

DPI = 160

STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=CYCLE),
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "errorbar.capsize": 2,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.title_fontsize": 7.5,
    "figure.dpi": 100,
    "savefig.dpi": DPI,
    "savefig.facecolor": "white",
}


def lab_style() -> AbstractContextManager[None]:
    """The lab's style for as long as the context lasts; the session's own comes back after it."""
    return matplotlib.style.context(STYLE, after_reset=True)


class Picture(Figure):
    """A figure that keeps the lab's style wherever it is drawn (ticks are made at the last moment), belongs to no window
    and shows itself in a notebook."""

    def draw(self, renderer: Any) -> None:
        with lab_style():
            super().draw(renderer)

    def savefig(self, fname: Any, **options: Any) -> None:
        with lab_style():
            super().savefig(fname, **{"bbox_inches": "tight", **options})

    def _repr_png_(self) -> bytes:
        page = BytesIO()
        self.savefig(page, format="png")
        return page.getvalue()


Drawn = tuple[Figure, str]
"""A figure and what it shows, in words."""


def picture(draw: "Callable[[xr.Dataset], Drawn]") -> Callable[..., Figure]:
    """Decorates a drawing of results that returns a figure and what it shows: draws it in the lab's style and writes the
    caption. What comes out takes the results and, if there are any, the verdicts. Results that lack what a measure needs
    give a blank picture that says so."""

    @wraps(draw)
    def drawn(results: "xr.Dataset", verdicts: "Sequence[Verdict]" = ()) -> Figure:
        with lab_style():
            try:
                figure, text = draw(results)
            except Unmeasurable as lack:
                figure, text = blank(), f"Nothing to draw: {lack}"
            caption(figure, results, text, verdicts)
        return figure

    return drawn


def canvas(
    columns: int = 1, rows: int = 1, width: float = 4.6, height: float = 3.6, **options: Any
) -> tuple[Figure, Any]:
    """A figure with a grid of axes in the lab's style; options are those of `subplots`."""
    with lab_style():
        figure = Picture(figsize=(width * columns, height * rows), layout="constrained")
        return figure, figure.subplots(rows, columns, **options)


def blank() -> Figure:
    """A canvas with nothing on it."""
    figure, axes = canvas(height=1.0)
    axes.axis("off")
    return figure


# Axes ------------------------------------------------------------------------------------------------------------------


def panel(
    axes: Axes,
    xlabel: str = "",
    ylabel: str = "",
    title: str = "",
    log: str = "",
    ticks: Any = None,
    keyed: bool = True,
    key_title: str = "",
    **limits: Any,
) -> None:
    """Finish a panel: its labels, logarithmic axes (`log` is "x", "y" or "xy"), `ticks` at the grid's own x values, limits,
    and under it the key to what was drawn with a label."""
    axes.set(xlabel=xlabel, ylabel=ylabel)
    if title:
        axes.set_title(title)
    for name in log:
        logarithmic(axes, name)
    axes.set(**limits)
    for name in log:
        plain_log_ticks(axes.xaxis if name == "x" else axes.yaxis)
    if ticks is not None:
        ticks_at(axes.xaxis, ticks)
    if keyed:
        key(axes, key_title)


def logarithmic(axes: Axes, name: str) -> None:
    """Make an axis ("x" or "y") logarithmic; what has no logarithm is left out, and where nothing has, it stays linear."""
    if not np.isfinite((axes.xaxis if name == "x" else axes.yaxis).get_minpos()):
        return
    (axes.set_xscale if name == "x" else axes.set_yscale)("log", nonpositive="mask")


def log_to_zero(axes: Axes, name: str, smallest: float) -> None:
    """Make an axis logarithmic down to the smallest value that matters, and from there linear to zero."""
    (axes.set_xscale if name == "x" else axes.set_yscale)("symlog", linthresh=smallest)
    if name == "x":
        axes.set_xlim(left=0)
        return
    axes.set_ylim(bottom=-0.1 * smallest)
    axes.set_yticks([tick for tick in axes.get_yticks() if tick >= 0])


def plain_log_ticks(*axes: "Axis") -> None:
    """Numbers written out on logarithmic axes that span few decades, at round numbers where there are not enough powers of
    ten; wider axes keep their powers."""
    for axis in axes:
        low, high = sorted(axis.get_view_interval())
        if not 0 < low < high:
            continue
        decades = log10(high / low)
        if decades > 4 or low < 1e-4 or high > 1e6:
            continue
        many = LogLocator(subs=(1.0, 2.0, 5.0) if decades < 2 else (1.0,))
        axis.set_major_locator(many if decades > 0.9 else MaxNLocator(5, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def ticks_at(axis: "Axis", values: Any, most: int = 9) -> None:
    """Ticks at the grid's own values, written out, and nowhere else; where they would run into each other, some have no
    number."""
    places = np.unique(np.asarray(values, float))
    at = np.log(places) if axis.get_scale() == "log" and (places > 0).all() else places
    apart = np.ptp(at) / most
    written: list[str] = []
    last = -np.inf
    for place, here in zip(places, at, strict=True):
        free = here - last >= apart
        last = here if free else last
        written.append(f"{place:g}" if free else "")
    axis.set_ticks(places.tolist(), written)
    axis.set_minor_locator(NullLocator())


# Keys and captions -----------------------------------------------------------------------------------------------------

UNDER = 37  # points from the frame of the axes to its key: ticks, their numbers and the label of the axis


def key(axes: Axes, title: str = "") -> "Legend | None":
    """The key under its axes, where it covers nothing, in as many columns as fit."""
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return None
    figure = axes.get_figure(root=True)
    assert figure is not None
    spec = axes.get_subplotspec()
    share = 1 / spec.get_gridspec().ncols if spec else 1.0
    down = ScaledTranslation(0, -UNDER / 72, figure.dpi_scale_trans)
    return axes.legend(
        handles,
        labels,
        title=title or None,
        alignment="left",
        loc="upper left",
        bbox_to_anchor=(0, 0),
        bbox_transform=axes.transAxes + down,
        borderaxespad=0,
        ncols=_fitting(labels, share * figure.get_figwidth() - 0.8),
    )


def shared_key(figure: Figure, panels: Any) -> None:
    """One key for several panels, above them all; what has the same label stands there once."""
    entries: dict[str, Any] = {}
    for axes in np.ravel(panels):
        handles, labels = axes.get_legend_handles_labels()
        entries |= {name: one for name, one in zip(labels, handles, strict=True) if name not in entries}
    if not entries:
        return
    columns = _fitting(list(entries), figure.get_figwidth() - 0.3)
    figure.legend(list(entries.values()), list(entries), loc="outside upper left", ncols=columns)


def _fitting(labels: Sequence[str], inches: float) -> int:
    """How many columns of a key fit into a width; characters are taken as 4.1 points, a handle as 36."""
    widest = max(4.1 * len(re.sub(r"\\[a-zA-Z]+|[\\${}^_]", "", label)) + 36 for label in labels)
    return max(1, min(len(labels), int(72 * inches / widest)))


def caption(
    figure: Figure, results: "xr.Dataset", text: str, verdicts: "Sequence[Verdict] | None" = ()
) -> None:
    """Below the picture: what it shows, how many seeds at which scale, what became of runs that did not end well, and in
    short what was judged."""
    text = text if text.endswith((".", ";", ":")) else f"{text}."
    said = " ".join(filter(None, (text, _runs(results), _judged(verdicts or ()))))
    held = "".join(part.replace(" ", "\0") if i % 2 else part for i, part in enumerate(_math(said)))
    lines = textwrap.wrap(
        held, int(17.5 * figure.get_figwidth()), break_long_words=False, break_on_hyphens=False
    )
    figure.supxlabel(
        "\n".join(lines).replace("\0", " "), fontsize=7.5, color="#333333", x=0.01, ha="left", linespacing=1.3
    )


def _math(text: str) -> list[str]:
    """A text in pieces, every second one a formula with its dollars: a line must not break inside."""
    pieces = text.split("$")
    return [f"${piece}$" if i % 2 else piece for i, piece in enumerate(pieces)]


def _runs(results: "xr.Dataset") -> str:
    seeds = results.sizes.get("seed", 0)
    said = [f"{seeds} seed{'' if seeds == 1 else 's'}"] if seeds else []
    if scale := results.attrs.get("scale"):
        said.append(f"{scale} scale")
    if reading := results.attrs.get("reading"):
        said.append(f"reading: {reading}")
    lost = [f"{count} {name}" for name, count in statuses(results).items() if name != STATUS[CONVERGED]]
    text = "; ".join(filter(None, (", ".join(said), "runs: " + ", ".join(lost) if lost else "")))
    return f"{text}." if text else ""


def statuses(results: "xr.Dataset") -> Mapping[str, int]:
    """How many runs ended in which way, those that there are."""
    if "status" not in results:
        return {}
    codes = np.asarray(results["status"].values, float).ravel()
    counts = {name: int((codes == code).sum()) for code, name in enumerate(STATUS)}
    return {name: count for name, count in counts.items() if count}


def _judged(verdicts: "Sequence[Verdict]") -> str:
    """ "4 claims: 2 confirmed, 1 does not extend (paper-curve), 1 open": names for those that fail."""
    if not verdicts:
        return ""
    if any(v.scale == "smoke" for v in verdicts):
        return "Smoke scale: no verdicts."
    order = {"holds": 0, "fails": 1, "inconclusive": 2}
    found: dict[str, list[Verdict]] = {}
    for verdict in sorted(verdicts, key=lambda v: order[v.verdict]):
        found.setdefault(verdict.word, []).append(verdict)
    said = []
    for word, own in found.items():
        failing = dict.fromkeys(v.id for v in own if v.verdict == "fails")
        said.append(f"{len(own)} {word}" + (f" ({', '.join(failing)})" if failing else ""))
    return f"{len(verdicts)} claim{'s' if len(verdicts) > 1 else ''}: {', '.join(said)}."
