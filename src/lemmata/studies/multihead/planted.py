"""For every claim, results on which it must come out `fails`: records made by a wrong law, without training."""

from collections.abc import Callable
from math import exp, sqrt
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.multihead.figures import FIGURES
from lemmata.studies.multihead.trials.inequalities import INEQUALITIES

Make = Callable[[Any, np.random.Generator], Any]


def _planted(figure: str, **variables: Any) -> Callable[[], xr.Dataset]:
    """Results of a figure at quick scale with 20 seeds; a variable is a number for all runs or a function of the trial, which
    gets a spread of 2 % (curves: over the logged steps)."""

    def make(value: Any) -> Make:
        if not callable(value):
            return lambda trial, rng: value
        seen: tuple[Any, Any] = (None, None)

        def drawn(trial: Any, rng: np.random.Generator) -> np.ndarray:
            nonlocal seen
            if seen[0] is not trial:  # seeds of one grid point share it
                seen = trial, np.asarray(value(trial))
            return np.asarray(seen[1] * exp(0.02 * rng.normal()))

        return drawn

    return lambda: made(FIGURES[figure], {name: make(v) for name, v in variables.items()}, "quick", 20)


def _curve(law: Callable[[Any, np.ndarray], Any]) -> Callable[[Any], np.ndarray]:
    """A curve over the logged steps, counted from 1."""

    def values(trial: Any) -> np.ndarray:
        steps = np.maximum(np.asarray(trial.log_steps, float), 1)
        return np.broadcast_to(law(trial, steps), steps.shape)

    return values


def _of_heads(power: float, sign: float = 1.0) -> Callable[[Any], np.ndarray]:
    """A curve that is constant in time and a power of the number of heads."""
    return _curve(lambda t, s: sign * t.network.heads**power)


# Numbers that keep every bound, so that a case breaks the one that it is planted for.
PATH = {
    "token_norm": 2.0,
    "train_loss_curve": _curve(lambda t, s: 1 / s),
    "decoder_norm_curve": _curve(lambda t, s: 1.0),
    "smallest_eigenvalue_curve": _curve(lambda t, s: -1e-3 / s / sqrt(t.network.heads)),
    "largest_eigenvalue_curve": _curve(lambda t, s: 1.0),
    "gradient_norm_curve": _curve(lambda t, s: 1e-3 / s),
}
INSIDE = {
    "loss_sum": lambda t: 0.5 * t.steps,
    "last_loss": 0.4,
    "farthest": lambda t: t.distance,
    "farthest_from_target": lambda t: t.distance,
    "worst_descent": -1e-9,
    "worst_recursion": 0.1,
    "away": lambda t: np.full(t.data.samples, 1e-9),
    "left_out_sum": lambda t: np.ones(t.data.samples),
    "stability": 1e-9,
    "gap": 1e-9,
    "left_out_gap": 1e-9,
}
AFTER = {
    "loss_sum": lambda t: 0.5 * t.steps,
    "last_loss": 0.4,
    "target_loss": 0.4,
    "start_loss": 0.7,
    "horizon": lambda t: t.steps,
    "residual": 0.001,
    "wander": 1.0,
    "farthest": lambda t: t.distance,
    "farthest_from_target": lambda t: t.distance,
    "worst_descent": -1e-9,
    "roughest": 0.1,
    "longest_segment": 0.1,
    "ntk_margin_curve": _curve(lambda t, s: 2.0),
    "segment_curvature": 0.01,
    "segment_loss": 0.75,
    "segment_curvature_curve": _curve(lambda t, s: 0.01),
    "segment_loss_curve": _curve(lambda t, s: 0.75),
}
MARGINS = {
    "decoder_part": 1.0,
    "mean_attention_part": 0.5,
    "margin": 2.0,
    "saturated_margin": 3.0,
    "attention_margin": 3.0,
    "linear_bound": 0.9,
    "mean_attention_bound": 0.4,
}


def _bounded(name: str, value: float) -> Callable[[Any], np.ndarray]:
    """Ratios of 1/2, but for one."""
    return lambda t: np.where(np.asarray(INEQUALITIES) == name, value, 0.5)


def _kept_up_to(power: float) -> dict[str, Any]:
    """The bound of Theorem 1 keeps up to a step that goes as a power of the heads."""
    return {
        "loss_sum": lambda t: t.steps * (t.descent.learning_rate / (8 * t.network.heads**power)) ** 4,
        "theorem_bound": 1.0,
        "attention_change": 0.9,
    }


def _stuck(optimiser: str) -> dict[str, Any]:
    """Every run with more than one head stays on a plateau."""

    def loss(trial: Any) -> float:
        return 0.1 if trial.network.heads == 1 or trial.descent.method != optimiser else 0.5

    return {"train_loss": loss, "train_loss_curve": _curve(lambda t, s: loss(t))}


SLOW = {"train_loss_curve": _curve(lambda t, s: s**-0.5)}
SLOWER_WITH_HEADS = {"log_train_loss_curve": _of_heads(0.1), "train_loss_curve": _of_heads(0.1)}
FASTER_WITH_HEADS = {"log_train_loss_curve": _of_heads(0.1, -1.0)}
LARGER_MARGIN_WITH_HEADS = {"margin_curve": _of_heads(0.1)}

PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "curvature-falls": _planted("curvature", negative_curvature=lambda t: t.heads**-0.1, bound=1.0),
    "curvature-falls-in-training": _planted(
        "hessian-path", **{**PATH, "smallest_eigenvalue_curve": _curve(lambda t, s: -1e-3 / s)}
    ),
    "weak-convexity": _planted(
        "hessian-path", **{**PATH, "smallest_eigenvalue_curve": _curve(lambda t, s: -1e6 / s)}
    ),
    "path-bounds": _planted(
        "hessian-path", **{**PATH, "gradient_norm_curve": _curve(lambda t, s: 1e6 / s)}
    ),
    "inequalities": _planted("looseness", ratio=_bounded("mean loss", 1.5)),
    "decoder-inequalities": _planted("decoder-bounds", ratio=_bounded("head gradient", 1.7)),
    "decoder-inequalities-mended": _planted("decoder-bounds", ratio=_bounded("head gradient", 2.0)),
    "fixed-step-slower": _planted("fig2", **FASTER_WITH_HEADS),
    "fixed-step-margin": _planted("fig2", **LARGER_MARGIN_WITH_HEADS),
    "one-head-margin": _planted("fig2", margin=lambda t: 0.5 * t.data.signal * sqrt(t.data.tokens / 2)),
    "rate-in-steps": _planted("fig2", **SLOW),
    "sqrt-step-faster": _planted("fig3", **SLOWER_WITH_HEADS),
    "tenth-step-faster": _planted("fig3", **SLOWER_WITH_HEADS),
    "tenth-step-faster-than-one": _planted("fig3", **SLOWER_WITH_HEADS),
    "sqrt-step-margin": _planted("fig3", **LARGER_MARGIN_WITH_HEADS),
    "tenth-step-margin": _planted("fig3", **LARGER_MARGIN_WITH_HEADS),
    "adam-faster": _planted("fig3", **SLOWER_WITH_HEADS),
    "adam-margin": _planted("fig3", **LARGER_MARGIN_WITH_HEADS),
    "adam-margin-below-one": _planted("fig3", **LARGER_MARGIN_WITH_HEADS),
    "two-step-sizes": _planted(
        "two-step-sizes",
        log_train_loss_curve=_curve(lambda t, s: -1 - 1e-6 * (t.descent.attention_rate < 1)),
    ),
    "planted-faster": _planted("fig4", **SLOWER_WITH_HEADS),
    "planted-faster-mean": _planted("fig4", **SLOWER_WITH_HEADS),
    "planted-stuck": _planted("fig4", **_stuck("gd")),
    "planted-alignment": _planted("fig4", attention_alignment=0.99, decoder_alignment=lambda t: 0.9),
    "planted-momentum-faster": _planted("fig5", **SLOWER_WITH_HEADS),
    "planted-momentum-faster-mean": _planted("fig5", **SLOWER_WITH_HEADS),
    "planted-momentum-stuck": _planted("fig5", **_stuck("momentum")),
    "planted-adam-faster": _planted("fig5", **SLOWER_WITH_HEADS),
    "planted-adam-faster-mean": _planted("fig5", **SLOWER_WITH_HEADS),
    "planted-adam-stuck": _planted("fig5", **_stuck("adam")),
    "training-theorem": _planted("inside-conditions", **{**INSIDE, "loss_sum": lambda t: 20.0 * t.steps}),
    "ball-radius": _planted("inside-conditions", **{**INSIDE, "farthest": lambda t: 5 * t.distance}),
    "descent": _planted("inside-conditions", **{**INSIDE, "worst_descent": 1e-6}),
    "stability": _planted("inside-conditions", **{**INSIDE, "worst_recursion": 1.5}),
    "gap-theorem": _planted("inside-conditions", **{**INSIDE, "gap": lambda t: 1e9}),
    "gap-from-stability": _planted("inside-conditions", **{**INSIDE, "gap": lambda t: 1.0}),
    "linear-control": _planted(
        "linear-control", **{**INSIDE, "loss_sum": lambda t: (0.5 + 0.1 * t.frozen) * t.steps}
    ),
    "frontier-exponent": _planted("frontier", **_kept_up_to(0.5)),
    "decoders-rate": _planted("decoders", **SLOW),
    "first-phase-printed": _planted("first-phase", printed_residual=lambda t: t.first_samples**-0.25),
    "first-phase-corrected": _planted("first-phase", residual=lambda t: t.first_samples**-0.25),
    "first-phase-residual": _planted("first-phase-scaling", residual=lambda t: 1.0, residual_scale=0.5),
    "first-phase-signal": _planted("first-phase-scaling", residual=lambda t: t.data.signal**2),
    "first-phase-dimension": _planted("first-phase-scaling", residual=lambda t: float(t.data.dim)),
    "ntk-margin-positive": _planted("first-phase", margin=lambda t: -0.1),
    "good-start-bounds": _planted("first-phase", largest_output=lambda t: 300.0, output_bound=240.0),
    "second-phase-rate": _planted("second-phase", **SLOW),
    "second-phase-test-loss": _planted("second-phase", test_loss=lambda t: 0.1),
    "first-step-helps": _planted("second-phase", log_train_loss=lambda t: -2.0 - (t.network.start == "zero")),
    "many-heads-are-linear": _planted(
        "second-phase", log_train_loss=lambda t: -2.0 - (t.descent.attention_rate > 0)
    ),
    "good-start-theorem": _planted("good-start", **{**AFTER, "farthest": lambda t: 5 * t.distance}),
    "good-start-premises": _planted("good-start", **{**AFTER, "roughest": 1.5}),
    "regret": _planted("good-start", **{**AFTER, "loss_sum": lambda t: 50.0 * t.steps}),
    "mean-loss": _planted("good-start", **{**AFTER, "loss_sum": lambda t: 50.0 * t.steps}),
    "segments": _planted("good-start", **{**AFTER, "segment_loss_curve": _curve(lambda t, s: 1.2)}),
    "good-start-margin": _planted("good-start", **{**AFTER, "ntk_margin_curve": _curve(lambda t, s: 0.1)}),
    "realizability": _planted("realizability", needed_heads=lambda t: 1e6, asked_heads=1e5, margin=50.0),
    "ntk-margin-corrected": _planted("margins", **{**MARGINS, "decoder_part": 0.1}),
    "margin-order": _planted("margins", **{**MARGINS, "margin": lambda t: 3.5}),
    "margin-order-everywhere": _planted("margins", **{**MARGINS, "margin": lambda t: 3.5}),
    "margin-gap": _planted("margins", **{**MARGINS, "margin": lambda t: 3 - 3 * t.data.relevant_fraction}),
    "saturation": _planted("saturation", leaked=lambda t: 2 * t.leak, margin=4.0, bound=3.9),
    "rate-in-samples": _planted(
        "gap", test_loss=lambda t: 0.1 + t.data.samples**-0.3, train_loss=0.1, stuck=0.0
    ),
    "gap-stuck": _planted("gap", train_loss=lambda t: 0.5),
}  # fmt: skip
