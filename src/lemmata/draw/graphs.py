"""A small graph: nodes in the colours of their groups, edges as thick as their weights."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sparse
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from lemmata.draw.attention import GROUPS
from lemmata.draw.palette import BLACK, GREY

Adjacency = Any
"""A dense or sparse matrix; what is not 0 is an edge, and its value the weight."""


def graph(
    axes: Axes,
    adjacency: Adjacency,
    group_of: Sequence[int],
    groups: Sequence[str] = (),
    text: Sequence[str] | None = None,
    places: np.ndarray | None = None,
    outlined: Sequence[int] = (),
    sizes: Any = 60.0,
) -> np.ndarray:
    """Draw a graph and return the places of its nodes, so that another picture of it can use the same.

    Each pair is joined once, by the larger of its two weights; the largest of all is drawn 4 points thick, and a graph whose
    weights are all the same thinly. `outlined` nodes get a black rim; `groups` names the groups for the key.
    """
    size, joined, weight = _pairs(adjacency)
    at = layout(adjacency) if places is None else np.asarray(places, float)
    plain = len(weight) == 0 or np.ptp(weight) == 0
    widths = np.full(len(weight), 0.6) if plain else 4 * weight / weight.max()
    axes.add_collection(LineCollection(list(at[joined]), linewidths=widths, colors=GREY, alpha=0.6, zorder=1))
    kinds = np.asarray(group_of, int)
    rims = np.isin(np.arange(size), np.asarray(outlined, int))
    axes.scatter(
        *at.T,
        s=np.broadcast_to(np.asarray(sizes, float), size),
        c=[GROUPS(kind % GROUPS.N) for kind in kinds],
        edgecolors=[BLACK if rim else "white" for rim in rims],
        linewidths=np.where(rims, 1.8, 0.6).tolist(),
        zorder=2,
    )
    for node, label in enumerate(text or ()):
        axes.text(at[node, 0], at[node, 1], label, ha="center", va="center", fontsize=7, zorder=3)
    for kind, name in enumerate(groups):
        axes.plot([], [], "o", color=GROUPS(kind % GROUPS.N), label=name)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.margins(0.08)
    return at


def layout(adjacency: Adjacency, iterations: int = 120) -> np.ndarray:
    """Places in the unit square: joined nodes pull each other, all push each other (Fruchterman and Reingold's forces), from
    the slow modes of the graph on, so that the same graph always looks the same.

    >>> layout(np.array([[0, 1], [1, 0]])).shape
    (2, 2)
    """
    size, joined, _ = _pairs(adjacency)
    at = _slow_modes(size, joined)
    ideal = 1 / np.sqrt(max(size, 1))
    for farthest in np.linspace(0.2, 0.0, iterations, endpoint=False):
        apart = at[:, None] - at[None, :]
        distance = np.maximum(np.linalg.norm(apart, axis=-1), 1e-6)
        force = (apart * (ideal / distance)[..., None] ** 2).sum(1)
        ends = at[joined[:, 1]] - at[joined[:, 0]]
        pull = ends * np.linalg.norm(ends, axis=-1, keepdims=True) / ideal
        np.add.at(force, joined[:, 0], pull)
        np.add.at(force, joined[:, 1], -pull)
        force -= 0.1 * at  # parts of the graph that nothing joins must not drift away
        length = np.maximum(np.linalg.norm(force, axis=-1, keepdims=True), 1e-9)
        at = at + force / length * np.minimum(length, farthest)
    low, spread = at.min(0, initial=0.0), np.ptp(at, axis=0) if size > 1 else np.ones(2)
    return (at - low) / np.maximum(spread.max(), 1e-9)


def _slow_modes(size: int, joined: np.ndarray) -> np.ndarray:
    """Nodes along the two smoothest modes of the graph, and a little along a circle, which parts those that coincide."""
    laplacian = np.zeros((size, size))
    np.add.at(laplacian, (joined[:, 0], joined[:, 1]), -1.0)
    laplacian += laplacian.T
    np.fill_diagonal(laplacian, -laplacian.sum(1))
    angle = 2 * np.pi * np.arange(size) / max(size, 1)
    circle = np.stack([np.cos(angle), np.sin(angle)], 1)
    if size < 4:
        return circle
    modes = np.linalg.eigh(laplacian)[1][:, 1:3] * np.sqrt(size)
    return 0.5 * modes + 0.1 * circle


def _pairs(adjacency: Adjacency) -> tuple[int, np.ndarray, np.ndarray]:
    """How many nodes there are, the pairs that are joined, and the weight of each."""
    matrix = sparse.coo_array(abs(sparse.csr_array(adjacency)))
    larger = sparse.triu(matrix.maximum(matrix.T), k=1).tocoo()
    return (
        int(np.shape(adjacency)[0]),
        np.stack([larger.row, larger.col], 1).astype(int),
        np.asarray(larger.data, float),
    )
