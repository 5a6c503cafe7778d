"""The picture of Figure 6.2, with one prompt and its attention before and after training."""

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from lemmata.draw.attention import over_tokens
from lemmata.draw.curves import BAND, line, one_run, reference, rows
from lemmata.draw.palette import BLACK, BLUE, GREY, ORANGE, RED
from lemmata.draw.style import Drawn, Picture, panel, picture
from lemmata.results import trial_at
from lemmata.studies.in_context_learning import theory
from lemmata.studies.in_context_learning.figures.common import KINDS

SHOWN = 5  # neurons of either sign that figure 6.2 follows


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Lengths and projections (A), attention (B), neurons by angle and size (C, D), and one prompt."""
    one = results.sel(task_shifts=1)
    figure = Picture(figsize=(14.5, 11.5), layout="constrained")
    grid = figure.subplot_mosaic(
        [["A", "B", "B4"], ["C", "D", "S"], ["P", "P", "P"]], height_ratios=[1, 1, 0.62]
    )
    _projections(grid["A"], one)
    _masses(grid["B"], one, "(B) attention on contexts of the query's pattern, U = 1")
    if 4 in results["task_shifts"].values:
        _masses(grid["B4"], results.sel(task_shifts=4), "the same with U = 4")
    else:
        grid["B4"].axis("off")
    run = one_run(one)
    _neurons(figure, grid["C"], run, "feature", "(C) feature part against the mean pattern")
    _neurons(figure, grid["D"], run, "label", "(D) label part against q")
    _components(grid["S"], one)
    _prompt(grid["P"], run)
    return figure, f"U = 1 unless said, S_1 = 1.28. (C), (D) and the prompt: one run. {BAND}"


def _projections(axes, one: xr.Dataset) -> None:
    curves = one["now_ood_norms_curve"].sel(kind="partners")
    for colour, matrix, sign in ((BLUE, "query", "W_Q p"), (ORANGE, "key", "W_K p_i")):
        line(axes, curves.sel(norm=matrix), "step", colour, f"|{sign}|")
        line(
            axes,
            curves.sel(norm=f"{matrix} along its pattern"),
            "step",
            colour,
            f"{sign} along its pattern",
            "--",
        )
    panel(axes, "step", "mean length", "(A) lengths and projections, out of domain")


def _masses(axes, one: xr.Dataset, title: str) -> None:
    line(axes, one["now_mass_curve"], "step", BLACK, "in domain")
    for colour, kind in zip((RED, BLUE, GREY), one["kind"].values, strict=False):
        line(axes, one["now_ood_mass_curve"].sel(kind=kind), "step", colour, KINDS[str(kind)])
    trial = trial_at(one)
    least = theory.trained_mass(trial.test.fractions[0], trial.data.relevant)
    reference(axes, y=least, label="(E.71), constant 1")
    panel(axes, "step", "attention", title, ylim=(0, 1.03))


def _neurons(figure, axes, run: xr.Dataset, part: str, title: str) -> None:
    """Paths of some neurons in the plane of angle and size, coloured by the step."""
    steps = np.asarray(run["step"].values, float)
    angle = np.degrees(np.arccos(np.clip(run[f"{part}_cosine_curve"].values, -1, 1)))
    size = run[f"{part}_size_curve"].values
    sign = np.asarray(run["sign"].values)
    signs = (1, -1) if part == "label" else (1,)
    shade = matplotlib.colormaps["viridis"]
    for marker, s in zip("o^", signs, strict=False):
        chosen = np.flatnonzero(sign == s)[:SHOWN]
        for n in chosen:
            axes.plot(angle[:, n], size[:, n], "-", color=GREY, linewidth=0.5, zorder=1)
            axes.scatter(angle[:, n], size[:, n], c=steps, cmap=shade, s=9, marker=marker, zorder=2)
        axes.plot(
            [],
            [],
            marker,
            color=GREY,
            linestyle="",
            label=f"{len(chosen)} neurons, a_i {'>' if s > 0 else '<'} 0",
        )
    bar = ScalarMappable(Normalize(0, steps.max()), shade)
    figure.colorbar(bar, ax=axes, label="step", fraction=0.04)
    panel(axes, "angle (degrees)", "size", title, xlim=(-5, 185 if part == "label" else 125))


def _components(axes, one: xr.Dataset) -> None:
    """Where W_K sends a unit pattern at the end."""
    rows(axes, one["key_parts"], "direction", BLUE, "W_K", -0.12)
    rows(axes, one["query_parts"], "direction", ORANGE, "W_Q", 0.12)
    own, trial = float(one["key_parts"].sel(direction="own").mean()), trial_at(one)
    reference(axes, x=own / trial.data.relevant, label="1/M_1 of its own", colour=RED)
    reference(axes, x=0.0)
    panel(axes, "mean component of a unit pattern along ...", "", "at the end")


def _prompt(axes, run: xr.Dataset) -> None:
    """One prompt, its contexts as blocks in the colour of their pattern, as wide as the attention that they get."""
    if not bool(run["shown_pattern"].notnull().all()):
        axes.axis("off")  # no run to show
        return
    pattern = np.asarray(run["shown_pattern"].values, int)
    label = ["+" if y > 0 else "−" for y in run["shown_label"].values]
    order = np.lexsort((run["shown_label"].values, pattern != int(run["shown_query"]), pattern))
    weights = np.stack([run["shown_attention_before"].values, run["shown_attention"].values])[:, order]
    names = [f"pattern {j + 1}" + (" (query)" if j == int(run["shown_query"]) else "") for j in range(6)]
    over_tokens(axes, weights, pattern[order].tolist(), ["before", "after"], names, [label[i] for i in order])
    panel(axes, "attention of the query", "", "one prompt: contexts by pattern, with their labels")
