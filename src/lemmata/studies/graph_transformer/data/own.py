"""Graphs that a user hands in, and what is refused of them."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Bool, Float, Int, UInt8

from lemmata.errors import require
from lemmata.own import require_between, require_signs


class OwnGraph(NamedTuple):
    """A graph for `train(trial, data=OwnGraph(...))`; `VoteGraph.own` makes one of an edge list.

    `patterns`: orthonormal vectors that weights are looked at along, the discriminative ones first. `features`: what every
    node carries. `distance`: between nodes, Z - 1 standing for that and more. `pattern`: which pattern a node counts as; 0 and
    1 vote for the labels +1 and -1. `order`: all nodes, those that are labelled first and then those that are tested.
    `sets[p, n, s]`: whether part p of a sampled set of node n may hold node s.
    """

    patterns: Float[Array, "pattern dim"]
    features: Float[Array, "node dim"]
    distance: UInt8[Array, "node node"]
    pattern: Int[Array, " node"]
    label: Int[Array, " node"]
    order: Int[Array, " node"]
    sets: Bool[Array, "part node node"]


class OwnClusters(NamedTuple):
    """The same for labels that are votes of clusters (B.5.2); features end with the columns of positions."""

    patterns: Float[Array, "pattern wide"]
    features: Float[Array, "node wide"]
    cluster: Int[Array, " node"]
    label: Int[Array, " node"]
    order: Int[Array, " node"]


class OwnGraphs(NamedTuple):
    """Graphs with a label each (B.5.4): those that are trained on first, then those that are tested."""

    patterns: Float[Array, "pattern dim"]
    features: Float[Array, "graph node dim"]
    distance: Int[Array, "graph node node"]
    label: Int[Array, " graph"]


class OwnClasses(NamedTuple):
    """Nodes of four classes (B.5.5): labels are pairs of signs, and patterns 0 to 3 vote for the pairs of `CLASSES`."""

    patterns: Float[Array, "pattern dim"]
    features: Float[Array, "node dim"]
    distance: Int[Array, "node node"]
    pattern: Int[Array, " node"]
    label: Int[Array, "node 2"]
    order: Int[Array, " node"]


def check_graph(own: OwnGraph | OwnClusters | OwnGraphs | OwnClasses, buckets: int) -> None:
    """Refuse a graph whose numbers mean nothing."""
    require_signs("data.label", own.label)
    base = np.asarray(own.patterns, float)
    off = float(np.abs(base @ base.T - np.eye(len(base))).max())
    require(
        off < 1e-5, f"data.patterns takes orthonormal rows; a product of two of these is off by {off:.3g}."
    )
    if not isinstance(own, OwnGraphs):
        order = np.asarray(own.order)
        require(
            np.array_equal(np.sort(order), np.arange(len(order))),
            f"data.order takes each node from 0 to {len(order) - 1} once.",
        )
    if isinstance(own, OwnGraph | OwnClasses):
        require_between("data.pattern", own.pattern, 0, len(base) - 1)
    if not isinstance(own, OwnClusters):
        distance = np.asarray(own.distance)
        require_between("data.distance", distance, 0, buckets - 1)
        require(
            np.array_equal(
                distance == 0, np.broadcast_to(np.eye(distance.shape[-1], dtype=bool), distance.shape)
            ),
            "data.distance takes 0 from a node to itself, and 1 or more to others.",
        )
    if isinstance(own, OwnGraph):
        require(
            not np.any(np.asarray(own.sets)[:, *np.diag_indices(len(own.label))]),
            "data.sets holds a node in its own set; leave it out, the sampler puts it there where it belongs.",
        )
