"""What the theorems ask for and promise, from bounds on the data alone: what `lemmata predict multihead` prints."""

from math import isfinite, log, sqrt

import equinox as eqx

from lemmata.errors import BadInput, require
from lemmata.measure.compare import Condition
from lemmata.studies.multihead.data import TokenMixture
from lemmata.studies.multihead.theory import bounds as general
from lemmata.studies.multihead.theory import conditions as asked
from lemmata.studies.multihead.theory import mixture as mixed
from lemmata.study import Prediction


class Forecast(eqx.Module):
    """A question to the theorems.

    `dim`, `tokens`, `radius` bound the data. The target has `distance` from the start, `head_norm` at its largest head
    (spread equally over the heads where 0), and training loss `target_loss`. `heads`, `step_size`, `steps`, `samples`
    are the run that is planned. `mixture`, `first_samples` and `delta` belong to the results on the token mixture.
    """

    dim: int = 2
    tokens: int = 2
    radius: float = 1.0
    distance: float = 1.2
    head_norm: float = 0.0
    target_loss: float = 0.2
    start_loss: float = log(2)
    heads: float = 1e9
    step_size: float = 1e-5
    steps: int = 10_000
    samples: int = 1000
    mixture: TokenMixture = TokenMixture(noise_law="ball", noise=0.01, relevant_fraction=0.4, dim=6)
    first_samples: float = 1e12
    delta: float = 0.05

    def __check_init__(self):
        given = {name: value for name, value in vars(self).items() if isinstance(value, int | float)}
        for name, value in given.items():
            require(isfinite(value), f"'{name}' must be a finite number, not {value}.")
        require(
            self.distance > 0, f"the target must be away from the start, not at distance {self.distance}."
        )
        require(self.head_norm >= 0, f"a norm cannot be negative, as {self.head_norm} is.")
        require(self.step_size > 0, f"the step size must be positive, not {self.step_size}.")
        require(
            self.heads >= 1 and self.heads == round(self.heads),
            f"the number of heads must be a whole number from 1 on, not {self.heads:g}.",
        )
        require(self.steps >= 1, f"a training needs at least one step, not {self.steps}.")
        require(self.samples >= 1, f"training needs at least one sample, not {self.samples}.")
        require(
            self.first_samples >= 1, f"the first phase needs at least one sample, not {self.first_samples:g}."
        )
        require(0 < self.delta < 1, f"delta must lie strictly between 0 and 1, not {self.delta}.")
        require(self.target_loss >= 0 and self.start_loss >= 0, "losses cannot be negative.")


def predict(question: Forecast) -> tuple[list[Condition], list[Prediction]]:
    """The conditions of the theorems at a planned run, with margins, and what they promise for it."""
    try:
        general_part, mixture_part = _in_general(question), _on_mixture(question)
    except OverflowError:
        raise BadInput(
            "the powers in the conditions leave the range of numbers: choose smaller ones."
        ) from None
    return general_part[0] + mixture_part[0], general_part[1] + mixture_part[1]


def _in_general(q: Forecast) -> tuple[list[Condition], list[Prediction]]:
    data = general.DataBounds(q.dim, q.tokens, q.radius)
    head_norm = q.head_norm or q.distance / sqrt(q.heads)
    target = general.Target(q.distance, head_norm, q.target_loss, q.start_loss)
    needed = {
        name: general.equal_heads_required(data, q.distance, constant)
        if q.head_norm == 0
        else general.required_heads(data, target, constant)
        for name, constant in (("1", general.TRAINING_HEADS), ("2", general.GENERALISATION_HEADS))
    }
    limits = general.step_limits(data, target, q.heads, q.steps)
    conditions = [
        *(asked.met(f"Theorem {name}: heads >= {n:.4g}", sqrt(q.heads / n)) for name, n in needed.items()),
        *(asked.met(f"Theorems 1, 2: step size <= {name}", x / q.step_size) for name, x in limits.items()),
    ]
    promised = {
        "heads that Theorem 1 asks for": needed["1"],
        "heads that Theorem 2 asks for": needed["2"],
        "largest step size allowed": min(limits.values()),
        "what limits the step size": general.binding(limits),
        "condition that binds": min(conditions, key=lambda c: c.margin).name,
        "if they are met: mean training loss at most": general.training_bound(target, q.step_size, q.steps),
        "if they are met: distance from the start at most": general.ball_radius(target),
        "if they are met: attention weights of a head move at most": general.attention_reach(target, q.heads),
        "if they are met: expected generalisation gap at most": general.gap_bound(
            target, q.step_size, q.steps, q.samples
        ),
    }
    return conditions, _said(promised)


def _on_mixture(q: Forecast) -> tuple[list[Condition], list[Prediction]]:
    bounds = mixed.forecast_bounds(q.mixture, q.samples, q.delta)
    residual = mixed.residual_bound(bounds, int(q.first_samples), q.delta)
    margin = mixed.ntk_margin(bounds, residual)
    needed = mixed.heads_for_margin(bounds, residual, margin, q.samples, q.delta)
    conditions = [
        *asked.corollary_conditions(bounds, residual, q.heads, q.step_size, q.steps, q.samples, q.delta),
        asked.noise_overlap(bounds),
        asked.met("margin order: S below its limit", mixed.ordering_limit(bounds) / bounds.signal),
    ]
    promised = {
        "mixture: token norm R": bounds.radius,
        "mixture: linear margin": mixed.linear_margin(bounds),
        "mixture: NTK margin bound, corrected": margin,
        "mixture: NTK margin bound, printed": mixed.printed_ntk_margin(bounds, residual),
        "mixture: saturated-attention margin": mixed.attention_margin(bounds),
        "mixture: heads for the NTK margin": needed if isfinite(needed) else "none: the bound is negative",
    }
    if margin <= 0:
        return conditions, _said(promised)
    start = mixed.good_start(bounds, residual, q.samples, q.delta)
    heads = general.good_start_required_heads(bounds.data, start, q.steps)
    limits = general.good_start_step_limits(bounds.data, start, max(heads, q.heads), q.steps)
    step, distance = min(limits.values()), start.distance(1 / q.steps)
    promised |= {
        "Corollary 2: heads asked for": heads,
        "Corollary 2: largest step size": step,
        "Corollary 2: what limits the step size": general.binding(limits),
        "Corollary 2: training loss at most": general.realizable_training_bound(distance, step, q.steps),
        "Corollary 2: gap at most": general.realizable_gap_bound(distance, step, q.samples),
    }
    return conditions, _said(promised)


def _said(promised: dict[str, float | str]) -> list[Prediction]:
    return [Prediction(name, value) for name, value in promised.items()]
