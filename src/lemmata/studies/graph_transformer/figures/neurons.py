"""Lemmas B.3.1 to B.3.6: what neurons, keys, queries and values do along training."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import BAND, line
from lemmata.draw.palette import BLACK, BLUE, GREY, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Made, about, at_least, at_most, every_run, made, proof
from lemmata.measure.simple import mean
from lemmata.measure.times import first_value, last_value
from lemmata.results import settings
from lemmata.studies.graph_transformer import theory
from lemmata.studies.graph_transformer.figures.common import LIKE, labels, swept
from lemmata.studies.graph_transformer.theory import transformer_conditions

# What is measured ------------------------------------------------------------------------------------------------------


def own(along: xr.DataArray) -> xr.DataArray:
    """Components of the lucky neurons along the feature of their own label."""
    return xr.concat([along.isel(sign=k, pattern=k, drop=True) for k in (0, 1)], "label")


def others(along: xr.DataArray) -> xr.DataArray:
    """Their largest component along any other feature."""
    each = [along.isel(sign=k, drop=True).drop_isel(pattern=[k]).max("pattern") for k in (0, 1)]
    return xr.concat(each, "label")


def grown(curve: xr.DataArray) -> xr.DataArray:
    """The end of a curve over its start."""
    return last_value(curve) / first_value(curve)


def lucky_ratio(r: xr.Dataset) -> xr.DataArray:
    """The largest mean component of the lucky neurons along another value feature over that along their own, at the end."""
    along = last_value(r.along_curve)
    return (others(along) / own(along)).max("label")


def unlucky_size(r: xr.Dataset) -> xr.DataArray:
    """Squared size of the other neurons inside the span of the value features over that of the lucky ones, at the end."""
    size = last_value(r.neuron_size_curve)
    return size.isel(lucky=1, drop=True) / size.isel(lucky=0, drop=True)


def discriminative(values: xr.DataArray) -> xr.DataArray:
    """The smaller of a quantity's values for the two discriminative patterns."""
    return values.isel(pattern=slice(2)).min("pattern")


def discriminative_growth(r: xr.Dataset) -> xr.DataArray:
    """The least growth of the keys and queries of the discriminative patterns, as a factor."""
    return xr.ufuncs.minimum(
        *(discriminative(grown(r[name])) for name in ("key_norm_curve", "query_norm_curve"))
    )


def other_keys(r: xr.Dataset) -> xr.DataArray:
    """The largest relative change of a non-discriminative key's length."""
    return abs(grown(r.key_norm_curve) - 1).isel(pattern=slice(2, None)).max("pattern")


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw_neurons(results: xr.Dataset) -> Drawn:
    """Lucky neurons along the features, sizes and gates, and the lengths of keys and queries."""
    figure, panels = canvas(4, width=3.7)
    along, shades = results.along_curve.isel(sign=0), (BLUE, RED, GREY)
    for which, colour in enumerate(shades):
        name = f"lucky for +1, along $p_{which + 1}$"
        line(panels[0], along.isel(pattern=which), "step", colour, name)
    predicted(panels[0], results)
    for name, which, colour in (("lucky", 0, BLUE), ("others", 1, GREY)):
        line(panels[1], results.neuron_size_curve.isel(lucky=which), "step", colour, name)
    line(panels[2], results.gates_curve.min("sign"), "step", BLUE, "open gates of lucky neurons")
    line(
        panels[2], results.value_cosine_curve.min("sign"), "step", RED, "cosine of value shift and lucky rows"
    )
    for name, curve, style in (
        ("key", results.key_norm_curve, "-"),
        ("query", results.query_norm_curve, "--"),
    ):
        for which, colour in enumerate(shades):
            line(panels[3], curve.isel(pattern=which), "step", colour, f"{name} of $\\mu_{which + 1}$", style)
    panel(panels[0], "step", "mean component", "lucky neurons")
    panel(panels[1], "step", "squared size in the features", "neurons", "y")
    panel(panels[2], "step", "share, cosine", "gates and values", ylim=(-0.1, 1.05))
    panel(panels[3], "step", "length", "keys and queries")
    return figure, f"(B.91) with the attention measured. {BAND}"


def predicted(axes: Axes, results: xr.Dataset) -> None:
    """The growth of the lucky neurons by the increments (B.91), up to where the loss is gone."""
    there, steps = settings(results), results.step.values
    paid = float(results.attention_curve.mean())
    first = float(results.along_curve.isel(sign=0, pattern=0, step=0).mean())
    height = theory.lucky_growth(
        steps, there["network.hidden_std"], there["descent.learning_rate"], there["data.flipped"], paid,
        there["network.neurons"], there["network.value_error"], first,
    )  # fmt: skip
    kept = height <= 1.5 * float(results.along_curve.max())
    axes.plot(steps[kept], height[kept], ":", color=BLACK, label="(B.91), constants 1")


# What it can refute ----------------------------------------------------------------------------------------------------


def rising(start: float, end: float):
    """A record that goes from one value to another in proportion to the steps."""
    return lambda t, step: start + (end - start) * step / t.descent.steps


def climbing(own: float, other: float) -> Made:
    """Components of lucky neurons that start at 0.01 and end at `own` along their feature, at `other` along the rest."""

    def along(t, step, sign, pattern):
        end = np.where(pattern == np.where(sign > 0, 0, 1), own, other)
        return 0.01 + (end - 0.01) * step / t.descent.steps

    return made(along_curve=along)


def lengths(discriminative: float, other: float) -> Made:
    """Keys and queries that start with length 1 and end with these lengths."""

    def norm(t, step, pattern):
        return 1 + (np.where(pattern < 2, discriminative, other) - 1) * step / t.descent.steps

    return made(key_norm_curve=norm, query_norm_curve=norm)


neurons = Figure(
    "neurons", "Lucky neurons, keys, queries and values along training", LIKE,
    swept({"probes": "neurons", "descent.steps": 400, "descent.logs": 41}), draw_neurons, labels=labels,
    claims=[
        Claim(
            "lucky-grow", "Lucky neurons grow at least threefold along the feature of their label", proof("Lemma B.3.1, (B.9)"),
            number=lambda r: grown(own(r.along_curve)).min("label"),
            holds=every_run(at_least(3.0, because="the growth that brings the output to 1; (B.9) leaves its constant open")),
            conditions=transformer_conditions,
            refuted_by=climbing(0.025, 0.0), upheld_by=climbing(0.06, 0.0),
        ),
        Claim(
            "lucky-direction", "Along any other feature lucky neurons grow less than along that of their label, by a factor of "
            "B^-1/2", proof("Lemma B.3.1, (B.10)"),
            number=lucky_ratio, holds=every_run(at_most(0.3, because="B^-1/2 = 1/8 up to a constant below three")),
            conditions=transformer_conditions,
            refuted_by=climbing(0.1, 0.06), upheld_by=climbing(0.1, 0.02),
        ),
        Claim(
            "unlucky-small", "The squared size of the other neurons is at most 1/B of that of the lucky ones, up to a constant",
            proof("Lemma B.3.1, (B.19)"),
            number=unlucky_size, holds=every_run(at_most(0.1, because="1/B = 1/64 up to a constant of six")),
            conditions=transformer_conditions,
            refuted_by=made(neuron_size_curve=lambda t, step, lucky: np.where(lucky == "lucky", 1.0, 0.3)),
            upheld_by=made(neuron_size_curve=lambda t, step, lucky: np.where(lucky == "lucky", 1.0, 0.05)),
        ),
        Claim(
            "lucky-share", "A share of order one of the neurons is lucky for each label, 1/6 by the cap formula",
            proof("Lemma B.3.5"),
            number=lambda r: mean(first_value(r.lucky_share_curve)),
            holds=about(0.167, 0.1, 0.25, because="nodes differ by more than sigma in what they attend to"),
            conditions=transformer_conditions,
            refuted_by=made(lucky_share_curve=lambda t, step: 0.05), upheld_by=made(lucky_share_curve=lambda t, step: 1 / 6),
        ),
        Claim(
            "lucky-stay", "Lucky neurons stay active on every node of their pattern", proof("Lemma B.3.6"),
            number=lambda r: r.gates_curve.min(("sign", "step")),
            holds=every_run(at_least(0.99, because="all, read as 99 of 100")), conditions=transformer_conditions,
            refuted_by=made(gates_curve=rising(1.0, 0.9)), upheld_by=made(gates_curve=lambda t, step: 1.0, noise=0.0),
        ),
        Claim(
            "keys-grow", "Keys and queries of the discriminative patterns grow by at least a tenth", proof("Lemma B.3.2"),
            number=discriminative_growth, holds=every_run(at_least(1.1, because="a tenth: above what other patterns do")),
            conditions=transformer_conditions,
            refuted_by=lengths(1.05, 1.0), upheld_by=lengths(1.5, 1.0),
        ),
        Claim(
            "other-keys-stay", "Keys of the other patterns keep their length, within a tenth", proof("Lemma B.3.2, (B.156)"),
            number=other_keys, holds=every_run(at_most(0.1, because="a tenth: below what the discriminative ones do")),
            conditions=transformer_conditions,
            refuted_by=lengths(1.5, 1.3), upheld_by=lengths(1.5, 1.05),
        ),
        Claim(
            "values-follow", "Values of a discriminative pattern move along the sum of its lucky rows, with a cosine of at "
            "least 0.8", proof("Lemma B.3.4, (B.26)"),
            number=lambda r: last_value(r.value_cosine_curve).min("sign"),
            holds=every_run(at_least(0.8, because="noise and unlucky rows take up to a fifth")),
            conditions=transformer_conditions,
            refuted_by=made(value_cosine_curve=rising(0.0, 0.5)), upheld_by=made(value_cosine_curve=rising(0.0, 0.95)),
        ),
    ],
)  # fmt: skip
