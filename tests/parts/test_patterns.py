"""Patterns, noise laws and roles are what their names say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.parts.patterns import (
    blocks,
    chance_counts,
    each,
    noise,
    orthonormal,
    outside,
    pattern_sets,
    ranks,
    separation,
    share_count,
)
from lemmata.threefry import new_key

KEY = new_key(0)

orthonormal = jax.jit(orthonormal, static_argnums=(1, 2, 3))
pattern_sets = jax.jit(pattern_sets, static_argnums=(1, 2, 3), static_argnames=("members", "spread"))
noise = jax.jit(noise, static_argnums=0)


def normals(rows=4000, dim=10):
    return jax.random.normal(KEY, (rows, dim), jnp.float64)


def test_patterns_are_orthonormal_rows():
    rows = np.asarray(orthonormal(KEY, 5, 10, jnp.float64))
    np.testing.assert_allclose(rows @ rows.T, np.eye(5), atol=1e-12)


def test_sets_are_orthogonal_to_each_other_and_as_wide_as_asked():
    sets = np.asarray(pattern_sets(KEY, 4, 10, jnp.float64, members=3, spread=0.5))
    np.testing.assert_allclose(np.linalg.norm(sets, axis=-1), 1)
    for i in range(4):
        assert np.linalg.norm(sets[i, 0] - sets[i, -1]) == pytest.approx(0.5)
        for j in range(i):
            np.testing.assert_allclose(sets[i] @ sets[j].T, 0, atol=1e-12)


def test_a_set_of_one_is_an_orthonormal_pattern():
    alone = pattern_sets(KEY, 5, 10, jnp.float64)[:, 0]
    np.testing.assert_array_equal(alone, orthonormal(KEY, 5, 10, jnp.float64))


def test_noise_outside_the_patterns_touches_none_of_them():
    base = orthonormal(KEY, 4, 10, jnp.float64)
    away = jax.jit(outside)
    left = away(normals(50), base)
    np.testing.assert_allclose(np.asarray(left) @ np.asarray(base).T, 0, atol=1e-12)
    np.testing.assert_allclose(away(left, base), left, atol=1e-12)


@pytest.mark.parametrize("law", ["truncated_gaussian", "uniform_ball", "sphere"])
def test_bounded_noise_stays_within_the_radius(law):
    length = np.linalg.norm(noise(law, normals(), 0.03, 0.05), axis=-1)
    assert length.max() <= 0.05 * (1 + 1e-9)
    if law == "sphere":
        np.testing.assert_allclose(length, 0.05)
    if law == "uniform_ball":  # P(r <= R/2^(1/d)) = 1/2; standard error 0.008
        assert (length < 0.05 * 0.5**0.1).mean() == pytest.approx(0.5, abs=0.03)
    if law == "truncated_gaussian":  # not everything is pushed to the edge
        assert 0.01 < np.median(length) < 0.045


def test_gaussian_noise_has_its_scale_per_coordinate():
    drawn = np.asarray(noise("gaussian", normals(), 0.03, 9.0))
    np.testing.assert_allclose(drawn.std(0), 0.03, rtol=0.05)  # four standard errors of 4000 numbers


@pytest.mark.parametrize(
    ("rounding", "counts"), [("alternate", [3, 2, 3, 2]), ("floor", [2] * 4), ("ceil", [3] * 4)]
)
def test_half_tokens_are_rounded_as_asked(rounding, counts):
    assert [int(share_count(2.5, turn, rounding)) for turn in range(4)] == counts


def test_whole_counts_stay_whole_in_single_precision():
    share = jnp.asarray(0.35, jnp.float32)
    assert {int(share_count(share * 100, jnp.asarray(t), "alternate")) for t in range(0, 5000, 7)} == {35}


def test_roles_by_chance_and_in_blocks():
    chance = jnp.asarray([0.05, 0.5, 0.15, 0.95, 0.25])
    counts = chance_counts(chance, (0.1, 0.2))
    assert [int(count) for count in counts] == [1, 2]
    np.testing.assert_array_equal(blocks(counts, 5), [0, 1, 1, 2, 2])


def test_ranks_break_ties_by_place():
    np.testing.assert_array_equal(ranks(jnp.asarray([2.0, 1.0, 2.0, 0.0])), [2, 1, 3, 0])


def test_first_samples_do_not_depend_on_how_many_are_drawn():
    def sample(key, index):
        return jax.random.normal(key, (3,)) + index

    few, many = each(sample, KEY, 2), each(sample, KEY, 5)
    np.testing.assert_array_equal(few, many[:2])
    assert len(np.unique(np.asarray(many - jnp.arange(5)[:, None]))) == 15  # no two samples share their draw


def test_separation_finds_the_worst_pairs_and_skips_empty_tokens():
    tokens = jnp.asarray([[1.0, 0.0], [0.9, 0.1], [0.2, 1.0], [5.0, 5.0]])
    found = jax.jit(separation)(tokens, jnp.asarray([0, 0, 1, -1]), jnp.asarray([True, True, True, False]))
    assert float(found.cross_inner_max) == pytest.approx(0.28)
    assert float(found.same_inner_min) == pytest.approx(0.82)
