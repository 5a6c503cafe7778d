"""What the experiments share: axes, descents, numbers along heads and steps, and how curves are drawn."""

from collections.abc import Iterable, Mapping
from math import log, sqrt
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.descent import Descent
from lemmata.draw.curves import line, lines, reference
from lemmata.draw.palette import BLACK, CYCLE
from lemmata.draw.style import log_to_zero, panel
from lemmata.figure import Holds, at_most, every_run, positive
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.times import at_step, time_exponent
from lemmata.measure.trend import largest
from lemmata.scale import Scale, by_scale
from lemmata.studies.multihead.data import PlantedAttention
from lemmata.studies.multihead.theory.forecast import Forecast
from lemmata.studies.multihead.trials import Training
from lemmata.sweep import Axis, axis
from lemmata.trial import put_all

BELOW_BOUND = every_run(
    at_most(1 + 1e-9, because="a proved bound: one run above it refutes it; the slack is for rounding")
)
RATE = at_most(
    -0.9,
    because="an upper bound with logarithms: steeper than -1 is allowed, flatter than -0.9 is not",
)
ROUNDING = 1e-14


def step_of(what: str) -> Holds:
    """A change in the claimed direction from each number of heads to the next; any positive one counts."""
    return positive(because=f"the smallest {what} from one number of heads to the next")


DELTA = r"distance of the target $\Delta$"
HEADS = "H = {:g}"
LOSS = "log10 training loss"
METHODS = {
    "gd": "GD, step $\\sqrt{H}$",
    "gd, a tenth": "GD, step $0.1 \\sqrt{H}$",
    "gd, a fiftieth": "GD, step $0.02 \\sqrt{H}$",
    "momentum": "momentum 0.9, step $\\sqrt{H}$",
    "adam": "Adam, step 0.06",
}
PLACES: dict[str, dict[str, Any]] = {
    "relevant tokens anywhere": {},
    "at the same places": {"data.positions": "prefix"},
}
STEPS: dict[str, dict[str, Any]] = {"random signs": {}, "uniform on [-1, 1]": {"alpha": "interval"}}

# What is run -----------------------------------------------------------------------------------------------------------


def template() -> Forecast:
    """What `predict` starts from: bounds on the data, a target, heads, steps; and a token mixture."""
    return Forecast()


def seeds(scale: Scale, smoke: int, quick: int, paper: int) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, smoke, quick, paper)))


def heads(values: Iterable[float]) -> Axis:
    return axis("network.heads", values)


def mixture_heads(scale: Scale) -> Axis:
    return heads(by_scale(scale, (1.0, 16.0), (1.0, 4.0, 16.0, 64.0), (1.0, 4.0, 16.0, 64.0)))


def planted_heads(scale: Scale) -> Axis:
    return heads(by_scale(scale, (1.0, 4.0), (1.0, 4.0, 16.0), (1.0, 4.0, 16.0)))


def descent(rate: float, steps: int) -> Descent:
    return Descent(learning_rate=rate, stop="cap", steps=steps, logs=60)


def planted(scale: Scale) -> PlantedAttention:
    return PlantedAttention(samples=100, test_samples=100) if scale == "smoke" else PlantedAttention()


CONSTANTS = {"": 1.0, "a tenth": 0.1, "a fiftieth": 0.02}
"""The constants of the step that grows with the square root of the heads."""


def with_method(trial: Training, method: str) -> Training:
    """Adam keeps one step size for all numbers of heads; the others let it grow with their square root."""
    word, _, share = method.partition(", ")
    rate, growth = (0.06, 0.0) if word == "adam" else (CONSTANTS[share], 0.5)
    return put_all(trial, {"descent.method": word, "descent.learning_rate": rate, "growth": growth})


def method_of(trial: Any) -> str:
    """The label of the axis `optimiser` at a trial."""
    word, rate = trial.descent.method, trial.descent.learning_rate
    share = next((name for name, constant in CONSTANTS.items() if constant == rate), "")
    return f"{word}, {share}" if share else word


def with_mean_loss(r: xr.Dataset) -> xr.Dataset:
    """Add the mean of the loss over the steps of a run, without the start."""
    return r.assign(mean_loss=r.loss_sum / r.steps)


# What several figures measure ------------------------------------------------------------------------------------------


def at(r: xr.Dataset, curve: str, step: int, optimiser: str = "") -> xr.DataArray:
    """A curve at a step, of one optimiser where there are several."""
    return at_step((chosen(r, optimiser=optimiser) if optimiser else r)[f"{curve}_curve"], step)


def steps_exponent(curves: xr.DataArray) -> Estimate:
    """The exponent of curves in time over the last half-decade of steps, for the arm where it is flattest."""
    over = [d for d in curves.dims if d not in ("seed", "step")]
    places = curves.stack(place=over).transpose("place", ...)
    return largest([places.isel(place=i) for i in range(places.sizes["place"])], _late_exponent)


def _late_exponent(curve: xr.DataArray, level: float) -> Estimate:
    return time_exponent(curve, curve.step >= float(curve.step.max()) / sqrt(10), level=level)


def together(parts: Iterable[xr.DataArray]) -> xr.DataArray:
    """Put several numbers of every run side by side. The judge takes the worst."""
    return xr.concat(list(parts), "part", coords="minimal", compat="override", join="override")


def undescended(worst: xr.DataArray) -> xr.DataArray:
    """2 where a step of a run did not descend enough, 0 where all did."""
    return xr.where(worst > ROUNDING, 2.0, 0.0).where(worst.notnull())


# How it looks ----------------------------------------------------------------------------------------------------------


def curves(
    axes: Axes, values: xr.DataArray, label: str, log: str = "", runs: bool = False, **limits: Any
) -> None:
    """Draw a curve over training for every number of heads, from step 0 on, with bands or every run, without a key."""
    lines(axes, values, "step", "heads", HEADS, spread="runs" if runs else "auto")
    log_to_zero(axes, "x", 1)
    panel(axes, "steps", label, log=log, keyed=False, **limits)


def log10_loss(results: xr.Dataset) -> xr.DataArray:
    return results["log_train_loss_curve"] / log(10)


def largest_ratios(axes: Axes, ratios: Mapping[str, xr.DataArray], over: str) -> None:
    """Draw the largest ratio of measured to bound over everything but one axis; at most 1 where the theory is right."""
    for (name, values), colour in zip(ratios.items(), CYCLE, strict=False):
        most = values.max([d for d in values.dims if d != over])
        line(axes, most, over, colour, name, "o-")
    reference(axes, y=1, label="bound", colour=BLACK, style="--")


# Made results ----------------------------------------------------------------------------------------------------------


def over_heads(t: Any, power: float, step: Any, at: int, optimiser: str = "") -> Any:
    """A power of the heads near a step and of one optimiser (of all, if none is named); elsewhere its inverse."""
    right = optimiser in ("", method_of(t))
    return t.network.heads ** np.where(right & (step > 0.7 * at) & (step < 1.4 * at), power, -power)
