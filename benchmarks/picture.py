"""How the steps of a workload grow, drawn: measured times, and the least time that the formulas allow."""

from pathlib import Path
from typing import Any

from lemmata.draw.style import BLUE, GREY, canvas, panel


def draw(name: str, growth: dict[str, Any], path: Path) -> None:
    figure, axes = canvas(columns=len(growth), width=2.6, height=2.6, squeeze=False)
    for place, (size, one) in zip(axes[0], growth.items(), strict=True):
        place.plot(
            one["values"], one["seconds"], "o-", color=BLUE, label=f"measured, exponent {one['exponent']:.2f}"
        )
        label = f"least, exponent {one['expected']:.2f}"
        place.plot(one["values"], one["least"], "--", color=GREY, label=label)
        panel(place, size, "seconds a step" if size == "cells" else "", log="xy", ticks=one["values"])
    figure.suptitle(f"{name}: growth of a step")
    figure.savefig(path)
