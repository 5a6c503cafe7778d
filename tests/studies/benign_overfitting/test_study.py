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


@pytest.mark.parametrize("figure", ["fig3", "time-harmful", "attention-leak", "agreement"])
def test_figures_run_draw_and_are_judged(figure, tmp_path):
    order = place_order(f"benign-overfitting/{figure}", "smoke", out=tmp_path)
    results = order.run()
    verdicts = STUDY.check(results)
    assert verdicts
    assert order.draw(results, verdicts).stat().st_size > 10_000
    assert int(results.status.isnull().sum()) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure", ["fig4", "time-benign", "asymptotic-boundary", "noise-ratio", "no-strong-token"]
)
def test_the_other_figures_run_draw_and_are_judged(figure, tmp_path):
    test_figures_run_draw_and_are_judged(figure, tmp_path)


def test_the_exact_reductions_claim_holds_and_would_fail_for_the_approximation(tmp_path):
    results = place_order("benign-overfitting/agreement", "smoke", out=tmp_path).run()
    [verdict] = STUDY.check(results)
    assert verdict.verdict == "holds"
    wrong = results.sel(simulator=["direct", "leading-order", "gram"]).assign_coords(
        simulator=["direct", "row", "gram"]
    )
    [verdict] = STUDY.check(wrong)
    assert verdict.verdict == "fails"


def test_results_come_as_a_dataset_from_python(tmp_path):
    results = STUDY.figure("agreement").run("smoke", out=tmp_path)
    assert results.test_loss.mean("seed").sel(simulator="row").notnull().all()
