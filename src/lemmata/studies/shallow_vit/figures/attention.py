"""Figures 4 and 7: attention on the relevant tokens during training, its rate, its bounds, and the logits behind it."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import BAND, line, slope
from lemmata.draw.palette import BLUE, GREY, RED
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import (
    Claim,
    Figure,
    Holds,
    at_least,
    at_most,
    every_run,
    experiment,
    made,
    ours,
    positive,
    proof,
    theorem,
)
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, answering
from lemmata.measure.simple import mean
from lemmata.measure.times import grows, largest_fall, time_exponent
from lemmata.measure.trend import arms, difference, smallest
from lemmata.results import settings
from lemmata.scale import Scale, by_scale
from lemmata.studies.shallow_vit import theory
from lemmata.studies.shallow_vit.figures.common import (
    OPEN,
    ROLES,
    VOTES,
    base,
    derived,
    few,
    labels,
    mean_rise,
    moving,
    ramp,
    rise,
    seeds,
    setting,
)
from lemmata.studies.shallow_vit.theory import conditions
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.sweep import Axis, Sweep, axis

PROXY = "quick scale: 300 neurons for 1000; descent and initial model are ours"


# What is run -----------------------------------------------------------------------------------------------------------


def loss(trial: ViTTraining, kind: str) -> Mapping[str, Any]:
    """The linear loss never ends by itself."""
    return {"descent.loss": kind, "descent.stop": "fitted" if kind == "hinge" else "cap"}


def along_training(scale: Scale) -> Sweep:
    trial = base(scale, (0.5, few(scale, 0.05)), steps=400, probes="attention")
    return Sweep(trial, (Axis("loss", ("hinge", "linear"), moving(loss)),), seeds(scale, 8))


def many_patterns(scale: Scale) -> Sweep:
    trial = base(scale, (0.5, few(scale, 0.05)), steps=600, probes="attention", data__dim=20)
    counts = by_scale(scale, (10, 20), (10, 15, 20), (10, 15, 20))
    return Sweep(trial, (axis("data.patterns", counts),), seeds(scale, 8))


# What is measured ------------------------------------------------------------------------------------------------------


def on_hinge(r: xr.Dataset) -> xr.DataArray:
    return r.loss == "hinge"


def on_linear(r: xr.Dataset) -> xr.DataArray:
    """The runs on the linear loss, which the proofs differentiate."""
    return r.loss == "linear"


def peak(curve: xr.DataArray) -> xr.DataArray:
    """The step of each run at which its curve is largest."""
    return curve.step.where((curve == curve.max("step")) & curve.notnull()).max("step")


@answering(Estimate.absent)
def rate(r: xr.Dataset) -> Estimate:
    """The exponent in time of what the attention lacks to one, over the last factor 3 of time before the attention peaks."""
    curve = chosen(r.attention_curve, loss="linear")
    last = peak(curve)
    return time_exponent(1 - curve, (curve.step >= last / 3) & (curve.step <= last))


def above(r: xr.Dataset, bound, logit: xr.DataArray) -> xr.DataArray:
    """How far the attention of relevant tokens on each other lies above a lower bound, at every logged step."""
    return _relevant(r) - _bound(r, bound, logit.min("pattern"))


def below_ceiling(r: xr.Dataset) -> xr.DataArray:
    """How far it lies below the printed upper bound."""
    return _bound(r, theory.relevant_attention_ceiling, grown(r).max("pattern")) - _relevant(r)


def measured(r: xr.Dataset) -> xr.DataArray:
    """The discriminative logits of keys and queries as they are, errors included."""
    return r.pattern_logit_curve.isel(pattern=slice(0, 2))


def grown(r: xr.Dataset) -> xr.DataArray:
    """||q_1(t)||^2 and ||q_2(t)||^2 as the paper defines them, (47): unit vectors at the start, without errors, times the
    growth of the measured logits."""
    return measured(r) / measured(r).isel(step=0, drop=True)


def rest_rises(r: xr.Dataset) -> xr.DataArray:
    """The largest relative rise of the attention of relevant tokens on a token of another kind, the worse of two kinds."""
    return largest_fall(1 / r.attention_on_rest_curve, relative=True).max("rest")


def _relevant(r: xr.Dataset) -> xr.DataArray:
    return r.attention_by_role_curve.isel(role=0)


def _bound(r: xr.Dataset, bound, logit: xr.DataArray) -> xr.DataArray:
    s = setting(r)
    return bound(logit.where(logit > 0), s.spread, s.relevant_fraction * s.tokens, s.tokens)


def logit_growth(r: xr.Dataset) -> Estimate:
    """Growth of the discriminative logits beyond the largest change of any other pattern's."""
    change = rise(r.pattern_logit_curve)
    return difference(
        change.isel(pattern=slice(0, 2)).min("pattern"),
        abs(change.isel(pattern=slice(2, None))).max("pattern"),
    )


def logarithmic(r: xr.Dataset) -> Estimate:
    """The share of runs in which the logit of pattern 1 grows clearly as a logarithm, over the last factor 9 of time before the
    attention peaks."""
    curve = chosen(r.pattern_logit_curve, loss="linear").isel(pattern=0, drop=True)
    last = peak(chosen(r.attention_curve, loss="linear"))
    return grows(curve, "logarithmic", last / 9, last)


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Attention on both losses, and what is missing to one."""
    figure, axes = canvas(3, width=4.2)
    for one, kind in zip(axes[:2], ("hinge", "linear"), strict=True):
        _attention(one, results.sel(loss=kind), f"{kind} loss")
    shared_key(figure, axes[:2])
    off = 1 - results["attention_curve"]
    line(axes[2], off.sel(loss="hinge"), "step", BLUE, "hinge loss", "--")
    found = line(axes[2], off.sel(loss="linear"), "step", RED, "linear loss")
    if (found.middle[found.x > 0] > 0).any():
        lowest = int(np.nanargmin(np.where(found.x > 0, found.middle, np.nan)))
        near = (found.x >= 0.2 * found.x[lowest]) & (found.x <= 1.5 * found.x[lowest])
        x, at = found.x[near], int(near[:lowest].sum())
        slope(axes[2], (x, found.middle[near]), -1, "$1/t$", at=at, colour=GREY, style=":")
    panel(axes[2], "step", "1 − attention on $S_*$", "rate of concentration", "xy")
    return figure, f"Attention on the relevant tokens, mean over tokens and samples. {BAND}"


@picture
def draw_patterns(results: xr.Dataset) -> Drawn:
    counts = results["patterns"].values
    figure, axes = canvas(len(counts), width=4.0, squeeze=False, sharey=True)
    for one, count in zip(axes[0], counts, strict=True):
        _attention(one, results.sel(patterns=count), f"$M = {count}$")
    shared_key(figure, axes)
    dim = settings(results)["data.dim"]
    return figure, f"Attention on the relevant tokens with more patterns, $d = {dim}$. {BAND}"


def _attention(axes: Axes, results: xr.Dataset, title: str) -> None:
    curve, roles = results["attention_curve"], results["attention_by_role_curve"]
    line(axes, curve, "step", RED, "on $S_*$")
    line(axes, 1 - curve, "step", BLUE, "on all others")
    for role, (name, style) in enumerate(zip(ROLES, ("-", "--", ":"), strict=True)):
        look: dict[str, Any] = {"style": style, "spread": "none", "linewidth": 1}
        line(axes, roles.isel(role=role), "step", GREY, f"on $S_*$ by {name} tokens", **look)
    panel(axes, "step", "attention", title, keyed=False, ylim=(0, 1))


# What it can refute ----------------------------------------------------------------------------------------------------


def training(
    id: str, statement: str, source, number, holds, refuted_by, upheld_by, headline: bool = False
) -> Claim:
    """A claim about the runs on the hinge loss."""
    return Claim(
        id, statement, source, number=number, holds=holds, cells=on_hinge, conditions=conditions, uses=("capped",),
        refuted_by=refuted_by, upheld_by=upheld_by, headline=headline,
    )  # fmt: skip


def attention(relevant: float):
    """Constant attention of relevant tokens on each other, at logits of 1.5."""
    return made(
        attention_by_role_curve=lambda t, step, role: relevant,
        pattern_logit_curve=lambda t, step, pattern: 1.5,
    )


def logits(own: float, other: float):
    """Logits that grow from 1: by `own` for the discriminative patterns, by `other` for the others."""
    return made(
        pattern_logit_curve=lambda t, step, pattern: 1 + ramp(step) * np.where(pattern <= 2, own, other)
    )


def rising(by: float):
    return made(attention_curve=lambda t, step: 0.6 + by * ramp(step))


def rising_logits(law):
    """Logits that follow a law of the steps, while the attention rises to the end."""
    return made(
        attention_curve=lambda t, step: 0.5 + 0.001 * step,
        pattern_logit_curve=lambda t, step, pattern: law(step),
    )


PRINTED = "as printed, with the nominal delta + tau and unit q_1 at the start"

curves = Figure(
    "fig4", "Attention on the relevant tokens during training",
    "Attention on S_* averaged over all tokens of 48 training samples, and by the role of the attending token. alpha_# = "
    "0.05 of 50 tokens is 2.5: the samples have 2 and 3 in turn (data.rounding). The linear loss -yF is what the proofs "
    f"differentiate. {OPEN}",
    along_training, draw, labels=labels, derived=derived,
    readings={**VOTES, "perturbed weights": {"network.initial": "perturbed"}},
    claims=[
        training(
            "attention-rises", "Attention on the relevant tokens rises by at least 0.15 during training at alpha_* = 0.5",
            ours("Proposition 2, a size of the rise"), lambda r: mean_rise(r.attention_curve),
            Holds("order", 0.15, inf, "a rise below 0.15 at alpha_* = 0.5 would not be called concentration"),
            rising(0.08), rising(0.25),
        ),
        training(
            "attention-steady", "Attention on the relevant tokens never falls on the way, in any run",
            theorem("Proposition 2, (44)"), lambda r: largest_fall(r.attention_curve),
            every_run(at_most(0.01, because="falls up to 0.01 are noise of mini-batches")), rising(-0.02), rising(-0.006),
        ),
        training(
            "attention-near-one", "Averaged over all tokens, the attention on the relevant ones ends close to one",
            experiment("Figure 4", PROXY), lambda r: mean(r.attention),
            at_least(0.9, because="the figure is described as close to one; below 0.9 a reader would not say so"),
            made(attention=lambda t: 0.7), made(attention=lambda t: 0.95),
        ),
        training(
            "attention-every-token", "The attention on the relevant tokens ends close to one for every token, relevant or not",
            theorem("Proposition 2, (15)"), lambda r: r.attention_by_role.min("role"),
            every_run(at_least(0.9, because="the proposition is for all l; the mean over the tokens of each role, the "
                                            "smallest of three")),
            made(attention_by_role=lambda t, role: np.where(role == "confusion", 0.6, 0.95)),
            made(attention_by_role=lambda t, role: 0.96), headline=True,
        ),
        Claim(
            "attention-rate", "Late in the training, what the attention on the relevant tokens lacks to one falls at least as fast "
                              "as 1/t",
            theorem("Proposition 2, (15)"), headline=True,
            number=rate,
            holds=at_most(-0.9, because="O(1/t) is an upper bound, so that a faster fall does not refute it; a tenth for the "
                                        "constant that is reached. The window is the last factor 3 of time before the peak",
                          value=-1.0),
            cells=on_linear, conditions=conditions,
            refuted_by=made(noise=1e-5, attention_curve=lambda t, step: 1 - 0.5 * (1 + step / 20) ** -0.5),
            upheld_by=made(noise=1e-5, attention_curve=lambda t, step: 1 - 1 / (2 + step)),
        ),
        training(
            "attention-rest-falls",
            "The attention of a relevant token on a token of any other kind never rises on the way, in any run",
            proof("Lemma 2, (46)"), rest_rises,
            every_run(at_most(0.05, because="rises by up to a twentieth are noise of mini-batches")),
            made(attention_on_rest_curve=lambda t, step, rest: 0.02 * (1 + 0.2 * ramp(step))),
            made(attention_on_rest_curve=lambda t, step, rest: 0.02 * (1 + 0.04 * ramp(step))),
        ),
        training(
            "attention-bound",
            "Relevant tokens attend to each other at least as much as the mended bound says, at every step",
            ours("Definition 1, corrected"), lambda r: above(r, theory.relevant_attention_bound, measured(r)),
            every_run(at_least(0.0, because="errors enter a logit twice and on both sides, so that no run may violate it")),
            attention(0.4), attention(0.7),
        ),
        training(
            "attention-printed", "Relevant tokens attend to each other at least as much as p_n(t) says, at every step",
            proof("Lemma 2, (43), (195), (28)"), lambda r: above(r, theory.relevant_attention_printed, grown(r)),
            every_run(at_least(0.0, because=PRINTED)), attention(0.6), attention(0.9),
        ),
        training(
            "attention-ceiling",
            "Relevant tokens attend to each other at most as much as 1 - phi_n(t)(|S| - |S_1|) says, at every step",
            proof("(128)"), below_ceiling, every_run(at_least(0.0, because=PRINTED)), attention(0.95), attention(0.7),
        ),
        training(
            "logits-grow", "The logit of a discriminative pattern with itself grows, and those of the other patterns do not",
            proof("Lemma 2, (47), (48), (174)"), logit_growth,
            positive(because="the discriminative logits must outgrow any change of the others"),
            logits(0.1, 0.4), logits(0.5, 0.1),
        ),
        Claim(
            "logits-logarithmic", "||q_1||^2 grows as the logarithm of the steps",
            proof("(60)"),
            number=logarithmic,
            holds=at_least(0.5, because="the share of runs whose logit clearly grows that way rather than linearly or "
                                        "exponentially: at least half"),
            cells=on_linear, conditions=conditions,
            refuted_by=rising_logits(lambda step: 1 + 0.01 * step),
            upheld_by=rising_logits(lambda step: 1 + 0.3 * np.log1p(step)),
        ),
    ],
)  # fmt: skip

patterns = Figure(
    "fig7", "Attention during training with 10, 15 and 20 patterns",
    f"Figure 4 with d = m_a = m_b = 20 and M = 10, 15, 20. {OPEN}",
    many_patterns, draw_patterns, labels=labels, derived=derived,
    claims=[
        Claim(
            "attention-many-patterns", "Attention on the relevant tokens rises by at least 0.1 with 10, 15 and 20 patterns",
            experiment("Figure 7", PROXY),
            number=lambda r: smallest(arms(rise(r.attention_curve), "patterns")),
            holds=Holds("order", 0.1, inf, "the smallest rise over the numbers of patterns"),
            conditions=conditions, uses=("capped",), refuted_by=rising(0.05), upheld_by=rising(0.2),
        ),
    ],
)  # fmt: skip
