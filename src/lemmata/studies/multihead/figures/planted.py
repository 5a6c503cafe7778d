"""Figures 4 and 5: planted attention learned by descent, momentum and Adam with different numbers of heads."""

import numpy as np
import xarray as xr

from lemmata.draw.style import Drawn, canvas, picture, shared_key
from lemmata.figure import Claim, Figure, Holds, Made, at_least, experiment, made
from lemmata.measure.columns import above
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import median
from lemmata.measure.trend import arms, difference, falls, ordering, smallest
from lemmata.scale import Scale, by_scale
from lemmata.studies.multihead.figures.common import (
    METHODS,
    at,
    curves,
    descent,
    method_of,
    over_heads,
    planted,
    planted_heads,
    seeds,
    step_of,
    with_method,
)
from lemmata.studies.multihead.trials import Training
from lemmata.studies.multihead.trials.training import STUCK
from lemmata.sweep import Axis, Sweep

NO_MORE = Holds(
    "order",
    -np.inf,
    0.1,
    because="no more runs on a plateau; 20 seeds can tell a tenth of the runs from none",
)

# What is run -----------------------------------------------------------------------------------------------------------


def by_descent(scale: Scale) -> Sweep:
    trial = Training(data=planted(scale), descent=descent(1.0, by_scale(scale, 40, 400, 400)), growth=0.5)
    return Sweep(trial, (planted_heads(scale),), seeds(scale, 2, 20, 40))


def by_others(scale: Scale) -> Sweep:
    trial = Training(data=planted(scale), descent=descent(1.0, by_scale(scale, 30, 300, 300)), growth=0.5)
    method = Axis("optimiser", ("momentum", "adam"), with_method)
    return Sweep(trial, (method, planted_heads(scale)), seeds(scale, 2, 20, 40))


# What is measured ------------------------------------------------------------------------------------------------------


def median_falls(values: xr.DataArray) -> Estimate:
    """The smallest fall of the median run from one number of heads to the next."""
    return ordering(arms(-values, "heads"), median)


def stuck_share(losses: xr.DataArray) -> Estimate:
    """By how much the share of runs on a plateau is larger with the most heads than with the fewest."""
    stuck = above(losses, STUCK)
    shares = ", ".join(
        f"{float(share):.2g} (H = {h:g})"
        for h, share in zip(stuck.heads.values, stuck.mean("seed").values, strict=True)
    )
    return difference(stuck.isel(heads=-1), stuck.isel(heads=0)).noted(f"Stuck: {shares}.")


def alignment(r: xr.Dataset) -> Estimate:
    """The smallest median alignment over heads and over the two weights."""
    both = ("attention_alignment", "decoder_alignment")
    return smallest([arm for name in both for arm in arms(r[name], "heads")], median)


# How it looks ----------------------------------------------------------------------------------------------------------

RUNS = "Thick: median over seeds, thin: runs."
SHOWN = {
    "train_loss": "training loss",
    "test_loss": "test loss",
    "attention_alignment": "alignment of $W$ with $W^*$",
    "decoder_alignment": "alignment of $U$ with $U^*$",
    "mean_attention_norm": "mean norm of $W_h$",
    "mean_decoder_norm": "mean norm of $U_h$",
}


@picture
def draw_descent(results: xr.Dataset) -> Drawn:
    """Losses, alignments and norms over training."""
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    for axis, (name, label) in zip(axes.T.ravel(), SHOWN.items(), strict=True):
        curves(axis, results[f"{name}_curve"], label, log="y" if "loss" in name else "", runs=True)
    shared_key(figure, axes)
    return figure, f"Planted attention, GD with step $\\sqrt{{H}}$ from zero. {RUNS} {_stuck(results)}"


@picture
def draw_others(results: xr.Dataset) -> Drawn:
    """Losses and alignment over training, a row for each optimiser."""
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    said = []
    for row, method in zip(axes, results.optimiser.values, strict=True):
        here = results.sel(optimiser=method)
        for axis, name in zip(row, ("train_loss", "test_loss", "attention_alignment"), strict=True):
            curves(axis, here[f"{name}_curve"], SHOWN[name], log="y" if "loss" in name else "", runs=True)
        row[0].set_title(METHODS[str(method)])
        said.append(f"{method}: {_stuck(here)}")
    shared_key(figure, axes)
    return figure, f"Planted attention from zero. {RUNS} {' '.join(said)}"


def _stuck(results: xr.Dataset) -> str:
    counts = results.stuck.sum("seed")
    return f"Stuck above 0.3: {', '.join(f'{int(counts.sel(heads=h))} (H = {h:g})' for h in results.heads.values)}."


# What it can refute ----------------------------------------------------------------------------------------------------


def log_losses(power: float, at: int, optimiser: str = "gd") -> Made:
    """Log losses of one optimiser that fall with the heads at a step where the power is positive; others do the opposite."""
    return made(log_train_loss_curve=lambda t, step: -over_heads(t, power, step, at, optimiser))


def losses(power: float, at: int, optimiser: str = "gd") -> Made:
    """Losses of one optimiser as a power of the heads at a step; elsewhere, and of others, as its inverse."""
    return made(train_loss_curve=lambda t, step: over_heads(t, power, step, at, optimiser))


def stuck_at(few: float, many: float, optimiser: str = "gd") -> Made:
    """Runs of one optimiser of which such a share stays on a plateau with one head and with more; none of the others."""

    def loss(t, rng):
        share = few if t.network.heads == 1 else many
        return 0.5 if method_of(t) == optimiser and rng.random() < share else 0.1

    return made(train_loss=loss, train_loss_curve=loss, seeds=100)


CONSTANTS = "the step's constant, the teacher's law and the number of steps are not stated: 1, normal, {}"

fig4 = Figure(
    "fig4", "Planted attention, GD with a step growing as sqrt(heads)",
    "Teacher entries are standard normal, drawn once a seed; the step is sqrt(H), the start zero, 400 steps: none of these is "
    "stated. Some runs stay on a plateau, so means, medians and their share are judged apart.",
    by_descent, draw_descent,
    claims=[
        Claim(
            "planted-faster", "On planted attention with the step sqrt(heads), the median run trains faster the more heads "
            "there are", experiment("Figure 4", proxy=CONSTANTS.format(400)), headline=True,
            number=lambda r: median_falls(at(r, "log_train_loss", 400)), holds=step_of("fall of the median log loss"),
            refuted_by=log_losses(-0.1, 400), upheld_by=log_losses(0.1, 400),
        ),
        Claim(
            "planted-faster-mean", "On planted attention with the step sqrt(heads), the mean training loss is lower the more "
            "heads there are", experiment("Figure 4", proxy=CONSTANTS.format(400)),
            number=lambda r: falls(at(r, "train_loss", 400), "heads"), holds=step_of("fall of the mean loss"),
            refuted_by=losses(0.1, 400), upheld_by=losses(-0.1, 400),
        ),
        Claim(
            "planted-stuck", "On planted attention with the step sqrt(heads), more heads leave no more runs on a plateau",
            experiment("Figure 4", proxy=CONSTANTS.format(400)),
            number=lambda r: stuck_share(r.train_loss), holds=NO_MORE,
            refuted_by=stuck_at(0.1, 0.4), upheld_by=stuck_at(0.1, 0.06),
        ),
        Claim(
            "planted-alignment", "The trained weights align with the planted ones: the median cosine is at least 0.95",
            experiment("Figure 4", proxy=CONSTANTS.format(400)),
            number=alignment, holds=at_least(0.95, because="0.95 leaves room for the finite sample"),
            refuted_by=made(attention_alignment=lambda t: 0.99, decoder_alignment=lambda t: 0.9, noise=1e-3),
            upheld_by=made(attention_alignment=lambda t: 0.98, decoder_alignment=lambda t: 0.97, noise=1e-3),
        ),
    ],
)  # fmt: skip


def family(optimiser: str, word: str, panel: str, step: int) -> list[Claim]:
    """For one optimiser: the median run, the mean loss and the runs on a plateau against the number of heads."""
    source = experiment(
        f"Figure 5 ({panel})", proxy="constants, the teacher's law and the number of steps are not stated"
    )
    return [
        Claim(
            f"planted-{optimiser}-faster", f"On planted attention with {word}, the median run trains faster the more heads "
            "there are", source,
            number=lambda r: median_falls(at(r, "log_train_loss", step, optimiser)),
            holds=step_of("fall of the median log loss"),
            refuted_by=log_losses(-0.1, step, optimiser), upheld_by=log_losses(0.1, step, optimiser),
        ),
        Claim(
            f"planted-{optimiser}-faster-mean", f"On planted attention with {word}, the mean training loss is lower the more "
            "heads there are", source,
            number=lambda r: falls(at(r, "train_loss", step, optimiser), "heads"), holds=step_of("fall of the mean loss"),
            refuted_by=losses(0.1, step, optimiser), upheld_by=losses(-0.1, step, optimiser),
        ),
        Claim(
            f"planted-{optimiser}-stuck", f"On planted attention with {word}, more heads leave no more runs on a plateau",
            source, number=lambda r: stuck_share(at(r, "train_loss", step, optimiser)), holds=NO_MORE,
            refuted_by=stuck_at(0.1, 0.4, optimiser), upheld_by=stuck_at(0.1, 0.06, optimiser),
        ),
    ]  # fmt: skip


fig5 = Figure(
    "fig5", "Planted attention, momentum and Adam",
    "Momentum 0.9 with step sqrt(H), Adam with step 0.06: not stated. Momentum is judged at 150 steps, Adam at 300.",
    by_others, draw_others,
    claims=[*family("momentum", "momentum", "left", 150), *family("adam", "Adam", "right", 300)],
)  # fmt: skip
