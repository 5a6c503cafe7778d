"""Order-wise statements: the unknown constant is fitted on one part of the grid and the law tested on the rest."""

from collections.abc import Callable
from math import exp, sqrt

import numpy as np
import xarray as xr
from scipy.stats import t

from lemmata.measure.columns import columns, logarithm
from lemmata.measure.estimate import Estimate, answering, needs


@answering(Estimate.absent)
def fit_then_test(
    values: xr.DataArray,
    law: Callable[[np.ndarray], np.ndarray],
    over: str,
    fit_below: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """How far `values = constant * law(over)` misses on grid values that did not fit the constant: a ratio, 1 if it holds.

    The constant is fitted (geometric mean) on the grid values up to `fit_below` (the lower half if None) and the mean
    ratio of measured to predicted is taken on those above. The interval counts the error of the constant too.
    """
    runs = columns(values, over)
    x = runs.by[over]
    left = logarithm(runs.values, "the measured quantity") - logarithm(law(x), "the predicted law")
    grid = np.unique(x)
    needs(len(grid) > 1, f"to fit a constant and test it elsewhere takes at least two values of '{over}'.")
    split = grid[(len(grid) - 1) // 2] if fit_below is None else fit_below
    fitted, tested = left[x <= split], left[x > split]
    needs(len(fitted) > 1 and len(tested) > 1, f"too few runs on the two sides of {over} = {split:g}.")
    parts = [_mean_error(left[part], x[part]) for part in (x <= split, x > split)]
    variance = sum(v for v, _ in parts)
    freedom = variance**2 / sum(v**2 / f for v, f in parts) if variance else float(len(left) - 2)
    value, half = (
        float(tested.mean() - fitted.mean()),
        float(t.ppf((1 + level) / 2, freedom) * sqrt(variance)),
    )
    constant = exp(fitted.mean())
    note = (
        f"The constant ({constant:.3g}) was fitted on {over} up to {split:g} and tested on the values above."
    )
    return Estimate(exp(value), exp(value - half), exp(value + half), len(left), level, note, freedom)


def _mean_error(values: np.ndarray, x: np.ndarray) -> tuple[float, float]:
    """The variance of the mean of a part of the grid and its degrees of freedom, from the spread at equal `x`."""
    _, group = np.unique(x, return_inverse=True)
    size = np.bincount(group).astype(float)
    free = float(np.sum(size - 1))
    if not free:
        return float(values.var(ddof=1) / len(values)), len(values) - 1.0
    inner = np.sum((values - (np.bincount(group, values) / size)[group]) ** 2)
    return float(inner / free / len(values)), free
