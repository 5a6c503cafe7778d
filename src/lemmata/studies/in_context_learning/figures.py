"""The document's figures, and the experiments that its theorems ask for."""

from math import ceil, log
from typing import Any

import xarray as xr

from lemmata.bench.baselines import Learnt
from lemmata.results import trials
from lemmata.studies.in_context_learning import pictures
from lemmata.studies.in_context_learning.trials import (
    DIRECTIONS,
    NORMS,
    ORDERS,
    Classic,
    Layer,
    Stack,
    Testing,
)
from lemmata.study import Figure, Scale, by_scale
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put_all

RATES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
SUMS = (-1.2, -0.9, -0.6, -0.3, 0.0, 0.3, 0.6, 0.8, 1.0, 1.1, 1.2, 1.28)
LOGGED = (*range(0, 200, 4), *range(200, 801, 25))
LENGTHS = (1, 2, 3, 5, 8, 12, 20)
VOTES = 8000  # prompts a test, so that the law of the vote can be told from others within 2 points


def template() -> Layer:
    """Section 6.5: d_X = d_Y = 30, beta = 3, M_1 = 6, M_2 = 24, alpha = alpha' = 0.8, 20 contexts, six training tasks."""
    return Layer()


def complete(results: xr.Dataset) -> xr.Dataset:
    """Names of kinds, fractions, lengths, coefficient sums, pruning orders and rates, projections and directions."""
    found = trials(results)
    one = next((t for t in found if isinstance(t, Layer)), found[0])
    assert isinstance(one, Layer | Stack | Classic)
    test = one.test
    labels: dict[str, Any] = {
        "kind": test.kinds, "fraction": test.fractions, "length": test.lengths, "sum": test.sums, "order": ORDERS,
        "norm": NORMS, "direction": DIRECTIONS, "given": (1, -1),
    }  # fmt: skip
    if isinstance(one, Layer):
        labels["rate"] = one.prune_rates
    known = {dim: list(names) for dim, names in labels.items() if dim in results.dims}
    return results.assign_coords(known)


def small(trial: Layer) -> Layer:
    """A trial shrunk for tests."""
    changes = {
        "descent.steps": 60,
        "descent.logs": 5,
        "descent.log_at": (),
        "watched": 24,
        "test.prompts": 40,
        "descent.batch": 24,
    }
    return put_all(trial, changes)


def _scaled(trial: Layer, scale: Scale) -> Layer:
    if scale == "paper":
        return put_all(trial, {"test.prompts": 10_000})
    return small(trial) if scale == "smoke" else trial


def _seeds(scale: Scale, quick: int = 6, paper: int = 20) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, 2, quick, paper)))


def _mechanism(scale: Scale) -> Sweep:
    trial = put_all(
        template(),
        {
            "detailed": True,
            "test.kinds": ("partners", "apart", "sums"),
            "descent.log_at": LOGGED,
            "descent.steps": 800,
        },
    )
    shifts = by_scale(scale, (1,), (1, 4), (1, 4))
    return Sweep(_scaled(trial, scale), (axis("data.task_shifts", shifts),), _seeds(scale, 5))


def _lemmas(scale: Scale) -> Sweep:
    """Until the tasks are learnt."""
    changes = {
        "followed": True,
        "test.kinds": (),
        "descent.steps": 240,
        "descent.log_at": tuple(range(0, 241, 4)),
    }
    return Sweep(_scaled(put_all(template(), changes), scale), (), _seeds(scale, 5))


def _model(trial: Layer, model: str) -> Any:
    if model == "one layer":
        return trial
    deep = put_all(Stack(test=trial.test), {"test.prompts": min(trial.test.prompts, 1000)})
    if trial.descent.steps < 100:  # shrunk for tests
        return put_all(
            deep, {"descent.steps": 4, "descent.logs": 2, "descent.batch": 4, "watched": 8, "width": 8}
        )
    return deep


def _lengths(scale: Scale) -> Sweep:
    test = Testing(
        fractions=(0.8, 0.6, 0.4), lengths=by_scale(scale, (2, 5), LENGTHS, LENGTHS),
        sums=by_scale(scale, (0.0, 1.0), SUMS, SUMS), kinds=("partners", "apart"),
    )  # fmt: skip
    changes = {"descent.logs": 11, "test.prompts": VOTES}
    trial = _scaled(put_all(Layer(test=test), changes), scale)
    models = Axis("model", ("one layer", "GPT-2 style"), _model)
    return Sweep(trial, (models,), _seeds(scale, 3, 10))


METHODS: dict[str, Learnt] = {
    "logistic regression": "logistic",
    "SVM, Gaussian": "svm-gaussian",
    "SVM, linear": "svm-linear",
    "1-NN": "1-nn",
    "3-NN": "3-nn",
}


def _method(trial: Layer, method: str) -> Any:
    if method == "in context":
        return trial
    return Classic(trial.data, trial.test, METHODS[method])


def _classic(scale: Scale) -> Sweep:
    lengths = by_scale(scale, (4, 8), (2, 4, 6, 8, 12, 16, 24), (2, 4, 6, 8, 10, 12, 16, 20, 24, 32, 40))
    test = Testing(fractions=(0.8, 0.6), lengths=lengths, prompts=by_scale(scale, 20, 200, 2000))
    trial = put_all(Layer(test=test), {"descent.logs": 11})
    trial = put_all(small(trial), {"test.prompts": 20}) if scale == "smoke" else trial
    names = ("in context", *METHODS) if scale != "smoke" else ("in context", "logistic regression", "3-NN")
    return Sweep(trial, (Axis("learner", names, _method),), _seeds(scale, 3, 10))


def _pruning(scale: Scale) -> Sweep:
    test = Testing(fractions=(0.8, 0.6, 0.4), prompts=by_scale(scale, 2000, 2000, 10_000))
    trial = put_all(Layer(test=test, prune_rates=RATES), {"data.relevant_fraction": 0.6, "descent.logs": 11})
    return Sweep(_scaled(trial, scale), (), _seeds(scale, 6, 20))


def _timed(scale: Scale, steps: int, every: int) -> Layer:
    """The hinge loss on unseen tasks is looked at every few steps; alpha' = 0.6; no test out of domain."""
    changes = {"test.fractions": (0.6,), "test.kinds": (), "test.prompts": 1000, "descent.steps": steps}
    trial = put_all(template(), {**changes, "descent.logs": steps // every + 1})
    return _scaled(trial, scale)


def _length_needed(scale: Scale) -> Sweep:
    """A fixed budget of 300 steps; prompts of up to 40 contexts."""
    trial = put_all(_timed(scale, 300, 100), {"data.room": 40})
    alphas = by_scale(scale, (0.3, 0.6), (0.2, 0.3, 0.45, 0.6, 0.8), (0.15, 0.2, 0.3, 0.45, 0.6, 0.8))
    lengths = by_scale(scale, (2, 8), (1, 2, 3, 4, 6, 10, 18, 32), (1, 2, 3, 4, 5, 6, 8, 10, 14, 20, 30, 40))
    axes = axis("data.relevant_fraction", alphas), axis("data.examples", lengths)
    return Sweep(trial, axes, _seeds(scale, 3, 20))


def _steps_needed(scale: Scale) -> Sweep:
    trial = put_all(_timed(scale, 600, 5), {"data.room": 40, "data.examples": 40})
    alphas = by_scale(scale, (0.3, 0.6), (0.2, 0.3, 0.45, 0.6, 0.8), (0.15, 0.2, 0.3, 0.45, 0.6, 0.8, 0.9))
    return Sweep(trial, (axis("data.relevant_fraction", alphas),), _seeds(scale, 5))


def _beta(scale: Scale) -> Sweep:
    trial = put_all(_timed(scale, 1200, 10), {"data.relevant_fraction": 0.6})
    norms = by_scale(scale, (2.0, 3.0), (1.5, 2.0, 3.0, 4.0), (1.0, 1.5, 2.0, 3.0, 4.0, 6.0))
    return Sweep(trial, (axis("data.pattern_norm", norms),), _seeds(scale, 5))


def _patterns(trial: Layer, m: int) -> Layer:
    return put_all(trial, {"data.relevant": m, "data.feature_dim": m + trial.data.irrelevant})


def _whole(trial: Layer, m: int) -> Layer:
    """M_1 with all that goes with it: M_2 = 4 M_1, and m = M_1^2 log M_1 neurons, condition (i)."""
    sizes = {
        "data.relevant": m,
        "data.irrelevant": 4 * m,
        "data.feature_dim": 5 * m,
        "test.irrelevant": 4 * m,
    }
    return put_all(trial, {**sizes, "neurons": ceil(m**2 * log(m))})


def _steps_over_patterns(scale: Scale) -> Sweep:
    trial = put_all(_timed(scale, 1600, 10), {"data.relevant_fraction": 0.6})
    numbers = by_scale(scale, (4, 6), (4, 6, 10, 15), (4, 6, 10, 15, 20))
    return Sweep(trial, (Axis("patterns", numbers, _whole),), _seeds(scale, 5))


def _per_pattern(trial: Layer, ratio: float) -> Layer:
    return put_all(trial, {"data.task_count": round(ratio * trial.data.relevant)})


def _tasks(scale: Scale) -> Sweep:
    trial = put_all(_timed(scale, 600, 200), {"data.relevant_fraction": 0.6, "test.tasks": "all"})
    patterns = Axis("patterns", by_scale(scale, (6,), (4, 6, 8), (4, 6, 8, 10)), _patterns)
    ratios = by_scale(scale, (0.5, 1.0), (0.5, 0.75, 1.0, 1.5), (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0))
    return Sweep(trial, (patterns, Axis("tasks_per_pattern", ratios, _per_pattern)), _seeds(scale, 4))


VARIANTS: dict[str, dict[str, Any]] = {
    "one head": {},
    "two heads": {"heads": 2},
    "two patterns per class": {"data.per_class": 2},
    "logistic loss": {"descent.loss": "logistic"},
    "softmax over the query": {"attend_to_query": True},
    "noise on every input": {"data.extra_noise": 0.3},
}


def _variants(scale: Scale) -> Sweep:
    trial = put_all(
        template(), {"detailed": True, "test.kinds": (), "descent.logs": 11, "descent.steps": 600}
    )
    names = tuple(VARIANTS) if scale != "smoke" else ("two heads", "two patterns per class")
    place = Axis("variant", names, lambda one, name: put_all(one, VARIANTS[name]))
    return Sweep(_scaled(trial, scale), (place,), _seeds(scale, 3, 10))


def _agreement(scale: Scale) -> Sweep:
    changes = {
        "precision": "float64",
        "descent.steps": by_scale(scale, 20, 100, 300),
        "descent.logs": 6,
        "test.kinds": (),
    }
    trial = put_all(small(template()), changes)
    return Sweep(trial, (axis("simulator", ("patterns", "tokens")),), _seeds(scale, 3, 5))


_LAYER = "m = 60 neurons with votes 1/m, delta = 0.1, step size 1, 120 prompts a step, M'_2 = M_2."

FIGURES: dict[str, Figure] = {
    figure.id: figure
    for figure in (
        Figure("fig6-2", _mechanism, pictures.mechanism, _LAYER + " S_1 = 1.28 (a = b).", complete),
        Figure(
            "fig6-3",
            _lengths,
            pictures.sums_and_lengths,
            _LAYER + " Panel A at 20 contexts and alpha' = 0.8.",
            complete,
        ),
        Figure(
            "fig6-4", _classic, pictures.methods, _LAYER + " Learners of scikit-learn with C = 1.", complete
        ),
        Figure(
            "fig6-5",
            _pruning,
            pictures.pruning,
            _LAYER + " alpha = 0.6; the size of a neuron is its row of W_O W_V.",
            complete,
        ),
        Figure(
            "figE-1-length",
            _length_needed,
            pictures.length_needed,
            "Hinge 0.05 on unseen tasks after 300 steps.",
            complete,
        ),
        Figure(
            "figE-1-steps",
            _steps_needed,
            pictures.steps_over_alpha,
            "Hinge 0.05 on unseen tasks, 40 contexts.",
            complete,
        ),
        Figure("beta", _beta, pictures.steps_over_beta, "Hinge 0.05 on unseen tasks, alpha = 0.6.", complete),
        Figure(
            "patterns",
            _steps_over_patterns,
            pictures.steps_over_patterns,
            "Hinge 0.05 on unseen tasks, alpha = 0.6, M_2 = 4 M_1, m = M_1^2 log M_1.",
            complete,
        ),
        Figure(
            "lemmas",
            _lemmas,
            pictures.lemmas,
            _LAYER + " Until the hinge loss on unseen tasks is 0.05; 480 training prompts at every look.",
            complete,
        ),
        Figure(
            "figE-2",
            _tasks,
            pictures.tasks,
            _LAYER + " alpha = alpha' = 0.6, M_2 = 24, tested on all tasks.",
            complete,
        ),
        Figure("variants", _variants, pictures.variants, _LAYER, complete),
        Figure("agreement", _agreement, pictures.agreement, "A small instance in float64.", complete),
    )
}
