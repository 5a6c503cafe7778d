import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.studies.spatial_structure import data, theory
from lemmata.studies.spatial_structure.data import Gaussian, Structured

KEY = jax.random.key(100)


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
    world = model.world(KEY)
    images = model.draw(KEY, world, 500)
    assert jnp.allclose(images.patches @ world.feature, images.coefficients, atol=1e-12)
    signal = world.group_of[None] == images.signal_group[:, None]
    assert jnp.all(jnp.where(signal, images.coefficients == images.labels[:, None], True))
    outside = np.asarray(images.coefficients)[~np.asarray(signal)]
    # 500 * 32 draws: three standard errors of a proportion
    assert abs(np.mean(outside != 0) - 0.3) < 3 * np.sqrt(0.3 * 0.7 / outside.size)
    assert abs(np.mean(outside)) < 3 * np.sqrt(0.3 / outside.size)
    noise = images.patches - images.coefficients[..., None] * world.feature
    per_patch = jnp.mean(jnp.sum(noise**2, axis=-1))
    assert abs(per_patch - 7 / 8) < 3 * np.sqrt(2 * 7 / 64 / (500 * 36))


def test_a_larger_sample_begins_with_the_smaller_one_and_coefficients_alone_are_the_same():
    model = Structured(patches=16, dimension=4)
    world = model.world(KEY)
    small, large = model.draw(KEY, world, 5), model.draw(KEY, world, 9)
    assert jnp.array_equal(small.patches, large.patches[:5])
    labels, coefficients = model.draw_coefficients(KEY, world.group_of, 5)
    assert jnp.array_equal(coefficients, small.coefficients)
    assert jnp.array_equal(labels, small.labels)


def test_labelling_function_errs_as_often_as_the_theory_says():
    model = Structured(patches=64, spurious_rate=0.5)
    group_of = model.group_of(KEY)
    labels, coefficients = model.draw_coefficients(KEY, group_of, 40_000)
    found = jnp.mean(labels * data.labeling_function(coefficients, group_of, 16) <= 0)
    expected = theory.label_noise(64, 4, 0.5)
    assert abs(found - expected) < 3 * np.sqrt(expected / 40_000)


def test_permuting_groups_and_slots_keeps_the_law():
    """Lemma I.1, first part, on pooled statistics: joint moments of pairs depend only on whether they share a group."""
    model = Structured(patches=16, spurious_rate=0.4, partition="contiguous")
    group_of = np.asarray(model.group_of(KEY))
    _, coefficients = model.draw_coefficients(KEY, jnp.asarray(group_of), 60_000)
    products = np.asarray(coefficients.T @ coefficients) / 60_000
    same = (group_of[:, None] == group_of[None]) & ~np.eye(16, dtype=bool)
    assert np.ptp(products[same]) < 6 / np.sqrt(60_000)
    assert np.allclose(products[same].mean(), 4 / 16, atol=0.01)
    across = ~same & ~np.eye(16, dtype=bool)
    assert np.abs(products[across]).max() < 5 / np.sqrt(60_000)


def test_planted_draws_differ_as_the_exact_distance_says():
    """The best test thresholds the number of +1's; its advantage is the total variation."""
    m, C, q, n = 64, 4, 0.25, 20_000
    none = jnp.sum(data.planted(KEY, n, m, 0, q) == 1, axis=1)
    some = jnp.sum(data.planted(jax.random.fold_in(KEY, 1), n, m, C, q) == 1, axis=1)
    advantage = max(float(jnp.mean(some >= c) - jnp.mean(none >= c)) for c in range(30))
    assert abs(advantage - theory.planted_distance(m, C, q)) < 3 / np.sqrt(n)


def test_gaussian_labels_are_a_convolution_over_contiguous_groups():
    model = Gaussian()
    filters = model.world(KEY, jnp.float64)
    patches, labels, votes = model.draw(KEY, filters, 200)
    slots = [np.flatnonzero(model.group_of == g) for g in range(4)]
    by_hand = sum(
        np.einsum("nkd,kd->n", np.asarray(patches)[:, s], np.asarray(filters)[0]) ** 3 for s in slots
    )
    assert np.array_equal(np.sign(by_hand), labels)
    linear = sum(np.einsum("nkd,kd->n", np.asarray(patches)[:, s], np.asarray(filters)[0]) for s in slots)
    assert np.array_equal(np.sign(linear), votes)
    assert all(np.array_equal(model.slot_of[s], np.arange(4)) for s in slots)
    assert abs(jnp.mean(labels)) < 0.25
