"""What the document says of sampling, complexity and random features, against brute force, limits and a second way."""

from decimal import Decimal, getcontext
from math import factorial, pi

import numpy as np
import pytest
import scipy.sparse as sparse

from lemmata.errors import BadInput
from lemmata.parts.graphs import adjacency, normalised
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.trials import Alternative, Existence, NearStart, Training
from lemmata.studies.gcn_sampling.trials.draws import Draws, drawn
from lemmata.studies.gcn_sampling.trials.rounds import Curvature, Problem, concept, smoothed
from lemmata.studies.gcn_sampling.trials.start import begin, mixture_distance, moved
from lemmata.threefry import new_key

SERIES = [
    (theory.EXP, 1.3),
    (theory.SIN, 2.0),
    (theory.COS, 1.0),
    (theory.TANH, 1.2),
    (theory.power_series(1, -0.5, 2), 1.5),
]


@pytest.mark.parametrize(("function", "size"), SERIES, ids=lambda x: getattr(x, "name", str(x)))
def test_sample_complexity_by_quadrature_is_the_series(function, size):
    by_terms = theory.sample_complexity_norm(function, size)
    assert theory.sample_complexity_by_quadrature(function, size) == pytest.approx(by_terms, rel=1e-12)


def test_model_complexity_is_the_series_in_fifty_digits():
    getcontext().prec = 50
    reach = (Decimal(1) / Decimal("0.01")).ln().sqrt() * Decimal("1.3")
    series = Decimal(2)  # both parts of the first term
    for i in range(1, 80):
        series += (Decimal("1.3") ** i + (reach / Decimal(i).sqrt()) ** i) / factorial(i)
    assert theory.model_complexity(theory.EXP, 1.3, 0.01) == pytest.approx(float(series), rel=1e-12)


def test_beyond_the_radius_of_tanh_complexity_is_refused():
    assert theory.sample_complexity_norm(theory.TANH, 1.5) > 100
    for measure in (theory.sample_complexity_norm, theory.sample_complexity_by_quadrature):
        with pytest.raises(
            BadInput, match=r"C_s of tanh diverges: its series converges below 1\.5708 only, and R is 1\.6"
        ):
            measure(theory.TANH, 1.6)
    with pytest.raises(BadInput, match="C_eps of tanh"):
        theory.model_complexity(theory.TANH, 0.8, 0.1, constant=2.0)


def test_gains_of_hermite_features_are_the_printed_numbers_and_above_their_bound():
    found = [theory.hermite_gain(i, 1.0) for i in range(1, 7)]
    np.testing.assert_allclose(
        found, [0.14683, 0.004821, -0.052081, -0.003692, 0.094543, 0.008242], atol=6e-7
    )
    for t in (0.5, 1.0, 2.0):
        assert all(abs(theory.hermite_gain(i, t)) >= theory.gain_bound(i, t) for i in range(1, 12))


@pytest.mark.parametrize("x", [-0.9, 0.2, 0.6])
def test_a_mean_over_random_features_is_a_power(x):
    for degree in range(1, 6):
        assert theory.feature_mean(degree, x, 1.0) == pytest.approx(x**degree, abs=1e-11)


def test_a_mean_over_random_features_is_the_sine():
    """Monte Carlo of Lemma D.2.1 with 4e5 draws: within five standard errors, and so small an E h^2 as the lemma says."""
    rng = np.random.default_rng(0)
    w, b = rng.normal(size=(400_000, 2)), rng.normal(size=400_000)
    for x in (0.3, 0.8):
        point = np.array([x, (1 - x**2) ** 0.5])
        h = theory.indicator_feature(theory.SIN, w[:, 0], b, 1.0, 5)
        terms = h * (w @ point + b >= 0)
        assert abs(terms.mean() - np.sin(x)) < 5 * terms.std() / 400_000**0.5
        assert np.mean(h**2) == pytest.approx(theory.feature_moment(theory.SIN, 1.0, 5), rel=0.05)


def test_clipping_costs_less_than_its_bound():
    for degree in range(1, 6):
        assert theory.clipped_tail(degree, theory.clip_at(degree, 1.0, 1e-3)) <= theory.tail_bound(1e-3, 1.0)
    assert theory.clipped_tail(3, 1.0) > theory.tail_bound(1e-3, 1.0)


def test_dominance_scalings_and_rates_of_figure_5_3():
    degrees, sizes, p = (10, 1), (100, 1900), (0.9, 0.1)
    np.testing.assert_allclose(theory.dominance(degrees, sizes), [0.345, 2.072], atol=5e-4)
    np.testing.assert_allclose(theory.pair_dominance(degrees, sizes)[0], theory.dominance(degrees, sizes))
    assert theory.implied_scale_constant(degrees, sizes, p) == pytest.approx(0.62, abs=0.005)
    constant = theory.implied_rate_constant(degrees, sizes, p, (0.9, 0.9))
    assert constant == pytest.approx(0.069, abs=0.0005)
    rates = theory.min_rate(degrees, sizes, p, constant)
    assert max(rates) == pytest.approx(0.9)
    assert theory.implied_rate_constant(degrees, sizes, p, rates) == pytest.approx(constant)


def test_groups_of_higher_degree_need_higher_rates_and_smaller_scalings_lower_ones():
    rates = theory.min_rate((1, 4, 16), (50, 50, 50), (1, 1, 1), 0.1)
    assert rates[0] < rates[1] < rates[2]
    assert theory.min_rate((1, 4, 16), (50, 50, 50), (1, 1, 0.5), 0.1)[2] < rates[2]
    symmetric = theory.symmetric_min_rate((1, 4, 16), (50, 50, 50), (1, 1, 1), 0.1)
    np.testing.assert_allclose(symmetric, rates**2)
    caps = theory.max_scaling((10, 1), (100, 1900))
    assert np.argmin(caps) == 1
    np.testing.assert_allclose(theory.symmetric_max_scaling((10, 1), (100, 1900)), caps**2)


def _star(rows=((0, 1), (0, 2), (0, 3), (3, 4))):
    return normalised(adjacency(np.array(rows), 5)), np.array([0, 0, 1, 1, 1])


def test_sampled_matrices_have_the_exact_mean_variance_and_deviation():
    """All ways to draw 1 of 2 and 2 of 3 nodes, each as likely as the others."""
    matrix, group = _star()
    p, rates, draws = (0.7, 0.3), (1 / 2, 2 / 3), []
    for first in ([0], [1]):
        for second in ([2, 3], [2, 4], [3, 4]):
            factor = np.zeros(5)
            factor[first], factor[second] = 0.7 * 2, 0.3 * 1.5
            draws.append((matrix @ sparse.diags_array(factor)).toarray())
    star = theory.effective(matrix, group, p).toarray()
    np.testing.assert_allclose(np.mean(draws, axis=0), star, atol=1e-15)
    variance = theory.entry_variance(matrix, group, p, rates).toarray()
    np.testing.assert_allclose(np.var(draws, axis=0), variance, atol=1e-15)
    apart = np.mean([np.abs(d - star).sum(1) for d in draws], axis=0)
    np.testing.assert_allclose(theory.row_deviation(matrix, group, p, rates), apart, atol=1e-15)


def test_the_largest_admissible_scaling_balances_the_groups():
    """Where all degrees are alike, (5.8) scales each group by the inverse of its size: their columns then weigh the same."""
    sizes, group = (2, 6), np.repeat([0, 1], (2, 6))
    matrix = sparse.csr_array(np.full((8, 8), 0.25))
    scaling = theory.max_scaling((7, 7), sizes)
    assert theory.imbalance(matrix, group) == pytest.approx(3.0)
    assert theory.imbalance(theory.effective(matrix, group, scaling), group) == pytest.approx(1.0)


def test_the_symmetric_sampler_loses_whole_rows():
    """A node that is not drawn has no row left, whatever the rate: against Lemma D.1.3. At degree 2 that is p* / 3 or more."""
    far, near = (Draws(rate=rate, draws=20).compute(new_key(0)) for rate in (0.5, 0.98))
    assert far["worst_symmetric"] > near["worst_symmetric"] > 0.1
    assert near["worst_symmetric"] > near["worst_deviation"]


def test_the_symmetric_sampler_is_biased_as_its_exact_mean_says():
    matrix, group = _star()
    p, samples, sizes, draws = (0.7, 0.3), [1, 2], [2, 3], []
    for first in ([0], [1]):
        for second in ([2, 3], [2, 4], [3, 4]):
            root = np.zeros(5)
            root[first], root[second] = (0.7 * 2) ** 0.5, (0.3 * 1.5) ** 0.5
            draws.append(root[:, None] * matrix.toarray() * root)
    mean = theory.symmetric_mean(matrix, group, p, samples, sizes).toarray()
    np.testing.assert_allclose(np.mean(draws, axis=0), mean, atol=1e-15)
    star = theory.effective(matrix, group, p, symmetric=True).toarray()
    np.testing.assert_allclose(np.diag(mean), np.diag(star))
    assert np.all(mean[star > 0] <= star[star > 0] + 1e-15)


def test_row_sums_with_self_loops_are_those_of_large_graphs():
    degrees, sizes, p = (10, 1), (100, 1900), (0.7, 0.3)
    assert theory.row_sum(degrees, sizes, p) == pytest.approx(
        0.70, abs=0.01
    )  # 0.71 measured; 0.86 as printed
    assert theory.row_sum_printed(degrees, sizes, p) == pytest.approx(0.86, abs=0.005)
    assert theory.row_sum((5,), (100,), (1,)) == pytest.approx(1)  # every row of a regular graph


def test_a_row_times_unit_features_is_no_longer_than_the_norm():
    matrix, _ = _star()
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    assert np.linalg.norm(matrix @ x, axis=1).max() <= theory.max_row_sum(matrix)


def test_labels_that_share_a_feature_are_counted_along_the_graph():
    path = adjacency(np.array([[i, i + 1] for i in range(20)]), 21)
    assert theory.dependency_degree(path, 1) == 5
    assert theory.dependency_degree(path, 3) == 13


def test_table_d_2_wants_what_no_real_width_has():
    p = theory.parameters(500, 500, 0.01, 30.0)
    assert p.reg_v == pytest.approx(2 * 0.01 * 500 / 500**0.99)
    assert p.reg_w == pytest.approx(2 * 0.01 * 500**2.98 / 30**4)
    assert theory.reach_margin(10**6, 10**6, 0.01) < 1


def test_label_complexity_goes_with_the_logarithm_of_the_width_and_the_eighth_power_of_the_norm():
    s = theory.sizes_of(Training())
    base = theory.label_complexity(s)
    assert theory.label_complexity(s._replace(width=s.width**2)) == pytest.approx(2 * base)
    eps_of_four = theory.accuracy_needed(s._replace(outputs=4))
    four = theory.label_complexity(s._replace(outputs=4), accuracy=2 * eps_of_four)
    assert four == pytest.approx(2**6 * base)
    eps = theory.accuracy_needed(s)
    more = theory.label_complexity(s._replace(norm=s.norm * 1.001), accuracy=eps)
    slope = np.log(more / base) / np.log(1.001)
    low, high = theory.norm_degree(s.norm)
    assert low < slope < high + 0.01
    assert theory.vanishing_share(10, 10**6) < 1 < theory.vanishing_share(10, 2000)


def test_label_complexity_takes_the_eps_of_the_theorem_and_not_eps_0():
    """With one neuron each eps is 5.7e-7, and C_eps(sin, C_eps(sin, 1)) is 5461, where eps_0 = 0.01 gives 47."""
    s = theory.sizes_of(Training())._replace(outer=1, inner=1)
    eps = theory.accuracy_needed(s)
    nested = [
        theory.model_complexity(theory.SIN, theory.model_complexity(theory.SIN, 1.0, one), one)
        for one in (eps, 0.01)
    ]
    assert nested == pytest.approx([5460.55, 47.0727], rel=1e-5)
    own = theory.model_complexity(theory.SIN, 1.0, eps)
    middle = 1 + nested[0] * own * (s.norm + 1) ** 4
    rest = 0.01**-2 * s.norm**8 * 2**6 * 11**4 * np.log(2000) * np.log(500)
    assert theory.label_complexity(s) == pytest.approx(rest * middle, rel=1e-12)
    assert theory.width_needed(s) == pytest.approx(nested[0] * s.norm / eps, rel=1e-12)


def test_conditions_of_the_theorem_are_those_of_the_targets_own_widths():
    trial = Training()
    s = theory.sizes_of(trial)
    assert (s.outer, s.inner) == (trial.graph.target_width, trial.graph.target_width) == (10, 10)
    margins = {c.name: c.margin for c in theory.theorem_conditions(trial)}
    assert margins["(5.18) labelled nodes"] == trial.labels / theory.label_complexity(s)
    assert margins["(5.17) width m"] == trial.width / theory.width_needed(s)


def test_complexities_are_finite_as_long_as_float64_is_and_then_infinite():
    """The series of e^z at R, in log form: sums over i are dominated by terms far beyond 170."""
    assert theory.sample_complexity_norm(theory.EXP, 600.0) == pytest.approx(
        theory.sample_complexity_by_quadrature(theory.EXP, 600.0), rel=1e-9
    )
    s = theory.sizes_of(Training())
    for width in (10, 100, 10**6, 10**36):
        wide = s._replace(outer=width, inner=width)
        assert theory.label_complexity(wide) > 1e70
        assert theory.width_needed(wide) > 1e50
    assert theory.label_complexity(s._replace(outer=10**6, inner=10**6)) == np.inf


def test_noise_turns_signs_as_often_as_the_arctangent_says():
    assert theory.overtaken_chance(1.0, 1) == 0.5
    assert theory.flip_chance(1000**-0.99, 1000) == pytest.approx(0.0108, abs=2e-4)
    found = NearStart(width=400, repeats=2).compute(new_key(1))
    assert found["overtaken"] == pytest.approx(theory.overtaken_chance(400**-0.99, 400), rel=0.1)
    assert found["flips"] == pytest.approx(theory.flip_chance(400**-0.99, 400), rel=0.15)


def test_random_signs_leave_the_norms_as_the_lemmas_say():
    """Lemma D.2.13, all 2^6 signs: E|V + sqrt(eta) S V'|^2 is the sum, and the 2,4-norm keeps below its bound."""
    rng = np.random.default_rng(0)
    v, w = rng.normal(size=(2, 6, 3)), rng.normal(size=(2, 3, 6))
    signs = np.array(np.meshgrid(*[[-1, 1]] * 6)).reshape(6, -1).T
    eta = 0.01
    squares = [np.sum((v[0] + eta**0.5 * s[:, None] * v[1]) ** 2) for s in signs]
    assert np.mean(squares) == pytest.approx(np.sum(v[0] ** 2) + eta * np.sum(v[1] ** 2), rel=1e-12)
    fourth = [theory.column_norm(w[0] + eta**0.5 * w[1] * s, 4) ** 4 for s in signs]
    norms = [theory.column_norm(one, 4) for one in w]
    slack = eta**2 * norms[1] ** 4
    assert np.mean(fourth) <= norms[0] ** 4 + 6 * eta * norms[0] ** 2 * norms[1] ** 2 + slack
    assert theory.column_norm(w[0], 2) == pytest.approx(np.linalg.norm(w[0]))


def test_rates_and_samples_that_cannot_be_are_refused():
    with pytest.raises(BadInput, match=r"lies in \(0, 1\], not 1.2"):
        theory.sample_sizes((10,), (1.2,))
    with pytest.raises(BadInput, match="12 of the 10 nodes of a group cannot be sampled"):
        theory.rates_of((12,), (10,))
    assert theory.sample_sizes((10, 1000), (0.01, 0.0004)).tolist() == [1, 1]
    assert theory.TANH.radius == pi / 2


# The start ---------------------------------------------------------------------------------------------------------------


def test_after_smoothing_frozen_signs_cost_the_square_of_the_move():
    """Lemma D.2.11; 60 draws of noise leave the slope within a tenth of 2."""
    found = NearStart(width=64, repeats=60).compute(new_key(0))["smoothing"]
    assert np.log2(found[0] / found[-1]) / 3 == pytest.approx(2, abs=0.2)


def test_the_proofs_pseudo_network_needs_rows_of_one_length():
    """Lemma D.2.4: exact in the limit where rows of A* X are alike, off elsewhere; and a mean over neurons falls as m^-1/2."""
    even, drawn = (
        Existence(width=256, starts=2, design=one).compute(new_key(1)) for one in ("even", "drawn")
    )
    assert even["endless_error"] < 1e-12
    assert drawn["endless_error"] > 0.05
    wide = Existence(width=16_384, starts=2, design="even").compute(new_key(1))
    assert wide["feature_error"] < even["feature_error"] / 3


def test_a_mixture_of_scales_is_as_far_from_a_gaussian_as_its_quantiles_say():
    """Scales 1/2 and 3/2, half of the mass each, against sorted draws."""
    z = np.random.default_rng(0).normal(size=200_000)
    mixed = np.sort(np.concatenate([0.5 * z, 1.5 * z]))
    plain = np.sort(np.concatenate([z, z])) * (1.25**0.5)
    assert mixture_distance(np.array([0.5, 1.5])) == pytest.approx(
        np.sqrt(np.mean((mixed - plain) ** 2)), rel=0.02
    )


@pytest.fixture(scope="module")
def problem():
    trial = Alternative(width=6, draws=4)
    rng = np.random.default_rng(3)
    star = theory.effective(drawn(trial.graph, rng), trial.graph.group_of, trial.scaling)
    net = begin(star, star @ rng.normal(size=(trial.graph.nodes, 10)) / 10**0.5, 6, 2, rng)
    labels = concept(star, net.seen, 2, 2, rng)
    noises = [(0.05 * rng.normal(size=(10, 6)), 0.05 * rng.normal(size=(6, 6))) for _ in range(4)]
    signs = rng.choice([-1.0, 1.0], (2, 6))
    problem = Problem(net, labels, (0.3, 0.02), noises, np.concatenate([signs, -signs]))
    return problem, (0.1 * rng.normal(size=(10, 6)), 0.1 * rng.normal(size=(6, 6)))


def test_the_gradient_of_the_smoothed_objective_is_its_difference(problem):
    one, at = problem
    slope, rng = one.gradient(at, 0.9), np.random.default_rng(4)
    step = rng.normal(size=at[0].shape), rng.normal(size=at[1].shape)
    tiny = 1e-6
    there, back = (one.objective(moved(at, step, sign * tiny), 0.9) for sign in (1, -1))
    wanted = sum(float(np.sum(a * b)) for a, b in zip(slope, step, strict=True))
    assert (there - back) / (2 * tiny) == pytest.approx(wanted, rel=1e-5)


def test_the_curvature_of_the_smoothed_objective_is_the_difference_of_its_gradient(problem):
    """Along a random direction, by steps so small that no sign turns; and its lowest eigenvalue by a dense matrix."""
    one, at = problem
    rng, tiny = np.random.default_rng(5), 1e-7
    along = rng.normal(size=at[0].shape), rng.normal(size=at[1].shape)
    found = one.curved(at, 0.9, along)
    there, back = (one.gradient(moved(at, along, sign * tiny), 0.9) for sign in (1, -1))
    for own, plus, minus in zip(found, there, back, strict=True):
        np.testing.assert_allclose(own, (plus - minus) / (2 * tiny), rtol=1e-4, atol=1e-6)
    columns = []
    for place in np.eye(96):
        parts = one.curved(at, 0.9, (place[:60].reshape(10, 6), place[60:].reshape(6, 6)))
        columns.append(np.concatenate([part.ravel() for part in parts]))
    whole = np.array(columns)
    np.testing.assert_allclose(whole, whole.T, atol=1e-14)
    assert one.lowest_curvature(at, 0.9) == pytest.approx(np.linalg.eigvalsh(whole)[0], rel=1e-8)


def test_rounds_begin_where_nothing_is_learnt_and_have_the_documents_sizes():
    found = smoothed(Curvature(width=4), np.random.default_rng(0))
    assert found.objective(found.untouched, 1.0) == pytest.approx(
        np.mean(
            [
                0.5 * np.mean(np.sum((found.net.outputs(w) - found.labels) ** 2, 1))
                for w in found.at(found.untouched)
            ]
        )
    )
    assert theory.curvature_bound(16, 16) == pytest.approx(-(256.0**-8))
    assert theory.decay_end(1.0) == pytest.approx(0.04)


def test_the_best_move_with_random_signs_lowers_the_objective_most(problem):
    """Lemma D.2.13: no other of 200 random moves of one neuron does better."""
    one, at = problem
    tiny, now = 1e-4, one.objective(at, 1.0)

    def curve(move):
        return sum(one.objective(moved(at, move, sign * tiny), 1.0) for sign in (1, -1)) / 2 - now

    found, rng = curve(one.best_move(at, 1.0)), np.random.default_rng(5)
    for _ in range(200):
        w, v, i = np.zeros((10, 6)), np.zeros((6, 6)), rng.integers(6)
        w[:, i], v[i] = rng.normal(size=10), rng.normal(size=6)
        assert curve((w / np.linalg.norm(w), v / np.linalg.norm(v))) > found
