"""What Python and a notebook show: public names, tables of trials, sweeps, figures and verdicts, files of results."""

import re
from dataclasses import replace
from html import unescape

import pytest
import xarray as xr

import lemmata as lm
from lemmata.errors import BadInput
from lemmata.measure.compare import Verdict, Verdicts
from lemmata.measure.estimate import Estimate
from lemmata.notebook import MOST_ROWS, Sheet, html
from lemmata.study import study
from lemmata.sweep import Axis
from lemmata.trial import fields, put_all
from tests.toys import Decay

TRIAL = study("benign-overfitting").template()
LOW = Verdict("low", "Low <here>", "fails", "1", Estimate(0.2, 0.1, 0.3, 5), (0.5, 2.0))
HIGH = replace(LOW, id="high", verdict="holds", headline=True, measured=Estimate(1.0, 0.9, 1.1, 5))


def rows(text):
    """The rows of the table in a page, as lists of text."""
    return [
        [unescape(cell) for cell in re.findall(r"<t[dh]>(.*?)</t[dh]>", row, re.DOTALL)]
        for row in re.findall(r"<tr>(.*?)</tr>", text, re.DOTALL)
    ]


def test_dir_lists_every_public_name():
    assert set(lm.__all__) <= set(dir(lm))
    assert all(hasattr(lm, name) for name in dir(lm))


def test_a_trial_shows_all_its_fields_and_those_that_differ_first():
    changed = put_all(TRIAL, {"data.samples": 7, "simulator": "gram"})
    head, *table = rows(changed._repr_html_())
    assert head == ["field", "value", "default", "meaning", "symbol"]
    assert {row[0]: row[1] for row in table} == {path: str(value) for path, value in fields(changed).items()}
    assert {row[0] for row in table[:3]} == {"data.samples", "simulator", "descent.logs"}
    assert "samples=7" in repr(changed)
    assert "tokens" not in repr(changed)


def test_a_sweep_shows_its_grid():
    sweep = lm.Sweep(Decay(), (lm.axis("rate", (0.5, 0.25)),), (0, 1, 2))
    text = sweep._repr_html_()
    assert rows(text)[1:] == [["rate", "2", "0.5, 0.25"], ["seed", "3", "0, 1, 2"]]
    assert "6 trainings in 1 programs" in text
    assert repr(sweep).endswith(": rate (0.5, 0.25) x seed (0, 1, 2)")


def test_a_figure_shows_its_scales_and_claims_and_no_addresses():
    figure = study("benign-overfitting").figure("fig1")
    text = figure._repr_html_()
    quick = figure.sweep("quick")
    assert rows(text)[2][:2] == ["quick", str(len(quick.cells))]
    assert all(claim.id in text for claim in figure.claims)
    assert repr(figure) == f"Figure('benign-overfitting/fig1': {figure.title}; {len(figure.claims)} claims)"
    assert "0x" not in text


def test_a_list_of_verdicts_is_a_table_main_results_first():
    verdicts = Verdicts([LOW, HIGH])
    head, *table = rows(verdicts._repr_html_())
    assert head[:3] == ["claim", "verdict", "measured"]
    assert [row[:2] for row in table] == [["high", "holds"], ["low", "fails"]]
    assert "Low &lt;here&gt;" in verdicts._repr_html_()
    assert verdicts == [LOW, HIGH]
    assert repr(verdicts).splitlines()[0] == "2 verdicts"


def test_what_a_study_judges_is_such_a_list():
    own = study("benign-overfitting")
    figure = own.figure("fig1")
    case = figure.claims[0].upheld_by or figure.upheld_by
    assert case is not None
    assert isinstance(own.check(case.results(figure)), Verdicts)


def test_a_long_table_says_how_many_rows_are_left_out():
    text = html(Sheet("Long", ("n",), [(str(n),) for n in range(MOST_ROWS + 5)]))
    assert len(rows(text)) == MOST_ROWS + 1
    assert "and 5 more" in text


def test_a_misspelt_path_is_refused_with_the_closest():
    with pytest.raises(BadInput, match=r"unknown field 'data.smaples'; did you mean 'data.samples'"):
        lm.Sweep(TRIAL, (lm.axis("data.smaples", (4, 8)),), (0,))


def test_an_axis_may_set_a_field_that_an_axis_before_it_brings():
    def other(trial, samples):
        return put_all(TRIAL, {"data.samples": samples})

    sweep = lm.Sweep(Decay(), (Axis("samples", (4,), other), lm.axis("data.tokens", (5,))), (0,))
    assert sweep.cells[0].trial.data.tokens == 5  # pyright: ignore[reportAttributeAccessIssue]


def test_results_are_written_without_their_trials(tmp_path):
    results = lm.run(lm.Sweep(Decay(), (lm.axis("rate", (0.5, 0.25)),), (0, 1)))
    path = lm.export(results, str(tmp_path / "mine.nc"))
    with xr.open_dataset(path) as again:
        assert again.sizes["rate"] == 2
        assert "trial" not in again.coords
    assert "trial" in results.coords
