"""The network's output, its gradients, its variants and its initial models."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.descent import hinge_loss
from lemmata.errors import BadInput
from lemmata.studies.shallow_vit.data import TokenData, collapse
from lemmata.studies.shallow_vit.network import Network, Weights, initial_errors, perceptron
from lemmata.studies.shallow_vit.trials import ViTTraining, batch_gradient, first_violation

VARIANTS = {
    "plain": {},
    "shared": {"output_weights": "shared"},
    "frozen": {"attention": "frozen"},
    "uniform": {"attention": "uniform"},
    "two heads": {"heads": 2},
    "skip": {"skip": True},
    "zeroed tokens": {"sparsify": "zero"},
}


def made(count=3, classes: Any = 2, tokens=8, network=None, **options):
    data = TokenData(
        tokens=tokens,
        relevant_fraction=0.5,
        confusion_fraction=0.25,
        classes=classes,
        noise_std=0.05,
        **options,
    )
    network = network or Network(neurons=24, hidden_std=0.5)
    patterns = data.draw_patterns(jax.random.key(1), jnp.float64)
    samples = data.draw(jax.random.key(2), patterns, count)
    weights, votes = network.start(jax.random.key(3), data, patterns)
    return data, network, patterns, samples, weights, votes


def nth(samples, n):
    return jax.tree.map(lambda part: part[n], samples)


def by_hand(network, weights: Weights, votes, sample):
    """F(X) written out token by token from equation (1) of the paper."""
    tokens, kept = np.asarray(sample.tokens), np.asarray(sample.kept) > 0
    if network.sparsify == "zero":
        tokens, kept = tokens * kept[:, None], np.ones_like(kept)
    total = np.zeros(votes.shape[-1])
    for place in np.flatnonzero(kept):
        attended = []
        for query, key, value in zip(weights.query, weights.key, weights.value, strict=True):
            logits = np.array([(key @ tokens[s]) @ (query @ tokens[place]) for s in np.flatnonzero(kept)])
            if network.attention == "uniform":
                logits = 0 * logits
            share = np.exp(logits - logits.max())
            share = share / share.sum()
            attended.append(
                sum(p * (value @ tokens[s]) for p, s in zip(share, np.flatnonzero(kept), strict=True))
            )
        seen = np.concatenate(attended) + (tokens[place] if network.skip else 0)
        active = np.maximum(np.asarray(weights.hidden).T @ seen, 0)
        total += active @ np.asarray(votes[place if votes.shape[0] > 1 else 0])
    return total / kept.sum()


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("classes", [2, 4])
def test_output_is_equation_one(name, classes):
    network = Network(neurons=24, hidden_std=0.5, **VARIANTS[name])
    _, _, _, samples, weights, votes = made(
        classes=classes, network=network, removal="random", removed_fraction=0.25
    )
    sample = nth(samples, 1)
    expected = by_hand(network, weights, votes, sample)
    np.testing.assert_allclose(network.outputs(network.fold(weights), votes, sample), expected, rtol=1e-9)
    np.testing.assert_allclose(
        network.margin(network.fold(weights), votes, sample), expected @ sample.label, rtol=1e-9
    )


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("classes", [2, 4])
def test_fast_gradient_agrees_with_automatic_differentiation(name, classes):
    network = Network(neurons=24, hidden_std=0.5, **VARIANTS[name])
    _, _, _, samples, weights, votes = made(classes=classes, network=network, count=5)

    def plain_margin(weights, sample):
        kept = jnp.ones(sample.tokens.shape[0]) if network.sparsify == "zero" else sample.kept
        folded = network.fold(weights)
        active = jax.nn.relu(network.features(folded, sample) @ folded.hidden)
        per_output = jnp.einsum(
            "lm,lmk->lk", active, jnp.broadcast_to(votes, (*active.shape, votes.shape[-1]))
        )
        return jnp.sum(kept[:, None] * per_output * sample.label) / jnp.sum(kept)

    def objective(weights):
        return jnp.mean(jax.vmap(lambda one: hinge_loss(plain_margin(weights, one)))(samples))

    loss, gradient = batch_gradient(network, "hinge", weights, votes, samples, jnp.arange(5))
    expected_loss, expected = jax.value_and_grad(objective)(weights)
    np.testing.assert_allclose(loss, expected_loss, rtol=1e-10)
    for got, want in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-12)


def test_gradients_are_the_papers_corrected_formulas():
    _, network, _, samples, weights, votes = made()
    sample = nth(samples, 0)
    x = np.asarray(sample.tokens)
    query, key, value = (np.asarray(w[0]) for w in weights[:3])
    attention = np.asarray(network.attend(network.fold(weights), sample))[0]
    hidden = np.asarray(weights.hidden).T
    attended, pooled, values = attention @ x @ value.T, attention @ x, x @ value.T
    gates = np.asarray(votes[..., 0]) * (attended @ hidden.T > 0)
    pull = gates @ hidden
    count = len(x)
    score = attention * (pull @ values.T)
    centred = x[None] - pooled[:, None]
    expected = Weights(
        query=np.einsum("ls,lsd,ld2->dd2".replace("d2", "e"), score, centred @ key.T, x)[None] / count,
        key=np.einsum("ls,ld,lse->de", score, x @ query.T, centred)[None] / count,
        value=(pull.T @ pooled)[None] / count,
        hidden=(gates.T @ attended).T / count,
    )
    _, gradient = batch_gradient(network, "linear", weights, votes, samples, jnp.asarray([0]))
    for got, want in zip(gradient, expected, strict=True):
        np.testing.assert_allclose(got, -sample.label[0] * want, atol=1e-12)


def test_gradients_match_finite_differences():
    _, network, _, samples, weights, votes = made()
    sample = nth(samples, 0)
    gradient = jax.grad(lambda w: network.margin(network.fold(w), votes, sample))(weights)
    direction = jax.tree.map(lambda w: jax.random.normal(jax.random.key(9), w.shape), weights)
    step = 1e-6

    def moved(sign):
        there = jax.tree.map(lambda w, d: w + sign * step * d, weights, direction)
        return network.margin(network.fold(there), votes, sample)

    slope = (moved(1) - moved(-1)) / (2 * step)
    along = sum(jnp.vdot(g, d) for g, d in zip(gradient, direction, strict=True))
    assert float(slope) == pytest.approx(float(along), rel=1e-5)


def test_attention_rows_sum_to_one_and_ignore_dropped_tokens():
    _, network, _, samples, weights, _ = made(removal="random", removed_fraction=0.25)
    sample = nth(samples, 0)
    attention = np.asarray(network.attend(network.fold(weights), sample))
    np.testing.assert_allclose(attention.sum(-1), 1)
    assert np.all(attention[..., np.asarray(sample.kept) == 0] == 0)


def test_dropping_a_token_equals_leaving_it_out():
    network = Network(neurons=24, hidden_std=0.5, output_weights="shared")
    _, _, _, samples, weights, votes = made(network=network, removal="random", removed_fraction=0.25)
    sample = nth(samples, 0)
    kept = np.asarray(sample.kept) > 0
    cut = sample._replace(**{
        name: jnp.asarray(np.asarray(getattr(sample, name))[kept])
        for name in ("tokens", "pattern", "relevant", "confusion", "noise", "noisy", "kept")
    })  # fmt: skip
    np.testing.assert_allclose(
        network.outputs(network.fold(weights), votes, sample),
        network.outputs(network.fold(weights), votes, cut),
        rtol=1e-12,
    )


@pytest.mark.parametrize(("kind", "same"), [("shared", True), ("per_token", False)])
def test_only_shared_output_weights_are_blind_to_token_order(kind, same):
    network = Network(neurons=24, hidden_std=0.5, output_weights=kind)
    _, _, _, samples, weights, votes = made(network=network)
    sample = nth(samples, 0)
    turned = sample._replace(tokens=sample.tokens[::-1], kept=sample.kept[::-1])
    one, other = (network.outputs(network.fold(weights), votes, s) for s in (sample, turned))
    assert bool(jnp.allclose(one, other, rtol=1e-10)) == same


def test_weighted_patterns_give_the_output_of_all_tokens():
    network = Network(neurons=24, hidden_std=0.5, output_weights="shared")
    data, _, patterns, _, weights, votes = made(network=network)
    quiet = dataclasses.replace(data, noise_std=0.0)
    sample = nth(quiet.draw(jax.random.key(2), patterns, 2), 1)
    np.testing.assert_allclose(
        network.outputs(network.fold(weights), votes, collapse(sample, patterns)),
        network.outputs(network.fold(weights), votes, sample),
        rtol=1e-12,
    )


def test_perceptron_value_is_the_vote_of_the_relu():
    c, w, a = (jax.random.normal(jax.random.key(k), s) for k, s in enumerate([(6, 4), (4, 9), (6, 9)]))
    np.testing.assert_allclose(perceptron(c, w, a), jnp.sum(a * jax.nn.relu(c @ w), -1), rtol=1e-10)


def test_stop_rule_finds_a_violation_wherever_the_search_starts():
    _, network, _, samples, weights, votes = made(count=6)
    margins = [float(network.margin(network.fold(weights), votes, nth(samples, n))) for n in range(6)]
    scaled = votes / max(margins)  # exactly the best sample has margin one
    for start in range(6):
        found, none = first_violation(network, weights, scaled * 1.0001, samples, jnp.asarray(start))
        assert not none
        assert margins[int(found)] < max(margins)
    lifted = samples._replace(label=jnp.sign(jnp.asarray(margins))[:, None] * samples.label)
    far = votes * 1.01 / min(abs(m) for m in margins)
    assert first_violation(network, weights, far, lifted, jnp.asarray(2))[1]


@pytest.mark.parametrize("initial", ["perturbed", "shrink"])
@pytest.mark.parametrize("skip", [False, True])
def test_initial_model_meets_assumption_one_with_its_nominal_errors(initial, skip):
    network = Network(value_error=0.1, key_query_error=0.2, initial=initial, neurons=8, skip=skip)
    _, _, patterns, _, weights, _ = made(network=network)
    errors = initial_errors(weights, patterns, skip=skip)
    assert 0.04 < float(errors.value) <= 0.1 + 1e-9
    assert 0.08 < float(errors.key_query) <= 0.2 + 1e-9
    if initial == "shrink":
        assert float(errors.value) == pytest.approx(0.1)
        assert float(errors.key_query) == pytest.approx(0.2)


def test_amplified_complement_maps_patterns_exactly_and_blows_up_noise():
    network = Network(value_error=0.1, initial="amplified_complement", neurons=8)
    data, _, patterns, _, weights, _ = made(network=network)
    assert float(initial_errors(weights, patterns).value) < 1e-9
    noise = data.noise_std * np.random.default_rng(0).normal(size=(4000, 10))
    outside = noise - noise @ np.asarray(patterns[:, 0].T @ patterns[:, 0])
    length = np.sqrt(((outside @ np.asarray(weights.value[0]).T) ** 2).sum(1).mean())
    assert length == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(("initial", "value", "key"), [("literal", 4, 16), ("literal_sqrt", 2, 4)])
def test_printed_initial_models_break_assumption_one(initial, value, key):
    network = Network(value_error=0.1, key_query_error=0.2, initial=initial, neurons=8)
    _, _, patterns, _, weights, _ = made(network=network)  # token noise 0.05
    assert np.linalg.norm(weights.value[0], 2) == pytest.approx(value)
    assert np.linalg.norm(weights.key[0], 2) == pytest.approx(key)
    assert float(initial_errors(weights, patterns).spectral) > 1
    assert float(initial_errors(weights, patterns).key_query) > 0.5


def test_spectral_norm_can_be_brought_to_one():
    network = Network(unit_spectral=True, neurons=8)
    _, _, patterns, _, weights, _ = made(network=network)
    assert float(initial_errors(weights, patterns).spectral) <= 1 + 1e-9


def test_output_weights_are_signs_over_root_m():
    _, _, _, _, _, votes = made()
    np.testing.assert_allclose(np.abs(votes), 24**-0.5)
    assert votes.shape == (8, 24, 1)


def test_network_that_does_not_fit_its_data_is_refused():
    with pytest.raises(BadInput, match="value_dim 5 is below the token dimension 10"):
        ViTTraining(network=Network(value_dim=5))
    with pytest.raises(BadInput, match="skip connection"):
        ViTTraining(network=Network(skip=True, heads=2))
    with pytest.raises(BadInput, match="amplified_complement"):
        ViTTraining(data=TokenData(patterns=10), network=Network(initial="amplified_complement"))
