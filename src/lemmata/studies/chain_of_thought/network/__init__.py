"""One attention layer that reads the outputs of the columns it attends to (7.2):

    F(P) = sum_i s_i W_V p_i,    s = softmax_i(p_i^T W p_query),    W_V = (0  I),    p_i = (top; bottom) + c_step

Three exact ways: with the tokens themselves (W of size 2d x 2d); in the basis of patterns and step encodings, where W is a
table of (2M + K) x (M + K) numbers and a logit is a sum of six of them; and, for prompts of expected counts, by the classes of
entries that a renaming of the patterns carries into each other. Then layers of it on top of each other.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from lemmata.kernels import kernel, refuse_unless
from lemmata.studies.chain_of_thought.data import Chains, Prompt
from lemmata.trial import Key


def weights(table: Float[Array, "rows cols"], prompt: Prompt) -> Float[Array, " columns"]:
    """The attention of the query column, in the basis."""
    patterns = _patterns(table)
    asked = table[:, prompt.query] + table[:, patterns + prompt.query_step]
    logits = asked[prompt.top] + asked[patterns + prompt.bottom] + asked[2 * patterns + prompt.step]
    return counted_softmax(logits, prompt.count)


def counted_softmax(logits: Float[Array, " n"], count: Float[Array, " n"]) -> Float[Array, " n"]:
    """Softmax over columns each of which is there `count` times; not at all where that is 0."""
    there = count > 0
    often = jnp.log(jnp.where(there, count, 1).astype(logits.dtype))
    return jax.nn.softmax(jnp.where(there, logits + often, -jnp.inf))


def output(attention: Float[Array, " columns"], prompt: Prompt, patterns: int) -> Float[Array, " patterns"]:
    """F by pattern: the attention on columns that give it."""
    return jnp.zeros(patterns, attention.dtype).at[prompt.bottom].add(attention)


def loss(table: Float[Array, "rows cols"], prompt: Prompt) -> Float[Array, ""]:
    """`1/2 |z - F|^2`."""
    patterns = _patterns(table)
    wanted = jax.nn.one_hot(prompt.label, patterns, dtype=table.dtype)
    return 0.5 * jnp.sum((wanted - output(weights(table, prompt), prompt, patterns)) ** 2)


def slope(
    table: Float[Array, "rows cols"], prompts: Prompt
) -> tuple[Float[Array, ""], Float[Array, "rows cols"]]:
    """Mean loss and gradient over prompts by hand (F.66, its index mended): `sum_i s_i (F - z)^T W_V p_i (p_i - sum_r s_r p_r)
    p_query^T`."""
    patterns, steps = _patterns(table), table.shape[1] - _patterns(table)

    def pulls(prompt: Prompt) -> tuple[Array, Array]:
        attention = weights(table, prompt)
        miss = output(attention, prompt, patterns) - jax.nn.one_hot(prompt.label, patterns, dtype=table.dtype)
        pull = attention * miss[prompt.bottom]
        pull = pull - attention * jnp.sum(pull)
        at = jnp.concatenate([prompt.top, patterns + prompt.bottom, 2 * patterns + prompt.step])
        return 0.5 * jnp.sum(miss**2), jnp.zeros(table.shape[0], table.dtype).at[at].add(jnp.tile(pull, 3))

    losses, left = jax.vmap(pulls)(prompts)
    asked = jnp.concatenate(
        [
            jax.nn.one_hot(prompts.query, patterns, dtype=table.dtype),
            jax.nn.one_hot(prompts.query_step, steps, dtype=table.dtype),
        ],
        axis=1,
    )
    return jnp.mean(losses), left.T @ asked / losses.shape[0]


# On fresh prompts -------------------------------------------------------------------------------------------------------

MOST = 1625
"""Patterns of a task up to which the kernel draws: above, random words could be equal, and a cycle is shuffled twice."""


def slope_of_drawn(
    data: Chains, table: Float[Array, "rows cols"], key: Key, count: int
) -> tuple[Float[Array, ""], Float[Array, "rows cols"]]:
    """`slope` on the prompts that are drawn from a key."""
    return slope(table, data.draw(key, count))


@kernel("chain_fresh.cc", plain=slope_of_drawn)
def fresh_slope(
    data: Chains, table: Float[Array, "rows cols"], key: Key, count: int
) -> tuple[Float[Array, ""], Float[Array, "rows cols"]]:
    """`slope_of_drawn`, in a tenth of the time."""
    known = data.generator == "shift" and not data.shuffled and data.patterns <= MOST
    wide = jax.dtypes.canonicalize_dtype(int) == jnp.int64
    refuse_unless(known and wide, "the kernel draws shift tasks, where JAX has whole numbers of 64 bits")
    own = jnp.clip(jnp.round(data.match_fraction * data.examples), 0, data.examples).astype(jnp.int32)
    given = table, jax.random.key_data(key), own
    return fresh_slope.call("chain_fresh", *given, prompts=count, examples=data.examples)


def _patterns(table: Float[Array, "rows cols"]) -> int:
    """M, from the (2M + K) x (M + K) shape of a table."""
    return table.shape[0] - table.shape[1]


# With the tokens themselves --------------------------------------------------------------------------------------------


class Tokens(NamedTuple):
    """A prompt as vectors in R^{2d}: context columns and query column with their positional encodings, and the label."""

    columns: Float[Array, "columns wide"]
    count: Float[Array, " columns"]
    asked: Float[Array, " wide"]
    label: Float[Array, " dim"]


def tokens_of(
    prompt: Prompt,
    patterns: Float[Array, "m dim"],
    encodings: Float[Array, "k dim"],
    noise: Float[Array, "columns two dim"] | float = 0.0,
) -> Tokens:
    """The tokens of a prompt, encodings `c_k = (u_k; 0)`; `noise` is added to the two halves of every column."""
    clean = jnp.stack([patterns[prompt.top], patterns[prompt.bottom]], axis=1) + noise
    columns = clean.at[:, 0].add(encodings[prompt.step]).reshape(clean.shape[0], -1)
    asked = jnp.concatenate(
        [patterns[prompt.query] + encodings[prompt.query_step], jnp.zeros_like(patterns[0])]
    )
    return Tokens(columns, prompt.count, asked, patterns[prompt.label])


def direct_loss(w: Float[Array, "wide wide"], tokens: Tokens) -> Float[Array, ""]:
    """`1/2 |z - F|^2` with W itself, for automatic differentiation."""
    attention = counted_softmax(tokens.columns @ (w @ tokens.asked), tokens.count)
    seen = attention @ tokens.columns[:, tokens.label.shape[0] :]
    return 0.5 * jnp.sum((tokens.label - seen) ** 2)


def in_frame(w: Float[Array, "wide wide"], frame: Float[Array, "dim dim"]) -> Float[Array, "wide dim"]:
    """W between columns and queries, both in the coordinates of an orthonormal frame of R^d (queries have no lower half)."""
    dim = frame.shape[0]
    upper, lower = w[:dim, :dim], w[dim:, :dim]
    return jnp.concatenate([frame @ upper @ frame.T, frame @ lower @ frame.T])


def completed(vectors: Float[Array, "rows dim"]) -> Float[Array, "dim dim"]:
    """An orthonormal frame of R^d that begins with these orthonormal vectors."""
    rest = jnp.linalg.qr(vectors.T, mode="complete")[0].T[vectors.shape[0] :]
    return jnp.concatenate([vectors, rest])


def table_of(wide: Float[Array, "wide dim"], patterns: int, steps: int) -> Float[Array, "rows cols"]:
    """The table of W: all of it that clean prompts can see, when the frame begins with patterns and step encodings."""
    seen = wide[:, : patterns + steps]
    lower = wide.shape[1]
    return jnp.concatenate(
        [seen[:patterns], seen[lower : lower + patterns], seen[patterns : patterns + steps]]
    )


def with_table(wide: Float[Array, "wide dim"], table: Float[Array, "rows cols"]) -> Float[Array, "wide dim"]:
    """W with another table; what clean prompts cannot see stays as it was."""
    patterns, cols, lower = _patterns(table), table.shape[1], wide.shape[1]
    wide = wide.at[:patterns, :cols].set(table[:patterns])
    wide = wide.at[lower : lower + patterns, :cols].set(table[patterns : 2 * patterns])
    return wide.at[patterns:cols, :cols].set(table[2 * patterns :])


# By classes of entries --------------------------------------------------------------------------------------------------


class Classes(NamedTuple):
    """A table that does not change when patterns are renamed: one number for every class of entries.

    `into` and `out`: (same, other) of a column's input or output pattern with the query's; `step`: a column's step with any
    query pattern; `into_step`, `out_step`: any pattern with the query's step; `place`: a column's step with the query's.
    """

    into: Float[Array, " two"]
    out: Float[Array, " two"]
    step: Float[Array, " k"]
    into_step: Float[Array, " k"]
    out_step: Float[Array, " k"]
    place: Float[Array, "k k"]


def expand(classes: Classes, patterns: int) -> Float[Array, "rows cols"]:
    """The table with these numbers."""
    same = jnp.eye(patterns, dtype=classes.place.dtype)

    def block(two: Array) -> Array:
        return two[0] * same + two[1] * (1 - same)

    def along(row: Array) -> Array:
        return jnp.broadcast_to(row, (patterns, row.shape[0]))

    return jnp.concatenate(
        [
            jnp.concatenate([block(classes.into), along(classes.into_step)], axis=1),
            jnp.concatenate([block(classes.out), along(classes.out_step)], axis=1),
            jnp.concatenate([along(classes.step).T, classes.place], axis=1),
        ]
    )


def averaged(table: Float[Array, "rows cols"]) -> Classes:
    """The mean of every class of entries of a table."""
    m = _patterns(table)

    def two(block: Array) -> Array:
        same = jnp.trace(block) / m
        return jnp.stack([same, (jnp.sum(block) - jnp.trace(block)) / (m * (m - 1))])

    into, out, places = table[:m], table[m : 2 * m], table[2 * m :]
    return Classes(
        two(into[:, :m]),
        two(out[:, :m]),
        jnp.mean(places[:, :m], axis=1),
        jnp.mean(into[:, m:], axis=0),
        jnp.mean(out[:, m:], axis=0),
        places[:, m:],
    )


def column_products(classes: Classes, patterns: int) -> Float[Array, " four"]:
    """`p'^T G p` between two context columns of same or other input pattern and same or other step (same and other pattern of
    the same step, then of other steps), the mean over all such pairs; outputs are any pattern but the input, equally often."""
    k = classes.place.shape[0]
    own = jnp.trace(classes.place) / k
    other = (jnp.sum(classes.place) - jnp.trace(classes.place)) / max(k * (k - 1), 1)
    around = jnp.mean(classes.step) + jnp.mean(classes.into_step) + jnp.mean(classes.out_step)
    mixed = (classes.out[0] + (patterns - 2) * classes.out[1]) / (patterns - 1)
    by_pattern = classes.into + jnp.stack([classes.out[1], mixed]) + around
    return jnp.concatenate([by_pattern + own, by_pattern + other])


# Layers on top of each other -------------------------------------------------------------------------------------------


class Layers(NamedTuple):
    """Key-query products W and values V of every layer and head."""

    w: Float[Array, "layers heads wide wide"]
    v: Float[Array, "layers heads wide wide"]


def sinusoids(positions: Float[Array, " n"], width: int) -> Float[Array, "n width"]:
    """`sin(pos / 10000^(2i/width))` and the cosine, in turns: the standard encoding of positions."""
    rates = 10000.0 ** (-jnp.arange(0, width, 2) / width)
    angles = positions[:, None] * rates
    return jnp.stack([jnp.sin(angles), jnp.cos(angles)], axis=-1).reshape(positions.shape[0], -1)[:, :width]


def climb(
    layers: Layers, columns: Float[Array, "n wide"], seen: Bool[Array, "n n"]
) -> tuple[Float[Array, " wide"], Float[Array, "layers heads n"]]:
    """Columns through all layers: each adds what its heads read from the columns that it may see (`seen`), its own not among
    them. The last column is the query's: what became of it, and its attention in every layer and head."""
    attention = []
    for w, v in zip(layers.w, layers.v, strict=True):
        logits = jnp.einsum("na,hab,mb->hnm", columns, jnp.swapaxes(w, 1, 2), columns)
        paid = jax.nn.softmax(jnp.where(seen, logits, -jnp.inf), axis=-1)
        attention.append(paid[:, -1])
        columns = columns + jnp.einsum("hnm,mb,hab->na", paid, columns, v)
    return columns[-1], jnp.stack(attention)
