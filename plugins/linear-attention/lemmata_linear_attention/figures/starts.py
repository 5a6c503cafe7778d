"""Figures X2 and X4: when plateaus end, and for which eigenvalues and starts there are plateaus at all."""

import numpy as np
import xarray as xr
from matplotlib.colors import Normalize

from lemmata.draw.panels import Panel, panels
from lemmata.draw.phase import phase_diagram
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Made, about, at_most, every_run, flat, made, ours, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import median
from lemmata.measure.trend import difference
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep, axis

from ..data import Regression
from ..theory import eigenvalues, head_sizes, plateau_ends, saddle_conditions
from ..trials import Training
from .common import constant, descent, early, gap_of_stops, labels, of_runs, rate, times
from .separate import stairs

SMALLEST, LARGEST = 0.01, 0.1
RATIOS = {0.07: 1.05, 0.15: 1.11, 0.3: 1.23, 0.585: 1.5, 1.0: 2.0, 2.0: 4.0}
"""The ratio of the two eigenvalues by the power that gives it, 2^power."""


def sweep(scale: Scale) -> Sweep:
    inits = by_scale(scale, (0.01, 0.1), (0.01, 0.03, 0.1), (0.01, 0.02, 0.05, 0.1, 0.2))
    seeds = tuple(range(by_scale(scale, 2, 6, 20)))
    return Sweep(Training(descent=descent(scale, 80_000, 40_000, 100)), (axis("init", inits),), seeds)


def with_eigenvalues(results: xr.Dataset) -> xr.Dataset:
    return results.assign_coords(eigenvalue=("eigenvector", eigenvalues(trial_at(results))))


def end_over_predicted(results: xr.Dataset) -> dict[str, Estimate]:
    """The median end of each plateau, over the predicted one, from the smallest start."""
    own = chosen(results, init=SMALLEST)
    predicted = plateau_ends(trial_at(own))
    ends = times(own)
    return {f"plateau {m}": median(ends.isel(eigenvector=m) / end) for m, end in enumerate(predicted)}


def predicted_ends(results: xr.Dataset) -> xr.DataArray:
    each = [
        over_cells(results, lambda t, m=m: plateau_ends(t)[m]) for m in range(results.sizes["eigenvector"])
    ]
    ends = xr.concat(each, "eigenvector", coords="minimal", compat="override")
    return ends.assign_coords(eigenvalue=results.eigenvalue)


def wrong_heads(results: xr.Dataset) -> xr.DataArray:
    """By how much the number of heads that have half the size of a learned one differs from D."""
    trial = trial_at(results)
    least = float(head_sizes(eigenvalues(trial), trial.data.context).min()) / 2
    return of_runs(
        lambda sizes: abs(np.sum(sizes > least) - trial.data.dim), results["size"], core=[["head"]]
    )


def ended(power: float, factor: float = 1.0) -> Made:
    """Plateaus that end at a multiple of the predicted time, with another power of the eigenvalue."""

    def ends(trial: Training, eigenvector: np.ndarray) -> np.ndarray:
        own = eigenvalues(trial)
        return factor * (plateau_ends(trial)[0] * (own / own[0]) ** power / rate(trial))[eigenvector]

    return made(time=ends)


def predicted(factor: float) -> Made:
    return made(time=lambda t, eigenvector: factor * plateau_ends(t)[eigenvector] / rate(t))


def heads(extra: int) -> Made:
    """So many learned heads more than eigenvectors."""
    return made(size=lambda t, head: np.where(head < t.data.dim + extra, 1.5, 1e-3))


waits = Figure(
    "waits",
    "When the plateaus end, over the eigenvalue and the start",
    setup="As Figure 3, over the size of the start. The same draw of weights is scaled to every size.",
    sweep=sweep,
    labels=labels,
    derived=with_eigenvalues,
    picture=panels(
        Panel(
            times,
            "eigenvalue",
            r"eigenvalue $\lambda$",
            r"half learned at $t/\tau$",
            arms="init",
            names="start {:g}",
            law=predicted_ends,
            law_name="predicted",
            log="xy",
        ),
        Panel(
            lambda r: (wrong_heads(r) > 0).astype(float),
            "init",
            "standard deviation of the start",
            "share of runs with more or fewer than D heads",
        ),
        caption="Left: when each eigenvector is half learned, against the median of the cubic dynamics of one head. "
        "Right: how often more or fewer heads than eigenvectors are learned.",
    ),
    claims=[
        Claim(
            "plateau-exponent",
            "The time at which an eigenvector is learned goes as its eigenvalue to the power -2, from a small start",
            theorem("(21)"),
            headline=True,
            number=lambda r: exponent(times(chosen(r, init=SMALLEST)), "eigenvalue", paired=True),
            holds=about(-2.0, -2.1, -1.9, because="a tenth keeps -2 apart from -3/2 and -5/2"),
            conditions=saddle_conditions,
            refuted_by=ended(-1.8),
            upheld_by=ended(-2.0),
        ),
        Claim(
            "plateau-ends",
            "The median times at which plateaus end are those of the fastest free head alone, within a factor of 2",
            ours("(14), Figure 3"),
            number=end_over_predicted,
            holds=about(1.0, 0.5, 2.0, because="who plans a training asks for the order of its length"),
            conditions=saddle_conditions,
            refuted_by=predicted(2.5),
            upheld_by=predicted(1.2),
        ),
        Claim(
            "one-head-each",
            "In every run, from any start up to 0.2, each eigenvector is learned by one head and the other heads stay idle",
            theorem("(20)"),
            headline=True,
            number=wrong_heads,
            holds=every_run(at_most(0.5, because="the number is a count")),
            conditions=saddle_conditions,
            refuted_by=heads(1),
            upheld_by=heads(0),
            unnoticed={"times 10": "a count of 0 stays 0"},
        ),
    ],
)


def grid(scale: Scale) -> Sweep:
    powers = by_scale(scale, (0.07, 1.0), tuple(RATIOS), tuple(RATIOS))
    inits = by_scale(scale, (0.01, 0.1), (0.01, 0.03, 0.1), (0.01, 0.02, 0.05, 0.1, 0.2))
    template = Training(data=Regression(dim=2), descent=descent(scale, 10_000, 10_000, 300))
    seeds = tuple(range(by_scale(scale, 2, 8, 40)))
    return Sweep(template, (axis("data.power", powers), axis("init", inits)), seeds)


def with_ratio(results: xr.Dataset) -> xr.Dataset:
    return results.assign_coords(ratio=2.0**results.power)


def change_of_order(results: xr.Dataset) -> Estimate:
    """The share of runs out of order from the smallest start, less that from one ten times as large; eigenvalues 1.05 : 1."""
    near = early(chosen(results, power=0.07)).astype(float)
    return difference(chosen(near, init=SMALLEST), chosen(near, init=LARGEST))


def out_of_order(share: dict[float, float]) -> Made:
    """The second eigenvector is learned first in such a share of runs, by the start."""

    def ends(trial: Training, eigenvector: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        late = rng.random() < share.get(round(float(trial.init), 3), 0.5)
        return np.where((eigenvector == 0) == late, 300.0, 100.0)

    return made(time=ends, error=constant(0.1), seeds=200)


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    visited = (gap_of_stops(results) <= 0.02).where(results.error.notnull()).mean("seed")
    shown = {"plateau 1 is visited": visited, "learned out of order": early(results).mean("seed")}
    for one, (title, share) in zip(axes, shown.items(), strict=True):
        mesh = phase_diagram(
            one,
            share.assign_coords(ratio=results.ratio),
            "ratio",
            "init",
            log_x=True,
            log_y=True,
            norm=Normalize(0, 1),
        )
        panel(one, r"$\lambda_1/\lambda_2$", "standard deviation of the start", title, keyed=False)
    figure.colorbar(mesh, ax=axes, label="share of runs")
    return (
        figure,
        "Two eigenvectors: which runs visit the plateau between them, and which learn them out of order.",
    )


range_of_plateaus = Figure(
    "range",
    "Which eigenvalues and starts have a plateau between two eigenvectors",
    setup="D = 2, N = 31, five heads of rank one, over all prompts. The same draw of weights is scaled to every size.",
    sweep=grid,
    labels=labels,
    derived=with_ratio,
    picture=draw,
    claims=[
        Claim(
            "plateau-visited",
            "From a start of 0.01, with eigenvalues at least 1.5 apart, the loss of every run stops at L(M_1)",
            theorem("(19)"),
            headline=True,
            number=lambda r: gap_of_stops(chosen(r, init=SMALLEST).where(lambda r: r.ratio > 1.4, drop=True)),
            holds=every_run(at_most(0.02, because="the second height lies at least 0.3 below the first")),
            conditions=saddle_conditions,
            refuted_by=stairs(0.03),
            upheld_by=stairs(0.005),
        ),
        Claim(
            "order-and-start",
            "The share of runs that learn eigenvalues of 1.05 : 1 out of order is the same from starts of 0.1 and 0.01",
            ours("Section 4.2"),
            number=change_of_order,
            holds=flat(
                -0.1,
                0.1,
                because="if smaller starts mended the order, a tenth of them would lose most of this share",
            ),
            refuted_by=out_of_order({SMALLEST: 0.05, LARGEST: 0.4}),
            upheld_by=out_of_order({SMALLEST: 0.05, LARGEST: 0.05}),
        ),
    ],
)
