"""The first phase of descent on a sample, in which the activation is linear (Lemmas E.1 to E.4)."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, law, line, lines, slope
from lemmata.draw.palette import BLUE, GREEN
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, about, at_most, every_run, made, ours, proof
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.results import over_cells, settings
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.figures.common import (
    SMALL,
    always,
    facts,
    labels,
    reached,
    seeds,
    to_the_end,
)
from lemmata.studies.spatial_structure.network import PositionalNetwork
from lemmata.studies.spatial_structure.theory import two_rates
from lemmata.studies.spatial_structure.trials import ImageDescent
from lemmata.sweep import Sweep, axis
from lemmata.trial import put

# What is run -----------------------------------------------------------------------------------------------------------


def sweep(scale: Scale) -> Sweep:
    steps, logs = by_scale(scale, (600, 61), (1000, 201), (1000, 201))
    trial = ImageDescent(
        data=put(SMALL, "dimension", 8),
        network=PositionalNetwork(diagonal=3.0, init=1e-7),
        descent=to_the_end(1e-4, 1.0, steps, logs),
        test_samples=100,
    )
    linears = by_scale(scale, (3e-4, 1e-3), (1e-4, 3e-4, 1e-3), (1e-4, 3e-4, 1e-3))
    samples = by_scale(scale, (500, 1000), (500, 1000, 2000), (1000, 2000, 4000, 8000, 16_000))
    axes = (
        axis("network.linear", linears),
        axis("samples", samples),
        axis("network.diagonal", by_scale(scale, (2.0, 3.0), (1.0, 2.0, 3.0), (0.0, 1.0, 2.0, 3.0))),
    )

    def keep(place) -> bool:
        """Other diagonals are looked at once: at the largest sample and the middle nu."""
        there = place["samples"] == samples[-1] and place["linear"] == linears[len(linears) // 2]
        return place["diagonal"] == 3.0 or there

    return Sweep(trial, axes, seeds(scale, 2, 10, 10), keep)


# What is measured ------------------------------------------------------------------------------------------------------


def reference_diagonal(r):
    return r.diagonal == 3


def early_rise(r):
    """Growth of alpha a step where every |z| is far below the end of the linear range (at least one logged interval)."""

    def limit(trial) -> float:
        D, C, _ = trial.data.facts
        gain = theory.tied_scores(D, C, float(trial.network.diagonal)).gain
        return 0.05 * theory.linear_part_negligible_from(float(trial.network.linear), 3) / gain

    curve = r.alignment_curve
    early = (curve.mean("seed") <= over_cells(r, limit)) | (r.step <= r.step[1])
    seen = curve.where(early)
    last = r.step.where(seen.notnull()).max("step")
    return (seen.where(r.step == last).max("step") - curve.isel(step=0)) / last


def exact_drift(trial) -> float:
    D, C, _ = trial.data.facts
    return theory.linear_drift(D, C, float(trial.network.linear), float(trial.descent.learning_rate))


def drift_by_diagonal(r):
    """The exponent of the early growth in `e^beta`, at the largest sample and the middle nu."""
    one = early_rise(r).isel(samples=-1, linear=r.sizes["linear"] // 2)
    weights = one.assign_coords(weight=("diagonal", np.exp(one.diagonal.values))).swap_dims(diagonal="weight")
    return exponent(weights.drop_vars("diagonal"), "weight", paired=True)


def phase_end(r):
    """The step at which alpha reaches `nu^(1/(p-1))`."""
    return reached(r, "linear_phase_end")


def phase_gain(r):
    """What the value vector gains off the feature until the end of the linear phase, at the smallest nu."""
    gained = (r.phase_orthogonal - r.orthogonal_curve.isel(step=0)).isel(linear=0, drop=True)
    return gained.mean("diagonal")


def logits_over_bound(r):
    """The largest logit off the diagonal during the linear phase over the bound of Lemma E.4."""

    def bound(trial) -> float:
        network, data = trial.network, trial.data
        omega, nu, beta = float(network.init), float(network.linear), float(network.diagonal)
        return theory.logit_bound(omega, data.dimension, nu, network.degree, data.patches, beta)

    return r.phase_logit / over_cells(r, bound)


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(3, width=4.2)
    D, C, q = facts(results)
    beta = 3.0 if 3.0 in results.diagonal else float(results.diagonal[-1])
    results = results.sel(diagonal=[beta])
    largest, nus = results.samples.values[-1], results.linear
    eta = settings(results)["descent.learning_rate"]
    drawn = lines(panels[0], results.alignment_curve.sel(samples=largest), "step", "linear", r"$\nu$ = {:g}")
    for found, nu in zip(drawn, nus.values, strict=False):
        drift = theory.linear_drift(D, C, nu, eta)
        said = r"drift $\eta \nu D C / 2$" if nu == nus[0] else None
        law(panels[0], found.x, drift * found.x, said, style=":")
    ends = phase_end(results).sel(samples=largest)
    line(panels[1], ends, "linear", BLUE, "measured", "o")
    full = [theory.linear_phase_end_full(D, C, q, nu, 3, beta, eta) for nu in nus.values]
    law(panels[1], nus, full, "with the cubic part", GREEN, "-")
    law(panels[1], nus, [theory.linear_phase_end(D, C, nu, 3, eta) for nu in nus.values], "linear part only")
    found = line(panels[2], phase_gain(results), "samples", BLUE, "measured", "o-", "geometric")
    slope(panels[2], found, -0.5)
    panel(panels[0], "step", r"alignment $\alpha$", log="xy", ylim=(1e-7, 1))
    panel(panels[1], r"$\nu$", r"steps until $\alpha = \nu^{1/(p-1)}$", log="xy", ticks=nus)
    panel(panels[2], "samples N", "gained off the feature", log="xy", ticks=results.samples)
    return figure, rf"Left and middle: N = {largest}; right: the smallest $\nu$, geometric mean. {BAND}"


# What it can refute ----------------------------------------------------------------------------------------------------


def drifting(factor: float, diagonal: float = 0.0):
    """An alignment that grows by eta nu D C / 2 a step (36 patches in groups of 4), times this, times a power of e^beta."""

    def alignment(t, step):
        weight = np.exp(diagonal * (t.network.diagonal - 3))
        return factor * weight * t.descent.learning_rate * t.network.linear * 72 * step

    return made(alignment_curve=alignment)


def largest_logit(factor: float):
    """Lemma E.4 at omega = 1e-7, d = 8, p = 3 and D = 36, times this."""
    start = 1e-7 * np.sqrt(8 * np.log(8))
    return made(phase_logit=lambda t: factor * (start + t.network.linear / (36 * np.exp(t.network.diagonal))))


def gained(power: float):
    """A gain off the feature that goes as a power of the samples."""
    return made(phase_orthogonal=lambda t: 1e-4 * (t.samples / 500) ** power, orthogonal_curve=always(1e-6))


linear_phase = Figure(
    "linear-phase", "The first phase of descent on a sample", "D = 36, C = 4, q = 0.4, d = 8, beta = 3, one step size.",
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "linear-drift", "In the linear phase alpha grows by eta nu D C / 2 a step", ours("Lemma E.1, mended"),
            number=lambda r: mean((early_rise(r) / over_cells(r, exact_drift)).isel(samples=-1)),
            holds=about(1.0, 0.9, 1.1, because="a sample of 2000 leaves 2 %; the cubic part adds a few per cent early on"),
            cells=reference_diagonal, conditions=two_rates.linear_phase,
            refuted_by=drifting(1.25), upheld_by=drifting(1.0),
        ),
        Claim(
            "linear-drift-diagonal", "The growth of alpha in the linear phase is proportional to e^beta", proof("Lemma E.1"),
            number=drift_by_diagonal,
            holds=about(1.0, 0.9, 1.1, because="a mean over samples of the same data at every beta", rivals={"corrected": 0.0}),
            conditions=two_rates.linear_phase,
            refuted_by=drifting(1.0), upheld_by=drifting(1.0, diagonal=1.0),
        ),
        Claim(
            "linear-phase-time", "The linear phase lasts for a time of order nu^-((p-2)/(p-1))", proof("Lemma E.1"),
            number=lambda r: exponent(phase_end(r).isel(samples=-1).mean("diagonal"), "linear"),
            holds=about(-0.5, -0.6, -0.4, because="exact in the scaling limit"),
            cells=reference_diagonal, conditions=two_rates.linear_phase,
            refuted_by=made(linear_phase_end=lambda t: 1e-2 * t.network.linear**-0.8),
            upheld_by=made(linear_phase_end=lambda t: 5 * t.network.linear**-0.5),
        ),
        Claim(
            "linear-phase-noise", "What the value vector gains off the feature in the linear phase is at most of order N^-1/2",
            proof("Lemma E.3"),
            number=lambda r: exponent(phase_gain(r), "samples", paired=True),
            holds=at_most(-0.35, because="a mean of independent noise, three sizes and few seeds"),
            cells=reference_diagonal, conditions=two_rates.linear_phase,
            refuted_by=gained(-0.15), upheld_by=gained(-0.5),
        ),
        Claim(
            "linear-phase-logits", "In the linear phase no logit exceeds omega sqrt(d log d) + Theta(nu^(2/(p-1))) / (D "
            "e^beta)",
            proof("Lemma E.4"),
            number=logits_over_bound,
            holds=every_run(at_most(4.0, because="a constant is hidden: a factor 4")), conditions=two_rates.linear_phase,
            refuted_by=largest_logit(8), upheld_by=largest_logit(3.5),
        ),
    ],
)  # fmt: skip
