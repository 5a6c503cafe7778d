"""The pictures: success maps with the predicted laws, steps over shares and errors, attention along training, the learned bias
beside the average winning margin, and a small graph with one node's attention."""

from collections.abc import Callable

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lemmata.draw.curves import BAND, DOTS, law, line, lines, reference, rows, slope
from lemmata.draw.graphs import graph
from lemmata.draw.palette import BLACK, BLUE, GREEN, GREY, ORANGE, RED, colours
from lemmata.draw.phase import critical, critical_points, success_map
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.results import over_cells, settings
from lemmata.studies.graph_transformer import theory
from lemmata.studies.graph_transformer.measures import steps_needed, success
from lemmata.studies.graph_transformer.trials import GraphTraining

LABELS = "labelled nodes"
STEPS = "steps to test hinge 0.05"
SHARE = "share of discriminative nodes $\\gamma_d$"
SMALLER = "Success: test hinge loss below 0.001. Bars: 95 % intervals."


# Success maps ----------------------------------------------------------------------------------------------------------


@picture
def success_over_share(results: xr.Dataset) -> Drawn:
    """Figure 3.3 (a), over gamma_d^-2 as in the document; beside it the critical number of labels with both laws."""
    figure, panels = canvas(2)
    rate = success(results)
    x = rate["discriminative"] ** -2.0
    _success(figure, panels[0], rate.assign_coords(x=x), x, "$\\gamma_d^{-2}$", "Remark 1: $\\gamma_d^{-2}$")
    _critical(panels[1], rate, "discriminative", lambda g: g**-2.0, "Remark 1: $\\gamma_d^{-2}$")
    _formula(panels[1], results, "discriminative")
    panel(panels[1], SHARE, "labels for half of the runs", "", "xy", ticks=rate["discriminative"])
    return figure, SMALLER


def _formula(axes: Axes, results: xr.Dataset, over: str) -> None:
    """The shape of (3.9), its constant fitted."""
    found = critical(success(results), over, "labelled")
    shape = over_cells(results.isel(labelled=0), lambda t: theory.vote_labels(*_vote(t), 0, t.data.nodes))
    law(
        axes,
        found.x,
        np.asarray(shape.values, float),
        "(3.9), constant fitted",
        GREEN,
        ":",
        through=found.known,
    )


def _vote(trial: GraphTraining) -> tuple[float, float, float]:
    return trial.data.discriminative, trial.data.confusion, trial.network.value_error


def _success(
    figure: Figure,
    axes: Axes,
    rate: xr.DataArray,
    predicted: xr.DataArray,
    label: str,
    name: str,
    title: str = "",
) -> None:
    mesh, _ = success_map(axes, rate, "x", "labelled", predicted=predicted, name=f"{name}, constant fitted")
    figure.colorbar(mesh, ax=axes, label="share of runs that succeed")
    panel(axes, label, LABELS, title)


def _critical(
    axes: Axes, rate: xr.DataArray, over: str, power: Callable, name: str, colour: str = BLUE, what: str = ""
) -> None:
    found = critical(rate, over, "labelled")
    critical_points(axes, found, colour, what or "measured")
    law(axes, found.x, power(found.x), f"{name}, constant fitted", colour, through=found.known)


@picture
def success_over_confusion(results: xr.Dataset) -> Drawn:
    """Figure 3.3 (b), over (1 - eps_S)^-2."""
    figure, panels = canvas(2)
    rate = success(results)
    x = (1 - rate["confusion"]) ** -2.0
    _success(figure, panels[0], rate.assign_coords(x=x), x, "$(1-\\epsilon_S)^{-2}$", "Remark 1")
    _critical(panels[1], rate, "confusion", lambda e: (1 - e) ** -2.0, "Remark 1: $(1-\\epsilon_S)^{-2}$")
    _formula(panels[1], results, "confusion")
    panel(panels[1], "confusion ratio $\\epsilon_S$", "labels for half of the runs", "", "y")
    return figure, SMALLER


@picture
def success_of_both(results: xr.Dataset) -> Drawn:
    """Figure 3.6: both learners on the same sets, the convolution over gamma_d^-4."""
    figure, panels = canvas(3, width=4.3)
    laws = (("convolution, core", RED, 4), ("transformer, core", BLUE, 2))
    for axes, (learner, colour, power) in zip(panels, laws, strict=False):
        rate = success(results.sel(learner=learner))
        x = rate["discriminative"] ** -float(power)
        name = f"$\\gamma_d^{{-{power}}}$"
        _success(figure, axes, rate.assign_coords(x=x), x, name, name, learner)
        _critical(panels[2], rate, "discriminative", lambda g, p=power: g ** -float(p), name, colour, learner)
    panel(panels[2], SHARE, "labels for half of the runs", "", "xy", ticks=results["discriminative"])
    return figure, SMALLER


# Steps -----------------------------------------------------------------------------------------------------------------


@picture
def steps_over_share(results: xr.Dataset) -> Drawn:
    """Figures 3.7 and B.6, in log-log."""
    figure, axes = canvas()
    found = steps_needed(results)
    shades = colours(results["learner"].values.tolist())
    for learner, colour in zip(results["learner"].values, shades, strict=True):
        seen = line(
            axes, found.sel(learner=learner), "discriminative", colour, str(learner), "o-", "geometric"
        )
        if learner == "convolution, core":
            middle = len(seen.x) // 2
            slope(axes, seen, -2, "(3.12): $\\gamma_d^{-2}$", at=middle, colour=RED, style="--")
            slope(axes, seen, -1, "mended: $\\gamma_d^{-1}$", at=middle, colour=GREY, style=":")
    panel(axes, SHARE, STEPS, "", "xy", ticks=results["discriminative"])
    return (
        figure,
        "The transformer's steps are said not to depend on $\\gamma_d$. Geometric mean, dots: seeds.",
    )


@picture
def steps_over_rate(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    found = line(axes, steps_needed(results), "learning_rate", BLUE, "measured", "o-", "geometric")
    middle = len(found.x) // 2
    slope(axes, found, -0.5, "(3.8): $\\eta^{-1/2}$", at=middle, colour=RED)
    slope(axes, found, -1, "mended: $\\eta^{-1}$", at=middle, colour=GREEN)
    panel(axes, "step size $\\eta$", STEPS, "", "xy", ticks=found.x)
    return figure, "Rival exponents through the middle. Geometric mean, dots: seeds."


STARTS = {
    "query_key_error": "initial error of keys and queries $\\delta$",
    "value_error": "initial error of values $\\sigma$",
    "hidden_std": "initial spread of neurons $\\xi$",
}


@picture
def steps_over_start(results: xr.Dataset) -> Drawn:
    figure, axes = canvas()
    over = next(name for name in STARTS if name in results.dims)
    found = line(axes, steps_needed(results), over, BLUE, "measured", "o-")
    if over == "query_key_error":
        law(
            axes,
            found.x,
            (1 - found.x) ** -0.5,
            "(3.8): $(1-\\delta)^{-1/2}$, fitted",
            GREEN,
            through=found.middle,
        )
    panel(axes, STARTS[over], STEPS, "", "x" if over == "hidden_std" else "")
    return figure, DOTS


# Along training --------------------------------------------------------------------------------------------------------


@picture
def flips(results: xr.Dataset) -> Drawn:
    """Figure 3.4: the test loss along training, twice the share of flipped test labels dotted."""
    figure, axes = canvas()
    lines(axes, results["test_hinge_curve"], "step", "flipped", "$\\epsilon_0$ = {:g}")
    shades = colours(results["flipped"].values.tolist())
    for share, colour in zip(results["flipped"].values, shades, strict=True):
        reference(axes, y=2 * float(results["test_flipped"].sel(flipped=share).mean()), colour=colour)
    axes.plot([], [], ":", color=GREY, label="$2\\epsilon_0$ of the test nodes")
    panel(axes, "step", "test hinge loss", "", ylim=(0, None))
    return figure, BAND


@picture
def attention(results: xr.Dataset) -> Drawn:
    """Figure 3.5: attention on class-relevant nodes, by graph and margin; and how fast the rest falls."""
    kinds = results["inner"].values
    figure, panels = canvas(len(kinds) + 1, width=4.2)
    for axes, kind in zip(panels, kinds, strict=False):
        for margin, style in zip(results["hinge_margin"].values, ("-", "--"), strict=False):
            curve = results["attention_curve"].sel(inner=kind, hinge_margin=margin)
            for group, colour in (("discriminative", BLUE), ("other", GREEN)):
                line(axes, curve.sel(group=group), "step", colour, f"{group}, margin {margin:g}", style)
            if margin == 1:
                line(axes, 1 - curve.mean("group"), "step", RED, "on all other nodes, margin 1", ":")
        _limits(axes, results)
        panel(axes, "step", "attention on relevant nodes", f"inner edges: {kind}", "x", ylim=(0, 1.05))
    off = 1 - results["attention_curve"].isel(inner=0).mean("group")
    for margin, style in zip(results["hinge_margin"].values, ("-", "--"), strict=False):
        found = line(panels[-1], off.sel(hinge_margin=margin), "step", RED, f"margin {margin:g}", style)
    slope(panels[-1], found, -1, "$1/t$", at=len(found.x) // 2, colour=GREY, style=":")
    panel(panels[-1], "step", "attention elsewhere", "rate of concentration", "xy")
    return figure, BAND


def _limits(axes: Axes, results: xr.Dataset) -> None:
    """Where attention on class-relevant nodes is said to end, for both groups of nodes."""
    confusion = settings(results)["data.confusion"]
    ends = {theory.attention_limit(confusion, own) for own in (True, False)}
    for label, end in zip(("limit (3.11)", None), sorted(ends), strict=False):
        reference(axes, y=end, label=label, colour=GREY)


# Positions -------------------------------------------------------------------------------------------------------------


@picture
def bias(results: xr.Dataset) -> Drawn:
    """The learned bias over distance beside the average winning margin, one panel a graph."""
    kinds = results["graph"].values
    figure, panels = canvas(len(kinds), width=4.4, squeeze=False)
    for axes, kind in zip(panels[0], kinds, strict=True):
        part = results.sel(graph=kind)
        _beside(axes, part["bias"], part["margin"], float(part["core"].median()), str(kind))
    return figure, f"The last distance pools all larger ones. {DOTS}"


def _beside(axes: Axes, bias: xr.DataArray, margin: xr.DataArray, core: float, title: str) -> None:
    """A bias and the average margin over the distances from 1 on, zeros at one height, the core distance marked."""
    bias, margin = (part.isel(bucket=slice(1, None)) for part in (bias, margin))
    line(axes, bias, "bucket", BLUE, "learned bias $b_z$", "o-", spread="runs")
    other = axes.twinx()
    line(other, margin, "bucket", RED, "average margin $\\bar\\Delta(z)$", "s--", spread="runs")
    _zeros_together(axes, other)
    axes.plot([], [], "s--", color=RED, label="average margin $\\bar\\Delta(z)$, right")
    reference(axes, x=core, label="core distance", colour=GREY)
    panel(axes, "distance $z$", "learned bias $b_z$", title, ticks=bias["bucket"])
    other.set_ylabel("average winning margin", color=RED)


def _zeros_together(*both: Axes) -> None:
    for axes in both:
        largest = max(abs(end) for end in axes.get_ylim())
        axes.set_ylim(-1.05 * largest, 1.05 * largest)


@picture
def learners(results: xr.Dataset) -> Drawn:
    """Four learners: the test loss along training, and the steps needed."""
    counts = results["labelled"].values
    figure, panels = canvas(len(counts), width=4.4, squeeze=False, sharey=True)
    for axes, count in zip(panels[0], counts, strict=True):
        lines(axes, results["test_hinge_curve"].sel(labelled=count), "step", "learner")
        panel(axes, "step", "test hinge loss", f"{count} labels", keyed=False)
    shared_key(figure, panels)
    return figure, BAND


@picture
def samplers(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(3, width=4.2)
    counts = results["labelled"].values
    for name, colour in zip(
        results["sampler"].values, colours(results["sampler"].values.tolist()), strict=True
    ):
        curve = results["test_hinge_curve"].isel(labelled=-1).sel(sampler=name)
        line(panels[0], curve, "step", colour, str(name), "--" if name == "near" else "-")
    for i, count in enumerate(counts):
        colour = (BLUE, RED, GREEN, ORANGE, BLACK)[i % 5]
        rows(
            panels[1],
            steps_needed(results).sel(labelled=count),
            "sampler",
            colour,
            f"{count} labels",
            0.15 * (i - (len(counts) - 1) / 2),
        )
        rows(
            panels[2],
            results["sampled_confusion"].sel(labelled=count),
            "sampler",
            colour,
            None,
            0.15 * (i - (len(counts) - 1) / 2),
        )
    panel(panels[0], "step", "test hinge loss", f"{counts[-1]} labels")
    panel(panels[1], STEPS)
    panel(panels[2], "confusion ratio of sampled nodes at the core distance")
    return figure, f"Where no steps are shown no run got there. {DOTS}"


@picture
def nearest(results: xr.Dataset) -> Drawn:
    kinds = results["graph"].values
    figure, panels = canvas(len(kinds), width=4.4, squeeze=False, sharey=True)
    for axes, kind in zip(panels[0], kinds, strict=True):
        lines(axes, results["test_hinge_curve"].sel(graph=kind), "step", "learner")
        panel(axes, "step", "test hinge loss", str(kind))
    return figure, BAND


@picture
def neurons(results: xr.Dataset) -> Drawn:
    """Lucky neurons along the features, sizes and gates, and the lengths of keys and queries."""
    figure, panels = canvas(4, width=3.7)
    along = results["along_curve"].isel(sign=0)
    for name, pattern, colour in (("$p_1$", 0, BLUE), ("$p_2$", 1, RED), ("$p_3$", 2, GREY)):
        line(panels[0], along.isel(pattern=pattern), "step", colour, f"lucky for +1, along {name}")
    _predicted(panels[0], results)
    for name, which, colour in (("lucky", 0, BLUE), ("others", 1, GREY)):
        line(panels[1], results["neuron_size_curve"].isel(lucky=which), "step", colour, name)
    line(panels[2], results["gates_curve"].min("sign"), "step", BLUE, "open gates of lucky neurons")
    line(
        panels[2],
        results["value_cosine_curve"].min("sign"),
        "step",
        RED,
        "cosine of value shift and lucky rows",
    )
    for label, name, style in (("key", "key_norm_curve", "-"), ("query", "query_norm_curve", "--")):
        for which, colour in ((0, BLUE), (1, RED), (2, GREY)):
            line(
                panels[3],
                results[name].isel(pattern=which),
                "step",
                colour,
                f"{label} of $\\mu_{which + 1}$",
                style,
            )
    panel(panels[0], "step", "mean component", "lucky neurons")
    panel(panels[1], "step", "squared size in the features", "neurons", "y")
    panel(panels[2], "step", "share, cosine", "gates and values", ylim=(-0.1, 1.05))
    panel(panels[3], "step", "length", "keys and queries")
    return figure, f"(B.91) with the attention measured. {BAND}"


def _predicted(axes: Axes, results: xr.Dataset) -> None:
    """The growth of the lucky neurons by the increments (B.91), up to where the loss is gone."""
    there = settings(results)
    steps = results["step"].values
    paid = float(results["attention_curve"].mean())
    first = float(results["along_curve"].isel(sign=0, pattern=0, step=0).mean())
    own = theory.lucky_growth(
        steps, there["network.hidden_std"], there["descent.learning_rate"], there["data.flipped"], paid,
        there["network.neurons"], there["network.value_error"], first,
    )  # fmt: skip
    top = 1.5 * float(results["along_curve"].max())
    kept = own <= top
    axes.plot(steps[kept], own[kept], ":", color=BLACK, label="(B.91), constants 1")


@picture
def growth(results: xr.Dataset) -> Drawn:
    """What lucky neurons gain, b at the core distance and the discriminative keys, in log-log over the steps."""
    figure, panels = canvas(3, width=4.3)
    there, steps = settings(results), results["step"]
    own = results["along_curve"].isel(sign=0, pattern=0)
    gained = (own - own.isel(step=0)).isel(step=slice(1, None))
    seen = line(panels[0], gained.where(gained > 0), "step", BLUE, "measured")
    paid = float(results["attention_curve"].isel(step=0).mean())
    xi, rate, flipped = (
        there[name] for name in ("network.hidden_std", "descent.learning_rate", "data.flipped")
    )
    printed = theory.lucky_growth_printed(seen.x, xi, rate, flipped, paid) - xi
    law(panels[0], seen.x, printed, "(B.9): $t^2$, fitted", RED, through=seen.middle)
    core = (
        results["bias_curve"]
        .where(results["bucket"] == results["core"])
        .max("bucket")
        .isel(step=slice(1, None))
    )
    seen = line(panels[1], core.where(core > 0), "step", BLUE, "measured")
    law(panels[1], seen.x, seen.x**6.0, "(B.25): $t^6$, fitted", RED, through=seen.middle)
    line(panels[2], results["key_norm_curve"].isel(pattern=slice(2)).min("pattern"), "step", BLUE, "measured")
    least = [theory.key_size_range(step, there["network.query_key_error"])[0] for step in steps.values[2:]]
    panels[2].plot(steps.values[2:], least, "--", color=RED, label="(B.45), constant 1")
    panel(panels[0], "step", "gained along $p_1$", "lucky neurons", "xy")
    panel(panels[1], "step", "$b$ at the core distance", "positions", "xy", ylim=(1e-5, 10))
    panel(panels[2], "step", "length", "discriminative keys", "x")
    return figure, BAND


@picture
def drawing(results: xr.Dataset) -> Drawn:
    """A small graph, its nodes as large as the attention that one node pays them, before and after training."""
    one = results.isel(seed=0)
    figure, panels = canvas(2, width=5.0, height=4.6)
    joined = np.asarray(one["distance"].values == 1, float)
    kinds = np.minimum(one["pattern"].values.astype(int), 2).tolist()
    node, places = int(one["node"]), None
    label = "+1" if float(one["label"].values[node]) > 0 else "−1"
    for axes, when, title in zip(panels, (0, 1), ("before training", "after training"), strict=True):
        weights = np.nan_to_num(one["weights"].values[when])
        names = ("$\\mu_1$ (+1)", "$\\mu_2$ (−1)", "others")
        places = graph(axes, joined, kinds, names, places=places, outlined=[node], sizes=25 + 2500 * weights)
        axes.set_title(title)
    shared_key(figure, panels)
    return figure, f"Size: attention of the outlined node, whose label is {label}."


@picture
def agreement(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(2)
    curves = results["bias_curve"]
    for simulator, colour, style in (("nodes", BLUE, "-"), ("patterns", RED, "--")):
        line(panels[0], curves.isel(bucket=1).sel(simulator=simulator), "step", colour, simulator, style)
    gap = abs(curves.sel(simulator="nodes") - curves.sel(simulator="patterns")).max("bucket") + 1e-18
    line(panels[1], gap, "step", BLUE, "largest difference of b")
    panel(panels[0], "step", "$b_1$")
    panel(panels[1], "step", "difference", "", "y")
    return figure, f"Nodes themselves, and counts of patterns at distances. {BAND}"


# Variants (appendix B.5) -----------------------------------------------------------------------------------------------


@picture
def clusters(results: xr.Dataset) -> Drawn:
    """Test loss along training for every kind of position, and attention on the own cluster."""
    figure, panels = canvas(2, width=4.6)
    lines(panels[0], results["test_hinge_curve"], "step", "position")
    lines(panels[1], results["inside_curve"], "step", "position")
    reference(panels[1], y=0.5, label="half of the attention", colour=GREY)
    panel(panels[0], "step", "test hinge loss", keyed=False)
    panel(panels[1], "step", "attention on the own cluster", ylim=(0, 1.02), keyed=False)
    shared_key(figure, panels)
    return figure, BAND


@picture
def graph_labels(results: xr.Dataset) -> Drawn:
    """Test error of graphs along training, with and without distances; and the bias that is learned."""
    figure, panels = canvas(2, width=4.6)
    names = {"transformer": "with distances", "no-position": "without"}
    lines(panels[0], results["test_error_curve"], "step", "kind", lambda kind: names[kind])
    bias = results["bias"].sel(kind="transformer").isel(bucket=slice(1, None))
    for k, run in enumerate(bias.transpose("seed", "bucket").values):
        panels[1].plot(
            bias["bucket"], run, "o-", color=BLUE, label=None if k else "learned bias $b_z$, every run"
        )
    reference(panels[1], x=2, label="distance of the voters", colour=GREY)
    panel(panels[0], "step", "share of graphs told wrongly", ylim=(0, None))
    panel(panels[1], "distance $z$", "learned bias $b_z$", ticks=bias["bucket"])
    return figure, f"Left: {BAND}"


@picture
def four_classes(results: xr.Dataset) -> Drawn:
    """Loss and errors along training, and the bias of each network beside the margin of its sign."""
    figure, panels = canvas(3, width=4.4)
    line(panels[0], results["test_hinge_curve"], "step", BLUE, "test hinge loss")
    line(panels[0], results["test_error_curve"], "step", RED, "nodes with a wrong sign", "--")
    panel(panels[0], "step", "loss, share", ylim=(0, None))
    for output, axes in enumerate(panels[1:]):
        margin = results["margin"].isel(output=output)
        core = 1 + int(np.argmax(margin.isel(bucket=slice(1, None)).median("seed").values))
        _beside(axes, results["bias"].isel(output=output), margin, core, f"sign {output + 1}")
    return figure, f"The last distance pools all larger ones. {DOTS}"


# Real graphs -----------------------------------------------------------------------------------------------------------


@picture
def tables(results: xr.Dataset) -> Drawn:
    """Discriminative nodes by class, spectra, and normalised margins over distance, for both readings."""
    figure, panels = canvas(3, width=4.3)
    one = results.isel(seed=0)
    for spectrum, colour in (("moment", BLUE), ("covariance", RED)):
        part = one.sel(spectrum=spectrum)
        shares = part["shares"].isel(itself=0).values
        panels[0].plot(1 + np.arange(len(shares)), 100 * shares, "o", color=colour, label=spectrum)
        for row in part["spectrum_of"].isel(itself=0).values:
            panels[1].plot(1 + np.arange(len(row)), np.maximum(row, 1e-9), color=colour, linewidth=0.9)
        for itself, style in ((False, "o-"), (True, "s--")):
            with_it = part.sel(itself=itself)
            said = f"{spectrum}{', itself counted' if itself else ''}: {100 * (1 - float(with_it['inconsistent'])):.1f} %"
            panels[2].plot(
                1 + np.arange(one.sizes["distance"]),
                with_it["normalised"].values,
                style,
                color=colour,
                label=said,
            )
    panel(
        panels[0], "class", "discriminative nodes, %", ticks=1 + np.arange(one.sizes["class"]), ylim=(0, 102)
    )
    panel(
        panels[1],
        "rank",
        "eigenvalue over the largest",
        "one line a class",
        "y",
        ticks=(1, 5, 10, 15, 20),
        keyed=False,
    )
    panel(
        panels[2],
        "distance $z$",
        "normalised average margin",
        key_title="nodes with a winning margin at the core",
    )
    return figure, "Nothing is random here. Eigenvectors of second moments, or of covariances, of each class."
