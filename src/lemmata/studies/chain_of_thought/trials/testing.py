"""Tests on chains that err, with noisy tokens: greedy chain of thought (Algorithm 4), in-context learning (7.8), and the
plain vote that trained attention tends to."""

import math
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lemmata.errors import require
from lemmata.kernels import kernel
from lemmata.parts.patterns import orthonormal
from lemmata.studies.chain_of_thought.data import (
    Chains,
    Maps,
    check_noise,
    check_transitions,
    draw_maps,
    row_accuracy_range,
    stepwise,
)
from lemmata.trial import Key, fixed

MASSES = (
    "same pattern, same step",
    "other pattern, same step",
    "same pattern, other step",
    "other pattern, other step",
)

Matrices = tuple[tuple[tuple[float, ...], ...], ...]


class Testing(eqx.Module):
    """Chains of the test (7.10 to 7.13): `match_fraction` (alpha') of the examples begin with the query's pattern; the
    document leaves the `others` free: they are `spread` over the other patterns, or all begin with `one` of them.

    `errors`: every step errs by a transition matrix of accuracy tau^(1/K) (`even`), or the first alone with accuracy tau
    (`single`), with primacy rho; `pairs-hold` and `pairs-fail` have tau_o = 0.4 and rho_o = 0.1, with Condition 7.3.2 met or
    missed in half of the rows; `given` takes the matrices in `transitions`, one a step, the likeliest output being right.

    `kind` of the test patterns: a `subset` of the training patterns, random `rotations` of them, `zero-sum` rotations, the
    `mean` (rotations whose first is the mean of all patterns, which is never learnt), or patterns `outside` their span.

    `noise` is the norm of what is added to every pattern of the context, anywhere orthogonal to the test patterns (7.11:
    `off-test`), or orthogonal to all that training has seen (`off-all`).
    """

    match_fraction: float = 0.8
    trajectory: float = 0.5
    primacy: float = 0.8
    noise: float = 0.2
    patterns: int = fixed(default=10)
    lengths: tuple[int, ...] = fixed(default=(1, 2, 3, 5, 8, 12, 20, 40))
    prompts: int = fixed(default=1000)
    others: Literal["spread", "one"] = fixed(default="spread")
    errors: Literal["even", "single", "pairs-hold", "pairs-fail", "given"] = fixed(default="even")
    transitions: Matrices = fixed(default=())
    kind: Literal["subset", "rotations", "zero-sum", "mean", "outside"] = fixed(default="subset")
    noise_space: Literal["off-test", "off-all"] = fixed(default="off-test")

    def __check_init__(self):
        require(
            0 < self.match_fraction <= 1,
            f"the share of matching examples lies in (0, 1], not {self.match_fraction}.",
        )
        require(self.patterns >= 2, f"a test needs at least two patterns, not {self.patterns}.")
        if self.errors in ("even", "single"):
            require(
                1 / self.patterns < self.trajectory <= 1,
                f"tau lies above 1/M' = {1 / self.patterns:.3g} (guessing) and is at most 1, not {self.trajectory}.",
            )
            require(0 < self.primacy < 1, f"the primacy rho lies between 0 and 1, not {self.primacy}.")
        require(
            bool(self.lengths) and min(self.lengths) >= 1 and list(self.lengths) == sorted(set(self.lengths)),
            f"test prompts have at least one example, in rising numbers, not {self.lengths}.",
        )
        require(self.prompts >= 1, f"a test needs at least one prompt, not {self.prompts}.")
        check_noise(self.noise)
        require(
            not self.errors.startswith("pairs") or self.patterns == 10,
            "the constructions in pairs have ten patterns.",
        )
        require(
            bool(self.transitions) == (self.errors == "given"),
            "transition matrices of one's own need both: test.errors=given and test.transitions.",
        )
        if self.errors == "given":
            self._check_given()

    def _check_given(self):
        try:
            given = np.asarray(self.transitions, float)
        except ValueError:
            given = np.zeros(0)
        check_transitions(given)
        require(
            given.shape[1] == self.patterns,  # pyright: ignore[reportGeneralTypeIssues]  (three dimensions, as just checked)
            f"the transition matrices are for {given.shape[1]} patterns; set test.patterns={given.shape[1]} too.",  # pyright: ignore[reportGeneralTypeIssues]  (as above)
        )
        ordered = np.sort(given, axis=-1)
        clear = ordered[..., -1] > ordered[..., -2] + 1e-12
        where = " of step ".join(str(1 + int(place)) for place in np.argwhere(~clear)[:1].ravel()[::-1])
        require(bool(clear.all()), f"row {where} of the transition matrices has no single likeliest output.")

    def check_steps(self, steps: int) -> None:
        """Refuse errors that K steps cannot have."""
        if self.errors == "given":
            k = len(self.transitions)
            require(k == steps, f"the transition matrices are for {k} steps; set data.steps={k} too.")
        if self.errors.startswith("pairs"):
            require(steps == 3, f"the constructions in pairs have three steps, not {steps}.")
        if self.errors in ("even", "single"):
            accuracy = self.trajectory ** (1 / steps) if self.errors == "even" else self.trajectory
            least = row_accuracy_range(self.primacy, self.patterns)[0]
            require(
                accuracy >= least - 1e-9,
                f"a primacy of {self.primacy:g} over {self.patterns} patterns needs steps that are right with probability "
                f"{least:.3g}; tau = {self.trajectory:g} gives {accuracy:.3g}.",
            )

    def task(self, key: Key, steps: int) -> tuple[Maps, Float[Array, "steps n n"]]:
        """A task of the test and its transition matrices A_k."""
        if self.errors.startswith("pairs"):
            return paired_task(self.errors == "pairs-hold")
        if self.errors == "given":
            matrices = jnp.asarray(self.transitions)
            return jnp.argmax(matrices, axis=-1), matrices
        maps = draw_maps(key, steps, self.patterns, "shift")
        tau = jnp.asarray(self.trajectory)
        if self.errors == "even":
            accuracy = jnp.full(steps, tau ** (1 / steps))
        else:
            accuracy = jnp.where(jnp.arange(steps) == 0, tau, 1.0)
        return maps, stepwise(maps, accuracy, self.primacy)


def paired_task(holds: bool) -> tuple[Maps, Float[Array, "steps n n"]]:
    """Ten patterns in five pairs and K = 3, with tau_o = 0.4 and rho_o = 0.1 (ours; the document gives no matrices)."""
    index = jnp.arange(10)
    onward, flip = (index + 2) % 10, index ^ 1
    maps = jnp.stack([onward, flip[onward], onward])
    hot = jax.nn.one_hot(jnp.arange(10), 10)
    first = 0.55 * hot[onward] + 0.45 * hot[flip[onward]]
    right = jnp.where(holds, 0.58, jnp.where(index % 2 == 0, 0.5, 0.47 / 0.9))[:, None]
    wrong = jnp.where(holds, 0.18, jnp.where(index % 2 == 0, 0.3, 0.17 / 0.9))[:, None]
    chosen = hot[flip[onward]] + hot[onward]
    second = right * hot[flip[onward]] + wrong * hot[onward] + (1 - right - wrong) / 8 * (1 - chosen)
    return maps, jnp.stack([first, second, hot[onward]])


# What W says to test tokens --------------------------------------------------------------------------------------------


def coordinates(test: Testing, key: Key, patterns: int, steps: int, dim: int) -> Float[Array, "n dim"]:
    """The test patterns in a frame that begins with the training patterns and the step encodings."""
    n, m = test.patterns, patterns
    if test.kind == "subset":
        return jnp.eye(dim)[jax.random.permutation(key, m)[:n]]
    if test.kind == "outside":
        return jnp.eye(dim)[m + steps : m + steps + n]
    if test.kind == "rotations":
        rows = orthonormal(key, n, m, jnp.zeros(()).dtype)
    else:
        mean = jnp.full((1, m), m**-0.5)
        free = jax.random.normal(key, (m, m))
        turned = jnp.linalg.qr(jnp.concatenate([mean, free - (free @ mean.T) @ mean])[:m].T)[0].T
        rows = turned[:n] if test.kind == "mean" else turned[1 : n + 1]
    return jnp.pad(rows, ((0, 0), (0, dim - m)))


class Scores(NamedTuple):
    """Logits of test columns by query pattern and step, as sums of parts: `into[q, k, i]` and `out[q, k, i]` of input and
    output pattern, `place[q, k, r]` of the step, `into_noise[q, k]` and `out_noise[q, k]` of one direction of noise each."""

    into: Float[Array, "n k n"]
    out: Float[Array, "n k n"]
    place: Float[Array, "n k k"]
    into_noise: Float[Array, "n k free"]
    out_noise: Float[Array, "n k free"]


def scores_of(
    test: Testing, wide: Float[Array, "wide dim"], rows: Float[Array, "n dim"], patterns: int, steps: int
) -> Scores:
    """What W, in the frame, says to test patterns with these coordinates and to noise orthogonal to them."""
    dim = wide.shape[1]
    asked = (wide @ rows.T).T[:, None] + wide[:, patterns : patterns + steps].T[None]
    upper, lower = asked[..., :dim], asked[..., dim:]
    if test.noise_space == "off-all":
        free = jnp.eye(dim, dtype=wide.dtype)[patterns + steps :]
    else:
        free = jnp.linalg.qr(rows.T, mode="complete")[0].T[rows.shape[0] :]
    place = upper[..., patterns : patterns + steps]
    return Scores(upper @ rows.T, lower @ rows.T, place, upper @ free.T, lower @ free.T)


def free_directions(test: Testing, data: Chains) -> int:
    """How many dimensions the noise has."""
    return data.dim - (data.patterns + data.steps if test.noise_space == "off-all" else test.patterns)


class Drawn(NamedTuple):
    """What chance decides about a prompt, whatever its length: the task, its transition probabilities added up, the chances
    that decide the states of every example, the directions of noise on each (one after another, as they are drawn); and the
    query's pattern."""

    maps: Maps
    reached: Float[Array, "steps n n"]
    chance: Float[Array, "most states"]
    normal: Float[Array, "most states*free"]
    query: Int[Array, ""]


def drawn(test: Testing, key: Key, task: tuple[Maps, Array], free: int, most: int, index: Array) -> Drawn:
    """A prompt of up to `most` examples."""
    maps, transitions = task
    walked, added = jax.random.split(key)
    states = maps.shape[0] + 1
    chance = jax.random.uniform(walked, (most * states,), transitions.dtype).reshape(most, states)
    normal = jax.random.normal(added, (most * states * free,), jnp.float32).reshape(most, states * free)
    return Drawn(maps, jnp.cumsum(transitions, axis=2), chance, normal, index % test.patterns)


class Example(NamedTuple):
    """Context chains by the indices of their patterns, noise on each, which of them the prompt shows, and the query's own
    right chain."""

    chains: Int[Array, "most states"]
    noise: Float[Array, "most states free"]
    given: Array
    asked: Int[Array, " states"]


def erring(test: Testing, given: Drawn, length: Array) -> Example:
    """A prompt of `length` examples that follow the transition matrices."""
    n, query, chance, place = test.patterns, given.query, given.chance, jnp.arange(given.chance.shape[0])
    other = n // 2 if test.others == "one" else 1 + jnp.floor((n - 1) * chance[:, 0]).astype(int)
    states = [jnp.where(place < matching(test, length), query, (query + other) % n)]
    asked = [query]
    for k, one in enumerate(given.maps):
        states.append(jnp.sum(chance[:, k + 1, None] >= given.reached[k, states[-1], :-1], axis=1))
        asked.append(one[asked[-1]])
    normal = given.normal.reshape(*chance.shape, given.normal.shape[1] // chance.shape[1])
    noise = test.noise * normal / jnp.linalg.norm(normal, axis=-1, keepdims=True)
    chains = jnp.stack(states, axis=1).astype(jnp.int32)
    return Example(chains, noise.astype(jnp.float32), place < length, jnp.stack(asked).astype(jnp.int32))


def matching(test: Testing, length: Array) -> Array:
    """How many of so many examples begin with the query's pattern."""
    return jnp.round(test.match_fraction * length)


class Reasoned(NamedTuple):
    """States after each step, attention on the four kinds of columns, and on every context column."""

    states: Int[Array, " steps"]
    masses: Float[Array, "steps four"]
    attention: Float[Array, "steps most steps"]


def reason(scores: Scores, example: Example) -> Reasoned:
    """Greedy chain of thought (Algorithm 4): the column with the largest product wins, since all patterns have norm 1."""
    chains, steps = example.chains, example.chains.shape[1] - 1
    top, bottom = chains[:, :-1], chains[:, 1:]
    shown = jnp.broadcast_to(example.given[:, None], top.shape).ravel()
    own, places = [example.asked[0]], jnp.broadcast_to(jnp.arange(steps), top.shape).ravel()
    masses, all_attention = [], []
    for k in range(steps):
        now = own[-1]
        into, out = scores.into[now, k], scores.out[now, k]
        noisy = (
            example.noise[:, :-1] @ scores.into_noise[now, k]
            + example.noise[:, 1:] @ scores.out_noise[now, k]
        )
        logits = (into[top] + out[bottom] + scores.place[now, k] + noisy).ravel()
        before, after = jnp.array(own[:-1], int), jnp.array(own[1:], int)
        earlier = into[before] + out[after] + scores.place[now, k, :k]
        every = jnp.concatenate([jnp.where(shown, logits, -jnp.inf), earlier])
        attention = jax.nn.softmax(every)
        inputs, outputs = jnp.concatenate([top.ravel(), before]), jnp.concatenate([bottom.ravel(), after])
        masses.append(split_masses(attention, inputs == now, jnp.append(places, jnp.arange(k)) == k))
        all_attention.append(attention[: logits.shape[0]].reshape(top.shape))
        own.append(jnp.argmax(jnp.zeros(into.shape[0], attention.dtype).at[outputs].add(attention)))
    return Reasoned(jnp.stack(own[1:]), jnp.stack(masses), jnp.stack(all_attention))


def split_masses(attention: Float[Array, " columns"], same: Array, now: Array) -> Float[Array, " four"]:
    """The attention on columns of same or other input pattern and same or other step, in the order of `MASSES`."""
    return jnp.stack(
        [jnp.sum(attention * part) for part in (same & now, ~same & now, same & ~now, ~same & ~now)]
    )


def answer(scores: Scores, example: Example) -> Int[Array, ""]:
    """In-context learning with the same layer (7.8): examples (x; y_K) at the first step, K - 1 empty columns after each."""
    query, first, last = example.asked[0], example.chains[:, 0], example.chains[:, -1]
    noisy = (
        example.noise[:, 0] @ scores.into_noise[query, 0] + example.noise[:, -1] @ scores.out_noise[query, 0]
    )
    logits = scores.into[query, 0, first] + scores.out[query, 0, last] + scores.place[query, 0, 0] + noisy
    empty = jnp.broadcast_to(scores.place[query, 0, 1:], (first.shape[0], scores.place.shape[-1] - 1))
    every = jnp.concatenate([logits[:, None], empty], axis=1)
    attention = jax.nn.softmax(jnp.where(example.given[:, None], every, -jnp.inf).ravel()).reshape(
        every.shape
    )[:, 0]
    return jnp.argmax(jnp.zeros(scores.into.shape[0], attention.dtype).at[last].add(attention))


def vote_chain(example: Example, ties: Float[Array, "steps n"]) -> Int[Array, " steps"]:
    """What trained attention tends to: at each step the most frequent output of the examples at the present state; `ties`
    (random numbers) break ties and empty votes."""
    state, found = example.asked[0], []
    for k in range(example.chains.shape[1] - 1):
        votes = example.given & (example.chains[:, k] == state)
        state = _most(example.chains[:, k + 1], votes, ties[k])
        found.append(state)
    return jnp.stack(found)


def vote_label(example: Example, ties: Float[Array, " n"]) -> Int[Array, ""]:
    """The most frequent final label of the examples that begin as the query."""
    return _most(example.chains[:, -1], example.given & (example.chains[:, 0] == example.asked[0]), ties)


def _most(labels: Int[Array, " most"], votes: Array, ties: Float[Array, " n"]) -> Int[Array, ""]:
    return jnp.argmax((0.5 * ties).at[labels].add(votes.astype(ties.dtype)))


# Many prompts ----------------------------------------------------------------------------------------------------------

TOGETHER = 1 << 17
"""Numbers of noise that are drawn together, and used before the next ones are: they stay in a cache."""


def outcome(
    test: Testing, scores: Scores, given: Drawn, ties: Float[Array, "states n"], length: Int[Array, ""]
) -> Float[Array, " numbers"]:
    """What comes out for a prompt with `length` examples: by step whether the chain of thought errs, and its attention on
    matching columns; whether in-context learning errs; whether the plain vote does, by step and in one go."""
    example = erring(test, given, length)
    found, right = reason(scores, example), example.asked[1:]
    parts = (
        found.states != right,
        found.masses[:, 0],
        answer(scores, example)[None] != right[-1],
        vote_chain(example, ties[:-1]) != right,
        vote_label(example, ties[-1])[None] != right[-1],
    )
    return jnp.concatenate([part.astype(ties.dtype) for part in parts])


def outcomes_in_jax(
    test: Testing, scores: Scores, given: Drawn, ties: Float[Array, "prompts states n"]
) -> Float[Array, "prompts lengths numbers"]:
    """`outcome` of many prompts at every length."""
    lengths = jnp.asarray(test.lengths)
    at_lengths = jax.vmap(lambda *one: outcome(test, scores, *one), in_axes=(None, None, 0))
    return jax.vmap(lambda *one: at_lengths(*one, lengths))(given, ties)


@kernel("chain_outcomes.cc", plain=outcomes_in_jax)
def outcomes(
    test: Testing, scores: Scores, given: Drawn, ties: Float[Array, "prompts states n"]
) -> Float[Array, "prompts lengths numbers"]:
    """`outcomes_in_jax`, in a tenth of the time."""
    lengths = jnp.asarray(test.lengths)
    drawn = given.maps, given.reached, given.chance, given.normal, ties, given.query
    asked = lengths, matching(test, lengths).astype(jnp.int32), test.noise
    return outcomes.call(
        "chain_outcomes", *scores, *drawn, *asked, lanes="sequential", spread=test.others == "spread"
    )


def errors(test: Testing, scores: Scores, steps: int, key: Key) -> dict[str, Array]:
    """Errors over many prompts at every length: of the layer and of the plain vote, step by step and in one go."""
    kind, free, most = scores.into.dtype, scores.into_noise.shape[-1], max(test.lengths)
    together = max(TOGETHER // max(most * (steps + 1) * free, 1), 1)
    parts = math.ceil(test.prompts / together)
    count = math.ceil(test.prompts / parts)

    def one(index: Array) -> tuple[Drawn, Array]:
        task, walked, tied = jax.random.split(jax.random.fold_in(key, index), 3)
        ties = jax.random.uniform(tied, ((steps + 1) * test.patterns,), kind).reshape(steps + 1, -1)
        return drawn(test, walked, test.task(task, steps), free, most, index), ties

    def some(part: Array) -> Array:
        return outcomes(test, scores, *jax.vmap(one)(part * count + jnp.arange(count)))

    found = jax.lax.map(some, jnp.arange(parts)).reshape(parts * count, len(test.lengths), -1)
    ends = np.cumsum([steps, steps, 1, steps])
    wrong, mass, icl, counted, final = jnp.split(jnp.mean(found[: test.prompts], axis=0), ends, axis=1)
    return {
        "cot_step_errors": wrong,
        "cot_error": jnp.mean(wrong, axis=1),
        "last_step_error": wrong[:, -1],
        "step_masses": mass,
        "icl_error": icl[:, 0],
        "cot_vote_error": jnp.mean(counted, axis=1),
        "icl_vote_error": final[:, 0],
    }
