"""The pictures: errors over the length of the prompt with the law of the vote, attention along training, what the tail
depends on."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, MEAN, line, lines, reference
from lemmata.draw.palette import BLACK, BLUE, GREY, ORANGE, RED, colours
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.results import over_cells, settings, trial_at
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.trials import MASSES

LENGTH = "examples in the test prompt"
NAMES = {"match_fraction": "α' = {:g}", "trajectory": "τ = {:g}", "primacy": "ρ = {:g}"}


def _arm(results: xr.Dataset) -> str:
    return next(name for name in NAMES if name in results.dims)


def _over_length(results: xr.Dataset, variable: str, what: str) -> Drawn:
    """An error over the length of the prompt, one line an arm, with the law of the vote dashed."""
    arm = _arm(results)
    figure, axes = canvas()
    lines(axes, results[variable], "length", arm, NAMES[arm], style="o-", centre="mean")
    for colour, value in zip(colours(results[arm].values.tolist()), results[arm].values, strict=True):
        trial = trial_at(results, **{arm: value})
        law = [theory.predicted_errors(trial, int(n))[variable] for n in results["length"].values]
        axes.plot(results["length"].values, law, "--", color=colour, linewidth=1)
    axes.plot([], [], "--", color=GREY, label="law of the vote")
    panel(axes, LENGTH, what, "", "x")
    return figure, f"Test error after training; dashed: the law of the vote. {MEAN}"


@picture
def cot_over_length(results: xr.Dataset) -> Drawn:
    """Figure 7.3: chain-of-thought error over the length."""
    return _over_length(results, "cot_error", "chain-of-thought error (mean over steps)")


@picture
def icl_over_length(results: xr.Dataset) -> Drawn:
    """Figure 7.4: in-context error over the length."""
    return _over_length(results, "icl_error", "in-context error")


@picture
def cot_and_icl(results: xr.Dataset) -> Drawn:
    """Figure 7.5: both errors, with Condition 7.3.2 met and missed."""
    figure, panels = canvas(2, sharey=True)
    for axes, case, title in zip(
        panels,
        ("pairs-hold", "pairs-fail"),
        ("Condition 7.3.2 holds", "it fails in half of the rows"),
        strict=True,
    ):
        part = results.sel(errors=case)
        line(axes, part["cot_error"], "length", BLUE, "chain of thought", "o-", centre="mean")
        line(axes, part["icl_error"], "length", RED, "in-context learning", "s-", centre="mean")
        limit = 1 - theory.test_quality(trial_at(part)).right_rows
        reference(axes, y=limit, label="in-context limit", colour=BLACK, style=":")
        panel(axes, LENGTH, "test error" if case == "pairs-hold" else "", title, "x")
    return figure, f"Transitions with τ_o = 0.4 and ρ_o = 0.1. {MEAN}"


@picture
def masses(results: xr.Dataset) -> Drawn:
    """Figure 7.6: attention on the four kinds of columns along training, with the end of stage one and the law of stage two."""
    figure, panels = canvas(2)
    for colour, name in zip((BLUE, ORANGE, GREY, RED), MASSES, strict=True):
        line(panels[0], results["masses_curve"].sel(mass=name), "step", colour, name)
    ended = float(results["stage_one"].where(results["stage_one"] >= 0).median())
    gap = 1 - results["masses_curve"].sel(mass=MASSES[0])
    line(panels[1], gap, "step", BLUE, "1 - p, measured")
    s = theory.setting(trial_at(results))
    late = results["step"].values[results["step"].values > 10]
    panels[1].plot(
        late, theory.tail_gap(late, s), ":", color=BLACK, label=r"mended tail $\sqrt{M/(2\eta t)}$"
    )
    panels[1].plot(
        late, theory.tail_gap_printed(late, s), "--", color=RED, label="printed tail, its 2 read as K"
    )
    if np.isfinite(ended):
        for axes in panels:
            reference(axes, x=ended, label="stage one ends", colour=GREY)
    panel(panels[0], "step", "attention", "four kinds of columns", "x")
    panel(panels[1], "step", "attention off the matching columns", "the tail", "xy")
    return figure, f"Attention of the query column. {BAND}"


@picture
def kinds(results: xr.Dataset) -> Drawn:
    """Errors on test patterns inside and outside the span."""
    figure, axes = canvas()
    lines(axes, results["cot_error"], "length", "kind", "{}", style="o-", centre="mean")
    panel(axes, LENGTH, "chain-of-thought error", "", "x")
    return (
        figure,
        f"Test patterns of several kinds; 'mean' has one pattern that is the mean of all training patterns. {MEAN}",
    )


@picture
def stage_one(results: xr.Dataset) -> Drawn:
    """The length of the first stage over alpha, beside the printed order."""
    figure, axes = canvas()
    line(axes, results["stage_one"].where(results["stage_one"] > 0), "match_fraction", BLUE, "measured", "o-")
    order = over_cells(results, lambda t: t.data.match_fraction**-2)
    scale = float(results["stage_one"].median()) / float(order.median())
    axes.plot(order["match_fraction"], scale * order, "--", color=BLACK, label=r"$\alpha^{-2}$, any constant")
    panel(axes, "share of matching examples α", "steps until 5 % of the attention are off the step", "", "xy")
    return figure, "End of the first stage; dots: seeds."


@picture
def tail(results: xr.Dataset) -> Drawn:
    """The constant of the tail over K, beside the mended and the printed law."""
    gap = 1 - results["masses"].sel(mass=MASSES[0])
    constant = gap**2 * over_cells(results, lambda t: 2 * t.descent.learning_rate * t.steps / t.data.patterns)
    figure, axes = canvas()
    lines(axes, constant, "reasoning_steps", "patterns", "M = {:g}", style="o-", centre="mean")
    steps = results["reasoning_steps"].values
    axes.plot(steps, np.ones(len(steps)), ":", color=BLACK, label="mended: 1")
    axes.plot(steps, steps / 3, "--", color=RED, label="printed: K/3")
    panel(axes, "reasoning steps K", r"$(1-p)^2\, 2\eta t/M$", "", "")
    return figure, f"At the end of training. {MEAN}"


@picture
def agreement(results: xr.Dataset) -> Drawn:
    """The loss of both simulators, and their difference."""
    figure, panels = canvas(2)
    lines(panels[0], results["loss_curve"], "step", "simulator", "{}")
    curves = results["loss_curve"]
    gap = np.abs(curves.sel(simulator="tokens") - curves.sel(simulator="patterns")) + 1e-18
    line(panels[1], gap, "step", BLUE, "difference")
    panel(panels[0], "step", "loss", f"M = {settings(results)['data.patterns']}", "x")
    panel(panels[1], "step", "difference of the losses", "", "xy")
    return figure, f"Weights themselves, and W in the basis of patterns. {BAND}"
