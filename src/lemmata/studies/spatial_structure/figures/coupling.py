"""Realistic, semi-idealised and idealised descent side by side: their distance against the sample size (Appendix E)."""

import xarray as xr

from lemmata.draw.curves import BAND, law, line, series
from lemmata.draw.palette import CYCLE, GREEN
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_most, made, proof
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure.figures.common import FAST, always, changed, labels, seeds, tiny
from lemmata.studies.spatial_structure.theory.two_rates import realistic
from lemmata.studies.spatial_structure.trials import CoupledDescent
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    trial = changed(CoupledDescent(), realistic__descent__logs=41)  # pyright: ignore[reportCallIssue]  (abstract above, not fields)
    if scale == "smoke":
        trial = CoupledDescent(realistic=tiny(400, 11, network__init=1e-5, test_samples=200), draws=4000)  # pyright: ignore[reportCallIssue]  (abstract above, not fields)
    samples = by_scale(
        scale, (500, 2000), (500, 1000, 2000, 4000, 8000), (1000, 2000, 4000, 8000, 16_000, 32_000)
    )
    return Sweep(trial, (axis("realistic.samples", samples),), seeds(scale, 2, 4, 10))


def follows(r):
    """Root mean square of the relative distance of alpha G from the three numbers', at the largest sample."""
    one = r.isel(samples=-1)
    after = one.step > one.linear_phase_end + 50
    ours, theirs = one.alignment_curve * one.gain_curve, one.ideal_alignment_curve * one.ideal_gain_curve
    return mean((((ours / theirs - 1) ** 2).where(after).mean("step")) ** 0.5)


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(3)
    names = {
        "worst_orthogonal": "value vector off the feature",
        "worst_logit_gap": "logits",
        "worst_gradient_gap": "gradient of v",
        "output_gap": "output",
    }
    for colour, (name, label) in zip(CYCLE, names.items(), strict=False):
        start = series(results[name], "samples", "geometric").middle[0]
        line(panels[0], results[name] / start, "samples", colour, label, "o-", "geometric")
    law(panels[0], results.samples, (results.samples / results.samples[0]) ** -0.5, "slope −1/2")
    ylabel = "distance / distance at the smallest N"
    panel(panels[0], "samples N", ylabel, "distance", "xy", ticks=results.samples)
    one, most = results.isel(samples=-1), int(results.samples[-1])
    kinds = {"realistic": ("same_mean", "alignment"), "idealised": ("ideal_same", "ideal_alignment")}
    for colour, (label, curves) in zip(CYCLE, kinds.items(), strict=False):
        for axes, curve in zip(panels[1:], curves, strict=True):
            line(axes, one[f"{curve}_curve"], "step", colour, label)
    line(panels[1], one.semi_same_curve, "step", GREEN, "semi-idealised", "--")
    panel(panels[1], "step", "same-group logit", f"logit, N = {most}")
    panel(panels[2], "step", r"alignment $\alpha$", f"alignment, N = {most}")
    return figure, f"Realistic, semi-idealised and idealised descent side by side. {BAND}"


def distance(id: str, statement: str, where: str, variable: str) -> Claim:
    """A distance between realistic and population descent falls at least as N^-1/2."""

    def falling(power: float):
        return made({variable: lambda t: 0.1 * (t.realistic.samples / 500) ** power})

    return Claim(
        id, statement, proof(where),
        number=lambda r: exponent(r[variable], "samples", paired=True),
        holds=at_most(-0.4, because="the gap is Monte Carlo noise of the sample, amplified by training: an upper bound of "
                                    "N^-1/2, a tenth for the grid"),
        conditions=realistic,
        refuted_by=falling(-0.2), upheld_by=falling(-0.5),
    )  # fmt: skip


def ahead(factor: float):
    """Realistic descent whose alpha is ahead of the three numbers' by a factor, all else equal."""
    return made(
        noise=0.002, linear_phase_end=always(100), alignment_curve=always(0.03 * factor), gain_curve=always(30),
        ideal_alignment_curve=always(0.03), ideal_gain_curve=always(30),
    )  # fmt: skip


coupling = Figure(
    "coupling", "Distance between realistic and population descent against the sample size",
    "D = 36, C = 4, q = 0.4, d = 16, beta = 4, nu = 1e-4. " + FAST, sweep, draw, labels=labels,
    claims=[
        distance("coupling-value", "The part of the value vector off the feature is at most of order N^-1/2 at all times",
                 "Lemmas E.9 and E.11", "worst_orthogonal"),
        distance("coupling-logits", "The largest distance of a logit to its semi-idealised value is at most of order N^-1/2",
                 "Lemma E.13", "worst_logit_gap"),
        distance("coupling-gradient", "The distance of the realistic gradient to the semi-idealised one is at most of order "
                                      "N^-1/2",
                 "Lemma E.19", "worst_gradient_gap"),
        distance("coupling-output", "The distance of realistic outputs to semi-idealised ones is at most of order N^-1/2",
                 "Lemma E.26", "output_gap"),
        Claim(
            "follows-population", "Realistic descent follows the three numbers of the population from the end of its linear "
            "phase on",
            proof("Lemmas E.18 and E.20 to E.23"),
            number=follows,
            holds=at_most(0.15, because="what a sample of about 10^4 leaves"), conditions=realistic,
            refuted_by=ahead(1.4), upheld_by=ahead(1.1),
        ),
    ],
)  # fmt: skip
