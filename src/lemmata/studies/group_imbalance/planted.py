"""For every claim, results on which it must come out `fails`: the opposite of what it says, made without training."""

from collections.abc import Callable

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.group_imbalance.claims import CLAIMS
from lemmata.studies.group_imbalance.figures import FIGURES, varied_value
from lemmata.study import Claim

Of = Callable[..., float]


def _results(figure: str, **variables: Callable) -> xr.Dataset:
    """Results of a figure in which every number has two per cent of noise; of a contraction, 1 - v has."""

    def noisy(name: str, make: Callable) -> Callable:
        def record(trial, rng) -> np.ndarray:
            value, factor = np.asarray(make(trial)), np.exp(0.02 * rng.normal())
            return np.asarray(1 - (1 - value) * factor if name == "contraction" else value * factor)

        return record

    given = {name: noisy(name, make) for name, make in variables.items()}
    return made(FIGURES[figure], {"critical_found": lambda trial, rng: 1.0, **given})


def _map(figure: str, critical: Of) -> xr.Dataset:
    """A success map with the given critical number of samples."""

    def spread(trial, rng) -> float:
        chance = 1 / (1 + (critical(trial) / trial.population.samples) ** 4)
        return 1e-6 if rng.random() < chance else 1.0

    return made(FIGURES[figure], {"init_spread": spread})


def _floor(size: Of) -> xr.Dataset:
    return _results(
        "noise",
        late_square=lambda t: size(t) ** 2 * (t.steps - t.steps // 2),
        floor_exact=lambda t: 1e-3,
        floor_bound=lambda t: 1e-3,
    )


def _groups(figure: str, size: Of, **more: Callable) -> xr.Dataset:
    """Both groups have the same excess risk, at the critical point and on the way; the labels have no entropy."""
    return _results(
        figure,
        group_excess=lambda t: np.full(2, size(t)),
        group_entropy=lambda t: np.zeros(2),
        group_excess_curve=lambda t: np.full((len(t.log_steps), 2), size(t)),
        **more,
    )


def _dk(trial) -> float:
    return trial.population.dim * trial.population.neurons / (2 * trial.population.samples)


ALONG: dict[str, Of] = {
    "fig4-6a": lambda t: t.population.spreads[1],
    "fig4-6b": lambda t: 1 + abs(t.population.shifts[1]),
    "fig4-7a": lambda t: t.population.fractions[1],
    "fig4-7b": lambda t: t.population.fractions[1],
}
"""What the figures on risks vary."""


def _risk(claim: Claim) -> xr.Dataset:
    """A risk that goes the other way; where a dip is claimed, one that only rises."""
    power = 1.0 if claim.predicted in ("falls", "above 0") else -1.0
    return _groups(claim.figure, lambda t: ALONG[claim.figure](t) ** power)


def _column(claim: Claim, prefix: str) -> xr.Dataset:
    """A row of Table 4.1 that goes the other way."""
    up = claim.value > 0 if claim.value is not None else claim.predicted == "rises"
    name = f"{prefix}_{claim.options['row']}"
    return _results(claim.figure, **{name: lambda t: varied_value(t) ** (-1.0 if up else 1.0)})


def _slow_rate(size: Of) -> Callable:
    return lambda t: 1 - 0.01 * size(t)


SINGLE: dict[str, Callable[[], xr.Dataset]] = {
    "linear-convergence": lambda: _results(
        "fig4-4a",
        distance_curve=lambda t: (1.0 + np.asarray(t.log_steps)) ** -1.5,
        distance=lambda t: 1e-7,
    ),
    "contraction-bound": lambda: _results(
        "fig4-4a", contraction=lambda t: 0.9, contraction_exact=lambda t: 0.8, distance=lambda t: 1e-10
    ),
    "contraction-exact": lambda: _results(
        "fig4-4a",
        contraction=lambda t: 0.5,
        contraction_exact=lambda t: 0.8,
        distance=lambda t: 1e-10,
        steps=lambda t: 1000,
        step_size=lambda t: 1.0,
        curvature_low=lambda t: 0.2,
        curvature_next=lambda t: 0.4,
    ),
    "rate-fisher": lambda: _results("fig4-4a", contraction=lambda t: 0.5, rate_sharp=lambda t: 0.1),
    "error-samples": lambda: _results("fig4-5b", error=lambda t: t.population.samples**-0.2),
    "error-constant": lambda: _results("fig4-5b", error=lambda t: 2.0, error_sharp=lambda t: 1.0),
    "risk-samples": lambda: _groups("fig4-5b", lambda t: t.population.samples**-0.2),
    "average-excess": lambda: _groups("fig4-6a", lambda t: 3 * _dk(t)),
    "group-excess": lambda: _groups("fig4-6a", lambda t: 3.0, group_sharp=lambda t: np.ones(2)),
    "noise-linear": lambda: _floor(lambda t: t.noise**0.5),
    "noise-samples": lambda: _floor(lambda t: t.noise),
    "noise-bound": lambda: _floor(lambda t: 0.01),
    "noise-exact": lambda: _floor(lambda t: 0.01),
    "samples-dimension": lambda: _map("fig4-2", lambda t: 16 * t.population.dim**2),
    "rate-neurons": lambda: _results("fig4-5a", contraction=_slow_rate(lambda t: 1 / t.population.neurons)),
    "samples-mean": lambda: _map("fig4-3a", lambda t: 6000 / (1 + t.population.shifts[0])),
    "samples-small-covariance": lambda: _map("fig4-3b", lambda t: 2500 * t.population.spreads[0] ** 0.6),
    "samples-large-covariance": lambda: _map("fig4-3b", lambda t: 2500 * t.population.spreads[0] ** -0.6),
    "rate-mean": lambda: _results("fig4-4a", contraction=_slow_rate(lambda t: t.population.shifts[0])),
    "rate-covariance": lambda: _results("fig4-4b", contraction=_slow_rate(lambda t: t.population.spreads[0])),
    "rate-covariance-at-one": lambda: _results(
        "fig4-4b", contraction=_slow_rate(lambda t: t.population.spreads[0])
    ),
    "lemma-c41": lambda: _results("lemmas", lemma_ratio=lambda t: 0.5),
    "lemma-c44": lambda: _results("lemmas", least_over_bound=lambda t: 0.5),
    "lemma-c44-mended": lambda: _results("lemmas", least_over_mended=lambda t: 0.5),
    "lemma-c44-upper": lambda: _results("fisher", bound_over_largest=lambda t: 0.5),
    "ball-low": lambda: _results("ball", ball_low=lambda t: 0.5),
    "ball-high": lambda: _results("ball", ball_high=lambda t: 2.0),
    "lipschitz-sample": lambda: _results("lipschitz", sample_change=lambda t: 2.0),
    "lipschitz-sample-mended": lambda: _results("lipschitz", sample_change_mended=lambda t: 2.0),
    "lipschitz-population": lambda: _results("lipschitz", population_change=lambda t: 2.0),
    "activation-linear": lambda: _results(
        "activations",
        distance_curve=lambda t: (1.0 + np.asarray(t.log_steps)) ** -1.5,
        distance=lambda t: 1e-7,
    ),
    "activation-error": lambda: _results("activations", error=lambda t: t.population.samples**-0.2),
    "activation-excess": lambda: _groups("activations", lambda t: 3 * _dk(t)),
    "table-samples-mean-small": lambda: _results("table-4-1", closed_samples=lambda t: 1.0),
    "tensor-basin": lambda: _results("tensor-easy", distance=lambda t: 1.0),
    "tensor-rate": lambda: _results("tensor-easy", contraction=lambda t: 0.5 if t.begin == "tensor" else 0.1),
    "far-start": lambda: _results("figC-1", final_loss=lambda t: 1e-5),
    "tensor-reported": lambda: _results("figC-1", relative_error=lambda t: 0.2),
}


def _planted(claim: Claim) -> Callable[[], xr.Dataset]:
    if claim.id in SINGLE:
        return SINGLE[claim.id]
    if claim.figure in ALONG:
        return lambda: _risk(claim)
    if claim.figure == "deviations":
        name = f"{claim.options['what']}_off"
        return lambda: _results("deviations", **{name: lambda t: t.population.samples**-0.1})
    return lambda: _column(claim, "closed" if claim.figure == "table-4-1" else "sharp")


PLANTED: dict[str, Callable[[], xr.Dataset]] = {claim.id: _planted(claim) for claim in CLAIMS}
