"""The claims of a study as a table of the page: what was said, found and asked for, with what folds below."""

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from lemmata.measure.compare import ConditionCount, Verdict
from lemmata.report.maths import with_maths
from lemmata.study import Study

OUTCOMES = {"holds": "✓", "fails": "✗", "inconclusive": "?"}
HEADS = {
    "claim": "id",
    "verdict": "outcome",
    "predicted": "predicted",
    "measured": "measured",
    "holds if": "within",
}
"""The columns, and what each is sorted by."""


def anchor(*names: str) -> str:
    """Return the id of a part of the page."""
    return escape("/".join(names))


def tally(verdicts: Sequence[Verdict]) -> str:
    """Return how many claims came out with which word, identities apart."""
    judged = [v for v in verdicts if v.kind != "identity"]
    counts = Counter(
        (decision(v), v.word) for v in sorted(judged, key=lambda v: list(OUTCOMES).index(decision(v)))
    )
    said = [outcome(verdict, f"{many} {word}") for (verdict, word), many in counts.items()]
    exact = len(verdicts) - len(judged)
    said += [f"{exact} identit{'y' if exact == 1 else 'ies'}"] if exact else []
    return ", ".join(said) or "none"


def decision(v: Verdict) -> str:
    """Return how a verdict is marked: as open where it decides nothing, whatever its number says."""
    return "inconclusive" if v.scale == "smoke" or v.not_computable else v.verdict


def outcome(decision: str, text: str) -> str:
    """Return a word with its mark, so that outcomes differ without colour."""
    return f'<span class="{decision}">{OUTCOMES[decision]}&nbsp;{escape(text)}</span>'


class Claims:
    """Writes the claims of one study. A set of conditions is listed once, and every later claim refers to it.

    `code`: the claims whose source stands in the page.
    """

    def __init__(self, study: Study, code: Iterable[str]):
        self.study = study
        self.known = {claim.id: claim for claim in study.claims}
        self.code = set(code)
        self.listed: dict[tuple[ConditionCount, ...], str] = {}

    def table(self, verdicts: Sequence[Verdict]) -> str:
        """Return a table with a block for each claim, and a row in it for each reading."""
        if not verdicts:
            return ""
        head = "".join(
            f'<th scope="col"><button type="button" data-key="{key}">{word}</button></th>'
            for word, key in HEADS.items()
        )
        claims: dict[str, list[Verdict]] = {}
        for verdict in verdicts:
            claims.setdefault(verdict.id, []).append(verdict)
        body = "".join(map(self._claim, claims.values()))
        return f'<table class="verdicts"><thead><tr>{head}</tr></thead>{body}</table>'

    def _claim(self, readings: Sequence[Verdict]) -> str:
        first = readings[0]
        known = self.known.get(first.id)
        links = [f"<b>{escape(first.id)}</b>", *([with_maths(known.source.where)] if known else [])]
        links.append(escape(first.kind))
        if known:
            links.append(
                f'<a href="#{anchor(self.study.id, known.figure)}">picture: {escape(known.figure)}</a>'
            )
        if first.id in self.code:
            links.append(f'<a href="#{anchor(self.study.id, "code", first.id)}">code</a>')
        why = f"<details><summary>why</summary>{with_maths(known.holds.because)}</details>" if known else ""
        statement = (
            f'<td rowspan="{len(readings)}">{with_maths(first.statement)}'
            f'<div class="note">{", ".join(filter(None, links))}</div></td>'
        )
        rows = []
        for place, verdict in enumerate(readings):
            cells = [
                _judged(verdict),
                f'<td data-head="predicted">{escape(verdict.predicted)}</td>',
                self._measured(verdict),
                f'<td data-head="holds if">{escape(verdict.within)}{why if place == 0 else ""}</td>',
            ]
            rows.append(f"<tr>{statement if place == 0 else ''}{''.join(cells)}</tr>")
        number = f"{first.measured.value:.6g}" if first.measured.exists else ""
        keys = (
            ("id", first.id),
            ("outcome", decision(first)),
            ("predicted", first.predicted),
            ("measured", number),
            ("within", first.within),
        )
        held = "".join(f' data-{key}="{escape(value)}"' for key, value in keys)
        return f'<tbody class="claim" id="{anchor(self.study.id, "claim", first.id)}"{held}>{"".join(rows)}</tbody>'

    def _measured(self, v: Verdict) -> str:
        """Return the number with its interval and range, what was left out, and the conditions over its cells."""
        m = v.measured
        value = "none" if not m.exists else f"{m.value:.3g}" if m.exact else f"{m.value:.3g} {m.interval}"
        seen = v.seen or m.seen
        said = [f"over {seen}"] if seen else []
        if len(m.parts) == 2:
            lower, upper = m.parts
            said.append(
                f"lower part {lower.value:.3g} {lower.interval}, upper {upper.value:.3g} {upper.interval}"
            )
        if v.violations is not None and v.violations.exists and "violate" not in v.note:
            said.append(f"share of runs that violate it {v.violations.value:.3g} {v.violations.interval}")
        said += [v.looseness] if v.looseness else []
        lost = ", ".join(f"{count} {status}" for status, count in v.left_out.items() if count)
        said += [f"runs left out: {lost}"] if lost else []
        said += [v.note] if v.note else []
        said += ["only cells that meet all conditions"] if v.inside else []
        return f'<td data-head="measured">{value}{_notes(said)}{self._conditions(v)}</td>'

    def _conditions(self, v: Verdict) -> str:
        """Return how many conditions every cell meets, and the others folded; or where the same ones are listed."""
        conditions = v.conditions
        if not conditions:
            return ""
        missed = [c for c in conditions if c.met < c.cells]
        said = f"{len(conditions) - len(missed)} of {len(conditions)} conditions met in all cells"
        before = self.listed.setdefault(conditions, v.id)
        if not missed:
            return f'<div class="note">{said}</div>'
        if before != v.id:
            link = f'<a href="#{anchor(self.study.id, "claim", before)}">as for {escape(before)}</a>'
            return f'<div class="note">{said}; {link}</div>'
        items = "".join(
            f"<li>{with_maths(c.name)}: in {c.met} of {c.cells} cell{'' if c.cells == 1 else 's'}, {_margin(c)}</li>"
            for c in missed
        )
        worst = min(missed, key=lambda c: c.worst_margin)
        summary = f"{said}; worst: {with_maths(worst.name)}, {_margin(worst)}"
        return f"<details><summary>{summary}</summary><ul>{items}</ul></details>"


def _judged(v: Verdict) -> str:
    """Return the word of the verdict, under which reading, on which draw, and what more seeds could do."""
    said = [f"reading: {v.reading}"] if v.reading else []
    said += [f"{number} excluded" for number in v.excluded]
    said.append(f"draw {v.draw}, {v.seeds} seed{'' if v.seeds == 1 else 's'}")
    said += [f"{v.looks} looks"] if v.looks > 1 else []
    said += [f"about {v.more_seeds} more seeds would decide"] if v.more_seeds else []
    return f'<td data-head="verdict">{outcome(decision(v), v.word)}{_notes(said)}</td>'


def _margin(c: ConditionCount) -> str:
    by = f"missed by a factor {1 / c.worst_margin:.3g}" if 0 < c.worst_margin < 1 else ""
    by = by or f"worst margin {c.worst_margin:.3g}"
    return by + (" (its constant set to 1)" if c.holds is None else "")


def _notes(said: Iterable[str]) -> str:
    return "".join(f'<div class="note">{with_maths(one)}</div>' for one in said)
