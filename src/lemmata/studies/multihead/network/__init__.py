"""Multi-head attention with merged key-query weights and a linear decoder, and its starts.

    Phi(X; W, U)  = <U, softmax(X W X^T) X>                      one head, eq. (1)
    Phi~(X; W~, U~) = H^-c sum_h Phi(X; W_h, U_h)                all heads, eq. (2) with c = 1/2

Heads are held in groups of equal ones (`lemmata.reduce.heads`), so the number of heads is a plain number. Derivatives in closed
form are in `derivatives`.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import logistic_loss
from lemmata.errors import require
from lemmata.reduce import heads as grouped
from lemmata.reduce.heads import Members
from lemmata.studies.multihead.data import Samples
from lemmata.trial import Key, fixed

Decoder = Literal["full", "pooling", "last"]
Start = Literal["zero", "signs", "interval", "random"]
Tokens = Float[Array, "token dim"]
Square = Float[Array, "dim dim"]


class Heads(NamedTuple):
    """The weights, one row a group of equal heads: decoders `U_h` and attention weights `W_h`.

    A pooling or last-token decoder is one vector a head, `(group, dim)`.
    """

    decoder: Float[Array, "group token dim"] | Float[Array, "group dim"]
    attention: Float[Array, "group dim dim"]


class Network(eqx.Module):
    """How many heads, how they are scaled and decoded, and how they start.

    `start`: all heads zero; or the randomised first step of the two-phase scheme with steps of random sign (`signs`:
    two groups of heads) or uniform on [-1, 1] (`interval`: every head its own); or `random`: Gaussian attention with
    unit-norm Gaussian decoders (every head its own). `simulated` is the number of groups and belongs to the start.
    `scale_exponent` is `c`.
    """

    heads: float = 1.0
    scale_exponent: float = 0.5
    decoder: Decoder = fixed(default="full")
    start: Start = fixed(default="zero")
    simulated: int = fixed(default=1)

    def __check_init__(self):
        require(
            self.heads >= 1 and self.heads == round(self.heads),
            f"the number of heads must be a whole number from 1 on, not {self.heads:g}.",
        )
        require(
            self.scale_exponent > 0,
            f"the exponent of the head scaling must be positive, not {self.scale_exponent}.",
        )
        needed = {"zero": 1, "signs": 2}.get(self.start, self.heads)
        require(
            self.simulated == needed,
            f"start '{self.start}' with {self.heads:g} heads has {needed:g} groups of equal heads, "
            f"not {self.simulated} (set network.simulated={needed:g}).",
        )

    @property
    def scale(self) -> Float[Array, ""]:
        """The factor in front of the sum over heads, `H^-c`."""
        return jnp.asarray(self.heads) ** -self.scale_exponent


# Forward ---------------------------------------------------------------------------------------------------------------


def attention_map(
    attention: Square, tokens: Float[Array, "... token dim"]
) -> Float[Array, "... token token"]:
    """`softmax(X W X^T)`: row `t` says where the query `t` looks."""
    return jax.nn.softmax(tokens @ attention @ tokens.mT, axis=-1)


def full_decoder(decoder: Array, kind: Decoder, tokens: int) -> Tokens:
    """The decoder as a `T x d` matrix: as it is, `1 u^T` (pooling), or `u` in the last row."""
    if kind == "pooling":
        return jnp.broadcast_to(decoder, (tokens, *decoder.shape))
    if kind == "last":
        return jnp.zeros((tokens, *decoder.shape), decoder.dtype).at[-1].set(decoder)
    return decoder


def head_output(
    decoder: Tokens, attention: Square, tokens: Float[Array, "... token dim"]
) -> Float[Array, "..."]:
    """One head: `<U, softmax(X W X^T) X>`."""
    return jnp.einsum("td,...td->...", decoder, attention_map(attention, tokens) @ tokens)


def outputs(
    network: Network, params: Heads, members: Members, tokens: Float[Array, "sample token dim"]
) -> Float[Array, " sample"]:
    """The whole model, for every sample. Its derivative is that of one head of each group."""
    return _summed(network, params, members, tokens, head_output)


def _summed(
    network: Network, params: Heads, members: Members, tokens: Array, output: Callable[..., Array]
) -> Float[Array, " sample"]:
    """`H^-c sum_h output(U_h, W_h, tokens)`; tokens are the middle dimension."""

    def one(head: Heads) -> Float[Array, " sample"]:
        return output(full_decoder(head.decoder, network.decoder, tokens.shape[1]), head.attention, tokens)

    return network.scale * grouped.total(jax.vmap(one)(params), members)


def margins(network: Network, params: Heads, members: Members, samples: Samples) -> Float[Array, " sample"]:
    """`y_i Phi~(X_i)`."""
    return samples.labels * outputs(network, params, members, samples.tokens)


def mean_loss(network: Network, params: Heads, members: Members, samples: Samples) -> Float[Array, ""]:
    """`L(theta) = (1/n) sum_i log(1 + exp(-y_i Phi~(X_i)))`."""
    return jnp.mean(logistic_loss(margins(network, params, members, samples)))


def log_mean_loss(margin: Float[Array, " sample"]) -> Float[Array, ""]:
    """The logarithm of the mean logistic loss, also where the loss itself is below the smallest float."""
    safe = jnp.minimum(margin, 30.0)
    logs = jnp.where(margin > 30, -margin, jnp.log(jax.nn.softplus(-safe)))
    return jax.nn.logsumexp(logs) - jnp.log(margin.shape[0])


def linear_output(decoder: Tokens, tokens: Float[Array, "... token dim"]) -> Float[Array, "..."]:
    """The comparison model without attention, `<U, X>` (App. F)."""
    return jnp.einsum("td,...td->...", decoder, tokens)


# Training --------------------------------------------------------------------------------------------------------------


SHORT = 32
"""Sums of more terms XLA makes in pieces, all terms of which it stores first: products of matrices are then faster."""


def training_loss(network: Network, params: Heads, members: Members, samples: Samples) -> Float[Array, ""]:
    """`mean_loss` for training: half the time with its gradient, and no second derivative.

    Tokens are turned once, so that the sample is the last dimension of every array and the short sums over tokens and
    coordinates add long rows.
    """
    if max(samples.tokens.shape[1:]) > SHORT:
        return mean_loss(network, params, members, samples)
    turned = jax.lax.optimization_barrier(samples.tokens.T)  # else every use of a token would turn it again
    return jnp.mean(logistic_loss(samples.labels * _summed(network, params, members, turned, head_outputs)))


@jax.custom_vjp
def head_outputs(
    decoder: Tokens, attention: Square, tokens: Float[Array, "dim token sample"]
) -> Float[Array, " sample"]:
    """`head_output` of samples that are the last dimension of the tokens. With `A = E / Z` the attention, `v = U X^T` and
    `p_t = sum_s A_ts v_ts` the part of query `t` in the output, the gradient is `A X` in `U` and
    `sum_t x_t sum_s A_ts (v_ts - p_t) x_s` in `W` (Lemma 1/4); tokens have none."""
    return _heads_forward(decoder, attention, tokens)[0]


def _heads_forward(decoder: Array, attention: Array, tokens: Array) -> tuple[Array, tuple[Array, ...]]:
    asked = jnp.sum(attention[:, :, None, None] * tokens[:, None], axis=0)
    scores = jnp.sum(asked[:, :, None] * tokens[:, None], axis=0)  # (query, token, sample)
    raw = jnp.exp(scores - jnp.max(scores, axis=1, keepdims=True))
    whole = jnp.sum(raw, axis=1)
    mixed = jnp.sum(raw[:, None] * tokens, axis=2)  # Z A X: (query, dim, sample)
    parts = jnp.sum(decoder[:, :, None] * mixed, axis=1) / whole
    return jnp.sum(parts, axis=0), (decoder, tokens, raw, whole, mixed, parts)


def _heads_backward(saved: tuple[Array, ...], cotangent: Array) -> tuple[Array, Array, None]:
    decoder, tokens, raw, whole, mixed, parts = saved
    weight = (cotangent / whole)[:, None]
    values = jnp.sum(decoder.T[:, :, None, None] * tokens[:, None], axis=0)
    back = weight * jnp.sum((raw * (values - parts[:, None]))[:, None] * tokens, axis=2)
    each = jnp.sum(tokens[:, None] * back.swapaxes(0, 1), axis=2)  # (dim, dim, sample)
    # the last sum is a product, as XLA would make one slow sum of two
    return jnp.sum(weight * mixed, axis=-1), each @ jnp.ones_like(cotangent), None


head_outputs.defvjp(_heads_forward, _heads_backward)


# Starts ----------------------------------------------------------------------------------------------------------------


def zero_heads(network: Network, tokens: int, dim: int) -> Heads:
    """All weights zero."""
    shape = (tokens, dim) if network.decoder == "full" else (dim,)
    return Heads(jnp.zeros((network.simulated, *shape)), jnp.zeros((network.simulated, dim, dim)))


def first_phase_row(samples: Samples) -> Float[Array, " dim"]:
    """`a = (1/2)(1/n_1) sum_i y_i mean_t x_{i,t}`: what the first step from zero writes into every row of a decoder."""
    return jnp.mean(samples.labels[:, None] * samples.tokens.mean(axis=1), axis=0) / 2


def start_heads(network: Network, key: Key, first: Samples) -> tuple[Heads, Members]:
    """The weights before training and how many heads each stands for. `first` are the samples of the first phase.

    The randomised first step is `theta_h = -alpha_h sqrt(H) grad_h L(0)`: `W_h = 0` and every row of `U_h` is
    `alpha_h a` (`T alpha_h a` for a pooling decoder, whose gradient sums the rows).
    """
    tokens, dim = first.tokens.shape[1:]
    heads, simulated = jnp.asarray(network.heads), network.simulated
    zero = zero_heads(network, tokens, dim)
    if network.start == "zero":
        return zero, heads[None]
    if network.start == "random":
        attention_key, decoder_key = jax.random.split(key)
        decoder = jax.random.normal(decoder_key, zero.decoder.shape)
        decoder /= grouped.head_norms(decoder).reshape(-1, *(1,) * (decoder.ndim - 1))
        return Heads(decoder, jax.random.normal(attention_key, zero.attention.shape)), jnp.ones(simulated)
    if network.start == "signs":
        positive = jax.random.binomial(key, heads.astype(float), 0.5, dtype=float)
        steps, members = jnp.array([1.0, -1.0]), jnp.stack([positive, heads - positive])
    else:
        steps, members = jax.random.uniform(key, (simulated,), minval=-1, maxval=1), jnp.ones(simulated)
    row = first_phase_row(first) * (tokens if network.decoder == "pooling" else 1)
    decoder = steps.reshape(-1, *(1,) * (zero.decoder.ndim - 1)) * row
    return Heads(jnp.broadcast_to(decoder, zero.decoder.shape), zero.attention), members
