"""Variants of the layer, and two ways to the same training."""

from typing import Any

import numpy as np
import xarray as xr

from lemmata.draw.curves import rows
from lemmata.draw.palette import BLUE, RED
from lemmata.draw.panels import Panel, panels
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, at_least, at_most, every_run, identity, made, ours, proof
from lemmata.measure.columns import chosen
from lemmata.scale import Scale, by_scale
from lemmata.studies.in_context_learning.figures.common import (
    LAYER,
    at_end,
    labels,
    scaled,
    seeds,
    small,
    template,
)
from lemmata.studies.in_context_learning.theory import in_domain
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all

VARIANTS: dict[str, dict[str, Any]] = {
    "one head": {},
    "two heads": {"heads": 2},
    "two patterns per class": {"data.per_class": 2},
    "logistic loss": {"descent.loss": "logistic"},
    "softmax over the query": {"attend_to_query": True},
    "noise on every input": {"data.extra_noise": 0.3},
}


def all_variants(scale: Scale) -> Sweep:
    changes = {"detailed": True, "test.kinds": (), "descent.logs": 11, "descent.steps": 600}
    names = tuple(VARIANTS) if scale != "smoke" else ("two heads", "two patterns per class")
    place = Axis("variant", names, lambda one, name: put_all(one, VARIANTS[name]))
    return Sweep(scaled(put_all(template(), changes), scale), (place,), seeds(scale, 3, 10))


def both_simulators(scale: Scale) -> Sweep:
    steps = by_scale(scale, 20, 100, 300)
    changes = {"precision": "float64", "descent.steps": steps, "descent.logs": 6, "test.kinds": ()}
    trial = put_all(small(template()), changes)
    return Sweep(trial, (axis("simulator", ("patterns", "tokens")),), seeds(scale, 3, 5))


@picture
def draw_variants(results: xr.Dataset) -> Drawn:
    """Attention and error of the variants."""
    figure, axes = canvas(2, height=2.8)
    rows(axes[0], results["head_mass"], "variant", BLUE)
    rows(axes[1], at_end(results, "error"), "variant", RED)
    panel(axes[0], "attention on contexts of the query's pattern, every head", xlim=(0, 1.03))
    panel(axes[1], "error on unseen tasks")
    axes[1].set_yticklabels([])
    return figure, "Dots: runs (and heads), bars: medians."


def apart(r: xr.Dataset, variable: str) -> xr.DataArray:
    """The distance between the two simulators."""
    return abs(chosen(r[variable], simulator="tokens") - chosen(r[variable], simulator="patterns"))


def disagreement(r: xr.Dataset) -> xr.DataArray:
    """The largest difference of the two simulators along the hinge loss, and in the lengths of neurons."""
    along, sizes = apart(r, "now_hinge_curve").max("step"), apart(r, "sizes").max("neuron")
    return xr.ufuncs.maximum(along, sizes).expand_dims(simulator=r["simulator"])


def two_simulators(difference: float):
    """A hinge loss that falls evenly, and lengths of 1; the simulator `tokens` is off by this much."""
    return made(
        noise=0.0,
        now_hinge_curve=lambda t, step: 1 - step / t.descent.steps + difference * (t.simulator == "tokens"),
        sizes=lambda t: 1 + difference / 2 * (t.simulator == "tokens"),
    )


CURVE: dict[str, Any] = {"style": "-", "centre": "median"}

variants = Figure(
    "variants", "Several heads, several patterns per class, logistic loss, softmax over the query, noise on inputs", LAYER,
    all_variants, draw_variants, labels=labels, upheld_by=made(head_mass=lambda t: 0.9, error=lambda t: 0.01),
    claims=[
        Claim(
            "heads", "Each of several heads attends to contexts of the query's pattern: with at least 0.75 of its attention",
            proof("Appendix E.2.2, (E.1)"),
            number=lambda r: r["head_mass"].min("head"),
            holds=every_run(at_least(0.75, because="what (E.55) leaves at alpha' = 0.8")), conditions=in_domain,
            refuted_by=made(head_mass=lambda t, head: np.where(head == 1, 0.4, 0.9)),
        ),
        Claim(
            "variants-learn", "Unseen tasks are still solved with several heads, several patterns per class, the logistic loss, a "
            "softmax over the query, or a noise of beta/10 in every input coordinate",
            ours("Appendices E.2.2 and E.2.3, Definition E.4.8"),
            number=lambda r: at_end(r, "error"), holds=every_run(at_most(0.02, because="one in fifty")), conditions=in_domain,
            refuted_by=made(error=lambda t: 0.05),
        ),
    ],
)  # fmt: skip

agreement = Figure(
    "agreement", "Two ways to the same training", "A small instance in float64.", both_simulators,
    panels(Panel(lambda r: r["now_hinge_curve"], "step", "step", "hinge loss on unseen tasks", arms="simulator", log="", **CURVE),
           Panel({"difference": lambda r: apart(r, "now_hinge_curve") + 1e-18}, "step", "step", "difference", log="y", **CURVE),
           caption="Weights that act on tokens, and on coordinates along patterns."),
    labels=labels,
    claims=[
        Claim(
            "sum-conserved", "W_K sum_j mu_j never changes", ours("README, the conserved sum"),
            number=lambda r: r["key_drift"], holds=identity(1e-10, because="rounding over the steps of a run"),
            refuted_by=made(key_drift=lambda t: 3e-10), upheld_by=made(key_drift=lambda t: 3e-11),
        ),
        Claim(
            "two-ways", "Training in the basis of patterns follows the training of the weights themselves", ours("README, two ways"),
            number=disagreement, holds=identity(1e-9, because="rounding over the steps of a run"),
            refuted_by=two_simulators(3e-9), upheld_by=two_simulators(3e-10),
        ),
    ],
)  # fmt: skip
