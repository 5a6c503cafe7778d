"""One training of the benign-overfitting paper, by any of its four simulators, with everything the theorems speak of."""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import Descent, Trained, logistic_loss
from lemmata.errors import require
from lemmata.own import Taken, require_signs
from lemmata.studies.benign_overfitting.data import Data, Features
from lemmata.studies.benign_overfitting.network import Network, Weights, output
from lemmata.studies.benign_overfitting.trials.instances import (
    Explicit,
    Instance,
    draw_explicit,
    explicit_instance,
    wishart_instance,
)
from lemmata.studies.benign_overfitting.trials.simulators import (
    Direct,
    Grams,
    Leading,
    Rows,
    View,
    drive,
    moved,
    seen,
)
from lemmata.trial import Key, Precision, Tracks, fixed

KINDS = ("signal", "strong", "weak")
LOSSES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


class State(NamedTuple):
    simulation: Rows | Grams | Leading | Direct
    view: View
    start_norms: tuple[Array, Array]
    step: Int[Array, ""]
    time: Float[Array, ""]


class BenignOverfitting(Trained):
    """Data, network and descent; how to simulate; how many fresh points to test on.

    `sampling=explicit` draws tokens and weights; `wishart` draws the reduced variables in law, for dimensions that no
    matrix could have. The step size may ramp up: it grows geometrically from `ramp_start` times to the full learning
    rate over the first `ramp_steps` steps, so that the early stages are resolved and the last one does not take forever.
    `descent.attention_rate` multiplies the step of queries and keys, `value_rate` that of the values: 0 freezes them.
    """

    name: ClassVar = "benign-overfitting/transformer"
    may_be_missing: ClassVar = ("attention", "test_attention", "logits", "query_growth", "key_growth")
    paired: ClassVar = ("simulator", "precision", "descent", "ramp_steps", "ramp_start", "value_rate")
    dims: ClassVar = {
        "attention": ("query", "key"),
        "logits": ("query", "key"),
        "test_attention": ("query", "key"),
        "loss_steps": ("loss_level",),
        "query_growth": ("query",),
        "key_growth": ("key",),
    }

    data: Data = Data()
    network: Network = Network()
    descent: Descent = Descent()
    ramp_steps: float = 0.0
    ramp_start: float = 1e-4
    value_rate: float = 1.0
    simulator: Literal["row", "gram", "leading-order", "direct"] = fixed(default="row")
    sampling: Literal["explicit", "wishart"] = fixed(default="explicit")
    test_points: int = fixed(default=100)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        plain = self.descent
        require(self.test_points > 0, f"the test set needs at least one point, not {self.test_points}.")
        require(self.value_rate >= 0, f"the value rate must not be negative, not {self.value_rate}.")
        require(
            not (self.simulator == "direct" and self.sampling == "wishart"),
            "simulator=direct needs sampling=explicit: it works on tokens and weights.",
        )
        require(
            (plain.method, plain.loss, plain.batches, plain.stop) == ("gd", "logistic", "full", "target"),
            "this study is about plain full-batch descent on the logistic loss to a target: descent takes method=gd, "
            f"loss=logistic, batches=full and stop=target, not {plain.method}, {plain.loss}, {plain.batches}, {plain.stop}.",
        )

    @property
    def steps_by_kernel(self) -> bool:
        return self.simulator == "row" and moved.available

    def rate(self, step: Array) -> Array:
        """The step size at a step."""
        left = jnp.where(self.ramp_steps > 0, jnp.clip(1 - step / jnp.maximum(self.ramp_steps, 1), 0, 1), 0)
        return (self.descent.learning_rate * self.ramp_start**left).astype(self.precision)

    def start(self, key: Key) -> State:
        return self.start_from(key)

    def takes(self, key: Key) -> Taken:
        """A training set (as `Features`) and initial weights."""
        if self.sampling == "wishart":
            refusal = (
                "sampling=wishart takes no data or weights of one's own, as it draws neither tokens nor matrices; set "
                "sampling=explicit (simulator=direct works on them as they are)."
            )
            return Taken(refusal, refusal)
        drawn = jax.eval_shape(
            lambda: draw_explicit(self.data, self.network, self.test_points, key, self.precision)
        )
        return Taken(drawn.train, drawn.weights)

    def check_own(self, data: Features | None, weights: Weights | None) -> None:
        if data is not None:
            require_signs("data.labels", data.labels)

    def start_from(self, key: Key, data: Features | None = None, weights: Weights | None = None) -> State:
        """With the user's training set or initial weights in place of the drawn ones; test points then have its signals."""
        if self.sampling == "wishart":
            return self._begun(self.instance(key))
        drawn = draw_explicit(self.data, self.network, self.test_points, key, self.precision)
        train, test = drawn.train, drawn.test
        if data is not None:
            train, test = data, test._replace(rows=test.rows.at[:2].set(data.rows[:2]))
        given = Explicit(train, test, drawn.weights if weights is None else weights)
        return self._begun(given if self.simulator == "direct" else explicit_instance(given))

    def _begun(self, start: Explicit | Instance) -> State:
        forms = {"row": Rows, "gram": Grams, "leading-order": Leading}
        if isinstance(start, Explicit):
            simulation = Direct.begin(start, self.descent)
        else:
            simulation = forms[self.simulator].begin(start)
        view = _view(simulation)
        norms = (view.query_norms, view.key_norms)
        return State(simulation, view, norms, jnp.zeros((), jnp.int32), jnp.zeros((), self.precision))

    def instance(self, key: Key) -> Instance:
        """The reduced variables at the start, with the fresh points."""
        if self.sampling == "wishart":
            return wishart_instance(self.data, self.network, self.test_points, key, self.precision)
        return explicit_instance(
            draw_explicit(self.data, self.network, self.test_points, key, self.precision)
        )

    def step(self, state: State) -> State:
        rate, now = self.rate(state.step), state.simulation
        sizes = (self.descent.attention_rate, self.value_rate)
        if isinstance(now, Rows):
            simulation = moved(now, state.view, rate, *sizes)
        elif isinstance(now, Direct):
            simulation = now.step(self.descent, rate, self.value_rate)
        else:
            simulation = now.step(rate, drive(state.view, now.start.labels).scaled(*sizes))
        return state._replace(
            simulation=simulation, view=_view(simulation), step=state.step + 1, time=state.time + rate
        )

    def loss(self, state: State) -> Float[Array, ""]:
        return jnp.mean(logistic_loss(margins(state)))

    def finished(self, state: State) -> Bool[Array, ""]:
        return self.loss(state) <= self.descent.target_loss

    def track(self, state: State) -> Tracks:
        """What the stages are made of.

        First steps: `signal_leads`, `noise_leads` (the value of the signal, or of the strong noise, is 3M times any other, in
        every sample: the end of stage I, Lemmas D.5 and E.3), `slope_leaves` (some loss derivative leaves [0.45, 0.55]: the
        end of stage II), `loss_steps` (the training loss has come down to each of `LOSSES`). Totals: for how many steps the
        leads stood. Largest: by what factor the squared norm of a query or key row has changed from the start, either way.
        """
        size = jnp.abs(state.view.values)
        signal, strong, _ = signed_values(state)
        times = 3 * self.data.tokens
        signal_leads = jnp.all(signal >= times * jnp.max(size[:, 1:], axis=1))
        noise_leads = jnp.all(strong >= times * jnp.max(size.at[:, 1].set(0), axis=1))
        slope = jax.nn.sigmoid(-margins(state))
        first = {
            "signal_leads": signal_leads,
            "noise_leads": noise_leads,
            "slope_leaves": jnp.any((slope < 0.45) | (slope > 0.55)),
            "loss_steps": self.loss(state) <= jnp.asarray(LOSSES, self.precision),
        }
        total = {
            "signal_lead_steps": signal_leads.astype(jnp.int32),
            "noise_lead_steps": noise_leads.astype(jnp.int32),
        }
        changes = [jnp.maximum(now / was, was / now) for now, was in zip(*_norms(state), strict=True)]
        largest = {"query_norm_change": jnp.max(changes[0]), "key_norm_change": jnp.max(changes[1])}
        return Tracks(first, largest, total)

    def watch(self, state: State) -> dict[str, Array]:
        signal, strong, others = signed_values(state)
        growth = [by_kind(now / was, self.data.tokens) for now, was in zip(*_norms(state), strict=True)]
        return {
            "train_loss": self.loss(state),
            "time": state.time,
            "signal_value": jnp.mean(signal),
            "strong_value": jnp.mean(strong),
            "other_value": jnp.mean(others) if others.size else jnp.zeros((), self.precision),
            "attention": table(jax.nn.softmax(state.view.logits, axis=-1)),
            "logits": table(state.view.logits),
            "slope": jnp.mean(jax.nn.sigmoid(-margins(state))),
            "query_growth": growth[0],
            "key_growth": growth[1],
        }

    def record(self, state: State) -> dict[str, Array]:
        """At the end, and on fresh points: `quiet_fraction` of them have every noise value within 1/2 (Lemma E.6), and
        `fresh_noise_value` is the largest of all (D.9); `noise_share` is the largest weight of the signal query on any one
        noise token, averaged over the training samples."""
        logits, values = state.simulation.test()
        fresh = state.simulation.start.fresh_labels * output(logits, values)
        attention = jax.nn.softmax(logits, axis=-1)
        seen = jax.nn.softmax(state.view.logits[:, 0], axis=-1)
        noise = jnp.max(jnp.abs(values[:, 1:]), axis=1)
        signal, strong, _ = signed_values(state)
        return {
            **self.watch(state),
            "test_loss": jnp.mean(logistic_loss(fresh)),
            "test_error": jnp.mean(fresh <= 0, dtype=fresh.dtype),
            "small_margin_fraction": jnp.mean(fresh <= 0.5, dtype=fresh.dtype),
            "test_attention": table(attention),
            "quiet_fraction": jnp.mean(noise <= 0.5, dtype=noise.dtype),
            "fresh_noise_value": jnp.max(noise),
            "least_signal_attention": jnp.min(attention[:, 0, 0]),
            "least_signal_value": jnp.min(signal),
            "least_strong_value": jnp.min(strong),
            "signal_wins": jnp.mean(signal > strong, dtype=signal.dtype),
            "noise_share": jnp.mean(jnp.max(seen[:, 1:], axis=1)),
            "readout_square": state.simulation.start.readout_square,
        }


def _view(simulation: Rows | Grams | Leading | Direct) -> View:
    return seen(simulation) if isinstance(simulation, Rows) else simulation.view()


def margins(state: State) -> Float[Array, " samples"]:
    """y_n f(X_n)."""
    return state.simulation.start.labels * state.view.outputs


def signed_values(state: State) -> tuple[Array, Array, Array]:
    """y_n V of the signal, of the strong noise token and of the weak ones."""
    signed = state.simulation.start.labels[:, None] * state.view.values
    return signed[:, 0], signed[:, 1], signed[:, 2:]


def table(weights: Float[Array, "samples query key"]) -> Float[Array, "3 3"]:
    """Means over samples by kind of query and key: signal, strong noise, weak noise (NaN where there is no weak noise)."""
    kinds = _averages(np.minimum(np.arange(weights.shape[-1]), 2)).astype(weights.dtype)
    return kinds @ jnp.mean(weights, axis=0) @ kinds.T


def by_kind(rows: Float[Array, " features"], tokens: int) -> Float[Array, "3"]:
    """Means over features by kind: signals, strong noise, weak noise."""
    noise = np.tile(np.minimum(np.arange(1, tokens), 2), (len(rows) - 2) // (tokens - 1))
    return _averages(np.concatenate([[0, 0], noise])).astype(rows.dtype) @ rows


def _averages(kinds: np.ndarray) -> Array:
    """The matrix that averages over each of `KINDS`: few products compile in less time than many slices and their sums."""
    own = kinds == np.arange(len(KINDS))[:, None]
    count = own.sum(axis=1, keepdims=True)
    return jnp.asarray(np.where(count, own / np.maximum(count, 1), np.nan))


def _norms(state: State) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Squared norms of queries and keys now, and at the start."""
    return (state.view.query_norms, state.view.key_norms), state.start_norms
