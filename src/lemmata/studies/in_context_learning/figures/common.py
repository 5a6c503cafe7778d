"""What the experiments share: the settings of Section 6.5, their three scales, labels, and what several figures measure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from lemmata.measure.columns import chosen
from lemmata.scale import Scale, by_scale
from lemmata.studies.in_context_learning import theory
from lemmata.studies.in_context_learning.trials import (
    DIRECTIONS,
    NORMS,
    ORDERS,
    Classic,
    Layer,
    Stack,
)
from lemmata.trial import put_all

REACHED = 0.05
"""The hinge loss on unseen tasks from which a training counts as done."""
LAYER = "m = 60 neurons with votes 1/m, delta = 0.1, step size 1, 120 prompts a step, M'_2 = M_2."
UNSAID = "the paper does not give m, B, eta, T and delta; those here are ours"
UNSAID_OUT = f"{UNSAID}; M'_2 = 24, where the print may mean 3"
ZERO_WHY = "of order eps; two thousand prompts tell a loss of 0.05 from more with certainty"
ONE_WHY = "the printed order with its constant set to 1"
KINDS = {
    "partners": "mixed from patterns that meet",
    "apart": "mixed from patterns that do not",
    "sums": "sums 2, 1, 1",
}


# What is run -----------------------------------------------------------------------------------------------------------


def template() -> Layer:
    """Section 6.5: d_X = d_Y = 30, beta = 3, M_1 = 6, M_2 = 24, alpha = alpha' = 0.8, 20 contexts, six training tasks."""
    return Layer()


def small(trial: Layer) -> Layer:
    """A trial shrunk for tests."""
    return put_all(
        trial,
        {
            "descent.steps": 60, "descent.logs": 5, "descent.log_at": (), "watched": 24, "test.prompts": 40,
            "descent.batch": 24,
        },
    )  # fmt: skip


def scaled(trial: Layer, scale: Scale) -> Layer:
    if scale == "paper":
        return put_all(trial, {"test.prompts": 10_000})
    return small(trial) if scale == "smoke" else trial


def seeds(scale: Scale, quick: int = 6, paper: int = 20) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, quick, paper)))


def timed(scale: Scale, steps: int, every: int) -> Layer:
    """The hinge loss on unseen tasks is looked at every few steps; alpha' = 0.6; no test out of domain."""
    changes = {"test.fractions": (0.6,), "test.kinds": (), "test.prompts": 1000, "descent.steps": steps}
    trial = put_all(template(), {**changes, "descent.logs": steps // every + 1})
    return scaled(trial, scale)


def labels(trial: Layer | Stack | Classic) -> Mapping[str, Sequence[Any]]:
    """Names of the places along the dimensions of the records."""
    test = trial.test
    known: dict[str, Sequence[Any]] = {
        "kind": test.kinds, "fraction": test.fractions, "length": test.lengths, "sum": test.sums, "order": ORDERS,
        "norm": NORMS, "direction": DIRECTIONS, "given": (1, -1),
    }  # fmt: skip
    if not isinstance(trial, Layer):
        return known
    return known | {
        "rate": trial.prune_rates, "neuron": range(1, trial.neurons + 1), "head": range(1, trial.heads + 1),
        "context": range(1, max(test.lengths) + 1),
    }  # fmt: skip


# What several figures measure ------------------------------------------------------------------------------------------


def of_kind(r: xr.Dataset, variable: str, kind: str = "") -> xr.DataArray:
    """A record in domain, or out of domain for one kind of mixtures."""
    return chosen(r[variable], kind=kind) if kind else r[variable]


def at_end(r: xr.Dataset, variable: str, kind: str = "") -> xr.DataArray:
    """A test at the first fraction and the longest prompt, run by run."""
    return of_kind(r, variable, kind).isel(fraction=0, length=-1)


def hinge_at_end(r: xr.Dataset, kind: str = "") -> xr.DataArray:
    """The hinge loss of that test."""
    return at_end(r, "ood_hinge" if kind else "hinge", kind)


def largest_share(worst: xr.DataArray, direction: str) -> xr.DataArray:
    """The largest component over the smallest own one; beyond every bound where that is not positive."""
    return worst.sel(direction=direction) / worst.sel(direction="own").clip(min=1e-12)


def allowed_share(trial: Layer, direction: str) -> float:
    """What (E.81) and (E.82) allow of that."""
    if direction == "irrelevant":
        return theory.irrelevant_share(trial.data.irrelevant)
    return theory.other_share(trial.data.relevant)


def steps_needed(r: xr.Dataset) -> xr.DataArray:
    """The step at which the hinge loss on unseen tasks first passes `REACHED`, between logged steps in proportion."""
    curve = r["now_hinge_curve"].transpose(..., "step")
    steps = np.asarray(curve["step"].values, float)

    def at(row: np.ndarray) -> float:
        hits = np.flatnonzero(row <= REACHED)
        if not len(hits):
            return np.nan
        i = int(hits[0])
        if i == 0:
            return steps[0]
        share = (row[i - 1] - REACHED) / (row[i - 1] - row[i])
        return float(steps[i - 1] + share * (steps[i] - steps[i - 1]))

    values = np.apply_along_axis(at, -1, np.asarray(curve.values, float))
    return curve.isel(step=0, drop=True).copy(data=values)
