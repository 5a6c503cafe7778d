"""The data models keep their promises, and impossible ones are refused in one sentence."""

import equinox as eqx
import jax
import numpy as np
import pytest

from lemmata import BadInput
from lemmata.studies.multihead.data import (
    BoundedTokens,
    PlantedAttention,
    TokenMixture,
    measured_noise_bounds,
)
from lemmata.studies.multihead.trials import Training
from lemmata.trial import put


@eqx.filter_jit
def draw(data, count):
    key = jax.random.key(3)
    return data.sample(key, data.teacher(key), count)


@pytest.mark.parametrize("law", ["none", "cube", "ball", "truncated", "orthogonal"])
def test_bounded_noise_keeps_its_almost_sure_bounds(law):
    data = TokenMixture(noise_law=law, dim=6, noise=0.3)
    samples = draw(data, 200)
    promised, measured = data.noise_bounds(), measured_noise_bounds(data, samples)
    assert promised is not None
    assert all(m <= p + 1e-12 for m, p in zip(measured, promised, strict=True))
    norms = np.linalg.norm(samples.tokens, axis=-1)
    largest = (data.signal**2 + promised.norm**2 + 2 * promised.irrelevant / data.patterns) ** 0.5
    assert norms.max() <= largest + 1e-12


def test_gaussian_noise_has_no_almost_sure_bounds():
    assert TokenMixture().noise_bounds() is None


@pytest.mark.parametrize("positions", ["random", "prefix"])
def test_relevant_tokens_are_the_label_and_their_number_is_fixed(positions):
    data = TokenMixture(relevant_fraction=0.3, positions=positions)
    samples = draw(data, 100)
    assert (samples.relevant.sum(axis=1) == 3).all()
    signal = np.where(samples.labels[:, None] > 0, data.frame[0], data.frame[1])
    expected = np.repeat(signal, 3, axis=0)
    np.testing.assert_array_equal(np.asarray(samples.tokens)[np.asarray(samples.relevant)], expected)
    if positions == "prefix":
        assert samples.relevant[:, :3].all()


@pytest.mark.parametrize("data", [TokenMixture(), PlantedAttention(), BoundedTokens()])
def test_a_larger_set_begins_with_the_smaller_one(data):
    few, many = draw(data, 5), draw(data, 200)
    np.testing.assert_array_equal(few.tokens, many.tokens[:5])
    np.testing.assert_array_equal(few.labels, many.labels[:5])


def test_aligned_tokens_have_the_margin_that_the_target_counts_on():
    samples = draw(BoundedTokens(), 200)
    np.testing.assert_allclose(np.linalg.norm(samples.tokens, axis=-1), 1)
    assert (samples.labels[:, None] * samples.tokens[..., 0]).min() >= 0.75**0.5


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("data.relevant_fraction", 0.15, "must be a whole number"),
        ("data.dim", 3, "need at least 4 dimensions, not 3"),
        ("data.noise_law", "orthogonal", "more than 4 dimensions"),
        ("data.signal", 0.0, "must be positive"),
        ("descent.learning_rate", -1.0, "learning rate must be positive"),
        ("descent.learning_rate", 0.0, "learning rate must be positive"),
        ("descent.batch", 5, "full-batch"),
        ("network.heads", 0.5, "whole number"),
    ],
)
def test_impossible_trainings_are_refused_in_one_sentence(path, value, sentence):
    with pytest.raises(BadInput, match=sentence) as refusal:
        put(Training(), path, value)
    assert str(refusal.value).count(". ") == 0
