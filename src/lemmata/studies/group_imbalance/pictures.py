"""Drawings of this study's results, the sharp predictions of maximum likelihood on top."""

from math import sqrt

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from lemmata.draw.curves import law, line, lines, reference, slope
from lemmata.draw.palette import BLACK, BLUE, CYCLE, GREEN, ORANGE, RED
from lemmata.draw.phase import success_map
from lemmata.draw.style import canvas, panel, picture, shared_key
from lemmata.results import settings, trial_at
from lemmata.studies.group_imbalance import measures
from lemmata.studies.group_imbalance.claims import COLUMNS
from lemmata.studies.group_imbalance.claims import ROWS as TABLE
from lemmata.studies.group_imbalance.theory import ROWS, population, world_of

Drawn = tuple[Figure, str]

# Success maps ------------------------------------------------------------------------------------------------------------


def _error_constants(results: xr.Dataset, over: str) -> np.ndarray:
    """tr I^-1 along an axis for the teachers of three seeds: the geometric mean."""

    def one(value) -> float:
        trial = trial_at(results, **{over: value})
        worlds = [world_of(trial, seed) for seed in range(3)]
        found = [population.fisher_information(w.mixture, w.teacher) for w in worlds]
        return float(np.exp(np.mean([np.log(population.error_constant(i)) for i in found])))

    return np.array([one(value) for value in results[over].values])


def _map(results: xr.Dataset, over: str, xlabel: str, predicted, name: str, log: str = "") -> Figure:
    figure, axes = canvas(1, width=5.2, height=4.2)
    mesh, _ = success_map(axes, measures.success(results), over, "samples", predicted, name)
    figure.colorbar(mesh, ax=axes, label="share of successes")
    panel(axes, xlabel, "samples n", log=log, ticks=results[over].values)
    return figure


@picture
def dimension_map(results: xr.Dataset) -> Drawn:
    """Figure 4.2: the share of experiments whose starts all reach one point, over d and n."""
    figure = _map(results, "dim", "dimension d", np.asarray(results.dim.values, float), "proportional to d")
    return (
        figure,
        "Share of experiments whose starts near W* all reach one critical point (spread at most 1e-3).",
    )


@picture
def mean_map(results: xr.Dataset) -> Drawn:
    """Figure 4.3(a): the same over the mean of group 1."""
    results = results.assign_coords(mean=results["shift"] * sqrt(settings(results)["population.dim"]))
    predicted = _error_constants(results, "shift")
    figure = _map(results, "mean", r"$\|\mu_1\|$", predicted, r"proportional to tr $I(W^*)^{-1}$")
    return figure, "Success over the mean of group 1, the other mean at -1."


@picture
def covariance_map(results: xr.Dataset) -> Drawn:
    """Figure 4.3(b): the same over the covariance of group 1."""
    predicted = _error_constants(results, "spread")
    figure = _map(results, "spread", r"$\sigma_1$", predicted, r"proportional to tr $I(W^*)^{-1}$", log="x")
    return figure, "Success over the standard deviation of group 1."


# Speed and error ---------------------------------------------------------------------------------------------------------


def _kept(results: xr.Dataset) -> xr.Dataset:
    """Without the runs whose samples have no critical point near W*."""
    return results.where(measures.with_critical_point(results))


def _descents(results: xr.Dataset, over: str, label: str, xlabel: str, log: str) -> Figure:
    results = _kept(results)
    figure, (left, right) = canvas(2)
    lines(left, results.distance_curve.where(results.distance_curve > 0), "step", over, label)
    panel(left, "iteration t", r"$\|W_t-\hat W_n\|_F$", log="y")
    line(right, measures.rate(results), over, BLUE, "measured, near the end", "o-")
    line(right, results.rate_sharp, over, BLACK, "Fisher information", "--", spread="none")
    panel(right, xlabel, r"$1-v$", log=log, ticks=results[over].values)
    return figure


@picture
def descents_mean(results: xr.Dataset) -> Drawn:
    """Figure 4.4(a)."""
    figure = _descents(results, "shift", "C = {:g}", "mean scale C", "y")
    return figure, "Distance to the critical point, where there is one, and rate of convergence."


@picture
def descents_covariance(results: xr.Dataset) -> Drawn:
    """Figure 4.4(b)."""
    figure = _descents(results, "norm", r"$\|\Sigma\|$ = {:g}", r"$\|\Sigma\|$", "xy")
    return figure, "Distance to the critical point and the rate of convergence as both covariances grow."


@picture
def neurons(results: xr.Dataset) -> Drawn:
    """Figure 4.5(a): v against -1/K^2, and 1 - v against K."""
    results = _kept(results)
    figure, (left, right) = canvas(2)
    placed = results.assign_coords(minus=-1.0 / results.neurons.astype(float) ** 2)
    line(left, placed.contraction, "minus", BLUE, "measured", "o-")
    panel(left, r"$-1/K^2$", "factor v")
    seen = line(right, measures.rate(results), "neurons", BLUE, "measured", "o-")
    line(right, results.rate_sharp, "neurons", BLACK, "Fisher information", "--", spread="none")
    slope(right, seen, -2.0, r"$K^{-2}$", colour=RED, style=":")
    panel(right, "neurons K", r"$1-v$", log="xy", ticks=results.neurons.values)
    return figure, "Rate of convergence against the number of neurons; W* is drawn anew for every seed."


@picture
def errors(results: xr.Dataset) -> Drawn:
    """Figure 4.5(b): the error against sqrt(log n / n), and against n."""
    results = _kept(results)
    figure, (left, right) = canvas(2)
    n = results.samples.astype(float)
    placed = results.assign_coords(scale=xr.ufuncs.sqrt(xr.ufuncs.log(n) / n))
    line(left, placed.error, "scale", BLUE, "measured", "o-")
    panel(left, r"$\sqrt{\log n/n}$", r"$\|\hat W_n-W^*P\|_F$", xlim=(0, None), ylim=(0, None))
    line(right, results.error, "samples", BLUE, r"error of the weights", "o-")
    line(right, results.error_sharp, "samples", BLACK, r"$\sqrt{\mathrm{tr}\,I^{-1}/n}$", "--", spread="none")
    line(right, measures.risk(results, "excess", "average"), "samples", RED, "average excess risk", "s-")
    size = settings(results)["population.dim"] * settings(results)["population.neurons"]
    law(right, n.values, size / (2 * n.values), r"$dK/(2n)$", RED, ":")
    panel(right, "samples n", log="xy", ticks=results.samples.values)
    return figure, "Error of the weights and excess risk at the critical point, where there is one."


# Risks of groups ---------------------------------------------------------------------------------------------------------


def _risks(results: xr.Dataset, over: str, xlabel: str, log: str = "") -> Figure:
    """Majority, minority and average side by side, for the three risks that may be meant; under them error and rate. What the
    Fisher information predicts is drawn on top, dashed."""
    results = _kept(results)
    figure, grid = canvas(3, 2, width=3.9, height=3.2)
    titles = {
        "raw": "cross-entropy at $\\hat W_n$",
        "excess": "excess risk at $\\hat W_n$",
        "budget": "excess after 100 steps",
    }
    who = {"majority": (GREEN, "s-"), "group": (RED, "o-"), "average": (BLUE, "^-")}
    for axes, (kind, title) in zip(grid[0], titles.items(), strict=True):
        for whose, (colour, style) in who.items():
            name = "minority" if whose == "group" else whose
            line(axes, measures.risk(results, kind, whose), over, colour, name, style)
        even = measures.risk(results, kind, "even")
        line(axes, even, over, CYCLE[4], "groups in equal parts", "-", spread="none")
        if kind == "excess":
            for group, colour in enumerate((GREEN, RED)):
                line(axes, results.group_sharp.isel(group=group), over, colour, None, "--", spread="none")
            shape = settings(results)
            flat = shape["population.dim"] * shape["population.neurons"] / (2 * shape["population.samples"])
            reference(axes, y=flat, label="dK/(2n)")
        panel(
            axes,
            xlabel,
            title=title,
            log=log + ("" if kind == "raw" else "y"),
            ticks=results[over].values,
            keyed=False,
        )
    error, speed, rest = grid[1]
    line(error, results.error, over, BLUE, None, "o-")
    line(
        error,
        results.error_sharp,
        over,
        BLACK,
        "Fisher information",
        "--",
        spread="none",
    )
    panel(
        error,
        xlabel,
        title=r"error $\|\hat W_n-W^*P\|_F$",
        log=log + "y",
        ticks=results[over].values,
        keyed=False,
    )
    line(speed, 1 - results.contraction_exact, over, BLUE, None, "o-")
    line(speed, results.rate_sharp, over, BLACK, None, "--", spread="none")
    panel(
        speed,
        xlabel,
        title=r"rate $1-v$ at $\hat W_n$",
        log=log + "y",
        ticks=results[over].values,
        keyed=False,
    )
    rest.axis("off")
    shared_key(figure, grid)
    return figure


TEXT = "Risks for each meaning that the document may have, error and rate; dashed: Fisher information."


@picture
def risks_covariance(results: xr.Dataset) -> Drawn:
    """Figure 4.6(a)."""
    return _risks(results, "spread", r"$\sigma_2$", "x"), TEXT


@picture
def risks_mean(results: xr.Dataset) -> Drawn:
    """Figure 4.6(b)."""
    return _risks(results, "shift", r"mean of group 2 (times $\mathbf{1}$)"), TEXT


@picture
def risks_fraction(results: xr.Dataset) -> Drawn:
    """Figures 4.7(a) and (b)."""
    return _risks(results, "fraction", r"fraction $\lambda_2$"), TEXT


# The initialisation ------------------------------------------------------------------------------------------------------


@picture
def initialisations(results: xr.Dataset) -> Drawn:
    """Figure C.1: distance to the critical point and loss over the iterations, from each kind of start."""
    figure, (left, right) = canvas(2)
    steps = results.path_step.isel(seed=0, begin=0).values
    placed = results.assign_coords(point=steps)
    lines(left, placed.distance_path.where(placed.distance_path > 0), "point", "begin", "{} start")
    panel(left, "iteration t", r"$\|W_t-\hat W_n\|_F$", log="y")
    above = placed.loss_path - placed.critical_loss.sel(begin="local")
    lines(right, above.where(above > 1e-14), "point", "begin", "{} start")
    panel(right, "iteration t", r"$f_n(W_t)-f_n(\hat W_n)$", log="y")
    made = float(results.relative_error.sel(begin="tensor").mean())
    return figure, f"Descent from each start; the tensor initialisation has a relative error of {made:.2f}."


@picture
def deviations(results: xr.Dataset) -> Drawn:
    """Lemmas C.4.5, C.5.1, C.6.1 to C.6.4 and C.3.3 against n."""
    figure, (left, right) = canvas(2)
    whats = ("hessian", "gradient", "first", "second", "third")
    names = ("Hessian", "gradient", r"$Q_1$", r"$Q_2$", r"$R_3$")
    for colour, what, name in zip(CYCLE, whats, names, strict=False):
        seen = line(left, results[f"{what}_off"], "samples", colour, name, "o-", spread="none")
    slope(left, seen, -0.5, r"$n^{-1/2}$")
    panel(left, "samples n", "distance from the population's", log="xy", ticks=results.samples.values)
    line(right, results.literal_off, "samples", RED, r"$W_0$, magnitudes as printed", "o-")
    line(right, results.inverted_off, "samples", GREEN, r"$W_0$, magnitudes inverted", "o-")
    seen = line(right, results.subspace_off, "samples", BLUE, "subspace", "o-")
    slope(right, seen, -0.5, r"$n^{-1/2}$")
    panel(right, "samples n", "relative error", log="xy", ticks=results.samples.values)
    return figure, "Moments, derivatives and the tensor initialisation of n samples against the population's."


# Theory ------------------------------------------------------------------------------------------------------------------

COLUMN_NAMES = {
    "covariance-small": r"$\|\Sigma_l\|\to0$",
    "covariance-large": r"$\|\Sigma_l\|$ large",
    "mean": r"$\|\mu_l\|$",
    "mean-small": r"$\|\mu_l\|\leq1$",
    "fraction-smallest": r"$\lambda_l$, $\Sigma_l$ smallest",
    "fraction-largest": r"$\lambda_l$, $\Sigma_l$ largest",
}


ARROWS = {1.0: "\u2191", -1.0: "\u2193", 0.0: "\u2013"}


def _said(row: str, column: str) -> float:
    """The direction of a row along a column in Table 4.1 (for small means in (C.110)): 1, -1, or 0 if it says nothing."""
    if column == "mean-small":
        return 1.0 if row == "samples" else 0.0
    if row not in TABLE:
        return 0.0
    entry = dict(zip(COLUMNS, TABLE[row][1], strict=True))[column]
    return {"rises": 1.0, "falls": -1.0}[entry] if isinstance(entry, str) else float(np.sign(entry))


def _columns(results: xr.Dataset, quantities: dict[str, str], own: str) -> Figure:
    """Quantities along the columns of Table 4.1; above each panel the table's direction of each, and the one found (of the
    median, if it moves by more than a thousandth)."""
    count = results.sizes["column"]
    figure, grid = canvas((count + 1) // 2, 2, width=3.6, height=3.3)
    panels = np.ravel(grid)
    for axes, column in zip(panels, results.column.values.tolist(), strict=False):
        for at, (quantity, name) in enumerate(quantities.items()):
            values = measures.along(results, quantity, column)
            first = values.isel(place=0).drop_vars(["place", "parameter"], errors="ignore")
            seen = line(axes, values / first, "parameter", CYCLE[at], name, "o-", spread="quartiles")
            moved = np.log(seen.middle[-1])
            said = _said(quantity.partition("_")[2], column)
            for height, way in ((1.10, said), (1.01, np.sign(moved) if abs(moved) > 1e-3 else 0.0)):
                axes.text(
                    0.55 + 0.09 * at, height, ARROWS[float(way)], color=CYCLE[at], transform=axes.transAxes
                )
        for height, word in ((1.10, "Table 4.1"), (1.01, own)):
            axes.text(0.0, height, word, transform=axes.transAxes, fontsize="small")
        panel(axes, COLUMN_NAMES[column], log="y" if column.startswith("fraction") else "xy", keyed=False)
    for axes in panels[count:]:
        axes.axis("off")
    for axes in grid[:, 0]:
        axes.set_ylabel("relative to the first value")
    shared_key(figure, panels)
    return figure


@picture
def table(results: xr.Dataset) -> Drawn:
    """Table 4.1 from the closed forms, column by column."""
    names = (r"$n_{sc}$", r"$1-v$", r"$E_w$", r"$E$", r"$E_l$")
    figure = _columns(
        results, {f"closed_{row}": name for row, name in zip(ROWS, names, strict=True)}, "closed forms"
    )
    text = "The rows of Table 4.1 from the closed forms, along its columns; arrows: which way the table and they go."
    return figure, text


@picture
def sharp_table(results: xr.Dataset) -> Drawn:
    """The same columns by the Fisher information."""
    names = {
        "sharp_error": r"$\sqrt{\mathrm{tr}\,I^{-1}}$",
        "sharp_rate": r"$\lambda_{min}/\lambda_{max}$",
        "sharp_group": r"tr$(I_lI^{-1})/2$",
        "sharp_average": "average excess",
    }
    text = "The quantities themselves, by the Fisher information; arrows: which way the table and they go."
    return _columns(results, names, "Fisher information"), text


@picture
def lemmas(results: xr.Dataset) -> Drawn:
    """Both sides of Lemmas C.4.1 and C.4.4: below 1 the lemma is violated."""
    figure, panels = canvas(3, width=3.9)
    shown = {
        "lemma_ratio": "Lemma C.4.1: smallest eigenvalue / rho",
        "least_over_bound": r"Lemma C.4.4: $\lambda_{min}$ / bound",
        "least_over_mended": r"Lemma C.4.4 with rho_exact",
    }
    for axes, (name, title) in zip(panels, shown.items(), strict=True):
        for style, pattern in zip(("o--", "s-"), results.pattern.values.tolist(), strict=True):
            for colour, std in zip((BLUE, RED, GREEN, ORANGE, *CYCLE), results["std"].values, strict=False):
                values = results[name].sel(pattern=pattern, std=std)
                line(axes, values, "size", colour, rf"{pattern}, $\sigma$ = {std:g}", style, spread="none")
        reference(axes, y=1.0)
        panel(axes, "mean, each coordinate", title=title, log="y", keyed=False)
    shared_key(figure, panels)
    return figure, "A ratio below 1 is a counter-example."


@picture
def noise(results: xr.Dataset) -> Drawn:
    """The floor that gradient noise leaves, with the exact one and the bound of (4.8)."""
    results = _kept(results)
    figure, axes = canvas(1, width=5.5, height=4.0)
    shades = (BLUE, RED, GREEN, ORANGE)
    for colour, count in zip(shades, results.samples.values.tolist(), strict=False):
        one = results.sel(samples=count)
        line(axes, measures.floor(results).sel(samples=count), "noise", colour, f"measured, n = {count}", "o")
        line(axes, one.floor_exact, "noise", colour, "exact" if colour == BLUE else None, "-", spread="none")
        said = "bound (4.8)" if colour == BLUE else None
        line(axes, one.floor_bound, "noise", colour, said, ":", spread="none")
    panel(axes, r"noise level $\xi$", r"$\|W_t-\hat W_n\|_F$, second half", "", "xy", results.noise.values)
    return figure, "Where gradient noise keeps the iterates."


@picture
def ball(results: xr.Dataset) -> Drawn:
    """Lemma C.3.1: the spectrum of the empirical Hessian in the ball over both of its sides."""
    figure, (left, right) = canvas(2)
    line(left, results.ball_low, "spread", BLUE, "on the sphere of radius r", "o-", spread="runs")
    line(left, results.far_low, "spread", GREEN, "at distance 0.1", "s-", spread="runs")
    reference(left, y=1.0, label="Lemma C.3.1")
    panel(left, r"$\sigma$", r"$\lambda_{min}$ / lower side", log="y", ticks=results.spread.values)
    line(right, results.ball_high, "spread", BLUE, "on the sphere of radius r", "o-", spread="runs")
    reference(right, y=1.0, label="Lemma C.3.1")
    panel(right, r"$\sigma$", r"$\lambda_{max}$ / upper side", log="y", ticks=results.spread.values)
    return figure, "Curvature around W* over the two sides of Lemma C.3.1, one neuron."


@picture
def lipschitz(results: xr.Dataset) -> Drawn:
    """Lemmas C.4.2 and C.4.3: how fast Hessians change, over their bounds; above 1 the lemma is violated."""
    figure, panels = canvas(3, width=3.9)
    shown = {
        "sample_change": "Lemma C.4.2 as printed",
        "sample_change_mended": r"Lemma C.4.2 with $\|\Sigma^{1/2}\|$",
        "population_change": "Lemma C.4.3",
    }
    for axes, (name, title) in zip(panels, shown.items(), strict=True):
        for colour, shift in zip((BLUE, RED), results["shift"].values, strict=False):
            line(
                axes,
                results[name].sel(shift=shift),
                "spread",
                colour,
                f"|mean| {shift:g} in each coordinate",
                "o-",
            )
        reference(axes, y=1.0)
        panel(
            axes,
            r"$\sigma$",
            "measured / bound" if axes is panels[0] else "",
            title,
            "xy",
            results.spread.values,
        )
    return figure, "How fast Hessians change around W*, over the bounds; above 1 is a counter-example."


@picture
def activations(results: xr.Dataset) -> Drawn:
    """The footnote on other activations: error and excess risk against n, and the descent at the largest n."""
    results = _kept(results)
    figure, (left, right) = canvas(2)
    n = results.samples.astype(float)
    for colour, kind in zip((BLUE, GREEN), results.activation.values.tolist(), strict=False):
        one = results.sel(activation=kind)
        line(left, one.error, "samples", colour, f"{kind}: error", "o-")
        said = r"$\sqrt{\mathrm{tr}\,I^{-1}/n}$" if colour == BLUE else None
        line(left, one.error_sharp, "samples", colour, said, "--", spread="none")
        line(
            left,
            measures.risk(results, "excess", "average").sel(activation=kind),
            "samples",
            colour,
            f"{kind}: excess",
            "s-",
        )
    size = settings(results)["population.dim"] * settings(results)["population.neurons"]
    law(left, n.values, size / (2 * n.values), r"$dK/(2n)$", RED, ":")
    panel(left, "samples n", log="xy", ticks=results.samples.values)
    last = results.isel(samples=-1)
    lines(
        right, last.distance_curve.where(last.distance_curve > 0), "step", "activation", "{}", (BLUE, GREEN)
    )
    panel(right, "iteration t", r"$\|W_t-\hat W_n\|_F$", log="y")
    return figure, "Error of the weights, excess risk and descent with other activations."
