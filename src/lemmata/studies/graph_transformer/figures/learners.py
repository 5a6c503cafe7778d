"""Theorem 3.4.8 and Remark 2: learners with and without positions, and four ways of sampling nodes."""

from math import inf

import xarray as xr

from lemmata.draw.curves import DOTS, line, rows
from lemmata.draw.palette import BLACK, BLUE, GREEN, ORANGE, RED, colours
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Holds, Made, about, made, positive, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, needs
from lemmata.measure.trend import difference
from lemmata.scale import by_scale
from lemmata.studies.graph_transformer.figures.common import (
    ANY_DIFFERENCE,
    ANY_RATIO,
    LEARNERS,
    LIKE,
    STEPS,
    kinds,
    labels,
    losses,
    steps_needed,
    steps_ratio,
    success,
    swept,
    taking,
)
from lemmata.studies.graph_transformer.theory import convolution_conditions, transformer_conditions
from lemmata.sweep import axis

# Learners --------------------------------------------------------------------------------------------------------------

SLOWER = Holds("order", 1.0, inf, because=ANY_RATIO)


def taking_each(**steps: float) -> Made:
    """Steps of each learner, 100 by default: `near` and `core` are transformers without positions."""

    def needed(t) -> float:
        kind = t.sampler if t.network.kind == "no-position" else t.network.kind
        return steps.get(kind, 100)

    return taking(needed)


learners = Figure(
    "learners", "Transformer with and without positions, on the core, and convolution", LIKE,
    swept(
        {"descent.steps": 800, "descent.logs": 161},
        lambda s: (kinds("learner", LEARNERS), axis("data.labelled", by_scale(s, (16,), (32, 320), (16, 32, 64, 128, 400)))),
    ),
    losses("labelled", "{} labels".format, shared=True), labels=labels,
    claims=[
        Claim(
            "positions-as-core", "With positions on a wide neighbourhood the transformer takes as many steps as without them "
            "on the core neighbourhood, up to a factor of three", theorem("Theorem 3.4.8"), headline=True,
            number=lambda r: steps_ratio(r, "learner", "transformer", "transformer, core"),
            holds=about(1.0, 1 / 3, 3.0, because="a factor of three either way for the hidden constant"),
            conditions=transformer_conditions,
            refuted_by=taking_each(core=20), upheld_by=taking_each(core=46),
        ),
        Claim(
            "positions-help", "Without positions the transformer takes more steps", theorem("Theorem 3.4.8, Section 3.4.5"),
            number=lambda r: steps_ratio(r, "learner", "without positions", "transformer"),
            holds=SLOWER, conditions=transformer_conditions,
            refuted_by=taking_each(near=50), upheld_by=taking_each(near=200),
        ),
        Claim(
            "convolution-slower", "A convolution on the core neighbourhood takes more steps than the transformer on "
            "the wide one", theorem("Theorems 3.4.4 and 3.4.6"),
            number=lambda r: steps_ratio(r, "learner", "convolution, core", "transformer"),
            holds=SLOWER, conditions=convolution_conditions,
            refuted_by=taking_each(gcn=50), upheld_by=taking_each(gcn=200),
        ),
    ],
)  # fmt: skip

# Samplers --------------------------------------------------------------------------------------------------------------

SAMPLERS = ("graph", "near", "core", "relevant")
COUNTS = ((16,), (16, 64, 160, 320), (16, 32, 64, 128, 256, 400))


def lead(values: xr.DataArray) -> Estimate:
    """A quantity with over-sampled class-relevant nodes less that with plain sets, averaged over all label counts."""
    each = values.mean("labelled")
    return difference(chosen(each, sampler="relevant"), chosen(each, sampler="near"))


def fewer_errors(r: xr.Dataset) -> Estimate:
    """The lead of the share of misclassified test nodes."""
    error = chosen(r.test_error, sampler=["relevant", "near"])
    needs(float(error.max()) > 0, "no run misclassifies a node, so no sampler can be seen to err less.")
    return lead(error)


def more_success(r: xr.Dataset) -> Estimate:
    """The lead of the share of runs that succeed."""
    rate = chosen(success(r), sampler=["relevant", "near"])
    needs(0 < float(rate.mean()) < 1, "all runs end alike, so no sampler can be seen to succeed more often.")
    return lead(rate)


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, panels = canvas(3, width=4.2)
    counts, names = results.labelled.values, results.sampler.values.tolist()
    for name, colour in zip(names, colours(names), strict=True):
        curve = results.test_hinge_curve.isel(labelled=-1).sel(sampler=name)
        line(panels[0], curve, "step", colour, name, "--" if name == "near" else "-")
    for i, count in enumerate(counts):
        colour, shift = (BLUE, RED, GREEN, ORANGE, BLACK)[i % 5], 0.15 * (i - (len(counts) - 1) / 2)
        steps, confusion = (
            one.sel(labelled=count) for one in (steps_needed(results), results.sampled_confusion)
        )
        rows(panels[1], steps, "sampler", colour, f"{count} labels", shift)
        rows(panels[2], confusion, "sampler", colour, None, shift)
    panel(panels[0], "step", "test hinge loss", f"{counts[-1]} labels")
    panel(panels[1], STEPS)
    panel(panels[2], "confusion ratio of sampled nodes at the core distance")
    return figure, f"Where no steps are shown no run got there. {DOTS}"


FASTER = Holds("order", -inf, 1.0, because=ANY_RATIO)

samplers = Figure(
    "samplers", "Four ways of sampling nodes", f"{LIKE} eps_S = 0.3.",
    swept(
        {"data.confusion": 0.3, "descent.steps": 1200, "descent.logs": 241},
        lambda s: (
            axis("sampler", by_scale(s, SAMPLERS[1::2], SAMPLERS, SAMPLERS)), axis("data.labelled", by_scale(s, *COUNTS)),
        ),
    ),
    draw, labels=labels,
    claims=[
        Claim(
            "sampling-steps", "Sampling more class-relevant nodes of the core neighbourhood takes fewer steps",
            theorem("Remark 2"),
            number=lambda r: steps_ratio(r, "sampler", "relevant", "near"), holds=FASTER, conditions=transformer_conditions,
            refuted_by=taking(lambda t: 200 if t.sampler == "relevant" else 100),
            upheld_by=taking(lambda t: 50 if t.sampler == "relevant" else 100),
        ),
        Claim(
            "sampling-labels", "With the same labels, sampling more class-relevant nodes of the core neighbourhood succeeds "
            "more often", theorem("Remark 2"),
            number=more_success, holds=positive(because=ANY_DIFFERENCE), conditions=transformer_conditions,
            refuted_by=made(test_hinge=lambda t: 0.1 * (t.sampler == "relevant" and t.data.labelled < 100)),
            upheld_by=made(test_hinge=lambda t: 0.1 * (t.sampler == "near" and t.data.labelled < 100)),
        ),
        Claim(
            "sampling-errors", "With the same labels, sampling more class-relevant nodes of the core neighbourhood "
            "misclassifies fewer test nodes", theorem("Remark 2"),
            number=fewer_errors, holds=Holds("order", -inf, 0.0, because=ANY_DIFFERENCE), conditions=transformer_conditions,
            refuted_by=made(test_error=lambda t: 0.3 if t.sampler == "relevant" else 0.1),
            upheld_by=made(test_error=lambda t: 0.1 if t.sampler == "relevant" else 0.3),
        ),
        Claim(
            "sampling-core", "Sampling from the core neighbourhood alone, where more nodes are class-relevant, takes fewer "
            "steps", theorem("Remark 2"),
            number=lambda r: steps_ratio(r, "sampler", "core", "near"), holds=FASTER, conditions=transformer_conditions,
            refuted_by=taking(lambda t: 200 if t.sampler == "core" else 100),
            upheld_by=taking(lambda t: 50 if t.sampler == "core" else 100),
        ),
    ],
)  # fmt: skip
