"""Figures 3a to 3c: heads with keys and queries apart learn one eigenvector after the other."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import law, line, reference
from lemmata.draw.palette import CYCLE
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Made, at_least, at_most, every_run, made, theorem
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep

from ..theory import best, eigenvalues, head_sizes, saddle_conditions, size_at
from ..trials import Training
from .common import descent, gap_of_stops, height, labels, of_runs, rate, run, stops, times


def sweep(scale: Scale) -> Sweep:
    return Sweep(
        Training(descent=descent(scale, 80_000, 40_000, 3000)), (), tuple(range(by_scale(scale, 2, 6, 20)))
    )


def spectrum(results: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """The eigenvalues, and the learned map along each (16)."""
    trial = trial_at(results)
    own = eigenvalues(trial)
    return own, best(own, trial.data.context)


def end_gap(results: xr.Dataset) -> xr.DataArray:
    """How far the error at the end lies from the last plateau, relative to it."""
    return abs(results.error / over_cells(results, lambda t: height(t, -1)) - 1)


def gap_of_sizes(results: xr.Dataset) -> xr.DataArray:
    """The largest relative difference between the D largest heads and those of (20a)."""
    own = np.sort(np.cbrt(spectrum(results)[1]))

    def gap(sizes: np.ndarray) -> float:
        return float(np.max(abs(np.sort(sizes)[-len(own) :] / own - 1)))

    return of_runs(gap, results["size"], core=[["head"]])


def shortest_wait(results: xr.Dataset) -> xr.DataArray:
    """The smallest ratio of the times at which an eigenvector and the next smaller one are learned."""
    known = times(results)
    return (
        (known.shift(eigenvector=-1) / known).isel(eigenvector=slice(0, -1)).min("eigenvector", skipna=False)
    )


def followed(results: xr.Dataset, sizes: np.ndarray, end: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """The share of a_d^(1/3) that the head of each eigenvector has, over time, and what (21) gives from its half on.

    `sizes`: |v| by step and head. `end`: |v| |cos| at the end, by head and eigenvector.
    """
    time = results.step.values * rate(trial_at(results))
    found = []
    for d, (own, a) in enumerate(zip(*spectrum(results), strict=True)):
        share = sizes[:, np.argmax(end[:, d])] / np.cbrt(a)
        half = np.argmin(abs(share - 0.5))
        found.append((share, size_at(time, own, a, time[half], share[half])))
    return found


def gap_from_21(results: xr.Dataset) -> xr.DataArray:
    """The largest distance of |v| from (21), over the learned size, when both are equal at half of it."""
    end = results["size"] * results.alignment

    def gap(sizes: np.ndarray, end: np.ndarray) -> float:
        return max(float(np.max(abs(share - law))) for share, law in followed(results, sizes, end))

    return of_runs(gap, results.size_curve, end, core=[["step", "head"], ["head", "eigenvector"]])


def gap_from_22(results: xr.Dataset) -> xr.DataArray:
    """How far the learned parts lie from m parts of 1 and the rest 0, for the best m, where the error stops; the worst stop."""
    step = results.step.values

    def gap(error: np.ndarray, learned: np.ndarray) -> float:
        regressions = np.tri(learned.shape[1] + 1, learned.shape[1], -1)
        at = learned[stops(error, step)]
        return np.max(np.min(np.max(abs(at[:, None] - regressions), axis=2), axis=1), initial=0.0)

    core = [["step"], ["step", "eigenvector"]]
    return of_runs(gap, results.error_curve, results.learned_curve, core=core)


# Made results ----------------------------------------------------------------------------------------------------------


def drop_times(trial: Training) -> np.ndarray:
    return np.geomspace(trial.steps / 1000, trial.steps / 4, trial.data.dim)


def learned(lack: float) -> Made:
    """Eigenvectors that are learned one after the other, up to a lack that is made up for at the end."""

    def parts(trial: Training, step: np.ndarray, eigenvector: np.ndarray) -> np.ndarray:
        risen = (step / drop_times(trial)[eigenvector]) ** 8
        late = (step / trial.steps) ** 16
        return risen / (1 + risen) * (1 - lack * (1 - late))

    def error(trial: Training, step: np.ndarray) -> np.ndarray:
        own = eigenvalues(trial)
        part = parts(trial, step[:, None], np.arange(len(own)))
        return own.sum() - (2 * part - part**2) @ (own**2 * best(own, trial.data.context))

    return made(learned_curve=parts, error_curve=error, noise=0.0)


def stairs(shift: float) -> Made:
    """An error that goes from plateau to plateau, each of them moved, but for the first and the last."""

    def curve(trial: Training, step: np.ndarray) -> np.ndarray:
        dim = trial.data.dim
        moved = np.array([height(trial, m) + shift * (0 < m < dim) for m in range(dim + 1)])
        risen = (step[:, None] / drop_times(trial)) ** 8
        return moved[0] + (risen / (1 + risen)) @ np.diff(moved)

    return made(error_curve=curve, noise=0.0)


def at_times(*shares: float) -> Made:
    """Eigenvectors that are learned at these shares of the steps."""
    return made(time=lambda t, eigenvector: t.steps * np.asarray(shares)[eigenvector])


def sized(factor: float) -> Made:
    """Heads that are all larger than the theorem says by one factor; the other heads are idle."""

    def sizes(trial: Training, head: np.ndarray) -> np.ndarray:
        own = head_sizes(eigenvalues(trial), trial.data.context)
        return np.where(head < len(own), factor * own[np.minimum(head, len(own) - 1)], 1e-3)

    return made(size=sizes, noise=0.001)


def grown(pace: float) -> Made:
    """Heads that grow by (21), faster by a factor."""

    def sizes(trial: Training, step: np.ndarray, head: np.ndarray) -> np.ndarray:
        own = eigenvalues(trial)
        a, half = best(own, trial.data.context), drop_times(trial) * rate(trial)
        columns = [
            np.cbrt(a[d]) * size_at(pace * step.ravel() * rate(trial), own[d], a[d], pace * half[d], 0.5)
            if d < len(own) else 1e-3 + 0.0 * step.ravel()
            for d in head.ravel()
        ]  # fmt: skip
        return np.stack(columns, 1)

    return made(
        size_curve=sizes,
        size=lambda t, head: 1.0 + 0 * head,
        alignment=lambda t, head, eigenvector: 1.0 * (head == eigenvector),
        noise=0.0,
    )


# The picture -----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3)
    trial, first = trial_at(results), results.isel(seed=0)
    for number in range(min(2, results.sizes["seed"])):
        line(axes[0], run(results, "error_curve", number), "step", CYCLE[number], f"run {number + 1}")
    for m in range(trial.data.dim + 1):
        reference(axes[0], y=height(trial, m), label="(19)" if m == 0 else None, style="--")
    panel(axes[0], r"$t/\tau$", "loss", "a", "x")
    time = np.maximum(results.step.values * rate(trial), rate(trial))
    end = (first["size"] * first.alignment).values
    sizes = np.cbrt(spectrum(results)[1])
    for d, (share, theory) in enumerate(
        followed(results, first.size_curve.transpose("step", "head").values, end)
    ):
        axes[1].plot(time, share * sizes[d], color=CYCLE[d % len(CYCLE)], label=f"head of $e_{d + 1}$")
        law(axes[1], time, theory * sizes[d], "(21)" if d == 0 else None)
        own = first.alignment_curve.isel(head=int(np.argmax(end[:, d])), eigenvector=d)
        axes[2].plot(time, own, color=CYCLE[d % len(CYCLE)], label=f"head of $e_{d + 1}$")
    panel(axes[1], r"$t/\tau$", "$|v_i|$ in run 1", "b", "x")
    panel(axes[2], r"$t/\tau$", r"$|\cos(k_i, e_d)|$ in run 1", "c", "x")
    return (
        figure,
        "Heads with keys and queries apart: the loss, the sizes of the heads, and where their keys point.",
    )


fig3 = Figure(
    "fig3",
    "Linear attention with separate keys and queries: loss, sizes of the heads, alignment",
    setup="D = 4, N = 31, eigenvalues 4 : 3 : 2 : 1, five heads of rank one, a start of 0.01, over all prompts.",
    sweep=sweep,
    labels=labels,
    picture=draw,
    claims=[
        Claim(
            "end-at-minimum",
            "In every run the loss ends at its global minimum, the last height of (19)",
            theorem("(11), (19)"),
            number=end_gap,
            holds=every_run(at_most(0.01, because="the next height lies half as high again")),
            conditions=saddle_conditions,
            refuted_by=made(error=lambda t: 1.02 * height(t, -1), noise=0.001),
            upheld_by=made(error=lambda t: 1.002 * height(t, -1), noise=0.001),
        ),
        Claim(
            "plateaus-at-19",
            "In every run the loss stops at the heights of (19), and nowhere else",
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
            refuted_by=at_times(0.01, 0.03, 0.02, 0.2),
            upheld_by=at_times(0.01, 0.02, 0.04, 0.2),
        ),
        Claim(
            "ode-21",
            "In every run the head of each eigenvector grows as (21) says",
            theorem("(21)"),
            headline=True,
            number=gap_from_21,
            holds=every_run(at_most(0.05, because="a rate that is wrong by a quarter is off by more")),
            conditions=saddle_conditions,
            refuted_by=grown(1.3),
            upheld_by=grown(1.1),
        ),
        Claim(
            "early-stopping",
            "In every run, where the loss stops, the learned map is that of a regression on the first m principal components",
            theorem("(22)"),
            headline=True,
            number=gap_from_22,
            holds=every_run(at_most(0.05, because="a twentieth of a component; the next one is a whole one")),
            conditions=saddle_conditions,
            refuted_by=learned(0.08),
            upheld_by=learned(0.02),
        ),
    ],
)
