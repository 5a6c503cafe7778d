"""Curvature of random heads, and every inequality of Sec. 3 and its consequences at random points: measured over bound."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lemmata.errors import require
from lemmata.programs import traced_once
from lemmata.reduce import heads as grouped
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.data import BoundedTokens, Samples
from lemmata.studies.multihead.network import Decoder, Heads, Network
from lemmata.studies.multihead.network.derivatives import (
    extreme_eigenvalues,
    gradient_of,
    hessian_of,
    kernel_features,
    loss_curvature,
    smallest_eigenvalue_by_products,
)
from lemmata.studies.multihead.theory import bounds as general
from lemmata.trial import Computed, Key, fixed

DENSE_LIMIT = 1500
"""Up to this many weights the Hessian is written down; beyond, Lanczos."""

POINTWISE = (
    "decoder gradient", "attention gradient", "head gradient", "head Hessian", "model gradient", "model Hessian",
    "self-bounded gradient", "smoothness", "weak convexity",
)  # fmt: skip
INEQUALITIES = (
    *POINTWISE, "quasi-convexity", "segment curvature", "expansion", "descent", "regret", "mean loss",
)  # fmt: skip
"""Prop. 1/5 (the first four), Lemma 5, Cor. 1; Prop. 4/6, eqs 15 and 19, Lemmas 7 to 9."""


class RandomHeads(Computed):
    """The smallest eigenvalue of the loss Hessian at random attention with unit-norm decoders, every head its own."""

    name: ClassVar[str] = "multihead/random-heads"
    paired: ClassVar[tuple[str, ...]] = ("heads",)

    data: BoundedTokens = BoundedTokens(labels="random", tokens=3, dim=3, samples=8, test_samples=1)
    heads: int = fixed(default=4)

    def __check_init__(self):
        require(self.heads >= 1, f"the number of heads must be a whole number from 1 on, not {self.heads}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        network = Network(heads=float(self.heads), start="random", simulated=self.heads)
        samples, params, members, loss = _drawn(self.data, network, key)
        if self.heads * (self.data.tokens * self.data.dim + self.data.dim**2) <= DENSE_LIMIT:
            smallest = float(_smallest(network, params, members, samples))
        else:
            smallest = smallest_eigenvalue_by_products(network, params, samples)
        bounds = general.DataBounds(self.data.dim, self.data.tokens, self.data.radius)
        return {
            "train_loss": float(loss),
            "smallest_eigenvalue": smallest,
            "negative_curvature": -smallest / float(loss),
            "bound": general.negative_curvature_bound(bounds, 1.0, self.heads),
        }


class Looseness(Computed):
    """Measured over bound for every name in `INEQUALITIES`, at one random instance.

    The last three follow a short descent from one random point towards another. `kind`: Gaussian weights and tokens uniform in
    the ball; or `extreme`: all tokens of a sample equal and no decoder, where the gradient bounds are attained. For a `decoder`
    that is one vector, gradients and norms are those of the vector, and the bounds are as printed.
    """

    name: ClassVar[str] = "multihead/looseness"
    may_be_missing: ClassVar[tuple[str, ...]] = ("ratio",)  # Lemma 9 where an iterate left its condition
    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"ratio": ("inequality",)}

    data: BoundedTokens = BoundedTokens(labels="random", tokens=3, dim=2, samples=6, test_samples=1)
    heads: int = fixed(default=4)
    size: float = 1.0
    kind: Literal["gaussian", "extreme"] = fixed(default="gaussian")
    decoder: Decoder = fixed(default="full")

    def compute(self, key: Key) -> Mapping[str, Any]:
        network = Network(float(self.heads), start="random", simulated=self.heads, decoder=self.decoder)
        params, other, samples = jax.tree.map(np.asarray, _two_points(self, network, key))
        found = ratios(network, params, other, samples, self.data.radius)
        return {"ratio": np.array([found[name] for name in INEQUALITIES])}


def ratios(
    network: Network, params: Heads, other: Heads, samples: Samples, radius: float
) -> dict[str, float]:
    """Measured over bound, at most 1 where the theory is right, for every name in `INEQUALITIES`.

    `other` is a second point: quasi-convexity is asked on the segment to a point so near in its direction that the
    condition holds with equality; curvature and expansion on the whole segment.
    """
    pair = Pair(network, params, other, samples, max(1.0, radius))
    return {
        **pair.pointwise(),
        "quasi-convexity": pair.quasi_convexity(),
        "segment curvature": pair.segment_curvature(),
        "expansion": pair.expansion(),
        **pair.descent(),
    }


@dataclass(frozen=True)
class Pair:
    """Two points of explicit heads, and the data on which they are compared."""

    network: Network
    params: Heads
    other: Heads
    samples: Samples
    radius: float

    @property
    def data(self) -> general.DataBounds:
        return general.DataBounds(self.samples.tokens.shape[2], self.samples.tokens.shape[1], self.radius)

    @property
    def heads(self) -> float:
        return float(self.network.heads)

    @property
    def members(self) -> np.ndarray:
        return np.ones(len(self.params.decoder))

    @property
    def gap(self) -> Heads:
        return jax.tree.map(lambda a, b: a - b, self.other, self.params)

    @cached_property
    def measured(self) -> dict[str, np.ndarray]:
        """What `_measure` finds."""
        found = _measure(self.network, self.params, self.other, self.members, self.samples)
        return {name: np.asarray(value) for name, value in found.items()}

    @property
    def norm(self) -> float:
        """The larger decoder norm of the two."""
        return float(max(self.measured["decoder norm"], self.measured["other decoder norm"]))

    @property
    def allowed_share(self) -> float:
        """How much of the way to `other` the condition of Prop. 4/6 allows: all of it (1) or less."""
        whole = float(self.measured["distance"])
        allowed = (self.heads**0.5 / (2 * general.weak_convexity_bound(self.data, self.norm))) ** 0.5
        return min(1.0, allowed / whole)

    def pointwise(self) -> dict[str, float]:
        data, heads = self.data, self.heads
        found, tokens = self.measured, np.asarray(self.samples.tokens[0])
        decoder, loss, norm = found["decoder"], float(found["loss"]), float(found["decoder norm"])
        limits = {
            "decoder gradient": general.decoder_gradient_bound(tokens),
            "attention gradient": general.attention_gradient_bound(tokens, decoder),
            "head gradient": general.gradient_bound(tokens, decoder),
            "head Hessian": general.hessian_bound(tokens, decoder),
            "model gradient": general.gradient_self_bound(data, norm),
            "model Hessian": general.negative_curvature_bound(data, norm, heads),
            "self-bounded gradient": general.gradient_self_bound(data, norm) * loss,
            "smoothness": general.smoothness_bound(data, norm, heads),
            "weak convexity": general.negative_curvature_bound(data, norm, heads) * loss,
        }
        return {name: _ratio(float(found[name]), limit) for name, limit in limits.items()}

    def quasi_convexity(self) -> float:
        """Largest loss on a 101-point segment over 4/3 of the larger end (Prop. 4/6), on the longest segment allowed."""
        losses = self._along(np.linspace(0, self.allowed_share, 101))[0]
        return float(losses.max() / (general.QUASI_CONVEXITY * max(losses[0], losses[-1])))

    def segment_curvature(self) -> float:
        """The most negative curvature at 11 points of a segment over what eq. 15 allows on the whole of it."""
        losses, norms = self._along(np.linspace(0, 1, 101))
        places = np.linspace(0, 1, 11)
        lowest = _segment_curvature(self.network, self.params, self.gap, places, self.members, self.samples)
        norm, largest = float(max(norms[0], norms[-1])), float(losses.max())
        allowed = general.segment_curvature_bound(self.data, norm, largest, self.heads)
        return _ratio(max(-float(np.min(lowest)), 0.0), allowed)

    def expansion(self, step: float = 0.1) -> float:
        """How much one step of GD stretches the distance of two points, over what eq. 19 allows on their segment."""
        losses, norms = self._along(np.linspace(0, 1, 101))
        moved = _stretch(self.network, self.params, self.other, self.members, self.samples, step)
        allowed = max(
            general.expansion_factor(self.data, float(norm), float(loss), self.heads, step)
            for norm, loss in zip(norms, losses, strict=True)
        )
        return float(moved) / allowed

    def descent(self, steps: int = 20) -> dict[str, float]:
        """Measured over bound of Lemmas 7, 8 and 9 along a short descent; for Lemma 7 the decrease that it promises over the
        measured one.

        The step is the largest that Lemma 7 allows at both points. The target of Lemma 8 is `other` itself. That of Lemma 9
        lies in its direction, half as far as the lemma's condition on the heads allows, and its step is so small that the
        descent cannot leave that condition; not a number where an iterate did all the same.
        """
        step = 1 / general.smoothness_bound(self.data, self.norm, self.heads)
        shared = (self.members, self.samples)
        far = follow(self.network, self.params, self.other, *shared, step, steps)
        promised, dropped = step / 2 * far.slopes[:-1] ** 2, -np.diff(far.losses)
        seen = promised > 1e-12 * far.losses[:-1]  # above rounding
        share = self.allowed_share / 2
        goal = jax.tree.map(lambda p, g: p + share * g, self.params, self.gap)
        careful = min(step, general.over(share * far.distances[0], 2 * steps * far.slopes[0]))
        near = follow(self.network, self.params, goal, *shared, careful, steps)
        inside = near.quasi_convexity_margin(self.data, self.heads) >= 1
        bound = general.mean_loss_bound(near.target, careful, steps)
        return {
            "descent": float(np.max(promised[seen] / dropped[seen], initial=0)),
            "regret": far.mean_loss / far.regret_bound(self.data, self.heads, step),
            "mean loss": near.mean_loss / bound if inside else float("nan"),
        }

    def _along(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Loss and largest decoder norm at places on the way to `other`."""
        found = _segment(self.network, self.params, self.gap, places, self.members, self.samples)
        return np.asarray(found[0]), np.asarray(found[1])


@dataclass(frozen=True)
class Followed:
    """A descent seen from a target: at every iterate, the start included, its loss and slope (norm of the gradient),
    its distance from the target and from the start, the larger decoder norm of iterate and target and the largest loss
    between them."""

    losses: np.ndarray
    slopes: np.ndarray
    distances: np.ndarray
    norms: np.ndarray
    between: np.ndarray
    away: np.ndarray
    target: general.Target

    @property
    def mean_loss(self) -> float:
        return float(self.losses[1:].mean())

    def regret_bound(self, data: general.DataBounds, heads: float, step: float) -> float:
        """The right side of Lemma 8."""
        curvatures = general.segment_curvature_bound(data, self.norms, self.between, heads)
        wander = float(np.sum((curvatures * self.distances**2)[:-1]))
        return general.regret_bound(self.target, step, len(self.losses) - 1, wander)

    def quasi_convexity_margin(self, data: general.DataBounds, heads: float) -> float:
        """The tightest margin of the condition on the heads of Lemma 9 over the iterates."""
        return min(
            general.quasi_convexity_margin(data, float(norm), float(distance), heads)
            for norm, distance in zip(self.norms, self.distances, strict=True)
        )


def follow(
    network: Network,
    params: Heads,
    target: Heads,
    members: Array | np.ndarray,
    samples: Samples,
    step: float,
    steps: int,
) -> Followed:
    """Gradient descent with everything that Lemmas 7 to 10 and Theorem 1 speak about."""
    times = np.arange(steps + 1)
    *seen, goal, head_norm = map(np.asarray, _follow(network, params, target, members, samples, step, times))
    aim = general.Target(float(seen[2][0]), float(head_norm), float(goal), float(seen[0][0]))
    return Followed(*seen, aim)  # pyright: ignore[reportCallIssue]


# Compiled parts --------------------------------------------------------------------------------------------------------


@traced_once()
def _follow(network, params, target, members, samples, step, times):
    """What is seen at every one of the times, then the loss and the largest head of the target."""
    goal_norm = grouped.largest_head_norm(target.decoder, members)

    def body(here: Heads, _):
        loss, grads = _slope(network, here, members, samples)
        gap = jax.tree.map(lambda t, p: t - p, target, here)
        between = _segment(network, here, gap, jnp.linspace(0, 1, 11), members, samples)[0]
        norm = jnp.maximum(grouped.largest_head_norm(here.decoder, members), goal_norm)
        away = jax.tree.map(lambda p, b: p - b, here, params)
        distances = (grouped.norm(part, members) for part in (grads, gap))
        seen = (loss, *distances, norm, between.max(), grouped.norm(away, members))
        return jax.tree.map(lambda p, g: p - step * g, here, grads), seen

    seen = jax.lax.scan(body, params, times)[1]
    head_norm = grouped.largest_head_norm(target, members)
    return (*seen, nets.mean_loss(network, target, members, samples), head_norm)


@traced_once()
def _measure(
    network: Network, params: Heads, other: Heads, members: Array, samples: Samples
) -> dict[str, Array]:
    """What is on the left of the pointwise inequalities, by name, and what their right sides need."""
    head, tokens = jax.tree.map(lambda part: part[0], params), samples.tokens[0]
    gradient = gradient_of(network, head, tokens)
    decoder_part = head.decoder.size
    smallest, largest = extreme_eigenvalues(loss_curvature(network, params, members, samples), members)
    hessians = jax.vmap(lambda one: jax.vmap(lambda x: hessian_of(network, one, x))(samples.tokens))(params)
    features = kernel_features(network, params, members, samples)
    loss, grads = _slope(network, params, members, samples)
    return {
        "loss": loss,
        "decoder": nets.full_decoder(head.decoder, network.decoder, len(tokens)),
        "decoder norm": grouped.head_norms(params.decoder).max(),
        "other decoder norm": grouped.head_norms(other.decoder).max(),
        "distance": grouped.norm(jax.tree.map(lambda a, b: a - b, other, params), members),
        "decoder gradient": jnp.linalg.norm(gradient[:decoder_part]),
        "attention gradient": jnp.linalg.norm(gradient[decoder_part:]),
        "head gradient": jnp.linalg.norm(gradient),
        "head Hessian": jnp.abs(jnp.linalg.eigvalsh(hessians[0, 0])).max(),
        "model gradient": jnp.linalg.norm(features, axis=1).max(),
        "model Hessian": network.scale * jnp.abs(jnp.linalg.eigvalsh(hessians)).max(),
        "self-bounded gradient": grouped.norm(grads, members),
        "smoothness": jnp.maximum(largest, -smallest),
        "weak convexity": jnp.maximum(-smallest, 0),
    }


@traced_once()
def _segment(network, params, gap, places, members, samples) -> tuple[Array, Array]:
    """The loss and the largest decoder norm at `params + place * gap`."""

    def at(place: Array) -> tuple[Array, Array]:
        here = jax.tree.map(lambda p, g: p + place * g, params, gap)
        return nets.mean_loss(network, here, members, samples), grouped.head_norms(here.decoder).max()

    return jax.vmap(at)(places)


@traced_once()
def _segment_curvature(network, params, gap, places, members, samples) -> Array:
    """The smallest eigenvalue of the Hessian at `params + place * gap`."""

    def at(place: Array) -> Array:
        here = jax.tree.map(lambda p, g: p + place * g, params, gap)
        return extreme_eigenvalues(loss_curvature(network, here, members, samples), members)[0]

    return jax.lax.map(at, places)


@traced_once()
def _stretch(network, params, other, members, samples, step) -> Array:
    ends = [
        jax.tree.map(lambda a, g: a - step * g, p, _slope(network, p, members, samples)[1])
        for p in (params, other)
    ]
    after, before = (
        grouped.norm(jax.tree.map(lambda x, y: x - y, *two), members) for two in (ends, (params, other))
    )
    return after / before


@traced_once()
def _smallest(network: Network, params: Heads, members: Array, samples: Samples) -> Array:
    return extreme_eigenvalues(loss_curvature(network, params, members, samples), members)[0]


@traced_once()
def _drawn(data: BoundedTokens, network: Network, key: Key) -> tuple[Samples, Heads, Array, Array]:
    """Samples, heads, how many each stands for, and their loss."""
    samples, params, members = _draw(data, network, key)
    return samples, params, members, nets.mean_loss(network, params, members, samples)


@traced_once()
def _two_points(trial: Looseness, network: Network, key: Key) -> tuple[Heads, Heads, Samples]:
    """Two points of a trial and its samples."""
    draw_key, other_key = jax.random.split(key)
    samples, params, _ = _draw(trial.data, network, draw_key)
    other = _draw(trial.data, network, other_key)[1]
    params, other = (jax.tree.map(lambda w: trial.size * w, p) for p in (params, other))
    if trial.kind == "extreme":
        tokens = jnp.ones_like(samples.tokens) * trial.data.radius / trial.data.dim**0.5
        samples = samples._replace(tokens=tokens)
        params = Heads(jnp.zeros_like(params.decoder), params.attention)
    return params, other, samples


def _draw(data: BoundedTokens, network: Network, key: Key) -> tuple[Samples, Heads, Array]:
    data_key, weight_key = jax.random.split(key)
    samples = data.sample(data_key, None, data.samples)
    return samples, *nets.start_heads(network, weight_key, samples)


def _slope(network: Network, params: Heads, members: Array, samples: Samples) -> tuple[Array, Heads]:
    return jax.value_and_grad(lambda p: nets.mean_loss(network, p, members, samples))(params)


def _ratio(measured: float, bound: float) -> float:
    return 0.0 if measured == 0 else measured / bound
