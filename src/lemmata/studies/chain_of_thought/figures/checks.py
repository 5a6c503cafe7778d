"""Ways to the same result: weights themselves, W in the basis of patterns, and one number for every class of entries."""

from typing import Any

from lemmata.draw.panels import Panel, panels
from lemmata.figure import Claim, Figure, at_most, every_run, identity, made, ours
from lemmata.measure.columns import chosen
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought.figures.common import labels, scaled, seeds, small, template
from lemmata.studies.chain_of_thought.trials import MASSES
from lemmata.sweep import Sweep, axis
from lemmata.trial import put_all


def classes_and_prompts(scale: Scale) -> Sweep:
    return Sweep(scaled(template(), scale), (axis("simulator", ("patterns", "classes")),), seeds(scale))


def both_simulators(scale: Scale) -> Sweep:
    trial = put_all(
        small(template()), {"precision": "float64", "descent.steps": by_scale(scale, 30, 100, 300)}
    )
    return Sweep(trial, (axis("simulator", ("patterns", "tokens")),), seeds(scale, 3, 5))


def matched(r):
    """p(t), the attention on matching columns of the same step."""
    return r.masses_curve.sel(mass=MASSES[0])


def apart(r, curves, one: str, other: str):
    """The largest distance between the curves of two simulators."""
    gap = abs(chosen(curves, simulator=one) - chosen(curves, simulator=other)).max("step")
    return gap.expand_dims(simulator=r["simulator"])


curve: dict[str, Any] = {"arms": "simulator", "style": "-", "centre": "median"}

classes = Figure(
    "classes", "A closed system of a few numbers beside the training", "Settings of fig7-3; all chance averaged out in one arm.",
    classes_and_prompts,
    panels(Panel(matched, "step", "step", "attention on matching columns", **curve),
           Panel(lambda r: r.loss_curve, "step", "step", "loss", log="xy", **curve),
           caption="Prompts as they are drawn (patterns), and one number for every class of entries of W (classes)."),
    labels=labels,
    claims=[
        Claim(
            "classes-follow", "One number for every class of entries of W, on expected counts, follows the attention of drawn "
            "prompts", ours("README, three ways"),
            number=lambda r: apart(r, matched(r), "patterns", "classes"),
            holds=every_run(at_most(0.03, because="corrections of order 1/l with l = 20 examples; 120 prompts are watched")),
            refuted_by=made(noise=0.0, masses_curve=lambda t, step, mass: 0.5 + 0.06 * (t.simulator == "classes")),
            upheld_by=made(noise=0.0, masses_curve=lambda t, step, mass: 0.5 + 0.01 * (t.simulator == "classes")),
        ),
    ],
)  # fmt: skip

agreement = Figure(
    "agreement", "Two ways to the same training", "A small instance in float64.", both_simulators,
    panels(Panel(lambda r: r.loss_curve, "step", "step", "loss", **curve),
           Panel(lambda r: abs(chosen(r, simulator="tokens").loss_curve - chosen(r, simulator="patterns").loss_curve) + 1e-18, "step",
                 "step", "difference of the losses", log="xy", style="-", centre="median"),
           caption="Weights themselves, and W in the basis of patterns."),
    labels=labels,
    claims=[
        Claim(
            "sums-conserved", "The sums of W over patterns and over steps are conserved", ours("README, invariants"),
            number=lambda r: r.drift, holds=identity(1e-10, because="rounding over the steps of a run"),
            refuted_by=made(drift=lambda t: 3e-10), upheld_by=made(drift=lambda t: 5e-11),
        ),
        Claim(
            "two-ways", "W in the basis of patterns follows the weights themselves", ours("README, three ways"),
            number=lambda r: apart(r, r.loss_curve, "tokens", "patterns"),
            holds=identity(1e-9, because="rounding over the steps of a run"),
            refuted_by=made(noise=0.0, loss_curve=lambda t, step: 1 / (1 + step) + 3e-9 * (t.simulator == "tokens")),
            upheld_by=made(noise=0.0, loss_curve=lambda t, step: 1 / (1 + step) + 5e-10 * (t.simulator == "tokens")),
        ),
    ],
)  # fmt: skip
