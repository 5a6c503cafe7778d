"""Every number of a claim counts: a wrong one is noticed, and a value that was not run leaves the claim open."""

import pytest

from lemmata import testing
from lemmata.study import studies

STUDIES = list(studies().values())
FEW = 4
"""So many figures of each study are looked at in the quick tests, the others in the slow ones."""


def figures(few=0):
    return [
        pytest.param(s, id, id=f"{s.id}/{id}", marks=() if place < few else pytest.mark.slow)
        for s in STUDIES
        for place, id in enumerate(id for id in s.figures if s.bearing_on(id))
    ]


@pytest.mark.parametrize(("study", "figure"), figures(FEW))
def test_a_number_that_is_wrong_is_noticed_by_one_of_its_made_cases(study, figure):
    """But for mutants that the claim names, with the reason."""
    assert testing.mutants(study, [figure]) == []


@pytest.mark.parametrize(("study", "figure"), figures())
def test_a_value_that_was_not_run_leaves_a_claim_open_instead_of_stopping_the_run(study, figure):
    assert testing.left_out(study, [figure]) == []


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_that_is_so_for_the_last_figure_of_each_study(study):
    figure = [id for id in study.figures if study.bearing_on(id)][-1]
    assert testing.left_out(study, [figure]) == []
