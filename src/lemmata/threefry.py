"""JAX's random numbers in one pass: the same bits from the same keys, without the loop that JAX makes of them on CPU.

`jax.random` goes through its 20 rounds of Threefry-2x32 (Salmon et al. 2011) in a compiled loop that writes all words to memory
five times. Here the rounds are written out, so that the compiler fuses them with what uses the bits: two to three times as fast
where there are many, and one kernel instead of some twenty where there are few. `jax.random` works on such keys as on its own.
"""

import math

import jax
import jax.numpy as jnp
from jax.extend.random import define_prng_impl, threefry_prng_impl
from jaxtyping import Array, UInt, UInt32

from lemmata.trial import Key

TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""By how many bits words are turned in the rounds of every group of four."""

PARITY = 0x1BD11BDA


def fast_key(data: UInt32[Array, "*keys 2"]) -> Key:
    """The key with this data, for draws of many numbers."""
    return jax.random.wrap_key_data(data, impl=_FUSED)


def _threefry(key: UInt32[Array, "2"], low: UInt32[Array, "*n"]) -> tuple[Array, Array]:
    """The two words of every counter (0, low)."""
    keys = key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY)
    one, two = jnp.broadcast_to(keys[0], low.shape), low + keys[1]
    for group in range(5):
        for turn in TURNS[group % 2]:
            one = one + two
            two = one ^ ((two << jnp.uint32(turn)) | (two >> jnp.uint32(32 - turn)))
        one = one + keys[(group + 1) % 3]
        two = two + keys[(group + 2) % 3] + jnp.uint32(group + 1)
    return one, two


def _counters(shape: tuple[int, ...]) -> UInt32[Array, "*shape"]:
    return jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)


def _bits(key: UInt32[Array, "2"], width: int, shape: tuple[int, ...]) -> UInt[Array, "*shape"]:
    one, two = _threefry(key, _counters(shape))
    if width == 64:
        return (one.astype(jnp.uint64) << jnp.uint64(32)) | two.astype(jnp.uint64)
    return (one ^ two).astype(f"uint{width}")


def _split(key: UInt32[Array, "2"], shape: tuple[int, ...]) -> UInt32[Array, "*shape 2"]:
    return jnp.stack(_threefry(key, _counters(shape)), axis=-1)


def _fold_in(key: UInt32[Array, "2"], data: Array | int) -> UInt32[Array, "2"]:
    return jnp.stack(_threefry(key, jnp.asarray(data, jnp.uint32)))


_FUSED = define_prng_impl(
    key_shape=(2,),
    seed=threefry_prng_impl.seed,
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,
    name="threefry2x32-fused",
    tag="fused",
)
