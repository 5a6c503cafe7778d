"""What Lemmas E.4.5 to E.4.7 speak of, looked at along a training: how far W_Q and W_K have moved along patterns, the
coefficients with which rows of W_O enter the next step of W_V, and how far rows of W_O have moved.

Everything is an update, that is minus the sum of gradients (the document writes its opposite). Quantities in units of 1/a
are multiplied by a = 1/|a_i|.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.parts.votes import Folded, Weights
from lemmata.studies.in_context_learning import network
from lemmata.studies.in_context_learning.data import Frame, Prompt

Seen = tuple[Array, Array, Array]
"""Context columns, which of them are shown, and query columns."""


class Moved(NamedTuple):
    """What training has added: W_Q, W_K along basis coordinates, and W_O (transposed) along patterns and label."""

    query: Float[Array, "dim dim"]
    key: Float[Array, "dim dim"]
    hidden: Float[Array, "dim neuron"]


def lucky(
    first: Folded, votes: Float[Array, " neuron"], prompts: Prompt, seen: Seen
) -> Bool[Array, "prompts neuron"]:
    """Definition E.4.8, (E.31) and (E.32): neurons whose feature part and label part both answer to the initial value of a
    prompt, and that vote for its label (W_n for label +1, U_n for -1)."""
    begun = network.values(first, *seen)
    dim = seen[0].shape[-1]
    label = jnp.tile(jnp.arange(dim) == dim - 1, first.hidden.shape[0] // dim)
    on_feature = (begun * ~label) @ first.hidden > 0
    on_label = (begun * label) @ first.hidden > 0
    return on_feature & on_label & (votes[None] * prompts.target[:, None] > 0)


class Coefficients(NamedTuple):
    """W_V p moves by (eta/a) sum_i (`own` + `rest`)_i^T p W_O(i, :) in the step that comes, (E.14): from prompts that neuron i
    is lucky for, and from all others."""

    own: Float[Array, "neuron dim"]
    rest: Float[Array, "neuron dim"]


def coefficients(
    folded: Folded,
    votes: Float[Array, " neuron"],
    prompts: Prompt,
    seen: Seen,
    chosen: Bool[Array, "prompts neuron"],
) -> Coefficients:
    """Means over prompts of z sign(a_i) 1[active] h^T where the margin is below 1 (hinge loss), h being the attended token."""
    mixed = network.values(folded, *seen)
    inside = mixed @ folded.hidden
    margin = prompts.target * (jax.nn.relu(inside) @ votes)
    pull = jnp.where((inside > 0) & (margin < 1)[:, None], prompts.target[:, None] * jnp.sign(votes), 0)
    count = prompts.target.shape[0]
    return Coefficients(*((pull * where).T @ mixed / count for where in (chosen, ~chosen)))


def values_look(
    folded: Folded,
    votes: Float[Array, " neuron"],
    prompts: Prompt,
    seen: Seen,
    chosen: Bool[Array, "prompts neuron"],
    frame: Frame,
) -> dict[str, Array]:
    """(E.15) to (E.22), in units of 1/a; gamma, the largest attention off the query's pattern; zeta, the smallest positive
    preactivation of a neuron that is lucky for the prompt."""
    share = network.attention(folded, *seen)[0, :, : prompts.shown.shape[1]]
    off = 1 - jnp.sum(share * network.same_pattern(prompts), axis=-1)
    inside = network.values(folded, *seen) @ folded.hidden
    own, rest = coefficients(folded, votes, prompts, seen, chosen)
    sides = both_labels(frame)
    along = jnp.einsum("nd,yjd->ynj", own, sides)
    ever = jnp.any(chosen, axis=0)
    right = ever & jnp.stack([votes > 0, votes < 0])
    wrong = right[::-1]
    smallest = jnp.min(jnp.where(right, jnp.min(along, axis=2), jnp.inf))
    ratio = _mean(along, wrong) / _positive(_mean(along, right))
    stray = jnp.max(jnp.abs(own @ frame.irrelevant.T), axis=1)
    least = jnp.min(jnp.abs(along), axis=2)
    return {
        "gamma": jnp.max(off),
        "zeta": jnp.min(jnp.where(chosen & (inside > 0), inside, jnp.inf)),
        "value_lucky": smallest,
        "value_opposite": jnp.max(ratio),
        "value_rest": jnp.max(jnp.abs(jnp.einsum("nd,yjd->ynj", rest, sides))),
        "value_irrelevant": jnp.max(jnp.where(right, stray / _positive(least), -jnp.inf)),
    }


def neurons_look(
    moved: Moved,
    hidden: Float[Array, "features neuron"],
    votes: Float[Array, " neuron"],
    chosen: Bool[Array, "prompts neuron"],
    frame: Frame,
) -> dict[str, Array]:
    """(E.24) to (E.28): the least that the row of a lucky neuron has moved along (mu_a; q), or (mu_a; -q) where it votes for
    -1; the shortest of these rows; the most that one has moved along (nu_c; 0), over what it has along (mu_a; q)."""
    along = jnp.einsum("yjd,dn->ynj", both_labels(frame), moved.hidden)
    ever = jnp.any(chosen, axis=0)
    right = ever & jnp.stack([votes > 0, votes < 0])
    least = jnp.min(along, axis=2)
    stray = jnp.max(frame.irrelevant @ moved.hidden, axis=0)
    return {
        "neuron_growth": jnp.min(jnp.where(right, least, jnp.inf)),
        "neuron_norm": jnp.min(jnp.where(ever, jnp.linalg.norm(hidden, axis=0), jnp.inf)),
        "neuron_irrelevant": jnp.max(jnp.where(right, stray / _positive(least), -jnp.inf)),
        "never_lucky": jnp.mean((~ever).astype(hidden.dtype)),
    }


def both_labels(frame: Frame) -> Float[Array, "two m1 dim"]:
    """(mu_j; q) and (mu_j; -q)."""
    return jnp.stack([frame.relevant + frame.label, frame.relevant - frame.label])


def moved_by(weights: Weights, begun: Weights, carry: Float[Array, "values dim"]) -> Moved:
    """One head's updates; `carry` takes patterns and label to the space of values."""
    return Moved(
        (weights.query - begun.query)[0],
        (weights.key - begun.key)[0],
        carry.T @ (weights.hidden - begun.hidden),
    )


def _mean(values: Float[Array, "two neuron m1"], where: Bool[Array, "two neuron"]) -> Float[Array, "two m1"]:
    return jnp.sum(values * where[..., None], axis=1) / jnp.maximum(jnp.sum(where, axis=1), 1)[:, None]


def _positive(values: Array) -> Array:
    """What may stand in a denominator: a share of something that is not there is beyond every bound."""
    return jnp.maximum(values, 1e-12)
