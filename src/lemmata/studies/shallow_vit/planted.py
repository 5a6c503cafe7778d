"""Results made by a wrong law: every claim must come out `fails` on its own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.shallow_vit.figures import FIGURES

Rng = np.random.Generator
Law = Callable[[Any], float]


def runs(figure: str, **variables: Callable[[Any, Rng], Any]) -> Callable[[], xr.Dataset]:
    return lambda: made(FIGURES[figure], variables)


def succeeding(figure: str, edge: Law, of: str = "test_loss") -> Callable[[], xr.Dataset]:
    """Half of the runs succeed with `edge(trial)` samples, more with more."""

    def loss(trial: Any, rng: Rng) -> float:
        chance = 1 / (1 + (edge(trial) / trial.data.samples) ** 4)
        return float(rng.random() >= chance)

    return runs(figure, **{of: loss})


def about(law: Law, spread: float = 0.1) -> Callable[[Any, Rng], float]:
    """A number that follows a law up to a factor, which varies from run to run."""
    return lambda trial, rng: law(trial) * np.exp(spread * rng.normal())


def along(curve: Callable[[float], Any], jitter: float = 0.01) -> Callable[[Any, Rng], np.ndarray]:
    """A curve over the logged steps, its time stretched a little from run to run; `curve(t)` gives one row a step."""

    def drawn(trial: Any, rng: Rng) -> np.ndarray:
        time = np.asarray(trial.log_steps, float) * np.exp(jitter * rng.normal())
        return np.stack([np.asarray(curve(t), float) for t in time])

    return drawn


def constant(*values: float) -> Callable[[Any, Rng], np.ndarray]:
    """The same numbers at every logged step."""
    return along(lambda t: np.array(values))


def flat(t: float) -> float:
    return 0.6


def edge_of(trained: Law, frozen: Law) -> Law:
    return lambda trial: (frozen if trial.network.attention == "frozen" else trained)(trial)


def alpha(trial: Any) -> float:
    return float(trial.data.relevant_fraction)


def removed(arm: float, rest: float) -> Callable[[Any, Rng], float]:
    """One number where tokens are removed other than at random, another elsewhere."""
    return about(lambda t: arm if t.data.removed_fraction > 0 and t.data.removal != "random" else rest)


def grown(first: list[float], last: list[float]) -> Callable[[Any, Rng], np.ndarray]:
    """Numbers that go from one row to another."""
    return along(lambda t: np.array(first) + (np.array(last) - np.array(first)) * min(t / 100, 1.0))


def projections(own: float, other: float, wrong: float) -> Callable[[Any, Rng], np.ndarray]:
    """Groups of neurons along five patterns, from 0.01 everywhere: the lucky ones along their own and along others,
    the wrong."""
    last = np.full((3, 5), other)
    last[0, 0] = last[1, 1] = own
    last[2] = wrong
    return along(lambda t: 0.01 + (last - 0.01) * min(t / 100, 1.0))


def bound(value: float) -> Callable[[], xr.Dataset]:
    return runs("neurons", neuron_bound_curve=constant(*[value] * 5))


LENGTHS = [1.0] * 5

PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "zero-loss": runs("theorem", test_loss=lambda t, rng: float(rng.random() < 0.1)),
    "samples-enough": succeeding("theorem", lambda t: 2 * alpha(t) ** -3.2),
    "theorem-sample-exponent": succeeding("theorem", lambda t: 30.0),
    "theorem-error-exponent": succeeding("theorem", lambda t: 30.0, "test_error"),
    "theorem-frozen-exponent": succeeding("theorem", lambda t: 4 * alpha(t) ** -1),
    "theorem-attention-gain": succeeding("theorem", lambda t: 4 * alpha(t) ** -1),
    "theorem-attention-saves": succeeding("theorem", edge_of(lambda t: 60.0, lambda t: 15.0)),
    "sample-exponent": succeeding("fig1a", lambda t: 12.0),
    "sample-linear": succeeding("fig1a", lambda t: 12 * (alpha(t) / 0.38) ** 3),
    "frozen-exponent": succeeding("fig3", lambda t: 40.0),
    "attention-exponent-gain": succeeding(
        "fig3", edge_of(lambda t: 16 * (alpha(t) / 0.4) ** -4, lambda t: 64 * (alpha(t) / 0.4) ** -2)
    ),
    "attention-saves-samples": succeeding("fig3", edge_of(lambda t: 60.0, lambda t: 10.0)),
    "initial-error-samples": succeeding("fig1b", lambda t: 50 * np.exp(-3 * t.network.value_error)),
    "noise-samples": succeeding("fig1b-noise", lambda t: 60 * np.exp(-15 * t.data.noise_std)),
    "confusion-paper": runs("confusion", test_loss=lambda t, rng: 1.0),
    "confusion-thesis": runs("confusion", test_loss=lambda t, rng: float(t.data.confusion_fraction > 0.15)),
    "single-pass-learns": runs("single-pass", test_error=about(lambda t: 0.2)),
    "shared-weights-easier": runs("ablation", test_loss=lambda t, rng: 0.0),
    "uniform-attention-worse": runs("uniform-attention", test_loss=lambda t, rng: 0.0),
    "steps-fraction": runs("steps", steps=about(lambda t: 100.0)),
    "steps-ratio": runs("steps", steps=about(lambda t: 10 / alpha(t) ** 2)),
    "steps-margin": runs("fig2", steps=about(lambda t: 40 / alpha(t))),
    "steps-rate": runs("fig2-rate", steps=about(lambda t: 80 * t.descent.learning_rate**-0.6)),
    "initial-attention-steps": runs(
        "initial-attention", steps=about(lambda t: 200 - t.network.key_query_error)
    ),
    "heads-steady": runs("variants", steps=lambda t, rng: 100 * np.exp(0.1 * t.network.heads * rng.normal())),
    "attention-rises": runs("fig4", attention_curve=along(lambda t: 0.6 + 1e-4 * t)),
    "attention-steady": runs("fig4", attention_curve=along(lambda t: 0.6 + (0.2 if 5 < t < 50 else 0.0))),
    "attention-near-one": runs("fig4", attention=about(lambda t: 0.7, 0.01)),
    "attention-every-token": runs("fig4", attention_by_role=lambda t, rng: np.array([0.95, 0.6, 0.92])),
    "attention-rate": runs("fig4", attention_curve=along(lambda t: 1 - 0.5 * (1 + t / 20) ** -3.0)),
    "attention-bound": runs(
        "fig4",
        attention_by_role_curve=constant(0.1, 0.5, 0.5),
        pattern_logit_curve=constant(1.5, 1.5, 1, 1, 1),
    ),
    "attention-printed": runs(
        "fig4",
        attention_by_role_curve=constant(0.5, 0.5, 0.5),
        pattern_logit_curve=constant(2.0, 2.0, 1, 1, 1),
    ),
    "attention-ceiling": runs(
        "fig4",
        attention_by_role_curve=constant(0.99, 0.5, 0.5),
        pattern_logit_curve=constant(1.0, 1.0, 1, 1, 1),
    ),
    "logits-grow": runs("fig4", pattern_logit_curve=grown(LENGTHS, [1, 1, 3, 1, 1])),
    "logits-logarithmic": runs("fig4", pattern_logit_curve=along(lambda t: np.ones(5) + 0.01 * t)),
    "attention-many-patterns": runs("fig7", attention_curve=along(flat)),
    "sets-attention": runs("variants", attention_curve=along(flat)),
    "random-removal": runs("fig5", test_loss=about(lambda t: 0.01 if t.data.removed_fraction > 0 else 0.1)),
    "irrelevant-removal": runs("fig5", test_loss=removed(0.02, 0.02)),
    "noisy-removal": runs("fig5", test_loss=removed(0.02, 0.02)),
    "irrelevant-removal-steps": runs("fig5", steps=removed(150.0, 100.0)),
    "noisy-removal-steps": runs("fig5", steps=removed(150.0, 100.0)),
    "removal-many-patterns": runs("fig8", test_loss=removed(0.02, 0.02)),
    "background-removal": runs("spurious", test_error=about(lambda t: 0.1, 0.01)),
    "pruning-precision": runs("pruning", test_pruned_precision=about(alpha, 0.01)),
    "pruning-error": runs("pruning", test_error=lambda t, rng: 0.0, test_pruned_error=about(lambda t: 0.2)),
    "extensions-learn": runs(
        "variants", test_loss=lambda t, rng: float(t.network.skip or rng.random() < 0.05)
    ),
    "lucky-grow": runs("neurons", projection_curve=projections(0.02, 0.01, 0.01)),
    "lucky-square": runs(
        "neurons",
        projection_curve=along(lambda t: np.full((3, 5), 0.01 + 0.001 * t), 0.1),
        margin_curve=constant(0.1),
    ),
    "lucky-only": runs("neurons", projection_curve=projections(0.3, 0.2, 0.01)),
    "lucky-cross": bound(2.0),
    "lucky-norm": bound(2.0),
    "lucky-stay": runs("neurons", lucky_kept_curve=grown([1, 1], [0.5, 1])),
    "lucky-stay-signed": runs("neurons", lucky_kept_curve=grown([1, 1], [1, 0.9])),
    "lucky-gates": runs("neurons", gate_kept_curve=grown([1, 1], [0.5, 1])),
    "lucky-gates-signed": runs("neurons", gate_kept_curve=grown([1, 1], [1, 0.9])),
    "lucky-pull": runs(
        "neurons", value_pull_curve=constant(1e-4, 1e-4), pattern_logit_curve=constant(*[2.0] * 5)
    ),
    "unlucky-paper": bound(2.0),
    "unlucky-norm": bound(2.0),
    "unlucky-thesis": runs("neurons", projection_curve=projections(0.3, 0.01, 0.3)),
    "unlucky-pull": bound(2.0),
    "keys-aligned": runs("neurons", key_cosine_curve=grown(LENGTHS, [0.5] * 5)),
    "keys-elsewhere": runs("neurons", key_norm_curve=grown(LENGTHS, [2.0] * 5)),
    "keys-follow": runs(
        "neurons", key_norm_curve=grown(LENGTHS, [1.1] * 5), query_norm_curve=grown(LENGTHS, [2.0] * 5)
    ),
    "query-leak": runs("neurons", query_gain_curve=along(lambda t: np.ones((5, 5)))),
    "queries-turn": runs("neurons", query_gain_curve=along(lambda t: -np.ones((5, 5)) * t)),
    "values-grow": runs("neurons", value_norm_curve=grown(LENGTHS, [1.5] * 5)),
    "values-elsewhere": runs("neurons", value_norm_curve=grown(LENGTHS, [3.0] * 5)),
    "values-aligned": runs("neurons", value_growth_cosine_curve=grown([0, 0], [0.5, 0.5])),
    "output-growth": runs("neurons", margin_curve=along(lambda t: 0.01 * t, 0.1)),
}
