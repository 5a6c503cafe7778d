"""Exponentials and logarithms of kernels (`elementary.h`) against NumPy's in higher precision."""

from pathlib import Path

import numpy as np
import pytest

from lemmata.kernels import call
from tests.kernels import needs_compiler

KERNEL = Path(__file__).with_name("elementary.cc")

pytestmark = needs_compiler


def applied(name: str, given: np.ndarray) -> np.ndarray:
    return np.asarray(call(KERNEL, name, given))


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_within_two_units_in_the_last_place(kind):
    """`np.longdouble` has 11 bits more than float64 where it is not the same."""
    random, count = np.random.default_rng(0), 1 << 14
    far = 0.97 * np.log(np.finfo(kind).max)
    wide, near = random.uniform(-far, far, count), random.normal(size=count)
    for name, function, given in (
        ("exp_of", np.exp, wide),
        ("exp_of", np.exp, near),
        ("exp_below", np.exp, -np.abs(wide)),
        ("log_of", np.log, np.exp(wide)),
        ("log_of", np.log, random.uniform(0.5, 2, count)),
        ("log_one_plus", np.log1p, random.uniform(0, 1, count)),
        ("log_one_plus", np.log1p, np.exp(-np.abs(wide))),
    ):
        given = given.astype(kind)
        wanted = function(given.astype(np.longdouble))
        away = np.abs(applied(name, given) - wanted) / np.spacing(np.abs(wanted.astype(kind)))
        assert away.max() < 2.5, (name, away.max())


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_what_is_not_finite(kind):
    given = np.zeros(16, kind)
    given[:5] = np.nan, -np.inf, -1e30, np.inf, 1e30
    below = np.minimum(given, 0)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(applied("exp_of", given), np.exp(given))
    np.testing.assert_array_equal(applied("exp_below", below), np.exp(below))
    assert np.isnan(applied("log_of", given)[0])
    assert np.isnan(applied("log_one_plus", given)[0])
