"""What a claim measures is registered; a changed claim is judged on fresh seeds."""

from dataclasses import replace

import pytest

from lemmata import registration
from lemmata.lab.order import DRAW
from lemmata.study import Study
from tests import figures as toy


@pytest.fixture
def own(monkeypatch, tmp_path):
    study = toy.registered(monkeypatch, toy.claim("a"), toy.claim("b", figure="moved"))
    monkeypatch.setattr(Study, "folder", property(lambda self: tmp_path))
    return study


def test_the_first_lock_gives_draw_one_and_the_second_changes_nothing(own):
    assert registration.disagreements(own) == ["'a' is not registered", "'b' is not registered"]
    assert {id: entry["draw"] for id, entry in registration.lock(own).items()} == {"a": 1, "b": 1}
    assert registration.lock(own) == {}
    assert registration.disagreements(own) == []


def test_a_changed_claim_gets_the_next_draw_number_and_its_figure_fresh_seeds(own):
    registration.lock(own)
    changed = replace(
        own, claims=(replace(own.claims[0], tolerance=(-1.0e9, 99.0), kind="law"), own.claims[1])
    )
    assert registration.disagreements(changed) == ["'a' has changed since it was registered"]
    assert registration.lock(changed) == {
        "a": {"digest": registration.digest(changed, changed.claims[0]), "draw": 2}
    }
    assert changed.figure("rates").order("smoke").sweep.seeds == (2 * DRAW, 2 * DRAW + 1)
    assert changed.figure("moved").order("smoke").sweep.seeds == (DRAW, DRAW + 1)


def test_a_changed_measure_or_grid_changes_the_digest_and_layout_does_not(own, monkeypatch):
    before = registration.digest(own, own.claims[0])

    def steps(results):
        """A remark does not count."""
        return toy.mean(results.steps + 1)

    monkeypatch.setattr(own.room("measures"), "steps", steps)
    assert registration.digest(own, own.claims[0]) != before
    monkeypatch.undo()


def test_a_measure_is_registered_with_the_functions_it_calls():
    def inner():
        return 1

    assert len(registration.sources(toy.registered)) == 1
    assert len(registration.sources(registration.digest)) > 3
    assert inner() == 1
