"""The paper's statements as functions, in float64: heights of the plateaus (19), sizes of the heads (20a), conditions."""

import numpy as np

from lemmata.measure.compare import Condition
from lemmata.study import Prediction

from .trials import Population


def eigenvalues(trial: Population) -> np.ndarray:
    """The eigenvalues of Lambda, the largest first; their sum is 1."""
    powers = np.arange(trial.data.dim, 0, -1) ** float(trial.data.power)
    return powers / powers.sum()


def best(own: np.ndarray, context: float) -> np.ndarray:
    """(16): `a_d = 1 / [lambda_d (1 + (1 + tr(Lambda)/lambda_d) / N)]`, the learned map along each eigenvector."""
    return 1 / (own * (1 + (1 + own.sum() / own) / context))


def plateaus(own: np.ndarray, context: float) -> np.ndarray:
    """(19): `L(M_m) = tr Lambda - sum_{d <= m} lambda_d / (1 + (1 + tr(Lambda)/lambda_d) / N)`, for m = 0 to D."""
    falls = own**2 * best(own, context)
    return own.sum() - np.concatenate([[0.0], np.cumsum(falls)])


def head_sizes(own: np.ndarray, context: float) -> np.ndarray:
    """(20a): `|v| = |k| = |q| = a_d^(1/3)` of the head that has learned eigenvector d."""
    return np.cbrt(best(own, context))


def saddle_conditions(trial: Population) -> list[Condition]:
    """Enough heads (H >= D), eigenvalues apart (not in the paper), a start far below the learned heads."""
    own = eigenvalues(trial)
    ratio = float(np.min(own[:-1] / own[1:])) if len(own) > 1 else np.inf
    start = float(head_sizes(own, trial.data.context).min() / max(trial.init, 1e-300))
    return [
        Condition("heads H >= D", trial.heads >= trial.data.dim, trial.heads / trial.data.dim),
        Condition("distinct eigenvalues", ratio > 1, ratio),
        Condition("init << a_d^(1/3)", None, start),
    ]


def predict(trial: Population) -> tuple[list[Condition], list[Prediction]]:
    heights = plateaus(eigenvalues(trial), trial.data.context)
    sizes = head_sizes(eigenvalues(trial), trial.data.context)
    return saddle_conditions(trial), [
        *(Prediction(f"loss at plateau {m}", float(height)) for m, height in enumerate(heights)),
        *(Prediction(f"size of head {d + 1}", float(size)) for d, size in enumerate(sizes)),
    ]
