"""Adds seeds until claims are decided, with a bound on the error of all looks at the results together."""

from collections.abc import Callable, Mapping

from lemmata.measure.compare import Verdict


def until_decided(
    look: Callable[[float], list[Verdict]],
    figure_of: Callable[[str], str],
    seeds: Mapping[str, int],
    prices: Mapping[str, int],
    add: Callable[[str, int], None],
    budget: int,
) -> list[Verdict]:
    """Return the verdicts when every claim is decided, or when the budget is spent.

    `look`: judges all claims at a given false discovery rate.
    `figure_of`: returns the figure of a claim.
    `seeds`: the number of seeds of each figure.
    `prices`: the number of trainings of one more seed of each figure.
    `add`: runs some more seeds of a figure.
    `budget`: the largest number of extra trainings.

    Each look has half the error of the one before: 2.5 %, 1.25 %, ..., 5 % in all. A claim that is decided at a look stays
    decided, as its error was spent there. As every look costs error, and the estimate of the missing seeds is rough, an open
    figure gets between half as many seeds again and as many again.
    """
    seeds, rate, decided = dict(seeds), 0.025, dict[str, Verdict]()
    while True:
        verdicts = [decided.get(v.id, v) for v in look(rate)]
        decided |= {v.id: v for v in verdicts if v.verdict != "inconclusive"}
        added = False
        for figure, count in seeds.items():
            missing = [
                v.more_seeds or 0 for v in verdicts if v.id not in decided and figure_of(v.id) == figure
            ]
            asked = max(missing, default=0)
            more = min(max(asked, count // 2), count, budget // prices[figure]) if asked else 0
            if more > 0:
                add(figure, more)
                seeds[figure] += more
                budget -= more * prices[figure]
                added = True
        if not added:
            return verdicts
        rate /= 2
