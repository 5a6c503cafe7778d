"""What the experiments share: the settings of Section 7.5, their three scales, labels, and the law of the vote."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import line
from lemmata.draw.palette import BLUE, GREY, ORANGE, RED
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.trials import MASSES, Deep, Reasoning, Testing
from lemmata.trial import put_all

LENGTHS = (1, 2, 3, 5, 8, 12, 20, 40, 60)
LIMIT = 0.7071
"""sqrt(2)/2, the largest noise of (7.11)."""
LENGTH_LABEL = "examples in the test prompt"
COT_LABEL = "chain-of-thought error (mean over steps)"
LAYER = "One layer, W trained directly, read-out (0 I); step 10 and 600 steps, which is step 1 and 6000 up to noise."
ZERO_WHY = "the statement is zero with high probability; a thousand prompts tell 1 % from more"


def template() -> Reasoning:
    """Section 7.5: d_X = 30, M = 20, M' = 10, K = 3, alpha = 0.4, alpha' = 0.8, tau = 0.5, rho = 0.8, noise 0.2."""
    return Reasoning(test=Testing(lengths=LENGTHS))


def small(trial: Reasoning) -> Reasoning:
    """A trial shrunk for tests."""
    return put_all(
        trial,
        {
            "data.dim": 24, "data.patterns": 11, "data.examples": 10, "descent.steps": 200, "descent.batch": 33,
            "watched": 66, "test.prompts": 100, "test.lengths": (8, 12, 40), "descent.logs": 12,
        },
    )  # fmt: skip


def scaled(trial: Reasoning, scale: Scale) -> Reasoning:
    return small(trial) if scale == "smoke" else trial


def seeds(scale: Scale, quick: int = 5, paper: int = 20) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, quick, paper)))


def slow(scale: Scale) -> Reasoning:
    """A step of 1, as the theorem has it, so that the stages can be told apart."""
    steps = by_scale(scale, 1500, 4000, 30_000)
    return put_all(
        scaled(template(), scale),
        {
            "descent.learning_rate": 1.0, "descent.steps": steps, "descent.logs": 60, "timed": True, "watched": 66,
            "test.lengths": (12,), "test.prompts": 100,
        },
    )  # fmt: skip


def labels(trial: Reasoning | Deep) -> Mapping[str, Sequence[Any]]:
    """Names of the places along the dimensions of the records."""
    many = range(1, 100)
    known: dict[str, Sequence[Any]] = {
        "mass": MASSES,
        "power": (1, 2, 3),
        "example": many,
        "column_step": many,
    }
    if isinstance(trial, Deep):
        return known | {"layer": range(1, trial.layers + 1), "head": range(1, trial.heads + 1)}
    return known | {"length": trial.test.lengths, "reasoning_step": range(1, trial.data.steps + 1)}


def vote_law(results: xr.Dataset, variable: str) -> xr.DataArray:
    """The error that the law of the vote predicts, for every cell and length."""
    found = [
        over_cells(results, lambda t, n=int(n): theory.predicted_errors(t, n)[variable])
        for n in results["length"].values
    ]
    return xr.concat(found, results["length"])


def vote_gap(results: xr.Dataset, variable: str) -> xr.DataArray:
    """How far a run lies from the law of the vote, at the worst length of three examples and more."""
    gap = abs(results[variable] - vote_law(results, variable))
    return gap.sel(length=slice(3, None)).max("length")


def vote(variable: str, error: float = 0.0):
    """The law of the vote as made-up results, wrong by `error`."""
    return lambda t, length: [theory.predicted_errors(t, int(n))[variable] + error for n in length]


def enough_examples(results: xr.Dataset) -> xr.DataArray:
    """Cells whose longest prompt has (alpha' tau rho)^-2 log M examples, (7.20) with constant 1."""

    def asked(trial: Reasoning) -> float:
        q = theory.test_quality(trial)
        return theory.cot_examples(trial.test.match_fraction, q.trajectory, q.primacy, trial.data.patterns)

    return over_cells(results, asked) <= float(results["length"].max())


def matching(p: Callable[[Any, np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    """The four masses along training as made-up results, of which the first is p."""

    def masses(t: Any, step: np.ndarray, mass: np.ndarray) -> np.ndarray:
        first = p(t, np.maximum(step, 1))
        return np.where(mass == MASSES[0], first, (1 - first) / 3)

    return masses


def four(axes: Axes, curves: xr.DataArray) -> None:
    """The four masses along training."""
    for colour, name in zip((BLUE, ORANGE, GREY, RED), MASSES, strict=True):
        line(axes, curves.sel(mass=name), "step", colour, name)
