"""Sampled node sets S_n^t. Which nodes may be drawn is a list for every node, made once on the host; a step draws from the
lists without replacement, in fixed shapes."""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, UInt8, UInt32
from numpy import ndarray

from lemmata.kernels import kernel
from lemmata.studies.graph_transformer.data.votes import Votes, average_margin, core_distance
from lemmata.threefry import key_of
from lemmata.trial import Key

Sampler = Literal["near", "both", "graph", "core", "distance", "relevant"]
"""From where the nodes of a set come: "near": distances 1 and 2 together, as in the experiments; "both": half of them from
each; "graph": all nodes; "core": the core distance; "distance": one given distance; "relevant": half of them class-relevant
nodes at the core distance, which takes an oracle, the others near."""

WITHOUT_ITSELF: tuple[Sampler, ...] = ("core", "distance")
"""Samplers whose sets do not hold the node itself."""


class Lists(NamedTuple):
    """For each part of a set the nodes it may hold, first in each row, and how many they are."""

    members: Int[Array, "part node node"]
    count: Int[Array, "part node"]


def masks(graph: Votes, sampler: Sampler, at: int = 1) -> list[Bool[ndarray, "node node"]]:
    """Which nodes each part of a set may hold."""
    away = graph.distance
    near = (away == 1) | (away == 2)
    if sampler == "both":
        return [away == 1, away == 2]
    if sampler == "graph":
        return [away > 0]
    if sampler == "distance":
        return [away == at]
    if sampler in ("core", "relevant"):
        core = away == core_distance(average_margin(graph))
        relevant = core & graph.relevant
        return [core] if sampler == "core" else [relevant, near & ~relevant]
    return [near]


def parts(sampler: Sampler) -> int:
    return 2 if sampler in ("both", "relevant") else 1


def lists(allowed: list[Bool[ndarray, "node node"]]) -> tuple[ndarray, ndarray]:
    """Masks as lists of members and their lengths; a node that has none may hold itself."""
    nodes = len(allowed[0])
    members = np.zeros((len(allowed), nodes, nodes), np.int16)
    count = np.stack([mask.sum(1) for mask in allowed])
    for part, mask in enumerate(allowed):
        members[part, np.arange(nodes) < count[part][:, None]] = np.nonzero(mask)[1]
    alone = count.sum(0) == 0
    members[0, alone, 0] = np.flatnonzero(alone)
    count[0, alone] = 1
    return members, count.astype(np.int32)


def subset(key: Key, count: Int[Array, " row"], size: int) -> Int[Array, "size row"]:
    """Places of a random subset of `size` out of `count`, row by row, all subsets alike; where there are fewer, the places
    0..size-1, of which the first `count` exist.

    Floyd's algorithm: round i picks one of the places 0..last, last = count - size + i, and takes `last` itself where the pick
    was taken before. Its rounds need not follow each other: a pick was taken before if an earlier round picked it too, or if it
    is the `last` of an earlier round whose own pick was taken; the few such chains are followed to their ends.
    """
    count = count.astype(jnp.int32)
    chance = jax.random.uniform(key, (size, count.shape[0]), jnp.float32)
    slot = jnp.arange(size, dtype=jnp.int32)[:, None]
    last = count[None] - size + slot
    pick = jnp.where(last < slot, slot, jnp.minimum((chance * (last + 1)).astype(jnp.int32), last))
    twice = jnp.any((pick[:, None] == pick[None]) & (slot[:, None] > slot[None]), axis=1)
    round_of = pick - (count[None] - size)
    chained = (round_of >= 0) & (round_of < slot)
    earlier = jnp.clip(round_of, 0, size - 1)

    def on(at: tuple[Array, Array]) -> tuple[Array, Array]:
        taken = twice | (chained & jnp.take_along_axis(at[0], earlier, axis=0))
        return taken, jnp.any(taken != at[0])

    taken, _ = jax.lax.while_loop(lambda at: at[1], on, (twice, jnp.asarray(True)))
    return jnp.where(taken, jnp.maximum(last, slot), pick)


def sampled(
    key: Key, held: Lists, nodes: Int[Array, " batch"], size: int, itself: bool
) -> tuple[Int[Array, "batch slot"], Bool[Array, "batch slot"]]:
    """Sets for a batch of nodes: their members, and which slots are filled. The node itself comes first, where it belongs."""
    share = size // held.members.shape[0]
    found, filled = [], []
    if itself:
        found, filled = [nodes[:, None]], [jnp.ones((nodes.shape[0], 1), bool)]
    for part in range(held.members.shape[0]):
        count = held.count[part][nodes]
        place = subset(jax.random.fold_in(key, part), count, share).T
        found.append(held.members[part][nodes[:, None], place].astype(jnp.int32))
        filled.append(jnp.arange(share)[None] < count[:, None])
    return jnp.concatenate(found, axis=1), jnp.concatenate(filled, axis=1)


# Draws of a step -------------------------------------------------------------------------------------------------------


def shuffled(key: Key, nodes: int, first: int | Array) -> Int[Array, " node"]:
    """0..nodes-1, the `first` of them in random order before the others: one sort of random numbers that carry their place in
    their lowest bits is five times faster than sorting places by random numbers. Equal ones stay in the order of the nodes,
    which is a random one itself."""
    low = (nodes - 1).bit_length()
    place = jnp.arange(nodes, dtype=jnp.uint32)
    chance = jax.random.bits(key, (nodes,), jnp.uint32) >> (low + 1) << low
    marked = jnp.where(place < first, chance, jnp.uint32(1 << 31)) | place
    return (jnp.sort(marked) & ((1 << low) - 1)).astype(jnp.int32)


def places_of_shuffled(
    data: UInt32[Array, "2"], first: int | Array, begin: int | Array, nodes: int, size: int
) -> Int[Array, " batch"]:
    """`size` places of `shuffled` nodes from `begin` on, by the data of a key; after the `first` of them it begins anew."""
    return shuffled(key_of(data), nodes, first)[(begin + jnp.arange(size)) % first]


@kernel("graph_sampling.cc", plain=places_of_shuffled)
def places_of_batch(data: Array, first: int | Array, begin: int | Array, nodes: int, size: int) -> Array:
    """`places_of_shuffled`, sorting no more than it has to."""
    first, begin = (jnp.asarray(number, jnp.int32) for number in (first, begin))
    return places_of_batch.call("graph_places", data, first, begin, nodes=nodes, size=size)


Drawn = tuple[Int[Array, "batch slot"], Int[Array, "batch slot"], Bool[Array, "batch slot"]]
"""Members of sets, their distances, and which slots are filled."""


def sampled_plainly(
    data: UInt32[Array, "2"],
    held: Lists,
    distance: UInt8[Array, "node node"],
    nodes: Int[Array, " batch"],
    size: int,
    itself: bool,
) -> Drawn:
    """`sampled` sets by the data of a key, and how far their members are."""
    members, filled = sampled(key_of(data), held, nodes, size, itself)
    return members, distance[nodes[:, None], members].astype(jnp.int32), filled


@kernel("graph_sampling.cc", plain=sampled_plainly)
def sampled_with_distances(
    data: Array, held: Lists, distance: Array, nodes: Array, size: int, itself: bool
) -> Drawn:
    """`sampled_plainly`."""
    parts = held.members.shape[0]
    slots = size // parts * parts + itself
    given = data, *held, distance, nodes
    return sampled_with_distances.call("graph_sets", *given, itself=itself, slot=slots)


def sampled_confusion(
    rng: np.random.Generator,
    graph: Votes,
    core: int,
    members: ndarray,
    count: ndarray,
    size: int,
    asked: int = 200,
) -> float:
    """eps_S of sampled sets (Definition 3.4.3): the mean over non-discriminative nodes, the first `asked` of them, of the share
    of confusion nodes among the discriminative ones at the core distance, each with a set of its own."""
    found = []
    for node in np.flatnonzero(~graph.discriminative)[:asked]:
        chosen = [
            rng.permutation(some[node, : many[node]])[: size // len(count)]
            for some, many in zip(members, count, strict=True)
        ]
        there = np.concatenate(chosen)
        there = graph.pattern[there[graph.distance[node, there] == core]]
        own = 0 if graph.label[node] > 0 else 1
        good, bad = np.sum(there == own), np.sum(there == 1 - own)
        found += [bad / (good + bad)] if good + bad else []
    return float(np.mean(found)) if found else 0.0
