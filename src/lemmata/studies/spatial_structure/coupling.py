"""Realistic descent beside the two processes of its analysis, step by step (Appendix E.2).

Once the realistic run has left its linear phase (alpha at least `nu^(1/(p-1))`) two more start: the *semi-idealised*
one, whose logits follow the population risk while its value vector replays the realistic alpha, and the *idealised*
one, which goes its own way from that alpha. Everything that the coupling lemmas bound is measured on the way.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from lemmata.descent import Trained
from lemmata.errors import require
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import Shape, class_summary, output_of_projections, tied_logits
from lemmata.studies.spatial_structure.recursion import (
    Tied,
    advance_tied,
    draw_moments,
    look,
    signal_gain,
    tied_scores,
)
from lemmata.studies.spatial_structure.trials import (
    PositionalNetwork,
    Realistic,
    RealisticDescent,
    SlowAttention,
    projections,
    split_value,
)
from lemmata.trial import Key, Precision, Record, fixed


class Coupled(NamedTuple):
    """The realistic state, the semi-idealised and the idealised numbers, and the largest gaps since the start.

    `since` is the step at which the linear phase ended (-1 before); `worst` holds the largest orthogonal part, logit
    gap and gradient gap.
    """

    realistic: Realistic
    semi: Tied
    ideal: Tied
    moments: Float[Array, "monomials draws"]
    worst: Float[Array, " 3"]
    since: Int[Array, ""]
    step: Int[Array, ""]


class CoupledDescent(Trained):
    """Realistic, semi-idealised and idealised descent together. `draws` must be well above `samples`."""

    paired = ("samples",)

    data: Structured = Structured(patches=36, spurious_rate=0.3, dimension=16)
    network: PositionalNetwork = PositionalNetwork(linear=1e-4, init=1e-5)
    descent: SlowAttention = SlowAttention(learning_rate=2e-4, attention_rate=1e4, steps=1000)
    samples: int = fixed(default=2000)
    test_samples: int = fixed(default=2000)
    draws: int = fixed(default=60_000)
    precision: Precision = fixed(default="float32")

    def __check_init__(self):
        require(self.samples > 0, f"a training needs at least one sample, not {self.samples}.")
        require(self.draws > 0, f"the expectation needs at least one draw, not {self.draws}.")

    @property
    def shape(self) -> Shape:
        return self.network.shape(self.data.dimension)

    @property
    def realistic(self) -> RealisticDescent:
        return RealisticDescent(
            data=self.data,
            network=self.network,
            descent=self.descent,
            samples=self.samples,
            test_samples=self.test_samples,
            precision=self.precision,
        )

    def start(self, key: Key) -> Coupled:
        dtype = jnp.dtype(self.precision)
        realistic = self.realistic.start(jax.random.fold_in(key, 0))
        moments = draw_moments(self.data, self.network.degree, jax.random.fold_in(key, 1), self.draws, dtype)
        zero, never = jnp.zeros((), dtype), jnp.asarray(-1, jnp.int32)
        rest = Tied(zero, zero, zero)
        return Coupled(
            realistic,
            rest,
            rest,
            moments.whole,
            jnp.zeros(3, dtype),
            never,
            jnp.zeros_like(never),
        )

    def step(self, state: Coupled) -> Coupled:
        alignment, orthogonal = split_value(state.realistic.weights.value, state.realistic.world)
        started = (state.since >= 0) | (alignment >= jnp.asarray(self.network.threshold, alignment.dtype))
        since = jnp.where(started & (state.since < 0), state.step, state.since)
        semi = state.semi._replace(alignment=alignment)
        ideal = state.ideal._replace(
            alignment=jnp.where(state.step == since, alignment, state.ideal.alignment)
        )
        semi_pull, ideal_pull = (self._pull(tied, state) for tied in (semi, ideal))
        seen = jnp.stack(
            [orthogonal, self._logit_gap(semi, state), self._gradient_gap(semi_pull.alignment, state)]
        )
        return Coupled(
            realistic=self.realistic.step(state.realistic),
            semi=self._moved(semi, semi_pull, started),
            ideal=self._moved(ideal, ideal_pull, started),
            moments=state.moments,
            worst=jnp.where(started, jnp.maximum(state.worst, seen), state.worst),
            since=since,
            step=state.step + 1,
        )

    def _pull(self, tied: Tied, state: Coupled):
        data = self.data
        return look(
            tied, state.moments, self.network.diagonal, data.patches, data.group_size, self.shape
        ).pull

    def _moved(self, tied: Tied, pull, started: Bool[Array, ""]) -> Tied:
        new = advance_tied(tied, pull, self.descent.learning_rate, self.descent.attention_rate)
        return jax.tree.map(lambda a, b: jnp.where(started, a, b), new, tied)

    def _logit_gap(self, semi: Tied, state: Coupled) -> Array:
        tied = tied_logits(state.realistic.world.group_of, self.network.diagonal, semi.same, semi.cross)
        return jnp.max(jnp.abs(state.realistic.weights.logits - tied))

    def _gradient_gap(self, semi_pull: Array, state: Coupled) -> Array:
        return jnp.linalg.norm(state.realistic.gradient.value + semi_pull * state.realistic.world.feature)

    def loss(self, state: Coupled) -> Array:
        return state.realistic.gradient.loss

    def finished(self, state: Coupled) -> Array:
        return state.realistic.gradient.loss <= self.descent.target_loss

    def watch(self, state: Coupled) -> Record:
        data, real = self.data, state.realistic
        alignment, orthogonal = split_value(real.weights.value, real.world)
        summary = class_summary(real.weights.logits, real.world.group_of, data.group_count)
        semi = state.semi._replace(alignment=alignment)
        u = projections(data, real.weights.value, real.world, real.unseen)
        tied = tied_logits(real.world.group_of, self.network.diagonal, semi.same, semi.cross)
        ours = output_of_projections(u, real.weights.logits, self.shape)
        theirs = output_of_projections(alignment * real.unseen.coefficients, tied, self.shape)
        return {
            "alignment": alignment,
            "orthogonal": orthogonal,
            "same_mean": summary["same_mean"],
            "cross_mean": summary["cross_mean"],
            "gain": self._gain(summary["same_mean"], summary["cross_mean"]),
            "logit_gap": self._logit_gap(semi, state),
            "output_gap": jnp.mean(jnp.abs(ours - theirs)),
            "semi_same": semi.same,
            "semi_cross": semi.cross,
            "ideal_alignment": state.ideal.alignment,
            "ideal_same": state.ideal.same,
            "ideal_cross": state.ideal.cross,
            "ideal_gain": self._gain(state.ideal.same, state.ideal.cross),
        }

    def _gain(self, same: Array, cross: Array) -> Array:
        data = self.data
        scores = tied_scores(
            same, cross, self.network.diagonal, data.patches, data.group_size, self.shape.temperature
        )
        return signal_gain(scores, data.patches, data.group_size)

    def record(self, state: Coupled) -> Record:
        names = ("worst_orthogonal", "worst_logit_gap", "worst_gradient_gap")
        worst = {name: state.worst[i] for i, name in enumerate(names)}
        return {**self.watch(state), **worst, "linear_phase_end": state.since}
