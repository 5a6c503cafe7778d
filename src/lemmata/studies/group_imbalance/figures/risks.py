"""Figures 4.6 and 4.7: the risks of both groups against the covariance, the mean and the fraction of the minority.

The figures do not say at which step the risk is taken. So each statement is judged for the cross-entropy at W_n and for the excess
risk after 100 steps. The excess risk at W_n is that of maximum likelihood, and is judged against its constants.
"""

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Picture

from lemmata.descent import Descent
from lemmata.draw.curves import line, reference
from lemmata.draw.palette import BLACK, BLUE, CYCLE, GREEN, RED
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import Claim, Figure, Holds, Made, about, experiment, flat, made, ours, positive
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.measure.trend import difference, trend
from lemmata.results import settings
from lemmata.scale import Scale, by_scale
from lemmata.studies.group_imbalance.data import Population
from lemmata.studies.group_imbalance.figures.common import (
    FALLS,
    RISES,
    average_excess,
    average_sharp,
    averaged,
    dip,
    excesses,
    kept,
    labels,
    log_of,
    moved,
    runs,
    seeds,
    with_critical_point,
)
from lemmata.studies.group_imbalance.theory import conditions
from lemmata.studies.group_imbalance.trials import Descents
from lemmata.sweep import Axis, Sweep, geometric
from lemmata.trial import put

BUDGET = 100
"""The steps of the fixed-budget risk."""

SETUP = (
    "The captions say cross-entropy test loss, and not after how many steps. Raw and excess at the critical point, and excess "
    "after 100 steps, are all recorded. Risks are means over fresh inputs of each group with soft labels (excess: KL)."
)

# What is run -----------------------------------------------------------------------------------------------------------


def groups(scale: Scale, **fields: Any) -> Descents:
    return Descents(
        population=Population(samples=by_scale(scale, 4000, 20_000, 20_000), **fields),
        descent=Descent(
            learning_rate=1.0, loss="cross-entropy", stop="cap", steps=by_scale(scale, BUDGET, BUDGET, 1000),
            log_at=by_scale(scale, (BUDGET,), (BUDGET,), (BUDGET, 1000)),
        ),
        arrive=0.0,
        test_points=by_scale(scale, 2000, 10_000, 100_000),
    )  # fmt: skip


def covariances(scale: Scale) -> Sweep:
    trial = groups(scale, fractions=(0.8, 0.2), shifts=(2.0, -2.0))
    spreads = by_scale(scale, (0.1, 1.0, 5.0), (0.1, 0.3, 1.0, 2.0, 3.0, 5.0), geometric(0.1, 5, 12))
    return Sweep(trial, (moved("spread", "spreads", 1, spreads),), seeds(scale, 3, 20, 60))


def means(scale: Scale) -> Sweep:
    """The printed mean is (mu_2 - 2) 1, where mu_2 is a number: the mean itself is swept, from -4 to 4."""
    trial = groups(scale, fractions=(0.8, 0.2), shifts=(2.0, -2.0))
    shifts = by_scale(
        scale, (-2.0, 0.0, 2.0), (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0), tuple(np.linspace(-4, 4, 17))
    )
    return Sweep(trial, (moved("shift", "shifts", 1, shifts),), seeds(scale, 3, 20, 60))


def of_fraction(trial: Descents, value: float) -> Descents:
    return put(trial, "population.fractions", (1 - value, value))


def fractions(spreads: tuple[float, float], last: float) -> Callable[[Scale], Sweep]:
    def sweep(scale: Scale) -> Sweep:
        trial = groups(scale, shifts=(0.0, 0.0), spreads=spreads)
        inner = by_scale(scale, (), (0.1, 0.2), (0.05, 0.1, 0.15, 0.2, 0.25))
        values = tuple(sorted({0.02, *inner, 0.3, last}))
        return Sweep(trial, (Axis("fraction", values, of_fraction),), seeds(scale, 3, 20, 60))

    return sweep


# What is measured ------------------------------------------------------------------------------------------------------


def risk(r: xr.Dataset, kind: str, whose: str) -> xr.DataArray:
    """A risk of every run.

    `kind`: raw (cross-entropy at W_n), excess (over W*), budget (excess after 100 steps).
    `whose`: average (groups in their proportions), even (in equal ones), group (the second group's), majority (the first's).
    """
    if kind == "budget":
        each = chosen(r.group_excess_curve, step=BUDGET)
    else:
        each = r.group_excess + (r.group_entropy if kind == "raw" else 0)
    if whose in ("group", "majority"):
        return each.isel(group=1 if whose == "group" else 0)
    return averaged(r, each) if whose == "average" else each.mean("group")


def outward(values: xr.DataArray, over: str) -> dict[str, Estimate]:
    """The trends from 0 outward, towards the mean of the majority and away from it."""
    found = {}
    for side, name in ((1, "towards the majority"), (-1, "away from it")):
        one = values.assign_coords({over: side * values[over]})
        found[name] = trend(one.sel({over: one[over] >= 0}), over)
    return found


def over_likelihood(r: xr.Dataset) -> dict[str, Estimate]:
    """The excess risks at W_n over those of maximum likelihood: dK / (2n) on average, tr(I_2 I^-1) / (2n) for the minority."""
    return {
        "average": mean(average_excess(r) / average_sharp(r)),
        "minority": mean((r.group_excess / r.group_sharp).isel(group=1)),
    }


def minority_change(r: xr.Dataset) -> Estimate:
    """The logarithm of the minority's excess risk at W_n at the largest fraction over that at the smallest."""
    values = log_of(risk(r, "excess", "group"))
    return difference(values.isel(fraction=-1, drop=True), values.isel(fraction=0, drop=True))


# How it looks ----------------------------------------------------------------------------------------------------------


def draw(results: xr.Dataset, over: str, xlabel: str, log: str = "") -> Picture:
    """Majority, minority and average side by side, for the three risks that may be meant; under them error and rate. What the
    Fisher information predicts is drawn on top, dashed."""
    results = kept(results)
    figure, grid = canvas(3, 2, width=3.9, height=3.2)
    titles = {
        "raw": "cross-entropy at $\\hat W_n$",
        "excess": "excess risk at $\\hat W_n$",
        "budget": "excess after 100 steps",
    }
    who = {"majority": (GREEN, "s-"), "group": (RED, "o-"), "average": (BLUE, "^-")}
    look: dict[str, Any] = {"ticks": results[over].values, "keyed": False}
    for axes, (kind, title) in zip(grid[0], titles.items(), strict=True):
        for whose, (colour, style) in who.items():
            name = "minority" if whose == "group" else whose
            line(axes, risk(results, kind, whose), over, colour, name, style)
        even = risk(results, kind, "even")
        line(axes, even, over, CYCLE[4], "groups in equal parts", "-", spread="none")
        if kind == "excess":
            for group, colour in enumerate((GREEN, RED)):
                line(axes, results.group_sharp.isel(group=group), over, colour, None, "--", spread="none")
            shape = settings(results)
            flat = shape["population.dim"] * shape["population.neurons"] / (2 * shape["population.samples"])
            reference(axes, y=flat, label="dK/(2n)")
        panel(axes, xlabel, title=title, log=log + ("" if kind == "raw" else "y"), **look)
    error, speed, rest = grid[1]
    line(error, results.error, over, BLUE, None, "o-")
    line(error, results.error_sharp, over, BLACK, "Fisher information", "--", spread="none")
    panel(error, xlabel, title=r"error $\|\hat W_n-W^*P\|_F$", log=log + "y", **look)
    line(speed, 1 - results.contraction_exact, over, BLUE, None, "o-")
    line(speed, results.rate_sharp, over, BLACK, None, "--", spread="none")
    panel(speed, xlabel, title=r"rate $1-v$ at $\hat W_n$", log=log + "y", **look)
    rest.axis("off")
    shared_key(figure, grid)
    return figure


TEXT = "Risks for each meaning that the document may have, error and rate; dashed: Fisher information."


@picture
def over_covariances(results: xr.Dataset) -> Drawn:
    """Figure 4.6(a)."""
    return draw(results, "spread", r"$\sigma_2$", "x"), TEXT


@picture
def over_means(results: xr.Dataset) -> Drawn:
    """Figure 4.6(b)."""
    return draw(results, "shift", r"mean of group 2 (times $\mathbf{1}$)"), TEXT


@picture
def over_fractions(results: xr.Dataset) -> Drawn:
    """Figures 4.7(a) and (b)."""
    return draw(results, "fraction", r"fraction $\lambda_2$"), TEXT


# What it can refute ----------------------------------------------------------------------------------------------------

Law = Callable[[Any], float]

KINDS = {
    "raw": ("the cross-entropy at W_n", "the number of steps is not printed"),
    "budget": ("the excess risk after 100 steps", "excess risk after 100 steps in place of the printed cross-entropy"),
}  # fmt: skip
OWNERS = {"average": "average", "group": "group-2"}
MAIN = {"covariance-raw-group", "mean-raw-group", "fraction-small-raw-group", "fraction-large-raw-group"}


def following(kind: str, whose: str, law: Law) -> Made:
    """Made runs in which one risk of one owner follows a law. Other risks, and the other group, go the other way."""

    def asked(t: Any, group: np.ndarray) -> np.ndarray:
        return np.where((group == 2) | (whose == "average"), law(t), 1 / law(t))

    def other(t: Any, group: np.ndarray) -> np.ndarray:
        return 1 / asked(t, group)

    if kind == "raw":
        return runs(group_entropy=asked, group_excess=lambda t, group: 1e-3 * other(t, group))
    return runs(
        group_excess_curve=lambda t, step, group: asked(t, group), group_excess=other, group_entropy=other
    )


def by_chance(kind: str, law: Law) -> Made:
    """Made runs in which chance moves a risk further than the law does."""

    def weak(t: Any) -> float:
        return law(t) ** 0.1

    found = {"critical_found": lambda t: 1.0}
    if kind == "raw":
        return made({**found, "group_entropy": weak, "group_excess": lambda t: 1e-3}, noise=1.0, seeds=80)
    return made({**found, "group_excess_curve": lambda t, step: weak(t)}, noise=1.0, seeds=80)


def family(
    word: str,
    text: str,
    where: str,
    open: str,
    number: Callable,
    holds: Holds,
    upheld: Law,
    refuted: Law | None = None,
) -> list[Claim]:
    """One statement for two risks, average and of the minority; `number` takes one of them."""

    def claim(kind: str, whose: str) -> Claim:
        name, differs = KINDS[kind]
        return Claim(
            f"{word}-{kind}-{whose}", f"The {OWNERS[whose]} risk ({name}) {text}",
            experiment(where, proxy=f"{differs}{open}"), headline=f"{word}-{kind}-{whose}" in MAIN,
            number=lambda r: number(risk(r, kind, whose)), holds=holds, cells=with_critical_point, conditions=conditions,
            refuted_by=following(kind, whose, refuted) if refuted else by_chance(kind, upheld), upheld_by=following(kind, whose, upheld),
        )  # fmt: skip

    return [claim(kind, whose) for kind in KINDS for whose in OWNERS]


def spread(t: Any) -> float:
    return t.population.spreads[1]


def fraction(t: Any) -> float:
    return t.population.fractions[1]


def growth(t: Any) -> float:
    """A positive number that grows with the mean of group 2 on both sides of 0."""
    return float(np.exp(t.population.shifts[1] / 2))


def outer(t: Any) -> float:
    """A positive number that grows from 0 outward."""
    return float(np.exp(abs(t.population.shifts[1]) / 4))


def likelihood(word: str, headline: bool = False) -> Claim:
    """Excess risks at W_n have the constants of maximum likelihood."""
    return Claim(
        f"{word}-likelihood", "At W_n the average excess risk is dK / (2n) and the minority's is tr(I_2 I^-1) / (2n)",
        ours("maximum likelihood"), headline=headline, number=over_likelihood,
        holds=about(1.0, 0.8, 1.25, because="all cells of the sweep together; at n = 2e4 second-order terms raise it by some per "
                    "cent"),
        cells=with_critical_point, conditions=conditions, refuted_by=excesses(2.0), upheld_by=excesses(1.0),
    )  # fmt: skip


fig4_6a = Figure(
    "fig4-6a", "Risks against the covariance of the minority", SETUP, covariances, over_covariances, labels=labels,
    claims=[
        likelihood("covariance", headline=True),
        *family(
            "covariance", "first falls and then rises as |Sigma_2| grows", "Figure 4.6(a)",
            "; the range of |Sigma_2| is not printed",
            lambda values: dip(log_of(values), "spread"),
            positive(because="log risk at the lower of the ends of the grid, less its lowest inside"),
            refuted=lambda t: spread(t) ** 0.5, upheld=lambda t: spread(t) + 0.3 / spread(t),
        ),
    ],
)  # fmt: skip

fig4_6b = Figure(
    "fig4-6b", "Risks against the mean of the minority", SETUP + " The mean of group 2 is swept from -4 to 4 times the ones.",
    means, over_means, labels=labels,
    claims=[
        likelihood("mean"),
        *family(
            "mean", "rises with the number mu_2 where the mean is (mu_2 - 2) 1, as printed", "Figure 4.6(b)",
            "; the range of mu_2 is not printed: -2 to 6",
            lambda values: trend(values, "shift"), RISES, upheld=growth,
        ),
        *family(
            "mean-outward", "rises as mu_2 moves from 0 outward, towards the majority's mean and away from it",
            "Figure 4.6(b), read with (P5)", "; the range of mu_2 is not printed",
            lambda values: outward(values, "shift"), RISES,
            refuted=lambda t: 1 / outer(t), upheld=outer,
        ),
    ],
)  # fmt: skip

fig4_7a = Figure(
    "fig4-7a", "Risks against the fraction of a minority of small covariance", SETUP + " n = 2e4.",
    fractions((sqrt(10), 1.0), 0.5), over_fractions, labels=labels,
    claims=[
        likelihood("fraction-small"),
        *family(
            "fraction-small", "falls as lambda_2 grows, Sigma_2 being the smaller one", "Figure 4.7(a)",
            "; n is not printed: 2e4",
            lambda values: trend(values, "fraction"), FALLS, upheld=lambda t: 1 / fraction(t),
        ),
        Claim(
            "fraction-small-flat", "The minority's excess risk at W_n does not depend on lambda_2 from 0.02 to 0.5, within a "
            "fifth", ours("maximum likelihood; against Figure 4.7(a)"),
            number=minority_change,
            holds=flat(-0.2, 0.2, because="the log ratio of the ends of the grid; O(1 / (1 + sqrt lambda_2)) of Table 4.1 allows "
                       "a fall by 0.4"),
            cells=with_critical_point, conditions=conditions,
            refuted_by=runs(group_excess=lambda t: fraction(t) ** 0.15),
            upheld_by=runs(group_excess=lambda t: fraction(t) ** 0.02),
        ),
    ],
)  # fmt: skip

fig4_7b = Figure(
    "fig4-7b", "Risks against the fraction of a minority of large covariance", SETUP + " n = 2e4.",
    fractions((1.0, sqrt(10)), 0.3), over_fractions, labels=labels,
    claims=[
        likelihood("fraction-large"),
        *family(
            "fraction-large", "rises as lambda_2 grows, Sigma_2 being the larger one", "Figure 4.7(b)",
            "; n is not printed: 2e4",
            lambda values: trend(values, "fraction"), RISES, upheld=fraction,
        ),
    ],
)  # fmt: skip
