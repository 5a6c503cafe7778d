"""One training of the attention layer on reasoning prompts, and its errors on chains that err: step by step and in one go."""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from lemmata.bench.patterns import each, orthonormal
from lemmata.descent import Descent, Draw, Learner, Learning
from lemmata.errors import require
from lemmata.studies.chain_of_thought import network
from lemmata.studies.chain_of_thought.data import Chains, Maps, Prompt, draw_maps, prompt_of, stepwise
from lemmata.trial import Key, Precision, Record, Tracks, fixed

MASSES = (
    "same pattern, same step",
    "other pattern, same step",
    "same pattern, other step",
    "other pattern, other step",
)


class Testing(eqx.Module):
    """Chains of the test (2.4): `match_fraction` (alpha') of the examples begin with the query's pattern; every step errs by a
    transition matrix of accuracy tau^(1/K) (`even`), or one step alone of accuracy tau (`single`), with primacy rho;
    `pairs` are the
    constructions of 2.6 with tau_o = 0.4 and rho_o = 0.1 in which Condition 7.3.2 holds, or fails in half of the rows.

    Test patterns: a `subset` of the training patterns, random `rotations` of them, `zero-sum` rotations, the `mean` (a
    rotation whose
    first row is the mean of all patterns, which is never learnt), or patterns `outside` their span.
    """

    match_fraction: float = 0.8
    trajectory: float = 0.5
    primacy: float = 0.8
    patterns: int = fixed(default=10)
    lengths: tuple[int, ...] = fixed(default=(1, 2, 3, 5, 8, 12, 20, 40))
    prompts: int = fixed(default=1000)
    errors: Literal["even", "single", "pairs-hold", "pairs-fail"] = fixed(default="even")
    kind: Literal["subset", "rotations", "zero-sum", "mean", "outside"] = fixed(default="subset")

    def __check_init__(self):
        require(
            0 < self.match_fraction <= 1,
            f"the share of matching examples lies in (0, 1], not {self.match_fraction}.",
        )
        require(self.patterns >= 2, f"a test needs at least two patterns, not {self.patterns}.")
        require(
            1 / self.patterns < self.trajectory <= 1,
            f"tau lies above 1/M' = {1 / self.patterns:.3g} (guessing) and is at most 1, not {self.trajectory}.",
        )
        require(0 < self.primacy < 1, f"the primacy rho lies between 0 and 1, not {self.primacy}.")
        require(
            not self.errors.startswith("pairs") or self.patterns == 10,
            "the constructions in pairs have ten patterns.",
        )

    def task(self, key: Key, steps: int) -> tuple[Maps, Float[Array, "steps n n"]]:
        """A task of the test and its transition matrices A_k."""
        if self.errors.startswith("pairs"):
            return paired_task(self.errors == "pairs-hold", steps)
        maps = draw_maps(key, steps, self.patterns, "shift")
        tau = jnp.asarray(self.trajectory)
        if self.errors == "even":
            accuracy = jnp.full(steps, tau ** (1 / steps))
        else:
            accuracy = jnp.where(jnp.arange(steps) == 0, tau, 1.0)
        return maps, stepwise(maps, accuracy, self.primacy)


def paired_task(holds: bool, steps: int) -> tuple[Maps, Float[Array, "steps n n"]]:
    """The constructions of 2.6 for ten patterns in five pairs and K = 3: tau_o = 0.4, rho_o = 0.1."""
    require(steps == 3, f"the constructions in pairs have three steps, not {steps}.")
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


class World(NamedTuple):
    """Patterns and step encodings (for the simulator `tokens`), the key of the test, and W at the start in their basis."""

    patterns: Float[Array, "m dim"]
    encodings: Float[Array, "k dim"]
    test: Array
    begun: Float[Array, "rows cols"]


class Reasoning(Learner):
    """Training of W on the squared loss over fresh prompts (Algorithm 3), then testing (Algorithm 4 and 7.8).

    `simulator`: `patterns` trains W in the basis of patterns and step encodings, which is all that clean prompts see;
    `tokens` trains
    the 2d x 2d weights themselves. `timed` looks in every step for the ends of the two stages.
    """

    name: ClassVar[str] = "chain-of-thought/reasoning"
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "masses": ("mass",),
        "step_masses": ("length", "reasoning_step"),
        "cot_error": ("length",),
        "cot_step_errors": ("length", "reasoning_step"),
        "icl_error": ("length",),
        "cot_vote_error": ("length",),
        "icl_vote_error": ("length",),
    }
    paired: ClassVar[tuple[str, ...]] = ("test", "simulator", "precision", "descent")

    data: Chains = Chains()
    test: Testing = Testing()
    descent: Descent = Descent(
        loss="squared", learning_rate=10.0, batches="fresh", batch=60, stop="cap", steps=600, logs=30
    )
    init_std: float = 0.01
    simulator: Literal["patterns", "tokens"] = fixed(default="patterns")
    watched: int = fixed(default=240)
    timed: bool = fixed(default=False)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(
            self.descent.batches == "fresh", "every step sees fresh prompts; leave descent.batches at fresh."
        )
        require(
            self.test.patterns <= self.data.patterns - (self.test.kind == "zero-sum"),
            f"{self.test.patterns} test patterns do not fit into the span of {self.data.patterns}.",
        )

    def draw(self, key: Key) -> Draw:
        frame_key, weight_key, test = jax.random.split(key, 3)
        d, dtype = self.data, jnp.dtype(self.precision)
        frame = orthonormal(frame_key, d.patterns + d.steps, d.dim, dtype)
        w = self.init_std * jax.random.normal(weight_key, (2 * d.dim, 2 * d.dim), dtype)
        table = network.in_basis(w, frame[: d.patterns], frame[d.patterns :])
        world = World(frame[: d.patterns], frame[d.patterns :], jax.random.key_data(test), table)
        return Draw(table if self.simulator == "patterns" else w, None, world)

    def fresh(self, key: Key, world: World, count: int) -> Prompt:
        return self.data.draw(key, count)

    def objective(self, params, batch: Prompt, world: World, key: Key) -> Float[Array, ""]:
        if self.simulator == "patterns":
            return jnp.mean(jax.vmap(lambda p: network.loss(params, p))(batch))
        return jnp.mean(
            jax.vmap(lambda p: network.direct_loss(params, p, world.patterns, world.encodings))(batch)
        )

    def slope(self, params, batch: Prompt, world: World, key: Key):
        if self.simulator == "tokens":
            return jax.value_and_grad(self.objective)(params, batch, world, key)
        losses, slopes = jax.vmap(lambda p: network.slope(params, p))(batch)
        return jnp.mean(losses), jnp.mean(slopes, axis=0)

    def table(self, state: Learning) -> Float[Array, "rows cols"]:
        """W in the basis of patterns and step encodings."""
        if self.simulator == "patterns":
            return state.params
        return network.in_basis(state.params, state.world.patterns, state.world.encodings)

    def watch(self, state: Learning) -> Record:
        table = self.table(state)
        prompts = self._watched(state)
        masses = self._masses(state)
        m = self.data.patterns
        block = table[:m, :m]
        diagonal = jnp.mean(jnp.diag(block))
        return {
            "loss": jnp.mean(jax.vmap(lambda p: network.loss(table, p))(prompts)),
            "masses": masses,
            "diagonal": diagonal,
            "off_diagonal": (jnp.sum(block) - jnp.trace(block)) / (m * (m - 1)),
            "step_gap": _step_gap(table, m),
        }

    def track(self, state: Learning) -> Tracks:
        """When attention has left the other steps (5 % of it are left there), and when 80 % of it lie on matching columns."""
        if not self.timed:
            return Tracks()
        masses = self._masses(state)
        return Tracks(first={"stage_one": masses[2] + masses[3] < 0.05, "matched": masses[0] > 0.8})

    def _watched(self, state: Learning) -> Prompt:
        return self.data.draw(jax.random.wrap_key_data(state.world.test), self.watched)

    def _masses(self, state: Learning) -> Float[Array, " four"]:
        table = self.table(state)
        masses = jax.vmap(lambda p: split_masses(network.weights(table, p), p))(self._watched(state))
        return jnp.mean(masses, axis=0)

    def record(self, state: Learning) -> Record:
        table = self.table(state)
        m, moved = self.data.patterns, table - state.world.begun
        blocks = (moved[:m], moved[m : 2 * m], moved[2 * m :])
        found = jax.lax.map(
            lambda length: test_errors(self, table, state, length), jnp.asarray(self.test.lengths)
        )
        seen = self.watch(state)
        kept = {name: seen[name] for name in ("loss", "masses", "diagonal", "off_diagonal")}
        drift = jnp.max(jnp.stack([jnp.max(jnp.abs(jnp.sum(block, axis=0))) for block in blocks]))
        return {**kept, **found, "drift": drift}


def split_masses(attention: Float[Array, " columns"], prompt: Prompt) -> Float[Array, " four"]:
    """The attention on columns of same or other input pattern and same or other step, in the order of `MASSES`."""
    same, now = prompt.top == prompt.query, prompt.step == prompt.query_step
    return jnp.stack(
        [jnp.sum(attention * part) for part in (same & now, ~same & now, same & ~now, ~same & ~now)]
    )


def _step_gap(table: Float[Array, "rows cols"], patterns: int) -> Float[Array, ""]:
    """The mean logit of a column's step encoding with the query's own, over that with others."""
    block = table[2 * patterns :, patterns:]
    k = block.shape[0]
    other = (jnp.sum(block) - jnp.trace(block)) / max(k * (k - 1), 1)
    return jnp.trace(block) / k - other


# Testing ---------------------------------------------------------------------------------------------------------------


def coordinates(trial: Reasoning, key: Key) -> Float[Array, "n m"]:
    """The test patterns in the basis of the training patterns (rows; zero for patterns outside their span)."""
    n, m = trial.test.patterns, trial.data.patterns
    if trial.test.kind == "subset":
        return jnp.eye(m)[jax.random.permutation(key, m)[:n]]
    if trial.test.kind == "outside":
        return jnp.zeros((n, m))
    mean = jnp.full((1, m), m**-0.5)
    if trial.test.kind == "rotations":
        return orthonormal(key, n, m, jnp.dtype(trial.precision))
    free = jax.random.normal(key, (m, m))
    rows = jnp.linalg.qr(jnp.concatenate([mean, free - (free @ mean.T) @ mean])[:m].T)[0].T
    rows = rows.at[0].set(jnp.abs(rows[0]))
    return rows[:n] if trial.test.kind == "mean" else rows[1 : n + 1]


class Scores(NamedTuple):
    """Logits of test columns by query pattern and step: `into[q, k, i]`, `out[q, k, i]`, `place[q, k, r]`."""

    into: Float[Array, "n k n"]
    out: Float[Array, "n k n"]
    place: Float[Array, "n k k"]


def scores_of(table: Float[Array, "rows cols"], rows: Float[Array, "n m"]) -> Scores:
    """What W says to test patterns with these coordinates."""
    m = rows.shape[1]
    asked = (table[:, :m] @ rows.T).T[:, None] + table[:, m:].T[None]
    return Scores(asked[..., :m] @ rows.T, asked[..., m : 2 * m] @ rows.T, asked[..., 2 * m :])


def test_errors(trial: Reasoning, table: Array, state: Learning, length: Int[Array, ""]) -> dict[str, Array]:
    """Errors over many prompts with `length` examples: of the layer and of the plain vote, step by step and in one go."""
    key = jax.random.wrap_key_data(state.world.test)
    scores = scores_of(table, coordinates(trial, jax.random.fold_in(key, 1)).astype(table.dtype))
    most = max(trial.test.lengths)

    def one(own: Key, index: Array) -> tuple[Array, ...]:
        maps, transitions = trial.test.task(jax.random.fold_in(own, 0), trial.data.steps)
        context, asked = erring_chains(trial.test, own, maps, transitions, most, length, index)
        given = jnp.arange(most) < length
        states, mass = reason(scores, context, asked, given)
        label = answer(scores, context, asked[0], given)
        counted = vote_chain(context, asked, given, jax.random.fold_in(own, 3))
        final = _most(
            _tally(context[:, -1], given & (context[:, 0] == asked[0]), trial.test.patterns), own, 4
        )
        return states != asked[1:], mass, label != asked[-1], counted != asked[1:], final != asked[-1]

    wrong, mass, icl, counted, final = each(one, jax.random.fold_in(key, 2), trial.test.prompts)
    dtype = table.dtype
    return {
        "cot_step_errors": jnp.mean(wrong.astype(dtype), axis=0),
        "cot_error": jnp.mean(wrong.astype(dtype)),
        "last_step_error": jnp.mean(wrong[:, -1].astype(dtype)),
        "step_masses": jnp.mean(mass, axis=0),
        "icl_error": jnp.mean(icl.astype(dtype)),
        "cot_vote_error": jnp.mean(counted.astype(dtype)),
        "icl_vote_error": jnp.mean(final.astype(dtype)),
    }


def erring_chains(
    test: Testing, key: Key, maps: Maps, transitions: Array, most: int, length: Array, index: Array
) -> tuple[Int[Array, "most states"], Int[Array, " states"]]:
    """Context chains that follow the transition matrices, and the query's own right chain."""
    start, *walks = jax.random.split(jax.random.fold_in(key, 1), maps.shape[0] + 1)
    query = index % test.patterns
    own = jnp.arange(most) < jnp.round(test.match_fraction * length)
    other = jax.random.randint(start, (most,), 1, test.patterns)
    states = [jnp.where(own, query, (query + other) % test.patterns)]
    asked = [query]
    for one, matrix, walk in zip(maps, transitions, walks, strict=True):
        states.append(jax.random.categorical(walk, jnp.log(matrix[states[-1]] + 1e-30)))
        asked.append(one[asked[-1]])
    return jnp.stack(states, axis=1), jnp.stack(asked)


def reason(
    scores: Scores, context: Int[Array, "most states"], asked: Int[Array, " states"], given: Array
) -> tuple[Int[Array, " steps"], Float[Array, " steps"]]:
    """Greedy chain of thought (Algorithm 4): the state after each step, and the attention on matching columns of the step."""
    steps, n = asked.shape[0] - 1, scores.into.shape[0]
    state, found, masses = asked[0], [asked[0]], []
    for k in range(steps):
        at = jnp.asarray(k)
        so_far = jnp.stack([*found, *([asked[0]] * (steps + 1 - len(found)))])
        prompt = prompt_of(context, so_far, at)
        shown = prompt.shown & jnp.concatenate([jnp.repeat(given, steps), jnp.ones(steps - 1, bool)])
        logits = (
            scores.into[state, k, prompt.top]
            + scores.out[state, k, prompt.bottom]
            + scores.place[state, k, prompt.step]
        )
        attention = jax.nn.softmax(jnp.where(shown, logits, -jnp.inf))
        masses.append(jnp.sum(attention * ((prompt.top == state) & (prompt.step == k))))
        state = jnp.argmax(jnp.zeros(n, attention.dtype).at[prompt.bottom].add(attention))
        found.append(state)
    return jnp.stack(found[1:]), jnp.stack(masses)


def answer(
    scores: Scores, context: Int[Array, "most states"], query: Int[Array, ""], given: Array
) -> Int[Array, ""]:
    """In-context learning with the same layer (7.8): examples (x; y_K) at the first step, K - 1 empty columns after each."""
    first, last, n = context[:, 0], context[:, -1], scores.into.shape[0]
    logits = scores.into[query, 0, first] + scores.out[query, 0, last] + scores.place[query, 0, 0]
    empty = jnp.broadcast_to(scores.place[query, 0, 1:], (context.shape[0], scores.place.shape[-1] - 1))
    every = jnp.concatenate([logits[:, None], empty], axis=1)
    attention = jax.nn.softmax(jnp.where(given[:, None], every, -jnp.inf).ravel()).reshape(every.shape)[:, 0]
    return jnp.argmax(jnp.zeros(n, attention.dtype).at[last].add(attention))


def vote_chain(
    context: Int[Array, "most states"], asked: Int[Array, " states"], given: Array, key: Key
) -> Int[Array, " steps"]:
    """What trained attention tends to: at each step the most frequent output of the examples at the present state; ties and
    empty votes are broken at random."""
    steps = asked.shape[0] - 1
    n = 1 + jnp.max(jnp.concatenate([context.ravel(), asked]))
    state, found = asked[0], []
    for k in range(steps):
        counts = _tally(context[:, k + 1], given & (context[:, k] == state), context.shape[0] + 64)
        state = _most(jnp.where(jnp.arange(counts.shape[0]) < n, counts, -1), key, k)
        found.append(state)
    return jnp.stack(found)


def _tally(labels: Int[Array, " most"], votes: Array, size: int) -> Float[Array, " size"]:
    return jnp.zeros(size).at[labels].add(votes.astype(jnp.zeros(()).dtype))


def _most(counts: Float[Array, " n"], key: Key, salt: int) -> Int[Array, ""]:
    return jnp.argmax(counts + 0.5 * jax.random.uniform(jax.random.fold_in(key, salt), counts.shape))
