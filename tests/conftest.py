"""Tests run on one thread each (pytest-xdist supplies the parallelism). They train small things once, so most of their
time is compilation: it is kept short, and kept between runs. Shapes and types of arguments are checked on every call."""

import os

import pytest

from tests.checked import check_calls

check_calls("lemmata")

import lemmata  # noqa: E402, F401  (first: the guard on the compiler comes before JAX starts)
from lemmata.guard import FLAG, double  # noqa: E402
from lemmata.lab.pool import cache_compilations, one_thread  # noqa: E402

one_thread()
os.environ["XLA_FLAGS"] += " --xla_backend_optimization_level=0"
if (
    FLAG in os.environ["XLA_FLAGS"].split()
):  # so new a compiler knows these, too; an older one would end the process
    os.environ["XLA_FLAGS"] += " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
cache_compilations()


@pytest.fixture(autouse=True)
def _in_double():
    """Float64 is on inside every test, as it is inside every training."""
    with double():
        yield


@pytest.fixture(autouse=True, scope="module")
def _forget_programs():
    """Compiled programs of one file are not kept for the next: thousands of them in one process exhaust its memory maps."""
    yield
    import jax

    jax.clear_caches()
