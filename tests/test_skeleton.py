"""The folder that new studies are copied from works."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture
def skeleton(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "docs"))
    study = importlib.import_module("skeleton").STUDY
    monkeypatch.setattr(sys.modules["lemmata.study"], "studies", lambda: {study.id: study})
    monkeypatch.chdir(tmp_path)
    return study


def test_it_runs_draws_predicts_and_judges(skeleton, capsys):
    from lemmata.cli import main

    assert main(["run", "skeleton/steps", "--scale", "smoke", "--workers", "0"]) == 0
    said = capsys.readouterr().out
    assert "holds" in said
    assert Path("runs/skeleton/steps/smoke/steps.png").exists()
    assert main(["predict", "skeleton"]) == 0
    assert main(["ledger", "skeleton"]) == 0


def test_its_claim_fails_where_it_must(skeleton):
    planted = skeleton.room("planted").PLANTED["steps-rate"]()
    planted.attrs["study"] = "skeleton"
    assert skeleton.check(planted)[0].verdict == "fails"
