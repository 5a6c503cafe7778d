"""Searching a landscape: proposals keep to the conditions, follow from what is stored and a seed, and find what is planted."""

import builtins

import numpy as np
import pytest
from scipy.stats import binom

from benchmarks.refute import CASES, LAWS, Planted, alarms, bowl, corner, found
from lemmata.search import decide
from lemmata.search.engine import Budget, search


class Structured(Planted):
    """A landscape whose first two coordinates take a program of their own for every value."""

    structural = (0, 1)

    def snap(self, units):
        units = super().snap(units)
        units[:2] = (np.floor(units[:2] * 3).clip(0, 2) + 0.5) / 3
        return units


def test_every_point_that_is_measured_meets_the_conditions_and_none_is_measured_twice():
    land = Planted(bowl, 0.01, 3)
    trace = search(land, 1, Budget(points=120), 3)
    assert len(trace.units) == 120
    assert min(land.room(units) for units in trace.units) >= 0
    assert len({units.tobytes() for units in trace.units}) == 120


def test_half_of_the_points_are_random_and_half_of_these_lie_at_the_edge():
    land = Planted(bowl, 0.01, 4)
    trace = search(land, 1, Budget(points=200), 4)
    counts = {word: trace.origins.count(word) for word in ("random", "edge", "guided")}
    assert counts["guided"] >= 80
    assert abs(counts["random"] - counts["edge"]) <= 20
    rooms = [land.room(u) for u, word in zip(trace.units, trace.origins, strict=True) if word == "edge"]
    inside_box = [r for r, u in zip(rooms, trace.units[np.array(trace.origins) == "edge"], strict=True)
                  if u.min() > 0.001 and u.max() < 0.999]  # fmt: skip
    assert np.median(inside_box) < 0.01


def test_the_same_seed_proposes_the_same_points_and_another_seed_others():
    first, again, other = (
        search(Planted(corner, 0.01, 5), 1, Budget(points=60), seed).units for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_batch_needs_one_program():
    land = Structured(bowl, 0.01, 6)
    batches = []
    measure = land.measure
    land.measure = lambda units: (batches.append(units), measure(units))[1]
    search(land, 1, Budget(points=100), 6)
    assert all(len({tuple(u[:2]) for u in batch}) == 1 for batch in batches)
    assert len({tuple(u[:2]) for batch in batches for u in batch}) > 1
    assert sum(map(len, batches)) / len(batches) >= 10


def test_without_the_optional_package_a_search_is_random(monkeypatch):
    own = builtins.__import__

    def without(name, *given, **named):
        if name == "cma":
            raise ImportError
        return own(name, *given, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    trace = search(Planted(bowl, 0.01, 7), 1, Budget(points=60), 7)
    assert set(trace.origins) == {"random", "edge"}
    assert len(trace.units) == 60


@pytest.mark.parametrize("name", CASES)
def test_what_is_planted_is_found(name):
    height, share, asked = CASES[name]
    finds = sum(found(height, share, seed) for seed in range(4))
    assert finds >= binom.ppf(0.01, 4, asked)  # fewer would come in one of a hundred sets of seeds


@pytest.mark.parametrize("kind", LAWS[:3])
def test_true_claims_are_refuted_by_at_most_one_command_in_a_hundred(kind):
    assert alarms(kind, 1000) <= decide.ALARM


def test_a_share_of_violating_runs_needs_more_of_them_when_less_may_be_spent():
    runs = np.array([-1.0] * 5 + [1.0] * 5)
    assert decide.of_shares(runs, 0.005).refuted
    assert not decide.of_shares(runs, 0.00125).refuted
    assert not decide.of_shares(np.array([-1.0] * 2 + [1.0] * 8), 0.005).refuted


def test_runs_without_a_number_neither_uphold_nor_violate():
    runs = np.array([-1.0] * 5 + [np.nan] * 5)
    said = decide.of_shares(runs, 0.005)
    assert (said.violating, said.seeds, said.silent) == (5, 5, 5)
    assert not decide.of_shares(np.full(10, np.nan), 0.005).refuted


def test_an_estimate_whose_mean_violates_but_whose_seeds_do_not_is_not_refuted():
    one_far_off = np.array([0.1] * 9 + [-10.0])
    assert not decide.of_estimate(-0.9, 0.1, 9.0, one_far_off, 0.005).refuted
    assert decide.of_estimate(-0.9, 0.1, 9.0, np.full(10, -0.9), 0.005).refuted


def test_no_violation_among_random_points_bounds_the_violating_part():
    assert decide.at_most(59) == pytest.approx(0.05, abs=0.001)
