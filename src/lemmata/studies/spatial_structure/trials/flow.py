"""Descent at one rate as the step size goes to 0: gradient flow on the population risk (P) and on a sample (E).

With the paper's single step size the value vector moves up to seven orders of magnitude faster than the logits. Small steps
then need millions to billions of steps, while a flow has two ways around them:

* The three numbers of population descent are a stiff equation in three variables. An implicit solver takes two thousand
  evaluations for it.
* On a sample the value vector stays at the minimum of the risk for the present logits. Only the logits are integrated, by an
  explicit solver, and Newton steps keep the value vector at its minimum.

Time is the step size times the number of steps. The solvers are those of SciPy.
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate
from jaxtyping import Array, Float

from lemmata.errors import require
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import (
    PositionalNetwork,
    Weights,
    association,
    attention_scores,
    class_summary,
    risk_gradient,
    risk_of,
)
from lemmata.studies.spatial_structure.trials.images import ImageDescent, Scene, as_images
from lemmata.studies.spatial_structure.trials.recursion import (
    END,
    LEFT,
    Idealised,
    IdealisedDescent,
    Pulled,
    Tied,
)
from lemmata.trial import Computed, Key, Precision, Record, fixed

CURVES = (
    "alignment", "same", "cross", "same_score", "cross_score", "self_score", "gain", "slack", "signal_drive", "noise_drive",
    "same_pull", "cross_pull", "largest_output", "loss", "test_error", "test_loss", "ties",
)  # fmt: skip


class IdealisedFlow(Computed):
    """Gradient flow on the population risk at one rate, as three numbers (`IdealisedDescent` has their equations).

    The curves are logged at `times`, geometric from `first` to `last`. `event1`, `same_unit` and `event3` are the times of
    the events of `IdealisedDescent`, -1 where one does not happen. `alignment_power` is the integral of `alpha^p` until the
    loss is 0.05.
    """

    name: ClassVar[str] = "spatial-structure/idealised-flow"
    dims: ClassVar = {f"{name}_curve": ("step",) for name in CURVES}
    paired: ClassVar = ("network.diagonal", "alignment")

    data: Structured = Structured(patches=256, spurious_rate=1 / 16, dimension=256)
    network: PositionalNetwork = PositionalNetwork(linear=1e-8, diagonal=5.5)
    alignment: float = 0.0
    first: float = 1e-6
    last: float = 1e7
    logs: int = fixed(default=601)
    draws: int = fixed(default=500)
    test_draws: int = fixed(default=10_000)
    precision: Precision = fixed(default="float64")

    def __check_init__(self):
        require(0 < self.first < self.last, f"curves are logged from {self.first} to {self.last}: no range.")

    @property
    def times(self) -> np.ndarray:
        """The times of the curves."""
        return np.geomspace(float(self.first), float(self.last), self.logs)

    def compute(self, key: Key) -> dict[str, object]:
        descent = IdealisedDescent(
            data=self.data,
            network=self.network,
            alignment=self.alignment,
            draws=self.draws,
            test_draws=self.test_draws,
        )
        state = begun(descent, key)
        events = (
            lambda t, y: abs(float(seen(descent, state.whole, y)[0].slack) - 0.5) - LEFT,
            lambda t, y: y[1] - 1,
            lambda t, y: float(seen(descent, state.whole, y)[0].loss) - END,
        )
        found = scipy.integrate.solve_ivp(
            lambda t, y: np.asarray(seen(descent, state.whole, y)[1]),
            (0.0, float(self.last)),
            np.array([np.log(float(state.tied.alignment)), 0.0, 0.0, 0.0]),
            method="LSODA",
            t_eval=self.times,
            events=events,
            rtol=1e-8,
            atol=1e-14,
        )
        require(found.success, f"the flow could not be solved: {found.message}")
        curves = curves_of(descent, state, found.y.T)
        first, unit, last = (times[0] if len(times) else -1.0 for times in found.t_events)
        whole = found.y_events[2][0] if last > 0 else found.y[:, -1]
        alpha, gamma, rho = np.exp(found.y[0]), found.y[1], found.y[2]
        return {
            **{f"{name}_curve": np.asarray(curves[name]) for name in CURVES},
            "event1": first,
            "same_unit": unit,
            "event3": last,
            "alignment_power": whole[3],
            "cross_lead": np.max(rho - gamma),
            "largest_cross": np.max(np.abs(rho)),
            "alignment": alpha[-1],
            "same": gamma[-1],
            "cross": rho[-1],
            "loss": np.asarray(curves["loss"])[-1],
            "test_error": np.asarray(curves["test_error"])[-1],
        }


begun = jax.jit(lambda descent, key: descent.start(key))


@jax.jit
def seen(
    descent: IdealisedDescent, moments: Array, y: Float[Array, " four"]
) -> tuple[Pulled, Float[Array, " four"]]:
    """What moves the numbers, and the rates of log alpha, gamma, rho and of the integral of alpha^p."""
    tied = numbers(y)
    now = descent.pulled(tied, moments)
    power = tied.alignment**descent.network.degree
    return now, jnp.stack([now.pull.alignment / tied.alignment, now.pull.same, now.pull.cross, power])


@jax.jit
def curves_of(descent: IdealisedDescent, state: Idealised, ys: Float[Array, "times four"]) -> Record:
    """What `IdealisedDescent` logs, at each of these places."""

    def one(y: Array) -> Record:
        tied = numbers(y)
        return descent.watch(state._replace(tied=tied, seen=descent.pulled(tied, state.whole)))

    return jax.lax.map(one, ys)


def numbers(y: Float[Array, " four"]) -> Tied:
    """The three numbers in the variables of the solver."""
    return Tied(jnp.exp(y[0]), y[1], y[2])


# On a sample ------------------------------------------------------------------------------------------------------------


SEEN = (
    "loss", "test_error", "test_loss", "alignment", "orthogonal", "cosine", "exact", "overlap", "auc", "margin", "row_margin",
    "off_diagonal", "same_mean", "same_std", "same_min", "same_max", "cross_mean", "cross_std", "cross_min", "cross_max",
    "column_sums",
)  # fmt: skip


class SampleFlow(Computed):
    """Gradient flow on the risk of a sample at one rate, in the limit in which the value vector moves infinitely faster.

    The value vector first flows to the minimum of the risk, the logits at their Gaussian start. From then on the logits flow,
    and the value vector stays at its minimum. The run ends at the time `last`, or when the training loss is `target_loss`:
    below, the minimum runs away, since all images are classified rightly. Curves are logged at `times`, evenly spaced, and
    are NaN after the end.
    """

    name: ClassVar[str] = "spatial-structure/sample-flow"
    dims: ClassVar = {f"{name}_curve": ("step",) for name in SEEN} | {
        "logits": ("row", "column"),
        "group_of": ("patch",),
        "value": ("dimension",),
    }
    may_be_missing: ClassVar[tuple[str, ...]] = tuple(f"{name}_curve" for name in SEEN)  # ended before
    paired: ClassVar = ("samples",)

    data: Structured = Structured(patches=64, spurious_rate=0.21, dimension=8)
    network: PositionalNetwork = PositionalNetwork(linear=1e-8, diagonal=4.1, init=1e-6)
    last: float = 12_000.0
    target_loss: float = 0.02
    logs: int = fixed(default=61)
    samples: int = fixed(default=4096)
    test_samples: int = fixed(default=4000)
    precision: Precision = fixed(default="float32")

    @property
    def times(self) -> np.ndarray:
        """The times of the curves."""
        return np.linspace(0, float(self.last), self.logs)

    def compute(self, key: Key) -> dict[str, object]:
        images = ImageDescent(
            data=self.data,
            network=self.network,
            samples=self.samples,
            test_samples=self.test_samples,
            precision=self.precision,
        )
        start, sample, scene = drawn(images, key)
        risk = Risk(images, sample)
        logits = np.asarray(start.logits, float)
        flow = LogitFlow(risk, risk.settled(start))
        logged: list[Record] = []

        def watch(logits: np.ndarray) -> Weights:
            flow.settle(logits)
            weights = risk.weights(logits, flow.value)
            logged.append(watched(images, weights, sample, scene))
            return weights

        watch(logits)
        solver = scipy.integrate.RK23(
            flow.rate, 0.0, logits.ravel(), float(self.last), rtol=1e-3, atol=1e-4, max_step=self.times[1]
        )
        while solver.status == "running" and flow.loss > self.target_loss:
            solver.step()
            between = solver.dense_output()
            for time in self.times[len(logged) :]:
                if time <= solver.t:
                    watch(between(time).reshape(logits.shape))
            flow.settle(solver.y.reshape(logits.shape))
        end = watch(solver.y.reshape(logits.shape))
        gone = [np.nan] * (self.logs + 1 - len(logged))
        return {
            **{f"{name}_curve": np.array([float(one[name]) for one in logged[:-1]] + gone) for name in SEEN},
            **{name: float(logged[-1][name]) for name in SEEN},
            "end": solver.t,
            "logits": np.asarray(end.logits),
            "value": np.asarray(end.value),
            "group_of": np.asarray(scene.world.group_of),
        }


class Risk:
    """The risk of one sample, its gradient in logits and value vector, and its Hessian in the value vector."""

    def __init__(self, images: ImageDescent, sample: tuple[Array, Array]):
        self.images, self.sample, self.plain = images, sample, as_images(*sample)

    def weights(self, logits: np.ndarray, value: np.ndarray) -> Weights:
        """Weights in the precision of the sample."""
        dtype = self.sample[0].dtype
        return Weights(jnp.asarray(logits, dtype), jnp.asarray(value, dtype))

    def gradient(self, logits: np.ndarray, value: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """The risk and its gradient in the logits and in the value vector."""
        risk, slope = gradient_of(self.images, self.weights(logits, value), self.sample)
        return float(risk), np.asarray(slope.logits, float), np.asarray(slope.value, float)

    def hessian(self, logits: np.ndarray, value: np.ndarray) -> np.ndarray:
        """The second derivative of the risk in the value vector."""
        return np.asarray(hessian_of(self.images, self.weights(logits, value), self.plain), float)

    def settled(self, start: Weights) -> np.ndarray:
        """The value vector to which gradient flow leads while the logits stay at their start."""
        logits = np.asarray(start.logits, float)
        flown = scipy.integrate.solve_ivp(
            lambda t, v: -self.gradient(logits, v)[2],
            (0.0, SETTLED),
            np.asarray(start.value, float),
            method="BDF",
            jac=lambda t, v: -self.hessian(logits, v),
            rtol=1e-4,
            atol=1e-9,
        )
        require(flown.success, f"the first event could not be solved: {flown.message}")
        return flown.y[:, -1]


drawn = jax.jit(lambda images, key: images.draw(key))


@jax.jit
def gradient_of(images: ImageDescent, weights: Weights, sample: tuple[Array, Array]) -> tuple[Array, Weights]:
    return risk_gradient(weights, *sample, images.constants)


@jax.jit
def hessian_of(images: ImageDescent, weights: Weights, plain: tuple[Array, Array]) -> Array:
    return jax.hessian(lambda v: risk_of(weights._replace(value=v), *plain, images.constants))(weights.value)


@jax.jit
def watched(images: ImageDescent, weights: Weights, sample: tuple[Array, Array], scene: Scene) -> Record:
    """What `ImageDescent` logs of these weights, and the largest distance of a column sum of the scores from 1."""
    group_of, groups = scene.world.group_of, images.data.group_count
    scores = attention_scores(weights.logits, images.constants.temperature)
    return {
        "loss": risk_gradient(weights, *sample, images.constants)[0],
        **images.tested(weights, scene),
        **association(weights.logits, group_of, groups),
        **class_summary(weights.logits, group_of, groups),
        "column_sums": jnp.max(jnp.abs(jnp.sum(scores, axis=0) - 1)),
    }


SETTLED = 1000.0
"""The time that the first event may take. The logits have not moved by then: they take thousands."""
NEWTON = 1e-4
"""The value vector is at its minimum when a Newton step moves it by less than this share."""
SHRINK, LONGEST = 0.3, 0.2
"""A Newton step is at least so much shorter than the one before, and moves the value vector by this share at most."""


class LogitFlow:
    """The flow of the logits, the value vector at its minimum.

    The Hessian of a former place serves until Newton steps with it shrink too slowly.
    """

    def __init__(self, risk: Risk, value: np.ndarray):
        self.risk, self.value, self.inverse = risk, value, np.zeros((len(value), len(value)))
        self.loss = np.inf

    def settle(self, logits: np.ndarray) -> np.ndarray:
        """Take the value vector to its minimum and return the gradient in the logits there."""
        last = np.inf
        for _ in range(50):
            self.loss, slope, pull = self.risk.gradient(logits, self.value)
            length = float(np.linalg.norm(self.value))
            move = self.inverse @ pull
            if float(np.linalg.norm(move)) > SHRINK * last or not self.inverse.any():
                self.inverse = np.linalg.inv(self.risk.hessian(logits, self.value))
                move = self.inverse @ pull
            last = float(np.linalg.norm(move))
            self.value = self.value - move * min(1.0, LONGEST * length / max(last, 1e-300))
            if last <= NEWTON * length:
                return slope
        raise ArithmeticError("the risk has no minimum in the value vector that Newton steps find.")

    def rate(self, time: float, flat: np.ndarray) -> np.ndarray:
        """The rates of all logits, as one vector."""
        size = round(len(flat) ** 0.5)
        return -self.settle(flat.reshape(size, size)).ravel()
