"""What `lemmata refute` and `lemmata plan` do."""

import argparse
import re
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from lemmata.errors import BadInput, note, require, unknown
from lemmata.figure import Claim
from lemmata.lab.executors import connect_workers
from lemmata.search import record, say
from lemmata.search.engine import Budget
from lemmata.search.frontier import Need, frontier
from lemmata.search.plan import Answer, Want, figure_for
from lemmata.search.plan import plan as answered
from lemmata.search.refute import Outcome
from lemmata.search.refute import refute as search_claims
from lemmata.study import Study, study
from lemmata.terminal import print_json, print_prose, print_table

SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
SEARCHED = ("theorem", "proof")
"""Sources whose claims `refute STUDY` searches. Any single claim can be named."""


def refute(options: argparse.Namespace, workers: int) -> int:
    """Search for counter-examples; exit code 1 under --strict if one is found."""
    own, claims = chosen(options.name)
    out = Path(options.out) if options.out else Path("runs") / own.id / "refute"
    require(options.constants > 0, f"a constant is positive, not {options.constants}.")
    needs: list[Need] = []
    with connect_workers(options.on, workers, options.limit) as pool:
        outcomes = search_claims(
            own, claims, pool, budget_of(options.budget), out, options.constants, shown=_shown
        )
        if options.frontier:
            needs = frontiers(outcomes)
    for outcome in outcomes:
        say.written(own.id, outcome, out / "answers")
    if options.to:
        record.add(Path(options.to), own, outcomes, needs)
    if options.json:
        content = [say.plain(own.id, one) for one in outcomes]
        more = {"frontier": [say.plain_need(one) for one in needs]} if options.frontier else {}
        print_json({"study": own.id, "constant": options.constants, "claims": content, **more})
    else:
        _print(own, outcomes, needs, out)
    return int(options.strict and any(one.word == "refuted" for one in outcomes))


def chosen(name: str) -> tuple[Study, list[Claim]]:
    """The claims of STUDY/CLAIM or STUDY/FIGURE; of STUDY those of the paper's theorems and proofs that have conditions."""
    study_id, _, part = name.partition("/")
    own = study(study_id)
    if not part:
        return own, [one for one in own.claims if one.source.kind in SEARCHED and one.conditions is not None]
    claims = [one for one in own.claims if part == one.id] or [
        one for one in own.claims if part == one.figure
    ]
    if not claims:
        raise unknown(f"claim or figure of {study_id}", part, [*own.entries, *own.figures])
    return own, claims


def budget_of(said: str) -> Budget:
    """A budget as a user writes it: `90s`, `10m`, `1h`, a number of points, or both, whichever is spent first.

    >>> budget_of("10m").seconds, budget_of("200").points, budget_of("200,1h").seconds
    (600.0, 200.0, 3600.0)
    """
    found: dict[str, float] = {}
    for word in said.split(","):
        part = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", word)
        if not part or float(part[1]) <= 0:
            raise BadInput(
                f"a budget is a time such as 90s, 10m or 1h, a number of points such as 200, or 200,10m; not '{said}'."
            )
        found["seconds" if part[2] else "points"] = float(part[1]) * SECONDS.get(part[2], 1.0)
    return Budget(**found)


def frontiers(outcomes: Sequence[Outcome]) -> list[Need]:
    """Leave one condition at a time, once for all claims that share a search."""
    found: list[Need] = []
    done: set[int] = set()
    for outcome in outcomes:
        problem = outcome.problem
        if problem is None or id(problem) in done or not outcome.where:
            continue
        done.add(id(problem))
        start = problem.start if problem.room(problem.start).least >= 0 else outcome.where
        found += frontier(problem, start)
    return found


def plan(options: argparse.Namespace, workers: int, changes: Mapping[str, str]) -> None:
    """Say what the theory says, train around its number, and give an interval."""
    want = Want.of(options.want)
    study_id, _, figure_id = options.name.partition("/")
    own = study(study_id)
    figure = own.figure(figure_id) if figure_id else figure_for(own, want, options.vary)
    require(
        options.budget is None or options.budget > 0,
        f"a budget is a number of trainings, not {options.budget}.",
    )
    out = Path(options.out) if options.out else None
    with connect_workers(options.on, workers, options.limit) as pool:
        answer = answered(own, figure, want, options.vary, pool, out, changes, options.budget or inf, note)
    if options.json:
        print_json(plain_answer(own, answer))
        return
    for one in answer.numbers:
        off = (
            ""
            if one.off is None
            else f" (a factor {one.off:.3g} of what was measured{', vacuous here' if one.vacuous else ''})"
        )
        print_prose(f"{one.says}: {one.number:.4g}{off}")
    print_table(
        answer.want.quantity, (answer.vary, "mean over seeds"), [(str(v), repr(e)) for v, e in answer.rows]
    )
    print_prose(f"{answer.sentence} ({own.id}/{answer.figure}, {answer.trainings} trainings).")


def plain_answer(own: Study, answer: Answer) -> dict[str, Any]:
    """An answer as JSON."""
    rows = [{"value": v, "mean": e.value, "interval": [e.low, e.high]} for v, e in answer.rows]
    numbers = [
        {"says": one.says, "number": one.number, "off": one.off, "vacuous": one.vacuous}
        for one in answer.numbers
    ]
    return {"study": own.id, "figure": answer.figure, "vary": answer.vary, "theory": numbers, "low": answer.low,
            "high": answer.high, "answer": answer.sentence, "rows": rows, "trainings": answer.trainings}  # fmt: skip


def _shown(name: str, points: int) -> None:
    note(f"{name}: {points} points")


def _print(own: Study, outcomes: Sequence[Outcome], needs: Sequence[Need], out: Path) -> None:
    for outcome in outcomes:
        price = outcome.price
        cost = f" ({price.trainings} trainings a point)" if price is not None else ""
        print_prose(f"{own.id}/{outcome.claim}: {outcome.word}{cost}")
        print_prose("\n".join(say.sentences(own.id, outcome)), "  ")
    if needs:
        rows = [(one.claim, *row) for one, row in zip(needs, say.frontier_rows(needs), strict=True)]
        print_table("Which conditions are needed", ("claim", "condition", "", "along"), rows)
    print(f"answers: {out / 'answers'}")
