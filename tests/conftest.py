"""Configures all tests. Each process has one thread; pytest-xdist runs several processes, and gives each whole files.

Tests train small models once, so compilation takes most of their time. Compilations use few optimisations and are cached
between runs. Shapes and types of arguments are checked on every call. Slow tests compile programs as users do."""

import gc
import os
import signal
from pathlib import Path

import pytest

from tests.checked import check_calls

check_calls("lemmata")

import lemmata  # noqa: E402, F401  (first: the guard on the compiler comes before JAX starts)
from lemmata.guard import FIRST_BAD, NO_EMITTERS, _release, double  # noqa: E402
from lemmata.lab.pool import cache_compilations, one_thread  # noqa: E402

# Under `nohup` SIGHUP is ignored, and the programs that tests start would inherit that.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

SHORT = "--xla_backend_optimization_level=0"
SINCE_BAD = "--xla_cpu_parallel_codegen_split_count=1"
BELOW_NO_EMITTERS = "--xla_cpu_use_fusion_emitters=false"
"""Flags that make compilations short. An unknown flag ends the process, so the second is given from release `FIRST_BAD` on, and
the third from `FIRST_BAD` to below `NO_EMITTERS`, where it was removed."""

MAPS = 30_000
"""The number of memory maps above which a process drops its compiled programs. Systems allow about 65 000."""

OFTEN = (100_000, 20, 100)
"""Thresholds of the garbage collector. With the defaults it takes a tenth of the time, for objects that stay alive."""

gc.set_threshold(*OFTEN)
one_thread()
cache_compilations()


def pytest_configure(config):
    if config.getoption("-m") != "slow":
        release = _release()
        flags = [
            SHORT,
            *([SINCE_BAD] * (release >= FIRST_BAD)),
            *([BELOW_NO_EMITTERS] * (FIRST_BAD <= release < NO_EMITTERS)),
        ]
        os.environ["XLA_FLAGS"] = " ".join([os.environ["XLA_FLAGS"], *flags])


def pytest_collection_finish():
    """Exclude all imported objects from garbage collection."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _in_double():
    """Switch float64 on inside every test, as inside every training."""
    with double():
        yield


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
    """Drop compiled programs after a file if the process has too many memory maps."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_bytes().count(b"\n") > MAPS:
        import jax

        jax.clear_caches()
