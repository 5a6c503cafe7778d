"""What can be asked of the token mixture without a long training: the first phase, realizability, saturated attention."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lemmata.errors import require
from lemmata.programs import traced_once
from lemmata.reduce import heads as grouped
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.data import NoiseBounds, Samples, Teacher, TokenMixture, measured_noise_bounds
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.network.derivatives import kernel_features
from lemmata.studies.multihead.theory import mixture as mixed
from lemmata.studies.multihead.theory.bounds import GoodStart
from lemmata.studies.multihead.theory.conditions import DELTA
from lemmata.trial import Computed, Key, fixed

MOST_HEADS = 80
"""Realizability is looked for up to two to this power of heads."""

SATURATED = 1e4
"""The norm of an attention that looks at one kind of token only."""


# The first phase and the NTK margin ------------------------------------------------------------------------------------


class FirstPhase(Computed):
    """One randomised step from zero on the mixture, and everything that makes its end a good start.

    `alpha` is the law of the step: a random sign for each head, or uniform on [-1, 1].
    """

    name: ClassVar[str] = "multihead/first-phase"
    paired: ClassVar[tuple[str, ...]] = ("heads", "alpha", "first_samples", "data.samples")

    data: TokenMixture = TokenMixture()
    heads: int = fixed(default=64)
    alpha: mixed.AlphaLaw = fixed(default="signs")
    first_samples: int = fixed(default=1000)

    def __check_init__(self):
        require(
            self.first_samples >= 1, f"the first phase needs at least one sample, not {self.first_samples}."
        )
        require(self.heads >= 1, f"the number of heads must be a whole number from 1 on, not {self.heads}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        groups = 2 if self.alpha == "signs" else self.heads
        network = Network(heads=float(self.heads), start=self.alpha, simulated=groups)
        found = jax.tree.map(np.asarray, _first_phase(self, network, key))
        samples, row = found.samples, np.asarray(found.row)
        bounds = mixture_bounds(self.data, found.first, samples)
        scale = mixed.residual_bound(bounds, self.first_samples, DELTA)
        zeta, frame = self.data.relevant_fraction, np.asarray(self.data.frame)
        mean_row, printed_row = (
            mixed.row_coefficient(zeta, printed) * (frame[0] - frame[1]) for printed in (False, True)
        )
        residual = float(np.linalg.norm(row - mean_row))
        decoder_part, attention_part = margin_parts(self.data, row, samples)
        mean_part = margin_parts(self.data, mean_row, samples)[1].min()
        steps = found.decoder @ row / (row @ row)
        weight = float(found.members @ np.abs(steps) / self.heads)
        step = mixed.MEAN_STEP[self.alpha]
        return {
            "residual": residual,
            "printed_residual": float(np.linalg.norm(row - printed_row)),
            "residual_scale": scale,
            "decoder_part": float(decoder_part.min()),
            "attention_part": float(attention_part.min()) * step,
            "mean_attention_part": float(mean_part) * step,
            "margin": float((decoder_part + weight * attention_part).min()),
            "best_margin": mixed.best_margin(found.features, samples.labels),
            "largest_output": float(found.largest_output),
            "largest_head": float(found.largest_head),
            "linear_bound": mixed.linear_margin(bounds),
            "attention_bound": mixed.attention_share(bounds, residual, self.alpha),
            "sharper_attention_bound": mixed.sharper_attention_share(bounds, residual, self.alpha),
            "mean_attention_bound": mixed.attention_share(bounds, 0.0, self.alpha),
            "corrected_bound": mixed.ntk_margin(bounds, residual, self.alpha),
            "printed_bound": mixed.printed_ntk_margin(bounds, residual),
            "norm_bound": mixed.sharp_start_norm(bounds, scale),
            "output_bound": mixed.start_output_bound(bounds, scale, self.data.samples, DELTA),
            "attention_margin": mixed.attention_margin(bounds),
            "saturated_margin": float(found.saturated_margin),
        }


class FirstPhaseFound(NamedTuple):
    """The samples of the first phase and of the second, and what is asked of the weights between them: the row that the step
    writes, the first row of every group's decoder, the gradients of the model, its largest output and its largest head; and the
    smallest margin of the saturated single head."""

    first: Samples
    samples: Samples
    row: Array
    decoder: Array
    members: Array
    features: Array
    largest_output: Array
    largest_head: Array
    saturated_margin: Array


@traced_once()
def _first_phase(trial: FirstPhase, network: Network, key: Key) -> FirstPhaseFound:
    first_key, data_key, weight_key = jax.random.split(key, 3)
    first = trial.data.sample(first_key, None, trial.first_samples)
    samples = trial.data.sample(data_key, None, trial.data.samples)
    params, members = nets.start_heads(network, weight_key, first)
    return FirstPhaseFound(
        first=first,
        samples=samples,
        row=nets.first_phase_row(first),
        decoder=params.decoder[:, 0],
        members=members,
        features=kernel_features(network, params, members, samples),
        largest_output=jnp.abs(nets.outputs(network, params, members, samples.tokens)).max(),
        largest_head=grouped.largest_head_norm(params, members),
        saturated_margin=_single_head(trial.data, samples, SATURATED)[1],
    )


def mixture_bounds(data: TokenMixture, *sets: Samples) -> mixed.MixtureBounds:
    """The constants of the mixture: almost sure ones where the noise has them, else measured on the samples."""
    measured = data.noise_bounds() or NoiseBounds(
        *np.max([measured_noise_bounds(data, samples) for samples in sets], axis=0)
    )
    return mixed.MixtureBounds.of(data, measured)


def margin_parts(data: TokenMixture, row: np.ndarray, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """`y <grad Phi(theta^(1)), theta*>` of every sample, split: the decoder's part, and the attention's for `|alpha| = 1`.

    At the first phase's end `grad_U Phi = 1_T xbar^T` and `grad_W Phi = alpha T xbar (Sigma_X a)^T` with `xbar` the mean
    token and `Sigma_X` the covariance of a sample's tokens.
    """
    oracle = jax.tree.map(np.asarray, _oracle(data))
    mean, moved = _mean_and_moved(row, samples)
    labels = np.asarray(samples.labels)
    decoder = labels * (mean @ oracle.decoder.sum(axis=0))
    attention = labels * data.tokens * np.einsum("ni,ij,nj->n", mean, oracle.attention, moved)
    return decoder, attention


@traced_once()
def _oracle(data: TokenMixture) -> Teacher:
    return data.oracle()


def ntk_kernel(row: np.ndarray, squared_step: float, samples: Samples) -> np.ndarray:
    """`k(X, X') = T xbar.xbar' + mean(alpha^2) T^2 (xbar.xbar')(a^T Sigma_X Sigma_X' a)` at the first phase's end."""
    count = samples.tokens.shape[1]
    mean, moved = _mean_and_moved(row, samples)
    return (mean @ mean.T) * (count + squared_step * count**2 * (moved @ moved.T))


def _mean_and_moved(row: np.ndarray, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
    """`xbar` and `Sigma_X a` of every sample."""
    tokens = np.asarray(samples.tokens)
    mean = tokens.mean(axis=1)
    second = np.einsum("nti,nt->ni", tokens, tokens @ row) / tokens.shape[1]
    return mean, second - mean * (mean @ row)[:, None]


def _single_head(data: TokenMixture, samples: Samples, scale: Array | float) -> tuple[Array, Array]:
    """Of the single head `(U_opt, Gamma W_opt)` with `Gamma` this scale: the largest share of a token's attention that leaks to
    irrelevant ones, and the smallest margin."""
    attention, decoder = data.oracle()
    maps = nets.attention_map(scale * attention, samples.tokens)
    output = nets.head_output(decoder, scale * attention, samples.tokens)
    leaked = jnp.sum(maps * ~samples.relevant[:, None, :], axis=-1)
    return leaked.max(), (samples.labels * output).min()


# Realizability ---------------------------------------------------------------------------------------------------------


class Realizing(Computed):
    """How many heads the target of Prop. 7, `G theta*` away from the end of the first phase, really needs until every
    sample has the margin `log(1/eps)`, and how many the proposition asks for. Half of the steps have either sign."""

    name: ClassVar[str] = "multihead/realizing"
    may_be_missing: ClassVar[tuple[str, ...]] = ("needed_heads",)  # infinite where no number is enough
    paired: ClassVar[tuple[str, ...]] = ("loss",)

    data: TokenMixture = TokenMixture(relevant_fraction=0.4, noise=0.01, noise_law="cube")
    first_samples: int = fixed(default=10_000)
    loss: float = 0.01

    def __check_init__(self):
        require(0 < self.loss <= 1, f"the target's loss must lie in (0, 1], not {self.loss}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        row, samples = jax.tree.map(np.asarray, _row_and_samples(self, key))
        start = measured_good_start(self.data, row, samples)
        bounds = mixture_bounds(self.data, samples).data
        asked = start.required_heads(bounds, self.loss)
        grid = np.append(2.0 ** np.arange(1, MOST_HEADS + 1), 2 * np.ceil(asked / 2))
        found = realized_margins(self.data, row, samples, start, self.loss, grid)
        short = np.flatnonzero(found[:-1] < np.log(1 / self.loss))
        enough = 0 if len(short) == 0 else short[-1] + 1
        return {
            "ntk_margin": start.margin,
            "needed_heads": grid[enough] if enough < MOST_HEADS else inf,
            "asked_heads": asked,
            "printed_heads": replace(start, printed=True).required_heads(bounds, self.loss),
            "margin": found[-1],
        }


def measured_good_start(data: TokenMixture, row: np.ndarray, samples: Samples) -> GoodStart:
    """Definition 1 checked at the end of a first phase whose signs balance (every output is then 0): the constants
    `B_2`, `B_Phi` and the NTK margin of the paper's direction on these samples."""
    decoder_part, attention_part = margin_parts(data, row, samples)
    norm = data.tokens**0.5 * float(np.linalg.norm(row))
    return GoodStart(max(1.0, norm), 1.0, float((decoder_part + attention_part).min()))


def realized_margins(
    data: TokenMixture, row: np.ndarray, samples: Samples, start: GoodStart, loss: float, heads: np.ndarray
) -> np.ndarray:
    """The smallest margin at the target of Prop. 7, `theta^(1) + G theta*`, half of the heads having either sign, for
    every number of heads."""
    return np.asarray(_realized(data, row, samples, start.reach(loss), np.asarray(heads, float)))


@traced_once()
def _row_and_samples(trial: Realizing, key: Key) -> tuple[Array, Samples]:
    """What the first step writes, and the samples of the second phase."""
    first_key, data_key = jax.random.split(key)
    first = trial.data.sample(first_key, None, trial.first_samples)
    return nets.first_phase_row(first), trial.data.sample(data_key, None, trial.data.samples)


@traced_once()
def _realized(data: TokenMixture, row: Array, samples: Samples, reach: Array, heads: Array) -> Array:
    oracle = data.oracle()
    signs = jnp.array([1.0, -1.0])[:, None, None]

    def one(count: Array) -> Array:
        way = reach / jnp.sqrt(count)
        params = Heads(signs * row + way * oracle.decoder, way * signs * oracle.attention)
        network = eqx.tree_at(lambda n: n.heads, Network(heads=2.0, start="signs", simulated=2), count)
        return nets.margins(network, params, jnp.full(2, count / 2), samples).min()

    return jax.lax.map(one, heads)


# Saturated attention ---------------------------------------------------------------------------------------------------


class Saturation(Computed):
    """The single head of Prop. 3 at the scale that leaves at most `leak` of the attention on irrelevant tokens."""

    name: ClassVar[str] = "multihead/saturation"
    paired: ClassVar[tuple[str, ...]] = ("leak",)

    data: TokenMixture = TokenMixture(noise_law="ball", relevant_fraction=0.2, dim=6)
    leak: float = 0.01

    def __check_init__(self):
        require(0 < self.leak < 1, f"the leak must lie strictly between 0 and 1, not {self.leak}.")

    def compute(self, key: Key) -> Mapping[str, Any]:
        samples = jax.tree.map(np.asarray, _samples(self.data, key))
        bounds = mixture_bounds(self.data, samples)
        scale = mixed.saturating_norm(bounds, float(self.leak))
        leaked, margin = _saturated(self.data, samples, scale)
        return {
            "scale": scale,
            "leaked": float(leaked),
            "margin": float(margin),
            "bound": mixed.attention_margin(bounds, float(self.leak)),
            "limit": mixed.attention_margin(bounds),
        }


@traced_once()
def _samples(data: TokenMixture, key: Key) -> Samples:
    return data.sample(key, None, data.samples)


@traced_once()
def _saturated(data: TokenMixture, samples: Samples, scale: Array) -> tuple[Array, Array]:
    return _single_head(data, samples, scale)
