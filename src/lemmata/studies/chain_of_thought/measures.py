"""Results to numbers with intervals."""

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.columns import below
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.trend import arms, ordering
from lemmata.results import over_cells, trial_at
from lemmata.studies.chain_of_thought import theory


def in_span(results: xr.Dataset) -> xr.DataArray:
    """Test patterns in the span of the training patterns, as Theorem 4 has them."""
    return results["kind"] != "outside"


def in_span_off_the_mean(results: xr.Dataset) -> xr.DataArray:
    """In the span, no pattern with S^2 near M (the mended condition)."""
    return ~results["kind"].isin(["outside", "mean"])


def outside(results: xr.Dataset) -> xr.DataArray:
    return results["kind"] == "outside"


def holds(results: xr.Dataset) -> xr.DataArray:
    return results["errors"] == "pairs-hold"


def fails(results: xr.Dataset) -> xr.DataArray:
    return results["errors"] == "pairs-fail"


def at_longest(results: xr.Dataset, variable: str) -> xr.DataArray:
    """A number at the longest test prompt, run by run."""
    return results[variable].isel(length=-1)


def mean_at_longest(results: xr.Dataset, variable: str) -> Estimate:
    return mean(results[variable].isel(length=-1))


def fall(results: xr.Dataset, variable: str) -> Estimate:
    """The error at the longest prompt over that at the shortest."""
    return mean(results[variable].isel(length=-1) / results[variable].isel(length=0))


def ordered(results: xr.Dataset, variable: str, over: str, length: int) -> Estimate:
    """The smallest rise of the error from one value of an axis to the next smaller one, at one length."""
    values = results[variable].sel(length=length).sortby(over, ascending=False)
    return ordering(arms(values, over))


def matched_mass(results: xr.Dataset) -> xr.DataArray:
    """The smallest attention on matching columns over the reasoning steps, prompts of eight examples and more."""
    return results["step_masses"].sel(length=slice(8, None)).min(("length", "reasoning_step"))


def length_exponent(results: xr.Dataset, variable: str, over: str) -> Estimate:
    """The exponent of the length at which the error passes 0.1 in a quantity of the test."""
    return boundary(below(results[variable], 0.1), "length", over).exponent


def vote_gap(results: xr.Dataset, variable: str) -> xr.DataArray:
    """How far a run lies from the law of the vote, at the worst length of three examples and more."""
    law = vote_law(results, variable)
    return np.abs(results[variable] - law).sel(length=slice(3, None)).max("length")


def vote_law(results: xr.Dataset, variable: str) -> xr.DataArray:
    """The error that the law of the vote predicts, for every cell and length."""
    found = [
        over_cells(results, lambda t, n=int(n): theory.predicted_errors(t, n)[variable])
        for n in results["length"].values
    ]
    return xr.concat(found, results["length"])


def stage_gap(results: xr.Dataset) -> xr.DataArray:
    """Steps from the end of stage one to 80 % on matching columns; never reached counts as no order."""
    late = results["matched"].where(results["matched"] >= 0, np.inf)
    early = results["stage_one"].where(results["stage_one"] >= 0, np.inf)
    return (late - early).where(np.isfinite(early), -1.0)


def stage_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of the length of stage one in alpha."""
    steps = results["stage_one"].where(results["stage_one"] > 0)
    return exponent(steps, "match_fraction")


def tail_constant(results: xr.Dataset) -> xr.DataArray:
    """`(1 - p)^2 2 eta t / M` at the end of every run: 1 by the mended law, K/3 by the printed one."""
    gap = 1 - results["masses"].sel(mass="same pattern, same step")
    scale = over_cells(results, lambda t: 2 * t.descent.learning_rate * t.steps / t.data.patterns)
    return gap**2 * scale


def mean_tail_constant(results: xr.Dataset) -> Estimate:
    return mean(tail_constant(results))


def tail_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of the tail's constant in K."""
    return exponent(tail_constant(results), "reasoning_steps")


def diagonal_ratio(results: xr.Dataset) -> Estimate:
    """The mean off-diagonal entry of the pattern block over its diagonal, times -(M - 1)."""
    ratio = results["off_diagonal"] / results["diagonal"]
    return mean(-ratio * (trial_at(results).data.patterns - 1))


def drift(results: xr.Dataset) -> xr.DataArray:
    """How far the conserved sums have moved."""
    return results["drift"]


def disagreement(results: xr.Dataset) -> xr.DataArray:
    """The largest difference of the two simulators along the loss."""
    curves = results["loss_curve"]
    return (
        np.abs(curves.sel(simulator="tokens") - curves.sel(simulator="patterns"))
        .max("step")
        .expand_dims(simulator=results["simulator"])
    )
