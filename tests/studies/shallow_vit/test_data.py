"""The tokens are what the paper's data model says, in every option of the generator."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.parts.patterns import separation
from lemmata.studies.shallow_vit.data import ZERO, TokenData, collapse, own_samples
from lemmata.studies.shallow_vit.theory import concentration_error
from lemmata.threefry import new_key

KEY = new_key(0)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _drawn(data, count, test):
    patterns = data.draw_patterns(new_key(1), jnp.float64)
    return patterns, data.draw(KEY, patterns, count, test)


def drawn(count=64, test=False, **options):
    """Patterns and samples as NumPy arrays."""
    return jax.tree.map(np.asarray, _drawn(TokenData(**options), count, test))


def test_label_is_the_majority_of_the_discriminative_patterns():
    _, sample = drawn(relevant_fraction=0.36, confusion_fraction=0.3, fraction_mode="random")
    first, second = (sample.pattern == 0).sum(1), (sample.pattern == 1).sum(1)
    assert np.all(first != second)
    np.testing.assert_array_equal(sample.label[:, 0], np.where(first > second, 1, -1))


def test_every_token_is_its_pattern_plus_the_recorded_noise():
    patterns, sample = drawn(8)
    distance = np.linalg.norm(sample.tokens - patterns[sample.pattern, 0], axis=-1)
    np.testing.assert_allclose(distance, sample.noise, atol=1e-12)
    # c_0 sqrt(d), 400 vectors of 10 numbers: standard error 1.1 %
    assert np.sqrt((sample.noise**2).mean()) == pytest.approx(0.01 * np.sqrt(10), rel=0.05)


def test_irrelevant_tokens_are_spread_evenly_over_all_other_patterns():
    _, sample = drawn(6, relevant_fraction=0.5, confusion_fraction=0.08)
    rest = ~sample.relevant & ~sample.confusion
    for one, mine in zip(sample.pattern, rest, strict=True):
        counts = np.bincount(one[mine], minlength=5)
        np.testing.assert_array_equal(counts[:2], 0)
        np.testing.assert_array_equal(counts[2:], 7)  # 21 tokens over mu_3, mu_4, mu_5
    assert not np.any(sample.relevant & sample.confusion)
    np.testing.assert_array_equal(sample.pattern[sample.confusion] < 2, True)


def test_tokens_keep_their_patterns_apart():
    """lambda is at most 2 tau + tau^2 with bounded noise."""
    _, sample = drawn(2, noise="sphere", noise_radius=0.05)
    found = separation(*map(jnp.asarray, (sample.tokens, sample.pattern, sample.pattern >= 0)))
    assert 0.02 < float(found.cross_inner_max) <= 2 * 0.05 + 0.05**2
    assert float(found.same_inner_min) >= (1 - 0.05) ** 2 - 0.05**2


def test_half_tokens_alternate_so_that_the_rounding_does_not_tell_the_label():
    _, sample = drawn(64, relevant_fraction=0.5, confusion_fraction=0.05)
    counts = sample.confusion.sum(1)
    assert set(counts) == {2, 3}
    for sign in (1, -1):
        assert counts[sample.label[:, 0] == sign].mean() == 2.5


def test_mean_fraction_of_random_samples_is_as_near_as_equation_66_says():
    _, sample = drawn(400, relevant_fraction=0.5, confusion_fraction=0.1, fraction_mode="random")
    own = sample.relevant.mean(1)
    assert own.std() == pytest.approx(np.sqrt(0.25 / 50), rel=0.15)  # they do fluctuate, as 50 coins do
    assert abs(own.mean() - 0.5) < 0.015 < concentration_error(400)
    assert sample.confusion.mean() == pytest.approx(0.1, abs=0.01)


def test_labels_are_balanced_exactly_or_drawn_independently():
    _, exact = drawn(7)
    assert (exact.label == 1).sum() == 4
    _, fair = drawn(200, balance="fair")
    assert 70 < (fair.label == 1).sum() < 130  # four standard deviations of a fair coin
    assert not np.all(fair.label[::2] == 1)


def test_tokens_can_be_put_on_the_unit_sphere():
    _, sample = drawn(4, normalize_tokens=True)
    np.testing.assert_allclose(np.linalg.norm(sample.tokens, axis=-1), 1)


def test_token_order_is_permuted_or_fixed():
    _, fixed = drawn(4, token_order="fixed")
    assert np.all(fixed.relevant[:, :25])
    _, permuted = drawn(64)
    assert permuted.relevant.mean(0).max() < 0.85  # a fixed place would be relevant always


def test_a_share_of_the_tokens_is_very_noisy():
    _, sample = drawn(16, noisy_fraction=0.4, noisy_std=0.5)
    assert set(sample.noisy.sum(1)) == {20}
    assert sample.noise[sample.noisy].mean() > 10 * sample.noise[~sample.noisy].mean()


def test_spurious_background_follows_the_label_in_training_only():
    _, train = drawn(400, background="spurious_zero")
    present = (train.pattern == 2).any(1)
    assert present[train.label[:, 0] == 1].mean() == pytest.approx(0.9, abs=0.08)
    assert present[train.label[:, 0] == -1].mean() == pytest.approx(0.1, abs=0.08)
    assert np.any(train.pattern == ZERO)
    _, test = drawn(400, test=True, background="spurious_fourth")
    assert (test.pattern == 2).any(1).mean() == pytest.approx(0.5, abs=0.1)
    assert np.all((test.pattern == 2).any(1) ^ (test.pattern == 3).any(1))


def test_tokens_of_a_set_are_near_one_of_its_members():
    patterns, sample = drawn(8, set_size=3, set_spread=0.5)
    assert patterns.shape == (5, 3, 10)
    nearest = np.linalg.norm(sample.tokens[:, :, None] - patterns[sample.pattern], axis=-1)
    np.testing.assert_allclose(nearest.min(-1), sample.noise, atol=1e-12)
    assert len(np.unique(nearest.argmin(-1))) == 3


def test_four_classes_have_two_signs_and_their_own_pattern():
    _, sample = drawn(16, classes=4)
    kind = np.where(sample.relevant, sample.pattern, 0).max(1)
    signs = {k: {tuple(y) for y in sample.label[kind == k]} for k in range(4)}
    assert signs == {0: {(1, 1)}, 1: {(1, -1)}, 2: {(-1, 1)}, 3: {(-1, -1)}}
    assert set(sample.pattern[sample.confusion]) <= {0, 1, 2, 3}


@pytest.mark.parametrize("removal", ["random", "irrelevant", "noisy", "background"])
def test_sparsification_removes_the_tokens_it_is_meant_to(removal):
    _, sample = drawn(32, removal=removal, removed_fraction=0.4, noisy_fraction=0.4)
    gone = sample.kept == 0
    assert set(gone.sum(1)) == {20}
    if removal == "irrelevant":
        assert not np.any(gone & sample.relevant)
    if removal == "background":
        assert not np.any(gone & (sample.relevant | sample.confusion))
    if removal == "noisy":
        for noise, lost in zip(sample.noise, gone, strict=True):
            assert noise[lost].min() >= noise[~lost].max()
    if removal == "random":  # 640 removed tokens, half of them relevant: standard error 0.02
        assert sample.relevant[gone].mean() == pytest.approx(0.5, abs=0.08)


def test_collapsed_sample_counts_every_token_once():
    patterns, sample = drawn(3, noise_std=0.0)
    one = jax.tree.map(lambda part: jnp.asarray(part[0]), sample)
    small = collapse(one, jnp.asarray(patterns))
    np.testing.assert_array_equal(small.kept, np.bincount(sample.pattern[0], minlength=5))
    assert small.kept[small.relevant].sum() == sample.relevant[0].sum()


def test_ones_own_tokens_become_samples():
    sample = own_samples(jnp.ones((3, 4, 10)), jnp.asarray([[1.0], [-1.0], [1.0]]))
    assert sample.kept.shape == (3, 4)
    assert bool(jnp.all(sample.kept == 1))
    assert not bool(jnp.any(sample.relevant))


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
    assert data.rest == pytest.approx(0.4)
