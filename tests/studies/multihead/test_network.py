"""Closed forms against automatic differentiation, decoders, starts, and what equal heads imply."""

from functools import cache, partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.flatten_util import ravel_pytree

from lemmata import BadInput
from lemmata.descent import Descent, advance, begin
from lemmata.reduce import heads as grouped
from lemmata.studies.multihead import network
from lemmata.studies.multihead.data import Samples, TokenMixture
from lemmata.studies.multihead.network import Heads, Network, derivatives, slope
from lemmata.threefry import new_key
from tests.kernels import forms, needs_compiler


def head(seed, tokens=4, dim=3, size=1.0):
    random, shapes = np.random.default_rng(seed), ((tokens, dim), (dim, dim), (tokens, dim))
    return [jnp.asarray(size * random.normal(size=shape)) for shape in shapes]


@cache
def mixture(count=30) -> Samples:
    return jax.jit(lambda key: TokenMixture().sample(key, None, count))(new_key(0))


start_heads = eqx.filter_jit(network.start_heads)
outputs = eqx.filter_jit(network.outputs)
log_mean_loss = jax.jit(network.log_mean_loss)
loss_curvature = eqx.filter_jit(derivatives.loss_curvature)


def flat_output(flat, tokens):
    count, dim = tokens.shape
    return network.head_output(
        flat[: count * dim].reshape(count, dim), flat[count * dim :].reshape(dim, dim), tokens
    )


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.floats(0.1, 2))
def test_closed_form_gradient_and_hessian_are_the_derivatives(seed, size):
    decoder, attention, tokens = head(seed, size=size)
    flat = jnp.asarray(np.concatenate([np.ravel(decoder), np.ravel(attention)]))
    automatic = _derivatives(flat, tokens)
    for found, expected in zip(_closed_forms(decoder, attention, tokens), automatic, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-9)


_outputs_at = jax.jit(jax.vmap(flat_output, (0, None)))
_derivatives = jax.jit(lambda flat, x: (jax.grad(flat_output)(flat, x), jax.hessian(flat_output)(flat, x)))
_closed_forms = jax.jit(lambda *head: (derivatives.head_gradient(*head), derivatives.head_hessian(*head)))


def test_gradient_matches_finite_differences():
    decoder, attention, tokens = head(7)
    flat = jnp.asarray(np.concatenate([np.ravel(decoder), np.ravel(attention)]))
    steps = 1e-6 * np.eye(len(flat))
    nearby = np.asarray(_outputs_at(flat + np.concatenate([steps, -steps]), tokens)).reshape(2, -1)
    differences = (nearby[0] - nearby[1]) / 2e-6
    gradient = _closed_forms(decoder, attention, tokens)[0]
    assert np.linalg.norm(differences - gradient) < 1e-6 * np.linalg.norm(gradient)


def test_pooling_sums_the_rows_and_the_last_token_keeps_one():
    samples = mixture()
    full, _ = start_heads(Network(heads=2.0, start="signs", simulated=2), new_key(1), samples)
    for kind, expected in (("pooling", full.decoder.sum(axis=1)), ("last", full.decoder[:, -1])):
        net = Network(heads=2.0, start="signs", simulated=2, decoder=kind)  # pyright: ignore[reportArgumentType]
        params, _ = start_heads(net, new_key(1), samples)
        np.testing.assert_allclose(params.decoder, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["pooling", "last"])
def test_vector_decoders_are_full_decoders_of_a_shape(kind):
    samples = mixture()
    random, ones = np.random.default_rng(2), jnp.ones(1)
    vector, attention = (jnp.asarray(random.normal(size=shape)) for shape in ((1, 4), (1, 4, 4)))
    matrix = np.zeros((1, 10, 4))
    matrix[:, -1 if kind == "last" else slice(None)] = vector
    np.testing.assert_allclose(
        outputs(Network(decoder=kind), Heads(vector, attention), ones, samples.tokens),
        outputs(Network(), Heads(jnp.asarray(matrix), attention), ones, samples.tokens),
        rtol=1e-12,
    )


def test_the_first_step_from_zero_is_the_closed_form():
    samples = mixture()
    net = Network(heads=3.0, start="interval", simulated=3)
    params, members = start_heads(net, new_key(5), samples)
    zero = network.zero_heads(net, 10, 4)
    slope = jax.jit(jax.grad(lambda p: network.mean_loss(net, p, members, samples)))(zero)
    steps = params.decoder[:, 0, 0] / network.first_phase_row(samples)[0]
    np.testing.assert_allclose(params.decoder, -steps[:, None, None] * 3**0.5 * slope.decoder, rtol=1e-10)
    np.testing.assert_allclose(slope.attention, 0, atol=1e-15)
    assert np.all(np.abs(steps) <= 1)


def test_sign_groups_share_out_all_heads():
    net = Network(heads=1e12, start="signs", simulated=2)
    params, members = start_heads(net, new_key(0), mixture())
    assert float(members.sum()) == 1e12
    np.testing.assert_allclose(params.decoder[0], -params.decoder[1])


@pytest.mark.parametrize(
    ("method", "decoder_rate", "attention_rate"),
    [("gd", 0.5, 0.5 / 4), ("momentum", 0.5, 0.5 / 4), ("adam", 0.5 * 4**0.5, 0.5)],
)
def test_equal_heads_are_one_head_with_two_step_sizes(method, decoder_rate, attention_rate):
    """From zero, H heads with step eta are one head (U' = sqrt(H) U) with steps eta and eta/H; under Adam sqrt(H) eta
    and eta, up to its epsilon."""
    samples, net = mixture(), Network(heads=4.0)
    rate = 0.01 if method == "adam" else 0.5
    scaled = (decoder_rate / 0.5 * rate, attention_rate / 0.5 * rate)
    many = _descend(method, (rate, rate), net, jnp.array([4.0]), samples)
    single = _descend(method, scaled, Network(), jnp.ones(1), samples)
    tolerance = 1e-4 if method == "adam" else 1e-10
    np.testing.assert_allclose(2 * many.decoder, single.decoder, atol=tolerance)
    np.testing.assert_allclose(many.attention, single.attention, atol=tolerance)


def _descend(method, rates, net, members, samples, steps=50):
    """GD, momentum or Adam with a step size of its own for decoder and attention, through the shared optimiser."""
    unit = Descent(learning_rate=1.0, method=method)
    slope = jax.value_and_grad(lambda params: network.mean_loss(net, params, members, samples))

    def body(_, fit):
        return advance(unit, slope, fit, rates=Heads(*rates))

    @jax.jit
    def run():
        first = begin(unit, slope, network.zero_heads(net, *samples.tokens.shape[1:]))
        return jax.lax.fori_loop(0, steps, body, first)

    return run().params


def test_momentum_is_not_plain_descent():
    """The second step of heavy ball is the new gradient plus 0.9 times the first."""
    samples, net, ones = mixture(), Network(), jnp.ones(1)
    slope = jax.jit(jax.grad(lambda params: network.mean_loss(net, params, ones, samples)))
    zero = network.zero_heads(net, 10, 4)
    first = slope(zero)
    once = jax.tree.map(lambda p, g: p - 0.5 * g, zero, first)
    twice = jax.tree.map(lambda p, g, old: p - 0.5 * (g + 0.9 * old), once, slope(once), first)
    found = _descend("momentum", (0.5, 0.5), net, ones, samples, steps=2)
    for a, b in zip(found, twice, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_grouped_spectrum_is_the_spectrum_of_all_heads():
    samples = mixture()
    net = Network(heads=5.0, start="signs", simulated=2)
    random, members = np.random.default_rng(9), jnp.array([2.0, 3.0])
    params = Heads(
        *(
            jnp.asarray(size * random.normal(size=shape))
            for size, shape in ((1, (2, 10, 4)), (0.3, (2, 4, 4)))
        )
    )
    explicit = grouped.expand(params, members)
    all_heads = Network(heads=5.0, start="random", simulated=5)
    low, high = derivatives.extreme_eigenvalues(loss_curvature(net, params, members, samples), members)
    full = loss_curvature(all_heads, explicit, jnp.ones(5), samples).joint
    values = np.linalg.eigvalsh(full)
    np.testing.assert_allclose([low, high], [values[0], values[-1]], rtol=1e-9)
    by_products = derivatives.smallest_eigenvalue_by_products(all_heads, explicit, samples)
    np.testing.assert_allclose(by_products, values[0], rtol=1e-6)


@pytest.mark.parametrize("kind", ["full", "pooling", "last"])
def test_loss_hessian_is_the_second_derivative(kind):
    samples = mixture()
    net = Network(heads=2.0, start="random", simulated=2, decoder=kind)
    params, members = start_heads(net, new_key(4), samples)
    flat, rebuild = ravel_pytree(jax.tree.map(lambda x: x[0], params))
    rest = jax.tree.map(lambda x: x[1:], params)

    def loss(weights):
        both = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), rebuild(weights), rest)
        return network.mean_loss(net, both, members, samples)

    size = len(flat)
    joint = loss_curvature(net, params, members, samples).joint
    np.testing.assert_allclose(joint[:size, :size], jax.jit(jax.hessian(loss))(flat), atol=1e-10)


@pytest.mark.parametrize("kind", ["full", "pooling", "last"])
def test_training_loss_is_the_mean_loss_with_its_gradient(kind):
    """With as many tokens as the closed form is for, and with more."""
    for tokens in (10, network.SHORT + 1):
        random = np.random.default_rng(tokens)
        net = Network(heads=5.0, start="signs", simulated=2, decoder=kind)
        shapes = ((7, tokens, 4), (7,), (2, tokens, 4) if kind == "full" else (2, 4), (2, 4, 4))
        drawn, labels, *weights = (random.normal(size=shape) for shape in shapes)
        samples = Samples(*map(jnp.asarray, (drawn, np.sign(labels), np.ones((7, tokens), bool))))
        params = Heads(*map(jnp.asarray, weights))
        found, expected = (
            jax.jit(jax.value_and_grad(loss, argnums=1), static_argnums=0)(
                net, params, jnp.array([2.0, 3.0]), samples
            )
            for loss in (network.training_loss, network.mean_loss)
        )
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13), found, expected)


@needs_compiler
@pytest.mark.parametrize(
    ("kind", "precision", "samples", "tokens", "dim"),
    [
        ("full", "float64", 21, 7, 3),
        ("full", "float32", 21, 7, 6),
        ("pooling", "float64", 8, 4, 4),
        ("last", "float64", 3, 1, 5),
    ],
)
def test_kernel_gives_the_loss_of_training_and_its_gradient(kind, precision, samples, tokens, dim):
    """In two runs, with two groups of heads; scores up to some hundreds and margins of both signs."""
    net = Network(heads=5.0, start="signs", simulated=2, decoder=kind)
    random = np.random.default_rng(0)

    def drawn(*shape):
        return jnp.asarray(random.normal(size=(2, *shape)), precision)

    data = Samples(
        4 * drawn(samples, tokens, dim), jnp.sign(drawn(samples)), jnp.ones((2, samples, tokens), bool)
    )
    params = Heads(drawn(2, tokens, dim) if kind == "full" else drawn(2, dim), 4 * drawn(2, dim, dim))
    members = jnp.asarray([[2.0, 3.0], [5.0, 0.0]], precision)
    found, wanted = (
        jax.jit(jax.vmap(partial(way, net)))(params, members, data) for way in forms(slope.training_slope)
    )
    close = 2e-13 if precision == "float64" else 1e-4
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=close, atol=close * np.abs(b).max()), found, wanted
    )


def test_log_loss_survives_where_the_loss_underflows():
    margin = jnp.array([1000.0, 900.0, 1000.0])
    np.testing.assert_allclose(log_mean_loss(margin), -900 - np.log(3), rtol=1e-12)
    ordinary = np.array([0.3, -2.0, 5.0])
    np.testing.assert_allclose(log_mean_loss(ordinary), np.log(np.mean(np.log1p(np.exp(-ordinary)))))
    assert np.isfinite(jax.jit(jax.grad(network.log_mean_loss))(margin)).all()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"heads": 0.0}, "whole number from 1"),
        ({"heads": 2.5}, "whole number from 1"),
        ({"heads": 4.0, "start": "signs"}, "2 groups of equal heads"),
        ({"scale_exponent": 0.0}, "must be positive"),
    ],
)
def test_impossible_networks_are_refused_in_one_sentence(fields, sentence):
    with pytest.raises(BadInput, match=sentence):
        Network(**fields)


def test_head_scaling_changes_the_output_by_a_power_of_the_heads():
    samples: Samples = mixture()
    params = Heads(*(x[None] for x in head(3, 10, 4)[:2]))
    members = jnp.array([16.0])
    half = outputs(Network(heads=16.0), params, members, samples.tokens)
    whole = outputs(Network(heads=16.0, scale_exponent=1.0), params, members, samples.tokens)
    np.testing.assert_allclose(half, 4 * whole, rtol=1e-12)
