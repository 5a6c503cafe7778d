"""What studies answer: what is needed, in plain English, which numbers say nothing, and the smallest value that succeeds."""

import json

import pytest

import lemmata as lm
from lemmata.answer import Forecast, Forecasts, full_path, predict, smallest, solve
from lemmata.cli import main
from lemmata.errors import BadInput
from lemmata.study import studies, study
from lemmata.trial import fields, put


@pytest.mark.parametrize("own", studies().values(), ids=lambda own: own.id)
def test_every_study_answers_and_what_it_names_exists(own):
    answer, template = own.answer, own.template()
    assert answer is not None
    names = [one.name for one in own.predict(template)[1]]
    for start in (*answer.main, *answer.counts, *answer.useless_from):
        assert any(name.startswith(start) for name in names), f"{own.id} predicts nothing called '{start}'"
    assert set(answer.claims) <= set(own.entries)
    assert set(answer.inputs) <= set(fields(template))
    sentence = answer.sentence(template)
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert isinstance(bool(answer.success(template)), bool)


def test_counts_are_rounded_up_and_vacuous_bounds_marked():
    found = predict("benign-overfitting", {"samples": 50})
    assert isinstance(found, Forecast)
    assert found.sentence.startswith("You need about 31 samples; the mean field says 14")
    assert ("samples needed to generalise (mean field)", "14", "") in found.rows
    assert "vacuous" in found.vacuous["test loss bound"]
    assert found["test loss bound"] == pytest.approx(2.975, abs=1e-3)
    assert found.inputs["data.samples"] == 50
    heads = predict("multihead")
    assert isinstance(heads, Forecast)
    assert "vacuous" in heads.vacuous["Corollary 2: heads asked for"]


def test_it_says_beside_the_answer_how_right_it_was_in_trainings():
    found = predict("spatial-structure")
    assert isinstance(found, Forecast)
    published = {v["id"]: v for v in study("spatial-structure").published}["event2-derived"]
    assert any(f"{published['word']}, measured {published['value']:.3g}" in line for line in found.record)


@pytest.mark.parametrize(
    ("id", "path"),
    [("benign-overfitting", "samples"), ("multihead", "steps"), ("spatial-structure", "descent.steps")],
)
def test_the_solution_is_the_smallest_value_that_succeeds(id, path):
    given = {"multihead": {"heads": 1e11, "step_size": 5e-5, "target_loss": 0.1}}.get(id, {})
    full, value = solve(id, path, given)
    success = study(id).answer.success
    trial = predict(id, given).trial
    assert success(put(trial, full, value))
    assert not success(put(trial, full, value - 1))


def test_a_field_that_never_succeeds_is_one_sentence():
    assert smallest(lambda trial: False, study("multihead").template(), "heads") is None
    with pytest.raises(BadInput, match="predicts no success at any 'target_loss'"):
        solve("multihead", "target_loss", {"steps": 1})


def test_lists_give_a_table_and_a_picture(tmp_path):
    found = predict("benign-overfitting", {"samples": "10,20,50", "signal_norm": [20, 50]})
    assert isinstance(found, Forecasts)
    head, rows = found.table()
    assert head[:3] == ["data.samples", "data.signal_norm", "overfits harmlessly"]
    assert [row[2] for row in rows] == ["no", "no", "no", "no", "no", "yes"]
    found.draw().savefig(tmp_path / "map.png")
    predict("benign-overfitting", {"samples": [10, 20]}).draw().savefig(tmp_path / "curves.png")  # pyright: ignore
    assert (tmp_path / "map.png").stat().st_size > 5000
    assert "<td>yes</td>" in found._repr_html_()


def test_the_end_of_a_path_is_enough_where_it_is_unique():
    assert full_path(study("benign-overfitting").template(), "samples") == "data.samples"
    with pytest.raises(BadInput, match=r"is one of data\.match_fraction, test\.match_fraction"):
        full_path(study("chain-of-thought").template(), "match_fraction")
    with pytest.raises(BadInput, match=r"did you mean 'data\.samples'"):
        predict("benign-overfitting", {"data.smaples": 4})


def test_the_command_answers_in_text_and_in_every_format(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    words = ["predict", "benign-overfitting", "--set", "samples=50"]
    assert main([*words, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["success"] is True
    assert said["inputs"]["data.samples"] == 50
    assert any(one["vacuous"] for one in said["predictions"])
    assert main([*words, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "kind,name,value,holds,remark"
    assert (
        main(["predict", "benign-overfitting", "--set", "samples=10,50", "--plot", "p.svg", "--format", "md"])
        == 0
    )
    assert capsys.readouterr().out.startswith("| data.samples | overfits harmlessly |")
    assert (tmp_path / "p.svg").exists()
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert main(["predict", "benign-overfitting", "--solve", "samples"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("The smallest data.samples at which the study predicts")
    assert (
        max(map(len, out.replace("\033[31m", "").replace("\033[0m", "").replace("\033[1m", "").splitlines()))
        <= 60
    )


def test_a_study_without_an_answer_still_predicts(monkeypatch):
    monkeypatch.setitem(study("multihead").__dict__, "answer", None)
    found = predict("multihead")
    assert isinstance(found, Forecast)
    assert found.success is None
    assert len(found.predictions) > 10
    with pytest.raises(BadInput, match="does not say what success is"):
        solve("multihead", "heads")


def test_lm_has_it():
    assert lm.predict is predict
