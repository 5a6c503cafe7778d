"""The three events of population descent: when they come, how they look, and a run that has them."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import BAND, line, reference
from lemmata.draw.palette import BLUE, GREEN, ORANGE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Made, every_run, made, positive
from lemmata.measure.estimate import needs
from lemmata.studies.spatial_structure.figures.common import (
    always,
    linear_error,
    linear_models,
    reached,
    second_event,
    settings_line,
)


def events_apart(r):
    """The smaller gap between consecutive events of each run, in logarithms of time; a run in which gamma never passes rho has
    no order, and one whose loss stays above 0.05 is taken to get there at its last logged time."""
    first, second = reached(r, "event1"), second_event(r)
    last = reached(r, "event3")
    needs(bool(last.notnull().any()), "no run brought its loss below 0.05: the third event did not end.")
    times = [xr.ufuncs.log(t) for t in (first, second, last.fillna(float(r.step.max())))]
    gap = xr.ufuncs.minimum(times[1] - times[0], times[2] - times[1])
    return xr.where(second.isnull() & first.notnull(), -np.inf, gap)


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
            beta = "" if name is None else rf", $\beta$ = {name:g}"
            panel(axes, "time", title.split(" and")[0], title + beta, "x", keyed=name == names[-1])
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


# Lemmas D.4, G.1 and G.2 with p = 3, C = 4, D = 512, G = 50, alpha = 0.01, slack 0.2 and Xi = 0.002.
SIGNAL = 3 * 4 * 50**3 * 0.01**2 * 0.2
SAME = 4 * 0.01**3 * 50**2 * 0.2
"""Over Gamma."""
CROSS = 2.08e-3
"""The second term, `alpha (alpha D k Xi)^2 Xi k` with `k = 16 log 512 = 99.8`; the first is 1.7e-7."""

RUN = {
    "event1": always(100), "event3": always(5000), "same_unit": always(3000), "largest_cross": always(0.1),
    "cross_lead": always(-0.5),
    "same_curve": lambda t, step: gamma_of(step), "same_score_curve": lambda t, step: score_of(step),
    "cross_score_curve": always(0.002), "gain_curve": always(50), "alignment_curve": falling(0.005), "slack_curve": always(0.2),
    "loss_curve": always(0.3), "test_error": lambda t: 0.3 * linear_error(t), "test_error_curve": linear_error,
    "signal_drive_curve": always(3.5 * SIGNAL), "noise_drive_curve": lambda t, step: np.where(step > 0, 1.5, 0.2) * SIGNAL,
    "cross_curve": always(0), "same_pull_curve": lambda t, step: SAME * score_of(step),
    "cross_pull_curve": always(3.5 * CROSS),
}  # fmt: skip
"""A run of three numbers that does what the lemmas say, with constants near the ends of their tolerances."""


def run(**laws) -> Made:
    """The same run, but for these laws."""
    return made(RUN | laws, noise=0.003)


LOG_STEPS = "the smaller gap between consecutive events, in logarithms of time"
IN_ORDER = every_run(positive(because=LOG_STEPS))
