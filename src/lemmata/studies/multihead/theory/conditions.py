"""The theorems' own conditions at a trial, as ratios of what it has to what they ask for: claims have them looked at in every
cell that their number comes from."""

from math import isfinite, sqrt
from typing import Any

import numpy as np

from lemmata.measure.compare import Condition
from lemmata.studies.multihead.data import PlantedAttention, TokenMixture
from lemmata.studies.multihead.theory import bounds as general
from lemmata.studies.multihead.theory import mixture as mixed

DELTA = 0.05
"""The failure probability at which statements that hold with high probability are looked at."""


def met(name: str, margin: float) -> Condition:
    return Condition(name, bool(margin >= 1 - 1e-9), float(margin))


def flag(name: str, holds: bool) -> Condition:
    return Condition(name, holds, np.inf if holds else 0.0)


# General data ----------------------------------------------------------------------------------------------------------


def token_conditions(trial: Any) -> list[Condition]:
    """Assumption 1: tokens have an almost sure bound. Gaussian ones have none; the largest that was drawn takes its place."""
    data = trial.data
    gaussian = isinstance(data, PlantedAttention) or (
        isinstance(data, TokenMixture) and data.noise_law == "gaussian"
    )
    return [flag("Assumption 1: tokens bounded almost surely", not gaussian)]


def theorem_1_conditions(trial: Any) -> list[Condition]:
    """How far a training is from the heads that Theorem 1 asks for at a target one away."""
    need = general.equal_heads_required(token_bounds(trial.data), 1.0)
    heads = met("Theorem 1: heads for a target at distance 1", sqrt(trial.network.heads / need))
    return [*token_conditions(trial), heads]


def theorem_2_conditions(trial: Any) -> list[Condition]:
    """Every condition of Theorems 1 and 2 at a training that was made to meet them."""
    bounds, target, heads = trial.bounds, trial.target, trial.heads
    need = general.required_root_heads(
        bounds, target.distance, target.head_norm, general.GENERALISATION_HEADS
    )
    limits = general.step_limits(bounds, target, heads, trial.steps)
    return [
        met("Theorem 2: heads", sqrt(heads) / need),
        *(met(f"step size below {name}", limit / trial.step_size) for name, limit in limits.items()),
    ]


def token_bounds(data: Any) -> general.DataBounds:
    """The bounds of a data model: almost sure, or for Gaussian tokens with probability `1 - DELTA` over the training set."""
    if isinstance(data, TokenMixture):
        return mixed.forecast_bounds(data, data.samples, DELTA).data
    if isinstance(data, PlantedAttention):
        return general.DataBounds(data.dim, data.tokens, general.gaussian_radius(data, DELTA))
    return general.DataBounds(data.dim, data.tokens, data.radius)


# The token mixture -----------------------------------------------------------------------------------------------------


def noise_conditions(trial: Any) -> list[Condition]:
    """Assumption 3: noise has almost sure bounds."""
    return [flag("Assumption 3: noise bounded almost surely", trial.data.noise_bounds() is not None)]


def separability_conditions(trial: Any) -> list[Condition]:
    """Prop. 2 (P3): the bound on the NTK margin is positive, and there are heads enough."""
    bounds, residual = _first_phase(trial)
    return [*noise_conditions(trial), *margin_conditions(bounds, residual, trial.heads, trial.data.samples)]


def corollary_2_conditions(trial: Any) -> list[Condition]:
    """Cor. 2/5 at a training on the mixture: a start after the first phase, positive margin, heads, step."""
    bounds, residual = _first_phase(trial)
    rate = trial.descent.learning_rate * trial.network.heads**trial.growth
    return [
        flag("Cor. 2: a good start (after the first phase)", trial.network.start in ("signs", "interval")),
        *noise_conditions(trial),
        *corollary_conditions(
            bounds, residual, trial.network.heads, rate, trial.descent.steps, trial.data.samples
        ),
    ]


def gain_conditions(trial: Any) -> list[Condition]:
    """Prop. 2 at a training after the first phase: what makes the NTK margin exceed the linear one."""
    bounds, residual = _first_phase(trial)
    gain = mixed.attention_share(bounds, 0.0)
    return [
        *noise_conditions(trial),
        met("attention's share pays for the residual", _shares(gain, bounds, residual)),
    ]


def good_start_conditions(trial: Any) -> list[Condition]:
    """Theorems 1 and 2 after the first phase, and Assumption 3."""
    return [*noise_conditions(trial), *theorem_2_conditions(trial)]


def realizability_conditions(trial: Any) -> list[Condition]:
    """Prop. 7: a target's loss of at most 1, bounded noise. Its condition on the heads is what the claim asks about."""
    return [*noise_conditions(trial), met("Prop. 7: loss of the target at most 1", 1 / trial.loss)]


def order_conditions(trial: Any) -> list[Condition]:
    """Assumption 3, and the signal below the limit up to which the formulas are in order (ours: the paper has none)."""
    bounds = mixed.forecast_bounds(trial.data, trial.data.samples, DELTA)
    return [
        *noise_conditions(trial),
        met("signal below the order's limit", mixed.ordering_limit(bounds) / bounds.signal),
    ]


def saturation_conditions(trial: Any) -> list[Condition]:
    """Prop. 3: noise overlaps of at most `S^2/8`."""
    bounds = mixed.forecast_bounds(trial.data, trial.data.samples, DELTA)
    return [*noise_conditions(trial), noise_overlap(bounds)]


def noise_overlap(bounds: mixed.MixtureBounds) -> Condition:
    return met("Prop. 3: noise overlaps <= S^2/8", general.over(bounds.signal**2 / 8, bounds.noise.largest))


def margin_conditions(
    bounds: mixed.MixtureBounds, residual: float, heads: float, samples: int, delta: float = DELTA
) -> list[Condition]:
    margin = mixed.ntk_margin(bounds, residual)
    needed = mixed.heads_for_margin(bounds, residual, margin, samples, delta)
    return [
        met("Prop. 2: positive NTK margin", _positive(margin, margin - mixed.ntk_margin(bounds, 0.0))),
        met("Prop. 2 (P3): heads", sqrt(heads / needed) if isfinite(needed) else 0.0),
    ]


def corollary_conditions(
    bounds: mixed.MixtureBounds,
    residual: float,
    heads: float,
    step: float,
    steps: int,
    samples: int,
    delta: float = DELTA,
) -> list[Condition]:
    """The conditions of Cor. 2/5 at a planned run on the mixture; unmet entirely where the margin's bound is not positive."""
    conditions = margin_conditions(bounds, residual, heads, samples, delta)
    names = "Cor. 2: heads", "Cor. 2: step size"
    if mixed.ntk_margin(bounds, residual) <= 0:
        return [*conditions, *(met(name, 0.0) for name in names)]
    start = mixed.good_start(bounds, residual, samples, delta)
    needed = general.good_start_required_heads(bounds.data, start, steps)
    limit = min(general.good_start_step_limits(bounds.data, start, max(heads, needed), steps).values())
    margins = sqrt(heads / needed), limit / step
    return [*conditions, *(met(name, margin) for name, margin in zip(names, margins, strict=True))]


def _first_phase(trial: Any) -> tuple[mixed.MixtureBounds, float]:
    """The constants of a trial's mixture, and the bound on the first phase's residual with its open constant at 1."""
    bounds = mixed.forecast_bounds(trial.data, trial.data.samples, DELTA)
    return bounds, mixed.residual_bound(bounds, trial.first_samples, DELTA)


def _shares(gain: float, bounds: mixed.MixtureBounds, residual: float) -> float:
    cost = gain - mixed.attention_share(bounds, residual)
    return max(gain, 0.0) / cost if cost > 0 else np.inf


def _positive(margin: float, loss: float) -> float:
    """How far a margin is from zero, as the ratio of what it has to what the residual takes."""
    return max(margin - loss, 0.0) / -loss if loss < 0 else (np.inf if margin > 0 else 0.0)
