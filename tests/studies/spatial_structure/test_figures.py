"""Promises of the study to its user: everything listed exists, builds at every scale, runs, draws and is judged."""

import matplotlib
import numpy as np
import pytest

from lemmata.errors import BadInput
from lemmata.lab.order import place_order
from lemmata.studies.spatial_structure import STUDY, transfer
from lemmata.studies.spatial_structure.claims import CLAIMS
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.figures import FIGURES
from lemmata.studies.spatial_structure.transfer import Transfer
from lemmata.study import SCALES
from lemmata.trial import put_all, random_key

matplotlib.use("Agg")
CHEAP = ("fig1b", "fig3", "without-association")
MILLIONS = {"events-in-order-one-rate"}
"""Claims whose number takes millions of steps; a smoke run must say that it has none."""


def test_figures_and_claims_are_those_of_the_title_page():
    assert set(FIGURES) == set(STUDY.figures)
    assert set(CLAIMS) == set(STUDY.claims)
    assert {claim.figure for claim in CLAIMS.values()} <= set(FIGURES)


@pytest.mark.parametrize("scale", SCALES)
def test_every_sweep_builds_at_every_scale(scale):
    for figure in FIGURES.values():
        sweep = figure.sweep(scale)
        assert len(sweep.cells) == len({cell.id for cell in sweep.cells})


@pytest.mark.parametrize("name", CHEAP)
def test_cheap_figures_run_draw_and_are_judged(name, tmp_path):
    _carry_out(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FIGURES if name not in CHEAP])
def test_every_figure_runs_draws_and_is_judged(name, tmp_path):
    _carry_out(name, tmp_path)


def _carry_out(name, tmp_path):
    order = place_order(f"spatial-structure/{name}", "smoke", out=tmp_path)
    results = order.run()
    assert not np.any(results.status == 4)
    verdicts = STUDY.check(results)
    assert {v.id for v in verdicts} == {claim.id for claim in CLAIMS.values() if claim.figure == name}
    assert {v.id for v in verdicts if not v.measured.exists} <= MILLIONS
    assert all(v.note for v in verdicts if not v.measured.exists)
    assert order.draw(results, verdicts).stat().st_size > 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data.group_size": "5"}, "divide the number of patches"),
        ({"data.spurious_rate": "1.5"}, r"lie in \[0, 1\]"),
        ({"data.groups": "[0, 0, 1]", "partition": "given"}, "of one size"),
    ],
)
def test_bad_settings_are_refused_before_any_work(change, says, tmp_path):
    order = place_order("spatial-structure/fig4", "smoke", change, out=tmp_path)
    with pytest.raises(BadInput, match=says):
        order.run()
    assert not any(tmp_path.iterdir())


def test_fields_that_fit_only_together_are_taken_together():
    order = place_order(
        "spatial-structure/fig4",
        "smoke",
        {"data.patches": "49", "data.group_size": "7", "partition": "random"},
    )
    assert {cell.trial.data.group_count for cell in order.sweep.cells} == {7}


def test_predictions_reach_the_ends_of_the_settings():
    trial = put_all(STUDY.template(), {"data.spurious_rate": 0, "descent.attention_rate": 0})
    conditions, predictions = STUDY.predict(trial)
    values = {p.name: p.value for p in predictions}
    assert values["error of linear models"] == 0
    assert values["second event, corrected, constant 1 (steps)"] == np.inf
    assert [c.margin for c in conditions] == [0, np.inf, 0]


def test_predictions_need_no_training():
    conditions, predictions = STUDY.predict(STUDY.template())
    values = {p.name: p.value for p in predictions}
    assert values["error of linear models"] == pytest.approx(0.152, abs=1e-3)
    assert [c.holds for c in conditions] == [True, False, False]


def test_association_transfers_with_sixteen_samples_and_its_absence_does_not():
    """Theorems 5.1 and 5.2 at D = 64, d = D: constructed attention against untrained (means over 20 repeats)."""
    trial = Transfer(Structured(dimension=64), sizes=(16,), repeats=20, test_samples=500)
    key = random_key(trial, 100)
    world = trial.data.world(key)
    logits = {
        "with": transfer.tied_logits(world.group_of, 2.0, 3.5, 0.0),
        "without": transfer.tied_logits(world.group_of, 2.0, 0.0, 0.0),
    }
    error = {}
    for name, given in logits.items():
        task = transfer.Task(trial, np.asarray(given), world)
        error[name] = np.mean(
            [transfer.one_step(task, transfer.jax.random.fold_in(key, i))[0][0] for i in range(20)]
        )
    assert error["with"] <= 0.05
    assert error["without"] >= 0.8 * 0.152


def test_one_step_points_as_its_law_says():
    """`C / sqrt(C^2 + D / N)` within three standard errors of 200 steps and 3% for the law's mean-field form."""
    trial = Transfer(Structured(dimension=256), sizes=(8, 64), test_samples=2)
    world = trial.data.world(random_key(trial, 100))
    task = transfer.Task(trial, np.zeros((64, 64)), world)
    runs = np.array([transfer.one_step(task, random_key(trial, s)) for s in range(200)])[:, :, 1]
    predicted = 4 / np.sqrt(16 + 64 / np.array([8, 64]))
    spread = 3 * runs.std(axis=0) / np.sqrt(200)
    assert np.all(np.abs(runs.mean(axis=0) - predicted) < spread + 0.03)


def test_pair_counting_finds_the_groups_when_it_has_seen_enough():
    trial = Transfer(Structured(), learner="pair-counting", sizes=(32, 2048), test_samples=1000)
    task = transfer.Task(trial, np.zeros((64, 64)), trial.data.world(random_key(trial, 100)))
    (few, _), (many, _) = transfer.pair_counting(task, random_key(trial, 100))
    assert few > 0.1
    assert many < 0.02
