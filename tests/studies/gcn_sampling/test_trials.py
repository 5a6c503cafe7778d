"""Trainings: the field follows the whole graph, cA follows A, twins at full rate are one, Algorithm 2 is its own objective."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import kernels
from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.loop import train
from lemmata.studies.gcn_sampling import network
from lemmata.studies.gcn_sampling.data import DegreeGroups
from lemmata.studies.gcn_sampling.network.fields import whole_field
from lemmata.studies.gcn_sampling.trials import OnFile, Training, Twins
from lemmata.studies.gcn_sampling.trials.training import moved
from lemmata.threefry import new_key
from lemmata.trial import put, put_all, with_precision
from tests.kernels import forms, needs_compiler

GRAPH = DegreeGroups(degrees=(6, 2), sizes=(8, 32), features=4, target_width=3)
SMALL = put_all(
    Training(graph=GRAPH, labels=20, dropout=0.0, precision="float64", rates=(0.5, 0.75), budget=30),
    {"width": 7, "descent.steps": 30, "descent.learning_rate": 0.02, "descent.logs": 2},
)


@pytest.fixture(scope="module")
def begun():
    with double():
        return jax.jit(lambda trial, key: trial.start(key))(with_precision(SMALL), new_key(1))


@pytest.fixture(scope="module")
def stepped(begun):
    """Thirty steps of any trial with the structure of `SMALL`, compiled once."""

    def run(trial, state):
        return jax.lax.fori_loop(0, 30, lambda _, now: trial.step(now), state)

    with double():
        return jax.jit(run)


def test_training_in_the_field_is_training_on_the_whole_graph(begun, stepped):
    found, wanted = (stepped(with_precision(put(SMALL, "engine", one)), begun) for one in ("field", "whole"))
    for one, other in zip(found.weights, wanted.weights, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert float(jnp.max(jnp.abs(found.weights.w2 - begun.weights.w2))) > 1e-4
    np.testing.assert_array_equal(
        found.weights.readout, begun.weights.readout
    )  # frozen, as the document has it


@needs_compiler
@pytest.mark.parametrize(
    ("sampler", "precision", "width"),
    [
        ("groups", "float64", 7),
        ("groups", "float32", 37),
        ("effective", "float64", 16),
        ("none", "float64", 40),
    ],
)
def test_the_kernel_takes_the_step(sampler, precision, width):
    """In lanes whose weights, graphs and batches differ, with dropout and nodes that are in their batch more than once: fields
    of 18, 21 and 6 nodes below the batch."""
    settings = {"sampler": sampler, "precision": precision, "width": width, "dropout": 0.4}
    with double():
        trial = with_precision(put_all(SMALL, settings))
        states = jax.jit(jax.vmap(trial.start))(jax.random.split(new_key(2), 3))
        batches = jnp.array([[0, 3, 3, 20, 39], [5, 11, 7, 30, 31], [39, 39, 38, 38, 39]], jnp.int32)
        keys = jax.random.key_data(jax.random.split(new_key(3), 3))
        found, wanted = (
            jax.jit(jax.vmap(partial(form, trial)))(states, batches, keys) for form in forms(moved)
        )
        off = {"float32": 1e-6, "float64": 1e-14}[precision]
        for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            assert ours.dtype == theirs.dtype
            np.testing.assert_allclose(ours, theirs, rtol=off, atol=off)
        for ours, before in zip(found[0][:2], states.weights, strict=False):
            assert float(jnp.abs(ours - before).max()) > 1e-5


def test_hidden_layers_of_two_widths_are_left_to_jax(begun):
    """The kernel has one width: with m_1 = 5 and m_2 = 4 its gradient was wrong."""
    draw = np.random.default_rng(0).normal
    sizes = {
        "w1": (4, 5),
        "w2": (5, 4),
        "readout": (4, begun.weights.readout.shape[1]),
        "bias1": 5,
        "bias2": 4,
    }
    weights = begun.weights._replace(**{name: jnp.asarray(draw(size=size)) for name, size in sizes.items()})
    trial, state = with_precision(SMALL), begun._replace(weights=weights)
    found, _, loss, _ = jax.jit(lambda state: moved(trial, state, BATCH, jax.random.key_data(KEY)))(state)
    refusal = "JAX: gcn_step: width is 5 in w1 and 4 in w2"
    assert kernels.choices["gcn_step.moved"] in (refusal, "JAX: there is no C++ compiler")
    whole = with_precision(put(SMALL, "engine", "whole"))
    ((wanted, _), slope) = jax.jit(lambda state: whole.slope(state, BATCH, KEY))(state)
    assert float(loss) == pytest.approx(float(wanted), rel=1e-12)
    for name in ("w1", "w2"):
        before, step = getattr(weights, name), 0.02 * getattr(slope, name)
        assert float(jnp.abs(step).max()) > 1e-3
        np.testing.assert_allclose(getattr(found, name), before - step, atol=1e-12)


def test_training_with_ca_is_training_with_a_in_other_units(begun, stepped):
    """From rescaled weights, with steps eta/c^2 for W and eta/c^4 for V: every iterate is the rescaled one."""
    c = 0.5
    trial = with_precision(put_all(SMALL, {"sampler": "effective", "scaling": (1.0, 1.0)}))
    scaled = with_precision(put_all(SMALL, {"sampler": "effective", "scaling": (c, c)}))
    one, other = begun, begun._replace(weights=network.rescaled(begun.weights, c))

    @jax.jit
    def both(a, b):
        ((_, _), slope), ((_, _), own) = trial.slope(a, BATCH, KEY), scaled.slope(b, BATCH, KEY)
        left = a.weights._replace(w1=a.weights.w1 - 0.05 * slope.w1, w2=a.weights.w2 - 0.05 * slope.w2)
        right = b.weights._replace(
            w1=b.weights.w1 - 0.05 / c**2 * own.w1, w2=b.weights.w2 - 0.05 / c**4 * own.w2
        )
        return a._replace(weights=left), b._replace(weights=right)

    for _ in range(5):
        one, other = both(one, other)
    for a, b in zip(network.rescaled(one.weights, c), other.weights, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-14)


BATCH = jnp.array([0, 3, 9, 20, 39], jnp.int32)
KEY = new_key(4)


def test_the_gradient_of_a_batch_is_that_of_the_displayed_equation(begun):
    trial = with_precision(put_all(SMALL, {"sampler": "effective"}))

    def plain(weights):
        found = network.outputs(weights, begun.world.graph, begun.world.features, *trial.scales())
        return jnp.mean(0.5 * jnp.sum((found - begun.world.labels)[BATCH] ** 2, axis=1))

    (loss, _), slope = jax.jit(lambda: trial.slope(begun, BATCH, KEY))()
    wanted_loss, wanted = jax.jit(jax.value_and_grad(plain))(begun.weights)
    assert float(loss) == pytest.approx(float(wanted_loss), rel=1e-12)
    for one, other in zip(slope, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


def test_algorithm_2_is_its_own_objective(begun):
    """(5.11) written out: decayed, disturbed weights, the loss of the batch, and the two regularisers of the learnt part."""
    trial = with_precision(put_all(SMALL, {"mode": "full", "sampler": "effective", "algorithm.inner": 10}))
    away = begun.weights._replace(w1=begun.weights.w1 + 0.1, w2=begun.weights.w2 - 0.05)

    @jax.jit
    def ways(step):
        field = whole_field(begun.world.graph, BATCH, trial.graph.widest)
        found, _ = trial.objective(away, begun.weights, begun.world, step, BATCH, KEY, field)
        decay = 0.98 ** (step // 10)
        used = trial.disturbed(away, begun.weights, decay, jax.random.split(KEY, 3)[1])
        outputs = network.outputs(used, begun.world.graph, begun.world.features, *trial.scales())
        loss = jnp.mean(0.5 * jnp.sum((outputs - begun.world.labels)[BATCH] ** 2, axis=1))
        return found, loss, decay

    for step in (0, 25):
        found, loss, decay = (float(x) for x in ways(step))
        reg_w, reg_v = 2 * 0.01 * 7**2.98 / 30**4, 2 * 0.01 * 7**0.01
        penalty = reg_w * decay**2 * 7 * (4 * 0.01) ** 2 + reg_v * decay * 49 * 0.0025
        assert found == pytest.approx(loss + penalty, rel=1e-10)
        assert decay == pytest.approx(1 if step == 0 else 0.98**2)


def test_twins_at_full_rate_are_one_and_apart_below_it():
    twins = Twins(training=put_all(SMALL, {"budget": 10, "rates": (1.0, 1.0)}), precision="float64")
    same = train(twins, seed=3)
    assert same["weight_gap"] == pytest.approx(0, abs=1e-12)
    assert same["error"] == pytest.approx(same["twin_error"], abs=1e-12)
    apart = train(put(twins, "training.rates", (0.5, 0.5)), seed=3)
    assert apart["weight_gap"] > 0.05
    assert apart["twin_error"] == pytest.approx(same["twin_error"], rel=1e-9)


def test_steps_go_with_labels_unless_a_budget_says_otherwise():
    assert put_all(SMALL, {"budget": 0, "labels": 20, "passes": 1}).wanted == 20
    assert SMALL.wanted == 30


def test_the_practical_parametrisation_learns_the_readout_and_has_no_biases():
    trial = with_precision(put_all(SMALL, {"parametrisation": "conventional", "engine": "whole"}))
    with double():
        before, after = jax.jit(lambda key: (now := trial.start(key), trial.step(now)))(new_key(2))
    assert not np.any(before.weights.bias1)
    assert not np.any(after.weights.bias2)
    assert float(jnp.max(jnp.abs(after.weights.readout - before.weights.readout))) > 0


@pytest.mark.slow
def test_a_training_on_a_file_finds_classes_that_its_features_tell():
    """The made graph: three classes, a third guessed right by chance; accuracy is that of the largest output."""
    trial = put_all(OnFile(), {"training.width": 16, "training.budget": 200, "training.descent.steps": 200})
    found = train(trial, seed=0)
    assert found["accuracy"] > 0.6
    assert found["accuracy"] == pytest.approx(found["star_accuracy"])
    state = jax.jit(lambda key: trial.start(key))(new_key(0))
    assert float(trial.accuracy(state.world.labels, state.world)) == 1.0


def test_the_cross_entropy_of_classes_is_one_at_zero_outputs_and_is_for_files_only():
    found = OnFile().training.losses(jnp.zeros((1, 3)), jnp.array([[0.0, 1.0, 0.0]]))
    assert float(found[0]) == pytest.approx(1.0)
    with pytest.raises(BadInput, match="cross-entropy for the classes of a graph file"):
        put(SMALL, "descent.loss", "cross-entropy")
