"""The extensions of Section G: heads, a skip connection, set-valued patterns, four classes."""

from collections.abc import Mapping
from math import inf
from typing import Any

import xarray as xr

from lemmata.figure import Claim, Figure, Holds, at_least, at_most, made, proof
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.simple import bootstrap, fraction
from lemmata.measure.trend import arms, smallest
from lemmata.scale import Scale
from lemmata.studies.shallow_vit.figures.common import (
    COUNTED,
    OPEN,
    base,
    derived,
    labels,
    mean_rise,
    moving,
    ramp,
    seeds,
    table,
)
from lemmata.sweep import Axis, Sweep

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
    return Sweep(trial, (kinds,), seeds(scale, 40, 40))


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
