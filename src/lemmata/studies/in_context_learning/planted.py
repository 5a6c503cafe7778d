"""For every claim results that refute it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.in_context_learning.figures import FIGURES
from lemmata.studies.in_context_learning.trials import DIRECTIONS, NORMS, ORDERS

NEURONS = 60
Made = Callable[[Any, np.random.Generator], Any]


def _case(figure: str, **variables: Made) -> Callable[[], xr.Dataset]:
    return lambda: made(FIGURES[figure], variables)


def _grid(value: Callable[[Any, float, int], float], kinds: bool = False, spread: float = 0.002) -> Made:
    """A test over fractions and lengths, with a little noise."""

    def record(trial: Any, rng: np.random.Generator) -> np.ndarray:
        test = trial.test
        found = np.array([[value(trial, f, n) for n in test.lengths] for f in test.fractions])
        found = found + rng.normal(0, spread, found.shape)
        return np.stack([found] * len(test.kinds)) if kinds else found

    return record


def _flat(value: float, kinds: bool = False) -> Made:
    return _grid(lambda t, f, n: value, kinds)


def _sums(value: Callable[[float], float]) -> Made:
    def record(trial: Any, rng: np.random.Generator) -> np.ndarray:
        row = np.array([value(s) for s in trial.test.sums])
        return np.stack([row + rng.normal(0, 0.002, len(row)) for _ in trial.test.kinds])

    return record


def _norms(own: float) -> Made:
    """Projections that end at `own` of a length of 1, from 1 at the start."""

    def record(trial: Any, rng: np.random.Generator) -> np.ndarray:
        curve = np.linspace(1, own + rng.normal(0, 0.001), len(trial.log_steps))
        rows = np.stack([np.ones_like(curve), curve, np.ones_like(curve), curve], -1)
        assert rows.shape[-1] == len(NORMS)
        return np.stack([rows] * len(trial.test.kinds), 1)

    return record


def _directions(**values: float) -> Made:
    numbers = {"own": 0.6, "partner": -0.01, "other": 0.001, "irrelevant": 0.0001} | values
    return lambda t, rng: np.array([numbers[d] for d in DIRECTIONS]) * rng.normal(1, 0.01)


def _neurons(value: float) -> Made:
    return lambda t, rng: np.full((len(t.log_steps), t.neurons), value) + rng.normal(0, 1e-3, t.neurons)


def _lengths_of_rows(t: Any, rng: np.random.Generator) -> np.ndarray:
    """A fifth of the neurons small."""
    rows = np.where(np.arange(t.neurons) < t.neurons // 5, 0.1, 2.0)
    return np.tile(rows, (len(t.log_steps), 1)) + rng.normal(0, 1e-3, t.neurons)


def _aligned(feature: float, label: float) -> dict[str, Made]:
    return {
        "feature_size_curve": _lengths_of_rows,
        "label_size_curve": _lengths_of_rows,
        "feature_cosine_curve": _neurons(feature),
        "label_cosine_curve": lambda t, rng: np.full((len(t.log_steps), t.neurons), label),
        "sign": lambda t, rng: np.ones(t.neurons),
    }


def _sizes(small: float, large: float, share: float = 0.2) -> Made:
    def record(t: Any, rng: np.random.Generator) -> np.ndarray:
        rows = np.where(np.arange(NEURONS) < share * NEURONS, small, large)
        return np.sort(rows * rng.uniform(0.9, 1.1, NEURONS))

    return record


def _pruned(value: Callable[[str, float, float], float]) -> Made:
    def record(t: Any, rng: np.random.Generator) -> np.ndarray:
        found = [[[value(o, f, r) for r in t.prune_rates] for f in t.test.fractions] for o in ORDERS]
        return np.array(found) + rng.normal(0, 1e-3, (len(ORDERS), len(t.test.fractions), 1))

    return record


def _falls_at(step: Callable[[Any], float]) -> Made:
    """A hinge loss that falls from 1 to 0 around a step."""

    def record(t: Any, rng: np.random.Generator) -> np.ndarray:
        middle = step(t) * rng.lognormal(0, 0.02)
        return 1 / (1 + (np.asarray(t.log_steps, float) / middle) ** 6)

    return record


def _of_method(own: float, others: float) -> Made:
    """An error that passes 5 % at a length of its own for the layer and for the classic learners."""
    return _grid(lambda t, f, n: 0.05 * ((own if t.name.endswith("layer") else others) / n) ** 3, spread=0.0)


def _of_method_out(own: float, others: float) -> Made:
    return _grid(lambda t, f, n: 0.05 * ((own if t.name.endswith("layer") else others) / n) ** 3, True, 0.0)


def _learnt_from(length: Callable[[Any], float]) -> Made:
    """A hinge loss that is small from a training prompt length on."""
    return lambda t, rng: np.array([[0.01 if t.data.examples > length(t) * rng.lognormal(0, 0.2) else 0.5]])


def _followed(**curves: Any) -> Callable[[], xr.Dataset]:
    """A run that keeps learning, on which all of Lemmas E.4.5 to E.4.7 hold but for what is given."""
    numbers = {
        "zeta": 0.01, "gamma": 0.5, "value_lucky": 10.0, "value_opposite": 0.01, "value_rest": 0.01,
        "value_irrelevant": 0.001, "neuron_growth": 5.0, "neuron_norm": 5.0, "neuron_irrelevant": 0.001,
    } | {name: value for name, value in curves.items() if name not in ("query", "key")}  # fmt: skip
    moved = {
        name: {"own": 1.0, "partner": 0.01, "other": 0.001, "irrelevant": 0.001} for name in ("query", "key")
    }

    def scalar(value: float) -> Made:
        return lambda t, rng: np.full(len(t.log_steps), value) * rng.uniform(0.99, 1.01)

    def along(values: dict[str, float]) -> Made:
        row = np.array([values[d] for d in DIRECTIONS])
        return lambda t, rng: np.tile(row, (len(t.log_steps), 1)) * rng.uniform(0.99, 1.01)

    made_up = {f"{name}_curve": scalar(value) for name, value in numbers.items()}
    for name, values in moved.items():
        made_up[f"{name}_update_curve"] = along(values | curves.get(name, {}))
    return _case("lemmas", now_hinge_curve=scalar(0.5), **made_up)


def _clean(trial: Any, rng: np.random.Generator) -> np.ndarray:
    return np.tile([[0.0, 0.0]], (len(trial.test.sums), 1))


PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "in-domain": _case("fig6-2", hinge=_flat(0.3)),
    "out-of-domain": _case("fig6-2", ood_hinge=_flat(0.3, True)),
    "out-of-domain-apart": _case("fig6-2", ood_hinge=_flat(0.3, True)),
    "out-of-domain-shifts": _case("fig6-2", ood_hinge=_flat(0.3, True)),
    "out-of-domain-sums": _case("fig6-2", ood_hinge=_flat(0.3, True)),
    "out-of-domain-sums-shifts": _case("fig6-2", ood_hinge=_flat(0.3, True)),
    "attention": _case("fig6-2", mass=_flat(0.5)),
    "attention-partners": _case("fig6-2", ood_mass=_flat(0.5, True)),
    "attention-apart": _case("fig6-2", ood_mass=_flat(0.5, True)),
    "projection-grows": _case("fig6-2", now_ood_norms_curve=_norms(1.0)),
    "projection-close": _case("fig6-2", now_ood_norms_curve=_norms(0.5)),
    "own-component": _case("fig6-2", key_worst=_directions(own=0.05)),
    "partner-component": _case("fig6-2", key_worst=_directions(partner=0.3)),
    "other-component": _case("fig6-2", key_worst=_directions(other=0.3)),
    "irrelevant-component": _case("fig6-2", key_worst=_directions(irrelevant=0.1)),
    "partner-balance": _case("fig6-2", key_parts=_directions()),
    "feature-alignment": _case("fig6-2", **_aligned(0.7, 0.99)),
    "label-alignment": _case("fig6-2", **_aligned(0.99, -0.99)),
    "feature-angle": _case("fig6-2", **_aligned(0.7, 0.99)),
    "label-angle": _case("fig6-2", **_aligned(0.99, 0.7)),
    "lucky-active": _case("fig6-2", lucky_idle=lambda t, rng: 0.3),
    "lucky-own-active": _case("fig6-2", lucky_own_idle=lambda t, rng: 0.3),
    "output-superlinear": _case(
        "fig6-2", now_hinge_curve=lambda t, rng: 1 - 0.003 * np.asarray(t.log_steps, float) ** 0.9
    ),
    "output-cubic": _case(
        "fig6-2", now_hinge_curve=lambda t, rng: 1 - np.minimum(1, (np.asarray(t.log_steps, float) / 600) ** 6)
    ),
    "gpt2-beyond-one": _case("fig6-3", sum_error=_sums(lambda s: 0.2)),
    "gpt2-below-one": _case("fig6-3", sum_error=_sums(lambda s: 0.005)),
    "layer-beyond-one": _case("fig6-3", sum_error=_sums(lambda s: 0.2)),
    "layer-below-one": _case("fig6-3", sum_error=_sums(lambda s: 0.005)),
    "sum-matters": _case("fig6-3", sum_hinge=_sums(lambda s: 0.3 + 0.1 * s)),
    "sum-enough": _case("fig6-3", sum_hinge=_sums(lambda s: 0.3), hinge=_flat(0.0)),
    "sum-enough-apart": _case("fig6-3", sum_hinge=_sums(lambda s: 0.3), hinge=_flat(0.0)),
    "effective-output": _case(
        "fig6-3", clean_output=_clean, sizes=_sizes(0.1, 2.0), feature_response=lambda t, rng: np.ones(60),
        label_response=lambda t, rng: np.where(np.arange(60) % 2, 1.5, -1.5),
        sign=lambda t, rng: np.where(np.arange(60) % 2, 1.0, -1.0),
    ),
    "gpt2-fraction": _case("fig6-3", error=_grid(lambda t, f, n: 0.1 + 0.2 * f)),
    "gpt2-fraction-out": _case("fig6-3", ood_error=_grid(lambda t, f, n: 0.1 + 0.2 * f, True)),
    "test-length": _case("fig6-3", error=_grid(lambda t, f, n: 0.05 * (0.8 * f**-3 / n) ** 3)),
    "vote": _case("fig6-3", error=_flat(0.3)),
    "icl-robust": _case("fig6-4", error=_of_method(14.0, 5.0)),
    "icl-even": _case("fig6-4", error=_of_method(3.0, 20.0)),
    "icl-robust-out": _case("fig6-4", ood_error=_of_method_out(14.0, 5.0)),
    "small-share": _case("fig6-5", sizes=_sizes(0.1, 2.0, 0.6)),
    "small-size": _case("fig6-5", sizes=_sizes(0.5, 3.0)),
    "large-size": _case("fig6-5", sizes=_sizes(0.01, 0.2)),
    "prune-small": _case("fig6-5", sizes=_sizes(0.1, 2.0), pruned_hinge=_pruned(lambda o, f, r: r)),
    "prune-order": _case("fig6-5", pruned_hinge=_pruned(lambda o, f, r: r * (o == "smallest first"))),
    "prune-large": _case("fig6-5", pruned_hinge=_pruned(lambda o, f, r: 0.1 * r)),
    "prune-large-printed": _case("fig6-5", pruned_hinge=_pruned(lambda o, f, r: 0.3 * r)),
    "prune-fraction": _case("fig6-5", pruned_hinge=_pruned(lambda o, f, r: r + 0.2 * f)),
    "length-alpha": _case(
        "figE-1-length",
        hinge=_learnt_from(lambda t: 0.3 * t.data.relevant_fraction**-2.5),
    ),
    "steps-alpha": _case("figE-1-steps", now_hinge_curve=_falls_at(lambda t: 40 * t.data.relevant_fraction**-1.2)),
    "steps-beta": _case("beta", now_hinge_curve=_falls_at(lambda t: 600 * t.data.pattern_norm**-2)),
    "steps-patterns": _case("patterns", now_hinge_curve=_falls_at(lambda t: 20 * t.data.relevant**2)),
    "query-update": _followed(query={"own": 1e-4}),
    "key-update": _followed(key={"own": 1e-4}),
    "query-update-partner": _followed(query={"partner": 0.5}),
    "key-update-partner": _followed(key={"partner": 0.5}),
    "query-update-other": _followed(query={"other": 0.5}),
    "key-update-other": _followed(key={"other": 0.5}),
    "query-update-irrelevant": _followed(query={"irrelevant": 0.1}),
    "key-update-irrelevant": _followed(key={"irrelevant": 0.1}),
    "value-lucky": _followed(value_lucky=0.5),
    "value-opposite": _followed(value_opposite=0.5),
    "value-rest": _followed(value_rest=2.0),
    "value-irrelevant": _followed(value_irrelevant=0.5),
    "neuron-growth": _followed(neuron_growth=0.001),
    "neuron-norm": _followed(neuron_norm=0.01),
    "neuron-irrelevant": _followed(neuron_irrelevant=0.5),
    "tasks-suffice": _case("figE-2", error=_flat(0.2)),
    "tasks-needed": _case("figE-2", error=_flat(0.0)),
    "heads": _case("variants", head_mass=lambda t, rng: np.full(t.heads, 0.4)),
    "variants-learn": _case("variants", error=_flat(0.2)),
    "sum-conserved": _case("agreement", key_drift=lambda t, rng: 1e-3),
    "two-ways": _case(
        "agreement",
        now_hinge_curve=lambda t, rng: np.linspace(1, 0, len(t.log_steps)) + 1e-3 * (t.simulator == "tokens"),
        sizes=lambda t, rng: np.ones(t.neurons),
    ),
}  # fmt: skip
