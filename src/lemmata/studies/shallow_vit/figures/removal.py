"""Figures 5 and 8: tokens removed at random, by irrelevance and by noise."""

from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import xarray as xr
from matplotlib.axes import Axes

from lemmata.draw.curves import DOTS, lines
from lemmata.draw.palette import BLACK, BLUE, RED
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import (
    Claim,
    Figure,
    Holds,
    at_least,
    experiment,
    made,
    theorem,
)
from lemmata.measure.columns import chosen
from lemmata.measure.estimate import Estimate, answering, needs
from lemmata.measure.simple import bootstrap
from lemmata.measure.trend import arms, difference, largest, ratio
from lemmata.results import settings
from lemmata.scale import Scale, by_scale
from lemmata.studies.shallow_vit.figures.common import (
    HINGE,
    OPEN,
    STEPS,
    VOTES,
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

ARMS = {"random": RED, "irrelevant": BLUE, "noisy": BLACK}
PROXY = (
    "the number of kept tokens is fixed and 40 % of the tokens have noise of scale 0.8, which the paper does not describe; "
    "quick scale: 300 neurons for 1000"
)


# What is run -----------------------------------------------------------------------------------------------------------


def remove(trial: ViTTraining, share: float) -> Mapping[str, Any]:
    """Remove a share of the pool so that the number of kept tokens stays: the pool grows.

    With per-token output weights the scale of the output goes with the number of kept tokens, so that arms with different
    numbers could not be compared.
    """
    kept = trial.data.tokens
    pool = round(kept / (1 - share))
    return {"data.tokens": pool, "data.removed_fraction": (pool - kept) / pool}


def removed_tokens(scale: Scale) -> Sweep:
    return Sweep(_trial(scale), _axes(scale), seeds(scale, 12), keep=_once(scale))


def many_patterns(scale: Scale) -> Sweep:
    counts = by_scale(scale, (10, 20), (10, 20), (10, 15, 20))
    return Sweep(
        _trial(scale, data__dim=20),
        (axis("data.patterns", counts), *_axes(scale)),
        seeds(scale, 10),
        keep=_once(scale),
    )


def _trial(scale: Scale, **changes: Any) -> ViTTraining:
    uneven = {"data__noisy_fraction": 0.4, "data__noisy_std": 0.8, "network__key_query_error": 0.5}
    return base(scale, (0.6, few(scale, 0.05)), (8, 80, 80), 1500, **uneven, **changes)


def _axes(scale: Scale) -> tuple[Axis, Axis]:
    shares = by_scale(scale, (0.0, 0.2), (0.0, 0.4), (0.0, 0.1, 0.2, 0.3, 0.4))
    return axis("data.removal", ("random", "irrelevant", "noisy")), Axis("removed", shares, moving(remove))


def _once(scale: Scale) -> Callable[[Mapping[str, Any]], bool]:
    """Without removal the arms are the same runs, which smaller scales take only once."""
    return lambda at: scale == "paper" or at["removed"] > 0 or at["removal"] == "random"


# What is measured ------------------------------------------------------------------------------------------------------


@answering(Estimate.absent)
def random_change(r: xr.Dataset) -> Estimate:
    """Change of the test loss by the largest random removal, relative to the mean loss without removal."""
    loss = chosen(r.test_loss, removal="random")
    start = float(loss.isel(removed=0).mean())
    needs(start > 0, "the loss without removal is zero.")
    return difference(loss.isel(removed=-1), loss.isel(removed=0)).map(lambda v: v / start)


def pair(values: xr.DataArray, arm: str) -> xr.DataArray:
    """The runs with the most tokens removed of a kind, and those without removal (`of` 0 and 1)."""
    most = chosen(values, removal=arm).isel(removed=-1, drop=True).drop_vars("removal")
    none = chosen(values, removal="random").isel(removed=0, drop=True).drop_vars("removal")
    return xr.concat([most, none], "of")


def mean_ratio(values: xr.DataArray, level: float = 0.95) -> Estimate:
    return bootstrap(
        lambda v: float(v.isel(of=0).mean() / max(float(v.isel(of=1).mean()), 1e-12)), values, level
    )


@answering(Estimate.absent)
def loss_over_none(r: xr.Dataset, arm: str) -> Estimate:
    """Mean test loss with the most tokens removed of a kind, over that without removal."""
    both = pair(r.test_loss, arm)
    needs(float(both.isel(of=1).mean()) > 0, "the loss without removal is zero.")
    return mean_ratio(both)


@answering(Estimate.absent)
def worst_loss_over_none(r: xr.Dataset) -> Estimate:
    """The largest of these ratios over numbers of patterns and both arms."""
    pairs = [
        pair(one, removal) for one in arms(r.test_loss, "patterns") for removal in ("irrelevant", "noisy")
    ]
    return largest(pairs, mean_ratio)


def steps_over_none(r: xr.Dataset, arm: str) -> Estimate:
    """Steps with the most tokens removed of a kind, over those without removal."""
    both = pair(r.steps.astype(float), arm)
    return ratio(both.isel(of=0), both.isel(of=1))


# How it looks ----------------------------------------------------------------------------------------------------------


@picture
def draw(results: xr.Dataset) -> Drawn:
    figure, axes = canvas(2)
    _arms(axes[0], results["test_loss"], HINGE)
    _arms(axes[1], results["steps"], STEPS)
    shared_key(figure, axes)
    return figure, f"Tokens removed from training and test samples; the number kept is fixed. {DOTS}"


@picture
def draw_patterns(results: xr.Dataset) -> Drawn:
    counts = results["patterns"].values
    figure, axes = canvas(len(counts), width=4.0, squeeze=False, sharey=True)
    for one, count in zip(axes[0], counts, strict=True):
        _arms(one, results["test_loss"].sel(patterns=count), HINGE, f"$M = {count}$")
    shared_key(figure, axes)
    return figure, f"Tokens removed with more patterns, $d = {settings(results)['data.dim']}$. {DOTS}"


def _arms(axes: Axes, values: xr.DataArray, label: str, title: str = "") -> None:
    # Without removal the arms are the same runs, which smaller scales take only once.
    values = values.fillna(values.sel(removal="random").where(values["removed"] == 0))
    shades = [ARMS[str(kind)] for kind in values["removal"].values]
    lines(axes, values, "removed", "removal", "{} tokens removed", shades, style="o-")
    panel(axes, "share of the pool removed", label, title, keyed=False)


# What it can refute ----------------------------------------------------------------------------------------------------


def arm(record: str, law_of: Callable[[str], float]):
    """A record of `law_of(kind)` if tokens of a kind are removed, and of `law_of("")` without removal."""
    return made({record: lambda t: law_of(t.data.removal if t.data.removed_fraction > 0 else "")}, noise=0.1)


def helps(
    id: str,
    statement: str,
    where: str,
    kind: str,
    holds: Holds,
    refuted: float,
    upheld: float,
    headline: bool = False,
) -> Claim:
    """A kind of removal lowers the test loss below that without removal. `refuted`, `upheld`: made ratios of the two."""
    return Claim(
        id, statement, experiment(where, PROXY), number=lambda r: loss_over_none(r, kind), holds=holds,
        conditions=conditions, uses=("capped",), headline=headline,
        refuted_by=arm("test_loss", lambda removal: 0.02 * refuted if removal == kind else 0.02),
        upheld_by=arm("test_loss", lambda removal: 0.02 * upheld if removal == kind else 0.02),
    )  # fmt: skip


def faster(id: str, statement: str, kind: str, because: str) -> Claim:
    """A kind of removal saves steps, compared with no removal."""
    return Claim(
        id, statement, theorem("Remark 2"), number=lambda r: steps_over_none(r, kind),
        holds=Holds("order", -inf, 0.9, because), conditions=conditions,
        refuted_by=arm("steps", lambda removal: 150.0 if removal == kind else 100.0),
        upheld_by=arm("steps", lambda removal: 60.0 if removal == kind else 100.0),
    )  # fmt: skip


tokens = Figure(
    "fig5", "Test loss when tokens are removed at random, by irrelevance, by noise",
    "|S| = 50 is taken as the number of tokens kept: the pool grows with the share removed. Noise is uneven: 40 % of the "
    "tokens have scale 0.8 (data.noisy_fraction, data.noisy_std). The paper needs uneven noise and does not describe it. "
    f"Training and test data are both sparsified. delta = 0.5. {OPEN}",
    removed_tokens, draw, labels=labels, derived=derived, readings=VOTES,
    claims=[
        Claim(
            "random-removal", "Removing tokens at random does not lower the test loss by more than half",
            experiment("Figure 5", PROXY),
            number=random_change, holds=at_least(-0.5, because="a fall of the loss by more than half would be called help"),
            conditions=conditions, uses=("capped",),
            refuted_by=arm("test_loss", lambda removal: 0.02 if removal else 0.1),
            upheld_by=arm("test_loss", lambda removal: 0.07 if removal else 0.1),
        ),
        helps("irrelevant-removal", "Removing label-irrelevant tokens lowers the test loss, compared with no removal",
              "Figure 5, Remark 2", "irrelevant", Holds("order", -inf, 0.7, "0.7 is a difference that a picture shows"),
              1.0, 0.5, headline=True),
        helps("noisy-removal", "Removing noisy tokens lowers the test loss, compared with no removal",
              "Figure 5, Remark 2", "noisy",
              Holds("order", -inf, 0.3, "the noise is large, so that more is asked of its removal"),
              0.6, 0.2),
        faster("irrelevant-removal-steps", "Removing label-irrelevant tokens saves steps, compared with no removal",
               "irrelevant", "a tenth is what a user would notice"),
        faster("noisy-removal-steps", "Removing noisy tokens saves steps, compared with no removal", "noisy",
               "a tenth, as for irrelevant tokens"),
    ],
)  # fmt: skip

tokens_by_patterns = Figure(
    "fig8", "Token removal with 10, 15 and 20 patterns",
    f"Figure 5 with d = m_a = m_b = 20 and M = 10, 15, 20 (quick scale: 10, 20). {OPEN}",
    many_patterns, draw_patterns, labels=labels, derived=derived,
    claims=[
        Claim(
            "removal-many-patterns", "Removing irrelevant or noisy tokens lowers the test loss with 10, 15 and 20 patterns",
            experiment("Figure 8", PROXY),
            number=worst_loss_over_none, holds=Holds("order", -inf, 0.7, "the worst of all arms and numbers of patterns"),
            conditions=conditions, uses=("capped",),
            refuted_by=arm("test_loss", lambda removal: 0.02),
            upheld_by=arm("test_loss", lambda removal: 0.01 if removal in ("irrelevant", "noisy") else 0.02),
        ),
    ],
)  # fmt: skip
