"""What commands print fits a terminal of 60 columns, shows the main results first, and is whole in a pipe."""

from dataclasses import replace
from math import inf

import pytest

from lemmata.measure.compare import ConditionCount, Verdict
from lemmata.measure.estimate import Estimate
from lemmata.report.readme import ORDER
from lemmata.terminal import MEANINGS, print_lines, print_outcome, print_prose, print_verdicts

LAW = Verdict(
    "boundary-exponent",
    "The boundary falls as N^-1/2, as both theorems together say of every network of this kind",
    "fails",
    "-0.5",
    Estimate(-0.3, -0.35, -0.25, 5),
    (-0.6, -0.4),
    conditions=(ConditionCount("d > n", 3, 12, 0.25, False),),
    source="theorem",
    where="Theorem 4.1",
    headline=True,
    inside_cells=(12, 0, 0),
    cells=12,
    of_family=(2, 8),
)
FLOOR = replace(
    LAW, id="floor", verdict="holds", tolerance=(-inf, 0.0), headline=False, source="ours", where=""
)


@pytest.fixture
def printed(monkeypatch, capsys):
    def printed(*verdicts, columns=80, tty=True, by=print_verdicts, **options):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.stdout.isatty", lambda: tty)
        by(verdicts, **options)
        return capsys.readouterr().out.replace("\033[31m", "").replace("\033[32m", "").replace("\033[0m", "")

    return printed


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(printed, columns):
    out = printed(LAW, FLOOR, columns=columns, verbose=True)
    assert max(map(len, out.splitlines())) <= columns


def test_main_results_come_first_and_only_what_does_not_hold_has_its_reason(printed):
    out = printed(FLOOR, LAW)
    assert (
        out.index("Main results") < out.index("boundary-exponent") < out.index("1 holds among 1 other claim")
    )
    assert "does not extend" in out
    assert "The boundary falls" in out
    assert "floor" not in out
    assert "floor" in printed(FLOOR, LAW, everything=True)


def test_it_says_that_nothing_is_inside_and_that_the_family_is_not_whole(printed):
    out = " ".join(printed(LAW).split())
    assert (
        "Nothing here lies inside a theorem's conditions. Never met: " not in out
    )  # d > n is met in 3 cells
    assert "Nothing here lies inside a theorem's conditions." in out
    assert "This family of claims is not complete: 2 of its 8 registered verdicts are here." in out
    assert "depends on the hidden constants: 12 with 0.1, 0 with 1, 0 with 10" in out


def test_conditions_that_all_claims_share_are_listed_once(printed):
    own = ConditionCount("N > d^2", 12, 12, 2.0, True)
    out = printed(LAW, replace(FLOOR, conditions=(*LAW.conditions, own)), verbose=True)
    assert out.count("d > n: met in 3 of 12 cells") == 1
    assert out.index("Conditions of all claims") < out.index("d > n: met") < out.index("Main results")
    assert out.index("floor") < out.index("- N > d^2: met in 12 of 12 cells")
    assert "Conditions of all claims" not in printed(LAW, verbose=True)


def test_smoke_gives_no_verdicts(printed):
    out = printed(replace(LAW, scale="smoke"))
    assert "no verdict (smoke)" in out
    assert "nothing here is a verdict" in out


def test_a_pipe_gets_a_row_a_claim_separated_by_tabs(printed):
    head, *rows = printed(LAW, FLOOR, tty=False).splitlines()
    assert [row.split("\t")[0] for row in rows] == ["boundary-exponent", "floor"]
    assert all(len(row.split("\t")) == len(head.split("\t")) for row in rows)
    assert LAW.statement in rows[0]


def test_every_word_of_a_verdict_has_a_meaning_in_plain_english():
    assert set(MEANINGS) == {*ORDER, "no verdict (smoke)"} - {"not judged yet"}


@pytest.mark.parametrize("columns", [60, 80])
def test_the_outcome_of_a_run_says_what_the_paper_says_and_what_its_trainings_show(printed, columns):
    out = printed(FLOOR, LAW, by=print_outcome, columns=columns)
    assert max(map(len, out.splitlines())) <= columns
    text = " ".join(out.split())
    assert "The paper says, and these trainings show" in text
    assert f"{LAW.statement}. ✗ It fails here, outside the theorem's conditions: -0.3 [-0.35, -0.25]" in text
    assert "Other claims: 1 holds (--all lists them)." in text


def test_the_outcome_of_a_run_without_main_results_is_its_verdicts(printed):
    assert printed(FLOOR, by=print_outcome) == printed(FLOOR)
    assert printed(LAW, by=print_outcome, tty=False) == printed(LAW, tty=False)


def test_prose_is_wrapped_in_a_terminal_and_whole_in_a_pipe(printed):
    text = "word " * 40 + "end\n\nsecond paragraph"
    assert max(map(len, printed(text, by=lambda given: print_prose(*given)).splitlines())) <= 80
    assert printed(text, by=lambda given: print_prose(*given), tty=False) == f"{text}\n"


def test_a_list_has_a_line_a_row_and_is_whole_in_a_pipe(printed):
    rows = [("one", "x" * 200), ("three", "y")]
    out = printed(*rows, by=lambda given: print_lines(("name", "says"), given), columns=60).splitlines()
    assert len(out) == 3
    assert len(out[1]) == 60
    assert out[1].endswith("…")
    assert out[2] == "three  y"
    piped = printed(*rows, by=lambda given: print_lines(("name", "says"), given), tty=False)
    assert piped == f"name\tsays\none\t{'x' * 200}\nthree\ty\n"


def test_sixty_verdicts_take_a_line_each_and_reasons_only_where_they_do_not_hold(printed):
    many = [
        replace(FLOOR, id=f"boundary-exponent-{n}", headline=True, statement="It is so", source="theorem")
        for n in range(60)
    ]
    out = printed(*many, replace(LAW, id="one"), columns=80).splitlines()
    assert sum(line.startswith("✓ boundary-exponent-") for line in out) == 60
    assert len(out) < 80
    assert out[2].startswith("✗ one")
