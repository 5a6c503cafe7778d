"""What the experiments share: axes that move one group, logged steps, the runs that count, and the records of many figures."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.figure import Holds, Made, made
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.simple import bootstrap
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.group_imbalance.data import Population
from lemmata.studies.group_imbalance.theory import bounds, setting_of
from lemmata.studies.group_imbalance.trials import Descents
from lemmata.sweep import Axis
from lemmata.trial import put

STEP = "Step 1 / lambda_max of the Hessian at the start (the printed step with constant 1 is tens of times smaller)."
HALF = "a tenth tells n^-1/2 from n^-1/3 and n^-2/3; log n changes the exponent by about 0.05 over the grid"
TAU = "Kendall's tau within seeds: two of three pairs of grid values in the claimed order; without direction it is 0"
RISES, FALLS = Holds("order", 1 / 3, inf, because=TAU), Holds("order", -inf, -1 / 3, because=TAU)

# What is run -----------------------------------------------------------------------------------------------------------


def template() -> Descents:
    """The trial that `predict` starts from: Figure 4.6's mixture, a minority of a fifth."""
    return Descents(
        population=Population(fractions=(0.8, 0.2), shifts=(2.0, -2.0), spreads=(1.0, 1.0), samples=20_000)
    )


def seeds(scale: Scale, smoke: int, quick: int, paper: int) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, smoke, quick, paper)))


def tens(low: float, high: float, count: int) -> tuple[int, ...]:
    """A geometric grid of whole tens."""
    return tuple(int(round(n, -1)) for n in np.geomspace(low, high, count))


def nth(path: str, group: int, trial: Any, value: float) -> Any:
    """Set one entry of a field that holds a number for each group."""
    held = list(getattr(trial.population, path))
    held[group] = value
    return put(trial, f"population.{path}", tuple(held))


def moved(name: str, path: str, group: int, values: Sequence[float]) -> Axis:
    """An axis that moves one group and leaves the others."""
    return Axis(name, tuple(float(v) for v in values), partial(nth, path, group))


def opposite(trial: Any, shift: float) -> Any:
    """Two groups with opposite means."""
    return put(trial, "population.shifts", (shift, -shift))


def both(trial: Any, spread: float) -> Any:
    """Two groups with the same covariance."""
    return put(trial, "population.spreads", (spread, spread))


def logged(steps: int) -> Descent:
    """Logged every 5 steps up to 1000, every 50 up to 10 000, every 500 beyond: fast and slow runs alike have tens of points
    in their last decades."""
    stages = ((0, 1000, 5), (1000, 10_000, 50), (10_000, steps, 500))
    at = [t for low, high, gap in stages for t in range(low, min(high, steps), gap)]
    return Descent(learning_rate=1.0, loss="cross-entropy", stop="cap", steps=steps, log_at=(*at, steps))


def evenly(steps: int, logs: int) -> Descent:
    """Logged at even distances, where only the picture shows the path."""
    return Descent(
        learning_rate=1.0, loss="cross-entropy", stop="cap", steps=steps, logs=logs, spacing="even"
    )


def labels(trial: Any) -> Mapping[str, Sequence[Any]]:
    """Groups are numbered from 1, as in the document."""
    return {"group": range(1, len(trial.population.fractions) + 1)}


# Which runs count ------------------------------------------------------------------------------------------------------


def with_critical_point(r: xr.Dataset) -> xr.DataArray:
    """Runs whose samples have a critical point near W*; with too few the risk falls for ever in some direction."""
    return r.critical_found > 0


def near(r: xr.Dataset) -> xr.DataArray:
    """Of those, the runs that came within 1e-6 of it: their last three decades lie below 1e-3."""
    return with_critical_point(r) & (r.distance <= 1e-6)


def kept(r: xr.Dataset) -> xr.Dataset:
    """The results without the runs whose samples have no critical point near W*."""
    return r.where(with_critical_point(r))


# What several figures measure ------------------------------------------------------------------------------------------


def rate(r: xr.Dataset) -> xr.DataArray:
    """1 - v of every run, at its end."""
    return 1 - r.contraction


def rate_at(r: xr.Dataset, step: str) -> xr.DataArray:
    """1 - v at W_n, as `contraction-exact` holds it against runs: a step times lambda_min of the empirical Hessian there.

    `step`: `printed` is 1 / M_2, the paper's with constant 1; `largest` is 1 / lambda_max at the start, as the runs take it.
    """
    if step == "largest":
        return 1 - r.contraction_exact
    return r.curvature_low * over_cells(r, lambda t: bounds.step_size(setting_of(t)))


def straightness(r: xr.Dataset) -> xr.DataArray:
    """R^2 of a straight line through log|W_t - W_n| over the last three decades of each run."""

    def one(curve: np.ndarray, step: np.ndarray) -> float:
        known = np.isfinite(curve) & (curve > 0)
        late = known & (curve <= 1e3 * curve[known][-1]) if known.any() else known
        return float(np.corrcoef(step[late], np.log(curve[late]))[0, 1] ** 2) if late.sum() > 3 else np.nan

    curves = r.distance_curve
    dim = "step" if "step" in curves.dims else "log"
    return xr.apply_ufunc(one, curves, r.step, input_core_dims=[[dim], [dim]], vectorize=True)


def log_of(values: xr.DataArray) -> xr.DataArray:
    """The logarithm, NaN where there is none."""
    return xr.ufuncs.log(values.where(values > 0))


def dip(values: xr.DataArray, over: str) -> Estimate:
    """The lower end of the grid less the lowest inside, of the means over seeds; above 0 the curve falls and then rises."""
    (dim,) = values[over].dims
    needs(values.sizes[dim] > 2, f"a dip needs a value of '{over}' between two others.")
    values = values.dropna("seed")  # the same seeds at every value

    def depth(some: xr.DataArray) -> float:
        along = np.asarray(some.mean([d for d in some.dims if d != dim]).values, float)
        return float(min(along[0], along[-1]) - along[1:-1].min())

    return bootstrap(depth, values)


def fractions(r: xr.Dataset) -> xr.DataArray:
    """lambda of every group at every grid point."""

    def of(group: int) -> xr.DataArray:
        return over_cells(r, lambda t: t.population.fractions[group]).drop_vars("trial", errors="ignore")

    return xr.concat([of(group) for group in range(r.sizes["group"])], "group")


def averaged(r: xr.Dataset, each: xr.DataArray) -> xr.DataArray:
    """The average over the groups in their proportions."""
    return (each * fractions(r)).sum("group", skipna=False)


def average_excess(r: xr.Dataset) -> xr.DataArray:
    """The average excess risk at W_n."""
    return averaged(r, r.group_excess)


def average_sharp(r: xr.Dataset) -> xr.DataArray:
    """dK / (2n) at every grid point: the average excess risk of maximum likelihood."""
    return over_cells(r, per_sample)


def per_sample(trial: Any) -> float:
    return trial.population.dim * trial.population.neurons / (2 * trial.population.samples)


# Made results ----------------------------------------------------------------------------------------------------------


def runs(*, noise: float = 0.01, **laws: Callable[..., Any]) -> Made:
    """Made runs whose samples have a critical point."""
    return made({"critical_found": lambda t: 1.0, **laws}, noise=noise)


def errors(power: float) -> Made:
    """An error that goes as a power of the samples."""
    return runs(error=lambda t: t.population.samples**power)


def excesses(ratio: float) -> Made:
    """Excess risks of so many times dK / (2n) in both groups, which is what maximum likelihood gives each."""
    return runs(group_excess=lambda t: ratio * per_sample(t), group_sharp=per_sample)


def rates(law: Callable[[Any], float], noise: float = 1e-3) -> Made:
    """Made runs with 1 - v a law of the trial, at the printed step and at the largest."""
    return runs(
        noise=noise,
        contraction_exact=lambda t: 1 - law(t),
        curvature_low=lambda t: law(t) / bounds.step_size(setting_of(t)),
    )


BENT = runs(distance_curve=lambda t, step: (1.0 + step) ** -1.5, distance=lambda t: 1e-7)
STRAIGHT = runs(distance_curve=lambda t, step: np.exp(-16 * step / t.descent.steps), distance=lambda t: 1e-7)
