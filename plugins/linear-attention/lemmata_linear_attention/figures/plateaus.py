"""Figure 3a: the loss of heads with separate keys and queries goes from plateau to plateau (19)."""

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, Made, at_least, at_most, every_run, made, theorem
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep

from ..theory import eigenvalues, head_sizes, plateaus, saddle_conditions
from ..trials import Population


def template() -> Population:
    """The trial that `lemmata predict` starts from."""
    return Population()


def sweep(scale: Scale) -> Sweep:
    return Sweep(template(), (), tuple(range(by_scale(scale, 2, 6, 20))))


def labels(trial: Population) -> dict[str, range]:
    return {"eigenvector": range(trial.data.dim), "head": range(trial.heads)}


def height(trial: Population, m: int) -> float:
    return float(plateaus(eigenvalues(trial), trial.data.context)[m])


def end_gap(results: xr.Dataset) -> xr.DataArray:
    """How far the error at the end lies from the last plateau, relative to it."""
    last = over_cells(results, partial(height, m=-1))
    return np.abs(results.error / last - 1)


def gap_of_stops(results: xr.Dataset) -> xr.DataArray:
    """The largest distance from any plateau to the places where the error falls slowest, in units of the trace.

    Between two drops the logarithm of the error falls slowest once, over the logarithm of the step.
    """
    heights = plateaus(eigenvalues(trial_at(results)), trial_at(results).data.context)
    passed = np.diff(np.log(results.step.values + 1.0))

    def of_run(curve: np.ndarray) -> float:
        speed = -np.diff(np.log(curve)) / passed
        slow = (speed[1:-1] < speed[:-2]) & (speed[1:-1] <= speed[2:])
        places = curve[1:-2][slow] if slow.any() else np.array([np.inf])
        return float(np.max(np.min(np.abs(places[:, None] - heights), axis=1)))

    return xr.apply_ufunc(of_run, results.error_curve, input_core_dims=[["step"]], vectorize=True)


def gap_of_sizes(results: xr.Dataset) -> xr.DataArray:
    """The largest relative difference between the D largest heads and those of (20a)."""
    trial = trial_at(results)
    own = np.sort(head_sizes(eigenvalues(trial), trial.data.context))[::-1]
    largest = results["sizes"].isel(head=slice(len(own)))
    return abs(largest / own - 1).max("head")


def shortest_wait(results: xr.Dataset) -> xr.DataArray:
    """The smallest ratio of the steps at which an eigenvector and the next smaller one are learned."""
    dim = trial_at(results).data.dim
    times = xr.concat([results[f"time_{d}"] for d in range(1, dim + 1)], "order")
    known = times.where(times > 0)  # -1 where it is never learned
    return (known / known.shift(order=1)).isel(order=slice(1, None)).min("order", skipna=False)


def one_run(results: xr.Dataset, number: int) -> xr.DataArray:
    return results.error_curve.isel(seed=[number])


def stairs(shift: float) -> Made:
    """An error that goes from plateau to plateau, each of them moved, but for the first and the last."""

    def curve(trial: Population, step: np.ndarray) -> np.ndarray:
        heights = plateaus(eigenvalues(trial), trial.data.context)
        moved = heights + shift * np.array([0, *np.ones(len(heights) - 2), 0])
        drops = np.geomspace(30, 20_000, len(heights) - 1)
        risen = [(step / drop) ** 8 for drop in drops]
        falls = [one / (1 + one) for one in risen]
        return moved[0] - sum((a - b) * f for a, b, f in zip(moved, moved[1:], falls, strict=False))

    return made(error_curve=curve, noise=0.0)


def _constant(value: float) -> Callable[[Population], float]:
    return lambda trial: value


def at_times(*times: int) -> Made:
    """Eigenvectors that are learned at these steps."""
    return made({f"time_{d}": _constant(time) for d, time in enumerate(times, 1)})


def sized(factor: float) -> Made:
    """Heads that are all larger than the theorem says by one factor; the other heads are idle."""

    def sizes(trial: Population, head: np.ndarray) -> np.ndarray:
        own = np.sort(head_sizes(eigenvalues(trial), trial.data.context))[::-1]
        return np.where(head < len(own), factor * own[np.minimum(head, len(own) - 1)], 1e-3)

    return made(sizes=sizes, noise=0.001)


fig3a = Figure(
    "fig3a",
    "Loss of linear attention with separate keys and queries",
    setup="Gradient flow on the loss over all prompts, D = 4, N = 31, five heads of rank one, a start of 0.02.",
    sweep=sweep,
    labels=labels,
    picture=panels(
        Panel(
            {f"run {n + 1}": partial(one_run, number=n) for n in range(2)},
            "step",
            "step",
            "loss",
            at={f"$L(M_{m})$": lambda r, m=m: height(trial_at(r), m) for m in range(5)},
            style="-",
        ),
        caption="The loss of the first two runs; the heights of (19) as lines.",
    ),
    claims=[
        Claim(
            "end-at-minimum",
            "In every run the loss ends at its global minimum, the last height of (19)",
            theorem("(11), (19)"),
            headline=True,
            number=end_gap,
            holds=every_run(at_most(0.01, because="the next height lies half as high again")),
            conditions=saddle_conditions,
            refuted_by=made(error=lambda t: 1.02 * height(t, -1), noise=0.001),
            upheld_by=made(error=lambda t: 1.002 * height(t, -1), noise=0.001),
        ),
        Claim(
            "plateaus-at-19",
            "In every run the loss falls slowest at the heights of (19)",
            theorem("(19)"),
            headline=True,
            number=gap_of_stops,
            holds=every_run(at_most(0.02, because="neighbouring heights lie at least 0.07 apart")),
            conditions=saddle_conditions,
            refuted_by=stairs(0.03),
            upheld_by=stairs(0.005),
        ),
        Claim(
            "head-norms",
            "In every run one head has learned each eigenvector, and its value is a_d^(1/3)",
            theorem("(20a)"),
            number=gap_of_sizes,
            holds=every_run(at_most(0.03, because="neighbouring sizes differ by at least 9 %")),
            conditions=saddle_conditions,
            refuted_by=sized(1.06),
            upheld_by=sized(1.01),
        ),
        Claim(
            "order-of-eigenvectors",
            "In every run the eigenvectors are learned in the order of their eigenvalues, the largest first",
            theorem("Section 4.2"),
            headline=True,
            number=shortest_wait,
            holds=every_run(at_least(1.0, because="the order is that of the times; a ratio of 1 is a tie")),
            conditions=saddle_conditions,
            refuted_by=at_times(100, 300, 200, 2000),
            upheld_by=at_times(100, 200, 400, 2000),
        ),
    ],
)
