"""The statements with their numbers, printed and mended; the laws against counting and against the model at its start."""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.guard import double
from lemmata.studies.in_context_learning import network, theory
from lemmata.studies.in_context_learning.data import Contexts, cyclic_tasks, pattern_frame, prompt, tokens
from lemmata.studies.in_context_learning.trials import Layer
from lemmata.threefry import new_key


def test_fewer_tasks_than_patterns_cannot_cover():
    assert theory.covers(cyclic_tasks(6), 6)
    assert not theory.covers(cyclic_tasks(6)[:5], 6)
    assert theory.task_share(6) == pytest.approx(0.2)
    assert theory.task_share_printed(6) > 2 * theory.task_share(6)


@pytest.mark.parametrize(("fraction", "length"), [(0.8, 1), (0.8, 4), (0.5, 3), (1.0, 2)])
def test_the_law_of_the_vote_is_what_counting_all_prompts_gives(fraction, length):
    """Every context is the query's pattern (votes right), the other one (wrong), or another (a coin)."""
    chances = {"own": fraction / 2, "wrong": fraction / 2 + (1 - fraction) / 2, "right": (1 - fraction) / 2}
    error = 0.0
    for kinds in product(chances, repeat=length):
        weight = np.prod([chances[kind] for kind in kinds])
        votes = sum(1 if kind == "right" else -1 for kind in kinds)
        if "own" not in kinds:
            error += weight * (1.0 if votes < 0 else 0.5 if votes == 0 else 0.0)
    assert theory.vote_error(fraction, length) == pytest.approx(error)


def test_the_vote_errs_more_often_than_an_oracle_that_guesses():
    for fraction in (0.4, 0.8):
        for length in (1, 5, 20):
            assert theory.vote_error(fraction, length) > theory.oracle_error(fraction, length)
    assert theory.vote_length(0.4) > theory.vote_length(0.8)


def test_chernoff_bounds_hold_and_the_printed_exponent_is_too_sure():
    exact = theory.few_matches(40, 0.8, 0.5)
    assert exact <= theory.chernoff_below(40, 0.4, 0.5)
    assert theory.few_matches(400, 0.4, 0.5) > theory.few_matches_printed(400, 0.4, 0.5)
    assert theory.chernoff_above(100, 0.5, 0.2) == pytest.approx(np.exp(-2 / 3))


def test_iterations_go_as_the_powers_of_the_theorem():
    one = theory.iterations(1.0, 6, 0.2, 3.0)
    assert theory.iterations(1.0, 6, 0.8, 3.0) / one == pytest.approx(4 ** (-2 / 3))
    assert theory.iterations(1.0, 6, 0.2, 24.0) / one == pytest.approx(0.25)
    wide = [theory.iterations_any_width(1.0, 6, a, 3.0, 0.1, 1 / 60) for a in (0.2, 0.8)]
    assert wide[1] / wide[0] == pytest.approx(4 ** (-2 / 3))


def test_the_cubic_term_of_the_output_is_one_after_those_iterations():
    s = theory.setting(Layer())
    steps = theory.iterations_any_width(s.rate, s.patterns, s.fraction, s.norm, s.diagonal, s.vote)
    linear = s.diagonal**2 * (s.norm**2 + 1) * s.fraction * s.rate * steps * s.vote / 2
    assert theory.growth(np.array([steps]), s)[0] - linear == pytest.approx(1)


def test_the_attention_recursion_begins_uniform_and_ends_sharp():
    s = theory.setting(Layer())
    gamma = theory.attention_recursion(s, 400)
    assert gamma[0] == pytest.approx(1 - s.fraction / 2)
    assert gamma[-1] < 1 / s.patterns
    slower = theory.attention_recursion(s, 400, printed=False)
    assert np.argmax(slower < 0.5) > np.argmax(gamma < 0.5)


def test_pruning_bounds_agree_where_nothing_is_pruned_and_rise_with_the_rate():
    assert theory.pruned_large(0.0, 6, 0.6, 0.6) == pytest.approx(0)
    rates = [theory.pruned_large(r, 6, 0.6, 0.8) for r in (0.1, 0.2, 0.3)]
    assert np.all(np.diff(rates) > 0)
    assert theory.pruned_small(600, 0.6, 0.6) < theory.pruned_small(6, 0.6, 0.6) < 1


def test_the_largest_gap_parts_small_from_large_neurons():
    assert theory.largest_gap(np.array([0.1, 0.12, 0.15, 1.1, 1.2, 1.5])) == 3


def test_equal_neurons_give_the_effective_output_exactly():
    sign = np.array([1, 1, -1, -1])
    feature, label = np.full(4, 1.1), np.array([1.7, 1.7, -1.5, -1.5])
    groups = theory.answers(sign, feature, label, np.ones(4, bool))
    for s in (-1.5, 0.3, 1.2):
        for y in (1, -1):
            wanted = np.mean(sign * np.maximum(feature * s + y * label, 0))
            assert theory.effective_output(groups, np.array([s]), y)[0] == pytest.approx(wanted)
    at = theory.critical_sum(groups)
    assert min(
        theory.effective_output(groups, np.array([at]), 1)[0],
        -theory.effective_output(groups, np.array([at]), -1)[0],
    ) >= (1 - 1e-9)


def test_partners_hold_what_the_conserved_sum_leaves_them():
    assert theory.partner_share(6, 1) == -0.5
    assert theory.partner_share(6, 4) == -0.2


def test_mixtures_that_do_not_share_a_pattern_may_still_attend_to_each_other():
    block = np.array([[1.0, -0.5, -0.5], [-0.5, 1.0, -0.5], [-0.5, -0.5, 1.0]])
    mean = np.full((1, 3), 3**-0.5)
    assert theory.mixed_logit(block, mean)[0, 0] == pytest.approx(0)
    assert theory.mixed_logit(block, np.eye(3)[:1])[0, 0] == 1


@pytest.fixture(scope="module")
def first():
    """Ten thousand long clean prompts of one task and label, and the layer at its start."""
    with double():
        data = Contexts(noise_bound=0.0, room=200, examples=200)
        frame = pattern_frame(data, jnp.float64)
        task = jnp.asarray(cyclic_tasks(6)[0])

        def one(key):
            return prompt(key, task, jnp.asarray(0), 0.8, jnp.asarray(0.0), 200, 6, 24, 200)

        @jax.jit
        def begun():
            prompts = jax.vmap(one)(jax.random.split(new_key(0), 400))
            context, query = tokens(frame, prompts)
            normal = jax.random.normal(new_key(1), (31, 400))
            weights = network.start(jnp.eye(31), normal, 30, 0.2, 1)
            return prompts, (context, prompts.shown, query), weights

        return frame, *begun()


def test_attention_begins_as_the_formula_says(first):
    _, prompts, seen, weights = first
    paid = jax.jit(lambda w: (network.attention(network.fold(w), *seen)[0], network.same_pattern(prompts)))
    share, same = map(np.asarray, paid(weights))
    mass = np.mean(np.sum(share * same, axis=-1))
    assert float(mass) == pytest.approx(theory.first_mass(0.8, 0.2, 3.0), abs=0.006)


def test_the_first_step_of_lucky_neurons_is_the_mended_one(first):
    """Per query pattern and label; the print leaves out the contexts of the other label."""
    frame, _, seen, weights = first
    mixed = np.mean(jax.jit(lambda w: network.values(network.fold(w), *seen))(weights), axis=0)
    frame, weights = jax.tree.map(np.asarray, (frame, weights))
    pull = weights.value[0] @ mixed  # a gradient of a row of W_O, over a_i, on active prompts
    a, b, q = frame.relevant[0], frame.relevant[1], frame.label
    found = np.array([2 * float(pull @ v) for v in (a + q, a - q, b + q, b - q)])
    np.testing.assert_allclose(found, theory.first_step(0.8, 0.2, 3.0), atol=0.02)
    assert abs(found[2] - theory.first_step_printed(0.8, 0.2, 3.0).other_right) > 0.5


def test_a_neuron_is_lucky_with_probability_one_eighth(first):
    _, _, seen, weights = first
    votes = np.where(np.arange(400) % 2, 1.0, -1.0) / 400
    begin = jax.jit(lambda w: (start := network.fold(w), network.values(start, *seen)))
    start, begun = jax.tree.map(np.asarray, begin(weights))
    label = np.arange(31) == 30
    lucky = ((begun * ~label) @ start.hidden > 0) & ((begun * label) @ start.hidden > 0) & (votes > 0)
    assert float(lucky.mean()) == pytest.approx(theory.lucky_share(), abs=0.06)
    assert theory.lucky_cap(30, 6) < 0.5
