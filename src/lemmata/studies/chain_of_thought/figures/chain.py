"""The attention of each reasoning step, drawn as the chain, and how it came about."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import one_run
from lemmata.draw.palette import BLUE, GREEN, GREY, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, picture
from lemmata.figure import Figure
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought.figures.common import labels, scaled, template
from lemmata.sweep import Sweep
from lemmata.trial import put_all


def sweep(scale: Scale) -> Sweep:
    """One prompt of eight examples, its attention along training."""
    looks = by_scale(scale, (5, 20, 60, 200), (5, 25, 100, 600), (5, 25, 100, 600))
    trial = put_all(
        scaled(template(), scale),
        {"shown": 8, "test.lengths": (12,), "test.prompts": 100, "descent.log_at": looks},
    )
    return Sweep(trial, (), (0,))


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The prompt as chains of patterns, every step as thick as the attention paid to it by the query's own step; below,
    attention on all columns at several times of training."""
    run = one_run(results)
    asked, chains = (
        np.nan_to_num(np.asarray(run[name].values, float)).astype(int) for name in ("asked", "chains")
    )
    final = np.nan_to_num(run["shown_curve"].isel(step=-1).values)
    times = [int(step) for step in run["step"].values if step > 0]
    figure, panels = canvas(len(times), 2, width=2.5, height=2.6, height_ratios=(2.2, 1), squeeze=False)
    for axes in panels[0]:
        axes.remove()
    _chains(figure.add_subplot(panels[0, 0].get_gridspec()[0, :]), asked, chains, final)
    for axes, step in zip(panels[1], times, strict=True):
        shown = np.nan_to_num(run["shown_curve"].sel(step=step).values)
        _columns(axes, shown, chains, asked, f"step {step}", step == times[0])
    return figure, (
        "Above: examples as chains of patterns (numbers), the query's chain on top; a step is as thick as the attention that "
        "the query's step of the same colour pays to it. Below: the same attention at several times of training, a row for "
        "each query step, columns sorted by step, within a step those that match (left of the tick) first; darker is more."
    )


def _chains(axes: Axes, asked: np.ndarray, chains: np.ndarray, attention: np.ndarray) -> None:
    steps, count = attention.shape[0], len(chains)
    shades = (BLUE, ORANGE, GREEN, RED, GREY)
    for row, states in enumerate([asked, *chains]):
        height = count + 1 - row if row else count + 1.4
        for k in range(steps):
            axes.plot([k, k + 1], [height, height], color="0.9", linewidth=0.8, zorder=1)
            if row:
                for at in range(steps):
                    share = attention[at, row - 1, k]
                    axes.plot([k, k + 1], [height, height], color=shades[at % 5], linewidth=14 * share, zorder=2,
                              solid_capstyle="butt", alpha=0.85)  # fmt: skip
            else:
                axes.plot([k, k + 1], [height, height], color=shades[k % 5], linewidth=3, zorder=2)
        for k, state in enumerate(states):
            right = state == asked[k]
            axes.text(k, height, str(state), ha="center", va="center", fontsize=8, zorder=3,
                      fontweight="bold" if right else "normal", color="black" if right else "0.5",
                      bbox={"boxstyle": "circle,pad=0.22", "fc": "white", "ec": "0.3" if right else "0.8"})  # fmt: skip
    axes.set_yticks(
        [count + 1.4, *range(count, 0, -1)], ["query", *(f"example {n + 1}" for n in range(count))]
    )
    axes.set_xticks(np.arange(steps) + 0.5, [f"step {k + 1}" for k in range(steps)])
    axes.set(xlim=(-0.15, steps + 0.15), ylim=(0.4, count + 2.0))
    axes.tick_params(length=0)
    axes.grid(visible=False)
    for side in axes.spines.values():
        side.set_visible(False)


def _columns(
    axes: Axes, attention: np.ndarray, chains: np.ndarray, asked: np.ndarray, title: str, first: bool
) -> None:
    """Attention of every query step on all context columns, those of a step together, matching ones first."""
    steps = attention.shape[0]
    ordered, ends = [], []
    for k in range(steps):
        matches = chains[:, k] == asked[k]
        order = np.argsort(~matches, kind="stable")
        ordered.append(attention[:, order, k])
        ends.append(k * len(chains) + matches.sum() - 0.5)
    axes.imshow(np.concatenate(ordered, axis=1), aspect="auto", cmap="Blues", vmin=0, vmax=0.4)
    for k in range(1, steps):
        axes.axvline(k * len(chains) - 0.5, color="0.4", linewidth=0.8)
    axes.set_xticks(ends, [""] * steps)
    axes.set_yticks(range(steps), [f"query step {k + 1}" for k in range(steps)] if first else [""] * steps)
    axes.grid(visible=False)
    axes.set_title(title)


chain = Figure(
    "chain", "The attention of each reasoning step, drawn as the chain, and how it came about",
    "One test prompt of eight examples, settings of fig7-3.", sweep, draw, labels=labels,
)  # fmt: skip
