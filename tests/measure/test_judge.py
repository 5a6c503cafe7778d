"""The judge treats each kind of claim as its words demand, on exactly the runs that the claim speaks of."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
import xarray as xr

from lemmata.errors import BadInput
from lemmata.figure import Claim, Holds, theorem
from lemmata.figure import made as made_up
from lemmata.measure.boundary import boundary
from lemmata.measure.columns import below, capped, chosen
from lemmata.measure.compare import Condition, Verdict, together
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.judge import judge as judge_claim
from lemmata.measure.levelset import level_set
from lemmata.measure.simple import fraction, mean
from lemmata.measure.trend import difference
from lemmata.results import made
from lemmata.status import CAPPED, CONVERGED, DIVERGED, FAILED
from lemmata.sweep import Sweep, axis
from lemmata.trial import Computed

SIZES = tuple(float(size) for size in np.geomspace(10, 1000, 9))


class Point(Computed):
    """A place on the grid; nothing is computed here, results are made by hand."""

    size: float = 10.0
    signal: float = 1.0

    def compute(self, key):
        raise NotImplementedError


def claim(kind="law", tolerance=(-0.6, -0.4), uses=(), **more) -> Claim:
    value = {"value": -0.5} if kind in ("law", "rival") else {}
    holds = Holds(kind, *tolerance, because="Stated.", **value | more)
    return Claim(
        "c",
        "A statement.",
        theorem("Theorem 1"),
        number=time_exponent,
        holds=holds,
        refuted_by=made_up(),
        uses=uses,
    )


def judge(claim, data, number, cells=None, conditions=None, inside=False) -> Verdict:
    return judge_claim(replace(claim, number=number, cells=cells, conditions=conditions), data, inside)


def results(seeds: int = 5, sizes=SIZES, **variables) -> xr.Dataset:
    return made(Sweep(Point(), (axis("size", sizes),), tuple(range(seeds))), variables)


def power(law, spread: float = 0.1):
    """A variable that follows a law of the size, with noise."""
    return lambda trial, rng: law(trial.size) * np.exp(spread * rng.standard_normal())


def time_exponent(r: xr.Dataset) -> Estimate:
    return exponent(r.time, "size")


RIGHT = power(lambda n: 3 * n**-0.5)
WRONG = power(lambda n: 3 * n**-1.0)


# Kinds -----------------------------------------------------------------------------------------------------------------


def test_a_law_is_judged_by_its_interval_and_says_whether_the_prediction_lies_in_it():
    right = judge(claim(), results(time=RIGHT), time_exponent)
    assert (right.verdict, right.excluded, right.kind) == ("holds", (), "law")
    assert judge(claim(), results(time=WRONG), time_exponent).sentence == "fails, -0.5 excluded"
    near = judge(claim(), results(time=power(lambda n: n**-0.45, 0.02)), time_exponent)
    assert near.sentence == "holds, -0.5 excluded"
    assert (
        judge(claim(), results(time=power(lambda n: n**-0.5, 3.0)), time_exponent).verdict == "inconclusive"
    )


def test_a_bound_is_one_sided_and_its_looseness_is_said():
    def measure(r):
        return mean(r.ratio)

    said = claim("bound", (-inf, 1.0))
    loose = judge(said, results(ratio=power(lambda n: 0.25)), measure)
    assert loose.verdict == "holds"
    assert loose.looseness == f"a factor {1 / loose.measured.value:.3g} below the bound"
    broken = judge(said, results(ratio=power(lambda n: 2.0)), measure)
    assert (broken.verdict, broken.looseness) == ("fails", "")
    slope = judge(claim("bound", (-inf, -0.9)), results(time=WRONG), time_exponent)
    assert slope.looseness == f"{abs(slope.measured.value + 0.9):.3g} below the bound"
    with pytest.raises(BadInput, match="one end"):
        claim("bound", (0.0, 1.0))


def test_one_run_refutes_a_statement_about_every_run_whatever_the_mean():
    def worst_of(bad):
        variables = {"ratio": lambda trial, rng: 0.5 + 0.1 * rng.random() + bad * (trial.size == SIZES[3])}
        return judge(claim("for-all", (-inf, 1.0)), results(1, **variables), lambda r: r.ratio)

    right, wrong = worst_of(0.0), worst_of(0.6)
    assert right.verdict == "holds"
    assert right.violations is not None
    assert right.violations.high == pytest.approx(1 - 0.025 ** (1 / 9))
    assert wrong.verdict == "fails"
    assert wrong.measured.value > 1
    assert "1 of 9 runs violate" in wrong.note


def test_the_worst_step_and_token_of_a_run_stand_for_it():
    grid = {"size": [1.0, 2.0], "seed": [0, 1], "step": [0, 5]}
    curve = np.full((2, 2, 2, 3), 0.5)
    curve[1, 1, 1, 2] = 1.5
    curve[0, 0, 1] = np.nan  # stopped before the last logged step
    data = xr.Dataset(
        {
            "ratio_curve": (("size", "seed", "step", "token"), curve),
            "status": (("size", "seed"), np.ones((2, 2))),
        },
        grid,
    )
    judged = judge(claim("for-all", (-inf, 1.0)), data, lambda r: r.ratio_curve)
    assert judged.verdict == "fails"
    assert judged.violations is not None
    assert (judged.violations.value, judged.violations.count) == (0.25, 4)
    assert judged.measured.value == 1.5


def test_a_diverged_run_refutes_a_statement_about_every_run_and_one_that_was_not_run_does_not():
    def status(number):
        return lambda trial, rng: number if trial.size == SIZES[0] else CONVERGED

    def judged(number, measure=lambda r: r.ratio):
        data = results(2, ratio=lambda trial, rng: 0.5, status=status(number))
        return judge(claim("for-all", (-inf, 1.0)), data, measure)

    diverged = judged(DIVERGED)
    assert diverged.verdict == "fails"
    assert "2 of 18 runs violate" in diverged.note
    assert diverged.left_out == {}
    assert (
        judged(DIVERGED, lambda r: r.ratio.max("size")).verdict == "fails"
    )  # a maximum skips what is missing
    assert judged(DIVERGED, lambda r: r.ratio.isel(size=slice(1, None))).verdict == "holds"
    assert judged(DIVERGED, lambda r: r.ratio.isel(size=3)).verdict == "holds"
    not_run = judged(np.nan)
    assert not_run.verdict == "holds"
    assert "None of 16 runs" in not_run.note
    assert judged(FAILED).left_out == {"failed": 2}


def test_what_is_said_to_happen_in_every_run_and_never_does_in_one_is_refuted():
    data = results(2, time=lambda trial, rng: np.nan if trial.size == SIZES[0] else 3.0)
    judged = judge(claim("for-all", (-inf, 10.0)), data, lambda r: r.time)
    assert judged.verdict == "fails"
    assert "2 of 18" in judged.note


def test_runs_are_matched_with_their_numbers_through_other_names_of_an_axis():
    def measure(r):
        return r.assign_coords(twice=("size", 2 * r["size"].values)).swap_dims(size="twice").ratio

    def stacked(r):
        return r.ratio.stack(run=("size", "seed"))

    first = {
        "status": lambda t, rng: DIVERGED if t.size == SIZES[0] else CONVERGED,
        "ratio": lambda t, rng: 0.5,
    }
    for way in (measure, stacked):
        judged = judge(claim("for-all", (-inf, 1.0)), results(2, **first), way)
        assert "2 of 18 runs violate" in judged.note


def test_a_probability_is_a_fraction_with_its_exact_interval():
    def hits(share):
        return results(40, (1.0,), loss=lambda trial, rng: 0.1 if rng.random() < share else 0.9)

    said = claim("probability", (0.8, inf))
    right = judge(said, hits(1.0), lambda r: below(r.loss, 0.2))
    assert right.verdict == "holds"
    assert right.measured == fraction(np.ones(40))
    assert judge(said, hits(0.3), lambda r: fraction(below(r.loss, 0.2))).verdict == "fails"


def test_flags_of_runs_that_are_left_out_do_not_count_as_failures():
    data = results(
        40, (1.0,), loss=lambda t, rng: 0.1, status=lambda t, rng: CAPPED if rng.random() < 0.2 else 1
    )
    judged = judge(claim("probability", (0.8, inf)), data, lambda r: (r.loss < 0.2).astype(float))
    assert judged.verdict == "holds"
    assert judged.measured.count == 40 - judged.left_out["capped"] < 40


def test_an_order_is_a_direction():
    def measure(r):
        return difference(r.loss.sel(size=SIZES[-1]), r.loss.sel(size=SIZES[0]))

    said = claim("order", (0.0, inf))
    assert judge(said, results(loss=power(lambda n: n)), measure).verdict == "holds"
    assert judge(said, results(loss=power(lambda n: 1 / n)), measure).verdict == "fails"


def test_rivals_are_judged_on_the_same_data_and_must_be_excluded():
    said = claim("rival", (-0.7, -0.3), rivals={"another": -1.0, "a third": -0.42})
    clear = judge(said, results(time=power(lambda n: n**-0.55, 0.05)), time_exponent)
    assert clear.verdict == "holds"
    assert "-1 (another) excluded" in clear.note
    assert "-0.42 (a third) excluded" in clear.note
    close = judge(said, results(time=power(lambda n: n**-0.48, 0.3)), time_exponent)
    assert close.verdict == "inconclusive"
    assert "-0.42 (a third) inside" in close.note
    assert close.more_seeds
    assert judge(said, results(time=WRONG), time_exponent).verdict == "fails"


def test_an_identity_holds_to_rounding_and_is_no_discovery():
    def measure(r):
        return abs(r.one - r.two)

    def judged(far):
        data = results(1, one=lambda t, rng: 1.0, two=lambda t, rng: 1.0 + far)
        return judge(claim("identity", (-inf, 1e-9)), data, measure)

    same, other = judged(1e-12), judged(1e-6)
    assert (same.verdict, other.verdict) == ("holds", "fails")
    open_ = judge(claim(), results(time=power(lambda n: n**-0.5, 3.0)), time_exponent)
    narrow = Verdict("n", "", "holds", "", Estimate(0.0, -0.99, 0.99), (-1.0, 1.0), source="theorem")
    assert together([narrow, open_])[0].verdict == "inconclusive"
    assert [v.verdict for v in together([narrow, same, other])] == ["holds", "holds", "fails"]
    spread = Verdict(
        "s", "", "holds", "", Estimate(0.0, -0.9, 0.9), (-1.0, 1.0), kind="identity", source="proof"
    )
    assert together([spread, open_])[0].verdict == "holds"
    assert together([spread, *[spread] * 20, narrow, open_])[-2].verdict == "inconclusive"


def test_numbers_without_an_interval_are_no_discoveries():
    certain = Verdict("c", "", "holds", "", Estimate.certain(0.5), (-1.0, 1.0))
    narrow = Verdict("n", "", "holds", "", Estimate(0.0, -0.97, 0.97), (-1.0, 1.0))
    open_ = Verdict("o", "", "inconclusive", "", Estimate(0.0, -3.0, 3.0), (-1.0, 1.0))
    judged = together([*[certain] * 20, narrow, open_])
    assert judged[0].verdict == "holds"
    assert judged[20].verdict == "inconclusive"  # twenty certain numbers do not lower the bar for it


def test_a_measure_of_the_wrong_sort_is_a_bug_and_shows():
    with pytest.raises(BadInput, match="one for each"):
        judge(claim("for-all", (-inf, 1.0)), results(time=RIGHT), lambda r: mean(r.time))
    with pytest.raises(BadInput, match="not an estimate"):
        judge(claim(), results(time=RIGHT), lambda r: r.time)


# Which runs ------------------------------------------------------------------------------------------------------------


def test_a_claim_whose_functions_raise_is_open_and_its_traceback_is_in_the_log(caplog):
    raising = (
        (lambda r: mean(r.tmie), None, None, "AttributeError"),
        (lambda r: mean(r.time.sel(size=3.0)), None, None, "KeyError"),
        (time_exponent, lambda r: r["tmie"] > 0, None, "KeyError"),
        (time_exponent, None, lambda trial: 1 / 0, "ZeroDivisionError"),
    )
    for number, cells, conditions, error in raising:
        judged = judge(claim(), results(time=RIGHT), number, cells, conditions)
        assert judged.verdict == "inconclusive"
        assert error in judged.note
        assert error in caplog.text
        caplog.clear()


def test_a_claim_that_asks_for_what_was_not_run_is_open_and_says_so(caplog):
    data = results(time=RIGHT)
    judged = judge(claim(), data, lambda r: mean(chosen(r, size=64.0).time))
    assert (judged.verdict, judged.note) == ("inconclusive", "asks for size = 64.0, which was not run.")
    assert not caplog.text
    assert chosen(data, size=10.000000000001).time.dims == ("seed",)
    assert chosen(data, size=(10.0, 1000.0)).sizes["size"] == 2


def test_what_results_lack_is_said_in_one_sentence():
    def measure(r):
        needs("heads" in r.dims, "the sweep does not vary the heads.")
        return mean(r.time)

    for lacking, reason in (
        (measure, "does not vary the heads"),
        (lambda r: exponent(r.time, "heads"), "'heads'"),
    ):
        judged = judge(claim(), results(time=RIGHT), lacking)
        assert judged.verdict == "inconclusive"
        assert reason in judged.note
        assert judged.more_seeds is None


def test_results_in_which_every_run_diverged_decide_nothing_and_say_so():
    data = results(3, time=RIGHT, status=lambda trial, rng: DIVERGED)
    judged = judge(claim("probability", (0.5, inf)), data, lambda r: fraction(below(r.time, 1e9)))
    assert judged.verdict == "inconclusive"
    assert judged.left_out == {"diverged": 27}
    assert "Runs left out: 27 diverged." in judged.note
    assert judge(claim("for-all", (-inf, inf)), data, lambda r: r.time).verdict == "fails"


def test_runs_count_only_where_the_claim_has_a_use_for_their_status():
    def status(trial, rng):
        return CAPPED if trial.size > 300 else CONVERGED

    data = results(
        time=lambda t, rng: min(3 * t.size**0.5, 45.0) * np.exp(0.1 * rng.standard_normal()), status=status
    )
    law = {"tolerance": (0.4, 0.6), "value": 0.5}
    without = judge(claim(**law), data, lambda r: exponent(r.time, "size", capped(r)))
    assert without.left_out == {"capped": 15}
    assert "censored" not in without.note
    used = judge(claim(uses=("capped",), **law), data, lambda r: exponent(r.time, "size", capped(r)))
    assert used.left_out == {}
    assert "15 of 45 runs are censored" in used.note


def test_only_cells_of_the_region_are_measured_and_looked_at():
    data = results(
        time=lambda t, rng: (t.size**-0.5 if t.size < 200 else 1.0) * np.exp(0.05 * rng.standard_normal())
    )

    def small(r):
        return r["size"] < 200

    judged = judge(
        claim(), data, time_exponent, small, lambda t: [Condition("(1) small", t.size < 100, 100 / t.size)]
    )
    assert judged.verdict == "holds"
    assert judged.seen.startswith("size 10 to 177.8")
    assert judged.cells == 6
    (condition,) = judged.conditions
    assert (condition.met, condition.cells, condition.holds) == (4, 6, False)
    assert condition.worst_margin == pytest.approx(100 / SIZES[5])
    assert "although condition (1) small is violated by a factor 1.78 in 2 of 6 cells" in judged.sentence
    assert judge(claim(), data, time_exponent).verdict != "holds"


def test_a_region_over_seeds_masks_runs():
    data = results(4, ratio=lambda t, rng: 0.5)
    data["ratio"] = data.ratio.where(data.seed > 0, 5.0)
    judged = judge(claim("for-all", (-inf, 1.0)), data, lambda r: r.ratio, lambda r: r.seed > 0)
    assert judged.verdict == "holds"
    assert "27 runs" in judged.note


def test_a_region_without_cells_and_one_with_foreign_dimensions_are_said():
    data = results(time=RIGHT)
    nowhere = judge(claim(), data, time_exponent, lambda r: r["size"] > 1e9)
    assert (nowhere.verdict, nowhere.cells) == ("inconclusive", 0)
    assert "no cell of these results is one that the claim speaks of" in nowhere.note
    with pytest.raises(BadInput, match="also has token"):
        judge(claim(), data, time_exponent, lambda r: xr.DataArray([True], dims="token"))


def test_inside_judges_only_cells_that_meet_all_conditions_and_says_when_there_are_none():
    data = results(
        time=lambda t, rng: (t.size**-0.5 if t.size < 200 else 1.0) * np.exp(0.05 * rng.standard_normal())
    )

    def conditions(limit):
        return lambda t: [Condition("(1)", None, limit / t.size), Condition("(2)", True, 2.0)]

    inside = judge(claim(), data, time_exponent, None, conditions(200.0), inside=True)
    assert (inside.verdict, inside.cells, inside.inside) == ("holds", 6, True)
    assert [(c.met, c.cells, c.holds) for c in inside.conditions] == [(6, 9, None), (9, 9, True)]
    nowhere = judge(claim(), data, time_exponent, None, conditions(1.0), inside=True)
    assert nowhere.verdict == "inconclusive"
    assert "none of the 9 cells satisfies the theorem's conditions; never met: (1)" in nowhere.note


def test_conditions_are_looked_at_once_for_equal_trials_and_never_where_nothing_ran():
    seen = []

    def conditions(trial):
        seen.append(trial.size)
        return [Condition("(1)", True, 2.0)]

    part = Sweep(Point(), (axis("size", SIZES),), (0, 1), keep=lambda place: place["size"] < 100)
    judged = judge(claim(), made(part, {"time": RIGHT}), time_exponent, None, conditions)
    assert seen == list(SIZES[:4])
    assert judged.conditions[0].cells == 4


def test_what_does_not_belong_to_runs_is_left_as_it_is():
    data = results(2, time=RIGHT, status=lambda t, rng: DIVERGED if t.size == SIZES[0] else CONVERGED)
    data = data.assign(floor=("role", [1.0, 2.0]), law=("size", np.ones(9)), good=data.time < 1)
    kept = {}
    judge(claim(), data, lambda r: kept.update(r=r) or mean(r.time))
    assert kept["r"].floor.values.tolist() == [1.0, 2.0]
    assert kept["r"].law.dims == ("size",)
    assert np.isnan(kept["r"].law[0])
    assert kept["r"].status.isnull().sum() == 2
    assert kept["r"].good.dtype == float


def test_the_verdict_knows_reading_draw_and_looks():
    data = results(time=RIGHT).assign_attrs(reading="divide", draw=3, looks=2)
    judged = judge(claim(), data, time_exponent)
    assert (judged.reading, judged.draw, judged.looks, judged.seeds) == ("divide", 3, 2, 5)


# Range honesty ---------------------------------------------------------------------------------------------------------


def crossover(n: float) -> float:
    """An exponent of -0.2 below a size of 100 and of -0.8 above: -1/2 on the whole."""
    return n**-0.2 if n < 100 else 100**0.6 * n**-0.8


def test_a_crossover_is_not_called_a_law():
    judged = judge(claim(), results(time=power(crossover, 0.05)), time_exponent)
    assert judged.measured.value == pytest.approx(-0.5, abs=0.05)
    assert judged.verdict == "inconclusive"
    assert judged.note.startswith("Not a plain power law")
    assert "Not one law over this range: -0.2" in judged.note
    assert judged.seen.startswith("size 10 to 1000, falling: -0.2")
    assert judged.more_seeds is None


def test_a_bend_that_stays_within_the_tolerance_is_said_and_does_no_harm():
    judged = judge(
        claim(tolerance=(-0.9, -0.1)),
        results(time=power(lambda n: n ** (-0.4 - 0.02 * np.log(n)), 0.01)),
        time_exponent,
    )
    assert judged.verdict == "holds"
    assert "falling" in judged.seen


def test_a_law_whose_parts_alone_would_not_decide_says_so():
    unsure = judge(
        claim(tolerance=(-0.6, -0.4)), results(3, time=power(lambda n: n**-0.5, 0.15)), time_exponent
    )
    sure = judge(claim(tolerance=(-0.9, -0.1)), results(time=power(lambda n: n**-0.5, 0.05)), time_exponent)
    assert (unsure.verdict, sure.verdict) == ("holds", "holds")
    assert "Its parts alone leave it open: -0." in unsure.note
    assert "parts" not in sure.note


def test_boundaries_and_level_sets_are_measured_locally_too():
    signals = tuple(float(s) for s in np.geomspace(0.01, 2, 14))
    sweep = Sweep(Point(), (axis("size", SIZES), axis("signal", signals)), tuple(range(8)))

    def chance(law):
        return lambda t: 1 / (1 + np.exp(-8 * (np.log(t.signal) - np.log(2 * law(t.size)))))

    def made_by(law):
        return made(
            sweep,
            {
                "success": lambda t, rng: float(rng.random() < chance(law)(t)),
                "rate": lambda t, rng: chance(law)(t),
            },
        )

    def line(r):
        return boundary(r.success, "signal", "size").exponent

    def level(r):
        return level_set(
            r.rate * np.exp(1e-3 * np.sin(1e3 * r.seed + r["size"])), 0.5, "signal", "size"
        ).exponent

    straight, broken = made_by(lambda n: n**-0.5), made_by(crossover)
    for measure in (line, level):
        right, wrong = (judge(claim(tolerance=(-0.65, -0.35)), data, measure) for data in (straight, broken))
        assert right.verdict == "holds"
        assert right.seen.startswith("size 10 to 1000")
        assert wrong.verdict == "inconclusive"
        assert "Not one law" in wrong.note
        lower, upper = wrong.measured.parts
        assert lower.value == pytest.approx(-0.2, abs=0.15)
        assert upper.value == pytest.approx(-0.8, abs=0.15)


# How they show ---------------------------------------------------------------------------------------------------------


def test_verdicts_show_in_one_line_and_in_a_notebook():
    judged = judge(claim(), results(time=power(crossover, 0.05)), time_exponent)
    assert repr(judged).startswith("c inconclusive: -0.")
    assert repr(judged).endswith("over size 10 to 1000 within [-0.6, -0.4]")
    html = judged._repr_html_()
    assert "A statement." in html
    assert "Not one law" in html
    assert "<b" in Verdict("a<b", "x & y", "holds", "", Estimate.certain(1.0), (0.0, inf))._repr_html_()
    assert "a&lt;b" in Verdict("a<b", "x & y", "holds", "", Estimate.certain(1.0), (0.0, inf))._repr_html_()
    assert "at least 0" in repr(Verdict("a", "", "holds", "", Estimate.certain(1.0), (0.0, inf)))
    assert repr(Estimate(0.5, 0.25, 0.75)) == "0.5 [0.25, 0.75]"
    assert repr(Estimate.absent("no runs.")) == "none (no runs.)"
    assert "no runs." in Estimate.absent("no runs.")._repr_html_()
