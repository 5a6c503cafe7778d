"""Trainings, starts, and the tensor initialisation: what must come out of small ones."""

from itertools import permutations

import jax
import numpy as np
import pytest

from lemmata import train
from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.loop import complete
from lemmata.studies.group_imbalance import theory
from lemmata.studies.group_imbalance.data import Mixture, Population, Samples, World, mixture, scores
from lemmata.studies.group_imbalance.figures import FIGURES, easy, template
from lemmata.studies.group_imbalance.network import align_columns, critical_point
from lemmata.studies.group_imbalance.trials import Descents, Starts, tensor
from lemmata.studies.group_imbalance.trials.exact import _cubic_norm
from lemmata.trial import put, put_all, random_key

SMALL = put_all(
    Descents(),
    {
        "population.dim": 3,
        "population.neurons": 2,
        "population.samples": 3000,
        "population.shifts": (1.0, -1.0),
        "descent.steps": 3000,
        "test_points": 500,
    },
)


@pytest.fixture(scope="module")
def ended():
    """The run of SMALL with seed 1."""
    return train(SMALL, seed=1)


def test_descent_contracts_by_the_exact_factor_and_ends_at_the_critical_point(ended):
    found = ended
    assert found["critical_found"]
    assert found["distance"] <= 1e-9
    assert 1 - found["contraction"] == pytest.approx(1 - float(found["contraction_exact"]), rel=0.02)
    assert found["contraction_exact"] == pytest.approx(1 - float(found["step_size"] * found["curvature_low"]))


def test_a_run_that_has_arrived_or_whose_minimum_is_flat_has_not_diverged():
    """No step shrinks a distance of zero, and noise along a direction without curvature has no floor."""
    with double():
        state = jax.jit(SMALL.start)(random_key(SMALL, 0))
        world, fit = state.world, state.fit
        arrived = state._replace(fit=fit._replace(params=world.critical))
        flat = state._replace(world=world._replace(spectrum=world.spectrum.at[0].set(-1e-13)))
        look = jax.jit(SMALL.record)
        for missing, where in (("contraction", arrived), ("floor_exact", flat)):
            found = {name: np.asarray(value) for name, value in look(where).items()}
            assert [name for name, value in found.items() if not np.isfinite(value).all()] == [missing]
            assert complete(SMALL, found.items())


def test_soft_labels_put_the_critical_point_at_the_teacher():
    found = train(put_all(SMALL, {"population.labels": "soft", "descent.steps": 2}), seed=0)
    assert found["error"] < 1e-9
    assert np.all(found["group_excess"] < 1e-15)


@pytest.mark.slow
def test_fixed_noise_moves_the_end_and_noise_anew_keeps_it_away():
    """(4.6): both kinds end at a distance of the order that the linearised descent has; without noise they arrive."""
    for noisy, end in (("per-step", "floor_exact"), ("fixed", None)):
        found = train(
            put_all(SMALL, {"noise": 0.2, "noisy": noisy, "arrive": 0.0, "descent.steps": 1500}), seed=1
        )
        assert found["distance"] > 1e-5
        if end:
            floor = np.sqrt(found["late_square"] / 750)
            assert floor == pytest.approx(found[end], rel=0.5)  # some ten correlation times


@pytest.mark.slow
def test_every_step_rule_is_safe_and_the_printed_one_is_the_smallest():
    sizes = {
        rule: float(train(put_all(SMALL, {"step_rule": rule, "descent.steps": 5}), seed=1)["step_size"])
        for rule in ("curvature", "explicit", "theory")
    }
    assert sizes["theory"] < sizes["explicit"] <= 1.05 * sizes["curvature"]


def test_the_world_that_the_theory_sees_is_the_one_that_was_trained_on(ended):
    world = theory.world_of(SMALL, seed=1)
    assert float(ended["teacher_norm"]) == pytest.approx(np.linalg.norm(world.teacher))


def test_starts_near_the_teacher_agree_with_many_samples():
    trial = Starts(population=Population(dim=3, neurons=2, samples=6000), starts=4)
    assert train(trial, seed=0)["init_spread"] < 1e-5


@pytest.mark.slow
def test_starts_near_the_teacher_do_not_agree_with_few_samples():
    few = train(Starts(population=Population(samples=200), starts=4, most_steps=15), seed=0)
    assert few["init_spread"] > 1e-3


@pytest.mark.slow
def test_newton_and_descent_find_the_same_limits():
    trial = Starts(population=Population(dim=3, neurons=2, samples=4000), starts=3, tolerance=1e-7)
    newton = train(trial, seed=2)
    descent = train(put_all(trial, {"solver": "descent", "most_steps": 4000}), seed=2)
    assert descent["error"] == pytest.approx(float(newton["error"]), abs=1e-4)


def test_with_erf_and_soft_labels_the_critical_point_is_the_teacher():
    trial = Starts(
        population=Population(dim=3, neurons=2, samples=3000, labels="soft", activation="erf"), starts=2
    )
    found = train(trial, seed=0)
    assert found["error"] < 1e-6
    assert found["arrived"] == 1


def test_the_norm_of_a_symmetric_tensor_is_estimated_from_below():
    """One neuron: its only entry. Three: within a fifth below |T(u, u, u)| at the best of many u."""
    rng = np.random.default_rng(0)
    assert float(_cubic_norm(jax.numpy.asarray([[[-0.3]]]))) == pytest.approx(0.3)
    made = rng.normal(size=(3, 3, 3))
    made = sum(made.transpose(p) for p in permutations(range(3)))
    at = rng.normal(size=(2000, 3))
    at /= np.linalg.norm(at, axis=1, keepdims=True)
    best = np.abs(np.einsum("abc,na,nb,nc->n", made, at, at, at)).max()
    assert 0.8 * best <= float(_cubic_norm(jax.numpy.asarray(made))) <= 1.01 * best


# The tensor initialisation -----------------------------------------------------------------------------------------------

MIXED = mixture([0.5, 0.5], [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], [np.eye(3)] * 2)
TEACHER = np.array([[2.0, 0.3], [0.0, 1.5], [0.2, 0.0]])


def _samples(count, mixed=MIXED, teacher=TEACHER, seed=0):
    rng = np.random.default_rng(seed)
    groups = (rng.random(count) > mixed.weights[0]).astype(int)
    inputs = mixed.means[groups] + rng.normal(size=(count, 3))
    labels = 1 / (1 + np.exp(-inputs @ teacher))
    return Samples(inputs, labels.mean(-1), groups)


def test_moments_of_samples_come_to_those_that_stein_gives():
    """Q_1, Q_2, Q_3(I, I, a), R_3 with soft labels, within five standard errors of 3e5 samples."""
    data = _samples(300_000)
    parts, truth = scores(MIXED, data.inputs), tensor.population_moments(World(MIXED, TEACHER))
    tolerance = 5 * 1.5 / np.sqrt(300_000)
    along = np.array([0.6, 0.8, 0.0])
    np.testing.assert_allclose(tensor.first_moment(parts, data.labels), TEACHER @ truth.first, atol=tolerance)
    np.testing.assert_allclose(
        tensor.second_moment(parts, data.labels), (TEACHER * truth.second) @ TEACHER.T, atol=2 * tolerance
    )
    third = (TEACHER * truth.third * (TEACHER.T @ along)) @ TEACHER.T
    np.testing.assert_allclose(
        tensor.contracted_third_moment(parts, data.labels, along), third, atol=4 * tolerance
    )
    cube = np.einsum("i,ai,bi,ci->abc", truth.third, TEACHER, TEACHER, TEACHER)
    found = tensor.projected_third_moment(parts, data.labels, np.eye(3))
    np.testing.assert_allclose(found, cube, atol=5 * tolerance)
    np.testing.assert_allclose(
        np.einsum("abc,c->ab", found, along), tensor.contracted_third_moment(parts, data.labels, along)
    )


def test_a_tensor_of_full_rank_is_taken_apart_exactly():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(4, 4))
    vectors /= np.linalg.norm(vectors, axis=0)
    strengths = np.array([1.0, -0.5, 2.0, 0.7])
    found, size = tensor.decompose(np.einsum("i,ai,bi,ci->abc", strengths, vectors, vectors, vectors), rng)
    match = np.abs(found.T @ vectors)
    np.testing.assert_allclose(match.max(0), 1, atol=1e-6)
    np.testing.assert_allclose(np.sort(np.abs(size)), np.sort(np.abs(strengths)), rtol=1e-5)


def test_the_plug_in_step_and_many_contractions_beat_one_pair():
    """A tensor with one per cent of noise: all factors near, and on average nearer than by the eigenvectors of two
    contractions alone."""
    rng, ours, pair = np.random.default_rng(1), [], []
    for _ in range(20):
        vectors = np.eye(3) + 0.3 * rng.normal(size=(3, 3))
        vectors /= np.linalg.norm(vectors, axis=0)
        noise = rng.normal(size=(3, 3, 3))
        noise = sum(
            noise.transpose(p) for p in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0))
        )
        made = np.einsum("i,ai,bi,ci->abc", [1.0, 0.8, -1.2], vectors, vectors, vectors) + 0.01 * noise / 6
        found, _ = tensor.decompose(made, rng)
        one, other = rng.normal(size=(2, 3))
        alone = np.linalg.eig((made @ one) @ np.linalg.inv(made @ other))[1].real
        for kept, guess in ((ours, found), (pair, alone / np.linalg.norm(alone, axis=0))):
            kept.append(1 - np.abs(guess.T @ vectors).max(0).min())
    assert max(ours) < 0.02
    assert np.mean(ours) < 0.5 * np.mean(pair)


def test_matrices_with_common_factors_are_diagonalised_together():
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(4, 4))
    factors /= np.linalg.norm(factors, axis=0)
    matrices = np.einsum("ai,li,bi->lab", factors, rng.normal(size=(9, 4)), factors)
    for start in (None, np.eye(4) + 0.1 * rng.normal(size=(4, 4))):
        found = tensor.jointly_diagonal(matrices, start)
        np.testing.assert_allclose(np.abs(found.T @ factors).max(0), 1, atol=1e-10)


@pytest.mark.parametrize("size", [0.3, 1.0, 2.5])
def test_magnitudes_are_inverted(size):
    direction = np.array([0.6, 0.8, 0.0])
    first = size / 2 * tensor.along_line(MIXED, size * direction, theory.slope)
    third = size**3 / 2 * tensor.along_line(MIXED, size * direction, theory.third)
    assert tensor.inverted_magnitude(MIXED, direction, first, third, 2) == pytest.approx(size, rel=1e-6)


@pytest.mark.parametrize("symmetric", [False, True])
def test_initialisation_comes_near_the_teacher_and_the_literal_magnitude_does_not(symmetric):
    shifted = np.array([[0.3] * 3, [-0.3] * 3])
    mixed = Mixture(MIXED.weights, shifted, MIXED.covariances) if symmetric else MIXED
    along = np.array([1.0, 1.0, 0.0]) if symmetric else None
    data = _samples(300_000, mixed, seed=1)
    far = {}
    for magnitude in ("inverted", "literal"):
        made = tensor.tensor_initialisation(mixed, data, 2, magnitude, along).weights
        far[magnitude] = np.linalg.norm(align_columns(made, TEACHER) - TEACHER) / np.linalg.norm(TEACHER)
    assert far["inverted"] < 0.3
    assert far["literal"] > 0.7
    start = align_columns(tensor.tensor_initialisation(mixed, data, 2, along=along).weights, TEACHER)
    end = critical_point(jax.numpy.asarray(start)[None], *map(jax.numpy.asarray, data[:2]), 1e-10).weights[0]
    np.testing.assert_allclose(align_columns(end, TEACHER), TEACHER, atol=1e-4)


def test_a_deficient_instance_is_refused():
    """A neuron that sees only a symmetric part of the mixture has E[phi''] = 0."""
    mixed = mixture([0.5, 0.5], [[1.0, 0, 0], [0.0, 0, 0]], [np.eye(3)] * 2)
    with pytest.raises(BadInput, match="deficient rank"):
        tensor.check_identifiable(World(mixed, np.array([[2.0, 0.0], [0.0, 2.0], [0.0, 0.0]])))
    tensor.check_identifiable(World(MIXED, TEACHER))


def test_a_mixture_estimated_by_em_serves_as_well():
    inputs = np.concatenate([np.random.default_rng(0).normal(m, 1, (4000, 2)) for m in (-3, 3)])
    found = tensor.fitted_mixture(inputs, 2)
    np.testing.assert_allclose(np.sort(found.means[:, 0]), [-3, 3], atol=0.1)


# Figures and the practitioner's answer -----------------------------------------------------------------------------------


def test_predict_answers_for_a_minority_of_large_covariance():
    trial = put_all(template(), {"population.spreads": (1.0, 3.0), "population.fractions": (0.9, 0.1)})
    conditions, predictions = theory.predict(trial)
    said = {p.name: p.value for p in predictions}
    assert said["average excess risk dK/(2n), whatever the mixture"] == pytest.approx(15 / 40_000)
    assert str(said["10 % more minority at the same n: minority excess risk"]).startswith("helps")
    assert str(said["Table 4.1 says of a larger fraction of this group"]).startswith("everything degrades")
    assert all(c.margin > 0 for c in conditions)
    more = float(said["extra minority samples that halve its excess risk"])
    found = theory.fisher_information(theory.world_of(trial).mixture, theory.world_of(trial).teacher)
    now, then = (theory.outlook(found, np.ones(2), np.array([18_000, 2000 + m])) for m in (0, more))
    assert then.groups[1] == pytest.approx(now.groups[1] / 2)


def test_the_easy_instance_is_the_one_of_the_readme():
    assert easy(10).teacher_columns[1][1] == 2.0
    assert {figure.id for figure in FIGURES} >= {"fig4-2", "figC-1", "table-4-1"}


def test_runs_of_one_seed_share_their_teacher_across_the_mixture():
    one, other = SMALL, put(SMALL, "population.shifts", (0.5, 0.0))
    assert random_key(one, 3) == random_key(other, 3)
