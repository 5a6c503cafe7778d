"""The pictures: errors over the length of the prompt with the law of the vote, attention along training and as the chain
itself, what times and the tail depend on."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import BAND, MEAN, line, lines, one_run, reference
from lemmata.draw.palette import BLACK, BLUE, GREEN, GREY, ORANGE, RED, colours
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.results import over_cells, settings, trial_at
from lemmata.studies.chain_of_thought import measures, theory
from lemmata.studies.chain_of_thought.trials import MASSES
from lemmata.studies.chain_of_thought.trials.reasoning import LENGTH

LENGTH_LABEL = "examples in the test prompt"
COT = "chain-of-thought error (mean over steps)"
NAMES = {"match_fraction": "α' = {:g}", "trajectory": "τ = {:g}", "primacy": "ρ = {:g}"}


def _arm(results: xr.Dataset) -> str:
    return next(name for name in NAMES if name in results.dims)


def _over_length(results: xr.Dataset, variable: str, what: str) -> Drawn:
    """An error over the length of the prompt, one line an arm, with the law of the vote dashed."""
    arm = _arm(results)
    figure, axes = canvas()
    lines(axes, results[variable], "length", arm, NAMES[arm], style="o-", centre="mean")
    for colour, value in zip(colours(results[arm].values.tolist()), results[arm].values, strict=True):
        trial = trial_at(results, **{arm: value})
        law = [theory.predicted_errors(trial, int(n))[variable] for n in results["length"].values]
        axes.plot(results["length"].values, law, "--", color=colour, linewidth=1)
    axes.plot([], [], "--", color=GREY, label="law of the vote")
    panel(axes, LENGTH_LABEL, what, "", "x")
    return figure, f"Test error after training; dashed: the law of the vote. {MEAN}"


@picture
def cot_over_length(results: xr.Dataset) -> Drawn:
    """Figure 7.3: chain-of-thought error over the length."""
    return _over_length(results, "cot_error", COT)


@picture
def icl_over_length(results: xr.Dataset) -> Drawn:
    """Figure 7.4: in-context error over the length."""
    return _over_length(results, "icl_error", "in-context error")


@picture
def cot_and_icl(results: xr.Dataset) -> Drawn:
    """Figure 7.5: both errors, with Condition 7.3.2 met and missed."""
    figure, panels = canvas(2, sharey=True)
    for axes, case, title in zip(
        panels,
        ("pairs-hold", "pairs-fail"),
        ("Condition 7.3.2 holds", "it fails in half of the rows"),
        strict=True,
    ):
        part = results.sel(errors=case)
        line(axes, part["cot_error"], "length", BLUE, "chain of thought", "o-", centre="mean")
        line(axes, part["icl_error"], "length", RED, "in-context learning", "s-", centre="mean")
        limit = 1 - theory.test_quality(trial_at(part)).right_rows
        reference(axes, y=limit, label="in-context limit", colour=BLACK, style=":")
        panel(axes, LENGTH_LABEL, "test error" if case == "pairs-hold" else "", title, "x")
    return figure, f"Transitions with τ_o = 0.4 and ρ_o = 0.1. {MEAN}"


def _four(axes: Axes, curves: xr.DataArray) -> None:
    """The four masses along training."""
    for colour, name in zip((BLUE, ORANGE, GREY, RED), MASSES, strict=True):
        line(axes, curves.sel(mass=name), "step", colour, name)


@picture
def masses(results: xr.Dataset) -> Drawn:
    """Figure 7.6: attention on the four kinds of columns along training, with the end of stage one and the law of stage two."""
    figure, panels = canvas(3)
    _four(panels[0], results["test_masses_curve"])
    _four(panels[1], results["masses_curve"])
    ended = float(results["stage_one"].where(results["stage_one"] >= 0).median())
    gap = 1 - results["masses_curve"].sel(mass=MASSES[0])
    line(panels[2], gap, "step", BLUE, "1 - p, measured")
    s = theory.setting(trial_at(results))
    late = results["step"].values[results["step"].values > 10]
    panels[2].plot(
        late, theory.tail_gap(late, s), ":", color=BLACK, label=r"mended tail $\sqrt{M/(2\eta t)}$"
    )
    panels[2].plot(
        late, theory.tail_gap_printed(late, s), "--", color=RED, label="printed tail, its 2 read as K"
    )
    if np.isfinite(ended):
        for axes in panels:
            reference(axes, x=ended, label="stage one ends", colour=BLACK, style="--")
    panel(panels[0], "step", "attention", "on test prompts", "x")
    panel(panels[1], "step", "attention", "on training prompts", "x")
    panel(panels[2], "step", "attention off the matching columns", "the tail (training prompts)", "xy")
    return figure, f"Attention of the query column; test prompts of {LENGTH} examples. {BAND}"


@picture
def layers(results: xr.Dataset) -> Drawn:
    """Figures 7.7 and F.1: the four masses along training, in the head of every layer that matches most at the end."""
    masses = results["masses_curve"]
    figure, panels = canvas(len(results["layer"]), sharey=True)
    for axes, layer in zip(np.atleast_1d(panels), results["layer"].values, strict=True):
        part = masses.sel(layer=layer)
        ends = part.isel(step=-1, mass=0).mean([dim for dim in ("seed",) if dim in part.dims]).fillna(0)
        head = int(results["head"].values[int(ends.argmax("head"))])
        _four(axes, part.sel(head=head))
        panel(
            axes, "step", "attention of the query" if layer == 1 else "", f"layer {layer}, head {head}", "x"
        )
    return figure, f"Of each layer the head that pays most attention to matching columns at the end. {BAND}"


@picture
def chain(results: xr.Dataset) -> Drawn:
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


@picture
def noise(results: xr.Dataset) -> Drawn:
    """Errors under noise on the tokens."""
    figure, axes = canvas()
    lines(axes, results["cot_error"], "length", "noise", "noise {:g}", style="o-", centre="mean")
    panel(axes, LENGTH_LABEL, COT, "", "x")
    return figure, f"Noise of this norm on every token of the examples. {MEAN}"


@picture
def classes(results: xr.Dataset) -> Drawn:
    """The attention on matching columns and the loss: drawn prompts beside expected counts."""
    figure, panels = canvas(2)
    lines(panels[0], results["masses_curve"].sel(mass=MASSES[0]), "step", "simulator", "{}")
    lines(panels[1], results["loss_curve"], "step", "simulator", "{}")
    panel(panels[0], "step", "attention on matching columns", "", "x")
    panel(panels[1], "step", "loss", "", "xy")
    return (
        figure,
        f"Prompts as they are drawn (patterns), and one number for every class of entries of W (classes). {BAND}",
    )


@picture
def kinds(results: xr.Dataset) -> Drawn:
    """Errors on test patterns inside and outside the span."""
    figure, axes = canvas()
    lines(axes, results["cot_error"], "length", "kind", "{}", style="o-", centre="mean")
    panel(axes, LENGTH_LABEL, "chain-of-thought error", "", "x")
    return (
        figure,
        f"Test patterns of several kinds; 'mean' has one pattern that is the mean of all training patterns. {MEAN}",
    )


@picture
def stage_one(results: xr.Dataset) -> Drawn:
    """The length of the first stage over alpha, beside the printed order."""
    figure, axes = canvas()
    line(axes, results["stage_one"].where(results["stage_one"] > 0), "match_fraction", BLUE, "measured", "o-")
    order = over_cells(results, lambda t: t.data.match_fraction**-2)
    scale = float(results["stage_one"].median()) / float(order.median())
    axes.plot(order["match_fraction"], scale * order, "--", color=BLACK, label=r"$\alpha^{-2}$, any constant")
    panel(axes, "share of matching examples α", "steps until 5 % of the attention are off the step", "", "xy")
    return figure, "End of the first stage; dots: seeds."


@picture
def iterations(results: xr.Dataset) -> Drawn:
    """Loss along training over eta t / M, where the mended law has one line for all, and the constant of the tail over K."""
    figure, panels = canvas(3)
    steps = results["reasoning_steps"].values
    for colour, m in zip(
        colours(results["patterns"].values.tolist()), results["patterns"].values, strict=True
    ):
        part = results["loss_curve"].sel(patterns=m)
        trial = trial_at(results.sel(patterns=m))
        scaled = part.assign_coords(step=part["step"] * trial.descent.learning_rate / m).isel(
            step=slice(1, None)
        )
        for k in steps:
            line(
                panels[0],
                scaled.sel(reasoning_steps=k),
                "step",
                colour,
                f"M = {m:g}" if k == steps[0] else "",
            )
    across = np.geomspace(3, float(results["step"].max()) * 10 / float(results["patterns"].min()), 20)
    panels[0].plot(across, 1 / (4 * across), ":", color=BLACK, label=r"$M/(4\eta t)$")
    lines(
        panels[1],
        measures.tail_constant(results),
        "reasoning_steps",
        "patterns",
        "M = {:g}",
        style="o-",
        centre="mean",
    )
    panels[1].plot(steps, np.ones(len(steps)), ":", color=BLACK, label="mended: 1")
    panels[1].plot(steps, steps / 3, "--", color=RED, label="printed: K/3")
    for colour, (line_of, name) in zip((BLUE, ORANGE, GREY, RED), enumerate(MASSES), strict=True):
        margin = measures.gradient_margin(results, line_of)
        line(panels[2], margin.isel(patterns=-1), "reasoning_steps", colour, name, "o-", centre="mean")
    reference(panels[2], y=0, label="bound", colour=BLACK)
    panel(panels[0], r"$\eta t/M$", "loss", "all M and K", "xy")
    panel(panels[1], "reasoning steps K", r"$(1-p)^2\, 2\eta t/M$", "constant of the tail", "")
    panel(
        panels[2],
        "reasoning steps K",
        "room inside the bounds of Lemma F.3.5",
        f"M = {int(results['patterns'].values[-1])}",
        "",
    )
    return (
        figure,
        f"Room inside the bounds is in units of alpha/K^3, at the worst step; below 0 a bound is broken. {MEAN}",
    )


@picture
def agreement(results: xr.Dataset) -> Drawn:
    """The loss of both simulators, and their difference."""
    figure, panels = canvas(2)
    lines(panels[0], results["loss_curve"], "step", "simulator", "{}")
    curves = results["loss_curve"]
    gap = abs(curves.sel(simulator="tokens") - curves.sel(simulator="patterns")) + 1e-18
    line(panels[1], gap, "step", BLUE, "difference")
    panel(panels[0], "step", "loss", f"M = {settings(results)['data.patterns']}", "x")
    panel(panels[1], "step", "difference of the losses", "", "xy")
    return figure, f"Weights themselves, and W in the basis of patterns. {BAND}"
