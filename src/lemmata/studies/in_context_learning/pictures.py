"""The pictures: a prompt with its attention, neurons by angle and size, errors over prompt length with the law of the vote,
pruning with the spectrum of neurons under it."""

from typing import Any

import matplotlib
import numpy as np
import xarray as xr
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize

from lemmata.draw.attention import over_tokens
from lemmata.draw.curves import BAND, MEAN, law, line, lines, one_run, reference, rows, slope
from lemmata.draw.palette import BLACK, BLUE, GREEN, GREY, ORANGE, RED, SKY, colours
from lemmata.draw.style import Drawn, Picture, canvas, log_to_zero, panel, picture
from lemmata.results import trial_at
from lemmata.studies.in_context_learning import measures, theory

LENGTH = "contexts in the test prompt"
KINDS = {
    "partners": "mixed from patterns that meet",
    "apart": "mixed from patterns that do not",
    "sums": "sums 2, 1, 1",
}
SHOWN = 5  # neurons of either sign that figure 6.2 follows


def _trial(results: xr.Dataset) -> Any:
    return trial_at(results)


@picture
def mechanism(results: xr.Dataset) -> Drawn:
    """Figure 6.2: lengths and projections (A), attention (B), neurons by angle and size (C, D), and one prompt."""
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
    trial = _trial(one)
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
    own, trial = float(one["key_parts"].sel(direction="own").mean()), _trial(one)
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


# Errors ----------------------------------------------------------------------------------------------------------------


@picture
def sums_and_lengths(results: xr.Dataset) -> Drawn:
    """Figure 6.3: error and hinge loss over S_1 (A), error over the prompt length (B), for both models."""
    figure, panels = canvas(3, 2, width=4.4)
    for row, model in zip(panels, results["model"].values, strict=True):
        part = results.sel(model=model)
        for colour, kind in zip((RED, BLUE), part["kind"].values, strict=False):
            line(
                row[0],
                part["sum_error"].sel(kind=kind),
                "sum",
                colour,
                f"error, {KINDS[str(kind)]}",
                "o-",
                "mean",
            )
            line(
                row[0],
                part["sum_hinge"].sel(kind=kind),
                "sum",
                colour,
                f"hinge, {KINDS[str(kind)]}",
                "s:",
                "mean",
            )
        reference(row[0], x=1.0, label="S_1 = 1")
        panel(row[0], "coefficient sum S_1", "out of domain", f"(A) {model}")
        _over_length(row[1], part["error"], f"(B) {model}, in domain", "error")
        _over_length(row[2], part["ood_error"].sel(kind="partners"), f"(B) {model}, out of domain", "")
    return figure, f"Dashed: the law of the vote. {MEAN}"


def _over_length(axes, values: xr.DataArray, title: str, what: str) -> None:
    lines(axes, values, "length", "fraction", "α' = {:g}", style="o-", centre="mean")
    lengths = values["length"].values
    for colour, fraction in zip(
        colours(values["fraction"].values.tolist()), values["fraction"].values, strict=True
    ):
        said = [theory.vote_error(float(fraction), int(n)) for n in lengths]
        law(axes, lengths, said, None, colour)
    panel(axes, LENGTH, what, title, "x", ticks=lengths)


@picture
def methods(results: xr.Dataset) -> Drawn:
    """Figure 6.4: error over the number of contexts, method by method, in and out of domain."""
    figure, panels = canvas(2, 2, sharex=True)
    shades = [BLACK, BLUE, RED, ORANGE, GREEN, SKY]
    kinds = (("error", "in domain"), ("ood_error", "out of domain"))
    for row, (variable, where) in zip(panels, kinds, strict=True):
        for axes, fraction, mark in zip(row, results["fraction"].values, "AB", strict=False):
            part = results[variable].sel(fraction=fraction)
            part = part.isel(kind=0) if "kind" in part.dims else part
            lines(axes, part, "length", "learner", "{}", shades, style="o-", centre="mean", spread="none")
            lengths = results["length"].values
            said = [theory.vote_error(float(fraction), int(n)) for n in lengths]
            law(axes, lengths, said, "law of the vote")
            last = variable == "ood_error"
            title = f"({mark}) α' = {fraction:g}, {where}"
            panel(
                axes, LENGTH if last else "", "error", title, "x", ticks=lengths, keyed=last and mark == "A"
            )
            log_to_zero(axes, "y", 0.01)
    return figure, "Classic learners are fitted to the contexts of every prompt. Lines: mean over seeds."


# Pruning ---------------------------------------------------------------------------------------------------------------


@picture
def pruning(results: xr.Dataset) -> Drawn:
    """Figure 6.5: loss and error over the pruning rate (A), for several alpha' (B), and the sizes of neurons under them."""
    figure, panels = canvas(2, 2, height=3.0)
    shades = (BLUE, GREY, RED)
    for order, colour in zip(results["order"].values, shades, strict=True):
        part = results.isel(fraction=0).sel(order=order)
        line(panels[0, 0], part["pruned_hinge"], "rate", colour, f"hinge, {order}")
        line(panels[0, 0], part["pruned_error"], "rate", colour, f"error, {order}", "--", spread="none")
    share = float(measures.small_share(results).mean())
    for axes in panels[0]:
        reference(axes, x=share, label="share of small neurons", colour=BLACK)
    part = results["pruned_hinge"].sel(order="smallest first")
    lines(panels[0, 1], part, "rate", "fraction", "α' = {:g}")
    panel(panels[0, 0], "pruned share of neurons", "out of domain", "(A) in three orders")
    panel(panels[0, 1], "pruned share of neurons", "hinge loss", "(B) smallest first")
    trial = _trial(results)
    for axes, name, title in zip(
        panels[1],
        ("sizes", "raw_sizes"),
        ("rows of W_O W_V, sorted", "rows of W_O alone, sorted"),
        strict=True,
    ):
        values = results[name].transpose(..., "neuron")
        place = (np.arange(values.sizes["neuron"]) + 0.5) / values.sizes["neuron"]
        sizes = np.asarray(values.values, float).reshape(-1, len(place))
        known = sizes[np.isfinite(sizes).all(axis=1)]
        if len(known):
            height = np.median(known, axis=0)
            axes.bar(place, height, 0.9 / len(place), color=SKY, label="length, median over seeds")
        reference(axes, x=share, colour=BLACK)
        if name == "sizes":
            reference(axes, y=theory.small_size(trial.data.irrelevant), label="1/√M_2 (6.14)", colour=RED)
        panel(axes, "share of neurons", "length", title, xlim=(0, 1))
    return figure, f"Neurons stay at their vote 1/m. {BAND}"


# Complexity ------------------------------------------------------------------------------------------------------------


@picture
def length_needed(results: xr.Dataset) -> Drawn:
    """Figure E.1, left: which training prompts are long enough, over 1/alpha."""
    figure, axes = canvas(width=5.4)
    hinge = results["hinge"].isel(fraction=0, length=-1)
    done = (hinge < measures.REACHED).where(hinge.notnull()).mean("seed")
    x = 1 / results["relevant_fraction"].values
    shown = done.transpose("examples", "relevant_fraction")
    for i, length in enumerate(results["examples"].values):
        axes.scatter(
            x, np.full(len(x), length), c=shown.values[i], cmap="RdYlBu", vmin=0, vmax=1, s=45, edgecolor=GREY
        )
    least = np.asarray(results["examples"].values, float)
    first = [
        least[np.flatnonzero(column >= 0.5)[0]] if (column >= 0.5).any() else np.nan
        for column in shown.values.T
    ]
    axes.plot(x, first, "k-", label="shortest that is learnt in half of the runs")
    law(axes, x, x, "∝ 1/α, any constant", through=first)
    panel(axes, "1/α", "contexts in the training prompt", "", "y")
    axes.set_xticks(x, [f"1/{a:g}" for a in results["relevant_fraction"].values])
    return figure, "Blue: hinge loss below 0.05 on unseen tasks after 300 steps in all runs; red: in none."


def _steps(results: xr.Dataset, over: str, xlabel: str) -> Drawn:
    figure, axes = canvas()
    found = line(axes, measures.steps_needed(results), over, BLUE, "measured", "o-")
    slope(axes, found, -2 / 3, at=None)
    panel(axes, xlabel, "steps to a hinge loss of 0.05", "", "xy", ticks=results[over].values)
    return figure, "On unseen tasks; dots: seeds. The dashed line has the printed slope and any constant."


@picture
def steps_over_alpha(results: xr.Dataset) -> Drawn:
    """Figure E.1, right: steps needed over alpha."""
    return _steps(results, "relevant_fraction", "fraction α of decisive contexts")


@picture
def steps_over_beta(results: xr.Dataset) -> Drawn:
    """Steps needed over the pattern norm."""
    return _steps(results, "pattern_norm", "pattern norm β")


@picture
def steps_over_patterns(results: xr.Dataset) -> Drawn:
    """Steps needed over the number of patterns."""
    figure, axes = canvas()
    numbers = np.asarray(results["patterns"].values, int)
    found = line(axes, measures.steps_needed(results), "patterns", BLUE, "measured", "o-")
    said = [theory.iterations(1.0, int(m), 1.0, 1.0) for m in numbers]
    law(axes, numbers, said, "∝ M_1 √log M_1, any constant", through=found.middle)
    panel(axes, "relevant patterns M_1", "steps to a hinge loss of 0.05", "", "xy", ticks=numbers)
    return figure, "On unseen tasks, with M_2 = 4 M_1 and m = M_1² log M_1; dots: seeds."


# Lemmas ----------------------------------------------------------------------------------------------------------------


@picture
def lemmas(results: xr.Dataset) -> Drawn:
    """What Lemmas E.4.5 to E.4.7 bound, along a run: updates of W_Q and W_K (above), of W_V and W_O (below)."""
    figure, panels = canvas(3, 2, width=4.6, height=3.4)
    trial, shown = _trial(results), results.where(measures.learning(results))
    s = theory.setting(trial)
    for axes, name, sign in zip(panels[0], ("query", "key"), ("W_Q", "W_K"), strict=False):
        moved = shown[f"{name}_update_curve"]
        for colour, direction in zip((BLACK, RED, BLUE, GREY), moved["direction"].values, strict=True):
            what = {
                "own": "its own, smallest",
                "other": "another relevant one",
                "irrelevant": "an irrelevant one",
            }
            said = what.get(str(direction), "a partner")
            line(axes, moved.sel(direction=direction), "step", colour, said)
        panel(axes, "step", "update along ...", f"{sign} (Lemma E.4.5), largest", "y")
    line(panels[0, 2], shown["gamma_curve"], "step", BLUE, "γ_t: attention off the pattern, largest")
    line(panels[0, 2], shown["zeta_curve"], "step", ORANGE, "ζ_t: preactivation of lucky neurons, smallest")
    panel(panels[0, 2], "step", "", "what (E.6) sums over", "y")
    bound = s.norm**2 * (1 - shown["gamma_curve"])
    line(panels[1, 0], shown["value_lucky_curve"], "step", BLUE, "lucky for the prompt, smallest")
    line(panels[1, 0], bound, "step", BLUE, "(E.15)", "--", spread="none")
    line(panels[1, 0], shown["value_rest_curve"], "step", RED, "not lucky for it, largest")
    reference(panels[1, 0], y=theory.batch_noise(s.batch), label="(E.17)", colour=RED, style="--")
    panel(panels[1, 0], "step", "a V_i", "W_V (Lemma E.4.6)")
    line(panels[1, 1], shown["neuron_growth_curve"], "step", BLUE, "gain along (μ; ±q), smallest")
    steps = np.asarray(results["step"].where(measures.learning(results).any("seed"), drop=True).values, float)
    law(panels[1, 1], steps, theory.neuron_growth(s) * steps, "(E.24)", BLUE)
    line(panels[1, 1], shown["neuron_norm_curve"], "step", ORANGE, "length, shortest")
    law(panels[1, 1], steps, theory.neuron_norm(s) * steps, "(E.27)", ORANGE)
    panel(panels[1, 1], "step", "", "W_O of lucky neurons (Lemma E.4.7)")
    line(panels[1, 2], shown["value_irrelevant_curve"], "step", BLUE, "over the smallest along tokens")
    reference(panels[1, 2], y=theory.irrelevant_share(s.irrelevant), label="1/M_2", colour=BLACK)
    panel(panels[1, 2], "step", "largest share of a neuron", "W_V along irrelevant patterns, (E.22)", "y")
    return figure, f"Until the hinge loss on unseen tasks is 0.05; lemmas with constant 1. {BAND}"


@picture
def tasks(results: xr.Dataset) -> Drawn:
    """Figure E.2: error on all tasks over the number of training tasks."""
    figure, panels = canvas(2)
    for axes, variable in zip(panels, ("error", "hinge"), strict=True):
        values = results[variable].isel(fraction=0, length=-1)
        lines(axes, values, "tasks_per_pattern", "patterns", "M_1 = {:g}", style="o-", centre="mean")
        reference(axes, x=1.0, label="|T_tr| = M_1")
        panel(axes, "training tasks over M_1", f"{variable} on all tasks")
    return figure, f"Up to M_1 tasks are drawn from the cyclic set, more contain it. {MEAN}"


@picture
def variants(results: xr.Dataset) -> Drawn:
    """Attention and error of the variants."""
    figure, panels = canvas(2, height=2.8)
    rows(panels[0], results["head_mass"], "variant", BLUE)
    rows(panels[1], results["error"].isel(fraction=0, length=-1), "variant", RED)
    panel(panels[0], "attention on contexts of the query's pattern, every head", xlim=(0, 1.03))
    panel(panels[1], "error on unseen tasks")
    panels[1].set_yticklabels([])
    return figure, "Dots: runs (and heads), bars: medians."


@picture
def agreement(results: xr.Dataset) -> Drawn:
    """The hinge loss of both simulators, and their difference."""
    figure, panels = canvas(2)
    curves = results["now_hinge_curve"]
    lines(panels[0], curves, "step", "simulator", "{}")
    gap = abs(curves.sel(simulator="tokens") - curves.sel(simulator="patterns")) + 1e-18
    line(panels[1], gap, "step", BLUE, "difference")
    panel(panels[0], "step", "hinge loss on unseen tasks")
    panel(panels[1], "step", "difference", "", "y")
    return figure, f"Weights that act on tokens, and on coordinates along patterns. {BAND}"
