"""Realistic descent beside the two processes of its analysis, step by step (Appendix E.2).

Once the realistic run has left its linear phase (alpha at least `nu^(1/(p-1))`) two more start: the *semi-idealised*
one, whose logits follow the population risk while its value vector replays the realistic alpha, and the *idealised*
one, which goes its own way from that alpha. Everything that the coupling lemmas bound is measured on the way.
"""

from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from lemmata.descent import Descent, Learning, Trained
from lemmata.errors import require
from lemmata.own import Taken
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import (
    Logits,
    PositionalNetwork,
    Weights,
    class_summary,
    output_of_projections,
    tied_logits,
)
from lemmata.studies.spatial_structure.trials.images import ImageDescent, projections, split_value
from lemmata.studies.spatial_structure.trials.recursion import (
    Pull,
    Tied,
    advance_tied,
    draw_moments,
    pulled,
    signal_gain,
    tied_scores,
)
from lemmata.trial import Key, Precision, Record, Tracks, fixed


class Coupled(NamedTuple):
    """The realistic state, the semi-idealised and the idealised numbers with what pulls them, and whether they have been
    let go (the linear phase is over)."""

    realistic: Learning
    semi: Tied
    ideal: Tied
    semi_pull: Pull
    ideal_pull: Pull
    moments: Float[Array, "monomials draws"]
    free: Bool[Array, ""]


class CoupledDescent(Trained):
    """Realistic, semi-idealised and idealised descent together. `draws` must be well above the realistic sample."""

    name: ClassVar[str] = "spatial-structure/coupled"
    paired: ClassVar = ("realistic.samples",)

    realistic: ImageDescent = ImageDescent(
        data=Structured(patches=36, spurious_rate=0.4, dimension=16),
        network=PositionalNetwork(linear=1e-4, init=1e-5),
        descent=Descent(
            learning_rate=2e-4, attention_rate=1e4, stop="cap", steps=1000, logs=40, spacing="even"
        ),
        samples=2000,
        test_samples=2000,
    )
    draws: int = fixed(default=60_000)

    def __check_init__(self):
        require(self.draws > 0, f"the expectation needs at least one draw, not {self.draws}.")
        require(self.realistic.attention == "logits", "coupling is about trainable logits, not encodings.")

    @property
    def data(self) -> Structured:
        return self.realistic.data

    @property
    def network(self) -> PositionalNetwork:
        return self.realistic.network

    @property
    def descent(self) -> Descent:
        return self.realistic.descent

    @property
    def precision(self) -> Precision:
        return self.realistic.precision

    def start(self, key: Key) -> Coupled:
        return self.start_from(key)

    def takes(self, key: Key) -> Taken:
        """Images and weights of the realistic run; the other two processes follow its value vector."""
        return self.realistic.takes(jax.random.fold_in(key, 0))

    def check_own(self, data: tuple[Array, Array] | None, weights: Weights | None) -> None:
        self.realistic.check_own(data, weights)
        if weights is not None:
            frozen, own = float(self.network.diagonal), np.asarray(weights.logits).diagonal()
            wrong = own[~np.isclose(own, frozen)]
            require(
                wrong.size == 0,
                f"weights.logits takes {frozen:g} on its diagonal, as the idealised processes have it "
                f"(network.diagonal), not {wrong[:1].sum():g}.",
            )

    def start_from(
        self, key: Key, data: tuple[Array, Array] | None = None, weights: Weights | None = None
    ) -> Coupled:
        realistic = self.realistic.start_from(jax.random.fold_in(key, 0), data, weights)
        dtype = jnp.dtype(self.precision)
        moments = draw_moments(self.data, self.network.degree, jax.random.fold_in(key, 1), self.draws, dtype)
        rest = Tied(*(jnp.zeros((), dtype) for _ in Tied._fields))
        return self._seen(realistic, rest, rest, moments.whole, jnp.asarray(False))

    def _seen(self, realistic: Learning, semi: Tied, ideal: Tied, moments: Array, free: Array) -> Coupled:
        """The state at these numbers: the semi-idealised alpha is the realistic one, and so is the idealised one as long as
        it has not been let go."""
        alignment, _ = split_value(realistic.params.value, realistic.world.world)
        now_free = free | (alignment >= jnp.asarray(self.network.threshold, alignment.dtype))
        semi = semi._replace(alignment=alignment)
        ideal = ideal._replace(alignment=jnp.where(free, ideal.alignment, alignment))
        data, constants = self.data, self.realistic.constants
        semi_pull, ideal_pull = (
            pulled(tied, moments, self.network.diagonal, data.patches, data.group_size, constants).pull
            for tied in (semi, ideal)
        )
        return Coupled(realistic, semi, ideal, semi_pull, ideal_pull, moments, now_free)

    def step(self, state: Coupled) -> Coupled:
        semi, ideal = (
            jax.tree.map(
                lambda new, old: jnp.where(state.free, new, old),
                advance_tied(tied, pull, self.descent.learning_rate, self.descent.attention_rate),
                tied,
            )
            for tied, pull in ((state.semi, state.semi_pull), (state.ideal, state.ideal_pull))
        )
        realistic = self.realistic.step(state.realistic)
        return self._seen(realistic, semi, ideal, state.moments, state.free)

    def loss(self, state: Coupled) -> Float[Array, ""]:
        return self.realistic.loss(state.realistic)

    def finished(self, state: Coupled) -> Bool[Array, ""]:
        return self.realistic.finished(state.realistic)

    def _logits(self, semi: Tied, group_of: Array) -> Logits:
        return tied_logits(group_of, self.network.diagonal, semi.same, semi.cross)

    def track(self, state: Coupled) -> Tracks:
        """The largest gaps since the linear phase ended: off the feature (E.9), of logits (E.13), of gradients (E.19)."""
        real, world = state.realistic, state.realistic.world.world
        apart = jnp.abs(real.params.logits - self._logits(state.semi, world.group_of))
        gradient = jnp.linalg.norm(real.fit.grads.value + state.semi_pull.alignment * world.feature)
        gaps = {
            "worst_orthogonal": split_value(real.params.value, world)[1],
            "worst_logit_gap": jnp.max(apart),
            "worst_gradient_gap": gradient,
        }
        return Tracks(
            first={"linear_phase_end": state.free},
            largest={name: jnp.where(state.free, gap, 0) for name, gap in gaps.items()},
        )

    def watch(self, state: Coupled) -> Record:
        real, world = state.realistic, state.realistic.world.world
        alignment, orthogonal = split_value(real.params.value, world)
        summary = class_summary(real.params.logits, world.group_of, self.data.group_count)
        semi = self._logits(state.semi, world.group_of)
        u = projections(self.data, real.params.value, world, real.world.unseen)
        ours = output_of_projections(u, real.params.logits, self.realistic.constants)
        theirs = output_of_projections(
            alignment * real.world.unseen.coefficients, semi, self.realistic.constants
        )
        return {
            "alignment": alignment,
            "orthogonal": orthogonal,
            "same_mean": summary["same_mean"],
            "cross_mean": summary["cross_mean"],
            "gain": self._gain(summary["same_mean"], summary["cross_mean"]),
            "logit_gap": jnp.max(jnp.abs(real.params.logits - semi)),
            "output_gap": jnp.mean(jnp.abs(ours - theirs)),
            "semi_same": state.semi.same,
            "semi_cross": state.semi.cross,
            "ideal_alignment": state.ideal.alignment,
            "ideal_same": state.ideal.same,
            "ideal_cross": state.ideal.cross,
            "ideal_gain": self._gain(state.ideal.same, state.ideal.cross),
        }

    def _gain(self, same: Array, cross: Array) -> Array:
        data, temperature = self.data, self.realistic.constants.temperature
        scores = tied_scores(same, cross, self.network.diagonal, data.patches, data.group_size, temperature)
        return signal_gain(scores, data.patches, data.group_size)

    def record(self, state: Coupled) -> Record:
        return self.watch(state)
