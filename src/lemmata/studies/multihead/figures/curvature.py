"""The negative curvature per unit of loss against the number of heads: at random weights and along a training."""

from math import sqrt
from typing import Any

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.draw.curves import BAND, law, line, lines, slope
from lemmata.draw.palette import BLUE, RED
from lemmata.draw.style import Drawn, canvas, log_to_zero, panel, picture
from lemmata.figure import Claim, Figure, Made, at_most, made, theorem
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.trend import falls
from lemmata.results import trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.multihead.figures.common import (
    BELOW_BOUND,
    HEADS,
    largest_ratios,
    mixture_heads,
    seeds,
    step_of,
    together,
)
from lemmata.studies.multihead.theory import bounds as general
from lemmata.studies.multihead.theory.conditions import token_conditions
from lemmata.studies.multihead.trials import RandomHeads, Training
from lemmata.sweep import Sweep, axis

FALLS = at_most(
    -0.35,
    because="an upper bound of the power -1/2 over all heads; over a finite range a slope may be flatter by 0.15",
)

# What is run -----------------------------------------------------------------------------------------------------------


def at_random(scale: Scale) -> Sweep:
    heads = by_scale(scale, (2, 8), (4, 8, 16, 32, 64), (4, 8, 16, 32, 64, 128, 256))
    return Sweep(RandomHeads(), (axis("heads", heads),), seeds(scale, 2, 10, 30))


def along_training(scale: Scale) -> Sweep:
    steps, logs = by_scale(scale, (30, 6), (1000, 100), (3000, 100))
    descent = Descent(learning_rate=1.0, stop="cap", steps=steps, logs=logs)
    trial = Training(descent=descent, probe="spectrum")
    return Sweep(trial, (mixture_heads(scale),), seeds(scale, 1, 3, 5))


# What is measured ------------------------------------------------------------------------------------------------------


def curvature_exponent(r: xr.Dataset) -> Estimate:
    found = exponent(r.negative_curvature, "heads", paired=True)
    loose = float((r.bound / r.negative_curvature).median())
    return found.noted(f"The bound is {loose:.0f} times what is measured (median).")


def curvature_falls(r: xr.Dataset) -> Estimate:
    """The smallest fall, from one number of heads to the next, of the logarithm of the negative curvature per unit of loss,
    averaged over a training."""
    per_loss = -r.smallest_eigenvalue_curve / r.train_loss_curve
    return falls(np.log(per_loss.where(per_loss > 0)).mean("step"), "heads")


def path_ratios(r: xr.Dataset) -> dict[str, xr.DataArray]:
    """Measured over bound of Corollary 1 at every checkpoint of every run, with the sharper decoder norm and the longest
    token that was drawn."""
    trial: Any = trial_at(r)
    longest = float(r.token_norm.max())
    needs(np.isfinite(longest), "no run has recorded its longest token.")
    data = general.DataBounds(trial.data.dim, trial.data.tokens, max(1.0, longest))
    norm, loss, heads = r.decoder_norm_curve, r.train_loss_curve, r.heads
    lowest, highest = r.smallest_eigenvalue_curve, r.largest_eigenvalue_curve
    allowed = general.negative_curvature_bound(data, norm, heads) * loss
    return {
        "weak convexity": xr.ufuncs.maximum(-lowest, 0) / allowed,
        "self-bounded gradient": r.gradient_norm_curve / (general.gradient_self_bound(data, norm) * loss),
        "smoothness": xr.ufuncs.maximum(highest, -lowest) / general.smoothness_bound(data, norm, heads),
    }


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw_random(results: xr.Dataset) -> Drawn:
    """Measured negative curvature and its bound."""
    figure, axes = canvas()
    found = line(axes, results.negative_curvature, "heads", BLUE, "measured", "o-", "geometric")
    slope(axes, found, -0.5)
    law(axes, results.heads, results.bound.mean("seed"), r"bound $\beta_3 / \sqrt{H}$", RED)
    panel(axes, "heads H", "−smallest eigenvalue / loss", log="xy", ticks=found.x)
    return figure, "Random attention, unit-norm decoders. Line: geometric mean, dots: seeds."


@picture
def draw_path(results: xr.Dataset) -> Drawn:
    """The negative curvature over training, and the largest ratios to the bounds."""
    figure, axes = canvas(2)
    curve = -results["smallest_eigenvalue_curve"] / results["train_loss_curve"]
    lines(axes[0], curve, "step", "heads", HEADS)
    log_to_zero(axes[0], "x", 1)
    panel(axes[0], "steps", "−smallest eigenvalue / loss", log="y")
    largest_ratios(axes[1], path_ratios(results), "heads")
    panel(axes[1], "heads H", "largest measured / bound on the path", log="xy", ticks=results.heads)
    return figure, f"Runs of figure 2; the whole spectrum at every checkpoint. {BAND}"


# What it can refute ----------------------------------------------------------------------------------------------------


def powers(power: float) -> Made:
    """Negative curvature as a power of the heads."""
    return made(negative_curvature=lambda t: t.heads**power, bound=lambda t: 10 * t.heads**-0.5)


curvature = Figure(
    "curvature", "Negative curvature per unit of loss against the number of heads, at random weights",
    "Gaussian attention weights, unit-norm decoders, three tokens in three dimensions inside the unit ball.",
    at_random, draw_random,
    claims=[
        Claim(
            "curvature-falls", "At random weights the negative curvature per unit of loss falls with the number of heads at "
            "least as fast as 1/sqrt(heads)", theorem("Corollary 1 (3)"), headline=True,
            number=curvature_exponent, holds=FALLS, conditions=token_conditions,
            refuted_by=powers(-0.12), upheld_by=powers(-0.5),
        ),
    ],
)  # fmt: skip


def path(convexity: float = 0.5, gradient: float = 0.5, power: float = -0.5) -> Made:
    """Trainings at such shares of the bounds of Corollary 1 where the decoders have norm 1 and the tokens norm 2; the negative
    curvature goes as a power of the heads."""

    def beta_3(t: Any) -> float:
        d = t.data.dim
        return 2 * d * sqrt(t.data.tokens * d) * 8 * (12 * sqrt(d) + 1)

    def beta_1(t: Any) -> float:
        return 18 * sqrt(t.data.tokens)

    return made(
        token_norm=lambda t: 2.0,
        decoder_norm_curve=lambda t: 1.0,
        train_loss_curve=lambda t, step: 1 / np.maximum(step, 1.0),
        smallest_eigenvalue_curve=lambda t, step: (
            -convexity * beta_3(t) * t.network.heads**power / np.maximum(step, 1.0)
        ),
        gradient_norm_curve=lambda t, step: gradient * beta_1(t) / np.maximum(step, 1.0),
        largest_eigenvalue_curve=lambda t: 0.5 * (beta_3(t) / sqrt(t.network.heads) + beta_1(t) ** 2 / 4),
    )


hessian_path = Figure(
    "hessian-path", "Smallest Hessian eigenvalue along a training, against its bound",
    "The runs of figure 2; the full spectrum over all heads at every checkpoint, R the largest token norm seen.",
    along_training, draw_path, upheld_by=path(),
    claims=[
        Claim(
            "curvature-falls-in-training", "As the number of heads increases, the smallest eigenvalue becomes less negative. "
            "Here that is said of its size per unit of loss, averaged over the checkpoints of a training from zero",
            theorem("Section 3, after Corollary 1 (3)"),
            number=curvature_falls, holds=step_of("fall of its logarithm"), conditions=token_conditions,
            refuted_by=path(power=0.12),
        ),
        Claim(
            "weak-convexity", "At every checkpoint of every training the smallest eigenvalue of the Hessian is at least "
            "-beta_3 loss / sqrt(heads)", theorem("Corollary 1 (3)"),
            number=lambda r: path_ratios(r)["weak convexity"], holds=BELOW_BOUND, conditions=token_conditions,
            refuted_by=path(convexity=2.0),
        ),
        Claim(
            "path-bounds", "At every checkpoint of every training the norm of the gradient is at most beta_1 loss, and that "
            "of the Hessian at most beta_2", theorem("Corollary 1 (1), (2)"),
            number=lambda r: together(path_ratios(r)[name] for name in ("self-bounded gradient", "smoothness")),
            holds=BELOW_BOUND, conditions=token_conditions, refuted_by=path(gradient=2.0),
        ),
    ],
)  # fmt: skip
