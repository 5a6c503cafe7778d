"""Tests of kernels: they run wherever there is a compiler, and fail where it does not compile one."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lemmata import kernels
from lemmata.kernels import Kernel

needs_compiler = pytest.mark.skipif(kernels.compiler() is None, reason="there is no C++ compiler")


def forms(kernel: Kernel) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return a kernel's C++ form and its JAX form."""
    return kernel.native, kernel.plain


@contextlib.contextmanager
def without_kernels() -> Iterator[None]:
    """Switch kernels off for a part of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernels.SWITCH, "off")
        yield
