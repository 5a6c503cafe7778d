"""BERT encoders: from the weights of `minilm`, or drawn; and the sentences of SST-2 in the word pieces of that file.

Embeddings of pieces, positions and the first sentence are added and normalised. Blocks normalise their sums, with exact GELU.
"""

from collections.abc import Mapping
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt16
from numpy import ndarray

from lemmata.data import load
from lemmata.errors import require
from lemmata.parts.transformers import Block, Dense, LayerNorm, block
from lemmata.trial import Key

EPSILON = 1e-12
"""What BERT adds to variances."""


class Encoder(eqx.Module):
    """A BERT encoder of one sentence."""

    words: Float[Array, "piece width"]
    positions: Float[Array, "place width"]
    norm: LayerNorm
    blocks: tuple[Block, ...]

    def __call__(
        self, pieces: Int[Array, "n token"], there: Float[Array, "n token"]
    ) -> Float[Array, "n token width"]:
        """Return the states of all pieces after the last block. `there` marks pieces that are no padding, by 1 and 0."""
        x = self.norm(self.words[pieces] + self.positions[: pieces.shape[1]])
        for one in self.blocks:
            x = one(x, there)
        return x


def encoder_of(weights: Mapping[str, ndarray], heads: int, scale: float = 0.0) -> Encoder:
    """Return the encoder of a file. Any number of heads that divides the width can use the same weights.

    `scale`: what multiplies attention logits; 0 stands for one over the root of the width of a head.
    """

    def array(name: str) -> Array:
        return jnp.asarray(weights[f"w/{name}"], jnp.float32)

    def affine(name: str) -> Dense:
        return Dense(array(f"{name}/weight").T, array(f"{name}/bias"))

    def norm(name: str) -> LayerNorm:
        return LayerNorm(array(f"{name}/weight"), array(f"{name}/bias"), EPSILON)

    def layer(at: str) -> Block:
        query, key, value = (affine(f"{at}/attention/self/{part}") for part in ("query", "key", "value"))
        mlp = affine(f"{at}/intermediate/dense"), affine(f"{at}/output/dense")
        norms = norm(f"{at}/attention/output/LayerNorm"), norm(f"{at}/output/LayerNorm")
        out = affine(f"{at}/attention/output/dense")
        return Block(query, key, value, out, mlp, norms, None, heads, "post", True, scale)

    depth = len({name.split("/")[2] for name in weights if name.startswith("w/layer/")})
    return Encoder(
        array("embeddings/word_embeddings/weight"),
        array("embeddings/position_embeddings/weight") + array("embeddings/token_type_embeddings/weight")[0],
        norm("embeddings/LayerNorm"),
        tuple(layer(f"layer/{i}") for i in range(depth)),
    )


def drawn_encoder(
    key: Key, pieces: int, length: int, width: int, heads: int, depth: int, scale: float = 0.0
) -> Encoder:
    """Draw an encoder with embeddings of standard deviation 0.02 and perceptrons four times as wide."""
    words, positions, *each = jax.random.split(key, 2 + depth)
    norm = LayerNorm(jnp.ones(width, jnp.float32), jnp.zeros(width, jnp.float32), EPSILON)
    drawn = [block(one, width, heads, 4 * width, "post", scale=scale) for one in each]
    exact = [
        Block(b.query, b.key, b.value, b.out, b.mlp, (norm, norm), None, heads, "post", True, scale)
        for b in drawn
    ]
    return Encoder(
        0.02 * jax.random.normal(words, (pieces, width), jnp.float32),
        0.02 * jax.random.normal(positions, (length, width), jnp.float32),
        norm,
        tuple(exact),
    )


# Sentences -------------------------------------------------------------------------------------------------------------


class Sentences(NamedTuple):
    """Sentences as word pieces, padded with 0, with the number of pieces of each and its label."""

    pieces: UInt16[Array | ndarray, "n token"]
    lengths: Int[Array | ndarray, " n"]
    labels: Int[Array | ndarray, " n"]


def sentences(split: str, length: int) -> Sentences:
    """Return the sentences of SST-2 in the pieces of `minilm`, cut at `length` pieces."""
    held = load("minilm")
    require(
        f"{split}/tokens" in held,
        "this file of minilm holds no sentences of SST-2; get the one with them: `lemmata data get minilm --from PATH`.",
    )
    ends = held[f"{split}/ends"].astype(int)
    starts = np.concatenate([[0], ends[:-1]])
    lengths = np.minimum(ends - starts, length)
    place = starts[:, None] + np.arange(length)
    inside = np.arange(length) < lengths[:, None]
    tokens = held[f"{split}/tokens"]
    pieces = np.where(inside, tokens[np.minimum(place, len(tokens) - 1)], 0).astype(np.uint16)
    return Sentences(pieces, lengths.astype(np.int32), held[f"{split}/labels"].astype(np.int32))


def marked(lengths: Int[Array, " n"], tokens: int) -> Float[Array, "n token"]:
    """Return 1 for pieces of a sentence and 0 for its padding."""
    return (jnp.arange(tokens) < jnp.asarray(lengths)[:, None]).astype(jnp.float32)
