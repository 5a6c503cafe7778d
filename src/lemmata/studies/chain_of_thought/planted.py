"""For every claim results that refute it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.chain_of_thought.figures import FIGURES

Made = Callable[[Any, np.random.Generator], Any]


def _case(figure: str, **variables: Made) -> Callable[[], xr.Dataset]:
    return lambda: made(FIGURES[figure], variables)


def _curve(error: Callable[[Any, np.ndarray], np.ndarray]) -> Made:
    """An error over the lengths of the test, with a little noise."""
    return lambda t, rng: (
        error(t, np.asarray(t.test.lengths, float)) + rng.normal(0, 0.004, len(t.test.lengths))
    )


def _over_steps(value: Callable[[Any, np.ndarray], Any]) -> Made:
    """A number, or several, at every logged step."""
    return lambda t, rng: np.asarray(value(t, np.asarray(t.log_steps, float)), float)


def _rising(name: str) -> Made:
    """An error that rises with a field of the test instead of falling."""
    return _curve(lambda t, n: 0.1 + 0.5 * getattr(t.test, name) + 0 * n)


def _too_steep(name: str, constant: float) -> Made:
    """An error that passes 0.1 at a length that grows as the fourth power of 1/value."""
    return _curve(lambda t, n: 0.1 * (constant * getattr(t.test, name) ** -4 / n) ** 2)


def _matching(p: Callable[[Any, np.ndarray], np.ndarray]) -> Made:
    """Four masses along training, of which the first is given."""

    def four(t: Any, step: np.ndarray) -> np.ndarray:
        first = p(t, np.maximum(step, 1))
        return np.stack([first, *[(1 - first) / 3] * 3], axis=-1)

    return _over_steps(four)


def _loss(time: Callable[[Any], float], power: float = 1.0) -> Made:
    """A loss that falls as a power of the steps, with a little noise."""

    def falling(t: Any, rng: np.random.Generator) -> np.ndarray:
        step = np.maximum(np.asarray(t.log_steps, float), 0.5)
        return (time(t) / step) ** power * rng.lognormal(0, 0.02)

    return falling


def _pulls(size: float) -> dict[str, Made]:
    """Gradients far from every bound, at a middling attention."""
    return {
        "pulls_curve": _over_steps(lambda t, step: np.full((len(step), 4), size)),
        "moments_curve": _over_steps(lambda t, step: np.tile(0.5 ** np.arange(1, 4), (len(step), 1))),
    }


def _layers(first: tuple[float, ...]) -> Made:
    """Masses of every layer and head at every logged step, the same in all but the first layer."""

    def one(t: Any, step: np.ndarray) -> np.ndarray:
        masses = np.tile(np.array([0.97, 0.01, 0.01, 0.01]), (len(step), t.layers, t.heads, 1))
        masses[:, 0] = first
        return masses

    return _over_steps(one)


FLAT = _curve(lambda t, n: np.full(len(n), 0.4))
LOW = _curve(lambda t, n: 0.02 + 0 * n)
NOISY = _curve(lambda t, n: 0.1 + 0.3 * (t.test.noise + t.data.noise) + 0 * n)

PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "attention-matches": _case(
        "fig7-3a", step_masses=lambda t, rng: np.full((len(t.test.lengths), t.data.steps), 0.7)
    ),
    "cot-to-zero": _case("fig7-3a", cot_error=FLAT),
    "cot-match": _case("fig7-3a", cot_error=_rising("match_fraction")),
    "cot-trajectory": _case("fig7-3b", cot_error=_rising("trajectory")),
    "cot-primacy": _case("fig7-3c", cot_error=_rising("primacy")),
    "cot-length-match": _case("fig7-3a", cot_error=_too_steep("match_fraction", 0.2)),
    "cot-length-trajectory": _case("fig7-3b", cot_error=_too_steep("trajectory", 0.4)),
    "cot-length-primacy": _case("fig7-3c", cot_error=_too_steep("primacy", 0.3)),
    "cot-vote": _case("fig7-3a", cot_error=FLAT),
    "icl-match": _case("fig7-4a", icl_error=_rising("match_fraction")),
    "icl-trajectory": _case("fig7-4b", icl_error=_rising("trajectory")),
    "icl-primacy": _case("fig7-4c", icl_error=_rising("primacy")),
    "icl-length-match": _case("fig7-4a", icl_error=_too_steep("match_fraction", 0.2)),
    "icl-length-primacy": _case("fig7-4c", icl_error=_too_steep("primacy", 0.3)),
    "icl-vote": _case("fig7-4a", icl_error=FLAT),
    "icl-fails": _case("fig7-5", icl_error=LOW),
    "icl-limit": _case("fig7-5", icl_error=LOW),
    "icl-succeeds": _case("fig7-5", icl_error=FLAT),
    "cot-where-icl-fails": _case("fig7-5", cot_error=FLAT),
    "last-step-where-icl-fails": _case("fig7-5", last_step_error=FLAT),
    "two-stages": _case("fig7-6", stage_one=lambda t, rng: 500, matched=lambda t, rng: 100),
    "stage-one-exponent": _case(
        "stage-one", stage_one=lambda t, rng: rng.lognormal(3, 0.05) * t.data.match_fraction**-3
    ),
    "growth-bound": _case(
        "iterations",
        step_gap_curve=_over_steps(lambda t, step: 0.001 * step),
        moments_curve=_pulls(0)["moments_curve"],
    ),
    "gradient-same-same": _case("iterations", **_pulls(1.0)),
    "gradient-other-same": _case("iterations", **_pulls(1.0)),
    "gradient-same-other": _case("iterations", **_pulls(1.0)),
    "gradient-other-other": _case("iterations", **_pulls(1.0)),
    "late-same-same": _case("iterations", **_pulls(0.0)),
    "late-other-same": _case("iterations", **_pulls(1.0)),
    "late-same-other": _case("iterations", **_pulls(1.0)),
    "late-other-other": _case("iterations", **_pulls(1.0)),
    "iterations-loss": _case("iterations", loss_curve=_loss(lambda t: 0.005, 0.5)),
    "iterations-patterns": _case("iterations", loss_curve=_loss(lambda t: 0.0005 * t.data.patterns**2)),
    "iterations-steps": _case(
        "iterations", loss_curve=_loss(lambda t: 0.01 * t.data.patterns * t.data.steps)
    ),
    "tail-steps": _case(
        "iterations",
        masses_curve=_matching(
            lambda t, step: 1 - (t.data.steps * t.data.patterns / (6 * t.descent.learning_rate * step)) ** 0.5
        ),
    ),
    "tail-constant": _case(
        "iterations",
        masses_curve=_matching(
            lambda t, step: 1 - (2 * t.data.patterns / (t.descent.learning_rate * step)) ** 0.5
        ),
    ),
    "span-printed": _case("span", cot_error=FLAT),
    "span-mended": _case("span", cot_error=FLAT),
    "outside-errs": _case("span", cot_error=LOW),
    "vote-straight": _case("span", cot_error=FLAT),
    "vote-rotated": _case("span", cot_error=FLAT),
    "noise-harmless": _case("noise", cot_error=NOISY),
    "noise-unchanged": _case("noise", cot_error=NOISY),
    "training-noise-harmless": _case("training-noise", cot_error=NOISY),
    "layers-concentrate": _case("fig7-7", masses_curve=_layers((0.3, 0.5, 0.1, 0.1))),
    "sinusoids-concentrate": _case("figF-1", masses_curve=_layers((0.3, 0.5, 0.1, 0.1))),
    "sinusoids-lower": _case("figF-1", masses_curve=_layers((0.3, 0.5, 0.1, 0.1))),
    "classes-follow": _case(
        "classes",
        masses_curve=_matching(lambda t, step: 0.5 + 0.2 * (t.simulator == "classes") + 0 * step),
    ),
    "sums-conserved": _case("agreement", drift=lambda t, rng: 1e-3),
    "two-ways": _case(
        "agreement",
        loss_curve=lambda t, rng: np.linspace(1, 0, len(t.log_steps)) + 1e-3 * (t.simulator == "tokens"),
    ),
}
