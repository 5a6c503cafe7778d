"""The end of the first event against the starting alignment: alpha0^-(p-2), where Lemma D.2 prints alpha0^-(p-1)."""

from typing import Any

import xarray as xr

from lemmata.draw.curves import law, line, slope
from lemmata.draw.palette import CYCLE
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, about, made, ours, proof
from lemmata.measure.columns import chosen
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.figures.common import (
    ONE_RATE,
    changed,
    labels,
    population_flow,
    reached,
    seeds,
)
from lemmata.studies.spatial_structure.theory import population
from lemmata.studies.spatial_structure.trials import IdealisedFlow
from lemmata.sweep import Axis, Sweep, axis


def predicted(trial: Any) -> float:
    """T0, mended, of the trial's starting alpha `nu^(1/(p-1))`."""
    (D, C, q), network = trial.data.facts, trial.network
    start = float(network.threshold)
    return theory.event1_time(D, C, q, network.degree, float(network.diagonal), 1.0, start)


def sweep(scale: Scale) -> Sweep:
    trial = population_flow(256, 5.4, draws=by_scale(scale, 1000, 6000, 6000), test_draws=10, logs=3)

    def at_start(trial: IdealisedFlow, alignment: float) -> IdealisedFlow:
        """The trial with the nu that belongs to a starting alpha, followed for ten times as long as is predicted."""
        started = changed(trial, network__linear=alignment ** (trial.network.degree - 1))
        return changed(started, last=float(f"{10 * predicted(started):.4g}"), first=1e-9)

    starts = Axis("start", by_scale(scale, (1e-5, 1e-4), *2 * [(1e-6, 1e-5, 1e-4)]), at_start)
    degrees = axis("network.degree", by_scale(scale, (3,), (3, 5), (3, 5)))
    return Sweep(trial, (degrees, starts), seeds(scale, 2, 4, 10))


def time(r):
    """T0."""
    return reached(r, "event1")


def time_exponent(r):
    """The exponent of T0 in the starting alpha at p = 3."""
    return exponent(chosen(time(r), degree=3), "start", paired=True)


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(height=4.0)
    mended = over_cells(results, predicted)
    measured = time(results)
    for colour, degree in zip(CYCLE, results.degree.values.tolist(), strict=False):
        line(axes, measured.sel(degree=degree), "start", colour, f"measured, p = {degree}", "o")
        one = mended.sel(degree=degree)
        law(axes, one.start, one, f"corrected: exponent {2 - degree}", colour, "-")
        printed = f"printed: exponent {1 - degree}"
        slope(axes, (one.start, one), 1 - degree, printed, at=-1, colour=colour, style=":")
    panel(axes, r"starting alignment $\alpha^{(0)}$", r"$T_0$", log="xy")
    return figure, "End of the first event; the printed law is drawn through the last point."


def starting(power: float):
    """A first event that lasts alpha0^-(p - 2 + power)."""
    return made(event1=lambda t: predicted(t) * (1e-5 / t.network.threshold) ** power)


NOISELESS = "a flow without noise over two decades"

first_event = Figure(
    "first-event", "End of the first event against the starting alignment",
    "D = d = 256, C = 4, q = 1/16, beta = 5.4, alpha0 = nu^(1/(p-1)): inside Theorem 4.1. " + ONE_RATE,
    sweep, draw, labels=labels, upheld_by=made(event1=predicted),
    claims=[
        Claim(
            "first-event-exponent", "The first event ends after a time of order alpha0^-(p-1), as printed; its proof gives "
            "alpha0^-(p-2)", proof("Lemma D.2"),
            number=time_exponent,
            holds=about(-2.0, -2.05, -1.95, because=NOISELESS, rivals={"corrected": -1.0}), conditions=population,
            refuted_by=starting(0), upheld_by=starting(1),
        ),
        Claim(
            "first-event-corrected", "The first event ends after a time of order alpha0^-(p-2)", ours("Lemma D.2, mended"),
            number=time_exponent,
            holds=about(-1.0, -1.05, -0.95, because=NOISELESS), conditions=population,
            refuted_by=starting(0.15),
        ),
        Claim(
            "first-event-constant", "The first event ends after a time of 1 / ((p-2) c alpha0^(p-2)), c being the exact mean "
            "of the first pull", ours("Lemma D.2, mended"),
            number=lambda r: mean(reached(r, "event1") / over_cells(r, predicted)),
            holds=about(1.0, 0.9, 1.1, because="the time to leave a power-law start is insensitive to its end; draws leave a "
                                               "few per cent"),
            conditions=population,
            refuted_by=made(event1=lambda t: 1.3 * predicted(t)),
        ),
    ],
)  # fmt: skip
