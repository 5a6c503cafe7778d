"""The paper's synthetic figures and the experiments that its theorems ask for."""

import json

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.studies.spatial_structure import pictures, theory
from lemmata.studies.spatial_structure.baselines import HandBuilt, Illustration, LinearModel
from lemmata.studies.spatial_structure.coupling import CoupledDescent
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.gaussian import GaussianDescent
from lemmata.studies.spatial_structure.transfer import Transfer
from lemmata.studies.spatial_structure.trials import (
    IdealisedDescent,
    PositionalNetwork,
    RealisticDescent,
    SlowAttention,
)
from lemmata.studies.spatial_structure.variants import VariantDescent
from lemmata.study import Figure, Scale
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put

SMALL = Structured(patches=36, spurious_rate=0.3, dimension=16)
"""36 patches: descent learns the groups within seconds, though linear models err only 0.10 here."""

TINY = Structured(patches=16, spurious_rate=0.3, dimension=8)


def template() -> RealisticDescent:
    """The reference run of Figure 4: D = 64, C = 4, q = 0.25, d = 32, N = 8000, beta = 4."""
    return RealisticDescent()


def changed(trial, **changes):
    """The trial with fields replaced; `__` stands for the dot of a path."""
    for path, value in changes.items():
        trial = put(trial, path.replace("__", "."), value)
    return trial


def seeds(scale: Scale, smoke: int, quick: int, paper: int) -> tuple[int, ...]:
    return tuple(range({"smoke": smoke, "quick": quick, "paper": paper}[scale]))


# The paper's figures ---------------------------------------------------------------------------------------------------


def _fig1b(scale: Scale) -> Sweep:
    return Sweep(Illustration(), (axis("data.partition", ("contiguous", "random")),), (0,))


def _fig3(scale: Scale) -> Sweep:
    data = Structured(patches=64, spurious_rate=0.25, dimension=2, partition="contiguous")
    return Sweep(Illustration(data, misleading=True), (), (0,))


def _with_learner(trial: GaussianDescent, learner: str) -> GaussianDescent:
    steps, logs = trial.descent.steps, trial.descent.logs
    if learner == "analysed":
        descent = Descent(
            learning_rate=3e-4, target_loss=0.0, method="gd", batch=2048, steps=steps, logs=logs
        )
        return changed(
            GaussianDescent(data=trial.data, descent=descent, samples=trial.samples), learner=learner
        )
    return changed(trial, learner=learner)


def _fig2(scale: Scale) -> Sweep:
    steps, samples = {"smoke": (60, 3000), "quick": (3000, 50_000), "paper": (30_000, 200_000)}[scale]
    descent = Descent(learning_rate=2e-3, target_loss=0.0, method="adam", batch=128, steps=steps, logs=24)
    learners = Axis("learner", ("wide", "analysed"), _with_learner)
    return Sweep(GaussianDescent(descent=descent, samples=samples), (learners,), seeds(scale, 2, 4, 10))


def _fig4(scale: Scale) -> Sweep:
    trial = changed(template(), keep_logits=True, descent__logs=25, descent__steps=3000)
    if scale == "smoke":
        descent = SlowAttention(1e-3, 3e3, steps=600, logs=9)
        trial = RealisticDescent(
            data=TINY,
            network=PositionalNetwork(diagonal=3.0),
            descent=descent,
            samples=1000,
            test_samples=1000,
            keep_logits=True,
        )
    elif scale == "quick":
        trial = changed(trial, samples=3000, test_samples=3000)
    return Sweep(trial, (axis("data.partition", ("random", "contiguous")),), seeds(scale, 2, 6, 10))


def _with_attention(trial: VariantDescent, kind: str) -> VariantDescent:
    """Encodings pull the logits at both ends and with their own length, so they need a smaller step."""
    rate = trial.descent.attention_rate
    return changed(trial, attention=kind, descent__attention_rate=rate if kind == "logits" else rate / 5)


def _encodings(scale: Scale) -> Sweep:
    steps, samples = {"smoke": (60, 200), "quick": (1000, 1000), "paper": (2500, 4000)}[scale]
    trial = VariantDescent(
        data=SMALL, descent=SlowAttention(2e-4, 1e4, steps=steps, logs=21), samples=samples, test_samples=1000
    )
    kinds = Axis("attention", ("logits", "encodings", "self"), _with_attention)
    return Sweep(trial, (kinds,), seeds(scale, 2, 6, 10))


# Validation runs -------------------------------------------------------------------------------------------------------


def _at_dominance(trial: LinearModel, ratio: float) -> LinearModel:
    data = trial.data
    return put(trial, "data.spurious_rate", theory.spurious_rate_for(ratio, data.patches, data.group_size))


def _glm_floor(scale: Scale) -> Sweep:
    trial = LinearModel(Structured(patches=144, dimension=4), samples=6000, test_samples=10_000)
    ratios = (0.3, 0.756, 1.5, 3.0, 6.0)
    if scale == "smoke":
        trial = LinearModel(Structured(patches=64, dimension=2), samples=1500, test_samples=2000)
        ratios = (0.756, 2.0)
    if scale == "paper":
        trial, ratios = (
            changed(trial, samples=40_000, test_samples=40_000),
            (0.3, 0.5, 0.756, 1.0, 1.5, 2.2, 3.0, 4.5, 6.0),
        )
    models = axis("inputs", ("patches", "coefficients", "total"))
    return Sweep(trial, (Axis("dominance", ratios, _at_dominance), models), seeds(scale, 2, 4, 10))


def _without_association(scale: Scale) -> Sweep:
    strengths = {"smoke": (2.0, 8.0), "quick": (1.0, 2.0, 4.0, 8.0, 12.0)}.get(
        scale, tuple(np.linspace(1, 12, 12))
    )
    trial = HandBuilt(test_samples=4000 if scale == "smoke" else 20_000)
    axes = (
        axis("solution", ("shifted", "associating", "uniform")),
        axis("strength", strengths),
        axis("degree", (3,) if scale == "smoke" else (3, 5, 7)),
    )
    return Sweep(trial, axes, seeds(scale, 2, 4, 10))


def at_diagonal(trial: IdealisedDescent, beta: float) -> IdealisedDescent:
    """A diagonal with step sizes that suit it: a larger one makes the logits slower and alpha more sensitive."""
    rate, attention = {2.0: (3e-4, 1e3), 3.0: (2e-4, 5e3), 4.0: (1e-4, 3e4)}.get(beta, (5e-5, 2e5))
    return changed(
        trial, network__diagonal=beta, descent__learning_rate=rate, descent__attention_rate=attention
    )


def _three_events(scale: Scale) -> Sweep:
    trial = IdealisedDescent(descent=SlowAttention(steps=30_000, logs=601), test_draws=10_000)
    betas = (2.0, 4.0) if scale != "paper" else (2.0, 3.0, 4.0, 5.0)
    if scale == "smoke":
        trial = changed(trial, descent__steps=6000, descent__logs=61, draws=200, test_draws=500)
        betas = (4.0,)
    return Sweep(trial, (Axis("diagonal", betas, at_diagonal),), seeds(scale, 2, 8, 10))


def _at_start(trial: IdealisedDescent, alignment: float) -> IdealisedDescent:
    """A starting alpha with the step size that makes the first event last about 3000 steps."""
    data, network = trial.data, trial.network
    facts = (
        data.patches,
        data.group_size,
        float(data.spurious_rate),
        network.degree,
        float(network.diagonal),
    )
    rate = theory.event1_time(*facts, 1.0, alignment) / 3000
    return changed(trial, alignment=alignment, descent__learning_rate=rate)


def _first_event(scale: Scale) -> Sweep:
    trial = IdealisedDescent(
        network=PositionalNetwork(linear=1e-20, diagonal=2.0),
        descent=SlowAttention(1e-3, 0.0, steps=6000, logs=3),
        target_slack=0.4,
        draws=1000 if scale == "smoke" else 6000,
        test_draws=10,
    )
    starts = Axis("start", (3e-4, 3e-3) if scale == "smoke" else (1e-4, 3e-4, 1e-3, 3e-3), _at_start)
    degree = Axis("degree", (3,) if scale == "smoke" else (3, 5), lambda t, p: put(t, "network.degree", p))
    return Sweep(trial, (degree, starts), seeds(scale, 2, 4, 10))


def _loss_rate(scale: Scale) -> Sweep:
    trial = IdealisedDescent(
        data=Structured(patches=128, group_size=8, spurious_rate=0.3),
        network=PositionalNetwork(linear=1e-6, diagonal=2.0),
        descent=SlowAttention(
            2e-6, 1.0, steps=8000 if scale == "smoke" else 30_000, logs=120, even_logs=False
        ),
        alignment=0.003,
        same=4.0,
        draws=300 if scale == "smoke" else 3000,
        test_draws=500,
    )
    return Sweep(trial, (), seeds(scale, 2, 6, 10))


def _common_rate(scale: Scale) -> Sweep:
    steps = {"smoke": 3000, "quick": 4_500_000, "paper": 9_000_000}[scale]
    rate = {"smoke": 3e-3, "quick": 2e-3, "paper": 1e-3}[scale]
    descent = SlowAttention(rate, 1.0, steps=steps, logs=101)
    return Sweep(IdealisedDescent(descent=descent, draws=300, test_draws=2000), (), seeds(scale, 2, 6, 6))


def _frozen_attention(scale: Scale) -> Sweep:
    trial = RealisticDescent(
        data=SMALL, descent=SlowAttention(2e-4, 1e4, steps=2000, logs=21), samples=2000, test_samples=4000
    )
    if scale == "smoke":
        trial = RealisticDescent(
            data=TINY,
            network=PositionalNetwork(diagonal=3.0),
            descent=SlowAttention(1e-3, 3e3, steps=400, logs=5),
            samples=600,
            test_samples=1000,
        )
    if scale == "paper":
        trial = changed(template(), descent__steps=3000, descent__logs=31)
    arms = Axis(
        "attention",
        ("frozen", "trained"),
        lambda t, arm: t if arm == "trained" else put(t, "descent.attention_rate", 0.0),
    )
    return Sweep(trial, (arms,), seeds(scale, 2, 4, 10))


def _linear_phase(scale: Scale) -> Sweep:
    steps, logs = (600, 61) if scale == "smoke" else (1000, 201)
    descent = SlowAttention(1e-4, 1.0, steps=steps, logs=logs)
    network = PositionalNetwork(diagonal=3.0, init=1e-7)
    trial = RealisticDescent(
        data=changed(SMALL, dimension=8), network=network, descent=descent, samples=1000, test_samples=100
    )
    linears = (3e-4, 1e-3) if scale == "smoke" else (1e-4, 3e-4, 1e-3)
    samples = {"smoke": (500, 1000), "quick": (500, 1000, 2000)}.get(scale, (1000, 2000, 4000, 8000, 16_000))
    return Sweep(trial, (axis("network.linear", linears), axis("samples", samples)), seeds(scale, 2, 10, 10))


def _coupling(scale: Scale) -> Sweep:
    trial = CoupledDescent(descent=SlowAttention(2e-4, 1e4, steps=1000, logs=41))
    samples = (500, 1000, 2000, 4000, 8000) if scale == "quick" else (1000, 2000, 4000, 8000, 16_000, 32_000)
    if scale == "smoke":
        network = PositionalNetwork(linear=1e-4, diagonal=3.0, init=1e-5)
        trial = CoupledDescent(
            data=TINY,
            network=network,
            descent=SlowAttention(1e-3, 3e3, steps=400, logs=11),
            draws=4000,
            test_samples=200,
        )
        samples = (500, 2000)
    return Sweep(trial, (axis("samples", samples),), seeds(scale, 2, 4, 10))


def _at_patches(trial: Transfer, patches: int) -> Transfer:
    """More patches with the same number of spurious ones (q = poly(C) / D) and d = D^2 (d = poly(D))."""
    rate = 4 * trial.data.group_size / patches
    return changed(trial, data__patches=patches, data__spurious_rate=rate, data__dimension=patches**2)


FEW = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
MANY = (16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048)


def _with_sizes(trial: Transfer, learner: str) -> Transfer:
    """One step on the value vector is cheap and, with few samples, noisy: four times as many repeats."""
    if learner in ("one-step", "initial"):
        return changed(trial, learner=learner, repeats=4 * trial.repeats)
    return changed(trial, learner=learner, sizes=MANY[-len(trial.sizes) :])


def _transfer(scale: Scale) -> Sweep:
    patches = {"smoke": (36, 64), "quick": (64, 144, 256, 400)}.get(scale, (64, 100, 144, 256, 400, 576))
    repeats = {"smoke": 2, "quick": 25, "paper": 100}[scale]
    trial = Transfer(sizes=FEW, repeats=repeats, test_samples=500 if scale == "smoke" else 1000)
    names = ("one-step", "initial", "pair-counting") + (("linear",) if scale == "paper" else ())
    learners = Axis("learner", names, _with_sizes)
    return Sweep(trial, (Axis("patches", patches, _at_patches), learners), seeds(scale, 2, 4, 10))


def _as_learner(trial: Transfer, learner: str) -> Transfer:
    if learner == "one-step, realistic":
        return changed(trial, learner="one-step", pretraining="realistic")
    return changed(trial, learner=learner)


def _transfer_learners(scale: Scale) -> Sweep:
    trial = Transfer(changed(SMALL, dimension=64), sizes=(4, 16, 64, 256, 1024), repeats=3, test_samples=1000)
    names = (
        "one-step",
        "one-step, realistic",
        "descent",
        "initial",
        "linear",
        "pair-counting",
        "scratch",
        "mlp",
    )
    if scale == "smoke":
        trial, names = (
            changed(trial, sizes=(4, 16, 64), repeats=1, test_samples=300),
            ("one-step", "one-step, realistic", "descent", "initial", "mlp"),
        )
    if scale == "paper":
        trial = changed(trial, sizes=(1, 4, 16, 64, 256, 1024, 4096), repeats=20)
    return Sweep(trial, (Axis("learner", names, _as_learner),), seeds(scale, 2, 4, 5))


VARIATIONS = {
    "base": {},
    "D=36": {"data__patches": 36},
    "D=100": {"data__patches": 100},
    "D=144": {"data__patches": 144},
    "C=2": {"data__group_size": 2},
    "C=8": {"data__group_size": 8},
    "q=0.15": {"data__spurious_rate": 0.15},
    "q=0.35": {"data__spurious_rate": 0.35},
    "p=5": {"network__degree": 5},
    "p=7": {"network__degree": 7},
    "beta=3": {"network__diagonal": 3.0},
    "beta=5": {"network__diagonal": 5.0},
}


def _varied(trial: IdealisedDescent, variation: str) -> IdealisedDescent:
    return changed(trial, **VARIATIONS[variation])


def _sizes(scale: Scale) -> Sweep:
    descent = SlowAttention(2e-5, 5e4, steps=100_000, logs=401)
    trial = IdealisedDescent(
        network=PositionalNetwork(linear=1e-4, diagonal=4.0),
        descent=descent,
        alignment=0.01,
        draws=500,
        test_draws=20_000,
    )
    names = tuple(VARIATIONS)
    if scale == "smoke":
        trial, names = (
            changed(trial, descent__steps=4000, descent__logs=41, draws=100, test_draws=200),
            ("base", "D=36", "p=5", "p=7"),
        )
    return Sweep(trial, (Axis("variation", names, _varied),), seeds(scale, 2, 6, 10))


def complete(results: xr.Dataset) -> xr.Dataset:
    """Name the downstream sample sizes, and add what the theory says at the settings of the results."""
    fields = json.loads(results.attrs["trial"])["fields"]
    sizes = [fields.get(f"data.{name}") for name in ("patches", "group_size", "spurious_rate")]
    if fields.get("data.spurious_rate") is None:
        return results
    return results.assign_attrs(glm_error=theory.glm_error(*sizes), label_noise=theory.label_noise(*sizes))


def _figure(id: str, sweep, draw, reading: str) -> Figure:
    return Figure(id, sweep, draw, reading, complete)


FAST = (
    "The logits move faster than the value vector by descent.attention_rate "
    "(the paper's single step size needs millions of steps; see common-rate)."
)

FIGURES: dict[str, Figure] = {
    f.id: f
    for f in (
        _figure("fig1b", _fig1b, pictures.partitions, "A 4 by 4 grid in groups of four."),
        _figure(
            "fig2",
            _fig2,
            pictures.gaussian,
            "The paper gives no sizes: D = 16, C = 4, d = 16, one convolution filter with its own weights for every slot. "
            "Learners: a one-layer transformer with trainable encodings, 32 value channels and a ReLU layer of 64, by Adam; "
            "and network (T), whose single value vector cannot fit slot-dependent filters. "
            "--set data.one_filter=true shares the weights between slots.",
        ),
        _figure(
            "fig3",
            _fig3,
            pictures.misleading,
            "The first image with label +1 whose coefficients sum below 0.",
        ),
        _figure(
            "fig4",
            _fig4,
            pictures.realistic,
            "The paper prints no settings. D = 64, C = 4, q = 0.25, p = 3, d = 32, beta = 4, nu = omega = 1e-3, "
            "temperature 1, step 1e-4; 8000 images (3000 at quick scale). " + FAST,
        ),
        _figure(
            "encodings",
            _encodings,
            pictures.encodings,
            "The paper trains the logits and mentions both others. D = 36, C = 4, q = 0.3, d = 16; encodings of 256 "
            "dimensions (16 for self-attention), started so that <p_i, p_i> is near beta = 4. Encodings move five times "
            "more slowly than logits. " + FAST,
        ),
        _figure(
            "glm-floor",
            _glm_floor,
            pictures.glm_floor,
            "Logistic regression with a ridge of 1e-3, D = 144, C = 4.",
        ),
        _figure(
            "without-association",
            _without_association,
            pictures.without_association,
            "D = 64, C = 4, q = 0.25, v = w*.",
        ),
        _figure(
            "three-events",
            _three_events,
            pictures.events,
            "D = 64, C = 4, q = 0.25, p = 3, nu = 1e-4. " + FAST,
        ),
        _figure(
            "first-event",
            _first_event,
            pictures.first_event,
            "Attention frozen, nu negligible, D = 64, C = 4, beta = 2.",
        ),
        _figure(
            "loss-rate",
            _loss_rate,
            pictures.loss_rate,
            "D = 128, C = 8, q = 0.3 (label noise 1e-6), from gamma = 4.",
        ),
        _figure(
            "common-rate", _common_rate, pictures.events, "As three-events with beta = 2 and one step size."
        ),
        _figure(
            "frozen-attention", _frozen_attention, pictures.frozen, "D = 36, C = 4, q = 0.3, d = 16. " + FAST
        ),
        _figure(
            "linear-phase",
            _linear_phase,
            pictures.linear_phase,
            "D = 36, C = 4, q = 0.3, d = 8, beta = 3, one step size.",
        ),
        _figure(
            "coupling",
            _coupling,
            pictures.coupling,
            "D = 36, C = 4, q = 0.3, d = 16, beta = 4, nu = 1e-4. " + FAST,
        ),
        _figure(
            "transfer",
            _transfer,
            pictures.transfer,
            "C = 4, q = 16/D, d = D^2, orthogonal new feature. With association: one normalised step on the value vector, "
            "attention from population descent at the same D. Without: learners that are told the new feature and lack "
            "only the groups.",
        ),
        _figure(
            "transfer-learners",
            _transfer_learners,
            pictures.transfer_learners,
            "D = 36, C = 4, q = 0.3, d = 64.",
        ),
        _figure(
            "sizes", _sizes, pictures.sizes, "Population descent, one setting changed at a time. " + FAST
        ),
    )
}
