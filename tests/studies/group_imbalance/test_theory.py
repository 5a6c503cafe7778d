"""rho, the bounds, Fisher information: two independent ways to every number, and the limits."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from lemmata.errors import BadInput
from lemmata.studies.group_imbalance import theory
from lemmata.studies.group_imbalance.data import mixture
from lemmata.studies.group_imbalance.network import Kind, curvature, loss_of, predict_proba
from lemmata.studies.group_imbalance.theory import bounds, population
from lemmata.studies.group_imbalance.theory.bounds import Setting

RNG = np.random.default_rng(0)


def _setting(shift=1.0, spreads=(1.0, 1.5), fractions=(0.6, 0.4), neurons=2, dim=4) -> Setting:
    means = [shift * np.ones(dim), -np.ones(dim)]
    mixed = mixture(fractions, means, [s**2 * np.eye(dim) for s in spreads])
    return Setting(mixed, np.random.default_rng(3).normal(size=(dim, neurons)))


# rho ---------------------------------------------------------------------------------------------------------------------


@functools.partial(jax.jit, static_argnames="kind")
def _hessian(teacher, inputs, kind: Kind = "sigmoid"):
    """The Hessian of the risk over these inputs, at the teacher."""
    return curvature(teacher[None], inputs, predict_proba(teacher, inputs, kind), kind).hessian[0]


def _quad(function, mean, std):
    """The second way: Gauss-Legendre with 24 nodes on panels that are short beside the distance of the poles."""
    place, weight = np.polynomial.legendre.leggauss(24)
    low, high = min(mean, 0) - 14, max(mean, 0) + 14
    edges = np.linspace(low, high, int((high - low) * max(2, std)) + 1)
    half = (edges[1] - edges[0]) / 2
    z = ((edges[:-1] + half)[:, None] + half * place).ravel()
    return float(
        np.tile(half * weight, len(edges) - 1) @ (function(theory.slope(std * z), z) * norm.pdf(z - mean))
    )


@pytest.mark.parametrize(
    ("mean", "std"),
    [(0, 1), (0, 0.05), (1, 1), (2, 1), (-2, 1), (4, 1), (0, 10), (3, 5), (8, 1), (20, 12), (1, 200)],
)
def test_moments_and_gaps_agree_with_another_quadrature_to_1e_12(mean, std):
    for order in (0, 1, 2):
        once, twice = (
            _quad(lambda g, z, q=order: g * z**q, mean, std),
            _quad(lambda g, z, q=order: g**2 * z**q, mean, std),
        )
        assert theory.alpha_moment(order, mean, std) == pytest.approx(once, rel=1e-12, abs=1e-15)
        assert theory.beta_moment(order, mean, std) == pytest.approx(twice, rel=1e-12, abs=1e-15)
    centre = _quad(lambda g, z: g, mean, std)
    spread = _quad(lambda g, z: (g - centre) ** 2, mean, std)
    assert theory.value_gap(mean, std) == pytest.approx(spread, rel=1e-11)
    tilt = _quad(lambda g, z: g * z**2, mean, std) / (mean**2 + 1)
    assert theory.tilted_gap(mean, std) == pytest.approx(
        _quad(lambda g, z: (g - tilt) ** 2 * z**2, mean, std), rel=1e-11
    )


@pytest.mark.parametrize(
    ("mean", "std", "value", "tilted"),
    [
        (0, 1, 0.00214402, 0.00290613),
        (0, 2, 0.00609523, 0.00307456),
        (0, 10, 0.00506533, 8.23123e-05),
        (4, 1, 0.00071270, 0.00465941),
        (8, 1, 5.1422e-07, 1.8706e-05),
    ],
)
def test_known_values(mean, std, value, tilted):
    assert theory.value_gap(mean, std) == pytest.approx(value, rel=5e-5)
    assert theory.tilted_gap(mean, std) == pytest.approx(tilted, rel=5e-5)


def test_the_peak_of_rho_at_zero_mean():
    stds = np.linspace(1.2, 1.7, 51)
    values = [theory.rho(np.zeros(2), s) for s in stds]
    assert stds[int(np.argmax(values))] == pytest.approx(1.45, abs=0.02)
    assert max(values) == pytest.approx(0.003566, rel=1e-3)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=3), st.floats(0.05, 8))
@settings(max_examples=30, deadline=None)
def test_rho_is_positive_and_even(mean, std):
    found = theory.rho(np.array(mean), std)
    assert found > 0
    assert theory.rho(-np.array(mean), std) == pytest.approx(found, rel=1e-12)


@pytest.mark.parametrize("mean", [0.0, 0.7, 2.0])
def test_limits_of_the_gaps(mean):
    """Properties 4.1 to 4.3, mended: sigma^4 for both; sigma^-1 and sigma^-3; e^-2 sigma u."""
    for found, limit in zip(
        (theory.value_gap(mean, 1e-2), theory.tilted_gap(mean, 1e-2)),
        theory.small_std(mean, 1e-2),
        strict=True,
    ):
        assert found == pytest.approx(limit, rel=5e-3)
    for found, limit in zip(
        (theory.value_gap(mean, 400.0), theory.tilted_gap(mean, 400.0)),
        theory.large_std(mean, 400.0),
        strict=True,
    ):
        assert found == pytest.approx(limit, rel=1e-2)
    assert theory.value_gap(12.0, 1.0) == pytest.approx(theory.far_mean(12.0, 1.0), rel=1e-3)


@pytest.mark.parametrize(("mean", "limit"), [(1.0, 0.008255), (2.0, 0.025576), (0.5, 0.000828)])
def test_the_concentrated_limit(mean, limit):
    """Property 3.3, mended."""
    assert theory.concentrated_limit(np.array([mean])) == pytest.approx(limit, rel=1e-3)
    assert theory.rho(np.array([mean]) / 1e-3, 1e-3) == pytest.approx(limit, rel=1e-2)
    assert theory.rho(np.array([mean, 0.0]) / 1e-3, 1e-3) < 1e-6


def test_rho_rises_with_the_mean_before_it_decays():
    assert theory.rho(np.array([2.0]), 1.0) > 3 * theory.rho(np.array([0.0]), 1.0)


def test_envelopes_are_monotone_and_below_rho():
    """Properties 3.4 and 3.5: L_m falls along the mean; L_s / sigma rises below zeta_s, L_s falls above; both below rho."""
    direction = np.array([1.0, 0.5])
    scales = np.linspace(0.2, 3, 6)
    low = np.array([theory.mean_envelope(t * direction, 1.0) for t in scales])
    assert (np.diff(low) <= 1e-15).all()
    assert all(a <= theory.rho(t * direction, 1.0) + 1e-15 for a, t in zip(low, scales, strict=True))
    teacher, mean = np.array([[1.0, 0.2], [0.3, 1.1]]), np.array([1.5, -0.7])
    one = theory.coordinate_envelope(teacher, mean, 0.9, 0.9, 0)
    assert theory.mean_envelope(teacher.T @ mean / 0.9, 0.9) != pytest.approx(
        one
    )  # one coordinate, not the whole ray
    assert one <= theory.rho(teacher.T @ mean / 0.9, 0.9)
    assert one <= theory.rho(teacher.T @ np.array([0.0, -0.7]) / 0.9, 0.9)
    for mean in (np.array([1.0, 0.5]), np.array([1.0, 0.0])):
        turn = theory.turning_std(mean)
        stds = turn * np.geomspace(0.1, 6, 8)
        found = np.array([theory.std_envelope(mean, s) for s in stds])
        assert (np.diff(found[stds > turn]) <= 1e-15).all()
        assert (np.diff((found / stds)[stds <= turn]) >= -1e-15).all()
        assert all(a <= theory.rho(mean / s, s) + 1e-15 for a, s in zip(found, stds, strict=True))


def test_with_envelopes_b_rises_and_q_falls_as_the_document_says():
    """(C.93), (C.96): along a growing mean; one growing covariance beyond max(1, zeta_s); and as all vanish."""
    shifted = [bounds.enveloped(_setting(shift=c, spreads=(1.0, 1.0)), "means") for c in (0.0, 0.5, 1.0, 2.0)]
    assert (np.diff([bounds.sample_complexity_factor(s) for s in shifted]) > 0).all()
    assert (np.diff([bounds.rate_parameter(s) for s in shifted]) < 0).all()
    plain = _setting(shift=2.0, spreads=(1.0, 1.0))
    assert bounds.rate_parameter(shifted[-1]) <= bounds.rate_parameter(plain)
    large = [_setting(spreads=(1.0, c)) for c in (3.0, 5.0, 9.0)]
    assert (np.diff([bounds.rate_parameter_large(s, 1) for s in large]) < 0).all()
    assert all(bounds.rate_parameter_large(s, 1) <= bounds.rate_parameter(s) for s in large)
    factors = [bounds.sample_complexity_factor(bounds.enveloped(s, "covariances")) for s in large]
    assert (np.diff(factors) > 0).all()
    small = [bounds.enveloped(_setting(spreads=(c, c)), "covariances") for c in (0.2, 0.1, 0.05)]
    assert (np.diff([bounds.sample_complexity_factor(s) for s in small]) > 0).all()
    assert (np.diff([bounds.rate_parameter(s) for s in small]) < 0).all()
    with pytest.raises(BadInput, match="needs a covariance"):
        bounds.rate_parameter_large(_setting(spreads=(1.0, 0.2)), 1)


def test_rho_of_tanh_is_four_times_the_sigmoids_at_twice_sigma():
    mean = np.array([0.7, -1.2])
    assert theory.rho(mean, 0.8, "tanh") == pytest.approx(4 * theory.rho(mean, 1.6), rel=1e-12)
    assert theory.rho_exact(mean, 0.8, kind="tanh") == pytest.approx(
        4 * theory.rho_exact(mean, 1.6), rel=1e-10
    )


@pytest.mark.parametrize(("mean", "std"), [(0.0, 0.05), (1.0, 1.0), (-2.0, 3.0), (1.0, 40.0)])
def test_moments_of_erf_have_closed_forms(mean, std):
    """E[e^(-s z^2)] = (1 + 2s)^-1/2 e^(-s u^2 / (1 + 2s)); the second moment by shrinking the Gaussian."""
    for power, found in (
        (1, [theory.alpha_moment(q, mean, std, "erf") for q in (0, 2)]),
        (2, [theory.beta_moment(q, mean, std, "erf") for q in (0, 2)]),
    ):
        s = power * std**2
        whole = np.exp(-s * mean**2 / (1 + 2 * s)) / np.sqrt(1 + 2 * s) / np.pi ** (power / 2)
        square = 1 / (1 + 2 * s) + (mean / (1 + 2 * s)) ** 2
        assert found == pytest.approx([whole, whole * square], rel=1e-12)


def test_third_derivatives_are_derivatives_of_the_second():
    t = np.linspace(-3, 3, 13)
    for kind in ("sigmoid", "tanh", "erf"):
        step = (theory.bend(t + 1e-5, kind) - theory.bend(t - 1e-5, kind)) / 2e-5
        np.testing.assert_allclose(theory.third(t, kind), step, atol=1e-8)


def _moment_matrix(mean, std, nodes=60):
    """Two-dimensional Gauss-Hermite: the second way to the matrix of Lemma C.4.1."""
    place, weight = np.polynomial.hermite_e.hermegauss(nodes)
    weight = weight / weight.sum()
    total = 0
    for sign in (1, -1):
        x = np.stack(np.meshgrid(place + sign * mean[0], place + sign * mean[1], indexing="ij"), -1).reshape(
            -1, 2
        )
        rows = (theory.slope(std * x)[:, :, None] * x[:, None, :]).reshape(len(x), 4)
        total = total + rows.T @ (np.outer(weight, weight).ravel()[:, None] * rows) / 2
    return np.linalg.eigvalsh(total)[0]


@pytest.mark.parametrize("mean", [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (1.0, 0.0), (0.5, -1.5)])
def test_rho_exact_is_the_smallest_eigenvalue(mean):
    assert theory.rho_exact(np.array(mean), 1.0) == pytest.approx(_moment_matrix(mean, 1.0), rel=1e-7)


def test_counter_examples_to_lemma_c41_and_where_it_holds():
    for mean, exact in (((1.0, 1.0), 0.00488), ((2.0, 2.0), 0.00387)):
        assert theory.rho_exact(np.array(mean), 1.0) == pytest.approx(exact, rel=2e-3)
        assert theory.rho_exact(np.array(mean), 1.0) < theory.rho(np.array(mean), 1.0)
    for size in (0.0, 1.0, 3.0):
        mean = np.array([size, 0.0])
        assert theory.rho_exact(mean, 1.0) >= theory.rho(mean, 1.0)


def test_an_unseen_coordinate_can_only_lower_rho_exact():
    mean = np.array([1.0, 0.3])
    assert theory.rho_exact(mean, 1.0, extra=True) <= theory.rho_exact(mean, 1.0)


# Bounds ------------------------------------------------------------------------------------------------------------------


def test_property_10_and_the_identities_between_the_functions():
    s = _setting()
    for m in (1, 2, 4):
        assert bounds.d_moment(s, m) * bounds.d_moment(s, 2 * m) <= bounds.d_moment(s, 3 * m)
        assert 1 <= bounds.d_moment(s, m) ** 2 <= bounds.d_moment(s, 2 * m)
    assert bounds.gamma_fn(s) * s.sigma_max**2 == pytest.approx(bounds.g_fn(s), rel=1e-14)
    full = bounds.sample_complexity_factor_full(s)
    direct = (
        (s.sigma_max * s.singular_values[0]) ** 2
        * s.covariance_condition**12
        * bounds.d_moment(s, 12)
        / bounds.gamma_fn(s) ** 2
    )
    assert full == pytest.approx(direct, rel=1e-12)
    assert bounds.sample_complexity_early(s) <= bounds.sample_complexity(s) * (1 + 1e-12)  # (C.90), (C.91)
    assert bounds.average_risk_factor(s) == pytest.approx(
        bounds.weight_error_factor(s) * np.sqrt(bounds.m_moment(s, 2))
    )
    assert 0 < bounds.rate_parameter(s) < 1
    assert bounds.in_convex_ball(s, s.teacher)
    assert not bounds.in_convex_ball(s, s.teacher + 1)


@pytest.mark.parametrize("power", [1, 2, 3])
def test_properties_5_to_8_bound_the_moments_of_a_mixture(power):
    """Moments by Gauss and Hermite's rule, which is exact for polynomials of this degree."""
    rng = np.random.default_rng(power)
    rotation = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    covariances = [rotation.T @ np.diag([0.3, 2.0]) @ rotation, np.eye(2)]
    mixed = mixture([0.3, 0.7], [[2.0, -1.0], [0.2, 0.4]], covariances)
    s, along = Setting(mixed, np.eye(2)), np.array([0.6, -1.1])
    place, weight = np.polynomial.hermite_e.hermegauss(12)
    grid = np.stack(np.meshgrid(place, place), -1).reshape(-1, 2)
    measure = np.outer(weight, weight).ravel() / (2 * np.pi)

    def moment(function, sign=1.0):
        groups = zip(*mixed, strict=True)
        return sum(w * (measure @ function(sign * m + grid @ np.linalg.cholesky(c).T)) for w, m, c in groups)

    odd = {1: 1, 2: 3, 3: 15}[power]  # (2t - 1)!!
    limit = odd * bounds.m_moment(s, 2 * power)
    projected = moment(lambda x: (x @ along) ** (2 * power))
    assert projected == pytest.approx(moment(lambda x: (x @ along) ** (2 * power), sign=-1.0), rel=1e-10)
    assert 0.01 * limit < projected / np.linalg.norm(along) ** (2 * power) <= limit
    assert moment(lambda x: np.sum(x**2, -1) ** power) <= 2**power * limit


def test_risk_bounds_are_those_of_theorem_2():
    """(4.11) and (4.12) follow from (4.10): times the root of M_2, and times the reach of each group."""
    s, n = _setting(), 5000
    scale = s.neurons**2.5 * s.weakening * 1.5 * np.sqrt(s.dim * np.log(n) / n)
    assert bounds.average_risk_bound(s, n, 0.5) == pytest.approx(
        bounds.average_risk_factor(s) * scale, rel=1e-12
    )
    assert bounds.group_risk_bound(s, n, 0.5) == pytest.approx(bounds.group_risk_factor(s) * scale, rel=1e-12)


def test_closed_forms_by_hand():
    """One group N(0, I), W* = I: every factor is 1 but rho."""
    s = Setting(mixture([1.0], [np.zeros(2)], [np.eye(2)]), np.eye(2))
    rho = theory.rho(np.zeros(2), 1.0)
    assert bounds.g_fn(s) == pytest.approx(rho, rel=1e-14)
    assert bounds.rate_parameter(s) == pytest.approx(rho, rel=1e-14)
    assert bounds.contraction_bound(s) == pytest.approx(1 - rho / 4, rel=1e-14)
    assert bounds.sample_complexity_factor(s) == pytest.approx(rho**-2, rel=1e-12)
    assert bounds.curvature_bounds(s) == pytest.approx((rho, 1 / 8), rel=1e-14)
    assert bounds.convexity_samples(s, 0.1) == pytest.approx(
        100 / rho**2 * 2 * 32 * np.log(2) ** 2, rel=1e-12
    )


@pytest.mark.parametrize(
    ("column", "grid", "expected"),
    [
        (
            "covariance-large",
            np.geomspace(1e3, 1e5, 5),
            {"samples": 3.0, "rate": -1.0, "error": 0.5, "average": 1.0, "group": 1.0},
        ),
        (
            "mean",
            np.geomspace(100, 1000, 5),
            {"samples": 12.0, "rate": -2.0, "error": 1.0, "average": 2.0, "group": 2.0},
        ),
        ("covariance-small", np.geomspace(1e-6, 1e-4, 5), {"samples": -3.0}),
    ],
)
def test_table_4_1_is_regenerated(column, grid, expected):
    s = _setting(fractions=(0.7, 0.3), spreads=(1.0, 1.0))
    found = bounds.table_4_1(s.mixture, s.teacher, 1, column, grid)
    for row, exponent in expected.items():
        assert found[row]["exponent"] == pytest.approx(exponent, rel=0.06), row
        assert found[row]["table"] == exponent


def test_varying_a_fraction_keeps_the_others_proportions():
    mixed = mixture([0.2, 0.3, 0.5], np.zeros((3, 2)), [np.eye(2)] * 3)
    moved = bounds.varied(mixed, 0, "fraction-smallest", 0.4)
    np.testing.assert_allclose(moved.weights, [0.4, 0.225, 0.375])


# Population quantities ---------------------------------------------------------------------------------------------------


def _grid_risk(mixed, teacher, flat, nodes=80):
    """The population risk in two dimensions by Gauss-Hermite in the inputs themselves, differentiable."""
    place, weight = np.polynomial.hermite_e.hermegauss(nodes)
    weights = np.outer(weight, weight).ravel() / weight.sum() ** 2
    noise = np.stack(np.meshgrid(place, place, indexing="ij"), -1).reshape(-1, 2)
    total = 0.0
    for share, mean, covariance in zip(*mixed, strict=True):
        x = jnp.asarray(mean + noise @ np.linalg.cholesky(covariance).T)
        ours = flat.reshape(teacher.shape[1], 2).T
        total = total + share * (weights @ loss_of(ours, x, predict_proba(jnp.asarray(teacher), x)))
    return total


def test_population_risk_gradient_and_hessian_are_those_of_automatic_differentiation():
    mixed = mixture(
        [0.4, 0.6], [[0.5, -0.3], [-0.2, 0.4]], [[[0.8, 0.2], [0.2, 0.6]], [[0.5, 0.0], [0.0, 0.7]]]
    )
    teacher, weights = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2))
    found = population.population_risk(mixed, teacher, weights, fineness=0.4)
    flat = jnp.asarray(weights.T.reshape(-1))

    def risk(v):
        return _grid_risk(mixed, teacher, v)

    value, slope = jax.jit(jax.value_and_grad(risk))(flat)
    assert float(found.loss) == pytest.approx(float(value), rel=1e-9)
    np.testing.assert_allclose(found.gradient.T.reshape(-1), slope, atol=1e-9)
    np.testing.assert_allclose(found.hessian, jax.jit(jax.hessian(risk))(flat), atol=1e-8)


def test_quadrature_and_many_draws_agree_beyond_three_dimensions():
    """Four neurons: quasi Monte Carlo against the Hessian over drawn inputs, within five standard errors."""
    dim, neurons = 5, 4
    mixed = mixture([0.5, 0.5], [np.ones(dim), np.zeros(dim)], [np.eye(dim)] * 2)
    teacher = RNG.normal(size=(dim, neurons))
    found = population.fisher_information(mixed, teacher).total
    inputs = np.where(RNG.random(40_000)[:, None] < 0.5, 1.0, 0.0) + RNG.normal(size=(40_000, dim))
    drawn = _hessian(teacher, inputs)
    np.testing.assert_allclose(found, drawn, atol=5 * 0.25 / np.sqrt(40_000))


@pytest.mark.parametrize(
    ("size", "low"), [(0, 0.0031062), (1, 0.0065919), (2, 0.0065371), (3, 0.0027364), (4, 0.0011051)]
)
def test_curvature_of_the_counter_examples_to_lemma_c44(size, low):
    mixed = mixture([1.0], [[size, size]], [np.eye(2)])
    found = population.fisher_information(mixed, np.eye(2), fineness=0.5)
    assert found.spectrum[0] == pytest.approx(low, rel=1e-4)
    bound = bounds.curvature_bounds(Setting(mixed, np.eye(2)))[0]
    assert (found.spectrum[0] < bound) == (size >= 2)
    assert found.spectrum[-1] <= bounds.curvature_bounds(Setting(mixed, np.eye(2)))[1]


def test_one_neuron_is_logistic_regression():
    """I = E[phi'(w.x) x x^T]: by one-dimensional quadrature along w and across."""
    found = population.fisher_information(
        mixture([1.0], [np.zeros(3)], [np.eye(3)]), np.array([[2.0], [0.0], [0.0]]), fineness=0.5
    )
    along = theory.alpha_moment(2, 0.0, 2.0)
    across = theory.alpha_moment(0, 0.0, 2.0)
    np.testing.assert_allclose(found.total, np.diag([along, across, across]), atol=1e-8)


@pytest.mark.parametrize(
    ("neurons", "scale", "kind"),
    [(1, 3.0, "sigmoid"), (2, 3.0, "sigmoid"), (2, 2.0, "tanh"), (2, 2.0, "erf")],
)
def test_the_quadrature_of_fisher_information_is_as_fine_as_it_says(neurons, scale, kind):
    teacher = scale * np.random.default_rng(1).normal(size=(3, neurons))
    mixed = mixture([1.0], [np.ones(3)], [np.eye(3)])
    exact = population.fisher_information(mixed, teacher, 0.3, kind).total
    for fineness, allowed in ((population.FINENESS, 1e-9), (population.COARSEST, 3e-6)):
        found = population.fisher_information(mixed, teacher, fineness, kind).total
        assert np.abs(found - exact).max() < allowed * np.abs(exact).max()
    assert np.array_equal(
        population.fisher_information(mixed, teacher, kind=kind).total,
        population.fisher_information(mixed, teacher, population.FINENESS, kind).total,
    )


@pytest.mark.parametrize("kind", ["tanh", "erf"])
def test_fisher_information_of_other_activations(kind):
    """tanh is the sigmoid of doubled weights; erf against the Hessian over drawn inputs; both below the explicit bound."""
    mixed = mixture([0.6, 0.4], [[1.0, 0.0, 0.5], [-0.5, 0.2, 0.0]], [np.eye(3), 0.5 * np.eye(3)])
    teacher = np.array([[1.0, 0.3], [-0.4, 0.8], [0.2, 0.1]])
    found = population.fisher_information(mixed, teacher, kind=kind)
    if kind == "tanh":
        same = population.fisher_information(mixed, 2 * teacher)
        np.testing.assert_allclose(found.total, 4 * same.total, rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(found.entropies, same.entropies, rtol=1e-7)
    rng = np.random.default_rng(0)
    groups = (rng.random(40_000) < 0.4).astype(int)
    noise = rng.normal(size=(40_000, 3)) * np.sqrt(np.array([1.0, 0.5]))[groups][:, None]
    drawn = _hessian(teacher, mixed.means[groups] + noise, kind)
    np.testing.assert_allclose(found.total, drawn, atol=5 * 1.3 / np.sqrt(40_000))
    s = Setting(mixed, teacher, kind=kind)
    assert found.spectrum[-1] <= bounds.curvature_bounds(s)[1]


def test_average_excess_is_dk_over_two_whatever_the_mixture():
    for spreads in ((1.0, 1.0), (1.0, 3.0), (0.3, 2.0)):
        s = _setting(spreads=spreads)
        found = population.fisher_information(s.mixture, s.teacher)
        assert s.mixture.weights @ population.group_excess(found) == pytest.approx(
            population.average_excess(found), rel=1e-9
        )


def test_the_hessian_is_lipschitz_with_the_lemmas_constant():
    """Lemma C.4.3 with C_5 = 1, near W*."""
    s = _setting(dim=2)
    base = population.population_risk(s.mixture, s.teacher, s.teacher, 0.5).hessian
    for _ in range(5):
        moved = s.teacher + 0.05 * RNG.normal(size=s.teacher.shape)
        apart = np.linalg.norm(population.population_risk(s.mixture, s.teacher, moved, 0.5).hessian - base, 2)
        assert apart <= bounds.hessian_lipschitz(s) * np.linalg.norm(moved - s.teacher)


def test_the_noise_floor_is_the_stationary_law_of_linear_descent():
    spectrum, step, bound, samples = np.array([0.05, 0.4, 1.0]), 0.9, 0.3, 50
    rng, place, square = np.random.default_rng(0), np.zeros(3), []
    for t in range(40_000):
        place = place - step * (spectrum * place + rng.uniform(-bound, bound, (samples, 3)).mean(0))
        if t > 1000:
            square.append(place @ place)
    exact = population.noise_floor(spectrum, step, bound, samples)
    assert np.sqrt(np.mean(square)) == pytest.approx(exact, rel=0.05)  # some 1000 correlation times
    s = _setting()
    assert exact < bounds.noise_floor_bound(s, step, bound, 1 - step * spectrum[0], samples)


def test_noise_drawn_once_moves_the_end_by_the_inverse_curvature():
    """Linear descents, each with a noise of its own that stays: the root mean square of their ends."""
    spectrum, step, bound, samples, runs = np.array([0.05, 0.4, 1.0]), 0.9, 0.3, 50, 4000
    shift = np.random.default_rng(0).uniform(-bound, bound, (runs, samples, 3)).mean(1)
    place = np.zeros((runs, 3))
    for _ in range(300):
        place = place - step * (spectrum * place + shift)
    found = np.sqrt(np.mean(np.sum(place**2, axis=1)))
    exact = population.fixed_noise_shift(spectrum, bound, samples)
    assert found == pytest.approx(
        exact, rel=0.05
    )  # a chi-square of about one degree, 4000 times: 1.1 % a deviation


def test_adding_samples_of_a_group_helps_everybody_and_that_group_most():
    s = _setting(spreads=(1.0, 3.0))
    found = population.fisher_information(s.mixture, s.teacher)
    counts = 1000 * s.mixture.weights
    now = population.outlook(found, s.mixture.weights, counts)
    assert now.average == pytest.approx(len(found.total) / 2 / 1000, rel=1e-9)
    more = population.outlook(found, s.mixture.weights, counts * np.array([1.0, 2.0]))
    assert (more.groups < now.groups).all()
    assert more.groups[1] / now.groups[1] < more.groups[0] / now.groups[0]
