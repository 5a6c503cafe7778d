"""Drawings of the study's results."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lemmata.draw import attention
from lemmata.draw.curves import BAND, BARS, DOTS, law, line, lines, one_run, reference, rows, series, slope
from lemmata.draw.palette import BLUE, CYCLE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW
from lemmata.draw.style import Drawn, canvas, log_to_zero, panel, picture, shared_key
from lemmata.results import over_cells, settings, trial_at
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import grid_of
from lemmata.studies.spatial_structure.measures import phase_end, phase_gain, second_duration

# The paper's figures ---------------------------------------------------------------------------------------------------


@picture
def partitions(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(2, width=2.6, height=2.6)
    for axes, name in zip(panels, ("contiguous", "random"), strict=True):
        group_of = _groups(one_run(results.sel(partition=name)))
        attention.partition(axes, group_of, grid_of(len(group_of)))
        axes.set_title(f"{name} groups")
    return figure, "Sixteen positions in four groups; the learner is shown neither."


@picture
def misleading(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(width=4.2, height=4.2)
    one = one_run(results)
    coefficients, group_of = np.nan_to_num(one.coefficients.values), _groups(one)
    height, width = grid_of(len(group_of))
    axes.imshow(coefficients.reshape(height, width), cmap="cividis", vmin=-1.4, vmax=1.4, alpha=0.75)
    for position, value in enumerate(coefficients.astype(int)):
        row, column = divmod(position, width)
        axes.text(column, row, f"{value:+d}" if value else "0", ha="center", va="center", fontsize=8)
        if group_of[position] == float(one.signal_group):
            place = (column - 0.5, row - 0.5)
            axes.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=RED, linewidth=2.5))
    axes.set(xticks=[], yticks=[], title=f"label +1, coefficients sum to {float(one.total):+g}")
    return figure, r"Coefficients $\langle w^*, X_j \rangle$; the signal group is outlined."


@picture
def gaussian(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(4, width=3.2, height=3.4)
    for axes, name in zip(panels, ("test_error", "auc"), strict=False):
        lines(axes, results[f"{name}_curve"], "step", "learner", "{} learner")
        log_to_zero(axes, "x", 1)
    line(panels[1], results.slot_auc_curve.sel(learner="wide"), "step", GREEN, "wide learner, slots", "--")
    reference(panels[0], y=float(results.vote_error.median()), label="vote of the filters")
    reference(panels[1], y=0.5, label="chance")
    panel(panels[0], "step", "test error", "test error", ylim=(0, 0.6))
    panel(panels[1], "step", "AUC", "AUC of the logits, same group", ylim=(0, 1))
    one = one_run(results.sel(learner="wide"))
    group_of = _groups(one)
    attention.true_mask(panels[2], group_of)
    panels[2].set_title("pairs in a common group")
    _heat(figure, panels[3], one.logits.values, group_of, r"learned $P^\top P$ (wide)")
    return figure, f"Gaussian patches, convolutional labels; maps in the order of the sets, one seed. {BAND}"


def _heat(figure: Figure, axes: Axes, logits: np.ndarray, group_of: np.ndarray, title: str) -> None:
    figure.colorbar(attention.heat_map(axes, logits, group_of), ax=axes, shrink=0.8)
    axes.set_title(title)


@picture
def realistic(results: xr.Dataset) -> Drawn:
    """Figure 4, the mosaic over the grid, and the logits growing over training."""
    figure, panels = canvas(5, 2, width=2.9, height=3.2)
    one = one_run(results.sel(partition="random"))
    group_of = _groups(one)
    logits = _logged(one.logits_curve)
    attention.true_mask(panels[0, 0], group_of)
    panels[0, 0].set_title("pairs in a common group")
    _heat(figure, panels[0, 1], logits.values[-1], group_of, "learned logits A, set order")
    tiles = _logged(one_run(results.sel(partition="contiguous")).logits_curve).values[-1]
    attention.mosaic(panels[0, 2], tiles, grid_of(len(tiles)))
    panels[0, 2].set_title("contiguous sets: mosaic of A")
    lines(panels[0, 3], results.test_error_curve, "step", "partition", "{} sets")
    _linear_models(panels[0, 3], results)
    lines(panels[0, 4], results.cosine_curve, "step", "partition", "cosine, {}")
    lines(panels[0, 4], results.exact_curve, "step", "partition", "association, {}", style="--")
    panel(panels[0, 3], "step", "test error", "test error", ylim=(0, None))
    panel(panels[0, 4], "step", "cosine, share of rows", "cosine(v, w*) and association", ylim=(0, None))
    chosen = np.unique(np.linspace(0, len(logits) - 1, 5).round().astype(int))
    maps = [logits.values[i] for i in chosen]
    titles = [f"A at step {int(logits.step[i])}" for i in chosen]
    attention.small_multiples(panels[1, : len(maps)], maps, titles, group_of)
    for axes in panels[1, len(maps) :]:
        axes.axis("off")
    rate = settings(results)["descent.attention_rate"]
    return figure, f"{_said(results)}; logits move {rate:g} times as fast as v; maps of one seed. {BAND}"


def _logged(maps: xr.DataArray) -> xr.DataArray:
    """Maps along training, as far as the run came."""
    known = maps.notnull().any(maps.dims[1:])
    return maps.isel({maps.dims[0]: slice(max(int(known.sum()), 1))})


def _groups(one: xr.Dataset) -> np.ndarray:
    """The group of every position; all in one where no run tells."""
    return np.nan_to_num(one.group_of.values).astype(int)


def _facts(results: xr.Dataset) -> tuple[int, int, float]:
    trial: Any = trial_at(results)
    return trial.data.facts


def _said(results: xr.Dataset) -> str:
    return "D = {}, C = {}, q = {:g}".format(*_facts(results))


def _linear_models(axes: Axes, results: xr.Dataset) -> None:
    low, high = theory.plateau(*_facts(results))
    axes.axhspan(low, high, color=GREY, alpha=0.25, linewidth=0, label="linear models")


@picture
def encodings(results: xr.Dataset) -> Drawn:
    """Logits, encodings and self-attention: what each knows of the groups, and how it errs."""
    figure, panels = canvas(3, 2, width=3.6, height=3.1)
    names = {"test_error": "test error", "exact": "rows whose top C is their group", "auc": "same-group AUC"}
    titles = {"logits": "logits A", "encodings": r"encodings: $P^\top P$", "self": r"self: $P^\top P$"}
    _linear_models(panels[0, 0], results)
    for axes, (name, label) in zip(panels[0], names.items(), strict=True):
        lines(axes, results[f"{name}_curve"], "step", "attention")
        panel(axes, "step", label, keyed=False, ylim=(0, None))
    shared_key(figure, panels[0])
    for axes, name in zip(panels[1], results.attention.values, strict=True):
        one = one_run(results.sel(attention=name))
        _heat(figure, axes, one.logits.values, _groups(one), titles[str(name)])
    return figure, f"{_said(results)}; maps of one seed at the end, in the order of the sets. {BAND}"


# Linear models and hand-built attention --------------------------------------------------------------------------------


@picture
def glm_floor(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    lines(axes, results.test_error, "dominance", "inputs", "fit on {}", style="o", spread="quartiles")
    predicted = results.predicted_error.median(("seed", "inputs"))
    law(axes, results.dominance, predicted, "equal-weight vote", style="-")
    reference(axes, y=theory.GLM_FLOOR, label="1/8")
    reference(axes, x=0.756, label="edge of the regime", style="-")
    xlabel = "dominance of spurious patches $q(D - C)/C^2$"
    panel(axes, xlabel, "test error", log="x", ticks=results.dominance, ylim=(0, 0.45))
    return figure, "Linear models; points: median over seeds, bars: quartiles."


@picture
def without_association(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(2)
    for style, degree in zip(("o-", "s--", "^:"), results.degree.values, strict=False):
        for axes, values in zip(panels, (results.test_error, results.overlap), strict=True):
            lines(axes, values.sel(degree=degree), "strength", "solution", f"{{}}, p = {degree}", style=style)
    reference(panels[0], y=theory.label_noise(*_facts(results)), label="label noise")
    xlabel, overlap = "strength of the logits", "share of the top C inside the group"
    panel(panels[0], xlabel, "test error", log="y", keyed=False)
    panel(panels[1], xlabel, overlap, keyed=False, ylim=(-0.05, 1.05))
    shared_key(figure, panels)
    return figure, f"Hand-built attention with v = w*. {DOTS}"


# Population descent ----------------------------------------------------------------------------------------------------


@picture
def events(results: xr.Dataset) -> Drawn:
    """Population descent: errors, logits, alignment and drives over the logarithm of time, with the ends of the events."""
    names = list(results.diagonal.values) if "diagonal" in results.dims else [None]
    figure, panels = canvas(4, len(names), width=3.4, height=3.6, squeeze=False)
    drawn = {
        "error and loss": {"test_error": (BLUE, "test error"), "loss": (ORANGE, "loss")},
        "logits": {"same": (BLUE, r"$\gamma$ (same group)"), "cross": (RED, r"$\rho$ (across)")},
        "alignment": {"alignment": (GREEN, r"$\alpha$")},
        "pull on α": {"signal_drive": (BLUE, "signal set"), "noise_drive": (RED, "rest of the image")},
    }
    ends = {"event1": ("$T_0$", ":"), "event2": ("$T_1$", "--"), "event3": ("$T_2$", "-.")}
    for row, name in zip(panels, names, strict=True):
        one = results if name is None else results.sel(diagonal=name)
        times = {event: float(one[event].where(one[event] > 0).median()) for event in ends}
        _linear_models(row[0], one)
        for axes, (title, curves) in zip(row, drawn.items(), strict=True):
            for curve, (colour, label) in curves.items():
                line(axes, one[f"{curve}_curve"], "step", colour, label)
            for event, (label, style) in ends.items():
                if times[event] > 0:
                    reference(axes, x=times[event], label=label, style=style)
            log_to_zero(axes, "x", 1)
            beta = "" if name is None else rf", $\beta$ = {name:g}"
            panel(axes, "step", title.split(" and")[0], title + beta, keyed=name == names[-1])
    return figure, f"Population descent as three numbers, {_said(results)}; median ends of the events. {BAND}"


@picture
def patches(results: xr.Dataset) -> Drawn:
    """The second event against the number of patches: how long it lasts, and what it takes."""
    figure, panels = canvas(3, width=4.2)

    def derived(trial: Any) -> float:
        (D, C, q), network = trial.data.facts, trial.network
        return theory.event2_duration(D, C, q, network.degree, float(network.diagonal), 1.0)

    found = line(panels[0], second_duration(results), "patches", BLUE, "measured", "o")
    law(
        panels[0],
        results.patches,
        over_cells(results, derived),
        r"$\alpha$ at its optimum (derived)",
        GREEN,
        "-",
    )
    law(
        panels[0],
        results.patches,
        np.ones(results.sizes["patches"]),
        "printed: no D",
        through=found.middle,
        at=0,
    )
    rate = over_cells(results, lambda t: t.descent.learning_rate * t.descent.attention_rate)
    found = line(panels[1], results.alignment_power * rate, "patches", BLUE, "measured", "o")
    slope(panels[1], found, 1, "printed: slope 1", at=-1)
    mass = 3 * results.patches * results.same_score_curve.where(results.loss_curve >= 0.05).max("step")
    line(panels[2], mass, "patches", BLUE, "measured", "o")
    labels = (
        r"$\eta_A (t_{\gamma = 1} - T_0)$",
        r"$\eta_A \sum \alpha^p$ until the loss is 0.05",
        r"largest $D (C-1) \Gamma$ until then",
    )
    for axes, label in zip(panels, labels, strict=True):
        panel(axes, "patches D", label, log="xy", ticks=results.patches)
    return figure, f"Population descent, q = 16/D, C = 4. {DOTS}"


@picture
def first_event(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(height=4.0)

    def corrected(trial: Any) -> float:
        (D, C, q), network = trial.data.facts, trial.network
        return theory.event1_time(D, C, q, network.degree, network.diagonal, 1.0, trial.alignment)

    predicted = over_cells(results, corrected)
    rate = over_cells(results, lambda t: t.descent.learning_rate)
    measured = rate * results.event1.where(results.event1 > 0)
    for colour, degree in zip(CYCLE, results.degree.values.tolist(), strict=False):
        line(axes, measured.sel(degree=degree), "start", colour, f"measured, p = {degree}", "o")
        one = predicted.sel(degree=degree)
        law(axes, one.start, one, f"corrected: exponent {2 - degree}", colour, "-")
        printed = f"printed: exponent {1 - degree}"
        slope(axes, (one.start, one), 1 - degree, printed, at=-1, colour=colour, style=":")
    panel(axes, r"starting alignment $\alpha^{(0)}$", r"$\eta T_0$", log="xy")
    return figure, "End of the first event; the printed law is drawn through the last point."


@picture
def loss_rate(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    found = line(axes, results.loss_curve, "step", BLUE, "population loss", spread="runs")
    window = np.flatnonzero((found.middle <= 1e-2) & (found.middle >= 1e-3) & (found.x > 0))
    if len(window):
        slope(axes, found, -1, "1/t", at=int(window[0] - (found.x <= 0).sum()), style=":")
    panel(axes, "step", "population loss", log="xy", ylim=(1e-6, 1))
    return figure, "Population descent from learned attention; thin lines: seeds."


@picture
def frozen(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    lines(axes, results.test_error_curve, "step", "attention", "attention {}", shades=(RED, BLUE))
    _linear_models(axes, results)
    panel(axes, "step", "test error", ylim=(0, 0.3))
    return figure, f"The same data and start in both arms. {BAND}"


@picture
def linear_phase(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(3, width=4.2)
    D, C, q = _facts(results)
    results, beta = results.sel(diagonal=[3.0]), 3.0
    largest, nus = results.samples.values[-1], results.linear
    eta = settings(results)["descent.learning_rate"]
    drawn = lines(panels[0], results.alignment_curve.sel(samples=largest), "step", "linear", r"$\nu$ = {:g}")
    for found, nu in zip(drawn, nus.values, strict=False):
        drift = theory.linear_drift(D, C, nu, eta)
        said = r"drift $\eta \nu D C / 2$" if nu == nus[0] else None
        law(panels[0], found.x, drift * found.x, said, style=":")
    ends = phase_end(results).sel(samples=largest)
    line(panels[1], ends, "linear", BLUE, "measured", "o")
    full = [theory.linear_phase_end_full(D, C, q, nu, 3, beta, eta) for nu in nus.values]
    law(panels[1], nus, full, "with the cubic part", GREEN, "-")
    law(panels[1], nus, [theory.linear_phase_end(D, C, nu, 3, eta) for nu in nus.values], "linear part only")
    found = line(panels[2], phase_gain(results), "samples", BLUE, "measured", "o-", "geometric")
    slope(panels[2], found, -0.5)
    panel(panels[0], "step", r"alignment $\alpha$", log="xy", ylim=(1e-7, 1))
    panel(panels[1], r"$\nu$", r"steps until $\alpha = \nu^{1/(p-1)}$", log="xy", ticks=nus)
    panel(panels[2], "samples N", "gained off the feature", log="xy", ticks=results.samples)
    return figure, rf"Left and middle: N = {largest}; right: the smallest $\nu$, geometric mean. {BAND}"


@picture
def coupling(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(3)
    names = {
        "worst_orthogonal": "value vector off the feature",
        "worst_logit_gap": "logits",
        "worst_gradient_gap": "gradient of v",
        "output_gap": "output",
    }
    for colour, (name, label) in zip(CYCLE, names.items(), strict=False):
        start = series(results[name], "samples", "geometric").middle[0]
        line(panels[0], results[name] / start, "samples", colour, label, "o-", "geometric")
    law(panels[0], results.samples, (results.samples / results.samples[0]) ** -0.5, "slope −1/2")
    ylabel = "distance / distance at the smallest N"
    panel(panels[0], "samples N", ylabel, "distance", "xy", ticks=results.samples)
    one, most = results.isel(samples=-1), int(results.samples[-1])
    kinds = {"realistic": ("same_mean", "alignment"), "idealised": ("ideal_same", "ideal_alignment")}
    for colour, (label, curves) in zip(CYCLE, kinds.items(), strict=False):
        for axes, curve in zip(panels[1:], curves, strict=True):
            line(axes, one[f"{curve}_curve"], "step", colour, label)
    line(panels[1], one.semi_same_curve, "step", GREEN, "semi-idealised", "--")
    panel(panels[1], "step", "same-group logit", f"logit, N = {most}")
    panel(panels[2], "step", r"alignment $\alpha$", f"alignment, N = {most}")
    return figure, f"Realistic, semi-idealised and idealised descent side by side. {BAND}"


@picture
def sizes(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(2, width=5.0, sharey=True)
    rows(panels[0], results.event2, "variation")
    rows(panels[1], results.test_error, "variation")
    panel(panels[0], "end of the second event (steps)", log="x")
    panel(panels[1], "error at the end", log="x")
    return figure, f"Population descent with one setting changed at a time. {BARS}"


# Transfer --------------------------------------------------------------------------------------------------------------

LEARNERS = {
    "one-step": (BLUE, "population attention, one step on v"),
    "one-step, learned": (SKY, "learned attention, one step on v"),
    "descent, learned": (GREEN, "learned attention, descent on v"),
    "initial": (RED, "untrained attention, one step on v"),
    "pair-counting": (ORANGE, "told the feature, pair counts"),
    "label-counting": (YELLOW, "told the feature, pair counts with labels"),
    "scratch": (PURPLE, "told the feature, network (T) from scratch"),
}


@picture
def transfer(results: xr.Dataset) -> Drawn:
    """The transfer curve that the paper proves: error over downstream samples, and samples needed over patches."""
    figure, panels = canvas(3, width=4.8, height=4.4)
    patches, target = results.patches.values, settings(results)["target_error"]
    for learner in results.learner.values.tolist():
        colour, label = LEARNERS[learner]
        one = results.sel(learner=learner)
        reached = one.status.notnull().any("seed").values
        for D, alpha in zip(patches[reached], np.linspace(0.35, 1, len(patches))[reached], strict=True):
            curve = _over_sizes(one.sel(patches=D))
            line(panels[0], curve, "size", colour, None, "o-", spread="none", alpha=alpha, markersize=3)
        needed = one.needed.isel(patches=reached)
        if np.isinf(needed).any():
            panels[1].plot([], [], "x", color=colour, label=f"{label}: not with {float(one.largest.max()):g}")
            continue
        line(panels[1], needed, "patches", colour, label, "o-")
        if learner.endswith("counting") or learner == "scratch":
            line(panels[2], needed * 4 / needed.patches, "patches", colour, label, "o-")
    spurious, coupons = (
        [theory.sign_samples(4, 16 * (1 - 4 / D), target) for D in patches],
        np.array([theory.coupon_samples(int(D), 4, 16 / D, target) for D in patches]),
    )
    law(panels[1], patches, spurious, "sign of one scalar", style=":")
    law(panels[1], patches, coupons, "coupon collecting")
    law(panels[2], patches, coupons * 4 / patches, "coupon collecting")
    reference(panels[0], y=target, label=f"error {target:g}")
    title = f"stronger: more patches ({patches[0]} to {patches[-1]})"
    panel(panels[0], "downstream samples", "test error", title, "xy", keyed=False)
    panel(panels[1], "patches D", f"samples for error {target:g}", "", "xy", patches, keyed=False)
    panel(panels[2], "patches D", f"samples a group for error {target:g}", "", "x", patches, keyed=False)
    shared_key(figure, panels)
    return figure, f"C = 4, q = 16/D, $d = D^2$ (d = D where attention was learned from a sample). {DOTS}"


def _over_sizes(results: xr.Dataset) -> xr.DataArray:
    """Errors over the downstream sample sizes, which are the same for all seeds."""
    return results.error.assign_coords(size=results["size"].max("seed"))


@picture
def transfer_learners(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(width=6.4, height=4.4)
    for colour, learner in zip(CYCLE, results.learner.values.tolist(), strict=False):
        style = "o-" if learner.startswith(("one-step", "descent")) else "s--"
        line(axes, _over_sizes(results.sel(learner=learner)), "size", colour, learner, style)
    reference(axes, y=theory.glm_error(*_facts(results)), label="linear models")
    panel(axes, "downstream samples", "test error", log="xy")
    return figure, f"Solid: with association. Dashed: without. {DOTS}"
