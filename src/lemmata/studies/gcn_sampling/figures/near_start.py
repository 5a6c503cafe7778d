"""Lemmas D.2.9 to D.2.11: signs that turn, the bilinear pseudo-network and smoothing near the random start."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import DOTS, line, slope
from lemmata.draw.palette import BLACK, BLUE, GREEN, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, about, at_most, every_run, made, proof
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate
from lemmata.measure.simple import mean
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.figures.common import CONSTANT, seeds
from lemmata.studies.gcn_sampling.trials import NearStart
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    widths = by_scale(scale, (32, 64), (64, 128, 256, 512), (128, 256, 512, 1024, 2048))
    return Sweep(
        NearStart(repeats=by_scale(scale, 4, 20, 100)), (axis("width", widths),), seeds(scale, 8, 20)
    )


@picture
def draw(results: xr.Dataset) -> Drawn:
    """What noise turns, what the surrogate misses, what smoothing does."""
    figure, panels = canvas(3, width=3.8)
    line(panels[0], results["overtaken"], "width", BLUE, "overtaken by noise", "o-")
    line(panels[0], results["flips"], "width", RED, "turned by noise", "s-")
    m = results["width"].values.astype(float)
    exact = [theory.overtaken_chance(one**-0.99, int(one)) for one in m]
    panels[0].plot(m, exact, "--", color=BLACK, label="(2/π) arctan, and half")
    panels[0].plot(m, np.array(exact) / 2, "--", color=BLACK)
    line(panels[1], results["residual"], "width", BLUE, "surrogate misses", "o-")
    line(panels[1], results["mean_residual"], "width", GREEN, "mean over signs", "s-")
    found = line(panels[2], results["smoothing"].isel(width=-1), "move", BLUE, f"m = {int(m[-1])}", "o-")
    slope(panels[2], found, 2.0, colour=BLACK)
    panel(panels[0], "neurons m", "share of signs", "", "xy")
    panel(panels[1], "neurons m", "root mean square", "", "xy")
    panel(panels[2], "size of the move", "cost of frozen signs", "", "xy")
    return figure, f"At the random start. {DOTS}"


# What is measured ------------------------------------------------------------------------------------------------------


def sizes(width: int) -> theory.Parameters:
    """The sizes of Table D.2 for eps_0 = 0.01 and C_0 = 1."""
    return theory.parameters(width, width, 0.01, 1.0)


def smoothing_slope(r: xr.Dataset) -> Estimate:
    """The exponent in the move of what frozen signs cost after smoothing."""
    gaps, place = xr.ufuncs.log(r.smoothing), xr.ufuncs.log(r["move"].astype(float))
    centred = place - place.mean()
    return mean((gaps * centred).sum("move") / (centred**2).sum())


def smoothing_share(r: xr.Dataset) -> xr.DataArray:
    """What frozen signs cost after smoothing, over the square of the smallest move and over the bound of Lemma D.2.11."""
    m = over_cells(r, lambda t: float(t.width))
    noise_w = over_cells(r, lambda t: sizes(t.width).noise_w)
    noise_v = over_cells(r, lambda t: sizes(t.width).noise_v)
    bound = theory.smoothing_bound(r.norm, m, m, noise_w, noise_v, r.largest_w, r.largest_v)
    smallest = float(r["move"].min())
    return chosen(r.smoothing, move=smallest) / smallest**2 / bound


def residual_share(r: xr.Dataset) -> xr.DataArray:
    """What the bilinear surrogate misses, over the bound of Lemma D.2.9 at the norm of each graph."""

    def size(t: NearStart) -> float:
        return theory.coupling_bound(1.0, t.width, t.width, sizes(t.width).reach_w, sizes(t.width).reach_v)

    return r.residual / (over_cells(r, size) * r.norm**3)


def turned_first_share(r: xr.Dataset) -> xr.DataArray:
    """Signs of the first layer that turn at the node where most turn, over the bound of Lemma D.2.10."""
    bound = over_cells(r, lambda t: theory.flip_bounds(1.0, t.width, t.width, sizes(t.width))[0])
    return r.turned_first / bound


def turned_second_share(r: xr.Dataset) -> xr.DataArray:
    """The same for the second layer, at the norm of each graph."""

    def bound(norm: float, width: int) -> float:
        return theory.flip_bounds(float(norm), int(width), int(width), sizes(int(width)))[2]

    return r.turned_second / xr.apply_ufunc(bound, r.norm, r.width, vectorize=True)


# Made results, with norm 1; every width m stands for Table D.2 with m_1 = m_2 = m ----------------------------------------


def moving_as(power: float):
    return made(smoothing=lambda t, move: move**power)


def smoothed(share: float):
    """A cost of this share of the bound, for moves whose largest columns are 1e-3."""

    def cost(t, move):
        return share * move**2 * 1e-6 * (t.width**1.99 + (t.width + 1) * t.width**0.51)

    return made(smoothing=cost, norm=lambda t: 1.0, largest_w=lambda t: 1e-3, largest_v=lambda t: 1e-3)


def missing(share: float):
    def residual(t) -> float:
        return share * (t.width**-0.001 + t.width**-0.068 + t.width**-0.284)

    return made(norm=lambda t: 1.0, residual=residual)


def turned_first(share: float):
    return made(turned_first=lambda t: share * t.width**0.608)


def turned_second(share: float):
    def signs(t) -> float:
        m = t.width
        return share * (m**0.99 * (1 + m**-0.49) + m * (m**-0.001 + m**-0.49 * (1 + m**-0.001)) ** (2 / 3))

    return made(norm=lambda t: 1.0, turned_second=signs)


def crossed(share: float):
    return made(norm=lambda t: 1.0, cross_terms=lambda t: share * t.width**-0.001)


AT_MOST_ONE = every_run(at_most(1.0, because=CONSTANT))

near_start = Figure(
    "near-start", "Signs, coupling and smoothing near the random start",
    "Unit features; perturbations of the sizes of Table D.2.",
    sweep, draw, labels=lambda trial: {"move": trial.moves},
    claims=[
        Claim(
            "smoothing-square", "After Gaussian smoothing, the network leaves the one with frozen signs by the square of the move",
            proof("Lemma D.2.11"),
            number=smoothing_slope, holds=about(2.0, 1.7, 2.3, because="without smoothing it is 1 where signs turn at once"),
            refuted_by=moving_as(1.0), upheld_by=moving_as(2.0),
        ),
        Claim(
            "smoothing-bound", "What frozen signs cost after smoothing is at most the square of the move times the bound of "
            "Lemma D.2.11", proof("Lemma D.2.11"),
            number=smoothing_share, holds=AT_MOST_ONE, refuted_by=smoothed(2.5), upheld_by=smoothed(0.5),
        ),
        Claim(
            "coupling-bound", "Near the start the network is its start plus the bilinear pseudo-network, up to the bound of "
            "Lemma D.2.9", proof("Lemma D.2.9"),
            number=residual_share, holds=AT_MOST_ONE, refuted_by=missing(2.5), upheld_by=missing(0.5),
        ),
        Claim(
            "flips-bound", "Noise and weights of the sizes sigma_w, tau_w turn at most tau_w^(4/5) m^(6/5) signs of the first "
            "layer, at every node", proof("Lemma D.2.10 (1)"),
            number=turned_first_share, holds=AT_MOST_ONE, refuted_by=turned_first(2.5), upheld_by=turned_first(0.5),
        ),
        Claim(
            "flips-second-bound", "At every node, no more signs of the second layer turn than Lemma D.2.10 allows",
            proof("Lemma D.2.10 (1)"),
            number=turned_second_share, holds=AT_MOST_ONE, refuted_by=turned_second(2.5), upheld_by=turned_second(0.5),
        ),
        Claim(
            "cross-terms", "Cross terms of random signs are at most eta |q^T A|_1 |A|^2 tau_v", proof("Lemma D.2.10 (2)"),
            number=lambda r: r.cross_terms / theory.cross_bound(r.norm, over_cells(r, lambda t: sizes(t.width).reach_v)),
            holds=every_run(at_most(1.0, because="the bound is printed without a constant")),
            refuted_by=crossed(2.5), upheld_by=crossed(0.5),
        ),
    ],
)  # fmt: skip
