"""Verdicts follow from intervals and tolerances, say what is missing, and err no more often than they say."""

import json
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.judge import (
    BROKEN,
    WORLDS,
    every_run,
    false_discoveries,
    named_growth,
    put_on_trial,
    range_on_trial,
)
from lemmata.measure.compare import (
    Condition,
    ConditionCount,
    Verdict,
    chance,
    decide,
    more_seeds,
    together,
)
from lemmata.measure.estimate import Estimate

INSIDE = (0.4, 0.6)


def verdict(value: float, half: float, *conditions: ConditionCount) -> Verdict:
    estimate = Estimate(value, value - half, value + half)
    return Verdict("id", "statement", decide(estimate, INSIDE), "0.5", estimate, INSIDE, conditions, seeds=5)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (0.45, 0.55, "holds"),
        (0.4, 0.6, "holds"),
        (0.3, 0.39, "fails"),
        (0.61, np.inf, "fails"),
        (0.3, 0.5, "inconclusive"),
        (0.5, np.inf, "inconclusive"),
    ],
)
def test_a_claim_holds_inside_fails_outside_and_is_open_across(low, high, outcome):
    assert decide(Estimate((low + min(high, 1)) / 2, low, high), INSIDE) == outcome


def test_an_estimate_that_does_not_exist_decides_nothing():
    assert decide(Estimate.absent("no runs."), INSIDE) == "inconclusive"
    assert more_seeds(Estimate.absent("no runs."), INSIDE, 5) is None


def test_seeds_needed_go_with_the_square_of_the_width():
    assert more_seeds(Estimate(0.5, 0.3, 0.7), INSIDE, 5) == 15
    assert more_seeds(Estimate(0.7, 0.5, 0.9), INSIDE, 5) == 15
    assert more_seeds(Estimate(0.5, 0.45, 0.55), INSIDE, 5) == 0
    assert more_seeds(Estimate(0.6, 0.5, 0.7), INSIDE, 5) is None  # on the edge no number of seeds decides
    assert more_seeds(Estimate(0.5, -np.inf, 0.7), INSIDE, 5) is None


@pytest.mark.parametrize("freedom", [3.0, np.inf])
def test_an_interval_that_touches_the_tolerance_has_the_p_value_of_its_level(freedom):
    assert chance(Estimate(0.5, 0.4, 0.6, freedom=freedom), INSIDE) == pytest.approx(0.05)


def test_one_claim_and_clear_families_are_judged_as_they_are():
    assert together([verdict(0.5, 0.1)])[0].verdict == "holds"
    assert [v.verdict for v in together([verdict(0.5, 0.099), verdict(0.9, 0.29)])] == ["holds", "fails"]


def test_a_narrow_escape_among_many_open_claims_is_withdrawn_and_says_so():
    judged = together([verdict(0.5, 0.099), verdict(0.5, 0.01), *[verdict(0.5, 0.3)] * 8])
    assert judged[0].verdict == "inconclusive"
    assert "holds when taken alone" in judged[0].note
    assert judged[0].more_seeds
    assert judged[1].verdict == "holds"


def test_conditions_stand_beside_the_verdict_with_their_margins():
    missed, open_ = ConditionCount("(2)", 0, 4, 1 / 40, False), ConditionCount("(7)", 3, 4, 0.5, None)
    assert verdict(0.5, 0.05, missed).sentence == "holds, although condition (2) is violated by a factor 40"
    assert verdict(0.9, 0.05, open_).sentence == (
        "fails, but condition (7) (its hidden constant set to 1) is violated by a factor 2 in 1 of 4 cells"
    )
    assert verdict(0.5, 0.05, ConditionCount("(1)", 4, 4, 3.0, True)).sentence == "holds"


def test_counts_of_conditions_are_plain_numbers_whatever_the_margins_are():
    [count] = ConditionCount.of(
        [[Condition("(7)", None, np.float64(2.0))], [Condition("(7)", None, np.float64(0.5))]]
    )
    assert json.dumps([count.met, count.cells, count.margin]) == "[1, 2, 0.5]"


def test_conditions_are_counted_by_name_with_their_worst_margin():
    first = [Condition("(1)", True, 3.0), Condition("(2)", None, 2.0)]
    second = [Condition("(1)", False, 0.5), Condition("(2)", None, 0.1)]
    assert ConditionCount.of([first, second]) == (
        ConditionCount("(1)", 1, 2, 0.5, False),
        ConditionCount("(2)", 1, 2, 0.1, None),
    )


SMALL = [
    w
    for w in WORLDS
    if "3 seeds" in w.name or w.name.startswith(("mean", "median")) or "5 seeds, paired" in w.name
]


@pytest.mark.parametrize("world", SMALL, ids=lambda w: w.name)
def test_the_judge_keeps_its_word_on_a_small_trial(world):
    """40 repetitions: at 95 % coverage, fewer than 33 covered has a chance below 1 in 1000, more than 8 wrong likewise."""
    found = put_on_trial(world, 40, seed=1)
    assert found.coverage >= 33 / 40
    assert found.false_fails <= 0.05
    assert found.edge_fails <= 8 / 40
    assert found.false_holds <= 0.05


@pytest.mark.parametrize(
    "world", [BROKEN[1], pytest.param(BROKEN[-1], marks=pytest.mark.slow)], ids=lambda b: b.name
)
def test_a_crossover_is_hardly_ever_called_a_law(world):
    """20 repetitions: at 5 %, more than 4 have a chance of 1 in 400, and so have fewer than 16 that cover."""
    found = range_on_trial(world, 20, seed=1)
    assert found.called[1] <= 4 / 20
    assert found.alarms <= 4 / 20
    assert found.covered >= 16 / 20


def test_statements_about_every_run_fail_by_one_run():
    """A run in ten violates: thirty runs all miss it with probability 0.9^30, 4.2 %."""
    failed, held, covered = every_run(300)
    assert failed == 0
    assert held <= 0.09
    assert covered >= 0.92


def test_families_of_hard_claims_keep_the_false_discovery_rate():
    jointly, alone = false_discoveries(200)
    assert jointly <= 0.05 < alone


def test_growth_is_never_named_wrong_in_correlated_noise():
    assert all(right > 0.7 and wrong < 0.05 for right, wrong in named_growth(40).values())


def test_results_that_were_looked_at_again_pay_for_their_looks_when_they_are_judged_anew():
    """Three looks: an error of 5 % was halved three times, so that a p-value of 2 % decides nothing any more."""
    close = verdict(0.5, 0.086)
    assert together([close])[0].verdict == "holds"
    assert together([replace(close, looks=3)])[0].verdict == "inconclusive"
    assert together([replace(close, looks=3)], rate=0.05)[0].verdict == "holds"
    assert together([replace(verdict(0.5, 0.03), looks=3)])[0].verdict == "holds"
