"""The adjacency, its effective and a sampled version, and how far samples lie from the effective one (Lemma D.1.2)."""

import numpy as np
import xarray as xr
from matplotlib.colors import PowerNorm

from lemmata.draw.curves import line, one_run, rows, slope
from lemmata.draw.palette import BLACK, BLUE, GREY, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, at_most, every_run, made, nothing_asked, proof, theorem
from lemmata.measure.exponent import exponent
from lemmata.results import trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling.figures.common import seeds, with_noise
from lemmata.studies.gcn_sampling.trials import Draws
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all


def sweep(scale: Scale) -> Sweep:
    rates = by_scale(scale, (0.5, 0.9), (0.5, 0.7, 0.9, 0.95, 0.98), (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98))
    return Sweep(Draws(draws=by_scale(scale, 20, 200, 1000)), (axis("rate", rates),), seeds(scale, 8, 20))


PROFILES = {
    "small hubs": ((12, 2), (24, 96)),
    "equal groups": ((12, 2), (60, 60)),
    "few hubs": ((12, 1), (12, 108)),
    "one degree": ((4, 4), (24, 96)),
}
"""Degrees and sizes of the groups of each graph."""


def of_profile(trial: Draws, name: str) -> Draws:
    degrees, sizes = PROFILES[name]
    return put_all(trial, {"graph.degrees": degrees, "graph.sizes": sizes})


def balance_sweep(scale: Scale) -> Sweep:
    return Sweep(Draws(draws=1), (Axis("profile", tuple(PROFILES), of_profile),), seeds(scale, 20, 40))


@picture
def draw_balance(results: xr.Dataset) -> Drawn:
    """How far one group dominates A, and A* with the largest admissible p*."""
    figure, axes = canvas(width=5.6, height=3.2)
    rows(axes, results["imbalance"], "profile", GREY, "A", -0.12, bar=np.mean)
    rows(axes, results["imbalance_effective"], "profile", BLUE, "A*", 0.12, bar=np.mean)
    panel(axes, "columns of the heaviest group over those of the lightest", "", "", "x")
    return figure, "Largest p* that (5.8) admits with c_1 = 1. Bars: mean over seeds, dots: seeds."


@picture
def draw(results: xr.Dataset) -> Drawn:
    """A, A* and a draw of A^s, groups marked; and the deviation of rows over 1 - S/N."""
    figure, grid = canvas(2, 2, width=4.6, height=4.4)
    panels = grid.ravel()
    shown = one_run(results).isel(rate=int(np.argmin(np.abs(results["rate"].values - 0.7))))
    graph = trial_at(results).graph
    border, nodes = graph.sizes[0], graph.nodes
    top = float(shown["adjacency"].max())
    names = ("A", "A* = A P*", f"a draw of A^s, S/N = {float(shown['rate']):g}")
    for axes, name, title in zip(panels, ("adjacency", "effective", "sampled"), names, strict=False):
        axes.imshow(shown[name].values, cmap="Greys", norm=PowerNorm(0.5, 0, top), interpolation="nearest")
        axes.axhline(border - 0.5, color=RED, linewidth=0.8)
        axes.axvline(border - 0.5, color=RED, linewidth=0.8)
        middles, degrees = (border / 2, (border + nodes) / 2), [f"degree {d}" for d in graph.degrees]
        axes.set_xticks(middles, degrees)
        axes.set_yticks(middles, degrees, rotation=90, va="center")
        axes.tick_params(length=0)
        axes.set_title(title)
    noisy = with_noise(results)
    line(panels[3], noisy["mean_deviation"], "left_out", BLUE, "mean row", "o")
    order = np.argsort(noisy["left_out"].values)
    exact = noisy["exact_deviation"].mean("seed").values[order]
    panels[3].plot(noisy["left_out"].values[order], exact, "-", color=BLACK, label="exact mean")
    found = line(panels[3], noisy["worst_deviation"], "left_out", RED, "worst row, |A^s − A*|", "s-")
    line(panels[3], noisy["worst_symmetric"], "left_out", ORANGE, "worst row, symmetric sampler", "^-")
    slope(panels[3], found, 1.0, at=-1, colour=GREY)
    panel(panels[3], "1 − S/N", "deviation of a row", "", "xy")
    return (
        figure,
        "Red lines part the groups; darker is larger (root scale), one scale for all three. Dots: seeds.",
    )


ORDER_ONE = at_least(
    0.8, value=1.0, because="an upper bound that vanishes: its exponent in 1 - S/N, less a fifth"
)

sampled = Figure(
    "sampled", "The adjacency with its groups, its effective and a sampled version; how far samples lie from it",
    "A graph of 120 nodes, degrees 12 and 2; many draws at each rate.",
    sweep, draw,
    claims=[
        Claim(
            "deviation-worst", "|A^s - A*|_inf is at most of the order 1 - S/N, so that it vanishes as all nodes are sampled",
            proof("Lemma D.1.2, (D.12)"), headline=True,
            number=lambda r: exponent(with_noise(r).worst_deviation, "left_out"), holds=ORDER_ONE,
            refuted_by=made(worst_deviation=lambda t: (1 - t.rate) ** 0.5),
            upheld_by=made(worst_deviation=lambda t: 1 - t.rate),
        ),
        Claim(
            "deviation-symmetric", "With the symmetric sampler |A^s - A*|_inf is at most of the order 1 - S/N",
            proof("Lemma D.1.3, (D.18), (D.23)"),
            number=lambda r: exponent(with_noise(r).worst_symmetric, "left_out"), holds=ORDER_ONE,
            refuted_by=made(worst_symmetric=lambda t: (1 - t.rate) ** 0.5),
            upheld_by=made(worst_symmetric=lambda t: 1 - t.rate),
        ),
    ],
)  # fmt: skip

balance = Figure(
    "balance", "How far one group dominates A and A*", "Graphs of 120 nodes; p* is the largest that (5.8) admits with c_1 = 1.",
    balance_sweep, draw_balance,
    claims=[
        Claim(
            "more-balanced", "With the largest admissible p* no group dominates A* more than it dominates A",
            theorem("(5.8), (5.9), the takeaway under them"), headline=True,
            number=lambda r: r.imbalance_effective / r.imbalance,
            holds=every_run(at_most(1.0 + 1e-9, because="the columns of the heaviest group over those of the lightest; equal where "
                                    "no group dominates")),
            conditions=nothing_asked,
            refuted_by=made(imbalance=lambda t: 2.0, imbalance_effective=lambda t: 3.0),
            upheld_by=made(imbalance=lambda t: 2.0, imbalance_effective=lambda t: 1.5),
        ),
    ],
)  # fmt: skip
