"""Tests of kernels: whether there is one is asked when such a test runs, for to ask means to compile it."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest


@dataclass
class _Missing:
    found: Callable[[], bool]

    def __bool__(self) -> bool:
        return not self.found()


def needs_kernel(found: Callable[[], bool]) -> pytest.MarkDecorator:
    """The mark of a test that is skipped where a kernel is not found."""
    return pytest.mark.skipif(_Missing(found), reason="there is no kernel here")  # pyright: ignore[reportArgumentType]
