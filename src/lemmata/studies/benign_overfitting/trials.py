"""One training of the benign-overfitting paper, by any of its four simulators, with everything the theorems speak of."""

from typing import ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import Descent, Trained, logistic_loss
from lemmata.errors import require
from lemmata.studies.benign_overfitting.data import Data
from lemmata.studies.benign_overfitting.network import Network, output
from lemmata.studies.benign_overfitting.simulators import (
    Direct,
    Explicit,
    Grams,
    Instance,
    Leading,
    Rows,
    View,
    draw_explicit,
    drive,
    explicit_instance,
    wishart_instance,
    with_rate,
)
from lemmata.trial import Key, Precision, fixed

KINDS = ("signal", "strong", "weak")
LOSSES = (0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001)


class Milestones(NamedTuple):
    """First steps at which something happened; -1 while it has not.

    `signal_leads`, `noise_leads`: the value of the signal (of the strong noise) is 3M times any other, in every sample:
    the end of stage I (Lemmas D.5, E.3). `slope_leaves`: some loss derivative leaves [0.45, 0.55]: the end of stage II.
    `losses`: the training loss has come down to each of `LOSSES`. `lead_lost`: a lead, once won, was lost again.
    """

    signal_leads: Int[Array, ""]
    noise_leads: Int[Array, ""]
    slope_leaves: Int[Array, ""]
    losses: Int[Array, " losses"]
    lead_lost: Bool[Array, ""]


class State(NamedTuple):
    simulation: Rows | Grams | Leading | Direct
    view: View
    start_norms: tuple[Array, Array]
    step: Int[Array, ""]
    time: Float[Array, ""]
    milestones: Milestones


class BenignOverfitting(Trained):
    """Data, network and descent; how to simulate; how many fresh points to test on.

    `sampling=explicit` draws tokens and weights; `wishart` draws the reduced variables in law, for dimensions that no
    matrix could have. The step size may ramp up: it grows geometrically from `ramp_start` times to the full learning
    rate over the first `ramp_steps` steps, so that the early stages are resolved and the last one does not take forever.
    """

    revision: ClassVar = 2
    paired: ClassVar = ("simulator", "precision", "descent", "ramp_steps", "ramp_start")
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
    simulator: Literal["row", "gram", "leading-order", "direct"] = fixed(default="row")
    sampling: Literal["explicit", "wishart"] = fixed(default="explicit")
    test_points: int = fixed(default=100)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.test_points > 0, f"the test set needs at least one point, not {self.test_points}.")
        require(
            not (self.simulator == "direct" and self.sampling == "wishart"),
            "simulator=direct needs sampling=explicit: it works on tokens and weights.",
        )
        require(
            self.descent.method == "gd",
            "this study is about plain gradient descent: descent.method must be gd.",
        )
        require(
            self.descent.batch is None, "this study is about full-batch descent: descent.batch must be none."
        )

    def rate(self, step: Array) -> Array:
        """The step size at a step."""
        left = jnp.where(self.ramp_steps > 0, jnp.clip(1 - step / jnp.maximum(self.ramp_steps, 1), 0, 1), 0)
        return (self.descent.learning_rate * self.ramp_start**left).astype(self.precision)

    def start(self, key: Key) -> State:
        if self.simulator == "direct":
            simulation = Direct.begin(self._explicit(key), self.descent)
        else:
            form = {"row": Rows, "gram": Grams, "leading-order": Leading}[self.simulator]
            simulation = form.begin(self.instance(key))
        view = simulation.view()
        never = jnp.asarray(-1, jnp.int32)
        milestones = Milestones(never, never, never, jnp.full(len(LOSSES), -1, jnp.int32), jnp.asarray(False))
        zero = jnp.zeros((), jnp.int32)
        norms = (view.query_norms, view.key_norms)
        state = State(simulation, view, norms, zero, jnp.zeros((), self.precision), milestones)
        return state._replace(milestones=self._reach(state))

    def step(self, state: State) -> State:
        rate = self.rate(state.step)
        if isinstance(state.simulation, Direct):
            simulation = state.simulation.step(with_rate(self.descent, rate))
        else:
            simulation = state.simulation.step(rate, drive(state.view, state.simulation.labels))
        state = state._replace(
            simulation=simulation, view=simulation.view(), step=state.step + 1, time=state.time + rate
        )
        return state._replace(milestones=self._reach(state))

    def loss(self, state: State) -> Float[Array, ""]:
        return jnp.mean(logistic_loss(margins(state.view, state.simulation.labels)))

    def finished(self, state: State) -> Bool[Array, ""]:
        return self.loss(state) <= self.descent.target_loss

    def watch(self, state: State) -> dict[str, Array]:
        signal, strong, others = signed_values(state.view, state.simulation.labels)
        slope = jax.nn.sigmoid(-margins(state.view, state.simulation.labels))
        growth = [
            by_kind(now / was, self.data.tokens)
            for now, was in zip(_norms(state), state.start_norms, strict=True)
        ]
        return {
            "train_loss": self.loss(state),
            "time": state.time,
            "signal_value": jnp.mean(signal),
            "strong_value": jnp.mean(strong),
            "other_value": jnp.mean(others) if others.size else jnp.zeros((), self.precision),
            "attention": table(jax.nn.softmax(state.view.logits, axis=-1)),
            "logits": table(state.view.logits),
            "slope": jnp.mean(slope),
            "query_growth": growth[0],
            "key_growth": growth[1],
        }

    def record(self, state: State) -> dict[str, Array]:
        labels = state.simulation.labels
        logits, values = state.simulation.test()
        fresh = _fresh_labels(state) * output(logits, values)
        attention = jax.nn.softmax(logits, axis=-1)
        signal, strong, _ = signed_values(state.view, labels)
        reached = state.milestones
        return {
            **self.watch(state),
            "test_loss": jnp.mean(logistic_loss(fresh)),
            "test_error": jnp.mean(fresh <= 0),
            "small_margin_fraction": jnp.mean(fresh <= 0.5),
            "test_attention": table(attention),
            "fresh_noise_value": jnp.max(jnp.abs(values[:, 1:])),
            "least_signal_attention": jnp.min(attention[:, 0, 0]),
            "least_signal_value": jnp.min(signal),
            "least_strong_value": jnp.min(strong),
            "signal_wins": jnp.mean(signal > strong),
            "readout_square": _readout_square(state),
            "signal_leads": reached.signal_leads,
            "noise_leads": reached.noise_leads,
            "slope_leaves": reached.slope_leaves,
            "lead_lost": reached.lead_lost,
            "loss_steps": reached.losses,
        }

    def instance(self, key: Key) -> Instance:
        """The reduced variables at the start, with the fresh points."""
        if self.sampling == "wishart":
            return wishart_instance(self.data, self.network, self.test_points, key, self.precision)
        return explicit_instance(self._explicit(key))

    def _explicit(self, key: Key) -> Explicit:
        return draw_explicit(self.data, self.network, self.test_points, key, self.precision)

    def _reach(self, state: State) -> Milestones:
        labels, view, was = state.simulation.labels, state.view, state.milestones
        size = jnp.abs(view.values)
        signal, strong, _ = signed_values(view, labels)
        times = 3 * self.data.tokens
        signal_leads = jnp.all(signal >= times * jnp.max(size[:, 1:], axis=1))
        rivals = jnp.max(size.at[:, 1].set(0), axis=1)
        noise_leads = jnp.all(strong >= times * rivals)
        slope = jax.nn.sigmoid(-margins(view, labels))
        leaves = jnp.any((slope < 0.45) | (slope > 0.55))

        def first(now: Array, before: Array) -> Array:
            return jnp.where((before < 0) & now, state.step, before)

        lost = ((was.signal_leads >= 0) & ~signal_leads) | ((was.noise_leads >= 0) & ~noise_leads)
        return Milestones(
            first(signal_leads, was.signal_leads),
            first(noise_leads, was.noise_leads),
            first(leaves, was.slope_leaves),
            first(self.loss(state) <= jnp.asarray(LOSSES, self.precision), was.losses),
            was.lead_lost | lost,
        )


def margins(view: View, labels: Array) -> Float[Array, " samples"]:
    """y_n f(X_n)."""
    return labels * output(view.logits, view.values)


def signed_values(view: View, labels: Array) -> tuple[Array, Array, Array]:
    """y_n V of the signal, of the strong noise token and of the weak ones."""
    signed = labels[:, None] * view.values
    return signed[:, 0], signed[:, 1], signed[:, 2:]


def table(weights: Float[Array, "samples query key"]) -> Float[Array, "3 3"]:
    """Means over samples by kind of query and key: signal, strong noise, weak noise (NaN where there is no weak noise)."""
    parts = (slice(0, 1), slice(1, 2), slice(2, None))
    mean = jnp.mean(weights, axis=0)
    return jnp.stack([jnp.stack([jnp.mean(mean[a, b]) for b in parts]) for a in parts])


def by_kind(rows: Float[Array, " features"], tokens: int) -> Float[Array, "3"]:
    """Means over features by kind: signals, strong noise, weak noise."""
    noise = rows[2:].reshape(-1, tokens - 1)
    return jnp.stack([jnp.mean(rows[:2]), jnp.mean(noise[:, 0]), jnp.mean(noise[:, 1:])])


def _norms(state: State) -> tuple[Array, Array]:
    return state.view.query_norms, state.view.key_norms


def _fresh_labels(state: State) -> Array:
    simulation = state.simulation
    return simulation.drawn.test.labels if isinstance(simulation, Direct) else simulation.start.fresh.labels


def _readout_square(state: State) -> Array:
    simulation = state.simulation
    return (
        jnp.sum(simulation.drawn.weights.readout**2)
        if isinstance(simulation, Direct)
        else simulation.start.readout_square
    )
