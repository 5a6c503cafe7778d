"""A claim and its results to a verdict."""

import numpy as np
import xarray as xr

from lemmata.measure.compare import Verdict, decide, more_seeds, together
from lemmata.measure.estimate import Estimate, Unmeasurable
from lemmata.status import CONVERGED, STATUS

__all__ = ["judge", "together"]


def judge(claim, results: xr.Dataset, measure, region=None, conditions=None, inside=False) -> Verdict:
    if region is not None:
        results = results.where(region(results))
    used = [CONVERGED, *(STATUS.index(name) for name in claim.uses)]
    results = results.where(results.status.isin(used))
    try:
        found = measure(results, **claim.options)
        if isinstance(found, xr.DataArray):
            low, high = claim.tolerance
            worst = found.values[np.isfinite(found.values)]
            end = float(worst.max() if high < np.inf else worst.min())
            found = Estimate(end, end, end)
    except Unmeasurable as lack:
        found = Estimate.absent(str(lack))
    seeds = results.sizes.get("seed", 1)
    return Verdict(
        claim.id, claim.statement, decide(found, claim.tolerance), claim.predicted, found, claim.tolerance, (),
        found.note, seeds, more_seeds(found, claim.tolerance, seeds),
    )
