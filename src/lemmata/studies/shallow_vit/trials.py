"""Trains the shallow vision transformer by mini-batch stochastic gradient descent on the hinge loss, and measures attention,
neurons, keys, queries and values on the way."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Bool, Float, PyTree

from lemmata.descent import Descent, Draw, Learner, Learning, hinge_loss, loss_of
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.parts.probes import (
    cosines,
    directions,
    lengths,
    lucky,
    most_attended,
    open_gates,
    paid_by_role,
)
from lemmata.parts.starts import InitialErrors, initial_errors
from lemmata.parts.votes import Folded, Weights
from lemmata.studies.shallow_vit.data import SIGNS, OwnTokens, Sample, TokenData, check_own, collapse
from lemmata.studies.shallow_vit.network import Network, Votes, check_shapes
from lemmata.studies.shallow_vit.network.slope import batch_slope
from lemmata.studies.shallow_vit.theory.lemmas import (
    neuron_norm_bound,
    unlucky_value_bound,
    unlucky_value_printed,
)
from lemmata.threefry import key_of
from lemmata.trial import Key, Precision, Record, fixed

PROBED = 48
"""Training samples over which the attention probes average (all, if there are fewer)."""

BOUNDS = ("(33)", "(34)", "(40)", "(42)", "(31)", "(A.18)")
"""The numbered bounds on neurons (`neuron_bound`). Each is recorded as the ratio of its two sides."""

SGD = Descent(learning_rate=1.0, loss="hinge", batches="epochs", batch=10, stop="fitted", steps=1000, logs=30)
"""The descent of the experiments: epochs of mini-batches until every training sample has hinge loss zero. The proofs
differentiate the linear loss -yF, which has no end (`stop="cap"`)."""


class World(NamedTuple):
    """What training does not change.

    `patterns`, `votes`: the patterns and the frozen output weights.
    `initial`, `errors`: the initial weights and their errors.
    `test`: the key of the test samples.
    `tests`: test samples of the user; None if they are drawn.
    """

    patterns: Float[Array, "pattern member dim"]
    votes: Votes
    initial: Weights
    errors: InitialErrors
    test: Array
    tests: Sample | None = None

    @property
    def base(self) -> Float[Array, "pattern dim"]:
        """One vector per pattern."""
        return self.patterns[:, 0]


class ViTTraining(Learner):
    """Data model, network and descent.

    `simulator`: "tokens" carries every token. "patterns" carries one weighted token per pattern, which is the same training
        without token noise and with shared output weights.
    `probes`: what is measured during training ("attention", "neurons") or at the end ("pruning": keep only the tokens that
        receive most attention; "classes": what neurons gain along the patterns of the classes).
    """

    name: ClassVar[str] = "shallow-vit/training"
    may_be_missing: ClassVar[tuple[str, ...]] = (  # tokens or neurons of a kind may not be there
        *(
            "attention_by_role",
            "attention_on_rest",
            "projection",
            "neuron_size",
            "value_pull",
            "gate_persistence",
        ),
        "neuron_bound",
    )
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "attention_by_role": ("role",),
        "attention_on_rest": ("rest",),
        "pattern_logit": ("pattern",),
        "key_norm": ("pattern",),
        "query_norm": ("pattern",),
        "value_norm": ("pattern",),
        "key_cosine": ("pattern",),
        "value_growth_cosine": ("lucky",),
        "value_pull": ("sign",),
        "query_gain": ("asking", "pattern"),
        "projection": ("group", "pattern"),
        "neuron_size": ("group",),
        "gate_persistence": ("group",),
        "gate_kept": ("sign",),
        "lucky_kept": ("sign",),
        "neuron_bound": ("statement",),
        "class_gain": ("vote", "label"),
    }
    lockstep: ClassVar[bool] = False  # the token-by-neuron arrays of one run fill the cache
    paired: ClassVar[tuple[str, ...]] = (
        "descent",
        "network.attention",
        "network.output_weights",
        "network.sparsify",
        "data.removal",
        "data.removed_fraction",
        "probes",
        "test_samples",
    )

    data: TokenData = TokenData()
    network: Network = Network()
    descent: Descent = SGD
    precision: Precision = fixed(default="float32")
    simulator: Literal["tokens", "patterns"] = fixed(default="tokens")
    probes: Literal["none", "attention", "neurons", "pruning", "classes"] = fixed(default="none")
    test_samples: int = fixed(default=500)

    def __check_init__(self):
        check_shapes(self.network, self.data)
        _check_descent(self.descent)
        if self.simulator == "patterns":
            quiet = self.data.noise == "gaussian" and self.data.noise_std == 0 == self.data.noisy_fraction
            plain = self.data.set_size == 1 and self.data.background != "spurious_zero"
            require(
                quiet and plain and self.network.output_weights == "shared",
                "the simulator 'patterns' is exact only without token noise (noise_std=0, noisy_fraction=0), "
                "with shared output weights and one vector per pattern.",
            )
        require(
            self.probes != "neurons" or self.network.heads == 1,
            "the neuron probes follow one head; use network.heads=1.",
        )
        require(
            self.probes != "classes" or (self.network.heads == 1 and self.network.output_weights == "shared"),
            "the class probes need one head and shared output weights: network.heads=1, network.output_weights=shared.",
        )

    @property
    def samples(self) -> int:
        return self.data.samples

    def draw(self, key: Key) -> Draw:
        return self.draw_with(key, None, None)

    def takes(self, key: Key) -> Taken:
        """Training samples, test samples and patterns of the drawn shapes; weights of the drawn shapes."""
        drawn = jax.eval_shape(lambda: self.draw(key))
        data = self._no_data
        if not data:
            patterns = drawn.world.patterns
            tests = jax.eval_shape(lambda base: self.data.draw(key, base, self.test_samples, True), patterns)
            data = OwnTokens(drawn.data, tests, patterns)
        return Taken(data, drawn.params)

    @property
    def _no_data(self) -> str:
        """Return why the trial takes no samples of the user, or an empty text if it does."""
        if self.simulator == "patterns":
            return (
                "the simulator 'patterns' counts drawn patterns and takes no samples; use simulator=tokens."
            )
        if self.descent.batches == "fresh":
            return "with descent.batches=fresh every step draws its samples and takes none; use another kind of batches."
        return ""

    def check_own(self, data: OwnTokens | None, weights: Weights | None) -> None:
        if data is not None:
            check_own(self.data, data)
        require(
            self.probes != "neurons",
            "the neuron probes compare with errors and spreads of the drawn data and weights; with your own use "
            "probes=attention or probes=none.",
        )

    def draw_with(self, key: Key, data: OwnTokens | None, weights: Weights | None) -> Draw:
        patterns_key, data_key, network_key, test = jax.random.split(key, 4)
        patterns = self.data.draw_patterns(patterns_key, jnp.dtype(self.precision))
        if data is not None:
            patterns = data.patterns
        drawn, votes = self.network.start(network_key, self.data, patterns[:, 0])
        used = drawn if weights is None else weights
        errors = initial_errors(used, patterns[:, 0], self.data.classes, self.network.skip)
        world = World(patterns, votes, used, errors, jax.random.key_data(test))
        if data is not None:
            return Draw(used, data.train, world._replace(tests=data.test))
        return Draw(used, self.fresh(data_key, world, self.data.samples), world)

    def fresh(self, key: Key, world: World, count: int) -> Sample:
        drawn = self.data.draw(key, world.patterns, count)
        if self.simulator == "patterns":
            return jax.vmap(lambda one: collapse(one, world.patterns))(drawn)
        return drawn

    def objective(self, params: Weights, batch: Sample, world: World, key: Key) -> Float[Array, ""]:
        return jnp.mean(jax.vmap(lambda one: self.sample_loss(params, one, world))(batch))

    def slope(
        self, params: Weights, batch: Sample, world: World, key: Key
    ) -> tuple[Float[Array, ""], Weights]:
        return _slope(self, params, batch, world.votes)

    def sample_loss(self, params: Weights, sample: Sample, world: World) -> Float[Array, ""]:
        return _sample_loss(self, params, sample, world.votes)

    def rates(self, params: Weights) -> PyTree:
        return Weights(self.descent.attention_rate, self.descent.attention_rate, 1.0, 1.0)  # pyright: ignore[reportArgumentType]  (rates in place of weights)

    def watch(self, state: Learning) -> Record:
        return _look(self, state) if self.probes in ("attention", "neurons") else {}

    def record(self, state: Learning) -> Record:
        return _judge(self, state)


def _check_descent(descent: Descent) -> None:
    require(
        descent.loss in ("hinge", "linear"),
        f"the proofs know the hinge loss and the linear loss, not '{descent.loss}'.",
    )
    require(
        descent.stop == "cap" or descent.loss == "hinge",
        "the linear loss falls without end; use descent.stop=cap with it.",
    )
    require(
        descent.stop != "fitted" or descent.batches not in ("single-pass", "fresh"),
        "samples that are seen once are not fitted; use descent.stop=cap with single passes and fresh batches.",
    )


# The descent -----------------------------------------------------------------------------------------------------------
#
# The token-by-neuron arrays of a run only fit into the cache one sample at a time. So runs that are mapped over are taken one
# after another, and the samples of a batch one after another inside.


@sequential_vmap
def _slope(trial: ViTTraining, weights: Weights, batch: Sample, votes: Votes) -> tuple[Array, Weights]:
    return batch_slope(trial.network, trial.descent.loss, weights, batch, votes)  # pyright: ignore[reportArgumentType]  (checked)


@sequential_vmap
def _sample_loss(trial: ViTTraining, weights: Weights, sample: Sample, votes: Votes) -> Array:
    return _loss_of(trial, trial.network.margin(trial.network.fold(weights), votes, sample))


def _loss_of(trial: ViTTraining, margin: Array) -> Array:
    return loss_of(trial.descent.loss, margin, jnp.ones_like(margin))


# What is kept ----------------------------------------------------------------------------------------------------------


@sequential_vmap
def _judge(trial: ViTTraining, state: Learning) -> Record:
    network, world = trial.network, state.world
    folded = network.fold(state.params)

    def drawn(index: Array) -> Sample:
        key = jax.random.fold_in(key_of(world.test), index)
        sample = trial.data.sample(key, world.patterns, index, test=True)
        return collapse(sample, world.patterns) if trial.simulator == "patterns" else sample

    def test(sample: Sample) -> dict[str, Array]:
        found = _losses(network, folded, world.votes, sample)
        return found | (_pruned(network, folded, world.votes, sample) if trial.probes == "pruning" else {})

    if world.tests is None:
        tested = jax.lax.map(lambda index: test(drawn(index)), jnp.arange(trial.test_samples))
    else:
        tested = jax.lax.map(test, world.tests)
    train = _mean_over(state.data, lambda one: _losses(network, folded, world.votes, one))
    attention = attention_by_role(network, state.params, _probed(state.data))
    gain = {"class_gain": class_gain(trial, state)} if trial.probes == "classes" else {}
    return {
        **gain,
        **{f"test_{name}": jnp.mean(values) for name, values in tested.items()},
        "train_loss": train["loss"],
        "train_error": train["error"],
        "attention": attention[0],
        "attention_by_role": attention[1:],
        "initial_value_error": world.errors.value,
        "initial_key_query_error": world.errors.key_query,
        "spectral_norm": world.errors.spectral,
        "token_noise": jnp.max(state.data.noise),
    }


def _losses(network: Network, folded: Folded, votes: Votes, sample: Sample) -> dict[str, Array]:
    signed = network.outputs(folded, votes, sample) * sample.label
    return {"loss": hinge_loss(jnp.sum(signed)), "error": jnp.any(signed <= 0).astype(signed.dtype)}


def _pruned(network: Network, folded: Folded, votes: Votes, sample: Sample) -> dict[str, Array]:
    """Keep as many tokens as are relevant: those that receive most attention."""
    budget = jnp.sum(sample.relevant & (sample.kept > 0))
    top = most_attended(network.attend(folded, sample), sample.kept, budget).astype(sample.kept.dtype)
    losses = _losses(network, folded, votes, sample._replace(kept=top))
    precision = jnp.sum(top * sample.relevant) / budget
    return {"pruned_precision": precision, "pruned_loss": losses["loss"], "pruned_error": losses["error"]}


def attention_by_role(network: Network, weights: Weights, data: Sample) -> Float[Array, " four"]:
    """Return the mean attention on the relevant tokens: of all kept tokens, of relevant, of confusion and of other ones."""
    folded = network.fold(weights)

    def one(sample: Sample) -> tuple[Array, Array]:
        other = ~sample.relevant & ~sample.confusion
        roles = jnp.stack([jnp.ones_like(other), sample.relevant, sample.confusion, other]) * sample.kept
        return paid_by_role(network.attend(folded, sample), sample.relevant, roles)

    paid, count = jax.lax.map(one, data)
    return jnp.sum(paid, axis=0) / jnp.sum(count, axis=0)


def attention_on_rest(network: Network, weights: Weights, data: Sample) -> Float[Array, " two"]:
    """Return the mean attention of a relevant token on one confusion token, and on one token of another pattern."""
    folded = network.fold(weights)

    def one(sample: Sample) -> tuple[Array, Array]:
        roles = sample.relevant[None] * sample.kept
        targets = (sample.confusion, ~sample.relevant & ~sample.confusion)
        paid = [paid_by_role(network.attend(folded, sample), target, roles) for target in targets]
        size = [jnp.sum(target * sample.kept) for target in targets]
        return (
            jnp.stack([some[0] / jnp.maximum(n, 1) for (some, _), n in zip(paid, size, strict=True)]),
            jnp.stack([rows[0] for _, rows in paid]),
        )

    paid, rows = jax.lax.map(one, data)
    return jnp.sum(paid, axis=0) / jnp.sum(rows, axis=0)


# What is looked at -----------------------------------------------------------------------------------------------------


@sequential_vmap
def _look(trial: ViTTraining, state: Learning) -> Record:
    network, world = trial.network, state.world
    folded, probed = network.fold(state.params), _probed(state.data)
    attention = attention_by_role(network, state.params, probed)
    losses = _mean_over(probed, lambda one: _losses(network, folded, world.votes, one))
    margin = _mean_over(probed, lambda one: {"margin": network.margin(folded, world.votes, one)})
    keys, queries = state.params.key @ world.base.T, state.params.query @ world.base.T
    seen = {
        "train_loss": losses["loss"],
        "margin": margin["margin"],
        "attention": attention[0],
        "attention_by_role": attention[1:],
        "attention_on_rest": attention_on_rest(network, state.params, probed),
        "pattern_logit": jnp.mean(jnp.sum(keys * queries, axis=1), axis=0),
    }
    return seen | (_neurons(trial, state) if trial.probes == "neurons" else {})


def _neurons(trial: ViTTraining, state: Learning) -> dict[str, Array]:
    """Measure neurons, keys, queries and values, pattern by pattern. The groups are those of `signed_groups`."""
    world, now, then = state.world, state.params, state.world.initial
    base, groups = world.base, signed_groups(world)
    features = directions(then.value[0] @ base.T)
    weight = groups.astype(now.hidden.dtype)
    count = jnp.sum(weight, axis=1)
    along = now.hidden.T @ features
    moved = (now.value[0] - then.value[0]) @ base[:2].T
    pull = value_pull(trial, state)
    return {
        "projection": weight @ along / count[:, None],
        "neuron_size": weight @ jnp.sum(along**2, axis=1) / count,
        "gate_persistence": _open_share(trial, state, groups),
        "gate_kept": _gates_kept(trial, state),
        "key_norm": lengths(now.key[0], base),
        "query_norm": lengths(now.query[0], base),
        "value_norm": lengths(now.value[0], base),
        "key_cosine": cosines(then.key[0] @ base.T, now.key[0] @ base.T),
        "value_growth_cosine": cosines(moved, now.hidden @ weight[:2].T),
        "value_pull": _least_pull(trial, state, features, pull),
        "query_gain": ((now.query[0] - then.query[0]) @ base.T).T @ directions(then.key[0] @ base.T),
        "lucky_kept": _lucky_kept(trial, state, features),
        "neuron_bound": _neuron_bounds(trial, state, features, pull),
    }


def leaning(world: World) -> Float[Array, " neuron"]:
    """Return the sign of each neuron's mean output weight, 0 at a tie.

    The signs are counted. A sum of equal weights with both signs is zero only up to rounding, so that ties would depend on
    the compiler."""
    return jnp.sign(jnp.sum(jnp.sign(world.votes[..., 0]), axis=0))


def signed_groups(world: World) -> Bool[Array, "3 neuron"]:
    """Return three groups of neurons, by their activity at the start and the sign of their mean output weight.

    The first two are the thesis's lucky neurons with the right sign: active on pattern 1 and positive, active on pattern 2 and
    negative. The third is active on pattern 1 with the wrong sign, without the neurons that are lucky for pattern 2."""
    sign = leaning(world)
    features = world.initial.value[0] @ world.base[:2].T
    first, second = (lucky(world.initial.hidden, features, "active", which) for which in (0, 1))
    return jnp.stack([first & (sign > 0), second & (sign < 0), first & (sign < 0) & ~second])


def lucky_sets(
    trial: ViTTraining, hidden: Float[Array, "out neuron"], features: Float[Array, "out pattern"]
) -> Bool[Array, "2 neuron"]:
    """Return W and U as the proofs of Lemmas 3 and 4 use them, (220).

    p_1 (p_2) has the largest inner product with the neuron, even if this is multiplied by 1 - (sigma + tau) and all others by
    1 + (sigma + tau)."""
    disorder = trial.network.value_error + trial.data.noise_level
    return jnp.stack([lucky(hidden, features, "nearest_margin", k, disorder) for k in (0, 1)])


def _least_pull(trial: ViTTraining, state: Learning, features: Array, pull: Array) -> Float[Array, " sign"]:
    """Return the least -V_i over the lucky neurons of this step, (29) and (30): of all, and of the active ones with the right
    sign. A neuron with negative inner products can be lucky by (220), but is never active."""
    sets, sign = lucky_sets(trial, state.params.hidden, features), leaning(state.world)
    active = (state.params.hidden.T @ features[:, :2]).T > 0
    right = sets & active & jnp.stack([sign > 0, sign < 0])
    return jnp.stack([jnp.min(jnp.where(some, pull, jnp.inf)) for some in (sets, right)])


def _lucky_kept(trial: ViTTraining, state: Learning, features: Array) -> Array:
    """Return the share of W(0) and U(0) that is in W(t) and U(t) (Lemma 4): of all, and of those with the right sign."""
    first, now = (lucky_sets(trial, w.hidden, features) for w in (state.world.initial, state.params))
    sign = leaning(state.world)
    signed = first & jnp.stack([sign > 0, sign < 0])
    return jnp.stack([jnp.sum(some & now) / jnp.maximum(jnp.sum(some), 1) for some in (first, signed)])


def _neuron_bounds(trial: ViTTraining, state: Learning, features: Array, pull: Array) -> Array:
    """Return the left over the right side of the bounds named in `BOUNDS` at their worst neuron. A bound holds at 1 or less.

    Lucky neurons are those of `lucky_sets` at this step, all others are unlucky. Lengths are taken in the span of the p_j, as
    in (119). a^2 = m, so that eta^2 t^2 m/a^2 = (eta t)^2.
    """
    xi, count = trial.network.hidden_std, trial.data.patterns
    along = state.params.hidden.T @ features
    first, second = lucky_sets(trial, state.params.hidden, features)
    unlucky, time = ~first & ~second, trial.descent.learning_rate * state.step
    size = jnp.sum(along**2, axis=1)

    def worst(values: Array, some: Array) -> Array:
        return jnp.max(jnp.where(some, values, -jnp.inf))

    cross = jnp.maximum(
        worst(jnp.max(along[:, 1:], axis=1), first),
        worst(jnp.max(jnp.delete(along, 1, axis=1), axis=1), second),
    )
    batch, neurons = trial.batch_size, trial.network.neurons
    return jnp.stack(
        [
            cross / xi,
            worst(size, first | second) / neuron_norm_bound(time, count, xi),
            worst(jnp.max(along[:, 2:], axis=1), unlucky) / xi,
            worst(size, unlucky) / neuron_norm_bound(0, count, xi),
            worst(jnp.max(pull, axis=0), unlucky) / unlucky_value_printed(batch, neurons),
            worst(jnp.max(jnp.abs(pull), axis=0), unlucky) / unlucky_value_bound(batch, neurons, count),
        ]
    ).astype(along.dtype)


def value_pull(trial: ViTTraining, state: Learning) -> Float[Array, "2 neuron"]:
    """Return -V_i of (27) for the patterns mu_1 and mu_2, over the probed samples on the linear loss.

    It says how much of neuron i one step of size one adds to the value of the pattern."""
    network, world = trial.network, state.world
    folded = network.fold(state.params)

    def one(sample: Sample) -> Array:
        seen = network.features(folded, sample)
        voting = jnp.where(seen @ folded.hidden > 0, world.votes[..., 0], 0) * sample.label[0]
        weight = sample.kept[:, None] * (seen[:, : trial.data.dim] @ world.base[:2].T)
        return weight.T @ voting / jnp.sum(sample.kept)

    return jnp.mean(jax.lax.map(one, _probed(state.data)), axis=0)


def _open_share(trial: ViTTraining, state: Learning, groups: Array) -> Array:
    """Return the share of open (neuron, sample, token) gates of each group, over the relevant tokens of its pattern."""
    pattern, folded = jnp.asarray([0, 1, 0]), trial.network.fold(state.params)

    def one(sample: Sample) -> tuple[Array, Array]:
        mine = (sample.pattern[None] == pattern[:, None]) & sample.relevant & (sample.kept > 0)
        return open_gates(trial.network.features(folded, sample), folded.hidden, mine, groups)

    share, count = jax.lax.map(one, _probed(state.data))
    return jnp.sum(share, axis=0) / jnp.sum(count, axis=0)


def class_gain(trial: ViTTraining, state: Learning) -> Float[Array, "vote label"]:
    """Return what the neurons of each group of (232) have gained along the pattern of each class, on average.

    A group has output weights with the signs of one class. The weights must be shared."""
    world, first = state.world, state.world.initial
    features = directions(first.value[0] @ world.base[: trial.data.classes].T)
    gained = (state.params.hidden - first.hidden).T @ features
    wanted = jnp.asarray(SIGNS[trial.data.classes], gained.dtype)
    group = jnp.all(jnp.sign(world.votes[0])[None] == wanted[:, None], axis=-1).astype(gained.dtype)
    return group @ gained / jnp.sum(group, axis=1, keepdims=True)


def _gates_kept(trial: ViTTraining, state: Learning) -> Array:
    """Return the share of the gates open at the start on tokens of patterns 1 and 2 (A.8, A.9) that is open now.

    The share is taken of all neurons, as printed, and of those whose mean output weight has the sign of the pattern."""
    network, world = trial.network, state.world
    then, now = network.fold(world.initial), network.fold(state.params)
    sign = leaning(world)

    def one(sample: Sample) -> tuple[Array, Array]:
        first, last = (network.features(w, sample) @ w.hidden > 0 for w in (then, now))
        aim = jnp.where(sample.pattern == 0, 1, -1) * (sample.pattern < 2) * (sample.pattern >= 0)
        counted = first & ((aim != 0) & (sample.kept > 0))[:, None]
        sets = jnp.stack([counted, counted & (aim[:, None] * sign[None] > 0)])
        return jnp.sum(sets & last, axis=(1, 2)), jnp.sum(sets, axis=(1, 2))

    kept, count = jax.lax.map(one, _probed(state.data))
    return (jnp.sum(kept, axis=0) / jnp.maximum(jnp.sum(count, axis=0), 1)).astype(sign.dtype)


def _probed(data: Sample) -> Sample:
    return jax.tree.map(lambda part: part[:PROBED], data)


def _mean_over(data: Sample, look: Callable[[Sample], dict[str, Any]]) -> dict[str, Array]:
    """Return the mean over samples, which are taken one after another."""
    return {name: jnp.mean(values) for name, values in jax.lax.map(look, data).items()}
