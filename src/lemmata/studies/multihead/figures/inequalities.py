"""Measured over bound for every inequality of the theory, at random points and at extreme ones."""

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import reference, rows
from lemmata.draw.palette import BLACK, BLUE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Made, made, ours, proof, theorem
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.multihead.figures.common import BELOW_BOUND, seeds
from lemmata.studies.multihead.theory import bounds as general
from lemmata.studies.multihead.theory.conditions import token_conditions
from lemmata.studies.multihead.trials import Looseness
from lemmata.studies.multihead.trials.inequalities import INEQUALITIES, POINTWISE
from lemmata.sweep import Axis, Sweep, axis

# What is run -----------------------------------------------------------------------------------------------------------


def _sizes(scale: Scale) -> Axis:
    return axis("size", by_scale(scale, (1.0,), (0.1, 1.0, 10.0), (0.1, 0.3, 1.0, 3.0, 10.0)))


def full(scale: Scale) -> Sweep:
    axes = (
        axis("kind", ("gaussian", "extreme")),
        axis("data.dim", by_scale(scale, (1,), (1, 2, 4), (1, 2, 3, 4)), name="dim"),
        _sizes(scale),
    )
    return Sweep(Looseness(), axes, seeds(scale, 2, 20, 100))


def vectors(scale: Scale) -> Sweep:
    axes = (axis("kind", ("gaussian", "extreme")), axis("decoder", ("pooling", "last")), _sizes(scale))
    return Sweep(Looseness(), axes, seeds(scale, 2, 20, 100))


def labels(trial: Any) -> Mapping[str, Sequence[str]]:
    return {"inequality": INEQUALITIES}


# What is measured ------------------------------------------------------------------------------------------------------


def pointwise(r: xr.Dataset) -> xr.DataArray:
    """The ratios at a point: those of Proposition 1, Lemma 5 and Corollary 1."""
    return r.ratio.isel(inequality=slice(len(POINTWISE)))


def mended(r: xr.Dataset) -> xr.DataArray:
    """The same with the factor that a decoder of one vector needs."""
    plain, squared = (over_cells(r, _factor(squared)) for squared in (False, True))
    smooth = xr.DataArray([name == "smoothness" for name in POINTWISE], dims="inequality")
    return pointwise(r) / xr.where(smooth, squared, plain)


def _factor(squared: bool):
    return lambda t: general.decoder_factor(t.decoder, t.data.tokens, squared)


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """A row for every inequality."""
    figure, axes = canvas(width=7.5, height=5)
    ratio = results.ratio.assign_coords(inequality=list(INEQUALITIES))
    for i, (kind, colour) in enumerate(zip(results.kind.values, (BLUE, RED), strict=True)):
        here = ratio.sel(kind=kind)
        rows(axes, here.where(here > 1e-12), "inequality", colour, str(kind), 0.15 * (2 * i - 1), np.max)
    reference(axes, x=1, label="bound", colour=BLACK, style="--")
    panel(axes, "measured / bound (at most 1 where the theory is right)", log="x", xlim=(1e-6, 3))
    return figure, "Random weights and data at several sizes and dimensions; bars: the largest, dots: draws."


# What it can refute ----------------------------------------------------------------------------------------------------


def ratios(value: float, of: str) -> Made:
    """Ratios of 1/2, but for one."""
    return made(ratio=lambda t, inequality: np.where(inequality == of, value, 0.5))


looseness = Figure(
    "looseness", "Measured over bound, for every inequality of the theory",
    "Random points of three sizes, and an extreme point (equal tokens, no decoder) where gradient bounds are met.",
    full, draw, labels=labels,
    claims=[
        Claim(
            "inequalities", "At every point the bounds on gradients, Hessians, segments and short descents all hold",
            proof("Propositions 1/5 and 4/6, Lemmas 5, 7, 8, 9, Corollary 1, (15), (19)"),
            number=lambda r: r.ratio, holds=BELOW_BOUND, conditions=token_conditions,
            refuted_by=ratios(1.5, "mean loss"), upheld_by=ratios(0.8, "mean loss"),
        ),
    ],
)  # fmt: skip


def at_mended(share: float) -> Made:
    """Ratios at such a share of the mended bounds: pooling has sqrt(T) more, and T for the smoothness."""

    def law(t: Any, inequality: Any) -> Any:
        count = t.data.tokens if t.decoder == "pooling" else 1
        return share * np.where(inequality == "smoothness", count, sqrt(count))

    return made(ratio=law)


decoder_bounds = Figure(
    "decoder-bounds", "The same for pooling and last-token decoders",
    "The footnote on decoders read with the bounds as printed: gradients and norms of the vector u and of W.",
    vectors, draw, labels=labels,
    claims=[
        Claim(
            "decoder-inequalities", "The bounds on gradient and Hessian, as printed, also hold for pooling and last-token "
            "decoders", theorem("Section 2 (footnote on decoders); Proposition 1, Lemma 5, Corollary 1"),
            number=pointwise, holds=BELOW_BOUND, conditions=token_conditions,
            refuted_by=ratios(1.7, "head gradient"), upheld_by=ratios(0.8, "head gradient"),
        ),
        Claim(
            "decoder-inequalities-mended", "For pooling and last-token decoders the bounds on gradient and Hessian hold if "
            "pooling is given a factor sqrt(T), and T for the smoothness",
            ours("Section 2 (footnote on decoders), mended"),
            number=mended, holds=BELOW_BOUND, conditions=token_conditions,
            refuted_by=at_mended(1.5), upheld_by=at_mended(0.8),
        ),
    ],
)  # fmt: skip
