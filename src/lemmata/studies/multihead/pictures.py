"""How the figures of this study are drawn."""

from collections.abc import Mapping
from math import log, sqrt
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import BAND, DOTS, law, line, lines, reference, rows, slope
from lemmata.draw.palette import BLACK, BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, RED, colours
from lemmata.draw.style import Drawn, canvas, log_to_zero, panel, picture, shared_key
from lemmata.results import over_cells, settings
from lemmata.studies.multihead.measures import good_start_ratios, path_ratios, start_margin_bound
from lemmata.studies.multihead.theory import bounds
from lemmata.studies.multihead.trials.inequalities import INEQUALITIES

DELTA = r"distance of the target $\Delta$"
HEADS = "H = {:g}"
LOSS = "log10 training loss"
METHODS = {
    "gd": "GD, step $\\sqrt{H}$",
    "gd, a tenth": "GD, step $0.1 \\sqrt{H}$",
    "momentum": "momentum 0.9, step $\\sqrt{H}$",
    "adam": "Adam, step 0.06",
}

# Figures 2 to 5 --------------------------------------------------------------------------------------------------------


RUNS = "Thick: median over seeds, thin: runs."


def _curves(
    axes: Axes, values: xr.DataArray, label: str, log: str = "", runs: bool = False, **limits: Any
) -> None:
    """One curve for every number of heads over training, from step 0 on, with bands or every run; the key is the figure's."""
    lines(axes, values, "step", "heads", HEADS, spread="runs" if runs else "auto")
    log_to_zero(axes, "x", 1)
    panel(axes, "steps", label, log=log, keyed=False, **limits)


def _log10_loss(results: xr.Dataset) -> xr.DataArray:
    return results["log_train_loss_curve"] / log(10)


@picture
def fig2(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    _mixture_row(axes[0], results)
    _curves(axes[1, 0], xr.ufuncs.log10(results["test_loss_curve"]), "log10 test loss")
    _curves(axes[1, 1], results["mean_attention_norm_curve"], "mean norm of $W_h$")
    _curves(axes[1, 2], results["mean_decoder_norm_curve"], "mean norm of $U_h$")
    shared_key(figure, axes)
    return figure, f"Token mixture, GD with step 1 from zero. {BAND}"


@picture
def fig3(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, results.sizes["optimiser"], width=3.6, height=2.9)
    for row, method in zip(axes, results.optimiser.values, strict=True):
        _mixture_row(row, results.sel(optimiser=method))
        row[0].set_title(METHODS[str(method)])
    shared_key(figure, axes)
    return figure, f"Token mixture from zero. {BAND}"


def _mixture_row(row: Any, results: xr.Dataset) -> None:
    limit = float(over_cells(results, lambda t: t.data.signal * sqrt(t.data.tokens / 2)).max())
    _curves(row[0], _log10_loss(results), LOSS)
    reference(row[1], y=limit, label=r"margin of saturated attention $S\sqrt{T/2}$", colour=BLACK, style="--")
    _curves(row[1], results["margin_curve"], "margin / norm of decoders", ylim=(None, 1.15 * limit))
    _curves(row[2], results["relevant_attention_curve"], "attention on relevant tokens", ylim=(0, 1))


PLANTED = {
    "train_loss": "training loss",
    "test_loss": "test loss",
    "attention_alignment": "alignment of $W$ with $W^*$",
    "decoder_alignment": "alignment of $U$ with $U^*$",
    "mean_attention_norm": "mean norm of $W_h$",
    "mean_decoder_norm": "mean norm of $U_h$",
}


@picture
def fig4(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    for axis, (name, label) in zip(axes.T.ravel(), PLANTED.items(), strict=True):
        _curves(axis, results[f"{name}_curve"], label, log="y" if "loss" in name else "", runs=True)
    shared_key(figure, axes)
    return figure, f"Planted attention, GD with step $\\sqrt{{H}}$ from zero. {RUNS} {_stuck(results)}"


@picture
def fig5(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    said = []
    for row, method in zip(axes, results.optimiser.values, strict=True):
        here = results.sel(optimiser=method)
        for axis, name in zip(row, ("train_loss", "test_loss", "attention_alignment"), strict=True):
            _curves(axis, here[f"{name}_curve"], PLANTED[name], log="y" if "loss" in name else "", runs=True)
        row[0].set_title(METHODS[str(method)])
        said.append(f"{method}: {_stuck(here)}")
    shared_key(figure, axes)
    return figure, f"Planted attention from zero. {RUNS} {' '.join(said)}"


def _stuck(results: xr.Dataset) -> str:
    counts = results.stuck.sum("seed")
    return f"Stuck above 0.3: {', '.join(f'{int(counts.sel(heads=h))} (H = {h:g})' for h in results.heads.values)}."


# Theory against runs ---------------------------------------------------------------------------------------------------


@picture
def curvature(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    found = line(axes, results.negative_curvature, "heads", BLUE, "measured", "o-", "geometric")
    slope(axes, found, -0.5)
    law(axes, results.heads, results.bound.mean("seed"), r"bound $\beta_3 / \sqrt{H}$", RED)
    panel(axes, "heads H", "−smallest eigenvalue / loss", log="xy", ticks=found.x)
    return figure, "Random attention, unit-norm decoders. Line: geometric mean, dots: seeds."


@picture
def hessian_path(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    curve = -results["smallest_eigenvalue_curve"] / results["train_loss_curve"]
    lines(axes[0], curve, "step", "heads", HEADS)
    log_to_zero(axes[0], "x", 1)
    panel(axes[0], "steps", "−smallest eigenvalue / loss", log="y")
    _ratios(axes[1], path_ratios(results), "heads")
    panel(axes[1], "heads H", "largest measured / bound on the path", log="xy", ticks=results.heads)
    return figure, f"Runs of figure 2; the whole spectrum at every checkpoint. {BAND}"


def _ratios(axes: Axes, ratios: Mapping[str, xr.DataArray], over: str) -> None:
    """The largest ratio of measured to bound over everything but one axis; at most 1 where the theory is right."""
    for (name, values), colour in zip(ratios.items(), CYCLE, strict=False):
        largest = values.max([d for d in values.dims if d != over])
        line(axes, largest, over, colour, name, "o-")
    reference(axes, y=1, label="bound", colour=BLACK, style="--")


@picture
def looseness(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(width=7.5, height=5)
    ratio = results.ratio.assign_coords(inequality=list(INEQUALITIES))
    for i, (kind, colour) in enumerate(zip(results.kind.values, (BLUE, RED), strict=True)):
        here = ratio.sel(kind=kind)
        rows(axes, here.where(here > 1e-12), "inequality", colour, str(kind), 0.15 * (2 * i - 1), np.max)
    reference(axes, x=1, label="bound", colour=BLACK, style="--")
    panel(axes, "measured / bound (at most 1 where the theory is right)", log="x", xlim=(1e-6, 3))
    return figure, "Random weights and data at several sizes and dimensions; bars: the largest, dots: draws."


@picture
def inside_conditions(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, width=3.9, height=3.9)
    x = results.distance
    loss = over_cells(results, lambda t: bounds.training_bound(t.target, t.step_size, t.steps))
    stability = over_cells(
        results, lambda t: bounds.stability_bound(t.bounds, t.target, t.step_size, t.steps, t.data.samples)
    )
    gap = over_cells(results, lambda t: bounds.gap_bound(t.target, t.step_size, t.steps, t.data.samples))
    line(axes[0], results.mean_loss, "distance", BLUE, "mean loss over the run", "o-")
    line(axes[0], results.target_loss, "distance", GREY, "loss of the target", "s:")
    law(axes[0], x, loss, "bound of Theorem 1", style="x--")
    reference(axes[0], y=log(2), label="log 2")
    for name, colour, style, most, said in (
        ("farthest", BLUE, "o-", 4, "start"),
        ("farthest_from_target", RED, "s-", 3, "target"),
    ):
        line(axes[1], results[name].max("seed") / x, "distance", colour, f"from the {said}", style)
        reference(axes[1], y=most, label=f"its bound {most}", colour=colour, style="--")
    line(axes[2], results.stability, "distance", BLUE, "leave-one-out distance", "o-", "mean")
    law(axes[2], x, stability, "its bound (Lemma 11)", BLUE, "x--")
    line(axes[2], abs(results.gap.mean("seed")), "distance", RED, "|generalisation gap|", "s-")
    law(axes[2], x, gap, "its bound (Theorem 2)", RED, "x--")
    panel(axes[0], DELTA, "loss")
    panel(axes[1], DELTA, r"largest distance / $\Delta$", ylim=(0, None))
    panel(axes[2], DELTA, "distance or gap", log="y")
    heads, horizons = (
        ", ".join(f"{float(v):.3g}" for v in over_cells(results, number))
        for number in (lambda t: t.heads, lambda t: t.steps)
    )
    return figure, f"Heads {heads}; horizons {horizons}. {DOTS}"


@picture
def two_step_sizes(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    curves = _log10_loss(results).mean("seed")
    for heads, colour in zip(results.heads.values, colours(results.heads.values), strict=True):
        many, one = (curves.sel(heads=heads, arm=arm) for arm in results.arm.values)
        axes[0].plot(many.step, many, color=colour, label=f"{HEADS.format(heads)}, many heads")
        axes[0].plot(one.step, one, ".", color=colour, label="one head, two step sizes")
        apart = abs(many - one)
        axes[1].plot(many.step, apart.where(apart > 0), "o", color=colour, label=HEADS.format(heads))
    reference(axes[1], y=1e-10, label="allowed for rounding", colour=BLACK, style="--")
    panel(axes[0], "steps", LOSS)
    limits = {"ylim": (1e-17, 1e-9), "xlim": axes[0].get_xlim()}
    panel(axes[1], "steps", "difference where there is one", log="y", **limits)
    return figure, "Token mixture, GD with step 1 from zero; mean over seeds."


@picture
def first_phase(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    over = "first_samples"
    found = line(axes[0], results.residual, over, BLUE, r"around $\zeta/4$ (true mean)", "o-", "geometric")
    line(axes[0], results.printed_residual, over, RED, r"around $\zeta/2$ (as printed)", "o-", "geometric")
    slope(axes[0], found, -0.5)
    for name, label, colour in (
        ("decoder_part", "decoder's share", GREEN),
        ("attention_part", "attention's share", ORANGE),
        ("margin", r"NTK margin of $\theta^*$", BLUE),
        ("best_margin", "best NTK margin", PURPLE),
    ):
        line(axes[1], results[name], over, colour, label, "o-", "mean")
    panel(axes[0], "samples of the first phase", "norm of the residual p", log="xy", ticks=found.x)
    ylabel = "smallest margin over 100 samples"
    panel(axes[1], "samples of the first phase", ylabel, log="x", ticks=found.x)
    return figure, "Token mixture of the experiments. Lines: mean over seeds (left: geometric), dots: seeds."


@picture
def second_phase(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, width=3.8, height=3.3)
    panels = {
        LOSS: _log10_loss(results),
        "test error": results["test_error_curve"],
        "attention on relevant tokens": results["relevant_attention_curve"],
    }
    for axis, (label, values) in zip(axes, panels.items(), strict=True):
        for start, style, said in (("first step", "-", "after the first step"), ("zero", ":", "from zero")):
            lines(axis, values.sel(start=start), "step", "heads", f"{HEADS}, {said}", style=style)
        log_to_zero(axis, "x", 1)
        panel(axis, "steps", label, keyed=False)
    shared_key(figure, axes)
    return figure, f"Token mixture, GD with step 1. {BAND}"


@picture
def good_start(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, width=3.9, height=4.2)
    ratios = good_start_ratios(results)
    bound = np.maximum(results.mean_loss, results.last_loss) / ratios["training loss (Theorem 1)"]
    for values, style, colour, label in (
        (results.start_loss, "^:", GREY, "start of the second phase"),
        (results.mean_loss, "o-", BLUE, "mean over the run"),
        (results.target_loss, "s:", GREEN, "target"),
    ):
        line(axes[0], values, "distance", colour, label, style)
    law(axes[0], results.distance, bound.mean("seed"), "bound of Theorem 1", style="x--")
    _ratios(axes[1], ratios, "distance")
    first = {"step": 0} if "step" in results.dims else {"log": 0}
    for values, style, colour, label in (
        (results.ntk_margin_curve.isel(first), "o-", BLUE, "NTK margin, after first step"),
        (results.ntk_margin, "x", RED, "NTK margin, at the end"),
        (results.test_error_curve.isel(first), "^:", GREY, "test error, after first step"),
        (results.test_error, "v:", ORANGE, "test error, at the end"),
    ):
        line(axes[2], values, "distance", colour, label, style)
    promised = start_margin_bound(results).mean("seed")
    law(axes[2], results.distance, promised, "bound on the first margin, corrected")
    panel(axes[0], DELTA, "training loss", log="x", ticks=results.distance, ylim=(0, None))
    panel(axes[1], DELTA, "largest measured / bound", log="xy", ticks=results.distance)
    panel(axes[2], DELTA, "margin, error", log="x", ticks=results.distance)
    horizons = ", ".join(f"{float(v):.2g}" for v in results.horizon.max("seed"))
    return figure, f"Longest horizons {horizons}. {DOTS}"


@picture
def realizability(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    worst = results.max("seed")
    line(axes, worst.needed_heads, "loss", BLUE, "needed (worst seed)", "o-")
    law(axes, worst.loss, worst.asked_heads, "asked for, corrected", style="x--")
    law(axes, worst.loss, worst.printed_heads, "asked for, as printed", RED, "x:")
    panel(axes, r"loss of the target $\epsilon$", "heads H", log="xy")
    return figure, "Target of Proposition 7 after the first step; the largest over seeds."


@picture
def margins(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(results.sizes["signal"], width=3.2, height=3.4, squeeze=False)
    measured = {
        "saturated attention": ("s", BLACK, results.saturated_margin, results.attention_margin),
        r"NTK ($\theta^*$)": ("o", BLUE, results.margin, results.linear_bound + results.mean_attention_bound),
        "linear": ("^", GREEN, results.decoder_part, results.linear_bound),
        "best NTK direction": ("x", PURPLE, results.best_margin, None),
    }
    for axis, signal in zip(axes[0], results.signal.values, strict=True):
        for label, (marker, colour, values, bound) in measured.items():
            line(axis, values.sel(signal=signal), "relevant_fraction", colour, label, marker, "mean")
            if bound is not None:
                promised = bound.sel(signal=signal).mean("seed")
                said = "bound, in the colour of what it bounds" if colour == BLACK else None
                law(axis, promised.relevant_fraction, promised.where(promised > 0), said, colour)
        panel(axis, r"relevant fraction $\zeta$", "smallest margin", f"S = {signal:g}", "y", keyed=False)
    shared_key(figure, axes)
    said = "The printed order fails where blue is above black. Bounds without residual."
    return figure, f"{said} Mean over seeds, dots: seeds."


@picture
def saturation(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    x = results.leak
    line(axes[0], results.leaked.max("seed"), "leak", BLUE, "measured, worst query", "o-")
    law(axes[0], x, x, "allowed")
    line(axes[1], results.margin.min("seed"), "leak", BLUE, "measured, worst sample", "o-")
    law(axes[1], x, results.bound.mean("seed"), r"$\gamma_{attn}(\epsilon)$")
    panel(axes[0], r"leak $\epsilon$", "attention on irrelevant tokens", log="xy")
    panel(axes[1], r"leak $\epsilon$", "margin", log="x")
    return figure, "Saturated single head of Proposition 3; the worst over seeds."


@picture
def gap(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    values = results.test_loss - results.train_loss
    line(axes, values.where(results.stuck > 0), "samples", GREY, "runs that stay stuck", "x")
    found = line(
        axes, values.where(results.stuck == 0), "samples", BLUE, "median of the runs that learn", "o-"
    )
    slope(axes, found, -1)
    panel(axes, "training samples n", "test loss − training loss", log="xy", ticks=results.samples)
    stuck = ", ".join(f"{int(v)}" for v in results.stuck.sum("seed"))
    steps = settings(results)["descent.steps"]
    return figure, f"Planted attention, 4 heads, GD {steps} steps. Stuck at each n: {stuck}. {DOTS}"


# Controls, the frontier, decoders --------------------------------------------------------------------------------------


@picture
def linear_control(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    for arm, colour, style in zip(results.arm.values, (BLUE, RED), ("o-", "x:"), strict=True):
        line(axes[0], results.mean_loss.sel(arm=arm), "distance", colour, str(arm), style)
    trained = results.isel(arm=0)
    line(axes[1], trained.attention_change, "distance", BLUE, "largest change of an attention weight", "o-")
    line(axes[1], trained.attention_moved, "distance", GREEN, "movement of a head's $W_h$", "s-")
    reach = over_cells(trained, lambda t: bounds.attention_reach(t.target, t.heads))
    law(axes[1], results.distance, reach, r"the ball allows $4\Delta/\sqrt{H}$", style="x--")
    panel(axes[0], DELTA, "mean loss over the run")
    panel(axes[1], DELTA, "how far attention moves", log="y")
    return figure, f"Inside the theorems' conditions, from zero. {DOTS}"


@picture
def frontier(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    ratio = results.mean_loss / results.theorem_bound
    lines(axes[0], ratio, "learning_rate", "heads", HEADS, style="o-")
    reference(axes[0], y=1, label="bound of Theorem 1", colour=BLACK, style="--")
    lines(axes[1], results.theorem_bound, "learning_rate", "heads", HEADS, style="o-")
    reference(axes[1], y=log(2), label="log 2: above it a bound says nothing")
    panel(axes[0], "step size", "mean loss / best bound", log="xy", ticks=results.learning_rate)
    panel(axes[1], "step size", "best bound over targets", log="xy", ticks=results.learning_rate)
    moved = float(results.attention_change.min())
    return (
        figure,
        f"Planted attention from zero; attention moved by at least {moved:.2g} in every run. {DOTS}",
    )


@picture
def decoders(results: xr.Dataset) -> Drawn:
    kinds = results.decoder.values
    figure, axes = canvas(len(kinds), 2, width=3.4, height=2.8)
    for column, kind in zip(axes.T, kinds, strict=True):
        here = results.sel(decoder=kind)
        _curves(column[0], _log10_loss(here), LOSS)
        _curves(column[1], here["relevant_attention_curve"], "attention on relevant tokens", ylim=(0, 1))
        column[0].set_title(f"{kind} decoder")
    shared_key(figure, axes)
    return figure, f"Token mixture, GD with step 1 (pooling: 0.1) from zero. {BAND}"


@picture
def first_phase_scaling(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    for axis, over, by, name in zip(
        axes, ("signal", "dim"), ("dim", "signal"), ("signal S", "dimension d"), strict=True
    ):
        pattern = "d = {:g}" if by == "dim" else "S = {:g}"
        lines(axis, results.residual, over, by, pattern, style="o-", centre="geometric")
        scale = results.residual_scale.mean([d for d in results.residual_scale.dims if d != over])
        law(axis, scale[over], scale, "eq. 6 with C = 1 (mean)", style="--")
        panel(axis, name, "norm of the residual p", log="xy", ticks=results[over])
    return figure, "Token mixture, 1000 samples of the first phase. Lines: geometric mean, dots: seeds."
