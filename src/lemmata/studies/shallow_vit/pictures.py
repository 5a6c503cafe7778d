"""The figures as pictures: they see results and verdicts, nothing else."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lemmata.draw.phase import edges
from lemmata.draw.style import BLACK, BLUE, CYCLE, GREEN, ORANGE, RED, canvas, caption, settings
from lemmata.measure.compare import Verdict
from lemmata.measure.threshold import critical_size
from lemmata.studies.shallow_vit import theory

Verdicts = list[Verdict]

ARMS = {"random": (RED, "random"), "irrelevant": (BLUE, "label-irrelevant"), "noisy": (BLACK, "noisy")}


DASHED = "dashed: the theorem's form, its constant fitted"

# Success maps -----------------------------------------------------------------------------------------------


def success_over_fraction(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(2, 1)
    x = 1 / np.asarray(results["relevant_fraction"].values) ** 2
    mesh = _map(axes[0], results["success"], "relevant_fraction", x, law=x)
    axes[0].set(xlabel="$\\alpha_*^{-2}$", ylabel="training samples $N$", title="success rate and $N_{50}$")
    figure.colorbar(mesh, ax=axes[0], label="share of runs with test loss < $10^{-3}$")
    _critical(axes[1], results["success"], "relevant_fraction", x, BLUE, "measured $N_{50}$")
    _predicted(axes[1], results["success"], "relevant_fraction", x, x, BLACK)
    axes[1].set(xlabel="$\\alpha_*^{-2}$", ylabel="$N_{50}$", title="is it linear in $\\alpha_*^{-2}$?")
    _from_zero(axes[1])
    _boundary_of_c4(axes[1], results)
    axes[1].legend()
    caption(figure, results, f"Success over the relevant fraction; {DASHED}.", verdicts)
    return figure


def trained_against_frozen(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(3, 1, width=4.2)
    x = np.asarray(results["relevant_fraction"].values)
    for panel, kind in zip(axes[:2], ("trained", "frozen"), strict=True):
        power = 2 if kind == "trained" else 4
        success = results["success"].sel(kind=kind)
        mesh = _map(panel, success, "relevant_fraction", x**-power, law=x**-power)
        panel.set(
            xlabel=f"$\\alpha_*^{{-{power}}}$", ylabel="training samples $N$", title=f"{kind} attention"
        )
    figure.colorbar(mesh, ax=axes[1], label="share of runs with test loss < $10^{-3}$")
    for kind, colour, power in (("trained", BLUE, 2), ("frozen", RED, 4)):
        success = results["success"].sel(kind=kind)
        _critical(axes[2], success, "relevant_fraction", x, colour, kind)
        _predicted(
            axes[2], success, "relevant_fraction", x, x**-power, colour, f"$\\alpha_*^{{-{power}}}$, fitted"
        )
    axes[2].set(xscale="log", yscale="log", xlabel="$\\alpha_*$", ylabel="$N_{50}$", title="$N_{50}$ of both")
    _plain_ticks(axes[2], x)
    axes[2].legend()
    caption(figure, results, f"Frozen: $W_K$, $W_Q$ stay at their initial values; {DASHED}.", verdicts)
    return figure


def success_over_error(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    return _success_and_root(
        results, verdicts, "value_error", np.asarray(results["value_error"].values), "$\\sigma$"
    )


def success_over_noise(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    scale = np.sqrt(settings(results)["data.dim"])
    return _success_and_root(
        results,
        verdicts,
        "noise_std",
        np.asarray(results["noise_std"].values) * scale,
        "$\\tau = c_0\\sqrt{d}$",
    )


def _success_and_root(
    results: xr.Dataset, verdicts: Verdicts, name: str, x: np.ndarray, label: str
) -> Figure:
    figure, axes = canvas(2, 1)
    signal = _signal(results, name, x)
    mesh = _map(axes[0], results["success"], name, x, law=signal**-2)
    axes[0].set(xlabel=label, ylabel="training samples $N$", title="success rate and $N_{50}$")
    figure.colorbar(mesh, ax=axes[0], label="share of runs with test loss < $10^{-3}$")
    _critical(axes[1], results["success"], name, x, BLUE, "measured", _root)
    _predicted(
        axes[1], results["success"], name, x, signal**-2, BLACK, "theorem's form, $c''=1$, fitted", _root
    )
    axes[1].set(xlabel=label, ylabel="$1/\\sqrt{N_{50}}$", title="does it fall along a line?")
    _from_zero(axes[1])
    axes[1].legend()
    caption(figure, results, f"Success over {label}; {DASHED}.", verdicts)
    return figure


def _root(samples: Any) -> Any:
    return samples**-0.5


def _signal(results: xr.Dataset, name: str, x: np.ndarray) -> np.ndarray:
    """alpha_* - (sigma + tau) along an axis that is sigma or tau (c'' = 1)."""
    fields = settings(results)
    noise = theory.typical_noise(fields["data.noise_std"], fields["data.dim"])
    other = noise if name == "value_error" else fields["network.value_error"]
    return np.where(
        x + other < fields["data.relevant_fraction"], fields["data.relevant_fraction"] - x - other, np.nan
    )


def _map(axes: Axes, success: xr.DataArray, name: str, x: np.ndarray, law: np.ndarray) -> Any:
    """Success rates, N_50 on top, and a law for it."""
    rate = success.mean("seed").transpose("samples", name)
    order = np.argsort(x)
    samples = np.asarray(rate["samples"].values, float)
    axes.set_facecolor("#dddddd")
    mesh = axes.pcolormesh(
        edges(x[order], False), edges(samples, True), rate.values[:, order], cmap="cividis", vmin=0, vmax=1
    )
    found = _sizes(success, name)
    known = np.isfinite(found)
    axes.set_yscale("log")
    axes.plot(
        *np.array(sorted(zip(x[known], found[known], strict=True))).reshape(-1, 2).T,
        "o-",
        color=RED,
        ms=4,
        lw=1,
    )
    _predicted(axes, success, name, x, law, "white")
    axes.set_yticks(samples, [f"{s:g}" for s in samples])
    axes.minorticks_off()
    axes.set_ylim(*map(float, edges(samples, True)[[0, -1]]))
    return mesh


def _sizes(success: xr.DataArray, name: str) -> np.ndarray:
    """N_50 at every value of an axis, NaN where it is not known or only bounded by the grid."""
    found = [critical_size(success.sel({name: value}), "samples") for value in success[name].values]
    return np.array([e.value if e.exists and np.isfinite(e.high) else np.nan for e in found])


def _predicted(
    axes: Axes,
    success: xr.DataArray,
    name: str,
    x: np.ndarray,
    law: np.ndarray,
    colour: str,
    label: str = "theorem's form, constant fitted",
    shape: Any = lambda n: n,
) -> None:
    """A law for N_50 that leaves its constant open: the constant is the mean in the logarithm."""
    ratio = np.log(_sizes(success, name) / law)
    if np.isfinite(ratio).any():
        order = np.argsort(x)
        constant = np.exp(np.mean(ratio[np.isfinite(ratio)]))
        axes.plot(x[order], shape(constant * law[order]), "--", color=colour, linewidth=1, label=label)


def _critical(
    axes: Axes,
    success: xr.DataArray,
    name: str,
    x: np.ndarray,
    colour: str,
    label: str,
    shape: Any = lambda n: n,
) -> None:
    """N_50 with its interval at every value of an axis; where all runs fail, a hollow triangle for the bound."""
    drawn = False
    falls = shape(2) < shape(1)
    for value, place in zip(success[name].values, x, strict=True):
        found = critical_size(success.sel({name: value}), "samples")
        if not found.exists:
            continue
        if not np.isfinite(found.high):
            marker = "v" if falls else "^"
            axes.plot(place, shape(found.value), marker, color=colour, fillstyle="none", markersize=6)
            continue
        low, middle, high = sorted(shape(max(v, 1.0)) for v in (found.low, found.value, found.high))
        axes.errorbar(
            place,
            middle,
            yerr=[[middle - low], [high - middle]],
            fmt="o",
            color=colour,
            markersize=4,
            capsize=3,
            label=None if drawn else label,
        )
        drawn = True


def _boundary_of_c4(axes: Axes, results: xr.Dataset) -> None:
    fields = settings(results)
    s = theory.Setting(
        relevant_fraction=0.4,
        confusion_fraction=0.1,
        token_noise=theory.typical_noise(fields["data.noise_std"], fields["data.dim"]),
        value_error=fields["network.value_error"],
        key_query_error=fields["network.key_query_error"],
        confusion_slack=1.0,
    )
    edge = theory.relevant_fraction_boundary(0.5, s)
    axes.axvline(edge**-2, color="#888888", linestyle=":", label="edge of condition (8), slack 1")


# Steps ------------------------------------------------------------------------------------------------------


def steps_over_fraction(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(2, 1)
    steps = _reached(results)
    for panel, kind in zip(axes, results["design"].values, strict=True):
        one = steps.sel(design=kind)
        x = 1 / np.asarray(one["relevant_fraction"].values)
        _spread(panel, x, one, BLUE)
        slope, cut = np.polyfit(x, one.mean("seed").values, 1)
        fine = np.linspace(x.min(), x.max(), 50)
        panel.plot(
            fine, slope * fine + cut, "--", color="#888888", label=f"line: {slope:.0f}$/\\alpha_*$ {cut:+.0f}"
        )
        through = (one.mean("seed").values * x).sum() / (x**2).sum()
        panel.plot(fine, through * fine, ":", color=RED, label="proportional to $1/\\alpha_*$")
        panel.set(xlabel="$1/\\alpha_*$", ylabel="steps to zero training loss", title=str(kind))
        _from_zero(panel)
        panel.legend()
    caption(figure, results, "Steps until every training sample has hinge loss zero.", verdicts)
    return figure


def steps_over_rate(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas()
    steps = _reached(results)
    x = np.asarray(results["learning_rate"].values)
    _spread(axes, x, steps, BLUE)
    middle = np.exp(np.log(steps.transpose("seed", ...).values).mean(axis=0))
    anchor = len(x) // 2
    for power, colour, label in ((-1, GREEN, "paper: $\\eta^{-1}$"), (-0.6, RED, "thesis: $\\eta^{-3/5}$")):
        axes.plot(x, float(middle[anchor]) * (x / x[anchor]) ** power, "--", color=colour, label=label)
    axes.set(xscale="log", yscale="log", xlabel="step size $\\eta$", ylabel="steps to zero training loss")
    axes.legend()
    caption(figure, results, "Rival exponents drawn through the middle point.", verdicts)
    return figure


def over_delta(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(2, 1)
    x = np.asarray(results["key_query_error"].values)
    _spread(axes[0], x, _reached(results), BLUE)
    axes[0].set(xlabel="$\\delta$", ylabel="steps to zero training loss")
    _spread(axes[1], x, results["test_loss"], RED)
    axes[1].set(xlabel="$\\delta$", ylabel="test hinge loss")
    _log_with_zero(axes[1], 1e-3)
    caption(figure, results, "The initial error of keys and queries alone.", verdicts)
    return figure


# Attention --------------------------------------------------------------------------------------------------


def attention_curves(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(3, 1, width=4.2)
    for panel, loss in zip(axes[:2], ("hinge", "linear"), strict=True):
        one = results.sel(loss=loss)
        _attention(panel, one)
        panel.set(title=f"{loss} loss")
    for loss, colour, style in (("linear", RED, "-"), ("hinge", BLUE, "--")):
        curve = 1 - results["attention_held"].sel(loss=loss).mean("seed")
        axes[2].plot(curve["step"][1:], curve[1:], style, color=colour, label=f"{loss} loss")
    _slope_guide(axes[2], results)
    axes[2].set(
        xscale="log",
        yscale="log",
        xlabel="step",
        ylabel="1 - attention on $S_*$",
        title="rate of concentration",
    )
    axes[2].legend()
    caption(figure, results, "Attention on the relevant tokens, mean over tokens and samples.", verdicts)
    return figure


def attention_by_patterns(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    counts = results["patterns"].values
    figure, axes = canvas(len(counts), 1, width=4.0, squeeze=False, sharey=True)
    for panel, count in zip(axes[0], counts, strict=True):
        _attention(panel, results.sel(patterns=count))
        panel.set(title=f"$M = {count}$")
    for panel in axes[0, 1:]:
        panel.get_legend().remove()
    caption(figure, results, "Attention on the relevant tokens with more patterns, $d = 20$.", verdicts)
    return figure


def _attention(axes: Axes, results: xr.Dataset) -> None:
    """Mean curves over seeds; a run that has stopped keeps its last value."""
    curve = results["attention_held"]
    step = np.asarray(curve["step"].values)
    last = int(np.nanmax(results["steps"].values))
    shown = step <= max(last, step[1])
    for values, colour, mark, label in (
        (curve, RED, "*", "on $S_*$"),
        (1 - curve, BLUE, "s", "on all others"),
    ):
        mean = values.mean("seed").values
        axes.plot(step[shown], mean[shown], marker=mark, color=colour, markersize=4, label=label)
    roles = results["attention_by_role_held"].mean("seed")
    for index, (name, style) in enumerate((("relevant", "-"), ("confusion", "--"), ("other", ":"))):
        axes.plot(
            step[shown],
            roles.isel(role=index).values[shown],
            style,
            color="#888888",
            linewidth=1,
            label=f"on $S_*$ by {name} tokens",
        )
    axes.set(xlabel="step", ylabel="attention", ylim=(0, 1))
    axes.legend(fontsize=7)
    axes.label_outer()


def _slope_guide(axes: Axes, results: xr.Dataset) -> None:
    """A line of slope -1 through the smallest value reached."""
    curve = (1 - results["attention_curve"].sel(loss="linear")).mean("seed").values
    step = np.asarray(results["step"].values, float)
    lowest = int(np.nanargmin(curve))
    if lowest > 0:
        time = step[lowest] * np.array([0.2, 1.5])
        axes.plot(time, curve[lowest] * step[lowest] / time, ":", color="#888888", label="$1/t$")


# Removal of tokens ------------------------------------------------------------------------------------------


def removal(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(2, 1)
    _arms(axes[0], results["test_loss"])
    _arms(axes[1], _reached(results))
    axes[1].set(ylabel="steps to zero training loss")
    caption(
        figure, results, "Tokens removed from training and test samples; the number kept is fixed.", verdicts
    )
    return figure


def removal_by_patterns(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    counts = results["patterns"].values
    figure, axes = canvas(len(counts), 1, width=4.0, squeeze=False, sharey=True)
    for panel, count in zip(axes[0], counts, strict=True):
        _arms(panel, results["test_loss"].sel(patterns=count))
        panel.set(title=f"$M = {count}$")
    caption(figure, results, "Tokens removed with more patterns, $d = 20$.", verdicts)
    return figure


def _arms(axes: Axes, values: xr.DataArray) -> None:
    # Without removal the arms are the same runs, which smaller scales take only once.
    values = values.fillna(values.sel(removal="random").where(values["removed"] == 0))
    x = np.asarray(values["removed"].values)
    for index, kind in enumerate(values["removal"].values):
        colour, label = ARMS[str(kind)]
        _spread(axes, x + 0.004 * (index - 1), values.sel(removal=kind), colour, label)
    axes.set(xlabel="share of the pool removed", ylabel="test hinge loss")
    axes.legend(title="removed")


def spurious(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas()
    x = np.asarray(results["removed"].values)
    _spread(axes, x, results["test_error"], BLUE, "test error")
    _spread(axes, x, results["test_loss"], ORANGE, "test hinge loss")
    axes.set(xlabel="share of the background tokens removed", ylabel="test error, test loss")
    axes.legend()
    caption(figure, results, "The background tells the label in training and not in the test.", verdicts)
    return figure


def pruning(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(2, 1)
    x = np.asarray(results["relevant_fraction"].values)
    _spread(axes[0], x, results["test_pruned_precision"], BLUE, "share of kept tokens that are relevant")
    axes[0].plot(x, x, ":", color="#888888", label="tokens kept at random")
    axes[0].set(xlabel="$\\alpha_*$", ylabel="precision", ylim=(0, 1.02))
    axes[0].legend()
    _spread(axes[1], x, results["test_error"], BLACK, "all tokens")
    _spread(axes[1], x, results["test_pruned_error"], RED, "most attended tokens only")
    axes[1].set(xlabel="$\\alpha_*$", ylabel="test error", ylim=(-0.005, max(0.05, axes[1].get_ylim()[1])))
    axes[1].legend()
    caption(figure, results, "Keep as many tokens as are relevant, by received attention.", verdicts)
    return figure


# Other experiments ------------------------------------------------------------------------------------------


def by_reading(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    return _table(results, verdicts, "reading", "One departure from the standard reading at a time.")


def variants(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    return _table(results, verdicts, "variant", "One extension at a time.")


def _table(results: xr.Dataset, verdicts: Verdicts, name: str, text: str) -> Figure:
    figure, axes = canvas(3, 1, width=3.8, sharey=True)
    kinds = [str(kind) for kind in results[name].values]
    place = np.arange(len(kinds))[::-1]
    columns = (
        ("test_loss", "test hinge loss"),
        ("steps", "steps"),
        ("attention", "final attention on $S_*$"),
    )
    for panel, (variable, label) in zip(axes, columns, strict=True):
        values = results[variable]
        rows = values["samples"].values if "samples" in values.dims else [None]
        for index, row in enumerate(rows):
            one = values if row is None else values.sel(samples=row)
            mean, error = one.mean("seed").values, one.std("seed").values / np.sqrt(one.sizes["seed"])
            panel.errorbar(
                mean,
                place - 0.15 * index,
                xerr=error,
                fmt="o",
                color=CYCLE[index],
                markersize=4,
                label=None if row is None else f"N = {row}",
            )
        panel.set(xlabel=label)
        panel.grid(axis="y", color="#eeeeee")
    axes[0].set_yticks(place, kinds)
    if "samples" in results.dims:
        axes[0].legend(fontsize=7)
    caption(figure, results, text, verdicts)
    return figure


def single_pass(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas()
    x = np.asarray(results["samples"].values)
    _spread(axes, x, results["test_loss"], BLUE, "test hinge loss")
    _spread(axes, x, results["test_error"], RED, "test error")
    axes.set(xscale="log", xlabel="training samples $N$, each seen once", ylabel="test loss, test error")
    _plain_ticks(axes, x)
    _log_with_zero(axes, 1e-3)
    axes.legend()
    caption(figure, results, "One pass over the training set.", verdicts)
    return figure


def attention_kinds(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas()
    x = np.asarray(results["samples"].values)
    for kind, colour in zip(results["kind"].values, (BLUE, RED, ORANGE), strict=True):
        _spread(axes, x, results["test_loss"].sel(kind=kind), colour, str(kind))
    axes.set(xscale="log", xlabel="training samples $N$", ylabel="test hinge loss")
    _plain_ticks(axes, x)
    _log_with_zero(axes, 1e-4)
    axes.legend(title="attention")
    caption(figure, results, "Uniform attention as a control.", verdicts)
    return figure


def confusion(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas()
    x = np.asarray(results["confusion_fraction"].values)
    _spread(axes, x, results["success"], BLUE, "success rate")
    _spread(axes, x, results["test_error"], RED, "test error")
    fields = settings(results)
    for slack, style in ((0.5, ":"), (1.0, "--")):
        edge = fields["data.relevant_fraction"] / theory.relevant_fraction_needed(
            confusion_setting(fields, slack)
        )
        axes.axvline(edge, color="#888888", linestyle=style, label=f"condition (8), slack {slack:g}")
    axes.axvline(fields["data.relevant_fraction"], color=BLACK, linewidth=0.8, label="tie of the vote")
    axes.set(xlabel="$\\alpha_\\#$", ylabel="success rate, test error")
    axes.legend(fontsize=7)
    caption(figure, results, f"$\\alpha_* = {fields['data.relevant_fraction']:g}$ fixed.", verdicts)
    return figure


def confusion_setting(fields: dict[str, Any], slack: float) -> theory.Setting:
    """Condition (8) for a unit of confusion: its needed relevant fraction is the factor of the condition."""
    return theory.Setting(
        relevant_fraction=fields["data.relevant_fraction"],
        confusion_fraction=1.0,
        token_noise=theory.typical_noise(fields["data.noise_std"], fields["data.dim"]),
        value_error=fields["network.value_error"],
        key_query_error=fields["network.key_query_error"],
        confusion_slack=slack,
    )


def neurons(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    kinds = results["output_weights"].values
    figure, axes = canvas(4, len(kinds), width=3.6, height=3.0, squeeze=False)
    for row, kind in zip(axes, kinds, strict=True):
        _neuron_panels(row, results.sel(output_weights=kind))
        row[0].set_title(f"{kind} output weights: neurons")
    caption(
        figure,
        results,
        "Lucky neurons and the lengths of pattern images; runs that stopped keep their last value.",
        verdicts,
    )
    return figure


def _neuron_panels(row: Any, results: xr.Dataset) -> None:
    step = np.asarray(results["step"].values)
    shown = step <= max(int(np.nanmax(results["steps"].values)), step[1])

    def mean(name: str, **where: int) -> np.ndarray:
        return results[f"{name}_held"].mean("seed").isel(where).values[shown]

    groups = ("lucky for $\\mu_1$", "lucky for $\\mu_2$", "wrong sign")
    for index, colour in enumerate((BLUE, RED, ORANGE)):
        row[0].plot(
            step[shown],
            mean("projection", group=index, pattern=min(index, 1) if index < 2 else 0),
            color=colour,
            label=f"{groups[index]}, along it",
        )
        row[1].plot(step[shown], mean("gate_persistence", group=index), color=colour, label=groups[index])
    row[0].plot(
        step[shown],
        mean("projection", group=0, pattern=2),
        "--",
        color=BLUE,
        label="lucky for $\\mu_1$, along $\\mu_3$",
    )
    row[0].set(xlabel="step", ylabel="mean $w_i \\cdot p_j$")
    row[1].set(xlabel="step", ylabel="share of open gates", ylim=(0, 1.02), title="gates on relevant tokens")
    for name, style, label in (("key_norm", "-", "$W_K$"), ("query_norm", "--", "$W_Q$")):
        for pattern, colour in ((0, BLUE), (1, RED), (2, "#888888")):
            row[2].plot(
                step[shown],
                mean(name, pattern=pattern),
                style,
                color=colour,
                label=f"{label}$\\mu_{pattern + 1}$",
            )
    row[2].set(xlabel="step", ylabel="length", title="keys and queries")
    for pattern, colour in ((0, BLUE), (1, RED), (2, "#888888")):
        row[3].plot(
            step[shown], mean("value_norm", pattern=pattern), color=colour, label=f"$W_V\\mu_{pattern + 1}$"
        )
    row[3].set(xlabel="step", ylabel="length", title="values")
    for panel in row:
        panel.legend(fontsize=6)


# Parts ------------------------------------------------------------------------------------------------------


def _reached(results: xr.Dataset) -> xr.DataArray:
    """Steps to zero training loss; runs that hit the cap are drawn at the cap."""
    return results["steps"].astype(float)


def _spread(axes: Axes, x: np.ndarray, values: xr.DataArray, colour: str, label: str | None = None) -> None:
    """Mean over seeds with one standard error, and the seeds as faint points."""
    rows = values.transpose("seed", ...).values
    mean = np.nanmean(rows, axis=0)
    error = np.nanstd(rows, axis=0, ddof=1) / np.sqrt(rows.shape[0]) if rows.shape[0] > 1 else None
    order = np.argsort(x)
    axes.plot(
        np.broadcast_to(x, rows.shape).ravel(), rows.ravel(), ".", color=colour, alpha=0.2, markersize=3
    )
    axes.errorbar(
        x[order],
        mean[order],
        yerr=None if error is None else error[order],
        fmt="o-",
        color=colour,
        markersize=4,
        capsize=2,
        label=label,
    )


def _log_with_zero(axes: Axes, smallest: float) -> None:
    """A logarithmic axis that goes linearly to zero below the smallest value that matters."""
    axes.set_yscale("symlog", linthresh=smallest)
    axes.set_ylim(bottom=-0.1 * smallest)
    axes.set_yticks([tick for tick in axes.get_yticks() if tick >= 0])


def _from_zero(axes: Axes) -> None:
    axes.set_ylim(0, None)


def _plain_ticks(axes: Axes, values: np.ndarray) -> None:
    axes.set_xticks(values, [f"{v:g}" for v in values])
    axes.minorticks_off()
