"""The three stages where the proof of Theorem 4.1 holds with its constants as printed."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import one_run, reference
from lemmata.draw.palette import BLUE, GREEN, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, at_most, every_run, made, most_runs, proof
from lemmata.results import over_cells, settings
from lemmata.scale import Scale, by_scale
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.figures.common import (
    CONTROL,
    IN_LAW,
    MOST_WHY,
    STAGES,
    always,
    asymptotic,
    at_control,
    derived,
    labels,
    lead_lasts,
    seeds,
    stage1_over,
    stages_in_order,
    step_at,
    times_of,
)
from lemmata.studies.benign_overfitting.theory import benign_conditions
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.sweep import Axis, Sweep, axis

# What is run -----------------------------------------------------------------------------------------------------------


def sweep(scale: Scale) -> Sweep:
    literal = theory.literal_control(theory.setting(asymptotic()))
    ratios, samples = by_scale(scale, ((1.5,), (6,)), *2 * [((1.5, 3.0, 6.0), (6, 10))])
    controls = Axis("control", tuple(literal * r for r in ratios), at_control)
    return Sweep(asymptotic(), (axis("data.samples", samples), controls), seeds(scale, 2, 16, 50))


# What is measured ------------------------------------------------------------------------------------------------------


def literal_benign(r: xr.Dataset) -> xr.DataArray:
    """Where the proof of Theorem 4.1 holds with its constants as printed."""

    def there(trial: BenignOverfitting) -> bool:
        s = theory.setting(trial)
        return s.control > theory.literal_control(s)

    return over_cells(r, there) == 1


def linear_floor(r: xr.Dataset) -> xr.DataArray:
    """B(t): the signal's value from T1 to T2, over eta |mu|^2 |w_O|^2 (t - T1) / (10 M), where it is least."""

    def slope(trial: BenignOverfitting) -> float:
        s = theory.setting(trial)
        return theory.linear_value_bounds(s)[0] / s.learning_rate

    since = r.time_curve - times_of(r, r.signal_leads)
    stage = (since > 0) & (r.step <= r.slope_leaves)
    return (r.signal_value_curve / (since * over_cells(r, slope))).where(stage).min("step")


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Values and signal attention over accumulated step size, in units of eta |mu|^2 |w_O|^2 t, with the ends of the
    stages of one run."""
    figure, axes = canvas(results.sizes["control"], width=4.2, squeeze=False)
    noise = settings(results)["data.weak_noise"] ** 2 * settings(results)["data.dim"]
    for ax, control in zip(axes[0], results.control.values, strict=True):
        one = one_run(results.sel(control=control).isel(samples=-1))
        time = one.time_curve * float(control) / float(one.samples) * noise
        known = np.isfinite(time.values)
        at, step = time.values[known], np.asarray(one.time_curve.step, float)[known]
        for curve, colour, label in (
            (one.signal_value_curve, BLUE, "value of the signal"),
            (abs(one.strong_value_curve), RED, "|value of the strong noise|"),
            (one.attention_curve.sel(query="signal", key="signal"), GREEN, "attention on the signal"),
        ):
            ax.plot(at, curve.values[known], color=colour, label=label)
        for name, (style, label) in STAGES.items():
            if len(at) and float(one[name]) > 0:
                reference(ax, x=float(np.interp(float(one[name]), step, at)), label=label, style=style)
        title, ylim = f"{CONTROL} = {control:.3g}", (1e-8, 100)
        panel(ax, r"$\eta |\mu|^2 |w_O|^2\, t$", "value, attention", title, "xy", ylim=ylim)
    said = "T1: the signal leads 3M times, T2: the loss derivative decays, T3: the end."
    return figure, f"One run each, N = {int(results.samples[-1])}. {said}"


# What it can refute ----------------------------------------------------------------------------------------------------


def led(factor: float):
    """The signal leads at this times 10 M (3M + 1) N / (d_h^1/4 (N |mu|^2 - 60 M^2 C_p^2)), Lemma D.5 at sigma_p^2 d = 1."""

    def leads(t: BenignOverfitting) -> float:
        N, M = t.data.samples, t.data.tokens
        bracket = N * t.data.signal_norm**2 - 60 * M**2 * t.data.noise_ratio**2
        return step_at(t, factor * 10 * M * (3 * M + 1) * N / (t.network.key_dim**0.25 * bracket))

    return made(signal_leads=leads, noise=1e-3)


def straight(factor: float):
    """A value that grows by |mu|^2 / (10 M) in the time of gradient flow, times this, from the first step on."""

    def value(t: BenignOverfitting, step: np.ndarray) -> np.ndarray:
        return factor * t.data.signal_norm**2 / (10 * t.data.tokens) * theory.clock(t)[step.astype(int)]

    return made(
        signal_value_curve=value, time_curve=lambda t, step: theory.clock(t)[step.astype(int)], signal_leads=always(0),
        slope_leaves=always(3000),
    )  # fmt: skip


literal_constants = Figure(
    "literal-constants", "The three stages where the proof's explicit constants apply",
    f"{IN_LAW}, where N SNR^2 exceeds the 60 M^2 C_p^2 of the proof of Theorem 4.1.", sweep, draw, labels=labels,
    derived=derived,
    claims=[
        Claim(
            "stage-order", "The stages come in order: the signal leads 3M times (T1), then the loss derivative leaves 1/2 (T2), "
            "then the loss is reached (T3)", proof("Section 5.3"),
            number=stages_in_order, holds=most_runs(0.9, because=MOST_WHY), conditions=benign_conditions,
            refuted_by=made(signal_leads=always(200), slope_leaves=always(100), steps=always(5000)),
            upheld_by=made(signal_leads=always(50), slope_leaves=always(100), steps=always(5000)),
        ),
        Claim(
            "stage1-bound", "Stage I ends no later than the explicit T1 of Lemma D.5", proof("Lemma D.5"),
            number=lambda r: stage1_over(r, r.signal_leads, theory.benign_stage1_end),
            holds=every_run(at_most(1.0, because="the printed bound")), cells=literal_benign, conditions=benign_conditions,
            refuted_by=led(2.0), upheld_by=led(0.5),
        ),
        Claim(
            "benign-linear-bounds", "From T1 to T2 the signal's value is at least eta |mu|^2 |w_O|^2 (t - T1) / (10 M)",
            proof("Appendix D.2, B(t) and Claim 1"),
            number=linear_floor, holds=every_run(at_least(1.0, because="the constant of the proof")),
            conditions=benign_conditions, refuted_by=straight(0.5), upheld_by=straight(2.0),
        ),
        Claim(
            "lead-lasts", "From T1 on the signal's value stays 3M times that of any noise token", proof("Appendix D.2, B(t); Appendix D.3, F(t)"),
            number=lead_lasts, holds=most_runs(0.9, because=MOST_WHY), conditions=benign_conditions,
            refuted_by=made(steps=always(1000), signal_leads=always(100), signal_lead_steps=always(500), noise=0.0),
            upheld_by=made(steps=always(1000), signal_leads=always(100), signal_lead_steps=always(901), noise=0.0),
        ),
    ],
)  # fmt: skip
