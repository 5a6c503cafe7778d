"""The tokens are what the paper's data model says, in every option of the generator."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.studies.shallow_vit.data import ZERO, TokenData, collapse, separation, token_count

KEY = jax.random.key(0)
PATTERNS_KEY = jax.random.key(1)


def drawn(count=64, test=False, **options):
    data = TokenData(**options)
    patterns = data.draw_patterns(PATTERNS_KEY, jnp.float64)
    return data, patterns, jax.tree.map(np.asarray, data.draw(KEY, patterns, count, test))


def fractions(sample):
    return sample.relevant.mean(), sample.confusion.mean()


def test_patterns_are_orthonormal():
    _, patterns, _ = drawn(1)
    np.testing.assert_allclose(patterns[:, 0] @ patterns[:, 0].T, np.eye(5), atol=1e-12)


def test_label_is_the_majority_of_the_discriminative_patterns():
    _, _, sample = drawn(relevant_fraction=0.36, confusion_fraction=0.3, fraction_mode="random")
    first, second = (sample.pattern == 0).sum(1), (sample.pattern == 1).sum(1)
    assert np.all(first != second)
    np.testing.assert_array_equal(sample.label[:, 0], np.where(first > second, 1, -1))


def test_every_token_is_its_pattern_plus_the_recorded_noise():
    _, patterns, sample = drawn(8)
    distance = np.linalg.norm(sample.tokens - np.asarray(patterns)[sample.pattern, 0], axis=-1)
    np.testing.assert_allclose(distance, sample.noise, atol=1e-12)


def test_half_tokens_alternate_so_that_the_mean_fraction_is_exact():
    _, _, sample = drawn(64, relevant_fraction=0.5, confusion_fraction=0.05)
    counts = sample.confusion.sum(1)
    assert set(counts) == {2, 3}
    assert counts.mean() == 2.5
    for sign in (1, -1):  # the rounding must not tell the label
        assert counts[sample.label[:, 0] == sign].mean() == 2.5


@pytest.mark.parametrize(("rounding", "count"), [("floor", 2), ("ceil", 3)])
def test_rounding_can_be_fixed_to_one_side(rounding, count):
    _, _, sample = drawn(8, confusion_fraction=0.05, rounding=rounding)
    assert set(sample.confusion.sum(1)) == {count}


def test_whole_counts_stay_whole_in_single_precision():
    share = jnp.asarray(0.35, jnp.float32)
    assert {int(token_count(share * 100, jnp.asarray(t), "alternate")) for t in range(0, 5000, 7)} == {35}


def test_random_fractions_have_the_right_means():
    _, _, sample = drawn(400, relevant_fraction=0.5, confusion_fraction=0.1, fraction_mode="random")
    # 400 samples of 50 tokens: one standard error is about 0.0035
    assert fractions(sample) == (pytest.approx(0.5, abs=0.015), pytest.approx(0.1, abs=0.01))


def test_first_samples_do_not_depend_on_how_many_are_drawn():
    _, _, few = drawn(4)
    _, _, many = drawn(9)
    np.testing.assert_array_equal(few.tokens, many.tokens[:4])


def test_labels_are_balanced_exactly():
    _, _, sample = drawn(7)
    assert (sample.label == 1).sum() == 4


def test_fair_labels_are_drawn_independently():
    _, _, sample = drawn(200, balance="fair")
    positive = (sample.label == 1).sum()
    assert 70 < positive < 130  # four standard deviations of a fair coin
    assert positive != 100 or not np.all(sample.label[::2] == 1)


@pytest.mark.parametrize("noise", ["truncated_gaussian", "uniform_ball", "sphere"])
def test_bounded_noise_stays_within_the_radius(noise):
    _, _, sample = drawn(32, noise=noise, noise_radius=0.05, noise_std=0.03)
    assert sample.noise.max() <= 0.05 * (1 + 1e-9)
    if noise == "sphere":
        np.testing.assert_allclose(sample.noise, 0.05)
    if noise == "uniform_ball":  # P(r <= R/2^(1/d)) = 1/2; standard error 0.0125
        assert (sample.noise < 0.05 * 0.5**0.1).mean() == pytest.approx(0.5, abs=0.04)


def test_gaussian_noise_has_its_typical_length():
    data, _, sample = drawn(64)
    assert np.sqrt((sample.noise**2).mean()) == pytest.approx(0.01 * np.sqrt(10), rel=0.02)
    kept_apart = separation(data, jax.tree.map(jnp.asarray, sample))
    assert float(kept_apart.cross_inner_max) < 0.2 < 0.8 < float(kept_apart.same_inner_min)
    assert kept_apart.token_noise_typical == pytest.approx(0.0316, abs=1e-3)


def test_tokens_can_be_put_on_the_unit_sphere():
    _, _, sample = drawn(4, normalize_tokens=True)
    np.testing.assert_allclose(np.linalg.norm(sample.tokens, axis=-1), 1)


def test_token_order_is_permuted_or_fixed():
    _, _, fixed = drawn(4, token_order="fixed")
    assert np.all(fixed.relevant[:, :25])
    _, _, permuted = drawn(64)
    assert permuted.relevant.mean(0).max() < 0.85  # a fixed place would be relevant always


def test_a_share_of_the_tokens_is_very_noisy():
    _, _, sample = drawn(16, noisy_fraction=0.4, noisy_std=0.5)
    assert set(sample.noisy.sum(1)) == {20}
    assert sample.noise[sample.noisy].mean() > 10 * sample.noise[~sample.noisy].mean()


def test_spurious_background_follows_the_label_in_training_only():
    _, _, train = drawn(400, background="spurious_zero")
    present = (train.pattern == 2).any(1)
    assert present[train.label[:, 0] == 1].mean() == pytest.approx(0.9, abs=0.08)
    assert present[train.label[:, 0] == -1].mean() == pytest.approx(0.1, abs=0.08)
    assert np.any(train.pattern == ZERO)
    _, _, test = drawn(400, test=True, background="spurious_fourth")
    assert (test.pattern == 2).any(1).mean() == pytest.approx(0.5, abs=0.1)
    assert np.all((test.pattern == 2).any(1) ^ (test.pattern == 3).any(1))


def test_set_valued_patterns_keep_sets_orthogonal_and_members_close():
    data, patterns, sample = drawn(8, set_size=3, set_spread=0.5)
    flat = np.asarray(patterns)
    for i in range(data.patterns):
        assert np.linalg.norm(flat[i, 0] - flat[i, -1]) == pytest.approx(0.5)
        for j in range(i):
            np.testing.assert_allclose(flat[i] @ flat[j].T, 0, atol=1e-12)
    assert sample.noise.max() < 0.08


def test_four_classes_have_two_signs_and_their_own_pattern():
    _, _, sample = drawn(16, classes=4)
    kind = np.where(sample.relevant, sample.pattern, 0).max(1)
    signs = {k: {tuple(y) for y in sample.label[kind == k]} for k in range(4)}
    assert signs == {0: {(1, 1)}, 1: {(1, -1)}, 2: {(-1, 1)}, 3: {(-1, -1)}}
    rivals = sample.pattern[sample.confusion]
    assert set(rivals) <= {0, 1, 2, 3}


@pytest.mark.parametrize("removal", ["random", "irrelevant", "noisy", "background"])
def test_sparsification_removes_the_tokens_it_is_meant_to(removal):
    _, _, sample = drawn(32, removal=removal, removed_fraction=0.4, noisy_fraction=0.4)
    gone = sample.kept == 0
    assert set(gone.sum(1)) == {20}
    if removal == "irrelevant":
        assert not np.any(gone & sample.relevant)
    if removal == "background":
        assert not np.any(gone & (sample.relevant | sample.confusion))
    if removal == "noisy":
        assert np.all(sample.noise[gone].min() >= sample.noise[~gone].min())
        assert sample.noisy[gone].mean() > 0.95
    if removal == "random":  # 640 removed tokens, half of them relevant: standard error 0.02
        assert sample.relevant[gone].mean() == pytest.approx(0.5, abs=0.08)


def test_collapsed_sample_counts_every_token_once():
    _, patterns, sample = drawn(3, noise_std=0.0)
    one = jax.tree.map(lambda part: jnp.asarray(part[0]), sample)
    small = collapse(one, patterns)
    assert small.kept.sum() == 50
    assert small.kept[small.relevant].sum() == sample.relevant[0].sum()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"relevant_fraction": 0.7, "confusion_fraction": 0.4}, "more than one"),
        ({"nondiscriminative_fraction": 0.2}, "do not sum to one"),
        ({"relevant_fraction": 0.2, "confusion_fraction": 0.3}, "majority vote"),
        ({"tokens": 10, "confusion_fraction": 0.05}, "rounds to none"),
        ({"patterns": 12}, "do not fit into 10 dimensions"),
        ({"patterns": 6, "set_size": 2}, "two dimensions per set"),
        ({"classes": 4, "patterns": 4}, "at least 5 patterns"),
        ({"removal": "irrelevant", "removed_fraction": 0.6}, "exceeds"),
        ({"noise_std": -1.0}, "must not be negative"),
        ({"relevant_fraction": 0.34, "confusion_fraction": 0.33}, "tie"),
    ],
)
def test_bad_input_is_one_sentence(options, sentence):
    with pytest.raises(BadInput, match=sentence) as caught:
        TokenData(**options)
    assert str(caught.value).count(". ") == 0


def test_fractions_may_be_given_in_full():
    data = TokenData(relevant_fraction=0.5, confusion_fraction=0.1, nondiscriminative_fraction=0.4)
    assert dataclasses.replace(data, samples=3).rest == pytest.approx(0.4)
