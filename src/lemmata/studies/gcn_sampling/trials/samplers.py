"""How the graph is sampled in a step: what each sampler multiplies the slots of a field with.

`groups` is the document's sampler (5.6): S_l of the N_l nodes of each group, uniformly without replacement, columns of the
others 0 and theirs scaled by p*_l N_l / S_l; `independent` draws it anew for each layer; `symmetric` scales rows and columns
by roots (D.1.1), `unbiased` is that with every entry divided by its own chance; `effective` is A* itself and `none` A.
FastGCN draws nodes with chances that go as the squared norms of their columns, LADIES as those of the columns within the
rows that are looked at, GraphSAGE keeps some of each node's own neighbours; they scale by the inverse of the chance, so that
the mean is A.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt32

from lemmata.studies.gcn_sampling.data import Graph
from lemmata.studies.gcn_sampling.network.fields import Factors, Field, Layer
from lemmata.trial import Key

Sampler = Literal[
    "groups", "independent", "symmetric", "unbiased", "effective", "none", "fastgcn", "ladies", "graphsage"
]
SCALED = ("groups", "independent", "symmetric", "unbiased", "effective")
"""Samplers whose mean is A*; that of the others is A."""

ROWS = ("symmetric", "unbiased")
"""Samplers that scale rows too."""

ROUNDS = 20


class Sampling(NamedTuple):
    """The groups as a sampler sees them, nodes being numbered group by group: where each begins, N_l, S_l, p*_l."""

    begin: Int[Array, " group"]
    size: Int[Array, " group"]
    samples: Int[Array, " group"]
    scaling: Float[Array, " group"]

    def group(self, nodes: Int[Array, "..."]) -> Int[Array, "..."]:
        """The group of nodes; names past the last node count to the last group."""
        return jnp.sum(nodes[..., None] >= self.begin[1:], axis=-1)

    def scale(self) -> Float[Array, " group"]:
        """`p*_l N_l / S_l`."""
        dtype = self.scaling.dtype  # whole numbers divided by each other are float32, under x64 too
        return self.scaling * (self.size.astype(dtype) / self.samples.astype(dtype))


def sample_counts(sizes: tuple[int, ...], rates: Float[Array, " group"]) -> Int[Array, " group"]:
    """S_l: the rate times N_l to the nearest whole number, at least 1."""
    return jnp.maximum(1, jnp.round(rates * jnp.asarray(sizes))).astype(jnp.int32)


def kept(key: Key, nodes: Int[Array, "..."], sampling: Sampling) -> Bool[Array, "..."]:
    """Whether nodes are among the S_l that are drawn from their group: uniform, without replacement, looked up node by node.

    The places of a group are shuffled by swap-or-not (Hoang, Morris and Rogaway), a permutation that can be evaluated at one
    place at a time; the nodes that come to one of the first S_l places are kept. So the cost is that of the nodes asked for.
    """
    group = sampling.group(nodes)
    size = sampling.size[group].astype(jnp.uint32)
    place = jnp.minimum(nodes - sampling.begin[group], sampling.size[group] - 1).astype(jnp.uint32)
    words = words_of(key, sampling)
    pivots = words[:, 0] % sampling.size.astype(jnp.uint32)

    def swapped(turn: Int[Array, ""] | int, place: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
        partner = pivots[turn][group] + size - place
        partner = jnp.where(partner >= size, partner - size, partner)
        coin = _mixed(jnp.maximum(place, partner) ^ words[turn, 1][group]) & 1
        return jnp.where(coin == 1, partner, place)

    place = jax.lax.fori_loop(0, ROUNDS, swapped, place)
    return place < sampling.samples[group].astype(jnp.uint32)


def words_of(key: Key, sampling: Sampling) -> UInt32[Array, "round 2 group"]:
    """The pivot and the word of every round and group."""
    return jax.random.bits(key, (ROUNDS, 2, sampling.size.shape[0]), jnp.uint32)


def _mixed(word: UInt32[Array, "..."]) -> UInt32[Array, "..."]:
    """A hash in which every bit of the word tells (the finish of MurmurHash3)."""
    word = (word ^ (word >> 16)) * jnp.uint32(0x85EBCA6B)
    word = (word ^ (word >> 13)) * jnp.uint32(0xC2B2AE35)
    return word ^ (word >> 16)


def factors(name: Sampler, key: Key, field: Field, graph: Graph, sampling: Sampling) -> Factors:
    """What a draw of the sampler multiplies the slots of a field with."""
    layers = (field.third, field.second, field.first)
    if name in ("fastgcn", "ladies"):
        return _importance(name, key, layers, graph, sampling)
    if name == "graphsage":
        keys = jax.random.split(key, 3)
        return Factors(*(_own_neighbours(k, one, sampling) for k, one in zip(keys, layers, strict=True)))
    if name == "independent":
        keys = jax.random.split(key, 3)
        return Factors(
            *(
                _by_group(kept(k, one.column, sampling), one, sampling)
                for k, one in zip(keys, layers, strict=True)
            )
        )
    if name == "none":
        return Factors(*(jnp.ones_like(one.weight) for one in layers))
    if name == "effective":
        return Factors(*(sampling.scaling[sampling.group(one.column)] for one in layers))
    if name in ROWS:
        return Factors(*(_by_pair(name, key, one, sampling) for one in layers))
    drawn = kept(key, jnp.concatenate([one.column.ravel() for one in layers]), sampling)
    ends = (layers[0].column.size, layers[0].column.size + layers[1].column.size)
    parts = jnp.split(drawn, ends)
    return Factors(
        *(_by_group(d.reshape(one.column.shape), one, sampling) for d, one in zip(parts, layers, strict=True))
    )


def _by_group(
    drawn: Bool[Array, "upper slot"], layer: Layer, sampling: Sampling
) -> Float[Array, "upper slot"]:
    return drawn.astype(layer.weight.dtype) * sampling.scale()[sampling.group(layer.column)]


def _by_pair(name: Sampler, key: Key, layer: Layer, sampling: Sampling) -> Float[Array, "upper slot"]:
    dtype, owner = layer.weight.dtype, layer.owner[:, None]
    group, own = sampling.group(layer.column), sampling.group(owner)
    there = kept(key, layer.column, sampling) & kept(key, owner, sampling)
    if name == "symmetric":
        return there.astype(dtype) * jnp.sqrt(sampling.scale()[group] * sampling.scale()[own])
    root = jnp.sqrt(sampling.scaling[group] * sampling.scaling[own])
    return there.astype(dtype) * root / pair_chance(owner == layer.column, own, group, sampling).astype(dtype)


def pair_chance(
    same_node: Bool[Array, "..."], one: Int[Array, "..."], other: Int[Array, "..."], sampling: Sampling
) -> Float[Array, "..."]:
    """The chance that two nodes of these groups are both drawn."""
    size, samples = sampling.size.astype(float), sampling.samples.astype(float)
    rate = samples / size
    within = rate * (samples - 1) / jnp.maximum(size - 1, 1)
    apart = jnp.where(one == other, within[one], rate[one] * rate[other])
    return jnp.where(same_node, rate[one], jnp.maximum(apart, 1e-12))


def column_norms(graph: Graph) -> Float[Array, " node"]:
    """`|A_j|^2 / sum_k |A_k|^2` over the columns: FastGCN's chances."""
    squares = jnp.zeros(graph.count.shape[0], graph.weight.dtype).at[graph.column].add(graph.weight**2)
    return squares / jnp.sum(squares)


def _importance(
    name: Sampler, key: Key, layers: tuple[Layer, ...], graph: Graph, sampling: Sampling
) -> Factors:
    """Layer by layer from the top: nodes drawn with replacement by importance, scaled by count / (draws chance)."""
    nodes = graph.count.shape[0]
    draws = jnp.sum(sampling.samples)
    found, seen = [], jnp.ones(nodes, bool)
    for own, layer in zip(jax.random.split(key, 3), layers, strict=True):
        column = jnp.minimum(layer.column, nodes - 1)
        if name == "fastgcn":
            chance, many = column_norms(graph), draws
        else:
            looked = jnp.where(seen[layer.owner][:, None], layer.weight**2, 0)
            squares = jnp.zeros(nodes, layer.weight.dtype).at[column].add(looked)
            chance = squares / jnp.maximum(jnp.sum(squares), 1e-30)
            many = jnp.maximum(1, jnp.round(draws / nodes * jnp.sum(squares > 0))).astype(jnp.int32)
        counts = _draws(own, chance, many)
        factor = counts / (many * jnp.maximum(chance, 1e-30))
        found.append(factor[column].astype(layer.weight.dtype))
        seen = counts > 0
    return Factors(*found)


def _draws(key: Key, chance: Float[Array, " node"], many: Int[Array, ""]) -> Float[Array, " node"]:
    """How often each node comes in `many` draws with replacement."""
    nodes = chance.shape[0]
    ends = jnp.cumsum(chance)
    at = jnp.searchsorted(ends, jax.random.uniform(key, (nodes,), chance.dtype) * ends[-1], side="right")
    counted = (jnp.arange(nodes) < many).astype(chance.dtype)
    return jnp.zeros(nodes, chance.dtype).at[jnp.minimum(at, nodes - 1)].add(counted)


def _own_neighbours(key: Key, layer: Layer, sampling: Sampling) -> Float[Array, "upper slot"]:
    """Each row keeps a share of its own slots (the rate of its group), uniformly without replacement, at least one."""
    there = layer.weight > 0
    chance = jnp.where(there, jax.random.uniform(key, layer.weight.shape), 2)
    rank = jnp.argsort(jnp.argsort(chance, axis=1), axis=1)
    wide = jnp.sum(there, axis=1, keepdims=True)
    group = sampling.group(layer.owner[:, None])
    take = jnp.maximum(1, jnp.round(sampling.samples[group] / sampling.size[group] * wide))
    return jnp.where(rank < take, wide / take, 0).astype(layer.weight.dtype)
