"""What a graph says about its labels: votes of the discriminative nodes by distance, the core distance, and how well the
assumptions of the theorems are met. Exact functions of one graph, in NumPy."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

DISCRIMINATIVE = 2
"""Patterns 0 and 1 (mu_1 and mu_2 of the document) belong to the labels +1 and -1."""


class Votes(NamedTuple):
    """A graph as the votes see it: distances between nodes (pooled at the last bucket), patterns counted from 0, labels."""

    distance: Int[ndarray, "node node"]
    pattern: Int[ndarray, " node"]
    label: Int[ndarray, " node"]

    @property
    def nodes(self) -> int:
        return len(self.label)

    @property
    def buckets(self) -> int:
        """Z: distances run from 0 to Z - 1."""
        return int(self.distance.max()) + 1

    @property
    def discriminative(self) -> Bool[ndarray, " node"]:
        return self.pattern < DISCRIMINATIVE

    @property
    def relevant(self) -> Bool[ndarray, "node node"]:
        """[n, s]: s is class-relevant for n, s in D*_n."""
        return self.pattern[None, :] == np.where(self.label > 0, 0, 1)[:, None]

    @property
    def confusing(self) -> Bool[ndarray, "node node"]:
        """[n, s]: s is a confusion node for n, s in D#_n."""
        return self.pattern[None, :] == np.where(self.label > 0, 1, 0)[:, None]


def counted(graph: Votes, which: Bool[ndarray, "node node"]) -> Int[ndarray, "node bucket"]:
    """How many of the marked nodes lie at each distance of every node."""
    buckets = graph.buckets
    row = np.arange(graph.nodes)[:, None] * buckets + graph.distance
    return np.bincount(row[which], minlength=graph.nodes * buckets).reshape(graph.nodes, buckets)


def sizes(graph: Votes) -> Int[ndarray, "node bucket"]:
    """|N_z^n|."""
    return counted(graph, np.ones_like(graph.distance, bool))


def winning_margin(graph: Votes) -> Int[ndarray, "node bucket"]:
    """Delta_n(z) = |D*_n in N_z^n| - |D#_n in N_z^n| (Definition 3.4.1); the last bucket pools all larger distances."""
    return counted(graph, graph.relevant) - counted(graph, graph.confusing)


def average_margin(graph: Votes) -> Float[ndarray, " bucket"]:
    """Dbar(z), the mean of Delta_n(z) over the nodes (3.5)."""
    return winning_margin(graph).mean(0)


def normalised_margin(graph: Votes) -> Float[ndarray, " bucket"]:
    """The mean of Delta_n(z) / |N_z^n| over the nodes that have such neighbours (figure B.5)."""
    return shares(winning_margin(graph), sizes(graph))


def shares(part: ndarray, whole: ndarray) -> Float[ndarray, " bucket"]:
    """The mean over nodes of part / whole, where there is a whole."""
    with np.errstate(invalid="ignore", divide="ignore"):
        each = np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
    known = np.isfinite(each)
    return np.where(known, each, 0).sum(0) / np.maximum(known.sum(0), 1)


def core_distance(margin: Float[ndarray, " bucket"]) -> int:
    """z_m = argmax over z = 1..Z-1 of the average margin (3.6)."""
    return 1 + int(np.argmax(margin[1:]))


def inconsistent_share(graph: Votes) -> float:
    """eps_0 as the graph has it: the share of nodes whose core neighbourhood does not vote for their label (Assumption
    3.4.2)."""
    margin = winning_margin(graph)
    return float(np.mean(margin[:, core_distance(margin.mean(0))] <= 0))


def confusion_ratio(graph: Votes) -> float:
    """eps_S with the whole core neighbourhood sampled: the mean share of confusion nodes among the discriminative ones in
    N_zm^n, over non-discriminative nodes n (Definition 3.4.3); nodes without such neighbours do not count."""
    core = core_distance(average_margin(graph))
    good, bad = (
        counted(graph, which)[~graph.discriminative, core] for which in (graph.relevant, graph.confusing)
    )
    seen = good + bad > 0
    return float(np.mean(bad[seen] / (good + bad)[seen])) if seen.any() else 0.0


def largest_neighbourhood(graph: Votes) -> Int[ndarray, " bucket"]:
    """delta_z = max_n |N_z^n|."""
    return sizes(graph).max(0)


def discriminative_share(graph: Votes) -> Float[ndarray, " bucket"]:
    """The mean share of discriminative nodes in N_z^n: gamma_d at every z where discriminative nodes are spread evenly, as the
    proof of Lemma B.3.3 needs (HA1)."""
    marked = np.broadcast_to(graph.discriminative, graph.distance.shape)
    return shares(counted(graph, marked), sizes(graph))


def unevenness(graph: Votes) -> float:
    """How far that share is from gamma_d at the worst distance."""
    own = float(np.mean(graph.discriminative))
    return float(np.abs(discriminative_share(graph)[1:] - own).max())


def margin_identity(graph: Votes, pattern: int) -> Int[ndarray, "node bucket"]:
    """(B.199), left minus right side: |D* in N_z| |D_i outside| - |D_i in N_z| |D* outside| against
    |D* in N_z| |D_i| - |D_i in N_z| |D*|; zero for every graph."""
    own = counted(graph, graph.relevant)
    other = counted(graph, np.broadcast_to(graph.pattern == pattern, graph.distance.shape))
    all_own, all_other = own.sum(1, keepdims=True), other.sum(1, keepdims=True)
    return own * (all_other - other) - other * (all_own - own) - (own * all_other - other * all_own)
