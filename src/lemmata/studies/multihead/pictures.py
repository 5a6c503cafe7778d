"""How the figures of this study are drawn."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lemmata.draw.style import (
    BLACK,
    BLUE,
    CYCLE,
    GREEN,
    ORANGE,
    PURPLE,
    RED,
    canvas,
    caption,
    plain_log_ticks,
    settings,
)
from lemmata.measure.compare import Verdict
from lemmata.studies.multihead import theory
from lemmata.studies.multihead.probes import INEQUALITIES
from lemmata.studies.multihead.summaries import (
    attention_limit,
    good_start_ratios,
    guaranteed,
    path_ratios,
    start_margin_bound,
)

GREY = "#888888"


def curves(
    axes: Axes, values: xr.DataArray, over: str, middle: str = "mean", label: str = "H = {:g}", **style: Any
) -> None:
    """One curve for every label of `over`: mean or median over the seeds, with the range of the seeds behind it."""
    for i, name in enumerate(values[over].values):
        one = values.sel({over: name})
        centre = one.mean("seed") if middle == "mean" else one.median("seed")
        steps = np.asarray(one.step, float)
        colour = CYCLE[i % len(CYCLE)]
        axes.plot(steps, centre, color=colour, label=label.format(name), **style)
        axes.fill_between(steps, one.min("seed"), one.max("seed"), color=colour, alpha=0.15, linewidth=0)
    axes.set_xscale("symlog", linthresh=1)
    axes.set_xlim(left=0)
    axes.set_xlabel("steps")


def log10_loss(results: xr.Dataset) -> xr.DataArray:
    return results["log_train_loss_curve"] / np.log(10)


def fig2(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    _mixture_row(axes[0], results, attention_limit(results))
    curves(axes[1, 0], xr.ufuncs.log10(results["test_loss_curve"]), "heads")
    axes[1, 0].set_ylabel("log10 test loss")
    curves(axes[1, 1], results["mean_attention_norm_curve"], "heads")
    axes[1, 1].set_ylabel("mean norm of W_h")
    curves(axes[1, 2], results["mean_decoder_norm_curve"], "heads")
    axes[1, 2].set_ylabel("mean norm of U_h")
    axes[0, 0].legend()
    caption(figure, results, "Token mixture, GD with step 1 from zero; mean and range.", verdicts)
    return figure


def fig3(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    titles = {"gd": "GD, step 0.1 sqrt(H)", "adam": "Adam, step 0.06"}
    for row, method in zip(axes, results.optimiser.values, strict=True):
        _mixture_row(row, results.sel(optimiser=method), attention_limit(results))
        row[0].set_title(titles[str(method)], loc="left")
    axes[0, 0].legend()
    caption(figure, results, "Token mixture from zero; mean and range.", verdicts)
    return figure


def _mixture_row(row: Any, results: xr.Dataset, limit: float) -> None:
    curves(row[0], log10_loss(results), "heads")
    row[0].set_ylabel("log10 training loss")
    curves(row[1], results["margin_curve"], "heads")
    row[1].axhline(limit, color=BLACK, linestyle="--", linewidth=1)
    row[1].annotate(
        "saturated attention S sqrt(T/2)", (0.2, limit), (0, 2), textcoords="offset points", fontsize=7
    )
    row[1].set_ylim(top=1.15 * limit)
    row[1].set_ylabel("margin / norm of decoders")
    curves(row[2], results["relevant_attention_curve"], "heads")
    row[2].set_ylabel("attention on relevant tokens")
    row[2].set_ylim(0, 1)


def fig4(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    panels = (
        ("train_loss", "training loss"),
        ("test_loss", "test loss"),
        ("mean_attention_norm", "mean norm of W_h"),
        ("mean_decoder_norm", "mean norm of U_h"),
        ("attention_alignment", "alignment of W with W*"),
        ("decoder_alignment", "alignment of U with U*"),
    )
    for panel, (name, label) in zip(axes.ravel(), panels, strict=True):
        curves(panel, results[f"{name}_curve"], "heads", "median")
        panel.set_ylabel(label)
        if "loss" in name:
            panel.set_yscale("log")
            plain_log_ticks(panel.yaxis)
    axes[0, 0].legend()
    caption(
        figure,
        results,
        f"Planted attention, GD with step sqrt(H) from zero; medians and range. {_stuck(results)}",
        verdicts,
    )
    return figure


def fig5(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(3, 2, width=3.6, height=2.9)
    titles = {"momentum": "momentum 0.9, step sqrt(H)", "adam": "Adam, step 0.06"}
    for row, method in zip(axes, results.optimiser.values, strict=True):
        here = results.sel(optimiser=method)
        for panel, name in zip(row, ("train_loss", "test_loss", "attention_alignment"), strict=True):
            curves(panel, here[f"{name}_curve"], "heads", "median")
            panel.set_ylabel(
                {"train_loss": "training loss", "test_loss": "test loss"}.get(name, "alignment of W with W*")
            )
            if "loss" in name:
                panel.set_yscale("log")
                plain_log_ticks(panel.yaxis)
        row[0].set_title(f"{titles[str(method)]}. {_stuck(here)}", loc="left", fontsize=8)
    axes[0, 0].legend()
    caption(figure, results, "Planted attention from zero; medians and range.", verdicts)
    return figure


def _stuck(results: xr.Dataset) -> str:
    counts = results.stuck.sum("seed")
    said = ", ".join(f"{int(counts.sel(heads=h))} (H = {h:g})" for h in results.heads.values)
    return f"Stuck above 0.3: {said}."


def curvature(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas()
    heads = np.asarray(results.heads, float)
    values = results.negative_curvature
    axes.plot(heads, values.transpose("heads", "seed"), "o", color=SKY_DOT, markersize=3)
    centre = np.exp(np.log(values).mean("seed"))
    axes.plot(heads, centre, "o-", color=BLUE, label="measured (geometric mean)")
    axes.plot(heads, float(centre[0]) * (heads / heads[0]) ** -0.5, "--", color=BLACK, label="slope -1/2")
    axes.plot(heads, results.bound.mean("seed"), color=RED, label="bound beta_3 / sqrt(H)")
    axes.set(xscale="log", yscale="log", xlabel="heads H", ylabel="-smallest eigenvalue / loss")
    _ticks_at(axes, heads)
    axes.legend()
    caption(figure, results, "Random attention, unit-norm decoders.", verdicts)
    return figure


SKY_DOT = "#9ecae8"


def _ticks_at(axes: Axes, values: np.ndarray) -> None:
    """Ticks at the grid's own values, written out."""
    axes.set_xticks(values, [f"{v:g}" for v in values])
    axes.set_xticks([], minor=True)


def hessian_path(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(2)
    heads = np.asarray(results.heads, float)
    curves(axes[0], -results["smallest_eigenvalue_curve"] / results["train_loss_curve"], "heads")
    axes[0].set(yscale="log", ylabel="-smallest eigenvalue / loss")
    axes[0].legend()
    ratios = path_ratios(results)
    for name, colour in zip(ratios, (BLUE, RED, GREEN), strict=True):
        axes[1].plot(heads, ratios[name].max(("seed", "step")), "o-", color=colour, label=name)
    axes[1].axhline(1, color=BLACK, linestyle="--", linewidth=1)
    axes[1].set(xscale="log", yscale="log", xlabel="heads H", ylabel="largest measured / bound on the path")
    _ticks_at(axes[1], heads)
    axes[1].set_ylim(top=20)
    axes[1].legend(loc="upper center", ncols=2, fontsize=8)
    caption(figure, results, "Runs of figure 2; the whole spectrum at every checkpoint.", verdicts)
    return figure


def looseness(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(1, 1, width=7.5, height=4)
    for k, (kind, colour) in enumerate(zip(results.kind.values, (BLUE, RED), strict=True)):
        here = results.ratio.sel(kind=kind)
        rows = np.arange(len(INEQUALITIES)) + 0.15 * (2 * k - 1)
        for row, name in zip(rows, range(len(INEQUALITIES)), strict=True):
            values = here.isel(inequality=name).values.ravel()
            values = values[values > 1e-12]
            axes.plot(values, np.full(len(values), row), ".", color=colour, alpha=0.25, markersize=3)
            if len(values):
                axes.plot(values.max(), row, "|", color=colour, markersize=10, markeredgewidth=2)
        axes.plot([], [], "o", color=colour, label=str(kind))
    axes.axvline(1, color=BLACK, linestyle="--", linewidth=1)
    axes.set_yticks(range(len(INEQUALITIES)), INEQUALITIES)
    axes.set(
        xscale="log",
        xlabel="measured / bound (at most 1 where the theory is right; bar: largest)",
        xlim=(1e-6, 3),
    )
    axes.invert_yaxis()
    axes.legend()
    caption(figure, results, "Random weights and data at several sizes and dimensions.", verdicts)
    return figure


def inside_conditions(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(3, 1, width=3.9)
    trials = guaranteed(results)
    distance = np.asarray(results.distance, float)
    loss_bound = [theory.training_bound(t.target, t.step_size, t.steps) for t in trials]
    axes[0].plot(distance, results.mean_loss.mean("seed"), "o-", label="mean loss over the run")
    axes[0].plot(distance, results.target_loss.mean("seed"), "s:", color=GREY, label="loss of the target")
    axes[0].plot(distance, loss_bound, "x--", color=BLACK, label="bound of Theorem 1")
    axes[0].axhline(np.log(2), color=GREY, linewidth=0.8)
    axes[0].set(ylabel="loss (thin line: log 2)")
    ratio = results.farthest.max("seed") / distance
    axes[1].plot(distance, ratio, "o-", label="from the start (bound 4)")
    axes[1].plot(
        distance, results.farthest_from_target.max("seed") / distance, "s-", label="from the target (bound 3)"
    )
    axes[1].axhline(4, color=BLUE, linestyle="--", linewidth=1)
    axes[1].axhline(3, color=RED, linestyle="--", linewidth=1)
    axes[1].set(ylabel="largest distance / Delta", ylim=(0, None))
    stability = [
        theory.stability_bound(t.bounds, t.target, t.step_size, t.steps, t.data.samples) for t in trials
    ]
    gaps = [theory.gap_bound(t.target, t.step_size, t.steps, t.data.samples) for t in trials]
    axes[2].plot(distance, results.stability.mean("seed"), "o-", color=BLUE, label="leave-one-out distance")
    axes[2].plot(distance, stability, "x--", color=BLUE, label="its bound (Lemma 11)")
    axes[2].plot(distance, np.abs(results.gap.mean("seed")), "s-", color=RED, label="|generalisation gap|")
    axes[2].plot(distance, gaps, "x--", color=RED, label="its bound (Theorem 2)")
    axes[2].set(yscale="log", ylabel="distance or gap", ylim=(None, 1e4 * max(gaps)))
    for panel in axes:
        panel.set_xlabel("distance of the target Delta")
        panel.legend(fontsize=7)
    heads = ", ".join(f"{t.heads:.3g}" for t in trials)
    caption(figure, results, f"Heads {heads}; horizons {', '.join(str(t.steps) for t in trials)}.", verdicts)
    return figure


def two_step_sizes(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(2)
    for i, heads in enumerate(results.heads.values):
        here = log10_loss(results).sel(heads=heads).mean("seed")
        many, one = (here.sel(arm=a) for a in results.arm.values)
        axes[0].plot(here.step, many, color=CYCLE[i], label=f"H = {heads:g}")
        axes[0].plot(here.step, one, ".", color=CYCLE[i], markersize=5)
        apart = abs(many - one)
        axes[1].plot(here.step, apart.where(apart > 0), "o", color=CYCLE[i], markersize=4)
    axes[0].plot([], [], "k-", label="many heads")
    axes[0].plot([], [], "k.", label="one head, two step sizes")
    axes[0].set(xlabel="steps", ylabel="log10 training loss", ylim=(None, 1.6))
    axes[0].legend(ncols=2, loc="upper right", fontsize=8)
    axes[1].axhline(1e-10, color=BLACK, linestyle="--", linewidth=1, label="allowed for rounding")
    axes[1].set(xlabel="steps", ylabel="difference where there is one", yscale="log", ylim=(1e-17, 1e-9))
    axes[1].set_xlim(axes[0].get_xlim())
    axes[1].legend(loc="center right")
    caption(figure, results, "Token mixture, GD with step 1 from zero.", verdicts)
    return figure


def first_phase(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(2)
    samples = np.asarray(results.first_samples, float)
    for name, label, colour in (
        ("residual", "around zeta/4 (true mean)", BLUE),
        ("printed_residual", "around zeta/2 (as printed)", RED),
    ):
        axes[0].plot(samples, results[name].transpose("first_samples", "seed"), ".", color=colour, alpha=0.3)
        axes[0].plot(
            samples, xr.ufuncs.exp(xr.ufuncs.log(results[name]).mean("seed")), "o-", color=colour, label=label
        )
    start = float(xr.ufuncs.exp(xr.ufuncs.log(results.residual).mean("seed"))[0])
    axes[0].plot(samples, start * (samples / samples[0]) ** -0.5, "--", color=BLACK, label="slope -1/2")
    axes[0].set(
        xscale="log", yscale="log", xlabel="samples of the first phase", ylabel="norm of the residual p"
    )
    for name, label, colour in (
        ("decoder_part", "decoder's share", GREEN),
        ("attention_part", "attention's share", ORANGE),
        ("margin", "NTK margin of theta*", BLUE),
        ("best_margin", "best NTK margin", PURPLE),
    ):
        axes[1].plot(samples, results[name].mean("seed"), "o-", color=colour, label=label)
    axes[1].set(
        xscale="log",
        xlabel="samples of the first phase",
        ylabel="smallest margin over 100 samples",
        ylim=(0, 1.5 * float(results.best_margin.mean("seed").max())),
    )
    for panel in axes:
        panel.legend()
    caption(figure, results, "Token mixture of the experiments.", verdicts)
    return figure


def second_phase(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(3, 1, width=3.8, height=3.3)
    panels = (
        (log10_loss(results), "log10 training loss"),
        (results["test_error_curve"], "test error"),
        (results["relevant_attention_curve"], "attention on relevant tokens"),
    )
    for panel, (values, label) in zip(axes, panels, strict=True):
        curves(panel, values.sel(start="first step"), "heads")
        for i, heads in enumerate(results.heads.values):
            centre = values.sel(start="zero", heads=heads).mean("seed")
            panel.plot(np.asarray(centre.step, float), centre, ":", color=CYCLE[i])
        panel.set_ylabel(label)
    axes[0].plot([], [], "k-", label="after the first step")
    axes[0].plot([], [], "k:", label="from zero")
    axes[0].legend(fontsize=8)
    caption(figure, results, "Token mixture, GD with step 1; mean and range.", verdicts)
    return figure


def good_start(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(3, 1, width=3.9, height=3.6)
    distance = np.asarray(results.distance, float)
    ratios = good_start_ratios(results)
    bound = np.maximum(results.mean_loss, results.last_loss) / ratios["training loss (Theorem 1)"]
    for values, style, colour, label in (
        (results.start_loss, "^:", GREY, "start of the second phase"),
        (results.mean_loss, "o-", BLUE, "mean over the run"),
        (results.target_loss, "s:", GREEN, "target"),
        (bound, "x--", BLACK, "bound of Theorem 1"),
    ):
        axes[0].plot(distance, values.mean("seed"), style, color=colour, label=label)
    axes[0].set(ylabel="training loss", ylim=(0, 1.6 * float(bound.mean("seed").max())))
    for i, (name, values) in enumerate(ratios.items()):
        axes[1].plot(
            distance, values.max("seed"), "o-", color=CYCLE[i % len(CYCLE)], label=name, markersize=4
        )
    axes[1].axhline(1, color=BLACK, linestyle="--", linewidth=1)
    axes[1].set(ylabel="largest measured / bound", yscale="log", ylim=(None, 3e3))
    curve = results.ntk_margin_curve
    axes[2].plot(
        distance, curve.isel(step=0).mean("seed"), "o-", color=BLUE, label="NTK margin, after first step"
    )
    axes[2].plot(distance, results.ntk_margin.mean("seed"), "x", color=RED, label="NTK margin, at the end")
    axes[2].plot(
        distance, start_margin_bound(results).mean("seed"), "--", color=BLACK, label="its bound, corrected"
    )
    error = results.test_error_curve
    axes[2].plot(
        distance, error.isel(step=0).mean("seed"), "^:", color=GREY, label="test error, after first step"
    )
    axes[2].plot(
        distance,
        results.test_error.mean("seed"),
        "v:",
        color=ORANGE,
        label="test error, at the end",
    )
    axes[2].set(ylabel="margin, error", ylim=(-0.05, 2.4))
    for panel in axes:
        panel.set_xscale("log")
        _ticks_at(panel, distance)
        panel.set_xlabel("distance of the target Delta")
        panel.legend(fontsize=7, loc="upper right")
    horizons = ", ".join(f"{int(v):.2g}" for v in results.horizon.max("seed"))
    caption(figure, results, f"Longest horizons {horizons}.", verdicts)
    return figure


def realizability(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas()
    loss = np.asarray(results.loss, float)
    for name, style, colour, label in (
        ("needed_heads", "o-", BLUE, "needed (worst seed)"),
        ("asked_heads", "--", BLACK, "asked for, corrected"),
        ("printed_heads", ":", RED, "asked for, as printed"),
    ):
        axes.plot(loss, results[name].max("seed"), style, color=colour, label=label)
    axes.set(xscale="log", yscale="log", xlabel="loss of the target eps", ylabel="heads H")
    axes.set_ylim(top=1e4 * float(results.asked_heads.max()))
    axes.legend()
    caption(figure, results, "Target of Proposition 7 after the first step.", verdicts)
    return figure


def margins(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    columns = results.sizes["signal"]
    figure, axes = canvas(columns, 1, width=3.2, height=3.4, squeeze=False)
    zeta = np.asarray(results.relevant_fraction, float)
    lines = (
        ("saturated attention", "s", BLACK, results.saturated_margin, results.attention_margin),
        ("NTK (theta*)", "o", BLUE, results.margin, results.linear_bound + results.mean_attention_bound),
        ("linear", "^", GREEN, results.decoder_part, results.linear_bound),
    )
    for panel, signal in zip(axes[0], results.signal.values, strict=True):
        for label, marker, colour, measured, bound in lines:
            panel.plot(zeta, measured.sel(signal=signal).mean("seed"), marker, color=colour, label=label)
            promised = bound.sel(signal=signal).mean("seed")
            panel.plot(zeta, promised.where(promised > 0), "--", color=colour)
        panel.plot(
            zeta,
            results.best_margin.sel(signal=signal).mean("seed"),
            "x",
            color=PURPLE,
            label="best NTK direction",
        )
        panel.set(title=f"S = {signal:g}", xlabel="relevant fraction zeta", yscale="log")
        plain_log_ticks(panel.yaxis)
    axes[0, 0].plot([], [], "k--", label="bound")
    axes[0, 0].set_ylabel("smallest margin")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=5, fontsize=8)
    caption(
        figure,
        results,
        "The printed order fails where blue is above black. Bounds without residual.",
        verdicts,
    )
    return figure


def saturation(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas(2)
    leak = np.asarray(results.leak, float)
    axes[0].plot(leak, results.leaked.max("seed"), "o-", label="measured, worst query")
    axes[0].plot(leak, leak, "--", color=BLACK, label="allowed")
    axes[0].set(xscale="log", yscale="log", xlabel="leak eps", ylabel="attention on irrelevant tokens")
    axes[1].plot(leak, results.margin.min("seed"), "o-", label="measured, worst sample")
    axes[1].plot(leak, results.bound.mean("seed"), "--", color=BLACK, label="gamma_attn(eps)")
    axes[1].set(xscale="log", xlabel="leak eps", ylabel="margin")
    for panel in axes:
        panel.legend()
    caption(figure, results, "Saturated single head of Proposition 3.", verdicts)
    return figure


def gap(results: xr.Dataset, verdicts: list[Verdict]) -> Figure:
    figure, axes = canvas()
    samples = np.asarray(results.samples, float)
    values = results.test_loss - results.train_loss
    learned = values.where(results.stuck == 0)
    axes.plot(samples, values.transpose("samples", "seed"), ".", color=SKY_DOT)
    centre = learned.median("seed")
    axes.plot(samples, centre, "o-", color=BLUE, label="median of the runs that learn")
    axes.plot(samples, float(centre[0]) * samples[0] / samples, "--", color=BLACK, label="slope -1")
    axes.set(xscale="log", yscale="log", xlabel="training samples n", ylabel="test loss - training loss")
    _ticks_at(axes, samples)
    axes.legend()
    stuck = ", ".join(f"{int(v)}" for v in results.stuck.sum("seed"))
    steps = settings(results)["descent.steps"]
    caption(
        figure, results, f"Planted attention, 4 heads, GD {steps} steps. Stuck at each n: {stuck}.", verdicts
    )
    return figure
