"""K-step reasoning prompts, by the indices of their patterns: a column says which pattern goes in, which comes out, at
which step.

Patterns are orthonormal, so that indices carry everything that a clean prompt holds; `network.tokens_of` makes the vectors.
"""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.bench.patterns import each
from lemmata.errors import require
from lemmata.trial import Key, fixed

Maps = Int[Array, "steps patterns"]
"""`maps[k][i]` is the pattern that step k + 1 makes of pattern i."""


class Prompt(NamedTuple):
    """Context columns (`top`: step input, `bottom`: step output, `step`: 0 to K - 1; -1 as `bottom` for a column without value;
    `shown`: whether the column is there), then the query column: its pattern, its step and its label."""

    top: Int[Array, " columns"]
    bottom: Int[Array, " columns"]
    step: Int[Array, " columns"]
    shown: Bool[Array, " columns"]
    query: Int[Array, ""]
    query_step: Int[Array, ""]
    label: Int[Array, ""]


class Chains(eqx.Module):
    """Training prompts (7.1): `examples` correct chains and a query at step k; `match_fraction` (alpha) of the examples begin
    with the query's own pattern.

    `generator`: `shift` walks along a random cycle, step k by k places (the document's experiments); `random` draws K
    independent permutations, which may have fixed points.
    """

    match_fraction: float = 0.4
    dim: int = fixed(default=30)
    patterns: int = fixed(default=20)
    steps: int = fixed(default=3)
    examples: int = fixed(default=20)
    generator: Literal["shift", "random"] = fixed(default="shift")

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
        own = jnp.arange(self.examples) < jnp.round(self.match_fraction * self.examples)
        other = jax.random.randint(others, (self.examples,), 1, self.patterns)
        first = jnp.where(own, query, (query + other) % self.patterns)
        return prompt_of(chain(maps, first), chain(maps, query), index % self.steps)


def draw_maps(key: Key, steps: int, patterns: int, generator: str) -> Maps:
    """A task (2.2): `f_k(p_i) = p_{i + k}` along a random cycle p, or K random permutations."""
    if generator == "random":
        return jax.vmap(lambda k: jax.random.permutation(k, patterns))(jax.random.split(key, steps))
    cycle = jax.random.permutation(key, patterns)
    place = jnp.argsort(cycle)
    return cycle[(place[None] + 1 + jnp.arange(steps)[:, None]) % patterns]


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
        jnp.concatenate([jnp.ones(examples * steps, bool), earlier < at]),
        asked[at],
        at,
        asked[at + 1],
    )


# Chains that err -------------------------------------------------------------------------------------------------------


class Quality(NamedTuple):
    """What decides a vote: `trajectory` tau (7.15) and `primacy` rho of the steps, `label` tau_o and `label_primacy` rho_o of
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


def check_transitions(transitions: Float[np.ndarray, "steps n n"]) -> None:
    """Refuse matrices that are no transition matrices."""
    require(
        transitions.ndim == 3 and transitions.shape[1] == transitions.shape[2],
        "transition matrices are square, one a step.",
    )
    require(bool(np.all(transitions >= 0)), "transition probabilities are not negative.")
    off = float(np.abs(transitions.sum(-1) - 1).max())
    require(off < 1e-9, f"the rows of a transition matrix sum to one; one of these is off by {off:.3g}.")


def row_accuracy_range(primacy: float, patterns: int) -> tuple[float, float]:
    """The accuracies a for which a row with runner-up (1 - rho) a and the rest even has primacy exactly rho (2.6)."""
    return 1 / (1 + (patterns - 1) * (1 - primacy)), 1 / (2 - primacy)


def stepwise(
    maps: Maps, accuracy: Float[Array, " steps"], primacy: float | Array
) -> Float[Array, "steps n n"]:
    """A_k with the given accuracies: the right output a, the runner-up (the pattern after it) (1 - rho) a, the rest even; a
    step of accuracy 1 is exact."""
    n = maps.shape[1]
    right = jax.nn.one_hot(maps, n)
    second = jax.nn.one_hot((maps + 1) % n, n)
    a = jnp.asarray(accuracy)[:, None, None]
    runner = jnp.minimum((1 - primacy) * a, 1 - a)
    rest = (1 - a - runner) / max(n - 2, 1)
    return a * right + runner * second + rest * (1 - right - second)
