"""Keeps compiled programs honest: switches off a compiler pass that computes wrong numbers, and checks that it is off.

From jaxlib 0.10.2 on, XLA on the CPU fuses a product with the reduction that follows it, and the fused program reads memory
of other arrays (jax issues 39103, 39257). A flag switches the pass off. Older releases do not know the flag and do not get it.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Any

from lemmata.cache import load, private_folder, save
from lemmata.errors import BadInput

FIRST_BAD = (0, 10, 2)
"""The first jaxlib that needs the guard. All tested later ones (0.11.2, 0.12.0.1) need it too."""

FLAG = "--xla_cpu_experimental_ynn_fusion_type="

NO_EMITTERS = (0, 11)
"""The first jaxlib without the option `xla_cpu_use_fusion_emitters`. It refuses the option, and ends the process where
`XLA_FLAGS` has it."""

SETTINGS: dict[str, Any] = {
    "jax_random_seed_offset": 0,
    "jax_threefry_partitionable": True,
    "jax_default_prng_impl": "threefry2x32",
    "jax_high_dynamic_range_gumbel": False,
    "jax_safer_randint": True,
    "jax_default_dtype_bits": "64",
    "jax_default_matmul_precision": None,
    "jax_softmax_custom_jvp": False,
    "jax_numpy_dtype_promotion": "standard",
    "jax_numpy_rank_promotion": "allow",
    "jax_debug_nans": False,
    "jax_debug_infs": False,
    "jax_disable_jit": False,
}
"""Settings of JAX that change the draws or the record of a cell, with the values that the lab uses.

Users may have set others, in `jax.config` or by environment variables. A release may not have all of them. The settings that
are not listed change speed, messages or at most the rounding (`docs/scaling.md` says what is promised)."""

_late = False


def apply() -> None:
    """Switch the faulty pass off. This has an effect only before JAX starts, so `import lemmata` does it first."""
    global _late
    flags = os.environ.get("XLA_FLAGS", "")
    if _release() >= FIRST_BAD and FLAG not in flags.split():
        _late = (
            "jax" in sys.modules
        )  # JAX may have started without the flag, so `check` must run the programs
        os.environ["XLA_FLAGS"] = f"{flags} {FLAG}".strip()


@cache
def check() -> None:
    """Raise `BadInput` if the compiler gets a known bad program wrong.

    The programs run once for each installed jaxlib, and once in every process that imported JAX before the guard."""
    seen = None
    with contextlib.suppress(OSError):
        python = f"{sys.version_info.major}{sys.version_info.minor}"
        seen = private_folder("checked") / f"jaxlib-{version('jaxlib')}-python-{python}"
        if load(seen) is not None and not _late:
            return
    wrong = unsound()
    if wrong:
        raise BadInput(
            f"jaxlib {version('jaxlib')} computes wrong numbers here ({wrong}); import lemmata before JAX is used, "
            f"or set XLA_FLAGS={FLAG}, or install another release."
        )
    if seen is not None:
        with contextlib.suppress(OSError):
            save(seen, b"")


def unsound() -> str:
    """Return the first known bad program that the compiler gets wrong, in words, or an empty text."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    rows = np.random.default_rng(0).normal(size=(100, 10, 5)).astype(np.float32)
    tall = np.stack([np.arange(32_769), np.zeros(32_769), np.zeros(32_769)], 1).astype(np.float32)
    programs = {
        "a product with a broadcast scalar, then its largest entry": (
            lambda x: jnp.max(x @ (x[0, 0, 0] * jnp.ones((5, 5), x.dtype)), -1),
            rows,
            (rows @ (rows[0, 0, 0] * np.ones((5, 5), np.float32))).max(-1),
        ),
        "a product with a broadcast scalar, then its sum": (
            lambda x: jnp.sum(x @ (x[0, 0, 0] * jnp.ones((5, 5), x.dtype)), -1),
            rows,
            (rows @ (rows[0, 0, 0] * np.ones((5, 5), np.float32))).sum(-1),
        ),
        "row products, then the sum of their squares": (
            jax.vmap(lambda row: jnp.sum((jnp.eye(3, dtype=row.dtype) @ row) ** 2)),
            tall,
            (tall**2).sum(-1),
        ),
    }
    for name, (program, given, right) in programs.items():
        if not np.allclose(np.asarray(jax.jit(program)(given)), right, rtol=1e-4, atol=1e-4):
            return name
    return ""


def brief() -> dict[str, int | bool] | None:
    """Return compiler options that halve the time of a compilation and make the program a tenth slower.

    None if the user has set the level, or if the release may be too old to know them."""
    if _release() < FIRST_BAD or "xla_backend_optimization_level" in os.environ.get("XLA_FLAGS", ""):
        return None
    if _release() < NO_EMITTERS:
        return {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}
    return {"xla_backend_optimization_level": 1}


@contextlib.contextmanager
def double() -> Iterator[None]:
    """Switch JAX to float64 and to the `SETTINGS` inside, and restore the settings of the user afterwards."""
    import jax

    with x64(True), contextlib.ExitStack() as stack:
        for name, value in SETTINGS.items():
            if getattr(jax.config, name, value) != value:
                stack.enter_context(_set(name, value))
        yield


def x64(on: bool) -> contextlib.AbstractContextManager[None]:
    """Switch float64 on or off inside. The name of the function depends on the release of JAX."""
    import jax

    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(on)
    from jax.experimental import enable_x64  # pyright: ignore[reportAttributeAccessIssue]  (releases before 0.8)

    return enable_x64(on)


@contextlib.contextmanager
def _set(name: str, value: Any) -> Iterator[None]:
    """Change one setting of JAX inside, by a context manager of that name if there is one, as it overrides `jax.config`."""
    import jax

    here = getattr(jax, name.removeprefix("jax_"), None)
    if here is not None:
        with here(value):
            yield
        return
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in version("jaxlib").split(".")[:3] if part.isdigit())
