"""Pictures of the usual kind as one call: a quantity over an axis, a line for each arm, with what theory predicts dashed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import BAND, DOTS, MEAN, Centre, line, lines, reference
from lemmata.draw.palette import BLACK, BLUE, CYCLE, GREY, colours
from lemmata.draw.style import Drawn, canvas, panel, picture

Quantity = Callable[[xr.Dataset], xr.DataArray]


@dataclass(frozen=True)
class Panel:
    """One pair of axes: `show(results)` over the axis `over`.

    `arms` names the axis that has a line for each of its values, labelled by the pattern `names`; or `show` is a table of
    quantities, a line each. `law(results)` is drawn dashed in the colour of its arm, `at` horizontal lines by label. `log` is
    "x", "y" or "xy".
    """

    show: Quantity | Mapping[str, Quantity]
    over: str
    xlabel: str
    ylabel: str
    title: str = ""
    arms: str = ""
    names: str | Callable[[Any], str] = "{}"
    law: Quantity | None = None
    law_name: str = "law"
    at: Mapping[str, Callable[[xr.Dataset], Any]] | None = None
    log: str = "x"
    centre: Centre = "mean"
    style: str = "o-"

    def draw(self, axes: Axes, results: xr.Dataset) -> None:
        look: dict[str, Any] = {"style": self.style, "centre": self.centre}
        if isinstance(self.show, Mapping):
            for colour, (name, quantity) in zip(CYCLE, self.show.items(), strict=False):
                line(axes, quantity(results), self.over, colour, name, **look)
        elif self.arms:
            lines(axes, self.show(results), self.over, self.arms, self.names, **look)
        else:
            line(axes, self.show(results), self.over, BLUE, "measured" if self.law else None, **look)
        if self.law is not None:
            self._predict(axes, self.law(results))
        for name, value in (self.at or {}).items():
            reference(axes, y=float(value(results)), label=name, colour=BLACK)
        panel(axes, self.xlabel, self.ylabel, self.title, self.log)

    def _predict(self, axes: Axes, law: xr.DataArray) -> None:
        if not self.arms:
            axes.plot(law[self.over], law, "--", color=BLACK, linewidth=1, label=self.law_name)
            return
        names = law[self.arms].values.tolist()
        for name, colour in zip(names, colours(names), strict=True):
            one = law.sel({self.arms: name})
            axes.plot(
                one[self.over],
                np.asarray(one).reshape(one[self.over].size, -1),
                "--",
                color=colour,
                linewidth=1,
            )
        axes.plot([], [], "--", color=GREY, label=self.law_name)


def _legend(one: Panel) -> str:
    """What lines, bands and dots are: markers come with a dot for each seed, plain lines with a band."""
    return MEAN if one.centre == "mean" else DOTS if "o" in one.style else BAND


def panels(*each: Panel, caption: str, sharey: bool = False) -> Callable[..., Any]:
    """A picture of these panels side by side."""

    @picture
    def draw(results: xr.Dataset) -> Drawn:
        figure, grid = canvas(len(each), sharey=sharey)
        for one, axes in zip(each, np.atleast_1d(grid), strict=True):
            one.draw(axes, results)
        return figure, f"{caption} {_legend(each[0])}"

    return draw
