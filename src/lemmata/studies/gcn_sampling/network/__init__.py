"""The three-layer graph convolution (5.4), `F_A = A relu(A relu(A X W + B_1) V + B_2) C`, on the whole graph; its starts; its
pseudo-networks, in which each ReLU is a fixed 0-1 mask.

X are the features, A the normalised adjacency (scaled by columns, and for symmetric sampling by rows). Biases are one row for
all nodes. `fields` has the same network where a batch looks and nowhere else.
"""

from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.studies.gcn_sampling.data import Graph, aggregate
from lemmata.trial import Key

Scale = Float[Array, " node"] | Float[Array, ""] | float


class Weights(NamedTuple):
    """`w1` (W), `w2` (V), `readout` (C), `bias1`, `bias2` (a row of B_1, B_2)."""

    w1: Float[Array, "feature hidden"]
    w2: Float[Array, "hidden second"]
    readout: Float[Array, "second output"]
    bias1: Float[Array, " hidden"]
    bias2: Float[Array, " second"]


def start(
    key: Key, features: int, width: int, outputs: int, dtype: jnp.dtype, conventional: bool = False
) -> Weights:
    """The document's start: W and b_1 of variance 1/m_1, V and b_2 of variance 1/m_2, C of variance 1. A conventional one: He's
    variances 2/inputs, C of variance 1/m, no biases."""
    keys = jax.random.split(key, 5)
    shapes = ((features, width), (width, width), (width, outputs), (width,), (width,))
    spread = (
        (2 / features, 2 / width, 1 / width, 0.0, 0.0)
        if conventional
        else (1 / width, 1 / width, 1.0, 1 / width, 1 / width)
    )
    drawn = [v**0.5 * jax.random.normal(k, s, dtype) for k, s, v in zip(keys, shapes, spread, strict=True)]
    return Weights(*drawn)


def outputs(
    weights: Weights,
    graph: Graph,
    features: Float[Array, "node feature"],
    column: Scale = 1.0,
    row: Scale = 1.0,
) -> Float[Array, "node output"]:
    """F of every node with the matrix `diag(row) A diag(column)`."""
    first = jax.nn.relu(aggregate(graph, features, column, row) @ weights.w1 + weights.bias1)
    second = jax.nn.relu(aggregate(graph, first, column, row) @ weights.w2 + weights.bias2)
    return aggregate(graph, second @ weights.readout, column, row)


def rescaled(weights: Weights, c: float) -> Weights:
    """The weights with which the matrix cA does what A does: `F_{cA}(W/c, V/c^2; B_1, B_2/c) = F_A(W, V; B_1, B_2)`."""
    return weights._replace(w1=weights.w1 / c, w2=weights.w2 / c**2, bias2=weights.bias2 / c)


class Masks(NamedTuple):
    """Which neurons are on at each node: `first` (D_w), `second` (D_v)."""

    first: Float[Array, "node hidden"]
    second: Float[Array, "node second"]


def masks(
    weights: Weights, graph: Graph, features: Float[Array, "node feature"], column: Scale = 1.0
) -> Masks:
    """The signs of the network at these weights."""
    inner = aggregate(graph, features, column) @ weights.w1 + weights.bias1
    outer = aggregate(graph, jax.nn.relu(inner), column) @ weights.w2 + weights.bias2
    return Masks((inner > 0).astype(inner.dtype), (outer > 0).astype(inner.dtype))


def pseudo_outputs(
    weights: Weights,
    on: Masks,
    graph: Graph,
    features: Float[Array, "node feature"],
    column: Scale = 1.0,
    biases: Literal["both", "first", "none"] = "both",
) -> Float[Array, "node output"]:
    """The pseudo-network g (`biases="both"`), g^(b) without B_2 (`first`), g^(b,b) without B_1 and B_2 (`none`)."""
    inner = aggregate(graph, features, column) @ weights.w1 + (weights.bias1 if biases != "none" else 0)
    outer = aggregate(graph, inner * on.first, column) @ weights.w2 + (
        weights.bias2 if biases == "both" else 0
    )
    return aggregate(graph, (outer * on.second) @ weights.readout, column)
