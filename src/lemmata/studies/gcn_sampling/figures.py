"""The document's figures 5.1 to 5.4, and the experiments that its theorems ask for."""

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import over_cells, trials
from lemmata.studies.gcn_sampling import pictures, theory
from lemmata.studies.gcn_sampling.data import ChungLu, DegreeGroups
from lemmata.studies.gcn_sampling.trials import (
    Alternative,
    Curvature,
    Draws,
    Existence,
    NearStart,
    OnFile,
    Training,
    Twins,
)
from lemmata.study import Figure, Scale, by_scale
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all

DATASETS = {1: (0.9, 0.1), 2: (0.7, 0.3), 3: (0.5, 0.5)}
"""p-hat of the three datasets of Figures 5.3 and 5.4; that of the second is not given."""

MODES = ("practical", "full")
SAMPLERS = (
    "effective",
    "groups",
    "independent",
    "symmetric",
    "unbiased",
    "none",
    "fastgcn",
    "ladies",
    "graphsage",
)


def template() -> Training:
    """Section 5.4: N = 2000, m = 500, 1500 labelled nodes, p* = (0.7, 0.3), S = 0.9 N, batches of 5, step 1e-3, dropout 0.4."""
    return Training()


def _sized(scale: Scale, **changes: Any) -> Training:
    """The document's setting; quick ones have 100 neurons and 300 labelled nodes, smoke ones a graph of 100 nodes."""
    smoke = {
        "width": 16, "labels": 60, "descent.steps": 400, "descent.logs": 3, "graph.sizes": (10, 90), "graph.degrees": (4, 1),
        "graph.features": 4, "graph.target_width": 4,
    }  # fmt: skip
    quick = {"width": 100, "labels": 300, "descent.steps": 4000}
    return put_all(template(), {**by_scale(scale, smoke, quick, {}), **changes})


def _seeds(scale: Scale, quick: int = 5, paper: int = 10) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, quick, paper)))


def _labels(scale: Scale) -> Axis:
    paper = (200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800)
    return axis("labels", by_scale(scale, (20, 60), (50, 100, 200, 400, 800), paper))


def _widths(scale: Scale) -> Axis:
    return axis("width", by_scale(scale, (16,), (25, 100, 400), (50, 100, 200, 500, 1000)))


def _profile(trial: Training, high: int) -> Training:
    """The degree of the group of few nodes; the others have degree 1."""
    return put_all(trial, {"graph.degrees": (high, 1)})


def _profiles(scale: Scale, quick: tuple[int, ...] = (2, 5, 10, 20)) -> Axis:
    return Axis("high_degree", by_scale(scale, (4,), quick, (2, 5, 10, 20, 50)), _profile)


def normed(results: xr.Dataset) -> xr.Dataset:
    """The norm of A* of each degree profile as coordinates: the largest row of the graphs that were drawn (where runs say it),
    and a typical row of highest degree, which needs no graph."""

    def kept(norms: xr.DataArray) -> tuple[str, np.ndarray]:
        return "high_degree", norms.mean([dim for dim in norms.dims if dim != "high_degree"]).values

    typical = kept(over_cells(results, lambda t: theory.sizes_of(t).norm))
    largest = kept(results["norm"]) if "norm" in results else typical
    return results.assign_coords(largest_row=largest, typical_row=typical)


SAME_STEPS = 1200
"""Steps of every training of Figure 5.1 where they do not grow with the labels."""


def _fig_1(scale: Scale) -> Sweep:
    trial = _sized(scale)
    trial = put_all(trial, {"descent.steps": max(trial.descent.steps, SAME_STEPS)})
    return Sweep(trial, (_profiles(scale), _labels(scale)), _seeds(scale, 8))


def _fig_2(scale: Scale) -> Sweep:
    return Sweep(_sized(scale), (_profiles(scale, (2, 20)), _widths(scale)), _seeds(scale))


def _labels_width(scale: Scale) -> Sweep:
    trial = _profile(_sized(scale), by_scale(scale, 4, 5, 10))
    return Sweep(trial, (_widths(scale), _labels(scale)), _seeds(scale))


def _dataset(trial: Training, number: int) -> Training:
    return put_all(trial, {"graph.target_scaling": DATASETS[number]})


def _datasets(sampler: str, balanced: bool):
    """Figures 5.3 and 5.4: p* = (0.9, 0.1), three datasets by p-hat; `balanced` has groups of equal size."""

    def sweep(scale: Scale) -> Sweep:
        trial = _sized(scale, sampler=sampler, scaling=(0.9, 0.1))
        if balanced:
            half = trial.graph.nodes // 2
            trial = put_all(trial, {"graph.sizes": (half, half)})
        labels = by_scale(scale, (60,), (200,) if balanced else (300,), (300, 600, 900, 1200, 1500))
        return Sweep(trial, (Axis("dataset", (1, 2, 3), _dataset), axis("labels", labels)), _seeds(scale))

    return sweep


def _at_rate(trial: Twins | Training, rate: float) -> Twins | Training:
    path = "training.rates" if isinstance(trial, Twins) else "rates"
    return put_all(trial, {path: (rate, rate)})


def _twin(scale: Scale) -> Sweep:
    paper = (0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
    rates = by_scale(scale, (0.5, 0.9), (0.3, 0.5, 0.7, 0.9, 0.97), paper)
    return Sweep(Twins(training=_sized(scale)), (Axis("rate", rates, _at_rate),), _seeds(scale))


def _chung_lu(scale: Scale) -> Sweep:
    """The twins on graphs whose degrees are expectations."""
    drawn = _sized(scale)
    held = {name: getattr(drawn.graph, name) for name in ("degrees", "sizes", "features", "target_width")}
    trial = Twins(training=replace(drawn, graph=ChungLu(**held)))
    rates = by_scale(
        scale, (0.5, 0.9), (0.3, 0.5, 0.7, 0.9, 0.97), (0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
    )
    return Sweep(trial, (Axis("rate", rates, _at_rate),), _seeds(scale))


def _file(scale: Scale) -> Sweep:
    """Samplers on a graph from a file (`--set training.graph.path=FILE.npz`), or on a small made one."""
    small = {"training.width": 16, "training.budget": 50, "training.descent.steps": 50}
    trial = put_all(OnFile(), by_scale(scale, small, {}, {}))
    names = ("effective", "groups", "none", "fastgcn", "graphsage")
    samplers = by_scale(scale, ("groups",), names, names)
    return Sweep(trial, (axis("training.sampler", samplers),), _seeds(scale))


def _undersampled(trial: Twins, group: str) -> Twins:
    return put_all(trial, {"training.rates": {"high": (0.5, 1.0), "low": (1.0, 0.5)}[group]})


def _rates(scale: Scale) -> Sweep:
    """The special case under (5.10): p* = 1 and groups of equal size; half of one group is sampled, all of the other."""
    half = _sized(scale).graph.nodes // by_scale(scale, 2, 4, 2)
    changes = {"graph.sizes": (half, half), "graph.target_scaling": (1.0, 1.0), "scaling": (1.0, 1.0)}
    trial = Twins(training=_sized(scale, **changes, labels=by_scale(scale, 60, 200, 1500)))
    return Sweep(trial, (Axis("undersampled", ("high", "low"), _undersampled),), _seeds(scale))


def _realisable(scale: Scale) -> Sweep:
    """Labels of the concept class (5.12) made with A*: OPT is 0."""
    rates = by_scale(scale, (0.5, 1.0), (0.5, 0.87, 0.97, 1.0), (0.3, 0.5, 0.7, 0.87, 0.95, 0.98, 1.0))
    steps = by_scale(scale, 400, 4000, 60_000)
    labels_of = {"graph.target": "concept", "graph.unit_labels": True, "graph.target_width": 2}
    trained = {"descent.steps": steps, "budget": steps, "descent.learning_rate": 5e-3, "dropout": 0.0}
    trial = _sized(scale, **labels_of, **trained, labels=by_scale(scale, 60, 800, 1500))
    return Sweep(_profile(trial, by_scale(scale, 4, 5, 5)), (Axis("rate", rates, _at_rate),), _seeds(scale))


def _samplers(scale: Scale) -> Sweep:
    trial = _profile(_sized(scale), by_scale(scale, 4, 5, 10))
    return Sweep(
        trial, (axis("sampler", by_scale(scale, ("groups",), SAMPLERS, SAMPLERS)),), _seeds(scale, 8)
    )


def _algorithm(scale: Scale) -> Sweep:
    trial = _profile(_sized(scale), by_scale(scale, 4, 5, 10))
    return Sweep(trial, (axis("mode", by_scale(scale, ("full",), MODES, MODES)),), _seeds(scale, 8))


def _sampled(scale: Scale) -> Sweep:
    rates = by_scale(scale, (0.5, 0.9), (0.5, 0.7, 0.9, 0.95, 0.98), (0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98))
    return Sweep(Draws(draws=by_scale(scale, 20, 200, 1000)), (axis("rate", rates),), _seeds(scale, 8, 20))


def _near_start(scale: Scale) -> Sweep:
    widths = by_scale(scale, (32, 64), (64, 128, 256, 512), (128, 256, 512, 1024, 2048))
    return Sweep(
        NearStart(repeats=by_scale(scale, 4, 20, 100)), (axis("width", widths),), _seeds(scale, 8, 20)
    )


def _existence(scale: Scale) -> Sweep:
    widths = by_scale(scale, (64, 256), (256, 1024, 4096, 16384), (256, 1024, 4096, 16384, 65536))
    return Sweep(
        Existence(starts=by_scale(scale, 10, 100, 400)), (axis("width", widths),), _seeds(scale, 8, 20)
    )


def _alternative(scale: Scale) -> Sweep:
    rounds, widths = by_scale(scale, 2, 6, 20), by_scale(scale, (8,), (32, 64), (64, 128, 256))
    return Sweep(Alternative(rounds=rounds), (axis("width", widths),), _seeds(scale, 5, 10))


def _curvature(scale: Scale) -> Sweep:
    lengths = by_scale(scale, (5, 20), (40, 400, 4000), (40, 400, 4000, 40_000))
    return Sweep(Curvature(rounds=by_scale(scale, 2, 4, 8)), (axis("inner", lengths),), _seeds(scale, 5, 10))


def moved(results: xr.Dataset) -> xr.Dataset:
    """The sizes of the moves, as a coordinate."""
    one = trials(results)[0]
    assert isinstance(one, NearStart)
    return results.assign_coords(move=list(one.moves)) if "move" in results.dims else results


def _agreement(scale: Scale) -> Sweep:
    graph = DegreeGroups(degrees=(6, 2), sizes=(10, 50), features=4, target_width=4)
    steps = by_scale(scale, 20, 60, 200)
    trial = Training(graph=graph, labels=40, dropout=0.0, precision="float64", budget=steps, rates=(0.6, 0.8))
    trial = put_all(trial, {"width": 12, "descent.steps": steps, "descent.learning_rate": 0.01})
    return Sweep(trial, (axis("engine", ("field", "whole")),), _seeds(scale, 3, 5))


_STEPS = {"printed: 4 steps a label": {}, "the same steps for all": {"budget": SAME_STEPS}}
_SCALE = {"labels as drawn": {}, "labels of unit second moment": {"graph.unit_labels": True}}
_BALANCED = {
    "p* = (0.5, 0.5), as explained": {"scaling": (0.5, 0.5)},
    "p* = (0.9, 0.1), all other settings kept": {},
    "p* = (0.5, 0.5), labels of unit second moment": {"scaling": (0.5, 0.5), "graph.unit_labels": True},
    "p* = (0.9, 0.1), labels of unit second moment": {"graph.unit_labels": True},
}
_DESIGNS = {
    "a random graph, as stated": {},
    "rows of A* X alike, as the proof needs": {"design": "even"},
}
_SET = "Stub matching; batches with replacement, dropout on both hidden layers, half the squared error; prediction with "

FIGURES: dict[str, Figure] = {
    figure.id: figure
    for figure in (
        Figure(
            "sampled",
            _sampled,
            pictures.sampled,
            "A graph of 120 nodes, degrees 12 and 2; many draws at each rate.",
        ),
        Figure(
            "fig5-1",
            _fig_1,
            pictures.over_labels,
            _SET + "A*. Degrees (d, 1); quick: 100 neurons.",
            normed,
            readings=_STEPS,
        ),
        Figure("fig5-2", _fig_2, pictures.over_width, _SET + "A*. Quick: 300 labelled nodes.", normed),
        Figure("labels-width", _labels_width, pictures.labels_by_width, _SET + "A*. One degree profile."),
        Figure("fig5-3a", _datasets("groups", False), pictures.datasets, _SET + "A*.", readings=_SCALE),
        Figure(
            "fig5-3b",
            _datasets("fastgcn", False),
            pictures.datasets,
            _SET + "A; 0.9 N draws a layer.",
            readings=_SCALE,
        ),
        Figure("fig5-4a", _datasets("groups", True), pictures.datasets, _SET + "A*.", readings=_BALANCED),
        Figure(
            "fig5-4b",
            _datasets("fastgcn", True),
            pictures.datasets,
            _SET + "A; 0.9 N draws a layer.",
            readings=_SCALE,
        ),
        Figure(
            "twin", _twin, pictures.twin, "Same graph, start, batches and dropout; one with A^s, one with A*."
        ),
        Figure(
            "chung-lu",
            _chung_lu,
            pictures.twin,
            "As twin; each pair is joined by itself, with a chance that goes as the product of its degrees.",
        ),
        Figure(
            "file",
            _file,
            pictures.on_file,
            "Two groups by degree, p* = (0.7, 0.3), S = 0.9 N; cross-entropy, all weights trained.",
        ),
        Figure("rates", _rates, pictures.rates, "p* = 1, groups of equal size; half of one group sampled."),
        Figure(
            "realisable",
            _realisable,
            pictures.realisable,
            "Labels of (5.12) made with A*; step 5e-3, no dropout.",
        ),
        Figure(
            "samplers",
            _samplers,
            pictures.samplers,
            "Each sampler's own matrix in prediction; labels made with A*.",
        ),
        Figure(
            "algorithm",
            _algorithm,
            pictures.algorithm,
            "Table 5.1 with eps_0 = 0.01 and C_0 = 30, rounds of 100 steps.",
        ),
        Figure(
            "near-start",
            _near_start,
            pictures.near_start,
            "Unit features; perturbations of the sizes of Table D.2.",
            moved,
        ),
        Figure(
            "existence",
            _existence,
            pictures.existence,
            "phi(z) = z - z^3/6 and Phi = 1; 100 fresh starts for the Gaussian law.",
            readings=_DESIGNS,
        ),
        Figure(
            "alternative",
            _alternative,
            pictures.alternative,
            "Labels of (5.12), full gradient steps of size 0.1, 40 a round; eta = 1e-4 in the lemma, C_0 = 30.",
        ),
        Figure(
            "curvature",
            _curvature,
            pictures.curvature,
            "As alternative, with 16 neurons and rounds of several lengths; signs frozen in the Hessian.",
        ),
        Figure("agreement", _agreement, pictures.agreement, "A small graph in float64, without dropout."),
    )
}
