"""Figure 7.6 and the length of the first stage: attention leaves the other steps, then settles on the matching pattern."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, line, reference
from lemmata.draw.palette import BLACK, BLUE, RED
from lemmata.draw.panels import Panel, panels
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, every_run, made, positive, proof
from lemmata.measure.exponent import exponent
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.figures.common import four, labels, seeds, slow
from lemmata.studies.chain_of_thought.theory import training_conditions
from lemmata.studies.chain_of_thought.trials import MASSES
from lemmata.studies.chain_of_thought.trials.reasoning import LENGTH
from lemmata.sweep import Sweep, axis


@picture
def masses(results: xr.Dataset) -> Drawn:
    """Attention on the four kinds of columns along training, with the end of stage one and the law of stage two."""
    figure, axes = canvas(3)
    four(axes[0], results["test_masses_curve"])
    four(axes[1], results["masses_curve"])
    line(axes[2], 1 - results["masses_curve"].sel(mass=MASSES[0]), "step", BLUE, "1 - p, measured")
    s = theory.setting(trial_at(results))
    late = results["step"].values[results["step"].values > 10]
    axes[2].plot(late, theory.tail_gap(late, s), ":", color=BLACK, label=r"mended tail $\sqrt{M/(2\eta t)}$")
    axes[2].plot(
        late, theory.tail_gap_printed(late, s), "--", color=RED, label="printed tail, its 2 read as K"
    )
    ended = float(results["stage_one"].where(results["stage_one"] >= 0).median())
    if np.isfinite(ended):
        for one in axes:
            reference(one, x=ended, label="stage one ends", colour=BLACK, style="--")
    panel(axes[0], "step", "attention", "on test prompts", "x")
    panel(axes[1], "step", "attention", "on training prompts", "x")
    panel(axes[2], "step", "attention off the matching columns", "the tail (training prompts)", "xy")
    return figure, f"Attention of the query column; test prompts of {LENGTH} examples. {BAND}"


def between_stages(r: xr.Dataset) -> xr.DataArray:
    """Steps from the end of stage one to 80 % on matching columns; never reached counts as no order."""
    late = r.matched.where(r.matched >= 0, np.inf)
    early = r.stage_one.where(r.stage_one >= 0, np.inf)
    return (late - early).where(np.isfinite(early), -1.0)


def first_stages(scale: Scale) -> Sweep:
    alphas = by_scale(scale, (0.2, 0.8), (0.1, 0.2, 0.4, 0.8), (0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8))
    return Sweep(slow(scale), (axis("data.match_fraction", alphas),), seeds(scale, 4, 10))


def ended(r: xr.Dataset) -> xr.DataArray:
    """The length of the first stage, where it ended."""
    return r.stage_one.where(r.stage_one > 0)


def inverse_square(r: xr.Dataset) -> xr.DataArray:
    """alpha^-2, scaled to the median."""
    order = over_cells(r, lambda t: t.data.match_fraction**-2)
    return order * float(r.stage_one.median()) / float(order.median())


dynamics = Figure(
    "fig7-6", "Attention on four kinds of columns along training",
    "Step 1; stage one ends when 5 % of the attention are left on other steps.",
    lambda scale: Sweep(slow(scale), (), seeds(scale, 6, 20)), masses, labels=labels,
    claims=[
        Claim(
            "two-stages", "Attention leaves the other steps before it settles on the matching pattern",
            proof("Lemmas F.3.6, F.3.7, Figure 7.6"), headline=True,
            number=between_stages, holds=every_run(positive(because="the order itself")), conditions=training_conditions,
            refuted_by=made(noise=0.0, stage_one=lambda t: 300.0, matched=lambda t: 299.5),
            upheld_by=made(stage_one=lambda t: 100, matched=lambda t: 500),
        ),
    ],
)  # fmt: skip

stage_one = Figure(
    "stage-one", "Length of the first stage against the share of matching examples", "Step 1, alpha varied.",
    first_stages,
    panels(Panel(ended, "match_fraction", "share of matching examples α", "steps until 5 % of the attention are off the step",
                 law=inverse_square, law_name=r"$\alpha^{-2}$, any constant", log="xy", centre="median"),
           caption="End of the first stage; dots: seeds."),
    labels=labels,
    claims=[
        Claim(
            "stage-one-exponent", "The first stage lasts at most of the order alpha^-2", proof("Lemma F.3.6, (F.11)"),
            number=lambda r: exponent(ended(r), "match_fraction"),
            holds=at_least(-2.0, because="an upper bound on a time"), conditions=training_conditions,
            refuted_by=made(noise=0.05, stage_one=lambda t: 20 * t.data.match_fraction**-2.6),
            upheld_by=made(noise=0.05, stage_one=lambda t: 20 * t.data.match_fraction**-1),
        ),
    ],
)  # fmt: skip
