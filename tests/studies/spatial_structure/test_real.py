"""Permuted pictures: what moves, and where it came from."""

import jax
import jax.numpy as jnp
import numpy as np

from lemmata.studies.spatial_structure.trials.real import moved_tokens, permuted

KEY = jax.random.key(3)


def test_a_permutation_moves_whole_grids_and_is_the_same_for_all_pictures():
    images = jnp.arange(2 * 8 * 8).reshape(2, 8, 8, 1)
    moved = np.asarray(permuted(images, 4, KEY))
    assert {tuple(moved[0, i : i + 4, j : j + 4].ravel()) for i in (0, 4) for j in (0, 4)} == {
        tuple(np.asarray(images)[0, i : i + 4, j : j + 4].ravel()) for i in (0, 4) for j in (0, 4)
    }
    np.testing.assert_array_equal(moved[1] - moved[0], 64)


def test_grids_of_the_whole_side_move_nothing():
    images = jax.random.normal(KEY, (1, 8, 8, 1))
    assert (permuted(images, 8, KEY) == images).all()


def test_moved_tokens_say_where_each_patch_came_from():
    places = jnp.repeat(jnp.repeat(jnp.arange(16).reshape(4, 4), 2, 0), 2, 1).reshape(1, 8, 8, 1)
    moved = permuted(places, 4, KEY)[0, ::2, ::2, 0].ravel()
    assert (moved_tokens(4, 8, 2, KEY) == moved).all()
