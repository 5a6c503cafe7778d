"""One layer of softmax attention from the query to its contexts, and a ReLU perceptron with frozen votes (6.2):

$$F(P) = a^\\top \\mathrm{ReLU}\\Big(W_O \\sum_i W_V p_i \\,\\mathrm{attn}_i\\Big), \\quad
\\mathrm{attn}_i = \\mathrm{softmax}_i\\big((W_K p_i)^\\top W_Q p_{query}\\big)$$

Weights are those of `lemmata.parts.votes`: `hidden` is W_O transposed, heads are stacked (E.1). A batch of prompts goes through
the perceptron together, as its rows. The small GPT-2 style model of figure 6.3 is in `deep`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.parts.votes import Folded, Weights, fold, perceptron
from lemmata.studies.in_context_learning.data import Prompt

__all__ = [
    "along_basis",
    "attention",
    "fold",
    "on_basis",
    "outputs",
    "pruned",
    "same_pattern",
    "start",
    "values",
]


def start(
    value: Float[Array, "rows dim"],
    normal: Float[Array, "features neuron"],
    inputs: int,
    diagonal: float | Array,
    heads: int,
) -> Weights:
    """The initial weights: delta on the first `inputs` diagonal entries of W_Q and W_K, W_V = delta times `value`, W_O normal
    with variance 1/m. All heads begin alike but for their part of W_O."""
    dim = value.shape[1]
    query = diagonal * jnp.diag((jnp.arange(dim) < inputs).astype(value.dtype))
    hidden = normal / jnp.sqrt(jnp.asarray(normal.shape[1], value.dtype))
    asking, value = (jnp.broadcast_to(one, (heads, *one.shape)) for one in (query, diagonal * value))
    return Weights(asking, asking, value, hidden)


def on_basis(weights: Weights, carry: Float[Array, "dim reduced"]) -> Weights:
    """Weights that act on tokens, as they act on coordinates in the basis of patterns and label."""
    query, key, value = (jnp.einsum("hkd,dr->hkr", one, carry) for one in weights[:3])
    return Weights(query, key, value, weights.hidden)


def along_basis(weights: Weights, carry: Float[Array, "dim reduced"]) -> Weights:
    """The same with what W_Q and W_K give taken in coordinates of the basis."""
    query, key = (jnp.einsum("kr,hks->hrs", carry, one) for one in (weights.query, weights.key))
    return weights._replace(query=query, key=key)


def attention(
    folded: Folded,
    tokens: Float[Array, "prompts contexts dim"],
    shown: Bool[Array, "prompts contexts"],
    query: Float[Array, "prompts dim"],
) -> Float[Array, "head prompts contexts"]:
    """attn_i of every head and prompt; what is not shown gets none."""
    asked = jnp.einsum("bd,hde->hbe", query, folded.product)
    logits = jnp.sum(asked[:, :, None, :] * tokens[None], axis=-1)
    return jax.nn.softmax(jnp.where(shown, logits, -jnp.inf), axis=-1)


def values(
    folded: Folded,
    tokens: Float[Array, "prompts contexts dim"],
    shown: Bool[Array, "prompts contexts"],
    query: Float[Array, "prompts dim"],
) -> Float[Array, "prompts features"]:
    """sum_i p_i attn_i, heads side by side: what `folded.hidden` is applied to."""
    seen = [_mixed(part, query, tokens, shown) for part in folded.product]
    return seen[0] if len(seen) == 1 else jnp.concatenate(seen, axis=-1)


def outputs(
    folded: Folded,
    votes: Float[Array, " neuron"],
    tokens: Float[Array, "prompts contexts dim"],
    shown: Bool[Array, "prompts contexts"],
    query: Float[Array, "prompts dim"],
) -> Float[Array, " prompts"]:
    """F of every prompt."""
    return perceptron(values(folded, tokens, shown, query), folded.hidden, votes[None])


@jax.custom_vjp
def _mixed(
    product: Float[Array, "dim dim"],
    query: Float[Array, "prompts dim"],
    tokens: Float[Array, "prompts contexts dim"],
    shown: Bool[Array, "prompts contexts"],
) -> Float[Array, "prompts dim"]:
    """h = sum_i p_i softmax_i(p_i . a) with a = `product`^T p_query. Tokens have no derivative; that in a is
    `sum_i s_i (c . (p_i - h)) p_i`. The one in `product` is written out: automatic differentiation wants the former turned,
    which is slow to make."""
    return _mixed_forward(product, query, tokens, shown)[0]


def _mixed_forward(product: Array, query: Array, tokens: Array, shown: Array) -> tuple[Array, tuple]:
    asked = query @ product
    logits = jnp.sum(asked[:, None] * tokens, axis=-1)
    share = jax.nn.softmax(jnp.where(shown, logits, -jnp.inf), axis=-1)
    mixed = jnp.sum(share[..., None] * tokens, axis=1)
    return mixed, (share, mixed, query, tokens)


def _mixed_backward(saved: tuple, cotangent: Array) -> tuple[Array, None, None, None]:
    share, mixed, query, tokens = saved
    along = jnp.sum(cotangent[:, None] * tokens, axis=-1) - jnp.sum(cotangent * mixed, axis=-1, keepdims=True)
    asked = jnp.sum((share * along)[..., None] * tokens, axis=1)
    return query.T @ asked, None, None, None


_mixed.defvjp(_mixed_forward, _mixed_backward)


# Looking inside --------------------------------------------------------------------------------------------------------


def same_pattern(prompt: Prompt) -> Bool[Array, "*n contexts"]:
    """Contexts that share the query's relevant pattern (N_*)."""
    return (prompt.relevant == prompt.query[..., None]) & prompt.shown


def pruned(votes: Float[Array, " neuron"], gone: Bool[Array, " neuron"]) -> Float[Array, " neuron"]:
    """The votes without the neurons that are gone; those that stay keep their 1/m."""
    return jnp.where(gone, 0, votes)
