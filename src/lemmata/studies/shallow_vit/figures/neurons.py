"""Lemmas 2 to 4: lucky neurons, keys, queries and values, pattern by pattern, in one training and over the width."""

from collections.abc import Mapping
from typing import Any

import xarray as xr

from lemmata.draw.curves import BAND, line
from lemmata.draw.palette import BLUE, GREY, ORANGE, RED
from lemmata.draw.panels import Panel, panels
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, made, proof
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.scale import Scale, by_scale
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
from lemmata.studies.shallow_vit.figures.lucky import LUCKY, ends
from lemmata.studies.shallow_vit.theory import conditions
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all


def output_weights(trial: ViTTraining, kind: str) -> Mapping[str, Any]:
    return SHARED if kind == "shared" else {"network.output_weights": kind}


def sweep(scale: Scale) -> Sweep:
    trial = base(scale, (0.5, few(scale, 0.06)), (8, 100, 200), 400, probes="neurons")
    kinds = Axis("output_weights", ("per_token", "shared"), moving(output_weights))
    return Sweep(trial, (kinds,), seeds(scale, 10))


def over_width(scale: Scale) -> Sweep:
    """Ten steps of size 0.1 on the linear loss, so that eta t = 1 at the end. Without token noise one weighted token per
    pattern is the same training."""
    trial = base(
        scale, (0.5, few(scale, 0.06)), (8, 64, 64), 10, probes="neurons", simulator="patterns", data__noise_std=0.0,
        descent__loss="linear", descent__stop="cap", descent__logs=6,
        **{path.replace(".", "__"): value for path, value in SHARED.items()},
    )  # fmt: skip
    widths = by_scale(scale, (64, 128), (300, 1200, 4800), (300, 1200, 4800, 19200))
    return Sweep(put_all(trial, {"descent.steps": 10}), (axis("network.neurons", widths),), seeds(scale, 8))


def gained(r: xr.Dataset) -> xr.DataArray:
    """What the lucky neurons of pattern 1 have gained along it at the end, eta t = 1, on average."""
    start, end = (one.isel(group=0, pattern=0, drop=True) for one in ends(r.projection_curve))
    return end - start


def width_exponent(r: xr.Dataset) -> Estimate:
    return exponent(gained(r), "neurons")


def gaining(power: float) -> Any:
    """Lucky neurons that gain a power of the width."""
    return made(
        projection_curve=lambda t, step, group, pattern: (
            0.01 + 0.005 * step * (t.network.neurons / 300) ** power
        )
    )


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Projections, gates, keys and queries, values: a row for each kind of output weights."""
    kinds = results["output_weights"].values
    figure, axes = canvas(4, len(kinds), width=3.6, height=3.4, squeeze=False)
    for row, kind in zip(axes, kinds, strict=True):
        _row(row, results.sel(output_weights=kind), str(kind))
    return figure, f"Lucky neurons and the lengths of pattern images. {BAND}"


def _row(row: Any, results: xr.Dataset, kind: str) -> None:
    groups = ("lucky for $\\mu_1$", "lucky for $\\mu_2$", "unlucky")
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

width = Figure(
    "width", "What lucky neurons gain, over the width",
    "One output vector for all tokens, step size 0.1, ten steps on the linear loss (eta t = 1), no token noise. Not a figure of "
    f"the paper: (32) has no m. {OPEN}",
    over_width,
    panels(Panel({"mean gain of $w_i \\cdot p_1$": gained}, "neurons", "neurons $m$", "gain of lucky neurons", log="xy"),
           caption="Lucky neurons with the right sign after the time 1."),
    labels=labels, derived=derived,
    claims=[
        Claim(
            "lucky-width", "What lucky neurons gain along their pattern in a given time is at least a constant, whatever the width",
            proof("Lemma 2, (32), with a^2 = m"), number=width_exponent,
            holds=at_least(-0.1, because="the exponent in m; with m/a^2 = 1 the right side of (32) does not depend on m. A tenth "
                                         "keeps 0 apart from -1/2"),
            conditions=conditions, refuted_by=gaining(-0.5), upheld_by=gaining(-0.05),
        ),
    ],
)  # fmt: skip
