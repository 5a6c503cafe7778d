"""What the theorems ask for and promise, from bounds on the data alone: what `lemmata predict multihead` prints."""

from math import inf, isfinite, log, sqrt

import equinox as eqx

from lemmata.errors import BadInput, require
from lemmata.measure.compare import Condition
from lemmata.studies.multihead import mixture_theory, theory
from lemmata.studies.multihead.data import NoiseBounds, TokenMixture
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
        general, promised = _general(question)
        mixture, on_mixture = _on_mixture(question)
    except OverflowError:
        raise BadInput(
            "the powers in the conditions leave the range of numbers: choose smaller ones."
        ) from None
    return general + mixture, promised + on_mixture


def _general(q: Forecast) -> tuple[list[Condition], list[Prediction]]:
    data = theory.DataBounds(q.dim, q.tokens, q.radius)
    head_norm = q.head_norm or q.distance / sqrt(q.heads)
    target = theory.Target(q.distance, head_norm, q.target_loss, q.start_loss)
    needed = {
        name: theory.equal_heads_required(data, q.distance, constant)
        if q.head_norm == 0
        else theory.required_heads(data, target, constant)
        for name, constant in (("1", theory.TRAINING_HEADS), ("2", theory.GENERALISATION_HEADS))
    }
    limits = theory.step_limits(data, target, q.heads, q.steps)
    step = min(limits.values())
    conditions = [
        *(_condition(f"Theorem {name}: heads >= {n:.4g}", sqrt(q.heads / n)) for name, n in needed.items()),
        *(
            _condition(f"Theorems 1, 2: step size <= {name}", limit / q.step_size)
            for name, limit in limits.items()
        ),
    ]
    worst = min(conditions, key=lambda c: c.margin)
    return conditions, [
        Prediction("heads that Theorem 1 asks for", needed["1"]),
        Prediction("heads that Theorem 2 asks for", needed["2"]),
        Prediction("largest step size allowed", step),
        Prediction("what limits the step size", theory.binding(limits)),
        Prediction("condition that binds", worst.name),
        Prediction(
            "if they are met: mean training loss at most",
            theory.training_bound(target, q.step_size, q.steps),
        ),
        Prediction("if they are met: distance from the start at most", theory.ball_radius(target)),
        Prediction(
            "if they are met: expected generalisation gap at most",
            theory.gap_bound(target, q.step_size, q.steps, q.samples),
        ),
    ]


def _on_mixture(q: Forecast) -> tuple[list[Condition], list[Prediction]]:
    bounds = forecast_bounds(q.mixture, q.samples, q.delta)
    residual = mixture_theory.residual_bound(bounds, int(q.first_samples), q.delta)
    margin = mixture_theory.ntk_margin(bounds, residual)
    free = mixture_theory.ntk_margin(bounds, 0.0)
    attention = mixture_theory.attention_margin(bounds)
    needed = mixture_theory.heads_for_margin(bounds, residual, margin, q.samples, q.delta)
    limit = mixture_theory.ordering_limit(bounds)
    conditions = [
        _condition("Prop. 2: positive NTK margin", _positive(margin, margin - free)),
        _condition("Prop. 2 (P3): heads", 0.0 if not isfinite(needed) else sqrt(q.heads / needed)),
        _condition("Prop. 3: noise overlaps <= S^2/8", _over(bounds.signal**2 / 8, bounds.noise.largest)),
        _condition("margin order: S below its limit", limit / bounds.signal),
    ]
    promised = [
        Prediction("mixture: token norm R", bounds.radius),
        Prediction("mixture: linear margin", mixture_theory.linear_margin(bounds)),
        Prediction("mixture: NTK margin bound, corrected", margin),
        Prediction("mixture: NTK margin bound, printed", mixture_theory.printed_ntk_margin(bounds, residual)),
        Prediction("mixture: saturated-attention margin", attention),
        Prediction(
            "mixture: heads for the NTK margin", needed if isfinite(needed) else "none: the bound is negative"
        ),
    ]
    if margin <= 0:
        return conditions, promised
    start = mixture_theory.good_start(bounds, residual, q.samples, q.delta)
    heads = theory.good_start_required_heads(bounds.data, start, q.steps)
    limits = theory.good_start_step_limits(bounds.data, start, max(heads, q.heads), q.steps)
    step = min(limits.values())
    conditions.append(_condition(f"Corollary 2: heads >= {heads:.4g}", sqrt(q.heads / heads)))
    conditions.append(_condition(f"Corollary 2: step size <= {step:.4g}", step / q.step_size))
    distance = start.distance(1 / q.steps)
    return conditions, [
        *promised,
        Prediction("Corollary 2: heads asked for", heads),
        Prediction("Corollary 2: largest step size", step),
        Prediction("Corollary 2: what limits the step size", theory.binding(limits)),
        Prediction(
            "Corollary 2: training loss at most", theory.realizable_training_bound(distance, step, q.steps)
        ),
        Prediction("Corollary 2: gap at most", theory.realizable_gap_bound(distance, step, q.samples)),
    ]


def forecast_bounds(mixture: TokenMixture, samples: int, delta: float) -> mixture_theory.MixtureBounds:
    """The constants of a mixture before anything is drawn: almost sure ones, or for Gaussian noise such that all
    noise tokens of `samples` samples keep to them with probability `1 - delta` (union over tokens and patterns)."""
    noise = mixture.noise_bounds() or _gaussian_bounds(mixture, samples, delta)
    return mixture_theory.MixtureBounds(
        mixture.dim, mixture.tokens, mixture.patterns, mixture.signal, mixture.relevant_fraction, noise
    )


def _gaussian_bounds(mixture: TokenMixture, samples: int, delta: float) -> NoiseBounds:
    count = samples * mixture.tokens
    overlap = mixture.signal * mixture.noise * sqrt(2 * log(4 * count * (mixture.patterns + 2) / delta))
    norm = mixture.noise * (sqrt(mixture.dim) + sqrt(2 * log(2 * count / delta)))
    return NoiseBounds(overlap, mixture.patterns * overlap, norm)


def _condition(name: str, margin: float) -> Condition:
    return Condition(name, margin >= 1, margin)


def _positive(margin: float, loss: float) -> float:
    """How far a margin is from zero, as the ratio of what it has to what noise and residual take."""
    return (margin - loss) / -loss if loss < 0 else (inf if margin > 0 else 0.0)


def _over(top: float, bottom: float) -> float:
    return inf if bottom == 0 else top / bottom
