"""Sweeps are what the figures say, and numbers find the laws that results are made by."""

import math

import numpy as np
import pytest

from lemmata import study
from lemmata.errors import BadInput
from lemmata.figure import made
from lemmata.measure.columns import chosen
from lemmata.results import made as made_results
from lemmata.studies.shallow_vit.figures import FIGURES, template
from lemmata.studies.shallow_vit.figures.attention import rate
from lemmata.studies.shallow_vit.figures.common import alpha, by_attention, succeeding
from lemmata.studies.shallow_vit.figures.keys_values import output_exponent
from lemmata.studies.shallow_vit.figures.removal import loss_over_none, remove, steps_over_none
from lemmata.studies.shallow_vit.figures.samples import determination, root_slope, sample_exponent
from lemmata.studies.shallow_vit.figures.settings import constants, drawn_setting
from lemmata.studies.shallow_vit.figures.steps import (
    ERRORS,
    along,
    majority,
    steps_curvature,
    steps_exponent,
    with_majority,
)
from lemmata.studies.shallow_vit.figures.trained_attention import ample, exponent_gain, frozen_ratio
from lemmata.studies.shallow_vit.theory import predictions, setting
from lemmata.trial import put, put_all

STUDY = study("shallow-vit")


def results_of(id: str, noise: float = 0.01, **laws):
    return made(noise=noise, **laws).results(STUDY.figure(id))


def test_removal_keeps_the_number_of_kept_tokens():
    trial = put(put(template(), "data.removal", "irrelevant"), "data.confusion_fraction", 0.1)
    for share in (0.0, 0.2, 0.4):
        data = put_all(trial, remove(trial, share)).data
        assert data.tokens - round(data.removed_fraction * data.tokens) == trial.data.tokens


def test_fractions_follow_their_design():
    for id, kind, rule in (
        ("fig1a", None, lambda a, c: a + c == pytest.approx(0.5)),
        ("theorem", None, lambda a, c: c == pytest.approx(0.2 * a)),
        ("steps", "confusion 0.02", lambda a, c: c == 0.02),
        ("steps", "ratio fixed", lambda a, c: c == pytest.approx(0.2 * a)),
        ("fig2", "confusion fixed", lambda a, c: c == 0.06),
        ("fig2", "background fixed", lambda a, c: a + c == pytest.approx(0.5)),
    ):
        for cell in STUDY.figure(id).sweep("quick").cells:
            if kind is None or cell.place["design"] == kind:
                data = cell.trial.data
                assert data.relevant_fraction == cell.place["relevant_fraction"]
                assert rule(data.relevant_fraction, data.confusion_fraction), (id, cell.place)


def test_a_field_that_an_axis_moves_cannot_be_set_beside_it():
    with pytest.raises(BadInput, match="relevant_fraction"):
        STUDY.figure("fig1a").sweep("smoke").with_fields({"data.confusion_fraction": 0.3})


@pytest.mark.parametrize("figure", [one for one in FIGURES if one.readings], ids=lambda one: one.id)
def test_readings_can_be_set_and_the_first_changes_nothing(figure):
    first, *others = figure.readings.values()
    sweep = figure.sweep("smoke")
    assert not first
    assert all(sweep.with_fields(other).template != sweep.template for other in others)


def test_single_passes_log_their_own_steps():
    """Every cell of the figure ends at another step, and its curves are labelled with its own."""
    sweep = STUDY.figure("single-pass").sweep("smoke").with_fields({"probes": "attention"})
    results = made_results(sweep, {"attention_curve": lambda trial, rng: np.asarray(trial.log_steps, float)})
    np.testing.assert_array_equal(results["step"], results["attention_curve"].isel(seed=0))
    assert float(results["step"].max("log").sel(samples=20)) == 2
    assert float(results["step"].max("log").sel(samples=40)) == 4


def test_settings_fill_their_space():
    drawn = [
        put_all(STUDY.figure("settings").sweep("quick").template, drawn_setting(template(), i))
        for i in range(32)
    ]
    for values in (
        [t.data.relevant_fraction for t in drawn],
        [t.data.noise_std for t in drawn],
        [t.network.value_error for t in drawn],
    ):
        assert len(set(values)) > 28
    assert {t.data.tokens for t in drawn} == {25, 50, 100}
    assert sum(t.network.output_weights == "shared" for t in drawn) == 16


# Numbers ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-2.0, -1.0])
def test_sample_exponent_finds_the_law_that_results_are_made_by(exponent):
    results = results_of("theorem", test_loss=succeeding(lambda t: 11 * alpha(t) ** exponent, 4))
    found = sample_exponent(chosen(results.success, kind="trained"))
    assert found.low < exponent < found.high
    assert found.high - found.low < 1.2


def test_advantage_of_attention_finds_the_laws_that_results_are_made_by():
    edge = by_attention(lambda t: 8 * alpha(t) ** -1, lambda t: 16 * alpha(t) ** -2)
    results = results_of("theorem", test_loss=succeeding(edge, 8))
    gain = exponent_gain(results)
    assert gain.low < 1 < gain.high
    assert frozen_ratio(results).low > 1


def test_straight_line_in_the_inverse_square_is_found():
    results = results_of("fig1a", test_loss=succeeding(lambda t: 2 * alpha(t) ** -2, 4))
    assert determination(results.success, 2).value > 0.8


def test_a_straight_line_has_no_curvature_and_a_square_has():
    def curved(power):
        results = results_of("steps", steps=lambda t: 10 + 30 * alpha(t) ** -power)
        return steps_curvature(results, "ratio fixed")

    line, square = curved(1), curved(2)
    assert abs(line.value) < 0.15
    assert 1.3 < square.low < square.high < 1.8


def test_slope_of_the_root_vanishes_where_nothing_changes():
    steady = root_slope(results_of("fig1b", test_loss=succeeding(lambda t: 20.0, 4)), "value_error")
    assert steady.low < 0 < steady.high
    rising = results_of("fig1b", test_loss=succeeding(lambda t: 15 * math.exp(3 * t.network.value_error), 4))
    assert root_slope(rising, "value_error").high < 0


def test_ample_cells_are_those_with_most_samples_and_four_times_those_of_the_theorem():
    region = ample(results_of("theorem"))
    assert not region.sel(kind="frozen").any()
    trained = region.sel(kind="trained")
    assert trained.sel(samples=2048).all()
    assert not trained.sel(samples=512).any()


def test_errors_of_a_kind_stand_in_order_with_their_sizes():
    steps = results_of("initial-attention", steps=lambda t: 100.0).steps
    for error in ("delta", "sigma", "tau"):
        sizes = along(steps, error)["size"].values
        assert len(sizes) == 4 == len([kind for kind in ERRORS if kind.startswith(error)])
        assert np.all(np.diff(sizes) > 0)


def test_steps_follow_the_majority_of_the_vote():
    results = results_of("fig2", 0.1, steps=lambda t: 40 / majority(t))
    found = steps_exponent(with_majority(chosen(results, design="background fixed")), "majority")
    assert found.low < -1 < found.high


def test_a_rate_has_one_exponent_and_a_crossover_has_two():
    law = rate(results_of("fig4", 1e-5, attention_curve=lambda t, step: 1 - 1 / (2 + step)))
    assert law.value == pytest.approx(-1, abs=0.03)
    crossover = rate(results_of("fig4", 1e-3, attention_curve=lambda t, step: 1 - 0.4 * np.exp(-step / 150)))
    assert crossover.drift.high < -0.3
    assert crossover.value < -1


def test_output_growth_is_the_power_of_the_margin():
    results = results_of("neurons", margin_curve=lambda t, step: 0.0005 * step**2.5)
    assert output_exponent(chosen(results, output_weights="per_token")).value == pytest.approx(2.5, abs=0.01)


def test_an_arm_is_compared_with_no_removal():
    def removed(random, other):
        return lambda t: other if t.data.removed_fraction > 0 and t.data.removal != "random" else random

    found = loss_over_none(results_of("fig5", 0.1, test_loss=removed(0.02, 0.01)), "irrelevant")
    assert found.low <= 0.5 <= found.high < 0.7
    assert steps_over_none(results_of("fig5", 0.1, steps=removed(100.0, 50.0)), "noisy").high < 0.7


def test_laws_of_random_settings_are_found_and_tested_on_held_out_ones():
    def needed(trial):
        s = setting(trial)
        return 15 * s.relevant_fraction**-1.5 * math.exp(2 * s.token_noise)

    def took(trial):
        s = setting(trial)
        return 30 / s.learning_rate / s.relevant_fraction

    results = made_results(
        STUDY.figure("settings"),
        {
            "test_loss": lambda t, rng: float(rng.random() > 1 / (1 + (needed(t) / t.data.samples) ** 3)),
            "steps": lambda t, rng: took(t) * np.exp(0.05 * rng.normal()),
        },
        seeds=24,
    )
    laws = constants(results)
    assert laws["steps"]["slope"]["log alpha_*"] == pytest.approx(-1, abs=0.05)
    assert laws["steps"]["error"] < 1.05
    assert laws["samples"]["slope"]["log alpha_*"] == pytest.approx(-1.5, abs=0.3)
    assert 1 < laws["samples"]["error"] < 1.4
    assert laws["samples"]["held_out"] > 3
    trial = results["trial"].values.ravel()[0].trial
    assert predictions.evaluate(laws["steps"], setting(trial), False) == pytest.approx(
        took(trial) * setting(trial).learning_rate, rel=0.1
    )
