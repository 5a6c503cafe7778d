"""An adaptive run finds the boundary of the full grid, without bias, for a fraction of the trainings."""

import numpy as np
import pytest
import xarray as xr

from benchmarks.judge import CONSTANT, EXPONENT, phase_diagram
from lemmata.lab.adaptive import Plan, coarse, refine, search, subset
from lemmata.lab.pool import Pool
from lemmata.lab.run import carry_out
from lemmata.lab.store import Store
from lemmata.measure.boundary import boundary
from lemmata.results import Question, assemble
from lemmata.sweep import Sweep, axis
from tests.toys import Square

QUESTION = Question(lambda results: results["success"], "signal", "size")
SWEEP = Sweep(Square(), (axis("value", (1.0, 2.0, 4.0, 8.0)),), (0,))


def observer(runs: xr.DataArray):
    def observe(counts: np.ndarray) -> xr.DataArray:
        seeds = np.arange(counts.max())
        return runs[..., : len(seeds)].where(xr.DataArray(seeds < counts[..., None], dims=runs.dims))

    return observe


@pytest.mark.slow
def test_the_interval_of_the_full_grid_takes_a_quarter_of_its_trainings_and_is_not_biased():
    """Transition of about 1.5 grid steps; 12 repetitions; the bias is within three of its standard errors."""
    rng = np.random.default_rng(0)
    used, errors, covered = [], [], []
    for _ in range(12):
        full = boundary(phase_diagram(rng, 5, 6.0, CONSTANT), "signal", "size").exponent
        observe = observer(phase_diagram(rng, 100, 6.0, CONSTANT))
        counts, law = search((10, 10), observe, QUESTION, full.high - full.low, budget=500)
        assert law.exponent.high - law.exponent.low <= full.high - full.low
        used.append(counts.sum())
        errors.append(law.exponent.value - EXPONENT)
        covered.append(law.exponent.low <= EXPONENT <= law.exponent.high)
    assert np.mean(used) <= 125
    assert abs(np.mean(errors)) <= 3 * np.std(errors) / 12**0.5
    assert sum(covered) >= 10


def test_the_budget_is_kept_and_runs_go_near_the_boundary():
    runs = phase_diagram(np.random.default_rng(1), 60, 6.0, CONSTANT)
    counts, _ = search((10, 10), observer(runs), QUESTION, width=1e-6, budget=100)
    assert counts.sum() == 100
    share = runs.mean("seed").values
    added = counts - coarse((10, 10))
    assert added[(share > 0.02) & (share < 0.98)].sum() > 0.8 * added.sum()


def test_a_coarse_start_has_the_corners_and_little_else():
    first = coarse((10, 7))
    assert first[0, 0] == first[-1, -1] == first[0, -1] == first[-1, 0] == 1
    assert first.sum() == 16


def test_a_subset_of_a_sweep_has_its_own_seeds_at_each_point():
    chosen = subset(SWEEP, np.array([2, 0, 1, 0]))
    assert [(c.place["value"], c.seed) for c in chosen.cells] == [(1.0, 0), (1.0, 1), (4.0, 0)]


def test_an_interrupted_adaptive_run_resumes_without_repeating_a_cell(tmp_path):
    """Success is deterministic here, so that a second run plans the same rounds and runs no cell twice."""
    grid = Sweep(Square(), (axis("value", np.geomspace(1, 8, 6).tolist()), axis("deadly", (False,))), (0,))
    question = Question(
        lambda r: (r["square"] > 10).where(r["square"].notnull()).astype(float), "value", "row"
    )
    store, ran = Store(tmp_path / "store"), []

    def run(chosen: Sweep) -> xr.Dataset:
        def told(done: int, total: int) -> None:
            ran.append(done)

        with Pool(0) as pool:
            results = assemble(chosen, carry_out(chosen, store, {}, pool, told))
        return results.assign_coords(row=("deadly", [1.0]))

    first = refine(grid, question, run, width=0.1, budget=12, batch=4)
    spent = len(ran)
    second = refine(grid, question, run, width=0.1, budget=12, batch=4)
    assert first.trainings == second.trainings == len(store.entries()) == 12
    assert len(ran) == spent


def test_seeds_of_a_later_draw_are_counted_from_their_first():
    later = SWEEP.with_seeds((300_000,))
    chosen = subset(later, np.array([2, 0, 1, 0]))
    assert [(c.place["value"], c.seed) for c in chosen.cells] == [
        (1.0, 300_000),
        (1.0, 300_001),
        (4.0, 300_000),
    ]


def test_the_interval_is_widened_by_the_doubt_about_the_steepness():
    runs = phase_diagram(np.random.default_rng(1), 60, 6.0, CONSTANT)
    counts, law = search((10, 10), observer(runs), QUESTION, width=1e-6, budget=100)
    seen = observer(runs)(counts)
    plain = boundary(seen, "signal", "size").exponent
    doubt = Plan.of(seen, QUESTION).doubt
    assert doubt > 1.01
    np.testing.assert_allclose(
        law.exponent.high - law.exponent.low, doubt * (plain.high - plain.low), rtol=1e-6
    )


def test_a_width_that_is_not_positive_is_refused():
    with pytest.raises(ValueError, match="must be positive"):
        refine(SWEEP, QUESTION, lambda sweep: xr.Dataset(), width=0.0, budget=10)
