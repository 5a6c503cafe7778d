"""Trainings: two ways to the same one, what they conserve, what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.descent import Descent
from lemmata.errors import BadInput
from lemmata.guard import double
from lemmata.loop import train
from lemmata.studies.in_context_learning import network
from lemmata.studies.in_context_learning.data import Contexts
from lemmata.studies.in_context_learning.trials import Classic, Layer, Stack, lemmas
from lemmata.studies.in_context_learning.trials import Testing as Asked
from lemmata.studies.in_context_learning.trials.layer import columns
from lemmata.threefry import new_key
from lemmata.trial import put_all, random_key, with_precision

SMALL = Layer(
    data=Contexts(irrelevant=4, feature_dim=10, label_dim=3, room=8, examples=8),
    test=Asked(irrelevant=4, prompts=20),
    descent=Descent(loss="hinge", learning_rate=1.0, batches="fresh", batch=12, stop="cap", steps=4),
    neurons=10,
    diagonal=0.2,
    precision="float64",
)


@pytest.fixture(scope="module")
def ends():
    """Both simulators after four steps of size 20, in the basis of patterns."""

    def end(simulator):
        one = put_all(SMALL, {"simulator": simulator, "descent.learning_rate": 20.0})
        trial = with_precision(one)

        @jax.jit
        def walk(key):
            begun = trial.start(key)
            return begun, jax.lax.fori_loop(0, 4, lambda _, state: trial.step(state), begun)

        begun, state = walk(random_key(one, 3))
        return trial.weights(begun), trial.weights(state), state

    with double():
        return {simulator: end(simulator) for simulator in ("patterns", "tokens")}


def test_weights_in_the_basis_of_patterns_follow_the_weights_themselves(ends):
    reduced, whole = ends["patterns"][1], ends["tokens"][1]
    for a, b in zip(reduced, whole, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


def test_training_conserves_the_keys_of_the_sum_of_patterns(ends):
    for begun, end, _ in ends.values():
        moved = (end.key - begun.key)[0]
        assert float(jnp.abs(moved[:, :6].sum(1)).max()) < 1e-11
        assert float(jnp.abs(moved[:6, :6]).max()) > 1e-4


def test_queries_have_no_weights_on_labels(ends):
    for _, end, _ in ends.values():
        assert float(jnp.abs(end.query[..., -1]).max()) < 1e-11


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"descent.loss": "squared"}, "hinge or logistic"),
        ({"descent.batches": "full"}, "fresh"),
        ({"test.fractions": (0.0,)}, "(0, 1]"),
        ({"test.coefficient_sum": 1.4}, "S_1"),
        ({"test.irrelevant": 30}, "irrelevant patterns"),
        ({"data.relevant": 4, "data.feature_dim": 8}, "mix six"),
        ({"test.kinds": (), "test.sums": (1.0,)}, "out of domain"),
        ({"prune_rates": (1.0,)}, "pruning rates"),
        ({"diagonal": 0.0}, "delta"),
        ({"followed": True, "heads": 2}, "one head"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(changes, said):
    with pytest.raises(BadInput) as refused:
        put_all(SMALL, changes)
    assert said in str(refused.value)


def test_a_deep_model_with_positions_reads_no_longer_prompts():
    with pytest.raises(BadInput, match="no prompts longer"):
        Stack(positions=True, test=Asked(lengths=(40,)))


def test_nearest_neighbours_solve_prompts_without_noise_where_a_context_matches():
    """With every context decisive and no irrelevant part, 1-NN finds the query's own pattern."""
    pytest.importorskip("sklearn")
    test = Asked(fractions=(1.0,), lengths=(12,), prompts=40, noise_bound=0.0, kinds=("partners",))
    one = Classic(Contexts(noise_bound=0.0), test, "1-nn")
    with double():
        found = one.compute(new_key(0))
    assert float(np.asarray(found["error"]).max()) <= 0.03
    assert np.asarray(found["ood_error"]).shape == (1, 1, 1)


@pytest.mark.slow
def test_the_layer_learns_unseen_tasks():
    """At the document's size: a loss below 0.05 on tasks that were not trained on, attention on matching contexts."""
    found = train(put_all(Layer(), {"descent.steps": 400, "test.kinds": ()}), seed=11)
    assert found["hinge"].item() < 0.05
    assert found["mass"].item() > 0.9


def test_coefficients_of_lemma_e46_are_the_step_of_values():
    """(E.14): the gradient of W_V is made of rows of W_O, with the coefficients that the lemma bounds."""
    one = with_precision(put_all(SMALL, {"followed": True}))
    with double():

        @jax.jit
        def both(key):
            state = one.start(key)
            world, folded = state.world, network.fold(state.params)
            prompts = one.data.draw(new_key(2), world.tasks, world.trained, 24)
            seen = columns(one, world.basis, prompts)
            chosen = lemmas.lucky(folded, world.votes, prompts, seen)
            found = lemmas.coefficients(folded, world.votes, prompts, seen, chosen)
            moved = state.params.hidden @ (jnp.abs(world.votes)[:, None] * (found.own + found.rest))
            slope = jax.grad(one.objective)(state.params, prompts, world, key)
            return moved, -slope.value[0], found, one.watch(state)

        moved, wanted, found, watched = both(random_key(one, 1))
    np.testing.assert_allclose(moved, wanted, atol=1e-13)
    assert float(jnp.abs(found.own).max()) > 0
    assert float(jnp.abs(watched["query_update"]).max()) == 0
