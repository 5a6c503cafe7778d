"""The strong noise token: the boundary against its strength C_p, and what happens without one."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import DOTS, lines, reference
from lemmata.draw.palette import BLACK
from lemmata.draw.phase import Line, phase_diagram
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, about, at_most, made, ours
from lemmata.measure.boundary import boundary
from lemmata.measure.levelset import level_set
from lemmata.measure.simple import mean
from lemmata.results import settings
from lemmata.scale import Scale, by_scale
from lemmata.status import CAPPED, DIVERGED
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.figures.common import (
    CONSTANT,
    CONTROL,
    CUT,
    RELATIVE,
    always,
    at_control,
    derived,
    labels,
    loss_beyond,
    seeds,
    small,
    template,
    wins,
    wins_beyond,
)
from lemmata.studies.benign_overfitting.theory import conditions
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.sweep import Axis, Sweep, axis, geometric
from lemmata.trial import put_all

# What is run -----------------------------------------------------------------------------------------------------------


def over_ratios(scale: Scale) -> Sweep:
    trial = put_all(template(), {"data.samples": 8, "network.readout_divisor": 1.0})
    ratios = by_scale(scale, (5.0, 20.0), (5.0, 8.0, 12.0, 20.0), (4.0, 5.0, 7.0, 10.0, 14.0, 20.0, 28.0))
    relative = by_scale(scale, (0.1, 10.0), geometric(0.2, 8, 10), geometric(0.1, 10, 20))

    def at_relative(trial: BenignOverfitting, ratio: float) -> BenignOverfitting:
        return at_control(trial, ratio * theory.critical_control(trial.data.noise_ratio))

    controls = Axis("relative_control", relative, at_relative)
    trial = small(trial) if scale == "smoke" else trial
    return Sweep(trial, (axis("data.noise_ratio", ratios), controls), seeds(scale, 2, 4, 10))


def without(scale: Scale) -> Sweep:
    trial = put_all(template(), {"data.noise_ratio": 1.0, "network.readout_divisor": 1.0})
    samples = by_scale(scale, (4,), (4, 8), tuple(range(2, 21, 2)))
    grid = by_scale(scale, (0.5, 50.0), geometric(0.25, 1000, 10), geometric(0.1, 4000, 20))
    controls = Axis("control", grid, at_control)
    trial = small(trial) if scale == "smoke" else trial
    return Sweep(trial, (axis("data.samples", samples), controls), seeds(scale, 2, 3, 10))


# What is measured ------------------------------------------------------------------------------------------------------


def squared(power: float) -> float:
    """The power of C_p, of which the unit 2 C_p^2 of `relative_control` has taken out 2."""
    return power + 2


def high_losses(r: xr.Dataset) -> xr.DataArray:
    """Runs that did not generalise: a test loss above 0.4, more than half of that of a coin."""
    return r.test_loss > 0.4


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw_ratios(results: xr.Dataset) -> Drawn:
    """Test loss over C_p and N SNR^2, with the mean-field boundary 2 C_p^2."""
    figure, axes = canvas(width=5.6, height=4.0)
    boundary = Line(r"mean field: $2C_p^2$", np.ones_like, BLACK, ":")
    diverged = (results.status == DIVERGED).any("seed")
    mean = results.test_loss.mean("seed")
    mesh = phase_diagram(
        axes, mean, "relative_control", "noise_ratio", [boundary], True, True, diverged=diverged
    )
    figure.colorbar(mesh, ax=axes, label="test loss")
    panel(axes, RELATIVE, r"strong over weak noise $C_p$")
    return figure, f"N = {settings(results)['data.samples']}; mean over seeds."


@picture
def draw_without(results: xr.Dataset) -> Drawn:
    """Test loss and attention without a strong noise token."""
    figure, (left, right) = canvas(2)
    lines(left, results.test_loss, "control", "samples", "N = {:g}", style="o-")
    reference(left, x=2.0, label=r"$2C_p^2 = 2$", colour=BLACK)
    attention = results.attention.sel(query="signal")
    lines(right, attention.sel(key="signal"), "control", "samples", "on the signal, N = {:g}", style="o-")
    lines(right, results.noise_share, "control", "samples", "most on one noise token, N = {:g}", style="s--")
    reference(right, y=1 / settings(results)["data.tokens"], label="uniform 1/M", style="--")
    panel(left, CONTROL, "test loss", "generalisation", "x")
    panel(right, CONTROL, "attention of the signal query", "attention", "x", ylim=(0, 1.03))
    return figure, f"$C_p = 1$: no noise token is special. {DOTS}"


# What it can refute ----------------------------------------------------------------------------------------------------


def losing(power: float):
    """A test loss that passes 0.2, and a signal that wins, where N SNR^2 passes 2 C_p^2 at C_p = 10, times a power of C_p."""

    def control(t: BenignOverfitting) -> float:
        return 200 * (t.data.noise_ratio / 10) ** power

    return made(
        test_loss=loss_beyond(lambda t: (control(t) / t.data.samples) ** 0.5),
        signal_wins=wins_beyond(control),
    )


noise_ratio = Figure(
    "noise-ratio", "The critical N SNR^2 against the strength of the strong noise token",
    "Sizes of fig1 with N = 8 and C_p varied, read-out not divided.", over_ratios, draw_ratios, labels=labels,
    derived=derived, upheld_by=losing(2.0),
    claims=[
        Claim(
            "ratio-exponent", "The N SNR^2 at which the test loss passes 0.2 grows as C_p^2", ours(CONSTANT),
            number=lambda r: level_set(r.test_loss, CUT, "relative_control", "noise_ratio").exponent.map(squared),
            holds=about(2.0, 1.7, 2.3, because="an exponent of 1 or 3 would be another mechanism; 15 % for where exactly the "
                        "loss passes 0.2"),
            conditions=conditions, refuted_by=losing(1.5),
        ),
        Claim(
            "ratio-exponent-winner", "The N SNR^2 at which the signal's value wins over the strong noise's grows as C_p^2",
            ours(CONSTANT),
            number=lambda r: boundary(wins(r), "relative_control", "noise_ratio").exponent.map(squared),
            holds=about(2.0, 1.7, 2.3, because="an exponent of 1 or 3 would be another mechanism; the grid's steps of a "
                        "factor 1.5 allow 15 %"),
            conditions=conditions, refuted_by=losing(1.5),
        ),
    ],
)  # fmt: skip

no_strong_token = Figure(
    "no-strong-token", "Without a strong noise token (C_p = 1), outside the theory",
    "Sizes of fig1 with C_p = 1. The read-out is left alone, or divided by 4, which makes attention learn longer before the loss "
    "is reached.",
    without, draw_without, labels=labels, derived=derived,
    readings={
        "read-out left": {"network.readout_divisor": 1.0},
        "read-out divided by 4": {"network.readout_divisor": 4.0},
    },
    claims=[
        Claim(
            "needs-strong-token", "Without a strong noise token no single noise token gets most of the attention, in runs that "
            "do not generalise. With one, this share is above 0.9 (harmful-attention)",
            ours("Section 7, the stated limitation"),
            number=lambda r: mean(r.noise_share),
            holds=at_most(0.5, because="with a strong token this share is above 0.9 (harmful-attention)"),
            cells=high_losses, uses=("capped",),
            refuted_by=made(test_loss=always(0.6), noise_share=always(0.7), status=always(CAPPED)),
            upheld_by=made(test_loss=always(0.6), noise_share=always(0.3)),
        ),
    ],
)  # fmt: skip
