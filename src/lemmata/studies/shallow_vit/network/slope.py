"""Loss and gradient of a batch: by a kernel (`slope.cc`) where there is one, else sample by sample in JAX."""

from functools import partial
from pathlib import Path
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from lemmata import native
from lemmata.bench.votes import Folded, Weights
from lemmata.descent import loss_of
from lemmata.studies.shallow_vit.data import Sample
from lemmata.studies.shallow_vit.network import Network, Votes

Loss = Literal["hinge", "linear"]
Summed = tuple[Float[Array, ""], Folded]
"""The loss, summed over the samples of a batch, and its gradient in the folded weights."""

KERNEL = Path(__file__).with_name("slope.cc")


def batch_slope(
    network: Network, loss: Loss, weights: Weights, batch: Sample, votes: Votes
) -> tuple[Float[Array, ""], Weights]:
    """The mean loss over a batch and its gradient in the weights; they are folded, and that is differentiated, once."""
    folded, unfold = jax.vjp(network.fold, weights)
    total, gradient = _summed(network, loss, folded, batch, votes)
    size = len(batch.label)
    return total / size, jax.tree.map(lambda part: part / size, unfold(gradient)[0])


def _summed(network: Network, loss: Loss, folded: Folded, batch: Sample, votes: Votes) -> Summed:
    by_kernel, in_jax = (partial(form, network, loss) for form in (summed_by_kernel, summed_in_jax))
    if not native.loaded(KERNEL, "slope_float32", "slope_float64"):
        return in_jax(folded, batch, votes)
    return jax.lax.platform_dependent(folded, batch, votes, cpu=by_kernel, default=in_jax)


def summed_in_jax(network: Network, loss: Loss, folded: Folded, batch: Sample, votes: Votes) -> Summed:
    """Sample after sample: one token-by-neuron array at a time stays in the cache."""

    def loss_on(folded: Folded, sample: Sample) -> Array:
        margin = network.margin(folded, votes, sample)
        return loss_of(loss, margin, jnp.ones_like(margin))

    def add(total: Summed, sample: Sample) -> tuple[Summed, None]:
        return jax.tree.map(jnp.add, total, jax.value_and_grad(loss_on)(folded, sample)), None

    nothing = jnp.zeros((), folded.hidden.dtype), jax.tree.map(jnp.zeros_like, folded)
    return jax.lax.scan(add, nothing, batch)[0]


def summed_by_kernel(network: Network, loss: Loss, folded: Folded, batch: Sample, votes: Votes) -> Summed:
    """What `summed_in_jax` gives, from the kernel."""
    tokens, kept = jax.vmap(network.seen)(batch)
    dtype = folded.hidden.dtype
    found = [jax.ShapeDtypeStruct(shape, dtype) for shape in ((), *(part.shape for part in folded))]
    call = jax.ffi.ffi_call(f"slope_{dtype}", found)
    given = (*folded, jnp.moveaxis(votes, -1, 0), tokens, kept, batch.label)
    trained = network.attention == "trained"
    total, product, hidden = call(*given, linear=loss == "linear", trained=trained)
    return total, Folded(product, hidden)
