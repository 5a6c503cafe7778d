"""The general theorems with their explicit constants: curvature, training, generalisation, good initialisation.

Everything holds for tokens bounded by `R` (Assumption 1). Notation: `d` dimensions, `T` tokens, `H` heads, `K` steps,
`eta` the step size; for a target `theta`: `Delta = ||theta - theta_0||` and `q = max_h ||theta_h||`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, exp, floor, inf, log, log1p, sqrt
from typing import Any

import numpy as np

from lemmata.errors import require
from lemmata.studies.multihead.data import PlantedAttention

Number = Any
"""A number, or an array of them: bounds are the same formula for one run and for all."""

TRAINING_HEADS, GENERALISATION_HEADS = 36, 256
"""The constants in front of the conditions on `sqrt(H)` of Theorems 1/3 and 2/4."""

LOG_2 = log(2)
"""The loss of a model that says nothing."""

QUASI_CONVEXITY, SHARP_QUASI_CONVEXITY = 4 / 3, 16 / 15
"""Prop. 4/6 prints 4/3; its own argument gives `1 / (1 - kappa D^2 / 8)` with `kappa D^2 <= 1/2`, that is 16/15."""


@dataclass(frozen=True)
class DataBounds:
    """What the theorems ask of the data: `dim` d, `tokens` T, and `radius` R >= 1 with `||x_t|| <= R`."""

    dim: int
    tokens: int
    radius: float

    def __post_init__(self):
        require(self.dim >= 1 and self.tokens >= 1, "the data need at least one dimension and one token.")
        require(self.radius >= 1, f"the bound on the token norms must be at least 1, not {self.radius}.")


# Gradient and curvature (Sec. 3, App. A) -------------------------------------------------------------------------------


def decoder_gradient_bound(tokens: np.ndarray) -> float:
    """`||grad_U Phi|| <= sqrt(T) ||X||_{2,inf}` (Prop. 1/5, item 1)."""
    return sqrt(len(tokens)) * _longest(tokens)


def attention_gradient_bound(tokens: np.ndarray, decoder: np.ndarray) -> float:
    """`||grad_W Phi|| <= 2 ||X||_{2,inf}^2 sum_t ||X u_t||_inf` (Prop. 1/5, item 2)."""
    return 2 * _longest(tokens) ** 2 * _reach(tokens, decoder)


def gradient_bound(tokens: np.ndarray, decoder: np.ndarray) -> float:
    """`||grad Phi|| <= 2 ||X||_{2,inf}^2 sum_t ||X u_t||_inf + sqrt(T) ||X||_{2,inf}` (Prop. 1/5, item 3)."""
    return attention_gradient_bound(tokens, decoder) + decoder_gradient_bound(tokens)


def hessian_bound(tokens: np.ndarray, decoder: np.ndarray) -> float:
    """Spectral norm of the Hessian of one head (Prop. 1/5, item 4):
    `6 d^2 ||X||_{2,inf} ||X||_{1,inf}^3 sum_t ||X u_t||_inf + 2 d sqrt(Td) ||X||_{2,inf} ||X||_{1,inf}^2`."""
    count, dim = tokens.shape
    longest, entry = _longest(tokens), float(np.abs(tokens).max())
    return (
        6 * dim**2 * longest * entry**3 * _reach(tokens, decoder)
        + 2 * dim * sqrt(count * dim) * longest * entry**2
    )


def gradient_self_bound(data: DataBounds, norm: Number) -> Number:
    """`beta_1 = sqrt(T) R (2 R^2 u + 1)`: `||grad L|| <= beta_1 L` (Cor. 1) and `||grad Phi~|| <= beta_1` (Lemma 5).

    `u` is `max_h ||theta_h||` or, sharper, `max_h ||U_h||`.
    """
    r = data.radius
    return sqrt(data.tokens) * r * (2 * r**2 * norm + 1)


def weak_convexity_bound(data: DataBounds, norm: Number) -> Number:
    """`beta_3 = 2 d sqrt(Td) R^3 (3 sqrt(d) R^2 u + 1)`: `lambda_min(hess L) >= -beta_3 L / sqrt(H)` (Cor. 1)."""
    d, r = data.dim, data.radius
    return 2 * d * sqrt(data.tokens * d) * r**3 * (3 * sqrt(d) * r**2 * norm + 1)


def negative_curvature_bound(data: DataBounds, norm: Number, heads: Number) -> Number:
    """`beta_3 / sqrt(H)`: the negative curvature allowed per unit of loss; also bounds `||hess Phi~||` (Lemma 5)."""
    return weak_convexity_bound(data, norm) * heads**-0.5


def smoothness_bound(data: DataBounds, norm: Number, heads: Number) -> Number:
    """`beta_2 = beta_3 / sqrt(H) + beta_1^2 / 4 >= ||hess L||` (Cor. 1)."""
    return negative_curvature_bound(data, norm, heads) + gradient_self_bound(data, norm) ** 2 / 4


def decoder_factor(decoder: str, tokens: int, squared: bool = False) -> float:
    """What the bounds on gradient and Hessian take for a decoder that is one vector `u`: `sqrt(T)` for pooling, whose
    gradient sums `T` rows and whose `U = 1 u^T` has `sqrt(T)` times its norm (`squared`: `T`, for `beta_1^2`); 1 for the
    last token."""
    return (tokens if squared else sqrt(tokens)) if decoder == "pooling" else 1.0


def quasi_convexity_margin(data: DataBounds, norm: float, distance: float, heads: float) -> float:
    """`sqrt(H) / (2 beta_3 ||theta_1 - theta_2||^2)`, `norm` the larger of the two points' (Prop. 4/6).

    From 1 on, the loss on the segment is at most `QUASI_CONVEXITY` times its larger end.
    """
    need = 2 * weak_convexity_bound(data, norm) * distance**2
    return inf if need == 0 else sqrt(heads) / need


def segment_curvature_bound(data: DataBounds, norm: Number, largest_loss: Number, heads: Number) -> Number:
    """`-min lambda_min(hess L) <= (beta_3 / sqrt(H)) max L` over a segment (eq. 15); `norm` the larger of its ends'.

    `beta_3` grows with the norm, which is convex, so its ends bound it on the whole segment.
    """
    return negative_curvature_bound(data, norm, heads) * largest_loss


def expansion_factor(data: DataBounds, norm: float, loss: float, heads: float, step: float) -> float:
    """How much one step of GD may stretch a distance at a point: `(1 + eta beta_3 L / sqrt(H)) v (eta beta_2)` (eq. 19).

    For a pair of points the largest over their segment counts.
    """
    return max(
        1 + step * negative_curvature_bound(data, norm, heads) * loss,
        step * smoothness_bound(data, norm, heads),
    )


# Training (Sec. 4.1, App. B) -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Target:
    """Weights to compare with: `distance` Delta from the start, `head_norm` q, and the losses at both ends."""

    distance: Number
    head_norm: Number
    loss: Number
    start_loss: Number = LOG_2


def required_root_heads(data: DataBounds, distance: float, head_norm: float, constant: float) -> float:
    """`C d sqrt(Td) R^3 (3 sqrt(d) R^2 (3 Delta + q) + 1) Delta^2 <= sqrt(H)`; `C` = 36 (Thm 1/3) or 256 (Thm 2/4)."""
    return constant / 2 * weak_convexity_bound(data, 3 * distance + head_norm) * distance**2


def required_heads(data: DataBounds, target: Target, constant: float = TRAINING_HEADS) -> float:
    """The smallest number of heads that a theorem allows for a target."""
    return max(1, ceil(required_root_heads(data, target.distance, target.head_norm, constant) ** 2))


def equal_heads_required(
    data: DataBounds, distance: float, constant: float = TRAINING_HEADS, start_norm: float = 0.0
) -> float:
    """The smallest number of heads when the way to the target is spread equally over them: `q = B + Delta/sqrt(H)`,
    `B` (`start_norm`) the norm of the largest head at the start.

    The condition is then `sqrt(H) >= a + b / sqrt(H)`, solved for `sqrt(H)`.
    """
    whole = required_root_heads(data, distance, start_norm, constant)
    slope = required_root_heads(data, distance, start_norm + distance, constant) - whole
    return max(1, ceil(((whole + sqrt(whole**2 + 4 * slope)) / 2) ** 2))


def smoothness_scale(data: DataBounds, distance: float, head_norm: float) -> float:
    """`alpha = 3 d sqrt(d) R^2 [3 sqrt(T) R^3 (3 Delta + q) + 2 sqrt(T) R]` (Thm 3)."""
    d, t, r = data.dim, data.tokens, data.radius
    return 3 * d * sqrt(d) * r**2 * (3 * sqrt(t) * r**3 * (3 * distance + head_norm) + 2 * sqrt(t) * r)


def smoothness_ceiling(data: DataBounds, distance: float, head_norm: float, heads: float) -> float:
    """`rho = (2 d sqrt(Td) R^3 / sqrt(H) + T R^2 / 4) alpha^2` (Thm 3): bounds the smoothness along the run."""
    d, t, r = data.dim, data.tokens, data.radius
    base = 2 * d * sqrt(t * d) * r**3 / sqrt(heads) + t * r**2 / 4
    return base * smoothness_scale(data, distance, head_norm) ** 2


def step_limits(data: DataBounds, target: Target, heads: float, steps: int) -> dict[str, float]:
    """Each of the four upper limits on the step size in Theorems 1/3 and 2/4; the smallest binds."""
    squared = target.distance**2
    return {
        "1": 1.0,
        "1/rho": 1 / smoothness_ceiling(data, target.distance, target.head_norm, heads),
        "Delta^2/(K L(theta))": over(squared, steps * target.loss),
        "Delta^2/L(theta_0)": over(squared, target.start_loss),
    }


def longest_horizon(data: DataBounds, target: Target, heads: float) -> tuple[float, int]:
    """The largest step size that no horizon limits, and the largest horizon that it leaves open."""
    step = min(step_limits(data, target, heads, 0).values())
    return step, max(1, floor(target.distance**2 / (step * target.loss)))


def training_bound(target: Target, step: Number, steps: Number) -> Number:
    """`2 L(theta) + 5 Delta^2 / (4 eta K)`: bounds the mean loss over the run and the last one (Thm 1/3)."""
    return 2 * target.loss + 5 * target.distance**2 / (4 * step * steps)


def ball_radius(target: Target) -> Number:
    """`4 Delta`: no iterate goes farther from the start (Thm 1/3); none is farther than `3 Delta` from the target."""
    return 4 * target.distance


def attention_reach(target: Target, heads: Number) -> Number:
    """`4 Delta / sqrt(H)`: how far the attention weights of one of many equal heads can move inside the ball. The theorem's own
    `sqrt(H) >= 36 d sqrt(Td) R^3 Delta^2` makes it small at every distance: no attention that moves much is inside."""
    return ball_radius(target) * heads**-0.5


def regret_bound(target: Target, step: Number, steps: Number, wander: Number) -> Number:
    """`L(theta) + Delta^2/(2 eta K) + (1/2K) sum_k tau_k ||theta - theta_k||^2` (Lemma 8), all measured along a run.

    `wander` is the sum over `k < K`, with `tau_k = (beta_3 / sqrt(H)) max L`, the larger `beta_3` of the two ends and
    the largest loss on the segment from the target to the iterate. It needs descent at every step (Lemma 7), no more.
    """
    return target.loss + target.distance**2 / (2 * step * steps) + wander / (2 * steps)


def mean_loss_bound(target: Target, step: Number, steps: Number) -> Number:
    """`2 L(theta) + 3 Delta^2/(4 eta K) + L(theta_0)/(2K)` (Lemma 9): where `quasi_convexity_margin` is at least 1 on
    the segments from the target to every iterate."""
    return 2 * target.loss + 3 * target.distance**2 / (4 * step * steps) + target.start_loss / (2 * steps)


# Generalisation (Sec. 4.2, App. C) -------------------------------------------------------------------------------------


def stability_growth(data: DataBounds, target: Target, heads: float, step: float, losses: Number) -> Number:
    """`1 + (4 eta beta~_3 / (3 sqrt(H))) (L^-i(theta_k) + L^-i(theta_k^-i))`: what one step may do to the distance
    between a run and its leave-one-out twin, before the new term (eq. 22); `losses` is the sum of the two."""
    reach = 3 * target.distance + target.head_norm
    return 1 + 4 * step * negative_curvature_bound(data, reach, heads) / 3 * losses


def stability_push(
    data: DataBounds, target: Target, step: float, samples: int, left_out_loss: Number
) -> Number:
    """`(eta beta~_1 / n) l_i(theta_k)`: what the left-out sample adds to that distance in one step (eq. 22)."""
    reach = 3 * target.distance + target.head_norm
    return step * gradient_self_bound(data, reach) / samples * left_out_loss


def stability_bound(data: DataBounds, target: Target, step: float, steps: int, samples: int) -> float:
    """`(2 eta beta~_1 / n)(2 K L(theta) + 9 Delta^2/(4 eta))`: the mean distance between a run and its leave-one-out
    twins (Lemma 11)."""
    reach = 3 * target.distance + target.head_norm
    work = 2 * steps * target.loss + 9 * target.distance**2 / (4 * step)
    return 2 * step * gradient_self_bound(data, reach) / samples * work


def gap_bound(target: Target, step: float, steps: int, samples: int) -> float:
    """`(4/n)(2 K L(theta) + 9 Delta^2/(4 eta))`: the expected generalisation gap (Thm 2/4)."""
    return 4 / samples * (2 * steps * target.loss + 9 * target.distance**2 / (4 * step))


def sharp_gap_bound(data: DataBounds, target: Target, step: float, steps: int, samples: int) -> float:
    """The same before `eta beta~_1^2 <= 1` is used (eq. 94)."""
    reach = 3 * target.distance + target.head_norm
    return gap_bound(target, step, steps, samples) * step * gradient_self_bound(data, reach) ** 2


def gap_from_stability(lipschitz: Number, stability: Number) -> Number:
    """`2 G (1/n) sum_i ||theta_K - theta_K^-i||` for a `G`-Lipschitz loss (Lemma 3)."""
    return 2 * lipschitz * stability


# Realizability and good initialisation (Sec. 4.3, App. C.3) ------------------------------------------------------------


@dataclass(frozen=True)
class GoodStart:
    """Definition 1: `norm` B_2 >= 1 bounds every head, `output` B_Phi >= 1 the outputs, `margin` gamma > 0 the NTK.

    `printed` keeps the document's constants. Its target lies at `G theta*` with `||theta*|| = sqrt(2)`, so the distance
    is `sqrt(2) G`, not `G`; without `printed` this factor is carried along.
    """

    norm: float
    output: float
    margin: float
    printed: bool = False

    def __post_init__(self):
        require(self.norm >= 1 and self.output >= 1, "the bounds of a good start must be at least 1.")
        require(self.margin > 0, f"a good start has a positive NTK margin, not {self.margin:.3g}.")

    def reach(self, loss: float) -> float:
        """`G = (2 B_Phi + log(1/eps)) / gamma`: how far along `theta*` the target lies (Prop. 7)."""
        return (2 * self.output + log(1 / loss)) / self.margin

    def distance(self, loss: float) -> float:
        """`g_0(eps)`: the distance from the start at which training loss `eps` exists."""
        return self.reach(loss) * (1 if self.printed else sqrt(2))

    def head_norm(self, loss: float) -> float:
        """`g(eps) = B_2 + g_0(eps)`: the norm of the largest head there."""
        return self.norm + self.distance(loss)

    def required_heads(self, data: DataBounds, loss: float) -> float:
        """`sqrt(H) >= (5 d sqrt(Td) R^3 B_2/B_Phi)(3 sqrt(d) R^2 + 1) G^2 (1 v G)` (Prop. 7); 10 instead of 5 when the
        missing square root is carried."""
        d, r, g = data.dim, data.radius, self.reach(loss)
        constant = 5 if self.printed else 10
        lead = constant * d * sqrt(data.tokens * d) * r**3 * self.norm / self.output
        return ceil((lead * (3 * sqrt(d) * r**2 + 1) * g**2 * max(1, g)) ** 2)

    def target(self, steps: int) -> Target:
        """The target of Corollaries 3 and 4: loss `1/K`."""
        return Target(self.distance(1 / steps), self.head_norm(1 / steps), 1 / steps, logistic(-self.output))


def realizable_step_limits(
    data: DataBounds, target: Target, first_distance: float, heads: float
) -> dict[str, float]:
    """The limits on the step size under realizability (Cor. 3, 4); `first_distance` is `g_0(1)`."""
    squared = first_distance**2
    return {
        "1": 1.0,
        "1/rho": 1 / smoothness_ceiling(data, target.distance, target.head_norm, heads),
        "g_0(1)^2": squared,
        "g_0(1)^2/L(theta_0)": over(squared, target.start_loss),
    }


def realizable_training_bound(distance: float, step: float, steps: int) -> float:
    """`2/K + 5 g_0(1/K)^2 / (4 eta K)` (Cor. 3)."""
    return 2 / steps + 5 * distance**2 / (4 * step * steps)


def realizable_gap_bound(distance: float, step: float, samples: int) -> float:
    """`17 g_0(1/K)^2 / (eta n)` (Cor. 4)."""
    return 17 * distance**2 / (step * samples)


def good_start_required_heads(data: DataBounds, start: GoodStart, steps: int) -> float:
    """`sqrt(H) >= 256 d sqrt(Td) R^3 B_2 (3 sqrt(d) R^2 (4 g_0 + B_2) + 1) g_0^2` at `g_0(1/K)` (Cor. 2/5).

    It implies the conditions of Prop. 7 and of Cor. 3 and 4.
    """
    reach = start.distance(1 / steps)
    lead = GENERALISATION_HEADS / 2 * start.norm * weak_convexity_bound(data, 4 * reach + start.norm)
    return ceil((lead * reach**2) ** 2)


def good_start_step_limits(data: DataBounds, start: GoodStart, heads: float, steps: int) -> dict[str, float]:
    """`eta <= 1 ^ 1/rho(K) ^ g_0(1)^2/log(1 + e^B_Phi)`, `g_0(1) = 2 B_Phi/gamma` as printed (Cor. 2/5)."""
    target = start.target(steps)
    return {
        "1": 1.0,
        "1/rho": 1 / smoothness_ceiling(data, target.distance, target.head_norm, heads),
        "g_0(1)^2/log(1+e^B_Phi)": start.distance(1) ** 2 / target.start_loss,
    }


def gaussian_radius(data: PlantedAttention, delta: float) -> float:
    """`sqrt(d) + sqrt(2 log(n T / delta))`: no token of `n` samples of standard normal ones is longer, but for probability
    `delta`."""
    return sqrt(data.dim) + sqrt(2 * log(data.samples * data.tokens / delta))


def logistic(margin: float) -> float:
    """`log(1 + exp(-z))` without overflow."""
    return max(-margin, 0) + log1p(exp(-abs(margin)))


def binding(limits: Mapping[str, float]) -> str:
    """The name of the limit that binds: the smallest."""
    return min(limits, key=lambda name: limits[name])


def over(top: float, bottom: float) -> float:
    """A ratio; infinite over nothing."""
    return inf if bottom == 0 else top / bottom


def _longest(tokens: np.ndarray) -> float:
    return float(np.linalg.norm(tokens, axis=1).max())


def _reach(tokens: np.ndarray, decoder: np.ndarray) -> float:
    """`sum_t ||X u_t||_inf`."""
    return float(np.abs(tokens @ decoder.T).max(axis=0).sum())
