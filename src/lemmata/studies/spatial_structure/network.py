"""Transformers whose attention looks at positions only, from the general layer down to the one that is analysed.

The analysed network (T) has trainable logits `A` with a frozen diagonal and one value vector `v`:

    u_j = <v, X_j>,   S = row-softmax(A / tau),   z_i = D sum_j S_ij u_j,   F(X) = sum_i act(z_i),
    act(z) = z^p + nu z

where `p` is odd. Also here: what it is compared with (self-attention, trainable positional encodings, a wide one-layer
transformer, generalised linear models), hand-built solutions, and how far a matrix of logits knows the groups.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import logistic_loss

Logits = Float[Array, "patches patches"]
Vector = Float[Array, " dimension"]
Patches = Float[Array, "samples patches dimension"]

# Attention layers ------------------------------------------------------------------------------------------------------


def attention_scores(logits: Logits, temperature: float | Array = 1.0) -> Logits:
    """Row-softmax of the logits over the temperature."""
    return jax.nn.softmax(logits / temperature, axis=-1)


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


# The analysed network --------------------------------------------------------------------------------------------------


class Shape(NamedTuple):
    """What fixes the network besides its weights: degree `p`, linear coefficient `nu`, temperature `tau`."""

    degree: int = 3
    linear: float | Array = 1e-3
    temperature: float | Array = 1.0


class Weights(NamedTuple):
    """Logits `A` (the diagonal is frozen during training) and value vector `v`."""

    logits: Logits
    value: Vector


def activation(z: Array, shape: Shape) -> Array:
    """`z^p + nu z`."""
    return z**shape.degree + shape.linear * z


def activation_slope(z: Array, shape: Shape) -> Array:
    """`p z^(p-1) + nu`."""
    return shape.degree * z ** (shape.degree - 1) + shape.linear


def output_of_projections(
    u: Float[Array, "samples patches"], logits: Logits, shape: Shape
) -> Float[Array, " samples"]:
    """`F` from the projections `u_j = <v, X_j>`: everything after the value vector."""
    z = u.shape[-1] * (u @ attention_scores(logits, shape.temperature).T)
    return jnp.sum(activation(z, shape), axis=-1)


def output(weights: Weights, patches: Patches, shape: Shape) -> Float[Array, " samples"]:
    """`F(X)` of network (T)."""
    return output_of_projections(patches @ weights.value, weights.logits, shape)


class Encoded(NamedTuple):
    """Positional encodings `P`, one column a position, and value vector `v`; nothing is frozen."""

    positions: Float[Array, "width patches"]
    value: Vector

    @property
    def logits(self) -> Logits:
        """`A = P^T P`: how similar the positions are, `<p_i, p_j>`."""
        return self.positions.T @ self.positions


def encoded_output(weights: Encoded, patches: Patches, shape: Shape) -> Float[Array, " samples"]:
    """Network (T) with trainable positional encodings: `A = P^T P`."""
    return output(Weights(weights.logits, weights.value), patches, shape)


def self_attention_output(weights: Encoded, patches: Patches, shape: Shape) -> Float[Array, " samples"]:
    """Network (T) with scores from patches plus positions, `<X_i + p_i, X_j + p_j>`: what positional attention leaves
    out. The encodings have the dimension of the patches."""

    def one(image: Array) -> Array:
        seen = image + weights.positions.T
        return output_of_projections((image @ weights.value)[None], seen @ seen.T, shape)[0]

    return jax.vmap(one)(patches)


class Gradient(NamedTuple):
    """The risk with its gradient; the gradient of the frozen diagonal is zero."""

    loss: Float[Array, ""]
    logits: Logits
    value: Vector


def risk_of(
    weights: Weights, patches: Patches, labels: Float[Array, " samples"], shape: Shape
) -> Float[Array, ""]:
    """The empirical logistic risk, written plainly: what the fast gradient is tested against."""
    return jnp.mean(logistic_loss(labels * output(weights, patches, shape)))


def risk_gradient(
    weights: Weights,
    patches: Float[Array, "blocks dimension block patches"],
    labels: Float[Array, "blocks block"],
    shape: Shape,
) -> Gradient:
    """The empirical risk with its gradient, reading the patches once (Lemmas H.1 and H.2, the latter corrected).

    Blocks of samples small enough for the cache are read, projected and pulled back before the next. A label 0 marks
    padding. Per sample, with `h_i = y sg(-yF) D act'(z_i)`:

        -dL/dv = sum_j (sum_i h_i S_ij) X_j,     -dL/dA_ij = h_i S_ij (u_j - sum_r S_ir u_r) / tau

    (the paper's H.2 lacks the factor `S_ij` and the linear part of the activation).
    """
    # One lane after another: batched matrix products would read the patches in an order several times slower.
    pulled = jax.custom_batching.sequential_vmap(partial(_pulled, shape.degree))
    scores = attention_scores(weights.logits, shape.temperature)
    linear = jnp.asarray(shape.linear, scores.dtype)
    loss, pulled_scores, pulled_value = pulled(scores, weights.value, linear, patches, labels)
    total = jnp.sum(jnp.abs(labels))
    gradient = logits_gradient(scores, pulled_scores, shape)
    return Gradient(loss / total, -gradient / total, -pulled_value / total)


def _pulled(degree: int, scores: Logits, value: Vector, linear: Array, patches: Array, labels: Array):
    """Summed loss, and summed `-dL/dS` and `-dL/dv`, block after block."""
    count, shape = len(scores), Shape(degree, linear)

    def one_block(carry, block):
        loss, pulled_scores, pulled_value = carry
        x, y = block
        u = block_projections(value, x)
        z = count * (u @ scores.T)
        margin = y * jnp.sum(activation(z, shape), axis=1)
        pull = (y * jax.nn.sigmoid(-margin))[:, None] * count * activation_slope(z, shape)
        pulled_value += x.reshape(len(value), -1) @ (pull @ scores).reshape(-1)
        loss += jnp.sum(jnp.abs(y) * logistic_loss(margin))
        return (loss, pulled_scores + pull.T @ u, pulled_value), None

    start = (jnp.zeros((), scores.dtype), jnp.zeros_like(scores), jnp.zeros_like(value))
    return jax.lax.scan(one_block, start, (patches, labels))[0]


def block_projections(
    value: Vector, block: Float[Array, "dimension block patches"]
) -> Float[Array, "block patches"]:
    """`u_j = <v, X_j>` on the samples of one block."""
    return (value @ block.reshape(len(value), -1)).reshape(block.shape[1:])


def logits_gradient(scores: Logits, pulled_scores: Logits, shape: Shape) -> Logits:
    """Through the softmax to the logits, the frozen diagonal left out."""
    through = scores * (pulled_scores - jnp.sum(scores * pulled_scores, axis=1, keepdims=True))
    return jnp.where(jnp.eye(len(scores), dtype=bool), 0, through / shape.temperature)


def in_blocks(patches: Patches, labels: Float[Array, " samples"], block: int) -> tuple[Array, Array]:
    """Samples in blocks of one size, the last one padded with samples of label 0.

    Within a block the dimension comes first: both products with the patches, along the value vector and back, then run
    over contiguous numbers (half the time of the order in which patches are drawn).
    """
    samples = len(labels)
    blocks = -(-samples // block)
    pad = blocks * block - samples
    padded = jnp.pad(patches, ((0, pad), (0, 0), (0, 0)))
    cut = padded.reshape(blocks, block, *patches.shape[1:])
    return jnp.transpose(cut, (0, 3, 1, 2)), jnp.pad(labels, (0, pad)).reshape(blocks, block)


# A larger learner and linear ones --------------------------------------------------------------------------------------


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


def linear_model(
    weights: Float[Array, "patches dimension"], patches: Patches, link: Callable[[Array], Array] = lambda s: s
) -> Float[Array, " samples"]:
    """A generalised linear model `phi(sum_j <w_j, X_j>)` (Theorem 3.1)."""
    return link(jnp.einsum("njd,jd->n", patches, weights))


# Hand-built attention --------------------------------------------------------------------------------------------------


def same_group(group_of: Int[Array, " patches"]) -> Bool[Array, "patches patches"]:
    """Which pairs of positions share a group: the mask that attention should find."""
    return group_of[:, None] == group_of[None, :]


def tied_logits(
    group_of: Array, diagonal: Array | float, same: Array | float, cross: Array | float
) -> Logits:
    """Logits with the symmetry of Lemma 4.1: one value on the diagonal, one within groups, one across."""
    off = jnp.where(same_group(group_of), same, cross)
    return jnp.where(jnp.eye(len(group_of), dtype=bool), diagonal, off)


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


def uniform_attention(patches: int) -> Logits:
    """Attention that treats all positions alike."""
    return jnp.zeros((patches, patches))


# Patch association -----------------------------------------------------------------------------------------------------


def association(logits: Logits, group_of: Int[Array, " patches"], groups: int) -> dict[str, Array]:
    """How far the logits know the groups (Definition 2.2 and softer measures of it).

    `exact`: fraction of rows whose `C` largest logits, the diagonal included, are the row's group; a tie at the edge
    counts as not associated. `overlap`: mean share of the top `C` that is in the group. `auc`: probability that a
    same-group logit exceeds a cross-group one, off the diagonal. `margin`: smallest same-group less largest
    cross-group logit; `row_margin`: the smallest over rows of the same within a row. `off_diagonal`: fraction of rows
    whose `C - 1` largest logits besides the diagonal are the rest of the group.
    """
    ordered, own, others = _by_group(logits, group_of, groups)
    size = len(logits) // groups
    low = jnp.min(jnp.where(own, ordered, jnp.inf), axis=1)
    low_others = jnp.min(jnp.where(others, ordered, jnp.inf), axis=1)
    high = jnp.max(jnp.where(own, -jnp.inf, ordered), axis=1)
    top = jax.lax.top_k(ordered, size)[1]
    inside = top // size == jnp.arange(len(logits))[:, None] // size
    return {
        "exact": jnp.mean(low > high, dtype=logits.dtype),
        "overlap": jnp.mean(inside, dtype=logits.dtype),
        "auc": _auc(ordered[others], ordered[~own]),
        "margin": jnp.min(low_others) - jnp.max(high),
        "row_margin": jnp.min(low_others - high),
        "off_diagonal": jnp.mean(low_others > high, dtype=logits.dtype),
    }


def _by_group(logits: Array, group_of: Array, groups: int) -> tuple[Array, np.ndarray, np.ndarray]:
    """The logits with positions in the order of their groups; which pairs share a group; the same off the diagonal."""
    order = jnp.argsort(group_of, stable=True)
    label = np.arange(len(logits)) // (len(logits) // groups)
    own = label[:, None] == label[None, :]
    return logits[order][:, order], own, own & ~np.eye(len(logits), dtype=bool)


def _auc(positive: Float[Array, " m"], negative: Float[Array, " n"]) -> Float[Array, ""]:
    """The rank statistic `P[positive > negative] + P[equal] / 2`."""
    ordered = jnp.sort(negative)
    below = jnp.searchsorted(ordered, positive, side="left")
    upto = jnp.searchsorted(ordered, positive, side="right")
    return jnp.mean((below + upto).astype(positive.dtype)) / (2 * len(ordered))


def class_summary(logits: Logits, group_of: Int[Array, " patches"], groups: int) -> dict[str, Array]:
    """Mean, spread and extremes of the same-group (`same_*`) and cross-group (`cross_*`) logits off the diagonal."""
    ordered, own, others = _by_group(logits, group_of, groups)
    found = {}
    for name, values in {"same": ordered[others], "cross": ordered[~own]}.items():
        found[f"{name}_mean"] = jnp.mean(values)
        found[f"{name}_std"] = jnp.std(values)
        found[f"{name}_min"] = jnp.min(values)
        found[f"{name}_max"] = jnp.max(values)
    return found
