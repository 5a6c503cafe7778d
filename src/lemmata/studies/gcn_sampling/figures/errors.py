"""Figures 5.1 and 5.2: the test error over labelled nodes and over neurons, for several norms of A*;
Also the law of labels that `predict` uses, read off Figure 5.1.
"""

from functools import partial

import numpy as np
import xarray as xr

from lemmata.draw.curves import MEAN, lines
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Holds, experiment, made, ours, positive
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import power_law
from lemmata.measure.levelset import crossings
from lemmata.measure.trend import arms, largest
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.figures.common import (
    NORMALISED,
    ORDER,
    RAW,
    SETUP,
    label_axis,
    seeds,
    sized,
    width_axis,
)  # fmt: skip
from lemmata.studies.gcn_sampling.theory import theorem_conditions
from lemmata.studies.gcn_sampling.trials import Training
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

# What is run -----------------------------------------------------------------------------------------------------------

SAME_STEPS = 1200
"""Steps of every training of Figure 5.1 where they do not grow with the labels."""


LOW = {4: 4, 20: 2, 100: 2}
"""The degree d_2 of the many nodes beside the degree d_1 of the few; 1 where nothing is said. Both vary, as in the paper."""


def of_profile(trial: Training, high: int) -> Training:
    return put_all(trial, {"graph.degrees": (high, LOW.get(high, 1))})


def profiles(scale: Scale, quick: tuple[int, ...]) -> Axis:
    return Axis("high_degree", by_scale(scale, (4,), quick, (4, 5, 10, 20, 100)), of_profile)


def labels_sweep(scale: Scale) -> Sweep:
    trial = sized(scale)
    trial = put_all(trial, {"descent.steps": max(trial.descent.steps, SAME_STEPS)})
    return Sweep(trial, (profiles(scale, (4, 5, 20, 100)), label_axis(scale)), seeds(scale, 8))


def width_sweep(scale: Scale) -> Sweep:
    return Sweep(sized(scale), (profiles(scale, (4, 100)), width_axis(scale)), seeds(scale))


def normed(results: xr.Dataset) -> xr.Dataset:
    """Add the norm of A* of each degree profile as coordinates.

    `largest_row` is the largest row of the graphs that were drawn, where runs record it. `typical_row` is a typical row of
    highest degree, which needs no graph.
    """

    def kept(norms: xr.DataArray) -> tuple[str, np.ndarray]:
        return "high_degree", norms.mean([dim for dim in norms.dims if dim != "high_degree"]).values

    typical = kept(over_cells(results, lambda t: theory.sizes_of(t).norm))
    found = kept(results["norm"]) if "norm" in results else typical
    return results.assign_coords(largest_row=found, typical_row=typical)


# What is measured ------------------------------------------------------------------------------------------------------


def fall(results: xr.Dataset, over: str) -> Estimate:
    """The logarithm of the error at the largest value of an axis over that at the smallest, in the degree profile where it
    falls least."""
    error = xr.ufuncs.log(results["error"])
    return largest(arms(error.isel({over: -1}, drop=True) - error.isel({over: 0}, drop=True), "high_degree"))


def needed(
    results: xr.Dataset, variable: str, along: str, over: str, arm: int = 0
) -> tuple[xr.DataArray, xr.DataArray]:
    """How much of `along` (labels, neurons) each seed needs in each arm of `over`, and which needs are only bounds.

    Targets differ from seed to seed, so each seed is asked for an error of its own: that of one `arm` in the middle of the
    grid, so that needs may grow and shrink.
    """
    values = results[variable]
    needs(
        values.sizes.get(along, 0) > 2 and values.sizes.get(over, 0) > 1,
        f"a need is read off at least three values of '{along}' and two of '{over}'.",
    )
    level = values.isel({over: arm, along: values.sizes[along] // 2}, drop=True)
    level = level.drop_vars([name for name in level.coords if name not in level.dims])
    return crossings(values / level, 1.0, along)


def need_by_norm(results: xr.Dataset, variable: str, along: str) -> Estimate:
    """The exponent of the need in the norm of A*; seeds share their targets across the grid."""
    where, side = needed(results, variable, along, "high_degree")
    return power_law(where, "largest_row", side, paired=True).exponent


ERROR = 0.75  # the normalised error that `predict` asks for


def typical_need(results: xr.Dataset, error: float = ERROR) -> tuple[np.ndarray, np.ndarray]:
    """The norm of each degree profile (a typical row), and the labels at which the normalised error, averaged over seeds,
    passes `error`."""
    where, side = crossings(results["normalised_error"].mean("seed"), error, "labels")
    seen = side.values == 0
    return results["typical_row"].values[seen], where.values[seen]


def law_of_labels(results: xr.Dataset, error: float = ERROR) -> dict[str, float]:
    """`labels = constant * norm^power` for a normalised error, by least squares in log-log over the degree profiles."""
    norms, found = typical_need(results, error)
    return {
        "error": error,
        **_fitted(norms, found),
        "lowest_norm": float(norms.min()),
        "highest_norm": float(norms.max()),
    }


def held_out(results: xr.Dataset, error: float = ERROR) -> dict[str, float]:
    """The largest factor by which a law fitted without one of the profiles misses the need of that profile."""
    norms, found = typical_need(results, error)
    off = []
    for one in range(len(norms)):
        law = _fitted(np.delete(norms, one), np.delete(found, one))
        off.append(abs(np.log(law["constant"] * norms[one] ** law["power"] / found[one])))
    return {"held_out_factor": float(np.exp(max(off)))}


def _fitted(norms: np.ndarray, found: np.ndarray) -> dict[str, float]:
    power, constant = np.polyfit(np.log(norms), np.log(found), 1)
    return {"constant": float(np.exp(constant)), "power": float(power)}


# How it looks ----------------------------------------------------------------------------------------------------------


def by_norm(results: xr.Dataset, over: str, what: str) -> Drawn:
    """An error as it is and over the labels' second moment, one line for every norm of A*."""
    figure, panels = canvas(2)
    norms = dict(
        zip(results["high_degree"].values.tolist(), results["largest_row"].values.tolist(), strict=True)
    )
    for axes, variable, name in zip(panels, ("error", "normalised_error"), (RAW, NORMALISED), strict=True):
        label = lambda d: f"|A*| = {norms[d]:.2f} (degrees {d}, {LOW.get(d, 1)})"  # noqa: E731
        lines(axes, results[variable], over, "high_degree", label, style="o-", centre="mean")
        panel(axes, what, name, "", "x", ticks=results[over].values)
    return figure, f"Prediction with A* on the nodes without label. {MEAN}"


@picture
def over_labels(results: xr.Dataset) -> Drawn:
    """Figure 5.1."""
    return by_norm(results, "labels", "labelled nodes")


@picture
def over_width(results: xr.Dataset) -> Drawn:
    """Figure 5.2."""
    return by_norm(results, "width", "neurons in each hidden layer")


# What is claimed -------------------------------------------------------------------------------------------------------

FALLS = Holds("order", -np.inf, 0.0, ORDER)
NEED = positive(
    because="an exponent above 0 is a need that grows; each seed is asked for its own error, since targets differ"
)


def need(variable: str, along: str, power: float):
    """An error that falls as a root of labels or neurons, with a need that goes as the norm to a power."""

    def law(t) -> float:
        return (theory.sizes_of(t).norm ** power / getattr(t, along)) ** 0.5

    return made({variable: law}, noise=0.001)


def falling(along: str, power: float):
    return made(error=lambda t: getattr(t, along) ** power)


def needs_more(id: str, statement: str, source, variable: str, along: str, headline: bool = False) -> Claim:
    return Claim(
        id, statement, source, headline=headline,
        number=partial(need_by_norm, variable=variable, along=along), holds=NEED, conditions=theorem_conditions,
        refuted_by=need(variable, along, -0.5), upheld_by=need(variable, along, 0.5),
    )  # fmt: skip


def helps(id: str, statement: str, source, along: str) -> Claim:
    return Claim(
        id, statement, source, headline=True,
        number=partial(fall, over=along), holds=FALLS, conditions=theorem_conditions,
        refuted_by=falling(along, 0.1), upheld_by=falling(along, -0.1),
    )  # fmt: skip


FIG_1 = experiment("Figure 5.1", proxy="100 neurons in place of 500; degrees are not printed")
FIG_2 = experiment("Figure 5.2", proxy="300 labelled nodes in place of 1500; degrees are not printed")

fig5_1 = Figure(
    "fig5-1", "Test error over labelled nodes, for several norms of A*", SETUP + "A*. Degrees (4, 4), (5, 1), (20, 2), (100, 2); quick: 100 neurons.",
    labels_sweep, over_labels, derived=normed,
    readings={"printed: 4 steps a label": {}, "the same steps for all": {"budget": SAME_STEPS}},
    claims=[
        helps("labels-help", "The test error falls as labelled nodes increase, for every |A*|_inf", FIG_1, "labels"),
        needs_more("labels-norm", "The larger |A*|_inf, the more labelled nodes are needed for the same test error", FIG_1,
                   "error", "labels", headline=True),
        needs_more("labels-norm-normalised", "The larger |A*|_inf, the more labelled nodes are needed for the same test error over "
                   "the labels' second moment", ours("Figure 5.1, (5.18)"), "normalised_error", "labels"),
    ],
)  # fmt: skip

fig5_2 = Figure(
    "fig5-2", "Test error over neurons, for several norms of A*", SETUP + "A*. Quick: 300 labelled nodes.",
    width_sweep, over_width, derived=normed,
    claims=[
        helps("width-helps", "The test error falls as the number of neurons increases, for every |A*|_inf", FIG_2, "width"),
        needs_more("width-norm", "The larger |A*|_inf, the more neurons are needed for the same test error", FIG_2, "error", "width",
                   headline=True),
        needs_more("width-norm-normalised", "The larger |A*|_inf, the more neurons are needed for the same test error over the "
                   "labels' second moment", ours("Figure 5.2, (5.17)"), "normalised_error", "width"),
    ],
)  # fmt: skip
