"""The study hangs together: title page, figures and claims match; every figure runs, draws and is judged."""

import pytest

import lemmata as lm
from lemmata.lab.order import place_order
from lemmata.study import SCALES

STUDY = lm.study("benign-overfitting")


def test_every_figure_and_claim_of_the_title_page_exists():
    from lemmata.studies.benign_overfitting import claims, figures

    assert set(figures.FIGURES) == set(STUDY.figures)
    assert set(claims.CLAIMS) == set(STUDY.claims)
    assert {claim.figure for claim in claims.CLAIMS.values()} == set(STUDY.figures)
    for figure in figures.FIGURES.values():
        sizes = [len(figure.sweep(scale).cells) for scale in SCALES]
        assert sizes == sorted(sizes)


@pytest.fixture(scope="module")
def agreement(tmp_path_factory):
    """The four simulators at smoke scale, run once, from Python."""
    return STUDY.figure("agreement").run("smoke", out=tmp_path_factory.mktemp("agreement"))


def run_and_draw(figure, folder):
    order = place_order(f"benign-overfitting/{figure}", "smoke", out=folder)
    results = order.run()
    verdicts = STUDY.check(results)
    assert verdicts
    assert order.draw(results, verdicts).stat().st_size > 10_000
    assert int(results.status.isnull().sum()) == 0


def test_a_figure_runs_draws_and_is_judged(tmp_path):
    run_and_draw("fig3", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("figure", [f for f in STUDY.figures if f not in ("fig1", "fig3")])
def test_every_other_figure_runs_draws_and_is_judged(figure, tmp_path):
    run_and_draw(figure, tmp_path)


def test_the_exact_reductions_claim_holds_and_would_fail_for_the_approximation(agreement):
    [verdict] = STUDY.check(agreement)
    assert verdict.verdict == "holds"
    wrong = agreement.sel(simulator=["direct", "leading-order", "gram"])
    [verdict] = STUDY.check(wrong.assign_coords(simulator=["direct", "row", "gram"]))
    assert verdict.verdict == "fails"


def test_results_come_as_a_dataset_from_python(agreement):
    assert agreement.test_loss.mean("seed").sel(simulator="row").notnull().all()
