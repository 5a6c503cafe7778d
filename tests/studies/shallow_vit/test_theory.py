"""The theorems as functions: limits, monotonicity, the numbers that the paper's own settings give, and predictions."""

import itertools
import json
import math
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lemmata import study
from lemmata.parts.probes import cap_share, lucky
from lemmata.studies.shallow_vit import theory
from lemmata.studies.shallow_vit.figures import template
from lemmata.studies.shallow_vit.theory import Setting, predictions
from lemmata.threefry import new_key
from lemmata.trial import put_all

TAU = 0.01 * math.sqrt(10)
FIG1A = Setting(0.4, 0.1, token_noise=TAU, neurons=1000, samples=200)
fractions = st.floats(0.05, 0.95)


# Conditions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delta", "slack", "needed"), [(0.2, 0.5, 0.372), (0.2, 1.0, 0.296), (0.4, 0.5, 0.390), (0.4, 1.0, 0.320)]
)
def test_condition_eight_at_the_settings_of_figures_one_and_two(delta, slack, needed):
    s = replace(FIG1A, key_query_error=delta, confusion_slack=slack)
    edge = theory.relevant_fraction_boundary(0.5, s)
    assert edge == pytest.approx(needed, abs=6e-4)
    at_edge = replace(s, relevant_fraction=edge, confusion_fraction=0.5 - edge)
    assert theory.relevant_fraction_needed(at_edge) == pytest.approx(edge)


def test_conditions_belong_to_the_trial_they_are_asked_of():
    """Figure 1(a) leaves condition (8) below alpha_* = 0.372; the template, at 0.4, would say that all is well."""
    held = {}
    for cell in study("shallow-vit").figure("fig1a").sweep("quick").cells:
        by_name = {c.name: c for c in theory.conditions(cell.trial)}
        held[cell.place["relevant_fraction"]] = next(
            c.holds for n, c in by_name.items() if n.startswith("(8)")
        )
    assert held == {0.46: True, 0.42: True, 0.38: True, 0.35: False, 0.33: False, 0.31: False}


def test_every_cell_of_the_theorems_own_design_meets_every_condition_but_that_on_samples():
    for cell in study("shallow-vit").figure("theorem").sweep("quick").cells:
        if cell.seed == 0:
            missed = [c.name for c in theory.conditions(cell.trial) if not c.met]
            assert all(name.startswith("(10)") for name in missed), (cell.place, missed)


def test_figure_1b_violates_the_papers_condition_and_meets_the_thesiss():
    trial = study("shallow-vit").figure("fig1b").sweep("quick").cells[0].trial
    paper, thesis = (
        {c.name: c.holds for c in conditions(trial)}
        for conditions in (theory.conditions, theory.thesis_conditions)
    )
    assert paper["(8) alpha_* against alpha_#, epsilon_S = 1/2"] is False
    assert thesis["[T] (2.8) alpha_* against alpha_#"] is True


def test_weights_above_spectral_norm_one_break_assumption_one_until_they_are_scaled():
    for scaled in (False, True):
        trial = put_all(template(), {"network.initial": "perturbed", "network.unit_spectral": scaled})
        assert theory.conditions(trial)[0].holds is scaled
    assert theory.setting(trial).key_query_error == pytest.approx(0.4 / 1.2)
    assert theory.conditions(template())[0].holds
    printed = put_all(template(), {"network.initial": "literal"})
    assert theory.setting(printed).spectral_norm == pytest.approx(400)


def test_noisy_tokens_count_until_all_of_them_are_removed():
    fields = {"data.noisy_fraction": 0.4, "data.noisy_std": 0.8, "data.removal": "noisy"}
    noise = [
        theory.setting(put_all(template(), fields | {"data.removed_fraction": share})).token_noise
        for share in (0.0, 0.2, 0.4)
    ]
    assert noise == pytest.approx([0.8 * 10**0.5, 0.8 * 10**0.5, 0.01 * 10**0.5])


def test_labels_are_balanced_up_to_the_root_of_the_samples():
    named = {c.name: c for c in theory.conditions(put_all(template(), {"data.samples": 81}))}
    assert named["| |D_+| - |D_-| | <= sqrt(N)"].margin == pytest.approx(9)


@pytest.mark.parametrize(("patterns", "luck"), [(5, 0.43), (10, -0.19), (15, -0.78), (20, -1.38)])
def test_figures_seven_and_eight_lie_outside_the_theorem(patterns, luck):
    s = replace(FIG1A, patterns=patterns, token_noise=0.01 * math.sqrt(10 if patterns == 5 else 20))
    assert s.luck == pytest.approx(luck, abs=0.05)
    assert math.isinf(theory.steps_needed(s)) == (luck < 0)


def test_smallest_width_slack_at_the_papers_width():
    assert theory.smallest_width_slack(FIG1A) == pytest.approx(0.364, abs=1e-3)
    wide = replace(FIG1A, width_slack=theory.smallest_width_slack(FIG1A))
    assert theory.width_needed(wide) == pytest.approx(1000)


def test_batches_of_the_proofs():
    assert theory.batch_for_luck(Setting(0.5, 0.1, value_error=0.5)) == pytest.approx(9)
    assert math.isinf(theory.batch_for_luck(Setting(0.5, 0.1, value_error=1.0)))
    noisy, quiet = (theory.batch_for_gates(replace(FIG1A, token_noise=t)) for t in (0.2, 0.02))
    assert noisy > 50 * quiet  # the square of lambda
    large, small = (theory.thesis_batch_sides(replace(FIG1A, batch=b)) for b in (10_000, 10))
    assert large[0] > large[1]
    assert small[0] < small[1]


# Samples and steps -----------------------------------------------------------------------------------------------------


@given(fractions, fractions)
def test_more_relevant_tokens_never_need_more_samples_or_steps(a, b):
    less, more = (replace(FIG1A, relevant_fraction=v) for v in sorted((a, b)))
    for needed in (theory.samples_needed, theory.samples_needed_frozen, theory.steps_needed):
        assert needed(more) <= needed(less)


@given(fractions)
def test_without_disorder_samples_go_as_fraction_to_minus_two_and_minus_four(alpha):
    s = Setting(alpha, 0.0, token_noise=0.0, value_error=0.0)
    assert theory.samples_needed(s) == pytest.approx(alpha**-2)
    assert theory.samples_needed_frozen(s) / theory.samples_needed(s) == pytest.approx(
        theory.attention_advantage(alpha)
    )


def test_samples_are_infinite_where_disorder_eats_the_signal():
    assert math.isinf(theory.samples_needed(Setting(0.1, 0.0, value_error=0.2)))


def test_rival_step_laws_differ_in_the_step_size_only():
    slow, fast = (replace(FIG1A, learning_rate=eta) for eta in (0.1, 1.0))
    assert theory.steps_needed(slow) / theory.steps_needed(fast) == pytest.approx(10)
    assert theory.steps_needed_thesis(slow) / theory.steps_needed_thesis(fast) == pytest.approx(10**0.6)


@pytest.mark.parametrize("attention", [0.6, 1.0])
def test_output_bound_reaches_one_where_equation_63_says(attention):
    """The left side of (63) term by term, a = sqrt(m): the sums over samples are alpha_*, the sums over steps T."""
    s = Setting(0.5, 0.0, value_error=0.1, neurons=10_000, learning_rate=0.1)
    time = s.learning_rate * theory.steps_from_growth(s, attention)
    outer = s.relevant_fraction * s.neurons / (math.sqrt(s.neurons) * s.patterns) * s.luck
    grown = time**2 * s.relevant_fraction * attention  # (eta T)^2 m/a^2 |S_1|/|S| p
    lucky_part = outer * attention * time * grown**2 * attention
    noise_part = time**2 * (s.relevant_fraction * attention - s.disorder) * attention
    assert outer * (lucky_part + noise_part) == pytest.approx(1)


def test_the_bound_on_the_output_reaches_one_where_its_second_power_alone_does():
    """Without a fifth power the root is the upper end that one would look up to, which rounding may put beyond it."""
    for relevant, neurons in itertools.product(np.linspace(0.1, 0.9, 9), (100, 1000, 10_000)):
        s = Setting(float(relevant), 0.05, value_error=0.05, neurons=neurons, patterns=5)
        for attention in (1e-3, 0.1, 1.0):
            second, fifth = theory.output_growth(s, attention)
            time = s.learning_rate * theory.steps_from_growth(s, attention)
            if second + fifth > 0:
                assert fifth * time**5 + second * time**2 == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize(("neurons", "power"), [(25 * 10**12, 0.5), (25, 0.4)])
def test_root_of_the_growth_law_goes_as_one_over_the_fraction_in_wide_networks_only(neurons, power):
    """a_1 carries sqrt(m) alpha_*^2: T falls as its square root where it is large, as its power 2/5 where it is small."""
    s = Setting(0.2, 0.0, value_error=0.0, width_slack=0.0, neurons=neurons)
    attention = 1.0 if power == 0.5 else 1e-3
    first = theory.steps_from_growth(s, attention)
    for other in (replace(s, relevant_fraction=0.4), replace(s, neurons=16 * neurons)):
        assert first / theory.steps_from_growth(other, attention) == pytest.approx(4**power, rel=0.02)
    assert math.isinf(theory.steps_from_growth(replace(s, width_slack=2.0), 1.0))


@given(fractions, st.floats(0, 0.99))
def test_removing_irrelevant_tokens_helps(alpha, removed):
    before = Setting(alpha, 0.1 * alpha, value_error=0.0)
    after = theory.remove_irrelevant(before, removed)
    gained = alpha / after.relevant_fraction
    assert alpha <= after.relevant_fraction <= 1
    assert after.confusion_fraction <= before.confusion_fraction + 1e-12
    assert theory.samples_ratio(before, after) == pytest.approx(gained**2)
    assert theory.steps_ratio(before, after) == pytest.approx(gained)


def test_removing_all_irrelevant_tokens_leaves_only_relevant_ones():
    after = theory.remove_irrelevant(Setting(0.3, 0.1), 1.0)
    assert (after.relevant_fraction, after.confusion_fraction) == (pytest.approx(1), 0)


def test_frozen_attention_saves_two_percent_of_the_weights_not_one():
    assert theory.parameters_saved_by_freezing(10, 10, 10, 1000) == pytest.approx(0.0194, abs=1e-4)


# Lemmas ----------------------------------------------------------------------------------------------------------------


def test_attention_at_the_start_in_the_shrunk_model_is_below_the_printed_bound():
    """The errors enter a logit twice: (1 - delta)^2 = 0.64 is all that is left of ||q||^2 = 1."""
    measured = 0.5 * math.exp(0.64) / (0.5 * math.exp(0.64) + 0.5)
    printed = theory.relevant_attention_printed(1.0, 0.2, 25, 50)
    assert printed == pytest.approx(0.69, abs=1e-3)
    assert theory.relevant_attention_bound(1.0, 0.2, 25, 50) < measured < printed


@given(st.floats(0.01, 9), st.floats(0, 0.5), st.integers(1, 49))
def test_attention_bounds_are_ordered(q2, spread, many):
    bounds = (
        theory.relevant_attention_bound(q2, spread, many, 50),
        theory.relevant_attention_printed(q2, spread, many, 50),
        theory.relevant_attention_ceiling(q2, spread, many, 50),
        1.0,
    )
    assert all(low <= high + 1e-12 for low, high in itertools.pairwise(bounds))


def test_rigorous_bound_holds_for_random_perturbations_and_the_printed_one_does_not():
    rng = np.random.default_rng(0)
    spread, many, dim, broken = 0.3, 5, 6, 0
    pattern = np.array([0] * many + [1, 2, 3, 1, 2, 3, 4])
    for _ in range(200):
        scale = rng.uniform(0.5, 2)
        errors = rng.normal(size=(2, 12, dim))
        errors *= spread / np.linalg.norm(errors, axis=-1, keepdims=True)
        keys, queries = (scale * np.eye(dim)[pattern] + e for e in errors)
        logits = keys @ queries[0]
        paid = np.exp(logits[:many]).sum() / np.exp(logits).sum()
        assert paid >= theory.relevant_attention_bound(scale**2, spread, many, 12) - 1e-12
        broken += paid < theory.relevant_attention_printed(scale**2, spread, many, 12)
    assert broken > 0


def test_keys_grow_logarithmically():
    path = theory.key_norm_squared(20_000, 0.1, 0.0)
    early, late = path[2000] - path[200], path[20_000] - path[2000]
    assert late == pytest.approx(early, rel=0.25)  # equal steps for equal factors of time


def test_neuron_growth_solves_its_differential_equation():
    t = np.linspace(0, 20, 20_001)
    y = theory.neuron_growth(t, 0.1, 0.5, 0.8, 0.05, 1000, start=0.01)
    push = 0.1 / math.sqrt(1000) * (0.5 * 0.8 - 0.05)
    pull = 0.1**2 * 0.5**2 * 0.8 / 2
    np.testing.assert_allclose(np.gradient(y, t)[1:-1], (push + pull * t * y)[1:-1], rtol=1e-5)
    assert y[0] == pytest.approx(0.01)


def test_lucky_shares_match_random_directions():
    hidden = jax.random.normal(new_key(1), (10, 100_000))
    for kind, disorder, expected in (
        ("nearest", 0.0, theory.lucky_share_nearest(5, 0.0)),
        ("nearest_margin", 0.1, theory.lucky_share_nearest(5, 0.1)),
        ("active", 0.0, theory.lucky_share_active(0.0, 10)),
    ):
        share = float(lucky(hidden, jnp.eye(10)[:, :5], kind, 0, disorder).mean())
        assert share == pytest.approx(expected, abs=4 * math.sqrt(expected / 100_000))


def test_literal_lucky_neurons_hardly_exist_although_the_lemma_counts_many():
    assert cap_share(10, 0.1) < 1e-9
    assert theory.lucky_share_printed(5, 0.1) == pytest.approx(0.168, abs=1e-3)
    assert theory.lucky_share_nearest(5, 0.1) == pytest.approx(0.169, abs=1e-3)  # (220) is what it counts


# Predictions -----------------------------------------------------------------------------------------------------------


CORNERS = [
    {},
    {"data.noisy_fraction": 0.4, "data.removed_fraction": 0.1},
    {"data.relevant_fraction": 0.08, "data.confusion_fraction": 0.02},  # disorder eats the signal
    {"data.confusion_fraction": 0.0},
    {"network.neurons": 20, "data.patterns": 9},  # no lucky neuron left
    {"network.value_error": 0.0, "network.key_query_error": 0.0, "data.noise_std": 0.0},
    {"data.samples": 1, "data.relevant_fraction": 0.94},
    {"network.output_weights": "shared", "descent.learning_rate": 0.1},
    {"data.noise_std": 2.0},  # sigma + tau above one
]


@pytest.mark.parametrize("changes", CORNERS)
def test_a_prediction_is_a_finite_number_or_a_sentence(changes):
    _, predicted = theory.predict(put_all(template(), changes))
    for one in predicted:
        if isinstance(one.value, str):
            assert one.value.endswith((".", ")")), one
            assert len(one.value) > 15, one
        else:
            assert math.isfinite(one.value), one
            assert one.value != 0, one


def test_noise_above_one_breaks_condition_eight_with_any_confusion():
    conditions, _ = theory.predict(put_all(template(), {"data.noise_std": 2.0}))
    assert next(c for c in conditions if c.name.startswith("(8)")).holds is False


def test_prediction_answers_the_practitioner():
    conditions, predicted = theory.predict(put_all(template(), CORNERS[1]))
    value = {p.name: p.value for p in predicted}
    assert any(c.name.startswith("(8)") for c in conditions)
    assert value["removing 20% of the irrelevant tokens: samples times"] < 1
    assert value["removing tokens at random: samples times"] == 1
    assert "no finite number before" in value["removing the 40% noisy tokens: samples times"]


def test_predictions_use_the_fitted_laws_and_say_where_they_end(monkeypatch, tmp_path):
    names = list(predictions.features(FIG1A, False))
    law = {"intercept": 1.0, "slope": dict.fromkeys(names, 0.0) | {"log alpha_*": -1.0}, "error": 1.3}
    law["range"] = {n: [-9.0, 9.0] for n in names} | {"sigma": [0.2, 0.4]}
    path = tmp_path / "constants.json"
    path.write_text(json.dumps({"source": "a test", "samples": law, "steps": law}))
    monkeypatch.setattr(predictions, "CONSTANTS", path)
    _, predicted = theory.predict(put_all(template(), {"descent.learning_rate": 0.5}))
    value = {p.name: p.value for p in predicted}
    assert value["samples needed (fitted)"] == pytest.approx(math.e / 0.5)
    assert value["steps needed (fitted)"] == pytest.approx(math.e / 0.5 / 0.5)
    assert value["steps needed (fitted): off by a factor of"] == 1.3
    assert "sigma 0.1 outside 0.2 to 0.4" in value["steps needed (fitted): beyond what was fitted"]
    monkeypatch.setattr(predictions, "CONSTANTS", tmp_path / "none.json")
    assert "not fitted" in theory.predict(template())[1][0].value
