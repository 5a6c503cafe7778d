"""One training of the shallow vision transformer by mini-batch stochastic gradient descent on the hinge
loss."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import batch_at, hinge_loss, log_spaced
from lemmata.errors import require
from lemmata.studies.shallow_vit.data import Sample, TokenData, collapse
from lemmata.studies.shallow_vit.network import (
    Folded,
    InitialErrors,
    Network,
    Votes,
    Weights,
    check_shapes,
    initial_errors,
)
from lemmata.trial import Descending, Key, Precision, Record, fixed

PROBED = 48
"""How many training samples the attention probes average over (all, when there are fewer)."""


class SGD(eqx.Module):
    """How the training goes.

    "epochs" walks through the training set again and again in fresh random orders; "single_pass" uses every
    sample once and ends. A training on the hinge loss stops at the first step at which all training samples
    have hinge loss zero; the "linear" loss -yF (what the proofs differentiate) never stops before the cap.
    """

    learning_rate: float = 1.0
    batch: int = fixed(default=10)
    steps: int = fixed(default=1000)
    loss: Literal["hinge", "linear"] = fixed(default="hinge")
    sampling: Literal["epochs", "single_pass"] = fixed(default="epochs")
    logs: int = fixed(default=30)

    def __check_init__(self):
        require(self.learning_rate > 0, f"the learning rate must be positive, not {self.learning_rate}.")
        require(self.batch >= 1, f"the batch must hold at least one sample, not {self.batch}.")
        require(self.steps >= 1, f"a training needs at least one step, not {self.steps}.")


class State(NamedTuple):
    """`suspect` is the training sample that last had a positive hinge loss: the first to look at for the stop
    rule."""

    data: Sample
    patterns: Float[Array, "pattern member dim"]
    votes: Votes
    initial: Weights
    errors: InitialErrors
    weights: Weights
    order: Key
    test: Key
    step: Int[Array, ""]
    suspect: Int[Array, ""]
    done: Bool[Array, ""]
    batch_loss: Float[Array, ""]


class ViTTraining(Descending):
    """Data model, network and descent.

    `simulator`: "tokens" carries every token; "patterns" carries one weighted token per pattern, which is the
    same training when there is no token noise and the output weights are shared. `probes` says what is looked
    at on the way ("attention", "neurons") and at the end ("pruning": keep only the tokens that receive most
    attention).
    """

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "attention_by_role": ("role",),
        "pattern_logit": ("pattern",),
        "key_norm": ("pattern",),
        "query_norm": ("pattern",),
        "value_norm": ("pattern",),
        "key_cosine": ("pattern",),
        "value_growth_cosine": ("lucky",),
        "projection": ("group", "pattern"),
        "gate_persistence": ("group",),
    }
    revision: ClassVar[int] = 2
    together: ClassVar[bool] = False  # the token-by-neuron arrays of one run fill the cache
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
    descent: SGD = SGD()
    precision: Precision = fixed(default="float32")
    simulator: Literal["tokens", "patterns"] = fixed(default="tokens")
    probes: Literal["none", "attention", "neurons", "pruning"] = fixed(default="none")
    test_samples: int = fixed(default=500)

    def __check_init__(self):
        check_shapes(self.network, self.data)
        if self.simulator == "patterns":
            exact = (
                self.data.noise == "gaussian" and self.data.noise_std == 0 and self.data.noisy_fraction == 0
            )
            plain = self.data.set_size == 1 and self.data.background != "spurious_zero"
            require(
                exact and plain and self.network.output_weights == "shared",
                "the simulator 'patterns' is exact only without token noise (noise_std=0, noisy_fraction=0), "
                "with shared output weights and one vector per pattern.",
            )
        require(
            self.probes != "neurons" or self.network.heads == 1,
            "the neuron probes follow one head; use network.heads=1.",
        )

    @property
    def steps(self) -> int:
        if self.descent.sampling == "single_pass":
            return max(1, self.data.samples // self.batch)
        return self.descent.steps

    @property
    def batch(self) -> int:
        return min(self.descent.batch, self.data.samples)

    @property
    def log_steps(self) -> tuple[int, ...]:
        return (
            log_spaced(self.steps, self.descent.logs)
            if self.probes in ("attention", "neurons")
            else (0, self.steps)
        )

    def start(self, key: Key) -> State:
        return _begin(self, key)

    def draw(self, key: Key, patterns: Array, count: int) -> Sample:
        drawn = self.data.draw(key, patterns, count)
        return jax.vmap(lambda one: collapse(one, patterns))(drawn) if self.simulator == "patterns" else drawn

    def step(self, state: State) -> State:
        moved = _descend(self, state.data, state.votes, state.weights, state.order, state.step, state.suspect)
        weights, suspect, done, loss = moved
        return state._replace(
            weights=weights, step=state.step + 1, suspect=suspect, done=done, batch_loss=loss
        )

    def loss(self, state: State) -> Array:
        return state.batch_loss

    def finished(self, state: State) -> Array:
        return state.done

    def watch(self, state: State) -> Record:
        if self.probes in ("attention", "neurons"):
            return _look(self, state)
        return {}

    def record(self, state: State) -> Record:
        return _judge(self, state)


# The descent ------------------------------------------------------------------------------------------------
#
# Runs advance in lanes under `vmap`, but their token-by-neuron arrays only fit into the cache one sample of
# one run at a time. So these functions take the lanes one after another, and the samples one after another
# inside.


@sequential_vmap
def _begin(trial: ViTTraining, key: Key) -> State:
    pattern_key, data_key, network_key, order, test = jax.random.split(key, 5)
    dtype = jnp.dtype(trial.precision)
    patterns = trial.data.draw_patterns(pattern_key, dtype)
    data = trial.draw(data_key, patterns, trial.data.samples)
    weights, votes = trial.network.start(network_key, trial.data, patterns)
    errors = initial_errors(weights, patterns, trial.data.classes, trial.network.skip)
    zero = jnp.zeros((), jnp.int32)
    loss = jnp.asarray(1, dtype)
    return State(
        data, patterns, votes, weights, errors, weights, order, test, zero, zero, jnp.asarray(False), loss
    )


@sequential_vmap
def _descend(
    trial: ViTTraining, data: Sample, votes: Votes, weights: Weights, order: Key, step: Array, suspect: Array
) -> tuple[Weights, Array, Array, Array]:
    batch = batch_at(order, step, trial.data.samples, trial.batch)
    loss, gradient = batch_gradient(trial.network, trial.descent.loss, weights, votes, data, batch)
    rate = trial.descent.learning_rate
    weights = jax.tree.map(lambda w, g: (w - rate * g).astype(w.dtype), weights, gradient)
    if trial.descent.loss == "linear" or trial.descent.sampling == "single_pass":
        return weights, suspect, jnp.asarray(False), loss
    suspect, done = first_violation(trial.network, weights, votes, data, suspect)
    return weights, suspect, done, loss


def batch_gradient(
    network: Network, loss: str, weights: Weights, votes: Votes, data: Sample, batch: Int[Array, " size"]
) -> tuple[Float[Array, ""], Weights]:
    """Mean loss and gradient over the samples of a batch, added up sample by sample."""

    folded, unfold = jax.vjp(network.fold, weights)

    def one(folded: Folded, sample: Sample) -> Array:
        margin = network.margin(folded, votes, sample)
        return hinge_loss(margin) if loss == "hinge" else -margin

    def add(total: tuple[Array, Folded], index: Array) -> tuple[tuple[Array, Folded], None]:
        sample = jax.tree.map(lambda part: part[index], data)
        return jax.tree.map(jnp.add, total, jax.value_and_grad(one)(folded, sample)), None

    nothing = jnp.zeros((), weights.hidden.dtype), jax.tree.map(jnp.zeros_like, folded)
    (loss_sum, gradient), _ = jax.lax.scan(add, nothing, batch)
    size = batch.shape[0]
    return loss_sum / size, jax.tree.map(lambda part: part / size, unfold(gradient)[0])


def first_violation(
    network: Network, weights: Weights, votes: Votes, data: Sample, suspect: Array
) -> tuple[Int[Array, ""], Bool[Array, ""]]:
    """The next training sample with positive hinge loss, and whether there is none.

    Looking first at the sample that was last found guilty makes this cheap while the training is under way.
    """
    count = data.label.shape[0]
    folded = network.fold(weights)

    def satisfied(index: Array) -> Array:
        sample = jax.tree.map(lambda part: part[index], data)
        return network.margin(folded, votes, sample) >= 1

    def going(at: tuple[Array, Array]) -> Array:
        return (at[1] < count) & satisfied(at[0])

    def on(at: tuple[Array, Array]) -> tuple[Array, Array]:
        return (at[0] + 1) % count, at[1] + 1

    found, seen = jax.lax.while_loop(going, on, (suspect, jnp.zeros_like(suspect)))
    return found, seen == count


# What is kept -----------------------------------------------------------------------------------------------


@sequential_vmap
def _judge(trial: ViTTraining, state: State) -> Record:
    network = trial.network
    folded = network.fold(state.weights)

    def test(index: Array) -> dict[str, Array]:
        sample = trial.data.sample(state.test, state.patterns, index, test=True)
        if trial.simulator == "patterns":
            sample = collapse(sample, state.patterns)
        output = network.outputs(folded, state.votes, sample)
        found = _losses(output, sample)
        if trial.probes == "pruning":
            found |= _pruned(network, folded, state.votes, sample)
        return found

    tested = jax.lax.map(test, jnp.arange(trial.test_samples))
    record = {f"test_{name}": jnp.mean(values) for name, values in tested.items()}
    train = _over(trial, state, lambda one: _losses(network.outputs(folded, state.votes, one), one))
    attention = attention_by_role(network, state.weights, _first(state.data, PROBED))
    return {
        **record,
        "train_loss": train["loss"],
        "train_error": train["error"],
        "attention": attention[0],
        "attention_by_role": attention[1:],
        "initial_value_error": state.errors.value,
        "initial_key_query_error": state.errors.key_query,
        "spectral_norm": state.errors.spectral,
        "token_noise": jnp.max(state.data.noise),
    }


def _losses(output: Array, sample: Sample) -> dict[str, Array]:
    margin = jnp.sum(output * sample.label)
    wrong = jnp.any(output * sample.label <= 0).astype(output.dtype)
    return {"loss": hinge_loss(margin), "error": wrong}


def _pruned(network: Network, folded: Folded, votes: Votes, sample: Sample) -> dict[str, Array]:
    """Keep as many tokens as are relevant, those that receive most attention; and as many at random, to
    compare."""
    received = jnp.sum(network.attend(folded, sample), axis=(0, 1))
    received = jnp.where(sample.kept > 0, received, -jnp.inf)
    budget = jnp.sum(sample.relevant & (sample.kept > 0))
    top = jnp.argsort(jnp.argsort(-received)) < budget
    precision = jnp.sum(top & sample.relevant) / budget
    output = network.outputs(folded, votes, sample._replace(kept=top.astype(sample.kept.dtype)))
    losses = _losses(output, sample)
    return {
        "pruned_precision": precision.astype(output.dtype),
        "pruned_loss": losses["loss"],
        "pruned_error": losses["error"],
    }


def attention_by_role(network: Network, weights: Weights, data: Sample) -> Float[Array, " four"]:
    """Mean attention paid to the relevant tokens: by all kept tokens, by relevant, by confusion and by other
    ones."""

    folded = network.fold(weights)

    def one(sample: Sample) -> tuple[Array, Array]:
        to_relevant = jnp.mean(
            network.attend(folded, sample) @ sample.relevant.astype(weights.hidden.dtype), axis=0
        )
        other = ~sample.relevant & ~sample.confusion
        roles = jnp.stack([jnp.ones_like(other), sample.relevant, sample.confusion, other]) * sample.kept
        return roles @ to_relevant, jnp.sum(roles, axis=1)

    paid, count = jax.lax.map(one, data)
    return jnp.sum(paid, axis=0) / jnp.sum(count, axis=0)


# What is looked at ------------------------------------------------------------------------------------------


@sequential_vmap
def _look(trial: ViTTraining, state: State) -> Record:
    network, weights = trial.network, state.weights
    folded = network.fold(weights)
    attention = attention_by_role(network, weights, _first(state.data, PROBED))
    margins = _over(
        trial, state, lambda one: {"margin": network.margin(folded, state.votes, one)}, probe=True
    )
    losses = _over(
        trial, state, lambda one: _losses(network.outputs(folded, state.votes, one), one), probe=True
    )
    base = state.patterns[:, 0]
    keys, queries = weights.key @ base.T, weights.query @ base.T
    seen = {
        "train_loss": losses["loss"],
        "margin": margins["margin"],
        "attention": attention[0],
        "attention_by_role": attention[1:],
        "pattern_logit": jnp.mean(jnp.sum(keys * queries, axis=1), axis=0),
    }
    if trial.probes == "neurons":
        seen |= _neurons(trial, state)
    return seen


def _neurons(trial: ViTTraining, state: State) -> dict[str, Array]:
    """Lucky neurons and the growth of keys, queries and values, pattern by pattern.

    Groups: neurons active on pattern 1 at the start with positive mean output weight, on pattern 2 with
    negative mean output weight, and the neurons active on pattern 1 with the wrong sign.
    """
    base = state.patterns[:, 0]
    now, then = state.weights, state.initial
    features = _directions(then.value[0] @ base.T)
    groups = lucky_groups(state)
    projection = now.hidden.T @ features
    mean = groups.astype(projection.dtype) @ projection / jnp.sum(groups, axis=1, keepdims=True)

    def growth(w: Array) -> Array:
        return jnp.linalg.norm(w[0] @ base.T, axis=0)

    keys_then, keys_now = then.key[0] @ base.T, now.key[0] @ base.T
    cosine = jnp.sum(keys_then * keys_now, axis=0) / growth(then.key) / growth(now.key)
    moved = (now.value[0] - then.value[0]) @ base[:2].T
    lucky_mean = now.hidden @ groups[:2].astype(now.hidden.dtype).T
    aligned = jnp.sum(moved * lucky_mean, axis=0) / jnp.maximum(
        jnp.linalg.norm(moved, axis=0) * jnp.linalg.norm(lucky_mean, axis=0), 1e-12
    )
    return {
        "projection": mean,
        "gate_persistence": _persistence(trial, state, groups),
        "key_norm": growth(now.key),
        "query_norm": growth(now.query),
        "value_norm": growth(now.value),
        "key_cosine": cosine,
        "value_growth_cosine": aligned,
    }


def lucky_groups(state: State) -> Bool[Array, "3 neuron"]:
    """The thesis's lucky neurons (active at the start on a pattern), split by the sign of their mean output
    weight."""
    base = state.patterns[:, 0]
    sign = jnp.mean(state.votes[..., 0], axis=0)
    active = (state.initial.hidden.T @ (state.initial.value[0] @ base[:2].T)) > 0
    return jnp.stack([active[:, 0] & (sign > 0), active[:, 1] & (sign < 0), active[:, 0] & (sign < 0)])


def _persistence(trial: ViTTraining, state: State, groups: Array) -> Array:
    """For each group the share of (neuron, sample, token) gates that are open, over the tokens of its
    pattern."""
    pattern = jnp.asarray([0, 1, 0])
    folded = trial.network.fold(state.weights)

    def one(sample: Sample) -> tuple[Array, Array]:
        c = trial.network.features(folded, sample)
        open_gate = (c @ folded.hidden > 0).astype(c.dtype)
        mine = (sample.pattern[None] == pattern[:, None]) & sample.relevant & (sample.kept > 0)
        mine = mine.astype(c.dtype)
        share = jnp.einsum("gl,lm,gm->g", mine, open_gate, groups.astype(c.dtype))
        return share, jnp.sum(mine, axis=1) * jnp.sum(groups, axis=1)

    share, count = jax.lax.map(one, _first(state.data, PROBED))
    return jnp.sum(share, axis=0) / jnp.sum(count, axis=0)


def _directions(columns: Array) -> Array:
    return columns / jnp.linalg.norm(columns, axis=0)


def _first(data: Sample, count: int) -> Sample:
    return jax.tree.map(lambda part: part[:count], data)


def _over(
    trial: ViTTraining, state: State, look: Callable[[Sample], dict[str, Any]], probe: bool = False
) -> dict[str, Array]:
    """The mean of something over the training samples (over the first few, as a probe)."""
    data = _first(state.data, PROBED) if probe else state.data
    return {name: jnp.mean(values) for name, values in jax.lax.map(look, data).items()}
