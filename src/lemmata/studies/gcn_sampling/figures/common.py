"""What the experiments share: the settings of Section 5.4, their three scales, the axes, and reasons for tolerances."""

from typing import Any

import numpy as np
import xarray as xr

from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling.trials import Training, Twins
from lemmata.sweep import Axis, axis
from lemmata.trial import put_all

RAW, NORMALISED = "test error", "test error / mean of y²"
SETUP = "Stub matching; batches with replacement, dropout on both hidden layers, half the squared error; prediction with "

ORDER = "only the sign is claimed"
CONSTANT = "constant 1; logarithms of the bound are left out"
FIFTIETH = "a fiftieth of what guessing 0 costs"


def template() -> Training:
    """Section 5.4: N = 2000, m = 500, 1500 labelled nodes, p* = (0.7, 0.3), S = 0.9 N, batches of 5, step 1e-3, dropout 0.4."""
    return Training()


def sized(scale: Scale, **changes: Any) -> Training:
    """The paper's setting; quick ones have 100 neurons and 300 labelled nodes, smoke ones a graph of 100 nodes."""
    smoke = {
        "width": 16, "labels": 60, "descent.steps": 400, "descent.logs": 3, "graph.sizes": (10, 90), "graph.degrees": (4, 1),
        "graph.features": 4, "graph.target_width": 4,
    }  # fmt: skip
    quick = {"width": 100, "labels": 300, "descent.steps": 4000}
    return put_all(template(), {**by_scale(scale, smoke, quick, {}), **changes})


def seeds(scale: Scale, quick: int = 5, paper: int = 10) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, quick, paper)))


def label_axis(scale: Scale) -> Axis:
    paper = (200, 400, 600, 800, 1000, 1200, 1400, 1600, 1800)
    return axis("labels", by_scale(scale, (20, 60), (50, 100, 200, 400, 800), paper))


def width_axis(scale: Scale) -> Axis:
    return axis("width", by_scale(scale, (16,), (25, 100, 400), (50, 100, 200, 500, 1000)))


def with_degree(trial: Training, high: int) -> Training:
    """Set the degree of the group of few nodes; the others have degree 1."""
    return put_all(trial, {"graph.degrees": (high, 1)})


def at_rate(trial: Twins | Training, rate: float) -> Twins | Training:
    """Sample both groups at this rate."""
    path = "training.rates" if isinstance(trial, Twins) else "rates"
    return put_all(trial, {path: (rate, rate)})


def with_noise(results: xr.Dataset) -> xr.Dataset:
    """Add the relative variance of an entry of A^s, N/S - 1, and the share left out, 1 - S/N, beside the rate."""
    rate = np.asarray(results["rate"].values, float)
    return results.assign_coords(noise=("rate", 1 / rate - 1), left_out=("rate", 1 - rate))
