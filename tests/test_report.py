"""The report: one page, nothing loaded from elsewhere, failures shown as such."""

import re

from lemmata.measure.compare import Condition, Verdict
from lemmata.measure.estimate import Estimate
from lemmata.report import Chapter, page
from lemmata.study import Study


def test_the_page_is_self_contained_and_says_what_failed(tmp_path):
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG")
    verdict = Verdict(
        id="law",
        statement="x < y & so on",
        verdict="fails",
        predicted="-0.5",
        measured=Estimate(-0.1, -0.2, 0.0, 5),
        tolerance=(-0.6, -0.4),
        conditions=(Condition("(2) d large", False, 0.025),),
        note="A note.",
    )
    study = Study("s", "Title", "Summary", "@article{x}", {"fig1": "A figure"}, {"law": "x"}, "none")
    html = page(
        [(study, [Chapter("fig1", "A figure", "A reading.", "lemmata run s/fig1", picture, [verdict])])]
    )
    assert "1 fails" in html
    assert "x &lt; y &amp; so on" in html
    assert "-0.1 [-0.2, 0]" in html
    assert "by a factor 40" in html
    assert not re.search(r"(src|href)=\"(?!#|data:)", html)
