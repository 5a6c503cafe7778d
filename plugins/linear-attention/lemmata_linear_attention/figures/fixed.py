"""The fixed points (16) to (18), and what gradient flow conserves."""

from itertools import product

import numpy as np
import xarray as xr

from lemmata.draw.panels import Panel, panels
from lemmata.figure import (
    Claim,
    Figure,
    Made,
    at_most,
    every_run,
    identity,
    made,
    nothing_asked,
    proof,
    theorem,
)
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.sweep import Sweep, axis

from ..theory import distinct_conditions
from ..trials import Training
from .common import descent, labels, minimum, of_runs


def sweep(scale: Scale) -> Sweep:
    powers = by_scale(scale, (0.0, 1.0), (0.0, 0.5, 1.0), (0.0, 0.5, 1.0, 2.0))
    template = Training(heads=1, init=0.05, descent=descent(scale, 40_000, 20_000))
    return Sweep(template, (axis("data.power", powers),), tuple(range(by_scale(scale, 2, 5, 20))))


def nearest(results: xr.Dataset) -> xr.DataArray:
    """How far the learned map lies from the nearest of the 2^D fixed points, over the largest entry of A*."""

    size = results.sizes["row"]
    own = [over_cells(results, lambda t, d=d: minimum(t)[d, d]) for d in range(size)]
    best = xr.concat(own, "eigenvector", coords="minimal", compat="override")
    subsets = np.array(list(product((0, 1), repeat=size)))

    def gap(a: np.ndarray, best: np.ndarray) -> float:
        points = subsets[:, :, None] * np.diag(best)
        return np.min(np.max(abs(points - a), axis=(1, 2))) / best.max()

    return of_runs(gap, results.matrix, best, core=[["row", "column"], ["eigenvector"]])


def first_alone(factor: float) -> Made:
    """A head that has learned the first eigenvector, up to a factor."""
    first = lambda t, row, column: factor * minimum(t)[0, 0] * (row == 0) * (column == 0)  # noqa: E731
    return made(matrix=first, noise=0.0)


fixed_points = Figure(
    "fixed-points",
    "Where a single head ends",
    setup="D = 4, N = 31, one head of rank one, a start of 0.05. Its fixed points are fixed points of more heads, too.",
    sweep=sweep,
    labels=labels,
    picture=panels(
        Panel(
            nearest,
            "power",
            "power of the eigenvalues; 0: all are equal",
            "distance from the nearest of $2^D$ points",
            log="",
        ),
        caption="How far the end of a head lies from the fixed points of (16).",
    ),
    claims=[
        Claim(
            "fixed-points",
            "For every Lambda, each run ends at one of the 2^D fixed points, sums of a_d e_d e_d^T",
            theorem("(16) to (18)"),
            headline=True,
            number=nearest,
            holds=every_run(at_most(0.01, because="the points lie at least 0.3 apart")),
            conditions=nothing_asked,
            refuted_by=first_alone(1.03),
            upheld_by=first_alone(1.005),
        ),
        Claim(
            "fixed-points-distinct",
            "For distinct eigenvalues, each run ends at one of the 2^D fixed points, sums of a_d e_d e_d^T",
            theorem("(16) to (18)"),
            number=nearest,
            holds=every_run(at_most(0.01, because="the points lie at least 0.3 apart")),
            cells=lambda r: r.power > 0,
            conditions=distinct_conditions,
            refuted_by=first_alone(1.03),
            upheld_by=first_alone(1.005),
        ),
    ],
)


def balanced(scale: Scale) -> Sweep:
    template = Training(rank=2, heads=3, init=0.2, descent=descent(scale, 500, 10_000))
    return Sweep(template, (axis("data.power", (0.0, 1.0)),), tuple(range(by_scale(scale, 2, 5, 10))))


conserved = Figure(
    "conserved",
    "What gradient flow conserves",
    setup="D = 4, N = 31, three heads of rank two, a start of 0.2, steps of 0.05 tau.",
    sweep=balanced,
    labels=labels,
    picture=panels(
        Panel(lambda r: r.error_curve, "step", "step", "loss", arms="power", names="power {:g}", style="-"),
        Panel(lambda r: r.drift, "power", "power of the eigenvalues", "largest change of a balance", log="y"),
        caption="Left: the loss. Right: the change of v^2 - sum |k_r|^2 and of |k_r|^2 - |q_r|^2 over the training.",
    ),
    claims=[
        Claim(
            "conserved",
            "Gradient flow conserves v_i^2 - sum_r |k_ir|^2 and |k_ir|^2 - |q_ir|^2",
            proof("Appendix E.8"),
            number=lambda r: r.drift,
            holds=identity(1e-8, because="steps of fourth order; Euler steps of this length drift by 1e-3"),
            conditions=nothing_asked,
            refuted_by=made(drift=lambda t: 3e-8, noise=0.0),
            upheld_by=made(drift=lambda t: 3e-9, noise=0.0),
        ),
    ],
)
