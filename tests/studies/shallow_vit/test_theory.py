"""The theorems as functions: limits, monotonicity, and the numbers the paper's own settings give."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lemmata.studies.shallow_vit import lemmas, theory
from lemmata.studies.shallow_vit.theory import Setting

TAU = 0.01 * math.sqrt(10)
FIG1A = Setting(0.4, 0.1, token_noise=TAU, neurons=1000, samples=200)
fractions = st.floats(0.05, 0.95)


@pytest.mark.parametrize(
    ("delta", "slack", "needed"), [(0.2, 0.5, 0.372), (0.2, 1.0, 0.296), (0.4, 0.5, 0.390), (0.4, 1.0, 0.320)]
)
def test_condition_eight_at_the_settings_of_figures_one_and_two(delta, slack, needed):
    s = replace(FIG1A, key_query_error=delta, confusion_slack=slack)
    assert theory.relevant_fraction_boundary(0.5, s) == pytest.approx(needed, abs=6e-4)


def test_both_forms_of_condition_eight_agree():
    edge = theory.relevant_fraction_boundary(0.5, FIG1A)
    at_edge = replace(FIG1A, relevant_fraction=edge, confusion_fraction=0.5 - edge)
    assert theory.relevant_fraction_needed(at_edge) == pytest.approx(edge)


def test_figure_1b_violates_the_papers_condition_and_meets_the_thesiss():
    s = Setting(0.3, 0.2, token_noise=TAU)
    assert theory.relevant_fraction_needed(s) == pytest.approx(0.58, abs=0.01)
    named = {c.name: c.holds for c in theory.conditions(s) if c.name.startswith("C4")}
    assert list(named.values()) == [False, True]


@pytest.mark.parametrize(("patterns", "factor"), [(5, 0.43), (10, -0.19), (15, -0.78), (20, -1.38)])
def test_figures_seven_and_eight_lie_outside_the_theorem(patterns, factor):
    s = replace(FIG1A, patterns=patterns, token_noise=0.01 * math.sqrt(10 if patterns == 5 else 20))
    assert 1 - s.slack - s.disorder * patterns / math.pi == pytest.approx(factor, abs=0.05)
    assert math.isinf(theory.steps_needed(s)) == (factor < 0)


def test_smallest_width_slack_at_the_papers_width():
    assert theory.smallest_width_slack(FIG1A) == pytest.approx(0.364, abs=1e-3)


@given(fractions, fractions)
def test_more_relevant_tokens_never_need_more_samples_or_steps(a, b):
    low, high = sorted((a, b))
    less, more = (replace(FIG1A, relevant_fraction=v) for v in (low, high))
    for needed in (theory.samples_needed, theory.samples_needed_frozen, theory.steps_needed):
        assert needed(more) <= needed(less)


@given(fractions)
def test_without_disorder_samples_go_as_fraction_to_minus_two_and_minus_four(alpha):
    s = Setting(alpha, 0.0, token_noise=0.0, value_error=0.0)
    assert theory.samples_needed(s) == pytest.approx(alpha**-2)
    assert theory.samples_needed_frozen(s) == pytest.approx(alpha**-4)
    assert theory.samples_needed_frozen(s) / theory.samples_needed(s) == pytest.approx(
        theory.attention_advantage(alpha)
    )


def test_samples_are_infinite_where_disorder_eats_the_signal():
    assert math.isinf(theory.samples_needed(Setting(0.1, 0.0, value_error=0.2)))


def test_rival_step_laws_differ_in_the_step_size_only():
    slow, fast = (replace(FIG1A, learning_rate=eta) for eta in (0.1, 1.0))
    assert theory.steps_needed(slow) / theory.steps_needed(fast) == pytest.approx(10)
    assert theory.steps_needed_thesis(slow) / theory.steps_needed_thesis(fast) == pytest.approx(10**0.6)


def test_root_of_the_growth_law_goes_as_one_over_the_fraction():
    quiet = Setting(0.2, 0.0, value_error=0.0)
    once, twice = (theory.steps_from_growth(replace(quiet, relevant_fraction=a), 1.0) for a in (0.2, 0.4))
    assert once / twice == pytest.approx(2)


@given(fractions, st.floats(0, 0.99))
def test_removing_irrelevant_tokens_helps_and_random_removal_does_not(alpha, removed):
    s = Setting(alpha, 0.0, value_error=0.0)
    saving = theory.remove_irrelevant(s, removed)
    assert alpha <= saving.relevant_fraction <= 1
    assert saving.samples_ratio == pytest.approx((alpha / saving.relevant_fraction) ** 2)
    assert saving.steps_ratio == pytest.approx(alpha / saving.relevant_fraction)
    assert theory.remove_random(s, removed).samples_ratio == 1


def test_removing_all_irrelevant_tokens_leaves_only_relevant_ones():
    assert theory.remove_irrelevant(Setting(0.3, 0.1), 1.0).relevant_fraction == pytest.approx(1)


def test_removing_noise_helps():
    s = Setting(0.5, 0.1, token_noise=0.2, value_error=0.1, neurons=10_000)
    saving = theory.remove_noisy(s, 0.05)
    assert saving.samples_ratio < 1
    assert saving.steps_ratio < 1


def test_frozen_attention_saves_two_percent_of_the_weights_not_one():
    assert theory.parameters_saved_by_freezing(10, 10, 10, 1000) == pytest.approx(0.0194, abs=1e-4)


# Lemmas -----------------------------------------------------------------------------------------------------


def test_attention_at_the_start_in_the_shrunk_model_is_below_the_printed_bound():
    """The errors enter a logit twice: (1 - delta)^2 = 0.64 is all that is left of ||q||^2 = 1."""
    measured = 0.5 * math.exp(0.64) / (0.5 * math.exp(0.64) + 0.5)
    printed = lemmas.relevant_attention_printed(1.0, 0.2, 25, 50)
    rigorous = lemmas.relevant_attention_bound(1.0, 0.2, 25, 50)
    assert measured == pytest.approx(0.655, abs=1e-3)
    assert printed == pytest.approx(0.69, abs=1e-3)
    assert rigorous < measured < printed


@given(st.floats(0.01, 9), st.floats(0, 0.5), st.integers(1, 49))
def test_attention_bounds_are_ordered(q2, spread, many):
    rigorous = lemmas.relevant_attention_bound(q2, spread, many, 50)
    printed = lemmas.relevant_attention_printed(q2, spread, many, 50)
    assert rigorous <= printed + 1e-12 <= 1 + 1e-11
    assert lemmas.attention_phi(q2, spread, many, 50) <= lemmas.attention_nu(q2, spread, many, 50)


def test_rigorous_bound_holds_for_random_perturbations():
    rng = np.random.default_rng(0)
    spread, many, dim = 0.3, 5, 6
    for _ in range(200):
        scale = rng.uniform(0.5, 2)
        basis = np.eye(dim) * scale
        errors = rng.normal(size=(2, 12, dim))
        errors *= spread / np.linalg.norm(errors, axis=-1, keepdims=True)
        pattern = np.array([0] * many + [1, 2, 3, 1, 2, 3, 4])
        keys, queries = basis[pattern] + errors[0], basis[pattern] + errors[1]
        logits = keys @ queries[0]
        paid = np.exp(logits[:many]).sum() / np.exp(logits).sum()
        assert paid >= lemmas.relevant_attention_bound(scale**2, spread, many, 12) - 1e-12


def test_bounds_on_all_patterns_add_up_to_one():
    printed = lemmas.relevant_attention_printed(1.0, 0.2, 25, 50)
    others = sum(lemmas.other_pattern_weight(1.0, 0.2, 25, 50, count) for count in (5, 10, 10))
    assert printed + others == pytest.approx(1)


def test_initial_attention_closed_forms():
    assert lemmas.initial_attention(0.5) == pytest.approx(math.e / (math.e + 1))
    assert lemmas.initial_attention(0.5, own=0.0) == pytest.approx(0.5)
    assert lemmas.initial_attention(1.0) == 1


def test_attention_goes_to_one_as_one_over_steps():
    missing = [1 - lemmas.attention_after(t, 0.5) for t in (1e4, 1e5)]
    assert missing[0] / missing[1] == pytest.approx(10, rel=1e-3)


def test_attention_increments_of_all_tokens_have_the_right_signs():
    up, rise = lemmas.next_attention(1.0, 0.05, 0.1, 25, 50, relevant=True)
    down, fall = lemmas.next_attention(1.0, 0.05, 0.1, 25, 50, relevant=False)
    assert rise > 0 > fall
    assert 25 * up + 25 * down == pytest.approx(1)


def test_keys_grow_logarithmically():
    path = lemmas.key_norm_squared(20_000, 0.1, 0.0)
    early, late = path[2000] - path[200], path[20_000] - path[2000]
    assert late == pytest.approx(early, rel=0.25)  # equal steps for equal factors of time


def test_leak_and_query_growth():
    assert lemmas.key_leak(0.1, 5, 25, 50) == pytest.approx(0.02)
    assert lemmas.query_growth_floor(0.1, 0.0) == 0.1


def test_neuron_growth_solves_its_differential_equation():
    t = np.linspace(0, 20, 20_001)
    y = lemmas.neuron_growth(t, 0.1, 0.5, 0.8, 0.05, 1000, start=0.01)
    push = 0.1 / math.sqrt(1000) * (0.5 * 0.8 - 0.05)
    pull = 0.1**2 * 0.5**2 * 0.8 / 2
    slope = np.gradient(y, t)
    np.testing.assert_allclose(slope[1:-1], (push + pull * t * y)[1:-1], rtol=1e-5)
    assert y[0] == pytest.approx(0.01)


def test_neuron_bounds_at_the_start_are_those_of_the_initial_weights():
    assert lemmas.neuron_growth_thesis(0, 0.1, 0.5, 0.8, 0.01) == pytest.approx(0.01)
    assert lemmas.neuron_norm_bound(0, 0.1, 5, 0.01) == pytest.approx(5e-4)
    assert lemmas.noise_projection_bound(0, 0.1, 5, 0.01, 0.1) == pytest.approx(0.1 * math.sqrt(5) * 0.01)


def test_lucky_shares_match_random_directions():
    rng = np.random.default_rng(1)
    hidden, features = rng.normal(size=(200_000, 10)), np.eye(10)[:5]
    for definition, disorder, expected in (
        ("nearest", 0.0, 0.2),
        ("nearest", 0.0, lemmas.lucky_share_nearest(5, 0.0)),
        ("nearest_margin", 0.1, lemmas.lucky_share_nearest(5, 0.1)),
        ("active", 0.0, 0.5),
        ("angle", 1.0, lemmas.lucky_share_angle(10, 1.0)),
    ):
        share = lemmas.lucky(hidden, features, definition, disorder).mean()
        assert share == pytest.approx(expected, abs=3 * math.sqrt(expected / 200_000))


def test_literal_lucky_neurons_hardly_exist_although_the_lemma_counts_many():
    assert lemmas.lucky_share_angle(10, 0.1) < 1e-9
    assert lemmas.lucky_share_printed(5, 0.1) == pytest.approx(0.168, abs=1e-3)
    assert lemmas.lucky_share_printed(2, 0.1) == pytest.approx(0.5 - 0.1 / math.pi)
    assert lemmas.lucky_share_active(0.0, 10) == pytest.approx(0.5)


def test_output_bound_has_its_two_terms():
    assert lemmas.output_lower_bound(2.0, first=1.0, fifth=0.5) == pytest.approx(4 + 16)
