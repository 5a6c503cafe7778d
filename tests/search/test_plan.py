"""`lemmata plan`: theory first, then an interval from few trainings."""

from dataclasses import replace

import pytest

from lemmata.errors import BadInput
from lemmata.figure import Rule
from lemmata.lab.pool import Pool
from lemmata.measure.estimate import Estimate
from lemmata.search.plan import Want, _crossing, _off, figure_for, plan
from lemmata.study import study


@pytest.mark.parametrize("said", ["", "error", "error=1", "<1", "error<", "error<one", "a<1<2"])
def test_a_wish_that_is_none_is_refused(said):
    with pytest.raises(BadInput, match=r"cot_error<0\.05"):
        Want.of(said)


def test_a_value_is_decided_once_its_interval_leaves_what_was_asked_for():
    below = Want.of("error < 1e-1")
    assert below.decided(Estimate(0.05, 0.04, 0.06)) is True
    assert below.decided(Estimate(0.2, 0.15, 0.25)) is False
    assert below.decided(Estimate(0.09, 0.05, 0.12)) is None
    assert Want.of("success>0.5").decided(Estimate(0.8, 0.7, 0.9)) is True


def test_the_answer_lies_between_the_last_value_that_fails_and_the_first_that_succeeds():
    def at(value):
        return Estimate(value, value - 0.01, value + 0.01)

    wish = Want.of("error<0.05")
    assert _crossing([(10, at(0.2)), (20, at(0.1)), (30, at(0.05)), (40, at(0.01))], wish) == (20.0, 40.0)
    assert _crossing([(10, at(0.2)), (20, at(0.1))], wish) == (20.0, None)
    assert _crossing([(10, at(0.01)), (20, at(0.02))], wish) == (None, 10.0)
    assert _crossing([(10, at(0.01)), (20, at(0.2)), (30, at(0.01))], wish) == (20.0, 30.0)


def test_a_number_of_the_theory_is_off_by_its_distance_from_the_interval():
    assert _off(15, 10, 20) == 1.0
    assert _off(60, 10, 20) == 3.0
    assert _off(5, 10, 20) == 0.5
    assert _off(5, None, 20) is None


def test_theory_speaks_before_the_first_training_and_the_trainings_give_an_interval(tmp_path):
    own = study("group-imbalance")
    figure = replace(
        own.figure("lemmas"), rules=(Rule("value", "std", "a rule of thumb", lambda trial, value: 1.0),)
    )
    heard = []
    with Pool(0) as pool:
        records = set(figure.run("smoke", out=tmp_path / "once").data_vars) - {"status", "steps"}
        quantity = min(records)
        answer = plan(
            own, figure, Want(quantity, True, 1e9), "std", pool, tmp_path / "plan", told=heard.append
        )
    assert [value for value, _ in answer.rows] == sorted({value for value, _ in answer.rows})
    assert heard
    assert quantity in answer.sentence


def test_the_figure_with_a_rule_is_taken_and_an_unknown_axis_is_refused():
    own = study("chain-of-thought")
    assert figure_for(own, Want.of("cot_error<0.05"), "length").id == "fig7-3a"
    with pytest.raises(BadInput, match="length"):
        figure_for(own, Want.of("cot_error<0.05"), "lenght")
