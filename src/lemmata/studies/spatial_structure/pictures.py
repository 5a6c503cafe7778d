"""Drawings of the study's results."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullLocator

from lemmata.draw import attention
from lemmata.draw.style import BLACK, BLUE, GREEN, ORANGE, PURPLE, RED, SKY, canvas, caption
from lemmata.measure.compare import Verdict
from lemmata.results import settings, trials
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import grid_of
from lemmata.studies.spatial_structure.measures import (
    facts,
    phase_end,
    phase_gain,
    second_duration,
    second_event,
)

Verdicts = list[Verdict]
COLOURS = (BLUE, RED, GREEN, ORANGE, PURPLE, SKY, BLACK, "#8c8c8c")


def partitions(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, panels = canvas(2, width=2.6, height=2.6)
    for axes, name in zip(panels, ("contiguous", "random"), strict=True):
        group_of = results.group_of.sel(partition=name).isel(seed=0).values.astype(int)
        attention.partition(axes, group_of, grid_of(len(group_of)))
        axes.set_title(f"{name} groups")
    caption(figure, results, "Sixteen positions in four groups; the learner is shown neither.", verdicts)
    return figure


def misleading(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(1, width=4.2, height=4.2)
    one = results.isel(seed=0)
    coefficients, group_of = one.coefficients.values, one.group_of.values.astype(int)
    height, width = grid_of(len(group_of))
    axes.imshow(coefficients.reshape(height, width), cmap="cividis", vmin=-1.4, vmax=1.4, alpha=0.75)
    for position, value in enumerate(coefficients.astype(int)):
        row, column = divmod(position, width)
        axes.text(column, row, f"{value:+d}" if value else "0", ha="center", va="center", fontsize=8)
    for position in np.flatnonzero(group_of == int(one.signal_group)):
        row, column = divmod(int(position), width)
        axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=RED, linewidth=2.5))
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_title(f"label +1, coefficients sum to {int(one.total):+d}")
    caption(figure, results, "Coefficients <w*, X_j>; the signal group is outlined.", verdicts)
    return figure


def gaussian(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, panels = canvas(4, width=3.2, height=3.2)
    for colour, learner in zip((BLUE, ORANGE), results.learner.values, strict=False):
        _curve(panels[0], results.test_error_curve.sel(learner=learner), colour, f"{learner} learner")
        _curve(panels[1], results.auc_curve.sel(learner=learner), colour, f"{learner} learner")
    for axes, title in ((panels[0], "test error"), (panels[1], "same-group AUC of the logits")):
        axes.set_xscale("symlog")
        axes.set_xlabel("step")
        axes.set_title(title)
        axes.set_ylim(0, 1)
        axes.legend()
    panels[0].set_ylim(0, 0.6)
    panels[1].axhline(0.5, color="grey", linewidth=0.8, linestyle=":")
    one = results.sel(learner="wide").isel(seed=0)
    group_of = one.group_of.values.astype(int)
    attention.true_mask(panels[2], group_of)
    panels[2].set_title("pairs in a common group")
    image = attention.heat_map(panels[3], one.logits.values, group_of)
    panels[3].set_title(r"learned $P^\top P$ (wide)")
    figure.colorbar(image, ax=panels[3], shrink=0.8)
    caption(
        figure,
        results,
        "Gaussian patches, convolutional labels; maps in the order of the sets, seed 0.",
        verdicts,
    )
    return figure


def realistic(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    """Figure 4, the mosaic over the grid, and the logits growing over training."""
    figure, panels = canvas(5, 2, width=2.9, height=3.0)
    one = results.sel(partition="random").isel(seed=0)
    group_of = one.group_of.values.astype(int)
    logits = one.logits_curve.dropna("step", how="all")
    last = logits.isel(step=-1).values
    attention.true_mask(panels[0, 0], group_of)
    panels[0, 0].set_title("pairs in a common group")
    image = attention.heat_map(panels[0, 1], last, group_of)
    panels[0, 1].set_title("learned logits A, set order")
    figure.colorbar(image, ax=panels[0, 1], shrink=0.8)
    blocks = results.sel(partition="contiguous").isel(seed=0)
    tiles = blocks.logits_curve.dropna("step", how="all").isel(step=-1).values
    attention.mosaic(panels[0, 2], tiles, grid_of(len(tiles)))
    panels[0, 2].set_title("contiguous sets: mosaic of A")
    D, C, q = facts(results)
    for colour, name in zip((BLUE, ORANGE), results.partition.values, strict=False):
        _curve(panels[0, 3], results.test_error_curve.sel(partition=name), colour, f"{name} sets")
        _curve(panels[0, 4], results.cosine_curve.sel(partition=name), colour, f"cosine, {name}")
        _curve(panels[0, 4], results.exact_curve.sel(partition=name), colour, f"association, {name}", "--")
    panels[0, 3].axhline(theory.glm_error(D, C, q), color="grey", linestyle=":", label="linear models")
    panels[0, 3].set_title("test error")
    panels[0, 4].set_title("cosine(v, w*) and association")
    for axes in panels[0, 3:]:
        axes.set_xlabel("step")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    chosen = np.unique(np.linspace(0, logits.sizes["step"] - 1, 5).round().astype(int))
    maps = [logits.isel(step=i).values for i in chosen]
    titles = [f"A at step {int(logits.step[i])}" for i in chosen]
    attention.small_multiples(panels[1, : len(maps)], maps, titles, group_of)
    for axes in panels[1, len(maps) :]:
        axes.axis("off")
    rate = settings(results)["descent.attention_rate"]
    text = f"D = {D}, C = {C}, q = {q}; logits move {rate:g} times as fast as v; maps of seed 0; bands: range over seeds."
    caption(figure, results, text, verdicts)
    return figure


def encodings(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    """Logits, encodings and self-attention: what each knows of the groups, and how it errs."""
    figure, panels = canvas(3, 2, width=3.6, height=3.1)
    titles = {
        "logits": "logits A",
        "encodings": r"encodings: $P^\top P$",
        "self": r"self-attention: $P^\top P$",
    }
    D, C, q = facts(results)
    for colour, name in zip((BLUE, ORANGE, GREEN), results.attention.values, strict=True):
        one = results.sel(attention=name)
        for axes, curve in zip(panels[0], ("test_error", "exact", "auc"), strict=True):
            _curve(axes, one[f"{curve}_curve"], colour, str(name))
    panels[0, 0].axhline(theory.glm_error(D, C, q), color="grey", linestyle=":", label="linear models")
    names = ("test error", "rows whose top C is their group", "same-group AUC")
    for axes, title in zip(panels[0], names, strict=True):
        axes.set_title(title)
        axes.set_xlabel("step")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=7)
    for axes, name in zip(panels[1], results.attention.values, strict=True):
        one = results.sel(attention=name).isel(seed=0)
        image = attention.heat_map(axes, one.logits.values, one.group_of.values.astype(int))
        axes.set_title(titles[str(name)])
        figure.colorbar(image, ax=axes, shrink=0.8)
    text = f"D = {D}, C = {C}, q = {q}; maps of seed 0 at the end, in the order of the sets; bands: range over seeds."
    caption(figure, results, text, verdicts)
    return figure


def glm_floor(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(1)
    for colour, name in zip(COLOURS, results.inputs.values, strict=False):
        error = results.test_error.sel(inputs=name)
        axes.errorbar(
            results.dominance,
            error.mean("seed"),
            error.std("seed"),
            fmt="o",
            color=colour,
            label=f"fit on {name}",
        )
    predicted = results.predicted_error.isel(seed=0, inputs=0)
    axes.plot(results.dominance, predicted, "-", color=BLACK, label="equal-weight vote")
    axes.axhline(theory.GLM_FLOOR, color="grey", linestyle=":", label="1/8")
    axes.axvline(0.756, color="grey", linewidth=0.8)
    axes.set(
        xscale="log", xlabel="dominance of spurious patches q(D - C)/C²", ylabel="test error", ylim=(0, 0.45)
    )
    _ticks(axes, results.dominance.values)
    axes.legend(loc="lower right")
    caption(figure, results, "Linear models; bars: standard deviation over seeds.", verdicts)
    return figure


def without_association(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, panels = canvas(2)
    for colour, name in zip(COLOURS, results.solution.values, strict=False):
        for style, degree in zip(("-o", "--s", ":^"), results.degree.values, strict=False):
            one = results.sel(solution=name, degree=degree)
            panels[0].plot(
                one.strength, one.test_error.mean("seed"), style, color=colour, label=f"{name}, p = {degree}"
            )
            panels[1].plot(one.strength, one.overlap.mean("seed"), style, color=colour)
    panels[0].axhline(results.attrs["label_noise"], color="grey", linestyle=":", label="label noise")
    panels[0].set(yscale="log", ylabel="test error", xlabel="strength of the logits")
    panels[0].legend(fontsize=7)
    panels[1].set(
        ylabel="share of the top C inside the group", xlabel="strength of the logits", ylim=(-0.05, 1.05)
    )
    caption(figure, results, "Hand-built attention with v = w*.", verdicts)
    return figure


def events(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    """Population descent: errors, logits, alignment and drives, with the ends of the events."""
    names = list(results.diagonal.values) if "diagonal" in results.dims else [None]
    figure, panels = canvas(4, len(names), width=3.4, height=2.9, squeeze=False)
    D, C, q = facts(results)
    for row, name in zip(panels, names, strict=True):
        one = results if name is None else results.sel(diagonal=name)
        _curve(row[0], one.test_error_curve, BLUE, "test error")
        _curve(row[0], one.loss_curve, ORANGE, "loss")
        low, high = theory.plateau(D, C, q)
        row[0].axhspan(low, high, color="grey", alpha=0.25, label="linear models")
        _curve(row[1], one.same_curve, BLUE, r"$\gamma$ (same group)")
        _curve(row[1], one.cross_curve, RED, r"$\rho$ (across)")
        _curve(row[2], one.alignment_curve, GREEN, r"$\alpha$")
        _curve(row[3], one.signal_drive_curve, BLUE, "signal set")
        _curve(row[3], one.noise_drive_curve, RED, "rest of the image")
        beta = "" if name is None else f", beta = {name:g}"
        for axes, title in zip(row, ("error and loss", "logits", "alignment", "pull on alpha"), strict=True):
            first = float(one.event1.mean())
            if first > 0:
                axes.axvline(first, color="grey", linewidth=0.8, linestyle=":")
            axes.set_title(title + beta)
            axes.set_xlabel("step")
            axes.legend(fontsize=7)
    caption(figure, results, "Population descent as three numbers; dotted: end of the first event.", verdicts)
    return figure


def first_event(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(1)
    fields = settings(results)
    D, C, q = facts(results)
    for colour, degree in zip(COLOURS, results.degree.values, strict=False):
        starts = results.start.values
        predicted = np.array(
            [theory.event1_time(D, C, q, int(degree), fields["network.diagonal"], 1.0, a) for a in starts]
        )
        measured = predicted * (results.event1.sel(degree=degree) / 3000).mean("seed")
        axes.plot(starts, measured, "o", color=colour, label=f"measured, p = {degree}")
        axes.plot(starts, predicted, "-", color=colour, label=f"corrected: exponent {-(int(degree) - 2)}")
        printed = predicted[-1] * (starts / starts[-1]) ** -(degree - 1)
        axes.plot(starts, printed, ":", color=colour, label=f"printed: exponent {-(int(degree) - 1)}")
    axes.set(xscale="log", yscale="log", xlabel=r"starting alignment $\alpha^{(0)}$", ylabel=r"$\eta T_0$")
    axes.legend(fontsize=7)
    caption(
        figure, results, "End of the first event; the printed law is drawn through the last point.", verdicts
    )
    return figure


def loss_rate(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(1)
    for seed in results.seed.values:
        axes.plot(results.step, results.loss_curve.sel(seed=seed), color=BLUE, alpha=0.5)
    step = results.step.values[results.step.values > 0]
    middle = results.loss_curve.median("seed")
    window = middle.where((middle <= 1e-2) & (middle >= 1e-3), drop=True)
    if window.size:
        start = float(window.step[0] * window[0])
        axes.plot(step, start / step, ":", color=BLACK, label="1/t")
    axes.set(xscale="log", yscale="log", xlabel="step", ylabel="population loss", ylim=(1e-6, 1))
    axes.legend()
    caption(figure, results, "Population descent from learned attention, one line a seed.", verdicts)
    return figure


def frozen(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(1)
    for colour, arm in zip((RED, BLUE), results.attention.values, strict=False):
        _curve(axes, results.test_error_curve.sel(attention=arm), colour, f"attention {arm}")
    low, high = theory.plateau(*facts(results))
    axes.axhspan(low, high, color="grey", alpha=0.25, label="linear models")
    axes.set(xlabel="step", ylabel="test error", ylim=(0, 0.3))
    axes.legend()
    caption(figure, results, "The same data and start in both arms.", verdicts)
    return figure


def linear_phase(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, panels = canvas(3, width=4.2)
    fields = settings(results)
    D, C, q = facts(results)
    largest = results.samples.values[-1]
    for colour, nu in zip(COLOURS, results.linear.values, strict=False):
        curve = results.alignment_curve.sel(linear=nu, samples=largest).mean("seed")
        panels[0].plot(results.step, curve, color=colour, label=rf"$\nu$ = {nu:g}")
        drift = theory.linear_drift(D, C, nu, fields["descent.learning_rate"])
        panels[0].plot(results.step, drift * results.step, ":", color=colour)
    panels[0].set(xlabel="step", ylabel=r"$\alpha$", yscale="log", xscale="log", ylim=(1e-7, 1))
    panels[0].legend(fontsize=7)
    ends = phase_end(results).sel(samples=largest)
    nus = results.linear.values
    panels[1].errorbar(nus, ends.mean("seed"), ends.std("seed"), fmt="o", color=BLUE, label="measured")
    eta, beta = fields["descent.learning_rate"], fields["network.diagonal"]
    panels[1].plot(
        nus,
        [theory.linear_phase_end_full(D, C, q, nu, 3, beta, eta) for nu in nus],
        color=GREEN,
        label="with the cubic part",
    )
    panels[1].plot(
        nus,
        [theory.linear_phase_end(D, C, nu, 3, eta) for nu in nus],
        ":",
        color=BLACK,
        label="linear part only",
    )
    panels[1].set(xscale="log", yscale="log", xlabel=r"$\nu$", ylabel=r"steps until $\alpha = \nu^{1/(p-1)}$")
    _ticks(panels[1], nus)
    panels[1].legend(fontsize=7)
    gain, samples = phase_gain(results), results.samples.values
    panels[2].plot(samples, gain.transpose("samples", "seed"), "o", color=BLUE, alpha=0.5, markersize=3)
    middle = np.exp(np.log(gain).mean("seed"))  # pyright: ignore[reportArgumentType]
    panels[2].plot(samples, middle, "-", color=BLUE, label="measured")
    panels[2].plot(
        samples, float(middle[0]) * (samples / samples[0]) ** -0.5, ":", color=BLACK, label="N^-1/2"
    )
    panels[2].set(xscale="log", yscale="log", xlabel="samples N", ylabel="gained off the feature")
    _ticks(panels[2], samples)
    panels[2].legend(fontsize=7)
    caption(
        figure, results, "Dotted on the left: drift eta nu D C / 2. On the right: the smallest nu.", verdicts
    )
    return figure


def coupling(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, panels = canvas(3)
    names = {
        "worst_orthogonal": "value vector off the feature",
        "worst_logit_gap": "logits",
        "worst_gradient_gap": "gradient of v",
        "output_gap": "output",
    }
    samples = results.samples.values
    for colour, (name, label) in zip(COLOURS, names.items(), strict=False):
        values = results[name]
        middle = np.exp(np.log(values).mean("seed"))  # pyright: ignore[reportArgumentType]
        panels[0].plot(samples, middle / middle[0], "o-", color=colour, label=label)
    panels[0].plot(samples, (samples / samples[0]) ** -0.5, ":", color=BLACK, label="N^-1/2")
    panels[0].set(
        xscale="log", yscale="log", xlabel="samples N", ylabel="distance / distance at the smallest N"
    )
    _ticks(panels[0], samples)
    panels[0].legend(fontsize=7)
    one = results.isel(samples=-1)
    for axes, pairs in (
        (
            panels[1],
            (("same_mean", "realistic"), ("semi_same", "semi-idealised"), ("ideal_same", "idealised")),
        ),
        (panels[2], (("alignment", "realistic"), ("ideal_alignment", "idealised"))),
    ):
        for colour, (name, label) in zip(COLOURS, pairs, strict=False):
            _curve(axes, one[f"{name}_curve"], colour, label)
        axes.set_xlabel("step")
        axes.legend(fontsize=7)
    panels[1].set_title(f"same-group logit, N = {int(samples[-1])}")
    panels[2].set_title(f"alignment, N = {int(samples[-1])}")
    caption(figure, results, "Realistic, semi-idealised and idealised descent side by side.", verdicts)
    return figure


def transfer(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    """The transfer curve that the paper proves: error over downstream samples, and samples needed over patches."""
    figure, panels = canvas(2, width=5.4, height=4.0)
    colours = dict(
        zip(("one-step", "initial", "linear", "pair-counting"), (BLUE, RED, PURPLE, ORANGE), strict=True)
    )
    labels = {
        "one-step": "association, one step on v",
        "initial": "untrained attention, one step on v",
        "linear": "told the feature, linear",
        "pair-counting": "told the feature, groups from pair counts",
    }
    patches = results.patches.values
    for learner in results.learner.values:
        for D, alpha in zip(patches, np.linspace(0.35, 1, len(patches)), strict=True):
            one = results.sel(learner=learner, patches=D).mean("seed")
            label = labels[learner] if patches[-1] == D else None
            panels[0].plot(
                one["size"], one.error, "-o", color=colours[learner], alpha=alpha, label=label, markersize=3
            )
    panels[0].axhline(settings(results)["target_error"], color="grey", linestyle=":")
    panels[0].set(
        xscale="log",
        yscale="log",
        xlabel="downstream samples",
        ylabel="test error",
        title=f"darker: more patches ({patches[0]} to {patches[-1]})",
    )
    panels[0].legend(fontsize=7)
    for learner in results.learner.values:
        needed = results.needed.sel(learner=learner)
        if not np.isinf(needed).any():
            panels[1].errorbar(
                patches,
                needed.mean("seed"),
                needed.std("seed"),
                fmt="-o",
                color=colours[learner],
                label=labels[learner],
            )
        else:
            text = f"{labels[learner]}: never (more than {int(results.largest.sel(learner=learner).max())})"
            panels[1].plot([], [], "x", color=colours[learner], label=text)
    low = results.needed.sel(learner="one-step").mean("seed").values[0]
    panels[1].plot(patches, low * np.log(patches) / np.log(patches[0]), ":", color=BLACK, label="log D")
    panels[1].set(
        xscale="log",
        yscale="log",
        xlabel="patches D",
        ylabel=f"samples for error {settings(results)['target_error']}",
        ylim=(1, 1e4),
    )
    _ticks(panels[1], patches)
    panels[1].legend(fontsize=7, loc="upper left")
    caption(figure, results, "C = 4, q = 16/D, d = D^2, orthogonal new feature.", verdicts)
    return figure


def transfer_learners(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, axes = canvas(1, width=7.6, height=4.0)
    for colour, learner in zip(COLOURS, results.learner.values, strict=False):
        one = results.sel(learner=learner)
        associated = str(learner).startswith(("one-step", "descent"))
        axes.plot(
            one["size"].isel(seed=0),
            one.error.mean("seed"),
            "-o" if associated else "--s",
            color=colour,
            label=str(learner),
            markersize=4,
        )
    axes.axhline(float(results.glm_error.max()), color="grey", linestyle=":", label="linear models")
    axes.set(xscale="log", yscale="log", xlabel="downstream samples", ylabel="test error")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    caption(figure, results, "Solid: with association. Dashed: without.", verdicts)
    return figure


def patches(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    """The second event against the number of patches: how long it lasts, and what it leaves."""
    figure, panels = canvas(3, width=4.2)
    D = results.patches.values
    predicted = [
        theory.event2_duration(*t.data.facts, t.network.degree, float(t.network.diagonal), 1.0)
        for t in trials(results)
    ]
    panels[0].plot(D, predicted, color=GREEN, label="alpha at its optimum (derived)")
    panels[0].plot(D, np.full(len(D), predicted[0]), ":", color=BLACK, label="as printed: no D")
    shown = (
        (panels[0], second_duration(results), r"$\eta_A (t_{\gamma = 1} - T_0)$"),
        (panels[1], results.alignment_power, r"$\sum \alpha^p$ until the loss is 0.05"),
        (panels[2], results.same_score_curve.max("step") * 3 * results.patches, r"largest $D (C-1) \Gamma$"),
    )
    for axes, values, label in shown:
        axes.errorbar(D, values.mean("seed"), values.std("seed"), fmt="o", color=BLUE, label="measured")
        axes.set(xscale="log", yscale="log", xlabel="patches D", ylabel=label)
        _ticks(axes, D)
        axes.legend(fontsize=7)
    caption(
        figure, results, "Population descent with q D fixed; bars: standard deviation over seeds.", verdicts
    )
    return figure


def sizes(results: xr.Dataset, verdicts: Verdicts) -> Figure:
    figure, panels = canvas(2, width=5.0)
    names = [str(v) for v in results.variation.values]
    times, error = second_event(results), results.test_error
    place = np.arange(len(names))
    for axes, values, label in (
        (panels[0], times, "end of the second event (steps)"),
        (panels[1], error, "error at the end"),
    ):
        axes.errorbar(place, values.mean("seed"), values.std("seed"), fmt="o", color=BLUE)
        axes.set_xticks(place, names, rotation=60)
        axes.set_ylabel(label)
        axes.set_yscale("log")
    caption(figure, results, "Population descent with one setting changed at a time.", verdicts)
    return figure


def _curve(axes, curves: xr.DataArray, colour: str, label: str, style: str = "-") -> None:
    """Mean over seeds with the range as a band."""
    step = curves.step.values
    axes.plot(step, curves.mean("seed"), style, color=colour, label=label)
    axes.fill_between(step, curves.min("seed"), curves.max("seed"), color=colour, alpha=0.15, linewidth=0)


def _ticks(axes, values) -> None:
    """Marks at the values of a logarithmic axis and nowhere else."""
    axes.set_xticks(list(values), [f"{value:g}" for value in values])
    axes.xaxis.set_minor_locator(NullLocator())
