"""Chooses the device that trains: the CPU, unless `--device`, LEMMATA_DEVICE or JAX_PLATFORMS names another.

The CPU is the default because every worker process would otherwise allocate all memory of the GPU, and because the verdicts
are calibrated on the CPU. This module imports JAX only when it is needed.
"""

import os
from collections.abc import Mapping, MutableMapping

from lemmata.errors import BadInput, require

DEVICES = ("cpu", "gpu")
"""The values of `--device`. LEMMATA_DEVICE may also be any platform of JAX."""

DETERMINISTIC = "--xla_gpu_deterministic_ops=true"
"""Without this flag a GPU adds numbers in an order that changes from run to run."""

NOTE = "verdicts are calibrated on the CPU; other devices round differently, and use no kernels."


def chosen(environment: Mapping[str, str] = os.environ) -> str:
    """Return the device that worker processes train on.

    >>> chosen({}), chosen({"JAX_PLATFORMS": "cuda,cpu"}), chosen({"JAX_PLATFORMS": "cuda", "LEMMATA_DEVICE": "cpu"})
    ('cpu', 'cuda,cpu', 'cpu')
    """
    return environment.get("LEMMATA_DEVICE") or environment.get("JAX_PLATFORMS") or "cpu"


def on_cpu(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether worker processes train on the CPU."""
    return chosen(environment).partition(",")[0] == "cpu"


def select(environment: MutableMapping[str, str]) -> None:
    """Change an environment so that its process trains on the chosen device. This has an effect only before JAX starts.

    >>> found = {"LEMMATA_DEVICE": "gpu", "JAX_PLATFORMS": "cpu"}
    >>> select(found)
    >>> found["XLA_PYTHON_CLIENT_PREALLOCATE"], found["XLA_FLAGS"], "JAX_PLATFORMS" in found
    ('false', '--xla_gpu_deterministic_ops=true', False)
    """
    device = chosen(environment)
    if device == "gpu":  # JAX then finds out itself whether it is CUDA or ROCm
        environment.pop("JAX_PLATFORMS", None)
    else:
        environment["JAX_PLATFORMS"] = device
    if not on_cpu(environment):
        environment.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        flags = environment.get("XLA_FLAGS", "")
        if DETERMINISTIC.partition("=")[0] not in flags:
            environment["XLA_FLAGS"] = f"{flags} {DETERMINISTIC}".strip()


def require_one_worker(workers: int) -> None:
    """Raise `BadInput` for several worker processes that would share one GPU."""
    require(
        workers <= 1 or on_cpu(),
        f"the device '{chosen()}' takes one worker process, not {workers}: give --workers 1, or --device cpu.",
    )


def check() -> None:
    """Start JAX. Raises `BadInput` if it does not find the chosen device."""
    import jax

    try:
        found = jax.default_backend()
    except (RuntimeError, AssertionError) as error:  # AssertionError: CUDA without a GPU
        why = " ".join(str(error).split()) or "there is none"
        raise BadInput(
            f"JAX does not find the device '{chosen()}' here ({why}); "
            "give --device cpu, or change LEMMATA_DEVICE or JAX_PLATFORMS."
        ) from None
    require(
        chosen() != "gpu" or found == "gpu",
        f"JAX finds no GPU here, only '{found}'; install JAX for your GPU, or give --device cpu.",
    )


def used() -> str:
    """Return the device that this process trains on, as rows name it.

    >>> used()
    'cpu'
    """
    import jax

    first = jax.devices()[0]
    return first.platform if first.platform == "cpu" else f"{first.platform} ({first.device_kind})"
