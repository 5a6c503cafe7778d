"""The figures as pictures: they see results and verdicts, nothing else."""

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lemmata.draw.curves import BAND, BARS, DOTS, MEAN, law, line, lines, reference, rows, slope
from lemmata.draw.palette import BLACK, BLUE, GREEN, GREY, ORANGE, RED
from lemmata.draw.phase import critical, critical_points, success_map
from lemmata.draw.style import Drawn, canvas, log_to_zero, panel, picture, shared_key
from lemmata.results import over_cells, settings, trial_at
from lemmata.studies.shallow_vit import theory

ARMS = {"random": RED, "irrelevant": BLUE, "noisy": BLACK}
FITTED = "theorem's form, constant fitted"
STEPS = "steps to zero training loss"
HINGE = "test hinge loss"
MAPPED = "Share of runs with test loss below $10^{-3}$; bars: 95 % intervals, triangles: bounds."

# Success maps -----------------------------------------------------------------------------------------------


@picture
def success_over_fraction(results: xr.Dataset) -> Drawn:
    success = results["success"].assign_coords(x=results["relevant_fraction"] ** -2.0)
    edge = theory.relevant_fraction_boundary(0.5, _setting(results, 1.0))
    figure, axes = _success_and_line(success, "$\\alpha_*^{-2}$", success["x"], lambda n: n)
    reference(axes[1], x=edge**-2, label="edge of condition (8), slack 1")
    panel(axes[1], "$\\alpha_*^{-2}$", "$N_{50}$", "is it linear in $\\alpha_*^{-2}$?", ylim=(0, None))
    return figure, f"Success over the relevant fraction. {MAPPED}"


@picture
def success_over_error(results: xr.Dataset) -> Drawn:
    return _success_and_root(results, results["value_error"], "value error $\\sigma$")


@picture
def success_over_noise(results: xr.Dataset) -> Drawn:
    scale = np.sqrt(settings(results)["data.dim"])
    return _success_and_root(results, results["noise_std"] * scale, "token noise $\\tau = c_0\\sqrt{d}$")


def _success_and_root(results: xr.Dataset, x: xr.DataArray, label: str) -> Drawn:
    signal = over_cells(results, _signal).isel(samples=0)
    success = results["success"].assign_coords(x=x)
    figure, axes = _success_and_line(success, label, signal**-2.0, lambda n: n**-0.5)
    panel(axes[1], label, "$1/\\sqrt{N_{50}}$", "does it fall along a line?", ylim=(0, None))
    return figure, f"Success over the {label}. {MAPPED}"


def _signal(trial: Any) -> float:
    """alpha_* - (sigma + tau) (c'' = 1), where that is positive."""
    setting = theory.setting(trial)
    left = setting.relevant_fraction - setting.disorder
    return left if left > 0 else np.nan


def _success_and_line(success: xr.DataArray, label: str, predicted: Any, scale: Any) -> tuple[Figure, Any]:
    """A success map over `x`, and the critical size beside it on a scale on which the prediction is a line."""
    figure, axes = canvas(2)
    mesh, found = success_map(axes[0], success, "x", predicted=predicted, name=FITTED)
    figure.colorbar(mesh, ax=axes[0], label="share of runs that succeed")
    panel(axes[0], label, "training samples $N$", "success rate and $N_{50}$")
    critical_points(axes[1], found, BLUE, "measured", scale)
    law(axes[1], found.x, scale(predicted), FITTED, through=scale(found.known))
    return figure, axes


@picture
def trained_against_frozen(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, width=4.2)
    fraction = results["relevant_fraction"]
    for map_, kind, colour, power in ((axes[0], "trained", BLUE, 2), (axes[1], "frozen", RED, 4)):
        name = f"$\\alpha_*^{{-{power}}}$"
        success = results["success"].sel(kind=kind).assign_coords(x=fraction ** -float(power))
        mesh, _ = success_map(map_, success, "x", predicted=success["x"], name=f"{name}, constant fitted")
        panel(map_, name, "training samples $N$", f"{kind} attention")
        found = critical(success, "relevant_fraction")
        critical_points(axes[2], found, colour, kind)
        law(axes[2], found.x, found.x**-power, f"{name}, fitted", colour, through=found.known)
    figure.colorbar(mesh, ax=axes[1], label="share of runs that succeed")
    panel(axes[2], "$\\alpha_*$", "$N_{50}$", "$N_{50}$ of both", "xy", ticks=fraction)
    return figure, f"Frozen: $W_K$, $W_Q$ stay at their initial values. {MAPPED}"


def _setting(results: xr.Dataset, slack: float) -> theory.Setting:
    """The quantities of Theorem 1 at these results, with another slack in condition (8)."""
    return replace(theory.setting(trial_at(results)), confusion_slack=slack)


# Steps ------------------------------------------------------------------------------------------------------


@picture
def steps_over_fraction(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    steps = results["steps"].assign_coords(x=1 / results["relevant_fraction"])
    for axis, design in zip(axes, results["design"].values, strict=True):
        found = line(axis, steps.sel(design=design), "x", BLUE, style="o", centre="mean")
        known = np.isfinite(found.middle)
        if known.sum() > 1:
            rise, cut = np.polyfit(found.x[known], found.middle[known], 1)
            law(axis, found.x, rise * found.x + cut, f"line: {rise:.0f}$/\\alpha_*$ {cut:+.0f}", GREY)
        slope(axis, found, 1, "proportional to $1/\\alpha_*$", at=None, colour=RED, style=":")
        panel(axis, "$1/\\alpha_*$", STEPS, str(design), ylim=(0, None))
    return figure, "Steps until every training sample has hinge loss zero; mean over seeds, dots: seeds."


@picture
def steps_over_rate(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    found = line(axes, results["steps"], "learning_rate", BLUE, "measured", "o-", "geometric")
    middle = len(found.x) // 2
    slope(axes, found, -1, "paper: $\\eta^{-1}$", at=middle, colour=GREEN)
    slope(axes, found, -0.6, "thesis: $\\eta^{-3/5}$", at=middle, colour=RED)
    panel(axes, "step size $\\eta$", STEPS, log="xy", ticks=found.x)
    return figure, "Rival exponents through the middle point. Line: geometric mean over seeds, dots: seeds."


@picture
def over_delta(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    line(axes[0], results["steps"], "key_query_error", BLUE, style="o-")
    line(axes[1], results["test_loss"], "key_query_error", RED, style="o-")
    log_to_zero(axes[1], "y", 1e-3)
    panel(axes[0], "initial error $\\delta$", STEPS)
    panel(axes[1], "initial error $\\delta$", HINGE)
    return figure, f"The initial error of keys and queries alone. {DOTS}"


# Attention --------------------------------------------------------------------------------------------------


@picture
def attention_curves(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(3, width=4.2)
    for axis, loss in zip(axes[:2], ("hinge", "linear"), strict=True):
        _attention(axis, results.sel(loss=loss), f"{loss} loss")
    shared_key(figure, axes[:2])
    off = 1 - results["attention_curve"]
    line(axes[2], off.sel(loss="hinge"), "step", BLUE, "hinge loss", "--")
    found = line(axes[2], off.sel(loss="linear"), "step", RED, "linear loss")
    if (found.middle[found.x > 0] > 0).any():
        lowest = int(np.nanargmin(np.where(found.x > 0, found.middle, np.nan)))
        near = (found.x >= 0.2 * found.x[lowest]) & (found.x <= 1.5 * found.x[lowest])
        x, at = found.x[near], int(near[:lowest].sum())
        slope(axes[2], (x, found.middle[near]), -1, "$1/t$", at=at, colour=GREY, style=":")
    panel(axes[2], "step", "1 − attention on $S_*$", "rate of concentration", "xy")
    return figure, f"Attention on the relevant tokens, mean over tokens and samples. {BAND}"


@picture
def attention_by_patterns(results: xr.Dataset) -> Drawn:
    counts = results["patterns"].values
    figure, axes = canvas(len(counts), width=4.0, squeeze=False, sharey=True)
    for axis, count in zip(axes[0], counts, strict=True):
        _attention(axis, results.sel(patterns=count), f"$M = {count}$")
    shared_key(figure, axes)
    dim = settings(results)["data.dim"]
    return figure, f"Attention on the relevant tokens with more patterns, $d = {dim}$. {BAND}"


def _attention(axes: Axes, results: xr.Dataset, title: str) -> None:
    curve, roles = results["attention_curve"], results["attention_by_role_curve"]
    line(axes, curve, "step", RED, "on $S_*$")
    line(axes, 1 - curve, "step", BLUE, "on all others")
    for role, (name, style) in enumerate((("relevant", "-"), ("confusion", "--"), ("other", ":"))):
        look = {"style": style, "spread": "none", "linewidth": 1}
        line(axes, roles.isel(role=role), "step", GREY, f"on $S_*$ by {name} tokens", **look)
    panel(axes, "step", "attention", title, keyed=False, ylim=(0, 1))


# Removal of tokens ------------------------------------------------------------------------------------------


@picture
def removal(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    _arms(axes[0], results["test_loss"], HINGE)
    _arms(axes[1], results["steps"], STEPS)
    shared_key(figure, axes)
    return figure, f"Tokens removed from training and test samples; the number kept is fixed. {DOTS}"


@picture
def removal_by_patterns(results: xr.Dataset) -> Drawn:
    counts = results["patterns"].values
    figure, axes = canvas(len(counts), width=4.0, squeeze=False, sharey=True)
    for axis, count in zip(axes[0], counts, strict=True):
        _arms(axis, results["test_loss"].sel(patterns=count), HINGE, f"$M = {count}$")
    shared_key(figure, axes)
    return figure, f"Tokens removed with more patterns, $d = {settings(results)['data.dim']}$. {DOTS}"


def _arms(axes: Axes, values: xr.DataArray, label: str, title: str = "") -> None:
    # Without removal the arms are the same runs, which smaller scales take only once.
    values = values.fillna(values.sel(removal="random").where(values["removed"] == 0))
    shades = [ARMS[str(kind)] for kind in values["removal"].values]
    lines(axes, values, "removed", "removal", "{} tokens removed", shades, style="o-")
    panel(axes, "share of the pool removed", label, title, keyed=False)


@picture
def spurious(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    _loss_and_error(axes, results, "removed")
    panel(axes, "share of the background tokens removed", "test error, test loss")
    return figure, f"The background tells the label in training and not in the test. {DOTS}"


@picture
def pruning(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    x, over = results["relevant_fraction"], "relevant_fraction"
    line(axes[0], results["test_pruned_precision"], over, BLUE, "relevant tokens among those kept", "o-")
    law(axes[0], x, x, "tokens kept at random", GREY, ":")
    line(axes[1], results["test_error"], over, BLACK, "all tokens", "o-")
    line(axes[1], results["test_pruned_error"], over, RED, "most attended tokens only", "o-")
    panel(axes[0], "relevant fraction $\\alpha_*$", "precision", ylim=(0, 1.02))
    top = max(0.05, axes[1].get_ylim()[1])
    panel(axes[1], "relevant fraction $\\alpha_*$", "test error", ylim=(-0.005, top))
    return figure, f"Keep as many tokens as are relevant, by received attention. {DOTS}"


# Other experiments ------------------------------------------------------------------------------------------


@picture
def by_reading(results: xr.Dataset) -> Drawn:
    return _table(results, "reading", "One departure from the standard reading at a time")


@picture
def variants(results: xr.Dataset) -> Drawn:
    return _table(results, "variant", "One extension at a time")


def _table(results: xr.Dataset, by: str, text: str) -> Drawn:
    figure, axes = canvas(3, width=3.8, sharey=True)
    columns = {"test_loss": HINGE, "steps": "steps", "attention": "final attention on $S_*$"}
    for axis, (name, label) in zip(axes, columns.items(), strict=True):
        sizes = results["samples"].values if "samples" in results.dims else [None]
        for i, (size, colour) in enumerate(zip(sizes, (BLUE, RED, GREEN, ORANGE, BLACK), strict=False)):
            one = results[name] if size is None else results[name].sel(samples=size)
            rows(axis, one, by, colour, None if size is None else f"N = {size}", 0.15 * i)
        panel(axis, label)
    return figure, f"{text}. {BARS}"


@picture
def single_pass(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    _loss_and_error(axes, results, "samples")
    log_to_zero(axes, "y", 1e-3)
    xlabel = "training samples $N$, each seen once"
    panel(axes, xlabel, "test loss, test error", log="x", ticks=results["samples"])
    return figure, f"One pass over the training set. {DOTS}"


def _loss_and_error(axes: Axes, results: xr.Dataset, over: str) -> None:
    line(axes, results["test_loss"], over, BLUE, HINGE, "o-")
    line(axes, results["test_error"], over, RED, "test error", "o-")


@picture
def attention_kinds(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    lines(axes, results["test_loss"], "samples", "kind", style="o-")
    log_to_zero(axes, "y", 1e-4)
    panel(axes, "training samples $N$", HINGE, log="x", ticks=results["samples"], key_title="attention")
    return figure, f"Uniform attention as a control. {DOTS}"


@picture
def confusion(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(height=4.0)
    line(axes, results["success"], "confusion_fraction", BLUE, "success rate", "o-", "mean")
    line(axes, results["test_error"], "confusion_fraction", RED, "test error", "o-", "mean")
    relevant = settings(results)["data.relevant_fraction"]
    for slack, style in ((0.5, ":"), (1.0, "--")):
        edge = relevant * _setting(results, slack).room
        reference(axes, x=edge, label=f"condition (8), slack {slack:g}", style=style)
    reference(axes, x=relevant, label="tie of the vote", colour=BLACK, style="-")
    panel(axes, "confusion fraction $\\alpha_\\#$", "success rate, test error")
    return figure, f"$\\alpha_* = {relevant:g}$ fixed. {MEAN}"


@picture
def neurons(results: xr.Dataset) -> Drawn:
    kinds = results["output_weights"].values
    figure, axes = canvas(4, len(kinds), width=3.6, height=3.4, squeeze=False)
    for row, kind in zip(axes, kinds, strict=True):
        _neuron_panels(row, results.sel(output_weights=kind), str(kind))
    return figure, f"Lucky neurons and the lengths of pattern images. {BAND}"


def _neuron_panels(row: Any, results: xr.Dataset, kind: str) -> None:
    groups = ("lucky for $\\mu_1$", "lucky for $\\mu_2$", "wrong sign")
    projection, gates = results["projection_curve"], results["gate_persistence_curve"]
    for i, (name, colour) in enumerate(zip(groups, (BLUE, RED, ORANGE), strict=True)):
        own = projection.isel(group=i, pattern=i % 2)
        line(row[0], own, "step", colour, f"{name}, along it")
        line(row[1], gates.isel(group=i), "step", colour, name)
    line(
        row[0], projection.isel(group=0, pattern=2), "step", BLUE, "lucky for $\\mu_1$, along $\\mu_3$", "--"
    )
    for axes, name, style, label in (
        (row[2], "key_norm", "-", "$W_K$"),
        (row[2], "query_norm", "--", "$W_Q$"),
        (row[3], "value_norm", "-", "$W_V$"),
    ):
        for i, colour in enumerate((BLUE, RED, GREY)):
            curve = results[f"{name}_curve"].isel(pattern=i)
            line(axes, curve, "step", colour, f"{label}$\\mu_{i + 1}$", style)
    panel(row[0], "step", "mean $w_i \\cdot p_j$", f"{kind.replace('_', '-')} weights: neurons")
    panel(row[1], "step", "share of open gates", "gates on relevant tokens", ylim=(0, 1.02))
    panel(row[2], "step", "length", "keys and queries")
    panel(row[3], "step", "length", "values")
