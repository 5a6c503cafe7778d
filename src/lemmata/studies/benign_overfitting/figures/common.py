"""What the experiments share: the trials of Figure 1 and of Condition 4.1, their labels, the curves that N SNR^2 is compared
with, and laws of made results."""

from collections.abc import Callable, Mapping, Sequence
from math import inf, log, sqrt
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from lemmata.descent import Descent
from lemmata.draw.curves import reference
from lemmata.draw.palette import colours
from lemmata.figure import at_most, every_run
from lemmata.measure.boundary import boundary
from lemmata.measure.columns import above, converged, flagged
from lemmata.measure.estimate import Estimate
from lemmata.measure.levelset import level_set
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.data import Data
from lemmata.studies.benign_overfitting.network import Network
from lemmata.studies.benign_overfitting.trials import KINDS, LOSSES, BenignOverfitting
from lemmata.trial import put, put_all

CUT = 0.2
"""The paper's cut between small and large test loss (Figure 1b)."""
ENDED = ("capped", "diverged")
"""Where reaching the loss is part of the statement, runs that do not count against it."""

MOST_WHY = "the paper has probability 1 - 1/d: at least 9 runs in 10, the interval included"
FEW_WHY = "in all runs; with 16 seeds, 7 runs in 10 with the interval included is what can be told"
SLOPE_WHY = "constant within 15 % over the grid"
CONSTANT = "README, the constant of the boundary"
IN_LAW = "Reduced variables drawn in law at d_h = 1e12, d = 1e16, M = 3"
THETA_OF_START = every_run(
    at_most(3.0, because="Theta(1) with the constants that Lemma C.3 has at the start, 1/2 and 3/2")
)

READ_OUTS: dict[str, dict[str, Any]] = {
    "read-out divided": {"network.readout_divisor": 16.0},
    "read-out left": {"network.readout_divisor": 1.0},
}
"""Whether 'the parameters divided by 16' includes the read-out."""

SNR = r"SNR $= |\mu|/(\sigma_p\sqrt{d})$"
CONTROL = r"$N\,\mathrm{SNR}^2$"
RELATIVE = r"$N\,\mathrm{SNR}^2 / (2 C_p^2)$"
STAGES = {"signal_leads": (":", "T1"), "slope_leaves": ("--", "T2"), "steps": ("-", "T3")}
"""The ends of the stages: the signal leads 3M times, a loss derivative leaves [0.45, 0.55], the loss is reached."""

# What is run -----------------------------------------------------------------------------------------------------------


def template() -> BenignOverfitting:
    """The trial of Figure 1 (Section 6): M = 16, d = 1024, d_h = d_v = 512, noise 0.2 and 4, step 0.1, to loss 0.01."""
    return BenignOverfitting(descent=Descent(logs=30))


def small(trial: BenignOverfitting) -> BenignOverfitting:
    """A trial shrunk for tests: same mechanism, a thousandth of the work."""
    changes = {"data.tokens": 4, "data.dim": 128, "network.key_dim": 32, "network.value_dim": 16}
    return put_all(trial, {**changes, "test_points": 20, "descent.steps": 4000})


def seeds(scale: Scale, smoke: int, quick: int, paper: int) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, smoke, quick, paper)))


def asymptotic(samples: int = 10, tokens: int = 3) -> BenignOverfitting:
    """The theorem's own regime, which no matrix reaches: d_h = 1e12, d = 1e16, drawn in law; C_p = 5 sqrt(M),
    sigma_p^2 d = 1; query/key start at the top of Condition (8), value start a tenth of Condition (7)."""
    return BenignOverfitting(
        data=Data(
            weak_noise=1e-8,
            noise_ratio=5 * sqrt(tokens),
            signal_norm=1.0,
            samples=samples,
            tokens=tokens,
            dim=10**16,
            orthogonal_noise=True,
        ),
        network=Network(key_dim=10**12, value_dim=1, init="gaussian"),
        descent=Descent(steps=60_000, logs=80),
        ramp_steps=2000.0,
        ramp_start=1e-6,
        simulator="row",
        sampling="wishart",
        precision="float64",
        test_points=50,
    )


def at_control(trial: BenignOverfitting, control: float) -> BenignOverfitting:
    """The trial at a value of N SNR^2; with a Gaussian start, the one that Condition 4.1 asks for there."""
    norm = trial.data.signal_norm * sqrt(control / trial.data.control)
    trial = put(trial, "data.signal_norm", norm)
    return conditioned(trial) if trial.network.init == "gaussian" else trial


def conditioned(trial: BenignOverfitting, scale: float = 1.0) -> BenignOverfitting:
    """The query/key start at the top of Condition (8) (its standard deviation times `scale`) and the value start at a tenth
    of Condition (7); the final step as large as is smooth, eta max(|mu|^2/2, C_p^2 sigma_p^2 d/N) = 0.05."""
    s = theory.setting(put(trial, "descent.learning_rate", 1.0))
    fastest = max(theory.benign_rate(s), theory.harmful_rate(s))
    changes = {
        "network.std_qk": 0.9999 * scale * sqrt(theory.init_window(s)[1]),
        "network.std_value": 0.1 * theory.value_std_allowed(s),
        "descent.learning_rate": 0.05 / fastest,
    }
    return put_all(trial, changes)


def labels(trial: Any) -> Mapping[str, Sequence[Any]]:
    """Names of token kinds and loss levels."""
    return {"query": KINDS, "key": KINDS, "loss_level": LOSSES}


def derived(results: xr.Dataset) -> xr.Dataset:
    """SNR and N SNR^2 as coordinates along the axes that move them."""
    found = {
        "snr": over_cells(results, lambda trial: trial.data.snr),
        "control": over_cells(results, lambda trial: trial.data.control),
    }
    known = {name: _varying(values) for name, values in found.items() if name not in results.coords}
    return results.assign_coords(known)


def _varying(values: xr.DataArray) -> xr.DataArray:
    """Without the dimensions along which nothing changes."""
    for dim in values.dims:
        first = values.isel({dim: 0}, drop=True)
        values = first if float(abs(values / first - 1).max()) < 1e-9 else values
    return values.drop_vars("trial", errors="ignore")


# Critical values of N SNR^2 ---------------------------------------------------------------------------------------------


def paper(trial: Any) -> float:
    return theory.PAPER_CONTROL


def mean_field(trial: Any) -> float:
    return theory.critical_control(trial.data.noise_ratio)


def with_feedback(trial: Any) -> float:
    return critical_ratio(trial) * mean_field(trial)


def critical_ratio(trial: Any) -> float:
    return theory.critical_ratio_of(theory.setting(trial))


# What several figures measure ------------------------------------------------------------------------------------------


def held(r: xr.Dataset, fact: xr.DataArray) -> xr.DataArray:
    """1 in runs that reached the loss and of which the fact is true, else 0."""
    return flagged(fact & converged(r), r)


def norm_change(r: xr.Dataset) -> xr.DataArray:
    """The largest factor by which a squared query or key norm differed from its start at any step, up or down."""
    return np.maximum(r.query_norm_change, r.key_norm_change)


def stages_in_order(r: xr.Dataset) -> xr.DataArray:
    """T1 < T2 < T3: the signal leads 3M times, a loss derivative leaves [0.45, 0.55], the loss is reached."""
    leads = r.signal_leads.where(r.signal_leads >= 0, inf)
    return flagged((leads < r.slope_leaves) & (r.slope_leaves < r.steps), r)


def lead_lasts(r: xr.Dataset) -> xr.DataArray:
    """The signal leads 3M times at some step, and at every step from then on."""
    since = r.steps - r.signal_leads + 1
    return flagged((r.signal_leads >= 0) & (r.signal_lead_steps == since), r)


def times_of(r: xr.Dataset, steps: xr.DataArray) -> xr.DataArray:
    """Steps as accumulated step sizes; infinite where they are negative (never), NaN where there is no run."""
    steps = steps.transpose(*r.trial.dims, "seed")
    found = np.full(steps.shape, np.nan)
    for at, there in np.ndenumerate(r.trial.values):
        if there is not None:
            clock, own = theory.clock(there.trial), steps.values[at]
            found[at] = np.where(own < 0, inf, clock[np.nan_to_num(own, nan=0.0).astype(int)])
    return steps.copy(data=found).where(steps.notnull())


def stage1_over(r: xr.Dataset, leads: xr.DataArray, end: Callable[[theory.Setting], float]) -> xr.DataArray:
    """When the winning value first led 3M times, over an explicit T1; infinite where it never did."""

    def bound(trial: Any) -> float:
        s = theory.setting(trial)
        return end(s) * s.learning_rate

    return times_of(r, leads) / over_cells(r, bound)


def wins(r: xr.Dataset) -> xr.DataArray:
    return above(r.signal_wins, 0.5)


def cut_exponent(r: xr.Dataset) -> Estimate:
    """Where the test loss passes 0.2: SNR as a power of N."""
    return level_set(r.test_loss, CUT, "snr", "samples").exponent


def flip(r: xr.Dataset, curve: Callable[[Any], float], over: str = "samples") -> Estimate:
    """The N SNR^2 at which the signal wins half of the runs, over that of a curve, for all values of an axis together."""
    relative = r.assign_coords(relative=r.control / over_cells(r, curve))
    return boundary(wins(relative), "relative", over, exponent=0.0).constant


# How it looks ----------------------------------------------------------------------------------------------------------


def mark_critical(axes: Axes, results: xr.Dataset, by: str) -> None:
    """Where the mean field with attention has the flip, in units of 2 C_p^2, for every arm along `by`."""
    names = results[by].values.tolist()
    flips = over_cells(results, critical_ratio).median("control")
    for name, colour in zip(names, colours(names), strict=True):
        reference(axes, x=float(flips.sel({by: name})), colour=colour, style="--")


# Made results ----------------------------------------------------------------------------------------------------------


def always(value: float) -> Callable[[Any], float]:
    """The same number in every run."""
    return lambda t: value


def loss_beyond(critical: Callable[[Any], float]) -> Callable[[Any], float]:
    """A test loss that falls from log 2 to nearly 0 where the SNR passes a critical value."""
    return lambda t: log(2) / (1 + (t.data.snr / critical(t)) ** 8)


def wins_beyond(critical: Callable[[Any], float]) -> Callable[..., float]:
    """The signal wins from a critical value of N SNR^2 on, which differs by 5 % from run to run."""
    return lambda t, rng: float(t.data.control > critical(t) * np.exp(0.05 * rng.normal()))


def paying(share: Callable[[Any], float] | float, to: str) -> Callable[..., np.ndarray]:
    """Attention of all queries alike: this share on one kind of key, the rest on the two others."""

    def attention(t: Any, key: np.ndarray) -> np.ndarray:
        own = share(t) if callable(share) else share
        return np.where(key == to, own, (1 - own) / 2)

    return attention


def step_at(trial: Any, time: float) -> float:
    """The step at which step sizes that grow geometrically, as they do at first, add up to a time."""
    growth = log(1 / trial.ramp_start) / trial.ramp_steps
    first = trial.descent.learning_rate * trial.ramp_start
    return round(np.log1p(time * growth / first) / growth)
