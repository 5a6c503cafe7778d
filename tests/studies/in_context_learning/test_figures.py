"""Numbers of the figures that are not one call of a measure, on results whose answer is known."""

import numpy as np
import pytest

from lemmata.figure import made
from lemmata.studies.in_context_learning.figures import classic, complexity, lemmas, lengths
from lemmata.studies.in_context_learning.figures.common import steps_needed
from lemmata.studies.in_context_learning.trials import Layer
from lemmata.study import study

STUDY = study("in-context-learning")


def results_of(figure, scale="smoke", **laws):
    return made(laws, noise=0.0).results(STUDY.figure(figure), scale)


def test_steps_needed_lie_between_two_looks_in_proportion():
    falling = {"now_hinge_curve": lambda t, step: 1 - step / t.descent.steps}
    found = steps_needed(results_of("figE-1-steps", **falling))
    assert found.values == pytest.approx(0.95 * 60)


def test_steps_needed_are_missing_where_the_loss_stays_high():
    found = results_of("figE-1-steps", now_hinge_curve=lambda t, step: 0.5)
    assert np.isnan(steps_needed(found)).all()
    assert not complexity.steps_exponent(found, "relevant_fraction").exists


def test_the_length_that_is_needed_is_the_first_from_which_on_errors_stay_low():
    errors = np.array([0.5, 0.04, 0.2, 0.05, 0.01, 0.0, 0.0])
    found = results_of("fig6-4", "quick", error=lambda t, fraction, length: errors)
    assert (classic.length_needed(found["error"]) == 8).all()
    never = results_of("fig6-4", "quick", error=lambda t, fraction, length: errors[::-1])
    assert np.isinf(classic.length_needed(never["error"])).all()


def test_a_learner_that_never_gets_there_counts_with_twice_the_longest_prompt():
    law = {"error": lambda t, fraction, length: np.where((length >= 12) & isinstance(t, Layer), 0.0, 0.5)}
    lead = classic.icl_lead(results_of("fig6-4", "quick", **law), "error", 0.6)
    assert lead.value == pytest.approx(np.log(48 / 12))


def test_the_bound_of_an_update_is_summed_over_steps():
    """own beta^2 over eta delta beta^4/M_1 sum zeta gamma: 9 * 0.01 t over 1.35 * 0.5 t."""
    law = {
        "now_hinge_curve": lambda t, step: 0.5, "zeta_curve": lambda t, step: 1.0, "gamma_curve": lambda t, step: 0.5,
        "key_update_curve": lambda t, step, direction: 0.01 * step,
    }  # fmt: skip
    found = lemmas.update_over_bound(results_of("lemmas", **law), "key")
    assert found.values == pytest.approx(9 * 0.01 / (1.35 * 0.5))


def test_runs_count_until_the_tasks_are_learnt():
    law = {"now_hinge_curve": lambda t, step: np.where(step == 30, 0.05, 0.5)}
    found = results_of("lemmas", **law)
    counted = lemmas.learning(found)
    assert found["step"].values[counted.isel(seed=0).values].tolist() == [15]


def test_made_results_have_no_neurons_where_the_model_has_none():
    found = results_of("fig6-3", **lengths.two_groups(0.0))
    deep, layer = (found["sizes"].sel(model=name) for name in ("GPT-2 style", "one layer"))
    assert deep.isnull().all()
    assert layer.notnull().all()


def test_the_effective_output_of_two_groups_is_found_from_their_neurons():
    gap = lengths.effective_gap(results_of("fig6-3", **lengths.two_groups(0.25)))
    assert gap.sel(model="one layer").values == pytest.approx(0.25)
