"""K-step reasoning prompts, by the indices of their patterns: a column says which pattern goes in, which comes out, at
which step.

Patterns are orthonormal, so that indices carry everything that a clean prompt holds; `network.tokens_of` makes the vectors,
and adds noise to them.
"""

import math
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lemmata.errors import require
from lemmata.own import Taken, require_between
from lemmata.parts.patterns import each, ranks
from lemmata.trial import Key, fixed

Maps = Int[Array, "steps patterns"]
"""`maps[k][i]` is the pattern that step k + 1 makes of pattern i."""


class Prompt(NamedTuple):
    """Context columns (`top`: step input, `bottom`: step output, `step`: 0 to K - 1, `count`: how often the column is there),
    then the query column: its pattern, its step and its label."""

    top: Int[Array, " columns"]
    bottom: Int[Array, " columns"]
    step: Int[Array, " columns"]
    count: Float[Array, " columns"]
    query: Int[Array, ""]
    query_step: Int[Array, ""]
    label: Int[Array, ""]


class OwnPrompts(NamedTuple):
    """Prompts that a user hands in: `train(trial, data=OwnPrompts(...))`. Steps take them in order as batches, again and again,
    and what a training looks at on the way is the first of them.

    `vectors`: orthonormal rows, the M patterns and then the K step encodings; None with the
    simulator `patterns`, which needs none.
    """

    prompts: Prompt
    vectors: Float[Array, "rows dim"] | None = None


class Chains(eqx.Module):
    """Training prompts (7.1): `examples` correct chains and a query at step k; `match_fraction` (alpha) of the examples begin
    with the query's own pattern.

    `generator`: `shift` walks along a random cycle, step k by k places (the document's experiments); `random` draws K
    independent permutations, which may have fixed points. `noise` is the norm of what is added to every pattern of the
    context, orthogonal to all patterns (none in the document's training; for the simulator `tokens`). `shuffled` puts the
    matching examples anywhere; one layer with encodings of steps cannot tell, others could.
    """

    match_fraction: float = 0.4
    noise: float = 0.0
    dim: int = fixed(default=30)
    patterns: int = fixed(default=20)
    steps: int = fixed(default=3)
    examples: int = fixed(default=20)
    generator: Literal["shift", "random"] = fixed(default="shift")
    shuffled: bool = fixed(default=False)

    def __check_init__(self):
        require(self.steps >= 1, f"a chain of thought has at least one step, not K = {self.steps}.")
        require(self.patterns >= 2, f"a task needs at least two patterns, not M = {self.patterns}.")
        require(
            self.patterns + self.steps <= self.dim,
            f"M + K = {self.patterns + self.steps} orthonormal patterns and step encodings need as many dimensions; dim is "
            f"{self.dim}.",
        )
        require(self.examples >= 1, f"a prompt needs at least one example, not {self.examples}.")
        require(
            0 < self.match_fraction <= 1,
            f"the fraction of matching examples lies in (0, 1], not {self.match_fraction}.",
        )
        check_noise(self.noise)
        require(
            self.generator == "random" or self.steps < self.patterns,
            f"a shift by K = {self.steps} places is a step of its own only with more than K patterns, not {self.patterns}.",
        )

    def maps(self, key: Key) -> Maps:
        return draw_maps(key, self.steps, self.patterns, self.generator)

    def draw(self, key: Key, count: int) -> Prompt:
        """Prompts with a task each; queries walk through all patterns and steps in turn, so that a batch of K M prompts has
        every pattern at every step once."""
        return each(self.sample, key, count)

    def sample(self, key: Key, index: Int[Array, ""]) -> Prompt:
        task, others = jax.random.split(key)
        maps = self.maps(task)
        query = (index // self.steps) % self.patterns
        place = jnp.arange(self.examples)
        if self.shuffled:
            place = jax.random.permutation(jax.random.fold_in(others, 1), self.examples)
        own = place < jnp.round(self.match_fraction * self.examples)
        other = jax.random.randint(others, (self.examples,), 1, self.patterns)
        past = query + other
        first = jnp.where(own, query, jnp.where(past < self.patterns, past, past - self.patterns))
        return prompt_of(chain(maps, first), chain(maps, query), index % self.steps)

    def expected(self) -> Prompt:
        """A prompt for every query step that holds each column as often as it is expected: what the prompts of one task tend to
        when there are many examples. All shift tasks look alike up to the names of the patterns; this is the one along
        0, 1, 2, ... with the query's chain through pattern 0."""
        require(self.generator == "shift", "only shift tasks look alike up to the names of the patterns.")
        k, m = self.steps, self.patterns
        own = jnp.round(self.match_fraction * self.examples)
        step, top = (part.ravel() for part in jnp.meshgrid(jnp.arange(k), jnp.arange(m), indexing="ij"))
        asked = jnp.cumsum(jnp.arange(k + 1)) % m  # the query's chain begins at 0 and takes 1, 2, ... places

        def at(now: Int[Array, ""]) -> Prompt:
            chained = top == asked[step]
            count = jnp.where(chained, own + (step < now), (self.examples - own) / (m - 1))
            return Prompt(top, (top + step + 1) % m, step, count, asked[now], now, asked[now + 1])

        return jax.vmap(at)(jnp.arange(k))


def check_noise(norm: float) -> None:
    """Refuse noise beyond what (7.11) allows."""
    require(
        0 <= norm <= 0.5**0.5 + 1e-9, f"the noise has norm at most sqrt(2)/2 = 0.707 (7.11), not {norm:g}."
    )


def draw_maps(key: Key, steps: int, patterns: int, generator: str) -> Maps:
    """A task (2.2): `f_k(p_i) = p_{i + k}` along a random cycle p, or K random permutations."""
    if generator == "random":
        return jax.vmap(lambda k: jax.random.permutation(k, patterns))(jax.random.split(key, steps))
    cycle, place = random_cycle(key, patterns)
    ahead = place[None] + 1 + jnp.arange(steps)[:, None]
    return cycle[ahead % patterns]


def random_cycle(key: Key, patterns: int) -> tuple[Int[Array, " patterns"], Int[Array, " patterns"]]:
    """`jax.random.permutation(key, patterns)` and the place of every pattern in it, without sorting: a place is the rank of a
    random word. (Above 1625 patterns words could be equal, and places are shuffled twice.)"""
    place = None
    for _ in range(math.ceil(3 * math.log(patterns) / math.log(2**32 - 1))):
        key, own = jax.random.split(key)
        rank = ranks(jax.random.bits(own, (patterns,), jnp.uint32))
        place = rank if place is None else rank[place]
    assert place is not None
    return jnp.zeros_like(place).at[place].set(jnp.arange(patterns), unique_indices=True), place


def chain(maps: Maps, first: Int[Array, "*n"]) -> Int[Array, "*n states"]:
    """The states of chains that follow a task without error: `y_0, ..., y_K`."""
    states = [first]
    for one in maps:
        states.append(one[states[-1]])
    return jnp.stack(states, axis=-1)


def prompt_of(
    context: Int[Array, "examples states"], asked: Int[Array, " states"], at: Int[Array, ""]
) -> Prompt:
    """The prompt (7.1) with the query at step `at` (from 0): all context columns, then the query's own earlier columns."""
    steps = asked.shape[0] - 1
    examples = context.shape[0]
    step = jnp.arange(steps)
    earlier = step[: steps - 1]
    return Prompt(
        jnp.concatenate([context[:, :-1].ravel(), asked[: steps - 1]]),
        jnp.concatenate([context[:, 1:].ravel(), asked[1:steps]]),
        jnp.concatenate([jnp.tile(step, examples), earlier]),
        jnp.concatenate([jnp.ones(examples * steps, jnp.float32), (earlier < at).astype(jnp.float32)]),
        asked[at],
        at,
        asked[at + 1],
    )


# Prompts of one's own --------------------------------------------------------------------------------------------------


def own_form(data: Chains, key: Key, dtype: np.dtype | None) -> Taken:
    """Say which prompts a training takes: any number of those that `data` could draw, and vectors of a type (None: none). (It
    leaves the weights open.)"""
    drawn = jax.eval_shape(lambda: data.draw(key, 1))
    shape = data.patterns + data.steps, data.dim
    vectors = None if dtype is None else jax.ShapeDtypeStruct(shape, dtype)
    return Taken(OwnPrompts(drawn, vectors), None, OwnPrompts(True, False if vectors else None))  # pyright: ignore[reportArgumentType]  (answers in place of arrays)


def check_own(data: Chains, own: OwnPrompts) -> None:
    """Refuse prompts whose numbers mean nothing, and vectors that are not orthonormal."""
    ends = dict.fromkeys(("top", "bottom", "query", "label"), data.patterns)
    for name, many in (ends | dict.fromkeys(("step", "query_step"), data.steps)).items():
        require_between(f"data.prompts.{name}", getattr(own.prompts, name), 0, many - 1)
    count = np.asarray(own.prompts.count)
    require(bool(np.all(count >= 0)), f"data.prompts.count must not be negative, not {count.min():g}.")
    require(
        bool(np.all(np.any(count > 0, axis=1))),
        "data.prompts.count leaves out all columns of a prompt; every prompt shows at least one.",
    )
    if own.vectors is not None:
        check_patterns(np.asarray(own.vectors), data.patterns + data.steps, data.dim)


# Chains that err -------------------------------------------------------------------------------------------------------


class Quality(NamedTuple):
    """What decides a vote: `trajectory` tau (7.17) and `primacy` rho of the steps, `label` tau_o and `label_primacy` rho_o of
    input to final output, and in how many rows the most likely final output is the right one (Condition 7.3.2: all)."""

    trajectory: float
    primacy: float
    label: float
    label_primacy: float
    right_rows: float


def quality(transitions: Float[np.ndarray, "steps n n"], maps: Int[np.ndarray, "steps n"]) -> Quality:
    """tau, rho, tau_o, rho_o of a task with step-wise transition matrices A_k, and the share of rows that Condition 7.3.2
    holds in."""
    check_transitions(transitions)
    rows = np.arange(maps.shape[1])
    state, reached, primacy = rows, np.ones(len(rows)), 1.0
    for matrix, one in zip(transitions, maps, strict=True):
        right = matrix[rows, one]
        rest = matrix.copy()
        rest[rows, one] = -np.inf
        primacy = min(primacy, float(np.min(1 - rest.max(1) / right)) if len(rows) > 1 else 1.0)
        reached = reached * matrix[state, one[state]]
        state = one[state]
    whole = np.linalg.multi_dot(list(transitions)) if len(transitions) > 1 else transitions[0]
    ordered = np.sort(whole, axis=1)
    gap = float(np.min(1 - ordered[:, -2] / ordered[:, -1]))
    return Quality(
        float(reached.min()),
        primacy,
        float(ordered[:, -1].min()),
        gap,
        float(np.mean(whole.argmax(1) == state)),
    )


def check_patterns(patterns: np.ndarray, count: int, dim: int) -> None:
    """Refuse patterns that are not orthonormal."""
    given = np.asarray(patterns, float)
    require(
        given.shape == (count, dim), f"{count} patterns in {dim} dimensions are asked for, not {given.shape}."
    )
    off = float(np.abs(given @ given.T - np.eye(count)).max())
    require(off < 1e-5, f"patterns are orthonormal; two of these have a product that is off by {off:.3g}.")


def check_transitions(transitions: np.ndarray) -> None:
    """Refuse matrices that are no transition matrices."""
    require(
        transitions.ndim == 3 and transitions.shape[1] == transitions.shape[2],
        "transition matrices are square, one a step.",
    )
    require(bool(np.all(transitions >= 0)), "transition probabilities are not negative.")
    off = float(np.abs(transitions.sum(-1) - 1).max())
    require(off < 1e-9, f"the rows of a transition matrix sum to one; one of these is off by {off:.3g}.")


def row_accuracy_range(primacy: float, patterns: int) -> tuple[float, float]:
    """The accuracies a for which a row with runner-up (1 - rho) a and the rest even has primacy exactly rho: below the first
    the rest would beat the runner-up, above the second there is too little left for it and the primacy is larger."""
    return 1 / (1 + (patterns - 1) * (1 - primacy)), 1 / (2 - primacy)


def stepwise(
    maps: Maps, accuracy: Float[Array, " steps"], primacy: float | Array
) -> Float[Array, "steps n n"]:
    """A_k with the given accuracies: the right output a, the runner-up (the next pattern along the task's cycle, `f_1` of it)
    (1 - rho) a, the rest even; a step of accuracy 1 is exact. Every query then has the same law."""
    n = maps.shape[1]
    right = jax.nn.one_hot(maps, n)
    second = jax.nn.one_hot(maps[0][maps], n)
    a = jnp.asarray(accuracy)[:, None, None]
    runner = jnp.minimum((1 - primacy) * a, 1 - a)
    rest = (1 - a - runner) / max(n - 2, 1)
    return a * right + runner * second + rest * (1 - right - second)
