"""Transformers of practice: attention blocks with and without normalisation, and a vision transformer with learned positions.

With tokens `X` (tokens x width), a head of width `h` gives

    softmax(X Q (X K)^T / sqrt(h)) X V.

Blocks come in three orders: `plain` adds attention and perceptron to the tokens, `pre` normalises their inputs first (as vision
transformers do), `post` normalises the sums (as BERT does).
"""

from math import sqrt
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.trial import Key

Order = Literal["plain", "pre", "post"]


class Dense(eqx.Module):
    """An affine map of the last dimension."""

    weight: Float[Array, "fan_in fan_out"]
    bias: Float[Array, " fan_out"]

    def __call__(self, x: Float[Array, "*n fan_in"]) -> Float[Array, "*n fan_out"]:
        return x @ self.weight + self.bias


class LayerNorm(eqx.Module):
    """Normalises the last dimension to mean 0 and variance 1, then scales and shifts it."""

    scale: Float[Array, " width"]
    shift: Float[Array, " width"]
    epsilon: float = eqx.field(static=True, default=1e-5)

    def __call__(self, x: Float[Array, "*n width"]) -> Float[Array, "*n width"]:
        centred = x - jnp.mean(x, axis=-1, keepdims=True)
        variance = jnp.mean(centred**2, axis=-1, keepdims=True)
        return centred * jax.lax.rsqrt(variance + self.epsilon) * self.scale + self.shift


class Block(eqx.Module):
    """Self-attention, then a perceptron with one hidden layer, each added to the tokens.

    `mlp`: the two maps of the perceptron; None leaves it out.
    `norms`: those of attention and perceptron; none in the order `plain`.
    `logits`: attention logits by head and pair of tokens, in place of queries and keys; None: queries and keys.
    `scale`: multiplies the logits of queries and keys; 0 stands for one over the root of the width of a head.
    `exact`: whether the perceptron has the exact GELU; else ReLU.
    """

    query: Dense | None
    key: Dense | None
    value: Dense
    out: Dense
    mlp: tuple[Dense, Dense] | None
    norms: tuple[LayerNorm, ...]
    logits: Float[Array, "head token other"] | None = None
    heads: int = eqx.field(static=True, default=1)
    order: Order = eqx.field(static=True, default="pre")
    exact: bool = eqx.field(static=True, default=False)
    scale: float = eqx.field(static=True, default=0.0)

    def __call__(
        self, x: Float[Array, "n token width"], there: Float[Array, "n token"] | None = None
    ) -> Float[Array, "n token width"]:
        """Return the tokens after the block. `there` marks the tokens that may be attended to, by 1 and 0."""
        if self.order == "post":
            x = self.norms[0](x + self.attention(x, there))
            return x if self.mlp is None else self.norms[1](x + self.perceptron(x))
        first = self.norms[0](x) if self.norms else x
        x = x + self.attention(first, there)
        if self.mlp is None:
            return x
        return x + self.perceptron(self.norms[1](x) if self.norms else x)

    def attention(
        self, x: Float[Array, "n token width"], there: Float[Array, "n token"] | None
    ) -> Float[Array, "n token width"]:
        values = self._split(self.value(x))
        if self.query is None or self.key is None:
            assert self.logits is not None
            logits = jnp.broadcast_to(self.logits, (x.shape[0], *self.logits.shape))
        else:
            queries, keys = self._split(self.query(x)), self._split(self.key(x))
            logits = (self.scale or 1 / sqrt(queries.shape[-1])) * jnp.einsum(
                "nqhd,nkhd->nhqk", queries, keys
            )
        if there is not None:
            logits = jnp.where(there[:, None, None, :] > 0, logits, -1e9)
        mixed = jnp.einsum("nhqk,nkhd->nqhd", jax.nn.softmax(logits, axis=-1), values)
        return self.out(mixed.reshape(x.shape))

    def perceptron(self, x: Float[Array, "n token width"]) -> Float[Array, "n token width"]:
        assert self.mlp is not None
        inner, outer = self.mlp
        hidden = inner(x)
        return outer(jax.nn.gelu(hidden, approximate=False) if self.exact else jax.nn.relu(hidden))

    def _split(self, x: Float[Array, "n token width"]) -> Float[Array, "n token head each"]:
        return x.reshape(*x.shape[:-1], self.heads, -1)


def dense(key: Key, fan_in: int, fan_out: int) -> Dense:
    """Draw an affine map: uniform weights within one over the root of the inputs, bias 0."""
    bound = 1 / sqrt(fan_in)
    weight = jax.random.uniform(key, (fan_in, fan_out), jnp.float32, -bound, bound)
    return Dense(weight, jnp.zeros(fan_out, jnp.float32))


def layer_norm(width: int) -> LayerNorm:
    """Return a normalisation that leaves normalised tokens as they are."""
    return LayerNorm(jnp.ones(width, jnp.float32), jnp.zeros(width, jnp.float32))


def block(
    key: Key, width: int, heads: int, hidden: int, order: Order, positional: int = 0, scale: float = 0.0
) -> Block:
    """Draw a block.

    `hidden`: the width of the perceptron; 0 leaves it out.
    `positional`: the number of tokens whose attention logits are parameters of their own; 0: queries and keys.
    `scale`: see `Block`.
    """
    q, k, v, o, a, b = jax.random.split(key, 6)
    norms = () if order == "plain" else tuple(layer_norm(width) for _ in range(1 + (hidden > 0)))
    return Block(
        None if positional else dense(q, width, width),
        None if positional else dense(k, width, width),
        dense(v, width, width),
        dense(o, width, width),
        (dense(a, width, hidden), dense(b, hidden, width)) if hidden else None,
        norms,
        jnp.zeros((heads, positional, positional), jnp.float32) if positional else None,
        heads,
        order,
        scale=scale,
    )


# Vision ----------------------------------------------------------------------------------------------------------------


class VisionTransformer(eqx.Module):
    """Patches are embedded, get positions, pass through blocks, and their mean is classified.

    `hidden`: a layer with ReLU before the classifier, or None.
    """

    embed: Dense
    positions: Float[Array, "token width"]
    blocks: tuple[Block, ...]
    norm: LayerNorm | None
    hidden: Dense | None
    head: Dense
    patch: int = eqx.field(static=True)

    def __call__(
        self,
        images: Float[Array, "n row column channel"],
        there: Float[Array, "n token"] | None = None,
    ) -> Float[Array, "n label"]:
        """Return the logits of the classes. `there` marks the patches that the network sees, by 1 and 0; by default all."""
        x = self.embed(patches(images, self.patch)) + self.positions
        for one in self.blocks:
            x = one(x, there)
        x = x if self.norm is None else self.norm(x)
        if there is None:
            x = jnp.mean(x, axis=1)
        else:
            x = jnp.einsum("ntw,nt->nw", x, there) / jnp.maximum(jnp.sum(there, axis=1), 1)[:, None]
        x = x if self.hidden is None else jax.nn.relu(self.hidden(x))
        return self.head(x)


def patches(images: Float[Array, "n row column channel"], size: int) -> Float[Array, "n token pixel"]:
    """Cut images into square patches, row by row."""
    n, rows, columns, channels = images.shape
    cut = images.reshape(n, rows // size, size, columns // size, size, channels)
    return cut.transpose(0, 1, 3, 2, 4, 5).reshape(n, -1, size * size * channels)


def vision_transformer(
    key: Key,
    *,
    side: int,
    channels: int,
    patch: int,
    width: int,
    heads: int,
    depth: int,
    mlp: int,
    hidden: int,
    classes: int,
    order: Order,
    positional: bool = False,
) -> VisionTransformer:
    """Draw a vision transformer with positions of standard deviation 0.02.

    `mlp`: the width of the perceptron in every block; 0 leaves it out.
    `hidden`: the width of the layer before the classifier; 0 leaves it out.
    `positional`: whether attention logits are parameters of their own.
    """
    e, p, h, c, *each = jax.random.split(key, 4 + depth)
    tokens = (side // patch) ** 2
    logits = tokens if positional else 0
    return VisionTransformer(
        dense(e, patch * patch * channels, width),
        0.02 * jax.random.normal(p, (tokens, width), jnp.float32),
        tuple(block(one, width, heads, mlp, order, logits) for one in each),
        layer_norm(width) if order == "pre" else None,
        dense(h, width, hidden) if hidden else None,
        dense(c, hidden or width, classes),
        patch,
    )
