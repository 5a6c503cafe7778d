"""Lemmas D.2.13 and D.2.14: what a round of descent takes off the smoothed objective L', and the curvature after it."""

import numpy as np
import xarray as xr

from lemmata.draw.curves import DOTS, line, lines, reference
from lemmata.draw.palette import BLUE, ORANGE
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, at_most, every_run, made, proof
from lemmata.results import over_cells
from lemmata.scale import Scale, by_scale
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.figures.common import seeds
from lemmata.studies.gcn_sampling.trials import Alternative, Curvature
from lemmata.sweep import Sweep, axis


def alternative_sweep(scale: Scale) -> Sweep:
    rounds, widths = by_scale(scale, 2, 6, 20), by_scale(scale, (8,), (32, 64), (64, 128, 256))
    return Sweep(Alternative(rounds=rounds), (axis("width", widths),), seeds(scale, 5, 10))


def curvature_sweep(scale: Scale) -> Sweep:
    lengths = by_scale(scale, (5, 20), (40, 400, 4000), (40, 400, 4000, 40_000))
    return Sweep(Curvature(rounds=by_scale(scale, 2, 4, 8)), (axis("inner", lengths),), seeds(scale, 5, 10))


@picture
def draw_alternative(results: xr.Dataset) -> Drawn:
    """What the best move with random signs and what weight decay take off L', round by round."""
    figure, panels = canvas(2)
    last = results.isel(width=-1)
    line(panels[0], last["by_move"], "round", BLUE, "best move, random signs", "o-")
    line(panels[0], last["by_decay"], "round", ORANGE, "weight decay", "s-")
    reference(panels[0], y=1.0, label="Lemma D.2.13 wants one of them above")
    line(panels[1], last["objective"], "round", BLUE, "", "o-")
    panel(panels[0], "round", "taken off L', in parts of ηγ/4", f"m = {int(last['width'])}", "")
    panel(panels[1], "round", "L'", "", "")
    return figure, f"Labels of the concept class; γ = 1/4. {DOTS}"


@picture
def draw_curvature(results: xr.Dataset) -> Drawn:
    """The lowest curvature after each round, what weight decay takes off then, and L' itself, by the length of rounds."""
    figure, panels = canvas(3, width=3.8)
    for axes, name in zip(panels, ("lowest", "by_decay", "objective"), strict=True):
        lines(axes, results[name], "round", "inner", "{:g} steps", style="o-")
    reference(panels[0], y=0.0, label="(D.116): none below")
    reference(panels[1], y=1.0, label="(D.117): at least")
    at = results["round"].values
    panel(panels[0], "round", "lowest eigenvalue of the Hessian", "", "", at)
    panel(panels[1], "round", "weight decay takes off L', / (ηγ/4)", "", "", at)
    panel(panels[2], "round", "L'", "", "y", at)
    return figure, f"Labels of the concept class; γ = 1/4. {DOTS}"


alternative = Figure(
    "alternative", "The first rounds of descent: what a move with random signs and what weight decay take off",
    "Labels of (5.12), full gradient steps of size 0.1, 40 a round; eta = 1e-4 in the lemma, C_0 = 30.",
    alternative_sweep, draw_alternative, labels=lambda trial: {"round": range(trial.rounds)},
    claims=[
        Claim(
            "descent-alternative", "In every round a move with random signs or weight decay lowers L' by the share eta gamma / 4",
            proof("Lemma D.2.13, gamma = 1/4"),
            number=lambda r: xr.ufuncs.maximum(r.by_move, r.by_decay),
            holds=every_run(at_least(1.0, because="the lemma's own share; L' stays far above its lower end, since OPT = 0")),
            refuted_by=made(by_move=lambda t, round: np.where(round == 1, 0.5, 2.0), by_decay=lambda t, round: 0.1),
            upheld_by=made(by_move=lambda t, round: np.where(round == 1, 0.1, 1.5), by_decay=lambda t, round: 1.5 * (round == 1)),
        ),
        Claim(
            "rounds-descend", "A round lets L' grow by at most 1/(m_1 m_2)", proof("(D.118)"),
            number=lambda r: r.growth * over_cells(r, lambda t: float(t.width) ** 2),
            holds=every_run(at_most(1.0, because="the printed size")),
            refuted_by=made(growth=lambda t, round: 2.5 / t.width**2), upheld_by=made(growth=lambda t, round: 0.5 / t.width**2),
        ),
    ],
)  # fmt: skip


def longest(r: xr.Dataset) -> xr.DataArray:
    """The runs with the longest rounds."""
    return r.inner == r.inner.max()


def decay_gain(r: xr.Dataset) -> xr.DataArray:
    """What weight decay takes off L' after each round, in parts of eta gamma / 4; of rounds that end above the lower end of
    the lemma's range."""
    return r.by_decay.where(r.objective >= theory.decay_end(r.norm))


def decaying(gain: float):
    """A gain in all rounds of the longest kind but one, whose L' of 0.02 lies below the lower end 0.04 of the range."""
    return made(
        norm=lambda t: 1.0,
        objective=lambda t, round: np.where(round == 2, 0.02, 0.08),
        by_decay=lambda t, round: np.where(round == 2, 3.0 - gain, gain),
    )


def lowest_of(value: float):
    return made(lowest=lambda t, round: value)


curvature = Figure(
    "curvature", "Curvature and weight decay after rounds of several lengths",
    "As alternative, with 16 neurons and rounds of several lengths; signs frozen in the Hessian.",
    curvature_sweep, draw_curvature, labels=lambda trial: {"round": range(1, trial.rounds + 1)},
    claims=[
        Claim(
            "no-negative-curvature", "After every round the Hessian of L' has no eigenvalue below -(m_1 m_2)^-8",
            proof("Lemma D.2.14, (D.116)"),
            number=lambda r: r.lowest,
            holds=every_run(at_least(-1e-9, because="that is 5e-20 with 16 neurons, below what can be computed: 1e-9 stands for it; "
                                     "the longest rounds, since the lemma's are polynomially long")),
            cells=longest, refuted_by=lowest_of(-2.5e-9), upheld_by=lowest_of(-5e-10),
        ),
        Claim(
            "decay-enough", "Weight decay alone lowers L' by the share eta gamma / 4 after every round",
            proof("Lemma D.2.14, (D.117), gamma = 1/4"),
            number=decay_gain,
            holds=every_run(at_least(1.0, because="the lemma's own share, while L' is above |A*|^5 eps_0 / gamma; the longest "
                                     "rounds")),
            cells=longest, refuted_by=decaying(0.5), upheld_by=decaying(2.5),
        ),
    ],
)  # fmt: skip
