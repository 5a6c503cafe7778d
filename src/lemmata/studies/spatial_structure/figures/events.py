"""The three events of population descent: when they come, how they look, and a run that has them; and one step size."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, line, reference
from lemmata.draw.palette import BLUE, GREEN, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, log_to_zero, panel, picture
from lemmata.figure import Claim, Figure, Made, at_most, every_run, made, positive, proof, theorem
from lemmata.measure.estimate import needs
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure.figures.common import (
    EVENTS,
    HALF_LINEAR,
    always,
    labels,
    linear_error,
    linear_models,
    over_glm,
    reached,
    second_event,
    seeds,
    settings_line,
    to_the_end,
    with_second_event,
)
from lemmata.studies.spatial_structure.theory import population
from lemmata.studies.spatial_structure.trials import IdealisedDescent
from lemmata.sweep import Sweep


def sweep(scale: Scale) -> Sweep:
    steps, rate = by_scale(scale, (3000, 3e-3), (4_500_000, 2e-3), (9_000_000, 1e-3))
    trial = IdealisedDescent(
        descent=to_the_end(rate, 1.0, steps, 401, spacing="log"), draws=300, test_draws=2000
    )
    return Sweep(trial, (), seeds(scale, 2, 6, 6))


def events_apart(r):
    """The smaller gap between consecutive events of each run, in logarithms of steps; a run in which gamma never passes rho has
    no order, and one whose loss stays above 0.05 is taken to get there at its last step."""
    first, second = reached(r, "event1"), second_event(r)
    last = reached(r, "event3")
    needs(bool(last.notnull().any()), "no run brought its loss below 0.05: the third event did not end.")
    times = [xr.ufuncs.log(t) for t in (first, second, last.fillna(r.steps))]
    gap = xr.ufuncs.minimum(times[1] - times[0], times[2] - times[1])
    return xr.where(second.isnull() & r.steps.notnull(), -np.inf, gap)


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Population descent: errors, logits, alignment and drives over the logarithm of time, with the ends of the events."""
    names = list(results.diagonal.values) if "diagonal" in results.dims else [None]
    figure, panels = canvas(4, len(names), width=3.4, height=3.6, squeeze=False)
    drawn = {
        "error and loss": {"test_error": (BLUE, "test error"), "loss": (ORANGE, "loss")},
        "logits": {"same": (BLUE, r"$\gamma$ (same group)"), "cross": (RED, r"$\rho$ (across)")},
        "alignment": {"alignment": (GREEN, r"$\alpha$")},
        "pull on α": {"signal_drive": (BLUE, "signal set"), "noise_drive": (RED, "rest of the image")},
    }
    ends = {"event1": ("$T_0$", ":"), "event2": ("$T_1$", "--"), "event3": ("$T_2$", "-.")}
    for row, name in zip(panels, names, strict=True):
        one = results if name is None else results.sel(diagonal=name)
        times = {event: float(one[event].where(one[event] > 0).median()) for event in ends}
        linear_models(row[0], one)
        for axes, (title, curves) in zip(row, drawn.items(), strict=True):
            for curve, (colour, label) in curves.items():
                line(axes, one[f"{curve}_curve"], "step", colour, label)
            for event, (label, style) in ends.items():
                if times[event] > 0:
                    reference(axes, x=times[event], label=label, style=style)
            log_to_zero(axes, "x", 1)
            beta = "" if name is None else rf", $\beta$ = {name:g}"
            panel(axes, "step", title.split(" and")[0], title + beta, keyed=name == names[-1])
    said = settings_line(results)
    return figure, f"Population descent as three numbers, {said}; median ends of the events. {BAND}"


# A run that has them --------------------------------------------------------------------------------------------------


def gamma_of(step: np.ndarray) -> np.ndarray:
    """The same-group logit: 1 at step 3000, 2 in the end."""
    return np.minimum(step / 3000, 2)


def score_of(step: np.ndarray) -> np.ndarray:
    """The same-group score: its logarithm grows as the square of the time, by 1 until step 3000."""
    return 0.004 * np.exp(np.minimum(step / 3000, 1) ** 2)


def falling(share: float):
    """An alignment of 0.01 that loses a share of itself at step 1000."""
    return lambda t, step: 0.01 * np.where(step > 1000, 1 - share, 1)


# Lemmas D.3, D.4, G.1 and G.2 with p = 3, C = 4, D = 256, G = 50, alpha = 0.01, slack 0.2, Xi = 0.002, and lambda0 =
# 768 * 0.004 * e.
SIGNAL = 3 * 4 * 50**3 * 0.01**2 * 0.2
OUTPUT = (4 ** (4 / 3) * 0.01 * 768 * 0.004 * np.e) ** 3
SAME = 4 * 0.01**3 * 50**2 * 0.2
"""Over Gamma."""
CROSS = 9.2e-5
"""The second term, `alpha (alpha D k Xi)^2 Xi k` with `k = 16 log 32 = 55.5`, is 9.0e-5, the first 0.26e-5."""

RUN = {
    "event1": always(100), "event3": always(5000), "same_unit": always(3000), "largest_cross": always(0.1),
    "cross_lead": always(-0.5),
    "same_curve": lambda t, step: gamma_of(step), "same_score_curve": lambda t, step: score_of(step),
    "cross_score_curve": always(0.002), "gain_curve": always(50), "alignment_curve": falling(0.005), "slack_curve": always(0.2),
    "loss_curve": always(0.3), "test_error": lambda t: 0.3 * linear_error(t), "test_error_curve": linear_error,
    "signal_drive_curve": always(3.5 * SIGNAL), "noise_drive_curve": lambda t, step: np.where(step > 0, 1.5, 0.2) * SIGNAL,
    "largest_output_curve": always(3.4 * OUTPUT), "same_pull_curve": lambda t, step: 3.5 * SAME * score_of(step),
    "cross_pull_curve": always(3.5 * CROSS),
}  # fmt: skip
"""A run of three numbers that does what the lemmas say, with constants near the ends of their tolerances."""


def run(**laws) -> Made:
    """The same run, but for these laws."""
    return made(RUN | laws, noise=0.003)


LOG_STEPS = "the smaller gap between consecutive events, in logarithms of steps"
IN_ORDER = every_run(positive(because=LOG_STEPS))

common_rate = Figure(
    "common-rate", "One step size for value and attention, as the paper has it: millions of steps",
    "D = 64, C = 4, q = 0.25, nu = 1e-4, beta = 2 and one step size. " + EVENTS,
    sweep, draw, labels=labels, derived=with_second_event, upheld_by=run(),
    claims=[
        Claim(
            "events-in-order-one-rate", "With one step size for value and attention the three events come in order too: T0 < "
            "T1 < T2",
            proof("Section 4.1"),
            number=events_apart, holds=IN_ORDER, conditions=population,
            refuted_by=run(event1=always(500)),
        ),
        Claim(
            "one-step-size", "With one step size for value and attention population descent ends with at most half of the "
            "linear models' error", theorem("Theorem 4.1"),
            number=over_glm, holds=at_most(0.5, because=HALF_LINEAR), conditions=population,
            refuted_by=run(test_error=linear_error),
        ),
    ],
)  # fmt: skip
