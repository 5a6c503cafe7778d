"""The loss of training with its gradient, by automatic differentiation or by the kernel `heads_slope.cc`."""

import jax
from jaxtyping import Array, Float

from lemmata.kernels import kernel
from lemmata.reduce.heads import Members
from lemmata.studies.multihead.data import Samples
from lemmata.studies.multihead.network import Heads, Network, full_decoder, training_loss

Slope = tuple[Float[Array, ""], Heads]


def slope_by_sums(network: Network, params: Heads, members: Members, samples: Samples) -> Slope:
    """`training_loss` and its gradient by automatic differentiation, that of a head being the closed form of Lemma 1/4."""
    samples = samples._replace(noise=None)
    return jax.value_and_grad(training_loss, argnums=1)(network, params, members, samples)


@kernel("heads_slope.cc", plain=slope_by_sums)
def training_slope(network: Network, params: Heads, members: Members, samples: Samples) -> Slope:
    """`slope_by_sums`. The kernel takes full decoders."""
    tokens, kind = samples.tokens, samples.tokens.dtype
    full, back = jax.vjp(
        jax.vmap(lambda decoder: full_decoder(decoder, network.decoder, tokens.shape[1])), params.decoder
    )
    given = [part.astype(kind) for part in (full, params.attention, members, samples.labels)]
    loss, by_decoder, by_attention = training_slope.call(
        "heads_slope", *given[:3], network.scale, tokens, given[3]
    )
    return loss, Heads(back(by_decoder)[0], by_attention)
