"""How the steps of a workload grow, drawn: measured times, and the least time that the formulas allow."""

from pathlib import Path
from typing import Any

from lemmata.draw.style import BLUE, GREY, canvas, panel


def draw(name: str, found: dict[str, Any], path: Path) -> None:
    """A row of panels for each simulator, a panel for each size."""
    rows = {found.get("simulator", ""): found, **found.get("others", {})}
    most = max(len(one["growth"]) for one in rows.values())
    figure, axes = canvas(columns=most, rows=len(rows), width=2.6, height=2.6, squeeze=False)
    for row, (simulator, told) in zip(axes, rows.items(), strict=True):
        for place in row[len(told["growth"]) :]:
            place.axis("off")
        for place, (size, one) in zip(row, told["growth"].items(), strict=False):
            label = f"measured, exponent {one['exponent']:.2f}"
            place.plot(one["values"], one["seconds"], "o-", color=BLUE, label=label)
            label = f"least, exponent {one['expected']:.2f}"
            place.plot(one["values"], one["least"], "--", color=GREY, label=label)
            first = size == "cells"
            title = f"by {simulator}" if first and simulator else ""
            panel(place, size, "seconds a step" if first else "", title, log="xy", ticks=one["values"])
    figure.suptitle(f"{name}: growth of a step")
    figure.savefig(path)
