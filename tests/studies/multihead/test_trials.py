"""Trainings: right gradients in every lane, theorems inside their conditions, the figures at their smallest scale."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lemmata import BadInput, study
from lemmata.descent import Descent, fill, run_block, train
from lemmata.studies.multihead import claims, figures, network, theory
from lemmata.studies.multihead.forecast import Forecast, forecast_bounds
from lemmata.studies.multihead.network import Network
from lemmata.studies.multihead.trials import Guaranteed, Training, guaranteed_conditions
from lemmata.trial import put, random_key, with_precision

DESCENT = Descent(learning_rate=1.0, target_loss=0.0, steps=20, logs=5)


def two_lanes(*trials):
    """Two trainings side by side, started on the seed 100: every test below uses the same compiled program."""
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(with_precision(t) for t in trials))
    keys = jnp.stack([random_key(t, 100) for t in trials])
    return fill(stacked, keys, None, jnp.ones(2, bool))


def test_every_lane_starts_with_the_gradient_of_the_closed_form():
    """At zero weights the decoder's gradient is minus the first-phase row over sqrt(heads), whatever the memory held
    before: constant zeros once made it read what it had not written."""
    for _ in range(3):
        used = [np.random.default_rng(0).standard_normal(n) for n in (80, 1000, 8000, 160_000)]
        jax.block_until_ready([jnp.asarray(x) * 2 for x in used])
        state = two_lanes(*(Training(network=Network(heads=h), descent=DESCENT) for h in (4.0, 1.0))).state
        for lane, heads in enumerate((4.0, 1.0)):
            row = network.first_phase_row(jax.tree.map(lambda x, i=lane: x[i], state.train))
            expected = np.broadcast_to(-row / heads**0.5, (1, 10, 4))
            np.testing.assert_allclose(state.fit.grads.decoder[lane], expected, rtol=1e-10)


def test_theorems_hold_inside_their_conditions():
    trial = Guaranteed(distance=0.1)
    assert trial.heads == 551
    assert all(margin >= 1 for margin in guaranteed_conditions(trial).values())
    run = train(trial, seed=100)
    bound = theory.training_bound(trial.target, trial.step_size, trial.steps)
    assert run["last_loss"] <= run["mean_loss"] <= bound
    assert run["target_loss"] <= trial.target.loss
    assert run["farthest"] <= theory.ball_radius(trial.target)
    assert run["farthest_from_target"] <= 3 * trial.distance
    assert run["worst_descent"] <= 0
    assert max(run["worst_recursion"], run["worst_accumulation"]) <= 1
    samples = trial.data.samples
    assert run["stability"] <= theory.stability_bound(
        trial.bounds, trial.target, trial.step_size, trial.steps, samples
    )


def test_a_trillion_heads_train_like_few_would_with_a_slow_attention():
    many = Training(network=Network(heads=1e12), descent=DESCENT)
    one = Training(descent=DESCENT, attention_rate=1e-12)
    lanes = run_block(two_lanes(many, one), jnp.asarray(20, jnp.int32), jnp.asarray(0, jnp.int32))
    curves = np.asarray(lanes.curves["log_train_loss"])
    assert np.isfinite(curves).all()
    np.testing.assert_allclose(curves[0], curves[1], rtol=1e-9)


def test_prediction_names_heads_step_and_what_binds():
    conditions, predictions = claims.predict(Forecast())
    said = {p.name: p.value for p in predictions}
    assert float(said["heads that Theorem 1 asks for"]) <= float(said["heads that Theorem 2 asks for"])
    assert said["what limits the step size"] == "1/rho"
    assert said["condition that binds"] == min(conditions[:6], key=lambda c: c.margin).name
    few, _ = claims.predict(put(Forecast(), "heads", 100.0))
    assert few[0].holds is False


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        ("mixture.relevant_fraction", 0.15, "must be a whole number"),
        ("mixture.dim", 3, "need at least 4 dimensions"),
        ("step_size", 0.0, "step size must be positive"),
        ("step_size", float("nan"), "must be a finite number"),
        ("heads", 1.5, "whole number from 1"),
        ("steps", 0, "at least one step"),
        ("distance", 1e100, "range of numbers"),
        ("mixture.signal", 1e100, "range of numbers"),
    ],
)
def test_impossible_questions_are_refused_in_one_sentence(path, value, sentence):
    with pytest.raises(BadInput, match=sentence) as refusal:
        claims.predict(put(Forecast(), path, value))
    assert str(refusal.value).count(". ") == 0


def test_gaussian_noise_is_forecast_with_high_probability():
    data = put(Forecast(), "mixture.noise_law", "gaussian").mixture
    assert forecast_bounds(data, 100, 0.05).noise.norm > 0


def test_title_page_matches_figures_and_claims():
    page = study("multihead")
    assert set(page.figures) == set(figures.FIGURES)
    assert set(page.claims) == set(claims.CLAIMS)
    assert {claim.figure for claim in claims.CLAIMS.values()} == set(figures.FIGURES)


@pytest.mark.parametrize("id", list(figures.FIGURES))
@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_every_figure_has_cells_at_every_scale(id, scale):
    sweep = figures.FIGURES[id].sweep(scale)
    assert len({cell.id for cell in sweep.cells}) == len(sweep.cells) > 0


@pytest.mark.slow
@pytest.mark.parametrize("id", list(figures.FIGURES))
def test_figure_runs_and_is_drawn_at_smoke_scale(id, tmp_path):
    page = study("multihead")
    results = page.figure(id).run("smoke", out=tmp_path)
    assert int(np.nanmax(results.status)) <= 2
    verdicts = page.check(results)
    assert verdicts
    page.figure(id).draw(results, verdicts)
