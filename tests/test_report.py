"""The report: one page, nothing loaded from elsewhere, everything that a verdict says, failures shown as such."""

import json
import re
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from math import inf

import numpy as np
import pytest
import xarray as xr

from lemmata.measure.compare import ConditionCount, Verdict
from lemmata.measure.estimate import Estimate
from lemmata.report import chapters, page
from lemmata.report.record import markdown, record
from lemmata.status import CONVERGED, DIVERGED
from lemmata.study import Claim, Figure, Statement, Study

LOCAL = (Estimate(-0.4, -0.5, -0.3), Estimate(-0.2, -0.3, -0.1))


def claim(id: str, kind="law", tolerance=(-0.6, -0.4)) -> Claim:
    return Claim(
        id,
        "x < y & so on",
        "fig1",
        "Theorem <2>",
        kind,
        "-0.5",
        tolerance,
        reason="Half a step of the grid.",
        measure="m",
    )


def verdict(id: str, outcome="fails", **more) -> Verdict:
    given = {
        "predicted": "-0.5",
        "measured": Estimate(-0.1, -0.2, 0.0, 5, parts=LOCAL),
        "tolerance": (-0.6, -0.4),
        "seeds": 5,
    }
    return Verdict(id, "x < y & so on", outcome, **given | more)


@dataclass
class Ordered:
    command: str = "lemmata run s/fig1 --set 'a<b'"


STUDY = Study(
    "s",
    "Title & more",
    "Summary",
    "@article{x}",
    {"fig1": "A <figure>"},
    (claim("law"), claim("floor", "bound", (0.1, inf)), claim("same", "identity")),
    "none",
)


@pytest.fixture
def html(tmp_path) -> str:
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG")
    figure = Figure("fig1", None, None, "How it <was> read.")  # pyright: ignore[reportArgumentType]
    shown = []
    for reading, outcome in (("divide", "fails"), ("leave it", "holds")):
        status = ("seed", np.array([CONVERGED] * 4 + [DIVERGED]))
        attrs = {"scale": "quick", "reading": reading, "draw": 2, "looks": 3}
        results = xr.Dataset({"status": status}, {"seed": range(5)}, attrs=attrs)
        conditions = (
            ConditionCount("(2) d > n", 3, 12, 0.025, False),
            ConditionCount("(3) n large", 12, 12, 2.0, None),
        )
        law = verdict(
            "law",
            outcome,
            conditions=conditions,
            reading=reading,
            draw=2,
            looks=3,
            left_out={"diverged": 1},
            seen="norms 4 to 64",
            note="A <note>.",
            more_seeds=7,
            value=-0.5,
        )
        floor = verdict(
            "floor",
            "inconclusive",
            kind="bound",
            tolerance=(0.1, inf),
            looseness="3.2 times above",
            violations=Estimate(0.25, 0.1, 0.4),
        )
        same = verdict("same", "holds", kind="identity", measured=Estimate.certain(1e-12))
        verdicts = [law, floor, same] if reading == "divide" else [law]
        shown.append((figure, Ordered(), results, verdicts, picture))
    return page([(STUDY, chapters(STUDY, shown))])


def test_nothing_is_loaded_from_elsewhere(html):
    assert not re.search(r"(src|href)=\"(?!#|data:)", html)
    assert html.count("data:image/png;base64,") == 2


def test_a_verdict_stands_with_its_tolerance_range_parts_and_losses(html):
    assert "-0.1 [-0.2, 0]" in html
    assert "[-0.6, -0.4]" in html
    assert "over norms 4 to 64" in html
    assert "lower part -0.4 [-0.5, -0.3], upper -0.2 [-0.3, -0.1]" in html
    assert "runs left out: 1 diverged" in html
    assert "at least 0.1" in html
    assert "3.2 times above" in html
    assert "violate it 0.25 [0.1, 0.4]" in html
    assert "draw 2, 5 seeds" in html
    assert "3 looks" in html
    assert "about 7 more seeds would decide" in html
    assert "-0.5 excluded" in html
    assert "Half a step of the grid." in html
    assert "runs: 4 converged, 1 diverged" in html


def test_conditions_are_counts_of_cells(html):
    assert "1 of 2 conditions met in all cells" in html
    assert "worst: (2) d &gt; n, missed by a factor 40" in html
    assert "(2) d &gt; n: in 3 of 12 cells, missed by a factor 40" in html
    assert "(3) n large" not in html


def test_readings_of_a_claim_stand_side_by_side(html):
    block = next(part for part in html.split("<tbody>") if "<b>law</b>" in part)
    assert block.count("<tr>") == 2
    assert 'rowspan="2"' in block
    assert "reading: divide" in block
    assert "reading: leave it" in block


def test_identities_are_listed_apart_and_not_counted(html):
    claims, identities = html.split("<h3>Identities</h3>")
    assert "<b>same</b>" not in claims
    assert "<b>same</b>" in identities
    assert "1 identity" in claims
    assert re.search(r"✓&nbsp;1 holds.*✗&nbsp;1 fails.*\?&nbsp;1 inconclusive", claims)


def test_the_contents_lead_everywhere(html):
    targets = set(re.findall(r'href="#([^"]*)"', html))
    assert targets == {"s", "s/fig1"}
    assert targets <= set(re.findall(r' id="([^"]*)"', html))


def test_strings_are_escaped_and_tags_balanced(html):
    assert "<figure>" in html  # the tag
    for raw in ("A <figure>", "<was>", "<note>", "x < y & so", "Title & more", "Theorem <2>", "a<b"):
        assert raw not in html

    class Balance(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open = []

        def handle_starttag(self, tag, attrs):
            if tag not in ("meta", "img"):
                self.open.append(tag)

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parser = Balance()
    parser.feed(html)
    assert parser.open == []


def test_outcomes_differ_without_colour(html):
    assert {"✓", "✗", "?"} <= set(html)
    style = html.split("<style>")[1].split("</style>")[0]
    assert re.search(r"\.fails \{[^}]*(bold|underline)", style)
    assert "@media print" in style


def test_table_in_markdown_has_a_row_a_claim_and_the_readings_side_by_side():
    text = markdown(
        STUDY, [verdict("law", reading="a"), verdict("law", "holds", reading="b"), verdict("floor")]
    )
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0].split(" | ")[1:3] == ["a", "b"]
    assert "**fails** -0.1 [-0.2, 0] | holds -0.1 [-0.2, 0]" in rows[2]
    assert len(rows) == 4


def test_published_verdicts_come_back_as_findings_of_the_ledger(monkeypatch):
    seen = [
        verdict("law", reading="a"),
        verdict("law", "holds", reading="b", measured=Estimate.absent("no run")),
    ]
    monkeypatch.setitem(STUDY.__dict__, "published", ())
    published = tuple(json.loads(record(STUDY, seen, "quick"))["verdicts"])
    assert (published[0]["value"], published[1]["value"]) == (-0.1, None)
    line = Statement("Theorem 1", "so", held_against="claim law, claim floor, test x", finding="loose")
    monkeypatch.setitem(STUDY.__dict__, "published", published)
    monkeypatch.setitem(STUDY.__dict__, "lock", {})
    assert STUDY.finding(line) == "loose; law: fails / holds; floor: not judged yet"
    monkeypatch.setitem(STUDY.__dict__, "lock", {"law": {"draw": 2}})
    assert "law: fails / holds, before it was changed" in STUDY.finding(line)


def test_a_record_keeps_what_was_published_of_claims_on_their_registered_draw():
    own = replace(
        STUDY, figures={"fig1": "", "fig2": ""}, claims=(claim("law"), replace(claim("floor"), figure="fig2"))
    )
    own.__dict__.update(published=(), lock={})
    old = json.loads(record(own, [verdict("law"), verdict("floor", "holds")], "quick"))["verdicts"]

    def said(**locked):
        own.__dict__.update(published=tuple(old), lock={id: {"draw": n} for id, n in locked.items()})
        again = json.loads(record(own, [verdict("law", "holds")], "quick"))["verdicts"]
        return {line["id"]: line["verdict"] for line in again}

    assert said(law=0, floor=0) == {"law": "holds", "floor": "holds"}
    assert said(law=0, floor=1) == {"law": "holds"}
