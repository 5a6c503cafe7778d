"""A straight line against an axis, with its curvature tested: for what a paper prints as "linear in x"."""

import numpy as np
import xarray as xr

from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.simple import bootstrap


@answering(Estimate.absent)
def curvature(values: xr.DataArray, over: str, level: float = 0.95) -> Estimate:
    """Return how much the slope of the mean over seeds changes from the low to the high end of an axis.

    The change is that of a parabola, relative to its mean slope: 0 for a straight line, about 1.5 for x^2 and -1 for
    sqrt(x) over a factor 8 of x. The note gives the coefficient of determination of the line.
    """
    needs(over in values.coords, f"the results have no axis '{over}'.")
    (dim,) = values[over].dims
    values = values.dropna(dim, how="all")  # grid values that were not run, or do not count
    place = np.asarray(values[over].values, float)
    needs(len(place) > 3, f"a curvature needs at least four values of '{over}', and there are {len(place)}.")

    def means(runs: xr.DataArray) -> np.ndarray:
        return np.asarray(runs.mean([d for d in runs.dims if d != dim]).values, float)

    def change(runs: xr.DataArray) -> float:
        second, first, _ = np.polyfit(place, means(runs), 2)
        slope = first + second * (place.min() + place.max())
        return float(2 * second * np.ptp(place) / slope) if slope else np.nan

    found = bootstrap(change, values, level)
    straight = float(np.corrcoef(place, means(values))[0, 1]) ** 2
    return found.noted(f"The line explains {straight:.4f} of the variation of the means.")
