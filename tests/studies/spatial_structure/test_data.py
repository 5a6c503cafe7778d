from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.studies.spatial_structure import data, theory
from lemmata.studies.spatial_structure.data import Gaussian, Structured
from lemmata.threefry import new_key

KEY = new_key(100)


@partial(jax.jit, static_argnums=(0, 1))
def seen(model, samples):
    """The world of a model and images of it."""
    world = model.world(KEY)
    return world, model.draw(KEY, world, samples)


@partial(jax.jit, static_argnums=(0, 1))
def coefficients_of(model, samples):
    group_of = model.group_of(KEY)
    return group_of, *model.draw_coefficients(KEY, group_of, samples)


def test_contiguous_blocks_are_the_papers_example():
    groups = data.contiguous_blocks(4, 4, 2, 2)
    assert [np.flatnonzero(groups == g).tolist() for g in range(4)] == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]


def test_random_partition_has_groups_of_one_size():
    assert np.bincount(data.random_partition(36, 4, seed=1)).tolist() == [4] * 9


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Structured(patches=64, group_size=5), "divide the number of patches"),
        (lambda: Structured(spurious_rate=1.2), r"lie in \[0, 1\]"),
        (lambda: Structured(spurious_rate=-0.1), r"lie in \[0, 1\]"),
        (lambda: Structured(patches=4, group_size=2, partition="given", groups=(0, 0, 0, 1)), "of one size"),
        (lambda: Structured(patches=4, group_size=2, partition="given", groups=(0, 0, 2, 2)), "without gaps"),
        (
            lambda: Structured(patches=8, group_size=2, partition="given", groups=(0, 0, 1, 1)),
            "is not one of",
        ),
        (lambda: data.from_labels([0, 0, 0]), "at least two groups"),
        (lambda: data.contiguous_blocks(4, 4, 3, 2), "do not tile"),
        (lambda: data.random_partition(10**300, 2, 0), "GiB of memory"),
        (lambda: data.square_blocks(10**300, 2), "GiB of memory"),
        (lambda: data.random_partition(10, 4, 0), "divide the number of patches"),
    ],
)
def test_bad_input_is_one_clear_sentence(build, says):
    with pytest.raises(BadInput, match=says) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_coefficients_are_the_label_on_the_signal_set_and_noise_is_orthogonal():
    model = Structured(patches=36, spurious_rate=0.3, dimension=8)
    world, images = jax.tree.map(np.asarray, seen(model, 500))
    assert np.allclose(images.patches @ world.feature, images.coefficients, atol=1e-12)
    signal = world.group_of[None] == images.signal_group[:, None]
    assert np.all(np.where(signal, images.coefficients == images.labels[:, None], True))
    outside = images.coefficients[~signal]
    # 500 * 32 draws: three standard errors of a proportion
    assert abs(np.mean(outside != 0) - 0.3) < 3 * np.sqrt(0.3 * 0.7 / outside.size)
    assert abs(np.mean(outside)) < 3 * np.sqrt(0.3 / outside.size)
    noise = images.patches - images.coefficients[..., None] * world.feature
    per_patch = np.mean(np.sum(noise**2, axis=-1))
    assert abs(per_patch - 7 / 8) < 3 * np.sqrt(2 * 7 / 64 / (500 * 36))


def test_a_larger_sample_begins_with_the_smaller_one_and_coefficients_alone_are_the_same():
    model = Structured(patches=16, dimension=4)
    (world, small), (_, large) = (jax.tree.map(np.asarray, seen(model, n)) for n in (5, 9))
    assert np.array_equal(small.patches, large.patches[:5])
    draw = jax.jit(model.draw_coefficients, static_argnums=2)
    labels, coefficients = draw(KEY, jnp.asarray(world.group_of), 5)
    assert np.array_equal(coefficients, small.coefficients)
    assert np.array_equal(labels, small.labels)


def test_labelling_function_errs_as_often_as_the_theory_says():
    model = Structured(patches=64, spurious_rate=0.5)
    group_of, labels, coefficients = coefficients_of(model, 40_000)
    found = np.mean(
        labels * jax.jit(data.labeling_function, static_argnums=2)(coefficients, group_of, 16) <= 0
    )
    expected = theory.label_noise(64, 4, 0.5)
    assert abs(found - expected) < 3 * np.sqrt(expected / 40_000)


def test_permuting_groups_and_slots_keeps_the_law():
    """Lemma I.1, first part, on pooled statistics: joint moments of pairs depend only on whether they share a group."""
    model = Structured(patches=16, spurious_rate=0.4, partition="contiguous")
    group_of, _, coefficients = map(np.asarray, coefficients_of(model, 60_000))
    products = coefficients.T @ coefficients / 60_000
    same = (group_of[:, None] == group_of[None]) & ~np.eye(16, dtype=bool)
    assert np.ptp(products[same]) < 6 / np.sqrt(60_000)
    assert np.allclose(products[same].mean(), 4 / 16, atol=0.01)
    across = ~same & ~np.eye(16, dtype=bool)
    assert np.abs(products[across]).max() < 5 / np.sqrt(60_000)


def test_planted_draws_differ_as_the_exact_distance_says():
    """The best test thresholds the number of +1's; its advantage is the total variation."""
    m, C, q, n = 64, 4, 0.25, 20_000
    draw = jax.jit(data.planted, static_argnums=(1, 2, 3, 4))
    none = np.sum(np.asarray(draw(KEY, n, m, 0, q)) == 1, axis=1)
    some = np.sum(np.asarray(draw(jax.random.fold_in(KEY, 1), n, m, C, q)) == 1, axis=1)
    advantage = max(np.mean(some >= c) - np.mean(none >= c) for c in range(30))
    assert abs(advantage - theory.planted_distance(m, C, q)) < 3 / np.sqrt(n)


def test_gaussian_labels_are_a_convolution_over_contiguous_groups():
    model = Gaussian()
    filters = jax.jit(lambda key: model.world(key, jnp.float64))(KEY)
    patches, labels, votes = map(np.asarray, jax.jit(model.draw, static_argnums=2)(KEY, filters, 200))
    slots = [np.flatnonzero(model.group_of == g) for g in range(4)]
    by_hand = sum(
        np.einsum("nkd,kd->n", np.asarray(patches)[:, s], np.asarray(filters)[0]) ** 3 for s in slots
    )
    assert np.array_equal(np.sign(by_hand), labels)
    linear = sum(np.einsum("nkd,kd->n", np.asarray(patches)[:, s], np.asarray(filters)[0]) for s in slots)
    assert np.array_equal(np.sign(linear), votes)
    assert all(np.array_equal(model.slot_of[s], np.arange(4)) for s in slots)
    assert abs(np.mean(labels)) < 0.25
