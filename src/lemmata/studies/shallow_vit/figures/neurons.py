"""Lemmas 2 to 4 in one training: lucky neurons, keys, queries and values, pattern by pattern."""

from collections.abc import Mapping
from typing import Any

import xarray as xr

from lemmata.draw.curves import BAND, line
from lemmata.draw.palette import BLUE, GREY, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Figure
from lemmata.scale import Scale
from lemmata.studies.shallow_vit.figures.common import (
    OPEN,
    SHARED,
    base,
    derived,
    few,
    labels,
    moving,
    seeds,
)
from lemmata.studies.shallow_vit.figures.keys_values import KEYS_VALUES
from lemmata.studies.shallow_vit.figures.lucky import LUCKY
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.sweep import Axis, Sweep


def output_weights(trial: ViTTraining, kind: str) -> Mapping[str, Any]:
    return SHARED if kind == "shared" else {"network.output_weights": kind}


def sweep(scale: Scale) -> Sweep:
    trial = base(scale, (0.5, few(scale, 0.06)), (8, 100, 200), 400, probes="neurons")
    kinds = Axis("output_weights", ("per_token", "shared"), moving(output_weights))
    return Sweep(trial, (kinds,), seeds(scale, 12))


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Projections, gates, keys and queries, values: a row for each kind of output weights."""
    kinds = results["output_weights"].values
    figure, axes = canvas(4, len(kinds), width=3.6, height=3.4, squeeze=False)
    for row, kind in zip(axes, kinds, strict=True):
        _row(row, results.sel(output_weights=kind), str(kind))
    return figure, f"Lucky neurons and the lengths of pattern images. {BAND}"


def _row(row: Any, results: xr.Dataset, kind: str) -> None:
    groups = ("lucky for $\\mu_1$", "lucky for $\\mu_2$", "wrong sign")
    projection, gates = results["projection_curve"], results["gate_persistence_curve"]
    for i, (name, colour) in enumerate(zip(groups, (BLUE, RED, ORANGE), strict=True)):
        own = projection.isel(group=i, pattern=i % 2)
        line(row[0], own, "step", colour, f"{name}, along it")
        line(row[1], gates.isel(group=i), "step", colour, name)
    line(
        row[0], projection.isel(group=0, pattern=2), "step", BLUE, "lucky for $\\mu_1$, along $\\mu_3$", "--"
    )
    for axes, name, style, label in (
        (row[2], "key_norm", "-", "$W_K$"),
        (row[2], "query_norm", "--", "$W_Q$"),
        (row[3], "value_norm", "-", "$W_V$"),
    ):
        for i, colour in enumerate((BLUE, RED, GREY)):
            curve = results[f"{name}_curve"].isel(pattern=i)
            line(axes, curve, "step", colour, f"{label}$\\mu_{i + 1}$", style)
    panel(row[0], "step", "mean $w_i \\cdot p_j$", f"{kind.replace('_', '-')} weights: neurons")
    panel(row[1], "step", "share of open gates", "gates on relevant tokens", ylim=(0, 1.02))
    panel(row[2], "step", "length", "keys and queries")
    panel(row[3], "step", "length", "values")


neurons = Figure(
    "neurons", "Lucky neurons, keys, queries and values pattern by pattern",
    "Groups of neurons: active on a pattern at the start, with a mean output weight of the right or the wrong sign. Lemma 2 "
    "is about one output vector for all tokens: its claims look at that arm (step size 0.1). Lucky neurons of the numbered "
    "bounds: p_1 has the largest inner product with margin, (220), which is what the proofs of Lemmas 3 and 4 use; within "
    f"an angle of sigma + tau (Definition 2) there is hardly one. {OPEN}",
    sweep, draw, labels=labels, derived=derived, claims=(*LUCKY, *KEYS_VALUES),
    readings={
        "entries of W_O have deviation xi, Algorithm 1": {},
        "rows have covariance xi^2 I/m_a, (96)": {"network.hidden_scale": "row"},
    },
)  # fmt: skip
