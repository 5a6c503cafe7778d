"""Random keys whose numbers equal those of `jax.random` to the bit, computed by a C++ kernel where possible.

XLA compiles every draw from a JAX key (Threefry-2x32, Salmon et al. 2011) into about twenty kernels. They take a third of a
second to compile, write all words to memory five times, and are repeated in every program that draws. `threefry.cc` is
compiled once for a machine, and a draw is one call of it. `jax.random` accepts these keys like its own. Without a compiler, or
on another device than the CPU, keys of JAX are used.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.random import define_prng_impl, threefry_prng_impl
from jaxtyping import Array, UInt, UInt32

from lemmata.kernels import kernel


def new_key(number: Any) -> Array:
    """Return the key of a number, as `jax.random.key`."""
    return jax.random.key(number, impl=_kind())


def key_of(data: UInt32[Array, "*keys 2"]) -> Array:
    """Return the keys with this data, as `jax.random.wrap_key_data`."""
    return jax.random.wrap_key_data(data, impl=_kind())


def plain_key(key: Array) -> Array:
    """Return the same key as a key of JAX, which `jax.random.poisson` requires."""
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=threefry_prng_impl)


def _kind() -> Any:
    return _NATIVE if _bits.available else threefry_prng_impl


@kernel("threefry.cc", plain=threefry_prng_impl.random_bits)
def _bits(key: UInt32[Array, "2"], width: int, shape: tuple[int, ...]) -> UInt[Array, "*shape"]:
    return _bits.call(f"threefry_bits_{width}", key, shape=shape)


@kernel("threefry.cc", plain=threefry_prng_impl.split)
def _split(key: UInt32[Array, "2"], shape: tuple[int, ...]) -> UInt32[Array, "*shape 2"]:
    return _split.call("threefry_split", key, shape=(*shape, 2))


@kernel("threefry.cc", plain=threefry_prng_impl.fold_in)
def _fold_in(key: UInt32[Array, "2"], data: Any) -> UInt32[Array, "2"]:
    return _fold_in.call("threefry_fold", key, jnp.asarray(data, jnp.uint32))


_NATIVE = define_prng_impl(
    key_shape=(2,),
    seed=threefry_prng_impl.seed,
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,
    name="threefry2x32-kernel",
    tag="kernel",
)
