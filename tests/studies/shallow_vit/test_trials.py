"""Trainings keep the promises of the algorithm, and what is looked at is what its name says."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.loop import train
from lemmata.status import CONVERGED
from lemmata.studies.shallow_vit.data import TokenData
from lemmata.studies.shallow_vit.network import Network
from lemmata.studies.shallow_vit.theory import early_neuron_slope
from lemmata.studies.shallow_vit.trials import (
    BOUNDS,
    SGD,
    ViTTraining,
    class_gain,
    leaning,
    lucky_sets,
    signed_groups,
    value_pull,
)
from lemmata.threefry import key_of, new_key
from lemmata.trial import put_all, random_key, with_precision

SMALL = ViTTraining(
    data=TokenData(samples=12, tokens=20, relevant_fraction=0.5, confusion_fraction=0.1),
    network=Network(neurons=64),
    descent=dataclasses.replace(SGD, batch=4, steps=200, logs=8),
    precision="float64",
    test_samples=40,
)


def changed(**fields):
    return put_all(SMALL, {path.replace("__", "."): value for path, value in fields.items()})


# compiled once for all trials of one structure
START = jax.jit(lambda trial, key: trial.start(key))
STEP = jax.jit(lambda trial, state: trial.step(state))


def begun(given, seed=0):
    trial = with_precision(given)
    return trial, START(trial, random_key(given, seed))


def stepped(given, count, seed=0):
    trial, state = begun(given, seed)
    states = [state]
    for _ in range(count):
        states.append(STEP(trial, states[-1]))
    return trial, states


def test_training_ends_at_zero_training_loss_and_generalises():
    record = train(SMALL)
    assert record["status"] == CONVERGED
    assert 5 < record["steps"] < 200
    assert record["train_loss"] == 0
    assert record["test_error"] == 0
    assert record["attention"] > 0.5


def test_a_batch_with_zero_hinge_loss_moves_nothing_and_the_stop_rule_sees_it():
    trial, states = stepped(SMALL, 1)
    state = states[0]
    network = trial.network
    signs = jax.jit(
        jax.vmap(lambda one: jnp.sign(network.outputs(network.fold(state.params), state.world.votes, one)))
    )(state.data)
    world = state.world._replace(votes=1e6 * state.world.votes)
    easy = state._replace(world=world, data=state.data._replace(label=signs))
    none = easy._replace(fit=easy.fit._replace(grads=jax.tree.map(jnp.zeros_like, easy.fit.grads)))
    after = STEP(trial, none)
    assert bool(after.done)
    assert float(after.fit.loss) == 0
    assert all(float(jnp.abs(part).max()) == 0 for part in after.fit.grads)
    assert not bool(states[1].done)


def test_frozen_attention_keeps_keys_and_queries_bit_for_bit():
    _, states = stepped(changed(network__attention="frozen"), 3)
    np.testing.assert_array_equal(states[0].params.key, states[-1].params.key)
    np.testing.assert_array_equal(states[0].params.query, states[-1].params.query)
    assert np.any(states[0].params.value != states[-1].params.value)


def test_one_step_is_the_gradient_step_of_the_batch():
    trial, states = stepped(changed(descent__batch=12, descent__attention_rate=0.5), 1)
    first, network = states[0], trial.network

    def objective(weights):
        def one(sample):
            return jax.nn.relu(1 - network.margin(network.fold(weights), first.world.votes, sample))

        return jnp.mean(jax.vmap(one)(first.data))

    gradient = jax.jit(jax.grad(objective))(first.params)
    rates = (0.5, 0.5, 1.0, 1.0)
    for before, slope, rate, after in zip(first.params, gradient, rates, states[1].params, strict=True):
        np.testing.assert_allclose(before - rate * slope, after, atol=1e-12)


def test_batches_walk_through_all_samples_in_a_new_order_every_epoch():
    trial, state = begun(SMALL)
    way = key_of(state.key)
    marked = state.data._replace(label=jnp.arange(12.0)[:, None])
    look = jax.jit(lambda step: trial.batch(way, step, marked, state.world).label[:, 0])
    epochs = [np.concatenate([look(jnp.asarray(3 * e + b)) for b in range(3)]) for e in range(4)]
    for one in epochs:
        np.testing.assert_array_equal(np.sort(one), np.arange(12))
    assert len({tuple(one) for one in epochs}) == 4


def test_test_samples_are_not_the_training_samples():
    """A network that has learnt nothing but its own samples by heart must be told from one that generalises."""
    trial, state = begun(changed(data__samples=40))
    draw = jax.jit(lambda key: trial.data.sample(key, state.world.patterns, jnp.asarray(3), True).tokens)
    test = draw(jax.random.fold_in(key_of(state.world.test), 3))
    assert float(jnp.abs(state.data.tokens - test).max(axis=(1, 2)).min()) > 0.1
    hard = changed(data__noise_std=0.6, data__samples=4, descent__steps=400)
    record = train(hard)
    assert record["train_error"] == 0
    assert record["test_error"] > 0.05  # four samples of pure noise tell nothing


@pytest.mark.slow
def test_weighted_patterns_train_like_all_tokens():
    quiet = changed(data__noise_std=0.0, network__output_weights="shared")
    whole = train(quiet, key=new_key(5))
    small = train(dataclasses.replace(quiet, simulator="patterns"), key=new_key(5))
    assert whole["steps"] == small["steps"]
    np.testing.assert_allclose(whole["test_loss"], small["test_loss"], atol=1e-9)
    np.testing.assert_allclose(whole["attention"], small["attention"], rtol=1e-9)


@pytest.mark.parametrize(
    ("fields", "steps"),
    [
        ({"descent__batches": "single-pass", "data__samples": 40}, 10),
        pytest.param({"descent__loss": "linear", "descent__steps": 20}, 20, marks=pytest.mark.slow),
    ],
)
def test_single_passes_and_the_linear_loss_run_to_their_last_step(fields, steps):
    trial = changed(**fields, descent__stop="cap", probes="attention")
    assert trial.log_steps[-1] == trial.steps == steps
    record = train(trial)
    assert record["status"] == CONVERGED
    assert record["steps"] == steps
    assert np.isfinite(record["attention_curve"]).all()


def test_arms_of_one_seed_see_the_same_data():
    key = random_key(SMALL, 0)
    for same in (changed(network__attention="frozen"), changed(descent__learning_rate=0.3)):
        assert jnp.all(jax.random.key_data(random_key(same, 0)) == jax.random.key_data(key))
    other = random_key(changed(data__relevant_fraction=0.55), 0)
    assert jnp.any(jax.random.key_data(other) != jax.random.key_data(key))


# What is looked at -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_early_growth_of_lucky_neurons_has_the_predicted_slope():
    """The slope per step is (eta/sqrt m)/2 times the attention on pattern 1 of positive less negative samples."""
    given = changed(
        data__noise_std=0.0,
        data__samples=40,
        network__output_weights="shared",
        network__neurons=1000,
        network__value_error=0.0,
        network__key_query_error=0.0,
        descent__learning_rate=0.01,
        descent__batch=40,
    )
    trial, states = stepped(given, 4)
    state, network = states[0], trial.network
    folded = network.fold(state.params)
    gates = jax.jit(jax.vmap(lambda one: network.features(folded, one) @ folded.hidden > 0))(state.data)
    paid = jax.jit(jax.vmap(lambda one: jnp.mean(network.attend(folded, one)[0] @ (one.pattern == 0))))(
        state.data
    )
    along = (state.params.value[0] @ state.world.base[0]) @ (states[-1].params.hidden - state.params.hidden)
    signed = np.asarray(signed_groups(state.world)[0] & jnp.all(gates, axis=(0, 1)))
    positive = np.asarray(state.data.label[:, 0] > 0)
    slope = early_neuron_slope(0.01, 1000, float(paid[positive].mean()), float(paid[~positive].mean()))
    assert float(along[signed].mean()) / 4 == pytest.approx(slope, rel=0.03)


def test_lucky_neurons_are_half_and_signed_ones_a_quarter():
    """Those with the wrong sign are fewer: half of them are lucky for the other pattern."""
    _, state = begun(changed(network__neurons=4000, network__output_weights="shared"))
    groups = np.asarray(signed_groups(state.world))
    np.testing.assert_allclose(groups.mean(1), [0.25, 0.25, 0.125], atol=4 * np.sqrt(0.25 * 0.75 / 4000))
    assert not np.any(groups[2] & (groups[0] | groups[1]))


def test_neurons_with_as_many_tokens_for_as_against_lean_nowhere():
    """A sum of equal weights with both signs rounds: the mean of some of them would be 1e-10 and not 0."""
    _, state = begun(changed(network__neurons=777, network__output_weights="per_token", data__tokens=20))
    votes = np.asarray(state.world.votes[..., 0])
    count = (votes > 0).sum(0) - (votes < 0).sum(0)
    assert np.any(np.mean(votes, axis=0)[count == 0] != 0)
    np.testing.assert_array_equal(leaning(state.world), np.sign(count))


def test_values_are_pulled_along_neurons_by_the_gradient():
    """-V_i w_i summed over neurons is what one step on the linear loss adds to the value of a pattern (27)."""
    trial, states = stepped(changed(descent__loss="linear", descent__stop="cap", descent__batch=12), 1)
    state = states[0]
    pull = np.asarray(jax.jit(value_pull)(trial, state))
    moved = (states[1].params.value - state.params.value)[0] @ state.world.base[:2].T
    np.testing.assert_allclose(np.asarray(state.params.hidden) @ pull.T, moved, atol=1e-10)


def test_probes_report_the_bounds_gates_and_sets_of_the_lemmas():
    given = changed(probes="neurons", network__output_weights="shared", descent__learning_rate=0.1)
    trial, states = stepped(given, 6)
    look = jax.jit(lambda t, s: t.watch(s))
    first, seen = look(trial, states[0]), look(trial, states[-1])
    np.testing.assert_array_equal(first["gate_kept"], 1)
    np.testing.assert_array_equal(first["lucky_kept"], 1)
    assert float(seen["gate_kept"][0]) < 1  # neurons with the wrong sign close
    base, now = np.asarray(states[-1].world.base), jax.tree.map(np.asarray, states[-1].params)
    start = jax.tree.map(np.asarray, states[0].params)
    features = start.value[0] @ base.T
    features /= np.linalg.norm(features, axis=0)
    along, xi, disorder = now.hidden.T @ features, 0.01, 0.1 + 0.01 * np.sqrt(10)
    ratio = (1 - disorder) / (1 + disorder)
    first_set = along[:, 0] * ratio > np.delete(along, 0, 1).max(1)
    second_set = along[:, 1] * ratio > np.delete(along, 1, 1).max(1)
    np.testing.assert_array_equal(
        lucky_sets(trial, jnp.asarray(now.hidden), jnp.asarray(features))[0], first_set
    )
    unlucky, size = ~first_set & ~second_set, (along**2).sum(1)
    cross = max(along[first_set][:, 1:].max(), np.delete(along[second_set], 1, 1).max())
    signed = np.asarray(jax.jit(value_pull)(trial, states[-1]))
    pull, sign = np.abs(signed).max(0), np.asarray(leaning(states[-1].world))
    expected = {
        "(33)": cross / xi,
        "(34)": size[~unlucky].max() / (5 * xi**2 + (0.1 * 6) ** 4),
        "(40)": along[unlucky][:, 2:].max() / xi,
        "(42)": size[unlucky].max() / (5 * xi**2),
        "(31)": signed.max(0)[unlucky].max() * np.sqrt(4) * 64,
        "(A.18)": pull[unlucky].max() * np.sqrt(4 * 64) * 5,
    }
    assert tuple(expected) == BOUNDS
    np.testing.assert_allclose(seen["neuron_bound"], list(expected.values()), rtol=1e-9)
    least = min(signed[0][first_set].min(), signed[1][second_set].min())
    good = first_set & (sign > 0) & (along[:, 0] > 0), second_set & (sign < 0) & (along[:, 1] > 0)
    right = min(signed[k][some].min() for k, some in enumerate(good))
    np.testing.assert_allclose(seen["value_pull"], [least, right], rtol=1e-9)
    assert least <= 0 < right
    groups = np.asarray(signed_groups(states[-1].world))
    np.testing.assert_allclose(seen["neuron_size"], [size[one].mean() for one in groups], rtol=1e-9)
    gain = (now.query[0] - start.query[0]) @ base.T
    keys = start.key[0] @ base.T / np.linalg.norm(start.key[0] @ base.T, axis=0)
    np.testing.assert_allclose(seen["query_gain"], gain.T @ keys, atol=1e-12)


def test_relevant_tokens_share_their_attention_between_all_kinds():
    """With 10 of 20 tokens relevant, 2 confusion and 8 others."""
    trial, states = stepped(changed(probes="attention"), 3)
    seen = jax.jit(lambda t, s: t.watch(s))(trial, states[-1])
    confusion, other = np.asarray(seen["attention_on_rest"])
    assert seen["attention_by_role"][0] + 2 * confusion + 8 * other == pytest.approx(1)


def test_four_class_neurons_learn_their_own_pattern_and_avoid_the_opposite():
    given = changed(
        probes="classes",
        data__classes=4,
        data__samples=32,
        data__confusion_fraction=0.15,
        network__output_weights="shared",
        network__neurons=400,
        descent__learning_rate=0.1,
        descent__batch=32,
    )
    trial, states = stepped(given, 12)
    first, last = states[0], states[-1]
    signs = np.sign(np.asarray(last.world.votes[0]))
    features = np.asarray(first.params.value[0] @ first.world.base[:4].T)
    grown = np.asarray(last.params.hidden - first.params.hidden).T @ features
    for kind, sign in enumerate([(1, 1), (1, -1), (-1, 1), (-1, -1)]):
        mean = grown[np.all(signs == sign, axis=-1)].mean(0)
        assert np.argmax(mean) == kind
        assert np.argmin(mean) == 3 - kind
        assert mean[3 - kind] <= 0 < mean[kind]
        lengths = np.linalg.norm(features, axis=0)
        np.testing.assert_allclose(class_gain(trial, last)[kind], mean / lengths, rtol=1e-9)


@pytest.mark.parametrize("probes", ["attention", pytest.param("pruning", marks=pytest.mark.slow)])
def test_looking_does_not_change_the_training(probes):
    plain, looked = train(SMALL, 3), train(dataclasses.replace(SMALL, probes=probes), 3)
    assert plain["steps"] == looked["steps"]
    np.testing.assert_allclose(plain["test_loss"], looked["test_loss"], atol=1e-12)
    if probes == "attention":
        assert looked["attention_by_role_curve"].shape == (len(SMALL.log_steps), 3)
    else:
        assert looked["test_pruned_precision"] > 0.6


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"network__heads": 2, "probes": "neurons"}, "one head"),
        ({"probes": "classes"}, "shared output weights"),
        ({"simulator": "patterns"}, "only without token noise"),
        ({"descent__loss": "linear"}, "without end"),
        ({"descent__loss": "squared"}, "hinge loss"),
        ({"descent__batches": "single-pass"}, "seen once"),
    ],
)
def test_impossible_trials_are_refused_in_one_sentence(fields, sentence):
    with pytest.raises(BadInput, match=sentence):
        changed(**fields)
