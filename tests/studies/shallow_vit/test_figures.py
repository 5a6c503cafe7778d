"""Every figure can be ordered at every scale, run, drawn and judged."""

import json
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from lemmata.lab.order import place_order
from lemmata.studies.shallow_vit import STUDY, measures
from lemmata.studies.shallow_vit.claims import CLAIMS, predict
from lemmata.studies.shallow_vit.figures import FIGURES, held, remove, template
from lemmata.studies.shallow_vit.measured import measure
from lemmata.study import SCALES
from lemmata.trial import describe, put

OTHERS = sorted(set(FIGURES) - {"fig2-rate"})


def test_title_page_names_exactly_the_figures_and_claims_there_are():
    assert list(STUDY.figures) == list(FIGURES)
    assert list(STUDY.claims) == list(CLAIMS)
    assert {claim.figure for claim in CLAIMS.values()} <= set(FIGURES)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("id", FIGURES)
def test_every_cell_of_every_figure_can_be_built(id, scale):
    cells = FIGURES[id].sweep(scale).cells
    assert len({cell.id for cell in cells}) == len(cells)
    recorded = {"attention", "steps", "status", "success", "spectral_norm", "token_noise"}
    recorded |= {"test_loss", "train_loss", "initial_value_error", "initial_key_query_error"}
    assert not recorded & set(FIGURES[id].sweep(scale).dims)


def ordered(id, folder):
    order = place_order(f"shallow-vit/{id}", "smoke", out=folder)
    results = order.run(workers=0)
    assert len(order.store.entries()) == len(order.sweep.cells)
    verdicts = order.study.check(results)
    assert [v.id for v in verdicts] == [c.id for c in CLAIMS.values() if c.figure == id]
    picture = order.draw(results, verdicts)
    assert picture.stat().st_size > 5000
    plt.close("all")
    return results


def test_a_figure_runs_from_order_to_picture(tmp_path):
    results = ordered("fig2-rate", tmp_path)
    assert results["steps"].dims == ("learning_rate", "seed")
    assert set(np.unique(results["success"])) <= {0.0, 1.0}


@pytest.mark.slow
@pytest.mark.parametrize("id", OTHERS)
def test_every_figure_runs_from_order_to_picture(id, tmp_path):
    ordered(id, tmp_path)


def test_removal_keeps_the_number_of_kept_tokens():
    trial = put(put(template(), "data.removal", "irrelevant"), "data.confusion_fraction", 0.1)
    for share in (0.0, 0.2, 0.4):
        data = remove(trial, share).data
        assert data.tokens - round(data.removed_fraction * data.tokens) == trial.data.tokens


def test_a_stopped_curve_keeps_its_last_value():
    curve = xr.DataArray([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]], dims=("seed", "step"))
    np.testing.assert_array_equal(held(curve), [[1, 2, 2], [1, 2, 3]])


def test_prediction_answers_the_practitioner():
    conditions, predictions = predict(
        put(put(template(), "data.noisy_fraction", 0.4), "data.removed_fraction", 0.1)
    )
    value: dict[str, Any] = {p.name: p.value for p in predictions}
    assert any("C4" in c.name for c in conditions)
    assert value["removing 20% of the irrelevant tokens: samples times"] < 1
    assert value["removing the 40% noisy tokens: samples times"] < 1
    assert value["removing tokens at random: samples times"] == 1
    assert "shallow_vit.measured" in value["where the constants come from"]


def planted(
    exponent: float, name: str = "relevant_fraction", constant: float = 4.0, seeds: int = 20
) -> xr.DataArray:
    """Success of the seeds around the boundary N = constant * alpha^exponent."""
    rng = np.random.default_rng(0)
    alphas, sizes = np.array([0.3, 0.35, 0.4, 0.46]), np.array([4, 8, 16, 32, 64, 128, 256, 512])
    edge = constant * alphas**exponent
    chance = 1 / (1 + np.exp(-4 * (np.log(sizes)[None] - np.log(edge)[:, None])))
    drawn = rng.random((len(alphas), len(sizes), seeds)) < chance[..., None]
    coords = {name: alphas, "samples": sizes, "seed": np.arange(seeds)}
    return xr.DataArray(drawn.astype(float), coords, (name, "samples", "seed"))


@pytest.mark.parametrize("exponent", [-2.0, -4.0])
def test_sample_exponent_finds_a_planted_law(exponent):
    found = measures.sample_exponent(xr.Dataset({"success": planted(exponent)}))
    assert found.low < exponent < found.high
    assert found.high - found.low < 2


def test_advantage_of_attention_finds_planted_laws():
    both = xr.concat([planted(-2.0), planted(-4.0)], xr.Variable("kind", ["trained", "frozen"]))
    results = xr.Dataset({"success": both})
    gain = measures.exponent_gain(results)
    assert gain.low < 2 < gain.high
    assert measures.frozen_ratio(results).value > 1


def test_constants_of_planted_laws_are_found():
    fields = {"trial": json.dumps(describe(template()))}
    fig1a = xr.Dataset({"success": planted(-2.0, seeds=400)}, attrs=fields)
    fig3 = xr.Dataset(
        {"success": planted(-4.0, constant=2.0, seeds=400).expand_dims(kind=["frozen"])}, attrs=fields
    )
    fraction = xr.DataArray([0.3, 0.4], dims="relevant_fraction", coords={"relevant_fraction": [0.3, 0.4]})
    steps = xr.concat(
        [40 / fraction, 30 / (2 * fraction - 0.5)],
        xr.Variable("design", ["confusion fixed", "background fixed"]),
    )
    found = measure(fig1a, xr.Dataset({"steps": steps}, attrs=fields), fig3)
    np.testing.assert_allclose([found.steps_constant, found.steps_margin_constant], [40, 30])
    np.testing.assert_allclose([found.samples_exponent, found.frozen_exponent], [-2, -4], atol=0.5)
    np.testing.assert_allclose([found.samples_at_040, found.frozen_samples_at_040], [25, 78], rtol=0.2)
    np.testing.assert_allclose([found.samples_constant, found.c_noise], [4, 0], atol=1)


def test_output_growth_is_the_power_of_the_margin():
    steps = np.array([0.0, 1, 3, 5, 7, 9, 11, 20])
    margin = np.stack([0.0005 * steps**2.5, 0.001 * steps**2.5])[None]
    results = xr.Dataset(
        {"margin_curve": (("output_weights", "seed", "step"), margin)},
        {"output_weights": ["per_token"], "seed": [0, 1], "step": steps},
    )
    assert abs(measures.output_growth(results).value - 2.5) < 1e-9


def test_slope_of_the_root_vanishes_where_nothing_changes():
    flat = measures.root_slope(xr.Dataset({"success": planted(0.0, "value_error", 30)}), "value_error")
    assert flat.low < 0 < flat.high
    falling = measures.root_slope(xr.Dataset({"success": planted(3.0, "value_error", 1500)}), "value_error")
    assert falling.high < 0


def test_relative_loss_of_an_arm():
    seeds = np.arange(12)
    losses = np.stack([np.full((1, 12), 0.02) + 0.001 * seeds, np.full((1, 12), 0.01) + 0.001 * seeds])
    coords = {"removal": ["random", "irrelevant"], "removed": [0.4], "seed": seeds}
    results = xr.Dataset({"test_loss": (("removal", "removed", "seed"), losses)}, coords)
    found = measures.relative_loss(results, "irrelevant")
    assert found.low <= found.value <= found.high < 0.7
