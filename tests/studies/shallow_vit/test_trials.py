"""Trainings keep the promises of the algorithm, and show the mechanism of the proofs."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.descent import CAPPED, CONVERGED, train
from lemmata.errors import BadInput
from lemmata.studies.shallow_vit.data import TokenData
from lemmata.studies.shallow_vit.lemmas import early_neuron_slope
from lemmata.studies.shallow_vit.network import Network
from lemmata.studies.shallow_vit.trials import SGD, ViTTraining, lucky_groups
from lemmata.trial import random_key, with_precision

SMALL = ViTTraining(
    data=TokenData(samples=12, tokens=20, relevant_fraction=0.5, confusion_fraction=0.1),
    network=Network(neurons=64),
    descent=SGD(batch=4, steps=200),
    precision="float64",
    test_samples=40,
)


def changed(trial, **parts):
    return dataclasses.replace(
        trial, **{name: dataclasses.replace(getattr(trial, name), **values) for name, values in parts.items()}
    )


def begun(given, seed=0) -> Any:
    trial: Any = with_precision(given)
    return trial, jax.jit(lambda key: trial.start(key))(random_key(trial, seed))


def stepped(trial, count, seed=0) -> Any:
    trial, state = begun(trial, seed)
    step = jax.jit(lambda s: trial.step(s))
    states = [state]
    for _ in range(count):
        states.append(step(states[-1]))
    return trial, states


def test_training_ends_at_zero_training_loss_and_generalises():
    record = train(SMALL)
    assert record["status"] == CONVERGED
    assert record["train_loss"] == 0
    assert record["test_error"] == 0
    assert record["attention"] > 0.5


def test_a_batch_with_zero_hinge_loss_moves_nothing():
    trial, state = begun(SMALL)
    far = state._replace(votes=1e6 * state.votes, data=state.data._replace(label=_predicted(trial, state)))
    after = jax.jit(lambda state: trial.step(state))(far)
    for before, moved in zip(far.weights, after.weights, strict=True):
        np.testing.assert_array_equal(before, moved)
    assert after.done


def _predicted(trial, state):
    return jax.vmap(
        lambda one: jnp.sign(trial.network.outputs(trial.network.fold(state.weights), state.votes, one))
    )(state.data)


def test_frozen_attention_keeps_keys_and_queries_bit_for_bit():
    _, states = stepped(changed(SMALL, network={"attention": "frozen"}), 3)
    np.testing.assert_array_equal(states[0].weights.key, states[-1].weights.key)
    np.testing.assert_array_equal(states[0].weights.query, states[-1].weights.query)
    assert np.any(states[0].weights.value != states[-1].weights.value)


def test_output_weights_and_data_never_change():
    _, states = stepped(SMALL, 3)
    np.testing.assert_array_equal(states[0].votes, states[-1].votes)
    np.testing.assert_array_equal(states[0].data.tokens, states[-1].data.tokens)


def test_one_step_is_the_gradient_step_of_the_batch():
    trial, states = stepped(changed(SMALL, descent={"batch": 12}), 1)

    def objective(weights):
        def one(sample):
            return jax.nn.relu(1 - trial.network.margin(trial.network.fold(weights), states[0].votes, sample))

        return jnp.mean(jax.vmap(one)(states[0].data))

    gradient = jax.grad(objective)(states[0].weights)
    for before, slope, after in zip(states[0].weights, gradient, states[1].weights, strict=True):
        np.testing.assert_allclose(before - slope, after, atol=1e-12)


@pytest.mark.slow
def test_runs_side_by_side_are_the_runs_alone():
    trial = with_precision(SMALL)
    keys = jnp.stack([random_key(SMALL, seed) for seed in (0, 1)])
    together = jax.vmap(lambda key: trial.step(trial.start(key)))(keys)
    alone = trial.step(trial.start(keys[1]))
    np.testing.assert_allclose(together.weights.hidden[1], alone.weights.hidden, rtol=1e-12)


@pytest.mark.slow
def test_weighted_patterns_train_like_all_tokens():
    quiet = changed(SMALL, data={"noise_std": 0.0}, network={"output_weights": "shared"})
    whole = train(quiet, key=jax.random.key(5))
    small = train(dataclasses.replace(quiet, simulator="patterns"), key=jax.random.key(5))
    assert whole["steps"] == small["steps"]
    np.testing.assert_allclose(whole["test_loss"], small["test_loss"], atol=1e-9)
    np.testing.assert_allclose(whole["attention"], small["attention"], rtol=1e-9)


def test_single_pass_sees_every_sample_once():
    trial = changed(SMALL, data={"samples": 40}, descent={"sampling": "single_pass"})
    assert trial.steps == 10
    record = train(trial)
    assert record["status"] == CAPPED
    assert record["steps"] == 10


def test_linear_loss_runs_to_the_cap():
    record = train(changed(SMALL, descent={"loss": "linear", "steps": 20}))
    assert record["status"] == CAPPED


def test_arms_of_one_seed_see_the_same_data():
    frozen = changed(SMALL, network={"attention": "frozen"})
    assert np.all(begun(SMALL)[1].data.tokens == begun(frozen)[1].data.tokens)
    other = changed(SMALL, data={"relevant_fraction": 0.55})
    assert np.any(begun(SMALL)[1].patterns != begun(other)[1].patterns)


def test_early_growth_of_lucky_neurons_has_the_predicted_slope():
    """The slope per step is (eta/sqrt m)/2 times the attention on pattern 1 of positive less negative
    samples."""
    trial = changed(
        SMALL,
        data={"noise_std": 0.0, "samples": 40},
        network={"output_weights": "shared", "neurons": 1000, "value_error": 0.0, "key_query_error": 0.0},
        descent={"learning_rate": 0.01, "batch": 40},
    )
    trial, states = stepped(trial, 4)
    state = states[0]
    base = state.patterns[:, 0]
    along = (state.weights.value[0] @ base[0]) @ (states[-1].weights.hidden - state.weights.hidden)
    signed = lucky_groups(state)[0] & _opens_everywhere(trial, state)
    paid = jax.vmap(
        lambda one: jnp.mean(
            trial.network.attend(trial.network.fold(state.weights), one)[0] @ (one.pattern == 0)
        )
    )(state.data)
    positive = state.data.label[:, 0] > 0
    slope = early_neuron_slope(0.01, 1000, float(paid[positive].mean()), float(paid[~positive].mean()))
    measured = float(along[signed].mean()) / 4
    assert measured == pytest.approx(slope, rel=0.03)


def _opens_everywhere(trial, state):
    folded = trial.network.fold(state.weights)
    gates = jax.vmap(lambda one: trial.network.features(folded, one) @ folded.hidden > 0)(state.data)
    return jnp.all(gates, axis=(0, 1))


def test_lucky_neurons_are_half_and_signed_ones_a_quarter():
    _, state = begun(changed(SMALL, network={"neurons": 4000, "output_weights": "shared"}))
    share = np.asarray(lucky_groups(state)).mean(1)
    np.testing.assert_allclose(share, 0.25, atol=4 * np.sqrt(0.25 * 0.75 / 4000))


def test_four_class_neurons_learn_their_own_pattern_and_avoid_the_opposite():
    trial = changed(
        SMALL,
        data={"classes": 4, "samples": 32, "confusion_fraction": 0.15},
        network={"output_weights": "shared", "neurons": 400},
        descent={"learning_rate": 0.1, "batch": 32},
    )
    _, states = stepped(trial, 12)
    first, last = states[0], states[-1]
    signs = jnp.sign(last.votes[0])
    features = first.weights.value[0] @ first.patterns[:4, 0].T
    grown = (last.weights.hidden - first.weights.hidden).T @ features
    for kind, sign in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)]):
        group = np.asarray(jnp.all(signs == jnp.asarray(sign), axis=-1))
        mean = np.asarray(grown)[group].mean(0)
        assert np.argmax(mean) == kind
        assert np.argmin(mean) == 3 - kind
        assert mean[3 - kind] <= 0 < mean[kind]


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({"network": {"heads": 2}, "probes": "neurons"}, "one head"),
        ({"simulator": "patterns"}, "only without token noise"),
    ],
)
def test_impossible_trials_are_refused_in_one_sentence(parts, sentence):
    with pytest.raises(BadInput, match=sentence):
        dataclasses.replace(
            SMALL,
            **{
                k: dataclasses.replace(getattr(SMALL, k), **v) if isinstance(v, dict) else v
                for k, v in parts.items()
            },
        )


@pytest.mark.parametrize("field", ["learning_rate", "batch", "steps"])
def test_descent_without_a_positive_number_is_refused(field):
    with pytest.raises(BadInput):
        dataclasses.replace(SGD(), **{field: 0})


@pytest.mark.parametrize("probes", ["attention", "neurons", "pruning"])
def test_looking_does_not_change_the_training(probes):
    plain, looked = train(SMALL, 3), train(dataclasses.replace(SMALL, probes=probes), 3)
    assert plain["steps"] == looked["steps"]
    np.testing.assert_allclose(plain["test_loss"], looked["test_loss"], atol=1e-12)
    if probes == "attention":
        np.testing.assert_allclose(np.asarray(looked["attention_by_role_curve"])[0].shape, (3,))
    if probes == "neurons":
        persistence = np.asarray(looked["gate_persistence_curve"])
        assert np.nanmin(persistence[:, :2]) > 0.9
    if probes == "pruning":
        assert looked["test_pruned_precision"] > 0.6
