"""Theorems 5.1 and 5.2: the samples that a new feature needs, with the groups known and without, against the patches."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import ndtr

from lemmata.draw.curves import DOTS, law, line, reference
from lemmata.draw.palette import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, YELLOW
from lemmata.draw.style import Drawn, canvas, panel, picture, shared_key
from lemmata.figure import Claim, Figure, Made, about, at_least, at_most, made, ours, theorem
from lemmata.measure.columns import chosen
from lemmata.measure.exponent import exponent
from lemmata.measure.simple import mean
from lemmata.measure.trend import difference
from lemmata.results import over_cells, settings
from lemmata.scale import Scale, by_scale
from lemmata.studies.spatial_structure import theory
from lemmata.studies.spatial_structure.figures.common import changed, glm_error, labels, seeds
from lemmata.studies.spatial_structure.theory import hidden, transfers
from lemmata.studies.spatial_structure.trials import Transfer as Trial
from lemmata.sweep import Axis, Sweep

# What is run -----------------------------------------------------------------------------------------------------------

FEW = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64)
PER_GROUP = (1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 12, 16, 24)
LEARNED = ("one-step, learned", "descent, learned")


def at_patches(trial: Trial, patches: int) -> Trial:
    """More patches with the same number of spurious ones (q = poly(C) / D) and d = D^2 (d = poly(D))."""
    rate = 4 * trial.data.group_size / patches
    return changed(trial, data__patches=patches, data__spurious_rate=rate, data__dimension=patches**2)


def with_learner(trial: Trial, learner: str) -> Trial:
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


def sweep(scale: Scale) -> Sweep:
    patches = by_scale(
        scale, (36, 64), (36, 64, 100, 256, 784), (36, 64, 100, 144, 256, 400, 784, 1600, 3136)
    )
    reach = by_scale(scale, 64, 100, 144)
    repeats, source = by_scale(scale, (2, 300), (25, 4000), (50, 8000))
    trial = Trial(sizes=FEW, repeats=repeats, source_samples=source, test_samples=1000)
    names = ("one-step", *LEARNED, "initial", "pair-counting", "label-counting", "scratch")

    def keep(place: Any) -> bool:
        """Learners that train all logits on images are held to the sizes that they can reach."""
        return place["learner"] not in (*LEARNED, "scratch") or place["patches"] <= reach

    axes = (Axis("patches", patches, at_patches), Axis("learner", names, with_learner))
    return Sweep(trial, axes, seeds(scale, 2, 4, 6), keep)


# What is measured ------------------------------------------------------------------------------------------------------


def one_step(r):
    return r.learner == "one-step"


def with_samples(r, samples: int) -> xr.DataArray:
    """The error with this many downstream samples."""
    return r.error.where(r["size"] == samples).max("downstream")


def gap(r):
    """What association gains with 16 samples over untrained attention, in units of the linear models' error."""
    error = with_samples(r, 16) / glm_error(r)
    return difference(chosen(error, learner="initial"), chosen(error, learner="one-step"))


def needed(r):
    """The exponent in D of the samples needed; where no size was enough, or the smallest already was, that size is a bound."""
    ends = xr.where(r.needed > 0, r.largest, r["size"].min("downstream"))
    beyond = xr.where(np.isinf(r.needed), np.sign(r.needed), 0).where(r.needed.notnull())
    values, marks = (x.max("learner") for x in (xr.where(beyond == 0, r.needed, ends), beyond))
    values, marks = (x.where(values.notnull()).dropna("patches", how="all") for x in (values, marks))
    return exponent(values, "patches", censored=marks.fillna(0) if bool((marks != 0).any()) else None)


def wrong_sign(trial: Any, samples: int) -> float:
    """How often one gradient step on this many samples points away from the feature."""
    D, C, q = trial.data.facts
    return theory.sign_error(D, C, q, samples)


def sign_law(r):
    """Error with association over what the sign of one scalar predicts, up to 4 samples; the error that is left at the largest
    sample, where the sign is right, counts on top."""
    error, size, largest = (r[name].max("learner") for name in ("error", "size", "largest"))
    left = error.where(size == largest).max("downstream")
    total = 0.0
    for samples in (1, 2, 3, 4):
        wrong = over_cells(r.isel(learner=0, drop=True), lambda t, n=samples: wrong_sign(t, n))
        predicted = wrong * (1 - 2 * left) + left
        total = total + error.where(size == samples).max("downstream") / predicted
    return mean(total / 4)


def coupons(trial: Any) -> float:
    """The samples that coupon collecting predicts."""
    D, C, q = trial.data.facts
    return theory.coupon_samples(D, C, q, float(trial.target_error))


def cosine(r):
    predicted = theory.one_step_cosine(r.patches, 4, r["size"])
    return mean((r.cosine / predicted).where(r["size"] >= 8))


# How it looks ----------------------------------------------------------------------------------------------------------

LEARNERS = {
    "one-step": (BLUE, "population attention, one step on v"),
    "one-step, learned": (SKY, "learned attention, one step on v"),
    "descent, learned": (GREEN, "learned attention, descent on v"),
    "initial": (RED, "untrained attention, one step on v"),
    "pair-counting": (ORANGE, "told the feature, pair counts"),
    "label-counting": (YELLOW, "told the feature, pair counts with labels"),
    "scratch": (PURPLE, "told the feature, network (T) from scratch"),
}


def over_sizes(results: xr.Dataset) -> xr.DataArray:
    """Errors over the downstream sample sizes, which are the same for all seeds."""
    return results.error.assign_coords(size=results["size"].max("seed"))


@picture
def draw(results: xr.Dataset) -> Drawn:
    """The transfer curve that the paper proves: error over downstream samples, and samples needed over patches."""
    figure, panels = canvas(3, width=4.8, height=4.4)
    patches, target = results.patches.values, settings(results)["target_error"]
    for learner in results.learner.values.tolist():
        colour, label = LEARNERS[learner]
        one = results.sel(learner=learner)
        reached = one.status.notnull().any("seed").values
        for D, alpha in zip(patches[reached], np.linspace(0.35, 1, len(patches))[reached], strict=True):
            curve = over_sizes(one.sel(patches=D))
            line(panels[0], curve, "size", colour, None, "o-", spread="none", alpha=alpha, markersize=3)
        samples = one.needed.isel(patches=reached)
        if np.isinf(samples).any():
            panels[1].plot([], [], "x", color=colour, label=f"{label}: not with {float(one.largest.max()):g}")
            continue
        line(panels[1], samples, "patches", colour, label, "o-")
        if learner.endswith("counting") or learner == "scratch":
            line(panels[2], samples * 4 / samples.patches, "patches", colour, label, "o-")
    signs = [theory.sign_samples(4, 16 * (1 - 4 / D), target) for D in patches]
    collected = np.array([theory.coupon_samples(int(D), 4, 16 / D, target) for D in patches])
    law(panels[1], patches, signs, "sign of one scalar", style=":")
    law(panels[1], patches, collected, "coupon collecting")
    law(panels[2], patches, collected * 4 / patches, "coupon collecting")
    reference(panels[0], y=target, label=f"error {target:g}")
    title = f"stronger: more patches ({patches[0]} to {patches[-1]})"
    panel(panels[0], "downstream samples", "test error", title, "xy", keyed=False)
    panel(panels[1], "patches D", f"samples for error {target:g}", "", "xy", patches, keyed=False)
    panel(panels[2], "patches D", f"samples a group for error {target:g}", "", "x", patches, keyed=False)
    shared_key(figure, panels)
    return figure, f"C = 4, q = 16/D, $d = D^2$ (d = D where attention was learned from a sample). {DOTS}"


# What it can refute ----------------------------------------------------------------------------------------------------


def tested(**laws) -> Made:
    """Made results over the trial's own sample sizes, which have no noise; the laws bring theirs."""
    return made(noise=0.0, size=lambda t, downstream: t.sizes, largest=lambda t: max(t.sizes), **laws)


def asking(samples) -> Made:
    """Samples needed, as a function of the trial."""
    return tested(needed=lambda t, rng: samples(t) * np.exp(0.01 * rng.normal()))


def erring(known: float, blind: float) -> Made:
    """An error for learners that have the association, and another one for the rest."""

    def error(t, downstream, rng):
        return (known if t.learner in ("one-step", "descent") else blind) * np.exp(0.01 * rng.normal())

    return tested(error=error)


def signed(factor: float) -> Made:
    """The normal law of the sign, times this: with 16 spurious patches outside a group of 4."""

    def error(t, downstream, rng):
        spread = np.sqrt(16 * (1 - 4 / t.data.patches))
        return factor * ndtr(-4 * np.sqrt(t.sizes) / spread) * np.exp(0.01 * rng.normal())

    return tested(error=error)


def aligned(factor: float) -> Made:
    """The cosine C / sqrt(C^2 + D / N), times this."""
    return tested(
        cosine=lambda t, downstream, rng: factor * np.exp(0.01 * rng.normal())
        / np.sqrt(1 + t.data.patches / (16 * np.asarray(t.sizes)))
    )  # fmt: skip


LOGARITHM = "over this range of D a logarithm has exponent 0.2 or less"

transfer = Figure(
    "transfer", "Samples needed for a new feature, with and without association, against the number of patches",
    "C = 4, q = 16/D, d = D^2. With association: attention from population descent at the same D and one normalised "
    "step on the value vector; or attention learned from a sample (d = D), with one step or gradient descent. Without: "
    "learners that are told the new feature and lack only the groups; their samples are counted per group.",
    sweep, draw, labels=labels,
    claims=[
        Claim(
            "transfer-order", "With 16 samples of a new task a learner with association generalises and one without does not: "
            "the gap is about the linear models' error", theorem("Theorems 5.1 and 5.2"), headline=True,
            number=gap,
            holds=at_least(0.5, because="association must win at least half of what linear models lose"), conditions=transfers,
            refuted_by=erring(known=0.1, blind=0.14), upheld_by=erring(known=0.02, blind=0.15),
        ),
        Claim(
            "transfer-with", "With association the samples needed for a new task are polylogarithmic in D",
            theorem("Theorem 5.1"), headline=True,
            number=needed, holds=at_most(0.2, because=LOGARITHM), cells=one_step, conditions=transfers,
            refuted_by=asking(lambda t: t.data.patches**0.5), upheld_by=asking(lambda t: t.data.patches**0.1),
        ),
        Claim(
            "transfer-sign", "With association the samples needed are exactly those at which one scalar has its sign right",
            ours("Theorem 5.1, README"),
            number=sign_law,
            holds=about(1.0, 0.9, 1.1, because="an exact law; repeats of one to four samples leave a few per cent"),
            cells=one_step, conditions=transfers,
            refuted_by=signed(1.25), upheld_by=signed(1.0),
        ),
        Claim(
            "transfer-learned", "With attention learned from a sample and gradient descent on the value vector, the samples "
            "needed are polylogarithmic in D", theorem("Theorem 5.1"),
            number=needed, holds=at_most(0.2, because=LOGARITHM), cells=lambda r: r.learner == "descent, learned",
            conditions=transfers,
            refuted_by=asking(lambda t: t.data.patches**0.5), upheld_by=asking(lambda t: t.data.patches**0.1),
        ),
        Claim(
            "transfer-as-population", "Attention learned from a sample needs at most half as many samples again as the "
            "population's",
            ours("Theorem 5.1, README"),
            number=lambda r: mean(
                chosen(r.needed, learner="one-step, learned") / chosen(r.needed, learner="one-step")
            ),
            holds=at_most(1.5, because="polylog leaves a constant: half as many again"), conditions=transfers,
            refuted_by=asking(lambda t: 3.0 if t.pretraining == "population" else 9.0),
            upheld_by=asking(lambda t: 3.0 if t.pretraining == "population" else 3.6),
        ),
        Claim(
            "transfer-without", "Without association the samples needed grow as a power of D, for the best learner tried",
            theorem("Theorem 5.2"), headline=True,
            number=needed, holds=at_least(0.2, because=LOGARITHM), cells=lambda r: r.learner == "label-counting",
            conditions=hidden,
            refuted_by=asking(lambda t: 60 * t.data.patches**0.1), upheld_by=asking(lambda t: 10 * t.data.patches**0.5),
        ),
        Claim(
            "transfer-coupons", "Learners that count pairs need the samples in which every group is seen twice often enough "
            "(coupon collecting)", ours("Theorem 5.2, README"),
            number=lambda r: mean(r.needed / over_cells(r, coupons)),
            holds=about(1.0, 0.8, 1.2, because="a limit law, with chance pairs left out: a fifth at D of 784 and more"),
            cells=lambda r: r.learner.isin(["pair-counting", "label-counting"]) & (r.patches >= 784), conditions=hidden,
            refuted_by=asking(lambda t: 1.4 * t.data.patches), upheld_by=asking(lambda t: 0.87 * t.data.patches),
        ),
        Claim(
            "one-step-cosine", "One normalised gradient step aligns with the new feature as C / sqrt(C^2 + D / N)",
            ours("Appendix F, README"),
            number=cosine,
            holds=about(1.0, 0.9, 1.05, because="the law replaces a random sum by its mean"), cells=one_step,
            conditions=transfers,
            refuted_by=aligned(0.8), upheld_by=aligned(1.0),
        ),
    ],
)  # fmt: skip
