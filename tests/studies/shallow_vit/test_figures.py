"""Sweeps are what the figures say, and measures find the laws they are made for."""

import math

import numpy as np
import pytest
import xarray as xr

from lemmata.errors import BadInput
from lemmata.results import made
from lemmata.studies.shallow_vit import measures, planted
from lemmata.studies.shallow_vit.figures import FIGURES, drawn_setting, held, remove, template
from lemmata.studies.shallow_vit.theory import predictions, setting
from lemmata.trial import put, put_all


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
        for cell in FIGURES[id].sweep("quick").cells:
            if kind is None or cell.place["design"] == kind:
                data = cell.trial.data
                assert data.relevant_fraction == cell.place["relevant_fraction"]
                assert rule(data.relevant_fraction, data.confusion_fraction), (id, cell.place)


def test_a_field_that_an_axis_moves_cannot_be_set_beside_it():
    with pytest.raises(BadInput, match="relevant_fraction"):
        FIGURES["fig1a"].sweep("smoke").with_fields({"data.confusion_fraction": 0.3})


@pytest.mark.parametrize("id", [id for id, figure in FIGURES.items() if figure.readings])
def test_readings_can_be_set_and_the_first_changes_nothing(id):
    first, *others = FIGURES[id].readings.values()
    sweep = FIGURES[id].sweep("smoke")
    assert not first
    assert all(sweep.with_fields(other).template != sweep.template for other in others)


def test_single_passes_log_their_own_steps():
    """Every cell of the figure ends at another step, and its curves are labelled with its own."""
    sweep = FIGURES["single-pass"].sweep("smoke").with_fields({"probes": "attention"})
    results = made(sweep, {"attention_curve": lambda trial, rng: np.asarray(trial.log_steps, float)})
    np.testing.assert_array_equal(results["step"], results["attention_curve"].isel(seed=0))
    assert float(results["step"].max("log").sel(samples=20)) == 2
    assert float(results["step"].max("log").sel(samples=40)) == 4
    np.testing.assert_array_equal(held(results["attention_curve"]).isel(log=-1, seed=0), [2, 4])


def test_a_stopped_curve_keeps_its_last_value():
    curve = xr.DataArray([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]], dims=("seed", "step"))
    np.testing.assert_array_equal(held(curve), [[1, 2, 2], [1, 2, 3]])


def test_settings_fill_their_space():
    drawn = [
        put_all(FIGURES["settings"].sweep("quick").template, drawn_setting(template(), i)) for i in range(32)
    ]
    for values in (
        [t.data.relevant_fraction for t in drawn],
        [t.data.noise_std for t in drawn],
        [t.network.value_error for t in drawn],
    ):
        assert len(set(values)) > 28
    assert {t.data.tokens for t in drawn} == {25, 50, 100}
    assert sum(t.network.output_weights == "shared" for t in drawn) == 16


# Measures --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("exponent", [-2.0, -1.0])
def test_sample_exponent_finds_a_planted_law(exponent):
    results = planted.succeeding("theorem", lambda t: 4 * planted.alpha(t) ** exponent)()
    found = measures.sample_exponent(results, "trained")
    assert found.low < exponent < found.high
    assert found.high - found.low < 0.5


def test_advantage_of_attention_finds_planted_laws():
    edge = planted.edge_of(lambda t: 4 * planted.alpha(t) ** -1, lambda t: 8 * planted.alpha(t) ** -2)
    results = planted.succeeding("theorem", edge)()
    gain = measures.exponent_gain(results)
    assert gain.low < 1 < gain.high
    assert measures.frozen_ratio(results).low > 1


def test_straight_line_in_the_inverse_square_is_found():
    results = planted.succeeding("fig1a", lambda t: 2 * planted.alpha(t) ** -2)()
    assert measures.sample_linear(results).value > 0.8


def test_slope_of_the_root_vanishes_where_nothing_changes():
    steady = measures.root_slope(planted.succeeding("fig1b", lambda t: 20.0)(), "value_error")
    assert steady.low < 0 < steady.high
    rising = planted.succeeding("fig1b", lambda t: 15 * math.exp(3 * t.network.value_error))()
    assert measures.root_slope(rising, "value_error").high < 0


def test_ample_cells_are_those_with_four_times_the_samples_of_the_theorem():
    results = planted.succeeding("theorem", lambda t: 30.0)()
    region = measures.ample(results)
    assert not region.sel(kind="frozen").any()
    trained = region.sel(kind="trained")
    assert trained.sel(relevant_fraction=0.8, samples=8)
    assert not trained.sel(relevant_fraction=0.8, samples=4)
    assert not trained.sel(relevant_fraction=0.05).any()


def test_steps_follow_the_majority_of_the_vote():
    law = planted.runs(
        "fig2", steps=planted.about(lambda t: 40 / (t.data.relevant_fraction - t.data.confusion_fraction))
    )()
    found = measures.steps_exponent(law, "majority", "background fixed")
    assert found.low < -1 < found.high


def test_a_rate_has_one_exponent_and_a_crossover_has_two():
    rate = measures.attention_rate(
        planted.runs("fig4", attention_curve=planted.along(lambda t: 1 - 1 / (2 + t)))()
    )
    assert rate.value == pytest.approx(-1, abs=0.03)
    crossover = measures.attention_rate(
        planted.runs("fig4", attention_curve=planted.along(lambda t: 1 - 0.4 * math.exp(-t / 150)))()
    )
    assert crossover.drift.high < -0.5
    assert crossover.parts[0].value > -1 > crossover.parts[1].value


def test_output_growth_is_the_power_of_the_margin():
    results = planted.runs("neurons", margin_curve=planted.along(lambda t: 0.0005 * t**2.5))()
    kept = results.where(results["output_weights"] == "per_token")
    assert measures.output_exponent(kept).value == pytest.approx(2.5, abs=0.01)


def test_relative_loss_of_an_arm():
    results = planted.runs("fig5", test_loss=planted.removed(0.01, 0.02))()
    found = measures.relative_loss(results, "irrelevant")
    assert found.low <= 0.5 <= found.high < 0.7
    assert (
        measures.steps_ratio(planted.runs("fig5", steps=planted.removed(50.0, 100.0))(), "noisy").high < 0.7
    )


def test_laws_of_random_settings_are_found_and_tested_on_held_out_ones():
    def needed(trial):
        s = setting(trial)
        return 15 * s.relevant_fraction**-1.5 * math.exp(2 * s.token_noise)

    def took(trial):
        s = setting(trial)
        return 30 / s.learning_rate / s.relevant_fraction

    results = made(
        FIGURES["settings"],
        {
            "test_loss": lambda t, rng: float(rng.random() > 1 / (1 + (needed(t) / t.data.samples) ** 3)),
            "steps": planted.about(took, 0.05),
        },
        seeds=24,
    )
    laws = measures.constants(results)
    assert laws["steps"]["slope"]["log alpha_*"] == pytest.approx(-1, abs=0.05)
    assert laws["steps"]["error"] < 1.05
    assert laws["samples"]["slope"]["log alpha_*"] == pytest.approx(-1.5, abs=0.3)
    assert 1 < laws["samples"]["error"] < 1.4
    assert laws["samples"]["held_out"] > 3
    trial = results["trial"].values.ravel()[0].trial
    assert predictions.evaluate(laws["steps"], setting(trial), False) == pytest.approx(
        took(trial) * setting(trial).learning_rate, rel=0.1
    )
