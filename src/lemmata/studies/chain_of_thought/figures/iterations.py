"""Long trainings for several M and K: gradients of the first stage, the rates of the second, times to a loss, the tail."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import MEAN, line, lines, reference
from lemmata.draw.palette import BLACK, BLUE, GREY, ORANGE, RED, colours
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import (
    Claim,
    Figure,
    about,
    at_least,
    at_most,
    between,
    every_run,
    made,
    ours,
    proof,
    theorem,
)
from lemmata.measure.exponent import exponent, power_law
from lemmata.measure.levelset import crossings
from lemmata.measure.simple import mean
from lemmata.results import over_cells, trial_at
from lemmata.scale import Scale, by_scale
from lemmata.studies.chain_of_thought import theory
from lemmata.studies.chain_of_thought.figures.common import labels, matching, scaled, seeds, template
from lemmata.studies.chain_of_thought.theory import training_conditions
from lemmata.studies.chain_of_thought.trials import MASSES, Reasoning
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

LEVELS = (0.02, 0.01, 0.005, 0.0025)
"""The losses to which training is timed."""


# What is run -----------------------------------------------------------------------------------------------------------


def with_steps(trial: Reasoning, steps: int) -> Reasoning:
    """K steps, the batch holding every pattern at every step once."""
    return put_all(trial, {"data.steps": steps, "descent.batch": steps * trial.data.patterns})


def sweep(scale: Scale) -> Sweep:
    patterns = by_scale(scale, (8,), (10, 40), (10, 20, 40, 80))
    rounds = by_scale(scale, 300, 1500, 6000)
    trial = put_all(
        scaled(template(), scale),
        {
            "descent.steps": rounds, "descent.logs": 50, "test.prompts": 50, "test.patterns": 5, "test.lengths": (12,),
            "watched": 120,
        },
    )  # fmt: skip
    depth = Axis("reasoning_steps", by_scale(scale, (2, 3), (2, 4), (2, 3, 4, 5, 6)), with_steps)
    width = Axis("patterns", patterns, lambda one, m: put_all(one, {"data.patterns": m, "data.dim": m + 10}))
    return Sweep(trial, (width, depth), seeds(scale, 4, 10))


# What is measured ------------------------------------------------------------------------------------------------------


def room(r: xr.Dataset, line: int) -> xr.DataArray:
    """How far the gradient between two columns lies inside the bounds of Lemma F.3.5 (negative: outside) at the worst logged
    step of the first stage, as a share of the leading size alpha/K^3 of such gradients; `line` counts the four masses."""
    found, moments = r.pulls_curve.isel(mass=line), r.moments_curve

    def bound(side: int) -> xr.DataArray:
        def coefficient(trial: Reasoning, power: int) -> float:
            terms = theory.gradient_bounds(theory.setting(trial))[MASSES[line]][side].coef
            return float(terms[power]) if power < len(terms) else 0.0

        terms = [over_cells(r, lambda t, n=n: coefficient(t, n)) for n in range(4)]
        return terms[0] + sum(terms[n] * moments.sel(power=n) for n in (1, 2, 3))

    inside = np.minimum(bound(1) - found, found - bound(0))
    size = over_cells(r, lambda t: t.data.match_fraction / t.data.steps**3)
    return (inside / size).where(r.step <= first_stage(r)).min("step")


def first_stage(r: xr.Dataset, loss: float = 0.05) -> xr.DataArray:
    """T_1 of the proof."""
    return over_cells(r, lambda t: theory.stage1_time(theory.setting(t, loss)))


def late_rate(r: xr.Dataset, line: int) -> xr.DataArray:
    """The gradient between two columns of the same step at the end of training, over `p (1 - p)^2 / (2M)`."""
    p1, p2, p3 = (r.moments_curve.isel(step=-1).sel(power=n) for n in (1, 2, 3))
    unit = (p1 - 2 * p2 + p3) / (2 * over_cells(r, lambda t: t.data.patterns))
    return r.pulls_curve.isel(step=-1, mass=line) / unit


def late_size(r: xr.Dataset, line: int, eps: float = 0.05) -> xr.DataArray:
    """The size of the gradient between two columns of different steps, over eps, at the worst logged step from `T_1` on."""
    sizes = abs(r.pulls_curve.isel(mass=line)) / eps
    return sizes.where(r.step >= first_stage(r, eps)).max("step")


def growth_share(r: xr.Dataset) -> xr.DataArray:
    """The logit gap of same over other steps, over its lower bound (F.135), at the worst step of stage one where the bound has
    left the initial noise (0.05)."""
    rate = over_cells(r, lambda t: 2 * t.descent.learning_rate * t.data.match_fraction**2 / t.data.steps**3)
    speed = 1 - 2 * r.moments_curve.sel(power=1) + r.moments_curve.sel(power=2)
    bound = rate * speed.cumulative_integrate("step")
    chosen = (bound > 0.05) & (r.step <= first_stage(r))
    return (r.step_gap_curve / bound).where(chosen).min("step")


def times(r: xr.Dataset, level: float) -> tuple[xr.DataArray, xr.DataArray]:
    """The steps to a loss."""
    return crossings(r.loss_curve.isel(step=slice(1, None)), level, "step")


def time_over_loss(r: xr.Dataset):
    """The exponent of the steps to a loss in the loss."""
    found = [times(r, level) for level in LEVELS]
    place = xr.DataArray(list(LEVELS), dims="level", coords={"level": list(LEVELS)})
    where, side = (xr.concat([one[n] for one in found], place) for n in (0, 1))
    return power_law(where, "level", side, paired=True).exponent


def time_over_patterns(r: xr.Dataset):
    where, side = times(r, LEVELS[-1])
    return power_law(where, "patterns", side).exponent


def time_over_steps(r: xr.Dataset):
    """Of the steps a pattern."""
    where, side = times(r, LEVELS[-1])
    return power_law(where / over_cells(r, lambda t: t.data.patterns), "reasoning_steps", side).exponent


def tail(r: xr.Dataset) -> xr.DataArray:
    """`(1 - p)^2 2 eta t / M` at the end of every run: 1 by the mended law, K/3 by the printed one."""
    scale = over_cells(r, lambda t: 2 * t.descent.learning_rate * t.steps / t.data.patterns)
    return (1 - r.masses_curve.isel(step=-1).sel(mass=MASSES[0])) ** 2 * scale


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Loss along training over eta t / M, where the mended law has one line for all, and the constant of the tail over K."""
    figure, axes = canvas(3)
    steps, patterns = results["reasoning_steps"].values, results["patterns"].values
    for colour, m in zip(colours(patterns.tolist()), patterns, strict=True):
        rate = trial_at(results.sel(patterns=m)).descent.learning_rate
        part = results["loss_curve"].sel(patterns=m)
        part = part.assign_coords(step=part["step"] * rate / m).isel(step=slice(1, None))
        for k in steps:
            line(axes[0], part.sel(reasoning_steps=k), "step", colour, f"M = {m:g}" if k == steps[0] else "")
    across = np.geomspace(3, float(results["step"].max()) * 10 / float(patterns.min()), 20)
    axes[0].plot(across, 1 / (4 * across), ":", color=BLACK, label=r"$M/(4\eta t)$")
    lines(axes[1], tail(results), "reasoning_steps", "patterns", "M = {:g}", style="o-", centre="mean")
    axes[1].plot(steps, np.ones(len(steps)), ":", color=BLACK, label="mended: 1")
    axes[1].plot(steps, steps / 3, "--", color=RED, label="printed: K/3")
    for colour, (number, name) in zip((BLUE, ORANGE, GREY, RED), enumerate(MASSES), strict=True):
        line(
            axes[2],
            room(results, number).isel(patterns=-1),
            "reasoning_steps",
            colour,
            name,
            "o-",
            centre="mean",
        )
    reference(axes[2], y=0, label="bound", colour=BLACK)
    panel(axes[0], r"$\eta t/M$", "loss", "all M and K", "xy")
    panel(axes[1], "reasoning steps K", r"$(1-p)^2\, 2\eta t/M$", "constant of the tail", "")
    panel(
        axes[2], "reasoning steps K", "room inside the bounds of Lemma F.3.5", f"M = {int(patterns[-1])}", ""
    )
    return (
        figure,
        f"Room inside the bounds is in units of alpha/K^3, at the worst step; below 0 a bound is broken. {MEAN}",
    )


# What it can refute ----------------------------------------------------------------------------------------------------


HALF = {"moments_curve": lambda t, step, power: 0.5**power}
"""Every prompt pays half of its attention to the matching columns."""


def pulls(size):
    """Gradients of a size that may depend on the trial, at half the attention."""
    return made(HALF, noise=0.0, pulls_curve=lambda t, step, mass: size(t))


def loss(time, power: float = 1.0):
    """A loss that falls as a power of the steps."""
    return made(noise=0.02, loss_curve=lambda t, step: (time(t) / np.maximum(step, 0.5)) ** power)


def beyond(share: float):
    """Gradients that leave one of their bounds by a share of alpha/K^3."""

    def law(t: Reasoning, step, mass):
        bounds = theory.gradient_bounds(theory.setting(t))
        low, high = (np.array([bounds[name][side](0.5) for name in MASSES]) for side in (0, 1))
        size = share * t.data.match_fraction / t.data.steps**3
        return np.where(np.isfinite(high), high + size, low - size)

    return made(HALF, noise=0.0, pulls_curve=law)


def unit(t: Reasoning) -> float:
    """p (1 - p)^2 / (2M) at p = 1/2."""
    return 0.5 * (1 - 0.5) ** 2 / (2 * t.data.patterns)


def gap_over_bound(share: float):
    """A logit gap that grows with a share of the speed of (F.135), at p = 1/2."""

    def law(t: Reasoning, step):
        return share * 0.25 * 2 * t.descent.learning_rate * t.data.match_fraction**2 / t.data.steps**3 * step

    return made(HALF, step_gap_curve=law)


def first_gradient(id: str, statement: str, where: str, line: int) -> Claim:
    return Claim(
        id, statement, proof(where),
        number=lambda r: room(r, line),
        holds=every_run(at_least(-0.05, because="a twentieth of alpha/K^3: terms of order 1/l with l = 20 examples are dropped in "
                                 "the proof")),
        conditions=training_conditions,
        refuted_by=beyond(0.1), upheld_by=beyond(0.03),
    )  # fmt: skip


def late_gradient(id: str, statement: str, where: str, number, holds, refuted, upheld) -> Claim:
    return Claim(id, statement, proof(where), number=number, holds=every_run(holds), conditions=training_conditions,
                 refuted_by=pulls(refuted), upheld_by=pulls(upheld))  # fmt: skip


BOUND = "the bound itself"
THIRD = "a third of the printed exponent either way"

iterations = Figure(
    "iterations", "Steps, gradients and the tail against patterns and reasoning steps", "Step 10; M and K varied, d_X = M + 10.",
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "growth-bound", "In the first stage the logit gap of the same over other steps is at least the sum of 2 eta alpha^2/K^3 "
            "(1 - p)^2 over the steps", proof("(F.134), (F.135)"),
            number=growth_share, holds=every_run(at_least(1.0, because=BOUND)), conditions=training_conditions,
            refuted_by=gap_over_bound(0.5), upheld_by=gap_over_bound(2.0),
        ),
        first_gradient("gradient-same-same", "In the first stage the gradient between columns of the same pattern and step is at "
                       "most (F.7)", "Lemma F.3.5, (F.7)", 0),
        first_gradient("gradient-other-same", "The gradient between columns of other patterns and the same step lies between the "
                       "two sides of (F.9)", "Lemma F.3.5, (F.9)", 1),
        first_gradient("gradient-same-other", "The gradient between columns of the same pattern and other steps lies between the "
                       "two sides of (F.8)", "Lemma F.3.5, (F.8)", 2),
        first_gradient("gradient-other-other", "The gradient between columns of other patterns and other steps lies between the "
                       "two sides of (F.10)", "Lemma F.3.5, (F.10)", 3),
        late_gradient("late-same-same", "In the second stage the gradient between columns of the same pattern and step is at most "
                      "-4 p (1 - p)^2/(2M)", "Lemma F.3.7, (F.13)", lambda r: late_rate(r, 0), at_most(-4.0, because=BOUND),
                      refuted=lambda t: -3 * unit(t), upheld=lambda t: -4.5 * unit(t)),
        late_gradient("late-other-same", "In the second stage the gradient between columns of other patterns and the same step is "
                      "at most p (1 - p)^2/(2M) in size", "Lemma F.3.7, (F.15)", lambda r: late_rate(r, 1),
                      between(-1.0, 1.0, because=BOUND), refuted=lambda t: 2 * unit(t), upheld=lambda t: unit(t) / 2),
        late_gradient("late-same-other", "In the second stage the gradient between columns of the same pattern and other steps is "
                      "at most eps in size (eps = 5 %, from T_1 on)", "Lemma F.3.7, (F.14)", lambda r: late_size(r, 2),
                      at_most(1.0, because=BOUND), refuted=lambda t: 0.1, upheld=lambda t: 0.025),
        late_gradient("late-other-other", "In the second stage the gradient between columns of other patterns and other steps is "
                      "at most eps in size (eps = 5 %, from T_1 on)", "Lemma F.3.7, (F.16)", lambda r: late_size(r, 3),
                      at_most(1.0, because=BOUND), refuted=lambda t: 0.1, upheld=lambda t: 0.025),
        Claim(
            "iterations-loss", "The steps to a loss eps grow no faster than 1/eps", theorem("Theorem 3, (7.15)"), headline=True,
            number=time_over_loss, holds=at_least(-1.0, because="the printed exponent of a sufficient number"),
            conditions=training_conditions,
            refuted_by=loss(lambda t: 0.005, 0.5), upheld_by=loss(lambda t: 10.0, 2.0),
        ),
        Claim(
            "iterations-patterns", "The steps to a small loss are linear in M", theorem("Theorem 3, (7.15)"),
            number=time_over_patterns,
            holds=about(1.0, 0.8, 1.2, because="corrections of order 1/M with M = 10 and the first stage"),
            conditions=training_conditions,
            refuted_by=loss(lambda t: 0.0005 * t.data.patterns**2), upheld_by=loss(lambda t: 0.01 * t.data.patterns),
        ),
        Claim(
            "iterations-steps", "The steps to a small loss do not grow with K (the print has K)", theorem("Theorem 3, (7.15), mended"),
            headline=True, number=time_over_steps,
            holds=about(0.0, -0.3, 0.3, because=THIRD, rivals={"the print, M K/(eta eps)": 1.0}), conditions=training_conditions,
            refuted_by=loss(lambda t: 0.01 * t.data.patterns * t.data.steps), upheld_by=loss(lambda t: 0.02 * t.data.patterns * t.data.steps**0.1),
        ),
        Claim(
            "tail-steps", "Late in training (1 - p)^2 goes as M/(2 eta t), without the K of the print", proof("Lemma F.3.7, (F.26)"),
            number=lambda r: exponent(tail(r), "reasoning_steps"),
            holds=about(0.0, -0.3, 0.3, because=THIRD, rivals={"the print, K M/(eta t)": 1.0}), conditions=training_conditions,
            refuted_by=made(noise=0.0, masses_curve=matching(
                lambda t, step: 1 - (t.data.steps * t.data.patterns / (6 * t.descent.learning_rate * step)) ** 0.5)),
            upheld_by=made(noise=1e-4, masses_curve=matching(
                lambda t, step: 1 - (t.data.steps**0.1 * t.data.patterns / (2 * t.descent.learning_rate * step)) ** 0.5)),
        ),
        Claim(
            "tail-constant", "Late in training (1 - p)^2 2 eta t / M is 1, by the mended law", ours("README, the tail"),
            number=lambda r: mean(tail(r)),
            holds=about(1.0, 0.8, 1.25, because="corrections of order 1/M with M = 10 to 40, and p not yet 1"),
            conditions=training_conditions,
            refuted_by=made(noise=1e-4, masses_curve=matching(
                lambda t, step: 1 - (2 * t.data.patterns / (t.descent.learning_rate * step)) ** 0.5)),
            upheld_by=made(noise=1e-4, masses_curve=matching(
                lambda t, step: 1 - (t.data.patterns / (2 * t.descent.learning_rate * step)) ** 0.5)),
        ),
    ],
)  # fmt: skip
