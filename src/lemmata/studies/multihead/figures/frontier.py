"""Heads and step sizes up to where the bound of Theorem 1 breaks, on planted attention."""

from math import log

import xarray as xr

from lemmata.descent import Descent
from lemmata.draw.curves import DOTS, lines, reference
from lemmata.draw.palette import BLACK
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Made, about, made, ours
from lemmata.measure.boundary import boundary
from lemmata.measure.columns import flagged
from lemmata.measure.estimate import Estimate
from lemmata.scale import Scale, by_scale
from lemmata.studies.multihead.figures.common import HEADS, heads, planted, seeds, with_mean_loss
from lemmata.studies.multihead.theory.conditions import theorem_1_conditions
from lemmata.studies.multihead.trials import Training
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    """Steps from those of figure 4 on, up to where the bound breaks with any number of heads."""
    trial = Training(
        data=planted(scale),
        descent=Descent(learning_rate=1.0, stop="cap", steps=by_scale(scale, 30, 300, 300), logs=10),
        probe="targets",
    )
    counts = by_scale(scale, (1.0, 16.0), (1.0, 4.0, 16.0), (1.0, 4.0, 16.0, 64.0))
    rates = by_scale(
        scale, (1.0, 100.0), (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0), tuple(2.0**k for k in range(9))
    )
    return Sweep(trial, (axis("descent.learning_rate", rates), heads(counts)), seeds(scale, 2, 6, 12))


def frontier_exponent(r: xr.Dataset) -> Estimate:
    """The step size at which Theorem 1's bound breaks, as a power of the number of heads."""
    kept = flagged(r.loss_sum / r.steps <= r.theorem_bound, r)
    telling = (kept == 1) & (r.theorem_bound < log(2)) & (r.attention_change > 0.5)
    note = (
        f"In {int(telling.sum())} of {int(kept.notnull().sum())} runs attention moved by more than 0.5, and the "
        "bound says something (below log 2) and holds."
    )
    return boundary(kept, "learning_rate", "heads", paired=True).exponent.noted(note)


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The mean loss over the bound, and the bound, against the step size."""
    figure, axes = canvas(2)
    ratio = results.mean_loss / results.theorem_bound
    lines(axes[0], ratio, "learning_rate", "heads", HEADS, style="o-")
    reference(axes[0], y=1, label="bound of Theorem 1", colour=BLACK, style="--")
    lines(axes[1], results.theorem_bound, "learning_rate", "heads", HEADS, style="o-")
    reference(axes[1], y=log(2), label="log 2: above it a bound says nothing")
    panel(axes[0], "step size", "mean loss / best bound", log="xy", ticks=results.learning_rate)
    panel(axes[1], "step size", "best bound over targets", log="xy", ticks=results.learning_rate)
    moved = float(results.attention_change.min())
    return (
        figure,
        f"Planted attention from zero; attention moved by at least {moved:.2g} in every run. {DOTS}",
    )


def kept_up_to(power: float) -> Made:
    """Runs that keep the bound up to a step that goes as a power of the heads, with some chance near it."""

    def loss_sum(t, rng):
        edge = 12.0 * t.network.heads**power * 2.0 ** (0.5 * rng.normal())
        return t.steps * (t.descent.learning_rate / edge) ** 4

    return made(
        loss_sum=loss_sum, theorem_bound=lambda t: 1.0, attention_change=lambda t: 0.9, noise=0.0, seeds=60
    )


frontier = Figure(
    "frontier", "Heads and step sizes up to where Theorem 1's bound breaks, on planted attention",
    "Figure 4's problem at steps that do not grow with the heads. The target of Theorem 1 is the best of a grid along the "
    "planted weights, the same in every head; outside the theorem's conditions everywhere.",
    sweep, draw, derived=with_mean_loss,
    claims=[
        Claim(
            "frontier-exponent", "The step at which the bound of Theorem 1 breaks does not grow with the number of heads",
            ours("Theorem 1 (eta = O(1)), whose step is sufficient"),
            number=frontier_exponent,
            holds=about(0.0, -0.15, 0.15, because="both numbers are the paper's: its theorem allows steps O(1), its "
                        "experiments take sqrt(H)", rivals={"the experiments' sqrt(H)": 0.5}),
            conditions=theorem_1_conditions, uses=("diverged",), refuted_by=kept_up_to(0.5), upheld_by=kept_up_to(0.0),
        ),
    ],
)  # fmt: skip
