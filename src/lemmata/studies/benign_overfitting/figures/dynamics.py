"""Figures 3 and 4: values, logits and attention over the iterations, where the signal wins and where the noise does."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.draw.curves import BAND, line, reference
from lemmata.draw.palette import BLACK, BLUE, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import (
    Claim,
    Figure,
    at_least,
    at_most,
    every_run,
    experiment,
    made,
    most_runs,
    ours,
    proof,
)
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.simple import fraction
from lemmata.measure.times import Growth, growth
from lemmata.results import settings
from lemmata.scale import Scale
from lemmata.studies.benign_overfitting.data import Data
from lemmata.studies.benign_overfitting.figures.common import (
    FEW_WHY,
    READ_OUTS,
    STAGES,
    THETA_OF_START,
    always,
    derived,
    labels,
    norm_change,
    paying,
    small,
    stages_in_order,
)
from lemmata.studies.benign_overfitting.network import Network
from lemmata.studies.benign_overfitting.theory import benign_conditions, harmful_conditions
from lemmata.studies.benign_overfitting.trials import BenignOverfitting
from lemmata.sweep import Sweep
from lemmata.trial import put_all

# What is run -----------------------------------------------------------------------------------------------------------


def appendix_a(samples: int, signal_norm: float) -> BenignOverfitting:
    """Appendix A: M = 4, d = 2048, d_h = 1024, d_v = 256, noise 0.05 and 1."""
    return BenignOverfitting(
        data=Data(signal_norm=signal_norm, weak_noise=0.05, samples=samples, tokens=4, dim=2048),
        network=Network(key_dim=1024, value_dim=256),
        descent=Descent(steps=8000, logs=80),
    )


def small_appendix_a(trial: BenignOverfitting) -> BenignOverfitting:
    norm = trial.data.signal_norm * (3 if trial.data.signal_norm > 20 else 0.2)
    changes = {
        "data.samples": 4,
        "data.signal_norm": norm,
        "network.readout_divisor": 2.0,
        "descent.logs": 40,
    }
    return put_all(small(trial), changes)


def dynamics(samples: int, signal_norm: float) -> Callable[[Scale], Sweep]:
    def sweep(scale: Scale) -> Sweep:
        trial = appendix_a(samples, signal_norm)
        if scale == "smoke":
            return Sweep(small_appendix_a(trial), (), (0, 1, 2))
        return Sweep(trial, (), tuple(range(16 if scale == "quick" else 40)))

    return sweep


# What is measured ------------------------------------------------------------------------------------------------------


def end_attention(r: xr.Dataset, queries: tuple[str, ...], key: str) -> xr.DataArray:
    """The least attention of these queries on a key at the end."""
    return chosen(r.attention, query=queries, key=key).drop_vars("key").min("query")


def shape_of(r: xr.Dataset, curve: xr.DataArray, shape: Growth, late: bool = False) -> Estimate:
    """The fraction of runs in which a curve has this shape: until some loss derivative leaves [0.45, 0.55], or late in
    stage III (from ten times that step on)."""
    step = np.asarray(r.step.values, float)
    found = []
    for seed in r.seed.values[np.asarray(r.status.notnull())]:
        run = r.sel(seed=seed)
        leaves = float(run.slope_leaves)
        needs(leaves > 0, "in some run the loss derivative never left [0.45, 0.55].")
        stage = (step >= 10 * leaves) if late else (step > 0) & (step <= leaves)
        found.append(growth(step[stage], curve.sel(seed=seed).values[stage]).best == shape)
    needs(found, "no run has a value to measure (all records are missing or not finite).")
    return fraction(np.asarray(found, float))


def signal_gap(r: xr.Dataset) -> xr.DataArray:
    """How much larger the signal query's logit is on the signal than on the strong noise, over the steps."""
    signal, strong = (chosen(r.logits_curve, query="signal", key=key) for key in ("signal", "strong"))
    return signal.drop_vars("key") - strong.drop_vars("key")


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Figures 3 and 4: values, logits and attention over the iterations."""
    figure, axes = canvas(4, width=3.6, height=3.4)
    line(axes[0], results.signal_value_curve, "step", BLUE, r"$y\,\mu^\top W_V w_O$")
    line(axes[0], results.strong_value_curve, "step", RED, r"$y\,\xi_2^\top W_V w_O$")
    for ax, curve in ((axes[1], results.logits_curve), (axes[2], results.attention_curve)):
        for query, style, name in (("signal", "-", r"$\mu$"), ("strong", "--", r"$\xi_2$")):
            for key, colour, to in (("signal", BLUE, r"$\mu$"), ("strong", RED, r"$\xi_2$")):
                line(ax, curve.sel(query=query, key=key), "step", colour, rf"{name} $\to$ {to}", style)
    for name, (style, label) in STAGES.items():
        at = results[name].where(results[name] > 0)
        if bool(at.notnull().any()):
            for ax in axes:
                reference(ax, x=float(at.median()), label=label, style=style)
    line(axes[3], results.train_loss_curve, "step", BLACK, "training loss")
    end = float(results.test_loss.median())
    reference(axes[3], y=end, label=f"test loss at the end: {end:.2f}", colour=ORANGE, style="-")
    panel(axes[0], "iteration", "value, signed by label", "values", "x")
    panel(axes[1], "iteration", r"query $\cdot$ key", "attention logits", "x")
    panel(axes[2], "iteration", "attention weight", "attention", "x", ylim=(-0.03, 1.03))
    panel(axes[3], "iteration", "logistic loss", "loss", "xy")
    f = settings(results)
    said = f"{BAND} T1 (signal leads 3M times), T2 (loss derivative leaves 1/2), T3 (end): medians, where they happened."
    return figure, rf"N = {f['data.samples']}, $|\mu|$ = {f['data.signal_norm']:g}. {said}"


# What it can refute ----------------------------------------------------------------------------------------------------

NEARLY_ONE = "nearly 1, as the figure shows it"
EXACT = "exact: a share of samples"
OWN = "All parameters divided by 16, as in fig1, or all but the read-out."


def growing(curve: Callable[[np.ndarray], np.ndarray]):
    """A signal's value over the steps; the loss derivatives leave 1/2 at step 100 of 5000."""
    return made(signal_value_curve=lambda t, step: curve(step), slope_leaves=always(100), steps=always(5000))


def attending(gap: Callable[[np.ndarray], np.ndarray]):
    """Logits on the signal that exceed those on the rest by a function of the steps; slopes as in `growing`."""

    def logits(t: BenignOverfitting, step: np.ndarray, key: np.ndarray) -> np.ndarray:
        return gap(step) * np.where(key == "signal", 1.5, 0.5)

    return made(logits_curve=logits, slope_leaves=always(100), steps=always(5000))


fig3 = Figure(
    "fig3", "Training dynamics in the benign regime", OWN, dynamics(16, 25.0), draw, labels=labels, derived=derived,
    readings=READ_OUTS,
    claims=[
        Claim(
            "benign-attention", "In the benign regime the signal query ends with nearly all its attention on the signal: above "
            "0.95", experiment("Figure 3, Appendix A"), headline=True,
            number=lambda r: end_attention(r, ("signal",), "signal"), holds=every_run(at_least(0.95, because=NEARLY_ONE)),
            conditions=benign_conditions,
            refuted_by=made(attention=paying(0.5, "signal")), upheld_by=made(attention=paying(0.98, "signal"), noise=0.001),
        ),
        Claim(
            "benign-values", "In the benign regime the signal's value ends above the strong noise's in every sample",
            experiment("Figure 3, Appendix A"),
            number=lambda r: r.signal_wins, holds=every_run(at_least(1 - 1e-6, because=EXACT)), conditions=benign_conditions,
            refuted_by=made(signal_wins=always(0.75)), upheld_by=made(signal_wins=always(1.0), noise=0.0),
        ),
        Claim(
            "benign-attention-noise", "In the benign regime queries of strong and of weak noise end with nearly all their "
            "attention on the signal too: above 0.95", proof("Appendix D.3, (65), (109), (111)"),
            number=lambda r: end_attention(r, ("strong", "weak"), "signal"),
            holds=every_run(at_least(0.95, because=NEARLY_ONE)), conditions=benign_conditions,
            refuted_by=made(attention=paying(0.5, "signal")), upheld_by=made(attention=paying(0.98, "signal"), noise=0.001),
        ),
        Claim(
            "benign-linear", "From the start until some loss derivative leaves 1/2 the signal's value grows at a linear rate, "
            "rather than exponentially or logarithmically. The paper says so of [T1, T2], and T1 does not come here",
            ours("Section 5.3, read from step 0 on"),
            number=lambda r: shape_of(r, r.signal_value_curve, "linear"), holds=most_runs(0.7, because=FEW_WHY),
            conditions=benign_conditions,
            refuted_by=growing(lambda step: np.expm1(step / 30)), upheld_by=growing(lambda step: 1e-3 * step),
        ),
        Claim(
            "benign-logarithmic", "In stage III, once the loss derivative decays, the signal's value grows logarithmically",
            proof("Lemma 5.4"),
            number=lambda r: shape_of(r, r.signal_value_curve, "logarithmic", late=True),
            holds=most_runs(0.7, because=FEW_WHY), conditions=benign_conditions,
            refuted_by=growing(lambda step: 1e-3 * step), upheld_by=growing(lambda step: np.log1p(step)),
        ),
        Claim(
            "benign-logits-logarithmic", "The products of queries and keys grow at a logarithmic rate: in stage III that of the "
            "signal with itself, less that with the strong noise", proof("Section 5.3; Appendix D.3, I(t)"),
            number=lambda r: shape_of(r, signal_gap(r), "logarithmic", late=True), holds=most_runs(0.7, because=FEW_WHY),
            conditions=benign_conditions,
            refuted_by=attending(lambda step: 1e-3 * step), upheld_by=attending(lambda step: np.log1p(step)),
        ),
        Claim(
            "stage-order-in-fig3", "In the paper's own figure the three stages end in order. T1: the signal leads 3M "
            "times; T2: the loss derivative leaves 1/2; T3: the loss is reached", proof("Section 5.3"),
            number=stages_in_order, holds=most_runs(0.7, because=FEW_WHY), conditions=benign_conditions,
            refuted_by=made(signal_leads=always(200), slope_leaves=always(100), steps=always(5000)),
            upheld_by=made(signal_leads=always(50), slope_leaves=always(100), steps=always(5000)),
        ),
        Claim(
            "norms-in-fig3", "In the paper's own figure squared norms of queries and keys change by at most a factor 3 at all "
            "steps", proof("Appendix D.2, C(t); Appendix D.3, G(t)"),
            number=norm_change, holds=THETA_OF_START, conditions=benign_conditions,
            refuted_by=made(query_norm_change=always(1.1), key_norm_change=always(6.0)),
            upheld_by=made(query_norm_change=always(2.5), key_norm_change=always(1.1)),
        ),
    ],
)  # fmt: skip

fig4 = Figure(
    "fig4", "Training dynamics in the harmful regime", "As fig3.", dynamics(10, 15.0), draw, labels=labels, derived=derived,
    readings=READ_OUTS,
    claims=[
        Claim(
            "harmful-attention", "In the harmful regime the signal query and the strong-noise query end with nearly all "
            "attention on the strong noise: above 0.9", experiment("Figure 4, Appendix A"), headline=True,
            number=lambda r: end_attention(r, ("signal", "strong"), "strong"),
            holds=every_run(at_least(0.9, because=NEARLY_ONE)), conditions=harmful_conditions,
            refuted_by=made(attention=paying(0.5, "strong")), upheld_by=made(attention=paying(0.95, "strong")),
        ),
        Claim(
            "harmful-values", "In the harmful regime the strong noise's value ends above the signal's in every sample",
            experiment("Figure 4, Appendix A"),
            number=lambda r: r.signal_wins, holds=every_run(at_most(1e-6, because=EXACT)), conditions=harmful_conditions,
            refuted_by=made(signal_wins=always(3e-6)), upheld_by=made(signal_wins=always(5e-7)),
        ),
    ],
)  # fmt: skip
