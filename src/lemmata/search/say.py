"""Says what a search found: in the terminal, as JSON, as a sweep file, and as a picture."""

import json
import shlex
from collections.abc import Mapping, Sequence
from math import exp, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from lemmata.lab.disk import replace_file, replacing
from lemmata.search.frontier import Need
from lemmata.search.refute import CONFIRMING, Outcome

CLOSEST = 3
"""Conditions of a counter-example that a sentence names: those that nearly miss."""


def command(study: str, outcome: Outcome) -> str:
    """The command that repeats a counter-example; empty if there is none."""
    if outcome.example is None or outcome.problem is None:
        return ""
    words = ["lemmata", "check", f"{study}/{outcome.claim}"]
    axes = {a.name for a in outcome.problem.figure.sweep("quick").axes}
    for name, value in outcome.example.changes.items():
        words += ["--set", f"{name}={_text(value, name in axes)}"]
    return shlex.join(
        [*words, "--seeds", str(CONFIRMING), "--out", f"runs/{study}/refute/{outcome.claim}/again"]
    )


def _text(value: Any, axis: bool) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) if axis else json.dumps(list(value))
    return str(value)


def sweep_file(study: str, outcome: Outcome) -> str:
    """A sweep file (TOML) with the counter-example."""
    assert outcome.example is not None
    assert outcome.problem is not None
    lines = [
        f'study = "{study}"',
        f'figure = "{outcome.problem.figure.id}"',
        f"seeds = {CONFIRMING}",
        "",
        "[set]",
    ]
    lines += [f'"{name}" = {json.dumps(value)}' for name, value in outcome.example.changes.items()]
    return "\n".join(lines) + "\n"


def sentences(study: str, outcome: Outcome) -> list[str]:
    """What a search found for one claim, a sentence a line."""
    if outcome.word == "not searchable":
        return ["Its made results give it no number, so that it has no margin."]
    if outcome.word == "nothing inside":
        return [outcome.meaning]
    found = []
    if outcome.outside:
        found.append(
            f"Neither the figure nor any point of the box meets {', '.join(outcome.outside)}: these were left out."
        )
    if outcome.example is not None:
        found += _refuted(study, outcome)
    found.append(
        f"{outcome.points} points, {outcome.trainings} trainings; {outcome.share:.2%} of the box is inside."
    )
    if outcome.example is None:
        found.append(f"The smallest margin is {outcome.smallest:.3g}{_at(outcome.where)}.")
        if outcome.bound < 1:
            found.append(
                f"From the random points alone: at most {outcome.bound:.1%} of the inside violates it (95 %)."
            )
        if outcome.tried:
            found.append(f"{len(outcome.tried)} violating points were not confirmed on fresh seeds.")
    if outcome.silent:
        found.append(f"{outcome.silent} points gave no number.")
    return found


def _refuted(study: str, outcome: Outcome) -> list[str]:
    example = outcome.example
    assert example is not None
    said = example.confirmation
    near = sorted((far, name) for name, far in example.conditions.items() if name not in outcome.outside)[
        :CLOSEST
    ]
    conditions = "; ".join(f"{name}: margin {exp(min(far, 700.0)):.4g}" for far, name in near)
    found = [
        f"{said.violating} of {said.seeds} fresh seeds violate it (chance of a false alarm {said.chance:.1g}); "
        f"median margin {said.margin:.3g}.",
        f"The point: {', '.join(f'{name} = {value}' for name, value in example.changes.items())}.",
    ]
    if conditions:
        found.append(f"Its nearest conditions: {conditions}.")
    if example.second is not None:
        found.append(
            f"In double precision, by another simulator: {example.second.violating} of {example.second.seeds} seeds."
        )
    return [*found, outcome.meaning, command(study, outcome)]


def _at(where: Mapping[str, Any]) -> str:
    return f" at {', '.join(f'{name} = {value}' for name, value in where.items())}" if where else ""


def plain(study: str, outcome: Outcome) -> dict[str, Any]:
    """An outcome as JSON."""
    example = outcome.example
    return {
        "id": outcome.claim,
        "word": outcome.word,
        "points": outcome.points,
        "trainings": outcome.trainings,
        "share_inside": outcome.share,
        "smallest_margin": _number(outcome.smallest),
        "where": outcome.where,
        "silent": outcome.silent,
        "bound": _number(outcome.bound),
        "constant": outcome.constant,
        "outside": list(outcome.outside),
        "meaning": outcome.meaning,
        "price": None
        if outcome.price is None
        else {"axes": list(outcome.price.kept), "trainings": outcome.price.trainings},
        "counter_example": None
        if example is None
        else {
            "changes": example.changes,
            "command": command(study, outcome),
            "conditions": {name: _number(exp(min(far, 700.0))) for name, far in example.conditions.items()},
            "violating": example.confirmation.violating,
            "seeds": example.confirmation.seeds,
            "chance": example.confirmation.chance,
            "margin": _number(example.confirmation.margin),
        },
    }


def plain_need(one: Need) -> dict[str, Any]:
    """A line of a frontier as JSON."""
    rows = [[_number(far), _number(own)] for far, own in one.margins]
    return {"claim": one.claim, "condition": one.condition, "word": one.word, "factor": _number(one.factor),
            "along": one.along, "margins": rows}  # fmt: skip


def _number(value: float) -> float | None:
    return float(f"{value:.4g}") if isfinite(value) else None


def written(study: str, outcome: Outcome, folder: Path) -> Path:
    """Write the answer, the sweep file and the picture of a search into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(
        folder / f"{outcome.claim}.json", (json.dumps(plain(study, outcome), indent=1) + "\n").encode()
    )
    if outcome.example is not None:
        replace_file(folder / f"{outcome.claim}.toml", sweep_file(study, outcome).encode())
    if outcome.trace is not None and len(outcome.trace.units):
        with replacing(folder / f"{outcome.claim}.png") as temporary:
            picture(outcome).savefig(temporary, dpi=120, bbox_inches="tight", format="png")
    return folder


def picture(outcome: Outcome) -> Any:
    """Draw pairs of fields with the margin as colour and violations ringed, and the margin over the nearest condition."""
    from matplotlib.figure import Figure

    problem, trace = outcome.problem, outcome.trace
    assert problem is not None
    assert trace is not None
    number = [claim.id for claim in problem.claims].index(outcome.claim)
    margins = trace.margins[:, number]
    finite = np.where(np.isfinite(margins), margins, np.nan)
    points = [problem.at(units) for units in trace.units]
    shown = sorted(range(len(problem.space)), key=lambda i: -_matters(trace.units[:, i], finite))[:4]
    pairs = [(a, b) for at, a in enumerate(shown) for b in shown[at + 1 :]][:5]
    figure = Figure(figsize=(3.2 * (len(pairs) + 1), 3.0), layout="constrained")
    axes = figure.subplots(1, len(pairs) + 1, squeeze=False)[0]
    top = float(np.nanpercentile(np.abs(finite), 90)) if np.isfinite(finite).any() else 1.0
    for ax, (a, b) in zip(axes[1:], pairs, strict=True):
        across, up = (trace.units[:, i] for i in (a, b))
        dots = ax.scatter(
            across, up, c=finite, cmap="RdYlBu", vmin=-top, vmax=top, s=14, edgecolors="0.6", linewidths=0.3
        )
        bad = margins < 0
        ax.scatter(across[bad], up[bad], s=46, facecolors="none", edgecolors="black", linewidths=0.9)
        for set_label, set_ticks, i in ((ax.set_xlabel, ax.set_xticks, a), (ax.set_ylabel, ax.set_yticks, b)):
            one = problem.space[i]
            set_label(one.name)
            set_ticks([0, 0.5, 1], [str(one.value(unit)) for unit in (0.0, 0.5, 1.0)])
        if ax is axes[-1]:
            figure.colorbar(dots, ax=ax, label="margin of the claim")
    rooms = np.array([min(problem.room(values).least, 7.0) for values in points])
    bad = margins < 0
    axes[0].scatter(rooms, finite, s=10, color="0.4")
    axes[0].scatter(rooms[bad], finite[bad], s=40, facecolors="none", edgecolors="black", linewidths=0.9)
    axes[0].axhline(0, color="black", linewidth=0.7)
    axes[0].set_xlabel("log margin of the nearest condition")
    axes[0].set_ylabel("margin of the claim (below 0: violated)")
    figure.suptitle(f"{outcome.claim}: {outcome.word}")
    return figure


def _matters(units: np.ndarray, margins: np.ndarray) -> float:
    """How much a coordinate has to do with the margin: the size of their rank correlation."""
    known = np.isfinite(margins)
    if known.sum() < 4 or np.ptp(units[known]) == 0 or np.ptp(margins[known]) == 0:
        return 0.0
    ranks = [np.argsort(np.argsort(one[known])) for one in (units, margins)]
    return abs(float(np.corrcoef(ranks[0], ranks[1])[0, 1]))


def frontier_rows(needs: Sequence[Need]) -> list[tuple[str, str, str]]:
    """A frontier as rows: condition, what came out, the field that was changed."""
    return [(one.condition, need_words(one), one.along) for one in needs]


def need_words(one: Need) -> str:
    if one.word == "needed":
        return f"needed: broken when missed by a factor {one.factor:.3g}"
    if one.word == "not needed":
        return f"not needed up to a factor {one.factor:.3g}"
    return {"silent": "silent: no number outside", "not left": "no field leaves it alone"}[one.word]
