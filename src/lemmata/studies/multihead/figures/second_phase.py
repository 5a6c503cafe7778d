"""Training after the randomised first step, beside training from zero and without attention."""

from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, lines
from lemmata.draw.style import Drawn, canvas, log_to_zero, panel, picture, shared_key
from lemmata.figure import Claim, Figure, Made, at_most, every_run, made, ours, positive, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.trend import arms, difference, largest
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.multihead.figures.common import (
    HEADS,
    LOSS,
    RATE,
    descent,
    heads,
    log10_loss,
    seeds,
    steps_exponent,
)
from lemmata.studies.multihead.theory.conditions import corollary_2_conditions, gain_conditions
from lemmata.studies.multihead.trials import Training
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

# What is run -----------------------------------------------------------------------------------------------------------


def sweep(scale: Scale) -> Sweep:
    """The experiment's mixture with step 1: from zero, after the first step, and from zero with attention left there."""
    trial = Training(descent=descent(1.0, by_scale(scale, 60, 3000, 10_000)), first_samples=1000)
    counts = by_scale(scale, (16.0,), (4.0, 64.0, 1e6), (4.0, 16.0, 64.0, 1e6, 1e12))
    start = Axis("start", ("zero", "first step", "linear"), _started)
    return Sweep(trial, (start, heads(counts)), seeds(scale, 2, 5, 10))


def _started(trial: Training, start: str) -> Training:
    changes: dict[str, Any] = {
        "zero": {},
        "first step": {"network.start": "signs", "network.simulated": 2},
        "linear": {"descent.attention_rate": 0.0},
    }[start]
    return put_all(trial, changes)


# What is measured ------------------------------------------------------------------------------------------------------


def after_first_step(r: xr.Dataset) -> xr.DataArray:
    return over_cells(r, lambda t: t.network.start == "signs") == 1


def million_heads(r: xr.Dataset) -> xr.DataArray:
    return over_cells(r, lambda t: t.network.heads) >= 1e6


def samples_times_loss(r: xr.Dataset) -> Estimate:
    """The number of samples times the test loss at the end, for the number of heads where it is largest."""
    product = r.test_loss * over_cells(r, lambda t: t.data.samples)
    return largest(arms(chosen(product, start="first step"), "heads"))


def first_step_helps(r: xr.Dataset) -> Estimate:
    """The lead in log loss at the end over the start from zero, with the most heads."""
    losses = r.log_train_loss.isel(heads=-1)
    return difference(chosen(losses, start="zero"), chosen(losses, start="first step"))


def from_linear(r: xr.Dataset) -> xr.DataArray:
    """The difference of the log loss, at the end, between training from zero with the most heads and its linear control."""
    losses = r.log_train_loss.isel(heads=[-1])
    zero, linear = (chosen(losses, start=start).drop_vars("start") for start in ("zero", "linear"))
    return abs(zero - linear)


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Loss, error and attention over training, after the first step and from zero."""
    figure, axes = canvas(3, width=3.8, height=3.3)
    shown = {
        LOSS: log10_loss(results),
        "test error": results["test_error_curve"],
        "attention on relevant tokens": results["relevant_attention_curve"],
    }
    for axis, (label, values) in zip(axes, shown.items(), strict=True):
        for start, style, said in (("first step", "-", "after the first step"), ("zero", ":", "from zero")):
            lines(axis, values.sel(start=start), "step", "heads", f"{HEADS}, {said}", style=style)
        log_to_zero(axis, "x", 1)
        panel(axis, "steps", label, keyed=False)
    shared_key(figure, axes)
    return figure, f"Token mixture, GD with step 1. {BAND}"


# What it can refute ----------------------------------------------------------------------------------------------------


def kind(t: Any) -> str:
    """The label of the axis `start` at a trial."""
    linear = t.descent.attention_rate == 0
    return "first step" if t.network.start == "signs" else "linear" if linear else "zero"


def slowing(power: float) -> Made:
    """Training losses after the first step that are a power of the steps; from zero they go as the inverse root."""
    return made(
        train_loss_curve=lambda t, step: np.maximum(step, 1.0) ** (power if kind(t) == "first step" else -0.5)
    )


def per_sample(size: float) -> Made:
    """Test losses after the first step of such a size over the number of samples; from zero ten times as large."""
    return made(test_loss=lambda t: (size if kind(t) == "first step" else 10 * size) / t.data.samples)


def ends(noise: float = 0.01, **logs: float) -> Made:
    """Log losses at the end with a million heads; with fewer heads all starts end alike."""

    def log_loss(t: Any) -> float:
        more = logs.get(kind(t).replace(" ", "_"), 0.0)
        return -2.0 + (more if t.network.heads >= 1e6 else 0.0)

    return made(log_train_loss=log_loss, noise=noise)


second_phase = Figure(
    "second-phase", "Training after the randomised first step, beside training from zero and without attention",
    "Steps of the first phase have random signs and 1000 samples of their own. At one step size many heads hardly move their "
    "attention from zero; after the first step its share of the NTK does not depend on their number.",
    sweep, draw,
    claims=[
        Claim(
            "second-phase-rate", "After the first step the training loss is at most of order 1/steps, up to logarithms",
            theorem("Corollary 2/5"),
            number=lambda r: steps_exponent(chosen(r.train_loss_curve, start="first step")), holds=RATE,
            cells=after_first_step, conditions=corollary_2_conditions,
            refuted_by=slowing(-0.5), upheld_by=slowing(-1.0),
        ),
        Claim(
            "second-phase-test-loss", "After the first step and at least n steps the test loss is at most 1/n. Only one n is run: this tests "
            "the size, and not the order 1/n",
            theorem("Corollary 2/5"),
            number=samples_times_loss,
            holds=at_most(1.0, because="of order 1/(eta gamma^2 n) with eta = 1; gamma is below 1, so 1/n is less than what is "
                          "promised"),
            cells=after_first_step, conditions=corollary_2_conditions,
            refuted_by=per_sample(2.0), upheld_by=per_sample(0.5),
        ),
        Claim(
            "first-step-helps", "With a million heads the training loss after the first step ends below that from zero, whose "
            "NTK margin is the smaller, linear one", theorem("Proposition 2 (gamma* > gamma_lin)"),
            number=first_step_helps,
            holds=positive(because="the log loss from zero less that after the first step"),
            cells=million_heads, conditions=gain_conditions,
            refuted_by=ends(first_step=0.5), upheld_by=ends(first_step=-0.5),
        ),
        Claim(
            "many-heads-are-linear", "From zero, with a million heads, the training loss ends where that of the linear control "
            "does, within 5 %", ours("explains Proposition 2"),
            number=from_linear,
            holds=every_run(at_most(0.05, because="attention learns heads times slower; a twentieth of an e-fold is below "
                                    "what a figure shows")),
            cells=million_heads,
            refuted_by=ends(0.0, linear=0.1, first_step=-1.0), upheld_by=ends(0.0, linear=0.02, first_step=-1.0),
        ),
    ],
)  # fmt: skip
