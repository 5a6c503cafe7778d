"""The analysed network (T), its gradient in one pass, and how far a matrix of logits knows the groups.

Attention sees positions only: trainable logits `A` with a frozen diagonal, and one value vector `v`:

    u_j = <v, X_j>,   S = row-softmax(A / tau),   z_i = D sum_j S_ij u_j,   F(X) = sum_i act(z_i),
    act(z) = z^p + nu z

where `p` is odd. What it is compared with is in `variants`.
"""

from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import logistic_loss
from lemmata.errors import require
from lemmata.kernels import kernel
from lemmata.trial import fixed

Logits = Float[Array, "patches patches"]
Vector = Float[Array, " dimension"]
Patches = Float[Array, "samples patches dimension"]


SHARPEST = 100.0
"""The largest frozen logit: its softmax leaves nothing to others long before, to rounding."""


class Constants(NamedTuple):
    """What fixes the function besides its weights: degree `p`, linear coefficient `nu`, temperature `tau`."""

    degree: int = 3
    linear: float | Array = 1e-3
    temperature: float | Array = 1.0


class PositionalNetwork(eqx.Module):
    """Network (T) before training. `linear` is nu, `diagonal` the frozen logit beta, `init` the Gaussian scale omega.

    The proofs use temperature 1, the definition sqrt(d); `scaling` chooses.
    """

    linear: float = 1e-4
    diagonal: float = 4.0
    init: float = 5e-4
    degree: int = fixed(default=3)
    scaling: Literal["one", "sqrt_d"] = fixed(default="one")

    def __check_init__(self):
        odd = self.degree >= 3 and self.degree % 2 == 1
        require(odd, f"the degree p of the activation must be odd and at least 3, not {self.degree}.")
        require(self.linear > 0, f"the linear coefficient nu must be positive, not {self.linear}.")
        require(self.init >= 0, f"the initial scale must not be negative, not {self.init}.")
        require(
            self.diagonal <= SHARPEST,
            f"the frozen logit beta is at most {SHARPEST:g}, where a patch sees itself alone, not {self.diagonal}.",
        )

    def constants(self, dimension: int) -> Constants:
        return Constants(self.degree, self.linear, self.temperature(dimension))

    def temperature(self, dimension: int) -> float:
        return 1.0 if self.scaling == "one" else dimension**0.5

    @property
    def threshold(self) -> float | Array:
        """`nu^(1/(p-1))`: where the linear phase ends and where idealised descent starts."""
        return self.linear ** (1 / (self.degree - 1))


class Weights(NamedTuple):
    """Logits `A` (the diagonal is frozen during training) and value vector `v`; or their gradient."""

    logits: Logits
    value: Vector


def attention_scores(logits: Logits, temperature: float | Array = 1.0) -> Logits:
    """Row-softmax of the logits over the temperature."""
    return jax.nn.softmax(logits / temperature, axis=-1)


def activation(z: Array, constants: Constants) -> Array:
    """`z^p + nu z`."""
    return z**constants.degree + constants.linear * z


def activation_slope(z: Array, constants: Constants) -> Array:
    """`p z^(p-1) + nu`."""
    return constants.degree * z ** (constants.degree - 1) + constants.linear


def output_of_projections(
    u: Float[Array, "samples patches"], logits: Logits, constants: Constants
) -> Float[Array, " samples"]:
    """`F` from the projections `u_j = <v, X_j>`: everything after the value vector."""
    z = u.shape[-1] * (u @ attention_scores(logits, constants.temperature).T)
    return jnp.sum(activation(z, constants), axis=-1)


def output(weights: Weights, patches: Patches, constants: Constants) -> Float[Array, " samples"]:
    """`F(X)` of network (T)."""
    return output_of_projections(patches @ weights.value, weights.logits, constants)


def risk_of(
    weights: Weights, patches: Patches, labels: Float[Array, " samples"], constants: Constants
) -> Float[Array, ""]:
    """The empirical logistic risk, written plainly: what the fast gradient is tested against."""
    return jnp.mean(logistic_loss(labels * output(weights, patches, constants)))


def risk_gradient(
    weights: Weights,
    patches: Float[Array, "blocks dimension block patches"],
    labels: Float[Array, "blocks block"],
    constants: Constants,
) -> tuple[Float[Array, ""], Weights]:
    """The empirical risk with its gradient, reading the patches once (Lemmas H.1 and H.2, the latter corrected).

    Blocks of samples small enough for the cache are read, projected and pulled back before the next. A label 0 marks
    padding; the gradient of the frozen diagonal is zero. Per sample, with `h_i = y sg(-yF) D act'(z_i)`:

        -dL/dv = sum_j (sum_i h_i S_ij) X_j,     -dL/dA_ij = h_i S_ij (u_j - sum_r S_ir u_r) / tau

    (the paper's H.2 lacks the factor `S_ij` and the linear part of the activation).
    """
    # One lane after another: batched matrix products would read the patches in an order several times slower.
    in_turns = jax.custom_batching.sequential_vmap(partial(pulled, degree=constants.degree))
    scores = attention_scores(weights.logits, constants.temperature)
    linear = jnp.asarray(constants.linear, scores.dtype)
    margins, pulled_scores, pulled_value = in_turns(scores, weights.value, linear, patches, labels)
    counted = jnp.abs(labels)
    total = jnp.sum(counted)
    gradient = logits_gradient(scores, pulled_scores, constants)
    loss = jnp.sum(counted * logistic_loss(margins)) / total
    return loss, Weights(-gradient / total, -pulled_value / total)


Pulled = tuple[Float[Array, "blocks block"], Logits, Vector]
"""The margins `yF` of all samples, and `-dL/dS` and `-dL/dv` summed over them."""


def pulled_in_blocks(
    scores: Logits, value: Vector, linear: Array, patches: Array, labels: Array, degree: int
) -> Pulled:
    """Block after block."""
    count, constants = len(scores), Constants(degree, linear)

    def one_block(carry, block):
        pulled_scores, pulled_value = carry
        x, y = block
        u = block_projections(value, x)
        z = count * (u @ scores.T)
        margin = y * jnp.sum(activation(z, constants), axis=1)
        pull = (y * jax.nn.sigmoid(-margin))[:, None] * count * activation_slope(z, constants)
        pulled_value += x.reshape(len(value), -1) @ (pull @ scores).reshape(-1)
        return (pulled_scores + pull.T @ u, pulled_value), margin

    start = (jnp.zeros_like(scores), jnp.zeros_like(value))
    (pulled_scores, pulled_value), margins = jax.lax.scan(one_block, start, (patches, labels))
    return margins, pulled_scores, pulled_value


@kernel("spatial_pulled.cc", plain=pulled_in_blocks)
def pulled(
    scores: Logits, value: Vector, linear: Array, patches: Array, labels: Array, degree: int
) -> Pulled:
    """`pulled_in_blocks`."""
    given = scores, value, linear, patches, labels
    return pulled.call("spatial_pulled", *given, lanes=None, degree=degree)


def block_projections(
    value: Vector, block: Float[Array, "dimension block patches"]
) -> Float[Array, "block patches"]:
    """`u_j = <v, X_j>` on the samples of one block."""
    return (value @ block.reshape(len(value), -1)).reshape(block.shape[1:])


def logits_gradient(scores: Logits, pulled_scores: Logits, constants: Constants) -> Logits:
    """Through the softmax to the logits, the frozen diagonal left out."""
    through = scores * (pulled_scores - jnp.sum(scores * pulled_scores, axis=1, keepdims=True))
    return jnp.where(jnp.eye(len(scores), dtype=bool), 0, through / constants.temperature)


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


# Patch association -----------------------------------------------------------------------------------------------------


def same_group(group_of: Int[Array, " patches"]) -> Bool[Array, "patches patches"]:
    """Which pairs of positions share a group: the mask that attention should find."""
    return group_of[:, None] == group_of[None, :]


def tied_logits(
    group_of: Array, diagonal: Array | float, same: Array | float, cross: Array | float
) -> Logits:
    """Logits with the symmetry of Lemma 4.1: one value on the diagonal, one within groups, one across."""
    off = jnp.where(same_group(group_of), same, cross)
    return jnp.where(jnp.eye(len(group_of), dtype=bool), diagonal, off)


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
