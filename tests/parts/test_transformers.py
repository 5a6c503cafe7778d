"""Blocks, vision transformers and encoders: what they compute, against plain NumPy, and their symmetries."""

import jax
import jax.numpy as jnp
import numpy as np

from lemmata.parts.bert import drawn_encoder, marked
from lemmata.parts.transformers import block, patches, vision_transformer

KEY = jax.random.key(0)


def attended(one, x):
    """The attention of a block by loops over pictures and heads."""
    each = x.shape[-1] // one.heads
    query, key, value = (np.asarray(x @ part.weight + part.bias) for part in (one.query, one.key, one.value))
    mixed = np.zeros_like(x)
    for n in range(len(x)):
        for h in range(one.heads):
            own = slice(h * each, (h + 1) * each)
            logits = query[n][:, own] @ key[n][:, own].T / np.sqrt(each)
            share = np.exp(logits - logits.max(1, keepdims=True))
            mixed[n][:, own] = share / share.sum(1, keepdims=True) @ value[n][:, own]
    return mixed @ np.asarray(one.out.weight) + np.asarray(one.out.bias)


def test_a_plain_block_adds_the_attention_of_every_head():
    one = block(KEY, 8, 2, 0, "plain")
    x = np.random.default_rng(0).normal(size=(3, 5, 8)).astype(np.float32)
    np.testing.assert_allclose(one(jnp.asarray(x)), x + attended(one, x), atol=1e-5)


def test_a_block_of_the_order_post_ends_with_normalised_tokens():
    added = block(KEY, 8, 2, 16, "post")(jax.random.normal(KEY, (2, 4, 8)))
    np.testing.assert_allclose(jnp.mean(added, -1), 0, atol=1e-5)
    np.testing.assert_allclose(jnp.var(added, -1), 1, atol=1e-3)


def test_what_a_block_of_the_order_pre_adds_does_not_depend_on_the_size_of_its_input():
    one = block(KEY, 8, 2, 0, "pre")
    x = jax.random.normal(KEY, (2, 4, 8))
    np.testing.assert_allclose(one(10 * x) - 10 * x, one(100 * x) - 100 * x, atol=1e-4)


def test_hidden_tokens_change_nothing():
    one = block(KEY, 8, 2, 16, "pre")
    x = jax.random.normal(KEY, (1, 4, 8))
    other = x.at[0, 3].set(5.0)
    there = jnp.array([[1.0, 1.0, 1.0, 0.0]])
    np.testing.assert_allclose(one(x, there)[:, :3], one(other, there)[:, :3], atol=1e-6)


def test_patches_are_cut_row_by_row():
    image = jnp.arange(16.0).reshape(1, 4, 4, 1)
    assert np.asarray(patches(image, 2))[0].tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]


def test_a_vision_transformer_sees_permuted_patches_with_permuted_positions_alike():
    """The identity behind Figure 5 of the paper on spatial structure: it holds if the patch divides the permuted grids."""
    import equinox as eqx

    net = vision_transformer(
        KEY, side=8, channels=1, patch=2, width=8, heads=2, depth=2, mlp=8, hidden=0, classes=3, order="pre"
    )
    images = jax.random.uniform(KEY, (2, 8, 8, 1))
    order = jax.random.permutation(KEY, 4)
    grids = images.reshape(2, 2, 4, 2, 4, 1).transpose(0, 1, 3, 2, 4, 5).reshape(2, 4, 4, 4, 1)[:, order]
    moved = grids.reshape(2, 2, 2, 4, 4, 1).transpose(0, 1, 3, 2, 4, 5).reshape(2, 8, 8, 1)
    token = jnp.arange(16).reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(4, 4)[order]
    placed = token.reshape(2, 2, 2, 2).transpose(0, 2, 1, 3).reshape(16)
    permuted = eqx.tree_at(lambda t: t.positions, net, net.positions[placed])
    np.testing.assert_allclose(permuted(moved), net(images), atol=1e-5)
    assert float(jnp.abs(net(moved) - net(images)).max()) > 1e-4


def test_padding_does_not_change_an_encoder():
    net = drawn_encoder(KEY, 20, 8, 12, 3, 2)
    pieces, lengths = jnp.array([[3, 4, 5, 0, 0]]), jnp.array([3])
    padded = net(pieces, marked(lengths, 5))[:, :3]
    np.testing.assert_allclose(padded, net(pieces[:, :3], marked(lengths, 3)), atol=1e-5)
