"""The network's derivatives against automatic differentiation, the minimiser, permutations."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.studies.group_imbalance import network
from lemmata.studies.group_imbalance.data import Population
from lemmata.threefry import new_key
from tests.kernels import needs_compiler


@functools.partial(jax.jit, static_argnames=("neurons", "samples", "labels", "dim"))
def _instance(neurons=3, samples=700, labels="bernoulli", dim=5):
    population = Population(samples=samples, neurons=neurons, labels=labels, dim=dim)
    world = population.world(new_key(0))
    return world, population.draw(new_key(1), world)


@pytest.mark.parametrize(
    ("neurons", "labels", "kind"),
    [
        (1, "bernoulli", "sigmoid"),
        pytest.param(2, "soft", "sigmoid", marks=pytest.mark.slow),
        pytest.param(3, "bernoulli", "sigmoid", marks=pytest.mark.slow),
        pytest.param(3, "soft", "tanh", marks=pytest.mark.slow),
        (2, "bernoulli", "erf"),
    ],
)
def test_loss_gradient_and_hessian_are_those_of_automatic_differentiation(neurons, labels, kind):
    world, data = _instance(neurons, labels=labels)
    weights = world.teacher + 0.3

    def risk(flat):
        return jnp.mean(network.loss_of(flat.reshape(neurons, 5).T, data.inputs, data.labels, kind))

    @jax.jit
    def by_hand(both):
        curved = network.curvature(both, data.inputs, data.labels, kind)
        return curved, network.value_and_gradient(both[1], data.inputs, data.labels, kind)

    flat = np.asarray(weights).T.reshape(-1)
    both = jnp.asarray(np.stack([world.teacher, weights]))
    found, (loss, gradient) = jax.tree.map(np.asarray, by_hand(both))
    value, slope, bend = jax.jit(lambda flat: (risk(flat), jax.grad(risk)(flat), jax.hessian(risk)(flat)))(
        flat
    )
    np.testing.assert_allclose(found.loss[1], value, rtol=1e-13)
    np.testing.assert_allclose(found.gradient[1].T.reshape(-1), slope, atol=1e-13)
    np.testing.assert_allclose(found.hessian[1], bend, atol=1e-13)
    np.testing.assert_allclose(loss, found.loss[1], rtol=1e-13)
    np.testing.assert_allclose(gradient, found.gradient[1], atol=1e-15)
    losses, all_gradients = network.gradients(both, data.inputs, data.labels, kind)
    np.testing.assert_allclose(losses, found.loss, rtol=1e-13)
    np.testing.assert_allclose(all_gradients, found.gradient, atol=1e-15)


@needs_compiler
@pytest.mark.parametrize(
    ("kind", "precision", "samples", "dim", "starts", "neurons"),
    [
        ("sigmoid", "float64", 301, 7, 5, 3),
        ("tanh", "float64", 32, 4, 1, 1),
        ("sigmoid", "float32", 70, 9, 2, 2),
    ],
)
def test_kernel_gives_risks_and_gradients(kind, precision, samples, dim, starts, neurons):
    """In two runs, with soft labels; the first start has logits far out in both directions."""
    random = np.random.default_rng(0)
    size = np.where(np.arange(starts) == 0, 30.0 if precision == "float64" else 4.0, 1.0)[:, None, None]
    given = (
        (size * random.normal(size=(2, starts, dim, neurons))).astype(precision),
        random.normal(size=(2, samples, dim)).astype(precision),
        random.random((2, samples)).astype(precision),
    )
    in_blocks = jax.jit(jax.vmap(functools.partial(network.gradients.plain, kind=kind)))
    wanted = jax.tree.map(np.asarray, in_blocks(*given))
    close = 1e-13 if precision == "float64" else 1e-5
    for valued in (True, False):
        found = jax.jit(jax.vmap(functools.partial(network.gradients.native, kind=kind, valued=valued)))(
            *given
        )
        np.testing.assert_allclose(found[0], wanted[0] if valued else 0 * wanted[0], rtol=close)
        np.testing.assert_allclose(found[1], wanted[1], atol=close * np.abs(wanted[1]).max())
    weights = given[0][0].copy()
    weights[0, 0, 0] = np.nan
    lost = jax.jit(functools.partial(network.gradients.native, kind=kind))(weights, given[1][0], given[2][0])
    assert np.isnan(np.asarray(lost[0])[0]), "what is not a number must not become one"


def test_numpy_and_jax_give_the_same_local_derivatives():
    logits = np.random.default_rng(0).normal(size=(3, 40)) * 4
    labels = np.random.default_rng(1).random(40)
    for ours, theirs in zip(
        network.local(logits, labels), jax.jit(network.local)(logits, labels), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


def test_slopes_are_at_most_one_and_curvatures_at_most_two():
    """(C.210) and the bound on xi_jl, K times the slope; far out as well."""
    logits = np.random.default_rng(0).normal(size=(3, 5000)) * np.array([[1.0], [5.0], [60.0]])
    for label in (0.0, 1.0):
        found = network.local(logits, np.full(5000, label))
        assert np.abs(found.slope).max() <= 1 + 1e-12
        assert np.abs(found.curve).max() <= 2 + 1e-12


def test_tanh_is_the_sigmoid_of_doubled_weights():
    z = np.linspace(-40, 40, 81)
    np.testing.assert_allclose(network.neuron(z, "tanh").up, network.neuron(2 * z).up, rtol=1e-15)
    np.testing.assert_allclose(network.neuron(z, "tanh").up, (1 + np.tanh(z)) / 2, atol=1e-15)


def test_with_erf_the_curvature_is_not_bounded():
    """(C.150) divides phi' by phi, which is bounded for the sigmoid and grows as 2|t| for erf: C_9 of (C.152) does not exist
    there, although phi, phi' and phi'' are bounded, as the footnote asks."""
    at = np.array([[-4.0, -8.0, -16.0]])
    found = np.abs(network.local(at, np.ones(3), "erf").slope[0])
    np.testing.assert_allclose(found / (2 * np.abs(at[0])), 1, atol=0.05)
    assert (np.abs(network.local(at, np.ones(3)).slope) <= 1).all()


def test_third_derivatives_are_bounded_by_eight():
    """(C.153-154): four summands bounded by 2, 2, 3 and 1."""
    third = jax.jacfwd(jax.hessian(lambda z, y: network.local(z, y).loss))
    logits = 3 * jax.random.normal(new_key(0), (200, 3))
    for label in (0.0, 1.0):
        found = jax.jit(jax.vmap(lambda z, y=label: third(z, jnp.asarray(y))))(logits)
        assert float(jnp.abs(found).max()) <= 8


def test_far_logits_give_finite_losses():
    weights, inputs = jnp.full((2, 2), 500.0), jnp.array([[3.0, 3.0], [-3.0, -3.0]])
    assert np.isfinite(network.loss_of(weights, inputs, jnp.array([0.0, 1.0]))).all()


def test_excess_is_the_cross_entropy_less_the_entropy():
    world, data = _instance()
    weights = world.teacher * 0.7
    soft = network.predict_proba(world.teacher, data.inputs)
    excess = network.loss_of(weights, data.inputs, soft) - network.entropy_of(world.teacher, data.inputs)
    np.testing.assert_allclose(network.excess_of(weights, world.teacher, data.inputs), excess, atol=1e-13)


@pytest.mark.slow
def test_newton_and_long_descent_end_at_the_same_point():
    world, data = _instance(neurons=2, samples=4000, dim=3)
    start = world.teacher + 0.05
    found = network.critical_point(start[None], data.inputs, data.labels, 1e-12).weights[0]
    step = 1 / np.linalg.eigvalsh(network.curvature(start[None], data.inputs, data.labels).hessian[0])[-1]

    def descend(weights, _):
        return weights - step * network.value_and_gradient(weights, data.inputs, data.labels)[1], None

    ended, _ = jax.lax.scan(descend, start, None, length=20_000)
    np.testing.assert_allclose(ended, found, atol=1e-7)


def test_alignment_undoes_a_permutation_both_ways():
    teacher = np.random.default_rng(0).normal(size=(5, 4))
    shuffled = teacher[:, [2, 0, 3, 1]] + 1e-3
    np.testing.assert_allclose(network.align_columns(shuffled, teacher), teacher, atol=2e-3)
    np.testing.assert_allclose(
        network.aligned(jnp.asarray(shuffled)[None], jnp.asarray(teacher))[0], teacher, atol=2e-3
    )
    assert network.distance(shuffled, teacher) == pytest.approx(np.sqrt(20) * 1e-3)


def test_permuting_neurons_does_not_change_the_risk():
    world, data = _instance()
    a = network.loss_of(world.teacher, data.inputs, data.labels)
    np.testing.assert_allclose(
        a, network.loss_of(world.teacher[:, ::-1], data.inputs, data.labels), rtol=1e-12
    )
