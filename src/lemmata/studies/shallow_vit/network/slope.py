"""Loss and gradient of a batch: sample by sample in JAX, or by the kernel `vit_slope.cc`."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata.descent import loss_of
from lemmata.kernels import kernel
from lemmata.parts import votes as layer
from lemmata.parts.votes import Folded, Weights
from lemmata.studies.shallow_vit.data import Sample
from lemmata.studies.shallow_vit.network import Network, Votes

Loss = Literal["hinge", "linear"]
Mean = tuple[Float[Array, ""], Folded]
"""The mean loss over the samples of a batch, and its gradient in the folded weights."""


def batch_slope(
    network: Network, loss: Loss, weights: Weights, batch: Sample, votes: Votes
) -> tuple[Float[Array, ""], Weights]:
    """The mean loss over a batch and its gradient in the weights; they are folded, and that is differentiated, once."""
    folded, unfold = jax.vjp(network.fold, weights)
    mean, gradient = mean_slope(network, loss, folded, batch, votes)
    return mean, unfold(gradient)[0]


def mean_in_jax(network: Network, loss: Loss, folded: Folded, batch: Sample, votes: Votes) -> Mean:
    """Sample after sample."""

    def loss_on(folded: Folded, sample: Sample) -> Array:
        margin = network.margin(folded, votes, sample)
        return loss_of(loss, margin, jnp.ones_like(margin))

    return layer.batch_slope(lambda folded: folded, loss_on, folded, batch)


@kernel("vit_slope.cc", plain=mean_in_jax)
def mean_slope(network: Network, loss: Loss, folded: Folded, batch: Sample, votes: Votes) -> Mean:
    """`mean_in_jax`; attention that is not trained has the gradient zero."""
    tokens, kept = jax.vmap(network.seen)(batch)
    given = *folded, jnp.moveaxis(votes, -1, 0), tokens, kept, batch.label
    linear, trained = loss == "linear", network.attention == "trained"
    total, *gradient = mean_slope.call("vit_slope", *given, lanes=None, linear=linear, trained=trained)
    return total / len(tokens), Folded(*(part / len(tokens) for part in gradient))
