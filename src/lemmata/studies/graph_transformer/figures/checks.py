"""Two simulators of the same training, a graph small enough to be drawn, and the survey of a graph file."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, line
from lemmata.draw.graphs import graph
from lemmata.draw.palette import BLUE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import Claim, Figure, Made, identity, made, ours
from lemmata.measure.columns import chosen
from lemmata.scale import Scale, by_scale
from lemmata.studies.graph_transformer.figures.common import labels, small, template
from lemmata.studies.graph_transformer.trials import Surveying
from lemmata.sweep import Sweep, axis
from lemmata.trial import put_all

# Two ways to the same training -----------------------------------------------------------------------------------------

ROUNDING = "rounding over the steps of a run"


def agreement_sweep(scale: Scale) -> Sweep:
    changes = {
        "precision": "float64",
        "data.feature_noise": 0.0,
        "descent.steps": by_scale(scale, 12, 100, 300),
    }
    trial = put_all(small(template()), changes)
    return Sweep(trial, (axis("simulator", ("nodes", "patterns")),), tuple(range(by_scale(scale, 2, 3, 5))))


def apart(r: xr.Dataset) -> xr.DataArray:
    """The difference of b along training between the two simulators."""
    return abs(chosen(r.bias_curve, simulator="nodes") - chosen(r.bias_curve, simulator="patterns"))


@picture
def draw_agreement(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(2)
    for simulator, colour, style in (("nodes", BLUE, "-"), ("patterns", RED, "--")):
        curve = results.bias_curve.isel(bucket=1).sel(simulator=simulator)
        line(panels[0], curve, "step", colour, simulator, style)
    line(panels[1], apart(results).max("bucket") + 1e-18, "step", BLUE, "largest difference of b")
    panel(panels[0], "step", "$b_1$")
    panel(panels[1], "step", "difference", "", "y")
    return figure, f"Nodes themselves, and counts of patterns at distances. {BAND}"


def off(difference: float) -> Made:
    """Simulators whose b differ by this much."""
    return made(bias_curve=lambda t, step: difference * (t.simulator == "nodes"))


agreement = Figure(
    "agreement", "Two ways to the same training", "A small graph without feature noise, in double precision.",
    agreement_sweep, draw_agreement, labels=labels,
    claims=[
        Claim(
            "bias-sum", "The sum of b is conserved", ours("README, decisions (exact)"),
            number=lambda r: r.bias_drift, holds=identity(1e-10, because=ROUNDING),
            refuted_by=made(bias_drift=lambda t: 3e-10), upheld_by=made(bias_drift=lambda t: 5e-11),
        ),
        Claim(
            "two-ways", "Training on counts of patterns at distances gives the same b as training on the nodes themselves",
            ours("README, two ways (exact)"),
            number=lambda r: apart(r).max(("step", "bucket")).expand_dims(simulator=r.simulator),
            holds=identity(1e-9, because=ROUNDING),
            refuted_by=off(3e-9), upheld_by=off(5e-10),
        ),
    ],
)  # fmt: skip

# A small graph ---------------------------------------------------------------------------------------------------------


def drawing_sweep(scale: Scale) -> Sweep:
    """A graph small enough to be drawn."""
    tiny = {
        "data.nodes": 48, "data.patterns": 5, "data.degree": 5, "data.inner_degree": 2, "data.labelled": 24,
        "data.confusion": 0.2, "sampled": 12, "tested": 24, "descent.batch": 12, "network.neurons": 100,
        "probes": "drawing", "descent.logs": 2,
        "descent.steps": by_scale(scale, 20, 600, 600), "hinge_margin": 5.0,
    }  # fmt: skip
    return Sweep(put_all(template(), tiny), (), (0,))


@picture
def draw_graph(results: xr.Dataset) -> Drawn:
    """A small graph, its nodes as large as the attention that one node pays them, before and after training."""
    one = results.isel(seed=0)
    figure, panels = canvas(2, width=5.0, height=4.6)
    joined = np.asarray(one.distance.values == 1, float)
    kinds = np.minimum(one.pattern.values.astype(int), 2).tolist()
    node, places = int(one.node), None
    label = "+1" if float(one.label.values[node]) > 0 else "−1"
    names = ("$\\mu_1$ (+1)", "$\\mu_2$ (−1)", "others")
    for axes, weights, title in zip(
        panels, one.weights.values, ("before training", "after training"), strict=True
    ):
        sizes = 25 + 2500 * np.nan_to_num(weights)
        places = graph(axes, joined, kinds, names, places=places, outlined=[node], sizes=sizes)
        axes.set_title(title)
    shared_key(figure, panels)
    return figure, f"Size: attention of the outlined node, whose label is {label}."


drawing = Figure(
    "drawing", "A small graph, and what one node attends to", "A graph of 48 nodes, margin 5.", drawing_sweep, draw_graph,
)  # fmt: skip

# Real graphs -----------------------------------------------------------------------------------------------------------


def tables_sweep(scale: Scale) -> Sweep:
    """The tables of a graph file (`--set path=...`), or of a made graph of three classes; both readings of both choices."""
    axes = axis("spectrum", ("moment", "covariance")), axis("itself", (False, True))
    return Sweep(Surveying(last=by_scale(scale, 4, 12, 12)), axes, (0,))


@picture
def draw_tables(results: xr.Dataset) -> Drawn:
    """Discriminative nodes by class, spectra, and normalised margins over distance, for both readings."""
    figure, (by_class, spectra, margins) = canvas(3, width=4.3)
    one = results.isel(seed=0)
    classes, distances = (1 + np.arange(one.sizes[dim]) for dim in ("class", "distance"))
    for spectrum, colour in (("moment", BLUE), ("covariance", RED)):
        part = one.sel(spectrum=spectrum)
        by_class.plot(classes, 100 * part.shares.isel(itself=0).values, "o", color=colour, label=spectrum)
        for row in part.spectrum_of.isel(itself=0).values:
            spectra.plot(1 + np.arange(len(row)), np.maximum(row, 1e-9), color=colour, linewidth=0.9)
        for itself, style in ((False, "o-"), (True, "s--")):
            with_it = part.sel(itself=itself)
            share = f"{100 * (1 - float(with_it.inconsistent)):.1f} %"
            name = f"{spectrum}{', itself counted' if itself else ''}: {share}"
            margins.plot(distances, with_it.normalised.values, style, color=colour, label=name)
    panel(by_class, "class", "discriminative nodes, %", ticks=classes, ylim=(0, 102))
    ranks = {"ticks": (1, 5, 10, 15, 20), "keyed": False}
    panel(spectra, "rank", "eigenvalue over the largest", "one line a class", "y", **ranks)
    panel(
        margins,
        "distance $z$",
        "normalised average margin",
        key_title="nodes with a winning margin at the core",
    )
    return figure, "Nothing is random here. Eigenvectors of second moments, or of covariances, of each class."


tables = Figure(
    "tables", "Tables B.1 to B.5 and B.8 of a graph: discriminative nodes, margins, balance",
    "Appendix B.1.1; a made graph unless a file is named.", tables_sweep, draw_tables,
)  # fmt: skip
