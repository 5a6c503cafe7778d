"""What all pictures share: colours that everybody can tell apart, sizes, captions."""

import json
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from cycler import cycler
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

    from lemmata.measure.compare import Verdict

# Okabe and Ito's palette.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
CYCLE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK)


def canvas(
    columns: int = 1, rows: int = 1, width: float = 4.6, height: float = 3.6, **options: Any
) -> tuple["Figure", Any]:
    """A figure with a grid of axes in the lab's style."""
    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.titlesize": 10,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "legend.frameon": False,
            "axes.prop_cycle": cycler(color=CYCLE),
            "savefig.facecolor": "white",
        }
    )
    return plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", **options
    )


def plain_log_ticks(*axes: "XAxis | YAxis") -> None:
    """Ticks at 1, 2 and 5 times powers of ten, written out: for logarithmic axes over a decade or two."""
    for axis in axes:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def settings(results: "xr.Dataset") -> dict[str, Any]:
    """The fields of the template trial of these results, by dotted path."""
    return json.loads(results.attrs["trial"])["fields"]


def caption(
    figure: "Figure", results: "xr.Dataset", text: str, verdicts: "list[Verdict] | None" = None
) -> None:
    """A line below the picture: what it shows, how many seeds, and what the verdicts are."""
    seeds = results.sizes.get("seed", 0)
    lines = [f"{text} {seeds} seed{'s' if seeds != 1 else ''} ({results.attrs.get('scale', '')} scale)."]
    if verdicts:
        lines.append("Verdicts: " + ", ".join(f"{v.id} {v.verdict}" for v in verdicts) + ".")
    figure.supxlabel("\n".join(lines), fontsize=7.5, color="#444444", x=0.01, ha="left")
