"""The plug-in studies of this repository: held against what every study is held against, and their own tests."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from lemmata import testing
from lemmata.study import studies, study

FOLDER = Path(__file__).parents[1] / "plugins" / "linear-attention"
ID, PACKAGE = "linear-attention", "lemmata_linear_attention"
CHECKS = [
    pytest.param(check, marks=pytest.mark.slow if check is testing.smoke else (), id=check.__name__)
    for check in testing.CHECKS
]


@pytest.fixture(autouse=True)
def _announced(monkeypatch):
    """The plug-in as if it were installed."""
    monkeypatch.syspath_prepend(FOLDER)
    points = [EntryPoint(ID, f"{PACKAGE}:STUDY", "lemmata.studies")]
    monkeypatch.setattr(sys.modules["lemmata.study"], "entry_points", lambda group: points)
    studies.cache_clear()
    yield
    studies.cache_clear()


@pytest.mark.parametrize("check", CHECKS)
def test_linear_attention_passes_every_check(check):
    assert testing.problems(check, study(ID)) == []


def test_the_own_tests_of_linear_attention_pass():
    assert pytest.main(["-q", "-p", "no:cacheprovider", str(FOLDER / "tests" / "test_theory.py")]) == 0
