"""Gradient noise: how near to the critical point it lets the iterates come, against its level and the samples."""

from collections.abc import Callable

import xarray as xr

from lemmata.draw.curves import line
from lemmata.draw.palette import BLUE, GREEN, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Made, about, at_most, every_run, ours, proof, theorem
from lemmata.measure.exponent import exponent
from lemmata.measure.trend import ratio
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.group_imbalance.data import Population
from lemmata.studies.group_imbalance.figures.common import (
    kept,
    labels,
    logged,
    runs,
    seeds,
    with_critical_point,
)
from lemmata.studies.group_imbalance.theory import conditions
from lemmata.studies.group_imbalance.trials import Descents
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), neurons=2),
        descent=logged(by_scale(scale, 400, 4000, 20_000)),
        arrive=0.0,
        noisy="per-step",
    )
    levels = by_scale(scale, (0.1, 0.4), (0.05, 0.15, 0.4), (0.02, 0.05, 0.1, 0.2, 0.4))
    samples = by_scale(scale, (1000,), (1000, 4000), (1000, 2000, 4000, 8000))
    return Sweep(trial, (axis("noise", levels), axis("population.samples", samples)), seeds(scale, 3, 6, 20))


def floor(r: xr.Dataset) -> xr.DataArray:
    """The root mean square distance to W_n over the second half of every run."""
    half = over_cells(r, lambda t: t.steps - t.steps // 2)
    return (r.late_square / half) ** 0.5


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The floor that gradient noise leaves, with the exact one and the bound of (4.8)."""
    results = kept(results)
    figure, axes = canvas(1, width=5.5, height=4.0)
    shades = (BLUE, RED, GREEN, ORANGE)
    for colour, count in zip(shades, results.samples.values.tolist(), strict=False):
        one = results.sel(samples=count)
        line(axes, floor(one), "noise", colour, f"measured, n = {count}", "o")
        line(axes, one.floor_exact, "noise", colour, "exact" if colour == BLUE else None, "-", spread="none")
        said = "bound (4.8)" if colour == BLUE else None
        line(axes, one.floor_bound, "noise", colour, said, ":", spread="none")
    panel(axes, r"noise level $\xi$", r"$\|W_t-\hat W_n\|_F$, second half", "", "xy", results.noise.values)
    return figure, "Where gradient noise keeps the iterates."


def floors(size: Callable) -> Made:
    """Made runs that stay at a distance, where the exact floor and the bound are 1e-3."""
    return runs(
        late_square=lambda t: size(t) ** 2 * (t.steps - t.steps // 2),
        floor_exact=lambda t: 1e-3, floor_bound=lambda t: 1e-3,
    )  # fmt: skip


noise = Figure(
    "noise", "Where gradient noise keeps the iterates", "Noise uniform on +-xi, drawn anew at every step.", sweep, draw,
    labels=labels,
    claims=[
        Claim(
            "noise-linear", "The distance at which gradient noise keeps the iterates grows no faster than the noise level xi",
            theorem("Theorem 2, (4.8)"),
            number=lambda r: exponent(floor(r), "noise", paired=True),
            holds=at_most(1.1, value=1.0, because="the exponent of xi in an upper bound; a tenth for the scatter of runs"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=floors(lambda t: t.noise**1.5), upheld_by=floors(lambda t: t.noise),
        ),
        Claim(
            "noise-samples", "The distance at which gradient noise keeps the iterates falls at least as fast as n^-1/2, up to a "
            "logarithm",
            theorem("Theorem 2, (4.8)"),
            number=lambda r: exponent(floor(r), "samples", paired=True),
            holds=at_most(-0.35, value=-0.5, because="an upper bound; the curvature itself fluctuates with the samples at small "
                          "n"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=floors(lambda t: t.population.samples**-0.2), upheld_by=floors(lambda t: t.population.samples**-0.5),
        ),
        Claim(
            "noise-bound", "The floor of gradient noise is at most eta0 xi / (1 - v) sqrt(dK log n / n), v = 1 - eta0 "
            "lambda_min",
            proof("(C.232), (4.8)"),
            number=lambda r: floor(r) / r.floor_bound, holds=every_run(at_most(1.0, because="a bound")),
            cells=with_critical_point, conditions=conditions,
            refuted_by=floors(lambda t: 2e-3), upheld_by=floors(lambda t: 5e-4),
        ),
        Claim(
            "noise-exact", "The floor of gradient noise is eta0 xi / sqrt(3n) sqrt(sum_i 1/(1 - (1 - eta0 lambda_i)^2)), as "
            "the linearised descent has it", ours("exact floor"),
            number=lambda r: ratio(floor(r), r.floor_exact),
            holds=about(1.0, 0.9, 1.1, because="averaged over the second half of each run; few correlation times fit into "
                        "it"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=floors(lambda t: 2e-3), upheld_by=floors(lambda t: 1e-3),
        ),
    ],
)  # fmt: skip
