"""Population descent as three numbers: the idealised process in the variables of Lemmas 4.1 and 4.2.

Under the population risk the logits keep one value within groups (`gamma`) and one across (`rho`), the diagonal stays
at `beta`, and the value vector stays `alpha w*`. With `f_i = <w*, X_i>` (label +1, signal group first), group sums
`B_i` and total `t`, position `i` pools

    m_i = Lambda f_i + Gamma (B_i - f_i) + Xi (t - B_i),    z_i = D alpha m_i.

Since `sum_i z_i^p` is a polynomial in (Lambda, Gamma, Xi) whose coefficients are sums over positions of powers of
`(f_i, B_i - f_i, t - B_i)`, each draw is kept as these *moments*; a step is two thin matrix-vector products,
there and back.
"""

import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import Descent, Trained, logistic_loss
from lemmata.errors import require
from lemmata.own import Taken, require_between
from lemmata.studies.spatial_structure.data import Structured, three_valued
from lemmata.studies.spatial_structure.network import Constants, PositionalNetwork
from lemmata.trial import Key, Precision, Record, Tracks, fixed

Scalar = Float[Array, ""]


class Tied(NamedTuple):
    """The whole state of population descent: `alpha`, `gamma`, `rho`."""

    alignment: Scalar
    same: Scalar
    cross: Scalar


class Scores(NamedTuple):
    """Attention scores of tied logits: `Lambda` on the diagonal, `Gamma` within groups, `Xi` across."""

    self_score: Scalar
    same: Scalar
    cross: Scalar


class Moments(NamedTuple):
    """Draws of the spurious coefficients, as the polynomial coefficients of `sum_i z_i^p` and, below them, of
    `sum_i z_i`: one column a draw, one row a monomial (`monomials`). `signal` sums over the signal group, `other` over
    the rest."""

    signal: Float[Array, "monomials draws"]
    other: Float[Array, "monomials draws"]

    @property
    def whole(self) -> Float[Array, "monomials draws"]:
        return self.signal + self.other


def exponents(degree: int) -> np.ndarray:
    """All `(a, b, c)` with `a + b + c = degree`."""
    return np.array([(a, b, degree - a - b) for a in range(degree + 1) for b in range(degree + 1 - a)])


def monomials(degree: int) -> np.ndarray:
    """The rows of the moments: powers of `(Lambda, Gamma, Xi)` of the given degree, then of degree 1."""
    return np.concatenate([exponents(degree), np.eye(3, dtype=int)])


def tied_scores(
    same: Array,
    cross: Array,
    diagonal: Array | float,
    patches: int,
    size: int,
    temperature: Array | float = 1.0,
) -> Scores:
    """`Lambda, Gamma, Xi`: row-softmax of tied logits."""
    top = jnp.maximum(jnp.maximum(same, cross), diagonal) / temperature
    parts = [jnp.exp(x / temperature - top) for x in (diagonal, same, cross)]
    total = parts[0] + (size - 1) * parts[1] + (patches - size) * parts[2]
    return Scores(*(part / total for part in parts))


def signal_gain(scores: Scores, patches: int, size: int) -> Array:
    """`G = D (Lambda + (C - 1) Gamma)`."""
    return patches * (scores.self_score + (size - 1) * scores.same)


def draw_moments(data: Structured, degree: int, key: Key, count: int, dtype=jnp.float64) -> Moments:
    """Fresh draws, label +1 and the first group signal (no loss of generality: signs and groups are exchangeable)."""
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(count))
    spin = jax.vmap(lambda k: jax.random.uniform(k, (data.group_count, data.group_size), dtype))(keys)
    spurious = three_valued(spin, jnp.asarray(data.spurious_rate, dtype))
    return moments_of(spurious.at[:, 0].set(1.0), degree)


def moments_of(coefficients: Float[Array, "draws groups size"], degree: int) -> Moments:
    """The moments of given coefficients, ordered by group, the signal group first and equal to +1."""
    group_sum = jnp.sum(coefficients, axis=2, keepdims=True)
    total = jnp.sum(group_sum, axis=1, keepdims=True)
    parts = (coefficients, group_sum - coefficients, jnp.broadcast_to(total - group_sum, coefficients.shape))
    signal, other = [], []
    for powers in monomials(degree).tolist():
        ways = math.factorial(sum(powers)) // math.prod(math.factorial(k) for k in powers)
        by_group = ways * jnp.sum(math.prod(x**k for x, k in zip(parts, powers, strict=True)), axis=2)
        signal.append(by_group[:, 0])
        other.append(jnp.sum(by_group[:, 1:], axis=1))
    return Moments(jnp.stack(signal), jnp.stack(other))


def tied_output(tied: Tied, scores: Scores, moments: Array, patches: int, constants: Constants) -> Array:
    """`F` (times the label) on every draw, from the moments."""
    return (tied.alignment * _weights(tied, scores, patches, constants)) @ moments


def _weights(tied: Tied, scores: Scores, patches: int, constants: Constants) -> Array:
    """What multiplies each moment in `F / alpha`: `alpha^(p-1)` or `nu`, times the monomial in `D` times the scores."""
    rows = monomials(constants.degree)
    values = jnp.prod((patches * jnp.stack(scores)) ** rows, axis=1)
    return values * jnp.where(
        rows.sum(axis=1) > 1, tied.alignment ** (constants.degree - 1), constants.linear
    )


class Pull(NamedTuple):
    """What moves the three numbers: minus the gradient of the population risk with respect to `alpha`, to one
    same-group entry, and to one cross-group entry."""

    alignment: Scalar
    same: Scalar
    cross: Scalar


class Pulled(NamedTuple):
    """What a step sees of the draws: the mean loss, the mean `sg(-yF)` (slack), and what moves the numbers."""

    loss: Scalar
    slack: Scalar
    pull: Pull


def pulled(
    tied: Tied, moments: Array, diagonal: Array | float, patches: int, size: int, constants: Constants
) -> Pulled:
    """Minus the gradient in the three numbers: of one entry, not of the sum of the tied ones.

    alpha: E[sum_i w_i m_i],   gamma: alpha Gamma / (tau D (C-1)) E[sum_i w_i ((B_i - f_i) - (C-1) m_i)],
    rho:   alpha Xi / (tau D (D-C)) E[sum_i w_i ((t - B_i) - (D-C) m_i)],   w_i = sg(-F) D act'(z_i)
    """
    scores = tied_scores(tied.same, tied.cross, diagonal, patches, size, constants.temperature)
    margin = tied_output(tied, scores, moments, patches, constants)
    small = jnp.exp(-jnp.abs(margin))  # serves the loss and its slope
    slack = jnp.where(margin > 0, small, 1.0) / (1 + small)
    loss = jnp.mean(jnp.maximum(-margin, 0) + jnp.log1p(small))
    pull = pull_of(tied, scores, moments @ slack / len(slack), patches, size, constants)
    return Pulled(loss, jnp.mean(slack), pull)


def pull_of(
    tied: Tied, scores: Scores, moments: Array, patches: int, size: int, constants: Constants
) -> Pull:
    """`Pull` from moments already averaged with the weights `sg(-F)`."""
    rows = monomials(constants.degree)
    counts = np.stack([rows.sum(axis=1), rows[:, 1], rows[:, 2]]).astype(moments.dtype)
    on_alignment, on_same, on_cross = counts @ (moments * _weights(tied, scores, patches, constants))
    step = tied.alignment / constants.temperature / patches
    return Pull(
        alignment=on_alignment,
        same=step * (on_same / (size - 1) - scores.same * on_alignment),
        cross=step * (on_cross / (patches - size) - scores.cross * on_alignment),
    )


def advance_tied(tied: Tied, pull: Pull, rate: Array | float, attention_rate: Array | float) -> Tied:
    """One step: `alpha` with step size `rate`, the logits with `rate * attention_rate`."""
    logit_rate = rate * attention_rate
    return Tied(
        tied.alignment + rate * pull.alignment,
        tied.same + logit_rate * pull.same,
        tied.cross + logit_rate * pull.cross,
    )


def drives(
    tied: Tied, moments: Moments, diagonal: Array | float, patches: int, size: int, constants: Constants
) -> tuple[Pull, Pull]:
    """The pull in two parts (GD-alpha): what the signal set gives (S), and what the rest of the image gives (N)."""
    scores = tied_scores(tied.same, tied.cross, diagonal, patches, size, constants.temperature)
    slack = jax.nn.sigmoid(-tied_output(tied, scores, moments.whole, patches, constants))
    signal, other = (
        pull_of(tied, scores, part @ slack / len(slack), patches, size, constants) for part in moments
    )
    return signal, other


def tied_risk(margin: Float[Array, " draws"]) -> dict[str, Array]:
    """Loss, error (`F <= 0` counts as wrong) and ties of margins on draws."""
    tie = jnp.abs(margin) <= 1e-9 * jnp.max(jnp.abs(margin))
    return {
        "loss": jnp.mean(logistic_loss(margin)),
        "error": jnp.mean((margin <= 0) | tie, dtype=margin.dtype),
        "ties": jnp.mean(tie, dtype=margin.dtype),
    }


class Idealised(NamedTuple):
    """State of the three-number recursion; what was `seen` belongs to `tied`."""

    tied: Tied
    seen: Pulled
    moments: Moments
    whole: Float[Array, "monomials draws"]
    unseen: Float[Array, "monomials tests"]
    step: Int[Array, ""]


class IdealisedDescent(Trained):
    """Descent on the population risk (P), as three numbers. The expectation is over a fixed set of `draws`.

    It is no gradient descent in its own three variables: each logit moves by the gradient of one of the entries that it
    stands for. `alignment` is the starting value of alpha; 0 stands for the paper's `nu^(1/(p-1))`. `same` is where gamma
    starts. Events: `event1` is the first step at which the mean slack `E sg(-yF)` has left 1/2 by 0.1 (T0), `same_unit` the
    first with gamma at least 1, `event3` the first with a loss of at most 0.05 (T2).
    """

    name: ClassVar[str] = "spatial-structure/idealised"
    may_be_missing: ClassVar[tuple[str, ...]] = ("cross_lead",)  # ended at its start
    paired: ClassVar = ("descent", "network.diagonal", "alignment", "same")

    data: Structured = Structured()
    network: PositionalNetwork = PositionalNetwork(linear=1e-4, diagonal=2.0)
    descent: Descent = Descent(
        learning_rate=3e-4, attention_rate=1e3, stop="cap", steps=20_000, logs=40, spacing="even"
    )
    alignment: float = 0.0
    same: float = 0.0
    draws: int = fixed(default=500)
    test_draws: int = fixed(default=20_000)
    precision: Precision = fixed(default="float64")

    def __check_init__(self):
        require(self.draws > 0, f"the expectation needs at least one draw, not {self.draws}.")
        require(
            self.alignment >= 0, f"the value vector must not start against the feature, not {self.alignment}."
        )

    @property
    def constants(self) -> Constants:
        return self.network.constants(self.data.dimension)

    def start(self, key: Key) -> Idealised:
        return self.start_from(key)

    def takes(self, key: Key) -> Taken:
        """`Moments` of as many draws as the trial has (`moments_of` makes them of coefficients), and the three numbers."""
        drawn = jax.eval_shape(lambda: self.start(key))
        return Taken(drawn.moments, drawn.tied)

    def check_own(self, data: Moments | None, weights: Tied | None) -> None:
        if weights is not None:
            require_between("weights.alignment", weights.alignment, 0, math.inf)

    def start_from(self, key: Key, data: Moments | None = None, weights: Tied | None = None) -> Idealised:
        dtype = jnp.dtype(self.precision)
        drawn, unseen = (
            draw_moments(self.data, self.network.degree, jax.random.fold_in(key, i), count, dtype)
            for i, count in enumerate((self.draws, self.test_draws))
        )
        moments = drawn if data is None else data
        threshold = jnp.asarray(self.network.threshold, dtype)
        alignment = jnp.where(self.alignment > 0, self.alignment, threshold).astype(dtype)
        tied = Tied(alignment, jnp.asarray(self.same, dtype), jnp.zeros((), dtype))
        tied = tied if weights is None else weights
        seen = self.pulled(tied, moments.whole)
        return Idealised(tied, seen, moments, moments.whole, unseen.whole, jnp.zeros((), jnp.int32))

    def pulled(self, tied: Tied, moments: Array) -> Pulled:
        data = self.data
        return pulled(tied, moments, self.network.diagonal, data.patches, data.group_size, self.constants)

    def step(self, state: Idealised) -> Idealised:
        tied = advance_tied(
            state.tied, state.seen.pull, self.descent.learning_rate, self.descent.attention_rate
        )
        return state._replace(tied=tied, seen=self.pulled(tied, state.whole), step=state.step + 1)

    def loss(self, state: Idealised) -> Scalar:
        return state.seen.loss

    def finished(self, state: Idealised) -> Bool[Array, ""]:
        if self.descent.stop == "target":
            return state.seen.loss <= self.descent.target_loss
        return state.step >= self.steps

    def track(self, state: Idealised) -> Tracks:
        alpha, gamma, rho = state.tied
        lead = jnp.where(state.step > 0, rho - gamma, -jnp.inf)
        before_end = jnp.where(state.seen.loss > END, alpha**self.network.degree, 0)
        return Tracks(
            first={
                "event1": jnp.abs(state.seen.slack - 0.5) >= LEFT,
                "same_unit": gamma >= 1,
                "event3": state.seen.loss <= END,
            },
            largest={"cross_lead": lead, "largest_cross": jnp.abs(rho)},
            total={"alignment_power": before_end},
        )

    def watch(self, state: Idealised) -> Record:
        data, diagonal, tied = self.data, self.network.diagonal, state.tied
        scores = tied_scores(
            tied.same, tied.cross, diagonal, data.patches, data.group_size, self.constants.temperature
        )
        signal, other = drives(tied, state.moments, diagonal, data.patches, data.group_size, self.constants)
        test = tied_risk(tied_output(tied, scores, state.unseen, data.patches, self.constants))
        return {
            "alignment": tied.alignment,
            "same": tied.same,
            "cross": tied.cross,
            "self_score": scores.self_score,
            "same_score": scores.same,
            "cross_score": scores.cross,
            "gain": signal_gain(scores, data.patches, data.group_size),
            "slack": state.seen.slack,
            "signal_drive": signal.alignment,
            "noise_drive": other.alignment,
            "same_pull": state.seen.pull.same,
            "cross_pull": state.seen.pull.cross,
            "largest_output": jnp.max(tied_output(tied, scores, state.whole, data.patches, self.constants)),
            "loss": state.seen.loss,
            "test_error": test["error"],
            "test_loss": test["loss"],
            "ties": test["ties"],
        }

    def record(self, state: Idealised) -> Record:
        return self.watch(state)


END = 0.05
"""The loss at which the third event counts as over (T2)."""
LEFT = 0.1
"""How far the mean slack has left 1/2 when the first event counts as over (T0)."""
