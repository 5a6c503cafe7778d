"""Add seeds until claims are decided, without erring more often for having looked several times."""

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
    """Verdicts after as many looks as it takes, or as `budget` extra trainings allow.

    `look(rate)` judges all claims at a false discovery rate, `figure_of` names a claim's figure, `add(figure, n)` runs `n`
    more seeds of it, at `prices[figure]` trainings each. Each look has half the error of the one before: 2.5 %, 1.25 %, ...,
    5 % in all. A claim that is decided at a look stays decided, as its error was spent there. Since looks are dear, an open
    figure gets at least half as many seeds again, and at most as many again: the estimate of what is missing is rough.
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
