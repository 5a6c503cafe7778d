"""Promises of the study to its user that go beyond what every study promises."""

import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.results import made
from lemmata.studies.spatial_structure import STUDY
from lemmata.studies.spatial_structure.figures.transfer import needed
from lemmata.studies.spatial_structure.theory import population, realistic
from lemmata.trial import put_all


def test_second_event_is_when_gamma_passes_every_rho_of_the_run():
    """Section 4.1, not half of a final score: gamma = t / 1000 passes |rho| = 0.25 at time 250, at the next logged one."""
    figure = STUDY.figure("three-events")
    ramp = {"same_curve": lambda t, rng: t.times / 1000, "largest_cross": lambda t, rng: 0.25}
    results = made(figure, ramp, scale="smoke")
    logged = np.asarray(results.step)
    expected = logged[np.argmax(logged >= 250)]
    assert np.all(results.event2 == expected)
    assert abs(expected - 250) < 75


def test_other_diagonals_of_the_linear_phase_are_looked_at_once():
    cells = STUDY.figure("linear-phase").sweep("quick").cells
    other = {(c.place["linear"], c.place["samples"]) for c in cells if c.place["diagonal"] != 3.0}
    assert other == {(3e-4, 2000)}
    assert {c.place["diagonal"] for c in cells} == {1.0, 2.0, 3.0}


@pytest.mark.parametrize("figure", ["three-events", "patches", "first-event", "loss-rate", "sample-flow"])
def test_figures_at_one_rate_lie_inside_the_theorems(figure):
    """Theorem 4.1 for the three numbers, and Theorem 4.2 for samples of at least D^2 images."""
    cells = [c.trial for c in STUDY.figure(figure).sweep("quick").cells]
    inside = [
        all(one.margin >= 1 for one in (realistic if figure == "sample-flow" else population)(trial))
        for trial in cells
        if getattr(trial, "samples", 4096) >= 4096
    ]
    assert inside
    assert all(inside)


def test_samples_needed_beyond_the_grid_enter_as_bounds():
    """Needed samples D^(1/2), cut off at 16 from above and at 7 from below: the exponent is still a half."""

    def cut(trial, rng):
        true = trial.data.patches**0.5 * np.exp(0.01 * rng.normal())
        return np.inf if true > 26 else -np.inf if true < 7 else true

    given = {
        "needed": cut,
        "largest": lambda t, rng: 26,
        "size": lambda t, rng: np.full(len(t.sizes), 7.0),
    }
    results = made(STUDY.figure("transfer"), given).sel(learner=["one-step"])
    found = needed(results)
    assert "censored" in found.note
    assert found.value == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data.group_size": "5"}, "divide the number of patches"),
        ({"data.spurious_rate": "1.5"}, r"lie in \[0, 1\]"),
        ({"data.groups": "[0, 0, 1]", "partition": "given"}, "of one size"),
    ],
)
def test_bad_settings_are_refused_before_any_work(change, says, tmp_path):
    with pytest.raises(BadInput, match=says):
        STUDY.figure("fig4").run("smoke", set=change, out=tmp_path)
    assert not any(tmp_path.iterdir())


def test_predictions_reach_the_ends_of_the_settings():
    trial = put_all(STUDY.template(), {"data.spurious_rate": 0, "descent.attention_rate": 0})
    conditions, predictions = STUDY.predict(trial)
    values = {p.name: p.value for p in predictions}
    assert values["error of linear models"] == 0
    assert values["second event until gamma = 1, leading order (steps)"] == "never: the attention is frozen"
    assert all(np.isfinite(v) for v in values.values() if not isinstance(v, str))
    assert {c.name.partition(":")[0]: c.margin for c in conditions}["spurious patches dominate"] == 0


def test_predictions_need_no_training():
    conditions, predictions = STUDY.predict(STUDY.template())
    values = {p.name: p.value for p in predictions}
    assert values["error of linear models"] == pytest.approx(0.152, abs=1e-3)
    assert values["second event until gamma = 1, alpha at its optimum (steps)"] == pytest.approx(
        1450, rel=0.1
    )
    held = {c.name.partition(":")[0]: c.holds for c in conditions}
    assert held["spurious patches dominate"]
    assert not held["the diagonal dominates"]
    assert not held["one step size for value and attention"]
