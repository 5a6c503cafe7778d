"""Lemmas D.2.4 to D.2.8: the pseudo-network that the proof builds, and the start as a Gaussian, over the width."""

import xarray as xr

from lemmata.draw.curves import DOTS, line, reference, slope
from lemmata.draw.palette import BLACK, BLUE
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_most, every_run, made, proof
from lemmata.measure.exponent import exponent
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.figures.common import CONSTANT, seeds
from lemmata.studies.gcn_sampling.trials import Existence
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    widths = by_scale(scale, (64, 256), (256, 1024, 4096, 16384), (256, 1024, 4096, 16384, 65536))
    return Sweep(
        Existence(starts=by_scale(scale, 10, 100, 400)), (axis("width", widths),), seeds(scale, 8, 20)
    )


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The error of the proof's pseudo-network, and how near to a Gaussian the start is, over the width."""
    figure, panels = canvas(3, width=3.8)
    m = results["width"].values.astype(float)
    found = line(panels[0], results["pseudo_error"], "width", BLUE, "pseudo-network", "o-")
    slope(panels[0], found, -0.5, colour=BLACK)
    limit = float(results["endless_error"].mean())
    if limit > 1e-6:
        reference(panels[0], y=limit, label="at infinite width")
    line(panels[1], results["gaussian_distance"], "width", BLUE, "distance from a Gaussian", "o-")
    panels[1].plot(m, [theory.gaussian_bound(int(one)) for one in m], "--", color=BLACK, label="m^(−1/6)")
    line(panels[2], results["disagreeing"], "width", BLUE, "indicators that differ", "o-")
    panels[2].plot(
        m, [2 * theory.gaussian_bound(int(one)) for one in m], "--", color=BLACK, label="2 m^(−1/6)"
    )
    panel(panels[0], "neurons m", "error / mean of |f*|", "", "xy")
    panel(panels[1], "neurons m", "W₂ distance × √m", "", "xy")
    panel(panels[2], "neurons m", "share", "", "xy")
    return figure, f"Dashed: the paper's orders, constant 1. {DOTS}"


def power_of_width(record: str, power: float):
    return made({record: lambda t: t.width**power})


AT_MOST_ONE = every_run(at_most(1.0, because=CONSTANT))

existence = Figure(
    "existence", "The pseudo-network of the proof, and the start as a Gaussian, over the width",
    "phi(z) = z - z^3/6 and Phi = 1; 100 fresh starts for the Gaussian law.",
    sweep, draw,
    readings={"a random graph, as stated": {}, "rows of A* X alike, as the proof needs": {"design": "even"}},
    claims=[
        Claim(
            "pseudo-network", "The pseudo-network that the proof builds comes to the target as the width grows without end",
            proof("Lemma D.2.4, (D.45) to (D.47)"),
            number=lambda r: r.endless_error,
            holds=every_run(at_most(0.01, because="a hundredth of the target's size; the limit itself is computed to rounding")),
            refuted_by=made(endless_error=lambda t: 0.02), upheld_by=made(endless_error=lambda t: 0.005),
        ),
        Claim(
            "pseudo-network-width", "The error of the pseudo-network falls as a power of the width",
            proof("Lemma D.2.4, M = poly(1/eps)"),
            number=lambda r: exponent(r.pseudo_error, "width"),
            holds=at_most(-0.25, because="an error that stays has the exponent 0, a mean over neurons -1/2"),
            refuted_by=power_of_width("pseudo_error", -0.1), upheld_by=power_of_width("pseudo_error", -0.5),
        ),
        Claim(
            "start-gaussian", "At the start the second layer's inputs come to a Gaussian at least as m_1^(-1/6) (W_2 distance)",
            proof("Lemmas D.2.5, D.2.6"),
            number=lambda r: exponent(r.gaussian_distance, "width"), holds=at_most(-1 / 6, because="the printed power"),
            refuted_by=power_of_width("gaussian_distance", -0.1), upheld_by=power_of_width("gaussian_distance", -0.4),
        ),
        Claim(
            "start-spread", "At the start the spread of the second layer's inputs is at most |A| (1 + |A|) / sqrt(m_2)",
            proof("Lemma D.2.6"),
            number=lambda r: r.spread / theory.spread_bound(r.norm), holds=AT_MOST_ONE,
            refuted_by=made(norm=lambda t: 1.0, spread=lambda t: 5.0), upheld_by=made(norm=lambda t: 1.0, spread=lambda t: 1.0),
        ),
        Claim(
            "start-indicators", "At the start the second layer's indicators are those of that Gaussian but for a share "
            "2 p_2^(2/3) / m_1^(1/6)", proof("Lemmas D.2.7, D.2.8, (D.60)"),
            number=lambda r: r.disagreeing / over_cells(r, lambda t: 2 * theory.gaussian_bound(t.width)), holds=AT_MOST_ONE,
            refuted_by=made(disagreeing=lambda t: 4 * t.width ** (-1 / 6)),
            upheld_by=made(disagreeing=lambda t: t.width ** (-1 / 6)),
        ),
    ],
)  # fmt: skip
