"""Figure 4.5(b) and footnote 15: the error of the weights and the excess risk against the samples, for several activations."""

from math import sqrt

import numpy as np
import xarray as xr

from lemmata.draw.curves import law, line, lines
from lemmata.draw.palette import BLACK, BLUE, GREEN, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import (
    Claim,
    Figure,
    about,
    at_least,
    at_most,
    between,
    every_run,
    experiment,
    ours,
    theorem,
)
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import bootstrap, mean
from lemmata.results import settings
from lemmata.scale import Scale, by_scale
from lemmata.studies.group_imbalance.data import Population
from lemmata.studies.group_imbalance.figures.common import (
    BENT,
    HALF,
    STEP,
    STRAIGHT,
    average_excess,
    average_sharp,
    errors,
    excesses,
    kept,
    labels,
    logged,
    near,
    runs,
    seeds,
    straightness,
    tens,
    with_critical_point,
)
from lemmata.studies.group_imbalance.theory import conditions
from lemmata.studies.group_imbalance.trials import Descents
from lemmata.sweep import Sweep, axis

# What is run -----------------------------------------------------------------------------------------------------------


def sweep(scale: Scale) -> Sweep:
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), spreads=(3.0, 3.0)),
        descent=logged(2),
        test_points=by_scale(scale, 2000, 20_000, 100_000),
    )
    samples = by_scale(scale, (2000, 8000), (2000, 6000, 20_000, 60_000), tens(2000, 60_000, 12))
    return Sweep(trial, (axis("population.samples", samples),), seeds(scale, 3, 20, 60))


def other_activations(scale: Scale) -> Sweep:
    """The same training with tanh and erf, rescaled to (0, 1)."""
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), dim=3, neurons=2, activation="erf"),
        descent=logged(by_scale(scale, 400, 2000, 20_000)),
    )
    samples = by_scale(scale, (2000,), (5000, 30_000), (4000, 8000, 16_000, 32_000, 64_000))
    kinds = axis("population.activation", ("tanh", "erf"))
    return Sweep(trial, (kinds, axis("population.samples", samples)), seeds(scale, 3, 16, 40))


# What is measured ------------------------------------------------------------------------------------------------------


def straightness_in_samples(r: xr.Dataset) -> Estimate:
    """R^2 of a straight line with an intercept through the mean error against sqrt(log n / n)."""
    needs(r.sizes["samples"] > 2, "a straight line is told from others at three numbers of samples or more.")
    n = np.asarray(r.samples.values, float)

    def square(some: xr.DataArray) -> float:
        return float(
            np.corrcoef(np.sqrt(np.log(n) / n), some.mean("seed").transpose("samples").values)[0, 1] ** 2
        )

    return bootstrap(square, r.error.dropna("seed"))


def of_groups(r: xr.Dataset) -> dict[str, Estimate]:
    """The exponent of each group's excess risk in n."""
    return {
        f"group {int(group)}": exponent(r.group_excess.sel(group=group), "samples", paired=True)
        for group in r.group.values
    }


def many_samples(r: xr.Dataset) -> xr.DataArray:
    """The upper half of the grid of samples, where there is a critical point."""
    return with_critical_point(r) & (r.samples > float(np.median(r.samples)))


# How it looks ----------------------------------------------------------------------------------------------------------


def predicted_excess(axes, results: xr.Dataset) -> None:
    """dK / (2n), dotted."""
    n, shape = results.samples.astype(float).values, settings(results)
    size = shape["population.dim"] * shape["population.neurons"]
    law(axes, n, size / (2 * n), r"$dK/(2n)$", RED, ":")


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Figure 4.5(b): the error against sqrt(log n / n), and against n."""
    results = kept(results)
    figure, (left, right) = canvas(2)
    n = results.samples.astype(float)
    placed = results.assign_coords(scale=xr.ufuncs.sqrt(xr.ufuncs.log(n) / n))
    line(left, placed.error, "scale", BLUE, "measured", "o-")
    panel(left, r"$\sqrt{\log n/n}$", r"$\|\hat W_n-W^*P\|_F$", xlim=(0, None), ylim=(0, None))
    line(right, results.error, "samples", BLUE, r"error of the weights", "o-")
    line(right, results.error_sharp, "samples", BLACK, r"$\sqrt{\mathrm{tr}\,I^{-1}/n}$", "--", spread="none")
    line(right, average_excess(results), "samples", RED, "average excess risk", "s-")
    predicted_excess(right, results)
    panel(right, "samples n", log="xy", ticks=results.samples.values)
    return figure, "Error of the weights and excess risk at the critical point, where there is one."


@picture
def draw_activations(results: xr.Dataset) -> Drawn:
    """Footnote 15: error and excess risk against n, and the descent at the largest n."""
    results = kept(results)
    figure, (left, right) = canvas(2)
    for colour, kind in zip((BLUE, GREEN), results.activation.values.tolist(), strict=False):
        one = results.sel(activation=kind)
        line(left, one.error, "samples", colour, f"{kind}: error", "o-")
        said = r"$\sqrt{\mathrm{tr}\,I^{-1}/n}$" if colour == BLUE else None
        line(left, one.error_sharp, "samples", colour, said, "--", spread="none")
        line(left, average_excess(one), "samples", colour, f"{kind}: excess", "s-")
    predicted_excess(left, results)
    panel(left, "samples n", log="xy", ticks=results.samples.values)
    last = results.isel(samples=-1)
    lines(
        right, last.distance_curve.where(last.distance_curve > 0), "step", "activation", "{}", (BLUE, GREEN)
    )
    panel(right, "iteration t", r"$\|W_t-\hat W_n\|_F$", log="y")
    return figure, "Error of the weights, excess risk and descent with other activations."


# What it can refute ----------------------------------------------------------------------------------------------------


fig4_5b = Figure(
    "fig4-5b", "Error of the weights against samples", "The error at the critical point itself (Newton).", sweep, draw,
    labels=labels,
    claims=[
        Claim(
            "error-line", "The error |W_n - W* P|_F is linear in sqrt(log n / n) (R^2 at least 0.98)",
            experiment("Figure 4.5(b)"), headline=True,
            number=straightness_in_samples,
            holds=at_least(0.98, because="a straight line through the means over W* and data sets; an error that goes as 1/n has "
                           "0.955 here"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=runs(error=lambda t: 1.0 + (t.population.samples / 2e4 - 1) ** 2), upheld_by=errors(-0.5),
        ),
        Claim(
            "error-samples", "The error |W_n - W* P|_F falls at least as fast as n^-1/2, up to a logarithm",
            theorem("Theorem 2, (4.10)"),
            number=lambda r: exponent(r.error, "samples", paired=True), holds=at_most(-0.4, value=-0.5, because=HALF),
            cells=with_critical_point, conditions=conditions, refuted_by=errors(-0.2), upheld_by=errors(-0.5),
        ),
        Claim(
            "error-constant", "n |W_n - W* P|_F^2 is tr I(W*)^-1 on average", ours("maximum likelihood"),
            number=lambda r: mean((r.error / r.error_sharp) ** 2),
            holds=about(1.0, 0.75, 1.33, because="the upper half of the grid of n; a quarter leaves room for second-order "
                        "terms, which fall as 1/n"),
            cells=many_samples, conditions=conditions,
            refuted_by=runs(error=lambda t: sqrt(2.0), error_sharp=lambda t: 1.0),
            upheld_by=runs(error=lambda t: 1.0, error_sharp=lambda t: 1.0),
        ),
        Claim(
            "risk-samples", "The average excess risk falls at least as fast as n^-1/2, up to a logarithm",
            theorem("Theorem 2, (4.11)"),
            number=lambda r: exponent(average_excess(r), "samples", paired=True),
            holds=at_most(-0.5, value=-0.5, because="an upper bound; maximum likelihood says -1"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=runs(group_excess=lambda t: t.population.samples**-0.25),
            upheld_by=runs(group_excess=lambda t: t.population.samples**-1.0),
        ),
        Claim(
            "group-risk-samples", "The excess risk of each group falls at least as fast as n^-1/2, up to a logarithm",
            theorem("Theorem 2, (4.12)"),
            number=of_groups,
            holds=at_most(-0.5, value=-0.5, because="an upper bound; maximum likelihood says -1"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=runs(group_excess=lambda t, group: t.population.samples ** np.where(group == 1, -1.0, -0.25)),
            upheld_by=runs(group_excess=lambda t: t.population.samples**-1.0),
        ),
    ],
)  # fmt: skip

activations = Figure(
    "activations", "Error and descent with tanh and erf", STEP + " phi = (1 + tanh)/2 and (1 + erf)/2.", other_activations,
    draw_activations, labels=labels,
    claims=[
        Claim(
            "activation-linear", "With tanh and erf gradient descent converges linearly to W_n as well (R^2 at least 0.98)",
            theorem("Theorem 2 by footnote 15"),
            number=straightness, cells=near,
            holds=every_run(between(0.98, 1.0 + 1e-9, because="as for linear-convergence")),
            conditions=conditions, refuted_by=BENT, upheld_by=STRAIGHT,
        ),
        Claim(
            "activation-error", "With tanh and erf the error |W_n - W* P|_F falls as n^-1/2, up to a logarithm",
            theorem("Theorem 2 by footnote 15"),
            number=lambda r: exponent(r.error, "samples", paired=True), holds=about(-0.5, -0.6, -0.4, because=HALF),
            cells=with_critical_point, conditions=conditions, refuted_by=errors(-0.2), upheld_by=errors(-0.5),
        ),
        Claim(
            "activation-excess", "With tanh and erf the average excess risk is dK / (2n)", ours("maximum likelihood"),
            number=lambda r: mean(average_excess(r) / average_sharp(r)),
            holds=about(1.0, 0.85, 1.2, because="as for average-excess"),
            cells=with_critical_point, conditions=conditions, refuted_by=excesses(2.0), upheld_by=excesses(1.0),
        ),
    ],
)  # fmt: skip
