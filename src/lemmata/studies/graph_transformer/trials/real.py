"""Work on real graphs: the survey behind the tables of Appendix B.1.1."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np

from lemmata.parts.graphs import GraphFile, real_graph
from lemmata.studies.graph_transformer.data import surveys
from lemmata.trial import Computed, Key, fixed

Graph = Literal["cora", "citeseer", "actor", "made"]
"""A real graph, or a small made one of three classes for tests."""

CLASSES = {"cora": 7, "citeseer": 6, "actor": 5, "made": 3}
"""The number of classes of each graph."""

LAST = 12
"""The largest distance of figure B.5."""


def graph_named(name: Graph) -> GraphFile:
    """Return a real graph by name, or the made one."""
    return surveys.made(np.random.default_rng(0)) if name == "made" else real_graph(name)


def sets_of(name: Graph) -> tuple[str, ...]:
    """Return the data sets that a graph is read from."""
    return () if name == "made" else (name,)


class RealTables(Computed):
    """Tables B.1, B.3, B.5, B.6 and B.8 of one graph."""

    name: ClassVar[str] = "graph-transformer/real-tables"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "shares": ("category",),
        "normalised": ("distance",),
    }

    graph: Graph = fixed(default="cora")
    spectrum: surveys.Spectrum = fixed(default="covariance")
    itself: bool = fixed(default=False)

    @property
    def data_sets(self) -> tuple[str, ...]:
        return sets_of(self.graph)

    def compute(self, key: Key) -> dict[str, np.ndarray]:
        graph = graph_named(self.graph)
        known = graph.labels >= 0
        joined = GraphFile(graph.adjacency, graph.features, np.where(_alone(graph), -1, graph.labels))
        found = surveys.surveyed(joined, LAST, self.spectrum, self.itself)
        sizes = np.bincount(graph.labels[known])
        numbers = {
            "nodes": len(graph.labels),
            "edges": graph.adjacency.nnz // 2,
            "classes": len(sizes),
            "features": graph.features.shape[1],  # pyright: ignore[reportOptionalSubscript]
            "shares": found.shares,
            "winning": 1 - found.inconsistent,
            "normalised": found.normalised,
            "core": found.core,
            "class_size": sizes.mean(),
            "allowed_gap": 10 * np.sqrt(len(graph.labels)),
            "gap": np.abs(sizes - sizes.mean()).max(),
        }
        return {name: np.asarray(value, float) for name, value in numbers.items()}


def _alone(graph: GraphFile) -> np.ndarray:
    """Mark the nodes without a neighbour, which no vote reaches."""
    return np.diff(graph.adjacency.indptr) == 0
