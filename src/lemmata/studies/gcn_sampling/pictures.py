"""The pictures: errors over labels and neurons by the norm of A*, datasets side by side, twins over the sampling rate, and the
adjacency with its groups beside its effective and a sampled version."""

import numpy as np
import xarray as xr
from matplotlib.colors import PowerNorm

from lemmata.draw.curves import BAND, DOTS, MEAN, line, lines, one_run, reference, rows, slope
from lemmata.draw.palette import BLACK, BLUE, GREEN, GREY, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.results import trial_at
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.measures import with_noise
from lemmata.studies.gcn_sampling.trials import OnFile

RAW, NORMALISED = "test error", "test error / mean of y²"


def _by_norm(results: xr.Dataset, over: str, what: str) -> Drawn:
    """An error as it is and over the labels' second moment, one line for every norm of A*."""
    figure, panels = canvas(2)
    norms = dict(
        zip(results["high_degree"].values.tolist(), results["largest_row"].values.tolist(), strict=True)
    )
    for axes, variable, name in zip(panels, ("error", "normalised_error"), (RAW, NORMALISED), strict=True):
        label = lambda d: f"|A*| = {norms[d]:.2f} (degree {d})"  # noqa: E731
        lines(axes, results[variable], over, "high_degree", label, style="o-", centre="mean")
        panel(axes, what, name, "", "x", ticks=results[over].values)
    return figure, f"Prediction with A* on the nodes without label. {MEAN}"


@picture
def over_labels(results: xr.Dataset) -> Drawn:
    """Figure 5.1."""
    return _by_norm(results, "labels", "labelled nodes")


@picture
def over_width(results: xr.Dataset) -> Drawn:
    """Figure 5.2."""
    return _by_norm(results, "width", "neurons in each hidden layer")


@picture
def labels_by_width(results: xr.Dataset) -> Drawn:
    """Test error over labelled nodes for several widths."""
    figure, axes = canvas()
    lines(axes, results["error"], "labels", "width", "m = {:g}", style="o-", centre="mean")
    panel(axes, "labelled nodes", RAW, "", "x", ticks=results["labels"].values)
    return figure, f"Prediction with A*. {MEAN}"


@picture
def datasets(results: xr.Dataset) -> Drawn:
    """Figures 5.3 and 5.4: the three datasets, raw and normalised, and the scale of their labels."""
    figure, panels = canvas(3, width=3.6)
    last = results.isel(labels=-1)
    last = last.assign_coords(dataset=[_named(results, number) for number in results["dataset"].values])
    rows(panels[0], last["error"], "dataset", BLUE, bar=np.mean)
    rows(panels[1], last["normalised_error"], "dataset", BLUE, "own matrix", -0.12, bar=np.mean)
    rows(panels[1], last["whole_error"], "dataset", ORANGE, "with A", 0.12, bar=np.mean)
    rows(panels[2], last["label_moment"], "dataset", GREY, bar=np.mean)
    labels = int(results["labels"].values[-1])
    panel(panels[0], RAW, "", f"{labels} labelled nodes", "")
    panel(panels[1], NORMALISED, "", "", "x")
    panel(panels[2], "mean of y²", "", "scale of the labels", "")
    for axes in panels[1:]:
        axes.set_yticklabels([])
    return (
        figure,
        "Bars: mean over seeds, dots: seeds. Datasets differ in the column scaling that made their labels.",
    )


def _named(results: xr.Dataset, number: int) -> str:
    scaling = trial_at(results, dataset=number).graph.target_scaling  # pyright: ignore[reportAttributeAccessIssue]
    return f"{number}: p̂ = ({', '.join(f'{p:g}' for p in scaling)})"


@picture
def twin(results: xr.Dataset) -> Drawn:
    """How far the sampled twin is from that with A*, over N/S - 1; and what it costs."""
    figure, panels = canvas(2)
    noisy = with_noise(results)
    found = line(panels[0], noisy["weight_gap"], "noise", BLUE, "V, over the way it has gone", "o-")
    line(panels[0], noisy["output_gap"], "noise", RED, "outputs, over the labels", "s-")
    slope(panels[0], found, 0.5, colour=BLACK)
    slope(panels[0], found, 1.0, colour=GREY)
    line(panels[1], results["error"], "rate", BLUE, "sampled", "o-", centre="mean")
    line(panels[1], results["twin_error"], "rate", BLACK, "its twin with A*", "s--", centre="mean")
    panel(panels[0], "N/S − 1", "distance of the twins", "", "xy")
    panel(panels[1], "sampling rate S/N", NORMALISED, "", "")
    return (
        figure,
        "Same graph, start, batches and dropout. Lines: median (left) and mean (right) over seeds, dots: seeds.",
    )


@picture
def rates(results: xr.Dataset) -> Drawn:
    """Distance from the twin with A* when half of one group is left out."""
    figure, axes = canvas(height=2.4)
    rows(axes, results["weight_gap"], "undersampled", BLUE)
    panel(
        axes, "distance of V, over the way it has gone", "", "half left out of the nodes of this degree", ""
    )
    return figure, "Bars: median over seeds, dots: seeds."


@picture
def realisable(results: xr.Dataset) -> Drawn:
    """Test error over the rate where the best error is 0."""
    figure, axes = canvas()
    line(axes, results["normalised_error"], "rate", BLUE, "prediction with A*", "o-", centre="mean")
    line(axes, results["whole_error"], "rate", ORANGE, "prediction with A", "s-", centre="mean")
    panel(axes, "sampling rate S/N", NORMALISED, "", "y")
    return figure, f"Labels of the concept class made with A*. {MEAN}"


@picture
def samplers(results: xr.Dataset) -> Drawn:
    """Samplers side by side: error with their own matrix, with A* and with A."""
    figure, axes = canvas(width=5.6, height=4.4)
    for shift, name, colour, label in (
        (-0.2, "normalised_error", BLUE, "own matrix"),
        (0.0, "star_error", GREEN, "with A*"),
        (0.2, "whole_error", ORANGE, "with A"),
    ):
        rows(axes, results[name], "sampler", colour, label, shift, bar=np.mean)
    panel(axes, NORMALISED, "", "labels made with A*", "x")
    return figure, "Bars: mean over seeds, dots: seeds."


@picture
def on_file(results: xr.Dataset) -> Drawn:
    """Classes of a graph from a file that samplers find: with their own matrix, with A* and with A."""
    figure, axes = canvas(width=5.6, height=3.6)
    for shift, name, colour, label in (
        (-0.2, "accuracy", BLUE, "own matrix"),
        (0.0, "star_accuracy", GREEN, "with A*"),
        (0.2, "whole_accuracy", ORANGE, "with A"),
    ):
        rows(axes, results[name], "sampler", colour, label, shift, bar=np.mean)
    trial: OnFile = trial_at(results)  # pyright: ignore[reportAssignmentType]
    panel(
        axes,
        "share of classes found",
        "",
        f"{trial.training.labels} of {trial.training.graph.nodes} nodes labelled",
        "",
    )
    return figure, "Nodes without label. Bars: mean over seeds, dots: seeds."


@picture
def algorithm(results: xr.Dataset) -> Drawn:
    """Algorithm 2 beside the practical setting."""
    figure, axes = canvas(height=2.6)
    rows(axes, results["normalised_error"], "mode", BLUE, "test", -0.1, bar=np.mean)
    rows(
        axes,
        results["train_error"] / results["label_moment"],
        "mode",
        GREY,
        "labelled nodes",
        0.1,
        bar=np.mean,
    )
    panel(axes, "error / mean of y²", "", "", "")
    return figure, "Bars: mean over seeds, dots: seeds."


@picture
def sampled(results: xr.Dataset) -> Drawn:
    """A, A* and a draw of A^s, groups marked; and the deviation of rows over 1 - S/N."""
    figure, grid = canvas(2, 2, width=4.6, height=4.4)
    panels = grid.ravel()
    shown = one_run(results).isel(rate=int(np.argmin(np.abs(results["rate"].values - 0.7))))
    graph = trial_at(results).graph  # pyright: ignore[reportAttributeAccessIssue]
    border, nodes = graph.sizes[0], graph.nodes
    top = float(shown["adjacency"].max())
    names = ("A", "A* = A P*", f"a draw of A^s, S/N = {float(shown['rate']):g}")
    for axes, name, title in zip(panels, ("adjacency", "effective", "sampled"), names, strict=False):
        axes.imshow(shown[name].values, cmap="Greys", norm=PowerNorm(0.5, 0, top), interpolation="nearest")
        axes.axhline(border - 0.5, color=RED, linewidth=0.8)
        axes.axvline(border - 0.5, color=RED, linewidth=0.8)
        middles, degrees = (border / 2, (border + nodes) / 2), [f"degree {d}" for d in graph.degrees]
        axes.set_xticks(middles, degrees)
        axes.set_yticks(middles, degrees, rotation=90, va="center")
        axes.tick_params(length=0)
        axes.set_title(title)
    noisy = with_noise(results)
    line(panels[3], noisy["mean_deviation"], "left_out", BLUE, "mean row", "o")
    order = np.argsort(noisy["left_out"].values)
    exact = noisy["exact_deviation"].mean("seed").values[order]
    panels[3].plot(noisy["left_out"].values[order], exact, "-", color=BLACK, label="exact mean")
    found = line(panels[3], noisy["worst_deviation"], "left_out", RED, "worst row, |A^s − A*|", "s-")
    slope(panels[3], found, 1.0, at=-1, colour=GREY)
    panel(panels[3], "1 − S/N", "deviation of a row", "", "xy")
    return (
        figure,
        "Red lines part the groups; darker is larger (root scale), one scale for all three. Dots: seeds.",
    )


@picture
def near_start(results: xr.Dataset) -> Drawn:
    """What noise turns, what the surrogate misses, what smoothing does."""
    figure, panels = canvas(3, width=3.8)
    line(panels[0], results["overtaken"], "width", BLUE, "overtaken by noise", "o-")
    line(panels[0], results["flips"], "width", RED, "turned by noise", "s-")
    m = results["width"].values.astype(float)
    exact = [theory.overtaken_chance(one**-0.99, int(one)) for one in m]
    panels[0].plot(m, exact, "--", color=BLACK, label="(2/π) arctan, and half")
    panels[0].plot(m, np.array(exact) / 2, "--", color=BLACK)
    line(panels[1], results["residual"], "width", BLUE, "surrogate misses", "o-")
    line(panels[1], results["mean_residual"], "width", GREEN, "mean over signs", "s-")
    found = line(panels[2], results["smoothing"].isel(width=-1), "move", BLUE, f"m = {int(m[-1])}", "o-")
    slope(panels[2], found, 2.0, colour=BLACK)
    panel(panels[0], "neurons m", "share of signs", "", "xy")
    panel(panels[1], "neurons m", "root mean square", "", "xy")
    panel(panels[2], "size of the move", "cost of frozen signs", "", "xy")
    return figure, f"At the random start. {DOTS}"


@picture
def existence(results: xr.Dataset) -> Drawn:
    """The error of the proof's pseudo-network, and how near to a Gaussian the start is, over the width."""
    figure, panels = canvas(3, width=3.8)
    m = results["width"].values.astype(float)
    found = line(panels[0], results["pseudo_error"], "width", BLUE, "pseudo-network", "o-")
    slope(panels[0], found, -0.5, colour=BLACK)
    limit = float(results["endless_error"].mean())
    if limit > 1e-6:
        reference(panels[0], y=limit, label="at infinite width")
    line(panels[1], results["gaussian_distance"], "width", BLUE, "distance from a Gaussian", "o-")
    panels[1].plot(m, [theory.gaussian_bound(int(one)) for one in m], "--", color=BLACK, label="m^(−1/6)")
    line(panels[2], results["disagreeing"], "width", BLUE, "indicators that differ", "o-")
    panels[2].plot(
        m, [2 * theory.gaussian_bound(int(one)) for one in m], "--", color=BLACK, label="2 m^(−1/6)"
    )
    panel(panels[0], "neurons m", "error / mean of |f*|", "", "xy")
    panel(panels[1], "neurons m", "W₂ distance × √m", "", "xy")
    panel(panels[2], "neurons m", "share", "", "xy")
    return figure, f"Dashed: the document's orders, constant 1. {DOTS}"


@picture
def alternative(results: xr.Dataset) -> Drawn:
    """What the best move with random signs and what weight decay take off L', round by round."""
    figure, panels = canvas(2)
    last = results.isel(width=-1).assign_coords(round=np.arange(results.sizes["round"]))
    line(panels[0], last["by_move"], "round", BLUE, "best move, random signs", "o-")
    line(panels[0], last["by_decay"], "round", ORANGE, "weight decay", "s-")
    reference(panels[0], y=1.0, label="Lemma D.2.13 wants one of them above")
    line(panels[1], last["objective"], "round", BLUE, "", "o-")
    panel(panels[0], "round", "taken off L', in parts of ηγ/4", f"m = {int(last['width'])}", "")
    panel(panels[1], "round", "L'", "", "")
    return figure, f"Labels of the concept class; γ = 1/4. {DOTS}"


@picture
def curvature(results: xr.Dataset) -> Drawn:
    """The lowest curvature after each round, what weight decay takes off then, and L' itself, by the length of rounds."""
    figure, panels = canvas(3, width=3.8)
    shown = results.assign_coords(round=np.arange(results.sizes["round"]) + 1)
    for axes, name in zip(panels, ("lowest", "by_decay", "objective"), strict=True):
        lines(axes, shown[name], "round", "inner", "{:g} steps", style="o-")
    reference(panels[0], y=0.0, label="(D.116): none below")
    reference(panels[1], y=1.0, label="(D.117): at least")
    at = shown["round"].values
    panel(panels[0], "round", "lowest eigenvalue of the Hessian", "", "", at)
    panel(panels[1], "round", "weight decay takes off L', / (ηγ/4)", "", "", at)
    panel(panels[2], "round", "L'", "", "y", at)
    return figure, f"Labels of the concept class; γ = 1/4. {DOTS}"


@picture
def agreement(results: xr.Dataset) -> Drawn:
    """Both engines, and their difference."""
    figure, panels = canvas(2)
    curves = results["error_curve"]
    lines(panels[0], curves, "step", "engine", "{}")
    gap = abs(curves.sel(engine="field") - curves.sel(engine="whole")) + 1e-18
    line(panels[1], gap, "step", BLUE, "difference")
    reference(panels[1], y=1e-12, label="1e-12")
    panel(panels[0], "step", RAW, "", "")
    panel(panels[1], "step", "difference of the errors", "", "y")
    return figure, f"In float64. {BAND}"
