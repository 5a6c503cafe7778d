"""Theorems 4.1 and 4.2 inside Condition 4.1: test loss and time as the target loss goes to 0."""

from collections.abc import Callable
from math import log

import numpy as np
import xarray as xr

from lemmata.draw.curves import DOTS, lines, reference, slope
from lemmata.draw.palette import GREY, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, about, at_least, at_most, every_run, made, ours, proof, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.exponent import exponent
from lemmata.measure.trend import ratio
from lemmata.results import over_cells, settings
from lemmata.scale import Scale
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.figures.common import (
    CONTROL,
    CUT,
    THETA_OF_START,
    always,
    asymptotic,
    at_control,
    conditioned,
    derived,
    labels,
    norm_change,
    paying,
    seeds,
    stage1_over,
    step_at,
    times_of,
)
from lemmata.studies.benign_overfitting.theory import benign_conditions, conditions, harmful_conditions
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put, put_all

# What is run -----------------------------------------------------------------------------------------------------------


def inside(trial: BenignOverfitting, eps: float) -> BenignOverfitting:
    """The trial with target loss eps inside Condition 4.1: d_h and d twice what it asks for, sigma_p^2 d = 1."""
    trial = put(trial, "descent.target_loss", eps)
    key_dim = int(2 * theory.key_dim_needed(theory.setting(trial)))
    dim = int(2 * trial.data.samples**2 * key_dim / eps**2)
    return conditioned(
        put_all(trial, {"network.key_dim": key_dim, "data.dim": dim, "data.weak_noise": dim**-0.5})
    )


def paced(trial: BenignOverfitting, fraction: float) -> BenignOverfitting:
    """The trial with every step this fraction of the time gone by, from 1e-7 to twice the time that it takes, in units of
    the time in which the fastest value would reach 1."""
    s = theory.setting(put(trial, "descent.learning_rate", 1.0))
    last = 2 * fraction / (s.target_loss * max(theory.benign_rate(s), theory.harmful_rate(s)))
    first = 0.5e-7 * s.target_loss
    changes = {"descent.learning_rate": last, "ramp_start": first, "ramp_steps": log(1 / first) / fraction}
    return put_all(trial, {**changes, "descent.steps": int(log(100 / first) / fraction)})


def over_losses(controls: tuple[float, ...], halves: bool) -> Callable[[Scale], Sweep]:
    """Inside Condition 4.1, N = 80 and M = 2: over N SNR^2 and the target loss; with `halves`, also at half the steps."""

    def sweep(scale: Scale) -> Sweep:
        trial, levels, losses = asymptotic(80, 2), controls, (1e-2, 1e-3, 1e-4, 1e-5)
        if scale == "smoke":
            trial, levels, losses = put(asymptotic(8, 2), "test_points", 5), controls[:1], (1e-2, 1e-3)
        fractions = (0.02, 0.01) if scale == "smoke" else (0.008, 0.004)
        axes = (
            Axis("control", levels, at_control),
            Axis("target_loss", losses, lambda t, eps: paced(inside(t, eps), fractions[0])),
        )
        finer = Axis("fraction", fractions, paced)
        return Sweep(trial, (*axes, finer) if halves else axes, seeds(scale, 2, 4, 20))

    return sweep


# What is measured ------------------------------------------------------------------------------------------------------


def whole_steps(r: xr.Dataset) -> xr.DataArray:
    """Of two schedules of steps, the coarser."""
    return r.fraction == r.fraction.max()


def loss_over_target(r: xr.Dataset) -> Estimate:
    """The exponent of the test loss in eps."""
    return exponent(r.test_loss, "target_loss")


def time_over(r: xr.Dataset, axis: str) -> Estimate:
    """The exponent of the accumulated step size along an axis, with a constant of its own at each value of the others."""
    times = times_of(r, r.steps)
    own = np.exp(np.log(times).mean((axis, "seed")))  # pyright: ignore[reportArgumentType]
    return exponent(times / own, axis)


def norm_power(power: float) -> float:
    """A power of N SNR^2 as one of |mu|, of which it is the square."""
    return 2 * power


def halved_steps(r: xr.Dataset) -> Estimate:
    """The test loss with half the steps over that with whole steps, of the same draws."""
    fine, coarse = (r.test_loss.isel(fraction=r.fraction.argsort()[i], drop=True) for i in (0, -1))
    return ratio(fine, coarse)


def signal_attention_kept(r: xr.Dataset) -> xr.DataArray:
    """The least attention on the signal over all fresh points, in units of Lemma D.8's 1/(2M)."""
    return r.least_signal_attention / over_cells(r, lambda t: theory.least_signal_attention(t.data.tokens))


def leak_over_bound(r: xr.Dataset, query: str) -> xr.DataArray:
    """Attention off the strong noise at the end, over its order in (165)-(170) with constants 1."""
    which = 0 if query == "signal" else 1
    order = over_cells(r, lambda trial: theory.harmful_leak(theory.setting(trial))[which])
    return (1 - chosen(r.attention, query=query, key="strong")) / order


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Test loss and time against the target loss, inside Condition 4.1."""
    figure, (left, right) = canvas(2)
    results = results.isel(fraction=0) if "fraction" in results.dims else results
    said = {"over": "target_loss", "by": "control", "label": lambda c: f"{CONTROL} = {c:g}", "style": "o-"}
    drawn, times = lines(left, results.test_loss, **said), lines(right, results.time, **said)
    if float(results.test_loss.median()) < CUT:
        power = theory.fresh_loss_exponent(settings(results)["data.tokens"])
        slope(left, drawn[0], power, f"slope {power:g} (mean field)", colour=GREY)
    else:
        reference(left, y=theory.HARMFUL_LOSS_FLOOR_PROOF, label="floor of Lemma E.6", colour=RED, style="--")
    slope(right, times[0], -1, colour=GREY)
    panel(left, "target loss ε", "test loss", "generalisation", "xy")
    panel(right, "target loss ε", r"$\sum_t \eta_t$ until training loss ≤ ε", "time", "xy")
    return figure, f"Condition 4.1 met with constants 1, steps a fixed fraction of the time gone by. {DOTS}"


# What it can refute ----------------------------------------------------------------------------------------------------

INSIDE = "Condition 4.1 met with constants 1, N = 80, M = 2"
ONE_CONSTANT = "Theta with one constant for all eps: 10 % over three decades"
PRINTED = "the printed bound"
CONSTANT_ONE = "the printed order with its constant at 1"


def losses(power: float):
    """A test loss that goes as a power of eps."""
    return made(test_loss=lambda t: t.descent.target_loss**power)


def ended(unit: Callable[[BenignOverfitting], float], power: float):
    """Times of `unit` at eps = 1e-5 that go as a power of eps."""

    def steps(t: BenignOverfitting) -> float:
        eps = t.descent.target_loss
        return step_at(t, 1e5 * unit(t) * (eps / 1e-5) ** power)

    return steps


def benign_unit(t: BenignOverfitting) -> float:
    """2 / |mu|^2, by mean field."""
    return 2 * t.data.samples / t.data.control


def flat_unit(t: BenignOverfitting) -> float:
    """A time that falls more slowly with |mu|: as its power -1.5 instead of -2."""
    return benign_unit(t) * (t.data.control / 120_000) ** 0.25


def harmful_unit(t: BenignOverfitting) -> float:
    """N / C_p^2, by mean field."""
    return t.data.samples / t.data.noise_ratio**2


def led(factor: float):
    """The strong noise leads at this times 4 M (3M + 1) N / (d_h^1/4 (C_p^2 - 24 M)), Lemma E.3 at sigma_p^2 d = 1."""

    def leads(t: BenignOverfitting) -> float:
        many = 4 * t.data.tokens * (3 * t.data.tokens + 1) * t.data.samples
        return step_at(t, factor * many / (t.network.key_dim**0.25 * t.data.tokens))

    return leads


def leaking(factor: float, power: float):
    """Attention off the strong noise of LOG^3 / d_h^1/2, times this, times a power of 1/SNR^2 = N / (N SNR^2)."""

    def share(t: BenignOverfitting) -> float:
        log_union = np.log(600 * t.data.samples**2 * t.data.tokens**2)
        return 1 - factor * t.data.signal_norm ** (-2 * power) * log_union**3 / t.network.key_dim**0.5

    return made(attention=paying(share, "strong"), noise=0.0)


theorem_benign = Figure(
    "theorem-benign", "Theorem 4.1 inside its own conditions: test loss as the target loss goes to 0",
    f"{INSIDE}; N SNR^2 at 1.25 and at 10 times the 60 M^2 C_p^2 of the proof. Every step is a fixed fraction of the time gone "
    "by, and run again with half of it.",
    over_losses((15_000.0, 120_000.0), halves=True), draw, labels=labels, derived=derived,
    upheld_by=made(
        test_loss=lambda t: 5 * t.descent.target_loss**0.75, steps=ended(benign_unit, -1.0),
        least_signal_attention=always(0.4), fresh_noise_value=always(0.6), query_norm_change=always(2.5),
        key_norm_change=always(1.5), noise=1e-3,
    ),
    claims=[
        Claim(
            "theorem-benign-loss", "Inside Condition 4.1 the test loss is o(1) as eps goes to 0. With the constants of the "
            "proof it is at most of order eps^(1/(2 M^2)): a power of at least 1/8 at M = 2",
            theorem("Theorem 4.1, Lemma D.10"), headline=True,
            number=loss_over_target, holds=at_least(0.125, because="the printed power of eps; any power above 0 is o(1)"),
            cells=whole_steps, conditions=benign_conditions, refuted_by=losses(0.05),
        ),
        Claim(
            "theorem-benign-power", "Inside Condition 4.1 the test loss goes as eps^((2M-1)/M^2), because fresh noise queries "
            "attend to all tokens alike: 3/4 at M = 2", ours("README, the test loss"),
            number=loss_over_target,
            holds=about(0.75, 0.7, 0.8, because="attention of every query on the signal would give 1, of none 1/2"),
            cells=whole_steps, conditions=benign_conditions, refuted_by=losses(1.0),
        ),
        Claim(
            "theorem-benign-time", "Inside Condition 4.1 the benign convergence time goes as 1/eps", theorem("Theorem 4.1"),
            headline=True,
            number=lambda r: time_over(r, "target_loss"), holds=about(-1.0, -1.1, -0.9, because=ONE_CONSTANT),
            cells=whole_steps, conditions=benign_conditions, refuted_by=made(steps=ended(benign_unit, -0.8), noise=1e-4),
        ),
        Claim(
            "theorem-benign-signal", "Inside Condition 4.1 the benign convergence time goes as |mu|^-2", theorem("Theorem 4.1"),
            number=lambda r: time_over(r, "control").map(norm_power),
            holds=about(-2.0, -2.2, -1.8, because="Theta with one constant for all |mu|: 10 % in the power of |mu|^2"),
            cells=whole_steps, conditions=benign_conditions, refuted_by=made(steps=ended(flat_unit, -1.0), noise=1e-4),
        ),
        Claim(
            "step-schedule", "Steps that are a fixed fraction of the time gone by follow gradient flow, as those of Condition "
            "(6) would. Halving them leaves the test loss as it is", ours("Condition 4.1 (6)"),
            number=halved_steps,
            holds=about(1.0, 0.97, 1.03, because="a step is 0.8 per cent of the time: several times its effect on a loss "
                        "that goes as 1/t"),
            conditions=conditions, refuted_by=made(test_loss=lambda t: t.descent.target_loss * t.ramp_steps**0.1),
        ),
        Claim(
            "theorem-fresh-attention", "At all fresh points the signal query keeps at least 1/(2M) of its attention on the "
            "signal", proof("Lemma D.8"),
            number=signal_attention_kept, holds=every_run(at_least(1.0, because=PRINTED)), conditions=benign_conditions,
            refuted_by=made(least_signal_attention=always(0.15)),
        ),
        Claim(
            "theorem-fresh-noise", "Inside Condition 4.1 no noise token of a fresh point has a value above 1",
            proof("Lemma D.9"),
            number=lambda r: r.fresh_noise_value, holds=every_run(at_most(1.0, because=PRINTED)),
            conditions=benign_conditions, refuted_by=made(fresh_noise_value=always(1.5)),
        ),
        Claim(
            "theorem-norms", "Inside Condition 4.1 squared norms of queries and keys change by at most a factor 3 at all "
            "steps", proof("Appendix D.2, C(t); Appendix D.3, G(t)"),
            number=norm_change, holds=THETA_OF_START, conditions=benign_conditions,
            refuted_by=made(query_norm_change=always(5.0), key_norm_change=always(1.0)),
        ),
    ],
)  # fmt: skip

theorem_harmful = Figure(
    "theorem-harmful", "Theorem 4.2 inside its own conditions: N SNR^2 at most 4",
    f"{INSIDE}, N SNR^2 at most 4 as the proof of Theorem 4.2 asks (144).", over_losses((1.0, 4.0), halves=False), draw,
    labels=labels, derived=derived,
    upheld_by=made(
        test_loss=always(0.5), steps=ended(harmful_unit, -1.0), noise_leads=led(0.5), quiet_fraction=always(0.7),
        small_margin_fraction=always(0.7), noise=1e-3,
    ),
    claims=[
        Claim(
            "theorem-harmful-loss", "Inside Condition 4.1 with N SNR^2 <= 4 the test loss stays above log(1 + e^-1/2)/2 = "
            "0.237", theorem("Theorem 4.2, Lemma E.6"), headline=True,
            number=lambda r: r.test_loss,
            holds=every_run(at_least(theory.HARMFUL_LOSS_FLOOR_PROOF, because="the number in the proof, above the 0.1 of the "
                                     "lemma")),
            conditions=harmful_conditions, refuted_by=made(test_loss=always(0.15)),
        ),
        Claim(
            "theorem-harmful-time", "Inside Condition 4.1 the harmful convergence time goes as 1/eps", theorem("Theorem 4.2"),
            headline=True,
            number=lambda r: time_over(r, "target_loss"), holds=about(-1.0, -1.1, -0.9, because=ONE_CONSTANT),
            conditions=harmful_conditions, refuted_by=made(steps=ended(harmful_unit, -0.8), noise=1e-4),
        ),
        Claim(
            "theorem-harmful-stage1", "The strong noise's value leads 3M times no later than the explicit T1 of Lemma E.3",
            proof("Lemma E.3"),
            number=lambda r: stage1_over(r, r.noise_leads, theory.harmful_stage1_end),
            holds=every_run(at_most(1.0, because=PRINTED)), conditions=harmful_conditions,
            refuted_by=made(noise_leads=led(2.0), noise=1e-3),
        ),
        Claim(
            "theorem-quiet-noise", "With probability 1/2 every noise token of a fresh point has a value within 1/2",
            proof("proof of Lemma E.6"),
            number=lambda r: r.quiet_fraction, holds=every_run(at_least(0.5, because="the printed probability")),
            conditions=harmful_conditions, refuted_by=made(quiet_fraction=always(0.4)),
        ),
        Claim(
            "theorem-small-margin", "With probability 1/2 a fresh point has a margin of at most 1/2",
            proof("proof of Lemma E.6"),
            number=lambda r: r.small_margin_fraction, holds=every_run(at_least(0.5, because="the printed probability")),
            conditions=harmful_conditions, refuted_by=made(small_margin_fraction=always(0.4)),
        ),
        Claim(
            "harmful-leak-signal", "Attention of the signal query off the strong noise is O(SNR^-2 LOG^3 / (|w_O|^2 d_h^1/2)), "
            "with the constant 1", proof("Appendix E.3, (165), (166), (169)"),
            number=lambda r: leak_over_bound(r, "signal"), holds=every_run(at_most(1.0, because=CONSTANT_ONE)),
            conditions=harmful_conditions, refuted_by=leaking(2.0, 1.0), upheld_by=leaking(0.5, 1.0),
        ),
        Claim(
            "harmful-leak-noise", "Attention of the strong-noise query off the strong noise is O(LOG^3 / (|w_O|^2 d_h^1/2)), "
            "with the constant 1", proof("Appendix E.3, (167), (168), (170)"),
            number=lambda r: leak_over_bound(r, "strong"), holds=every_run(at_most(1.0, because=CONSTANT_ONE)),
            conditions=harmful_conditions, refuted_by=leaking(2.0, 0.0), upheld_by=leaking(0.5, 0.0),
        ),
    ],
)  # fmt: skip
