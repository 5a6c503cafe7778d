"""For every claim, results on which it must come out `fails`: records made by a wrong law, without training."""

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.status import CAPPED
from lemmata.studies.benign_overfitting import theory
from lemmata.studies.benign_overfitting.figures import FIGURES

Make = Callable[[Any, np.random.Generator], Any]


def _planted(figure: str, seeds: int | None = None, **variables: Any) -> Callable[[], xr.Dataset]:
    """Results of a figure at quick scale; a variable is a number for all runs or a function of trial and generator."""

    def make(value: Any) -> Make:
        return value if callable(value) else lambda trial, rng: value

    return lambda: made(FIGURES[figure], {name: make(v) for name, v in variables.items()}, "quick", seeds)


def noisy(law: Callable[[Any], float], spread: float = 0.02) -> Make:
    return lambda trial, rng: law(trial) * np.exp(spread * rng.normal())


def loss_beyond(critical: Callable[[Any], float]) -> Make:
    """A test loss that falls from log 2 to nearly 0 where the SNR passes a critical value."""

    def loss(trial: Any, rng: np.random.Generator) -> float:
        return log(2) / (1 + (trial.data.snr / critical(trial)) ** 8) * np.exp(0.02 * rng.normal())

    return loss


def wins_beyond(critical: Callable[[Any], float]) -> Make:
    """The signal wins from a critical value of N SNR^2 on."""
    return lambda trial, rng: float(trial.data.control > critical(trial) * np.exp(0.05 * rng.normal()))


def attention_on(share: float, key: int) -> np.ndarray:
    """Attention of all queries alike: this share on one kind of key, the rest on the others."""
    return np.where(np.arange(3) == key, share, (1 - share) / 2) * np.ones((3, 1))


def _mean_field(trial: Any) -> float:
    return theory.critical_control(trial.data.noise_ratio)


def _with_curves(curve: Callable[[Any, np.ndarray], np.ndarray], **more: Any) -> dict[str, Any]:
    """A curve of the signal's value over the logged steps, with the clock's times."""

    def value(trial: Any, rng: np.random.Generator) -> np.ndarray:
        return curve(trial, np.asarray(trial.log_steps, float))

    def time(trial: Any, rng: np.random.Generator) -> np.ndarray:
        return theory.clock(trial)[list(trial.log_steps)]

    return {"signal_value_curve": value, "time_curve": time, **more}


def _slow_line(trial: Any, step: np.ndarray) -> np.ndarray:
    """Half of the line that B(t) puts under the signal's value."""
    s = theory.setting(trial)
    return theory.linear_value_bounds(s)[0] / s.learning_rate * theory.clock(trial)[step.astype(int)] / 2


def steps_to_losses(power: float) -> Make:
    """Steps to each loss level that go as a power of the level."""
    return lambda trial, rng: (
        100 * np.array([0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001]) ** power * np.exp(0.02 * rng.normal())
    )


def _wrong_reduction() -> xr.Dataset:
    """The Gram form drifts from the weights by a millionth of a per cent."""

    def off(trial: Any) -> float:
        return 1 + 1e-8 * (trial.simulator == "gram")

    return _planted(
        "agreement",
        train_loss_curve=lambda trial, rng: off(trial) * np.linspace(0.7, 0.1, len(trial.log_steps)),
        test_loss=lambda trial, rng: 0.2 * off(trial),
    )()


FLOOD = _planted("fig1", test_loss=0.5, fresh_noise_value=2.0, query_norm_change=100.0, key_norm_change=2.0)
"""Figure 1 with a test loss of 0.5, loud fresh noise and norms that grow a hundredfold in every cell."""
NEVER = {"signal_leads": -1, "signal_lead_steps": 0}
EARLY_LOSS = {"slope_leaves": 100, "steps": 5000}

PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "benign-generalises": FLOOD,
    "harmful-fits-but-fails": _planted("fig1", test_loss=0.05),
    "harmful-loss-floor": _planted("fig1", test_loss=0.2),
    "boundary-exponent": _planted("fig1", test_loss=loss_beyond(lambda t: 40 / t.data.samples)),
    "winner-exponent": _planted("fig1", signal_wins=wins_beyond(lambda t: 1600 / t.data.samples)),
    "boundary-constant": _planted("fig1", test_loss=loss_beyond(lambda t: (100 / t.data.samples) ** 0.5)),
    "paper-curve": FLOOD,
    "mean-field-curve": FLOOD,
    "feedback-curve": _planted("fig1", signal_wins=wins_beyond(lambda t: 300.0)),
    "lead-in-fig1": _planted("fig1", **NEVER),
    "norms-in-fig1": FLOOD,
    "fresh-noise-in-fig1": FLOOD,
    "quiet-noise-in-fig1": _planted("fig1", quiet_fraction=0.1),
    "small-margin-in-fig1": _planted("fig1", small_margin_fraction=0.1),
    "benign-attention": _planted("fig3", attention=attention_on(0.5, 0)),
    "harmful-attention": _planted("fig4", attention=attention_on(0.5, 1)),
    "benign-values": _planted("fig3", signal_wins=0.75),
    "harmful-values": _planted("fig4", signal_wins=0.25),
    "benign-linear": _planted("fig3", **_with_curves(lambda t, step: np.expm1(step / 30)), **EARLY_LOSS),
    "benign-logarithmic": _planted("fig3", **_with_curves(lambda t, step: 1e-3 * step), **EARLY_LOSS),
    "stage-order-in-fig3": _planted("fig3", signal_leads=200, **EARLY_LOSS),
    "norms-in-fig3": _planted("fig3", query_norm_change=1.1, key_norm_change=10.0),
    "time-signal": _planted("time-benign", steps=noisy(lambda t: 1e6 / t.data.signal_norm)),
    "time-eps-benign": _planted("time-benign", loss_steps=steps_to_losses(-0.5)),
    "time-constant-benign": _planted("time-benign", steps=1e5, readout_square=noisy(lambda t: 1 / 768)),
    "time-samples": _planted("time-harmful", steps=noisy(lambda t: 100 * t.data.samples**2)),
    "time-eps-harmful": _planted("time-harmful", loss_steps=steps_to_losses(-0.5)),
    "time-constant-harmful": _planted("time-harmful", steps=1e5, readout_square=noisy(lambda t: 1 / 768)),
    "theorem-benign-loss": _planted("theorem-benign", test_loss=noisy(lambda t: 0.3)),
    "theorem-benign-power": _planted("theorem-benign", test_loss=noisy(lambda t: t.descent.target_loss)),
    "theorem-benign-time": _planted("theorem-benign", steps=noisy(lambda t: 3000, 1e-4)),
    "step-schedule": _planted(
        "theorem-benign", test_loss=noisy(lambda t: t.descent.target_loss * t.ramp_steps**0.2)
    ),
    "theorem-fresh-attention": _planted("theorem-benign", least_signal_attention=0.2),
    "theorem-fresh-noise": _planted("theorem-benign", fresh_noise_value=1.5),
    "theorem-norms": _planted("theorem-benign", query_norm_change=5.0, key_norm_change=1.0),
    "theorem-harmful-loss": _planted("theorem-harmful", test_loss=0.15),
    "theorem-harmful-time": _planted("theorem-harmful", steps=noisy(lambda t: 3000, 1e-4)),
    "theorem-harmful-stage1": _planted("theorem-harmful", noise_leads=-1),
    "theorem-quiet-noise": _planted("theorem-harmful", quiet_fraction=0.4),
    "theorem-small-margin": _planted("theorem-harmful", small_margin_fraction=0.4),
    "harmful-leak-signal": _planted("theorem-harmful", attention=attention_on(0.1, 1)),
    "harmful-leak-noise": _planted("theorem-harmful", attention=attention_on(0.1, 1)),
    "stage-order": _planted("literal-constants", signal_leads=200, **EARLY_LOSS),
    "stage1-bound": _planted("literal-constants", signal_leads=-1),
    "benign-linear-bounds": _planted(
        "literal-constants", **_with_curves(_slow_line, signal_leads=0, slope_leaves=3000)
    ),
    "lead-lasts": _planted("literal-constants", signal_leads=100, signal_lead_steps=500),
    "asymptotic-constant": _planted(
        "asymptotic-boundary", signal_wins=wins_beyond(lambda t: 2 * _mean_field(t))
    ),
    "feedback-constant": _planted("asymptotic-boundary", signal_wins=wins_beyond(_mean_field)),
    "feedback-scale": _planted("feedback", signal_wins=wins_beyond(lambda t: 1.3 * _mean_field(t))),
    "leak-signal": _planted("attention-leak", attention=lambda t, rng: attention_on(0.9, 0)),
    "leak-noise": _planted("attention-leak", attention=lambda t, rng: attention_on(0.9, 0)),
    "attention-speeds-values": _planted("arms", steps=noisy(lambda t: 500 + 500 * t.descent.attention_rate)),
    "attention-speeds-noise": _planted("arms", steps=noisy(lambda t: 500 + 500 * t.descent.attention_rate)),
    "values-drive-attention": _planted(
        "arms", attention=lambda t, rng: attention_on(0.9 - 0.5 * t.value_rate, 0)
    ),
    "values-drive-noise": _planted(
        "arms", attention=lambda t, rng: attention_on(0.9 - 0.5 * t.value_rate, 1)
    ),
    "ratio-exponent": _planted(
        "noise-ratio", test_loss=loss_beyond(lambda t: (20 * t.data.noise_ratio / t.data.samples) ** 0.5)
    ),
    "ratio-exponent-winner": _planted(
        "noise-ratio", signal_wins=wins_beyond(lambda t: 20 * t.data.noise_ratio)
    ),
    "needs-strong-token": _planted(
        "no-strong-token", test_loss=0.6, noise_share=noisy(lambda t: 0.6), status=CAPPED
    ),
    "rival-exponent": _planted(
        "rival-transformer", test_loss=loss_beyond(lambda t: (2 / t.data.samples) ** (1 / 3))
    ),
    "rival-network": _planted(
        "rival-convolution", test_loss=loss_beyond(lambda t: (2 / t.data.samples) ** 0.5)
    ),
    "exact-reductions": _wrong_reduction,
}
