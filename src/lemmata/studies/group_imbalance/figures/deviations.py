"""How far moments and derivatives of n samples, and the tensor initialisation, are from the population's, against n."""

import xarray as xr

from lemmata.draw.curves import line, slope
from lemmata.draw.palette import BLUE, CYCLE, GREEN, RED
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Source, at_most, made, ours, proof
from lemmata.measure.exponent import exponent
from lemmata.scale import Scale, by_scale
from lemmata.studies.group_imbalance.figures.common import HALF, labels, seeds, tens
from lemmata.studies.group_imbalance.figures.initialisation import easy
from lemmata.studies.group_imbalance.theory import conditions
from lemmata.studies.group_imbalance.trials import Deviations
from lemmata.sweep import Sweep, axis


def sweep(scale: Scale) -> Sweep:
    samples = by_scale(scale, (4000, 16_000), (25_000, 50_000, 100_000, 200_000), tens(25_000, 1_600_000, 7))
    trial = Deviations(population=easy(1000))
    return Sweep(trial, (axis("population.samples", samples),), seeds(scale, 3, 24, 80))


@picture
def draw(results: xr.Dataset) -> Drawn:
    """Lemmas C.4.5, C.5.1, C.6.1 to C.6.4 and C.3.3 against n."""
    figure, (left, right) = canvas(2)
    whats = ("hessian", "gradient", "first", "second", "third")
    names = ("Hessian", "gradient", r"$Q_1$", r"$Q_2$", r"$R_3$")
    for colour, what, name in zip(CYCLE, whats, names, strict=False):
        seen = line(left, results[f"{what}_off"], "samples", colour, name, "o-", spread="none")
    slope(left, seen, -0.5, r"$n^{-1/2}$")
    panel(left, "samples n", "distance from the population's", log="xy", ticks=results.samples.values)
    line(right, results.literal_off, "samples", RED, r"$W_0$, magnitudes as printed", "o-")
    line(right, results.inverted_off, "samples", GREEN, r"$W_0$, magnitudes inverted", "o-")
    seen = line(right, results.subspace_off, "samples", BLUE, "subspace", "o-")
    slope(right, seen, -0.5, r"$n^{-1/2}$")
    panel(right, "samples n", "relative error", log="xy", ticks=results.samples.values)
    return figure, "Moments, derivatives and the tensor initialisation of n samples against the population's."


def shrinks(what: str, text: str, source: Source) -> Claim:
    """A distance from the population's falls at least as fast as n^-1/2: the lemmas bound it from above."""
    name = f"{what}_off"
    return Claim(
        f"deviation-{what}", f"{text} falls at least as fast as n^-1/2, up to a logarithm", source,
        number=lambda r: exponent(r[name], "samples"), holds=at_most(-0.4, value=-0.5, because=HALF), conditions=conditions,
        refuted_by=made({name: lambda t: t.population.samples**-0.2}),
        upheld_by=made({name: lambda t: t.population.samples**-0.5}),
    )  # fmt: skip


deviations = Figure(
    "deviations", "Moments and derivatives of samples against the population's", "At W*, on the instance of tensor-easy.",
    sweep, draw, labels=labels,
    claims=[
        shrinks("hessian", "At W* the distance |Hessian of f_n - Hessian of f|", proof("Lemma C.4.5")),
        shrinks("gradient", "At W* the size |gradient of f_n|", proof("Lemma C.5.1")),
        shrinks("first", "The error |Q_1 - its estimate|", proof("Lemma C.6.3")),
        shrinks("second", "The error |Q_2 - its estimate|", proof("Lemma C.6.1")),
        shrinks("third", "The error |R_3 - its estimate|", proof("Lemma C.6.2")),
        shrinks("subspace", "The error of the subspace that Subroutine 1 finds", proof("Lemmas C.6.1, C.6.4")),
        shrinks("inverted", "The error of the tensor initialisation with magnitudes inverted", ours("Lemma C.3.3, mended")),
        shrinks("literal", "The error of the tensor initialisation with magnitudes as printed", proof("Lemma C.3.3")),
    ],
)  # fmt: skip
