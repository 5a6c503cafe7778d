"""The assumption checks on real graphs (B.1.1): discriminative nodes by class, winning margins by distance for several classes,
the core distance, and balance."""

from functools import cache
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sparse
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from lemmata.errors import require
from lemmata.parts.graphs import GraphFile, block_graph, distances, read_graph, require_neighbours

Spectrum = Literal["moment", "covariance"]
"""Whose eigenvectors describe a class: X^T X / n of its features as they are, or their covariance."""

KEPT = 3
"""Eigenvectors that describe a class."""


LOOKED = 12
"""Distances at which a graph's core is looked for at least (figure B.5)."""


class Survey(NamedTuple):
    """What the tables say of a graph. Margins start at distance 1; `core` is the largest normalised margin's distance,
    `core_by_count` the largest margin's."""

    nodes: int
    classes: int
    shares: Float[ndarray, " class"]
    discriminative: float
    margin: Float[ndarray, " distance"]
    normalised: Float[ndarray, " distance"]
    core: int
    core_by_count: int
    inconsistent: float
    confusion: float
    largest: int
    mean_class: float
    allowed_gap: float
    gap: float


def eigenvectors(features: sparse.csr_array, spectrum: Spectrum = "moment") -> tuple[ndarray, ndarray]:
    """Eigenvalues (falling) and the first eigenvectors of a class's features."""
    rows = np.asarray(features.todense(), float)
    centred = rows - rows.mean(0) if spectrum == "covariance" else rows
    _, spread, directions = np.linalg.svd(centred, full_matrices=False)
    return spread**2 / len(rows), directions[:KEPT]


def discriminative_nodes(
    features: sparse.csr_array, labels: Int[ndarray, " node"], spectrum: Spectrum = "moment"
) -> Bool[ndarray, " node"]:
    """Nodes whose features, in the first three eigenvectors of their class, lie within pi/4 of the class mean."""
    found = np.zeros(len(labels), bool)
    for kind in range(labels.max() + 1):
        own = np.flatnonzero(labels == kind)
        if len(own) == 0:
            continue
        _, directions = eigenvectors(features[own], spectrum)
        placed = features[own] @ directions.T
        mean = placed.mean(0)
        size = np.linalg.norm(placed, axis=1) * np.linalg.norm(mean)
        found[own] = placed @ mean > np.cos(np.pi / 4) * np.maximum(size, 1e-300)
    return found


def counts_by_class(
    graph: GraphFile, marked: Bool[ndarray, " node"], last: int, itself: bool
) -> tuple[ndarray, ndarray]:
    """How many marked nodes of each class lie at distance 1..last of every node, and how many nodes in all; with `itself` a
    node counts among its own neighbours wherever it has any."""
    nodes, classes = len(graph.labels), int(graph.labels.max()) + 1
    one_hot = np.zeros((nodes, classes), np.float32)
    one_hot[np.flatnonzero(marked), graph.labels[marked]] = 1
    found, size = np.zeros((last, nodes, classes)), np.zeros((last, nodes))
    for start in range(0, nodes, 512):
        part = slice(start, min(start + 512, nodes))
        away = distances(graph.adjacency, last + 1, np.arange(part.start, part.stop))
        for z in range(1, last + 1):
            there = (away == z).astype(np.float32)
            found[z - 1, part], size[z - 1, part] = there @ one_hot, there.sum(1)
    if itself:
        reached = size > 0
        return found + one_hot * reached[..., None], size + reached
    return found, size


def margins(
    found: Float[ndarray, "distance node class"], labels: Int[ndarray, " node"]
) -> Float[ndarray, "distance node"]:
    """Delta_n(z) with several classes: the own class's nodes less the mean number of the others'."""
    own = np.take_along_axis(found, labels[None, :, None], 2)[..., 0]
    return own - (found.sum(2) - own) / (found.shape[2] - 1)


@cache
def survey(path: str, last: int, spectrum: Spectrum = "moment", itself: bool = False) -> Survey:
    """The whole survey of a graph file, distances 1 to `last`."""
    return surveyed(read_graph(path), last, spectrum, itself)


def surveyed(graph: GraphFile, last: int, spectrum: Spectrum = "moment", itself: bool = False) -> Survey:
    """The survey of a graph, distances 1 to `last`: nodes without a label vote for nothing and are not judged. A graph whose
    core lies farther out is refused."""
    labels = graph.labels
    known = labels >= 0
    require(bool(known.any()) and labels.max() >= 1, "a survey needs labelled nodes of at least two classes.")
    require_neighbours(graph.adjacency, known, "labelled nodes")
    marked = discriminative_nodes(graph.features, labels, spectrum) & known
    found, size = counts_by_class(graph, marked, max(last, LOOKED), itself)
    margin = margins(found[:, known], labels[known])
    there = size[:, known]
    each = np.where(there > 0, margin / np.maximum(there, 1), 0.0)
    normalised = each.mean(1)  # a neighbourhood that is not there decides nothing
    core = 1 + int(np.argmax(normalised))
    require(
        core <= last,
        f"the core of this graph, where its normalised winning margin is largest, is at distance {core}, and distances are "
        f"capped at {last}; raise the cap (data.buckets, or last).",
    )
    own = np.take_along_axis(found[core - 1][known], labels[known][:, None], 1)[:, 0]
    votes = found[core - 1][known].sum(1)
    rest = (votes - own) / (found.shape[2] - 1)
    asked = (votes > 0) & ~marked[known]
    size_of = np.bincount(labels[known])
    return Survey(
        nodes=len(labels),
        classes=len(size_of),
        shares=np.array([marked[labels == kind].mean() for kind in range(len(size_of))]),
        discriminative=float(marked[known].mean()),
        margin=margin.mean(1)[:last],
        normalised=normalised[:last],
        core=core,
        core_by_count=1 + int(np.argmax(margin.mean(1)[:last])),
        inconsistent=float(np.mean(margin[core - 1] <= 0)),
        confusion=float(np.mean(rest[asked] / np.maximum(own + rest, 1e-300)[asked])) if asked.any() else 0.0,
        largest=int(there[core - 1].max()),
        mean_class=float(known.sum() / len(size_of)),
        allowed_gap=float(10 * np.sqrt(len(labels))),
        gap=float(np.abs(size_of - known.sum() / len(size_of)).max()),
    )


def spectra(graph: GraphFile, spectrum: Spectrum, kept: int = 20) -> Float[ndarray, "class rank"]:
    """The largest eigenvalues of every class, its first one set to 1 (figures B.1 to B.4)."""
    found = np.zeros((int(graph.labels.max()) + 1, kept))
    for kind, row in enumerate(found):
        values = eigenvectors(graph.features[np.flatnonzero(graph.labels == kind)], spectrum)[0][:kept]
        row[: len(values)] = values / max(values[0], 1e-300)
    return found


def made(rng: np.random.Generator, size: int = 60) -> GraphFile:
    """A small homophilous graph of three classes whose features are noisy class means: for trying the survey out."""
    labels = np.repeat(np.arange(3), size)
    chance = np.full((3, 3), 0.01) + 0.09 * np.eye(3)
    features = np.eye(3, 8)[labels] + 0.5 * rng.normal(size=(3 * size, 8))
    graph = block_graph(rng, labels, chance)
    return GraphFile(graph, sparse.csr_array(features), labels)
