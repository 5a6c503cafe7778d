import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.threefry import new_key

KEY = new_key(100)
sizes = st.sampled_from([(16, 4), (24, 3), (64, 4), (40, 5)])
rates = st.floats(0.02, 0.9)


@pytest.mark.parametrize(
    ("D", "C", "q", "noise"),
    [
        (64, 4, 0.25, 3.6e-3),
        (64, 4, 0.2, 1.5e-3),
        (100, 5, 0.25, 5.8e-4),
        (400, 5, 0.1, 2.5e-5),
        (256, 8, 0.3, 7.9e-6),
    ],
)
def test_label_noise_has_the_known_values_and_half_of_it_is_lost_for_good(D, C, q, noise):
    assert theory.label_noise(D, C, q) == pytest.approx(noise, rel=0.02)
    assert theory.label_noise(D, C, q) <= theory.label_noise_bound(D, C, q)
    assert theory.bayes_error(D, C, q) == pytest.approx(noise / 2, rel=0.02)


@pytest.mark.parametrize(
    ("D", "C", "q", "error"),
    [
        (64, 4, 0.25, 0.152),
        (64, 4, 0.4, 0.208),
        (144, 4, 0.15, 0.192),
        (400, 5, 0.1, 0.213),
        (256, 8, 0.3, 0.177),
    ],
)
def test_equal_weight_linear_models_err_as_the_normal_law_and_no_link_helps(D, C, q, error):
    assert theory.glm_error(D, C, q) == pytest.approx(error, abs=6e-4)
    assert theory.glm_best_error(D, C, q) == pytest.approx(theory.glm_error(D, C, q), rel=1e-9)
    assert theory.glm_error_normal(D, C, q) == pytest.approx(error, abs=2e-3)


def test_the_executable_regime_is_where_linear_models_err_an_eighth():
    at_one = theory.spurious_rate_for(0.756, 4096, 8)
    assert theory.spurious_margin(4096, 8, at_one) == pytest.approx(1)
    assert theory.glm_error_normal(4096, 8, at_one) == pytest.approx(theory.GLM_FLOOR, abs=1e-3)


def test_linear_models_approach_a_coin_flip_as_spurious_features_dominate():
    errors = [theory.glm_error(1024, 4, q) for q in (0.1, 0.3, 0.9)]
    assert errors == sorted(errors)
    assert errors[-1] > 0.42


@pytest.mark.parametrize(("m", "bound"), [(256, 0.35), (1024, 0.168), (4096, 0.083)])
def test_planted_sets_hide_better_the_larger_the_set(m, bound):
    assert theory.planted_distance_bound(m, 4, 0.25) == pytest.approx(bound, abs=2e-3)
    assert theory.planted_distance(m, 4, 0.25) <= theory.planted_distance_bound(m, 4, 0.25)


def test_planted_signs_differ_at_most_twice_as_much_and_linear_tests_are_best():
    """Telling planted +1's from planted -1's at unknown places is the linear model's own problem."""
    signs = theory.planted_signs_distance(64, 4, 0.25)
    assert signs <= 2 * theory.planted_distance(64, 4, 0.25)
    assert (1 - signs) / 2 == pytest.approx(theory.glm_error(64, 4, 0.25), rel=1e-9)


@given(sizes, st.floats(-1, 5), st.floats(-2, 4), st.floats(-1, 1), st.sampled_from([1.0, 2.5]))
def test_tied_scores_are_a_row_of_a_softmax(size, beta, gamma, rho, tau):
    D, C = size
    scores = theory.tied_scores(D, C, beta, gamma, rho, tau)
    assert scores.self_score + (C - 1) * scores.same + (D - C) * scores.cross == pytest.approx(1)
    assert scores.gain == pytest.approx(D * (1 - (D - C) * scores.cross))
    # Lemma G.4 at its worst: every spurious coefficient nonzero
    assert scores.self_score + (C - 1) * scores.same + (D - C) * scores.cross <= 2


@settings(max_examples=40, deadline=None)
@given(sizes, rates, st.floats(0, 4), st.floats(0, 2), st.sampled_from([3, 5]))
def test_the_rest_of_the_image_helps_the_value_vector(size, q, beta, gamma, p):
    """Lemma D.6 says the noise part cancels; it is positive wherever there is cross-group attention."""
    D, C = size
    signal, rest = theory.drive_moments(D, C, q, p, theory.tied_scores(D, C, beta, gamma))
    assert signal > 0
    assert rest > 0


def test_drive_moments_have_the_known_values():
    known = {
        0: (1.0e3, 1.5e4, 256),
        2: (4.9e3, 1.9e4, 3.4e3),
        3: (2.5e4, 4.1e4, 2.2e4),
        4: (1.25e5, 9.2e4, 1.2e5),
    }
    for beta, (signal, rest, leading) in known.items():
        scores = theory.tied_scores(64, 4, beta)
        assert theory.drive_moments(64, 4, 0.25, 3, scores) == pytest.approx((signal, rest), rel=0.05)
        assert 4 * scores.gain**3 == pytest.approx(leading, rel=0.03)


def test_first_event_time_has_exponent_p_minus_2_where_the_paper_prints_p_minus_1():
    for p in (3, 5):
        corrected = [theory.event1_time(64, 4, 0.25, p, 2.0, 1e-3, a) for a in (1e-4, 1e-3)]
        printed = [theory.event1_time_printed(4, p, 1e-3, a) for a in (1e-4, 1e-3)]
        assert np.log10(corrected[1] / corrected[0]) == pytest.approx(-(p - 2))
        assert np.log10(printed[1] / printed[0]) == pytest.approx(-(p - 1))


def test_pooled_sums_over_a_doubly_stochastic_attention_drift_without_the_diagonal():
    """The mean pull in the linear phase is `D C`: the mean of `sum_i D m_i`, whatever beta is."""
    for beta in (0.0, 2.0, 4.0):
        signal, rest = theory.drive_moments(64, 4, 0.25, 1, theory.tied_scores(64, 4, beta))
        assert signal + rest == pytest.approx(64 * 4)
        assert signal == pytest.approx(4 * theory.tied_scores(64, 4, beta).gain)
    assert theory.linear_drift(64, 4, 1e-3, 1e-2) == pytest.approx(1e-2 * 1e-3 * 128)


def test_linear_phase_is_over_long_before_its_printed_end():
    """Quadrature of `dx/ds = D C / 2 + c x^(p-1)`: the cubic part takes over inside the phase called linear."""
    full = theory.linear_phase_end_full(64, 4, 0.25, 1e-3, 3, 4.0, 1e-4)
    assert full < 0.1 * theory.linear_phase_end(64, 4, 1e-3, 3, 1e-4)
    ratio = theory.linear_phase_end_full(64, 4, 0.25, 1e-5, 3, 4.0, 1e-4) / full
    assert ratio == pytest.approx(10.0, rel=1e-6)


@given(sizes, rates)
def test_event_probabilities_of_pairs_sum_to_one(size, q):
    assert sum(theory.same_pair_events(*size, q).values()) == pytest.approx(1)
    assert sum(theory.cross_pair_events(*size, q).values()) == pytest.approx(1)


def test_event_probabilities_are_frequencies():
    D, C, q, n = 16, 4, 0.4, 40_000
    model = Structured(patches=D, group_size=C, spurious_rate=q, partition="contiguous")

    @jax.jit
    def drawn(key):
        group_of = model.group_of(key)
        return group_of, *model.draw_coefficients(key, group_of, n)

    group_of, labels, coefficients = map(np.asarray, drawn(KEY))
    own = coefficients[:, group_of == 0]
    # signal groups are told apart here because a group equal to the label is signal or all-spurious: count both
    alike = np.mean(np.all(own == np.asarray(labels)[:, None], axis=1))
    expected = C / D + (1 - C / D) * (q / 2) ** C
    assert abs(alike - expected) < 3 * np.sqrt(expected / n)
    zero = np.mean(np.all(own == 0, axis=1))
    assert abs(zero - theory.same_pair_events(D, C, q)["b"]) < 3 * np.sqrt(zero / n)


@settings(max_examples=100, deadline=None)
@given(
    st.floats(1e-3, 0.2),
    st.floats(0.3, 1.0),
    st.floats(1e-3, 0.1),
    st.floats(1, 4),
    st.sampled_from([2, 3, 4]),
)
def test_tensor_power_recursions_arrive_in_time(z0, goal, low, spread, k):
    """Lemma K.1, on recursions that use any rate between the two bounds."""
    high = low * spread
    bound = theory.tensor_power_bound(z0, goal, low, high, k)
    if bound > 2e5:
        return
    rng, z, steps = np.random.default_rng(0), z0, 0
    while z < goal:
        z, steps = z + rng.uniform(low, high) * z**k, steps + 1
    assert steps <= bound


@pytest.mark.parametrize("extra", [1, 2])
def test_lemma_k2_is_false_as_printed_for_small_rates_and_true_as_mended(extra):
    z0, goal, rate, k, A = 0.01, 0.5, 0.02, 2, 0.002
    z, product = z0, 1.0
    while z < goal:
        product *= 1 + A * z ** (k - 1 + extra)
        z += rate * z**k
    assert product > theory.tensor_power_product_printed(z0, goal, rate, rate, k, extra, A)
    assert product <= theory.tensor_power_product_bound(goal, rate, rate, k, extra, A)


@given(st.integers(10, 300), st.floats(0.05, 0.5), st.floats(0.1, 1.0), st.integers(1, 6))
def test_counts_of_spurious_patches_obey_their_tails(terms, q, eps, k):
    tail = 1 - binom.cdf(np.ceil((1 + eps) * q * terms - 1e-9) - 1, terms, q)
    assert tail <= theory.spurious_count_tail(terms, q, eps) + 1e-12
    C = min(terms, 8)
    assert 1 - binom.cdf(k - 1, C, q) <= theory.group_count_tail(C, q, k) + 1e-12


@given(st.floats(0.01, 3.0), st.sampled_from([3, 5]))
def test_lemma_k5_is_true_exactly_in_its_range(a, p):
    low, middle, high = theory.sigmoid_power_sides(np.float64(a), p)
    inside, outside = theory.SIGMOID_POWER_RANGE
    if inside * 1.01 < a**p < outside * 0.99:
        assert low <= middle <= high
    elif a**p < inside * 0.99 or a**p > outside * 1.01:
        assert not low <= middle <= high


@given(st.floats(1e-6, 50))
def test_sigmoid_is_comparable_to_the_loss(x):
    low, high = theory.SIGMOID_OVER_LOSS
    assert low - 1e-12 <= theory.sigmoid_over_loss(np.float64(x)) <= high + 1e-12
    assert low >= 0.7213


@given(st.floats(1e-6, 1e3), st.floats(1e-6, 1e3))
def test_lemma_k7(x, y):
    left, right = theory.log_product_sides(np.float64(x), np.float64(y))
    assert left <= right * (1 + 1e-12)


vectors = st.lists(st.floats(-3, 3), min_size=5, max_size=5).map(np.array)


@given(vectors, vectors, st.sampled_from([3, 5]))
def test_sigmoid_of_powers_is_lipschitz_where_no_power_is_very_negative(x, y, p):
    floor = -((1 / 5) ** (1 / p))
    left, right = theory.sigmoid_lipschitz_sides(np.maximum(x, floor), np.maximum(y, floor), p)
    assert left <= right + 1e-12


@given(vectors, vectors, vectors)
def test_softmax_and_pooled_powers_are_lipschitz_in_the_logits(a, b, c):
    left, right = theory.softmax_lipschitz_sides(a, b)
    assert np.all(left <= right + 1e-12)
    for sign in (1, -1):
        gap, bound = theory.pooled_lipschitz_sides(a, b, sign * np.abs(c), 3)
        assert gap <= bound + 1e-9 * (1 + bound)


def test_lemma_e16_fails_when_signs_differ():
    a, b, c = np.zeros(5), np.array([0.1, 0, 0, 0, 0]), np.array([1.0, -0.25, -0.25, -0.25, -0.25])
    gap, bound = theory.pooled_lipschitz_sides(a, b, c, 3)
    assert gap > bound


def test_only_the_signal_event_matters_when_the_diagonal_dominates():
    """The key step of Lemma G.1: order times probability is largest when the pair is in the signal group."""
    D, C, q = 4096, 8, 0.01
    scores = theory.tied_scores(D, C, 7.0)
    orders = theory.same_pair_orders(D, C, 3, 0.01, scores, budget=C + q * D)
    chance = theory.same_pair_events(D, C, q)
    share = {"a": orders["a"] * chance["a"], "b": orders["b"] * chance["b"], "d": orders["d"] * chance["d"]}
    share["c"] = orders["c"] * sum(chance[f"c{k}"] for k in range(1, C))
    assert share.pop("a") > max(share.values())
    cross = theory.cross_pair_orders(D, C, 3, 0.01, scores, budget=C + q * D)
    assert cross["b"] == max(cross.values())


def test_second_event_lasts_as_its_leading_order_says_and_never_as_printed():
    """With q D fixed the time to gamma = 1 hardly depends on D below e^beta and is linear in it far above; the printed form
    does not know D at all. The leading order is within a factor 6 of the quadrature, which has no constant to choose."""
    times = {D: theory.event2_duration(D, 4, 16 / D, 3, 5.0, 1.0) for D in (36, 72, 1024, 2048)}
    assert np.log2(times[72] / times[36]) < 0.6
    assert np.log2(times[2048] / times[1024]) == pytest.approx(1, abs=0.15)
    for D, time in times.items():
        assert 1 < theory.event2_duration_leading(D, 4, 3, 5.0, 1.0) / time < 6
    assert theory.event2_duration(64, 4, 0.25, 3, 5.0, 2.0) == pytest.approx(
        theory.event2_duration(64, 4, 0.25, 3, 5.0, 1.0) / 2
    )
    assert theory.event2_duration(64, 4, 0.0, 3, 5.0, 1.0) == np.inf
    assert theory.event2_duration_printed(3, 1e-3, 2.0, 25.0) == pytest.approx(25.0**3 * 1e3 / np.exp(2))


def test_bounds_on_rho_differ_by_the_spurious_budget_that_two_of_them_drop():
    """Lemma G.2 keeps `k = q D log d`: without spurious patches only its first term is left, and it grows as k^p; the other two
    do not change with q."""
    scores = theory.tied_scores(64, 4, 2.0, 1.0)

    def bound(version, q):
        return version(64, 4, 32, q, 3, 0.05, scores, 25.0)

    first = 16 * 0.05 * (0.05 * scores.gain) ** 2 * scores.cross * 25 / 64
    assert bound(theory.cross_growth_bound, 0.0) == pytest.approx(first)
    assert (bound(theory.cross_growth_bound, 0.4) - first) / (
        bound(theory.cross_growth_bound, 0.2) - first
    ) == pytest.approx(8)
    for version in (theory.cross_growth_lemma43, theory.cross_growth_corollary):
        assert bound(version, 0.4) == bound(version, 0.0)
    assert bound(theory.cross_growth_lemma43, 0.1) == pytest.approx(
        0.05**3 * (1 + scores.same * scores.gain**2) / 64
    )
    assert bound(theory.cross_growth_corollary, 0.1) == pytest.approx(
        0.05**3 * (1 + 25 * scores.cross * scores.gain**2) / 64
    )


def test_one_step_of_transfer_points_as_well_as_the_known_values():
    known = {(64, 4): 0.67, (64, 8): 0.78, (64, 16): 0.89, (64, 64): 0.97, (256, 16): 0.67, (256, 64): 0.89}
    for (D, samples), cosine in known.items():
        assert theory.one_step_cosine(D, 4, samples) == pytest.approx(cosine, abs=0.045)
    snr = theory.transfer_snr(64, 4, 4096, 0.9, theory.tied_scores(64, 4, 2.0, 3.5))
    assert snr > 3


def test_one_sample_has_the_sign_of_the_vote_and_more_samples_follow_the_normal_law():
    assert theory.sign_error(64, 4, 0.25, 1) == pytest.approx(theory.glm_error(64, 4, 0.25))
    for D in (64, 1600):
        q = 16 / D
        needed = theory.sign_samples(4, q * (D - 4), 0.05)
        assert 2 < needed < 3
        assert theory.sign_error(D, 4, q, 3) < 0.05 < theory.sign_error(D, 4, q, 2)


def test_coupons_are_a_constant_number_of_samples_a_group_and_nothing_without_spurious_patches():
    rates = [theory.coupon_samples(D, 4, 16 / D, 0.05) * 4 / D for D in (784, 3136)]
    assert rates[0] == pytest.approx(rates[1], rel=0.01)
    assert 3.3 < rates[1] < 3.6
    assert theory.coupon_error(784, 4, 16 / 784, 2) == pytest.approx(
        theory.glm_error_normal(784, 4, 16 / 784), rel=0.01
    )
    assert theory.coupon_samples(784, 4, 0.0, 0.05) == 2


def test_slots_alone_pull_the_auc_of_the_groups_below_a_half():
    """By counting pairs of a logit matrix that knows the slots and nothing else."""
    from lemmata.studies.spatial_structure.network import association

    slots, groups = np.tile(np.arange(4), 4), np.repeat(np.arange(4), 4)
    logits = (slots[:, None] == slots[None]).astype(float)
    found = jax.jit(lambda logits, groups: association(logits, groups, 4))(logits, groups)
    assert found["auc"] == pytest.approx(theory.slot_group_auc(16, 4))
    assert theory.slot_group_auc(16, 4) == 0.375


def test_error_floor_without_association_decays_with_seen_groups_and_survives_at_large_D():
    floors = theory.unassociated_error_floor(1024, 4, 0.25, np.array([0, 64, 1024]))
    assert floors[0] == pytest.approx(theory.glm_error(1024, 4, 0.25))
    assert floors[0] > floors[1] > floors[2]


def test_activation_is_a_power_where_lemma_d7_says_so():
    z = np.geomspace(theory.linear_part_negligible_from(1e-3, 3), 10, 50)
    ratio = (3 * z**2 + 1e-3) / (3 * z**2)
    assert np.all((ratio >= 1) & (ratio <= 1.5))


def test_loss_bounds_error_with_the_factor_log_2():
    margin = jnp.linspace(-5, 5, 101)
    loss = np.logaddexp(0, -np.asarray(margin))
    assert np.all((np.asarray(margin) <= 0) <= np.asarray(theory.error_from_loss(loss)) + 1e-12)


def test_printed_sum_of_alignments_has_its_two_terms():
    """Lemma D.16: the first does not know D (but for lambda0 = D^0.01), the second is proportional to it."""
    first, second = (theory.alignment_power_sum(D, 4, 3, 1e-3, 1.0, 1e-4, 5.0) for D in (100, 200))
    slow, fast = (theory.alignment_power_sum(200, 4, 3, 1e9, eta, 1e-4, 5.0) for eta in (1.0, 2.0))
    assert second / first == pytest.approx(2**-0.03, rel=1e-3)
    assert slow == pytest.approx(2 * fast, rel=1e-3)
    assert slow == pytest.approx(200 / (4 * np.exp(5)), rel=1e-3)


def test_logits_may_move_by_their_start_and_a_little_in_the_linear_phase():
    """Lemma E.4 at its two ends."""
    assert theory.logit_bound(0.0, 8, 1e-4, 3, 36, 3.0) == pytest.approx(1e-4 / (36 * np.exp(3)))
    assert theory.logit_bound(1e-3, 8, 1e-30, 3, 36, 3.0) == pytest.approx(1e-3 * np.sqrt(8 * np.log(8)))


@pytest.mark.parametrize(("beta", "p"), [(0.0, 3), (4.0, 3), (8.0, 3), (4.0, 5), (12.0, 4)])
def test_the_end_of_the_linear_phase_agrees_with_another_quadrature_to_1e_11(beta, p):
    """Of 1 / (a + c x^k) over [0, 1] by Gauss-Legendre on panels in log x; for k = 2 also by the arc tangent."""
    D, C, q, nu, eta = 64, 4, 0.25, 1e-3, 1e-4
    a, c, k = D * C / 2, theory.event1_constant(D, C, q, p, beta), p - 1
    place, weight = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(-40, 0, 161)
    x = np.exp(((edges[:-1] + edges[1:]) / 2)[:, None] + place * 0.125)
    exact = float(np.sum(0.125 * weight * x / (a + c * x**k)))
    if k == 2:
        assert exact == pytest.approx(np.arctan(np.sqrt(c / a)) / np.sqrt(a * c), rel=1e-13)
    found = theory.linear_phase_end_full(D, C, q, nu, p, beta, eta) * eta * nu ** ((p - 2) / (p - 1))
    assert found == pytest.approx(exact, rel=1e-11)
