"""Every claim on made results: it fails and holds where it must, its number counts, its labels may be missing."""

import pytest

from lemmata import registration, testing
from lemmata.study import studies

STUDIES = list(studies().values())
FIGURES = [pytest.param(s, id, id=f"{s.id}/{id}") for s in STUDIES for id in s.figures if s.bearing_on(id)]


@pytest.mark.parametrize(("study", "figure"), FIGURES)
def test_claims_fail_and_hold_on_their_made_cases(study, figure):
    assert testing.made_cases(study, [figure], scales=("smoke",)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("study", "figure"), FIGURES)
def test_claims_are_judged_at_every_scale_on_records_that_trials_make(study, figure):
    assert testing.made_cases(study, [figure]) == []
    assert testing.made_records(study, [figure]) == []


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_claims_are_what_was_registered(study):
    assert registration.disagreements(study) == []


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_a_study_has_headlines_and_says_where_each_claim_comes_from(study):
    assert 5 <= sum(claim.headline for claim in study.claims) <= 12
    assert testing.names(study) == []


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_conditions_are_functions_of_a_trial(study):
    assert testing.conditions(study) == []
