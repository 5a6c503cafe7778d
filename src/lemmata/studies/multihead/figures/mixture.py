"""Figures 2 and 3: the token mixture from zero with different numbers of heads and step sizes; why they look as they do; and
decoders that are one vector."""

from math import sqrt
from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, reference
from lemmata.draw.palette import BLACK, colours
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import (
    Claim,
    Figure,
    Made,
    Source,
    about,
    at_most,
    every_run,
    experiment,
    identity,
    made,
    ours,
    positive,
    theorem,
)
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.measure.times import largest_fall
from lemmata.measure.trend import arms, falls, lead, rises
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.multihead.figures.common import (
    HEADS,
    LOSS,
    METHODS,
    PLACES,
    RATE,
    at,
    curves,
    descent,
    heads,
    log10_loss,
    method_of,
    mixture_heads,
    over_heads,
    seeds,
    step_of,
    steps_exponent,
    with_method,
)
from lemmata.studies.multihead.theory.conditions import corollary_2_conditions
from lemmata.studies.multihead.trials import Training
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

# What is run -----------------------------------------------------------------------------------------------------------


def fixed_step(scale: Scale) -> Sweep:
    trial = Training(descent=descent(1.0, by_scale(scale, 60, 3000, 10_000)))
    return Sweep(trial, (mixture_heads(scale),), seeds(scale, 2, 5, 5))


def growing_step(scale: Scale) -> Sweep:
    trial = Training(descent=descent(1.0, by_scale(scale, 40, 1000, 3000)), growth=0.5)
    method = Axis("optimiser", ("gd", "gd, a tenth", "gd, a fiftieth", "adam"), with_method)
    return Sweep(trial, (method, mixture_heads(scale)), seeds(scale, 2, 5, 5))


def two_steps(scale: Scale) -> Sweep:
    counts = by_scale(scale, (4.0,), (4.0, 64.0, 1e6), (4.0, 64.0, 1e6, 1e12))
    arm = Axis("arm", ("many heads", "one head, two step sizes"), _one_head)
    trial = Training(descent=descent(1.0, by_scale(scale, 30, 50, 50)))
    return Sweep(trial, (heads(counts), arm), seeds(scale, 1, 3, 5))


def _one_head(trial: Training, arm: str) -> Training:
    if arm == "many heads":
        return trial
    return put_all(trial, {"descent.attention_rate": 1 / trial.network.heads, "network.heads": 1.0})


def decoder_kinds(scale: Scale) -> Sweep:
    """Figure 2 with the two other decoders; a pooled one has a tenth of the step, because its gradient sums ten rows."""
    trial = Training(descent=descent(1.0, by_scale(scale, 60, 3000, 10_000)))
    kind = Axis("decoder", ("full", "pooling", "last"), _decoded)
    counts = by_scale(scale, (4.0,), (1.0, 16.0), (1.0, 4.0, 16.0, 64.0))
    return Sweep(trial, (kind, heads(counts)), seeds(scale, 2, 5, 5))


def _decoded(trial: Training, kind: str) -> Training:
    rate = 0.1 if kind == "pooling" else 1.0
    return put_all(trial, {"network.decoder": kind, "descent.learning_rate": rate})


# What is measured ------------------------------------------------------------------------------------------------------


def one_head_leads(values: xr.DataArray) -> Estimate:
    """By how much the value of the fewest heads exceeds that of the nearest other number of heads."""
    one, *others = arms(values, "heads")
    return lead(one, others)


def gain(r: xr.Dataset, optimiser: str, step: int) -> xr.DataArray:
    """The log loss with the fewest heads less that with the most, at a step."""
    loss = at(r, "log_train_loss", step, optimiser).sortby("heads")
    return loss.isel(heads=0, drop=True) - loss.isel(heads=-1, drop=True)


def adam_gains_more(r: xr.Dataset) -> Estimate:
    """The gain of many heads with Adam, less the largest with gradient descent at any constant of its step."""
    others = [gain(r, name, 600) for name in r.optimiser.values.tolist() if name.startswith("gd")]
    return lead(gain(r, "adam", 30), others)


def largest_rise(r: xr.Dataset) -> xr.DataArray:
    """The largest rise of the log loss above its lowest value so far, with the smallest constant of the step."""
    return largest_fall(-chosen(r, optimiser="gd, a fiftieth").log_train_loss_curve)


def one_head_margin(r: xr.Dataset) -> Estimate:
    """The margin of a single head at the end over that of saturated attention."""
    limit = over_cells(r, lambda t: t.data.signal * sqrt(t.data.tokens / 2))
    return mean((r.margin / limit).isel(heads=0))


def apart(r: xr.Dataset) -> xr.DataArray:
    """The difference of the log loss between the two arms, at every step."""
    loss = r.log_train_loss_curve
    many, one = (chosen(loss, arm=arm).drop_vars("arm") for arm in ("many heads", "one head, two step sizes"))
    return abs(many - one)


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw_fixed_step(results: xr.Dataset) -> Drawn:
    """Losses, margin, attention and norms over training."""
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    _row(axes[0], results)
    curves(axes[1, 0], xr.ufuncs.log10(results["test_loss_curve"]), "log10 test loss")
    curves(axes[1, 1], results["mean_attention_norm_curve"], "mean norm of $W_h$")
    curves(axes[1, 2], results["mean_decoder_norm_curve"], "mean norm of $U_h$")
    shared_key(figure, axes)
    return figure, f"Token mixture, GD with step 1 from zero. {BAND}"


@picture
def draw_growing_step(results: xr.Dataset) -> Drawn:
    """Loss, margin and attention over training, a row for each optimiser."""
    figure, axes = canvas(3, results.sizes["optimiser"], width=3.6, height=2.9)
    for row, method in zip(axes, results.optimiser.values, strict=True):
        _row(row, results.sel(optimiser=method))
        row[0].set_title(METHODS[str(method)])
    shared_key(figure, axes)
    return figure, f"Token mixture from zero. {BAND}"


def _row(row: Any, results: xr.Dataset) -> None:
    limit = float(over_cells(results, lambda t: t.data.signal * sqrt(t.data.tokens / 2)).max())
    curves(row[0], log10_loss(results), LOSS)
    reference(row[1], y=limit, label=r"margin of saturated attention $S\sqrt{T/2}$", colour=BLACK, style="--")
    curves(row[1], results["margin_curve"], "margin / norm of decoders", ylim=(None, 1.15 * limit))
    curves(row[2], results["relevant_attention_curve"], "attention on relevant tokens", ylim=(0, 1))


@picture
def draw_two_steps(results: xr.Dataset) -> Drawn:
    """The loss of both arms, and how far they are apart."""
    figure, axes = canvas(2)
    means = log10_loss(results).mean("seed")
    for count, colour in zip(results.heads.values, colours(results.heads.values), strict=True):
        many, one = (means.sel(heads=count, arm=arm) for arm in results.arm.values)
        axes[0].plot(many.step, many, color=colour, label=f"{HEADS.format(count)}, many heads")
        axes[0].plot(one.step, one, ".", color=colour, label="one head, two step sizes")
        difference = abs(many - one)
        axes[1].plot(
            many.step, difference.where(difference > 0), "o", color=colour, label=HEADS.format(count)
        )
    reference(axes[1], y=1e-10, label="allowed for rounding", colour=BLACK, style="--")
    panel(axes[0], "steps", LOSS)
    limits = {"ylim": (1e-17, 1e-9), "xlim": axes[0].get_xlim()}
    panel(axes[1], "steps", "difference where there is one", log="y", **limits)
    return figure, "Token mixture, GD with step 1 from zero; mean over seeds."


@picture
def draw_decoders(results: xr.Dataset) -> Drawn:
    """Loss and attention over training, a column for each decoder."""
    kinds = results.decoder.values
    figure, axes = canvas(len(kinds), 2, width=3.4, height=2.8)
    for column, kind in zip(axes.T, kinds, strict=True):
        here = results.sel(decoder=kind)
        curves(column[0], log10_loss(here), LOSS)
        curves(column[1], here["relevant_attention_curve"], "attention on relevant tokens", ylim=(0, 1))
        column[0].set_title(f"{kind} decoder")
    shared_key(figure, axes)
    return figure, f"Token mixture, GD with step 1 (pooling: 0.1) from zero. {BAND}"


# What it can refute ----------------------------------------------------------------------------------------------------

MISSING = "heads 1 to 64 and {} steps are ours: the page that states them is missing"


def losses(power: float, at: int, optimiser: str = "") -> Made:
    """Log losses that fall with the heads at a step where the power is positive; elsewhere, and of other optimisers, they do
    the opposite."""
    return made(log_train_loss_curve=lambda t, step: -over_heads(t, power, step, at, optimiser))


def margins(power: float, at: int, optimiser: str = "") -> Made:
    """Margins as a power of the heads at a step; elsewhere, and of other optimisers, as its inverse."""
    return made(margin_curve=lambda t, step: over_heads(t, power, step, at, optimiser))


def slowing(power: float) -> Made:
    """Training losses that are a power of the steps."""
    return made(train_loss_curve=lambda t, step: np.maximum(step, 1.0) ** power)


fig2 = Figure(
    "fig2", "Token mixture, GD with one step size for all numbers of heads",
    "The page with the caption is missing from the source: numbers of heads, horizon and panels are ours. Margin is the "
    "smallest y Phi over the norm of all decoders, to be compared with S sqrt(T/2). The paper does not say whether relevant "
    "tokens stand at the same places in all samples: two readings.",
    fixed_step, draw_fixed_step, readings=PLACES,
    claims=[
        Claim(
            "fixed-step-slower", "With one step size for all, the training loss falls more slowly the more heads there are",
            experiment("Figure 2, Appendix G", proxy=MISSING.format(600)), headline=True,
            number=lambda r: rises(at(r, "log_train_loss", 600), "heads"),
            holds=step_of("rise of the log loss"), refuted_by=losses(0.1, 600), upheld_by=losses(-0.1, 600),
        ),
        Claim(
            "fixed-step-margin", "With one step size for all, the margin is farther from that of saturated attention the more "
            "heads there are", experiment("Figure 2, Appendix G", proxy=MISSING.format(600)),
            number=lambda r: falls(at(r, "margin", 600), "heads"),
            holds=step_of("fall of the margin"), refuted_by=margins(0.1, 600), upheld_by=margins(-0.1, 600),
        ),
        Claim(
            "one-head-margin", "With one head gradient descent attains the margin S sqrt(T/2) of saturated attention",
            experiment("Figure 2, Appendix G, Proposition 3", proxy=MISSING.format(3000)),
            number=one_head_margin,
            holds=about(1.0, 0.85, 1.15, because="the margin nears its limit with the logarithm of time; 0.85 was set for "
                        "3000 steps before running"),
            refuted_by=made(margin=lambda t: 0.5 * t.data.signal * sqrt(t.data.tokens / 2)),
            upheld_by=made(margin=lambda t: t.data.signal * sqrt(t.data.tokens / 2) / t.network.heads),
        ),
        Claim(
            "rate-in-steps", "With every number of heads the training loss is at most of order 1/steps, up to logarithms",
            theorem("Corollary 2/5"),
            number=lambda r: steps_exponent(r.train_loss_curve), holds=RATE, conditions=corollary_2_conditions,
            refuted_by=slowing(-0.5), upheld_by=slowing(-1.0),
        ),
    ],
)  # fmt: skip


def faster(
    id: str, statement: str, source: Source, optimiser: str, step: int, headline: bool = False
) -> Claim:
    """At a step, the log loss falls from each number of heads to the next."""
    return Claim(
        id, statement, source, headline=headline,
        number=lambda r: falls(at(r, "log_train_loss", step, optimiser), "heads"), holds=step_of("fall of the log loss"),
        refuted_by=losses(-0.1, step, optimiser), upheld_by=losses(0.1, step, optimiser),
    )  # fmt: skip


def smaller_margin(id: str, statement: str, source: Source, optimiser: str, step: int) -> Claim:
    """At a step, the margin falls from each number of heads to the next."""
    return Claim(
        id, statement, source,
        number=lambda r: falls(at(r, "margin", step, optimiser), "heads"), holds=step_of("fall of the margin"),
        refuted_by=margins(0.1, step, optimiser), upheld_by=margins(-0.1, step, optimiser),
    )  # fmt: skip


LEFT = experiment(
    "Figure 3 (left)", proxy="the constant of the step is not stated: 1; " + MISSING.format(600)
)
TENTH = experiment(
    "Figure 3 (left)", proxy="the constant of the step is not stated: 0.1; " + MISSING.format(600)
)
FIFTIETH = experiment(
    "Figure 3 (left)", proxy="the constant of the step is not stated: 0.02; " + MISSING.format(600)
)
RIGHT = experiment("Figure 3 (right)", proxy=MISSING.format(30))

BESIDE = ours("Figure 3 (right)")


def gains(adam: float) -> Made:
    """Log losses that fall by 2 from the fewest to the most heads with gradient descent, and by so much with Adam."""

    def log_loss(t: Any) -> float:
        gain = adam if method_of(t) == "adam" else 2.0
        return -gain * (t.network.heads > 30)

    return made(log_train_loss_curve=log_loss, noise=0.01)


def rising(height: float) -> Made:
    """Log losses that fall with the steps, and end above their lowest value by a height."""

    def log_loss(t: Any, step: np.ndarray) -> np.ndarray:
        fallen = -1 - 1e-3 * step
        return np.where(step < step.max(), fallen, np.sort(fallen)[1] + height)

    return made(log_train_loss_curve=log_loss, noise=0.0)


fig3 = Figure(
    "fig3", "Token mixture, GD with a step growing as sqrt(heads), and Adam",
    "The constant of the step O(sqrt(H)) is not stated: sqrt(H), which continues figure 2's step 1, and a tenth of it, with "
    "which the first steps jump with 64 heads only, and a fiftieth. Adam has the stated step 0.06 and the usual constants.",
    growing_step, draw_growing_step, readings=PLACES,
    claims=[
        faster("sqrt-step-faster", "With the step sqrt(heads) training is faster the more heads there are", LEFT, "gd", 600,
               headline=True),
        faster("tenth-step-faster", "With the step sqrt(heads)/10 training is faster the more heads there are", TENTH,
               "gd, a tenth", 600),
        Claim(
            "tenth-step-faster-than-one", "With the step sqrt(heads)/10 training is faster with several heads than with one",
            TENTH, number=lambda r: one_head_leads(at(r, "log_train_loss", 600, "gd, a tenth")),
            holds=positive(because="the log loss of one head, less the nearest of the others"),
            refuted_by=losses(-0.1, 600, "gd, a tenth"), upheld_by=losses(0.1, 600, "gd, a tenth"),
        ),
        faster("fiftieth-step-faster", "With the step sqrt(heads)/50 training is faster the more heads there are", FIFTIETH,
               "gd, a fiftieth", 600),
        Claim(
            "fiftieth-step-descends", "With the step sqrt(heads)/50 the training loss never rises, with any number of heads",
            ours("Figure 3 (left), constant of the step"), number=largest_rise,
            holds=every_run(at_most(1e-6, because="monotone at the logged steps, but for rounding in single precision")),
            refuted_by=rising(3e-6), upheld_by=rising(5e-7),
        ),
        smaller_margin("sqrt-step-margin", "With the step sqrt(heads) the margin is farther from that of saturated attention "
                       "the more heads there are", LEFT, "gd", 600),
        smaller_margin("tenth-step-margin", "With the step sqrt(heads)/10 the margin is farther from that of saturated "
                       "attention the more heads there are", TENTH, "gd, a tenth", 600),
        faster("adam-faster", "With Adam training is faster the more heads there are", RIGHT, "adam", 30, headline=True),
        Claim(
            "adam-gains-most", "The loss gains more from many heads with Adam than with gradient descent", RIGHT,
            number=adam_gains_more,
            holds=positive(because="the log loss of one head less that of most: Adam's, less the largest of descent's"),
            refuted_by=gains(1.0), upheld_by=gains(3.0),
        ),
        smaller_margin("adam-margin", "With Adam, too, the margin is farther from that of saturated attention the more heads "
                       "there are. The paper says so of gradient descent", BESIDE, "adam", 30),
        Claim(
            "adam-margin-below-one", "With Adam several heads have a smaller margin than one", BESIDE,
            number=lambda r: one_head_leads(at(r, "margin", 30, "adam")),
            holds=positive(because="the margin of one head, less the nearest of the others"),
            refuted_by=margins(0.1, 30, "adam"), upheld_by=margins(-0.1, 30, "adam"),
        ),
    ],
)  # fmt: skip


def split(difference: float) -> Made:
    """Two arms whose log losses differ by so much."""
    return made(log_train_loss_curve=lambda t: -1.0 - difference * (t.descent.attention_rate < 1), noise=0.0)


two_step_sizes = Figure(
    "two-step-sizes", "Many heads from zero are one head with two step sizes",
    "Why figures 2 and 3 look as they do: from zero, H heads at step eta are one head whose decoder has step eta and whose "
    "attention has step eta/H.",
    two_steps, draw_two_steps,
    claims=[
        Claim(
            "two-step-sizes", "H heads that start at zero have the training loss of one head whose attention learns H times "
            "slower, at every step", ours("explains Figures 2 and 3"),
            number=apart, holds=identity(1e-10, because="only rounding may tell the two apart over 50 steps"),
            refuted_by=split(2e-10), upheld_by=split(5e-11),
        ),
    ],
)  # fmt: skip

decoders = Figure(
    "decoders", "Token mixture with full, pooling and last-token decoders",
    "Figure 2's mixture with decoders that are one vector: pooled over the tokens, or on the last token alone.",
    decoder_kinds, draw_decoders,
    claims=[
        Claim(
            "decoders-rate", "With full, pooling and last-token decoders the training loss is at most of order 1/steps, up to "
            "logarithms", theorem("Section 2 (footnote on decoders), Corollary 2/5"),
            number=lambda r: steps_exponent(r.train_loss_curve), holds=RATE, conditions=corollary_2_conditions,
            refuted_by=slowing(-0.5), upheld_by=slowing(-1.0),
        ),
    ],
)  # fmt: skip
