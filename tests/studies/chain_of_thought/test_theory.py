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
    np.testing.assert_allclose(
        theory.plurality(count, np.asarray(chances)), by_enumeration(count, chances), rtol=1e-12
    )


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


def test_gradient_at_the_start():
    """To leading order the logit of the same step grows at alpha (K - 1)/K^3 and that of others falls at alpha/K^3: within
    1/M."""
    import jax
    import jax.numpy as jnp

    from lemmata.studies.chain_of_thought import network
    from lemmata.studies.chain_of_thought.data import Chains

    data = Chains(dim=60, patterns=40, steps=3, examples=20)
    prompts = data.draw(jax.random.key(0), 3 * 40 * 20)
    slope = np.asarray(jax.vmap(lambda p: network.slope(jnp.zeros((83, 43)), p)[1])(prompts).mean(0))
    block = slope[80:, 40:]
    expected = theory.first_gradient(theory.Setting(0.4, 3, 40, 1.0, 20, 60, 1e-2))
    own, other = np.diag(block).mean(), (block.sum() - np.trace(block)) / 6
    assert abs(own / expected["same step"] - 1) < 0.1
    assert abs(other / expected["other step"] - 1) < 0.1


def test_the_tail_of_right_trajectories():
    for length, rho in ((20, 0.8), (100, 0.3), (400, 0.2)):
        assert theory.chernoff_exact(length, 0.8, 0.5, rho) <= theory.wrong_count_bound(length, 0.8, 0.5, rho)


def test_a_pattern_that_is_the_mean_of_all_gets_no_logit():
    assert theory.span_logit(3.4, 20, 20**0.5) == pytest.approx(0)
    assert theory.span_logit(3.4, 20, 1.0) == pytest.approx(3.4)


def test_stage_two_ends_in_its_tail():
    s = theory.Setting(0.4, 3, 20, 10.0, 20, 60, 1e-3)
    late = np.array([1e6])
    np.testing.assert_allclose(1 - theory.stage2_curve(s, 0.5)(late), theory.tail_gap(late, s), rtol=0.02)
