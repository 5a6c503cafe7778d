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
from lemmata.studies.multihead.network import head_output
from lemmata.studies.multihead.theory import forecast_bounds
from lemmata.studies.multihead.trials import Training
from lemmata.threefry import new_key
from lemmata.trial import put


@eqx.filter_jit
def draw(data, count):
    key = new_key(3)
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


def test_gaussian_noise_has_no_almost_sure_bounds_but_keeps_its_forecast_ones():
    """With failure probability 0.05 a set of 40 samples in 1000; 50 sets leave at most 8 with a chance above 1e-4."""
    data = TokenMixture()
    assert data.noise_bounds() is None
    promised = forecast_bounds(data, 40, 0.05).noise
    draws = draw(data, 2000)
    sets = [jax.tree.map(lambda part, k=k: part[40 * k : 40 * (k + 1)], draws) for k in range(50)]
    measured = np.array([measured_noise_bounds(data, one) for one in sets])
    assert (measured > np.array(promised)).any(axis=1).sum() <= 8
    assert (measured.max(axis=0) > 0.5 * np.array(promised)).all()  # and not by promising anything


def test_every_irrelevant_pattern_is_drawn_as_often_as_the_others():
    """Three patterns on 2000 x 9 tokens: shares of 1/3 to five standard deviations."""
    data = TokenMixture(patterns=3, dim=5, noise_law="none")
    samples = draw(data, 2000)
    tokens = np.asarray(samples.tokens)[~np.asarray(samples.relevant)]
    shares = (tokens[:, 2:] == data.signal).mean(axis=0)
    np.testing.assert_allclose(shares, 1 / 3, atol=5 * (2 / 9 / len(tokens)) ** 0.5)
    labels = np.asarray(samples.labels)
    assert abs(labels.mean()) < 5 / 2000**0.5


@pytest.mark.parametrize("data", [TokenMixture(), BoundedTokens(), PlantedAttention()])
def test_the_oracle_has_unit_norm_and_solves_its_problem(data):
    key = new_key(3)
    teacher = data.teacher(key)
    attention, decoder = data.oracle(teacher)
    assert np.linalg.norm(decoder) == pytest.approx(1)
    assert np.linalg.norm(attention) == pytest.approx(0 if isinstance(data, BoundedTokens) else 1)
    scale = (
        1e3 if isinstance(data, TokenMixture) else float(np.linalg.norm(teacher.attention)) if teacher else 0
    )
    samples = draw(data, 50)
    assert (samples.labels * head_output(decoder, scale * attention, samples.tokens)).min() > 0


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
        ("descent.batches", "epochs", "full-batch"),
        ("descent.loss", "hinge", "logistic"),
        ("network.heads", 0.5, "whole number"),
    ],
)
def test_impossible_trainings_are_refused_in_one_sentence(path, value, sentence):
    with pytest.raises(BadInput, match=sentence) as refusal:
        put(Training(), path, value)
    assert str(refusal.value).count(". ") == 0
