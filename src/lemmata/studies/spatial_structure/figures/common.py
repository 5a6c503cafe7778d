"""What the experiments share: the reference trial, small and population trainings, events, and numbers over linear models."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.descent import Descent
from lemmata.draw import attention
from lemmata.draw.palette import GREY
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.measure.times import settling_time
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.network import PositionalNetwork
from lemmata.studies.spatial_structure.trials import IdealisedFlow, ImageDescent, SampleFlow, Transfer
from lemmata.trial import put_all

FAST = (
    "The logits move faster than the value vector by descent.attention_rate "
    "(with the paper's single step size this takes millions of steps; figures at one rate are gradient flows)."
)
EVENTS = (
    "T0: the mean sigmoid has left 1/2 by 0.1; T1: gamma exceeds every |rho| of the run, as in Section 4.1; T2: the loss is "
    "0.05. "
)
ONE_RATE = (
    "Gradient flow at one rate, as the step size goes to 0; time is the step size times the number of steps."
)
HALF_LINEAR = "half the linear error cannot be had without the groups"

# What is run -----------------------------------------------------------------------------------------------------------

SMALL = Structured(patches=36, spurious_rate=0.4, dimension=16)
"""36 patches, spurious ones just dominating: descent learns the groups within seconds."""

TINY = Structured(patches=16, spurious_rate=0.3, dimension=8)


def template() -> ImageDescent:
    """The reference run of Figure 4: D = 64, C = 4, q = 0.25, d = 32, N = 8000, beta = 4."""
    return ImageDescent()


def changed(trial: Any, **changes: Any) -> Any:
    """The trial with fields replaced; `__` stands for the dot of a path."""
    return put_all(trial, {path.replace("__", "."): value for path, value in changes.items()})


def seeds(scale: Scale, smoke: int, quick: int, paper: int) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, smoke, quick, paper)))


def to_the_end(rate: float, attention_rate: float, steps: int, logs: int, **options: Any) -> Descent:
    """Plain descent that goes to its last step, logged evenly."""
    given: dict[str, Any] = {"stop": "cap", "spacing": "even"} | options
    return Descent(learning_rate=rate, attention_rate=attention_rate, steps=steps, logs=logs, **given)


def tiny(steps: int, logs: int, **changes: Any) -> ImageDescent:
    """A sample small enough for a smoke run, on which descent still learns."""
    trial = ImageDescent(
        data=TINY,
        network=PositionalNetwork(diagonal=3.0),
        descent=to_the_end(1e-3, 3e3, steps, logs),
        samples=1000,
        test_samples=1000,
    )
    return changed(trial, **changes)


def population_flow(patches: int, beta: float, **options: Any) -> IdealisedFlow:
    """Population descent at one rate with q D = 16, C = 4 and d = D: inside Theorem 4.1 for `2 q D log d <= e^beta <= D`."""
    data = Structured(patches=patches, spurious_rate=16 / patches, dimension=patches)
    return IdealisedFlow(data=data, network=PositionalNetwork(linear=1e-8, diagonal=beta), **options)


def at_patches(trial: IdealisedFlow, patches: int) -> IdealisedFlow:
    """The trial with another number of patches, q D fixed and d = D."""
    return changed(trial, data__patches=patches, data__spurious_rate=16 / patches, data__dimension=patches)


def labels(trial: Any) -> Mapping[str, Sequence[Any]]:
    """Numbers of the places along the dimensions of the records."""
    if isinstance(trial, Transfer):
        return {"downstream": range(len(trial.sizes))}
    places = range(trial.data.patches)
    times = {"step": trial.times.tolist()} if isinstance(trial, IdealisedFlow | SampleFlow) else {}
    return times | {
        "row": places,
        "column": places,
        "patch": places,
        "dimension": range(trial.data.dimension),
    }


# What is measured ------------------------------------------------------------------------------------------------------


def glm_error(r: xr.Dataset) -> xr.DataArray:
    """The error of linear models at every grid point."""
    return over_cells(r, lambda t: theory.glm_error(*t.data.facts))


def over_glm(r: xr.Dataset) -> Estimate:
    """Test error over that of linear models."""
    return mean(r.test_error / glm_error(r))


def reached(r: xr.Dataset, event: str) -> xr.DataArray:
    """The step of an event; NaN in runs in which it did not happen."""
    return r[event].where(r[event] >= 0)


def second_event(r: xr.Dataset) -> xr.DataArray:
    """T1: the first logged step from which gamma stays above the largest |rho| of the whole run (Section 4.1)."""
    return settling_time(r.same_curve / r.largest_cross, 1.0, "above")


def with_second_event(r: xr.Dataset) -> xr.Dataset:
    """The results with T1 as `event2`, where they hold the logits."""
    return r.assign(event2=second_event(r)) if {"same_curve", "largest_cross"} <= set(r.data_vars) else r


def same_mass(r: xr.Dataset) -> xr.DataArray:
    """`D (C-1) Gamma` along the trajectory."""
    return over_cells(r, lambda t: t.data.patches * (t.data.group_size - 1)) * r.same_score_curve


def degree(r: xr.Dataset) -> int:
    """The degree `p` of results in which it does not vary."""
    return trial_at(r).network.degree


def at_risk(r: xr.Dataset) -> xr.DataArray:
    """Steps at which the population risk is not o(1), read as a loss of at least 0.05."""
    return r.loss_curve >= 0.05


def scores(r: xr.Dataset) -> SimpleNamespace:
    """The attention scores along the trajectory, as the formulas of the theory take them."""
    return SimpleNamespace(same=r.same_score_curve, cross=r.cross_score_curve, gain=r.gain_curve)


def cross_growth(r: xr.Dataset, bound: Callable[..., xr.DataArray]) -> xr.DataArray:
    """The largest pull on a cross-group logit over one of the paper's three bounds, with `lambda0 = D^0.01` as printed."""
    D, C, d, q = (
        over_cells(r, value)
        for value in (
            lambda t: t.data.patches,
            lambda t: t.data.group_size,
            lambda t: t.data.dimension,
            lambda t: t.data.spurious_rate,
        )
    )
    allowed = bound(D, C, d, q, degree(r), r.alignment_curve, scores(r), D**0.01)
    return (abs(r.cross_pull_curve) / allowed).where(at_risk(r)).max("step")


# How it looks ----------------------------------------------------------------------------------------------------------


def facts(r: xr.Dataset) -> tuple[int, int, float]:
    """`D, C, q` of results in which they do not vary."""
    return trial_at(r).data.facts


def settings_line(r: xr.Dataset) -> str:
    return "D = {}, C = {}, q = {:g}".format(*facts(r))


def linear_models(axes: Axes, r: xr.Dataset) -> None:
    """A band where the error of linear models lies, ties broken either way."""
    low, high = theory.plateau(*facts(r))
    axes.axhspan(low, high, color=GREY, alpha=0.25, linewidth=0, label="linear models")


def heat(figure: Any, axes: Axes, logits: np.ndarray, group_of: np.ndarray, title: str) -> None:
    """A map of the logits in the order of the groups."""
    figure.colorbar(attention.heat_map(axes, logits, group_of), ax=axes, shrink=0.8)
    axes.set_title(title)


def groups_of(one: xr.Dataset) -> np.ndarray:
    """The group of every position; all in one where no run tells."""
    return np.nan_to_num(one.group_of.values).astype(int)


# Made results ----------------------------------------------------------------------------------------------------------


def always(value: float) -> Callable[[Any], float]:
    """The same number in every run and at every step."""
    return lambda t: value


def linear_error(trial: Any) -> float:
    """The error of linear models by the normal law, `Phi(-C / sqrt(q (D - C)))`."""
    return theory.glm_error_normal(*trial.data.facts)


def over_linear(ratio: float) -> Callable[[Any], float]:
    """A test error as a multiple of the linear models'."""
    return lambda t: ratio * linear_error(t)


LABEL_NOISE = 15 * (0.25 / 2) ** 4
"""At D = 64, C = 4 and q = 1/4: one of the 15 other groups carries four spurious patches of the wrong sign."""
