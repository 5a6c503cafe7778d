"""Loss and gradient of a batch: by a kernel (`slope.cc`) where there is one, else sample by sample in JAX."""

from functools import partial
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata import native
from lemmata.bench import votes as layer
from lemmata.bench.votes import Folded, Weights
from lemmata.descent import loss_of
from lemmata.studies.shallow_vit.data import Sample
from lemmata.studies.shallow_vit.network import Network, Votes

Loss = Literal["hinge", "linear"]
Mean = tuple[Float[Array, ""], Folded]
"""The mean loss over the samples of a batch, and its gradient in the folded weights."""

KERNEL = Path(__file__).with_name("slope.cc")
HANDLERS = "vit_slope_float32", "vit_slope_float64"


def batch_slope(
    network: Network, loss: Loss, weights: Weights, batch: Sample, votes: Votes
) -> tuple[Float[Array, ""], Weights]:
    """The mean loss over a batch and its gradient in the weights; they are folded, and that is differentiated, once."""
    folded, unfold = jax.vjp(network.fold, weights)
    mean, gradient = _mean(network, loss, folded, batch, votes)
    return mean, unfold(gradient)[0]


def _mean(network: Network, loss: Loss, folded: Folded, batch: Sample, votes: Votes) -> Mean:
    """By the kernel where there is one: it takes less than half the time."""
    by_kernel, in_jax = (partial(form, network, loss) for form in (mean_by_kernel, mean_in_jax))
    if not native.loaded(KERNEL, *HANDLERS):
        return in_jax(folded, batch, votes)
    return jax.lax.platform_dependent(folded, batch, votes, cpu=by_kernel, default=in_jax)


def mean_in_jax(network: Network, loss: Loss, folded: Folded, batch: Sample, votes: Votes) -> Mean:
    """Sample after sample."""

    def loss_on(folded: Folded, sample: Sample) -> Array:
        margin = network.margin(folded, votes, sample)
        return loss_of(loss, margin, jnp.ones_like(margin))

    return layer.batch_slope(lambda folded: folded, loss_on, folded, batch)


def mean_by_kernel(network: Network, loss: Loss, folded: Folded, batch: Sample, votes: Votes) -> Mean:
    """What `mean_in_jax` gives, from the kernel; attention that is not trained has the gradient zero."""
    tokens, kept = jax.vmap(network.seen)(batch)
    dtype, size = folded.hidden.dtype, len(tokens)
    found = [jax.ShapeDtypeStruct(shape, dtype) for shape in ((), *(part.shape for part in folded))]
    call = jax.ffi.ffi_call(f"vit_slope_{dtype}", found)
    given = (*folded, jnp.moveaxis(votes, -1, 0), tokens, kept, batch.label)
    total, *gradient = call(*given, linear=int(loss == "linear"), trained=int(network.attention == "trained"))
    return total / size, Folded(*(part / size for part in gradient))
