"""Convergence times at Figure 1's sizes: against signal norm, samples and target loss."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import xarray as xr

from lemmata.draw.curves import DOTS, lines, slope
from lemmata.draw.palette import GREY
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Conditions, Figure, about, made, ours, theorem
from lemmata.measure.columns import capped
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.results import over_cells
from lemmata.scale import Scale
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.figures.common import (
    SLOPE_WHY,
    always,
    derived,
    labels,
    seeds,
    small,
    template,
)
from lemmata.studies.benign_overfitting.theory import benign_conditions, harmful_conditions
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.sweep import Sweep, axis
from lemmata.trial import put_all

# What is run -----------------------------------------------------------------------------------------------------------


def timed(**changes: Any) -> BenignOverfitting:
    """Figure 1's sizes, trained ten times further down than the paper does, because the 1/eps law is one for small eps."""
    named = {path.replace("__", "."): value for path, value in changes.items()}
    return put_all(template(), {"descent.target_loss": 0.001, **named})


def over_norms(scale: Scale) -> Sweep:
    trial, norms = timed(data__samples=20), (60.0, 70.0, 80.0, 90.0, 100.0)
    if scale == "smoke":
        trial = put_all(small(trial), {"data.samples": 8, "network.readout_divisor": 2.0})
        norms = (40.0, 60.0, 80.0)
    return Sweep(trial, (axis("data.signal_norm", norms),), seeds(scale, 2, 4, 20))


def over_samples(scale: Scale) -> Sweep:
    trial, samples = timed(data__signal_norm=10.0), (4, 6, 10, 14, 20)
    if scale == "smoke":
        trial = put_all(small(trial), {"data.signal_norm": 1.0, "network.readout_divisor": 2.0})
        samples = (2, 4, 6)
    return Sweep(trial, (axis("data.samples", samples),), seeds(scale, 2, 4, 20))


# What is measured ------------------------------------------------------------------------------------------------------


def loss_time_exponent(r: xr.Dataset) -> Estimate:
    """The exponent of the steps in eps over the three smallest levels, where the law is asymptotic."""
    steps = r.loss_steps.where(r.loss_steps > 0).isel(loss_level=slice(-3, None))
    others = [d for d in steps.dims if d not in ("seed", "loss_level")]
    return exponent(steps.mean(others), "loss_level", paired=True)


def time_constant(r: xr.Dataset, rate: Callable[[theory.Setting], float]) -> Estimate:
    """Measured over predicted convergence time, each run with its own read-out norm."""

    def unit(trial: Any) -> float:
        """The predicted time for a read-out of norm 1, where the run has its own."""
        s = replace(theory.setting(trial), readout_norm=1.0)
        return theory.convergence_time(rate(s), s.target_loss)

    return mean(r.steps * r.readout_square / over_cells(r, unit))


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Steps to each loss level, against the axis and against the level, with the slopes of the theorem."""
    (name,) = [d for d in results.steps.dims if d != "seed"]
    label, power = {"signal_norm": (r"signal norm $|\mu|$", -2), "samples": ("samples N", 1)}[str(name)]
    figure, (left, right) = canvas(2)
    reached = results.loss_steps.where(results.loss_steps > 0)
    drawn = lines(left, reached, str(name), "loss_level", "ε = {:g}", style="o-")
    slope(left, drawn[-1], power, colour=GREY)
    drawn = lines(right, reached, "loss_level", str(name), "{:g}", style="o-")
    slope(right, drawn[0], -1, colour=GREY)
    panel(left, label, "steps until training loss ≤ ε", "time against size", "xy", ticks=results[name])
    panel(right, "target loss ε", "", "time against target loss", "xy", key_title=label)
    return figure, f"Steps to reach a training loss. {DOTS}"


# What it can refute ----------------------------------------------------------------------------------------------------


def in_loss(id: str, regime: str, where: str, conditions: Conditions) -> Claim:
    """The time goes as 1/eps."""
    return Claim(
        id, f"{regime} convergence time goes as 1/eps", theorem(where),
        number=loss_time_exponent, holds=about(-1.0, -1.15, -0.85, because=SLOPE_WHY), conditions=conditions,
        uses=("capped",), refuted_by=made(loss_steps=lambda t, loss_level: 100 * loss_level**-0.7),
    )  # fmt: skip


MEAN_FIELD_WHY = "mean field starts at saturated attention; what comes before is a fraction of the whole time"


def benign_times(factor: float, power: float = -2.0):
    """Steps of 2 / (eta eps |mu|^2 |w_O|^2) times this, at eta = 0.1, eps = 0.001 and |w_O|^2 = 1/768."""
    return made(
        steps=lambda t: factor * 2e4 * 768 * 60 ** (-2 - power) * t.data.signal_norm**power,
        readout_square=always(1 / 768),
        loss_steps=lambda t, loss_level: 100 / loss_level,
    )


def harmful_times(factor: float, power: float = 1.0):
    """Steps of N / (eta eps C_p^2 sigma_p^2 d |w_O|^2) times this, at the same step, loss and read-out."""
    return made(
        steps=lambda t: factor * 1e4 * 768 * t.data.samples**power / (0.04 * 400 * 1024),
        readout_square=always(1 / 768),
        loss_steps=lambda t, loss_level: 100 / loss_level,
    )


time_benign = Figure(
    "time-benign", "Convergence time against signal norm and target loss, benign regime",
    "Sizes of fig1, N = 20; trained to loss 0.001, because the law is one for small eps.", over_norms, draw, labels=labels,
    derived=derived, upheld_by=benign_times(1.0),
    claims=[
        Claim(
            "time-signal", "Benign convergence time is Theta(1/(eta eps |mu|^2 |w_O|^2)): it goes as |mu|^-2",
            theorem("Theorem 4.1"),
            number=lambda r: exponent(r.steps, "signal_norm", censored=capped(r)),
            holds=about(-2.0, -2.3, -1.7, because=SLOPE_WHY), conditions=benign_conditions, uses=("capped",),
            refuted_by=benign_times(1.0, power=-1.5),
        ),
        in_loss("time-eps-benign", "Benign", "Theorem 4.1", benign_conditions),
        Claim(
            "time-constant-benign", "Benign convergence time is 2/(eta eps |mu|^2 |w_O|^2), within 30 %",
            ours("README, times"),
            number=lambda r: time_constant(r, theory.benign_rate), holds=about(1.0, 0.7, 1.3, because=MEAN_FIELD_WHY),
            conditions=benign_conditions, refuted_by=benign_times(1.6),
        ),
    ],
)  # fmt: skip

time_harmful = Figure(
    "time-harmful", "Convergence time against samples and target loss, harmful regime",
    "Sizes of fig1, |mu| = 10; trained to loss 0.001.", over_samples, draw, labels=labels, derived=derived,
    upheld_by=harmful_times(1.0),
    claims=[
        Claim(
            "time-samples", "Harmful convergence time is Theta(N/(eta eps sigma_p^2 d |w_O|^2)): it goes as N",
            theorem("Theorem 4.2"),
            number=lambda r: exponent(r.steps, "samples", censored=capped(r)),
            holds=about(1.0, 0.85, 1.15, because=SLOPE_WHY), conditions=harmful_conditions, uses=("capped",),
            refuted_by=harmful_times(1.0, power=1.3),
        ),
        in_loss("time-eps-harmful", "Harmful", "Theorem 4.2", harmful_conditions),
        Claim(
            "time-constant-harmful", "Harmful convergence time is N/(eta eps C_p^2 sigma_p^2 d |w_O|^2), within 30 %",
            ours("README, times"),
            number=lambda r: time_constant(r, theory.harmful_rate), holds=about(1.0, 0.7, 1.3, because=MEAN_FIELD_WHY),
            conditions=harmful_conditions, refuted_by=harmful_times(1.6),
        ),
    ],
)  # fmt: skip
