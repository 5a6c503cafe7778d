"""The network's output, its gradients, its variants and its initial models."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.descent import hinge_loss
from lemmata.errors import BadInput
from lemmata.parts.starts import initial_errors
from lemmata.parts.votes import Weights
from lemmata.studies.shallow_vit.data import TokenData, collapse
from lemmata.studies.shallow_vit.network import Network, slope
from lemmata.studies.shallow_vit.theory import initial_attention
from lemmata.studies.shallow_vit.trials import ViTTraining, World
from lemmata.threefry import new_key
from tests.kernels import forms, needs_compiler, without_kernels

VARIANTS = {
    "plain": {},
    "shared": {"output_weights": "shared"},
    "frozen": {"attention": "frozen"},
    "uniform": {"attention": "uniform"},
    "two heads": {"heads": 2},
    "skip": {"skip": True},
    "zeroed tokens": {"sparsify": "zero"},
}
PLAIN = Network(neurons=24, hidden_std=0.5)
DATA = TokenData(tokens=8, relevant_fraction=0.5, confusion_fraction=0.25, noise_std=0.05)
THINNED = dataclasses.replace(DATA, removal="random", removed_fraction=0.25)


@functools.partial(jax.jit, static_argnums=(0, 1))
def drawn(data, count):
    patterns = data.draw_patterns(new_key(1), jnp.float64)
    return patterns, data.draw(new_key(2), patterns, count)


@functools.partial(jax.jit, static_argnums=(0, 1))
def started(network, data, patterns):
    return network.start(new_key(3), data, patterns[:, 0])


def made(network=PLAIN, data=DATA, count=3):
    """Samples are compiled once for all networks, whose starts are compiled one by one."""
    patterns, samples = drawn(data, count)
    return patterns, samples, *started(network, data, patterns)


def nth(samples, n):
    return jax.tree.map(lambda part: jnp.asarray(np.asarray(part)[n]), samples)


errors_of = jax.jit(
    lambda weights, patterns, skip: initial_errors(weights, patterns[:, 0], skip=skip), static_argnums=2
)


@functools.partial(jax.jit, static_argnums=0)
def outputs(network, weights, votes, sample):
    folded = network.fold(weights)
    return network.outputs(folded, votes, sample), network.margin(folded, votes, sample)


def by_hand(network, weights: Weights, votes, sample):
    """F(X) written out token by token from equation (1) of the paper."""
    weights = jax.tree.map(np.asarray, weights)
    tokens, kept = np.asarray(sample.tokens), np.asarray(sample.kept) > 0
    if network.sparsify == "zero":
        tokens, kept = tokens * kept[:, None], np.ones_like(kept)
    total = np.zeros(votes.shape[-1])
    for place in np.flatnonzero(kept):
        attended = []
        for query, key, value in zip(weights.query, weights.key, weights.value, strict=True):
            logits = np.array([(key @ tokens[s]) @ (query @ tokens[place]) for s in np.flatnonzero(kept)])
            share = np.exp(0 * logits if network.attention == "uniform" else logits)
            share = share / share.sum()
            attended.append(
                sum(p * (value @ tokens[s]) for p, s in zip(share, np.flatnonzero(kept), strict=True))
            )
        seen = np.concatenate(attended) + (tokens[place] if network.skip else 0)
        active = np.maximum(weights.hidden.T @ seen, 0)
        total += active @ np.asarray(votes[place if votes.shape[0] > 1 else 0])
    return total / kept.sum()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("classes", [2, 4])
def test_output_is_equation_one(name, classes):
    network = dataclasses.replace(PLAIN, **VARIANTS[name])
    _, samples, weights, votes = made(network, dataclasses.replace(THINNED, classes=classes))
    sample = nth(samples, 1)
    expected = by_hand(network, weights, votes, sample)
    output, margin = outputs(network, weights, votes, sample)
    np.testing.assert_allclose(output, expected, rtol=1e-9)
    np.testing.assert_allclose(margin, expected @ sample.label, rtol=1e-9)


@pytest.mark.parametrize("name", VARIANTS)
def test_fast_gradient_agrees_with_automatic_differentiation(name):
    """Against plain softmax and ReLU on W_Q, W_K, W_V, W_O apart, which shares no code with the fast one."""
    network = dataclasses.replace(PLAIN, **VARIANTS[name])
    _, samples, weights, votes = made(network, DATA, 5)
    frozen = network.attention != "trained"

    def plain_margin(weights, sample):
        x, kept = sample.tokens, sample.kept
        seen = []
        for query, key, value in zip(weights.query, weights.key, weights.value, strict=True):
            logits = (x @ query.T) @ (x @ key.T).T
            logits = jax.lax.stop_gradient(logits) if frozen else logits
            share = jax.nn.softmax(0 * logits if network.attention == "uniform" else logits, axis=-1)
            seen.append(share @ x @ value.T)
        active = jax.nn.relu((jnp.concatenate(seen, axis=-1) + (x if network.skip else 0)) @ weights.hidden)
        return sample.label[0] * jnp.sum(kept * jnp.sum(active * votes[..., 0], -1)) / jnp.sum(kept)

    def objective(weights):
        return jnp.mean(jax.vmap(lambda one: hinge_loss(plain_margin(weights, one)))(samples))

    found, gradient = jax.jit(lambda w: slope.batch_slope(network, "hinge", w, samples, votes))(weights)
    expected_loss, expected = jax.jit(jax.value_and_grad(objective))(weights)
    np.testing.assert_allclose(found, expected_loss, rtol=1e-10)
    for got, want in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)
    assert bool(np.any(np.asarray(gradient.query) != 0)) == (not frozen)


FORMS = [jax.jit(form, static_argnums=(0, 1)) for form in forms(slope.mean_slope)]
CASES = {
    "plain": ({"neurons": 1030}, {"tokens": 61}, "hinge", "float32"),
    "dropped": (
        {"neurons": 277},
        {"tokens": 37, "removed_fraction": 0.3, "removal": "random"},
        "hinge",
        "float64",
    ),
    "classes": ({"neurons": 33, "heads": 3}, {"tokens": 26, "classes": 4}, "linear", "float64"),
    "shared": ({"neurons": 5, "output_weights": "shared", "skip": True}, {"tokens": 9}, "linear", "float32"),
}
"""Sizes at which no register and no block is full; one that needs several blocks of everything."""


@needs_compiler
@pytest.mark.parametrize("name", CASES)
def test_the_kernel_gives_what_samples_in_jax_give(name):
    fields, sizes, loss, dtype = CASES[name]
    network = dataclasses.replace(PLAIN, **fields)
    _, batch, weights, votes = made(network, dataclasses.replace(DATA, dim=11, **sizes), 4)
    weighted = np.asarray(batch.kept) * (1 + np.arange(sizes["tokens"]) % 3)  # as weighted patterns do
    folded = jax.jit(network.fold)(weights)
    given = jax.tree.map(_as(dtype), (folded, batch._replace(kept=weighted), votes))
    found, wanted = (form(network, loss, *given) for form in FORMS)
    close = 1e-13 if dtype == "float64" else 2e-6
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(a, b, rtol=0, atol=close * float(np.max(np.abs(b))))


def _as(dtype):
    return lambda part: np.asarray(part, dtype if np.issubdtype(part.dtype, np.floating) else None)


@needs_compiler
def test_the_kernel_knows_satisfied_samples_and_broken_weights():
    """Samples with hinge loss zero move nothing, apart from those that have not; what is no number stays none."""
    network = PLAIN
    _, batch, weights, votes = made()
    call = functools.partial(FORMS[0], network, "hinge")
    folded = network.fold(weights)
    margins = [float(outputs(network, weights, votes, nth(batch, n))[1]) for n in range(3)]
    pushed = 2 * np.sign(margins) / np.abs(margins) * np.array([1, -1, 1])
    batch = batch._replace(label=batch.label * jnp.asarray(pushed)[:, None])  # margins 2, -2, 2
    loss, gradient = call(folded, batch, votes)
    only = jax.tree.map(lambda part: part[1:2], batch)
    one, expected = call(folded, only, votes)
    np.testing.assert_allclose([loss, one], [1, 3])
    np.testing.assert_allclose(gradient.hidden, expected.hidden / 3)
    loss, _ = call(folded._replace(product=folded.product.at[0, 0, 0].set(np.nan)), batch, votes)
    assert np.isnan(loss)


@needs_compiler
def test_runs_that_are_mapped_over_are_those_of_their_own():
    trial = ViTTraining(DATA, PLAIN)
    _, batch, weights, votes = made()
    several = jax.tree.map(lambda part: jnp.stack([part, 0.5 * part, -part]), weights)
    world = World(None, votes, None, None, None)
    mapped = jax.jit(jax.vmap(lambda w: trial.slope(w, batch, world, new_key(0))))(several)
    alone = jax.jit(lambda w: trial.slope(w, batch, world, new_key(0)))
    for n in range(3):
        own = alone(jax.tree.map(lambda part, n=n: part[n], several))
        for a, b in zip(jax.tree.leaves(mapped), jax.tree.leaves(own), strict=True):
            np.testing.assert_array_equal(a[n], b)


def test_the_gradient_is_the_same_without_a_compiler():
    _, batch, weights, votes = made()
    gradient = functools.partial(slope.batch_slope, PLAIN, "hinge", batch=batch, votes=votes)
    found = jax.jit(gradient)(weights)
    with without_kernels():
        plain = jax.jit(lambda weights: gradient(weights))(weights)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-14)


def test_gradients_are_the_papers_corrected_formulas():
    _, samples, weights, votes = made()
    sample = nth(samples, 0)
    gradient = jax.jit(jax.grad(lambda w: PLAIN.margin(PLAIN.fold(w), votes, sample) * sample.label[0]))(
        weights
    )
    attention = np.asarray(jax.jit(lambda w: PLAIN.attend(PLAIN.fold(w), sample))(weights))[0]
    x, (query, key, value) = np.asarray(sample.tokens), (np.asarray(w[0]) for w in weights[:3])
    hidden = np.asarray(weights.hidden).T
    attended, pooled, values = attention @ x @ value.T, attention @ x, x @ value.T
    gates = np.asarray(votes[..., 0]) * (attended @ hidden.T > 0)
    pull = gates @ hidden
    score, centred = attention * (pull @ values.T), x[None] - pooled[:, None]
    expected = Weights(
        query=np.einsum("ls,lsd,le->de", score, centred @ key.T, x)[None] / len(x),
        key=np.einsum("ls,ld,lse->de", score, x @ query.T, centred)[None] / len(x),
        value=(pull.T @ pooled)[None] / len(x),
        hidden=(gates.T @ attended).T / len(x),
    )
    for got, want in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_attention_rows_sum_to_one_and_ignore_dropped_tokens():
    _, samples, weights, _ = made(PLAIN, THINNED)
    sample = nth(samples, 0)
    attention = np.asarray(jax.jit(lambda w: PLAIN.attend(PLAIN.fold(w), sample))(weights))
    np.testing.assert_allclose(attention.sum(-1), 1)
    assert np.all(attention[..., np.asarray(sample.kept) == 0] == 0)


def test_attention_at_the_start_without_errors_is_the_closed_form():
    network = Network(neurons=4, value_error=0.0, key_query_error=0.0)
    data = TokenData(tokens=20, relevant_fraction=0.5, confusion_fraction=0.2, noise_std=0.0)
    _, samples, weights, _ = made(network, data, 1)
    sample = nth(samples, 0)
    attention = jax.jit(lambda w: network.attend(network.fold(w), sample))(weights)
    paid = np.asarray(attention)[0] @ np.asarray(sample.relevant)
    relevant, confusion = np.asarray(sample.relevant), np.asarray(sample.confusion)
    np.testing.assert_allclose(paid[relevant], initial_attention(0.5), rtol=1e-10)
    np.testing.assert_allclose(paid[confusion], initial_attention(0.5, own=0.2), rtol=1e-10)


@pytest.mark.parametrize(("kind", "same"), [("shared", True), ("per_token", False)])
def test_only_shared_output_weights_are_blind_to_token_order(kind, same):
    network = dataclasses.replace(PLAIN, output_weights=kind)
    _, samples, weights, votes = made(network)
    sample = nth(samples, 0)
    turned = sample._replace(
        **{name: jnp.asarray(np.asarray(getattr(sample, name))[::-1]) for name in ("tokens", "kept")}
    )
    one, other = (outputs(network, weights, votes, s)[0] for s in (sample, turned))
    assert np.allclose(one, other, rtol=1e-10) == same


def test_weighted_patterns_give_the_output_of_all_tokens():
    network = dataclasses.replace(PLAIN, output_weights="shared")
    patterns, samples, weights, votes = made(network, dataclasses.replace(DATA, noise_std=0.0))
    sample = nth(samples, 1)
    np.testing.assert_allclose(
        outputs(network, weights, votes, jax.jit(collapse)(sample, patterns))[0],
        outputs(network, weights, votes, sample)[0],
        rtol=1e-12,
    )


@pytest.mark.parametrize("initial", ["perturbed", "shrink", "literal"])
@pytest.mark.parametrize("skip", [False, True])
def test_initial_model_meets_assumption_one_unless_it_is_the_printed_one(initial, skip):
    network = Network(value_error=0.1, key_query_error=0.2, initial=initial, neurons=8, skip=skip)
    patterns, _, weights, _ = made(network)
    errors = errors_of(weights, patterns, skip)
    if initial == "literal":  # token noise 0.05: scaled by 4 and 16
        assert float(errors.key_query) > 0.5
        assert np.linalg.norm(weights.key[0], 2) == pytest.approx(16)
        return
    assert 0.04 < float(errors.value) <= 0.1 + 1e-9
    assert 0.08 < float(errors.key_query) <= 0.2 + 1e-9


def test_spectral_norm_can_be_brought_to_one():
    patterns, _, weights, _ = made(Network(unit_spectral=True, neurons=8))
    assert float(errors_of(weights, patterns, False).spectral) <= 1 + 1e-9


@pytest.mark.parametrize(("scale", "std"), [("entry", 0.01), ("row", 0.01 / np.sqrt(10))])
def test_neurons_start_with_the_spread_of_their_reading(scale, std):
    _, _, weights, votes = made(Network(neurons=2000, hidden_scale=scale))
    assert np.asarray(weights.hidden).std() == pytest.approx(std, rel=0.02)  # 20 000 numbers
    np.testing.assert_allclose(np.abs(votes), 2000**-0.5)
    assert votes.shape == (8, 2000, 1)


def test_network_that_does_not_fit_its_data_is_refused():
    with pytest.raises(BadInput, match="value_dim 5 is below the token dimension 10"):
        ViTTraining(network=Network(value_dim=5))
    with pytest.raises(BadInput, match="skip connection"):
        ViTTraining(network=Network(skip=True, heads=2))
    with pytest.raises(BadInput, match="amplified_complement"):
        ViTTraining(data=TokenData(patterns=10), network=Network(initial="amplified_complement"))
