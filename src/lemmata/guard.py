"""Keeps compiled programs honest: switches off a compiler pass that computes wrong numbers, and checks that it is off.

From jaxlib 0.10.2 on, XLA on CPU sends products followed by reductions through a fusion that reads foreign memory (jax
issues 39103, 39257). The flag that switches it off is known to the releases that have the pass; older ones never see it.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from lemmata.errors import BadInput

FIRST_BAD = (0, 10, 2)
FLAG = "--xla_cpu_experimental_ynn_fusion_type="

_late = False


def apply() -> None:
    """Switch the faulty pass off; has an effect only before JAX starts, so `import lemmata` does it first."""
    global _late
    flags = os.environ.get("XLA_FLAGS", "")
    if _release() >= FIRST_BAD and FLAG not in flags.split():
        _late = "jax" in sys.modules  # it may have started without the flag: `check` then looks for itself
        os.environ["XLA_FLAGS"] = f"{flags} {FLAG}".strip()


@cache
def check() -> None:
    """Refuse to train where known bad programs come out wrong; looked at once for each installed jaxlib, and once in a process
    that had JAX before the guard."""
    seen = (
        cache_folder()
        / f"sound-jaxlib-{version('jaxlib')}-python-{sys.version_info.major}{sys.version_info.minor}"
    )
    if seen.exists() and not _late:
        return
    wrong = unsound()
    if wrong:
        raise BadInput(
            f"jaxlib {version('jaxlib')} computes wrong numbers here ({wrong}); import lemmata before JAX is used, "
            f"or set XLA_FLAGS={FLAG}, or install another release."
        )
    with contextlib.suppress(OSError):
        seen.parent.mkdir(parents=True, exist_ok=True)
        seen.touch()


def unsound() -> str:
    """The first known bad program that the compiler gets wrong, in words; empty when all come out right."""
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
    """Options of the compiler that halve its time and cost programs a tenth of theirs; none where its level is already set, or
    where it may be too old to know them."""
    if _release() < FIRST_BAD or "xla_backend_optimization_level" in os.environ.get("XLA_FLAGS", ""):
        return None
    return {"xla_backend_optimization_level": 1, "xla_cpu_use_fusion_emitters": False}


@contextlib.contextmanager
def double() -> Iterator[None]:
    """Float64 in JAX inside, whatever it was outside: trials choose their precision, users keep theirs."""
    import jax

    if hasattr(jax, "enable_x64"):
        switched = jax.enable_x64(True)
    else:
        from jax.experimental import enable_x64  # pyright: ignore[reportAttributeAccessIssue]  (older releases)

        switched = enable_x64(True)
    with switched:
        yield


def cache_folder() -> Path:
    """Where the lab keeps what can be made again: compiled programs, and what `check` found."""
    return Path(os.environ.get("LEMMATA_CACHE", Path.home() / ".cache" / "lemmata"))


def _release() -> tuple[int, ...]:
    return tuple(int(part) for part in version("jaxlib").split(".")[:3] if part.isdigit())
