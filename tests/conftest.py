"""Tests run on one thread each (pytest-xdist supplies the parallelism, a file to a process). They train small things once, so
most of their time is compilation: it is kept short, and kept between runs. Shapes and types of arguments are checked on every
call. The slow tests run programs as users do, with all that the compiler does to them."""

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

# `nohup` ignores hang-ups, and so would the programs that tests start and hang up on.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

SHORT = "--xla_backend_optimization_level=0"
SINCE_BAD = "--xla_cpu_parallel_codegen_split_count=1"
BELOW_NO_EMITTERS = "--xla_cpu_use_fusion_emitters=false"
"""Flags that make compilations short. A flag that a release does not know ends the process: the second is for releases from
`FIRST_BAD` on, as older ones may not know it, and the third for those of them below `NO_EMITTERS`, where it was removed."""

MAPS = 30_000
"""How many memory maps a process may have before it forgets its programs; systems allow some 65 000."""

OFTEN = (100_000, 20, 100)
"""How often unreachable cycles are looked for: by default, a tenth of the time goes into what JAX and the tests keep."""

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
    """What has been imported by now stays: whoever looks for cycles need not go through it again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def _in_double():
    """Float64 is on inside every test, as it is inside every training."""
    with double():
        yield


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
    """Compiled programs are kept from file to file until they exhaust the memory maps of the process."""
    yield
    maps = Path("/proc/self/maps")
    if not maps.exists() or maps.read_bytes().count(b"\n") > MAPS:
        import jax

        jax.clear_caches()
