"""Results to numbers with intervals."""

import xarray as xr

from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent


def steps_exponent(results: xr.Dataset) -> Estimate:
    """The log-log slope of the steps over the step size."""
    return exponent(results.steps, "learning_rate", paired=True)
