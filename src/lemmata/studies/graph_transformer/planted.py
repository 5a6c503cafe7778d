"""For every claim results that refute it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from lemmata.results import made
from lemmata.studies.graph_transformer.figures import FIGURES
from lemmata.studies.graph_transformer.trials import GraphTraining

Made = Callable[[GraphTraining, np.random.Generator], Any]


def _case(figure: str, **variables: Made) -> Callable[[], xr.Dataset]:
    return lambda: made(FIGURES[figure], variables)


def _needing(labels: Callable[[GraphTraining], float]) -> Made:
    """A test loss that is small from a number of labels on, give or take."""
    return lambda t, rng: 0.0 if t.data.labelled > labels(t) * rng.lognormal(0, 0.3) else 0.1


def _taking(steps: Callable[[GraphTraining], float]) -> Made:
    """A test loss along training that is small from a step on, give or take."""

    def curve(trial: GraphTraining, rng: np.random.Generator) -> np.ndarray:
        at = steps(trial) * rng.lognormal(0, 0.03)
        return np.where(np.asarray(trial.log_steps) >= at, 0.0, 1.0)

    return curve


def _from_to(first: float, last: float, shape: tuple[int, ...]) -> Made:
    """A curve from one value to another."""
    return lambda t, rng: (
        np.linspace(first, last, len(t.log_steps)).reshape(-1, *(1 for _ in shape)) * np.ones(shape)
        + rng.normal(0, 1e-4)
    )


def _slow(slow: str, factor: float) -> Made:
    """One of two kinds of learner takes `factor` times as many steps as the others."""
    return _taking(lambda t: 100 * (factor if _is(t, slow) else 1.0))


def _is(trial: GraphTraining, what: str) -> bool:
    kinds = {
        "convolution": trial.network.kind == "gcn",
        "core": trial.sampler == "core",
        "relevant": trial.sampler == "relevant",
    }
    kinds["without positions"] = trial.network.kind == "no-position" and not kinds["core"]
    kinds["transformer"] = trial.network.kind == "transformer"
    return kinds[what]


def _share(trial: GraphTraining) -> float:
    return trial.data.discriminative


FLAT = _needing(lambda t: 20.0)
BUCKETS = np.array([0.0, -1.0, 2.0, -3.0, 1.0])
BIAS = {
    "core": lambda t, rng: 2,
    "largest": lambda t, rng: np.full(5, 10),
    "margin": lambda t, rng: BUCKETS,
    "bias": lambda t, rng: -BUCKETS + rng.normal(0, 0.01, 5),
}


def _along(own: float, other: float) -> Made:
    """Components of lucky neurons along the features, from 0.01 on."""
    last = np.where(np.eye(2, 10) > 0, own, other)
    return lambda t, rng: np.stack([0.01 + (last - 0.01) * s for s in np.linspace(0, 1, len(t.log_steps))])


def _learning(trial: GraphTraining, rng: np.random.Generator) -> np.ndarray:
    """A test loss that is still large at every step."""
    return np.ones(len(trial.log_steps))


def _rising(power: float, shape: np.ndarray) -> Made:
    """A curve that grows as a power of time."""
    return lambda t, rng: (
        rng.lognormal(0, 0.01) * np.multiply.outer(np.asarray(t.log_steps, float) ** power, shape)
    )


PLANTED: dict[str, Callable[[], xr.Dataset]] = {
    "labels-share": _case("fig3-3a", test_hinge=FLAT),
    "labels-share-once": _case("fig3-3a-once", test_hinge=_needing(lambda t: 400.0)),
    "labels-share-confused": _case("fig3-3a-confused", test_hinge=FLAT),
    "labels-share-blocks": _case("fig3-3a-blocks", test_hinge=FLAT),
    "labels-confusion": _case("fig3-3b", test_hinge=_needing(lambda t: 150 * (1 - t.data.confusion) ** 3)),
    "flips-loss": _case(
        "fig3-4",
        test_hinge=lambda t, rng: t.data.flipped + 0.2,
        test_flipped=lambda t, rng: t.data.flipped + rng.normal(0, 0.01),
    ),
    "flips-bound": _case("fig3-4", test_hinge=lambda t, rng: 0.9, test_flipped=lambda t, rng: t.data.flipped),
    "flips-slower": _case("fig3-4", test_hinge_curve=_taking(lambda t: 300 - 800 * t.data.flipped)),
    "attention-rises": _case("fig3-5", attention_curve=_from_to(0.5, 0.52, (2,))),
    "attention-one": _case("fig3-5", attention_curve=_from_to(0.5, 0.7, (2,))),
    "attention-one-margin": _case("fig3-5", attention_curve=_from_to(0.5, 0.7, (2,))),
    "attention-rate": _case(
        "fig3-5",
        attention_curve=lambda t, rng: (
            1 - np.outer((1.0 + np.asarray(t.log_steps)) ** -0.2, [1, 1]) * rng.lognormal(0, 0.01)
        ),
    ),
    "convolution-labels": _case("fig3-6", test_hinge=_needing(lambda t: 6 / _share(t))),
    "convolution-labels-apart": _case("fig3-6", test_hinge=_needing(lambda t: 6 / _share(t))),
    "transformer-succeeds-more": _case(
        "fig3-6", test_hinge=_needing(lambda t: 4 if _is(t, "convolution") else 40)
    ),
    "transformer-steps": _case("figB-6", test_hinge_curve=_taking(lambda t: 60 / _share(t))),
    "convolution-steps": _case("figB-6", test_hinge_curve=_taking(lambda t: 60 / _share(t))),
    "steps-apart": _case("figB-6", test_hinge_curve=_taking(lambda t: 60 / _share(t))),
    "even-transformer-steps": _case("steps-even", test_hinge_curve=_taking(lambda t: 60 / _share(t))),
    "even-convolution-steps": _case("steps-even", test_hinge_curve=_taking(lambda t: 60 / _share(t))),
    "even-convolution-mended": _case("steps-even", test_hinge_curve=_taking(lambda t: 30 / _share(t) ** 2)),
    "even-slower": _case("steps-even", test_hinge_curve=_slow("convolution", 0.5)),
    "bias-core": _case("bias", **BIAS),
    "bias-margin": _case("bias", **BIAS),
    "bias-start": _case("growth", **BIAS, bias_curve=_rising(1.0, -BUCKETS)),
    "positions-as-core": _case("learners", test_hinge_curve=_slow("core", 0.2)),
    "positions-help": _case("learners", test_hinge_curve=_slow("without positions", 0.5)),
    "convolution-slower": _case("learners", test_hinge_curve=_slow("convolution", 0.5)),
    "sampling-steps": _case("samplers", test_hinge_curve=_slow("relevant", 2.0)),
    "sampling-errors": _case(
        "samplers", test_error=lambda t, rng: rng.normal(0.3 if _is(t, "relevant") else 0.1, 0.01)
    ),
    "sampling-core": _case("samplers", test_hinge_curve=_slow("core", 2.0)),
    "sampling-labels": _case("samplers", test_hinge=lambda t, rng: 0.1 if _is(t, "relevant") else 0.0),
    "lucky-grow": _case("neurons", along_curve=_along(0.015, 0.0)),
    "lucky-direction": _case("neurons", along_curve=_along(0.1, 0.09)),
    "unlucky-small": _case("neurons", neuron_size_curve=_from_to(1.0, 1.0, (2,))),
    "lucky-share": _case("neurons", lucky_share_curve=_from_to(0.02, 0.02, (2,))),
    "lucky-stay": _case("neurons", gates_curve=_from_to(1.0, 0.5, (2,))),
    "keys-grow": _case(
        "neurons", key_norm_curve=_from_to(1.0, 1.0, (10,)), query_norm_curve=_from_to(1.0, 2.0, (10,))
    ),
    "other-keys-stay": _case("neurons", key_norm_curve=_from_to(1.0, 2.0, (10,))),
    "values-follow": _case("neurons", value_cosine_curve=_from_to(0.0, 0.1, (2,))),
    "lucky-growth": _case("growth", test_hinge_curve=_learning, along_curve=_along(0.3, 0.0)),
    "bias-growth": _case(
        "growth", test_hinge_curve=_learning, core=lambda t, rng: 1, bias_curve=_rising(1.0, np.eye(5)[1])
    ),
    "key-size": _case("growth", key_norm_curve=_from_to(1.0, 0.5, (10,))),
    "step-size": _case("step-size", test_hinge_curve=_taking(lambda t: 20 / t.descent.learning_rate)),
    "step-size-mended": _case(
        "step-size", test_hinge_curve=_taking(lambda t: 60 * t.descent.learning_rate**-0.5)
    ),
    "start-delta": _case(
        "start-delta", test_hinge_curve=_taking(lambda t: 100 / (1 - t.network.query_key_error) ** 2)
    ),
    "nearest-near": _case(
        "nearest", test_hinge=lambda t, rng: rng.normal(0.5 if t.sampler == "distance" else 0.1, 0.01)
    ),
    "nearest-far": _case("nearest", test_hinge=lambda t, rng: rng.normal(0.1, 0.01)),
    "laplacian-best": _case(
        "clusters",
        test_hinge=lambda t, rng: rng.normal(
            0.1 if getattr(t.data, "position", "") == "degree" else 0.5, 0.01
        ),
    ),
    "positions-attend": _case("clusters", inside=lambda t, rng: 0.3),
    "graph-labels": _case("graph-labels", test_hinge=lambda t, rng: 0.9),
    "graph-labels-structure": _case("graph-labels", test_error=lambda t, rng: rng.normal(0.1, 0.01)),
    "four-classes": _case("four-classes", test_hinge=lambda t, rng: 0.9),
    "four-classes-told": _case("four-classes", test_error=lambda t, rng: 0.5),
    "four-classes-cores": _case(
        "four-classes",
        bias=lambda t, rng: np.stack([BUCKETS, BUCKETS]),
        margin=lambda t, rng: np.stack([BUCKETS, -BUCKETS]),
    ),
    "bias-sum": _case("agreement", bias_drift=lambda t, rng: 1e-3),
    "two-ways": _case(
        "agreement", bias_curve=lambda t, rng: np.full((len(t.log_steps), 5), 1e-3 * (t.simulator == "nodes"))
    ),
}
