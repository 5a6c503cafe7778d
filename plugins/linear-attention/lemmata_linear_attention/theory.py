"""The paper's statements as functions, in float64: fixed points, heights of plateaus, sizes of heads, times, conditions."""

from functools import lru_cache
from math import log, sqrt

import numpy as np
from scipy.special import elliprf

from lemmata.measure.compare import Condition
from lemmata.study import Prediction

from .trials import Training


def eigenvalues(trial: Training) -> np.ndarray:
    """The eigenvalues of Lambda, the largest first; their sum is 1."""
    powers = np.arange(trial.data.dim, 0, -1) ** float(trial.data.power)
    return powers / powers.sum()


def best(own: np.ndarray, context: float) -> np.ndarray:
    """(16): `a_d = 1 / [lambda_d (1 + (1 + tr(Lambda)/lambda_d) / N)]`, the learned map along each eigenvector.

    All of them together are the global minimum (11): `A* = (Lambda + (Lambda + tr(Lambda) I) / N)^-1`.
    """
    return 1 / (own * (1 + (1 + own.sum() / own) / context))


def plateaus(own: np.ndarray, context: float) -> np.ndarray:
    """(19): `L(M_m) = tr Lambda - sum_{d <= m} lambda_d / (1 + (1 + tr(Lambda)/lambda_d) / N)`, for m = 0 to D."""
    falls = own**2 * best(own, context)
    return own.sum() - np.concatenate([[0.0], np.cumsum(falls)])


def head_sizes(own: np.ndarray, context: float) -> np.ndarray:
    """(20a): `|v| = |k| = |q| = a_d^(1/3)` of the head that has learned eigenvector d."""
    return np.cbrt(best(own, context))


def escape_rate(own: np.ndarray) -> float:
    """Merged heads leave the origin as `exp(||Lambda^2||_F t / tau)`, so that the drop comes after `tau ln(1/w) / ||Lambda^2||_F`."""  # noqa: E501
    return sqrt(float(np.sum(own**4)))


def merged_end(trial: Training) -> float:
    """The order of the time t/tau of the single drop of merged heads, `ln(1/w) / ||Lambda^2||_F`."""
    return log(1 / trial.init) / escape_rate(eigenvalues(trial)) if 0 < trial.init < 1 else 0.0


def half_time(own: np.ndarray, context: float, start: float) -> float:
    """The time t/tau at which half of `sigma` in (10) is learned, for white data.

    `A = sigma(t) I` with `sigma' = 2 s^2 sqrt(D) sigma (1 - c s sigma)`, `c = 1 + (1 + D)/N`, `sigma(0) = w_init^2 / sqrt(D)`, where s is the eigenvalue.
    """  # noqa: E501
    dim, s = len(own), own[0]
    c = 1 + (1 + dim) / context
    return log(sqrt(dim) / (c * s * start**2) - 1) / (2 * sqrt(dim) * s**2)


def growth_time(share: np.ndarray) -> np.ndarray:
    """(21) solved for the time: `lambda^2 a^(1/3) t / tau` at which |v| is this share of a^(1/3), up to a constant.

    `tau v' = lambda^2 v^2 - lambda^3 (1 + (1 + tr(Lambda)/lambda)/N) v^5 = lambda^2 v^2 (1 - v^3/a)`.
    """
    u = np.asarray(share)
    slow = np.log((u * u + u + 1) / (1 - u) ** 2) / 6 - np.arctan((2 * u + 1) / sqrt(3)) / sqrt(3)
    return slow - 1 / u


def size_at(time: np.ndarray, own: float, a: float, start_time: float, start_share: float) -> np.ndarray:
    """The share of a^(1/3) that (21) gives at these times t/tau, from one known point on."""
    shares = 1 / (1 + np.exp(-np.linspace(-14, 25, 4000)))
    passed = (time - start_time) * own**2 * np.cbrt(a) + growth_time(np.asarray(start_share))
    return np.interp(passed, growth_time(shares), shares)


def blow_up(value: np.ndarray, key: np.ndarray, query: np.ndarray) -> np.ndarray:
    """The time `lambda^2 t / tau` after which `v' = k q, k' = v q, q' = v k` grows without bound (ours).

    The squares differ by constants, so that the time is Carlson's integral R_F of the squares. Where v k q < 0, all shrink
    first, until the smallest is 0; this takes the integral from there to the start.
    """
    squares = np.stack([value**2, key**2, query**2])
    smallest = squares.min(axis=0)
    straight = elliprf(*squares)
    return np.where(value * key * query > 0, straight, 2 * elliprf(*(squares - smallest)) - straight)


@lru_cache(maxsize=64)
def fastest(heads: int) -> float:
    """The median over starts of the smallest blow-up time of so many heads, with weights of standard deviation 1."""
    draws = np.random.default_rng(0).normal(size=(3, 20_000, heads))
    return float(np.median(blow_up(*draws).min(axis=1)))


def plateau_ends(trial: Training) -> np.ndarray:
    """When each plateau ends, in t/tau (ours): the median over starts of the time at which eigenvector m + 1 is learned.

    The fastest of the heads that are left needs the blow-up time over `w_init lambda^2`: the law `lambda^-2` of (21).
    """
    own = eigenvalues(trial)
    left = [max(trial.heads - m // trial.rank, 1) for m in range(len(own))]
    return np.array([fastest(heads) for heads in left]) / (max(trial.init, 1e-300) * own**2)


def distinct_conditions(trial: Training) -> list[Condition]:
    """Eigenvalues apart. The paper does not ask for this; (16) is false without it."""
    own = eigenvalues(trial)
    ratio = float(np.min(own[:-1] / own[1:])) if len(own) > 1 else np.inf
    return [Condition("distinct eigenvalues", ratio > 1, ratio)]


def small_start(trial: Training) -> Condition:
    """The start lies far below the size of the learned heads; the paper gives no constant."""
    sizes = head_sizes(eigenvalues(trial), trial.data.context)
    return Condition("init << a_d^(1/3)", None, float(sizes.min() / max(trial.init, 1e-300)))


def saddle_conditions(trial: Training) -> list[Condition]:
    """Enough heads (H R >= D, R <= D), eigenvalues apart, a small start."""
    keys, dim = trial.heads * trial.rank, trial.data.dim
    return [
        Condition("heads H R >= D", keys >= dim, keys / dim),
        Condition("rank R <= D", trial.rank <= dim, dim / trial.rank),
        *distinct_conditions(trial),
        small_start(trial),
    ]


def predict(trial: Training) -> tuple[list[Condition], list[Prediction]]:
    """The paper's numbers for a trial, and the times at which plateaus end. Merged heads have one plateau."""
    own, context = eigenvalues(trial), trial.data.context
    heights = plateaus(own, context)
    if trial.layer == "merged":
        return [small_start(trial)], [
            Prediction("end of plateau 0 (t/tau)", merged_end(trial)),
            Prediction("loss at the end", float(heights[-1])),
        ]
    return saddle_conditions(trial), [
        *(Prediction(f"end of plateau {m} (t/tau)", float(end)) for m, end in enumerate(plateau_ends(trial))),
        *(Prediction(f"loss at plateau {m}", float(one)) for m, one in enumerate(heights)),
        *(
            Prediction(f"size of head {d + 1}", float(size))
            for d, size in enumerate(head_sizes(own, context))
        ),
    ]
