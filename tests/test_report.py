"""The report: one page, nothing loaded from elsewhere, everything that a verdict says, failures shown as such."""

import json
import re
from dataclasses import dataclass, field, replace
from html import escape
from html.parser import HTMLParser
from math import inf
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from lemmata import report
from lemmata.errors import BadInput
from lemmata.figure import Claim, Figure, Holds, made, theorem
from lemmata.measure.compare import ConditionCount, Verdict
from lemmata.measure.estimate import Estimate
from lemmata.registration import described
from lemmata.report import chapters, katex_style, own_chapter, page
from lemmata.report.claims import Claims, decision
from lemmata.report.code import sources_of
from lemmata.report.explore import cell_command, explorable
from lemmata.report.maths import with_maths
from lemmata.report.record import markdown, record
from lemmata.session import export
from lemmata.status import CONVERGED, DIVERGED
from lemmata.study import Statement, Study, study
from tests.figures import study_of

LOCAL = (Estimate(-0.4, -0.5, -0.3), Estimate(-0.2, -0.3, -0.1))


def claim(id: str, kind="law", tolerance=(-0.6, -0.4)) -> Claim:
    holds = Holds(kind, *tolerance, because="Half a step of the grid.", value=-0.5)
    return Claim(
        id, "x < y & so on", theorem("Theorem <2>"), number=lambda r: r.m, holds=holds, refuted_by=made()
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
    out: str | None = None
    axes: dict = field(default_factory=dict)

    @property
    def command(self):
        return "lemmata run s/fig1 --set 'a<b'" + (f" --out {self.out}" if self.out else "")


MANIFEST = {"versions": {"jax": "0.9"}, "platform": "Linux", "started": "2026-01-02T03:04:05Z"}


def figure(*claims: Claim, id="fig1", title="A <figure>") -> Figure:
    return Figure(id, title, "How it <was> read.", lambda scale: None, lambda *_: None, claims)  # pyright: ignore


def study_with(*figures: Figure, **draws: int) -> Study:
    """The study with these figures, its claims registered with these draws."""
    own = study_of(
        *figures, id="s", title="Title & more", summary="Summary", citation="@article{x}", package="none"
    )
    entries = {c.id: described(c, "", draws.get(c.id, 0)) for c in own.claims}
    own.__dict__["entries"] = entries
    return own


STUDY = study_with(
    figure(claim("law"), claim("floor", "bound", (0.1, inf)), claim("same", "identity", (-inf, 1e-9)))
)


def chapters_of(tmp_path):
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG")
    shown_figure = STUDY.figure("fig1")
    shown = []
    for reading, outcome in (("divide", "fails"), ("leave it", "holds")):
        attrs = {"scale": "quick", "reading": reading, "draw": 2, "looks": 3}
        error = (("n", "seed"), np.arange(10.0).reshape(2, 5))
        ends = (("n", "seed"), np.array([[CONVERGED] * 4 + [DIVERGED], [CONVERGED] * 5]))
        labels = {"seed": range(5), "n": [4, 8]}
        results = xr.Dataset({"status": ends, "test_error": error}, labels, attrs=attrs)
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
        shown.append((shown_figure, Ordered(), results, verdicts, picture, MANIFEST))
    return chapters(STUDY, shown)


@pytest.fixture
def html(tmp_path) -> str:
    return page([(STUDY, chapters_of(tmp_path))])


def without_scripts(html):
    return re.sub(r"<(script|style)[ >].*?</\1>", "", html, flags=re.DOTALL)


def plain(html):
    """The text of a page, entities and all."""
    return re.sub(r"<[^>]*>", "", without_scripts(html))


def test_nothing_is_loaded_from_elsewhere(html):
    assert not re.search(r"(src|href)=\"(?!#|data:)", without_scripts(html))
    assert not re.search(r"url\((?!data:)", html)
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
    assert "runs: 9 converged, 1 diverged" in html


def test_the_version_of_the_paper_stands_above_the_claims(html):
    assert "Numbers of theorems, equations and figures are those of: Toys 1." in html
    assert html.index("Toys 1") < html.index("Theorem &lt;2&gt;")


def test_conditions_are_counts_of_cells(html):
    text = plain(html)
    assert "1 of 2 conditions met in all cells" in text
    assert "worst: (2) d &gt; n, missed by a factor 40" in text
    assert "(2) d &gt; n: in 3 of 12 cells, missed by a factor 40" in text
    assert "(3) n large" not in text


def test_readings_of_a_claim_stand_side_by_side(html):
    block = next(part for part in html.split("<tbody") if "<b>law</b>" in part)
    assert block.count("<tr>") == 2
    assert 'rowspan="2"' in block
    assert "reading: divide" in block
    assert "reading: leave it" in block


def test_identities_are_listed_apart_and_not_counted(html):
    claims, identities = html.split("<h3>Identities</h3>")
    assert "<b>same</b>" not in claims
    assert "<b>same</b>" in identities
    assert "1 identity" in claims
    assert re.search(r"✓&nbsp;1 holds.*✗&nbsp;1 fails.*\?&nbsp;1 open", claims)


def test_the_contents_lead_everywhere(html):
    targets = set(re.findall(r'href="#([^"]*)"', without_scripts(html)))
    assert targets == {"s", "s/fig1", "s/claim/law", "s/claim/floor", "s/claim/same"}
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
            if tag not in ("meta", "img", "link", "input"):
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


def test_conditions_that_two_claims_share_are_listed_once():
    shared = (ConditionCount("(2) d > n", 3, 12, 0.025, False),)
    table = Claims(STUDY, ()).table([verdict("law", conditions=shared), verdict("floor", conditions=shared)])
    assert table.count("<ul>") == 1
    assert '<a href="#s/claim/law">as for law</a>' in table


def test_what_decides_nothing_is_marked_as_open():
    assert decision(verdict("law", "holds")) == "holds"
    assert decision(verdict("law", "holds", scale="smoke")) == "inconclusive"
    assert decision(verdict("law", "fails", not_computable="a limit")) == "inconclusive"


def test_the_data_behind_a_picture_are_its_results_cell_by_cell(html):
    (text,) = set(re.findall(r'<script type="application/json">(.*?)</script>', html))
    data = json.loads(text)
    assert [axis["labels"] for axis in data["axes"]] == [["4", "8"]]
    assert data["variables"][0]["values"] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert data["names"][data["ends"][0][4]] == "diverged"
    assert cell_command(data, 1) == "lemmata run s/fig1 --set 'a<b' --out runs/cell --set n=8"
    assert "<" not in text


def test_curves_are_explored_at_their_last_known_value():
    curve = (("n", "seed", "step"), [[[3.0, 2.0, np.nan]], [[5.0, 4.0, 1.0]]])
    data = {"status": (("n", "seed"), [[1], [1]]), "loss_curve": curve}
    found = explorable(xr.Dataset(data, {"n": [1, 2], "seed": [0], "step": [0, 1, 2]}))
    assert found is not None
    assert found["variables"][0]["values"] == [[2], [1]]
    assert explorable(xr.Dataset()) is None


def test_a_claim_leads_to_its_source():
    own = study("benign-overfitting")
    found = sources_of(own.folder, own.entries)
    assert len(found) > len(own.entries) / 2
    where, source = found["boundary-exponent"]
    assert re.fullmatch(r"benign_overfitting/figures/\w+\.py, line \d+", where)
    assert source.startswith("Claim(")
    assert "falls as N^-1/2" in source


@pytest.mark.parametrize(
    ("said", "tex"),
    [
        ("alpha_*^-2", r"\alpha_{*}^{-2}"),
        ("|A^s - A*|_inf", r"|A^{s} - A^{*}|_{\infty}"),
        ("eps^((2M-1)/M^2)", r"\epsilon^{\left(2M - 1\right)/M^{2}}"),
        ("M_1/2", "M_{1}/2"),
        ("N^-1/2", "N^{-1/2}"),
        ("alpha0^-(p-1)", r"\alpha_{0}^{-\left(p - 1\right)}"),
        ("sqrt(heads)/10", r"\sqrt{\text{heads}}/10"),
        ("S^3 <= 4", r"S^{3} \le 4"),
    ],
)
def test_formulas_are_found_in_sentences(said, tex):
    assert with_maths(f"It is {said}, says A.") == (
        f'It is <span class="tex" data-tex="{escape(tex)}">{escape(said)}</span>, says A.'
    )


def test_words_are_no_formulas():
    for said in ("test_loss of run_3", "A large N", "Theorem 5 (a)", "0.2 falls", "a 3-fold rise"):
        assert with_maths(said) == said


def test_the_formulas_ship_with_their_licence_and_stay_small():
    room = Path(report.__file__).parent / "katex"
    assert "MIT" in (room / "LICENSE").read_text(encoding="utf-8")
    assert all(path.stat().st_size < 500_000 for path in room.rglob("*"))
    assert len(katex_style()) + (room / "katex.min.js").stat().st_size < 500_000


def test_runs_with_settings_of_ones_own_appear_apart(tmp_path):
    own = [replace(one, own="runs/mine") for one in chapters_of(tmp_path)]
    html = page([(STUDY, own)])
    assert "settings of your own in runs/mine" in html
    assert "These settings give" in html
    assert 'class="claim"' not in without_scripts(html)  # they are not among the study's verdicts


def test_a_sweep_of_ones_own_is_a_page_without_claims(tmp_path):
    ends = (("n", "seed"), [[CONVERGED], [DIVERGED]])
    results = xr.Dataset(
        {"status": ends, "test_error": (("n", "seed"), [[0.5], [0.25]])}, {"n": [4, 8], "seed": [0]}
    )
    html = page([(STUDY, [own_chapter(results, None)])])
    text = without_scripts(html)
    assert "A sweep over n" in text
    assert '<div class="explore">' in text
    assert 'id="search"' not in text
    assert "<img" not in text
    with pytest.raises(BadInput, match="belong to no study"):
        export(results, tmp_path / "mine.html")


def test_table_in_markdown_has_a_row_a_claim_and_the_readings_side_by_side():
    text = markdown(
        STUDY, [verdict("law", reading="a"), verdict("law", "holds", reading="b"), verdict("floor")]
    )
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0].split(" | ")[1:3] == ["a", "b"]
    assert "**fails** -0.1 [-0.2, 0] | holds -0.1 [-0.2, 0]" in rows[2]
    assert len(rows) == 4


def test_published_verdicts_come_back_as_findings_of_the_ledger():
    seen = [
        verdict("law", reading="a"),
        verdict("law", "holds", reading="b", measured=Estimate.absent("no run")),
    ]
    published = tuple(json.loads(record(STUDY, seen, "quick"))["verdicts"])
    assert (published[0]["value"], published[1]["value"]) == (-0.1, None)
    line = Statement("Theorem 1", "so", held_against="claim law, claim floor, test x", finding="loose")
    own = study_with(figure(claim("law"), claim("floor")))
    own.__dict__["publication"] = {"verdicts": published}
    assert own.finding(line) == "loose; law: fails / holds; floor: not judged yet"
    changed = study_with(figure(claim("law"), claim("floor")), law=2)
    changed.__dict__["publication"] = {"verdicts": published}
    assert "law: fails / holds, before it was changed" in changed.finding(line)


def test_a_record_keeps_what_was_published_of_claims_on_their_registered_draw():
    figures = figure(claim("law")), figure(claim("floor"), id="fig2")
    first = [verdict("law"), verdict("floor", "holds")]
    old = json.loads(record(study_with(*figures), first, "quick"))["verdicts"]

    def said(**draws):
        own = study_with(*figures, **draws)
        own.__dict__["publication"] = {"verdicts": old}
        again = json.loads(record(own, [verdict("law", "holds")], "quick"))["verdicts"]
        return {line["id"]: line["verdict"] for line in again}

    assert said(law=0, floor=0) == {"law": "holds", "floor": "holds"}
    assert said(law=0, floor=1) == {"law": "holds"}


def test_a_record_keeps_the_minutes_of_a_whole_check_until_there_is_another():
    own = study_with(figure(claim("law")))
    assert json.loads(record(own, [verdict("law")], "quick", 12.34))["minutes"] == 12.3
    own.__dict__["publication"] = {"minutes": 12.3}
    assert json.loads(record(own, [verdict("law")], "quick"))["minutes"] == 12.3
