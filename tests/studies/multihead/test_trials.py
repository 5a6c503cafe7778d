"""Trainings: right gradients in every lane, theorems inside their conditions, controls, forecasts, claims that follow the
settings."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import BadInput
from lemmata.descent import Descent
from lemmata.loop import begin, run_block, stack_runs, train
from lemmata.results import made
from lemmata.studies.multihead import STUDY, network, theory
from lemmata.studies.multihead.figures import good_start, mixture
from lemmata.studies.multihead.network import Heads, Network
from lemmata.studies.multihead.theory.forecast import Forecast
from lemmata.studies.multihead.trials import Guaranteed, SecondPhase, Training
from lemmata.trial import put, random_key, with_precision

DESCENT = Descent(learning_rate=1.0, stop="cap", steps=20, logs=5)


def two_lanes(*trials):
    """Two trainings side by side, started on the seed 100: every test below uses the same compiled program."""
    return stack_runs([begin(with_precision(t), random_key(t, 100)) for t in trials])


def run(lanes):
    return run_block(lanes, jnp.asarray(20, jnp.int32), jnp.asarray(0, jnp.int32))


def test_every_lane_starts_with_the_gradient_of_the_closed_form():
    """At zero weights the decoder's gradient is minus the first-phase row over sqrt(heads), whatever the memory held
    before: a fusion of the compiler once made it read what it had not written."""
    for _ in range(3):
        used = [np.random.default_rng(0).standard_normal(n) for n in (80, 1000, 8000, 160_000)]
        jax.block_until_ready([jnp.asarray(x) * 2 for x in used])
        state = two_lanes(*(Training(network=Network(heads=h), descent=DESCENT) for h in (4.0, 1.0))).state
        for lane, heads in enumerate((4.0, 1.0)):
            row = network.first_phase_row(jax.tree.map(lambda x, i=lane: x[i], state.data))
            expected = np.broadcast_to(-row / heads**0.5, (1, 10, 4))
            np.testing.assert_allclose(state.fit.grads.decoder[lane], expected, rtol=1e-10)


def test_a_trillion_heads_train_like_one_with_a_slow_attention():
    many = Training(network=Network(heads=1e12), descent=DESCENT)
    one = Training(descent=put(DESCENT, "attention_rate", 1e-12))
    curves = np.asarray(run(two_lanes(many, one)).curves["log_train_loss"])
    assert curves[0, -1] < curves[0, 0]
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-9)


def test_frozen_attention_is_logistic_regression_on_the_mean_token_and_grown_steps_grow():
    """`H^growth` multiplies the step; without attention the model is `sum_t u_t . xbar` over all heads."""
    frozen = Training(network=Network(heads=4.0), descent=put(DESCENT, "attention_rate", 0.0), growth=0.5)
    lanes = run(two_lanes(frozen, Training(network=Network(heads=4.0), descent=DESCENT, growth=0.5)))
    data = jax.tree.map(lambda x: np.asarray(x[0]), lanes.state.data._replace(noise=None))
    features = np.tile(data.tokens.mean(axis=1), (1, 10))
    weights = np.zeros(40)
    for _ in range(20):
        slopes = -data.labels / (1 + np.exp(data.labels * (features @ weights)))
        weights = weights - 2.0 * features.T @ slopes / len(slopes)
    trained = np.asarray(lanes.state.fit.params.decoder[0]).ravel() * 2  # four heads over root four
    np.testing.assert_allclose(trained, weights, rtol=1e-9)
    moved, changed = (np.asarray(lanes.curves[name]) for name in ("attention_moved", "attention_change"))
    assert (moved[0] == 0).all()
    assert (changed[0] == 0).all()
    assert moved[1, -1] == pytest.approx(np.linalg.norm(lanes.state.fit.params.attention[1, 0]))
    assert 0.1 < changed[1, -1] <= 1


def test_the_test_set_is_not_the_training_set():
    trial = Training(descent=DESCENT)
    state = jax.tree.map(lambda x: x[0], two_lanes(trial, trial).state)
    test = jax.jit(lambda s: with_precision(trial)._test(s))(state)
    assert test.tokens.shape == (trial.data.test_samples, 10, 4)
    assert np.abs(np.asarray(test.tokens[:100]) - np.asarray(state.data.tokens)).max() > 0.1


def test_own_data_and_weights_take_the_place_of_the_drawn_ones():
    trial = Training(descent=DESCENT)
    mine = jax.tree.map(lambda x: x[0, :7], two_lanes(trial, trial).state.data)
    weights = Heads(jnp.full((1, 10, 4), 0.1), jnp.full((1, 4, 4), 0.2))
    found = train(trial, 100, data=mine, weights=weights)
    assert found["attention_moved_curve"][0] == 0  # the start is the given one
    assert found["mean_attention_norm_curve"][0] == pytest.approx(0.8)
    direct = jax.jit(network.mean_loss, static_argnums=0)(trial.network, weights, jnp.ones(1), mine)
    assert found["train_loss_curve"][0] == pytest.approx(float(direct))


def test_theorems_hold_inside_their_conditions_and_attention_does_not_move():
    trial = Guaranteed(distance=0.1)
    assert trial.heads == 551
    assert all(condition.met for condition in theory.theorem_2_conditions(trial))
    found = train(trial, seed=100)
    bound = theory.training_bound(trial.target, trial.step_size, trial.steps)
    assert found["last_loss"] <= found["loss_sum"] / trial.steps <= bound
    assert found["target_loss"] <= trial.target.loss
    assert found["farthest"] <= theory.ball_radius(trial.target)
    assert found["farthest_from_target"] <= 3 * trial.distance
    assert found["worst_descent"] <= 0
    assert found["worst_recursion"] <= 1
    assert 0 < found["attention_change"] < 1e-9
    samples = trial.data.samples
    stability = theory.stability_bound(trial.bounds, trial.target, trial.step_size, trial.steps, samples)
    assert found["stability"] <= stability
    push = theory.stability_push(trial.bounds, trial.target, trial.step_size, samples, 1.0)
    assert (found["away"] <= 2 * push * found["left_out_sum"]).all()


def test_leave_one_out_twins_are_trainings_without_one_sample():
    """Twin `i` by hand: gradient descent on the mean over all samples, sample `i` left out of the sum."""
    trial = Guaranteed(distance=0.1, cap=5)
    one = with_precision(trial)

    @jax.jit
    def both(key):
        state = one.start(key)
        data, members = state.data, state.world.members
        weights = jnp.ones(trial.data.samples).at[3].set(0) / trial.data.samples

        def loss(params):
            return weights @ jax.nn.softplus(-network.margins(trial.network, params, members, data))

        params = network.zero_heads(trial.network, 2, 2)
        for _ in range(5):
            state = one.step(state)
            params = jax.tree.map(lambda p, g: p - trial.step_size * g, params, jax.grad(loss)(params))
        return state.params.decoder[4], params.decoder

    np.testing.assert_allclose(*both(random_key(trial, 100)), rtol=1e-10)


def test_a_run_of_the_second_phase_ends_at_the_horizon_of_its_own_target():
    trial = SecondPhase(distance=0.05)
    found = train(trial, seed=100)
    spent = trial.step_size * found["target_loss"] / trial.distance**2
    horizon = int(found["horizon"])
    assert horizon * spent <= 1
    assert horizon == trial.steps or (horizon + 1) * spent > 1
    assert found["worst_descent"] <= 0
    assert max(found["roughest"], found["longest_segment"]) <= 1


# Forecasts and claims --------------------------------------------------------------------------------------------------


def test_prediction_names_heads_step_and_what_binds():
    conditions, predictions = theory.predict(Forecast())
    said = {p.name: p.value for p in predictions}
    assert float(said["heads that Theorem 1 asks for"]) <= float(said["heads that Theorem 2 asks for"])
    assert said["what limits the step size"] == "1/rho"
    assert said["condition that binds"] == min(conditions[:6], key=lambda c: c.margin).name
    few, _ = theory.predict(put(Forecast(), "heads", 100.0))
    assert few[0].holds is False


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("mixture.relevant_fraction", 0.15, "must be a whole number"),
        ("mixture.dim", 3, "need at least 4 dimensions"),
        ("step_size", 0.0, "step size must be positive"),
        ("step_size", float("nan"), "takes a finite number"),
        ("heads", 1.5, "whole number from 1"),
        ("steps", 0, "at least one step"),
        ("distance", 1e100, "takes a finite number"),
        ("mixture.signal", 1e100, "takes a finite number"),
    ],
)
def test_impossible_questions_are_refused_in_one_sentence(path, value, sentence):
    with pytest.raises(BadInput, match=sentence) as refusal:
        theory.predict(put(Forecast(), path, value))
    assert str(refusal.value).count(". ") == 0


def test_claims_are_judged_at_the_settings_that_were_run():
    """Eight tokens of which two are relevant: each change alone is impossible, and limits and conditions follow."""
    changes = {"data.tokens": 8, "data.relevant_fraction": 0.25}
    sweep = mixture.fig2.sweep("quick").with_fields(changes)
    records = {
        "margin": lambda t, rng: t.data.signal * 2.0 * (1 + 0.01 * rng.normal()),
        "train_loss_curve": lambda t, rng: (1 + 0.01 * rng.random()) / (1 + np.asarray(t.log_steps)),
    }
    results = made(sweep, records)
    results.attrs |= {"study": "multihead", "figure": "fig2"}
    assert mixture.one_head_margin(results).value == pytest.approx(1, abs=0.02)  # S sqrt(T/2) = 2 S
    [verdict] = STUDY.check(results, only="rate-in-steps")
    assert verdict.measured.value == pytest.approx(-1, abs=0.02)
    assert len(verdict.conditions) == 6


def test_ratios_of_runs_that_log_different_steps_use_the_steps_of_each():
    results = good_start.shares(segment_loss_curve=lambda t: 1.2).results(good_start.good_start)
    assert "log" in results.dims
    ends = [SecondPhase(distance=float(d)).steps for d in results.distance.values]
    assert results.step.isel(log=-1).values.tolist() == ends
    assert float(good_start.ratios(results)["segment loss (Prop. 4)"].min()) > 1
