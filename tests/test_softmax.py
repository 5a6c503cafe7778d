"""A slot that is not there has no part in a softmax, however large its logit: it is masked before the exponential."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.guard import double
from lemmata.parts import votes
from lemmata.studies.chain_of_thought.network import counted_softmax
from lemmata.studies.graph_transformer import network as graph
from lemmata.studies.in_context_learning import network as prompts
from tests.kernels import forms, needs_compiler

SCALES = (1.0, 400.0, 1e4)


def three_tokens(scale):
    """Three tokens in a set, the third slot empty; the node that asks is the third token."""
    rng = np.random.default_rng(0)
    eye = np.eye(4)
    parts = (scale * eye, eye, eye, 0.01 * rng.normal(size=(4, 6)), np.zeros(2))
    weights = graph.Parameters(*map(jnp.asarray, parts))
    return weights, jnp.ones(6), jnp.eye(4)[:3]


@pytest.mark.parametrize("scale", SCALES)
def test_attention_of_the_graph_transformer_with_an_empty_slot(scale):
    with double():
        weights, signs, tokens = three_tokens(scale)
        seen = graph.Seen(tokens[None], jnp.ones((1, 3), int), jnp.asarray([[1.0, 2.0, 0.0]]))
        asking = tokens[2][None]
        np.testing.assert_allclose(graph.attention(weights, asking, seen), [[1 / 3, 2 / 3, 0.0]], rtol=1e-15)
        loss, gradient = graph.slope(weights, signs, asking, seen, jnp.ones(1))
        found = jax.grad(lambda w: jnp.mean(graph.hinge(graph.outputs(w, signs, asking, seen), jnp.ones(1))))(
            weights
        )
    assert np.isfinite(loss)
    for ours, theirs in zip(gradient, found, strict=True):
        assert np.isfinite(ours).all()
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * scale)


@needs_compiler
@pytest.mark.parametrize("scale", SCALES)
def test_the_kernel_of_the_graph_transformer_with_an_empty_slot(scale):
    with double():
        weights, signs, tokens = three_tokens(scale)
        sets = graph.Sets(
            tokens,
            jnp.asarray([[0, 1, 2]]),
            jnp.ones((1, 3), int),
            jnp.asarray([[True, True, False]]),
        )
        given = (
            weights, signs, jnp.asarray([2]), sets,
            jnp.ones(3, int), jnp.asarray(1.0),
        )  # fmt: skip
        by_kernel, by_jax = (jax.jit(one)(*given) for one in forms(graph.slope_of_sets))
    for ours, theirs in zip(jax.tree.leaves(by_kernel), jax.tree.leaves(by_jax), strict=True):
        assert np.isfinite(theirs).all()
        np.testing.assert_allclose(ours, theirs, atol=1e-12 * scale)


@pytest.mark.parametrize("scale", SCALES)
def test_the_other_masks(scale):
    """Columns that come no times, tokens that are not kept (a bias of log 0), examples that are not shown."""
    with double():
        logits = jnp.asarray([0.0, 0.0, scale])
        np.testing.assert_allclose(counted_softmax(logits, jnp.asarray([1.0, 2.0, 0.0])), [1 / 3, 2 / 3, 0])
        tokens = jnp.asarray([[1.0, 0.0], [1.0, 0.0], [scale, 0.0]])
        folded = votes.Folded(jnp.eye(2)[None], jnp.eye(2))
        bias = jnp.log(jnp.asarray([1.0, 2.0, 0.0]))
        for row in votes.attention(folded, tokens[:1], tokens, bias)[0]:
            np.testing.assert_allclose(row, [1 / 3, 2 / 3, 0])
        shown = jnp.asarray([[True, True, False]])
        share = prompts.attention(folded, tokens[None], shown, tokens[:1])
        np.testing.assert_allclose(share[0, 0], [0.5, 0.5, 0])
