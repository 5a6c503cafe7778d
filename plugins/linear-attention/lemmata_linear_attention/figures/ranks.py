"""Figure 4: heads of rank R learn R eigenvectors at a time, so that only every R-th plateau is long."""

import numpy as np
import xarray as xr

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, Made, at_least, every_run, made, theorem
from lemmata.measure.columns import chosen
from lemmata.results import trial_at
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep, axis

from ..data import Regression
from ..theory import eigenvalues, saddle_conditions
from ..trials import Training
from .common import descent, labels, of_runs, rate, times


def sweep(scale: Scale) -> Sweep:
    template = Training(
        data=Regression(dim=8), heads=9, init=5e-3, descent=descent(scale, 160_000, 40_000, 400)
    )
    ranks = by_scale(scale, (2, 4), (1, 2, 4, 8), (1, 2, 4, 8))
    return Sweep(template, (axis("rank", ranks),), tuple(range(by_scale(scale, 2, 3, 10))))


def waits(results: xr.Dataset) -> xr.DataArray:
    """The time from one learned eigenvector to the next, in units of 1 / lambda^2 of the one that is learned."""
    ends = times(results)
    sorted_ends = xr.apply_ufunc(
        np.sort, ends, input_core_dims=[["eigenvector"]], output_core_dims=[["eigenvector"]]
    )
    before = sorted_ends.shift(eigenvector=1, fill_value=0.0)
    return (sorted_ends - before) * xr.DataArray(eigenvalues(trial_at(results)) ** 2, dims="eigenvector")


def contrast(results: xr.Dataset) -> xr.DataArray:
    """The shortest wait after m eigenvectors with m divisible by R, over the longest one at other m; ranks 2 and 4."""

    def of_rank(rank: int) -> xr.DataArray:
        def number(wait: np.ndarray) -> float:
            whole = np.arange(len(wait)) % rank == 0
            return np.nanmin(wait[whole]) / np.nanmax(wait[~whole])

        return of_runs(number, waits(chosen(results, rank=rank)), core=[["eigenvector"]])

    return xr.concat([of_rank(2), of_rank(4)], "rank", coords="minimal", compat="override")


def learned_after(long: float) -> Made:
    """Eigenvectors that need the same time each, in units of 1 / lambda^2; after a whole number of heads longer by a factor."""

    def ends(trial: Training, eigenvector: np.ndarray) -> np.ndarray:
        whole = eigenvector % trial.rank == 0
        return np.cumsum(np.where(whole, long, 1.0) / eigenvalues(trial) ** 2) / rate(trial)

    return made(time=ends)


fig4 = Figure(
    "fig4",
    "Loss of heads of several ranks",
    setup="D = 8, N = 31, nine heads, a start of 0.005, eigenvalues 8 : 7 : ... : 1, over all prompts.",
    sweep=sweep,
    labels=labels,
    picture=panels(
        Panel(lambda r: r.error_curve.isel(seed=[0]), "step", "step", "loss", arms="rank", names="R = {}", style="-"),
        Panel(
            lambda r: waits(r).assign_coords(eigenvector=range(8)),
            "eigenvector",
            "eigenvectors learned before, m",
            r"wait for the next, in $\tau/\lambda^2$",
            arms="rank",
            names="R = {}",
            log="y",
        ),
        caption="Left: the loss of one run of each rank. Right: how long each plateau lasts.",
    ),
    claims=[
        Claim(
            "rank-plateaus",
            "In every run of rank 2 or 4, each plateau after m eigenvectors with m divisible by R is longer than all others",
            theorem("Section 5"),
            headline=True,
            number=contrast,
            holds=every_run(at_least(1.0, because="only the order is said; a ratio of 1 is a tie")),
            conditions=saddle_conditions,
            refuted_by=learned_after(0.8),
            upheld_by=learned_after(1.3),
        ),
    ],
)  # fmt: skip
