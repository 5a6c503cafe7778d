from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.studies.spatial_structure import network as net
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import Constants, Weights, variants
from lemmata.threefry import new_key
from tests.kernels import forms, needs_compiler, without_kernels

KEY = new_key(100)
CONSTANTS = Constants(3, 1e-3, 1.0)


@partial(jax.jit, static_argnums=(0, 1, 2))
def layer(seed=0, patches=6, dimension=5):
    keys = jax.random.split(jax.random.fold_in(KEY, seed), 5)
    square = [jax.random.normal(k, (dimension, dimension)) for k in keys[:3]]
    return (
        jax.random.normal(keys[3], (patches, dimension)),
        jax.random.normal(keys[4], (patches, dimension)),
        square,
    )


def test_positional_scores_do_not_depend_on_the_patches():
    x, p, (query, key, value) = layer()
    positional = jax.jit(variants.positional_attention)
    out, twice = (np.asarray(positional(times * x, p, query, key, value)) for times in (1, 2))
    assert np.allclose(twice, 2 * out)
    assert not np.allclose(jax.jit(variants.self_attention)(2 * x, p, query, key, value), 2 * out)


def test_permuting_patches_and_positions_permutes_the_output():
    x, p, (query, key, value) = layer()
    order = np.random.default_rng(0).permutation(6)
    for attention in map(jax.jit, (variants.positional_attention, variants.self_attention)):
        moved = attention(x[order], p[order], query, key, value)
        assert np.allclose(moved, np.asarray(attention(x, p, query, key, value))[order])


@jax.jit
def small_sample():
    model = Structured(patches=12, group_size=3, spurious_rate=0.4, dimension=6)
    world = model.world(KEY)
    images = model.draw(KEY, world, 37)
    logits = 0.3 * jax.random.normal(KEY, (12, 12))
    return world, images, Weights(logits, 0.2 * jax.random.normal(jax.random.fold_in(KEY, 1), (6,)))


@pytest.mark.parametrize("constants", [CONSTANTS, Constants(5, 1e-2, 2.0)])
def test_block_gradient_is_the_automatic_one_with_the_diagonal_frozen(constants):
    _, images, weights = small_sample()
    patches, labels = net.in_blocks(images.patches, images.labels, 10)
    risk, found = jax.jit(net.risk_gradient, static_argnums=3)(weights, patches, labels, constants)
    plain = jax.jit(jax.value_and_grad(net.risk_of), static_argnums=3)
    loss, exact = plain(weights, images.patches, images.labels, constants)
    found, exact = jax.tree.map(np.asarray, (found, exact))
    assert np.isclose(risk, loss, rtol=1e-12)
    assert np.allclose(found.value, exact.value, rtol=1e-10, atol=1e-14)
    off = ~np.eye(12, dtype=bool)
    assert np.allclose(found.logits, np.where(off, exact.logits, 0), rtol=1e-10, atol=1e-14)
    assert np.all(np.diag(found.logits) == 0)
    # softmax does not see a shift of a row
    assert np.allclose(np.sum(exact.logits, axis=1), 0, atol=1e-12)


def test_block_gradient_is_the_same_alone_and_in_lanes():
    _, images, weights = small_sample()
    blocks = net.in_blocks(images.patches, images.labels, 10)
    gradient = partial(net.risk_gradient, patches=blocks[0], labels=blocks[1], constants=CONSTANTS)
    alone = jax.jit(gradient)(weights)
    lanes = jax.jit(jax.vmap(gradient))(jax.tree.map(lambda a: np.stack([a, 2 * np.asarray(a)]), weights))
    same = jax.tree.map(lambda a, b: np.allclose(a, np.asarray(b)[0], rtol=1e-12), alone, lanes)
    assert all(jax.tree.leaves(same))


@needs_compiler
@pytest.mark.parametrize(
    ("patches", "dimension", "block"), [(12, 6, 10), (64, 32, 16), (37, 5, 16), (16, 3, 7)]
)
@pytest.mark.parametrize(("degree", "dtype"), [(3, "float64"), (5, "float64"), (3, "float32")])
def test_the_kernel_gives_what_blocks_in_jax_give(patches, dimension, block, degree, dtype):
    draw = np.random.default_rng(0)
    images = draw.normal(size=(45, patches, dimension)).astype(dtype)
    labels = draw.choice([-1, 1], 45).astype(dtype)
    logits = draw.normal(size=(patches, patches)).astype(dtype)
    value = (0.5 * draw.normal(size=dimension) / patches).astype(dtype)

    @jax.jit
    def both(logits, value, images, labels):
        linear = jnp.asarray(1e-3, dtype)
        given = net.attention_scores(logits), value, linear, *net.in_blocks(images, labels, block)
        return [form(*given, degree=degree) for form in forms(net.pulled)]

    for a, b in zip(*both(logits, value, images, labels), strict=True):
        close = 1e-13 if dtype == "float64" else 3e-6
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=close * np.abs(b).max())


def test_the_gradient_is_the_same_without_kernels():
    _, images, weights = small_sample()
    blocks = net.in_blocks(images.patches, images.labels, 10)
    gradient = partial(net.risk_gradient, patches=blocks[0], labels=blocks[1], constants=CONSTANTS)
    found = jax.jit(gradient)(weights)
    with without_kernels():
        plain = jax.jit(lambda weights: gradient(weights))(weights)
    same = jax.tree.map(lambda a, b: bool(jnp.allclose(a, b, rtol=1e-10, atol=1e-14)), found, plain)
    assert all(jax.tree.leaves(same))


def test_output_with_tied_logits_does_not_change_when_groups_and_slots_are_permuted():
    """Lemma I.1, second part; and the closed form of the pooled values."""
    model = Structured(patches=16, spurious_rate=0.4, dimension=6, partition="contiguous")

    @jax.jit
    def drawn(key):
        world = model.world(key)
        logits = net.tied_logits(world.group_of, 2.0, 0.7, -0.1)
        return world, model.draw(key, world, 50), logits, jax.random.normal(key, (6,)) * 0.1

    world, images, logits, value = drawn(KEY)
    order = np.argsort(np.asarray(world.group_of), kind="stable").reshape(4, 4)
    rng = np.random.default_rng(0)
    moved = np.array([rng.permutation(row) for row in order[rng.permutation(4)]])
    permuted = np.array(images.patches)
    permuted[:, order.ravel()] = permuted[:, moved.ravel()]
    output = jax.jit(net.output, static_argnums=2)
    before = np.asarray(output(Weights(logits, value), images.patches, CONSTANTS))
    after = np.asarray(output(Weights(logits, value), jnp.asarray(permuted), CONSTANTS))
    assert np.max(np.abs(before - after)) < 1e-10

    scores = theory.tied_scores(16, 4, 2.0, 0.7, -0.1)
    u = np.asarray(images.patches) @ np.asarray(value)
    own = np.asarray(net.same_group(world.group_of))
    group = u @ own.T
    z = 16 * (
        scores.self_score * u + scores.same * (group - u) + scores.cross * (u.sum(1, keepdims=True) - group)
    )
    assert np.allclose(before, np.sum(z**3 + 1e-3 * z, axis=1))


def test_shifted_solution_generalises_with_attention_that_avoids_every_group():
    """Theorem 3.2 at D=64, C=4, q=0.25."""
    model = Structured(dimension=2)

    @jax.jit
    def found(key):
        group_of = model.group_of(key)
        labels, coefficients = model.draw_coefficients(key, group_of, 20_000)
        logits = variants.shifted_solution(group_of, 8.0)
        error = jnp.mean(labels * net.output_of_projections(coefficients, logits, CONSTANTS) <= 0)
        return error, net.association(logits, group_of, 16)

    error, measured = found(KEY)
    assert error <= theory.label_noise(64, 4, 0.25) + 0.003
    assert measured["overlap"] == 0
    assert measured["exact"] == 0


def test_shifted_and_associating_solutions_become_the_same_function():
    model = Structured(dimension=2)

    @jax.jit
    def found(key):
        group_of = model.group_of(key)
        _, coefficients = model.draw_coefficients(key, group_of, 200)
        shifted, associating = (
            net.output_of_projections(coefficients, build(group_of, 40.0), Constants(3, 0.0, 1.0))
            for build in (variants.shifted_solution, variants.associating_solution)
        )
        means = jax.vmap(lambda row: jax.ops.segment_sum(row, group_of, 16))(coefficients) / 4
        return shifted, associating, means

    shifted, associating, means = map(np.asarray, found(KEY))
    assert np.allclose(shifted, associating, rtol=1e-8, atol=1e-6)
    assert np.allclose(shifted, 4 * 64**3 * np.sum(means**3, axis=1), rtol=1e-8, atol=1e-4)


def test_no_gram_matrix_avoids_every_group():
    """The caveat to Theorem 3.2: the longest positional encoding has itself among its most similar ones."""
    logits = np.asarray(jax.jit(lambda: variants.shifted_solution(jnp.arange(16) // 4, 1.0))())
    assert not np.allclose(logits, logits.T)
    for seed in range(20):
        positions = np.random.default_rng(seed).normal(size=(8, 16))
        gram = positions.T @ positions
        row = np.argmax(np.diag(gram))
        assert row in np.argsort(gram[row])[-4:]


def test_association_measures_know_full_no_and_tied_association():
    group_of = jax.random.permutation(KEY, jnp.arange(36) // 4)
    measured = jax.jit(net.association, static_argnums=2)
    full = measured(net.tied_logits(group_of, 4.0, 1.0, 0.0), group_of, 9)
    names = ("exact", "overlap", "auc", "margin", "row_margin", "off_diagonal")
    assert np.allclose([full[name] for name in names], 1, rtol=1e-12)
    tied = measured(net.tied_logits(group_of, 4.0, 0.0, 0.0), group_of, 9)
    assert tied["exact"] == 0
    assert np.isclose(tied["auc"], 0.5, rtol=1e-12)


def test_margins_over_all_pairs_and_within_rows_are_told_apart():
    """Rows shifted against each other keep their own order: association needs no common scale of the rows."""

    @jax.jit
    def found():
        group_of = jnp.arange(12) // 3
        logits = net.tied_logits(group_of, 4.0, 1.0, 0.0) + 5 * jnp.arange(12.0)[:, None]
        return net.association(logits, group_of, 4)

    seen = found()
    assert seen["row_margin"] == 1
    assert seen["margin"] == 1 - 55
    assert seen["exact"] == 1


def test_overlap_of_random_logits_is_at_chance():
    """`(1 + (C-1)^2 / (D-1)) / C` with the diagonal on top."""
    group_of = jnp.arange(64) // 4

    @jax.jit
    def overlap(key):
        logits = jnp.where(jnp.eye(64, dtype=bool), 9.0, jax.random.normal(key, (64, 64)))
        return net.association(logits, group_of, 16)["overlap"]

    found = [overlap(jax.random.fold_in(KEY, i)) for i in range(30)]
    assert abs(np.mean(found) - theory.chance_overlap(64, 4)) < 3 * np.std(found) / np.sqrt(30)


def test_class_summary_reads_tied_logits():

    @jax.jit
    def found(key):
        group_of = jax.random.permutation(key, jnp.arange(16) // 4)
        return net.class_summary(net.tied_logits(group_of, 9.0, 2.0, -1.0), group_of, 4)

    seen = found(KEY)
    assert (seen["same_mean"], seen["cross_mean"], seen["same_std"], seen["cross_max"]) == (2, -1, 0, -1)


def test_trainable_encodings_see_only_their_gram_matrix():
    """Turning all encodings together changes neither the output nor, up to the same turn, the gradient."""
    _, images, weights = small_sample()
    rng = np.random.default_rng(0)
    positions, turn = rng.normal(size=(7, 12)), np.linalg.qr(rng.normal(size=(7, 7)))[0]

    @jax.jit
    @jax.value_and_grad
    def risk(p):
        return jnp.mean(
            variants.encoded_output(variants.Encoded(p, weights.value), images.patches, CONSTANTS) ** 2
        )

    (turned, turned_slope), (value, slope) = risk(jnp.asarray(turn @ positions)), risk(jnp.asarray(positions))
    assert np.isclose(turned, value, rtol=1e-12)
    assert np.allclose(turned_slope, turn @ np.asarray(slope), rtol=1e-8)


def test_self_attention_without_patches_in_its_scores_would_be_trainable_encodings():
    """Scores are <X_i + p_i, X_j + p_j>: images of size 0 leave the encodings' own, real ones do not."""
    _, images, weights = small_sample()
    encoded = variants.Encoded(jax.random.normal(KEY, (6, 12)), weights.value)
    ways = variants.self_attention_output, variants.encoded_output
    both = jax.jit(lambda patches: [way(encoded, patches, CONSTANTS) for way in ways])
    assert np.allclose(*both(1e-9 * images.patches), rtol=1e-6, atol=0)
    assert not np.allclose(*both(images.patches), rtol=1e-2, atol=0)
