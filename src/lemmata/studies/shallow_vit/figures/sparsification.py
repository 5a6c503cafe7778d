"""What sparsification is for: a spurious background is removed, and the tokens that receive most attention are kept."""

from collections.abc import Mapping
from math import inf
from typing import Any

import xarray as xr

from lemmata.draw.curves import DOTS, law, line
from lemmata.draw.palette import BLACK, BLUE, GREY, RED
from lemmata.draw.panels import Panel, panels
from lemmata.draw.style import Drawn, canvas, panel, picture
from lemmata.figure import Claim, Figure, Holds, at_least, at_most, experiment, made, ours
from lemmata.measure.columns import chosen
from lemmata.measure.simple import mean
from lemmata.measure.trend import difference
from lemmata.scale import Scale, by_scale
from lemmata.studies.shallow_vit.figures.common import (
    HINGE,
    OPEN,
    alpha,
    base,
    derived,
    few,
    labels,
    moving,
    seeds,
)
from lemmata.studies.shallow_vit.theory import conditions
from lemmata.studies.shallow_vit.trials import ViTTraining
from lemmata.sweep import Axis, Sweep, axis


def remove_background(trial: ViTTraining, share: float) -> Mapping[str, Any]:
    """Remove a share of the background tokens of a fixed pool."""
    return {"data.removed_fraction": round(share * trial.data.rest, 12)}


def spurious_background(scale: Scale) -> Sweep:
    shares = by_scale(scale, (0.0, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0))
    background: dict[str, Any] = {"data__background": "spurious_zero", "data__removal": "background"}
    trial = base(scale, (0.3, 0.1), (8, 40, 80), 1500, **background)
    return Sweep(trial, (Axis("removed", shares, moving(remove_background)),), seeds(scale, 20))


def pruned_tokens(scale: Scale) -> Sweep:
    relevant = by_scale(scale, (0.5,), (0.3, 0.4, 0.5), (0.2, 0.3, 0.4, 0.5))
    trial = base(scale, (0.5, few(scale, 0.06)), (8, 100, 200), probes="pruning")
    return Sweep(trial, (axis("data.relevant_fraction", relevant),), seeds(scale, 16))


def half_relevant(r: xr.Dataset) -> xr.DataArray:
    """alpha_* = 1/2, as in Figure 4."""
    return r.relevant_fraction == 0.5


@picture
def draw_pruned(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    x, over = results["relevant_fraction"], "relevant_fraction"
    line(axes[0], results["test_pruned_precision"], over, BLUE, "relevant tokens among those kept", "o-")
    law(axes[0], x, x, "tokens kept at random", GREY, ":")
    line(axes[1], results["test_error"], over, BLACK, "all tokens", "o-")
    line(axes[1], results["test_pruned_error"], over, RED, "most attended tokens only", "o-")
    panel(axes[0], "relevant fraction $\\alpha_*$", "precision", ylim=(0, 1.02))
    top = max(0.05, axes[1].get_ylim()[1])
    panel(axes[1], "relevant fraction $\\alpha_*$", "test error", ylim=(-0.005, top))
    return figure, f"Keep as many tokens as are relevant, by received attention. {DOTS}"


background = Figure(
    "spurious", "A background that tells the label only in training, and its removal",
    "mu_3 fills the background with probability 0.9 if y = 1 and 0.1 if y = -1, at test with probability 0.5; otherwise the "
    f"background is empty (data.background=spurious_fourth: mu_4). The pool stays fixed and tokens are removed. {OPEN}",
    spurious_background,
    panels(Panel({HINGE: lambda r: r.test_loss, "test error": lambda r: r.test_error}, "removed",
                 "share of the background tokens removed", "test error, test loss", log="", centre="median"),
           caption="The background tells the label in training and not in the test."),
    labels=labels, derived=derived,
    claims=[
        Claim(
            "background-removal", "Removing a background that tells the label only in training lowers the test error",
            experiment("Figure 6(c)", "synthetic background tokens and one layer for images and a deep transformer"),
            number=lambda r: difference(r.test_error.isel(removed=0), r.test_error.isel(removed=-1)),
            holds=Holds("order", 0.01, inf, "a fall of the test error by less than one in a hundred is not seen"),
            uses=("capped",),
            refuted_by=made(test_error=lambda t: 0.1 - 0.005 * (t.data.removed_fraction > 0)),
            upheld_by=made(test_error=lambda t: 0.1 - 0.03 * (t.data.removed_fraction > 0)),
        ),
    ],
)  # fmt: skip

pruning = Figure(
    "pruning", "Keep only the tokens that receive most attention",
    f"After training, as many tokens are kept as are relevant: those with the largest column sum of attention. {OPEN}",
    pruned_tokens, draw_pruned, labels=labels, derived=derived,
    claims=[
        Claim(
            "pruning-precision", "The tokens that receive most attention are the relevant ones",
            ours("a consequence of Proposition 2"),
            number=lambda r: mean(chosen(r.test_pruned_precision, relevant_fraction=0.5)),
            holds=at_least(0.9, because="nine of ten kept tokens relevant"), cells=half_relevant, conditions=conditions,
            refuted_by=made(test_pruned_precision=alpha), upheld_by=made(test_pruned_precision=lambda t: 0.95),
        ),
        Claim(
            "pruning-error", "Keeping only the tokens that receive most attention does not raise the test error",
            ours("a consequence of Proposition 2"),
            number=lambda r: difference(
                *(chosen(error, relevant_fraction=0.5) for error in (r.test_pruned_error, r.test_error))
            ),
            holds=at_most(0.01, because="one more error in a hundred"), cells=half_relevant, conditions=conditions,
            refuted_by=made(test_error=lambda t: 0.0, test_pruned_error=lambda t: 0.03),
            upheld_by=made(test_error=lambda t: 0.0, test_pruned_error=lambda t: 0.006),
        ),
    ],
)  # fmt: skip
