"""Data and weights that a user hands to `lm.train`, study by study: one module `<package of the study>.py` each.

A module has two lists, which `tests/test_own_data.py` goes through:

`CASES`: trainings with data or weights of one's own (`Case`). `expected` computes some of the record by itself, in NumPy and
float64, from what was handed in; it shares no function with the study's network, gradient or trial. Names are those of
`lm.train`'s record (curves are `<name>_curve`). The trial has `precision="float64"`, few samples and a few steps. At least one
of the expected numbers differs from the record of the same trial and seed without data and weights; the test looks.

`REFUSED`: what the training cannot use (`Refused`), and words of the one sentence that says so: wrong structure, wrong shape,
wrong number of samples, wrong type, NaN, values without meaning (a label 0 among +1 and -1), reduced simulators.

Every stepped trial of a study (`Descending`) stands in `CASES` or `REFUSED` with data and also with weights. What else a run
has drawn (a teacher, test samples) comes from `begun`. A trial says in `takes` which structure, shapes and types it takes
(`lemmata.own.accepted` compares them and refuses NaN) and refuses values in `check_own` (see `own.require_signs` and
`own.require_between`); `start_from` then gets arrays of the training's own types.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from lemmata.guard import double
from lemmata.trial import Descending, random_key, with_precision


class Case(NamedTuple):
    """`expected()` gives numbers of the record of `lm.train(trial, seed, data=data, weights=weights)`."""

    name: str
    trial: Descending
    seed: int
    data: Any
    weights: Any
    expected: Callable[[], Mapping[str, Any]]


class Refused(NamedTuple):
    """`lm.train(trial, data=data, weights=weights)` raises `BadInput` with a sentence that has these words in it."""

    trial: Any
    data: Any
    weights: Any
    words: str


def begun(trial: Descending, seed: int) -> Any:
    """The drawn state before the first step, as arrays of NumPy."""
    with double():
        state = jax.jit(lambda key: with_precision(trial).start(key))(random_key(trial, seed))
        return jax.tree.map(np.asarray, state)
