"""One training of the attention layer on reasoning prompts (Algorithm 3), looked at on the way and tested at the end."""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from lemmata.descent import Descent, Draw, Learner, Learning, cycled
from lemmata.errors import require
from lemmata.guard import double
from lemmata.own import Taken
from lemmata.parts.patterns import each, orthonormal
from lemmata.studies.chain_of_thought import network
from lemmata.studies.chain_of_thought.data import (
    Chains,
    OwnPrompts,
    Prompt,
    check_own,
    check_patterns,
    own_form,
)
from lemmata.studies.chain_of_thought.network import Classes, Tokens
from lemmata.studies.chain_of_thought.trials.testing import (
    Example,
    Scores,
    Testing,
    coordinates,
    drawn,
    erring,
    errors,
    free_directions,
    reason,
    scores_of,
    split_masses,
)
from lemmata.threefry import key_of, new_key
from lemmata.trial import Key, Precision, Record, Tracks, fixed

LENGTH, PROMPTS = 12, 20
"""Examples in, and number of, the test prompts that attention is looked at along training."""


class World(NamedTuple):
    """A frame of R^d that begins with patterns and step encodings, W at the start in that frame, the test patterns in it, the
    key of the test; and what attention is looked at along training: training prompts, and test prompts (`shown`: one)."""

    frame: Float[Array, "dim dim"]
    begun: Float[Array, "wide dim"]
    rows: Float[Array, "n dim"]
    key: Array
    watched: Prompt
    tested: Example
    shown: Example


class Reasoning(Learner):
    """Training of W on the squared loss over fresh prompts (Algorithm 3), then testing (Algorithm 4 and 7.8).

    `simulator`: `patterns` trains W in the basis of patterns and step encodings, which is all that clean prompts see;
    `tokens` trains the 2d x 2d weights themselves; `classes` trains one number for every class of entries that renaming the
    patterns carries into each other, on prompts with expected counts: what the others tend to with many examples and large
    batches, without chance. `timed` looks in every step for the ends of the two stages. `shown` is the number of examples of
    one test prompt whose attention is kept along training.
    """

    name: ClassVar[str] = "chain-of-thought/reasoning"
    revision: ClassVar[int] = 2
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "masses": ("mass",),
        "test_masses": ("mass",),
        "moments": ("power",),
        "pulls": ("mass",),
        "shown": ("reasoning_step", "example", "column_step"),
        "chains": ("example", "state"),
        "asked": ("state",),
        "step_masses": ("length", "reasoning_step"),
        "cot_step_errors": ("length", "reasoning_step"),
        **dict.fromkeys(
            ("cot_error", "last_step_error", "icl_error", "cot_vote_error", "icl_vote_error"), ("length",)
        ),
    }
    paired: ClassVar[tuple[str, ...]] = ("test", "simulator", "precision", "descent", "shown", "data.noise")

    data: Chains = Chains()
    test: Testing = Testing()
    descent: Descent = Descent(
        loss="squared", learning_rate=10.0, batches="fresh", batch=60, stop="cap", steps=600, logs=30
    )
    init_std: float = 0.01
    simulator: Literal["patterns", "tokens", "classes"] = fixed(default="patterns")
    watched: int = fixed(default=120)
    timed: bool = fixed(default=False)
    shown: int = fixed(default=0)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        d, test = self.data, self.test
        require(
            self.descent.batches == "fresh", "every step sees fresh prompts; leave descent.batches at fresh."
        )
        require(self.init_std >= 0, f"the initial spread is not negative, not {self.init_std}.")
        require(
            test.patterns <= d.patterns - (test.kind == "zero-sum"),
            f"{test.patterns} test patterns do not fit into the span of {d.patterns}.",
        )
        require(
            test.kind != "outside" or d.patterns + d.steps + test.patterns <= d.dim,
            f"{test.patterns} test patterns outside the span need dim = {d.patterns + d.steps + test.patterns}, not {d.dim}.",
        )
        require(
            d.noise == 0 or self.simulator == "tokens",
            "only the simulator 'tokens' can train on noise; leave data.noise at 0 or set simulator=tokens.",
        )
        require(
            self.simulator != "classes" or d.generator == "shift",
            "the simulator 'classes' needs tasks that look alike up to the names of the patterns: data.generator=shift.",
        )
        test.check_steps(d.steps)

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def takes(self, key: Key) -> Taken:
        """Prompts by the indices of their patterns, any number of them; weights of the drawn shapes."""
        weights = jax.eval_shape(lambda: self.draw(key)).params
        if self.simulator == "classes":
            refusal = "the simulator 'classes' trains on expected counts and takes no prompts; use simulator=patterns."
            return Taken(refusal, weights)
        dtype = jnp.dtype(self.precision) if self.simulator == "tokens" else None
        return own_form(self.data, key, dtype)._replace(weights=weights)

    def check_own(self, data: OwnPrompts | None, weights) -> None:
        if data is not None:
            check_own(self.data, data)

    def draw_with(self, key: Key, data: OwnPrompts | None, weights) -> Draw:
        """The draw with the user's prompts or weights in place. Weights of the simulators `patterns` and `classes` say all that
        clean prompts see of W; the rest of W, which only tests see, stays drawn."""
        frame_key, weight_key, test = jax.random.split(key, 3)
        d, dtype = self.data, jnp.dtype(self.precision)
        frame = orthonormal(frame_key, d.dim, d.dim, dtype)
        if data is not None and data.vectors is not None:
            frame = network.completed(data.vectors)
        w = self.init_std * jax.random.normal(weight_key, (2 * d.dim, 2 * d.dim), dtype)
        begun = network.in_frame(w, frame)
        if weights is None:
            table = network.table_of(begun, d.patterns, d.steps)
            params = {"patterns": table, "tokens": w, "classes": network.averaged(table)}[self.simulator]
        else:
            params, begun = weights, self._wide(weights, begun, frame)
        rows = coordinates(self.test, jax.random.fold_in(test, 1), d.patterns, d.steps, d.dim).astype(dtype)
        if data is None:
            watched = d.draw(jax.random.fold_in(test, 3), self.watched)
        else:
            watched = cycled(data.prompts, jnp.zeros((), int), self.watched)
        watched = jax.tree.map(
            lambda part: part.astype(jnp.float32 if part.dtype.kind == "f" else jnp.int16), watched
        )
        tests = self._examples(jax.random.fold_in(test, 4), LENGTH, PROMPTS)
        shown = self._examples(jax.random.fold_in(test, 5), self.shown, min(self.shown, 1))
        return Draw(params, data, World(frame, begun, rows, jax.random.key_data(test), watched, tests, shown))

    def batch(
        self, path_key: Key, step: Int[Array, ""], data: OwnPrompts | None, world: World
    ) -> Prompt | Tokens | Key:
        if data is None:
            return super().batch(path_key, step, data, world)
        prompts = cycled(data.prompts, step, self.batch_size)
        if self.simulator == "patterns":
            return prompts
        return self.tokens(prompts, world, jax.random.fold_in(path_key, step))

    def _examples(self, key: Key, length: int, count: int) -> Example:
        """Test prompts, each of a task of its own."""
        d, free = self.data, free_directions(self.test, self.data)

        def one(own: Key, index: Array) -> Example:
            task, walked = jax.random.split(own)
            given = drawn(self.test, walked, self.test.task(task, d.steps), free, length, index)
            return erring(self.test, given, jnp.asarray(length))

        return each(one, key, count)

    def fresh(self, key: Key, world: World, count: int) -> Prompt | Tokens | Key:
        """Prompts; for the simulator `patterns` only the key to draw them from, which `slope` does."""
        if self.simulator == "patterns":
            return key
        if self.simulator == "classes":
            return jax.tree.map(
                lambda part: part.astype(world.begun.dtype) if part.dtype.kind == "f" else part,
                self.data.expected(),
            )
        return self.tokens(self.data.draw(key, count), world, key)

    def tokens(self, prompts: Prompt, world: World, key: Key) -> Tokens:
        """Prompts as vectors, noise on every state of the examples; the query's own columns have none."""
        d, frame, dtype = self.data, world.frame, world.frame.dtype
        free = frame[d.patterns :]
        drawn = jax.random.fold_in(key, 7)
        count = prompts.query.shape[0]
        normal = jax.random.normal(drawn, (count, d.examples, d.steps + 1, free.shape[0]), dtype)
        noise = d.noise * normal / jnp.linalg.norm(normal, axis=-1, keepdims=True) @ free
        both = jnp.stack([noise[:, :, :-1], noise[:, :, 1:]], axis=3).reshape(count, -1, 2, d.dim)
        both = jnp.pad(both, ((0, 0), (0, d.steps - 1), (0, 0), (0, 0)))
        patterns, encodings = frame[: d.patterns], frame[d.patterns : d.patterns + d.steps]
        made = jax.vmap(lambda p, e: network.tokens_of(p, patterns, encodings, e))(prompts, both)
        return made._replace(count=made.count.astype(dtype))

    def objective(self, params, batch, world: World, key: Key) -> Float[Array, ""]:
        if self.simulator == "tokens":
            return jnp.mean(jax.vmap(lambda one: network.direct_loss(params, one))(batch))
        if self.simulator == "patterns" and not isinstance(batch, Prompt):
            batch = self.data.draw(batch, self.batch_size)
        table = network.expand(params, self.data.patterns) if self.simulator == "classes" else params
        return jnp.mean(jax.vmap(lambda one: network.loss(table, one))(batch))

    def slope(self, params, batch, world: World, key: Key):
        if self.simulator == "patterns":
            if isinstance(batch, Prompt):
                return network.slope(params, batch)
            return network.fresh_slope(self.data, params, batch, self.batch_size)
        if self.simulator == "tokens":
            return jax.value_and_grad(self.objective)(params, batch, world, key)
        loss, gradient = network.slope(network.expand(params, self.data.patterns), batch)
        return loss, network.averaged(gradient)

    def table(self, state: Learning) -> Float[Array, "rows cols"]:
        """W in the basis of patterns and step encodings."""
        if self.simulator == "tokens":
            return network.table_of(self.wide(state), self.data.patterns, self.data.steps)
        return self._table(state.params)

    def _table(self, params) -> Float[Array, "rows cols"]:
        """The table of weights of the simulators `patterns` and `classes`."""
        return params if self.simulator == "patterns" else network.expand(params, self.data.patterns)

    def wide(self, state: Learning) -> Float[Array, "wide dim"]:
        """W in the frame."""
        return self._wide(state.params, state.world.begun, state.world.frame)

    def _wide(self, params, begun: Array, frame: Array) -> Float[Array, "wide dim"]:
        if self.simulator == "tokens":
            return network.in_frame(params, frame)
        return network.with_table(begun, self._table(params))

    def scores(self, wide: Float[Array, "wide dim"], rows: Float[Array, "n dim"]) -> Scores:
        """What W says to the test's tokens."""
        return scores_of(self.test, wide, rows, self.data.patterns, self.data.steps)

    def watch(self, state: Learning) -> Record:
        table, world = self.table(state), state.world
        masses = self._masses(state)
        loss, slope = network.slope(table, world.watched)
        seen = network.averaged(table)
        scores = self.scores(self.wide(state), world.rows)
        tests = jax.vmap(lambda one: reason(scores, one).masses)(world.tested)
        shown = jax.vmap(lambda one: reason(scores, one).attention)(world.shown)
        return ({"shown": shown[0]} if self.shown else {}) | {
            "loss": loss,
            "masses": jnp.mean(masses, axis=0),
            "moments": jnp.stack([jnp.mean(masses[:, 0] ** n) for n in (1, 2, 3)]),
            "pulls": network.column_products(network.averaged(slope), self.data.patterns),
            "test_masses": jnp.mean(tests, axis=(0, 1)),
            "diagonal": seen.into[0],
            "off_diagonal": seen.into[1],
            "step_gap": _step_gap(seen),
        }

    def track(self, state: Learning) -> Tracks:
        """When attention has left the other steps (5 % of it are left there), and when 80 % of it lie on matching columns."""
        if not self.timed:
            return Tracks()
        masses = jnp.mean(self._masses(state), axis=0)
        return Tracks(first={"stage_one": masses[2] + masses[3] < 0.05, "matched": masses[0] > 0.8})

    def _masses(self, state: Learning) -> Float[Array, "prompts four"]:
        """The four masses of every training prompt that is watched."""
        table = self.table(state)

        def one(prompt: Prompt) -> Array:
            attention = network.weights(table, prompt)
            return split_masses(attention, prompt.top == prompt.query, prompt.step == prompt.query_step)

        return jax.vmap(one)(state.world.watched)

    def record(self, state: Learning) -> Record:
        d, world, wide = self.data, state.world, self.wide(state)
        moved = network.table_of(wide - world.begun, d.patterns, d.steps)
        m = d.patterns
        sums = [
            jnp.max(jnp.abs(jnp.sum(rows, axis=0))) for rows in (moved[:m], moved[m : 2 * m], moved[2 * m :])
        ]
        shown = {"chains": world.shown.chains[0], "asked": world.shown.asked[0]} if self.shown else {}
        errors = self.errors(wide, world.rows, key_of(world.key))
        return shown | errors | {"drift": jnp.max(jnp.stack(sums))}

    def errors(
        self, wide: Float[Array, "wide dim"], rows: Float[Array, "n dim"], key: Key
    ) -> dict[str, Array]:
        """The errors of W at every length of the test."""
        return errors(self.test, self.scores(wide, rows), self.data.steps, jax.random.fold_in(key, 2))


def errors_of_weights(
    trial: Reasoning,
    weights: np.ndarray,
    patterns: np.ndarray,
    encodings: np.ndarray,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """The errors of weights W (2d x 2d) of one's own, trained elsewhere on these patterns and step encodings (u_k of
    `c_k = (u_k; 0)`), on the tests of a trial."""
    d = trial.data
    wide = np.asarray(weights, float)
    require(
        wide.shape == (2 * d.dim, 2 * d.dim),
        f"W has shape {(2 * d.dim,) * 2} at this trial, not {wide.shape}.",
    )
    base = np.concatenate([np.asarray(patterns, float), np.asarray(encodings, float)])
    check_patterns(base, d.patterns + d.steps, d.dim)

    @jax.jit
    def errors(wide: Array, frame: Array, key: Key) -> Record:
        rows = coordinates(trial.test, jax.random.fold_in(key, 1), d.patterns, d.steps, d.dim)
        return trial.errors(network.in_frame(wide, frame), rows, key)

    with double():
        found = errors(jnp.asarray(wide), network.completed(jnp.asarray(base)), new_key(seed))
        return {name: np.asarray(values) for name, values in found.items()}


def _step_gap(classes: Classes) -> Float[Array, ""]:
    """The mean logit of a column's step encoding with the query's own, over that with others."""
    place = classes.place
    k = place.shape[0]
    other = (jnp.sum(place) - jnp.trace(place)) / max(k * (k - 1), 1)
    return jnp.trace(place) / k - other
