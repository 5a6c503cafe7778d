"""The data model: a graph of votes with noisy patterns as features, some labels flipped, some nodes labelled."""

from collections.abc import Callable, Mapping
from math import ceil, exp, log
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from numpy import ndarray

from lemmata.errors import require
from lemmata.parts.graphs import adjacency, distances
from lemmata.studies.graph_transformer.data.generate import Generator, Wanted, check_bipartite, drawn
from lemmata.studies.graph_transformer.data.own import OwnGraph
from lemmata.studies.graph_transformer.data.sampling import (
    Lists,
    Sampler,
    lists,
    masks,
    parts,
    sampled_confusion,
)
from lemmata.studies.graph_transformer.data.votes import (
    DISCRIMINATIVE,
    Votes,
    average_margin,
    core_distance,
    discriminative_share,
    largest_neighbourhood,
)
from lemmata.trial import Key, fixed

LEAVES = ("discriminative", "confusion", "flipped", "feature_noise", "degree", "inner_degree", "core")
"""What a graph is drawn from beside its sizes: numbers that may differ from run to run of one compiled program."""


class Nodes(NamedTuple):
    """A drawn graph as training sees it. `label` may be flipped; `given` is the label that the graph was built with.
    `margin`, `largest` and `share` are Dbar(z), delta_z and the share of discriminative nodes at each distance,
    `sampled_confusion` is eps_S of sampled sets. `sets` is which nodes a node may draw, where the user handed that in."""

    patterns: Float[Array, "pattern dim"]
    features: Float[Array, "node dim"]
    distance: Int[Array, "node node"]
    pattern: Int[Array, " node"]
    label: Int[Array, " node"]
    given: Int[Array, " node"]
    lists: Lists
    core: Int[Array, ""]
    order: Int[Array, " node"]
    margin: Float[Array, " bucket"]
    largest: Int[Array, " bucket"]
    share: Float[Array, " bucket"]
    sampled_confusion: Float[Array, ""]
    sets: Bool[Array, "node node"] | None = None


class VoteGraph(eqx.Module):
    """Nodes of M patterns, two of them discriminative (a share gamma_d of the nodes), on a graph where labels are votes.

    `confusion` is eps_S of the generator, `flipped` eps_0, the share of labels turned over after the graph was built. `degree`
    is the core degree of the document's graph and the mean degree of block graphs; `inner_degree` the neighbours that a
    discriminative node has of its own pattern (0: only those that bring it to `degree`, which is how the document reads).
    `buckets` is Z: distances Z - 1 and larger are one. `core` is the core distance of the generator "distances". `file` names a
    graph to be asked about instead (`lemmata predict`); it is not trained on.
    """

    discriminative: float = 0.4
    confusion: float = 0.05
    flipped: float = 0.0
    feature_noise: float = 0.01
    labelled: int = 400
    degree: int = 120
    inner_degree: int = 0
    core: int = 1
    nodes: int = fixed(default=1000)
    patterns: int = fixed(default=10)
    dim: int = fixed(default=20)
    generator: Generator = fixed(default="bipartite")
    buckets: int = fixed(default=5)
    file: str = fixed(default="")

    def __check_init__(self):
        require(
            0 < self.discriminative < 1,
            f"the discriminative fraction lies between 0 and 1, not {self.discriminative}.",
        )
        require(0 <= self.confusion <= 1, f"the confusion ratio lies between 0 and 1, not {self.confusion}.")
        require(
            0 <= self.flipped < 0.5,
            f"fewer than half of the labels may be flipped, not {self.flipped:g} of them.",
        )
        require(self.feature_noise >= 0, f"the feature noise must not be negative, not {self.feature_noise}.")
        require(
            DISCRIMINATIVE < self.patterns <= self.dim,
            f"{self.patterns} orthonormal patterns, two of them discriminative, do not fit into {self.dim} dimensions.",
        )
        require(
            0 < self.labelled < self.nodes,
            f"of {self.nodes} nodes some must be left to be tested; {self.labelled} are labelled.",
        )
        require(
            self.degree >= 1 and self.inner_degree >= 0,
            f"a degree of {self.degree} (inner {self.inner_degree}) leaves nodes isolated.",
        )
        alone = self.nodes * exp(-self.degree)
        require(
            self.generator != "blocks" or alone < 1,
            f"a block graph of mean degree {self.degree} leaves about {alone:.0f} of {self.nodes} nodes without a neighbour; "
            f"use data.degree={ceil(log(self.nodes))} or more.",
        )
        core = 1 if self.generator == "bipartite" or self.confusion < 0.5 else 2
        core = self.core if self.generator == "distances" else core
        require(
            self.buckets >= core + 2,
            f"the distances are capped at {self.buckets - 1}, which pools the core distance {core}; use data.buckets={core + 2}"
            " or more.",
        )
        if self.generator == "bipartite":
            check_bipartite(self.wanted)

    @property
    def wanted(self) -> Wanted:
        return Wanted(
            self.generator, self.nodes, self.patterns, self.discriminative, self.confusion, self.degree, self.inner_degree,
            self.buckets, self.core,
        )  # fmt: skip

    def graph(self, seed: int | ndarray, **changed: float) -> Votes:
        """A graph on the host, its labels flipped; the same seed gives the same graph."""
        return self._on_host(
            np.random.default_rng(seed), self.wanted._replace(**changed), float(self.flipped)
        )[0]

    def _on_host(self, rng: np.random.Generator, wanted: Wanted, flipped: float) -> tuple[Votes, ndarray]:
        graph, _ = drawn(rng, wanted)
        turned = rng.permutation(self.nodes)[: round(flipped * self.nodes)]
        label = graph.label.copy()
        label[turned] *= -1
        return graph._replace(label=label), graph.label

    def draw(self, key: Key, sampler: Sampler, at: int | Array, sampled: int, dtype: np.dtype) -> Nodes:
        """The graph and its features, drawn on the host: SciPy finds distances, and nothing of it has to be compiled."""
        require(
            not self.file,
            "a graph file is not trained on: ask `lemmata predict graph-transformer` about it, or survey it (figure tables).",
        )
        nodes = self.nodes
        shapes = self._shapes(sampler) | {
            "patterns": ((self.patterns, self.dim), np.float32), "features": ((nodes, self.dim), np.float32),
            "distance": ((nodes, nodes), np.uint8), "pattern": ((nodes,), np.int32), "label": ((nodes,), np.int32),
            "given": ((nodes,), np.int32), "order": ((nodes,), np.int32),
        }  # fmt: skip

        def made(rng: np.random.Generator, leaves: dict[str, ndarray]) -> dict[str, Any]:
            told = {name: value.item() for name, value in leaves.items()}
            flipped, noise, place = (told.pop(name) for name in ("flipped", "feature_noise", "at"))
            return self._found(rng, self.wanted._replace(**told), flipped, noise, sampler, place, sampled)

        leaves = {"at": at} | {name: getattr(self, name) for name in LEAVES}
        found = _on_the_host(made, shapes, key, leaves, dtype)
        drawn_lists = Lists(found.pop("members"), found.pop("count"))
        return Nodes(**found, lists=drawn_lists)

    def taken(self, key: Key, own: OwnGraph, sampler: Sampler, sampled: int, dtype: np.dtype) -> Nodes:
        """The nodes of a user's graph, with everything that training and record need to know of them."""

        def made(rng: np.random.Generator, given: dict[str, ndarray]) -> dict[str, Any]:
            sets = list(given.pop("sets"))
            return self._described(rng, Votes(**given), sets, sampled)

        given = {name: getattr(own, name) for name in ("distance", "pattern", "label", "sets")}
        found = _on_the_host(made, self._shapes(sampler), key, given, dtype)
        held = Lists(found.pop("members"), found.pop("count"))
        named = own._asdict() | {"given": own.label, "sets": jnp.any(own.sets, axis=0)}
        return Nodes(**named, **found, lists=held)

    def own(
        self,
        edges: Int[ndarray, "edge two"],
        patterns: Float[ndarray, "pattern dim"],
        features: Float[ndarray, "node dim"],
        pattern: Int[ndarray, " node"],
        label: Int[ndarray, " node"],
        order: Int[ndarray, " node"],
        sampler: Sampler,
        at: int = 1,
    ) -> OwnGraph:
        """Make a graph of an edge list, for `train(trial, data=...)`; its sets are those of the sampler."""
        away = distances(adjacency(edges, len(label)), self.buckets - 1)
        allowed = np.stack(masks(Votes(away, np.asarray(pattern), np.asarray(label)), sampler, at))
        return OwnGraph(
            *(jnp.asarray(one) for one in (patterns, features, away, pattern, label, order, allowed))
        )

    def _shapes(self, sampler: Sampler) -> dict[str, tuple[tuple[int, ...], Any]]:
        """Shapes and types of what is computed from a graph and its sets."""
        nodes, count, buckets = self.nodes, parts(sampler), self.buckets
        return {
            "members": ((count, nodes, nodes), np.int16), "count": ((count, nodes), np.int32), "core": ((), np.int32),
            "margin": ((buckets,), np.float32), "largest": ((buckets,), np.int32), "share": ((buckets,), np.float32),
            "sampled_confusion": ((), np.float32),
        }  # fmt: skip

    def _found(
        self,
        rng: np.random.Generator,
        wanted: Wanted,
        flipped: float,
        noise: float,
        sampler: Sampler,
        at: int,
        sampled: int,
    ) -> dict[str, Any]:
        graph, given = self._on_host(rng, wanted, flipped)
        patterns = np.linalg.qr(rng.normal(size=(self.dim, self.dim)))[0][: self.patterns]
        features = patterns[graph.pattern] + noise * rng.normal(size=(self.nodes, self.dim))
        order = rng.permutation(self.nodes)
        described = self._described(rng, graph, masks(graph, sampler, at), sampled)
        return {
            "patterns": patterns, "features": features, "order": order, "given": given, **described, **graph._asdict()
        }  # fmt: skip

    def _described(
        self, rng: np.random.Generator, graph: Votes, allowed: list[Bool[ndarray, "node node"]], sampled: int
    ) -> dict[str, Any]:
        """What votes and sets of a graph are."""
        members, count = lists(allowed)
        margin, largest, share = (
            _filled(one(graph), self.buckets)
            for one in (average_margin, largest_neighbourhood, discriminative_share)
        )
        core = core_distance(margin)
        return {
            "members": members, "count": count, "core": core, "margin": margin, "largest": largest, "share": share,
            "sampled_confusion": sampled_confusion(rng, graph, core, members, count, sampled),
        }  # fmt: skip


def _on_the_host(
    made: Callable[[np.random.Generator, dict[str, ndarray]], dict[str, Any]],
    shapes: Mapping[str, tuple[tuple[int, ...], Any]],
    key: Key,
    given: Mapping[str, Any],
    dtype: np.dtype,
) -> dict[str, Array]:
    """What `made(rng, given)` computes with NumPy, as arrays of a compiled program."""

    def called(bits: Array, told: dict[str, Array]) -> dict[str, ndarray]:
        found = made(np.random.default_rng(np.asarray(bits)), {n: np.asarray(one) for n, one in told.items()})
        return {name: np.asarray(found[name], kind) for name, (_, kind) in shapes.items()}

    described = {name: jax.ShapeDtypeStruct(shape, kind) for name, (shape, kind) in shapes.items()}
    arrays = jax.tree.map(jnp.asarray, dict(given))
    found = jax.pure_callback(called, described, jax.random.key_data(key), arrays, vmap_method="sequential")
    # A callback answers in single precision, whatever the trial's own is.
    return {k: v.astype(dtype) if v.dtype == jnp.float32 else v for k, v in found.items()}


def _filled(by_distance: ndarray, buckets: int) -> ndarray:
    """Zeros where a graph has no pair at the larger distances."""
    return np.concatenate([by_distance, np.zeros(buckets - len(by_distance))])
