"""How many trainings an adaptive run needs for the interval that the full grid gives.

python -m benchmarks.adaptive --repetitions 100              synthetic phase diagrams with a known boundary
python -m benchmarks.adaptive --figure benign-overfitting/fig1 [--scale quick] [--out DIR]   a figure of the lab
"""

import argparse
import os
from pathlib import Path

import numpy as np
import xarray as xr

from benchmarks.judge import CONSTANT, EXPONENT, SIGNALS, SIZES, phase_diagram
from lemmata.desk import place_order
from lemmata.lab.adaptive import search
from lemmata.lab.pool import Pool
from lemmata.measure.boundary import boundary
from lemmata.progress import silence
from lemmata.results import Question

QUESTION = Question(lambda results: results["success"], "signal", "size")
SEEDS = 5


def one(rng: np.random.Generator, steep: float) -> tuple[int, float, float, bool]:
    """Trainings of an adaptive search that ends with the interval of a full grid of five seeds; both errors; coverage."""
    constant = CONSTANT * np.exp(rng.uniform(-0.4, 0.4))
    full = boundary(phase_diagram(rng, SEEDS, steep, constant), QUESTION.threshold, QUESTION.over).exponent
    runs = phase_diagram(rng, 150, steep, constant)

    def observe(counts: np.ndarray) -> xr.DataArray:
        seeds = np.arange(counts.max())
        return runs[..., : len(seeds)].where(xr.DataArray(seeds < counts[..., None], dims=runs.dims))

    grid = (len(SIZES), len(SIGNALS))
    counts, law = search(
        grid, observe, QUESTION, full.high - full.low, budget=SEEDS * len(SIZES) * len(SIGNALS)
    )
    found = law.exponent
    return (
        int(counts.sum()),
        found.value - EXPONENT,
        full.value - EXPONENT,
        found.low <= EXPONENT <= found.high,
    )


def synthetic(repetitions: int) -> None:
    whole = SEEDS * len(SIZES) * len(SIGNALS)
    print(
        "| transition, in grid steps | trainings | of the full grid | bias (its error) | spread (full grid) | covers |"
    )
    print("|---|---|---|---|---|---|")
    step = np.log(SIGNALS[1] / SIGNALS[0])
    for steep in (3.0, 6.0, 12.0):
        rng = np.random.default_rng(0)
        drawn = [one(rng, steep) for _ in range(repetitions)]
        used, error, full_error, covered = (np.array(column, float) for column in zip(*drawn, strict=True))
        print(
            f"| {4 / steep / step:.1f} | {used.mean():.0f} | {100 * used.mean() / whole:.0f} % | "
            f"{error.mean():+.4f} ({error.std() / repetitions**0.5:.4f}) | {error.std():.3f} ({full_error.std():.3f}) | "
            f"{100 * covered.mean():.0f} % |",
            flush=True,
        )


def figure(name: str, scale: str, out: Path | None) -> None:
    order = place_order(name, scale, out=out)
    question = order.figure.question
    assert question is not None, f"{name} shows no boundary"
    whole = len(order.sweep.cells)
    with Pool(os.cpu_count() or 1) as pool, silence() as told:
        results = order.run(pool, told)
        full = boundary(question.success(results), question.threshold, question.over).exponent
        found = order.refine(full.high - full.low, whole, pool, told)
    print(
        f"full grid: {whole} trainings, exponent {full.value:.3f} [{full.low:.3f}, {full.high:.3f}] {full.note}",
        flush=True,
    )
    law = found.boundary.exponent
    print(
        f"adaptive: {found.trainings} trainings ({100 * found.trainings / whole:.0f} %), "
        f"exponent {law.value:.3f} [{law.low:.3f}, {law.high:.3f}] {law.note}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--figure", help="STUDY/FIGURE to measure on, instead of synthetic diagrams")
    parser.add_argument("--scale", default="quick")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.figure:
        figure(options.figure, options.scale, options.out)
    else:
        synthetic(options.repetitions)


if __name__ == "__main__":
    main()
