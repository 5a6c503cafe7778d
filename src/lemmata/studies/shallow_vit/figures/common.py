"""What the experiments share: settings at three scales, axes that move several fields, labels, success, and made laws."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure as Canvas

from lemmata.draw.curves import BARS, rows
from lemmata.draw.palette import BLACK, BLUE, GREEN, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.measure.times import last_value
from lemmata.results import trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.shallow_vit import theory
from lemmata.studies.shallow_vit.data import TokenData
from lemmata.studies.shallow_vit.network import Network
from lemmata.studies.shallow_vit.trials import BOUNDS, SGD, ViTTraining
from lemmata.trial import put_all

SUCCESS = 1e-3
"""A run succeeds if its test hinge loss is below this (the paper's threshold). It is correct if its test error is."""

COUNTED = ("capped", "diverged")
"""Statuses that count for success. A run that ends without fitting its training set has a success or a failure, too."""

OPEN = (
    "The paper gives no step size, batch size or stop rule: step size 1, batches of 10 drawn epoch by epoch, stop at zero "
    "training hinge loss. Output weights per token and permuted tokens, as in equation (1) (network.output_weights=shared, "
    "data.token_order=fixed for the other readings). The printed initial weights are scaled identities whose norms break "
    "Assumption 1 (network.initial=literal). Here they are scaled to 1 - delta and 1 - sigma, which meets it. Other initial "
    "models: perturbed, amplified_complement."
)

HINGE = "test hinge loss"
STEPS = "steps to zero training loss"

SHARED = {"network.output_weights": "shared", "descent.learning_rate": 0.1}
"""One output vector for all tokens, as the proofs have it. The output is then sqrt(|S|) times larger, and so is each step."""

VOTES: Mapping[str, Mapping[str, Any]] = {"a vector per token, (1)": {}, "one vector, the proofs": SHARED}
ROLES = ("relevant", "confusion", "other")
GROUPS = ("lucky for 1", "lucky for 2", "wrong sign")

# What is run -----------------------------------------------------------------------------------------------------------


def template() -> ViTTraining:
    """The trial that `predict` starts from: the common settings of the synthetic experiments."""
    return ViTTraining()


def base(
    scale: Scale,
    fractions: tuple[float, float],
    samples: tuple[int, int, int] = (8, 200, 200),
    steps: int = 1000,
    tokens: int = 50,
    **changes: Any,
) -> ViTTraining:
    """The common settings at a scale. Smaller scales have fewer tokens, neurons and test samples.

    `fractions`: alpha_* and alpha_#.
    `changes`: fields by their dotted path, with __ for the dot.
    """
    tokens = by_scale(scale, 20, 50, tokens)
    trial = ViTTraining(
        data=TokenData(*fractions, samples=by_scale(scale, *samples), tokens=tokens),
        network=Network(neurons=by_scale(scale, 32, 300, 1000)),
        descent=replace(SGD, steps=by_scale(scale, min(steps, 200), steps, 2 * steps)),
        test_samples=by_scale(scale, 40, 400, 1000),
    )
    return put_all(trial, {path.replace("__", "."): value for path, value in changes.items()})


def seeds(scale: Scale, quick: int, paper: int = 20) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, quick, paper)))


def few(scale: Scale, share: float) -> float:
    """A confusion fraction that is at least one token at the smoke scale."""
    return by_scale(scale, 0.1, share, share)


def moving(change: Callable[[ViTTraining, Any], Mapping[str, Any]]) -> Callable[[ViTTraining, Any], Any]:
    """An axis that sets the fields that `change` names for a value."""
    return lambda trial, value: put_all(trial, change(trial, value))


def background_fixed(trial: ViTTraining, relevant: float) -> Mapping[str, Any]:
    """alpha_* at alpha_nd = 1/2: what is not relevant of the other half is confusion."""
    return {"data.relevant_fraction": relevant, "data.confusion_fraction": round(0.5 - relevant, 12)}


def ratio_fixed(trial: ViTTraining, relevant: float) -> Mapping[str, Any]:
    """alpha_* at alpha_#/alpha_* = 1/5, where condition (8) holds whatever alpha_* is."""
    return {"data.relevant_fraction": relevant, "data.confusion_fraction": round(0.2 * relevant, 12)}


# What every result knows -----------------------------------------------------------------------------------------------


def labels(trial: ViTTraining) -> Mapping[str, Sequence[Any]]:
    """Names of the places along the dimensions of the records."""
    patterns = range(1, trial.data.patterns + 1)
    return {
        "role": ROLES, "pattern": patterns, "asking": patterns, "lucky": (1, 2), "group": GROUPS,
        "sign": ("any", "right"), "statement": BOUNDS, "rest": ("confusion", "other"),
        "vote": range(1, trial.data.classes + 1), "label": range(1, trial.data.classes + 1),
    }  # fmt: skip


def derived(results: xr.Dataset) -> xr.Dataset:
    """The results with `success` (hinge loss) and `correct` (0-1 error) by the paper's threshold."""
    ran = results["status"].notnull()
    return results.assign(
        {
            name: (results[of] < SUCCESS).where(ran).astype(float)
            for name, of in (("success", "test_loss"), ("correct", "test_error"))
            if of in results
        }
    )


def setting(results: xr.Dataset, slack: float = 0.5) -> theory.Setting:
    """The quantities of Theorem 1 at these results, with a slack in condition (8)."""
    return replace(theory.setting(trial_at(results)), confusion_slack=slack)


def rise(curve: xr.DataArray) -> xr.DataArray:
    """The last value of each curve minus its first."""
    return last_value(curve) - curve.isel(step=0)


def mean_rise(curve: xr.DataArray) -> Estimate:
    return mean(rise(curve))


def table(by: str, text: str) -> Callable[..., Canvas]:
    """A picture of test loss, steps and final attention as rows, one for each value of an axis."""

    @picture
    def draw(results: xr.Dataset) -> Drawn:
        figure, axes = canvas(3, width=3.8, sharey=True)
        columns = {"test_loss": HINGE, "steps": "steps", "attention": "final attention on $S_*$"}
        for axis, (name, label) in zip(axes, columns.items(), strict=True):
            sizes = results["samples"].values if "samples" in results.dims else [None]
            for i, (size, colour) in enumerate(zip(sizes, (BLUE, RED, GREEN, ORANGE, BLACK), strict=False)):
                one = results[name] if size is None else results[name].sel(samples=size)
                rows(axis, one, by, colour, None if size is None else f"N = {size}", 0.15 * i)
            panel(axis, label)
        return figure, f"{text}. {BARS}"

    return draw


# Made laws -------------------------------------------------------------------------------------------------------------


def alpha(trial: ViTTraining) -> float:
    return float(trial.data.relevant_fraction)


def succeeding(edge: Callable[[ViTTraining], float], steep: float = 8.0) -> Callable[..., float]:
    """A loss of 0 or 1: half of the runs succeed with `edge(trial)` samples, more with more."""
    return lambda t, rng: float(rng.random() >= 1 / (1 + (edge(t) / t.data.samples) ** steep))


def by_attention(
    trained: Callable[[ViTTraining], float], other: Callable[[ViTTraining], float]
) -> Callable[[ViTTraining], float]:
    """One law where the attention is trained, another where it is not."""
    return lambda t: (trained if t.network.attention == "trained" else other)(t)


def ramp(step: np.ndarray) -> np.ndarray:
    """From 0 at the start to 1 at step 100 and after."""
    return np.minimum(step / 100, 1.0)
