"""Adding seeds until claims are decided."""

from dataclasses import replace

from lemmata.lab.looks import until_decided
from lemmata.measure.compare import Verdict
from lemmata.measure.estimate import Estimate

OPEN = Verdict("a", "a statement", "inconclusive", "1", Estimate(1.0, 0.5, 1.5), (0.9, 1.1), more_seeds=3)


def looked(*rows: list[Verdict], seeds=None, prices=None, budget=1000):
    """Return the verdicts if successive looks find these rows, the rates of the looks, and the added seeds."""
    rates, added = [], []

    def look(rate: float) -> list[Verdict]:
        rates.append(rate)
        return rows[min(len(rates), len(rows)) - 1]

    found = until_decided(
        look,
        lambda claim: "fig",
        seeds or {"fig": 8},
        prices or {"fig": 10},
        lambda f, n: added.append(n),
        budget,
    )
    return {v.id: v.verdict for v in found}, rates, added


def test_what_is_decided_at_one_look_stays_decided():
    other = replace(OPEN, id="b")
    first = [replace(OPEN, verdict="holds"), other]
    second = [OPEN, replace(other, verdict="fails")]
    found, rates, _ = looked(first, second)
    assert found == {"a": "holds", "b": "fails"}
    assert rates == [0.025, 0.0125]


def test_all_looks_together_err_no_more_than_one_look_would():
    _, rates, _ = looked([OPEN])
    assert len(rates) > 3
    assert sum(rates) <= 0.05


def test_an_open_figure_gets_half_to_all_of_its_seeds_again_until_the_budget_is_spent():
    _, _, added = looked([OPEN])
    assert added[0] == 4  # three were requested; a look must add more
    assert sum(added) * 10 <= 1000 < (sum(added) + 1) * 10
    assert looked([replace(OPEN, more_seeds=500)])[2][0] == 8


def test_no_seed_is_added_where_seeds_would_not_decide():
    assert looked([replace(OPEN, more_seeds=None)])[2] == []
