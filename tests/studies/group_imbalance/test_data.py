"""Mixtures: their moments, their scores against automatic differentiation, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.studies.group_imbalance import data
from lemmata.studies.group_imbalance.data import Population
from lemmata.threefry import new_key

MIXED = data.mixture(
    [0.3, 0.7], [[1.0, 0.5], [-0.5, 0.2]], [[[1.0, 0.3], [0.3, 0.8]], [[0.6, -0.1], [-0.1, 1.2]]]
)


def test_samples_have_the_mixtures_moments_and_labels_the_teachers_chances():
    population = Population(
        fractions=(0.3, 0.7),
        means=((1.0, 0.5), (-0.5, 0.2)),
        covariances=tuple(tuple(map(tuple, c)) for c in MIXED.covariances.tolist()),
        dim=2,
        neurons=2,
        samples=200_000,
    )

    @jax.jit
    def both(world_key, key):
        world = population.world(world_key)
        return population.draw(key, world), data.draw(key, world, 200_000, "soft")

    drawn, soft = jax.tree.map(np.asarray, both(new_key(0), new_key(1)))
    for group in (0, 1):
        own = drawn.inputs[drawn.groups == group]
        assert len(own) / 200_000 == pytest.approx(MIXED.weights[group], abs=0.005)  # five standard errors
        np.testing.assert_allclose(own.mean(0), MIXED.means[group], atol=0.02)
        np.testing.assert_allclose(np.cov(own.T), MIXED.covariances[group], atol=0.03)
    assert np.mean(drawn.labels - soft.labels) == pytest.approx(0, abs=0.006)
    assert set(np.unique(drawn.labels)) == {0.0, 1.0}


def test_more_samples_begin_with_the_same_ones():
    world = jax.jit(Population().world)(new_key(0))
    draw = jax.jit(data.draw, static_argnums=(2, 3))
    few, many = (draw(new_key(1), world, n, "bernoulli").inputs for n in (50, 80))
    np.testing.assert_array_equal(few, many[:50])


def _density(x):
    parts = [
        w * jnp.exp(-(x - m) @ np.linalg.inv(c) @ (x - m) / 2) / np.sqrt(np.linalg.det(2 * np.pi * c))
        for w, m, c in zip(*MIXED, strict=True)
    ]
    return sum(parts)


def test_score_functions_are_derivatives_of_the_density():
    """S_j = (-1)^j grad^j p / p: the closed forms against automatic differentiation, to 1e-10."""
    point = np.array([0.4, -0.7])
    parts = data.scores(MIXED, point[None])
    share, pull, precision = parts.share[:, 0], parts.pull[:, 0], parts.precision
    first = np.einsum("l,la->a", share, pull)
    second = np.einsum("l,lab->ab", share, np.einsum("la,lb->lab", pull, pull) - precision)
    sym = sum(np.einsum(f"la,lbc->l{order}", pull, precision) for order in ("abc", "bac", "bca"))
    third = np.einsum("l,labc->abc", share, np.einsum("la,lb,lc->labc", pull, pull, pull) - sym)
    bent = jax.hessian(_density)
    orders = jax.jit(lambda x: (_density(x), jax.grad(_density)(x), bent(x), jax.jacfwd(bent)(x)))
    p, slope, bend, twist = map(np.asarray, orders(jnp.asarray(point)))
    np.testing.assert_allclose(first, -slope / p, rtol=1e-10)
    np.testing.assert_allclose(second, bend / p, rtol=1e-10)
    np.testing.assert_allclose(third, -twist / p, rtol=1e-9)


def test_symmetry_is_seen():
    eye = [np.eye(2)] * 3
    assert data.is_symmetric(data.mixture([0.5, 0.5], [[1.0, 2.0], [-1.0, -2.0]], eye[:2]))
    assert data.is_symmetric(data.mixture([0.25, 0.25, 0.5], [[1.0, 0], [-1.0, 0], [0, 0]], eye))
    assert not data.is_symmetric(data.mixture([0.4, 0.6], [[1.0, 2.0], [-1.0, -2.0]], eye[:2]))
    assert not data.is_symmetric(data.mixture([0.5, 0.5], [[1.0, 2.0], [0.0, 0.0]], eye[:2]))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"fractions": (0.5, 0.4)}, "sum to one"),
        ({"fractions": (0.5, 0.3, 0.2)}, "3 groups need 3 means"),
        ({"spreads": (1.0, 0.0)}, "positive definite"),
        ({"dim": 2, "neurons": 3}, "K <= d"),
        ({"dim": 2, "neurons": 2, "teacher_columns": ((1.0, 2.0), (2.0, 4.0))}, "deficient rank"),
        ({"dim": 2, "neurons": 1, "covariances": (((1.0, 2.0), (2.0, 1.0)),) * 2}, "positive definite"),
        ({"spectrum": (1.0, 2.0)}, "5 positive numbers"),
    ],
)
def test_bad_populations_are_refused_in_one_sentence(fields, said):
    with pytest.raises(BadInput, match=said) as refusal:
        Population(**fields)
    assert str(refusal.value).count(". ") == 0
