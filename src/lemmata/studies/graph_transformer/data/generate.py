"""Graphs whose labels are votes: the document's (2.4 of its section 3.5.1), block graphs in which the votes of every distance
are even in kind, and distances drawn without a graph."""

from math import floor
from typing import Literal, NamedTuple

import numpy as np
import scipy.sparse as sparse
from numpy import ndarray

from lemmata.errors import require
from lemmata.parts.graphs import adjacency, block_graph, degrees, distances
from lemmata.studies.graph_transformer.data.votes import DISCRIMINATIVE, Votes

Generator = Literal["bipartite", "blocks", "distances"]


class Wanted(NamedTuple):
    """What a graph is asked to be: gamma_d, eps_S, and the shares and sizes behind it (see `data.model.VoteGraph`)."""

    generator: Generator
    nodes: int
    patterns: int
    discriminative: float
    confusion: float
    degree: int
    inner_degree: int
    buckets: int
    core: int = 1


def drawn(rng: np.random.Generator, wanted: Wanted) -> tuple[Votes, sparse.csr_array | None]:
    """A graph of votes, and its adjacency where there is one."""
    pattern, label = nodes_of(rng, wanted)
    if wanted.generator == "distances":
        return Votes(table_of_distances(rng, wanted, pattern, label), pattern, label), None
    make = bipartite if wanted.generator == "bipartite" else blocks
    graph = make(rng, wanted, pattern, label)
    return Votes(distances(graph, wanted.buckets - 1), pattern, label), graph


def group_size(wanted: Wanted) -> int:
    """Nodes of each discriminative pattern: gamma_d N / 2."""
    return round(wanted.discriminative * wanted.nodes / 2)


def nodes_of(rng: np.random.Generator, wanted: Wanted) -> tuple[ndarray, ndarray]:
    """Patterns (discriminative ones first, the others in turn) and labels: those of the pattern, or fair coins."""
    own, nodes = group_size(wanted), wanted.nodes
    others = DISCRIMINATIVE + np.arange(nodes - 2 * own) % (wanted.patterns - DISCRIMINATIVE)
    pattern = np.concatenate([np.zeros(own, int), np.ones(own, int), others])
    label = np.where(pattern == 0, 1, np.where(pattern == 1, -1, rng.choice([-1, 1], nodes)))
    return pattern, label


# The document's graph --------------------------------------------------------------------------------------------------


def split(degree: int, confusion: float) -> tuple[int, int]:
    """How many class-relevant and confusion neighbours a non-discriminative node has."""
    wrong = round(degree * confusion)
    return degree - wrong, wrong


def check_bipartite(wanted: Wanted) -> None:
    """Refuse what the group sizes cannot give."""
    own, needed = group_size(wanted), split(wanted.degree, wanted.confusion)[0]
    require(
        needed <= own,
        f"every non-discriminative node is to be joined to {needed} nodes of a pattern that has {own}; lower the degree to "
        f"{floor(own / (1 - wanted.confusion))}, or raise the discriminative fraction.",
    )
    require(
        wanted.inner_degree < own,
        f"{own} nodes of a pattern cannot have {wanted.inner_degree} neighbours among themselves.",
    )
    require(wanted.inner_degree % 2 == 0, f"the inner degree is even, not {wanted.inner_degree}.")


def bipartite(rng: np.random.Generator, wanted: Wanted, pattern: ndarray, label: ndarray) -> sparse.csr_array:
    """Section 3.5.1: every non-discriminative node is joined to `degree` discriminative ones, a share eps_S of them of the
    other label's pattern; the nodes of a discriminative pattern are joined among themselves, each to `inner_degree` others
    and, where its degree is still below `degree`, to more. No edge joins the two patterns, or two non-discriminative nodes."""
    own, (right, wrong) = group_size(wanted), split(wanted.degree, wanted.confusion)
    asking = np.flatnonzero(pattern >= DISCRIMINATIVE)
    chosen = [rng.random((len(asking), own)).argpartition(k - 1, 1)[:, :k] for k in (right, wrong) if k]
    first = np.where(label[asking] > 0, 0, own)[:, None]
    ends = [chosen[0] + first] + [part + (own - first) for part in chosen[1:]]
    edges = [np.stack([np.repeat(asking, part.shape[1]), part.ravel()], 1) for part in ends]
    for start in (0, own):
        edges.append(start + regular(rng, own, wanted.inner_degree))
    graph = adjacency(np.concatenate(edges), wanted.nodes)
    extra = [_topped_up(rng, graph, start, own, wanted.degree) for start in (0, own)]
    return adjacency(np.concatenate([*edges, *extra]), wanted.nodes) if any(map(len, extra)) else graph


def regular(rng: np.random.Generator, nodes: int, degree: int) -> ndarray:
    """A graph in which every node has `degree` neighbours (an even number): a ring of nearest partners in a random order, then
    as many random swaps of edge ends as there are edges."""
    joined = np.zeros((nodes, nodes), bool)
    place = np.arange(nodes)
    for step in range(1, degree // 2 + 1):
        joined[place, (place + step) % nodes] = joined[(place + step) % nodes, place] = True
    for _ in range(2):
        edges = np.argwhere(np.triu(joined))
        edges = edges[rng.permutation(len(edges))][: len(edges) // 2 * 2]
        a, b, c, d = edges.reshape(-1, 4).T
        name = np.stack(
            [np.minimum(a, d) * nodes + np.maximum(a, d), np.minimum(b, c) * nodes + np.maximum(b, c)]
        )
        _, which, often = np.unique(name, return_inverse=True, return_counts=True)
        once = (often[which].reshape(name.shape) == 1).all(0)
        free = (a != c) & (a != d) & (b != c) & (b != d) & ~joined[a, d] & ~joined[b, c] & once
        a, b, c, d = (end[free] for end in (a, b, c, d))
        for left, right, is_joined in ((a, b, False), (c, d, False), (a, d, True), (b, c, True)):
            joined[left, right] = joined[right, left] = is_joined
    order = rng.permutation(nodes)
    return order[np.argwhere(np.triu(joined))].astype(int).reshape(-1, 2)


def _topped_up(
    rng: np.random.Generator, graph: sparse.csr_array, start: int, own: int, degree: int
) -> ndarray:
    """New edges inside a pattern that bring its nodes to the degree asked for, as far as the pattern has nodes."""
    joined = graph[start : start + own, start : start + own].toarray().astype(bool)
    has = degrees(graph)[start : start + own].copy()
    new = []
    for node in rng.permutation(own):
        free = np.flatnonzero(~joined[node])
        free = free[free != node]
        missing = min(max(degree - int(has[node]), 0), len(free))
        poorest = free[np.argsort(has[free] + rng.random(len(free)))][:missing]
        joined[node, poorest] = joined[poorest, node] = True
        has[node] += missing
        has[poorest] += 1
        new += [(start + node, start + other) for other in poorest]
    return np.asarray(new, int).reshape(-1, 2)


# Block graphs ----------------------------------------------------------------------------------------------------------


def blocks(rng: np.random.Generator, wanted: Wanted, pattern: ndarray, label: ndarray) -> sparse.csr_array:
    """A pair with a discriminative node is joined with probability 2p(1 - eps) if its labels agree and 2p eps otherwise, other
    pairs with p = degree / N: the share of discriminative nodes among the neighbours is gamma_d, that of confusion nodes
    among those eps, for every node. Homophilous for eps below 1/2; above, the core distance is not 1."""
    plain, same, other = (
        wanted.degree / wanted.nodes * f for f in (1, 2 * (1 - wanted.confusion), 2 * wanted.confusion)
    )
    group = np.where(pattern < DISCRIMINATIVE, 0, 2) + (label < 0)
    sign, mixed = np.array([1, -1, 1, -1]), np.array([False, False, True, True])
    chance = np.where(sign[:, None] == sign[None, :], same, other)
    chance[np.ix_(mixed, mixed)] = plain
    return block_graph(rng, group, np.minimum(chance, 1.0))


# Distances without a graph ---------------------------------------------------------------------------------------------


def table_of_distances(rng: np.random.Generator, wanted: Wanted, pattern: ndarray, label: ndarray) -> ndarray:
    """Every node sees as many nodes of every pattern at each distance 1..Z-1, but at the core distance, where a share eps of
    its discriminative nodes is of the other label's pattern; what is missing there is spread over the other distances."""
    nodes, last = wanted.nodes, wanted.buckets - 1
    away = np.setdiff1d(np.arange(1, last + 1), [wanted.core])
    table = np.zeros((nodes, nodes), np.uint8)
    for node in range(nodes):
        order = rng.permutation(np.delete(np.arange(nodes), node))
        row = 1 + np.arange(nodes - 1) % last
        own = 0 if label[node] > 0 else 1
        inside = 2 * group_size(wanted) / last
        for kind, share in ((own, 1 - wanted.confusion), (1 - own, wanted.confusion)):
            group = np.flatnonzero(pattern[order] == kind)
            near = min(round(inside * share), len(group))
            row[group[:near]] = wanted.core
            row[group[near:]] = away[np.arange(len(group) - near) % len(away)]
        table[node, order] = row
    return table
