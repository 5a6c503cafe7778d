"""Searches as a record that a study publishes (`searches.json`): an answer a claim, and which conditions its claims need."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lemmata.errors import text_of
from lemmata.lab.disk import replace_file
from lemmata.search.frontier import Need
from lemmata.search.refute import Outcome
from lemmata.search.say import plain, plain_need
from lemmata.study import Study

EMPTY: dict[str, list[Any]] = {"searches": [], "frontiers": []}


def add(path: Path, study: Study, outcomes: Sequence[Outcome], needs: Sequence[Need]) -> None:
    """Add answers to a record. They replace those of the same claims; answers about claims that have changed are dropped."""
    old = json.loads(text_of(path)) if path.exists() else EMPTY
    known = study.entries
    searches = {one["id"]: one for one in old["searches"] if _as_registered(study, one)}
    searches |= {one.claim: {**plain(study.id, one), "digest": known[one.claim].digest} for one in outcomes}
    frontiers = {
        (one["claim"], one["condition"]): one for one in old["frontiers"] if one["claim"] in searches
    }
    frontiers |= {(one.claim, one.condition): plain_need(one) for one in needs}
    order = list(known)
    rows = sorted(searches.values(), key=lambda one: order.index(one["id"]))
    lines = sorted(frontiers.values(), key=lambda one: order.index(one["claim"]))
    text = f'{{"searches": [\n{_lines(rows)}\n], "frontiers": [\n{_lines(lines)}\n]}}\n'
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, text.encode())


def _as_registered(study: Study, one: dict[str, Any]) -> bool:
    entry = study.entries.get(one["id"])
    return entry is not None and entry.digest == one["digest"]


def _lines(rows: Sequence[dict[str, Any]]) -> str:
    return ",\n".join(f"  {json.dumps(row)}" for row in rows)
