"""Numbers that claims and pictures both draw from results: limits, ratios to bounds, trials rebuilt from settings."""

from collections.abc import Callable
from itertools import pairwise
from math import inf, sqrt

import numpy as np
import xarray as xr
from scipy.stats import binom

from lemmata.draw.style import settings
from lemmata.measure.estimate import Estimate
from lemmata.measure.trend import ordering
from lemmata.studies.multihead import mixture_theory, theory
from lemmata.studies.multihead.second_phase import SecondPhase
from lemmata.studies.multihead.trials import Guaranteed
from lemmata.trial import put


def attention_limit(results: xr.Dataset) -> float:
    """`S sqrt(T/2)`, the margin of saturated attention at the settings of the results."""
    fields = settings(results)
    return fields["data.signal"] * sqrt(fields["data.tokens"] / 2)


def guaranteed(results: xr.Dataset) -> list[Guaranteed]:
    """The trials inside the theorems' conditions, one for every distance."""
    trial = Guaranteed()
    for path, value in settings(results).items():
        trial = put(trial, path, value)
    return [put(trial, "distance", float(distance)) for distance in results.distance.values]


def second_phases(results: xr.Dataset) -> list[SecondPhase]:
    """The trainings after the first step, one for every distance."""
    trial = SecondPhase()
    for path, value in settings(results).items():
        trial = put(trial, path, value)
    return [put(trial, "distance", float(distance)) for distance in results.distance.values]


def good_start_ratios(results: xr.Dataset) -> dict[str, xr.DataArray]:
    """Measured over bound of Theorem 1 and Lemmas 8 to 10 for every run after the first step, each with the loss of its
    own target and its own horizon."""
    step = _each(results, lambda t: t.step_size)
    distance, steps = results.distance, results.horizon
    target = theory.Target(distance, 0.0, results.target_loss, results.start_loss)  # pyright: ignore[reportArgumentType]
    larger = np.maximum(results.mean_loss, results.last_loss)
    bounds = {
        "training loss (Theorem 1)": theory.training_bound(target, step, steps),  # pyright: ignore[reportArgumentType]
        "mean loss (Lemma 8)": theory.regret_bound(target, step, steps, results.wander),  # pyright: ignore[reportArgumentType]
        "mean loss (Lemma 9)": theory.mean_loss_bound(target, step, steps),  # pyright: ignore[reportArgumentType]
    }
    found = {
        name: (larger if "Theorem" in name else results.mean_loss) / bound for name, bound in bounds.items()
    }
    return found | {
        "from the start (Theorem 1)": results.farthest / theory.ball_radius(target),
        "from the target (Lemma 10)": results.farthest_from_target / (3 * distance),
        "curvature (eq. 15)": np.maximum(
            results.segment_curvature_curve.max("step"), results.segment_curvature
        ),
        "segment loss (Prop. 4)": np.maximum(results.segment_loss_curve.max("step"), results.segment_loss),
    }


def start_margin_bound(results: xr.Dataset) -> xr.DataArray:
    """The corrected bound on the NTK margin at the start of the second phase, with the residual of the run."""
    trials = second_phases(results)
    rows = [
        [
            mixture_theory.ntk_margin(trial.mixture, float(residual))
            for residual in results.residual.transpose("distance", "seed")[i]
        ]
        for i, trial in enumerate(trials)
    ]
    return xr.DataArray(rows, {"distance": results.distance, "seed": results.seed}, ("distance", "seed"))


def _each(results: xr.Dataset, number: Callable[[SecondPhase], float]) -> xr.DataArray:
    values = [number(trial) for trial in second_phases(results)]
    return xr.DataArray(values, {"distance": results.distance}, "distance")


def path_ratios(results: xr.Dataset) -> dict[str, xr.DataArray]:
    """Measured over bound of Corollary 1 at every checkpoint of every run, with the sharper decoder norm."""
    fields = settings(results)
    radius = max(1.0, float(results.token_norm.max()))
    data = theory.DataBounds(fields["training.data.dim"], fields["training.data.tokens"], radius)
    norm, loss, heads = results.decoder_norm_curve, results.train_loss_curve, results.heads
    beta1 = theory.gradient_self_bound(data, norm)  # pyright: ignore[reportArgumentType]
    beta2 = theory.smoothness_bound(data, norm, heads)  # pyright: ignore[reportArgumentType]
    allowed = theory.negative_curvature_bound(data, norm, heads)  # pyright: ignore[reportArgumentType]
    size = np.maximum(results.largest_eigenvalue_curve, -results.smallest_eigenvalue_curve)
    return {
        "weak convexity": np.maximum(-results.smallest_eigenvalue_curve, 0) / (allowed * loss),
        "self-bounded gradient": results.gradient_norm_curve / (beta1 * loss),
        "smoothness": size / beta2,
    }


def at_step(results: xr.Dataset, name: str, step: int) -> xr.DataArray:
    """A curve at the logged step nearest to `step`."""
    return results[f"{name}_curve"].sel(step=step, method="nearest")


def arms(values: xr.DataArray, over: str) -> list[xr.DataArray]:
    """The arms along an axis, in order."""
    return [values.sel({over: label}) for label in values[over].values]


def worst(values: xr.DataArray, note: str = "") -> Estimate:
    """The largest of all values: for statements about every run, which one run refutes."""
    largest = float(values.max())
    return Estimate(largest, largest, largest, values.sizes.get("seed", 1), note=note)


def smallest_difference(above: xr.DataArray, others: list[xr.DataArray]) -> Estimate:
    """By how much `above` exceeds the nearest of the others, seed by seed; above 0 when it exceeds them all."""
    found = [ordering([other, above]) for other in others]
    if not all(one.exists for one in found):
        return next(one for one in found if not one.exists)
    nearest = min(found, key=lambda one: one.value)
    return Estimate(
        nearest.value,
        min(one.low for one in found),
        min(one.high for one in found),
        nearest.count,
        nearest.level,
    )


def median_estimate(values: np.ndarray) -> Estimate:
    """The median with the interval that order statistics give: no assumption, so runs on a plateau do no harm."""
    known = np.sort(values[np.isfinite(values)])
    count = len(known)
    rank = int(binom.ppf(0.025, count, 0.5))  # this many values may be left out on either side
    if count < 6:
        return Estimate(
            float(np.median(known)), -inf, inf, count, note="A median needs six seeds for an interval."
        )
    return Estimate(float(np.median(known)), float(known[rank]), float(known[count - 1 - rank]), count)


def median_ordering(arms: list[xr.DataArray]) -> Estimate:
    """The smallest median step from one arm to the next, seed by seed: above 0 when all arms are in order."""
    steps = [median_estimate(np.asarray(b.values - a.values, float).ravel()) for a, b in pairwise(arms)]
    nearest = min(steps, key=lambda one: one.value)
    low, high = min(one.low for one in steps), min(one.high for one in steps)
    return Estimate(nearest.value, low, high, nearest.count, note=nearest.note)


def late_slopes(results: xr.Dataset) -> xr.DataArray:
    """The slope of log loss against log steps over the last half-decade of every run."""
    curve = results["log_train_loss_curve"]
    last = float(curve.step[-1])
    late = curve.sel(step=curve.step[curve.step >= last / sqrt(10)])
    x = np.log(late.step.astype(float))
    x = x - x.mean("step")
    return (x * late).sum("step") / (x**2).sum("step")
