"""The law of the vote is exact; laws of training at their limits."""

from itertools import product
from math import factorial

import numpy as np
import pytest

from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.data import quality


def by_enumeration(count, chances):
    total = 0.0
    for counts in product(range(count + 1), repeat=len(chances)):
        if sum(counts) == count and counts[0] == max(counts):
            ways = factorial(count) / np.prod([factorial(c) for c in counts])
            total += ways * np.prod(np.power(chances, counts)) / counts.count(counts[0])
    return total


@pytest.mark.parametrize("count", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("chances", [(0.5, 0.3, 0.2), (0.4, 0.2, 0.2, 0.2), (1.0, 0.0), (0.3, 0.7)])
def test_the_chance_of_winning_a_vote_is_exact(count, chances):
    np.testing.assert_allclose(theory.plurality(count, np.asarray(chances)), by_enumeration(count, chances), rtol=1e-12)


def test_example_1_of_the_document():
    """Section 2.5: tau = .36, tau_o = .56, rho = 1/3; in-context learning errs on one of two inputs whatever the length."""
    transitions = np.array([[[0.6, 0.4], [0.4, 0.6]], [[0.4, 0.6], [0.8, 0.2]]])
    maps = np.array([[0, 1], [1, 0]])
    found = quality(transitions, maps)
    np.testing.assert_allclose(found[:4], (0.36, 1 / 3, 0.56, 1 - 0.44 / 0.56))
    assert found.right_rows == 0.5
    whole = transitions[0] @ transitions[1]
    assert theory.icl_limit(whole, np.array([1, 0])) == 0.5
    assert abs(theory.icl_error(401, whole, np.array([1, 0])) - 0.5) < 0.01
    assert theory.cot_errors(120, 0, transitions, maps)[-1] < 0.05
