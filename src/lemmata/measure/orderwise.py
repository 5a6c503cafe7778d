"""Order-wise statements: the unknown constant is fitted on one part of the grid and the law tested on the rest."""

from collections.abc import Callable
from dataclasses import replace
from math import exp

import numpy as np
import xarray as xr

from lemmata.measure.columns import columns, logarithm
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.exponent import spanned
from lemmata.measure.regression import Runs, coefficient


@answering(Estimate.absent)
def fit_then_test(
    values: xr.DataArray,
    law: Callable[[np.ndarray], np.ndarray],
    over: str,
    fit_below: float | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return how far `values = constant * law(over)` misses, on grid values that did not fit the constant: a ratio, 1 if
    it holds.

    The constant is fitted (geometric mean) on the grid values up to `fit_below` (the lower half if None) and the mean
    ratio of measured to predicted is taken on those above. The interval counts the error of the constant too.
    """
    runs = columns(values, over)
    x = runs.by[over]
    left = logarithm(runs.values, "the measured quantity") - logarithm(law(x), "the predicted law")
    grid = np.unique(x)
    needs(len(grid) > 1, f"to fit a constant and test it elsewhere takes at least two values of '{over}'.")
    split = grid[(len(grid) - 1) // 2] if fit_below is None else fit_below
    tested = x > split
    needs((~tested).any() and tested.any(), f"there is nothing on one side of {over} = {split:g}.")
    needs(len(left) > 2, "two runs fit a constant and test it, but give no interval.")
    sides = np.stack([~tested, tested], 1).astype(float)
    data = Runs(x, left, np.zeros(len(left), int))
    miss = coefficient(data, sides, np.array([-1.0, 1.0]), level)
    constant = exp(left[~tested].mean())
    note = (
        f"The constant ({constant:.3g}) was fitted on {over} up to {split:g} and tested on the values above."
    )
    return replace(miss.map(exp).noted(note), seen=spanned(over, x))
