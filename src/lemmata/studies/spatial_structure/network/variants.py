"""What network (T) is compared with: the general attention layers, trainable positional encodings, self-attention, a wide
one-layer transformer, and attention built by hand."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.studies.spatial_structure.network import (
    Constants,
    Logits,
    Patches,
    Vector,
    Weights,
    attention_scores,
    output,
    output_of_projections,
    same_group,
    tied_logits,
)

# Attention layers ------------------------------------------------------------------------------------------------------


def self_attention(
    patches: Float[Array, "patches dimension"],
    positions: Float[Array, "patches dimension"],
    query: Float[Array, "dimension key"],
    key: Float[Array, "dimension key"],
    value: Float[Array, "dimension out"],
) -> Float[Array, "patches out"]:
    """Definition 3.1: queries, keys and values from patches plus positional encodings; `D x d` out."""
    seen = patches + positions
    logits = (seen @ query) @ (seen @ key).T
    return attention_scores(logits, jnp.sqrt(query.shape[0])) @ (seen @ value)


def positional_attention(
    patches: Float[Array, "patches dimension"],
    positions: Float[Array, "patches dimension"],
    query: Float[Array, "dimension key"],
    key: Float[Array, "dimension key"],
    value: Float[Array, "dimension out"],
) -> Float[Array, "patches out"]:
    """Definition 3.2: scores from the positional encodings alone, values from the patches alone."""
    logits = (positions @ query) @ (positions @ key).T
    return attention_scores(logits, jnp.sqrt(query.shape[0])) @ (patches @ value)


# Relatives of network (T) ----------------------------------------------------------------------------------------------


class Encoded(NamedTuple):
    """Positional encodings `P`, one column a position, and value vector `v`; nothing is frozen."""

    positions: Float[Array, "width patches"]
    value: Vector

    @property
    def logits(self) -> Logits:
        """`A = P^T P`: how similar the positions are, `<p_i, p_j>`."""
        return self.positions.T @ self.positions


def encoded_output(weights: Encoded, patches: Patches, constants: Constants) -> Float[Array, " samples"]:
    """Network (T) with trainable positional encodings: `A = P^T P`."""
    return output(Weights(weights.logits, weights.value), patches, constants)


def self_attention_output(
    weights: Encoded, patches: Patches, constants: Constants
) -> Float[Array, " samples"]:
    """Network (T) with scores from patches plus positions, `<X_i + p_i, X_j + p_j>`: what positional attention leaves
    out. The encodings have the dimension of the patches."""

    def one(image: Array) -> Array:
        seen = image + weights.positions.T
        return output_of_projections((image @ weights.value)[None], seen @ seen.T, constants)[0]

    return jax.vmap(one)(patches)


class Wide(NamedTuple):
    """A one-layer transformer with trainable positional encodings, a value matrix and a ReLU layer; every position
    has its own readout."""

    positions: Float[Array, "key patches"]
    value: Float[Array, "dimension channels"]
    hidden: Float[Array, "channels width"]
    bias: Float[Array, " width"]
    readout: Float[Array, "patches width"]


def start_wide(key: Array, patches: int, dimension: int, channels: int, width: int, dtype) -> Wide:
    """Gaussian start at the usual scales; `A = P^T P` begins with a diagonal near 1."""
    keys = jax.random.split(key, 4)

    def normal(k: Array, shape: tuple[int, ...], std: float) -> Array:
        return jnp.asarray(std, dtype) * jax.random.normal(k, shape, dtype)

    return Wide(
        positions=normal(keys[0], (patches, patches), patches**-0.5),
        value=normal(keys[1], (dimension, channels), dimension**-0.5),
        hidden=normal(keys[2], (channels, width), (2 / channels) ** 0.5),
        bias=jnp.zeros(width, dtype),
        readout=normal(keys[3], (patches, width), (patches * width) ** -0.5),
    )


def wide_output(weights: Wide, patches: Patches) -> Float[Array, " samples"]:
    """Attention over positions, values, a ReLU layer at every position, and the readouts added up."""
    scores = attention_scores(weights.positions.T @ weights.positions)
    pooled = jnp.einsum("ij,njc->nic", scores, patches @ weights.value) * len(scores) ** 0.5
    features = jax.nn.relu(pooled @ weights.hidden + weights.bias)
    return jnp.einsum("niw,iw->n", features, weights.readout)


# Attention built by hand -----------------------------------------------------------------------------------------------


def associating_solution(group_of: Array, strength: Array | float) -> Logits:
    """Attention that knows the groups: `A_ij` is the strength inside groups (diagonal too), 0 across."""
    return tied_logits(group_of, strength, strength, jnp.zeros_like(jnp.asarray(strength)))


def shifted_solution(group_of: Array, strength: Array | float) -> Logits:
    """Theorem 3.2: `A_ij = beta` in one's own group, `2 beta` in the next one, 0 elsewhere.

    It generalises although the largest logits of every row avoid the row's own group.
    """
    groups = jnp.max(group_of) + 1
    following = (group_of[:, None] + 1) % groups == group_of[None, :]
    return strength * (same_group(group_of) + 2.0 * following)
