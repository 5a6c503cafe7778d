"""What can be asked of the model without training it: random heads, the first phase, saturation, every inequality."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any, ClassVar, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lemmata.descent import logistic_loss
from lemmata.errors import require
from lemmata.reduce import heads as grouped
from lemmata.studies.multihead import mixture_theory, theory
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.curvature import (
    extreme_eigenvalues,
    kernel_features,
    loss_curvature,
    smallest_eigenvalue_by_products,
)
from lemmata.studies.multihead.data import (
    BoundedTokens,
    NoiseBounds,
    Samples,
    TokenMixture,
    measured_noise_bounds,
)
from lemmata.studies.multihead.network import Heads, Network
from lemmata.trial import Computed, Key, fixed

DENSE_LIMIT = 1500
"""Up to this many weights the Hessian is written down; beyond, Lanczos."""


# Curvature of random heads ---------------------------------------------------------------------------------------------


class RandomHeads(Computed):
    """The smallest eigenvalue of the loss Hessian at random attention with unit-norm decoders, every head its own."""

    paired: ClassVar[tuple[str, ...]] = ("heads",)

    data: BoundedTokens = BoundedTokens(labels="random", tokens=3, dim=3, samples=8, test_samples=1)
    heads: int = fixed(default=4)

    def __check_init__(self):
        require(self.heads >= 1, f"the number of heads must be a whole number from 1 on, not {self.heads}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        network = Network(heads=float(self.heads), start="random", simulated=self.heads)
        samples, params, members = _draw(self.data, network, key)
        loss = float(jnp.mean(logistic_loss(nets.margins(network, params, members, samples))))
        size = self.heads * (self.data.tokens * self.data.dim + self.data.dim**2)
        if size <= DENSE_LIMIT:
            smallest = float(_extremes(network, params, members, samples)[0])
        else:
            smallest = smallest_eigenvalue_by_products(network, params, samples)
        bounds = theory.DataBounds(self.data.dim, self.data.tokens, self.data.radius)
        return {
            "train_loss": loss,
            "smallest_eigenvalue": smallest,
            "negative_curvature": -smallest / loss,
            "bound": theory.negative_curvature_bound(bounds, 1.0, self.heads),
        }


# The first phase and the NTK margin on the mixture ---------------------------------------------------------------------


class FirstPhase(Computed):
    """One randomised step from zero on the mixture, and everything that makes its end a good start.

    `alpha` is the law of the step: a random sign for each head, or uniform on [-1, 1].
    """

    paired: ClassVar[tuple[str, ...]] = ("heads", "alpha", "first_samples", "data.samples")

    data: TokenMixture = TokenMixture()
    heads: int = fixed(default=64)
    alpha: mixture_theory.AlphaLaw = fixed(default="signs")
    first_samples: int = fixed(default=1000)

    def __check_init__(self):
        require(
            self.first_samples >= 1, f"the first phase needs at least one sample, not {self.first_samples}."
        )
        require(self.heads >= 1, f"the number of heads must be a whole number from 1 on, not {self.heads}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        network = Network(
            heads=float(self.heads), start=self.alpha, simulated=2 if self.alpha == "signs" else self.heads
        )
        first, samples, params, members = _first_phase(_arrays(self), _arrays(network), key)
        row = np.asarray(nets.first_phase_row(first))
        oracle = np.asarray(self.data.frame[0] - self.data.frame[1])
        zeta = self.data.relevant_fraction
        bounds = mixture_bounds(self.data, samples)
        mean_row = mixture_theory.row_coefficient(zeta) * oracle
        residual = float(np.linalg.norm(row - mean_row))
        decoder_part, attention_part = margin_parts(self.data, row, samples)
        mean_part = margin_parts(self.data, mean_row, samples)[1].min() * mixture_theory.MEAN_STEP[self.alpha]
        steps = np.asarray(params.decoder[:, 0] @ row / (row @ row))
        weight = float(np.asarray(members) @ np.abs(steps) / self.heads)
        features = np.asarray(_features(_arrays(network), params, members, samples))
        return {
            "residual": residual,
            "printed_residual": float(
                np.linalg.norm(row - mixture_theory.row_coefficient(zeta, printed=True) * oracle)
            ),
            "decoder_part": float(decoder_part.min()),
            "attention_part": float(attention_part.min()) * mixture_theory.MEAN_STEP[self.alpha],
            "mean_attention_part": float(mean_part),
            "margin": float((decoder_part + weight * attention_part).min()),
            "best_margin": mixture_theory.best_margin(features, np.asarray(samples.labels)),
            "largest_output": float(jnp.abs(nets.outputs(network, params, members, samples.tokens)).max()),
            "largest_head": float(grouped.largest_head_norm(params, members)),
            "linear_bound": mixture_theory.linear_margin(bounds),
            "attention_bound": mixture_theory.attention_share(bounds, residual, self.alpha),
            "sharper_attention_bound": mixture_theory.sharper_attention_share(bounds, residual, self.alpha),
            "mean_attention_bound": mixture_theory.attention_share(bounds, 0.0, self.alpha),
            "corrected_bound": mixture_theory.ntk_margin(bounds, residual, self.alpha),
            "printed_bound": mixture_theory.printed_ntk_margin(bounds, residual),
            "norm_bound": mixture_theory.start_norm_bound(bounds, residual),
            "output_bound": mixture_theory.start_output_bound(bounds, residual, self.data.samples, 0.05),
            "attention_margin": mixture_theory.attention_margin(bounds),
            "saturated_margin": saturated_margin(self.data, samples),
        }


def mixture_bounds(data: TokenMixture, samples: Samples) -> mixture_theory.MixtureBounds:
    """The constants of the mixture: almost sure ones where the noise has them, else measured on the samples."""
    return mixture_theory.MixtureBounds(
        data.dim,
        data.tokens,
        data.patterns,
        float(data.signal),
        float(data.relevant_fraction),
        NoiseBounds(*map(float, data.noise_bounds() or measured_noise_bounds(data, samples))),
    )


def oracle_attention(data: TokenMixture) -> np.ndarray:
    """`W* = mu_+ mu_+^T + mu_- mu_-^T + sum_l nu_l (mu_+ + mu_-)^T` at unit norm (eq. 104): queries in rows."""
    frame = np.asarray(data.frame)
    both = frame[0] + frame[1]
    wanted = (
        np.outer(frame[0], frame[0]) + np.outer(frame[1], frame[1]) + np.outer(frame[2:].sum(axis=0), both)
    )
    return wanted / np.linalg.norm(wanted)


def oracle_decoder(data: TokenMixture) -> np.ndarray:
    """`U* = 1_T (mu_+ - mu_-)^T` at unit norm (eq. 105)."""
    frame = np.asarray(data.frame)
    wanted = np.tile(frame[0] - frame[1], (data.tokens, 1))
    return wanted / np.linalg.norm(wanted)


def margin_parts(data: TokenMixture, row: np.ndarray, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """`y <grad Phi(theta^(1)), theta*>` of every sample, split: the decoder's part, and the attention's for `|alpha| = 1`.

    At the first phase's end `grad_U Phi = 1_T xbar^T` and `grad_W Phi = alpha T xbar (Sigma_X a)^T` with `xbar` the mean
    token and `Sigma_X` the covariance of a sample's tokens.
    """
    tokens, labels = np.asarray(samples.tokens), np.asarray(samples.labels)
    mean = tokens.mean(axis=1)
    moved = np.einsum("nti,ntj,j->ni", tokens, tokens, row) / data.tokens - mean * (mean @ row)[:, None]
    decoder = labels * (mean @ oracle_decoder(data).sum(axis=0))
    attention = labels * data.tokens * np.einsum("ni,ij,nj->n", mean, oracle_attention(data), moved)
    return decoder, attention


def ntk_kernel(row: np.ndarray, squared_step: float, samples: Samples) -> np.ndarray:
    """`k(X, X') = T xbar.xbar' + mean(alpha^2) T^2 (xbar.xbar')(a^T Sigma_X Sigma_X' a)` at the first phase's end."""
    tokens = np.asarray(samples.tokens)
    count, mean = tokens.shape[1], tokens.mean(axis=1)
    moved = np.einsum("nti,ntj,j->ni", tokens, tokens, row) / count - mean * (mean @ row)[:, None]
    return (mean @ mean.T) * (count + squared_step * count**2 * (moved @ moved.T))


def saturated_margin(data: TokenMixture, samples: Samples, scale: float = 1e4) -> float:
    """The smallest margin of the saturated single head `(U_opt, Gamma W_opt)` with a huge `Gamma`."""
    output = nets.head_output(
        jnp.asarray(oracle_decoder(data)), scale * jnp.asarray(oracle_attention(data)), samples.tokens
    )
    return float((samples.labels * output).min())


# Realizability ---------------------------------------------------------------------------------------------------------


class Realizing(Computed):
    """How many heads the target of Prop. 7, `G theta*` away from the end of the first phase, really needs until every
    sample has the margin `log(1/eps)`, and how many the proposition asks for. Half of the steps have either sign."""

    paired: ClassVar[tuple[str, ...]] = ("loss",)

    data: TokenMixture = TokenMixture(relevant_fraction=0.4, noise=0.01, noise_law="cube")
    first_samples: int = fixed(default=10_000)
    loss: float = 0.01

    def __check_init__(self):
        require(0 < self.loss <= 1, f"the target's loss must lie in (0, 1], not {self.loss}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        first_key, data_key = jax.random.split(key)
        first = _samples(_arrays(self.data), first_key, self.first_samples)
        samples = _samples(_arrays(self.data), data_key, self.data.samples)
        row = np.asarray(nets.first_phase_row(first))
        start = measured_good_start(self.data, row, samples)
        bounds = mixture_bounds(self.data, samples).data
        asked = start.required_heads(bounds, self.loss)
        grid = np.append(2.0 ** np.arange(1, 81), 2 * np.ceil(asked / 2))
        found = realized_margins(self.data, row, samples, start, self.loss, grid)
        short = np.flatnonzero(found[:-1] < np.log(1 / self.loss))
        enough = 0 if len(short) == 0 else short[-1] + 1
        return {
            "ntk_margin": start.margin,
            "needed_heads": grid[enough] if enough < 80 else inf,
            "asked_heads": asked,
            "printed_heads": replace(start, printed=True).required_heads(bounds, self.loss),
            "margin": found[-1],
        }


def measured_good_start(data: TokenMixture, row: np.ndarray, samples: Samples) -> theory.GoodStart:
    """Definition 1 checked at the end of a first phase whose signs balance (every output is then 0): the constants
    `B_2`, `B_Phi` and the NTK margin of the paper's direction on these samples."""
    decoder_part, attention_part = margin_parts(data, row, samples)
    norm = data.tokens**0.5 * float(np.linalg.norm(row))
    return theory.GoodStart(max(1.0, norm), 1.0, float((decoder_part + attention_part).min()))


def realized_margins(
    data: TokenMixture,
    row: np.ndarray,
    samples: Samples,
    start: theory.GoodStart,
    loss: float,
    heads: np.ndarray,
) -> np.ndarray:
    """The smallest margin at the target of Prop. 7, `theta^(1) + G theta*`, half of the heads having either sign, for
    every number of heads."""
    decoder, attention = jnp.asarray(oracle_decoder(data)), jnp.asarray(oracle_attention(data))
    return np.asarray(
        _realized(decoder, attention, row, samples, start.reach(loss), jnp.asarray(heads, float))
    )


@jax.jit
def _realized(decoder, attention, row, samples: Samples, reach, heads) -> Array:
    signs = jnp.array([1.0, -1.0])[:, None, None]

    def one(count: Array) -> Array:
        way = reach / jnp.sqrt(count)
        params = Heads(signs * row + way * decoder, way * signs * attention)
        network = eqx.tree_at(lambda n: n.heads, Network(heads=2.0, start="signs", simulated=2), count)
        return nets.margins(network, params, jnp.full(2, count / 2), samples).min()

    return jax.lax.map(one, heads)


# Saturated attention ---------------------------------------------------------------------------------------------------


class Saturation(Computed):
    """The single head of Prop. 3 at the scale that leaves at most `leak` of the attention on irrelevant tokens."""

    paired: ClassVar[tuple[str, ...]] = ("leak",)

    data: TokenMixture = TokenMixture(noise_law="ball", relevant_fraction=0.2, dim=6)
    leak: float = 0.01

    def __check_init__(self):
        require(0 < self.leak < 1, f"the leak must lie strictly between 0 and 1, not {self.leak}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        samples = _samples(_arrays(self.data), key, self.data.samples)
        bounds = mixture_bounds(self.data, samples)
        scale = mixture_theory.saturating_norm(bounds, float(self.leak))
        attention = scale * jnp.asarray(oracle_attention(self.data))
        maps = nets.attention_map(attention, samples.tokens)
        leaked = jnp.sum(maps * ~samples.relevant[:, None, :], axis=-1)
        output = nets.head_output(jnp.asarray(oracle_decoder(self.data)), attention, samples.tokens)
        return {
            "scale": scale,
            "leaked": float(leaked.max()),
            "margin": float((samples.labels * output).min()),
            "bound": mixture_theory.attention_margin(bounds, float(self.leak)),
            "limit": mixture_theory.attention_margin(bounds),
        }


# Every inequality at once ----------------------------------------------------------------------------------------------

INEQUALITIES = (
    "decoder gradient",
    "attention gradient",
    "head gradient",
    "head Hessian",
    "model gradient",
    "model Hessian",
    "self-bounded gradient",
    "smoothness",
    "weak convexity",
    "quasi-convexity",
    "segment curvature",
    "expansion",
    "descent",
    "regret",
    "mean loss",
)


class Looseness(Computed):
    """Measured over bound for every inequality of Sec. 3 and its consequences, at one random instance.

    The last three (Lemmas 7, 8 and 9) follow a short descent from one random point towards another.

    `kind`: Gaussian weights and tokens uniform in the ball; or `extreme`: all tokens of a sample equal and no decoder,
    where the gradient bounds are attained.
    """

    dims: ClassVar[Mapping[str, tuple[str, ...]]] = {"ratio": ("inequality",)}
    revision: ClassVar[int] = 2

    data: BoundedTokens = BoundedTokens(labels="random", tokens=3, dim=2, samples=6, test_samples=1)
    heads: int = fixed(default=4)
    size: float = 1.0
    kind: Literal["gaussian", "extreme"] = fixed(default="gaussian")

    def compute(self, key: Key) -> Mapping[str, Any]:
        network = Network(heads=float(self.heads), start="random", simulated=self.heads)
        draw_key, other_key = jax.random.split(key)
        samples, params, _ = _draw(self.data, network, draw_key)
        other = _draw(self.data, network, other_key)[1]
        size = float(self.size)
        params, other = (Heads(size * p.decoder, size * p.attention) for p in (params, other))
        if self.kind == "extreme":
            tokens = jnp.ones_like(samples.tokens) * self.data.radius / self.data.dim**0.5
            samples = samples._replace(tokens=tokens)
            params = Heads(jnp.zeros_like(params.decoder), params.attention)
        return {"ratio": np.array(list(ratios(network, params, other, samples, self.data.radius).values()))}


def ratios(
    network: Network, params: Heads, other: Heads, samples: Samples, radius: float
) -> dict[str, float]:
    """Measured over bound, at most 1 where the theory is right, for every name in `INEQUALITIES`.

    `other` is a second point: quasi-convexity is asked on the segment to a point so near in its direction that the
    condition holds with equality, expansion on the whole segment.
    """
    heads, members = float(network.heads), jnp.ones(len(params.decoder))
    data = theory.DataBounds(samples.tokens.shape[2], samples.tokens.shape[1], max(1.0, radius))
    tokens, decoder = np.asarray(samples.tokens[0]), np.asarray(params.decoder[0])
    measured = {name: float(value) for name, value in _measure(network, params, members, samples).items()}
    norm = float(grouped.head_norms(params.decoder).max())
    limits = {
        "decoder gradient": theory.decoder_gradient_bound(tokens),
        "attention gradient": theory.attention_gradient_bound(tokens, decoder),
        "head gradient": theory.gradient_bound(tokens, decoder),
        "head Hessian": theory.hessian_bound(tokens, decoder),
        "model gradient": theory.gradient_self_bound(data, norm),
        "model Hessian": theory.negative_curvature_bound(data, norm, heads),
        "self-bounded gradient": theory.gradient_self_bound(data, norm) * measured["loss"],
        "smoothness": theory.smoothness_bound(data, norm, heads),
        "weak convexity": theory.negative_curvature_bound(data, norm, heads) * measured["loss"],
    }
    found = {name: _ratio(measured[name], limit) for name, limit in limits.items()}
    pair = (network, params, other, samples, data)
    return (
        found
        | {
            "quasi-convexity": quasi_convexity_ratio(*pair),
            "segment curvature": segment_curvature_ratio(*pair),
            "expansion": expansion_ratio(*pair),
        }
        | descent_ratios(*pair)
    )


def quasi_convexity_ratio(
    network: Network, params: Heads, other: Heads, samples: Samples, data: theory.DataBounds
) -> float:
    """Largest loss on a 101-point segment over 4/3 of the larger end (Prop. 4/6), on the longest segment allowed."""
    gap, far = _gap(params, other), _allowed_share(network, params, other, data)
    places = jnp.linspace(0, far, 101)
    losses = np.asarray(_segment(network, params, gap, places, jnp.ones(len(params.decoder)), samples)[0])
    return float(losses.max() / (theory.QUASI_CONVEXITY * max(losses[0], losses[-1])))


def segment_curvature_ratio(
    network: Network, params: Heads, other: Heads, samples: Samples, data: theory.DataBounds
) -> float:
    """The most negative curvature at 11 points of a segment over what eq. 15 allows on the whole of it."""
    members, places = jnp.ones(len(params.decoder)), jnp.linspace(0, 1, 101)
    gap = _gap(params, other)
    losses, norms = map(np.asarray, _segment(network, params, gap, places, members, samples))
    smallest = float(np.min(_segment_curvature(network, params, gap, places[::10], members, samples)))
    norm = float(max(norms[0], norms[-1]))
    return _ratio(
        max(-smallest, 0.0),
        theory.segment_curvature_bound(data, norm, float(losses.max()), float(network.heads)),
    )


def expansion_ratio(
    network: Network,
    params: Heads,
    other: Heads,
    samples: Samples,
    data: theory.DataBounds,
    step: float = 0.1,
) -> float:
    """How much one step of GD stretches the distance of two points, over what eq. 19 allows on their segment."""
    members = jnp.ones(len(params.decoder))
    gap = _gap(params, other)
    losses, norms = map(np.asarray, _segment(network, params, gap, jnp.linspace(0, 1, 101), members, samples))
    moved = _stretch(network, params, other, members, samples, step)
    allowed = max(
        theory.expansion_factor(data, float(norm), float(loss), float(network.heads), step)
        for norm, loss in zip(norms, losses, strict=True)
    )
    return float(moved) / allowed


def descent_ratios(
    network: Network, params: Heads, other: Heads, samples: Samples, data: theory.DataBounds, steps: int = 20
) -> dict[str, float]:
    """Measured over bound of Lemmas 7, 8 and 9 along a short descent from `params`; for Lemma 7 the decrease that it
    promises over the measured one.

    The step is the largest that Lemma 7 allows at both points. The target of Lemma 8 is `other` itself. That of Lemma 9
    lies in its direction, half as far as the lemma's condition on the heads allows, and its step is so small that the
    descent cannot leave that condition; not a number where an iterate did all the same.
    """
    heads, members = float(network.heads), jnp.ones(len(params.decoder))
    norm = max(_decoder_norm(params), _decoder_norm(other))
    step = 1 / theory.smoothness_bound(data, norm, heads)
    far = follow(network, params, other, members, samples, step, steps)
    promised, dropped = step / 2 * far.slopes[:-1] ** 2, -np.diff(far.losses)
    seen = promised > 1e-12 * far.losses[:-1]  # above rounding
    share = _allowed_share(network, params, other, data) / 2
    goal = jax.tree.map(lambda p, g: p + share * g, params, _gap(params, other))
    careful = min(step, _over(share * far.distances[0], 2 * steps * far.slopes[0]))
    near = follow(network, params, goal, members, samples, careful, steps)
    inside = near.quasi_convexity_margin(data, heads) >= 1
    return {
        "descent": float(np.max(promised[seen] / dropped[seen], initial=0)),
        "regret": far.mean_loss / far.regret_bound(data, heads, step),
        "mean loss": near.mean_loss / theory.mean_loss_bound(near.target, careful, steps)
        if inside
        else float("nan"),
    }


@dataclass(frozen=True)
class Followed:
    """A descent seen from a target: at every iterate, the start included, its loss and slope (norm of the gradient),
    its distance from the target, the larger decoder norm of the two and the largest loss between them."""

    losses: np.ndarray
    slopes: np.ndarray
    distances: np.ndarray
    norms: np.ndarray
    between: np.ndarray
    away: np.ndarray
    target: theory.Target

    @property
    def steps(self) -> int:
        return len(self.losses) - 1

    @property
    def mean_loss(self) -> float:
        return float(self.losses[1:].mean())

    def regret_bound(self, data: theory.DataBounds, heads: float, step: float) -> float:
        """The right side of Lemma 8."""
        curvatures = np.array(
            [
                theory.segment_curvature_bound(data, float(norm), float(loss), heads)
                for norm, loss in zip(self.norms, self.between, strict=True)
            ]
        )
        wander = float(np.sum((curvatures * self.distances**2)[:-1]))
        return theory.regret_bound(self.target, step, self.steps, wander)

    def quasi_convexity_margin(self, data: theory.DataBounds, heads: float) -> float:
        """The tightest margin of the condition on the heads of Lemma 9 over the iterates."""
        return min(
            theory.quasi_convexity_margin(data, float(norm), float(distance), heads)
            for norm, distance in zip(self.norms, self.distances, strict=True)
        )


def follow(
    network: Network, params: Heads, target: Heads, members: Array, samples: Samples, step: float, steps: int
) -> Followed:
    """Gradient descent with everything that Lemmas 7 to 10 and Theorem 1 speak about."""
    found = _follow(_arrays(network), params, target, members, samples, jnp.asarray(step), steps)
    losses, slopes, distances, norms, between, away, goal = map(np.asarray, found)
    head_norm = float(grouped.largest_head_norm(target, members))
    return Followed(
        losses, slopes, distances, norms, between, away,
        theory.Target(float(distances[0]), head_norm, float(goal), float(losses[0])),
    )  # fmt: skip


@eqx.filter_jit
def _follow(network, params, target, members, samples, step, steps):
    def objective(p: Heads) -> Array:
        return jnp.mean(logistic_loss(nets.margins(network, p, members, samples)))

    def apart(a: Heads, b: Heads) -> Array:
        return grouped.norm(jax.tree.map(lambda x, y: x - y, a, b), members)

    goal_norm = grouped.largest_head_norm(target.decoder, members)

    def body(here: Heads, _):
        loss, grads = jax.value_and_grad(objective)(here)
        gap = jax.tree.map(lambda t, p: t - p, target, here)
        between = _segment(network, here, gap, jnp.linspace(0, 1, 11), members, samples)[0]
        norm = jnp.maximum(grouped.largest_head_norm(here.decoder, members), goal_norm)
        seen = (
            loss,
            grouped.norm(grads, members),
            grouped.norm(gap, members),
            norm,
            between.max(),
            apart(here, params),
        )
        return jax.tree.map(lambda p, g: p - step * g, here, grads), seen

    return (*jax.lax.scan(body, params, None, length=steps + 1)[1], objective(target))


def _gap(params: Heads, other: Heads) -> Heads:
    return jax.tree.map(lambda a, b: a - b, other, params)


def _decoder_norm(params: Heads) -> float:
    return float(grouped.head_norms(params.decoder).max())


def _allowed_share(network: Network, params: Heads, other: Heads, data: theory.DataBounds) -> float:
    """How much of the way to `other` the condition of Prop. 4/6 allows: all of it (1) or less."""
    whole = float(grouped.norm(_gap(params, other), jnp.ones(len(params.decoder))))
    reach = max(_decoder_norm(params), _decoder_norm(other))
    allowed = (float(network.heads) ** 0.5 / (2 * theory.weak_convexity_bound(data, reach))) ** 0.5
    return min(1.0, allowed / whole)


@eqx.filter_jit
def _measure(network: Network, params: Heads, members: Array, samples: Samples) -> dict[str, Array]:
    decoder, attention, tokens = params.decoder[0], params.attention[0], samples.tokens[0]
    features = kernel_features(network, params, members, samples)
    found = loss_curvature(network, params, members, samples)
    smallest, largest = extreme_eigenvalues(found, members)
    hessians = jax.vmap(lambda u, w: jax.vmap(lambda x: nets.head_hessian(u, w, x))(samples.tokens))(*params)
    grads = jax.grad(lambda p: jnp.mean(logistic_loss(nets.margins(network, p, members, samples))))(params)
    return {
        "loss": jnp.mean(logistic_loss(nets.margins(network, params, members, samples))),
        "decoder gradient": jnp.linalg.norm(nets.decoder_gradient(attention, tokens)),
        "attention gradient": jnp.linalg.norm(nets.attention_gradient(decoder, attention, tokens)),
        "head gradient": jnp.linalg.norm(nets.head_gradient(decoder, attention, tokens)),
        "head Hessian": jnp.abs(jnp.linalg.eigvalsh(nets.head_hessian(decoder, attention, tokens))).max(),
        "model gradient": jnp.linalg.norm(features, axis=1).max(),
        "model Hessian": network.scale * jnp.abs(jnp.linalg.eigvalsh(hessians)).max(),
        "self-bounded gradient": grouped.norm(grads, members),
        "smoothness": jnp.maximum(largest, -smallest),
        "weak convexity": jnp.maximum(-smallest, 0),
    }


@eqx.filter_jit
def _segment(network, params, gap, places, members, samples) -> tuple[Array, Array]:
    """The loss and the largest decoder norm at `params + place * gap`."""

    def at(place: Array) -> tuple[Array, Array]:
        here = jax.tree.map(lambda p, g: p + place * g, params, gap)
        loss = jnp.mean(logistic_loss(nets.margins(network, here, members, samples)))
        return loss, grouped.head_norms(here.decoder).max()

    return jax.vmap(at)(places)


@eqx.filter_jit
def _segment_curvature(network, params, gap, places, members, samples) -> Array:
    """The smallest eigenvalue of the Hessian at `params + place * gap`."""

    def at(place: Array) -> Array:
        here = jax.tree.map(lambda p, g: p + place * g, params, gap)
        return extreme_eigenvalues(loss_curvature(network, here, members, samples), members)[0]

    return jax.lax.map(at, places)


@eqx.filter_jit
def _stretch(network, params, other, members, samples, step) -> Array:
    def moved(p: Heads) -> Heads:
        grads = jax.grad(lambda q: jnp.mean(logistic_loss(nets.margins(network, q, members, samples))))(p)
        return jax.tree.map(lambda a, g: a - step * g, p, grads)

    def apart(a: Heads, b: Heads) -> Array:
        return grouped.norm(jax.tree.map(lambda x, y: x - y, a, b), members)

    return apart(moved(params), moved(other)) / apart(params, other)


def _arrays(module: Any) -> Any:
    """Numbers as arrays, so that one compiled program serves all their values."""
    return jax.tree.map(jnp.asarray, module)


def _ratio(measured: float, bound: float) -> float:
    return 0.0 if measured == 0 else measured / bound


def _over(top: float, bottom: float) -> float:
    return inf if bottom == 0 else top / bottom


@eqx.filter_jit
def _samples(data, key: Key, count: int) -> Samples:
    return data.sample(key, None, count)


@eqx.filter_jit
def _draw(data: BoundedTokens, network: Network, key: Key) -> tuple[Samples, Heads, Array]:
    data_key, weight_key = jax.random.split(key)
    samples = data.sample(data_key, None, data.samples)
    return samples, *nets.start_heads(network, weight_key, samples)


@eqx.filter_jit
def _first_phase(trial: FirstPhase, network: Network, key: Key) -> tuple[Samples, Samples, Heads, Array]:
    first_key, data_key, weight_key = jax.random.split(key, 3)
    first = trial.data.sample(first_key, None, trial.first_samples)
    samples = trial.data.sample(data_key, None, trial.data.samples)
    return first, samples, *nets.start_heads(network, weight_key, first)


@eqx.filter_jit
def _features(network: Network, params: Heads, members: Array, samples: Samples) -> Array:
    return kernel_features(network, params, members, samples)


@eqx.filter_jit
def _extremes(network: Network, params: Heads, members: Array, samples: Samples) -> tuple[Array, Array]:
    return extreme_eigenvalues(loss_curvature(network, params, members, samples), members)
