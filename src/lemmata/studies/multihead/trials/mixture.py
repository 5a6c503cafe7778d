"""What can be asked of the token mixture without a long training: the first phase, realizability, saturated attention."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from lemmata.errors import require
from lemmata.reduce import heads as grouped
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.data import NoiseBounds, Samples, TokenMixture, measured_noise_bounds
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.network.derivatives import kernel_features
from lemmata.studies.multihead.theory import mixture as mixed
from lemmata.studies.multihead.theory.bounds import GoodStart
from lemmata.studies.multihead.theory.conditions import DELTA
from lemmata.trial import Computed, Key, fixed

MOST_HEADS = 80
"""Realizability is looked for up to two to this power of heads."""


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
        network = _arrays(Network(heads=float(self.heads), start=self.alpha, simulated=groups))
        first, samples, params, members = _first_phase(_arrays(self), network, key)
        bounds = mixture_bounds(self.data, first, samples)
        scale = mixed.residual_bound(bounds, self.first_samples, DELTA)
        row, zeta = np.asarray(nets.first_phase_row(first)), self.data.relevant_fraction
        mean_row, printed_row = (
            mixed.row_coefficient(zeta, printed) * np.asarray(self.data.frame[0] - self.data.frame[1])
            for printed in (False, True)
        )
        residual = float(np.linalg.norm(row - mean_row))
        decoder_part, attention_part = margin_parts(self.data, row, samples)
        mean_part = margin_parts(self.data, mean_row, samples)[1].min()
        steps = np.asarray(params.decoder[:, 0] @ row / (row @ row))
        weight = float(np.asarray(members) @ np.abs(steps) / self.heads)
        features = np.asarray(_features(network, params, members, samples))
        step = mixed.MEAN_STEP[self.alpha]
        return {
            "residual": residual,
            "printed_residual": float(np.linalg.norm(row - printed_row)),
            "residual_scale": scale,
            "decoder_part": float(decoder_part.min()),
            "attention_part": float(attention_part.min()) * step,
            "mean_attention_part": float(mean_part) * step,
            "margin": float((decoder_part + weight * attention_part).min()),
            "best_margin": mixed.best_margin(features, np.asarray(samples.labels)),
            "largest_output": float(jnp.abs(nets.outputs(network, params, members, samples.tokens)).max()),
            "largest_head": float(grouped.largest_head_norm(params, members)),
            "linear_bound": mixed.linear_margin(bounds),
            "attention_bound": mixed.attention_share(bounds, residual, self.alpha),
            "sharper_attention_bound": mixed.sharper_attention_share(bounds, residual, self.alpha),
            "mean_attention_bound": mixed.attention_share(bounds, 0.0, self.alpha),
            "corrected_bound": mixed.ntk_margin(bounds, residual, self.alpha),
            "printed_bound": mixed.printed_ntk_margin(bounds, residual),
            "norm_bound": mixed.sharp_start_norm(bounds, scale),
            "output_bound": mixed.start_output_bound(bounds, scale, self.data.samples, DELTA),
            "attention_margin": mixed.attention_margin(bounds),
            "saturated_margin": saturated_margin(self.data, samples),
        }


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
    oracle = data.oracle()
    mean, moved = _mean_and_moved(row, samples)
    labels = np.asarray(samples.labels)
    decoder = labels * (mean @ np.asarray(oracle.decoder).sum(axis=0))
    attention = labels * data.tokens * np.einsum("ni,ij,nj->n", mean, np.asarray(oracle.attention), moved)
    return decoder, attention


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


def saturated_margin(data: TokenMixture, samples: Samples, scale: float = 1e4) -> float:
    """The smallest margin of the saturated single head `(U_opt, Gamma W_opt)` with a huge `Gamma`."""
    attention, decoder = data.oracle()
    return float((samples.labels * nets.head_output(decoder, scale * attention, samples.tokens)).min())


# Realizability ---------------------------------------------------------------------------------------------------------


class Realizing(Computed):
    """How many heads the target of Prop. 7, `G theta*` away from the end of the first phase, really needs until every
    sample has the margin `log(1/eps)`, and how many the proposition asks for. Half of the steps have either sign."""

    name: ClassVar[str] = "multihead/realizing"
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
    return np.asarray(_realized(data.oracle(), row, samples, start.reach(loss), jnp.asarray(heads, float)))


@jax.jit
def _realized(oracle, row, samples: Samples, reach, heads) -> Array:
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
        samples = _samples(_arrays(self.data), key, self.data.samples)
        bounds = mixture_bounds(self.data, samples)
        scale = mixed.saturating_norm(bounds, float(self.leak))
        attention, decoder = self.data.oracle()
        maps = nets.attention_map(scale * attention, samples.tokens)
        output = nets.head_output(decoder, scale * attention, samples.tokens)
        return {
            "scale": scale,
            "leaked": float(jnp.sum(maps * ~samples.relevant[:, None, :], axis=-1).max()),
            "margin": float((samples.labels * output).min()),
            "bound": mixed.attention_margin(bounds, float(self.leak)),
            "limit": mixed.attention_margin(bounds),
        }


def _arrays(module: Any) -> Any:
    """Numbers as arrays, so that one compiled program serves all their values."""
    return jax.tree.map(jnp.asarray, module)


@eqx.filter_jit
def _samples(data: TokenMixture, key: Key, count: int) -> Samples:
    return data.sample(key, None, count)


@eqx.filter_jit
def _first_phase(trial: FirstPhase, network: Network, key: Key) -> tuple[Samples, Samples, Heads, Array]:
    first_key, data_key, weight_key = jax.random.split(key, 3)
    first = trial.data.sample(first_key, None, trial.first_samples)
    samples = trial.data.sample(data_key, None, trial.data.samples)
    return first, samples, *nets.start_heads(network, weight_key, first)


@eqx.filter_jit
def _features(network: Network, params: Heads, members: Array, samples: Samples) -> Array:
    return kernel_features(network, params, members, samples)
