"""The network where a batch looks: its receptive field, in fixed shapes, so that a step costs what the field costs.

The field of a batch is found from the top: the batch, the nodes that its rows of A name, the nodes that theirs name. Shapes
must be known beforehand, so that there are a few rooms, and `jax.lax.switch` takes the smallest that holds the field; the
largest holds all.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lemmata.studies.gcn_sampling.data import Graph
from lemmata.studies.gcn_sampling.network import Weights
from lemmata.trial import Key

Found = TypeVar("Found")


class Room(NamedTuple):
    """How many nodes there is room for at most: `middle` just below the batch, `lower` below those."""

    middle: int
    lower: int


class Layer(NamedTuple):
    """One aggregation: for every upper node (`owner`, by name) the columns of its row (by name), their weights, and their
    places among the lower nodes. Empty slots have the weight 0; their place says nothing."""

    owner: Int[Array, " upper"]
    column: Int[Array, "upper slot"]
    weight: Float[Array, "upper slot"]
    place: Int[Array, "upper slot"]


class Field(NamedTuple):
    """What a batch sees, from the top (`third`: rows are the batch) to the bottom (`first`: columns are features), and the
    nodes between; names past the last one are N."""

    third: Layer
    middle: Int[Array, " middle"]
    second: Layer
    lower: Int[Array, " lower"]
    first: Layer


ROOMS = ((12, 64), (20, 128), (64, 512))
"""Sizes to be tried before the largest: five nodes of few neighbours, with a node of many among them, with several."""


def rooms_for(batch: int, widest: int, nodes: int) -> tuple[Room, ...]:
    """Rooms to be tried one after another, for rows of at most `widest` slots."""
    middle = min(batch * widest, nodes)
    last = Room(middle, min(middle * widest, nodes))
    tried = (Room(most, min(below, last.lower)) for most, below in ROOMS)
    return (*(room for room in tried if 2 * room.middle * room.lower < last.middle * last.lower), last)


def in_field(
    graph: Graph,
    batch: Int[Array, " top"],
    widest: int,
    rooms: tuple[Room, ...],
    use: Callable[[Field], Found],
) -> Found:
    """`use(field)` in the smallest room that holds the field of the batch."""
    nodes = graph.count.shape[0]
    third, middle = _with_places(_rows(graph, batch, widest), rooms[-1].middle, nodes)
    found = jnp.sum(middle < nodes)
    below = jnp.sum(jnp.where(middle < nodes, graph.count[jnp.minimum(middle, nodes - 1)], 0))
    below = jnp.minimum(below, rooms[-1].lower)
    fits = [(found <= room.middle) & (below <= room.lower) for room in rooms[:-1]]

    def used(room: Room) -> Found:
        near = middle[: room.middle]
        second, lower = _with_places(_rows(graph, near, widest), room.lower, nodes)
        return use(Field(third, near, second, lower, _rows(graph, lower, widest)))

    if len(rooms) == 1:
        return used(rooms[0])
    return jax.lax.switch(
        jnp.argmax(jnp.asarray([*fits, True])), [lambda room=room: used(room) for room in rooms]
    )


def whole_field(graph: Graph, batch: Int[Array, " top"], widest: int) -> Field:
    """The field that leaves nothing out: all nodes in both layers below the batch. For comparison."""
    every = jnp.arange(graph.count.shape[0], dtype=jnp.int32)
    third, full = _rows(graph, batch, widest), _rows(graph, every, widest)
    return Field(third, every, full, every, full)


def _rows(graph: Graph, upper: Int[Array, " upper"], widest: int) -> Layer:
    """The rows of some nodes, filled up to the widest; nodes past the last have none. A column's place is its name."""
    nodes = graph.count.shape[0]
    known = jnp.minimum(upper, nodes - 1)
    slot = jnp.arange(widest, dtype=jnp.int32)
    there = (slot < graph.count[known][:, None]) & (upper < nodes)[:, None]
    at = jnp.where(there, graph.start[known][:, None] + slot, 0)
    column = jnp.where(there, graph.column[at], nodes)
    return Layer(known, column, jnp.where(there, graph.weight[at], 0), column)


def _with_places(layer: Layer, room: int, nodes: int) -> tuple[Layer, Int[Array, " room"]]:
    """A layer whose columns have places among their different names, and these names in order, then N. Sorting numbers alone is
    cheap, sorting places with them is not."""
    ordered = jnp.sort(layer.column.ravel())
    again = jnp.concatenate([jnp.zeros(1, bool), ordered[1:] == ordered[:-1]])
    lower = jnp.sort(jnp.where(again, nodes, ordered))[:room]
    place = jnp.searchsorted(lower, layer.column, method="scan_unrolled").astype(jnp.int32)
    return layer._replace(place=place), lower


class Factors(NamedTuple):
    """What sampling multiplies the slots of a field with, layer by layer."""

    third: Float[Array, "top slot"]
    second: Float[Array, "middle slot"]
    first: Float[Array, "lower slot"]


def field_outputs(
    weights: Weights,
    field: Field,
    factors: Factors,
    features: Float[Array, "node feature"],
    dropout: Float[Array, ""] | float = 0.0,
    key: Key | None = None,
) -> Float[Array, "top output"]:
    """F of the batch with sampled matrices; with a key, entries of the hidden layers are dropped and the others scaled up."""
    given = features[jnp.minimum(field.first.column, features.shape[0] - 1)]
    below = jnp.einsum("us,usf->uf", field.first.weight * factors.first, given)
    keys = (None, None) if key is None else jax.random.split(key)
    first = hidden(below @ weights.w1 + weights.bias1, dropout, keys[0])
    middle = matrix(field.second, factors.second, field.lower.shape[0]) @ first
    second = hidden(middle @ weights.w2 + weights.bias2, dropout, keys[1])
    return matrix(field.third, factors.third, field.middle.shape[0]) @ (second @ weights.readout)


def matrix(layer: Layer, factors: Float[Array, "upper slot"], lower: int) -> Float[Array, "upper lower"]:
    """An aggregation as a small dense matrix."""
    upper = layer.owner.shape[0]
    empty = jnp.zeros((upper, lower), layer.weight.dtype)
    return empty.at[jnp.arange(upper)[:, None], layer.place].add(layer.weight * factors, mode="drop")


def hidden(
    before: Float[Array, "node hidden"], share: Float[Array, ""] | float, key: Key | None
) -> Float[Array, "node hidden"]:
    """ReLU, and with a key dropout after it: a share of the entries is 0, the others are scaled up."""
    if key is None:
        return jax.nn.relu(before)
    bits = jax.random.bits(key, before.shape, jnp.uint16)
    kept = bits >= jnp.round(jnp.asarray(share) * 65536).astype(jnp.uint16)
    return _thinned(before, 1 - jnp.asarray(share, before.dtype), kept)


@jax.custom_jvp
def _thinned(before: Array, share: Array, kept: Array) -> Array:
    return jnp.where(kept, jax.nn.relu(before) / share, 0)


@_thinned.defjvp
def _(given: tuple[Array, Array, Array], moved: tuple[Array, Array, Array]) -> tuple[Array, Array]:
    """What is above 0 has moved; to look at the bits again would be to draw them again."""
    found = _thinned(*given)
    return found, jnp.where(found > 0, moved[0] / given[1], 0)
