"""What the claims measure, by name, and the cells that they speak of.

A measure sees results in which runs that do not count are masked (NaN). It gives an estimate, or one number a run.
"""

from collections.abc import Callable
from dataclasses import replace
from math import inf
from typing import Any, Literal

import numpy as np
import xarray as xr

from lemmata.measure.boundary import boundary
from lemmata.measure.columns import above, below, capped, converged, flagged
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.exponent import exponent
from lemmata.measure.levelset import level_set
from lemmata.measure.simple import fraction, mean
from lemmata.measure.times import Growth, growth
from lemmata.measure.trend import difference, ratio
from lemmata.results import over_cells
from lemmata.studies.benign_overfitting import theory

CUT = 0.2
"""The paper's cut between small and large test loss (Figure 1b)."""

BENIGN_FROM, HARMFUL_TO = 2000.0, 400.0
"""Well on either side of the paper's curve N SNR^2 = 1000: a factor 2 and more."""

Regime = Literal["benign", "harmful"]


# Regions -------------------------------------------------------------------------------------------------------------


def benign_cells(r: xr.Dataset) -> xr.DataArray:
    return r.control >= BENIGN_FROM


def harmful_cells(r: xr.Dataset) -> xr.DataArray:
    return r.control <= HARMFUL_TO


def off_the_paper_curve(r: xr.Dataset) -> xr.DataArray:
    return _far(r.control / theory.PAPER_CONTROL)


def off_the_mean_field(r: xr.Dataset) -> xr.DataArray:
    return _far(r.control / over_cells(r, _mean_field))


def off_the_feedback_curve(r: xr.Dataset) -> xr.DataArray:
    return _far(r.control / over_cells(r, _feedback))


def high_losses(r: xr.Dataset) -> xr.DataArray:
    """Runs that did not generalise: a test loss above 0.4, more than half of that of a coin."""
    return r.test_loss > 0.4


def literal_benign(r: xr.Dataset) -> xr.DataArray:
    """Where the proof of Theorem 4.1 holds with its constants as printed."""
    s = theory.setting
    return over_cells(r, lambda trial: s(trial).control > theory.literal_control(s(trial))) == 1


def whole_steps(r: xr.Dataset) -> xr.DataArray:
    """Of two schedules of steps, the coarser."""
    return r.fraction == r.fraction.max()


def benign_arms(r: xr.Dataset) -> xr.DataArray:
    return r.regime == "benign"


def harmful_arms(r: xr.Dataset) -> xr.DataArray:
    return r.regime == "harmful"


def _far(relative: xr.DataArray) -> xr.DataArray:
    return (relative >= 2) | (relative <= 0.5)


def _mean_field(trial: Any) -> float:
    return theory.critical_control(trial.data.noise_ratio)


def _feedback(trial: Any) -> float:
    return theory.critical_ratio_of(theory.setting(trial)) * _mean_field(trial)


CURVES: dict[str, Callable[[Any], float]] = {
    "paper": lambda trial: theory.PAPER_CONTROL,
    "mean field": _mean_field,
    "feedback": _feedback,
}
"""Critical values of N SNR^2 at a trial."""


# One number a run ----------------------------------------------------------------------------------------------------


def recorded(r: xr.Dataset, variable: str) -> xr.DataArray:
    return r[variable]


def end_attention(r: xr.Dataset, queries: tuple[str, ...], key: str) -> xr.DataArray:
    """The least attention of these queries on a key at the end."""
    return r.attention.sel(query=list(queries), key=key, drop=True).min("query")


def signal_attention_kept(r: xr.Dataset) -> xr.DataArray:
    """The least attention on the signal over all fresh points, in units of Lemma D.8's 1/(2M)."""
    return r.least_signal_attention / over_cells(r, lambda t: theory.least_signal_attention(t.data.tokens))


def norm_change(r: xr.Dataset) -> xr.DataArray:
    """The largest factor by which a squared query or key norm differed from its start at any step, up or down."""
    return np.maximum(r.query_norm_change, r.key_norm_change)


def stage1_over_bound(r: xr.Dataset, regime: Regime) -> xr.DataArray:
    """When the winning value first led 3M times, over the explicit T1; infinite where it never did."""
    end = theory.benign_stage1_end if regime == "benign" else theory.harmful_stage1_end
    leads = r.signal_leads if regime == "benign" else r.noise_leads

    def bound(trial: Any) -> float:
        s = theory.setting(trial)
        return end(s) * s.learning_rate

    return _times(r, leads) / over_cells(r, bound)


def linear_floor(r: xr.Dataset) -> xr.DataArray:
    """B(t): the signal's value from T1 to T2, over eta |mu|^2 |w_O|^2 (t - T1) / (10 M), where it is least."""

    def slope(trial: Any) -> float:
        s = theory.setting(trial)
        return theory.linear_value_bounds(s)[0] / s.learning_rate

    since = r.time_curve - _times(r, r.signal_leads)
    stage = (since > 0) & (r.step <= r.slope_leaves)
    return (r.signal_value_curve / (since * over_cells(r, slope))).where(stage).min("step")


def leak_over_bound(r: xr.Dataset, query: str) -> xr.DataArray:
    """Attention off the strong noise at the end, over its order in (165)-(170) with constants 1."""
    which = 0 if query == "signal" else 1
    order = over_cells(r, lambda trial: theory.harmful_leak(theory.setting(trial))[which])
    return (1 - r.attention.sel(query=query, key="strong", drop=True)) / order


def _times(r: xr.Dataset, steps: xr.DataArray) -> xr.DataArray:
    """Steps as accumulated step sizes; infinite where they are negative (never), NaN where there is no run."""
    steps = steps.transpose(*r.trial.dims, "seed")
    found = np.full(steps.shape, np.nan)
    for at, held in np.ndenumerate(r.trial.values):
        if held is not None:
            clock, own = theory.clock(held.trial), steps.values[at]
            found[at] = np.where(own < 0, inf, clock[np.nan_to_num(own, nan=0.0).astype(int)])
    return steps.copy(data=found).where(steps.notnull())


# What is true of a run: 1 or 0 ---------------------------------------------------------------------------------------


def share(r: xr.Dataset, variable: str, at_least: float = -inf, at_most: float = inf) -> xr.DataArray:
    """The recorded number lies in a range, and the run converged."""
    return flagged((r[variable] >= at_least) & (r[variable] <= at_most) & converged(r), r)


def told_apart(r: xr.Dataset, curve: str) -> xr.DataArray:
    """The run is on the side of the cut where a curve has it: low test loss above it."""
    return flagged((r.test_loss < CUT) == (r.control > over_cells(r, CURVES[curve])), r)


def stages_in_order(r: xr.Dataset) -> xr.DataArray:
    """T1 < T2 < T3: the signal leads 3M times, a loss derivative leaves [0.45, 0.55], the loss is reached."""
    leads = r.signal_leads.where(r.signal_leads >= 0, inf)
    return flagged((leads < r.slope_leaves) & (r.slope_leaves < r.steps), r)


def lead_lasts(r: xr.Dataset) -> xr.DataArray:
    """The signal leads 3M times at some step, and at every step from then on."""
    since = r.steps - r.signal_leads + 1
    return flagged((r.signal_leads >= 0) & (r.signal_lead_steps == since), r)


def shape_of_signal_value(r: xr.Dataset, shape: Growth, late: bool) -> Estimate:
    """The fraction of runs whose signal value has this shape: in stage II (until some loss derivative leaves
    [0.45, 0.55]), or late in stage III (from ten times that step on)."""
    step = np.asarray(r.step.values, float)
    found = []
    for seed in r.seed.values[np.asarray(r.status.notnull())]:
        run = r.sel(seed=seed)
        leaves = float(run.slope_leaves)
        needs(leaves > 0, "in some run the loss derivative never left [0.45, 0.55].")
        stage = (step >= 10 * leaves) if late else (step > 0) & (step <= leaves)
        found.append(growth(step[stage], run.signal_value_curve.values[stage]).best == shape)
    needs(found, "no run has a value to measure (all records are missing or not finite).")
    return fraction(np.asarray(found, float))


# Boundaries ----------------------------------------------------------------------------------------------------------


def cut_exponent(r: xr.Dataset) -> Estimate:
    """Where the test loss passes 0.2: SNR as a power of N."""
    return level_set(r.test_loss, CUT, "snr", "samples").exponent


def winner_exponent(r: xr.Dataset) -> Estimate:
    """Where the signal's value overtakes the strong noise's: SNR as a power of N."""
    return boundary(_wins(r), "snr", "samples").exponent


def cut_constant(r: xr.Dataset) -> Estimate:
    """The N SNR^2 at which the test loss passes 0.2, over 2 C_p^2, at the theory's exponent -1/2."""
    relative = r.assign_coords(relative=np.sqrt(r.control / over_cells(r, _mean_field) / r.samples))
    return boundary(below(relative.test_loss, CUT), "relative", "samples", exponent=-0.5).constant.map(
        lambda v: v**2
    )


def flip(r: xr.Dataset, curve: str, over: str = "samples") -> Estimate:
    """The N SNR^2 at which the signal wins half of the runs, over that of a curve, for all values of an axis together."""
    relative = r.assign_coords(relative=r.control / over_cells(r, CURVES[curve]))
    return boundary(_wins(relative), "relative", over, exponent=0.0).constant


def ratio_exponent(r: xr.Dataset, winner: bool) -> Estimate:
    """The critical N SNR^2 as a power of C_p, by who wins or by where the test loss passes 0.2: over 2 C_p^2, plus the 2
    that this unit has taken out."""
    if winner:
        law = boundary(_wins(r), "relative_control", "noise_ratio").exponent
    else:
        law = level_set(r.test_loss, CUT, "relative_control", "noise_ratio").exponent
    return law.map(lambda power: power + 2)


def _wins(r: xr.Dataset) -> xr.DataArray:
    return above(r.signal_wins, 0.5)


# Laws ----------------------------------------------------------------------------------------------------------------


def time_exponent(r: xr.Dataset, over: str) -> Estimate:
    return exponent(r.steps, over, censored=capped(r))


def loss_time_exponent(r: xr.Dataset) -> Estimate:
    """The exponent of the steps in eps over the three smallest levels, where the law is asymptotic."""
    steps = r.loss_steps.where(r.loss_steps > 0).isel(loss_level=slice(-3, None))
    others = [d for d in steps.dims if d not in ("seed", "loss_level")]
    return exponent(steps.mean(others), "loss_level", paired=True)


def time_constant(r: xr.Dataset, regime: Regime) -> Estimate:
    """Measured over predicted convergence time, each run with its own read-out norm."""
    rate = theory.benign_rate if regime == "benign" else theory.harmful_rate

    def unit(trial: Any) -> float:
        """The predicted time for a read-out of norm 1, where the run has its own."""
        s = replace(theory.setting(trial), readout_norm=1.0)
        return theory.convergence_time(rate(s), s.target_loss)

    return mean(r.steps * r.readout_square / over_cells(r, unit))


def time_over_target(r: xr.Dataset) -> Estimate:
    """The exponent in eps of the accumulated step size, over runs with different targets."""
    return exponent(_times(r, r.steps), "target_loss")


def loss_over_target(r: xr.Dataset) -> Estimate:
    """The exponent of the test loss in eps."""
    return exponent(r.test_loss, "target_loss")


def leak_exponent(r: xr.Dataset, query: str) -> Estimate:
    return exponent(1 - r.attention.sel(query=query, key="signal", drop=True), "key_dim")


def noise_share(r: xr.Dataset) -> Estimate:
    return mean(r.noise_share)


def halved_steps(r: xr.Dataset) -> Estimate:
    """The test loss with half the steps over that with whole steps, of the same draws."""
    fine, coarse = (r.test_loss.isel(fraction=r.fraction.argsort()[i], drop=True) for i in (0, -1))
    return ratio(fine, coarse)


def frozen_attention_time(r: xr.Dataset) -> Estimate:
    """Steps with queries and keys frozen over steps with everything trained; a capped run counts with its cap."""
    return ratio(*(r.steps.sel(arm=name, drop=True) for name in ("attention frozen", "all")))


def frozen_values_attention(r: xr.Dataset, key: str) -> Estimate:
    """Attention of the signal query on a key at the end, with everything trained less with values frozen."""
    attention = r.attention.sel(query="signal", key=key, drop=True)
    return difference(*(attention.sel(arm=name, drop=True) for name in ("all", "values frozen")))


def exact_reductions(r: xr.Dataset) -> Estimate:
    """The largest relative distance from the direct simulator, over all recorded losses of the exact reduced forms."""
    direct, worst = r.sel(simulator="direct"), []
    for name in ("row", "gram"):
        other = r.sel(simulator=name)
        pairs = [(other.train_loss_curve, direct.train_loss_curve), (other.test_loss, direct.test_loss)]
        worst += [float(np.abs(a / b - 1).max()) for a, b in pairs]
    needs(np.isfinite(worst).all(), "some run of the exact simulators is missing.")
    largest = max(worst)
    return Estimate(largest, largest, largest, r.sizes["seed"], note="The largest over all draws and steps.")
