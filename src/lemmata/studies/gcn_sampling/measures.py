"""What results say: how errors fall, how many labels or neurons are needed, which dataset is best, how far twins drift
apart."""

from collections.abc import Sequence

import numpy as np
import xarray as xr

from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent, power_law
from lemmata.measure.levelset import crossings
from lemmata.measure.simple import mean
from lemmata.measure.trend import arms, difference, largest, ordering, smallest
from lemmata.results import over_cells
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.trials import NearStart


def fall(results: xr.Dataset, over: str) -> Estimate:
    """The logarithm of the error at the largest value of an axis over that at the smallest, in the degree profile where it
    falls least."""
    error = xr.ufuncs.log(results["error"])
    return largest(arms(error.isel({over: -1}, drop=True) - error.isel({over: 0}, drop=True), "high_degree"))


def needed(
    results: xr.Dataset, variable: str, along: str, over: str, arm: int = 0
) -> tuple[xr.DataArray, xr.DataArray]:
    """How much of `along` (labels, neurons) each seed needs, arm by arm of `over`, for an error of its own, since targets
    differ from seed to seed: that of one arm in the middle of the grid, so that needs may grow and shrink. Also says which
    needs are only bounds."""
    values = results[variable]
    needs(
        values.sizes.get(along, 0) > 2 and values.sizes.get(over, 0) > 1,
        f"a need is read off at least three values of '{along}' and two of '{over}'.",
    )
    level = values.isel({over: arm, along: values.sizes[along] // 2}, drop=True)
    level = level.drop_vars([name for name in level.coords if name not in level.dims])
    return crossings(values / level, 1.0, along)


def need_exponent(
    results: xr.Dataset, variable: str, along: str, over: str, coordinate: str, arm: int = 0
) -> Estimate:
    """The exponent of the need in a coordinate along `over`, seeds sharing their targets across the grid."""
    where, side = needed(results, variable, along, over, arm)
    return power_law(where, coordinate, side, paired=True).exponent


ERROR = 0.75  # the normalised error that `predict` asks for


def typical_need(results: xr.Dataset, error: float = ERROR) -> tuple[np.ndarray, np.ndarray]:
    """The norm of each degree profile (a typical row), and the labels at which the normalised error, meant over seeds, passes
    `error`."""
    where, side = crossings(results["normalised_error"].mean("seed"), error, "labels")
    seen = side.values == 0
    return results["typical_row"].values[seen], where.values[seen]


def law_of_labels(results: xr.Dataset, error: float = ERROR) -> dict[str, float]:
    """`labels = constant * norm^power` for a normalised error, by least squares in log-log over the degree profiles."""
    norms, found = typical_need(results, error)
    return {
        "error": error,
        **_fitted(norms, found),
        "lowest_norm": float(norms.min()),
        "highest_norm": float(norms.max()),
    }


def held_out(results: xr.Dataset, error: float = ERROR) -> dict[str, float]:
    """The largest factor by which a law fitted without one of the profiles misses the need of that profile."""
    norms, found = typical_need(results, error)
    off = []
    for one in range(len(norms)):
        law = _fitted(np.delete(norms, one), np.delete(found, one))
        off.append(abs(np.log(law["constant"] * norms[one] ** law["power"] / found[one])))
    return {"held_out_factor": float(np.exp(max(off)))}


def _fitted(norms: np.ndarray, found: np.ndarray) -> dict[str, float]:
    power, constant = np.polyfit(np.log(norms), np.log(found), 1)
    return {"constant": float(np.exp(constant)), "power": float(power)}


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


def drift_exponent(results: xr.Dataset, layer: int) -> Estimate:
    """The exponent in N/S - 1 of the largest distance of a column of W (layer 1) or of V (layer 2) from its twin's."""
    return exponent(with_noise(results)["drift_w" if layer == 1 else "drift_v"], "noise", paired=True)


def gap_of_errors(results: xr.Dataset, rate: float) -> Estimate:
    """How much worse the sampled twin predicts, in parts of the labels' second moment."""
    return difference(results["error"].sel(rate=rate), results["twin_error"].sel(rate=rate))


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


def _sizes(trial: NearStart) -> theory.Parameters:
    return theory.parameters(trial.width, trial.width, 0.01, 1.0)


def residual_share(results: xr.Dataset) -> xr.DataArray:
    """What the bilinear surrogate misses, over the bound of Lemma D.2.9 (constant 1, no logarithms), at the norm of each
    graph."""
    size = over_cells(
        results, lambda t: theory.coupling_bound(1.0, t.width, t.width, _sizes(t).reach_w, _sizes(t).reach_v)
    )
    return results["residual"] / (size * results["norm"] ** 3)


def turned_share(results: xr.Dataset, layer: int) -> xr.DataArray:
    """Signs of a layer that noise and weights of the sizes sigma and tau turn at the node where most turn, over the bound of
    Lemma D.2.10."""
    if layer == 1:
        bound = over_cells(results, lambda t: theory.flip_bounds(1.0, t.width, t.width, _sizes(t))[0])
        return results["turned_first"] / bound
    width = results["width"].broadcast_like(results["norm"]).transpose(*results["norm"].dims)
    found = [
        theory.flip_bounds(float(norm), int(m), int(m), theory.parameters(int(m), int(m), 0.01, 1.0))[2]
        for norm, m in zip(results["norm"].values.ravel(), width.values.ravel(), strict=True)
    ]
    return results["turned_second"] / results["norm"].copy(data=np.reshape(found, results["norm"].shape))


def cross_share(results: xr.Dataset) -> xr.DataArray:
    """The largest cross term of random signs over its bound in Lemma D.2.10 (2)."""
    reach = over_cells(results, lambda t: _sizes(t).reach_v)
    return results["cross_terms"] / theory.cross_bound(results["norm"], reach)


def smoothing_share(results: xr.Dataset) -> xr.DataArray:
    """What frozen signs cost after smoothing, over the square of the smallest move and over the bound of Lemma D.2.11."""
    m = over_cells(results, lambda t: float(t.width))
    noise_w, noise_v = (
        over_cells(results, lambda t, of=of: getattr(_sizes(t), of)) for of in ("noise_w", "noise_v")
    )
    sizes = (results["norm"], m, m, noise_w, noise_v, results["largest_w"], results["largest_v"])
    bound = theory.smoothing_bound(*sizes)
    smallest_move = float(results["move"].min())
    return results["smoothing"].sel(move=smallest_move, drop=True) / smallest_move**2 / bound


# The pseudo-network, the start as a Gaussian, the first rounds -------------------------------------------------------------


def over_width(results: xr.Dataset, variable: str) -> Estimate:
    """The exponent of a number of the start in the width."""
    return exponent(results[variable], "width")


def endless_error(results: xr.Dataset) -> xr.DataArray:
    """The error of the proof's pseudo-network in the limit of infinite width, in parts of the target."""
    return results["endless_error"]


def spread_share(results: xr.Dataset) -> xr.DataArray:
    """The spread of the second layer's inputs (times sqrt m_2) over `|A| (1 + |A|)`."""
    return results["spread"] / theory.spread_bound(results["norm"])


def disagreeing_share(results: xr.Dataset) -> xr.DataArray:
    """Indicators of the second layer that differ from those of a Gaussian, over `2 m_1^-1/6`."""
    return results["disagreeing"] / over_cells(results, lambda t: 2 * theory.gaussian_bound(t.width))


def descends(results: xr.Dataset) -> xr.DataArray:
    """In each round the larger of what the best move and what weight decay take off L', in parts of eta gamma / 4."""
    return xr.ufuncs.maximum(results["by_move"], results["by_decay"])


def growth_share(results: xr.Dataset) -> xr.DataArray:
    """By how much L' grows in a round, in parts of 1/(m_1 m_2)."""
    return results["growth"] * over_cells(results, lambda t: float(t.width) ** 2)


def longest(results: xr.Dataset) -> xr.DataArray:
    """The runs with the longest rounds."""
    return results["inner"] == results["inner"].max()


def lowest_curvature(results: xr.Dataset) -> xr.DataArray:
    """The lowest eigenvalue of the Hessian of L' after each round."""
    return results["lowest"]


def decay_gain(results: xr.Dataset) -> xr.DataArray:
    """What weight decay takes off L' after each round, in parts of eta gamma / 4; of rounds that end above the lower end of
    the lemma's range."""
    return results["by_decay"].where(results["objective"] >= theory.decay_end(results["norm"]))


# Samplers and Algorithm 2 ------------------------------------------------------------------------------------------------


def _of_samplers(results: xr.Dataset, names: Sequence[str]) -> list[xr.DataArray]:
    known = results["sampler"].values.tolist()
    needs(
        set(names) <= set(known),
        f"the samplers {', '.join(names)} are compared, and there are {', '.join(known)}.",
    )
    return [results["normalised_error"].sel(sampler=name, drop=True) for name in names]


def excess(results: xr.Dataset, samplers: Sequence[str], than: str) -> Estimate:
    """By how much the worst of some samplers predicts worse than another, in parts of the labels' second moment."""
    other, *own = _of_samplers(results, [than, *samplers])
    return largest([one - other for one in own])


def lead_of(results: xr.Dataset, sampler: str, others: Sequence[str]) -> Estimate:
    """By how much the nearest of the others predicts worse than a sampler."""
    own, *rest = _of_samplers(results, [sampler, *others])
    return smallest([one - own for one in rest])


def practical_excess(results: xr.Dataset) -> Estimate:
    """By how much the practical setting predicts worse than Algorithm 2 in full."""
    error = results["normalised_error"]
    needs({"practical", "full"} <= set(results["mode"].values.tolist()), "both settings are compared.")
    return difference(error.sel(mode="practical"), error.sel(mode="full"))


def in_full(results: xr.Dataset) -> xr.DataArray:
    """The runs of Algorithm 2 in full."""
    return results["mode"] == "full"


def end_share(results: xr.Dataset, layer: int) -> xr.DataArray:
    """The norm of what a layer has learnt at the end over its bound (D.126), (D.127)."""
    bound = over_cells(
        results, lambda t: theory.end_bounds(t.width, t.algorithm.accuracy, t.algorithm.size)[layer - 1]
    )
    return results["learnt_w" if layer == 1 else "learnt_v"] / bound


def output_share(results: xr.Dataset) -> xr.DataArray:
    """The largest output over its bound (D.132)."""
    size = over_cells(results, lambda t: t.algorithm.size)
    return results["largest_output"] / theory.output_bound(results["norm"], size)


def disagreement(results: xr.Dataset) -> xr.DataArray:
    """The largest difference of the two engines along the test error, in parts of it."""
    curves = results["error_curve"]
    apart = abs(curves.sel(engine="field") / curves.sel(engine="whole") - 1).max("step")
    return apart.expand_dims(engine=results["engine"])
