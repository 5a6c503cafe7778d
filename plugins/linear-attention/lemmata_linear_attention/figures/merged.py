"""Figures 1 and X1: heads with merged keys and queries learn everything at one drop, after a time that is a logarithm."""

from collections.abc import Callable
from functools import partial
from math import log

import numpy as np
import xarray as xr

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, Made, about, at_most, every_run, identity, made, positive, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.compare import Condition
from lemmata.measure.estimate import Estimate
from lemmata.measure.line import straight_line
from lemmata.measure.trend import rises
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep, axis

from ..theory import eigenvalues, escape_rate, half_time, small_start
from ..trials import Training
from .common import descent, height, labels, made_map, map_gap, minimum, of_runs, rate, stops, times

COVARIANCES = {0.0: "white", 1.0: "decaying"}


def merged(scale: Scale, init: float) -> Training:
    return Training(layer="merged", heads=8, init=init, descent=descent(scale, 3000, 6000))


def sweep(scale: Scale) -> Sweep:
    seeds = tuple(range(by_scale(scale, 2, 5, 20)))
    return Sweep(merged(scale, 1e-6), (axis("data.power", tuple(COVARIANCES)),), seeds)


def starts(scale: Scale) -> Sweep:
    inits = by_scale(scale, (1e-4, 1e-3, 1e-2), (1e-6, 1e-4, 1e-2), (1e-8, 1e-6, 1e-4, 1e-2))
    seeds = tuple(range(by_scale(scale, 2, 5, 10)))
    return Sweep(merged(scale, 1e-4), (axis("data.power", tuple(COVARIANCES)), axis("init", inits)), seeds)


def with_logarithm(results: xr.Dataset) -> xr.Dataset:
    return results.assign_coords(log_start=-np.log(results.init))


def conditions(trial: Training) -> list[Condition]:
    return [small_start(trial)]


def stops_between(results: xr.Dataset) -> xr.DataArray:
    """How often the error stops at least 0.02 of the trace away from its first and its last value."""
    step = results.step.values

    def number(curve: np.ndarray) -> float:
        found = curve[stops(curve, step)]
        return np.sum((found < curve[0] - 0.02) & (found > curve[-1] + 0.02))

    return of_runs(number, results.error_curve, core=[["step"]])


def drops(count: int) -> Made:
    """An error that falls in so many equal drops."""

    def curve(trial: Training, step: np.ndarray) -> np.ndarray:
        places = np.geomspace(10, 1000, count + 2)[1:-1]
        fallen = sum((step / one) ** 12 / (1 + (step / one) ** 12) for one in places) / count
        return 1 - (1 - height(trial, -1)) * fallen

    return made(error_curve=curve, noise=0.0)


fig1 = Figure(
    "fig1",
    "Loss of linear attention with merged keys and queries",
    setup="D = 4, N = 31, eight heads, a start of 1e-6, over all prompts; white data, and eigenvalues 4 : 3 : 2 : 1.",
    sweep=sweep,
    labels=labels,
    picture=panels(
        Panel(
            lambda r: r.error_curve, "step", "step", "loss", arms="power", names=COVARIANCES.get, style="-"
        ),
        caption="The loss of merged heads. The median over runs.",
    ),
    claims=[
        Claim(
            "merged-limit",
            "In every run the learned map ends at the global minimum A* of (11)",
            theorem("(11)"),
            headline=True,
            number=partial(map_gap, target=minimum),
            holds=identity(1e-6, because="the slowest direction has shrunk by far more at the end"),
            conditions=conditions,
            refuted_by=made_map(lambda t: 1 + 3e-6),
            upheld_by=made_map(lambda t: 1 + 3e-7),
        ),
        Claim(
            "one-drop",
            "In no run does the loss of merged heads stop between its first value and its minimum",
            theorem("(9)"),
            number=stops_between,
            holds=every_run(at_most(0.5, because="the number is a count")),
            conditions=conditions,
            refuted_by=drops(2),
            upheld_by=drops(1),
            unnoticed={"times 10": "a count of 0 stays 0"},
        ),
    ],
)


def slope_of(results: xr.Dataset, power: float) -> Estimate:
    """The rise of the half time per ln(1/w), times ||Lambda^2||_F."""
    own = chosen(results, power=power)
    product = times(own, "half") * over_cells(own, lambda t: escape_rate(eigenvalues(t)))
    return straight_line(product, "log_start", paired=True).slope


def own_half_time(trial: Training) -> float:
    return half_time(eigenvalues(trial), trial.data.context, float(trial.init))


def relative_gap(results: xr.Dataset) -> xr.DataArray:
    white = chosen(results, power=0.0)
    return abs(times(white, "half") / over_cells(white, own_half_time) - 1)


def halved(time: Callable[[Training], float], noise: float = 1e-3) -> Made:
    """Maps that are half learned at this time t/tau."""
    return made(half=lambda t: time(t) / rate(t), noise=noise)


def logarithmic(slope: float) -> Made:
    return halved(lambda t: (5 + slope * log(1 / t.init)) / escape_rate(eigenvalues(t)))


escape = Figure(
    "escape",
    "When merged heads leave the origin",
    setup="As Figure 1, over the size of the start. The same draw of weights is scaled to every size.",
    sweep=starts,
    labels=labels,
    derived=with_logarithm,
    picture=panels(
        Panel(
            lambda r: times(r, "half"),
            "log_start",
            r"$\ln(1/w_{init})$",
            r"time to half of $A^*$, in $\tau$",
            arms="power",
            names=COVARIANCES.get,
            law=lambda r: over_cells(r, lambda t: log(1 / t.init) / escape_rate(eigenvalues(t))),
            law_name=r"$\ln(1/w)\,/\,||\Lambda^2||$",
            log="",
        ),
        Panel(relative_gap, "init", "standard deviation of the start", "relative distance from (10)"),
        caption="Left: merged heads learn after a time that goes as the logarithm of the start. Right: against (10).",
    ),
    claims=[
        Claim(
            "escape-slope",
            "The time of the drop rises by tau / ||Lambda^2||_F with ln(1/w_init)",
            theorem("(10)"),
            headline=True,
            number=lambda r: {name: slope_of(r, power) for power, name in COVARIANCES.items()},
            holds=about(
                1.0,
                0.98,
                1.02,
                because="the largest eigenvalue in place of the norm would be off by a half and more",
            ),
            conditions=conditions,
            refuted_by=logarithmic(1.05),
            upheld_by=logarithmic(1.0),
        ),
        Claim(
            "merged-time",
            "As the start shrinks, the time of the drop comes closer to that of (10), relative to it",
            theorem("(10)"),
            number=lambda r: rises(relative_gap(r), "init"),
            holds=positive(
                "the start of (10) is aligned, ours is drawn: a constant delay is a smaller share of a longer time"
            ),
            conditions=conditions,
            refuted_by=halved(lambda t: own_half_time(t) * (1 + 0.01 * log(1 / t.init)), 1e-4),
            upheld_by=halved(lambda t: own_half_time(t) + 1, 1e-4),
        ),
    ],
)
