"""Softmax attention, a ReLU perceptron on every attended token, and a frozen vote. Derivatives compute each large array once.

$$u_l = a_{(l)}^\\top \\mathrm{ReLU}(W_O W_V x'_l), \\quad
x'_l = \\sum_s x_s \\,\\mathrm{softmax}_s(x_s^\\top W_K^\\top W_Q z_l + b_{ls})$$

The querying rows `z_l` and the tokens `x_s` may be the same (an image), or one query and its context (a prompt), or a node and
its neighbours, with a bias `b` for their distance. The values of several heads are concatenated as input of one layer of
neurons. Arrays have tokens as rows. `hidden` is W_O transposed, so that neurons are contiguous in memory."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

Bias = Float[Array, "*head_rows tokens"] | float
"""What is added to the logits: a number, one row of tokens, rows by tokens, or head by rows by tokens."""


class Weights(NamedTuple):
    """The trained weights: W_Q, W_K, W_V of every head, and W_O (transposed, heads concatenated along `features`)."""

    query: Float[Array, "head key dim"]
    key: Float[Array, "head key dim"]
    value: Float[Array, "head value dim"]
    hidden: Float[Array, "features neuron"]


class Folded(NamedTuple):
    """The products of weights on which the output depends. Gradients are accumulated in this form.

    Keys and queries enter only through W_Q^T W_K, values and neurons only through W_O W_V. With x'_l the attended tokens,
    W_O c_l = (W_O W_V) x'_l. So a sample costs four products with its attention map and three with its token-by-neuron array.
    The work for the separate weights W_Q, W_K, W_V, W_O is done once a batch.
    """

    product: Float[Array, "head dim dim"]
    hidden: Float[Array, "features neuron"]


def fold(weights: Weights, skip: bool = False) -> Folded:
    """Return the products of weights on which the output depends.

    With a skip connection the token itself is one more feature. This needs one head, and values as long as tokens."""
    heads, neurons = weights.query.shape[0], weights.hidden.shape[1]
    product = jnp.einsum("hkd,hke->hde", weights.query, weights.key)
    per_head = weights.hidden.reshape(heads, -1, neurons)
    hidden = jnp.einsum("hvd,hvm->hdm", weights.value, per_head).reshape(-1, neurons)
    return Folded(product, jnp.concatenate([hidden, weights.hidden]) if skip else hidden)


def logits(
    folded: Folded, askers: Float[Array, "rows dim"], tokens: Float[Array, "tokens dim"], bias: Bias = 0.0
) -> list[Float[Array, "rows tokens"]]:
    """Return z_l^T W_Q^T W_K x_s + b_ls for each head."""
    bias = jnp.asarray(bias)
    own = [bias[head] if bias.ndim == 3 else bias for head in range(folded.product.shape[0])]
    return [(askers @ part) @ tokens.T + b for part, b in zip(folded.product, own, strict=True)]


def attention(
    folded: Folded, askers: Float[Array, "rows dim"], tokens: Float[Array, "tokens dim"], bias: Bias = 0.0
) -> Float[Array, "head rows tokens"]:
    """Return the attention maps: entry [h, l, s] is the attention of row l on token s in head h; rows sum to one."""
    return jax.nn.softmax(jnp.stack(logits(folded, askers, tokens, bias)), axis=-1)


def features(
    folded: Folded,
    askers: Float[Array, "rows dim"],
    tokens: Float[Array, "tokens dim"],
    bias: Bias = 0.0,
    skip: bool = False,
) -> Float[Array, "rows features"]:
    """Return the input of `folded.hidden`: the attended tokens of all heads and, with a skip connection, the querying token."""
    seen = [attended(one, tokens) for one in logits(folded, askers, tokens, bias)] + (
        [askers] if skip else []
    )
    return seen[0] if len(seen) == 1 else jnp.concatenate(seen, axis=-1)


T = TypeVar("T")


def batch_slope(
    fold: Callable[[T], Any], loss: Callable[[Any, Any], Float[Array, ""]], weights: T, batch: PyTree
) -> tuple[Float[Array, ""], T]:
    """Return the mean of `loss(fold(weights), sample)` over a batch and its gradient in the weights.

    The sum goes sample by sample, so that one token-by-neuron array at a time stays in the cache. `fold` is differentiated once
    a batch."""
    folded, unfold = jax.vjp(fold, weights)

    def add(total: tuple[Array, Any], sample: Any) -> tuple[tuple[Array, Any], None]:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(folded, sample)), None

    dtype = jax.tree.leaves(folded)[0].dtype
    nothing = jnp.zeros((), dtype), jax.tree.map(jnp.zeros_like, folded)
    (total, gradient), _ = jax.lax.scan(add, nothing, batch)
    size = jax.tree.leaves(batch)[0].shape[0]
    return total / size, jax.tree.map(lambda part: part / size, unfold(gradient)[0])


# The two layers, each with a derivative that passes its largest array once -------------------------------------------------


@jax.custom_vjp
def attended(
    logits: Float[Array, "rows tokens"], tokens: Float[Array, "tokens dim"]
) -> Float[Array, "rows dim"]:
    """Return x'_l = sum_s A_ls x_s with A = softmax(logits) along each row.

    The derivative of the softmax needs sum_s A_ls dA_ls, which is x'_l . dx'_l: a sum over the dimension instead of one
    over all tokens.
    """
    return _attended_forward(logits, tokens)[0]


def _attended_forward(logits: Array, tokens: Array) -> tuple[Array, tuple[Array, Array, Array]]:
    attention = jax.nn.softmax(logits, axis=-1)
    mixed = attention @ tokens
    return mixed, (attention, mixed, tokens)


def _attended_backward(saved: tuple[Array, Array, Array], cotangent: Array) -> tuple[Array, Array]:
    attention, mixed, tokens = saved
    common = jnp.sum(mixed * cotangent, axis=-1, keepdims=True)
    return attention * (cotangent @ tokens.T - common), attention.T @ cotangent


attended.defvjp(_attended_forward, _attended_backward)


@jax.custom_vjp
def perceptron(
    features: Float[Array, "rows features"],
    hidden: Float[Array, "features neuron"],
    vote: Float[Array, "place neuron"],
) -> Float[Array, " rows"]:
    """Return a_(l) . ReLU(W f_l) for every row l with features f_l. `vote` holds a_(l) for each row, or one row for all.

    Let g_l = a_(l) * 1[W f_l > 0] be the open gates and u_l = W^T g_l. The output is u_l . f_l, its gradient in f_l is u_l, and
    in W it is g_l f_l^T. So one token-by-neuron array serves the value and both gradients. Automatic differentiation of the
    ReLU makes three such arrays, which do not fit into the cache. The vote is frozen and has no derivative."""
    return _perceptron_forward(features, hidden, vote)[0]


VECTOR = 16
"""Single-precision numbers in a vector register. Products with fewer columns leave parts of it idle."""


def _perceptron_forward(
    features: Array, hidden: Array, vote: Array
) -> tuple[Array, tuple[Array, Array, Array]]:
    count = hidden.shape[0]
    gates = jnp.where(_preactivation(features, hidden) > 0, vote, 0)
    pull = (gates @ jnp.pad(hidden, ((0, -count % VECTOR), (0, 0))).T)[:, :count]
    return jnp.sum(pull * features, axis=-1), (gates, pull, features)


def _preactivation(features: Array, hidden: Array) -> Array:
    """Return W f_l. A short sum is written out, so that XLA computes the gates in the same loop and does not store it."""
    if hidden.shape[0] > VECTOR:
        return features @ hidden
    return sum(
        (features[:, j, None] * hidden[j] for j in range(1, hidden.shape[0])),
        features[:, 0, None] * hidden[0],
    )


def _perceptron_backward(saved: tuple[Array, Array, Array], cotangent: Array) -> tuple[Array, Array, None]:
    gates, pull, features = saved
    weight = cotangent[:, None]
    return weight * pull, (weight * features).T @ gates, None


perceptron.defvjp(_perceptron_forward, _perceptron_backward)
