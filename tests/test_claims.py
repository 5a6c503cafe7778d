"""Every claim on made results: it fails and holds where it must, its number counts, its labels may be missing."""

from dataclasses import replace

import pytest

from lemmata import registration, testing
from lemmata.figure import Source
from lemmata.study import studies
from tests import figures as toy

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
    assert testing.places(study) == []


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("Theorem 3.4.4, (3.8)", True),
        ("proof of Lemma E.6", True),
        ("Appendix D.2, C(t)", True),
        ("Lemmas 7, 10", True),
        ("Corollary 4.4.1 (ii), Table 4.1", True),
        ("Figure 2 (left)", True),
        ("(F.134)", True),
        ("C(t), G(t)", False),
        ("footnote 32", False),
        ("Eq. 64", False),
        ("the main theorem", False),
        ("", False),
    ],
)
def test_a_claim_of_the_paper_names_a_number_of_the_paper(where, named):
    claims = [toy.claim("theirs", source=Source("proof", where)), toy.claim("own", source=Source("ours", ""))]
    found = testing.places(toy.study_of(replace(toy.RATES, claims=claims)))
    assert len(found) == (not named)
    assert named or "'theirs' does not say where in the paper it stands" in found[0]


def test_a_study_names_the_version_of_its_paper():
    found = testing.places(toy.study_of(toy.RATES, version=""))
    assert found == ["the study does not say which version of the paper it follows (`version` of its Study)."]


@pytest.mark.parametrize("study", STUDIES, ids=lambda s: s.id)
def test_conditions_are_functions_of_a_trial(study):
    assert testing.conditions(study) == []
