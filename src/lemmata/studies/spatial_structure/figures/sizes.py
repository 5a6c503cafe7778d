"""Population descent with one setting changed at a time: group size, spurious rate, patches, degree, diagonal."""

import xarray as xr

from lemmata.draw.curves import BARS, rows
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, about, made, ours, positive
from lemmata.measure.columns import chosen
from lemmata.measure.simple import mean
from lemmata.measure.trend import difference
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.figures.common import (
    FAST,
    LABEL_NOISE,
    always,
    labels,
    seeds,
    to_the_end,
    with_second_event,
)
from lemmata.studies.spatial_structure.network import PositionalNetwork
from lemmata.studies.spatial_structure.theory.two_rates import population
from lemmata.studies.spatial_structure.trials import IdealisedDescent
from lemmata.sweep import Axis, Sweep
from lemmata.trial import put_all

VARIATIONS = {
    "base": {},
    "D=36": {"data.patches": 36},
    "D=144": {"data.patches": 144},
    "C=2": {"data.group_size": 2},
    "C=8": {"data.group_size": 8},
    "q=0.15": {"data.spurious_rate": 0.15},
    "q=0.35": {"data.spurious_rate": 0.35},
    "p=5": {"network.degree": 5},
    "p=7": {"network.degree": 7},
    "beta=3": {"network.diagonal": 3.0},
    "beta=5": {"network.diagonal": 5.0},
}


def sweep(scale: Scale) -> Sweep:
    steps, logs, names = by_scale(
        scale, (4000, 41, ("base", "p=5", "p=7")), *2 * [(100_000, 401, tuple(VARIATIONS))]
    )
    draws, tests = by_scale(scale, (100, 200), (500, 20_000), (500, 20_000))
    trial = IdealisedDescent(
        network=PositionalNetwork(linear=1e-4, diagonal=4.0),
        descent=to_the_end(2e-5, 5e4, steps, logs),
        alignment=0.01,
        draws=draws,
        test_draws=tests,
    )
    variations = Axis("variation", names, lambda t, name: put_all(t, VARIATIONS[name]))
    return Sweep(trial, (variations,), seeds(scale, 2, 6, 10))


def error_over_noise(r):
    """The error at p = 7 over the label noise."""
    noise = over_cells(r, lambda t: theory.label_noise(*t.data.facts))
    return mean(chosen(r.test_error / noise, variation="p=7"))


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(2, width=5.0, sharey=True)
    rows(panels[0], results.event2, "variation")
    rows(panels[1], results.test_error, "variation")
    panel(panels[0], "end of the second event (steps)", log="x")
    panel(panels[1], "error at the end", log="x")
    return figure, f"Population descent with one setting changed at a time. {BARS}"


sizes = Figure(
    "sizes", "What group size, spurious rate, patches, degree and diagonal do to the second event and the error",
    "Population descent, one setting changed at a time. " + FAST, sweep, draw, labels=labels, derived=with_second_event,
    claims=[
        Claim(
            "degree-helps", "A higher degree leaves less error: it falls from p = 3 to p = 5", ours("Theorem 4.1, orders"),
            number=lambda r: difference(chosen(r, variation="base").test_error, chosen(r, variation="p=5").test_error),
            holds=positive(because="a higher power favours full groups over scattered patches"), conditions=population,
            refuted_by=made(test_error=lambda t: 0.01 * t.network.degree),
            upheld_by=made(test_error=lambda t: 0.1 / t.network.degree),
        ),
        Claim(
            "error-floor", "At p = 7 the error is half the label noise, the best that can be had", ours("Theorem 4.1, limit"),
            number=error_over_noise,
            holds=about(0.5, 0.25, 1.0, because="a factor 2: ten errors a test set"), conditions=population,
            refuted_by=made(test_error=always(2 * LABEL_NOISE)), upheld_by=made(test_error=always(LABEL_NOISE / 2)),
        ),
    ],
)  # fmt: skip
