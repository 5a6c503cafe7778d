"""What the experiments share: the settings of Section 3.5.1, their three scales, labels, and counts of labels and steps."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import xarray as xr

from lemmata.draw.curves import BAND, lines
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import Made, made
from lemmata.measure.columns import below, chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.times import settling_time
from lemmata.measure.trend import ratio
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.graph_transformer.data.model import VoteGraph
from lemmata.studies.graph_transformer.trials import (
    GROUPS,
    ClusterTraining,
    FourClassTraining,
    GraphSetTraining,
    GraphTraining,
)
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

SUCCESS = 1e-3
"""A run has succeeded when its test hinge loss is below this (Section 3.5.1)."""
SMALL = 0.05
"""The test hinge loss from which on a run counts as trained, where steps are counted."""

LIKE = "Section 3.5.1, each discriminative node with 60 neighbours of its own pattern; step 0.1, Z = 5, batches of 64."
TO_SMALL = f"{LIKE} Steps to test hinge 0.05."
PROXY = (
    "step size 0.1 for 0.01 with a tenth of the steps, initial images of length one, 60 neighbours of the own pattern for each "
    "discriminative node; at the quick scale 500 nodes and 200 neurons"
)
SHARE = "share of discriminative nodes $\\gamma_d$"
STEPS = "steps to test hinge 0.05"
ANY_DIFFERENCE = "no difference would refute it"
ANY_RATIO = "a ratio of 1 would refute it"
ANY_TIE = "a tie would refute it"

GRAPH = ("data.generator", "data.degree", "data.inner_degree", "data.confusion", "data.core")
EVEN = {"data.generator": "blocks", "data.degree": 120, "data.confusion": 0.2, "data.inner_degree": 0}
"""A homophilous block graph in which the shares of discriminative and of confusion nodes are even over the nodes."""

LEARNERS: Mapping[str, Mapping[str, Any]] = {
    "transformer": {"network.kind": "transformer", "sampler": "near"},
    "without positions": {"network.kind": "no-position", "sampler": "near"},
    "transformer, core": {"network.kind": "no-position", "sampler": "core"},
    "convolution, core": {"network.kind": "gcn", "sampler": "core"},
}
CORE = {name: LEARNERS[name] for name in ("transformer, core", "convolution, core")}

# What is run -----------------------------------------------------------------------------------------------------------


def template() -> GraphTraining:
    """Section 3.5.1: 1000 nodes, ten patterns in 20 dimensions, core degree 120, gamma_d = 0.4, eps_S = 0.05, 400 neurons,
    60 sampled nodes at distances 1 and 2; 60 neighbours of the own pattern for each discriminative node."""
    return GraphTraining(data=VoteGraph(inner_degree=60))


def small(trial: GraphTraining) -> GraphTraining:
    """A trial shrunk for tests, on the paper's graph."""
    return put_all(
        trial,
        {
            "data.nodes": 60, "data.patterns": 4, "data.dim": 6, "data.labelled": 16, "data.generator": "bipartite",
            "data.degree": 4, "data.inner_degree": 4, "network.neurons": 16, "network.width": 6, "sampled": 6, "tested": 16,
            "descent.steps": 12, "descent.batch": 8, "descent.logs": 4, "descent.spacing": "even",
        },
    )  # fmt: skip


def half(trial: GraphTraining) -> GraphTraining:
    """A trial on a graph of half the size, for results within minutes: 500 nodes, core degree 60, 200 neurons."""
    blocks, labelled = trial.data.generator != "bipartite", trial.data.labelled
    return put_all(
        trial,
        {
            "data.nodes": 500, "data.labelled": min(labelled, 350),
            "data.degree": trial.data.degree if blocks else 60, "data.inner_degree": trial.data.inner_degree // 2,
            "network.neurons": 200, "tested": min(trial.tested, 150), "descent.batch": min(trial.descent.batch, 32),
        },
    )  # fmt: skip


def seeds(scale: Scale) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, 5, 20)))


def swept(
    changes: Mapping[str, Any], axes: Callable[[Scale], tuple[Axis, ...]] = lambda scale: ()
) -> Callable[[Scale], Sweep]:
    """A sweep of the template with some fields changed."""

    def sweep(scale: Scale) -> Sweep:
        trial = put_all(template(), changes)
        return Sweep(by_scale(scale, small, half, lambda one: one)(trial), axes(scale), seeds(scale))

    return sweep


def kinds(name: str, values: Mapping[str, Mapping[str, Any]]) -> Axis:
    """An axis whose values stand for several fields at once. A trial shrunk for tests keeps its graph."""

    def place(trial: GraphTraining, value: str) -> GraphTraining:
        shrunk = trial.data.nodes < 100
        return put_all(trial, {k: v for k, v in values[value].items() if not (shrunk and k in GRAPH)})

    return Axis(name, tuple(values), place)


def labels(
    trial: GraphTraining | ClusterTraining | GraphSetTraining | FourClassTraining,
) -> Mapping[str, Sequence[Any]]:
    """Names of the places along the dimensions of the records."""
    known = {"group": GROUPS, "sign": (1, -1), "lucky": ("lucky", "others"), "output": (1, 2)}
    buckets = 0 if isinstance(trial, ClusterTraining) else trial.data.buckets
    return known | {"bucket": range(buckets), "pattern": range(trial.data.patterns)}


# What several figures measure ------------------------------------------------------------------------------------------


def success(r: xr.Dataset) -> xr.DataArray:
    """Runs whose test hinge loss is below 0.001."""
    return below(r.test_hinge, SUCCESS)


def steps_needed(r: xr.Dataset) -> xr.DataArray:
    """Steps until the test hinge loss stays below 0.05; NaN where it never does."""
    return settling_time(r.test_hinge_curve, SMALL, "below")


def steps_exponent(r: xr.Dataset, over: str) -> Estimate:
    """The exponent of the steps in an axis; runs that never got there count as lower bounds."""
    found = steps_needed(r)
    late = found.isnull() & r.status.notnull()
    cap = over_cells(r, lambda trial: trial.steps)
    return exponent(found.where(~late, cap), over, late)


def steps_ratio(r: xr.Dataset, over: str, slow: str, fast: str) -> Estimate:
    """Steps of one value of an axis over those of another, seed by seed; where the loss stays large, the cap counts."""
    cap = over_cells(r, lambda trial: trial.steps)
    found = steps_needed(r)
    found = found.where(found.notnull() | r.status.isnull(), cap)
    return ratio(chosen(found, **{over: slow}), chosen(found, **{over: fast}))


# Made results ----------------------------------------------------------------------------------------------------------

Count = Callable[[GraphTraining], float]


def needing(labels: Count, spread: float = 0.3) -> Made:
    """A test loss that is small from a number of labels on, give or take."""
    return made(
        test_hinge=lambda t, rng: 0.0 if t.data.labelled > labels(t) * rng.lognormal(0, spread) else 0.1
    )


def taking(steps: Count) -> Made:
    """A test loss along training that is small from a step on, give or take."""
    return made(test_hinge_curve=lambda t, step, rng: 1.0 * (step < steps(t) * rng.lognormal(0, 0.03)))


# Pictures --------------------------------------------------------------------------------------------------------------


def losses(by: str, title: Callable[[Any], str], shared: bool) -> Callable[..., Any]:
    """The test loss along training, a panel for each value of an axis and a line for each learner."""

    @picture
    def draw(results: xr.Dataset) -> Drawn:
        values = results[by].values
        figure, panels = canvas(len(values), width=4.4, squeeze=False, sharey=True)
        for axes, value in zip(panels[0], values, strict=True):
            lines(axes, results.test_hinge_curve.sel({by: value}), "step", "learner")
            panel(axes, "step", "test hinge loss", title(value), keyed=not shared)
        if shared:
            shared_key(figure, panels)
        return figure, BAND

    return draw
