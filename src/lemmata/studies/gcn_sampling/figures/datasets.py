"""Figures 5.3 and 5.4: on which of three datasets, made with three column scalings, a sampler predicts best."""

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr

from lemmata.draw.curves import rows
from lemmata.draw.palette import BLUE, GREY, ORANGE
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, experiment, made, ours, positive
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.trend import smallest
from lemmata.results import trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling.figures.common import NORMALISED, ORDER, RAW, SETUP, seeds, sized
from lemmata.studies.gcn_sampling.theory import theorem_conditions
from lemmata.studies.gcn_sampling.trials import Training
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all

DATASETS = {1: (0.9, 0.1), 2: (0.7, 0.3), 3: (0.5, 0.5)}
"""p-hat of the three datasets of Figures 5.3 and 5.4; that of the second is not printed."""


def of_dataset(trial: Training, number: int) -> Training:
    return put_all(trial, {"graph.target_scaling": DATASETS[number]})


def trained_with(sampler: str, balanced: bool) -> Callable[[Scale], Sweep]:
    """Figures 5.3 and 5.4: p* = (0.9, 0.1), three datasets by p-hat; `balanced` has groups of equal size."""

    def sweep(scale: Scale) -> Sweep:
        trial = sized(scale, sampler=sampler, scaling=(0.9, 0.1))
        if balanced:
            half = trial.graph.nodes // 2
            trial = put_all(trial, {"graph.sizes": (half, half)})
        labels = by_scale(scale, (60,), (200,) if balanced else (300,), (300, 600, 900, 1200, 1500))
        return Sweep(trial, (Axis("dataset", (1, 2, 3), of_dataset), axis("labels", labels)), seeds(scale))

    return sweep


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The three datasets, raw and normalised, and the scale of their labels."""
    figure, panels = canvas(3, width=3.6)
    last = results.isel(labels=-1)
    last = last.assign_coords(dataset=[_named(results, number) for number in results["dataset"].values])
    rows(panels[0], last["error"], "dataset", BLUE, bar=np.mean)
    rows(panels[1], last["normalised_error"], "dataset", BLUE, "own matrix", -0.12, bar=np.mean)
    rows(panels[1], last["whole_error"], "dataset", ORANGE, "with A", 0.12, bar=np.mean)
    rows(panels[2], last["label_moment"], "dataset", GREY, bar=np.mean)
    labels = int(results["labels"].values[-1])
    panel(panels[0], RAW, "", f"{labels} labelled nodes", "")
    panel(panels[1], NORMALISED, "", "", "x")
    panel(panels[2], "mean of y²", "", "scale of the labels", "")
    for axes in panels[1:]:
        axes.set_yticklabels([])
    return (
        figure,
        "Bars: mean over seeds, dots: seeds. Datasets differ in the column scaling that made their labels.",
    )


def _named(results: xr.Dataset, number: int) -> str:
    scaling = trial_at(results, dataset=number).graph.target_scaling
    return f"{number}: p̂ = ({', '.join(f'{p:g}' for p in scaling)})"


def ahead(results: xr.Dataset, dataset: int, variable: str) -> Estimate:
    """By how much the error on the nearest other dataset exceeds that on the claimed best one, in parts of the latter, at
    most labels."""
    values = results[variable].isel(labels=-1, drop=True)
    own = chosen(values, dataset=dataset)
    others = [chosen(values, dataset=one) / own - 1 for one in values["dataset"].values if one != dataset]
    return smallest(others)


def best_on(dataset: int, variable: str):
    """Errors that are a third larger on the other datasets."""

    def error(t) -> float:
        return 0.6 if t.graph.target_scaling == DATASETS[dataset] else 0.8

    return made({variable: error})


def claims(figure: str, where: str, method: str, graph: str, best: int, other: int) -> list[Claim]:
    """That a sampler predicts best on one dataset: by the test error as it is, and over the labels' second moment."""
    proxy = "100 neurons and fewer labels; p-hat of dataset 2 is not printed"

    def claim(word: str, variable: str, said: str) -> Claim:
        raw = variable == "error"
        return Claim(
            f"{figure}-{word}", f"On {graph} graphs {method} has the smallest {said} on dataset {best}",
            experiment(where, proxy=proxy) if raw else ours(where), headline=figure == "fig5-3a" and not raw,
            number=partial(ahead, dataset=best, variable=variable), holds=positive(because=ORDER),
            conditions=theorem_conditions,
            refuted_by=best_on(other, variable), upheld_by=best_on(best, variable),
        )  # fmt: skip

    return [
        claim("raw", "error", "test error"),
        claim("normalised", "normalised_error", "test error over the labels' second moment"),
    ]


SCALE = {"labels as drawn": {}, "labels of unit second moment": {"graph.unit_labels": True}}
BALANCED = {
    "p* = (0.5, 0.5), as explained": {"scaling": (0.5, 0.5)},
    "p* = (0.9, 0.1), all other settings kept": {},
    "p* = (0.5, 0.5), labels of unit second moment": {"scaling": (0.5, 0.5), "graph.unit_labels": True},
    "p* = (0.9, 0.1), labels of unit second moment": {"graph.unit_labels": True},
}
OURS, FASTGCN = "training with the paper's sampling", "training with FastGCN"

fig5_3a = Figure(
    "fig5-3a", "Three datasets on an unbalanced graph, the paper's sampling", SETUP + "A*.",
    trained_with("groups", False), draw, readings=SCALE,
    claims=claims("fig5-3a", "Figure 5.3 (a)", OURS, "unbalanced", 1, 2),
)  # fmt: skip

fig5_3b = Figure(
    "fig5-3b", "Three datasets on an unbalanced graph, FastGCN", SETUP + "A; 0.9 N draws a layer.",
    trained_with("fastgcn", False), draw, readings=SCALE,
    claims=claims("fig5-3b", "Figure 5.3 (b)", FASTGCN, "unbalanced", 1, 3),
)  # fmt: skip

fig5_4a = Figure(
    "fig5-4a", "Three datasets on a balanced graph, the paper's sampling", SETUP + "A*.",
    trained_with("groups", True), draw, readings=BALANCED,
    claims=claims("fig5-4a", "Figure 5.4 (a)", OURS, "balanced", 3, 1),
)  # fmt: skip

fig5_4b = Figure(
    "fig5-4b", "Three datasets on a balanced graph, FastGCN", SETUP + "A; 0.9 N draws a layer.",
    trained_with("fastgcn", True), draw, readings=SCALE,
    claims=claims("fig5-4b", "Figure 5.4 (b)", FASTGCN, "balanced", 3, 2),
)  # fmt: skip
