"""One attention layer that reads the outputs of the columns it attends to (7.2):

    F(P) = sum_i s_i W_V p_i,    s = softmax_i(p_i^T W p_query),    W_V = (0  I),    p_i = (top; bottom) + c_step

Two exact ways: with the tokens themselves (W of size 2d x 2d), and in the basis of patterns and step encodings, where W is
a table
of (2M + K) x (M + K) numbers and a logit is a sum of six of them.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.studies.chain_of_thought.data import Prompt


def left(prompt: Prompt, scores: Float[Array, " rows"], patterns: int) -> Float[Array, " columns"]:
    """`p_i^T g` for a vector g in the basis (patterns as input; patterns as output; steps)."""
    out = jnp.where(prompt.bottom >= 0, scores[patterns + prompt.bottom], 0)
    into = jnp.where(prompt.top >= 0, scores[prompt.top], 0)
    return into + out + scores[2 * patterns + prompt.step]


def weights(table: Float[Array, "rows cols"], prompt: Prompt) -> Float[Array, " columns"]:
    """The attention of the query column, in the basis."""
    patterns = _patterns(table)
    logits = left(prompt, table[:, prompt.query] + table[:, patterns + prompt.query_step], patterns)
    return jax.nn.softmax(jnp.where(prompt.shown, logits, -jnp.inf))


def output(attention: Float[Array, " columns"], prompt: Prompt, patterns: int) -> Float[Array, " patterns"]:
    """F by pattern: the attention on columns that give it."""
    return (
        jnp.zeros(patterns, attention.dtype)
        .at[prompt.bottom]
        .add(jnp.where(prompt.bottom >= 0, attention, 0))
    )


def loss(table: Float[Array, "rows cols"], prompt: Prompt) -> Float[Array, ""]:
    """`1/2 |z - F|^2`."""
    patterns = _patterns(table)
    wanted = jax.nn.one_hot(prompt.label, patterns, dtype=table.dtype)
    return 0.5 * jnp.sum((wanted - output(weights(table, prompt), prompt, patterns)) ** 2)


def slope(
    table: Float[Array, "rows cols"], prompt: Prompt
) -> tuple[Float[Array, ""], Float[Array, "rows cols"]]:
    """Loss and gradient of one prompt by hand (F.66, its index mended): `sum_i s_i (F - z)^T W_V p_i (p_i - sum_r s_r p_r)
    p_query^T`."""
    patterns = _patterns(table)
    attention = weights(table, prompt)
    miss = output(attention, prompt, patterns) - jax.nn.one_hot(prompt.label, patterns, dtype=table.dtype)
    pull = attention * jnp.where(prompt.bottom >= 0, miss[prompt.bottom], 0)
    pull = pull - attention * jnp.sum(pull)
    scores = (
        jnp.zeros(table.shape[0], table.dtype).at[prompt.top].add(pull).at[patterns + prompt.bottom].add(pull)
    )
    scores = scores.at[2 * patterns + prompt.step].add(pull)
    moved = (
        jnp.zeros_like(table).at[:, prompt.query].add(scores).at[:, patterns + prompt.query_step].add(scores)
    )
    return 0.5 * jnp.sum(miss**2), moved


def _patterns(table: Float[Array, "rows cols"]) -> int:
    """M, from the (2M + K) x (M + K) shape of a table."""
    return table.shape[0] - table.shape[1]


# With the tokens themselves --------------------------------------------------------------------------------------------


def tokens_of(
    prompt: Prompt, patterns: Float[Array, "m dim"], encodings: Float[Array, "k dim"]
) -> tuple[Float[Array, "columns wide"], Float[Array, " wide"]]:
    """Context columns and query column with their positional encodings `c_k = (u_k; 0)`, in R^{2d}."""
    nothing = jnp.zeros_like(patterns[0])
    into = jnp.where((prompt.top >= 0)[:, None], patterns[prompt.top], nothing)
    out = jnp.where((prompt.bottom >= 0)[:, None], patterns[prompt.bottom], nothing)
    asked = jnp.concatenate([patterns[prompt.query] + encodings[prompt.query_step], nothing])
    return jnp.concatenate([into + encodings[prompt.step], out], axis=1), asked


def direct_loss(
    w: Float[Array, "wide wide"],
    prompt: Prompt,
    patterns: Float[Array, "m dim"],
    encodings: Float[Array, "k dim"],
) -> Float[Array, ""]:
    """`1/2 |z - F|^2` with W itself, for automatic differentiation."""
    columns, asked = tokens_of(prompt, patterns, encodings)
    logits = jnp.where(prompt.shown, columns @ (w @ asked), -jnp.inf)
    seen = jax.nn.softmax(logits) @ columns[:, patterns.shape[1] :]
    return 0.5 * jnp.sum((patterns[prompt.label] - seen) ** 2)


def in_basis(
    w: Float[Array, "wide wide"], patterns: Float[Array, "m dim"], encodings: Float[Array, "k dim"]
) -> Float[Array, "rows cols"]:
    """W in the basis of patterns and step encodings: all of it that clean prompts can see."""
    nothing = jnp.zeros_like(patterns)
    into, out = jnp.concatenate([patterns, nothing], 1), jnp.concatenate([nothing, patterns], 1)
    places = jnp.concatenate([encodings, jnp.zeros_like(encodings)], 1)
    return jnp.concatenate([into, out, places]) @ w @ jnp.concatenate([into, places]).T
