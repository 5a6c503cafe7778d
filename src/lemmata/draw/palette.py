"""Colours that everybody can tell apart."""

from collections.abc import Iterable
from typing import Any

import matplotlib
import numpy as np

# Okabe and Ito's palette.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, RED, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
GREY, NOTHING = "#808080", "#dddddd"
CYCLE = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, GREY)


def colours(labels: Iterable[Any]) -> list[Any]:
    """A colour for each label: shades from dark to light where labels are numbers and so have an order, else apart."""
    names = list(labels)
    if len(names) < 2 or not all(isinstance(name, int | float | np.number) for name in names):
        return [CYCLE[i % len(CYCLE)] for i in range(len(names))]
    return [matplotlib.colormaps["viridis"](at) for at in np.linspace(0.0, 0.88, len(names))]
