"""Figure 6.5: pruning neurons by size, at random and from above."""

from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, line, lines, reference
from lemmata.draw.palette import BLACK, BLUE, GREY, RED, SKY
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import (
    Claim,
    Figure,
    about,
    at_least,
    at_most,
    every_run,
    experiment,
    made,
    positive,
    proof,
    theorem,
)
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.measure.trend import falls
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.in_context_learning import theory
from lemmata.studies.in_context_learning.figures.common import (
    LAYER,
    ONE_WHY,
    UNSAID,
    UNSAID_OUT,
    labels,
    scaled,
    seeds,
)
from lemmata.studies.in_context_learning.theory import in_domain, out_of_domain
from lemmata.studies.in_context_learning.trials import Layer, Testing
from lemmata.sweep import Sweep
from lemmata.trial import put_all

RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def sweep(scale: Scale) -> Sweep:
    test = Testing(fractions=(0.8, 0.6, 0.4), prompts=by_scale(scale, 2000, 2000, 10_000))
    trial = put_all(Layer(test=test, prune_rates=RATES), {"data.relevant_fraction": 0.6, "descent.logs": 11})
    return Sweep(scaled(trial, scale), (), seeds(scale, 6, 20))


# What is measured ------------------------------------------------------------------------------------------------------


def of_sizes(r: xr.Dataset, number) -> xr.DataArray:
    """A number of the sorted lengths of rows of W_O W_V, run by run."""
    sizes = r["sizes"].transpose(..., "neuron")

    def at(row: np.ndarray) -> float:
        return number(row) if np.isfinite(row).all() else np.nan

    return sizes.isel(neuron=0, drop=True).copy(data=np.apply_along_axis(at, -1, sizes.values))


def small_share(r: xr.Dataset) -> xr.DataArray:
    """The share of neurons below the largest relative gap of the lengths."""
    return of_sizes(r, lambda row: theory.largest_gap(row) / len(row))


def small_longest(r: xr.Dataset) -> xr.DataArray:
    """The longest of the small neurons, over 1/sqrt(M_2)."""
    scale = over_cells(r, lambda t: theory.small_size(t.data.irrelevant))
    return of_sizes(r, lambda row: float(np.sort(row)[theory.largest_gap(row) - 1])) / scale


def large_shortest(r: xr.Dataset) -> xr.DataArray:
    """The shortest of the large neurons, over 1/beta."""
    scale = over_cells(r, lambda t: theory.large_size(t.data.pattern_norm))
    return of_sizes(r, lambda row: float(np.sort(row)[theory.largest_gap(row)])) / scale


def pruned_small(r: xr.Dataset) -> xr.DataArray:
    """What pruning the small neurons adds to the hinge loss: the largest change up to their share."""
    found = r["pruned_hinge"].sel(order="smallest first").isel(fraction=0)
    inside = found["rate"] <= small_share(r) + 1e-6
    return abs(found - chosen(found, rate=0.0)).where(inside).max("rate")


def random_over_small(r: xr.Dataset) -> xr.DataArray:
    """The smallest excess of random pruning over pruning from below, over all rates above 0."""
    found = r["pruned_hinge"].isel(fraction=0)
    gap = found.sel(order="random") - found.sel(order="smallest first")
    return gap.where(gap["rate"] > 0).min("rate")


def large_slope(r: xr.Dataset) -> Estimate:
    """The slope of the hinge loss in R when a share R of all neurons goes, largest first, up to R = 0.5."""
    found = r["pruned_hinge"].sel(order="largest first").isel(fraction=0)
    part = found.where(found["rate"] <= 0.5, drop=True)
    x = part["rate"] - part["rate"].mean()
    return mean((part * x).sum("rate") / (x**2).sum("rate"))


def large_bound(r: xr.Dataset, fraction: float = 0.4) -> xr.DataArray:
    """The hinge loss less what (E.109) says it is at least, largest first, at the worst rate from 0.1 to 0.5."""
    found = chosen(r["pruned_hinge"], fraction=fraction).sel(order="largest first")
    one: Any = trial_at(r)
    d = one.data
    bound = [
        theory.pruned_large(float(rate), d.relevant, d.relevant_fraction, fraction)
        for rate in found["rate"].values
    ]
    gap = found - xr.DataArray(bound, {"rate": found["rate"]}, ("rate",))
    return gap.where((gap["rate"] >= 0.1) & (gap["rate"] <= 0.5)).min("rate")


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Loss and error over the pruning rate (A), for several alpha' (B), and the sizes of neurons under them."""
    figure, axes = canvas(2, 2, height=3.0)
    for order, colour in zip(results["order"].values, (BLUE, GREY, RED), strict=True):
        part = results.isel(fraction=0).sel(order=order)
        line(axes[0, 0], part["pruned_hinge"], "rate", colour, f"hinge, {order}")
        line(axes[0, 0], part["pruned_error"], "rate", colour, f"error, {order}", "--", spread="none")
    share = float(small_share(results).mean())
    for one in axes[0]:
        reference(one, x=share, label="share of small neurons", colour=BLACK)
    part = results["pruned_hinge"].sel(order="smallest first")
    lines(axes[0, 1], part, "rate", "fraction", "α' = {:g}")
    panel(axes[0, 0], "pruned share of neurons", "out of domain", "(A) in three orders")
    panel(axes[0, 1], "pruned share of neurons", "hinge loss", "(B) smallest first")
    titles = {"sizes": "rows of W_O W_V, sorted", "raw_sizes": "rows of W_O alone, sorted"}
    for one, (name, title) in zip(axes[1], titles.items(), strict=True):
        _spectrum(one, results[name])
        reference(one, x=share, colour=BLACK)
        if name == "sizes":
            trial: Any = trial_at(results)
            reference(one, y=theory.small_size(trial.data.irrelevant), label="1/√M_2 (6.14)", colour=RED)
        panel(one, "share of neurons", "length", title, xlim=(0, 1))
    return figure, f"Neurons stay at their vote 1/m. {BAND}"


def _spectrum(axes, values: xr.DataArray) -> None:
    """The sorted lengths as bars."""
    values = values.transpose(..., "neuron")
    place = (np.arange(values.sizes["neuron"]) + 0.5) / values.sizes["neuron"]
    sizes = np.asarray(values.values, float).reshape(-1, len(place))
    known = sizes[np.isfinite(sizes).all(axis=1)]
    if len(known):
        height = np.median(known, axis=0)
        axes.bar(place, height, 0.9 / len(place), color=SKY, label="length, median over seeds")


# What it can refute ----------------------------------------------------------------------------------------------------


def sized(small: float, large: float, share: float = 0.15):
    """A share of the neurons of one length, the others of another."""
    return lambda t, neuron: np.where(neuron <= round(share * t.neurons), small, large)


def hinges(random_less=0.003, small_adds=0.01, slope=1.0, at_04=0.8, harm=0.5):
    """Hinge losses of pruned models. Pruning small neurons adds `small_adds`; pruning at random costs `random_less` less; pruning
    large ones adds `slope` times the rate to `at_04` at alpha' = 0.4. A loss rises by `harm` times what alpha' falls."""

    def law(t, order, fraction, rate):
        smallest = harm * (0.8 - fraction) + small_adds * (rate > 0) + np.maximum(rate - 0.2, 0)
        largest = at_04 * (fraction == 0.4) + slope * rate
        random = smallest - random_less * (rate > 0)
        return np.where(order == "largest first", largest, np.where(order == "random", random, smallest))

    return law


UPHELD = made(sizes=sized(0.1, 0.7), pruned_hinge=hinges())

pruning = Figure(
    "fig6-5", "Pruning neurons by size, at random and from above",
    LAYER + " alpha = 0.6; the size of a neuron is its row of W_O W_V.", sweep, draw, labels=labels, upheld_by=UPHELD,
    claims=[
        Claim(
            "small-share", "About 15 % of the neurons are small",
            experiment("Figure 6.5 (A)", proxy=f"rows of W_O W_V in place of W_O; {UNSAID}"),
            number=lambda r: mean(small_share(r)),
            holds=about(0.15, 0.05, 0.25, because="a third of the lucky share either way"), conditions=in_domain,
            refuted_by=made(sizes=sized(0.1, 0.7, 0.6)),
        ),
        Claim(
            "small-size", "Rows of W_O W_V of small neurons have a length of at most 1/sqrt(M_2)", theorem("Theorem 6.3.7, (6.14)"),
            number=small_longest, holds=every_run(at_most(1.0, because="as printed, without a constant")), conditions=in_domain,
            refuted_by=made(sizes=sized(0.4, 3.0)),
        ),
        Claim(
            "large-size", "Rows of W_O W_V of large neurons have a length of at least 1/beta",
            proof("Theorem 6.3.7, (6.14) and its proof"),
            number=large_shortest, holds=every_run(at_least(1.0, because=ONE_WHY)), conditions=in_domain,
            refuted_by=made(sizes=sized(0.02, 0.2)),
        ),
        Claim(
            "prune-small", "Pruning the small neurons changes the out-of-domain hinge loss by at most 0.02",
            theorem("Theorem 6.3.7, (6.15), Figure 6.5 (A)"), headline=True,
            number=pruned_small, holds=every_run(at_most(0.02, because="a fiftieth of the margin")), conditions=out_of_domain,
            refuted_by=made(sizes=sized(0.1, 0.7), pruned_hinge=hinges(small_adds=0.05)),
        ),
        Claim(
            "prune-order", "Pruning the smallest neurons first hurts no more than pruning at random, at any rate",
            experiment("Figure 6.5 (A)", proxy=f"hinge loss in place of the error; {UNSAID_OUT}"),
            number=random_over_small,
            holds=every_run(at_least(-0.005, because="the error of a test of two thousand prompts on one model")),
            conditions=out_of_domain,
            refuted_by=made(pruned_hinge=hinges(random_less=0.012)),
        ),
        Claim(
            "prune-large", "Pruning a share R of the neurons, the largest first, costs a hinge loss of at least the order of R: 0.5 R",
            theorem("Theorem 6.3.7, (6.16)"), headline=True,
            number=large_slope, holds=at_least(0.5, because="half of the slope 1 of (E.109)"), conditions=out_of_domain,
            refuted_by=made(pruned_hinge=hinges(slope=0.2)),
        ),
        Claim(
            "prune-large-printed", "At alpha' = 0.4, pruning a share R of the neurons, the largest first, leaves a hinge loss of at "
            "least 1 - (1 - 2/(alpha' M_1))(1 - R)/(1 - 2/(alpha M_1))", proof("(E.109)"),
            number=large_bound, holds=every_run(at_least(0.0, because="as printed")), conditions=out_of_domain,
            refuted_by=made(pruned_hinge=hinges(at_04=0.4)),
        ),
        Claim(
            "prune-fraction", "The larger alpha', the lower the hinge loss of the pruned model, here without 30 % of the neurons",
            experiment("Figure 6.5 (B)", proxy=f"hinge loss in place of the error; {UNSAID_OUT}"),
            number=lambda r: falls(
                r["pruned_hinge"].sel(order="smallest first").sel(rate=0.3, method="nearest"), "fraction"),
            holds=positive(because="no rise would refute it"), conditions=out_of_domain,
            refuted_by=made(pruned_hinge=hinges(harm=-0.2)),
        ),
    ],
)  # fmt: skip
