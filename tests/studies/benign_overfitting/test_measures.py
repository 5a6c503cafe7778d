"""Numbers of claims on results with a known law, and conditions where the runs were."""

import numpy as np
import pytest

import lemmata as lm
from lemmata.figure import Made
from lemmata.results import made, over_cells, trial_at
from lemmata.status import CONVERGED, DIVERGED
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.figures.common import always, lead_lasts, stage1_over
from lemmata.studies.benign_overfitting.figures.theorems import inside, paced
from lemmata.trial import put_all

STUDY = lm.study("benign-overfitting")


def judged(claim: str, **records):
    """The verdict on results with these records: numbers, or functions of the trial."""
    laws = {name: v if callable(v) else always(v) for name, v in records.items()}
    results = Made(laws, noise=0.0).results(STUDY.figure(STUDY.claim(claim).figure))
    [verdict] = STUDY.check(results, only=claim)
    return verdict


def test_conditions_are_those_of_the_cells_that_ran():
    """With a key dimension of 1e6 Condition (1) is missed by a factor 225, whatever the figure's own key dimension is."""
    figure = STUDY.figure("asymptotic-boundary")
    sweep = figure.sweep("smoke").with_fields({"network.key_dim": 10**6})
    results = figure.complete(
        made(sweep, {"signal_wins": lambda trial, rng: 1.0, "test_loss": lambda trial, rng: 0.1})
    )
    results.attrs |= {"study": STUDY.id, "figure": figure.id}
    [verdict] = STUDY.check(results, only="asymptotic-constant")
    first = next(c for c in verdict.conditions if c.name.startswith("(1)"))
    worst = over_cells(results, lambda t: t.network.key_dim / theory.key_dim_needed(theory.setting(t))).min()
    assert trial_at(results).network.key_dim == 10**6
    assert first.margin == pytest.approx(float(worst))
    assert first.margin < 0.01
    assert (first.met, first.cells) == (0, 2)


def test_every_item_of_condition_41_is_met_inside_it():
    for id in ("theorem-benign", "theorem-harmful"):
        for cell in STUDY.figure(id).sweep("quick").with_seeds((0,)).cells:
            missed = [
                c.name for c in theory.conditions(cell.trial) if not c.met and not c.name.startswith("(4)")
            ]
            assert missed == [], (id, cell.place)
    assert all(
        c.met
        for cell in STUDY.figure("theorem-harmful").sweep("quick").cells
        for c in theory.harmful_conditions(cell.trial)
    )


def test_halving_the_steps_changes_nothing_but_the_schedule():
    """Dimensions are part of what makes a draw: were they computed again, the halves would not share their data."""
    whole = paced(inside(STUDY.figure("theorem-benign").sweep("quick").cells[0].trial, 1e-3), 0.005)
    half = paced(whole, 0.0025)
    assert put_all(half, {"data.dim": whole.data.dim}).data == whole.data
    assert half.network == whole.network
    assert theory.clock(half)[-1] == pytest.approx(theory.clock(whole)[-1], rel=0.01)


def test_a_run_that_diverged_counts_against_what_it_should_have_reached():
    some = judged(
        "benign-generalises",
        test_loss=0.05,
        status=lambda t: DIVERGED if t.data.samples == 20 else CONVERGED,
    )
    assert some.measured.value < 0.8
    assert judged("benign-attention", attention=0.99, status=CONVERGED).verdict == "holds"
    assert judged("benign-attention", attention=0.99, status=DIVERGED).verdict == "fails"


def test_a_lead_counts_only_if_it_lasts():
    results = made(
        STUDY.figure("literal-constants"),
        {
            "steps": lambda t, rng: 100,
            "signal_leads": lambda t, rng: 10,
            "signal_lead_steps": lambda t, rng: 91,
        },
    )
    assert (lead_lasts(results) == 1).all()
    assert (lead_lasts(results.assign(signal_lead_steps=results.signal_lead_steps - 1)) == 0).all()


def test_stage_one_is_timed_by_the_clock():
    figure = STUDY.figure("literal-constants")
    results = made(figure, {"signal_leads": lambda t, rng: 500}, seeds=1)
    trial = trial_at(results, samples=6)
    s = theory.setting(trial)
    expected = theory.clock(trial)[500] / (theory.benign_stage1_end(s) * s.learning_rate)
    found = stage1_over(results, results.signal_leads, theory.benign_stage1_end)
    assert float(found.isel(samples=0, control=0, seed=0)) == pytest.approx(expected)
    never = stage1_over(results, results.signal_leads * 0 - 1, theory.benign_stage1_end)
    assert np.isinf(never).all()


def test_both_readings_of_figure_1_are_judged_and_the_first_is_the_texts():
    readings = STUDY.figure("fig1").readings
    assert [list(changes.values()) for changes in readings.values()] == [[16.0], [1.0]]
    assert STUDY.template().network.readout_divisor == 16
