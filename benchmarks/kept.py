"""What a benchmark has measured, kept as data: `benchmarks/results/WORKLOAD.json`, with what the machine can do."""

import json
import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).with_name("results")


def keep(workload: str, numbers: dict[str, Any]) -> None:
    """Write the numbers of a workload down, and how good the machine was while they were made."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"machine": machine(), "numbers": numbers}, indent=1)
    (RESULTS / f"{workload}.json").write_text(text + "\n")


def machine() -> dict[str, Any]:
    """Cores, versions, and the limits that were measured: products on one core, reading memory, how busy it was."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("jax", "numpy", "torch")},
        "matrix product, GFLOP/s": round(_product_rate() / 1e9, 1),
        "reading memory, GB/s": round(_read_rate() / 1e9, 1),
        "load before": round(os.getloadavg()[0], 1),
    }


def _product_rate(size: int = 1200) -> float:
    square = np.ones((size, size), np.float32)
    return 2 * size**3 / _shortest(lambda: square @ square)


def _read_rate(bytes_: int = 1 << 28) -> float:
    long = np.ones(bytes_ // 8)
    return bytes_ / _shortest(long.sum)


def _shortest(work: Any, rounds: int = 5) -> float:
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - began)
    return best


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"
