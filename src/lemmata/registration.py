"""Registration of claims: what a claim measures is written down, and a changed claim is judged on fresh seeds.

Each study has a registration, `lock.json`. It holds the titles of the figures and, for every claim, what `lemmata list` and
the ledger show, a digest of what the claim measures, and a draw number. The seeds of a figure begin at its largest draw number
times 100 000.

`lock` gives a claim whose digest has changed the next draw number of its figure, so that no claim can be mended on the seeds
that judge it. The digest covers the number, the cells, the conditions and the tolerance, with all constants and theory
functions that they use, and the grid. It does not cover prose or made results. Draw number 0, before anything is registered, is
for looking around.
"""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from lemmata.figure import Claim, Figure
from lemmata.meaning import meaning
from lemmata.study import Entry, Study
from lemmata.trial import describe


def lock(study: Study) -> dict[str, Entry]:
    """Register all claims of a study, and return the entries of those that are new or have changed."""
    now = _now(study)
    changed = {
        id: one for id, one in now.items() if _registered(study).get(id, {}).get("digest") != one.digest
    }
    _write(study, now)
    return changed


def disagreements(study: Study) -> list[str]:
    """Say which claims are not what was registered, and which registered ones are gone. Outdated words count, too."""
    known, now = _registered(study), _now(study)
    found = [f"'{id}' is not registered" for id in now if id not in known]
    found += [f"'{id}' is registered, but gone" for id in known if id not in now]
    for id, one in now.items():
        if id in known and known[id]["digest"] != one.digest:
            found.append(f"'{id}' has changed since it was registered")
        elif id in known and known[id] != _plain(one):
            found.append(f"the words of '{id}' have changed since it was registered")
    if study.lock and study.lock["figures"] != _titles(study):
        found.append("the titles of the figures have changed since they were registered")
    return found


def described(claim: Claim, digest: str, draw: int) -> Entry:
    """What is registered of a claim."""
    return Entry(
        claim.id,
        claim.figure,
        claim.statement,
        claim.source.kind,
        claim.source.where,
        claim.holds.kind,
        claim.holds.predicted,
        claim.headline,
        digest,
        draw,
    )


def digest(claim: Claim, figure: Figure) -> str:
    """What a claim measures, in 16 hexadecimal digits."""
    content = {
        "number": meaning(claim.number),
        "cells": meaning(claim.cells) if claim.cells else [],
        "conditions": meaning(claim.conditions) if claim.conditions else [],
        "derived": meaning(figure.derived),
        "holds": {name: value for name, value in asdict(claim.holds).items() if name != "because"},
        "uses": claim.uses,
        "grid": {scale: grid(figure.sweep(scale)) for scale in ("quick", "paper")},
        "readings": figure.readings,
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def grid(sweep: Any) -> dict[str, Any]:
    """What a sweep goes over, as it is registered."""
    axes = {axis.name: list(axis.values) for axis in sweep.axes}
    return {"trial": describe(sweep.template), "axes": axes, "seeds": len(sweep.seeds)}


def _now(study: Study) -> dict[str, Entry]:
    """The claims as they are now: with their draw number, or the next one of their figure where they have changed."""
    known, figures = _registered(study), {figure.id: figure for figure in study.all_figures}
    found = {}
    for claim in study.claims:
        own = digest(claim, figures[claim.figure])
        old = known.get(claim.id, {})
        drawn = [one["draw"] for one in known.values() if one["figure"] == claim.figure]
        draw = old["draw"] if old.get("digest") == own else max(drawn, default=0) + 1
        found[claim.id] = described(claim, own, draw)
    return found


def _registered(study: Study) -> dict[str, dict[str, Any]]:
    return study.lock.get("claims", {})


def _write(study: Study, entries: dict[str, Entry]) -> None:
    content = {
        "history": study.lock.get("history", []),
        "figures": _titles(study),
        "claims": {id: _plain(one) for id, one in entries.items()},
    }
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    (study.folder / "lock.json").write_text(text, encoding="utf-8")
    for name in ("lock", "entries"):
        study.__dict__.pop(name, None)  # read again


def _plain(entry: Entry) -> dict[str, Any]:
    return {name: value for name, value in asdict(entry).items() if name != "id"}


def _titles(study: Study) -> dict[str, str]:
    return {figure.id: figure.title for figure in study.all_figures}
