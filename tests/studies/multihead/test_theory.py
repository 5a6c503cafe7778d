"""Every inequality of the theory on random inputs, the closed forms, and the numbers that the conditions give."""

from itertools import product
from math import inf, log, sqrt

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lemmata import BadInput
from lemmata.descent import logistic_loss
from lemmata.reduce import heads as grouped
from lemmata.studies.multihead import network as nets
from lemmata.studies.multihead import theory
from lemmata.studies.multihead.data import NoiseBounds, Samples, TokenMixture
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.network.derivatives import head_gradient, kernel_features
from lemmata.studies.multihead.trials import INEQUALITIES, Saturation
from lemmata.studies.multihead.trials.inequalities import POINTWISE, follow, ratios
from lemmata.studies.multihead.trials.mixture import (
    margin_parts,
    measured_good_start,
    mixture_bounds,
    ntk_kernel,
    realized_margins,
)
from lemmata.threefry import new_key

SLACK = 1 + 1e-9
FEW = settings(max_examples=20, deadline=None)

start_heads, features_of = eqx.filter_jit(nets.start_heads), eqx.filter_jit(kernel_features)
outputs_of, largest_norm = eqx.filter_jit(nets.outputs), eqx.filter_jit(grouped.largest_head_norm)


def bounded(draw: np.random.Generator, count: int = 4) -> Samples:
    """Random labels on random tokens of norm at most 1: three of them in two dimensions."""
    tokens = draw.standard_normal((count, 3, 2))
    tokens /= np.maximum(1, np.linalg.norm(tokens, axis=-1, keepdims=True))
    labels = jnp.asarray(draw.choice([-1.0, 1.0], count))
    return Samples(jnp.asarray(tokens), labels, jnp.ones((count, 3), bool))


def random_heads(draw: np.random.Generator, groups: int, size: float = 1.0) -> Heads:
    return Heads(
        *(jnp.asarray(size * draw.standard_normal(shape)) for shape in ((groups, 3, 2), (groups, 2, 2)))
    )


@FEW
@given(seed=st.integers(0, 100_000), size=st.floats(0.01, 20), stretch=st.floats(0.1, 1))
def test_every_inequality_holds_at_random_weights_and_bounded_tokens(seed, size, stretch):
    draw = np.random.default_rng(seed)
    samples = bounded(draw)
    samples = samples._replace(tokens=jnp.asarray(stretch * np.asarray(samples.tokens)))
    first, second = random_heads(draw, 2, size), random_heads(draw, 2, size)
    found = ratios(Network(heads=2.0, start="random", simulated=2), first, second, samples, 1.0)
    assert set(found) == set(INEQUALITIES)
    assert all(0 <= value <= SLACK for value in found.values()), found
    sharp = theory.SHARP_QUASI_CONVEXITY / theory.QUASI_CONVEXITY
    assert found["quasi-convexity"] <= sharp * SLACK


@FEW
@given(seed=st.integers(0, 100_000), size=st.floats(0.01, 20), kind=st.sampled_from(["pooling", "last"]))
def test_pointwise_inequalities_hold_for_vector_decoders_with_their_factor(seed, size, kind):
    draw = np.random.default_rng(seed)
    first, second = (
        Heads(jnp.asarray(size * draw.standard_normal((2, 2))), random_heads(draw, 2, size).attention)
        for _ in range(2)
    )
    network = Network(heads=2.0, start="random", simulated=2, decoder=kind)
    found = ratios(network, first, second, bounded(draw), 1.0)
    factors = {name: theory.decoder_factor(kind, 3, name == "smoothness") for name in POINTWISE}
    assert all(found[name] <= factors[name] * SLACK for name in POINTWISE), found


def test_pooled_equal_tokens_exceed_the_printed_bound_by_the_root_of_their_number():
    draw = np.random.default_rng(0)
    samples = bounded(draw)
    samples = samples._replace(tokens=jnp.ones_like(samples.tokens) / sqrt(2))
    points = [Heads(jnp.zeros((2, 2)), random_heads(draw, 2).attention) for _ in range(2)]
    network = Network(heads=2.0, start="random", simulated=2, decoder="pooling")
    found = ratios(network, *points, samples, 1.0)
    assert found["head gradient"] == pytest.approx(sqrt(3))


def test_gradient_bounds_are_attained_by_equal_tokens_without_a_decoder():
    tokens = np.tile([0.6, 0.8], (3, 1))
    gradient = head_gradient(jnp.zeros((3, 2)), jnp.zeros((2, 2)), jnp.asarray(tokens))
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


UNIT_BALL = theory.DataBounds(2, 3, 1.0)


@FEW
@given(seed=st.integers(0, 100_000), size=st.floats(0.01, 2), distance=st.floats(0.02, 2))
def test_the_training_theorem_and_its_lemmas_hold_inside_their_conditions(seed, size, distance):
    """Theorem 1 and Lemmas 7 to 10 from a start whose outputs cancel, towards a random target, with the largest step
    allowed."""
    draw = np.random.default_rng(seed)
    samples, half = bounded(draw), random_heads(draw, 1, size)
    start = Heads(jnp.concatenate([half.decoder, -half.decoder]), jnp.concatenate([half.attention] * 2))
    norm = float(grouped.head_norms(half)[0])
    heads = theory.equal_heads_required(UNIT_BALL, distance, start_norm=norm)
    way = random_heads(draw, 2)
    way = Heads(*(part / grouped.head_norms(way)[:, None, None] for part in way))
    goal = Heads(*(s + distance / sqrt(heads) * w for s, w in zip(start, way, strict=True)))
    network, members = Network(heads=float(heads), start="signs", simulated=2), jnp.full(2, heads / 2)
    steps = 20
    target = follow(network, start, goal, members, samples, 1e-9, steps).target
    assert target.distance == pytest.approx(distance)
    assert target.head_norm <= (norm + distance / sqrt(heads)) * SLACK
    step = min(theory.step_limits(UNIT_BALL, target, heads, steps).values())
    run = follow(network, start, goal, members, samples, step, steps)
    assert run.losses[-1] <= run.mean_loss <= theory.training_bound(target, step, steps)
    assert run.away.max() <= theory.ball_radius(target)
    assert run.distances.max() <= 3 * target.distance * SLACK
    rounding = 1e-12 * run.losses[0]
    assert (np.diff(run.losses) <= -step / 2 * run.slopes[:-1] ** 2 + rounding).all()
    assert run.mean_loss <= run.regret_bound(UNIT_BALL, heads, step)
    assert run.quasi_convexity_margin(UNIT_BALL, heads) >= 1
    assert run.mean_loss <= theory.mean_loss_bound(target, step, steps)


@eqx.filter_jit
def _descend(network, weights, samples, step, steps):
    """Where GD from zero on weighted samples leads, for every row of weights, and the losses of all samples there."""
    members = network.heads[None]
    zero = nets.zero_heads(Network(), 3, 2)

    def losses(params):
        return logistic_loss(nets.margins(network, params, members, samples))

    def one(row):
        slope = jax.grad(lambda params: row @ losses(params))
        move = lambda _, params: jax.tree.map(lambda p, g: p - step * g, params, slope(params))  # noqa: E731
        end = jax.lax.fori_loop(0, steps, move, zero)
        return end, losses(end)

    return jax.lax.map(one, weights)


@FEW
@given(seed=st.integers(0, 100_000), distance=st.floats(0.05, 2), bold=st.floats(0.01, 5))
def test_stability_and_gap_stay_below_their_bounds_in_exact_expectation(seed, distance, bold):
    """Three equally likely samples and training sets of two: all nine sets are run, so that the expectations of Lemma 3
    and Theorem 2 are exact. Lemma 3 holds with any step (`bold`); the recursion (22), Lemma 11 and Theorem 2 with one that
    they allow."""
    draw = np.random.default_rng(seed)
    samples, way, steps = bounded(draw, 3), random_heads(draw, 1), 10
    chosen = np.array(list(product(range(3), repeat=2)))
    counts = np.array([np.bincount(row, minlength=3) for row in chosen])
    without = np.array([[row - np.eye(3)[i] for i in pair] for row, pair in zip(counts, chosen, strict=True)])
    weights = jnp.asarray(np.concatenate([counts, without.reshape(-1, 3)]) / 2)

    heads = float(theory.equal_heads_required(UNIT_BALL, distance, theory.GENERALISATION_HEADS))
    scale = distance / sqrt(heads) / float(grouped.head_norms(way)[0])
    goal = Heads(*(scale * part for part in way))
    network = Network(heads=heads)
    worst = logistic_loss(nets.margins(network, goal, jnp.array([heads]), samples)).max()
    target = theory.Target(distance, distance / sqrt(heads), float(worst))
    allowed = min(theory.step_limits(UNIT_BALL, target, heads, steps).values())

    for count, step, inside in ((heads, allowed, True), (4.0, bold, False)):
        network = jax.tree.map(jnp.asarray, Network(heads=count))
        before, ends = (
            _descend(network, weights, samples, jnp.asarray(step), jnp.asarray(k)) for k in (steps - 1, steps)
        )
        away_before, away = (_twin_distances(params, count) for params, _ in (before, ends))
        losses, stability = np.asarray(ends[1])[:9], away.mean(axis=1)
        gap = float(np.mean(losses.mean(axis=1) - (losses * counts).sum(axis=1) / 2))
        largest = float(np.linalg.norm(np.asarray(ends[0].decoder).reshape(27, -1), axis=1).max())
        slope = theory.gradient_self_bound(UNIT_BALL, largest)
        assert gap <= theory.gap_from_stability(slope, float(stability.mean())) * SLACK
        if inside:
            assert stability.max() <= theory.stability_bound(UNIT_BALL, target, step, steps, 2)
            assert gap <= theory.sharp_gap_bound(UNIT_BALL, target, step, steps, 2)
            assert gap <= theory.gap_bound(target, step, steps, 2)
            earlier = np.asarray(before[1])
            both = ((earlier[:9, None] + earlier[9:].reshape(9, 2, 3)) * without).sum(axis=-1) / 2
            own = np.take_along_axis(earlier[:9], chosen, axis=1)
            growth = theory.stability_growth(UNIT_BALL, target, heads, step, both)  # pyright: ignore[reportArgumentType]
            push = theory.stability_push(UNIT_BALL, target, step, 2, own)  # pyright: ignore[reportArgumentType]
            assert (away <= growth * away_before + push).all()


def _twin_distances(params, heads):
    """How far each of nine runs is from its two leave-one-out twins (eighteen further rows), over all heads."""
    flat = np.concatenate([np.asarray(part).reshape(27, -1) for part in params], axis=1) * sqrt(heads)
    return np.linalg.norm(flat[:9, None] - flat[9:].reshape(9, 2, -1), axis=-1)


def test_printed_constants_forget_that_the_direction_has_norm_root_two():
    exact, printed = theory.GoodStart(1, 2, 0.5), theory.GoodStart(1, 2, 0.5, printed=True)
    assert exact.distance(0.1) == pytest.approx(sqrt(2) * printed.distance(0.1))
    assert printed.distance(0.1) == pytest.approx((4 + log(10)) / 0.5)


@FEW
@given(
    seed=st.integers(0, 10_000), relevant=st.integers(1, 9), signal=st.floats(0.5, 3), loss=st.floats(1e-4, 1),
    off=st.floats(0, 0.02),
)  # fmt: skip
def test_a_good_start_realises_any_loss_along_its_direction(seed, relevant, signal, loss, off):
    """Prop. 7 on the mixture: at G theta* with the heads that it asks for, every sample has margin log(1/eps) at least,
    also where the first step missed its mean a little."""
    data = TokenMixture(relevant_fraction=relevant / 10, signal=signal, noise_law="none")
    samples = _sample(data, seed=seed)
    row = theory.row_coefficient(relevant / 10) * np.asarray(data.frame[0] - data.frame[1])
    row = row + off * np.random.default_rng(seed).standard_normal(4) * np.linalg.norm(row)
    start = measured_good_start(data, row, samples)
    heads = 2 * np.ceil(start.required_heads(mixture_bounds(data, samples).data, loss) / 2)
    found = realized_margins(data, row, samples, start, loss, np.array([heads]))
    assert found[0] >= log(1 / loss) - 1e-6


@FEW
@given(seed=st.integers(0, 10_000), law=st.sampled_from(["signs", "interval"]))
def test_the_first_step_keeps_norms_and_outputs_within_the_bounds_of_a_good_start(seed, law):
    samples = _sample(LOW_NOISE, seed=seed)
    network = Network(heads=6.0, start=law, simulated=2 if law == "signs" else 6)
    params, members = start_heads(network, new_key(seed), samples)
    bounds = mixture_bounds(LOW_NOISE, samples)
    oracle = np.asarray(LOW_NOISE.frame[0] - LOW_NOISE.frame[1])
    residual = float(np.linalg.norm(nets.first_phase_row(samples) - theory.row_coefficient(0.4) * oracle))
    largest = float(largest_norm(params, members))
    sharp = theory.sharp_start_norm(bounds, residual)
    assert largest <= min(sharp, theory.sure_start_norm(bounds))
    assert sharp <= theory.start_norm_bound(bounds, residual)
    outputs = outputs_of(network, params, members, samples.tokens)
    assert np.abs(outputs).max() <= theory.start_output_bound(bounds, residual, 30, 1e-6)


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


def _sample(data, count=30, seed=0) -> Samples:
    arrays = jax.tree.map(jnp.asarray, data)  # as arrays: one compiled program for all their values
    return _draw(arrays, new_key(seed), count)


def test_margin_bounds_of_the_low_noise_mixture():
    bounds = mixture_bounds(LOW_NOISE, _sample(LOW_NOISE))
    assert theory.linear_margin(bounds) == pytest.approx(1.655, abs=1e-3)
    assert theory.attention_share(bounds, 0.0) == pytest.approx(0.071, abs=1e-3)
    assert theory.printed_ntk_margin(bounds, 0.0) == pytest.approx(theory.ntk_margin(bounds, 0.0))
    assert theory.attention_margin(bounds) == pytest.approx(4.4721, abs=1e-4)


@FEW
@given(
    seed=st.integers(0, 10_000), law=st.sampled_from(["cube", "orthogonal"]),
    relevant=st.integers(1, 9), signal=st.floats(1, 3), noise=st.floats(1e-4, 0.02), residual=st.floats(0, 1e-3),
)  # fmt: skip
def test_margin_parts_exceed_their_bounds_on_every_sample(seed, law, relevant, signal, noise, residual):
    zeta = relevant / 10
    data = TokenMixture(relevant_fraction=zeta, signal=signal, dim=6, noise=noise, noise_law=law)
    samples = _sample(data, seed=seed)
    bounds = mixture_bounds(data, samples)
    shift = np.random.default_rng(seed).standard_normal(6)
    mean = theory.row_coefficient(zeta) * np.asarray(data.frame[0] - data.frame[1])
    decoder_part, attention_part = margin_parts(
        data, mean + residual * shift / np.linalg.norm(shift), samples
    )
    assert decoder_part.min() >= theory.linear_margin(bounds) - 1e-9
    linear = samples.labels * nets.linear_output(data.oracle().decoder, samples.tokens)
    np.testing.assert_allclose(
        linear, decoder_part, atol=1e-9
    )  # App. F: the linear model has the decoder's share
    sharper = theory.sharper_attention_share(bounds, residual)
    assert attention_part.min() >= sharper - 1e-9  # equal without overlap with the patterns
    assert sharper >= theory.attention_share(bounds, residual) - 1e-9


def test_attention_share_is_exact_without_noise():
    data = TokenMixture(relevant_fraction=0.3, noise_law="none")
    samples = _sample(data)
    row = theory.row_coefficient(0.3) * np.asarray(data.frame[0] - data.frame[1])
    exact = theory.noise_free_attention_share(mixture_bounds(data, samples))
    np.testing.assert_allclose(margin_parts(data, row, samples)[1], exact, rtol=1e-12)


def test_relevance_scores_keep_their_floor_and_ceiling():
    samples = _sample(LOW_NOISE)
    bounds = mixture_bounds(LOW_NOISE, samples)
    tokens = np.asarray(samples.tokens)
    scores = (
        np.einsum("nti,ij,nsj->nts", tokens, np.asarray(LOW_NOISE.oracle().attention), tokens) * 4 * sqrt(6)
    )
    relevant = np.broadcast_to(np.asarray(samples.relevant)[:, None, :], scores.shape)
    assert scores[relevant].min() >= theory.relevant_score_floor(bounds)
    assert scores[~relevant].max() <= theory.irrelevant_score_ceiling(bounds)


@FEW
@given(seed=st.integers(0, 10_000))
def test_kernel_closed_form_is_the_inner_product_of_gradients(seed):
    samples = _sample(LOW_NOISE, seed=seed)
    network = Network(heads=6.0, start="interval", simulated=6)
    params, members = start_heads(network, new_key(seed), samples)
    row = np.asarray(nets.first_phase_row(samples))
    steps = np.asarray(params.decoder[:, 0] @ row / (row @ row))
    features = np.asarray(features_of(network, params, members, samples))
    kernel = ntk_kernel(row, float(np.mean(steps**2)), samples)
    np.testing.assert_allclose(features @ features.T, kernel, atol=1e-10 * np.abs(kernel).max())


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
    for scale in (theory.saturation_scale, theory.sharp_saturation_scale):
        weights = np.exp(scale(high, low, relevant, 10, leak) * (scores - scores.max()))
        assert weights[relevant:].sum() / weights.sum() <= leak * SLACK


@FEW
@given(
    seed=st.integers(0, 10_000), relevant=st.integers(1, 9), signal=st.floats(0.5, 4), leak=st.floats(1e-5, 0.5),
    share=st.floats(0, 1).map(lambda share: round(share, 6)),
)  # fmt: skip
def test_the_saturated_head_leaks_and_decides_as_proposition_3_says(seed, relevant, signal, leak, share):
    """With noise up to the largest that the proposition allows, S/16 for two patterns."""
    noise = share * signal / 16
    data = TokenMixture(
        signal=signal, relevant_fraction=relevant / 10, noise=noise, noise_law="cube", samples=30
    )
    found = Saturation(data=data, leak=leak).compute(new_key(seed))
    assert found["leaked"] <= leak * SLACK
    assert found["margin"] >= found["bound"] / SLACK


@FEW
@given(seed=st.integers(0, 1000))
def test_best_margin_is_reached_and_never_beaten(seed):
    draw = np.random.default_rng(seed)
    direction = draw.standard_normal(5)
    features = draw.standard_normal((12, 5))
    labels = np.sign(features @ direction)
    best = theory.best_margin(features, labels)
    tries = draw.standard_normal((500, 5)) + 3 * direction
    tries *= sqrt(2) / np.linalg.norm(tries, axis=1, keepdims=True)
    assert best >= (labels[:, None] * (features @ tries.T)).min(axis=0).max() / SLACK
    assert best > 0


def test_features_that_no_direction_separates_have_no_margin():
    assert theory.best_margin(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0])) == 0


def test_margin_of_drawn_steps_spreads_as_one_over_root_heads_and_within_its_bound():
    """Under steps uniform on [-1, 1] the margin is linear in their mean size; its spread over 400 draws, known to 4 %, falls
    as H^-1/2, and no draw falls below its mean by more than the bound for a chance of 1e-6."""
    samples, counts = _sample(LOW_NOISE), (16, 256)
    row = np.asarray(nets.first_phase_row(samples))
    decoder_part, attention_part = (part.min() for part in margin_parts(LOW_NOISE, row, samples))
    bounds, spreads = mixture_bounds(LOW_NOISE, samples), []
    for heads in counts:
        network = Network(heads=float(heads), start="interval", simulated=heads)
        keys = jax.random.split(new_key(heads), 400)
        decoders = jax.jit(jax.vmap(lambda k, n=network: nets.start_heads(n, k, samples)[0].decoder))(keys)
        steps = np.asarray(decoders[:, :, 0] @ row / (row @ row))
        margins = decoder_part + np.abs(steps).mean(axis=1) * attention_part
        spreads.append(margins.std())
        assert margins.mean() - margins.min() <= theory.margin_deviation(bounds, 0.0, heads, 1e-6)
    assert np.log(spreads[1] / spreads[0]) / np.log(counts[1] / counts[0]) == pytest.approx(-0.5, abs=0.05)


def test_the_order_of_margins_holds_up_to_its_limit_and_not_beyond():
    for signal, expected in ((5.9, True), (6.1, False)):
        bounds = theory.MixtureBounds(4, 10, 2, signal, 0.1, NoiseBounds(0, 0, 0))
        assert (theory.ntk_margin(bounds, 0.0) <= theory.attention_margin(bounds)) == expected
        assert (signal <= theory.ordering_limit(bounds)) == expected


@given(
    signal=st.floats(0, 8), heads=st.floats(0, 20), power=st.floats(-2, 4), constant=st.floats(-8, 8),
    log_samples=st.floats(1.001, 30), scale=st.floats(0.05, 3),
)  # fmt: skip
def test_the_saturated_solution_is_never_an_affordable_target(
    signal, heads, power, constant, log_samples, scale
):
    assert not theory.saturated_target_feasible(
        10**signal, 10**heads, power, 10**constant, log_samples, scale
    )


def test_the_obstruction_scan_is_empty_as_soon_as_log_n_exceeds_one():
    assert theory.feasible_saturated_targets(1.01, points=9) == []


def test_the_obstruction_scan_would_find_a_target_if_there_were_one():
    assert theory.feasible_saturated_targets(0.01, points=9)


def test_negative_margins_ask_for_endless_heads():
    bounds = mixture_bounds(LOW_NOISE, _sample(LOW_NOISE))
    assert theory.heads_for_margin(bounds, 0.0, -1.0, 100, 0.05) == inf
