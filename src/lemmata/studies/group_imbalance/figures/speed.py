"""Figures 4.4 and 4.5(a): how fast gradient descent converges, against the means, the covariance and the number of neurons."""

from math import isclose, sqrt
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from lemmata.descent import Descent
from lemmata.draw.curves import line, lines, slope
from lemmata.draw.palette import BLACK, BLUE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import (
    Claim,
    Figure,
    about,
    at_least,
    between,
    every_run,
    experiment,
    ours,
    positive,
    proof,
    theorem,
)
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import bootstrap
from lemmata.measure.trend import arms, lead, ratio, trend
from lemmata.scale import Scale, by_scale
from lemmata.studies.group_imbalance.data import Population
from lemmata.studies.group_imbalance.figures.common import (
    BENT,
    FALLS,
    STEP,
    STRAIGHT,
    dip,
    evenly,
    kept,
    labels,
    log_of,
    logged,
    near,
    opposite,
    rate,
    rate_at,
    rates,
    runs,
    seeds,
    straightness,
    with_critical_point,
)
from lemmata.studies.group_imbalance.theory import conditions
from lemmata.studies.group_imbalance.trials import Descents
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put

SPECTRUM = (1.0, 1.1, 1.2, 1.3, 1.4)
"""D of Figure 4.4: the covariances are sigma^2 Lambda^T D Lambda."""

# What is run -----------------------------------------------------------------------------------------------------------


def opposite_means(scale: Scale, descent: Descent) -> Sweep:
    samples = by_scale(scale, 2000, 10_000, 10_000)
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), spectrum=SPECTRUM, samples=samples), descent=descent
    )
    shifts = by_scale(scale, (0.5, 1.5), (0.2, 0.6, 1.0, 1.5, 2.0), (0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0))
    return Sweep(trial, (Axis("shift", shifts, opposite),), seeds(scale, 3, 12, 20))


def means(scale: Scale) -> Sweep:
    return opposite_means(scale, logged(by_scale(scale, 500, 50_000, 200_000)))


def mean_rates(scale: Scale) -> Sweep:
    """The same with few steps: rates are read off the Hessian at W_n."""
    return opposite_means(scale, evenly(50, 10))


def of_norm(trial: Descents, norm: float) -> Descents:
    """Scale both covariances to a spectral norm."""
    spread = sqrt(norm / max(trial.population.spectrum))
    return put(trial, "population.spreads", (spread, spread))


def covariances(scale: Scale) -> Sweep:
    samples = by_scale(scale, 2000, 50_000, 50_000)
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), spectrum=SPECTRUM, samples=samples),
        descent=evenly(by_scale(scale, 500, 400, 40_000), 50),
    )
    norms = by_scale(
        scale, (1.0, 3.0, 9.0), (0.35, 1.0, 3.0, 9.0, 25.0), (0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 16.0, 35.0)
    )
    return Sweep(trial, (Axis("norm", norms, of_norm),), seeds(scale, 3, 12, 20))


def sizes(scale: Scale) -> Sweep:
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), samples=by_scale(scale, 3000, 50_000, 50_000)),
        descent=evenly(by_scale(scale, 50, 50, 50), 5),
    )
    neurons = by_scale(scale, (1, 2), (1, 2, 3, 4), (1, 2, 3, 4, 5))
    return Sweep(trial, (axis("population.neurons", neurons),), seeds(scale, 3, 20, 40))


# What is measured ------------------------------------------------------------------------------------------------------


def arrived(r: xr.Dataset) -> xr.DataArray:
    """The runs that came within 1e-8 of the critical point."""
    return with_critical_point(r) & (r.distance <= 1e-8)


def settled(r: xr.Dataset) -> xr.DataArray:
    """Of those, the runs long enough for the slowest direction to be alone: the next slowest has lost a factor 100 against it,
    by the spectrum of the Hessian at W_n."""
    apart = r.step_size * (r.curvature_next - r.curvature_low)
    return arrived(r) & (r.steps * apart >= np.log(100))


def contraction_ratio(r: xr.Dataset) -> xr.DataArray:
    """(1 - v) over eta0 lambda_min of the Hessian at W_n, of every run."""
    return rate(r) / (1 - r.contraction_exact)


def straightness_in_neurons(r: xr.Dataset, step: str) -> Estimate:
    """R^2 of a straight line with an intercept through the mean of v against -1 / K^2."""
    speed = rate_at(r, step)
    needs(r.sizes["neurons"] > 2, "a straight line is told from others at three numbers of neurons or more.")
    place = -1 / np.asarray(r.neurons.values, float) ** 2

    def square(some: xr.DataArray) -> float:
        return float(np.corrcoef(place, some.mean("seed").transpose("neurons").values)[0, 1] ** 2)

    return bootstrap(square, speed.dropna("seed"))


def lead_at_one(r: xr.Dataset, step: str) -> Estimate:
    """By how much log(1 - v) at |Sigma| = 1 exceeds the highest elsewhere."""
    speed = log_of(rate_at(r, step))
    others = [arm for arm in arms(speed, "norm") if not isclose(float(arm["norm"]), 1.0)]
    return lead(chosen(speed, norm=1.0), others)


# How it looks ----------------------------------------------------------------------------------------------------------


def descents(results: xr.Dataset, over: str, label: str, xlabel: str, log: str) -> Picture:
    results = kept(results)
    figure, (left, right) = canvas(2)
    lines(left, results.distance_curve.where(results.distance_curve > 0), "step", over, label)
    panel(left, "iteration t", r"$\|W_t-\hat W_n\|_F$", log="y")
    line(right, rate_at(results, "largest"), over, BLUE, r"step $1/\lambda_{max}$", "o-")
    line(right, results.rate_sharp, over, BLACK, "the same, Fisher information", "--", spread="none")
    line(right, rate_at(results, "printed"), over, RED, r"printed step, $1/M_2$", "s-")
    panel(right, xlabel, r"$1-v$", log=log, ticks=results[over].values)
    return figure


@picture
def over_means(results: xr.Dataset) -> Drawn:
    """Figure 4.4(a)."""
    figure = descents(results, "shift", "C = {:g}", "mean scale C", "y")
    return figure, "Distance to the critical point, where there is one, and rate of convergence."


@picture
def over_covariances(results: xr.Dataset) -> Drawn:
    """Figure 4.4(b)."""
    figure = descents(results, "norm", r"$\|\Sigma\|$ = {:g}", r"$\|\Sigma\|$", "xy")
    return figure, "Distance to the critical point and the rate of convergence as both covariances grow."


@picture
def over_neurons(results: xr.Dataset) -> Drawn:
    """Figure 4.5(a): v against -1/K^2, and 1 - v against K."""
    results = kept(results)
    figure, (left, right) = canvas(2)
    placed = results.assign_coords(minus=-1.0 / results.neurons.astype(float) ** 2)
    line(left, 1 - rate_at(placed, "largest"), "minus", BLUE, r"step $1/\lambda_{max}$", "o-")
    panel(left, r"$-1/K^2$", "factor v")
    seen = line(right, rate_at(results, "largest"), "neurons", BLUE, r"step $1/\lambda_{max}$", "o-")
    line(right, results.rate_sharp, "neurons", BLACK, "the same, Fisher information", "--", spread="none")
    line(right, rate_at(results, "printed"), "neurons", RED, r"printed step, $1/M_2$", "s-")
    slope(right, seen, -2.0, r"$K^{-2}$", colour=RED, style=":")
    panel(right, "neurons K", r"$1-v$", log="xy", ticks=results.neurons.values)
    return figure, "Rate of convergence against the number of neurons; W* is drawn anew for every seed."


# What it can refute ----------------------------------------------------------------------------------------------------


def factors(measured: float, exact: float):
    """Made runs that have settled, with a measured and an exact factor v."""
    return runs(
        noise=1e-4,
        contraction=lambda t: measured, contraction_exact=lambda t: exact, distance=lambda t: 1e-10,
        step_size=lambda t: 1.0, curvature_low=lambda t: 1 - exact, curvature_next=lambda t: 1.5 - exact,
    )  # fmt: skip


def norm(t: Any) -> float:
    return 1.4 * t.population.spreads[0] ** 2


GROWING = rates(lambda t: 0.02 * norm(t) ** 0.2)
PEAKED = rates(lambda t: 0.05 * np.exp(-(np.log(norm(t)) ** 2) / 8))

AT_STEP = {"printed": ("", "the printed step"), "largest": ("-largest-step", "the step 1 / lambda_max")}
"""What a rate claim is judged at: the ending of its id, and the words for its step."""
SPECTRAL = "1 - v is a step times lambda_min at W_n"


def mean_claim(step: str) -> Claim:
    ending, said = AT_STEP[step]
    return Claim(
        f"rate-mean{ending}", f"At {said} gradient descent converges more slowly as the means grow",
        experiment("Figure 4.4(a), Corollary 4.4.1 (iii)"), headline=not ending,
        number=lambda r: trend(rate_at(r, step), "shift"), holds=FALLS, cells=with_critical_point, conditions=conditions,
        refuted_by=rates(lambda t: 0.05, noise=0.5),
        upheld_by=rates(lambda t: 0.1 / (1 + t.population.shifts[0] ** 2)),
    )  # fmt: skip


def covariance_claims(step: str) -> list[Claim]:
    ending, said = AT_STEP[step]
    return [
        Claim(
            f"rate-covariance{ending}", f"At {said} gradient descent is fastest at a medium covariance: it is slower where "
            "|Sigma| is smaller or larger", experiment("Figure 4.4(b), Corollary 4.4.1 (i, ii)"), headline=not ending,
            number=lambda r: dip(-log_of(rate_at(r, step)), "norm"),
            holds=positive(because="log(1 - v) at its highest inside the grid, less the higher of its ends"),
            cells=with_critical_point, conditions=conditions, refuted_by=GROWING, upheld_by=PEAKED,
        ),
        Claim(
            f"rate-covariance-at-one{ending}", f"At {said}, among the covariances tried, |Sigma| = 1 is the fastest",
            experiment("Figure 4.4(b)"),
            number=lambda r: lead_at_one(r, step),
            holds=positive(because="log(1 - v) at |Sigma| = 1, less the highest elsewhere"),
            cells=with_critical_point, conditions=conditions, refuted_by=GROWING, upheld_by=PEAKED,
        ),
    ]  # fmt: skip


def neuron_claims(step: str) -> list[Claim]:
    ending, said = AT_STEP[step]
    return [
        Claim(
            f"rate-neurons{ending}", f"At {said} the factor v is linear in -1/K^2 (R^2 at least 0.95)",
            experiment("Figure 4.5(a)"), headline=not ending,
            number=lambda r: straightness_in_neurons(r, step),
            holds=at_least(0.95, because="a straight line with an intercept through the means over W*, K = 1 to 4, as the "
                           "figure is read; 1/K has 0.98 and 1/K^3 0.99, so that only a law as flat as -log K is excluded"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=rates(lambda t: 0.1 * (t.population.neurons - 2.5) ** 2),
            upheld_by=rates(lambda t: 0.5 / t.population.neurons**2),
        ),
        Claim(
            f"rate-neurons-square{ending}", f"At {said} the rate 1 - v is proportional to 1/K^2", theorem("Theorem 2, (4.9)"),
            number=lambda r: exponent(rate_at(r, step), "neurons"),
            holds=about(-2.0, -2.5, -1.5, because="a half tells K^-2 from K^-1 and K^-3; q itself depends on K"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=rates(lambda t: 0.5 / t.population.neurons), upheld_by=rates(lambda t: 0.5 / t.population.neurons**2),
        ),
    ]  # fmt: skip


fig4_4a = Figure(
    "fig4-4a", "Descent with growing means", STEP, means, over_means, labels=labels,
    claims=[
        Claim(
            "linear-convergence", "Gradient descent converges linearly to W_n: log|W_t - W_n| is a straight line in t (R^2 at "
            "least 0.98)", theorem("Theorem 2, (4.8)"), headline=True,
            number=straightness, cells=near,
            holds=every_run(between(0.98, 1.0 + 1e-9, because="over the last three decades of each run that came within 1e-6 "
                                    "of W_n the slowest direction is alone")),
            conditions=conditions, refuted_by=BENT, upheld_by=STRAIGHT,
        ),
        Claim(
            "contraction-bound", "Near W_n every step shrinks the distance at least by 1 - eta0 lambda_min of the empirical "
            "Hessian",
            proof("(C.232)"),
            number=contraction_ratio, cells=arrived,
            holds=every_run(at_least(0.98, because="two per cent for rounding; within 1e-8 of W_n the Hessian is that of W_n")),
            conditions=conditions, refuted_by=factors(0.9, 0.8), upheld_by=factors(0.75, 0.8),
        ),
        Claim(
            "contraction-exact", "In the end every step shrinks the distance exactly by 1 - eta0 lambda_min of the empirical "
            "Hessian",
            ours("sharp form of (C.232)"),
            number=contraction_ratio, cells=settled,
            holds=every_run(between(0.98, 1.02, because="two per cent; only runs within 1e-8 of W_n in which the next slowest "
                                    "direction has lost a factor 100 against the slowest")),
            conditions=conditions, refuted_by=factors(0.5, 0.8), upheld_by=factors(0.8, 0.8),
        ),
        Claim(
            "rate-fisher", "The rate 1 - v is lambda_min / lambda_max of the Fisher information at W*",
            ours("maximum likelihood"),
            number=lambda r: ratio(rate(r), r.rate_sharp), cells=with_critical_point,
            holds=about(1.0, 0.8, 1.25, because="the mean is claimed; at n = 1e4 lambda_min at W_n fluctuates by tens of per "
                        "cent a run"),
            conditions=conditions,
            refuted_by=runs(contraction=lambda t: 0.5, rate_sharp=lambda t: 0.2),
            upheld_by=runs(contraction=lambda t: 0.5, rate_sharp=lambda t: 0.5),
        ),
    ],
)  # fmt: skip

mean_rate = Figure(
    "fig4-4a-rate", "Rate of descent with growing means", f"{STEP} {SPECTRAL}; the paths are those of fig4-4a.",
    mean_rates, over_means, labels=labels, claims=[mean_claim(step) for step in AT_STEP],
)  # fmt: skip

fig4_4b = Figure(
    "fig4-4b", "Descent with growing covariance", f"{STEP} {SPECTRAL}.", covariances, over_covariances, labels=labels,
    claims=[claim for step in AT_STEP for claim in covariance_claims(step)],
)  # fmt: skip

fig4_5a = Figure(
    "fig4-5a", "Rate of convergence against the number of neurons",
    f"{STEP} {SPECTRAL}. n is not printed: 5e4, as in Figure 4.4(b).",
    sizes, over_neurons, labels=labels, claims=[claim for step in AT_STEP for claim in neuron_claims(step)],
)  # fmt: skip
