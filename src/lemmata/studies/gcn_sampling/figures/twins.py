"""Training with a sampled graph beside its twin with A*: over the rate, on Chung-Lu graphs, and with one group left out."""

from dataclasses import replace

import xarray as xr

from lemmata.draw.curves import line, rows, slope
from lemmata.draw.palette import BLACK, BLUE, GREY, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Source, at_least, at_most, made, positive, proof, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.trend import difference
from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling.data import ChungLu
from lemmata.studies.gcn_sampling.figures.common import (
    FIFTIETH,
    NORMALISED,
    ORDER,
    at_rate,
    seeds,
    sized,
    with_noise,
)  # fmt: skip
from lemmata.studies.gcn_sampling.theory import sampling_conditions
from lemmata.studies.gcn_sampling.trials import Twins
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

# What is run -----------------------------------------------------------------------------------------------------------


def matched_sweep(scale: Scale) -> Sweep:
    paper = (0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
    rates = by_scale(scale, (0.5, 0.9), (0.3, 0.5, 0.7, 0.9, 0.97), paper)
    return Sweep(Twins(training=sized(scale)), (Axis("rate", rates, at_rate),), seeds(scale))


def chung_lu_sweep(scale: Scale) -> Sweep:
    """The twins on graphs whose degrees are expectations."""
    drawn = sized(scale)
    held = {name: getattr(drawn.graph, name) for name in ("degrees", "sizes", "features", "target_width")}
    trial = Twins(training=replace(drawn, graph=ChungLu(**held)))
    paper = (0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
    rates = by_scale(scale, (0.5, 0.9), (0.3, 0.5, 0.7, 0.9, 0.97), paper)
    return Sweep(trial, (Axis("rate", rates, at_rate),), seeds(scale))


def undersampled(trial: Twins, group: str) -> Twins:
    return put_all(trial, {"training.rates": {"high": (0.5, 1.0), "low": (1.0, 0.5)}[group]})


def rates_sweep(scale: Scale) -> Sweep:
    """The special case under (5.10): p* = 1 and groups of equal size; half of one group is sampled, all of the other."""
    half = sized(scale).graph.nodes // by_scale(scale, 2, 4, 2)
    changes = {"graph.sizes": (half, half), "graph.target_scaling": (1.0, 1.0), "scaling": (1.0, 1.0)}
    trial = Twins(training=sized(scale, **changes, labels=by_scale(scale, 60, 200, 1500)))
    return Sweep(trial, (Axis("undersampled", ("high", "low"), undersampled),), seeds(scale))


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def over_rate(results: xr.Dataset) -> Drawn:
    """How far the sampled twin is from that with A*, over N/S - 1; and what it costs."""
    figure, panels = canvas(2)
    noisy = with_noise(results)
    found = line(panels[0], noisy["weight_gap"], "noise", BLUE, "V, over the way it has gone", "o-")
    line(panels[0], noisy["output_gap"], "noise", RED, "outputs, over the labels", "s-")
    slope(panels[0], found, 0.5, colour=BLACK)
    slope(panels[0], found, 1.0, colour=GREY)
    line(panels[1], results["error"], "rate", BLUE, "sampled", "o-", centre="mean")
    line(panels[1], results["twin_error"], "rate", BLACK, "its twin with A*", "s--", centre="mean")
    panel(panels[0], "N/S − 1", "distance of the twins", "", "xy")
    panel(panels[1], "sampling rate S/N", NORMALISED, "", "")
    return (
        figure,
        "Same graph, start, batches and dropout. Lines: median (left) and mean (right) over seeds, dots: seeds.",
    )


@picture
def over_groups(results: xr.Dataset) -> Drawn:
    """Distance from the twin with A* when half of one group is left out."""
    figure, axes = canvas(height=2.4)
    rows(axes, results["weight_gap"], "undersampled", BLUE)
    panel(
        axes, "distance of V, over the way it has gone", "", "half left out of the nodes of this degree", ""
    )
    return figure, "Bars: median over seeds, dots: seeds."


# What is claimed -------------------------------------------------------------------------------------------------------


def vanishes(
    id: str,
    statement: str,
    source: Source,
    gap: str,
    because: str = "as twin-vanishes",
    headline: bool = False,
) -> Claim:
    """That a distance of the twins goes to 0 with N/S - 1."""

    def number(r: xr.Dataset) -> Estimate:
        return exponent(with_noise(r)[gap], "noise", paired=True)

    def going_as(power: float):
        return made({gap: lambda t: (1 / t.training.rates[0] - 1) ** power})

    return Claim(
        id, statement, source, headline=headline, number=number, holds=at_least(0.25, because=because),
        conditions=sampling_conditions, refuted_by=going_as(0.1), upheld_by=going_as(0.5),
    )  # fmt: skip


def predicts_as_well(id: str, statement: str, headline: bool = False) -> Claim:
    """That the sampled twin predicts hardly worse, in parts of the labels' second moment."""

    def number(r: xr.Dataset) -> Estimate:
        sampled = chosen(r, rate=0.9)
        return difference(sampled.error, sampled.twin_error)

    def worse_by(cost: float):
        return made(noise=0.001, error=lambda t: 0.5 + cost, twin_error=lambda t: 0.5)

    return Claim(
        id, statement, theorem("Section 5.3.1, second finding"), headline=headline, number=number,
        holds=at_most(0.02, because=FIFTIETH), conditions=sampling_conditions,
        refuted_by=worse_by(0.04), upheld_by=worse_by(0.01),
    )  # fmt: skip


D_2_14 = proof("Lemma D.2.14, second finding of Section 5.3.1")

twin = Figure(
    "twin", "Training with a sampled graph beside its twin with A*, over the sampling rate",
    "Same graph, start, batches and dropout; one with A^s, one with A*.",
    matched_sweep, over_rate,
    claims=[
        vanishes("twin-vanishes", "Weights trained with A^s come to those trained with A* as the sampling rate goes to 1", D_2_14,
                 "weight_gap", "a gap that stays has the exponent 0; independent errors of the steps give 1/2, a shifted mean 1",
                 headline=True),
        predicts_as_well("twin-error", "Training with A^s at S = 0.9 N predicts as well as training with A*, within 0.02 of the "
                         "labels' second moment", headline=True),
    ],
)  # fmt: skip

chung_lu = Figure(
    "chung-lu", "The same twins on Chung-Lu graphs",
    "As twin; each pair is joined by itself, with a chance that goes as the product of its degrees.",
    chung_lu_sweep, over_rate,
    claims=[
        vanishes("chung-lu-vanishes", "On Chung-Lu graphs weights trained with A^s come to those trained with A* as the sampling "
                 "rate goes to 1", D_2_14, "weight_gap"),
        vanishes("chung-lu-drift-w", "On Chung-Lu graphs every column of W comes to that of the twin as the sampling rate goes to 1",
                 proof("(D.119)"), "drift_w", "as twin-vanishes, of the column that is furthest"),
        vanishes("chung-lu-drift-v", "On Chung-Lu graphs every column of V comes to that of the twin as the sampling rate goes to 1",
                 proof("(D.120)"), "drift_v", "as twin-vanishes, of the column that is furthest"),
        predicts_as_well("chung-lu-error", "On Chung-Lu graphs training with A^s at S = 0.9 N predicts as well as training with A*, "
                         "within 0.02 of the labels' second moment"),
    ],
)  # fmt: skip


def high_over_low(r: xr.Dataset) -> Estimate:
    """The logarithm of the distance of the twins when the high-degree group is undersampled, over that of the low-degree
    group."""
    gap = xr.ufuncs.log(r.weight_gap)
    return difference(chosen(gap, undersampled="high"), chosen(gap, undersampled="low"))


def apart(high: float, low: float):
    return made(weight_gap=lambda t: high if t.training.rates[0] < 1 else low)


rates = Figure(
    "rates", "Leaving out nodes of high or of low degree", "p* = 1, groups of equal size; half of one group sampled.",
    rates_sweep, over_groups,
    claims=[
        Claim(
            "high-degree-first", "With p* = 1 and groups of equal size, leaving out half of the high-degree nodes moves training "
            "further from A* than half of the low-degree nodes",
            theorem("(5.10), its first takeaway"), headline=True,
            number=high_over_low, holds=positive(because=ORDER), conditions=sampling_conditions,
            refuted_by=apart(0.1, 0.15), upheld_by=apart(0.15, 0.1),
        ),
    ],
)  # fmt: skip
