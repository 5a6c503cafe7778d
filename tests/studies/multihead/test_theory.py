"""Every inequality of the theory on random inputs, the closed forms, and the numbers that the conditions give."""

from math import inf, log, sqrt

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemmata import BadInput
from lemmata.studies.multihead import mixture_theory, theory
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead.curvature import kernel_features
from lemmata.studies.multihead.data import NoiseBounds, Samples, TokenMixture
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.probes import (
    INEQUALITIES,
    margin_parts,
    mixture_bounds,
    ntk_kernel,
    oracle_attention,
    ratios,
)

SLACK = 1 + 1e-9
FEW = settings(max_examples=20, deadline=None)


@FEW
@given(seed=st.integers(0, 100_000), size=st.floats(0.01, 20), stretch=st.floats(0.1, 1))
def test_every_inequality_holds_at_random_weights_and_bounded_tokens(seed, size, stretch):
    draw = np.random.default_rng(seed)
    tokens = draw.standard_normal((4, 3, 2))
    tokens *= stretch / np.maximum(1, np.linalg.norm(tokens, axis=-1, keepdims=True))
    samples = Samples(jnp.asarray(tokens), jnp.asarray(draw.choice([-1.0, 1.0], 4)), jnp.ones((4, 3), bool))
    first, second = (
        Heads(*(jnp.asarray(size * draw.standard_normal(shape)) for shape in ((2, 3, 2), (2, 2, 2))))
        for _ in range(2)
    )
    found = ratios(Network(heads=2.0, start="random", simulated=2), first, second, samples, 1.0)
    assert set(found) == set(INEQUALITIES)
    assert all(0 <= value <= SLACK for value in found.values()), found


def test_gradient_bounds_are_attained_by_equal_tokens_without_a_decoder():
    tokens = np.tile([0.6, 0.8], (3, 1))
    gradient = nets.head_gradient(jnp.zeros((3, 2)), jnp.zeros((2, 2)), jnp.asarray(tokens))
    bound = theory.gradient_bound(tokens, np.zeros((3, 2)))
    np.testing.assert_allclose(np.linalg.norm(gradient), bound, rtol=1e-12)


# The theorems' conditions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("distance", "heads"), [(0.1, 12), (0.2, 427), (0.3, 3933)])
def test_smallest_number_of_heads_for_the_training_theorem(distance, heads):
    """Two tokens in two dimensions of norm 1; the counts are those that solving the condition by hand gives."""
    assert abs(theory.equal_heads_required(theory.DataBounds(2, 2, 1.0), distance) - heads) <= 1


@FEW
@given(
    distance=st.floats(0.05, 3),
    dim=st.integers(1, 6),
    tokens=st.integers(2, 12),
    radius=st.floats(1, 3),
    constant=st.sampled_from([theory.TRAINING_HEADS, theory.GENERALISATION_HEADS]),
)
def test_required_heads_are_just_enough(distance, dim, tokens, radius, constant):
    data = theory.DataBounds(dim, tokens, radius)
    heads = theory.equal_heads_required(data, distance, constant)
    need = theory.required_root_heads(data, distance, distance / sqrt(heads), constant)
    assert sqrt(heads) >= need * (1 - 1e-9)
    fewer = heads * 0.98 - 1
    if fewer >= 1:
        assert sqrt(fewer) < theory.required_root_heads(data, distance, distance / sqrt(fewer), constant)


@FEW
@given(distance=st.floats(0.05, 2), heads=st.floats(1, 1e12), loss=st.floats(1e-4, 0.7))
def test_the_longest_horizon_meets_every_limit(distance, heads, loss):
    data, target = theory.DataBounds(2, 2, 1.0), theory.Target(distance, distance / sqrt(heads), loss)
    step, steps = theory.longest_horizon(data, target, heads)
    limits = theory.step_limits(data, target, heads, steps)
    if step * steps * loss <= distance**2:  # a horizon of one step may already be too long
        assert all(step <= limit * SLACK for limit in limits.values())
    assert theory.binding(limits) in limits


@FEW
@given(
    norm=st.floats(1, 5), output=st.floats(1, 20), margin=st.floats(0.05, 5), steps=st.integers(1, 10_000),
    printed=st.booleans(),
)  # fmt: skip
def test_the_heads_of_the_main_corollary_suffice_for_realizability(norm, output, margin, steps, printed):
    """Cor. 5 claims that its condition implies that of Prop. 7; so it does, with either set of constants."""
    start, data = theory.GoodStart(norm, output, margin, printed), theory.DataBounds(2, 3, 1.0)
    enough = theory.good_start_required_heads(data, start, steps)
    assert enough >= start.required_heads(data, 1 / steps)
    target = start.target(steps)
    assert enough >= theory.required_heads(data, target, theory.GENERALISATION_HEADS)
    limits = theory.good_start_step_limits(data, start, enough, steps)
    general = theory.realizable_step_limits(data, target, start.distance(1), enough)
    assert min(limits.values()) <= min(general.values()) * SLACK


def test_printed_constants_forget_that_the_direction_has_norm_root_two():
    exact, printed = theory.GoodStart(1, 2, 0.5), theory.GoodStart(1, 2, 0.5, printed=True)
    assert exact.distance(0.1) == pytest.approx(sqrt(2) * printed.distance(0.1))
    assert printed.distance(0.1) == pytest.approx((4 + log(10)) / 0.5)


def test_a_good_start_realises_any_loss_along_its_direction():
    """Prop. 7 on the mixture: at G theta* with enough heads, every sample has margin at least log(1/eps)."""
    data = TokenMixture(relevant_fraction=0.4, noise_law="none")
    samples = _sample(data, 20)
    row = 0.1 * np.asarray(data.frame[0] - data.frame[1])
    decoder_part, attention_part = margin_parts(data, row, samples)
    start = theory.GoodStart(
        max(1.0, sqrt(10) * float(np.linalg.norm(row))), 1.0, float((decoder_part + attention_part).min())
    )
    bounds = mixture_bounds(data, samples)
    heads = 2 * float(start.required_heads(bounds.data, 0.01))
    reach = start.reach(0.01) / sqrt(heads)
    unit = np.tile(np.asarray(data.frame[0] - data.frame[1]), (10, 1))
    unit /= np.linalg.norm(unit)
    signs = np.array([1.0, -1.0])
    params = Heads(
        jnp.asarray(signs[:, None, None] * row + reach * unit),
        jnp.asarray(reach * signs[:, None, None] * oracle_attention(data)),
    )
    network, members = Network(heads=heads, start="signs", simulated=2), jnp.asarray([heads / 2, heads / 2])
    assert float(nets.margins(network, params, members, samples).min()) >= log(100)


def test_bounds_refuse_what_the_theorems_do_not_cover():
    with pytest.raises(BadInput, match="at least 1"):
        theory.DataBounds(2, 2, 0.5)
    with pytest.raises(BadInput, match="positive NTK margin"):
        theory.GoodStart(1, 1, -0.1)


# The mixture -----------------------------------------------------------------------------------------------------------

LOW_NOISE = TokenMixture(relevant_fraction=0.4, dim=6, noise=0.05, noise_law="cube")


@eqx.filter_jit
def _draw(data, key, count):
    return data.sample(key, None, count)


def _sample(data, count=200, seed=0) -> Samples:
    return _draw(data, jax.random.key(seed), count)


def test_margin_bounds_of_the_low_noise_mixture():
    bounds = mixture_bounds(LOW_NOISE, _sample(LOW_NOISE))
    assert mixture_theory.linear_margin(bounds) == pytest.approx(1.655, abs=1e-3)
    assert mixture_theory.attention_share(bounds, 0.0) == pytest.approx(0.071, abs=1e-3)
    assert mixture_theory.printed_ntk_margin(bounds, 0.0) == pytest.approx(
        mixture_theory.ntk_margin(bounds, 0.0)
    )
    assert mixture_theory.attention_margin(bounds) == pytest.approx(4.4721, abs=1e-4)


@pytest.mark.parametrize("law", ["cube", "ball", "truncated", "orthogonal"])
def test_margin_parts_exceed_their_bounds_on_every_sample(law):
    data = TokenMixture(relevant_fraction=0.4, dim=6, noise=0.01, noise_law=law)
    samples = _sample(data)
    bounds = mixture_bounds(data, samples)
    draw = np.random.default_rng(0)
    for residual in (0.0, 1e-4):
        shift = draw.standard_normal(6)
        row = 0.1 * np.asarray(data.frame[0] - data.frame[1]) + residual * shift / np.linalg.norm(shift)
        decoder_part, attention_part = margin_parts(data, row, samples)
        assert decoder_part.min() >= mixture_theory.linear_margin(bounds) / SLACK
        sharper = mixture_theory.sharper_attention_share(bounds, residual)
        assert attention_part.min() >= sharper - 1e-9  # equal without overlap with the patterns
        assert sharper >= mixture_theory.attention_share(bounds, residual) - 1e-9


def test_attention_share_is_exact_without_noise():
    data = TokenMixture(relevant_fraction=0.3, noise_law="none")
    samples = _sample(data)
    row = mixture_theory.row_coefficient(0.3) * np.asarray(data.frame[0] - data.frame[1])
    exact = mixture_theory.noise_free_attention_share(mixture_bounds(data, samples))
    np.testing.assert_allclose(margin_parts(data, row, samples)[1], exact, rtol=1e-12)


def test_relevance_scores_keep_their_floor_and_ceiling():
    samples = _sample(LOW_NOISE)
    bounds = mixture_bounds(LOW_NOISE, samples)
    tokens = np.asarray(samples.tokens)
    scores = np.einsum("nti,ij,nsj->nts", tokens, oracle_attention(LOW_NOISE), tokens) * 4 * sqrt(6)
    relevant = np.broadcast_to(np.asarray(samples.relevant)[:, None, :], scores.shape)
    assert scores[relevant].min() >= mixture_theory.relevant_score_floor(bounds)
    assert scores[~relevant].max() <= mixture_theory.irrelevant_score_ceiling(bounds)


def test_kernel_closed_form_is_the_inner_product_of_gradients():
    samples = _sample(TokenMixture(), 30)
    network = Network(heads=6.0, start="interval", simulated=6)
    params, members = eqx.filter_jit(nets.start_heads)(network, jax.random.key(1), samples)
    row = np.asarray(nets.first_phase_row(samples))
    steps = np.asarray(params.decoder[:, 0] @ row / (row @ row))
    features = np.asarray(eqx.filter_jit(kernel_features)(network, params, members, samples))
    kernel = ntk_kernel(row, float(np.mean(steps**2)), samples)
    np.testing.assert_allclose(features @ features.T, kernel, rtol=1e-10)


@FEW
@given(
    high=st.floats(0.5, 20), low=st.floats(-20, 0.2), leak=st.floats(1e-8, 0.5), relevant=st.integers(1, 9),
    seed=st.integers(0, 1000),
)  # fmt: skip
def test_saturation_scales_leave_at_most_the_leak(high, low, leak, relevant, seed):
    draw = np.random.default_rng(seed)
    scores = np.concatenate(
        [high + draw.exponential(size=relevant), low - draw.exponential(size=10 - relevant)]
    )
    for scale in (mixture_theory.saturation_scale, mixture_theory.sharp_saturation_scale):
        weights = np.exp(max(scale(high, low, relevant, 10, leak), 0) * (scores - scores.max()))
        assert weights[relevant:].sum() / weights.sum() <= leak * SLACK or leak > 1 - relevant / 10


@FEW
@given(seed=st.integers(0, 1000))
def test_best_margin_is_reached_and_never_beaten(seed):
    draw = np.random.default_rng(seed)
    direction = draw.standard_normal(5)
    features = draw.standard_normal((12, 5))
    labels = np.sign(features @ direction)
    best = mixture_theory.best_margin(features, labels)
    tries = draw.standard_normal((500, 5)) + 3 * direction
    tries *= sqrt(2) / np.linalg.norm(tries, axis=1, keepdims=True)
    assert best >= (labels[:, None] * (features @ tries.T)).min(axis=0).max() / SLACK
    assert best > 0


def test_features_that_no_direction_separates_have_no_margin():
    assert mixture_theory.best_margin(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0])) == 0


def test_margin_of_drawn_steps_spreads_as_one_over_root_heads_and_within_its_bound():
    """Under steps uniform on [-1, 1] the margin is linear in their mean size; its spread over draws falls as H^-1/2."""
    draw = np.random.default_rng(0)
    heads = np.array([10, 100, 1000])
    spreads = [np.abs(draw.uniform(-1, 1, (2000, h))).mean(axis=1).std() for h in heads]
    slope = np.polyfit(np.log(heads), np.log(spreads), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.05)  # 2000 draws give each spread to 2 %
    bounds = mixture_bounds(LOW_NOISE, _sample(LOW_NOISE))
    share = mixture_theory.noise_free_attention_share(bounds)
    assert 5 * spreads[1] * share < mixture_theory.margin_deviation(bounds, 0.0, 100, 0.05)


def test_the_order_of_margins_holds_up_to_its_limit_and_not_beyond():
    for signal, expected in ((5.9, True), (6.1, False)):
        bounds = mixture_theory.MixtureBounds(4, 10, 2, signal, 0.1, NoiseBounds(0, 0, 0))
        assert (mixture_theory.ntk_margin(bounds, 0.0) <= mixture_theory.attention_margin(bounds)) == expected
        assert (signal <= mixture_theory.ordering_limit(bounds)) == expected


@pytest.mark.parametrize("scale", [0.25, 0.5, 1.0, 2.0])
def test_the_saturated_solution_is_never_an_affordable_target(scale):
    assert mixture_theory.feasible_saturated_targets(1.01, scale, points=9) == []
    assert mixture_theory.feasible_saturated_targets(5.0, scale, points=9) == []


def test_the_obstruction_scan_would_find_a_target_if_there_were_one():
    assert mixture_theory.feasible_saturated_targets(0.01, points=9)


def test_negative_margins_ask_for_endless_heads():
    bounds = mixture_bounds(LOW_NOISE, _sample(LOW_NOISE))
    assert mixture_theory.heads_for_margin(bounds, 0.0, -1.0, 100, 0.05) == inf
