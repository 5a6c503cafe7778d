"""The extensions of Section G: heads, a skip connection, set-valued patterns, four classes."""

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import DOTS, line
from lemmata.draw.palette import BLACK, BLUE, GREEN, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Holds, at_least, at_most, made, positive, proof
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.simple import bootstrap, fraction, mean
from lemmata.measure.trend import arms, smallest
from lemmata.scale import Scale, by_scale
from lemmata.studies.shallow_vit.figures.common import (
    COUNTED,
    OPEN,
    SHARED,
    base,
    derived,
    labels,
    mean_rise,
    moving,
    ramp,
    seeds,
    table,
)
from lemmata.studies.shallow_vit.theory import conditions
from lemmata.sweep import Axis, Sweep, axis

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "one head": {"network.heads": 1},
    "two heads": {"network.heads": 2},
    "four heads": {"network.heads": 4},
    "skip": {"network.skip": True},
    "sets": {"data.set_size": 3},
    "four classes": {"data.classes": 4},
}
"""One extension of section G of the paper at a time."""


def sweep(scale: Scale) -> Sweep:
    trial = base(scale, (0.5, 0.1), (8, 64, 200), probes="attention")
    kinds = Axis("variant", tuple(VARIANTS), moving(lambda trial, kind: VARIANTS[kind]))
    return Sweep(trial, (kinds,), seeds(scale, 36, 40))


def classes(scale: Scale) -> Sweep:
    sizes = axis("data.samples", by_scale(scale, (8,), (64,), (200,)))
    shared = {path.replace(".", "__"): value for path, value in SHARED.items()}
    trial = base(
        scale, (0.5, 0.1), (8, 64, 200), probes="classes", data__classes=4, data__patterns=6, **shared
    )
    return Sweep(trial, (sizes,), seeds(scale, 12))


def own_gain(r: xr.Dataset) -> xr.DataArray:
    """What each group of neurons has gained along the pattern of its own class."""
    size = r.class_gain.sizes["vote"]
    own: list[xr.DataArray] = [r.class_gain.isel(vote=k, label=k, drop=True) for k in range(size)]
    return xr.concat(own, "vote")


def other_gain(r: xr.Dataset) -> xr.DataArray:
    """The largest gain of a group along another class's pattern as a share of its own gain: signed along the opposite class
    (239), absolute along the two between (237), (241)."""
    size = r.class_gain.sizes["vote"]
    shares: list[xr.DataArray] = []
    for k in range(size):
        along = [r.class_gain.isel(vote=k, label=j, drop=True) for j in range(size)]
        shares += [
            (along[j] if j == size - 1 - k else abs(along[j])) / along[k] for j in range(size) if j != k
        ]
    return xr.concat(shares, "of").max("of")


def gains(own: float, between: float) -> Any:
    """Groups that gain `own` along the pattern of their class, lose as much along the opposite one, and gain `between` along
    the others."""

    def law(t, vote, label):
        opposite = vote + label == t.data.classes + 1
        return np.where(vote == label, own, np.where(opposite, -abs(own), between))

    return made(class_gain=law)


@answering(Estimate.absent)
def heads_spread(r: xr.Dataset) -> Estimate:
    """The standard deviation of log steps with four heads over that with one."""

    def deviation(values: xr.DataArray, variant: str) -> float:
        return float(chosen(values, variant=variant).std())

    logs = xr.ufuncs.log(r.steps.astype(float))
    needs(deviation(logs, "one head") > 0, "all runs with one head took the same steps.")
    return bootstrap(lambda values: deviation(values, "four heads") / deviation(values, "one head"), logs)


def spread(of_heads):
    """Steps whose logarithm has a deviation of `of_heads(heads)`."""
    return made(noise=0.0, steps=lambda t, rng: 100 * 2.718 ** (of_heads(t.network.heads) * rng.normal()))


variants = Figure(
    "variants", "Heads, skip connection, set-valued patterns, four classes", f"One extension at a time. {OPEN}",
    sweep, table("variant", "One extension at a time"), labels=labels, derived=derived,
    claims=[
        Claim(
            "heads-steady", "More heads make the training more stable: with four heads the number of steps is no more variable",
            proof("Section G.3"),
            number=heads_spread, holds=at_most(1.2, because="the spread of the logarithm of steps; 1.2 allows for its own "
                                                            "uncertainty"),
            refuted_by=spread(lambda heads: 0.1 * heads**0.7), upheld_by=spread(lambda heads: 0.1 / heads**0.4),
        ),
        Claim(
            "sets-attention", "With set-valued patterns the attention on relevant tokens rises by at least 0.1",
            proof("Section G.2"),
            number=lambda r: mean_rise(chosen(r.attention_curve, variant="sets")),
            holds=Holds("order", 0.1, inf, "the same as for many patterns"), uses=("capped",),
            refuted_by=made(attention_curve=lambda t, step: 0.6 + 0.05 * ramp(step)),
            upheld_by=made(attention_curve=lambda t, step: 0.6 + 0.2 * ramp(step)),
        ),
        Claim(
            "extensions-learn",
            "Heads, a skip connection, set-valued patterns and four classes are learnt by at least 0.9 of the runs",
            proof("Appendix G"),
            number=lambda r: smallest(arms(r.success, "variant"), fraction),
            holds=at_least(0.9, because="the same results are said to hold; nine of ten runs in every extension"), uses=COUNTED,
            refuted_by=made(test_loss=lambda t, rng: float(t.network.skip and rng.random() < 0.5)),
            upheld_by=made(test_loss=lambda t: 0.0),
        ),
    ],
)  # fmt: skip


@picture
def draw_classes(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    gain = results["class_gain"].isel(samples=0)
    for group, colour in enumerate((BLUE, RED, GREEN, BLACK)):
        line(
            axes, gain.isel(vote=group), "label", colour, f"output weights of class {group + 1}", "o-", "mean"
        )
    panel(axes, "pattern of class", "mean gain of $w_i \\cdot p_j$", ticks=gain["label"])
    return figure, f"What each group of neurons gains along the pattern of each class. {DOTS}"


four_classes = Figure(
    "four-classes", "Four classes: what the neurons of each group gain along the patterns of the classes",
    "One output vector for all tokens, as (232) has it, step size 0.1; two patterns do not discriminate. A group of neurons has "
    f"output weights with the signs of one class. {OPEN}",
    classes, draw_classes, labels=labels, derived=derived,
    claims=[
        Claim(
            "classes-own", "The neurons of a group grow along the pattern of its class", proof("Section G.1, (234), (235)"),
            number=lambda r: mean(own_gain(r).min("vote")), holds=positive(because="the smallest gain over groups; only the sign "
                                                                                   "is said"),
            conditions=conditions, uses=("capped",), refuted_by=gains(-0.2, 0.0), upheld_by=gains(0.2, 0.0),
        ),
        Claim(
            "classes-others",
            "They gain nothing along the patterns of the other classes: less than nothing along the opposite one, about nothing "
            "along the two between",
            proof("Section G.1, (236) to (241)"), number=lambda r: mean(other_gain(r)),
            holds=at_most(0.2, because="a fifth of the gain along the own pattern counts as nothing"),
            conditions=conditions, uses=("capped",), refuted_by=gains(0.2, 0.06), upheld_by=gains(0.2, 0.02),
        ),
    ],
)  # fmt: skip
