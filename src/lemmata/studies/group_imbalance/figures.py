"""The document's figures, and the experiments that its theorem, table and lemmas ask for."""

from functools import partial
from math import sqrt

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.results import over_cells
from lemmata.studies.group_imbalance import pictures
from lemmata.studies.group_imbalance.data import Population
from lemmata.studies.group_imbalance.measures import BUDGET, success
from lemmata.studies.group_imbalance.trials import (
    Ball,
    Descents,
    Deviations,
    Exact,
    Initialised,
    Lemma,
    Starts,
)
from lemmata.study import Figure, Question, Scale, by_scale
from lemmata.sweep import Axis, Sweep, axis, geometric
from lemmata.trial import put, put_all

SPECTRUM = (1.0, 1.1, 1.2, 1.3, 1.4)
GRID: dict[str, tuple[float, ...]] = {
    "covariance-small": (1e-6, 3e-6, 1e-5, 3e-5, 1e-4),
    "covariance-large": (1e8, 1e9, 1e10, 1e11, 1e12),
    "mean": (100.0, 200.0, 400.0, 700.0, 1000.0),
    "mean-small": (0.01, 0.03, 0.1, 0.3, 1.0),
    "fraction-smallest": (0.02, 0.1, 0.2, 0.3, 0.45),
    "fraction-largest": (0.02, 0.1, 0.2, 0.3, 0.45),
}
"""The columns of Table 4.1 in their own asymptotic range: |Sigma_l|, |mu_l|, lambda_l."""

NEAR: dict[str, tuple[float, ...]] = {
    "covariance-small": (0.01, 0.04, 0.09, 0.16, 0.25),
    "covariance-large": (1.0, 2.0, 4.0, 9.0, 16.0),
    "mean": (0.5, 1.5, 2.5, 4.0, 6.0),
    "fraction-smallest": GRID["fraction-smallest"],
    "fraction-largest": GRID["fraction-largest"],
}
"""The same columns where the Fisher information can be had and experiments are made."""


def template() -> Descents:
    """The trial that `predict` starts from: Figure 4.6's mixture, a minority of a fifth."""
    return Descents(
        population=Population(fractions=(0.8, 0.2), shifts=(2.0, -2.0), spreads=(1.0, 1.0), samples=20_000)
    )


def _seeds(scale: Scale, smoke: int, quick: int, paper: int) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, smoke, quick, paper)))


def _nth(path: str, index: int, trial, value: float):
    """One entry of a field that holds a number for each group."""
    held = list(getattr(trial.population, path))
    held[index] = value
    return put(trial, f"population.{path}", tuple(held))


def _moved(name: str, path: str, index: int, values) -> Axis:
    return Axis(name, tuple(float(v) for v in values), partial(_nth, path, index))


# Sample complexity (Figures 4.2, 4.3) ------------------------------------------------------------------------------------


def _starts(scale: Scale, **fields) -> Starts:
    return Starts(population=Population(**fields), starts=by_scale(scale, 4, 6, 20))


def _tens(low: float, high: float, count: int) -> tuple[int, ...]:
    return tuple(int(round(n, -1)) for n in np.geomspace(low, high, count))


def _fig4_2(scale: Scale) -> Sweep:
    dims = by_scale(scale, (4, 8), (5, 10, 20), tuple(range(5, 51, 5)))
    samples = by_scale(scale, (500, 1000, 4000), _tens(500, 10_000, 5), _tens(400, 40_000, 18))
    trial = _starts(scale, shifts=(1.0, 0.0))
    near = by_scale(scale, (1, 1e9), (80, 1000), (50, 1600))
    return Sweep(
        trial,
        (axis("population.dim", dims), axis("population.samples", samples)),
        _seeds(scale, 2, 10, 20),
        keep=lambda place: near[0] <= place["samples"] / place["dim"] <= near[1],
    )


def _fig4_3a(scale: Scale) -> Sweep:
    shifts = by_scale(scale, (0.0, 2.2), (0.0, 0.6, 1.2, 1.8, 2.236), tuple(np.linspace(0, sqrt(5), 9)))
    samples = by_scale(scale, (500, 4000), _tens(400, 10_000, 5), _tens(300, 20_000, 14))
    trial = _starts(scale, shifts=(1.0, -1.0))
    return Sweep(
        trial,
        (_moved("shift", "shifts", 0, shifts), axis("population.samples", samples)),
        _seeds(scale, 2, 10, 20),
    )


def _fig4_3b(scale: Scale) -> Sweep:
    spreads = by_scale(scale, (0.1, 1.0, 10.0), (0.1, 0.3, 1.0, 3.0, 10.0), geometric(0.1, 10, 9))
    samples = by_scale(scale, (500, 4000), _tens(400, 10_000, 5), _tens(300, 20_000, 14))
    trial = _starts(scale, shifts=(1.0, -1.0))
    return Sweep(
        trial,
        (_moved("spread", "spreads", 0, spreads), axis("population.samples", samples)),
        _seeds(scale, 2, 10, 20),
    )


# Speed (Figures 4.4, 4.5a) and error (4.5b) --------------------------------------------------------------------------------


def _descent(steps: int) -> Descent:
    """Logged every 5 steps up to 1000, every 50 up to 10 000, every 500 beyond: fast and slow runs alike have tens of points
    in their last decades."""
    stages = ((0, 1000, 5), (1000, 10_000, 50), (10_000, steps, 500))
    at = [t for low, high, gap in stages for t in range(low, min(high, steps), gap)]
    return Descent(learning_rate=1.0, loss="cross-entropy", stop="cap", steps=steps, log_at=(*at, steps))


def _evenly(steps: int, logs: int) -> Descent:
    """Logged at even distances, where only the picture looks at the way."""
    return Descent(
        learning_rate=1.0, loss="cross-entropy", stop="cap", steps=steps, logs=logs, spacing="even"
    )


def _opposite(trial, shift: float):
    return put(trial, "population.shifts", (shift, -shift))


def _of_norm(trial: Descents, norm: float) -> Descents:
    """Both covariances scaled to a spectral norm."""
    spread = sqrt(norm / max(trial.population.spectrum))
    return put(trial, "population.spreads", (spread, spread))


def _fig4_4a(scale: Scale) -> Sweep:
    trial = Descents(
        population=Population(
            shifts=(1.0, -1.0), spectrum=SPECTRUM, samples=by_scale(scale, 2000, 10_000, 10_000)
        ),
        descent=_descent(by_scale(scale, 500, 50_000, 200_000)),
    )
    shifts = by_scale(scale, (0.5, 1.5), (0.2, 0.6, 1.0, 1.5, 2.0), (0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0))
    return Sweep(trial, (Axis("shift", shifts, _opposite),), _seeds(scale, 3, 12, 20))


def _fig4_4b(scale: Scale) -> Sweep:
    trial = Descents(
        population=Population(
            shifts=(1.0, -1.0), spectrum=SPECTRUM, samples=by_scale(scale, 2000, 20_000, 50_000)
        ),
        descent=_evenly(by_scale(scale, 500, 4000, 40_000), 60),
    )
    norms = by_scale(
        scale, (1.0, 3.0, 9.0), (0.35, 1.0, 3.0, 9.0, 25.0), (0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 16.0, 35.0)
    )
    return Sweep(trial, (Axis("norm", norms, _of_norm),), _seeds(scale, 3, 6, 20))


def _fig4_5a(scale: Scale) -> Sweep:
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), samples=by_scale(scale, 3000, 20_000, 50_000)),
        descent=_descent(by_scale(scale, 500, 4000, 40_000)),
    )
    neurons = by_scale(scale, (1, 2), (1, 2, 3, 4), (1, 2, 3, 4, 5))
    return Sweep(trial, (axis("population.neurons", neurons),), _seeds(scale, 3, 12, 40))


def _fig4_5b(scale: Scale) -> Sweep:
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), spreads=(3.0, 3.0)),
        descent=_descent(2),
        test_points=by_scale(scale, 2000, 20_000, 100_000),
    )
    samples = by_scale(scale, (2000, 8000), (2000, 6000, 20_000, 60_000), _tens(2000, 60_000, 12))
    return Sweep(trial, (axis("population.samples", samples),), _seeds(scale, 3, 40, 60))


# Risks of groups (Figures 4.6, 4.7) ----------------------------------------------------------------------------------------


def _groups(scale: Scale, **fields) -> Descents:
    return Descents(
        population=Population(samples=by_scale(scale, 4000, 20_000, 20_000), **fields),
        descent=Descent(
            learning_rate=1.0, loss="cross-entropy", stop="cap", steps=by_scale(scale, BUDGET, BUDGET, 1000),
            log_at=by_scale(scale, (BUDGET,), (BUDGET,), (BUDGET, 1000)),
        ),
        arrive=0.0,
        test_points=by_scale(scale, 2000, 10_000, 100_000),
    )  # fmt: skip


def _fraction(trial: Descents, value: float) -> Descents:
    return put(trial, "population.fractions", (1 - value, value))


def _fig4_6a(scale: Scale) -> Sweep:
    trial = _groups(scale, fractions=(0.8, 0.2), shifts=(2.0, -2.0))
    spreads = by_scale(scale, (0.1, 1.0, 5.0), (0.1, 0.3, 1.0, 2.0, 3.0, 5.0), geometric(0.1, 5, 12))
    return Sweep(trial, (_moved("spread", "spreads", 1, spreads),), _seeds(scale, 3, 30, 60))


def _fig4_6b(scale: Scale) -> Sweep:
    """The printed mean (mu_2 - 2) 1 shares its symbol with its own scalar: swept from 0 outward, to both sides."""
    trial = _groups(scale, fractions=(0.8, 0.2), shifts=(2.0, -2.0))
    shifts = by_scale(
        scale, (-2.0, 0.0, 2.0), (-4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0), tuple(np.linspace(-4, 4, 17))
    )
    return Sweep(trial, (_moved("shift", "shifts", 1, shifts),), _seeds(scale, 3, 30, 60))


def _fig4_7(spreads: tuple[float, float], last: float, scale: Scale) -> Sweep:
    trial = _groups(scale, shifts=(0.0, 0.0), spreads=spreads)
    inner = by_scale(scale, (), (0.1, 0.2), (0.05, 0.1, 0.15, 0.2, 0.25))
    values = tuple(sorted({0.02, *inner, 0.3, last}))
    return Sweep(trial, (Axis("fraction", values, _fraction),), _seeds(scale, 3, 30, 60))


# The initialisation (Figure C.1) -----------------------------------------------------------------------------------------


def _figc_1(scale: Scale) -> Sweep:
    population = Population(
        shifts=(-0.3, 0.0), teacher="uniform", teacher_scale=0.1, neurons=2,
        samples=by_scale(scale, 3000, 200_000, 200_000), dim=by_scale(scale, 8, 50, 50),
    )  # fmt: skip
    training = Descents(population=population, descent=_evenly(by_scale(scale, 50, 200, 2000), 40))
    trial = Initialised(training=training)
    return Sweep(trial, (axis("begin", ("tensor", "local", "far")),), _seeds(scale, 2, 3, 10))


def easy(samples: int) -> Population:
    """Where the moments carry enough signal: d = 5, W* = 2 [e_1, e_2], means all-ones and 0."""
    return Population(
        shifts=(1.0, 0.0), neurons=2, samples=samples, teacher_columns=((2.0, 0, 0, 0, 0), (0, 2.0, 0, 0, 0))
    )


def _tensor_easy(scale: Scale) -> Sweep:
    steps = by_scale(scale, 400, 600, 1000)
    samples = by_scale(scale, 40_000, 200_000, 400_000)
    trial = Initialised(training=Descents(population=easy(samples), descent=_descent(steps)))
    return Sweep(trial, (axis("begin", ("tensor", "local")),), _seeds(scale, 2, 4, 20))


def _deviations(scale: Scale) -> Sweep:
    samples = by_scale(scale, (4000, 16_000), (25_000, 50_000, 100_000, 200_000), _tens(25_000, 1_600_000, 7))
    trial = Deviations(population=easy(1000))
    return Sweep(trial, (axis("population.samples", samples),), _seeds(scale, 3, 24, 80))


# Theory without training -------------------------------------------------------------------------------------------------


def _column(trial: Exact, column: str) -> Exact:
    """The mixture that a column of Table 4.1 varies: equal |mu|, group 2 being the one that is moved."""
    spreads = {"fraction-smallest": (sqrt(10), 1.0), "fraction-largest": (1.0, sqrt(10))}
    return put_all(trial, {"column": column, "population.spreads": spreads.get(column, (1.0, 1.0))})


def _at_place(grids: dict[str, tuple[float, ...]], trial: Exact, place: int) -> Exact:
    value, dim = grids[trial.column][place], trial.population.dim
    if trial.column.startswith("covariance"):
        return _nth("spreads", 1, trial, sqrt(value))
    if trial.column.startswith("mean"):
        return _nth("shifts", 1, trial, -value / sqrt(dim))
    return put(trial, "population.fractions", (1 - value, value))


def _table(grids: dict[str, tuple[float, ...]], what: str, scale: Scale) -> Sweep:
    trial = put(Exact(population=Population(shifts=(1.0, -1.0), fractions=(0.7, 0.3))), "what", what)
    places = by_scale(scale, (0, 2, 4), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4))
    start = next(iter(grids))
    axes = (
        Axis("column", tuple(grids), _column),
        Axis("place", places, partial(_at_place, grids)),
    )
    return Sweep(_column(trial, start), axes, _seeds(scale, 3, 40 if what == "closed" else 16, 80))


def varied_value(trial: Exact) -> float:
    """What the column of a trial varies: |Sigma_l|, |mu_l| or lambda_l."""
    population = trial.population
    if trial.column.startswith("covariance"):
        return population.spreads[1] ** 2
    return (
        abs(population.shifts[1]) * sqrt(population.dim)
        if trial.column.startswith("mean")
        else population.fractions[1]
    )


def _with_parameter(results: xr.Dataset) -> xr.Dataset:
    """The value that each column varies, as a coordinate."""
    return results.assign_coords(parameter=over_cells(results, varied_value).drop_vars("trial"))


def _pattern(trial: Lemma, pattern: str) -> Lemma:
    return put(trial, "mean", (1.0, 1.0) if pattern == "two coordinates" else (1.0, 0.0))


def _sized(trial: Lemma, size: float) -> Lemma:
    return put(trial, "mean", tuple(size * m for m in trial.mean))


def _lemmas(scale: Scale) -> Sweep:
    sizes = by_scale(scale, (1.0, 2.0), (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0), tuple(np.linspace(0, 5, 21)))
    stds = by_scale(scale, (1.0,), (0.5, 1.0, 2.0), (0.25, 0.5, 1.0, 1.5, 2.0, 4.0))
    axes = (
        Axis("pattern", ("one coordinate", "two coordinates"), _pattern),
        Axis("size", tuple(map(float, sizes)), _sized),
        axis("std", stds),
    )
    return Sweep(Lemma(), axes, (0,))


def _noise(scale: Scale) -> Sweep:
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), neurons=2),
        descent=_descent(by_scale(scale, 400, 4000, 20_000)),
        arrive=0.0,
        noisy="per-step",
    )
    levels = by_scale(scale, (0.1, 0.4), (0.05, 0.15, 0.4), (0.02, 0.05, 0.1, 0.2, 0.4))
    samples = by_scale(scale, (1000,), (1000, 4000), (1000, 2000, 4000, 8000))
    return Sweep(trial, (axis("noise", levels), axis("population.samples", samples)), _seeds(scale, 3, 6, 20))


def _both(trial, spread: float):
    return put(trial, "population.spreads", (spread, spread))


def _ball(scale: Scale) -> Sweep:
    """One neuron in two dimensions, where as many samples as Lemma C.3.1 asks can be had: W* = e_1, groups N(0, sigma^2 I)."""
    population = Population(
        shifts=(0.0, 0.0), dim=2, neurons=1, teacher_columns=((1.0, 0.0),),
        samples=by_scale(scale, 20_000, 1_600_000, 1_600_000),
    )  # fmt: skip
    spreads = by_scale(scale, (1.0, 1.5), (1.2, 1.5, 1.8), (1.2, 1.4, 1.6, 1.8))
    return Sweep(Ball(population=population), (Axis("spread", spreads, _both),), _seeds(scale, 2, 6, 20))


def _lipschitz(scale: Scale) -> Sweep:
    trial = Ball(population=Population(shifts=(1.0, -1.0), samples=by_scale(scale, 2000, 10_000, 50_000)))
    spreads = by_scale(scale, (0.03, 1.0), (0.03, 0.1, 0.3, 1.0, 3.0), (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0))
    axes = (Axis("shift", (0.0, 1.0), _opposite), Axis("spread", spreads, _both))
    return Sweep(trial, axes, _seeds(scale, 2, 8, 20))


def _activations(scale: Scale) -> Sweep:
    """The footnote on other activations: the same training with tanh and erf, rescaled to (0, 1)."""
    trial = Descents(
        population=Population(shifts=(1.0, -1.0), dim=3, neurons=2, activation="erf"),
        descent=_descent(by_scale(scale, 400, 2000, 20_000)),
    )
    samples = by_scale(scale, (2000,), (5000, 30_000), (4000, 8000, 16_000, 32_000, 64_000))
    kinds = axis("population.activation", ("tanh", "erf"))
    return Sweep(trial, (kinds, axis("population.samples", samples)), _seeds(scale, 3, 16, 40))


def _grouped(results: xr.Dataset) -> xr.Dataset:
    """Number the groups from 1, as the document does."""
    return (
        results.assign_coords(group=np.arange(results.sizes["group"]) + 1)
        if "group" in results.dims
        else results
    )


LIMITS = (
    "The number of steps is not printed: limits are found by Newton steps from each start (--set solver=descent "
    "most_steps=20000 descends as Algorithm 1 does). Starts lie on the sphere |W_0 - W*|_F = 0.1."
)
RISK = (
    "The document does not say which risk is plotted nor how long is trained: raw and excess at the critical point, and excess "
    "after 100 steps, are all recorded. Risks are means over fresh inputs of each group with soft labels (excess: KL)."
)
RATE = "Step 1 / lambda_max of the Hessian at the start (the printed step with constant 1 is tens of times smaller)."


def _figure(
    id: str, sweep, picture, reading: str, complete=_grouped, question: Question | None = None
) -> Figure:
    return Figure(id, sweep, picture, reading, complete, question)


FIGURES: dict[str, Figure] = {
    f.id: f
    for f in (
        _figure("fig4-2", _fig4_2, pictures.dimension_map, LIMITS, question=Question(success, "samples", "dim")),
        _figure("fig4-3a", _fig4_3a, pictures.mean_map, LIMITS + " Fractions are taken as 1/2."),
        _figure("fig4-3b", _fig4_3b, pictures.covariance_map, LIMITS + " Fractions are taken as 1/2."),
        _figure("fig4-4a", _fig4_4a, pictures.descents_mean, RATE),
        _figure("fig4-4b", _fig4_4b, pictures.descents_covariance, RATE),
        _figure("fig4-5a", _fig4_5a, pictures.neurons, RATE + " n is not printed: 5e4 at paper scale."),
        _figure("fig4-5b", _fig4_5b, pictures.errors, "The error at the critical point itself (Newton)."),
        _figure("fig4-6a", _fig4_6a, pictures.risks_covariance, RISK),
        _figure("fig4-6b", _fig4_6b, pictures.risks_mean, RISK + " The mean is swept outward from 0, to both sides."),
        _figure("fig4-7a", partial(_fig4_7, (sqrt(10), 1.0), 0.5), pictures.risks_fraction, RISK + " n = 2e4."),
        _figure("fig4-7b", partial(_fig4_7, (1.0, sqrt(10)), 0.3), pictures.risks_fraction, RISK + " n = 2e4."),
        _figure("figC-1", _figc_1, pictures.initialisations, "Covariances are taken as I; " + RATE),
        _figure("tensor-easy", _tensor_easy, pictures.initialisations, "d = 5, W* = 2 [e_1, e_2], means 1 and 0."),
        _figure("table-4-1", partial(_table, GRID, "closed"), pictures.table, "Closed forms with constants 1, without the "
                "polynomials in kappa, eta, tau that the proof sets aside; W* Gaussian, d = 5, K = 3.", _with_parameter),
        _figure("fisher", partial(_table, NEAR, "both"), pictures.sharp_table, "Fisher information by quadrature; group 2 is "
                "the one that is moved.", lambda results: _grouped(_with_parameter(results))),
        _figure("lemmas", _lemmas, pictures.lemmas, "Two neurons, W* = sigma I, one group N(mu, I)."),
        _figure("deviations", _deviations, pictures.deviations, "At W*, on the instance of tensor-easy."),
        _figure("ball", _ball, pictures.ball, "One neuron, d = 2, W* = e_1, both groups N(0, sigma^2 I), eps_0 = 0.24: "
                "the samples of (C.82) can be had."),
        _figure("lipschitz", _lipschitz, pictures.lipschitz, "At W*, for the radius (C.81) is below 1e-3; the "
                "population's Hessian by soft labels, between W* and the sphere of radius 0.1."),
        _figure("activations", _activations, pictures.activations, RATE + " phi = (1 + tanh)/2 and (1 + erf)/2."),
        _figure("noise", _noise, pictures.noise, "Noise uniform on +-xi, drawn anew at every step."),
    )
}  # fmt: skip
