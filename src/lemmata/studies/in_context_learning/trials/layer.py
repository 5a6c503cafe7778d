"""One training of the one-layer model, looked at from all sides."""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from lemmata.descent import Descent, Draw, Learner, Learning, cycled, loss_of
from lemmata.errors import require
from lemmata.kernels import kernel, refuse_unless
from lemmata.own import Taken
from lemmata.parts.patterns import flat
from lemmata.parts.probes import neuron_sizes, smallest
from lemmata.parts.starts import signs
from lemmata.parts.votes import Folded, Weights
from lemmata.studies.in_context_learning import network
from lemmata.studies.in_context_learning.data import (
    Contexts,
    Frame,
    OwnPrompts,
    Prompt,
    Tasks,
    carried,
    check_own,
    own_form,
    own_table,
    pattern_frame,
    tokens,
    turned_frame,
)
from lemmata.studies.in_context_learning.trials import lemmas, testing
from lemmata.studies.in_context_learning.trials.testing import DIMS, Look, Place, Testing, named
from lemmata.threefry import key_of
from lemmata.trial import Key, Precision, Record, fixed

ORDERS = ("smallest first", "random", "largest first")
DIRECTIONS = ("own", "partner", "other", "irrelevant")
NORMS = ("query", "query along its pattern", "key", "key along its pattern")


class World(NamedTuple):
    """Vectors in the basis of patterns, the vectors that are trained on, all tasks with the number of trained ones, the frozen
    votes, the initial weights as they act on the basis, what carries the basis to tokens, the key of the tests.

    `unseen`: 0, the length of W_V off all tokens where the user handed in weights, which do not act there in the simulator
    `patterns`; None where weights are drawn.
    """

    basis: Frame
    frame: Frame
    tasks: Tasks
    trained: Int[Array, ""]
    votes: Float[Array, " neuron"]
    begun: Weights
    carry: Float[Array, "dim reduced"]
    test: Array
    unseen: Float[Array, ""] | None = None


class Layer(Learner):
    """SGD on fresh prompts (Algorithm 2) of W_Q, W_K, W_V, W_O; the votes are frozen.

    `diagonal` delta, `output_scale` |a_i|, `neurons` m. `simulator`: `patterns` trains weights that act on coordinates
    along patterns and label, which is all that prompts can see; `tokens` trains the weights themselves. `detailed` watches
    projections and neurons; `followed` watches what the lemmas of the proof bound; `prune_rates` tests pruned models.
    `attend_to_query` lets the softmax run over the query too, as the proofs do.
    """

    name: ClassVar[str] = "in-context-learning/layer"
    may_be_missing: ClassVar[tuple[str, ...]] = (  # infinite where no neuron is lucky
        *("zeta", "value_lucky", "value_irrelevant", "neuron_growth", "neuron_norm", "neuron_irrelevant"),
    )
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **DIMS,
        **{f"pruned_{n}": ("order", "fraction", "rate") for n in ("hinge", "error")},
        **dict.fromkeys(("sizes", "raw_sizes", "sign", "feature_response", "label_response"), ("neuron",)),
        **dict.fromkeys(("feature_size", "feature_cosine", "label_size", "label_cosine"), ("neuron",)),
        "now_norms": ("norm",),
        "now_ood_norms": ("kind", "norm"),
        **{f"now_ood_{n}": ("kind",) for n in ("hinge", "error", "mass")},
        **dict.fromkeys(("query_parts", "query_worst", "key_parts", "key_worst"), ("direction",)),
        **dict.fromkeys(
            ("shown_attention", "shown_attention_before", "shown_pattern", "shown_label"), ("context",)
        ),
        "clean_output": ("sum", "given"),
        "head_mass": ("head",),
        **dict.fromkeys(("query_update", "key_update"), ("direction",)),
    }
    paired: ClassVar[tuple[str, ...]] = (
        "test",
        "descent",
        "simulator",
        "precision",
        "prune_rates",
        "watched",
        "detailed",
        "followed",
    )

    data: Contexts = Contexts()
    test: Testing = Testing()
    descent: Descent = Descent(
        loss="hinge",
        learning_rate=1.0,
        batches="fresh",
        batch=120,
        stop="cap",
        steps=1000,
        logs=41,
        spacing="even",
    )
    diagonal: float = 0.1
    neurons: int = fixed(default=60)
    heads: int = fixed(default=1)
    output_scale: Literal["1/m", "1/sqrt(m)"] = fixed(default="1/m")
    attend_to_query: bool = fixed(default=False)
    simulator: Literal["patterns", "tokens"] = fixed(default="patterns")
    prune_rates: tuple[float, ...] = fixed(default=())
    watched: int = fixed(default=480)
    detailed: bool = fixed(default=False)
    followed: bool = fixed(default=False)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(
            self.descent.batches == "fresh", "every step sees fresh prompts; leave descent.batches at fresh."
        )
        require(
            self.descent.loss in ("hinge", "logistic"),
            f"prompts have labels +1 and -1: the loss is hinge or logistic, not {self.descent.loss}.",
        )
        require(
            0 < self.diagonal <= 1,
            f"the initial diagonal delta lies in (0, 0.2], at most 1, not {self.diagonal}.",
        )
        require(self.neurons >= 1, f"the perceptron needs at least one neuron, not {self.neurons}.")
        require(self.heads >= 1, f"the layer needs at least one head, not {self.heads}.")
        require(all(0 <= r < 1 for r in self.prune_rates), "pruning rates lie in [0, 1).")
        require(
            bool(self.test.kinds) or not (self.test.sums or self.prune_rates),
            "values of S_1 and pruning are tested out of domain: name one of test.kinds.",
        )
        require(
            not self.followed or (self.heads == 1 and not self.attend_to_query),
            "the lemmas are followed with one head and a softmax over contexts.",
        )
        self.test.fits(self.data)

    # Training ----------------------------------------------------------------------------------------------------------

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def takes(self, key: Key) -> Taken:
        """Prompts by the indices of their patterns, any number of them; weights of the drawn shapes."""
        drawn = jax.eval_shape(lambda: self.draw(key))
        like = drawn.world.carry
        vectors = jax.ShapeDtypeStruct(like.shape[::-1], like.dtype) if self.simulator == "tokens" else None
        return own_form(self.data, key, vectors)._replace(weights=drawn.params)

    def check_own(self, data: OwnPrompts | None, weights: Weights | None) -> None:
        if data is not None:
            check_own(self.data, data)
        require(
            weights is None or not self.followed,
            "the lemmas speak of the drawn initial weights; train weights of your own with followed=false.",
        )

    def draw_with(self, key: Key, data: OwnPrompts | None, weights: Weights | None) -> Draw:
        frame_key, task_key, weight_key, vote_key, test = jax.random.split(key, 5)
        d, dtype = self.data, jnp.dtype(self.precision)
        basis = pattern_frame(d, dtype)
        frame, carry = turned_frame(d, frame_key, dtype)
        if data is not None and data.vectors is not None:
            carry = data.vectors.T
            frame = carried(basis, carry)
        reduced, dim = self.simulator == "patterns", d.feature_dim + d.label_dim
        normal = flat(jax.random.normal, weight_key, (self.heads * dim, self.neurons), dtype)
        if weights is not None:
            params = weights
        elif reduced:
            params = network.start(carry, normal, d.relevant + d.irrelevant, self.diagonal, self.heads)
        else:
            params = network.start(
                jnp.eye(dim, dtype=dtype), normal, d.feature_dim, self.diagonal, self.heads
            )
        size = 1 / self.neurons if self.output_scale == "1/m" else self.neurons**-0.5
        votes = signs(vote_key, (self.neurons,), size, dtype)
        table, trained = d.table(task_key) if data is None else own_table(d, data.task)
        unseen = None if weights is None else jnp.zeros((), dtype)
        world = World(
            basis, basis if reduced else frame, table, trained, votes, self.acting(params, carry), carry,
            jax.random.key_data(test), unseen,
        )  # fmt: skip
        return Draw(params, data, world)

    def batch(
        self, path_key: Key, step: Int[Array, ""], data: OwnPrompts | None, world: PyTree
    ) -> Prompt | Key:
        if data is None:
            return super().batch(path_key, step, data, world)
        return cycled(data.prompts, step, self.batch_size)

    def fresh(self, key: Key, world: World, count: int) -> Prompt | Key:
        """Prompts; in the basis of patterns only the key that `fresh_slope` draws them from."""
        if self.simulator == "patterns" and not self.attend_to_query:
            return key
        return self.data.draw(key, world.tasks, world.trained, count)

    def slope(self, params: Weights, batch: Prompt | Key, world: World, key: Key):
        if isinstance(batch, Prompt):
            return jax.value_and_grad(self.objective)(params, batch, world, key)
        return fresh_slope(self, params, world, batch, self.batch_size)

    def objective(self, params: Weights, batch: Prompt, world: World, key: Key) -> Float[Array, ""]:
        seen = columns(self, world.frame, batch)
        found = network.outputs(network.fold(params), world.votes, *seen)
        return jnp.mean(loss_of(self.descent.loss, found, batch.target))

    def acting(self, params: Weights, carry: Float[Array, "dim reduced"]) -> Weights:
        """The weights as they act on coordinates along patterns and label; what they give is in coordinates of its own."""
        return params if self.simulator == "patterns" else network.on_basis(params, carry)

    def along(self, weights: Weights, world: World) -> Weights:
        """These weights with what W_Q and W_K give taken along patterns and label."""
        return weights if self.simulator == "patterns" else network.along_basis(weights, world.carry)

    def weights(self, state: Learning) -> Weights:
        """The weights as they act on coordinates along patterns and label, W_Q and W_K also giving such coordinates."""
        return self.along(self.acting(state.params, state.world.carry), state.world)

    # Looking -----------------------------------------------------------------------------------------------------------

    def watch(self, state: Learning) -> Record:
        world, acting = state.world, self.acting(state.params, state.world.carry)
        weights, folded = self.along(acting, world), network.fold(acting)

        def seen(place: Place, key: Key) -> dict[str, Array]:
            prompts = self._prompts(place, key)
            found = testing.measured(self.look(folded, world.votes), place, prompts)
            if self.detailed:
                found["norms"] = projections(acting, weights, place.frame, prompts, self.data.pattern_norm)
            return found

        found = {
            "train_loss": state.fit.loss,
            **named("now_", seen(self._inside(state), self._test_key(state, 0))),
        }
        if self.test.kinds:
            key = self._test_key(state, 1)
            found |= named(
                "now_ood_", testing.over_kinds(self.test, world.basis, lambda place: seen(place, key))
            )
        if self.detailed:
            found |= neuron_look(self, weights, folded, state)
        return found | (lemma_look(self, weights, folded, state) if self.followed else {})

    def record(self, state: Learning) -> Record:
        world, acting = state.world, self.acting(state.params, state.world.carry)
        weights, folded = self.along(acting, world), network.fold(acting)
        look = self.look(folded, world.votes)
        outside = self._test_key(state, 3)
        found: dict[str, Array] = {
            **testing.over_lengths(self.test, look, self._inside(state), self._test_key(state, 2)),
            "sizes": jnp.sort(neuron_sizes(folded.hidden)),
            "raw_sizes": jnp.sort(neuron_sizes(weights.hidden)),
            "sign": jnp.sign(world.votes),
            "key_drift": key_drift(weights, self.along(world.begun, world), self.data.relevant),
            "query_label": jnp.max(jnp.abs(weights.query[..., -1])),
        }
        if self.test.kinds:

            def tested(place: Place) -> dict[str, Array]:
                return testing.over_lengths(self.test, look, place, outside)

            found |= named("ood_", testing.over_kinds(self.test, world.basis, tested))
        if self.test.sums:
            found |= named("sum_", testing.over_sums(self.test, look, world.basis, outside))
            found |= clean_look(self, folded, world)
        if self.prune_rates:
            found |= pruned_look(self, folded, state)
        if self.detailed:
            found |= detailed_look(self, weights, folded, state)
        return found

    def look(self, folded: Folded, votes: Float[Array, " neuron"]) -> Look:
        """Output and attention on contexts of the query's pattern, of prompts."""

        def seen(frame: Frame, prompts: Prompt) -> dict[str, Array]:
            given = columns(self, frame, prompts)
            share = jnp.mean(network.attention(folded, *given), axis=0)[:, : prompts.shown.shape[1]]
            mass = jnp.sum(share * network.same_pattern(prompts), axis=-1)
            return {"output": network.outputs(folded, votes, *given), "mass": mass}

        return seen

    def _inside(self, state: Learning) -> Place:
        world = state.world
        return testing.in_domain(self.test, self.data, world.basis, world.tasks, world.trained)

    def _prompts(self, place: Place, key: Key) -> Prompt:
        room, dtype = max(self.test.lengths), place.bound.dtype
        fraction = jnp.asarray(self.test.fractions[0], dtype)
        return testing.draw(place, key, self.watched, fraction, jnp.asarray(room), room, self.test.selection)

    def _test_key(self, state: Learning, which: int) -> Key:
        return jax.random.fold_in(key_of(state.world.test), which)


def slope_of_drawn(
    trial: Layer, params: Weights, world: World, key: Key, count: int
) -> tuple[Float[Array, ""], Weights]:
    """The mean loss and its gradient on the prompts that are drawn from a key."""
    prompts = trial.data.draw(key, world.tasks, world.trained, count)
    return jax.value_and_grad(trial.objective)(params, prompts, world, key)


@kernel("in_context_fresh.cc", plain=slope_of_drawn)
def fresh_slope(
    trial: Layer, params: Weights, world: World, key: Key, count: int
) -> tuple[Float[Array, ""], Weights]:
    """`slope_of_drawn`. The kernel draws prompts without noise, of tasks with one pattern per class, in one precision."""
    data, dtype = trial.data, world.votes.dtype
    bound = data.noise_bound.dtype if isinstance(data.noise_bound, Array) else jnp.result_type(float)
    wide = jax.dtypes.canonicalize_dtype(int) == jnp.int64
    refuse_unless(
        bound == dtype and wide, "the kernel draws in the precision of the layer, with integers of 64 bits"
    )
    refuse_unless(
        data.per_class == 1 and not data.extra_noise, "the kernel draws single patterns without noise"
    )
    numbers = data.relevant_fraction, data.noise_bound, data.pattern_norm
    whole = (jnp.asarray(one, jnp.int64) for one in (world.tasks, world.trained, data.examples))
    given = *params, world.votes, *numbers, *whole, jax.random.key_data(key)
    logistic = trial.descent.loss == "logistic"
    loss, *gradient = fresh_slope.call(
        "in_context_fresh", *given, relevant=data.relevant, room=data.room, prompts=count, logistic=logistic
    )
    return loss, Weights(*gradient)


def columns(trial: Layer, frame: Frame, prompts: Prompt) -> tuple[Array, Array, Array]:
    """Context columns, which of them are shown, and the query column; with `attend_to_query` the query is a context too."""
    context, query = tokens(frame, prompts)
    if not trial.attend_to_query:
        return context, prompts.shown, query
    there = jnp.ones((*prompts.shown.shape[:-1], 1), bool)
    return (
        jnp.concatenate([context, query[:, None]], axis=1),
        jnp.concatenate([prompts.shown, there], axis=1),
        query,
    )


def key_drift(weights: Weights, begun: Weights, relevant: int) -> Float[Array, ""]:
    """How far `W_K sum_j (mu_j; 0)` has moved, for unit patterns: not at all, since the weights of a softmax sum to one."""
    moved = jnp.sum((weights.key - begun.key)[..., :relevant], axis=-1)
    return jnp.max(jnp.abs(moved))


def clean_look(trial: Layer, folded: Folded, world: World) -> dict[str, Array]:
    """F on a clean token (mu'_1; y q) of the first kind for every S_1 and both labels, and what every neuron answers to a
    pattern (the mean over them: S = 1) and to the label."""
    frame = world.basis
    hidden = folded.hidden[: frame.label.shape[0]]
    label = frame.label @ hidden
    of_pattern = frame.relevant @ hidden

    def at(first: Array) -> Array:
        mixed = trial.test.rows(trial.test.kinds[0], trial.data.relevant, first)[0].astype(hidden.dtype)
        return jnp.stack([world.votes @ jax.nn.relu(mixed @ of_pattern + y * label) for y in (1, -1)])

    return {
        "clean_output": jax.lax.map(at, jnp.asarray(trial.test.sums, hidden.dtype)),
        "feature_response": jnp.mean(of_pattern, axis=0),
        "label_response": label,
    }


def pruned_look(trial: Layer, folded: Folded, state: Learning) -> dict[str, Array]:
    """The out-of-domain test (first kind) of models pruned by the size of the rows of W_O W_V from below, at random, from
    above."""
    world = state.world
    rows = trial.test.rows(trial.test.kinds[0], trial.data.relevant, trial.test.coefficient_sum)
    place = testing.out_of_domain(trial.test, world.basis, rows)
    sizes = neuron_sizes(folded.hidden)
    chance = jax.random.uniform(trial._test_key(state, 4), sizes.shape)
    room, dtype = max(trial.test.lengths), sizes.dtype
    by = jnp.stack([sizes, chance.astype(dtype), -sizes])

    def at(given: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        which, fraction, rate = given
        votes = network.pruned(world.votes, smallest(by[which], rate))
        prompts = testing.draw(
            place,
            trial._test_key(state, 3),
            trial.test.prompts,
            fraction,
            jnp.asarray(room),
            room,
            trial.test.selection,
        )
        found = testing.measured(trial.look(folded, votes), place, prompts)
        return found["hinge"], found["error"]

    rates, fractions = jnp.asarray(trial.prune_rates, dtype), jnp.asarray(trial.test.fractions, dtype)
    grid = [part.ravel() for part in jnp.meshgrid(jnp.arange(3), fractions, rates, indexing="ij")]
    hinge, error = jax.lax.map(at, tuple(grid))
    shape = (3, len(fractions), len(rates))
    return {"pruned_hinge": hinge.reshape(shape), "pruned_error": error.reshape(shape)}


# Projections, neurons, prompts -----------------------------------------------------------------------------------------


def neuron_look(trial: Layer, weights: Weights, folded: Folded, state: Learning) -> dict[str, Array]:
    """Size and direction of every neuron: its feature part against the mean pattern, its label part against q."""
    feature, label = folded.hidden[: trial.data.relevant + trial.data.irrelevant], folded.hidden[-1]
    mean = jnp.sum(feature[: trial.data.relevant], axis=0) / trial.data.relevant**0.5
    size = jnp.linalg.norm(feature, axis=0)
    off = label_rest(trial, weights, state)
    label_size = jnp.sqrt(label**2 + off)
    return {
        "feature_size": size,
        "feature_cosine": mean / jnp.maximum(size, 1e-12),
        "label_size": label_size,
        "label_cosine": label / jnp.maximum(label_size, 1e-12),
    }


def lemma_look(trial: Layer, weights: Weights, folded: Folded, state: Learning) -> dict[str, Array]:
    """What Lemmas E.4.5 to E.4.7 bound, on training prompts that are the same at every look."""
    world, d = state.world, trial.data
    if state.data is None:
        prompts = d.draw(trial._test_key(state, 5), world.tasks, world.trained, trial.watched)
    else:
        prompts = cycled(state.data.prompts, jnp.zeros((), int), trial.watched)
    seen = columns(trial, world.basis, prompts)
    chosen = lemmas.lucky(network.fold(world.begun), world.votes, prompts, seen)
    moved = lemmas.moved_by(weights, trial.along(world.begun, world), world.carry)
    partner = partners(world.tasks, world.trained, d.relevant)
    return {
        "query_update": directions(moved.query, partner, d.relevant, d.irrelevant)[1],
        "key_update": directions(moved.key, partner, d.relevant, d.irrelevant)[1],
        **lemmas.values_look(folded, world.votes, prompts, seen, chosen, world.basis),
        **lemmas.neurons_look(moved, weights.hidden, world.votes, chosen, world.basis),
    }


def label_rest(trial: Layer, weights: Weights, state: Learning) -> Float[Array, " neuron"]:
    """The squared length of a row of W_O W_V (first head) along directions that no token has a part in: training leaves W_V
    alone there. The simulator `patterns` knows it from the drawn W_V, delta on label coordinates; weights that a user hands to
    that simulator do not say anything of these directions, and count as 0 there."""
    world, dim = state.world, trial.data.feature_dim + trial.data.label_dim
    delta = jnp.asarray(trial.diagonal, weights.value.dtype)
    rest = jnp.eye(dim, dtype=delta.dtype) - world.carry @ world.carry.T
    if trial.simulator == "tokens":
        whole = state.params.value[0]
        return jnp.sum((rest @ whole.T @ weights.hidden[: len(whole)]) ** 2, axis=0)
    if world.unseen is not None:
        return jnp.broadcast_to(world.unseen, weights.hidden.shape[1:])
    labels = jnp.any(jnp.abs(rest) > 1e-6, axis=1)
    return delta**2 * jnp.sum((rest @ weights.hidden[:dim] * labels[:, None]) ** 2, axis=0)


def projections(
    acting: Weights, along: Weights, frame: Frame, prompts: Prompt, norm: float | Array
) -> Float[Array, " four"]:
    """Means over prompts, in the order of `NORMS`, of the first head: lengths from `acting`, parts from `along`."""
    context, query = tokens(frame, prompts)
    asked, looked = query @ along.query[0].T, context @ along.key[0].T
    own, theirs = frame.relevant[prompts.query] / norm, frame.relevant[prompts.relevant] / norm
    return jnp.stack(
        [
            jnp.mean(jnp.linalg.norm(query @ acting.query[0].T, axis=-1)),
            jnp.mean(jnp.abs(jnp.sum(asked * own, axis=-1))),
            jnp.mean(jnp.linalg.norm(context @ acting.key[0].T, axis=-1)),
            jnp.mean(jnp.abs(jnp.sum(looked * theirs, axis=-1))),
        ]
    )


def detailed_look(trial: Layer, weights: Weights, folded: Folded, state: Learning) -> dict[str, Array]:
    """Where W_Q and W_K send patterns; lucky neurons; the attention of every head; one prompt."""
    world, d = state.world, trial.data
    parts = {}
    partner = partners(world.tasks, world.trained, d.relevant)
    for name, matrix in (("query", weights.query[0]), ("key", weights.key[0])):
        parts[f"{name}_parts"], parts[f"{name}_worst"] = directions(matrix, partner, d.relevant, d.irrelevant)
    inside = trial._inside(state)
    prompts = trial._prompts(inside, trial._test_key(state, 0))
    seen = columns(trial, inside.frame, prompts)
    share = network.attention(folded, *seen)[..., : prompts.shown.shape[1]]
    first = network.fold(world.begun)
    one = jax.tree.map(lambda part: part[0], prompts)
    before = jnp.mean(network.attention(first, *seen), axis=0)[0, : one.shown.shape[0]]
    return {
        **parts,
        **lucky_look(folded, first, world.votes, prompts, seen),
        "head_mass": jnp.mean(jnp.sum(share * network.same_pattern(prompts), axis=-1), axis=1),
        "shown_attention": jnp.mean(share, axis=0)[0],
        "shown_attention_before": before,
        "shown_pattern": one.relevant.astype(share.dtype),
        "shown_label": one.label,
        "shown_query": one.query.astype(share.dtype),
    }


def partners(tasks: Tasks, trained: Int[Array, ""], patterns: int) -> Array:
    """Which patterns meet in a training task."""
    used = jnp.arange(tasks.shape[0]) < trained
    plus, minus = jax.nn.one_hot(tasks[:, 0], patterns).sum(1), jax.nn.one_hot(tasks[:, 1], patterns).sum(1)
    met = jnp.einsum("t,ta,tb->ab", used.astype(plus.dtype), plus, minus)
    return (met + met.T) > 0


def directions(matrix: Float[Array, "rows dim"], partner: Array, m1: int, m2: int) -> tuple[Array, Array]:
    """`a^T W mu_j` for unit vectors: a the pattern itself, a partner, another relevant pattern, an irrelevant one. The
    means, and the largest absolute values (the smallest, with its sign, for the pattern itself)."""
    block, rest = matrix[:m1, :m1], matrix[m1 : m1 + m2, :m1]
    own = jnp.eye(m1, dtype=bool)
    other = ~partner & ~own

    def mean(values: Array, where: Array) -> Array:
        return jnp.sum(values * where) / jnp.maximum(jnp.sum(where), 1)

    every = jnp.ones_like(rest, bool)
    means = [mean(block, own), mean(block, partner & ~own), mean(block, other), mean(rest, every)]
    far = [
        jnp.max(jnp.abs(block) * (partner & ~own)),
        jnp.max(jnp.abs(block) * other),
        jnp.max(jnp.abs(rest)),
    ]
    return jnp.stack(means), jnp.stack([jnp.min(jnp.diag(block)), *far])


def lucky_look(
    folded: Folded,
    first: Folded,
    votes: Float[Array, " neuron"],
    prompts: Prompt,
    seen: tuple[Array, Array, Array],
) -> dict[str, Array]:
    """Lucky neurons (Definition E.4.8, first head's part): the share that is lucky for a prompt at the start, and how often a
    neuron that is lucky for some prompt is not active at the end on a prompt of its label; also for its own prompts only."""
    lucky = lemmas.lucky(first, votes, prompts, seen)
    right = votes[None] * prompts.target[:, None] > 0
    idle = ~(network.values(folded, *seen) @ folded.hidden > 0)
    union = jnp.stack([jnp.any(lucky & (prompts.target == z)[:, None], axis=0) for z in (1, -1)])
    of_label = jnp.where(prompts.target[:, None] > 0, union[0], union[1]) & right
    count = jnp.maximum(jnp.sum(of_label), 1)
    dtype = votes.dtype
    return {
        "lucky_share": jnp.mean(jnp.mean(lucky.astype(dtype), axis=1)),
        "lucky_idle": (jnp.sum(idle & of_label) / count).astype(dtype),
        "lucky_own_idle": (jnp.sum(idle & lucky) / jnp.maximum(jnp.sum(lucky), 1)).astype(dtype),
    }
