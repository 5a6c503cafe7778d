"""The keys of the lab: the random numbers of `jax.random`, to the bit, from a kernel where there is one.

XLA makes some twenty kernels of every draw from a key of JAX's own (Threefry-2x32, Salmon et al. 2011), which take a third of a
second to compile, write all words to memory five times, and are made anew in every kernel that uses the numbers. `threefry.cc`
is compiled once for a machine; a draw is one call of it. `jax.random` works on such keys as on its own, which are used where
there is no compiler or no processor.
"""

from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.random import define_prng_impl, threefry_prng_impl
from jaxtyping import Array, UInt, UInt32

from lemmata import native

KERNEL = Path(__file__).with_name("threefry.cc")
HANDLERS = ("threefry_split", "threefry_fold", *(f"threefry_bits_{width}" for width in (8, 16, 32, 64)))


def new_key(number: Any) -> Array:
    """The key of a number: `jax.random.key`."""
    return jax.random.key(number, impl=_kind())


def key_of(data: UInt32[Array, "*keys 2"]) -> Array:
    """The keys with this data: `jax.random.wrap_key_data`."""
    return jax.random.wrap_key_data(data, impl=_kind())


def plain_key(key: Array) -> Array:
    """The same key as one of JAX's own: `jax.random.poisson` takes no other."""
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=threefry_prng_impl)


@cache
def by_kernel() -> bool:
    """Whether the kernel makes the numbers."""
    return jax.default_backend() == "cpu" and native.loaded(KERNEL, *HANDLERS)


def _kind() -> Any:
    return _NATIVE if by_kernel() else threefry_prng_impl


def _call(name: str, shape: tuple[int, ...], kind: str, *given: Array) -> Array:
    call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(shape, kind), vmap_method="broadcast_all")
    return call(*given)


def _bits(key: UInt32[Array, "2"], width: int, shape: tuple[int, ...]) -> UInt[Array, "*shape"]:
    return _call(f"threefry_bits_{width}", shape, f"uint{width}", key)


def _split(key: UInt32[Array, "2"], shape: tuple[int, ...]) -> UInt32[Array, "*shape 2"]:
    return _call("threefry_split", (*shape, 2), "uint32", key)


def _fold_in(key: UInt32[Array, "2"], data: Any) -> UInt32[Array, "2"]:
    return _call("threefry_fold", (2,), "uint32", key, jnp.asarray(data, jnp.uint32))


_NATIVE = define_prng_impl(
    key_shape=(2,),
    seed=threefry_prng_impl.seed,
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,
    name="threefry2x32-kernel",
    tag="kernel",
)
