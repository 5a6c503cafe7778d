"""For every claim results that refute it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.chain_of_thought.figures import FIGURES
from lemmata.studies.chain_of_thought.trials import Reasoning

Made = Callable[[Reasoning, np.random.Generator], Any]


def _case(figure: str, **variables: Made) -> Callable[[], xr.Dataset]:
    return lambda: made(FIGURES[figure], variables)


def _curve(error: Callable[[Reasoning, np.ndarray], np.ndarray]) -> Made:
    """An error over the lengths of the test, with a little noise."""
    return lambda t, rng: (
        error(t, np.asarray(t.test.lengths, float)) + rng.normal(0, 0.004, len(t.test.lengths))
    )


def _masses(matched: Callable[[Reasoning], float]) -> Made:
    return lambda t, rng: np.array([matched(t) + rng.normal(0, 1e-4), 0.1, 0.05, 0.05])


FLAT = _curve(lambda t, n: np.full(len(n), 0.4))
LOW = _curve(lambda t, n: 0.02 + 0 * n)

PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "attention-matches": _case(
        "fig7-3a", step_masses=lambda t, rng: np.full((len(t.test.lengths), t.data.steps), 0.7)
    ),
    "cot-to-zero": _case("fig7-3a", cot_error=FLAT),
    "cot-match": _case("fig7-3a", cot_error=_curve(lambda t, n: 0.1 + 0.5 * t.test.match_fraction + 0 * n)),
    "cot-trajectory": _case("fig7-3b", cot_error=_curve(lambda t, n: 0.1 + 0.5 * t.test.trajectory + 0 * n)),
    "cot-primacy": _case("fig7-3c", cot_error=_curve(lambda t, n: 0.1 + 0.5 * t.test.primacy + 0 * n)),
    "cot-length-match": _case(
        "fig7-3a", cot_error=_curve(lambda t, n: 0.1 * (0.3 * t.test.match_fraction**-4 / n) ** 4)
    ),
    "cot-length-trajectory": _case(
        "fig7-3b", cot_error=_curve(lambda t, n: 0.1 * (0.2 * t.test.trajectory**-4 / n) ** 2)
    ),
    "cot-vote": _case("fig7-3a", cot_error=FLAT),
    "icl-match": _case("fig7-4a", icl_error=_curve(lambda t, n: 0.1 + 0.5 * t.test.match_fraction + 0 * n)),
    "icl-trajectory": _case("fig7-4b", icl_error=_curve(lambda t, n: 0.1 + 0.5 * t.test.trajectory + 0 * n)),
    "icl-vote": _case("fig7-4a", icl_error=FLAT),
    "icl-fails": _case("fig7-5", icl_error=LOW),
    "icl-succeeds": _case("fig7-5", icl_error=FLAT),
    "cot-where-icl-fails": _case("fig7-5", cot_error=FLAT),
    "two-stages": _case("fig7-6", stage_one=lambda t, rng: 500, matched=lambda t, rng: 100),
    "stage-one-length": _case(
        "stage-one", stage_one=lambda t, rng: rng.lognormal(3, 0.05) * t.data.match_fraction**-3
    ),
    "span-printed": _case("span", cot_error=FLAT),
    "span-mended": _case("span", cot_error=FLAT),
    "outside-errs": _case("span", cot_error=LOW),
    "tail-steps": _case(
        "tail",
        masses=_masses(
            lambda t: 1 - (t.data.steps * t.data.patterns / (6 * t.descent.learning_rate * t.steps)) ** 0.5
        ),
    ),
    "tail-constant": _case(
        "tail",
        masses=_masses(lambda t: 1 - (2 * t.data.patterns / (t.descent.learning_rate * t.steps)) ** 0.5),
    ),
    "sums-conserved": _case("agreement", drift=lambda t, rng: 1e-3),
    "two-ways": _case(
        "agreement",
        loss_curve=lambda t, rng: np.linspace(1, 0, len(t.log_steps)) + 1e-3 * (t.simulator == "tokens"),
    ),
}
