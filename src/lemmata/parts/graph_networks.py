"""Networks on the nodes of a graph: a graph transformer with scalar positions by distance, and a graph convolution.

In each layer of the transformer a node n attends to sampled nodes s with logits

    q_n . k_s / sqrt(h) + b_z,   z the distance of n and s, capped,

where q comes from the state of n, and k and the values come from the embedded features of s. A layer of the convolution is
`relu(D^-1/2 (A + I) D^-1/2 X W)`.

Nodes are sampled by distance: `order[n]` lists all nodes by their distance from n, and distance z begins at `starts[n, z]`.
"""

from math import sqrt
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sparse
from jaxtyping import Array, Float, Int, UInt16
from numpy import ndarray

from lemmata.errors import require
from lemmata.parts.graphs import distances, normalised
from lemmata.parts.transformers import Dense, LayerNorm, dense, layer_norm
from lemmata.trial import Key


class Rings(NamedTuple):
    """All nodes by their distance from each node."""

    order: UInt16[Array | ndarray, "node other"]
    starts: Int[Array | ndarray, "node distance"]


def rings(graph: sparse.csr_array, cap: int) -> Rings:
    """Return the nodes by distance. `cap` stands for all distances of `cap` and more, and for nodes out of reach."""
    away = distances(graph, cap)
    require(len(away) < 2**16, f"rings are kept for fewer than {2**16} nodes, and the graph has {len(away)}.")
    order = np.argsort(away, axis=1, kind="stable").astype(np.uint16)
    counts = np.stack([(away == z).sum(1) for z in range(cap + 1)], axis=1)
    return Rings(
        order, np.concatenate([np.zeros((len(away), 1), int), np.cumsum(counts, axis=1)], 1).astype(np.int32)
    )


def drawn_between(
    near: Rings, nodes: Int[Array, " n"], first: Array, last: Array, chance: Float[Array, "n draw"]
) -> tuple[Int[Array, "n draw"], Int[Array, "n draw"]]:
    """Draw nodes at distances `first` to `last`, with repetition, and return them with their distances.

    `first` and `last` are numbers, or one for each draw. A node with no other at these distances gets itself.
    """
    starts = jnp.asarray(near.starts)[nodes]
    begin = jnp.take_along_axis(starts, jnp.broadcast_to(first, chance.shape), axis=1)
    end = jnp.take_along_axis(starts, jnp.broadcast_to(last + 1, chance.shape), axis=1)
    place = begin + jnp.minimum((chance * (end - begin)).astype(jnp.int32), end - begin - 1)
    place = jnp.where(end > begin, place, 0)
    away = jnp.sum(place[..., None] >= starts[:, None, 1:], axis=-1)
    return jnp.asarray(near.order)[nodes[:, None], place].astype(jnp.int32), away


class NodeBlock(eqx.Module):
    """A layer of the graph transformer: attention to sampled nodes, then a perceptron, each on normalised states."""

    query: Dense
    key: Dense
    value: Dense
    out: Dense
    inner: Dense
    outer: Dense
    norms: tuple[LayerNorm, LayerNorm, LayerNorm]
    bias: Float[Array, " distance"]
    heads: int = eqx.field(static=True)

    def __call__(
        self,
        state: Float[Array, "n width"],
        embedded: Float[Array, "node width"],
        others: Int[Array, "n draw"],
        away: Int[Array, "n draw"],
    ) -> Float[Array, "n width"]:
        around = self.norms[1](embedded)
        queries = self._split(self.query(self.norms[0](state)))
        keys, values = self._split(self.key(around))[others], self._split(self.value(around))[others]
        logits = (
            jnp.einsum("nhd,nshd->nhs", queries, keys) / sqrt(queries.shape[-1]) + self.bias[away][:, None]
        )
        mixed = jnp.einsum("nhs,nshd->nhd", jax.nn.softmax(logits, axis=-1), values)
        state = state + self.out(mixed.reshape(state.shape))
        return state + self.outer(jax.nn.relu(self.inner(self.norms[2](state))))

    def _split(self, x: Float[Array, "n width"]) -> Float[Array, "n head each"]:
        return x.reshape(x.shape[0], self.heads, -1)


class NodeTransformer(eqx.Module):
    """Embeds features, passes through layers, and classifies nodes."""

    embed: Dense
    blocks: tuple[NodeBlock, ...]
    norm: LayerNorm
    head: Dense

    def __call__(
        self,
        features: Float[Array, "node feature"],
        nodes: Int[Array, " n"],
        drawn: list[tuple[Array, Array]],
    ) -> Float[Array, "n label"]:
        """Return the logits of nodes. `drawn` has sampled nodes and their distances, for every layer."""
        embedded = self.embed(features)
        state = embedded[nodes]
        for one, (others, away) in zip(self.blocks, drawn, strict=True):
            state = one(state, embedded, others, away)
        return self.head(self.norm(state))


def node_transformer(
    key: Key, features: int, width: int, heads: int, depth: int, buckets: int, classes: int
) -> NodeTransformer:
    """Draw a graph transformer. Positions start at 0."""
    first, last, *each = jax.random.split(key, 2 + depth)

    def drawn(key: Key) -> NodeBlock:
        q, k, v, o, a, b = (dense(one, width, width) for one in jax.random.split(key, 6))
        norms = (layer_norm(width), layer_norm(width), layer_norm(width))
        return NodeBlock(q, k, v, o, a, b, norms, jnp.zeros(buckets, jnp.float32), heads)

    head = dense(last, width, classes)
    return NodeTransformer(dense(first, features, width), tuple(map(drawn, each)), layer_norm(width), head)


class Edges(NamedTuple):
    """The normalised adjacency as a list of its entries."""

    rows: Int[Array | ndarray, " entry"]
    columns: Int[Array | ndarray, " entry"]
    weights: Float[Array | ndarray, " entry"]


def edges_of(graph: sparse.csr_array) -> Edges:
    """Return the entries of D^-1/2 (A + I) D^-1/2."""
    found = sparse.coo_array(normalised(graph))
    return Edges(found.row.astype(np.int32), found.col.astype(np.int32), found.data.astype(np.float32))


class Convolution(eqx.Module):
    """A graph convolution with a layer for each map."""

    layers: tuple[Dense, ...]

    def __call__(self, features: Float[Array, "node feature"], edges: Edges) -> Float[Array, "node label"]:
        state = features
        for depth, layer in enumerate(self.layers):
            passed = (state @ layer.weight)[edges.columns] * jnp.asarray(edges.weights)[:, None]
            state = jax.ops.segment_sum(passed, jnp.asarray(edges.rows), features.shape[0]) + layer.bias
            state = jax.nn.relu(state) if depth + 1 < len(self.layers) else state
        return state


def convolution(key: Key, features: int, width: int, depth: int, classes: int) -> Convolution:
    """Draw a graph convolution."""
    sizes = (features, *[width] * (depth - 1), classes)
    keys = jax.random.split(key, depth)
    return Convolution(tuple(dense(k, a, b) for k, a, b in zip(keys, sizes[:-1], sizes[1:], strict=True)))
