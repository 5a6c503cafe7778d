"""What a verdict means follows its source and its scope; flat is an answer; parts and families are judged as they must."""

from dataclasses import replace

import numpy as np
import pytest

from lemmata.figure import Claim, at_least, at_most, every_run, flat, made, nothing_asked, positive, theorem
from lemmata.measure.compare import CONSTANTS, Condition, Verdict, at_level, of_parts, together
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.judge import judge, with_inner
from lemmata.measure.simple import mean
from lemmata.results import made as made_results
from lemmata.sweep import Sweep, axis
from tests.measure.test_judge import Point

HOLDS = Verdict("c", "", "holds", "", Estimate(0.5, 0.4, 0.6), (0.0, 1.0), cells=4)


@pytest.mark.parametrize(
    ("source", "inside", "words"),
    [
        ("theorem", (4, 4, 4), ("confirmed", "refuted", "open")),
        ("proof", (4, 4, 4), ("confirmed", "refuted", "open")),
        ("theorem", (4, 0, 0), ("extends", "does not extend", "open")),
        ("theorem", (4, 2, 0), ("extends", "does not extend", "open")),
        ("theorem", None, ("extends", "does not extend", "open")),
        ("experiment", None, ("reproduced", "not reproduced", "open")),
        ("ours", (4, 4, 4), ("holds", "fails", "open")),
    ],
)
def test_the_word_follows_source_and_scope(source, inside, words):
    for verdict, word in zip(("holds", "fails", "inconclusive"), words, strict=True):
        assert replace(HOLDS, verdict=verdict, source=source, inside_cells=inside).word == word


def test_refuted_is_said_only_where_the_conditions_hold_with_constants_of_one():
    """Cells that are inside only with a smaller constant are outside."""
    assert CONSTANTS == (0.1, 1.0, 10.0)
    verdict = replace(HOLDS, verdict="fails", source="theorem", inside_cells=(4, 0, 0))
    assert (verdict.scope, verdict.word) == ("outside", "does not extend")
    assert "4 with 0.1, 0 with 1, 0 with 10" in verdict.on_constants
    assert replace(verdict, inside_cells=(4, 4, 4)).on_constants == ""


def test_a_proxy_never_says_not_reproduced():
    verdict = replace(HOLDS, verdict="fails", source="experiment", proxy="fewer samples")
    assert verdict.word == "not seen in changed settings"


def results(variable, seeds=5, sizes=(10.0, 30.0, 100.0, 300.0)):
    sweep = Sweep(Point(), (axis("size", sizes),), tuple(range(seeds)))
    return made_results(sweep, {"x": variable})


def noisy(law, spread=0.05):
    return lambda trial, rng: law(trial.size) * np.exp(spread * rng.standard_normal())


def claim(number, holds, **more) -> Claim:
    return Claim("c", "So.", theorem("1"), number=number, holds=holds, refuted_by=made(), **more)


def test_cells_inside_are_judged_alone_where_only_some_are():
    """A bound that holds below size 50, and is broken beyond it, where the theorem says nothing."""
    small = lambda trial: [Condition("size <= 50", trial.size <= 50, 50 / trial.size)]  # noqa: E731
    bound = claim(lambda r: r.x, every_run(at_most(1.0, because="so")), conditions=small)
    data = results(lambda trial, rng: trial.size / 50)
    verdict = with_inner(judge(bound, data), bound, data)
    assert (verdict.verdict, verdict.scope) == ("fails", "partly")
    assert verdict.inner is not None
    assert verdict.word == "confirmed"
    everywhere = replace(bound, conditions=nothing_asked)
    assert with_inner(judge(everywhere, data), everywhere, data).word == "refuted"


def test_a_statement_about_a_limit_is_not_computable_and_never_open():
    limit = claim(lambda r: mean(r.x), at_most(2.0, because="so"), not_computable="it speaks of a limit.")
    for law in (1.0, 2.0, 3.0):  # inside, on the edge and outside of the tolerance
        judged = judge(limit, results(noisy(lambda n, law=law: law)))
        assert (judged.verdict, judged.word, judged.more_seeds) == (
            "inconclusive",
            "not computable here",
            None,
        )
        assert "No finite run can decide this: it speaks of a limit." in judged.note
        assert judged.measured.value == pytest.approx(law, rel=0.1)
        assert not judged.counts  # it raises no bar for the claims that are judged with it


def test_flat_is_an_answer_and_a_slope_is_another():
    no_change = claim(lambda r: exponent(r.x, "size"), flat(-0.1, 0.1, because="the theory would allow 0.5"))
    assert judge(no_change, results(noisy(lambda n: 1.0))).verdict == "holds"
    assert judge(no_change, results(noisy(lambda n: n**0.3))).verdict == "fails"
    assert judge(no_change, results(noisy(lambda n: 1.0, 2.0))).verdict == "inconclusive"


def test_an_equivalence_is_two_one_sided_tests():
    """Its interval has the level 90 %, so that each side errs in 5 %."""
    no_change = claim(lambda r: exponent(r.x, "size"), flat(-0.1, 0.1, because="so"))
    data = results(noisy(lambda n: 1.0, 0.2))
    whole, narrow = exponent(data.x, "size"), judge(no_change, data).measured
    assert narrow.level == 0.9
    assert narrow == at_level(whole, 0.9)
    assert narrow.high - narrow.low < whole.high - whole.low


def test_a_claim_with_parts_holds_if_all_do_and_fails_if_one_does():
    def parts(*values):
        return {f"part {i}": Estimate(v, v - 0.2, v + 0.2) for i, v in enumerate(values)}

    def judged(*values):
        number = lambda r: parts(*values)  # noqa: E731
        return judge(claim(number, positive(because="a sign")), results(noisy(lambda n: 1.0)))

    assert judged(1.0, 2.0, 0.5).verdict == "holds"
    assert judged(1.0, 0.1, 0.5).verdict == "inconclusive"
    failing = judged(1.0, -1.0, 0.5)
    assert failing.verdict == "fails"
    assert "2 of 3 parts hold; this is 'part 1'" in failing.note
    assert [part.verdict for part in failing.parts] == ["holds", "fails", "holds"]


def test_one_of_many_parts_fails_only_beyond_what_chance_makes_of_many():
    just_below = {"wrong": Estimate(-0.21, -0.41, -0.01)} | {
        str(i): Estimate(1.0, 0.8, 1.2) for i in range(19)
    }
    assert of_parts({"wrong": just_below["wrong"]}, (0.0, np.inf))[0].verdict == "fails"
    assert of_parts(just_below, (0.0, np.inf))[0].verdict == "inconclusive"


def narrow(source, name="n"):
    return Verdict(name, "", "holds", "", Estimate(0.0, -0.97, 0.97), (-1.0, 1.0), source=source)


def test_what_the_paper_claims_and_what_the_lab_adds_are_two_families():
    open_ones = [
        Verdict(str(i), "", "inconclusive", "", Estimate(0.0, -3.0, 3.0), (-1.0, 1.0)) for i in range(20)
    ]
    judged = together([narrow("theorem"), *open_ones])
    assert judged[0].verdict == "holds"  # twenty open claims of ours do not raise its bar
    assert together([replace(narrow("ours")), *open_ones])[0].verdict == "inconclusive"


def test_a_family_is_as_large_as_it_is_registered_whatever_is_judged():
    alone = together([narrow("theorem")], None, {"paper": 20, "ours": 3})
    assert alone[0].verdict == "inconclusive"
    assert alone[0].of_family == (1, 20)
    with_others = [
        Verdict(str(i), "", "inconclusive", "", Estimate(0.0, -3.0, 3.0), (-1.0, 1.0), source="proof")
        for i in range(19)
    ]
    assert together([narrow("theorem"), *with_others], None, {"paper": 20})[0].verdict == "inconclusive"


def test_seeds_that_will_not_decide_are_not_asked_for():
    at_the_end = claim(lambda r: Estimate(1.0001, 0.9, 1.1, 5), at_least(1.0, because="so"))
    judged = judge(at_the_end, results(noisy(lambda n: 1.0)))
    assert judged.verdict == "inconclusive"
    assert judged.more_seeds is None
    assert "Seeds will not decide this" in judged.note


def test_a_bound_with_a_hundred_times_slack_is_vacuous_and_not_refuted():
    bound = claim(lambda r: mean(r.x), at_most(1000.0, because="so"))
    judged = judge(bound, results(noisy(lambda n: 1.0)))
    assert judged.verdict == "holds"
    assert "vacuous here" in judged.looseness
    assert "vacuous" not in judge(bound, results(noisy(lambda n: 500.0))).looseness
