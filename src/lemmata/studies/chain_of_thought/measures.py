"""Results to numbers with intervals."""

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.columns import below
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent, power_law
from lemmata.measure.levelset import crossings
from lemmata.measure.simple import mean
from lemmata.measure.trend import arms, ordering
from lemmata.results import over_cells
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.trials import MASSES

LEVELS = (0.02, 0.01, 0.005, 0.0025)
"""The losses to which training is timed."""

# Regions ---------------------------------------------------------------------------------------------------------------


def in_span(results: xr.Dataset) -> xr.DataArray:
    """Test patterns in the span of the training patterns, as Theorem 4 has them."""
    return results["kind"] != "outside"


def in_span_off_the_mean(results: xr.Dataset) -> xr.DataArray:
    """In the span, no pattern with S^2 near M (the mended condition)."""
    return ~results["kind"].isin(["outside", "mean"])


def rotated(results: xr.Dataset) -> xr.DataArray:
    return results["kind"] == "rotations"


def straight(results: xr.Dataset) -> xr.DataArray:
    """Test patterns with equal coefficient sums: training patterns themselves, or rows that sum to zero."""
    return results["kind"].isin(["subset", "zero-sum"])


def outside(results: xr.Dataset) -> xr.DataArray:
    return results["kind"] == "outside"


def holds(results: xr.Dataset) -> xr.DataArray:
    return results["errors"] == "pairs-hold"


def fails(results: xr.Dataset) -> xr.DataArray:
    return results["errors"] == "pairs-fail"


def enough_examples(results: xr.Dataset) -> xr.DataArray:
    """Cells whose longest prompt has (alpha' tau rho)^-2 log M examples, (7.20) with constant 1."""

    def asked(trial) -> float:
        q = theory.test_quality(trial)
        return theory.cot_examples(trial.test.match_fraction, q.trajectory, q.primacy, trial.data.patterns)

    return over_cells(results, asked) <= float(results["length"].max())


# Tests -----------------------------------------------------------------------------------------------------------------


def at_longest(results: xr.Dataset, variable: str) -> xr.DataArray:
    """A number at the longest test prompt, run by run."""
    return results[variable].isel(length=-1)


def mean_at_longest(results: xr.Dataset, variable: str) -> Estimate:
    return mean(results[variable].isel(length=-1))


def at_any_length(results: xr.Dataset, variable: str) -> xr.DataArray:
    """The smallest error over all lengths, run by run."""
    return results[variable].min("length")


def fall(results: xr.Dataset, variable: str) -> Estimate:
    """The error at the longest prompt over that at the shortest."""
    return mean(results[variable].isel(length=-1) / results[variable].isel(length=0))


def ordered(results: xr.Dataset, variable: str, over: str, length: int) -> Estimate:
    """The smallest rise of the error from one value of an axis to the next smaller one, at one length."""
    values = results[variable].sel(length=length).sortby(over, ascending=False)
    return ordering(arms(values, over))


def matched_mass(results: xr.Dataset) -> xr.DataArray:
    """The smallest attention on matching columns over the reasoning steps, at the longest prompt."""
    return results["step_masses"].isel(length=-1).min("reasoning_step")


def length_exponent(results: xr.Dataset, variable: str, over: str) -> Estimate:
    """The exponent of the length at which the error passes 0.1 in a quantity of the test."""
    return boundary(below(results[variable], 0.1), "length", over).exponent


def vote_gap(results: xr.Dataset, variable: str) -> xr.DataArray:
    """How far a run lies from the law of the vote, at the worst length of three examples and more."""
    law = vote_law(results, variable)
    return np.abs(results[variable] - law).sel(length=slice(3, None)).max("length")  # pyright: ignore[reportAttributeAccessIssue]  (NumPy's function of a DataArray gives one)


def vote_law(results: xr.Dataset, variable: str) -> xr.DataArray:
    """The error that the law of the vote predicts, for every cell and length."""
    found = [
        over_cells(results, lambda t, n=int(n): theory.predicted_errors(t, n)[variable])
        for n in results["length"].values
    ]
    return xr.concat(found, results["length"])


def noise_change(results: xr.Dataset) -> xr.DataArray:
    """The largest change of the chain-of-thought error over the lengths, from the same run without noise."""
    error = results["cot_error"]
    return np.abs(error - error.sel(noise=0.0)).max("length")  # pyright: ignore[reportArgumentType]  (NumPy's function of a DataArray gives one)


def noise_rise(results: xr.Dataset) -> xr.DataArray:
    """The largest rise of that error over the lengths."""
    error = results["cot_error"]
    return (error - error.sel(noise=0.0)).max("length")


# Training --------------------------------------------------------------------------------------------------------------


def ended(results: xr.Dataset, variable: str) -> xr.DataArray:
    """A curve at its last step."""
    return results[f"{variable}_curve"].isel(step=-1)


def matched(results: xr.Dataset) -> xr.DataArray:
    """p(t), the attention on matching columns of the same step."""
    return results["masses_curve"].sel(mass=MASSES[0])


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
    scale = over_cells(results, lambda t: 2 * t.descent.learning_rate * t.steps / t.data.patterns)
    return (1 - ended(results, "masses").sel(mass=MASSES[0])) ** 2 * scale


def mean_tail_constant(results: xr.Dataset) -> Estimate:
    return mean(tail_constant(results))


def tail_exponent(results: xr.Dataset) -> Estimate:
    """The exponent of the tail's constant in K."""
    return exponent(tail_constant(results), "reasoning_steps")


def time_exponent_in(results: xr.Dataset, over: str) -> Estimate:
    """The exponent of the steps to the smallest loss in a quantity of the training; of the steps a pattern where it is not
    M."""
    where, side = _times(results, LEVELS[-1])
    if over != "patterns":
        where = where / over_cells(results, lambda t: t.data.patterns)
    return power_law(where, over, side).exponent


def time_exponent_in_loss(results: xr.Dataset) -> Estimate:
    """The exponent of the steps to a loss in the loss."""
    found = [_times(results, level) for level in LEVELS]
    place = xr.DataArray(list(LEVELS), dims="level", coords={"level": list(LEVELS)})
    where, side = (xr.concat([one[n] for one in found], place) for n in (0, 1))
    return power_law(where, "level", side, paired=True).exponent


def _times(results: xr.Dataset, level: float) -> tuple[xr.DataArray, xr.DataArray]:
    curves = results["loss_curve"]
    return crossings(curves.isel(step=slice(1, None)), level, "step")


def gradient_margin(results: xr.Dataset, line: int) -> xr.DataArray:
    """How far the gradient between two columns lies inside the bounds of Lemma F.3.5 (negative: outside) at the worst logged
    step of the first stage, as a share of the leading size alpha/K^3 of such gradients; `line` counts the four masses."""
    found, moments = results["pulls_curve"].isel(mass=line), results["moments_curve"]

    def bound(side: int) -> xr.DataArray:
        def coefficient(trial, power: int) -> float:
            terms = theory.gradient_bounds(theory.setting(trial))[MASSES[line]][side].coef
            return float(terms[power]) if power < len(terms) else 0.0

        terms = [over_cells(results, lambda t, n=n: coefficient(t, n)) for n in range(4)]
        return terms[0] + sum(terms[n] * moments.sel(power=n) for n in (1, 2, 3))

    room = np.minimum(bound(1) - found, found - bound(0))
    first = over_cells(results, lambda t: theory.stage1_time(theory.setting(t, 0.05)))
    size = over_cells(results, lambda t: t.data.match_fraction / t.data.steps**3)
    return (room / size).where(results["step"] <= first).min("step")  # pyright: ignore[reportAttributeAccessIssue]  (NumPy's function of a DataArray gives one)


def late_rate(results: xr.Dataset, line: int) -> xr.DataArray:
    """The gradient between two columns of the same step at the end of training, over `p (1 - p)^2 / (2M)`."""
    p1, p2, p3 = (ended(results, "moments").sel(power=n) for n in (1, 2, 3))
    unit = (p1 - 2 * p2 + p3) / (2 * over_cells(results, lambda t: t.data.patterns))
    return ended(results, "pulls").isel(mass=line) / unit


def late_size(results: xr.Dataset, line: int, eps: float = 0.05) -> xr.DataArray:
    """The size of the gradient between two columns of different steps, over eps, at the worst logged step from `T_1` on."""
    first = over_cells(results, lambda t: theory.stage1_time(theory.setting(t, eps)))
    sizes = np.abs(results["pulls_curve"].isel(mass=line)) / eps
    return sizes.where(results["step"] >= first).max("step")  # pyright: ignore[reportAttributeAccessIssue]


def growth_share(results: xr.Dataset) -> xr.DataArray:
    """The logit gap of same over other steps, over its lower bound (F.135), at the worst step of stage one where the bound has
    left the initial noise (0.05)."""
    rate = over_cells(
        results, lambda t: 2 * t.descent.learning_rate * t.data.match_fraction**2 / t.data.steps**3
    )
    moments = results["moments_curve"]
    speed = 1 - 2 * moments.sel(power=1) + moments.sel(power=2)
    bound = rate * speed.cumulative_integrate("step")
    first = over_cells(results, lambda t: theory.stage1_time(theory.setting(t, 0.05)))
    chosen = (bound > 0.05) & (results["step"] <= first)
    return (results["step_gap_curve"] / bound).where(chosen).min("step")


def classes_gap(results: xr.Dataset) -> xr.DataArray:
    """The largest distance of p(t) between prompts as drawn and expected counts."""
    p = matched(results)
    gap = np.abs(p.sel(simulator="patterns") - p.sel(simulator="classes")).max("step")  # pyright: ignore[reportArgumentType]  (NumPy's function of a DataArray gives one)
    return gap.expand_dims(simulator=results["simulator"])


def drift(results: xr.Dataset) -> xr.DataArray:
    """How far the conserved sums have moved."""
    return results["drift"]


def disagreement(results: xr.Dataset) -> xr.DataArray:
    """The largest difference of the two simulators along the loss."""
    curves = results["loss_curve"]
    gap = np.abs(curves.sel(simulator="tokens") - curves.sel(simulator="patterns")).max("step")  # pyright: ignore[reportArgumentType]  (NumPy's function of a DataArray gives one)
    return gap.expand_dims(simulator=results["simulator"])


# Several layers --------------------------------------------------------------------------------------------------------


def lead_of_matching(results: xr.Dataset) -> xr.DataArray:
    """By how much attention on matching columns leads the largest other kind: the best head of the worst layer."""
    masses = ended(results, "masses")
    others = masses.isel(mass=slice(1, None)).max("mass")
    return (masses.isel(mass=0) - others).max("head").min("layer")


def largest_matching(results: xr.Dataset) -> Estimate:
    """The attention on matching columns in the layer and head that has most of it."""
    return mean(ended(results, "masses").isel(mass=0).max(("layer", "head")))
