"""The loss of training with its gradient, by a kernel where there is one (`slope.cc`)."""

from pathlib import Path

import jax
from jaxtyping import Array, Float

from lemmata import native
from lemmata.reduce.heads import Members
from lemmata.studies.multihead.data import Samples
from lemmata.studies.multihead.network import Heads, Network, full_decoder, training_loss

KERNEL = Path(__file__).with_name("slope.cc")
HANDLERS = ("heads_slope_float32", "heads_slope_float64")

Slope = tuple[Float[Array, ""], Heads]


def training_slope(network: Network, params: Heads, members: Members, samples: Samples) -> Slope:
    """`training_loss` and its gradient."""
    samples = samples._replace(noise=None)
    if not native.loaded(KERNEL, *HANDLERS):
        return slope_by_sums(network, params, members, samples)
    return jax.lax.platform_dependent(
        network, params, members, samples, cpu=slope_by_kernel, default=slope_by_sums
    )


def slope_by_sums(network: Network, params: Heads, members: Members, samples: Samples) -> Slope:
    """By automatic differentiation, that of a head being the closed form of Lemma 1/4."""
    return jax.value_and_grad(training_loss, argnums=1)(network, params, members, samples)


def slope_by_kernel(network: Network, params: Heads, members: Members, samples: Samples) -> Slope:
    """The same from the kernel, which takes full decoders."""
    tokens, kind = samples.tokens, samples.tokens.dtype
    full, back = jax.vjp(
        jax.vmap(lambda decoder: full_decoder(decoder, network.decoder, tokens.shape[1])), params.decoder
    )
    given = [part.astype(kind) for part in (full, params.attention, members, network.scale)]
    found = [jax.ShapeDtypeStruct(shape, kind) for shape in ((), full.shape, params.attention.shape)]
    call = jax.ffi.ffi_call(f"heads_slope_{kind}", found, vmap_method="broadcast_all")
    loss, by_decoder, by_attention = call(*given, tokens, samples.labels.astype(kind))
    return loss, Heads(back(by_decoder)[0], by_attention)
