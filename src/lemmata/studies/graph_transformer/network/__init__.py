"""The graph transformer of one layer, and its gradient by hand.

$$F(x_n) = a^\\top \\mathrm{ReLU}\\Big(W_O W_V \\sum_{s \\in S^n} \\alpha_{sn} x_s\\Big), \\quad
\\alpha_{sn} = \\mathrm{softmax}_s\\big((W_K x_s)^\\top W_Q x_n + b_{d(s,n)}\\big) \\qquad (3.1)$$

d(s, n) is the shortest-path distance, Z - 1 standing for that and more (3.2). A set may hold the same token several times:
`many` is how often, so that a set of patterns at distances stands for all nodes of a graph without feature noise.
"""

import math
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.errors import require
from lemmata.kernels import kernel
from lemmata.parts.starts import carrier, signs, turned
from lemmata.trial import Key, fixed

Kind = Literal["transformer", "no-position", "frozen", "gcn"]
"""What is trained: all; all but b = 0; W_O and W_V with attention at its start (the reading of the proof of Theorem 3.4.6);
W_O and W_V with uniform attention, W_K = W_Q = 0 (Theorem 3.4.6 as printed)."""


class Parameters(NamedTuple):
    """What training may move: W_Q, W_K, W_V, W_O (transposed: neurons contiguous) and b."""

    query: Float[Array, "key dim"]
    key: Float[Array, "key dim"]
    value: Float[Array, "value dim"]
    hidden: Float[Array, "value neuron"]
    bias: Float[Array, " bucket"]


class Seen(NamedTuple):
    """What the nodes of a batch look at: tokens, their distances, and how often each is there (0: an empty slot)."""

    tokens: Float[Array, "batch slot dim"]
    distance: Int[Array, "batch slot"]
    many: Float[Array, "batch slot"]


class Sets(NamedTuple):
    """The same, where tokens are rows of one table: their names, their distances, and which slots are filled."""

    table: Float[Array, "node dim"]
    members: Int[Array, "batch slot"]
    distance: Int[Array, "batch slot"]
    filled: Bool[Array, "batch slot"]

    @property
    def seen(self) -> Seen:
        return Seen(self.table[self.members], self.distance, self.filled.astype(self.table.dtype))


def attention(
    weights: Parameters, asking: Float[Array, "batch dim"], seen: Seen
) -> Float[Array, "batch slot"]:
    """alpha, the weight of each slot (of all its copies together)."""
    pulled = asking @ (weights.query.T @ weights.key)
    logits = _along(seen.tokens, pulled) + _at(weights.bias, seen.distance)
    logits = jnp.where(
        seen.many > 0, logits, -jnp.inf
    )  # e^logit of an empty slot could overflow: 0 inf is NaN
    raised = seen.many * jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))
    return raised / jnp.sum(raised, axis=1, keepdims=True)


def _at(bias: Array, distance: Array) -> Array:
    """b at every distance: a sum over few buckets is faster than a gather."""
    return sum(
        (jnp.where(distance == z, bias[z], 0) for z in range(1, bias.shape[0])),
        jnp.where(distance == 0, bias[0], 0),
    )


def _along(
    tokens: Float[Array, "batch slot dim"], way: Float[Array, "batch dim"]
) -> Float[Array, "batch slot"]:
    """x_s . w, slot by slot: a product of matrices, since a sum of products would read the tokens element by element."""
    return jnp.einsum("nsd,nd->ns", tokens, way)


def _mixed(
    weight: Float[Array, "batch slot"], tokens: Float[Array, "batch slot dim"]
) -> Float[Array, "batch dim"]:
    """The sum over s of w_s x_s."""
    return jnp.einsum("ns,nsd->nd", weight, tokens)


def attended(weights: Parameters, asking: Float[Array, "batch dim"], seen: Seen) -> Float[Array, "batch dim"]:
    """The attended tokens, sum over s of alpha x_s."""
    return _mixed(attention(weights, asking, seen), seen.tokens)


def vote(
    weights: Parameters, signs: Float[Array, " neuron"], mixed: Float[Array, "batch dim"]
) -> Float[Array, " batch"]:
    """a . ReLU(W_O W_V x) of attended tokens."""
    return jax.nn.relu(mixed @ weights.value.T @ weights.hidden) @ signs


def outputs(
    weights: Parameters, signs: Float[Array, " neuron"], asking: Float[Array, "batch dim"], seen: Seen
) -> Float[Array, " batch"]:
    """F(x_n) for a batch of nodes."""
    return vote(weights, signs, attended(weights, asking, seen))


def hinge(
    output: Float[Array, " batch"], label: Array, margin: float | Array = 1.0
) -> Float[Array, " batch"]:
    """max(margin - y F, 0); the document's margin is 1."""
    return jax.nn.relu(margin - label * output)


def slope(
    weights: Parameters,
    signs: Float[Array, " neuron"],
    asking: Float[Array, "batch dim"],
    seen: Seen,
    label: Array,
    margin: float | Array = 1.0,
) -> tuple[Float[Array, ""], Parameters]:
    """The mean hinge loss of a batch and its gradient, each large array made once.

    With the open gates A = a * 1[W_O V > 0], v = W_O^T A and c_s = v . W_V x_s: dF/dW_O = A V^T, dF/dW_V = v xbar^T,
    e_s = alpha_s (c_s - sum_r alpha_r c_r), h = sum_s e_s x_s, dF/dW_Q = W_K h x_n^T, dF/dW_K = W_Q x_n h^T,
    dF/db_z = sum over s at distance z of e_s (corrected from B.76, B.117, B.150, B.166, B.202).
    """
    size = asking.shape[0]
    alpha = attention(weights, asking, seen)
    mixed = _mixed(alpha, seen.tokens)
    value = mixed @ weights.value.T
    before = value @ weights.hidden
    gates = jnp.where(before > 0, signs, 0)
    output = jax.nn.relu(before) @ signs
    losses = hinge(output, label, margin)
    weight = jnp.where(losses > 0, -label, 0).astype(value.dtype)[:, None] / size
    back = gates @ weights.hidden.T
    pulled = back @ weights.value
    told = _along(seen.tokens, pulled) - jnp.sum(pulled * mixed, axis=1, keepdims=True)
    moved = weight * alpha * told
    cross = _mixed(moved, seen.tokens).T @ asking
    at = jnp.arange(weights.bias.shape[0])[:, None] == seen.distance.reshape(-1)
    return jnp.mean(losses), Parameters(
        query=weights.key @ cross,
        key=weights.query @ cross.T,
        value=(weight * back).T @ mixed,
        hidden=value.T @ (weight * gates),
        bias=at.astype(moved.dtype) @ moved.reshape(-1),
    )


TOKEN = 32
"""Tokens of so many bytes, or several times as many, the kernel takes as they are."""


def slope_of_gathered(
    weights: Parameters,
    signs: Float[Array, " neuron"],
    asking: Int[Array, " batch"],
    sets: Sets,
    label: Int[Array, " node"],
    margin: float | Array = 1.0,
) -> tuple[Float[Array, ""], Parameters]:
    """`slope` on sets of rows of a table, for nodes that are rows of it, too; labels are those of all rows."""
    return slope(weights, signs, sets.table[asking], sets.seen, label[asking], margin)


@kernel("graph_slope.cc", plain=slope_of_gathered)
def slope_of_sets(
    weights: Parameters, signs: Array, asking: Array, sets: Sets, label: Array, margin: float | Array = 1.0
) -> tuple[Float[Array, ""], Parameters]:
    """`slope_of_gathered`. Tokens are filled up here, which is done once for all steps of a loop."""
    table = jnp.pad(sets.table, ((0, 0), (0, -sets.table.shape[1] % (TOKEN // signs.dtype.itemsize))))
    loss, *gradient = slope_of_sets.call(
        "graph_slope", *weights, signs, table, asking, sets.members, sets.distance, sets.filled, label, margin
    )
    return loss, Parameters(*gradient)


# Extensions (appendix B.5) ---------------------------------------------------------------------------------------------


def graph_output(
    weights: Parameters,
    signs: Float[Array, " neuron"],
    features: Float[Array, "node dim"],
    distance: Int[Array, "node node"],
    read: Literal["sum", "mean"] = "mean",
) -> Float[Array, ""]:
    """A whole graph's output: the sum or mean over its nodes of F(x_n), each looking at all of them (B.5.4)."""
    shape = (*distance.shape, features.shape[1])
    seen = Seen(jnp.broadcast_to(features, shape), distance, jnp.ones(distance.shape, features.dtype))
    each = outputs(weights, signs, features, seen)
    return jnp.sum(each) if read == "sum" else jnp.mean(each)


def pair_hinge(
    outputs: Float[Array, "batch 2"], label: Float[Array, "batch 2"], margin: float | Array = 1.0
) -> Float[Array, " batch"]:
    """max(margin - y . F, 0) of four classes as pairs of signs, F the outputs of two networks (B.5.5)."""
    return jax.nn.relu(margin - jnp.sum(outputs * label, axis=1))


class Network(eqx.Module):
    """Widths and initial errors of the network, and what of it is trained.

    `start`: "assumption" carries pattern j to an orthonormal image moved by delta (keys, queries) or sigma (values) in a random
    direction (Assumption B.2.1); "orthonormal" without error; "printed" with the scales of section 3.5.1, which break the
    assumption. `queries`: "shared" takes r_j = q_j for all patterns, so that non-discriminative nodes attend to their own
    pattern at the start; "distinct" only r_1 = q_1 and r_2 = q_2, which is all that the assumption says.
    """

    query_key_error: float = 0.2
    value_error: float = 0.1
    hidden_std: float = 0.01
    self_bias: float = 0.0
    kind: Kind = fixed(default="transformer")
    start: Literal["assumption", "orthonormal", "printed"] = fixed(default="assumption")
    queries: Literal["shared", "distinct"] = fixed(default="shared")
    train_self_bias: bool = fixed(default=True)
    neurons: int = fixed(default=400)
    width: int = fixed(default=20)

    def __check_init__(self):
        require(self.query_key_error >= 0 and self.value_error >= 0, "initial errors must not be negative.")
        require(self.hidden_std > 0, f"neurons start with a positive spread, not {self.hidden_std}.")
        require(self.neurons >= 2, f"a vote needs at least two neurons, not {self.neurons}.")

    def draw(
        self, key: Key, base: Float[Array, "pattern dim"], buckets: int, feature_noise: float | Array
    ) -> tuple[Parameters, Float[Array, " neuron"]]:
        """Initial weights and the frozen vote."""
        hidden, sign = jax.random.split(key)
        dtype, (kinds, dim), width = base.dtype, base.shape, self.width
        sizes = {
            "query": (kinds, width),
            "key": (kinds, width),
            "value": (kinds, width),
            "hidden": (width, self.neurons),
        }
        sizes |= {"frame": (width, width), "ring": (dim - 2, dim - 2)}
        normal = _normals(hidden, sizes, dtype)
        plain = jnp.eye(width, dim, dtype=dtype)
        asks = plain if self.queries == "shared" else plain @ _turned_beyond(base, normal["ring"])
        error = 0.0 if self.start == "orthonormal" else 1.0
        way = "literal" if self.start == "printed" else "perturbed"

        def carried(name: str, start: Array, size: float | Array) -> Array:
            return carrier(way, start, error * size, base, normal[name], feature_noise)

        delta, sigma = self.query_key_error, self.value_error
        weights = Parameters(
            carried("query", asks, delta),
            carried("key", plain, delta),
            carried("value", turned(normal["frame"], dim), sigma),
            self.hidden_std * normal["hidden"],
            jnp.zeros(buckets, dtype).at[0].set(self.self_bias),
        )
        if self.kind == "gcn":
            none = jnp.zeros_like(weights.query)
            weights = weights._replace(query=none, key=none, bias=jnp.zeros(buckets, dtype))
        return weights, signs(sign, (self.neurons,), self.neurons**-0.5, dtype)

    def check_own(self, weights: Parameters | None) -> None:
        """Refuse weights that the kind of network does not have."""
        if weights is None:
            return
        none = {"gcn": ("query", "key", "bias"), "no-position": ("bias",)}.get(self.kind, ())
        for name in none:
            require(
                not np.any(getattr(weights, name)),
                f"network.kind={self.kind} has no {name}: weights.{name} takes zeros.",
            )

    def trained(self, gradient: Parameters) -> Parameters:
        """The gradient of what is trained; zero elsewhere."""
        if self.kind in ("gcn", "frozen"):
            none = jnp.zeros_like(gradient.query)
            gradient = gradient._replace(query=none, key=none)
        if self.kind != "transformer":
            return gradient._replace(bias=jnp.zeros_like(gradient.bias))
        return gradient if self.train_self_bias else gradient._replace(bias=gradient.bias.at[0].set(0))


def _normals(key: Key, sizes: Mapping[str, tuple[int, ...]], dtype: Any) -> dict[str, Array]:
    """Standard normal arrays cut from one row: one draw compiles faster than many."""
    row = jax.random.normal(key, (sum(math.prod(shape) for shape in sizes.values()),), dtype)
    ends = list(accumulate(math.prod(shape) for shape in sizes.values()))
    return {
        name: row[end - math.prod(shape) : end].reshape(shape)
        for (name, shape), end in zip(sizes.items(), ends, strict=True)
    }


def _turned_beyond(
    base: Float[Array, "pattern dim"], normal: Float[Array, "rest rest"]
) -> Float[Array, "dim dim"]:
    """A random rotation that leaves the first two patterns alone."""
    own = base[:2]
    inside = own.T @ own
    rest = jnp.linalg.svd(jnp.eye(base.shape[1], dtype=base.dtype) - inside)[0][:, : normal.shape[0]]
    return inside + rest @ jnp.linalg.qr(normal)[0] @ rest.T
