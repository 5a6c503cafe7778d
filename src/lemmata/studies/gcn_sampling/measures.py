"""What results say: how errors fall, how many labels or neurons are needed, which dataset is best, how far twins drift
apart."""

import numpy as np
import xarray as xr

from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent, power_law
from lemmata.measure.levelset import crossings
from lemmata.measure.simple import mean
from lemmata.measure.trend import arms, difference, largest, ordering, smallest
from lemmata.results import over_cells
from lemmata.studies.gcn_sampling import theory


def fall(results: xr.Dataset, over: str) -> Estimate:
    """The logarithm of the error at the largest value of an axis over that at the smallest, in the degree profile where it
    falls least."""
    error = xr.ufuncs.log(results["error"])
    return largest(arms(error.isel({over: -1}, drop=True) - error.isel({over: 0}, drop=True), "high_degree"))


def needed(
    results: xr.Dataset, variable: str, along: str, over: str, arm: int = 0
) -> tuple[xr.DataArray, xr.DataArray]:
    """How much of `along` (labels, neurons) each seed needs, arm by arm of `over`, for an error of its own, since targets
    differ from seed to seed: that of one arm. In the first arm it is taken low in the grid (between the first two values),
    so that needs may grow; in others in the middle. Also says which needs are only bounds."""
    values = results[variable]
    needs(
        values.sizes.get(along, 0) > 2 and values.sizes.get(over, 0) > 1,
        f"a need is read off at least three values of '{along}' and two of '{over}'.",
    )
    own = xr.ufuncs.log(values.isel({over: arm}, drop=True))
    level = (
        own.isel({along: [0, 1]}).mean(along)
        if arm == 0
        else own.isel({along: values.sizes[along] // 2}, drop=True)
    )
    level = level.drop_vars([name for name in level.coords if name not in level.dims])
    return crossings(values / xr.ufuncs.exp(level), 1.0, along)


def need_exponent(
    results: xr.Dataset, variable: str, along: str, over: str, coordinate: str, arm: int = 0
) -> Estimate:
    """The exponent of the need in a coordinate along `over`, seeds sharing their targets across the grid."""
    where, side = needed(results, variable, along, over, arm)
    return power_law(where, coordinate, side, paired=True).exponent


def best(results: xr.Dataset, dataset: int, variable: str) -> Estimate:
    """By how much the error on the nearest other dataset exceeds that on the claimed best one, in parts of the latter, at
    most labels."""
    values = results[variable].isel(labels=-1, drop=True)
    own = values.sel(dataset=dataset, drop=True)
    others = [
        values.sel(dataset=one, drop=True) / own - 1 for one in results["dataset"].values if one != dataset
    ]
    return smallest(others)


def with_noise(results: xr.Dataset) -> xr.Dataset:
    """The relative variance of an entry of A^s, N/S - 1, beside the rate."""
    rate = np.asarray(results["rate"].values, float)
    return results.assign_coords(noise=("rate", 1 / rate - 1), left_out=("rate", 1 - rate))


def gap_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of the distance of the twins in N/S - 1."""
    return exponent(with_noise(results)["weight_gap"], "noise", paired=True)


def gap_of_errors(results: xr.Dataset, rate: float) -> Estimate:
    """How much worse the sampled twin predicts, in parts of the labels' second moment."""
    return mean(results["error_gap"].sel(rate=rate))


def high_over_low(results: xr.Dataset) -> Estimate:
    """The logarithm of the distance of the twins when the high-degree group is undersampled, over that of the low-degree
    group."""
    gap = xr.ufuncs.log(results["weight_gap"])
    return difference(gap.sel(undersampled="high"), gap.sel(undersampled="low"))


def rise(results: xr.Dataset, variable: str) -> Estimate:
    """The smallest rise of an error from one rate to the next smaller one."""
    return ordering(arms(results[variable].sortby("rate", ascending=False), "rate"))


def deviation_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of `|A^s - A*|_inf` in 1 - S/N."""
    return exponent(with_noise(results)["worst_deviation"], "left_out")


def smoothing_slope(results: xr.Dataset) -> Estimate:
    """The exponent in the move of what frozen signs cost after smoothing."""
    gaps = xr.ufuncs.log(results["smoothing"])
    place = xr.ufuncs.log(results["move"].astype(float))
    centred = place - place.mean()
    return mean((gaps * centred).sum("move") / (centred**2).sum())


def residual_share(results: xr.Dataset) -> xr.DataArray:
    """What the bilinear surrogate misses, over the bound of Lemma D.2.9 (constant 1, no logarithms), at the norm of each
    graph."""
    size = over_cells(results, _coupling)
    return results["residual"] / (size * results["norm"] ** 3)


def _coupling(trial) -> float:
    p = theory.parameters(trial.width, trial.width, 0.01, 1.0)
    return theory.coupling_bound(1.0, trial.width, trial.width, p.reach_w, p.reach_v)


def flip_share(results: xr.Dataset) -> xr.DataArray:
    """First-layer signs that weights of the size tau_w turn at a node, over the bound of Lemma D.2.10."""
    bound = over_cells(
        results,
        lambda t: theory.flip_bounds(1.0, t.width, t.width, theory.parameters(t.width, t.width, 0.01, 1.0))[
            0
        ],
    )
    return results["flips_of_weights"] / bound


def disagreement(results: xr.Dataset) -> xr.DataArray:
    """The largest difference of the two engines along the test error, in parts of it."""
    curves = results["error_curve"]
    apart = abs(curves.sel(engine="field") / curves.sel(engine="whole") - 1).max("step")
    return apart.expand_dims(engine=results["engine"])
