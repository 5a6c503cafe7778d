"""A counter-example is made simple, and stays one."""

from lemmata.search.frontier import need
from lemmata.search.shrink import resolver, shrunk
from lemmata.search.space import Field

SPACE = [Field(name, "linear", 0.0, 1.0) for name in "abcd"]
START = {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5}


def no_move(values, fixed):
    return None


def test_fields_that_do_not_matter_are_reset_and_numbers_become_round():
    found = shrunk(
        {"a": 0.1234, "b": 0.9, "c": 0.77, "d": 0.31}, START, lambda v: True, lambda v: v["a"] < 0.2, no_move
    )
    assert found == {**START, "a": 0.1}


def test_every_point_that_is_tried_meets_the_conditions():
    tried = []

    def violated(values):
        tried.append(values)
        return values["a"] < 0.2

    shrunk(
        {"a": 0.1234, "b": 0.9, "c": 0.5, "d": 0.5},
        START,
        lambda v: v["a"] + v["b"] >= 1.0,
        violated,
        no_move,
    )
    assert tried
    assert all(v["a"] + v["b"] >= 1.0 for v in tried)


def test_where_a_condition_binds_one_other_field_is_moved_until_it_just_holds():
    def inside(v):
        return v["a"] + v["b"] >= 1.02

    found = shrunk(
        {"a": 0.1234, "b": 0.93, "c": 0.5, "d": 0.5},
        START,
        inside,
        lambda v: v["a"] < 0.2,
        resolver(SPACE, inside),
    )
    assert found["a"] == 0.1
    assert inside(found)
    assert found["b"] < 0.94


def test_shrinking_ends_when_its_trainings_are_spent():
    calls = []
    shrunk(
        {"a": 0.1234, "b": 0.93, "c": 0.77, "d": 0.31},
        START,
        lambda v: True,
        lambda v: bool(calls.append(v)),
        no_move,
        most=3,
    )
    assert len(calls) == 3


def test_a_condition_is_needed_where_the_claim_breaks_outside_of_it():
    assert need("claim", "M large", "M", [(2.0, 1.0), (0.5, 0.3), (0.25, -0.1), (0.1, -1.0)]).word == "needed"
    assert need("claim", "M large", "M", [(2.0, 1.0), (0.5, 0.3), (0.25, -0.1), (0.1, -1.0)]).factor == 4.0
    kept = need("claim", "M large", "M", [(2.0, 1.0), (0.5, 0.3), (0.1, 0.2)])
    assert (kept.word, round(kept.factor, 6)) == ("not needed", 10.0)
    assert need("claim", "M large", "M", [(2.0, 1.0), (0.5, float("nan"))]).word == "silent"
