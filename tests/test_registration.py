"""What a claim measures is registered; a changed claim is judged on fresh seeds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import pytest

from lemmata import registration
from lemmata.figure import at_most
from lemmata.meaning import meaning
from lemmata.measure.simple import mean
from lemmata.order import DRAW
from lemmata.study import Study
from tests import figures as toy

LIMIT = 100.0


@pytest.fixture
def own(monkeypatch, tmp_path):
    monkeypatch.setattr(Study, "folder", property(lambda self: tmp_path))
    return toy.study_of(
        replace(toy.RATES, claims=[toy.claim("a")]), replace(toy.MOVED, claims=[toy.claim("b")])
    )


def with_claim(own, changed):
    """The study with its first claim changed."""
    again = toy.study_of(replace(toy.RATES, claims=[changed]), own.figure("moved"))
    again.__dict__["lock"] = own.lock
    return again


def test_the_first_lock_gives_draw_one_and_the_second_changes_nothing(own):
    assert registration.disagreements(own) == ["'a' is not registered", "'b' is not registered"]
    assert {id: entry.draw for id, entry in registration.lock(own).items()} == {"a": 1, "b": 1}
    assert registration.lock(own) == {}
    assert registration.disagreements(own) == []


def test_a_changed_claim_gets_the_next_draw_number_and_its_figure_fresh_seeds(own):
    registration.lock(own)
    changed = with_claim(own, toy.claim("a", holds=at_most(99.0, because="A toy.")))
    assert registration.disagreements(changed) == ["'a' has changed since it was registered"]
    assert {id: entry.draw for id, entry in registration.lock(changed).items()} == {"a": 2}
    assert changed.figure("rates").order("smoke").sweep.seeds == (2 * DRAW, 2 * DRAW + 1)
    assert changed.figure("moved").order("smoke").sweep.seeds == (DRAW, DRAW + 1)


def test_words_are_registered_but_need_no_fresh_seeds(own):
    registration.lock(own)
    reworded = replace(
        toy.claim("a", holds=at_most(100.0, because="For another reason.", value=38.0)), statement="Few steps"
    )
    changed = with_claim(own, reworded)
    assert registration.disagreements(changed) == ["the words of 'a' have changed since it was registered"]
    assert registration.lock(changed) == {}
    assert changed.entries["a"].statement == "Few steps"
    assert changed.entries["a"].draw == 1


def test_the_first_lock_of_another_form_keeps_nothing_but_draws(own):
    """A title that changes is written, too."""
    registration.lock(own)
    again = toy.study_of(replace(toy.RATES, title="Other", claims=[toy.claim("a")]), own.figure("moved"))
    again.__dict__["lock"] = own.lock
    assert registration.disagreements(again) == [
        "the titles of the figures have changed since they were registered"
    ]


def plain(results):
    return mean(results.steps)


def remarked(results):
    """A remark does not count."""
    return mean(
        results.steps  # nor does layout
    )


def limited(results):
    return mean(results.steps.where(results.steps < LIMIT))


def called(results):
    return plain(results)


def shifted(results, by=1.0):
    return mean(results.steps + by)


def test_layout_and_remarks_are_not_part_of_what_a_function_computes():
    assert meaning(plain) == meaning(remarked)
    assert meaning(plain) != meaning(shifted)
    assert meaning(lambda r: r.steps + 1) == meaning(lambda r: r.steps + 1)


def test_constants_functions_defaults_closures_and_partials_are(monkeypatch):
    before = {one: meaning(one) for one in (limited, called)}
    monkeypatch.setitem(globals(), "LIMIT", 50.0)
    monkeypatch.setitem(globals(), "plain", shifted)
    assert all(meaning(one) != then for one, then in before.items())
    assert meaning(partial(shifted, by=2.0)) != meaning(partial(shifted, by=3.0))
    first, second = ((lambda results, by=by: mean(results.steps + by)) for by in (1.0, 2.0))
    assert meaning(first) != meaning(second)

    def closed(limit):
        return lambda results: mean(results.steps + limit)

    assert meaning(closed(1.0)) != meaning(closed(2.0))


@dataclass(frozen=True)
class Series:
    term: Callable[[int], float]
    radius: float = 1.0


def test_functions_inside_a_dataclass_are_described_and_its_address_is_not():
    def uses(series):
        return lambda results: mean(results.steps * series.term(2))

    one, same = (Series(lambda i: i + 1.0) for _ in range(2))
    assert meaning(uses(one)) == meaning(uses(same))
    assert meaning(uses(one)) != meaning(uses(replace(one, radius=2.0)))
    assert meaning(uses(one)) != meaning(uses(Series(lambda i: i + 2.0)))


def test_functions_that_make_records_are_not_part_of_a_number():
    """The digest of rows covers them: a kernel that is dispatched in another way means no fresh seeds."""
    from lemmata.studies.chain_of_thought import data
    from lemmata.studies.chain_of_thought.theory import test_quality

    own, others = meaning(data.draw_maps)[1:], meaning(test_quality)
    assert own
    assert len(others) > 2
    assert not set(own) & set(others)


def test_the_right_one_of_several_lambdas_in_a_line_is_found():
    first, second = (lambda r: r.steps + 1), (lambda r: r.steps + 2)
    outer = lambda r: list(map(lambda one: one * 2, r))  # noqa: E731, C417
    assert len({*meaning(first), *meaning(second), *meaning(outer)} - {"function"}) == 3


def test_digests_do_not_depend_on_the_version_of_python():
    """Pinned: computed under Python 3.11, 3.13 and 3.14."""
    claim = replace(toy.claim("a"), number=plain, figure="rates")
    assert registration.digest(claim, toy.RATES) == "b9fa6e582d820a28"
