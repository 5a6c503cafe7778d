"""A small GPT-2 style model for the same prompts: pre-norm blocks of causal attention and a GELU perceptron, a linear read-in
of the columns (6.1), a scalar read-out of the query's column.

Positions are not encoded unless asked for: the order of contexts carries nothing, and prompts of other lengths than those of
the training can be read.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.trial import Key


class Block(NamedTuple):
    """One layer; all arrays have the layer as first dimension."""

    scale1: Float[Array, "layer width"]
    shift1: Float[Array, "layer width"]
    attend: Float[Array, "layer width three_width"]
    attend_bias: Float[Array, "layer three_width"]
    project: Float[Array, "layer width width"]
    project_bias: Float[Array, "layer width"]
    scale2: Float[Array, "layer width"]
    shift2: Float[Array, "layer width"]
    up: Float[Array, "layer width inner"]
    up_bias: Float[Array, "layer inner"]
    down: Float[Array, "layer inner width"]
    down_bias: Float[Array, "layer width"]


class Deep(NamedTuple):
    """All parameters. `positions` has as many rows as a prompt has columns, or none."""

    read_in: Float[Array, "dim width"]
    positions: Float[Array, "columns width"]
    blocks: Block
    scale: Float[Array, " width"]
    shift: Float[Array, " width"]
    read_out: Float[Array, " width"]


def start(key: Key, dim: int, width: int, layers: int, columns: int, dtype) -> Deep:
    """GPT-2's initial weights: normal with standard deviation 0.02, that of the projections into the residual stream divided by
    the root of twice the layers; biases 0, scales 1. The read-in keeps the size of the tokens."""
    keys = iter(jax.random.split(key, 8))

    def normal(*shape: int, std: float) -> Array:
        return std * jax.random.normal(next(keys), shape, dtype)

    ones, zeros = jnp.ones((layers, width), dtype), jnp.zeros((layers, width), dtype)
    into = 0.02 / (2 * layers) ** 0.5
    blocks = Block(
        ones, zeros,
        normal(layers, width, 3 * width, std=0.02), jnp.zeros((layers, 3 * width), dtype),
        normal(layers, width, width, std=into), zeros,
        ones, zeros,
        normal(layers, width, 4 * width, std=0.02), jnp.zeros((layers, 4 * width), dtype),
        normal(layers, 4 * width, width, std=into), zeros,
    )  # fmt: skip
    read_in = normal(dim, width, std=dim**-0.5)
    positions = normal(columns, width, std=0.02)
    return Deep(read_in, positions, blocks, ones[0], zeros[0], normal(width, std=0.02))


def outputs(
    params: Deep,
    heads: int,
    tokens: Float[Array, "prompts contexts dim"],
    shown: Bool[Array, "prompts contexts"],
    query: Float[Array, "prompts dim"],
) -> Float[Array, " prompts"]:
    """F of every prompt: the read-out of the query's column, which comes last. Nothing reads the other columns of the last
    layer, so that it only asks for this one."""
    x = _applied(jnp.concatenate([tokens, query[:, None]], axis=1), params.read_in)
    if params.positions.shape[0]:
        x = x + params.positions[: x.shape[1]]
    columns, layers = x.shape[1], params.blocks.up.shape[0]
    there = jnp.concatenate([shown, jnp.ones((len(shown), 1), bool)], axis=1)
    before = jnp.tril(jnp.ones((columns, columns), bool))
    # A column that is not there looks at itself, so that no row is empty; nobody looks at it.
    mask = (before & there[:, None, :]) | jnp.eye(columns, dtype=bool)
    for layer in range(layers):
        block = jax.tree.map(lambda part, at=layer: part[at], params.blocks)
        x = _block(block, heads, x, mask[:, -1:] if layer == layers - 1 else mask)
    return _normed(x[:, -1], params.scale, params.shift) @ params.read_out


def _block(
    block: Any,
    heads: int,
    x: Float[Array, "prompts columns width"],
    mask: Bool[Array, "prompts asking columns"],
) -> Float[Array, "prompts asking width"]:
    """One layer for the last columns, as many as the mask has rows."""
    prompts, _, width = x.shape
    asking = mask.shape[1]
    seen = _normed(x, block.scale1, block.shift1)
    query = _applied(seen[:, -asking:], block.attend[:, :width], block.attend_bias[:width])
    both = _applied(seen, block.attend[:, width:], block.attend_bias[width:])
    query, key, value = (_split(part, heads) for part in (query, both[..., :width], both[..., width:]))
    logits = jnp.einsum("bhqe,bhke->bhqk", query, key) / query.shape[-1] ** 0.5
    share = jax.nn.softmax(jnp.where(mask[:, None], logits, -jnp.inf), axis=-1)
    mixed = jnp.einsum("bhqk,bhke->bhqe", share, value).transpose(0, 2, 1, 3).reshape(prompts, asking, width)
    x = x[:, -asking:] + _applied(mixed, block.project, block.project_bias)
    inner = jax.nn.gelu(_applied(_normed(x, block.scale2, block.shift2), block.up, block.up_bias))
    return x + _applied(inner, block.down, block.down_bias)


def _applied(
    x: Float[Array, "prompts columns inputs"], weight: Float[Array, "inputs width"], bias: Array | float = 0.0
) -> Float[Array, "prompts columns width"]:
    """`x W + b`, all columns of all prompts as the rows of one matrix: XLA makes slow loops of the gradient in W otherwise."""
    rows = x.reshape(-1, x.shape[-1]) @ weight + bias
    return rows.reshape(*x.shape[:2], -1)


def _split(
    part: Float[Array, "prompts columns width"], heads: int
) -> Float[Array, "prompts head columns each"]:
    prompts, columns, width = part.shape
    return part.reshape(prompts, columns, heads, width // heads).transpose(0, 2, 1, 3)


def _normed(
    x: Float[Array, "*n width"], scale: Float[Array, " width"], shift: Float[Array, " width"]
) -> Array:
    mean = jnp.mean(x, axis=-1, keepdims=True)
    spread = jnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(spread + 1e-5) * scale + shift
