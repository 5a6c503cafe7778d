"""The document's figures on synthetic graphs, the experiments that its lemmas ask for, and the survey of real graphs."""

from collections.abc import Callable, Mapping
from typing import Any

import xarray as xr

from lemmata.studies.graph_transformer import pictures
from lemmata.studies.graph_transformer.data.model import VoteGraph
from lemmata.studies.graph_transformer.trials import (
    GROUPS,
    ClusterTraining,
    FourClassTraining,
    GraphSetTraining,
    GraphTraining,
    Surveying,
)
from lemmata.study import Figure, Scale, by_scale
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all

SUCCESS = 1e-3
"""A run has succeeded when its test hinge loss is below this (section 3.5.1)."""

EVEN = {"data.generator": "blocks", "data.degree": 120, "data.confusion": 0.2}
"""A homophilous block graph in which the shares of discriminative and of confusion nodes are even over the nodes."""


GRAPH = ("data.generator", "data.degree", "data.inner_degree", "data.confusion", "data.core")


def template() -> GraphTraining:
    """Section 3.5.1: 1000 nodes, ten patterns in 20 dimensions, core degree 120, gamma_d = 0.4, eps_S = 0.05, 400 neurons,
    60 sampled nodes at distances 1 and 2; 60 neighbours of the own pattern for each discriminative node."""
    return GraphTraining(data=VoteGraph(inner_degree=60))


def small(trial: GraphTraining) -> GraphTraining:
    """A trial shrunk for tests, on the document's graph."""
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


def complete(results: xr.Dataset) -> xr.Dataset:
    """Names of groups, and distances as numbers."""
    labels = {"group": list(GROUPS), "bucket": list(range(results.sizes.get("bucket", 0)))}
    return results.assign_coords({dim: names for dim, names in labels.items() if dim in results.dims})


def _scaled(trial: GraphTraining, scale: Scale) -> GraphTraining:
    return by_scale(scale, small, half, lambda one: one)(trial)


def _seeds(scale: Scale, quick: int = 5, paper: int = 20) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, quick, paper)))


def _swept(
    changes: Mapping[str, Any],
    axes: Callable[[Scale], tuple[Axis, ...]],
    quick: int = 5,
    paper: int = 20,
) -> Callable[[Scale], Sweep]:
    """A sweep of the template with some fields changed."""

    def sweep(scale: Scale) -> Sweep:
        return Sweep(_scaled(put_all(template(), changes), scale), axes(scale), _seeds(scale, quick, paper))

    return sweep


def chosen(name: str, kinds: Mapping[str, Mapping[str, Any]]) -> Axis:
    """An axis whose values stand for several fields at once."""

    def place(trial: GraphTraining, value: str) -> GraphTraining:
        shrunk = trial.data.nodes < 100  # keeps its own graph
        return put_all(trial, {k: v for k, v in kinds[value].items() if not (shrunk and k in GRAPH)})

    return Axis(name, tuple(kinds), place)


# Success over the number of labels -------------------------------------------------------------------------------------

SHARES = ((0.3, 0.6), (0.25, 0.35, 0.5, 0.7), (0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7))
LABELS = ((16,), (4, 8, 16, 32, 64, 128), (4, 8, 16, 32, 64, 128, 256, 400))
MORE = ((16,), (16, 32, 64, 128, 256, 340), (8, 16, 32, 64, 128, 256, 400, 800))
ONCE = ((16,), (70, 100, 140, 200, 280, 340), (100, 140, 200, 280, 400, 560, 800))
CONFUSIONS = ((0.0, 0.25), (0.0, 0.1, 0.2, 0.3), (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45))


def _labels(grid: tuple[tuple[int, ...], ...]) -> Callable[[Scale], Axis]:
    return lambda scale: axis("data.labelled", by_scale(scale, *grid))


def _shares(scale: Scale) -> Axis:
    return axis("data.discriminative", by_scale(scale, *SHARES))


def _map(
    changes: Mapping[str, Any], labels: tuple[tuple[int, ...], ...] = LABELS
) -> Callable[[Scale], Sweep]:
    """Success over gamma_d and labels."""
    return _swept({"descent.logs": 2, **changes}, lambda s: (_shares(s), _labels(labels)(s)), quick=5)


_PRINTED = _map({})
_PASS = _map({"descent.batches": "single-pass", "descent.batch": 1, "descent.learning_rate": 0.2}, ONCE)
_CONFUSED = _map({"data.confusion": 0.3, "descent.steps": 1200}, MORE)
_BLOCKS = _map({**EVEN, "data.inner_degree": 0, "sampler": "core", "descent.steps": 1200}, MORE)
_CONFUSION = _swept(
    {"descent.logs": 2, "descent.steps": 1200},
    lambda s: (axis("data.confusion", by_scale(s, *CONFUSIONS)), _labels(MORE)(s)),
    quick=5,
)

LEARNERS: Mapping[str, Mapping[str, Any]] = {
    "transformer": {"network.kind": "transformer", "sampler": "near"},
    "without positions": {"network.kind": "no-position", "sampler": "near"},
    "transformer, core": {"network.kind": "no-position", "sampler": "core"},
    "convolution, core": {"network.kind": "gcn", "sampler": "core"},
}
CORE = {name: LEARNERS[name] for name in ("transformer, core", "convolution, core")}

_AGAINST = _swept(
    {"data.confusion": 0.2, "descent.logs": 2, "descent.steps": 1000},
    lambda s: (chosen("learner", CORE), _shares(s), _labels(LABELS)(s)),
    quick=5,
)


# Steps to a small loss -------------------------------------------------------------------------------------------------

TIMED = {"data.labelled": 800, "descent.steps": 600, "descent.logs": 121}
SPREAD = ((0.3, 0.6), (0.25, 0.3, 0.4, 0.5, 0.6), (0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7))
PRINTED = {
    "transformer": {**LEARNERS["transformer"], "data.confusion": 0.05},
    "convolution, core": {**LEARNERS["convolution, core"], "data.confusion": 0.2},
    "transformer, core": {**LEARNERS["transformer, core"], "data.confusion": 0.2},
}


def _spread(scale: Scale) -> Axis:
    return axis("data.discriminative", by_scale(scale, *SPREAD))


_STEPS = _swept(TIMED, lambda s: (chosen("learner", PRINTED), _spread(s)))
_STEPS_EVEN = _swept(
    {**TIMED, **EVEN, "data.inner_degree": 0, "descent.steps": 1200, "descent.logs": 241},
    lambda s: (chosen("learner", CORE), _spread(s)),
)


def _one_over(path: str, values: tuple[tuple[float, ...], ...], **changes: Any) -> Callable[[Scale], Sweep]:
    return _swept({**TIMED, "data.labelled": 400, **changes}, lambda s: (axis(path, by_scale(s, *values)),))


RATES = ((0.05, 0.1), (0.05, 0.1, 0.2, 0.4), (0.02, 0.05, 0.1, 0.2, 0.4))
_RATE = _one_over("descent.learning_rate", RATES, **{"descent.steps": 1000, "descent.logs": 201})
_DELTA = _one_over("network.query_key_error", ((0.0, 0.4), (0.0, 0.2, 0.4), (0.0, 0.1, 0.2, 0.3, 0.4, 0.49)))
_SIGMA = _one_over("network.value_error", ((0.0, 0.4), (0.0, 0.1, 0.2, 0.4), (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)))
_XI = _one_over("network.hidden_std", ((0.01, 0.04), (0.0025, 0.01, 0.04), (0.0025, 0.005, 0.01, 0.02, 0.04)))


# Labels that disagree, attention, positions ----------------------------------------------------------------------------

_FLIPS = _swept(
    {"data.confusion": 0.0, "data.labelled": 400, "tested": 600, "descent.steps": 600, "descent.logs": 61},
    lambda s: (
        axis("data.flipped", by_scale(s, (0.0, 0.2), (0.0, 0.05, 0.1, 0.2), (0.0, 0.05, 0.1, 0.15, 0.2))),
    ),
)
INNER = {"sixty of its own": {"data.inner_degree": 60}, "as printed": {"data.inner_degree": 0}}
_ATTENTION = _swept(
    {
        "data.discriminative": 0.25,
        "data.confusion": 0.0,
        "descent.steps": 1000,
        "descent.logs": 41,
        "descent.spacing": "log",
    },
    lambda s: (chosen("inner", INNER), axis("hinge_margin", (1.0, 20.0))),
)

HOMOPHILOUS = {"data.generator": "blocks", "data.degree": 20, "data.confusion": 0.1, "data.inner_degree": 0}
HETEROPHILOUS = {"data.generator": "blocks", "data.degree": 12, "data.confusion": 0.9, "data.inner_degree": 0}
FAR = {"data.generator": "distances", "data.confusion": 0.1, "data.core": 3, "data.inner_degree": 0}
GRAPHS = {"homophilous": HOMOPHILOUS, "heterophilous": HETEROPHILOUS, "core at three": FAR}
_BIAS = _swept(
    {"sampler": "graph", "descent.steps": 600, "descent.logs": 31},
    lambda s: (chosen("graph", by_scale(s, {"homophilous": HOMOPHILOUS}, GRAPHS, GRAPHS)),),
)
GAT = {
    "transformer": {"network.kind": "transformer", "sampler": "graph"},
    "attention at distance 1": {"network.kind": "no-position", "sampler": "distance"},
}
_NEAREST = _swept(
    {"descent.steps": 600, "descent.logs": 31},
    lambda s: (
        chosen("graph", {k: GRAPHS[k] for k in ("homophilous", "heterophilous")}),
        chosen("learner", GAT),
    ),
)
_LEARNERS = _swept(
    {"descent.steps": 800, "descent.logs": 161},
    lambda s: (
        chosen("learner", LEARNERS),
        axis("data.labelled", by_scale(s, (16,), (32, 320), (16, 32, 64, 128, 400))),
    ),
)
SAMPLERS = ("graph", "near", "core", "relevant")
_SAMPLERS = _swept(
    {"data.confusion": 0.3, "descent.steps": 1200, "descent.logs": 241},
    lambda s: (
        axis("sampler", by_scale(s, SAMPLERS[1::2], SAMPLERS, SAMPLERS)),
        axis("data.labelled", by_scale(s, (16,), (16, 64, 160, 320), (16, 32, 64, 128, 256, 400))),
    ),
)
_NEURONS = _swept({"probes": "neurons", "descent.steps": 400, "descent.logs": 41}, lambda s: ())

_GROWTH = _swept(
    {
        "probes": "neurons",
        "sampler": "graph",
        "descent.steps": 600,
        "descent.logs": 61,
        "descent.spacing": "log",
    },
    lambda s: (),
)


def _drawing(scale: Scale) -> Sweep:
    """A graph small enough to be drawn."""
    tiny = {
        "data.nodes": 48, "data.patterns": 5, "data.degree": 5, "data.inner_degree": 2, "data.labelled": 24,
        "data.confusion": 0.2, "sampled": 12, "tested": 24, "descent.batch": 12, "network.neurons": 100,
        "probes": "drawing", "descent.logs": 2,
        "descent.steps": by_scale(scale, 20, 600, 600), "hinge_margin": 5.0,
    }  # fmt: skip
    return Sweep(put_all(template(), tiny), (), (0,))


def _agreement(scale: Scale) -> Sweep:
    changes = {
        "precision": "float64",
        "data.feature_noise": 0.0,
        "descent.steps": by_scale(scale, 12, 100, 300),
    }
    trial = put_all(small(template()), changes)
    return Sweep(trial, (axis("simulator", ("nodes", "patterns")),), _seeds(scale, 3, 5))


POSITIONS = ("none", "laplacian", "degree", "random-walk", "centroid")


def _clusters(scale: Scale) -> Sweep:
    """Positions beside the features (B.5.2)."""
    tiny = {
        "data.nodes": 40, "data.labelled": 20, "network.neurons": 16, "sampled": 8, "descent.steps": 12, "descent.batch": 8,
        "descent.logs": 4,
    }  # fmt: skip
    trial = put_all(ClusterTraining(), by_scale(scale, tiny, {}, {}))
    return Sweep(trial, (axis("data.position", POSITIONS),), _seeds(scale))


def _graph_labels(scale: Scale) -> Sweep:
    """Labels of whole graphs, with and without distances (B.5.4)."""
    tiny = {
        "data.labelled": 16, "data.tested": 8, "network.neurons": 16, "descent.steps": 12, "descent.batch": 8,
        "descent.logs": 4,
    }  # fmt: skip
    trial = put_all(GraphSetTraining(), by_scale(scale, tiny, {}, {}))
    return Sweep(trial, (axis("network.kind", ("transformer", "no-position")),), _seeds(scale))


def _four_classes(scale: Scale) -> Sweep:
    """Two networks for four classes, each sign with a core distance of its own (B.5.5)."""
    tiny = {
        "data.nodes": 60, "data.labelled": 40, "network.neurons": 16, "sampled": 12, "descent.steps": 12,
        "descent.batch": 8, "descent.logs": 4,
    }  # fmt: skip
    return Sweep(put_all(FourClassTraining(), by_scale(scale, tiny, {}, {})), (), _seeds(scale))


def _tables(scale: Scale) -> Sweep:
    """The tables of a graph file (`--set path=...`), or of a made graph of three classes; both readings of both choices."""
    last = by_scale(scale, 4, 12, 12)
    return Sweep(
        Surveying(last=last),
        (axis("spectrum", ("moment", "covariance")), axis("itself", (False, True))),
        (0,),
    )


_LIKE = "Section 3.5.1, each discriminative node with 60 neighbours of its own pattern; step 0.1, Z = 5, batches of 64."

FIGURES: dict[str, Figure] = {
    figure.id: figure
    for figure in (
        Figure("fig3-3a", _PRINTED, pictures.success_over_share, f"{_LIKE} 800 steps in epochs.", complete),
        Figure(
            "fig3-3a-once",
            _PASS,
            pictures.success_over_share,
            f"{_LIKE} Every label once, batches of 2.",
            complete,
        ),
        Figure("fig3-3a-confused", _CONFUSED, pictures.success_over_share, f"{_LIKE} eps_S = 0.3.", complete),
        Figure(
            "fig3-3a-blocks",
            _BLOCKS,
            pictures.success_over_share,
            "Block graph of degree 120, eps = 0.2.",
            complete,
        ),
        Figure("fig3-3b", _CONFUSION, pictures.success_over_confusion, f"{_LIKE} 1200 steps.", complete),
        Figure("fig3-4", _FLIPS, pictures.flips, f"{_LIKE} Labels flipped over all nodes alike.", complete),
        Figure(
            "fig3-5",
            _ATTENTION,
            pictures.attention,
            f"{_LIKE} gamma_d = 0.25, since 0.2 has no room.",
            complete,
        ),
        Figure(
            "fig3-6",
            _AGAINST,
            pictures.success_of_both,
            f"{_LIKE} eps_S = 0.2, sets from the core.",
            complete,
        ),
        Figure("figB-6", _STEPS, pictures.steps_over_share, f"{_LIKE} Steps to test hinge 0.05.", complete),
        Figure(
            "steps-even",
            _STEPS_EVEN,
            pictures.steps_over_share,
            "Block graph of degree 120, eps = 0.2.",
            complete,
        ),
        Figure("bias", _BIAS, pictures.bias, "Sets of 60 from the whole graph.", complete),
        Figure("learners", _LEARNERS, pictures.learners, _LIKE, complete),
        Figure("samplers", _SAMPLERS, pictures.samplers, f"{_LIKE} eps_S = 0.3.", complete),
        Figure("neurons", _NEURONS, pictures.neurons, _LIKE, complete),
        Figure("growth", _GROWTH, pictures.growth, f"{_LIKE} Sets of 60 from the whole graph.", complete),
        Figure("step-size", _RATE, pictures.steps_over_rate, f"{_LIKE} Steps to test hinge 0.05.", complete),
        Figure(
            "start-delta", _DELTA, pictures.steps_over_start, f"{_LIKE} Steps to test hinge 0.05.", complete
        ),
        Figure(
            "start-sigma", _SIGMA, pictures.steps_over_start, f"{_LIKE} Steps to test hinge 0.05.", complete
        ),
        Figure("start-xi", _XI, pictures.steps_over_start, f"{_LIKE} Steps to test hinge 0.05.", complete),
        Figure("nearest", _NEAREST, pictures.nearest, "Block graphs; sets of 60.", complete),
        Figure("drawing", _drawing, pictures.drawing, "A graph of 48 nodes, margin 5.", complete),
        Figure(
            "agreement",
            _agreement,
            pictures.agreement,
            "A small graph without feature noise, in double precision.",
            complete,
        ),
        Figure(
            "clusters",
            _clusters,
            pictures.clusters,
            "Four clusters of 50 nodes; sets of 60, b = 0.",
            complete,
        ),
        Figure(
            "graph-labels",
            _graph_labels,
            pictures.graph_labels,
            "200 graphs of 21 nodes to train on, 200 to be told; sums over the nodes.",
            complete,
        ),
        Figure(
            "four-classes",
            _four_classes,
            pictures.four_classes,
            "300 nodes, core distances 1 and 3, sets of 60.",
            complete,
        ),
        Figure("tables", _tables, pictures.tables, "Appendix B.1.1; a made graph unless a file is named."),
    )
}
