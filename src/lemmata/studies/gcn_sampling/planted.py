"""For every claim results that refute it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.gcn_sampling import theory
from lemmata.studies.gcn_sampling.figures import FIGURES

Made = Callable[[Any, np.random.Generator], Any]


def _case(figure: str, **variables: Made) -> Callable[[], xr.Dataset]:
    return lambda: made(FIGURES[figure], variables)


def _noisy(value: Callable[[Any], float], spread: float = 0.01) -> Made:
    return lambda t, rng: value(t) * rng.lognormal(0, spread)


def _falling(power: float) -> Made:
    """An error that falls as labels^-1/2, with a need that goes as the norm to a power."""
    return _noisy(lambda t: (theory.sizes_of(t).norm ** power / t.labels) ** 0.5)


def _with_width(power: float) -> Made:
    return _noisy(lambda t: (theory.sizes_of(t).norm ** power / t.width) ** 0.5)


def _number(t: Any) -> int:
    return {0.9: 1, 0.7: 2, 0.5: 3}[t.graph.target_scaling[0]]


def _datasets(figure: str, variable: str, best: int) -> Callable[[], xr.Dataset]:
    return _case(figure, **{variable: _noisy(lambda t: 1.0 if _number(t) == best else 2.0)})


def _moves(power: float) -> Made:
    return lambda t, rng: np.asarray(t.moves) ** power * rng.lognormal(0, 0.01)


def _rounds(value: float) -> Made:
    return lambda t, rng: value * rng.lognormal(0, 0.01, t.rounds)


PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "deviation-worst": _case("sampled", worst_deviation=_noisy(lambda t: (1 - t.rate) ** 0.5)),
    "labels-help": _case("fig5-1", error=_noisy(lambda t: 1.0 + t.labels / 1000)),
    "labels-norm": _case("fig5-1", error=_falling(-2.0)),
    "labels-norm-normalised": _case("fig5-1", normalised_error=_falling(-2.0)),
    "labels-degree": _case("fig5-1", error=_noisy(lambda t: (theory.sizes_of(t).norm ** 8.5 / t.labels) ** 0.5, 1e-3)),
    "width-helps": _case("fig5-2", error=_noisy(lambda t: 1.0 + t.width / 1000)),
    "width-norm": _case("fig5-2", error=_with_width(-2.0)),
    "width-norm-normalised": _case("fig5-2", normalised_error=_with_width(-2.0)),
    "labels-log-width": _case("labels-width", error=_noisy(lambda t: (t.width**0.6 / t.labels) ** 0.5)),
    "fig5-3a-raw": _datasets("fig5-3a", "error", 2),
    "fig5-3a-normalised": _datasets("fig5-3a", "normalised_error", 3),
    "fig5-3b-raw": _datasets("fig5-3b", "error", 2),
    "fig5-3b-normalised": _datasets("fig5-3b", "normalised_error", 3),
    "fig5-4a-raw": _datasets("fig5-4a", "error", 1),
    "fig5-4a-normalised": _datasets("fig5-4a", "normalised_error", 2),
    "fig5-4b-raw": _datasets("fig5-4b", "error", 1),
    "fig5-4b-normalised": _datasets("fig5-4b", "normalised_error", 2),
    "twin-vanishes": _case("twin", weight_gap=_noisy(lambda t: 0.3)),
    "twin-error": _case("twin", error=_noisy(lambda t: 0.6), twin_error=_noisy(lambda t: 0.5)),
    "chung-lu-vanishes": _case("chung-lu", weight_gap=_noisy(lambda t: 0.3)),
    "chung-lu-drift-w": _case("chung-lu", drift_w=_noisy(lambda t: 0.3)),
    "chung-lu-drift-v": _case("chung-lu", drift_v=_noisy(lambda t: 0.3)),
    "chung-lu-error": _case("chung-lu", error=_noisy(lambda t: 0.6), twin_error=_noisy(lambda t: 0.5)),
    "high-degree-first": _case("rates", weight_gap=_noisy(lambda t: 0.1 if t.training.rates[0] < 1 else 0.2)),
    "realisable-rate": _case("realisable", normalised_error=_noisy(lambda t: 0.1 + t.rates[0])),
    "smoothing-square": _case("near-start", smoothing=_moves(1.0)),
    "smoothing-bound": _case(
        "near-start", smoothing=_moves(0.0), norm=_noisy(lambda t: 1.0),
        largest_w=_noisy(lambda t: 1e-3), largest_v=_noisy(lambda t: 1e-3),
    ),
    "coupling-bound": _case("near-start", residual=_noisy(lambda t: 100.0), norm=_noisy(lambda t: 1.0)),
    "flips-bound": _case("near-start", turned_first=_noisy(lambda t: t.width)),
    "flips-second-bound": _case("near-start", turned_second=_noisy(lambda t: t.width), norm=_noisy(lambda t: 0.1)),
    "cross-terms": _case("near-start", cross_terms=_noisy(lambda t: 10.0), norm=_noisy(lambda t: 1.0)),
    "pseudo-network": _case("existence", endless_error=_noisy(lambda t: 0.2)),
    "pseudo-network-width": _case("existence", pseudo_error=_noisy(lambda t: t.width**-0.1)),
    "start-gaussian": _case("existence", gaussian_distance=_noisy(lambda t: 0.1)),
    "start-spread": _case("existence", spread=_noisy(lambda t: 3.0), norm=_noisy(lambda t: 1.0)),
    "start-indicators": _case("existence", disagreeing=_noisy(lambda t: 0.9)),
    "descent-alternative": _case("alternative", by_move=_rounds(0.5), by_decay=_rounds(0.1)),
    "rounds-descend": _case("alternative", growth=_rounds(0.1)),
    "no-negative-curvature": _case("curvature", lowest=_rounds(-0.01)),
    "decay-enough": _case(
        "curvature", by_decay=_rounds(0.5), objective=_rounds(0.5), norm=_noisy(lambda t: 0.7)
    ),
    "sampled-as-effective": _case(
        "samplers", normalised_error=_noisy(lambda t: 0.9 if t.sampler == "independent" else 0.5)
    ),
    "own-matrix-best": _case("samplers", normalised_error=_noisy(lambda t: 0.4 if t.sampler == "ladies" else 0.5)),
    "fastgcn-as-whole": _case("samplers", normalised_error=_noisy(lambda t: 0.9 if t.sampler == "fastgcn" else 0.5)),
    "practical-enough": _case("algorithm", normalised_error=_noisy(lambda t: 0.9 if t.mode == "practical" else 0.5)),
    "end-norm-w": _case("algorithm", learnt_w=_noisy(lambda t: 3.0)),
    "end-norm-v": _case("algorithm", learnt_v=_noisy(lambda t: 3.0)),
    "output-size": _case("algorithm", largest_output=_noisy(lambda t: 100.0), norm=_noisy(lambda t: 1.0)),
    "two-ways": _case(
        "agreement", error_curve=lambda t, rng: np.linspace(1, 0.5, len(t.log_steps)) + 1e-3 * (t.engine == "whole")
    ),
}  # fmt: skip
