"""The paper's synthetic figures and the experiments that its theorems ask for."""

from typing import Any

import numpy as np
import xarray as xr

from lemmata.descent import Descent
from lemmata.results import trials
from lemmata.studies.spatial_structure import pictures, theory
from lemmata.studies.spatial_structure.data import Structured
from lemmata.studies.spatial_structure.measures import second_event
from lemmata.studies.spatial_structure.network import PositionalNetwork
from lemmata.studies.spatial_structure.trials import (
    CoupledDescent,
    GaussianDescent,
    HandBuilt,
    IdealisedDescent,
    Illustration,
    ImageDescent,
    LinearModel,
    Transfer,
)
from lemmata.studies.spatial_structure.trials.transfer import suited
from lemmata.study import Figure, Scale, by_scale
from lemmata.sweep import Axis, Sweep, axis
from lemmata.trial import put, put_all

SMALL = Structured(patches=36, spurious_rate=0.4, dimension=16)
"""36 patches, spurious ones just dominating: descent learns the groups within seconds."""

TINY = Structured(patches=16, spurious_rate=0.3, dimension=8)


def template() -> ImageDescent:
    """The reference run of Figure 4: D = 64, C = 4, q = 0.25, d = 32, N = 8000, beta = 4."""
    return ImageDescent()


def changed(trial: Any, **changes: Any) -> Any:
    """The trial with fields replaced; `__` stands for the dot of a path."""
    return put_all(trial, {path.replace("__", "."): value for path, value in changes.items()})


def seeds(scale: Scale, smoke: int, quick: int, paper: int) -> tuple[int, ...]:
    return tuple(range(by_scale(scale, smoke, quick, paper)))


def to_the_end(rate: float, attention_rate: float, steps: int, logs: int, **options: Any) -> Descent:
    """Plain descent that goes to its last step, logged evenly."""
    given: dict[str, Any] = {"stop": "cap", "spacing": "even"} | options
    return Descent(learning_rate=rate, attention_rate=attention_rate, steps=steps, logs=logs, **given)


# The paper's figures ---------------------------------------------------------------------------------------------------


def _fig1b(scale: Scale) -> Sweep:
    return Sweep(Illustration(), (axis("data.partition", ("contiguous", "random")),), (0,))


def _fig3(scale: Scale) -> Sweep:
    data = Structured(patches=64, spurious_rate=0.25, dimension=2, partition="contiguous")
    return Sweep(Illustration(data, misleading=True), (), (0,))


def _with_learner(trial: GaussianDescent, learner: str) -> GaussianDescent:
    if learner == "wide":
        return trial
    plain = {"learning_rate": 3e-4, "attention_rate": 3000.0, "method": "gd", "batch": 2048}
    return put_all(trial, {"learner": learner} | {f"descent.{name}": value for name, value in plain.items()})


def _fig2(scale: Scale) -> Sweep:
    steps, samples = by_scale(scale, (60, 3000), (3000, 50_000), (30_000, 200_000))
    trial = changed(GaussianDescent(), descent__steps=steps, descent__logs=24, samples=samples)
    return Sweep(trial, (Axis("learner", ("wide", "analysed"), _with_learner),), seeds(scale, 2, 4, 10))


def _tiny(steps: int, logs: int, **changes: Any) -> ImageDescent:
    """A sample small enough for a smoke run, on which descent still learns."""
    trial = ImageDescent(
        data=TINY,
        network=PositionalNetwork(diagonal=3.0),
        descent=to_the_end(1e-3, 3e3, steps, logs),
        samples=1000,
        test_samples=1000,
    )
    return changed(trial, **changes)


def _fig4(scale: Scale) -> Sweep:
    trial = changed(template(), keep_logits=True, descent__logs=25, descent__steps=3500)
    if scale == "smoke":
        trial = _tiny(600, 9, keep_logits=True)
    elif scale == "quick":
        trial = changed(trial, samples=5000, test_samples=3000)
    return Sweep(trial, (axis("data.partition", ("random", "contiguous")),), seeds(scale, 2, 8, 12))


def _with_attention(trial: ImageDescent, kind: str) -> ImageDescent:
    """Encodings pull the logits at both ends and with their own length, so they need a smaller step."""
    rate = trial.descent.attention_rate
    return changed(trial, attention=kind, descent__attention_rate=rate if kind == "logits" else rate / 5)


def _encodings(scale: Scale) -> Sweep:
    steps, samples = by_scale(scale, (60, 200), (2500, 1500), (3500, 4000))
    trial = ImageDescent(
        data=SMALL, descent=to_the_end(2e-4, 1e4, steps, 21), samples=samples, test_samples=1000
    )
    kinds = Axis("attention", ("logits", "encodings", "self"), _with_attention)
    return Sweep(trial, (kinds,), seeds(scale, 2, 6, 10))


# Linear models and hand-built attention --------------------------------------------------------------------------------


def _at_dominance(trial: LinearModel, ratio: float) -> LinearModel:
    data = trial.data
    return put(trial, "data.spurious_rate", theory.spurious_rate_for(ratio, data.patches, data.group_size))


def _glm_floor(scale: Scale) -> Sweep:
    trial = LinearModel(Structured(patches=144, dimension=4), samples=6000, test_samples=10_000)
    trial = by_scale(
        scale,
        LinearModel(Structured(patches=64, dimension=2), samples=1500, test_samples=2000),
        trial,
        changed(trial, samples=40_000, test_samples=40_000),
    )
    ratios = by_scale(
        scale, (0.756, 2.0), (0.3, 0.756, 1.5, 3.0, 6.0), (0.3, 0.5, 0.756, 1.0, 1.5, 2.2, 3.0, 4.5, 6.0)
    )
    models = axis("inputs", ("patches", "coefficients", "total"))
    return Sweep(trial, (Axis("dominance", ratios, _at_dominance), models), seeds(scale, 2, 4, 10))


def _without_association(scale: Scale) -> Sweep:
    strengths = by_scale(scale, (2.0, 8.0), (1.0, 2.0, 4.0, 8.0, 12.0), tuple(np.linspace(1, 12, 12)))
    axes = (
        axis("solution", ("shifted", "associating", "uniform")),
        axis("strength", strengths),
        axis("degree", by_scale(scale, (3,), (3, 5, 7), (3, 5, 7))),
    )
    return Sweep(HandBuilt(test_samples=by_scale(scale, 4000, 20_000, 20_000)), axes, seeds(scale, 2, 4, 10))


# Population descent ----------------------------------------------------------------------------------------------------


def _idealised(data: Structured, beta: float, growth: float, **options: Any) -> IdealisedDescent:
    """Population descent in the regime: nu so small that alpha starts far below its first threshold, and step sizes that suit
    the setting (a larger diagonal makes the logits slower and alpha more sensitive)."""
    network = PositionalNetwork(linear=1e-8, diagonal=beta)
    descent = suited(data, network, growth, **options)
    return IdealisedDescent(data=data, network=network, descent=descent, test_draws=10_000)


def _suiting(trial: IdealisedDescent, growth: float) -> IdealisedDescent:
    own = suited(trial.data, trial.network, growth)
    return changed(
        trial, descent__learning_rate=own.learning_rate, descent__attention_rate=own.attention_rate
    )


def _three_events(scale: Scale) -> Sweep:
    data = Structured(patches=256, spurious_rate=16 / 256)
    steps, growth = by_scale(scale, (20_000, 3e-4), (60_000, 1e-5), (60_000, 1e-5))
    base = _idealised(data, 6.0, growth, steps=steps, logs=601)
    if scale == "smoke":
        base = changed(base, descent__logs=121, draws=200, test_draws=500)

    def at_diagonal(trial: IdealisedDescent, beta: float) -> IdealisedDescent:
        return _suiting(put(trial, "network.diagonal", beta), growth)

    betas = by_scale(scale, (6.0,), (5.0, 6.0, 7.0), (3.0, 4.0, 5.0, 6.0, 7.0))
    return Sweep(base, (Axis("diagonal", betas, at_diagonal),), seeds(scale, 2, 8, 10))


def _patches(scale: Scale) -> Sweep:
    """D grows with q D, C and beta fixed: the scaling of Assumption 2."""
    steps, growth = by_scale(scale, (6000, 1e-3), (10_000, 1e-4), (30_000, 3e-5))

    def at_patches(trial: IdealisedDescent, patches: int) -> IdealisedDescent:
        return _suiting(changed(trial, data__patches=patches, data__spurious_rate=16 / patches), growth)

    base = _idealised(Structured(patches=64), 5.0, growth, steps=steps, logs=301)
    base = changed(base, test_draws=100, draws=by_scale(scale, 200, 500, 1000))
    sizes = by_scale(
        scale, (64, 256), (64, 128, 256, 512, 1024, 2048), (64, 128, 256, 512, 1024, 2048, 4096, 8192)
    )
    return Sweep(base, (Axis("patches", sizes, at_patches),), seeds(scale, 2, 6, 10))


def _first_event(scale: Scale) -> Sweep:
    trial = IdealisedDescent(
        network=PositionalNetwork(linear=1e-20, diagonal=2.0),
        descent=Descent(learning_rate=1e-3, attention_rate=0.0, target_loss=0.45, steps=6000, logs=3),
        draws=by_scale(scale, 1000, 6000, 6000),
        test_draws=10,
    )

    def at_start(trial: IdealisedDescent, alignment: float) -> IdealisedDescent:
        """A starting alpha with the step size that makes the first event last about 3000 steps."""
        degree, beta = trial.network.degree, float(trial.network.diagonal)
        rate = theory.event1_time(*trial.data.facts, degree, beta, 1.0, alignment) / 3000
        return changed(trial, alignment=alignment, descent__learning_rate=rate)

    starts = Axis("start", by_scale(scale, (3e-4, 3e-3), *2 * [(1e-4, 3e-4, 1e-3, 3e-3)]), at_start)
    degrees = axis("network.degree", by_scale(scale, (3,), (3, 5), (3, 5)))
    return Sweep(trial, (degrees, starts), seeds(scale, 2, 4, 10))


def _loss_rate(scale: Scale) -> Sweep:
    trial = IdealisedDescent(
        data=Structured(patches=128, group_size=8, spurious_rate=0.3),
        network=PositionalNetwork(linear=1e-6, diagonal=2.0),
        descent=to_the_end(2e-6, 1.0, by_scale(scale, 8000, 30_000, 30_000), 120, spacing="log"),
        alignment=0.003,
        same=4.0,
        draws=by_scale(scale, 300, 3000, 3000),
        test_draws=500,
    )
    return Sweep(trial, (), seeds(scale, 2, 6, 10))


def _common_rate(scale: Scale) -> Sweep:
    steps, rate = by_scale(scale, (3000, 3e-3), (4_500_000, 2e-3), (9_000_000, 1e-3))
    trial = IdealisedDescent(
        descent=to_the_end(rate, 1.0, steps, 401, spacing="log"), draws=300, test_draws=2000
    )
    return Sweep(trial, (), seeds(scale, 2, 6, 6))


VARIATIONS = {
    "base": {},
    "D=36": {"data.patches": 36},
    "D=144": {"data.patches": 144},
    "C=2": {"data.group_size": 2},
    "C=8": {"data.group_size": 8},
    "q=0.15": {"data.spurious_rate": 0.15},
    "q=0.35": {"data.spurious_rate": 0.35},
    "p=5": {"network.degree": 5},
    "p=7": {"network.degree": 7},
    "beta=3": {"network.diagonal": 3.0},
    "beta=5": {"network.diagonal": 5.0},
}


def _sizes(scale: Scale) -> Sweep:
    steps, logs, names = by_scale(
        scale, (4000, 41, ("base", "p=5", "p=7")), *2 * [(100_000, 401, tuple(VARIATIONS))]
    )
    draws, tests = by_scale(scale, (100, 200), (500, 20_000), (500, 20_000))
    trial = IdealisedDescent(
        network=PositionalNetwork(linear=1e-4, diagonal=4.0),
        descent=to_the_end(2e-5, 5e4, steps, logs),
        alignment=0.01,
        draws=draws,
        test_draws=tests,
    )
    variations = Axis("variation", names, lambda t, name: put_all(t, VARIATIONS[name]))
    return Sweep(trial, (variations,), seeds(scale, 2, 6, 10))


# Descent on a sample, beside what it is compared with --------------------------------------------------------------------


def _frozen_attention(scale: Scale) -> Sweep:
    trial = by_scale(
        scale,
        _tiny(400, 5, samples=600),
        ImageDescent(data=SMALL, descent=to_the_end(2e-4, 1e4, 2000, 21), samples=2000),
        changed(template(), descent__steps=3500, descent__logs=31),
    )

    def arm(trial: ImageDescent, attention: str) -> ImageDescent:
        return trial if attention == "trained" else put(trial, "descent.attention_rate", 0.0)

    return Sweep(trial, (Axis("attention", ("frozen", "trained"), arm),), seeds(scale, 2, 4, 10))


def _linear_phase(scale: Scale) -> Sweep:
    steps, logs = by_scale(scale, (600, 61), (1000, 201), (1000, 201))
    trial = ImageDescent(
        data=put(SMALL, "dimension", 8),
        network=PositionalNetwork(diagonal=3.0, init=1e-7),
        descent=to_the_end(1e-4, 1.0, steps, logs),
        test_samples=100,
    )
    linears = by_scale(scale, (3e-4, 1e-3), (1e-4, 3e-4, 1e-3), (1e-4, 3e-4, 1e-3))
    samples = by_scale(scale, (500, 1000), (500, 1000, 2000), (1000, 2000, 4000, 8000, 16_000))
    axes = (
        axis("network.linear", linears),
        axis("samples", samples),
        axis("network.diagonal", by_scale(scale, (2.0, 3.0), (1.0, 2.0, 3.0), (0.0, 1.0, 2.0, 3.0))),
    )

    def keep(place: Any) -> bool:
        """Other diagonals are looked at once: at the largest sample and the middle nu."""
        there = place["samples"] == samples[-1] and place["linear"] == linears[len(linears) // 2]
        return place["diagonal"] == 3.0 or there

    return Sweep(trial, axes, seeds(scale, 2, 10, 10), keep)


def _coupling(scale: Scale) -> Sweep:
    trial = changed(CoupledDescent(), realistic__descent__logs=41)  # pyright: ignore[reportCallIssue]  (abstract above, not fields)
    if scale == "smoke":
        trial = CoupledDescent(realistic=_tiny(400, 11, network__init=1e-5, test_samples=200), draws=4000)  # pyright: ignore[reportCallIssue]  (abstract above, not fields)
    samples = by_scale(
        scale, (500, 2000), (500, 1000, 2000, 4000, 8000), (1000, 2000, 4000, 8000, 16_000, 32_000)
    )
    return Sweep(trial, (axis("realistic.samples", samples),), seeds(scale, 2, 4, 10))


# Transfer --------------------------------------------------------------------------------------------------------------

FEW = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
PER_GROUP = (1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 12, 16, 24)
LEARNED = ("one-step, learned", "descent, learned")


def at_patches(trial: Transfer, patches: int) -> Transfer:
    """More patches with the same number of spurious ones (q = poly(C) / D) and d = D^2 (d = poly(D))."""
    rate = 4 * trial.data.group_size / patches
    return changed(trial, data__patches=patches, data__spurious_rate=rate, data__dimension=patches**2)


def with_learner(trial: Transfer, learner: str) -> Transfer:
    """Learners with association need a few samples, whatever D is; the others a few for every group.

    One step on the value vector is cheap and, with few samples, noisy: many repeats. Learned attention is trained on patches
    of dimension D. Counts over many groups average out: few repeats.
    """
    data, repeats = trial.data, trial.repeats
    if learner in ("one-step", "initial"):
        return changed(trial, learner=learner, repeats=4 * repeats)
    if learner in LEARNED:
        plain = {"learner": learner.removesuffix(", learned"), "pretraining": "realistic"}
        return changed(trial, **plain, data__dimension=data.patches, sizes=FEW[:8])
    sizes = tuple(round(x * data.group_count) for x in PER_GROUP)
    few = max(1, min(repeats, 25 * 256 // data.patches))
    return changed(trial, learner=learner, sizes=sizes, repeats=few)


def _transfer(scale: Scale) -> Sweep:
    patches = by_scale(
        scale, (36, 64), (36, 64, 100, 256, 784), (36, 64, 100, 144, 256, 400, 784, 1600, 3136)
    )
    reach = by_scale(scale, 64, 100, 144)
    repeats, source = by_scale(scale, (2, 300), (25, 4000), (50, 8000))
    trial = Transfer(sizes=FEW, repeats=repeats, source_samples=source, test_samples=1000)
    names = ("one-step", *LEARNED, "initial", "pair-counting", "label-counting", "scratch")

    def keep(place: Any) -> bool:
        """Learners that train all logits on images are held to the sizes that they can reach."""
        return place["learner"] not in (*LEARNED, "scratch") or place["patches"] <= reach

    axes = (Axis("patches", patches, at_patches), Axis("learner", names, with_learner))
    return Sweep(trial, axes, seeds(scale, 2, 4, 6), keep)


def _transfer_learners(scale: Scale) -> Sweep:
    sizes = by_scale(scale, (4, 16, 64), (4, 16, 64, 256, 1024), (1, 4, 16, 64, 256, 1024, 4096))
    trial = Transfer(
        put(SMALL, "dimension", 36), sizes=sizes, repeats=by_scale(scale, 1, 3, 20), test_samples=1000
    )
    trial = trial if scale != "smoke" else changed(trial, source_samples=300, test_samples=300)
    blind = ("initial", "linear", "pair-counting", "label-counting", "scratch", "untold", "mlp")
    names = ("one-step", *LEARNED, *by_scale(scale, ("initial", "mlp"), blind, blind))

    def arm(trial: Transfer, learner: str) -> Transfer:
        pretraining = "realistic" if learner in LEARNED else "population"
        return changed(trial, learner=learner.removesuffix(", learned"), pretraining=pretraining)

    return Sweep(trial, (Axis("learner", names, arm),), seeds(scale, 2, 4, 5))


def complete(results: xr.Dataset) -> xr.Dataset:
    """Add what the theory says where the settings do not vary, and the end of the second event (T1)."""
    known = {trial.data.facts for trial in trials(results) if hasattr(trial.data, "facts")}  # pyright: ignore
    if len(known) == 1:
        (facts,) = known
        results = results.assign_attrs(
            glm_error=theory.glm_error(*facts), label_noise=theory.label_noise(*facts)
        )
    if "largest_cross" in results and "same_curve" in results:
        results = results.assign(event2=second_event(results))
    return results


FAST = (
    "The logits move faster than the value vector by descent.attention_rate "
    "(the paper's single step size needs millions of steps; see common-rate)."
)
EVENTS = (
    "T0: the mean sigmoid has left 1/2 by 0.1; T1: gamma exceeds every |rho| of the run, as in Section 4.1; T2: the loss is "
    "below 0.05. "
)


def _figure(id: str, sweep: Any, picture: Any, reading: str, **options: Any) -> Figure:
    return Figure(id, sweep, picture, reading, complete, study="spatial-structure", **options)


FIGURES: dict[str, Figure] = {
    f.id: f
    for f in (
        _figure("fig1b", _fig1b, pictures.partitions, "A 4 by 4 grid in groups of four."),
        _figure(
            "fig2", _fig2, pictures.gaussian,
            "The paper gives no sizes: D = 16, C = 4, d = 16, one convolution filter with its own weights for every slot. "
            "Learners: a one-layer transformer with trainable encodings, 32 value channels and a ReLU layer of 64, by Adam; "
            "and network (T), whose single value vector can fit a filter that all slots share, but not one for every slot.",
            readings={"a filter for every slot": {}, "one filter for all slots": {"data.one_filter": True}},
        ),
        _figure(
            "fig3", _fig3, pictures.misleading, "The first image with label +1 whose coefficients sum below 0.",
        ),
        _figure(
            "fig4", _fig4, pictures.realistic,
            "The paper prints no settings. D = 64, C = 4, q = 0.25, p = 3, d = 32, beta = 4, nu = 1e-4, omega = 5e-4, "
            "step 1e-4; 8000 images (5000 at quick scale). The proofs have temperature 1, which every "
            "formula of the paper uses (the first reading); its definition of the network prints sqrt(d). " + FAST,
            readings={"temperature 1, as in the proofs": {}, "temperature sqrt(d)": {"network.scaling": "sqrt_d"}},
        ),
        _figure(
            "encodings", _encodings, pictures.encodings,
            "The paper trains the logits and mentions both others. D = 36, C = 4, q = 0.4, d = 16; encodings of 256 "
            "dimensions (16 for self-attention), started so that <p_i, p_i> is near beta = 4. Encodings move five times "
            "more slowly than logits. " + FAST,
        ),
        _figure(
            "glm-floor", _glm_floor, pictures.glm_floor, "Logistic regression with a ridge of 1e-3, D = 144, C = 4.",
        ),
        _figure(
            "without-association", _without_association, pictures.without_association, "D = 64, C = 4, q = 0.25, v = w*.",
        ),
        _figure(
            "three-events", _three_events, pictures.events,
            "D = 256, C = 4, q = 1/16, p = 3, nu = 1e-8, beta 5 to 7, where the diagonal dominates. " + EVENTS + FAST,
        ),
        _figure(
            "patches", _patches, pictures.patches,
            "q = 16 / D, C = 4, p = 3, nu = 1e-8, beta = 5. The second event is timed until gamma is 1. " + EVENTS + FAST,
        ),
        _figure(
            "first-event", _first_event, pictures.first_event, "Attention frozen, nu negligible, D = 64, C = 4, beta = 2.",
        ),
        _figure(
            "loss-rate", _loss_rate, pictures.loss_rate, "D = 128, C = 8, q = 0.3 (label noise 1e-6), from gamma = 4.",
        ),
        _figure(
            "common-rate", _common_rate, pictures.events,
            "D = 64, C = 4, q = 0.25, nu = 1e-4, beta = 2 and one step size. " + EVENTS,
        ),
        _figure(
            "frozen-attention", _frozen_attention, pictures.frozen, "D = 36, C = 4, q = 0.4, d = 16. " + FAST,
        ),
        _figure(
            "linear-phase", _linear_phase, pictures.linear_phase, "D = 36, C = 4, q = 0.4, d = 8, beta = 3, one step size.",
        ),
        _figure(
            "coupling", _coupling, pictures.coupling, "D = 36, C = 4, q = 0.4, d = 16, beta = 4, nu = 1e-4. " + FAST,
        ),
        _figure(
            "transfer", _transfer, pictures.transfer,
            "C = 4, q = 16/D, d = D^2. With association: attention from population descent at the same D and one normalised "
            "step on the value vector; or attention learned from a sample (d = D), with one step or gradient descent. Without: "
            "learners that are told the new feature and lack only the groups; their samples are counted per group.",
        ),
        _figure(
            "transfer-learners", _transfer_learners, pictures.transfer_learners,
            "D = 36, C = 4, q = 0.4, d = 36. `untold` is network (T) from scratch, told neither groups nor feature.",
        ),
        _figure("sizes", _sizes, pictures.sizes, "Population descent, one setting changed at a time. " + FAST),
    )
}  # fmt: skip
