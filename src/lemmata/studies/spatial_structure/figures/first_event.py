"""The end of the first event against the starting alignment: alpha0^-(p-2), where Lemma D.2 prints alpha0^-(p-1)."""

from typing import Any

import xarray as xr

from lemmata.descent import Descent
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
from lemmata.studies.spatial_structure.figures.common import always, changed, labels, reached, seeds
from lemmata.studies.spatial_structure.network import PositionalNetwork
from lemmata.studies.spatial_structure.theory import population
from lemmata.studies.spatial_structure.trials import IdealisedDescent
from lemmata.sweep import Axis, Sweep, axis


def predicted(trial: Any, rate: float) -> float:
    """T0, mended, at a step size."""
    (D, C, q), network = trial.data.facts, trial.network
    return theory.event1_time(D, C, q, network.degree, float(network.diagonal), rate, float(trial.alignment))


def sweep(scale: Scale) -> Sweep:
    trial = IdealisedDescent(
        network=PositionalNetwork(linear=1e-20, diagonal=2.0),
        descent=Descent(learning_rate=1e-3, attention_rate=0.0, target_loss=0.45, steps=6000, logs=3),
        draws=by_scale(scale, 1000, 6000, 6000),
        test_draws=10,
    )

    def at_start(trial: IdealisedDescent, alignment: float) -> IdealisedDescent:
        """A starting alpha with the step size that makes the first event last about 3000 steps."""
        started = changed(trial, alignment=alignment)
        return changed(started, descent__learning_rate=predicted(started, 1.0) / 3000)

    starts = Axis("start", by_scale(scale, (3e-4, 3e-3), *2 * [(1e-4, 3e-4, 1e-3, 3e-3)]), at_start)
    degrees = axis("network.degree", by_scale(scale, (3,), (3, 5), (3, 5)))
    return Sweep(trial, (degrees, starts), seeds(scale, 2, 4, 10))


def time(r):
    """`eta T0`."""
    return reached(r, "event1") * over_cells(r, lambda t: t.descent.learning_rate)


def time_exponent(r):
    """The exponent of `eta T0` in the starting alpha at p = 3."""
    return exponent(chosen(time(r), degree=3), "start", paired=True)


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(height=4.0)
    mended = over_cells(results, lambda t: predicted(t, 1.0))
    measured = time(results)
    for colour, degree in zip(CYCLE, results.degree.values.tolist(), strict=False):
        line(axes, measured.sel(degree=degree), "start", colour, f"measured, p = {degree}", "o")
        one = mended.sel(degree=degree)
        law(axes, one.start, one, f"corrected: exponent {2 - degree}", colour, "-")
        printed = f"printed: exponent {1 - degree}"
        slope(axes, (one.start, one), 1 - degree, printed, at=-1, colour=colour, style=":")
    panel(axes, r"starting alignment $\alpha^{(0)}$", r"$\eta T_0$", log="xy")
    return figure, "End of the first event; the printed law is drawn through the last point."


def starting(power: float):
    """A first event that lasts alpha0^-(p - 2 + power): the step size makes 3000 steps of alpha0^-(p - 2)."""
    return made(event1=lambda t: 3000 * (1e-3 / t.alignment) ** power)


NOISELESS = "a noiseless recursion over more than a decade"

first_event = Figure(
    "first-event", "End of the first event against the starting alignment",
    "Attention frozen, nu negligible, D = 64, C = 4, beta = 2.", sweep, draw, labels=labels,
    upheld_by=made(event1=always(3000)),
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
            "first-event-constant", "The first event ends after 1 / ((p-2) c eta alpha0^(p-2)) steps, c being the exact mean "
            "of the first pull", ours("Lemma D.2, mended"),
            number=lambda r: mean(
                reached(r, "event1") / over_cells(r, lambda t: predicted(t, float(t.descent.learning_rate)))
            ),
            holds=about(1.0, 0.9, 1.1, because="the time to leave a power-law start is insensitive to its end; draws leave a "
                                               "few per cent"),
            conditions=population,
            refuted_by=made(event1=always(3900)),
        ),
    ],
)  # fmt: skip
