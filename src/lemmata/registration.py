"""Registration of claims: what a claim measures is written down, and a changed claim is judged on fresh seeds.

Each study has a lock (`lock.json`): for every claim a digest of what it measures (its data, the source of its measure and
region, its figure's grid and number of seeds) and a draw number. The seeds of a figure begin at its largest draw number times
100 000. `lock` gives a claim whose digest has changed the next draw number of its figure, so that nobody can mend a claim on
the seeds that judge it. Draw number 0, before anything is registered, is for looking around.
"""

import ast
import hashlib
import inspect
import json
import textwrap
from collections.abc import Callable
from dataclasses import asdict
from types import FunctionType
from typing import Any

from lemmata.study import Claim, Study
from lemmata.trial import describe


def lock(study: Study) -> dict[str, dict[str, Any]]:
    """Register all claims of a study; returns the entries that are new or have changed."""
    digests = {claim.id: digest(study, claim) for claim in study.claims}
    changed = {id: one for id, one in digests.items() if study.lock.get(id, {}).get("digest") != one}
    fresh = {c.id: study.draw_number(c.figure) + 1 for c in study.claims if c.id in changed}
    entries = {
        id: {"digest": digests[id], "draw": fresh[id]} if id in changed else study.lock[id] for id in digests
    }
    (study.folder / "lock.json").write_text(json.dumps(entries, indent=1) + "\n")
    study.__dict__.pop("lock", None)  # read anew
    return {id: entries[id] for id in changed}


def disagreements(study: Study) -> list[str]:
    """Claims that are not what was registered, and registered ones that are gone."""
    digests = {claim.id: digest(study, claim) for claim in study.claims}
    found = [f"'{id}' is not registered" for id in digests if id not in study.lock]
    found += [f"'{id}' is registered, but gone" for id in study.lock if id not in digests]
    changed = [id for id, one in digests.items() if id in study.lock and study.lock[id]["digest"] != one]
    return found + [f"'{id}' has changed since it was registered" for id in changed]


def digest(study: Study, claim: Claim) -> str:
    """What a claim measures, in 16 hexadecimal digits."""
    measure, region, conditions = study.parts(claim)
    figure = study.figure(claim.figure)
    content = {
        "claim": {name: value for name, value in asdict(claim).items() if name != "reason"},
        "measure": sources(measure),
        "region": sources(region) if region else [],
        "conditions": claim.conditions if conditions else "",
        "figure": {scale: grid(figure.sweep(scale)) for scale in ("quick", "paper")},
        "readings": figure.readings,
    }
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def sources(function: Callable[..., Any]) -> list[str]:
    """A function and the functions of its own module that it calls, as syntax: layout and remarks do not count."""
    found: dict[str, str] = {}
    waiting = [inspect.unwrap(function)]
    while waiting:
        one = waiting.pop()
        if not isinstance(one, FunctionType) or one.__qualname__ in found:
            continue
        found[one.__qualname__] = _syntax(one)
        known = [one.__globals__.get(name) for name in _names(one.__code__)]
        waiting += [
            inspect.unwrap(f) for f in known if callable(f) and getattr(f, "__module__", "") == one.__module__
        ]
    return [found[name] for name in sorted(found)]


def _names(code: Any) -> set[str]:
    inner = [c for c in code.co_consts if hasattr(c, "co_names")]
    return set(code.co_names).union(*(_names(c) for c in inner))


def _syntax(function: FunctionType) -> str:
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.FunctionDef | ast.Module) and isinstance(body, list) and len(body) > 1:
            first = body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                body.pop(0)
    return ast.dump(tree)


def grid(sweep: Any) -> dict[str, Any]:
    """What a sweep goes over, as it is registered."""
    axes = {axis.name: list(axis.values) for axis in sweep.axes}
    return {"trial": describe(sweep.template), "axes": axes, "seeds": len(sweep.seeds)}
